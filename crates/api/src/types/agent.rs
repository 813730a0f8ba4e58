//! Agents: those of the settings, and those that are connected from outside.

use super::{Name, Words};
use agents::AdapterKind;
use kernel::config::Role;
use machines::turn::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    pub name: String,
    /// Whether the settings have it.
    pub configured: bool,
    /// Its adapter, if the settings have the agent.
    #[schemars(with = "Option<Words<AdapterKind>>")]
    pub adapter: Option<AdapterKind>,
    #[schemars(with = "Words<Role>")]
    pub role: Role,
    /// OFFLINE if it is not connected. Otherwise its most active state in any of its channels: ACTIVE, WAITING, QUEUED or IDLE.
    #[schemars(with = "Words<State>")]
    pub state: State,
    /// Who disabled it, if somebody did: it takes no task and has no turn.
    pub disabled: Option<Disabled>,
    /// Since when it is connected from outside, if it is.
    pub connected_since: Option<String>,
    /// Its last heartbeat that was written down; not every one is.
    pub last_seen: Option<String>,
    /// By when the next heartbeat must have come.
    pub expected_by: Option<String>,
    /// Its runs that are under way, paused or failed.
    pub runs: Vec<String>,
}

/// That a person has disabled an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentDisabled")]
pub struct Disabled {
    pub since: String,
    pub by: String,
    pub reason: Option<String>,
}

/// Why an agent is disabled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DisableAgent")]
pub struct Disable {
    pub reason: Option<String>,
}

/// An agent that connects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    #[schemars(with = "Name")]
    pub name: String,
}
