//! `adj spec …`, `adj requests` and `adj architect`: what is to be built, and the agent that splits and reviews it.

use super::project::Project;
use super::text::{self, Money, Table, dash, joined, visible, visible_lines};
use super::{Context, Exit, Failure};
use api::types::Nothing;
use api::types::architect::Architect;
use api::types::request::{ListQuery, Request, WaitsFor};
use api::types::spec::{NewSpec, ShowQuery, Spec, SpecLine};
use clap::{Args, Subcommand};
use documents::specs::{self, Line, Read};
use kernel::specs::SpecState;
use machines::Wire;
use machines::names::SpecId;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Submit a spec: prose goes to the architect, a list of tasks is loaded as it is
    #[command(after_help = "\
Example:
  adj spec submit docs/login.md
  adj spec submit docs/login.md --name login --dry-run

Before it loads anything, the command shows each story with its dependencies, and each line that it could not read. The \
architect splits prose into stories, or returns it with feedback: change the file and submit it again.")]
    Submit(Submit),
    /// Show a spec, its feedback and its stories
    #[command(after_help = "Example:\n  adj spec show login\n  adj spec show login --version 1")]
    Show(Show),
    /// List specs
    #[command(after_help = "Example:\n  adj spec ls")]
    Ls,
}

#[derive(Debug, Args)]
pub struct Submit {
    /// File, or the folder of one spec
    path: PathBuf,
    /// Name of the spec; its tasks are named after it [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Show the stories without loading them
    #[arg(long)]
    dry_run: bool,
    /// Load a list of tasks without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub struct Show {
    /// Spec
    id: String,
    /// Show the text of this version
    #[arg(long, value_name = "N")]
    version: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj requests
  adj requests --all

The architect answers its questions one at a time, in order of arrival. Answer a question to you with `adj answer`.")]
pub struct Requests {
    /// Include answered questions
    #[arg(long)]
    all: bool,
}

pub const ARCHITECT_HELP: &str = "\
Example:
  adj architect

`[architect]` in adjutant.toml names the agent. It splits specs and answers questions of other agents. If fleet.review is \
\"architect\", it also reviews tasks. `adj requests` lists its questions; `adj retry architect` continues after an error.";

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Submit(command) => submit(&command, context),
        Command::Show(command) => show(&command, context),
        Command::Ls => list(context),
    }
}

/// The repository that the file is in: the project's own, or a clone of it where the project is elsewhere.
fn read(project: &Project, path: &Path) -> Result<Read, Failure> {
    let path = std::path::absolute(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display())))?;
    let above = || path.ancestors().skip(1).find(|folder| folder.join(".git").exists());
    let root = match project.is_away() {
        false => project.root(),
        true => above().or(path.parent()).unwrap_or(&path),
    };
    specs::read(&path, root).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

/// Where it stands, what stands there, and why it is no story.
fn line(line: &Line) -> String {
    format!("{}:{}: {} ({})", line.path, line.number, line.text.trim(), line.why)
}

fn submit(command: &Submit, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let read = read(&project, &command.path)?;
    let name = match &command.name {
        Some(name) => {
            SpecId::new(name).map_err(|error| Failure::new(Exit::Usage, format!("`--name`: {error}")))?
        }
        None => read.name.clone(),
    };
    if !context.globals.json && !context.globals.quiet {
        tell_read(&read, context.out)?;
    }
    if command.dry_run {
        if context.globals.json {
            let document = serde_json::json!({
                "id": name.as_str(), "title": read.title, "format": read.format, "stories": read.stories,
                "done": read.done, "notUnderstood": read.not_understood.iter().map(line).collect::<Vec<_>>(),
            });
            writeln!(context.out, "{}", text::json(&document))?;
        }
        return Ok(());
    }
    if read.stories.is_some() && !command.yes {
        confirm(context.out)?;
    }
    let new = NewSpec {
        id: name.to_string(),
        title: read.title,
        path: Some(command.path.display().to_string()),
        format: Some(read.format.to_owned()),
        text: read.text,
        stories: read.stories.map(|stories| stories.iter().map(Into::into).collect()),
    };
    let spec: Spec = project.post("/specs", &new)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&spec))?);
    }
    if context.globals.quiet {
        return Ok(writeln!(context.out, "{}", visible(&spec.line.id))?);
    }
    match spec.line.state {
        SpecState::Submitted => {
            writeln!(context.out, "{} is submitted; the architect looks at it", visible(&spec.line.id))?;
            project
                .hint_without_fleet(&context.globals, "no fleet is running; `adj run` starts the architect");
        }
        _ => {
            writeln!(context.out, "{} is loaded: {} tasks", visible(&spec.line.id), spec.tasks.len())?;
            project.hint_without_fleet(&context.globals, "no fleet is running; `adj run` starts it");
        }
    }
    Ok(())
}

/// All that was read, before anything of it counts.
fn tell_read(read: &Read, out: &mut dyn Write) -> Result<(), Failure> {
    match &read.stories {
        None => {
            writeln!(out, "{}: read as prose, {} lines", visible(&read.title), read.text.lines().count())?
        }
        Some(stories) => {
            writeln!(out, "{}: read as {}, {} stories", visible(&read.title), read.format, stories.len())?;
            let mut table = Table::wrapped(&["KEY", "AFTER", "TITLE"]);
            for story in stories {
                table.row([story.key.to_string(), dash_list(&story.depends_on), story.title.clone()]);
            }
            write!(out, "{table}")?;
            if read.done > 0 {
                writeln!(out, "{} more are done already", read.done)?;
            }
        }
    }
    if !read.not_understood.is_empty() {
        writeln!(out, "not understood:")?;
        for unclear in &read.not_understood {
            writeln!(out, "  {}", visible(&line(unclear)))?;
        }
    }
    Ok(())
}

