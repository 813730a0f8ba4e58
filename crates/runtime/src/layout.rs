//! Where everything of a project lies.
//!
//! `.adjutant` in the project is ours: the log, the token, `land.git`, what agents and tests printed, what was removed.
//! `agents` beside it holds the trees that agents work in. Neither is ever committed.

use std::path::{Path, PathBuf};

use machines::names::{EffectId, TaskId};

/// The project's folders and files, from its root: the user's main checkout, or a bare repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Ours alone. Agents cannot read it under the sandbox.
    pub fn state(&self) -> PathBuf {
        self.root.join(".adjutant")
    }

    pub fn log(&self) -> PathBuf {
        self.state().join("adjutant.db")
    }

    pub fn socket(&self) -> PathBuf {
        self.state().join("adj.sock")
    }

    pub fn settings(&self) -> PathBuf {
        self.root.join("adjutant.toml")
    }

    /// The trees of all tasks.
    pub fn trees(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// A task's tree, from the name that the kernel gave it: `agents/A-c-1`.
    pub fn tree(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What one step, gate or merged test printed, how it ended, and how to reach its keeper.
    pub fn steps(&self) -> PathBuf {
        self.state().join("steps")
    }

    pub fn step(&self, effect: &EffectId) -> PathBuf {
        self.steps().join(effect.as_str())
    }

    /// What the processes of a step are known by on this machine, where other projects have effects of the same name.
    pub fn mark(&self, name: &str) -> String {
        use sha2::{Digest, Sha256};
        use std::os::unix::ffi::OsStrExt;
        let digest = Sha256::digest(self.root.as_os_str().as_bytes());
        let project: String = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{project}-{name}")
    }

    /// What an agent keeps between steps outside of its tree: its sessions and its own configuration.
    pub fn private(&self, task: &TaskId) -> PathBuf {
        self.state().join("private").join(task.as_str())
    }

    /// A task's own temporary files.
    pub fn temp(&self, task: &TaskId) -> PathBuf {
        self.state().join("tmp").join(task.as_str())
    }

    /// Which trees were tested green.
    pub fn tested(&self) -> PathBuf {
        self.state().join("tested")
    }

    /// Agents read objects from here, and nothing else of ours.
    pub fn land_objects(&self) -> PathBuf {
        self.state().join("land.git").join("objects")
    }
}
