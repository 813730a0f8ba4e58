//! Steps of an agent: turns, calls, their end, good or bad.

use machines::names::{EffectId, RunId, TaskId, WorkerName};
use machines::task::{ApprovalCause, BlockReason};
use machines::worker::ReleaseReason;
use machines::{run, worker};
use smol_str::SmolStr;

use super::Rule;
use super::budgets::ask_budget;
use super::excerpts::first_line;
use super::fleet::fill_place;
use super::main_tests::{gate_in_doubt, tree_not_made};
use super::next::wake;
use super::release::{ask_person, block, enter_approval, fail_run, pause_run, release};
use super::service::probe_succeeded;
use super::sessions::{self, tip_moved};
use crate::command::{RedBy, Refusal, StepFailure};
use crate::config::{Colour, Role};
use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::event::{NoteLeft, RunNoted, StepCompared, StepRetried, ToolAudited, TreeStands, WorkerLost};
use crate::happened::{CallAsked, StepFinished, ToolResult, Turn};
use crate::hash::fnv;
use crate::session::Session;
use crate::words::StepEnding;
use crate::world::{AskedCall, CALL_BYTES_MAX, Holder, TOOL_NOT_ALLOWED, call_digest};
use crate::{Millis, budget};

/// Programs word their own interrupt as if the user had refused the call.
const STOPPED: &str = "The fleet was stopped during your last turn and has been started again. A call that was under way then was cut off; nobody refused it, whatever its result says. See how far it got, and make it again if it is still needed.";

pub(super) fn tree_ready(d: &mut Draft, worker: &WorkerName, id: &TaskId, tip: &SmolStr) -> Ruled {
    d.rule(Rule::TreeReady);
    d.emit(TreeStands { id: id.clone(), stands: true });
    tip_moved(d, id, Some(tip));
    match d.worker(worker)?.machine.status {
        worker::State::Ready => d.move_worker(worker, worker::Event::StepStarts).map(drop),
        // Made again for a worker that is at work already.
        _ => wake(d, id),
    }
}

pub(super) fn tree_failed(d: &mut Draft, worker: &WorkerName, error: &str) -> Ruled {
    d.rule(Rule::TreeFailed);
    step_failed(d, worker, error)
}

pub(super) fn tree_unmet(d: &mut Draft, id: &TaskId, error: &str) -> Ruled {
    d.rule(Rule::TreeUnmet);
    match gate_in_doubt(d, id, error, RedBy::Environment) {
        true => Ok(()),
        false => tree_not_made(d, id, error),
    }
}

/// A step that came to its own end.
pub(super) fn step_over(
    d: &mut Draft,
    effect: &EffectId,
    id: &TaskId,
    worker: &WorkerName,
    run: &RunId,
    over: &StepFinished,
) -> Ruled {
    let (of, ending) = (Session::Run(run.clone()), over.ending);
    sessions::finished(d, &of, effect, over.usage);
    tip_moved(d, id, over.tip.as_ref());
    if ending == StepEnding::CutOff {
        d.emit(NoteLeft { id: id.clone(), note: SmolStr::new_static(STOPPED) });
    }
    // A step that was cut off says nothing of the work, whatever was claimed before.
    let claimed = ending != StepEnding::CutOff && has_claimed(d, run, effect)?;
    let said_done = ending == StepEnding::Done || claimed;
    let compared = over.tree.as_ref().filter(|_| ending == StepEnding::NotDone && !said_done);
    if let Some(tree) = compared
        && step_repeated(d, id, run, &over.output, tree)?
    {
        return Ok(());
    }
    step_finished(d, id, worker, run, said_done, &over.output)
}

/// Whether the agent said during this very step that the work is done.
pub(super) fn has_claimed(d: &Draft, run: &RunId, step: &EffectId) -> Result<bool, Refusal> {
    Ok(d.run(run)?.claimed.as_ref().is_some_and(|claimed| claimed.step == *step))
}

/// Brings a run to `running` at `turn`, where a report overtook its STEP.
pub(super) fn ensure_turn(d: &mut Draft, run_id: &RunId, turn: u32) -> Ruled {
    let run = d.run(run_id)?;
    if run.is_live() && run.machine.inner().current_turn < turn {
        let next = run.machine.inner().current_turn + 1;
        d.step_run(
            run_id,
            run::Event::Step {
                turn: next,
                tool_calls: Vec::new(),
                output: None,
                usage: None,
                marks: Vec::new(),
            },
        )?;
    }
    Ok(())
}

