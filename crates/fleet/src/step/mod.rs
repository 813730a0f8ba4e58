//! Steps: an agent's program under its keeper, and its output on the way to the kernel. A reply of an agent outside of
//! tasks is a step too: it has no tip, no gate and no hooks.
//!
//! The folder of a step has everything that is needed to continue it: the request, the input sent to the program,
//! its output, and how it ended. So a step that is found again is read from its beginning, and the log counts
//! everything once.

mod control;
mod follow;
mod start;

use std::path::Path;
use std::sync::Arc;

use kernel::command::{Happened, StepFailure, Usage};
use kernel::rooms::Seat;
use kernel::words::StepEnding;
use machines::names::{AgentName, EffectId, RunId, TaskId, WorkerName};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::sync::mpsc;

use super::hooks::{self, HookError};
use super::surroundings::SurroundingsError;
use super::trees::TreeError;
use super::{Missing, Shared, step_commands::StepCommand};
use agents::{self, AgentError, Ended, Input, Order, Reader};
use base::files::FileError;
use git::GitError;
use log::outbox::Attempt;
use log::owner::SubmitError;
use process::keeper::{self, Exit, KeeperError, Tail};

pub use control::{answer, end, tell};

use follow::{Follower, Gone};

/// The file in a step's folder that says what it is.
const STEP_FILE: &str = "step.json";

/// Why a step cannot be started or followed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("there is no adapter `{0}`")]
    NoAdapter(SmolStr),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Trees(#[from] TreeError),
    #[error("bug: this is not a step")]
    NotAStep,
}

/// What a step's folder says about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepFile {
    pub effect: EffectId,
    #[serde(flatten)]
    pub is_for: For,
    pub agent: AgentName,
    pub adapter: SmolStr,
    /// The turn that the run had reached when the step began; a reply counts its own.
    pub turn: u32,
    pub started_at: i64,
    /// What the program is told first.
    pub stdin: FirstInput,
    pub order: Order,
}

/// What a step is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum For {
    Task { task: TaskId, worker: WorkerName, run: RunId },
    Seat { seat: Seat },
}

impl For {
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            For::Task { task, .. } => Some(task),
            For::Seat { .. } => None,
        }
    }

    pub fn run(&self) -> Option<&RunId> {
        match self {
            For::Task { run, .. } => Some(run),
            For::Seat { .. } => None,
        }
    }

    pub fn worker(&self) -> Option<&WorkerName> {
        match self {
            For::Task { worker, .. } => Some(worker),
            For::Seat { .. } => None,
        }
    }
}

/// What people hear is about it.
impl std::fmt::Display for For {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            For::Task { task, worker, .. } => write!(f, "{worker} {task}"),
            For::Seat { seat: Seat::Room { channel, agent } } => write!(f, "{agent} in {channel}"),
            For::Seat { seat } => write!(f, "{seat}"),
        }
    }
}

/// What a program is told first. It is sent once: the journal knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstInput {
    Nothing,
    /// This, and then the end.
    Whole(String),
    Open {
        id: String,
        text: String,
    },
}

impl From<agents::Stdin> for FirstInput {
    fn from(stdin: agents::Stdin) -> FirstInput {
        match stdin {
            agents::Stdin::Null => FirstInput::Nothing,
            agents::Stdin::Whole(text) => FirstInput::Whole(text),
            agents::Stdin::Open(Input { id, text }) => FirstInput::Open { id, text },
        }
    }
}

/// A step that can be looked at: where it lies, and what it is.
#[derive(Clone, Debug)]
pub struct Step {
    pub dir: std::path::PathBuf,
    pub file: StepFile,
}

impl Step {
    /// Reads what a folder says. `None`: it is not a step's.
    pub fn read(dir: &Path) -> Option<Step> {
        let text = std::fs::read(dir.join(STEP_FILE)).ok()?;
        let file = serde_json::from_slice(&text).ok()?;
        Some(Step { dir: dir.to_owned(), file })
    }

    /// A reader of what it printed, that knows what was sent to the program.
    pub fn reader(&self) -> Result<Box<dyn Reader>, StepError> {
        reader_of(self)
    }
}

