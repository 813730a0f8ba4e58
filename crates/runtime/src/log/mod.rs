//! The log: the one place where anything is remembered.
//!
//! A log is a sequence of records, chained by hash, and beside it what the same transactions asked for: effects
//! (the outbox) with their leases, and snapshots, which are a cache. It knows nothing of machines or rules: a
//! record's `data` is text to it.
//!
//! Invariants, which `conformance.rs` holds every implementation to:
//! - an entry is appended whole or not at all, and a batch of entries is one transaction;
//! - when `append` returns `Ok`, every record of the batch is on disk;
//! - `seq` has no gaps, and each stream's `version` counts 1, 2, 3, …;
//! - an attempt number is never given out twice for one effect, so an old attempt can always be told apart.

/// Milliseconds since the Unix epoch. The log never reads a clock: whoever calls it says what time it is.
pub type Millis = i64;
/// A record's place in the log: 1, 2, 3, … without gaps.
pub type Seq = u64;
/// SHA-256 over the record and the hash before it.
pub type Hash = [u8; 32];

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    pub stream: String,
    pub kind: String,
    pub data: String,
}

/// Something to do in the world. One with a due time is a timer: it is never leased, only reported when due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEffect {
    pub id: String,
    pub kind: String,
    pub due: Option<Millis>,
    pub data: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub effect: String,
    pub attempt: u32,
}

/// One row of the log, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: Seq,
    pub hash: Hash,
}

/// An effect that was handed out to be done, until `until` unless it is renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    pub id: String,
    pub kind: String,
    pub data: String,
    pub attempt: u32,
    pub until: Millis,
}

/// A timer whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub id: String,
    pub kind: String,
    pub due: Millis,
    pub data: String,
}

/// The state that the log's first `seq` records fold to. A cache: without it the log is read from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub seq: Seq,
    pub hash: Hash,
    pub data: Vec<u8>,
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
