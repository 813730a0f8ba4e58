//! `adj salvage`: work that was saved before something was removed, and getting it back.

use super::project::Project;
use super::review::patch;
use super::terminal::Paint;
use super::text::{self, Table, cell, visible};
use super::{Context, Exit, Failure};
use crate::api::Method;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what was saved, newest first
    #[command(after_help = "\
Example:
  adj salvage list

Each is a commit of your repository too, under refs/adjutant/salvage: nothing but git is needed to read it.")]
    List,
    /// Show what a piece of saved work changed
    #[command(after_help = "\
Example:
  adj salvage show c-abc1/e12")]
    Show {
        /// As `adj salvage list` names it
        #[arg(value_name = "REF")]
        reference: String,
    },
    /// Put saved work into a new branch or a new folder
    #[command(after_help = "\
Example:
  adj salvage restore c-abc1/e12
  adj salvage restore c-abc1/e12 --branch rescued
  adj salvage restore c-abc1/e12 --to /tmp/rescued

Nothing is overwritten: the branch or folder must not be there yet.")]
    Restore(Restore),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where"))]
pub struct Restore {
    /// As `adj salvage list` names it
    #[arg(value_name = "REF")]
    reference: String,
    /// A new branch of your repository; its name is made up where neither is given
    #[arg(long, value_name = "NAME", group = "where")]
    branch: Option<String>,
    /// A new folder
    #[arg(long, value_name = "DIR", group = "where")]
    to: Option<PathBuf>,
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    match command {
        Command::List => list(&project, context),
        Command::Show { reference } => show(&project, &reference, context),
        Command::Restore(restore) => self::restore(&project, restore, context),
    }
}

fn list(project: &Project, context: Context) -> Result<(), Failure> {
    let saved = project.get_all("/salvage", &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Value::Array(saved)))?);
    }
    let mut table = Table::new(&["REF", "AGE", "COMMIT", "HOLDS"]);
    for item in &saved {
        let [id, at, commit] = ["id", "at", "commit"].map(|name| cell(&item[name]));
        let held = [files(&item["files"]), commits(&item["commits"])];
        let held: Vec<String> = held.into_iter().filter(|part| !part.is_empty()).collect();
        table.row([id, text::age(&at), commit.chars().take(12).collect(), held.join("; ")]);
    }
    if table.is_empty() && !context.globals.quiet {
        let text =
            "nothing was saved: what agents committed is on their branches, `git branch --list 'agent/*'`";
        return Ok(writeln!(context.out, "{text}")?);
    }
    Ok(write!(context.out, "{table}")?)
}

/// The first few by name, and how many more there are.
fn files(list: &Value) -> String {
    const NAMED_MAX: usize = 3;
    let names: Vec<String> = list.as_array().into_iter().flatten().map(cell).collect();
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What was stashed, amended or reset away.
fn commits(list: &Value) -> String {
    let named: Vec<String> = list.as_array().into_iter().flatten().map(cell).collect();
    match named.len() {
        0 => String::new(),
        1 => format!("commit {}", named[0]),
        more => format!("commit {} and {} more", named[0], more - 1),
    }
}

fn show(project: &Project, reference: &str, context: Context) -> Result<(), Failure> {
    let short = reference.strip_prefix("refs/adjutant/salvage/").unwrap_or(reference);
    if short.split('/').count() != 2 {
        let message = format!("`{}` is not saved work", visible(reference));
        return Err(Failure::new(Exit::Usage, message).hint("`adj salvage list` lists what was saved"));
    }
    let saved = project.get(&format!("/salvage/{short}"), &[])?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&saved))?);
    }
    let paint = Paint::new(&context.globals, std::io::stdout().is_terminal());
    patch(&cell(&saved["diff"]), paint, context)
}

fn restore(project: &Project, restore: Restore, context: Context) -> Result<(), Failure> {
    let Restore { reference, branch, to } = restore;
    // The owner may stand elsewhere.
    let folder = to.map(std::path::absolute).transpose()?;
    let mut body = json!({"id": reference});
    if let Some(branch) = branch {
        body["branch"] = json!(branch);
    }
    if let Some(folder) = folder {
        body["folder"] = json!(folder);
    }
    let restored = project.ask(Method::Post, "/salvage/restore", body, None)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&restored))?);
    }
    let place = match restored["branch"].as_str() {
        Some(branch) => format!("branch {branch}"),
        None => cell(&restored["folder"]),
    };
    Ok(writeln!(context.out, "{}  {}", visible(&cell(&restored["id"])), visible(&place))?)
}
