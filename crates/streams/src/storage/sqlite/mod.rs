//! A store in one SQLite file: one connection that writes it, a few that read it.
//!
//! Beside `streams.db` lie SQLite's own `streams.db-wal` and `streams.db-shm`, the mark `streams.db.head`, and
//! `streams.lock`, which is locked while the store is open.

mod mark;
mod readers;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
pub mod transfer;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use self::mark::{Mark, Marker};
use self::readers::Readers;
use self::tables::SqliteTables;
use super::{MakeSecret, OpenError, Opened, Parts, Store, StoreError, Work};

const FILE: &str = "streams.db";

pub fn open(folder: &Path) -> Result<Opened, OpenError> {
    let folder_error = |source| OpenError::Folder { folder: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(folder_error)?;
    let lock = lock(folder)?;
    let file = folder.join(FILE);
    let mark = Mark::read(&file).filter(|mark| mark.commits > 0);
    let there = std::fs::metadata(&file).is_ok_and(|there| there.len() > 0);
    if let Some(mark) = mark.as_ref().filter(|_| !there) {
        return Ok(Opened::Damaged(mark.check(None).err().unwrap_or_default()));
    }
    private(&file).map_err(folder_error)?;
    let database_error =
        |source: schema::SchemaError| OpenError::Database { file: file.clone(), source: source.into() };
    let db = match (schema::writer(&file, mark.is_some()), &mark) {
        (Ok(db), _) => db,
        (Err(schema::SchemaError::Version { found: 0 }), Some(mark)) => {
            return Ok(Opened::Damaged(mark.check(None).err().unwrap_or_default()));
        }
        (Err(schema::SchemaError::Database(error)), _) if is_corrupt(&error) => {
            return Ok(Opened::Damaged(error.to_string()));
        }
        (Err(error), _) => return Err(database_error(error)),
    };
    let found = Mark::of(&db).map_err(|error| database_error(error.into()))?;
    if let Some(why) = mark.and_then(|mark| mark.check(found.as_ref()).err()) {
        return Ok(Opened::Damaged(why));
    }
    let found = found.unwrap_or(Mark { id: String::new(), commits: 0 });
    let marker = Marker::open(&file, &found).map_err(folder_error)?;
    let readers = Readers::open(&file).map_err(|error| database_error(error.into()))?;
    let writer = SqliteStore { db: Some(db), file, marker, _lock: lock };
    Ok(Opened::Ready(Parts { writer: Box::new(writer), views: Arc::new(readers) }))
}

/// The one connection that writes.
struct SqliteStore {
    /// `None` after a failure, until the file could be opened again.
    db: Option<Connection>,
    file: PathBuf,
    marker: Marker,
    // Dropped last: until then the folder is ours.
    _lock: File,
}

impl SqliteStore {
    fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        match &mut self.db {
            Some(db) => Ok(db),
            closed => {
                let db = schema::writer(&self.file, true);
                Ok(closed.insert(db.map_err(|error| StoreError::Failed(error.to_string()))?))
            }
        }
    }

    fn commit(&mut self, work: &mut Work<'_>) -> Result<u64, StoreError> {
        let db = self.connection()?;
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        work(&mut SqliteTables(&transaction))?;
        let count = "UPDATE tally SET commits = commits + 1 RETURNING commits";
        let commits: i64 = transaction.prepare_cached(count)?.query_row((), |row| row.get(0))?;
        transaction.commit()?;
        Ok(unsigned(commits))
    }
}

impl Store for SqliteStore {
    fn transact(&mut self, work: &mut Work<'_>) -> Result<(), StoreError> {
        match self.commit(work) {
            // Before anybody is answered: what is acknowledged is known to be there.
            Ok(commits) => {
                self.marker.set(commits);
                Ok(())
            }
            Err(error) => {
                // A second sync on a file whose sync failed proves nothing: it is closed, and opened again.
                self.db = None;
                Err(error)
            }
        }
    }

    fn is_anything_due(&mut self, now: u64) -> bool {
        let due = "SELECT EXISTS (SELECT 1 FROM streams WHERE due <= ?1)
            OR EXISTS (SELECT 1 FROM subscriptions WHERE lease_until <= ?1 OR next_attempt <= ?1)";
        self.connection().is_ok_and(|db| {
            db.prepare_cached(due)
                .and_then(|mut statement| statement.query_row([signed(now)], |row| row.get(0)))
                .unwrap_or(false)
        })
    }

    fn secret(&mut self, name: &str, make: &mut MakeSecret<'_>) -> Result<Vec<u8>, String> {
        let db = self.connection().map_err(|error| error.to_string())?;
        let known = db
            .query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| row.get(0))
            .optional()
            .map_err(|error| error.to_string())?;
        if let Some(known) = known {
            return Ok(known);
        }
        let made = make()?;
        db.execute("INSERT INTO secrets (name, value) VALUES (?1, ?2)", (name, &made))
            .map_err(|error| error.to_string())?;
        Ok(made)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full,
            _ => StoreError::Failed(error.to_string()),
        }
    }
}

/// Whether the file does not hold what SQLite wrote.
fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// SQLite counts with a sign; what is out of its range is for ever.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Numbers in the file were written by [`signed`].
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn lock(folder: &Path) -> Result<File, OpenError> {
    let folder_error = |source| OpenError::Folder { folder: folder.to_owned(), source };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("streams.lock"))
        .map_err(folder_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(folder_error(source)),
    }
}

/// The file holds the key that signs webhooks: nobody else on the machine reads it.
fn private(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(file)?;
    opened.set_permissions(std::fs::Permissions::from_mode(0o600))
}
