//! What something waits for: each condition, and whether it holds.

use super::Words;
use super::approval::Call;
use super::waiting::{Offered, Waiting};
use kernel::words::Condition;
use machines::task::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guard {
    #[schemars(with = "Words<Condition>")]
    pub guard: Condition,
    pub holds: bool,
    pub detail: String,
    /// What can be done if the condition does not hold, the most likely first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Offered>,
    /// The last lines that a test or a hook printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl From<kernel::why::Guard> for Guard {
    fn from(guard: kernel::why::Guard) -> Guard {
        let kernel::why::Guard { guard, holds, detail, next, output, lasts: _ } = guard;
        let next = next.into_iter().map(Offered::from).collect();
        Guard { guard, holds, detail, next, output }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskWhy {
    pub id: String,
    pub state: Option<String>,
    /// The spec that it is a story of.
    #[serde(default)]
    pub spec: Option<String>,
    pub guards: Vec<Guard>,
    /// Its items that wait for a person, as in `/waiting`: its own, and those that it waits behind.
    pub waiting: Vec<Waiting>,
    /// The call that waits for a person.
    pub call: Option<Call>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkerWhy {
    pub id: String,
    pub state: String,
    pub guards: Vec<Guard>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetWhy {
    pub id: String,
    /// `running` or `stopped`.
    pub state: String,
    /// The obstacles to all tasks.
    pub guards: Vec<Guard>,
    /// The items that wait for a person, as in `/waiting`.
    pub waiting: Vec<Waiting>,
    /// The conditions of each open task.
    pub tasks: Vec<Waits>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    pub id: String,
    pub title: String,
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    /// The first condition that does not hold; null if it is working.
    #[schemars(with = "Option<Words<Condition>>")]
    pub guard: Option<Condition>,
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Offered>,
}
