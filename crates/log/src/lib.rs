//! The log, the one place where anything is remembered, and the owner that decides commands on it. It may know the kernel and
//! SQLite, and nothing of git, agents or the fleet. Begin with the trait below, then `owner.rs` and `outbox.rs`.
//!
//! A log is a sequence of records, chained by hash. Beside it are the effects that the same transactions request
//! (the outbox) with their leases, and snapshots, which are a cache. A log knows nothing of machines or rules: a
//! record's `data` is text to it.
//!
//! Invariants, which `conformance.rs` holds every implementation to:
//! - an entry is appended whole or not at all, and a batch of entries is one transaction;
//! - when `append` returns `Ok`, every record of the batch is on disk;
//! - `seq` has no gaps, and each stream's `version` counts 1, 2, 3, …;
//! - an attempt number is never used twice for one effect, so an old attempt can always be recognised;
//! - a change by another program is reported with the first bad record, and never read as valid.

mod chain;
#[cfg(test)]
pub(crate) mod conformance;
mod holder;
mod ledger;
mod location;
mod memory;
pub mod outbox;
pub mod owner;
#[cfg(test)]
pub(crate) mod shared;
pub mod spoken;
mod sqlite;
pub mod transfer;

use std::ops::ControlFlow;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

pub use chain::Chain;
pub use holder::Holder;
pub use location::{Location, holder, open, open_for_reading};
pub use memory::MemoryLog;

/// Milliseconds since the Unix epoch. The log never reads a clock: whoever calls it says what time it is.
pub type Millis = i64;
/// A record's place in the log: 1, 2, 3, … without gaps.
pub type Seq = u64;
/// SHA-256 over the record and the hash before it.
pub type Hash = [u8; 32];

/// The most that one record's or effect's text may hold. Larger things belong in files that a record names.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// How many snapshots are kept: the newest, and one more in case that one turns out damaged.
pub const SNAPSHOTS_KEPT: usize = 2;

/// A log, used by one thread at a time. Its caller gathers what waits into a batch, so that one sync serves many commands.
///
/// After an error, `head` and `version` say what the log holds: the owner of any state folded from it reads on from
/// the last record that it knows, and does not assume that a failed batch left nothing.
///
/// A log may have other writers. `head`, `version`, `holds` and `outbox` are of one moment: that of the last `ready` or the
/// last write through this handle. If anybody else has changed the log since, every write is a `Conflict` that writes
/// nothing, and `ready` goes on from what is there now.
pub trait Log: Send {
    /// Writes the batch in one transaction: when it returns, what is `Written` is durable. Each entry sees what the
    /// entries before it did, and one that conflicts or is fenced is left out whole while the others are written.
    /// In one entry, effects are added before finished ones are removed. An effect whose id is still pending is
    /// a bug of the caller: `Duplicate`, and nothing of the batch is written. Where somebody else has appended since this
    /// handle last looked, what the batch was decided from may be out of date: `LogError::Conflict`.
    fn append(&mut self, batch: &[Entry]) -> Result<Vec<Appended>, LogError>;

    fn head(&self) -> Head;

    /// Makes the log ready to be written to, and says where it ends. A log that was closed after a failure is opened
    /// anew here, and may then hold what that failure left in doubt; what other writers have appended is seen from here
    /// on. Whoever decides asks first, and decides after.
    fn ready(&mut self) -> Result<Head, LogError>;

    /// How many records the stream has; 0 for one that was never written to.
    fn version(&self, stream: &str) -> Result<u64, LogError>;

