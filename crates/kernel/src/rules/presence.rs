//! Agents that are connected from outside: they come, give signs of life, and go or are taken for gone.
//!
//! An agent that Adjutant itself launches is alive while its process is, and needs none of this.

use machines::machine::Caller;
use machines::names::{AgentName, ChannelName, TaskId};
use machines::turn;
use machines::worker::ReleaseReason;
use smol_str::SmolStr;

use super::Rule;
use super::outside_runs::renew_outside;
use super::release::{fail_run, release};
use super::rooms::join;
use super::sessions;
use super::step::{lost, seconds};
use crate::checks::check_text;
use crate::choice::Choice;
use crate::command::{Presence, Refusal, Reply};
use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::event::{AgentConnected, AgentGone, AgentSwitched, HeartbeatSeen};
use crate::rooms::Seat;
use crate::session::Session;
use crate::words::GoneBecause;
use crate::world::Holder;

const SILENT: &str = "the agent missed its heartbeats";
const WENT: &str = "the agent has disconnected";

pub(crate) fn presence(d: &mut Draft, agent: &AgentName, what: Presence) -> Result<Reply, Refusal> {
    let there = d.world.agents.contains_key(agent);
    match what {
        Presence::Connect if there => heartbeat(d, agent),
        Presence::Connect => connected(d, agent)?,
        Presence::Heartbeat | Presence::Disconnect if !there => {
            let message = format!("agent `{agent}` is not connected");
            return Err(Refusal::new(409, "NOT_CONNECTED", message).hint(
                "connect first; one that misses its heartbeats is taken for gone, and its runs with it",
            ));
        }
        Presence::Heartbeat => heartbeat(d, agent),
        Presence::Disconnect => gone(d, agent, GoneBecause::Disconnected)?,
    }
    Ok(Reply { id: Some(SmolStr::new(agent.as_str())), ..Reply::default() })
}

fn connected(d: &mut Draft, agent: &AgentName) -> Ruled {
    d.rule(Rule::AgentConnected);
    d.emit(AgentConnected { agent: agent.clone(), at: d.at() });
    expect_heartbeat(d, agent);
    for (channel, _) in places(d, agent) {
        join(d, &channel, agent)?;
    }
    Ok(())
}

/// A sign of life within half of the time that it keeps an agent for is not written down: the log would be full of them.
fn heartbeat(d: &mut Draft, agent: &AgentName) {
    let half = seconds(d.world.config.limits.heartbeat_seconds) / 2;
    let soon = d.world.agents.get(agent).is_some_and(|there| (0..half).contains(&(d.at() - there.seen)));
    if soon {
        return;
    }
    d.emit(HeartbeatSeen { agent: agent.clone(), at: d.at() });
    expect_heartbeat(d, agent);
    for id in held_by(d, agent) {
        renew_outside(d, &id);
    }
}

fn expect_heartbeat(d: &mut Draft, agent: &AgentName) {
    let due = d.at() + seconds(d.world.config.limits.heartbeat_seconds);
    d.set_timer(Timer::Heartbeat { agent: agent.clone() }, due);
}

/// The agent is gone: its places in channels are free, and what it held waits for the next.
pub(super) fn gone(d: &mut Draft, agent: &AgentName, why: GoneBecause) -> Ruled {
    d.rule(Rule::AgentGone);
    d.clear_timer(&Timer::Heartbeat { agent: agent.clone() });
    d.emit(AgentGone { agent: agent.clone(), at: d.at(), why });
    for (channel, state) in places(d, agent) {
        let event = match state {
            turn::State::Offline => continue,
            turn::State::Idle => turn::Event::AgentStops,
            turn::State::Queued | turn::State::Active | turn::State::Waiting => {
                turn::Event::Disconnects { context: None }
            }
        };
        d.move_turn(&channel, agent, &event, Caller::SYSTEM)?;
    }
    for id in held_by(d, agent) {
        match why {
            GoneBecause::Silent => lost(d, &id, SILENT)?,
            // It says so itself: no worker was lost.
            GoneBecause::Disconnected => {
                if let Some(run) = d.world.run_of(&id).map(|run| run.id.clone()) {
                    fail_run(d, &run, "DISCONNECTED", WENT)?;
                }
                release(d, &id, ReleaseReason::Lost)?;
            }
        }
    }
    Ok(())
}

/// A person disables an agent, or enables it again. Twice the same changes nothing.
pub(crate) fn switch_agent(
    d: &mut Draft,
    agent: &AgentName,
    enabled: bool,
    reason: Option<&str>,
) -> Result<Reply, Refusal> {
    let in_channel = d.world.channels.values().any(|channel| channel.places.contains_key(agent));
    let known = d.world.config.agents.contains_key(agent) || d.world.agents.contains_key(agent) || in_channel;
    if !known && !d.world.disabled.contains_key(agent) {
        return Err(Refusal::not_found("agent", agent).next([Choice::ListAgents]));
    }
    check_text(&d.world, "reason", reason)?;
    let reply = Reply { id: Some(SmolStr::new(agent.as_str())), ..Reply::default() };
    if enabled != d.world.disabled.contains_key(agent) {
        return Ok(reply);
    }
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned);
    let (at, by) = (d.at(), SmolStr::new(d.command.actor.to_string()));
    d.rule(if enabled { Rule::AgentEnabled } else { Rule::AgentDisabled });
    d.emit(AgentSwitched { agent: agent.clone(), enabled, at, by, reason });
    for (channel, state) in places(d, agent) {
        if enabled {
            join(d, &channel, agent)?;
            continue;
        }
        let event = match state {
            turn::State::Offline => continue,
            turn::State::Idle => turn::Event::AgentStops,
            turn::State::Queued | turn::State::Active | turn::State::Waiting => {
                turn::Event::Disconnects { context: Some("a person disabled it".to_owned()) }
            }
        };
        d.move_turn(&channel, agent, &event, Caller::SYSTEM)?;
        sessions::quit(d, &Session::Seat(Seat::Room { channel, agent: agent.clone() }), false);
    }
    // Not by the settings: they may have another architect by now, or none, while this one still speaks.
    let architect = d.world.seated(&Seat::Architect).is_some_and(|seated| seated.agent == *agent);
    if architect && !enabled {
        sessions::quit(d, &Session::Seat(Seat::Architect), false);
    }
    Ok(reply)
}

fn places(d: &Draft, agent: &AgentName) -> Vec<(ChannelName, turn::State)> {
    let place = |(name, channel): (&ChannelName, &std::sync::Arc<crate::rooms::Channel>)| {
        channel.places.get(agent).map(|place| (name.clone(), place.state))
    };
    d.world.channels.iter().filter_map(place).collect()
}

/// The tasks whose lease the agent has, outside.
fn held_by(d: &Draft, agent: &AgentName) -> Vec<TaskId> {
    let holder = Holder::Outside(agent.clone());
    let held = |task: &&std::sync::Arc<crate::world::Task>| {
        task.work.lease.as_ref().is_some_and(|lease| lease.holder == holder)
    };
    d.world.tasks.values().filter(held).map(|task| task.id.clone()).collect()
}
