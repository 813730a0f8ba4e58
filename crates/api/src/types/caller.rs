//! Who asks.

use super::Words;
use kernel::rooms::Seat;
use machines::machine::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The caller that the token belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WhoAsks")]
pub struct Caller {
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    pub name: String,
    #[schemars(with = "Words<Role>")]
    pub role: Role,
    /// Whether the token is for reading only.
    #[serde(default)]
    pub reads_only: bool,
    /// The run that an agent's token is for, or the only one that it has under way outside; and the task of that run.
    pub run: Option<String>,
    pub task: Option<String>,
    /// Whether it reports that run itself, from outside.
    #[serde(default)]
    pub outside: bool,
    /// Where an agent speaks outside of any run: `architect`, or `room/CHANNEL/AGENT`.
    #[serde(default)]
    pub seat: Option<String>,
    /// The open channels that an agent is in.
    #[serde(default)]
    pub channels: Vec<String>,
    /// The default channel of an agent's tools: the one in which it has the turn, or its only one.
    #[serde(default)]
    pub channel: Option<String>,
    /// How long a question of an agent waits for an answer before the agent continues without one, in seconds.
    pub question_seconds: u32,
}

impl Caller {
    /// Whether it speaks as the architect.
    pub fn is_architect(&self) -> bool {
        let seat = self.seat.clone().map(Seat::try_from);
        matches!(seat, Some(Ok(Seat::Architect)))
    }
}

machines::wire_enum! {
    pub enum Kind {
        Person = "person",
        Agent = "agent",
    }
}
