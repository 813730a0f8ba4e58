//! Comments on the lines of a diff: drafts, and the rounds in which they are sent.

use super::{Text, Words};
use kernel::words::DiffSide;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comment on lines that was not sent yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DraftComment {
    pub id: String,
    pub at: String,
    pub by: String,
    #[serde(flatten)]
    pub comment: CommentOnLines,
}

/// What is said of which lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentOnLines {
    pub path: String,
    /// The lines of the file with the change, or before it.
    #[schemars(with = "Words<DiffSide>")]
    pub side: DiffSide,
    pub line: u32,
    /// The last of the lines.
    pub end_line: u32,
    pub text: String,
    /// The commit that was looked at.
    pub tip: Option<String>,
    /// The branch has another commit by now, so the lines may be elsewhere.
    pub moved: bool,
}

/// A comment to keep.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewDraft {
    pub path: String,
    #[schemars(with = "Words<DiffSide>")]
    pub side: DiffSide,
    #[schemars(range(min = 1))]
    pub line: u32,
    /// The last of the lines; only `line` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    #[schemars(with = "Text")]
    pub text: String,
    /// The commit that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
}

/// Another text of a draft.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditDraft {
    #[schemars(with = "Text")]
    pub text: String,
}

/// A discarded draft.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Discarded {
    pub id: String,
}

/// What is sent with all drafts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRound {
    /// The tip that was looked at. Another one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// What is said of the work as a whole.
    #[serde(default)]
    pub note: String,
}

/// Comments that were sent together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// From 1.
    pub number: u32,
    pub at: String,
    pub by: String,
    pub tip: Option<String>,
    pub note: String,
    pub comments: Vec<CommentOnLines>,
    pub receipt: RoundReceipt,
    /// The run that got it.
    pub run: Option<String>,
}

/// How far a round has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoundReceipt {
    /// No agent has taken the task up since.
    Queued,
    /// A run was started with it.
    Delivered,
    /// The agent of that run has answered.
    Consumed,
}
