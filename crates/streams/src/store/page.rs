//! Reads a part of a stream, through its chain of sources if it is a fork.

use bytes::Bytes;
use rusqlite::Connection;

use super::meta::Meta;
use super::{Fault, Shared, mark, signed, unsigned};
use crate::content::Kind;
use crate::json;
use crate::offset::{LIMIT, Position, Start};
use crate::problem::Problem;

/// A piece of a stream at one moment.
#[derive(Clone, Debug)]
pub struct Page {
    /// Told apart from an earlier stream at the same path.
    pub stream: i64,
    pub content_type: String,
    /// Whether the stream has a time at which it is over.
    pub mortal: bool,
    pub from: Position,
    pub next: Position,
    pub tail: Position,
    /// Whether the stream is closed, wherever this piece ends.
    pub stream_closed: bool,
    pub kept: Bytes,
}

impl Page {
    pub fn up_to_date(&self) -> bool {
        self.next == self.tail
    }

    /// Whether this is the end for ever.
    pub fn closed(&self) -> bool {
        self.stream_closed && self.up_to_date()
    }

    pub fn kind(&self) -> Kind {
        Kind::of(&self.content_type)
    }
}

/// About `limit` bytes from `start` on.
pub fn read(db: &Connection, shared: &Shared, path: &str, start: Start, limit: usize) -> Result<Page, Fault> {
    let meta = Meta::visible(db, shared, path)?;
    meta.touch(shared);
    let from = match start {
        Start::Tail => meta.tail,
        Start::At(position) if position.stored() <= meta.tail => position.stored(),
        Start::At(_) => return Err(not_ours("behind the end of the stream").into()),
    };
    let (kept, next) = between(db, &meta, from, limit)?;
    Ok(Page {
        stream: meta.id,
        mortal: meta.due.is_some(),
        from: from.into(),
        next: next.into(),
        tail: meta.tail.into(),
        stream_closed: meta.closed,
        kept,
        content_type: meta.content_type,
    })
}

fn between(db: &Connection, meta: &Meta, from: u64, limit: usize) -> Result<(Bytes, u64), Fault> {
    let mut gathered = Gathered { kind: meta.kind(), limit, at: from, kept: Vec::new() };
    for segment in segments(db, meta)? {
        if gathered.at >= segment.end {
            continue;
        }
        if !gathered.take(db, &segment)? {
            break;
        }
    }
    Ok((Bytes::from(gathered.kept), gathered.at))
}

/// A stretch of positions whose data lies under one stream.
struct Segment {
    stream: i64,
    end: u64,
}

/// Oldest source first. What a source got behind the place where it was forked belongs to nobody down the chain.
fn segments(db: &Connection, meta: &Meta) -> Result<Vec<Segment>, Fault> {
    let mut segments = vec![Segment { stream: meta.id, end: meta.tail }];
    let (mut parent, mut end) = (meta.parent, meta.fork_at);
    while let Some(id) = parent {
        segments.push(Segment { stream: id, end });
        let Some(source) = Meta::by_id(db, id)? else {
            return Err(Problem::failed(format!("the source of `{}` is missing", meta.path)).into());
        };
        (parent, end) = (source.parent, end.min(source.fork_at));
    }
    segments.reverse();
    Ok(segments)
}

struct Gathered {
    kind: Kind,
    limit: usize,
    at: u64,
    kept: Vec<u8>,
}

impl Gathered {
    /// Takes what it can of a segment. `false` when there is no room for more.
    fn take(&mut self, db: &Connection, segment: &Segment) -> Result<bool, Fault> {
        let mut statement = db.prepare_cached(
            "SELECT end, data, sum FROM chunks WHERE stream = ?1 AND end > ?2 ORDER BY end",
        )?;
        let mut rows = statement.query((segment.stream, signed(self.at)))?;
        while let Some(row) = rows.next()? {
            let end = unsigned(row.get(0)?);
            let data = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let kept = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            if kept.is_some_and(|kept| kept != mark::sum(data)) {
                let why =
                    format!("stream {} does not hold what was written before position {end}", segment.stream);
                return Err(Problem::damaged(&why).into());
            }
            let start = end.saturating_sub(data.len() as u64);
            // What stood between was there when it was acknowledged.
            if start > self.at {
                let why = format!("stream {} lacks what stood behind position {}", segment.stream, self.at);
                return Err(Problem::damaged(&why).into());
            }
            if start >= segment.end {
                break;
            }
            let (first, last) = (self.at.saturating_sub(start), end.min(segment.end) - start);
            self.check_boundary(data, first)?;
            let piece = &data[index(first)..index(last)];
            let room = self.limit.saturating_sub(self.kept.len());
            if room == 0 {
                return Ok(false);
            }
            let fits = if piece.len() > room && !self.kept.is_empty() && self.kind == Kind::Json {
                // Whole messages only; what does not fit any more is for the next answer.
                piece[..room].iter().rposition(|byte| *byte == json::END).map_or(0, |last| last + 1)
            } else {
                self.kind.cut(piece, room)
            };
            self.kept.reserve_exact(fits);
            self.kept.extend_from_slice(&piece[..fits]);
            self.at += fits as u64;
            if fits < piece.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An offset inside a message was made up: what follows it is not JSON.
    fn check_boundary(&self, data: &[u8], first: u64) -> Result<(), Fault> {
        if self.kind == Kind::Json && first > 0 && data[index(first) - 1] != json::END {
            return Err(not_ours("in the middle of a message").into());
        }
        Ok(())
    }
}

/// The place that a fork asks for: `sub` bytes or messages behind `anchor`, inside the append that begins there.
pub fn fork_position(db: &Connection, source: &Meta, anchor: u64, sub: u64) -> Result<u64, Fault> {
    let beyond =
        || Problem::new(400, "OFFSET_BEYOND_END", "the place to fork at lies behind the end of the source");
    if anchor > source.tail {
        return Err(beyond().into());
    }
    // Reading one byte checks that the anchor is one of ours.
    between(db, source, anchor, 1)?;
    if sub == 0 {
        return Ok(anchor);
    }
    let boundary = boundary(db, source, anchor)?;
    if source.kind() != Kind::Json {
        let position = anchor.saturating_add(sub);
        return if position <= boundary { Ok(position) } else { Err(beyond().into()) };
    }
    let (messages, _) = between(db, source, anchor, index(boundary - anchor))?;
    match json::length_of(&messages, sub) {
        Some(length) => Ok(anchor + length as u64),
        None => Err(beyond().into()),
    }
}

/// Where the append ends that the byte behind `anchor` came with.
fn boundary(db: &Connection, source: &Meta, anchor: u64) -> Result<u64, Fault> {
    for segment in segments(db, source)? {
        if anchor >= segment.end {
            continue;
        }
        let end: Option<i64> = db
            .prepare_cached("SELECT min(end) FROM chunks WHERE stream = ?1 AND end > ?2 AND last")?
            .query_row((segment.stream, signed(anchor)), |row| row.get(0))?;
        return Ok(end.map_or(segment.end, |end| unsigned(end).min(segment.end)));
    }
    Ok(anchor)
}

fn not_ours(where_: &str) -> Problem {
    Problem::new(400, "INVALID_OFFSET", format!("the offset lies {where_}; use one that this server gave"))
}

fn index(position: u64) -> usize {
    usize::try_from(position.min(LIMIT)).unwrap_or(usize::MAX)
}
