//! The store: one SQLite file, one thread that writes it, a few connections that read it.
//!
//! A reply to a write means durable: waiting writes are carried out in one transaction with one sync, and answered after it.
//! Readers see only committed data, and are woken after the commit.

pub mod append;
pub mod create;
pub mod delete;
pub mod mark;
pub mod meta;
pub mod page;
mod readers;
pub mod schema;
pub mod transfer;
pub mod writer;

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::live::Registry;
use crate::problem::Problem;
use crate::subscriptions::keys::Keys;
use crate::subscriptions::webhook::Delivery;
use mark::{Mark, Marker};
use readers::Readers;
use writer::{Jobs, Turn};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the folder `{folder}`: {source}")]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("the streams in `{folder}` are in use by another process; stop it first")]
    InUse { folder: PathBuf },
    #[error("cannot open `{file}`: {source}")]
    Database { file: PathBuf, source: schema::SchemaError },
    #[error("cannot use the key that signs webhooks: {0}")]
    Key(String),
    #[error("streams must be opened inside a tokio runtime")]
    NoRuntime,
}

/// What readers and the writer share.
#[derive(Default)]
pub struct Shared {
    pub live: Registry,
    pub touches: Touches,
    pub commits: AtomicU64,
}

pub struct Store {
    pub shared: Arc<Shared>,
    pub keys: Keys,
    jobs: Option<Arc<Jobs>>,
    readers: Readers,
    writer: Option<JoinHandle<()>>,
    /// What was acknowledged and is not there: nothing is read or written then.
    damage: Option<String>,
}

impl Store {
    pub fn open(folder: &Path) -> Result<(Store, mpsc::UnboundedReceiver<Delivery>), OpenError> {
        let folder_error = |source| OpenError::Folder { folder: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        let lock = lock(folder)?;
        let file = folder.join("streams.db");
        let mark = Mark::read(&file).filter(|mark| mark.commits > 0);
        let there = std::fs::metadata(&file).is_ok_and(|there| there.len() > 0);
        if let Some(mark) = mark.as_ref().filter(|_| !there) {
            return Store::damaged(mark.check(None).err().unwrap_or_default());
        }
        private(&file).map_err(folder_error)?;
        let database_error = |source| OpenError::Database { file: file.clone(), source };
        let db = match (schema::writer(&file, mark.is_some()), &mark) {
            (Ok(db), _) => db,
            (Err(schema::SchemaError::Version { found: 0 }), Some(mark)) => {
                return Store::damaged(mark.check(None).err().unwrap_or_default());
            }
            (Err(schema::SchemaError::Database(error)), _) if is_corrupt(&error) => {
                return Store::damaged(error.to_string());
            }
            (Err(error), _) => return Err(database_error(error)),
        };
        let found = Mark::of(&db).map_err(|error| database_error(error.into()))?;
        if let Some(why) = mark.and_then(|mark| mark.check(found.as_ref()).err()) {
            return Store::damaged(why);
        }
        let found = found.unwrap_or(Mark { id: String::new(), commits: 0 });
        let marker = Marker::open(&file, &found).map_err(folder_error)?;
        let keys = Keys::load(&db).map_err(OpenError::Key)?;
        let readers = Readers::open(&file).map_err(|error| database_error(error.into()))?;

        let shared = Arc::new(Shared::default());
        let (deliveries, to_deliver) = mpsc::unbounded_channel();
        let (jobs, writer) =
            writer::start(db, file.clone(), lock, shared.clone(), keys.clone(), marker, deliveries)
                .map_err(folder_error)?;
        let jobs = Some(Arc::new(jobs));
        Ok((Store { shared, keys, jobs, readers, writer: Some(writer), damage: None }, to_deliver))
    }

    /// A store that says what is wrong with it, and does nothing else: nothing of it is changed.
    fn damaged(why: String) -> Result<(Store, mpsc::UnboundedReceiver<Delivery>), OpenError> {
        let db = schema::in_memory()
            .map_err(|source| OpenError::Database { file: PathBuf::from("streams.db"), source })?;
        let keys = Keys::load(&db).map_err(OpenError::Key)?;
        let (_, to_deliver) = mpsc::unbounded_channel();
        let store = Store {
            shared: Arc::default(),
            keys,
            jobs: None,
            readers: Readers::closed(),
            writer: None,
            damage: Some(why),
        };
        Ok((store, to_deliver))
    }

    /// What was acknowledged and is not there.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn check(&self) -> Result<(), Problem> {
        self.damage.as_deref().map_or(Ok(()), |why| Err(Problem::damaged(why)))
    }

    /// Carries `work` out in the writer's next transaction. When this returns `Ok`, what it wrote is on the disk.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Turn<'_>) -> Result<T, Fault> + Send + 'static,
    {
        self.check()?;
        match &self.jobs {
            Some(jobs) => jobs.run(work).await,
            None => Err(Problem::failed("it is being closed")),
        }
    }

    /// The way to write for those that must not keep the store open.
    pub fn jobs(&self) -> std::sync::Weak<Jobs> {
        self.jobs.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// Runs `look` on a snapshot of what is committed, on a thread that may block.
    pub async fn read<T, F>(&self, look: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Shared) -> Result<T, Fault> + Send + 'static,
    {
        self.check()?;
        let shared = self.shared.clone();
        self.readers.read(move |db| look(db, &shared)).await
    }

    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }
}

impl Drop for Store {
    /// The writer ends when nobody can give it work; whoever opens the folder next finds it free.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Whether the file does not hold what SQLite wrote.
fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

/// Why work in a transaction does not come to an answer.
#[derive(Debug)]
pub enum Fault {
    /// A rule said no, before anything was written; the others in the transaction go on.
    Refused(Problem),
    /// The database said no; nothing of the transaction counts.
    Failed(rusqlite::Error),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Fault::Refused(problem)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Failed(error)
    }
}

/// Reads that prolong a stream's life, until the writer has time to put them down. A crash loses a few seconds of them.
#[derive(Default)]
pub struct Touches(Mutex<HashMap<i64, u64>>);

impl Touches {
    /// The stream is due at `due` now.
    pub fn note(&self, stream: i64, due: u64) {
        let mut touches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = touches.entry(stream).or_insert(0);
        *known = due.max(*known);
    }

    pub fn due(&self, stream: i64) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&stream).copied()
    }

    /// All of them, to be put down.
    pub fn all(&self) -> HashMap<i64, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These are committed. What came since then stays.
    pub fn settled(&self, committed: &HashMap<i64, u64>) {
        let mut touches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        touches.retain(|stream, due| committed.get(stream) != Some(due));
    }

    pub fn forget(&self, stream: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream);
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// SQLite counts with a sign; what is out of its range is for ever.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Numbers in the file were written by [`signed`].
pub fn unsigned(number: i64) -> u64 {
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
