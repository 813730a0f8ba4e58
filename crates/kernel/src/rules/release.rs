//! Taking work out of someone's hands, in whatever state it is.

use machines::names::{ApprovalId, RunId, TaskId};
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{run, worker};
use smol_str::SmolStr;

use super::leases::end_lease;
use super::sessions;
use crate::command::{Actor, Refusal};
use crate::draft::{Draft, Ruled};
use crate::effect::{StepEnd, Timer};
use crate::event::{ApprovalAsked, ApprovalDecided, GateAlone, QuestionDropped, RunNoted, WaitsForApproval};
use crate::session::Session;
use crate::words::{CommentKind, EffectEnd, Verdict};
use crate::world::{AskedCall, Holder};

/// Ends a gate that runs without a worker.
pub(super) fn quit_gate(d: &mut Draft, id: &TaskId) {
    if let Some(gate) = d.world.task(id).and_then(|task| task.gate.alone.clone()) {
        d.end(&gate, EffectEnd::Superseded);
        d.emit(GateAlone { id: id.clone(), effect: None });
        sessions::end_step(d, StepEnd::Task { task: id.clone(), run: None }, gate);
    }
}

/// Forgets the call that waits: its process is gone or going. The decision will go into the next prompt.
pub(super) fn drop_question(d: &mut Draft, run_id: &RunId) {
    if let Some(question) = d.world.run(run_id).and_then(|run| run.question.clone()) {
        d.clear_timer(&Timer::Question { approval: question.approval });
        d.emit(QuestionDropped { id: run_id.clone() });
    }
}

/// The task leaves whoever holds it. A stuck worker holds no lease and stays, for a person to see.
pub(super) fn release(d: &mut Draft, id: &TaskId, reason: ReleaseReason) -> Ruled {
    let run = d.world.run_of(id).map(|run| run.id.clone());
    if let Some(run) = &run {
        sessions::quit(d, &Session::Run(run.clone()), false);
        drop_question(d, run);
    }
    quit_gate(d, id);
    let holder = match reason {
        ReleaseReason::Canceled | ReleaseReason::Taken => d.world.worker_of(id),
        _ => d.world.leaseholder(id),
    };
    if let Some(name) = holder.map(|worker| worker.name.clone()) {
        d.clear_timer(&Timer::Backoff { worker: name.clone() });
        d.move_worker(&name, worker::Event::Released { reason })?;
    }
    if let Some(run) = &run {
        d.clear_timer(&Timer::Suspension { run: run.clone() });
    }
    // A worker gives its own lease back; an owner outside has no machine that would.
    if d.task(id)?.work.lease.as_ref().is_some_and(|lease| matches!(lease.holder, Holder::Outside(_))) {
        end_lease(d, id);
    }
    Ok(())
}

/// Stops a run that can go on later, in whatever state it is.
pub(super) fn pause_run(d: &mut Draft, run_id: &RunId, reason: run::PauseReason) -> Ruled {
    let run = d.run(run_id)?;
    match (run.is_suspended(), run.state()) {
        // A run that has not had its first turn cannot pause, and a suspended one has its own way out: the next
        // run goes on in the same session.
        (true, _) | (_, run::State::Starting) => abort_run(d, run_id, "stopped before its first turn"),
        (_, run::State::Running) => d.step_run(run_id, run::Event::Pause { reason, context: None }).map(drop),
        _ => Ok(()),
    }
}

pub(super) fn abort_run(d: &mut Draft, run_id: &RunId, reason: &str) -> Ruled {
    let run = d.run(run_id)?;
    if run.is_suspended() || run.is_open() {
        d.clear_timer(&Timer::Suspension { run: run_id.clone() });
        d.step_run(run_id, run::Event::Abort { reason: reason.to_owned() })?;
    }
    Ok(())
}

pub(super) fn fail_run(d: &mut Draft, run_id: &RunId, code: &'static str, message: &str) -> Ruled {
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

pub(super) fn block(d: &mut Draft, id: &TaskId, reason: BlockReason, comment: String) -> Ruled {
    let by = Actor::System;
    let status = d.task(id)?.status();
    let decision = (status == Status::NeedsApproval).then(|| "blocked".to_owned());
    if matches!(status, Status::InProgress | Status::Review | Status::NeedsApproval) {
        close_approval(d, id, Verdict::Blocked, &comment);
        d.move_task(
            id,
            &by,
            Status::Blocked,
            Payload { reason: Some(reason), decision, ..Payload::default() },
        )?;
        d.comment(id, "system", CommentKind::Blocked, comment);
    }
    Ok(())
}

/// Asks the system's own question about a task and waits for a person.
pub(super) fn ask_person(
    d: &mut Draft,
    id: &TaskId,
    run: Option<&RunId>,
    cause: ApprovalCause,
    question: String,
    options: &[&'static str],
    call: Option<(SmolStr, AskedCall)>,
) -> Result<ApprovalId, Refusal> {
    let (call, what) = call.unzip();
    ask_about(d, id, run, cause, question, options, call, what)
}

/// The same about a call that waits for the answer by its id, or that nobody here holds back.
#[allow(clippy::too_many_arguments, reason = "one question, taken apart")]
pub(super) fn ask_about(
    d: &mut Draft,
    id: &TaskId,
    run: Option<&RunId>,
    cause: ApprovalCause,
    question: String,
    options: &[&'static str],
    call: Option<SmolStr>,
    what: Option<AskedCall>,
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
        what,
        agent: None,
        limit: None,
    });
    enter_approval(d, id, &approval, cause)?;
    Ok(approval)
}

pub(super) fn enter_approval(
    d: &mut Draft,
    id: &TaskId,
    approval: &ApprovalId,
    cause: ApprovalCause,
) -> Ruled {
    if d.task(id)?.status() != Status::NeedsApproval {
        d.move_task(
            id,
            &Actor::System,
            Status::NeedsApproval,
            Payload { cause: Some(cause), ..Payload::default() },
        )?;
    }
    d.emit(WaitsForApproval { id: id.clone(), approval: approval.clone() });
    let asked = d.world.approvals.get(approval).filter(|asked| asked.task.is_some());
    match asked.map(|asked| asked.question.clone()) {
        Some(question) if cause == ApprovalCause::Budget => super::architect::budget_asked(d, id, &question),
        _ => Ok(()),
    }
}

/// The question is settled by something else than its own decision. One that others wait for stays open.
pub(super) fn close_approval(d: &mut Draft, id: &TaskId, decision: Verdict, note: &str) {
    let Some(approval) = d.world.task(id).and_then(|task| task.approval.clone()) else { return };
    let Some(record) = d.world.approvals.get(&approval) else { return };
    if record.decided.is_none() && record.task.is_some() {
        let by = SmolStr::new(d.command.actor.to_string());
        d.emit(ApprovalDecided { id: approval, by, at: d.at(), decision, note: note.to_owned() });
    }
}
