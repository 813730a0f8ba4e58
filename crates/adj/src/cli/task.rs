//! `adj task` and `adj board`: the work.

use super::named;
use super::project::Project;
use super::terminal::{Colour, Paint, thousands};
use super::text::{self, Money, Table, cell, visible, visible_lines};
use super::{Context, Exit, Failure};
use crate::api::Method;
use clap::{Args, Subcommand};
use machines::Wire;
use machines::task::{ApprovalCause, BlockReason, Status, TaskType};
use serde_json::{Map, Value, json};
use std::io::Read;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Add a task to the inbox
    Add(Add),
    /// List the tasks that are not closed
    Ls(List),
    /// Show a task with all that is known of it
    #[command(after_help = "\
Example:
  adj task show c-abc1")]
    Show { id: String },
    /// Change what a task says
    Edit(Edit),
    /// Move a task to another status
    #[command(after_help = MOVE_HELP)]
    Move(Box<Move>),
    /// Give a task to one or more agents
    #[command(after_help = "\
Example:
  adj task assign c-abc1 coder

This says which agent may take it; `adj assign WORKER TASK` gives it to a worker now.")]
    Assign {
        id: String,
        #[arg(required = true, value_name = "AGENT")]
        agents: Vec<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Let the fleet work on tasks that agents proposed
    #[command(after_help = "\
Example:
  adj task accept t-7
  adj task accept t-7 t-8

`adj board` shows which are proposed; `adj task cancel t-9` refuses one.")]
    Accept {
        #[arg(required = true, value_name = "TASK")]
        ids: Vec<String>,
    },
    /// Comment on a task; the agent hears what a person says at once, or with its next step
    #[command(after_help = "\
Example:
  adj task comment c-abc1 'use the list of the other page'")]
    Comment {
        /// The task, or the worker that has it
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// The text; `-` reads standard input
        text: String,
        #[command(flatten)]
        once: Once,
    },
    /// Cancel a task
    #[command(after_help = "\
Example:
  adj task cancel c-abc1

What was committed stays on the task's branch (`adj task show c-abc1` names it) until trash.age has passed; \
what was not committed is saved: `adj salvage list`.")]
    Cancel {
        /// The task, or the worker that has it
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// What answers the question, where the task waits for a decision
        #[arg(long, value_name = "TEXT")]
        decision: Option<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Start a task over: new branch, tree and session, from main
    #[command(after_help = "\
Example:
  adj task restart c-abc1
  adj task restart c-abc1 --note 'without a new dependency'

What runs for it is ended and its old branch is deleted. The commits of that branch and what was not committed \
are saved: `adj salvage list`. `adj retry c-abc1` goes on with the same branch instead.")]
    Restart {
        /// The task, or the worker that has it; any that is not DONE or CANCELED
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// Where the new branch begins; there is no other place than main
        #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = ["main"], hide_default_value = true)]
        from: String,
        /// What is to be done differently; the agent is told
        #[arg(long, short, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Say which task must be done before which
    #[command(subcommand)]
    Dep(Dep),
}

/// What is said where there would be an empty list.
const NO_TASKS: &str = "no tasks; put a ticket into .tickets and `adj run`, or `adj task add TITLE`";

pub const BOARD_HELP: &str = "\
Example:
  adj board
  adj board --json | jq '.BLOCKED[].id'";

const MOVE_HELP: &str = "\
What a move requires is in `adj machine show task`. It can be given by option, or as a whole by --payload:
  adj task move t-1 IN_PROGRESS --plan 'read it' --plan 'fix it' --plan 'test it'
  adj task move t-1 BLOCKED --payload '{\"reason\":\"manual\"}'";

/// For a request that may be made twice.
#[derive(Debug, Args)]
pub struct Once {
    /// Idempotency key: a request that is repeated with the same key is carried out once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj task add 'Name the file in the error message' --body 'Where, and how to know it is done.'
  adj task add 'Write the page' --depends-on t-1 --priority 1 --body - < page.md

Prints the id. For tasks that are files beside the code, write tickets: one in .tickets for each.")]
pub struct Add {
    /// What is to be done, in one line
    title: String,
    /// What is to be done, in full; `-` reads standard input
    #[arg(long, short, value_name = "TEXT")]
    body: Option<String>,
    /// The task's id; made up where none is given
    #[arg(long)]
    id: Option<String>,
    /// What kind of work it is
    #[arg(long = "type", value_name = "TYPE", value_parser = words::<TaskType>())]
    task_type: Option<String>,
    /// From 0, the most urgent, to 4
    #[arg(long, short, value_name = "0-4", value_parser = clap::value_parser!(u8).range(0..=4))]
    priority: Option<u8>,
    /// A task that must be done first; may be given again
    #[arg(long, value_name = "ID")]
    depends_on: Vec<String>,
    /// One bullet of the work plan; 3 to 6 are needed
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// Who reviews it
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<String>,
    /// The agent that does it, if not the one of [fleet]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The closed task that this one takes up again
    #[arg(long, value_name = "ID")]
    reopens: Option<String>,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
pub struct Edit {
    /// The task, or the worker that has it
    #[arg(value_name = "TASK|WORKER")]
    id: String,
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// `-` reads standard input
    #[arg(long, short, value_name = "TEXT")]
    body: Option<String>,
    /// From 0, the most urgent, to 4
    #[arg(long, short, value_name = "0-4", value_parser = clap::value_parser!(u8).range(0..=4))]
    priority: Option<u8>,
    /// One bullet of the work plan; all of them are replaced
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// Who reviews it
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<String>,
    /// The agent that does it from the next claim on; `none` takes the choice back
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj task ls
  adj task ls --status BLOCKED --status REVIEW
  adj task ls --all --json")]
pub struct List {
    /// Only tasks of this status; may be given again
    #[arg(long, short, value_name = "STATUS")]
    status: Vec<String>,
    /// Only tasks of this agent
    #[arg(long, value_name = "AGENT")]
    assignee: Option<String>,
    /// Closed tasks too
    #[arg(long, short)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct Move {
    /// The task, or the worker that has it
    #[arg(value_name = "TASK|WORKER")]
    id: String,
    /// INBOX, ASSIGNED, IN_PROGRESS, REVIEW, NEEDS_APPROVAL, BLOCKED, DONE or CANCELED
    status: String,
    /// All that the move brings, as a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// An agent that it is given to; may be given again
    #[arg(long, value_name = "AGENT")]
    assignee: Vec<String>,
    /// One bullet of the work plan; 3 to 6 are needed
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// What a review asks to be changed
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Why it is blocked; required for BLOCKED
    #[arg(long, value_name = "REASON", value_parser = words::<BlockReason>())]
    reason: Option<String>,
    /// Why a person is asked; required for NEEDS_APPROVAL
    #[arg(long, value_name = "CAUSE", value_parser = words::<ApprovalCause>())]
    cause: Option<String>,
    /// What answers the question that it waited for; required to leave NEEDS_APPROVAL
    #[arg(long, value_name = "TEXT")]
    decision: Option<String>,
    /// What was not clear before; required where too many reviews blocked it
    #[arg(long, value_name = "TEXT")]
    clarification: Option<String>,
    /// Why it is approved; required for DONE
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    once: Once,
}

/// The words that an option takes, for its help and its refusals.
pub(super) fn words<T: Wire>() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(T::ALL.iter().map(|word| word.name()))
}

#[derive(Debug, Subcommand)]
pub enum Dep {
    /// ID waits until ON is done
    Add {
        id: String,
        on: String,
        #[command(flatten)]
        once: Once,
    },
    /// ID no longer waits for ON
    Rm {
        id: String,
        on: String,
        #[command(flatten)]
        once: Once,
    },
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let (method, path, body, key) = match command {
        Command::Ls(list) => return ls(&project, &list, context),
        Command::Show { id } => return show(&project, &id, context),
        Command::Add(add) => return self::add(&project, add, context),
        Command::Accept { ids } => return accept(&project, &ids, context),
        Command::Edit(edit) => {
            let mut body = json!({});
            put(&mut body, "title", edit.title);
            put(&mut body, "body", edit.body.map(or_stdin).transpose()?);
            put(&mut body, "priority", edit.priority);
            put(&mut body, "plan", (!edit.plan.is_empty()).then_some(edit.plan));
            put(&mut body, "reviewerId", edit.reviewer);
            put(&mut body, "agent", edit.agent);
            let id = cell(&named::task(&project, &edit.id)?["id"]);
            return self::edit(&project, &id, body, edit.once.key.as_deref(), context);
        }
        Command::Move(moved) => {
            let body = move_body(&moved)?;
            let id = cell(&named::task(&project, &moved.id)?["id"]);
            (Method::Post, format!("/tasks/{id}/transitions"), body, moved.once.key)
        }
        Command::Assign { id, agents, once } => {
            let body = json!({"to": "ASSIGNED", "assigneeIds": agents});
            (Method::Post, format!("/tasks/{id}/transitions"), body, once.key)
        }
        Command::Cancel { id, decision, once } => {
            let id = cell(&named::task(&project, &id)?["id"]);
            let mut body = json!({"to": "CANCELED"});
            if let Some(decision) = decision {
                body["decision"] = json!(decision);
            }
            (Method::Post, format!("/tasks/{id}/transitions"), body, once.key)
        }
        Command::Comment { id, text, once } => {
            let id = cell(&named::task(&project, &id)?["id"]);
            (Method::Post, format!("/tasks/{id}/comments"), json!({"text": or_stdin(text)?}), once.key)
        }
        Command::Restart { id, from: _, note, once } => {
            let id = cell(&named::task(&project, &id)?["id"]);
            project.hint_without_fleet(
                &context.globals,
                "no fleet runs here; `adj run` saves what there is and begins again from main",
            );
            let mut body = json!({});
            put(&mut body, "note", note);
            (Method::Post, format!("/tasks/{id}/restart"), body, once.key)
        }
        Command::Dep(Dep::Add { id, on, once }) => {
            (Method::Post, format!("/tasks/{id}/dependencies"), json!({"on": on}), once.key)
        }
        Command::Dep(Dep::Rm { id, on, once }) => {
            (Method::Delete, format!("/tasks/{id}/dependencies/{on}"), Value::Null, once.key)
        }
    };
    let answer = project.ask(method, &path, body, key.as_deref())?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&answer))?);
    }
    let task = answer.get("task").unwrap_or(&answer);
    Ok(writeln!(context.out, "{}  {}", cell(&task["id"]), cell(&task["status"]))?)
}

