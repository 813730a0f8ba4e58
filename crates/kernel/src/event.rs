//! Events: what happened, as the log keeps it.
//!
//! A stored event is read forever. A shape that must change becomes a new version beside the old, and
//! `samples/events.jsonl` holds one line of every version ever written.

use crate::Millis;
use crate::command::{Answer, RedBy};
use crate::config::{Config, Micros};
use crate::effect::Effect;
use crate::line_comment::LineComment;
use crate::probe::Probe;
use crate::rooms::{About, OwnTimes, Seat};
use crate::specs::{Mark, SpecState};
use crate::standstill::Reason;
use crate::words::{
    EffectEnd, GateCause, GoneBecause, LandingEnd, NoteKind, PersonNeeded, RequestKind, Verdict,
};
use crate::world::{
    AskedCall, BudgetScope, HeldUp, Holder, InDoubt, Landed, Proposed, PullRequest, SentBack, Tariff,
};
use machines::names::{
    AgentName, ApprovalId, ChannelName, EffectId, RequestId, RunId, ServiceName, SpecId, TaskId, WorkerName,
};
use machines::suspended::{Suspension, Wrapped};
use machines::task::{ApprovalCause, TaskType, TicketStatus};
use machines::{architect, run, task, turn, worker};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Declares the events with their names in the log and the stream that each belongs to.
macro_rules! events {
    ($($(#[$meta:meta])* $name:ident = $kind:literal { $($(#[$fmeta:meta])* $field:ident : $type:ty),* $(,)? } in $stream:expr;)*) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($(#[$meta])* $name($name)),* }

        $(
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name { $($(#[$fmeta])* pub $field: $type),* }

            impl From<$name> for Event {
                fn from(event: $name) -> Event {
                    Event::$name(event)
                }
            }
        )*

        impl Event {
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            pub fn kind(&self) -> &'static str {
                match self { $(Event::$name(_) => $kind),* }
            }

            /// The stream that the event belongs to: `task/c-1`, `worker/A`, `run/c-1.1`, …
            pub fn stream(&self) -> String {
                match self { $(Event::$name(event) => { let stream: fn(&$name) -> String = $stream; stream(event) })* }
            }

            /// Hands the event to the `impl` that is for it.
            pub(crate) fn fold_into<W>(&self, world: &mut W) -> Result<(), String>
            where
                $(W: Fold<$name>),*
            {
                match self { $(Event::$name(event) => Fold::<$name>::fold(world, event)),* }
            }

            /// The event as the log stores it.
            pub fn encode(&self) -> String {
                match self {
                    $(Event::$name(event) => serde_json::to_string(event).expect("an event is plain data")),*
                }
            }

            /// Reads a stored event. An unknown kind was written by a version that this one is not.
            pub fn decode(kind: &str, data: &str) -> Result<Event, BadEvent> {
                match kind {
                    $($kind => serde_json::from_str::<$name>(data).map(Event::$name).map_err(|error| BadEvent::Malformed {
                        kind: kind.to_owned(),
                        why: error.to_string(),
                    }),)*
                    _ => Err(BadEvent::Unknown { kind: kind.to_owned() }),
                }
            }
        }
    };
}

/// What one event changes. Whoever folds a log has one of these for every event, or it does not compile.
pub(crate) trait Fold<E> {
    /// An error says why the event does not follow from those before it.
    fn fold(&mut self, event: &E) -> Result<(), String>;
}

/// Why a stored event cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadEvent {
    Unknown { kind: String },
    Malformed { kind: String, why: String },
}

impl std::fmt::Display for BadEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadEvent::Unknown { kind } => write!(f, "events of kind `{kind}` are not known to this version"),
            BadEvent::Malformed { kind, why } => write!(f, "an event of kind `{kind}` cannot be read: {why}"),
        }
    }
}

impl std::error::Error for BadEvent {}

impl Charged {
    /// Whose prices it is compared with.
    pub fn tariff(&self) -> Tariff {
        Tariff::of(&self.agent, self.model.as_ref())
    }
}

fn of_task(id: &TaskId) -> String {
    format!("task/{id}")
}

fn of_run(id: &RunId) -> String {
    format!("run/{id}")
}

fn of_agent(name: &AgentName) -> String {
    format!("agent/{name}")
}

fn of_worker(name: &WorkerName) -> String {
    format!("worker/{name}")
}

