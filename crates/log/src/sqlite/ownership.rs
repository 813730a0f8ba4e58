//! The ownership of a log: one process at a time, by a lock that ends with the process.
//!
//! The lock is the operating system's, on a file beside the database, so the lock of a dead process is free.
//! The content of the file (pid, start time, host) is for a process that finds it locked. The file is never deleted: of two
//! processes that race for a deleted file, each could lock its own.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Holder, LogError};
use base::crash;

/// A process that was killed between starting a child and the child's becoming its own program leaves a copy of the
/// lock to the child for that moment. So a lock whose holder is known to be dead is waited for a little.
const WAIT: Duration = Duration::from_millis(5);
const WAITS_MAX: u32 = 400;

/// Held while the log is open.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub fn acquire(path: &Path, here: &Holder) -> Result<Lock, LogError> {
        let io = |error: std::io::Error| LogError::Io { doing: "locked", why: error.to_string() };
        crash::point("lock: before");
        let mut waits = 0;
        loop {
            let mut options = OpenOptions::new();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = recorded(&mut file);
                    if waits == WAITS_MAX || holder.as_ref().is_some_and(|holder| holder.may_live(here)) {
                        return Err(LogError::Held { holder });
                    }
                    waits += 1;
                    std::thread::sleep(WAIT);
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(io(error)),
            }
            // Someone may have deleted the file between our opening and our locking it: that lock holds nothing.
            if !is_at(&file, path) {
                continue;
            }
            // On a file system whose locks do nothing, the record is all there is.
            if let Some(holder) = recorded(&mut file)
                && holder.pid != here.pid
                && holder.lives_here(here)
            {
                return Err(LogError::Held { holder: Some(holder) });
            }
            crash::point("lock: taken");
            record(&mut file, here).map_err(io)?;
            crash::point("lock: recorded");
            return Ok(Lock { file });
        }
    }

    /// Who holds the lock, read without taking it.
    pub fn holder(path: &Path) -> Option<Holder> {
        recorded(&mut File::open(path).ok()?)
    }

    /// False if the file was deleted or replaced: then another process may have taken the log over.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.file, path)
    }

    /// Beside the database: `log.db` is locked by `log.db.lock`.
    pub fn path(database: &Path) -> PathBuf {
        super::beside(database, ".lock")
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The record goes before the lock does. Should that fail, the next one finds a pid that no longer runs.
        let _ = self.file.set_len(0);
        // Said out loud, and not left to the closing: a child that was just started may have the file open as well.
        let _ = self.file.unlock();
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => ours.dev() == there.dev() && ours.ino() == there.ino(),
        _ => false,
    }
}

/// `None` where the holder has not written it yet, or where it is damaged.
fn recorded(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn record(file: &mut File, here: &Holder) -> std::io::Result<()> {
    let text = serde_json::to_string(here).map_err(std::io::Error::other)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())
}
