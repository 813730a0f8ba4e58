//! `adj salvage`: work that was saved before something was removed, and getting it back.

use super::project::Project;
use super::review::patch;
use super::terminal::Paint;
use super::text::{self, Table, visible};
use super::{Context, Exit, Failure};
use api::types::Nothing;
use api::types::host::{RestoreWish, Restored, RestoredTo, Saved, SavedDiff};
use clap::{ArgGroup, Args, Subcommand};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List saved work, newest first
    #[command(after_help = "\
Example:
  adj salvage list

Each entry is also a git ref under refs/adjutant/salvage, so git alone can read it.")]
    List,
    /// Show the changes in saved work
    #[command(after_help = "\
Example:
  adj salvage show c-abc1/e12")]
    Show {
        /// Entry from `adj salvage list`
        #[arg(value_name = "REF")]
        reference: String,
    },
    /// Restore saved work to a new branch or directory
    #[command(after_help = "\
Example:
  adj salvage restore c-abc1/e12
  adj salvage restore c-abc1/e12 --branch rescued
  adj salvage restore c-abc1/e12 --to /tmp/rescued

The branch or directory must not exist yet.")]
    Restore(Restore),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where"))]
pub struct Restore {
    /// Entry from `adj salvage list`
    #[arg(value_name = "REF")]
    reference: String,
    /// New branch [default: a generated name, if --to is not given either]
    #[arg(long, value_name = "NAME", group = "where")]
    branch: Option<String>,
    /// New directory
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
    let saved: Vec<Saved> = project.get_all("/salvage", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&saved))?);
    }
    let mut table = Table::new(&["REF", "AGE", "COMMIT", "HOLDS"]);
    for item in &saved {
        let held = [files(&item.files), commits(&item.commits)];
        let held: Vec<String> = held.into_iter().filter(|part| !part.is_empty()).collect();
        let commit = item.commit.chars().take(12).collect();
        table.row([item.id.clone(), text::age(&item.at), commit, held.join("; ")]);
    }
    if table.is_empty() && !context.globals.quiet {
        let text =
            "nothing was saved: what agents committed is on their branches, `git branch --list 'agent/*'`";
        return Ok(writeln!(context.out, "{text}")?);
    }
    Ok(write!(context.out, "{table}")?)
}

/// The first few by name, and how many more there are.
fn files(names: &[String]) -> String {
    const NAMED_MAX: usize = 3;
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What was stashed, amended or reset away.
fn commits(named: &[String]) -> String {
    match named.len() {
        0 => String::new(),
        1 => format!("commit {}", named[0]),
        more => format!("commit {} and {} more", named[0], more - 1),
    }
}

fn show(project: &Project, reference: &str, context: Context) -> Result<(), Failure> {
    let short = reference.strip_prefix(git::SALVAGE).unwrap_or(reference);
    if short.split('/').count() != 2 {
        let message = format!("`{}` is not saved work", visible(reference));
        return Err(Failure::new(Exit::Usage, message).hint("`adj salvage list` lists what was saved"));
    }
    let saved: SavedDiff = project.get(&format!("/salvage/{short}"))?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&saved))?);
    }
    let paint = Paint::new(&context.globals, std::io::stdout().is_terminal());
    patch(&saved.diff, paint, context)
}

fn restore(project: &Project, restore: Restore, context: Context) -> Result<(), Failure> {
    let Restore { reference, branch, to } = restore;
    // The owner may stand elsewhere.
    let folder = to.map(std::path::absolute).transpose()?;
    let wish = RestoreWish { id: reference, branch, folder };
    let restored: Restored = project.post("/salvage/restore", &wish)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&restored))?);
    }
    let place = match &restored.place {
        RestoredTo::Branch(branch) => format!("branch {branch}"),
        RestoredTo::Folder(folder) => folder.clone(),
    };
    Ok(writeln!(context.out, "{}  {}", visible(&restored.id), visible(&place))?)
}
