//! Tools for channels: reading, speaking and ending a turn in one.

use serde_json::{Value, json};

use super::calls::{Answer, Input, ToolContext, bad, named, read as arguments, told};
use super::inputs;
use api::Failure;
use api::Method::Post;

/// What a reader is shown that does not say where to begin.
const LAST: u32 = 50;

/// The channel that is meant: the one that is named, or the caller's own.
fn path(context: &ToolContext, channel: Option<String>) -> Result<String, Failure> {
    let channel = channel.or_else(|| context.caller.channel.clone()).ok_or_else(|| {
        let known = context.caller.channels.join(", ");
        let hint = match known.is_empty() {
            true => "`list_channels` lists them".to_owned(),
            false => format!("you are in {known}"),
        };
        bad("`channel` is missing: the name of a channel").hint(hint)
    })?;
    Ok(format!("/channels/{}", named("channel", &channel)?))
}

pub fn list(context: &ToolContext, input: Input) -> Answer {
    arguments::<api::types::Nothing>(input)?;
    Ok(context.get("/channels", Vec::new())?.into())
}

pub fn show(context: &ToolContext, input: Input) -> Answer {
    let inputs::OneChannel { channel } = arguments(input)?;
    Ok(context.get(&path(context, Some(channel))?, Vec::new())?.into())
}

pub fn read(context: &ToolContext, input: Input) -> Answer {
    let inputs::ReadChannel { channel, after, search } = arguments(input)?;
    let path = path(context, channel)?;
    let mut query = match after {
        Some(after) => vec![("after", after.to_string()), ("limit", "1000".to_owned())],
        None => vec![("last", LAST.to_string())],
    };
    query.extend(search.map(|search| ("search", search)));
    let page = context.get(&format!("{path}/messages"), query)?;
    let text: Vec<String> = page["items"].as_array().into_iter().flatten().map(line).collect();
    let text = if text.is_empty() { "Nothing new.".to_owned() } else { text.join("\n") };
    Ok(told(page, text))
}

/// `ann: …`, or what the channel itself announced.
fn line(entry: &Value) -> String {
    let text = entry["text"].as_str().unwrap_or_default();
    match entry["by"].as_str() {
        Some(by) => format!("{}: {text}", by.split_once(':').map_or(by, |(_, name)| name)),
        None => format!("[{text}]"),
    }
}

pub fn post(context: &ToolContext, input: Input) -> Answer {
    let inputs::PostToChannel { channel, text } = arguments(input)?;
    let path = path(context, channel)?;
    Ok(context.send(Post, &format!("{path}/messages"), json!({ "text": text }))?.into())
}

pub fn complete(context: &ToolContext, input: Input) -> Answer {
    let inputs::CompleteTurn { channel, text } = arguments(input)?;
    let path = path(context, channel)?;
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        context.send(Post, &format!("{path}/messages"), json!({ "text": text }))?;
    }
    let after = context.send(Post, &format!("{path}/turn"), json!({ "action": "complete" }))?;
    Ok(told(
        json!({ "channel": after["name"], "turn": after["turn"] }),
        "Your turn is over. End your reply now.",
    ))
}

pub fn wait(context: &ToolContext, input: Input) -> Answer {
    let inputs::WaitInTurn { channel, reason, seconds } = arguments(input)?;
    let path = path(context, channel)?;
    let word = json!({ "action": "wait", "note": reason, "seconds": seconds });
    let after = context.send(Post, &format!("{path}/turn"), word)?;
    let text = "You keep the turn. End your reply now; you are asked again when the wait is over.";
    Ok(told(json!({ "channel": after["name"], "turn": after["turn"] }), text))
}

pub fn decide(context: &ToolContext, input: Input) -> Answer {
    let inputs::DecideReview { channel, approve, note } = arguments(input)?;
    let path = path(context, channel)?;
    let said = json!({ "approve": approve, "note": note.unwrap_or_default() });
    Ok(context.send(Post, &format!("{path}/decision"), said)?.into())
}
