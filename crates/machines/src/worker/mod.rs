//! The worker machine: a slot of the coding fleet, and whether what it holds still moves.
//!
//! Invariants: only ready, working, done and stuck hold a task, and each exactly one; DONE is a claim that the
//! gate decides; a worker gives a task up only in ways that keep what was written.

use crate::machine::{Code, Index, Machine, Meta, Role, Row, Who, row};
use crate::names::TaskId;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

use Action::*;
use Guard::*;
use Kind::*;
use State::*;

const HUMAN: &[Who] = &[Who::Any(Role::Human)];
const SYSTEM: &[Who] = &[Who::Any(Role::System)];
const HUMAN_OR_SYSTEM: &[Who] = &[Who::Any(Role::Human), Who::Any(Role::System)];

#[rustfmt::skip]
const TABLE: &[Row<Worker>] = &[
    //  from     event       guards                              actions                                             to       who
    row(New,     Spawn,      &[NameFree],                        &[],                                                Idle,    HUMAN_OR_SYSTEM),
    row(Idle,    Assign,     &[TaskClaimable],                   &[TakeTask, MakeTree],                              Ready,   HUMAN_OR_SYSTEM),
    row(Ready,   StepStarts, &[],                                &[NextStep],                                        Working, SYSTEM),
    row(Ready,   StepFailed, &[],                                &[CountError, BackOff],                             Working, SYSTEM),
    row(Working, StepOk,     &[SaysNotDone, StepsLeft],          &[CountStep, ResetErrors, NextStep],                Working, SYSTEM),
    row(Working, StepOk,     &[SaysDone],                        &[CountStep, ResetErrors, RunGate],                 Done,    SYSTEM),
    row(Working, StepOk,     &[SaysNotDone, NoStepsLeft],        &[CountStep, ResetErrors, RunGate],                 Done,    SYSTEM),
    row(Working, StepFailed, &[ErrorsLeft],                      &[CountError, BackOff],                             Working, SYSTEM),
    row(Working, StepFailed, &[LastError],                       &[CountError, GiveBackLease],                       Stuck,   SYSTEM),
    row(Done,    GateFailed, &[FixesLeft],                       &[CountFix, NextStep],                              Working, SYSTEM),
    row(Done,    GateFailed, &[NoFixesLeft],                     &[GiveBackLease],                                   Stuck,   SYSTEM),
    row(Done,    HandedOver, &[],                                &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),

    row(Ready,   Released,   &[],                                &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),
    row(Working, Released,   &[],                                &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),
    row(Done,    Released,   &[],                                &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),
    row(Stuck,   Released,   &[TaskCanceledOrTaken],             &[LeaveTask],                                       Idle,    SYSTEM),

    row(Ready,   Kill,       &[],                                &[EndProcess, GiveBackLease, SaveWork, LeaveTask],  Idle,    HUMAN),
    row(Working, Kill,       &[],                                &[EndProcess, GiveBackLease, SaveWork, LeaveTask],  Idle,    HUMAN),
    row(Stuck,   Kill,       &[],                                &[EndProcess, SaveWork, LeaveTask],                 Idle,    HUMAN),
    row(Stuck,   Retry,      &[],                                &[NextStep],                                        Working, HUMAN),

    row(Idle,    Cleanup,    &[],                                &[],                                                Idle,    HUMAN),
    row(Ready,   Cleanup,    &[NoLiveProcess],                   &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Idle,   HUMAN),
    row(Working, Cleanup,    &[NoLiveProcess],                   &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Idle,   HUMAN),
    row(Done,    Cleanup,    &[NoLiveProcess],                   &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Idle,   HUMAN),
    row(Stuck,   Cleanup,    &[NoLiveProcess],                   &[EndProcess, RemoveTree, LeaveTask],               Idle,    HUMAN),
    row(Idle,    Clean,      &[],                                &[],                                                Removed, HUMAN_OR_SYSTEM),
    row(Ready,   Clean,      &[],                                &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Removed, HUMAN),
    row(Working, Clean,      &[],                                &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Removed, HUMAN),
    row(Done,    Clean,      &[],                                &[EndProcess, GiveBackLease, RemoveTree, LeaveTask], Removed, HUMAN),
    row(Stuck,   Clean,      &[],                                &[EndProcess, RemoveTree, LeaveTask],               Removed, HUMAN),

    row(Idle,    Recover,    &[],                                &[],                                                Idle,    SYSTEM),
    row(Ready,   Recover,    &[TreeMissing],                     &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),
    row(Ready,   Recover,    &[TreeThere, StepUnderWay],         &[],                                                Ready,   SYSTEM),
    row(Ready,   Recover,    &[TreeThere, NoStep, SaidDone],     &[SaveWork, RunGate],                               Done,    SYSTEM),
    row(Ready,   Recover,    &[TreeThere, NoStep, NotSaidDone, SessionResumable], &[SaveWork, NextStep],             Ready,   SYSTEM),
    row(Ready,   Recover,    &[TreeThere, NoStep, NotSaidDone, SessionGone],      &[SaveWork, GiveBackLease, LeaveTask], Idle, SYSTEM),
    row(Working, Recover,    &[TreeMissing],                     &[GiveBackLease, LeaveTask],                        Idle,    SYSTEM),
    row(Working, Recover,    &[TreeThere, StepUnderWay],         &[],                                                Working, SYSTEM),
    row(Working, Recover,    &[TreeThere, NoStep, SaidDone],     &[SaveWork, RunGate],                               Done,    SYSTEM),
    row(Working, Recover,    &[TreeThere, NoStep, NotSaidDone, SessionResumable], &[SaveWork, NextStep],             Working, SYSTEM),
    row(Working, Recover,    &[TreeThere, NoStep, NotSaidDone, SessionGone],      &[SaveWork, GiveBackLease, LeaveTask], Idle, SYSTEM),
    row(Done,    Recover,    &[TreeThere, StepUnderWay],         &[],                                                Done,    SYSTEM),
    row(Done,    Recover,    &[TreeThere, NoStep],               &[SaveWork, RunGate],                               Done,    SYSTEM),
    row(Done,    Recover,    &[TreeMissing],                     &[OfferMerge, RunGate],                             Done,    SYSTEM),
    row(Stuck,   Recover,    &[],                                &[],                                                Stuck,   SYSTEM),
];

