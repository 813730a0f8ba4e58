//! Workers and the fleet.

use super::tokens::Who;
use super::types::fleet::{Fleet, MainState, MainTests, RunningTests, Start, Stop, Stopping};
use super::types::token::Link;
use super::types::waiting::Offered;
use super::types::why::{FleetWhy, Waits, WorkerWhy};
use super::types::worker::{Acted, Assign, Cleaned, Cleanup, Merge, Removed, Retired, Spawn, Workers};
use super::types::{self, Nothing, Page, Paging};
use super::{Call, Problem, field, view};
use crate::story_feed::StoryFeed;
use kernel::choice::Choice;
use kernel::why::Guard;
use kernel::words::Condition;
use kernel::world::Worker;
use kernel::{Ask, World};
use machines::Millis;
use machines::names::{AgentName, WorkerName};
use smol_str::SmolStr;
use std::sync::Arc;

type Shown = types::worker::Worker;

/// More workers than this are a slip of the hand.
const WORKERS_MAX: u32 = 1_000;

/// The process that runs the fleet, as requests see it. The runner is one.
pub trait Control: Send + Sync {
    /// What is under way, without waiting for anything.
    fn status(&self) -> FleetStatus;
    /// Begins to run a fleet, and returns once it can: what was wrong with the settings or the machine is said.
    fn start(&self, workers: Option<u32>) -> Result<(), Problem>;
    /// Begins to stop the fleet, and returns: steps end with their turn, or at once where `now` is set.
    fn stop(&self, now: bool);
    /// The process itself comes to its end once its fleet has. One that is there for the fleet alone does so anyway.
    fn end(&self) {}
    /// A way into the page for a browser.
    fn link(&self, _who: Who, _now: Millis) -> Result<Link, Problem> {
        Err(super::tokens::not_served())
    }
    /// Has the settings read anew, soon.
    fn reread(&self);
    /// The story of the process since it started.
    fn story(&self) -> Option<Arc<StoryFeed>> {
        None
    }
}

/// What runs.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetStatus {
    /// It runs a fleet, or is about to, or is coming to its end. An owner that only answers requests does not.
    pub running: bool,
    pub pid: u32,
    /// Where browsers and programs find it, where it has an address.
    pub url: Option<String>,
    /// Where it listens itself, where that is not the address by which it is found.
    pub listens: Option<String>,
    /// What is wrong with its port, where the system may give that to another program.
    pub shared_port: Option<String>,
    pub since: Millis,
    /// How many workers it was asked to run.
    pub workers: u32,
    /// What holds agents back, in a sentence; without it, roles are advisory.
    pub sandbox: Option<String>,
    /// The tests that run now.
    pub tests: Vec<fleet::RunningTests>,
}

