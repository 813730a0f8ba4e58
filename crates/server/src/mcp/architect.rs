//! Tools of the architect's agent, in its own seat: each answers the request that it has in hand.

use serde_json::json;

use super::calls::{self, Answer, Input, ToolContext, read, told};
use super::{channels, inputs};
use api::Method::Post;
use api::types::architect::{ArchitectAnswer, Taken};
use api::{Exit, Failure};

/// Whether the caller speaks as the architect.
pub fn is_architect(context: &ToolContext) -> bool {
    context.caller.seat.as_deref() == Some("architect")
}

/// What is no answer is an error of the tool, so that the agent reads why and tries again.
fn say(context: &ToolContext, said: &ArchitectAnswer, done: &str) -> Answer {
    let answered = context.send(Post, "/architect/answer", json!(said))?;
    let taken: Taken = calls::understood(answered)?;
    match taken.accepted {
        true => Ok(told(json!(taken), format!("{done} End your reply now."))),
        false => {
            let why = taken.message.unwrap_or_else(|| "it is no answer".to_owned());
            Err(Failure::new(Exit::Refused, format!("not accepted: {why}")))
        }
    }
}

fn with_text(answer: &str, text: Option<String>) -> ArchitectAnswer {
    ArchitectAnswer { answer: answer.to_owned(), text, stories: None }
}

pub fn submit_stories(context: &ToolContext, input: Input) -> Answer {
    let inputs::SubmitStories { stories } = read(input)?;
    let said = ArchitectAnswer { answer: "stories".to_owned(), text: None, stories: Some(stories) };
    say(context, &said, "The stories are on the board.")
}

pub fn spec_feedback(context: &ToolContext, input: Input) -> Answer {
    let inputs::SpecFeedback { text } = read(input)?;
    say(context, &with_text("feedback", Some(text)), "The author is told.")
}

pub fn escalate(context: &ToolContext, input: Input) -> Answer {
    let inputs::Escalate { why } = read(input)?;
    say(context, &with_text("escalate", Some(why)), "A person is asked.")
}

/// The architect's own review, or one that a room is for.
pub fn decide(context: &ToolContext, input: Input) -> Answer {
    if !is_architect(context) {
        return channels::decide(context, input);
    }
    let inputs::DecideReview { approve, note, .. } = read(input)?;
    match approve {
        true => say(context, &with_text("approve", note), "It is approved."),
        false => say(context, &with_text("changes", note), "It goes back with what you said."),
    }
}

/// The architect answers what it has in hand; a person says which question is meant.
pub fn answer(context: &ToolContext, input: Input) -> Answer {
    if !is_architect(context) {
        return calls::answer(context, input);
    }
    let inputs::Answer { answer, .. } = read(input)?;
    say(context, &with_text("answer", Some(answer)), "Your answer is passed on.")
}