crate::wire_enum! {
    pub enum State {
        /// Before `spawn`: there is no such worker yet.
        New = "new",
        /// Has no task. A running fleet gives it one, or a person does.
        Idle = "idle",
        /// Holds a task; its tree is being made. The first step moves it on.
        Ready = "ready",
        /// Its agent is stepped on the task, or waits for the next try after a failed step.
        Working = "working",
        /// The agent claims to be finished. The gate moves it on: to `idle` when the work was handed over, to
        /// `working` when a check failed, to `stuck` when no fix is left.
        Done = "done",
        /// Needs a person, who tries it again, ends it or cleans it up. It keeps its task in sight and blocks nobody.
        Stuck = "stuck",
        /// After `clean`: there is no such worker any more.
        Removed = "removed",
    }
}

crate::wire_enum! {
    pub enum Kind {
        Spawn = "spawn",
        Assign = "assign",
        StepStarts = "step_starts",
        StepOk = "step_ok",
        StepFailed = "step_failed",
        GateFailed = "gate_failed",
        HandedOver = "handed_over",
        Released = "released",
        Kill = "kill",
        Retry = "retry",
        Cleanup = "cleanup",
        Clean = "clean",
        Recover = "recover",
    }
}

crate::wire_enum! {
    pub enum Guard {
        /// The name is valid and no worker has it.
        NameFree = "nameFree",
        /// Every dependency of the task is DONE and nobody holds its lease.
        TaskClaimable = "taskClaimable",
        /// `DONE` is a line of its own in the final message of the step, or was said by the completion call.
        SaysDone = "saysDone",
        SaysNotDone = "!saysDone",
        /// With the step that is reported, fewer than `max_steps` were taken on the task.
        StepsLeft = "stepsLeft",
        NoStepsLeft = "!stepsLeft",
        /// With the failure that is reported, fewer than five in a row.
        ErrorsLeft = "errorsLeft",
        LastError = "!errorsLeft",
        /// The gate sent the work back fewer than `max_fix_rounds` times.
        FixesLeft = "fixesLeft",
        NoFixesLeft = "!fixesLeft",
        /// The task was canceled, or another worker took it up again.
        TaskCanceledOrTaken = "taskCanceledOrTaken",
        /// No process of the worker lives, or `--force` ends it first.
        NoLiveProcess = "noLiveProcess",
        /// The tree of the task is at its path, clean or dirty.
        TreeThere = "treeThere",
        TreeMissing = "!treeThere",
        /// A step or a gate still runs under its keeper.
        StepUnderWay = "stepUnderWay",
        NoStep = "!stepUnderWay",
        /// `DONE` stands in the last final message.
        SaidDone = "saidDone",
        NotSaidDone = "!saidDone",
        /// The agent can go on in its session.
        SessionResumable = "sessionResumable",
        SessionGone = "!sessionResumable",
    }
}

