//! `adj merge`, `review` and `diff`: a person looks at work, and says yes or what must change.

use super::named;
use super::project::Project;
use super::terminal::{Paint, duration};
use super::text::{self, Table, cell, visible, visible_code, visible_lines};
use super::{Context, Failure};
use crate::api::Method;
use clap::Args;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

const NO_CHANGES: &str = "nothing is changed";

/// Fewer letters of a commit's name could mean several.
const TIP_LENGTH_MIN: usize = 7;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj diff c-abc1
  adj merge c-abc1

What is approved is the tip that is printed; should the branch move on, it is asked for again. `adj queue` shows \
where it stands, and `adj run` lands it.")]
pub struct Merge {
    /// A worker, or a task in REVIEW
    #[arg(value_name = "NAME|TASK")]
    what: String,
    /// Why; it is kept with the approval
    #[arg(long, short, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
    /// The commit that you looked at: refused if the task is at another one by now
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

A commit that reverts what the task brought to main becomes a task of its own. It is tested and landed like any other:
main moves when its tests pass. Where later changes are in the way, the `git revert` to do by hand is printed.")]
pub struct Undo {
    /// A task that has landed
    #[arg(value_name = "TASK")]
    task: String,
}

pub fn undo(command: &Undo, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let task = project.ask(Method::Post, &format!("/tasks/{}/undo", command.task), json!({}), None)?;
    project.hint_without_fleet(&context.globals, "no fleet runs here; `adj run` tests and lands it");
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&task))?);
    }
    Ok(writeln!(context.out, "{}  {}", cell(&task["id"]), visible(&cell(&task["title"])))?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj review                      what waits for a review
  adj review c-abc1
  adj review c-abc1 --approve
  adj review c-abc1 --changes 'the error message must name the file'

Approved work joins the queue (`adj queue`); with --changes the task goes back to work and the agent is told the text.")]
pub struct Review {
    /// The task, or the worker that has it or handed it over; without one, list what waits for a review
    #[arg(value_name = "TASK|WORKER")]
    task: Option<String>,
    /// Say yes: it may land
    #[arg(long, conflicts_with = "changes", requires = "task")]
    approve: bool,
    /// Say what must be changed
    #[arg(long, value_name = "TEXT", requires = "task")]
    changes: Option<String>,
    /// Why it is approved
    #[arg(
        long,
        short,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT",
        requires = "approve"
    )]
    note: String,
    /// The commit that you looked at: refused if the task is at another one by now
    #[arg(long, value_name = "OID")]
    tip: Option<String>,
}

pub fn review(command: &Review, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let Some(named) = &command.task else { return list(&project, context) };
    let task = named::task(&project, named)?;
    let id = cell(&task["id"]);
    if command.approve {
        return approve(&project, &task, command.tip.as_deref(), &command.note, context);
    }
    if let Some(changes) = &command.changes {
        if task["status"] == "NEEDS_APPROVAL" {
            let message = format!("task `{id}` waits for an answer, and is in no review");
            let hint = format!(
                "`adj why {id}` shows the question, `adj approve` and `adj deny` answer it; `adj task comment {id} TEXT` tells the agent something"
            );
            return Err(Failure::new(super::Exit::Refused, message).hint(hint));
        }
        let tip = looked_at(&task, command.tip.as_deref())?;
        let body = json!({"approve": false, "tip": tip, "note": changes});
        let task = project.ask(Method::Post, &format!("/tasks/{id}/review"), body, None)?;
        if task["status"] == "BLOCKED" {
            // Past the limit nobody is told: a person must say what was not clear.
            Project::hint(
                &context.globals,
                &format!(
                    "the limit of reviews is reached, so it does not go back to the agent; to continue: \
                     `adj task move {id} IN_PROGRESS --clarification TEXT`"
                ),
            );
        } else {
            project.hint_without_fleet(
                &context.globals,
                "no fleet runs here; `adj run` passes it on to the agent",
            );
        }
        return told(&task, context);
    }
    let review = project.get(&format!("/tasks/{id}/review"), &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&review))?);
    }
    show(&review, &context.globals, context.out)
}

