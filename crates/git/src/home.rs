//! Finds the git directory of an agent's tree, and moves it back into the tree if needed.
//!
//! An agent may move it, replace it by a link, separate it (`git init --separate-git-dir`), or leave it damaged, as a
//! power cut does. Its commits still count as its work.
//!
//! Invariants:
//! - a directory is moved back only from the task's own tree or temporary folder, on a path without links: nothing that the
//!   agent cannot write to is moved;
//! - an unreadable directory goes to the trash before another one replaces it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use machines::names::TaskId;

use super::directories::{OBJECT_NAMES, folder_of_objects, git_directories, is_hex};
use super::inside::Inside;
use super::names::task_reference;
use super::tree::Record;
use super::{GitError, Oid, Repository, locked};

/// How many commits of a damaged git directory are tried, the newest first.
const COMMITS_TRIED_MAX: usize = 20;

impl Repository {
    /// The clone's git directory is in its tree, if it is anywhere. One that leads elsewhere is an error.
    pub(super) fn bring_home(&self, task: &TaskId, name: &str, branch: &str) -> Result<(), GitError> {
        let tree = self.inner.places.trees.join(name);
        if self.record(name)?.is_none_or(|record| record.worktree.is_some()) || !tree.is_dir() {
            return Ok(());
        }
        let dot_git = tree.join(".git");
        let unreadable = |why: String| GitError::Unreadable { tree: tree.clone(), why };
        let found = match dot_git.symlink_metadata() {
            Err(_) => {
                let Some(from) = self.moved_away(task, &tree, branch) else { return Ok(()) };
                self.fetch_home(task, &from, &tree, ".git")?;
                return self.has_a_head(name, branch);
            }
            Ok(found) => found,
        };
        if found.is_dir() {
            let objects = dot_git.join("objects");
            if objects.symlink_metadata().is_err() {
                let moved = self.roots(task, &tree).iter().find_map(|root| folder_of_objects(root));
                return moved.map_or(Ok(()), |from| self.fetch_home(task, &from, &dot_git, "objects"));
            }
            if !objects.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
                return Ok(());
            }
            let leads = objects
                .canonicalize()
                .map_err(|error| unreadable(format!("its objects are a link that leads nowhere: {error}")))?;
            return self.put_in_place(task, &leads, &dot_git, "objects");
        }
        let leads = match found.is_symlink() {
            true => fs::read_link(&dot_git).ok(),
            false if found.is_file() && found.len() < 4096 => {
                let text = fs::read_to_string(&dot_git).unwrap_or_default();
                text.trim_end().strip_prefix("gitdir: ").map(PathBuf::from)
            }
            false => None,
        };
        let Some(leads) = leads else {
            return Err(unreadable(".git is neither a folder nor a way to one".to_owned()));
        };
        match tree.join(&leads).canonicalize() {
            Ok(to) => self.put_in_place(task, &to, &tree, ".git"),
            // What it led to is gone: there is nothing that could be lost, and another is made.
            Err(_) => fs::remove_file(&dot_git).map_err(GitError::io("removing a link", &dot_git)),
        }
    }

    /// Without one, git takes the directory for none of its own.
    fn has_a_head(&self, name: &str, branch: &str) -> Result<(), GitError> {
        let git_dir = self.git_dir_of(name)?;
        if git_dir.exists("HEAD") {
            return Ok(());
        }
        let head = format!("ref: refs/heads/{branch}\n");
        let failed = GitError::io("bringing a git directory back into its tree", git_dir.path());
        git_dir.replace("HEAD", head.as_bytes()).map_err(failed)
    }

    /// Puts the folder that a link leads to into the link's place.
    fn put_in_place(&self, task: &TaskId, leads: &Path, parent: &Path, name: &str) -> Result<(), GitError> {
        if !self.is_the_agents(task, leads, parent) || !leads.is_dir() {
            let why = format!(
                "{} leads to {}, which is not in it; put that back into its place, or remove {}",
                parent.join(name).display(),
                leads.display(),
                parent.join(name).display()
            );
            return Err(GitError::Unreadable { tree: parent.to_owned(), why });
        }
        let link = parent.join(name);
        fs::remove_file(&link).map_err(GitError::io("removing a link", &link))?;
        self.fetch_home(task, leads, parent, name)
    }

    /// The task's own folders, which its agent can write to.
    fn roots(&self, task: &TaskId, tree: &Path) -> Vec<PathBuf> {
        let temporary = self.inner.places.temporary.join(super::names::temp_name(task));
        [tree.to_owned(), temporary].into_iter().filter_map(|root| root.canonicalize().ok()).collect()
    }

    fn is_the_agents(&self, task: &TaskId, path: &Path, inside: &Path) -> bool {
        // A git directory's own folder is in the tree as well.
        let tree =
            inside.ancestors().find(|at| at.parent() == Some(&self.inner.places.trees)).unwrap_or(inside);
        self.roots(task, tree).iter().any(|root| path.starts_with(root) && path != root)
    }

    fn fetch_home(&self, task: &TaskId, from: &Path, parent: &Path, name: &str) -> Result<(), GitError> {
        let doing = "bringing a git directory back into its tree";
        let to = parent.join(name);
        self.note(format!("{task}: its git directory was found at {} and put back", from.display()));
        match fs::rename(from, &to) {
            Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {}
            other => return other.map_err(GitError::io(doing, &to)),
        }
        let making = parent.join(format!("{name}.adjutant"));
        super::remove_folder(&making)?;
        base::files::copy_below(from, &making).map_err(GitError::io(doing, from))?;
        fs::rename(&making, &to).map_err(GitError::io(doing, &to))?;
        super::trash::delete(from)
    }

    /// Where the agent has put its git directory: a folder of its own that has the task's branch.
    fn moved_away(&self, task: &TaskId, tree: &Path, branch: &str) -> Option<PathBuf> {
        let roots = self.roots(task, tree);
        let found = roots.iter().flat_map(|root| git_directories(root));
        let has_branch = |at: &PathBuf| {
            let (parent, name) = (at.parent()?, at.file_name()?.to_str()?);
            let git_dir = Inside::open(parent, name).ok().flatten()?;
            git_dir.reference(&format!("refs/heads/{branch}")).ok().flatten()
        };
        found.into_iter().find(|at| has_branch(at).is_some())
    }

    /// The git directory cannot be read, as after a power cut. It goes to the trash; another stands in its place, at the
    /// newest commit that can be had. The files stay as they are.
    pub(super) fn rebuild_git_dir(&self, task: &TaskId, name: &str, branch: &str) -> Result<(), GitError> {
        let tree = self.inner.places.trees.join(name);
        let known = self.land_reference(&task_reference(task))?;
        let main = locked(&self.inner.main_in_land).clone();
        let haves: Vec<Oid> = known.iter().cloned().chain(main).collect();
        if let Ok(git_dir) = self.git_dir_of(name) {
            let objects = git_dir.path().join("objects");
            let mut seen = BTreeSet::new();
            let newest =
                git_dir.history("logs/HEAD").into_iter().rev().filter(|oid| seen.insert(oid.clone()));
            for oid in newest.take(COMMITS_TRIED_MAX) {
                if Some(&oid) == known.as_ref() {
                    break;
                }
                if objects.is_dir() && self.bring(&objects, std::slice::from_ref(&oid), &haves).is_ok() {
                    self.set_in_land(&task_reference(task), &oid)?;
                    break;
                }
            }
        }
        let trashed = self.to_trash(&tree.join(".git"), &format!("damaged-{name}.git"))?;
        self.note(format!(
            "{task}: its git directory was damaged and was created again at its last readable commit; the damaged one is {}",
            trashed.display()
        ));
        self.restore_git_dir(task, name, branch)
    }

    /// The same of a worktree: its branch and index are made anew at the newest commit that can be had. What is empty among
    /// the user's objects is of no use to anybody, and git would take it for the object that it is named after: it goes
    /// to the trash.
    pub(super) fn rebuild_worktree(
        &self,
        task: &TaskId,
        name: &str,
        record: &Record,
    ) -> Result<(), GitError> {
        let Some(id) = &record.worktree else { return Ok(()) };
        let objects = self.inner.git_dir.join("objects");
        let trashed = self.put_empty_objects_away(&objects, name)?;
        let git_dir = self.worktree_dir(name, id)?;
        let known = self.land_reference(&task_reference(task))?;
        let begun = self.begun(task, name)?;
        let mut seen = BTreeSet::new();
        let newest = git_dir.history("logs/HEAD").into_iter().rev().filter(|oid| seen.insert(oid.clone()));
        let known_last = newest.take(COMMITS_TRIED_MAX).take_while(|oid| Some(oid) != known.as_ref());
        let readable = |oid: &Oid| self.bring(&objects, std::slice::from_ref(oid), &[]).is_ok();
        let tip = known_last.into_iter().find(readable).or(known).or(begun);
        let tip = tip.map_or_else(|| self.main_tip(), Ok)?;
        let reference = format!("refs/heads/{}", record.branch);
        if let Some(shared) = self.users_git_dir()?
            && shared.is_empty_file(&reference)
        {
            // Git refuses to move a reference that it cannot read.
            shared.remove_file(&reference).map_err(GitError::io("removing an empty reference", &objects))?;
        }
        self.forget_own_branch(name)?;
        let tree = self.inner.places.trees.join(name);
        let doing = "making a worktree's index anew";
        let index = self.index(name);
        // Read from nothing: the one that is there may be as damaged.
        let _ = fs::remove_file(&index);
        self.land_with_tree(doing, &tree, &index).args(["read-tree", "--reset", tip.as_str()]).ok()?;
        self.settle(task, name, &tip)?;
        let kept = trashed.map(|at| format!("; the empty files are in {}", at.display())).unwrap_or_default();
        self.note(format!(
            "{task}: its git directory was damaged and was created again at its last readable commit{kept}"
        ));
        Ok(())
    }

    /// Objects that hold nothing, as a power cut leaves them.
    fn put_empty_objects_away(&self, objects: &Path, name: &str) -> Result<Option<PathBuf>, GitError> {
        let mut empty = Vec::new();
        for folder in fs::read_dir(objects).into_iter().flatten().flatten() {
            if !is_hex(&folder.file_name(), &[2]) {
                continue;
            }
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let holds_nothing = file.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
                if holds_nothing && is_hex(&file.file_name(), OBJECT_NAMES) {
                    empty.push((folder.file_name(), file.file_name()));
                }
            }
        }
        if empty.is_empty() {
            return Ok(None);
        }
        let doing = "putting damaged objects away";
        let beside = self.inner.places.trees.join(format!("{}{name}", super::tree::MAKING));
        super::remove_folder(&beside)?;
        for (folder, file) in empty {
            let (from, to) = (objects.join(&folder).join(&file), beside.join(&folder));
            fs::create_dir_all(&to).map_err(GitError::io(doing, &to))?;
            // They hold nothing: a name is all that there is to keep.
            fs::write(to.join(&file), "").map_err(GitError::io(doing, &to))?;
            fs::remove_file(&from).map_err(GitError::io(doing, &from))?;
        }
        self.to_trash(&beside, &format!("damaged-{name}.objects")).map(Some)
    }

    /// Commits in other git directories that lie about in the tree: their folders of objects, and what they name.
    pub(super) fn git_dirs_inside(&self, name: &str) -> Vec<Inside> {
        let tree = self.inner.places.trees.join(name);
        let open = |at: PathBuf| Inside::open(at.parent()?, at.file_name()?.to_str()?).ok().flatten();
        git_directories(&tree).into_iter().filter(|at| *at != tree.join(".git")).filter_map(open).collect()
    }
}
