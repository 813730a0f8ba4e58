//! The view of the machine that a program gets, path by path: one plan, carried out by `namespace.rs` itself or by
//! `bubblewrap.rs` with that program.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::{Rules, SandboxError, resolve};

/// What programs share memory in. It is theirs alone, and gone with them.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
pub(super) const SHARED_MEMORY_MODE: &str = "1777";
/// A hidden directory has room for the way to what may be seen inside it, and for nothing else.
pub(super) const EMPTY_BYTES: u64 = 1 << 20;
pub(super) const EMPTY_MODE: &str = "755";

/// What becomes of a path.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Act {
    /// Nothing is there.
    Hide,
    /// It is there although a directory above it is hidden.
    Show,
    /// It can be changed.
    Write,
    /// An empty one is there that can be written, and is gone with the program.
    Fresh,
}

impl Act {
    /// Whether nothing of what was there before is left.
    pub(super) fn empties(self) -> bool {
        matches!(self, Act::Hide | Act::Fresh)
    }
}

/// Everything that is done to the view, parents before what is in them.
#[derive(Debug)]
pub(super) struct View {
    pub(super) acts: BTreeMap<PathBuf, Act>,
}

impl View {
    pub(super) fn new(rules: &Rules) -> Result<View, SandboxError> {
        let mut wanted: BTreeMap<PathBuf, Act> = BTreeMap::new();
        for path in rules.hidden.iter().chain(&rules.concealed) {
            wanted.insert(resolve(path)?, Act::Hide);
        }
        if let Some(only) = &rules.only {
            for path in only {
                wanted.insert(resolve(path)?, Act::Show);
            }
            for path in beside(only)? {
                wanted.entry(path).or_insert(Act::Hide);
            }
        }
        wanted.insert(SHARED_MEMORY.into(), Act::Fresh);
        for path in &rules.read_only {
            wanted.insert(resolve(path)?, Act::Show);
        }
        for path in &rules.read_write {
            wanted.insert(resolve(path)?, Act::Write);
        }
        let above = |path: &Path, wanted: &BTreeMap<PathBuf, Act>| {
            path.ancestors().skip(1).find_map(|above| wanted.get(above).copied())
        };
        let acts = wanted
            .iter()
            .filter(|(path, act)| match (act, above(path, &wanted)) {
                // The directory is empty already, or its content can be seen or changed already.
                (Act::Hide, Some(above)) if above.empties() => false,
                (Act::Write, Some(Act::Write)) => false,
                (Act::Show, above) => above.is_some_and(Act::empties),
                _ => true,
            })
            // What is not there, or not for us to look at, is not there for the program.
            .filter(|(path, _)| path.symlink_metadata().is_ok())
            .map(|(path, act)| (path.clone(), *act))
            .collect();
        Ok(View { acts })
    }
}

/// All that stands in `/` and is neither one of these nor a link. Those inside it are shown again.
fn beside(only: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
    let only: Vec<PathBuf> = only.iter().map(|path| resolve(path)).collect::<Result<_, _>>()?;
    let entries = std::fs::read_dir("/").map_err(|error| failed("list", Path::new("/"), error))?;
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    Ok(entries
        .flatten()
        .filter(is_folder)
        .map(|entry| entry.path())
        .filter(|path| !only.contains(path))
        .collect())
}

pub(super) fn failed(doing: &str, path: &Path, error: impl Into<io::Error>) -> SandboxError {
    SandboxError::Failed(format!("cannot {doing} {}: {}", path.display(), error.into()))
}
