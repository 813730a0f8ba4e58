//! The fleet's own workers: made, replaced and retired as the settings and the work want it.

use machines::machine::Caller;
use machines::names::{AgentName, TaskId, WorkerName};
use machines::worker;

use super::Rule;
use super::landing::reconsider;
use super::main_tests::started_again;
use super::next::wake;
use crate::choice::Choice;
use crate::command::Refusal;
use crate::draft::{Draft, Ruled};
use crate::event::{FleetSwitched, WorkerSpawned};
use crate::why;

pub(crate) fn start_fleet(d: &mut Draft, workers: u32) -> Ruled {
    let starts = !d.world.fleet_running;
    // Whoever looks at a fleet that came after a crash has not heard what the one before it said.
    let said = d.world.standstill.as_ref().is_some_and(|standstill| standstill.of_this_fleet);
    if starts || said || d.world.fleet_workers != Some(workers) {
        d.emit(FleetSwitched { running: true, workers: Some(workers) });
    }
    if starts {
        super::architect::started_again(d)?;
        started_again(d);
    }
    // Whoever is an agent that is no longer configured could only fail.
    let config = d.world.config.clone();
    let useless = |name: &&WorkerName| {
        let worker = d.world.worker(name);
        worker.is_some_and(|worker| !worker.by_person && !config.agents.contains_key(&worker.agent))
    };
    let gone: Vec<_> = d.world.idle.iter().filter(useless).cloned().collect();
    for name in gone {
        d.move_worker(&name, worker::Event::Clean)?;
    }
    let agent = config.fleet.agent.clone();
    while places_taken(d) < workers {
        make_worker(d, &agent)?;
    }
    retire_surplus(d)?;
    reconsider(d)?;
    let held: Vec<TaskId> =
        d.world.workers.values().filter_map(|worker| worker.machine.task.clone()).collect();
    for id in held {
        wake(d, &id)?;
    }
    if starts { super::service::fleet_started(d) } else { Ok(()) }
}

/// How many of the fleet's places are taken: by its own workers, and by a person's of the same agent. A stuck worker
/// stays for a person to see and takes nobody's place.
fn places_taken(d: &Draft) -> u32 {
    let agent = &d.world.config.fleet.agent;
    let takes = |worker: &&std::sync::Arc<crate::world::Worker>| {
        worker.machine.status != worker::State::Stuck && (!worker.by_person || worker.agent == *agent)
    };
    d.world.workers.values().filter(takes).count() as u32
}

/// One more worker of the fleet's own, under the next free name.
fn make_worker(d: &mut Draft, agent: &machines::names::AgentName) -> Ruled {
    let name = free_name(&d.world);
    spawn(d, &name, agent, false, Caller::SYSTEM)
}

/// A worker is stuck: another one takes its place in the fleet, if there is work for it. Work that comes later makes one.
pub(super) fn fill_place(d: &mut Draft) -> Ruled {
    let wanted = d.world.fleet_workers.unwrap_or(d.world.config.fleet.workers);
    if d.world.fleet_running && places_taken(d) < wanted && !d.world.claimable.is_empty() {
        let agent = d.world.config.fleet.agent.clone();
        make_worker(d, &agent)?;
    }
    Ok(())
}

/// A task waits for an agent that has no idle worker: one is made where a place is free, or in the place of an idle worker
/// that no task waits for. `false` where nothing was done.
pub(super) fn change_hands(d: &mut Draft) -> Result<bool, Refusal> {
    if !d.world.fleet_running || d.world.claimable.is_empty() {
        return Ok(false);
    }
    let wanted = d.world.fleet_workers.unwrap_or(d.world.config.fleet.workers);
    let free = places_taken(d) < wanted;
    let own = |name: &&WorkerName| d.world.worker(name).is_some_and(|worker| !worker.by_person);
    let mut idle: Vec<WorkerName> = d.world.idle.iter().filter(own).cloned().collect();
    if !free && idle.is_empty() {
        return Ok(false);
    }
    let needed = agents_needed(&d.world);
    let has_idle = |agent: &machines::names::AgentName| {
        d.world.idle.iter().any(|name| d.world.worker(name).is_some_and(|worker| worker.agent == *agent))
    };
    let Some(agent) = needed.iter().find(|agent| !has_idle(agent)).cloned() else { return Ok(false) };
    if !free {
        idle.retain(|name| d.world.worker(name).is_some_and(|worker| !needed.contains(&worker.agent)));
        idle.sort_by_key(|name| (name.as_str().len(), name.clone()));
        let Some(last) = idle.pop() else { return Ok(false) };
        d.move_worker(&last, worker::Event::Clean)?;
    }
    d.rule(Rule::HandsChanged);
    make_worker(d, &agent)?;
    Ok(true)
}

