//! The architect machine: which request about a project is being handled.
//!
//! Invariants: requests are served one at a time; a message that wakes DONE or ERROR is not consumed by that
//! move; staying where it is needs no reason and leaves no trace.

use crate::machine::{Code, Index, Machine, Meta, Role, Row, Who, row};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::OnceLock;

use Action::*;
use Guard::*;
use Kind::*;
use State::*;

const HUMAN: &[Who] = &[Who::Any(Role::Human)];
const SYSTEM: &[Who] = &[Who::Any(Role::System)];
const HUMAN_OR_SYSTEM: &[Who] = &[Who::Any(Role::Human), Who::Any(Role::System)];
/// The architect's own agent, or a rule that needs none.
const ARCHITECT: &[Who] = &[Who::Own, Who::Any(Role::System)];
/// Whoever has a question: agents at work, people, and the rules for them.
const ASKERS: &[Who] = &[
    Who::Any(Role::Intern),
    Who::Any(Role::Specialist),
    Who::Any(Role::Lead),
    Who::Any(Role::Human),
    Who::Any(Role::System),
];

#[rustfmt::skip]
const TABLE: &[Row<Architect>] = &[
    //  from         event            guards             actions                          to           who
    row(New,         Start,           &[],               &[],                             Waiting,     HUMAN_OR_SYSTEM),
    row(Waiting,     RequestArrived,  &[],               &[TakeRequest, PrepareWorkspace], Setup,      ASKERS),
    row(Waiting,     ChannelClosed,   &[],               &[RememberCause],                InError,     SYSTEM),
    row(Setup,       WorkspaceReady,  &[],               &[HandleRequest],                Request,     SYSTEM),
    row(Setup,       SetupFailed,     &[],               &[RememberCause],                InError,     SYSTEM),
    row(Dispatching, StoriesQueued,   &[],               &[],                             Monitoring,  SYSTEM),
    row(Dispatching, NoStoriesLeft,   &[],               &[CloseSpec],                    Done,        SYSTEM),
    row(Monitoring,  RequestArrived,  &[],               &[TakeRequest, HandleRequest],   Request,     ASKERS),
    row(Monitoring,  ChannelClosed,   &[],               &[RememberCause],                InError,     SYSTEM),
    row(Request,     Answered,        &[NoSpecInWork],   &[SendAnswer],                   Waiting,     ARCHITECT),
    row(Request,     Answered,        &[SpecInWork],     &[SendAnswer],                   Monitoring,  ARCHITECT),
    row(Request,     SpecApproved,    &[],               &[SendAnswer, LoadStories],      Dispatching, ARCHITECT),
    row(Request,     MergeSucceeded,  &[],               &[SendAnswer],                   Dispatching, SYSTEM),
    row(Request,     CannotAnswer,    &[],               &[AskHuman],                     Escalated,   ARCHITECT),
    row(Request,     Abandon,         &[],               &[RememberCause],                InError,     ARCHITECT),
    row(Escalated,   HumanAnswer,     &[],               &[HandleRequest],                Request,     HUMAN),
    row(Escalated,   Timeout,         &[],               &[RememberCause],                InError,     SYSTEM),
    row(Done,        RequestArrived,  &[],               &[KeepRequest],                  Waiting,     ASKERS),
    row(InError,     RequestArrived,  &[],               &[ForgetCause, KeepRequest],     Waiting,     ASKERS),
    row(InError,     Recover,         &[],               &[ForgetCause],                  Waiting,     HUMAN_OR_SYSTEM),

    // Staying is always valid, runs nothing and leaves no transition in the log.
    row(Waiting,     Stay,            &[],               &[],                             Waiting,     ARCHITECT),
    row(Setup,       Stay,            &[],               &[],                             Setup,       ARCHITECT),
    row(Dispatching, Stay,            &[],               &[],                             Dispatching, ARCHITECT),
    row(Monitoring,  Stay,            &[],               &[],                             Monitoring,  ARCHITECT),
    row(Request,     Stay,            &[],               &[],                             Request,     ARCHITECT),
    row(Escalated,   Stay,            &[],               &[],                             Escalated,   ARCHITECT),
    row(Done,        Stay,            &[],               &[],                             Done,        ARCHITECT),
    row(InError,     Stay,            &[],               &[],                             InError,     ARCHITECT),
];

