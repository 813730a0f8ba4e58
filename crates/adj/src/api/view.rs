//! What the World looks like in JSON: camelCase, times in RFC 3339 UTC, money in dollars.

use kernel::budget::{Unpriced, unpriced};
use kernel::world::{Approval, AskedCall, Holder, Proposed, Run, Spend, Task, Total, Worker};
use kernel::{Actor, World};
use machines::task::{Status, Submission};
use machines::{Millis, Wire};
use serde_json::{Value, json};

pub fn time(at: Millis) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        // Always three digits: columns line up, and text sorts as time does.
        Ok(time) => format!("{time:.3}"),
        // Outside the years that a calendar has. It is shown as it is rather than hidden.
        Err(_) => format!("{at} ms"),
    }
}

pub fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

pub fn spend(world: &World, spend: &Spend) -> Value {
    let Spend { cost, input_tokens, output_tokens, reserved, unknown, .. } = spend;
    money(*cost, (*input_tokens, *output_tokens), *reserved, unpriced(world, unknown))
}

pub fn total(world: &World, total: &Total) -> Value {
    let Total { cost, input_tokens, output_tokens, reserved, unknown, .. } = total;
    money(*cost, (*input_tokens, *output_tokens), *reserved, unpriced(world, unknown))
}

/// `usd` is what was named. What a step without a price did cost is estimated, or something is set aside for it;
/// neither is in `usd`.
fn money(cost: u64, (input_tokens, output_tokens): (u64, u64), reserved: u64, unpriced: Unpriced) -> Value {
    json!({
        "usd": dollars(cost),
        "inputTokens": input_tokens,
        "outputTokens": output_tokens,
        "reservedUsd": dollars(reserved),
        "unpricedSteps": unpriced.estimated_steps + unpriced.unknown_steps,
        "estimatedSteps": unpriced.estimated_steps,
        "estimatedUsd": dollars(unpriced.estimated),
        "setAsideUsd": dollars(unpriced.held),
    })
}

fn holder(holder: &Holder) -> Value {
    match holder {
        Holder::Worker(name) => json!({"worker": name}),
        Holder::Outside(name) => json!({"agent": name}),
    }
}

/// One line of the board.
pub fn task_line(world: &World, task: &Task) -> Value {
    let mut line = json!({
        "id": task.id,
        "title": task.title,
        "status": task.machine.status,
        "type": task.machine.task_type,
        "priority": task.priority,
        "assigneeIds": task.machine.assignee_ids,
        "agent": world.wanted_agent(task),
        "dependsOn": task.depends_on,
        "createdAt": time(task.created_at),
    });
    if let Some(proposed) = &task.proposed {
        let Proposed { by, run, on, state, .. } = proposed;
        line["proposed"] = json!({"by": by, "run": run, "task": on, "state": state});
    }
    line
}

/// What was handed in, with its price in dollars as everywhere.
fn submission(submission: &Submission) -> Value {
    let mut view = json!(submission);
    view["costSummary"]["totalCost"] = json!(dollars(submission.cost_summary.total_cost));
    view
}

/// What the gate found, and nothing that anybody else says: absent where it did not run.
fn gate(task: &Task) -> Option<Value> {
    let handed_in = task.machine.submission.as_ref().filter(|_| task.handed_in_by.is_none())?;
    Some(json!({"checks": handed_in.review_checklist.items}))
}

/// What an agent or a person says of work that they handed in without the gate. Nobody has checked it.
fn claims(task: &Task) -> Option<Value> {
    let by = task.handed_in_by.as_ref()?;
    let handed_in = task.machine.submission.as_ref()?;
    Some(json!({
        "by": by,
        "checks": handed_in.review_checklist.items,
        "content": handed_in.deliverable.content,
    }))
}

