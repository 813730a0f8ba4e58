//! What people do with tasks and workers.

use machines::machine::Code;
use machines::names::{AgentName, ApprovalId, EffectId, RunId, TaskId, WorkerName};
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{Wire, run, task, worker};
use smol_str::SmolStr;

use super::Rule;
use super::claim::{claim, given_plan, plan_for, take_run};
use super::excerpts::first_line;
use super::fleet::free_name;
use super::fleet::spawn;
use super::landing::{approve, land_again, reviewed_by_policy, tidy_up, unqueue};
use super::leases::give_lease;
use super::next::wake;
use super::outcome::ask_after;
use super::proposals::take_proposal;
use super::release::{abort_run, ask_person, block, close_approval, drop_question, pause_run, release};
use super::replies::run_reply;
use super::service::probe;
use super::sessions;
use crate::checks::check_text;
use crate::choice::Choice;
use crate::command::{Actor, Refusal, Reply};
use crate::draft::{Draft, Ruled};
use crate::effect::{Effect, StepMessage, Timer};
use crate::event::{
    AgentWanted, ApprovalDecided, GatePassed, NoteLeft, PlaceGiven, Restarted, TaskAdded, Undoes,
};
use crate::session::Session;
use crate::why;
use crate::words::{CommentKind, PersonNeeded, Verdict};
use crate::world::Holder;

pub(super) fn landing_is_written(d: &Draft, id: &TaskId) -> bool {
    d.world.landing.as_ref().is_some_and(|landing| landing.task == *id && landing.written.is_some())
}

pub(crate) fn person_moves(
    d: &mut Draft,
    id: &TaskId,
    actor: &Actor,
    to: Status,
    payload: &Payload,
) -> Ruled {
    let from = d.task(id)?.status();
    let work_plan = match &payload.work_plan {
        Some(plan) => Some(task::WorkPlan { source: None, ..plan.clone() }),
        None if to == Status::InProgress => given_plan(d, id)?,
        None => None,
    };
    let payload = &Payload { work_plan, ..payload.clone() };
    for (field, text) in [
        ("feedback", &payload.feedback),
        ("clarification", &payload.clarification),
        ("decision", &payload.decision),
    ] {
        check_text(&d.world, field, text.as_deref())?;
    }
    if landing_is_written(d, id) && to != Status::Done {
        let message = format!("`{id}` is being landed: main is about to move to it");
        return Err(
            Refusal::new(409, "LANDING", message).hint("wait a moment; then add a task that undoes it")
        );
    }
    if d.task(id)?.is_waiting_proposal() && to == Status::Assigned {
        if !actor.is_human() {
            let message = format!("`{id}` was proposed by an agent, and no person has accepted it");
            return Err(Refusal::new(409, "PROPOSED", message)
                .hint("a person has to accept it")
                .next([Choice::AcceptProposal { task: id.clone() }]));
        }
        take_proposal(d, id);
    }
    if let Actor::Agent { name, .. } = actor {
        held_by_dependencies(d, id, name, to, payload)?;
    }
    check_payload(d, id, payload)?;
    // What is under way knows the task by its approval and its run; both are needed after the move.
    let approval = d.task(id)?.approval.clone();
    let came_from = d.task(id)?.machine.came_from;
    let mut given = payload.clone();
    if let Some(approval) = &mut given.approval {
        // Who and when are never the caller's to say.
        approval.approved_by = SmolStr::new(actor.to_string());
        approval.approved_at = d.at();
    }
    d.move_task(id, actor, to, given)?;
    let to = d.task(id)?.status();
    if from == Status::NeedsApproval {
        left_approval(d, id, approval, to)?;
    }
    match (from, to) {
        (_, Status::Canceled) => canceled(d, id),
        (_, Status::NeedsApproval) => {
            if from == Status::InProgress {
                out_of_hands(d, id, ReleaseReason::NeedsApproval)?;
            }
            unqueue(d, id)?;
            d.rule(Rule::Escalated);
            let cause = payload.cause.unwrap_or(ApprovalCause::Escalation);
            let question = payload.feedback.clone().unwrap_or_else(|| format!("escalated by {actor}"));
            ask_person(d, id, None, cause, question, &["approve", "deny"], None).map(drop)
        }
        (Status::InProgress, Status::Blocked) => out_of_hands(d, id, ReleaseReason::Blocked),
        (Status::InProgress, Status::Review) => handed_in(d, id),
        (Status::NeedsApproval, Status::Review) => back_to_review(d, id, came_from),
        (Status::Review, Status::InProgress | Status::Blocked) => {
            d.rule(Rule::ChangesAsked);
            unqueue(d, id)?;
            if let Some(feedback) = &payload.feedback {
                d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(feedback) });
            }
            Ok(())
        }
        (_, Status::Done) => tidy_up(d, id),
        _ => Ok(()),
    }
}

