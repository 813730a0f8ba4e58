//! Commands: what someone asks, and what came of an effect. Each may be refused. `command/asks.rs` is the table of asks.

mod asks;

use crate::Millis;
pub use crate::answers::ArchitectAnswer;
use crate::choice::Choice;
pub use crate::happened::{Happened, RedBy, StepFailure, Usage};
use crate::rooms::Seat;
use crate::specs::Story;
use crate::words::{ActorName, Raise};
pub use asks::Ask;
pub(crate) use asks::{Permission, Subject};
use machines::machine::{FieldError, Role};
use machines::names::{AgentName, EffectId, RunId, SpecId, TaskId};
use machines::task::{Status, TaskType, TicketStatus};
use machines::{task, turn};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Something asked of the kernel, by someone, at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Unique. Ids that the decision makes up are made from it, so that the decision stays pure.
    pub id: u128,
    pub at: Millis,
    /// From the caller's credential, never from the request.
    pub actor: Actor,
    /// Also from the credential: an agent's token for one run or one place. A token by name has none.
    pub token_for: Option<TokenFor>,
    /// Asked twice with the same key: done once, answered twice.
    pub key: Option<SmolStr>,
    pub ask: Ask,
}

/// What an agent's token is for. With it the agent acts there, and nowhere else where it has the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenFor {
    Run(RunId),
    Seat(Seat),
}

/// Who asks. The role is bound to the credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Human(SmolStr),
    Agent {
        name: AgentName,
        role: crate::config::Role,
    },
    System,
    /// The system, for an agent: the moves that the rules make for it.
    SystemFor(AgentName),
}

/// A spec that somebody submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSpec {
    pub id: SpecId,
    pub title: String,
    /// Where it was read from, as its author named it.
    #[serde(default)]
    pub path: Option<String>,
    pub format: SmolStr,
    pub text: String,
    /// It is a list of tasks, read by rules: no judgement is needed.
    #[serde(default)]
    pub stories: Option<Vec<Story>>,
}

/// A word about a turn in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case", deny_unknown_fields)]
pub enum TurnWord {
    /// The turn is over.
    Complete,
    /// The turn is over, and nothing is said in it.
    Pass,
    /// It waits for something, and keeps the turn.
    Wait {
        #[serde(default)]
        note: Option<String>,
        #[serde(default)]
        seconds: Option<u32>,
    },
    /// It goes on with its turn.
    Resume,
    /// A person gives a waiting turn back, or takes it away.
    Override { to: turn::State },
    /// A person ends the turn. What is being said in it is not posted.
    Cancel,
    /// A person passes an agent over, now or when its turn comes.
    Skip,
    /// A person has an agent begin anew: it remembers nothing of this room.
    Fresh,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewTask {
    /// Made up where none is given.
    pub id: Option<TaskId>,
    pub title: String,
    pub body: String,
    pub task_type: Option<TaskType>,
    pub priority: Option<u8>,
    pub reopens: Option<TaskId>,
    /// The task that this is another try at. What is left out is as it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub try_of: Option<TaskId>,
    pub plan: Option<Vec<String>>,
    pub reviewer: Option<SmolStr>,
    pub depends_on: Vec<TaskId>,
    /// Whose workers are to do it, if not those of the fleet's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The run whose agent adds it, from its credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenTicket {
    pub id: TaskId,
    pub status: TicketStatus,
    pub title: String,
    pub body: String,
    pub task_type: TaskType,
    pub priority: u8,
    pub plan: Option<Vec<String>>,
    pub depends_on: Vec<TaskId>,
    /// When the ticket was made, where it says so: its age.
    #[serde(default)]
    pub created: Option<Millis>,
    /// Whom the ticket names: an agent, or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<SmolStr>,
    /// A person's act: the file was changed by someone other than us.
    pub by_hand: bool,
}

/// A person's decision on an approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub approve: bool,
    pub note: String,
    /// Where the task goes, if not where it came from.
    #[serde(default)]
    pub to: Option<Status>,
    /// Added to the limit that was reached; by default the limit once more.
    #[serde(default)]
    pub raise: Option<Raise>,
    /// At the turn limit: the run is complete as it is.
    #[serde(default)]
    pub complete: bool,
    /// This very call is allowed for the rest of the task, and not asked about again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

/// What came of an effect, or how far it has got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub effect: EffectId,
    pub what: Happened,
}

