//! The branch of a task's worktree, as its agent sees it.
//!
//! Worktrees share the folder of branches, and git changes a branch by creating a file in that folder: a program that can
//! change one branch can change all. So if programs have their own view of the file system, the agent gets its own folder there, with
//! only its branch. We copy the branch into the user's repository, by compare-and-swap.
//!
//! Invariants:
//! - of everything that an agent puts into its folder, we read only one commit: the one its own branch names;
//! - if the user has moved the branch meanwhile, it stays there, and the agent's commit is kept beside it.

use std::fs;
use std::path::{Path, PathBuf};

use super::inside::{Head, Inside};
use super::names::FOUND;
use super::references::{Change, Expected};
use super::tree::Record;
use super::{GitError, Oid, Repository, lock, read_or_empty, remove_folder, write_whole};

/// The most that is read of a branch.
const BRANCH_BYTES_MAX: usize = 4096;
const DOING: &str = "showing a worktree its branch";

/// What the git that runs in a task's worktree has to write to in the user's git directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorktreePlaces {
    pub writable: Vec<PathBuf>,
    /// A folder of ours, and the one in whose place it is to stand.
    pub instead: Vec<(PathBuf, PathBuf)>,
}

impl Repository {
    /// Objects, what belongs to this worktree, and its branch with its history; with `own_view` in a folder of its own, else
    /// in the one that all tasks' branches are in. Nothing where the folder is no worktree.
    pub fn worktree_places(&self, folder: &Path, own_view: bool) -> Result<WorktreePlaces, GitError> {
        let name = folder.strip_prefix(&self.inner.places.trees).ok().and_then(|name| name.to_str());
        let record = name.map(|name| self.record(name)).transpose()?.flatten();
        let (Some(name), Some(record)) = (name, record) else { return Ok(WorktreePlaces::default()) };
        let Some(id) = &record.worktree else { return Ok(WorktreePlaces::default()) };
        let git_dir = &self.inner.git_dir;
        let mut writable = vec![git_dir.join("objects"), git_dir.join("worktrees").join(id)];
        let (branches, _) = parts(&record.branch);
        let shared = [git_dir.join(&branches), git_dir.join("logs").join(&branches)];
        // Git removes a folder of references with the last one in it.
        for folder in &shared {
            fs::create_dir_all(folder).map_err(GitError::io("making a folder", folder))?;
        }
        if !own_view {
            writable.extend(shared);
            return Ok(WorktreePlaces { writable, instead: Vec::new() });
        }
        self.give_branch(name, &record)?;
        let own = self.own_branch(name);
        let [references, logs] = shared;
        let instead = vec![(own.join("refs"), references), (own.join("logs"), logs)];
        Ok(WorktreePlaces { writable, instead })
    }

    /// The agent's folder has its branch as the user's repository has it. Those of others are not there, but for the
    /// user's own where all are in one folder: the agent may want to merge with main.
    fn give_branch(&self, name: &str, record: &Record) -> Result<(), GitError> {
        self.take_branch_back(name, record)?;
        let own = self.own_branch(name);
        for folder in ["refs", "logs"].map(|folder| own.join(folder)) {
            fs::create_dir_all(&folder).map_err(GitError::io(DOING, &folder))?;
        }
        let reference = format!("refs/heads/{}", record.branch);
        let (branches, leaf) = parts(&record.branch);
        let Some(inside) = Inside::open(&own, "refs").map_err(GitError::io(DOING, &own))? else {
            return Ok(());
        };
        let failed = |source| GitError::Io { doing: DOING, at: own.clone(), source };
        lock::clear(&inside, &self.inner.places.trees.join(name), &[&format!("{leaf}.lock")])?;
        if branches == Path::new("refs/heads") {
            for found in self.user_references(DOING, &["refs/heads/"])? {
                let beside = found.name.trim_start_matches("refs/heads/");
                if beside != leaf {
                    inside.replace(beside, format!("{}\n", found.oid).as_bytes()).map_err(failed)?;
                }
            }
        }
        let Some(now) = self.user_reference(&reference)? else { return Ok(()) };
        if branch_in(&inside, &leaf).as_ref() != Some(&now.oid) {
            inside.replace(&leaf, format!("{}\n", now.oid).as_bytes()).map_err(failed)?;
        }
        write_whole(&own.join("given"), now.oid.as_str().as_bytes())
    }

