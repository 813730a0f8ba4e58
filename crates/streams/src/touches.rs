//! Reads that prolong a stream's life, until the writer has time to put them down. A crash loses a few seconds of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::storage::StreamId;

#[derive(Default)]
pub struct Touches(Mutex<HashMap<StreamId, u64>>);

impl Touches {
    /// The stream is due at `due` now.
    pub fn note(&self, stream: StreamId, due: u64) {
        let mut touches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = touches.entry(stream).or_insert(0);
        *known = due.max(*known);
    }

    pub fn due(&self, stream: StreamId) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&stream).copied()
    }

    /// All of them, to be put down.
    pub fn all(&self) -> HashMap<StreamId, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These are committed. What came since then stays.
    pub fn settled(&self, committed: &HashMap<StreamId, u64>) {
        let mut touches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        touches.retain(|stream, due| committed.get(stream) != Some(due));
    }

    pub fn forget(&self, stream: StreamId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream);
    }
}
