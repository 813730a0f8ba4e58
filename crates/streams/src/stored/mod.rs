//! The rules of stored streams: what a request makes of what a store keeps. They know the store's trait, not the store.

pub mod append;
pub mod create;
pub mod delete;
pub mod read;

use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::lifetime::Lifetime;
use crate::live::Registry;
use crate::problem::Problem;
use crate::storage::{Meta, StoreError, StreamId, Tables};
use crate::touches::Touches;

/// What readers and the writer share.
#[derive(Default)]
pub struct Shared {
    pub live: Registry,
    pub touches: Touches,
    pub commits: AtomicU64,
}

/// What a piece of work has while it runs.
pub struct Transaction<'a> {
    pub tables: &'a mut dyn Tables,
    pub now: u64,
    pub shared: &'a Shared,
    /// What happened to streams so far, in order.
    pub changes: Vec<Change>,
}

/// What happened to a stream: its readers are woken behind the commit, and subscriptions hear of it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Grown {
        stream: StreamId,
        path: String,
        before: u64,
        tail: u64,
    },
    /// Closed, or made without anything in it.
    Other {
        stream: StreamId,
    },
    Removed {
        stream: StreamId,
        path: String,
    },
}

impl Change {
    pub fn stream(&self) -> StreamId {
        match self {
            Change::Grown { stream, .. } | Change::Other { stream } | Change::Removed { stream, .. } => {
                *stream
            }
        }
    }

    /// The stream ended at `before` and ends at its tail now.
    pub fn of(meta: &Meta, before: u64) -> Change {
        match meta.tail > before {
            true => Change::Grown { stream: meta.id, path: meta.path.clone(), before, tail: meta.tail },
            false => Change::Other { stream: meta.id },
        }
    }
}

/// Why work in a transaction does not come to an answer.
#[derive(Debug)]
pub enum Fault {
    /// A rule said no, before anything was written; the others in the transaction go on.
    Refused(Problem),
    /// The store said no; nothing of the transaction counts.
    Failed(StoreError),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Fault::Refused(problem)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(why) => Fault::Refused(Problem::damaged(&why)),
            error => Fault::Failed(error),
        }
    }
}

/// What the store said, for whoever asked.
pub fn problem_of(error: &StoreError) -> Problem {
    match error {
        StoreError::Full => Problem::no_space(),
        StoreError::Damaged(why) => Problem::damaged(why),
        StoreError::Failed(why) => Problem::failed(why),
    }
}

/// The stream at this path, as a client may see it.
pub fn visible(tables: &dyn Tables, shared: &Shared, path: &str) -> Result<Meta, Fault> {
    let Some(meta) = tables.stream(path)? else {
        return Err(Problem::not_found(path).into());
    };
    if meta.deleted {
        return Err(Problem::gone(path).into());
    }
    if is_over(&meta, shared, now()) {
        return Err(Problem::not_found(path).into());
    }
    Ok(meta)
}

/// Whether its time has run out. Somebody who reads live uses the stream all the time.
pub fn is_over(meta: &Meta, shared: &Shared, now: u64) -> bool {
    let Some(due) = meta.due else { return false };
    if now < due {
        return false;
    }
    match meta.lifetime {
        Lifetime::Idle(_) => {
            shared.touches.due(meta.id).is_none_or(|due| now >= due) && !shared.live.has_readers(meta.id)
        }
        _ => true,
    }
}

/// A read prolongs the life of a stream that lives while it is used.
pub fn touch(meta: &Meta, shared: &Shared) {
    if let (Lifetime::Idle(_), Some(due)) = (&meta.lifetime, meta.lifetime.due(now())) {
        shared.touches.note(meta.id, due);
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
