//! `adj task import`: open issues of GitHub, or of any other tracker that prints the same JSON, as tasks.
//!
//! Issues are text of strangers. They come in as data: by their own id, without control characters, and held to the limits
//! of every other task. An issue that was a task once is never added again.

use super::project::Project;
use super::text::{self, visible};
use super::{Context, Exit, Failure};
use api::Method;
use api::types::Nothing;
use api::types::task::{self as types, Task, TaskLine};
use clap::Args;
use machines::Wire;
use machines::task::TaskType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};

/// The most that is read of one list of issues.
const LIST_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj task import --label ready
  gh issue list --json number,title,body,labels,url | adj task import -

Runs `gh issue list` in the repository, as you. Issue 12 becomes task gh-12. Issues that already have a task, open or \
closed, are skipped. In a public repository anyone can write an issue and agents read it: select trusted ones by label.")]
pub struct Import {
    /// `-` reads the JSON of `gh issue list --json number,title,body,labels,url` from standard input
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true, conflicts_with_all = ["label", "limit", "search"])]
    source: Option<String>,
    /// Import only issues with this label; repeatable, all must match
    #[arg(long, short, value_name = "LABEL")]
    label: Vec<String>,
    /// Import at most this many issues
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Import only issues that match this GitHub search
    #[arg(long, value_name = "QUERY")]
    search: Option<String>,
}

/// An issue as `gh issue list --json` prints it.
#[derive(Debug, Deserialize)]
struct Issue {
    number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Label {
    Whole { name: String },
    Name(String),
}

/// What became of the issues.
#[derive(Debug, Default, Serialize)]
struct Imported {
    added: Vec<String>,
    skipped: Vec<String>,
    failed: Vec<NotAdded>,
}

#[derive(Debug, Serialize)]
struct NotAdded {
    id: String,
    why: String,
}

pub fn import(project: &Project, import: &Import, mut context: Context) -> Result<(), Failure> {
    let listed = match import.source {
        Some(_) => of_stdin()?,
        None => of_github(project, import)?,
    };
    let mut issues: Vec<Issue> = serde_json::from_slice(&listed).map_err(|error| {
        Failure::new(Exit::Usage, format!("the list of issues is invalid: {}", visible(&error.to_string())))
            .hint("it takes what `gh issue list --json number,title,body,labels,url` prints")
    })?;
    let full = import.source.is_none() && issues.len() >= import.limit as usize;
    // Of the same priority the oldest is taken first, by when its task was added.
    issues.sort_by_key(|issue| issue.number);
    let imported = add_all(project, &issues, &mut context)?;
    if context.globals.json {
        writeln!(context.out, "{}", text::json(&imported))?;
    } else if !context.globals.quiet {
        let (added, skipped) = (imported.added.len(), imported.skipped.len());
        writeln!(context.out, "{added} added, {skipped} already there")?;
    }
    if full {
        let text = format!("there may be more than {} issues; raise --limit", import.limit);
        Project::hint(&context.globals, &text);
    }
    if imported.failed.is_empty() {
        return Ok(());
    }
    if context.globals.json {
        return Err(Failure::told(Exit::Failed));
    }
    let lines = imported.failed.iter().map(|failed| format!("{}: {}", failed.id, failed.why));
    let count = imported.failed.len();
    Err(Failure::new(Exit::Failed, format!("{count} issues were not added")).lines(lines))
}

/// One that is refused keeps no other from being added.
fn add_all(project: &Project, issues: &[Issue], context: &mut Context) -> Result<Imported, Failure> {
    let there: Vec<TaskLine> = project.get_all("/tasks", &Nothing {})?;
    let mut there: BTreeSet<String> = there.into_iter().map(|task| task.id).collect();
    let mut imported = Imported::default();
    for issue in issues {
        let new = issue.task();
        let id = new.id.clone().unwrap_or_default();
        if !there.insert(id.clone()) {
            imported.skipped.push(id);
            continue;
        }
        match project.ask::<Task>(Method::Post, "/tasks", &new, None) {
            Ok(task) => {
                if !context.globals.json {
                    writeln!(context.out, "{}  {}", task.line.id, visible(&task.line.title))?;
                }
                imported.added.push(id);
            }
            // Somebody else was faster.
            Err(failure) if failure.code() == Some("EXISTS") => imported.skipped.push(id),
            Err(failure) if matches!(failure.exit(), Exit::Usage | Exit::Refused) => {
                imported.failed.push(NotAdded { id, why: failure.to_string() });
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(imported)
}

impl Issue {
    fn task(&self) -> types::Add {
        let mut body = paragraphs(self.body.as_deref().unwrap_or_default());
        if let Some(url) = self.url.as_deref().map(one_line).filter(|url| !url.is_empty()) {
            body = format!("{body}\n\nIssue: {url}\n").trim_start().to_owned();
        }
        types::Add {
            title: one_line(&self.title),
            body,
            id: Some(format!("gh-{}", self.number)),
            task_type: self.labels.iter().find_map(Label::task_type),
            ..types::Add::default()
        }
    }
}

impl Label {
    /// The type of the same name. GitHub gives every repository `enhancement` for what is a feature here.
    fn task_type(&self) -> Option<TaskType> {
        let (Label::Whole { name } | Label::Name(name)) = self;
        match name.to_lowercase().as_str() {
            "enhancement" => Some(TaskType::Feature),
            name => TaskType::read(name),
        }
    }
}

fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.trim().to_owned()
}

/// Lines stay lines; what would move a terminal's cursor goes.
fn paragraphs(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let plain: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    plain.trim_end().to_owned()
}

fn of_stdin() -> Result<Vec<u8>, Failure> {
    let mut list = Vec::new();
    std::io::stdin().lock().take(LIST_BYTES_MAX).read_to_end(&mut list)?;
    Ok(list)
}

/// The user's own `gh`, with the user's own login.
fn of_github(project: &Project, import: &Import) -> Result<Vec<u8>, Failure> {
    let mut gh = Command::new("gh");
    gh.args(["issue", "list", "--state", "open", "--json", "number,title,body,labels,url"]);
    gh.args(["--limit", &import.limit.to_string()]);
    for label in &import.label {
        gh.args(["--label", label]);
    }
    if let Some(search) = &import.search {
        gh.args(["--search", search]);
    }
    // Away from the project, the repository around here is meant.
    if !project.is_away() {
        gh.current_dir(project.root());
    }
    let output = gh.stdin(Stdio::null()).output().map_err(|error| {
        let message = match error.kind() {
            ErrorKind::NotFound => "`gh` is not on the PATH".to_owned(),
            _ => format!("`gh` cannot be started: {error}"),
        };
        Failure::new(Exit::Unreachable, message).hint(
            "install the GitHub CLI and run `gh auth login`, or give the issues as JSON to `adj task import -`",
        )
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing");
    Err(Failure::new(Exit::Unreachable, format!("`gh issue list` failed: {}", visible(last)))
        .hint("`gh auth status` shows whether you are logged in, `gh repo view` which repository it asks"))
}
