//! Standstill: a fleet that runs and does nothing, because all that is left waits for a person, a service or a task that
//! will never be done.
//!
//! What is judged here is said by the rule `StoodStill`, once a while has passed: whoever started a fleet is never left to
//! guess why nothing happens.

use crate::effect::{Effect, Session, Timer};
use crate::probe::Probe;
use crate::waiting::{About, Facts, Kind, StandsStill, Waiting, waiting};
use crate::{Millis, World};
use machines::names::{RunId, TaskId};
use machines::turn;
use serde::{Deserialize, Serialize};

/// What a fleet said when it stood still.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standstill {
    pub since: Millis,
    /// When it said so.
    pub at: Millis,
    pub reasons: Vec<Reason>,
    /// The fleet that runs has said it, and not one before it.
    pub of_this_fleet: bool,
}

/// Something that a fleet stands still for. The same thing that has begun to wait anew is another reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    pub kind: Kind,
    pub about: About,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
}

impl Reason {
    pub fn of(item: &Waiting) -> Reason {
        Reason { kind: item.kind, about: item.about.clone(), since: item.since }
    }

    /// By name alone, in one order: what decides whether something else is to be said.
    pub fn all_of(list: &[Waiting]) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = list.iter().map(Reason::of).collect();
        reasons.sort();
        reasons
    }
}

/// All that the fleet stands still for, as the list of what waits has it; nothing where it does not.
pub fn standstill(world: &World, now: Millis) -> Vec<Waiting> {
    if !world.fleet_running || is_at_work(world) {
        return Vec::new();
    }
    let mut list = waiting(world, &Facts::default(), now);
    list.retain(|item| holds_up_work(world, item));
    list
}

/// The tasks that all of these hold up, each once.
pub fn held_up(list: &[Waiting]) -> Vec<TaskId> {
    let all: std::collections::BTreeSet<&TaskId> = list.iter().flat_map(|item| &item.blocks).collect();
    all.into_iter().cloned().collect()
}

/// Whether anything is under way, or goes on by itself in a moment. What only finds out whether a service or a checkout is
/// back is no work: it comes to nothing as long as they are not.
pub fn is_at_work(world: &World) -> bool {
    world.effects.values().any(|effect| match effect.as_ref() {
        Effect::Timer { timer, .. } => soon(world, timer),
        Effect::CheckHealth { .. } => false,
        Effect::StartStep { of, .. } => {
            let session = of.session();
            let waits = matches!(&session, Session::Run(run) if waits_for_answer(world, run));
            !waits && !is_probe(world, &session.probe())
        }
        Effect::TestMerge { task, .. } | Effect::MoveMain { task, .. } => {
            world.task(task).is_none_or(|task| task.landing.tried_again.is_none())
        }
        _ => true,
    })
}

/// Whether something goes on when this timer is due that did not wait for anybody.
fn soon(world: &World, timer: &Timer) -> bool {
    match timer {
        Timer::Backoff { .. } | Timer::Silence { .. } => true,
        // Somebody whom Adjutant did not start is at work on it.
        Timer::OutsideLease { .. } => true,
        Timer::Turn { channel, agent } => {
            let place = world.channel(channel).and_then(|room| room.place(agent));
            place.is_some_and(|place| place.state == turn::State::Active)
        }
        Timer::Suspension { .. }
        | Timer::Reset { .. }
        | Timer::HealthPoll
        | Timer::Question { .. }
        | Timer::Checkout { .. }
        | Timer::Heartbeat { .. }
        | Timer::Escalation
        | Timer::ArchitectSuspension
        | Timer::Standstill => false,
    }
}

fn waits_for_answer(world: &World, run: &RunId) -> bool {
    world.run(run).is_some_and(|run| run.question.is_some())
}

fn is_probe(world: &World, who: &Probe) -> bool {
    world.health.values().any(|health| !health.healthy && health.probe.as_ref() == Some(who))
}

/// Whether something that was to be done waits because of it.
fn holds_up_work(world: &World, item: &Waiting) -> bool {
    match item.kind.stands_still() {
        StandsStill::Always => true,
        StandsStill::Never => false,
        StandsStill::WithTasks => !item.blocks.is_empty(),
        StandsStill::WithService => {
            let suspended = world.architect.as_ref().and_then(|architect| architect.suspension());
            let service = item.about.service.as_ref();
            let architect = suspended
                .is_some_and(|waits| service.is_some_and(|service| waits.service == service.as_str()));
            architect || !item.blocks.is_empty()
        }
    }
}
