//! What the kernel asks of the world. Each is written down in the commit that asks for it, and its outcome comes
//! back as a command.

use crate::Millis;
use crate::rooms::Seat;
use machines::names::{
    AgentName, ApprovalId, ChannelName, EffectId, RequestId, RunId, ServiceName, TaskId, WorkerName,
};
use machines::task::TicketStatus;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Declares the effects with their names in the log and the task that each is about.
macro_rules! effects {
    ($($(#[$meta:meta])* $name:ident = $kind:literal { $($(#[$fmeta:meta])* $field:ident : $type:ty),* $(,)? } of $task:expr;)*) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "effect", deny_unknown_fields)]
        pub enum Effect {
            $($(#[$meta])* #[serde(rename = $kind)] $name { $($(#[$fmeta])* $field: $type),* }),*
        }

        impl Effect {
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            pub fn kind(&self) -> &'static str {
                match self { $(Effect::$name { .. } => $kind),* }
            }

            #[allow(unused_variables, reason = "each names what it is about among all that it brings")]
            pub fn task(&self) -> Option<&TaskId> {
                match self { $(Effect::$name { $($field),* } => $task),* }
            }
        }
    };
}

effects! {
    /// Make the task's tree, or find it again, on its branch.
    PrepareTree = "prepare_tree" { task: TaskId, worker: WorkerName, tree: String, branch: String } of Some(task);
    /// Start the agent's program, or take its session up again, with a prompt.
    StartStep = "start_step" {
        task: TaskId, worker: WorkerName, run: RunId, session: SmolStr,
        /// The session exists: resume it.
        resume: bool,
        prompt: Prompt, turns_left: u32,
    } of Some(task);
    /// End the process tree of a step or a gate that is no longer wanted, and say when it is gone.
    EndStep = "end_step" { task: TaskId, run: Option<RunId>, step: EffectId } of Some(task);
    /// Answer a call that waits for a person.
    AnswerCall = "answer_call" {
        task: TaskId, run: RunId, step: EffectId, call: SmolStr, allow: bool, note: String,
    } of Some(task);
    /// Say something to an agent at work.
    TellAgent = "tell_agent" { task: TaskId, run: RunId, step: EffectId, text: String } of Some(task);
    /// Commit what is left over, look at the diff, run the tests.
    RunGate = "run_gate" { task: TaskId, worker: Option<WorkerName>, max_steps_reached: bool } of Some(task);
    /// Save everything in the tree to a ref.
    SaveWork = "save_work" { task: TaskId } of Some(task);
    /// Save everything in the tree to a ref, then remove the tree. `start_over`: the branch too is saved and removed, so that
    /// the next tree is made on main.
    RemoveTree = "remove_tree" {
        task: TaskId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        start_over: bool,
    } of Some(task);
    /// Merge main with the approved tip, and run the tests on the result.
    TestMerge = "test_merge" { task: TaskId, tip: SmolStr } of Some(task);
    /// Run main's own tests, as a landing's are run. `again`: also where they are known to pass.
    TestMain = "test_main" { again: bool } of None;
    /// Move main from `old` to `merge`, and to nothing else.
    MoveMain = "move_main" { task: TaskId, tip: SmolStr, merge: SmolStr, old: SmolStr } of Some(task);
    /// Write the task's status to its ticket.
    WriteTicket = "write_ticket" {
        task: TaskId, ticket: SmolStr, status: TicketStatus, note: Option<String>,
    } of Some(task);
    DeleteBranch = "delete_branch" { task: TaskId, branch: String } of Some(task);
    /// Run what the user wants done with a main that has moved to `merge`.
    RunLandedHook = "run_landed_hook" { task: TaskId, merge: SmolStr } of Some(task);
    /// Have an agent that Adjutant hosts say something outside of any task. `resume`: its session exists.
    StartReply = "start_reply" {
        seat: Seat, agent: AgentName, session: SmolStr, resume: bool, prompt: Say, turns_left: u32,
    } of None;
    /// Make or bring up to date what an agent reads in its seat: a checkout of main of its own.
    PrepareSeat = "prepare_seat" { seat: Seat } of None;
    /// End the process tree of a reply that is no longer wanted, and say when it is gone.
    EndReply = "end_reply" {
        seat: Seat, reply: EffectId,
        /// The agent itself has ended its turn by a call: its program may come to its own end first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        finish: bool,
    } of None;
    /// Answer a call of an agent that is speaking.
    AnswerInReply = "answer_in_reply" { seat: Seat, reply: EffectId, call: SmolStr, allow: bool, note: String } of None;
    /// Pass a message of the room on to an agent that is speaking.
    TellInReply = "tell_in_reply" { seat: Seat, reply: EffectId, number: u64 } of None;
    CheckHealth = "check_health" { service: ServiceName } of None;
    /// A timer: an effect with a due time. With the time at which it was set it says how long it waits, by whatever clock.
    Timer = "timer" {
        due: Millis, timer: Timer,
        /// Absent in logs of before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set_at: Option<Millis>,
    } of None;
}

/// What is due when a timer's time comes. Each belongs to a state that needs it and goes with that state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "timer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Timer {
    /// The next try after a failed step.
    Backoff { worker: WorkerName },
    /// A suspension that lasted too long.
    Suspension { run: RunId },
    /// A usage limit is reset: one agent goes first.
    Reset { service: ServiceName },
    /// Ask every service how it is.
    HealthPoll,
    /// A call that nobody answered.
    Question { approval: ApprovalId },
    /// An outside owner that gave no sign of life.
    OutsideLease { task: TaskId },
    /// A landing that waits for the user's checkout, for the remote or for its pull request.
    Checkout { task: TaskId },
    /// A turn in a channel, or a wait in it, that lasts too long.
    Turn { channel: ChannelName, agent: AgentName },
    /// Whoever holds the turn in a channel has said something, and nothing since.
    Silence { channel: ChannelName },
    /// An agent that is connected from outside gave no sign of life.
    Heartbeat { agent: AgentName },
    /// The architect asked a person who does not answer.
    Escalation,
    /// The architect's suspension lasts too long.
    ArchitectSuspension,
    /// The fleet stands still, and has not said why.
    Standstill,
}

/// What an agent is told that speaks outside of any task. The text is made by the runtime from its templates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Say {
    /// It is its turn in a room: what was said there after one message, up to another. `again`: it was in the middle of this turn.
    Turn { after: u64, upto: u64, again: bool },
    /// The architect has a request in hand: all that is known of it is in the World. What the reply decides, it decides of this
    /// request and, where that is a review, of this commit.
    Request {
        request: RequestId,
        /// Absent in logs of before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<SmolStr>,
    },
}

/// What the next step is told. The text is made by the runtime from its templates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "prompt", rename_all = "snake_case", deny_unknown_fields)]
pub enum Prompt {
    /// The first step of a task.
    Init { notes: Vec<String> },
    /// Go on.
    Step { notes: Vec<String> },
    /// The gate sent it back.
    TestFailure { output: String, notes: Vec<String> },
    /// The landing sent it back.
    MergeConflict { output: String, notes: Vec<String> },
}

impl Effect {
    /// When it is due, by the clock of whoever set it.
    pub fn due(&self) -> Option<Millis> {
        match self {
            Effect::Timer { due, .. } => Some(*due),
            _ => None,
        }
    }

    /// How long from now until it is due. It is never longer than it was when it was set: a clock that was set back since
    /// then delays nothing.
    pub fn left(&self, now: Millis) -> Option<Millis> {
        match self {
            Effect::Timer { due, set_at, .. } => {
                let whole = set_at.map_or(Millis::MAX, |set_at| due.saturating_sub(set_at).max(0));
                Some(due.saturating_sub(now).clamp(0, whole))
            }
            _ => None,
        }
    }
}
