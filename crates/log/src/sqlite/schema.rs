//! The tables, and the upgrade of older files.
//!
//! A migration is never edited after its release: its checksum is recorded in every file on which it ran.
//! Each runs in its own transaction together with its record, so an upgrade that is killed is either
//! done or untouched, and the next start continues from there.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::{ForeignObject, failure, unreadable};
use crate::LogError;
use base::crash;

/// Marks a SQLite file as a log of ours: "Adjt".
pub(super) const APPLICATION: i64 = 0x41_64_6a_74;
/// What is hashed, and how: see `chain.rs`.
pub(super) const FORMAT: u32 = 1;

const MIGRATIONS_TABLE: &str =
    "CREATE TABLE migrations (number INTEGER PRIMARY KEY, checksum TEXT NOT NULL) STRICT;";

pub(super) struct Migration {
    pub number: u32,
    pub sql: &'static str,
}

pub(super) const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    // There is no index beside the primary keys: one on (stream, version) halves the rate of appends, and nobody
    // reads a single stream. `tally` has one row, which says what the other tables must add up to.
    sql: "
        CREATE TABLE meta (
            key     TEXT PRIMARY KEY,
            value   TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE records (
            seq     INTEGER PRIMARY KEY,
            stream  TEXT NOT NULL,
            version INTEGER NOT NULL,
            at      INTEGER NOT NULL,
            actor   TEXT NOT NULL,
            command TEXT NOT NULL,
            kind    TEXT NOT NULL,
            data    TEXT NOT NULL,
            hash    BLOB NOT NULL
        ) STRICT;
        CREATE TABLE streams (
            stream  TEXT PRIMARY KEY,
            version INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE outbox (
            place   INTEGER PRIMARY KEY,
            id      TEXT NOT NULL,
            kind    TEXT NOT NULL,
            due     INTEGER,
            data    TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            owner   TEXT,
            until   INTEGER
        ) STRICT;
        CREATE TABLE snapshots (
            seq      INTEGER PRIMARY KEY,
            hash     BLOB NOT NULL,
            checksum BLOB NOT NULL,
            data     BLOB NOT NULL
        ) STRICT;
        CREATE TABLE tally (
            one     INTEGER PRIMARY KEY CHECK (one = 1),
            seq     INTEGER NOT NULL,
            hash    BLOB NOT NULL,
            streams BLOB NOT NULL,
            outbox  BLOB NOT NULL
        ) STRICT;
        INSERT INTO tally VALUES (1, 0, zeroblob(32), zeroblob(32), zeroblob(32));
        INSERT INTO meta VALUES ('format', '1');
        INSERT INTO meta VALUES ('id', lower(hex(randomblob(16))));
    ",
}];

/// The schema of a file: the number of the last migration that was run on it, 0 for an empty file.
pub(super) fn check(connection: &Connection, path: &Path, migrations: &[Migration]) -> Result<u32, LogError> {
    let foreign = |why: String| LogError::Foreign { path: path.to_owned(), why };
    let application: i64 = pragma(connection, "application_id")?;
    if application != APPLICATION {
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
            .map_err(|error| failure("read", error))?;
        return match (application, tables) {
            (0, 0) => Ok(0),
            _ => Err(foreign(format!("its application id is {application:#x}"))),
        };
    }

    let known = migrations.last().map_or(0, |migration| migration.number);
    let mut found = 0;
    for (number, recorded) in recorded(connection).map_err(|error| unreadable("migrations", error))? {
        if let Some(migration) = migrations.iter().find(|migration| migration.number == number)
            && checksum(migration) != recorded
        {
            return Err(foreign(format!("migration {number} was not the one that this version knows")));
        }
        found = number;
    }
    if found > known {
        return Err(LogError::Newer { what: "schema", found, known });
    }

    if found == 0 {
        // They are written with the tables, in one transaction.
        let why = "it names no schema, though the file is a log".to_owned();
        return Err(LogError::Damaged { part: "migrations", why });
    }

    let format: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE key = 'format'", (), |row| row.get(0))
        .optional()
        .map_err(|error| unreadable("meta", error))?;
    match format.as_deref().map(str::parse::<u32>) {
        Some(Ok(FORMAT)) => Ok(found),
        Some(Ok(format)) if format > FORMAT => {
            Err(LogError::Newer { what: "format", found: format, known: FORMAT })
        }
        _ => Err(LogError::Damaged { part: "meta", why: format!("its format is {format:?}") }),
    }
}

/// Everything in the file that no migration made, or that is not as it was made.
pub(super) fn foreign_objects(
    connection: &Connection,
    migrations: &[Migration],
) -> rusqlite::Result<Vec<ForeignObject>> {
    let made = Connection::open_in_memory()?;
    made.execute_batch(MIGRATIONS_TABLE)?;
    for migration in migrations {
        made.execute_batch(migration.sql)?;
    }
    let made = objects(&made)?;
    let there = objects(connection)?;
    Ok(there.into_iter().filter(|there| !made.contains(there)).map(|(object, _)| object).collect())
}

fn objects(connection: &Connection) -> rusqlite::Result<Vec<(ForeignObject, Option<String>)>> {
    let query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map((), |row| {
        Ok((ForeignObject { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)? }, row.get(3)?))
    })?;
    rows.collect()
}

fn recorded(connection: &Connection) -> rusqlite::Result<Vec<(u32, String)>> {
    let mut statement = connection.prepare("SELECT number, checksum FROM migrations ORDER BY number")?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Runs the migrations that come after `found`.
pub(super) fn migrate(connection: &Connection, found: u32, migrations: &[Migration]) -> Result<(), LogError> {
    for migration in migrations.iter().filter(|migration| migration.number > found) {
        run(connection, migration).map_err(|error| failure("upgraded", error))?;
    }
    Ok(())
}

fn run(connection: &Connection, migration: &Migration) -> rusqlite::Result<()> {
    crash::point("migration: before begin");
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if migration.number == 1 {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.execute_batch(MIGRATIONS_TABLE)?;
    }
    transaction.execute_batch(migration.sql)?;
    crash::point("migration: tables are there");
    transaction.execute("INSERT INTO migrations VALUES (?1, ?2)", (migration.number, checksum(migration)))?;
    crash::point("migration: before commit");
    transaction.commit()?;
    crash::point("migration: after commit");
    Ok(())
}

fn checksum(migration: &Migration) -> String {
    base::hex::hex(&Sha256::digest(migration.sql))
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, LogError> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| failure("read", error))
}
