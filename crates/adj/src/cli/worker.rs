//! `adj assign`, `kill`, `retry`, `cleanup`, `clean`, `state` and `stop`: what a person does with workers.

use super::named;
use super::project::Project;
use super::text::{self, Table, dash, visible};
use super::{Context, Exit, Failure, state as snapshot};
use api::types::Nothing;
use api::types::architect::Architect;
use api::types::channel::{self, Channel, HeldTurn, TurnAction, TurnWord};
use api::types::fleet::{self, Fleet, Stopping};
use api::types::host::Trash;
use api::types::run::Run;
use api::types::task::{ListQuery, Statuses, Task, TaskLine};
use api::types::worker::{self as types, Acted, Cleaned, Worker};
use clap::Args;
use machines::Wire;
use machines::task::{BlockReason, Status};
use machines::turn::WaitReason;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj assign A c-abc1

This also resumes a BLOCKED task. `adj why c-abc1` explains why a task waits.")]
pub struct Assign {
    /// Idle worker
    name: String,
    /// Task or ticket
    task: String,
    /// What was unclear before; required if the task is blocked by too many reviews
    #[arg(long, value_name = "TEXT")]
    clarification: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj kill A

Commits stay on the worker's branch, such as agent/A-c-abc1. Uncommitted changes are saved: `adj salvage list`. The \
task is BLOCKED until you assign it again. `adj abort` ends one run, with a reason for the history; `adj stop` stops the \
whole fleet.")]
pub struct Kill {
    /// Worker that is ready, working or stuck, or its task
    #[arg(value_name = "WORKER|TASK")]
    name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj why t-1       explain what failed
  adj retry t-1
  adj retry --all   retry every failed task
  adj retry architect

Retries at once, on the same branch. `adj task restart t-1` starts again from main.")]
pub struct Retry {
    /// Failed task, the worker that is stuck with it, or `architect`
    #[arg(value_name = "TASK|WORKER|architect", required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Retry every task that is BLOCKED by a failure, and every unreachable service
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj cleanup A --force

The worker becomes idle. `adj salvage list` shows where its work is saved. `adj clean` removes all workers and their trees.")]
pub struct Cleanup {
    /// Worker, or its task
    #[arg(value_name = "WORKER|TASK")]
    name: String,
    /// Also stop a process that is still running there
    #[arg(long)]
    force: bool,
}

pub fn assign(command: &Assign, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let body = types::Assign { task: command.task.clone(), clarification: command.clarification.clone() };
    act(&project, &command.name, "assign", &body, "starts it", context)
}

pub fn kill(command: &Kill, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let Worker { line, .. } = named::worker(&project, &command.name)?;
    let quiet = context.globals.json || context.globals.quiet;
    act(&project, &line.name, "kill", &Nothing {}, "saves its work", context)?;
    // Before its tree is made there is no branch, and nothing that could be saved.
    if !line.branch.is_empty() && line.status != machines::worker::State::Ready && !quiet {
        eprintln!(
            "hint: what it committed is on branch `{}`; what it did not is in `adj salvage list`",
            visible(&line.branch)
        );
    }
    Ok(())
}

/// What blocks a task that failed. A person blocked the others, or must say what is to be done differently.
const FAILED: [BlockReason; 7] = [
    BlockReason::Stuck,
    BlockReason::LostWorkers,
    BlockReason::Loop,
    BlockReason::ToolFailures,
    BlockReason::Landing,
    BlockReason::Limit,
    BlockReason::Environment,
];

pub fn retry(command: &Retry, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if command.name.as_deref() == Some("architect") {
        return super::spec::recover(&project, context);
    }
    let ids = match &command.name {
        Some(name) => match named::task(&project, name) {
            Ok(task) => vec![task.line.id],
            // A worker without a task: its own table says no in its own words.
            Err(failure) if failure.exit() == Exit::Refused => {
                let _: Acted = project.post(&format!("/workers/{name}/retry"), &Nothing {})?;
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        },
        None => failed(&project)?,
    };
    let mut tried: Vec<Task> = Vec::new();
    for id in &ids {
        match project.post(&format!("/tasks/{id}/retry"), &Nothing {}) {
            // One of many that somebody else saw to meanwhile.
            Err(failure) if command.all && failure.exit() == Exit::Refused => {}
            answered => tried.push(answered?),
        }
    }
    let seats = if command.all { retry_seats(&project)? } else { Vec::new() };
    if !tried.is_empty() || !seats.is_empty() {
        project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` continues it");
    }
    if context.globals.json {
        let document = if command.all { text::json(&tried) } else { text::json(&tried.swap_remove(0)) };
        return Ok(writeln!(context.out, "{document}")?);
    }
    if tried.is_empty() && seats.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no task has failed")?);
    }
    for seat in seats {
        writeln!(context.out, "{seat}")?;
    }
    for Task { line, whole } in &tried {
        let lease = whole.as_ref().and_then(|whole| whole.lease.as_ref());
        let worker = lease.and_then(|lease| lease.worker()).map(|name| format!("  {}", visible(name)));
        writeln!(context.out, "{}  {}{}", line.id, line.status, worker.unwrap_or_default())?;
    }
    Ok(())
}

/// The tasks that failed, and those whose run waits for a service.
fn failed(project: &Project) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    let blocked = ListQuery { status: Some(Statuses(vec![Status::Blocked])), ..ListQuery::default() };
    for line in project.get_all::<TaskLine>("/tasks", &blocked)? {
        let task: Task = project.get(&format!("/tasks/{}", line.id))?;
        let reason = task.whole.and_then(|whole| whole.block_reason);
        if reason.is_some_and(|reason| FAILED.contains(&reason)) {
            ids.push(line.id);
        }
    }
    let runs: Vec<Run> = project.get_all("/runs", &Nothing {})?;
    ids.extend(runs.into_iter().filter(|run| run.suspended).map(|run| run.task));
    Ok(ids)
}

/// The architect, and agents in channels, that wait for a service try it too; who they are, and where they stand.
fn retry_seats(project: &Project) -> Result<Vec<String>, Failure> {
    let mut tried = Vec::new();
    let architect: Architect = project.get("/architect")?;
    if architect.service.is_some() {
        let now: Architect = project.post("/architect/recover", &Nothing {})?;
        tried.push(format!("architect  {}", now.state.unwrap_or_default()));
    }
    let channels: Vec<Channel> = project.get_all("/channels", &channel::ListQuery::default())?;
    for channel in channels {
        let waits = |turn: &HeldTurn| turn.wait_reason == Some(WaitReason::Service);
        let Some(turn) = channel.turn.filter(waits) else { continue };
        let word = TurnWord { agent: Some(turn.agent.clone()), ..TurnWord::of(TurnAction::Resume) };
        let after: Channel = project.post(&format!("/channels/{}/turn", channel.name), &word)?;
        let state = after.turn.map_or_else(|| "turn over".to_owned(), |turn| format!("turn.{}", turn.state));
        tried.push(format!("{} in {}  {state}", visible(&turn.agent), visible(&channel.name)));
    }
    Ok(tried)
}

pub fn cleanup(command: &Cleanup, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let Worker { line, .. } = named::worker(&project, &command.name)?;
    if line.worktree.is_none() && !context.globals.json {
        let name = visible(&line.name);
        return Ok(writeln!(context.out, "{name}  {}: it has no tree, so nothing is removed", line.status)?);
    }
    let body = types::Cleanup { force: command.force };
    act(&project, &line.name, "cleanup", &body, "saves and removes its tree", context)
}

/// `then`: what a fleet does about it. Where none runs, it is done by the next one.
fn act(
    project: &Project,
    name: &str,
    action: &str,
    body: &impl Serialize,
    then: &str,
    context: Context,
) -> Result<(), Failure> {
    let worker: Acted = project.post(&format!("/workers/{name}/{action}"), body)?;
    project.hint_without_fleet(&context.globals, &format!("no fleet is running; `adj run` {then}"));
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&worker))?);
    }
    let (name, status, task) = match worker {
        Acted::There(worker) => (worker.line.name, worker.line.status.name(), worker.line.task),
        Acted::Retired(worker) => (worker.name, "removed", worker.task),
    };
    Ok(writeln!(context.out, "{}  {status}  {}", visible(&name), visible(&dash(task)))?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj clean --dry-run
  adj clean --yes
  adj clean --trash

The content of each tree is saved first: `adj salvage list`. Tasks and history are kept. `adj cleanup A` removes one tree \
and keeps its worker.

The trash contains files of removed working trees that git does not store, such as ignored files.")]
pub struct Clean {
    /// Only empty the trash; remove no workers
    #[arg(long)]
    trash: bool,
    /// Print what would be removed, without removing it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

pub fn clean(command: &Clean, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if command.trash {
        return clean_trash(command, &project, context);
    }
    let workers: Vec<Worker> = project.get_all("/workers", &Nothing {})?;
    let mut removed: Vec<String> = Vec::new();
    if !command.dry_run && !workers.is_empty() {
        confirm(command, &workers, context.globals.json)?;
        for worker in &workers {
            match project.post(&format!("/workers/{}/clean", worker.line.name), &Nothing {}) {
                // Somebody else was faster.
                Err(failure) if failure.exit() == Exit::NotFound => {}
                answered => removed.push(answered.map(|Cleaned { name, .. }| name)?),
            }
        }
    }
    if context.globals.json {
        let would = workers.into_iter().filter(|_| command.dry_run).map(|worker| worker.line.name);
        let document = Gone { removed, would_remove: would.collect() };
        return Ok(writeln!(context.out, "{}", text::json(&document))?);
    }
    if command.dry_run && !workers.is_empty() {
        return Ok(write!(context.out, "{}", what_goes(&workers))?);
    }
    if removed.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no workers; nothing to remove")?);
    }
    // Without a fleet nobody has saved or removed a tree yet.
    let runs = project.get::<Fleet>("/fleet")?.running;
    for name in removed {
        let worker = workers.iter().find(|worker| worker.line.name == name);
        let tree = worker.and_then(|worker| worker.line.worktree.as_ref()).filter(|_| !runs);
        match tree.map(|tree| project.tree(tree)).filter(|tree| tree.exists()) {
            Some(tree) => {
                let tree = super::text::shown(&tree);
                writeln!(context.out, "{name}  removed; its tree stays for now: {tree}")?;
            }
            None => writeln!(context.out, "{name}  removed")?,
        }
    }
    let hint = "no fleet is running; `adj run` saves the trees and removes them; then `adj salvage list`";
    project.hint_without_fleet(&context.globals, hint);
    Ok(())
}

/// What `adj clean --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gone {
    removed: Vec<String>,
    would_remove: Vec<String>,
}

/// What git does not have of removed trees goes for good.
fn clean_trash(command: &Clean, project: &Project, context: Context) -> Result<(), Failure> {
    let trash: Trash = match command.dry_run {
        true => project.get("/trash")?,
        false => project.post("/trash/empty", &Nothing {})?,
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&trash))?);
    }
    let trees = format!("{} {}", trash.trees, if trash.trees == 1 { "tree" } else { "trees" });
    let (size, folder) = (base::visible::size(trash.bytes), super::text::shown(&trash.folder));
    let what = if command.dry_run { "in the trash" } else { "deleted from the trash" };
    Ok(writeln!(context.out, "{trees}, {size} {what}: {folder}")?)
}

fn what_goes(workers: &[Worker]) -> Table {
    let mut table = Table::new(&["WORKER", "STATUS", "TASK", "TREE"]);
    for Worker { line, .. } in workers {
        let (task, tree) = (dash(line.task.as_ref()), dash(line.worktree.as_ref()));
        table.row([line.name.clone(), line.status.to_string(), task, tree]);
    }
    table
}

/// Asks where somebody can answer. A script says `--yes`.
fn confirm(command: &Clean, workers: &[Worker], json: bool) -> Result<(), Failure> {
    if command.yes {
        return Ok(());
    }
    let mut terminal = std::io::stderr().lock();
    if json || !std::io::stdin().is_terminal() || !terminal.is_terminal() {
        let message = format!("this would remove {}, and nobody is there to ask", count(workers.len()));
        return Err(Failure::new(Exit::Usage, message)
            .hint("`adj clean --dry-run` shows what it would do, `adj clean --yes` does it"));
    }
    write!(terminal, "{}", what_goes(workers))?;
    write!(
        terminal,
        "remove {} and their trees? what they hold is saved first [y/N] ",
        count(workers.len())
    )?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Failed, "nothing was removed")),
    }
}