/// An agent takes up what can be worked on. A person who starts a task before its dependencies are DONE knows why.
fn held_by_dependencies(d: &Draft, id: &TaskId, agent: &AgentName, to: Status, payload: &Payload) -> Ruled {
    let task = d.task(id)?;
    let claims = || payload.assignee_ids.iter().flatten().any(|assignee| assignee == agent.as_str());
    let takes = match (task.status(), to) {
        (Status::Inbox, Status::Assigned) => claims(),
        (Status::Assigned, Status::InProgress) => true,
        _ => false,
    };
    let Some(why) = why::open_dependency(&d.world, task).filter(|_| takes) else { return Ok(()) };
    let refusal = Refusal::field("dependsOn", format!("task `{id}` cannot be claimed: {why}"));
    let sender = d.command.actor.sender();
    let moves = d.world.judged(task, &sender).moves_of(&sender);
    let allowed = moves.into_iter().filter(|status| *status != to).map(|status| status.to_string()).collect();
    Err(Refusal { status: 409, code: SmolStr::new_static("NOT_CLAIMABLE"), allowed, ..refusal }
        .next([Choice::ExplainTask { task: id.clone() }]))
}

/// What a move brings is possible at all.
fn check_payload(d: &Draft, id: &TaskId, payload: &Payload) -> Ruled {
    let cost = payload.work_plan.as_ref().and_then(|plan| plan.estimated_cost);
    if cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
        return Err(Refusal::field("workPlan", "workPlan.estimatedCost must be 0 or more"));
    }
    let named = payload.approval.as_ref().and_then(|approval| approval.approval_id.as_ref());
    let Some(named) = named else { return Ok(()) };
    let known = ApprovalId::new(named.as_str()).ok().and_then(|named| d.world.approvals.get(&named));
    match known.is_some_and(|known| known.task.as_ref() == Some(id)) {
        true => Ok(()),
        false => {
            let message = format!("there is no approval `{}` of `{id}`", named.escape_debug());
            Err(Refusal::field("approval", message).next([Choice::ListApprovals]))
        }
    }
}

/// A move by hand out of NEEDS_APPROVAL settles the question, and a call that waits is denied.
pub(super) fn left_approval(d: &mut Draft, id: &TaskId, approval: Option<ApprovalId>, to: Status) -> Ruled {
    if let Some(approval) = approval
        && d.world.approvals.get(&approval).is_some_and(|open| open.decided.is_none() && open.task.is_some())
    {
        let by = SmolStr::new(d.command.actor.to_string());
        d.emit(ApprovalDecided {
            id: approval,
            by,
            at: d.at(),
            decision: Verdict::Moved,
            note: format!("the task was moved to {to}"),
        });
    }
    let Some(run) = d.world.run_of(id).filter(|run| run.question.is_some()).map(|run| run.id.clone()) else {
        return Ok(());
    };
    if to == Status::InProgress {
        answer_waiting(d, &run, false, "the task was moved by hand; ask again if it is still needed")
    } else {
        release(d, id, ReleaseReason::Blocked)
    }
}

/// Answers the call that waits, and lets the run go on in the same step.
pub(super) fn answer_waiting(d: &mut Draft, run_id: &RunId, allow: bool, note: &str) -> Ruled {
    let run = d.run(run_id)?;
    let (Some(question), Some(step)) = (run.question.clone(), run.step.clone()) else { return Ok(()) };
    drop_question(d, run_id);
    // Whoever asked by a tool of ours looks for the decision.
    if !question.is_by_tool() {
        sessions::answer(d, &Session::Run(run_id.clone()), &step, &question.call, allow, note);
    }
    d.step_run(run_id, run::Event::Resume { feedback: None, input: None, max_turns: None }).map(drop)
}

/// A person takes a task out of a worker's hands; the run can go on later.
pub(super) fn out_of_hands(d: &mut Draft, id: &TaskId, reason: ReleaseReason) -> Ruled {
    d.rule(Rule::TakenOut);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        pause_run(d, &run, run::PauseReason::UserInput)?;
    }
    release(d, id, reason)
}

