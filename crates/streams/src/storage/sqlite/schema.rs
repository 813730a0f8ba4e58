//! The tables, and the set-up of a connection.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The version of the tables below. A file with another one is refused rather than guessed at.
pub const VERSION: i64 = 2;

const TABLES: &str = "
CREATE TABLE streams (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: entity tags are made of it
    path         TEXT NOT NULL UNIQUE,
    content_type TEXT NOT NULL,
    ttl          INTEGER,            -- seconds after the last use
    expires_at   INTEGER,            -- milliseconds since 1970
    expires_text TEXT,               -- as it was asked for
    due          INTEGER,            -- when it is over, if it is not used before
    tail         INTEGER NOT NULL,
    closed       INTEGER NOT NULL DEFAULT 0,
    deleted      INTEGER NOT NULL DEFAULT 0, -- kept for its forks only
    seq          BLOB,               -- last Stream-Seq
    closer_id    TEXT,               -- the producer that closed it
    closer_epoch INTEGER,
    closer_seq   INTEGER,
    parent       INTEGER REFERENCES streams (id),
    fork_at      INTEGER NOT NULL DEFAULT 0, -- where its own data begins
    fork_from    TEXT,               -- as asked for, to know a repeated PUT
    fork_anchor  INTEGER,
    fork_sub     INTEGER NOT NULL DEFAULT 0,
    fork_depth   INTEGER NOT NULL DEFAULT 0,
    inherits     INTEGER NOT NULL DEFAULT 0  -- its lifetime is its source's
);
CREATE INDEX streams_by_parent ON streams (parent) WHERE parent IS NOT NULL;
CREATE INDEX streams_by_due ON streams (due) WHERE due IS NOT NULL;

CREATE TABLE chunks (
    stream INTEGER NOT NULL,
    end    INTEGER NOT NULL,         -- position behind its last byte
    last   INTEGER NOT NULL,         -- whether an append ends here
    data   BLOB NOT NULL,
    sum    BLOB,                     -- checksum of the data; none where version 1 wrote it
    PRIMARY KEY (stream, end)
) WITHOUT ROWID;

CREATE TABLE producers (
    stream INTEGER NOT NULL,
    id     TEXT NOT NULL,
    epoch  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (stream, id)
) WITHOUT ROWID;

CREATE TABLE subscriptions (
    id           TEXT PRIMARY KEY,
    config       TEXT NOT NULL,      -- normalised JSON
    base         TEXT NOT NULL,      -- address of the stream root, for callbacks
    created      INTEGER NOT NULL,
    phase        TEXT NOT NULL DEFAULT 'idle',
    generation   INTEGER NOT NULL DEFAULT 0,
    wake_id      TEXT,
    holder       TEXT,
    lease_until  INTEGER,
    snapshot     TEXT,               -- tails that the wake told of
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_attempt INTEGER
) WITHOUT ROWID;

CREATE INDEX subscriptions_by_lease ON subscriptions (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX subscriptions_by_attempt ON subscriptions (next_attempt) WHERE next_attempt IS NOT NULL;

CREATE TABLE links (
    subscription TEXT NOT NULL,
    path         TEXT NOT NULL,
    explicit     INTEGER NOT NULL,
    matched      INTEGER NOT NULL,   -- by the pattern
    acked        INTEGER NOT NULL,
    PRIMARY KEY (subscription, path)
) WITHOUT ROWID;
CREATE INDEX links_by_path ON links (path);

CREATE TABLE tally (
    id      TEXT NOT NULL,           -- a random name, so that another store's mark is known
    commits INTEGER NOT NULL
);
INSERT INTO tally (id, commits) VALUES (lower(hex(randomblob(16))), 0);

CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
";

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("it was written by another version (tables {found}, this program knows {VERSION})")]
    Version { found: i64 },
}

/// The connection that writes. There is one.
///
/// `written`: something was acknowledged here, so that tables that are missing are not made again.
pub fn writer(file: &Path, written: bool) -> Result<Connection, SchemaError> {
    let db = Connection::open(file)?;
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.set_prepared_statement_cache_capacity(64);
    match db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
        VERSION => {}
        0 if !written => create(&db)?,
        1 => upgrade(&db)?,
        found => return Err(SchemaError::Version { found }),
    }
    Ok(db)
}

/// Version 2 has checksums, and counts commits.
fn upgrade(db: &Connection) -> Result<(), SchemaError> {
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         ALTER TABLE chunks ADD COLUMN sum BLOB;
         CREATE TABLE tally (id TEXT NOT NULL, commits INTEGER NOT NULL);
         INSERT INTO tally (id, commits) VALUES (lower(hex(randomblob(16))), 0);
         PRAGMA user_version = {VERSION};
         COMMIT;"
    ))?;
    Ok(())
}

fn create(db: &Connection) -> Result<(), SchemaError> {
    db.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"))?;
    Ok(())
}

/// A connection that only reads.
pub fn reader(file: &Path) -> Result<Connection, rusqlite::Error> {
    let db = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}