pub fn task(world: &World, task: &Task, caller: &Actor) -> Value {
    let machine = &world.judged(task, &caller.sender());
    let mut view = task_line(world, task);
    let more = json!({
        "body": task.body,
        "plan": task.plan,
        "reviewerId": machine.reviewer_id,
        "workPlan": machine.work_plan,
        "submission": machine.submission.as_ref().map(|handed_in| submission(handed_in)),
        "gate": gate(task),
        "claims": claims(task),
        "needsPerson": task.needs_person.as_ref().map(|reason| json!({
            "reason": reason, "text": kernel::why::needs_person(reason),
        })),
        "reviewCycles": machine.review_cycles,
        "landingRounds": machine.landing_rounds,
        "cameFrom": machine.came_from,
        "blockReason": machine.block_reason,
        "feedback": machine.feedback,
        "clarification": machine.clarification,
        "unchangedSinceReview": unchanged(task),
        "completion": machine.completion.as_ref().map(|completion| json!({
            "approvalId": completion.approval_id,
            "approvedBy": completion.approved_by,
            "approvedAt": time(completion.approved_at),
            "decisionNote": completion.decision_note,
        })),
        "ticket": task.ticket,
        "ticketAssignee": task.ticket_assignee,
        "agentConfigured": world.wanted_agent(task).map(|agent| world.config.agents.contains_key(agent)),
        "reopens": task.reopens,
        "lease": task.lease.as_ref().map(|lease| holder(&lease.holder)),
        "branch": task.place.as_ref().map(|place| &place.branch),
        "tree": task.place.as_ref().map(|place| &place.tree),
        "tip": task.place.as_ref().and_then(|place| place.tip.as_ref()),
        "run": task.run,
        "approval": task.approval,
        "approved": task.approved.as_ref().map(|approved| json!({
            "tip": approved.tip, "by": approved.by, "at": time(approved.at), "note": approved.note,
        })),
        "landed": task.landed.as_ref().map(|landed| json!({
            "tip": landed.tip, "merge": landed.merge, "oldMain": landed.old_main,
        })),
        "heldUp": task.held_up,
        "testOutput": task.test_output,
        "cost": spend(world, &task.spend),
        "comments": task.comments.iter().map(|comment| json!({
            "at": time(comment.at), "by": comment.by, "kind": comment.kind, "text": comment.text,
        })).collect::<Vec<_>>(),
        "allowedTransitions": machine.moves_of(&caller.sender()),
    });
    merge(&mut view, more);
    view
}

/// Whether a task is in REVIEW again just as it was when a reviewer asked for changes.
fn unchanged(task: &Task) -> bool {
    let tip = task.place.as_ref().and_then(|place| place.tip.as_ref());
    task.status() == Status::Review && tip.is_some() && task.sent_back_tip.as_ref() == tip
}

/// A worker as everybody may know it.
pub fn worker_line(world: &World, worker: &Worker) -> Value {
    let machine = &worker.machine;
    let place = machine.task.as_ref().and_then(|task| world.task(task)?.place.as_ref());
    json!({
        "name": worker.name,
        "worktree": place.map(|place| &place.tree),
        "branch": place.map_or("", |place| &place.branch),
        "task": machine.task,
        "status": machine.status,
        "symbol": machines::worker::symbol(machine.status),
    })
}