/// Where the gate had let it through before, it stands as it stood; otherwise it was handed in by hand.
pub(super) fn back_to_review(d: &mut Draft, id: &TaskId, came_from: Option<Status>) -> Ruled {
    if came_from == Some(Status::Review) { reviewed_by_policy(d, id) } else { handed_in(d, id) }
}

/// Handed in without our gate: a person looks at it, whatever the policy.
pub(super) fn handed_in(d: &mut Draft, id: &TaskId) -> Ruled {
    d.rule(Rule::TakenOut);
    if let Some(run) = d.world.run_of(id) {
        let (run_id, turns) = (run.id.clone(), run.machine.inner().current_turn.max(1));
        if run.is_live() && run.state() == run::State::Running {
            let result = "handed in".to_owned();
            d.step_run(&run_id, run::Event::Complete { result, diff: None, turn_count: turns })?;
        } else {
            abort_run(d, &run_id, "handed in by hand")?;
        }
    }
    let tip = d.task(id)?.work.place.as_ref().and_then(|place| place.tip.clone());
    release(d, id, ReleaseReason::Taken)?;
    d.rule(Rule::PersonNeeded);
    let needs_person = Some(PersonNeeded::ByHand);
    d.emit(GatePassed { id: id.clone(), has_code: tip.is_some(), tip, needs_person });
    Ok(())
}

/// What a person says reaches the agent: in the step that is under way, or with the next one.
pub(crate) fn person_comments(d: &mut Draft, id: &TaskId, text: &str) {
    let at_work = d.world.run_of(id).and_then(|run| Some((run.id.clone(), run.step.clone()?)));
    let in_step = |step: &EffectId| {
        d.world.effects.get(step).is_some_and(|effect| matches!(**effect, Effect::StartStep { .. }))
    };
    match at_work.filter(|(_, step)| in_step(step)) {
        Some((run, step)) => {
            d.rule(Rule::CommentedAtWork);
            let message = StepMessage::Task { task: id.clone(), run, text: text.to_owned() };
            sessions::tell(d, message, step);
        }
        None => d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(text) }),
    }
}

pub(super) fn canceled(d: &mut Draft, id: &TaskId) -> Ruled {
    d.rule(Rule::Canceled);
    if let Some(opened) = d.task(id)?.landing.pull_request.clone() {
        let (name, branch) = (opened.name(), &opened.branch);
        let text =
            format!("the pull request {name} and its branch {branch} on the remote are left as they are");
        d.comment(id, "system", CommentKind::PullRequest, text);
    }
    close_approval(d, id, Verdict::Canceled, "the task was canceled");
    tidy_up(d, id)?;
    super::architect::story_over(d, id, "was canceled")
}

pub(crate) fn assign_by_person(
    d: &mut Draft,
    name: &WorkerName,
    id: &TaskId,
    clarification: Option<&str>,
) -> Ruled {
    check_text(&d.world, "clarification", clarification)?;
    let worker = d.worker(name)?;
    let agent = worker.agent.clone();
    // The worker's own table says no in its own words.
    let wish = worker::Event::Assign { task: id.clone(), claimable: true, limits: worker::Limits::default() };
    let by = d.caller(false);
    machines::would_take(&worker.machine, &wish, by).map_err(|refusal| not_now(worker, &wish, refusal))?;
    take_proposal(d, id);
    let task = d.task(id)?;
    let blocked = task.status() == Status::Blocked;
    if let Some(why) = why::assign_blocker(&d.world, task, &agent, d.day()) {
        return Err(Refusal::new(409, "NOT_CLAIMABLE", format!("task `{id}` cannot be claimed: {why}"))
            .next([Choice::ExplainTask { task: id.clone() }]));
    }
    if blocked {
        let actor = d.command.actor.clone();
        let payload = Payload {
            assignee_ids: Some(vec![SmolStr::new(agent.as_str())]),
            clarification: clarification.map(str::to_owned),
            work_plan: plan_for(d, id)?,
            ..Payload::default()
        };
        d.move_task(id, &actor, Status::InProgress, payload)?;
    }
    claim(d, name, id)
}

