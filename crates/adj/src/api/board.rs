//! Tasks, approvals, the merge queue, and what it all cost.

use super::{Call, Problem, Routed, created, name, ok, view};
use kernel::Ask;
use kernel::command::{Decision, NewTask};
use kernel::config::names_of;
use kernel::world::Task;
use machines::Wire;
use machines::names::{ApprovalId, TaskId};
use machines::task::{Payload, Status, TaskType};
use serde::Deserialize;
use serde_json::{Value, json};
use smol_str::SmolStr;

pub fn list(call: &Call) -> Routed {
    let (after, limit) = (call.after()?, call.limit()?);
    let statuses: Vec<Status> = match call.query("status") {
        Some(list) => list.split(',').map(status).collect::<Result<_, _>>()?,
        None => Status::ALL.to_vec(),
    };
    let assignee = call.query("assignee");
    let world = call.world();
    let wanted = |task: &&Task| {
        task.order > after
            && statuses.contains(&task.status())
            && assignee.is_none_or(|assignee| task.machine.assignee_ids.iter().any(|id| id == assignee))
    };
    let mut tasks: Vec<&Task> = world.tasks.values().map(AsRef::as_ref).filter(wanted).collect();
    tasks.sort_by_key(|task| task.order);
    let next = (tasks.len() > limit).then(|| tasks[limit - 1].order.to_string());
    let items: Vec<Value> = tasks.into_iter().take(limit).map(view::task_line).collect();
    Ok(ok(json!({"items": items, "next": next})))
}

