//! A log in one SQLite file, owned by one process.
//!
//! Invariants:
//! - a commit is synced before it is acknowledged (write-ahead log, `synchronous = FULL`);
//! - what is in memory (head, versions, outbox) is what is in the file: it changes after the commit, never before,
//!   and is read anew from the file whenever a commit failed in a way that leaves doubt;
//! - a file handle is never synced again after a sync on it has failed. The kernel reports a lost write once; a
//!   second sync would succeed and prove nothing. The file is closed and opened anew, and all that the write-ahead
//!   log holds is written once more to the database, through the new handle;
//! - every row is covered: records by the hash chain, streams and outbox by sums in `tally`, snapshots each by a
//!   checksum, the end of the log by `tally` and, against a cut write-ahead log, by the mark (see `mark.rs`).
//!
//! Beside `log.db` lie SQLite's own `log.db-wal` and `log.db-shm`, and our `log.db.lock` and `log.db.head`.

mod mark;
mod ownership;
mod schema;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, ffi};

use self::mark::{Mark, Marker};
use self::ownership::Lock;
use self::schema::Migration;
use super::chain::Chain;
use super::ledger::{Change, Ledger, Slot};
use super::{
    Appended, Entry, Fence, ForeignObject, Hash, Head, Holder, Leased, Log, LogError, Millis, Pending,
    Record, SNAPSHOTS_KEPT, Seq, Snapshot,
};
use base::crash;

/// After so many pages in the write-ahead log, they are moved into the database.
const CHECKPOINT_PAGES: i32 = 4_000;
/// How long to wait for another process that reads, or that recovers the file after a crash.
const BUSY_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    /// `None` after a failure, until the file could be opened anew.
    connection: Option<Connection>,
    ledger: Ledger,
    /// `None` if it was opened for reading.
    marker: Option<Marker>,
    /// Pages in the write-ahead log after the last commit.
    pages: Arc<AtomicI32>,
    /// How many there were at the last checkpoint, if the write-ahead log has not begun anew since.
    pages_seen: i32,
    settings: Settings,
    // Dropped last: until then the log is ours.
    lock: Option<Lock>,
}

/// What only tests change.
#[derive(Clone, Copy, Debug)]
struct Settings {
    vfs: Option<&'static str>,
    checkpoint_pages: i32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { vfs: None, checkpoint_pages: CHECKPOINT_PAGES }
    }
}

impl SqliteLog {
    /// Opens the log for its one owner, and creates it if there has never been one. An older schema is upgraded.
    pub fn open(path: &Path, holder: &Holder) -> Result<SqliteLog, LogError> {
        SqliteLog::open_with(path, holder, Settings::default())
    }

    fn open_with(path: &Path, holder: &Holder, settings: Settings) -> Result<SqliteLog, LogError> {
        let lock = Lock::acquire(&Lock::path(path), holder)?;
        let pages = Arc::new(AtomicI32::new(0));
        let mut log = SqliteLog {
            path: path.to_owned(),
            connection: None,
            ledger: Ledger::default(),
            marker: None,
            pages,
            pages_seen: 0,
            settings,
            lock: Some(lock),
        };
        log.open_file()?;
        Ok(log)
    }

    /// Opens the log for inspection, also while another process owns it. Nothing can be written through it.
    pub fn open_for_reading(path: &Path) -> Result<SqliteLog, LogError> {
        // The mark is read first: the log may have moved on by the time that it is read, but never back.
        let mark = Mark::read(&Mark::path(path));
        if !path.exists() {
            let acknowledged = mark.map(|mark| mark.head.seq);
            return Err(LogError::Missing { path: path.to_owned(), acknowledged });
        }
        undo_half_made(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| failure("opened", error))?;
        connection.busy_timeout(BUSY_WAIT).map_err(|error| failure("opened", error))?;
        let found = schema::check(&connection, path, schema::MIGRATIONS)?;
        let known = known_schema(schema::MIGRATIONS);
        match found {
            0 => {
                let acknowledged = mark.map(|mark| mark.head.seq).filter(|seq| *seq > 0);
                return Err(LogError::Missing { path: path.to_owned(), acknowledged });
            }
            _ if found < known => return Err(LogError::Older { what: "schema", found, known }),
            _ => {}
        }
        let ledger = load(&connection)?;
        check_mark(&connection, path, &ledger, mark)?;
        Ok(SqliteLog {
            path: path.to_owned(),
            connection: Some(connection),
            ledger,
            marker: None,
            pages: Arc::default(),
            pages_seen: 0,
            settings: Settings::default(),
            lock: None,
        })
    }

