//! Runs that are reported from outside, and what people do to runs.

use machines::machine::{Checked, Code};
use machines::names::{RunId, TaskId};
use machines::suspended::Wrapped;
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{Machine, Wire, run, worker};
use smol_str::SmolStr;

use super::Rule;
use super::approval::decide;
use super::claim::{end_lease, give_lease, given_plan, open_run};
use super::outcome::ask_after;
use super::people::retry_task;
use super::release::{abort_run, ask_person, block, pause_run, release};
use super::step::{audit_call_at, deny_tool, detect_failures, detect_loop, seconds, turn_limit};
use crate::choice::Choice;
use crate::command::{Actor, Decision, Refusal, Reply};
use crate::dispatch::{forbidden, run_reply};
use crate::draft::{Draft, Ruled, holder_worker};
use crate::effect::{Effect, Timer};
use crate::event::{NoteLeft, TurnsRaised};
use crate::why;
use crate::words::Raise;
use crate::world::Holder;

pub(crate) fn open_outside_run(
    d: &mut Draft,
    id: &TaskId,
    prompt: &str,
    options: Option<&run::Options>,
) -> Result<Reply, Refusal> {
    let Actor::Agent { name: agent, .. } = d.command.actor.clone() else {
        return Err(forbidden("start a run: only an agent reports its own life"));
    };
    // What is wrong with the report is said before what is wrong with the task.
    let start = run::Event::Start {
        task_id: SmolStr::new(id.as_str()),
        prompt: prompt.to_owned(),
        options: options.cloned(),
    };
    run::Run::default().check(&start)?;
    let Some(task) = d.world.task(id) else {
        let message = format!("there is no task `{id}`; choose another");
        return Err(Refusal::new(404, "TASK_NOT_FOUND", message).next([Choice::ListTasks]));
    };
    let held = task.lease.as_ref().is_some_and(|lease| lease.holder == Holder::Outside(agent.clone()));
    if let Some(run) = d.world.run_of(id).filter(|run| held && run.is_open()) {
        let message = format!("the agent already has run `{}` under way on `{id}`", run.id);
        return Err(Refusal::new(409, "AGENT_ALREADY_RUNNING", message)
            .hint("go on with that run, wait until it is over, or use another agent"));
    }
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
        let work_plan = given_plan(d, id)?;
        d.move_task(id, &actor, Status::InProgress, Payload { work_plan, ..Payload::default() })?;
    }
    if let Some(open) = d.world.run_of(id).filter(|run| run.is_open()).map(|run| run.id.clone()) {
        abort_run(d, &open, "another run takes its place")?;
    }
    let max_turns = options.and_then(|options| options.max_turns).or(d.world.config.agent(&agent).max_turns);
    open_run(d, id, &agent, holder, max_turns, options, prompt)?;
    let run = d.task(id)?.run.clone().unwrap_or_else(|| RunId::new("none").expect("a constant"));
    run_reply(d, &run)
}

pub(super) fn renew_outside(d: &mut Draft, id: &TaskId) {
    let due = d.at() + seconds(d.world.config.limits.outside_lease_seconds);
    d.set_timer(Timer::OutsideLease { task: id.clone() }, due);
}

