//! Copies the commits of a task's tree into `land.git`, and publishes them.

use std::sync::Arc;

use machines::names::TaskId;
use smol_str::SmolStr;

use super::Shared;
use git::{GitError, Oid, Published};

/// Brings what stands in the task's tree to us and publishes it. `None`: there is no tree.
pub async fn bring_in(shared: &Arc<Shared>, task: &TaskId) -> Result<Option<SmolStr>, GitError> {
    let world = shared.world();
    let Some(place) = world.task(task).and_then(|task| task.work.place.clone()) else { return Ok(None) };
    if !shared.tree(&place.tree)?.exists() {
        return Ok(None);
    }
    let (repository, of) = (shared.repository.clone(), task.clone());
    let (tree, branch) = (place.tree.clone(), place.branch.clone());
    let taken = shared.blocking(move || repository.take_tip(&of, &tree, &branch)).await?;
    match &taken.branch {
        Published::As(name) if *name == place.branch => {}
        Published::As(name) => {
            shared
                .notice_once(format!("{task}: a branch of yours has its name; its branch is called {name}"));
        }
        Published::CheckedOut { name, at } => {
            shared
                .notice_once(format!("{task}: {name} is checked out in {} and was not moved", at.display()));
        }
        Published::MovedByUser { name, .. } => {
            shared.notice_once(format!("{task}: you moved {name}, so it is left unchanged"));
        }
        Published::DeletedByUser { name } => {
            shared.notice_once(format!("{task}: you deleted {name}, so it is not created again"));
        }
    }
    Ok(Some(SmolStr::new(taken.tip.as_str())))
}

/// All that stands in the task's tree, committed or not, as one name. `None`: there is no tree, or it cannot be read.
pub async fn state_of_tree(shared: &Arc<Shared>, task: &TaskId, tip: &SmolStr) -> Option<SmolStr> {
    let place = shared.world().task(task)?.work.place.clone()?;
    let (repository, of, tip) = (shared.repository.clone(), task.clone(), Oid::new(tip)?);
    let (tip, state) = shared
        .blocking(move || {
            let state = repository.state_of_tree(&of, &place.tree, &tip)?;
            Ok::<_, GitError>((tip, state))
        })
        .await
        .ok()?;
    // A commit of the same files is a change, too: a merge, for one.
    Some(smol_str::format_smolstr!("{tip} {state}"))
}
