//! Workers and runs.

use super::{Call, Problem, Routed, created, field, name, ok, view};
use kernel::why::Guard;
use kernel::world::Worker;
use kernel::{Ask, World};
use machines::Millis;
use machines::names::{AgentName, RunId, TaskId, WorkerName};
use machines::run;
use machines::task::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The process that runs the fleet, as requests see it. The runner is one.
pub trait Control: Send + Sync {
    /// What is under way, without waiting for anything.
    fn status(&self) -> FleetStatus;
    /// Begins to stop, and returns: steps end with their turn, or at once where `now` is set.
    fn stop(&self, now: bool);
    /// Has the settings read anew, soon.
    fn reread(&self);
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    /// It runs a fleet, or is about to, or is coming to its end. An owner that only answers requests does not.
    pub running: bool,
    pub pid: u32,
    #[serde(serialize_with = "as_time")]
    pub since: Millis,
    /// How many workers it was asked to run.
    pub workers: u32,
    /// What holds agents back, in a sentence; without it, roles are advisory.
    pub sandbox: Option<String>,
    /// The tests that run now.
    #[serde(serialize_with = "as_tests")]
    pub tests: Vec<runtime::runner::RunningTests>,
}

fn as_tests<S: serde::Serializer>(tests: &[runtime::runner::RunningTests], to: S) -> Result<S::Ok, S::Error> {
    let shown = |tests: &runtime::runner::RunningTests| json!({"effect": tests.effect, "command": tests.command, "since": view::time(tests.since)});
    tests.iter().map(shown).collect::<Vec<_>>().serialize(to)
}

fn as_time<S: serde::Serializer>(at: &Millis, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&view::time(*at))
}

pub fn status(call: &Call) -> Routed {
    let mut status = match call.site.control {
        Some(control) => json!(control.status()),
        None => {
            json!({"running": false, "pid": null, "since": null, "workers": 0, "sandbox": null, "tests": []})
        }
    };
    // Left on by a process that was killed: the next one goes on from there.
    let world = call.world();
    status["wanted"] = json!(world.fleet_running);
    status["mainTests"] = main_tests(&world);
    Ok(ok(status))
}

/// What is known of main's own tests; null where nobody wants to know.
fn main_tests(world: &World) -> Value {
    let Some(guard) = kernel::why::main_tests(world) else { return Value::Null };
    let verdict = world.main_verdict();
    let state = match verdict.map(|verdict| verdict.red.is_some()) {
        _ if world.main.under_way.is_some() || world.main.again => "running",
        Some(true) => "red",
        Some(false) => "green",
        None => "unknown",
    };
    json!({
        "state": state,
        "detail": guard.detail,
        "main": verdict.map(|verdict| &verdict.main),
        "at": verdict.map(|verdict| view::time(verdict.at)),
        "command": verdict.and_then(|verdict| verdict.command.as_ref()),
        "output": verdict.and_then(|verdict| verdict.red.as_ref()),
    })
}

