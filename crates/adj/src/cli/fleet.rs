//! `adj ps`, `spawn`, `approvals`, `approve`, `deny`, `queue` and `cost`: the fleet, and what waits for a person.

use super::named;
use super::project::Project;
use super::terminal::{self, Colour, Paint, thousands};
use super::text::{self, Money, Table, cell, visible};
use super::{Context, Failure};
use crate::api::Method;
use clap::Args;
use serde_json::{Value, json};

pub const PS_HELP: &str = "\
Example:
  adj ps
  adj ps --json | jq -r '.[] | select(.status == \"stuck\").name'

AGE is how long a worker has had its task, or has been there. ~ marks a cost that is partly estimated; `adj cost`
says how.";

pub const QUEUE_HELP: &str = "\
Example:
  adj queue

One lands at a time, by priority and then in the order of approval: merged, tested as merged, and only then is it main.";

pub fn ps(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let workers = project.get_all("/workers", &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(workers)))?);
    }
    project.warn_of_settings(&context.globals);
    let paint = Paint::stdout(&context.globals);
    let narrow = terminal::size().is_some_and(|(width, _)| width < NARROW);
    let head: &[&str] = match narrow {
        true => &["", "WORKER", "TASK", "COST", "DOING"],
        false => &["", "WORKER", "STATUS", "TASK", "STEP", "TOKENS", "COST", "AGE", "DOING"],
    };
    let mut table = Table::wrapped(head);
    for worker in &workers {
        let count = |name: &str| worker[name].as_u64().unwrap_or(0);
        let since = worker["task_assigned_at"].as_str().or(worker["started_at"].as_str());
        let status = cell(&worker["status"]);
        let (doing, waits) = doing(worker);
        // A worker that is `working` for the machine may do nothing but wait.
        let shown = if waits && status == "working" { "waiting".to_owned() } else { status.clone() };
        let cost = Money::of_worker(worker).short();
        let (symbol, name, task) = (cell(&worker["symbol"]), cell(&worker["name"]), cell(&worker["task"]));
        match narrow {
            true => table.row([symbol, name, task, cost, doing]),
            false => table.row([
                symbol,
                name,
                shown,
                task,
                cell(&worker["step_count"]),
                thousands(count("total_input_tokens") + count("total_output_tokens")),
                cost,
                since.map_or("-".to_owned(), text::age),
                doing,
            ]),
        }
        let colour = if waits { Colour::Waits } else { Colour::of_status(&status) };
        table.coloured(0, colour, paint);
        if !narrow {
            table.coloured(2, colour, paint);
        }
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(
            context.out,
            "no workers yet; `adj run` makes as many as adjutant.toml says, `adj spawn` makes one"
        )?);
    }
    write!(context.out, "{table}")?;
    // Beside the table, which stands without it.
    let fleet = project.get("/fleet", &[]).unwrap_or_default();
    let main = &fleet["mainTests"];
    let waits = main["state"] == "red" || (fleet["running"] == true && main["state"] == "running");
    if let Some(detail) = main["detail"].as_str().filter(|_| waits) {
        writeln!(context.out, "\n{}", visible(detail))?;
    }
    if workers.iter().any(|worker| worker["status"] != "idle") {
        // Else a worker that is `working` would look alive.
        project.hint_without_fleet(
            &context.globals,
            "no fleet runs here; `adj run` goes on with what they have",
        );
    }
    Ok(())
}

/// A terminal with fewer columns gets fewer columns of the table.
const NARROW: usize = 70;

