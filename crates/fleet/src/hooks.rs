//! Hooks: command lines of the user, with a time limit and stored output.

use std::path::PathBuf;
use std::sync::Arc;

use machines::Wire;
use machines::names::TaskId;

use super::kept_command::{self, CommandError, KeptCommand, Ran};
use super::surroundings::{self, SurroundingsError, Whose};
use super::{Missing, Shared, endings};
use git::GitError;
use project::settings::{Hook, Hooks};

/// What of a failing hook is told.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;

machines::wire_enum! {
    /// Where a hook of the settings runs in a tree, by the name of its key.
    pub enum HookPoint {
        WorktreeCreate = "worktree.create",
        WorktreeRemove = "worktree.remove",
        StepBefore = "step.before",
        StepAfter = "step.after",
    }
}

/// Why a hook failed, or could not be run.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("hook {point}: `{command}` {how}\n{output}")]
    Failed { point: HookPoint, command: String, how: String, output: String },
}

impl HookPoint {
    fn of(self, hooks: &Hooks) -> &Option<Hook> {
        match self {
            HookPoint::WorktreeCreate => &hooks.worktree_create,
            HookPoint::WorktreeRemove => &hooks.worktree_remove,
            HookPoint::StepBefore => &hooks.step_before,
            HookPoint::StepAfter => &hooks.step_after,
        }
    }
}

/// Runs a hook in a task's tree, as the agent would: in its sandbox and environment. False: it was ended.
pub async fn in_tree(
    shared: &Arc<Shared>,
    point: HookPoint,
    name: &str,
    task: &TaskId,
) -> Result<bool, HookError> {
    let place = shared.world().task(task).and_then(|task| task.work.place.clone());
    let place = place.ok_or_else(|| Missing::Tree(task.clone()))?;
    let world = shared.world();
    let run = world.task(task).and_then(|task| task.work.run.as_ref());
    let whose = Whose { task, run, worker: None };
    in_folder(shared, point, name, whose, shared.tree(&place.tree)?).await
}

/// The name that a hook at this point is run by, for an effect.
pub fn name(point: HookPoint, effect: &str) -> String {
    format!("{effect}.{}", point.name().replace('.', "-"))
}

/// As `in_tree`, in a folder of the task's other than its tree.
pub async fn in_folder(
    shared: &Arc<Shared>,
    point: HookPoint,
    effect: &str,
    whose: Whose<'_>,
    cwd: PathBuf,
) -> Result<bool, HookError> {
    let in_force = shared.in_force();
    let Some(Hook { command, timeout }) = point.of(&in_force.settings.hooks) else { return Ok(true) };
    let folders = surroundings::Folders::make(&shared.layout, whose.task)?;
    let kept = KeptCommand {
        name: name(point, effect),
        of: command.clone(),
        argv: kept_command::shell(command),
        env: surroundings::environment_of_tests(shared, &in_force, whose)?,
        sandbox: surroundings::sandbox(
            shared.context(&in_force.settings),
            &cwd,
            &folders,
            surroundings::Purpose::Hook,
            whose.run,
        )?,
        cwd,
        limit: *timeout,
    };
    match kept_command::run(shared, kept, None).await? {
        Ran::Ended => Ok(false),
        Ran::Over { exit, .. } if exit.succeeded() => Ok(true),
        Ran::Over { exit, output } => {
            let how = endings::how_it_ended(&exit, *timeout);
            let output = project::workplace::failing_part(&output, OUTPUT_BYTES_MAX);
            Err(HookError::Failed { point, command: command.clone(), how, output })
        }
    }
}
