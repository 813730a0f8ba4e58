//! What an agent at work says and asks by itself: its plan, its questions, its word that the work is done.

use machines::names::{EffectId, RequestId, RunId, TaskId};
use machines::run;
use machines::task::ApprovalCause;
use machines::worker::ReleaseReason;
use smol_str::{SmolStr, format_smolstr};

use super::Rule;
use super::architect;
use super::next::wake;
use super::outside_runs::run_event;
use super::release::{ask_about, ask_person, pause_run, release};
use super::replies::task_reply;
use super::step::seconds;
use crate::World;
use crate::checks::check_text;
use crate::choice::Choice;
use crate::command::{Refusal, Reply};
use crate::draft::Draft;
use crate::effect::{Effect, Timer};
use crate::event::{AnswerTold, CompletionClaimed, PlanSubmitted, RequestAnswered, Requested};
use crate::words::{CommentKind, RequestKind};
use crate::world::{ASKED_BY_TOOL, AskedCall, CALL_BYTES_MAX, Holder, REQUESTS_OPEN_MAX};

/// Where an agent speaks from.
enum Speaks {
    /// The step of the fleet that it is at work in now.
    Step(EffectId),
    /// A run that it reports itself, and whose task it holds.
    Outside,
}

fn speaks(d: &Draft, id: &RunId) -> Result<Speaks, Refusal> {
    let run = d.run(id)?;
    if matches!(run.holder, Holder::Outside(_)) {
        let leased = d.task(&run.task)?.work.lease.as_ref().is_some_and(|lease| lease.holder == run.holder);
        let current = d.task(&run.task)?.work.run.as_ref() == Some(id);
        return match leased && current && run.is_live() {
            true => Ok(Speaks::Outside),
            false => {
                let message = format!("run `{id}` is {} and not under way", run.machine.name());
                Err(Refusal::new(409, "NOT_RUNNING", message)
                    .hint("only an agent that is at work says this: report START first, or wait until the run goes on"))
            }
        };
    }
    let is_step = |step: &&EffectId| {
        matches!(d.world.effects.get(*step).map(AsRef::as_ref), Some(Effect::StartStep { .. }))
    };
    match run.step.as_ref().filter(is_step) {
        Some(step) if run.state() != run::State::Paused => Ok(Speaks::Step(step.clone())),
        _ => Err(Refusal::new(409, "NO_STEP", format!("run `{id}` has no step under way"))
            .hint("only an agent that is at work in a step says this")),
    }
}

pub(crate) fn submit_plan(d: &mut Draft, run: &RunId, plan: &[String]) -> Result<Reply, Refusal> {
    let id = d.run(run)?.task.clone();
    speaks(d, run)?;
    if !d.world.config.fleet.plan_by_agent {
        let message = "the plan of this project's tasks does not come from their agents";
        return Err(Refusal::new(409, "PLAN_GIVEN", message)
            .hint("go on by the plan that the task has; `plan = \"agent\"` in [fleet] leaves it to agents"));
    }
    let plan: Vec<String> = plan.iter().map(|step| step.trim().to_owned()).collect();
    for step in &plan {
        check_text(&d.world, "plan", Some(step))?;
    }
    d.rule(Rule::PlanSubmitted);
    let lines: Vec<String> = plan.iter().map(|step| format!("- {step}")).collect();
    d.emit(PlanSubmitted { id: id.clone(), run: run.clone(), plan });
    let by = d.command.actor.to_string();
    d.comment(&id, &by, CommentKind::Plan, lines.join("\n"));
    architect::plan_submitted(d, &id, &lines.join("\n"))?;
    task_reply(d, &id)
}

