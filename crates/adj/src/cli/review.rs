//! `adj merge`, `review` and `diff`: a person looks at work, and says yes or what must change.

use super::named;
use super::project::Project;
use super::terminal::{Paint, duration};
use super::text::{self, Table, dash, visible, visible_code, visible_lines};
use super::{Context, Failure};
use api::Method;
use api::types::Nothing;
use api::types::channel::NewChannel;
use api::types::host::{DiffQuery, TaskDiff};
use api::types::task::{self as types, Check, Reviewed, Task, TaskWhole};
use clap::Args;
use kernel::words::CommentKind;
use machines::Wire;
use machines::task::Status;
use std::io::{IsTerminal, Write};

const NO_CHANGES: &str = "nothing is changed";

/// Fewer letters of a commit's name could mean several.
const TIP_LENGTH_MIN: usize = 7;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj diff c-abc1
  adj merge c-abc1

The same as `adj review c-abc1 --approve`. The approval is for the commit that the command prints: if the branch changes \
afterwards, the task needs a new approval. `adj queue` shows its position, and `adj run` merges it.")]
pub struct Merge {
    /// Task in REVIEW, or the worker that finished it
    #[arg(value_name = "NAME|TASK")]
    what: String,
    /// Reason, stored with the approval
    #[arg(long, short, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
    /// Commit that you reviewed; fails if the task is at another one
    #[arg(long, value_name = "OID")]
    tip: Option<String>,
}

