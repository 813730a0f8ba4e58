//! Removes trees: saves them, moves them away in one step, and deletes the files that git has. Other files
//! (ignored or unreadable files, the agent's own git directory) stay in the trash for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use machines::names::TaskId;

use super::inside::Inside;
use super::names::{TRASH, check_part, task_reference, tree_name};
use super::tree::{alternates, is_beyond_a_link};
use super::{GitError, Repository, Saved, locked, remove_folder};

/// The largest temporary folder that is copied to the trash from another file system.
const COPIED_BYTES_MAX: u64 = 1 << 30;

/// What is in the trash of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    pub path: PathBuf,
    pub since: SystemTime,
    pub bytes: u64,
}

impl Repository {
    /// Saves the task's tree, then moves it to the trash. What has no record of ours is refused. Asked again, it finds
    /// what it did.
    pub fn remove_tree(&self, task: &TaskId, tree: &str, effect: &str) -> Result<Option<Saved>, GitError> {
        let name = tree_name(tree)?;
        check_part("effect", effect)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        let record = self.record(name)?;
        if let Some(record) = &record
            && self.open_tree(task, name)?.is_some()
        {
            // What cannot be saved keeps the tree where it is.
            self.bring_home(task, name, &record.branch)?;
        }
        let (saved, in_git) = self.save_and_list(task, name, effect)?;
        let path = self.inner.places.trees.join(name);
        if self.open_tree(task, name)?.is_some() {
            let trashed = self.to_trash(&path, &format!("{effect}-{name}"))?;
            base::crash::point("forgetting a tree");
            drop_files(&trashed, &in_git);
        }
        if record.is_some_and(|record| record.worktree.is_some()) {
            self.forget_worktree(&path)?;
        }
        self.forget_own_branch(name)?;
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

    /// The task begins anew on main: its tree is removed as above, and what its branch holds beyond main is saved under the
    /// same reference. The branch goes where it is as we left it. Asked again, it finds what it did.
    pub fn start_over(
        &self,
        task: &TaskId,
        tree: &str,
        branch: &str,
        effect: &str,
    ) -> Result<Option<Saved>, GitError> {
        let saved = self.remove_tree(task, tree, effect)?;
        let saved = match (saved, self.land_reference(&task_reference(task))?) {
            (None, Some(tip)) => self.save_branch(task, &tip, effect)?,
            (saved, _) => saved,
        };
        self.delete_branch(task, branch)?;
        self.forget_tip(task)?;
        Ok(saved)
    }

    /// The task is over and its tree is put away: its temporary folder follows, because an agent may have put anything there.
    pub fn put_temporary_away(&self, task: &TaskId, effect: &str) {
        let folder = self.inner.places.temporary.join(super::names::temp_name(task));
        // An empty one holds nothing of anybody's.
        if !folder.is_dir() || fs::remove_dir(&folder).is_ok() {
            return;
        }
        let name = format!("{effect}-{task}.tmp");
        let put_away = match self.to_trash(&folder, &name) {
            Err(GitError::Io { source, .. }) if source.kind() == std::io::ErrorKind::CrossesDevices => {
                self.copy_to_trash(&folder, &name)
            }
            other => other.map(drop),
        };
        if let Err(error) = put_away {
            self.note(format!("{task}: its temporary folder stays where it is: {error}"));
        }
    }

    /// From another file system. What is too large for that stays where it is.
    fn copy_to_trash(&self, folder: &Path, name: &str) -> Result<(), GitError> {
        let doing = "copying a temporary folder to the trash";
        if base::files::bytes_below(folder) > COPIED_BYTES_MAX {
            let source = std::io::Error::from(std::io::ErrorKind::FileTooLarge);
            return Err(GitError::Io { doing, at: folder.to_owned(), source });
        }
        let [trash, _] = self.trashes();
        fs::create_dir_all(&trash).map_err(GitError::io("making the trash", &trash))?;
        let target = trash.join(name);
        remove_folder(&target)?;
        base::files::copy_below(folder, &target).map_err(GitError::io(doing, folder))?;
        delete(folder)
    }

    /// What is in the trash, the oldest first.
    pub fn trash(&self) -> Vec<Trashed> {
        let mut found = Vec::new();
        for folder in self.trashes() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let since =
                    entry.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                let path = entry.path();
                let known = locked(&self.inner.measured).get(&path).copied();
                let bytes = known.unwrap_or_else(|| base::files::bytes_below(&path));
                // Nothing is added to what is in the trash.
                locked(&self.inner.measured).insert(path.clone(), bytes);
                found.push(Trashed { path, since, bytes });
            }
        }
        found.sort_by(|a, b| (a.since, &a.path).cmp(&(b.since, &b.path)));
        found
    }

    /// Deletes what has been in the trash for longer, and the oldest of it as long as there is more.
    pub fn sweep_trash(&self, older_than: Duration, bytes_max: u64) -> Result<Vec<Trashed>, GitError> {
        let turn = self.turn(TRASH);
        let _turn = locked(&turn);
        let trash = self.trash();
        let mut bytes: u64 = trash.iter().map(|entry| entry.bytes).sum();
        let mut swept = Vec::new();
        for entry in trash {
            let age = SystemTime::now().duration_since(entry.since).unwrap_or_default();
            if age >= older_than || bytes > bytes_max {
                delete(&entry.path)?;
                locked(&self.inner.measured).remove(&entry.path);
                bytes -= entry.bytes;
                swept.push(entry);
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

    pub(super) fn to_trash(&self, path: &Path, name: &str) -> Result<PathBuf, GitError> {
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
                    return Ok(target);
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

/// Removes files of a tree that git has, and the folders that are empty then. No link is followed.
fn drop_files(tree: &Path, paths: &[Vec<u8>]) {
    let mut links = BTreeMap::new();
    let mut folders = BTreeSet::new();
    for path in paths {
        if is_beyond_a_link(tree, path, &mut links) {
            continue;
        }
        let relative = Path::new(OsStr::from_bytes(path));
        // What cannot be removed stays until the trash is emptied.
        let _ = fs::remove_file(tree.join(relative));
        folders
            .extend(relative.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).map(Path::to_owned));
    }
    // The deepest first.
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(tree.join(folder));
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
