//! Clones at main for agents that work outside of tasks: in channels and as architect.
//!
//! Nothing that is written there is kept. Before each reply the clone gets main's files and a new git directory; only
//! ignored files stay.

use std::fs;
use std::path::PathBuf;

use super::names::SEATS;
use super::names::{check_branch, check_part};
use super::{GitError, Oid, Repository, locked};

/// The branch that is talked about.
#[derive(Clone, Debug)]
pub struct UnderReview {
    pub branch: String,
    pub tip: Oid,
}

impl Repository {
    /// The clone of the seat stands at main, with no branch checked out. `name` is the name of its folder. A branch under
    /// review has its name in it.
    pub fn seat_tree(&self, name: &str, review: Option<&UnderReview>) -> Result<PathBuf, GitError> {
        name.split('+').try_for_each(|part| check_part("seat", part))?;
        review.map_or(Ok(()), |review| check_branch(&review.branch))?;
        let label = format!(".seat-{name}");
        let turn = self.turn(&label);
        let _turn = locked(&turn);
        self.ensure_land()?;
        let main = self.main_tip()?;
        self.shown(&main)?;
        let folder = self.inner.places.trees.join(SEATS).join(name);
        self.settle_files(&main, &folder, &label)?;
        let git_dir = folder.join(".git");
        let mut heads = vec![(self.inner.places.main.as_str(), &main)];
        // Git cannot hold `agent` and `agent/x`, should main be called so.
        let fits = |branch: &str| !format!("{branch}/").starts_with(&format!("{}/", self.inner.places.main));
        heads.extend(
            review.filter(|review| fits(&review.branch)).map(|review| (review.branch.as_str(), &review.tip)),
        );
        self.make_git_dir(&git_dir, &git_dir, main.as_str(), &heads, Some(&main))?;
        let index = self.index(&label);
        fs::copy(&index, git_dir.join("index")).map_err(GitError::io("making a seat's clone", &index))?;
        Ok(folder)
    }
}