/// What a worker does, or what it waits for, and whether it waits. The command that helps comes first.
fn doing(worker: &Value) -> (String, bool) {
    let activity = &worker["activity"];
    let seconds = |name: &str| text::seconds_until(activity[name].as_str()?);
    let title = worker["task_title"].as_str().unwrap_or_default();
    let last = worker["last_action"].as_str();
    let step = worker["step_count"].as_u64().unwrap_or(0) + 1;
    let (doing, waits) = match activity["state"].as_str().unwrap_or_default() {
        "person" => (format!("waits for you: adj approve {}", cell(&activity["approval"])), true),
        "service" => {
            let until = activity["until"].as_str().and_then(text::clock_of);
            let until = until.map_or(String::new(), |until| format!(" until {until}"));
            (format!("waits for the model API{until}"), true)
        }
        "retry" => match seconds("until").filter(|seconds| *seconds > 0) {
            Some(seconds) => (format!("backing off, next try in {seconds} s"), true),
            None => ("backing off, next try now".to_owned(), true),
        },
        "tree" => ("makes its tree".to_owned(), false),
        "tests" => match seconds("since").map(|seconds| -seconds) {
            Some(seconds) => (format!("tests running {seconds} s"), false),
            None => ("tests running".to_owned(), false),
        },
        "stuck" => (format!("adj why {0}, adj retry {0}", cell(&worker["name"])), true),
        "step" => {
            let turn = worker["turn"].as_u64().unwrap_or(0);
            (
                format!("step {step}, turn {turn}{}", last.map_or(String::new(), |last| format!(": {last}"))),
                false,
            )
        }
        _ => (String::new(), false),
    };
    let gap = if doing.is_empty() || title.is_empty() { "" } else { " | " };
    (visible(&format!("{doing}{gap}{title}")), waits)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj spawn 3
  adj spawn Ada --agent coder")]
pub struct Spawn {
    /// A name, or how many workers; without either, one, named by the next free letter
    #[arg(value_name = "NAME|COUNT")]
    what: Option<String>,
    /// Which agent it is, if not the fleet's
    #[arg(long)]
    agent: Option<String>,
}

pub fn spawn(command: &Spawn, context: Context) -> Result<(), Failure> {
    /// More than anybody runs, and few enough to undo.
    const COUNT_MAX: u32 = 1_000;
    let project = Project::find(&context.globals)?;
    let count = command.what.as_deref().and_then(|what| what.parse::<u32>().ok());
    if count.is_some_and(|count| !(1..=COUNT_MAX).contains(&count)) {
        return Err(Failure::new(super::Exit::Usage, format!("COUNT must be 1 to {COUNT_MAX}")));
    }
    let name = command.what.as_deref().filter(|_| count.is_none());
    let mut spawned = Vec::new();
    for _ in 0..count.unwrap_or(1) {
        let mut body = json!({});
        if let Some(name) = name {
            body["name"] = json!(name);
        }
        if let Some(agent) = &command.agent {
            body["agent"] = json!(agent);
        }
        spawned.push(project.ask(Method::Post, "/workers", body, None)?);
    }
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(spawned)))?);
    }
    for worker in &spawned {
        writeln!(context.out, "{}  {}", cell(&worker["name"]), cell(&worker["status"]))?;
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj approvals
  adj approvals q12               the whole call, as it would run
  adj approve q12, or adj deny q12 --note 'why not'

The list has one line for each; `… +3 lines` marks a call that is longer. Work that waits for a review is not among \
them: `adj review` lists it.")]
pub struct Approvals {
    /// Show this one whole
    id: Option<String>,
    /// Decided ones too
    #[arg(long, short, conflicts_with = "id")]
    all: bool,
}

pub fn approvals(command: &Approvals, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if let Some(id) = &command.id {
        let approval = project.get(&format!("/approvals/{id}"), &[])?;
        return match context.globals.json {
            true => Ok(writeln!(context.out, "{}", text::json(&approval))?),
            false => Ok(write!(context.out, "{}", whole(&approval))?),
        };
    }
    let query: &[(&str, &str)] = if command.all { &[("all", "true")] } else { &[] };
    let approvals = project.get_all("/approvals", query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(approvals)))?);
    }
    let mut table = Table::wrapped(&["ID", "TASK", "CAUSE", "DECIDED", "QUESTION"]);
    for approval in &approvals {
        let decided = cell(&approval["decided"]["decision"]);
        let [id, task, cause, question] =
            ["id", "task", "cause", "question"].map(|name| cell(&approval[name]));
        table.row([id, task, cause, decided, question]);
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing waits for a decision")?);
    }
    Ok(write!(context.out, "{table}")?)
}

