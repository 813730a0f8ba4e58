//! References, read and moved. They move by compare-and-swap only.

use std::path::{Path, PathBuf};

use super::command::Call;
use super::{GitError, Oid, Repository};

/// How deep in `land.git` a lock can be.
pub(super) const LOCK_DEPTH: usize = 8;

/// The longest file that holds one reference: a SHA-256 and its newline.
const LOOSE_BYTES_MAX: u64 = 65;

/// A reference as git has it now.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub name: String,
    pub oid: Oid,
    /// The checkout that has this branch checked out.
    pub checked_out: Option<PathBuf>,
}

/// A move of one reference: from what it is expected to be, to what it shall be. `None` is "not there".
pub(super) struct Change<'a> {
    pub name: &'a str,
    pub old: Expected<'a>,
    pub new: Option<&'a Oid>,
}

pub(super) enum Expected<'a> {
    Anything,
    Nothing,
    This(&'a Oid),
}

/// The references that these patterns (whole names, or folders of them) name.
pub(super) fn read(call: Call, patterns: &[&str]) -> Result<Vec<Reference>, GitError> {
    let output = call
        .args(["for-each-ref", "--format=%(refname)%00%(objectname)%00%(worktreepath)%00", "--"])
        .args(patterns)
        .ok()?;
    let text = String::from_utf8_lossy(&output);
    let mut fields = text.split('\0');
    let mut found = Vec::new();
    while let (Some(name), Some(oid), Some(worktree)) = (fields.next(), fields.next(), fields.next()) {
        let Some(oid) = Oid::new(oid) else { continue };
        found.push(Reference {
            name: name.trim_start_matches('\n').to_owned(),
            oid,
            checked_out: (!worktree.is_empty()).then(|| PathBuf::from(worktree)),
        });
    }
    Ok(found)
}

/// A reference that lies in a file of its own, which git replaces whole and asks before any other place. `None` says
/// nothing: it may be packed, or kept in another way. Asking git takes a process, and this is asked all the time.
pub(super) fn loose(git_dir: &Path, name: &str) -> Option<Oid> {
    let path = git_dir.join(name);
    let is_file =
        path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= LOOSE_BYTES_MAX);
    let text = is_file.then(|| std::fs::read_to_string(path).ok()).flatten()?;
    Oid::new(text.strip_suffix('\n')?)
}

/// Moves all of them or none. No: one of them was not where it was expected. Where git is killed on the way, some may have
/// moved, and locks are left: see `at_work.rs`.
pub(super) fn change(call: Call, zero: &str, why: &str, changes: &[Change<'_>]) -> Result<bool, GitError> {
    if changes.is_empty() {
        return Ok(true);
    }
    let mut input = Vec::new();
    for change in changes {
        let old = match change.old {
            Expected::Anything => "",
            Expected::Nothing => zero,
            Expected::This(oid) => oid.as_str(),
        };
        let line = match change.new {
            Some(new) => format!("update {}\0{new}\0{old}\0", change.name),
            None => format!("delete {}\0{old}\0", change.name),
        };
        input.extend_from_slice(line.as_bytes());
    }
    let asked = call.once().args(["update-ref", "--no-deref", "-m", why, "--stdin", "-z"]).input(input).ok();
    match asked {
        Ok(_) => Ok(true),
        Err(error) if was_elsewhere(error.said()) => Ok(false),
        Err(error) => Err(error),
    }
}

fn was_elsewhere(said: &str) -> bool {
    ["but expected", "reference already exists", "unable to resolve reference", "reference is missing"]
        .iter()
        .any(|words| said.contains(words))
}

impl Repository {
    /// One reference of `land.git`.
    pub(super) fn land_reference(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if let Some(oid) = loose(&self.land_dir(), name) {
            return Ok(Some(oid));
        }
        let found = read(self.land("reading a reference"), &[name])?;
        Ok(found.into_iter().find(|reference| reference.name == name).map(|reference| reference.oid))
    }

    /// One reference of the user's repository.
    pub(super) fn user_reference(&self, name: &str) -> Result<Option<Reference>, GitError> {
        let found = self.user_references("reading a reference", &[name])?;
        Ok(found.into_iter().find(|reference| reference.name == name))
    }

    /// References of the user's repository. What git calls the checkout of its main worktree is only a guess from where
    /// the git directory is: that directory itself, where it does not lie in the checkout. A bare repository has none.
    pub(super) fn user_references(
        &self,
        doing: &'static str,
        patterns: &[&str],
    ) -> Result<Vec<Reference>, GitError> {
        let inner = &self.inner;
        let mut found = read(self.user(doing), patterns)?;
        for reference in &mut found {
            let guessed = |at: &mut PathBuf| *at == inner.git_dir || *at == inner.places.root;
            if reference.checked_out.take_if(guessed).is_some() && !inner.bare {
                reference.checked_out = Some(inner.places.root.clone());
            }
        }
        Ok(found)
    }

    /// Sets a reference of `land.git`, which is ours: whatever it was before stays in its history.
    pub(super) fn set_in_land(&self, name: &str, oid: &Oid) -> Result<(), GitError> {
        let change = Change { name, old: Expected::Anything, new: Some(oid) };
        self.change_land("writing a reference", "adjutant", &[change]).map(drop)
    }
}
