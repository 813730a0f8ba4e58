//! Tasks, approvals, the merge queue, and what it all cost.

use super::history::{self, Worked};
use super::{Call, Problem, Routed, created, field, name, ok, view, word};
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
    let world = call.world_as_set();
    let wanted = |task: &&Task| {
        task.order > after
            && statuses.contains(&task.status())
            && assignee.is_none_or(|assignee| task.machine.assignee_ids.iter().any(|id| id == assignee))
    };
    let mut tasks: Vec<&Task> = world.tasks.values().map(AsRef::as_ref).filter(wanted).collect();
    tasks.sort_by_key(|task| task.order);
    let next = (tasks.len() > limit).then(|| tasks[limit - 1].order.to_string());
    let line = |task: &Task| {
        let mut line = view::task_line(&world, task);
        let proposed = task.proposed.as_ref().filter(|_| task.is_waiting_proposal() && !task.is_final());
        let held = match proposed {
            Some(proposed) => Some(kernel::why::proposed_by(proposed)),
            None => kernel::why::ticket_holds(&world, task).map(str::to_owned),
        };
        if let Some(held) = held {
            line["held"] = json!(held);
        }
        line
    };
    let items: Vec<Value> = tasks.into_iter().take(limit).map(line).collect();
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
    id: Option<String>,
    #[serde(rename = "type")]
    task_type: Option<String>,
    priority: Option<u8>,
    reopens: Option<String>,
    plan: Option<Vec<String>>,
    reviewer_id: Option<SmolStr>,
    #[serde(default)]
    depends_on: Vec<String>,
    agent: Option<String>,
}

pub fn add(call: &Call) -> Routed {
    let Add { title, body, id, task_type, priority, reopens, plan, reviewer_id, depends_on, agent } =
        call.body()?;
    let id = id.map(|id| field("id", &id)).transpose()?;
    let reopens = reopens.map(|id| field("reopens", &id)).transpose()?;
    let depends_on = depends_on.iter().map(|id| field("dependsOn", id)).collect::<Result<_, _>>()?;
    let task_type = task_type.map(|name| word::<TaskType>("type", &name)).transpose()?;
    let agent = agent.and_then(chosen).map(|agent| field("agent", &agent)).transpose()?;
    let (reviewer, run) = (reviewer_id, call.request.run.clone());
    let new =
        NewTask { id, title, body, task_type, priority, reopens, plan, reviewer, depends_on, agent, run };
    let reply = call.submit(Ask::AddTask(new))?;
    let id = reply.id.unwrap_or_default();
    show(call, &id).map(|shown| created(shown.body))
}

/// A name, unless it says that there is to be none.
fn chosen(agent: String) -> Option<String> {
    Some(agent).filter(|agent| !agent.is_empty() && agent != "none")
}

pub fn show(call: &Call, id: &str) -> Routed {
    let world = call.world_as_set();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| no_ticket(call, &id))?;
    if !call.sees(&world, task) {
        return Ok(ok(view::task_line(&world, task)));
    }
    Ok(ok(view::task(&world, task, &call.request.actor)))
}

/// There is a file for it, which is not read.
pub const BROKEN_TICKET: &str = "BROKEN_TICKET";

/// The same, with what is wrong with the file where there is a ticket of that name.
fn no_ticket(call: &Call, id: &TaskId) -> Problem {
    let name = format!("{id}.md");
    let of_it = |finding: &super::outside::Finding| {
        let file = finding.subject.rsplit('/').next().unwrap_or_default();
        file == name || file.strip_prefix(&name).is_some_and(|rest| rest.starts_with(':'))
    };
    let problems = call.site.outside.ticket_problems().unwrap_or_default();
    match problems.into_iter().find(of_it) {
        Some(problem) => {
            let detail = format!("ticket `{id}` is not a task: {}: {}", problem.subject, problem.text);
            Problem::new(404, BROKEN_TICKET, detail).hint(problem.hint.unwrap_or_default())
        }
        None => no_task(id),
    }
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
    /// Empty or `none`: whoever the ticket or the settings name.
    agent: Option<String>,
}

pub fn edit(call: &Call, id: &str) -> Routed {
    let Edit { title, body, priority, plan, reviewer_id, agent } = call.body()?;
    let agent =
        agent.map(|agent| chosen(agent).map(|agent| field("agent", &agent)).transpose()).transpose()?;
    call.submit(Ask::EditTask { id: name(id)?, title, body, priority, plan, reviewer: reviewer_id, agent })?;
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
        if let Some(approval) = body.get_mut("approval") {
            approval_record(approval)?;
        }
        // As it is shown, so it is taken: in dollars.
        if let Some(total) = body.get_mut("costSummary").and_then(|summary| summary.get_mut("totalCost"))
            && let Some(usd) = total.as_f64().filter(|usd| *usd >= 0.0)
        {
            *total = json!((usd * 1e6).round() as u64);
        }
        let payload: Payload = serde_json::from_value(Value::Object(body))
            .map_err(|error| Problem::bad(format!("what the move brings is not right: {error}")))?;
        call.submit(Ask::MoveTask { id: name(id)?, to, payload: Box::new(payload) })
    };
    moved().map_err(Problem::of_transition)?;
    let task = show(call, id)?.body;
    Ok(ok(json!({"success": true, "task": task})))
}

