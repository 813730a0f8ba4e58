//! The refs by which a task's work is visible in the user's repository.
//!
//! `refs/adjutant/tasks/<task>` always exists, and the branch of the task's name if that name is free. Both move only from
//! the commit that we set last, which is recorded in `land.git`. A branch that the user moved, deleted or has
//! checked out belongs to the user and is left unchanged.

use machines::names::TaskId;

use super::names::{FOUND, PUBLISHED, TASKS, check_branch, task_reference};
use super::references::{self, Change, Expected, Reference};
use super::{GitError, Isolation, Oid, Repository, locked};

/// How often a tip is published again when someone else moves the same references meanwhile.
const RACES_MAX: usize = 5;

/// How many branches of the user's a worktree's branch goes past before it is given up.
const BRANCH_NAMES_MAX: usize = 9;

/// A tip that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub tip: Oid,
    pub branch: Published,
}

/// What became of the task's branch in the user's repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It stands at the tip, under this name. Another name than the task's own means that a branch of the user's is in
    /// the way: git cannot hold `agent` and `agent/x`.
    As(String),
    /// It is checked out there, so it was not moved.
    CheckedOut { name: String, at: std::path::PathBuf },
    /// The user moved it, and it is theirs.
    MovedByUser { name: String, now: Oid },
    /// The user deleted it, and it is not made again.
    DeletedByUser { name: String },
}

/// What became of a branch that is no longer needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchDeleted {
    Deleted,
    WasGone,
    /// It is checked out there: kept.
    CheckedOut {
        at: std::path::PathBuf,
    },
    /// It is not where we left it: kept.
    MovedByUser {
        now: Oid,
    },
}

impl Repository {
    /// Writes the tip down in `land.git` and shows it in the user's repository.
    pub(super) fn publish(&self, task: &TaskId, branch: &str, tip: &Oid) -> Result<Taken, GitError> {
        let ours = task_reference(task);
        let record = published_reference(task);
        let (before, mut last) = (self.land_reference(&ours)?, self.land_reference(&record)?);
        if before.as_ref() != Some(tip) {
            // A crash may have come between showing the one before and writing down that it was shown.
            if let Some(shown) = &before
                && before != last
                && let Published::As(_) = self.show(task, branch, shown, last.as_ref(), before.as_ref())?
            {
                last = before.clone();
            }
            self.set_in_land(&ours, tip)?;
        }
        let branch = self.show(task, branch, tip, last.as_ref(), before.as_ref())?;
        Ok(Taken { tip: tip.clone(), branch })
    }

    /// `last` is what the branch was last set to by us, `before` what the task's tip was.
    fn show(
        &self,
        task: &TaskId,
        branch: &str,
        tip: &Oid,
        last: Option<&Oid>,
        before: Option<&Oid>,
    ) -> Result<Published, GitError> {
        for _ in 0..RACES_MAX {
            if let Some(outcome) = self.try_to_show(task, branch, tip, last, before)? {
                return Ok(outcome);
            }
        }
        Err(GitError::Contended { reference: branch.to_owned() })
    }