    /// Who owns the log at this path, as the file beside it says.
    pub fn holder(path: &Path) -> Option<Holder> {
        Lock::holder(&Lock::path(path))
    }

    fn open_file(&mut self) -> Result<(), LogError> {
        let mark_path = Mark::path(&self.path);
        let mark = Mark::read(&mark_path);
        let mut connection = connect(&self.path, self.settings, &self.pages)?;
        let opened = prepare(&connection, &self.path, mark);
        let (ledger, id) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                abandon(connection);
                return Err(error);
            }
        };
        let marker = Marker::open(&mark_path, &Mark { id, head: ledger.head() });
        let marker = match marker {
            Ok(marker) => marker,
            Err(error) => {
                abandon(connection);
                return Err(error);
            }
        };
        connection.set_prepared_statement_cache_capacity(32);
        count_pages(&mut connection, &self.pages).map_err(|error| failure("opened", error))?;
        self.pages_seen = 0;
        self.ledger = ledger;
        self.marker = Some(marker);
        self.connection = Some(connection);
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, LogError> {
        self.connection.as_ref().ok_or_else(|| LogError::Io {
            doing: "read",
            why: "it was closed after a failure and could not be opened again yet".to_owned(),
        })
    }

    /// Before anything is written: the log is ours, and its file is open.
    fn make_ready(&mut self) -> Result<(), LogError> {
        let Some(lock) = &self.lock else { return Err(LogError::ReadOnly) };
        if self.connection.is_none() {
            // What another process has written since would otherwise be taken for our own.
            if !lock.is_at(&Lock::path(&self.path)) {
                return Err(LogError::Usurped { since: self.ledger.head().seq });
            }
            self.open_file()?;
        }
        Ok(())
    }

    /// Writes the change in one transaction, and adopts the ledger that it leads to.
    fn commit(&mut self, next: Ledger, change: &Change<'_>) -> Result<(), LogError> {
        if change.is_empty() {
            self.ledger = next;
            return Ok(());
        }
        match write(self.connection()?, &self.ledger, &next, change) {
            Ok(()) => {}
            Err(error) => return Err(self.recover(error)),
        }
        let advanced = next.head() != self.ledger.head();
        self.ledger = next;
        if let Some(marker) = &self.marker
            && advanced
        {
            marker.set(self.ledger.head());
        }
        crash::point("commit: marked");
        self.checkpoint();
        Ok(())
    }

    /// What was asked failed. Afterwards the connection is one that can be trusted, or there is none.
    fn recover(&mut self, error: LogError) -> LogError {
        if let LogError::Full | LogError::Usurped { .. } = error
            && let Some(connection) = &self.connection
            && (connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok())
        {
            return error;
        }
        self.reopen();
        error
    }

    /// Closes the file without another sync, and opens it anew. Should that fail, the next write tries again.
    fn reopen(&mut self) {
        if let Some(connection) = self.connection.take() {
            abandon(connection);
        }
        let _ = self.make_ready();
    }

    /// Moves what the write-ahead log holds into the database, when it is time. What was committed is durable with or
    /// without it, so its failure is not the caller's. SQLite's own checkpoint would sync again after a failed sync.
    fn checkpoint(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.pages_seen {
            self.pages_seen = 0;
        }
        // Counted from the last one: a reader that keeps the write-ahead log from beginning anew must not cause
        // a checkpoint with every commit.
        if pages - self.pages_seen < self.settings.checkpoint_pages {
            return;
        }
        self.pages_seen = pages;
        let Some(connection) = &self.connection else { return };
        crash::point("checkpoint: before");
        let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
        crash::point("checkpoint: after");
        if let Err(error) = moved
            && failure("written", error) != LogError::Full
        {
            self.reopen();
        }
    }
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        if let Some(marker) = &self.marker {
            marker.sync();
        }
    }
}

