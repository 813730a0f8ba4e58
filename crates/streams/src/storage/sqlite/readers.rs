//! A few connections that read, lent out to threads that may block.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::schema;
use super::tables::SqliteTables;
use crate::storage::{Look, StoreError, Views};

/// Reads are short and mostly answered from memory; more connections would only hold more of it.
const CONNECTIONS: usize = 4;

pub struct Readers {
    file: PathBuf,
    free: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn open(file: &Path) -> Result<Readers, rusqlite::Error> {
        let free = (0..CONNECTIONS).map(|_| schema::reader(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(Readers { file: file.to_owned(), free: Mutex::new(free) })
    }
}

impl Views for Readers {
    fn view(&self, look: &mut Look<'_>) -> Result<(), StoreError> {
        let taken = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // One that was lost in a panic is replaced.
        let db = match taken {
            Some(db) => db,
            None => schema::reader(&self.file)?,
        };
        let looked = snapshot(&db, look);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        looked
    }

    fn at_once(&self) -> usize {
        CONNECTIONS
    }
}

/// Everything that `look` sees is of one moment.
fn snapshot(db: &Connection, look: &mut Look<'_>) -> Result<(), StoreError> {
    let transaction = db.unchecked_transaction()?;
    look(&SqliteTables(&transaction));
    transaction.commit()?;
    Ok(())
}
