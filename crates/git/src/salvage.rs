//! Saved work: everything in a tree as a commit, before anything is done that could remove part of it.
//!
//! The first parent of the commit is the task's tip. The others are all other commits in the agent's git directory:
//! its own branches, the stash, amended and reset commits. So one ref holds all of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use machines::names::TaskId;

use super::identity::By;
use super::names::{SALVAGE, check_part, check_user_branch, task_reference, tree_name};
use super::references::{self, Change, Expected};
use super::tree::Record;
use super::{GitError, Oid, Repository, locked, now, remove_folder};

/// How many stray commits one saved commit holds on to.
const STRAYS_MAX: usize = 50;
/// The most of a diff that is shown.
pub const DIFF_BYTES_MAX: usize = 4 << 20;

/// Work that was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// In `land.git` and in the user's repository.
    pub reference: String,
    pub commit: Oid,
    /// What could not be saved because it could not be read. It stays in the trash with its tree.
    pub left_out: Vec<String>,
}

/// One line of `adj salvage list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEntry {
    pub reference: String,
    pub task: String,
    pub effect: String,
    /// Seconds since the epoch.
    pub at: i64,
    pub commit: Oid,
    pub files: Vec<String>,
    /// Commits that it holds beside the task's tip: stashed, amended or reset away. Their ids and subjects.
    pub commits: Vec<String>,
}

/// Where saved work is given back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreTo {
    /// A new branch in the user's repository; `None` makes up `salvage/<task>-<effect>`.
    Branch(Option<String>),
    /// A folder that does not exist yet.
    Folder(PathBuf),
}

impl Repository {
    /// Everything in the task's tree that no published commit holds is in a commit now, and that is in the user's
    /// repository. `None` if there is nothing such, or no tree. Asked again with the same effect, it finds what it did.
    pub fn save(&self, task: &TaskId, tree: &str, effect: &str) -> Result<Option<Saved>, GitError> {
        let name = tree_name(tree)?;
        check_part("effect", effect)?;
        let turn = self.turn(name);
        let _turn = locked(&turn);
        self.save_and_list(task, name, effect).map(|(saved, _)| saved)
    }

    /// Saves a tree, and lists the files in it that git has now. None are listed where it was saved before: that nobody
    /// has written to them since is not known.
    pub(super) fn save_and_list(
        &self,
        task: &TaskId,
        name: &str,
        effect: &str,
    ) -> Result<(Option<Saved>, Vec<Vec<u8>>), GitError> {
        self.ensure_land()?;
        let reference = saved_reference(task, effect);
        if let Some(commit) = self.land_reference(&reference)? {
            self.copy_out(&reference, &commit)?;
            return Ok((Some(Saved { reference, commit, left_out: Vec::new() }), Vec::new()));
        }
        let Some(record) = self.open_tree(task, name)? else { return Ok((None, Vec::new())) };
        let branch = record.branch.as_str();
        let (tip, strays, mut left_out) = match self.bring_tip(task, name, branch) {
            Ok(tip) => {
                self.publish(task, branch, &tip)?;
                let strays = self.bring_strays(task, name, branch, &tip)?;
                (tip, strays, Vec::new())
            }
            // Its commits cannot be had, but its files can.
            Err(error @ GitError::Unreadable { .. }) => {
                let known = self.land_reference(&task_reference(task))?;
                let tip = known.map_or_else(|| self.main_tip(), Ok)?;
                (tip, Vec::new(), vec![error.to_string()])
            }
            Err(error) => return Err(error),
        };
        let files = self.files(name, &tip, true)?;
        let in_git = self.indexed(name, &files.left_out)?;
        left_out.extend(files.left_out);
        if files.tree == self.tree_of(&tip)? && strays.is_empty() {
            return Ok((None, in_git));
        }
        let mut parents = vec![tip];
        parents.extend(strays);
        let message = format!("Saved work of {task}\n\nEverything in its tree, by {effect}.\n");
        let commit = self.commit(&files.tree, &parents, &message, now(), By::Person)?;
        self.set_in_land(&reference, &commit)?;
        self.copy_out(&reference, &commit)?;
        Ok((Some(Saved { reference, commit, left_out }), in_git))
    }

