//! Limits the memory of answers that are being sent: in total, and for each caller.
//!
//! A client that reads slowly, or not at all, keeps its prepared answer in memory. So every answer reserves its share of
//! one budget first, and the share is returned when the last byte has left, not when the answer started.
//!
//! Invariant: all shares together are at most `bytes_max`, and half of that for one caller. An answer that is
//! larger than a caller's half is sent alone: there is never a second one of that kind at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// What all answers of a server together may hold: 32 MiB.
pub const BYTES_MAX: usize = 32 << 20;
/// One caller has this part of it.
const PART_OF_ONE: usize = 2;

/// The budget.
pub struct Memory {
    bytes_max: usize,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    by_caller: HashMap<Arc<str>, usize>,
    /// One that is larger than a caller's part is out.
    large: bool,
}

/// Why there is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The caller itself holds as much as one may.
    OfCaller,
    /// All callers together do.
    OfServer,
}

/// A part of the budget, until this is dropped.
pub struct Share {
    memory: Arc<Memory>,
    caller: Arc<str>,
    bytes: usize,
}

impl Memory {
    pub fn new(bytes_max: usize) -> Arc<Memory> {
        Arc::new(Memory { bytes_max, held: Mutex::default(), freed: Notify::new() })
    }

    /// Room for so many bytes, for this caller.
    pub fn share(self: &Arc<Self>, caller: &str, bytes: usize) -> Result<Share, NoRoom> {
        let one_max = self.bytes_max / PART_OF_ONE;
        let mut held = self.lock();
        let caller: Arc<str> = match held.by_caller.get_key_value(caller) {
            Some((known, _)) => known.clone(),
            None => Arc::from(caller),
        };
        if bytes > one_max {
            if held.large {
                return Err(NoRoom::OfServer);
            }
            held.large = true;
            return Ok(Share { memory: self.clone(), caller, bytes });
        }
        let own = held.by_caller.get(&caller).copied().unwrap_or(0);
        if own + bytes > one_max {
            return Err(NoRoom::OfCaller);
        }
        if held.bytes + bytes > self.bytes_max {
            return Err(NoRoom::OfServer);
        }
        held.bytes += bytes;
        held.by_caller.insert(caller.clone(), own + bytes);
        Ok(Share { memory: self.clone(), caller, bytes })
    }

    /// Comes back when a share was given back after this was called.
    pub fn freed(&self) -> impl Future<Output = ()> + '_ {
        let mut freed = Box::pin(self.freed.notified());
        freed.as_mut().enable();
        freed
    }

    /// How many bytes are out.
    pub fn held(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The same bytes, which hold the share for as long as anybody holds them.
    pub fn around(self: Arc<Self>, bytes: Bytes) -> Bytes {
        self.with(bytes, ())
    }

    /// The same, and hold something else besides.
    pub fn with<T: Send + 'static>(self: Arc<Self>, bytes: Bytes, also: T) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        Bytes::from_owner(Owned { bytes, _share: self, _also: also })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.memory.lock();
        if self.bytes > self.memory.bytes_max / PART_OF_ONE {
            held.large = false;
        } else {
            held.bytes = held.bytes.saturating_sub(self.bytes);
            let left = held.by_caller.get(&self.caller).map_or(0, |own| own.saturating_sub(self.bytes));
            match left {
                0 => drop(held.by_caller.remove(&self.caller)),
                left => drop(held.by_caller.insert(self.caller.clone(), left)),
            }
        }
        drop(held);
        self.memory.freed.notify_waiters();
    }
}

/// Bytes, and what lives as long as they do.
struct Owned<T> {
    bytes: Bytes,
    _share: Arc<Share>,
    _also: T,
}

impl<T> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_has_half_and_what_is_given_back_can_be_had_again() {
        let memory = Memory::new(100);
        let ann = memory.share("ann", 50).ok().unwrap();
        assert_eq!(memory.share("ann", 1).err(), Some(NoRoom::OfCaller));
        let bob = memory.share("bob", 45).ok().unwrap();
        assert_eq!(memory.share("eve", 6).err(), Some(NoRoom::OfServer));
        drop(bob);
        assert!(memory.share("eve", 6).is_ok());
        drop(ann);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_large_answer_is_let_through_alone() {
        let memory = Memory::new(100);
        let large = memory.share("ann", 1_000).ok().unwrap();
        assert_eq!(memory.share("bob", 1_000).err(), Some(NoRoom::OfServer));
        assert!(memory.share("ann", 50).is_ok(), "others go on");
        drop(large);
        assert!(memory.share("bob", 1_000).is_ok());
    }

    #[test]
    fn a_share_is_held_until_the_last_byte_has_gone() {
        let memory = Memory::new(100);
        let share = Arc::new(memory.share("ann", 10).ok().unwrap());
        let bytes = share.around(Bytes::from_static(b"0123456789"));
        let rest = bytes.slice(9..);
        drop(bytes);
        assert_eq!((memory.held(), &rest[..]), (10, &b"9"[..]));
        drop(rest);
        assert_eq!(memory.held(), 0);
    }
}
