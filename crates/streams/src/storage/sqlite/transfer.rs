//! Exports all streams as lines of JSON, imports them, and verifies that they are complete.
//!
//! An export is a consistent snapshot, also while a process writes. Its last line has the hash of all lines before it: a file that
//! was changed or truncated is refused, and then nothing is imported. The keys that sign webhooks are not part of it.

use std::io::{BufRead, Read, Write};
use std::path::Path;

use ring::digest::{Context, SHA256};
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mark::{Mark, sum};
use super::{FILE, lock, private, schema, unsigned};
use crate::hex::{hex, unhex};
use crate::storage::OpenError;

/// What the first line is known by.
pub const FORMAT: &str = "adjutant-streams";
const VERSION: u32 = 1;
/// The longest line that is read: the longest message, twice, and what stands around it.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The tables, and the columns that identify a row.
const TABLES: [(&str, &str); 5] = [
    ("streams", "id"),
    ("chunks", "stream, end"),
    ("producers", "stream, id"),
    ("subscriptions", "id"),
    ("links", "subscription, path"),
];

/// Why streams were not checked, exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("the streams are damaged: {0}")]
    Damaged(String),
    #[error("the streams cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("line {line} of the streams: {why}")]
    Line { line: u64, why: String },
    #[error("this project already has streams")]
    NotEmpty,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub streams: u64,
    pub chunks: u64,
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    streams: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Line {
    Table { name: String, columns: Vec<String> },
    Row(Vec<Value>),
    End { lines: u64, hash: String },
}

/// A connection that reads, if there have ever been streams in this folder.
fn reading(folder: &Path) -> Result<Option<Connection>, TransferError> {
    let file = folder.join(FILE);
    // Read first: the streams may have moved on by the time that they are read, but never back.
    let mark = Mark::read(&file);
    let there = std::fs::metadata(&file).is_ok_and(|there| there.len() > 0);
    if !there {
        return match mark.filter(|mark| mark.commits > 0) {
            Some(mark) => Err(TransferError::Damaged(mark.check(None).err().unwrap_or_default())),
            None => Ok(None),
        };
    }
    let db = schema::reader(&file)?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found = match version {
        schema::VERSION => Mark::of(&db)?,
        _ => None,
    };
    match (&mark, version) {
        (Some(mark), _) if mark.commits > 0 => mark.check(found.as_ref()).map_err(TransferError::Damaged)?,
        (_, 0) => return Ok(None),
        _ => {}
    }
    if version != schema::VERSION {
        let why = format!("their tables are of version {version}; `adj serve` brings them up to date");
        return Err(TransferError::Damaged(why));
    }
    Ok(Some(db))
}

/// Looks at every stream, also beside the process that writes them.
pub fn verify(folder: &Path) -> Result<Checked, TransferError> {
    let Some(db) = reading(folder)? else { return Ok(Checked::default()) };
    let view = db.unchecked_transaction()?;
    checked(&view)
}

fn checked(db: &Connection) -> Result<Checked, TransferError> {
    let damaged = |why: String| TransferError::Damaged(why);
    let whole: String = db.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if whole != "ok" {
        return Err(damaged(whole));
    }
    let mut all = Checked::default();
    let mut streams = db.prepare("SELECT id, path, tail, fork_at FROM streams ORDER BY id")?;
    let mut chunks = db.prepare("SELECT end, data, sum FROM chunks WHERE stream = ?1 ORDER BY end")?;
    let mut rows = streams.query(())?;
    while let Some(row) = rows.next()? {
        let (id, path): (i64, String) = (row.get(0)?, row.get(1)?);
        let (tail, mut at) = (unsigned(row.get(2)?), unsigned(row.get(3)?));
        all.streams += 1;
        let mut pieces = chunks.query([id])?;
        while let Some(piece) = pieces.next()? {
            let end = unsigned(piece.get(0)?);
            let data = piece.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let kept: Option<Vec<u8>> = piece.get(2)?;
            if at + data.len() as u64 != end {
                return Err(damaged(format!("`{path}` lacks what stood behind position {at}")));
            }
            if kept.is_some_and(|kept| kept != sum(data)) {
                return Err(damaged(format!(
                    "`{path}` does not hold what was written before position {end}"
                )));
            }
            at = end;
            all.chunks += 1;
            all.bytes += data.len() as u64;
        }
        if at != tail {
            return Err(damaged(format!("`{path}` ends at position {at}, and should at {tail}")));
        }
    }
    Ok(all)
}

/// Writes all streams; nothing where there are none. What is damaged is not exported.
pub fn export(folder: &Path, out: &mut dyn Write) -> Result<u64, TransferError> {
    let Some(db) = reading(folder)? else { return Ok(0) };
    let view = db.unchecked_transaction()?;
    let streams = checked(&view)?.streams;
    let subscriptions: i64 = view.query_row("SELECT count(*) FROM subscriptions", (), |row| row.get(0))?;
    if streams == 0 && subscriptions == 0 {
        return Ok(0);
    }
    let mut out = Lines { out, hash: Context::new(&SHA256), lines: 0 };
    out.line(&Header { format: FORMAT.to_owned(), version: VERSION, streams })?;
    for (name, key) in TABLES {
        let mut statement = view.prepare(&format!("SELECT * FROM {name} ORDER BY {key}"))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let width = columns.len();
        out.line(&Line::Table { name: name.to_owned(), columns })?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let cells = (0..width).map(|column| Ok(shown(row.get_ref(column)?)));
            out.line(&Line::Row(cells.collect::<Result<_, rusqlite::Error>>()?))?;
        }
    }
    let (lines, hash) = (out.lines, hex(out.hash.clone().finish().as_ref()));
    out.line(&Line::End { lines, hash })?;
    Ok(streams)
}

