//! Moves the state of an earlier version, which was in `.adjutant` in the user's checkout.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{LOG, Layout, STATE};
use process::keeper;

/// What every SQLite file begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// What became of the state of an earlier version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    To(PathBuf),
    /// It stays where it is for now, and is used there.
    Not(String),
}

/// Where earlier versions kept their state.
pub(super) fn state(root: &Path) -> PathBuf {
    root.join(".adjutant")
}

/// Whether a folder holds a log of ours: a folder of that name may be the user's own.
pub(super) fn is_ours(folder: &Path) -> bool {
    let is_file = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|found| found.is_file());
    let is_folder = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_folder && is_file(LOG) && is_file(&format!("{LOG}.lock")) && is_database(&folder.join(LOG))
}

fn is_database(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SQLITE.len() as u64).read_to_end(&mut head));
    // An empty one has all it holds in its write-ahead log still.
    read.is_ok() && (head.is_empty() || head == SQLITE)
}

/// Moves it into the git directory, in one step. Nothing where there is none.
pub(super) fn move_state(layout: &Layout) -> Option<Moved> {
    let (old, new) = (state(&layout.root), layout.git_dir.join(STATE));
    if layout.state != old {
        return None;
    }
    match moved(&old, &new) {
        Ok(true) => Some(Moved::To(new)),
        // Its owner runs: that is reached there, and the next one moves it.
        Ok(false) => None,
        Err(error) => Some(Moved::Not(format!(
            "`{}` cannot be moved to `{}` and is used where it is: {error}",
            old.display(),
            new.display()
        ))),
    }
}

fn moved(old: &Path, new: &Path) -> io::Result<bool> {
    let lock = File::options().read(true).write(true).open(old.join(format!("{LOG}.lock")))?;
    if lock.try_lock().is_err() || is_at_work(&old.join(super::STEPS)) {
        return Ok(false);
    }
    // An empty one may be there; anything else is somebody's.
    match fs::remove_dir(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    base::crash::point("moving the state folder");
    fs::rename(old, new)?;
    // What kept it out of git where it was; and what is made again at its new place.
    let _ = fs::remove_file(new.join(".gitignore"));
    for left in ["tmp", "landing"] {
        let _ = fs::remove_dir_all(new.join(left));
    }
    Ok(true)
}

/// Whether a keeper lives in one of these folders: what it writes goes to where it was started.
pub(super) fn is_at_work(steps: &Path) -> bool {
    let Ok(entries) = fs::read_dir(steps) else { return false };
    entries.flatten().any(|entry| matches!(keeper::look(&entry.path()), Ok(keeper::Found::Alive(_))))
}