/// A person has an agent begin a task: an idle worker of that agent takes it, or one that is made for it and retires like
/// the fleet's own. Whoever goes on with the task later is of the same agent.
pub(crate) fn start_by_person(d: &mut Draft, agent: &AgentName, id: &TaskId) -> Result<Reply, Refusal> {
    let Some(task) = d.world.task(id) else {
        let message = format!("there is no task `{id}`; choose another");
        return Err(Refusal::new(404, Code::TaskNotFound.name(), message).next([Choice::ListTasks]));
    };
    if let Some(run) = d.world.run_of(id).filter(|run| task.work.lease.is_some() && run.is_open()) {
        let message = format!("run `{}` of agent `{}` is under way on `{id}`", run.id, run.agent);
        return Err(Refusal::new(409, Code::AgentAlreadyRunning.name(), message)
            .hint("wait until it is over, or end it")
            .next([Choice::AbortRun { run: run.id.clone() }]));
    }
    if d.world.wanted_agent(task) != Some(agent) {
        d.emit(AgentWanted { id: id.clone(), agent: Some(agent.clone()) });
    }
    let of_agent = |name: &&WorkerName| d.world.worker(name).is_some_and(|worker| worker.agent == *agent);
    let name = match d.world.idle.iter().find(of_agent).cloned() {
        Some(name) => name,
        None => {
            let name = free_name(&d.world);
            spawn(d, &name, agent, false, d.caller(false))?;
            name
        }
    };
    assign_by_person(d, &name, id, None)?;
    let run = d.world.run_of(id).map(|run| run.id.clone());
    run.map_or_else(|| Ok(Reply::default()), |run| run_reply(d, &run))
}

/// What a person asked of a worker that is not where it could be done, in the words of the command.
fn not_now(worker: &crate::world::Worker, wish: &worker::Event, refusal: machines::Refusal) -> Refusal {
    use worker::Kind;
    let wish = <worker::Worker as machines::Machine>::kind(wish);
    let (name, state) = (&worker.name, refusal.state);
    let on = worker.machine.task.as_ref().map(|id| format!(" with `{id}`")).unwrap_or_default();
    let because = match (wish, worker.machine.status) {
        (Kind::Kill, worker::State::Idle) => "nothing to kill".to_owned(),
        (Kind::Retry, _) => "nothing to retry: only a stuck worker is tried again".to_owned(),
        (Kind::Assign, _) => "only an idle worker can be given a task".to_owned(),
        (Kind::Cleanup, worker::State::Idle) => "it has no tree to remove".to_owned(),
        (wish, _) => format!("it does not take `{wish}`: {}", refusal.message),
    };
    let of_worker = |choice: fn(WorkerName) -> Choice| choice(name.clone());
    let kill = || of_worker(|worker| Choice::KillWorker { worker });
    let next = match (wish, worker.machine.status) {
        (Kind::Assign, worker::State::Stuck) => {
            vec![of_worker(|worker| Choice::RetryWorker { worker }), kill()]
        }
        (Kind::Assign, _) => vec![Choice::ListWorkers],
        (Kind::Cleanup, state) if state != worker::State::Idle => {
            vec![of_worker(|worker| Choice::CleanUpByForce { worker })]
        }
        (Kind::Kill, worker::State::Done) => vec![of_worker(|worker| Choice::CleanUpWorker { worker })],
        _ => Vec::new(),
    };
    let mut refused = Refusal::from(refusal).next(next);
    refused.message = format!("worker `{name}` is {state}{on}; {because}");
    refused
}

pub(crate) fn retry(d: &mut Draft, name: &WorkerName) -> Ruled {
    let machine = d.worker(name)?.machine.clone();
    // One that waits for its next try has it now.
    if let (Some(id), true) =
        (&machine.task, d.world.timers.contains_key(&Timer::Backoff { worker: name.clone() }))
    {
        return retry_task(d, id);
    }
    machines::would_take(&machine, &worker::Event::Retry, d.caller(false)).map_err(|refusal| {
        not_now(d.world.worker(name).expect("it was just there"), &worker::Event::Retry, refusal)
    })?;
    let Some(id) = machine.task.clone() else { return Ok(()) };
    let task = d.task(&id)?;
    if task.status() != Status::Blocked {
        let status = task.status();
        return Err(Refusal::new(
            409,
            "NOT_BLOCKED",
            format!("task `{id}` of worker `{name}` is {status}; it is not the worker's to try again"),
        )
        .hint("free the worker")
        .next([Choice::KillWorker { worker: name.clone() }]));
    }
    if !task.work.unfinished.is_empty() {
        return Err(Refusal::new(
            409,
            "UNFINISHED",
            format!("what was under way for `{id}` has not ended yet"),
        )
        .hint("try again in a moment"));
    }
    d.rule(Rule::Retried);
    let actor = d.command.actor.clone();
    d.move_task(&id, &actor, Status::InProgress, Payload::default())?;
    give_lease(d, &id, Holder::Worker(name.clone()))?;
    let agent = d.worker(name)?.agent.clone();
    take_run(d, &id, &agent, Holder::Worker(name.clone()))?;
    d.move_worker_by(name, worker::Event::Retry, d.caller(false)).map(drop)
}

