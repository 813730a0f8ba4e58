//! Appends to a stream, closes it, and handles producers that repeat a request.

use super::{Change, Fault, Transaction, touch, visible};
use crate::content::{Kind, media_type};
use crate::json;
use crate::offset;
use crate::problem::Problem;
use crate::storage::{Meta, Producer, Tables};

/// Longest piece of data in one row: what is read is never much more than what is sent.
const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// An append as a client asks for it.
#[derive(Debug)]
pub struct Append {
    pub path: String,
    pub content_type: Option<String>,
    /// The bytes to keep, or why they cannot be; told only when nothing else is wrong. `None` when there is no body.
    pub data: Option<Result<Vec<u8>, Problem>>,
    pub close: bool,
    pub seq: Option<String>,
    pub producer: Option<Producer>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Appended {
    pub tail: u64,
    pub closed: bool,
    /// Nothing was added: it was there already.
    pub duplicate: bool,
    /// The producer's place now.
    pub producer: Option<(u64, u64)>,
}

pub fn append(turn: &mut Transaction<'_>, asked: Append) -> Result<Appended, Fault> {
    let mut meta = visible(turn.tables, turn.shared, &asked.path)?;
    let known = match &asked.producer {
        Some(producer) => turn.tables.producer(meta.id, &producer.id)?,
        None => None,
    };
    if meta.closed {
        return append_to_closed(&meta, &asked, known);
    }
    if asked.data.is_some() {
        check_type(&meta, asked.content_type.as_deref())?;
    }
    if let Some(producer) = &asked.producer {
        let standing = standing(known, producer)?;
        if let Standing::Duplicate { seq } = standing {
            touch(&meta, turn.shared);
            return Ok(Appended {
                tail: meta.tail,
                closed: false,
                duplicate: true,
                producer: Some((producer.epoch, seq)),
            });
        }
    }
    if let Some(seq) = &asked.seq
        && meta.seq.as_deref().is_some_and(|last| seq.as_bytes() <= last)
    {
        return Err(
            Problem::new(409, "SEQUENCE_CONFLICT", "Stream-Seq must be greater than the last one").into()
        );
    }
    let data = match asked.data {
        Some(data) => data?,
        None => Vec::new(),
    };

    let before = meta.tail;
    write_chunks(turn.tables, &mut meta, &data)?;
    if let Some(producer) = &asked.producer {
        turn.tables.set_producer(meta.id, producer)?;
    }
    meta.closed = asked.close;
    meta.due = meta.lifetime.due(turn.now).or(meta.due);
    meta.seq = asked.seq.map(String::into_bytes).or(meta.seq);
    meta.closer = asked.producer.clone().filter(|_| asked.close);
    turn.tables.set_stream(&meta)?;
    turn.changes.push(Change::of(&meta, before));
    Ok(Appended {
        tail: meta.tail,
        closed: asked.close,
        duplicate: false,
        producer: asked.producer.map(|producer| (producer.epoch, producer.seq)),
    })
}

/// A closed stream takes nothing more; whoever closed it may say so again.
fn append_to_closed(meta: &Meta, asked: &Append, known: Option<(u64, u64)>) -> Result<Appended, Fault> {
    let again = |producer| Appended { tail: meta.tail, closed: true, duplicate: true, producer };
    if let Some(producer) = &asked.producer {
        if meta.closer.as_ref() == Some(producer) {
            return Ok(again(Some((producer.epoch, producer.seq))));
        }
        if let Some((epoch, _)) = known
            && producer.epoch < epoch
        {
            return Err(stale_epoch(epoch).into());
        }
    }
    if asked.close && asked.data.is_none() && asked.producer.is_none() {
        return Ok(again(None));
    }
    Err(Problem::new(409, "STREAM_CLOSED", "the stream is closed and takes nothing more")
        .header("stream-closed", "true")
        .header("stream-next-offset", offset::text(meta.tail))
        .into())
}

fn check_type(meta: &Meta, content_type: Option<&str>) -> Result<(), Problem> {
    let Some(content_type) = content_type else {
        return Err(Problem::invalid("Content-Type is missing; it must be that of the stream"));
    };
    if media_type(content_type) != media_type(&meta.content_type) {
        return Err(Problem::new(
            409,
            "CONTENT_TYPE_MISMATCH",
            format!("the stream has {}, not {content_type}", meta.content_type),
        ));
    }
    Ok(())
}

enum Standing {
    Next,
    Duplicate { seq: u64 },
}

/// Where a batch stands to what its producer sent before.
fn standing(known: Option<(u64, u64)>, sent: &Producer) -> Result<Standing, Problem> {
    let gap = |expected: u64| {
        Problem::new(409, "PRODUCER_SEQUENCE_GAP", "batches of this producer are missing before this one")
            .header("producer-expected-seq", expected)
            .header("producer-received-seq", sent.seq)
    };
    let Some((epoch, seq)) = known else {
        return if sent.seq == 0 { Ok(Standing::Next) } else { Err(gap(0)) };
    };
    if sent.epoch < epoch {
        return Err(stale_epoch(epoch));
    }
    if sent.epoch > epoch {
        return if sent.seq == 0 {
            Ok(Standing::Next)
        } else {
            Err(Problem::invalid("a new Producer-Epoch starts with Producer-Seq 0"))
        };
    }
    if sent.seq <= seq {
        return Ok(Standing::Duplicate { seq });
    }
    if sent.seq == seq + 1 { Ok(Standing::Next) } else { Err(gap(seq + 1)) }
}

fn stale_epoch(current: u64) -> Problem {
    Problem::new(403, "STALE_PRODUCER_EPOCH", "another instance of this producer has taken over")
        .header("producer-epoch", current)
}

/// Writes the bytes of one append behind the tail, and moves the tail; the row itself is for the caller to write.
pub fn write_chunks(tables: &mut dyn Tables, meta: &mut Meta, data: &[u8]) -> Result<(), Fault> {
    if offset::LIMIT - meta.tail < data.len() as u64 {
        return Err(Problem::new(413, "STREAM_FULL", "the stream has no offsets left").into());
    }
    let mut rest = data;
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(chunk_length(meta.kind(), rest));
        meta.tail += chunk.len() as u64;
        tables.add_chunk(meta.id, meta.tail, behind.is_empty(), chunk)?;
        rest = behind;
    }
    Ok(())
}

