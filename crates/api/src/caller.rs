//! Who asks: what a client needs to know of itself before it offers anything.

use super::types::Nothing;
use super::types::caller::{Caller, Kind};
use super::{Call, Problem, scope};
use kernel::Actor;
use kernel::rooms::{Channel, Seat};
use kernel::world::Holder;
use machines::names::ChannelName;

pub fn show(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Caller, Problem> {
    let world = call.world();
    // Of several that are reported from outside, none is meant.
    let run = match &scope::own_runs(&world, call.request)[..] {
        [run] => Some(run.clone()),
        _ => None,
    };
    let task = run.as_ref().and_then(|run| world.run(run)).map(|run| run.task.to_string());
    let outside = run.as_ref().and_then(|run| world.run(run));
    let outside = outside.is_some_and(|run| matches!(run.holder, Holder::Outside(_)));
    let kind = match &call.request.actor {
        Actor::Agent { .. } => Kind::Agent,
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => Kind::Person,
    };
    let channels: Vec<(&ChannelName, &Channel)> = match &call.request.actor {
        Actor::Agent { name, .. } => {
            let open = world.channels.iter().filter(|(_, channel)| !channel.is_closed());
            let own = open.filter(|(named, channel)| {
                channel.place(name).is_some() && scope::speaks_in(call.request, named.as_str())
            });
            own.map(|(name, channel)| (name, channel.as_ref())).collect()
        }
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => Vec::new(),
    };
    Ok(Caller {
        channel: match &call.request.seat {
            Some(Seat::Room { channel, .. }) => Some(channel.to_string()),
            Some(Seat::Architect) | None => meant(&channels, &call.request.actor),
        },
        channels: channels.iter().map(|(name, _)| name.to_string()).collect(),
        kind,
        name: call.request.actor.id().to_string(),
        role: call.request.actor.role(),
        reads_only: call.request.reads_only,
        run: run.map(|run| run.to_string()),
        seat: call.request.seat.as_ref().map(ToString::to_string),
        task,
        outside,
        question_seconds: world.config.limits.question_seconds,
    })
}

/// The one in which the agent has the turn, or its only one.
fn meant(channels: &[(&ChannelName, &Channel)], actor: &Actor) -> Option<String> {
    let has_turn = |(_, channel): &&(&ChannelName, &Channel)| {
        channel.current.as_ref().is_some_and(|holder| actor.is_agent(holder))
    };
    let in_turn: Vec<_> = channels.iter().filter(has_turn).collect();
    match (&in_turn[..], channels) {
        ([(name, _)], _) => Some(name.to_string()),
        ([], [(name, _)]) => Some(name.to_string()),
        _ => None,
    }
}
