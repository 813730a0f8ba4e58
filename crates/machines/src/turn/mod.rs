//! The turn machine: one agent's place in one channel, and whether it may speak now.
//!
//! Invariants: WAITING keeps the turn until it is resolved or forfeited; whoever leaves while holding the turn
//! passes it on; a restarted agent is not queued again by itself.

use crate::Millis;
use crate::machine::{Checked, Code, FieldError, Index, Machine, Meta, Refusal, Role, Row, Who, row};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

use Action::*;
use Guard::*;
use Kind::*;
use State::*;

const HUMAN: &[Who] = &[Who::Any(Role::Human)];
const SYSTEM: &[Who] = &[Who::Any(Role::System)];
const HUMAN_OR_SYSTEM: &[Who] = &[Who::Any(Role::Human), Who::Any(Role::System)];
const OWN_OR_SYSTEM: &[Who] = &[Who::Own, Who::Any(Role::System)];
const OWN_OR_PEOPLE: &[Who] = &[Who::Own, Who::Any(Role::Human), Who::Any(Role::System)];

#[rustfmt::skip]
const TABLE: &[Row<Turn>] = &[
    //  from     event               guards            actions                                                                   to       who
    row(Offline, AgentStarts,        &[],              &[],                                                                      Idle,    OWN_OR_PEOPLE),
    row(Idle,    Assigned,           &[],              &[JoinQueue],                                                             Queued,  HUMAN_OR_SYSTEM),
    row(Idle,    AgentStops,         &[],              &[],                                                                      Offline, OWN_OR_PEOPLE),
    row(Queued,  TurnGranted,        &[],              &[SetCurrent, SetTimeout, NotifyAgent],                                   Active,  SYSTEM),
    row(Queued,  RemovedFromChannel, &[],              &[LeaveQueue],                                                            Idle,    HUMAN_OR_SYSTEM),
    row(Queued,  Disconnects,        &[],              &[LeaveQueue, LogLoss, AnnounceNobody],                                   Offline, OWN_OR_SYSTEM),
    row(Active,  TurnComplete,       &[NotAlone],      &[ConsumeMessages, EndTurn, GrantNext],                                   Queued,  OWN_OR_PEOPLE),
    row(Active,  TurnComplete,       &[Alone],         &[ConsumeMessages, Rest, EndTurn, LeaveQueue],                            Idle,    OWN_OR_PEOPLE),
    row(Active,  Timeout,            &[],              &[EndTurn, LogTimeout, AnnounceTimeout, GrantNext],                       Queued,  SYSTEM),
    row(Active,  WaitRequested,      &[],              &[StopSilenceTimer, PauseTurn, SetWaitTimeout],                           Waiting, OWN_OR_PEOPLE),
    row(Active,  RemovedFromChannel, &[],              &[EndTurn, LeaveQueue, GrantNext],                                        Idle,    HUMAN_OR_SYSTEM),
    row(Active,  Disconnects,        &[],              &[EndTurn, LeaveQueue, LogLoss, AnnounceLoss, GrantNext, AnnounceNobody], Offline, OWN_OR_SYSTEM),
    row(Active,  Interrupt,          &[InterruptMode], &[StopSilenceTimer, StopReply, PauseTurn, SetWaitTimeout],                Waiting, HUMAN_OR_SYSTEM),
    row(Waiting, WaitResolved,       &[],              &[ResumeTurn],                                                            Active,  OWN_OR_PEOPLE),
    row(Waiting, WaitTimeout,        &[],              &[EndTurn, AnnounceForfeit, GrantNext],                                   Queued,  SYSTEM),
    row(Waiting, HumanOverride,      &[ToActive],      &[ResumeTurn],                                                            Active,  HUMAN),
    row(Waiting, HumanOverride,      &[ToQueued],      &[EndTurn, GrantNext],                                                    Queued,  HUMAN),
    row(Waiting, RemovedFromChannel, &[],              &[EndTurn, LeaveQueue, GrantNext],                                        Idle,    HUMAN_OR_SYSTEM),
    row(Waiting, Disconnects,        &[],              &[EndTurn, LeaveQueue, LogLoss, GrantNext, AnnounceNobody],               Offline, OWN_OR_SYSTEM),
];

crate::wire_enum! {
    pub enum State {
        /// Not connected. A start moves it on; it is not queued again by itself.
        Offline = "OFFLINE",
        /// In no turn queue. Being assigned to the channel is a separate fact.
        Idle = "IDLE",
        /// In the channel's ring, waiting for the cursor. It observes.
        Queued = "QUEUED",
        /// Holds the turn: the only one that may post.
        Active = "ACTIVE",
        /// Holds the turn and has paused it. A resolution, a timeout or a person moves it on.
        Waiting = "WAITING",
    }
}

