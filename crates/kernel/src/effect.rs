//! What the kernel asks of the world. Each is written down in the commit that asks for it, and its outcome comes
//! back as a command.

use crate::Millis;
use crate::happened::{Happened, OutcomeKind};
use crate::rooms::Seat;
use machines::names::{
    AgentName, ApprovalId, ChannelName, EffectId, RequestId, RunId, ServiceName, TaskId, WorkerName,
};
use machines::task::TicketStatus;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Declares the effects: the task that each is about, and what each can come to. Besides that, every effect can come to
/// `Failed`.
///
/// The `others` are written to the log by the name of their row, as they are. The five of `sessions` have two names there, one
/// for an agent at work on a task and one for an agent that speaks: a row of `stored` says how each was ever written, and what
/// it is.
macro_rules! effects {
    (
        stored {$(
            $stored:ident = $stored_kind:literal { $($(#[$sfmeta:meta])* $sfield:ident : $stype:ty),* $(,)? }
            is $same:ident $same_fields:tt;
        )*}
        sessions {$(
            $(#[$session_meta:meta])*
            $session:ident { $($session_field:ident : $session_type:ty),* $(,)? }
            of $session_task:expr => $($session_outcome:ident)|+;
        )*}
        others {$(
            $(#[$meta:meta])*
            $name:ident = $kind:literal { $($(#[$fmeta:meta])* $field:ident : $type:ty),* $(,)? }
            of $task:expr => $($outcome:ident)|+;
        )*}
    ) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(from = "StoredEffect", into = "StoredEffect")]
        pub enum Effect {
            $($(#[$session_meta])* $session { $($session_field: $session_type),* },)*
            $($(#[$meta])* $name { $($field: $type),* }),*
        }

        /// An effect as the log has it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "effect", deny_unknown_fields)]
        enum StoredEffect {
            $(#[serde(rename = $stored_kind)] $stored { $($(#[$sfmeta])* $sfield: $stype),* },)*
            $(#[serde(rename = $kind)] $name { $($(#[$fmeta])* $field: $type),* }),*
        }

        impl From<StoredEffect> for Effect {
            fn from(stored: StoredEffect) -> Effect {
                match stored {
                    $(StoredEffect::$stored { $($sfield),* } => Effect::$same $same_fields,)*
                    $(StoredEffect::$name { $($field),* } => Effect::$name { $($field),* }),*
                }
            }
        }

        impl From<Effect> for StoredEffect {
            fn from(effect: Effect) -> StoredEffect {
                match effect {
                    $(Effect::$same $same_fields => StoredEffect::$stored { $($sfield),* },)*
                    $(Effect::$name { $($field),* } => StoredEffect::$name { $($field),* }),*
                }
            }
        }

        impl Effect {
            /// The names that effects have in the log.
            pub const KINDS: &'static [&'static str] = &[$($stored_kind,)* $($kind),*];

            /// Every kind of effect with what it can come to.
            pub const OUTCOMES: &'static [(&'static str, &'static [OutcomeKind])] =
                &[$(($stored_kind, outcomes::$same::KINDS),)* $(($kind, outcomes::$name::KINDS)),*];

            #[allow(unused_variables, reason = "the form alone says the name")]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Effect::$same $same_fields => $stored_kind,)*
                    $(Effect::$name { .. } => $kind),*
                }
            }

            /// What it can come to.
            pub fn outcomes(&self) -> &'static [OutcomeKind] {
                match self {
                    $(Effect::$session { .. } => outcomes::$session::KINDS,)*
                    $(Effect::$name { .. } => outcomes::$name::KINDS),*
                }
            }

            #[allow(unused_variables, reason = "each names what it is about among all that it brings")]
            pub fn task(&self) -> Option<&TaskId> {
                match self {
                    $(Effect::$session { $($session_field),* } => $session_task,)*
                    $(Effect::$name { $($field),* } => $task),*
                }
            }
        }

        /// What each effect can come to, under the effect's name.
        pub mod outcomes {
            use crate::happened::{self, OutcomeKind};

            $(outcomes_of!($session: $($session_outcome)|+);)*
            $(outcomes_of!($name: $($outcome)|+);)*
        }

        /// An effect with what came of it: one of the outcomes of its row, and no other.
        #[derive(Clone, Debug, PartialEq)]
        pub enum EffectOutcome<'a> {
            $($session { $($session_field: &'a $session_type,)* outcome: outcomes::$session },)*
            $($name { $($field: &'a $type,)* outcome: outcomes::$name }),*
        }

        impl EffectOutcome<'_> {
            pub fn new(effect: &Effect, what: Happened) -> EffectOutcome<'_> {
                match effect {
                    $(Effect::$session { $($session_field),* } => {
                        EffectOutcome::$session { $($session_field,)* outcome: what.into() }
                    })*
                    $(Effect::$name { $($field),* } => EffectOutcome::$name { $($field,)* outcome: what.into() }),*
                }
            }
        }
    };
}

/// What one effect can come to.
macro_rules! outcomes_of {
    ($name:ident: $($outcome:ident)|+) => {
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $($outcome(happened::$outcome),)+ Failed(happened::Failed) }

        impl $name {
            pub const KINDS: &'static [OutcomeKind] = &[$(OutcomeKind::$outcome,)+ OutcomeKind::Failed];
        }

        impl From<happened::Happened> for $name {
            /// Of an answer that does not fit nothing is known but that: it is a failure, and never a success.
            fn from(what: happened::Happened) -> Self {
                $(let what = match happened::$outcome::try_from(what) {
                    Ok(outcome) => return $name::$outcome(outcome),
                    Err(other) => other,
                };)+
                $name::Failed(happened::Failed::from_any(what))
            }
        }
    };
}

effects! {
    stored {
        PrepareTree = "prepare_tree" { task: TaskId, worker: WorkerName, tree: String, branch: String }
            is PrepareTree { of: StepTree::Task { task, worker, tree, branch } };
        PrepareSeat = "prepare_seat" { seat: Seat } is PrepareTree { of: StepTree::Seat { seat } };
        StartStep = "start_step" {
            task: TaskId, worker: WorkerName, run: RunId, session: SmolStr, resume: bool, prompt: Prompt, turns_left: u32,
        } is StartStep { of: StepStart::Task { task, worker, run, prompt }, session, resume, turns_left };
        StartReply = "start_reply" {
            seat: Seat, agent: AgentName, session: SmolStr, resume: bool, prompt: Say, turns_left: u32,
        } is StartStep { of: StepStart::Seat { seat, agent, prompt }, session, resume, turns_left };
        EndStep = "end_step" { task: TaskId, run: Option<RunId>, step: EffectId }
            is EndStep { of: StepEnd::Task { task, run }, step };
        EndReply = "end_reply" {
            seat: Seat, reply: EffectId,
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            finish: bool,
        } is EndStep { of: StepEnd::Seat { seat, finish }, step: reply };
        AnswerCall = "answer_call" {
            task: TaskId, run: RunId, step: EffectId, call: SmolStr, allow: bool, note: String,
        } is AnswerCall { of: StepCall::Task { task, run }, step, call, allow, note };
        AnswerInReply = "answer_in_reply" {
            seat: Seat, reply: EffectId, call: SmolStr, allow: bool, note: String,
        } is AnswerCall { of: StepCall::Seat { seat }, step: reply, call, allow, note };
        TellAgent = "tell_agent" { task: TaskId, run: RunId, step: EffectId, text: String }
            is TellAgent { of: StepMessage::Task { task, run, text }, step };
        TellInReply = "tell_in_reply" { seat: Seat, reply: EffectId, number: u64 }
            is TellAgent { of: StepMessage::Seat { seat, number }, step: reply };
    }
    sessions {
        /// Make the agent's tree, or find it again.
        PrepareTree { of: StepTree } of of.task() => TreeReady | TreeUnmet | TreeFailed;
        /// Start the agent's program with a prompt. `resume`: its session exists, and is taken up again.
        StartStep { of: StepStart, session: SmolStr, resume: bool, turns_left: u32 } of of.task()
            => Turn | ToolResult | CallAsked | StepFinished | StepFailed | Outage;
        /// End the process tree of a step or a gate that is no longer wanted, and say when it is gone.
        EndStep { of: StepEnd, step: EffectId } of of.task() => StepEnded;
        /// Answer a call of the agent that waits.
        AnswerCall { of: StepCall, step: EffectId, call: SmolStr, allow: bool, note: String } of of.task()
            => CallAnswered;
        /// Say something to an agent in its step.
        TellAgent { of: StepMessage, step: EffectId } of of.task() => Told;
    }
    others {
        /// Commit what is left over, look at the diff, run the tests.
        RunGate = "run_gate" { task: TaskId, worker: Option<WorkerName>, max_steps_reached: bool } of Some(task)
            => GateGreen | GateRed | GateConflict | GateEmpty | PutBack;
        /// Save everything in the tree to a ref.
        SaveWork = "save_work" { task: TaskId } of Some(task) => WorkSaved;
        /// Save everything in the tree to a ref, then remove the tree. `start_over`: the branch too is saved and removed, so that
        /// the next tree is made on main.
        RemoveTree = "remove_tree" {
            task: TaskId,
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            start_over: bool,
        } of Some(task) => TreeRemoved;
        /// Merge main with the approved tip, and run the tests on the result.
        TestMerge = "test_merge" { task: TaskId, tip: SmolStr } of Some(task)
            => MergeGreen | MergeConflict | MergeRed | CheckoutInTheWay | PullRequestOpen | RemoteInTheWay;
        /// Run main's own tests, as a landing's are run. `again`: also where they are known to pass.
        TestMain = "test_main" { again: bool } of None => MainGreen | MainRed;
        /// Move main from `old` to `merge`, and to nothing else.
        MoveMain = "move_main" { task: TaskId, tip: SmolStr, merge: SmolStr, old: SmolStr } of Some(task)
            => MainMoved | MainMovedByOther | CheckoutInTheWay;
        /// Write the task's status to its ticket.
        WriteTicket = "write_ticket" {
            task: TaskId, ticket: SmolStr, status: TicketStatus, note: Option<String>,
        } of Some(task) => TicketWritten | TicketLeft;
        DeleteBranch = "delete_branch" { task: TaskId, branch: String } of Some(task) => BranchDeleted;
        /// Run what the user wants done with a main that has moved to `merge`.
        RunLandedHook = "run_landed_hook" { task: TaskId, merge: SmolStr } of Some(task) => HookRan;
        CheckHealth = "check_health" { service: ServiceName } of None => Health | HealthUnknown;
        /// A timer: an effect with a due time. With the time at which it was set it says how long it waits, by whatever clock.
        Timer = "timer" {
            due: Millis, timer: Timer,
            /// Absent in logs of before.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            set_at: Option<Millis>,
        } of None => TimerDue;
    }
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Session {
    /// Of an agent at work on a task, in this run.
    Run(RunId),
    /// Of an agent that speaks outside of any task.
    Seat(Seat),
}

/// The tree that is made ready.
#[derive(Clone, Debug, PartialEq)]
pub enum StepTree {
    /// A task's, on its branch.
    Task { task: TaskId, worker: WorkerName, tree: String, branch: String },
    /// What an agent reads that speaks: a checkout of main of its own.
    Seat { seat: Seat },
}

/// Who is started, and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub enum StepStart {
    Task {
        task: TaskId,
        worker: WorkerName,
        run: RunId,
        prompt: Prompt,
    },
    /// An agent that Adjutant hosts says something outside of any task.
    Seat {
        seat: Seat,
        agent: AgentName,
        prompt: Say,
    },
}

/// Whose step is ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEnd {
    /// Without a run it is a gate or a merge.
    Task { task: TaskId, run: Option<RunId> },
    /// `finish`: the agent itself has ended its turn by a call, and its program may come to its own end first.
    Seat { seat: Seat, finish: bool },
}

/// Whose call is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum StepCall {
    Task { task: TaskId, run: RunId },
    Seat { seat: Seat },
}

/// What is said to whom.
#[derive(Clone, Debug, PartialEq)]
pub enum StepMessage {
    Task {
        task: TaskId,
        run: RunId,
        text: String,
    },
    /// A message of the room, by its number.
    Seat {
        seat: Seat,
        number: u64,
    },
}

/// The task that an agent works on; one that speaks has none.
macro_rules! of_task {
    ($($name:ident),*) => {$(
        impl $name {
            pub fn task(&self) -> Option<&TaskId> {
                match self {
                    $name::Task { task, .. } => Some(task),
                    $name::Seat { .. } => None,
                }
            }
        }
    )*};
}

of_task!(StepTree, StepStart, StepEnd, StepCall, StepMessage);

impl StepStart {
    /// The session that the step is of.
    pub fn session(&self) -> Session {
        match self {
            StepStart::Task { run, .. } => Session::Run(run.clone()),
            StepStart::Seat { seat, .. } => Session::Seat(seat.clone()),
        }
    }
}

impl StepEnd {
    /// The session that paid for what is ended: a gate has none.
    pub fn session(&self) -> Option<Session> {
        match self {
            StepEnd::Task { run, .. } => run.clone().map(Session::Run),
            StepEnd::Seat { seat, .. } => Some(Session::Seat(seat.clone())),
        }
    }
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
