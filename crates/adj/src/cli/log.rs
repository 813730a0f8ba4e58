//! `adj history`, `why`, `verify`, `export` and `import`: what happened, why nothing happens, and whether it is all there.

use super::named::first_found;
use super::project::Project;
use super::terminal::{self, Colour, Paint};
use super::text::shown;
use super::text::{self, Table, cell, dash, visible, visible_lines};
use super::waiting::to_continue;
use super::{Context, Exit, Failure};
use api::Problem;
use api::types::history::{Checked, Item, Query, Record, Told, Transition, Verified};
use api::types::waiting::Offered;
use api::types::why::{FleetWhy, Guard, TaskWhy, Waits, WorkerWhy};
use clap::Args;
use fleet::command_line;
use kernel::words::{ActorName, Condition};
use log::owner::VERSION;
use log::transfer::{self, TransferError};
use machines::Wire;
use serde::Serialize;
use server::log_file;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj history c-abc1
  adj history --machines c-abc1
  adj history login                      a spec with its stories
  adj history --all --json | jq '.[-1]'

--json prints the transitions of --machines, or with --all every event.")]
pub struct History {
    /// Task, worker, run, spec, request or channel [default: everything]
    #[arg(value_name = "NAME")]
    of: Option<String>,
    /// Print every state transition, and who requested it
    #[arg(long, short, conflicts_with = "all")]
    machines: bool,
    /// Print every event of the log
    #[arg(long, short)]
    all: bool,
}

pub fn history(command: &History, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let story = !command.all && !command.machines && !context.globals.json;
    let query = Query { all: command.all, story, ..Query::default() };
    let items: Vec<Item> = match &command.of {
        None => project.get_all("/history", &query)?,
        Some(of) => {
            let kinds = ["tasks", "workers", "runs", "specs", "requests", "channels"];
            first_found(of, "task, worker, run, spec, request or channel", &kinds, |kind| {
                project.get_all(&format!("/{kind}/{of}/history"), &query)
            })?
        }
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&items))?);
    }
    if items.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing has happened yet")?);
    }
    if story {
        return told_as_story(&items, context);
    }
    let mut table = match command.all {
        true => Table::new(&["SEQ", "TIME", "ACTOR", "STREAM", "EVENT", "DATA"]),
        false => Table::new(&["TIME", "ACTOR", "MACHINE", "ID", "FROM", "TO", "TRIGGER"]),
    };
    for item in items {
        match item {
            Item::Record(Record { seq, at, actor, stream, kind, data, .. }) => {
                table.row([seq.to_string(), at, actor, stream, kind, cell(&data)]);
            }
            Item::Transition(Transition { timestamp, actor, machine, id, from, to, trigger, .. }) => {
                table.row([timestamp, actor, machine, id, from, to, trigger]);
            }
            Item::Told(_) => {}
        }
    }
    Ok(write!(context.out, "{table}")?)
}