pub(crate) fn claim_done(d: &mut Draft, run: &RunId, summary: Option<&str>) -> Result<Reply, Refusal> {
    let id = d.run(run)?.task.clone();
    let speaks = speaks(d, run)?;
    check_text(&d.world, "summary", summary)?;
    let summary = summary.map(str::trim).filter(|summary| !summary.is_empty()).map(str::to_owned);
    match speaks {
        Speaks::Step(step) => d.emit(CompletionClaimed { id: run.clone(), step, summary }),
        // It has no step that would end, and no tree of ours that a gate could look at: its word is its report.
        Speaks::Outside => {
            let turn_count = d.run(run)?.machine.inner().current_turn.max(1);
            let result = summary.unwrap_or_else(|| "done".to_owned());
            run_event(d, run, &run::Event::Complete { result, diff: None, turn_count })??;
        }
    }
    task_reply(d, &id)
}

/// The same as a red call, but that the agent asks before it makes the call, and by itself.
pub(crate) fn ask_approval(d: &mut Draft, run_id: &RunId, asked: AskedCall) -> Result<Reply, Refusal> {
    let id = d.run(run_id)?.task.clone();
    let speaks = speaks(d, run_id)?;
    if asked.tool.trim().is_empty() {
        return Err(Refusal::field("tool", "say which tool or action it is"));
    }
    if asked.bytes() > CALL_BYTES_MAX {
        let message = format!("it is longer than the {CALL_BYTES_MAX} bytes that a person is shown");
        return Err(Refusal::field("input", message));
    }
    if d.task(&id)?.work.allowed.iter().any(|allowed| allowed.is_same(&asked)) {
        let code = Some(SmolStr::new_static("ALLOWED"));
        return Ok(Reply { code, ..task_reply(d, &id)? });
    }
    if matches!(speaks, Speaks::Step(_)) {
        // A call before its turn was told: the run has begun all the same.
        super::step::ensure_turn(d, run_id, 1)?;
    }
    let run = d.run(run_id)?;
    if run.state() != run::State::Running || run.is_suspended() {
        return Err(Refusal::new(409, "NOT_RUNNING", format!("run `{run_id}` is {}", run.machine.name()))
            .hint("ask again when it goes on"));
    }
    d.rule(Rule::ActionAsked);
    pause_run(d, run_id, run::PauseReason::ApprovalRequired)?;
    let question = format!("The agent asks to use {}", asked.one_line());
    let cause = ApprovalCause::RedAction;
    if matches!(speaks, Speaks::Outside) {
        // Nobody here holds its program back: it has its task again with the decision.
        release(d, &id, ReleaseReason::NeedsApproval)?;
        let options = &["allow", "deny"];
        let approval = ask_about(d, &id, Some(run_id), cause, question, options, None, Some(asked))?;
        return Ok(Reply { id: Some(SmolStr::new(approval.as_str())), ..task_reply(d, &id)? });
    }
    let call = format_smolstr!("{ASKED_BY_TOOL}{}", d.new_approval_id());
    let approval =
        ask_person(d, &id, Some(run_id), cause, question, &["allow", "deny"], Some((call, asked)))?;
    let due = d.at() + seconds(d.world.config.limits.question_seconds);
    d.set_timer(Timer::Question { approval: approval.clone() }, due);
    Ok(Reply { id: Some(SmolStr::new(approval.as_str())), ..task_reply(d, &id)? })
}