    /// The files of a tree as they were just taken in, without those that could not be.
    fn indexed(&self, name: &str, left_out: &[String]) -> Result<Vec<Vec<u8>>, GitError> {
        let tree = self.inner.places.trees.join(name);
        let listed =
            self.land_with_tree("listing files", &tree, &self.index(name)).args(["ls-files", "-z"]).ok()?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let is_in = |path: &&[u8]| !left_out.iter().any(|left| *left == String::from_utf8_lossy(path));
        Ok(paths.filter(is_in).map(<[u8]>::to_vec).collect())
    }

    /// What a branch holds beyond main, as one saved commit: against where it left main, so that all of it is shown, and with
    /// its tip as a parent, so that all of it is kept. `None`: it holds nothing.
    pub(super) fn save_branch(
        &self,
        task: &TaskId,
        tip: &Oid,
        effect: &str,
    ) -> Result<Option<Saved>, GitError> {
        let main = self.main_tip()?;
        let base =
            self.land("looking where a branch began").args(["merge-base", tip.as_str(), main.as_str()]).ok();
        // Without a common commit all of it is new.
        let base =
            base.ok().and_then(|found| Oid::new(String::from_utf8_lossy(&found).trim())).unwrap_or(main);
        if base == *tip {
            return Ok(None);
        }
        let reference = saved_reference(task, effect);
        let message = format!("Saved work of {task}\n\nIts branch, by {effect}.\n");
        let commit = self.commit(&self.tree_of(tip)?, &[base, tip.clone()], &message, now(), By::Person)?;
        self.set_in_land(&reference, &commit)?;
        self.copy_out(&reference, &commit)?;
        Ok(Some(Saved { reference, commit, left_out: Vec::new() }))
    }

    /// The commits that the agent's git directory names and that are neither in the tip nor in main.
    fn bring_strays(&self, task: &TaskId, name: &str, branch: &str, tip: &Oid) -> Result<Vec<Oid>, GitError> {
        let objects = self.named(name, branch)?.objects;
        let main = self.main_tip()?;
        let found = match self.record(name)? {
            Some(Record { worktree: Some(_), .. }) => self.own_branches(name)?,
            _ => self.git_dir_of(name)?.everything_named(),
        };
        // Of other git directories that lie in the tree, what can be had: they go to the trash with it.
        let mut elsewhere = Vec::new();
        for other in self.git_dirs_inside(name) {
            let objects = other.path().join("objects");
            let named = self.commits_among(&objects, &other.everything_named()).unwrap_or_default();
            if self.bring(&objects, &named, &[tip.clone(), main.clone()]).is_ok() {
                elsewhere.extend(named);
            }
        }
        // What was saved before is named in the tree, and is no work of this one.
        let saved: Vec<Oid> = self.saved_of(task)?.into_iter().map(|(_, oid)| oid).collect();
        let mut commits = self.commits_among(&objects, &found)?;
        commits.extend(elsewhere);
        commits.retain(|commit| !saved.contains(commit));
        if commits.iter().all(|commit| commit == tip || *commit == main) {
            return Ok(Vec::new());
        }
        self.bring(&objects, &commits, &[tip.clone(), main.clone()])?;
        let beyond = self
            .land("looking for stray commits")
            .args(["rev-list", "--topo-order"])
            .args(commits.iter().map(Oid::as_str))
            .args([format!("^{tip}"), format!("^{main}")])
            .arg("--")
            .ok()?;
        let beyond: BTreeSet<Oid> = String::from_utf8_lossy(&beyond).lines().filter_map(Oid::new).collect();
        let strays: Vec<Oid> = commits.into_iter().filter(|commit| beyond.contains(commit)).collect();
        if strays.is_empty() {
            return Ok(strays);
        }
        // Only the ends: what they lead to comes along.
        let ends = self
            .land("looking for stray commits")
            .args(["merge-base", "--independent"])
            .args(strays.iter().map(Oid::as_str))
            .ok()?;
        let ends: Vec<Oid> = String::from_utf8_lossy(&ends).lines().filter_map(Oid::new).collect();
        for end in ends.iter().skip(STRAYS_MAX) {
            self.keep_for(task, end)?;
        }
        Ok(ends.into_iter().take(STRAYS_MAX).collect())
    }

