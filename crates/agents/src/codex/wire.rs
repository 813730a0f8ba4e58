//! The messages of `codex app-server`, in both directions: those that it prints, as far as somebody here looks at them, and those that
//! it is sent.
//!
//! A printed line that is JSON always reads as a [`Message`]; `crate::json` says what becomes of fields that do not fit.

use crate::json::{List, fit, objects, take};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message of JSON-RPC.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum Message {
    /// With an id: it waits for an answer.
    Request(Request),
    Notification(Notification),
    Response(Response),
    Unknown,
}

/// A request, with everything that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// As it is answered.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl From<Value> for Message {
    fn from(message: Value) -> Message {
        let Value::Object(mut fields) = message else { return Message::Unknown };
        // An id that is null is one.
        let (method, id) = (take::<Option<String>>(&mut fields, "method"), fields.swap_remove("id"));
        match (method, id) {
            (Some(method), Some(id)) => {
                Message::Request(Request { id, method, params: take(&mut fields, "params") })
            }
            (Some(method), None) => {
                Message::Notification(Notification::new(&method, take(&mut fields, "params")))
            }
            (None, Some(id)) => Message::Response(Response {
                id,
                error: take::<ResponseError>(&mut fields, "error").message,
                result: take(&mut fields, "result"),
            }),
            (None, None) => Message::Unknown,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) id: Value,
    pub(crate) error: Option<String>,
    pub(crate) result: ResultFields,
}

/// Something that happened in a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Notification {
    pub(crate) thread: Option<String>,
    pub(crate) event: Event,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    TurnStarted(TurnStarted),
    TurnCompleted(Turn),
    ItemStarted(Item),
    ItemCompleted(Item),
    MessageDelta(MessageDelta),
    OutputDelta(OutputDelta),
    TerminalInteraction(TerminalInteraction),
    TokenUsage(TokenUsageUpdated),
    RateLimits(RateLimits),
    Error(ErrorEvent),
    Warning(Warning),
    /// New kinds of message come often.
    Unknown,
}

impl Notification {
    fn new(method: &str, params: Value) -> Notification {
        let thread = params.get("threadId").and_then(Value::as_str).map(str::to_owned);
        let event = match method {
            "turn/started" => Event::TurnStarted(fit::<TurnStartedParams>(params).turn),
            "turn/completed" => Event::TurnCompleted(fit::<TurnCompleted>(params).turn),
            "item/started" => Event::ItemStarted(fit::<ItemParams>(params).item),
            "item/completed" => Event::ItemCompleted(fit::<ItemParams>(params).item),
            "item/agentMessage/delta" => Event::MessageDelta(fit(params)),
            "item/commandExecution/outputDelta" => Event::OutputDelta(fit(params)),
            "item/commandExecution/terminalInteraction" => Event::TerminalInteraction(fit(params)),
            "thread/tokenUsage/updated" => Event::TokenUsage(fit(params)),
            "account/rateLimits/updated" => Event::RateLimits(fit::<RateLimitsUpdated>(params).rate_limits),
            "error" => Event::Error(fit(params)),
            "warning" | "guardianWarning" => Event::Warning(fit(params)),
            _ => Event::Unknown,
        };
        Notification { thread, event }
    }
}

/// Something that the agent says or does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(crate) struct Item {
    pub(crate) id: Option<String>,
    /// The files that it changes.
    pub(crate) changes: List<Change>,
    pub(crate) what: ItemKind,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum ItemKind {
    AgentMessage(AgentMessage),
    CommandExecution(CommandExecution),
    FileChange(FileChange),
    McpToolCall(McpToolCall),
    #[default]
    Unknown,
}

impl From<Value> for Item {
    fn from(item: Value) -> Item {
        let ItemFields { id, kind, changes } = fit(item.clone());
        let what = match kind.as_str() {
            "agentMessage" => ItemKind::AgentMessage(fit(item)),
            "commandExecution" => ItemKind::CommandExecution(fit(item)),
            "fileChange" => ItemKind::FileChange(fit(item)),
            "mcpToolCall" => ItemKind::McpToolCall(fit(item)),
            _ => ItemKind::Unknown,
        };
        Item { id, changes, what }
    }
}

/// A change of one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum Change {
    File {
        path: String,
        kind: ChangeKind,
        diff: Value,
    },
    /// It names no file, and is kept whole.
    Unknown(Value),
}

impl Default for Change {
    fn default() -> Self {
        Change::Unknown(Value::Null)
    }
}

impl From<Value> for Change {
    fn from(change: Value) -> Change {
        let ChangeFields { path, kind, diff } = fit(change.clone());
        match path {
            Some(path) => Change::File { path, kind, diff },
            None => Change::Unknown(change),
        }
    }
}

/// The kind of an error.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub(crate) enum ErrorInfo {
    Word(String),
    /// Objects by kind, of which one names the status that the service answered with.
    Details {
        status: Option<u16>,
        /// A message that came when its turn was over.
        not_steerable: bool,
    },
    #[default]
    Nothing,
}

impl From<Value> for ErrorInfo {
    fn from(info: Value) -> ErrorInfo {
        match info {
            Value::String(word) => ErrorInfo::Word(word),
            Value::Object(kinds) => ErrorInfo::Details {
                not_steerable: kinds.get("activeTurnNotSteerable").is_some_and(|kind| !kind.is_null()),
                status: kinds.into_iter().find_map(|(_, kind)| {
                    fit::<HttpStatus>(kind).status.and_then(|status| status.try_into().ok())
                }),
            },
            _ => ErrorInfo::Nothing,
        }
    }
}

