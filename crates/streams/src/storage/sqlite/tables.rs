//! The tables of a transaction or a view.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Row};

use super::{mark, signed, unsigned};
use crate::lifetime::Lifetime;
use crate::storage::{
    ForkAsked, LinkRow, Meta, Phase, Producer, StoreError, StreamId, SubscriptionRow, Tables, VisitChunk,
};

pub struct SqliteTables<'a>(pub &'a Connection);

const STREAM_COLUMNS: &str = "id, path, content_type, ttl, expires_at, expires_text, due, tail, closed, deleted, seq, \
    closer_id, closer_epoch, closer_seq, parent, fork_at, fork_from, fork_anchor, fork_sub, fork_depth, inherits";

impl Tables for SqliteTables<'_> {
    fn stream(&self, path: &str) -> Result<Option<Meta>, StoreError> {
        let query = format!("SELECT {STREAM_COLUMNS} FROM streams WHERE path = ?1");
        Ok(self.0.prepare_cached(&query)?.query_row([path], stream_of).optional()?)
    }

    fn stream_by_id(&self, id: StreamId) -> Result<Option<Meta>, StoreError> {
        let query = format!("SELECT {STREAM_COLUMNS} FROM streams WHERE id = ?1");
        Ok(self.0.prepare_cached(&query)?.query_row([id], stream_of).optional()?)
    }

    fn add_stream(&mut self, new: &Meta) -> Result<StreamId, StoreError> {
        let (ttl, expires_at, expires_text) = match &new.lifetime {
            Lifetime::Unlimited => (None, None, None),
            Lifetime::Idle(seconds) => (Some(signed(*seconds)), None, None),
            Lifetime::Until { at, text } => (None, Some(signed(*at)), Some(text)),
        };
        let fork = new.fork.as_ref();
        let closer = new.closer.as_ref();
        self.0
            .prepare_cached(
                "INSERT INTO streams (path, content_type, ttl, expires_at, expires_text, due, tail, closed, deleted,
                    seq, closer_id, closer_epoch, closer_seq, parent, fork_at, fork_from, fork_anchor, fork_sub,
                    fork_depth, inherits)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
            )?
            .execute(rusqlite::params![
                new.path,
                new.content_type,
                ttl,
                expires_at,
                expires_text,
                new.due.map(signed),
                signed(new.tail),
                new.closed,
                new.deleted,
                new.seq,
                closer.map(|producer| &producer.id),
                closer.map(|producer| signed(producer.epoch)),
                closer.map(|producer| signed(producer.seq)),
                new.parent,
                signed(new.fork_at),
                fork.map(|fork| &fork.from),
                fork.and_then(|fork| fork.anchor).map(signed),
                fork.map_or(0, |fork| signed(fork.sub)),
                signed(new.fork_depth),
                new.inherits,
            ])?;
        Ok(self.0.last_insert_rowid())
    }

    fn set_stream(&mut self, stream: &Meta) -> Result<(), StoreError> {
        let closer = stream.closer.as_ref();
        self.0
            .prepare_cached(
                "UPDATE streams SET tail = ?2, closed = ?3, deleted = ?4, due = ?5, seq = ?6,
                    closer_id = ?7, closer_epoch = ?8, closer_seq = ?9 WHERE id = ?1",
            )?
            .execute((
                stream.id,
                signed(stream.tail),
                stream.closed,
                stream.deleted,
                stream.due.map(signed),
                &stream.seq,
                closer.map(|producer| &producer.id),
                closer.map(|producer| signed(producer.epoch)),
                closer.map(|producer| signed(producer.seq)),
            ))?;
        Ok(())
    }

    fn remove_stream(&mut self, id: StreamId) -> Result<(), StoreError> {
        for statement in [
            "DELETE FROM chunks WHERE stream = ?1",
            "DELETE FROM producers WHERE stream = ?1",
            "DELETE FROM streams WHERE id = ?1",
        ] {
            self.0.prepare_cached(statement)?.execute([id])?;
        }
        Ok(())
    }

    fn has_forks(&self, id: StreamId) -> Result<bool, StoreError> {
        let query = "SELECT EXISTS (SELECT 1 FROM streams WHERE parent = ?1)";
        Ok(self.0.prepare_cached(query)?.query_row([id], |row| row.get(0))?)
    }

    fn due_streams(&self, now: u64, most: usize) -> Result<Vec<StreamId>, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT id FROM streams WHERE due <= ?1 LIMIT ?2")?;
        let rows = statement.query_map((signed(now), signed(most as u64)), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn streams_below(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT path, tail FROM streams WHERE NOT deleted AND path >= ?1 AND path < ?2 ORDER BY path",
        )?;
        // Names are ASCII; nothing that begins with the prefix sorts behind it and a character beyond ASCII.
        let rows = statement.query_map((prefix, format!("{prefix}\u{10ffff}")), |row| {
            Ok((row.get(0)?, unsigned(row.get(1)?)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn add_chunk(&mut self, stream: StreamId, end: u64, last: bool, data: &[u8]) -> Result<(), StoreError> {
        let insert = "INSERT INTO chunks (stream, end, last, data, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.0.prepare_cached(insert)?.execute((stream, signed(end), last, data, mark::sum(data)))?;
        Ok(())
    }

    fn chunks(&self, stream: StreamId, after: u64, visit: &mut VisitChunk<'_>) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT end, data, sum FROM chunks WHERE stream = ?1 AND end > ?2 ORDER BY end",
        )?;
        let mut rows = statement.query((stream, signed(after)))?;
        while let Some(row) = rows.next()? {
            let end = unsigned(row.get(0)?);
            let data = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let kept = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            if kept.is_some_and(|kept| kept != mark::sum(data)) {
                let why = format!("stream {stream} does not hold what was written before position {end}");
                return Err(StoreError::Damaged(why));
            }
            if let ControlFlow::Break(()) = visit(end, data) {
                break;
            }
        }
        Ok(())
    }

    fn append_end(&self, stream: StreamId, after: u64) -> Result<Option<u64>, StoreError> {
        let query = "SELECT min(end) FROM chunks WHERE stream = ?1 AND end > ?2 AND last";
        let mut statement = self.0.prepare_cached(query)?;
        let end: Option<i64> = statement.query_row((stream, signed(after)), |row| row.get(0))?;
        Ok(end.map(unsigned))
    }

    fn producer(&self, stream: StreamId, id: &str) -> Result<Option<(u64, u64)>, StoreError> {
        let query = "SELECT epoch, seq FROM producers WHERE stream = ?1 AND id = ?2";
        let mut statement = self.0.prepare_cached(query)?;
        let known =
            statement.query_row((stream, id), |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))));
        Ok(known.optional()?)
    }

    fn set_producer(&mut self, stream: StreamId, producer: &Producer) -> Result<(), StoreError> {
        let replace = "INSERT OR REPLACE INTO producers (stream, id, epoch, seq) VALUES (?1, ?2, ?3, ?4)";
        let row = (stream, &producer.id, signed(producer.epoch), signed(producer.seq));
        self.0.prepare_cached(replace)?.execute(row)?;
        Ok(())
    }

    fn subscription(&self, id: &str) -> Result<Option<SubscriptionRow>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT config, base, created, phase, generation, wake_id, holder, lease_until, snapshot, attempts,
                next_attempt FROM subscriptions WHERE id = ?1",
        )?;
        let row = statement.query_row([id], |row| {
            let snapshot: Option<String> = row.get(8)?;
            Ok(SubscriptionRow {
                id: id.to_owned(),
                config: row.get(0)?,
                base: row.get(1)?,
                created: unsigned(row.get(2)?),
                phase: phase_of(&row.get::<_, String>(3)?),
                generation: unsigned(row.get(4)?),
                wake_id: row.get(5)?,
                holder: row.get(6)?,
                lease_until: row.get::<_, Option<i64>>(7)?.map(unsigned),
                snapshot: snapshot.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
                attempts: unsigned(row.get(9)?),
                next_attempt: row.get::<_, Option<i64>>(10)?.map(unsigned),
            })
        });
        Ok(row.optional()?)
    }

    fn subscriptions(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT id, config FROM subscriptions ORDER BY id")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn add_subscription(&mut self, new: &SubscriptionRow) -> Result<(), StoreError> {
        let insert = "INSERT INTO subscriptions (id, config, base, created) VALUES (?1, ?2, ?3, ?4)";
        self.0.prepare_cached(insert)?.execute((&new.id, &new.config, &new.base, signed(new.created)))?;
        self.set_subscription(new)
    }

    fn set_subscription(&mut self, subscription: &SubscriptionRow) -> Result<(), StoreError> {
        let snapshot = serde_json::to_string(&subscription.snapshot).unwrap_or_default();
        self.0
            .prepare_cached(
                "UPDATE subscriptions SET phase = ?2, generation = ?3, wake_id = ?4, holder = ?5, lease_until = ?6,
                    snapshot = ?7, attempts = ?8, next_attempt = ?9 WHERE id = ?1",
            )?
            .execute((
                &subscription.id,
                text_of(subscription.phase),
                signed(subscription.generation),
                &subscription.wake_id,
                &subscription.holder,
                subscription.lease_until.map(signed),
                snapshot,
                signed(subscription.attempts),
                subscription.next_attempt.map(signed),
            ))?;
        Ok(())
    }

    fn remove_subscription(&mut self, id: &str) -> Result<bool, StoreError> {
        let gone = self.0.prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?.execute([id])?;
        self.0.prepare_cached("DELETE FROM links WHERE subscription = ?1")?.execute([id])?;
        Ok(gone > 0)
    }

    fn due_subscriptions(&self, now: u64) -> Result<Vec<String>, StoreError> {
        let query = "SELECT id FROM subscriptions WHERE lease_until <= ?1 OR next_attempt <= ?1";
        let mut statement = self.0.prepare_cached(query)?;
        let rows = statement.query_map([signed(now)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn links(&self, subscription: &str, most: usize) -> Result<Vec<(LinkRow, Option<u64>)>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT l.path, l.explicit, l.matched, l.acked, s.tail FROM links l
             LEFT JOIN streams s ON s.path = l.path AND NOT s.deleted
             WHERE l.subscription = ?1 ORDER BY coalesce(s.tail, 0) > l.acked DESC, l.path LIMIT ?2",
        )?;
        let rows = statement.query_map((subscription, signed(most as u64)), |row| {
            Ok((link_of(row)?, row.get::<_, Option<i64>>(4)?.map(unsigned)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn link(&self, subscription: &str, path: &str) -> Result<Option<LinkRow>, StoreError> {
        let query = "SELECT path, explicit, matched, acked FROM links WHERE subscription = ?1 AND path = ?2";
        Ok(self.0.prepare_cached(query)?.query_row((subscription, path), link_of).optional()?)
    }

    fn links_to(&self, path: &str) -> Result<Vec<(String, LinkRow)>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT path, explicit, matched, acked, subscription FROM links WHERE path = ?1 ORDER BY subscription",
        )?;
        let rows = statement.query_map([path], |row| Ok((row.get(4)?, link_of(row)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn set_link(&mut self, subscription: &str, link: &LinkRow) -> Result<(), StoreError> {
        let replace = "INSERT OR REPLACE INTO links (subscription, path, explicit, matched, acked)
             VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (subscription, &link.path, link.explicit, link.matched, signed(link.acked));
        self.0.prepare_cached(replace)?.execute(row)?;
        Ok(())
    }

    fn remove_link(&mut self, subscription: &str, path: &str) -> Result<(), StoreError> {
        let delete = "DELETE FROM links WHERE subscription = ?1 AND path = ?2";
        self.0.prepare_cached(delete)?.execute((subscription, path))?;
        Ok(())
    }

    /// A file that cannot grow stands for a full disk; the limit goes with the connection.
    #[cfg(test)]
    fn leave_no_room(&mut self) -> Result<(), StoreError> {
        let pages: i64 = self.0.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        self.0.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        Ok(())
    }
}

fn stream_of(row: &Row<'_>) -> Result<Meta, rusqlite::Error> {
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
        Some(from) => {
            Some(ForkAsked { from, anchor: number("fork_anchor")?, sub: number("fork_sub")?.unwrap_or(0) })
        }
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

/// The first four columns: path, explicit, matched, acked.
fn link_of(row: &Row<'_>) -> Result<LinkRow, rusqlite::Error> {
    Ok(LinkRow {
        path: row.get(0)?,
        explicit: row.get(1)?,
        matched: row.get(2)?,
        acked: unsigned(row.get(3)?),
    })
}

fn text_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "idle",
        Phase::Waking => "waking",
        Phase::Leased => "leased",
    }
}

fn phase_of(text: &str) -> Phase {
    match text {
        "waking" => Phase::Waking,
        "leased" => Phase::Leased,
        _ => Phase::Idle,
    }
}