/// Tries a task again that failed, or that waits for its next try: at once. One without a worker is taken by the next that
/// is free.
pub(crate) fn retry_task(d: &mut Draft, id: &TaskId) -> Ruled {
    let (status, run) = (d.task(id)?.status(), d.world.run_of(id));
    if let Some(run) = run.filter(|run| run.is_suspended()).map(|run| run.id.clone()) {
        d.rule(Rule::Retried);
        return probe(d, &run);
    }
    let waiting = d.world.leaseholder(id).map(|worker| Timer::Backoff { worker: worker.name.clone() });
    if let Some(timer) = waiting.filter(|timer| d.world.timers.contains_key(timer)) {
        d.rule(Rule::Retried);
        d.clear_timer(&timer);
        return wake(d, id);
    }
    if d.task(id)?.landing.held_up.is_some() {
        d.rule(Rule::Retried);
        d.clear_timer(&Timer::Checkout { task: id.clone() });
        land_again(d, id);
        return Ok(());
    }
    if status != Status::Blocked {
        return Err(Refusal::new(
            409,
            "NOT_BLOCKED",
            format!("task `{id}` is {status}; only a task that failed is tried again"),
        )
        .next([Choice::ExplainTask { task: id.clone() }]));
    }
    // One of another agent than the task wants by now is not the one to try it again.
    let wanted = d.world.wanted_agent(d.task(id)?);
    let right = |worker: &&crate::world::Worker| wanted.is_none_or(|agent| *agent == worker.agent);
    let stuck = d.world.worker_of(id).filter(right).map(|worker| worker.name.clone());
    if let Some(stuck) = stuck {
        return retry(d, &stuck);
    }
    d.rule(Rule::Retried);
    let actor = d.command.actor.clone();
    let nobody = d.task(id)?.machine.assignee_ids.is_empty();
    let assignee_ids = nobody.then(|| vec![SmolStr::new(d.world.config.fleet.agent.as_str())]);
    let work_plan = plan_for(d, id)?;
    d.move_task(id, &actor, Status::InProgress, Payload { assignee_ids, work_plan, ..Payload::default() })
}

/// From the beginning: what runs is ended, what was made is saved to a ref, and the next worker begins on main with a new
/// branch, tree and session.
pub(crate) fn restart(d: &mut Draft, id: &TaskId, note: Option<&str>) -> Ruled {
    check_text(&d.world, "note", note)?;
    let task = d.task(id)?;
    let status = task.status();
    if status.is_final() {
        return Err(Refusal::new(409, "CLOSED", format!("task `{id}` is {status}, for good"))
            .next([Choice::ReopenTask { task: id.clone() }]));
    }
    if landing_is_written(d, id) {
        let message = format!("`{id}` is being landed: main is about to move to it");
        return Err(
            Refusal::new(409, "LANDING", message).hint("wait a moment; then add a task that undoes it")
        );
    }
    if task.work.place.is_none() && matches!(status, Status::Inbox | Status::Assigned) {
        return Err(Refusal::new(409, "NOT_BEGUN", format!("nothing of `{id}` was begun"))
            .next([Choice::ExplainTask { task: id.clone() }]));
    }
    let has_place = task.work.place.is_some();
    d.rule(Rule::Restarted);
    let actor = d.command.actor.clone();
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        abort_run(d, &run, "the task is started over")?;
    }
    unqueue(d, id)?;
    release(d, id, ReleaseReason::Taken)?;
    block(d, id, BlockReason::Manual, format!("started over by {actor}"))?;
    d.emit(Restarted { id: id.clone() });
    if d.task(id)?.status() == Status::Blocked {
        let nobody = d.task(id)?.machine.assignee_ids.is_empty();
        let payload = Payload {
            assignee_ids: nobody.then(|| vec![SmolStr::new(d.world.config.fleet.agent.as_str())]),
            clarification: note.map(str::to_owned),
            ..Payload::default()
        };
        d.move_task(id, &actor, Status::Assigned, payload)?;
    }
    if let Some(note) = note {
        d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(note) });
    }
    if !has_place {
        return Ok(());
    }
    ask_after(d, id, Effect::RemoveTree { task: id.clone(), start_over: true })
}

