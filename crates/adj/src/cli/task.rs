//! `adj task` and `adj board`: the work.

use super::named;
use super::project::Project;
use super::terminal::{Colour, Paint, thousands};
use super::text::{self, Money, Table, dash, joined, visible, visible_lines};
use super::{Context, Exit, Failure};
use api::Method;
use api::types::Nothing;
use api::types::task::{
    self as types, ApprovalRecord, ListQuery, Moved, NewComment, NewDependency, NewPlan, Statuses, Task,
    TaskLine, TaskWhole,
};
use clap::{Args, Subcommand};
use kernel::words::CommentKind;
use machines::Wire;
use machines::task::{ApprovalCause, BlockReason, PlanSource, Status, TaskType};
use serde::Serialize;
use std::io::Read;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Add a task to the inbox
    Add(Add),
    /// Add open GitHub issues as tasks
    Import(super::issues::Import),
    /// List the tasks that are not closed
    Ls(List),
    /// Show everything about a task
    #[command(after_help = "\
Example:
  adj task show c-abc1")]
    Show {
        /// Task
        id: String,
    },
    /// Add another try at a task; the first try that is done cancels the others
    #[command(after_help = "\
Example:
  adj task try c-abc1
  adj task try c-abc1 --agent opus --agent codex

Each try is a separate task with the same text, and with its own branch and working tree. With `review = \"human\"` you \
compare them (`adj review`, `adj diff`) and approve one. With `review = \"auto\"` the first one that passes its tests is \
merged. The work of the others is kept: `adj salvage list`. Dependent tasks start when any of the tries is done.")]
    Try {
        /// Task
        id: String,
        /// Agent that works on it; repeat it for one try by each [default: as the task]
        #[arg(long, value_name = "NAME")]
        agent: Vec<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Submit a work plan, as the agent of a task
    #[command(after_help = "\
Example:
  adj task plan 'Read the parser' 'Let it take tabs' 'Test both'

For agents: with `plan = \"agent\"` in [fleet] of adjutant.toml, a working agent submits its own plan. People use `adj \
task edit --plan`.")]
    Plan {
        /// 3 to 6 steps
        #[arg(required = true, value_name = "STEP")]
        steps: Vec<String>,
    },
    /// Edit a task's title, body, priority, plan, reviewer or agent
    Edit(Edit),
    /// Move a task to another status
    #[command(after_help = MOVE_HELP)]
    Move(Box<Move>),
    /// Set which agents may take a task
    #[command(after_help = "\
Example:
  adj task assign c-abc1 coder

`adj assign WORKER TASK` assigns the task to one worker immediately.")]
    Assign {
        /// Task
        id: String,
        /// Agents from adjutant.toml
        #[arg(required = true, value_name = "AGENT")]
        agents: Vec<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Accept tasks that agents proposed
    #[command(after_help = "\
Example:
  adj task accept t-7
  adj task accept t-7 t-8

`adj board` shows which tasks are proposed. `adj task cancel t-9` rejects one.")]
    Accept {
        /// Proposed tasks
        #[arg(required = true, value_name = "TASK")]
        ids: Vec<String>,
    },
    /// Comment on a task; its agent gets the text at once or with its next step
    #[command(after_help = "\
Example:
  adj task comment c-abc1 'use the list of the other page'")]
    Comment {
        /// Task, or the worker that works on it
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// Text; `-` reads standard input
        text: String,
        #[command(flatten)]
        once: Once,
    },
    /// Cancel a task
    #[command(after_help = "\
Example:
  adj task cancel c-abc1

Canceling is final. `adj abort` and `adj kill` only stop the agent, and you can retry the task. Commits stay on the task's \
branch (see `adj task show c-abc1`) until trash.age has passed. Uncommitted changes are saved: `adj salvage list`.")]
    Cancel {
        /// Task, or the worker that works on it
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// Answer to the pending request; required if the task waits for one
        #[arg(long, value_name = "TEXT")]
        decision: Option<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Restart a task from main with a new branch, working tree and session
    #[command(after_help = "\
Example:
  adj task restart c-abc1
  adj task restart c-abc1 --note 'without a new dependency'

Stops the task's agent and deletes the old branch. Its commits and uncommitted changes are saved first: `adj salvage \
list`. `adj retry c-abc1` continues on the same branch instead.")]
    Restart {
        /// Task that is not DONE or CANCELED, or the worker that works on it
        #[arg(value_name = "TASK|WORKER")]
        id: String,
        /// Start of the new branch; only main is supported
        #[arg(long, value_name = "BRANCH", default_value = "main", value_parser = ["main"], hide_default_value = true)]
        from: String,
        /// What to do differently; the agent gets this text
        #[arg(long, short, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        once: Once,
    },
    /// Add and remove dependencies between tasks
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
`adj machine show task` lists the fields that each move requires. Set them with options, or with --payload as one JSON object:
  adj task move t-1 IN_PROGRESS --plan 'read' --plan 'fix' --plan 'test'
  adj task move t-1 BLOCKED --payload '{\"reason\":\"manual\"}'";

/// For a request that may be made twice.
#[derive(Debug, Args)]
pub struct Once {
    /// Idempotency key: a repeated request is executed once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj task add 'Name the file in the error message' --body 'In src/read.rs.'
  adj task add 'Write the page' --depends-on t-1 --body - < page.md

Prints the task's id. To keep tasks as files in the repository, write one ticket file per task into .tickets.")]
pub struct Add {
    /// Title, in one line
    title: String,
    /// Description: what to do, and how to check it; `-` reads standard input
    #[arg(long, short, value_name = "TEXT")]
    body: Option<String>,
    /// Id of the new task [default: generated]
    #[arg(long)]
    id: Option<String>,
    /// Type of work
    #[arg(long = "type", value_name = "TYPE", value_parser = words::<TaskType>())]
    task_type: Option<String>,
    /// Priority, from 0 (most urgent) to 4
    #[arg(long, short, value_name = "0-4", value_parser = clap::value_parser!(u8).range(0..=4))]
    priority: Option<u8>,
    /// Task that must be done first; repeatable
    #[arg(long, value_name = "ID")]
    depends_on: Vec<String>,
    /// One item of the work plan; repeat it 3 to 6 times
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// Reviewer
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<String>,
    /// Agent that works on it [default: fleet.agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Closed task that this one continues
    #[arg(long, value_name = "ID")]
    reopens: Option<String>,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Args)]
pub struct Edit {
    /// Task, or the worker that works on it
    #[arg(value_name = "TASK|WORKER")]
    id: String,
    /// New title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// New description; `-` reads standard input
    #[arg(long, short, value_name = "TEXT")]
    body: Option<String>,
    /// Priority, from 0 (most urgent) to 4
    #[arg(long, short, value_name = "0-4", value_parser = clap::value_parser!(u8).range(0..=4))]
    priority: Option<u8>,
    /// One item of the new work plan, which replaces the old one; repeat it 3 to 6 times
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// Reviewer
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<String>,
    /// Agent that works on it from the next assignment on; `none` resets it to fleet.agent
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
    /// List only tasks with this status; repeatable
    #[arg(long, short, value_name = "STATUS")]
    status: Vec<String>,
    /// List only tasks of this agent
    #[arg(long, value_name = "AGENT")]
    assignee: Option<String>,
    /// Include closed tasks
    #[arg(long, short)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct Move {
    /// Task, or the worker that works on it
    #[arg(value_name = "TASK|WORKER")]
    id: String,
    /// INBOX, ASSIGNED, IN_PROGRESS, REVIEW, NEEDS_APPROVAL, BLOCKED, DONE or CANCELED
    status: String,
    /// Everything that the move requires, as a JSON object; `-` reads standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Agent to assign; repeatable
    #[arg(long, value_name = "AGENT")]
    assignee: Vec<String>,
    /// One item of the work plan; repeat it 3 to 6 times
    #[arg(long, value_name = "BULLET")]
    plan: Vec<String>,
    /// Changes that a review requests
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Reason for blocking; required for BLOCKED
    #[arg(long, value_name = "REASON", value_parser = words::<BlockReason>())]
    reason: Option<String>,
    /// Reason for asking a person; required for NEEDS_APPROVAL
    #[arg(long, value_name = "CAUSE", value_parser = words::<ApprovalCause>())]
    cause: Option<String>,
    /// Answer to the pending request; required to leave NEEDS_APPROVAL
    #[arg(long, value_name = "TEXT")]
    decision: Option<String>,
    /// What was unclear before; required if the task is blocked by too many reviews
    #[arg(long, value_name = "TEXT")]
    clarification: Option<String>,
    /// Reason for the approval; required for DONE
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
    /// Make task ID wait until task ON is done
    Add {
        /// Task that waits
        id: String,
        /// Task that must be done first
        on: String,
        #[command(flatten)]
        once: Once,
    },
    /// Remove a dependency: task ID no longer waits for task ON
    Rm {
        /// Task that waits
        id: String,
        /// Task that it no longer waits for
        on: String,
        #[command(flatten)]
        once: Once,
    },
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    match command {
        Command::Ls(list) => ls(&project, &list, context),
        Command::Show { id } => show(&project, &id, context),
        Command::Add(add) => self::add(&project, add, context),
        Command::Import(import) => super::issues::import(&project, &import, context),
        Command::Accept { ids } => accept(&project, &ids, context),
        Command::Try { id, agent, once } => try_again(&project, &id, agent, &once, context),
        Command::Plan { steps } => super::ask::plan(&steps, context),
        Command::Edit(edit) => self::edit(&project, edit, context),
        Command::Move(moved) => {
            let id = named::task(&project, &moved.id)?.line.id;
            let (key, body) = (moved.once.key.clone(), move_body(*moved)?);
            moved_to(&project, &id, &body, key.as_deref(), context)
        }
        Command::Assign { id, agents, once } => {
            let to = Some(Status::Assigned);
            let body = types::Move { to, assignee_ids: Some(agents), ..types::Move::default() };
            moved_to(&project, &id, &body, once.key.as_deref(), context)
        }
        Command::Cancel { id, decision, once } => {
            let id = named::task(&project, &id)?.line.id;
            let to = Some(Status::Canceled);
            let body = types::Move { to, decision, ..types::Move::default() };
            let globals = context.globals.clone();
            moved_to(&project, &id, &body, once.key.as_deref(), context)?;
            let task: Task = project.get(&format!("/tasks/{id}"))?;
            if let Some(opened) = task.whole.and_then(|whole| whole.pull_request) {
                let text = format!("its pull request {} is left open; close it there", visible(&opened));
                Project::hint(&globals, &text);
            }
            Ok(())
        }
        Command::Comment { id, text, once } => {
            let id = named::task(&project, &id)?.line.id;
            let body = NewComment { text: or_stdin(text)? };
            let path = format!("/tasks/{id}/comments");
            told(&project.ask(Method::Post, &path, &body, once.key.as_deref())?, context)
        }
        Command::Restart { id, from: _, note, once } => {
            let id = named::task(&project, &id)?.line.id;
            project.hint_without_fleet(
                &context.globals,
                "no fleet is running; `adj run` saves the work and starts again from main",
            );
            let path = format!("/tasks/{id}/restart");
            let body = types::Restart { note };
            told(&project.ask(Method::Post, &path, &body, once.key.as_deref())?, context)
        }
        Command::Dep(Dep::Add { id, on, once }) => {
            let path = format!("/tasks/{id}/dependencies");
            told(&project.ask(Method::Post, &path, &NewDependency { on }, once.key.as_deref())?, context)
        }
        Command::Dep(Dep::Rm { id, on, once }) => {
            let path = format!("/tasks/{id}/dependencies/{on}");
            told(&project.ask(Method::Delete, &path, &Nothing {}, once.key.as_deref())?, context)
        }
    }
}

/// The task as it is now: in one line, or as a document.
fn told(task: &Task, context: Context) -> Result<(), Failure> {
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(task))?),
        false => Ok(writeln!(context.out, "{}  {}", task.line.id, task.line.status)?),
    }
}

