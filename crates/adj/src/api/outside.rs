//! What is not in the log: diffs, saved work, transcripts, prompts, settings, and the machine that it all runs on.
//!
//! The handlers know the shape of requests and answers; whoever implements [`Outside`] knows git and files.

use std::path::PathBuf;
use std::time::Duration;

use super::{Call, PAGE_MAX, Problem, Routed, board, fleet, name, ok, time};
use kernel::World;
use kernel::world::Task;
use machines::Millis;
use machines::names::{EffectId, TaskId, WorkerName};
use machines::worker;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A long poll waits this long at most; then its page is empty and the caller asks again.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
/// How long one look waits: between two it is seen whether the worker has anything in hand still.
const WAIT_SLICE: Duration = Duration::from_secs(1);

/// The world beside the log. Every method may block, and says what was wrong as a problem that people can read.
pub trait Outside: Send + Sync {
    /// What the task's branch would bring into main: the patch, or only its files with counts.
    fn diff(&self, task: &Task, stat: bool) -> Result<Diff, Problem>;

    /// The commits of the task's branch that main does not have, oldest first.
    fn commits(&self, task: &Task) -> Result<Vec<Commit>, Problem>;

    /// All saved work, newest first.
    fn salvage(&self) -> Result<Vec<Salvage>, Problem>;

    /// What a piece of saved work changed, as a patch.
    fn salvage_show(&self, id: &SalvageId) -> Result<String, Problem>;

    /// When it returns, the saved content stands in the branch or folder that it names, and nothing that was there
    /// before was overwritten.
    fn salvage_restore(&self, id: &SalvageId, to: &Restore) -> Result<String, Problem>;

    /// What agents said and did, in order.
    fn transcript(&self, of: &Of, span: &Span) -> Result<Vec<Entry>, Problem>;

    /// The test runs and hooks of a task that are still kept, oldest first.
    fn tests(&self, task: &Task) -> Result<Vec<TestRun>, Problem>;

    /// The prompts in force.
    fn prompts(&self) -> Result<Vec<Prompt>, Problem>;

    /// The text that the task's agent would be told by this prompt now.
    fn prompt_for(&self, world: &World, task: &Task, kind: &str) -> Result<Prompt, Problem>;

    /// The settings in force.
    fn config(&self) -> Result<Configured, Problem>;

    /// Makes the commit that takes back what a task has landed, as the tip of the task `by`.
    fn revert(&self, task: &Task, by: &TaskId) -> Result<String, Problem>;

    /// The settings in force, as the rules read them; `None` where they cannot be read.
    fn rules(&self) -> Option<kernel::Config> {
        None
    }

    /// What is wrong with the settings file, or odd; empty where all is well.
    fn config_check(&self) -> Result<Vec<Finding>, Problem>;

    /// The JSON Schema of the settings file.
    fn config_schema(&self) -> Result<Value, Problem>;

    /// From then on the settings file is in force with exactly the content that it has now.
    fn config_trust(&self) -> Result<Configured, Problem>;

    /// From then on the defaults are in force, where the settings file is gone.
    fn config_forget(&self) -> Result<Configured, Problem>;

    /// What is wrong with ticket files; empty where all is well.
    fn ticket_problems(&self) -> Result<Vec<Finding>, Problem>;

    /// What was looked at on this machine and in this repository, and how it stands.
    fn doctor(&self) -> Result<Vec<Finding>, Problem>;

    /// What is in the trash; where `empty` is set, it was deleted when this returns.
    fn trash(&self, empty: bool) -> Result<Trash, Problem>;

    /// When it returns, there is a settings file, and git does not see what is ours. Done twice, it changes nothing.
    fn init(&self) -> Result<Vec<Finding>, Problem>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    pub base: String,
    pub tip: String,
    pub diff: String,
    /// The task's branch, where a person has put commits on it that are not in the tip and do not land with it.
    pub moved: Option<MovedBranch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovedBranch {
    pub branch: String,
    pub commit: String,
    pub commits: usize,
}

/// A commit in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub oid: String,
    pub subject: String,
}

/// Saved work is known by the task that it is of and by the effect that saved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageId {
    pub task: TaskId,
    pub effect: EffectId,
}

impl SalvageId {
    pub const REFS: &'static str = "refs/adjutant/salvage/";

