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
    /// The agent that the settings name; null if there is no architect.
    pub agent: Option<String>,
    /// `architect.WAITING` and so on; null before it was first asked.
    pub state: Option<String>,
    /// Why it is in `architect.ERROR`.
    pub cause: Option<String>,
    /// The service that it waits for in `architect.SUSPEND`.
    pub service: Option<String>,
    /// Stories of an approved spec are open.
    pub spec_in_work: bool,
    /// Its current request.
    pub request: Option<Request>,
    /// Whether its agent is speaking now.
    pub speaks: bool,
    /// Its queue, in order of arrival.
    pub queue: Vec<Request>,
    pub cost: Spend,
}

machines::wire_enum! {
    /// The answer of the architect's agent to its current request.
    pub enum Says {
        /// The answer to a question.
        Answer = "answer",
        /// Work, or more of a budget, is approved.
        Approve = "approve",
        /// The changes that reviewed work needs.
        Changes = "changes",
        /// The changes that the author of a spec should make.
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

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// Whether it was an answer. If not, `message` says why, and the agent may try again.
    pub accepted: bool,
    pub message: Option<String>,
}