crate::wire_enum! {
    pub enum Action {
        /// The task is the worker's, with the limits of that moment.
        TakeTask = "takeTask",
        /// The task's tree is made, or found again.
        MakeTree = "makeTree",
        CountStep = "countStep",
        ResetErrors = "resetErrors",
        CountError = "countError",
        /// The next try waits 2, 4, 8, 16 seconds.
        BackOff = "backOff",
        /// The next step, as soon as nothing holds it up. Whether the agent has worked on the task before, its session says.
        NextStep = "nextStep",
        /// Commit what is left over, look at the diff, run the tests.
        RunGate = "runGate",
        CountFix = "countFix",
        /// Whoever is free may take the task.
        GiveBackLease = "giveBackLease",
        /// The worker has no task any more. Tree, branch and session stay with the task.
        LeaveTask = "leaveTask",
        /// The run is aborted, and with it the process of a step or gate ended.
        EndProcess = "endProcess",
        /// Everything in the tree is saved to a ref, where recovery finds it changed or a person ends the worker.
        SaveWork = "saveWork",
        /// Everything in the tree is saved to a ref, and the tree is removed.
        RemoveTree = "removeTree",
        /// A person is told that the branch can be merged though its tree is gone.
        OfferMerge = "offerMerge",
    }
}

crate::wire_enum! {
    /// Why a task left its worker, other than by being handed over.
    pub enum ReleaseReason {
        Canceled = "canceled",
        Blocked = "blocked",
        NeedsApproval = "needs_approval",
        /// The service stayed away too long; whoever is free goes on when it is back.
        Outage = "outage",
        /// Another worker took the task up again.
        Taken = "taken",
        /// Everything that the worker ran for it is gone.
        Lost = "lost",
    }
}

/// Errors in a row that make a worker stuck.
pub const ERRORS_MAX: u32 = 5;
/// Steps on one task before the gate decides without a DONE.
pub const STEPS_MAX: u32 = 20;
/// Times that the gate sends work back before the worker is stuck.
pub const FIX_ROUNDS_MAX: u32 = 3;
/// The wait before a failed step is tried again, for the first time.
pub const BACKOFF_SECONDS: u32 = 2;
/// The longest wait between two tries.
pub const BACKOFF_SECONDS_MAX: u32 = 60;

/// How a worker is shown where there is room for one sign.
pub fn symbol(state: State) -> &'static str {
    match state {
        New | Removed => "",
        Idle => "○",
        Ready => "◐",
        Working => "●",
        Done => "✓",
        Stuck => "!",
    }
}

/// With a first wait of 2: 2, 4, 8, 16, 32 and then 60 seconds; none where no step failed. A first wait that is longer than the
/// longest stays as it is.
pub fn backoff_seconds(first: u32, errors: u32) -> u32 {
    let Some(doublings) = errors.checked_sub(1) else { return 0 };
    let factor = 2u32.checked_pow(doublings).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(BACKOFF_SECONDS_MAX.max(first))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    pub status: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Steps on the task in hand that ended well.
    #[serde(default)]
    pub step_count: u32,
    /// Failed steps in a row.
    #[serde(default)]
    pub errors: u32,
    #[serde(default)]
    pub fix_rounds: u32,
    /// The gate was reached by running out of steps, not by a DONE: green still needs a person's review. Kept, so
    /// that a gate that is run again after a restart knows it too.
    #[serde(default)]
    pub out_of_steps: bool,
    #[serde(default)]
    pub limits: Limits,
}

