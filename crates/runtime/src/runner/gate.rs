//! The gate: what an agent calls done is looked at before anybody else has to.

use std::sync::Arc;

use kernel::command::Happened;
use machines::names::{EffectId, TaskId, WorkerName};
use smol_str::SmolStr;
use tokio::sync::mpsc;

use super::kept::{self, Kept, Ran};
use super::{Shared, place, steps::Word};
use crate::git::Oid;
use crate::keeper::{Exit, Reason};
use crate::workplace;

/// What of a failing test run is told to the agent, in bytes.
const FAILING_BYTES_MAX: usize = 16 * 1024;

/// Looks at a task's work. `None`: the gate was ended, and is run again another time.
pub async fn run(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Option<Happened> {
    match look(shared, id, task, worker, words).await {
        Ok(what) => what,
        // It says nothing about the work: it is tried again.
        Err(error) => Some(Happened::Failed { error: format!("the gate could not be run: {error}") }),
    }
}

async fn look(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    worker: Option<&WorkerName>,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Result<Option<Happened>, String> {
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| format!("there is no task `{task}`"))?;
    let place = known.place.clone().ok_or_else(|| format!("task `{task}` has no tree"))?;
    let rules = shared.rules();
    let (repository, of, tickets) =
        (shared.repository.clone(), task.clone(), rules.settings.tickets.dir.clone());
    let looked = shared
        .blocking(move || -> Result<Looked, String> {
            let said = |error: crate::git::GitError| error.to_string();
            // A tree that is gone is rebuilt on what was last taken from it.
            repository.prepare_tree(&of, &place.tree, &place.branch).map_err(said)?;
            let message = format!(
                "Leftover changes of {of}\n\nThe agent said that it was done and had not committed these."
            );
            let left =
                repository.commit_leftovers(&of, &place.tree, &place.branch, &message).map_err(said)?;
            let mut tip = repository.take_tip(&of, &place.tree, &place.branch).map_err(said)?.tip;
            let main = repository.main_tip().map_err(said)?;
            let tickets = tickets.to_str();
            let mut found = repository.inspect(&tip, &main, tickets).map_err(said)?;
            let mut dropped = found.ours.clone();
            dropped.extend(found.tickets_changed.clone());
            if !dropped.is_empty() {
                let message = format!("Put back what is not the agent's to change\n\n{}", dropped.join("\n"));
                tip = repository
                    .without(&of, &place.tree, &place.branch, &main, &dropped, &message)
                    .map_err(said)?;
                found = repository.inspect(&tip, &main, tickets).map_err(said)?;
            }
            Ok(Looked { tip, found, dropped, left_out: left.left_out })
        })
        .await?;
    let Looked { tip, found, dropped, left_out } = looked;
    for path in &dropped {
        shared.notice(format!(
            "{task}: the agent's change to `{path}` was dropped; it is not the agent's to change"
        ));
    }
    for path in &left_out {
        shared.notice_once(format!("{task}: `{path}` cannot be committed and stays in the tree"));
    }
    let name = SmolStr::new(tip.as_str());
    if !found.submodules.is_empty() {
        let output = format!(
            "There are repositories inside the branch, which cannot be landed: {}. Take them out.",
            found.submodules.join(", ")
        );
        return Ok(Some(Happened::GateRed { output, tip: Some(name) }));
    }
    if found.empty {
        return Ok(Some(Happened::GateEmpty { tip: name }));
    }
    if !found.conflict_markers.is_empty() {
        let places: Vec<_> =
            found.conflict_markers.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let output = format!("There are conflict markers in the branch: {}", places.join(", "));
        return Ok(Some(Happened::GateRed { output, tip: Some(name) }));
    }
    let tree = shared.layout.tree(&known.place.as_ref().map(|place| place.tree.clone()).unwrap_or_default());
    let Some(command) = test_command(&rules.settings, &tree) else {
        shared.notice(format!(
            "{task}: no tests were found; a person must look. Set `test.command` in adjutant.toml"
        ));
        let needs_person = Some(SmolStr::new_static("no_tests"));
        return Ok(Some(Happened::GateGreen { tip: name, needs_person }));
    };
    let tests = Tests { name: id.to_string(), command, cwd: tree };
    Ok(match run_tests(shared, known, worker, tests, words).await? {
        Tested::Green => {
            let needs_person = found.touches_config.then(|| SmolStr::new_static("touches_config"));
            Some(Happened::GateGreen { tip: name, needs_person })
        }
        Tested::Red(output) => Some(Happened::GateRed { output, tip: Some(name) }),
        Tested::Ended => None,
    })
}

struct Looked {
    tip: Oid,
    found: crate::git::Inspection,
    dropped: Vec<String>,
    left_out: Vec<String>,
}

/// A test run to make.
pub struct Tests {
    pub name: String,
    pub command: String,
    pub cwd: std::path::PathBuf,
}

/// What came of a test run.
pub enum Tested {
    Green,
    /// The part of the output that says what is wrong.
    Red(String),
    /// It was ended; it says nothing about the work.
    Ended,
}

/// The command that tests a tree: the user's, or what the repository holds. `None`: there is nothing to run.
pub fn test_command(settings: &crate::settings::Settings, tree: &std::path::Path) -> Option<String> {
    settings.test.command.clone().or_else(|| workplace::tests::find(tree).command().map(str::to_owned))
}

/// Runs the tests as the agent would: in its sandbox, with its environment, under a keeper.
pub async fn run_tests(
    shared: &Arc<Shared>,
    task: &kernel::world::Task,
    worker: Option<&WorkerName>,
    tests: Tests,
    words: Option<&mut mpsc::UnboundedReceiver<Word>>,
) -> Result<Tested, String> {
    let rules = shared.rules();
    let folders = place::Folders::make(&shared.layout, &task.id).map_err(|error| error.to_string())?;
    let limit = rules.settings.test.timeout;
    let kept = Kept {
        name: tests.name,
        argv: vec!["sh".to_owned(), "-c".to_owned(), tests.command.clone()],
        env: place::environment(shared, &rules, None, task, worker, None)?,
        sandbox: place::sandbox(shared, &rules, &tests.cwd, &folders)?,
        cwd: tests.cwd,
        limit,
    };
    let _slot = shared.tests.acquire().await;
    Ok(match kept::run(shared, kept, words).await? {
        Ran::Ended => Tested::Ended,
        Ran::Over { exit: Exit { reason: Reason::Exited, code: Some(0), .. }, .. } => Tested::Green,
        Ran::Over { exit, output } => {
            let failing = workplace::failing_part(&output, FAILING_BYTES_MAX);
            Tested::Red(format!("`{}` {}.\n\n{failing}", tests.command, place::how_it_ended(&exit, limit)))
        }
    })
}