    /// What the agent has made of its branch is in the user's repository.
    pub(super) fn take_branch_back(&self, name: &str, record: &Record) -> Result<(), GitError> {
        let own = self.own_branch(name);
        let Some(given) = Oid::new(read_or_empty(&own.join("given"))?.trim()) else { return Ok(()) };
        let Ok(Some(inside)) = Inside::open(&own, "refs") else { return Ok(()) };
        let (_, leaf) = parts(&record.branch);
        // One that it has deleted or overwritten is where it was.
        let Some(made) = branch_in(&inside, &leaf).filter(|made| *made != given) else { return Ok(()) };
        let is_commit = self.user(DOING).args(["cat-file", "-e", &format!("{made}^{{commit}}")]).yes();
        if !is_commit.unwrap_or(false) {
            let why = format!("its branch names {made}, which cannot be read");
            return Err(GitError::Unreadable { tree: self.inner.places.trees.join(name), why });
        }
        let reference = format!("refs/heads/{}", record.branch);
        let now = self.user_reference(&reference)?.map(|found| found.oid);
        if now.as_ref().is_some_and(|now| *now != given && *now != made) {
            let kept = format!("{FOUND}{}/{made}", record.task);
            let change = Change { name: &kept, old: Expected::Anything, new: Some(&made) };
            self.change_users(DOING, "adjutant: kept", &[change])?;
            self.note(format!(
                "{}: you moved {} while its agent was working; the agent's commits are kept as {kept}",
                record.task, record.branch
            ));
        } else if now.as_ref() != Some(&made) {
            let old = now.as_ref().map_or(Expected::Nothing, Expected::This);
            let change = Change { name: &reference, old, new: Some(&made) };
            if !self.change_users(DOING, "adjutant: the agent's commits", &[change])? {
                return Err(GitError::Contended { reference });
            }
        }
        write_whole(&own.join("given"), made.as_str().as_bytes())
    }

    /// Where an agent stands that went to another branch of its own folder.
    pub(super) fn own_head(&self, name: &str, record: &Record, git_dir: &Inside) -> Option<Oid> {
        let Ok(Some(Head::On(on, _))) = git_dir.head() else { return None };
        let (branches, _) = parts(&record.branch);
        let leaf = Path::new(&on).strip_prefix(branches).ok()?.to_str()?.to_owned();
        branch_in(&Inside::open(&self.own_branch(name), "refs").ok()??, &leaf)
    }

    /// The commits that branches in an agent's own folder name, and none of the user's does.
    pub(super) fn own_branches(&self, name: &str) -> Result<Vec<Oid>, GitError> {
        let own = self.own_branch(name);
        let Some(parent) = own.parent() else {
            return Ok(Vec::new());
        };
        let Ok(Some(inside)) = Inside::open(parent, name) else { return Ok(Vec::new()) };
        let users = self.user_references("looking for branches", &["refs/heads/"])?;
        let is_users = |oid: &Oid| users.iter().any(|found| found.oid == *oid);
        Ok(inside.everything_named().into_iter().filter(|oid| !is_users(oid)).collect())
    }

    pub(super) fn forget_own_branch(&self, name: &str) -> Result<(), GitError> {
        remove_folder(&self.own_branch(name))
    }

    fn own_branch(&self, name: &str) -> PathBuf {
        self.inner.places.state.join("branches").join(name)
    }
}

/// The folder of a branch, in a git directory, and its name there.
fn parts(branch: &str) -> (PathBuf, String) {
    let (folder, leaf) = branch.rsplit_once('/').unwrap_or(("", branch));
    (Path::new("refs/heads").join(folder).components().collect(), leaf.to_owned())
}

fn branch_in(inside: &Inside, leaf: &str) -> Option<Oid> {
    let content = inside.read(leaf, BRANCH_BYTES_MAX).ok().flatten()?;
    Oid::new(std::str::from_utf8(&content).ok()?.trim_end())
}