/// A worker, with the field names that scripts hold on to; what else is known follows them.
pub fn worker(world: &World, worker: &Worker) -> Value {
    let machine = &worker.machine;
    let task = machine.task.as_ref().and_then(|task| world.task(task));
    let run = machine.task.as_ref().and_then(|task| world.run_of(task));
    let place = task.and_then(|task| task.place.as_ref());
    let unpriced = unpriced(world, &worker.spend.unknown);
    json!({
        "name": worker.name,
        "session": place.map_or("", |place| &place.session),
        "worktree": place.map(|place| &place.tree),
        "branch": place.map_or("", |place| &place.branch),
        "task": machine.task,
        "task_assigned_at": worker.task_assigned_at.map(time),
        "status": machine.status,
        "started_at": time(worker.started_at),
        "step_count": machine.step_count,
        "last_step_at": worker.last_step_at.map(time),
        "total_input_tokens": worker.spend.input_tokens,
        "total_output_tokens": worker.spend.output_tokens,
        "total_cost_usd": dollars(worker.spend.cost),
        "unpriced_steps": unpriced.estimated_steps + unpriced.unknown_steps,
        "estimated_steps": unpriced.estimated_steps,
        "estimated_cost_usd": dollars(unpriced.estimated),
        "set_aside_usd": dollars(unpriced.held),
        "agent": worker.agent,
        "by_person": worker.by_person,
        "symbol": machines::worker::symbol(machine.status),
        "run": run.map(|run| &run.id),
        "turn": run.map(|run| run.machine.inner().current_turn),
        "last_error": worker.last_error,
        "in_review": world.handed_over_by(&worker.name).iter().map(|task| &task.id).collect::<Vec<_>>(),
        "task_title": task.map(|task| task.title.lines().next().unwrap_or_default()),
        "last_action": run.and_then(|run| run.audit.last_action.as_ref()),
        "activity": activity(world, worker, run),
    })
}

/// What a worker does, or waits for. `state` is one of `idle`, `tree`, `step`, `tests`, `person`, `service`, `retry`
/// and `stuck`; `until` is when it goes on by itself, `since` how long it is so, where these are known.
fn activity(world: &World, worker: &Worker, run: Option<&Run>) -> Value {
    use machines::worker::State;
    let due = |timer: &kernel::Timer| world.effects.get(world.timers.get(timer)?)?.due();
    let backoff = || due(&kernel::Timer::Backoff { worker: worker.name.clone() });
    if let Some(question) = run.and_then(|run| run.question.as_ref()) {
        let asked = world.approvals.get(&question.approval).map(|approval| time(approval.asked_at));
        return json!({"state": "person", "approval": question.approval, "since": asked});
    }
    if let Some(suspension) = run.and_then(|run| run.machine.suspension()) {
        let until = suspension.resets_at.or_else(|| due(&kernel::Timer::HealthPoll));
        let since = time(suspension.since);
        return json!({"state": "service", "service": suspension.service, "since": since, "until": until.map(time)});
    }
    match worker.machine.status {
        State::Idle => json!({"state": "idle"}),
        State::Ready => json!({"state": "tree", "since": worker.task_assigned_at.map(time)}),
        State::Done => json!({"state": "tests", "since": worker.last_step_at.map(time)}),
        State::Stuck => json!({"state": "stuck"}),
        _ => match backoff() {
            Some(due) => json!({"state": "retry", "until": time(due)}),
            None => json!({"state": "step"}),
        },
    }
}

pub fn run(world: &World, run: &Run) -> Value {
    let machine = run.machine.inner();
    json!({
        "id": run.id,
        "task": run.task,
        "agent": run.agent,
        "holder": holder(&run.holder),
        "state": run.machine.name(),
        "currentTurn": machine.current_turn,
        "maxTurns": machine.max_turns,
        "suspended": run.is_suspended(),
        "question": run.question.as_ref().map(|question| &question.approval),
        "toolCalls": run.audit.calls,
        "cost": spend(world, &run.spend),
    })
}

pub fn approval(approval: &Approval) -> Value {
    json!({
        "id": approval.id,
        "task": approval.task,
        "run": approval.run,
        "cause": approval.cause.name(),
        "question": approval.question,
        "call": approval.call.as_ref().map(call),
        "options": approval.options,
        "scope": approval.scope,
        "agent": approval.agent,
        "askedAt": time(approval.asked_at),
        "decided": approval.decided.as_ref().map(|decided| json!({
            "by": decided.by, "at": time(decided.at), "decision": decided.decision, "note": decided.note,
        })),
    })
}

/// A call that waits for a person, whole: `text` is what people read, `input` what the tool is given.
pub fn call(call: &AskedCall) -> Value {
    json!({
        "tool": call.tool, "argument": call.argument, "input": call.input, "text": call.lines().join("\n"),
    })
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