    /// `None` if someone was faster: what is there then decides.
    fn try_to_show(
        &self,
        task: &TaskId,
        branch: &str,
        tip: &Oid,
        last: Option<&Oid>,
        before: Option<&Oid>,
    ) -> Result<Option<Published>, GitError> {
        let ours = task_reference(task);
        let mut name = branch.to_owned();
        let mut reference = format!("refs/heads/{name}");
        let read = |reference: &str| self.user_references("reading what is published", &[&ours, reference]);
        let mut found = read(&reference)?;
        // Where it is there, nothing can be in its way.
        if !found.iter().any(|found| found.name == reference) {
            name = self.published_name(branch)?;
            if name != branch {
                reference = format!("refs/heads/{name}");
                found = read(&reference)?;
            }
        }
        let find = |name: &str| found.iter().find(|found| found.name == name);
        let (shown, branch_now) = (find(&ours), find(&reference));
        let is_ours = |oid: &Oid| [Some(tip), last, before].contains(&Some(oid));
        let outcome = match (self.inner.places.isolation, branch_now) {
            // The worktree's branch is the published one already.
            (Isolation::Worktree, _) => Published::As(name),
            (_, Some(found)) if found.oid == *tip => Published::As(name),
            (_, Some(Reference { checked_out: Some(at), .. })) => {
                Published::CheckedOut { name, at: at.clone() }
            }
            (_, Some(found)) if !is_ours(&found.oid) => {
                Published::MovedByUser { name, now: found.oid.clone() }
            }
            (_, None) if last.is_some() => Published::DeletedByUser { name },
            _ => Published::As(name),
        };
        let moves_branch = self.inner.places.isolation == Isolation::Clone
            && matches!(outcome, Published::As(_))
            && branch_now.map(|found| &found.oid) != Some(tip);
        let moves_task = shown.map(|found| &found.oid) != Some(tip);
        if moves_branch || moves_task {
            let main = locked(&self.inner.main_in_land).clone();
            let haves: Vec<Oid> = shown.map(|found| found.oid.clone()).into_iter().chain(main).collect();
            self.give(std::slice::from_ref(tip), &self.known_in_land(haves)?)?;
            if let Some(foreign) = shown.filter(|found| moves_task && !is_ours(&found.oid)) {
                // Someone moved our own reference. It is put right, and what they put there is not lost.
                let kept = format!("{FOUND}{task}/{}", foreign.oid);
                let keep = Change { name: &kept, old: Expected::Anything, new: Some(&foreign.oid) };
                self.change_users("keeping a reference", "adjutant", &[keep])?;
            }
            let mut changes = Vec::new();
            if moves_task {
                changes.push(Change { name: &ours, old: expected(shown), new: Some(tip) });
            }
            if moves_branch {
                changes.push(Change { name: &reference, old: expected(branch_now), new: Some(tip) });
            }
            if !self.change_users("publishing a tip", "adjutant: published", &changes)? {
                return Ok(None);
            }
        }
        if matches!(outcome, Published::As(_)) && last != Some(tip) {
            self.set_in_land(&published_reference(task), tip)?;
        }
        Ok(Some(outcome))
    }

    /// The task's branch goes from the user's repository, if it is where we left it and nobody has it checked out.
    pub fn delete_branch(&self, task: &TaskId, branch: &str) -> Result<BranchDeleted, GitError> {
        check_branch(branch)?;
        let known = self.known_tips(task)?;
        let mut kept = BranchDeleted::WasGone;
        for (reference, found) in self.branches_named(branch)? {
            let Some(found) = found else { continue };
            if !known.contains(&found.oid) {
                kept = BranchDeleted::MovedByUser { now: found.oid };
                continue;
            }
            if let Some(at) = found.checked_out {
                return Ok(BranchDeleted::CheckedOut { at });
            }
            let change = Change { name: &reference, old: Expected::This(&found.oid), new: None };
            let gone = self.change_users("deleting a branch", "adjutant", &[change])?;
            return if gone { Ok(BranchDeleted::Deleted) } else { Err(GitError::Contended { reference }) };
        }
        Ok(kept)
    }

    /// The task's branch in the user's repository where somebody else has moved it: its name, where it is now, and how many
    /// commits are there that the tip has not. Nothing where the branch is the agent's own.
    pub fn moved_by_user(
        &self,
        task: &TaskId,
        branch: &str,
        tip: &Oid,
    ) -> Result<Option<(String, Oid, usize)>, GitError> {
        check_branch(branch)?;
        if self.inner.places.isolation == Isolation::Worktree {
            return Ok(None);
        }
        let known = self.known_tips(task)?;
        let Some(found) = self.user_reference(&format!("refs/heads/{branch}"))? else { return Ok(None) };
        if found.oid == *tip || known.contains(&found.oid) {
            return Ok(None);
        }
        let range = [found.oid.as_str().to_owned(), format!("^{tip}")];
        let counted =
            self.user("counting commits").args(["rev-list", "--count"]).args(range).arg("--").line();
        // Where the tip itself is not there any more, all that is known is that they differ.
        let commits: usize = counted.ok().and_then(|count| count.parse().ok()).unwrap_or(1);
        Ok((commits > 0).then(|| (branch.to_owned(), found.oid, commits)))
    }

