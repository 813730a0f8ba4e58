//! The owner's queue: what waits to be decided, in order of arrival.
//!
//! Invariants: it is bounded, and whoever would pass the bound waits; what was taken in is answered, also when the
//! owner ends, because a dropped answer is one that says "stopped".

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kernel::Command;
use smol_str::SmolStr;

use super::{Answered, Desk, SubmitError};
use crate::log::Fence;

/// Where an idempotency key belongs to, and the key.
pub(super) type Key = (SmolStr, SmolStr);

#[expect(clippy::large_enum_variant, reason = "nearly every job is a command")]
pub(super) enum Job {
    Decide(Asked),
    /// Anything else that must happen between two batches.
    Do(Box<dyn FnOnce(&mut Desk) + Send>),
}

pub(super) struct Asked {
    pub command: Command,
    pub fence: Option<Fence>,
    pub key: Option<Key>,
    pub answer: Box<dyn FnOnce(Answered) + Send>,
}

pub(super) enum Work {
    Batch(Vec<Asked>),
    Do(Box<dyn FnOnce(&mut Desk) + Send>),
}

pub(super) struct Queue {
    limit: usize,
    inner: Mutex<Inner>,
    arrived: Condvar,
    taken: Condvar,
}

#[derive(Default)]
struct Inner {
    jobs: VecDeque<Job>,
    closed: bool,
    /// The keys of the commands that are not answered yet.
    in_flight: HashSet<Key>,
    /// Whether the owner waits, and must be woken.
    idle: bool,
    /// How many wait for room.
    crowd: usize,
}

impl Queue {
    pub fn new(limit: usize) -> Queue {
        Queue { limit, inner: Mutex::default(), arrived: Condvar::new(), taken: Condvar::new() }
    }

    /// Waits for room, if there is none.
    pub fn push(&self, job: Job) -> Result<(), SubmitError> {
        let mut inner = self.lock();
        while inner.jobs.len() >= self.limit && !inner.closed {
            inner.crowd += 1;
            inner = self.taken.wait(inner).unwrap_or_else(PoisonError::into_inner);
            inner.crowd -= 1;
        }
        if inner.closed {
            return Err(SubmitError::Stopped);
        }
        if let Job::Decide(Asked { key: Some(key), .. }) = &job
            && !inner.in_flight.insert(key.clone())
        {
            return Err(SubmitError::InFlight { key: key.1.clone() });
        }
        inner.jobs.push_back(job);
        let idle = std::mem::take(&mut inner.idle);
        // Whoever is woken takes the lock at once, and would only wait for it.
        drop(inner);
        if idle {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits for something to do. `None` once it is closed and nothing is left.
    pub fn next(&self, batch_max: usize) -> Option<Work> {
        let mut inner = self.lock();
        while inner.jobs.is_empty() {
            if inner.closed {
                return None;
            }
            inner.idle = true;
            inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.idle = false;
        let mut batch = Vec::new();
        while batch.len() < batch_max {
            match inner.jobs.pop_front() {
                Some(Job::Decide(asked)) => batch.push(asked),
                Some(Job::Do(job)) if batch.is_empty() => return Some(Work::Do(job)),
                Some(job) => {
                    inner.jobs.push_front(job);
                    break;
                }
                None => break,
            }
        }
        if inner.crowd > 0 {
            self.taken.notify_all();
        }
        Some(Work::Batch(batch))
    }

    /// The commands under these keys have been decided.
    pub fn decided<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        let mut keys = keys.peekable();
        if keys.peek().is_some() {
            let mut inner = self.lock();
            keys.for_each(|key| {
                inner.in_flight.remove(key);
            });
        }
    }

    /// How many commands wait.
    pub fn commands(&self) -> usize {
        self.lock().jobs.iter().filter(|job| matches!(job, Job::Decide(_))).count()
    }

    /// Nothing is taken in any more.
    pub fn is_open(&self) -> bool {
        !self.lock().closed
    }

    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    /// Nothing is taken in any more, and what waits is dropped.
    pub fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        drop(jobs);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