crate::wire_enum! {
    pub enum State {
        /// Before `start`: there is no architect yet.
        New = "new",
        /// Nothing in hand. Any request moves it on.
        Waiting = "WAITING",
        /// The workspace is being cloned or updated.
        Setup = "SETUP",
        /// Stories whose dependencies are done are put on the board.
        Dispatching = "DISPATCHING",
        /// Stories are out; coders' requests come in.
        Monitoring = "MONITORING",
        /// One request is being answered: by a rule where there is one, by the architect's agent where not.
        Request = "REQUEST",
        /// Waits for a person, two hours unless configured otherwise.
        Escalated = "ESCALATED",
        /// No stories left. A new request wakes it.
        Done = "DONE",
        /// `ERROR` on the wire. Recovery or a new request leads out.
        InError = "ERROR",
    }
}

crate::wire_enum! {
    pub enum Kind {
        Start = "start",
        RequestArrived = "request",
        ChannelClosed = "channel_closed",
        WorkspaceReady = "workspace_ready",
        SetupFailed = "setup_failed",
        StoriesQueued = "stories_queued",
        NoStoriesLeft = "no_stories_left",
        Answered = "answered",
        SpecApproved = "spec_approved",
        MergeSucceeded = "merge_succeeded",
        CannotAnswer = "cannot_answer",
        Abandon = "abandon",
        HumanAnswer = "human_answer",
        Timeout = "timeout",
        Recover = "recover",
        Stay = "stay",
    }
}

crate::wire_enum! {
    pub enum Guard {
        /// Stories of an approved spec are open.
        SpecInWork = "specInWork",
        NoSpecInWork = "!specInWork",
    }
}

crate::wire_enum! {
    pub enum Action {
        TakeRequest = "takeRequest",
        /// The request was not taken: it comes again, and then drives WAITING to SETUP.
        KeepRequest = "keepRequest",
        PrepareWorkspace = "prepareWorkspace",
        HandleRequest = "handleRequest",
        SendAnswer = "sendAnswer",
        LoadStories = "loadStories",
        CloseSpec = "closeSpec",
        AskHuman = "askHuman",
        RememberCause = "rememberCause",
        ForgetCause = "forgetCause",
    }
}

crate::wire_enum! {
    pub enum RequestType {
        Question = "question",
        /// Approved at once, and stored.
        Plan = "plan",
        Code = "code",
        Completion = "completion",
        Budget = "budget",
        Merge = "merge",
        Spec = "spec",
    }
}

/// How long ESCALATED waits for a person.
pub const ESCALATION_SECONDS: u32 = 2 * 60 * 60;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Architect {
    pub state: State,
    /// Stories of an approved spec are open.
    #[serde(default)]
    pub spec_in_work: bool,
    /// The request in hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<SmolStr>,
    /// What led to ERROR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Start,
    Request { id: SmolStr, request: RequestType },
    ChannelClosed,
    WorkspaceReady,
    SetupFailed { reason: String },
    StoriesQueued,
    NoStoriesLeft,
    Answered,
    SpecApproved,
    MergeSucceeded,
    CannotAnswer,
    Abandon { reason: String },
    HumanAnswer,
    Timeout,
    Recover,
    Stay,
}

/// What a step asks of the world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase")]
pub enum Effect {
    PrepareWorkspace,
    HandleRequest {
        request: SmolStr,
    },
    SendAnswer {
        request: SmolStr,
    },
    LoadStories {
        request: SmolStr,
    },
    AskHuman {
        request: SmolStr,
        seconds: u32,
    },
    /// The request was not taken, and comes again.
    KeepRequest,
}

