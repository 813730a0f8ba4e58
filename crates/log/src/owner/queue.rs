//! The owner's queue: commands that wait to be decided, in order of arrival.
//!
//! Invariants: it is bounded, and a sender waits when it is full; every accepted command is answered, also when the
//! owner ends, because a dropped answer means "stopped".

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kernel::Command;
use smol_str::SmolStr;

use super::{Answered, OwnerState, SubmitError};
use crate::Fence;

/// Where an idempotency key belongs to, and the key.
pub(super) type Key = (SmolStr, SmolStr);

#[expect(clippy::large_enum_variant, reason = "nearly every job is a command")]
pub(super) enum Job {
    Decide(Asked),
    /// Anything else that must happen between two batches.
    Do(Box<dyn FnOnce(&mut OwnerState) + Send>),
}

pub(super) struct Asked {
    pub command: Command,
    pub fence: Option<Fence>,
    pub key: Option<Key>,
    pub answer: Box<dyn FnOnce(Answered) + Send>,
}

impl Asked {
    pub fn new(
        command: Command,
        fence: Option<Fence>,
        answer: impl FnOnce(Answered) + Send + 'static,
    ) -> Asked {
        let key = command.key.clone().map(|key| (kernel::scope(&command), key));
        Asked { command, fence, key, answer: Box::new(answer) }
    }
}

pub(super) enum Work {
    Batch(Vec<Asked>),
    Do(Box<dyn FnOnce(&mut OwnerState) + Send>),
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
    /// Whether somebody decides at this moment: the owner's thread, or one that asked.
    busy: bool,
    /// Whether the owner's thread was woken, and has not come yet.
    called: bool,
    /// How many wait for room.
    crowd: usize,
}

impl Queue {
    pub fn new(limit: usize) -> Queue {
        Queue { limit, inner: Mutex::default(), arrived: Condvar::new(), taken: Condvar::new() }
    }

    /// Waits for room, if there is none.
    pub fn push(&self, job: Job) -> Result<(), SubmitError> {
        self.call(self.enter(job)?);
        Ok(())
    }

    /// The same; where nobody decides and nothing else waits, it is given back as a batch, and whoever asked must decide
    /// it and then say `rest`.
    pub fn push_or_take(&self, asked: Asked) -> Result<Option<Vec<Asked>>, SubmitError> {
        let mut inner = self.enter(Job::Decide(asked))?;
        if inner.busy || inner.jobs.len() > 1 {
            self.call(inner);
            return Ok(None);
        }
        inner.busy = true;
        Ok(Some(inner.batch(1)))
    }

    fn enter(&self, job: Job) -> Result<MutexGuard<'_, Inner>, SubmitError> {
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
        Ok(inner)
    }

    /// Waits for something to do, for the owner's thread, which was at work until now if it was before. `None` once it is
    /// closed and nothing is left.
    pub fn next(&self, batch_max: usize, was_busy: bool) -> Option<Work> {
        let mut inner = self.lock();
        if was_busy {
            inner.busy = false;
        }
        while inner.busy || inner.jobs.is_empty() {
            if inner.closed && !inner.busy {
                return None;
            }
            inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.busy = true;
        inner.called = false;
        if let Some(Job::Do(_)) = inner.jobs.front()
            && let Some(Job::Do(job)) = inner.jobs.pop_front()
        {
            return Some(Work::Do(job));
        }
        let batch = inner.batch(batch_max);
        if inner.crowd > 0 {
            self.taken.notify_all();
        }
        Some(Work::Batch(batch))
    }

    /// Whoever took a batch has decided it. What arrived in the meantime is the thread's.
    pub fn rest(&self) {
        let mut inner = self.lock();
        inner.busy = false;
        if !inner.jobs.is_empty() || inner.closed {
            self.call(inner);
        }
    }

    /// Wakes the owner's thread, unless somebody decides, who will look at what waits, or it was woken already.
    fn call(&self, mut inner: MutexGuard<'_, Inner>) {
        if inner.busy || std::mem::replace(&mut inner.called, true) {
            return;
        }
        // Whoever is woken takes the lock at once, and would only wait for it.
        drop(inner);
        self.arrived.notify_one();
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

impl Inner {
    /// The first commands, up to the first job that is none.
    fn batch(&mut self, max: usize) -> Vec<Asked> {
        let mut batch = Vec::new();
        while batch.len() < max {
            match self.jobs.pop_front() {
                Some(Job::Decide(asked)) => batch.push(asked),
                Some(job) => {
                    self.jobs.push_front(job);
                    break;
                }
                None => break,
            }
        }
        batch
    }
}