fn count(workers: usize) -> String {
    if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") }
}

pub const STATE_HELP: &str = "\
Example:
  adj state > state.json
  adj state | jq -r '.agents[] | select(.status == \"stuck\").name'";

/// All workers as one document, in the form of Crew's `state.json`.
pub fn state(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let workers: Vec<Worker> = project.get_all("/workers", &Nothing {})?;
    let document = snapshot::document(workers, |tree| project.tree(tree));
    let text = if context.globals.json { text::json(&document) } else { text::json_lines(&document) };
    Ok(writeln!(context.out, "{text}")?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj stop

Running tool calls have up to 30 seconds (fleet.stop_timeout) to finish. Then they are aborted, and the agent learns of it \
when it continues. All work is kept, and `adj run` continues from there. `adj pause t-1` stops only the agent of one task.")]
pub struct Stop {
    /// Abort running steps at once
    #[arg(long)]
    now: bool,
    /// Stop only the fleet; its server keeps running
    #[arg(long)]
    fleet: bool,
}

/// Longer than a turn is waited for.
const STOP_WAIT: Duration = Duration::from_secs(90);
const STOP_POLL: Duration = Duration::from_millis(50);

pub fn stop(command: &Stop, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let fleet: Fleet = project.get("/fleet")?;
    let pid = fleet.pid.filter(|_| fleet.running || !command.fleet);
    if pid.is_some() || fleet.wanted {
        let server = !command.fleet;
        let _: Stopping = project.post("/fleet/stop", &fleet::Stop { now: command.now, server })?;
    }
    if let Some(pid) = pid {
        gone(&project, pid, command.fleet)?;
    }
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Stopped { stopped: pid.is_some(), pid }))?);
    }
    match pid {
        Some(pid) if command.fleet && project.owner().is_some_and(|owner| owner.pid == pid) => {
            Ok(writeln!(context.out, "the fleet has stopped; the server goes on (pid {pid})")?)
        }
        Some(pid) => Ok(writeln!(context.out, "stopped (pid {pid})")?),
        None if context.globals.quiet => Ok(()),
        None => Ok(writeln!(context.out, "the fleet is not running")?),
    }
}

