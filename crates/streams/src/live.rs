//! Readers that wait at the end of a stream, and the data that they share when it grows.
//!
//! A waiting reader has a position and an entry here. New data is read and encoded once, by the
//! first reader that wakes; the others send the same bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::watch;

use crate::memory::{Memory, NoRoom, Share};
use crate::page::Page;
use crate::sse;

/// The end of one stored stream, while somebody waits there.
pub struct Tail {
    grown: watch::Sender<u64>,
    pub last: Last,
}

/// What the readers of one stream got last.
pub type Last = tokio::sync::Mutex<Option<Arc<Batch>>>;

/// Things that somebody holds, by name. What nobody holds is cleared now and then, so that a new name costs little.
pub struct Held<K, V>(Mutex<(HashMap<K, Weak<V>>, usize)>);

/// How many names there are before the first clearing.
const NAMES_MIN: usize = 64;

impl<K, V> Default for Held<K, V> {
    fn default() -> Self {
        Held(Mutex::new((HashMap::new(), NAMES_MIN)))
    }
}

impl<K: Eq + Hash, V> Held<K, V> {
    /// The thing of this name, made if nobody holds it.
    pub fn hold(&self, name: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (names, clear_at) = &mut *held;
        if let Some(thing) = names.get(&name).and_then(Weak::upgrade) {
            return thing;
        }
        if names.len() >= *clear_at {
            names.retain(|_, thing| thing.strong_count() > 0);
            *clear_at = NAMES_MIN.max(2 * names.len());
        }
        let thing = Arc::new(make());
        names.insert(name, Arc::downgrade(&thing));
        thing
    }

    pub fn get(&self, name: &K) -> Option<Arc<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.get(name).and_then(Weak::upgrade)
    }
}

/// The ends at which somebody waits.
#[derive(Default)]
pub struct Registry(Held<i64, Tail>);

impl Registry {
    /// A place at the end of a stream. Whoever takes it before reading misses nothing.
    pub fn wait(&self, stream: i64) -> (Arc<Tail>, watch::Receiver<u64>) {
        let tail = self.0.hold(stream, || Tail { grown: watch::Sender::new(0), last: Last::default() });
        let receiver = tail.grown.subscribe();
        (tail, receiver)
    }

    /// Wakes who waits, behind the commit of something new.
    pub fn wake(&self, stream: i64) {
        if let Some(tail) = self.0.get(&stream) {
            tail.grown.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    pub fn has_readers(&self, stream: i64) -> bool {
        self.0.get(&stream).is_some()
    }
}

/// As it is kept, as the body of an answer, and as an event.
const FORMS: usize = 3;

/// A page in the forms in which readers want it, each made once.
pub struct Batch {
    pub page: Page,
    share: Arc<Share>,
    body: OnceLock<Bytes>,
    event: OnceLock<Bytes>,
}

impl Batch {
    /// With the room that it takes in all its forms.
    pub fn new(page: Page, memory: &Arc<Memory>, caller: &str) -> Result<Batch, NoRoom> {
        let share = Arc::new(memory.share(caller, FORMS * page.kept.len())?);
        Ok(Batch { page, share, body: OnceLock::new(), event: OnceLock::new() })
    }

    /// The body of an answer.
    pub fn body(&self) -> Bytes {
        self.body.get_or_init(|| self.share.clone().around(self.page.kind().body(&self.page.kept))).clone()
    }

    /// The data event.
    pub fn event(&self) -> Bytes {
        self.event
            .get_or_init(|| self.share.clone().around(sse::data(&self.page.kind().event(&self.page.kept))))
            .clone()
    }

    /// These bytes of it, which hold its room and something else as long as anybody holds them.
    pub fn holding<T: Send + 'static>(&self, bytes: Bytes, also: T) -> Bytes {
        self.share.clone().with(bytes, also)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_cleared() {
        let held = Held::default();
        let kept = held.hold(0, || ());
        for name in 1..10 * NAMES_MIN {
            held.hold(name, || ());
        }
        let names = held.0.lock().unwrap().0.len();
        assert!(names <= NAMES_MIN + 1, "{names} names are kept");
        assert!(Arc::ptr_eq(&held.hold(0, || ()), &kept));
    }
}
