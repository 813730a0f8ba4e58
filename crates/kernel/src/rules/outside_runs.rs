//! Runs that are reported from outside, and what people do to runs.

use machines::machine::{Checked, Code};
use machines::names::{AgentName, RunId, TaskId};
use machines::suspended::Wrapped;
use machines::task::{ApprovalCause, BlockReason, Payload, Status};
use machines::worker::ReleaseReason;
use machines::{Machine, Wire, run, worker};
use smol_str::SmolStr;

use super::Rule;
use super::approval::decide;
use super::carry::audit_ended;
use super::claim::{given_plan, open_run};
use super::leases::{end_lease, give_lease};
use super::outcome::ask_after;
use super::people::retry_task;
use super::release::{abort_run, ask_about, ask_person, block, pause_run, release};
use super::replies::run_reply;
use super::sessions;
use super::step::{
    asks_person, audit_call_at, audit_result, budget_reached, deny_tool, detect_failures, detect_loop,
    not_reported, seconds, turn_limit,
};
use crate::budget;
use crate::checks::forbidden;
use crate::choice::Choice;
use crate::command::{Actor, Decision, Refusal, Reply, Usage};
use crate::config::{Micros, Role};
use crate::draft::{Draft, Ruled, holder_worker};
use crate::effect::{Effect, Timer};
use crate::event::{NoteLeft, ToolAudited, TurnsRaised};
use crate::session::Session;
use crate::why;
use crate::words::Raise;
use crate::world::{AskedCall, CALL_BYTES_MAX, Holder, OpenCall, call_argument, call_digest};

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
    check_free(d, &agent)?;
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
    // It has the task still from a run that is over.
    if task.work.lease.as_ref().is_some_and(|lease| lease.holder == Holder::Outside(agent.clone())) {
        end_lease(d, id);
    }
    let task = d.task(id)?;
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
    let options = narrowed(d, &agent, options);
    open_run(d, id, &agent, holder, options.max_turns, Some(&options), prompt)?;
    let run = d.task(id)?.work.run.clone().unwrap_or_else(|| RunId::new("none").expect("a constant"));
    run_reply(d, &run)
}

/// An agent outside has one run at a time, whatever the task. One that waits for a person is still under way: the decision
/// gives its task back.
fn check_free(d: &Draft, agent: &AgentName) -> Ruled {
    let Some(run) = d.world.run_outside(agent) else { return Ok(()) };
    let (id, task) = (&run.id, &run.task);
    let waits = d.world.task(task).and_then(|task| task.approval.as_ref());
    let (message, hint) = match waits.filter(|_| run.state() == run::State::Paused) {
        Some(approval) => (
            format!("the agent's run `{id}` on `{task}` waits for what a person says to `{approval}`"),
            "wait for the decision, or use another agent",
        ),
        None => (
            format!("the agent already has run `{id}` under way on `{task}`"),
            "continue that run, report its end, or use another agent",
        ),
    };
    Err(Refusal::new(409, Code::AgentAlreadyRunning.name(), message).hint(hint))
}

