//! Who may ask for what. One answer for every ask, and no ask without one.
//!
//! Where an ask moves a machine, the rows of that machine's table say who may: here it is only seen that no row would ever
//! take it from the caller, so that the answer does not hang on where the machine stands. What is no machine's event has its
//! roles here and nowhere else.
//!
//! An agent's token for a run or a place in a channel narrows that further: several workers have the name of one agent, and
//! what one of them was told must not move the others.

use crate::World;
use crate::checks::forbidden;
use crate::command::{Actor, Ask, Command, Refusal, TokenFor, TurnWord};
use crate::draft::Ruled;
use crate::rooms::Seat;
use crate::world::Holder;
use machines::machine::{Caller, Role, may_send};
use machines::names::{ChannelName, RequestId, RunId, TaskId};
use machines::suspended::Wrapped;
use machines::{Machine, Wire, architect, run, turn, worker};

const PEOPLE: &[Role] = &[Role::Human, Role::System];
const HUMAN: &[Role] = &[Role::Human];
const SYSTEM: &[Role] = &[Role::System];
const LEADS: &[Role] = &[Role::Lead, Role::Human, Role::System];
const AGENTS: &[Role] = &[Role::Intern, Role::Specialist, Role::Lead];
const ALL: &[Role] = Role::ALL;

/// Whether the caller is the agent whose run it is.
fn is_of(world: &World, actor: &Actor, run: &RunId) -> bool {
    matches!(actor, Actor::Agent { .. }) && world.run(run).is_none_or(|run| actor.is_agent(&run.agent))
}

/// The event of a turn that a word stands for.
fn kind_of(word: &TurnWord) -> turn::Kind {
    match word {
        TurnWord::Complete | TurnWord::Pass | TurnWord::Cancel | TurnWord::Skip | TurnWord::Fresh => {
            turn::Kind::TurnComplete
        }
        TurnWord::Wait { .. } => turn::Kind::WaitRequested,
        TurnWord::Resume => turn::Kind::WaitResolved,
        TurnWord::Override { .. } => turn::Kind::HumanOverride,
    }
}

