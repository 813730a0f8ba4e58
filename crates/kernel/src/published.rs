//! What a run tells its readers, made of the log's events: each gives the same again, whenever it is read.
//!
//! Nothing of it is stored. The event says what the run took and where it stood; its table says what that publishes. The
//! order is the log's. `stream:token` is not here: what an agent writes piece by piece comes from its program.

use crate::event::{Event, RunMoved, Stood, ToolAudited};
use crate::world::{self, TOOL_NOT_ALLOWED};
use machines::names::RunId;
use machines::run::{self, Effect, StreamEvent, ToolEvent, ToolStatus};
use machines::suspended::{Suspendable, Wrapped};
use machines::task::Status;
use smol_str::SmolStr;

/// What the event tells the readers of a run, in order.
pub fn of(event: &Event) -> Vec<(RunId, StreamEvent)> {
    match event {
        Event::RunMoved(e) => moved(e).into_iter().map(|told| (e.id.clone(), told)).collect(),
        Event::ToolAudited(e) => {
            start(e).or_else(|| result(e)).map(|told| (e.id.clone(), told)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Where the run stands, as far as what it publishes tells of it.
pub(crate) fn stood(run: &world::Run, machine: &Suspendable<run::Run>, event: &Wrapped<run::Event>) -> Stood {
    let inner = machine.inner();
    let starts = matches!(event, Wrapped::Inner(run::Event::Start { .. }));
    let session = inner.task.as_ref().and_then(|task| task.session.clone());
    Stood {
        task: run.task.clone(),
        turn: inner.current_turn,
        max_turns: inner.max_turns,
        session: session.filter(|_| starts),
        suspended: machine.suspension().cloned(),
    }
}

/// What the row that took the event published. An event of a version that did not say where the run stood gives nothing.
pub(crate) fn moved(e: &RunMoved) -> Vec<StreamEvent> {
    let Some(stood) = &e.stood else { return Vec::new() };
    let inner = run::Run {
        state: machines::Wire::read(&e.from).unwrap_or(e.state),
        current_turn: stood.turn,
        max_turns: stood.max_turns,
        task: Some(run::TaskFacts {
            id: SmolStr::new(stood.task.as_str()),
            status: Status::InProgress,
            mine: true,
            session: stood.session.clone(),
        }),
        ..run::Run::default()
    };
    match (&stood.suspended, &e.input) {
        (None, Wrapped::Inner(event)) => {
            let mut inner = inner;
            asked(&machines::replay(&mut inner, event, e.state).unwrap_or_default())
        }
        (None, _) => Vec::new(),
        (Some(suspended), event) => {
            let mut machine = Suspendable::Suspended { suspended: suspended.clone(), inner };
            asked(&machine.advance(event, None).unwrap_or_default())
        }
    }
}

/// What a row asked to be published.
pub(crate) fn asked(effects: &[Effect]) -> Vec<StreamEvent> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Publish { event } => Some(event.clone()),
        Effect::AuditTools { .. } | Effect::Release => None,
    });
    told.collect()
}

/// A call that waited for a person and begins now.
fn start(e: &ToolAudited) -> Option<StreamEvent> {
    let input = e.input.as_deref().filter(|_| e.began)?;
    let input = serde_json::from_str(input).unwrap_or_default();
    Some(ToolEvent::Start { id: e.call.clone(), tool: e.tool.clone(), input }.into())
}

/// A call that has ended. One that was refused never began, so readers have heard of no start either.
fn result(e: &ToolAudited) -> Option<StreamEvent> {
    let ended = matches!(e.status, ToolStatus::Complete | ToolStatus::Error);
    let output = e.output.as_ref().filter(|output| ended && *output != TOOL_NOT_ALLOWED)?;
    let (id, tool) = (e.call.clone(), e.tool.clone());
    Some(ToolEvent::Result { id, tool, output: output.clone(), duration: e.millis }.into())
}
