//! How the machines move each other. The only file that names two of them.
//!
//! Each rule says what it does in every state of each machine that it touches; "nothing" is an answer. An outcome
//! of the world is therefore never refused because of another machine's state.

use crate::command::*;
use crate::config::{Colour, Review, Role};
use crate::effect::{Effect, Prompt, Timer};
use crate::event::*;
use crate::handle::{
    Draft, Ruled, check_dependencies, check_text, fnv, forbidden, holder_worker, run_reply, spawn, system_for,
};
use crate::world::{BudgetScope, Dependency, Holder, Landed, SentBack};
use crate::{Millis, budget, why};
use machines::names::{ApprovalId, EffectId, RunId, ServiceName, TaskId, WorkerName};
use machines::suspended::{Suspension, Wrapped};
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, task, worker};
use smol_str::SmolStr;

/// Declares the rules with the table that people read.
macro_rules! rules {
    ($($name:ident: $when:literal => $then:literal;)*) => {
        /// A rule by which one machine moves another.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($name),* }

        impl Rule {
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            pub fn name(self) -> &'static str {
                match self { $(Rule::$name => stringify!($name)),* }
            }

            pub fn when(self) -> &'static str {
                match self { $(Rule::$name => $when),* }
            }

            pub fn then(self) -> &'static str {
                match self { $(Rule::$name => $then),* }
            }
        }
    };
}

rules! {
    TicketSeen: "an open ticket is seen" => "a task in INBOX with its dependencies, once per opening";
    TicketClosed: "a ticket is closed by hand" => "task: INBOX and ASSIGNED go to CANCELED, later ones to BLOCKED (manual); nothing where it is closed, blocked or being landed";
    TicketChanged: "a ticket's text is changed" => "the agent hears of it with the next step";
    Claimed: "the fleet runs, a worker is idle, and there is work for it" => "the worker takes the lease of, in this order, an IN_PROGRESS task without one, an ASSIGNED task of its agent, a claimable INBOX task: task to IN_PROGRESS with a plan, worker ready, run START or RESUME";
    TreeReady: "the tree is ready" => "worker working, first step";
    TreeFailed: "the tree cannot be made" => "as a failed step";
    TurnTaken: "a turn's message is complete" => "run STEP; cost and tokens are added to run, worker, task, agent and day; its calls are audited";
    StepFinished: "a step ended without DONE" => "worker working, next step";
    StepFailed: "a step failed" => "run ERROR (recoverable), worker waits 2, 4, 8, 16 s; when due, run RESUME and the next step";
    StepRetried: "a step timed out, or its session was lost" => "the same step once more, with a fresh session; both count as one error";
    Outage: "a service is away" => "run suspended, no error counted; nothing is claimed for its agents";
    Restored: "the services are back" => "run restored as it was; the next step where the process is gone";
    ResetReached: "a usage limit is reset" => "the first suspended run goes on alone, as a probe";
    SuspensionExpired: "a suspension lasted too long" => "run in error (recoverable), worker idle, task IN_PROGRESS without a lease and not claimable until the service is back";
    BudgetReached: "a budget would be passed" => "run PAUSE, task NEEDS_APPROVAL (budget), worker idle; one question for all where it is the day's";
    BudgetRaised: "a budget question is approved" => "the budget is raised, and the task goes back to where it came from";
    ActionAsked: "a red action is asked for, or a yellow one by an intern" => "the call waits; run PAUSE, task NEEDS_APPROVAL";
    ActionDecided: "the action is decided" => "the decision answers the call, run RESUME, task back; where nobody waits any more, it goes into the next prompt";
    ActionUnanswered: "a call was not answered in time" => "the step is ended, worker idle; the task goes on waiting";
    ToolDenied: "a tool that is not allowed is called" => "the call is refused before it runs, audited, and counted as a failure of the tool";
    LoopDetected: "the same call came three times" => "run PAUSE, task BLOCKED (loop), worker idle";
    ToolFailures: "one tool failed three times in a row" => "run PAUSE, task BLOCKED (tool_failures), worker idle";
    TurnLimit: "the turn limit is reached" => "run PAUSE, task NEEDS_APPROVAL (turn_limit) with continue, complete and abort; worker idle";
    TurnLimitContinued: "continue at the turn limit" => "the limit is raised; the next worker resumes the run";
    TurnLimitCompleted: "complete at the turn limit" => "run RESUME and COMPLETE in one commit; the gate decides without a worker";
    TurnLimitAborted: "abort at the turn limit" => "run ABORT, task BLOCKED (manual) or CANCELED";
    ClaimedDone: "DONE in the final message, or no steps left" => "worker done, gate";
    GateGreen: "the gate is green" => "task REVIEW with deliverable, checklist and cost; run COMPLETE; worker idle";
    GateRed: "the gate is red" => "worker working with the output, or stuck when no fix is left";
    GateEmpty: "the diff is empty" => "one fix round that says so; then REVIEW by a person";
    ReviewedByPolicy: "in REVIEW under policy auto" => "the policy approves, unless the work needs a person";
    Approved: "approved" => "the approval names the tip; the task joins the merge queue, or is DONE where there is nothing to land";
    ChangesAsked: "changes are asked for" => "task IN_PROGRESS without a lease, or BLOCKED past the limit; the approval is void and the task leaves the queue";
    LandingStarted: "a task is first in the queue and nothing is landing" => "main is merged with the approved tip and tested";
    LandingFailed: "the merge conflicts, or is red" => "task IN_PROGRESS with the files or output, or BLOCKED (landing) the fourth time; no review cycle";
    LandingWritten: "the merge is green" => "tip, merge commit and old main are written down, then main is moved";
    LandingRepeated: "main was moved by someone else" => "the merge is made and tested again";
    LandingHeldUp: "the user's checkout is in the way" => "the landing waits, says which files, and holds up nobody";
    Landed: "the merge landed" => "task DONE with its completion record, ticket closed, tree removed, branch deleted, dependents claimable";
    Stuck: "a worker is stuck" => "task BLOCKED (stuck) with the last error, lease given back";
    Retried: "a person tries a stuck worker again" => "task BLOCKED to IN_PROGRESS, lease to the same worker, next step when its wait is over";
    EndedByPerson: "kill, cleanup or clean" => "run ABORT, task BLOCKED (manual), work saved; worker idle or gone";
    Lost: "a worker or runner is lost" => "run ERROR, lease ended, task stays IN_PROGRESS; the third time BLOCKED (lost_workers)";
    Recovered: "the owner starts again" => "each worker goes on, is repeated, or gives its task back, by what was found of it";
    Canceled: "task CANCELED" => "run ABORT where it lives, waiting call denied, worker idle, tree saved and removed, dequeued, ticket closed";
    TakenOut: "a person takes a task out of a worker's hands" => "run COMPLETE, PAUSE or ABORT, worker idle";
    Escalated: "a task is escalated, or its run paused by a person" => "run PAUSE, task NEEDS_APPROVAL (escalation), worker idle";
    OutsideRun: "an agent that runs outside starts or ends a run" => "it takes the lease, or gives it back";
}

const PERSON_NEEDED_BY_HAND: &str = "by_hand";

// ---------------------------------------------------------------------------------------------------------------
// After every command: whoever is free takes what there is.

pub(crate) fn settle(d: &mut Draft) -> Ruled {
    start_landing(d)?;
    while let Some((worker, task)) = next_claim(d) {
        claim(d, &worker, &task)?;
    }
    Ok(())
}

fn next_claim(d: &Draft) -> Option<(WorkerName, TaskId)> {
    let world = &d.world;
    if !world.fleet_running || world.claimable.is_empty() {
        return None;
    }
    world.idle.iter().find_map(|name| {
        let worker = world.worker(name)?;
        if why::fleet_blocker(world, &worker.agent, d.day()).is_some() {
            return None;
        }
        let open = |key: &&crate::world::ClaimKey| {
            world
                .task(&key.3)
                .is_some_and(|task| why::task_blocker(world, task, &worker.agent, d.day()).is_none())
        };
        world.claimable.iter().find(open).map(|key| (name.clone(), key.3.clone()))
    })
}

/// One commit: INBOX→ASSIGNED→IN_PROGRESS, worker ready, run START or RESUME.
fn claim(d: &mut Draft, name: &WorkerName, id: &TaskId) -> Ruled {
    d.rule(Rule::Claimed);
    let agent = d.worker(name)?.agent.clone();
    let by = system_for(&agent);
    let assignees = Some(vec![SmolStr::new(agent.as_str())]);

    if d.task(id)?.status() == Status::Inbox {
        d.move_task(id, &by, Status::Assigned, Payload { assignee_ids: assignees, ..Payload::default() })?;
    }
    release_stuck(d, id, name)?;
    give_lease(d, id, Holder::Worker(name.clone()))?;
    if d.task(id)?.status() == Status::Assigned {
        d.move_task(
            id,
            &by,
            Status::InProgress,
            Payload { work_plan: plan_for(d, id)?, ..Payload::default() },
        )?;
    }
    let fleet = &d.world.config.fleet;
    let limits = worker::Limits { max_steps: fleet.max_steps, max_fix_rounds: fleet.max_fix_rounds };
    d.move_worker(name, worker::Event::Assign { task: id.clone(), claimable: true, limits })?;
    if d.task(id)?.place.is_none() {
        let session = d.new_session();
        d.emit(PlaceGiven {
            id: id.clone(),
            tree: format!("agents/{name}-{id}"),
            branch: format!("agent/{name}-{id}"),
            session,
        });
    }
    take_run(d, id, &agent, Holder::Worker(name.clone()))?;
    reserve(d, id);
    ask_tree(d, name, id)
}

/// The ticket's plan, or the default one, where the task has none yet.
fn plan_for(d: &Draft, id: &TaskId) -> Result<Option<task::WorkPlan>, Refusal> {
    let task = d.task(id)?;
    if task.machine.work_plan.is_some() {
        return Ok(None);
    }
    let own = task.plan.clone().map(task::WorkPlan::new);
    let complete = |plan: &task::WorkPlan| {
        (task::PLAN_BULLETS_MIN..=task::PLAN_BULLETS_MAX).contains(&plan.bullets.len())
            && plan.bullets.iter().all(|bullet| !bullet.trim().is_empty())
    };
    Ok(own.filter(complete).or_else(|| {
        Some(task::WorkPlan::new([
            format!("Read the code that \"{}\" concerns", first_line(&task.title)),
            "Make the change, with tests that would fail without it".to_owned(),
            "Run the tests and commit".to_owned(),
        ]))
    }))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}

fn give_lease(d: &mut Draft, id: &TaskId, holder: Holder) -> Ruled {
    let attempt = d.task(id)?.lease_attempts + 1;
    d.emit(LeaseGiven { id: id.clone(), holder, attempt });
    Ok(())
}

fn end_lease(d: &mut Draft, id: &TaskId) {
    if let Some(attempt) = d.world.task(id).and_then(|task| task.lease.as_ref()).map(|lease| lease.attempt) {
        d.clear_timer(&Timer::OutsideLease { task: id.clone() });
        d.emit(LeaseEnded { id: id.clone(), attempt });
    }
}

/// A stuck worker kept the task in sight; whoever takes it up again takes it out of its hands.
fn release_stuck(d: &mut Draft, id: &TaskId, taker: &WorkerName) -> Ruled {
    let stuck =
        d.world.worker_of(id).filter(|worker| worker.name != *taker).map(|worker| worker.name.clone());
    match stuck {
        Some(name) => {
            d.move_worker(&name, worker::Event::Released { reason: ReleaseReason::Taken }).map(drop)
        }
        None => Ok(()),
    }
}

/// Resumes the run that was left open, or starts a new one in the same session.
fn take_run(d: &mut Draft, id: &TaskId, agent: &machines::names::AgentName, holder: Holder) -> Ruled {
    if let Some(open) = d.world.run_of(id).filter(|run| run.is_open()) {
        let (run, next_max_turns) = (open.id.clone(), open.next_max_turns);
        let resumable = matches!(open.state(), run::State::Paused)
            || open.machine.inner().last_error.as_ref().is_some_and(|error| error.recoverable);
        if resumable && open.agent == *agent {
            d.emit(RunTaken { id: run.clone(), holder });
            if next_max_turns.is_some() {
                d.emit(TurnsRaised { id: run.clone(), to: None });
            }
            d.step_run(&run, run::Event::Resume { feedback: None, input: None, max_turns: next_max_turns })?;
            return Ok(());
        }
        d.step_run(&run, run::Event::Abort { reason: "another run takes its place".to_owned() })?;
    }
    let config = d.world.config.agent(agent);
    open_run(d, id, agent, holder, config.max_turns, None, "work on the task")
}

