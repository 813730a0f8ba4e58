//! What is not in the log: diffs, saved work, transcripts, prompts, settings, and the machine that it all runs on.
//!
//! The handlers know the shape of requests and answers; an implementation of [`Host`] knows git and files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::types::history::{ExportHead, Verified};
use super::types::host::{
    ConfigSchema, DiffQuery, Init, PromptLine, RestoreWish, Restored, RestoredTo, Saved, SavedDiff, TaskDiff,
    TestsQuery, Transcript, TranscriptQuery,
};
use super::types::screen::ChangedLines;
use super::types::token::{Minted, TokenLine, TokenRole};
use super::types::{Limit, Nothing, PAGE_MAX, Page, Paging, Room, json_bytes};
use super::{Call, Problem, WAIT_MAX, board, channels, fleet, name, time, wrong};
use agents::AdapterKind;
use git::{DIFF_BYTES_MAX, DiffWish};
use kernel::World;
use kernel::rooms::Seat;
use kernel::world::Task;
use machines::Millis;
use machines::names::{AgentName, ChannelName, EffectId, TaskId, WorkerName};
use machines::worker;
use serde_json::Value;

pub use super::types::host::{
    Commit, Configured, Entry, Finding, Level, MovedBranch, Prompt, TestRun, Trash,
};

/// The least that a patch can be limited to, in bytes.
const DIFF_BYTES_MIN: usize = 1024;
/// How long one look waits: between two it is seen whether the worker has anything in hand still.
const WAIT_SLICE: Duration = Duration::from_millis(300);

/// What there is beside the log. Every method may block, and says what was wrong as a problem that people can read.
pub trait Host: Send + Sync {
    /// What the task's branch would bring into main: the patch, or only its files with counts.
    fn diff(&self, task: &Task, wish: &DiffWish) -> Result<Diff, Problem>;

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
    fn revert(&self, world: &World, task: &Task, by: &TaskId) -> Result<String, Problem>;

    /// The settings that are to be in force, as the rules read them; `None` if the file is invalid and the previous settings
    /// stay in force.
    fn rules(&self) -> Option<Arc<kernel::Config>> {
        None
    }

    /// The settings of the file are in force now: their content is kept for the time when the file is gone or invalid.
    fn settings_applied(&self) {}

    /// The response that was kept under this id.
    fn kept_response(&self, _id: &str) -> Option<super::Response> {
        None
    }

    /// Keeps a response for a while.
    fn keep_response(&self, _id: String, _response: &super::Response) {}

    /// The folder of what agents write, piece by piece.
    fn spoken(&self) -> Option<PathBuf> {
        None
    }

    /// How the settings in force start this agent; `None` where they do not have it, or cannot be read.
    fn adapter(&self, _: &AgentName) -> Option<AdapterKind> {
        None
    }

