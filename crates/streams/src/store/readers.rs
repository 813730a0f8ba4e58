//! A few connections that read, for threads that may block.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{Fault, schema};
use crate::problem::Problem;

/// Reads are short and mostly answered from memory; more connections would only hold more of it.
const CONNECTIONS: usize = 4;

pub struct Readers {
    file: PathBuf,
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub fn open(file: &Path) -> Result<Readers, rusqlite::Error> {
        let free = (0..CONNECTIONS).map(|_| schema::reader(file)).collect::<Result<Vec<_>, _>>()?;
        Ok(Readers {
            file: file.to_owned(),
            free: Arc::new(Mutex::new(free)),
            permits: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    /// None: what they would read is damaged.
    pub fn closed() -> Readers {
        Readers { file: PathBuf::new(), free: Arc::default(), permits: Arc::new(Semaphore::new(0)) }
    }

    pub async fn read<T, F>(&self, look: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await.map_err(Problem::failed)?;
        let (free, file) = (self.free.clone(), self.file.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let taken = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // One that was lost in a panic is replaced.
            let db = match taken {
                Some(db) => db,
                None => schema::reader(&file)?,
            };
            let answer = snapshot(&db, look);
            free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            answer
        });
        let looked = looked.await;
        // Only now: what was read and nobody has taken yet is in memory, too.
        drop(permit);
        match looked.map_err(Problem::failed)? {
            Ok(answer) => Ok(answer),
            Err(Fault::Refused(problem)) => Err(problem),
            Err(Fault::Failed(error)) => Err(Problem::failed(error)),
        }
    }
}

/// Everything that `look` sees is of one moment.
fn snapshot<T>(db: &Connection, look: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
    let transaction = db.unchecked_transaction()?;
    let answer = look(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}