/// `first_report`: it was not reported before, and has been paid for with this one.
pub(super) fn turn_taken(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    taken: &Turn,
    first_report: bool,
) -> Ruled {
    d.rule(Rule::TurnTaken);
    let Turn { turn, calls, output, .. } = taken;
    let run = d.run(run_id)?;
    let machine = run.machine.inner().clone();
    let (allowed, denied): (Vec<_>, Vec<_>) =
        calls.iter().cloned().partition(|call| machine.tool_allowed(&call.tool));
    if run.is_live() && *turn > machine.current_turn {
        let turn = machine.current_turn + 1;
        d.step_run(
            run_id,
            run::Event::Step {
                turn,
                tool_calls: allowed,
                output: output.clone(),
                usage: None,
                marks: Vec::new(),
            },
        )?;
    }
    if first_report {
        // The turn that a STEP took is audited with it. What no STEP took was called all the same.
        let taken = d.run(run_id)?.machine.inner().current_turn > machine.current_turn;
        let untaken = if taken { &denied } else { calls };
        for call in untaken {
            audit_call(d, run_id, call);
        }
        for call in denied {
            deny_tool_once(d, run_id, &call.id, &call.tool);
        }
    }
    probe_succeeded(d, &Session::Run(run_id.clone()).probe())?;
    if detect_loop(d, id, run_id)? || detect_failures(d, id, run_id)? {
        return Ok(());
    }
    let run = d.run(run_id)?;
    let machine = run.machine.inner();
    // A message without calls is the agent's last: the step's own end says what follows.
    if run.is_live() && machine.current_turn >= machine.max_turns && !calls.is_empty() {
        return turn_limit(d, run_id);
    }
    // So it is where it passes a budget: what it has done is looked at, and asked about only if there is more to do.
    if run.is_live()
        && machine.state == run::State::Running
        && !calls.is_empty()
        && let Some(room) = budget::passed(&d.world, d.task(id)?, run, d.day())
    {
        return budget_reached(d, run_id, &room);
    }
    Ok(())
}

pub(super) fn audit_call(d: &mut Draft, run_id: &RunId, call: &run::ToolCall) {
    let turn = d.world.run(run_id).map_or(0, |run| run.machine.inner().current_turn);
    audit_call_at(d, run_id, call, turn);
}

/// The same of a turn that was not taken.
pub(super) fn audit_call_at(d: &mut Draft, run_id: &RunId, call: &run::ToolCall, turn: u32) {
    let input = serde_json::Value::Object(call.input.clone()).to_string();
    let digest = call_digest(&call.tool, &call.input);
    d.emit(ToolAudited {
        id: run_id.clone(),
        call: call.id.clone(),
        tool: call.tool.clone(),
        turn,
        digest,
        // How it ended is a row of its own, where that is reported with it.
        status: match call.status {
            run::ToolStatus::Running => run::ToolStatus::Running,
            _ => run::ToolStatus::Pending,
        },
        input: Some(input),
        output: None,
        millis: None,
        began: false,
    });
}

pub(super) fn audit_result(
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
        began: false,
    });
}

/// What is kept of a call whose agent never said how it ended.
pub(super) const NOT_REPORTED: &str = "the agent reported no result of this call";

/// Calls of an agent outside that it will report no more: all of a run that is over, or the one whose id is used again.
pub(super) fn not_reported(d: &mut Draft, run_id: &RunId, only: Option<&SmolStr>) {
    let Some(run) = d.world.run(run_id).filter(|run| matches!(run.holder, Holder::Outside(_))) else {
        return;
    };
    let open = run.audit.open_calls.iter().filter(|(id, _)| only.is_none_or(|only| only == *id));
    let open: Vec<(SmolStr, SmolStr)> = open.map(|(id, call)| (id.clone(), call.tool.clone())).collect();
    for (call, tool) in open {
        audit_result(d, run_id, &call, &tool, false, NOT_REPORTED, 0);
    }
}

/// Its turn and its question both come here, in either order: it is one call.
fn deny_tool_once(d: &mut Draft, run_id: &RunId, call: &SmolStr, tool: &SmolStr) {
    if d.world.run(run_id).is_none_or(|run| !run.audit.refused.contains(call)) {
        deny_tool(d, run_id, call, tool);
    }
}

pub(super) fn deny_tool(d: &mut Draft, run_id: &RunId, call: &SmolStr, tool: &SmolStr) {
    d.rule(Rule::ToolDenied);
    audit_result(d, run_id, call, tool, false, TOOL_NOT_ALLOWED, 0);
}

pub(super) fn tool_result(d: &mut Draft, id: &TaskId, run_id: &RunId, result: &ToolResult) -> Ruled {
    let ToolResult { call, tool, ok, output, millis } = result;
    if d.run(run_id)?.audit.open.contains(call) {
        audit_result(d, run_id, call, tool, *ok, output, *millis);
    }
    detect_failures(d, id, run_id).map(drop)
}