/// Takes back what a task brought to main: the reverting commit is the work of a task of its own, which is approved and
/// waits to land. Where its merge fails, an agent takes it up on that branch.
pub(crate) fn undo(d: &mut Draft, id: &TaskId, by: &TaskId, tip: &SmolStr) -> Ruled {
    let task = d.task(id)?;
    let Some(landed) = task.landing.landed.clone() else {
        let status = task.status();
        return Err(Refusal::new(
            409,
            "NOT_LANDED",
            format!("`{id}` is {status} and has brought nothing to main"),
        )
        .hint("a task that has not landed is canceled")
        .next([Choice::CancelTask { task: id.clone() }]));
    };
    if d.world.tasks.contains_key(by) {
        return Err(Refusal::new(409, "EXISTS", format!("there is a task `{by}` already")).hint("try again"));
    }
    let (title, priority, task_type) = (first_line(&task.title), task.priority, task.machine.task_type);
    d.rule(Rule::Undone);
    let actor = d.command.actor.clone();
    d.emit(TaskAdded {
        id: by.clone(),
        title: format!("Undo {id}: {title}"),
        body: format!(
            "Take back what `{id}` brought to main with commit {}, and nothing else.",
            landed.merge
        ),
        task_type,
        priority,
        at: d.at(),
        ticket: None,
        reopens: None,
        plan: None,
        reviewer: None,
        depends_on: Vec::new(),
        created: None,
        plan_source: None,
        proposed: None,
    });
    d.emit(Undoes { id: by.clone(), of: id.clone() });
    // Whoever mends it where it cannot land is the fleet's agent.
    let assignee_ids = Some(vec![SmolStr::new(d.world.config.fleet.agent.as_str())]);
    d.move_task(by, &actor, Status::Assigned, Payload { assignee_ids, ..Payload::default() })?;
    let work_plan = plan_for(d, by)?;
    d.move_task(by, &actor, Status::InProgress, Payload { work_plan, ..Payload::default() })?;
    let session = d.new_session();
    let (tree, branch) = (format!("undo-{by}"), undo_branch(by));
    d.emit(PlaceGiven { id: by.clone(), tree, branch: branch.clone(), session });
    d.emit(GatePassed { id: by.clone(), tip: Some(tip.clone()), has_code: true, needs_person: None });
    let item =
        task::ChecklistItem { item: format!("reverts {}", landed.merge), answer: Some("yes".to_owned()) };
    let payload = Payload {
        deliverable: Some(task::Deliverable {
            content: format!("branch {branch}"),
            artifacts: vec![tip.to_string().into()],
        }),
        review_checklist: Some(task::Checklist { task_type, items: vec![item] }),
        ..Payload::default()
    };
    d.move_task(by, &actor, Status::Review, payload)?;
    d.comment(id, &actor.to_string(), CommentKind::Undo, format!("`{by}` takes it back"));
    approve(d, by, Some(tip.clone()), SmolStr::new(actor.to_string()), format!("undoes {id}"))
}

/// The branch of a task that takes another one back.
pub fn undo_branch(by: &TaskId) -> String {
    format!("agent/undo-{by}")
}

/// Whether a step, a preparation or a gate of the worker is under way.
pub(crate) fn has_live_process(d: &Draft, name: &WorkerName) -> bool {
    let task = d.world.worker(name).and_then(|worker| worker.machine.task.as_ref());
    task.and_then(|id| d.world.run_of(id)).is_some_and(|run| run.step.is_some())
}

/// Kill, cleanup, clean: the task is BLOCKED, the work saved, the worker idle or gone.
pub(crate) fn ended_by_person(d: &mut Draft, name: &WorkerName, event: worker::Event) -> Ruled {
    let worker = d.worker(name)?;
    let id = worker.machine.task.clone();
    let holds_lease = id.as_ref().is_some_and(|id| d.world.leaseholder(id).is_some_and(|w| w.name == *name));
    machines::would_take(&worker.machine, &event, d.caller(false))
        .map_err(|refusal| not_now(worker, &event, refusal))?;
    d.clear_timer(&Timer::Backoff { worker: name.clone() });
    d.move_worker_by(name, event, d.caller(false))?;
    let Some(id) = id else { return Ok(()) };
    d.rule(Rule::EndedByPerson);
    if holds_lease {
        block(d, &id, BlockReason::Manual, format!("worker {name} was ended by a person"))?;
    }
    Ok(())
}