    /// `TASK/EFFECT`, with or without what git has before it.
    pub fn read(text: &str) -> Result<SalvageId, Problem> {
        let short = text.strip_prefix(SalvageId::REFS).unwrap_or(text);
        let Some((task, effect)) = short.split_once('/') else {
            return Err(Problem::bad(format!("`{}` is not saved work: it has no `/`", text.escape_debug()))
                .hint("`adj salvage list` lists what was saved"));
        };
        Ok(SalvageId { task: name(task)?, effect: name(effect)? })
    }
}

impl std::fmt::Display for SalvageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.task, self.effect)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvage {
    pub id: SalvageId,
    pub commit: String,
    pub at: Millis,
    /// What it holds that the task's tip did not.
    pub files: Vec<String>,
    /// Commits that were on no branch of the task: stashed, amended or reset away. Their ids and subjects.
    pub commits: Vec<String>,
}

/// What git does not have of trees that were removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trash {
    pub folder: PathBuf,
    pub trees: usize,
    pub bytes: u64,
}

/// An amount of data for people.
pub fn size(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} bytes"),
    }
}

/// Where saved work is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restore {
    /// A new branch of the user's repository; where none is named, one is made up. Its parts are names.
    Branch(Option<String>),
    /// A new folder: an absolute path.
    Folder(PathBuf),
}

/// Whose transcript: all steps of a task, whoever took them, or all that a worker took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Task(TaskId),
    Worker(WorkerName),
}

/// One run of a task's tests, or of a hook for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestRun {
    pub effect: String,
    /// The point of the hook; absent for tests.
    pub hook: Option<String>,
    pub command: String,
    /// The folder that it ran in.
    pub folder: String,
    /// How it ended, in words; absent while it runs.
    pub ended: Option<String>,
    /// What it printed, as it was written, cut in the middle where it is much.
    pub output: String,
}

/// Which part of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What comes after this cursor; without one, the end of it.
    pub after: Option<u64>,
    pub limit: usize,
    /// Where there is nothing yet, wait so long for something.
    pub wait: Option<Duration>,
    /// The lines that programs printed, and nothing else.
    pub raw: bool,
}

/// One thing that an agent said or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Counts up through a worker's transcript; the next page comes after it.
    pub cursor: u64,
    /// Where it is known.
    #[serde(serialize_with = "as_time")]
    pub at: Option<Millis>,
    /// `text`, `call`, `result`, `failure`, `question`, `stop`, …
    pub kind: String,
    pub text: String,
    /// The line that the agent's program wrote, where lines were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