impl Log for SqliteLog {
    fn append(&mut self, batch: &[Entry]) -> Result<Vec<Appended>, LogError> {
        self.make_ready()?;
        let mut next = self.ledger.clone();
        let (appended, change) = next.append(batch)?;
        self.commit(next, &change)?;
        Ok(appended)
    }

    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn ready(&mut self) -> Result<Head, LogError> {
        self.make_ready()?;
        Ok(self.head())
    }

    fn version(&self, stream: &str) -> Result<u64, LogError> {
        self.connection()?;
        Ok(self.ledger.version(stream))
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), LogError> {
        let connection = self.connection()?;
        // One view of the file for the whole scan: its owner may be another process, which goes on writing.
        let view = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)
            .map_err(|error| failure("read", error))?;
        let head = tally(&view)?.head;
        if after > head.seq {
            return Err(LogError::Beyond { after, last: head.seq });
        }
        let Some(hash) = hash_at(&view, after)? else {
            return Err(LogError::Corrupt { seq: after, why: "it is missing".to_owned() });
        };
        scan_rows(&view, Head { seq: after, hash }, head, visit)
    }

    fn read_stream_some(
        &self,
        stream: &str,
        after: Seq,
        through: Seq,
        bytes_max: usize,
    ) -> Result<Vec<Record>, LogError> {
        let connection = self.connection()?;
        let view = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)
            .map_err(|error| failure("read", error))?;
        let head = tally(&view)?.head;
        if after > head.seq {
            return Err(LogError::Beyond { after, last: head.seq });
        }
        stream_rows(&view, stream, after, through.min(head.seq), bytes_max)
    }

    fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, LogError> {
        self.make_ready()?;
        let mut next = self.ledger.clone();
        let (leased, change) = next.lease(owner, now, until, limit);
        self.commit(next, &change)?;
        Ok(leased)
    }

    fn release(&mut self, fence: &Fence) -> Result<bool, LogError> {
        self.make_ready()?;
        let mut next = self.ledger.clone();
        let Some(change) = next.release(fence) else { return Ok(false) };
        self.commit(next, &change)?;
        Ok(true)
    }

    fn holds(&self, fence: &Fence) -> Result<bool, LogError> {
        self.connection()?;
        Ok(self.ledger.holds(fence))
    }

    fn outbox(&self) -> Result<Vec<Pending>, LogError> {
        self.connection()?;
        Ok(self.ledger.outbox())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        self.make_ready()?;
        let connection = self.connection()?;
        if hash_at(connection, snapshot.seq)? != Some(snapshot.hash) {
            return Err(LogError::Stray { seq: snapshot.seq });
        }
        if let Err(error) = write_snapshot(connection, snapshot) {
            return Err(self.recover(failure("written", error)));
        }
        if let Some(marker) = &self.marker {
            marker.sync();
        }
        self.checkpoint();
        Ok(())
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        let connection = self.connection()?;
        let Ok(seqs) = snapshot_seqs(connection) else { return Ok(None) };
        for seq in seqs {
            // One that cannot be read is as good as none, whatever the reason.
            if let Ok(Some(snapshot)) = read_snapshot(connection, seq)
                && hash_at(connection, snapshot.seq)? == Some(snapshot.hash)
            {
                return Ok(Some(snapshot));
            }
        }
        Ok(None)
    }

    fn foreign_objects(&self) -> Result<Vec<ForeignObject>, LogError> {
        let found = schema::foreign_objects(self.connection()?, schema::MIGRATIONS);
        found.map_err(|error| unreadable("schema", error))
    }
}

fn connect(path: &Path, settings: Settings, pages: &Arc<AtomicI32>) -> Result<Connection, LogError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match settings.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    };
    let connection = connection.map_err(|error| failure("opened", error))?;
    pages.store(0, Ordering::Relaxed);
    match configure(&connection) {
        Ok(()) => Ok(connection),
        Err(error) => {
            abandon(connection);
            Err(failure("opened", error))
        }
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA cell_size_check = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA temp_store = MEMORY;",
    )
}

