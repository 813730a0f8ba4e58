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

use serde::{Deserialize, Serialize};

use crate::LogError;
use base::crash;

/// A process, told apart from others that had or will have its pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// When it started, in clock ticks since the machine did; 0 where the system does not tell.
    pub started: u64,
    pub host: String,
}

impl Owner {
    /// The process that asks.
    pub fn current() -> Owner {
        let pid = std::process::id();
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned());
        Owner { pid, started: started(pid).unwrap_or(0), host: host.unwrap_or_default() }
    }

    /// Whether this very process still runs on this machine, as far as the machine tells.
    fn lives_here(&self, here: &Owner) -> bool {
        self.host == here.host && self.started != 0 && started(self.pid) == Some(self.started)
    }

    /// Whether it may still run, here or on another machine.
    fn may_live(&self, here: &Owner) -> bool {
        self.host != here.host || self.started == 0 || self.lives_here(here)
    }
}

/// Field 22 of `/proc/<pid>/stat`. The command's name, field 2, is in parentheses and may hold anything, also
/// spaces and parentheses, so the fields are counted from the last one.
pub(super) fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

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
    pub fn acquire(path: &Path, owner: &Owner) -> Result<Lock, LogError> {
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
                    if waits == WAITS_MAX || holder.as_ref().is_some_and(|holder| holder.may_live(owner)) {
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
                && holder.pid != owner.pid
                && holder.lives_here(owner)
            {
                return Err(LogError::Held { holder: Some(holder) });
            }
            crash::point("lock: taken");
            record(&mut file, owner).map_err(io)?;
            crash::point("lock: recorded");
            return Ok(Lock { file });
        }
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
fn recorded(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn record(file: &mut File, owner: &Owner) -> std::io::Result<()> {
    let text = serde_json::to_string(owner).map_err(std::io::Error::other)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())
}
