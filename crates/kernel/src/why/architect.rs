//! What the architect keeps waiting, in words.

use crate::World;
use crate::choice::Choice;
use crate::rooms::Seat;
use crate::words::RequestKind;
use crate::world::{Request, Task};
use machines::architect::State;

/// The review of finished work that was asked of the architect and is not done.
pub(super) fn review_of<'w>(world: &'w World, task: &Task) -> Option<&'w Request> {
    let is_review = |asked: &&std::sync::Arc<Request>| {
        matches!(asked.kind, RequestKind::Code | RequestKind::Completion)
            && asked.task.as_ref() == Some(&task.id)
            && world.is_open_request(asked)
    };
    world.requests.values().find(is_review).map(AsRef::as_ref)
}

/// Where something stands that was asked of the architect, and what a person can do about it. `None` where it does not wait for
/// the architect at all.
pub(super) fn stands(world: &World, asked: &Request) -> Option<(String, Option<Choice>)> {
    world.config.architect.as_ref()?;
    let id = &asked.id;
    let answer = |request: &Request| Some(Choice::AnswerQuestion { request: request.id.clone() });
    if asked.for_person {
        return Some((format!("the architect leaves `{id}` to a person"), answer(asked)));
    }
    let place = world.architect_queue.iter().position(|queued| queued == id)? + 1;
    let queued = format!("`{id}` is at place {place} of the architect's queue");
    let architect = world.architect.as_ref();
    if let Some(suspension) = architect.and_then(|architect| architect.suspension()) {
        let name = machines::names::ServiceName::new(&suspension.service).ok();
        let name = name.map_or_else(|| suspension.service.to_string(), |name| super::service_words(&name));
        let why = format!("{queued}, and the architect is suspended: {name} is unavailable");
        return Some((why, Some(Choice::RetryServices)));
    }
    let inner = architect.map(|architect| architect.inner());
    let in_hand = world.in_hand();
    Some(match inner.map(|inner| inner.state) {
        Some(State::InError) => {
            let cause = inner.and_then(|inner| inner.cause.as_deref()).unwrap_or("no reason was given");
            (format!("{queued}, and the architect has stopped ({cause})"), Some(Choice::RecoverArchitect))
        }
        Some(State::Escalated) if let Some(held) = in_hand.filter(|held| held.id != *id) => {
            let why = format!("{queued}, and the architect waits for a person about `{}`", held.id);
            (why, answer(held))
        }
        _ if in_hand.is_some_and(|held| held.id == *id) => {
            let reply = world.seated(&Seat::Architect).and_then(|seated| seated.reply.as_ref());
            let before = reply.and_then(|reply| world.shown_in(reply)).filter(|(shown, _)| *shown != id);
            let why = match before {
                Some((shown, _)) => format!("`{id}` is next: the architect's reply to `{shown}` ends first"),
                None => format!("the architect has `{id}` in hand"),
            };
            (why, None)
        }
        _ => (queued, None),
    })
}
