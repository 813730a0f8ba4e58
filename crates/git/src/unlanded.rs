//! Finds commits of agents on main that no landing brought there: somebody moved main past tests and review.
//!
//! The sandbox prevents this. Without it an agent can do it, and we may not move main back, so it is reported, once.
//! Commits of a tree are known by the tree's own history, which an agent can remove.

use std::collections::BTreeSet;

use super::names::MERGES;
use super::tree::Record;
use super::{GitError, Oid, Repository, locked};

/// What git calls a commit that it makes, in the history of `HEAD`.
const MAKES: &[&str] = &["commit", "cherry-pick", "revert", "rebase", "am", "merge", "pull"];
/// What it says where it only goes to one that was there.
const GOES: &[&str] = &["ast-forward", "(start)", "(finish)", "(abort)"];

impl Repository {
    /// Looks at what came onto main since the last time, other than by a landing, and notes whose work it is. What cannot be
    /// looked at now is looked at the next time: nobody's work waits for it.
    pub(super) fn look_at_main(&self) {
        let _ = self.watch_main();
    }

    fn watch_main(&self) -> Result<(), GitError> {
        let turn = self.turn(".main");
        let _turn = locked(&turn);
        let main = self.main_tip()?;
        match self.main_watched() {
            Some(before) if before == main => return Ok(()),
            Some(before) => self.tell_of_unlanded(&before, &main)?,
            // Nobody was at work yet.
            None => {}
        }
        self.write_watched_down(&main)
    }

    /// We have moved main ourselves.
    pub(super) fn watched(&self, merge: &Oid) -> Result<(), GitError> {
        let turn = self.turn(".main");
        let _turn = locked(&turn);
        self.write_watched_down(merge)
    }

    fn tell_of_unlanded(&self, before: &Oid, main: &Oid) -> Result<(), GitError> {
        if !self.missing_in_land(std::slice::from_ref(before))?.is_empty() {
            return Ok(());
        }
        // A crash may have come between a landing and writing down that it was ours.
        let merges = self.land("looking for landings").args(["for-each-ref", "--format=%(objectname)"]);
        let merges = merges.args([&format!("--merged={main}"), MERGES]).ok()?;
        let merges: Vec<Oid> = String::from_utf8_lossy(&merges).lines().filter_map(Oid::new).collect();
        let there: Vec<&Oid> = merges.iter().chain([before]).collect();
        let new: BTreeSet<Oid> = self.beyond(std::slice::from_ref(main), &there)?.into_iter().collect();
        if new.is_empty() {
            return Ok(());
        }
        let branch = &self.inner.places.main;
        for (name, record) in self.records() {
            let made = self.made_in(&name, &record);
            let on_main: Vec<&str> = made.iter().filter(|oid| new.contains(oid)).map(Oid::short).collect();
            if !on_main.is_empty() {
                self.note(format!(
                    "{}: its commits are on {branch} without a landing, past tests and review ({}); `git reflog {branch}` \
                     says how they came there",
                    record.task,
                    on_main.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// The commits that were made in a tree, by the history of its `HEAD`.
    fn made_in(&self, name: &str, record: &Record) -> BTreeSet<Oid> {
        let git_dir = match &record.worktree {
            None => self.git_dir_of(name),
            Some(id) => self.worktree_dir(name, id),
        };
        let Ok(git_dir) = git_dir else { return BTreeSet::new() };
        let was_made = |why: &str| {
            MAKES.iter().any(|makes| why.starts_with(makes)) && !GOES.iter().any(|goes| why.contains(goes))
        };
        let history = git_dir.history_with_reasons("logs/HEAD").into_iter();
        history.filter(|(_, why)| was_made(why)).map(|(oid, _)| oid).collect()
    }
}
