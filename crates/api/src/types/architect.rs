//! The architect: where it stands, and what its agent says.

use super::Words;
use super::cost::Spend;
use super::request::Request;
use super::spec::Story;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The architect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Architect {
    /// The agent that the settings name; null where there is no architect.
    pub agent: Option<String>,
    /// `architect.WAITING` and so on; null before it was first asked.
    pub state: Option<String>,
    /// Why it stands in `architect.ERROR`.
    pub cause: Option<String>,
    /// The service that it waits for in `architect.SUSPEND`.
    pub service: Option<String>,
    /// Stories of an approved spec are open.
    pub spec_in_work: bool,
    /// What it has in hand.
    pub request: Option<Request>,
    /// Whether its agent is speaking now.
    pub speaks: bool,
    /// What waits for it, in order of arrival.
    pub queue: Vec<Request>,
    pub cost: Spend,
}

machines::wire_enum! {
    /// What the architect's agent says of the request that it has in hand.
    pub enum Says {
        /// The answer to a question.
        Answer = "answer",
        /// Work, or more of a budget, is approved.
        Approve = "approve",
        /// What is to be changed in work that was reviewed.
        Changes = "changes",
        /// What the author of a spec is to change.
        Feedback = "feedback",
        /// A spec, split.
        Stories = "stories",
        /// A person must decide.
        Escalate = "escalate",
    }
}

/// An answer of the architect's agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchitectAnswer {
    #[schemars(with = "Words<Says>")]
    pub answer: Says,
    /// The answer itself, what is to be changed, or why a person must decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// With `stories`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stories: Option<Vec<Story>>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// Whether it was an answer. If not, `message` says why, and the agent may try again.
    pub accepted: bool,
    pub message: Option<String>,
}
