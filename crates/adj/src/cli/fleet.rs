//! `adj ps`, `spawn`, `approvals`, `approve`, `deny`, `queue` and `cost`: the fleet, and what waits for a person.

use super::named;
use super::project::Project;
use super::state;
use super::terminal::{self, Colour, Paint, thousands};
use super::text::{self, Money, Table, dash, visible};
use super::{Context, Exit, Failure};
use api::activity;
use api::types::Nothing;
use api::types::approval::{self, Approval};
use api::types::architect::Architect;
use api::types::channel::{self, Channel};
use api::types::cost::{self, CostBy, Spend};
use api::types::fleet::{Fleet, MainState};
use api::types::request::WaitsFor;
use api::types::task::Queued;
use api::types::worker::{self, Worker};
use clap::Args;
use machines::Wire;
use machines::task::{ApprovalCause, Status};
use machines::worker::State;

pub const PS_HELP: &str = "\
Example:
  adj ps
  adj ps --json | jq -r '.[] | select(.status == \"stuck\").name'

If there are an architect or rooms in which an agent has the turn, they are listed below the workers. AGE is the time \
since the worker got its task, or since it was created. ~ marks a cost that is partly estimated (see `adj cost --help`).";

pub const QUEUE_HELP: &str = "\
Example:
  adj queue

Tasks are merged one at a time, by priority and then in the order of approval. Main moves only after the tests of the \
merge have passed.";