fn count_pages(connection: &mut Connection, pages: &Arc<AtomicI32>) -> rusqlite::Result<()> {
    let pages = pages.clone();
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
        pages.store(count, Ordering::Relaxed);
        Ok(())
    }))
}

/// Makes the file a log of this version, and reads what must be known of it.
fn prepare(connection: &Connection, path: &Path, mark: Option<Mark>) -> Result<(Ledger, String), LogError> {
    let found = schema::check(connection, path, schema::MIGRATIONS)?;
    if let (0, Some(mark)) = (found, &mark)
        && mark.head.seq > 0
    {
        let acknowledged = Some(mark.head.seq);
        return Err(LogError::Missing { path: path.to_owned(), acknowledged });
    }
    let triggers = schema::foreign_objects(connection, schema::MIGRATIONS);
    let triggers = triggers.map_err(|error| unreadable("schema", error))?;
    if let Some(trigger) = triggers.into_iter().find(|object| object.kind == "trigger") {
        let ForeignObject { name, table, .. } = trigger;
        return Err(LogError::Trigger { path: path.to_owned(), name, table });
    }
    let mode = use_write_ahead_log(connection).map_err(|error| failure("opened", error))?;
    if mode != "wal" {
        let why = format!("its journal mode stays `{mode}`");
        return Err(LogError::Io { doing: "opened", why });
    }
    crash::point("open: journal mode is set");
    schema::migrate(connection, found, schema::MIGRATIONS)?;
    settle(connection)?;
    crash::point("open: settled");
    let ledger = load(connection)?;
    check_mark(connection, path, &ledger, mark)?;
    Ok((ledger, log_id(connection)?))
}

/// SQLite answers with the new mode before it has committed it, so the answer is taken only once the statement has
/// run to its end.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query(())?;
    let mut mode = String::new();
    while let Some(row) = rows.next()? {
        mode = row.get(0)?;
    }
    Ok(mode)
}

/// Writes all that the write-ahead log holds to the database, through this handle, and syncs it. After a failed
/// sync, what can be read back from the write-ahead log need not be on disk; after this it is.
fn settle(connection: &Connection) -> Result<(), LogError> {
    let (held, moved): (i64, i64) = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| Ok((row.get(1)?, row.get(2)?)))
        .map_err(|error| failure("opened", error))?;
    if held != moved {
        let why = format!("another process reads it, and only {moved} of {held} pages could be moved");
        return Err(LogError::Io { doing: "settled", why });
    }
    Ok(())
}

/// Closes without the checkpoint that SQLite would make: that would sync a file whose sync may have failed before.
fn abandon(connection: Connection) {
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    drop(connection);
}

struct Tally {
    head: Head,
    streams: [u8; 32],
    outbox: [u8; 32],
}

fn tally(connection: &Connection) -> Result<Tally, LogError> {
    let damaged = |why: &str| LogError::Damaged { part: "tally", why: why.to_owned() };
    let mut statement = connection
        .prepare_cached("SELECT seq, hash, streams, outbox FROM tally WHERE one = 1")
        .map_err(|error| failure("read", error))?;
    let row = statement
        .query_row((), |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()
        .map_err(|error| unreadable("tally", error))?;
    let (seq, hash, streams, outbox) = row.ok_or_else(|| damaged("it is empty"))?;
    let seq = Seq::try_from(seq).map_err(|_| damaged("its seq is negative"))?;
    Ok(Tally { head: Head { seq, hash }, streams, outbox })
}

/// Reads the ledger, and checks that it is the one that was written.
fn load(connection: &Connection) -> Result<Ledger, LogError> {
    let view = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)
        .map_err(|error| failure("read", error))?;
    let Tally { head, streams: streams_sum, outbox: outbox_sum } = tally(&view)?;
    let last: Option<i64> = view
        .query_row("SELECT max(seq) FROM records", (), |row| row.get(0))
        .map_err(|error| unreadable("records", error))?;
    let last = last.unwrap_or(0) as Seq;
    if last < head.seq {
        let why = format!("it is missing; the log should end at {}", head.seq);
        return Err(LogError::Corrupt { seq: last + 1, why });
    }
    if last > head.seq || hash_at(&view, head.seq)? != Some(head.hash) {
        let why = format!("the log should end at record {} with another hash", head.seq);
        return Err(LogError::Corrupt { seq: head.seq.max(1), why });
    }

    let streams = load_streams(&view).map_err(|error| unreadable("streams", error))?;
    let outbox = load_outbox(&view).map_err(|error| unreadable("outbox", error))?;
    let ledger =
        Ledger::restore(head, streams, outbox).map_err(|why| LogError::Damaged { part: "outbox", why })?;
    let sums = [
        ("streams", ledger.streams_sum().to_bytes(), streams_sum),
        ("outbox", ledger.outbox_sum().to_bytes(), outbox_sum),
    ];
    for (part, found, recorded) in sums {
        if found != recorded {
            let why = "its rows do not add up to what was written".to_owned();
            return Err(LogError::Damaged { part, why });
        }
    }
    Ok(ledger)
}

