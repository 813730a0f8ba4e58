//! Deletes streams, on request and when they expire.

use rusqlite::Connection;

use super::meta::Meta;
use super::writer::Turn;
use super::{Fault, signed};
use crate::lifetime::Lifetime;
use crate::subscriptions;

/// Most streams that one sweep deletes; the next sweep goes on.
const SWEEP_MAX: usize = 256;

pub fn delete(turn: &mut Turn<'_>, path: &str) -> Result<(), Fault> {
    let meta = Meta::visible(turn.db, turn.shared, path)?;
    Ok(remove(turn, &meta)?)
}

/// Takes a stream away. While forks read from it, it is only hidden; with the last of them it goes, and so on up the chain.
pub fn remove(turn: &mut Turn<'_>, meta: &Meta) -> Result<(), rusqlite::Error> {
    turn.changed.push(meta.id);
    turn.shared.touches.forget(meta.id);
    subscriptions::rules::deleted(turn, &meta.path)?;
    if has_forks(turn.db, meta.id)? {
        turn.db
            .prepare_cached("UPDATE streams SET deleted = 1, due = NULL WHERE id = ?1")?
            .execute([meta.id])?;
        return Ok(());
    }
    let mut parent = erase(turn.db, meta)?;
    while let Some(id) = parent {
        let Some(source) = Meta::by_id(turn.db, id)? else { break };
        if !source.deleted || has_forks(turn.db, id)? {
            break;
        }
        parent = erase(turn.db, &source)?;
    }
    Ok(())
}

fn has_forks(db: &Connection, id: i64) -> Result<bool, rusqlite::Error> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM streams WHERE parent = ?1)")?
        .query_row([id], |row| row.get(0))
}

fn erase(db: &Connection, meta: &Meta) -> Result<Option<i64>, rusqlite::Error> {
    for statement in [
        "DELETE FROM chunks WHERE stream = ?1",
        "DELETE FROM producers WHERE stream = ?1",
        "DELETE FROM streams WHERE id = ?1",
    ] {
        db.prepare_cached(statement)?.execute([meta.id])?;
    }
    Ok(meta.parent)
}

/// Deletes what is over, and puts down how long the others live that were used in the meantime.
pub fn sweep(turn: &mut Turn<'_>) -> Result<(), rusqlite::Error> {
    let due: Vec<i64> = turn
        .db
        .prepare_cached("SELECT id FROM streams WHERE due <= ?1 LIMIT ?2")?
        .query_map((signed(turn.now), SWEEP_MAX as i64), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in due {
        let Some(meta) = Meta::by_id(turn.db, id)? else { continue };
        if meta.over(turn.shared, turn.now) {
            remove(turn, &meta)?;
            continue;
        }
        let Lifetime::Idle(_) = meta.lifetime else { continue };
        let due = match turn.shared.touches.due(id) {
            Some(due) if due > turn.now => due,
            _ => meta.lifetime.due(turn.now).unwrap_or(turn.now),
        };
        turn.db.prepare_cached("UPDATE streams SET due = ?2 WHERE id = ?1")?.execute((id, signed(due)))?;
    }
    Ok(())
}