    /// All that was saved of a task, by its names.
    pub(super) fn saved_of(&self, task: &TaskId) -> Result<Vec<(String, Oid)>, GitError> {
        let prefix = saved_reference(task, "");
        let found = references::read(self.land("looking for saved work"), &[&prefix])?;
        Ok(found.into_iter().map(|reference| (reference.name, reference.oid)).collect())
    }

    /// The user's repository has it under the same name.
    fn copy_out(&self, reference: &str, commit: &Oid) -> Result<(), GitError> {
        if self.user_reference(reference)?.is_some_and(|found| found.oid == *commit) {
            return Ok(());
        }
        let main = locked(&self.inner.main_in_land).clone();
        self.give(std::slice::from_ref(commit), main.as_slice())?;
        let change = Change { name: reference, old: Expected::Anything, new: Some(commit) };
        self.change_users("saving work", "adjutant: saved", &[change]).map(drop)
    }

    /// What was saved, the newest first.
    pub fn salvage(&self) -> Result<Vec<SavedEntry>, GitError> {
        let listed = self
            .user("listing saved work")
            .args(["for-each-ref", "--format=%(refname) %(objectname) %(creatordate:unix)", SALVAGE])
            .ok()?;
        let mut entries = Vec::new();
        for line in String::from_utf8_lossy(&listed).lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [reference, oid, at] = fields[..] else { continue };
            let path = reference.trim_start_matches(SALVAGE).split_once('/');
            let (Some((task, effect)), Some(commit)) = (path, Oid::new(oid)) else { continue };
            let changed = self
                .user("reading saved work")
                .args([
                    "diff-tree",
                    "-r",
                    "-z",
                    "--name-only",
                    "--no-renames",
                    &format!("{commit}^1"),
                    oid,
                    "--",
                ])
                .ok()?;
            let changed = String::from_utf8_lossy(&changed).into_owned();
            let strays = self.strays_of(&commit)?;
            let named = match strays.is_empty() {
                true => Vec::new(),
                false => self
                    .user("reading saved work")
                    .args(["log", "--no-walk=unsorted", "--no-decorate", "--format=%h %s"])
                    .args(strays.iter().map(Oid::as_str))
                    .arg("--")
                    .ok()?,
            };
            entries.push(SavedEntry {
                commits: String::from_utf8_lossy(&named).lines().map(str::to_owned).collect(),
                reference: reference.to_owned(),
                task: task.to_owned(),
                effect: effect.to_owned(),
                at: at.parse().unwrap_or(0),
                commit,
                files: changed.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect(),
            });
        }
        entries.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.reference.cmp(&b.reference)));
        Ok(entries)
    }

    /// What a saved commit leads to beside the task's tip.
    fn strays_of(&self, commit: &Oid) -> Result<Vec<Oid>, GitError> {
        let call = self.user("reading saved work").args(["rev-parse", &format!("{commit}^@")]);
        let parents = call.ok()?;
        Ok(String::from_utf8_lossy(&parents).lines().skip(1).filter_map(Oid::new).collect())
    }

    /// What a saved commit changed against the tip of then, as a diff; and each commit that it holds beside it.
    pub fn show_saved(&self, reference: &str) -> Result<String, GitError> {
        let commit = self.saved_commit(reference)?;
        self.ensure_land()?;
        self.bring(&self.inner.git_dir.join("objects"), std::slice::from_ref(&commit), &[])?;
        let plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"];
        let mut output = self
            .land("showing saved work")
            .arg("diff")
            .args(plain)
            .args([&format!("{commit}^1"), commit.as_str(), "--"])
            .output_max(DIFF_BYTES_MAX)
            .ok()?;
        let strays = self.strays_of(&commit)?;
        if !strays.is_empty() {
            let commits = self
                .land("showing saved work")
                .args(["log", "-p", "-m", "--first-parent", "--no-decorate", "--no-show-signature"])
                .args(plain)
                .args(strays.iter().map(Oid::as_str))
                .args(["--not", &format!("{commit}^1"), "--"])
                .output_max(DIFF_BYTES_MAX)
                .ok()?;
            output.extend_from_slice(&commits);
        }
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Gives saved work back, and says where. Nothing that is there already is touched.
    pub fn restore(&self, reference: &str, to: &RestoreTo) -> Result<String, GitError> {
        let commit = self.saved_commit(reference)?;
        match to {
            RestoreTo::Branch(name) => {
                let made_up = reference.trim_start_matches(SALVAGE).replace('/', "-");
                let name = name.clone().unwrap_or_else(|| format!("salvage/{made_up}"));
                check_user_branch(&name)?;
                let branch = format!("refs/heads/{name}");
                let change = Change { name: &branch, old: Expected::Nothing, new: Some(&commit) };
                let why = "adjutant: restored";
                if !self.change_users("restoring work", why, &[change])? {
                    return Err(GitError::Exists { what: format!("branch `{name}`") });
                }
                Ok(name)
            }
            RestoreTo::Folder(folder) => {
                self.restore_files(&commit, folder)?;
                Ok(folder.display().to_string())
            }
        }
    }

    fn restore_files(&self, commit: &Oid, folder: &Path) -> Result<(), GitError> {
        let doing = "restoring files";
        if folder.symlink_metadata().is_ok() {
            return Err(GitError::Exists { what: format!("{}", folder.display()) });
        }
        self.ensure_land()?;
        self.bring(&self.inner.git_dir.join("objects"), std::slice::from_ref(commit), &[])?;
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Err(GitError::Exists { what: format!("{}", folder.display()) });
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let parent = parent.canonicalize().map_err(GitError::io(doing, parent))?;
        let making = parent.join(format!(".{}.restoring", name.to_string_lossy()));
        remove_folder(&making)?;
        std::fs::create_dir_all(&making).map_err(GitError::io(doing, &making))?;
        let index = self.inner.places.state.join("index").join(format!(".restore-{}", std::process::id()));
        if let Some(indexes) = index.parent() {
            std::fs::create_dir_all(indexes).map_err(GitError::io(doing, indexes))?;
        }
        let _ = std::fs::remove_file(&index);
        let written =
            self.land_with_tree(doing, &making, &index).args(["read-tree", "-m", "-u", commit.as_str()]).ok();
        let _ = std::fs::remove_file(&index);
        written?;
        let target = parent.join(name);
        if target.symlink_metadata().is_ok() {
            return Err(GitError::Exists { what: format!("{}", target.display()) });
        }
        std::fs::rename(&making, &target).map_err(GitError::io(doing, &target))
    }

    fn saved_commit(&self, reference: &str) -> Result<Oid, GitError> {
        let nothing = || GitError::NothingSaved { reference: reference.chars().take(200).collect() };
        let rest = reference.strip_prefix(SALVAGE).ok_or_else(nothing)?;
        rest.split('/').try_for_each(|part| check_part("reference", part))?;
        self.user_reference(reference)?.map(|found| found.oid).ok_or_else(nothing)
    }
}

pub(super) fn saved_reference(task: &TaskId, effect: &str) -> String {
    format!("{SALVAGE}{task}/{effect}")
}