pub(crate) fn run_event(
    d: &mut Draft,
    run_id: &RunId,
    event: &run::Event,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let run = d.run(run_id)?.clone();
    let own = matches!(&run.holder, Holder::Outside(owner) if d.command.actor.is_agent(owner));
    if !own {
        person_on_run(d, &run, event)?;
        return run_reply(d, run_id).map(Ok);
    }
    // An answer that was lost on its way is given again, whatever the turn has led to since.
    if matches!(run.machine.inner().check(event), Ok(Checked::Repeated)) {
        return reported(d, run_id).map(Ok);
    }
    let id = run.task.clone();
    let leased = d.task(&id)?.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
    let current = d.task(&id)?.run.as_ref() == Some(run_id);
    let restart = matches!(event, run::Event::Start { .. });
    if !(leased || restart && current) {
        return Err(no_longer_held(d, &run, event));
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
    if let Err(refusal) = d.move_run_by(run_id, Wrapped::Inner(event.clone()), d.caller(true)) {
        return outside_refused(d, run_id, event, refusal);
    }
    renew_outside(d, &id);
    if let run::Event::Step { tool_calls, .. } = event
        && !detect_loop(d, &id, run_id)?
        && !detect_failures(d, &id, run_id)?
    {
        outside_limit(d, run_id, tool_calls)?;
    }
    outside_ended(d, &id, run_id, event)?;
    reported(d, run_id).map(Ok)
}

/// What the agent is told of its run. At the turn limit that is no refusal: the report was taken.
fn reported(d: &Draft, run_id: &RunId) -> Result<Reply, Refusal> {
    let mut reply = run_reply(d, run_id)?;
    if d.run(run_id)?.machine.inner().pause_reason == Some(run::PauseReason::TurnLimit) {
        reply.code = Some(SmolStr::new_static(Code::AgentTurnLimitExceeded.name()));
        reply.message = Some(
            "the turn limit is reached: a person decides whether to continue, complete or abort".to_owned(),
        );
    }
    Ok(reply)
}

/// Why a run that has lost its task takes nothing: it waits for a person, is over, or was silent for too long.
fn no_longer_held(d: &Draft, run: &crate::world::Run, event: &run::Event) -> Refusal {
    let (id, task) = (&run.id, d.world.task(&run.task));
    if let Some(approval) = task.and_then(|task| task.approval.as_ref())
        && run.state() == run::State::Paused
    {
        let message = format!("run `{id}` waits for what a person says to `{approval}`");
        return Refusal::new(409, Code::AgentNotRunning.name(), message)
            .hint("look at the run from time to time: it is running again when it may go on");
    }
    if matches!(event, run::Event::Complete { .. }) {
        let status = task.map(|task| task.status().to_string()).unwrap_or_default();
        let message =
            format!("run `{id}` has no task to complete: `{}` is {status} and not its own", run.task);
        return Refusal::new(409, Code::AgentNoAvailableTask.name(), message)
            .hint("it may have been canceled or given to another; start a run on one that is yours");
    }
    match machines::would_take(run.machine.inner(), event, d.caller(true)) {
        Err(refusal) if !run.is_open() => refusal.into(),
        _ => {
            let message = format!("run `{id}` no longer holds its task: the lease has ended");
            Refusal::new(409, "LEASE_ENDED", message).hint("start a new run")
        }
    }
}

/// The STEP that reached the limit was taken; one past it was not.
pub(super) fn outside_limit(d: &mut Draft, run_id: &RunId, calls: &[run::ToolCall]) -> Ruled {
    let run = d.run(run_id)?;
    let machine = run.machine.inner();
    let paused_by_limit =
        machine.state == run::State::Paused && machine.pause_reason == Some(run::PauseReason::TurnLimit);
    let reached = run.is_live() && machine.current_turn >= machine.max_turns && !calls.is_empty();
    if paused_by_limit || reached { turn_limit(d, run_id) } else { Ok(()) }
}

/// A tool that is not allowed: the STEP is refused whole, and the attempt is part of the audit.
pub(super) fn outside_refused(
    d: &mut Draft,
    run_id: &RunId,
    event: &run::Event,
    refusal: Refusal,
) -> Result<Result<Reply, Refusal>, Refusal> {
    let run::Event::Step { turn, tool_calls, .. } = event else { return Err(refusal) };
    if refusal.code != "AGENT_TOOL_NOT_ALLOWED" {
        return Err(refusal);
    }
    let run = d.run(run_id)?;
    let (id, machine) = (run.task.clone(), run.machine.inner().clone());
    for call in tool_calls.iter().filter(|call| !machine.tool_allowed(&call.tool)) {
        audit_call_at(d, run_id, call, *turn);
        deny_tool(d, run_id, &call.id, &call.tool);
    }
    detect_failures(d, &id, run_id)?;
    Ok(Err(refusal))
}

pub(super) fn outside_ended(d: &mut Draft, id: &TaskId, run_id: &RunId, event: &run::Event) -> Ruled {
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
pub(super) fn person_on_run(d: &mut Draft, run: &crate::world::Run, event: &run::Event) -> Ruled {
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
            if holder_worker(&run.holder).is_some() && run.state() == run::State::Running {
                d.emit(NoteLeft { id: id.clone(), note: SmolStr::new_static(PAUSED) });
            }
            let question = format!("Run {} was paused by {}.", run.id, d.command.actor);
            ask_person(d, &id, Some(&run.id), ApprovalCause::Escalation, question, &["resume", "stop"], None)
                .map(drop)
        }
        run::Event::Resume { feedback, input, max_turns } => {
            run.machine.inner().check(event)?;
            let said = [feedback, input].map(|text| text.as_deref().map(str::trim).unwrap_or_default());
            let said = said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
            resume_by_person(d, run, event, said, *max_turns)
        }
        run::Event::Abort { reason } => {
            if !run.is_open() {
                d.step_run(&run.id, event.clone())?;
            }
            d.rule(Rule::TakenOut);
            abort_run(d, &run.id, reason)?;
            release(d, &id, ReleaseReason::Blocked)?;
            // The tree stays with the task; what is in it now is kept whatever is made of that.
            if holder_worker(&run.holder).is_some() && d.task(&id)?.place.is_some() {
                ask_after(d, &id, Effect::SaveWork { task: id.clone() })?;
            }
            block(d, &id, BlockReason::Manual, format!("run {} was aborted by a person: {reason}", run.id))
        }
        // What only the agent itself reports: its table says so.
        _ => d.move_run_by(&run.id, Wrapped::Inner(event.clone()), d.caller(false)).map(drop),
    }
}