    /// What the list of all that waits needs to know beside the log.
    fn facts(&self) -> kernel::waiting::Facts {
        kernel::waiting::Facts::default()
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

    /// The project's name: that of its folder.
    fn project(&self) -> String {
        String::new()
    }

    /// The folder of the project.
    fn root(&self) -> PathBuf {
        PathBuf::new()
    }

    /// How many lines the task's branch adds and removes; `None` where that cannot be known.
    fn changed_lines(&self, task: &Task) -> Option<ChangedLines> {
        let wish = DiffWish { numbers: true, ..DiffWish::default() };
        let numbers = self.diff(task, &wish).ok()?.diff;
        let mut lines = ChangedLines { added: 0, removed: 0 };
        for line in numbers.lines() {
            // A binary file has no lines, and dashes here.
            let mut numbers = line.split('\t').map(|number| number.parse::<u32>().unwrap_or(0));
            lines.added += numbers.next()?;
            lines.removed += numbers.next()?;
        }
        Some(lines)
    }

    /// The folder that holds the working trees.
    fn trees(&self) -> String {
        String::new()
    }

    /// Looks at the whole log; what is wrong with it is a problem.
    fn verify(&self) -> Result<Verified, Problem>;

    /// What an export would hold now.
    fn export_head(&self) -> Result<ExportHead, Problem>;

    /// Writes every record of the log as a line of JSON.
    fn export(&self, out: &mut dyn std::io::Write) -> Result<(), Problem>;

    /// The tokens that people made, oldest first.
    fn tokens(&self) -> Result<Vec<TokenLine>, Problem>;

    /// A token for somebody. It is kept, hashed, when this returns.
    fn create_token(
        &self,
        name: &str,
        role: TokenRole,
        now: Millis,
        expires_at: Option<Millis>,
    ) -> Result<Minted, Problem>;

    /// When it returns, this token lets nobody in; `None` where there is none of this id.
    fn revoke_token(&self, id: &str) -> Result<Option<TokenLine>, Problem>;

    /// What is in the trash; where `empty` is set, it was deleted when this returns.
    fn trash(&self, empty: bool) -> Result<Trash, Problem>;

    /// When it returns, there is a settings file, and git does not see what is ours. Done twice, it changes nothing.
    fn init(&self, with_hooks: bool) -> Result<Vec<Finding>, Problem>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    pub base: String,
    pub tip: String,
    pub diff: String,
    /// The limit that the patch is longer than, in bytes: then `diff` is only its summary.
    pub cut: Option<usize>,
    /// The task's branch, where a person has put commits on it that are not in the tip and do not land with it.
    pub moved: Option<MovedBranch>,
}

/// Saved work is known by the task that it is of and by the effect that saved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvageId {
    pub task: TaskId,
    pub effect: EffectId,
}

impl SalvageId {
    pub const REFS: &'static str = git::SALVAGE;

    /// `TASK/EFFECT`, with or without what git has before it.
    pub fn read(text: &str) -> Result<SalvageId, Problem> {
        let short = text.strip_prefix(SalvageId::REFS).unwrap_or(text);
        let Some((task, effect)) = short.split_once('/') else {
            return Err(Problem::bad(format!("`{}` is not saved work: it has no `/`", text.escape_debug()))
                .hint("`adj salvage list` lists what was saved"));
        };
        Ok(SalvageId { task: name(task)?, effect: name(effect)? })
    }

    /// The name that git has for it.
    pub fn reference(&self) -> String {
        format!("{}{self}", SalvageId::REFS)
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

/// Where saved work is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restore {
    /// A new branch of the user's repository; where none is named, one is made up. Its parts are names.
    Branch(Option<String>),
    /// A new folder: an absolute path.
    Folder(PathBuf),
}

/// Whose transcript: all steps of a task by any worker, all steps of a worker, or the replies of agents outside of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Task(TaskId),
    Worker(WorkerName),
    Replies(Replies),
}

/// Whose replies, of the agents that Adjutant hosts outside of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replies {
    Architect,
    Channel(ChannelName),
    Member(ChannelName, AgentName),
    /// In every channel, and as the architect.
    Agent(AgentName),
}

impl Replies {
    /// Whether what `agent` says in a seat is among them.
    pub fn has(&self, seat: &Seat, agent: &AgentName) -> bool {
        match (self, seat) {
            (Replies::Agent(of), _) => of == agent,
            (Replies::Architect, seat) => *seat == Seat::Architect,
            (Replies::Channel(of), Seat::Room { channel, .. }) => of == channel,
            (Replies::Member(of, member), Seat::Room { channel, agent }) => of == channel && member == agent,
            (Replies::Channel(_) | Replies::Member(..), Seat::Architect) => false,
        }
    }

