//! History that the user removes from main, by a reset, an amended commit or a rebase. A landing does not bring it back.
//!
//! Each earlier main that is not part of the next one is kept by a ref in `land.git` and recorded beside it
//! (`mains.rs`). A branch that is based on it contains commits that are neither the agent's nor on main any more.
//! They count neither as the agent's work nor as main's, and the work lands on main's own history without them.

use std::collections::BTreeSet;

use machines::names::TaskId;

use super::identity::By;
use super::names::{BEGUN, DROPPED};
use super::references;
use super::{GitError, Oid, Repository};

/// How many commits of a branch are compared with what was taken off main.
const COMMITS_MAX: u32 = 20_000;

/// What a branch carries that was taken off main.
pub(super) struct Carried {
    /// Where the agent's own work begins.
    pub base: Oid,
    /// The commits, newest first, each with its first line.
    pub commits: Vec<(Oid, String)>,
}

impl Carried {
    /// The commits for people: `1a2b3c4d5e6f "Its first line"`.
    pub fn named(&self) -> Vec<String> {
        self.commits.iter().map(|(oid, subject)| format!("{} {subject:?}", oid.short())).collect()
    }
}

impl Repository {
    /// Main was there and is here now: whether it has lost anything on the way.
    pub(super) fn is_dropped(&self, before: &Oid, now: &Oid) -> Result<bool, GitError> {
        Ok(self.missing_in_land(std::slice::from_ref(before))?.is_empty()
            && !self.is_ancestor(before, now)?)
    }

    /// What main had and has no more.
    pub(super) fn remember_dropped(&self, main: &Oid) -> Result<(), GitError> {
        self.write_dropped_down(main)?;
        self.set_in_land(&dropped_reference(main), main)
    }

    /// The task's tree was made on this commit.
    pub(super) fn begun_on(&self, task: &TaskId, tip: &Oid) -> Result<(), GitError> {
        self.set_in_land(&begun_reference(task), tip)
    }

    /// The commit that the task's tree was made on, which `land.git` knows, or the tree's record.
    pub(super) fn begun(&self, task: &TaskId, name: &str) -> Result<Option<Oid>, GitError> {
        if let Some(begun) = self.land_reference(&begun_reference(task))? {
            return Ok(Some(begun));
        }
        let recorded = self.record(name)?.and_then(|record| record.begun).and_then(|oid| Oid::new(&oid));
        Ok(match recorded {
            Some(begun) if self.missing_in_land(std::slice::from_ref(&begun))?.is_empty() => Some(begun),
            _ => None,
        })
    }

    /// What the branch carries of a history that main no longer has; mostly nothing.
    pub(super) fn carried(&self, tip: &Oid, main: &Oid) -> Result<Option<Carried>, GitError> {
        self.carried_beside(tip, main, None)
    }

    /// The same of a branch that has landed: what its own landing brought to main was not taken off it before.
    pub(super) fn carried_beside(
        &self,
        tip: &Oid,
        main: &Oid,
        landed: Option<&Oid>,
    ) -> Result<Option<Carried>, GitError> {
        let heads: Vec<Oid> = references::read(self.land("looking for what was taken off main"), &[DROPPED])?
            .into_iter()
            .map(|reference| reference.oid)
            .collect();
        if heads.is_empty() {
            return Ok(None);
        }
        let of_branch = self.beyond(std::slice::from_ref(tip), &[main])?;
        let there: Vec<&Oid> = [main].into_iter().chain(landed).collect();
        let taken_off: BTreeSet<Oid> = self.beyond(&heads, &there)?.into_iter().collect();
        let carried: Vec<Oid> = of_branch.into_iter().filter(|oid| taken_off.contains(oid)).collect();
        let Some(newest) = carried.first() else { return Ok(None) };
        let ends = self
            .land("looking for what was taken off main")
            .args(["merge-base", "--independent"])
            .args(carried.iter().take(100).map(Oid::as_str))
            .ok()?;
        let ends: Vec<Oid> = String::from_utf8_lossy(&ends).lines().filter_map(Oid::new).collect();
        let mut base = ends.first().unwrap_or(newest).clone();
        // The branch may have been merged with other mains since, and begins behind all of them.
        let left = self.plain_merge_base(tip, main)?;
        for other in ends.into_iter().skip(1).chain([left]) {
            base = self.behind_both(&base, &other)?;
        }
        let named = self
            .land("reading what was taken off main")
            .args(["log", "--no-walk=unsorted", "--no-show-signature", "--no-decorate", "--format=%H%x00%s"])
            .args(carried.iter().take(100).map(Oid::as_str))
            .arg("--")
            .ok()?;
        let text = String::from_utf8_lossy(&named).into_owned();
        let line = |line: &str| {
            line.split_once('\0').and_then(|(oid, subject)| Some((Oid::new(oid)?, subject.to_owned())))
        };
        Ok(Some(Carried { base, commits: text.lines().filter_map(line).collect() }))
    }

    /// The agent's own work as one commit on main, with these files: nothing of what was taken off main is behind it. The
    /// branch itself stays as the agent made it.
    pub(super) fn onto_main(
        &self,
        carried: &Carried,
        tree: &Oid,
        main: &Oid,
        tip: &Oid,
        at: i64,
    ) -> Result<Oid, GitError> {
        let own = self.commits_of(tip, &carried.base)?;
        let mut message = format!("{}\n", own.last().map_or("Work of an agent", |(_, subject)| subject));
        message
            .push_str("\nPut onto main, which no longer has what the branch was made on. Its commits:\n\n");
        message.extend(own.iter().map(|(oid, subject)| format!("{} {subject}\n", oid.short())));
        self.note(format!(
            "main no longer has {}, on which {} is based: the work lands without it",
            carried.named().join(", "),
            tip.short()
        ));
        self.commit(tree, std::slice::from_ref(main), &message, at, By::Person)
    }

    /// A commit that has both: one of them, or a merge of them that nobody sees.
    fn behind_both(&self, one: &Oid, other: &Oid) -> Result<Oid, GitError> {
        if self.is_ancestor(other, one)? {
            return Ok(one.clone());
        }
        if self.is_ancestor(one, other)? {
            return Ok(other.clone());
        }
        let merged = self
            .land("merging mains")
            .args(["merge-tree", "--write-tree", "--no-messages", one.as_str(), other.as_str()])
            .run()?;
        let printed = String::from_utf8_lossy(&merged.stdout).into_owned();
        // In conflict it has markers in its files; what differs from them is the agent's, who has resolved it.
        match printed.lines().next().and_then(Oid::new) {
            Some(tree) => {
                let parents = [one.clone(), other.clone()];
                self.commit(&tree, &parents, "Two mains\n", 0, By::Person)
            }
            None => Err(merged.failed("merging mains", self.land_dir())),
        }
    }

    pub(super) fn beyond(&self, tips: &[Oid], there: &[&Oid]) -> Result<Vec<Oid>, GitError> {
        let listed = self
            .land("listing commits")
            .args(["rev-list", "--topo-order", &format!("--max-count={COMMITS_MAX}")])
            .args(tips.iter().map(Oid::as_str))
            .args(there.iter().map(|oid| format!("^{oid}")))
            .arg("--")
            .ok()?;
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(Oid::new).collect())
    }
}

pub(super) fn dropped_reference(main: &Oid) -> String {
    format!("{DROPPED}{main}")
}

fn begun_reference(task: &TaskId) -> String {
    format!("{BEGUN}{task}")
}
