//! `adj assign`, `kill`, `retry`, `cleanup`, `clean`, `state` and `stop`: what a person does with workers.

use super::named;
use super::project::Project;
use super::text::{self, Table, cell, visible};
use super::{Context, Exit, Failure};
use crate::api::Method;
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj assign A c-abc1

A task that is BLOCKED can be given again this way. `adj why c-abc1` says what else a task may wait for.")]
pub struct Assign {
    /// The worker; it must be idle
    name: String,
    /// The task or ticket
    task: String,
    /// What was not clear before; required where too many reviews blocked the task
    #[arg(long, value_name = "TEXT")]
    clarification: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj kill A

What it committed stays on its branch, such as agent/A-c-abc1; what it did not is saved: `adj salvage list`. The task is \
BLOCKED until a person gives it to a worker again.")]
pub struct Kill {
    /// The worker, or the task that it has; it must be ready, working or stuck
    #[arg(value_name = "WORKER|TASK")]
    name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj why t-1       says what went wrong
  adj retry t-1
  adj retry --all   every task that failed

It is tried at once, on the same branch. `adj task restart t-1` begins it again from main.")]
pub struct Retry {
    /// The task that failed, or the worker that is stuck with it
    #[arg(value_name = "TASK|WORKER", required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Every task that is BLOCKED because something failed, and every service that is waited for
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj cleanup A --force

The worker stays and is idle; `adj clean` removes workers too. The work is kept: `adj salvage list` shows where.")]
pub struct Cleanup {
    /// The worker, or the task that it has
    #[arg(value_name = "WORKER|TASK")]
    name: String,
    /// End a process that is still at work there
    #[arg(long)]
    force: bool,
}

pub fn assign(command: &Assign, context: Context) -> Result<(), Failure> {
    act(&command.name, "assign", assignment(command), "begins it", context)
}

fn assignment(command: &Assign) -> Value {
    let mut body = json!({"task": command.task});
    if let Some(text) = &command.clarification {
        body["clarification"] = json!(text);
    }
    body
}

pub fn kill(command: &Kill, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let branch = cell(&named::worker(&project, &command.name)?["branch"]);
    let quiet = context.globals.json || context.globals.quiet;
    act(&command.name, "kill", json!({}), "saves what it wrote", context)?;
    if !branch.is_empty() && !quiet {
        eprintln!(
            "hint: what it committed is on branch `{}`; what it did not is in `adj salvage list`",
            visible(&branch)
        );
    }
    Ok(())
}

/// What blocks a task that failed. A person blocked the others, or must say what is to be done differently.
const FAILED: [&str; 7] =
    ["stuck", "lost_workers", "loop", "tool_failures", "landing", "limit", "environment"];

pub fn retry(command: &Retry, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let ids = match &command.name {
        Some(name) => match named::task(&project, name) {
            Ok(task) => vec![cell(&task["id"])],
            // A worker without a task: its own table says no in its own words.
            Err(failure) if failure.exit() == Exit::Refused => {
                project.ask(Method::Post, &format!("/workers/{name}/retry"), json!({}), None)?;
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        },
        None => failed(&project)?,
    };
    let mut tried = Vec::new();
    for id in &ids {
        match project.ask(Method::Post, &format!("/tasks/{id}/retry"), json!({}), None) {
            // One of many that somebody else saw to meanwhile.
            Err(failure) if command.all && failure.exit() == Exit::Refused => {}
            answered => tried.push(answered?),
        }
    }
    if !tried.is_empty() {
        project.hint_without_fleet(&context.globals, "no fleet runs here; `adj run` goes on with it");
    }
    if context.globals.json {
        let document = if command.all { Value::Array(tried) } else { tried.swap_remove(0) };
        return Ok(writeln!(context.out, "{}", text::json(&document))?);
    }
    if tried.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no task has failed")?);
    }
    for task in &tried {
        let worker = task["lease"]["worker"].as_str().map(|name| format!("  {}", visible(name)));
        writeln!(
            context.out,
            "{}  {}{}",
            cell(&task["id"]),
            cell(&task["status"]),
            worker.unwrap_or_default()
        )?;
    }
    Ok(())
}

/// The tasks that failed, and those whose run waits for a service.
fn failed(project: &Project) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for line in project.get_all("/tasks", &[("status", "BLOCKED")])? {
        let task = project.get(&format!("/tasks/{}", cell(&line["id"])), &[])?;
        if task["blockReason"].as_str().is_some_and(|reason| FAILED.contains(&reason)) {
            ids.push(cell(&task["id"]));
        }
    }
    for run in project.get_all("/runs", &[])? {
        if run["suspended"] == true {
            ids.push(cell(&run["task"]));
        }
    }
    Ok(ids)
}

pub fn cleanup(command: &Cleanup, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let worker = named::worker(&project, &command.name)?;
    if worker["worktree"].is_null() && !context.globals.json {
        let [name, status] = ["name", "status"].map(|member| visible(&cell(&worker[member])));
        return Ok(writeln!(context.out, "{name}  {status}: it has no tree, so nothing is removed")?);
    }
    act(&command.name, "cleanup", json!({"force": command.force}), "saves and removes its tree", context)
}

/// `then`: what a fleet does about it. Where none runs, it is done by the next one.
fn act(name: &str, action: &str, body: Value, then: &str, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let name = match action {
        "assign" => name.to_owned(),
        _ => cell(&named::worker(&project, name)?["name"]),
    };
    let worker = project.ask(Method::Post, &format!("/workers/{name}/{action}"), body, None)?;
    project.hint_without_fleet(&context.globals, &format!("no fleet runs here; `adj run` {then}"));
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&worker))?);
    }
    let [name, status, task] = ["name", "status", "task"].map(|member| visible(&cell(&worker[member])));
    Ok(writeln!(context.out, "{name}  {status}  {task}")?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj clean --dry-run
  adj clean --yes
  adj clean --trash

Nothing is lost: what a tree holds is saved first, and `adj salvage list` shows where. Tasks and history stay.

The trash holds what git does not have of removed trees, such as ignored files.\n\
`--trash` deletes it and removes no worker.")]
pub struct Clean {
    /// Empty the trash, and remove no worker
    #[arg(long)]
    trash: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn clean(command: &Clean, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if command.trash {
        return clean_trash(command, &project, context);
    }
    let workers = project.get_all("/workers", &[])?;
    let mut removed = Vec::new();
    if !command.dry_run && !workers.is_empty() {
        confirm(command, &workers, context.globals.json)?;
        for worker in &workers {
            let path = format!("/workers/{}/clean", cell(&worker["name"]));
            match project.ask(Method::Post, &path, json!({}), None) {
                // Somebody else was faster.
                Err(failure) if failure.exit() == Exit::NotFound => {}
                answered => removed.push(answered?["name"].clone()),
            }
        }
    }
    if context.globals.json {
        let would: Vec<_> = workers.iter().map(|worker| worker["name"].clone()).collect();
        let would = if command.dry_run { would } else { Vec::new() };
        let document = json!({"removed": removed, "wouldRemove": would});
        return Ok(writeln!(context.out, "{}", text::json(&document))?);
    }
    if command.dry_run && !workers.is_empty() {
        return Ok(write!(context.out, "{}", what_goes(&workers))?);
    }
    if removed.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no workers; nothing to remove")?);
    }
    // Without a fleet nobody has saved or removed a tree yet.
    let runs = project.get("/fleet", &[])?["running"] == true;
    for name in removed {
        let worker = workers.iter().find(|worker| worker["name"] == name);
        let tree = worker.and_then(|worker| worker["worktree"].as_str()).filter(|_| !runs);
        match tree.map(|tree| project.tree(tree)).filter(|tree| tree.exists()) {
            Some(tree) => {
                let tree = super::project::shown(&tree);
                writeln!(context.out, "{}  removed; its tree stays for now: {tree}", cell(&name))?;
            }
            None => writeln!(context.out, "{}  removed", cell(&name))?,
        }
    }
    let hint =
        "no fleet runs here; `adj run` saves what the trees hold, then removes them; then `adj salvage list`";
    project.hint_without_fleet(&context.globals, hint);
    Ok(())
}

/// What git does not have of removed trees goes for good.
fn clean_trash(command: &Clean, project: &Project, context: Context) -> Result<(), Failure> {
    let trash = match command.dry_run {
        true => project.get("/trash", &[])?,
        false => project.ask(Method::Post, "/trash/empty", json!({}), None)?,
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&trash))?);
    }
    let (trees, bytes) = (trash["trees"].as_u64().unwrap_or(0), trash["bytes"].as_u64().unwrap_or(0));
    let trees = format!("{trees} {}", if trees == 1 { "tree" } else { "trees" });
    let (size, folder) = (crate::api::outside::size(bytes), visible(&cell(&trash["folder"])));
    let what = if command.dry_run { "in the trash" } else { "deleted from the trash" };
    Ok(writeln!(context.out, "{trees}, {size} {what}: {folder}")?)
}

