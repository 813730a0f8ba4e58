//! Questions that wait for a person, and the answers.

use super::{Cursor, Limit, Words, flag, is_false};
use kernel::world::BudgetScope;
use machines::task::{ApprovalCause, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Decided ones too.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub all: bool,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub task: Option<String>,
    pub run: Option<String>,
    #[schemars(with = "Words<ApprovalCause>")]
    pub cause: ApprovalCause,
    pub question: String,
    /// The pending call, if there is one.
    pub call: Option<Call>,
    pub options: Vec<String>,
    /// Which budget was reached.
    #[schemars(with = "Option<Words<BudgetScope>>")]
    pub scope: Option<BudgetScope>,
    /// Whose budget it is, if it is an agent's.
    pub agent: Option<String>,
    pub asked_at: String,
    pub decided: Option<Decided>,
}

/// A call that waits for a person, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    pub tool: String,
    pub argument: String,
    /// The input of the tool.
    pub input: Map<String, Value>,
    /// The same for people to read.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    pub by: String,
    pub at: String,
    pub decision: String,
    pub note: String,
}

/// A person's answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["raiseTurns", "raiseUsd"],
    "properties": {"raiseTurns": {"type": "integer"}, "raiseUsd": {"type": "number"}}}))]
pub struct Decide {
    pub approve: bool,
    /// The reason, which is sent to the agent that asked.
    #[serde(default)]
    pub note: String,
    /// The status that the task gets, if not its previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<Status>>")]
    pub to: Option<Status>,
    /// At the turn limit: how many turns are added to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 199))]
    pub raise_turns: Option<u32>,
    /// At a budget: how many dollars are added to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub raise_usd: Option<f64>,
    /// At the turn limit: the work is complete as it is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub complete: bool,
    /// Exactly this call is allowed for the rest of the task.
    #[serde(default, skip_serializing_if = "is_false")]
    pub always: bool,
}