    /// The tasks whose tip the user's repository names, and when that commit was made, in seconds since the epoch.
    pub fn shown_tasks(&self) -> Result<Vec<(TaskId, i64)>, GitError> {
        let format = "--format=%(refname) %(committerdate:unix)";
        let listed = self.user("listing tasks").args(["for-each-ref", format, TASKS]).ok()?;
        let task = |line: &str| {
            let (name, at) = line.split_once(' ')?;
            Some((TaskId::new(name.strip_prefix(TASKS)?).ok()?, at.parse().ok()?))
        };
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(task).collect())
    }

    /// What the user's repository names of a task that is over goes: its tip, and its branch if it is where we left it.
    /// `land.git` keeps both. False: somebody moved the tip, and it stays.
    pub fn pack_away(&self, task: &TaskId, branch: Option<&str>) -> Result<bool, GitError> {
        let reference = task_reference(task);
        let Some(shown) = self.user_reference(&reference)? else { return Ok(true) };
        if self.land_reference(&reference)?.as_ref() != Some(&shown.oid) {
            return Ok(false);
        }
        if let Some(branch) = branch {
            self.delete_branch(task, branch)?;
        }
        let change = Change { name: &reference, old: Expected::This(&shown.oid), new: None };
        self.change_users("packing a task away", "adjutant", &[change])
    }

    /// The task has no tip any more: the next tree is made on main. What the tip held was saved before.
    pub(super) fn forget_tip(&self, task: &TaskId) -> Result<(), GitError> {
        let ours = task_reference(task);
        if self.user_reference(&ours)?.is_some() {
            let gone = Change { name: &ours, old: Expected::Anything, new: None };
            self.change_users("forgetting a tip", "adjutant", &[gone])?;
        }
        // The task's own last: as long as it is there, whoever was cut off begins again.
        for name in [published_reference(task), ours] {
            if self.land_reference(&name)?.is_some() {
                let gone = Change { name: &name, old: Expected::Anything, new: None };
                self.change_land("forgetting a tip", "adjutant", &[gone])?;
            }
        }
        Ok(())
    }

    /// Every name that a task's branch may have in the user's repository, the best first, and what is there.
    pub(super) fn branches_named(&self, branch: &str) -> Result<Vec<(String, Option<Reference>)>, GitError> {
        let numbered = (2..=BRANCH_NAMES_MAX).map(|number| format!("{branch}-{number}"));
        let names = [branch.to_owned(), other_name(branch)].into_iter().chain(numbered);
        let names: Vec<String> = names.map(|name| format!("refs/heads/{name}")).collect();
        let patterns: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = self.user_references("looking for a task's branch", &patterns)?;
        let there = |name: &String| found.iter().find(|found| found.name == *name).cloned();
        Ok(names.iter().map(|name| (name.clone(), there(name))).collect())
    }

    /// Where we last put what the user sees of a task: its tip, and its branch.
    pub(super) fn known_tips(&self, task: &TaskId) -> Result<Vec<Oid>, GitError> {
        let references = [task_reference(task), published_reference(task)];
        let found = references::read(
            self.land("reading what was published"),
            &references.each_ref().map(String::as_str),
        )?;
        Ok(found.into_iter().map(|reference| reference.oid).collect())
    }

    /// The name that the branch can have in the user's repository: its own, or one without the slash where a branch
    /// of the user's stands in the way.
    pub(super) fn published_name(&self, branch: &str) -> Result<String, GitError> {
        let Some((folder, _)) = branch.split_once('/') else { return Ok(branch.to_owned()) };
        let in_the_way = self.user_reference(&format!("refs/heads/{folder}"))?.is_some();
        Ok(if in_the_way { other_name(branch) } else { branch.to_owned() })
    }

    fn known_in_land(&self, oids: Vec<Oid>) -> Result<Vec<Oid>, GitError> {
        let missing = self.missing_in_land(&oids)?;
        Ok(oids.into_iter().filter(|oid| !missing.contains(oid)).collect())
    }
}

fn expected(found: Option<&Reference>) -> Expected<'_> {
    found.map_or(Expected::Nothing, |found| Expected::This(&found.oid))
}

fn published_reference(task: &TaskId) -> String {
    format!("{PUBLISHED}{task}")
}

fn other_name(branch: &str) -> String {
    branch.replace('/', "-")
}