fn of_spec(id: &SpecId) -> String {
    format!("spec/{id}")
}

fn of_architect<E>(_: &E) -> String {
    "architect".to_owned()
}

fn of_channel(name: &ChannelName) -> String {
    format!("channel/{name}")
}

/// What is said in a room is part of the room's history.
fn of_seat(seat: &Seat) -> String {
    match seat {
        Seat::Room { channel, .. } => of_channel(channel),
        Seat::Architect => "architect".to_owned(),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An effect is part of its task's history; one without a task is the system's.
fn of_effect(task: Option<&TaskId>) -> String {
    task.map_or_else(|| SYSTEM.to_owned(), of_task)
}

/// A request is part of its task's history.
fn of_request(task: Option<&TaskId>, id: &RequestId) -> String {
    task.map_or_else(|| format!("request/{id}"), of_task)
}

const SYSTEM: &str = "system";

/// A time that was not written down yet when the event was.
fn is_unknown(at: &Millis) -> bool {
    *at == 0
}

fn of_system<E>(_: &E) -> String {
    SYSTEM.to_owned()
}

events! {
    /// A version of Adjutant wrote to this log for the first time: what a reader needs at least.
    WriterSeen = "writer_seen" { version: SmolStr } in of_system;

    TaskMoved = "task_moved" {
        id: TaskId, from: task::Status, to: task::Status, input: task::Event,
        /// The agent that the rules made the move for.
        #[serde(default, skip_serializing_if = "Option::is_none")] on_behalf_of: Option<AgentName>,
        #[serde(default, skip_serializing_if = "Option::is_none")] at: Option<Millis>,
    } in |e| of_task(&e.id);
    WorkerMoved = "worker_moved" { name: WorkerName, from: worker::State, to: worker::State, at: Millis, input: worker::Event } in |e| of_worker(&e.name);
    RunMoved = "run_moved" {
        id: RunId, from: SmolStr, to: SmolStr, state: run::State, input: Wrapped<run::Event>,
        /// Where it stood before, so that what it told its readers can be told again from this event alone.
        #[serde(default, skip_serializing_if = "Option::is_none")] stood: Option<Stood>,
    } in |e| of_run(&e.id);
    TurnMoved = "turn_moved" { channel: ChannelName, agent: AgentName, from: turn::State, to: turn::State, input: turn::Event } in |e| of_channel(&e.channel);
    ArchitectMoved = "architect_moved" { from: SmolStr, to: SmolStr, state: architect::State, input: Wrapped<architect::Event> } in |_| "architect".to_owned();

    TaskAdded = "task_added" {
        id: TaskId, title: String, body: String, task_type: TaskType, priority: u8, at: Millis,
        ticket: Option<SmolStr>, reopens: Option<TaskId>, plan: Option<Vec<String>>,
        reviewer: Option<SmolStr>, depends_on: Vec<TaskId>,
        /// When its ticket was made, where the ticket says so.
        #[serde(default, skip_serializing_if = "Option::is_none")] created: Option<Millis>,
        #[serde(default, skip_serializing_if = "Option::is_none")] plan_source: Option<task::PlanSource>,
        #[serde(default, skip_serializing_if = "Option::is_none")] proposed: Option<Proposed>,
    } in |e| of_task(&e.id);
    /// The task is another try at `of`, the first of them.
    TryAdded = "try_added" { id: TaskId, of: TaskId } in |e| of_task(&e.id);
    /// The task takes back what another one brought to main.
    Undoes = "undoes" { id: TaskId, of: TaskId } in |e| of_task(&e.id);
    ProposalAccepted = "proposal_accepted" { id: TaskId, by: SmolStr, at: Millis } in |e| of_task(&e.id);
    TaskEdited = "task_edited" {
        id: TaskId, title: Option<String>, body: Option<String>, priority: Option<u8>, plan: Option<Vec<String>>, reviewer: Option<SmolStr>,
        #[serde(default, skip_serializing_if = "Option::is_none")] plan_source: Option<task::PlanSource>,
    } in |e| of_task(&e.id);
    /// Whose workers are to do the task; none: whoever the ticket or the settings name.
    AgentWanted = "agent_wanted" { id: TaskId, agent: Option<AgentName> } in |e| of_task(&e.id);
    /// Whom the task's ticket names. Only an agent of the settings means anything.
    TicketNames = "ticket_names" { id: TaskId, assignee: Option<SmolStr> } in |e| of_task(&e.id);
    /// Another agent takes a task up that was begun.
    AgentTookOver = "agent_took_over" { id: TaskId, agent: AgentName } in |e| of_task(&e.id);
    DependencyAdded = "dependency_added" { id: TaskId, on: TaskId } in |e| of_task(&e.id);
    DependencyRemoved = "dependency_removed" { id: TaskId, on: TaskId } in |e| of_task(&e.id);
    Commented = "commented" { id: TaskId, at: Millis, by: SmolStr, comment: SmolStr, text: String } in |e| of_task(&e.id);
    /// A person keeps a comment on lines of the diff, or another text of one.
    DraftKept = "draft_kept" { id: TaskId, draft: SmolStr, at: Millis, by: SmolStr, comment: LineComment } in |e| of_task(&e.id);
    DraftDropped = "draft_dropped" { id: TaskId, draft: SmolStr, at: Millis, by: SmolStr } in |e| of_task(&e.id);
    /// All drafts of a task are sent as one numbered round. `runs`: how many runs there were before.
    RoundSent = "round_sent" { id: TaskId, number: u32, at: Millis, by: SmolStr, tip: Option<SmolStr>, note: String, runs: u32 } in |e| of_task(&e.id);
    TicketSeen = "ticket_seen" { id: SmolStr, status: TicketStatus, fingerprint: u64, opened: bool, task: Option<TaskId> } in |e| format!("ticket/{}", e.id);
    /// The ticket's file is gone, or is back. `blocked`: its absence blocked the task.
    TicketGone = "ticket_gone" { id: SmolStr, gone: bool, blocked: bool } in |e| format!("ticket/{}", e.id);

    LeaseGiven = "lease_given" { id: TaskId, holder: Holder, attempt: u32 } in |e| of_task(&e.id);
    LeaseEnded = "lease_ended" { id: TaskId, attempt: u32 } in |e| of_task(&e.id);
    /// A worker or runner was lost with the task in its hands.
    WorkerLost = "worker_lost" { id: TaskId, lost: u32 } in |e| of_task(&e.id);
    PlaceGiven = "place_given" { id: TaskId, tree: String, branch: String, session: SmolStr } in |e| of_task(&e.id);
    SessionUsed = "session_used" { id: TaskId } in |e| of_task(&e.id);
    SessionRenewed = "session_renewed" { id: TaskId, session: SmolStr } in |e| of_task(&e.id);
    TreeStands = "tree_stands" { id: TaskId, stands: bool } in |e| of_task(&e.id);
    TipMoved = "tip_moved" { id: TaskId, tip: SmolStr } in |e| of_task(&e.id);
    /// The next step is told this.
    NoteLeft = "note_left" { id: TaskId, note: SmolStr } in |e| of_task(&e.id);
    NotesTold = "notes_told" { id: TaskId } in |e| of_task(&e.id);
    SentBackTo = "sent_back" {
        id: TaskId, what: SentBack, #[serde(default, skip_serializing_if = "RedBy::is_tests")] by: RedBy,
        /// What led to the gate that sends it back.
        #[serde(default, skip_serializing_if = "GateCause::is_claim")] cause: GateCause,
    } in |e| of_task(&e.id);
    /// A landing failed: which tip against which main. A conflict names its files.
    LandingFailedOn = "landing_failed_on" { id: TaskId, tip: SmolStr, main: SmolStr, conflict: bool, files: Vec<String> } in |e| of_task(&e.id);
    /// A red gate that may not be the work's fault, until main's tests have said; or it is settled.
    GateDoubted = "gate_doubted" { id: TaskId, what: Option<InDoubt> } in |e| of_task(&e.id);
    LandingDoubted = "landing_doubted" { id: TaskId, doubted: bool } in |e| of_task(&e.id);
    /// A person starts the task over: what was counted and found of it is forgotten.
    Restarted = "restarted" { id: TaskId } in |e| of_task(&e.id);
    /// Tree, branch and session are gone; the next claim gives new ones.
    PlaceTaken = "place_taken" { id: TaskId } in |e| of_task(&e.id);
    EmptyDiffSeen = "empty_diff_seen" {
        id: TaskId, #[serde(default, skip_serializing_if = "GateCause::is_claim")] cause: GateCause,
    } in |e| of_task(&e.id);
    /// What the gate let through: whether it holds code, and why a person must look at it.
    GatePassed = "gate_passed" { id: TaskId, tip: Option<SmolStr>, has_code: bool, needs_person: Option<PersonNeeded> } in |e| of_task(&e.id);
    WaitsForApproval = "waits_for_approval" { id: TaskId, approval: ApprovalId } in |e| of_task(&e.id);
    WaitsForService = "waits_for_service" { id: TaskId, service: Option<ServiceName> } in |e| of_task(&e.id);
    UnfinishedAdded = "unfinished_added" { id: TaskId, effect: EffectId } in |e| of_task(&e.id);
    AfterwardsAdded = "afterwards_added" { id: TaskId, what: Effect } in |e| of_task(&e.id);
    AfterwardsTaken = "afterwards_taken" { id: TaskId } in |e| of_task(&e.id);
    GateAlone = "gate_alone" { id: TaskId, effect: Option<EffectId> } in |e| of_task(&e.id);

    TaskApproved = "task_approved" { id: TaskId, tip: Option<SmolStr>, by: SmolStr, at: Millis, note: String } in |e| of_task(&e.id);
    ApprovalVoided = "approval_voided" { id: TaskId } in |e| of_task(&e.id);
    Queued = "queued" { id: TaskId } in |e| of_task(&e.id);
    Dequeued = "dequeued" { id: TaskId } in |e| of_task(&e.id);
    LandingStarted = "landing_started" {
        id: TaskId, tip: SmolStr, effect: EffectId,
        #[serde(default, skip_serializing_if = "is_unknown")] at: Millis,
    } in |e| of_task(&e.id);
    LandingWritten = "landing_written" {
        id: TaskId, landed: Landed, effect: EffectId,
        #[serde(default, skip_serializing_if = "is_unknown")] at: Millis,
        /// Tickets whose files come to main with it, and were an agent's to make.
        #[serde(default, skip_serializing_if = "Vec::is_empty")] tickets: Vec<SmolStr>,
    } in |e| of_task(&e.id);
    /// The user's checkout is in the way; it is tried again.
    LandingHeldUp = "landing_held_up" {
        id: TaskId, why: Option<SmolStr>, #[serde(default, skip_serializing_if = "Option::is_none")] at: Option<Millis>,
    } in |e| of_task(&e.id);
    /// What it waits for, other than the checkout; it is tried again.
    LandingWaits = "landing_waits" {
        id: TaskId, what: HeldUp, #[serde(default, skip_serializing_if = "Option::is_none")] at: Option<Millis>,
    } in |e| of_task(&e.id);
    PullRequestOpened = "pull_request_opened" { id: TaskId, pull_request: PullRequest } in |e| of_task(&e.id);
    /// The landing ended without main having moved.
    LandingEnded = "landing_ended" { id: TaskId, why: LandingEnd } in |e| of_task(&e.id);
    TaskLanded = "task_landed" { id: TaskId, landed: Landed } in |e| of_task(&e.id);

    /// `by_person`: it is theirs, and stays until they remove it. The fleet makes and retires its own.
    WorkerSpawned = "worker_spawned" {
        name: WorkerName, agent: AgentName, at: Millis,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] by_person: bool,
    } in |e| of_worker(&e.name);

    RunOpened = "run_opened" {
        id: RunId, task: TaskId, agent: AgentName, holder: Holder, max_turns: u32, allowed_tools: Option<Vec<SmolStr>>,
        /// An agent outside goes on after its last run of the task, which it completed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] after_completed: bool,
    } in |e| of_run(&e.id);
    /// A worker took up a run that another had left.
    RunTaken = "run_taken" { id: RunId, holder: Holder } in |e| of_run(&e.id);
    StepUnderWay = "step_under_way" { id: RunId, effect: Option<EffectId> } in |e| of_run(&e.id);
    TurnsRaised = "turns_raised" { id: RunId, to: Option<u32> } in |e| of_run(&e.id);
    /// A step ended without DONE: `digest` is of its last message and of what stands in the tree.
    StepCompared = "step_compared" { id: RunId, digest: u64 } in |e| of_run(&e.id);
    StepRetried = "step_retried" { id: RunId, retried: bool } in |e| of_run(&e.id);
    /// Set aside before a step; given back when it has ended.
    Reserved = "reserved" { id: RunId, day: i64, amount: Micros } in |e| of_run(&e.id);
    Unreserved = "unreserved" { id: RunId } in |e| of_run(&e.id);
    Charged = "charged" {
        id: RunId, task: TaskId, agent: AgentName, worker: Option<WorkerName>, day: i64,
        turn: u32, cost: Micros, priced: bool, input_tokens: u64, output_tokens: u64,
        /// The model that the step was started with, where the settings name one.
        #[serde(default, skip_serializing_if = "Option::is_none")] model: Option<SmolStr>,
    } in |e| of_run(&e.id);
    BudgetRaised = "budget_raised" { scope: BudgetScope, task: Option<TaskId>, run: Option<RunId>, agent: Option<AgentName>, day: i64, by: Micros } in of_system;
    /// One row of the tool audit.
    ToolAudited = "tool_audited" {
        id: RunId, call: SmolStr, tool: SmolStr, turn: u32, digest: u64, status: run::ToolStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")] input: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] output: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")] millis: Option<u64>,
        /// The call was reported before, and begins now: a person has allowed it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] began: bool,
    } in |e| of_run(&e.id);
    /// Something about a run that no row takes, such as the death of a process that was paused.
    RunNoted = "run_noted" { id: RunId, note: String } in |e| of_run(&e.id);

    ApprovalAsked = "approval_asked" {
        id: ApprovalId, task: Option<TaskId>, run: Option<RunId>, cause: ApprovalCause, at: Millis,
        question: String, options: Vec<SmolStr>, call: Option<SmolStr>, scope: Option<BudgetScope>,
        #[serde(default, skip_serializing_if = "Option::is_none")] what: Option<AskedCall>,
        /// Whose budget it is about, where it is an agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")] agent: Option<AgentName>,
        /// The budget that was reached, as it stood.
        #[serde(default, skip_serializing_if = "Option::is_none")] limit: Option<Micros>,
    } in |e| format!("approval/{}", e.id);
    ApprovalDecided = "approval_decided" { id: ApprovalId, by: SmolStr, at: Millis, decision: Verdict, note: String } in |e| format!("approval/{}", e.id);
    /// A person has allowed this very call for the rest of the task.
    CallAllowed = "call_allowed" { id: TaskId, call: AskedCall, approval: ApprovalId } in |e| of_task(&e.id);
    /// Nobody waits for the answer in the process any more; it goes into the next prompt.
    QuestionDropped = "question_dropped" { id: RunId } in |e| of_run(&e.id);

    /// Somebody asks something that is answered in words. `task`: what it is about, `run`: whose agent asks.
    Requested = "requested" {
        id: RequestId, kind: RequestKind, task: Option<TaskId>, run: Option<RunId>, by: SmolStr, at: Millis, text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")] spec: Option<SpecId>,
        /// The tip of the work that is to be reviewed.
        #[serde(default, skip_serializing_if = "Option::is_none")] tip: Option<SmolStr>,
    } in |e| of_request(e.task.as_ref(), &e.id);
    RequestAnswered = "request_answered" {
        id: RequestId, task: Option<TaskId>, by: SmolStr, at: Millis, text: String,
        /// Nobody answered: it was given up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] abandoned: bool,
        /// The reply of the architect that gave it. Absent where a person or a rule did, and in logs of before.
        #[serde(default, skip_serializing_if = "Option::is_none")] reply: Option<EffectId>,
    } in |e| of_request(e.task.as_ref(), &e.id);
    /// The answer has reached whoever asked: it is not told again.
    AnswerTold = "answer_told" { id: RequestId, task: Option<TaskId> } in |e| of_request(e.task.as_ref(), &e.id);
    /// The agent's own plan takes the place of the one that it was given.
    PlanSubmitted = "plan_submitted" { id: TaskId, run: RunId, plan: Vec<String> } in |e| of_task(&e.id);
    /// The agent says in this step that the work is done. The step's end decides what that is worth.
    CompletionClaimed = "completion_claimed" { id: RunId, step: EffectId, summary: Option<String> } in |e| of_run(&e.id);

    EffectAsked = "effect_asked" { id: EffectId, what: Effect } in |e| of_effect(e.what.task());
    /// Done, or no longer wanted.
    EffectEnded = "effect_ended" { id: EffectId, task: Option<TaskId>, how: EffectEnd } in |e| of_effect(e.task.as_ref());
    EffectFailed = "effect_failed" { id: EffectId, task: Option<TaskId>, error: String, tries: u32 } in |e| of_effect(e.task.as_ref());

    /// `workers`: how many it is to have, where somebody said so.
    FleetSwitched = "fleet_switched" {
        running: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")] workers: Option<u32>,
    } in of_system;
    ConfigChanged = "config_changed" { config: Box<Config> } in of_system;
    /// The fleet stands still because of these, and says so. `again`: it said the same before it was started anew.
    StoodStill = "stood_still" {
        since: Millis, at: Millis, reasons: Vec<Reason>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] again: bool,
    } in of_system;
    /// How long whoever is named was suspended in this outage; nothing any more: it is forgotten.
    OutageCounted = "outage_counted" { who: Probe, service: ServiceName, since: Option<Millis>, spent: Millis } in of_system;
    HealthSeen = "health_seen" {
        service: ServiceName, healthy: bool, at: Millis, resets_at: Option<Millis>, probe: Option<Probe>,
        /// What the service answered.
        #[serde(default, skip_serializing_if = "Option::is_none")] error: Option<SmolStr>,
        /// It does not accept the credentials: no waiting helps.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] refused: bool,
    } in of_system;
 DiskSeen = "disk_seen" { full: Option<SmolStr>, #[serde(default, skip_serializing_if = "Option::is_none")] at: Option<Millis> } in of_system;
    MainTestsBegun = "main_tests_begun" { effect: EffectId } in of_system;
    /// What main's own tests say: under which settings, at which commit, by which command.
    MainTested = "main_tested" {
        of: SmolStr, main: SmolStr, at: Millis, command: Option<String>, red: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] ran: bool,
    } in of_system;
    /// They are to be run again; `forget`: what was known is void meanwhile.
    MainDoubted = "main_doubted" { why: SmolStr, forget: bool } in of_system;
    AnswerKept = "answer_kept" { scope: SmolStr, key: SmolStr, fingerprint: u64, command: SmolStr, answer: Answer } in |e| format!("key/{}", e.scope);

    /// An agent that Adjutant did not start is there. It gives signs of life, not every one of which is written down.
    AgentConnected = "agent_connected" { agent: AgentName, at: Millis } in |e| of_agent(&e.agent);
    HeartbeatSeen = "heartbeat_seen" { agent: AgentName, at: Millis } in |e| of_agent(&e.agent);
    /// A person lets an agent work and speak, or not. `reason` is theirs.
    AgentSwitched = "agent_switched" {
        agent: AgentName, enabled: bool, at: Millis, by: SmolStr,
        #[serde(default, skip_serializing_if = "Option::is_none")] reason: Option<String>,
    } in |e| of_agent(&e.agent);
    AgentGone = "agent_gone" { agent: AgentName, at: Millis, why: GoneBecause } in |e| of_agent(&e.agent);

    ChannelMade = "channel_made" {
        name: ChannelName, config: turn::TurnConfig,
        #[serde(default, skip_serializing_if = "is_default")] about: About,
    } in |e| of_channel(&e.name);
    ChannelClosed = "channel_closed" { name: ChannelName, at: Millis, by: SmolStr } in |e| of_channel(&e.name);
    /// `from`: where its place stood when it was removed before; absent where it was never there, or was not connected then.
    MemberAdded = "member_added" {
        channel: ChannelName, agent: AgentName,
        #[serde(default, skip_serializing_if = "OwnTimes::is_none")] times: OwnTimes,
        #[serde(default, skip_serializing_if = "Option::is_none")] from: Option<turn::State>,
    } in |e| of_channel(&e.channel);
    MemberRemoved = "member_removed" { channel: ChannelName, agent: AgentName } in |e| of_channel(&e.channel);
    /// An agent joins the ring of those who take turns, or leaves it.
    RingChanged = "ring_changed" { channel: ChannelName, agent: AgentName, joined: bool } in |e| of_channel(&e.channel);
    /// Who holds the turn. `late`: the time of whoever held it was over before it said anything, and that is not silence yet.
    TurnHeld = "turn_held" {
        channel: ChannelName, agent: Option<AgentName>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] late: bool,
    } in |e| of_channel(&e.channel);
    /// What the channel itself says: to all, or to one agent.
    ChannelSaid = "channel_said" { channel: ChannelName, at: Millis, to: Option<AgentName>, kind: SaidKind, text: String } in |e| of_channel(&e.channel);
    /// A person or a member said something. `held`: it is passed on when the turn that it came into is over, but for `to`, who has it at once.
    Posted = "posted" {
        channel: ChannelName, number: u64, at: Millis, by: SmolStr, agent: Option<AgentName>, text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] held: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")] to: Option<AgentName>,
    } in |e| of_channel(&e.channel);
    /// The turn that messages came into is over: everybody may hear them.
    MessagesReleased = "messages_released" { channel: ChannelName } in |e| of_channel(&e.channel);
    /// A member was given one message before its turn came.
    MessageHeard = "message_heard" { channel: ChannelName, agent: AgentName, number: u64 } in |e| of_channel(&e.channel);
    /// A member was given everything up to a message, or has dealt with it.
    ReceiptsMoved = "receipts_moved" {
        channel: ChannelName, agent: AgentName,
        #[serde(default, skip_serializing_if = "Option::is_none")] delivered: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")] consumed: Option<u64>,
    } in |e| of_channel(&e.channel);
    /// A member is passed over when its turn comes next, or not any more.
    MemberSkipped = "member_skipped" { channel: ChannelName, agent: AgentName, skipped: bool } in |e| of_channel(&e.channel);
    /// A member was alone when its turn ended, and comes again with the next message.
    MemberRests = "member_rests" { channel: ChannelName, agent: AgentName } in |e| of_channel(&e.channel);
    /// Nobody is given the turn before somebody says something, or somebody has.
    RoomRests = "room_rests" { channel: ChannelName, rests: bool } in |e| of_channel(&e.channel);
    /// Nobody of those in the queue can be given the turn as things stand. `ending`: only a program that is still coming to its
    /// end is in the way.
    RoomStalls = "room_stalls" {
        channel: ChannelName,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")] ending: bool,
    } in |e| of_channel(&e.channel);
    /// Adjutant was not there: a turn or a wait goes on with the time that it had left.
    TurnShifted = "turn_shifted" { channel: ChannelName, agent: AgentName, by: Millis } in |e| of_channel(&e.channel);

    /// An agent is hosted where it has a seat, in a session of its own there.
    SeatTaken = "seat_taken" { seat: Seat, agent: AgentName, session: SmolStr } in |e| of_seat(&e.seat);
    /// The session was begun; or a fresh one takes its place.
    SeatSessionUsed = "seat_session_used" { seat: Seat } in |e| of_seat(&e.seat);
    SeatSessionRenewed = "seat_session_renewed" { seat: Seat, session: SmolStr, retried: bool } in |e| of_seat(&e.seat);
    /// What it says is under way, or over.
    ReplyUnderWay = "reply_under_way" { seat: Seat, effect: Option<EffectId> } in |e| of_seat(&e.seat);
    /// The reply under way has decided what it was asked. It decides nothing more.
    ReplyDecided = "reply_decided" { seat: Seat, reply: EffectId, request: RequestId } in |e| of_seat(&e.seat);
    /// A reply was told to end; nothing begins in its session before it is gone.
    ReplyUnfinished = "reply_unfinished" { seat: Seat, effect: EffectId } in |e| of_seat(&e.seat);
    SeatReserved = "seat_reserved" { seat: Seat, day: i64, amount: Micros } in |e| of_seat(&e.seat);
    SeatUnreserved = "seat_unreserved" { seat: Seat } in |e| of_seat(&e.seat);
    SeatCharged = "seat_charged" {
        seat: Seat, agent: AgentName, day: i64, turn: u32, cost: Micros, priced: bool, input_tokens: u64, output_tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")] model: Option<SmolStr>,
    } in |e| of_seat(&e.seat);

    /// A request waits for the architect, or not any more.
    RequestQueued = "request_queued" { id: RequestId } in of_architect;
    RequestLeft = "request_left" { id: RequestId } in of_architect;
    /// What the architect said to it is no answer.
    RequestTried = "request_tried" { id: RequestId, why: SmolStr } in of_architect;
    RequestNoted = "request_noted" {
        id: RequestId, note: SmolStr, #[serde(default, skip_serializing_if = "NoteKind::is_plain")] kind: NoteKind,
    } in of_architect;
    RequestForPerson = "request_for_person" { id: RequestId } in of_architect;
    SpecSubmitted = "spec_submitted" {
        id: SpecId, version: u32, title: String, path: Option<String>, format: SmolStr, text: String, by: SmolStr, at: Millis,
    } in |e| of_spec(&e.id);
    /// What became of a spec; `feedback` is for its author.
    SpecReviewed = "spec_reviewed" { id: SpecId, state: SpecState, feedback: Option<String>, by: SmolStr, at: Millis } in |e| of_spec(&e.id);
    /// A task is a story of a spec.
    StoryLoaded = "story_loaded" {
        spec: SpecId, task: TaskId, key: SmolStr,
        #[serde(default, skip_serializing_if = "Option::is_none")] mark: Option<Mark>,
    } in |e| of_spec(&e.spec);

    /// What the architect is to do next, or to have done for it.
    ArchitectAsked = "architect_asked" { what: ArchitectWork, request: Option<SmolStr> } in |_| "architect".to_owned();
}