pub fn status(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Fleet, Problem> {
    let world = call.world();
    let status = call.access.control.map(|control| control.status());
    let tests = |tests: &fleet::RunningTests| RunningTests {
        effect: tests.effect.to_string(),
        command: tests.command.clone(),
        since: view::time(tests.since),
    };
    Ok(Fleet {
        running: status.as_ref().is_some_and(|status| status.running),
        pid: status.as_ref().map(|status| status.pid),
        url: status.as_ref().and_then(|status| status.url.clone()),
        listens: status.as_ref().and_then(|status| status.listens.clone()),
        since: status.as_ref().map(|status| view::time(status.since)),
        workers: status.as_ref().map_or(0, |status| status.workers),
        sandbox: status.as_ref().and_then(|status| status.sandbox.clone()),
        tests: status.iter().flat_map(|status| &status.tests).map(tests).collect(),
        trees: call.access.host.trees(),
        // Left on by a process that was killed: the next one goes on from there.
        wanted: world.fleet_running,
        main_tests: main_tests(&world),
    })
}

/// What is known of main's own tests; nothing where nobody wants to know.
pub fn main_tests(world: &World) -> Option<MainTests> {
    let guard = kernel::why::main_tests(world)?;
    let verdict = world.main_verdict();
    let state = match verdict.map(|verdict| verdict.red.is_some()) {
        _ if world.main.under_way.is_some() || world.main.again => MainState::Running,
        Some(true) => MainState::Red,
        Some(false) => MainState::Green,
        None => MainState::Unknown,
    };
    Some(MainTests {
        state,
        detail: guard.detail,
        main: verdict.map(|verdict| verdict.main.to_string()),
        at: verdict.map(|verdict| view::time(verdict.at)),
        command: verdict.and_then(|verdict| verdict.command.clone()),
        output: verdict.and_then(|verdict| verdict.red.clone()),
    })
}

/// Has main's own tests run again by the fleet that is at work; what comes of it is in the fleet's status.
pub fn test_main(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Option<MainTests>, Problem> {
    if !call.fleet_runs() {
        return Err(Problem::new(409, "NOT_RUNNING", "no fleet is running")
            .hint("`adj doctor --tests` runs them without one"));
    }
    call.submit(Ask::TestMain)?;
    Ok(main_tests(&call.world()))
}

/// The kernel says who may; the process does it.
pub fn start(call: &Call, (): (), _: Nothing, start: Start) -> Result<Fleet, Problem> {
    if start.workers.is_some_and(|workers| !(1..=WORKERS_MAX).contains(&workers)) {
        return Err(super::wrong("workers", format!("`workers` must be 1 to {WORKERS_MAX}")));
    }
    call.would(Ask::StartFleet { workers: start.workers.unwrap_or(1) })?;
    match call.access.control {
        Some(control) => control.start(start.workers)?,
        None => {
            return Err(Problem::new(409, "NOT_SERVED", "no server runs here that could run a fleet")
                .hint("`adj run` runs one in a terminal, `adj serve` begins a server"));
        }
    }
    status(call, (), Nothing {}, Nothing {})
}

/// The kernel says who may, and hands out no more work; then the process ends what is under way. A disk that takes no more
/// keeps nobody from stopping it: the rules say the same without a log.
pub fn stop(call: &Call, (): (), _: Nothing, stop: Stop) -> Result<Stopping, Problem> {
    match call.submit(Ask::StopFleet) {
        Err(problem) if problem.is_of_disk() && call.access.control.is_some() => {
            call.would(Ask::StopFleet)?
        }
        asked => drop(asked?),
    }
    let pid = call.access.control.map(|control| {
        control.stop(stop.now);
        if stop.server {
            control.end();
        }
        control.status().pid
    });
    Ok(Stopping { stopping: pid.is_some(), pid })
}

/// The log says whether the fleet is wanted. Where no process owns the project, nothing runs all the same.
pub fn as_seen_from_here(call: &Call, mut guards: Vec<Guard>) -> Vec<Guard> {
    let nobody = !call.fleet_runs();
    for guard in
        guards.iter_mut().filter(|guard| nobody && guard.guard == Condition::FleetRunning && guard.holds)
    {
        guard.holds = false;
        guard.detail = "the process that ran the fleet is gone".to_owned();
        guard.next = vec![Choice::StartFleet];
    }
    guards
}

pub fn workers(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Workers, Problem> {
    let world = call.world();
    let Page { items, next } = paging.page_of(world.workers.values(), |worker| shown(call, &world, worker));
    Ok(Workers { items, fleet_running: world.fleet_running, next })
}

pub fn worker(call: &Call, name: WorkerName, _: Nothing, _: Nothing) -> Result<Shown, Problem> {
    let world = call.world();
    Ok(shown(call, &world, known(&world, &name)?))
}

/// What the caller may know of a worker.
fn shown(call: &Call, world: &World, worker: &Worker) -> Shown {
    match super::scope::is_its_worker(world, call.request, worker) {
        true => view::worker(world, worker, call.request.at),
        false => view::worker_line(world, worker),
    }
}

pub fn known<'w>(world: &'w World, name: &WorkerName) -> Result<&'w Worker, Problem> {
    world.worker(name).ok_or_else(|| no_worker(name))
}

pub fn no_worker(named: &WorkerName) -> Problem {
    Problem::not_found(format!("there is no worker `{named}`")).hint("`adj ps` lists the workers")
}

pub fn spawn(call: &Call, (): (), _: Nothing, spawn: Spawn) -> Result<Shown, Problem> {
    let name = spawn.name.map(|name| field("name", &name)).transpose()?;
    let agent: Option<AgentName> = spawn.agent.map(|agent| field("agent", &agent)).transpose()?;
    let reply = call.submit(Ask::Spawn { name, agent })?;
    worker(call, field("name", &reply.id.unwrap_or_default())?, Nothing {}, Nothing {})
}

pub fn why(call: &Call, name: WorkerName, _: Nothing, _: Nothing) -> Result<WorkerWhy, Problem> {
    let world = call.world();
    let worker = known(&world, &name)?;
    let guards = kernel::why::of_worker(&world, &worker.name, call.request.at).unwrap_or_default();
    let guards = as_seen_from_here(call, guards).into_iter().map(Into::into).collect();
    Ok(WorkerWhy { id: name.to_string(), state: format!("worker.{}", worker.machine.status), guards })
}

/// Why nothing happens: what stands in the way of all, then what each open task waits for.
pub fn why_all(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<FleetWhy, Problem> {
    let (world, now) = (call.world(), call.request.at);
    let mut guards = as_seen_from_here(call, kernel::why::of_fleet(&world, now));
    let wrong = call.access.host.config_check().unwrap_or_default();
    for finding in wrong.into_iter().filter(|finding| finding.level == types::host::Level::Error) {
        let detail = format!("{}: {}; the previous settings stay in force", finding.subject, finding.text);
        guards.push(Guard {
            guard: Condition::SettingsValid,
            holds: false,
            detail,
            next: Vec::new(),
            lasts: true,
            output: None,
        });
    }
    guards.sort_by_key(|guard| guard.holds);
    let open = world.tasks.values().filter(|task| !task.is_final());
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|task| task.order);
    let waits = open.iter().map(|task| {
        let guards = kernel::why::of_task(&world, &task.id, now).unwrap_or_default();
        let first = as_seen_from_here(call, guards).into_iter().find(|guard| !guard.holds);
        Waits {
            id: task.id.to_string(),
            title: task.title.clone(),
            status: task.status(),
            guard: first.as_ref().map(|guard| guard.guard),
            detail: first.as_ref().map(|guard| guard.detail.clone()),
            next: first.into_iter().flat_map(|guard| guard.next).map(Offered::from).collect(),
        }
    });
    let tasks = waits.collect();
    let state = if call.fleet_runs() { "running" } else { "stopped" };
    let guards = guards.into_iter().map(Into::into).collect();
    let list = kernel::waiting::waiting(&world, &call.access.host.facts(), now);
    let waiting = list.into_iter().filter(|item| item.needs_someone()).map(Into::into).collect();
    Ok(FleetWhy { id: "fleet".to_owned(), state: state.to_owned(), guards, waiting, tasks })
}

pub fn assign(call: &Call, worker: WorkerName, _: Nothing, assign: Assign) -> Result<Acted, Problem> {
    let Assign { task, clarification } = assign;
    let task = field("task", &task)?;
    act(call, &worker, Ask::Assign { worker: worker.clone(), task, clarification })
}

pub fn kill(call: &Call, worker: WorkerName, _: Nothing, _: Nothing) -> Result<Acted, Problem> {
    act(call, &worker, Ask::Kill { worker: worker.clone() })
}

pub fn retry(call: &Call, worker: WorkerName, _: Nothing, _: Nothing) -> Result<Acted, Problem> {
    act(call, &worker, Ask::Retry { worker: worker.clone() })
}

pub fn cleanup(call: &Call, worker: WorkerName, _: Nothing, cleanup: Cleanup) -> Result<Acted, Problem> {
    act(call, &worker, Ask::Cleanup { worker: worker.clone(), force: cleanup.force })
}

pub fn clean(call: &Call, worker: WorkerName, _: Nothing, _: Nothing) -> Result<Cleaned, Problem> {
    call.submit(Ask::Clean { worker: worker.clone() })?;
    Ok(Cleaned { name: worker.to_string(), removed: true })
}

pub fn merge(call: &Call, name: WorkerName, _: Nothing, merge: Merge) -> Result<Acted, Problem> {
    let world = call.world();
    let worker = known(&world, &name)?;
    let id = match (&worker.machine.task, &world.handed_over_by(&worker.name)[..]) {
        (Some(id), _) => id.clone(),
        (None, [task]) => task.id.clone(),
        (None, []) => {
            let detail = format!("worker `{name}` has no task, and none of its tasks is in REVIEW");
            return Err(Problem::new(409, "NO_TASK", detail));
        }
        (None, tasks) => {
            let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
            let detail = format!("worker `{name}` has handed over {}", ids.join(", "));
            return Err(Problem::new(409, "SEVERAL", detail).hint("name the task"));
        }
    };
    act(call, &name, Ask::Approve { id, tip: merge.tip.map(SmolStr::from), note: merge.note })
}

fn act(call: &Call, name: &WorkerName, ask: Ask) -> Result<Acted, Problem> {
    call.submit(ask)?;
    let world = call.world();
    Ok(match world.worker(name) {
        Some(worker) => Acted::There(Box::new(shown(call, &world, worker))),
        // One of the fleet's own that is one too many retires when it has nothing to do.
        None => Acted::Retired(Retired { name: name.to_string(), status: Removed::Removed, task: None }),
    })
}