fn edit(
    project: &Project,
    id: &str,
    body: Value,
    key: Option<&str>,
    context: Context,
) -> Result<(), Failure> {
    let chosen = body["agent"].is_string();
    let task = project.ask(Method::Patch, &format!("/tasks/{id}"), body, key)?;
    if chosen {
        hint_of_agent(&task, &context);
        if let Some(worker) = task["lease"]["worker"].as_str() {
            let id = cell(&task["id"]);
            let text = format!(
                "worker `{worker}` goes on with `{id}`; another agent takes it when that worker gives it back (`adj task restart {id}` begins again at once)"
            );
            Project::hint(&context.globals, &text);
        }
    }
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&task))?),
        false => Ok(writeln!(context.out, "{}  {}", cell(&task["id"]), cell(&task["status"]))?),
    }
}

/// Says at once what would keep the task waiting.
fn hint_of_agent(task: &Value, context: &Context) {
    if task["agentConfigured"] == false {
        let (id, agent) = (cell(&task["id"]), visible(&cell(&task["agent"])));
        let text =
            format!("adjutant.toml has no agent `{agent}`; `{id}` waits until there is [agents.{agent}]");
        Project::hint(&context.globals, &text);
    }
}

fn accept(project: &Project, ids: &[String], context: Context) -> Result<(), Failure> {
    let ask = |id: &String| project.ask(Method::Post, &format!("/tasks/{id}/accept"), Value::Null, None);
    for id in ids {
        let task = ask(id)?;
        match context.globals.json {
            true => writeln!(context.out, "{}", text::json(&task))?,
            false => writeln!(context.out, "{}  {}", cell(&task["id"]), cell(&task["status"]))?,
        }
    }
    let hint = "no fleet runs here; `adj run` works on it";
    project.hint_without_fleet(&context.globals, hint);
    Ok(())
}

