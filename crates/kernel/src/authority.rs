//! Who may ask for what. The row of each ask in `command/asks.rs` says who may; here that is held against the caller.
//!
//! Where an ask moves a machine, the rows of that machine's table say who may: here it is only seen that no row would ever
//! take it from the caller, so that the answer does not hang on where the machine stands.
//!
//! An agent's token for a run or a place in a channel narrows that further: several workers have the name of one agent, and
//! what one of them was told must not move the others.

use crate::World;
use crate::checks::forbidden;
use crate::command::{Actor, Ask, Command, Permission, Refusal, Subject, TokenFor};
use crate::draft::Ruled;
use crate::rooms::Seat;
use crate::world::Holder;
use machines::machine::{Caller, may_send};
use machines::{architect, run, turn, worker};

/// Refuses what the caller may not ask, whatever the state of what it is about.
pub(crate) fn check(world: &World, command: &Command, ask: &Ask) -> Ruled {
    let actor = &command.actor;
    match (may(world, actor, ask.permission()), &command.token_for) {
        (false, _) => Err(forbidden(ask.words())),
        (true, Some(token))
            if matches!(actor, Actor::Agent { .. }) && !is_for(world, token, &ask.subject()) =>
        {
            Err(not_for(world, token))
        }
        (true, _) => Ok(()),
    }
}

fn may(world: &World, actor: &Actor, permission: Permission<'_>) -> bool {
    let role = actor.role();
    let by = |own: bool| Caller { role, own };
    let sends = |kind: worker::Kind| may_send::<worker::Worker>(kind, by(false));
    match permission {
        Permission::Roles(roles) => roles.contains(&role),
        Permission::TaskRows => true,
        Permission::WorkerRows(kinds) => kinds.iter().all(|kind| sends(*kind)),
        Permission::RunRows(run, kind) => {
            let holder = world.run(run).map(|run| &run.holder);
            let own = matches!(holder, Some(Holder::Outside(owner)) if actor.is_agent(owner));
            may_send::<run::Run>(kind, by(own))
        }
        Permission::TurnRows(agent, kind) => may_send::<turn::Turn>(kind, by(actor.is_agent(agent))),
        Permission::ArchitectRows(kind) => may_send::<architect::Architect>(kind, by(false)),
        // It speaks for its own run and for no other.
        Permission::AgentOfRun(run) => {
            matches!(actor, Actor::Agent { .. })
                && world.run(run).is_none_or(|run| actor.is_agent(&run.agent))
        }
        Permission::ThisAgent(agent) => actor.is_agent(agent),
        Permission::ThisAgentOr(agent, roles) => actor.is_agent(agent) || roles.contains(&role),
        Permission::AgentOfArchitect => {
            world.config.architect.as_ref().is_some_and(|it| actor.is_agent(&it.agent))
        }
        Permission::WhoAsked(id) => world.requests.get(id).is_none_or(|asked| asked.by == actor.to_string()),
    }
}

/// Whether a token that is for one run or one place is for this.
fn is_for(world: &World, token: &TokenFor, subject: &Subject<'_>) -> bool {
    match (token, subject) {
        (_, Subject::NoAgent) => true,
        (TokenFor::Run(own), Subject::TaskState(id)) => world.run(own).is_some_and(|run| run.task == **id),
        // A run may still change what it has proposed itself.
        (TokenFor::Run(own), Subject::TaskText(id)) => {
            let proposed = world.task(id).and_then(|task| task.origin.proposed.as_ref()?.run.as_ref());
            world.run(own).is_some_and(|run| run.task == **id) || proposed == Some(own)
        }
        (TokenFor::Run(own), Subject::OneRun(run)) => own == *run,
        (TokenFor::Run(own), Subject::Proposal(run)) => *run == Some(own),
        // What is not there is said by the rule.
        (TokenFor::Run(own), Subject::Request(id)) => {
            world.requests.get(*id).is_none_or(|asked| asked.run.as_ref() == Some(own))
        }
        (TokenFor::Run(_), Subject::Channel(_) | Subject::Architect | Subject::WholeAgent) => false,
        (TokenFor::Seat(Seat::Room { channel, .. }), Subject::Channel(named)) => channel == *named,
        (TokenFor::Seat(Seat::Room { channel, .. }), Subject::TaskText(id)) => {
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