fn confirm(out: &mut dyn Write) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::new(Exit::Usage, "nothing was loaded: nobody can be asked here")
            .hint("`--yes` loads it, `--dry-run` only shows it"));
    }
    write!(out, "Load these tasks? [y/N] ")?;
    out.flush()?;
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::Refused, "nothing was loaded")),
    }
}

fn dash_list(list: &[impl ToString]) -> String {
    if list.is_empty() { "-".to_owned() } else { joined(list) }
}

fn list(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let specs: Vec<SpecLine> = project.get_all("/specs", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&specs))?);
    }
    if specs.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "there are no specs; `adj spec submit FILE` submits one")?);
    }
    let mut table = Table::new(&["SPEC", "STATE", "VERSION", "STORIES", "OPEN", "TITLE"]);
    for spec in specs {
        table.row([
            spec.id,
            spec.state.name().to_owned(),
            spec.version.to_string(),
            spec.stories.to_string(),
            spec.open_stories.to_string(),
            spec.title,
        ]);
    }
    Ok(write!(context.out, "{table}")?)
}

fn show(command: &Show, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let id = SpecId::new(&command.id).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let query = ShowQuery { version: command.version.map(|version| version.to_string()) };
    let spec: Spec = project.get_with(&format!("/specs/{id}"), &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&spec))?);
    }
    let out = context.out;
    let line = &spec.line;
    writeln!(
        out,
        "{}  {}  version {}  {}",
        visible(&line.id),
        line.state,
        line.version,
        visible(&line.title)
    )?;
    writeln!(out, "by {}, read as {}", visible(&line.by), visible(&spec.format))?;
    if let Some(feedback) = &line.feedback {
        writeln!(out, "\nfeedback:")?;
        write!(out, "{}", visible_lines(feedback, "  "))?;
    }
    if let Some(request) = &line.request {
        writeln!(out, "\nthe architect is asked about it: {}", visible(request))?;
    }
    if !spec.tasks.is_empty() {
        writeln!(out)?;
        let mut table = Table::new(&["TASK", "KEY", "STATUS", "AFTER", "TITLE"]);
        for story in &spec.tasks {
            table.row([
                story.task.clone(),
                story.key.clone(),
                dash(story.status.as_ref()),
                dash_list(&story.depends_on),
                story.title.clone(),
            ]);
        }
        write!(out, "{table}")?;
    }
    if command.version.is_some() || spec.tasks.is_empty() {
        writeln!(out)?;
        write!(out, "{}", visible_lines(&spec.text, ""))?;
    }
    Ok(())
}

pub fn requests(command: &Requests, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let query = ListQuery { all: command.all, ..ListQuery::default() };
    let requests: Vec<Request> = project.get_all("/requests", &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&requests))?);
    }
    if requests.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing is asked")?);
    }
    tell_requests(&requests, context.out)
}

fn tell_requests(requests: &[Request], out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::wrapped(&["REQUEST", "KIND", "ABOUT", "WAITS FOR", "ASKED", "TEXT"]);
    for request in requests {
        let waits = match (request.waits_for, request.position, &request.answer) {
            (Some(WaitsFor::Architect), Some(place), _) => format!("architect ({place})"),
            (Some(waits_for), ..) => waits_for.name().to_owned(),
            (None, _, Some(answer)) if answer.abandoned => "given up".to_owned(),
            (None, _, Some(_)) => "answered".to_owned(),
            (None, _, None) => "nobody".to_owned(),
        };
        let mut said = request.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(note) = request.notes.last() {
            said = format!("{said} ({note})");
        }
        table.row([
            request.id.clone(),
            request.kind.name().to_owned(),
            dash(request.task.as_ref().or(request.spec.as_ref())),
            waits,
            text::age(&request.asked_at),
            said,
        ]);
    }
    Ok(write!(out, "{table}")?)
}

pub fn architect(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let architect: Architect = project.get("/architect")?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&architect))?);
    }
    tell(&architect, context)
}

fn tell(architect: &Architect, context: Context) -> Result<(), Failure> {
    let Some(agent) = &architect.agent else {
        return Ok(writeln!(
            context.out,
            "there is no architect; name one of the agents in [architect] of adjutant.toml"
        )?);
    };
    let out = context.out;
    let state = architect.state.as_deref().unwrap_or("has not been asked yet");
    writeln!(out, "{}  {state}  {}", visible(agent), Money::of(&architect.cost).words())?;
    if let Some(cause) = &architect.cause {
        write!(out, "{}", visible_lines(cause, "  "))?;
        Project::hint(&context.globals, "`adj retry architect` lets it go on");
    }
    if let Some(service) = &architect.service {
        writeln!(out, "  waits for {}", visible(service))?;
    }
    if !architect.queue.is_empty() {
        writeln!(out)?;
        tell_requests(&architect.queue, out)?;
    }
    Ok(())
}

/// `adj retry architect`.
pub fn recover(project: &Project, context: Context) -> Result<(), Failure> {
    let architect: Architect = project.post("/architect/recover", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&architect))?);
    }
    tell(&architect, context)
}
