//! What happened.

use super::{Cursor, Limit, Words, flag, is_false};
use crate::story::Tone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HistoryQuery")]
pub struct Query {
    /// Every record, not only the transitions.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub all: bool,
    /// Its meaning, as text.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub story: bool,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// Which part of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The `next` of the page before, or the number of the last record that was seen; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Where there is nothing yet, wait a while for something.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

/// As it was asked for: with `all` a record, with `story` words, else a transition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "HistoryItem")]
pub enum Item {
    Record(Record),
    Told(Told),
    Transition(Transition),
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    pub seq: u64,
    pub at: String,
    pub actor: String,
    pub command: String,
    pub stream: String,
    pub version: u64,
    pub kind: String,
    /// The event, in the form that the log has.
    pub data: Value,
}

/// A transition of one of the machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub timestamp: String,
    pub event: String,
    pub machine: String,
    /// The agent that it is about.
    pub agent_id: Option<String>,
    pub from: String,
    pub to: String,
    pub trigger: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The id that moved, such as that of a task or a run.
    pub id: String,
    /// Who asked for it.
    pub actor: String,
}

/// An event, as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    pub timestamp: String,
    pub actor: String,
    #[schemars(with = "Words<Tone>")]
    pub tone: Tone,
    pub text: String,
    pub task: Option<String>,
    pub worker: Option<String>,
    pub run: Option<String>,
}

/// The parts of the log that were checked; all of them are correct.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    pub ok: bool,
    pub at: String,
    pub records: u64,
    /// Of the last record, and by it of all before it.
    pub hash: String,
    pub checks: Vec<Checked>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    pub check: String,
    pub found: String,
}

/// The content of an export made now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportHead {
    pub records: u64,
    /// Of the last record, and by it of all before it.
    pub hash: String,
}