/// The agents whose workers tasks wait for, the most urgent first: where nothing else than money is in the way, which is
/// asked for once there is somebody to spend it.
fn agents_needed(world: &crate::World) -> Vec<machines::names::AgentName> {
    let mut needed: Vec<machines::names::AgentName> = Vec::new();
    for key in &world.claimable {
        let Some(task) = world.task(&key.4) else { continue };
        let Some(agent) = world.agent_needed(task) else { continue };
        let new = !needed.contains(agent) && world.config.agents.contains_key(agent);
        if new
            && why::fleet_blocker_but_money(world, agent).is_none()
            && why::task_blocker_but_money(world, task, agent).is_none()
        {
            needed.push(agent.clone());
        }
    }
    needed
}

/// Idle workers of the fleet's own retire where there are more than it is to have: after `workers` was lowered, or
/// when a stuck one is back. The last made go first.
pub(super) fn retire_surplus(d: &mut Draft) -> Ruled {
    let wanted = d.world.fleet_workers.unwrap_or(d.world.config.fleet.workers) as usize;
    // Asked after every command: counted only where somebody could go.
    if !d.world.fleet_running || d.world.idle.is_empty() || d.world.workers.len() <= wanted {
        return Ok(());
    }
    let own = |worker: &crate::world::Worker| !worker.by_person;
    let at_work = |worker: &&std::sync::Arc<crate::world::Worker>| {
        own(worker) && worker.machine.status != worker::State::Stuck
    };
    let surplus = d.world.workers.values().filter(at_work).count().saturating_sub(wanted);
    let mut idle: Vec<_> =
        d.world.idle.iter().filter(|name| d.world.worker(name).is_some_and(own)).cloned().collect();
    idle.sort_by_key(|name| (name.as_str().len(), name.clone()));
    for name in idle.into_iter().rev().take(surplus) {
        d.rule(Rule::Retired);
        d.move_worker(&name, worker::Event::Clean)?;
    }
    Ok(())
}

/// The next name that no worker has.
pub(crate) fn free_name(world: &crate::World) -> WorkerName {
    let name = (0..).map(letters).find(|name| !world.workers.contains_key(name));
    name.expect("there is always another name")
}

/// A, B, …, Z, AA, AB, …
pub(super) fn letters(mut number: u32) -> WorkerName {
    let mut name = Vec::new();
    loop {
        name.push(b'A' + (number % 26) as u8);
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    name.reverse();
    WorkerName::new(String::from_utf8_lossy(&name)).expect("letters are a name")
}

pub(crate) fn spawn(
    d: &mut Draft,
    name: &WorkerName,
    agent: &AgentName,
    by_person: bool,
    by: Caller,
) -> Ruled {
    if !d.world.config.agents.contains_key(agent) {
        let known: Vec<_> = d.world.config.agents.keys().map(AgentName::as_str).collect();
        return Err(
            Refusal::not_found("agent", agent).hint(format!("the configuration has: {}", known.join(", ")))
        );
    }
    if d.world.workers.contains_key(name) {
        let message = format!("there is a worker `{name}` already");
        return Err(Refusal::new(409, "EXISTS", message)
            .hint("choose another name")
            .next([Choice::ListWorkers]));
    }
    d.emit(WorkerSpawned { name: name.clone(), agent: agent.clone(), at: d.at(), by_person });
    d.move_worker_by(name, worker::Event::Spawn { name_free: true }, by).map(drop)
}
