//! Commands to a step or a test run while it runs.

use std::sync::PoisonError;

use kernel::Effect;
use kernel::command::Usage;
use machines::names::EffectId;
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};

use super::Shared;

/// What a step is told from outside.
pub enum StepCommand {
    Answer {
        call: SmolStr,
        allow: bool,
        note: String,
        done: oneshot::Sender<()>,
    },
    /// A person says something; whether the program could hear it is told.
    Tell {
        text: String,
        heard: oneshot::Sender<bool>,
    },
    /// The fleet stops: let the call that is running end, then come to the end of the turn.
    Interrupt,
    /// End the processes; whoever asks is told what was used.
    End(Option<oneshot::Sender<Usage>>),
    /// The same, once the program has come to its own end or has had some time for it.
    Finish(oneshot::Sender<Usage>),
}

/// Makes a step or a gate known before it begins, so that whoever must end it can reach it at every moment.
pub fn register(
    shared: &Shared,
    id: &EffectId,
    effect: &Effect,
) -> Option<mpsc::UnboundedReceiver<StepCommand>> {
    let ours = matches!(effect, Effect::StartStep { .. } | Effect::RunGate { .. } | Effect::TestMain { .. });
    ours.then(|| {
        let (send, receive) = mpsc::unbounded_channel();
        shared.steps.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), send);
        receive
    })
}