pub fn merge(command: &Merge, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let task = named::task(&project, &command.what)?;
    approve(&project, &task, command.tip.as_deref(), &command.note, context)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj undo c-abc1

Creates a new task with a commit that reverts the changes. It is tested and merged like any other task. If later changes \
conflict with it, `adj` prints the `git revert` command to run manually.")]
pub struct Undo {
    /// Merged task
    #[arg(value_name = "TASK")]
    task: String,
}

pub fn undo(command: &Undo, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let task: Task = project.post(&format!("/tasks/{}/undo", command.task), &Nothing {})?;
    project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` tests and merges it");
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&task))?);
    }
    Ok(writeln!(context.out, "{}  {}", task.line.id, visible(&task.line.title))?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj review                      list tasks that need a review
  adj review c-abc1
  adj review c-abc1 --approve
  adj review c-abc1 --changes 'the error message must name the file'
  adj review c-abc1 --room review-1 --add anna --reviewer ben

Approved work is queued for merging (`adj queue`). With --changes the agent gets the text and continues to work. `adj merge` \
approves without showing the work.")]
pub struct Review {
    /// Task, or its worker [default: list all tasks that need a review]
    #[arg(value_name = "TASK|WORKER")]
    task: Option<String>,
    /// Approve the work for merging
    #[arg(long, conflicts_with = "changes", requires = "task")]
    approve: bool,
    /// Request these changes
    #[arg(long, value_name = "TEXT", requires = "task")]
    changes: Option<String>,
    /// Reason for the approval
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT",
        requires = "approve"
    )]
    note: String,
    /// Commit that you reviewed; fails if the task is at another one
    #[arg(long, value_name = "OID")]
    tip: Option<String>,
    /// Create a channel of this name, in which agents review the task
    #[arg(long, value_name = "CHANNEL", requires = "task", conflicts_with_all = ["approve", "changes", "tip"])]
    room: Option<String>,
    /// Agents to add to that channel
    #[arg(long, value_name = "AGENT", num_args = 1.., requires = "room")]
    add: Vec<String>,
    /// Agent that may decide the review in that channel
    #[arg(long, value_name = "AGENT", requires = "room")]
    reviewer: Option<String>,
}

pub fn review(command: &Review, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let Some(named) = &command.task else { return list(&project, context) };
    let task = named::task(&project, named)?;
    let id = &task.line.id;
    if let Some(room) = &command.room {
        return in_room(&project, &task, room, command, context);
    }
    if command.approve {
        return approve(&project, &task, command.tip.as_deref(), &command.note, context);
    }
    if let Some(changes) = &command.changes {
        if task.line.status == Status::NeedsApproval {
            let message = format!("task `{id}` waits for an answer, and is in no review");
            let hint = format!(
                "`adj why {id}` shows the question, `adj approve` and `adj deny` answer it; `adj task comment {id} TEXT` tells the agent something"
            );
            return Err(Failure::new(super::Exit::Refused, message).hint(hint));
        }
        let tip = looked_at(&task, command.tip.as_deref());
        let body = types::Review { approve: false, tip, note: changes.clone() };
        let task: Task = project.post(&format!("/tasks/{id}/review"), &body)?;
        if task.line.status == Status::Blocked {
            // Past the limit nobody is told: a person must say what was not clear.
            Project::hint(
                &context.globals,
                &format!(
                    "the limit of reviews is reached, so it does not go back to the agent; to continue: \
                     `adj task move {id} IN_PROGRESS --clarification TEXT`"
                ),
            );
        } else {
            project
                .hint_without_fleet(&context.globals, "no fleet is running; `adj run` sends it to the agent");
        }
        return told(&task, context);
    }
    let review: Reviewed = project.get(&format!("/tasks/{id}/review"))?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&review))?);
    }
    show(&review, &context.globals, context.out)
}

/// Agents talk about the task in a channel of its own, and whoever reviews it decides there.
fn in_room(
    project: &Project,
    task: &Task,
    room: &str,
    command: &Review,
    context: Context,
) -> Result<(), Failure> {
    let id = &task.line.id;
    if let Some(reviewer) = &command.reviewer {
        let edit = types::Edit { reviewer_id: Some(reviewer.clone()), ..types::Edit::default() };
        let edited: Task = project.ask(Method::Patch, &format!("/tasks/{id}"), &edit, None)?;
        super::task::hint_of_reviewer(&edited, &context);
    }
    let mut add = command.add.clone();
    add.extend(command.reviewer.clone().filter(|reviewer| !command.add.contains(reviewer)));
    let topic = format!("Review of {id}: {}", task.line.title);
    let new = NewChannel {
        name: room.to_owned(),
        topic: Some(topic),
        task: Some(id.clone()),
        ..NewChannel::default()
    };
    super::channel::make(project, &new, &add, context)
}

/// All that waits for a review, in one line each.
fn list(project: &Project, context: Context) -> Result<(), Failure> {
    let tasks: Vec<Task> = project.get_all("/reviews", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&tasks))?);
    }
    let mut table = Table::new(&["TASK", "PRIO", "COST", "NEEDS A PERSON", "TITLE"]);
    for Task { line, whole } in &tasks {
        let cost = whole.as_ref().map(|whole| text::Money::of(&whole.cost)).unwrap_or_default().short();
        let needs = whole.as_ref().and_then(|whole| whole.needs_person.as_ref());
        let conflict = line.conflict.as_ref().map(|conflict| &conflict.text);
        let needs = dash(conflict.or(needs.map(|needs| &needs.text)));
        table.row([line.id.clone(), line.priority.to_string(), cost, needs, line.title.clone()]);
    }
    if table.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing waits for a review")?);
    }
    write!(context.out, "{table}")?;
    if !context.globals.quiet {
        writeln!(context.out, "\n`adj review TASK` shows one")?;
    }
    Ok(())
}

fn show(review: &Reviewed, globals: &super::Globals, out: &mut dyn Write) -> Result<(), Failure> {
    let Task { line, whole } = &review.task;
    let id = &line.id;
    writeln!(out, "{id}  {}", visible(&line.title))?;
    writeln!(out, "{:<12} {}", "status", line.status)?;
    if let Some(conflict) = &line.conflict {
        fact(out, "conflict", Some(&format!("{}; it cannot land as it is", conflict.text)))?;
    }
    if let Some(whole) = whole {
        facts(whole, review.work_millis, out)?;
        // What was checked and what is only said are two things, and never stand under one name.
        match (&whole.claims, &whole.gate) {
            (Some(claims), _) => {
                fact(out, "gate", Some("did not run: nothing of this was checked"))?;
                checks(&format!("{} claims", claims.by), &claims.checks, out)?;
            }
            (None, gate) => {
                checks("gate", gate.as_ref().map(|gate| &gate.checks[..]).unwrap_or_default(), out)?
            }
        }
        put_back(whole, out)?;
        if let Some(output) = &whole.test_output {
            writeln!(out, "\nlast failed tests (`adj logs {id} --tests` shows all)")?;
            write!(out, "{}", visible_lines(output, "  "))?;
        }
        let content = whole.submission.as_ref().map(|submission| &submission.deliverable.content);
        let summary = match (&whole.claims, &whole.gate) {
            // The content is the branch, which is printed above, and the summary.
            (None, Some(gate)) if !gate.empty => gate.summary.as_ref(),
            _ => content,
        };
        if let Some(summary) = summary {
            write!(out, "\n{}", visible_lines(summary, "  "))?;
        }
    }
    if let Some(moved) = &review.moved_branch {
        let (branch, commit, commits) = (visible(&moved.branch), visible(&moved.commit), moved.commits);
        writeln!(
            out,
            "{:<12} branch {branch} was moved to {commit} by somebody else; what was added there ({commits} \
             {}) is not the agent's and does not land with this task: merge it yourself",
            "warning",
            if commits == 1 { "commit" } else { "commits" },
        )?;
    }
    if let Some(said) = &review.said {
        write!(out, "\nlast message of the agent\n{}", visible_lines(said, "  "))?;
    }
    if !review.commits.is_empty() {
        writeln!(out, "\ncommits")?;
        for commit in &review.commits {
            let oid: String = commit.oid.chars().take(TIP_LENGTH_MIN).collect();
            writeln!(out, "  {oid}  {}", visible(&commit.subject))?;
        }
    }
    if let Some(problem) = &review.commits_problem {
        writeln!(out, "{:<12} {}", "commits", visible(problem))?;
    }
    match (review.diff_stat.as_deref(), &review.diff_problem) {
        (Some(""), _) => writeln!(out, "\n  {NO_CHANGES}")?,
        (Some(diff), _) => write!(out, "\n{}", visible_lines(diff, "  "))?,
        (None, Some(problem)) => writeln!(out, "{:<12} {}", "diff", visible(problem))?,
        (None, None) => {}
    }
    let approved = whole.as_ref().is_some_and(|whole| whole.approved.is_some());
    if line.status == Status::Review && !approved && !globals.quiet {
        match &line.conflict {
            Some(conflict) => writeln!(
                out,
                "\n`adj review {id} --changes TEXT` has its agent solve the conflict; `adj shell {id}` opens its tree, to \
                 merge {} yourself",
                visible(&conflict.branch)
            )?,
            None => writeln!(out, "\n`adj review {id} --approve`, or `adj review {id} --changes TEXT`")?,
        }
    }
    Ok(())
}

fn fact(out: &mut dyn Write, label: &str, shown: Option<&str>) -> std::io::Result<()> {
    match shown {
        None | Some("") => Ok(()),
        Some(shown) => writeln!(out, "{label:<12} {}", visible(shown)),
    }
}

fn facts(task: &TaskWhole, work_millis: i64, out: &mut dyn Write) -> std::io::Result<()> {
    fact(out, "branch", task.branch.as_deref())?;
    fact(out, "tip", task.tip.as_deref())?;
    fact(out, "held up by", task.held_up.as_deref())?;
    fact(out, "approved by", task.approved.as_ref().map(|approved| approved.by.as_str()))?;
    fact(out, "cost", Some(&text::Money::of(&task.cost).words()))?;
    if work_millis > 0 {
        fact(out, "worked for", Some(&duration(work_millis)))?;
    }
    fact(out, "look at it", task.needs_person.as_ref().map(|needs| needs.text.as_str()))?;
    if task.unchanged_since_review {
        fact(out, "unchanged", Some("nothing has changed since changes were last asked for"))?;
    }
    Ok(())
}

/// What was looked at, and what was found or is claimed.
fn checks(label: &str, items: &[Check], out: &mut dyn Write) -> std::io::Result<()> {
    for (index, check) in items.iter().enumerate() {
        let label = if index == 0 { visible(label) } else { String::new() };
        let answer = visible(&dash(check.answer.as_ref()));
        let answer = if answer == "yes" { answer } else { answer.to_uppercase() };
        writeln!(out, "{label:<12} {answer:<7}  {}", visible(&check.item))?;
    }
    Ok(())
}

/// What the agent changed and the gate put back: it is not in the diff below.
fn put_back(task: &TaskWhole, out: &mut dyn Write) -> std::io::Result<()> {
    for comment in task.comments.iter().filter(|comment| comment.kind == CommentKind::PutBack.name()) {
        writeln!(out, "{:<12} {}", "dropped", visible(&comment.text))?;
    }
    Ok(())
}

fn approve(
    project: &Project,
    task: &Task,
    tip: Option<&str>,
    note: &str,
    context: Context,
) -> Result<(), Failure> {
    let body = types::Review { approve: true, tip: looked_at(task, tip), note: note.to_owned() };
    let task: Task = project.post(&format!("/tasks/{}/review", task.line.id), &body)?;
    if task.line.status == Status::Review {
        project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` merges it");
    }
    told(&task, context)
}