machines::wire_enum! {
    /// What an agent outside says of itself.
    pub enum Presence {
        Connect = "connect",
        Heartbeat = "heartbeat",
        Disconnect = "disconnect",
    }
}

/// What a caller is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// What was made or moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SmolStr>,
    /// Where it stands now, with its machine: `task.ASSIGNED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SmolStr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<SmolStr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The outcome of something that is no longer wanted. It was dropped whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// The answer that was given the first time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A rule said no. Nothing was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The class, as HTTP has it.
    pub status: u16,
    pub code: SmolStr,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What can be done about it, the most likely first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    #[serde(default)]
    pub allowed: Vec<String>,
}

/// An answer as it is kept for a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Reply),
    Refused(Refusal),
}

impl Actor {
    pub fn role(&self) -> Role {
        match self {
            Actor::Human(_) => Role::Human,
            Actor::Agent { role, .. } => (*role).into(),
            Actor::System | Actor::SystemFor(_) => Role::System,
        }
    }

    /// The id that assignees and reviewers are compared with.
    pub fn id(&self) -> SmolStr {
        match self {
            Actor::Human(name) => name.clone(),
            Actor::Agent { name, .. } => SmolStr::new(name.as_str()),
            Actor::System | Actor::SystemFor(_) => SmolStr::new_static("system"),
        }
    }

    pub fn sender(&self) -> task::Sender {
        task::Sender { id: self.id(), role: self.role() }
    }

    pub fn is_human(&self) -> bool {
        matches!(self, Actor::Human(_))
    }

    pub fn is_agent(&self, agent: &AgentName) -> bool {
        matches!(self, Actor::Agent { name, .. } if name == agent)
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Actor::Human(name) => ActorName::Human(name),
            Actor::Agent { name, .. } => ActorName::Agent(name.as_str()),
            Actor::System => ActorName::System,
            Actor::SystemFor(agent) => ActorName::SystemFor(agent.as_str()),
        };
        name.fmt(f)
    }
}

impl Refusal {
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: SmolStr::new_static(code),
            message: message.into(),
            hint: None,
            next: Vec::new(),
            errors: Vec::new(),
            allowed: Vec::new(),
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What can be done about it.
    pub fn next(mut self, next: impl IntoIterator<Item = Choice>) -> Self {
        self.next.extend(next);
        self
    }

    /// A move that the task's table does not take, in words for people.
    pub(crate) fn of_move(to: task::Status, refusal: machines::Refusal) -> Self {
        use machines::machine::Code;
        let from = refusal.state;
        let allowed = match refusal.allowed.is_empty() {
            true => String::new(),
            false => format!("; allowed: {}", refusal.allowed.join(", ")),
        };
        let message = match refusal.code {
            Code::NotAllowed if refusal.allowed.is_empty() => {
                format!("cannot move from {from} to {to}: {}", refusal.message)
            }
            Code::NotAllowed => format!("cannot move from {from} to {to}{allowed}"),
            Code::Forbidden => format!("the caller's role may not move it from {from} to {to}{allowed}"),
            _ => {
                let missing: Vec<&str> = refusal.errors.iter().map(|error| error.message.as_ref()).collect();
                format!("cannot move from {from} to {to}: {}", missing.join("; "))
            }
        };
        Self { message, ..refusal.into() }
    }

    pub fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        Self::new(404, "NOT_FOUND", format!("there is no {what} `{id}`"))
    }

    pub fn field(field: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut refusal = Self::new(422, "INVALID_FIELD", message.clone());
        refusal.errors = vec![FieldError::new(field, message)];
        refusal
    }

    /// A field that is right in itself, and does not fit what the ask is about.
    pub fn unfit(field: &'static str, message: impl Into<String>) -> Self {
        Self { status: 409, ..Self::field(field, message) }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<machines::Refusal> for Refusal {
    fn from(refusal: machines::Refusal) -> Self {
        use machines::Wire;
        Self {
            status: refusal.code.status(),
            code: SmolStr::new_static(refusal.code.name()),
            message: refusal.to_string(),
            hint: None,
            next: Vec::new(),
            errors: refusal.errors,
            allowed: refusal.allowed.into_iter().map(str::to_owned).collect(),
        }
    }
}