/// Messages are never taken apart: a row of a JSON stream ends where a message does.
fn chunk_length(kind: Kind, data: &[u8]) -> usize {
    if data.len() <= CHUNK_BYTES_MAX {
        return data.len();
    }
    if kind != Kind::Json {
        return CHUNK_BYTES_MAX;
    }
    match data[..CHUNK_BYTES_MAX].iter().rposition(|byte| *byte == json::END) {
        Some(last) => last + 1,
        None => data.iter().position(|byte| *byte == json::END).map_or(data.len(), |first| first + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(epoch: u64, seq: u64) -> Producer {
        Producer { id: "p".to_owned(), epoch, seq }
    }

    /// The protocol's validation logic, line by line.
    #[test]
    fn a_producer_goes_on_where_it_was_and_nowhere_else() {
        let status = |known, epoch, seq| match standing(known, &sent(epoch, seq)) {
            Ok(Standing::Next) => 200,
            Ok(Standing::Duplicate { .. }) => 204,
            Err(problem) => problem.status,
        };
        assert_eq!(status(None, 0, 0), 200);
        assert_eq!(status(None, 3, 0), 200);
        assert_eq!(status(None, 0, 1), 409);
        assert_eq!(status(Some((2, 5)), 1, 6), 403);
        assert_eq!(status(Some((2, 5)), 3, 0), 200);
        assert_eq!(status(Some((2, 5)), 3, 1), 400);
        assert_eq!(status(Some((2, 5)), 2, 5), 204);
        assert_eq!(status(Some((2, 5)), 2, 0), 204);
        assert_eq!(status(Some((2, 5)), 2, 6), 200);
        assert_eq!(status(Some((2, 5)), 2, 7), 409);
    }

    #[test]
    fn a_row_of_a_json_stream_ends_with_a_message() {
        let long = json::messages(format!("[\"{}\",1]", "x".repeat(CHUNK_BYTES_MAX)).as_bytes()).unwrap();
        let first = chunk_length(Kind::Json, &long);
        assert_eq!(first, long.len() - 2);
        assert_eq!(chunk_length(Kind::Binary, &long), CHUNK_BYTES_MAX);
    }
}
