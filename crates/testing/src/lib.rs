//! Folders for tests of files. It knows no other crate, and no program is built with it: crates name it among their
//! dev-dependencies.

#![allow(clippy::unwrap_used, clippy::new_without_default, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder of its own for each test, removed at its end.
pub struct Folder {
    pub path: PathBuf,
    _held: TempDir,
}

impl Folder {
    pub fn new() -> Folder {
        Folder::below(&std::env::temp_dir())
    }

    /// In memory where there is such a place, for tests in which a real sync each time would be long.
    pub fn in_memory() -> Folder {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Folder::below(memory) } else { Folder::new() }
    }

    fn below(parent: &Path) -> Folder {
        // No hidden name: some things are not done in a hidden folder.
        let held = tempfile::Builder::new().prefix("adj-test-").tempdir_in(parent).unwrap();
        Folder { path: held.path().canonicalize().unwrap(), _held: held }
    }

    /// Writes a file, and the directories that it needs; its path is returned.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