fn moved_to(
    project: &Project,
    id: &str,
    body: &types::Move,
    key: Option<&str>,
    context: Context,
) -> Result<(), Failure> {
    let moved: Moved = project.ask(Method::Post, &format!("/tasks/{id}/transitions"), body, key)?;
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&moved))?),
        false => told(&moved.task, context),
    }
}

fn edit(project: &Project, edit: Edit, context: Context) -> Result<(), Failure> {
    let Edit { id, title, body, priority, plan, reviewer, agent, once } = edit;
    let id = named::task(project, &id)?.line.id;
    let (chosen, reviewed) = (agent.is_some(), reviewer.is_some());
    let body = types::Edit {
        title,
        body: body.map(or_stdin).transpose()?,
        priority,
        plan: (!plan.is_empty()).then_some(plan),
        reviewer_id: reviewer,
        agent,
    };
    let task: Task = project.ask(Method::Patch, &format!("/tasks/{id}"), &body, once.key.as_deref())?;
    if reviewed {
        hint_of_reviewer(&task, &context);
    }
    if chosen {
        hint_of_agent(&task, &context);
        let lease = task.whole.as_ref().and_then(|whole| whole.lease.as_ref());
        if let Some(worker) = lease.and_then(|lease| lease.worker()) {
            let id = &task.line.id;
            let text = format!(
                "worker `{worker}` goes on with `{id}`; another agent takes it when that worker gives it back (`adj task restart {id}` begins again at once)"
            );
            Project::hint(&context.globals, &text);
        }
    }
    told(&task, context)
}