pub fn ps(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let workers: Vec<Worker> = project.get_all("/workers", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&state::listed(&workers)))?);
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
        let (line, whole) = (&worker.line, worker.whole.as_ref());
        let waits = whole.is_some_and(|whole| whole.activity.waits());
        let doing = activity::words(worker, base::clock::now());
        let title = whole.and_then(|whole| whole.task_title.as_deref()).unwrap_or_default();
        let gap = if doing.is_empty() || title.is_empty() { "" } else { " | " };
        let doing = visible(&format!("{doing}{gap}{title}"));
        let cost = whole.map_or(Money::default(), Money::of_worker).short();
        let (symbol, name, task) = (line.symbol.clone(), line.name.clone(), dash(line.task.as_ref()));
        match narrow {
            true => table.row([symbol, name, task, cost, doing]),
            false => {
                let tokens = whole.map_or(0, |whole| whole.total_input_tokens + whole.total_output_tokens);
                let since = whole.map(|whole| whole.task_assigned_at.as_ref().unwrap_or(&whole.started_at));
                // A worker that is `working` for the machine may do nothing but wait.
                let status = match line.status {
                    State::Working if waits => "waiting".to_owned(),
                    status => status.to_string(),
                };
                table.row([
                    symbol,
                    name,
                    status,
                    task,
                    dash(whole.map(activity::step)),
                    thousands(tokens),
                    cost,
                    dash(since.map(|since| text::age(since))),
                    doing,
                ]);
            }
        }
        let colour = if waits { Colour::Waits } else { Colour::of_status(line.status.name()) };
        table.coloured(0, colour, paint);
        if !narrow {
            table.coloured(2, colour, paint);
        }
    }
    if table.is_empty() && !context.globals.quiet {
        writeln!(
            context.out,
            "no workers yet; `adj run` makes as many as adjutant.toml says, `adj spawn` makes one"
        )?;
        return others(&project, context.out);
    }
    write!(context.out, "{table}")?;
    others(&project, context.out)?;
    // Beside the table, which stands without it.
    let fleet: Option<Fleet> = project.get("/fleet").ok();
    let waits = |fleet: &Fleet, main: MainState| {
        main == MainState::Red || (fleet.running && main == MainState::Running)
    };
    if let Some(fleet) = fleet
        && let Some(main) = fleet.main_tests.as_ref().filter(|main| waits(&fleet, main.state))
    {
        writeln!(context.out, "\n{}", visible(&main.detail))?;
    }
    if workers.iter().any(|worker| worker.line.status != State::Idle) {
        // Else a worker that is `working` would look alive.
        project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` continues their tasks");
    }
    Ok(())
}

/// Who is at work outside of tasks: the architect, and agents in the rooms where one has the turn. Nothing where there is none.
fn others(project: &Project, out: &mut dyn std::io::Write) -> Result<(), Failure> {
    // Agents, which may not read them, are not told of them.
    let architect: Option<Architect> = project.get("/architect").ok();
    let rooms: Vec<Channel> =
        project.get_all("/channels", &channel::ListQuery::default()).unwrap_or_default();
    let rooms = rooms.iter().filter(|room| room.turn.is_some());
    let rooms = rooms.map(|room| (visible(&room.name), super::channel_words::turn_words(room)));
    let architect = architect.as_ref().and_then(|it| Some(("architect".to_owned(), architect_words(it)?)));
    let lines: Vec<(String, String)> = architect.into_iter().chain(rooms).collect();
    let wide = lines.iter().map(|(name, _)| terminal::columns(name)).max().unwrap_or(0);
    if !lines.is_empty() {
        writeln!(out)?;
    }
    for (name, doing) in lines {
        writeln!(out, "{}", text::hanging(&format!("{}  ", terminal::column(&name, wide)), &doing))?;
    }
    Ok(())
}

/// Where the architect stands, in one line: what it has in hand, how much waits behind that, and for whom it waits. `None`
/// where there is none, or where nothing was asked of it.
fn architect_words(architect: &Architect) -> Option<String> {
    architect.agent.as_ref()?;
    let state = architect.state.as_deref()?;
    let mut words = vec![state.trim_start_matches("architect.").to_owned()];
    if let Some(service) = &architect.service {
        words.push(format!("waits for {service}"));
    }
    let in_hand = architect.request.as_ref();
    if let Some(request) = in_hand {
        let about = request.task.as_ref().or(request.spec.as_ref());
        let about = about.map(|about| format!(" of {about}")).unwrap_or_default();
        let what = format!("{} ({}{about})", request.id, request.kind.noun());
        words.push(match request.waits_for {
            Some(WaitsFor::Person) => format!("{what} waits for you: adj answer {} TEXT", request.id),
            _ => format!("has {what} in hand"),
        });
    }
    if let Some(cause) = &architect.cause {
        words.push(format!("{}: adj retry architect", cause.lines().next().unwrap_or_default()));
    }
    let behind =
        architect.queue.iter().filter(|waits| in_hand.is_none_or(|held| held.id != waits.id)).count();
    match behind {
        0 => {}
        1 => words.push("1 more waits".to_owned()),
        count => words.push(format!("{count} more wait")),
    }
    Some(visible(&words.join(", ")))
}

/// A terminal with fewer columns gets fewer columns of the table.
const NARROW: usize = 70;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj spawn 3
  adj spawn Ada --agent coder")]
pub struct Spawn {
    /// Name of the new worker, or number of workers [default: one, named with the next free letter]
    #[arg(value_name = "NAME|COUNT")]
    what: Option<String>,
    /// Agent that it runs [default: fleet.agent]
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
    let mut spawned: Vec<Worker> = Vec::new();
    for _ in 0..count.unwrap_or(1) {
        let body = worker::Spawn { name: name.map(str::to_owned), agent: command.agent.clone() };
        spawned.push(project.post("/workers", &body)?);
    }
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&spawned))?);
    }
    for worker in &spawned {
        writeln!(context.out, "{}  {}", worker.line.name, worker.line.status)?;
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj approvals
  adj approvals q12               show the whole call
  adj approve q12
  adj deny q12 --note 'why not'

Each request is one line; `… +3 lines` marks a longer call. `adj review` lists the tasks that need a review.")]
pub struct Approvals {
    /// Show only this request, in full
    id: Option<String>,
    /// Include decided requests
    #[arg(long, short, conflicts_with = "id")]
    all: bool,
}

pub fn approvals(command: &Approvals, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if let Some(id) = &command.id {
        let approval: Approval = project.get(&format!("/approvals/{id}"))?;
        return match context.globals.json {
            true => Ok(writeln!(context.out, "{}", text::json(&approval))?),
            false => Ok(write!(context.out, "{}", whole(&approval))?),
        };
    }
    let query = approval::ListQuery { all: command.all, ..Default::default() };
    let approvals: Vec<Approval> = project.get_all("/approvals", &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&approvals))?);
    }
    let mut table = Table::wrapped(&["ID", "TASK", "CAUSE", "DECIDED", "QUESTION"]);
    for approval in approvals {
        let decided = dash(approval.decided.map(|decided| decided.decision));
        table.row([approval.id, dash(approval.task), approval.cause.to_string(), decided, approval.question]);
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing waits for a decision")?);
    }
    Ok(write!(context.out, "{table}")?)
}

/// One approval with all that is asked for, and how it is decided.
fn whole(approval: &Approval) -> String {
    let Approval { id, cause, .. } = approval;
    let mut shown = format!("{id}  {cause}\n");
    let facts = [
        ("task", approval.task.clone()),
        ("run", approval.run.clone()),
        ("budget", approval.scope.map(|scope| scope.to_string())),
        ("asked at", Some(approval.asked_at.clone())),
    ];
    for (label, fact) in facts {
        if let Some(fact) = fact {
            shown.push_str(&format!("{label:<12} {}\n", visible(&fact)));
        }
    }
    match &approval.call {
        Some(call) => {
            shown.push_str(&format!("\nThe agent asks to use {}", text::visible_whole(&call.text, "")));
        }
        None => shown.push_str(&format!("\n{}\n", visible(&approval.question))),
    }
    shown.push('\n');
    match &approval.decided {
        None => shown.push_str(&format!("`adj approve {id}`, or `adj deny {id} --note TEXT`\n")),
        Some(approval::Decided { by, at, decision, note }) => {
            let [decision, by, at, note] = [decision, by, at, note].map(|text| visible(text));
            let note = if note.is_empty() { note } else { format!(": {note}") };
            shown.push_str(&format!("{decision} by {by} at {at}{note}\n"));
        }
    }
    shown
}

pub const APPROVE_HELP: &str = "\
Example:
  adj approvals
  adj approve q12 --note 'only this once'
  adj approve q12 --always        do not ask again for this call in this task
  adj approve q12 --raise 20      add 20 turns to a limit, 20 dollars to a budget
  adj approve q12 --complete      at the turn limit: check the work as it is

`adj answer` answers a question with text. `adj review --approve` approves finished work.";

pub const DENY_HELP: &str = "\
Example:
  adj deny q12 --note 'use the staging server'

A denied tool call does not run; the agent gets the note and continues. If you deny a budget, a turn limit or another \
request, the task becomes BLOCKED. --to sets another status instead.";

#[derive(Debug, Args)]
pub struct Decide {
    /// Id of the request from `adj approvals`, or its task or worker
    #[arg(value_name = "ID|TASK|WORKER")]
    id: String,
    /// Reason; the agent gets this text
    #[arg(long, short, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
    /// New status of the task [default: the one before the request]
    #[arg(long, value_name = "STATUS", value_parser = super::task::words::<machines::task::Status>())]
    to: Option<String>,
}

#[derive(Debug, Args)]
pub struct Approve {
    #[command(flatten)]
    decide: Decide,
    /// Raise the limit by this many turns or dollars [default: the limit itself]
    #[arg(long, value_name = "AMOUNT", conflicts_with = "complete")]
    raise: Option<f64>,
    /// At the turn limit: accept the work as complete, and check it
    #[arg(long, conflicts_with = "to")]
    complete: bool,
    /// Allow exactly this call, with the same arguments, for the rest of the task
    #[arg(long, conflicts_with_all = ["complete", "raise"])]
    always: bool,
}

pub fn approve(command: &Approve, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let asked = meant(&project, &command.decide.id)?;
    let (raise_turns, raise_usd) = match command.raise {
        Some(raise) => raised(raise, &asked)?,
        None => (None, None),
    };
    let answer = command.decide.answer(true);
    let (complete, always) = (command.complete, command.always);
    let answer = approval::Decide { raise_turns, raise_usd, complete, always, ..answer };
    decided(&project, &asked.id, &answer, context)
}

/// By how much a limit is raised: dollars at a budget, else turns.
fn raised(raise: f64, asked: &Approval) -> Result<(Option<u32>, Option<f64>), Failure> {
    let is_money = asked.cause == ApprovalCause::Budget;
    let amount = if is_money { raise * 1e6 } else { raise };
    if !amount.is_finite() || amount < 1.0 || (!is_money && raise.fract() != 0.0) {
        let what = if is_money { "dollars, such as 2.5" } else { "a whole number of turns" };
        return Err(Failure::new(super::Exit::Usage, format!("--raise takes {what}")));
    }
    Ok(match is_money {
        true => (None, Some(raise)),
        false => (Some(raise as u32), None),
    })
}

/// The question of that id, or the one that the task of that name waits for, or the worker's.
fn meant(project: &Project, name: &str) -> Result<Approval, Failure> {
    match project.get(&format!("/approvals/{name}")) {
        Ok(approval) => return Ok(approval),
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
    match task.whole.and_then(|whole| whole.approval) {
        Some(id) => project.get(&format!("/approvals/{id}")),
        None => {
            let (id, status) = (task.line.id, task.line.status);
            let hint = match status {
                Status::Review => format!("to approve its work: `adj review {id} --approve`"),
                _ => "`adj approvals` lists what waits for a decision".to_owned(),
            };
            let message = format!("task `{id}` is {status} and asks nothing");
            Err(Failure::new(super::Exit::Refused, message).hint(hint))
        }
    }
}

pub fn deny(command: &Decide, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let asked = meant(&project, &command.id)?;
    decided(&project, &asked.id, &command.answer(false), context)
}

impl Decide {
    fn answer(&self, approve: bool) -> approval::Decide {
        approval::Decide {
            approve,
            note: self.note.clone(),
            to: self.to.as_deref().and_then(Status::read),
            ..Default::default()
        }
    }
}

fn decided(project: &Project, id: &str, answer: &approval::Decide, context: Context) -> Result<(), Failure> {
    let approval: Approval = project.post(&format!("/approvals/{id}/decision"), answer)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&approval))?);
    }
    let decision = dash(approval.decided.map(|decided| decided.decision));
    Ok(writeln!(context.out, "{}  {decision}", approval.id)?)
}

pub fn queue(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let queue: Vec<Queued> = project.get_all("/queue", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&queue))?);
    }
    let mut table = Table::new(&["TASK", "PRIO", "APPROVED BY", "LANDING", "TITLE"]);
    for task in &queue {
        let landing = match (&task.stage, &task.since) {
            (Some(stage), Some(since)) => format!("{stage}, {}", text::age(since)),
            (Some(stage), None) => stage.clone(),
            (None, _) if task.held_up.is_some() => "held up".to_owned(),
            (None, _) => "-".to_owned(),
        };
        let by = dash(task.approved_by.as_ref());
        table.row([task.task.clone(), task.priority.to_string(), by, landing, task.title.clone()]);
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing waits to land")?);
    }
    write!(context.out, "{table}")?;
    for Queued { task, held_up, .. } in &queue {
        if let Some(why) = held_up {
            writeln!(context.out, "\n{}", text::hanging(&format!("{task}: "), &visible(why)))?;
        }
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj cost --by day

~ marks steps without a reported price. Their cost is estimated from their tokens and the price of other steps of the \
same model, or of the same agent if the settings name no model. If no such step has a price, the cost is unknown, and \
budget.step_usd stays reserved for each of them.")]
pub struct Cost {
    /// Group by task, step, agent, day, worker or run
    #[arg(long, default_value = "task", value_name = "WHAT")]
    by: String,
}

pub fn cost(command: &Cost, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let by = CostBy::read(&command.by).ok_or_else(|| {
        let known = api::types::one_of::<CostBy>();
        let message = format!("`--by` cannot be `{}`: use {known}", command.by.escape_debug());
        Failure::new(Exit::Usage, message)
    })?;
    let cost: cost::Cost = project.get_with("/cost", &cost::Query { by: Some(by) })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&cost))?);
    }
    let steps = by == CostBy::Step;
    let by = command.by.to_uppercase();
    let mut table = match steps {
        true => Table::new(&["STEP", "TASK", "WORKER", "INPUT", "OUTPUT", "COST"]),
        false => Table::new(&[by.as_str(), "INPUT", "OUTPUT", "COST"]),
    };
    let row = |first: Vec<String>, spend: &Spend, cost: String| {
        let used = [thousands(spend.input_tokens), thousands(spend.output_tokens), cost];
        first.into_iter().chain(used).collect::<Vec<_>>()
    };
    for cost::Item { name, spend, step } in &cost.items {
        let money = Money::of(spend);
        match step {
            Some(step) => {
                let first = vec![name.clone(), step.task.clone(), dash(step.worker.as_ref())];
                table.row(row(first, spend, money.of_one()));
            }
            None => table.row(row(vec![name.clone()], spend, money.words())),
        }
    }
    let mut first = vec!["total".to_owned()];
    first.resize(if steps { 3 } else { 1 }, String::new());
    table.row(row(first, &cost.total, Money::of(&cost.total).words()));
    Ok(write!(context.out, "{table}")?)
}