/// Reads the audit, not the agent's word.
pub(super) fn detect_loop(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let run = d.run(run_id)?;
    let times = d.world.config.limits.same_call;
    let Some(calls) = run.audit.looping(times).filter(|_| run.is_live()) else { return Ok(false) };
    d.rule(Rule::LoopDetected);
    let what = match calls {
        1 => format!("the agent made the same call {times} times in a row"),
        _ => format!("the agent made the same {calls} calls {} times over", times.max(2)),
    };
    stop_for(d, id, run_id, BlockReason::Loop, what)?;
    Ok(true)
}

pub(super) fn detect_failures(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let run = d.run(run_id)?;
    let failing = run.is_live()
        && run.state() == run::State::Running
        && run.audit.failures >= d.world.config.limits.tool_failures;
    if failing {
        let tool = run.audit.failing_tool.clone().unwrap_or_default();
        let times = run.audit.failures;
        d.rule(Rule::ToolFailures);
        stop_for(
            d,
            id,
            run_id,
            BlockReason::ToolFailures,
            format!("tool `{tool}` failed {times} times in a row"),
        )?;
    }
    Ok(failing)
}

pub(super) fn stop_for(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    reason: BlockReason,
    comment: String,
) -> Ruled {
    pause_run(d, run_id, run::PauseReason::UserInput)?;
    release(d, id, ReleaseReason::Blocked)?;
    block(d, id, reason, comment)
}

pub(super) fn turn_limit(d: &mut Draft, run_id: &RunId) -> Ruled {
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

pub(super) fn budget_reached(d: &mut Draft, run_id: &RunId, room: &budget::Headroom) -> Ruled {
    d.rule(Rule::BudgetReached);
    let (id, agent) = (d.run(run_id)?.task.clone(), d.run(run_id)?.agent.clone());
    pause_run(d, run_id, run::PauseReason::Budget)?;
    release(d, &id, ReleaseReason::NeedsApproval)?;
    let approval = ask_budget(d, room, &agent, Some(&id));
    enter_approval(d, &id, &approval, ApprovalCause::Budget)
}

/// Whether a person must say yes to a call of an agent of this role, by the policy's colours.
pub(super) fn asks_person(
    d: &Draft,
    id: &TaskId,
    role: Role,
    asked: &AskedCall,
) -> Result<Option<ApprovalCause>, Refusal> {
    let colour = d.world.config.policy.colour(&asked.tool, &asked.argument);
    let cause = match (colour, role) {
        (Colour::Red, _) => ApprovalCause::RedAction,
        (Colour::Yellow, Role::Intern) => ApprovalCause::YellowAction,
        _ => return Ok(None),
    };
    let always = d.task(id)?.work.allowed.iter().any(|allowed| allowed.is_same(asked));
    Ok((!always).then_some(cause))
}

pub(super) fn call_asked(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    step: &EffectId,
    asked: CallAsked,
) -> Ruled {
    let CallAsked { call, tool, argument, input, turn } = asked;
    let (call, asked) = (&call, AskedCall { tool, argument, input });
    ensure_turn(d, run_id, turn)?;
    let run = d.run(run_id)?;
    if run.question.as_ref().is_some_and(|question| question.call == *call) {
        return Ok(());
    }
    let of = Session::Run(run_id.clone());
    let answer = |d: &mut Draft, allow, note: &str| sessions::answer(d, &of, step, call, allow, note);
    if !run.machine.inner().tool_allowed(&asked.tool) {
        deny_tool_once(d, run_id, call, &asked.tool);
        answer(d, false, "this tool is not allowed");
        return detect_failures(d, id, run_id).map(drop);
    }
    if run::is_own_tool(&asked.tool) {
        answer(d, true, "");
        return Ok(());
    }
    let Some(cause) = asks_person(d, id, d.world.config.agent(&run.agent).role, &asked)? else {
        answer(d, true, "");
        return Ok(());
    };
    if run.state() != run::State::Running || run.is_suspended() {
        answer(d, false, "another call waits for a person; ask again when it is decided");
        return Ok(());
    }
    d.rule(Rule::ActionAsked);
    if asked.bytes() > CALL_BYTES_MAX {
        let note = format!(
            "a person must allow this call, and it is longer than the {CALL_BYTES_MAX} bytes that one is shown: \
             make it in smaller parts"
        );
        answer(d, false, &note);
        return Ok(());
    }
    pause_run(d, run_id, run::PauseReason::ApprovalRequired)?;
    let question = format!("The agent asks to use {}", asked.one_line());
    let call = Some((call.clone(), asked));
    let approval = ask_person(d, id, Some(run_id), cause, question, &["allow", "deny"], call)?;
    let due = d.at() + seconds(d.world.config.limits.question_seconds);
    d.set_timer(Timer::Question { approval }, due);
    Ok(())
}

pub(super) fn seconds(count: u32) -> Millis {
    Millis::from(count) * 1000
}

pub(super) fn step_finished(
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
            run::Event::Step {
                turn: 1,
                tool_calls: Vec::new(),
                output: Some(first_line(output)),
                usage: None,
                marks: Vec::new(),
            },
        )?;
    }
    if d.run(run_id)?.retried {
        d.emit(StepRetried { id: run_id.clone(), retried: false });
    }
    let of = Session::Run(run_id.clone());
    probe_succeeded(d, &of.probe())?;
    sessions::unreserve(d, &of);
    let to = d.move_worker(worker, worker::Event::StepOk { done: said_done })?;
    d.rule(if to == worker::State::Done { Rule::ClaimedDone } else { Rule::StepFinished });
    Ok(())
}

