//! A piece of a stream at one moment, whoever it was read from.

use bytes::Bytes;

use crate::content::Kind;
use crate::offset::Position;

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