/// Refuses what the caller may not ask, whatever the state of what it is about.
pub(crate) fn check(world: &World, command: &Command, ask: &Ask) -> Ruled {
    let actor = &command.actor;
    let role = actor.role();
    let has = |roles: &[Role]| roles.contains(&role);
    let sends = |kind: worker::Kind| may_send::<worker::Worker>(kind, Caller { role, own: false });
    let (may, what) = match ask {
        // The task's table has the sender in its events: relations to the task decide there.
        Ask::MoveTask { .. } => (true, "move a task"),
        Ask::Approve { .. } => (true, "approve a task"),
        Ask::RequestChanges { .. } => (true, "ask for changes of a task"),
        // An agent's task is a proposal: a rule says what becomes of it.
        Ask::AddTask(_) => (has(ALL), "add a task"),
        Ask::Comment { .. } => (has(ALL), "comment on a task"),
        Ask::EditTask { .. } => (has(LEADS), "edit a task"),
        Ask::AddDependency { .. } | Ask::RemoveDependency { .. } => {
            (has(LEADS), "change what a task waits for")
        }
        Ask::AcceptTask { .. } => (has(PEOPLE), "accept a task that an agent proposed"),
        Ask::Decide { .. } => (has(HUMAN), "decide an approval"),
        Ask::SeeTicket(_) | Ask::MissTicket { .. } => (has(PEOPLE), "report a ticket"),
        Ask::RetryTask { .. } => (has(HUMAN), "try a task again"),
        Ask::RestartTask { .. } => (has(HUMAN), "start a task over"),
        Ask::UndoTask { .. } => (has(HUMAN), "undo a landing"),

        Ask::StartFleet { .. } => (has(PEOPLE), "run the fleet"),
        Ask::StopFleet => (has(PEOPLE), "stop the fleet"),
        Ask::Spawn { .. } => (sends(worker::Kind::Spawn), "make a worker"),
        Ask::Assign { .. } => (sends(worker::Kind::Assign), "assign a task to a worker"),
        Ask::Kill { .. } => (sends(worker::Kind::Kill), "end a worker"),
        Ask::Retry { .. } => (sends(worker::Kind::Retry), "try a worker again"),
        Ask::Cleanup { .. } => (sends(worker::Kind::Cleanup), "clean up after a worker"),
        // A rule retires idle workers; removing one that a person sees is a person's.
        Ask::Clean { .. } => (sends(worker::Kind::Clean) && has(HUMAN), "remove a worker"),
        Ask::Recover { .. } => (sends(worker::Kind::Recover), "report what recovery found"),

        Ask::OpenRun { .. } => (has(AGENTS), "start a run: only an agent reports its own life"),
        Ask::StartRun { .. } => {
            (sends(worker::Kind::Spawn) && sends(worker::Kind::Assign), "start a run of an agent")
        }
        Ask::RunEvent { run, event } => {
            let holder = world.run(run).map(|run| &run.holder);
            let own = matches!(holder, Some(Holder::Outside(owner)) if actor.is_agent(owner));
            (may_send::<run::Run>(run::Run::kind(event), Caller { role, own }), "report events of this run")
        }

        Ask::Presence { agent, .. } => (actor.is_agent(agent) || has(PEOPLE), "speak for another agent"),
        Ask::SwitchAgent { .. } => (has(HUMAN), "enable or disable an agent"),
        // It speaks for its own run and for no other.
        Ask::SubmitPlan { run, .. } => {
            (is_of(world, actor, run), "submit a plan: only the agent at work does")
        }
        Ask::ClaimDone { run, .. } => {
            (is_of(world, actor, run), "say that a run is done: only its agent does")
        }
        Ask::AskApproval { run, .. } => (is_of(world, actor, run), "ask for a run: only its agent does"),
        Ask::MakeRequest { run: Some(run), .. } => (is_of(world, actor, run), "ask for another's run"),
        Ask::MakeRequest { run: None, .. } => (has(PEOPLE), "ask a question without being at work on a task"),
        Ask::AnswerRequest { .. } => (has(HUMAN), "answer a question"),
        Ask::AbandonRequest { .. } => (has(HUMAN), "give up a request"),
        Ask::SubmitSpec(_) => (has(LEADS), "submit a spec"),
        Ask::ArchitectAnswers { .. } => {
            let its_own = world.config.architect.as_ref().is_some_and(|it| actor.is_agent(&it.agent));
            (its_own, "answer for the architect")
        }
        Ask::RecoverArchitect => (has(PEOPLE), "let the architect go on"),
        Ask::ReceiveAnswer { id } => {
            let asked = world.requests.get(id);
            (asked.is_none_or(|asked| asked.by == actor.to_string()), "take an answer to what another asked")
        }

        Ask::Configure { .. } => (has(PEOPLE), "change the configuration"),
        Ask::SeeDisk { .. } => (has(SYSTEM), "report the disk"),
        Ask::SeeMain { .. } => (has(SYSTEM), "report where main is"),
        Ask::TestMain => (has(PEOPLE), "have main's tests run"),

        Ask::MakeChannel { .. }
        | Ask::CloseChannel { .. }
        | Ask::AddMember { .. }
        | Ask::RemoveMember { .. } => (has(PEOPLE), "change a channel"),
        // Only the member whose turn it is; that is a matter of the room's state.
        Ask::Post { .. } => (has(ALL) && role != Role::System, "speak in a channel"),
        Ask::Hear { agent, .. } => (actor.is_agent(agent), "read for another agent"),
        Ask::TakeTurn { agent, word, .. } => {
            let by = Caller { role, own: actor.is_agent(agent) };
            let may = match word {
                TurnWord::Skip | TurnWord::Fresh | TurnWord::Cancel => has(HUMAN),
                word => may_send::<turn::Turn>(kind_of(word), by),
            };
            (may, "speak for another agent")
        }
        // The task's table says who may review, as for every review.
        Ask::DecideInRoom { .. } => (true, "decide a review"),
        Ask::WasAway { .. } => (has(SYSTEM), "let turns go on"),
        Ask::TurnEvent { agent, event, .. } => {
            let by = Caller { role, own: actor.is_agent(agent) };
            (may_send::<turn::Turn>(turn::Turn::kind(event), by), "speak for another agent")
        }
        Ask::ArchitectEvent { event: Wrapped::Inner(event) } => {
            let by = Caller { role, own: false };
            (may_send::<architect::Architect>(architect::Architect::kind(event), by), "move the architect")
        }
        Ask::ArchitectEvent { event: Wrapped::Suspend(_) | Wrapped::Restore | Wrapped::Expire } => {
            (has(SYSTEM), "suspend the architect")
        }

        Ask::Outcome(_) => (has(SYSTEM), "report the outcome of an effect"),
    };
    match (may, &command.token_for) {
        (false, _) => Err(forbidden(what)),
        (true, Some(token))
            if matches!(actor, Actor::Agent { .. }) && !is_for(world, token, &subject(ask)) =>
        {
            Err(not_for(world, token))
        }
        (true, _) => Ok(()),
    }
}