/// The options that a run begins with: the settings of its agent are the limit, and a request only narrows them.
fn narrowed(d: &Draft, agent: &AgentName, asked: Option<&run::Options>) -> run::Options {
    let (config, asked) = (&d.world.config, asked.cloned().unwrap_or_default());
    let own = config.agent(agent);
    let limit = run::turn_limit(own.max_turns, config.max_turns, own.kind);
    let allowed_tools = match (own.allowed_tools, asked.allowed_tools) {
        (None, asked) => asked,
        (Some(own), None) => Some(own.into()),
        (Some(own), Some(asked)) => Some(asked.iter().filter(|tool| own.contains(tool)).cloned().collect()),
    };
    run::Options {
        max_turns: Some(asked.max_turns.map_or(limit, |turns| turns.min(limit))),
        allowed_tools,
        ..asked
    }
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
    let leased = d.task(&id)?.work.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
    // An answer that was lost on its way is given again, whatever the turn has led to since. What the calls of that turn gave
    // may come with it.
    if matches!(run.machine.inner().check(event), Ok(Checked::Repeated)) {
        if leased && run.is_open() {
            late_results(d, &id, run_id, event)?;
        }
        return reported(d, run_id).map(Ok);
    }
    // A run that is over stays over, and so does its stream: what begins now is the next one.
    if let run::Event::Start { task_id, prompt, options } = event
        && d.world.is_over_for_good(&run)
        && *task_id == id.as_str()
    {
        return open_outside_run(d, &id, prompt, options.as_ref()).map(Ok);
    }
    if !leased {
        return Err(no_longer_held(d, &run, event));
    }
    let event = &marked(d, &run, event)?;
    if ends(event) {
        not_reported(d, run_id, None);
    }
    if let Err(refusal) = d.move_run_by(run_id, Wrapped::Inner(event.clone()), d.caller(true)) {
        return outside_refused(d, run_id, event, refusal);
    }
    renew_outside(d, &id);
    if let run::Event::Step { turn, tool_calls, usage, .. } = event {
        if let Some(usage) = usage {
            sessions::charge_turn(d, &Session::Run(run_id.clone()), *turn, used(*usage));
        }
        let stopped = detect_loop(d, &id, run_id)? || detect_failures(d, &id, run_id)?;
        if !ask_for_calls(d, &id, run_id, event, stopped)? && !stopped {
            outside_limit(d, run_id, tool_calls)?;
            outside_budget(d, &id, run_id)?;
        }
    }
    outside_ended(d, &id, run_id, event)?;
    reported(d, run_id).map(Ok)
}

/// Whether the run is over with this event. An error that can be recovered from ends nothing.
fn ends(event: &run::Event) -> bool {
    match event {
        run::Event::Complete { .. } | run::Event::Abort { .. } => true,
        run::Event::Error { recoverable, .. } => !recoverable,
        _ => false,
    }
}

/// What the turn used, in the kernel's units. A price that the agent does not say is unknown, not nothing.
fn used(usage: run::Usage) -> Usage {
    // The machine has seen that it is a small number that is not negative.
    let micros = |dollars: f64| (dollars * 1_000_000.0).round() as Micros;
    Usage {
        cost: usage.cost.map(micros),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    }
}

/// The STEP with what the agent cannot say of its calls: which of them began in an earlier turn, and which wait for a person.
fn marked(d: &Draft, run: &crate::world::Run, event: &run::Event) -> Result<run::Event, Refusal> {
    let run::Event::Step { turn, tool_calls, output, usage, .. } = event else { return Ok(event.clone()) };
    let mut open = run.audit.open_calls.clone();
    let mut marks = Vec::new();
    for (at, call) in tool_calls.iter().enumerate() {
        let digest = call_digest(&call.tool, &call.input);
        let ended = matches!(call.status, run::ToolStatus::Complete | run::ToolStatus::Error);
        if ended && is_of(&open, call) {
            open.remove(&call.id);
            marks.push((at, run::Mark::Earlier));
        } else if !ended {
            open.insert(call.id.clone(), OpenCall { tool: call.tool.clone(), digest });
            if cause_to_ask(d, run, call)?.is_some() {
                marks.push((at, run::Mark::Asked));
            }
        }
    }
    Ok(run::Event::Step {
        turn: *turn,
        tool_calls: tool_calls.clone(),
        output: output.clone(),
        usage: *usage,
        marks,
    })
}

/// Whether this is the result of a call that is known. What the call was given may be left out, but is never another.
fn is_of(open: &imbl::OrdMap<SmolStr, OpenCall>, call: &run::ToolCall) -> bool {
    open.get(&call.id).is_some_and(|known| {
        let same = call.input.is_empty() || known.digest == call_digest(&call.tool, &call.input);
        known.tool == call.tool && same
    })
}

