//! The mark: a line beside the database that says which commit was acknowledged last.
//!
//! SQLite recovers from a damaged or cut write-ahead log by going back to the last whole commit. After a crash that is right:
//! what it drops was never acknowledged. After damage it is a silent loss, and the mark notices. It is written after each
//! commit without a sync of its own, so it never names a commit that is not on disk. After a power cut it may be as old as
//! the system's last write-back. A mark that cannot be read says nothing, and is written again.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::digest;
use rusqlite::{Connection, OptionalExtension};

use crate::hex::hex;

/// Where a store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The random name of the store, so that another one's mark is not taken for its own.
    pub id: String,
    pub commits: u64,
}

impl Mark {
    pub fn path(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".head");
        PathBuf::from(name)
    }

    /// `None` where there is no mark, or none that can be read.
    pub fn read(database: &Path) -> Option<Mark> {
        let mut text = String::new();
        File::open(Mark::path(database)).ok()?.take(4096).read_to_string(&mut text).ok()?;
        let (body, check) = text.trim_end().rsplit_once(' ')?;
        let (commits, id) = body.split_once(' ')?;
        (check == checksum(body)).then_some(Mark { id: id.to_owned(), commits: commits.parse().ok()? })
    }

    /// What the database itself says.
    pub fn of(db: &Connection) -> Result<Option<Mark>, rusqlite::Error> {
        db.prepare_cached("SELECT id, commits FROM tally")?
            .query_row((), |row| Ok(Mark { id: row.get(0)?, commits: super::unsigned(row.get(1)?) }))
            .optional()
    }

    /// All lines of one store have the same length, so that one written over another covers it whole.
    fn line(&self) -> String {
        let body = format!("{:020} {}", self.commits, self.id);
        let check = checksum(&body);
        format!("{body} {check}\n")
    }

    /// What was acknowledged must be there.
    pub fn check(&self, found: Option<&Mark>) -> Result<(), String> {
        match found {
            None => Err(format!("{} commits were acknowledged, and nothing of them is there", self.commits)),
            Some(found) if found.id != self.id => {
                Err("the file is not the one that was written here last".to_owned())
            }
            Some(found) if found.commits < self.commits => Err(format!(
                "it ends at commit {}, but commit {} was acknowledged",
                found.commits, self.commits
            )),
            Some(_) => Ok(()),
        }
    }
}

/// The mark's file, open for as long as the store is.
pub struct Marker {
    file: File,
    id: String,
}

impl Marker {
    pub fn open(database: &Path, mark: &Mark) -> std::io::Result<Marker> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(Mark::path(database))?;
        let line = mark.line();
        file.write_all_at(line.as_bytes(), 0)?;
        file.set_len(line.len() as u64)?;
        Ok(Marker { file, id: mark.id.clone() })
    }

    /// The commit is durable without it, so a mark that cannot be written is no reason to take the answer back.
    pub fn set(&self, commits: u64) {
        let line = Mark { id: self.id.clone(), commits }.line();
        let _ = self.file.write_all_at(line.as_bytes(), 0);
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let _ = self.file.sync_data();
    }
}

/// The checksum that a piece of data is kept with.
pub fn sum(data: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, data).as_ref()[..16].to_vec()
}

fn checksum(body: &str) -> String {
    hex(&sum(body.as_bytes())[..8])
}
