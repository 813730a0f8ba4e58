//! What a worker does, or what it waits for, in the same words wherever it is shown. `view.rs` decides what it is.

use super::types::worker::{Activity, Worker, WorkerWhole};
use crate::format::read_time;
use base::visible::visible;
use machines::Millis;

impl Activity {
    /// Whether it goes on only when something else has happened.
    pub fn waits(&self) -> bool {
        match self {
            Activity::Person { .. }
            | Activity::Service { .. }
            | Activity::Retry { .. }
            | Activity::MainTests
            | Activity::Stuck => true,
            Activity::Idle | Activity::Tree { .. } | Activity::Step | Activity::Tests { .. } => false,
        }
    }
}

/// The step that a worker is at: the one that runs, or the last one.
pub fn step(worker: &WorkerWhole) -> u32 {
    worker.step_count + u32::from(matches!(worker.activity, Activity::Step))
}

/// In few words. The command that helps comes first; nothing where it has nothing to do, or where nobody may know.
pub fn words(worker: &Worker, now: Millis) -> String {
    let Worker { line, whole: Some(whole) } = worker else { return String::new() };
    let name = &line.name;
    visible(&match &whole.activity {
        Activity::Idle => String::new(),
        Activity::Person { approval, .. } => format!("waits for you: adj approve {approval}"),
        Activity::Service { until, .. } => {
            match until.as_deref().and_then(read_time).map(|until| until - now) {
                Some(wait) if wait > 0 => {
                    format!("waits for the model API, next try in {}", kernel::why::duration(wait))
                }
                Some(_) => "waits for the model API, the next try is due".to_owned(),
                None => "waits for the model API".to_owned(),
            }
        }
        Activity::Retry { until } => match read_time(until).map(|until| (until - now) / 1000) {
            Some(seconds) if seconds > 0 => format!("backing off, next try in {seconds} s"),
            _ => "backing off, next try now".to_owned(),
        },
        Activity::MainTests => "waits for main's tests".to_owned(),
        Activity::Tree { .. } => "creates its tree".to_owned(),
        Activity::Tests { since } => match since.as_deref().and_then(read_time) {
            Some(since) => format!("tests running {} s", (now - since).max(0) / 1000),
            None => "tests running".to_owned(),
        },
        Activity::Stuck => format!("adj why {name}, adj retry {name}"),
        Activity::Step => {
            let (step, turn) = (step(whole), whole.turn.unwrap_or(0));
            let last = whole.last_action.as_ref().map_or(String::new(), |last| format!(": {last}"));
            format!("step {step}, turn {turn}{last}")
        }
    })
}
