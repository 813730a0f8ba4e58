//! Runs: one agent at work on one task.

use super::approval::Approval;
use super::cost::Spend;
use super::task::Holder;
use super::{Cursor, Limit, Name, Text, Words};
use machines::run::{PauseReason, ToolStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only runs of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub id: String,
    pub task: String,
    pub agent: String,
    pub holder: Holder,
    pub state: String,
    pub current_turn: u32,
    pub max_turns: u32,
    /// A service that it needs is away.
    pub suspended: bool,
    /// The question that it waits for.
    pub question: Option<String>,
    pub tool_calls: u64,
    pub cost: Spend,
    /// Why it is paused, if it is.
    #[serde(default)]
    #[schemars(with = "Option<Words<PauseReason>>")]
    pub pause_reason: Option<PauseReason>,
    #[serde(default)]
    pub last_error: Option<LastError>,
    /// The decision that a person must make before it continues, with the choices.
    #[serde(default)]
    pub approval: Option<Approval>,
    /// The meaning of its state, from the table of the run machine.
    #[serde(default)]
    pub meta: StateMeta,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastError {
    pub code: String,
    pub message: String,
    pub recoverable: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateMeta {
    pub can_start: bool,
    pub has_active_task: bool,
    pub resources_allocated: bool,
    pub can_execute_tools: bool,
    pub awaiting_input: bool,
    pub requires_decision: bool,
}

/// A run after a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    #[serde(flatten)]
    pub run: Run,
    /// `AGENT_TURN_LIMIT_EXCEEDED` or `AGENT_APPROVAL_REQUIRED` if the report was accepted and a person decides how the run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub run: String,
    pub task: String,
    pub agent: String,
    pub tool: String,
    pub turn: u32,
    #[schemars(with = "Words<ToolStatus>")]
    pub status: ToolStatus,
    /// `AGENT_TOOL_NOT_ALLOWED` if the call was refused before it ran.
    pub code: Option<String>,
    /// The input of the tool; null if a call was refused before its turn was reported.
    pub input: Option<Value>,
    /// The beginning of what it gave.
    pub output: Option<String>,
    /// In milliseconds.
    pub duration: Option<u64>,
    /// Who reported it.
    pub actor: String,
    pub at: String,
    pub ended_at: Option<String>,
}

/// A run of an agent that the fleet does not start; with `agent`, a run that a person has a worker start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OpenRun", extend("not" = {
    "required": ["agent"],
    "properties": {"agent": {"type": "string"}},
    "anyOf": [
        {"required": ["prompt"], "properties": {"prompt": {"minLength": 1}}},
        {"required": ["options"], "properties": {"options": {"type": "object"}}},
    ],
}))]
pub struct Open {
    #[schemars(with = "Name")]
    pub task: String,
    /// Whose worker begins it. An agent that opens a run of its own leaves it out. Prompt and options are then
    /// those of the task and the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub agent: Option<String>,
    #[serde(default)]
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
}

/// The options of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RunOptions")]
pub struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 200))]
    pub max_turns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub temperature: Option<f64>,
}

/// Text of an agent outside, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunToken")]
pub struct Piece {
    #[schemars(length(min = 1))]
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunTokenWritten")]
pub struct Written {
    pub run: String,
    pub bytes: u64,
}

/// An event of a run, as the run machine takes it: `docs/machines/run.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "RunEvent", with = "Told")]
pub struct Sent(pub Map<String, Value>);

/// The same as it is described: what is sent is read by the machine itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "UPPERCASE", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Told {
    Start {
        task_id: String,
        #[schemars(with = "Text")]
        prompt: String,
        options: Option<ToldOptions>,
    },
    /// One turn's message is complete. A call is reported when it begins (`pending`), and its result with the same turn again or
    /// with a later one, under the same id; or both at once.
    Step {
        #[schemars(range(min = 1, max = u32::MAX))]
        turn: u32,
        tool_calls: Vec<ToldCall>,
        output: Option<String>,
        usage: Option<ToldUsage>,
    },
    Pause {
        #[schemars(with = "Words<PauseReason>")]
        reason: PauseReason,
        context: Option<Value>,
    },
    Resume {
        feedback: Option<String>,
        input: Option<String>,
        #[schemars(range(min = 1, max = 200))]
        max_turns: Option<u32>,
    },
    Error {
        error: ToldError,
        recoverable: bool,
    },
    Complete {
        result: String,
        diff: Option<String>,
        #[schemars(range(min = 1, max = u32::MAX))]
        turn_count: u32,
    },
    Abort {
        reason: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RunEventOptions")]
struct ToldOptions {
    #[schemars(range(min = 1, max = 200))]
    max_turns: Option<u32>,
    allowed_tools: Option<Vec<String>>,
    model: Option<String>,
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunEventCall")]
struct ToldCall {
    id: String,
    tool: String,
    input: Map<String, Value>,
    output: Option<String>,
    /// In milliseconds.
    duration: Option<f64>,
    #[schemars(with = "Words<ToolStatus>")]
    status: ToolStatus,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunEventError")]
struct ToldError {
    code: String,
    message: String,
    status: u16,
    details: Option<Value>,
}

/// The usage of a turn. Without a cost its price is unknown, and budgets count the reserve of a step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RunEventUsage")]
struct ToldUsage {
    #[serde(default)]
    #[schemars(range(max = 100_000_000))]
    input_tokens: u64,
    #[serde(default)]
    #[schemars(range(max = 100_000_000))]
    output_tokens: u64,
    /// In US dollars.
    #[schemars(range(min = 0, max = 1_000))]
    cost: Option<f64>,
}
