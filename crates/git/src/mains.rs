//! Records which commits main has pointed to, and which of them the user has removed, in a file beside `land.git`.
//!
//! `land.git` is a copy that anybody may remove and that a power cut may damage. It can be copied again from the
//! user's repository, but that no longer contains the earlier positions of main.

use serde::{Deserialize, Serialize};

use super::{GitError, Oid, Repository, write_whole};

/// How many mains that are no more are written down; the oldest are forgotten first.
const DROPPED_MAX: usize = 1000;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Mains {
    /// The branch that main is. What was seen of another one says nothing about it.
    branch: String,
    /// The newest one that an agent was shown.
    main: Option<String>,
    /// Those that were main and are in it no more, oldest first.
    dropped: Vec<String>,
    /// Up to which one it is known how its commits came there.
    watched: Option<String>,
}

impl Repository {
    /// The newest main that is written down.
    pub(super) fn main_written_down(&self) -> Option<Oid> {
        self.mains().main.as_deref().and_then(Oid::new)
    }

    pub(super) fn write_main_down(&self, main: &Oid) -> Result<(), GitError> {
        self.change_mains(|mains| mains.main = Some(main.to_string()))
    }

    /// The newest main of which it is known how its commits came there.
    pub(super) fn main_watched(&self) -> Option<Oid> {
        self.mains().watched.as_deref().and_then(Oid::new)
    }

    pub(super) fn write_watched_down(&self, main: &Oid) -> Result<(), GitError> {
        self.change_mains(|mains| mains.watched = Some(main.to_string()))
    }

    pub(super) fn write_dropped_down(&self, main: &Oid) -> Result<(), GitError> {
        self.change_mains(|mains| {
            mains.dropped.retain(|known| known != main.as_str());
            mains.dropped.push(main.to_string());
            let beyond = mains.dropped.len().saturating_sub(DROPPED_MAX);
            mains.dropped.drain(..beyond);
        })
    }

    /// A `land.git` that was made anew knows again what was taken off main, as far as the commits are still to be had.
    pub(super) fn recall_dropped(&self) -> Result<(), GitError> {
        let objects = self.inner.git_dir.join("objects");
        for main in self.mains().dropped.iter().filter_map(|oid| Oid::new(oid)) {
            if self.bring(&objects, std::slice::from_ref(&main), &[]).is_ok() {
                self.set_in_land(&super::rewritten::dropped_reference(&main), &main)?;
            }
        }
        Ok(())
    }

    /// What cannot be read counts as nothing: it is written anew with what is seen next.
    fn mains(&self) -> Mains {
        let text = std::fs::read(self.mains_file()).unwrap_or_default();
        let mut mains: Mains = serde_json::from_slice(&text).unwrap_or_default();
        let branch = &self.inner.places.main;
        if mains.branch != *branch {
            mains = Mains { branch: branch.clone(), dropped: mains.dropped, ..Mains::default() };
        }
        mains
    }

    fn change_mains(&self, change: impl FnOnce(&mut Mains)) -> Result<(), GitError> {
        let turn = self.turn(".mains");
        let _turn = super::locked(&turn);
        let before = self.mains();
        let mut mains = self.mains();
        change(&mut mains);
        if mains == before {
            return Ok(());
        }
        write_whole(&self.mains_file(), &serde_json::to_vec(&mains).unwrap_or_default())
    }

    fn mains_file(&self) -> std::path::PathBuf {
        self.inner.places.state.join("mains.json")
    }
}