fn load_streams(connection: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut statement = connection.prepare("SELECT stream, version FROM streams")?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
    rows.collect()
}

fn load_outbox(connection: &Connection) -> rusqlite::Result<Vec<(Slot, Pending)>> {
    let mut statement = connection
        .prepare("SELECT place, id, kind, due, data, attempt, owner, until FROM outbox ORDER BY place")?;
    let rows = statement.query_map((), |row| {
        let pending = Pending {
            id: row.get(1)?,
            kind: row.get(2)?,
            due: row.get(3)?,
            data: row.get(4)?,
            attempt: row.get(5)?,
            owner: row.get(6)?,
            until: row.get(7)?,
        };
        Ok((row.get::<_, i64>(0)? as Slot, pending))
    })?;
    rows.collect()
}

/// What was acknowledged must be there.
fn check_mark(
    connection: &Connection,
    path: &Path,
    ledger: &Ledger,
    mark: Option<Mark>,
) -> Result<(), LogError> {
    let Some(Mark { id, head }) = mark else { return Ok(()) };
    if id != log_id(connection)? {
        let why = format!("{} was written beside another log", Mark::path(path).display());
        return Err(LogError::Foreign { path: path.to_owned(), why });
    }
    if head.seq > ledger.head().seq {
        return Err(LogError::Lost { acknowledged: head.seq, found: ledger.head().seq });
    }
    if hash_at(connection, head.seq)? != Some(head.hash) {
        let why = "it is not the one that was acknowledged".to_owned();
        return Err(LogError::Corrupt { seq: head.seq, why });
    }
    Ok(())
}

fn log_id(connection: &Connection) -> Result<String, LogError> {
    connection
        .query_row("SELECT value FROM meta WHERE key = 'id'", (), |row| row.get(0))
        .map_err(|error| unreadable("meta", error))
}

fn hash_at(connection: &Connection, seq: Seq) -> Result<Option<Hash>, LogError> {
    if seq == 0 {
        return Ok(Some([0; 32]));
    }
    let mut statement = connection
        .prepare_cached("SELECT hash FROM records WHERE seq = ?1")
        .map_err(|error| failure("read", error))?;
    statement
        .query_row([seq as i64], |row| row.get(0))
        .optional()
        .map_err(|error| unreadable_record(seq, error))
}

fn scan_rows(
    connection: &Connection,
    after: Head,
    head: Head,
    visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
) -> Result<(), LogError> {
    let mut chain = Chain::after(after);
    let mut statement = connection
        .prepare_cached(
            "SELECT seq, stream, version, at, actor, command, kind, data, hash
             FROM records WHERE seq > ?1 ORDER BY seq",
        )
        .map_err(|error| failure("read", error))?;
    let mut rows = statement.query([after.seq as i64]).map_err(|error| failure("read", error))?;
    // One record for all: its texts are overwritten, so a scan of a million records allocates a few times. One thread
    // for all, too: handing records to another one, to be checked there, cost more than it took away.
    let mut record = Record::default();
    loop {
        let next = chain.end().seq + 1;
        let Some(row) = rows.next().map_err(|error| unreadable_record(next, error))? else { break };
        read_row(row, &mut record).map_err(|error| unreadable_record(next, error))?;
        chain.check(&record)?;
        if visit(&record).is_break() {
            return Ok(());
        }
    }
    chain.check_end(head)
}