/// Says at once what the reviewer cannot do.
pub fn hint_of_reviewer(task: &Task, context: &Context) {
    let whole = task.whole.as_ref();
    if let Some((reviewer, lacks)) =
        whole.and_then(|it| it.reviewer_id.as_ref().zip(it.reviewer_lacks.as_ref()))
    {
        let reviewer = visible(reviewer);
        let text = format!("`{reviewer}` can ask for changes but not approve: {}", visible(lacks));
        Project::hint(&context.globals, &text);
    }
}

/// Says at once what would keep the task waiting.
fn hint_of_agent(task: &Task, context: &Context) {
    if task.whole.as_ref().is_some_and(|whole| whole.agent_configured == Some(false)) {
        let (id, agent) = (&task.line.id, visible(&dash(task.line.agent.as_ref())));
        let text =
            format!("adjutant.toml has no agent `{agent}`; `{id}` waits until there is [agents.{agent}]");
        Project::hint(&context.globals, &text);
    }
}

fn accept(project: &Project, ids: &[String], context: Context) -> Result<(), Failure> {
    for id in ids {
        let task: Task = project.post(&format!("/tasks/{id}/accept"), &Nothing {})?;
        match context.globals.json {
            true => writeln!(context.out, "{}", text::json(&task))?,
            false => writeln!(context.out, "{}  {}", task.line.id, task.line.status)?,
        }
    }
    let hint = "no fleet is running; `adj run` works on it";
    project.hint_without_fleet(&context.globals, hint);
    Ok(())
}

