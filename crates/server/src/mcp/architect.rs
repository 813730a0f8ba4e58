//! Tools of the architect's agent, in its own seat: each answers the request that it has in hand.

use super::calls::{Answer, ToolAnswer, ToolContext};
use api::types::architect::{ArchitectAnswer, Says};
use api::types::{Nothing, tool as input};
use api::{Exit, Failure, architect};

/// What is no answer is an error of the tool, so that the agent reads why and tries again.
fn say(context: &ToolContext, said: &ArchitectAnswer, done: &str) -> Answer {
    let taken = context.call(architect::answer, &(), &Nothing {}, said)?;
    match taken.accepted {
        true => Ok(ToolAnswer::told(&taken, format!("{done} End your reply now."))),
        false => {
            let why = taken.message.unwrap_or_else(|| "it is no answer".to_owned());
            Err(Failure::new(Exit::Refused, format!("not accepted: {why}")))
        }
    }
}

fn with_text(answer: Says, text: Option<String>) -> ArchitectAnswer {
    ArchitectAnswer { answer, text, stories: None }
}

pub fn submit_stories(context: &ToolContext, input: input::Stories) -> Answer {
    let said = ArchitectAnswer { answer: Says::Stories, text: None, stories: Some(input.stories) };
    say(context, &said, "The stories are on the board.")
}

pub fn spec_feedback(context: &ToolContext, input: input::Feedback) -> Answer {
    say(context, &with_text(Says::Feedback, Some(input.text)), "The author is told.")
}

pub fn escalate(context: &ToolContext, input: input::Escalation) -> Answer {
    say(context, &with_text(Says::Escalate, Some(input.why)), "A person is asked.")
}

pub fn decide(context: &ToolContext, said: input::ChannelReview) -> Answer {
    match said.approve {
        true => say(context, &with_text(Says::Approve, said.note), "It is approved."),
        false => say(context, &with_text(Says::Changes, said.note), "It goes back with what you said."),
    }
}

pub fn answer(context: &ToolContext, answer: String) -> Answer {
    say(context, &with_text(Says::Answer, Some(answer)), "Your answer is passed on.")
}
