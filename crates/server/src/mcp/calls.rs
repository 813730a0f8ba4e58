//! What a tool does with what it is given. A plain one is a request of its operation, and nothing beside it; the others
//! have code of their own here, by the word in their row.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::context::{Answer, ToolAnswer, ToolContext, bad, named_of};
use super::{architect, channels, work};
use api::offered_tool::OfferedTool;
use api::tool::OwnCode;
use api::types::approval;
use api::types::request::NewAnswer;
use api::types::task::Review;
use api::types::{Nothing, tool as input};
use api::{Failure, board, fleet, requests};

type Input = Map<String, Value>;

/// Calls a tool. It may block.
pub fn call(context: &ToolContext, offered: OfferedTool, input: Input) -> Answer {
    match offered.tool.own_code {
        None => {
            let structured = context.backend.ask(offered.request(context.caller, input)?)?;
            Ok(ToolAnswer { structured, text: None })
        }
        Some(OwnCode::Answer) => answer(context, read(input)?),
        Some(OwnCode::Approve) => decide(context, read(input)?, true),
        Some(OwnCode::Ask) => work::ask(context, read(input)?),
        Some(OwnCode::CompleteTurn) => channels::complete(context, read(input)?),
        Some(OwnCode::DecideReview) => decide_review(context, read(input)?),
        Some(OwnCode::Deny) => decide(context, read(input)?, false),
        Some(OwnCode::Escalate) => architect::escalate(context, read(input)?),
        Some(OwnCode::ReadChannel) => channels::read(context, read(input)?),
        Some(OwnCode::ReportProgress) => work::report_progress(context, read(input)?),
        Some(OwnCode::RequestApproval) => work::request_approval(context, read(input)?),
        Some(OwnCode::SpecFeedback) => architect::spec_feedback(context, read(input)?),
        Some(OwnCode::SubmitForReview) => work::submit_for_review(context, read(input)?),
        Some(OwnCode::SubmitPlan) => work::submit_plan(context, read(input)?),
        Some(OwnCode::SubmitStories) => architect::submit_stories(context, read(input)?),
        Some(OwnCode::TaskDone) => work::claim(context, read(input)?),
        Some(OwnCode::WaitInTurn) => channels::wait(context, read(input)?),
        Some(OwnCode::Why) => why(context, read(input)?),
    }
}

/// The arguments as what a tool takes. What is wrong with them is said in serde's words, which name field and value.
fn read<T: DeserializeOwned>(input: Input) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(input))
        .map_err(|error| bad(format!("the arguments are not right: {error}")))
}

/// The architect answers what it has in hand; a person says which question is meant.
fn answer(context: &ToolContext, given: input::AnswerInWords) -> Answer {
    if context.caller.is_architect() {
        return architect::answer(context, given.answer);
    }
    let question = given.question.ok_or_else(|| bad("`question` is missing: the id of a question"))?;
    let answer = NewAnswer { text: Some(given.answer), abandon: false };
    Ok(ToolAnswer::of(&context.call(requests::answer, &question, &Nothing {}, &answer)?))
}

/// The architect's own review, or one that a room is for.
fn decide_review(context: &ToolContext, said: input::ChannelReview) -> Answer {
    match context.caller.is_architect() {
        true => architect::decide(context, said),
        false => channels::decide(context, said),
    }
}

fn decide(context: &ToolContext, said: input::Decision, approve: bool) -> Answer {
    let note = said.note.unwrap_or_default();
    match (said.approval, said.task) {
        (Some(approval), None) => {
            let decision = approval::Decide { approve, note, ..approval::Decide::default() };
            Ok(ToolAnswer::of(&context.call(board::decide, &approval, &Nothing {}, &decision)?))
        }
        (None, Some(task)) => {
            let review = Review { approve, tip: said.tip, note };
            Ok(ToolAnswer::of(&context.call(board::review, &task, &Nothing {}, &review)?))
        }
        _ => Err(bad("give either `approval`, the id of a request, or `task`, the id of a task in REVIEW")
            .hint("`waiting` lists what waits for a person")),
    }
}

fn why(context: &ToolContext, about: input::Why) -> Answer {
    let own = || context.caller.task.as_deref().map(|task| named_of("task", task)).transpose();
    match about.task.map_or_else(own, |task| Ok(Some(task)))? {
        Some(task) => Ok(ToolAnswer::of(&context.call(board::why, &task, &Nothing {}, &Nothing {})?)),
        None => Ok(ToolAnswer::of(&context.call(fleet::why_all, &(), &Nothing {}, &Nothing {})?)),
    }
}
