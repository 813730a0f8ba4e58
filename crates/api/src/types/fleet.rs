//! The process that runs the fleet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    pub running: bool,
    pub pid: Option<u32>,
    /// The URL of the process for browsers and programs; null if it has only its socket.
    pub url: Option<String>,
    /// The address at which the process itself listens, if `url` is that of a proxy.
    #[serde(default)]
    pub listens: Option<String>,
    pub since: Option<String>,
    /// How many workers it was asked to run.
    pub workers: u32,
    /// The sandbox that restricts agents, in a sentence; null: roles are only advisory.
    pub sandbox: Option<String>,
    /// The tests that run now.
    pub tests: Vec<RunningTests>,
    /// The folder of the working trees, on the machine of the fleet.
    #[serde(default)]
    pub trees: String,
    /// It was started and not stopped, whether its process lives or not.
    pub wanted: bool,
    /// The result of main's own tests; null if they are not checked.
    pub main_tests: Option<MainTests>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunningTests {
    pub effect: String,
    pub command: String,
    pub since: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MainTests {
    pub state: MainState,
    pub detail: String,
    /// The commit that they were run on.
    pub main: Option<String>,
    pub at: Option<String>,
    pub command: Option<String>,
    /// Their output, if they failed.
    pub output: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MainState {
    Running,
    Red,
    Green,
    Unknown,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "FleetStart")]
pub struct Start {
    /// How many workers, if not as many as the settings say: 1 to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// End steps at once.
    pub now: bool,
    /// End the server too.
    pub server: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    pub stopping: bool,
    pub pid: Option<u32>,
}