    /// Visits the records after `after` in order, each one checked against the hash chain before it is shown.
    /// The record at `after` itself is taken at its word; `scan(0, …)` checks everything.
    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), LogError>;

    /// At most `limit` records after `after`, checked like those of `scan`.
    fn read(&self, after: Seq, limit: usize) -> Result<Vec<Record>, LogError> {
        let mut records = Vec::new();
        if limit == 0 {
            return Ok(records);
        }
        self.scan(after, &mut |record| {
            records.push(record.clone());
            if records.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(records)
    }

    /// The same, and no more of them than hold about so many bytes, but one in any case.
    fn read_some(&self, after: Seq, limit: usize, bytes_max: usize) -> Result<Vec<Record>, LogError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        if limit == 0 {
            return Ok(records);
        }
        self.scan(after, &mut |record| {
            bytes += record.bytes();
            records.push(record.clone());
            if records.len() < limit && bytes < bytes_max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(records)
    }

    /// The records of one stream after `after`, of those up to `through`. Each is checked against the hash before it; the
    /// records of other streams between them are not looked at, so that this costs less than a scan.
    fn read_stream(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, LogError> {
        self.read_stream_some(stream, after, through, usize::MAX)
    }

    /// The same, and no more of them than hold about so many bytes, but one in any case. Where that is not all, the last of
    /// them says where to go on.
    fn read_stream_some(
        &self,
        stream: &str,
        after: Seq,
        through: Seq,
        bytes_max: usize,
    ) -> Result<Vec<Record>, LogError> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        self.scan(after, &mut |record| {
            if record.seq > through || bytes >= bytes_max {
                return ControlFlow::Break(());
            }
            if record.stream == stream {
                bytes += record.bytes();
                records.push(record.clone());
            }
            ControlFlow::Continue(())
        })?;
        Ok(records)
    }

    /// Hands out effects that nobody holds, or whose lease ended at or before `now`: oldest first, each with a new
    /// attempt number, which is durable before this returns. Timers are never handed out.
    fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, LogError>;

    /// Gives an effect back at once. From then on the attempt is fenced. False: it already was.
    fn release(&mut self, fence: &Fence) -> Result<bool, LogError>;

    /// Whether the attempt is the current one, so that an entry with this fence would be written.
    fn holds(&self, fence: &Fence) -> Result<bool, LogError>;

    /// All that is pending, oldest first, for people to look at.
    fn outbox(&self) -> Result<Vec<Pending>, LogError>;

    /// Keeps a snapshot and drops all but the newest `SNAPSHOTS_KEPT`. One that is not of this log is a `Stray`.
    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), LogError>;

    /// The newest snapshot that is whole and that agrees with the log. Others are passed over in silence: a
    /// snapshot is a cache, and what it says can be had from the records.
    fn snapshot(&self) -> Result<Option<Snapshot>, LogError>;

    /// What somebody else made where the log is stored: none of it is read, and a trigger changes what is written.
    fn foreign_objects(&self) -> Result<Vec<ForeignObject>, LogError> {
        Ok(Vec::new())
    }
}

/// Why a log could not do what it was asked. `Full`, `Sync`, `Io` and `Conflict` may pass; the others need a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Nothing of the batch was written, and the log goes on when there is space again.
    #[error("no space is left for the log")]
    Full,
    /// The file was closed and opened anew, because a second sync after a failed one proves nothing. The batch is
    /// not acknowledged; `head` tells whether it survived all the same.
    #[error("the log could not be synced to disk: {why}")]
    Sync { why: String },
    #[error("the log could not be {doing}: {why}")]
    Io { doing: &'static str, why: String },
    /// The first record that is not what was written.
    #[error("record {seq} of the log is damaged: {why}")]
    Corrupt { seq: Seq, why: String },
    /// Something other than the records is damaged.
    #[error("the log is damaged: {part}: {why}")]
    Damaged { part: &'static str, why: String },
    /// The file is whole in itself, but older than what was acknowledged: restored from a copy, or cut.
    #[error("the log ends at record {found}, but record {acknowledged} was acknowledged")]
    Lost { acknowledged: Seq, found: Seq },
    /// There is no log where one should be. With `acknowledged`, there once was.
    #[error("there is no log at {}{}", path.display(), once_acknowledged(.acknowledged))]
    Missing { path: PathBuf, acknowledged: Option<Seq> },
    #[error("{} is not a log of adjutant: {why}", path.display())]
    Foreign { path: PathBuf, why: String },
    /// It would change what is written after it was decided.
    #[error("{} has a trigger `{name}` on its table `{table}`, which is not adjutant's", path.display())]
    Trigger { path: PathBuf, name: String, table: String },
    #[error("the log's {what} is version {found}, and this version of adjutant reads versions up to {known}")]
    Newer { what: &'static str, found: u32, known: u32 },
    /// Only where it may not be upgraded: when it is opened for reading.
    #[error(
        "the log's {what} is version {found}, and must be opened for writing once to be upgraded to {known}"
    )]
    Older { what: &'static str, found: u32, known: u32 },
    #[error("the log is held by {}", holder_name(.holder))]
    Held { holder: Option<Holder> },
    /// Another process wrote to the log although this one holds it. Nothing of the batch was written.
    #[error("another process has written to the log since record {since}")]
    Usurped { since: Seq },
    /// Another writer of a log that several share has changed it. Nothing of the batch was written: read on, and decide
    /// again.
    #[error("another writer has changed the log since record {since}")]
    Conflict { since: Seq },
    #[error("the log was opened for reading only")]
    ReadOnly,
    #[error("there is no record {after}: the log ends at {last}")]
    Beyond { after: Seq, last: Seq },
    #[error("effect `{effect}` is already pending")]
    Duplicate { effect: String },
    #[error("a text of {bytes} bytes is larger than the limit of the log ({limit})")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a snapshot of record {seq} does not agree with the log")]
    Stray { seq: Seq },
}

fn once_acknowledged(acknowledged: &Option<Seq>) -> String {
    acknowledged.map(|seq| format!(", though record {seq} was acknowledged")).unwrap_or_default()
}

fn holder_name(holder: &Option<Holder>) -> String {
    match holder {
        Some(Holder { pid, host, .. }) => format!("process {pid} on {host}"),
        None => "a process that has not said its name".to_owned(),
    }
}

/// What one decided command writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub command: String,
    pub actor: String,
    pub at: Millis,
    /// The versions of the streams that the decision was made from. Another version is a conflict.
    pub expected: Vec<(String, u64)>,
    /// The attempt whose outcome this is. If it is no longer the current one, the entry is dropped whole.
    pub fence: Option<Fence>,
    pub records: Vec<NewRecord>,
    pub effects: Vec<NewEffect>,
    /// Effects that are no longer wanted: done, or superseded.
    pub finished: Vec<String>,
}

impl Entry {
    /// What it writes, before it has a place in the log. The versions follow from those that are expected.
    pub(crate) fn into_records(self) -> impl Iterator<Item = Record> {
        let Entry { command, actor, at, mut expected, records, .. } = self;
        records.into_iter().map(move |NewRecord { stream, kind, data }| {
            let before = expected.iter_mut().find(|(named, _)| *named == stream);
            let version = before.map_or(0, |(_, version)| {
                *version += 1;
                *version
            });
            let (command, actor) = (command.clone(), actor.clone());
            Record { stream, version, at, actor, command, kind, data, ..Record::default() }
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    pub stream: String,
    pub kind: String,
    pub data: String,
}

/// Something to do in the world. One with a due time is a timer: it is never leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEffect {
    pub id: String,
    pub kind: String,
    pub due: Option<Millis>,
    pub data: String,
}

/// An attempt at an effect. It is the current one from its lease until it is released, leased again or finished;
/// for a timer, attempt 0 is the current one until it is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub effect: String,
    pub attempt: u32,
}

/// One row of the log, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub seq: Seq,
    pub stream: String,
    pub version: u64,
    pub at: Millis,
    pub actor: String,
    pub command: String,
    pub kind: String,
    pub data: String,
    pub hash: Hash,
}

impl Record {
    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let Record { stream, actor, command, kind, data, .. } = self;
        size_of::<Record>() + [stream, actor, command, kind, data].map(String::len).iter().sum::<usize>()
    }
}

