//! The metadata of a stream.

use rusqlite::{Connection, OptionalExtension, Row};

use super::{Fault, Shared, now, unsigned};
use crate::content::Kind;
use crate::lifetime::Lifetime;
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Meta {
    pub id: i64,
    pub path: String,
    pub content_type: String,
    pub lifetime: Lifetime,
    pub due: Option<u64>,
    pub tail: u64,
    pub closed: bool,
    /// Deleted, and kept for its forks.
    pub deleted: bool,
    pub seq: Option<Vec<u8>>,
    pub closer: Option<Producer>,
    pub parent: Option<i64>,
    pub fork_at: u64,
    pub fork: Option<ForkAsked>,
    pub fork_depth: u64,
    pub inherits: bool,
}

/// A producer's place: who, in which epoch, with which batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: String,
    pub epoch: u64,
    pub seq: u64,
}

/// What a PUT asked for when it made a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkAsked {
    pub from: String,
    /// The offset, if one was named; else the tail of that moment.
    pub anchor: Option<u64>,
    pub sub: u64,
}

const COLUMNS: &str = "id, path, content_type, ttl, expires_at, expires_text, due, tail, closed, deleted, seq, \
    closer_id, closer_epoch, closer_seq, parent, fork_at, fork_from, fork_anchor, fork_sub, fork_depth, inherits";

impl Meta {
    pub fn kind(&self) -> Kind {
        Kind::of(&self.content_type)
    }

    pub fn by_path(db: &Connection, path: &str) -> Result<Option<Meta>, rusqlite::Error> {
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM streams WHERE path = ?1"))?
            .query_row([path], Meta::from_row)
            .optional()
    }

    pub fn by_id(db: &Connection, id: i64) -> Result<Option<Meta>, rusqlite::Error> {
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM streams WHERE id = ?1"))?
            .query_row([id], Meta::from_row)
            .optional()
    }

    /// The stream at this path, as a client may see it.
    pub fn visible(db: &Connection, shared: &Shared, path: &str) -> Result<Meta, Fault> {
        let Some(meta) = Meta::by_path(db, path)? else {
            return Err(Problem::not_found(path).into());
        };
        if meta.deleted {
            return Err(Problem::gone(path).into());
        }
        if meta.over(shared, now()) {
            return Err(Problem::not_found(path).into());
        }
        Ok(meta)
    }

    /// Whether its time has run out. Somebody who reads live uses the stream all the time.
    pub fn over(&self, shared: &Shared, now: u64) -> bool {
        let Some(due) = self.due else { return false };
        if now < due {
            return false;
        }
        match self.lifetime {
            Lifetime::Idle(_) => {
                shared.touches.due(self.id).is_none_or(|due| now >= due) && !shared.live.has_readers(self.id)
            }
            _ => true,
        }
    }

    /// A read prolongs the life of a stream that lives while it is used.
    pub fn touch(&self, shared: &Shared) {
        if let (Lifetime::Idle(_), Some(due)) = (&self.lifetime, self.lifetime.due(now())) {
            shared.touches.note(self.id, due);
        }
    }

    fn from_row(row: &Row<'_>) -> Result<Meta, rusqlite::Error> {
        let number = |column: &str| row.get::<_, Option<i64>>(column).map(|value| value.map(unsigned));
        let lifetime = match (number("ttl")?, number("expires_at")?) {
            (Some(seconds), _) => Lifetime::Idle(seconds),
            (None, Some(at)) => Lifetime::Until { at, text: row.get("expires_text")? },
            (None, None) => Lifetime::Unlimited,
        };
        let closer = match row.get::<_, Option<String>>("closer_id")? {
            Some(id) => Some(Producer {
                id,
                epoch: number("closer_epoch")?.unwrap_or(0),
                seq: number("closer_seq")?.unwrap_or(0),
            }),
            None => None,
        };
        let fork = match row.get::<_, Option<String>>("fork_from")? {
            Some(from) => Some(ForkAsked {
                from,
                anchor: number("fork_anchor")?,
                sub: number("fork_sub")?.unwrap_or(0),
            }),
            None => None,
        };
        Ok(Meta {
            id: row.get("id")?,
            path: row.get("path")?,
            content_type: row.get("content_type")?,
            lifetime,
            due: number("due")?,
            tail: number("tail")?.unwrap_or(0),
            closed: row.get("closed")?,
            deleted: row.get("deleted")?,
            seq: row.get("seq")?,
            closer,
            parent: row.get("parent")?,
            fork_at: number("fork_at")?.unwrap_or(0),
            fork,
            fork_depth: number("fork_depth")?.unwrap_or(0),
            inherits: row.get("inherits")?,
        })
    }
}