/// What a run's readers are told that neither its event nor its new state says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stood {
    pub task: TaskId,
    pub turn: u32,
    pub max_turns: u32,
    /// The session that it works in, where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SmolStr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
}

machines::wire_enum! {
    /// What a channel says by itself.
    pub enum SaidKind {
        /// To an agent: it holds the turn.
        Turn = "turn",
        Announcement = "announcement",
        Log = "log",
        /// The agent answered and did not end its turn. Older records have `log` instead.
        Unended = "unended",
    }
}

machines::wire_enum! {
    /// What the architect's table asks for.
    pub enum ArchitectWork {
        /// The workspace is made or brought up to date.
        Workspace = "workspace",
        /// The request in hand is answered.
        Request = "request",
        /// The answer goes to whoever asked.
        Answer = "answer",
        /// The stories of an approved spec are put on the board.
        Stories = "stories",
        /// A person is asked.
        Person = "person",
    }
}

/// The trigger of a turn that nobody ended by a word.
const AUTO: &str = "auto";

/// A transition of one of the five machines, in the form that all of them are logged in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    pub event: &'static str,
    pub machine: &'static str,
    pub agent_id: String,
    pub from: String,
    pub to: String,
    pub trigger: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

impl Event {
    /// The event as a transition, where it is one.
    /// The agent that it was done for, where the rules and not the agent itself did it.
    pub fn on_behalf_of(&self) -> Option<&AgentName> {
        match self {
            Event::TaskMoved(e) => e.on_behalf_of.as_ref(),
            _ => None,
        }
    }

