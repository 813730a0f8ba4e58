//! What may be asked: one row for each ask. The row says who may ask it, what it is about for a token that is for one run or
//! one place, to what an idempotency key belongs, and under which heading the page of permissions has it.

use super::{ArchitectAnswer, Decision, NewSpec, NewTask, Outcome, Presence, SeenTicket, TurnWord};
use crate::Millis;
use crate::config::Config;
use crate::line_comment::LineComment;
use crate::rooms::{About, OwnTimes};
use crate::words::RequestKind;
use machines::machine::Role;
use machines::names::{AgentName, ApprovalId, ChannelName, EffectId, RequestId, RunId, TaskId, WorkerName};
use machines::suspended::Wrapped;
use machines::task::{Payload, Status};
use machines::{Machine, Wire};
use machines::{architect, run, turn, worker};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Who may ask for something, whatever the state of what it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Permission<'a> {
    Roles(&'static [Role]),
    /// The task's table has the sender in its events: relations to the task decide there.
    TaskRows,
    /// Whoever some row of the worker's table takes each of these events from.
    WorkerRows(&'static [worker::Kind]),
    /// The rows of the run's table: it is the sender's own if it reports it from outside.
    RunRows(&'a RunId, run::Kind),
    /// The rows of the turn's table: it is the agent's own.
    TurnRows(&'a AgentName, turn::Kind),
    ArchitectRows(architect::Kind),
    /// The agent whose run it is, and nobody else.
    AgentOfRun(&'a RunId),
    ThisAgent(&'a AgentName),
    ThisAgentOr(&'a AgentName, &'static [Role]),
    /// The agent that answers for the architect.
    AgentOfArchitect,
    /// Whoever asked this.
    WhoAsked(&'a RequestId),
}

/// What an ask is about, for tokens that are for one run or one place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// Where a task stands.
    TaskState(&'a TaskId),
    /// What a task says, what is said of it, and what it waits for.
    TaskText(&'a TaskId),
    OneRun(&'a RunId),
    Request(&'a RequestId),
    Proposal(Option<&'a RunId>),
    Channel(&'a ChannelName),
    Architect,
    /// The agent as a whole, or something that is no run's.
    WholeAgent,
    /// No agent asks it, whatever its token.
    NoAgent,
}

/// To what an idempotency key belongs, beside its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'a> {
    OneTask(&'a TaskId),
    Project,
}

impl std::fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scope::OneTask(id) => f.write_str(id.as_str()),
            Scope::Project => f.write_str("project"),
        }
    }
}

const PEOPLE: &[Role] = &[Role::Human, Role::System];
const HUMAN: &[Role] = &[Role::Human];
const SYSTEM: &[Role] = &[Role::System];
const LEADS: &[Role] = &[Role::Lead, Role::Human, Role::System];
const AGENTS: &[Role] = &[Role::Intern, Role::Specialist, Role::Lead];
const SPEAKERS: &[Role] = &[Role::Intern, Role::Specialist, Role::Lead, Role::Human];
const ALL: &[Role] = Role::ALL;

macro_rules! asks {
    ($($(#[$meta:meta])* $name:ident
        $({ $($(#[$field_meta:meta])* $field:ident : $type:ty),* $(,)? })? $(($inner:ident : $inner_type:ty))? => {
            who: $who:expr, to: $to:expr, about: $about:expr, scope: $scope:expr, page: $page:expr $(,)?
        })*) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "ask", rename_all = "snake_case")]
        pub enum Ask {
            $($(#[$meta])* $name $({ $($(#[$field_meta])* $field: $type),* })? $(($inner_type))?),*
        }

        #[expect(unused_variables, reason = "a row names the fields that it needs")]
        impl Ask {
            /// Who may ask this.
            pub(crate) fn permission(&self) -> Permission<'_> {
                match self { $(Ask::$name $({ $($field),* })? $(($inner))? => $who),* }
            }

            /// What is refused to others: "… may not …".
            pub(crate) fn words(&self) -> &'static str {
                match self { $(Ask::$name $({ $($field),* })? $(($inner))? => $to),* }
            }

            pub(crate) fn subject(&self) -> Subject<'_> {
                match self { $(Ask::$name $({ $($field),* })? $(($inner))? => $about),* }
            }

            pub(crate) fn scope(&self) -> Scope<'_> {
                match self { $(Ask::$name $({ $($field),* })? $(($inner))? => $scope),* }
            }
        }

        #[cfg(test)]
        #[expect(unused_variables, reason = "a row names the fields that it needs")]
        impl Ask {
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            pub(crate) fn name(&self) -> &'static str {
                match self { $(Ask::$name { .. } => stringify!($name)),* }
            }

            /// The heading of the page of permissions under which it stands.
            pub(crate) fn page(&self) -> &'static str {
                match self { $(Ask::$name $({ $($field),* })? $(($inner))? => $page),* }
            }
        }
    };
}

use Permission::{
    AgentOfArchitect, AgentOfRun, ArchitectRows, Roles, RunRows, TaskRows, ThisAgent, ThisAgentOr, TurnRows,
    WhoAsked, WorkerRows,
};
use Scope::{OneTask, Project};
use Subject::{Architect, Channel, NoAgent, OneRun, Proposal, Request, TaskState, TaskText, WholeAgent};

asks! {
    // The board.

    /// An agent's task is a proposal: a rule says what becomes of it.
    AddTask(new: NewTask) => {
        who: Roles(ALL), to: "add a task",
        about: Proposal(new.run.as_ref()), scope: Project, page: "Board",
    }
    EditTask {
        id: TaskId,
        title: Option<String>,
        body: Option<String>,
        priority: Option<u8>,
        plan: Option<Vec<String>>,
        reviewer: Option<SmolStr>,
        /// Whose workers are to do it; `Some(None)` leaves that open again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Option<AgentName>>,
    } => {
        who: Roles(LEADS), to: "edit a task",
        about: TaskText(id), scope: OneTask(id), page: "Board",
    }
    MoveTask { id: TaskId, to: Status, payload: Box<Payload> } => {
        who: TaskRows, to: "move a task",
        about: TaskState(id), scope: OneTask(id), page: "Moves of a task",
    }
    /// A person says that a task which an agent proposed is to be worked on.
    AcceptTask { id: TaskId } => {
        who: Roles(PEOPLE), to: "accept a task that an agent proposed",
        about: NoAgent, scope: Project, page: "Board",
    }
    Comment { id: TaskId, text: String } => {
        who: Roles(ALL), to: "comment on a task",
        about: TaskText(id), scope: OneTask(id), page: "Board",
    }
    AddDependency { id: TaskId, on: TaskId } => {
        who: Roles(LEADS), to: "change what a task waits for",
        about: TaskText(id), scope: OneTask(id), page: "Board",
    }
    RemoveDependency { id: TaskId, on: TaskId } => {
        who: Roles(LEADS), to: "change what a task waits for",
        about: TaskText(id), scope: OneTask(id), page: "Board",
    }
    /// A person, the policy or a lead says yes to what stands in REVIEW.
    Approve { id: TaskId, tip: Option<SmolStr>, note: String } => {
        who: TaskRows, to: "approve a task",
        about: TaskState(id), scope: OneTask(id), page: "Board",
    }
    /// Work in REVIEW goes back to be changed. `tip` is what was looked at: where it is another by now, nothing is done.
    RequestChanges { id: TaskId, tip: Option<SmolStr>, feedback: String } => {
        who: TaskRows, to: "ask for changes of a task",
        about: TaskState(id), scope: Project, page: "Board",
    }
    /// A comment on lines of a diff is kept; with `draft`, another text of one that is there.
    KeepDraft { id: TaskId, draft: Option<SmolStr>, comment: LineComment } => {
        who: Roles(HUMAN), to: "comment on the lines of a diff",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    DropDraft { id: TaskId, draft: SmolStr } => {
        who: Roles(HUMAN), to: "discard a comment",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    /// All drafts become one round, which asks for changes as `RequestChanges` does.
    SendRound { id: TaskId, tip: Option<SmolStr>, note: String } => {
        who: Roles(HUMAN), to: "send a round of comments",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    Decide { id: ApprovalId, decision: Decision } => {
        who: Roles(HUMAN), to: "decide an approval",
        about: NoAgent, scope: Project, page: "Board",
    }
    SeeTicket(ticket: SeenTicket) => {
        who: Roles(PEOPLE), to: "report a ticket",
        about: NoAgent, scope: Project, page: "Board",
    }
    /// The file of a ticket that was seen is not there any more.
    MissTicket { id: TaskId } => {
        who: Roles(PEOPLE), to: "report a ticket",
        about: NoAgent, scope: Project, page: "Board",
    }

    // The fleet.

    StartFleet { workers: u32 } => {
        who: Roles(PEOPLE), to: "run the fleet",
        about: NoAgent, scope: Project, page: "Fleet",
    }
    StopFleet => {
        who: Roles(PEOPLE), to: "stop the fleet",
        about: NoAgent, scope: Project, page: "Fleet",
    }
    Spawn {
        /// The next free one where none is given.
        name: Option<WorkerName>,
        agent: Option<AgentName>,
    } => {
        who: WorkerRows(&[worker::Kind::Spawn]), to: "make a worker",
        about: NoAgent, scope: Project, page: "Workers",
    }
    Assign {
        worker: WorkerName,
        task: TaskId,
        /// What was not clear before: needed where too many reviews blocked the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clarification: Option<String>,
    } => {
        who: WorkerRows(&[worker::Kind::Assign]), to: "assign a task to a worker",
        about: NoAgent, scope: OneTask(task), page: "Workers",
    }
    Kill { worker: WorkerName } => {
        who: WorkerRows(&[worker::Kind::Kill]), to: "end a worker",
        about: NoAgent, scope: Project, page: "Workers",
    }
    Retry { worker: WorkerName } => {
        who: WorkerRows(&[worker::Kind::Retry]), to: "try a worker again",
        about: NoAgent, scope: Project, page: "Workers",
    }
    RetryTask { id: TaskId } => {
        who: Roles(HUMAN), to: "try a task again",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    /// From the beginning, on main. `note` says what is to be done differently.
    RestartTask { id: TaskId, note: Option<String> } => {
        who: Roles(HUMAN), to: "start a task over",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    /// What a task brought to main is taken back: `tip` is the reverting commit, on the branch of the new task `by`.
    UndoTask { id: TaskId, by: TaskId, tip: SmolStr } => {
        who: Roles(HUMAN), to: "undo a landing",
        about: NoAgent, scope: OneTask(id), page: "Board",
    }
    Cleanup { worker: WorkerName, force: bool } => {
        who: WorkerRows(&[worker::Kind::Cleanup]), to: "clean up after a worker",
        about: NoAgent, scope: Project, page: "Workers",
    }
    Clean { worker: WorkerName } => {
        who: WorkerRows(&[worker::Kind::Clean]), to: "remove a worker",
        about: NoAgent, scope: Project, page: "Workers",
    }
    /// What recovery found of a worker when the owner started.
    Recover {
        worker: WorkerName,
        tree: worker::Tree,
        step_under_way: bool,
        said_done: bool,
        resumable: bool,
    } => {
        who: WorkerRows(&[worker::Kind::Recover]), to: "report what recovery found",
        about: NoAgent, scope: Project, page: "Workers",
    }

    // Runs: an agent that runs outside reports its own life; a person pauses, resumes or aborts.

    OpenRun { task: TaskId, prompt: String, options: Option<run::Options> } => {
        who: Roles(AGENTS), to: "start a run: only an agent reports its own life",
        about: WholeAgent, scope: OneTask(task), page: "Runs from outside",
    }
    /// A person has an agent begin a task now, with a worker of its own.
    StartRun { agent: AgentName, task: TaskId } => {
        who: WorkerRows(&[worker::Kind::Spawn, worker::Kind::Assign]), to: "start a run of an agent",
        about: WholeAgent, scope: OneTask(task), page: "Workers",
    }
    RunEvent { run: RunId, event: run::Event } => {
        who: RunRows(run, run::Run::kind(event)), to: "report events of this run",
        about: OneRun(run), scope: Project, page: "Runs from outside",
    }
    /// An agent that Adjutant did not start comes, gives a sign of life, or goes.
    Presence { agent: AgentName, what: Presence } => {
        who: ThisAgentOr(agent, PEOPLE), to: "speak for another agent",
        about: WholeAgent, scope: Project, page: "Runs from outside",
    }
    /// A person lets an agent work and speak, or not.
    SwitchAgent {
        agent: AgentName,
        enabled: bool,
        #[serde(default)]
        reason: Option<String>,
    } => {
        who: Roles(HUMAN), to: "enable or disable an agent",
        about: NoAgent, scope: Project, page: "Fleet",
    }

    // What an agent at work says of its own run, which is its credential's.

    SubmitPlan { run: RunId, plan: Vec<String> } => {
        who: AgentOfRun(run), to: "submit a plan: only the agent at work does",
        about: OneRun(run), scope: Project, page: "Agents at work",
    }
    /// The work is done, it says: the end of this step and the gate decide.
    ClaimDone { run: RunId, summary: Option<String> } => {
        who: AgentOfRun(run), to: "say that a run is done: only its agent does",
        about: OneRun(run), scope: Project, page: "Agents at work",
    }
    /// It asks a person before it does something, as the policy would.
    AskApproval {
        run: RunId,
        tool: SmolStr,
        argument: String,
        input: serde_json::Map<String, serde_json::Value>,
    } => {
        who: AgentOfRun(run), to: "ask for a run: only its agent does",
        about: OneRun(run), scope: Project, page: "Agents at work",
    }
    /// Something that is answered in words. An agent asks about its own task, a person about any, or about none.
    MakeRequest { kind: RequestKind, task: Option<TaskId>, run: Option<RunId>, text: String } => {
        who: run.as_ref().map_or(Roles(PEOPLE), AgentOfRun),
        to: match run {
            Some(_) => "ask for another's run",
            None => "ask a question without being at work on a task",
        },
        about: run.as_ref().map_or(NoAgent, OneRun), scope: Project,
        page: if run.is_some() { "Agents at work" } else { "Board" },
    }
    AnswerRequest { id: RequestId, text: String } => {
        who: Roles(HUMAN), to: "answer a question",
        about: NoAgent, scope: Project, page: "Board",
    }
    /// A person gives up what was asked: nobody waits for it any more.
    AbandonRequest { id: RequestId, reason: String } => {
        who: Roles(HUMAN), to: "give up a request",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    /// What somebody wants built.
    SubmitSpec(spec: NewSpec) => {
        who: Roles(LEADS), to: "submit a spec",
        about: WholeAgent, scope: Project, page: "Channels and architect",
    }
    /// The architect's agent answers, in this reply, the request that the reply was started for.
    ArchitectAnswers { reply: EffectId, answer: ArchitectAnswer } => {
        who: AgentOfArchitect, to: "answer for the architect",
        about: Architect, scope: Project, page: "Channels and architect",
    }
    /// The architect stands in ERROR, and is to go on.
    RecoverArchitect => {
        who: Roles(PEOPLE), to: "let the architect go on",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    /// Whoever asked has the answer.
    ReceiveAnswer { id: RequestId } => {
        who: WhoAsked(id), to: "take an answer to what another asked",
        about: Request(id), scope: Project, page: "Board",
    }

    Configure { config: Box<Config> } => {
        who: Roles(PEOPLE), to: "change the configuration",
        about: NoAgent, scope: Project, page: "Fleet",
    }
    /// What is left of the disk: `full` says what was found where there is no room for another tree.
    SeeDisk { full: Option<SmolStr> } => {
        who: Roles(SYSTEM), to: "report the disk",
        about: NoAgent, scope: Project, page: "Fleet",
    }
    /// Run main's own tests again, whatever is known of them.
    TestMain => {
        who: Roles(PEOPLE), to: "have main's tests run",
        about: NoAgent, scope: Project, page: "Fleet",
    }
    /// Where main is: its tests were run where it was.
    SeeMain { tip: SmolStr } => {
        who: Roles(SYSTEM), to: "report where main is",
        about: NoAgent, scope: Project, page: "Fleet",
    }

    // Rooms and the architect.

    MakeChannel {
        name: ChannelName,
        config: turn::TurnConfig,
        #[serde(default)]
        about: About,
    } => {
        who: Roles(PEOPLE), to: "change a channel",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    CloseChannel { name: ChannelName } => {
        who: Roles(PEOPLE), to: "change a channel",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    /// An agent joins, or one that was away comes back to the ring.
    AddMember {
        channel: ChannelName,
        agent: AgentName,
        #[serde(default)]
        times: OwnTimes,
    } => {
        who: Roles(PEOPLE), to: "change a channel",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    RemoveMember { channel: ChannelName, agent: AgentName } => {
        who: Roles(PEOPLE), to: "change a channel",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    TurnEvent { channel: ChannelName, agent: AgentName, event: turn::Event } => {
        who: TurnRows(agent, turn::Turn::kind(event)), to: "speak for another agent",
        about: Channel(channel), scope: Project, page: "Channels and architect",
    }
    /// A person speaks whenever they like, an agent in its turn: that is a matter of the room's state.
    Post { channel: ChannelName, text: String } => {
        who: Roles(SPEAKERS), to: "speak in a channel",
        about: Channel(channel), scope: Project, page: "Channels and architect",
    }
    /// A member has read what it may know of.
    Hear { channel: ChannelName, agent: AgentName } => {
        who: ThisAgent(agent), to: "read for another agent",
        about: Channel(channel), scope: Project, page: "Channels and architect",
    }
    /// What a member says about its own turn, or a person about somebody's.
    TakeTurn { channel: ChannelName, agent: AgentName, word: TurnWord } => {
        who: match word {
            TurnWord::Skip | TurnWord::Fresh | TurnWord::Cancel => Roles(HUMAN),
            TurnWord::Complete | TurnWord::Pass => TurnRows(agent, turn::Kind::TurnComplete),
            TurnWord::Wait { .. } => TurnRows(agent, turn::Kind::WaitRequested),
            TurnWord::Resume => TurnRows(agent, turn::Kind::WaitResolved),
            TurnWord::Override { .. } => TurnRows(agent, turn::Kind::HumanOverride),
        },
        to: "speak for another agent",
        about: Channel(channel), scope: Project, page: "Channels and architect",
    }
    /// The review that a room holds is decided. The task's table says who may, as for every review.
    DecideInRoom { channel: ChannelName, approve: bool, note: String } => {
        who: TaskRows, to: "decide a review",
        about: Channel(channel), scope: Project, page: "Channels and architect",
    }
    /// Nobody was there to let turns go on, since then. `hosted`: only for the agents that Adjutant hosts.
    WasAway {
        since: Millis,
        #[serde(default)]
        hosted: bool,
    } => {
        who: Roles(SYSTEM), to: "let turns go on",
        about: NoAgent, scope: Project, page: "Channels and architect",
    }
    ArchitectEvent { event: Wrapped<architect::Event> } => {
        who: match event {
            Wrapped::Inner(event) => ArchitectRows(architect::Architect::kind(event)),
            Wrapped::Suspend(_) | Wrapped::Restore | Wrapped::Expire => Roles(SYSTEM),
        },
        to: match event {
            Wrapped::Inner(_) => "move the architect",
            Wrapped::Suspend(_) | Wrapped::Restore | Wrapped::Expire => "suspend the architect",
        },
        about: NoAgent, scope: Project, page: "Channels and architect",
    }

    /// What came of an effect.
    Outcome(outcome: Outcome) => {
        who: Roles(SYSTEM), to: "report the outcome of an effect",
        about: NoAgent, scope: Project, page: "Fleet",
    }
}