/// Whether the agent says the same step after step and changes nothing: it would do so until its steps are used up.
fn step_repeated(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    output: &str,
    tree: &SmolStr,
) -> Result<bool, Refusal> {
    if d.run(run_id)?.state() != run::State::Running {
        return Ok(false);
    }
    let words: Vec<&str> = output.split_whitespace().collect();
    let digest = fnv(format!("{}\0{tree}", words.join(" ")).as_bytes());
    d.emit(StepCompared { id: run_id.clone(), digest });
    let (same, limit) = (d.run(run_id)?.audit.same_steps, d.world.config.limits.same_step);
    if same < limit {
        return Ok(false);
    }
    d.rule(Rule::StepRepeated);
    sessions::unreserve(d, &Session::Run(run_id.clone()));
    let what = format!("the agent ended {same} steps in a row with the same words, and changed nothing");
    stop_for(d, id, run_id, BlockReason::Loop, what)?;
    Ok(true)
}

pub(super) fn step_ended_badly(
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
        StepFailure::Limit => limit_passed(d, id, run_id, error),
        StepFailure::Session | StepFailure::TimedOut if !retried => {
            d.rule(Rule::StepRetried);
            sessions::renew(d, &Session::Run(run_id.clone()), true);
            wake(d, id)
        }
        _ => {
            if retried {
                d.emit(StepRetried { id: run_id.clone(), retried: false });
            }
            step_failed(d, worker, error)
        }
    }
}

/// The code of a run's error where its step used more than it may.
pub const LIMIT_PASSED: &str = "LIMIT";

/// The next try would use as much: a person changes the limit or the task first.
pub(super) fn limit_passed(d: &mut Draft, id: &TaskId, run_id: &RunId, error: &str) -> Ruled {
    d.rule(Rule::LimitPassed);
    fail_run(d, run_id, LIMIT_PASSED, error)?;
    release(d, id, ReleaseReason::Blocked)?;
    block(d, id, BlockReason::Limit, error.to_owned())
}

pub(super) fn step_failed(d: &mut Draft, name: &WorkerName, error: &str) -> Ruled {
    d.rule(Rule::StepFailed);
    let Some(id) = d.worker(name)?.machine.task.clone() else { return Ok(()) };
    let run = d.world.run_of(&id).map(|run| run.id.clone());
    if let Some(run) = &run {
        fail_run(d, run, "STEP_FAILED", error)?;
        sessions::unreserve(d, &Session::Run(run.clone()));
    }
    match d.move_worker(name, worker::Event::StepFailed { error: error.to_owned() })? {
        worker::State::Stuck => stuck(d, name, &id, error),
        _ => Ok(()),
    }
}

pub(super) fn stuck(d: &mut Draft, name: &WorkerName, id: &TaskId, error: &str) -> Ruled {
    d.rule(Rule::Stuck);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        pause_run(d, &run, run::PauseReason::UserInput)?;
        sessions::quit(d, &Session::Run(run), false);
    }
    block(d, id, BlockReason::Stuck, format!("worker {name} is stuck: {error}"))?;
    fill_place(d)
}

/// Everything that a worker or runner had under way is gone; nobody knows how it ended.
pub(super) fn lost(d: &mut Draft, id: &TaskId, error: &str) -> Ruled {
    d.rule(Rule::Lost);
    if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
        fail_run(d, &run, "LOST", error)?;
    }
    release(d, id, ReleaseReason::Lost)?;
    count_lost(d, id, error)
}

pub(super) fn count_lost(d: &mut Draft, id: &TaskId, error: &str) -> Ruled {
    let lost = d.task(id)?.work.lost_workers + 1;
    d.emit(WorkerLost { id: id.clone(), lost });
    if lost >= d.world.config.limits.lost_workers {
        block(d, id, BlockReason::LostWorkers, format!("{lost} workers were lost on it; the last: {error}"))?;
    }
    Ok(())
}
