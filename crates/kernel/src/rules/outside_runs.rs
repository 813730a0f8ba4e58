//! Runs that are reported from outside, and what people do to runs.

use machines::names::{RunId, TaskId};
use machines::suspended::Wrapped;
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, worker};
use smol_str::SmolStr;

use super::Rule;
use super::approval::decide;
use super::claim::{end_lease, give_lease, open_run};
use super::release::{abort_run, ask_person, block, pause_run, release};
use super::step::{deny_tool, detect_failures, detect_loop, seconds, turn_limit};
use crate::command::{Actor, Decision, Refusal, Reply};
use crate::dispatch::{forbidden, run_reply};
use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::why;
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
                        &Decision {
                            approve: true,
                            note,
                            to: None,
                            raise: None,
                            complete: false,
                            always: false,
                        },
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
        // What only the agent itself reports: its table says so.
        _ => d.move_run_by(&run.id, Wrapped::Inner(event.clone()), d.caller(false)).map(drop),
    }
}
