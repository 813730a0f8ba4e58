//! A log in memory, for the simulator: the same rules and hashes, nothing on disk.
//!
//! A clone shares its parts with the original, so a crash is simulated by keeping a clone and continuing from it.

use std::ops::ControlFlow;
use std::sync::Arc;

use imbl::Vector;

use super::chain::Chain;
#[cfg(test)]
use super::conformance::Damage;
use super::ledger::Ledger;
use super::{
    Appended, Entry, Fence, Hash, Head, Leased, Log, LogError, Millis, Pending, Record, SNAPSHOTS_KEPT, Seq,
    Snapshot,
};

#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    ledger: Ledger,
    /// Record n is at n - 1.
    records: Vector<Arc<Record>>,
    /// By seq, each with its checksum.
    snapshots: Vector<Arc<(Snapshot, Hash)>>,
}

impl MemoryLog {
    pub fn new() -> MemoryLog {
        MemoryLog::default()
    }

    fn hash_at(&self, seq: Seq) -> Option<Hash> {
        match seq {
            0 => Some([0; 32]),
            _ => self.records.get(seq as usize - 1).map(|record| record.hash),
        }
    }
}

impl Log for MemoryLog {
    fn append(&mut self, batch: &[Entry]) -> Result<Vec<Appended>, LogError> {
        let mut next = self.ledger.clone();
        let (appended, change) = next.append(batch)?;
        self.records.extend(change.rows.into_iter().map(|row| Arc::new(row.to_record())));
        self.ledger = next;
        Ok(appended)
    }

    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn ready(&mut self) -> Result<Head, LogError> {
        Ok(self.head())
    }

    fn version(&self, stream: &str) -> Result<u64, LogError> {
        Ok(self.ledger.version(stream))
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), LogError> {
        let head = self.head();
        if after > head.seq {
            return Err(LogError::Beyond { after, last: head.seq });
        }
        let Some(hash) = self.hash_at(after) else {
            return Err(LogError::Corrupt { seq: after, why: "it is missing".to_owned() });
        };
        let mut chain = Chain::after(Head { seq: after, hash });
        for record in self.records.skip(after as usize).iter() {
            chain.check(record)?;
            if visit(record).is_break() {
                return Ok(());
            }
        }
        chain.check_end(head)
    }

    fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, LogError> {
        Ok(self.ledger.lease(owner, now, until, limit).0)
    }

    fn release(&mut self, fence: &Fence) -> Result<bool, LogError> {
        Ok(self.ledger.release(fence).is_some())
    }

    fn holds(&self, fence: &Fence) -> Result<bool, LogError> {
        Ok(self.ledger.holds(fence))
    }

    fn outbox(&self) -> Result<Vec<Pending>, LogError> {
        Ok(self.ledger.outbox())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        if self.hash_at(snapshot.seq) != Some(snapshot.hash) {
            return Err(LogError::Stray { seq: snapshot.seq });
        }
        self.snapshots.retain(|kept| kept.0.seq != snapshot.seq);
        let place = self.snapshots.iter().take_while(|kept| kept.0.seq < snapshot.seq).count();
        self.snapshots.insert(place, Arc::new((snapshot.clone(), snapshot.checksum())));
        let surplus = self.snapshots.len().saturating_sub(SNAPSHOTS_KEPT);
        self.snapshots = self.snapshots.skip(surplus);
        Ok(())
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        let usable = self.snapshots.iter().rev().find(|kept| {
            let (snapshot, checksum) = &***kept;
            snapshot.checksum() == *checksum && self.hash_at(snapshot.seq) == Some(snapshot.hash)
        });
        Ok(usable.map(|kept| kept.0.clone()))
    }
}

#[cfg(test)]
impl MemoryLog {
    /// Whether both hold the same. The hash stands for the records, the sum for effects and leases.
    pub(crate) fn is_as(&self, other: &MemoryLog) -> bool {
        let state = |log: &MemoryLog| (log.head(), log.ledger.outbox_sum().to_bytes());
        state(self) == state(other)
    }

    /// What someone with an editor does. False where there is nothing that could be damaged so.
    pub(crate) fn damage(&mut self, damage: Damage) -> bool {
        let records = &mut self.records;
        let snapshots = &mut self.snapshots;
        match damage {
            Damage::EditRecord(seq) => Arc::make_mut(&mut records[seq as usize - 1]).data.push('!'),
            Damage::RemoveRecord(seq) => drop(records.remove(seq as usize - 1)),
            Damage::SwapRecords(a, b) => {
                records.swap(a as usize - 1, b as usize - 1);
                Arc::make_mut(&mut records[a as usize - 1]).seq = a;
                Arc::make_mut(&mut records[b as usize - 1]).seq = b;
            }
            Damage::EditSnapshot => {
                let newest = snapshots.back_mut().unwrap();
                Arc::make_mut(newest).0.data.push(0);
            }
            Damage::AlienSnapshot => {
                let (snapshot, checksum) = Arc::make_mut(snapshots.back_mut().unwrap());
                snapshot.hash = [7; 32];
                *checksum = snapshot.checksum();
            }
            // The outbox is nowhere but in the ledger: there is no second place that could disagree.
            Damage::EditEffect | Damage::RemoveEffect => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{Specimen, conformance, numbered};

    conformance!(InMemory::default());

    /// A crash is simulated this way: the clone is what was on disk.
    #[test]
    fn a_clone_goes_its_own_way() {
        let mut log = MemoryLog::new();
        numbered(&mut log, 1..=5);
        let mut copy = log.clone();
        numbered(&mut log, 6..=7);
        assert_eq!(copy.head().seq, 5);
        numbered(&mut copy, 6..=7);
        assert_eq!(copy.head(), log.head());
        assert_eq!(copy.read(0, 10), log.read(0, 10));
    }

    #[derive(Default)]
    struct InMemory {
        log: MemoryLog,
    }

    impl Specimen for InMemory {
        fn log(&mut self) -> &mut dyn Log {
            &mut self.log
        }

        fn reopen(&mut self) -> Result<(), LogError> {
            Ok(())
        }

        fn damage(&mut self, damage: Damage) -> bool {
            self.log.damage(damage)
        }
    }
}