/// An approval as it is printed can be sent back. Who approved and when are read, and then left out: the kernel takes
/// them from the credential and the clock.
fn approval_record(approval: &mut Value) -> Result<(), Problem> {
    let Value::Object(members) = approval else {
        return Err(Problem::bad("`approval` must be an object with `decisionNote`"));
    };
    let is_time = |at: &Value| match at {
        Value::Number(at) => at.is_i64(),
        Value::String(at) => at.parse::<jiff::Timestamp>().is_ok(),
        at => at.is_null(),
    };
    if members.get("approvedAt").is_some_and(|at| !is_time(at)) {
        return Err(Problem::bad("`approval.approvedAt` is not a time such as 2026-01-01T00:00:00Z"));
    }
    if members.get("approvedBy").is_some_and(|by| !by.is_string() && !by.is_null()) {
        return Err(Problem::bad("`approval.approvedBy` is not a name"));
    }
    if members.get("approvalId").is_some_and(Value::is_null) {
        members.shift_remove("approvalId");
    }
    members.insert("approvedAt".to_owned(), json!(0));
    members.insert("approvedBy".to_owned(), json!(""));
    members.entry("decisionNote").or_insert(json!(""));
    Ok(())
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
    on: String,
}

pub fn add_dependency(call: &Call, id: &str) -> Routed {
    let On { on } = call.body()?;
    call.submit(Ask::AddDependency { id: name(id)?, on: field("on", &on)? })?;
    show(call, id).map(|shown| created(shown.body))
}

pub fn remove_dependency(call: &Call, id: &str, on: &str) -> Routed {
    call.submit(Ask::RemoveDependency { id: name(id)?, on: name(on)? })?;
    show(call, id)
}

pub fn why(call: &Call, id: &str) -> Routed {
    let world = call.world_as_set();
    let id: TaskId = name(id)?;
    let guards = kernel::why::of_task(&world, &id, call.request.at).ok_or_else(|| no_ticket(call, &id))?;
    let guards = super::fleet::as_seen_from_here(call, guards);
    let task = world.task(&id);
    let status = task.map(|task| format!("task.{}", task.status()));
    let asked = task.and_then(|task| world.approvals.get(task.approval.as_ref()?)?.call.as_ref());
    Ok(ok(json!({"id": id, "state": status, "guards": guards, "call": asked.map(view::call)})))
}

/// Where a person's shell in the task's tree would be, unless something runs there.
pub fn shell(call: &Call, id: &str) -> Routed {
    call.by_a_person("open a shell in a task's tree")?;
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| no_ticket(call, &id))?;
    let at_work = call.site.control.is_some_and(|control| control.status().running);
    let run = world.run_of(&id);
    let step = run.and_then(|run| run.step.clone()).filter(|step| world.effects.contains_key(step));
    kernel::why::way_in(&world, task, at_work)
        .map_err(|(why, hint)| Problem::new(409, "NO_WAY_IN", why).hint(hint))?;
    let place = task.place.as_ref();
    Ok(ok(json!({
        "task": id,
        "status": task.status(),
        "tree": place.map(|place| &place.tree),
        "branch": place.map(|place| &place.branch),
        "agent": run.map_or(&world.config.fleet.agent, |run| &run.agent),
        "worker": world.worker_of(&id).map(|worker| &worker.name),
        "step": step,
    })))
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

/// A person says that a task which an agent proposed is to be worked on.
pub fn accept(call: &Call, id: &str) -> Routed {
    call.submit(Ask::AcceptTask { id: name(id)? })?;
    show(call, id)
}

/// Tries again what failed: at once, with the worker that is stuck with it or the next that is free.
pub fn retry(call: &Call, id: &str) -> Routed {
    call.submit(Ask::RetryTask { id: name(id)? })?;
    show(call, id)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Restart {
    /// What is to be done differently.
    note: Option<String>,
}

/// From the beginning, on main.
pub fn restart(call: &Call, id: &str) -> Routed {
    let Restart { note } = call.body()?;
    call.submit(Ask::RestartTask { id: name(id)?, note })?;
    show(call, id)
}

/// Takes back what a task brought to main: a commit that reverts it is tested and landed as a task of its own.
pub fn undo(call: &Call, id: &str) -> Routed {
    call.by_a_person("undo a landing")?;
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| no_ticket(call, &id))?;
    let by = kernel::next_task_id(&world);
    // What was not landed is refused by the rules.
    let tip = match &task.landed {
        Some(_) => call.site.outside.revert(task, &by)?,
        None => String::new(),
    };
    call.submit(Ask::UndoTask { id, by: by.clone(), tip: SmolStr::new(tip) })?;
    show(call, by.as_str()).map(|shown| created(shown.body))
}

