//! How many answers are put together at once.
//!
//! An answer is in memory in several forms while it is made, so many at once would take many times what they are in the end.
//! A request that waits for an event has no turn meanwhile.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More than the machine has processors for; the rest wait.
const TURNS_MAX: usize = 4;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREE: Condvar = Condvar::new();

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// A turn, until this is dropped. A thread that already has one shares it.
pub struct AnswerPermit {
    first: bool,
}

pub fn take() -> AnswerPermit {
    let first = !MINE.get();
    if first {
        let taken = FREE.wait_while(lock(), |taken| *taken >= TURNS_MAX);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        MINE.set(true);
    }
    AnswerPermit { first }
}

impl Drop for AnswerPermit {
    fn drop(&mut self) {
        if self.first {
            give_back();
        }
    }
}

/// Waits for something without a turn.
pub fn resting<T>(wait: impl FnOnce() -> T) -> T {
    let had = MINE.get();
    if had {
        give_back();
    }
    let value = wait();
    if had {
        std::mem::forget(take());
    }
    value
}

fn give_back() {
    MINE.set(false);
    *lock() -= 1;
    FREE.notify_one();
}

fn lock() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_waits_has_no_turn_and_none_needs_two() {
        let turn = take();
        let second = take();
        drop(second);
        assert!(MINE.get());
        assert!(!resting(|| MINE.get()));
        assert!(MINE.get());
        drop(turn);
        assert!(!MINE.get());
    }
}
