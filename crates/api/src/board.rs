//! Tasks, approvals, the merge queue, and what it all cost.

use super::asks::Asks;
use super::types::approval::{Approval, Decide};
use super::types::cost::{Cost, CostBy, Item, Spend};
use super::types::request::ShowQuery;
use super::types::task::{
    Add, Edit, Move, Moved, NewComment, NewDependency, NewPlan, Queue, Queued, Restart, Review, Reviewed,
    TaskLine, WayIn,
};
use super::types::why::TaskWhy;
use super::types::{self, Cursor, Limit, Nothing, Page, Paging};
use super::worked::{self, Worked};
use super::{Call, Problem, field, scope, time, view, wrong};
use git::DiffWish;
use kernel::Ask;
use kernel::command::{Decision, NewTask};
use kernel::words::Raise;
use kernel::world::Task;
use machines::Wire;
use machines::names::{ApprovalId, TaskId};
use machines::task::{
    Checklist, ChecklistItem, Completion, CostSummary, Deliverable, Payload, Status, WorkPlan,
};
use serde_json::Value;
use smol_str::SmolStr;
use std::collections::BTreeMap;

type Shown = types::task::Task;

pub fn list(
    call: &Call,
    (): (),
    query: types::task::ListQuery,
    _: Nothing,
) -> Result<Page<TaskLine>, Problem> {
    let (after, limit) = (Cursor::number(query.after), Limit::number(query.limit));
    let statuses = query.status.map_or_else(|| Status::ALL.to_vec(), |statuses| statuses.0);
    let world = call.world();
    // One more than the page holds: whether there is another page.
    let mut tasks: Vec<&Task> = match query.assignee.as_deref() {
        Some(assignee) => {
            world.tasks_of(assignee, &statuses, after).inspect(|_| looked_at()).take(limit + 1).collect()
        }
        None => world.tasks_in(&statuses, after).inspect(|_| looked_at()).take(limit + 1).collect(),
    };
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    let since = kernel::waiting::for_people_since(&world, &tasks);
    let line = |task: &Task| {
        let proposed =
            task.origin.proposed.as_ref().filter(|_| task.is_waiting_proposal() && !task.is_final());
        let held = match proposed {
            Some(proposed) => Some(kernel::why::proposed_by(proposed)),
            None => kernel::why::ticket_holds(&world, task).map(str::to_owned),
        };
        let for_you_since = since.get(&task.id).copied().map(time);
        TaskLine { held, for_you_since, ..view::task_line(&world, task) }
    };
    let next = tasks.last().filter(|_| more).map(|last| last.order.to_string());
    Ok(Page { items: tasks.into_iter().map(line).collect(), next })
}

