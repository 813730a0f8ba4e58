//! What a caller may read: one place, for every route.
//!
//! A person reads everything. An agent reads what its work takes: its own task with its changes, output and history, the
//! tasks that it reviews, and of the others what stands on a board. Everything that an agent prints is in a transcript, so
//! one that reads another's reads whatever that one was shown.
//!
//! A route that is not named here is read by people alone. Who may change what is for the kernel to say.

use super::{Method, Problem, Request};
use kernel::config::Role;
use kernel::world::{Holder, Task, Worker};
use kernel::{Actor, World};
use machines::task::Status;

/// Who may read what a route answers.
enum Reads<'r> {
    Everyone,
    /// Everyone, and the answer holds only what the caller may read.
    ItsPart,
    /// Whoever may read this task, or the task of this worker, run or question.
    OfTask(&'r str),
    OfWorker(&'r str),
    OfRun(&'r str),
    OfApproval(&'r str),
    People,
}

fn reads<'r>(parts: &[&'r str]) -> Reads<'r> {
    use Reads::*;
    match parts {
        // What stands on a board, where it is another's.
        ["tasks" | "workers", _] => ItsPart,
        ["tasks" | "queue" | "fleet"] | ["tickets", "problems"] => Everyone,
        ["prompts" | "config" | "machines", ..] => Everyone,
        ["approvals" | "reviews" | "workers" | "runs"] => ItsPart,
        ["tasks", id, "history" | "why" | "diff" | "review" | "transcript" | "tests"]
        | ["tasks", id, "prompt", _] => OfTask(id),
        ["workers", name, "history" | "why" | "transcript"] => OfWorker(name),
        ["runs", id] | ["runs", id, "history"] => OfRun(id),
        ["approvals", id] => OfApproval(id),
        _ => People,
    }
}

/// Refuses what the caller may not read.
pub fn check(world: &World, request: &Request, parts: &[&str]) -> Result<(), Problem> {
    if request.method != Method::Get || !matches!(request.actor, Actor::Agent { .. }) {
        return Ok(());
    }
    // What is not there, the handler says.
    let of_task = |id: &str| world.tasks.iter().find(|(known, _)| known.as_str() == id);
    let may = match reads(parts) {
        Reads::Everyone | Reads::ItsPart => true,
        Reads::People => false,
        Reads::OfTask(id) => of_task(id).is_none_or(|(_, task)| sees(world, request, task)),
        Reads::OfWorker(name) => {
            let known = world.workers.iter().find(|(known, _)| known.as_str() == name);
            known.is_none_or(|(_, worker)| is_its_worker(world, request, worker))
        }
        Reads::OfRun(id) => {
            let run = world.runs.iter().find(|(known, _)| known.as_str() == id);
            let task = run.and_then(|(_, run)| world.task(&run.task));
            task.is_none_or(|task| sees(world, request, task))
        }
        Reads::OfApproval(id) => {
            let asked = world.approvals.iter().find(|(known, _)| known.as_str() == id);
            asked.is_none_or(|(_, asked)| {
                asked
                    .task
                    .as_ref()
                    .and_then(|id| world.task(id))
                    .is_some_and(|task| sees(world, request, task))
            })
        }
    };
    if may { Ok(()) } else { Err(refusal(world, request)) }
}

fn refusal(world: &World, request: &Request) -> Problem {
    let run = request.run.as_ref().and_then(|run| world.run(run));
    let own = run.map(|run| format!(" (`{}`)", run.task)).unwrap_or_default();
    Problem::new(403, "FORBIDDEN", "the caller's role may not read this").hint(format!(
        "an agent reads its own task{own} with its changes, output and history, the tasks that it reviews, and the titles, \
         states and dependencies of the others"
    ))
}

/// Whether the caller may read all of a task.
pub fn sees(world: &World, request: &Request, task: &Task) -> bool {
    let Actor::Agent { name, role } = &request.actor else { return true };
    let reviews = task.machine.reviewer_id.as_deref() == Some(name.as_str())
        || (*role == Role::Lead && task.status() == Status::Review);
    let proposed =
        request.run.is_some() && task.proposed.as_ref().is_some_and(|proposed| proposed.run == request.run);
    let own = match request.run.as_ref().and_then(|run| world.run(run)) {
        Some(run) => run.task == task.id,
        // An agent that runs outside and has not begun: what was given to it, and to no worker.
        None => {
            let held = task.lease.as_ref().map(|lease| &lease.holder);
            let assigned = task.machine.assignee_ids.iter().any(|id| id == name.as_str());
            assigned && held.is_none_or(|holder| *holder == Holder::Outside(name.clone()))
        }
    };
    own || proposed || reviews
}

/// Whether a worker is the caller's own, or the caller a person.
pub fn is_its_worker(world: &World, request: &Request, worker: &Worker) -> bool {
    let run = || request.run.as_ref().and_then(|run| world.run(run));
    !matches!(request.actor, Actor::Agent { .. })
        || run().is_some_and(|run| run.holder == Holder::Worker(worker.name.clone()))
}
