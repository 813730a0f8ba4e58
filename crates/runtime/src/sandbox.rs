//! What a program may reach: its own tree and what it needs to work, and nothing of ours or of another agent.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether programs are held to their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As far as this machine can.
    #[default]
    Auto,
    /// Wholly, or they do not start.
    Strict,
    Off,
}

/// What a program may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    pub read_write: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
    pub hidden: Vec<PathBuf>,
    pub tcp_connect: Option<Vec<u16>>,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox cannot be set up: {0}")]
    Failed(String),
}

pub fn apply(_mode: Mode, _rules: &Rules) -> Result<(), SandboxError> {
    Ok(())
}
