//! Where streams and subscriptions are kept: the trait that every store implements, and [`open`], the one place that
//! chooses one.
//!
//! A store has one writer and many readers. Invariants, which `conformance.rs` holds every store to:
//! - a transaction counts whole or not at all, and when `transact` returns `Ok`, it is durable;
//! - readers see what is committed and nothing else, and all that one view shows is of one moment;
//! - the id of a stream is never given twice.

#[cfg(test)]
mod conformance;
#[cfg(test)]
pub mod memory;
mod rows;
mod sqlite;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use rows::{ForkAsked, LinkRow, Meta, Phase, Producer, SubscriptionRow};
pub use sqlite::transfer::{Checked, FORMAT, TransferError, export, import, verify};

/// A stream, told apart from an earlier one at the same path.
pub type StreamId = i64;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the folder `{folder}`: {source}")]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("the streams in `{folder}` are in use by another process; stop it first")]
    InUse { folder: PathBuf },
    #[error("cannot open `{file}`: {source}")]
    Database { file: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot use the key that signs webhooks: {0}")]
    Key(String),
    #[error("streams must be opened inside a tokio runtime")]
    NoRuntime,
}

/// What opening came to.
pub enum Opened {
    Ready(Parts),
    /// What was acknowledged is not there, or not as it was. Nothing was changed.
    Damaged(String),
}

/// A store: its one writer, and what gives views to readers.
pub struct Parts {
    pub writer: Box<dyn Store>,
    pub views: Arc<dyn Views>,
}

/// Opens the streams in this folder, which is made if it is not there.
pub fn open(folder: &Path) -> Result<Opened, OpenError> {
    sqlite::open(folder)
}

/// Why a store does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing of the transaction was kept; it goes on when there is room.
    #[error("there is no room for it")]
    Full,
    /// It holds something else than what was written.
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Failed(String),
}

/// The writer of a store. There is one.
pub trait Store: Send {
    /// Carries `work` out in one transaction. When this returns `Ok`, what it wrote is durable and readers see it; after an
    /// error of the work or of the store nothing of it counts, and the next transaction finds what was there before.
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), StoreError>;

    /// Whether a stream, a lease or a time to try again is due. Most of the time nothing is, and then there need be no
    /// transaction.
    fn is_anything_due(&mut self, now: u64) -> bool;

    /// A value that nobody else may know: made when it is asked for first, and the same for ever. It is not in an export.
    fn secret(&mut self, name: &str, make: &mut MakeSecret<'_>) -> Result<Vec<u8>, String>;
}

pub type Work<'a> = dyn FnMut(&mut dyn Tables) -> Result<(), StoreError> + 'a;
pub type MakeSecret<'a> = dyn FnMut() -> Result<Vec<u8>, String> + 'a;

/// The readers' side of a store. A look may block, and several may run at once.
pub trait Views: Send + Sync {
    /// Shows what is committed at this moment.
    fn view(&self, look: &mut Look<'_>) -> Result<(), StoreError>;

    /// How many looks are worth running at once.
    fn at_once(&self) -> usize;
}

pub type Look<'a> = dyn FnMut(&dyn Tables) + 'a;

/// What a transaction or a view has to do with. Through a view nothing can be changed.
pub trait Tables {
    fn stream(&self, path: &str) -> Result<Option<Meta>, StoreError>;
    fn stream_by_id(&self, id: StreamId) -> Result<Option<Meta>, StoreError>;
    /// Adds a stream. Its id is a new one, whatever the row says.
    fn add_stream(&mut self, new: &Meta) -> Result<StreamId, StoreError>;
    /// Writes what can change of a stream: its tail, when it is due, whether it is closed or deleted, its last Stream-Seq
    /// and who closed it.
    fn set_stream(&mut self, stream: &Meta) -> Result<(), StoreError>;
    /// Removes a stream with its data and its producers.
    fn remove_stream(&mut self, id: StreamId) -> Result<(), StoreError>;
    fn has_forks(&self, id: StreamId) -> Result<bool, StoreError>;
    /// Streams that are due, at most so many.
    fn due_streams(&self, now: u64, most: usize) -> Result<Vec<StreamId>, StoreError>;
    /// Path and tail of each stream that is not deleted and whose path begins so, by path.
    fn streams_below(&self, prefix: &str) -> Result<Vec<(String, u64)>, StoreError>;

    /// Adds the piece of data that ends at `end`. `last`: an append ends here.
    fn add_chunk(&mut self, stream: StreamId, end: u64, last: bool, data: &[u8]) -> Result<(), StoreError>;
    /// Visits the pieces that end behind `after`, in order, each as it was written or not at all.
    fn chunks(&self, stream: StreamId, after: u64, visit: &mut VisitChunk<'_>) -> Result<(), StoreError>;
    /// Where the first append ends that ends behind `after`.
    fn append_end(&self, stream: StreamId, after: u64) -> Result<Option<u64>, StoreError>;

    /// Epoch and sequence number of what this producer sent last.
    fn producer(&self, stream: StreamId, id: &str) -> Result<Option<(u64, u64)>, StoreError>;
    fn set_producer(&mut self, stream: StreamId, producer: &Producer) -> Result<(), StoreError>;

    fn subscription(&self, id: &str) -> Result<Option<SubscriptionRow>, StoreError>;
    /// All of them: id and configuration.
    fn subscriptions(&self) -> Result<Vec<(String, String)>, StoreError>;
    fn add_subscription(&mut self, new: &SubscriptionRow) -> Result<(), StoreError>;
    /// Writes what can change of a subscription: everything but its configuration, base and time of creation.
    fn set_subscription(&mut self, subscription: &SubscriptionRow) -> Result<(), StoreError>;
    /// Removes it with its links. False: there was none.
    fn remove_subscription(&mut self, id: &str) -> Result<bool, StoreError>;
    /// Those whose lease has run out, or that are to be tried again.
    fn due_subscriptions(&self, now: u64) -> Result<Vec<String>, StoreError>;

    /// At most so many links of a subscription, those with something new first, then by path. Each comes with the tail of
    /// its stream, if there is one.
    fn links(&self, subscription: &str, most: usize) -> Result<Vec<(LinkRow, Option<u64>)>, StoreError>;
    fn link(&self, subscription: &str, path: &str) -> Result<Option<LinkRow>, StoreError>;
    /// The links of all subscriptions to this path, with the subscription of each, in its order.
    fn links_to(&self, path: &str) -> Result<Vec<(String, LinkRow)>, StoreError>;
    /// Adds a link, or replaces the one to the same path.
    fn set_link(&mut self, subscription: &str, link: &LinkRow) -> Result<(), StoreError>;
    fn remove_link(&mut self, subscription: &str, path: &str) -> Result<(), StoreError>;

    /// From here on there is no room for anything large, until a transaction has failed.
    #[cfg(test)]
    fn leave_no_room(&mut self) -> Result<(), StoreError>;
}

/// Takes where a piece of data ends, and the piece.
pub type VisitChunk<'a> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 'a;