fn open_run(
    d: &mut Draft,
    id: &TaskId,
    agent: &machines::names::AgentName,
    holder: Holder,
    max_turns: Option<u32>,
    options: Option<&run::Options>,
    prompt: &str,
) -> Ruled {
    let config = d.world.config.agent(agent);
    let number = d.task(id)?.runs + 1;
    let run = RunId::new(format!("{id}.{number}")).map_err(|bad| Refusal::field("id", bad.to_string()))?;
    d.emit(RunOpened {
        id: run.clone(),
        task: id.clone(),
        agent: agent.clone(),
        holder,
        max_turns: run::turn_limit(max_turns, None, config.kind),
        allowed_tools: config.allowed_tools.clone(),
    });
    let start = run::Event::Start {
        task_id: SmolStr::new(id.as_str()),
        prompt: prompt.to_owned(),
        options: options.cloned(),
    };
    d.step_run(&run, start).map(drop)
}

/// Sets the next step's share aside. The claim has seen that there is room.
fn reserve(d: &mut Draft, id: &TaskId) {
    let amount = d.world.config.budget.step;
    if let Some(run) = d.world.run_of(id).filter(|run| run.reserved == 0).map(|run| run.id.clone()) {
        d.emit(Reserved { id: run, day: d.day(), amount });
    }
}

fn unreserve(d: &mut Draft, run: &RunId) {
    if d.world.run(run).is_some_and(|run| run.reserved > 0) {
        d.emit(Unreserved { id: run.clone() });
    }
}

fn ask_tree(d: &mut Draft, worker: &WorkerName, id: &TaskId) -> Ruled {
    let Some(place) = d.task(id)?.place.clone() else { return Ok(()) };
    let effect = d.ask(Effect::PrepareTree {
        task: id.clone(),
        worker: worker.clone(),
        tree: place.tree,
        branch: place.branch,
    });
    under_way(d, id, Some(effect));
    Ok(())
}

fn under_way(d: &mut Draft, id: &TaskId, effect: Option<EffectId>) {
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        d.emit(StepUnderWay { id: run, effect });
    }
}

/// Whatever a worker should be doing and is not: after the fleet started, a service came back, or the past ended.
fn wake(d: &mut Draft, id: &TaskId) -> Ruled {
    let Some(task) = d.world.task(id) else { return Ok(()) };
    let (Some(worker), Some(run)) = (d.world.leaseholder(id), d.world.run_of(id)) else { return Ok(()) };
    let waiting = run.step.is_some()
        || run.is_suspended()
        || !task.unfinished.is_empty()
        || !d.world.fleet_running
        || task.status() != Status::InProgress
        || d.world.timers.contains_key(&Timer::Backoff { worker: worker.name.clone() });
    if waiting {
        return Ok(());
    }
    let (name, state, run_id, run_state) =
        (worker.name.clone(), worker.machine.status, run.id.clone(), run.state());
    match (state, run_state) {
        (worker::State::Working, run::State::InError) => {
            d.step_run(&run_id, run::Event::Resume { feedback: None, input: None, max_turns: None })?;
            next_step(d, &name)
        }
        (worker::State::Working, run::State::Starting | run::State::Running) => next_step(d, &name),
        (worker::State::Ready, run::State::Starting | run::State::Running) => ask_tree(d, &name, id),
        (worker::State::Done, run::State::Running) => ask_gate(d, &name, id, false),
        _ => Ok(()),
    }
}

/// The next step of a working worker, unless a limit says otherwise.
fn next_step(d: &mut Draft, name: &WorkerName) -> Ruled {
    let Some(id) = d.worker(name)?.machine.task.clone() else { return Ok(()) };
    let task = d.task(&id)?;
    let Some(run) = d.world.run_of(&id) else { return Ok(()) };
    // Whoever ended the fleet or the past wakes it again.
    if !d.world.fleet_running || !task.unfinished.is_empty() {
        return Ok(());
    }
    let Some(place) = task.place.clone() else { return Ok(()) };
    if !place.ready {
        return ask_tree(d, name, &id);
    }
    let (run_id, agent, reserved) = (run.id.clone(), run.agent.clone(), run.reserved);
    let machine = run.machine.inner();
    if machine.state == run::State::Running && machine.current_turn >= machine.max_turns {
        return turn_limit(d, &run_id);
    }
    if reserved == 0
        && let Some(room) = budget::exhausted(&d.world, task, Some(run), &agent, d.day())
        && machine.state == run::State::Running
    {
        return budget_reached(d, &run_id, room.scope);
    }
    let turns_left = machine.max_turns - machine.current_turn;
    let resume = place.session_used && d.world.config.agent(&agent).resumable;
    let notes: Vec<String> = task.notes.iter().map(|note| note.to_string()).collect();
    let prompt = match &task.sent_back {
        Some(SentBack::Gate(output)) => Prompt::TestFailure { output: output.clone(), notes },
        Some(SentBack::Landing(output)) => Prompt::MergeConflict { output: output.clone(), notes },
        None if resume => Prompt::Step { notes },
        None => Prompt::Init { notes },
    };
    let told = !task.notes.is_empty() || task.sent_back.is_some();
    reserve(d, &id);
    if told {
        d.emit(NotesTold { id: id.clone() });
    }
    let effect = d.ask(Effect::StartStep {
        task: id.clone(),
        worker: name.clone(),
        run: run_id,
        session: place.session,
        resume,
        prompt,
        turns_left,
    });
    under_way(d, &id, Some(effect));
    Ok(())
}