/// Without an index: the stream is the first text of a row, so that the rest of another stream's row is not read.
fn stream_rows(
    connection: &Connection,
    stream: &str,
    after: Seq,
    through: Seq,
    bytes_max: usize,
) -> Result<Vec<Record>, LogError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT seq, stream, version, at, actor, command, kind, data, hash
             FROM records WHERE seq > ?1 AND seq <= ?2 AND stream = ?3 ORDER BY seq",
        )
        .map_err(|error| failure("read", error))?;
    let mut rows = statement
        .query(rusqlite::params![after as i64, through as i64, stream])
        .map_err(|error| failure("read", error))?;
    let (mut records, mut bytes): (Vec<Record>, usize) = (Vec::new(), 0);
    while bytes < bytes_max {
        let next = records.last().map_or(after, |record| record.seq) + 1;
        let Some(row) = rows.next().map_err(|error| unreadable_record(next, error))? else { break };
        let mut record = Record::default();
        read_row(row, &mut record).map_err(|error| unreadable_record(next, error))?;
        let before = record.seq.saturating_sub(1);
        let Some(hash) = hash_at(connection, before)? else {
            return Err(LogError::Corrupt { seq: before, why: "it is missing".to_owned() });
        };
        Chain::after(Head { seq: before, hash }).check(&record)?;
        bytes += record.bytes();
        records.push(record);
    }
    Ok(records)
}

fn read_row(row: &rusqlite::Row<'_>, record: &mut Record) -> rusqlite::Result<()> {
    let text = |column: usize, into: &mut String| -> rusqlite::Result<()> {
        into.clear();
        into.push_str(row.get_ref(column)?.as_str()?);
        Ok(())
    };
    record.seq = row.get::<_, i64>(0)? as u64;
    text(1, &mut record.stream)?;
    record.version = row.get::<_, i64>(2)? as u64;
    record.at = row.get(3)?;
    text(4, &mut record.actor)?;
    text(5, &mut record.command)?;
    text(6, &mut record.kind)?;
    text(7, &mut record.data)?;
    record.hash = match row.get_ref(8)? {
        ValueRef::Blob(bytes) if bytes.len() == 32 => bytes.try_into().unwrap_or_default(),
        _ => row.get(8)?,
    };
    Ok(())
}

fn write(connection: &Connection, old: &Ledger, new: &Ledger, change: &Change<'_>) -> Result<(), LogError> {
    let written = write_change(connection, old, new, change);
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(LogError::Usurped { since: old.head().seq }),
        Err(error) => Err(failure("written", error)),
    }
}

/// False: the file is not the one that the old ledger was read from, and nothing was written.
fn write_change(
    connection: &Connection,
    old: &Ledger,
    new: &Ledger,
    change: &Change<'_>,
) -> rusqlite::Result<bool> {
    crash::point("commit: before begin");
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    {
        let mut tally = connection.prepare_cached(
            "UPDATE tally SET seq = ?1, hash = ?2, streams = ?3, outbox = ?4
             WHERE one = 1 AND seq = ?5 AND hash = ?6 AND outbox = ?7",
        )?;
        let changed = tally.execute((
            new.head().seq as i64,
            new.head().hash,
            new.streams_sum().to_bytes(),
            new.outbox_sum().to_bytes(),
            old.head().seq as i64,
            old.head().hash,
            old.outbox_sum().to_bytes(),
        ))?;
        if changed != 1 {
            return Ok(false);
        }
        crash::point("commit: tally");

        let mut insert =
            connection.prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
        for row in &change.rows {
            insert.execute((
                row.seq as i64,
                row.stream,
                row.version as i64,
                row.at,
                row.actor,
                row.command,
                row.kind,
                row.data,
                row.hash,
            ))?;
        }
        crash::point("commit: records");

        let mut upsert = connection.prepare_cached("INSERT OR REPLACE INTO streams VALUES (?1, ?2)")?;
        for (stream, version) in &change.streams {
            upsert.execute((stream, *version as i64))?;
        }
        crash::point("commit: streams");

        let mut remove = connection.prepare_cached("DELETE FROM outbox WHERE place = ?1")?;
        for place in &change.removed {
            remove.execute([*place as i64])?;
        }
        let mut put = connection
            .prepare_cached("INSERT OR REPLACE INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        for (place, pending) in &change.put {
            let Pending { id, kind, due, data, attempt, owner, until } = &**pending;
            put.execute((*place as i64, id, kind, due, data, attempt, owner, until))?;
        }
    }
    crash::point("commit: before commit");
    transaction.commit()?;
    crash::point("commit: after commit");
    Ok(true)
}

