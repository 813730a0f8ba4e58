//! Ends a running step, answers its questions and sends it messages, whichever process started it.

use std::sync::{Arc, PoisonError};

use kernel::command::{Happened, Usage};
use kernel::effect::{StepEnd, StepMessage};
use kernel::rooms::Seat;
use machines::names::EffectId;
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};

use super::{Step, usage_of};
use crate::kept_command::{self, CommandError};
use crate::{Shared, endings, room_text, step_commands::StepCommand, tip};

/// Ends a step or gate that is no longer wanted, whoever started it, and says when it is gone.
pub async fn end(shared: &Arc<Shared>, of: &StepEnd, step: &EffectId) -> Option<Happened> {
    let finish = matches!(of, StepEnd::Seat { finish: true, .. });
    let usage = match gone(shared, step, finish).await {
        Ok(usage) => usage,
        Err(error) => return Some(endings::failed(error)),
    };
    // An agent that spoke leaves nothing behind.
    let Some(task) = of.task() else { return Some(Happened::StepEnded { tip: None, usage }) };
    match tip::bring_in(shared, task).await {
        Ok(tip) => Some(Happened::StepEnded { tip, usage }),
        // The processes are gone, which is what was asked; the tree is looked at again by whoever needs it.
        Err(error) => {
            shared.notice(format!("{task}: {error}"));
            Some(Happened::StepEnded { tip: None, usage })
        }
    }
}

/// No process of the step is left when it returns, and this is what it used.
async fn gone(shared: &Arc<Shared>, step: &EffectId, finish: bool) -> Result<Usage, CommandError> {
    // A hook at its beginning or end is of the step too, and whoever follows the step waits for it.
    end_hooks(shared, step).await?;
    let way = shared.steps.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned();
    let mut usage = None;
    if let Some(way) = way {
        let (send, receive) = oneshot::channel();
        let word = if finish { StepCommand::Finish(send) } else { StepCommand::End(Some(send)) };
        if way.send(word).is_ok() {
            usage = receive.await.ok();
        }
    }
    kept_command::end(shared, step.as_str()).await?;
    let dir = shared.layout.step(step);
    Ok(usage.unwrap_or_else(|| Step::read(&dir).map_or(Usage::default(), |step| usage_of(&step))))
}

/// Ends every hook that runs for an effect.
async fn end_hooks(shared: &Arc<Shared>, step: &EffectId) -> Result<(), CommandError> {
    let Ok(entries) = std::fs::read_dir(shared.layout.steps()) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(step.as_str()).is_some_and(|rest| rest.starts_with('.')) {
            kept_command::end(shared, &name).await?;
        }
    }
    Ok(())
}

/// Passes a decision on to the call that waits for it. Nobody waits any more: then nobody has to be told.
pub async fn answer(
    shared: &Arc<Shared>,
    step: &EffectId,
    call: &SmolStr,
    allow: bool,
    note: &str,
) -> Option<Happened> {
    if let Some(way) = way_to(shared, step).await {
        let (done, told) = oneshot::channel();
        let word = StepCommand::Answer { call: call.clone(), allow, note: note.to_owned(), done };
        if way.send(word).is_ok() {
            let _ = told.await;
        }
    }
    Some(Happened::CallAnswered)
}

/// Says something to an agent in its step. A message of a room that is not kept any more is heard by nobody.
pub async fn tell(shared: &Arc<Shared>, message: &StepMessage, step: &EffectId) -> Option<Happened> {
    let text = match message {
        StepMessage::Task { text, .. } => Some(text.clone()),
        StepMessage::Seat { seat: Seat::Room { channel, agent }, number } => {
            let world = shared.world();
            world.channel(channel).and_then(|room| room_text::interjection(room, agent, *number))
        }
        StepMessage::Seat { seat: Seat::Architect, .. } => None,
    };
    let Some(text) = text else { return Some(Happened::Told { heard: false }) };
    let mut heard = false;
    if let Some(way) = way_to(shared, step).await {
        let (send, receive) = oneshot::channel();
        if way.send(StepCommand::Tell { text, heard: send }).is_ok() {
            heard = receive.await.unwrap_or(false);
        }
    }
    Some(Happened::Told { heard })
}

/// The way to a step that is asked for, as soon as it has been taken up. `None`: it is over.
async fn way_to(shared: &Arc<Shared>, step: &EffectId) -> Option<mpsc::UnboundedSender<StepCommand>> {
    let mut head = shared.handle.follow();
    loop {
        head.borrow_and_update();
        let way = shared.steps.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned();
        if way.is_some() {
            return way;
        }
        if !shared.world().effects.contains_key(step) || head.changed().await.is_err() {
            return None;
        }
    }
}
