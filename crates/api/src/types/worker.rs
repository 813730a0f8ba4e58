//! Workers, and what a person does with one.

use super::{Name, Words};
use machines::worker::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WorkerList")]
pub struct Workers {
    pub items: Vec<Worker>,
    pub fleet_running: bool,
    pub next: Option<String>,
}

/// A worker. Only people and its own agent get more than its public part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    #[serde(flatten)]
    pub line: WorkerLine,
    #[serde(flatten)]
    pub whole: Option<WorkerWhole>,
}

/// The public part of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLine {
    pub name: String,
    pub worktree: Option<String>,
    pub branch: String,
    pub task: Option<String>,
    #[schemars(with = "Words<State>")]
    pub status: State,
    pub symbol: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerWhole {
    pub session: String,
    pub task_assigned_at: Option<String>,
    pub started_at: String,
    pub step_count: u32,
    pub last_step_at: Option<String>,
    pub total_input_tokens: u64,
    pub total_output_tokens: u64,
    pub total_cost_usd: f64,
    pub unpriced_steps: u32,
    pub estimated_steps: u32,
    pub estimated_cost_usd: f64,
    pub set_aside_usd: f64,
    pub agent: String,
    pub by_person: bool,
    pub run: Option<String>,
    pub turn: Option<u32>,
    pub last_error: Option<String>,
    /// Tasks that it has handed over and that are in REVIEW.
    pub in_review: Vec<String>,
    pub task_title: Option<String>,
    pub last_action: Option<String>,
    pub activity: Activity,
}

/// The activity of a worker, or what it waits for. `until` is when it continues by itself, `since` when it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum Activity {
    Idle,
    /// Its tree is being made.
    Tree {
        since: Option<String>,
    },
    Step,
    Tests {
        since: Option<String>,
    },
    Person {
        approval: String,
        since: Option<String>,
    },
    Service {
        service: String,
        since: String,
        until: Option<String>,
    },
    Retry {
        until: String,
    },
    /// It goes on when main's own tests have passed.
    #[serde(rename = "main_tests")]
    MainTests,
    Stuck,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    /// The next free letter if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub name: Option<String>,
    /// Which agent it is, if not the fleet's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assign {
    #[schemars(with = "Name")]
    pub task: String,
    /// The clarification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clarification: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cleanup {
    /// End a process that is still at work there.
    pub force: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Merge {
    /// The tip that was looked at. Another one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Why it is approved.
    pub note: String,
}

/// A worker after what was asked of it. One of the fleet's own that is one too many retires.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Acted {
    There(Box<Worker>),
    Retired(Retired),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Retired {
    pub name: String,
    pub status: Removed,
    pub task: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Removed {
    Removed,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cleaned {
    pub name: String,
    pub removed: bool,
}
