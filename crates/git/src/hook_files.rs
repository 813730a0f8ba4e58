//! Files that a `worktree.create` hook leaves in a tree and git does not ignore, such as a `.venv` that no `.gitignore` names.
//!
//! They are not the agent's work. A folder that the hook created stays out of all our commits, with everything that is added
//! later; a single file stays out until somebody changes it. The tree's own git ignores both, so
//! `git add --all` does not add them. `git add --force` does, and the gate refuses unchanged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use machines::names::TaskId;
use serde::{Deserialize, Serialize};

use super::names::tree_name;
use super::{GitError, Isolation, Oid, Repository, locked, write_whole};

/// What a hook left in a tree. Paths are relative to it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct HookFiles {
    /// What was untracked before the hook ran for the first time; folders end in `/`.
    before: BTreeSet<String>,
    /// The folders that it made as a whole; each ends in `/`.
    folders: BTreeSet<String>,
    /// Every file, also those in such folders, and how it looked.
    files: BTreeMap<String, Look>,
}

/// Size, and seconds and nanoseconds of the last change.
type Look = (u64, i64, i64);

fn look(path: &Path) -> Option<Look> {
    let found = path.symlink_metadata().ok()?;
    Some((found.size(), found.mtime(), found.mtime_nsec()))
}

impl HookFiles {
    fn unchanged(&self, tree: &Path, path: &str) -> bool {
        self.files.get(path).is_some_and(|left| look(&tree.join(path)) == Some(*left))
    }

    /// Lines of a file of excludes for what is not changed.
    fn lines(&self, tree: &Path) -> String {
        let within = |path: &str| self.folders.iter().any(|folder| path.starts_with(folder.as_str()));
        let single = self.files.keys().filter(|path| !within(path) && self.unchanged(tree, path));
        self.folders.iter().chain(single).map(|path| format!("{}\n", exclude_line(path))).collect()
    }
}

/// The line of a file of excludes that means this path and no other.
pub(super) fn exclude_line(path: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '\\' | ' ' | '!' | '#');
    let escaped: String =
        path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
    format!("/{escaped}")
}

impl Repository {
    /// The hook is about to run in the task's tree. What is untracked by now is none of it; asked again, after a hook that was
    /// cut off, nothing changes.
    pub fn begin_hook(&self, task: &TaskId, tree: &str) -> Result<(), GitError> {
        let name = tree_name(tree)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        if self.open_tree(task, name)?.is_none() || self.hook_record(name).exists() {
            return Ok(());
        }
        let before = self.untracked(name, true)?.into_iter().collect();
        self.write_hook_files(name, &HookFiles { before, ..HookFiles::default() })
    }

    /// The hook has run in the task's tree, in which nobody was at work yet. How many files it left there.
    pub fn note_hook_files(&self, task: &TaskId, tree: &str, tip: &Oid) -> Result<usize, GitError> {
        let name = tree_name(tree)?;
        let left = {
            let turn = self.turn(name);
            let _turn = locked(&turn);
            if self.open_tree(task, name)?.is_none() {
                return Ok(0);
            }
            let mut record = self.hook_files(name).unwrap_or_default();
            let folder = self.inner.places.trees.join(name);
            let tops = self.untracked(name, true)?.into_iter().filter(|path| !record.before.contains(path));
            let tops: BTreeSet<String> = tops.collect();
            record.folders = tops.iter().filter(|path| path.ends_with('/')).cloned().collect();
            let is_left = |path: &String| {
                tops.contains(path) || record.folders.iter().any(|folder| path.starts_with(folder.as_str()))
            };
            let files = self.untracked(name, false)?.into_iter().filter(is_left);
            record.files = files.filter_map(|path| Some((path.clone(), look(&folder.join(path))?))).collect();
            self.write_hook_files(name, &record)?;
            record.files.len()
        };
        self.exclude_hook_files(tree)?;
        // What it changed of the project's own files is no work of the agent's either.
        self.note_test_files(task, tree, tip)?;
        Ok(left)
    }

    /// Has the git of a tree ignore what its hook left. In a worktree, the environment says it: see `excluded_in`.
    pub fn exclude_hook_files(&self, tree: &str) -> Result<(), GitError> {
        let name = tree_name(tree)?;
        if self.inner.places.isolation == Isolation::Worktree || !self.hook_record(name).exists() {
            return Ok(());
        }
        let content = format!("{}{}", self.excludes()?, self.hook_lines(name));
        let git_dir = self.git_dir_of(name)?;
        git_dir.replace("info/exclude", content.as_bytes()).map_err(|source| GitError::Io {
            doing: "adding a hook's files to git's exclude file",
            at: git_dir.path().to_owned(),
            source,
        })
    }

    /// The tree is made anew: what a hook left in the one before is gone.
    pub fn forget_hook_files(&self, tree: &str) -> Result<(), GitError> {
        let record = self.hook_record(tree_name(tree)?);
        match fs::remove_file(&record) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(GitError::Io { doing: "forgetting what a hook left", at: record, source: e })
            }
            _ => Ok(()),
        }
    }

    /// Which of these files of a branch the hook left in its tree, and nobody changed.
    pub fn left_by_hook(&self, tree: &str, files: &[String]) -> Result<Vec<String>, GitError> {
        let name = tree_name(tree)?;
        let folder = self.inner.places.trees.join(name);
        let Some(record) = self.hook_files(name) else { return Ok(Vec::new()) };
        Ok(files.iter().filter(|path| record.unchanged(&folder, path)).cloned().collect())
    }

    /// What git is to ignore in a tree beyond what the project says, as lines of a file of excludes.
    pub(super) fn hook_lines(&self, name: &str) -> String {
        let folder = self.inner.places.trees.join(name);
        self.hook_files(name).map(|record| record.lines(&folder)).unwrap_or_default()
    }

    /// The same in a file of ours; `None` where there is nothing such.
    pub(super) fn hook_excludes(&self, name: &str) -> Result<Option<PathBuf>, GitError> {
        let lines = self.hook_lines(name);
        if lines.is_empty() {
            return Ok(None);
        }
        let file = self.inner.places.state.join("index").join(format!("{name}.excludes"));
        write_whole(&file, lines.as_bytes())?;
        Ok(Some(file))
    }

    /// Untracked files that git does not ignore; as `tops`, a folder of nothing else counts as one and ends in `/`. Paths that
    /// are no text are left out.
    fn untracked(&self, name: &str, tops: bool) -> Result<Vec<String>, GitError> {
        let tree = self.inner.places.trees.join(name);
        let call = self.land_with_tree("listing what a hook left", &tree, &self.index(name));
        let mut call = call.args(["ls-files", "-z", "-o", "--exclude-standard"]);
        if tops {
            call = call.args(["--directory", "--no-empty-directory"]);
        }
        let listed = call.ok()?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let paths = paths.filter_map(|path| String::from_utf8(path.to_vec()).ok());
        Ok(paths.filter(|path| !path.contains('\n')).collect())
    }

    fn hook_record(&self, name: &str) -> PathBuf {
        self.inner.places.state.join("index").join(format!("{name}.hook"))
    }

    fn hook_files(&self, name: &str) -> Option<HookFiles> {
        serde_json::from_slice(&fs::read(self.hook_record(name)).ok()?).ok()
    }

    fn write_hook_files(&self, name: &str, record: &HookFiles) -> Result<(), GitError> {
        write_whole(&self.hook_record(name), &serde_json::to_vec(record).unwrap_or_default())
    }
}