pub(crate) fn make_request(
    d: &mut Draft,
    kind: RequestKind,
    task: Option<&TaskId>,
    run: Option<&RunId>,
    text: &str,
) -> Result<Reply, Refusal> {
    let task = match run {
        Some(run) => {
            speaks(d, run)?;
            let own = d.run(run)?.task.clone();
            if task.is_some_and(|task| *task != own) {
                return Err(Refusal::field("task", format!("an agent asks about its own task, `{own}`")));
            }
            Some(own)
        }
        None => task.cloned(),
    };
    if let Some(task) = &task
        && d.task(task)?.is_final()
    {
        let message = format!("task `{task}` is over; nobody is asked about it any more");
        return Err(Refusal::new(409, "CLOSED", message));
    }
    if kind != RequestKind::Question {
        return Err(Refusal::field(
            "kind",
            "only a question is asked in words; the rest is asked by what happens",
        ));
    }
    check_text(&d.world, "text", Some(text))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::field("text", "a question must not be empty"));
    }
    let by = SmolStr::new(d.command.actor.to_string());
    let open = d.world.requests.values().filter(|asked| d.world.is_open_request(asked));
    let same = open.filter(|asked| match &task {
        Some(_) => asked.task == task,
        None => asked.task.is_none() && asked.by == by,
    });
    if same.count() >= REQUESTS_OPEN_MAX {
        let message = format!("{REQUESTS_OPEN_MAX} questions wait for an answer already");
        return Err(Refusal::new(409, "TOO_MANY_QUESTIONS", message)
            .hint("wait for the answers, or put them into one"));
    }
    d.rule(Rule::QuestionAsked);
    let id = RequestId::new(format!("r{}", d.world.next + 1)).expect("a counted id is a name");
    let (run, text) = (run.cloned(), text.to_owned());
    let by_agent = run.is_some();
    d.emit(Requested { id: id.clone(), kind, task, run, by, at: d.at(), text, spec: None, tip: None });
    if by_agent && architect::takes_questions(d) {
        architect::enqueue(d, &id)?;
    }
    Ok(Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() })
}

pub(crate) fn answer_request(d: &mut Draft, id: &RequestId, text: &str) -> Result<Reply, Refusal> {
    let asked = d.world.requests.get(id).cloned();
    let asked = asked.ok_or_else(|| Refusal::not_found("question", id).next([Choice::ListRequests]))?;
    if let Some(given) = &asked.answer {
        let message = format!("`{id}` was answered already, by {}: {}", given.by, given.text);
        return Err(Refusal::new(409, "ANSWERED", message));
    }
    if !d.world.is_open_request(&asked) {
        let message = format!("`{id}` is about a task that is over; nobody waits for the answer");
        return Err(Refusal::new(409, "CLOSED", message));
    }
    check_text(&d.world, "text", Some(text))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::field("text", "an answer must not be empty"));
    }
    d.rule(Rule::QuestionAnswered);
    // Also where the settings have lost their architect meanwhile: what it has in hand, and its queue, are kept.
    if d.world.is_queued(id) || asked.for_person {
        return architect::person_answers(d, &asked, text);
    }
    let by = SmolStr::new(d.command.actor.to_string());
    let task = asked.task.clone();
    let (at, text) = (d.at(), text.to_owned());
    d.emit(RequestAnswered {
        id: id.clone(),
        task: task.clone(),
        by,
        at,
        text,
        abandoned: false,
        reply: None,
    });
    // A worker whose run waited for the answer has its next step now.
    if let Some(task) = &task {
        wake(d, task)?;
    }
    Ok(Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() })
}

/// Asked twice, it is answered twice: it was told, and that is all.
pub(crate) fn receive_answer(d: &mut Draft, id: &RequestId) -> Result<Reply, Refusal> {
    let asked = d.world.requests.get(id).cloned();
    let asked = asked.ok_or_else(|| Refusal::not_found("question", id))?;
    if asked.answer.is_none() {
        return Err(Refusal::new(409, "NOT_ANSWERED", format!("nobody has answered `{id}` yet")));
    }
    if !asked.told {
        d.emit(AnswerTold { id: id.clone(), task: asked.task.clone() });
    }
    Ok(Reply { id: Some(SmolStr::new(id.as_str())), ..Reply::default() })
}

/// The answers to a task's questions that have reached nobody yet, as the next prompt tells them.
pub(super) fn untold_answers(world: &World, task: &TaskId) -> Vec<(RequestId, String)> {
    let untold = world.requests.values().filter(|asked| !asked.told && asked.task.as_ref() == Some(task));
    let told = untold.filter_map(|asked| {
        // A person who asks has the answer from the list.
        asked.run.as_ref()?;
        let given = asked.answer.as_ref()?;
        let note = format!("You asked: {}\nThe answer of {}: {}", asked.text, given.by, given.text);
        Some((asked.id.clone(), note))
    });
    told.collect()
}