/// Set when a task is taken, from the configuration of that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub max_steps: u32,
    pub max_fix_rounds: u32,
    /// Logs of versions before it do not have it.
    #[serde(skip_serializing_if = "is_usual_backoff")]
    pub backoff_seconds: u32,
}

fn is_usual_backoff(seconds: &u32) -> bool {
    *seconds == BACKOFF_SECONDS
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: STEPS_MAX, max_fix_rounds: FIX_ROUNDS_MAX, backoff_seconds: BACKOFF_SECONDS }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Spawn {
        name_free: bool,
    },
    Assign {
        task: TaskId,
        claimable: bool,
        #[serde(default)]
        limits: Limits,
    },
    StepStarts,
    StepOk {
        done: bool,
    },
    StepFailed {
        error: String,
    },
    GateFailed,
    HandedOver,
    Released {
        reason: ReleaseReason,
    },
    Kill,
    Retry,
    Cleanup {
        live_process: bool,
        #[serde(default)]
        force: bool,
    },
    Clean,
    Recover {
        tree: Tree,
        /// A step or a gate of this worker still runs under its keeper.
        step_under_way: bool,
        /// DONE stands in the last final message.
        said_done: bool,
        resumable: bool,
    },
}

crate::wire_enum! {
    /// What recovery found at the task's path.
    pub enum Tree {
        Missing = "missing",
        Clean = "clean",
        Dirty = "dirty",
    }
}

/// What a step asks of the world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    MakeTree { task: TaskId },
    NextStep,
    BackOff { seconds: u32 },
    RunGate { max_steps_reached: bool },
    GiveBackLease,
    EndProcess,
    SaveWork,
    RemoveTree,
    OfferMerge,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            status: New,
            task: None,
            step_count: 0,
            errors: 0,
            fix_rounds: 0,
            out_of_steps: false,
            limits: Limits::default(),
        }
    }
}