/// What happened, as `adj run` tells it, with the time of day where this runs and who did it.
fn told_as_story(items: &[Item], context: Context) -> Result<(), Failure> {
    let paint = Paint::stdout(&context.globals);
    let told = items.iter().filter_map(|item| match item {
        Item::Told(told) => Some(told),
        _ => None,
    });
    let at = |told: &Told| told.timestamp.parse::<jiff::Timestamp>().map_or(0, |time| time.as_millisecond());
    let head = format!("TIME ({})", terminal::zone(told.clone().next_back().map_or(0, at)));
    let mut table = Table::wrapped(&[&head, "WHO", "", "WHAT"]);
    for told in told {
        let who = match ActorName::read(&told.actor) {
            Some(ActorName::System) => "fleet".to_owned(),
            Some(ActorName::SystemFor(agent)) => agent.to_owned(),
            Some(ActorName::Human(_) | ActorName::Agent(_)) | None => told.actor.clone(),
        };
        let time = terminal::day_and_clock(at(told));
        table.row([time, who, told.tone.mark().to_owned(), told.text.clone()]);
        table.coloured(2, super::story_lines::colour(told.tone), paint);
    }
    Ok(write!(context.out, "{table}")?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj why            the whole fleet: failures, and why each task waits
  adj why c-abc1
  adj why -v A       also the conditions that hold")]
pub struct Why {
    /// Task or worker [default: the whole fleet]
    #[arg(value_name = "TASK|WORKER")]
    of: Option<String>,
    /// Print every condition, not only those that fail
    #[arg(long, short)]
    verbose: bool,
}

/// Open tasks that are listed one by one where nobody asked for all.
const WHY_TASKS_MAX: usize = 12;

/// Things for a person that `adj why` names.
const WHY_WAITING_MAX: usize = 10;

pub fn why(command: &Why, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let why = match &command.of {
        None => Explained::Fleet(project.get("/why")?),
        Some(of) => first_found(of, "task or worker", &["tasks", "workers"], |kind| {
            let path = format!("/{kind}/{of}/why");
            match kind {
                "tasks" => project.get(&path).map(Explained::Task),
                _ => project.get(&path).map(Explained::Worker),
            }
        })?,
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&why))?);
    }
    project.warn_of_settings(&context.globals);
    let paint = Paint::stdout(&context.globals);
    let out = context.out;
    let (id, state, guards) = match &why {
        Explained::Task(why) => (&why.id, dash(why.state.as_ref()), &why.guards),
        Explained::Worker(why) => (&why.id, why.state.clone(), &why.guards),
        Explained::Fleet(why) => (&why.id, why.state.clone(), &why.guards),
    };
    let state = state.split_once('.').map_or(state.as_str(), |(_, state)| state);
    let spec = match &why {
        Explained::Task(TaskWhy { spec: Some(spec), .. }) => format!("  of spec {}", visible(spec)),
        _ => String::new(),
    };
    writeln!(out, "{}  {}{}", paint.bold(visible(id)), visible(state), paint.dim(spec))?;
    let for_people = match &why {
        Explained::Task(why) => why.waiting.as_slice(),
        Explained::Fleet(why) => why.waiting.as_slice(),
        Explained::Worker(_) => &[],
    };
    for item in for_people.iter().take(WHY_WAITING_MAX) {
        let since = item.since.as_deref().map(|at| format!(" since {}", text::age(at))).unwrap_or_default();
        let label = format!("{} for you{since}: ", paint.yellow("→"));
        writeln!(out, "{}", text::hanging(&label, &visible(&item.text)))?;
    }
    if for_people.len() > WHY_WAITING_MAX {
        writeln!(out, "  and {} more: adj waiting", for_people.len() - WHY_WAITING_MAX)?;
    }
    let (good, bad): (Vec<&Guard>, Vec<&Guard>) = guards.iter().partition(|guard| guard.holds);
    for guard in &bad {
        let label = format!("{} {}: ", paint.red("✗"), guard.guard.text());
        writeln!(out, "{}", text::hanging(&label, &visible(&to_continue(&guard.detail, &guard.next))))?;
    }
    if command.verbose {
        for guard in &good {
            let label = format!("{} {}: ", paint.green("✓"), guard.guard.text());
            writeln!(out, "{}", text::hanging(&label, &visible(&to_continue(&guard.detail, &guard.next))))?;
        }
    } else if bad.is_empty() && !matches!(why, Explained::Fleet(_)) {
        // What its tests do now, where they run, is all that it waits for.
        match good.iter().find(|guard| guard.guard == Condition::TestsUnderWay) {
            Some(guard) => {
                let label = format!("{} ", paint.green("✓"));
                writeln!(out, "{}", text::hanging(&label, &visible(&to_watch(guard))))?;
            }
            None => writeln!(out, "{} nothing stands in the way", paint.green("✓"))?,
        }
    }
    if let Explained::Fleet(FleetWhy { tasks, .. }) = &why {
        let all_bad: Vec<&String> = bad.iter().map(|guard| &guard.detail).collect();
        let shown = if command.verbose { tasks.len() } else { tasks.len().min(WHY_TASKS_MAX) };
        let mut table = Table::wrapped(&["TASK", "STATUS", "WAITS FOR"]);
        for Waits { id, status, detail, next, .. } in &tasks[..shown] {
            let waits = match detail {
                None => "at work".to_owned(),
                // It stands above, for all of them.
                Some(detail) if all_bad.contains(&detail) => "as above".to_owned(),
                Some(detail) => to_continue(detail, next),
            };
            table.row([id.clone(), status.to_string(), waits]);
            table.coloured(1, Colour::of_status(status.name()), paint);
        }
        if !table.is_empty() {
            write!(out, "\n{table}")?;
        }
        if shown < tasks.len() {
            writeln!(out, "and {} more: adj why -v, adj board", tasks.len() - shown)?;
        }
        if bad.is_empty() && tasks.is_empty() {
            writeln!(out, "{} nothing stands in the way", paint.green("✓"))?;
        }
    }
    if let Explained::Task(TaskWhy { call: Some(call), .. }) = &why {
        write!(out, "\nThe call that waits, whole:\n{}", text::visible_whole(&call.text, "  "))?;
    }
    for guard in &bad {
        if let Some(output) = &guard.output {
            writeln!(out, "\n{}: the last lines of the output", guard.guard.text())?;
            write!(out, "{}", visible_lines(output, "  "))?;
        }
    }
    Ok(())
}

/// Something that is under way, and the command that shows it.
fn to_watch(guard: &Guard) -> String {
    let shows = |next: &Offered| format!("; `{}` {}", command_line::command(&next.choice), next.text);
    format!("{}{}", guard.detail, guard.next.first().map(shows).unwrap_or_default())
}

