//! `adj history`, `why`, `verify`, `export` and `import`: what happened, why nothing happens, and whether it is all there.

use super::named::first_found;
use super::project::{Project, shown};
use super::terminal::{self, Colour, Paint};
use super::text::{self, Table, cell, dash, visible, visible_lines};
use super::waiting::to_continue;
use super::{Context, Exit, Failure};
use crate::api::types::history::{Item, Query, Record, Told, Transition};
use crate::api::types::why::{FleetWhy, Guard, TaskWhy, Waits, WorkerWhy};
use crate::api::{Problem, time};
use clap::Args;
use machines::Wire;
use runtime::clock::now;
use runtime::log::{Log, Stranger};
use runtime::owner::{Folded, VERSION};
use runtime::transfer::{self, TransferError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj history c-abc1
  adj history --machines c-abc1
  adj history --all --json | jq '.[-1]'

With --json it prints the transitions of --machines, or with --all every event.")]
pub struct History {
    /// Task, worker or run [default: everything]
    #[arg(value_name = "TASK|WORKER|RUN")]
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
        Some(of) => first_found(of, "task, worker or run", &["tasks", "workers", "runs"], |kind| {
            project.get_all(&format!("/{kind}/{of}/history"), &query)
        })?,
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
        let who = match told.actor.strip_prefix("system") {
            Some("") => "fleet".to_owned(),
            Some(agent) => agent.strip_prefix(" for ").unwrap_or(agent).to_owned(),
            None => told.actor.clone(),
        };
        let time = terminal::day_and_clock(at(told));
        table.row([time, who, told.tone.mark().to_owned(), told.text.clone()]);
        table.coloured(2, told.tone.colour(), paint);
    }
    Ok(write!(context.out, "{table}")?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj why            the whole fleet: failures, and what each task waits for
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
    writeln!(out, "{}  {}", paint.bold(visible(id)), visible(state))?;
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
        writeln!(out, "{} nothing stands in the way", paint.green("✓"))?;
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

/// What `adj why` was asked about.
#[derive(Serialize)]
#[serde(untagged)]
enum Explained {
    Task(TaskWhy),
    Worker(WorkerWhy),
    Fleet(FleetWhy),
}

/// What `adj verify --json` prints.
#[derive(Serialize)]
struct Verified<'c> {
    ok: bool,
    at: String,
    records: u64,
    hash: String,
    checks: Vec<Checked<'c>>,
}

#[derive(Serialize)]
struct Checked<'c> {
    check: &'c str,
    found: &'c str,
}

/// What `adj verify` looks at, in order. The first thing that is wrong ends it.
pub fn verify(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    project.check_here("`adj verify`")?;
    let started = now();
    let Some(log) = project.read_log()? else {
        return Err(Failure::not_found(format!("there is no log at `{}`", shown(&project.log_path())))
            .hint("the first task creates it"));
    };
    let mut checks: Vec<(&str, String)> = Vec::new();
    let strangers = log.strangers().map_err(Problem::from)?;
    if !strangers.is_empty() {
        return Err(alien(&project.log_path(), &strangers));
    }
    checks.push(("schema", "no table, index, view or trigger but adjutant's own".to_owned()));
    let whole = Folded::read_all(&log, VERSION).map_err(Problem::from)?;
    let records = whole.head.seq;
    checks.push(("hash chain", format!("{records} records, each with the hash that its content has")));
    checks.push(("events", format!("{records} events fold to {} tasks", whole.world.tasks.len())));

    let violations: Vec<_> =
        kernel::invariants::check(&whole.world).iter().map(ToString::to_string).collect();
    if !violations.is_empty() {
        let message = format!("the log folds to a world that cannot be: {}", visible(&violations.join("; ")));
        return Err(Failure::new(Exit::Failed, message).hint("please report it, with an `adj export`"));
    }
    checks.push(("invariants", "all hold".to_owned()));

    let newest = Folded::read(&log, VERSION).map_err(Problem::from)?;
    if newest.world != whole.world {
        let message = format!("the snapshot of record {} is not what the log folds to", newest.snapshot);
        return Err(Failure::new(Exit::Failed, message).hint("please report it, with an `adj export`"));
    }
    checks.push(match newest.snapshot {
        0 => ("snapshot", "there is none".to_owned()),
        seq => ("snapshot", format!("the one of record {seq} agrees")),
    });
    let pending = log.outbox().map_err(Problem::from)?;
    let asked: Vec<_> = whole.world.effects.keys().map(|id| id.as_str()).collect();
    let mut kept: Vec<_> = pending.iter().map(|pending| pending.id.as_str()).collect();
    kept.sort_unstable();
    if kept != asked {
        return Err(Failure::new(Exit::Failed, "the outbox does not hold the effects that the log asks for"));
    }
    checks.push(("outbox", format!("{} effects, as the log asks for them", kept.len())));
    checks
        .push(("keys", format!("{} answers, each of the command that it was given to", kept_answers(&log)?)));

    if context.globals.json {
        let checks = checks.iter().map(|(check, found)| Checked { check, found }).collect();
        let hash = runtime::hex::hex(&whole.head.hash);
        let document = Verified { ok: true, at: time(started), records, hash, checks };
        return Ok(writeln!(context.out, "{}", text::json(&document))?);
    }
    for (check, found) in checks {
        writeln!(context.out, "{check:<11} ok  {found}")?;
    }
    Ok(())
}

