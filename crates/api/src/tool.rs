//! A tool: what a row of the table in `routes.rs` says of an operation that models can call.
//!
//! What a tool takes is what its operation takes: the names in the path, the query and the body. A tool that has code of its
//! own says why in its row, and may take something else.

use schemars::JsonSchema;
use serde_json::Value;

use super::types::SchemaOf;

/// To whom a tool is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person's assistant.
    Person,
    /// Agents at work on a task, or in a channel.
    Agent,
    /// Those of them that may propose something.
    Specialist,
    /// Those of them that look at the work of others.
    Lead,
    /// Agents that are in a channel.
    Member,
    /// The architect's agent, where it speaks as the architect.
    Architect,
}

impl Audience {
    pub fn words(self) -> &'static str {
        match self {
            Audience::Person => "people",
            Audience::Agent => "agents that are at work on a task or in a channel",
            Audience::Specialist => "specialists and leads",
            Audience::Lead => "leads",
            Audience::Member => "agents that are in a channel",
            Audience::Architect => "the architect",
        }
    }

    /// The same in a word or two, for a table.
    pub fn short(self) -> &'static str {
        match self {
            Audience::Agent => "agents",
            Audience::Member => "agents in a channel",
            other => other.words(),
        }
    }
}

/// The tools that have code of their own. A plain one sends its operation what it was given, and gives back the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCode {
    Answer,
    Approve,
    Ask,
    CompleteTurn,
    DecideReview,
    Deny,
    Escalate,
    ReadChannel,
    ReportProgress,
    RequestApproval,
    SpecFeedback,
    SubmitForReview,
    SubmitPlan,
    SubmitStories,
    TaskDone,
    WaitInTurn,
    Why,
}

pub struct Tool {
    pub name: &'static str,
    pub audience: &'static [Audience],
    pub title: &'static str,
    /// For a model: what it does, and when to use it.
    pub about: &'static str,
    /// The names in the path may be left out: then the caller's own task or channel is meant.
    pub(super) own: bool,
    /// Members of the operation that are not offered, each with the value that it is sent with.
    pub(super) fixed: Vec<(&'static str, Option<Value>)>,
    /// Members that a model gives in another form than an address has them.
    pub(super) instead: Vec<(&'static str, SchemaOf)>,
    pub own_code: Option<OwnCode>,
    /// Why it has code of its own.
    pub because: &'static str,
    /// What it takes, where that is not what its operation takes.
    pub(super) input: Option<SchemaOf>,
}

/// A tool that asks its operation, and nothing beside it.
pub fn tool(
    name: &'static str,
    audience: &'static [Audience],
    title: &'static str,
    about: &'static str,
) -> Tool {
    let (fixed, instead) = (Vec::new(), Vec::new());
    let (own_code, because, input) = (None, "", None);
    Tool { name, audience, title, about, own: false, fixed, instead, own_code, because, input }
}

impl Tool {
    /// The task or channel may be left out where the caller has one of its own.
    pub(super) fn own(self) -> Tool {
        Tool { own: true, ..self }
    }

    /// A member that is not offered.
    pub(super) fn without(mut self, member: &'static str) -> Tool {
        self.fixed.push((member, None));
        self
    }

    /// A member that is not offered, and always sent with this value.
    pub(super) fn fixed(mut self, member: &'static str, value: impl Into<Value>) -> Tool {
        self.fixed.push((member, Some(value.into())));
        self
    }

    /// A list, where an address has words with commas between them.
    pub(super) fn list<T: JsonSchema>(mut self, member: &'static str) -> Tool {
        self.instead.push((member, |schemas| schemas.subschema_for::<Vec<T>>()));
        self
    }

    /// It takes what its operation takes, and has code of its own for this reason.
    pub(super) fn with_code(self, code: OwnCode, because: &'static str) -> Tool {
        Tool { own_code: Some(code), because, ..self }
    }

    /// It has code of its own for this reason, and takes what that reads.
    pub(super) fn with_input<T: JsonSchema>(self, code: OwnCode, because: &'static str) -> Tool {
        Tool { input: Some(|schemas| schemas.subschema_for::<T>()), ..self.with_code(code, because) }
    }
}
