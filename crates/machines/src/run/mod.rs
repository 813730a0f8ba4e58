//! The run machine: one agent at work on one task, turn by turn.
//!
//! Invariants: a turn past the limit is never paid for, the run asks a person instead; a tool that is not
//! allowed is refused before it runs; an event that no row takes changes nothing.

use crate::machine::{
    Caller, Checked, Code, FieldError, Index, Machine, Meta, Refusal, Role, Row, Who, allowed_kinds, row,
};
use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;
use std::sync::OnceLock;

use Action::*;
use Guard::*;
use Kind::*;
use State::*;

/// What an agent says of itself: by the one whose run it is, or for it by what it printed.
const REPORT: &[Who] = &[Who::Own, Who::Any(Role::System)];
const STEER: &[Who] = &[Who::Own, Who::Any(Role::Human), Who::Any(Role::System)];

#[rustfmt::skip]
const TABLE: &[Row<Run>] = &[
    //  from       event     guards                      actions                                                          to         who
    row(Idle,      Start,    &[HasValidTask],            &[InitializeExecution, UpdateStatus],                            Starting,  REPORT),
    row(Starting,  Step,     &[],                        &[ExecuteToolCall, AuditToolCall, IncrementTurn, UpdateStatus],  Running,   REPORT),
    row(Starting,  Error,    &[],                        &[CaptureError, UpdateStatus],                                   InError,   REPORT),
    row(Running,   Step,     &[WithinTurnLimit],         &[ExecuteToolCall, AuditToolCall, IncrementTurn, PublishEvent],  Running,   REPORT),
    row(Running,   Step,     &[AtTurnLimit],             &[PublishEvent, UpdateStatus],                                   Paused,    REPORT),
    row(Running,   Pause,    &[CanPause],                &[UpdateStatus, PublishEvent],                                   Paused,    STEER),
    row(Running,   Complete, &[],                        &[UpdateStatus, PublishEvent, Cleanup],                          Completed, REPORT),
    row(Running,   Error,    &[IsRecoverable],           &[CaptureError, UpdateStatus],                                   InError,   REPORT),
    row(Running,   Error,    &[NotRecoverable],          &[CaptureError, UpdateStatus, Cleanup],                          Idle,      REPORT),
    row(Running,   Abort,    &[],                        &[UpdateStatus, Cleanup],                                        Idle,      STEER),
    row(Paused,    Resume,   &[CanResume],               &[UpdateStatus],                                                 Running,   STEER),
    row(Paused,    Abort,    &[],                        &[UpdateStatus, Cleanup],                                        Idle,      STEER),
    row(InError,   Resume,   &[CanResume, IsRecoverable], &[UpdateStatus],                                                Running,   STEER),
    row(InError,   Abort,    &[],                        &[Cleanup, UpdateStatus],                                        Idle,      STEER),
    row(Completed, Start,    &[HasValidTask],            &[InitializeExecution, UpdateStatus],                            Starting,  REPORT),
    row(Starting,  Abort,    &[],                        &[Cleanup, UpdateStatus],                                        Idle,      STEER),
];

crate::wire_enum! {
    pub enum State {
        /// Available, without a task. Also where an abort and an unrecoverable error lead.
        Idle = "idle",
        /// The session is being opened; the first turn moves it on.
        Starting = "starting",
        /// At work: each STEP is a turn whose tools may run.
        Running = "running",
        /// Waits for a person or a budget. A decision resumes or aborts it.
        Paused = "paused",
        /// `error` on the wire. Waits for a retry or an abort.
        InError = "error",
        /// Finished. Not final: a new task may be started from here.
        Completed = "completed",
    }
}

crate::wire_enum! {
    pub enum Kind {
        Start = "START",
        Step = "STEP",
        Pause = "PAUSE",
        Resume = "RESUME",
        Error = "ERROR",
        Complete = "COMPLETE",
        Abort = "ABORT",
    }
}

crate::wire_enum! {
    pub enum Guard {
        /// The task is ASSIGNED or IN_PROGRESS, the agent is an assignee, and its worker or outside owner holds the
        /// lease.
        HasValidTask = "hasValidTask",
        /// `currentTurn < maxTurns`.
        WithinTurnLimit = "withinTurnLimit",
        /// Not `withinTurnLimit`: exactly one of the two takes a STEP.
        AtTurnLimit = "atTurnLimit",
        /// The run is `running`.
        CanPause = "canPause",
        /// The run is `paused` or `error`.
        CanResume = "canResume",
        /// For ERROR, what the event says; for RESUME, what the last ERROR said.
        IsRecoverable = "isRecoverable",
        NotRecoverable = "!isRecoverable",
    }
}