    /// Whether one of them is being said.
    fn under_way(&self, world: &World) -> bool {
        let architect = world.config.architect.as_ref().map(|architect| &architect.agent);
        let speaks = |seat: &Seat| match seat {
            Seat::Room { agent, .. } => self.has(seat, agent),
            Seat::Architect => architect.is_some_and(|agent| self.has(seat, agent)),
        };
        world.seats.iter().any(|(seat, seated)| seated.reply.is_some() && speaks(seat))
    }
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

pub(super) fn diff(call: &Call, id: TaskId, query: DiffQuery, _: Nothing) -> Result<TaskDiff, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    let DiffQuery { stat, path, max_bytes } = query;
    if path.as_deref().is_some_and(|path| path.is_empty() || path.starts_with('/') || path.contains('\0')) {
        return Err(wrong(
            "path",
            "`path` is a file or folder of the repository, such as src/main.rs".to_owned(),
        ));
    }
    let bytes_max = max_bytes.map_or(DIFF_BYTES_MAX, |bytes| bytes as usize);
    if !(DIFF_BYTES_MIN..=DIFF_BYTES_MAX).contains(&bytes_max) {
        let message = format!("`maxBytes` is a number from {DIFF_BYTES_MIN} to {DIFF_BYTES_MAX}");
        return Err(wrong("maxBytes", message));
    }
    let wish = DiffWish { stat, numbers: false, paths: path.into_iter().collect(), bytes_max };
    let Diff { base, tip, diff, cut, moved } = call.access.host.diff(task, &wish)?;
    let message = cut.map(|limit| {
        format!(
            "the diff is longer than {limit} bytes, so only its files are listed: `path` shows one file or folder of them \
             (`adj diff {id} PATH`), and `git diff {base}...{tip}` in the repository shows all of it"
        )
    });
    let cut_at = cut.map(|limit| limit as u64);
    Ok(TaskDiff { task: id.to_string(), base, tip, diff, cut_at, message, moved })
}

fn saved(salvage: Salvage) -> Saved {
    let Salvage { id, commit, at, files, commits } = salvage;
    Saved {
        reference: id.reference(),
        task: id.task.to_string(),
        id: id.to_string(),
        commit,
        at: time(at),
        files,
        commits,
    }
}