/// All that waits for a review, in one line each.
fn list(project: &Project, context: Context) -> Result<(), Failure> {
    let tasks = project.get_all("/reviews", &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(tasks)))?);
    }
    let mut table = Table::new(&["TASK", "PRIO", "COST", "NEEDS A PERSON", "TITLE"]);
    for task in &tasks {
        let cost = text::Money::of(&task["cost"]).short();
        let [id, priority, title] = ["id", "priority", "title"].map(|name| cell(&task[name]));
        table.row([id, priority, cost, cell(&task["needsPerson"]["text"]), title]);
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

fn show(review: &Value, globals: &super::Globals, out: &mut dyn Write) -> Result<(), Failure> {
    let task = &review["task"];
    let id = cell(&task["id"]);
    writeln!(out, "{id}  {}", visible(&cell(&task["title"])))?;
    let fact = |out: &mut dyn Write, label: &str, shown: &str| match shown {
        "-" | "" => Ok(()),
        shown => writeln!(out, "{label:<12} {}", visible(shown)),
    };
    for (name, label) in
        [("status", "status"), ("branch", "branch"), ("tip", "tip"), ("heldUp", "held up by")]
    {
        fact(out, label, &cell(&task[name]))?;
    }
    fact(out, "approved by", &cell(&task["approved"]["by"]))?;
    fact(out, "cost", &text::Money::of(&task["cost"]).words())?;
    if let Some(millis) = review["workMillis"].as_i64().filter(|millis| *millis > 0) {
        fact(out, "worked for", &duration(millis))?;
    }
    fact(out, "look at it", &cell(&task["needsPerson"]["text"]))?;
    if task["unchangedSinceReview"] == true {
        fact(out, "unchanged", "nothing has changed since changes were last asked for")?;
    }
    // What was checked and what is only said are two things, and never stand under one name.
    match task["claims"]["by"].as_str() {
        Some(by) => {
            fact(out, "gate", "did not run: nothing of this was checked")?;
            checks(&format!("{by} claims"), &task["claims"]["checks"], out)?;
        }
        None => checks("gate", &task["gate"]["checks"], out)?,
    }
    put_back(&task["comments"], out)?;
    if let Some(output) = task["testOutput"].as_str() {
        writeln!(out, "\nlast failed tests (`adj logs {} --tests` shows all)", cell(&task["id"]))?;
        write!(out, "{}", visible_lines(output, "  "))?;
    }
    let summary = task["submission"]["deliverable"]["content"].as_str();
    // Where nobody said anything, it is the branch, which stands above.
    if let Some(summary) = summary.filter(|summary| !summary.starts_with("branch ")) {
        write!(out, "\n{}", visible_lines(summary, "  "))?;
    }
    let moved = &review["movedBranch"];
    if !moved.is_null() {
        let [branch, commit, commits] =
            ["branch", "commit", "commits"].map(|name| visible(&cell(&moved[name])));
        writeln!(
            out,
            "{:<12} branch {branch} was moved to {commit} by somebody else; {commits} of its commits are not the \
             agent's and do not land with this task: merge them yourself",
            "warning"
        )?;
    }
    if let Some(said) = review["said"].as_str() {
        write!(out, "\nlast message of the agent\n{}", visible_lines(said, "  "))?;
    }
    let commits = review["commits"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !commits.is_empty() {
        writeln!(out, "\ncommits")?;
        for commit in commits {
            let oid: String = cell(&commit["oid"]).chars().take(TIP_LENGTH_MIN).collect();
            writeln!(out, "  {oid}  {}", visible(&cell(&commit["subject"])))?;
        }
    }
    match (review["diffStat"].as_str(), review["diffProblem"].as_str()) {
        (Some(""), _) => writeln!(out, "\n  {NO_CHANGES}")?,
        (Some(diff), _) => write!(out, "\n{}", visible_lines(diff, "  "))?,
        (None, Some(problem)) => writeln!(out, "{:<12} {}", "diff", visible(problem))?,
        (None, None) => {}
    }
    if task["status"] == "REVIEW" && task["approved"].is_null() && !globals.quiet {
        writeln!(out, "\n`adj review {id} --approve`, or `adj review {id} --changes TEXT`")?;
    }
    Ok(())
}

/// What was looked at, and what was found or is claimed.
fn checks(label: &str, items: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    for (index, item) in items.as_array().into_iter().flatten().enumerate() {
        let label = if index == 0 { visible(label) } else { String::new() };
        let [item, answer] = ["item", "answer"].map(|name| visible(&cell(&item[name])));
        let answer = if answer == "yes" { answer } else { answer.to_uppercase() };
        writeln!(out, "{label:<12} {answer:<7}  {item}")?;
    }
    Ok(())
}

/// What the agent changed and the gate put back: it is not in the diff below.
fn put_back(comments: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    for comment in comments.as_array().into_iter().flatten().filter(|comment| comment["kind"] == "put_back") {
        writeln!(out, "{:<12} {}", "dropped", visible(&cell(&comment["text"])))?;
    }
    Ok(())
}

fn approve(
    project: &Project,
    task: &Value,
    tip: Option<&str>,
    note: &str,
    context: Context,
) -> Result<(), Failure> {
    let tip = looked_at(task, tip)?;
    let body = json!({"approve": true, "tip": tip, "note": note});
    let path = format!("/tasks/{}/review", cell(&task["id"]));
    let task = project.ask(Method::Post, &path, body, None)?;
    if task["status"] == "REVIEW" {
        project.hint_without_fleet(&context.globals, "no fleet runs here; `adj run` lands it");
    }
    told(&task, context)
}

/// The tip as it is called in full. What was read a moment ago is what is approved, and nothing that came since.
fn looked_at(task: &Value, tip: Option<&str>) -> Result<Option<String>, Failure> {
    let current = task["tip"].as_str();
    let Some(tip) = tip else { return Ok(current.map(str::to_owned)) };
    match current {
        Some(current) if tip.len() >= TIP_LENGTH_MIN && current.starts_with(tip) => {
            Ok(Some(current.to_owned()))
        }
        // The machine says no, with the tip that there is.
        _ => Ok(Some(tip.to_owned())),
    }
}

fn told(task: &Value, context: Context) -> Result<(), Failure> {
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(task))?);
    }
    let [id, status] = ["id", "status"].map(|name| cell(&task[name]));
    let reason = cell(&task["blockReason"]);
    match task["approved"]["tip"].as_str().filter(|_| task["status"] == "REVIEW") {
        Some(tip) => Ok(writeln!(context.out, "{id}  {status}  approved at {}", visible(tip))?),
        None if reason != "-" => Ok(writeln!(context.out, "{id}  {status} ({})", visible(&reason))?),
        None => Ok(writeln!(context.out, "{id}  {status}")?),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj diff c-abc1 --stat
  adj diff c-abc1 | less")]
pub struct Diff {
    /// The task, or the worker that has it
    #[arg(value_name = "TASK|WORKER")]
    task: String,
    /// Only the files, with how much changed in each
    #[arg(long)]
    stat: bool,
}

pub fn diff(command: &Diff, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let query: &[(&str, &str)] = if command.stat { &[("stat", "1")] } else { &[] };
    let id = cell(&named::task(&project, &command.task)?["id"]);
    let diff = project.get(&format!("/tasks/{id}/diff"), query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&diff))?);
    }
    let diff = cell(&diff["diff"]);
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
        crate::outside::which(program)?;
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