crate::wire_enum! {
    pub enum Kind {
        AgentStarts = "agent_starts",
        AgentStops = "agent_stops",
        Assigned = "assigned_to_channel",
        RemovedFromChannel = "removed_from_channel",
        TurnGranted = "turn_granted",
        TurnComplete = "TURN_COMPLETE",
        Timeout = "timeout",
        WaitRequested = "wait_requested",
        WaitResolved = "wait_resolved",
        WaitTimeout = "wait_timeout",
        HumanOverride = "human_override",
        Interrupt = "interrupt",
        Disconnects = "disconnects",
    }
}

crate::wire_enum! {
    pub enum Guard {
        /// No other agent is in the channel's queue.
        Alone = "alone",
        NotAlone = "!alone",
        /// The channel's `humanInterruptMode` is `interrupt`.
        InterruptMode = "interruptMode",
        /// The person gives the turn back.
        ToActive = "toActive",
        /// The person takes the turn away.
        ToQueued = "toQueued",
    }
}

crate::wire_enum! {
    pub enum Action {
        JoinQueue = "joinQueue",
        LeaveQueue = "leaveQueue",
        SetCurrent = "setCurrent",
        SetTimeout = "setTimeout",
        NotifyAgent = "notifyAgent",
        PauseTurn = "pauseTurn",
        SetWaitTimeout = "setWaitTimeout",
        ResumeTurn = "resumeTurn",
        EndTurn = "endTurn",
        GrantNext = "grantNext",
        LogLoss = "logLoss",
        LogTimeout = "logTimeout",
        AnnounceTimeout = "announceTimeout",
        AnnounceForfeit = "announceForfeit",
        AnnounceLoss = "announceLoss",
        /// The channel is told if no agent is left in it.
        AnnounceNobody = "announceNobody",
        /// What the agent was given in its turn is dealt with.
        ConsumeMessages = "consumeMessages",
        /// It is not asked again before the next message.
        Rest = "rest",
        StopSilenceTimer = "stopSilenceTimer",
        /// What the agent is saying is ended.
        StopReply = "stopReply",
    }
}

crate::wire_enum! {
    /// What a person's message does while an agent holds the turn.
    pub enum InterruptBehaviour {
        Queue = "queue",
        Interrupt = "interrupt",
        Inject = "inject",
        Parallel = "parallel",
    }
}

crate::wire_enum! {
    /// How a person ended a turn. The word is the trigger that is logged.
    pub enum EndedBy {
        Skip = "turn_skipped",
        Cancel = "turn_canceled",
    }
}

