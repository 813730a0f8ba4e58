//! Where a log is kept, and the only functions that choose how: whoever uses a log names its location and gets a [`Log`].

use std::path::PathBuf;

use crate::sqlite::SqliteLog;
use crate::{Holder, Log, LogError};

/// Where a log is kept. A log on a server would be another variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file of this machine, which one process at a time may own.
    File(PathBuf),
}

/// Opens the log for its one owner, which this process becomes, and creates it if there has never been one. An older
/// schema is upgraded.
pub fn open(location: &Location) -> Result<Box<dyn Log>, LogError> {
    match location {
        Location::File(path) => Ok(Box::new(SqliteLog::open(path, &Holder::current())?)),
    }
}

/// Opens the log for inspection, also while another process owns it. Nothing can be written through it.
pub fn open_for_reading(location: &Location) -> Result<Box<dyn Log>, LogError> {
    match location {
        Location::File(path) => Ok(Box::new(SqliteLog::open_for_reading(path)?)),
    }
}

/// The process that owns the log now, as it says itself. `None` where nobody owns it, or where the owner has not said so yet.
pub fn holder(location: &Location) -> Option<Holder> {
    match location {
        Location::File(path) => SqliteLog::holder(path),
    }
}
