//! What the word in an operation's row means for a caller.
//!
//! A person reads everything. An agent reads what its work takes: its own task with its changes, output and history, the
//! tasks that it reviews, and of the others what stands on a board. In the channel in which work is reviewed it also reads
//! that work: what the task says, and what it changes. Everything that an agent prints is in a transcript, so
//! one that reads another's reads whatever that one was shown. Who may change what is for the kernel to say.

use super::operation::{Operation, Who};
use super::{Method, Problem, Request};
use kernel::config::Role;
use kernel::rooms::{Channel, Seat};
use kernel::world::{Holder, Task, Worker};
use kernel::{Actor, World};
use machines::names::{ChannelName, RunId};
use machines::task::Status;

/// Refuses what the caller may not ask. `named` is the first name in the path, as it was sent.
pub fn check(world: &World, request: &Request, operation: &Operation, named: &str) -> Result<(), Problem> {
    if request.reads_only && operation.method != Method::Get {
        return Err(Problem::new(403, "READ_ONLY", "this token is for reading, and changes nothing")
            .hint("a person makes another one with `adj token create`"));
    }
    if !matches!(request.actor, Actor::Agent { .. }) {
        return Ok(());
    }
    // The token of a turn is valid in its channel only, even if the agent is in several; the token of a run in none.
    if operation.path.starts_with("/channels/{channel}") && !speaks_in(request, named) {
        return Err(not_its_channel(request));
    }
    // What is not there, the handler says.
    let may = match operation.who {
        Who::Everyone | Who::ItsPart | Who::Kernel => true,
        Who::People => false,
        Who::ReadsTask => {
            let task = world.tasks.iter().find(|(known, _)| known.as_str() == named);
            task.is_none_or(|(_, task)| sees(world, request, task))
        }
        Who::ReadsWork => {
            let task = world.tasks.iter().find(|(known, _)| known.as_str() == named);
            task.is_none_or(|(_, task)| sees_work(world, request, task))
        }
        Who::ReadsWorker => {
            let known = world.workers.iter().find(|(known, _)| known.as_str() == named);
            known.is_none_or(|(_, worker)| is_its_worker(world, request, worker))
        }
        Who::ReadsChannel => {
            let known = world.channels.iter().find(|(known, _)| known.as_str() == named);
            known.is_none_or(|(name, channel)| is_part_of(name, channel, request))
        }
        Who::ReadsRun => {
            let run = world.runs.iter().find(|(known, _)| known.as_str() == named);
            let task = run.and_then(|(_, run)| world.task(&run.task));
            task.is_none_or(|task| sees(world, request, task))
        }
        Who::ReadsRequest => {
            let asked = world.requests.iter().find(|(known, _)| known.as_str() == named);
            asked.is_none_or(|(_, asked)| {
                let task = asked.task.as_ref().and_then(|id| world.task(id));
                task.is_some_and(|task| sees(world, request, task))
            })
        }
        Who::ReadsApproval => {
            let asked = world.approvals.iter().find(|(known, _)| known.as_str() == named);
            asked.is_none_or(|(_, asked)| {
                let task = asked.task.as_ref().and_then(|id| world.task(id));
                task.is_some_and(|task| sees(world, request, task))
            })
        }
    };
    match (may, operation.method) {
        (true, _) => Ok(()),
        (false, Method::Get) if operation.who == Who::ReadsChannel => {
            let detail = format!("agent `{}` is not in the channel, and may not read it", request.actor.id());
            Err(Problem::new(403, "FORBIDDEN", detail)
                .hint("an agent reads the channels that it is in; a person lets it in"))
        }
        (false, Method::Get) => Err(refusal(world, request)),
        (false, _) => {
            let what = operation.about;
            let what = format!("{}{}", what[..1].to_lowercase(), &what[1..]);
            Err(Problem::new(403, "FORBIDDEN", format!("the caller's role may not {what}")))
        }
    }
}

fn refusal(world: &World, request: &Request) -> Problem {
    let run = request.run.as_ref().and_then(|run| world.run(run));
    let own = run.map(|run| format!(" (`{}`)", run.task)).unwrap_or_default();
    Problem::new(403, "FORBIDDEN", "the caller's role may not read this").hint(format!(
        "an agent reads its own task{own} with its changes, output and history, the tasks that it reviews, the work that is \
         reviewed in a channel that it is in, and the titles, states and dependencies of the others"
    ))
}

