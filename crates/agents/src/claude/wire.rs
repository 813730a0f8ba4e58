//! The lines of Claude Code, in both directions: those that it prints, as far as somebody here looks at them, and those that it is sent.
//!
//! A printed line that is JSON always reads as a [`Line`]; `crate::json` says what becomes of fields that do not fit.

use crate::json::{List, fit, objects, tag};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line that the program printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum Line {
    ControlResponse(ControlResponse),
    ControlRequest(ControlRequest),
    System(SystemLine),
    StreamEvent(StreamLine),
    Assistant(AssistantLine),
    User(UserLine),
    Result(ResultLine),
    Lifecycle(Lifecycle),
    RateLimit(RateLimit),
    /// New kinds of line come often.
    Unknown,
}

impl From<Value> for Line {
    fn from(line: Value) -> Line {
        match tag(&line, "type") {
            "control_response" => Line::ControlResponse(fit::<ControlResponseLine>(line).response),
            "control_request" => Line::ControlRequest(fit(line)),
            "system" => Line::System(SystemLine::from(line)),
            "stream_event" => Line::StreamEvent(fit(line)),
            "assistant" => Line::Assistant(fit(line)),
            "user" => Line::User(fit(line)),
            "result" => Line::Result(fit(line)),
            "command_lifecycle" => Line::Lifecycle(fit(line)),
            "rate_limit_event" => Line::RateLimit(fit::<RateLimitLine>(line).rate_limit_info),
            _ => Line::Unknown,
        }
    }
}

/// A line of `system`, by its subtype.
#[derive(Clone, Debug)]
pub(crate) enum SystemLine {
    Init(Init),
    Status(Status),
    ApiRetry(ApiRetry),
    Notice(Notice),
    Unknown,
}

impl From<Value> for SystemLine {
    fn from(line: Value) -> SystemLine {
        match tag(&line, "subtype") {
            "init" => SystemLine::Init(fit(line)),
            "status" => SystemLine::Status(fit(line)),
            "api_retry" => SystemLine::ApiRetry(fit(line)),
            "permission_denied" | "model_fallback" | "informational" | "notification" => {
                SystemLine::Notice(fit(line))
            }
            _ => SystemLine::Unknown,
        }
    }
}

/// A piece of a message while the model writes it, by its type.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum StreamEvent {
    MessageStart(MessageStart),
    MessageDelta(MessageDelta),
    MessageStop,
    BlockDelta(BlockDelta),
    #[default]
    Unknown,
}

impl From<Value> for StreamEvent {
    fn from(event: Value) -> StreamEvent {
        match tag(&event, "type") {
            "message_start" => StreamEvent::MessageStart(fit(event)),
            "message_delta" => StreamEvent::MessageDelta(fit(event)),
            "message_stop" => StreamEvent::MessageStop,
            "content_block_delta" => StreamEvent::BlockDelta(fit::<BlockDeltaEvent>(event).delta),
            _ => StreamEvent::Unknown,
        }
    }
}

/// The output of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum ToolOutput {
    Text(String),
    Parts(List<Part>),
    #[default]
    Nothing,
}

impl From<Value> for ToolOutput {
    fn from(content: Value) -> ToolOutput {
        match content {
            Value::String(text) => ToolOutput::Text(text),
            Value::Array(_) => ToolOutput::Parts(fit(content)),
            _ => ToolOutput::Nothing,
        }
    }
}

/// The values of an object, in its order.
#[derive(Clone, Debug)]
pub(crate) struct ModelUsages(pub(crate) Vec<ModelUsage>);

impl<'de> Deserialize<'de> for ModelUsages {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let models = Map::<String, Value>::deserialize(deserializer)?;
        Ok(ModelUsages(models.into_iter().map(|(_, usage)| fit(usage)).collect()))
    }
}

