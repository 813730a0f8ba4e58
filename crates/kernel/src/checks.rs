//! Checks of a command's fields that several rules share.

use crate::choice::Choice;
use crate::command::{Actor, Refusal};
use crate::rooms::Channel;
use crate::world::World;
use machines::names::{ChannelName, TaskId};
use machines::task;
use smol_str::SmolStr;

pub(crate) fn forbidden(what: &str) -> Refusal {
    Refusal::new(403, "FORBIDDEN", format!("the caller's role may not {what}"))
}

pub(crate) fn check_text(world: &World, field: &'static str, text: Option<&str>) -> Result<(), Refusal> {
    let most = world.config.limits.text_bytes;
    match text {
        Some(text) if text.len() > most => {
            Err(Refusal::field(field, format!("it is longer than {most} bytes")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_priority(priority: Option<u8>) -> Result<(), Refusal> {
    match priority {
        Some(priority) if priority > 4 => Err(Refusal::field("priority", "priority must be 0 to 4")),
        _ => Ok(()),
    }
}

/// A plan that a person gives is whole; what is missing is not made up in silence.
pub(crate) fn check_plan(plan: Option<&[String]>) -> Result<(), Refusal> {
    let Some(plan) = plan else { return Ok(()) };
    let (least, most) = (task::PLAN_BULLETS_MIN, task::PLAN_BULLETS_MAX);
    if !(least..=most).contains(&plan.len()) {
        let message = format!("a plan has {least} to {most} steps; this one has {}", plan.len());
        return Err(Refusal::field("plan", message));
    }
    match plan.iter().any(|bullet| task::is_blank(bullet)) {
        true => Err(Refusal::field("plan", "a step of the plan is empty")),
        false => Ok(()),
    }
}

pub(crate) fn plan_source(actor: &Actor) -> task::PlanSource {
    match actor {
        Actor::Agent { .. } => task::PlanSource::Agent,
        Actor::Human(_) | Actor::System | Actor::SystemFor(_) => task::PlanSource::Person,
    }
}

pub(crate) fn channel_of<'w>(world: &'w World, name: &ChannelName) -> Result<&'w Channel, Refusal> {
    world
        .channels
        .get(name)
        .map(|channel| channel.as_ref())
        .ok_or_else(|| Refusal::not_found("channel", name).next([Choice::ListChannels]))
}

/// A cycle is refused with its path; a dependency that nobody knows waits for a person, by name.
pub(crate) fn check_dependencies(world: &World, id: &TaskId, on: &[TaskId]) -> Result<(), Refusal> {
    let most = world.config.limits.dependencies;
    if on.len() > most {
        return Err(Refusal::field("dependsOn", format!("more than {most} dependencies")));
    }
    if let Some(path) = on.iter().find_map(|start| path_to(world, start, id)) {
        let path: Vec<_> = std::iter::once(id).chain(path.iter()).map(TaskId::as_str).collect();
        // Each name in it is right; what is wrong is how they stand.
        let cycle = Refusal::field("dependsOn", format!("this would be a cycle: {}", path.join(" → ")));
        return Err(Refusal { status: 409, code: SmolStr::new_static("CYCLE"), ..cycle });
    }
    Ok(())
}

/// How `from` reaches `to` through dependencies, both included. Without recursion: chains can be long.
fn path_to(world: &World, from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>> {
    let mut seen = std::collections::BTreeMap::from([(from.clone(), None)]);
    let mut open = vec![from.clone()];
    while let Some(here) = open.pop() {
        if here == *to {
            let mut path = vec![here];
            while let Some(Some(before)) = path.last().and_then(|id| seen.get(id)) {
                path.push(TaskId::clone(before));
            }
            path.reverse();
            return Some(path);
        }
        for next in world.task(&here).map_or(&[][..], |task| &task.depends_on) {
            if !seen.contains_key(next) {
                seen.insert(next.clone(), Some(here.clone()));
                open.push(next.clone());
            }
        }
    }
    None
}
