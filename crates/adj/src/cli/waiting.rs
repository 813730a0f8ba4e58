//! `adj waiting`: everything that needs a person, and the commands that answer it.

use super::project::Project;
use super::terminal::Paint;
use super::text::{self, Table, dash, visible};
use super::{Context, Failure};
use api::types::Nothing;
use api::types::waiting::{Offered, Waiting};
use fleet::command_line::command;

pub const HELP: &str = "\
Example:
  adj waiting
  adj waiting --json

The item that blocks the most tasks comes first, then the oldest. Below each item are the commands that answer it, the \
most likely one first.";

/// So many of the tasks that something holds up are named.
const BLOCKS_MAX: usize = 4;

pub fn waiting(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let list: Vec<Waiting> = project.get_all("/waiting", &Nothing {})?;
    let out = context.out;
    if context.globals.json {
        return Ok(writeln!(out, "{}", text::json(&list))?);
    }
    if list.is_empty() && !context.globals.quiet {
        return Ok(writeln!(out, "nothing waits for you")?);
    }
    let paint = Paint::stdout(&context.globals);
    let mut table = Table::new(&["AGE", "KIND", "ABOUT", "BLOCKS"]);
    for item in &list {
        let age = item.since.as_deref().map_or_else(|| "-".to_owned(), text::age);
        table.row([age, item.kind.to_string().replace('_', " "), about(item), blocks(&item.blocks)]);
    }
    let table = table.to_string();
    let mut rows = table.lines();
    writeln!(out, "{}", rows.next().unwrap_or_default())?;
    for (row, item) in rows.zip(&list) {
        writeln!(out, "{}", paint.bold(row))?;
        writeln!(out, "{}", text::hanging("  ", &visible(&item.text)))?;
        let commands: Vec<String> = item.options.iter().map(|option| command(&option.choice)).collect();
        let wide = commands.iter().map(String::len).max().unwrap_or(0);
        for (command, Offered { text, .. }) in commands.iter().zip(&item.options) {
            let label = format!("  {} {command:wide$}  ", paint.cyan("→"));
            writeln!(out, "{}", text::hanging(&label, &visible(text)))?;
        }
    }
    Ok(())
}

fn about(item: &Waiting) -> String {
    let ids = [&item.task, &item.worker, &item.approval, &item.request, &item.service, &item.channel];
    let ids: Vec<&str> = ids.into_iter().flatten().map(String::as_str).collect();
    dash((!ids.is_empty()).then(|| ids.join(" ")))
}

fn blocks(tasks: &[String]) -> String {
    match tasks.len() {
        0 => "-".to_owned(),
        count if count > BLOCKS_MAX => {
            format!("{} and {} more", tasks[..BLOCKS_MAX].join(", "), count - BLOCKS_MAX)
        }
        _ => tasks.join(", "),
    }
}

/// What can be done, behind what is wrong: `detail; to continue: A, or B`.
pub fn to_continue(detail: &str, next: &[Offered]) -> String {
    match next {
        [] => detail.to_owned(),
        next => {
            let commands: Vec<String> =
                next.iter().map(|offered| format!("`{}`", command(&offered.choice))).collect();
            format!("{detail}; to continue: {}", commands.join(", or "))
        }
    }
}