#[cfg(test)]
thread_local! {
    /// How many tasks `list` has looked at, for the test of what a page costs.
    pub static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A test counts the tasks that are read.
pub(super) fn looked_at() {
    #[cfg(test)]
    LOOKED_AT.with(|count| count.set(count.get() + 1));
}

pub fn board(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<types::task::Board, Problem> {
    let world = call.world();
    let items = world.tasks.values().map(|task| view::board_line(task)).collect();
    Ok(types::task::Board { seq: world.seq, items })
}

pub fn add(call: &Call, (): (), _: Nothing, new: Add) -> Result<Asks<Shown>, Problem> {
    let Add { title, body, id, task_type, priority, reopens, plan, reviewer_id, depends_on, agent, try_of } =
        new;
    let id = id.map(|id| field("id", &id)).transpose()?;
    let reopens = reopens.map(|id| field("reopens", &id)).transpose()?;
    let try_of = try_of.map(|id| field("tryOf", &id)).transpose()?;
    let depends_on = depends_on.iter().map(|id| field("dependsOn", id)).collect::<Result<_, _>>()?;
    let agent = agent.and_then(chosen).map(|agent| field("agent", &agent)).transpose()?;
    let (reviewer, run) = (reviewer_id.map(SmolStr::from), call.request.run.clone());
    let new = NewTask {
        id,
        title,
        body,
        task_type,
        priority,
        reopens,
        try_of,
        plan,
        reviewer,
        depends_on,
        agent,
        run,
    };
    Ok(Asks::new(Ask::AddTask(new), |call, reply| shown(call, &field("id", &reply.id.unwrap_or_default())?)))
}

/// A name, unless it says that there is to be none.
fn chosen(agent: String) -> Option<String> {
    Some(agent).filter(|agent| !agent.is_empty() && agent != "none")
}

pub fn show(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<Shown, Problem> {
    shown(call, &id)
}

/// As much of a task as the caller may read.
pub fn shown(call: &Call, id: &TaskId) -> Result<Shown, Problem> {
    let world = call.world();
    let task = world.task(id).ok_or_else(|| no_ticket(call, id))?;
    match scope::sees_work(&world, call.request, task) {
        true => Ok(whole(call, &world, task)),
        false => Ok(Shown { line: view::task_line(&world, task), whole: None }),
    }
}

/// All of a task. A caller that only reads gets no moves.
fn whole(call: &Call, world: &kernel::World, task: &Task) -> Shown {
    let mut shown = view::task(world, task, &call.request.actor);
    if let Some(whole) = shown.whole.as_mut().filter(|_| call.request.reads_only) {
        whole.allowed_transitions.clear();
    }
    shown
}

/// There is a file for it, which is not read.
pub const BROKEN_TICKET: &str = "BROKEN_TICKET";

/// The same, with what is wrong with the file where there is a ticket of that name.
fn no_ticket(call: &Call, id: &TaskId) -> Problem {
    let name = format!("{id}.md");
    let of_it = |finding: &super::host::Finding| {
        let file = finding.subject.rsplit('/').next().unwrap_or_default();
        file == name || file.strip_prefix(&name).is_some_and(|rest| rest.starts_with(':'))
    };
    let problems = call.access.host.ticket_problems().unwrap_or_default();
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

pub fn edit(_: &Call, id: TaskId, _: Nothing, edit: Edit) -> Result<Asks<Shown>, Problem> {
    let Edit { title, body, priority, plan, reviewer_id, agent } = edit;
    let agent =
        agent.map(|agent| chosen(agent).map(|agent| field("agent", &agent)).transpose()).transpose()?;
    let reviewer = reviewer_id.map(SmolStr::from);
    let ask = Ask::EditTask { id: id.clone(), title, body, priority, plan, reviewer, agent };
    Ok(Asks::new(ask, move |call, _| shown(call, &id)))
}

pub fn transition(_: &Call, id: TaskId, _: Nothing, moved: Move) -> Result<Asks<Moved>, Problem> {
    let to = moved.to.ok_or_else(|| Problem::bad("`to` is missing: the status to move to"))?;
    let payload = Box::new(payload(moved)?);
    let ask = Ask::MoveTask { id: id.clone(), to, payload };
    Ok(Asks::new(ask, move |call, _| Ok(Moved { success: true, task: shown(call, &id)? })))
}

/// What a move brings, as the machine takes it.
fn payload(moved: Move) -> Result<Payload, Problem> {
    let plan = |NewPlan { bullets, estimated_cost, estimated_duration, source }| WorkPlan {
        bullets: bullets.into(),
        estimated_cost,
        estimated_duration,
        source,
    };
    let item = |types::task::Check { item, answer }| ChecklistItem { item, answer };
    let checklist = |types::task::Checklist { task_type, items }| Checklist {
        task_type,
        items: items.into_iter().map(item).collect(),
    };
    Ok(Payload {
        assignee_ids: moved.assignee_ids.map(|ids| ids.into_iter().map(SmolStr::from).collect()),
        work_plan: moved.work_plan.map(plan),
        deliverable: moved.deliverable.map(|types::task::Deliverable { content, artifacts }| Deliverable {
            content,
            artifacts: artifacts.into_iter().map(Into::into).collect(),
        }),
        review_checklist: moved.review_checklist.map(checklist),
        // As it is shown, so it is taken: in dollars.
        cost_summary: moved.cost_summary.map(|summary| CostSummary {
            total_cost: (summary.total_cost * 1e6).round() as u64,
            run_count: summary.run_count,
            token_count: summary.token_count,
        }),
        feedback: moved.feedback,
        reason: moved.reason,
        cause: moved.cause,
        approval: moved.approval.map(completion).transpose()?,
        decision: moved.decision,
        clarification: moved.clarification,
    })
}

/// An approval as it is printed can be sent back. Who approved and when are read, and then left out: the kernel takes
/// them from the credential and the clock.
fn completion(record: types::task::ApprovalRecord) -> Result<Completion, Problem> {
    let is_time = |at: &Value| match at {
        Value::Number(at) => at.is_i64(),
        Value::String(at) => at.parse::<jiff::Timestamp>().is_ok(),
        at => at.is_null(),
    };
    if record.approved_at.is_some_and(|at| !is_time(&at)) {
        return Err(Problem::bad("`approval.approvedAt` is not a time such as 2026-01-01T00:00:00Z"));
    }
    Ok(Completion {
        approval_id: record.approval_id.map(SmolStr::from),
        approved_by: SmolStr::default(),
        approved_at: 0,
        decision_note: record.decision_note,
    })
}

pub fn comment(_: &Call, id: TaskId, _: Nothing, comment: NewComment) -> Result<Asks<Shown>, Problem> {
    let ask = Ask::Comment { id: id.clone(), text: comment.text };
    Ok(Asks::new(ask, move |call, _| shown(call, &id)))
}

pub fn add_dependency(call: &Call, id: TaskId, _: Nothing, new: NewDependency) -> Result<Shown, Problem> {
    call.submit(Ask::AddDependency { id: id.clone(), on: field("on", &new.on)? })?;
    shown(call, &id)
}

pub fn remove_dependency(
    call: &Call,
    (id, on): (TaskId, TaskId),
    _: Nothing,
    _: Nothing,
) -> Result<Shown, Problem> {
    call.submit(Ask::RemoveDependency { id: id.clone(), on })?;
    shown(call, &id)
}

pub fn why(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<TaskWhy, Problem> {
    let world = call.world();
    let guards = kernel::why::of_task(&world, &id, call.request.at).ok_or_else(|| no_ticket(call, &id))?;
    let guards = super::fleet::as_seen_from_here(call, guards).into_iter().map(Into::into).collect();
    let task = world.task(&id);
    let state = task.map(|task| format!("task.{}", task.status()));
    let asked = task.and_then(|task| world.approvals.get(task.approval.as_ref()?)?.call.as_ref());
    let list = kernel::waiting::waiting(&world, &call.access.host.facts(), call.request.at);
    let holds = list.into_iter().filter(|item| item.needs_someone() && item.blocks.contains(&id));
    let waiting = holds.map(Into::into).collect();
    let spec = task.and_then(|task| world.spec_of(task)).map(|spec| spec.id.to_string());
    Ok(TaskWhy { id: id.to_string(), state, spec, guards, waiting, call: asked.map(view::call) })
}

/// Where a person's shell in the task's tree would be, unless something runs there.
pub fn shell(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<WayIn, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| no_ticket(call, &id))?;
    let at_work = call.access.control.is_some_and(|control| control.status().running);
    let run = world.run_of(&id);
    let step = run.and_then(|run| run.step.as_ref()).filter(|step| world.effects.contains_key(*step));
    kernel::why::way_in(&world, task, at_work)?;
    let place = task.work.place.as_ref();
    Ok(WayIn {
        task: id.to_string(),
        status: task.status(),
        tree: place.map(|place| place.tree.clone()),
        branch: place.map(|place| place.branch.clone()),
        agent: run.map_or(&world.config.fleet.agent, |run| &run.agent).to_string(),
        worker: world.worker_of(&id).map(|worker| worker.name.to_string()),
        step: step.map(ToString::to_string),
    })
}

/// A person's word on what stands in REVIEW: it joins the queue, or goes back with what must be changed.
pub fn review(call: &Call, id: TaskId, _: Nothing, review: Review) -> Result<Shown, Problem> {
    let Review { approve, tip, note } = review;
    let tip = tip.map(SmolStr::from);
    if approve {
        call.submit(Ask::Approve { id: id.clone(), tip, note })?;
    } else {
        let ask = Ask::RequestChanges { id: id.clone(), tip, feedback: note };
        call.submit(ask).map_err(Problem::of_transition)?;
    }
    shown(call, &id)
}

/// A person says that a task which an agent proposed is to be worked on.
pub fn accept(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<Shown, Problem> {
    call.submit(Ask::AcceptTask { id: id.clone() })?;
    shown(call, &id)
}

/// Tries again what failed: at once, with the worker that is stuck with it or the next that is free.
pub fn retry(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<Shown, Problem> {
    call.submit(Ask::RetryTask { id: id.clone() })?;
    shown(call, &id)
}

/// From the beginning, on main.
pub fn restart(call: &Call, id: TaskId, _: Nothing, restart: Restart) -> Result<Shown, Problem> {
    call.submit(Ask::RestartTask { id: id.clone(), note: restart.note })?;
    shown(call, &id)
}

/// Takes back what a task brought to main: a commit that reverts it is tested and landed as a task of its own.
pub fn undo(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<Shown, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| no_ticket(call, &id))?;
    let by = kernel::next_task_id(&world);
    // What was not landed is refused by the rules.
    let tip = match &task.landing.landed {
        Some(_) => call.access.host.revert(&world, task, &by)?,
        None => String::new(),
    };
    call.submit(Ask::UndoTask { id, by: by.clone(), tip: SmolStr::new(tip) })?;
    shown(call, &by)
}

pub fn approvals(
    call: &Call,
    (): (),
    query: types::approval::ListQuery,
    _: Nothing,
) -> Result<Page<Approval>, Problem> {
    let world = call.world();
    let mut asked: Vec<&kernel::world::Approval> = match query.all {
        true => world.approvals.values().map(AsRef::as_ref).collect(),
        false => world.open_approvals().collect(),
    };
    let person = call.request.actor.is_human();
    asked.retain(|asked| {
        let task = asked.task.as_ref().and_then(|id| world.task(id));
        person || task.is_some_and(|task| call.sees(&world, task))
    });
    asked.sort_by_key(|asked| asked.asked_at);
    Ok(Page::made_of(asked, query.after, query.limit, view::approval))
}

pub fn approval(call: &Call, id: ApprovalId, query: ShowQuery, _: Nothing) -> Result<Approval, Problem> {
    let known = call.world().approvals.contains_key(&id);
    let decided = |world: &kernel::World| world.approvals.get(&id)?.decided.as_ref().map(drop);
    let _ = super::awaiting::awaited(call, query.wait && known, decided);
    let world = call.world();
    let found = world.approvals.get(&id).ok_or_else(|| {
        Problem::not_found(format!("there is no approval `{id}`")).hint("`adj approvals` lists the open ones")
    })?;
    Ok(view::approval(found))
}

pub fn decide(call: &Call, id: ApprovalId, _: Nothing, decide: Decide) -> Result<Approval, Problem> {
    let Decide { approve, note, to, raise_turns, raise_usd, complete, always } = decide;
    let raise = match (raise_turns, raise_usd) {
        (None, None) => None,
        (Some(turns), None) => Some(Raise::Turns(turns)),
        (None, Some(usd)) if usd.is_finite() && usd > 0.0 => Some(Raise::Money((usd * 1e6).round() as u64)),
        (None, Some(_)) => return Err(wrong("raiseUsd", "raiseUsd must be more than 0".to_owned())),
        (Some(_), Some(_)) => {
            return Err(wrong("raiseUsd", "raise either the turns or the dollars, not both".to_owned()));
        }
    };
    let decision = Decision { approve, note, to, raise, complete, always };
    call.submit(Ask::Decide { id: id.clone(), decision })?;
    approval(call, id, ShowQuery::default(), Nothing {})
}

/// All that is approved and not on main yet: what is landing, what waits its turn, and what the checkout holds up.
pub fn queue(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Queue, Problem> {
    let world = call.world();
    let landing = world.landing.as_deref();
    let line = |task: &Task| {
        let now = landing.filter(|landing| landing.task == task.id);
        let stage = now.map(|landing| match landing.written {
            Some(_) => "moving main",
            None => "testing the merge",
        });
        Queued {
            task: task.id.to_string(),
            title: task.title.clone(),
            priority: task.priority,
            approved_by: task.review.approved.as_ref().map(|approved| approved.by.to_string()),
            landing: now.is_some(),
            stage: stage.map(str::to_owned),
            since: now.filter(|landing| landing.since > 0).map(|landing| view::time(landing.since)),
            held_up: task.held_up_by(),
        }
    };
    let first = landing.and_then(|landing| world.task(&landing.task));
    let queued = world.queue.values().filter_map(|id| world.task(id));
    let held_up: BTreeMap<&TaskId, &Task> = world
        .tasks_in(&[Status::Review], 0)
        .filter(|task| task.landing.held_up.is_some())
        .map(|task| (&task.id, task))
        .collect();
    let Page { items, next } =
        paging.page_of(first.into_iter().chain(queued).chain(held_up.into_values()), line);
    Ok(Queue { items, landing: landing.map(|landing| landing.task.to_string()), next })
}

/// What waits for a person's review, the most urgent first.
pub fn reviews(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<Shown>, Problem> {
    let world = call.world();
    let waits = |task: &&Task| task.review.approved.is_none() && call.sees(&world, task);
    let mut tasks: Vec<&Task> = world.tasks_in(&[Status::Review], 0).filter(waits).collect();
    tasks.sort_by_key(|task| (task.priority, task.order));
    Ok(paging.page_of(tasks, |task| whole(call, &world, task)))
}

/// All that a reviewer wants to know of a task before the diff.
pub fn reviewed(call: &Call, id: TaskId, _: Nothing, _: Nothing) -> Result<Reviewed, Problem> {
    let world = call.world();
    let task = world.task(&id).ok_or_else(|| no_task(&id))?;
    let Worked { said, millis } = worked::worked(call, &id)?;
    // The rest is shown also if git fails, together with the reason.
    let (commits, commits_problem) = match call.access.host.commits(task) {
        Ok(commits) => (commits, None),
        Err(problem) => (Vec::new(), Some(problem.detail)),
    };
    let (diff_stat, moved_branch, diff_problem) =
        match call.access.host.diff(task, &DiffWish { stat: true, ..DiffWish::default() }) {
            Ok(diff) => (Some(diff.diff), diff.moved, None),
            Err(problem) => (None, None, Some(problem.detail)),
        };
    let task = whole(call, &world, task);
    Ok(Reviewed {
        task,
        said,
        work_millis: millis,
        commits,
        commits_problem,
        diff_stat,
        diff_problem,
        moved_branch,
    })
}

pub fn cost(call: &Call, (): (), query: types::cost::Query, _: Nothing) -> Result<Cost, Problem> {
    let world = call.world();
    let by = query.by.unwrap_or(CostBy::Task);
    let item = |name: String, spend: Spend| Item { name, spend, step: None };
    let items: Vec<Item> = match by {
        CostBy::Task => {
            let spent = world.tasks.values().filter(|task| task.spend != Default::default());
            spent.map(|task| item(task.id.to_string(), view::spend(&world, &task.spend))).collect()
        }
        CostBy::Agent => {
            let agents = world.spend.by_agent.iter();
            agents.map(|(agent, total)| item(agent.to_string(), view::total(&world, total))).collect()
        }
        CostBy::Worker => {
            let workers = world.workers.values();
            workers.map(|worker| item(worker.name.to_string(), view::spend(&world, &worker.spend))).collect()
        }
        CostBy::Run => {
            world.runs.values().map(|run| item(run.id.to_string(), view::spend(&world, &run.spend))).collect()
        }
        CostBy::Day => {
            let date = |day: i64| view::time(day * 24 * 60 * 60 * 1_000)[..10].to_owned();
            let days = world.spend.by_day.iter();
            days.map(|(day, total)| item(date(*day), view::total(&world, total))).collect()
        }
        CostBy::Step => worked::steps(call)?,
    };
    Ok(Cost { by, total: view::spend(&world, &world.spend), items })
}
