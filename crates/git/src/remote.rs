//! The remote's main and the branches for pull requests, if main is moved by somebody else.
//!
//! Nothing here connects to a remote; the caller stores fetched commits under `refs/remotes/`.

use machines::names::TaskId;

use super::identity::By;
use super::names::MERGES;
use super::tree::commit_tree;
use super::{Edit, GitError, Oid, Repository};

/// How many commits of the remote's main are looked at for the one that brought a change.
const COMMITS_MAX: usize = 500;

/// How main stands to the remote's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It has all that the remote's has.
    Ahead,
    /// The remote's has more, and all that it has.
    Behind,
    /// Each has what the other has not.
    Apart,
}

/// What of a task was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// It was about to be.
    Begun,
    Done,
}

impl Push {
    fn name(self, task: &TaskId) -> String {
        match self {
            Push::Begun => format!("pushing-{task}"),
            Push::Done => format!("pushed-{task}"),
        }
    }
}

impl Repository {
    /// A reference of the remote's, as it was fetched last; its objects are in `land.git` too.
    pub fn fetched(&self, remote: &str, branch: &str) -> Result<Option<Oid>, GitError> {
        let main = self.main_tip()?;
        let Some(found) = self.user_reference(&format!("refs/remotes/{remote}/{branch}"))? else {
            return Ok(None);
        };
        let objects = self.inner.git_dir.join("objects");
        self.with_sound_land(|| {
            self.bring(&objects, std::slice::from_ref(&found.oid), std::slice::from_ref(&main))
        })?;
        Ok(Some(found.oid))
    }

    pub fn compared(&self, main: &Oid, remote: &Oid) -> Result<Stands, GitError> {
        Ok(if self.is_ancestor(remote, main)? {
            Stands::Ahead
        } else if self.is_ancestor(main, remote)? {
            Stands::Behind
        } else {
            Stands::Apart
        })
    }

    /// Whether one commit in `land.git` has another in its history.
    pub fn has(&self, commit: &Oid, other: &Oid) -> Result<bool, GitError> {
        self.is_ancestor(other, commit)
    }

    /// The tip with the edits on top, as it is offered. Made twice it is the same commit.
    pub fn with_edits(&self, tip: &Oid, message: &str, edits: &[Edit], at: i64) -> Result<Oid, GitError> {
        let before = self.tree_of(tip)?;
        let tree = self.edited(&before, edits)?;
        if tree == before {
            return Ok(tip.clone());
        }
        let parents = [tip.clone()];
        let unsigned = self.commit(&tree, &parents, message, at, By::Person)?;
        self.signed(unsigned, |call| commit_tree(call, &tree, &parents, message, at))
    }

    /// The commit that brought a change to main, and the one before it: the first that has it in its history, or whose files
    /// would not change if it were merged, as after a squash or a rebase.
    pub fn brought_by(&self, change: &Oid, main: &Oid) -> Result<Option<(Oid, Oid)>, GitError> {
        let listed = self
            .land("looking for a change in main")
            .args(["rev-list", "--first-parent", "--reverse", "--parents"])
            .args([main.as_str(), &format!("^{change}"), "--"])
            .ok()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let oids = |line: &str| {
            let mut oids = line.split(' ').filter_map(Oid::new);
            Some((oids.next()?, oids.next()?))
        };
        let commits: Vec<(Oid, Oid)> = listed.lines().filter_map(oids).collect();
        let newest = commits.len().saturating_sub(COMMITS_MAX);
        for (commit, before) in commits.into_iter().skip(newest) {
            if self.is_ancestor(change, &commit)?
                || self.merged_tree(&commit, None, change)? == Ok(self.tree_of(&commit)?)
            {
                return Ok(Some((commit, before)));
            }
        }
        Ok(None)
    }

    /// Copies a commit into the user's repository, from where it can be pushed.
    pub fn hand_out(&self, commit: &Oid) -> Result<(), GitError> {
        let main = self.main_tip()?;
        self.with_sound_land(|| self.give(std::slice::from_ref(commit), std::slice::from_ref(&main)))
    }

    /// What was pushed of a task, or was about to be.
    pub fn pushed(&self, task: &TaskId, push: Push) -> Result<Option<Oid>, GitError> {
        self.land_reference(&format!("{MERGES}{}", push.name(task)))
    }

    pub fn write_pushed(&self, task: &TaskId, push: Push, commit: &Oid) -> Result<(), GitError> {
        self.keep(&push.name(task), commit)
    }
}
