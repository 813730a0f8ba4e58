//! A channel as commands name it and show it.

use super::terminal::duration;
use super::text::{self, visible};
use super::{Exit, Failure};
use api::types::channel::{Channel, HeldTurn};
use machines::turn::State;

/// The path of a channel; what cannot be a name is told before anybody is asked.
pub fn path(channel: &str) -> Result<String, Failure> {
    let name = machines::names::ChannelName::new(channel);
    let name = name.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    Ok(format!("/channels/{name}"))
}

/// Who has the turn, or why nobody has it, in a few words.
pub fn turn_words(channel: &Channel) -> String {
    match (&channel.turn, &channel.why) {
        (Some(turn), _) => held(turn),
        (None, Some(why)) => visible(why),
        (None, None) => "nobody has the turn".to_owned(),
    }
}

fn held(turn: &HeldTurn) -> String {
    let agent = visible(&turn.agent);
    let left =
        turn.until.as_deref().and_then(text::seconds_until).map(|seconds| duration(seconds.max(0) * 1000));
    let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
    match turn.state {
        State::Waiting => {
            let note =
                turn.note.as_deref().map(|note| format!(" for: {}", visible(note))).unwrap_or_default();
            let why = turn.wait_reason.filter(|_| turn.note.is_none()).map(|reason| match reason {
                machines::turn::WaitReason::HumanInterrupt => " after a person's message",
                machines::turn::WaitReason::Service => " for its service",
                machines::turn::WaitReason::Requested => "",
            });
            format!("{agent} waits{note}{}{left}", why.unwrap_or_default())
        }
        _ => format!("{agent} has the turn{left}"),
    }
}