/// One more task for each agent that is named; the same text, which the server has.
fn try_again(
    project: &Project,
    id: &str,
    agents: Vec<String>,
    once: &Once,
    context: Context,
) -> Result<(), Failure> {
    let agents: Vec<Option<String>> =
        if agents.is_empty() { vec![None] } else { agents.into_iter().map(Some).collect() };
    let mut added: Vec<Task> = Vec::new();
    for (at, agent) in agents.into_iter().enumerate() {
        let new = types::Add { try_of: Some(id.to_owned()), agent, ..types::Add::default() };
        let key = once.key.as_ref().map(|key| format!("{key}-{at}"));
        added.push(project.ask(Method::Post, "/tasks", &new, key.as_deref())?);
    }
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&added))?);
    }
    for task in &added {
        writeln!(context.out, "{}", task.line.id)?;
    }
    Ok(())
}

fn add(project: &Project, add: Add, context: Context) -> Result<(), Failure> {
    let Add { title, body, id, task_type, priority, depends_on, plan, reviewer, agent, reopens, once } = add;
    let new = types::Add {
        title,
        body: body.map(or_stdin).transpose()?.unwrap_or_default(),
        id,
        task_type: task_type.as_deref().and_then(TaskType::read),
        priority,
        reopens,
        try_of: None,
        plan: (!plan.is_empty()).then_some(plan),
        reviewer_id: reviewer,
        depends_on,
        agent,
    };
    let task: Task = project.ask(Method::Post, "/tasks", &new, once.key.as_deref())?;
    hint_of_agent(&task, &context);
    hint_of_reviewer(&task, &context);
    for on in &new.depends_on {
        let there: Result<Task, Failure> = project.get(&format!("/tasks/{on}"));
        if there.is_err_and(|failure| failure.exit() == Exit::NotFound) {
            let (id, on) = (&task.line.id, visible(on));
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
            writeln!(context.out, "{}", task.line.id)?;
            if task.line.is_waiting_proposal() {
                Project::hint(
                    &context.globals,
                    "it is proposed; a person must accept it with `adj task accept`",
                );
            }
            Ok(())
        }
    }
}

