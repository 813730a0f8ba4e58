//! The hash chain: each record's hash covers the record and the hash before it.
//!
//! The hashed bytes are part of the format and never change for existing records: 32 bytes of the previous
//! hash, then seq, version, at and the lengths of the five texts as 8 little-endian bytes each, then the texts.
//! The lengths ensure that two different records never have the same bytes.

use sha2::{Digest, Sha256};

use super::{Hash, Head, LogError, Millis, Record, Seq};

/// A record before it has a home: its texts still belong to the entry that brought them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub seq: Seq,
    pub stream: &'a str,
    pub version: u64,
    pub at: Millis,
    pub actor: &'a str,
    pub command: &'a str,
    pub kind: &'a str,
    pub data: &'a str,
    pub hash: Hash,
}

impl Row<'_> {
    pub fn to_record(self) -> Record {
        Record {
            seq: self.seq,
            stream: self.stream.to_owned(),
            version: self.version,
            at: self.at,
            actor: self.actor.to_owned(),
            command: self.command.to_owned(),
            kind: self.kind.to_owned(),
            data: self.data.to_owned(),
            hash: self.hash,
        }
    }
}

impl<'a> From<&'a Record> for Row<'a> {
    fn from(record: &'a Record) -> Row<'a> {
        Row {
            seq: record.seq,
            stream: &record.stream,
            version: record.version,
            at: record.at,
            actor: &record.actor,
            command: &record.command,
            kind: &record.kind,
            data: &record.data,
            hash: record.hash,
        }
    }
}

/// Walks along the chain, to continue it or to check it.
#[derive(Debug)]
pub struct Chain {
    end: Head,
    /// Kept from record to record: one allocation, and one call of the hash function over one piece.
    bytes: Vec<u8>,
}

impl Chain {
    pub fn after(end: Head) -> Chain {
        Chain { end, bytes: Vec::new() }
    }

    pub fn end(&self) -> Head {
        self.end
    }

    /// Gives the row its hash, and moves on to it.
    pub(super) fn extend(&mut self, row: &mut Row<'_>) {
        row.hash = self.hash(row);
        self.end = Head { seq: row.seq, hash: row.hash };
    }

    /// Gives the record its number and its hash, and moves on to it.
    pub(crate) fn seal(&mut self, mut record: Record) -> Record {
        record.seq = self.end.seq + 1;
        record.hash = self.hash(&Row::from(&record));
        self.end = Head { seq: record.seq, hash: record.hash };
        record
    }

    /// Moves on to the record if it is the one that belongs here.
    pub fn check(&mut self, record: &Record) -> Result<(), LogError> {
        let seq = self.end.seq + 1;
        if record.seq != seq {
            return Err(LogError::Corrupt {
                seq,
                why: format!("it is missing; the next one is {}", record.seq),
            });
        }
        if self.hash(&Row::from(record)) != record.hash {
            let why = "its hash does not fit its content and the record before it".to_owned();
            return Err(LogError::Corrupt { seq, why });
        }
        self.end = Head { seq, hash: record.hash };
        Ok(())
    }

    /// What has been walked must end where the log says that it ends: otherwise the last records were cut off.
    pub fn check_end(&self, head: Head) -> Result<(), LogError> {
        if self.end.seq < head.seq {
            let why = format!("it is missing; the log should end at {}", head.seq);
            return Err(LogError::Corrupt { seq: self.end.seq + 1, why });
        }
        if self.end != head {
            let why = format!("the log should end at record {} with another hash", head.seq);
            return Err(LogError::Corrupt { seq: self.end.seq, why });
        }
        Ok(())
    }

    fn hash(&mut self, row: &Row<'_>) -> Hash {
        let texts = [row.stream, row.actor, row.command, row.kind, row.data];
        self.bytes.clear();
        self.bytes.extend_from_slice(&self.end.hash);
        self.bytes.extend_from_slice(&row.seq.to_le_bytes());
        self.bytes.extend_from_slice(&row.version.to_le_bytes());
        self.bytes.extend_from_slice(&row.at.to_le_bytes());
        for text in texts {
            self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        }
        for text in texts {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        Sha256::digest(&self.bytes).into()
    }
}

/// The sum of the hashes of a set of rows: it tells whether any row was added, lost or changed, can be kept up to
/// date row by row, and does not depend on their order. It is there against damage, not against a forger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum([u64; 4]);

impl Sum {
    pub fn add(&mut self, row: Hash) {
        for (lane, part) in self.0.iter_mut().zip(lanes(row)) {
            *lane = lane.wrapping_add(part);
        }
    }

    pub fn remove(&mut self, row: Hash) {
        for (lane, part) in self.0.iter_mut().zip(lanes(row)) {
            *lane = lane.wrapping_sub(part);
        }
    }

    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, lane) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&lane.to_le_bytes());
        }
        bytes
    }
}

fn lanes(hash: Hash) -> impl Iterator<Item = u64> {
    (0..4).map(move |lane| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash[lane * 8..lane * 8 + 8]);
        u64::from_le_bytes(bytes)
    })
}