/// The tip as it is called in full. What was read a moment ago is what is approved, and nothing that came since.
fn looked_at(task: &Task, tip: Option<&str>) -> Option<String> {
    let current = task.whole.as_ref().and_then(|whole| whole.tip.clone());
    match (current, tip) {
        (current, None) => current,
        (Some(current), Some(tip)) if tip.len() >= TIP_LENGTH_MIN && current.starts_with(tip) => {
            Some(current)
        }
        // The machine says no, with the tip that there is.
        (_, Some(tip)) => Some(tip.to_owned()),
    }
}

fn told(task: &Task, context: Context) -> Result<(), Failure> {
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(task))?);
    }
    let Task { line: types::TaskLine { id, status, .. }, whole } = task;
    let approved = whole.as_ref().and_then(|whole| whole.approved.as_ref()?.tip.as_ref());
    let reason = whole.as_ref().and_then(|whole| whole.block_reason);
    match (approved.filter(|_| *status == Status::Review), reason) {
        (Some(tip), _) => Ok(writeln!(context.out, "{id}  {status}  approved at {}", visible(tip))?),
        (None, Some(reason)) => Ok(writeln!(context.out, "{id}  {status} ({reason})")?),
        (None, None) => Ok(writeln!(context.out, "{id}  {status}")?),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj diff c-abc1 --stat
  adj diff c-abc1 src/main.rs
  adj diff c-abc1 | less")]
pub struct Diff {
    /// Task, or the worker that works on it
    #[arg(value_name = "TASK|WORKER")]
    task: String,
    /// Show only this file or folder
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Show only the changed files and the number of changed lines
    #[arg(long)]
    stat: bool,
}

pub fn diff(command: &Diff, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let id = named::task(&project, &command.task)?.line.id;
    let query = DiffQuery { stat: command.stat, path: command.path.clone(), max_bytes: None };
    let diff: TaskDiff = project.get_with(&format!("/tasks/{id}/diff"), &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&diff))?);
    }
    if let Some(message) = &diff.message {
        eprintln!("warning: {}", text::visible(message));
    }
    let diff = diff.diff;
    if diff.is_empty() && !context.globals.quiet {
        // Beside the output, which may be on its way to `git apply`.
        eprintln!("hint: {NO_CHANGES}");
    }
    let paint = Paint::stdout(&context.globals);
    match Pager::start(&context.globals) {
        Some(mut pager) => {
            let globals = context.globals;
            // Whoever leaves the pager has read enough.
            let _ = patch(&diff, paint, Context { globals, out: pager.input() });
            Ok(pager.wait()?)
        }
        None => patch(&diff, paint, context),
    }
}

