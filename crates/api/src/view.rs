//! What the World looks like from outside: times in RFC 3339 UTC, money in dollars.

use super::types;
use kernel::budget::{Unpriced, unpriced};
use kernel::world::{Approval, AskedCall, Holder, Run, Spend, Task, Total, Worker};
use kernel::{Actor, World};
use machines::machine::Meta;
use machines::task::{ChecklistItem, Status, Submission};
use machines::{Machine, Millis};
use types::cost::Spend as Spent;
use types::task::{TaskLine, TaskWhole};
use types::worker::{Activity, WorkerLine, WorkerWhole};

pub fn time(at: Millis) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        // Always three digits: columns line up, and text sorts as time does.
        Ok(time) => format!("{time:.3}"),
        // Outside the years that a calendar has. It is shown as it is rather than hidden.
        Err(_) => format!("{at} ms"),
    }
}

/// Dollars as a number, from millionths.
pub fn usd(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// A name or word as text.
pub fn text(name: &impl ToString) -> String {
    name.to_string()
}

fn texts<'n, T: ToString + 'n>(names: impl IntoIterator<Item = &'n T>) -> Vec<String> {
    names.into_iter().map(ToString::to_string).collect()
}

pub fn spend(world: &World, spend: &Spend) -> Spent {
    let Spend { cost, input_tokens, output_tokens, reserved, unknown, .. } = spend;
    money(*cost, (*input_tokens, *output_tokens), *reserved, unpriced(world, unknown))
}

pub fn total(world: &World, total: &Total) -> Spent {
    let Total { cost, input_tokens, output_tokens, reserved, unknown, .. } = total;
    money(*cost, (*input_tokens, *output_tokens), *reserved, unpriced(world, unknown))
}

fn money(cost: u64, (input_tokens, output_tokens): (u64, u64), reserved: u64, unpriced: Unpriced) -> Spent {
    Spent {
        usd: usd(cost),
        input_tokens,
        output_tokens,
        reserved_usd: usd(reserved),
        unpriced_steps: unpriced.estimated_steps + unpriced.unknown_steps,
        estimated_steps: unpriced.estimated_steps,
        estimated_usd: usd(unpriced.estimated),
        set_aside_usd: usd(unpriced.held),
    }
}

fn holder(holder: &Holder) -> types::task::Holder {
    match holder {
        Holder::Worker(name) => types::task::Holder::Worker(text(name)),
        Holder::Outside(name) => types::task::Holder::Agent(text(name)),
    }
}

/// One line of the board.
/// What a board shows of a task. All of it is the task's own, so a line stays as it is while the task does.
pub fn board_line(task: &Task) -> types::task::BoardLine {
    types::task::BoardLine {
        id: text(&task.id),
        title: task.title.clone(),
        status: task.machine.status,
        since: task.status_since.map(time),
        task_type: task.machine.task_type,
        priority: task.priority,
        order: task.order,
        assignee_ids: texts(task.machine.assignee_ids.iter()),
        worker: task.work.lease.as_ref().map(|lease| match &lease.holder {
            kernel::world::Holder::Worker(name) => text(name),
            kernel::world::Holder::Outside(agent) => text(agent),
        }),
        depends_on: texts(&task.depends_on),
        review_cycles: task.machine.review_cycles,
        cost_usd: usd(task.spend.cost),
        proposed: task.is_waiting_proposal(),
        conflict: task.conflict().map(|conflict| conflict.files.clone()),
    }
}

pub fn task_line(world: &World, task: &Task) -> TaskLine {
    let proposed = task.origin.proposed.as_ref().map(|proposed| types::task::Proposal {
        by: text(&proposed.by),
        run: proposed.run.as_ref().map(text),
        task: proposed.on.as_ref().map(text),
        state: proposed.state,
    });
    TaskLine {
        id: text(&task.id),
        title: task.title.clone(),
        status: task.machine.status,
        task_type: task.machine.task_type,
        priority: task.priority,
        assignee_ids: texts(task.machine.assignee_ids.iter()),
        agent: world.wanted_agent(task).map(text),
        depends_on: texts(&task.depends_on),
        for_you_since: None,
        other_tries: world.other_tries(task).map(|other| other.id.to_string()).collect(),
        created_at: time(task.created_at),
        proposed,
        conflict: task.conflict().map(|conflict| types::task::Conflict {
            branch: text(&world.config.main),
            commit: text(&conflict.main),
            files: conflict.files.clone(),
            text: conflict.words(&world.config.main),
        }),
        held: None,
    }
}

fn checks(items: &[ChecklistItem]) -> Vec<types::task::Check> {
    let check = |ChecklistItem { item, answer }: &ChecklistItem| types::task::Check {
        item: item.clone(),
        answer: answer.clone(),
    };
    items.iter().map(check).collect()
}

fn submission(submission: &Submission) -> types::task::Submission {
    let Submission { deliverable, review_checklist, cost_summary } = submission;
    types::task::Submission {
        deliverable: types::task::Deliverable {
            content: deliverable.content.clone(),
            artifacts: deliverable.artifacts.iter().cloned().map(Into::into).collect(),
        },
        review_checklist: types::task::Checklist {
            task_type: review_checklist.task_type,
            items: checks(&review_checklist.items),
        },
        cost_summary: types::task::CostSummary {
            total_cost: usd(cost_summary.total_cost),
            run_count: cost_summary.run_count,
            token_count: cost_summary.token_count,
        },
    }
}

/// What the gate found, and nothing that anybody else says: absent where it did not run.
fn gate(world: &World, task: &Task) -> Option<types::task::Gate> {
    let handed_in = task.machine.submission.as_ref().filter(|_| task.review.handed_in_by.is_none())?;
    let run = task.work.run.as_ref().and_then(|run| world.run(run));
    Some(types::task::Gate {
        checks: checks(&handed_in.review_checklist.items),
        empty: !task.has_code(),
        summary: run.and_then(|run| run.claimed.as_ref()?.summary.clone()),
    })
}

/// What an agent or a person says of work that they handed in without the gate. Nobody has checked it.
fn claims(task: &Task) -> Option<types::task::Claims> {
    let by = task.review.handed_in_by.as_ref()?;
    let handed_in = task.machine.submission.as_ref()?;
    Some(types::task::Claims {
        by: text(by),
        checks: checks(&handed_in.review_checklist.items),
        content: handed_in.deliverable.content.clone(),
    })
}

/// A task, for a caller that may read all of it.
pub fn task(world: &World, task: &Task, caller: &Actor) -> types::task::Task {
    types::task::Task { line: task_line(world, task), whole: Some(whole(world, task, caller)) }
}

fn whole(world: &World, task: &Task, caller: &Actor) -> TaskWhole {
    let machine = &world.judged(task, &caller.sender());
    let place = task.work.place.as_ref();
    TaskWhole {
        body: task.body.clone(),
        plan: task.plan.clone(),
        reviewer_id: machine.reviewer_id.as_ref().map(text),
        reviewer_lacks: kernel::why::reviewer_lacks(world, task),
        work_plan: machine.work_plan.as_ref().map(|plan| types::task::WorkPlan {
            bullets: plan.bullets.to_vec(),
            estimated_cost: plan.estimated_cost,
            estimated_duration: plan.estimated_duration.clone(),
            source: plan.source,
        }),
        submission: machine.submission.as_ref().map(|handed_in| submission(handed_in)),
        gate: gate(world, task),
        claims: claims(task),
        needs_person: task
            .gate
            .needs_person
            .as_ref()
            .map(|reason| types::task::NeedsPerson { reason: text(reason), text: reason.text().to_owned() }),
        review_cycles: machine.review_cycles,
        landing_rounds: machine.landing_rounds,
        came_from: machine.came_from,
        block_reason: machine.block_reason,
        feedback: machine.feedback.clone(),
        clarification: machine.clarification.clone(),
        unchanged_since_review: unchanged(task),
        completion: machine.completion.as_ref().map(|completion| types::task::Completion {
            approval_id: completion.approval_id.as_ref().map(text),
            approved_by: text(&completion.approved_by),
            approved_at: time(completion.approved_at),
            decision_note: completion.decision_note.clone(),
        }),
        ticket: task.origin.ticket.as_ref().map(text),
        ticket_assignee: task.origin.ticket_assignee.as_ref().map(text),
        agent_configured: world.wanted_agent(task).map(|agent| world.config.agents.contains_key(agent)),
        reopens: task.origin.reopens.as_ref().map(text),
        lease: task.work.lease.as_ref().map(|lease| holder(&lease.holder)),
        branch: place.map(|place| place.branch.clone()),
        tree: place.map(|place| place.tree.clone()),
        tip: place.and_then(|place| place.tip.as_ref()).map(text),
        run: task.work.run.as_ref().map(text),
        approval: task.approval.as_ref().map(text),
        approved: task.review.approved.as_ref().map(|approved| types::task::Approved {
            tip: approved.tip.as_ref().map(text),
            by: text(&approved.by),
            at: time(approved.at),
            note: approved.note.clone(),
        }),
        landed: task.landing.landed.as_ref().map(|landed| types::task::Landed {
            tip: text(&landed.tip),
            merge: text(&landed.merge),
            old_main: text(&landed.old_main),
        }),
        held_up: task.held_up_by(),
        pull_request: task.landing.pull_request.as_ref().map(|opened| opened.name().to_owned()),
        test_output: task.gate.test_output.as_ref().map(text),
        cost: spend(world, &task.spend),
        comments: task
            .comments
            .iter()
            .map(|comment| types::task::Comment {
                at: time(comment.at),
                by: text(&comment.by),
                kind: text(&comment.kind),
                text: comment.text.clone(),
            })
            .collect(),
        allowed_transitions: machine.moves_of(&caller.sender()),
    }
}

/// Whether a task is in REVIEW again just as it was when a reviewer asked for changes.
fn unchanged(task: &Task) -> bool {
    let tip = task.work.place.as_ref().and_then(|place| place.tip.as_ref());
    task.status() == Status::Review && tip.is_some() && task.review.sent_back_tip.as_ref() == tip
}

/// A worker as everybody may know it.
pub fn worker_line(world: &World, worker: &Worker) -> types::worker::Worker {
    let machine = &worker.machine;
    let place = machine.task.as_ref().and_then(|task| world.task(task)?.work.place.as_ref());
    let line = WorkerLine {
        name: text(&worker.name),
        worktree: place.map(|place| place.tree.clone()),
        branch: place.map(|place| place.branch.clone()).unwrap_or_default(),
        task: machine.task.as_ref().map(text),
        status: machine.status,
        symbol: text(&machines::worker::symbol(machine.status)),
    };
    types::worker::Worker { line, whole: None }
}

/// A worker, with all that is known of it.
pub fn worker(world: &World, worker: &Worker, now: Millis) -> types::worker::Worker {
    let machine = &worker.machine;
    let task = machine.task.as_ref().and_then(|task| world.task(task));
    let run = machine.task.as_ref().and_then(|task| world.run_of(task));
    let place = task.and_then(|task| task.work.place.as_ref());
    let unpriced = unpriced(world, &worker.spend.unknown);
    let whole = WorkerWhole {
        session: place.map(|place| text(&place.session)).unwrap_or_default(),
        task_assigned_at: worker.task_assigned_at.map(time),
        started_at: time(worker.started_at),
        step_count: machine.step_count,
        last_step_at: worker.last_step_at.map(time),
        total_input_tokens: worker.spend.input_tokens,
        total_output_tokens: worker.spend.output_tokens,
        total_cost_usd: usd(worker.spend.cost),
        unpriced_steps: unpriced.estimated_steps + unpriced.unknown_steps,
        estimated_steps: unpriced.estimated_steps,
        estimated_cost_usd: usd(unpriced.estimated),
        set_aside_usd: usd(unpriced.held),
        agent: text(&worker.agent),
        by_person: worker.by_person,
        run: run.map(|run| text(&run.id)),
        turn: run.map(|run| run.machine.inner().current_turn),
        last_error: worker.last_error.as_ref().map(text),
        in_review: world.handed_over_by(&worker.name).iter().map(|task| text(&task.id)).collect(),
        task_title: task.map(|task| task.title.lines().next().unwrap_or_default().to_owned()),
        last_action: run.and_then(|run| run.audit.last_action.as_ref()).map(text),
        activity: activity(world, worker, run, now),
    };
    types::worker::Worker { whole: Some(whole), ..worker_line(world, worker) }
}

/// What a worker does, or what it waits for.
fn activity(world: &World, worker: &Worker, run: Option<&Run>, now: Millis) -> Activity {
    use machines::worker::State;
    let due = |timer: &kernel::Timer| world.effects.get(world.timers.get(timer)?)?.due();
    let backoff = || due(&kernel::Timer::Backoff { worker: worker.name.clone() });
    if let Some(question) = run.and_then(|run| run.question.as_ref()) {
        let since = world.approvals.get(&question.approval).map(|approval| time(approval.asked_at));
        return Activity::Person { approval: text(&question.approval), since };
    }
    if let Some(suspension) = run.and_then(|run| run.machine.suspension()) {
        let health = world.health.iter().find(|(name, _)| name.as_str() == suspension.service);
        let tried = health.and_then(|(name, health)| kernel::why::tried_again(world, name, health, now));
        let until = tried.or(suspension.resets_at).or_else(|| due(&kernel::Timer::HealthPoll));
        let (service, since) = (text(&suspension.service), time(suspension.since));
        return Activity::Service { service, since, until: until.map(time) };
    }
    // It has begun, and neither a step nor a gate of its own is under way.
    let rests = run.is_some_and(|run| run.step.is_none());
    match worker.machine.status {
        State::Idle => Activity::Idle,
        State::Ready => Activity::Tree { since: worker.task_assigned_at.map(time) },
        State::Done if rests => Activity::MainTests,
        State::Done => Activity::Tests { since: worker.last_step_at.map(time) },
        State::Stuck => Activity::Stuck,
        State::Working if rests && !world.main_is_green() => Activity::MainTests,
        _ => match backoff() {
            Some(due) => Activity::Retry { until: time(due) },
            None => Activity::Step,
        },
    }
}

pub fn run(world: &World, run: &Run) -> types::run::Run {
    let machine = run.machine.inner();
    types::run::Run {
        id: text(&run.id),
        task: text(&run.task),
        agent: text(&run.agent),
        holder: holder(&run.holder),
        state: text(&run.machine.name()),
        current_turn: machine.current_turn,
        max_turns: machine.max_turns,
        suspended: run.is_suspended(),
        question: run.question.as_ref().map(|question| text(&question.approval)),
        tool_calls: run.audit.calls,
        cost: spend(world, &run.spend),
        pause_reason: machine.pause_reason,
        last_error: machine.last_error.as_ref().map(|error| types::run::LastError {
            code: text(&error.code),
            message: error.message.clone(),
            recoverable: error.recoverable,
        }),
        approval: decides(world, run).map(approval),
        meta: state_meta(run),
    }
}

/// The question that a run's task waits for, where it is about this run.
fn decides<'w>(world: &'w World, run: &Run) -> Option<&'w Approval> {
    let task = world.task(&run.task).filter(|task| task.work.run.as_ref() == Some(&run.id))?;
    let asked = world.approvals.get(task.approval.as_ref()?)?;
    asked.decided.is_none().then_some(asked)
}