/// Something in the file that somebody else made.
fn alien(path: &Path, strangers: &[Stranger]) -> Failure {
    let named = |stranger: &Stranger| match stranger.kind.as_str() {
        "table" | "view" => format!("{} `{}`", stranger.kind, stranger.name),
        kind => format!("{kind} `{}` on `{}`", stranger.name, stranger.table),
    };
    let all: Vec<String> = strangers.iter().map(named).collect();
    let drops = strangers.iter().map(|stranger| {
        format!("DROP {} \"{}\"", stranger.kind.to_uppercase(), stranger.name.replace('"', "\"\""))
    });
    let drops: Vec<String> = drops.collect();
    let message = format!("`{}` holds what adjutant did not make: {}", shown(path), visible(&all.join(", ")));
    let hint = format!("remove it with `sqlite3 {} '{}'`", shown(path), visible(&drops.join("; ")));
    Failure::new(Exit::Failed, message).hint(hint)
}

/// Whose answer it is.
#[derive(Deserialize)]
struct Kept {
    command: String,
}

/// Counts the answers that are kept for idempotency keys. Each names the command in whose entry it stands.
fn kept_answers(log: &dyn Log) -> Result<u64, Failure> {
    let mut answers = 0;
    let mut alien = None;
    log.scan(0, &mut |record| {
        let answer = (record.kind == "answer_kept").then(|| serde_json::from_str::<Kept>(&record.data));
        match answer {
            Some(Ok(answer)) if answer.command == record.command => answers += 1,
            Some(_) => alien = Some(record.seq),
            None => {}
        }
        if alien.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(Problem::from)?;
    match alien {
        Some(seq) => {
            let message = format!("record {seq} keeps an answer that its own command was not given");
            Err(Failure::new(Exit::Failed, message).hint("please report it, with an `adj export`"))
        }
        None => Ok(answers),
    }
}

#[derive(Debug, Args)]
pub struct Transfer {
    /// File; `-` is standard output for export and standard input for import
    file: PathBuf,
}

pub fn export(command: &Transfer, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    project.check_here("`adj export`")?;
    let Some(log) = project.read_log()? else {
        return Err(Failure::not_found(format!("there is no log at `{}`", shown(&project.log_path())))
            .hint("there is nothing to export yet"));
    };
    let path = &command.file;
    let failed = |error| transfer_failure(path, error);
    if path == Path::new("-") {
        transfer::export(&log, &mut *context.out, VERSION).map_err(failed)?;
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
    let mut beside = path.clone().into_os_string();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let written = || -> Result<u64, TransferError> {
        let mut out = BufWriter::new(File::create(&beside)?);
        let records = transfer::export(&log, &mut out, VERSION)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&beside, path)?;
        Ok(records)
    };
    let records = written().map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })?;
    told(context, records, "exported")
}

pub fn import(command: &Transfer, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    project.check_here("`adj import`")?;
    project.check_person("import a log")?;
    let path = &command.file;
    let failed = |error| transfer_failure(path, error);
    let records = if path == Path::new("-") {
        let mut log = project.own_log()?;
        transfer::import(&mut log, &mut io::stdin().lock(), VERSION).map_err(failed)?
    } else {
        let file = File::open(path).map_err(|error| failed(error.into()))?;
        let mut log = project.own_log()?;
        transfer::import(&mut log, &mut BufReader::new(file), VERSION).map_err(failed)?
    };
    told(context, records, "imported")
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