/// What `--payload` brings, and over it what is given by option.
fn move_body(moved: Move) -> Result<types::Move, Failure> {
    let body: types::Move = match moved.payload {
        None => types::Move::default(),
        Some(payload) => match serde_json::from_str(&or_stdin(payload)?) {
            Ok(serde_json::Value::Object(payload)) => {
                serde_json::from_value(payload.into()).map_err(|error| bad_payload(&error.to_string()))?
            }
            Ok(_) => return Err(bad_payload("it is not an object")),
            Err(error) => return Err(bad_payload(&error.to_string())),
        },
    };
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    Ok(types::Move {
        to: Some(status(&moved.status)?),
        assignee_ids: some(moved.assignee).or(body.assignee_ids),
        work_plan: some(moved.plan)
            .map(|bullets| NewPlan { bullets, ..NewPlan::default() })
            .or(body.work_plan),
        feedback: moved.feedback.or(body.feedback),
        reason: moved.reason.as_deref().and_then(BlockReason::read).or(body.reason),
        cause: moved.cause.as_deref().and_then(ApprovalCause::read).or(body.cause),
        decision: moved.decision.or(body.decision),
        approval: moved
            .note
            .map(|decision_note| ApprovalRecord { decision_note, ..ApprovalRecord::default() })
            .or(body.approval),
        clarification: moved.clarification.or(body.clarification),
        ..body
    })
}

fn bad_payload(why: &str) -> Failure {
    Failure::new(Exit::Usage, format!("--payload is invalid: {}", visible(why)))
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

fn status(name: &str) -> Result<Status, Failure> {
    Status::read(name).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("there is no status `{}`", name.escape_debug()))
            .hint(format!("use {}", api::types::one_of::<Status>()))
    })
}