impl ErrorInfo {
    pub(crate) fn word(&self) -> &str {
        match self {
            ErrorInfo::Word(word) => word,
            _ => "",
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            ErrorInfo::Details { status, .. } => *status,
            _ => None,
        }
    }
}

objects! {
    struct ResponseError {
        message: Option<String>,
    }
    /// Of `thread/start` and `thread/resume` the first three, of `turn/start` the last.
    struct ResultFields {
        approval_policy: String = "approvalPolicy",
        /// Whatever stands here and is not known does not ask us.
        approvals_reviewer: Option<Value> = "approvalsReviewer",
        thread: Named,
        turn: Named,
    }
    struct Named {
        id: Option<String>,
    }

    /// The program asks whether it may run a command or change files.
    struct Approval {
        thread: String = "threadId",
        turn: String = "turnId",
        item: String = "itemId",
        command: Option<String>,
        kind: Option<Value>,
        cwd: String,
        /// A change that is for a whole directory.
        grant_root: Option<IgnoredAny> = "grantRoot",
    }

    struct TurnStartedParams {
        turn: TurnStarted,
    }
    struct TurnStarted {
        id: Option<String>,
    }
    struct TurnCompleted {
        turn: Turn,
    }
    struct Turn {
        status: String,
        error: TurnError,
    }
    struct TurnError {
        message: Option<String>,
        details: Option<String> = "additionalDetails",
        info: ErrorInfo = "codexErrorInfo",
    }
    struct HttpStatus {
        status: Option<u64> = "httpStatusCode",
    }

    struct ItemParams {
        item: Item,
    }
    struct ItemFields {
        id: Option<String>,
        kind: String = "type",
        changes: List<Change>,
    }
    struct AgentMessage {
        text: String,
    }
    struct CommandExecution {
        status: String,
        /// A number. Whatever else stands here says that the command ran, too.
        exit_code: Option<Value> = "exitCode",
        output: String = "aggregatedOutput",
        duration_ms: Option<u64> = "durationMs",
    }
    struct FileChange {
        status: String,
    }
    struct ChangeFields {
        path: Option<String>,
        kind: ChangeKind,
        diff: Value,
    }
    struct ChangeKind {
        /// A word. It is passed on as it is.
        kind: Value = "type",
        move_path: Option<String>,
    }
    struct McpToolCall {
        server: String,
        tool: String,
        arguments: Map<String, Value>,
        status: String,
        result: McpResult,
        error: McpError,
        duration_ms: Option<u64> = "durationMs",
    }
    struct McpResult {
        is_error: Option<bool> = "isError",
        content: List<McpPart>,
    }
    struct McpPart {
        text: Option<String>,
    }
    struct McpError {
        message: String,
    }

    struct MessageDelta {
        item: Option<String> = "itemId",
        delta: String,
    }
    struct OutputDelta {
        item: String = "itemId",
    }
    struct TerminalInteraction {
        stdin: String,
    }
    struct TokenUsageUpdated {
        turn: Option<String> = "turnId",
        usage: TokenUsage = "tokenUsage",
    }
    struct TokenUsage {
        total: Tokens,
        last: Tokens,
    }
    struct Tokens {
        input: u64 = "inputTokens",
        output: u64 = "outputTokens",
    }
    struct RateLimitsUpdated {
        rate_limits: RateLimits = "rateLimits",
    }
    struct RateLimits {
        primary: Window,
        secondary: Window,
    }
    struct Window {
        used_percent: Option<f64> = "usedPercent",
        /// In seconds.
        resets_at: Option<i64> = "resetsAt",
    }
    struct ErrorEvent {
        error: TurnError,
        will_retry: Option<bool> = "willRetry",
    }
    struct Warning {
        message: Option<String>,
    }

    /// A message that we sent, as the journal has it.
    struct SentMessage {
        input: List<SentText>,
    }
    struct SentText {
        text: String,
    }
}

/// A line of something that the program is sent, without its end.
pub(crate) fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("these types have no keys but strings")
}

/// A request of ours.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OwnRequest<'a, P> {
    pub(crate) method: &'a str,
    pub(crate) id: &'a str,
    pub(crate) params: P,
}

/// The answer to a request of the program.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer<'a> {
    Decision { id: &'a Value, result: Decision },
    Error { id: &'a Value, error: RpcError },
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Decision {
    pub(crate) decision: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: &'static str,
}

/// `thread/start`, or `thread/resume` with the thread.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadParams<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) approval_policy: &'static str,
    pub(crate) approvals_reviewer: &'static str,
    pub(crate) sandbox: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) developer_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exclude_turns: Option<bool>,
}

/// `turn/start`, or `turn/steer` with the turn that it is for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnParams<'a> {
    pub(crate) thread_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected_turn_id: Option<&'a str>,
    pub(crate) input: [TextInput<'a>; 1],
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "text")]
pub(crate) struct TextInput<'a> {
    pub(crate) text: &'a str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InterruptParams<'a> {
    pub(crate) thread_id: &'a str,
    pub(crate) turn_id: &'a str,
}