/// The program that shows long text page by page.
struct Pager {
    child: std::process::Child,
}

impl Pager {
    /// The one that git uses (`GIT_PAGER`, `core.pager`, `PAGER`, `less`); none where the output is no terminal, or where
    /// the program is not there.
    fn start(globals: &super::Globals) -> Option<Pager> {
        let git = std::process::Command::new("git").args(["var", "GIT_PAGER"]).output().ok();
        let git = git.filter(|ran| ran.status.success()).map(|ran| ran.stdout);
        let wanted = git.map(|name| String::from_utf8_lossy(&name).trim().to_owned());
        let wanted = wanted.filter(|name| !name.is_empty()).unwrap_or_else(|| "less".to_owned());
        let pages = std::io::stdout().is_terminal() && !super::terminal::dumb() && !globals.quiet;
        if !pages || wanted == "cat" {
            return None;
        }
        let mut command = std::process::Command::new("sh");
        // What fits one screen is printed and stays; colours pass.
        command.args(["-c", &wanted]).env("LESS", std::env::var("LESS").unwrap_or_else(|_| "FRX".to_owned()));
        let program = wanted.split_whitespace().next()?;
        project::program::which(program)?;
        Some(Pager { child: command.stdin(std::process::Stdio::piped()).spawn().ok()? })
    }

    fn input(&mut self) -> &mut dyn Write {
        self.child.stdin.as_mut().expect("it was piped")
    }

    fn wait(mut self) -> std::io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

/// A patch, line by line: what agents put into it is shown as text.
pub fn patch(text: &str, paint: Paint, context: Context) -> Result<(), Failure> {
    for line in text.lines() {
        let shown = visible_code(line);
        let shown = match line.as_bytes().first() {
            Some(b'+') => paint.green(shown),
            Some(b'-') => paint.red(shown),
            Some(b'@') => paint.cyan(shown),
            _ => shown,
        };
        writeln!(context.out, "{shown}")?;
    }
    Ok(())
}
