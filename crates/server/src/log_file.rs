//! The log as a file of this machine: whether it is whole, and all of it as JSON lines. It is read as it lies there, beside
//! whoever owns it.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use base::clock::now;
use kernel::Event;
use log::owner::{Folded, VERSION};
use log::transfer::{self, TransferError};
use log::{ForeignObject, Location, Log, LogError};

use api::types::history::{Checked, ExportHead, Verified};
use api::{Problem, time};

const DAMAGED: &str = "LOG_DAMAGED";
const REPORT: &str = "please report it, with an `adj export`";

/// The log for reading; `None` where none has been begun.
pub fn read(path: &Path) -> Result<Option<Box<dyn Log>>, LogError> {
    match log::open_for_reading(&Location::File(path.to_owned())) {
        Ok(log) => Ok(Some(log)),
        Err(LogError::Missing { acknowledged: None, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks at everything, in order. The first thing that is wrong ends it.
pub fn verified(path: &Path) -> Result<Verified, Problem> {
    let started = now();
    let Some(log) = read(path)? else {
        return Err(no_log(path).hint("the first task creates it"));
    };
    let mut checks = Vec::new();
    let mut passed = |check: &str, found: String| checks.push(Checked { check: check.to_owned(), found });
    let foreign = log.foreign_objects()?;
    if !foreign.is_empty() {
        return Err(alien(path, &foreign));
    }
    passed("schema", "no table, index, view or trigger but adjutant's own".to_owned());
    let whole = Folded::read_all(&*log, VERSION)?;
    let records = whole.head.seq;
    passed("hash chain", format!("{records} records, each with the hash of its content"));
    passed("events", format!("{records} events fold to {} tasks", whole.world.tasks.len()));

    let violations: Vec<_> =
        kernel::invariants::check(&whole.world).iter().map(ToString::to_string).collect();
    if !violations.is_empty() {
        let detail = format!("the log folds to an invalid state: {}", violations.join("; "));
        return Err(Problem::new(500, DAMAGED, detail).hint(REPORT));
    }
    passed("invariants", "all hold".to_owned());

    let newest = Folded::read(&*log, VERSION)?;
    if newest.world != whole.world {
        let detail = format!("the snapshot of record {} differs from the log", newest.snapshot);
        return Err(Problem::new(500, DAMAGED, detail).hint(REPORT));
    }
    let snapshot = match newest.snapshot {
        0 => "there is none".to_owned(),
        seq => format!("the one of record {seq} agrees"),
    };
    passed("snapshot", snapshot);
    let pending = log.outbox()?;
    let asked: Vec<_> = whole.world.effects.keys().map(|id| id.as_str()).collect();
    let mut kept: Vec<_> = pending.iter().map(|pending| pending.id.as_str()).collect();
    kept.sort_unstable();
    if kept != asked {
        let detail = "the outbox differs from the effects in the log";
        return Err(Problem::new(500, DAMAGED, detail));
    }
    passed("outbox", format!("{} effects, the same as in the log", kept.len()));
    passed("keys", format!("{} answers, each stored with its own command", kept_answers(&*log)?));
    let streams = streams::verify(&streams_beside(path)).map_err(of_streams)?;
    let streams::Checked { streams, chunks, bytes } = streams;
    passed("streams", format!("{streams} streams, {chunks} chunks with {bytes} bytes, as acknowledged"));
    let hash = base::hex::hex(&whole.head.hash);
    Ok(Verified { ok: true, at: time(started), records, hash, checks })
}

/// The durable streams that clients write, beside the log.
pub fn streams_beside(log: &Path) -> PathBuf {
    log.with_file_name("streams")
}

/// All of the log, and behind it the streams that clients write. Says how many records there are.
pub fn export(path: &Path, out: &mut dyn Write) -> Result<u64, TransferError> {
    let log = to_export(path).map_err(|problem| TransferError::Io(io::Error::other(problem.detail)))?;
    let records = transfer::export(&*log, out, VERSION)?;
    streams::export(&streams_beside(path), out)
        .map_err(|error| TransferError::Io(io::Error::other(error)))?;
    out.flush()?;
    Ok(records)
}

pub fn of_streams(error: streams::TransferError) -> Problem {
    let hint = "stop the server, then restore a backup (`adj import`), or delete `streams/streams.db.head` to \
     continue with the remaining streams";
    match &error {
        streams::TransferError::Damaged(_) | streams::TransferError::Database(_) => {
            Problem::new(500, "STREAMS_DAMAGED", error.to_string()).hint(hint)
        }
        _ => Problem::new(500, "STREAMS_NOT_READ", error.to_string()),
    }
}

/// What an export would begin with now.
pub fn export_head(path: &Path) -> Result<ExportHead, Problem> {
    let head = to_export(path)?.head();
    Ok(ExportHead { records: head.seq, hash: base::hex::hex(&head.hash) })
}

/// For an export: there is something.
pub fn to_export(path: &Path) -> Result<Box<dyn Log>, Problem> {
    read(path)?.ok_or_else(|| no_log(path).hint("there is nothing to export yet"))
}

fn no_log(path: &Path) -> Problem {
    Problem::not_found(format!("there is no log at `{}`", path.display()))
}

/// Something in the file that somebody else made.
fn alien(path: &Path, foreign: &[ForeignObject]) -> Problem {
    let named = |object: &ForeignObject| match object.kind.as_str() {
        "table" | "view" => format!("{} `{}`", object.kind, object.name),
        kind => format!("{kind} `{}` on `{}`", object.name, object.table),
    };
    let all: Vec<String> = foreign.iter().map(named).collect();
    let drops = foreign.iter().map(|object| {
        format!("DROP {} \"{}\"", object.kind.to_uppercase(), object.name.replace('"', "\"\""))
    });
    let drops: Vec<String> = drops.collect();
    let path = path.display();
    Problem::new(
        500,
        "LOG_FOREIGN",
        format!("`{path}` contains objects that adjutant did not create: {}", all.join(", ")),
    )
    .hint(format!("remove it with `sqlite3 {path} '{}'`", drops.join("; ")))
}

/// Counts the answers that are kept for idempotency keys. Each names the command in whose entry it stands.
fn kept_answers(log: &dyn Log) -> Result<u64, Problem> {
    let mut answers = 0;
    let mut alien = None;
    log.scan(0, &mut |record| {
        // Every record has been decoded by now: one that cannot be read was reported before.
        if let Ok(Event::AnswerKept(kept)) = Event::decode(&record.kind, &record.data) {
            match kept.command == record.command {
                true => answers += 1,
                false => alien = Some(record.seq),
            }
        }
        if alien.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match alien {
        Some(seq) => {
            let detail = format!("record {seq} stores an answer of another command");
            Err(Problem::new(500, DAMAGED, detail).hint(REPORT))
        }
        None => Ok(answers),
    }
}
