//! Where the files of a project are.
//!
//! - Our **state** is in the git directory that all worktrees share, `.git/adjutant`: the log, the token, `land.git`,
//!   the output of agents and tests. Tools that tidy a checkout do not reach it, and it moves with the repository.
//! - The **trees** of agents and tests are beside the repository, in `../<project>.agents`. So no tool
//!   that searches parent directories finds the user's checkout from a tree, and no tool that searches the checkout finds a tree.
//! - **Temporary files** of agents and tests are in the system's temporary directory, outside every repository.
//!
//! In the user's checkout, only `adjutant.toml` is ours. Elsewhere, our folders are known by a record in the state folder,
//! never by their name.

mod before;
mod modes;
mod temporary;
mod trees;

use std::path::{Path, PathBuf};

use kernel::rooms::Seat;
use machines::names::{EffectId, TaskId};
use sha2::{Digest, Sha256};

pub use before::Moved;
pub use git::names::LAND;
pub use trees::{LANDING, SEATS, TRASH, TreesError};

/// In the repository's git directory.
const STATE: &str = "adjutant";
pub const LOG: &str = "adjutant.db";
/// What agents keep that speak outside of any task, beside folders that are named after tasks: no task's name begins with a dot.
const PRIVATE_SEATS: &str = ".seats";
/// Where output, input and end of steps and tests lie.
pub const STEPS: &str = "steps";

/// The project's folders and files, from its root: the user's main checkout, or a bare repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
    git_dir: PathBuf,
    state: PathBuf,
}

impl Layout {
    /// Of the project at this root. State of an earlier version is used where it is: only `open` moves it.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        let root = root.into();
        let git_dir = git_dir(&root);
        let state = git_dir.join(STATE);
        let old = before::state(&root);
        let keeps_old = !state.join(LOG).exists() && before::is_ours(&old);
        Layout { state: if keeps_old { old } else { state }, root, git_dir }
    }

    /// As `new`, after state of an earlier version was moved to where it belongs.
    pub fn open(root: impl Into<PathBuf>) -> (Layout, Option<Moved>) {
        let layout = Layout::new(root);
        let moved = before::move_state(&layout);
        (Layout::new(layout.root), moved)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git directory that all worktrees of the repository share.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Ours alone. Agents cannot read it under the sandbox.
    pub fn state(&self) -> PathBuf {
        self.state.clone()
    }

    pub fn log(&self) -> PathBuf {
        self.state.join(LOG)
    }

    /// In a folder of its own, so that an agent can be shown it and nothing else, also when it is made anew.
    pub fn socket(&self) -> PathBuf {
        self.state.join("socket").join("adj.sock")
    }

    pub fn settings(&self) -> PathBuf {
        self.root.join(git::names::SETTINGS_FILE)
    }

    /// What one step, gate or merged test printed, how it ended, and how to reach its keeper.
    pub fn steps(&self) -> PathBuf {
        self.state.join(STEPS)
    }

    pub fn step(&self, effect: &EffectId) -> PathBuf {
        self.steps().join(effect.as_str())
    }

    /// What the processes of a step are known by on this machine, where other projects have effects of the same name.
    pub fn mark(&self, name: &str) -> String {
        format!("{}-{name}", self.hash(6))
    }

    /// A short name for this project on this machine.
    fn hash(&self, bytes: usize) -> String {
        use std::os::unix::ffi::OsStrExt;
        base::hex::hex(&Sha256::digest(self.root.as_os_str().as_bytes())[..bytes])
    }

    /// What an agent keeps between steps outside of its tree: its sessions and its own configuration.
    pub fn private(&self, task: &TaskId) -> PathBuf {
        self.sessions().join(task.as_str())
    }

    /// The same of an agent that speaks outside of any task. No task's name begins with a dot.
    pub fn private_of_seat(&self, seat: &Seat) -> PathBuf {
        self.sessions_of_seats().join(Layout::seat_name(seat))
    }

    /// What agents in all seats keep, where no task's name can be.
    pub fn sessions_of_seats(&self) -> PathBuf {
        self.sessions().join(PRIVATE_SEATS)
    }

    /// The name of a seat's folders. No part of a seat has a `+` in it.
    pub fn seat_name(seat: &Seat) -> String {
        seat.to_string().replace('/', "+")
    }

    /// What agents of all tasks keep.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("private")
    }

    /// What agents wrote in each run, piece by piece.
    pub fn spoken(&self) -> PathBuf {
        self.state.join("spoken")
    }

    /// What the clocks said when they were last looked at: a process that starts after the machine slept reads it.
    pub fn clocks(&self) -> PathBuf {
        self.state.join("clocks")
    }

    /// Which trees were tested green.
    pub fn tested(&self) -> PathBuf {
        self.state.join("tested")
    }

    /// Agents read objects from here, and nothing else of ours.
    pub fn land_objects(&self) -> PathBuf {
        self.land().join("objects")
    }

    fn land(&self) -> PathBuf {
        self.state.join(LAND)
    }
}

/// The git directory that belongs to a root, without asking git: every command needs it.
fn git_dir(root: &Path) -> PathBuf {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return dot_git;
    }
    match linked(&dot_git) {
        Some(git_dir) => git_dir,
        // A bare repository is its own git directory.
        None if root.join("HEAD").is_file() && root.join("objects").is_dir() => root.to_owned(),
        None => dot_git,
    }
}

/// Where a file `.git` leads to, as linked worktrees and `git init --separate-git-dir` have it: the shared folder.
fn linked(dot_git: &Path) -> Option<PathBuf> {
    linked_worktree(dot_git).or_else(|| named(dot_git)?.canonicalize().ok())
}

/// The root of the git repository around a folder: a checkout or a bare repository. From a linked worktree it is the main one.
pub fn repository_around(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists() || is_bare(folder))?;
    Some(main_worktree(root).unwrap_or_else(|| root.to_owned()))
}

fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// In a linked worktree `.git` is a file that names its folder, and that folder names the one they all share.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let shared = linked_worktree(&root.join(".git"))?;
    if shared.file_name()? == ".git" { shared.parent().map(Path::to_owned) } else { Some(shared) }
}

/// The git directory that a linked worktree shares with the others; nothing where `.git` is not a linked worktree's.
pub fn linked_worktree(dot_git: &Path) -> Option<PathBuf> {
    let own = named(dot_git)?;
    let shared = std::fs::read(own.join("commondir")).ok()?;
    own.join(path(&shared)).canonicalize().ok()
}

fn named(dot_git: &Path) -> Option<PathBuf> {
    let text = std::fs::read(dot_git).ok()?;
    Some(dot_git.parent()?.join(path(text.strip_prefix(b"gitdir:")?)))
}

/// A path in a file of git's, which need not be text.
fn path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes.trim_ascii()))
}