pub(super) fn salvage(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<Saved>, Problem> {
    Ok(paging.page(call.access.host.salvage()?.into_iter().map(saved).collect()))
}

pub(super) fn salvage_show(
    call: &Call,
    (task, effect): (TaskId, EffectId),
    _: Nothing,
    _: Nothing,
) -> Result<SavedDiff, Problem> {
    let id = SalvageId { task, effect };
    let diff = call.access.host.salvage_show(&id)?;
    Ok(SavedDiff { id: id.to_string(), reference: id.reference(), diff })
}

pub(super) fn salvage_restore(
    call: &Call,
    (): (),
    _: Nothing,
    wish: RestoreWish,
) -> Result<Restored, Problem> {
    let RestoreWish { id, branch, folder } = wish;
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
    let place = call.access.host.salvage_restore(&id, &to)?;
    let place = match to {
        Restore::Branch(_) => RestoredTo::Branch(place),
        Restore::Folder(_) => RestoredTo::Folder(place),
    };
    Ok(Restored { id: id.to_string(), place })
}

pub(super) fn transcript_of_worker(
    call: &Call,
    named: WorkerName,
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    let known = call.world().worker(&named).is_some();
    let of = Of::Worker(named.clone());
    // One that was removed has nothing in hand, and what it did can be read all the same.
    if !known
        && call
            .access
            .host
            .transcript(&of, &Span { after: None, limit: 1, wait: None, raw: false })?
            .is_empty()
    {
        return Err(fleet::no_worker(&named));
    }
    transcript(call, &query, &of, &|world| {
        let worker = world.worker(&named);
        worker.is_some_and(|worker| {
            !matches!(worker.machine.status, worker::State::Idle | worker::State::Stuck)
        })
    })
}

pub(super) fn transcript_of_task(
    call: &Call,
    id: TaskId,
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    if call.world().task(&id).is_none() {
        return Err(board::no_task(&id));
    }
    transcript(call, &query, &Of::Task(id.clone()), &|world| world.leaseholder(&id).is_some())
}

pub(super) fn transcript_of_architect(
    call: &Call,
    (): (),
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    let unknown = call.world().config.architect.is_none().then(|| {
        Problem::not_found("there is no architect").hint("name an agent in [architect] of adjutant.toml")
    });
    replies(call, &query, Replies::Architect, unknown)
}

pub(super) fn transcript_of_channel(
    call: &Call,
    channel: ChannelName,
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    channels::known(&call.world(), &channel)?;
    replies(call, &query, Replies::Channel(channel), None)
}

pub(super) fn transcript_of_member(
    call: &Call,
    (channel, agent): (ChannelName, AgentName),
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    let unknown = channels::known(&call.world(), &channel)?.place(&agent).is_none().then(|| {
        Problem::not_found(format!("`{agent}` is not in channel `{channel}`"))
            .hint(format!("`adj channel status {channel}` lists who is"))
    });
    replies(call, &query, Replies::Member(channel, agent), unknown)
}

pub(super) fn transcript_of_agent(
    call: &Call,
    agent: AgentName,
    query: TranscriptQuery,
    _: Nothing,
) -> Result<Transcript, Problem> {
    let unknown = (!call.world().config.agents.contains_key(&agent)).then(|| {
        Problem::not_found(format!("there is no agent `{agent}`"))
            .hint("`adj config show` has those of the settings")
    });
    replies(call, &query, Replies::Agent(agent), unknown)
}

/// `unknown`: what is wrong where they are nobody's that is known. What somebody said who is gone can be read all the same.
fn replies(
    call: &Call,
    query: &TranscriptQuery,
    whose: Replies,
    unknown: Option<Problem>,
) -> Result<Transcript, Problem> {
    let of = Of::Replies(whose.clone());
    let first = Span { after: None, limit: 1, wait: None, raw: false };
    if let Some(problem) = unknown
        && call.access.host.transcript(&of, &first)?.is_empty()
    {
        return Err(problem);
    }
    transcript(call, query, &of, &|world| whose.under_way(world))
}

/// `in_hand`: somebody is at work, so that more may follow.
fn transcript(
    call: &Call,
    query: &TranscriptQuery,
    of: &Of,
    in_hand: &dyn Fn(&World) -> bool,
) -> Result<Transcript, Problem> {
    let after = query.after.map(|after| after.0);
    let wait = query.wait.then_some(WAIT_SLICE);
    let span = Span { after, limit: Limit::number(query.limit), wait, raw: query.raw };
    let deadline = std::time::Instant::now() + WAIT_MAX;
    let (entries, resting) = loop {
        // This is read first: an agent that rests has written all of its text before.
        let resting = !call.fleet_runs() || !in_hand(&call.world());
        let wait = span.wait.filter(|_| !resting);
        let entries = call.access.host.transcript(of, &Span { wait, ..span.clone() })?;
        let hopeless = wait.is_none() || call.access.is_given_up();
        if !entries.is_empty() || hopeless || std::time::Instant::now() > deadline {
            break (entries, resting);
        }
    };
    let (mut entries, mut room) = (entries, Room::default());
    let all = entries.len();
    match after {
        Some(_) => {
            let fits = entries.iter().take_while(|entry| room.takes(json_bytes(entry))).count();
            entries.truncate(fits);
        }
        None => {
            let fits = entries.iter().rev().take_while(|entry| room.takes(json_bytes(entry))).count();
            entries.drain(..all - fits);
        }
    }
    let cut = entries.len() < all;
    let next = entries.last().map(|entry| entry.cursor.to_string()).or(after.map(|after| after.to_string()));
    // A page that is not full has reached the end. A client that follows continues from `next`.
    let more = after.is_some() && (cut || entries.len() >= span.limit.min(PAGE_MAX));
    Ok(Transcript { items: entries, next, more, resting })
}

pub(super) fn prompts(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<PromptLine>, Problem> {
    let prompts = call.access.host.prompts()?;
    let line = |Prompt { name, file, .. }| PromptLine { name, file };
    Ok(paging.page(prompts.into_iter().map(line).collect()))
}

pub(super) fn prompt(call: &Call, named: String, _: Nothing, _: Nothing) -> Result<Prompt, Problem> {
    let prompts = call.access.host.prompts()?;
    prompts.into_iter().find(|prompt| prompt.name == named).ok_or_else(|| {
        Problem::not_found(format!("there is no prompt `{}`", named.escape_debug()))
            .hint("`adj prompt ls` lists the prompts")
    })
}

pub(super) fn task_prompt(
    call: &Call,
    (id, kind): (TaskId, String),
    _: Nothing,
    _: Nothing,
) -> Result<Prompt, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    call.access.host.prompt_for(&world, task, &kind)
}

/// The last run of the task's tests, or with `hooks` the last of each hook.
pub(super) fn tests(
    call: &Call,
    id: TaskId,
    query: TestsQuery,
    _: Nothing,
) -> Result<Page<TestRun>, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| board::no_task(&id))?;
    let mut runs = call.access.host.tests(task)?;
    runs.retain(|run| run.hook.is_some() == query.hooks);
    if !query.hooks {
        runs.drain(..runs.len().saturating_sub(1));
    }
    Ok(Page::of(runs, query.after, query.limit))
}