struct Lines<'o> {
    out: &'o mut dyn Write,
    hash: Context,
    lines: u64,
}

impl Lines<'_> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), TransferError> {
        let mut text = serde_json::to_vec(line).map_err(std::io::Error::from)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.lines += 1;
        Ok(self.out.write_all(&text)?)
    }
}

/// Bytes are written as hexadecimal digits.
fn shown(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!({ "hex": hex(bytes) }),
    }
}

fn read(cell: &Value) -> Option<Cell> {
    Some(match cell {
        Value::Null => Cell::Null,
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cell::Integer(number),
            None => Cell::Real(number.as_f64()?),
        },
        Value::String(text) => Cell::Text(text.clone()),
        Value::Object(members) => Cell::Blob(unhex(members.get("hex")?.as_str()?)?),
        Value::Bool(_) | Value::Array(_) => return None,
    })
}

/// Reads what [`export`] wrote, if there is anything, and writes it in one transaction: all of it is imported, or nothing.
pub fn import(folder: &Path, input: &mut dyn BufRead) -> Result<u64, TransferError> {
    let mut lines = Incoming { input, hash: Context::new(&SHA256), number: 0 };
    let Some(first) = lines.next()? else { return Ok(0) };
    let wrong = |line: u64, why: &str| TransferError::Line { line, why: why.to_owned() };
    let header: Header = serde_json::from_slice(&first).map_err(|error| wrong(1, &error.to_string()))?;
    if header.format != FORMAT || header.version > VERSION {
        return Err(wrong(1, "it is not an export of streams that this version reads"));
    }
    std::fs::create_dir_all(folder)?;
    let _lock = lock(folder)?;
    let file = folder.join(FILE);
    if Mark::read(&file).is_some_and(|mark| mark.commits > 0) {
        return Err(TransferError::NotEmpty);
    }
    private(&file)?;
    let mut db = schema::writer(&file, false)
        .map_err(|source| OpenError::Database { file: file.clone(), source: source.into() })?;
    let transaction = db.transaction()?;
    let there: i64 = transaction.query_row("SELECT count(*) FROM streams", (), |row| row.get(0))?;
    if there > 0 {
        return Err(TransferError::NotEmpty);
    }
    let mut insert: Option<(String, usize)> = None;
    loop {
        let (before, hash) = (lines.number, hex(lines.hash.clone().finish().as_ref()));
        let Some(text) = lines.next()? else { return Err(wrong(before + 1, "the export ends too early")) };
        let at = lines.number;
        let line: Line = serde_json::from_slice(&text).map_err(|error| wrong(at, &error.to_string()))?;
        match line {
            Line::Table { name, columns } => {
                let known = TABLES.iter().any(|(known, _)| *known == name);
                let own: Vec<String> = match known {
                    true => {
                        let statement = transaction.prepare(&format!("SELECT * FROM {name} LIMIT 0"))?;
                        statement.column_names().map(str::to_owned).collect()
                    }
                    false => Vec::new(),
                };
                if columns.is_empty() || !columns.iter().all(|column| own.contains(column)) {
                    return Err(wrong(at, "it names a table or column that there is not"));
                }
                let places = vec!["?"; columns.len()].join(", ");
                let into = format!("INSERT INTO {name} ({}) VALUES ({places})", columns.join(", "));
                insert = Some((into, columns.len()));
            }
            Line::Row(cells) => {
                let Some((into, width)) = &insert else { return Err(wrong(at, "it is of no table")) };
                let cells: Option<Vec<Cell>> = cells.iter().map(read).collect();
                let cells = cells.filter(|cells| cells.len() == *width);
                let cells = cells.ok_or_else(|| wrong(at, "its values are not those of a row"))?;
                transaction.prepare_cached(into)?.execute(params_from_iter(cells))?;
            }
            Line::End { lines, hash: said } => {
                if lines != before || said != hash {
                    return Err(wrong(at, "what stands before it was changed"));
                }
                break;
            }
        }
    }
    checked(&transaction)?;
    transaction.execute("UPDATE tally SET commits = commits + 1", ())?;
    transaction.commit()?;
    if let Some(mark) = Mark::of(&db)? {
        drop(super::mark::Marker::open(&file, &mark)?);
    }
    Ok(header.streams)
}

struct Incoming<'i> {
    input: &'i mut dyn BufRead,
    hash: Context,
    number: u64,
}

impl Incoming<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>, TransferError> {
        let mut text = Vec::new();
        let read = Read::take(&mut *self.input, LINE_BYTES_MAX).read_until(b'\n', &mut text)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if text.last() != Some(&b'\n') {
            let why = "it is too long, or the export ends in the middle of it".to_owned();
            return Err(TransferError::Line { line: self.number, why });
        }
        self.hash.update(&text);
        Ok(Some(text))
    }
}