fn ls(project: &Project, list: &List, context: Context) -> Result<(), Failure> {
    let open = Status::ALL.iter().copied().filter(|status| !status.is_final());
    let statuses = match list.status.is_empty() {
        true => open.collect(),
        false => list.status.iter().map(|name| status(name)).collect::<Result<_, _>>()?,
    };
    let query = ListQuery {
        status: (!list.all || !list.status.is_empty()).then_some(Statuses(statuses)),
        assignee: list.assignee.clone(),
        ..ListQuery::default()
    };
    let tasks: Vec<TaskLine> = project.get_all("/tasks", &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&tasks))?);
    }
    project.warn_of_tickets(&context.globals);
    let mut table = Table::new(&["ID", "STATUS", "PRIO", "ASSIGNED", "TITLE"]);
    for task in &tasks {
        let proposed = task.is_waiting_proposal() && task.status == Status::Inbox;
        let assigned = if proposed { "proposed".to_owned() } else { joined(&task.assignee_ids) };
        let (status, priority) = (task.status.to_string(), task.priority.to_string());
        table.row([task.id.clone(), status, priority, assigned, task.title.clone()]);
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
    let tasks = in_order_of_taking(project.get_all("/tasks", &Nothing {})?);
    project.warn_of_tickets(&context.globals);
    let column = |status: Status| tasks.iter().filter(move |task| task.status == status).collect::<Vec<_>>();
    if context.globals.json {
        let columns = Status::ALL.iter().map(|status| (status.name(), column(*status)));
        return Ok(writeln!(context.out, "{}", text::json(&Columns(columns.collect())))?);
    }
    if tasks.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "{NO_TASKS}")?);
    }
    let paint = Paint::stdout(&context.globals);
    for status in Status::ALL {
        let there = column(*status);
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
            let held = task.held.as_ref().map(|held| format!("  ({held})")).unwrap_or_default();
            let since = task.for_you_since.as_ref();
            let since = since.map(|at| format!("  (for you since {})", text::age(at))).unwrap_or_default();
            let conflict = task.conflict.as_ref();
            let conflict =
                conflict.map(|conflict| format!("  ({})", visible(&conflict.text))).unwrap_or_default();
            let line = format!("  {}  {}{conflict}{held}{since}", task.id, visible(&task.title));
            writeln!(context.out, "{}", text::fitting(&line))?;
        }
    }
    Ok(())
}

/// As workers take them: what can be taken first, then by priority and age. What has left the board's beginning stays in the
/// order in which it came.
fn in_order_of_taking(mut tasks: Vec<TaskLine>) -> Vec<TaskLine> {
    // What is no task is a ticket that was closed before: it keeps nobody waiting.
    let to_do: Vec<String> =
        tasks.iter().filter(|task| task.status != Status::Done).map(|task| task.id.clone()).collect();
    tasks.sort_by_cached_key(|task| {
        let open = matches!(task.status, Status::Inbox | Status::Assigned | Status::InProgress);
        let waits = task.held.is_some() || task.depends_on.iter().any(|id| to_do.contains(id));
        open.then(|| (waits, task.priority, task.created_at.clone()))
    });
    tasks
}