/// One approval with all that is asked for, and how it is decided.
fn whole(approval: &Value) -> String {
    let mut shown = format!("{}  {}\n", cell(&approval["id"]), cell(&approval["cause"]));
    let facts = [("task", "task"), ("run", "run"), ("scope", "budget"), ("askedAt", "asked at")];
    for (name, label) in facts.into_iter().filter(|(name, _)| !approval[name].is_null()) {
        shown.push_str(&format!("{label:<12} {}\n", visible(&cell(&approval[name]))));
    }
    match approval["call"]["text"].as_str() {
        Some(call) => {
            shown.push_str(&format!("\nThe agent asks to use {}", text::visible_whole(call, "")));
        }
        None => shown.push_str(&format!("\n{}\n", visible(&cell(&approval["question"])))),
    }
    let decided = &approval["decided"];
    shown.push('\n');
    if decided.is_null() {
        let id = cell(&approval["id"]);
        shown.push_str(&format!("`adj approve {id}`, or `adj deny {id} --note TEXT`\n"));
    } else {
        let [decision, by, at, note] =
            ["decision", "by", "at", "note"].map(|name| visible(&cell(&decided[name])));
        let note = if note.is_empty() { note } else { format!(": {note}") };
        shown.push_str(&format!("{decision} by {by} at {at}{note}\n"));
    }
    shown
}

pub const APPROVE_HELP: &str = "\
Example:
  adj approvals
  adj approve q12 --note 'only this once'
  adj approve q12 --always        the same call is not asked about again in this task
  adj approve q12 --raise 20      20 turns more at the turn limit, 20 dollars more at a budget
  adj approve q12 --complete      at the turn limit: what there is goes to the gate";

pub const DENY_HELP: &str = "\
Example:
  adj deny q12 --note 'use the staging server'

What was asked for is not done. An agent that waits for a tool call is told no, with the note, and goes on. At a budget, a \
turn limit or another question the task is BLOCKED. --to sends it to another status instead.";

#[derive(Debug, Args)]
pub struct Decide {
    /// The question's id, as `adj approvals` lists it, or the task or worker that it is about
    #[arg(value_name = "ID|TASK|WORKER")]
    id: String,
    /// Why; it is told to whoever asked
    #[arg(long, short, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
    /// Where the task goes, if not back to where it came from
    #[arg(long, value_name = "STATUS", value_parser = super::task::words::<machines::task::Status>())]
    to: Option<String>,
}

#[derive(Debug, Args)]
pub struct Approve {
    #[command(flatten)]
    decide: Decide,
    /// Raise the limit by this: turns at the turn limit, dollars at a budget [default: the limit once more]
    #[arg(long, value_name = "AMOUNT", conflicts_with = "complete")]
    raise: Option<f64>,
    /// At the turn limit: the work is complete as it is, and goes to the gate
    #[arg(long, conflicts_with = "to")]
    complete: bool,
    /// Allow exactly this call, with all that it brings, for the rest of the task
    #[arg(long, conflicts_with_all = ["complete", "raise"])]
    always: bool,
}

pub fn approve(command: &Approve, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let mut more = json!({});
    if command.complete {
        more["complete"] = json!(true);
    }
    if command.always {
        more["always"] = json!(true);
    }
    let id = meant(&project, &command.decide.id)?;
    if let Some(raise) = command.raise {
        let approvals = project.get_all("/approvals", &[("all", "true")])?;
        let asked = approvals.iter().find(|approval| approval["id"] == id.as_str());
        let is_money = asked.is_some_and(|asked| asked["cause"] == "budget");
        let amount = if is_money { raise * 1e6 } else { raise };
        if !amount.is_finite() || amount < 1.0 || (!is_money && raise.fract() != 0.0) {
            let what = if is_money { "dollars, such as 2.5" } else { "a whole number of turns" };
            return Err(Failure::new(super::Exit::Usage, format!("--raise takes {what}")));
        }
        more["raise"] = json!(amount.round() as u64);
    }
    decided(&project, &id, &command.decide, true, more, context)
}