crate::wire_enum! {
    pub enum WaitReason {
        Requested = "requested",
        HumanInterrupt = "human_interrupt",
        /// A service that the agent needs is away.
        Service = "service",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes what all such words derive")]
impl Default for WaitReason {
    fn default() -> Self {
        WaitReason::Requested
    }
}

impl WaitReason {
    fn is_requested(&self) -> bool {
        *self == WaitReason::Requested
    }
}

/// A channel's rules for turns, with the source document's keys and defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TurnConfig {
    pub default_timeout_seconds: u32,
    pub wait_timeout_seconds: u32,
    pub human_interrupt_mode: InterruptBehaviour,
    pub announce_timeouts: bool,
    pub announce_disconnects: bool,
    pub auto_detect_turn_end: bool,
    pub auto_detect_silence_seconds: u32,
}

impl Default for TurnConfig {
    fn default() -> Self {
        Self {
            default_timeout_seconds: 60,
            wait_timeout_seconds: 300,
            human_interrupt_mode: InterruptBehaviour::Inject,
            announce_timeouts: true,
            announce_disconnects: true,
            auto_detect_turn_end: false,
            auto_detect_silence_seconds: 10,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    pub state: State,
    /// When the turn ends by itself, while ACTIVE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Millis>,
    /// When the wait ends by itself, while WAITING.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<Millis>,
    /// What a paused turn has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_millis: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_reason: Option<WaitReason>,
    /// What it waits for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Event {
    #[serde(rename = "agent_starts")]
    AgentStarts,
    #[serde(rename = "agent_stops")]
    AgentStops,
    #[serde(rename = "assigned_to_channel")]
    Assigned,
    #[serde(rename = "removed_from_channel")]
    RemovedFromChannel,
    #[serde(rename = "turn_granted")]
    TurnGranted { at: Millis, timeout_seconds: u32 },
    #[serde(rename = "TURN_COMPLETE")]
    TurnComplete {
        /// No other agent is in the channel's queue.
        alone: bool,
        /// Nobody said so: silence did, or there was nothing to say anything to.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        auto: bool,
        /// A person ended it, and this is how; absent where the agent itself did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_by: Option<EndedBy>,
    },
    /// The turn's time is over. `warning` where the agent had answered and only forgot to say so.
    #[serde(rename = "timeout")]
    Timeout {
        #[serde(default)]
        answered: bool,
    },
    #[serde(rename = "wait_requested")]
    WaitRequested {
        at: Millis,
        wait_seconds: u32,
        #[serde(default, skip_serializing_if = "WaitReason::is_requested")]
        because: WaitReason,
        /// What it waits for, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    #[serde(rename = "wait_resolved")]
    WaitResolved { at: Millis },
    #[serde(rename = "wait_timeout")]
    WaitTimeout,
    #[serde(rename = "human_override")]
    HumanOverride {
        at: Millis,
        /// ACTIVE, which it is where nothing is said, or QUEUED to take the turn away.
        #[serde(default = "override_target")]
        to: State,
    },
    #[serde(rename = "interrupt")]
    Interrupt { at: Millis, wait_seconds: u32, mode: InterruptBehaviour },
    #[serde(rename = "disconnects")]
    Disconnects {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<String>,
    },
}

fn override_target() -> State {
    Active
}

/// What a step asks of the channel and the world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    JoinQueue,
    LeaveQueue,
    SetCurrent,
    /// Nobody holds the turn.
    FreeTurn,
    StartTimer {
        due: Millis,
    },
    StopTimers,
    NotifyAgent,
    GrantNext,
    Log {
        message: LogMessage,
    },
    Announce {
        notice: Notice,
    },
    ConsumeMessages,
    Rest,
    StopSilenceTimer,
    StopReply,
}

crate::wire_enum! {
    /// What the channel is told. `[Agent]` is replaced by the agent's name.
    pub enum Notice {
        Disconnected = "⚠️ [Agent] disconnected, skipping turn",
        TimedOut = "⏱️ [Agent] turn timed out",
        Forfeited = "⏱️ [Agent] waited too long and lost its turn",
        NoAgents = "⚠️ No agents available in this channel",
    }
}

crate::wire_enum! {
    /// What the channel logs of an agent's turn.
    pub enum LogMessage {
        AgentLost = "agent lost",
        TimedOut = "turn timed out",
        /// The turn timed out although the agent had answered.
        WithoutTurnComplete = "Agent completed response without TURN_COMPLETE",
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            state: Offline,
            timeout_at: None,
            wait_until: None,
            left_millis: None,
            wait_reason: None,
            wait_note: None,
        }
    }
}

impl Turn {
    /// At most one agent of a channel is here.
    pub fn holds_turn(&self) -> bool {
        matches!(self.state, Active | Waiting)
    }

    /// The agent's own state over all its channels: the most engaged one.
    pub fn derived(online: bool, places: impl IntoIterator<Item = State>) -> State {
        if !online {
            return Offline;
        }
        let rank = |state: &State| match state {
            Active => 4,
            Waiting => 3,
            Queued => 2,
            Idle => 1,
            Offline => 0,
        };
        places.into_iter().max_by_key(rank).filter(|state| *state != Offline).unwrap_or(Idle)
    }
}

impl Machine for Turn {
    const NAME: &'static str = "turn";
    const SEED: &'static str = "000";
    const INITIAL: State = Offline;
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
            Event::AgentStarts => AgentStarts,
            Event::AgentStops => AgentStops,
            Event::Assigned => Assigned,
            Event::RemovedFromChannel => RemovedFromChannel,
            Event::TurnGranted { .. } => TurnGranted,
            Event::TurnComplete { .. } => TurnComplete,
            Event::Timeout { .. } => Timeout,
            Event::WaitRequested { .. } => WaitRequested,
            Event::WaitResolved { .. } => WaitResolved,
            Event::WaitTimeout => WaitTimeout,
            Event::HumanOverride { .. } => HumanOverride,
            Event::Interrupt { .. } => Interrupt,
            Event::Disconnects { .. } => Disconnects,
        }
    }

    fn check(&self, event: &Event) -> Result<Checked, Refusal> {
        match event {
            Event::HumanOverride { to, .. } if self.state == Waiting && !matches!(to, Active | Queued) => {
                let message = "an override leads to ACTIVE or QUEUED";
                Err(Refusal::of(self, event, Code::InvalidField, message)
                    .with(vec![FieldError::new("to", message)]))
            }
            _ => Ok(Checked::New),
        }
    }

    fn holds(&self, guard: Guard, event: &Event) -> bool {
        match (guard, event) {
            (Alone, Event::TurnComplete { alone, .. }) => *alone,
            (NotAlone, _) => !self.holds(Alone, event),
            (InterruptMode, Event::Interrupt { mode, .. }) => *mode == InterruptBehaviour::Interrupt,
            (ToActive, Event::HumanOverride { to, .. }) => *to == Active,
            (ToQueued, Event::HumanOverride { to, .. }) => *to == Queued,
            (Alone | InterruptMode | ToActive | ToQueued, _) => false,
        }
    }

    fn perform(&mut self, action: Action, _from: State, event: &Event, effects: &mut Vec<Effect>) {
        match action {
            JoinQueue => effects.push(Effect::JoinQueue),
            LeaveQueue => effects.push(Effect::LeaveQueue),
            SetCurrent => effects.push(Effect::SetCurrent),
            SetTimeout => {
                if let Event::TurnGranted { at, timeout_seconds } = event {
                    let due = after(*at, *timeout_seconds);
                    self.timeout_at = Some(due);
                    effects.push(Effect::StartTimer { due });
                }
            }
            NotifyAgent => effects.push(Effect::NotifyAgent),
            PauseTurn => {
                let (Event::WaitRequested { at, .. } | Event::Interrupt { at, .. }) = event else { return };
                self.left_millis = self.timeout_at.take().map(|due| due.saturating_sub(*at).max(0));
                (self.wait_reason, self.wait_note) = match event {
                    Event::WaitRequested { because, note, .. } => (Some(*because), note.clone()),
                    _ => (Some(WaitReason::HumanInterrupt), None),
                };
                effects.push(Effect::StopTimers);
            }
            SetWaitTimeout => {
                let (Event::WaitRequested { at, wait_seconds, .. }
                | Event::Interrupt { at, wait_seconds, .. }) = event
                else {
                    return;
                };
                let due = after(*at, *wait_seconds);
                self.wait_until = Some(due);
                effects.push(Effect::StartTimer { due });
            }
            ResumeTurn => {
                let (Event::WaitResolved { at } | Event::HumanOverride { at, .. }) = event else { return };
                self.wait_until = None;
                self.wait_reason = None;
                self.wait_note = None;
                effects.push(Effect::StopTimers);
                // The same turn goes on with the time that it had left.
                if let Some(left) = self.left_millis.take() {
                    let due = at.saturating_add(left);
                    self.timeout_at = Some(due);
                    effects.push(Effect::StartTimer { due });
                }
            }
            EndTurn => {
                *self = Turn { state: self.state, ..Turn::default() };
                effects.push(Effect::StopTimers);
                effects.push(Effect::FreeTurn);
            }
            GrantNext => effects.push(Effect::GrantNext),
            LogLoss => effects.push(Effect::Log { message: LogMessage::AgentLost }),
            LogTimeout => {
                let answered = matches!(event, Event::Timeout { answered: true });
                let message = if answered { LogMessage::WithoutTurnComplete } else { LogMessage::TimedOut };
                effects.push(Effect::Log { message });
            }
            AnnounceTimeout => effects.push(Effect::Announce { notice: Notice::TimedOut }),
            AnnounceForfeit => effects.push(Effect::Announce { notice: Notice::Forfeited }),
            AnnounceLoss => effects.push(Effect::Announce { notice: Notice::Disconnected }),
            AnnounceNobody => effects.push(Effect::Announce { notice: Notice::NoAgents }),
            ConsumeMessages => effects.push(Effect::ConsumeMessages),
            Rest => effects.push(Effect::Rest),
            StopSilenceTimer => effects.push(Effect::StopSilenceTimer),
            StopReply => effects.push(Effect::StopReply),
        }
    }

    fn no_row_code(&self, event: &Event) -> (Code, &'static str) {
        match event {
            Event::Interrupt { mode, .. } if *mode != InterruptBehaviour::Interrupt => {
                (Code::NotAllowed, "the channel's mode does not interrupt")
            }
            _ => (Code::NotAllowed, "the agent's place in the channel does not take this"),
        }
    }

    fn meta(state: State) -> Vec<(&'static str, Meta)> {
        let (receives, responds, queued) = match state {
            Offline | Idle => ("no", false, false),
            Queued => ("observes", false, true),
            Active => ("yes", true, true),
            Waiting => ("observes", false, true),
        };
        vec![
            ("receives", Meta::Text(receives)),
            ("canRespond", Meta::Is(responds)),
            ("inQueue", Meta::Is(queued)),
        ]
    }
}

fn after(at: Millis, seconds: u32) -> Millis {
    at.saturating_add(Millis::from(seconds) * 1000)
}

#[cfg(test)]
pub(crate) mod tests;
