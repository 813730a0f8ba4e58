//! `adj merge`, `review` and `diff`: a person looks at work, and says yes or what must change.

use super::named;
use super::project::Project;
use super::terminal::Paint;
use super::text::{self, cell, visible, visible_code, visible_lines};
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
  adj review c-abc1
  adj review c-abc1 --approve
  adj review c-abc1 --changes 'the error message must name the file'

Approved work joins the queue (`adj queue`); with --changes the task goes back to work and the agent is told the text.")]
pub struct Review {
    /// The task, or the worker that has it; to decide, it must be in REVIEW
    #[arg(value_name = "TASK|WORKER")]
    task: String,
    /// Say yes: it may land
    #[arg(long, conflicts_with = "changes")]
    approve: bool,
    /// Say what must be changed
    #[arg(long, value_name = "TEXT")]
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
    let task = named::task(&project, &command.task)?;
    let id = cell(&task["id"]);
    if command.approve {
        return approve(&project, &task, command.tip.as_deref(), &command.note, context);
    }
    if let Some(changes) = &command.changes {
        let tip = looked_at(&task, command.tip.as_deref())?;
        let body = json!({"approve": false, "tip": tip, "note": changes});
        let task = project.ask(Method::Post, &format!("/tasks/{id}/review"), body, None)?;
        project
            .hint_without_fleet(&context.globals, "no fleet runs here; `adj run` passes it on to the agent");
        return told(&task, context);
    }
    // What can be said is said, also where the diff cannot be had.
    let diff = project.get(&format!("/tasks/{id}/diff"), &[("stat", "1")]);
    if context.globals.json {
        let diff = diff.ok().map(|diff| diff["diff"].clone());
        return Ok(writeln!(context.out, "{}", text::json(&json!({"task": task, "diffStat": diff})))?);
    }
    let out = context.out;
    writeln!(out, "{}  {}", cell(&task["id"]), visible(&cell(&task["title"])))?;
    for (name, label) in
        [("status", "status"), ("branch", "branch"), ("tip", "tip"), ("heldUp", "held up by")]
    {
        let shown = cell(&task[name]);
        if shown != "-" {
            writeln!(out, "{label:<12} {}", visible(&shown))?;
        }
    }
    if let Some(by) = task["approved"]["by"].as_str() {
        writeln!(out, "{:<12} {}", "approved by", visible(by))?;
    }
    checks(&task["submission"]["reviewChecklist"]["items"], out)?;
    let summary = task["submission"]["deliverable"]["content"].as_str();
    // Where the agent said nothing, it is the branch, which stands above.
    if let Some(summary) = summary.filter(|summary| !summary.starts_with("branch ")) {
        write!(out, "\n{}", visible_lines(summary, "  "))?;
    }
    match diff {
        Ok(diff) if cell(&diff["diff"]).is_empty() => writeln!(out, "\n  {NO_CHANGES}")?,
        Ok(diff) => write!(out, "\n{}", visible_lines(&cell(&diff["diff"]), "  "))?,
        Err(failure) => writeln!(out, "{:<12} {}", "diff", visible(&failure.to_string()))?,
    }
    if task["status"] == "REVIEW" && task["approved"].is_null() && !context.globals.quiet {
        writeln!(out, "\n`adj review {id} --approve`, or `adj review {id} --changes TEXT`")?;
    }
    Ok(())
}

/// What the gate looked at, and found.
fn checks(items: &Value, out: &mut dyn Write) -> std::io::Result<()> {
    for (index, item) in items.as_array().into_iter().flatten().enumerate() {
        let label = if index == 0 { "checked" } else { "" };
        let [item, answer] = ["item", "answer"].map(|name| visible(&cell(&item[name])));
        let answer = if answer == "yes" { answer } else { answer.to_uppercase() };
        writeln!(out, "{label:<12} {answer:<7}  {item}")?;
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
    project.hint_without_fleet(&context.globals, "no fleet runs here; `adj run` lands it");
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
    match task["approved"]["tip"].as_str().filter(|_| task["status"] == "REVIEW") {
        Some(tip) => Ok(writeln!(context.out, "{id}  {status}  approved at {}", visible(tip))?),
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
    let paint = Paint::new(&context.globals, std::io::stdout().is_terminal());
    patch(&diff, paint, context)
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