fn what_goes(workers: &[Value]) -> Table {
    let mut table = Table::new(&["WORKER", "STATUS", "TASK", "TREE"]);
    for worker in workers {
        table.row(["name", "status", "task", "worktree"].map(|name| cell(&worker[name])));
    }
    table
}

/// Asks where somebody can answer. A script says `--yes`.
fn confirm(command: &Clean, workers: &[Value], json: bool) -> Result<(), Failure> {
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

/// The members of an agent in `state.json`, in its order.
const STATE: [&str; 13] = [
    "name",
    "session",
    "worktree",
    "branch",
    "task",
    "task_assigned_at",
    "status",
    "started_at",
    "step_count",
    "last_step_at",
    "total_input_tokens",
    "total_output_tokens",
    "total_cost_usd",
];

pub const STATE_HELP: &str = "\
Example:
  adj state > state.json
  adj state | jq -r '.agents[] | select(.status == \"stuck\").name'";

/// All workers as one document, in the form of Crew's `state.json`.
pub fn state(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let workers = project.get_all("/workers", &[])?;
    let agent = |worker: &Value| {
        let members = STATE.map(|name| (name.to_owned(), worker[name].clone()));
        let mut agent = Map::from_iter(members);
        if let Some(tree) = worker["worktree"].as_str() {
            agent["worktree"] = json!(project.tree(tree));
        }
        Value::Object(agent)
    };
    let document = json!({"agents": workers.iter().map(agent).collect::<Vec<_>>()});
    let text = if context.globals.json { text::json(&document) } else { text::json_lines(&document) };
    Ok(writeln!(context.out, "{text}")?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj stop

Running calls may end first, for up to 30 seconds (fleet.stop_timeout); then they are cut off, and the agent is told so \
when it goes on. Nothing is lost: `adj run` goes on from there.")]
pub struct Stop {
    /// End steps at once
    #[arg(long)]
    now: bool,
}

/// Longer than a turn is waited for.
const STOP_WAIT: Duration = Duration::from_secs(90);
const STOP_POLL: Duration = Duration::from_millis(50);

pub fn stop(command: &Stop, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let fleet = project.get("/fleet", &[])?;
    let pid = fleet["pid"].as_u64().filter(|_| fleet["running"] == true);
    if pid.is_some() || fleet["wanted"] == true {
        project.ask(Method::Post, "/fleet/stop", json!({"now": command.now}), None)?;
    }
    if let Some(pid) = pid {
        gone(&project, pid)?;
    }
    if context.globals.json {
        let document = json!({"stopped": pid.is_some(), "pid": pid});
        return Ok(writeln!(context.out, "{document}")?);
    }
    match pid {
        Some(pid) => Ok(writeln!(context.out, "stopped (pid {pid})")?),
        None if context.globals.quiet => Ok(()),
        None => Ok(writeln!(context.out, "the fleet is not running")?),
    }
}

/// Until the process that was told to stop has let the project go.
fn gone(project: &Project, pid: u64) -> Result<(), Failure> {
    let deadline = Instant::now() + STOP_WAIT;
    loop {
        // One that was killed could not take its name back.
        let lives = std::path::Path::new("/proc").join(pid.to_string()).exists();
        let holds = lives && project.owner().is_some_and(|owner| u64::from(owner.pid) == pid);
        match project.get("/fleet", &[]) {
            Ok(fleet) if !holds && fleet["pid"].as_u64() != Some(pid) => return Ok(()),
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