impl Default for Architect {
    fn default() -> Self {
        Self { state: New, spec_in_work: false, request: None, cause: None }
    }
}

impl Machine for Architect {
    const NAME: &'static str = "architect";
    const SEED: &'static str = "003";
    const INITIAL: State = Waiting;
    const TABLE: &'static [Row<Self>] = TABLE;
    const FINAL: &'static [State] = &[];
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
        self.state
    }

    fn enter(&mut self, state: State) {
        self.state = state;
    }

    fn kind(event: &Event) -> Kind {
        match event {
            Event::Start => Start,
            Event::Request { .. } => RequestArrived,
            Event::ChannelClosed => ChannelClosed,
            Event::WorkspaceReady => WorkspaceReady,
            Event::SetupFailed { .. } => SetupFailed,
            Event::StoriesQueued => StoriesQueued,
            Event::NoStoriesLeft => NoStoriesLeft,
            Event::Answered => Answered,
            Event::SpecApproved => SpecApproved,
            Event::MergeSucceeded => MergeSucceeded,
            Event::CannotAnswer => CannotAnswer,
            Event::Abandon { .. } => Abandon,
            Event::HumanAnswer => HumanAnswer,
            Event::Timeout => Timeout,
            Event::Recover => Recover,
            Event::Stay => Stay,
        }
    }

    fn holds(&self, guard: Guard, _event: &Event) -> bool {
        match guard {
            SpecInWork => self.spec_in_work,
            NoSpecInWork => !self.spec_in_work,
        }
    }

    fn perform(&mut self, action: Action, _from: State, event: &Event, effects: &mut Vec<Effect>) {
        let in_hand = self.request.clone().unwrap_or_default();
        match (action, event) {
            (TakeRequest, Event::Request { id, .. }) => self.request = Some(id.clone()),
            (PrepareWorkspace, _) => effects.push(Effect::PrepareWorkspace),
            (HandleRequest, _) => effects.push(Effect::HandleRequest { request: in_hand }),
            (SendAnswer, _) => {
                effects.push(Effect::SendAnswer { request: in_hand });
                // The stories of an approved spec are still to be loaded in its name.
                if !matches!(event, Event::SpecApproved) {
                    self.request = None;
                }
            }
            (LoadStories, _) => {
                self.spec_in_work = true;
                self.request = None;
                effects.push(Effect::LoadStories { request: in_hand });
            }
            (CloseSpec, _) => self.spec_in_work = false,
            (AskHuman, _) => effects.push(Effect::AskHuman { request: in_hand, seconds: ESCALATION_SECONDS }),
            (RememberCause, _) => {
                self.request = None;
                self.cause = Some(match event {
                    Event::SetupFailed { reason } | Event::Abandon { reason } => reason.clone(),
                    Event::ChannelClosed => "channel closed".to_owned(),
                    _ => "no answer in time".to_owned(),
                });
            }
            (ForgetCause, _) => self.cause = None,
            (KeepRequest, _) => effects.push(Effect::KeepRequest),
            // This pair is in no row.
            (TakeRequest, _) => {}
        }
    }

    fn no_row_code(&self, event: &Event) -> (Code, &'static str) {
        match (event, self.state) {
            (Event::Request { .. }, Setup | Dispatching | Request | Escalated) => {
                (Code::NotAllowed, "a request is being handled; this one waits in the queue")
            }
            (Event::Abandon { .. }, Dispatching) => (
                Code::NotAllowed,
                "DISPATCHING has no edge to ERROR; what cannot be recovered goes through SUSPEND",
            ),
            _ => (Code::NotAllowed, "no row of the architect's table takes this event here"),
        }
    }

    fn meta(state: State) -> Vec<(&'static str, Meta)> {
        vec![("terminal", Meta::Is(matches!(state, Done | InError)))]
    }
}

#[cfg(test)]
pub(crate) mod tests;