/// Programs word their own interrupt as if the user had refused the call.
const PAUSED: &str = "A person paused you during your last turn, and you go on now. A call that was under way then was cut off; nobody refused it, whatever its result says. See how far it got, and make it again if it is still needed.";

/// A person lets a run go on: with the question that it waits for, or by trying again what failed. A question about a call
/// or about money is answered by itself: whoever resumes a run has not said yes to that.
fn resume_by_person(
    d: &mut Draft,
    run: &crate::world::Run,
    event: &run::Event,
    said: String,
    max_turns: Option<u32>,
) -> Ruled {
    let id = run.task.clone();
    let task = d.task(&id)?;
    let current = task.run.as_ref() == Some(&run.id);
    let asked = task.approval.as_ref().and_then(|approval| d.world.approvals.get(approval)).cloned();
    let decision =
        Decision { approve: true, note: said.clone(), to: None, raise: None, complete: false, always: false };
    match asked.filter(|asked| current && asked.decided.is_none()) {
        Some(asked) if asked.cause == ApprovalCause::TurnLimit => {
            let limit = run.machine.inner().max_turns;
            let raise = match max_turns {
                Some(most) if most <= limit => {
                    let message = format!("the run has {limit} turns already: it needs more to go on");
                    return Err(Refusal::field("maxTurns", message));
                }
                most => most.map(|most| Raise::Turns(most - limit)),
            };
            decide(d, &asked.id, &Decision { raise, ..decision })
        }
        Some(asked) if asked.cause == ApprovalCause::Escalation => {
            raise_turns(d, &run.id, max_turns);
            decide(d, &asked.id, &decision)
        }
        Some(asked) => {
            let message =
                format!("run `{}` waits for an answer to `{}`, which this is not", run.id, asked.id);
            Err(Refusal::new(409, Code::AgentNotRunning.name(), message).next([
                Choice::ApproveRequest { approval: asked.id.clone() },
                Choice::DenyRequest { approval: asked.id.clone() },
            ]))
        }
        None => resume_without_question(d, run, event, current, said, max_turns),
    }
}

fn resume_without_question(
    d: &mut Draft,
    run: &crate::world::Run,
    event: &run::Event,
    current: bool,
    said: String,
    max_turns: Option<u32>,
) -> Ruled {
    let id = run.task.clone();
    let task = d.task(&id)?;
    // The machine says in its own words where there is nothing to resume. One that is suspended is tried again.
    if !run.is_suspended() {
        machines::would_take(run.machine.inner(), event, d.caller(false))?;
    }
    let outside = matches!(&run.holder, Holder::Outside(_));
    if outside && task.lease.as_ref().is_some_and(|lease| lease.holder == run.holder) {
        return d.move_run_by(&run.id, Wrapped::Inner(event.clone()), d.caller(false)).map(drop);
    }
    let fails = current && (task.status() == Status::Blocked || task.lease.is_some());
    if !fails {
        let message = format!("run `{}` does not wait for a person", run.id);
        return Err(
            Refusal::new(409, Code::AgentNotRunning.name(), message).next([Choice::ExplainTask { task: id }])
        );
    }
    raise_turns(d, &run.id, max_turns);
    if !said.is_empty() {
        d.emit(NoteLeft { id: id.clone(), note: SmolStr::new(said) });
    }
    retry_task(d, &id)
}

/// The limit that the run is resumed with, whoever takes it up.
fn raise_turns(d: &mut Draft, run_id: &RunId, max_turns: Option<u32>) {
    if max_turns.is_some() {
        d.emit(TurnsRaised { id: run_id.clone(), to: max_turns });
    }
}

/// An agent outside has no worker that would take its run up again: it has the task back with the decision, and loses it
/// if it stays silent. `false` where the run is not such a one, or its task has gone elsewhere.
pub(super) fn resume_outside(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    if !give_back_outside(d, id, run_id)? {
        return Ok(false);
    }
    let max_turns = d.run(run_id)?.next_max_turns;
    if max_turns.is_some() {
        d.emit(TurnsRaised { id: run_id.clone(), to: None });
    }
    d.step_run(run_id, run::Event::Resume { feedback: None, input: None, max_turns })?;
    Ok(true)
}

/// The task goes back to the agent outside that has the run.
pub(super) fn give_back_outside(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let (task, run) = (d.task(id)?, d.run(run_id)?);
    let holder = run.holder.clone();
    let open =
        task.status() == Status::InProgress && task.lease.is_none() && task.run.as_ref() == Some(run_id);
    let paused = run.state() == run::State::Paused && !run.is_suspended();
    if !matches!(holder, Holder::Outside(_)) || !open || !paused {
        return Ok(false);
    }
    d.rule(Rule::OutsideRun);
    give_lease(d, id, holder)?;
    renew_outside(d, id);
    Ok(true)
}