/// What `adj why` was asked about.
#[derive(Serialize)]
#[serde(untagged)]
enum Explained {
    Task(TaskWhy),
    Worker(WorkerWhy),
    Fleet(FleetWhy),
}

/// What `adj verify` looks at, in order. The first thing that is wrong ends it.
pub fn verify(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    // Here the file itself is looked at, also while its owner cannot be asked.
    let verified: Verified = match project.is_away() {
        true => project.get("/verify")?,
        false => log_file::verified(&project.log_path())?,
    };
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&verified))?);
    }
    for Checked { check, found } in verified.checks {
        writeln!(context.out, "{check:<11} ok  {found}")?;
    }
    Ok(())
}

#[derive(Debug, Args)]
pub struct Transfer {
    /// File; `-` is standard output for export and standard input for import
    file: PathBuf,
}

pub fn export(command: &Transfer, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    export_to(&project, &command.file, context, "exported")
}

fn export_to(project: &Project, path: &Path, context: Context, done: &str) -> Result<(), Failure> {
    let export = |out: &mut dyn io::Write| match project.is_away() {
        true => project.export_from_away(out),
        false => {
            log_file::to_export(&project.log_path())?;
            log_file::export(&project.log_path(), out).map_err(|error| transfer_failure(path, error))
        }
    };
    if path == Path::new("-") {
        export(&mut *context.out)?;
        return Ok(());
    }
    if path.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("`{}` is a folder", shown(path)))
            .hint(format!("name a file, such as `{}`", shown(&path.join("adjutant.jsonl")))));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::not_found(format!("there is no folder `{}` to write to", shown(folder)))
            .hint("create it first, or name another file"));
    }
    // Beside the target first: a file of that name is either whole or not there.
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let failed = |error: io::Error| transfer_failure(path, error.into());
    let written = || -> Result<u64, Failure> {
        let mut out = BufWriter::new(created(&beside).map_err(failed)?);
        let records = export(&mut out)?;
        out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
        std::fs::rename(&beside, path).map_err(failed)?;
        Ok(records)
    };
    let records = written().inspect_err(|_| drop(std::fs::remove_file(&beside)))?;
    told(context, records, done)
}

/// A file that nobody else can read: what agents and people wrote is in it.
fn created(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

pub fn import(command: &Transfer, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    project.check_here("`adj import`")?;
    project.check_person("import a log")?;
    let path = &command.file;
    let failed = |error| transfer_failure(path, error);
    let mut input: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(path).map_err(|error| failed(error.into()))?)),
    };
    let mut log = project.own_log()?;
    let records = transfer::import(&mut *log, &mut *input, VERSION).map_err(failed)?;
    let streams = streams::import(&log_file::streams_beside(&project.log_path()), &mut *input);
    streams.map_err(|error| {
        Failure::from(log_file::of_streams(error)).hint("the log was imported, and none of the streams")
    })?;
    told(context, records, "imported")
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj backup ~/backups/api.jsonl
  adj init && adj import ~/backups/api.jsonl     in a fresh clone

The backup is consistent, also while a fleet runs. It contains the log and the durable streams that clients wrote, in the \
format of `adj export`; your code is in git. `adj` verifies it before writing, and only you can read the file.")]
pub struct Backup {
    /// File to write
    file: PathBuf,
}

/// An export that is known to be whole, for the user alone.
pub fn backup(command: &Backup, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    match project.is_away() {
        true => drop(project.get::<Verified>("/verify")?),
        false => drop(log_file::verified(&project.log_path())?),
    }
    if command.file == Path::new("-") {
        return Err(Failure::new(Exit::Usage, "a backup is a file").hint("`adj export -` prints it"));
    }
    export_to(&project, &command.file, context, "backed up")
}

/// What `adj export --json` and `adj import --json` print.
#[derive(Serialize)]
struct Transferred {
    records: u64,
}

fn told(context: Context, records: u64, done: &str) -> Result<(), Failure> {
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&Transferred { records }))?);
    }
    if !context.globals.quiet {
        writeln!(context.out, "{done} {records} records")?;
    }
    Ok(())
}

fn transfer_failure(path: &Path, error: TransferError) -> Failure {
    let name = shown(path);
    let message = format!("`{name}`: {}", visible(&error.to_string()));
    match error {
        TransferError::Log(error) => Problem::from(error).into(),
        TransferError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => error.into(),
        TransferError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            Failure::not_found(format!("there is no file `{name}`"))
        }
        TransferError::Io(_) => Failure::new(Exit::Failed, message),
        TransferError::Line { .. } => Failure::new(Exit::Usage, message)
            .hint("nothing was imported; export it again where it came from"),
        TransferError::Newer { .. } | TransferError::Open { .. } => {
            Failure::new(Exit::Usage, message).hint("nothing was imported; a newer adjutant may read it")
        }
        TransferError::NotEmpty { .. } => Failure::new(Exit::Refused, error.to_string())
            .hint("import into a repository where adjutant has not been used yet"),
    }
}