/// Whether a person must say yes to a reported call. The lower of the two roles counts, the token's and the settings'.
fn cause_to_ask(
    d: &Draft,
    run: &crate::world::Run,
    call: &run::ToolCall,
) -> Result<Option<ApprovalCause>, Refusal> {
    let allowed = run.audit.allowed_once.contains(&call_digest(&call.tool, &call.input));
    if allowed || run::is_own_tool(&call.tool) || !run.machine.inner().tool_allowed(&call.tool) {
        return Ok(None);
    }
    let settings = d.world.config.agent(&run.agent).role;
    let role = match &d.command.actor {
        Actor::Agent { role: Role::Intern, .. } => Role::Intern,
        _ => settings,
    };
    asks_person(d, &run.task, role, &asked_call(call))
}

fn asked_call(call: &run::ToolCall) -> AskedCall {
    let argument = call_argument(&call.tool, &call.input);
    AskedCall { tool: call.tool.clone(), argument, input: call.input.clone() }
}

/// What the calls of a turn gave, reported with the same turn again.
fn late_results(d: &mut Draft, id: &TaskId, run_id: &RunId, event: &run::Event) -> Ruled {
    let run::Event::Step { tool_calls, .. } = event else { return Ok(()) };
    let mut found = false;
    for call in tool_calls {
        let ended = matches!(call.status, run::ToolStatus::Complete | run::ToolStatus::Error);
        if ended && is_of(&d.run(run_id)?.audit.open_calls, call) {
            audit_ended(d, run_id, call);
            found = true;
        }
    }
    if !found {
        return Ok(());
    }
    renew_outside(d, id);
    detect_failures(d, id, run_id).map(drop)
}

/// Asks a person about the first call of the turn that needs one, and pauses the run; the others are to be made again. True if
/// a person is asked. Where the run was stopped for another reason, none of them may be made.
fn ask_for_calls(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    event: &run::Event,
    stopped: bool,
) -> Result<bool, Refusal> {
    let run::Event::Step { tool_calls, marks, .. } = event else { return Ok(false) };
    let mut asked = None;
    for (at, call) in tool_calls.iter().enumerate() {
        let waits = marks.contains(&(at, run::Mark::Asked));
        // Reported when it had run already: it is too late to hold it back, and not too late to look at it.
        let made = matches!(call.status, run::ToolStatus::Complete | run::ToolStatus::Error)
            && !marks.contains(&(at, run::Mark::Earlier));
        let cause = match waits || made {
            true => cause_to_ask_now(d, run_id, call)?,
            false => None,
        };
        let Some(cause) = cause else { continue };
        let what = asked_call(call);
        let running = d.run(run_id)?.state() == run::State::Running;
        let denied = match () {
            () if stopped || !running => Some("the run was stopped before this call".to_owned()),
            () if asked.is_some() => {
                Some("another call waits for a person; make this one again when it is decided".to_owned())
            }
            () if what.bytes() > CALL_BYTES_MAX => Some(format!(
                "a person must allow this call, and it is longer than the {CALL_BYTES_MAX} bytes that one is \
                 shown: make it in smaller parts"
            )),
            () => None,
        };
        match denied {
            Some(why) if waits => audit_result(d, run_id, &call.id, &call.tool, false, &why, 0),
            Some(_) => {}
            None => asked = Some((cause, what, waits)),
        }
    }
    let Some((cause, what, waits)) = asked else { return Ok(false) };
    d.rule(Rule::ActionAsked);
    pause_run(d, run_id, run::PauseReason::ApprovalRequired)?;
    // Nobody here holds its program back: it has its task again with the decision.
    release(d, id, ReleaseReason::NeedsApproval)?;
    let question = match waits {
        true => format!("The agent asks to use {}", what.one_line()),
        false => format!("The agent has used, without asking, {}", what.one_line()),
    };
    ask_about(d, id, Some(run_id), cause, question, &["allow", "deny"], None, Some(what))?;
    Ok(true)
}

/// The same after the turn was taken: its own audit has used up what was allowed once.
fn cause_to_ask_now(
    d: &Draft,
    run_id: &RunId,
    call: &run::ToolCall,
) -> Result<Option<ApprovalCause>, Refusal> {
    cause_to_ask(d, d.run(run_id)?, call)
}

