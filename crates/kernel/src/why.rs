//! Why nothing happens: each guard with its value. The same guards decide; here they are put into words.

use crate::World;
use crate::budget;
use crate::world::{BudgetScope, Dependency, Holder, SentBack, Task, day_of};
use machines::Millis;
use machines::names::{AgentName, ServiceName, TaskId, WorkerName};
use machines::task::{BlockReason, Status};
use serde::Serialize;

/// One guard, whether it holds, and what it looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guard {
    pub guard: &'static str,
    pub holds: bool,
    pub detail: String,
}

const NOT_RUNNING: &str = "the fleet is not running; `adj run` starts it";

/// Whether anybody carries anything out.
fn fleet_running(world: &World) -> Guard {
    guard(
        "fleetRunning",
        world.fleet_running,
        if world.fleet_running { "the fleet is at work" } else { NOT_RUNNING },
    )
}

fn guard(guard: &'static str, holds: bool, detail: impl Into<String>) -> Guard {
    Guard { guard, holds, detail: detail.into() }
}

/// What keeps an agent's workers from claiming anything at all.
pub fn fleet_guards(world: &World, agent: &AgentName, day: i64) -> Vec<Guard> {
    let config = world.config.agent(agent);
    let service = config.service.as_ref();
    let health = service.and_then(|service| world.health.get(service));
    // Counted only where there is a cap: this is asked after every command.
    let cap = world.config.policy.cap_per_agent;
    let holds = |task: &&std::sync::Arc<Task>| held_by(world, task, agent);
    let held = cap.map_or(0, |_| world.tasks.values().filter(holds).count());
    vec![
        guard(
            "dayBudgetSettled",
            world.day_approval.is_none(),
            world
                .day_approval
                .as_ref()
                .map_or("no question is open".to_owned(), |id| format!("`{id}` waits for a person")),
        ),
        guard(
            "diskRoom",
            world.disk_full.is_none(),
            world.disk_full.as_ref().map_or("there is room".to_owned(), |found| found.to_string()),
        ),
        guard(
            "serviceHealthy",
            health.is_none_or(|health| health.healthy),
            match (service, health) {
                (Some(service), Some(health)) if !health.healthy => format!("`{service}` is away"),
                (Some(service), _) => format!("`{service}` is there"),
                (None, _) => "the agent needs none".to_owned(),
            },
        ),
        guard(
            "agentCap",
            cap.is_none_or(|cap| held < cap as usize),
            cap.map_or("no cap".to_owned(), |cap| format!("{held} of {cap} tasks in hand")),
        ),
    ]
    .into_iter()
    .chain(budget_guards(world, budget::shared_rooms(world, agent, day)))
    .collect()
}

fn held_by(world: &World, task: &Task, agent: &AgentName) -> bool {
    match task.lease.as_ref().map(|lease| &lease.holder) {
        Some(Holder::Worker(name)) => world.worker(name).is_some_and(|worker| worker.agent == *agent),
        Some(Holder::Outside(name)) => name == agent,
        None => false,
    }
}

fn budget_guards(world: &World, rooms: Vec<budget::Room>) -> impl Iterator<Item = Guard> + use<'_> {
    let step = world.config.budget.step;
    rooms.into_iter().map(move |room| {
        let name = match room.scope {
            BudgetScope::Run => "runBudget",
            BudgetScope::Task => "taskBudget",
            BudgetScope::Agent => "agentBudget",
            BudgetScope::Day => "dayBudget",
        };
        let (used, limit) = (dollars(room.used), dollars(room.limit));
        guard(name, room.has(step), format!("{used} of {limit} used, a step takes {}", dollars(step)))
    })
}