fn add(project: &Project, add: Add, context: Context) -> Result<(), Failure> {
    let Add { title, body, id, task_type, priority, depends_on, plan, reviewer, agent, reopens, once } = add;
    let mut request = json!({"title": title, "dependsOn": &depends_on});
    let body = body.map(or_stdin).transpose()?;
    let plan = (!plan.is_empty()).then_some(plan);
    put(&mut request, "body", body);
    put(&mut request, "id", id);
    put(&mut request, "type", task_type);
    put(&mut request, "priority", priority);
    put(&mut request, "plan", plan);
    put(&mut request, "reviewerId", reviewer);
    put(&mut request, "reopens", reopens);
    put(&mut request, "agent", agent);
    let task = project.ask(Method::Post, "/tasks", request, once.key.as_deref())?;
    hint_of_agent(&task, &context);
    for on in &depends_on {
        let there = project.get(&format!("/tasks/{on}"), &[]);
        if there.is_err_and(|failure| failure.exit() == Exit::NotFound) {
            let (id, on) = (cell(&task["id"]), visible(on));
            Project::hint(
                &context.globals,
                &format!(
                    "there is no task `{on}` yet; `{id}` is not started before there is, and it is DONE"
                ),
            );
        }
    }
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&task))?),
        // The id alone, so that a script can take it.
        false => {
            writeln!(context.out, "{}", cell(&task["id"]))?;
            if task["proposed"]["state"] == "waiting" {
                Project::hint(&context.globals, "it is proposed; it is worked on when a person accepts it");
            }
            Ok(())
        }
    }
}

