//! Export and import: the whole log as JSON lines that other programs can read, and back.
//!
//! The first line names the format; each following line is one record with its hash. Invariants: an imported log has
//! the same hashes and gives the same World; a file with one changed byte is refused with the number of the line,
//! and then nothing is imported.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;

use kernel::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::owner::{Folded, OpenError, effect_of};
use crate::{Chain, Entry, Head, Log, LogError, NewRecord, Record, Seq};
use base::hex::{hex, unhex};

/// The version of the format. A reader refuses a newer one.
pub const FORMAT: u32 = 1;
const NAME: &str = "adjutant-log";
/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    #[error("line 1: the file has format {found}, and this version reads formats up to {FORMAT}")]
    Newer { found: u32 },
    #[error("the project is not empty: its log has {records} records")]
    NotEmpty { records: Seq },
    #[error("line {line}: {error}")]
    Open { line: u64, error: OpenError },
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    /// The program that wrote it.
    #[serde(default)]
    adjutant: String,
    records: Seq,
    hash: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    seq: Seq,
    stream: String,
    version: u64,
    at: i64,
    actor: String,
    command: String,
    kind: String,
    /// As it was written, byte for byte: the hash is over the text.
    #[serde(borrow)]
    data: &'a RawValue,
    hash: String,
}

/// Writes every record. Returns how many there are.
pub fn export(log: &dyn Log, out: &mut dyn Write, version: &str) -> Result<Seq, TransferError> {
    let head = log.head();
    let header = Header {
        format: NAME.to_owned(),
        version: FORMAT,
        adjutant: version.to_owned(),
        records: head.seq,
        hash: hex(&head.hash),
    };
    write_line(out, &header)?;
    let mut written = Ok(());
    log.scan(0, &mut |record| {
        if record.seq > head.seq {
            // Its owner has written on since.
            return ControlFlow::Break(());
        }
        written = export_record(out, record);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    out.flush()?;
    Ok(head.seq)
}

fn export_record(out: &mut dyn Write, record: &Record) -> Result<(), TransferError> {
    let not_json = |error: serde_json::Error| LogError::Corrupt { seq: record.seq, why: error.to_string() };
    let data: &RawValue = serde_json::from_str(&record.data).map_err(not_json)?;
    let line = Line {
        seq: record.seq,
        stream: record.stream.clone(),
        version: record.version,
        at: record.at,
        actor: record.actor.clone(),
        command: record.command.clone(),
        kind: record.kind.clone(),
        data,
        hash: hex(&record.hash),
    };
    write_line(out, &line)
}

fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<(), TransferError> {
    let text = serde_json::to_string(line).map_err(io::Error::from)?;
    out.write_all(text.as_bytes())?;
    Ok(out.write_all(b"\n")?)
}

/// Reads everything, checks it, and writes it in one transaction: all of it is imported, or nothing. What stands behind the
/// last record is left for whoever knows it.
pub fn import(log: &mut dyn Log, input: &mut dyn BufRead, version: &str) -> Result<Seq, TransferError> {
    let there = log.ready()?;
    if there.seq > 0 {
        return Err(TransferError::NotEmpty { records: there.seq });
    }
    let mut lines = Lines { input, number: 0, text: Vec::new() };
    let header = read_header(&mut lines)?;
    let mut chain = Chain::after(Head::default());
    let mut folded = Folded::default();
    let mut entries: Vec<Entry> = Vec::new();
    while chain.end().seq < header.records
        && let Some(text) = lines.next()?
    {
        let line = lines.number;
        let bad = |why: String| TransferError::Line { line, why };
        let record = read_record(&text).map_err(bad)?;
        chain.check(&record).map_err(|error| bad(error.to_string()))?;
        let event = folded.fold_record(record.seq, &record.kind, &record.data, version);
        let event = event.map_err(|error| TransferError::Open { line, error })?;
        push(&mut entries, record, &event);
    }
    if chain.end().seq != header.records || hex(&chain.end().hash) != header.hash {
        let why =
            format!("the file ends after record {}, and should after {}", chain.end().seq, header.records);
        return Err(TransferError::Line { line: lines.number, why });
    }
    log.append(&entries)?;
    let imported = log.head();
    assert_eq!(imported, chain.end(), "what was imported has the hashes that it had");
    Ok(imported.seq)
}

fn read_header(lines: &mut Lines) -> Result<Header, TransferError> {
    let bad = |why: String| TransferError::Line { line: 1, why };
    let text = lines.next()?.ok_or_else(|| bad("the file is empty".to_owned()))?;
    let header: Header = serde_json::from_str(&text)
        .map_err(|error| bad(format!("it is not the first line of an export: {error}")))?;
    if header.format != NAME {
        return Err(bad(format!("it is not an export of adjutant, but `{}`", header.format.escape_debug())));
    }
    if header.version > FORMAT {
        return Err(TransferError::Newer { found: header.version });
    }
    Ok(header)
}

fn read_record(text: &str) -> Result<Record, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Record {
        seq: line.seq,
        stream: line.stream,
        version: line.version,
        at: line.at,
        actor: line.actor,
        command: line.command,
        kind: line.kind,
        data: line.data.get().to_owned(),
        hash: unhex(&line.hash).ok_or("its hash is not 64 hexadecimal digits")?,
    })
}

/// Records of one command go into one entry, as they did when they were written.
fn push(entries: &mut Vec<Entry>, record: Record, event: &Event) {
    let Record { stream, at, actor, command, kind, data, .. } = record;
    let same = |entry: &&mut Entry| entry.command == command && entry.actor == actor && entry.at == at;
    if entries.last_mut().filter(same).is_none() {
        entries.push(Entry { command, actor, at, ..Entry::default() });
    }
    if let Some(entry) = entries.last_mut() {
        entry.records.push(NewRecord { stream, kind, data });
        match event {
            Event::EffectAsked(asked) => entry.effects.push(effect_of(asked)),
            Event::EffectEnded(ended) => entry.finished.push(ended.id.to_string()),
            _ => {}
        }
    }
}

struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<String>, TransferError> {
        self.text.clear();
        self.number += 1;
        let line = self.number;
        let read = io::Read::take(&mut *self.input, LINE_BYTES_MAX).read_until(b'\n', &mut self.text)?;
        match self.text.last() {
            None => return Ok(None),
            Some(b'\n') => drop(self.text.pop()),
            Some(_) if read as u64 == LINE_BYTES_MAX => {
                return Err(TransferError::Line {
                    line,
                    why: format!("it is longer than {LINE_BYTES_MAX} bytes"),
                });
            }
            Some(_) => {}
        }
        let text = String::from_utf8(std::mem::take(&mut self.text));
        text.map(Some).map_err(|_| TransferError::Line { line, why: "it is not UTF-8".to_owned() })
    }
}