impl Machine for Worker {
    const NAME: &'static str = "worker";
    const SEED: &'static str = "001";
    const INITIAL: State = Idle;
    const TABLE: &'static [Row<Self>] = TABLE;
    const FINAL: &'static [State] = &[Removed];
    const BEFORE: Option<State> = Some(New);

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
        self.status
    }

    fn enter(&mut self, state: State) {
        self.status = state;
    }

    fn kind(event: &Event) -> Kind {
        match event {
            Event::Spawn { .. } => Spawn,
            Event::Assign { .. } => Assign,
            Event::StepStarts => StepStarts,
            Event::StepOk { .. } => StepOk,
            Event::StepFailed { .. } => StepFailed,
            Event::GateFailed => GateFailed,
            Event::HandedOver => HandedOver,
            Event::Released { .. } => Released,
            Event::Kill => Kill,
            Event::Retry => Retry,
            Event::Cleanup { .. } => Cleanup,
            Event::Clean => Clean,
            Event::Recover { .. } => Recover,
        }
    }

    fn holds(&self, guard: Guard, event: &Event) -> bool {
        match (guard, event) {
            (NameFree, Event::Spawn { name_free }) => *name_free,
            (TaskClaimable, Event::Assign { claimable, .. }) => *claimable,
            (SaysDone, Event::StepOk { done }) => *done,
            // The step that is being reported counts: the twentieth is the last.
            (StepsLeft, _) => self.step_count.saturating_add(1) < self.limits.max_steps,
            (ErrorsLeft, _) => self.errors.saturating_add(1) < ERRORS_MAX,
            (FixesLeft, _) => self.fix_rounds < self.limits.max_fix_rounds,
            (TaskCanceledOrTaken, Event::Released { reason }) => {
                matches!(reason, ReleaseReason::Canceled | ReleaseReason::Taken)
            }
            (NoLiveProcess, Event::Cleanup { live_process, force }) => !live_process || *force,
            (TreeThere, Event::Recover { tree, .. }) => *tree != Tree::Missing,
            (StepUnderWay, Event::Recover { step_under_way, .. }) => *step_under_way,
            (SaidDone, Event::Recover { said_done, .. }) => *said_done,
            (SessionResumable, Event::Recover { resumable, .. }) => *resumable,
            (SaysNotDone, _) => !self.holds(SaysDone, event),
            (NoStepsLeft, _) => !self.holds(StepsLeft, event),
            (LastError, _) => !self.holds(ErrorsLeft, event),
            (NoFixesLeft, _) => !self.holds(FixesLeft, event),
            (TreeMissing, _) => !self.holds(TreeThere, event),
            (NoStep, _) => !self.holds(StepUnderWay, event),
            (NotSaidDone, _) => !self.holds(SaidDone, event),
            (SessionGone, _) => !self.holds(SessionResumable, event),
            // These pairs are in no row.
            (
                NameFree | TaskClaimable | SaysDone | TaskCanceledOrTaken | NoLiveProcess | TreeThere
                | StepUnderWay | SaidDone | SessionResumable,
                _,
            ) => false,
        }
    }

    fn perform(&mut self, action: Action, from: State, event: &Event, effects: &mut Vec<Effect>) {
        match (action, event) {
            (TakeTask, Event::Assign { task, limits, .. }) => {
                *self = Worker {
                    status: self.status,
                    task: Some(task.clone()),
                    limits: *limits,
                    ..Worker::default()
                };
            }
            (MakeTree, Event::Assign { task, .. }) => effects.push(Effect::MakeTree { task: task.clone() }),
            (CountStep, _) => self.step_count = self.step_count.saturating_add(1),
            (ResetErrors, _) => self.errors = 0,
            (CountError, _) => self.errors = self.errors.saturating_add(1),
            (BackOff, _) => {
                let seconds = backoff_seconds(self.limits.backoff_seconds, self.errors);
                effects.push(Effect::BackOff { seconds });
            }
            (NextStep, _) => effects.push(Effect::NextStep),
            (RunGate, _) => {
                // A gate that is run again stands on what led to it the first time.
                if from != Done {
                    self.out_of_steps = matches!(event, Event::StepOk { done: false });
                }
                effects.push(Effect::RunGate { max_steps_reached: self.out_of_steps });
            }
            // A fix round is a step more, so that work that ran out of steps can still be mended.
            (CountFix, _) => {
                self.fix_rounds += 1;
                self.limits.max_steps = self.limits.max_steps.max(self.step_count.saturating_add(1));
            }
            (GiveBackLease, _) => effects.push(Effect::GiveBackLease),
            (LeaveTask, _) => {
                *self = Worker { status: self.status, limits: self.limits, ..Worker::default() };
            }
            (EndProcess, _) => effects.push(Effect::EndProcess),
            (SaveWork, Event::Recover { tree: Tree::Clean, .. }) => {}
            (SaveWork, _) => effects.push(Effect::SaveWork),
            (RemoveTree, _) => effects.push(Effect::RemoveTree),
            (OfferMerge, _) => effects.push(Effect::OfferMerge),
            // These pairs are in no row.
            (TakeTask | MakeTree, _) => {}
        }
    }

    fn no_row_code(&self, event: &Event) -> (Code, &'static str) {
        let message = match (event, self.status) {
            (Event::Spawn { .. }, New) => "the name is taken",
            (Event::Assign { .. }, Idle) => "the task cannot be claimed",
            (Event::Assign { .. }, Stuck) => "the worker is stuck; end it, or try it again",
            (Event::Assign { .. }, Ready | Working | Done) => {
                "the worker has a task; wait for it, or end it: its work is kept"
            }
            (Event::Retry, _) => "only a stuck worker can be tried again",
            (Event::Kill, Idle) => "the worker has no task to end",
            (Event::Kill, Done) => "the gate is deciding; wait for it, or clean the worker up",
            (Event::Cleanup { .. }, Ready | Working | Done | Stuck | Idle) => {
                "a process of it still lives; by force it is ended first"
            }
            (Event::Released { .. }, Stuck) => "a stuck worker stays, for a person to see",
            _ => "no row of the worker's table takes this event here",
        };
        (Code::NotAllowed, message)
    }

    fn meta(state: State) -> Vec<(&'static str, Meta)> {
        let active = matches!(state, Idle | Ready | Working);
        let steppable = matches!(state, Ready | Working);
        vec![
            ("symbol", Meta::Text(symbol(state))),
            ("active", Meta::Is(active)),
            ("steppable", Meta::Is(steppable)),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests;