fn put(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[name] = value.into();
    }
}

fn move_body(moved: &Move) -> Result<Value, Failure> {
    let mut body = match &moved.payload {
        None => Map::new(),
        Some(payload) => match serde_json::from_str(&or_stdin(payload.clone())?) {
            Ok(Value::Object(payload)) => payload,
            Ok(_) => return Err(bad_payload("it is not an object")),
            Err(error) => return Err(bad_payload(&error.to_string())),
        },
    };
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    put("to", Some(json!(moved.status)));
    put("assigneeIds", (!moved.assignee.is_empty()).then(|| json!(moved.assignee)));
    put("workPlan", (!moved.plan.is_empty()).then(|| json!({"bullets": moved.plan})));
    put("feedback", moved.feedback.as_ref().map(|text| json!(text)));
    put("reason", moved.reason.as_ref().map(|text| json!(text)));
    put("cause", moved.cause.as_ref().map(|text| json!(text)));
    put("decision", moved.decision.as_ref().map(|text| json!(text)));
    put("approval", moved.note.as_ref().map(|note| json!({"decisionNote": note})));
    put("clarification", moved.clarification.as_ref().map(|text| json!(text)));
    Ok(Value::Object(body))
}

fn bad_payload(why: &str) -> Failure {
    Failure::new(Exit::Usage, format!("--payload is not right: {}", visible(why)))
        .hint("it takes a JSON object, such as '{\"reason\":\"manual\"}'")
}

