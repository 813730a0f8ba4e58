//! The mark: a line beside the database with the last acknowledged record of the log.
//!
//! SQLite recovers from a truncated or torn write-ahead log by going back to the last complete commit. After a crash that is
//! right, because the dropped part was never acknowledged. After damage, or if somebody restores an older copy of the file, it is
//! a silent loss, which the mark detects. It is written after each commit without its own sync,
//! so it never names a record that is not on disk, and it costs one small write.
//!
//! Limits: after a power cut the mark may be as old as the kernel's last write-back (usually half a
//! minute), so it does not detect damage of only the later part in the same accident. A mark that is
//! unreadable is ignored and written again.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::hex::{hex, unhex};
use sha2::{Digest, Sha256};

use crate::{Head, LogError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The id of the log, so that the mark of another one is not taken for this one's.
    pub id: String,
    pub head: Head,
}

impl Mark {
    /// Beside the database: `log.db` is marked by `log.db.head`.
    pub fn path(database: &Path) -> PathBuf {
        super::beside(database, ".head")
    }

    /// `None` where there is no mark, or none that can be read.
    pub fn read(path: &Path) -> Option<Mark> {
        let mut text = String::new();
        File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
        let (body, check) = text.trim_end().rsplit_once(' ')?;
        if check != checksum(body) {
            return None;
        }
        let mut words = body.split(' ');
        let (seq, hash, id) = (words.next()?, words.next()?, words.next()?);
        let head = Head { seq: seq.parse().ok()?, hash: unhex(hash)? };
        Some(Mark { id: id.to_owned(), head })
    }

    /// All lines of one log have the same length, so that a line written over an older one covers it whole.
    fn line(&self) -> String {
        let body = format!("{:020} {} {}", self.head.seq, hex(&self.head.hash), self.id);
        let check = checksum(&body);
        format!("{body} {check}\n")
    }
}

/// The mark's file, open for as long as the log is.
#[derive(Debug)]
pub(super) struct Marker {
    file: File,
    id: String,
}

impl Marker {
    pub fn open(path: &Path, mark: &Mark) -> Result<Marker, LogError> {
        let io = |error: std::io::Error| match error.raw_os_error() {
            Some(code) if super::means_full(code) => LogError::Full,
            _ => LogError::Io { doing: "marked", why: error.to_string() },
        };
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path).map_err(io)?;
        let line = mark.line();
        // An older mark is written over, never emptied first: a crash in between would leave no mark at all.
        file.write_all_at(line.as_bytes(), 0).map_err(io)?;
        file.set_len(line.len() as u64).map_err(io)?;
        Ok(Marker { file, id: mark.id.clone() })
    }

    /// The commit is durable without it, so a mark that cannot be written is no reason to take the reply back.
    pub fn set(&self, head: Head) {
        let line = Mark { id: self.id.clone(), head }.line();
        let _ = self.file.write_all_at(line.as_bytes(), 0);
    }

    pub fn sync(&self) {
        let _ = self.file.sync_data();
    }
}

fn checksum(body: &str) -> String {
    hex(&Sha256::digest(body)[..8])
}
