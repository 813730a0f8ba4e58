//! Who waits at the end of a stream, and what they all get when it grows.
//!
//! A waiting reader holds a position and a place here. What comes next is read and put into its form once, by the
//! first that wakes; the others take the same bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::watch;

use crate::sse;
use crate::store::page::Page;

/// The end of one stored stream, while somebody waits there.
pub struct Tail {
    grown: watch::Sender<u64>,
    pub last: Last,
}

/// What the readers of one stream got last.
pub type Last = tokio::sync::Mutex<Option<Arc<Batch>>>;

/// The ends at which somebody waits.
#[derive(Default)]
pub struct Registry(Mutex<HashMap<i64, Weak<Tail>>>);

impl Registry {
    /// A place at the end of a stream. Whoever takes it before reading misses nothing.
    pub fn wait(&self, stream: i64) -> (Arc<Tail>, watch::Receiver<u64>) {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = tails.get(&stream).and_then(Weak::upgrade).unwrap_or_else(|| {
            // Places that nobody holds are cleared when a new one is made.
            tails.retain(|_, tail| tail.strong_count() > 0);
            let tail = Arc::new(Tail { grown: watch::Sender::new(0), last: Last::default() });
            tails.insert(stream, Arc::downgrade(&tail));
            tail
        });
        let receiver = tail.grown.subscribe();
        (tail, receiver)
    }

    /// Wakes who waits, behind the commit of something new.
    pub fn wake(&self, stream: i64) {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&stream).and_then(Weak::upgrade);
        if let Some(tail) = tail {
            tail.grown.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    pub fn has_readers(&self, stream: i64) -> bool {
        let tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tails.get(&stream).is_some_and(|tail| tail.strong_count() > 0)
    }
}

/// A page in the forms in which readers want it, each made once.
pub struct Batch {
    pub page: Page,
    body: OnceLock<Bytes>,
    event: OnceLock<Bytes>,
}

impl Batch {
    pub fn new(page: Page) -> Batch {
        Batch { page, body: OnceLock::new(), event: OnceLock::new() }
    }

    /// The body of an answer.
    pub fn body(&self) -> Bytes {
        self.body.get_or_init(|| self.page.kind().body(&self.page.kept)).clone()
    }

    /// The data event.
    pub fn event(&self) -> Bytes {
        self.event.get_or_init(|| sse::data(&self.page.kind().event(&self.page.kept))).clone()
    }
}