crate::wire_enum! {
    pub enum Action {
        /// Turns, errors and limits begin anew.
        InitializeExecution = "initializeExecution",
        /// The new state is kept and published.
        UpdateStatus = "updateStatus",
        IncrementTurn = "incrementTurn",
        CaptureError = "captureError",
        /// The turn's calls begin, each published. Those that need a person wait for one.
        ExecuteToolCall = "executeToolCall",
        /// Each call of the turn is a row of the audit.
        AuditToolCall = "auditToolCall",
        /// What happened is published to the run's readers.
        PublishEvent = "publishEvent",
        /// What the run holds is given back: process, question, money set aside.
        Cleanup = "cleanup",
    }
}

crate::wire_enum! {
    pub enum PauseReason {
        UserInput = "user_input",
        ApprovalRequired = "approval_required",
        Confirmation = "confirmation",
        TurnLimit = "turn_limit",
        Budget = "budget",
    }
}

crate::wire_enum! {
    pub enum ToolStatus {
        Pending = "pending",
        Running = "running",
        Complete = "complete",
        Error = "error",
    }
}

crate::wire_enum! {
    /// What kind of agent a run is of; it decides the turn limit where nothing else does.
    pub enum AgentKind {
        Task = "task",
        Conversational = "conversational",
        Background = "background",
    }
}

/// Turns that a run may take, and the range that any override keeps to.
pub const TURN_LIMIT_MIN: u32 = 1;
pub const TURN_LIMIT_MAX: u32 = 200;

impl AgentKind {
    pub fn turn_limit(self) -> u32 {
        match self {
            AgentKind::Task => 50,
            AgentKind::Conversational => 100,
            AgentKind::Background => 200,
        }
    }
}

/// The narrowest scope that says a limit wins: the run, then the project, then the kind of agent.
pub fn turn_limit(run: Option<u32>, project: Option<u32>, kind: AgentKind) -> u32 {
    run.or(project).unwrap_or_else(|| kind.turn_limit()).clamp(TURN_LIMIT_MIN, TURN_LIMIT_MAX)
}

/// A run. `task` is a fact about the world that comes in for the step; it is never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    pub state: State,
    pub current_turn: u32,
    pub max_turns: u32,
    /// Absent: every tool. Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<std::sync::Arc<[SmolStr]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<PauseReason>,
    /// The last turn that was taken, so that the same STEP again is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<StepMark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskFacts>,
}