fn or_stdin(text: String) -> Result<String, Failure> {
    /// As much as a body may be, and a little more, so that the limit answers and not a cut.
    const LIMIT: u64 = 1 << 20;
    if text != "-" {
        return Ok(text);
    }
    let mut text = String::new();
    std::io::stdin().lock().take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

fn ls(project: &Project, list: &List, context: Context) -> Result<(), Failure> {
    let open = Status::ALL.iter().filter(|status| !matches!(status, Status::Done | Status::Canceled));
    let open: Vec<_> = open.map(|status| status.name()).collect();
    let mut query = Vec::new();
    let statuses = if list.status.is_empty() { open.join(",") } else { list.status.join(",") };
    if !list.all || !list.status.is_empty() {
        query.push(("status", statuses.as_str()));
    }
    query.extend(list.assignee.as_deref().map(|assignee| ("assignee", assignee)));
    let tasks = project.get_all("/tasks", &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(tasks)))?);
    }
    project.warn_of_tickets(&context.globals);
    let mut table = Table::new(&["ID", "STATUS", "PRIO", "ASSIGNED", "TITLE"]);
    for task in &tasks {
        let [id, status, priority, assigned, title] =
            ["id", "status", "priority", "assigneeIds", "title"].map(|name| cell(&task[name]));
        let proposed = task["proposed"]["state"] == "waiting" && status == "INBOX";
        let assigned = if proposed { "proposed".to_owned() } else { assigned };
        table.row([id, status, priority, assigned, title]);
    }
    if table.is_empty() && !context.globals.quiet {
        let every = list.all && list.status.is_empty() && list.assignee.is_none();
        let none =
            if every { NO_TASKS } else { "no such tasks; `adj task ls --all` lists all that there are" };
        return Ok(writeln!(context.out, "{none}")?);
    }
    Ok(write!(context.out, "{table}")?)
}

/// The board: a column for each status, one under the other, so that it fits any terminal.
pub fn board(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let tasks = in_order_of_taking(project.get_all("/tasks", &[])?);
    project.warn_of_tickets(&context.globals);
    if context.globals.json {
        let mut board = Map::new();
        for status in Status::ALL {
            let there = tasks.iter().filter(|task| task["status"] == status.name());
            board.insert(status.name().to_owned(), there.cloned().collect());
        }
        return Ok(writeln!(context.out, "{}", text::json(&Value::Object(board)))?);
    }
    if tasks.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "{NO_TASKS}")?);
    }
    let paint = Paint::stdout(&context.globals);
    for status in Status::ALL {
        let there: Vec<_> = tasks.iter().filter(|task| task["status"] == status.name()).collect();
        if there.is_empty() {
            continue;
        }
        let colour = match Colour::of_status(status.name()) {
            Colour::Plain => Colour::Bold,
            colour => colour,
        };
        let heading = format!("{} ({})", status.name(), there.len());
        writeln!(context.out, "{}", paint.as_meant(colour, heading))?;
        for task in there {
            let held = task["held"].as_str().map(|held| format!("  ({held})")).unwrap_or_default();
            let line = format!("  {}  {}{held}", cell(&task["id"]), visible(&cell(&task["title"])));
            writeln!(context.out, "{}", text::fitting(&line))?;
        }
    }
    Ok(())
}

/// As workers take them: what can be taken first, then by priority and age. What has left the board's beginning stays in the
/// order in which it came.
fn in_order_of_taking(mut tasks: Vec<Value>) -> Vec<Value> {
    // What is no task is a ticket that was closed before: it keeps nobody waiting.
    let is_open = |task: &&Value| task["status"] != "DONE";
    let to_do: Vec<Value> = tasks.iter().filter(is_open).map(|task| task["id"].clone()).collect();
    tasks.sort_by_cached_key(|task| {
        let open = ["INBOX", "ASSIGNED", "IN_PROGRESS"].iter().any(|status| task["status"] == *status);
        let on = task["dependsOn"].as_array().map(Vec::as_slice).unwrap_or_default();
        let waits = task["held"].is_string() || on.iter().any(|id| to_do.contains(id));
        open.then(|| (waits, task["priority"].as_u64(), cell(&task["createdAt"])))
    });
    tasks
}