/// The end of the log. An empty log ends at record 0, whose hash is all zeroes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub seq: Seq,
    pub hash: Hash,
}

/// An effect that was handed out to be done, until `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    pub id: String,
    pub kind: String,
    pub data: String,
    pub attempt: u32,
    pub until: Millis,
}

/// An effect that is not finished. `owner` and `until` are those of its lease, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub id: String,
    pub kind: String,
    pub due: Option<Millis>,
    pub data: String,
    /// The last attempt number that was given out; 0 before the first.
    pub attempt: u32,
    pub owner: Option<String>,
    pub until: Option<Millis>,
}

/// The state that the log's first `seq` records fold to. A cache: without it the log is read from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: Seq,
    pub hash: Hash,
    pub data: Vec<u8>,
}

impl Snapshot {
    fn checksum(&self) -> Hash {
        let hasher = Sha256::new().chain_update(self.seq.to_le_bytes()).chain_update(self.hash);
        hasher.chain_update(&self.data).finalize().into()
    }
}

/// A table, index, view or trigger beside the log's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    pub kind: String,
    pub name: String,
    pub table: String,
}

/// What became of one entry of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Written. `first` and `last` are equal to the head before it where the entry had no records.
    Written { first: Seq, last: Seq },
    /// A stream has another version than the decision was made from. Nothing of the entry was written.
    Conflict { stream: String, expected: u64, actual: u64 },
    /// The outcome of an attempt that is no longer the current one. Nothing of the entry was written.
    Fenced { effect: String, attempt: u32 },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What people read, and what they look up.
    #[test]
    fn errors_say_what_was_wrong_and_where() {
        let path = PathBuf::from("log.db");
        let holder = Holder { pid: 4711, started: 99, host: "mill".into() };
        let errors = [
            LogError::Full,
            LogError::Sync { why: "input/output error".into() },
            LogError::Io { doing: "written", why: "no such device".into() },
            LogError::Corrupt { seq: 17, why: "it is missing".into() },
            LogError::Damaged { part: "outbox", why: "effect `e1` is there twice".into() },
            LogError::Lost { acknowledged: 9, found: 7 },
            LogError::Missing { path: path.clone(), acknowledged: None },
            LogError::Missing { path: path.clone(), acknowledged: Some(9) },
            LogError::Foreign { path: path.clone(), why: "its application id is 0x0".into() },
            LogError::Trigger { path, name: "t".into(), table: "records".into() },
            LogError::Newer { what: "schema", found: 7, known: 1 },
            LogError::Held { holder: Some(holder) },
            LogError::Held { holder: None },
            LogError::Usurped { since: 3 },
            LogError::Conflict { since: 3 },
            LogError::Beyond { after: 5, last: 3 },
            LogError::Duplicate { effect: "e1".into() },
        ];
        let messages: Vec<_> = errors.iter().map(LogError::to_string).collect();
        assert_eq!(
            messages,
            [
                "no space is left for the log",
                "the log could not be synced to disk: input/output error",
                "the log could not be written: no such device",
                "record 17 of the log is damaged: it is missing",
                "the log is damaged: outbox: effect `e1` is there twice",
                "the log ends at record 7, but record 9 was acknowledged",
                "there is no log at log.db",
                "there is no log at log.db, though record 9 was acknowledged",
                "log.db is not a log of adjutant: its application id is 0x0",
                "log.db has a trigger `t` on its table `records`, which is not adjutant's",
                "the log's schema is version 7, and this version of adjutant reads versions up to 1",
                "the log is held by process 4711 on mill",
                "the log is held by a process that has not said its name",
                "another process has written to the log since record 3",
                "another writer has changed the log since record 3",
                "there is no record 5: the log ends at 3",
                "effect `e1` is already pending",
            ]
        );
    }
}
