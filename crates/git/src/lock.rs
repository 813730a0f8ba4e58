//! Removes lock files of git processes that were killed.
//!
//! A lock is removed only if no live process can hold it: no process has the file open, and no git runs in
//! that directory. If this cannot be determined, only a lock that is an hour old counts as stale.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::GitError;
use super::inside::Inside;

/// Where processes cannot be looked at, a lock of this age is nobody's.
const LOCK_AGE_MIN: Duration = Duration::from_secs(3600);

/// Takes away the locks at these paths inside a git directory that nobody holds. A lock that someone holds is an error.
pub(super) fn clear(git_dir: &Inside, tree: &Path, paths: &[&str]) -> Result<(), GitError> {
    for path in paths {
        if !git_dir.exists(path) {
            continue;
        }
        let lock = git_dir.path().join(path);
        if let Some(holder) = holder(&lock, tree) {
            return Err(GitError::Locked { lock, holder });
        }
        git_dir.remove_file(path).map_err(GitError::io("removing a stale lock", &lock))?;
    }
    Ok(())
}

/// Removes every lock below a git directory of ours that no process can hold. Another git of ours may hold the others:
/// a git closes the lock of a reference before it renames it, so one that works in `git_dir` may hold each lock below
/// it. Returns whether such a lock is left.
pub(super) fn clear_stale_below(git_dir: &Path, depth: usize) -> Result<bool, GitError> {
    let mut held = false;
    for_each_lock(git_dir, depth, &mut |lock| match holder(lock, git_dir) {
        Some(_) => {
            held = true;
            Ok(())
        }
        None => remove_stale(lock),
    })?;
    Ok(held)
}

fn remove_stale(lock: &Path) -> Result<(), GitError> {
    match fs::remove_file(lock) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::Io { doing: "removing a stale lock", at: lock.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Calls `visit` with each lock below a directory.
fn for_each_lock(
    directory: &Path,
    depth: usize,
    visit: &mut dyn FnMut(&Path) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            // Objects have no locks, and there are many of them.
            if depth > 0 && entry.file_name() != "objects" {
                for_each_lock(&path, depth - 1, visit)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "lock")
            || entry.file_name() == "packed-refs.new"
        {
            visit(&path)?;
        }
    }
    Ok(())
}

/// Who holds a lock, or may: `None` only if it is certain that nobody does.
pub(super) fn holder(lock: &Path, at: &Path) -> Option<String> {
    let Ok(found) = fs::symlink_metadata(lock) else { return None };
    let Ok(processes) = fs::read_dir("/proc") else {
        let age = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        return (age < Some(LOCK_AGE_MIN)).then(|| "perhaps another process".to_owned());
    };
    let at = at.canonicalize().unwrap_or_else(|_| at.to_owned());
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        if works_there(&process.path(), &at) || has_open(&process.path(), (found.dev(), found.ino())) {
            return Some(format!("process {pid}"));
        }
    }
    None
}

fn works_there(process: &Path, at: &Path) -> bool {
    let is_git = fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"));
    is_git && fs::read_link(process.join("cwd")).is_ok_and(|cwd: PathBuf| cwd.starts_with(at))
}

fn has_open(process: &Path, identity: (u64, u64)) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files
        .flatten()
        .any(|file| fs::metadata(file.path()).is_ok_and(|found| (found.dev(), found.ino()) == identity))
}
