//! The process that runs the fleet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    pub running: bool,
    pub pid: Option<u32>,
    /// Where browsers and programs find the process; null where it has no address but its socket.
    pub url: Option<String>,
    /// The address at which the process itself listens, where that is another: `url` is a proxy's then.
    #[serde(default)]
    pub listens: Option<String>,
    pub since: Option<String>,
    /// How many workers it was asked to run.
    pub workers: u32,
    /// What holds agents back, in a sentence; null: roles are advisory.
    pub sandbox: Option<String>,
    /// The tests that run now.
    pub tests: Vec<RunningTests>,
    /// The folder on the machine of the fleet that holds the working trees.
    #[serde(default)]
    pub trees: String,
    /// It was started and not stopped, whether its process lives or not.
    pub wanted: bool,
    /// What is known of main's own tests; null where nobody wants to know.
    pub main_tests: Option<MainTests>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunningTests {
    pub effect: String,
    pub command: String,
    pub since: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MainTests {
    pub state: MainState,
    pub detail: String,
    /// The commit that they were run on.
    pub main: Option<String>,
    pub at: Option<String>,
    pub command: Option<String>,
    /// What they printed, where they failed.
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