/// Has main's own tests run again by the fleet that is at work; what comes of it is in the fleet's status.
pub fn test_main(call: &Call) -> Routed {
    if call.site.control.is_none() {
        return Err(Problem::new(409, "NOT_RUNNING", "no fleet runs here")
            .hint("`adj doctor --tests` runs them without one"));
    }
    call.submit(Ask::TestMain)?;
    Ok(ok(main_tests(&call.world())))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Stop {
    now: bool,
}

/// The kernel says who may, and hands out no more work; then the process ends what is under way. A disk that takes no more
/// keeps nobody from stopping it: the rules say the same without a log.
pub fn stop(call: &Call) -> Routed {
    let Stop { now } = call.body()?;
    match call.submit(Ask::StopFleet) {
        Err(problem) if problem.is_of_disk() && call.site.control.is_some() => call.would(Ask::StopFleet)?,
        asked => drop(asked?),
    }
    let stopping = call.site.control.map(|control| {
        control.stop(now);
        control.status().pid
    });
    Ok(ok(json!({"stopping": stopping.is_some(), "pid": stopping})))
}

/// The log says whether the fleet is wanted. Where no process owns the project, nothing runs all the same.
pub fn as_seen_from_here(call: &Call, mut guards: Vec<Guard>) -> Vec<Guard> {
    let nobody = call.site.control.is_none();
    for guard in guards.iter_mut().filter(|guard| nobody && guard.guard == "fleetRunning" && guard.holds) {
        guard.holds = false;
        guard.detail = "the process that ran the fleet is gone; `adj run` goes on with it".to_owned();
    }
    guards
}

pub fn workers(call: &Call) -> Routed {
    let world = call.world();
    let shown = |worker: &std::sync::Arc<Worker>| shown(call, &world, worker);
    let items: Vec<Value> = world.workers.values().map(shown).collect();
    Ok(ok(json!({"items": items, "fleetRunning": world.fleet_running, "next": null})))
}

pub fn worker(call: &Call, named: &str) -> Routed {
    let world = call.world();
    let worker = known(&world, named)?;
    Ok(ok(shown(call, &world, worker)))
}

/// What the caller may know of a worker.
fn shown(call: &Call, world: &World, worker: &Worker) -> Value {
    match super::scope::is_its_worker(world, call.request, worker) {
        true => view::worker(world, worker),
        false => view::worker_line(world, worker),
    }
}

pub fn known<'w>(world: &'w World, named: &str) -> Result<&'w Worker, Problem> {
    let named: WorkerName = name(named)?;
    world.worker(&named).ok_or_else(|| no_worker(&named))
}

