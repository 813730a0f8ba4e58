//! Tools of an agent at work: its plan, its questions and its word that it is done.

use serde::Serialize;

use super::calls::{Answer, ToolAnswer, ToolContext, named_of};
use api::types::request::{Claim, NewRequest, Plan, ShowQuery, Wish};
use api::types::task::{NewComment, Task, WorkPlan};
use api::types::{Nothing, tool as input};
use api::{board, requests};
use machines::names::{ApprovalId, RequestId};
use machines::task::Status;

/// Of a task, its plan.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    work_plan: Option<WorkPlan>,
}

pub fn submit_plan(context: &ToolContext, plan: Plan) -> Answer {
    let task = context.call(requests::plan, &(), &Nothing {}, &plan)?;
    let planned = Planned { work_plan: task.whole.and_then(|whole| whole.work_plan) };
    Ok(ToolAnswer::told(&planned, "The plan is taken. Go on with its first step."))
}

/// What became of a question; without an answer, nobody has answered yet.
#[derive(Serialize)]
struct Questioned {
    question: String,
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// The question is in the log before anybody waits: whatever becomes of this call, the answer is not lost.
pub fn ask(context: &ToolContext, input: input::Question) -> Answer {
    let new = NewRequest {
        text: input.question,
        run: input.run.map(|run| run.to_string()),
        ..NewRequest::default()
    };
    let asked = context.call(requests::ask, &(), &Nothing {}, &new)?;
    let id: RequestId = named_of("question", &asked.id)?;
    let wait = ShowQuery { wait: true };
    let look = || context.call(requests::show, &id, &wait, &Nothing {});
    let given = context.awaited(&format!("{id} waits for an answer"), look, |asked| asked.answer)?;
    let Some(given) = given else {
        let text = match context.caller.outside {
            true => {
                format!("Nobody has answered {id} yet. The answer will stand at `/api/v1/requests/{id}`.")
            }
            false => format!(
                "Nobody has answered {id} yet. The answer will reach you in your next step: end your turn now, without saying \
                 that you are done."
            ),
        };
        return Ok(ToolAnswer::told(&Questioned { question: asked.id, answer: None, by: None }, text));
    };
    // Where this does not get through, the next step tells it once more.
    let _ = context.call(requests::receive, &id, &Nothing {}, &Nothing {});
    let questioned = Questioned { question: asked.id, answer: Some(given.text.clone()), by: Some(given.by) };
    Ok(ToolAnswer::told(&questioned, given.text))
}

/// The task that a comment was left on.
#[derive(Serialize)]
struct Commented {
    task: String,
}

pub fn report_progress(context: &ToolContext, input: input::Progress) -> Answer {
    let task = context.task(input.task)?;
    context.submit(board::comment, &task, &Nothing {}, &NewComment { text: input.text })?;
    Ok(ToolAnswer::told(&Commented { task: task.to_string() }, "It is kept. Go on."))
}

/// What a person said of a wish; `approved` is null while nobody has.
#[derive(Default, Serialize)]
struct Permitted {
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
}

pub fn request_approval(context: &ToolContext, wish: Wish) -> Answer {
    let wished = context.call(requests::wish, &(), &Nothing {}, &wish)?;
    let Some(approval) = wished.approval else {
        let permitted = Permitted { approved: Some(true), ..Permitted::default() };
        let text = "Approved: a person has allowed exactly this for the whole task.";
        return Ok(ToolAnswer::told(&permitted, text));
    };
    let id: ApprovalId = named_of("approval", &approval)?;
    let wait = ShowQuery { wait: true };
    let look = || context.call(board::approval, &id, &wait, &Nothing {});
    let decided = context.awaited(&format!("{id} waits for a person"), look, |approval| approval.decided)?;
    let Some(decided) = decided else {
        let text = match context.caller.outside {
            true => format!(
                "Nobody has decided {id} yet. The decision will stand at `/api/v1/approvals/{id}`; your run waits for it."
            ),
            false => format!(
                "Nobody has decided {id} yet. The decision will reach you in your next step: end your turn now."
            ),
        };
        return Ok(ToolAnswer::told(&Permitted { approval: Some(approval), ..Permitted::default() }, text));
    };
    let approved = decided.decision.contains("approved");
    let note = if decided.note.trim().is_empty() { String::new() } else { format!(": {}", decided.note) };
    let text = match approved {
        true => format!("Approved{note}"),
        false => {
            format!("Not approved ({}){note}. Do not do it; find another way, or ask.", decided.decision)
        }
    };
    let permitted =
        Permitted { approval: Some(approval), approved: Some(approved), decision: Some(decided.decision) };
    Ok(ToolAnswer::told(&permitted, text))
}

pub fn submit_for_review(context: &ToolContext, input: input::ForReview) -> Answer {
    let run = input.run.map(|run| run.to_string());
    claim(context, Claim { summary: Some(input.summary), run })
}

/// A task that its agent calls done.
#[derive(Serialize)]
struct Claimed {
    task: String,
    status: Status,
}

pub fn claim(context: &ToolContext, claim: Claim) -> Answer {
    let Task { line: task, .. } = context.call(requests::claim, &(), &Nothing {}, &claim)?;
    let text = match context.caller.outside {
        true => format!(
            "Noted: your run is complete. Hand the work in by moving the task to REVIEW, with deliverable and checklist, at \
             `/api/v1/tasks/{}/transitions`.",
            task.id
        ),
        false => "Noted. End your turn now: then the work is checked and its tests are run, and what fails comes back to you."
            .to_owned(),
    };
    Ok(ToolAnswer::told(&Claimed { task: task.id, status: task.status }, text))
}