fn show(project: &Project, id: &str, context: Context) -> Result<(), Failure> {
    let task = named::task(project, id)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&task))?);
    }
    let out = context.out;
    writeln!(out, "{}  {}", cell(&task["id"]), visible(&cell(&task["title"])))?;
    let names = [
        ("status", "status"),
        ("type", "type"),
        ("priority", "priority"),
        ("agent", "agent"),
        ("assigneeIds", "assigned to"),
        ("reviewerId", "reviewer"),
        ("dependsOn", "depends on"),
        ("blockReason", "blocked by"),
        ("approval", "waits for"),
        ("branch", "branch"),
        ("tip", "tip"),
        ("run", "run"),
        ("heldUp", "held up by"),
        ("clarification", "clarified"),
        ("createdAt", "created"),
        ("allowedTransitions", "may move to"),
    ];
    for (name, label) in names {
        let shown = cell(&task[name]);
        if shown != "-" {
            writeln!(out, "{label:<12} {}", visible(&shown))?;
        }
    }
    if let Some(merge) = task["landed"]["merge"].as_str() {
        writeln!(out, "{:<12} {}; `adj undo {}` takes it back", "landed", visible(merge), cell(&task["id"]))?;
    }
    if let Some(why) = task["needsPerson"]["text"].as_str() {
        writeln!(out, "{:<12} {}", "look at it", visible(why))?;
    }
    // What the gate found and what somebody says are two things.
    for (label, checks) in [("gate", &task["gate"]["checks"]), ("claimed", &task["claims"]["checks"])] {
        for (index, check) in checks.as_array().into_iter().flatten().enumerate() {
            let label = if index == 0 { label } else { "" };
            let [item, answer] = ["item", "answer"].map(|name| visible(&cell(&check[name])));
            writeln!(out, "{label:<12} {answer:<7}  {item}")?;
        }
    }
    if let Some(by) = task["claims"]["by"].as_str() {
        writeln!(out, "{:<12} by {}; the gate did not run, and nothing of it was checked", "", visible(by))?;
    }
    let cost = &task["cost"];
    let tokens = ["inputTokens", "outputTokens"].map(|name| cost[name].as_u64().unwrap_or(0));
    let tokens = thousands(tokens.iter().sum());
    writeln!(out, "{:<12} {}, {tokens} tokens", "cost", Money::of(cost).words())?;
    let bullets = task["workPlan"]["bullets"].as_array().or(task["plan"].as_array());
    if let Some(bullets) = bullets {
        let source = match task["workPlan"]["source"].as_str() {
            Some("ticket") => " from the ticket",
            Some("default") => " by default",
            Some("person") => " by a person",
            Some("agent") => " by an agent",
            _ => "",
        };
        writeln!(out, "\nplan{source}")?;
        for bullet in bullets {
            writeln!(out, "  - {}", visible(&cell(bullet)))?;
        }
    }
    if let Some(body) = task["body"].as_str().filter(|body| !body.is_empty()) {
        write!(out, "\n{}", visible_lines(body, "  "))?;
    }
    if let Some(output) = task["testOutput"].as_str() {
        writeln!(out, "\nlast failed tests (`adj logs {} --tests` shows all)", cell(&task["id"]))?;
        write!(out, "{}", visible_lines(output, "  "))?;
    }
    // A plan that was made up is a comment too; it stands above.
    let shown = |comment: &&Value| bullets.is_some() && comment["kind"] == "plan";
    for comment in task["comments"].as_array().into_iter().flatten().filter(|comment| !shown(comment)) {
        let (at, by, kind) = (cell(&comment["at"]), cell(&comment["by"]), cell(&comment["kind"]));
        writeln!(out, "\n{at}  {}  {}", visible(&by), visible(&kind))?;
        write!(out, "{}", visible_lines(&cell(&comment["text"]), "  "))?;
    }
    Ok(())
}