/// Whether the caller may know what is said there.
pub(super) fn is_part_of(name: &ChannelName, channel: &Channel, request: &Request) -> bool {
    match &request.actor {
        Actor::Agent { name: agent, .. } => {
            channel.place(agent).is_some() && speaks_in(request, name.as_str())
        }
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => true,
    }
}

/// Whether the caller's token is for this channel, if it is for one thing only.
pub fn speaks_in(request: &Request, named: &str) -> bool {
    match (&request.run, &request.seat) {
        (None, None) => true,
        (None, Some(Seat::Room { channel, .. })) => channel.as_str() == named,
        (None, Some(Seat::Architect)) | (Some(_), _) => false,
    }
}

fn not_its_channel(request: &Request) -> Problem {
    let whose = match (&request.run, &request.seat) {
        (Some(run), _) => format!("run `{run}` and its task"),
        (None, Some(Seat::Room { channel, .. })) => format!("the agent's turn in `{channel}`"),
        (None, _) => "the architect's answers".to_owned(),
    };
    Problem::new(403, "FORBIDDEN", format!("this token is for {whose}, and for no other channel"))
        .hint("in a channel an agent reads and speaks in its turn, with the token of that turn")
}

/// The runs that an agent speaks of: the one that its token is for, or those that it reports from outside.
pub fn own_runs(world: &World, request: &Request) -> Vec<RunId> {
    if let Some(run) = &request.run {
        return vec![run.clone()];
    }
    let Actor::Agent { name, .. } = &request.actor else { return Vec::new() };
    let holder = Holder::Outside(name.clone());
    let own = world.runs.values().filter(|run| run.is_open() && run.holder == holder);
    own.map(|run| run.id.clone()).collect()
}

/// Whether the caller may read all of a task.
pub fn sees(world: &World, request: &Request, task: &Task) -> bool {
    let Actor::Agent { name, role } = &request.actor else { return true };
    let reviews = task.machine.reviewer_id.as_deref() == Some(name.as_str())
        || (*role == Role::Lead && task.status() == Status::Review);
    let proposed = request.run.is_some()
        && task.origin.proposed.as_ref().is_some_and(|proposed| proposed.run == request.run);
    let own = match request.run.as_ref().and_then(|run| world.run(run)) {
        Some(run) => run.task == task.id,
        // An agent that runs outside and has not begun: what was given to it, and to no worker.
        None => {
            let held = task.work.lease.as_ref().map(|lease| &lease.holder);
            let assigned = task.machine.assignee_ids.iter().any(|id| id == name.as_str());
            request.token_for().is_none()
                && assigned
                && held.is_none_or(|holder| *holder == Holder::Outside(name.clone()))
        }
    };
    own || proposed || reviews
}

/// Whether the caller may read what a task says and what its work changes.
pub fn sees_work(world: &World, request: &Request, task: &Task) -> bool {
    sees(world, request, task) || reviews_in_room(world, request, task)
}

/// Whether the caller is in the channel in which the task is reviewed, for as long as it is open.
fn reviews_in_room(world: &World, request: &Request, task: &Task) -> bool {
    let Actor::Agent { name, .. } = &request.actor else { return false };
    let Some((room, channel)) = world.room_of(&task.id) else { return false };
    // Who is at work on another task, or speaks elsewhere, has its token for that.
    let by_its_token = match &request.seat {
        Some(Seat::Room { channel, .. }) => channel == room,
        Some(Seat::Architect) => false,
        None => request.run.is_none(),
    };
    by_its_token && channel.place(name).is_some()
}

/// Whether a worker is the caller's own, or the caller a person.
pub fn is_its_worker(world: &World, request: &Request, worker: &Worker) -> bool {
    let run = || request.run.as_ref().and_then(|run| world.run(run));
    !matches!(request.actor, Actor::Agent { .. })
        || run().is_some_and(|run| run.holder == Holder::Worker(worker.name.clone()))
}
