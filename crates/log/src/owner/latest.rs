//! The end of the log, in memory: readers that follow it closely get new records without asking the owner.
//!
//! Invariants: it contains only records that are on disk; it has no gaps and ends where the log does; it is bounded.

use std::collections::VecDeque;

use crate::{Chain, Entry, Head, Record, Seq};

/// So much of the log's end is kept.
const BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Latest {
    /// All records after this one are here.
    after: Seq,
    records: VecDeque<Record>,
    bytes: usize,
}

impl Latest {
    /// Nothing is kept of what came before.
    pub fn from(after: Seq) -> Latest {
        Latest { after, ..Latest::default() }
    }

    /// Takes in what was written behind `before`, which is where this ends.
    pub fn add(&mut self, before: Head, entries: Vec<Entry>) {
        let mut chain = Chain::after(before);
        for record in entries.into_iter().flat_map(Entry::into_records) {
            let record = chain.seal(record);
            self.bytes += record.bytes();
            self.records.push_back(record);
        }
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.after = oldest.seq;
        }
    }

    /// At most `limit` records after `after`; `None` where they must be read from the log.
    pub fn read(&self, after: Seq, limit: usize) -> Option<Vec<Record>> {
        let known = usize::try_from(after.checked_sub(self.after)?).ok()?;
        let wanted = (known <= self.records.len()).then(|| self.records.range(known..))?;
        Some(wanted.take(limit).cloned().collect())
    }

    /// The same, and no more of them than hold about so many bytes, but one in any case.
    pub fn read_some(&self, after: Seq, limit: usize, bytes_max: usize) -> Option<Vec<Record>> {
        let known = usize::try_from(after.checked_sub(self.after)?).ok()?;
        let wanted = (known <= self.records.len()).then(|| self.records.range(known..))?;
        let mut bytes = 0;
        let fits = wanted.take(limit).take_while(|record| {
            let room = bytes < bytes_max;
            bytes += record.bytes();
            room
        });
        Some(fits.cloned().collect())
    }
}