/// Starts a step or takes it up again, and follows it to its end. `None`: there is nothing to tell.
pub async fn carry_out(
    shared: &Arc<Shared>,
    attempt: &Attempt,
    words: mpsc::UnboundedReceiver<StepCommand>,
) -> Result<Option<Happened>, SubmitError> {
    let id = &attempt.id;
    let begun = loop {
        // No test comes here without room: what is done just before a step begins waits for it too. Another program may fill
        // the disk in between.
        match start::begin(shared, id, &attempt.effect).await {
            Err(Happened::StepFailed { error, .. }) if shared.waits_for_room(&error).await => {}
            begun => break begun,
        }
    };
    let (step, found) = match begun {
        // Ended before it began; who ended it knows, or it is begun again another time.
        Ok(None) => return Ok(None),
        Ok(Some(begun)) => begun,
        Err(failure) => return Ok(Some(failure)),
    };
    let fence = attempt.fence();
    let mut follower = match Follower::new(shared, &fence, step, words).await {
        Ok(follower) => follower,
        Err(error) => return Ok(Some(failed(error.to_string(), StepFailure::Failed, Usage::default()))),
    };
    let ended = follower.follow(found).await?;
    if let Gone::Left = ended {
        follower.tell_gone(&failed("", StepFailure::Lost, Usage::default()));
        return Ok(None);
    }
    if let Some(task) = follower.step.file.is_for.task().cloned()
        && let Err(error) = hooks::in_tree(shared, hooks::HookPoint::StepAfter, id.as_str(), &task).await
    {
        shared.notice(format!("{task}: {error}"));
    }
    let what = follower.outcome(ended).await;
    follower.tell_gone(&what);
    Ok(Some(what))
}

/// It was ended before it came to its end, and goes on from there another time.
fn cut_off(tip: Option<SmolStr>, usage: Usage) -> Happened {
    let (ending, output) = (StepEnding::CutOff, "interrupted".to_owned());
    Happened::StepFinished { ending, output, tip, tree: None, usage }
}

fn failed(error: impl Into<String>, why: StepFailure, usage: Usage) -> Happened {
    Happened::StepFailed { error: error.into(), why, usage }
}

/// A reader of the step's output that knows what was sent to the program.
fn reader_of(step: &Step) -> Result<Box<dyn Reader>, StepError> {
    let adapter =
        agents::adapter(&step.file.adapter).ok_or_else(|| StepError::NoAdapter(step.file.adapter.clone()))?;
    let mut reader = adapter.reader(&step.file.order);
    for entry in keeper::client::journal(&step.dir)? {
        reader.sent(&entry.id, &entry.text);
    }
    Ok(reader)
}

/// What a step used, by what it printed.
fn usage_of(step: &Step) -> Usage {
    match read_through(step) {
        Some(mut reader) => reader.end(&Exit::unknown()).usage(),
        // Nobody knows what it cost.
        None => Usage { cost: None, ..Usage::default() },
    }
}

/// Whether the last message of a step says that the work is done.
pub fn said_done(step: &Step) -> bool {
    let ended = read_through(step).map(|mut reader| reader.end(&Exit::code(0)));
    matches!(ended, Some(Ended::Finished { done: true, .. }))
}

/// A reader that has read all that the step printed.
fn read_through(step: &Step) -> Option<Box<dyn Reader>> {
    let mut reader = reader_of(step).ok()?;
    let mut out = Tail::open(&keeper::client::out(&step.dir), 0).ok()?;
    while let Ok(Some(line)) = out.next(true) {
        reader.line(&line.bytes, !line.is_cut());
    }
    Some(reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(of: &Value) -> StepFile {
        let order = json!({
            "command": [], "model": null, "system": null, "allowed_tools": null, "prompt": "", "kind": "init", "session": "s",
            "resume": false, "turns_left": 1, "budget_usd": 0.5, "task": "", "worker": "", "run": "", "step": "", "tree": "",
            "main": "", "private": "", "temp": "", "project_root": "", "adj": "",
        });
        let mut file = json!({
            "effect": "e-1", "agent": "coder", "adapter": "script", "turn": 2, "started_at": 1, "stdin": "nothing", "order": order,
        });
        let of = of.as_object().unwrap().clone();
        file.as_object_mut().unwrap().extend(of);
        serde_json::from_value(file).unwrap()
    }

    /// As every version before rooms wrote it.
    #[test]
    fn a_step_of_a_task_is_read_as_it_always_was_and_a_reply_beside_it() {
        let step = read(&json!({ "task": "c-1", "worker": "A", "run": "c-1.1" }));
        assert_eq!((step.is_for.to_string(), step.turn), ("A c-1".to_owned(), 2));
        let reply = read(&json!({ "seat": "room/talk/anna" }));
        assert_eq!((reply.is_for.to_string(), reply.is_for.task()), ("anna in talk".to_owned(), None));
        let again: StepFile = serde_json::from_value(serde_json::to_value(&reply).unwrap()).unwrap();
        assert!(matches!(again.is_for, For::Seat { .. }));
    }
}
