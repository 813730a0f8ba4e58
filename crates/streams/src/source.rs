//! Streams that the program feeds: they are read like stored ones, and clients cannot write to them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::offset::Position;

/// Where the program that mounts this crate offers streams of its own.
pub trait Source: Send + Sync {
    /// The stream at this path, or `None` when there is none (yet).
    fn find(&self, path: &str) -> Option<Arc<dyn Feed>>;

    /// Whether this path belongs to the source even when it has no stream there: clients may not create one in its place.
    fn claims(&self, path: &str) -> bool;
}

/// A stream of JSON messages with growing positions.
pub trait Feed: Send + Sync {
    /// The items behind `after`, in order, about `limit` bytes of them and at least one if there is one. Called where
    /// it may block.
    fn read(&self, after: Position, limit: usize) -> Result<Items, FeedError>;

    /// Tells the position of the last item, whenever it grows, and once more when the feed is closed.
    fn head(&self) -> watch::Receiver<Position>;

    /// Whether nothing will ever be added.
    fn closed(&self) -> bool;
}

/// A piece of a feed.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// Position and JSON text of each item.
    pub items: Vec<(Position, Bytes)>,
    /// The position from which to read on: that of the last item or one behind it, or what was asked for.
    pub next: Position,
    /// Whether there is nothing behind `next` now.
    pub end: bool,
}

/// Why a feed does not give its items.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FeedError {
    #[error("the data at this offset was deleted; start again from the beginning")]
    Gone,
    #[error("{0}")]
    Failed(String),
}