/// A person has decided about a call that an agent outside reported: it begins now, or never.
pub(super) fn call_decided(
    d: &mut Draft,
    run_id: &RunId,
    call: Option<&AskedCall>,
    allow: bool,
    note: &str,
) -> Ruled {
    let Some(call) = call.filter(|_| matches!(d.world.run(run_id), Some(run) if is_outside(run))) else {
        return Ok(());
    };
    let run = d.run(run_id)?;
    let digest = call_digest(&call.tool, &call.input);
    let found = run.audit.open_calls.iter().find(|(_, open)| open.digest == digest);
    let Some(id) = found.map(|(id, _)| id.clone()) else { return Ok(()) };
    let turn = run.machine.inner().current_turn;
    if !allow {
        let why = format!("a person denied this call: {note}");
        audit_result(d, run_id, &id, &call.tool, false, &why, 0);
        return Ok(());
    }
    d.emit(ToolAudited {
        id: run_id.clone(),
        call: id,
        tool: call.tool.clone(),
        turn,
        digest,
        status: run::ToolStatus::Running,
        input: Some(serde_json::Value::Object(call.input.clone()).to_string()),
        output: None,
        millis: None,
        began: true,
    });
    Ok(())
}

fn is_outside(run: &crate::world::Run) -> bool {
    matches!(run.holder, Holder::Outside(_))
}

/// What the turn used may have passed a budget: a person raises it, or the run waits.
fn outside_budget(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Ruled {
    let run = d.run(run_id)?;
    if !run.is_live() || run.state() != run::State::Running {
        return Ok(());
    }
    match budget::passed(&d.world, d.task(id)?, run, d.day()) {
        Some(room) => budget_reached(d, run_id, &room),
        None => Ok(()),
    }
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
    let asked = d.world.task(&d.run(run_id)?.task).and_then(|task| task.approval.as_ref());
    if let (Some(approval), run::State::Paused, None) = (asked, d.run(run_id)?.state(), &reply.code) {
        reply.code = Some(SmolStr::new_static("AGENT_APPROVAL_REQUIRED"));
        reply.message = Some(format!(
            "a person decides `{approval}` first: look at the run until it is running again, then at the audit of its calls"
        ));
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
            if holder_worker(&run.holder).is_some() && d.task(&id)?.work.place.is_some() {
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
    let current = task.work.run.as_ref() == Some(&run.id);
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
    if outside && task.work.lease.as_ref().is_some_and(|lease| lease.holder == run.holder) {
        return d.move_run_by(&run.id, Wrapped::Inner(event.clone()), d.caller(false)).map(drop);
    }
    let fails = current && (task.status() == Status::Blocked || task.work.lease.is_some());
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
pub(super) fn resume_outside(
    d: &mut Draft,
    id: &TaskId,
    run_id: &RunId,
    said: &str,
) -> Result<bool, Refusal> {
    if !give_back_outside(d, id, run_id)? {
        return Ok(false);
    }
    let max_turns = d.run(run_id)?.next_max_turns;
    if max_turns.is_some() {
        d.emit(TurnsRaised { id: run_id.clone(), to: None });
    }
    let feedback = Some(said.trim()).filter(|said| !said.is_empty()).map(str::to_owned);
    d.step_run(run_id, run::Event::Resume { feedback, input: None, max_turns })?;
    Ok(true)
}

/// The task goes back to the agent outside that has the run.
pub(super) fn give_back_outside(d: &mut Draft, id: &TaskId, run_id: &RunId) -> Result<bool, Refusal> {
    let (task, run) = (d.task(id)?, d.run(run_id)?);
    let holder = run.holder.clone();
    let open = task.status() == Status::InProgress
        && task.work.lease.is_none()
        && task.work.run.as_ref() == Some(run_id);
    let paused = run.state() == run::State::Paused && !run.is_suspended();
    // A log of an earlier version may have two runs of one agent.
    let busy = |agent: &AgentName| d.world.run_outside(agent).is_some_and(|other| other.id != *run_id);
    let Holder::Outside(agent) = &holder else { return Ok(false) };
    if !open || !paused || busy(agent) {
        return Ok(false);
    }
    d.rule(Rule::OutsideRun);
    give_lease(d, id, holder)?;
    renew_outside(d, id);
    Ok(true)
}
