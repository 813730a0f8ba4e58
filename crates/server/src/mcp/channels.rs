//! Tools for channels: reading, and ending a turn in one.

use serde::Serialize;

use super::calls::{Answer, ToolAnswer, ToolContext, named_of};
use api::types::channel::{
    Channel, Entry, HeldTurn, MessagesQuery, NewMessage, ReviewDecision, TurnAction, TurnWord,
};
use api::types::{Cursor, Limit, Nothing, PAGE_MAX, tool as input};
use api::{Failure, channels};
use machines::names::ChannelName;

/// What a reader is shown that does not say where to begin.
const LAST: usize = 50;

/// The channel that is meant: the one that is named, or the caller's own.
fn channel(context: &ToolContext, named: Option<ChannelName>) -> Result<ChannelName, Failure> {
    named.map_or_else(|| named_of("channel", &api::offered_tool::own_channel(context.caller)?), Ok)
}

pub fn read(context: &ToolContext, input: input::ReadChannel) -> Answer {
    let (after, limit, last) = match input.after {
        Some(after) => (Some(Cursor(after)), Some(Limit(PAGE_MAX)), None),
        None => (None, None, Some(Limit(LAST))),
    };
    let query = MessagesQuery { search: input.search, after, limit, last, ..MessagesQuery::default() };
    let channel = channel(context, input.channel)?;
    let page = context.call(channels::messages, &channel, &query, &Nothing {})?;
    let text: Vec<String> = page.items.iter().map(line).collect();
    let text = if text.is_empty() { "Nothing new.".to_owned() } else { text.join("\n") };
    Ok(ToolAnswer::told(&page, text))
}

/// `ann: …`, or what the channel itself announced.
fn line(entry: &Entry) -> String {
    let text = entry.text.as_deref().unwrap_or_default();
    match &entry.by {
        Some(by) => format!("{}: {text}", by.split_once(':').map_or(by.as_str(), |(_, name)| name)),
        None => format!("[{text}]"),
    }
}

/// Who has the turn now.
#[derive(Serialize)]
struct TurnNow {
    channel: String,
    turn: Option<HeldTurn>,
}

fn now(after: Channel) -> TurnNow {
    TurnNow { channel: after.name, turn: after.turn }
}

pub fn complete(context: &ToolContext, input: input::LastWords) -> Answer {
    let channel = channel(context, input.channel)?;
    if let Some(text) = input.text.filter(|text| !text.trim().is_empty()) {
        context.call(channels::post, &channel, &Nothing {}, &NewMessage { text })?;
    }
    let word = TurnWord::of(TurnAction::Complete);
    let after = context.call(channels::turn, &channel, &Nothing {}, &word)?;
    Ok(ToolAnswer::told(&now(after), "Your turn is over. End your reply now."))
}

pub fn wait(context: &ToolContext, input: input::WaitInTurn) -> Answer {
    let channel = channel(context, input.channel)?;
    let (note, seconds) = (Some(input.reason), input.seconds);
    let word = TurnWord { note, seconds, ..TurnWord::of(TurnAction::Wait) };
    let after = context.call(channels::turn, &channel, &Nothing {}, &word)?;
    let text = "You keep the turn. End your reply now; you are asked again when the wait is over.";
    Ok(ToolAnswer::told(&now(after), text))
}

pub fn decide(context: &ToolContext, said: input::ChannelReview) -> Answer {
    let channel = channel(context, said.channel)?;
    let decision = ReviewDecision { approve: said.approve, note: said.note.unwrap_or_default() };
    Ok(ToolAnswer::of(&context.call(channels::decide, &channel, &Nothing {}, &decision)?))
}
