//! The hook after main has moved: push it, deploy it.
//!
//! It is an effect, so it is not forgotten if the fleet stops or dies before the hook has run. It runs once: the next
//! fleet finds a hook that has ended, and repeats only one that was cut off.

use std::sync::Arc;

use kernel::Happened;
use machines::names::{EffectId, TaskId};

use super::{Shared, user_commands};

/// `None`: the fleet stops, and the next one runs it.
pub async fn run(shared: &Arc<Shared>, effect: &EffectId, task: &TaskId, merge: &str) -> Option<Happened> {
    // One landing is pushed after the other: two at once would get in each other's way.
    let _turn = shared.landed_hook.lock().await;
    if shared.is_stopping() {
        return None;
    }
    let in_force = shared.in_force();
    // Nobody wants it any more.
    let Some(hook) = in_force.settings.hooks.landed.clone() else { return Some(Happened::HookRan) };
    let title = shared.world().task(task).map(|task| task.title.clone()).unwrap_or_default();
    let told = [
        ("ADJ_TASK", task.to_string()),
        ("ADJ_TITLE", title),
        ("ADJ_MAIN", in_force.settings.project.main.clone()),
        ("ADJ_MERGE", merge.to_owned()),
    ];
    let name = format!("{effect}.landed");
    let ran = user_commands::run_hook(shared, "landed", hook, name, told.into()).await;
    ran.then_some(Happened::HookRan)
}
