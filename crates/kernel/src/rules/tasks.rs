//! Tasks as people and agents add, edit, comment and order them.

use super::people::person_comments;
use super::proposals::propose;
use super::replies::task_reply;
use super::tickets::new_text;
use crate::World;
use crate::checks::{check_dependencies, check_plan, check_priority, check_text, plan_source};
use crate::choice::Choice;
use crate::command::{Ask, NewTask, Refusal, Reply};
use crate::draft::{Draft, Ruled};
use crate::event::{
    AgentWanted, DependencyAdded, DependencyRemoved, NoteLeft, TaskAdded, TaskEdited, TryAdded,
};
use crate::words::CommentKind;
use crate::world::Task;
use machines::names::TaskId;
use machines::task::{self, Status};
use std::sync::Arc;

pub(crate) fn add_task(d: &mut Draft, new: &NewTask) -> Result<Reply, Refusal> {
    let first = new.try_of.as_ref().map(|of| first_try(d, of)).transpose()?;
    let new = &match &first {
        Some(first) => as_tried(&d.world, new, first),
        None => new.clone(),
    };
    if new.title.trim().is_empty() {
        return Err(Refusal::field("title", "a task needs a title"));
    }
    check_text(&d.world, "title", Some(&new.title))?;
    check_text(&d.world, "body", Some(&new.body))?;
    check_priority(new.priority)?;
    check_plan(new.plan.as_deref())?;
    let id = new.id.clone().unwrap_or_else(|| next_task_id(&d.world));
    if d.world.tasks.contains_key(&id) {
        return Err(Refusal::new(409, "EXISTS", format!("there is a task `{id}` already")));
    }
    if let Some(old) = &new.reopens {
        let status = d.task(old)?.status();
        if !status.is_final() {
            return Err(Refusal::new(
                409,
                "NOT_CLOSED",
                format!("task `{old}` is {status}; only a closed task is taken up again"),
            ));
        }
    }
    check_dependencies(&d.world, &id, &new.depends_on)?;
    let proposed = propose(d, new)?;
    d.emit(TaskAdded {
        id: id.clone(),
        title: new.title.clone(),
        body: new.body.clone(),
        task_type: new.task_type.unwrap_or(task::TaskType::Task),
        priority: new.priority.unwrap_or(2),
        at: d.at(),
        ticket: None,
        reopens: new.reopens.clone(),
        plan: new.plan.clone(),
        reviewer: new.reviewer.clone(),
        depends_on: new.depends_on.clone(),
        created: None,
        plan_source: new.plan.as_ref().map(|_| plan_source(&d.command.actor)),
        proposed,
    });
    if let Some(first) = first {
        d.emit(TryAdded { id: id.clone(), of: first.id.clone() });
    }
    if new.agent.is_some() {
        d.emit(AgentWanted { id: id.clone(), agent: new.agent.clone() });
    }
    task_reply(d, &id)
}

/// The first of the tries at a task that is still open.
fn first_try(d: &Draft, of: &TaskId) -> Result<Arc<Task>, Refusal> {
    let task = d.task(of)?;
    let first = d.world.tasks.get(task.origin.try_of.as_ref().unwrap_or(of)).cloned();
    let first = first.ok_or_else(|| Refusal::new(404, "NOT_FOUND", format!("there is no task `{of}`")))?;
    match task.is_final() {
        true => Err(Refusal::new(409, "CLOSED", format!("task `{of}` is {}, for good", task.status()))
            .next([Choice::ReopenTask { task: of.clone() }])),
        false => Ok(first),
    }
}

/// The same work as the first try, where nothing else is said.
fn as_tried(world: &World, new: &NewTask, first: &Task) -> NewTask {
    let said = |text: &str, or: &str| if text.trim().is_empty() { or.to_owned() } else { text.to_owned() };
    let number = world.other_tries(first).count() + 2;
    let named = (number..).filter_map(|number| TaskId::new(format!("{}-try{number}", first.id)).ok());
    NewTask {
        id: new.id.clone().or_else(|| named.take(100).find(|id| world.task(id).is_none())),
        title: said(&new.title, &first.title),
        body: said(&new.body, &first.body),
        task_type: new.task_type.or(Some(first.machine.task_type)),
        priority: new.priority.or(Some(first.priority)),
        plan: new.plan.clone().or_else(|| first.plan.clone()),
        reviewer: new.reviewer.clone().or_else(|| first.machine.reviewer_id.clone()),
        depends_on: if new.depends_on.is_empty() { first.depends_on.clone() } else { new.depends_on.clone() },
        agent: new.agent.clone().or_else(|| first.agent.clone()),
        ..new.clone()
    }
}

