//! What a person says of lines of a diff.

use crate::words::DiffSide;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A comment on lines of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    pub path: String,
    pub side: DiffSide,
    pub line: u32,
    pub end_line: u32,
    pub text: String,
    /// The tip that was looked at.
    pub tip: Option<SmolStr>,
}
