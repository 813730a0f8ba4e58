//! Reads both kinds of stream in one way: stored ones, and those that a source feeds.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use tokio::sync::watch;

use crate::Inner;
use crate::json;
use crate::live::{Batch, Held, Last, Tail};
use crate::memory::NoRoom;
use crate::offset::{Position, Start};
use crate::page::Page;
use crate::problem::Problem;
use crate::source::{Feed, FeedError};
use crate::stored::{read, visible};

/// What readers of each feed got last.
pub type FeedTails = Held<String, Last>;

/// A stream that can be read.
#[derive(Clone)]
pub enum Target {
    Stored { path: String },
    Fed { path: String, feed: Arc<dyn Feed> },
}

/// A place at the end of a stream.
pub struct Waiting {
    grown: Grown,
    shared: Shared,
}

/// Changes when there may be something new.
enum Grown {
    Stored(watch::Receiver<u64>),
    Fed(watch::Receiver<Position>),
}

enum Shared {
    Stored(Arc<Tail>),
    Fed(Arc<Last>),
}

/// Why there is nothing to send.
#[derive(Debug)]
pub enum NoBatch {
    Problem(Problem),
    /// It may be there in a while.
    NoRoom(NoRoom),
}

impl From<Problem> for NoBatch {
    fn from(problem: Problem) -> NoBatch {
        NoBatch::Problem(problem)
    }
}

impl From<NoRoom> for NoBatch {
    fn from(no: NoRoom) -> NoBatch {
        NoBatch::NoRoom(no)
    }
}

impl From<NoBatch> for Problem {
    fn from(no: NoBatch) -> Problem {
        match no {
            NoBatch::Problem(problem) => problem,
            NoBatch::NoRoom(no) => Problem::no_room(no),
        }
    }
}

impl Waiting {
    /// Comes back when there may be something new.
    pub async fn grown(&mut self) {
        let changed = match &mut self.grown {
            Grown::Stored(grown) => grown.changed().await,
            Grown::Fed(grown) => grown.changed().await,
        };
        if changed.is_err() {
            // A feed that nobody feeds any more stays as it is; the reader's own time limit ends the wait.
            std::future::pending::<()>().await;
        }
    }

    fn last(&self) -> &Last {
        match &self.shared {
            Shared::Stored(tail) => &tail.last,
            Shared::Fed(last) => last,
        }
    }
}

/// Whether clients may not write here.
pub fn claimed(inner: &Inner, path: &str) -> bool {
    inner.options.source.as_ref().is_some_and(|source| source.claims(path) || source.find(path).is_some())
}

pub fn find(inner: &Inner, path: &str) -> Result<Target, Problem> {
    let Some(source) = &inner.options.source else {
        return Ok(Target::Stored { path: path.to_owned() });
    };
    match source.find(path) {
        Some(feed) => Ok(Target::Fed { path: path.to_owned(), feed }),
        None if source.claims(path) => Err(Problem::not_found(path)),
        None => Ok(Target::Stored { path: path.to_owned() }),
    }
}

impl Target {
    /// About `limit` bytes from `start` on.
    pub async fn page(&self, inner: &Inner, start: Start, limit: usize) -> Result<Page, Problem> {
        match self {
            Target::Stored { path } => {
                let path = path.clone();
                inner.store.read(move |tables, shared| read::read(tables, shared, &path, start, limit)).await
            }
            Target::Fed { feed, .. } => {
                let feed = feed.clone();
                // Held until what was read is taken.
                let _turn = inner.feeding.acquire().await.map_err(Problem::failed)?;
                let read = tokio::task::spawn_blocking(move || fed_page(&*feed, start, limit));
                read.await.map_err(Problem::failed)?
            }
        }
    }

    /// A place at the end of this stream; to be taken before reading.
    pub async fn wait(&self, inner: &Inner) -> Result<Waiting, Problem> {
        match self {
            Target::Stored { path } => {
                let path = path.clone();
                let found = inner.store.read(move |tables, shared| Ok(visible(tables, shared, &path)?.id));
                let stream = found.await?;
                let (tail, grown) = inner.store.shared.live.wait(stream);
                Ok(Waiting { grown: Grown::Stored(grown), shared: Shared::Stored(tail) })
            }
            Target::Fed { path, feed } => {
                let last = inner.feeds.hold(path.clone(), Last::default);
                Ok(Waiting { grown: Grown::Fed(feed.head()), shared: Shared::Fed(last) })
            }
        }
    }

    /// What follows `position` for readers that waited there: read once, taken by all.
    pub async fn next(
        &self,
        inner: &Inner,
        waiting: &Waiting,
        position: Position,
        caller: &str,
    ) -> Result<Arc<Batch>, NoBatch> {
        let mut last = waiting.last().lock().await;
        if let Some(batch) = last.as_ref()
            && batch.page.from == position
            && (batch.page.next > position || batch.page.closed())
        {
            return Ok(batch.clone());
        }
        // What they all had before is nobody's any more.
        *last = None;
        let page = self.page(inner, Start::At(position), inner.options.event_limit).await?;
        let batch = Arc::new(Batch::new(page, &inner.options.memory, caller)?);
        *last = Some(batch.clone());
        Ok(batch)
    }
}

fn fed_page(feed: &dyn Feed, start: Start, limit: usize) -> Result<Page, Problem> {
    // Asked before reading: what is closed now has nothing to come behind what is read next.
    let closed = feed.closed();
    let head = *feed.head().borrow();
    let from = match start {
        Start::At(position) => position,
        Start::Tail => head,
    };
    let read = feed.read(from, limit).map_err(|error| match error {
        FeedError::Gone => Problem::new(410, "OFFSET_GONE", error.to_string()),
        FeedError::Failed(_) => Problem::failed(error),
    })?;
    let mut kept = BytesMut::with_capacity(read.items.iter().map(|(_, item)| item.len() + 1).sum());
    for (_, item) in &read.items {
        kept.extend_from_slice(item);
        kept.put_u8(json::END);
    }
    Ok(Page {
        stream: 0,
        content_type: "application/json".to_owned(),
        mortal: false,
        from,
        next: read.next,
        tail: if read.end {
            read.next
        } else {
            head.max(Position { minor: read.next.minor + 1, ..read.next })
        },
        stream_closed: closed,
        kept: kept.freeze(),
    })
}