/// `t-1`, `t-2`, …: one that no task or ticket ever had.
pub fn next_task_id(world: &World) -> TaskId {
    let named = |number| TaskId::new(format!("t-{number}")).expect("a counted id is a name");
    let free = |id: &TaskId| world.task(id).is_none() && !world.tickets.contains_key(id.as_str());
    (world.last_task + 1..).map(named).find(free).expect("there is always another number")
}

/// Changes what a task says, where it is not closed. Its agent hears of a new text with its next step.
pub(crate) fn edit_task(d: &mut Draft, ask: &Ask) -> Ruled {
    let Ask::EditTask { id, title, body, priority, plan, reviewer, agent } = ask else { return Ok(()) };
    let status = d.task(id)?.status();
    if status.is_final() {
        let message = format!("task `{id}` is {status}; what it says is not changed any more");
        return Err(Refusal::new(409, "CLOSED", message).next([Choice::ReopenTask { task: id.clone() }]));
    }
    check_text(&d.world, "title", title.as_deref())?;
    check_text(&d.world, "body", body.as_deref())?;
    if title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Refusal::field("title", "a task needs a title"));
    }
    check_priority(*priority)?;
    check_plan(plan.as_deref())?;
    d.emit(TaskEdited {
        id: id.clone(),
        title: title.clone(),
        body: body.clone(),
        priority: *priority,
        plan: plan.clone(),
        reviewer: reviewer.clone(),
        plan_source: plan.as_ref().map(|_| plan_source(&d.command.actor)),
    });
    if let Some(agent) =
        agent.as_ref().filter(|agent| d.world.task(id).is_some_and(|task| task.agent != **agent))
    {
        d.emit(AgentWanted { id: id.clone(), agent: agent.clone() });
    }
    if title.is_some() || body.is_some() {
        let task = d.task(id)?;
        let note = new_text("task", &task.title, &task.body);
        d.emit(NoteLeft { id: id.clone(), note });
    }
    Ok(())
}

pub(crate) fn comment(d: &mut Draft, id: &TaskId, text: &str) -> Ruled {
    let actor = d.command.actor.clone();
    d.task(id)?;
    check_text(&d.world, "text", Some(text))?;
    if text.trim().is_empty() {
        return Err(Refusal::field("text", "a comment must not be empty"));
    }
    d.comment(id, &actor.to_string(), CommentKind::Comment, text.to_owned());
    if actor.is_human() {
        person_comments(d, id, text);
    }
    Ok(())
}

pub(crate) fn add_dependency(d: &mut Draft, id: &TaskId, on: &TaskId) -> Ruled {
    let task = d.task(id)?;
    if task.depends_on.contains(on) {
        return Err(Refusal::new(409, "EXISTS", format!("`{id}` depends on `{on}` already")));
    }
    if !matches!(task.status(), Status::Inbox | Status::Assigned) {
        let status = task.status();
        return Err(Refusal::new(
            409,
            "STARTED",
            format!("`{id}` is {status}: it has been started, so a dependency would hold nothing up"),
        ));
    }
    let mut all = task.depends_on.clone();
    all.push(on.clone());
    check_dependencies(&d.world, id, &all)?;
    d.emit(DependencyAdded { id: id.clone(), on: on.clone() });
    Ok(())
}

pub(crate) fn remove_dependency(d: &mut Draft, id: &TaskId, on: &TaskId) -> Ruled {
    if !d.task(id)?.depends_on.contains(on) {
        return Err(Refusal::not_found("dependency", format!("{id} on {on}")));
    }
    d.emit(DependencyRemoved { id: id.clone(), on: on.clone() });
    Ok(())
}
