//! `adj runs`, `start`, `pause`, `resume`, `abort` and `tools`: runs of agents, and what people do with them.

use super::named::{self, first_found};
use super::project::Project;
use super::text::{self, Table, dash, visible};
use super::{Context, Exit, Failure};
use api::types::Nothing;
use api::types::run::{ListQuery, Open, Reported, Run, Sent, ToolCall};
use api::types::task::Task;
use clap::Args;
use machines::run::{Event, PauseReason};
use serde_json::Value;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj runs --task t-1

A run is one agent working on one task. A task has several runs if a review sends it back.")]
pub struct Runs {
    /// Only the runs of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj start coder t-1

An idle worker of the agent takes the task; if there is none, `adj` creates one. If no fleet is running, the run starts \
with `adj run`.")]
pub struct Start {
    /// Agent, as adjutant.toml names it
    agent: String,
    /// Task
    task: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj pause t-1
  adj resume t-1 --feedback 'Use the existing parser.'

The agent stops and its working tree is kept. `adj waiting` lists the run until you resume it. `adj abort` ends it \
permanently.")]
pub struct Pause {
    /// Run, or the task or worker whose run it is
    #[arg(value_name = "RUN|TASK|WORKER")]
    name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj resume t-1
  adj resume t-1.2 --max-turns 80
  adj resume t-1 --feedback 'Use the existing parser.'

Also retries a failed run, and continues one that reached its turn limit. `adj approve` and `adj deny` decide tool calls \
and budgets.")]
pub struct Resume {
    /// Run, or the task or worker whose run it is
    #[arg(value_name = "RUN|TASK|WORKER")]
    name: String,
    /// New turn limit of the run, 1 to 200
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Message for the agent
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj abort t-1 --reason 'wrong approach'

The agent stops and its work is saved: `adj salvage list`. The task is BLOCKED until you retry or assign it. `adj task \
cancel` ends the task itself. `adj kill` frees a worker that is stuck or has no run.")]
pub struct Abort {
    /// Run, or the task or worker whose run it is
    #[arg(value_name = "RUN|TASK|WORKER")]
    name: String,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", default_value = "aborted by a person")]
    reason: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj tools t-1
  adj tools t-1.2 --json

Calls that the policy refused have the status AGENT_TOOL_NOT_ALLOWED. `--json` prints the input and output of each call.")]
pub struct Tools {
    /// Run, or the task or worker whose run it is
    #[arg(value_name = "RUN|TASK|WORKER")]
    name: String,
}

pub fn runs(command: &Runs, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let query = ListQuery { task: command.task.clone(), ..ListQuery::default() };
    if let Some(task) = &command.task {
        // A task that is not there has no runs either, and is something else to say.
        let _: Task = project.get(&format!("/tasks/{task}"))?;
    }
    let runs: Vec<Run> = project.get_all("/runs", &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&runs))?);
    }
    if runs.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no runs")?);
    }
    let mut table = Table::new(&["RUN", "STATE", "TASK", "AGENT", "BY", "TURNS", "CALLS"]);
    for run in &runs {
        let by = run.holder.worker().map_or_else(|| "outside".to_owned(), str::to_owned);
        table.row([
            run.id.clone(),
            state(run),
            run.task.clone(),
            run.agent.clone(),
            by,
            format!("{}/{}", run.current_turn, run.max_turns),
            run.tool_calls.to_string(),
        ]);
    }
    Ok(write!(context.out, "{table}")?)
}

pub fn start(command: &Start, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let body = Open { task: command.task.clone(), agent: Some(command.agent.clone()), ..Open::default() };
    let run: Reported = project.post("/runs", &body)?;
    project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` starts it");
    told(&run, context)
}

pub fn pause(command: &Pause, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let run = live(&project, &command.name)?;
    let event = Event::Pause { reason: PauseReason::UserInput, context: None };
    let run = send(&project, &run, &event)?;
    Project::hint(&context.globals, &format!("`adj resume {}` lets it go on", visible(&run.run.id)));
    told(&run, context)
}

pub fn resume(command: &Resume, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let run = live(&project, &command.name)?;
    let event =
        Event::Resume { feedback: command.feedback.clone(), input: None, max_turns: command.max_turns };
    let mut run = send(&project, &run, &event)?;
    // One that was paused before its first turn is over, and another goes on in its place.
    if run.run.meta.can_start {
        run.run = live(&project, &run.run.task)?;
    }
    project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` continues it");
    told(&run, context)
}

pub fn abort(command: &Abort, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let run = live(&project, &command.name)?;
    let run = send(&project, &run, &Event::Abort { reason: command.reason.clone() })?;
    project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` saves its work");
    told(&run, context)
}

pub fn tools(command: &Tools, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let run = live(&project, &command.name)?;
    let calls: Vec<ToolCall> = project.get_all(&format!("/runs/{}/tools", run.id), &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&calls))?);
    }
    if calls.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "run {} has called no tool", visible(&run.id))?);
    }
    let mut table = Table::new(&["TURN", "TOOL", "STATUS", "TIME", "INPUT"]);
    for call in &calls {
        let status = call.code.clone().unwrap_or_else(|| call.status.to_string());
        let time = call.duration.map(|millis| format!("{:.1}s", millis as f64 / 1000.0));
        table.row([call.turn.to_string(), call.tool.clone(), status, dash(time), about(call.input.as_ref())]);
    }
    Ok(write!(context.out, "{table}")?)
}

/// What a call is about, in one line: its only text, or all of it as JSON.
fn about(input: Option<&Value>) -> String {
    const LETTERS_MAX: usize = 60;
    let Some(input) = input else { return "-".to_owned() };
    let texts: Vec<&str> =
        input.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
    let whole = match texts[..] {
        [text, ..] => text.to_owned(),
        [] => input.to_string(),
    };
    let line = whole.lines().next().unwrap_or_default();
    let cut = line.chars().count() > LETTERS_MAX || whole.lines().nth(1).is_some();
    line.chars().take(LETTERS_MAX).chain(cut.then_some('…')).collect()
}

/// The run of that name, or the one that the task or worker of that name has.
pub fn live(project: &Project, name: &str) -> Result<Run, Failure> {
    let kinds = "run, task or worker";
    match first_found(name, kinds, &["runs"], |kind| project.get::<Run>(&format!("/{kind}/{name}"))) {
        Err(failure) if failure.exit() == Exit::NotFound => {}
        found => return found,
    }
    let task = match named::task(project, name) {
        Err(failure) if failure.exit() == Exit::NotFound => {
            return Err(Failure::not_found(format!("there is no {kinds} `{}`", visible(name)))
                .hint("`adj runs` lists the runs"));
        }
        found => found?,
    };
    match task.whole.and_then(|whole| whole.run) {
        Some(run) => project.get(&format!("/runs/{run}")),
        None => Err(Failure::new(Exit::Refused, format!("no agent has begun `{}`", task.line.id))
            .hint(format!("`adj start AGENT {}` begins a run", task.line.id))),
    }
}

fn send(project: &Project, run: &Run, event: &Event) -> Result<Reported, Failure> {
    let Ok(Value::Object(event)) = serde_json::to_value(event) else {
        return Err(Failure::new(Exit::Usage, "the event cannot be written as JSON"));
    };
    project.post(&format!("/runs/{}/events", run.id), &Sent(event))
}

fn told(run: &Reported, context: Context) -> Result<(), Failure> {
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(run))?);
    }
    let by = run.run.holder.worker().map(|name| format!("  {}", visible(name))).unwrap_or_default();
    Ok(writeln!(context.out, "{}  {}{by}", visible(&run.run.id), state(&run.run))?)
}

fn state(run: &Run) -> String {
    match run.pause_reason.filter(|_| run.state == "paused") {
        Some(reason) => format!("{} ({reason})", run.state),
        None => run.state.clone(),
    }
}
