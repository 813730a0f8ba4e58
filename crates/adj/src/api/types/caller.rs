//! Who asks.

use super::Words;
use machines::machine::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whoever showed the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WhoAsks")]
pub struct Caller {
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    pub name: String,
    #[schemars(with = "Words<Role>")]
    pub role: Role,
    /// The run that an agent's token is for, and the task of that run.
    pub run: Option<String>,
    pub task: Option<String>,
}

machines::wire_enum! {
    pub enum Kind {
        Person = "person",
        Agent = "agent",
    }
}
