//! Deletes streams, on request and when they expire.

use std::collections::HashMap;

use super::{Change, Fault, Transaction, is_over, visible};
use crate::lifetime::Lifetime;
use crate::storage::{Meta, StoreError, StreamId};

/// Most streams that one sweep deletes; the next sweep goes on.
const SWEEP_MAX: usize = 256;

pub fn delete(turn: &mut Transaction<'_>, path: &str) -> Result<(), Fault> {
    let meta = visible(turn.tables, turn.shared, path)?;
    Ok(remove(turn, meta)?)
}

/// Takes a stream away. While forks read from it, it is only hidden; with the last of them it goes, and so on up the chain.
pub fn remove(turn: &mut Transaction<'_>, mut meta: Meta) -> Result<(), StoreError> {
    turn.changes.push(Change::Removed { stream: meta.id, path: meta.path.clone() });
    turn.shared.touches.forget(meta.id);
    if turn.tables.has_forks(meta.id)? {
        meta.deleted = true;
        meta.due = None;
        return turn.tables.set_stream(&meta);
    }
    turn.tables.remove_stream(meta.id)?;
    let mut parent = meta.parent;
    while let Some(id) = parent {
        let Some(source) = turn.tables.stream_by_id(id)? else { break };
        if !source.deleted || turn.tables.has_forks(id)? {
            break;
        }
        turn.tables.remove_stream(id)?;
        parent = source.parent;
    }
    Ok(())
}

/// Deletes what is over, and puts down how long the others live that were used in the meantime.
pub fn sweep(turn: &mut Transaction<'_>) -> Result<(), StoreError> {
    for id in turn.tables.due_streams(turn.now, SWEEP_MAX)? {
        let Some(mut meta) = turn.tables.stream_by_id(id)? else { continue };
        if is_over(&meta, turn.shared, turn.now) {
            remove(turn, meta)?;
            continue;
        }
        let Lifetime::Idle(_) = meta.lifetime else { continue };
        meta.due = Some(match turn.shared.touches.due(id) {
            Some(due) if due > turn.now => due,
            _ => meta.lifetime.due(turn.now).unwrap_or(turn.now),
        });
        turn.tables.set_stream(&meta)?;
    }
    Ok(())
}

/// Puts down how long streams live that were read in the meantime.
pub fn prolong(turn: &mut Transaction<'_>, touches: &HashMap<StreamId, u64>) -> Result<(), StoreError> {
    for (id, due) in touches {
        let Some(mut meta) = turn.tables.stream_by_id(*id)? else { continue };
        if matches!(meta.lifetime, Lifetime::Idle(_)) && meta.due.is_some_and(|known| known < *due) {
            meta.due = Some(*due);
            turn.tables.set_stream(&meta)?;
        }
    }
    Ok(())
}