pub fn approvals(call: &Call) -> Routed {
    let world = call.world();
    let all = call.flag("all");
    let wanted = world.approvals.values().filter(|approval| all || approval.decided.is_none());
    let person = call.request.actor.is_human();
    let of_its_task = |asked: &&std::sync::Arc<kernel::world::Approval>| {
        let task = asked.task.as_ref().and_then(|id| world.task(id));
        person || task.is_some_and(|task| call.sees(&world, task))
    };
    let mut items: Vec<_> = wanted.filter(of_its_task).collect();
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
    to: Option<String>,
    raise: Option<u64>,
    #[serde(default)]
    complete: bool,
    #[serde(default)]
    always: bool,
}

pub fn decide(call: &Call, id: &str) -> Routed {
    let Decide { approve, note, to, raise, complete, always } = call.body()?;
    let id: ApprovalId = name(id)?;
    let to = to.map(|to| word::<Status>("to", &to)).transpose()?;
    call.submit(Ask::Decide {
        id: id.clone(),
        decision: Decision { approve, note, to, raise, complete, always },
    })?;
    let world = call.world();
    let approval = world.approvals.get(&id).map(|approval| view::approval(approval));
    Ok(ok(approval.unwrap_or(Value::Null)))
}

/// All that is approved and not on main yet: what is landing, what waits its turn, and what the checkout holds up.
pub fn queue(call: &Call) -> Routed {
    let world = call.world();
    let landing = world.landing.as_deref();
    let line = |task: &Task| {
        let now = landing.filter(|landing| landing.task == task.id);
        let stage = now.map(|landing| match landing.written {
            Some(_) => "moving main",
            None => "testing the merge",
        });
        json!({
            "task": task.id,
            "title": task.title,
            "priority": task.priority,
            "approvedBy": task.approved.as_ref().map(|approved| &approved.by),
            "landing": now.is_some(),
            "stage": stage,
            "since": now.filter(|landing| landing.since > 0).map(|landing| view::time(landing.since)),
            "heldUp": task.held_up,
        })
    };
    let first = landing.and_then(|landing| world.task(&landing.task));
    let queued = world.queue.values().filter_map(|id| world.task(id));
    let held_up = world.tasks.values().map(AsRef::as_ref).filter(|task: &&Task| task.held_up.is_some());
    let items: Vec<Value> = first.into_iter().chain(queued).chain(held_up).map(line).collect();
    Ok(ok(json!({"items": items, "landing": landing.map(|landing| &landing.task), "next": null})))
}

/// What waits for a person's review, the most urgent first.
pub fn reviews(call: &Call) -> Routed {
    let world = call.world();
    let waits =
        |task: &&Task| task.status() == Status::Review && task.approved.is_none() && call.sees(&world, task);
    let mut tasks: Vec<&Task> = world.tasks.values().map(AsRef::as_ref).filter(waits).collect();
    tasks.sort_by_key(|task| (task.priority, task.order));
    let items: Vec<Value> = tasks.iter().map(|task| view::task(&world, task, &call.request.actor)).collect();
    Ok(ok(json!({"items": items, "next": null})))
}

/// All that a reviewer wants to know of a task before the diff.
pub fn reviewed(call: &Call, id: &str) -> Routed {
    let world = call.world();
    let id: TaskId = name(id)?;
    let task = world.task(&id).ok_or_else(|| no_task(&id))?;
    let Worked { said, millis } = history::worked(call, &id)?;
    // What can be said is said, also where git has no answer.
    let commits = call.site.outside.commits(task).unwrap_or_default();
    let diff = call.site.outside.diff(task, true);
    let (diff, moved, problem) = match diff {
        Ok(diff) => (Some(diff.diff), diff.moved, None),
        Err(problem) => (None, None, Some(problem.detail)),
    };
    Ok(ok(json!({
        "task": view::task(&world, task, &call.request.actor),
        "said": said,
        "workMillis": millis,
        "commits": commits,
        "diffStat": diff,
        "diffProblem": problem,
        "movedBranch": moved,
    })))
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
            spent.map(|task| line(task.id.to_string(), view::spend(&world, &task.spend))).collect()
        }
        "agent" => {
            let agents = world.spend.by_agent.iter();
            agents.map(|(agent, total)| line(agent.to_string(), view::total(&world, total))).collect()
        }
        "worker" => {
            let workers = world.workers.values();
            workers.map(|worker| line(worker.name.to_string(), view::spend(&world, &worker.spend))).collect()
        }
        "run" => {
            world.runs.values().map(|run| line(run.id.to_string(), view::spend(&world, &run.spend))).collect()
        }
        "day" => {
            let date = |day: i64| view::time(day * 24 * 60 * 60 * 1_000)[..10].to_owned();
            world
                .spend
                .by_day
                .iter()
                .map(|(day, total)| line(date(*day), view::total(&world, total)))
                .collect()
        }
        "step" => super::history::steps(call)?,
        _ => return Err(Problem::bad("`by` must be task, step, agent, day, worker or run")),
    };
    Ok(ok(json!({"by": by, "total": view::spend(&world, &world.spend), "items": items})))
}
