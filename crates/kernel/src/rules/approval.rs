//! Decisions on approvals.

use machines::names::{ApprovalId, TaskId};
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, task};
use smol_str::SmolStr;

use super::Rule;
use super::budgets::raise_budget;
use super::landing::tidy_up;
use super::outside_runs::{call_decided, give_back_outside, resume_outside};
use super::people::{answer_waiting, back_to_review, canceled};
use super::release::{abort_run, release};
use crate::checks::check_text;
use crate::choice::Choice;
use crate::command::{Decision, Refusal};
use crate::draft::{Draft, Ruled};
use crate::effect::Effect;
use crate::event::{ApprovalDecided, CallAllowed, GateAlone, NoteLeft, TurnsRaised};
use crate::words::{Raise, Verdict};
use crate::world::ALWAYS_MAX;

pub(crate) fn decide(d: &mut Draft, id: &ApprovalId, decision: &Decision) -> Ruled {
    let approval = d
        .world
        .approvals
        .get(id)
        .cloned()
        .ok_or_else(|| Refusal::not_found("approval", id).next([Choice::ListApprovals]))?;
    if let Some(decided) = &approval.decided {
        return Err(Refusal::new(
            409,
            "DECIDED",
            format!("`{id}` was decided already: {} by {}", decided.decision, decided.by),
        ));
    }
    check_text(&d.world, "note", Some(&decision.note))?;
    // Taken in silence, whoever meant another question would have allowed this one.
    match (decision.raise, approval.cause) {
        (None, _)
        | (Some(Raise::Turns(_)), ApprovalCause::TurnLimit)
        | (Some(Raise::Money(_)), ApprovalCause::Budget) => {}
        (Some(Raise::Money(_)), ApprovalCause::TurnLimit) => {
            return Err(Refusal::unfit("raise", format!("`{id}` asks for turns, not for money")));
        }
        (Some(Raise::Turns(_)), ApprovalCause::Budget) => {
            return Err(Refusal::unfit("raise", format!("`{id}` asks for money, not for turns")));
        }
        (Some(_), _) => {
            return Err(Refusal::unfit("raise", format!("`{id}` asks for no limit to be raised")));
        }
    }
    check_turns(d, &approval, decision)?;
    if decision.complete && approval.cause != ApprovalCause::TurnLimit {
        return Err(Refusal::unfit("complete", format!("`{id}` does not ask whether a run is complete")));
    }
    if decision.always {
        check_always(d, &approval, decision)?;
    }
    let word = match (decision.approve, decision.complete, decision.always) {
        (true, _, true) => Verdict::Always,
        (true, true, _) => Verdict::Completed,
        (true, false, _) => Verdict::Approved,
        (false, ..) => Verdict::Denied,
    };
    let by = SmolStr::new(d.command.actor.to_string());
    d.emit(ApprovalDecided { id: id.clone(), by, at: d.at(), decision: word, note: decision.note.clone() });
    if let (true, Some(task), Some(call)) = (decision.always, &approval.task, &approval.call) {
        d.emit(CallAllowed { id: task.clone(), call: call.clone(), approval: id.clone() });
    }
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

/// A number of turns that is added is one that the run can have.
fn check_turns(d: &Draft, approval: &crate::world::Approval, decision: &Decision) -> Ruled {
    let (Some(Raise::Turns(more)), Some(run)) = (decision.raise, &approval.run) else { return Ok(()) };
    let (limit, most) = (d.run(run)?.machine.inner().max_turns, run::TURN_LIMIT_MAX);
    let left = most.saturating_sub(limit);
    if left == 0 {
        let message = format!("run `{run}` has all the {most} turns that a run may have");
        return Err(Refusal::unfit("raise", message)
            .hint("approve without a number of turns: the next run of the task continues"));
    }
    if !(1..=left).contains(&more) {
        let message = format!(
            "{more} turns cannot be added: run `{run}` has {limit} of at most {most}, so 1 to {left}"
        );
        return Err(Refusal::field("raise", message));
    }
    Ok(())
}

/// Whether the call can be allowed for the rest of its task.
fn check_always(d: &Draft, approval: &crate::world::Approval, decision: &Decision) -> Ruled {
    let id = &approval.id;
    let Some(task) = approval.task.as_ref().filter(|_| approval.call.is_some() && decision.approve) else {
        return Err(Refusal::field(
            "always",
            format!("`{id}` asks for no call that could be allowed always"),
        ));
    };
    if d.task(task)?.work.allowed.len() >= ALWAYS_MAX {
        let message = format!("{ALWAYS_MAX} calls are allowed always for `{task}` already");
        return Err(
            Refusal::field("always", message).hint("`policy.green` in adjutant.toml allows calls by pattern")
        );
    }
    Ok(())
}

pub(super) fn decided_for(
    d: &mut Draft,
    id: &TaskId,
    approval: &crate::world::Approval,
    decision: &Decision,
) -> Ruled {
    let came_from = d.task(id)?.machine.came_from.unwrap_or(Status::InProgress);
    let run = approval.run.clone().or_else(|| d.world.run_of(id).map(|run| run.id.clone()));
    let note = if decision.note.trim().is_empty() { "decided" } else { decision.note.as_str() };
    if decision.to == Some(Status::Done) && task::is_blank(&decision.note) {
        return Err(Refusal::field("note", "a decision that leads to DONE needs a note: why it is done"));
    }
    match (approval.cause, &run) {
        (ApprovalCause::RedAction | ApprovalCause::YellowAction, Some(run)) => {
            d.rule(Rule::ActionDecided);
            let to = decision.to.unwrap_or(came_from);
            leave_approval(d, id, to, note)?;
            let waits =
                d.run(run)?.question.as_ref().is_some_and(|question| question.approval == approval.id);
            if waits && to == Status::InProgress {
                return answer_waiting(d, run, decision.approve, note);
            }
            if waits {
                release(d, id, ReleaseReason::Blocked)?;
            }
            after_approval(d, id, to, came_from)?;
            // An agent outside looks for the decision itself, in the audit of its calls.
            call_decided(d, run, approval.call.as_ref(), decision.approve && to == Status::InProgress, note)?;
            if resume_outside(d, id, run, &decision.note)? {
                return Ok(());
            }
            let said = if decision.approve { "allowed" } else { "denied" };
            let what = approval.call.as_ref().map(|call| call.lines().join("\n"));
            let what = what.unwrap_or_else(|| approval.question.clone());
            d.emit(NoteLeft {
                id: id.clone(),
                note: SmolStr::new(format!("A person {said} this ({note}): {what}")),
            });
        }
        (ApprovalCause::TurnLimit, Some(run)) if decision.approve && decision.complete => {
            d.rule(Rule::TurnLimitCompleted);
            leave_approval(d, id, Status::InProgress, note)?;
            let state = d.run(run)?.state();
            if d.task(id)?.work.place.is_none() {
                give_back_outside(d, id, run)?;
            }
            if state == run::State::Paused {
                let turns = d.run(run)?.machine.inner().current_turn.max(1);
                d.step_run(run, run::Event::Resume { feedback: None, input: None, max_turns: None })?;
                let result = "completed by a person".to_owned();
                d.step_run(run, run::Event::Complete { result, diff: None, turn_count: turns })?;
            }
            // An agent outside has no tree of ours to look at: what it made, it hands in itself.
            if d.task(id)?.work.place.is_none() {
                return Ok(());
            }
            let gate = d.ask(Effect::RunGate { task: id.clone(), worker: None, max_steps_reached: false });
            d.emit(GateAlone { id: id.clone(), effect: Some(gate) });
        }
        (ApprovalCause::TurnLimit, Some(run)) if decision.approve => {
            d.rule(Rule::TurnLimitContinued);
            let limit = d.run(run)?.machine.inner().max_turns;
            let more = match decision.raise {
                Some(Raise::Turns(turns)) => turns,
                Some(Raise::Money(_)) | None => limit,
            };
            let to = limit.saturating_add(more).min(run::TURN_LIMIT_MAX);
            let status = decision.to.unwrap_or(came_from);
            leave_approval(d, id, status, note)?;
            after_approval(d, id, status, came_from)?;
            if to > limit {
                d.emit(TurnsRaised { id: run.clone(), to: Some(to) });
                resume_outside(d, id, run, &decision.note)?;
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
            if let Some(run) = &run {
                resume_outside(d, id, run, &decision.note)?;
            }
        }
        _ => denied(d, id, decision, note)?,
    }
    Ok(())
}

/// What the status that an approval leads to brings with it.
pub(super) fn after_approval(d: &mut Draft, id: &TaskId, to: Status, came_from: Status) -> Ruled {
    match to {
        Status::Review => back_to_review(d, id, Some(came_from)),
        Status::Canceled => canceled(d, id),
        Status::Done => tidy_up(d, id),
        _ => Ok(()),
    }
}

pub(super) fn denied(d: &mut Draft, id: &TaskId, decision: &Decision, note: &str) -> Ruled {
    let came_from = d.task(id)?.machine.came_from.unwrap_or(Status::InProgress);
    let to = decision.to.unwrap_or(Status::Blocked);
    leave_approval(d, id, to, note)?;
    after_approval(d, id, to, came_from)
}

/// A person's decision leads the task out of NEEDS_APPROVAL.
pub(super) fn leave_approval(d: &mut Draft, id: &TaskId, to: Status, note: &str) -> Ruled {
    let actor = d.command.actor.clone();
    let reason = (to == Status::Blocked)
        .then(|| d.world.task(id).and_then(|task| task.machine.block_reason).unwrap_or(BlockReason::Manual));
    let decided = d.task(id)?.approval.as_ref().map(|approval| SmolStr::new(approval.as_str()));
    let approval = (to == Status::Done).then(|| task::Completion {
        approval_id: decided,
        approved_by: SmolStr::new(actor.to_string()),
        approved_at: d.at(),
        decision_note: note.to_owned(),
    });
    let payload = Payload { decision: Some(note.to_owned()), reason, approval, ..Payload::default() };
    d.move_task(id, &actor, to, payload)
}
