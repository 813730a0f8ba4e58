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
    /// The run that an agent's token is for, or the only one that it has under way outside; and the task of that run.
    pub run: Option<String>,
    pub task: Option<String>,
    /// Whether it reports that run itself, from outside.
    #[serde(default)]
    pub outside: bool,
    /// How long a question of an agent waits for its answer before the agent is told to go on without, in seconds.
    pub question_seconds: u32,
}

machines::wire_enum! {
    pub enum Kind {
        Person = "person",
        Agent = "agent",
    }
}