/// What `adj stop --json` prints.
#[derive(Serialize)]
struct Stopped {
    stopped: bool,
    pid: Option<u32>,
}

/// Until the process that was told to stop has let the project go, or its fleet has ended where only that was asked for.
fn gone(project: &Project, pid: u32, only_fleet: bool) -> Result<(), Failure> {
    let deadline = Instant::now() + STOP_WAIT;
    loop {
        // One that was killed could not take its name back.
        let lives = std::path::Path::new("/proc").join(pid.to_string()).exists();
        let holds = lives && project.owner().is_some_and(|owner| owner.pid == pid);
        match project.get::<Fleet>("/fleet") {
            Ok(fleet) if !holds && fleet.pid != Some(pid) => return Ok(()),
            Ok(fleet) if only_fleet && !fleet.running => return Ok(()),
            // It broke off while it went, or was named and has gone.
            Err(failure) if failure.exit() == Exit::Unreachable && !holds => return Ok(()),
            Err(failure) if failure.exit() != Exit::Unreachable => return Err(failure),
            _ if Instant::now() > deadline => {
                let message =
                    format!("the fleet (pid {pid}) has not stopped after {} s", STOP_WAIT.as_secs());
                return Err(Failure::new(Exit::Failed, message)
                    .hint("`adj stop --now` ends what is under way; its work is saved"));
            }
            _ => std::thread::sleep(STOP_POLL),
        }
    }
}