objects! {
    /// The program answers a request of ours.
    struct ControlResponse {
        request_id: Option<String>,
        subtype: String,
        response: ResponseFields,
    }
    struct ControlResponseLine {
        response: ControlResponse,
    }
    /// Of `initialize` the first two, of `get_session_cost` the text.
    struct ResponseFields {
        hooks_applied: Option<bool>,
        hook_on_failure_supported: Option<bool>,
        text: Option<String>,
    }

    /// The program asks something of us.
    struct ControlRequest {
        request_id: Option<String>,
        request: RequestFields,
    }
    struct RequestFields {
        subtype: Option<String>,
        tool_use_id: Option<String>,
        tool_name: String,
        /// Of a hook its [`HookInput`], of `can_use_tool` the call's own.
        input: Map<String, Value>,
    }
    struct HookInput {
        hook_event_name: String,
        tool_use_id: Option<String>,
        tool_name: String,
        tool_input: Map<String, Value>,
        duration_ms: Option<u64>,
    }

    struct Init {
        mcp_servers: List<McpServer>,
    }
    struct McpServer {
        name: String,
        status: String,
    }
    struct Status {
        status: String,
    }
    /// The program waits before it asks the service again.
    struct ApiRetry {
        attempt: u64,
        retry_delay_ms: Option<u64>,
        error_status: Option<u64>,
        error: Option<String>,
    }
    struct Notice {
        message: Option<String>,
        content: Option<String>,
    }

    struct StreamLine {
        event: StreamEvent,
        /// The call that a subagent works for.
        parent_tool_use_id: Option<IgnoredAny>,
    }
    struct MessageStart {
        message: Message,
    }
    struct MessageDelta {
        usage: TokenUsage,
    }
    struct BlockDeltaEvent {
        delta: BlockDelta,
    }
    struct BlockDelta {
        kind: String = "type",
        text: Option<String>,
    }

    struct AssistantLine {
        message: Message,
        parent_tool_use_id: Option<IgnoredAny>,
        is_api_error_message: Option<bool>,
        error: Option<String>,
    }
    /// A message of the model, or a part of one.
    struct Message {
        id: String,
        model: String,
        content: List<Block>,
        usage: TokenUsage,
    }
    /// A part of a message. New kinds come often, and the text of each is passed on.
    struct Block {
        kind: String = "type",
        text: Option<String>,
        id: String,
        name: String,
        input: Map<String, Value>,
    }
    struct TokenUsage {
        input_tokens: u64,
        cache_creation_input_tokens: u64,
        cache_read_input_tokens: u64,
        output_tokens: u64,
    }

    struct UserLine {
        message: UserContent,
    }
    struct UserContent {
        content: List<UserBlock>,
    }
    struct UserBlock {
        kind: String = "type",
        tool_use_id: String,
        is_error: Option<bool>,
        content: ToolOutput,
    }
    struct Part {
        text: Option<String>,
    }

    /// The program's last word on a prompt.
    struct ResultLine {
        subtype: String,
        terminal_reason: String,
        is_error: Option<bool>,
        result: String,
        errors: List<Option<String>>,
        api_error: Option<IgnoredAny>,
        api_error_status: Option<u64>,
        permission_denials: List<IgnoredAny>,
        user_message_uuids: List<Option<String>>,
        total_cost_usd: Option<f64>,
        model_usage_since_last_result: Option<ModelUsages>,
    }
    /// The use of one model.
    struct ModelUsage {
        input_tokens: u64 = "inputTokens",
        cache_read_input_tokens: u64 = "cacheReadInputTokens",
        cache_creation_input_tokens: u64 = "cacheCreationInputTokens",
        output_tokens: u64 = "outputTokens",
        cost_usd: Option<f64> = "costUSD",
    }

    /// How far the program is with a message that it was sent.
    struct Lifecycle {
        command_uuid: Option<String>,
        state: String,
    }
    struct RateLimitLine {
        rate_limit_info: RateLimit,
    }
    struct RateLimit {
        status: String,
        /// In seconds.
        resets_at: Option<i64> = "resetsAt",
    }
}

/// A line that the program is sent.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Sent<'a> {
    ControlRequest { request_id: &'a str, request: OwnRequest },
    ControlResponse { response: Answer<'a> },
    User { message: UserMessage<'a>, parent_tool_use_id: Option<&'a str>, uuid: String },
}

impl Sent<'_> {
    /// With its line end.
    pub(crate) fn line(&self) -> String {
        let line = serde_json::to_string(self).expect("these types have no keys but strings");
        format!("{line}\n")
    }
}

/// What we ask of the program.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(crate) enum OwnRequest {
    Initialize { hooks: Hooks },
    GetSessionCost,
    Interrupt,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Hooks {
    pub(crate) pre_tool_use: [Hook; 1],
    pub(crate) post_tool_use: [Hook; 1],
    pub(crate) post_tool_use_failure: [Hook; 1],
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hook {
    /// Null is every tool.
    pub(crate) matcher: Option<&'static str>,
    pub(crate) hook_callback_ids: [&'static str; 1],
    /// In seconds.
    pub(crate) timeout: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<&'static str>,
}

/// The answer to a request of the program.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(crate) enum Answer<'a> {
    Success { request_id: &'a str, response: AnswerFields<'a> },
    Error { request_id: &'a str, error: &'static str },
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum AnswerFields<'a> {
    /// To a note: go on.
    Noted {
        #[serde(rename = "continue")]
        go_on: bool,
    },
    /// To our hook.
    Hook {
        #[serde(rename = "hookSpecificOutput")]
        output: HookOutput<'a>,
    },
    /// To the program's own rules.
    Permission(Permission<'a>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HookOutput<'a> {
    pub(crate) hook_event_name: &'static str,
    pub(crate) permission_decision: &'static str,
    pub(crate) permission_decision_reason: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "behavior", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Permission<'a> {
    Allow { updated_input: &'a Map<String, Value> },
    Deny { message: &'a str },
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct UserMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a str,
}