fn status(text: &str) -> Result<Status, Problem> {
    Status::read(text).ok_or_else(|| {
        Problem::bad(format!("there is no status `{}`", text.escape_debug()))
            .hint(format!("there are {}", names_of::<Status>()))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Add {
    title: String,
    #[serde(default)]
    body: String,
    id: Option<TaskId>,
    #[serde(rename = "type")]
    task_type: Option<TaskType>,
    priority: Option<u8>,
    reopens: Option<TaskId>,
    plan: Option<Vec<String>>,
    reviewer_id: Option<SmolStr>,
    #[serde(default)]
    depends_on: Vec<TaskId>,
}

pub fn add(call: &Call) -> Routed {
    let Add { title, body, id, task_type, priority, reopens, plan, reviewer_id, depends_on } = call.body()?;
    let new =
        NewTask { id, title, body, task_type, priority, reopens, plan, reviewer: reviewer_id, depends_on };
    let reply = call.submit(Ask::AddTask(new))?;
    let id = reply.id.unwrap_or_default();
    show(call, &id).map(|shown| created(shown.body))
}

pub fn show(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| no_task(&id))?;
    Ok(ok(view::task(task, &call.request.actor)))
}

pub fn no_task(id: &TaskId) -> Problem {
    Problem::not_found(format!("there is no task `{id}`")).hint("`adj task ls` lists the tasks")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Edit {
    title: Option<String>,
    body: Option<String>,
    priority: Option<u8>,
    plan: Option<Vec<String>>,
    reviewer_id: Option<SmolStr>,
}

pub fn edit(call: &Call, id: &str) -> Routed {
    let Edit { title, body, priority, plan, reviewer_id } = call.body()?;
    call.submit(Ask::EditTask { id: name(id)?, title, body, priority, plan, reviewer: reviewer_id })?;
    show(call, id)
}

/// `{"to": "IN_PROGRESS", "workPlan": …}`: the target, and beside it what the move requires.
pub fn transition(call: &Call, id: &str) -> Routed {
    let moved = || {
        let Value::Object(mut body) = call.request.body.clone() else {
            return Err(Problem::bad("the body must be an object with `to`"));
        };
        let to = match body.shift_remove("to") {
            Some(Value::String(to)) => status(&to)?,
            Some(_) => return Err(Problem::bad("`to` must be the name of a status")),
            None => return Err(Problem::bad("`to` is missing: the status to move to")),
        };
        let payload: Payload = serde_json::from_value(Value::Object(body))
            .map_err(|error| Problem::bad(format!("what the move brings is not right: {error}")))?;
        call.submit(Ask::MoveTask { id: name(id)?, to, payload: Box::new(payload) })
    };
    moved().map_err(Problem::of_transition)?;
    let task = show(call, id)?.body;
    Ok(ok(json!({"success": true, "task": task})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comment {
    text: String,
}

pub fn comment(call: &Call, id: &str) -> Routed {
    let Comment { text } = call.body()?;
    call.submit(Ask::Comment { id: name(id)?, text })?;
    show(call, id).map(|shown| created(shown.body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct On {
    on: TaskId,
}

pub fn add_dependency(call: &Call, id: &str) -> Routed {
    let On { on } = call.body()?;
    call.submit(Ask::AddDependency { id: name(id)?, on })?;
    show(call, id).map(|shown| created(shown.body))
}

pub fn remove_dependency(call: &Call, id: &str, on: &str) -> Routed {
    call.submit(Ask::RemoveDependency { id: name(id)?, on: name(on)? })?;
    show(call, id)
}

pub fn why(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let guards = kernel::why::of_task(&world, &id, call.request.at).ok_or_else(|| no_task(&id))?;
    let guards = super::fleet::as_seen_from_here(call, guards);
    let task = world.task(&id);
    let status = task.map(|task| format!("task.{}", task.status()));
    let asked = task.and_then(|task| world.approvals.get(task.approval.as_ref()?)?.call.as_ref());
    Ok(ok(json!({"id": id, "state": status, "guards": guards, "call": asked.map(view::call)})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Review {
    approve: bool,
    /// The tip that was looked at. Another one is refused.
    tip: Option<SmolStr>,
    /// Why it is approved, or what must be changed.
    #[serde(default)]
    note: String,
}

/// A person's word on what stands in REVIEW: it joins the queue, or goes back with what must be changed.
pub fn review(call: &Call, id: &str) -> Routed {
    let Review { approve, tip, note } = call.body()?;
    let id: TaskId = name(id)?;
    if approve {
        call.submit(Ask::Approve { id: id.clone(), tip, note })?;
    } else {
        let current = call.world().task(&id).and_then(|task| task.place.as_ref()?.tip.clone());
        if tip.is_some() && tip != current {
            let detail = format!("the tip of `{id}` is not the one that was looked at");
            let problem = Problem::new(409, "OTHER_TIP", detail);
            return Err(problem.hint(format!("look at it again with `adj diff {id}`")));
        }
        let payload = Payload { feedback: Some(note), ..Payload::default() };
        let ask = Ask::MoveTask { id: id.clone(), to: Status::InProgress, payload: Box::new(payload) };
        call.submit(ask).map_err(Problem::of_transition)?;
    }
    show(call, id.as_str())
}

pub fn approvals(call: &Call) -> Routed {
    let world = call.world();
    let all = call.flag("all");
    let wanted = world.approvals.values().filter(|approval| all || approval.decided.is_none());
    let mut items: Vec<_> = wanted.collect();
    items.sort_by_key(|approval| approval.asked_at);
    let items: Vec<Value> = items.into_iter().map(|item| view::approval(item)).collect();
    Ok(ok(json!({"items": items, "next": null})))
}

pub fn approval(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: ApprovalId = name(id)?;
    let found = world.approvals.get(&id).ok_or_else(|| {
        Problem::not_found(format!("there is no approval `{id}`")).hint("`adj approvals` lists the open ones")
    })?;
    Ok(ok(view::approval(found)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Decide {
    approve: bool,
    #[serde(default)]
    note: String,
    to: Option<Status>,
    raise: Option<u64>,
    #[serde(default)]
    complete: bool,
}

pub fn decide(call: &Call, id: &str) -> Routed {
    let Decide { approve, note, to, raise, complete } = call.body()?;
    let id: ApprovalId = name(id)?;
    call.submit(Ask::Decide { id: id.clone(), decision: Decision { approve, note, to, raise, complete } })?;
    let world = call.world();
    let approval = world.approvals.get(&id).map(|approval| view::approval(approval));
    Ok(ok(approval.unwrap_or(Value::Null)))
}

pub fn queue(call: &Call) -> Routed {
    let world = call.world();
    let landing = world.landing.as_ref().map(|landing| &landing.task);
    let items = world.queue.iter().map(|((priority, _), id)| {
        let task = world.task(id);
        json!({
            "task": id,
            "title": task.map(|task| &task.title),
            "priority": priority,
            "approvedBy": task.and_then(|task| task.approved.as_ref()).map(|approved| &approved.by),
            "landing": landing == Some(id),
            "heldUp": task.and_then(|task| task.held_up.as_ref()),
        })
    });
    let items: Vec<Value> = items.collect();
    Ok(ok(json!({"items": items, "landing": landing, "next": null})))
}

pub fn cost(call: &Call) -> Routed {
    let world = call.world();
    let by = call.query("by").unwrap_or("task");
    let line = |name: String, mut of: Value| {
        of["name"] = json!(name);
        of
    };
    let items: Vec<Value> = match by {
        "task" => {
            let spent = world.tasks.values().filter(|task| task.spend != Default::default());
            spent.map(|task| line(task.id.to_string(), view::spend(&task.spend))).collect()
        }
        "agent" => {
            let agents = world.spend.by_agent.iter();
            agents.map(|(agent, total)| line(agent.to_string(), view::total(total))).collect()
        }
        "worker" => {
            let workers = world.workers.values();
            workers.map(|worker| line(worker.name.to_string(), view::spend(&worker.spend))).collect()
        }
        "run" => world.runs.values().map(|run| line(run.id.to_string(), view::spend(&run.spend))).collect(),
        "day" => {
            let date = |day: i64| view::time(day * 24 * 60 * 60 * 1_000)[..10].to_owned();
            world.spend.by_day.iter().map(|(day, total)| line(date(*day), view::total(total))).collect()
        }
        _ => return Err(Problem::bad("`by` must be task, agent, day, worker or run")),
    };
    Ok(ok(json!({"by": by, "total": view::spend(&world.spend), "items": items})))
}
