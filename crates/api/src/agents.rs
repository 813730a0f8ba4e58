//! Agents: who there is, who is connected from outside, and their signs of life.

use super::types::agent::{Agent, Connect, Disable, Disabled};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, field, time};
use kernel::command::Presence;
use kernel::{Ask, Timer, World};
use machines::names::AgentName;
use machines::turn::State;
use std::collections::BTreeSet;

pub fn list(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<Agent>, Problem> {
    let world = call.world();
    let known = world.config.agents.keys().chain(world.agents.keys());
    let names: BTreeSet<&AgentName> = known.collect();
    Ok(paging.page_of(names, |name| shown(call, &world, name)))
}

/// The same as connecting by name.
pub fn register(call: &Call, (): (), _: Nothing, Connect { name }: Connect) -> Result<Agent, Problem> {
    connect(call, field("name", &name)?, Nothing {}, Nothing {})
}

pub fn connect(call: &Call, agent: AgentName, _: Nothing, _: Nothing) -> Result<Agent, Problem> {
    told(call, agent, Presence::Connect)
}

pub fn heartbeat(call: &Call, agent: AgentName, _: Nothing, _: Nothing) -> Result<Agent, Problem> {
    told(call, agent, Presence::Heartbeat)
}

pub fn disconnect(call: &Call, agent: AgentName, _: Nothing, _: Nothing) -> Result<Agent, Problem> {
    told(call, agent, Presence::Disconnect)
}

pub fn enable(call: &Call, agent: AgentName, _: Nothing, _: Nothing) -> Result<Agent, Problem> {
    switch(call, agent, true, None)
}

pub fn disable(call: &Call, agent: AgentName, _: Nothing, why: Disable) -> Result<Agent, Problem> {
    switch(call, agent, false, why.reason)
}

fn switch(call: &Call, agent: AgentName, enabled: bool, reason: Option<String>) -> Result<Agent, Problem> {
    call.submit(Ask::SwitchAgent { agent: agent.clone(), enabled, reason })?;
    Ok(shown(call, &call.world(), &agent))
}

fn told(call: &Call, agent: AgentName, what: Presence) -> Result<Agent, Problem> {
    call.submit(Ask::Presence { agent: agent.clone(), what })?;
    Ok(shown(call, &call.world(), &agent))
}

fn shown(call: &Call, world: &World, name: &AgentName) -> Agent {
    let connected = world.agents.get(name);
    let timer = world.timers.get(&Timer::Heartbeat { agent: name.clone() });
    let due = timer.and_then(|id| world.effects.get(id)).and_then(|effect| effect.due());
    let runs = world.runs.values().filter(|run| run.agent == *name && run.is_open());
    let runs: Vec<_> = runs.collect();
    // What Adjutant launched is alive while its process is.
    let there = connected.is_some() || runs.iter().any(|run| run.step.is_some());
    let places = world.channels.values().filter_map(|channel| channel.places.get(name));
    let places: Vec<State> = places.map(|place| place.state).collect();
    let disabled = world.disabled.get(name);
    let first = |wanted: State| places.contains(&wanted).then_some(wanted);
    let state = match there && disabled.is_none() {
        false => State::Offline,
        true => {
            [State::Active, State::Waiting, State::Queued].into_iter().find_map(first).unwrap_or(State::Idle)
        }
    };
    Agent {
        name: name.to_string(),
        configured: world.config.agents.contains_key(name),
        adapter: call.access.host.adapter(name),
        role: world.config.agent(name).role,
        state,
        disabled: disabled.map(|it| Disabled {
            since: time(it.since),
            by: it.by.to_string(),
            reason: it.reason.clone(),
        }),
        connected_since: connected.map(|connected| time(connected.since)),
        last_seen: connected.map(|connected| time(connected.seen)),
        expected_by: due.map(time),
        runs: runs.iter().map(|run| run.id.to_string()).collect(),
    }
}
