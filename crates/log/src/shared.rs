//! A log that several writers share, for tests: what a log on a server is to its owners.
//!
//! Each handle has a view of its own, which moves with `ready` and with what it writes itself. A write is taken only if
//! the view is what is stored; otherwise it is a conflict, and nothing is written.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::conformance::{Damage, SharedSpecimen, Specimen, conflicts, conformance};
use crate::{
    Appended, Entry, Fence, Head, Leased, Log, LogError, MemoryLog, Millis, Pending, Record, Seq, Snapshot,
};

#[derive(Clone)]
pub(crate) struct SharedLog {
    stored: Arc<Mutex<MemoryLog>>,
    view: MemoryLog,
    /// What others do before the appends of this handle, one after the other.
    interruptions: Arc<Mutex<VecDeque<Interruption>>>,
}

/// What another writer does, with a handle of its own.
pub(crate) type Interruption = Box<dyn FnOnce(SharedLog) + Send>;

impl SharedLog {
    pub(crate) fn new() -> SharedLog {
        SharedLog { stored: Arc::default(), view: MemoryLog::new(), interruptions: Arc::default() }
    }

    /// A handle of another writer.
    pub(crate) fn other(&self) -> SharedLog {
        let view = self.stored().clone();
        SharedLog { stored: self.stored.clone(), view, interruptions: Arc::default() }
    }

    /// Before the next append of this handle that has none yet, somebody else does this.
    pub(crate) fn interrupt(&self, by: impl FnOnce(SharedLog) + Send + 'static) {
        self.interruptions.lock().unwrap().push_back(Box::new(by));
    }

    fn stored(&self) -> MutexGuard<'_, MemoryLog> {
        self.stored.lock().unwrap()
    }

    /// Writes, if what is stored is what this handle knows.
    fn write<T>(&mut self, write: impl FnOnce(&mut MemoryLog) -> Result<T, LogError>) -> Result<T, LogError> {
        let mut stored = self.stored.lock().unwrap();
        if !stored.is_as(&self.view) {
            return Err(LogError::Conflict { since: self.view.head().seq });
        }
        let written = write(&mut stored)?;
        self.view = stored.clone();
        Ok(written)
    }
}

impl Log for SharedLog {
    fn append(&mut self, batch: &[Entry]) -> Result<Vec<Appended>, LogError> {
        let interruption = self.interruptions.lock().unwrap().pop_front();
        if let Some(interruption) = interruption {
            interruption(self.other());
        }
        self.write(|log| log.append(batch))
    }

    fn head(&self) -> Head {
        self.view.head()
    }

    fn ready(&mut self) -> Result<Head, LogError> {
        let stored = self.stored().clone();
        self.view = stored;
        Ok(self.view.head())
    }

    fn version(&self, stream: &str) -> Result<u64, LogError> {
        self.view.version(stream)
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), LogError> {
        self.view.scan(after, visit)
    }

    fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, LogError> {
        self.write(|log| log.lease(owner, now, until, limit))
    }

    fn release(&mut self, fence: &Fence) -> Result<bool, LogError> {
        self.write(|log| log.release(fence))
    }

    fn holds(&self, fence: &Fence) -> Result<bool, LogError> {
        self.view.holds(fence)
    }

    fn outbox(&self) -> Result<Vec<Pending>, LogError> {
        self.view.outbox()
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        self.write(|log| log.save_snapshot(snapshot))
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        self.view.snapshot()
    }
}

conformance!(Shared::new());
conflicts!(Shared::new());

struct Shared {
    log: SharedLog,
}

impl Shared {
    fn new() -> Shared {
        Shared { log: SharedLog::new() }
    }
}

impl Specimen for Shared {
    fn log(&mut self) -> &mut dyn Log {
        &mut self.log
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.log = self.log.other();
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> bool {
        self.log.stored().damage(damage)
    }
}

impl SharedSpecimen for Shared {
    fn other_writer(&mut self) -> Box<dyn Log> {
        Box::new(self.log.other())
    }
}