fn ask_gate(d: &mut Draft, name: &WorkerName, id: &TaskId, max_steps_reached: bool) -> Ruled {
    let effect = d.ask(Effect::RunGate { task: id.clone(), worker: Some(name.clone()), max_steps_reached });
    under_way(d, id, Some(effect));
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// Taking work out of someone's hands.

/// Ends what is under way for a run. Nobody works on the task again before it is known to be gone.
fn quit_step(d: &mut Draft, run_id: &RunId) {
    let Some(run) = d.world.run(run_id) else { return };
    let (task, step) = (run.task.clone(), run.step.clone());
    if let Some(step) = step {
        d.end(&step, "superseded");
        d.emit(StepUnderWay { id: run_id.clone(), effect: None });
        let end = d.ask(Effect::EndStep { task: task.clone(), run: Some(run_id.clone()), step });
        d.emit(UnfinishedAdded { id: task, effect: end });
    }
    unreserve(d, run_id);
}

/// Ends a gate that runs without a worker.
fn quit_gate(d: &mut Draft, id: &TaskId) {
    if let Some(gate) = d.world.task(id).and_then(|task| task.gate.clone()) {
        d.end(&gate, "superseded");
        d.emit(GateAlone { id: id.clone(), effect: None });
        let end = d.ask(Effect::EndStep { task: id.clone(), run: None, step: gate });
        d.emit(UnfinishedAdded { id: id.clone(), effect: end });
    }
}

/// Forgets the call that waits: its process is gone or going. The decision will go into the next prompt.
fn drop_question(d: &mut Draft, run_id: &RunId) {
    if let Some(question) = d.world.run(run_id).and_then(|run| run.question.clone()) {
        d.clear_timer(&Timer::Question { approval: question.approval });
        d.emit(QuestionDropped { id: run_id.clone() });
    }
}

/// The task leaves whoever holds it. A stuck worker holds no lease and stays, for a person to see.
fn release(d: &mut Draft, id: &TaskId, reason: ReleaseReason) -> Ruled {
    let run = d.world.run_of(id).map(|run| run.id.clone());
    if let Some(run) = &run {
        quit_step(d, run);
        drop_question(d, run);
    }
    quit_gate(d, id);
    let holder = match reason {
        ReleaseReason::Canceled => d.world.worker_of(id),
        _ => d.world.leaseholder(id),
    };
    if let Some(name) = holder.map(|worker| worker.name.clone()) {
        d.clear_timer(&Timer::Backoff { worker: name.clone() });
        d.move_worker(&name, worker::Event::Released { reason })?;
    }
    if let Some(run) = &run {
        d.clear_timer(&Timer::Suspension { run: run.clone() });
    }
    end_lease(d, id);
    Ok(())
}

/// Stops a run that can go on later, in whatever state it is.
fn pause_run(d: &mut Draft, run_id: &RunId, reason: run::PauseReason) -> Ruled {
    let run = d.run(run_id)?;
    match (run.is_suspended(), run.state()) {
        // A run that has not had its first turn cannot pause, and a suspended one has its own way out: the next
        // run goes on in the same session.
        (true, _) | (_, run::State::Starting) => abort_run(d, run_id, "stopped before its first turn"),
        (_, run::State::Running) => d.step_run(run_id, run::Event::Pause { reason, context: None }).map(drop),
        _ => Ok(()),
    }
}

fn abort_run(d: &mut Draft, run_id: &RunId, reason: &str) -> Ruled {
    let run = d.run(run_id)?;
    if run.is_suspended() || run.is_open() {
        d.clear_timer(&Timer::Suspension { run: run_id.clone() });
        d.step_run(run_id, run::Event::Abort { reason: reason.to_owned() })?;
    }
    Ok(())
}

fn fail_run(d: &mut Draft, run_id: &RunId, code: &'static str, message: &str) -> Ruled {
    let run = d.run(run_id)?;
    if run.is_live() {
        let error = run::AppError {
            code: SmolStr::new_static(code),
            message: message.to_owned(),
            status: 500,
            details: None,
        };
        d.step_run(run_id, run::Event::Error { error, recoverable: true })?;
    } else {
        // Paused, in error, suspended or over: no row takes it, so it is only noted.
        d.emit(RunNoted { id: run_id.clone(), note: message.to_owned() });
    }
    Ok(())
}

fn block(d: &mut Draft, id: &TaskId, reason: BlockReason, comment: String) -> Ruled {
    let by = Actor::System;
    let status = d.task(id)?.status();
    let decision = (status == Status::NeedsApproval).then(|| "blocked".to_owned());
    if matches!(status, Status::InProgress | Status::Review | Status::NeedsApproval) {
        close_approval(d, id, "blocked", &comment);
        d.move_task(
            id,
            &by,
            Status::Blocked,
            Payload { reason: Some(reason), decision, ..Payload::default() },
        )?;
        d.comment(id, "system", "blocked", comment);
    }
    Ok(())
}

/// Asks the system's own question about a task and waits for a person.
fn ask_person(
    d: &mut Draft,
    id: &TaskId,
    run: Option<&RunId>,
    cause: ApprovalCause,
    question: String,
    options: &[&'static str],
    call: Option<SmolStr>,
) -> Result<ApprovalId, Refusal> {
    let approval = d.new_approval_id();
    d.emit(ApprovalAsked {
        id: approval.clone(),
        task: Some(id.clone()),
        run: run.cloned(),
        cause,
        at: d.at(),
        question,
        options: options.iter().map(|option| SmolStr::new_static(option)).collect(),
        call,
        scope: None,
    });
    enter_approval(d, id, &approval, cause)?;
    Ok(approval)
}

fn enter_approval(d: &mut Draft, id: &TaskId, approval: &ApprovalId, cause: ApprovalCause) -> Ruled {
    if d.task(id)?.status() != Status::NeedsApproval {
        d.move_task(
            id,
            &Actor::System,
            Status::NeedsApproval,
            Payload { cause: Some(cause), ..Payload::default() },
        )?;
    }
    d.emit(WaitsForApproval { id: id.clone(), approval: approval.clone() });
    Ok(())
}

/// The question is settled by something else than its own decision. One that others wait for stays open.
fn close_approval(d: &mut Draft, id: &TaskId, decision: &'static str, note: &str) {
    let Some(approval) = d.world.task(id).and_then(|task| task.approval.clone()) else { return };
    let Some(record) = d.world.approvals.get(&approval) else { return };
    if record.decided.is_none() && record.scope != Some(BudgetScope::Day) {
        let by = SmolStr::new(d.command.actor.to_string());
        d.emit(ApprovalDecided {
            id: approval,
            by,
            at: d.at(),
            decision: SmolStr::new_static(decision),
            note: note.to_owned(),
        });
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Outcomes of the world.

pub(crate) fn outcome(d: &mut Draft, outcome: &Outcome) -> Result<Reply, Refusal> {
    if d.command.actor.role() != machines::machine::Role::System {
        return Err(forbidden("report the outcome of an effect"));
    }
    let Some(effect) = d.world.effects.get(&outcome.effect).cloned() else {
        return Ok(Reply { superseded: true, ..Reply::default() });
    };
    let id = &outcome.effect;
    match (effect.as_ref(), &outcome.what) {
        (Effect::PrepareTree { task, worker, .. }, what) => {
            done(d, id, task);
            match what {
                Happened::TreeReady { tip } => tree_ready(d, worker, task, tip)?,
                other => tree_failed(d, worker, &describe(other))?,
            }
        }
        (Effect::StartStep { task, worker, run, .. }, what) => {
            return step_outcome(d, id, task, worker, run, what);
        }
        (Effect::EndStep { task, run, .. }, what) => {
            if let Happened::Failed { error } = what {
                tried(d, id, error);
            } else {
                d.end(id, "done");
                if let (Happened::StepEnded { tip, usage }, Some(run)) = (what, run) {
                    charge(d, run, 0, *usage);
                    tip_moved(d, task, tip.as_ref());
                }
                past_ended(d, task)?;
            }
        }
        (Effect::AnswerCall { .. }, what) => match what {
            Happened::Failed { error } => tried(d, id, error),
            _ => d.end(id, "done"),
        },
        (Effect::RunGate { task, worker, max_steps_reached }, what) => {
            done(d, id, task);
            gate_outcome(d, task, worker.as_ref(), *max_steps_reached, what)?;
        }
        (Effect::SaveWork { task }, what) | (Effect::RemoveTree { task }, what) => match what {
            Happened::WorkSaved { reference } => {
                d.end(id, "done");
                d.comment(task, "system", "saved", format!("work saved as {reference}"));
                past_ended(d, task)?;
            }
            Happened::TreeRemoved { reference } => {
                d.end(id, "done");
                d.emit(TreeStands { id: task.clone(), stands: false });
                if let Some(reference) = reference {
                    d.comment(
                        task,
                        "system",
                        "saved",
                        format!("tree removed; its content is saved as {reference}"),
                    );
                }
                past_ended(d, task)?;
            }
            other => tried(d, id, &describe(other)),
        },
        (Effect::TestMerge { task, tip }, what) => {
            d.end(id, "done");
            match what {
                Happened::MergeGreen { merge, old } => landing_written(d, task, tip, merge, old)?,
                Happened::MergeConflict { files } => {
                    landing_failed(
                        d,
                        task,
                        format!("The merge with main conflicts in: {}", files.join(", ")),
                    )?;
                }
                Happened::MergeRed { output } => landing_failed(d, task, output.clone())?,
                Happened::CheckoutInTheWay { files, command } => held_up(d, task, files, command)?,
                other => {
                    landing_failed(d, task, format!("The merge could not be tested: {}", describe(other)))?
                }
            }
        }
        (Effect::MoveMain { task, tip, merge, old }, what) => match what {
            Happened::MainMoved => {
                d.end(id, "done");
                landed(d, task, Landed { tip: tip.clone(), merge: merge.clone(), old_main: old.clone() })?;
            }
            Happened::MainWasMoved => {
                d.end(id, "done");
                d.rule(Rule::LandingRepeated);
                d.emit(LandingEnded { id: task.clone(), why: SmolStr::new_static("main was moved") });
                test_merge(d, task)?;
            }
            Happened::CheckoutInTheWay { files, command } => {
                d.end(id, "done");
                held_up(d, task, files, command)?;
            }
            // It is written down: whether main was moved is known only to git, so it is asked again.
            other => tried(d, id, &describe(other)),
        },
        (Effect::WriteTicket { .. }, Happened::TicketWritten) => d.end(id, "done"),
        (Effect::DeleteBranch { .. }, Happened::BranchDeleted) => d.end(id, "done"),
        (Effect::WriteTicket { .. } | Effect::DeleteBranch { .. }, other) => tried(d, id, &describe(other)),
        (Effect::CheckHealth { service }, what) => {
            d.end(id, "done");
            health_seen(d, service, matches!(what, Happened::Health { healthy: true }))?;
        }
        (Effect::Timer { timer, .. }, _) => {
            d.end(id, "due");
            timer_due(d, timer)?;
        }
    }
    Ok(Reply::default())
}

/// The effect of a run is over.
fn done(d: &mut Draft, effect: &EffectId, task: &TaskId) {
    d.end(effect, "done");
    if d.world.run_of(task).is_some_and(|run| run.step.as_ref() == Some(effect)) {
        under_way(d, task, None);
    }
}

/// An effect that only we need is tried until it is done; a person is told when that lasts.
fn tried(d: &mut Draft, effect: &EffectId, error: &str) {
    let tries = d.world.failures.get(effect).copied().unwrap_or(0) + 1;
    d.emit(EffectFailed { id: effect.clone(), error: error.to_owned(), tries });
    if tries == d.world.config.limits.effect_tries
        && let Some(task) = d.world.effects.get(effect).and_then(|what| what.task().cloned())
    {
        let kind = d.world.effects.get(effect).map_or("effect", |what| what.kind());
        d.comment(&task, "system", "failing", format!("{kind} has failed {tries} times: {error}"));
    }
}

fn describe(what: &Happened) -> String {
    match what {
        Happened::Failed { error } | Happened::TreeFailed { error } => error.clone(),
        other => format!("an answer that does not fit: {other:?}").chars().take(200).collect(),
    }
}

/// Nothing of the past is under way any more: what waited for that is asked, and work goes on.
fn past_ended(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    if !task.unfinished.is_empty() {
        return Ok(());
    }
    let afterwards: Vec<Effect> = task.afterwards.iter().map(|effect| effect.as_ref().clone()).collect();
    if !afterwards.is_empty() {
        d.emit(AfterwardsTaken { id: id.clone() });
        let mut afterwards = afterwards.into_iter();
        while let Some(effect) = afterwards.next() {
            let alone = matches!(effect, Effect::RemoveTree { .. } | Effect::SaveWork { .. });
            let asked = d.ask(effect);
            if alone {
                d.emit(UnfinishedAdded { id: id.clone(), effect: asked });
                // The rest waits for this one in turn.
                for later in afterwards.by_ref() {
                    d.emit(AfterwardsAdded { id: id.clone(), what: later });
                }
            }
        }
    }
    wake(d, id)
}

/// Asked at once, or when the past has ended.
fn ask_after(d: &mut Draft, id: &TaskId, effect: Effect) -> Ruled {
    d.emit(AfterwardsAdded { id: id.clone(), what: effect });
    past_ended(d, id)
}

fn tip_moved(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>) {
    let known = d.world.task(id).and_then(|task| task.place.as_ref()).and_then(|place| place.tip.clone());
    if let Some(tip) = tip.filter(|tip| known.as_ref() != Some(tip)) {
        d.emit(TipMoved { id: id.clone(), tip: tip.clone() });
    }
}

fn tree_ready(d: &mut Draft, worker: &WorkerName, id: &TaskId, tip: &SmolStr) -> Ruled {
    d.rule(Rule::TreeReady);
    d.emit(TreeStands { id: id.clone(), stands: true });
    tip_moved(d, id, Some(tip));
    if d.worker(worker)?.machine.status == worker::State::Ready {
        d.move_worker(worker, worker::Event::StepStarts)?;
    }
    next_step(d, worker)
}

fn tree_failed(d: &mut Draft, worker: &WorkerName, error: &str) -> Ruled {
    d.rule(Rule::TreeFailed);
    if d.worker(worker)?.machine.status == worker::State::Ready {
        d.move_worker(worker, worker::Event::StepStarts)?;
    }
    step_failed(d, worker, error)
}

fn step_outcome(
    d: &mut Draft,
    effect: &EffectId,
    id: &TaskId,
    worker: &WorkerName,
    run: &RunId,
    what: &Happened,
) -> Result<Reply, Refusal> {
    match what {
        Happened::Turn { turn, calls, output, usage } => {
            turn_taken(d, id, run, *turn, calls, output.as_deref(), *usage)?;
        }
        Happened::ToolResult { call, tool, ok, output, millis } => {
            tool_result(d, id, run, call, tool, *ok, output, *millis)?;
        }
        Happened::CallAsked { call, tool, argument, turn } => {
            call_asked(d, id, run, effect, call, tool, argument, *turn)?;
        }
        Happened::StepFinished { done: said_done, output, tip, usage } => {
            done(d, effect, id);
            charge(d, run, 0, *usage);
            tip_moved(d, id, tip.as_ref());
            session_used(d, id);
            step_finished(d, id, worker, run, *said_done, output)?;
        }
        Happened::Outage { service, resets_at, usage } => {
            done(d, effect, id);
            charge(d, run, 0, *usage);
            outage(d, id, run, service, *resets_at)?;
        }
        other => {
            let (error, failure, usage) = match other {
                Happened::StepFailed { error, why, usage } => (error.clone(), *why, *usage),
                other => (describe(other), StepFailure::Failed, Usage::default()),
            };
            done(d, effect, id);
            charge(d, run, 0, usage);
            step_ended_badly(d, id, worker, run, &error, failure)?;
        }
    }
    Ok(Reply::default())
}

fn session_used(d: &mut Draft, id: &TaskId) {
    if d.world.task(id).and_then(|task| task.place.as_ref()).is_some_and(|place| !place.session_used) {
        d.emit(SessionUsed { id: id.clone() });
    }
}

/// Adds what was used to run, worker, task, agent and day. An unknown price is charged what was set aside.
fn charge(d: &mut Draft, run_id: &RunId, turn: u32, usage: Usage) {
    if usage == Usage::default() && turn == 0 {
        return;
    }
    let Some(run) = d.world.run(run_id) else { return };
    let fallback = if run.reserved > 0 { run.reserved } else { d.world.config.budget.step };
    let event = Charged {
        id: run_id.clone(),
        task: run.task.clone(),
        agent: run.agent.clone(),
        worker: holder_worker(&run.holder).cloned(),
        day: d.day(),
        turn,
        cost: if usage == Usage::default() { 0 } else { usage.cost.unwrap_or(fallback) },
        priced: usage.cost.is_some() || usage == Usage::default(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    };
    d.emit(event);
}

/// Brings a run to `running` at `turn`, where a report overtook its STEP.
fn ensure_turn(d: &mut Draft, run_id: &RunId, turn: u32) -> Ruled {
    let run = d.run(run_id)?;
    if run.is_live() && run.machine.inner().current_turn < turn {
        let next = run.machine.inner().current_turn + 1;
        d.step_run(run_id, run::Event::Step { turn: next, tool_calls: Vec::new(), output: None })?;
    }
    Ok(())
}

fn turn_taken(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    turn: u32,
    calls: &[run::ToolCall],
    output: Option<&str>,
    usage: Usage,
) -> Ruled {
    d.rule(Rule::TurnTaken);
    session_used(d, id);
    // A report that comes twice is counted once.
    let first_report = turn > d.run(run_id)?.turns_charged;
    if first_report {
        charge(d, run_id, turn, usage);
    }
    let run = d.run(run_id)?;
    let machine = run.machine.inner().clone();
    let (allowed, denied): (Vec<_>, Vec<_>) =
        calls.iter().cloned().partition(|call| machine.tool_allowed(&call.tool));
    if run.is_live() && turn > machine.current_turn {
        let turn = machine.current_turn + 1;
        d.step_run(
            run_id,
            run::Event::Step { turn, tool_calls: allowed, output: output.map(str::to_owned) },
        )?;
    }
    if first_report {
        for call in calls {
            audit_call(d, run_id, call);
        }
        for call in denied {
            deny_tool(d, run_id, &call.id, &call.tool);
        }
    }
    probe_succeeded(d, run_id)?;
    if detect_loop(d, id, run_id)? || detect_failures(d, id, run_id)? {
        return Ok(());
    }
    let run = d.run(run_id)?;
    let machine = run.machine.inner();
    // A message without calls is the agent's last: the step's own end says what follows.
    if run.is_live() && machine.current_turn >= machine.max_turns && !calls.is_empty() {
        return turn_limit(d, run_id);
    }
    if run.is_live()
        && machine.state == run::State::Running
        && let Some(room) = budget::passed(&d.world, d.task(id)?, Some(run), &run.agent, d.day())
    {
        return budget_reached(d, run_id, room.scope);
    }
    Ok(())
}

fn audit_call(d: &mut Draft, run_id: &RunId, call: &run::ToolCall) {
    let input = serde_json::Value::Object(call.input.clone()).to_string();
    let turn = d.world.run(run_id).map_or(0, |run| run.machine.inner().current_turn);
    let digest = fnv(format!("{}\0{input}", call.tool).as_bytes());
    d.emit(ToolAudited {
        id: run_id.clone(),
        call: call.id.clone(),
        tool: call.tool.clone(),
        turn,
        digest,
        status: run::ToolStatus::Pending,
        input: Some(input),
        output: None,
        millis: None,
    });
}

fn audit_result(
    d: &mut Draft,
    run_id: &RunId,
    call: &SmolStr,
    tool: &SmolStr,
    ok: bool,
    output: &str,
    millis: u64,
) {
    let turn = d.world.run(run_id).map_or(0, |run| run.machine.inner().current_turn);
    d.emit(ToolAudited {
        id: run_id.clone(),
        call: call.clone(),
        tool: tool.clone(),
        turn,
        digest: 0,
        status: if ok { run::ToolStatus::Complete } else { run::ToolStatus::Error },
        input: None,
        output: Some(output.chars().take(2000).collect()),
        millis: Some(millis),
    });
}

fn deny_tool(d: &mut Draft, run_id: &RunId, call: &SmolStr, tool: &SmolStr) {
    d.rule(Rule::ToolDenied);
    audit_result(d, run_id, call, tool, false, "AGENT_TOOL_NOT_ALLOWED", 0);
}

#[allow(clippy::too_many_arguments, reason = "one outcome, taken apart")]
fn tool_result(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    call: &SmolStr,
    tool: &SmolStr,
    ok: bool,
    output: &str,
    millis: u64,
) -> Ruled {
    if d.run(run_id)?.audit.open.contains(call) {
        audit_result(d, run_id, call, tool, ok, output, millis);
    }
    detect_failures(d, id, run_id).map(drop)
}

/// Reads the audit, not the agent's word.
fn detect_loop(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let run = d.run(run_id)?;
    let looping = run.is_live() && run.audit.same_calls >= d.world.config.limits.same_call;
    if looping {
        d.rule(Rule::LoopDetected);
        stop_for(
            d,
            id,
            run_id,
            BlockReason::Loop,
            "the agent made the same call three times in a row".to_owned(),
        )?;
    }
    Ok(looping)
}

fn detect_failures(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let run = d.run(run_id)?;
    let failing = run.is_live()
        && run.state() == run::State::Running
        && run.audit.failures >= d.world.config.limits.tool_failures;
    if failing {
        let tool = run.audit.failing_tool.clone().unwrap_or_default();
        d.rule(Rule::ToolFailures);
        stop_for(
            d,
            id,
            run_id,
            BlockReason::ToolFailures,
            format!("tool `{tool}` failed three times in a row"),
        )?;
    }
    Ok(failing)
}

fn stop_for(d: &mut Draft, id: &TaskId, run_id: &RunId, reason: BlockReason, comment: String) -> Ruled {
    pause_run(d, run_id, run::PauseReason::UserInput)?;
    release(d, id, ReleaseReason::Blocked)?;
    block(d, id, reason, comment)
}

fn turn_limit(d: &mut Draft, run_id: &RunId) -> Ruled {
    d.rule(Rule::TurnLimit);
    let id = d.run(run_id)?.task.clone();
    pause_run(d, run_id, run::PauseReason::TurnLimit)?;
    release(d, &id, ReleaseReason::NeedsApproval)?;
    let limit = d.run(run_id)?.machine.inner().max_turns;
    let question = format!("Run {run_id} has taken its {limit} turns and is not complete.");
    ask_person(
        d,
        &id,
        Some(run_id),
        ApprovalCause::TurnLimit,
        question,
        &["continue", "complete", "abort"],
        None,
    )
    .map(drop)
}

fn budget_reached(d: &mut Draft, run_id: &RunId, scope: BudgetScope) -> Ruled {
    d.rule(Rule::BudgetReached);
    let id = d.run(run_id)?.task.clone();
    pause_run(d, run_id, run::PauseReason::Budget)?;
    release(d, &id, ReleaseReason::NeedsApproval)?;
    // One question for all where it is the day's.
    let open = d.world.day_approval.clone().filter(|_| scope == BudgetScope::Day);
    let approval = open.unwrap_or_else(|| d.new_approval_id());
    if !d.world.approvals.contains_key(&approval) {
        let for_all = scope == BudgetScope::Day;
        d.emit(ApprovalAsked {
            id: approval.clone(),
            task: (!for_all).then(|| id.clone()),
            run: (!for_all).then(|| run_id.clone()),
            cause: ApprovalCause::Budget,
            at: d.at(),
            question: format!("The {scope} budget would be passed."),
            options: vec![SmolStr::new_static("raise"), SmolStr::new_static("stop")],
            call: None,
            scope: Some(scope),
        });
    }
    enter_approval(d, &id, &approval, ApprovalCause::Budget)
}

#[allow(clippy::too_many_arguments, reason = "one outcome, taken apart")]
fn call_asked(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    step: &EffectId,
    call: &SmolStr,
    tool: &SmolStr,
    argument: &str,
    turn: u32,
) -> Ruled {
    ensure_turn(d, run_id, turn)?;
    let run = d.run(run_id)?;
    if run.question.as_ref().is_some_and(|question| question.call == *call) {
        return Ok(());
    }
    let answer = |allow, note: &str| Effect::AnswerCall {
        task: id.clone(),
        run: run_id.clone(),
        step: step.clone(),
        call: call.clone(),
        allow,
        note: note.to_owned(),
    };
    if !run.machine.inner().tool_allowed(tool) {
        deny_tool(d, run_id, call, tool);
        d.ask(answer(false, "this tool is not allowed"));
        return detect_failures(d, id, run_id).map(drop);
    }
    let agent = d.world.config.agent(&run.agent);
    let colour = d.world.config.policy.colour(tool, argument);
    let cause = match (colour, agent.role) {
        (Colour::Red, _) => ApprovalCause::RedAction,
        (Colour::Yellow, Role::Intern) => ApprovalCause::YellowAction,
        _ => {
            d.ask(answer(true, ""));
            return Ok(());
        }
    };
    if run.state() != run::State::Running || run.is_suspended() {
        d.ask(answer(false, "another call waits for a person; ask again when it is decided"));
        return Ok(());
    }
    d.rule(Rule::ActionAsked);
    pause_run(d, run_id, run::PauseReason::ApprovalRequired)?;
    let question = format!("The agent asks to use {tool}: {}", first_line(argument));
    let approval = ask_person(d, id, Some(run_id), cause, question, &["allow", "deny"], Some(call.clone()))?;
    let due = d.at() + seconds(d.world.config.limits.question_seconds);
    d.set_timer(Timer::Question { approval }, due);
    Ok(())
}

fn seconds(count: u32) -> Millis {
    Millis::from(count) * 1000
}

fn step_finished(
    d: &mut Draft,
    id: &TaskId,
    worker: &WorkerName,
    run_id: &RunId,
    said_done: bool,
    output: &str,
) -> Ruled {
    let run = d.run(run_id)?;
    // The process ended although a call of it waits: only a person's decision leads on.
    if run.state() == run::State::Paused {
        d.emit(RunNoted { id: run_id.clone(), note: "the step ended while a call waited".to_owned() });
        return release(d, id, ReleaseReason::NeedsApproval);
    }
    if run.state() == run::State::Starting {
        d.step_run(
            run_id,
            run::Event::Step { turn: 1, tool_calls: Vec::new(), output: Some(first_line(output)) },
        )?;
    }
    if d.run(run_id)?.retried {
        d.emit(StepRetried { id: run_id.clone(), retried: false });
    }
    probe_succeeded(d, run_id)?;
    unreserve(d, run_id);
    match d.move_worker(worker, worker::Event::StepOk { done: said_done })? {
        worker::State::Done => {
            d.rule(Rule::ClaimedDone);
            ask_gate(d, worker, id, !said_done)
        }
        _ => {
            d.rule(Rule::StepFinished);
            next_step(d, worker)
        }
    }
}

fn step_ended_badly(
    d: &mut Draft,
    id: &TaskId,
    worker: &WorkerName,
    run_id: &RunId,
    error: &str,
    failure: StepFailure,
) -> Ruled {
    let run = d.run(run_id)?;
    if run.state() == run::State::Paused {
        d.emit(RunNoted { id: run_id.clone(), note: error.to_owned() });
        return release(d, id, ReleaseReason::NeedsApproval);
    }
    let retried = run.retried;
    match failure {
        StepFailure::Lost => lost(d, id, error),
        StepFailure::Session | StepFailure::TimedOut if !retried => {
            d.rule(Rule::StepRetried);
            let session = d.new_session();
            d.emit(SessionRenewed { id: id.clone(), session });
            d.emit(StepRetried { id: run_id.clone(), retried: true });
            next_step(d, worker)
        }
        _ => {
            if retried {
                d.emit(StepRetried { id: run_id.clone(), retried: false });
            }
            step_failed(d, worker, error)
        }
    }
}

fn step_failed(d: &mut Draft, name: &WorkerName, error: &str) -> Ruled {
    d.rule(Rule::StepFailed);
    let Some(id) = d.worker(name)?.machine.task.clone() else { return Ok(()) };
    let run = d.world.run_of(&id).map(|run| run.id.clone());
    if let Some(run) = &run {
        fail_run(d, run, "STEP_FAILED", error)?;
        unreserve(d, run);
    }
    match d.move_worker(name, worker::Event::StepFailed { error: error.to_owned() })? {
        worker::State::Stuck => stuck(d, name, &id, error),
        _ => {
            let wait = worker::backoff_seconds(d.worker(name)?.machine.errors);
            let due = d.at() + seconds(wait);
            d.set_timer(Timer::Backoff { worker: name.clone() }, due);
            Ok(())
        }
    }
}

fn stuck(d: &mut Draft, name: &WorkerName, id: &TaskId, error: &str) -> Ruled {
    d.rule(Rule::Stuck);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        pause_run(d, &run, run::PauseReason::UserInput)?;
        quit_step(d, &run);
    }
    end_lease(d, id);
    block(d, id, BlockReason::Stuck, format!("worker {name} is stuck: {error}"))
}

/// Everything that a worker or runner had under way is gone; nobody knows how it ended.
fn lost(d: &mut Draft, id: &TaskId, error: &str) -> Ruled {
    d.rule(Rule::Lost);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        fail_run(d, &run, "LOST", error)?;
    }
    release(d, id, ReleaseReason::Lost)?;
    count_lost(d, id, error)
}

fn count_lost(d: &mut Draft, id: &TaskId, error: &str) -> Ruled {
    let lost = d.task(id)?.lost_workers + 1;
    d.emit(WorkerLost { id: id.clone(), lost });
    if lost >= d.world.config.limits.lost_workers {
        block(d, id, BlockReason::LostWorkers, format!("{lost} workers were lost on it; the last: {error}"))?;
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// Services.

fn outage(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    service: &ServiceName,
    resets_at: Option<Millis>,
) -> Ruled {
    d.rule(Rule::Outage);
    let at = d.at();
    // A reset that has passed says nothing.
    let resets_at = resets_at.filter(|reset| *reset > at);
    d.emit(HealthSeen { service: service.clone(), healthy: false, at, resets_at, probe: None });
    match resets_at {
        Some(reset) => d.set_timer(Timer::Reset { service: service.clone() }, reset),
        None => d.clear_timer(&Timer::Reset { service: service.clone() }),
    }
    poll_health(d);
    if !d.run(run_id)?.is_live() {
        d.emit(RunNoted {
            id: run_id.clone(),
            note: format!("service {service} went away while a call waited"),
        });
        return release(d, id, ReleaseReason::NeedsApproval);
    }
    let until = resets_at.unwrap_or(at) + seconds(d.world.config.limits.suspension_seconds);
    let suspension = Suspension { service: SmolStr::new(service.as_str()), since: at, resets_at, until };
    d.move_run(run_id, Wrapped::Suspend(suspension))?;
    d.set_timer(Timer::Suspension { run: run_id.clone() }, until);
    Ok(())
}

/// The health of every service is asked as long as one of them is away.
fn poll_health(d: &mut Draft) {
    let away = d.world.health.values().any(|health| !health.healthy);
    let polling = d.world.timers.contains_key(&Timer::HealthPoll);
    if away && !polling {
        let due = d.at() + seconds(d.world.config.limits.health_poll_seconds);
        d.set_timer(Timer::HealthPoll, due);
    } else if !away && polling {
        d.clear_timer(&Timer::HealthPoll);
    }
}

fn health_seen(d: &mut Draft, service: &ServiceName, healthy: bool) -> Ruled {
    let at = d.at();
    if let Some(known) = d.world.health.get(service) {
        let limited = known.resets_at.is_some_and(|reset| reset > at);
        let probing = known.probe.as_ref().and_then(|run| d.world.run(run)).is_some_and(|run| run.is_live());
        // A service can answer and still refuse work until the limit is reset, or until the probe has come through.
        if known.healthy == healthy || limited || probing {
            return Ok(());
        }
    } else if healthy {
        return Ok(());
    }
    d.clear_timer(&Timer::Reset { service: service.clone() });
    d.emit(HealthSeen { service: service.clone(), healthy, at, resets_at: None, probe: None });
    poll_health(d);
    restore(d)
}

fn restore(d: &mut Draft) -> Ruled {
    let away = |service: &str| {
        d.world.health.iter().any(|(name, health)| name.as_str() == service && !health.healthy)
    };
    let any_away = d.world.health.values().any(|health| !health.healthy);
    let all = d.world.config.restore == crate::config::Restore::All;
    let back: Vec<RunId> = d
        .world
        .suspended
        .iter()
        .filter(|id| {
            let service = d.world.run(id).and_then(|run| run.machine.suspension()).map(|s| s.service.clone());
            if all { !any_away } else { service.is_some_and(|service| !away(&service)) }
        })
        .cloned()
        .collect();
    let waiting: Vec<TaskId> = d
        .world
        .tasks
        .values()
        .filter(|task| task.waits_for.as_ref().is_some_and(|service| !away(service.as_str())))
        .map(|task| task.id.clone())
        .collect();
    for run in back {
        restore_run(d, &run)?;
    }
    for id in waiting {
        d.emit(WaitsForService { id, service: None });
    }
    Ok(())
}

fn restore_run(d: &mut Draft, run_id: &RunId) -> Ruled {
    d.rule(Rule::Restored);
    d.clear_timer(&Timer::Suspension { run: run_id.clone() });
    d.move_run(run_id, Wrapped::Restore)?;
    let id = d.run(run_id)?.task.clone();
    wake(d, &id)
}

/// The one that went first has come through: the service is back for all.
fn probe_succeeded(d: &mut Draft, run_id: &RunId) -> Ruled {
    let service = d.world.health.iter().find(|(_, health)| health.probe.as_ref() == Some(run_id));
    let Some(service) = service.map(|(name, _)| name.clone()) else { return Ok(()) };
    d.emit(HealthSeen { service, healthy: true, at: d.at(), resets_at: None, probe: None });
    poll_health(d);
    restore(d)
}

fn timer_due(d: &mut Draft, timer: &Timer) -> Ruled {
    match timer {
        Timer::Backoff { worker } => {
            match d.world.worker(worker).and_then(|worker| worker.machine.task.clone()) {
                Some(id) => wake(d, &id),
                None => Ok(()),
            }
        }
        Timer::Suspension { run } => suspension_expired(d, run),
        Timer::Reset { service } => reset_reached(d, service),
        Timer::HealthPoll => {
            let mut services = d.world.config.services.clone();
            services.extend(
                d.world.health.keys().filter(|name| !d.world.config.services.contains(name)).cloned(),
            );
            for service in services {
                d.ask(Effect::CheckHealth { service });
            }
            poll_health(d);
            Ok(())
        }
        Timer::Question { approval } => unanswered(d, approval),
        Timer::OutsideLease { task } => {
            d.comment(task, "system", "lost", "the outside owner gave no sign of life".to_owned());
            lost(d, task, "the outside owner gave no sign of life")
        }
        Timer::Checkout { task } => {
            if d.task(task)?.held_up.is_some() {
                d.emit(LandingHeldUp { id: task.clone(), why: None });
                d.emit(Queued { id: task.clone() });
            }
            Ok(())
        }
    }
}

fn suspension_expired(d: &mut Draft, run_id: &RunId) -> Ruled {
    d.rule(Rule::SuspensionExpired);
    let run = d.run(run_id)?;
    let (id, service) = (run.task.clone(), run.machine.suspension().map(|s| s.service.clone()));
    d.move_run(run_id, Wrapped::Expire)?;
    release(d, &id, ReleaseReason::Outage)?;
    if let Some(service) = service.and_then(|name| ServiceName::new(name).ok()) {
        d.emit(WaitsForService { id, service: Some(service) });
    }
    Ok(())
}

fn reset_reached(d: &mut Draft, service: &ServiceName) -> Ruled {
    d.rule(Rule::ResetReached);
    let of_service = |id: &&RunId| {
        d.world
            .run(id)
            .and_then(|run| run.machine.suspension())
            .is_some_and(|s| s.service == service.as_str())
    };
    let first = d.world.suspended.iter().find(of_service).cloned();
    let healthy = first.is_none();
    d.emit(HealthSeen {
        service: service.clone(),
        healthy,
        at: d.at(),
        resets_at: None,
        probe: first.clone(),
    });
    poll_health(d);
    match first {
        Some(run) => restore_run(d, &run),
        None => restore(d),
    }
}

fn unanswered(d: &mut Draft, approval: &ApprovalId) -> Ruled {
    let Some(task) = d.world.approvals.get(approval).and_then(|approval| approval.task.clone()) else {
        return Ok(());
    };
    d.rule(Rule::ActionUnanswered);
    release(d, &task, ReleaseReason::NeedsApproval)
}

// ---------------------------------------------------------------------------------------------------------------
// Gate, review, landing.

fn gate_outcome(
    d: &mut Draft,
    id: &TaskId,
    worker: Option<&WorkerName>,
    max_steps_reached: bool,
    what: &Happened,
) -> Ruled {
    if worker.is_none() {
        d.emit(GateAlone { id: id.clone(), effect: None });
    }
    match what {
        Happened::GateGreen { tip, needs_person } => {
            let by_limit = max_steps_reached.then(|| SmolStr::new_static("max_steps"));
            gate_green(d, id, worker, Some(tip), true, needs_person.clone().or(by_limit))
        }
        Happened::GateEmpty { tip } => {
            d.rule(Rule::GateEmpty);
            if d.task(id)?.empty_diffs == 0 {
                d.emit(EmptyDiffSeen { id: id.clone() });
                gate_red(
                    d,
                    id,
                    worker,
                    "There is no change in the branch. If none is needed, say so and why.",
                )
            } else {
                gate_green(d, id, worker, Some(tip), false, Some(SmolStr::new_static("no_changes")))
            }
        }
        Happened::GateRed { output, tip } => {
            tip_moved(d, id, tip.as_ref());
            gate_red(d, id, worker, output)
        }
        other => gate_red(d, id, worker, &format!("The checks could not be run: {}", describe(other))),
    }
}

fn gate_green(
    d: &mut Draft,
    id: &TaskId,
    worker: Option<&WorkerName>,
    tip: Option<&SmolStr>,
    has_code: bool,
    needs_person: Option<SmolStr>,
) -> Ruled {
    d.rule(Rule::GateGreen);
    let run =
        d.world.run_of(id).map(|run| (run.id.clone(), run.agent.clone(), run.machine.inner().current_turn));
    let by = run.as_ref().map_or(Actor::System, |(_, agent, _)| system_for(agent));
    let because = needs_person.clone();
    d.emit(GatePassed { id: id.clone(), tip: tip.cloned(), has_code, needs_person });
    let task = d.task(id)?;
    let branch = task.place.as_ref().map_or_else(String::new, |place| place.branch.clone());
    let answer = |text: &str| Some(text.to_owned());
    let payload = Payload {
        deliverable: Some(task::Deliverable {
            content: if has_code { format!("branch {branch}") } else { "no change was needed".to_owned() },
            artifacts: tip.map(|tip| tip.to_string()).into_iter().collect(),
        }),
        review_checklist: Some(task::Checklist {
            task_type: task.machine.task_type,
            items: vec![
                task::ChecklistItem { item: "nothing left uncommitted".to_owned(), answer: answer("yes") },
                task::ChecklistItem {
                    item: "the diff holds a change".to_owned(),
                    answer: answer(if has_code { "yes" } else { "no" }),
                },
                task::ChecklistItem { item: "tests are green".to_owned(), answer: answer("yes") },
            ],
        }),
        ..Payload::default()
    };
    d.move_task(id, &by, Status::Review, payload)?;
    if let Some((run, _, turns)) = run
        && d.run(&run)?.state() == run::State::Running
    {
        let result = because.map_or_else(|| "done".to_owned(), |reason| format!("done, but {reason}"));
        d.step_run(&run, run::Event::Complete { result, diff: None, turn_count: turns.max(1) })?;
        unreserve(d, &run);
    }
    if let Some(worker) = worker {
        d.move_worker(worker, worker::Event::HandedOver)?;
    }
    end_lease(d, id);
    reviewed_by_policy(d, id)
}

fn gate_red(d: &mut Draft, id: &TaskId, worker: Option<&WorkerName>, output: &str) -> Ruled {
    d.rule(Rule::GateRed);
    d.emit(SentBackTo { id: id.clone(), what: SentBack::Gate(output.to_owned()) });
    let Some(worker) = worker else { return Ok(()) };
    match d.move_worker(worker, worker::Event::GateFailed)? {
        worker::State::Stuck => {
            stuck(d, worker, id, "no fix round is left; the last output is with the task")
        }
        _ => next_step(d, worker),
    }
}

fn reviewed_by_policy(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let auto = d.world.config.fleet.review == Review::Auto;
    if task.status() == Status::Review && auto && task.needs_person.is_none() {
        let tip = task.place.as_ref().and_then(|place| place.tip.clone());
        d.rule(Rule::ReviewedByPolicy);
        return approve(d, id, tip, SmolStr::new_static("policy:auto"), "the gate is green".to_owned());
    }
    Ok(())
}

pub(crate) fn approve_by_person(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>, note: &str) -> Ruled {
    let task = d.task(id)?;
    let actor = d.command.actor.clone();
    let lead =
        matches!(actor, Actor::Agent { role: Role::Lead, .. }) && d.world.config.policy.lead_may_complete;
    let own = task.machine.assignee_ids.contains(&actor.id());
    if !actor.is_human() && (!lead || own || task.needs_person.is_some()) {
        return Err(forbidden("approve this task"));
    }
    if task.status() != Status::Review {
        let status = task.status();
        return Err(Refusal::new(409, "NOT_IN_REVIEW", format!("task `{id}` is {status}, not REVIEW"))
            .hint(format!("`adj why {id}` says what it waits for")));
    }
    if task.approved.is_some() {
        return Err(Refusal::new(409, "APPROVED", format!("task `{id}` is approved already"))
            .hint("`adj queue` shows where it stands"));
    }
    check_text(d, "note", Some(note))?;
    let current = task.place.as_ref().and_then(|place| place.tip.clone());
    if tip.is_some_and(|tip| current.as_ref() != Some(tip)) {
        return Err(Refusal::new(
            409,
            "OTHER_TIP",
            format!("the tip of `{id}` is {}, not the one that was looked at", current.unwrap_or_default()),
        )
        .hint(format!("look at it again with `adj diff {id}`")));
    }
    let note = if note.trim().is_empty() { "approved" } else { note };
    approve(d, id, current, SmolStr::new(actor.to_string()), note.to_owned())
}

fn approve(d: &mut Draft, id: &TaskId, tip: Option<SmolStr>, by: SmolStr, note: String) -> Ruled {
    d.rule(Rule::Approved);
    d.emit(TaskApproved { id: id.clone(), tip, by, at: d.at(), note });
    if d.task(id)?.has_code() {
        d.emit(Queued { id: id.clone() });
        Ok(())
    } else {
        finish(d, id)
    }
}

/// The task leaves the queue, and what was approved of it is void.
fn unqueue(d: &mut Draft, id: &TaskId) -> Ruled {
    let task = d.task(id)?;
    let (queued, approved, held_up) =
        (task.queued.is_some(), task.approved.is_some(), task.held_up.is_some());
    if queued {
        d.emit(Dequeued { id: id.clone() });
    }
    if held_up {
        d.clear_timer(&Timer::Checkout { task: id.clone() });
        d.emit(LandingHeldUp { id: id.clone(), why: None });
    }
    if let Some(landing) =
        d.world.landing.clone().filter(|landing| landing.task == *id && landing.written.is_none())
    {
        d.end(&landing.effect, "superseded");
        d.emit(LandingEnded { id: id.clone(), why: SmolStr::new_static("no longer approved") });
        let end = d.ask(Effect::EndStep { task: id.clone(), run: None, step: landing.effect.clone() });
        d.emit(UnfinishedAdded { id: id.clone(), effect: end });
    }
    if approved {
        d.emit(ApprovalVoided { id: id.clone() });
    }
    Ok(())
}

fn start_landing(d: &mut Draft) -> Ruled {
    if d.world.landing.is_some() || !d.world.fleet_running {
        return Ok(());
    }
    let Some(id) = d.world.queue.values().next().cloned() else { return Ok(()) };
    d.rule(Rule::LandingStarted);
    d.emit(Dequeued { id: id.clone() });
    test_merge(d, &id)
}

fn test_merge(d: &mut Draft, id: &TaskId) -> Ruled {
    let tip = d.task(id)?.approved.as_ref().and_then(|approved| approved.tip.clone()).unwrap_or_default();
    let effect = d.ask(Effect::TestMerge { task: id.clone(), tip: tip.clone() });
    d.emit(LandingStarted { id: id.clone(), tip, effect });
    Ok(())
}

fn landing_written(d: &mut Draft, id: &TaskId, tip: &SmolStr, merge: &SmolStr, old: &SmolStr) -> Ruled {
    d.rule(Rule::LandingWritten);
    let effect = d.ask(Effect::MoveMain {
        task: id.clone(),
        tip: tip.clone(),
        merge: merge.clone(),
        old: old.clone(),
    });
    let landed = Landed { tip: tip.clone(), merge: merge.clone(), old_main: old.clone() };
    d.emit(LandingWritten { id: id.clone(), landed, effect });
    Ok(())
}

fn landing_failed(d: &mut Draft, id: &TaskId, output: String) -> Ruled {
    d.rule(Rule::LandingFailed);
    d.emit(LandingEnded { id: id.clone(), why: SmolStr::new_static("failed") });
    d.emit(ApprovalVoided { id: id.clone() });
    let feedback =
        if output.trim().is_empty() { "The tests of the merge failed.".to_owned() } else { output };
    let payload = Payload { feedback: Some(feedback.clone()), ..Payload::default() };
    let event = task::Event::LandingFailed { by: Actor::System.sender(), payload: Box::new(payload) };
    d.drive_task(id, event, &Actor::System)?;
    d.emit(SentBackTo { id: id.clone(), what: SentBack::Landing(feedback) });
    Ok(())
}

fn held_up(d: &mut Draft, id: &TaskId, files: &[String], command: &str) -> Ruled {
    d.rule(Rule::LandingHeldUp);
    let why = format!("waiting: your checkout has local changes in {}, run {command}", files.join(", "));
    d.emit(LandingEnded { id: id.clone(), why: SmolStr::new_static("held up") });
    d.emit(LandingHeldUp { id: id.clone(), why: Some(SmolStr::new(why)) });
    let due = d.at() + seconds(d.world.config.limits.checkout_seconds);
    d.set_timer(Timer::Checkout { task: id.clone() }, due);
    Ok(())
}

fn landed(d: &mut Draft, id: &TaskId, landed: Landed) -> Ruled {
    d.rule(Rule::Landed);
    d.emit(TaskLanded { id: id.clone(), landed });
    finish(d, id)
}

/// REVIEW→DONE with the completion record, and what is to be tidied up after it.
fn finish(d: &mut Draft, id: &TaskId) -> Ruled {
    let approved = d.task(id)?.approved.clone();
    let approval = approved.map(|approved| task::Completion {
        approval_id: None,
        approved_by: approved.by,
        approved_at: approved.at,
        decision_note: approved.note,
    });
    d.move_task(id, &Actor::System, Status::Done, Payload { approval, ..Payload::default() })?;
    tidy_up(d, id)
}

/// After a final status: nobody works on it or waits for it, the ticket is closed, the tree removed, the branch
/// deleted. In that order.
fn tidy_up(d: &mut Draft, id: &TaskId) -> Ruled {
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        abort_run(d, &run, "the task is closed")?;
    }
    release(d, id, ReleaseReason::Canceled)?;
    unqueue(d, id)?;
    let task = d.task(id)?;
    let status = task.status();
    let (ticket, place) = (task.ticket.clone(), task.place.clone());
    if let Some(ticket) = ticket {
        let note = (status == Status::Canceled).then(|| "canceled".to_owned());
        d.ask(Effect::WriteTicket {
            task: id.clone(),
            ticket,
            status: SmolStr::new_static(task::ticket_status(status)),
            note,
        });
    }
    if let Some(place) = place {
        d.emit(AfterwardsAdded { id: id.clone(), what: Effect::RemoveTree { task: id.clone() } });
        // A canceled task keeps its branch: nothing else holds its commits.
        if status == Status::Done {
            d.emit(AfterwardsAdded {
                id: id.clone(),
                what: Effect::DeleteBranch { task: id.clone(), branch: place.branch },
            });
        }
        past_ended(d, id)?;
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------------------------
// What people do.

fn landing_is_written(d: &Draft, id: &TaskId) -> bool {
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
    for (field, text) in [
        ("feedback", &payload.feedback),
        ("clarification", &payload.clarification),
        ("decision", &payload.decision),
    ] {
        check_text(d, field, text.as_deref())?;
    }
    if landing_is_written(d, id) && to != Status::Done {
        let message = format!("`{id}` is being landed: main is about to move to it");
        return Err(
            Refusal::new(409, "LANDING", message).hint("wait a moment; then add a task that undoes it")
        );
    }
    // What is under way knows the task by its approval and its run; both are needed after the move.
    let approval = d.task(id)?.approval.clone();
    let came_from = d.task(id)?.machine.came_from;
    d.move_task(id, actor, to, payload.clone())?;
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

/// A move by hand out of NEEDS_APPROVAL settles the question, and a call that waits is denied.
fn left_approval(d: &mut Draft, id: &TaskId, approval: Option<ApprovalId>, to: Status) -> Ruled {
    if let Some(approval) = approval
        && d.world
            .approvals
            .get(&approval)
            .is_some_and(|open| open.decided.is_none() && open.scope != Some(BudgetScope::Day))
    {
        let by = SmolStr::new(d.command.actor.to_string());
        d.emit(ApprovalDecided {
            id: approval,
            by,
            at: d.at(),
            decision: SmolStr::new_static("moved"),
            note: format!("the task was moved to {to}"),
        });
    }
    let Some(run) = d.world.run_of(id).filter(|run| run.question.is_some()).map(|run| run.id.clone()) else {
        return Ok(());
    };
    if to == Status::InProgress {
        answer_waiting(d, id, &run, false, "the task was moved by hand; ask again if it is still needed")
    } else {
        release(d, id, ReleaseReason::Blocked)
    }
}

/// Answers the call that waits, and lets the run go on in the same step.
fn answer_waiting(d: &mut Draft, id: &TaskId, run_id: &RunId, allow: bool, note: &str) -> Ruled {
    let run = d.run(run_id)?;
    let (Some(question), Some(step)) = (run.question.clone(), run.step.clone()) else { return Ok(()) };
    drop_question(d, run_id);
    d.ask(Effect::AnswerCall {
        task: id.clone(),
        run: run_id.clone(),
        step,
        call: question.call,
        allow,
        note: note.to_owned(),
    });
    d.step_run(run_id, run::Event::Resume { feedback: None, input: None, max_turns: None }).map(drop)
}

/// A person takes a task out of a worker's hands; the run can go on later.
fn out_of_hands(d: &mut Draft, id: &TaskId, reason: ReleaseReason) -> Ruled {
    d.rule(Rule::TakenOut);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        pause_run(d, &run, run::PauseReason::UserInput)?;
    }
    release(d, id, reason)
}

/// Where the gate had let it through before, it stands as it stood; otherwise it was handed in by hand.
fn back_to_review(d: &mut Draft, id: &TaskId, came_from: Option<Status>) -> Ruled {
    if came_from == Some(Status::Review) { reviewed_by_policy(d, id) } else { handed_in(d, id) }
}

/// Handed in without our gate: a person looks at it, whatever the policy.
fn handed_in(d: &mut Draft, id: &TaskId) -> Ruled {
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
    let tip = d.task(id)?.place.as_ref().and_then(|place| place.tip.clone());
    release(d, id, ReleaseReason::Taken)?;
    let needs_person = Some(SmolStr::new_static(PERSON_NEEDED_BY_HAND));
    d.emit(GatePassed { id: id.clone(), has_code: tip.is_some(), tip, needs_person });
    Ok(())
}

fn canceled(d: &mut Draft, id: &TaskId) -> Ruled {
    d.rule(Rule::Canceled);
    close_approval(d, id, "canceled", "the task was canceled");
    tidy_up(d, id)
}

pub(crate) fn ticket_seen(d: &mut Draft, ticket: &SeenTicket) -> Ruled {
    let actor = d.command.actor.clone();
    if !matches!(actor, Actor::System | Actor::Human(_)) {
        return Err(forbidden("report a ticket"));
    }
    let name = SmolStr::new(ticket.id.as_str());
    let known = d.world.tickets.get(&name).cloned();
    let text = format!("{}\0{}\0{:?}\0{}", ticket.title, ticket.body, ticket.depends_on, ticket.priority);
    let fingerprint = fnv(text.as_bytes());
    let was_open = known.as_ref().is_some_and(|known| known.status != "closed");
    let is_open = ticket.status != "closed";
    let opened = is_open && !was_open;
    let mut task = known.as_ref().and_then(|known| known.task.clone());
    if known.as_ref().is_some_and(|known| known.status == ticket.status && known.fingerprint == fingerprint) {
        return Ok(());
    }

    if opened {
        d.rule(Rule::TicketSeen);
        task = Some(open_ticket(d, ticket, &name, known.as_ref().map_or(0, |known| known.openings))?);
    } else if let (true, Some(id)) = (is_open, &task) {
        ticket_changed(d, id, ticket)?;
    }
    d.emit(TicketSeen { id: name, status: ticket.status.clone(), fingerprint, opened, task: task.clone() });
    if let (true, true, Some(id)) = (was_open && !is_open, ticket.by_hand, task) {
        ticket_closed(d, &id)?;
    }
    Ok(())
}

/// A new task; for a ticket that was closed and opened again, one that is linked to the old.
fn open_ticket(d: &mut Draft, ticket: &SeenTicket, name: &SmolStr, openings: u32) -> Result<TaskId, Refusal> {
    let taken = d.world.tasks.contains_key(&ticket.id);
    let id = if taken {
        TaskId::new(format!("{}-r{}", ticket.id, openings + 1))
            .map_err(|bad| Refusal::field("id", bad.to_string()))?
    } else {
        ticket.id.clone()
    };
    if d.world.tasks.contains_key(&id) {
        return Err(Refusal::new(409, "EXISTS", format!("there is a task `{id}` already")));
    }
    check_dependencies(d, &id, &ticket.depends_on)?;
    d.emit(TaskAdded {
        id: id.clone(),
        title: ticket.title.clone(),
        body: ticket.body.clone(),
        task_type: ticket.task_type,
        priority: ticket.priority.min(4),
        at: d.at(),
        ticket: Some(name.clone()),
        reopens: taken.then(|| ticket.id.clone()),
        plan: ticket.plan.clone(),
        reviewer: None,
        depends_on: ticket.depends_on.clone(),
    });
    Ok(id)
}

fn ticket_changed(d: &mut Draft, id: &TaskId, ticket: &SeenTicket) -> Ruled {
    let task = d.task(id)?;
    if matches!(task.status(), Status::Done | Status::Canceled) {
        return Ok(());
    }
    let text_changed = task.title != ticket.title || task.body != ticket.body;
    let waiting = matches!(task.status(), Status::Inbox | Status::Assigned);
    let (old, new) = (task.depends_on.clone(), &ticket.depends_on);
    if text_changed || task.priority != ticket.priority {
        d.rule(Rule::TicketChanged);
        d.emit(TaskEdited {
            id: id.clone(),
            title: Some(ticket.title.clone()),
            body: Some(ticket.body.clone()),
            priority: Some(ticket.priority.min(4)),
            plan: None,
            reviewer: None,
        });
    }
    if text_changed && !waiting {
        d.emit(NoteLeft { id: id.clone(), note: SmolStr::new_static("the text of the ticket was changed") });
    }
    if waiting && old != *new {
        check_dependencies(d, id, new)?;
        for on in old.iter().filter(|on| !new.contains(on)) {
            d.emit(DependencyRemoved { id: id.clone(), on: on.clone() });
        }
        for on in new.iter().filter(|on| !old.contains(on)) {
            d.emit(DependencyAdded { id: id.clone(), on: on.clone() });
        }
    }
    Ok(())
}

fn ticket_closed(d: &mut Draft, id: &TaskId) -> Ruled {
    d.rule(Rule::TicketClosed);
    // It is a person's act, whoever noticed it.
    let person = Actor::Human(SmolStr::new_static("ticket"));
    match d.task(id)?.status() {
        Status::Inbox | Status::Assigned => {
            d.move_task(id, &person, Status::Canceled, Payload::default())?;
            canceled(d, id)
        }
        Status::InProgress | Status::Review | Status::NeedsApproval if !landing_is_written(d, id) => {
            if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
                pause_run(d, &run, run::PauseReason::UserInput)?;
            }
            release(d, id, ReleaseReason::Blocked)?;
            unqueue(d, id)?;
            block(d, id, BlockReason::Manual, "the ticket was closed by hand".to_owned())
        }
        // Blocked, closed, or about to land: nothing.
        _ => Ok(()),
    }
}

pub(crate) fn start_fleet(d: &mut Draft, workers: u32) -> Ruled {
    let actor = &d.command.actor;
    if !actor.is_human() && *actor != Actor::System {
        return Err(forbidden("run the fleet"));
    }
    if !d.world.fleet_running {
        d.emit(FleetSwitched { running: true });
    }
    let agent = d.world.config.fleet.agent.clone();
    let mut number = 0;
    while (d.world.workers.len() as u32) < workers {
        let name = letters(number);
        number += 1;
        if !d.world.workers.contains_key(&name) {
            spawn(d, &name, &agent)?;
        }
    }
    let surplus = (d.world.workers.len() as u32).saturating_sub(workers) as usize;
    let retired: Vec<_> = d.world.idle.iter().rev().take(surplus).cloned().collect();
    for name in retired {
        d.move_worker(&name, worker::Event::Clean)?;
    }
    let held: Vec<TaskId> =
        d.world.workers.values().filter_map(|worker| worker.machine.task.clone()).collect();
    for id in held {
        wake(d, &id)?;
    }
    Ok(())
}

/// A, B, …, Z, AA, AB, …
fn letters(mut number: u32) -> WorkerName {
    let mut name = Vec::new();
    loop {
        name.push(b'A' + (number % 26) as u8);
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    name.reverse();
    WorkerName::new(String::from_utf8_lossy(&name)).expect("letters are a name")
}

pub(crate) fn assign_by_person(d: &mut Draft, name: &WorkerName, id: &TaskId) -> Ruled {
    let worker = d.worker(name)?;
    let agent = worker.agent.clone();
    // The worker's own table says no in its own words.
    let wish = worker::Event::Assign { task: id.clone(), claimable: true, limits: worker::Limits::default() };
    machines::step(&worker.machine, &wish)?;
    if !d.command.actor.is_human() {
        return Err(forbidden("assign a task to a worker"));
    }
    let task = d.task(id)?;
    let blocked = task.status() == Status::Blocked;
    if let Some(why) = why::assign_blocker(&d.world, task, &agent, d.day()) {
        return Err(Refusal::new(409, "NOT_CLAIMABLE", format!("task `{id}` cannot be claimed: {why}"))
            .hint(format!("`adj why {id}` shows every guard with its value")));
    }
    if blocked {
        let actor = d.command.actor.clone();
        let payload = Payload {
            assignee_ids: Some(vec![SmolStr::new(agent.as_str())]),
            clarification: Some(format!("assigned again by {actor}")),
            work_plan: plan_for(d, id)?,
            ..Payload::default()
        };
        d.move_task(id, &actor, Status::InProgress, payload)?;
    }
    claim(d, name, id)
}

pub(crate) fn retry(d: &mut Draft, name: &WorkerName) -> Ruled {
    let worker = d.worker(name)?;
    let (machine, failed_at) = (worker.machine.clone(), worker.last_failed_at);
    if !d.command.actor.is_human() {
        return Err(forbidden("try a worker again"));
    }
    machines::step(&machine, &worker::Event::Retry)?;
    let Some(id) = machine.task.clone() else { return Ok(()) };
    let task = d.task(&id)?;
    if task.status() != Status::Blocked {
        let status = task.status();
        return Err(Refusal::new(
            409,
            "NOT_BLOCKED",
            format!("task `{id}` of worker `{name}` is {status}; it is not the worker's to try again"),
        )
        .hint(format!("free the worker with `adj kill {name}`")));
    }
    if !task.unfinished.is_empty() {
        return Err(Refusal::new(
            409,
            "UNFINISHED",
            format!("what was under way for `{id}` has not ended yet"),
        )
        .hint("try again in a moment"));
    }
    d.rule(Rule::Retried);
    let actor = d.command.actor.clone();
    let clarification = Some(format!("tried again by {actor}"));
    d.move_task(&id, &actor, Status::InProgress, Payload { clarification, ..Payload::default() })?;
    give_lease(d, &id, Holder::Worker(name.clone()))?;
    d.move_worker(name, worker::Event::Retry)?;
    if let Some(run) =
        d.world.run_of(&id).filter(|run| run.is_open()).map(|run| (run.id.clone(), run.state()))
    {
        d.emit(RunTaken { id: run.0.clone(), holder: Holder::Worker(name.clone()) });
        // What waits for its time must be in error; a paused run gets there by going on and failing again.
        if run.1 == run::State::Paused {
            d.step_run(&run.0, run::Event::Resume { feedback: None, input: None, max_turns: None })?;
            fail_run(d, &run.0, "RETRY", "tried again by a person")?;
        }
    } else {
        let agent = d.worker(name)?.agent.clone();
        take_run(d, &id, &agent, Holder::Worker(name.clone()))?;
        let run = d.world.run_of(&id).map(|run| run.id.clone());
        if let Some(run) = run {
            fail_run(d, &run, "RETRY", "tried again by a person")?;
        }
    }
    let wait = seconds(worker::backoff_seconds(machine.errors));
    let due = failed_at.map_or(d.at(), |failed| failed + wait).max(d.at());
    d.set_timer(Timer::Backoff { worker: name.clone() }, due);
    Ok(())
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
    if !d.command.actor.is_human() {
        return Err(forbidden("end a worker"));
    }
    let holds_lease = id.as_ref().is_some_and(|id| d.world.leaseholder(id).is_some_and(|w| w.name == *name));
    let remove = matches!(event, worker::Event::Cleanup { .. } | worker::Event::Clean);
    d.clear_timer(&Timer::Backoff { worker: name.clone() });
    d.move_worker(name, event)?;
    let Some(id) = id else { return Ok(()) };
    d.rule(Rule::EndedByPerson);
    // A stuck worker only looked at its task; whoever has it now keeps it.
    let elsewhere = !holds_lease && d.task(&id)?.lease.is_some();
    if elsewhere {
        return Ok(());
    }
    if let Some(run) = d.world.run_of(&id).map(|run| run.id.clone()) {
        abort_run(d, &run, "ended by a person")?;
        quit_step(d, &run);
        drop_question(d, &run);
    }
    end_lease(d, &id);
    if holds_lease {
        block(d, &id, BlockReason::Manual, format!("worker {name} was ended by a person"))?;
    }
    if matches!(d.task(&id)?.status(), Status::Done | Status::Canceled) {
        return Ok(());
    }
    let effect =
        if remove { Effect::RemoveTree { task: id.clone() } } else { Effect::SaveWork { task: id.clone() } };
    ask_after(d, &id, effect)
}

pub(crate) fn recover(d: &mut Draft, name: &WorkerName, event: worker::Event) -> Ruled {
    if d.command.actor.role() != machines::machine::Role::System {
        return Err(forbidden("report what recovery found"));
    }
    let worker = d.worker(name)?;
    let (from, id) = (worker.machine.status, worker.machine.task.clone());
    let worker::Event::Recover { tree, step_under_way, .. } = &event else { return Ok(()) };
    let (tree, step_under_way) = (*tree, *step_under_way);
    d.rule(Rule::Recovered);
    let to = d.move_worker(name, event)?;
    let Some(id) = id else { return Ok(()) };
    if step_under_way || from == worker::State::Stuck {
        return Ok(());
    }
    let run = d.world.run_of(&id).map(|run| run.id.clone());
    // What was under way is known to be gone. A gate that waits in the outbox is simply run again.
    let gate_waits = from == worker::State::Done
        && run.as_ref().and_then(|run| d.world.run(run)).is_some_and(|run| run.step.is_some());
    if let (Some(run), false) = (&run, gate_waits)
        && let Some(step) = d.run(run)?.step.clone()
    {
        d.end(&step, "superseded");
        d.emit(StepUnderWay { id: run.clone(), effect: None });
    }
    if tree == worker::Tree::Missing {
        d.emit(TreeStands { id: id.clone(), stands: false });
    }
    if tree == worker::Tree::Dirty {
        let save = d.ask(Effect::SaveWork { task: id.clone() });
        d.emit(UnfinishedAdded { id: id.clone(), effect: save });
    }
    // A call waited and its process is gone: only a person's decision leads on.
    let paused =
        run.as_ref().and_then(|run| d.world.run(run)).is_some_and(|run| run.state() == run::State::Paused);
    if paused && to != worker::State::Idle {
        return release(d, &id, ReleaseReason::NeedsApproval);
    }
    match to {
        worker::State::Idle => {
            d.rule(Rule::Lost);
            d.clear_timer(&Timer::Backoff { worker: name.clone() });
            if let Some(run) = &run {
                fail_run(d, run, "LOST", "nothing of the step was found after a restart")?;
                unreserve(d, run);
                drop_question(d, run);
                if d.run(run)?.is_suspended() {
                    d.clear_timer(&Timer::Suspension { run: run.clone() });
                    d.move_run(run, Wrapped::Expire)?;
                }
            }
            end_lease(d, &id);
            if d.task(&id)?.status() == Status::InProgress {
                count_lost(d, &id, "nothing of the step was found after a restart")?;
            }
            Ok(())
        }
        worker::State::Done if gate_waits => Ok(()),
        worker::State::Done if tree == worker::Tree::Missing && from == worker::State::Done => {
            d.comment(
                &id,
                "system",
                "recovery",
                format!("the tree is gone and the branch is there: `adj merge {id}`"),
            );
            ask_gate(d, name, &id, false)
        }
        worker::State::Done => {
            if let Some(run) = &run {
                said_done_before(d, &id, run)?;
            }
            if d.task(&id)?.status() == Status::InProgress { ask_gate(d, name, &id, false) } else { Ok(()) }
        }
        _ => wake(d, &id),
    }
}

/// DONE stands in the last message, but the step's end was never reported: the run is brought to where it was.
fn said_done_before(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Ruled {
    if d.run(run_id)?.is_suspended() {
        d.clear_timer(&Timer::Suspension { run: run_id.clone() });
        d.move_run(run_id, Wrapped::Restore)?;
    }
    if let Some(worker) = d.world.leaseholder(id).map(|worker| worker.name.clone()) {
        d.clear_timer(&Timer::Backoff { worker });
    }
    match d.run(run_id)?.state() {
        run::State::Starting => {
            d.step_run(run_id, run::Event::Step { turn: 1, tool_calls: Vec::new(), output: None }).map(drop)
        }
        run::State::InError => {
            d.step_run(run_id, run::Event::Resume { feedback: None, input: None, max_turns: None }).map(drop)
        }
        _ => Ok(()),
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Decisions on approvals.

pub(crate) fn decide(d: &mut Draft, id: &ApprovalId, decision: &Decision) -> Ruled {
    let approval = d
        .world
        .approvals
        .get(id)
        .cloned()
        .ok_or_else(|| Refusal::not_found("approval", id).hint("`adj approvals` lists the open ones"))?;
    if !d.command.actor.is_human() {
        return Err(forbidden("decide an approval"));
    }
    if let Some(decided) = &approval.decided {
        return Err(Refusal::new(
            409,
            "DECIDED",
            format!("`{id}` was decided already: {} by {}", decided.decision, decided.by),
        ));
    }
    check_text(d, "note", Some(&decision.note))?;
    let word = match (decision.approve, decision.complete) {
        (true, true) => "completed",
        (true, false) => "approved",
        (false, _) => "denied",
    };
    let by = SmolStr::new(d.command.actor.to_string());
    d.emit(ApprovalDecided {
        id: id.clone(),
        by,
        at: d.at(),
        decision: SmolStr::new_static(word),
        note: decision.note.clone(),
    });
    let waiting: Vec<TaskId> = match &approval.task {
        Some(task) => vec![task.clone()],
        None => {
            let waits = |task: &&std::sync::Arc<crate::world::Task>| task.approval.as_ref() == Some(id);
            d.world.tasks.values().filter(waits).map(|task| task.id.clone()).collect()
        }
    };
    if approval.cause == ApprovalCause::Budget && decision.approve {
        raise_budget(d, &approval, decision)?;
    }
    for task in waiting {
        if d.task(&task)?.approval.as_ref() == Some(id) {
            decided_for(d, &task, &approval, decision)?;
        }
    }
    Ok(())
}

fn raise_budget(d: &mut Draft, approval: &crate::world::Approval, decision: &Decision) -> Ruled {
    d.rule(Rule::BudgetRaised);
    let Some(scope) = approval.scope else { return Ok(()) };
    let agent = approval.run.as_ref().and_then(|run| d.world.run(run)).map(|run| run.agent.clone());
    let config = &d.world.config;
    let limit = match scope {
        BudgetScope::Run => config.budget.run,
        BudgetScope::Task => config.budget.task,
        BudgetScope::Agent => agent.as_ref().and_then(|agent| config.agent(agent).budget),
        BudgetScope::Day => config.budget.day,
    };
    // At least one step must fit, or the next one would only ask again.
    let by = decision.raise.or(limit).unwrap_or(0).max(config.budget.step);
    let day = if scope == BudgetScope::Day { d.day() } else { 0 };
    d.emit(BudgetRaised { scope, task: approval.task.clone(), run: approval.run.clone(), agent, day, by });
    Ok(())
}

fn decided_for(d: &mut Draft, id: &TaskId, approval: &crate::world::Approval, decision: &Decision) -> Ruled {
    let came_from = d.task(id)?.machine.came_from.unwrap_or(Status::InProgress);
    let run = approval.run.clone().or_else(|| d.world.run_of(id).map(|run| run.id.clone()));
    let note = if decision.note.trim().is_empty() { "decided" } else { decision.note.as_str() };
    match (approval.cause, &run) {
        (ApprovalCause::RedAction | ApprovalCause::YellowAction, Some(run)) => {
            d.rule(Rule::ActionDecided);
            let to = decision.to.unwrap_or(came_from);
            leave_approval(d, id, to, note)?;
            let waits =
                d.run(run)?.question.as_ref().is_some_and(|question| question.approval == approval.id);
            if waits && to == Status::InProgress {
                return answer_waiting(d, id, run, decision.approve, note);
            }
            if waits {
                release(d, id, ReleaseReason::Blocked)?;
            }
            after_approval(d, id, to, came_from)?;
            let said = if decision.approve { "allowed" } else { "denied" };
            d.emit(NoteLeft {
                id: id.clone(),
                note: SmolStr::new(format!("A person {said} this: {} ({note})", approval.question)),
            });
        }
        (ApprovalCause::TurnLimit, Some(run)) if decision.approve && decision.complete => {
            d.rule(Rule::TurnLimitCompleted);
            leave_approval(d, id, Status::InProgress, note)?;
            let state = d.run(run)?.state();
            if state == run::State::Paused {
                let turns = d.run(run)?.machine.inner().current_turn.max(1);
                d.step_run(run, run::Event::Resume { feedback: None, input: None, max_turns: None })?;
                let result = "completed by a person".to_owned();
                d.step_run(run, run::Event::Complete { result, diff: None, turn_count: turns })?;
            }
            let gate = d.ask(Effect::RunGate { task: id.clone(), worker: None, max_steps_reached: false });
            d.emit(GateAlone { id: id.clone(), effect: Some(gate) });
        }
        (ApprovalCause::TurnLimit, Some(run)) if decision.approve => {
            d.rule(Rule::TurnLimitContinued);
            let limit = d.run(run)?.machine.inner().max_turns;
            let more =
                u32::try_from(decision.raise.unwrap_or(u64::from(limit))).unwrap_or(run::TURN_LIMIT_MAX);
            let to = limit.saturating_add(more).min(run::TURN_LIMIT_MAX);
            let status = decision.to.unwrap_or(came_from);
            leave_approval(d, id, status, note)?;
            after_approval(d, id, status, came_from)?;
            if to > limit {
                d.emit(TurnsRaised { id: run.clone(), to: Some(to) });
            } else {
                // No run takes more turns than that: another one goes on in the same session.
                abort_run(d, run, "it has taken all the turns that a run may take")?;
            }
        }
        (ApprovalCause::TurnLimit, Some(run)) => {
            d.rule(Rule::TurnLimitAborted);
            abort_run(d, run, note)?;
            denied(d, id, decision, note)?;
        }
        _ if decision.approve => {
            let to = decision.to.unwrap_or(came_from);
            leave_approval(d, id, to, note)?;
            if !decision.note.trim().is_empty() {
                d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(&decision.note) });
            }
            after_approval(d, id, to, came_from)?;
        }
        _ => denied(d, id, decision, note)?,
    }
    Ok(())
}

/// What the status that an approval leads to brings with it.
fn after_approval(d: &mut Draft, id: &TaskId, to: Status, came_from: Status) -> Ruled {
    match to {
        Status::Review => back_to_review(d, id, Some(came_from)),
        Status::Canceled => canceled(d, id),
        Status::Done => tidy_up(d, id),
        _ => Ok(()),
    }
}

fn denied(d: &mut Draft, id: &TaskId, decision: &Decision, note: &str) -> Ruled {
    let came_from = d.task(id)?.machine.came_from.unwrap_or(Status::InProgress);
    let to = decision.to.unwrap_or(Status::Blocked);
    leave_approval(d, id, to, note)?;
    after_approval(d, id, to, came_from)
}

/// A person's decision leads the task out of NEEDS_APPROVAL.
fn leave_approval(d: &mut Draft, id: &TaskId, to: Status, note: &str) -> Ruled {
    let actor = d.command.actor.clone();
    let reason = (to == Status::Blocked)
        .then(|| d.world.task(id).and_then(|task| task.machine.block_reason).unwrap_or(BlockReason::Manual));
    let approval = (to == Status::Done).then(|| task::Completion {
        approval_id: None,
        approved_by: SmolStr::new(actor.to_string()),
        approved_at: d.at(),
        decision_note: note.to_owned(),
    });
    let payload = Payload { decision: Some(note.to_owned()), reason, approval, ..Payload::default() };
    d.move_task(id, &actor, to, payload)
}

// ---------------------------------------------------------------------------------------------------------------
// Runs that are reported from outside, and what people do to runs.

pub(crate) fn open_outside_run(
    d: &mut Draft,
    id: &TaskId,
    prompt: &str,
    options: Option<&run::Options>,
) -> Result<Reply, Refusal> {
    let Actor::Agent { name: agent, .. } = d.command.actor.clone() else {
        return Err(forbidden("start a run: only an agent reports its own life"));
    };
    let task = d.task(id)?;
    let assigned = task.machine.assignee_ids.iter().any(|assignee| assignee == agent.as_str());
    if !matches!(task.status(), Status::Assigned | Status::InProgress) || !assigned {
        let status = task.status();
        let mut refusal = Refusal::new(
            409,
            "AGENT_NO_AVAILABLE_TASK",
            format!("task `{id}` is {status} and not this agent's to work on"),
        );
        refusal.hint = Some("it must be ASSIGNED or IN_PROGRESS, and assigned to the agent".to_owned());
        return Err(refusal);
    }
    if let Some(why) = why::assign_blocker(&d.world, task, &agent, d.day()) {
        return Err(Refusal::new(
            409,
            "AGENT_NO_AVAILABLE_TASK",
            format!("task `{id}` cannot be claimed: {why}"),
        ));
    }
    d.rule(Rule::OutsideRun);
    let holder = Holder::Outside(agent.clone());
    if let Some(stuck) = d.world.worker_of(id).map(|worker| worker.name.clone()) {
        d.move_worker(&stuck, worker::Event::Released { reason: ReleaseReason::Taken })?;
    }
    give_lease(d, id, holder.clone())?;
    renew_outside(d, id);
    if d.task(id)?.status() == Status::Assigned {
        let actor = d.command.actor.clone();
        d.move_task(id, &actor, Status::InProgress, Payload::default())?;
    }
    if let Some(open) = d.world.run_of(id).filter(|run| run.is_open()).map(|run| run.id.clone()) {
        abort_run(d, &open, "another run takes its place")?;
    }
    let max_turns = options.and_then(|options| options.max_turns).or(d.world.config.agent(&agent).max_turns);
    open_run(d, id, &agent, holder, max_turns, options, prompt)?;
    let run = d.task(id)?.run.clone().unwrap_or_else(|| RunId::new("none").expect("a constant"));
    run_reply(d, &run)
}

fn renew_outside(d: &mut Draft, id: &TaskId) {
    let due = d.at() + seconds(d.world.config.limits.outside_lease_seconds);
    d.set_timer(Timer::OutsideLease { task: id.clone() }, due);
}

pub(crate) fn run_event(
    d: &mut Draft,
    run_id: &RunId,
    event: &run::Event,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let run = d.run(run_id)?.clone();
    let outside = match (&run.holder, &d.command.actor) {
        (Holder::Outside(owner), Actor::Agent { name, .. }) if owner == name => true,
        (_, Actor::Human(_)) => false,
        _ => return Err(forbidden("report events of this run")),
    };
    if !outside {
        person_on_run(d, &run, event)?;
        return run_reply(d, run_id).map(Ok);
    }
    let id = run.task.clone();
    let leased = d.task(&id)?.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
    let current = d.task(&id)?.run.as_ref() == Some(run_id);
    let restart = matches!(event, run::Event::Start { .. });
    if !(leased || restart && current) {
        let message = format!("run `{run_id}` no longer holds its task: the lease has ended");
        return Err(Refusal::new(409, "LEASE_ENDED", message).hint("start a new run"));
    }
    if restart && !leased {
        if let Some(why) = why::assign_blocker(&d.world, d.task(&id)?, &run.agent, d.day()) {
            return Err(Refusal::new(
                409,
                "AGENT_NO_AVAILABLE_TASK",
                format!("task `{id}` cannot be claimed: {why}"),
            ));
        }
        give_lease(d, &id, run.holder.clone())?;
    }
    let before = run.machine.inner().current_turn;
    if let Err(refusal) = d.step_run(run_id, event.clone()) {
        return outside_refused(d, run_id, event, refusal);
    }
    renew_outside(d, &id);
    if let run::Event::Step { tool_calls, .. } = event {
        if d.run(run_id)?.machine.inner().current_turn > before {
            for call in tool_calls {
                audit_call(d, run_id, call);
                if call.status == run::ToolStatus::Error || call.status == run::ToolStatus::Complete {
                    let ok = call.status == run::ToolStatus::Complete;
                    audit_result(
                        d,
                        run_id,
                        &call.id,
                        &call.tool,
                        ok,
                        call.output.as_deref().unwrap_or_default(),
                        0,
                    );
                }
            }
        }
        if !detect_loop(d, &id, run_id)? && !detect_failures(d, &id, run_id)? {
            outside_limit(d, run_id, tool_calls)?;
        }
    }
    outside_ended(d, &id, run_id, event)?;
    let mut reply = run_reply(d, run_id)?;
    if d.run(run_id)?.machine.inner().pause_reason == Some(run::PauseReason::TurnLimit) {
        reply.code = Some(SmolStr::new_static("AGENT_TURN_LIMIT_EXCEEDED"));
        reply.message = Some(
            "the turn limit is reached: a person decides whether to continue, complete or abort".to_owned(),
        );
    }
    Ok(Ok(reply))
}

/// The STEP that reached the limit was taken; one past it was not.
fn outside_limit(d: &mut Draft, run_id: &RunId, calls: &[run::ToolCall]) -> Ruled {
    let run = d.run(run_id)?;
    let machine = run.machine.inner();
    let paused_by_limit =
        machine.state == run::State::Paused && machine.pause_reason == Some(run::PauseReason::TurnLimit);
    let reached = run.is_live() && machine.current_turn >= machine.max_turns && !calls.is_empty();
    if paused_by_limit || reached { turn_limit(d, run_id) } else { Ok(()) }
}

/// A tool that is not allowed: the STEP is refused whole, and the attempt is part of the audit.
fn outside_refused(
    d: &mut Draft,
    run_id: &RunId,
    event: &run::Event,
    refusal: Refusal,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let run::Event::Step { tool_calls, .. } = event else { return Err(refusal) };
    if refusal.code != "AGENT_TOOL_NOT_ALLOWED" {
        return Err(refusal);
    }
    let run = d.run(run_id)?;
    let (id, machine) = (run.task.clone(), run.machine.inner().clone());
    for call in tool_calls.iter().filter(|call| !machine.tool_allowed(&call.tool)) {
        deny_tool(d, run_id, &call.id, &call.tool);
    }
    detect_failures(d, &id, run_id)?;
    Ok(Err(refusal))
}

fn outside_ended(d: &mut Draft, id: &TaskId, run_id: &RunId, event: &run::Event) -> Ruled {
    let state = d.run(run_id)?.state();
    match (event, state) {
        (run::Event::Abort { reason }, run::State::Idle) => {
            d.rule(Rule::OutsideRun);
            end_lease(d, id);
            block(d, id, BlockReason::Manual, format!("the agent aborted its run: {reason}"))
        }
        (run::Event::Error { error, .. }, run::State::Idle) => {
            d.rule(Rule::OutsideRun);
            end_lease(d, id);
            block(d, id, BlockReason::Stuck, format!("the run cannot be recovered: {}", error.message))
        }
        _ => Ok(()),
    }
}

/// A person pauses, resumes or aborts a run; what it means for the task is part of it.
fn person_on_run(d: &mut Draft, run: &crate::world::Run, event: &run::Event) -> Ruled {
    let id = run.task.clone();
    match event {
        run::Event::Pause { .. } => {
            if !run.is_live() {
                // The machine says it in its own words.
                d.step_run(&run.id, event.clone())?;
            }
            d.rule(Rule::Escalated);
            pause_run(d, &run.id, run::PauseReason::UserInput)?;
            release(d, &id, ReleaseReason::NeedsApproval)?;
            let question = format!("Run {} was paused by {}.", run.id, d.command.actor);
            ask_person(d, &id, Some(&run.id), ApprovalCause::Escalation, question, &["resume", "stop"], None)
                .map(drop)
        }
        run::Event::Resume { feedback, .. } => {
            let open = d.task(&id)?.approval.clone();
            match open {
                Some(approval) => {
                    let note = feedback.clone().unwrap_or_default();
                    decide(
                        d,
                        &approval,
                        &Decision { approve: true, note, to: None, raise: None, complete: false },
                    )
                }
                None => Err(Refusal::new(
                    409,
                    "AGENT_NOT_RUNNING",
                    format!("run `{}` does not wait for a person", run.id),
                )),
            }
        }
        run::Event::Abort { reason } => {
            if !run.is_open() {
                d.step_run(&run.id, event.clone())?;
            }
            d.rule(Rule::TakenOut);
            abort_run(d, &run.id, reason)?;
            release(d, &id, ReleaseReason::Blocked)?;
            block(d, &id, BlockReason::Manual, format!("run {} was aborted by a person: {reason}", run.id))
        }
        _ => Err(forbidden("report a run's own events")),
    }
}

/// What a person must decide about dependencies, by name.
pub(crate) fn waits_on(dependency: Dependency) -> Option<&'static str> {
    match dependency {
        Dependency::Done => None,
        Dependency::Open => Some("is not DONE yet"),
        Dependency::Canceled => {
            Some("was CANCELED and will never be DONE; a person must remove the dependency")
        }
        Dependency::Missing => Some("is not known; a person must add it or remove the dependency"),
    }
}