    pub fn transition(&self) -> Option<Transition> {
        use machines::Machine;
        let of = |machine,
                  id: &dyn std::fmt::Display,
                  from: &dyn std::fmt::Display,
                  to: &dyn std::fmt::Display,
                  trigger: &str| Transition {
            event: "state_transition",
            machine,
            agent_id: id.to_string(),
            from: from.to_string(),
            to: to.to_string(),
            trigger: trigger.to_owned(),
            channel: None,
        };
        use machines::Wire;
        match self {
            Event::TaskMoved(e) => Some(of("task", &e.id, &e.from, &e.to, task::Task::kind(&e.input).name())),
            Event::WorkerMoved(e) => {
                Some(of("worker", &e.name, &e.from, &e.to, worker::Worker::kind(&e.input).name()))
            }
            Event::RunMoved(e) => {
                Some(of("run", &e.id, &e.from, &e.to, machines::suspended::event_name::<run::Run>(&e.input)))
            }
            Event::TurnMoved(e) => {
                let trigger = match &e.input {
                    turn::Event::TurnComplete { auto: true, .. } => AUTO,
                    turn::Event::TurnComplete { ended_by: Some(by), .. } => by.name(),
                    input => turn::Turn::kind(input).name(),
                };
                let channel = Some(e.channel.to_string());
                Some(Transition { channel, ..of("turn", &e.agent, &e.from, &e.to, trigger) })
            }
            Event::ArchitectMoved(e) => Some(of(
                "architect",
                &"architect",
                &e.from,
                &e.to,
                machines::suspended::event_name::<architect::Architect>(&e.input),
            )),
            _ => None,
        }
    }
}
