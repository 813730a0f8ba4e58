//! Who asks: what a client needs to know of itself before it offers anything.

use super::types::Nothing;
use super::types::caller::{Caller, Kind};
use super::{Call, Problem, scope};
use kernel::Actor;
use kernel::world::Holder;

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
    Ok(Caller {
        kind,
        name: call.request.actor.id().to_string(),
        role: call.request.actor.role(),
        run: run.map(|run| run.to_string()),
        task,
        outside,
        question_seconds: world.config.limits.question_seconds,
    })
}