fn write_snapshot(connection: &Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    crash::point("snapshot: before begin");
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2, ?3, ?4)",
        (snapshot.seq as i64, snapshot.hash, snapshot.checksum(), &snapshot.data),
    )?;
    crash::point("snapshot: written");
    transaction.execute(
        "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?1)",
        [SNAPSHOTS_KEPT as i64],
    )?;
    crash::point("snapshot: before commit");
    transaction.commit()?;
    crash::point("snapshot: after commit");
    Ok(())
}

fn snapshot_seqs(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare("SELECT seq FROM snapshots ORDER BY seq DESC")?;
    let rows = statement.query_map((), |row| row.get(0))?;
    rows.collect()
}

fn read_snapshot(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Snapshot>> {
    let (snapshot, checksum) = connection.query_row(
        "SELECT seq, hash, data, checksum FROM snapshots WHERE seq = ?1",
        [seq],
        |row| {
            let snapshot =
                Snapshot { seq: row.get::<_, i64>(0)? as Seq, hash: row.get(1)?, data: row.get(2)? };
            Ok((snapshot, row.get::<_, Hash>(3)?))
        },
    )?;
    Ok((snapshot.checksum() == checksum).then_some(snapshot))
}

/// What a failure of SQLite means to the owner of the log. Called right after it, while `errno` still says why.
fn failure(doing: &'static str, error: rusqlite::Error) -> LogError {
    let errno = std::io::Error::last_os_error();
    let rusqlite::Error::SqliteFailure(cause, _) = &error else {
        return LogError::Io { doing, why: error.to_string() };
    };
    match (cause.code, cause.extended_code) {
        (ErrorCode::DiskFull, _) => LogError::Full,
        (_, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => {
            LogError::Sync { why: errno.to_string() }
        }
        // SQLite calls a quota or a limit on file size an error like any other. Only where something was to grow:
        // `errno` may be a leftover where nothing was asked of the system.
        (
            _,
            ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_CANTOPEN,
        ) if errno.raw_os_error().is_some_and(means_full) => LogError::Full,
        (ErrorCode::SystemIoFailure, _) => LogError::Io { doing, why: format!("{error}: {errno}") },
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            LogError::Damaged { part: "database", why: error.to_string() }
        }
        _ => LogError::Io { doing, why: error.to_string() },
    }
}

/// A part that is there but cannot be read is damaged, unless the disk itself is at fault.
fn unreadable(part: &'static str, error: rusqlite::Error) -> LogError {
    match error {
        rusqlite::Error::SqliteFailure(..) => failure("read", error),
        _ => LogError::Damaged { part, why: error.to_string() },
    }
}

fn unreadable_record(seq: Seq, error: rusqlite::Error) -> LogError {
    let why = error.to_string();
    match unreadable("records", error) {
        LogError::Damaged { .. } => LogError::Corrupt { seq, why },
        other => other,
    }
}

fn means_full(code: i32) -> bool {
    matches!(Errno::from_raw(code), Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)
}

/// Undoes what a process left that was killed while it made the file: only then is there a journal of this kind. Readers
/// cannot, and would be refused for as long as nobody writes. Who owns the log now does it himself.
fn undo_half_made(path: &Path) {
    if !beside(path, "-journal").exists() {
        return;
    }
    let Ok(_lock) = Lock::acquire(&Lock::path(path), &Holder::current()) else { return };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Where it cannot be done, as on a disk that is read only, the reading says so.
    let _ = Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())));
}

fn known_schema(migrations: &[Migration]) -> u32 {
    migrations.last().map_or(0, |migration| migration.number)
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(ending);
    PathBuf::from(name)
}
