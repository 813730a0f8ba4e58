//! Reading a piece of a stream, through its chain of sources if it is a fork.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::{Fault, Shared, touch, visible};
use crate::content::Kind;
use crate::json;
use crate::offset::{LIMIT, Start};
use crate::page::Page;
use crate::problem::Problem;
use crate::storage::{Meta, StreamId, Tables};

/// About `limit` bytes from `start` on.
pub fn read(
    tables: &dyn Tables,
    shared: &Shared,
    path: &str,
    start: Start,
    limit: usize,
) -> Result<Page, Fault> {
    let meta = visible(tables, shared, path)?;
    touch(&meta, shared);
    let from = match start {
        Start::Tail => meta.tail,
        Start::At(position) if position.stored() <= meta.tail => position.stored(),
        Start::At(_) => return Err(not_ours("behind the end of the stream").into()),
    };
    let (kept, next) = between(tables, &meta, from, limit)?;
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

fn between(tables: &dyn Tables, meta: &Meta, from: u64, limit: usize) -> Result<(Bytes, u64), Fault> {
    let mut gathered = Gathered { kind: meta.kind(), limit, at: from, kept: Vec::new() };
    for segment in segments(tables, meta)? {
        if gathered.at >= segment.end {
            continue;
        }
        if !gathered.take(tables, &segment)? {
            break;
        }
    }
    Ok((Bytes::from(gathered.kept), gathered.at))
}

/// A stretch of positions whose data lies under one stream.
struct Segment {
    stream: StreamId,
    end: u64,
}

/// Oldest source first. What a source got behind the place where it was forked belongs to nobody down the chain.
fn segments(tables: &dyn Tables, meta: &Meta) -> Result<Vec<Segment>, Fault> {
    let mut segments = vec![Segment { stream: meta.id, end: meta.tail }];
    let (mut parent, mut end) = (meta.parent, meta.fork_at);
    while let Some(id) = parent {
        segments.push(Segment { stream: id, end });
        let Some(source) = tables.stream_by_id(id)? else {
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
    fn take(&mut self, tables: &dyn Tables, segment: &Segment) -> Result<bool, Fault> {
        let mut taken = Ok(true);
        tables.chunks(segment.stream, self.at, &mut |end, data| {
            taken = self.take_chunk(segment, end, data);
            // Behind the end of the segment nothing of it follows.
            match taken {
                Ok(true) if end < segment.end => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })?;
        taken
    }

    fn take_chunk(&mut self, segment: &Segment, end: u64, data: &[u8]) -> Result<bool, Fault> {
        let start = end.saturating_sub(data.len() as u64);
        // What stood between was there when it was acknowledged.
        if start > self.at {
            let why = format!("stream {} lacks what stood behind position {}", segment.stream, self.at);
            return Err(Problem::damaged(&why).into());
        }
        if start >= segment.end {
            return Ok(true);
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
        Ok(fits == piece.len())
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
pub fn fork_position(tables: &dyn Tables, source: &Meta, anchor: u64, sub: u64) -> Result<u64, Fault> {
    let beyond =
        || Problem::new(400, "OFFSET_BEYOND_END", "the place to fork at lies behind the end of the source");
    if anchor > source.tail {
        return Err(beyond().into());
    }
    // Reading one byte checks that the anchor is one of ours.
    between(tables, source, anchor, 1)?;
    if sub == 0 {
        return Ok(anchor);
    }
    let boundary = boundary(tables, source, anchor)?;
    if source.kind() != Kind::Json {
        let position = anchor.saturating_add(sub);
        return if position <= boundary { Ok(position) } else { Err(beyond().into()) };
    }
    let (messages, _) = between(tables, source, anchor, index(boundary - anchor))?;
    match json::length_of(&messages, sub) {
        Some(length) => Ok(anchor + length as u64),
        None => Err(beyond().into()),
    }
}

/// Where the append ends that the byte behind `anchor` came with.
fn boundary(tables: &dyn Tables, source: &Meta, anchor: u64) -> Result<u64, Fault> {
    for segment in segments(tables, source)? {
        if anchor >= segment.end {
            continue;
        }
        let end = tables.append_end(segment.stream, anchor)?;
        return Ok(end.map_or(segment.end, |end| end.min(segment.end)));
    }
    Ok(anchor)
}

fn not_ours(where_: &str) -> Problem {
    Problem::new(400, "INVALID_OFFSET", format!("the offset lies {where_}; use one that this server gave"))
}

fn index(position: u64) -> usize {
    usize::try_from(position.min(LIMIT)).unwrap_or(usize::MAX)
}
