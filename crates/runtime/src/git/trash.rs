//! Trees that are no longer needed: saved, moved to the trash in one step, and deleted a week later.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use machines::names::TaskId;

use super::inside::Inside;
use super::names::{check_part, tree_name};
use super::tree::alternates;
use super::{GitError, Repository, Saved, locked, remove_folder};
use crate::layout::TRASH;

/// How long a removed tree is kept, ignored files included.
pub const TRASH_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Repository {
    /// Saves the task's tree, then moves it to the trash. What has no record of ours is refused. Asked again, it finds
    /// what it did.
    pub fn remove_tree(&self, task: &TaskId, tree: &str, effect: &str) -> Result<Option<Saved>, GitError> {
        let name = tree_name(tree)?;
        check_part("effect", effect)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        let saved = self.save_tree(task, name, effect)?;
        let record = self.record(name)?;
        let path = self.inner.places.trees.join(name);
        if self.open_tree(task, name)?.is_some() {
            self.to_trash(&path, &format!("{effect}-{name}"))?;
            crate::crash::point("forgetting a tree");
        }
        if record.is_some_and(|record| record.worktree.is_some()) {
            self.forget_worktree(&path)?;
        }
        for left in [self.record_path(name), self.index(name)] {
            match fs::remove_file(&left) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(GitError::Io { doing: "forgetting a tree", at: left, source: e });
                }
                _ => {}
            }
        }
        Ok(saved)
    }

    /// Deletes what has been in the trash for longer, and says how many trees that were.
    pub fn sweep_trash(&self, older_than: Duration) -> Result<usize, GitError> {
        let mut swept = 0;
        for folder in self.trashes() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let since = entry.metadata().and_then(|found| found.modified()).ok();
                let age = since.and_then(|since| SystemTime::now().duration_since(since).ok());
                if age.is_some_and(|age| age >= older_than) {
                    delete(&entry.path())?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }

    fn trashes(&self) -> [PathBuf; 2] {
        [self.inner.places.trees.join(TRASH), self.inner.places.state.join(TRASH)]
    }

    /// Whoever looks for something in the trash can use git there. Not more than a help: it may fail.
    fn lean_on_land_from(&self, trash: &Path, tree: &Path) {
        let Some(name) = tree.file_name().and_then(|name| name.to_str()) else { return };
        let Ok(Some(tree)) = Inside::open(trash, name) else { return };
        if let Ok(Some(objects)) =
            tree.enter(".git").and_then(|git| git.map_or(Ok(None), |git| git.enter("objects")))
        {
            let _ = objects.replace("info/alternates", &alternates(objects.path(), &self.land_objects()));
        }
    }

    fn to_trash(&self, path: &Path, name: &str) -> Result<(), GitError> {
        // Its age in the trash counts from now, whenever it was last worked in.
        let touched = fs::File::open(path).and_then(|folder| folder.set_modified(SystemTime::now()));
        touched.map_err(GitError::io("marking a tree as removed", path))?;
        for trash in self.trashes() {
            fs::create_dir_all(&trash).map_err(GitError::io("making the trash", &trash))?;
            // A tree of that name is there if one was prepared again under the same effect.
            let target =
                (0..).map(|n| if n == 0 { trash.join(name) } else { trash.join(format!("{name}.{n}")) });
            let Some(target) = target.take(1000).find(|target| target.symlink_metadata().is_err()) else {
                continue;
            };
            match fs::rename(path, &target) {
                Ok(()) => {
                    self.lean_on_land_from(&trash, &target);
                    return Ok(());
                }
                Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {}
                Err(source) => {
                    return Err(GitError::Io { doing: "moving a tree to the trash", at: target, source });
                }
            }
        }
        let source = std::io::Error::from(std::io::ErrorKind::CrossesDevices);
        Err(GitError::Io { doing: "moving a tree to the trash", at: path.to_owned(), source })
    }
}

/// Deletes a folder even where someone took the right to write away from parts of it. No link is followed.
pub(super) fn delete(path: &Path) -> Result<(), GitError> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return fs::remove_file(path).map_err(GitError::io("emptying the trash", path)),
        Err(_) => return Ok(()),
    }
    if remove_folder(path).is_ok() {
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        folders.extend(
            entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
        );
    }
    remove_folder(path)
}