fn as_time<S: serde::Serializer>(at: &Option<Millis>, to: S) -> Result<S::Ok, S::Error> {
    at.map(time).serialize(to)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    pub name: String,
    /// The file that it comes from; `None` for the one that is shipped.
    pub file: Option<String>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Configured {
    /// The settings file; `None` where there is none and everything is as shipped.
    pub file: Option<String>,
    /// Whether its content is trusted; where it is not, the last trusted content is in force.
    pub trusted: bool,
    /// The file is gone, and the settings of before are in force.
    pub gone: bool,
    /// The settings in force, as the file would say them.
    pub text: String,
    /// The same, for programs.
    pub settings: Value,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// What was looked at: `git`, `sandbox`, `adjutant.toml:12`, …
    pub subject: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warning,
    Error,
}

pub(super) fn diff(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    let Diff { base, tip, diff, moved } = call.site.outside.diff(task, call.flag("stat"))?;
    let mut answer = json!({"task": id, "base": base, "tip": tip, "diff": diff});
    if let Some(moved) = moved {
        answer["moved"] = json!(moved);
    }
    Ok(ok(answer))
}

fn salvage_line(salvage: &Salvage) -> Value {
    let Salvage { id, commit, at, files, commits } = salvage;
    let full = format!("{}{id}", SalvageId::REFS);
    json!({
        "id": id.to_string(), "ref": full, "task": id.task, "commit": commit, "at": time(*at), "files": files,
        "commits": commits,
    })
}

pub(super) fn salvage(call: &Call) -> Routed {
    let items: Vec<Value> = call.site.outside.salvage()?.iter().map(salvage_line).collect();
    Ok(ok(json!({"items": items, "next": null})))
}

pub(super) fn salvage_show(call: &Call, task: &str, effect: &str) -> Routed {
    let id = SalvageId { task: name(task)?, effect: name(effect)? };
    let diff = call.site.outside.salvage_show(&id)?;
    Ok(ok(json!({"id": id.to_string(), "ref": format!("{}{id}", SalvageId::REFS), "diff": diff})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    id: String,
    branch: Option<String>,
    folder: Option<PathBuf>,
}

pub(super) fn salvage_restore(call: &Call) -> Routed {
    call.by_a_person("restore saved work")?;
    let Wish { id, branch, folder } = call.body()?;
    let id = SalvageId::read(&id)?;
    let to = match (branch, folder) {
        (branch, None) => {
            for part in branch.iter().flat_map(|branch| branch.split('/')) {
                machines::names::check(part).map_err(|error| Problem::bad(error.to_string()))?;
            }
            Restore::Branch(branch)
        }
        (None, Some(folder)) if folder.is_absolute() => Restore::Folder(folder),
        (None, Some(_)) => return Err(Problem::bad("`folder` must be an absolute path")),
        (Some(_), Some(_)) => {
            return Err(Problem::bad("only one of `branch` and `folder` says where it goes"));
        }
    };
    let place = call.site.outside.salvage_restore(&id, &to)?;
    let kind = if matches!(to, Restore::Branch(_)) { "branch" } else { "folder" };
    Ok(ok(json!({"id": id.to_string(), kind: place})))
}

pub(super) fn transcript_of_worker(call: &Call, named: &str) -> Routed {
    let named: WorkerName = name(named)?;
    let known = call.world().worker(&named).is_some();
    let of = Of::Worker(named.clone());
    // One that was removed has nothing in hand, and what it did can be read all the same.
    if !known
        && call
            .site
            .outside
            .transcript(&of, &Span { after: None, limit: 1, wait: None, raw: false })?
            .is_empty()
    {
        return Err(fleet::no_worker(&named));
    }
    transcript(call, &of, &|world| {
        let worker = world.worker(&named);
        worker.is_some_and(|worker| {
            !matches!(worker.machine.status, worker::State::Idle | worker::State::Stuck)
        })
    })
}

pub(super) fn transcript_of_task(call: &Call, id: &str) -> Routed {
    let id: TaskId = name(id)?;
    if call.world().task(&id).is_none() {
        return Err(board::no_task(&id));
    }
    transcript(call, &Of::Task(id.clone()), &|world| world.leaseholder(&id).is_some())
}

/// `in_hand`: somebody is at work, so that more may follow.
fn transcript(call: &Call, of: &Of, in_hand: &dyn Fn(&World) -> bool) -> Routed {
    let after = call.query("after").map(|_| call.after()).transpose()?;
    let wait = call.flag("wait").then_some(WAIT_SLICE);
    let span = Span { after, limit: call.limit()?, wait, raw: call.flag("raw") };
    let deadline = std::time::Instant::now() + WAIT_MAX;
    let (entries, resting) = loop {
        // Looked at first: what was said by whoever rests was said before.
        let resting = call.site.control.is_none() || !in_hand(&call.world());
        let wait = span.wait.filter(|_| !resting);
        let entries = call.site.outside.transcript(of, &Span { wait, ..span.clone() })?;
        if !entries.is_empty() || wait.is_none() || std::time::Instant::now() > deadline {
            break (entries, resting);
        }
    };
    let next = entries.last().map(|entry| entry.cursor.to_string()).or(after.map(|after| after.to_string()));
    // Where a page is not full, the end was reached: whoever follows goes on from `next`.
    let more = after.is_some() && entries.len() >= span.limit.min(PAGE_MAX);
    Ok(ok(json!({"items": entries, "next": next, "more": more, "resting": resting})))
}

pub(super) fn prompts(call: &Call) -> Routed {
    let prompts = call.site.outside.prompts()?;
    let line = |prompt: &Prompt| json!({"name": prompt.name, "file": prompt.file});
    Ok(ok(json!({"items": prompts.iter().map(line).collect::<Vec<_>>(), "next": null})))
}

pub(super) fn prompt(call: &Call, named: &str) -> Routed {
    let prompts = call.site.outside.prompts()?;
    match prompts.iter().find(|prompt| prompt.name == named) {
        Some(prompt) => Ok(ok(json!(prompt))),
        None => Err(Problem::not_found(format!("there is no prompt `{}`", named.escape_debug()))
            .hint("`adj prompt ls` lists the prompts")),
    }
}

pub(super) fn task_prompt(call: &Call, id: &str, kind: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    Ok(ok(json!(call.site.outside.prompt_for(&world, task, kind)?)))
}

pub(super) fn config(call: &Call) -> Routed {
    Ok(ok(json!(call.site.outside.config()?)))
}

pub(super) fn config_check(call: &Call) -> Routed {
    Ok(ok(json!({"items": call.site.outside.config_check()?, "next": null})))
}

/// The last run of the task's tests, or with `hooks` the last of each hook.
pub(super) fn tests(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    let mut runs = call.site.outside.tests(task)?;
    let hooks = call.flag("hooks");
    runs.retain(|run| run.hook.is_some() == hooks);
    if !hooks {
        runs.drain(..runs.len().saturating_sub(1));
    }
    Ok(ok(json!({"items": runs, "next": null})))
}

pub(super) fn config_schema(call: &Call) -> Routed {
    Ok(ok(call.site.outside.config_schema()?))
}

pub(super) fn config_trust(call: &Call) -> Routed {
    call.by_a_person("trust the settings")?;
    let trusted = call.site.outside.config_trust()?;
    if let Some(control) = call.site.control {
        control.reread();
    }
    Ok(ok(json!(trusted)))
}

pub(super) fn config_forget(call: &Call) -> Routed {
    call.by_a_person("forget the settings")?;
    let forgotten = call.site.outside.config_forget()?;
    if let Some(control) = call.site.control {
        control.reread();
    }
    Ok(ok(json!(forgotten)))
}

pub(super) fn ticket_problems(call: &Call) -> Routed {
    Ok(ok(json!({"items": call.site.outside.ticket_problems()?, "next": null})))
}

pub(super) fn doctor(call: &Call) -> Routed {
    let mut findings = vec![fleet_finding(call)];
    // Whatever cannot be looked at is a finding too, and keeps nobody from the others.
    let failed = |problem: Problem| Finding {
        level: Level::Error,
        subject: "machine".to_owned(),
        text: problem.detail,
        hint: problem.hint,
    };
    findings.extend(call.site.outside.doctor().unwrap_or_else(|problem| vec![failed(problem)]));
    findings.extend(agents_missing(call));
    Ok(ok(json!({"items": findings, "next": null})))
}

/// Tasks that wait for an agent that the settings do not have.
fn agents_missing(call: &Call) -> Vec<Finding> {
    let world = call.world_as_set();
    let open = world.tasks.values().filter(|task| !task.is_final());
    let missing = open.filter_map(|task| {
        let agent = task.agent.as_ref().filter(|agent| !world.config.agents.contains_key(*agent))?;
        let id = &task.id;
        Some(Finding {
            level: Level::Warning,
            subject: format!("task {id}"),
            text: format!("it wants agent `{agent}`, which adjutant.toml does not have, and waits"),
            hint: Some(format!("add [agents.{agent}], or choose another: `adj task edit {id} --agent NAME`")),
        })
    });
    missing.collect()
}

fn fleet_finding(call: &Call) -> Finding {
    let found = |level, text: String, hint: Option<&str>| Finding {
        level,
        subject: "fleet".to_owned(),
        text,
        hint: hint.map(str::to_owned),
    };
    match call.site.control.map(|control| control.status()).filter(|status| status.running) {
        Some(status) => match status.sandbox {
            Some(sandbox) => found(Level::Ok, format!("it runs as pid {}; {sandbox}", status.pid), None),
            None => found(
                Level::Warning,
                format!("it runs as pid {} without a sandbox: the roles of agents are advisory", status.pid),
                Some("set `sandbox.mode` to \"strict\" to refuse to run without one"),
            ),
        },
        None => found(Level::Ok, "it is not running".to_owned(), None),
    }
}

pub(super) fn trash(call: &Call) -> Routed {
    Ok(ok(json!(call.site.outside.trash(false)?)))
}

pub(super) fn empty_trash(call: &Call) -> Routed {
    call.by_a_person("empty the trash")?;
    Ok(ok(json!(call.site.outside.trash(true)?)))
}

pub(super) fn init(call: &Call) -> Routed {
    call.by_a_person("set a project up")?;
    Ok(ok(json!({"items": call.site.outside.init()?, "next": null})))
}