fn show(project: &Project, id: &str, context: Context) -> Result<(), Failure> {
    let task = named::task(project, id)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&task))?);
    }
    let (Task { line, whole }, out) = (&task, context.out);
    writeln!(out, "{}  {}", line.id, visible(&line.title))?;
    let of = |part: fn(&TaskWhole) -> Option<String>| whole.as_ref().and_then(part);
    let facts = [
        ("status", Some(line.status.to_string())),
        ("conflict", line.conflict.as_ref().map(|conflict| conflict.text.clone())),
        ("type", Some(line.task_type.to_string())),
        ("priority", Some(line.priority.to_string())),
        ("agent", line.agent.clone()),
        ("assigned to", listed(&line.assignee_ids)),
        ("reviewer", of(|whole| whole.reviewer_id.clone())),
        ("depends on", listed(&line.depends_on)),
        ("reopens", of(|whole| whole.reopens.clone())),
        ("other tries", listed(&line.other_tries)),
        ("blocked by", of(|whole| whole.block_reason.map(|reason| reason.to_string()))),
        ("waits for", of(|whole| whole.approval.clone())),
        ("branch", of(|whole| whole.branch.clone())),
        ("tip", of(|whole| whole.tip.clone())),
        ("run", of(|whole| whole.run.clone())),
        ("held up by", of(|whole| whole.held_up.clone())),
        ("pull request", of(|whole| whole.pull_request.clone())),
        ("clarified", of(|whole| whole.clarification.clone())),
        ("created", Some(line.created_at.clone())),
        ("may move to", of(|whole| listed(&whole.allowed_transitions))),
    ];
    for (label, shown) in facts {
        if let Some(shown) = shown {
            writeln!(out, "{label:<12} {}", visible(&shown))?;
        }
    }
    let Some(whole) = whole else { return Ok(()) };
    if let Some(landed) = &whole.landed {
        writeln!(out, "{:<12} {}; `adj undo {}` takes it back", "landed", visible(&landed.merge), line.id)?;
    }
    if let Some(needs) = &whole.needs_person {
        writeln!(out, "{:<12} {}", "look at it", visible(&needs.text))?;
    }
    // What the gate found and what somebody says are two things.
    let gate = whole.gate.as_ref().map(|gate| &gate.checks);
    let claims = whole.claims.as_ref().map(|claims| &claims.checks);
    for (label, checks) in [("gate", gate), ("claimed", claims)] {
        for (index, check) in checks.into_iter().flatten().enumerate() {
            let label = if index == 0 { label } else { "" };
            let answer = visible(&dash(check.answer.as_ref()));
            writeln!(out, "{label:<12} {answer:<7}  {}", visible(&check.item))?;
        }
    }
    if let Some(claims) = &whole.claims {
        let by = visible(&claims.by);
        writeln!(out, "{:<12} by {by}; the gate did not run, and nothing of it was checked", "")?;
    }
    let tokens = thousands(whole.cost.input_tokens + whole.cost.output_tokens);
    writeln!(out, "{:<12} {}, {tokens} tokens", "cost", Money::of(&whole.cost).words())?;
    let bullets = whole.work_plan.as_ref().map(|plan| &plan.bullets).or(whole.plan.as_ref());
    if let Some(bullets) = bullets {
        let source = match whole.work_plan.as_ref().and_then(|plan| plan.source) {
            Some(PlanSource::Ticket) => " from the ticket",
            Some(PlanSource::Default) => " by default",
            Some(PlanSource::Person) => " by a person",
            Some(PlanSource::Agent) => " by an agent",
            None => "",
        };
        writeln!(out, "\nplan{source}")?;
        for bullet in bullets {
            writeln!(out, "  - {}", visible(bullet))?;
        }
    }
    if !whole.body.is_empty() {
        write!(out, "\n{}", visible_lines(&whole.body, "  "))?;
    }
    if let Some(output) = &whole.test_output {
        writeln!(out, "\nlast failed tests (`adj logs {} --tests` shows all)", line.id)?;
        write!(out, "{}", visible_lines(output, "  "))?;
    }
    // A plan that was made up is a comment too; it stands above.
    for comment in
        whole.comments.iter().filter(|comment| bullets.is_none() || comment.kind != CommentKind::Plan.name())
    {
        writeln!(out, "\n{}  {}  {}", comment.at, visible(&comment.by), visible(&comment.kind))?;
        write!(out, "{}", visible_lines(&comment.text, "  "))?;
    }
    Ok(())
}

/// The board as a document, in the order of its columns.
struct Columns<'t>(Vec<(&'static str, Vec<&'t TaskLine>)>);

impl Serialize for Columns<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(status, tasks)| (status, tasks)))
    }
}

fn listed(list: &[impl ToString]) -> Option<String> {
    (!list.is_empty()).then(|| joined(list))
}