pub fn no_worker(named: &WorkerName) -> Problem {
    Problem::not_found(format!("there is no worker `{named}`")).hint("`adj ps` lists the workers")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spawn {
    name: Option<String>,
    agent: Option<String>,
}

pub fn spawn(call: &Call) -> Routed {
    let Spawn { name, agent } = call.body()?;
    let name = name.map(|name| field("name", &name)).transpose()?;
    let name = name.unwrap_or_else(|| free_name(&call.world()));
    let agent: Option<AgentName> = agent.map(|agent| field("agent", &agent)).transpose()?;
    // A fleet keeps the rules as the settings are; where none runs, they may never have been read.
    let at_work = call.site.control.is_some_and(|control| control.status().running);
    let rules = call.site.outside.rules().filter(|_| !at_work);
    if let Some(config) = rules.filter(|config| *config != *call.world().config) {
        call.submit_beside(Ask::Configure { config: Box::new(config) })?;
    }
    call.submit(Ask::Spawn { name: name.clone(), agent })?;
    worker(call, name.as_str()).map(|shown| created(shown.body))
}

/// A, B, …, Z, then A2, B2, …
fn free_name(world: &World) -> WorkerName {
    let round = |number: u32| if number < 2 { String::new() } else { number.to_string() };
    let names = (1..).flat_map(|number| ('A'..='Z').map(move |letter| format!("{letter}{}", round(number))));
    names
        .filter_map(|name| WorkerName::new(name).ok())
        .find(|name| world.worker(name).is_none())
        .expect("there is always another name")
}

pub fn why(call: &Call, named: &str) -> Routed {
    let world = call.world();
    let worker = known(&world, named)?;
    let guards = kernel::why::of_worker(&world, &worker.name, call.request.at).unwrap_or_default();
    let guards = as_seen_from_here(call, guards);
    let state = format!("worker.{}", worker.machine.status);
    Ok(ok(json!({"id": worker.name, "state": state, "guards": guards})))
}

/// Why nothing happens: what stands in the way of all, then what each open task waits for.
pub fn why_all(call: &Call) -> Routed {
    let (world, now) = (call.world(), call.request.at);
    let mut guards = as_seen_from_here(call, kernel::why::of_fleet(&world, now));
    let wrong = call.site.outside.config_check().unwrap_or_default();
    for finding in wrong.into_iter().filter(|finding| finding.level == super::outside::Level::Error) {
        let detail = format!("{}: {}; the settings of before are in force", finding.subject, finding.text);
        guards.push(Guard { guard: "settingsValid", holds: false, detail, output: None });
    }
    guards.sort_by_key(|guard| guard.holds);
    let open = world.tasks.values().filter(|task| !matches!(task.status(), Status::Done | Status::Canceled));
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|task| task.order);
    let waits = open.iter().map(|task| {
        let guards = kernel::why::of_task(&world, &task.id, now).unwrap_or_default();
        let first = as_seen_from_here(call, guards).into_iter().find(|guard| !guard.holds);
        json!({
            "id": task.id, "title": task.title, "status": task.machine.status,
            "guard": first.as_ref().map(|guard| guard.guard), "detail": first.map(|guard| guard.detail),
        })
    });
    let waits: Vec<Value> = waits.collect();
    let state = if call.site.control.is_some() { "running" } else { "stopped" };
    Ok(ok(json!({"id": "fleet", "state": state, "guards": guards, "tasks": waits})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Assign {
    task: String,
    clarification: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Cleanup {
    force: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Merge {
    tip: Option<smol_str::SmolStr>,
    note: String,
}

pub fn act(call: &Call, named: &str, action: &str) -> Routed {
    let worker_name: WorkerName = name(named)?;
    let ask = match action {
        "assign" => {
            let Assign { task, clarification } = call.body()?;
            Ask::Assign { worker: worker_name, task: field("task", &task)?, clarification }
        }
        "kill" => Ask::Kill { worker: worker_name },
        "retry" => Ask::Retry { worker: worker_name },
        "cleanup" => Ask::Cleanup { worker: worker_name, force: call.body::<Cleanup>()?.force },
        "clean" => {
            call.submit(Ask::Clean { worker: worker_name.clone() })?;
            return Ok(ok(json!({"name": worker_name, "removed": true})));
        }
        "merge" => {
            let Merge { tip, note } = call.body()?;
            let world = call.world();
            let worker = known(&world, named)?;
            let id = match (&worker.machine.task, &world.handed_over_by(&worker.name)[..]) {
                (Some(id), _) => id.clone(),
                (None, [task]) => task.id.clone(),
                (None, []) => {
                    let detail = format!("worker `{named}` has no task, and none of its tasks is in REVIEW");
                    return Err(Problem::new(409, "NO_TASK", detail));
                }
                (None, tasks) => {
                    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
                    let detail = format!("worker `{named}` has handed over {}", ids.join(", "));
                    return Err(Problem::new(409, "SEVERAL", detail).hint("name the task"));
                }
            };
            Ask::Approve { id, tip, note }
        }
        _ => return Err(Problem::not_found(format!("a worker has no `{}`", action.escape_debug()))),
    };
    call.submit(ask)?;
    // A worker of the fleet's own that is one too many retires when it has nothing to do.
    match call.world().worker(&name::<WorkerName>(named)?) {
        Some(_) => worker(call, named),
        None => Ok(ok(json!({"name": named, "status": "removed", "task": null}))),
    }
}

pub fn runs(call: &Call) -> Routed {
    let world = call.world();
    let task = call.query("task");
    let wanted = world.runs.values().filter(|run| task.is_none_or(|task| run.task.as_str() == task));
    let wanted = wanted.filter(|run| world.task(&run.task).is_none_or(|task| call.sees(&world, task)));
    let items: Vec<Value> = wanted.map(|run| view::run(&world, run)).collect();
    Ok(ok(json!({"items": items, "next": null})))
}

pub fn run(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: RunId = name(id)?;
    let run = world.run(&id).ok_or_else(|| {
        Problem::not_found(format!("there is no run `{id}`")).hint("`adj history` lists the runs")
    })?;
    Ok(ok(view::run(&world, run)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Open {
    task: TaskId,
    #[serde(default)]
    prompt: String,
    options: Option<run::Options>,
}

pub fn open_run(call: &Call) -> Routed {
    let Open { task, prompt, options } = call.body()?;
    let reply = call.submit(Ask::OpenRun { task, prompt, options })?;
    run(call, &reply.id.unwrap_or_default()).map(|shown| created(shown.body))
}

pub fn run_event(call: &Call, id: &str) -> Routed {
    let sent = run::as_sent(call.request.body.clone())
        .map_err(|error| Problem::bad(format!("the event is not right: {}", error.message)))?;
    let event: run::Event = serde_json::from_value(sent)
        .map_err(|error| Problem::bad(format!("the event is not right: {error}")))?;
    call.submit(Ask::RunEvent { run: name(id)?, event })?;
    run(call, id)
}