/// What the run is told of its task: its status, and whether this run's worker may work on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFacts {
    pub id: SmolStr,
    pub status: crate::task::Status,
    /// The agent is an assignee and its worker, or outside owner, holds the lease.
    pub mine: bool,
    /// The session that the agent works in.
    #[serde(default, rename = "sessionId", skip_serializing_if = "Option::is_none")]
    pub session: Option<SmolStr>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastError {
    pub code: SmolStr,
    pub message: String,
    pub recoverable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepMark {
    pub turn: u32,
    /// As hexadecimal text: many readers of JSON keep only 53 bits of a number.
    #[serde(with = "hex")]
    pub digest: u64,
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(digest: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{digest:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "UPPERCASE", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    Start {
        task_id: SmolStr,
        prompt: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<Options>,
    },
    /// One turn's message is complete, and none of its tools has run.
    Step {
        turn: u32,
        #[serde(default)]
        tool_calls: Vec<ToolCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// What the turn used, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// The calls, by their place in the list, that do not begin with this turn. Never sent: the kernel knows it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        marks: Vec<(usize, Mark)>,
    },
    Pause {
        reason: PauseReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Value>,
    },
    Resume {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_turns: Option<u32>,
    },
    Error {
        error: AppError,
        recoverable: bool,
    },
    Complete {
        result: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        turn_count: u32,
    },
    Abort {
        reason: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<std::sync::Arc<[SmolStr]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: SmolStr,
    pub tool: SmolStr,
    pub input: serde_json::Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    pub status: ToolStatus,
}

crate::wire_enum! {
    /// Why a call does not begin with the turn that reports it.
    pub enum Mark {
        /// It began in an earlier turn, and this is its result.
        Earlier = "earlier",
        /// A person decides first whether it may be made.
        Asked = "asked",
    }
}

/// What a turn used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    /// In US dollars; absent if the agent does not know its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The highest cost and the most tokens that one turn can report: more is a slip, and would use up every budget.
pub const TURN_COST_MAX: f64 = 1_000.0;
pub const TURN_TOKENS_MAX: u64 = 100_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppError {
    pub code: SmolStr,
    pub message: String,
    #[serde(default)]
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// An event from outside: the members that the source document's schemas require must be there, and there are no others.
/// What is stored is read by the types alone.
pub fn as_sent(event: Value) -> Result<Value, FieldError> {
    let Value::Object(event) = event else { return Ok(event) };
    check_members(&event)?;
    if event.get("error").and_then(Value::as_object).is_some_and(|error| !error.contains_key("status")) {
        return Err(FieldError::new("error.status", "error.status is required"));
    }
    let kind = event.get("type").and_then(Value::as_str).and_then(Kind::read);
    if kind == Some(Kind::Step) && !event.contains_key("toolCalls") {
        return Err(FieldError::new(
            "toolCalls",
            "toolCalls is required; a turn without calls has an empty list",
        ));
    }
    Ok(Value::Object(event))
}

/// Refuses a member that the event does not have.
pub fn check_members(event: &serde_json::Map<String, Value>) -> Result<(), FieldError> {
    let kind = event.get("type").and_then(Value::as_str).and_then(Kind::read);
    let Some(kind) = kind else { return Ok(()) };
    let known: &[&str] = match kind {
        Kind::Start => &["type", "taskId", "prompt", "options"],
        Kind::Step => &["type", "turn", "toolCalls", "output", "usage"],
        Kind::Pause => &["type", "reason", "context"],
        Kind::Resume => &["type", "feedback", "input", "maxTurns"],
        Kind::Error => &["type", "error", "recoverable"],
        Kind::Complete => &["type", "result", "diff", "turnCount"],
        Kind::Abort => &["type", "reason"],
    };
    only(kind.name(), event, known)?;
    if let Some(Value::Object(options)) = event.get("options") {
        only("options", options, &["maxTurns", "allowedTools", "model", "temperature"])?;
    }
    if let Some(Value::Object(usage)) = event.get("usage") {
        only("usage", usage, &["inputTokens", "outputTokens", "cost"])?;
    }
    if let Some(Value::Array(calls)) = event.get("toolCalls") {
        for call in calls.iter().filter_map(Value::as_object) {
            only("toolCalls", call, &["id", "tool", "input", "output", "duration", "status"])?;
        }
    }
    if let Some(Value::Object(error)) = event.get("error") {
        only("error", error, &["code", "message", "status", "details"])?;
    }
    Ok(())
}

fn only(
    what: &'static str,
    members: &serde_json::Map<String, Value>,
    known: &[&str],
) -> Result<(), FieldError> {
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let message =
                format!("{what} has no member `{}`: it takes {}", name.escape_debug(), known.join(", "));
            Err(FieldError::new(what, message))
        }
        None => Ok(()),
    }
}

/// What a step asks of the world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    AuditTools { turn: u32, calls: usize },
    Release,
    Publish { event: StreamEvent },
}

/// What readers of the run's stream see. An event has its members in `payload`; one that asks a person is the workflow's and
/// has them beside its type, as the source document has both.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StreamEvent {
    Agent(AgentEvent),
    Tool(ToolEvent),
    Workflow(WorkflowEvent),
    Token(TokenEvent),
}

/// A piece of what the agent writes, as it comes. No row publishes it: it is part of no turn yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum TokenEvent {
    #[serde(rename = "stream:token")]
    Token { text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum ToolEvent {
    #[serde(rename = "tool:start")]
    Start { id: SmolStr, tool: SmolStr, input: serde_json::Map<String, Value> },
    #[serde(rename = "tool:result")]
    Result {
        id: SmolStr,
        tool: SmolStr,
        output: String,
        /// In milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration: Option<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "payload", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    #[serde(rename = "state:update")]
    StateUpdate {
        status: State,
        turn: u32,
        /// What the agent wrote in its first turn, which no other event tells of.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// What the completed run changed, as its agent reports it.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        /// What whoever resumed the run said.
        #[serde(skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
    #[serde(rename = "agent:starting")]
    Starting {
        task_id: SmolStr,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<SmolStr>,
    },
    #[serde(rename = "agent:step")]
    Step {
        turn: u32,
        /// What the agent wrote in this turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    #[serde(rename = "agent:paused")]
    Paused { reason: PauseReason, turn: u32 },
    #[serde(rename = "agent:error")]
    Error { error: String, code: SmolStr, recoverable: bool },
    #[serde(rename = "agent:completed")]
    Completed { turn_count: u32, result: String },
    #[serde(rename = "agent:cleanup")]
    Cleanup { status: State },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum WorkflowEvent {
    #[serde(rename = "approval:requested")]
    ApprovalRequested {
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<SmolStr>,
        reason: &'static str,
        current_turn: u32,
        max_turns: u32,
    },
}

impl From<TokenEvent> for StreamEvent {
    fn from(event: TokenEvent) -> Self {
        StreamEvent::Token(event)
    }
}

impl From<AgentEvent> for StreamEvent {
    fn from(event: AgentEvent) -> Self {
        StreamEvent::Agent(event)
    }
}

impl From<ToolEvent> for StreamEvent {
    fn from(event: ToolEvent) -> Self {
        StreamEvent::Tool(event)
    }
}

impl From<WorkflowEvent> for StreamEvent {
    fn from(event: WorkflowEvent) -> Self {
        StreamEvent::Workflow(event)
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            state: Idle,
            current_turn: 0,
            max_turns: AgentKind::Task.turn_limit(),
            allowed_tools: None,
            last_error: None,
            pause_reason: None,
            last_step: None,
            task: None,
        }
    }
}

impl Run {
    /// A limit, a call or a budget asks a person, whether a STEP met it or a PAUSE came before one could.
    fn publish_pause(&self, reason: PauseReason, effects: &mut Vec<Effect>) {
        publish(effects, AgentEvent::Paused { reason, turn: self.current_turn });
        let asks = match reason {
            PauseReason::TurnLimit => Some("turn_limit_reached"),
            PauseReason::ApprovalRequired => Some("approval_required"),
            PauseReason::Budget => Some("budget_reached"),
            PauseReason::UserInput | PauseReason::Confirmation => None,
        };
        if let Some(reason) = asks {
            let event = WorkflowEvent::ApprovalRequested {
                task_id: self.task.as_ref().map(|task| task.id.clone()),
                reason,
                current_turn: self.current_turn,
                max_turns: self.max_turns,
            };
            publish(effects, event);
        }
    }

    pub fn tool_allowed(&self, tool: &str) -> bool {
        is_own_tool(tool)
            || self.allowed_tools.as_ref().is_none_or(|tools| tools.iter().any(|known| known == tool))
    }

    fn check_step(&self, event: &Event, turn: u32, calls: &[ToolCall]) -> Result<Checked, Refusal> {
        if turn < 1 {
            return Err(invalid(self, event, "turn", "turn must be 1 or more"));
        }
        // A report that arrives twice is answered as it was the first time, wherever the run has come to since.
        if self.last_step.is_some_and(|last| last.turn == turn && last.digest == digest(event)) {
            return Ok(Checked::Repeated);
        }
        // Where no row takes a STEP at all, the state is the better answer than the turn.
        if !matches!(self.state, Starting | Running) {
            return Ok(Checked::New);
        }
        let next = self.current_turn.saturating_add(1);
        if turn != next {
            let message =
                format!("turn {turn} was reported, but the next turn is {next}; nothing of it was executed");
            return Err(Refusal::of(self, event, Code::StaleTurn, message));
        }
        // Every call is looked at before any runs: a turn is never half executed.
        if let Some(call) = calls.iter().find(|call| !self.tool_allowed(&call.tool)) {
            let tools = self.allowed_tools.as_deref().unwrap_or_default().join(", ");
            let message = format!(
                "tool `{}` is not allowed, so none of the turn's calls was run; allowed: [{tools}]; change `allowed_tools` of the agent",
                call.tool
            );
            return Err(Refusal::of(self, event, Code::AgentToolNotAllowed, message));
        }
        Ok(Checked::New)
    }
}

/// How programs name the tools by which an agent speaks to Adjutant itself. Its settings say nothing about them, and nobody
/// is asked before one is called: each is a request that the rules decide.
pub const OWN_TOOLS: &str = "mcp__adjutant__";

pub fn is_own_tool(tool: &str) -> bool {
    tool.starts_with(OWN_TOOLS)
}

impl Machine for Run {
    const NAME: &'static str = "run";
    const SEED: &'static str = "004";
    const INITIAL: State = Idle;
    const TABLE: &'static [Row<Self>] = TABLE;
    const FINAL: &'static [State] = &[];

    type State = State;
    type Kind = Kind;
    type Guard = Guard;
    type Action = Action;
    type Event = Event;
    type Effect = Effect;

    fn index() -> &'static Index {
        static INDEX: OnceLock<Index> = OnceLock::new();
        INDEX.get_or_init(Index::of::<Self>)
    }

    fn state(&self) -> State {
        self.state
    }

    fn enter(&mut self, state: State) {
        self.state = state;
    }

    fn kind(event: &Event) -> Kind {
        match event {
            Event::Start { .. } => Start,
            Event::Step { .. } => Step,
            Event::Pause { .. } => Pause,
            Event::Resume { .. } => Resume,
            Event::Error { .. } => Error,
            Event::Complete { .. } => Complete,
            Event::Abort { .. } => Abort,
        }
    }

    fn check(&self, event: &Event) -> Result<Checked, Refusal> {
        match event {
            Event::Start { prompt, options, .. } => {
                if prompt.trim().is_empty() {
                    return Err(invalid(self, event, "prompt", "prompt must not be empty"));
                }
                let options = options.as_ref();
                check_limit(self, event, options.and_then(|o| o.max_turns))?;
                if options.and_then(|o| o.temperature).is_some_and(|t| !(0.0..=1.0).contains(&t)) {
                    return Err(invalid(self, event, "temperature", "temperature must be between 0 and 1"));
                }
            }
            Event::Step { turn, tool_calls, usage, .. } => {
                if let Some(usage) = usage {
                    check_usage(self, event, usage)?;
                }
                return self.check_step(event, *turn, tool_calls);
            }
            Event::Resume { max_turns, .. } => check_limit(self, event, *max_turns)?,
            Event::Complete { turn_count, .. } if *turn_count < 1 => {
                return Err(invalid(self, event, "turnCount", "turnCount must be 1 or more"));
            }
            _ => {}
        }
        Ok(Checked::New)
    }

    fn holds(&self, guard: Guard, event: &Event) -> bool {
        match (guard, event) {
            (HasValidTask, Event::Start { task_id, .. }) => self.task.as_ref().is_some_and(|task| {
                use crate::task::Status;
                task.id == *task_id
                    && task.mine
                    && matches!(task.status, Status::Assigned | Status::InProgress)
            }),
            (HasValidTask, _) => false,
            (WithinTurnLimit, _) => self.current_turn < self.max_turns,
            // Defined as the negation, so that exactly one of the two rows takes a STEP.
            (AtTurnLimit, _) => !self.holds(WithinTurnLimit, event),
            (CanPause, _) => self.state == Running,
            (CanResume, _) => matches!(self.state, Paused | InError),
            (IsRecoverable, Event::Error { recoverable, .. }) => *recoverable,
            // A RESUME says nothing about the error: the one that was stored does.
            (IsRecoverable, _) => self.last_error.as_ref().is_some_and(|error| error.recoverable),
            (NotRecoverable, _) => !self.holds(IsRecoverable, event),
        }
    }

    fn perform(&mut self, action: Action, from: State, event: &Event, effects: &mut Vec<Effect>) {
        match (action, event) {
            (InitializeExecution, Event::Start { task_id, options, .. }) => {
                self.current_turn = 0;
                self.last_error = None;
                self.pause_reason = None;
                self.last_step = None;
                if let Some(options) = options {
                    self.max_turns = options.max_turns.unwrap_or(self.max_turns);
                    self.allowed_tools = options.allowed_tools.clone().or_else(|| self.allowed_tools.take());
                }
                let session_id = self.task.as_ref().and_then(|task| task.session.clone());
                publish(effects, AgentEvent::Starting { task_id: task_id.clone(), session_id });
            }
            (UpdateStatus, _) => {
                match event {
                    Event::Resume { max_turns, .. } => {
                        // A limit below the turns taken means that none is left, not that some were too many.
                        self.max_turns =
                            max_turns.map_or(self.max_turns, |limit| limit.max(self.current_turn));
                        self.pause_reason = None;
                        // The turn that met the limit was not run: the same report is a new one now.
                        self.last_step = self.last_step.filter(|last| last.turn <= self.current_turn);
                    }
                    Event::Pause { reason, .. } => self.pause_reason = Some(*reason),
                    Event::Step { turn, .. } if self.state == Paused => {
                        self.pause_reason = Some(PauseReason::TurnLimit);
                        self.last_step = Some(StepMark { turn: *turn, digest: digest(event) });
                    }
                    _ => {}
                }
                let (mut output, mut diff, mut feedback) = (None, None, None);
                match event {
                    Event::Step { output: said, .. } if from == Starting => output = said.clone(),
                    Event::Complete { diff: made, .. } => diff = made.clone(),
                    Event::Resume { feedback: said, input, .. } => {
                        let said = [said, input].into_iter().flatten().map(String::as_str);
                        let said = said.filter(|said| !said.trim().is_empty()).collect::<Vec<_>>().join("\n");
                        feedback = (!said.is_empty()).then_some(said);
                    }
                    _ => {}
                }
                let (status, turn) = (self.state, self.current_turn);
                publish(effects, AgentEvent::StateUpdate { status, turn, output, diff, feedback });
            }
            (IncrementTurn, _) => {
                self.current_turn = self.current_turn.saturating_add(1);
                self.last_step = Some(StepMark { turn: self.current_turn, digest: digest(event) });
            }
            (CaptureError, Event::Error { error, recoverable }) => {
                self.last_error = Some(LastError {
                    code: error.code.clone(),
                    message: error.message.clone(),
                    recoverable: *recoverable,
                });
                publish(
                    effects,
                    AgentEvent::Error {
                        error: error.message.clone(),
                        code: error.code.clone(),
                        recoverable: *recoverable,
                    },
                );
            }
            (ExecuteToolCall, Event::Step { tool_calls, marks, .. }) => {
                let begins = |at: usize| marks.iter().all(|(marked, _)| *marked != at);
                let calls = tool_calls.iter().enumerate().filter(|(at, _)| begins(*at));
                for (_, ToolCall { id, tool, input, .. }) in calls {
                    let start = ToolEvent::Start { id: id.clone(), tool: tool.clone(), input: input.clone() };
                    publish(effects, start);
                }
            }
            (AuditToolCall, Event::Step { turn, tool_calls, .. }) => {
                if !tool_calls.is_empty() {
                    effects.push(Effect::AuditTools { turn: *turn, calls: tool_calls.len() });
                }
            }
            (PublishEvent, _) => match event {
                Event::Step { .. } if self.state == Paused => {
                    self.publish_pause(PauseReason::TurnLimit, effects)
                }
                Event::Step { turn, output, .. } => {
                    publish(effects, AgentEvent::Step { turn: *turn, output: output.clone() });
                }
                Event::Pause { reason, .. } => self.publish_pause(*reason, effects),
                // Ours is the count that stands: a report can be wrong.
                Event::Complete { result, .. } => publish(
                    effects,
                    AgentEvent::Completed { turn_count: self.current_turn, result: result.clone() },
                ),
                // A resumed run has no event of its own: the state update says it, once.
                _ => {}
            },
            (Cleanup, _) => {
                effects.push(Effect::Release);
                publish(effects, AgentEvent::Cleanup { status: self.state });
            }
            // These pairs are in no row.
            (InitializeExecution | CaptureError | ExecuteToolCall | AuditToolCall, _) => {}
        }
    }

    fn no_row_code(&self, event: &Event) -> (Code, &'static str) {
        match (event, self.state) {
            (Event::Start { .. }, Idle | Completed) if self.task.is_none() => {
                (Code::TaskNotFound, "there is no such task for this agent; choose another")
            }
            (Event::Start { .. }, Idle | Completed) => (
                Code::AgentNoAvailableTask,
                "the task is not this agent's to work on: it must be ASSIGNED or IN_PROGRESS, assigned to the agent, and its lease held",
            ),
            (Event::Start { .. }, _) => (
                Code::AgentAlreadyRunning,
                "the agent already has a run under way; wait for it or use another agent",
            ),
            (Event::Resume { .. }, InError) => (
                Code::AgentExecutionError,
                "the last error cannot be recovered from; ABORT the run and start another",
            ),
            (Event::Complete { .. }, Idle | Completed) => {
                (Code::AgentNoAvailableTask, "no task is under way; it may have been cancelled")
            }
            (Event::Resume { .. }, Idle | Completed) => {
                (Code::AgentNotRunning, "there is no run to resume; START one")
            }
            (Event::Resume { .. }, _) => {
                (Code::AgentNotRunning, "the run goes on by itself; only a paused or failed one is resumed")
            }
            (_, Idle | Completed) => (Code::AgentNotRunning, "no run is under way; START one first"),
            (_, Starting) => (Code::AgentNotRunning, "the run has not begun; its first STEP moves it on"),
            (_, Paused) => (Code::AgentNotRunning, "the run is paused; RESUME it first, or ABORT it"),
            (_, InError) => {
                (Code::AgentNotRunning, "the run has failed; RESUME it where it can go on, or ABORT it")
            }
            (_, Running) => (Code::AgentNotRunning, "no row of the run's table takes this event here"),
        }
    }

    fn allowed(&self, event: &Event, by: Option<Caller>) -> Vec<&'static str> {
        let hopeless =
            self.state == InError && !self.last_error.as_ref().is_some_and(|error| error.recoverable);
        let open = allowed_kinds(self, event, by).into_iter().filter(|kind| !(hopeless && *kind == Resume));
        open.map(|kind| kind.name()).collect()
    }

    fn meta(state: State) -> Vec<(&'static str, Meta)> {
        let facts = |start, active, tools, input, decision| {
            vec![
                ("canStart", Meta::Is(start)),
                ("hasActiveTask", Meta::Is(active)),
                ("resourcesAllocated", Meta::Is(active)),
                ("canExecuteTools", Meta::Is(tools)),
                ("awaitingInput", Meta::Is(input)),
                ("requiresDecision", Meta::Is(decision)),
            ]
        };
        match state {
            Idle | Completed => facts(true, false, false, false, false),
            Starting => facts(false, true, false, false, false),
            Running => facts(false, true, true, false, false),
            Paused => facts(false, true, false, true, false),
            InError => facts(false, true, false, false, true),
        }
    }
}

fn publish(effects: &mut Vec<Effect>, event: impl Into<StreamEvent>) {
    effects.push(Effect::Publish { event: event.into() });
}

fn check_usage(run: &Run, event: &Event, usage: &Usage) -> Result<(), Refusal> {
    if usage.cost.is_some_and(|cost| !(0.0..=TURN_COST_MAX).contains(&cost)) {
        return Err(invalid(run, event, "usage", "usage.cost must be 0 to 1000 US dollars"));
    }
    if usage.input_tokens.max(usage.output_tokens) > TURN_TOKENS_MAX {
        return Err(invalid(run, event, "usage", "usage has more than 100000000 tokens in one turn"));
    }
    Ok(())
}

fn invalid(run: &Run, event: &Event, field: &'static str, message: &'static str) -> Refusal {
    Refusal::of(run, event, Code::InvalidField, message).with(vec![FieldError::new(field, message)])
}

fn check_limit(run: &Run, event: &Event, limit: Option<u32>) -> Result<(), Refusal> {
    match limit {
        Some(limit) if !(TURN_LIMIT_MIN..=TURN_LIMIT_MAX).contains(&limit) => {
            Err(invalid(run, event, "maxTurns", "maxTurns must be between 1 and 200"))
        }
        _ => Ok(()),
    }
}

/// A fingerprint of a STEP's content (FNV-1a), stable across versions because it is stored.
fn digest(event: &Event) -> u64 {
    let mut hash = Digest(0xcbf2_9ce4_8422_2325);
    if let Event::Step { turn, tool_calls, output, .. } = event {
        hash.bytes(&turn.to_le_bytes());
        hash.text(output.as_deref().unwrap_or_default());
        for call in tool_calls {
            hash.text(&call.id);
            hash.text(&call.tool);
            hash.fields(&call.input);
        }
    }
    hash.0
}

struct Digest(u64);

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(yes) => self.bytes(if *yes { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.bytes(b"0");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"s");
                self.text(text);
            }
            Value::Array(items) => {
                self.bytes(b"[");
                self.bytes(&(items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(fields) => self.fields(fields),
        }
    }

    fn fields(&mut self, fields: &serde_json::Map<String, Value>) {
        self.bytes(b"{");
        self.bytes(&(fields.len() as u64).to_le_bytes());
        // By name: a client that writes its object again may do so in another order.
        let mut fields: Vec<_> = fields.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        for (name, value) in fields {
            self.text(name);
            self.value(value);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
