//! The errors of a git call.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What went wrong: what was being done, where, and in git's own words where git said something.
#[derive(Debug, Error)]
pub enum GitError {
    #[error("git could not be started: {source}; install git {} or newer", super::GIT_NEEDED)]
    NoGit { source: io::Error },
    #[error("git {found} is too old; install git {} or newer", super::GIT_NEEDED)]
    TooOld { found: String },
    #[error("{doing} failed in {}: {said}", at.display())]
    Failed { doing: &'static str, at: PathBuf, code: Option<i32>, said: String },
    #[error("{doing} in {} took longer than {seconds} s and was ended", at.display())]
    TimedOut { doing: &'static str, at: PathBuf, seconds: u64 },
    #[error("{doing} in {} printed more than {limit} bytes and was ended", at.display())]
    TooMuch { doing: &'static str, at: PathBuf, limit: usize },
    #[error("{doing} failed at {}: {source}", at.display())]
    Io { doing: &'static str, at: PathBuf, source: io::Error },
    #[error("the merge cannot be signed: {why}; run {command}")]
    NotSigned { why: String, command: String },
    #[error("`{name}` cannot be a {what}: {why}")]
    BadName { what: &'static str, name: String, why: &'static str },
    #[error("git printed `{text}` where an object id was expected, while {doing}")]
    NoObjectId { doing: &'static str, text: String },
    /// The agent changed its git directory so that its commits cannot be read without trusting it.
    #[error("the git directory of {} cannot be read: {why}; inspect it, or remove the tree: its files are saved first", tree.display())]
    Unreadable { tree: PathBuf, why: String },
    #[error("{} was not created by adjutant for task {task}, so it is left unchanged; move it away", path.display())]
    NotOurs { path: PathBuf, task: String },
    #[error("{} holds {}: another git is running there; try again when it is done", holder, lock.display())]
    Locked { lock: PathBuf, holder: String },
    #[error("there is no git repository at {} or above it; create one with `git init`", at.display())]
    NoRepository { at: PathBuf },
    #[error("the path of the repository is not UTF-8, so it cannot be passed to agents and tests: {}; rename that folder", at.display())]
    NotText { at: PathBuf },
    #[error("branch `{main}` does not exist in {}; set `main` in [project] of adjutant.toml to the branch that receives finished work", at.display())]
    NoMain { main: String, at: PathBuf },
    #[error("no saved work is named `{reference}`; `adj salvage list` lists it")]
    NothingSaved { reference: String },
    #[error("`{reference}` keeps being moved by another program; try again when it is done")]
    Contended { reference: String },
    #[error("{what} already exists; choose another name")]
    Exists { what: String },
}

impl GitError {
    /// For `map_err`: what was being done to which file.
    pub(super) fn io(doing: &'static str, at: &Path) -> impl FnOnce(io::Error) -> GitError {
        let at = at.to_owned();
        move |source| GitError::Io { doing, at, source }
    }

    /// A git of ours was killed by somebody else.
    pub(super) fn was_killed(&self) -> bool {
        matches!(self, GitError::Failed { code: None, .. })
    }

    /// Git came upon objects that are not whole, or not there.
    pub(super) fn is_damage(&self) -> bool {
        const WORDS: &[&str] = &[
            "is empty",
            "corrupt",
            "bad object",
            "missing",
            "unable to read",
            "ould not read",
            "ailed to read",
            "invalid sha1",
            "bad tree object",
            "unable to parse",
            "inflate",
        ];
        matches!(self, GitError::Failed { code: Some(_), said, .. } if WORDS.iter().any(|words| said.contains(words)))
    }

    /// A lock stands in the way.
    pub(super) fn is_lock(&self) -> bool {
        let said = self.said();
        said.contains(".lock': File exists") || said.contains("packed-refs.new: File exists")
    }

    /// Git's own words, where it said any.
    pub fn said(&self) -> &str {
        match self {
            GitError::Failed { said, .. } => said,
            _ => "",
        }
    }
}