pub fn dollars(micros: u64) -> String {
    format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// What keeps a worker of `agent` from claiming this task.
pub fn task_guards(world: &World, task: &Task, agent: &AgentName) -> Vec<Guard> {
    let status = task.status();
    let mut guards = vec![
        guard(
            "statusOpen",
            matches!(status, Status::Inbox | Status::Assigned | Status::InProgress),
            format!("task.{status}"),
        ),
        guard(
            "noLease",
            task.lease.is_none(),
            match task.lease.as_ref().map(|lease| &lease.holder) {
                Some(Holder::Worker(name)) => format!("worker `{name}` has it"),
                Some(Holder::Outside(name)) => format!("agent `{name}` has it, outside"),
                None => "nobody has it".to_owned(),
            },
        ),
        nothing_unfinished(task),
        guard(
            "ownAgent",
            task.machine.assignee_ids.is_empty()
                || status == Status::Inbox
                || task.machine.assignee_ids.iter().any(|id| id == agent.as_str()),
            if task.machine.assignee_ids.is_empty() {
                "assigned to nobody".to_owned()
            } else {
                format!("assigned to {}", task.machine.assignee_ids.join(", "))
            },
        ),
        guard(
            "serviceBack",
            task.waits_for.is_none(),
            task.waits_for
                .as_ref()
                .map_or("it waits for none".to_owned(), |service| format!("it waits for `{service}`")),
        ),
    ];
    let started = world.counts.get(&Status::InProgress).copied().unwrap_or(0);
    if let Some(cap) = world.config.policy.cap_in_progress.filter(|_| status != Status::InProgress) {
        guards.push(guard("statusCap", started < cap, format!("{started} of {cap} tasks are IN_PROGRESS")));
    }
    if status != Status::InProgress {
        for on in &task.depends_on {
            let waits = waits_on(world.dependency(on));
            guards.push(guard(
                "dependencyDone",
                waits.is_none(),
                waits.map_or(format!("`{on}` is DONE"), |why| format!("`{on}` {why}")),
            ));
        }
    }
    let run = task.run.as_ref().and_then(|run| world.run(run)).filter(|run| run.is_open());
    guards.extend(budget_guards(world, budget::own_rooms(world, task, run)));
    guards
}

/// Why a person must look at a task, whatever the policy.
pub fn needs_person(reason: &str) -> &str {
    match reason {
        "no_changes" => "it changes nothing",
        "no_tests" => "no tests were found",
        "max_steps" => "it took all its steps",
        "touches_config" => "it changes adjutant.toml",
        "by_hand" => "it was moved to REVIEW by hand, so no checks ran",
        other => other,
    }
}

fn nothing_unfinished(task: &Task) -> Guard {
    guard(
        "nothingUnfinished",
        task.unfinished.is_empty() && task.gate.is_none(),
        match task.unfinished.len() {
            _ if task.gate.is_some() => "its gate is running".to_owned(),
            0 => "nothing from before is under way".to_owned(),
            count => {
                format!("{count} from before under way, such as saving its work; a running fleet ends it")
            }
        },
    )
}

fn first_failing(guards: Vec<Guard>) -> Option<String> {
    guards.into_iter().find(|guard| !guard.holds).map(|guard| format!("{}: {}", guard.guard, guard.detail))
}

pub(crate) fn fleet_blocker(world: &World, agent: &AgentName, day: i64) -> Option<String> {
    first_failing(fleet_guards(world, agent, day))
}

pub(crate) fn task_blocker(world: &World, task: &Task, agent: &AgentName) -> Option<String> {
    first_failing(task_guards(world, task, agent))
}

/// The same, where a person gives the task to a worker: BLOCKED is a way in, and the assignee is theirs to choose.
pub(crate) fn assign_blocker(world: &World, task: &Task, agent: &AgentName, day: i64) -> Option<String> {
    let blocked = task.status() == Status::Blocked;
    let guards = task_guards(world, task, agent).into_iter().filter(|guard| {
        !(blocked && matches!(guard.guard, "statusOpen" | "ownAgent" | "serviceBack" | "statusCap"))
    });
    first_failing(fleet_guards(world, agent, day).into_iter().chain(guards).collect())
}

/// What went wrong last with a task that the system blocked, in one line.
fn last_words(world: &World, task: &Task) -> Option<String> {
    let text = match (task.machine.block_reason?, &task.sent_back) {
        (BlockReason::Landing, Some(SentBack::Landing(output))) => output.clone(),
        (BlockReason::Stuck, Some(SentBack::Gate(output))) => output.clone(),
        (BlockReason::Stuck, _) => world.run_of(&task.id)?.machine.inner().last_error.clone()?.message,
        _ => return None,
    };
    let line =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// What stands between a task and its end.
pub fn of_task(world: &World, id: &TaskId, now: Millis) -> Option<Vec<Guard>> {
    let task = world.task(id)?;
    let day = day_of(now);
    let agent = &world.config.fleet.agent;
    let mut guards = Vec::new();
    match task.status() {
        Status::Done | Status::Canceled => {
            guards.push(guard("open", false, format!("task.{}: nothing is left to do", task.status())))
        }
        Status::Blocked => {
            let reason =
                task.machine.block_reason.map_or("no reason".to_owned(), |reason| reason.to_string());
            let last = last_words(world, task).map(|words| format!(": {words}")).unwrap_or_default();
            // A worker that is stuck with it keeps its place and its session.
            let holder = world.workers.values().find(|worker| worker.machine.task.as_ref() == Some(id));
            // After too many reviews it goes on only with what was not clear before.
            let unclear = task.machine.block_reason == Some(BlockReason::ReviewCycles);
            let clearly = if unclear { " --clarification TEXT" } else { "" };
            let out = match holder.filter(|_| !unclear) {
                None => format!("`adj assign WORKER {id}{clearly}`"),
                Some(worker) => format!("`adj retry {0}`, `adj kill {0}`", worker.name),
            };
            let out = format!("to continue: {out} or `adj task move {id} IN_PROGRESS{clearly}`");
            guards.push(guard("notBlocked", false, format!("BLOCKED ({reason}){last}; {out}")));
            guards.extend(Some(nothing_unfinished(task)).filter(|guard| !guard.holds));
        }
        Status::NeedsApproval => {
            let question = task.approval.as_ref().and_then(|approval| world.approvals.get(approval));
            let detail = question.map_or("a person must decide".to_owned(), |approval| {
                let (id, question) = (&approval.id, &approval.question);
                format!("`{id}`: {question} (`adj approve {id}`, or `adj deny {id}`)")
            });
            guards.push(guard("decided", false, detail));
        }
        Status::Review => {
            guards.push(guard(
                "approved",
                task.approved.is_some(),
                match (&task.approved, &task.needs_person) {
                    (Some(approved), _) => format!("by {}", approved.by),
                    (None, Some(reason)) => {
                        format!("a person must look at it ({}): `adj review {id}`", needs_person(reason))
                    }
                    (None, None) => format!("review = \"{}\": `adj review {id}`", world.config.fleet.review),
                },
            ));
            guards.push(fleet_running(world));
            guards.push(guard(
                "checkoutFree",
                task.held_up.is_none(),
                task.held_up.as_ref().map_or("nothing is in the way".to_owned(), |why| why.to_string()),
            ));
            let landing = world.landing.as_ref().is_some_and(|landing| landing.task == *id);
            guards.push(guard(
                "landing",
                landing,
                if landing { "it is being landed" } else { "it is not being landed" },
            ));
        }
        Status::Inbox | Status::Assigned | Status::InProgress => {
            guards.push(fleet_running(world));
            // Once somebody has it, what keeps others from taking it is no answer.
            if let Some(worker) = world.leaseholder(id) {
                let said_already = |guard: &Guard| guard.guard == "fleetRunning";
                let of_worker = of_worker(world, &worker.name, now).unwrap_or_default();
                guards.extend(of_worker.into_iter().filter(|guard| !said_already(guard)));
                return Some(guards);
            }
            guards.push(guard(
                "workerIdle",
                !world.idle.is_empty() || task.lease.is_some(),
                idle_workers(world),
            ));
            guards.extend(fleet_guards(world, agent, day));
            guards.extend(task_guards(world, task, agent));
        }
    }
    Some(guards)
}

/// How many workers are free. Stuck ones keep their places until a person looks at them, so they are named.
fn idle_workers(world: &World) -> String {
    /// So many are named; one is enough to begin with.
    const NAMED_MAX: usize = 3;
    let idle = world.idle.len();
    let stuck =
        world.workers.values().filter(|worker| worker.machine.status == machines::worker::State::Stuck);
    let stuck: Vec<&str> = stuck.map(|worker| worker.name.as_str()).collect();
    let (Some(first), 0) = (stuck.first(), idle) else {
        return if idle == 1 { "1 idle worker".to_owned() } else { format!("{idle} idle workers") };
    };
    let mut names = stuck[..stuck.len().min(NAMED_MAX)].join(", ");
    if stuck.len() > NAMED_MAX {
        names.push_str(", …");
    }
    let (stuck, all) = (stuck.len(), world.workers.len());
    format!(
        "no worker is idle: {stuck} of {all} stuck ({names}); `adj retry {first}` puts it back to work, `adj kill {first}` frees it"
    )
}

/// What a worker waits for.
pub fn of_worker(world: &World, name: &WorkerName, now: Millis) -> Option<Vec<Guard>> {
    use machines::worker::State;
    let worker = world.worker(name)?;
    let state = worker.machine.status;
    let mut guards = vec![guard("workerState", true, format!("worker.{state}"))];
    let run = worker.machine.task.as_ref().and_then(|id| world.run_of(id));
    if let Some(run) = run {
        let question = run.question.as_ref().and_then(|question| world.approvals.get(&question.approval));
        if let Some(approval) = question.filter(|approval| approval.decided.is_none()) {
            let (id, question) = (&approval.id, &approval.question);
            let detail = format!("`{id}`: {question} (`adj approve {id}`, or `adj deny {id}`)");
            guards.push(guard("answered", false, detail));
        }
        let waits = !guards.iter().all(|guard| guard.holds) || run.is_suspended();
        let state = format!("run.{} ({})", run.machine.name(), run.id);
        guards.push(guard("runState", run.is_live() || waits, state));
        if let Some(step) = run.step.as_ref().and_then(|step| Some((step, world.effects.get(step)?))) {
            guards.push(guard("underWay", true, format!("{} ({})", step.1.kind(), step.0)));
        }
        if let Some(suspension) = run.machine.suspension() {
            let service = &suspension.service;
            let name = ServiceName::new(service.as_str()).ok();
            let away = name.map_or_else(|| format!("`{service}` is away"), |name| away(world, &name, now));
            guards.push(guard("serviceThere", false, away));
        }
    }
    let backoff = world.timers.get(&crate::Timer::Backoff { worker: name.clone() });
    if let Some(due) = backoff.and_then(|id| world.effects.get(id)).and_then(|effect| effect.due()) {
        guards.push(guard("backoffOver", false, next_try(due, now)));
    }
    match state {
        State::Idle => {
            guards.push(fleet_running(world));
            guards.extend(fleet_guards(world, &worker.agent, day_of(now)));
            guards.push(guard(
                "workThere",
                !world.claimable.is_empty(),
                match world.claimable.len() {
                    1 => "1 task could be claimed".to_owned(),
                    count => format!("{count} tasks could be claimed"),
                },
            ));
        }
        State::Stuck => {
            let task = worker.machine.task.as_ref().and_then(|id| world.task(id));
            let error = worker.last_error.clone().filter(|error| !error.is_empty());
            let error = error.or_else(|| last_words(world, task?)).unwrap_or_default();
            let gap = if error.is_empty() { "" } else { "; " };
            guards.push(guard(
                "notStuck",
                false,
                format!("{error}{gap}`adj retry {name}` or `adj kill {name}`"),
            ));
        }
        _ => guards.push(fleet_running(world)),
    }
    Some(guards)
}

/// A service that does not answer: since when, and when it is asked again.
fn away(world: &World, service: &ServiceName, now: Millis) -> String {
    let health = world.health.get(service);
    let for_seconds = health.map_or(0, |health| (now - health.since).max(0) / 1000);
    let timers = [crate::Timer::Reset { service: service.clone() }, crate::Timer::HealthPoll];
    let due = timers.iter().find_map(|timer| world.effects.get(world.timers.get(timer)?)?.due());
    let next = due.map_or(String::new(), |due| format!("; {}", next_try(due, now)));
    // Where the settings name none, it is the one service that agents need.
    let name = if service.as_str() == "agents" {
        "the model API".to_owned()
    } else {
        format!("service `{service}`")
    };
    format!("{name} has not answered for {for_seconds} s{next}")
}

/// What keeps the whole fleet from going on, whatever the task: what fails comes first.
pub fn of_fleet(world: &World, now: Millis) -> Vec<Guard> {
    let agent = &world.config.fleet.agent;
    let mut guards = vec![fleet_running(world)];
    guards.extend(
        fleet_guards(world, agent, day_of(now)).into_iter().filter(|guard| guard.guard != "serviceHealthy"),
    );
    for (service, health) in &world.health {
        let detail = match health.healthy {
            true => format!("`{service}` answers"),
            false => away(world, service, now),
        };
        guards.push(guard("serviceHealthy", health.healthy, detail));
    }
    let is_open = |task: &&std::sync::Arc<Task>| !matches!(task.status(), Status::Done | Status::Canceled);
    let open = world.tasks.values().filter(is_open).count();
    guards.push(guard(
        "workThere",
        open > 0,
        match open {
            0 => "no task is open; put a ticket into .tickets, or `adj task add TITLE`".to_owned(),
            1 => "1 task is open".to_owned(),
            open => format!("{open} tasks are open"),
        },
    ));
    let working = world.workers.values().any(|worker| {
        !matches!(worker.machine.status, machines::worker::State::Idle | machines::worker::State::Stuck)
    });
    if !world.workers.is_empty() && !working {
        guards.push(guard("workerIdle", !world.idle.is_empty(), idle_workers(world)));
    }
    guards.sort_by_key(|guard| guard.holds);
    guards
}

fn next_try(due: Millis, now: Millis) -> String {
    match (due - now + 999) / 1000 {
        ..=0 => "the next try is due".to_owned(),
        seconds => format!("the next try is due in {seconds} s"),
    }
}

/// What a person must decide about dependencies, by name.
fn waits_on(dependency: Dependency) -> Option<&'static str> {
    match dependency {
        Dependency::Done => None,
        Dependency::Open => Some("is not DONE yet"),
        Dependency::Canceled => {
            Some("was CANCELED and will never be DONE; a person must remove the dependency")
        }
        Dependency::Missing => Some("is not known; a person must add it or remove the dependency"),
    }
}