pub(super) fn config(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Configured, Problem> {
    configured(call, call.access.host.config()?)
}

/// What is in force is what the rules go by.
fn configured(call: &Call, configured: Configured) -> Result<Configured, Problem> {
    Ok(Configured { settings: serde_json::json!(*call.world().config), ..configured })
}

pub(super) fn config_check(
    call: &Call,
    (): (),
    paging: Paging,
    _: Nothing,
) -> Result<Page<Finding>, Problem> {
    Ok(paging.page(call.access.host.config_check()?))
}

pub(super) fn config_schema(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<ConfigSchema, Problem> {
    call.access.host.config_schema().map(ConfigSchema)
}

pub(super) fn config_trust(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Configured, Problem> {
    let trusted = call.access.host.config_trust()?;
    if let Some(control) = call.access.control {
        control.reread();
    }
    call.apply_settings()?;
    configured(call, trusted)
}

pub(super) fn config_forget(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Configured, Problem> {
    let forgotten = call.access.host.config_forget()?;
    if let Some(control) = call.access.control {
        control.reread();
    }
    call.apply_settings()?;
    configured(call, forgotten)
}

pub(super) fn ticket_problems(
    call: &Call,
    (): (),
    paging: Paging,
    _: Nothing,
) -> Result<Page<Finding>, Problem> {
    Ok(paging.page(call.access.host.ticket_problems()?))
}

pub fn export(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<ExportHead, Problem> {
    call.access.host.export_head()
}

pub fn verify(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Verified, Problem> {
    call.access.host.verify()
}

pub(super) fn doctor(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<Finding>, Problem> {
    let mut findings = vec![fleet_finding(call)];
    // Whatever cannot be looked at is a finding too, and keeps nobody from the others.
    let failed = |problem: Problem| Finding {
        level: Level::Error,
        subject: "machine".to_owned(),
        text: problem.detail,
        hint: problem.hint,
    };
    findings.extend(call.access.host.doctor().unwrap_or_else(|problem| vec![failed(problem)]));
    findings.extend(agents_missing(call));
    findings.extend(
        call.access.control.and_then(|control| control.status().shared_port).map(|text| Finding {
            level: Level::Warning,
            subject: "port".to_owned(),
            text,
            hint: None,
        }),
    );
    Ok(paging.page(findings))
}

/// Tasks that wait for an agent that the settings do not have.
fn agents_missing(call: &Call) -> Vec<Finding> {
    let world = call.world();
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
    match call.access.control.map(|control| control.status()).filter(|status| status.running) {
        Some(status) => match status.sandbox {
            Some(sandbox) => found(Level::Ok, format!("it runs as pid {}; {sandbox}", status.pid), None),
            None => found(
                Level::Warning,
                format!(
                    "it runs as pid {} without a sandbox: the roles of agents are only advisory",
                    status.pid
                ),
                Some("set `sandbox.mode` to \"strict\" to refuse to run without one"),
            ),
        },
        None => found(Level::Ok, "it is not running".to_owned(), None),
    }
}

pub(super) fn trash(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Trash, Problem> {
    call.access.host.trash(false)
}

pub(super) fn empty_trash(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Trash, Problem> {
    call.access.host.trash(true)
}

pub(super) fn init(call: &Call, (): (), _: Nothing, body: Init) -> Result<Page<Finding>, Problem> {
    Ok(Page { items: call.access.host.init(body.with_hooks)?, next: None })
}