/// The question of that id, or the one that the task of that name waits for, or the worker's.
fn meant(project: &Project, name: &str) -> Result<String, Failure> {
    match project.get(&format!("/approvals/{name}"), &[]) {
        Ok(_) => return Ok(name.to_owned()),
        Err(failure) if failure.exit() == super::Exit::Refused => return Err(failure),
        Err(_) => {}
    }
    let task = match named::task(project, name) {
        Ok(task) => task,
        Err(failure) if failure.exit() == super::Exit::NotFound => {
            return Err(Failure::not_found(format!(
                "there is no question, task or worker `{}`",
                text::visible(name)
            ))
            .hint("`adj approvals` lists what waits for a decision"));
        }
        Err(failure) => return Err(failure),
    };
    match task["approval"].as_str() {
        Some(id) => Ok(id.to_owned()),
        None => {
            let (id, status) = (cell(&task["id"]), cell(&task["status"]));
            let hint = match status.as_str() {
                "REVIEW" => format!("to approve its work: `adj review {id} --approve`"),
                _ => "`adj approvals` lists what waits for a decision".to_owned(),
            };
            let message = format!("task `{id}` is {status} and asks nothing");
            Err(Failure::new(super::Exit::Refused, message).hint(hint))
        }
    }
}

pub fn deny(command: &Decide, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let id = meant(&project, &command.id)?;
    decided(&project, &id, command, false, json!({}), context)
}

fn decided(
    project: &Project,
    id: &str,
    command: &Decide,
    approve: bool,
    mut body: Value,
    context: Context,
) -> Result<(), Failure> {
    body["approve"] = json!(approve);
    body["note"] = json!(command.note);
    if let Some(to) = &command.to {
        body["to"] = json!(to);
    }
    let approval = project.ask(Method::Post, &format!("/approvals/{id}/decision"), body, None)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&approval))?);
    }
    Ok(writeln!(context.out, "{}  {}", cell(&approval["id"]), cell(&approval["decided"]["decision"]))?)
}

pub fn queue(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let queue = project.get_all("/queue", &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(queue)))?);
    }
    let mut table = Table::new(&["TASK", "PRIO", "APPROVED BY", "LANDING", "TITLE"]);
    for task in &queue {
        let landing = match (task["stage"].as_str(), task["since"].as_str()) {
            (Some(stage), Some(since)) => format!("{stage}, {}", text::age(since)),
            (Some(stage), None) => stage.to_owned(),
            (None, _) if !task["heldUp"].is_null() => "held up".to_owned(),
            (None, _) => "-".to_owned(),
        };
        let [id, priority, by, title] =
            ["task", "priority", "approvedBy", "title"].map(|name| cell(&task[name]));
        table.row([id, priority, by, landing, title]);
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing waits to land")?);
    }
    write!(context.out, "{table}")?;
    for task in queue.iter().filter(|task| !task["heldUp"].is_null()) {
        let (id, why) = (cell(&task["task"]), visible(&cell(&task["heldUp"])));
        writeln!(context.out, "\n{}", text::hanging(&format!("{id}: "), &why))?;
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj cost --by day

~ marks steps that named no price: they are estimated by their tokens, at what those of the same model's other \
steps cost, or of the same agent's where the settings name no model. Where no such step has a price, it is unknown, \
and budget.step_usd of each such step stays set aside.")]
pub struct Cost {
    /// task, step, agent, day, worker or run
    #[arg(long, default_value = "task", value_name = "WHAT")]
    by: String,
}

pub fn cost(command: &Cost, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let cost = project.get("/cost", &[("by", &command.by)])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&cost))?);
    }
    let by = command.by.to_uppercase();
    let steps = command.by == "step";
    let mut table = match steps {
        true => Table::new(&["STEP", "TASK", "WORKER", "INPUT", "OUTPUT", "COST"]),
        false => Table::new(&[by.as_str(), "INPUT", "OUTPUT", "COST"]),
    };
    let tokens = |item: &Value, name: &str| thousands(item[name].as_u64().unwrap_or(0));
    let row = |first: Vec<String>, item: &Value, cost: String| {
        let used = [tokens(item, "inputTokens"), tokens(item, "outputTokens"), cost];
        first.into_iter().chain(used).collect::<Vec<_>>()
    };
    for item in cost["items"].as_array().into_iter().flatten() {
        let money = Money::of(item);
        match steps {
            true => {
                let first = ["name", "task", "worker"].map(|name| cell(&item[name])).to_vec();
                table.row(row(first, item, money.of_one()));
            }
            false => table.row(row(vec![cell(&item["name"])], item, money.words())),
        }
    }
    let total = &cost["total"];
    let mut first = vec!["total".to_owned()];
    first.resize(if steps { 3 } else { 1 }, String::new());
    table.row(row(first, total, Money::of(total).words()));
    Ok(write!(context.out, "{table}")?)
}