/// What an ask is about, for tokens that are for one run or one place.
enum Subject<'a> {
    /// Where a task stands.
    State(&'a TaskId),
    /// What a task says, what is said of it, and what it waits for.
    Text(&'a TaskId),
    Run(&'a RunId),
    Request(&'a RequestId),
    Proposal(Option<&'a RunId>),
    Channel(&'a ChannelName),
    Architect,
    /// The agent as a whole, or something that is no run's.
    Agent,
    /// No agent asks it, whatever its token.
    Others,
}

fn subject(ask: &Ask) -> Subject<'_> {
    match ask {
        Ask::MoveTask { id, .. } | Ask::Approve { id, .. } | Ask::RequestChanges { id, .. } => {
            Subject::State(id)
        }
        Ask::EditTask { id, .. }
        | Ask::Comment { id, .. }
        | Ask::AddDependency { id, .. }
        | Ask::RemoveDependency { id, .. } => Subject::Text(id),
        Ask::AddTask(new) => Subject::Proposal(new.run.as_ref()),
        Ask::RunEvent { run, .. }
        | Ask::SubmitPlan { run, .. }
        | Ask::ClaimDone { run, .. }
        | Ask::AskApproval { run, .. }
        | Ask::MakeRequest { run: Some(run), .. } => Subject::Run(run),
        Ask::ReceiveAnswer { id } => Subject::Request(id),
        Ask::Post { channel, .. }
        | Ask::Hear { channel, .. }
        | Ask::TakeTurn { channel, .. }
        | Ask::DecideInRoom { channel, .. }
        | Ask::TurnEvent { channel, .. } => Subject::Channel(channel),
        Ask::ArchitectAnswers { .. } => Subject::Architect,
        Ask::OpenRun { .. } | Ask::StartRun { .. } | Ask::Presence { .. } | Ask::SubmitSpec(_) => {
            Subject::Agent
        }
        Ask::AcceptTask { .. }
        | Ask::Decide { .. }
        | Ask::SeeTicket(_)
        | Ask::MissTicket { .. }
        | Ask::RetryTask { .. }
        | Ask::RestartTask { .. }
        | Ask::UndoTask { .. }
        | Ask::StartFleet { .. }
        | Ask::StopFleet
        | Ask::Spawn { .. }
        | Ask::Assign { .. }
        | Ask::Kill { .. }
        | Ask::Retry { .. }
        | Ask::Cleanup { .. }
        | Ask::Clean { .. }
        | Ask::Recover { .. }
        | Ask::MakeRequest { run: None, .. }
        | Ask::AnswerRequest { .. }
        | Ask::AbandonRequest { .. }
        | Ask::RecoverArchitect
        | Ask::SwitchAgent { .. }
        | Ask::Configure { .. }
        | Ask::SeeDisk { .. }
        | Ask::SeeMain { .. }
        | Ask::TestMain
        | Ask::MakeChannel { .. }
        | Ask::CloseChannel { .. }
        | Ask::AddMember { .. }
        | Ask::RemoveMember { .. }
        | Ask::WasAway { .. }
        | Ask::ArchitectEvent { .. }
        | Ask::Outcome(_) => Subject::Others,
    }
}

/// Whether a token that is for one run or one place is for this.
fn is_for(world: &World, token: &TokenFor, subject: &Subject<'_>) -> bool {
    match (token, subject) {
        (_, Subject::Others) => true,
        (TokenFor::Run(own), Subject::State(id)) => world.run(own).is_some_and(|run| run.task == **id),
        // A run may still change what it has proposed itself.
        (TokenFor::Run(own), Subject::Text(id)) => {
            let proposed = world.task(id).and_then(|task| task.origin.proposed.as_ref()?.run.as_ref());
            world.run(own).is_some_and(|run| run.task == **id) || proposed == Some(own)
        }
        (TokenFor::Run(own), Subject::Run(run)) => own == *run,
        (TokenFor::Run(own), Subject::Proposal(run)) => *run == Some(own),
        // What is not there is said by the rule.
        (TokenFor::Run(own), Subject::Request(id)) => {
            world.requests.get(*id).is_none_or(|asked| asked.run.as_ref() == Some(own))
        }
        (TokenFor::Run(_), Subject::Channel(_) | Subject::Architect | Subject::Agent) => false,
        (TokenFor::Seat(Seat::Room { channel, .. }), Subject::Channel(named)) => channel == *named,
        (TokenFor::Seat(Seat::Room { channel, .. }), Subject::Text(id)) => {
            world.channel(channel).is_some_and(|room| room.about.task.as_ref() == Some(*id))
        }
        (TokenFor::Seat(Seat::Architect), Subject::Architect) => true,
        (TokenFor::Seat(_), Subject::Proposal(run)) => run.is_none(),
        (TokenFor::Seat(_), _) => false,
    }
}

fn not_for(world: &World, token: &TokenFor) -> Refusal {
    let (whose, hint) = match token {
        TokenFor::Run(run) => {
            let task = world.run(run).map(|run| format!(" and its task `{}`", run.task)).unwrap_or_default();
            let hint = "in a channel the agent speaks in its turn, with the token of that turn; of other tasks, propose one \
                        or ask a person";
            (format!("run `{run}`{task}"), hint)
        }
        TokenFor::Seat(Seat::Room { channel, .. }) => {
            (format!("the agent's turn in `{channel}`"), "say it in the channel, or propose a task")
        }
        TokenFor::Seat(Seat::Architect) => {
            ("the architect's answers".to_owned(), "answer the request that you were asked")
        }
    };
    Refusal::new(403, "FORBIDDEN", format!("this token is for {whose}, and for nothing else")).hint(hint)
}