fn state_meta(run: &Run) -> types::run::StateMeta {
    use machines::suspended::Suspends;
    let facts = match run.is_suspended() {
        true => <machines::run::Run as Suspends>::meta(),
        false => <machines::run::Run as Machine>::meta(run.state()),
    };
    let is = |name: &str| facts.iter().any(|(known, fact)| *known == name && *fact == Meta::Is(true));
    types::run::StateMeta {
        can_start: is("canStart"),
        has_active_task: is("hasActiveTask"),
        resources_allocated: is("resourcesAllocated"),
        can_execute_tools: is("canExecuteTools"),
        awaiting_input: is("awaitingInput"),
        requires_decision: is("requiresDecision"),
    }
}

pub fn approval(approval: &Approval) -> types::approval::Approval {
    types::approval::Approval {
        id: text(&approval.id),
        task: approval.task.as_ref().map(text),
        run: approval.run.as_ref().map(text),
        cause: approval.cause,
        question: approval.question.clone(),
        call: approval.call.as_ref().map(call),
        options: texts(&approval.options),
        scope: approval.scope,
        agent: approval.agent.as_ref().map(text),
        asked_at: time(approval.asked_at),
        decided: approval.decided.as_ref().map(|decided| types::approval::Decided {
            by: text(&decided.by),
            at: time(decided.at),
            decision: text(&decided.decision),
            note: decided.note.clone(),
        }),
    }
}

pub fn call(call: &AskedCall) -> types::approval::Call {
    types::approval::Call {
        tool: text(&call.tool),
        argument: call.argument.clone(),
        input: call.input.clone(),
        text: call.lines().join("\n"),
    }
}
