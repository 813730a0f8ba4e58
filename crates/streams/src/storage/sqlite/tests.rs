//! The store on a disk, held to what every store promises, and damaged.

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::storage::conformance::{DamageableSpecimen, Specimen, conformance, damage};

conformance!(OnDisk::new());
damage!(OnDisk::new());

struct OnDisk {
    folder: TempDir,
}

impl OnDisk {
    fn new() -> OnDisk {
        OnDisk { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

impl Specimen for OnDisk {
    fn parts(&mut self) -> Parts {
        match open(self.folder.path()).unwrap() {
            Opened::Ready(parts) => parts,
            Opened::Damaged(why) => panic!("{why}"),
        }
    }
}

impl DamageableSpecimen for OnDisk {
    fn edit_data(&mut self, path: &str) {
        let db = Connection::open(self.file()).unwrap();
        let changed = db.execute(
            "UPDATE chunks SET data = zeroblob(length(data)) WHERE (stream, end) =
                (SELECT stream, max(end) FROM chunks WHERE stream = (SELECT id FROM streams WHERE path = ?1))",
            [path],
        );
        assert_eq!(changed, Ok(1));
    }

    fn lose_the_last_transaction(&mut self, work: &mut dyn FnMut(&mut dyn Specimen)) {
        let files = ["", "-wal"].map(|ending| self.file().with_file_name(format!("{FILE}{ending}")));
        let before = files.clone().map(|file| std::fs::read(file).ok());
        work(self);
        for (file, before) in files.iter().zip(before) {
            match before {
                Some(bytes) => std::fs::write(file, bytes).unwrap(),
                None => drop(std::fs::remove_file(file)),
            }
        }
        let _ = std::fs::remove_file(self.file().with_file_name(format!("{FILE}-shm")));
    }

    fn damage_found(&mut self) -> Option<String> {
        match open(self.folder.path()).unwrap() {
            Opened::Ready(_) => None,
            Opened::Damaged(why) => Some(why),
        }
    }
}

/// What another version has written is refused rather than guessed at.
#[test]
fn tables_of_another_version_are_refused() {
    let mut disk = OnDisk::new();
    drop(disk.parts());
    Connection::open(disk.file()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let opened = open(disk.folder.path()).err().map(|error| error.to_string());
    assert!(opened.as_deref().is_some_and(|error| error.contains("tables 99")), "{opened:?}");
}
