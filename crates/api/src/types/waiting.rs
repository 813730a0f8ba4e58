//! What waits for a person or a service, and what can be done about it.

use std::borrow::Cow;

use super::Words;
use kernel::choice::Choice;
use kernel::waiting::{Decider, Kind, Severity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Something that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    /// `urgent` if all of the work is held up, or an agent waits for a decision about a call; `warning` if some of the work
    /// is held up; else `info`.
    #[schemars(with = "Words<Severity>")]
    pub severity: Severity,
    pub task: Option<String>,
    pub worker: Option<String>,
    pub approval: Option<String>,
    /// The question that is answered in words.
    #[serde(default)]
    pub request: Option<String>,
    pub service: Option<String>,
    /// The task that is depended on, and will never be done.
    pub dependency: Option<String>,
    /// The channel whose turn waits.
    #[serde(default)]
    pub channel: Option<String>,
    /// Since when; null if the log does not contain it.
    pub since: Option<String>,
    /// The tasks that it blocks, with those that depend on them.
    pub blocks: Vec<String>,
    /// Who can decide: a person, also a lead, or only the service.
    #[schemars(with = "Words<Decider>")]
    pub who: Decider,
    pub text: String,
    /// What can be done about it, the most likely first.
    pub options: Vec<Offered>,
}

impl Waiting {
    /// Whether both are the same thing, however long it has waited and whatever it holds up by now.
    pub fn is_about_the_same(&self, other: &Waiting) -> bool {
        let name = |it: &Waiting| {
            let Waiting { task, worker, approval, request, service, dependency, channel, .. } = it.clone();
            (it.kind, [task, worker, approval, request, service, dependency, channel])
        };
        name(self) == name(other)
    }
}

/// Something that can be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offered {
    #[serde(flatten)]
    #[schemars(with = "Named")]
    pub choice: Choice,
    /// Its effect.
    pub text: String,
}

impl From<Choice> for Offered {
    fn from(choice: Choice) -> Offered {
        Offered { text: choice.text().to_owned(), choice }
    }
}

/// A choice, for the schema: its code, and the names that this code takes.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Named {
    code: Codes,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    /// The task that is depended on.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<String>,
}

struct Codes;

impl JsonSchema for Codes {
    fn schema_name() -> Cow<'static, str> {
        "Codes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Choice::CODES})
    }
}
