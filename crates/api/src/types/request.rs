//! Questions that are answered in words, and what an agent at work says of itself.

use super::{Cursor, Limit, Name, Text, Words, flag, is_false};
use kernel::words::RequestKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RequestListQuery")]
pub struct ListQuery {
    /// Answered ones too, and those of tasks that are over.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub all: bool,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// One of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WaitQuery")]
pub struct ShowQuery {
    /// Where there is no answer yet, wait a while for it.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

/// Something that somebody asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub id: String,
    #[schemars(with = "Words<RequestKind>")]
    pub kind: RequestKind,
    pub task: Option<String>,
    /// The run whose agent asks.
    pub run: Option<String>,
    pub by: String,
    pub text: String,
    pub asked_at: String,
    /// Whether it waits for an answer.
    pub open: bool,
    pub answer: Option<Answer>,
    /// Whether the answer has reached the caller that asked.
    pub told: bool,
    /// The spec that it is about.
    #[serde(default)]
    pub spec: Option<String>,
    /// The commit that is reviewed.
    #[serde(default)]
    pub tip: Option<String>,
    /// Who has to answer it; null if it is answered, or no longer needs an answer.
    #[serde(default)]
    #[schemars(with = "Option<Words<WaitsFor>>")]
    pub waits_for: Option<WaitsFor>,
    /// Its position in the architect's queue, if it is in it. The first is the current one, or the next.
    #[serde(default)]
    pub position: Option<u32>,
    /// Notes on it: invalid answers, and comments of a person.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How many answers of the architect were none.
    #[serde(default)]
    pub tries: u32,
}

machines::wire_enum! {
    pub enum WaitsFor {
        Person = "person",
        Architect = "architect",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RequestAnswer")]
pub struct Answer {
    pub by: String,
    pub at: String,
    pub text: String,
    /// Nobody answered: it was given up, and why.
    #[serde(default)]
    pub abandoned: bool,
    /// The reply of the architect that gave it, which was shown this request; null if a person or a rule answered.
    #[serde(default)]
    pub reply: Option<String>,
}

/// A question.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRequest {
    /// `question`, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("enum" = ["question", null]))]
    pub kind: Option<RequestKind>,
    /// The task that it is about; an agent asks about its own task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub task: Option<String>,
    /// Which of the caller's runs it is about, if an agent from outside has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub run: Option<String>,
    #[schemars(with = "Text")]
    pub text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    {"required": ["abandon"], "properties": {"abandon": {"const": true}}},
    {"required": ["text"], "properties": {"text": {"type": "string", "pattern": r"\S"}}},
]))]
pub struct NewAnswer {
    /// The answer. With `abandon` it is the reason, and may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Give the request up.
    #[serde(default, skip_serializing_if = "is_false")]
    pub abandon: bool,
}

/// A plan for the task that the caller is at work on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// 3 to 6 steps, each in a line or two.
    pub steps: Vec<String>,
    /// Which of the caller's runs it is about, if an agent from outside has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub run: Option<String>,
}

/// The word of an agent at work that its task is done.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A summary of the work, for the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Which of the caller's runs it is about, if an agent from outside has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub run: Option<String>,
}

/// Something that an agent at work wants to do, and asks a person about first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The tool that would be called, such as Bash, or the action in a word or two.
    #[schemars(with = "Text")]
    pub tool: String,
    /// The input of the tool, by name, such as {"command": "git push"}.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Which of the caller's runs it is about, if an agent from outside has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub run: Option<String>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wished {
    /// A person has allowed this very call for the rest of the task already.
    pub allowed: bool,
    /// The request that a person decides; null if no decision is needed.
    pub approval: Option<String>,
}
