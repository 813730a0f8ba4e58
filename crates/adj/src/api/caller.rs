//! Who asks: what a client needs to know of itself before it offers anything.

use super::types::Nothing;
use super::types::caller::{Caller, Kind};
use super::{Call, Problem};
use kernel::Actor;

pub fn show(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Caller, Problem> {
    let world = call.world();
    let run = call.request.run.as_ref();
    let task = run.and_then(|run| world.run(run)).map(|run| run.task.to_string());
    let kind = match &call.request.actor {
        Actor::Agent { .. } => Kind::Agent,
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => Kind::Person,
    };
    Ok(Caller {
        kind,
        name: call.request.actor.id().to_string(),
        role: call.request.actor.role(),
        run: run.map(ToString::to_string),
        task,
        question_seconds: world.config.limits.question_seconds,
    })
}
