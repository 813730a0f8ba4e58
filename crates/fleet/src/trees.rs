//! Trees: sets them up, saves their content, and removes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::command::Happened;
use kernel::world::Workspace;
use machines::names::{EffectId, TaskId};
use smol_str::SmolStr;

use super::hooks::{self, HookError};
use super::{Shared, checkout, endings, tidy};
use base::files::FileError;
use git::{GitError, Repository};
use project::layout::Layout;
use project::settings::{Settings, include};
use project::workplace::{self, LeadBack, Placed, SetUp, SetUpError};

/// So many of what is wrong with a tree are named; they mostly have one cause.
const NAMED_MAX: usize = 5;

/// Why a tree is not ready.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// Makes a task's tree, or finds it again, with what the settings want in it beside what git has.
pub async fn prepare(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    tree: &str,
    branch: &str,
) -> Option<Happened> {
    match prepared(shared, id, task, tree, branch).await {
        Ok(Some(tip)) => Some(Happened::TreeReady { tip }),
        Ok(None) => None,
        Err(failed) => Some(failed),
    }
}

async fn prepared(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    tree: &str,
    branch: &str,
) -> Result<Option<SmolStr>, Happened> {
    let failed = |error: TreeError| Happened::TreeFailed { error: error.to_string() };
    let (repository, layout, in_force) =
        (shared.repository.clone(), shared.layout.clone(), shared.in_force());
    let (name, branch, of) = (tree.to_owned(), branch.to_owned(), task.clone());
    let done = shared
        .blocking(move || {
            let made = made(&layout, &of);
            let tree = repository.tree_path(&name)?;
            make_folder(&layout, &repository)?;
            if !tree.exists() {
                match std::fs::remove_file(&made) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(FileError::at("remove", &made)(error).into());
                    }
                    _ => {}
                }
                repository.forget_hook_files(&name)?;
            }
            let tip = repository.prepare_tree(&of, &name, &branch)?;
            let said = set_up(&layout, &repository, &in_force.settings, &tree)?;
            match made.exists() {
                // Its git directory may be another by now.
                true => repository.exclude_hook_files(&name)?,
                false => repository.begin_hook(&of, &name)?,
            }
            Ok::<_, TreeError>((tip, made.exists(), said))
        })
        .await;
    let (tip, ready, said) = done.map_err(failed)?;
    if let Some(error) = missing(shared.layout.root(), &said) {
        return Err(Happened::TreeUnmet { error });
    }
    for (path, why) in said.left_out {
        shared.notice(format!("{task}: {} was not copied into the tree: {why}", path.display()));
    }
    if !ready {
        if !hooks::in_tree(shared, hooks::HookPoint::WorktreeCreate, id.as_str(), task)
            .await
            .map_err(|error| failed(error.into()))?
        {
            return Ok(None);
        }
        let (repository, of, name, begun) =
            (shared.repository.clone(), task.clone(), tree.to_owned(), tip.clone());
        let noted = shared.blocking(move || repository.note_hook_files(&of, &name, &begun)).await;
        let left = noted.map_err(|error| failed(error.into()))?;
        if left > 0 {
            let files = if left == 1 { "1 file".to_owned() } else { format!("{left} files") };
            shared.notice_once(format!(
                "hooks.worktree.create leaves {files} that git does not ignore; they are not committed (add them to .gitignore)"
            ));
        }
        let made = made(&shared.layout, task);
        let folder = made.parent().unwrap_or(&made);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&made, ""))
            .map_err(|error| failed(FileError::at("write", &made)(error).into()))?;
    }
    Ok(Some(SmolStr::new(tip.as_str())))
}

/// Puts what the settings want beside what git has into a folder with the project's files.
pub fn set_up(
    layout: &Layout,
    repository: &Repository,
    settings: &Settings,
    folder: &Path,
) -> Result<SetUp, TreeError> {
    let ignored = |path: &Path| repository.ignores(folder, path);
    let trees = &repository.places().trees;
    let exclude = |path: &str| repository.exclude_link(folder, path);
    let include = include::in_force(layout).text;
    let mut done = workplace::set_up(layout.root(), folder, trees, settings, &include, &ignored, &exclude)?;
    done.leads_back = checkout::leads_back(layout, repository, settings)?;
    Ok(done)
}

/// Somebody may have removed the folder of all trees while the fleet runs: what stood in it is made again.
pub fn make_folder(layout: &Layout, repository: &Repository) -> Result<(), TreeError> {
    let trees = &repository.places().trees;
    Ok(layout.make_trees_again(trees).map_err(FileError::at("make", trees))?)
}

/// The same in a folder that is used again and again: what was put there the last time may be another by now.
pub fn set_up_anew(
    layout: &Layout,
    repository: &Repository,
    settings: &Settings,
    folder: &Path,
) -> Result<SetUp, TreeError> {
    let list = layout.state().join("landing-placed");
    for path in std::fs::read_to_string(&list).unwrap_or_default().lines() {
        // Our own list; what is gone, or a directory by now, is not what was put there.
        let _ = std::fs::remove_file(folder.join(path));
    }
    let set_up = set_up(layout, repository, settings, folder)?;
    let placed = set_up.placed.iter().filter_map(|placed| match placed {
        Placed::Copied(path) | Placed::Linked(path) => path.to_str().filter(|path| !path.contains('\n')),
    });
    let placed: String = placed.map(|path| format!("{path}\n")).collect();
    std::fs::write(&list, placed).map_err(FileError::at("use", &list))?;
    Ok(set_up)
}

/// What the settings demand in a tree and could not be put there, in words that say what to do.
pub fn missing(root: &Path, set_up: &SetUp) -> Option<String> {
    if !set_up.leads_back.is_empty() {
        let mut lines = told(&set_up.leads_back);
        lines.push(workplace::fix(root, &set_up.leads_back));
        return Some(lines.join("\n"));
    }
    if set_up.missing.is_empty() {
        return None;
    }
    let named = set_up.missing.iter().take(NAMED_MAX);
    let mut lines: Vec<String> = named
        .map(|(path, why)| format!("`{}` cannot be copied into the tree: {why}", path.display()))
        .collect();
    let more = set_up.missing.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.push(
        "correct [worktree] in adjutant.toml, or .worktreeinclude; `adj doctor` checks them".to_owned(),
    );
    Some(lines.join("\n"))
}

/// Ways back into the checkout, a line each.
pub fn told(leads: &[LeadBack]) -> Vec<String> {
    let mut lines: Vec<String> = leads.iter().take(NAMED_MAX).map(LeadBack::text).collect();
    let more = leads.len().saturating_sub(NAMED_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

/// Says that the hook has run in the tree that stands: a hook that failed or was cut off is run again. It lies where no
/// agent can put something else in its place.
fn made(layout: &Layout, task: &TaskId) -> PathBuf {
    layout.state().join("made").join(task.as_str())
}

fn workspace_of(shared: &Shared, task: &TaskId) -> Option<Workspace> {
    shared.world().task(task).and_then(|task| task.work.place.clone())
}

/// Saves everything in the tree to a ref.
pub async fn save(shared: &Arc<Shared>, id: &EffectId, task: &TaskId) -> Option<Happened> {
    let Some(place) = workspace_of(shared, task) else { return Some(nothing_saved()) };
    let (repository, of, effect) = (shared.repository.clone(), task.clone(), id.to_string());
    let saved = shared.blocking(move || repository.save(&of, &place.tree, &effect)).await;
    Some(match saved {
        Ok(Some(saved)) => Happened::WorkSaved { reference: saved.reference },
        Ok(None) => nothing_saved(),
        Err(error @ GitError::NotOurs { .. }) => {
            shared.notice(format!("{task}: {error}"));
            nothing_saved()
        }
        Err(error) => endings::failed(error),
    })
}

/// There was nothing to save that is not in a ref already.
fn nothing_saved() -> Happened {
    Happened::WorkSaved { reference: "the task's branch, which holds all of it".to_owned() }
}

/// Saves everything in the tree to a ref, then puts the tree away; with `start_over` its branch too.
pub async fn remove(
    shared: &Arc<Shared>,
    id: &EffectId,
    task: &TaskId,
    start_over: bool,
) -> Option<Happened> {
    let Some(place) = workspace_of(shared, task) else {
        return Some(Happened::TreeRemoved { reference: None });
    };
    let stands = {
        let (repository, of, tree) = (shared.repository.clone(), task.clone(), place.tree.clone());
        shared.blocking(move || repository.stands(&of, &tree)).await
    };
    match stands {
        Ok(true) => match hooks::in_tree(shared, hooks::HookPoint::WorktreeRemove, id.as_str(), task).await {
            Ok(true) => {}
            Ok(false) => return None,
            // The tree goes all the same: what git does not have of it is in the trash for days.
            Err(error) => shared.notice(format!("{task}: {error}")),
        },
        Ok(false) => {}
        // The task's own is gone, and what somebody put in its place is for them to remove.
        Err(error @ GitError::NotOurs { .. }) if !start_over => {
            shared.notice(format!("{task}: {error}"));
            return Some(Happened::TreeRemoved { reference: None });
        }
        Err(error) => return Some(endings::failed(error)),
    }
    let (repository, of, effect) = (shared.repository.clone(), task.clone(), id.to_string());
    let trash = shared.in_force().settings.trash;
    let removed = shared
        .blocking(move || {
            let saved = match start_over {
                true => repository.start_over(&of, &place.tree, &place.branch, &effect),
                false => repository.remove_tree(&of, &place.tree, &effect),
            };
            if saved.is_ok() {
                repository.put_temporary_away(&of, &effect);
                // What cannot be swept now is swept later.
                let _ = tidy::sweep(&repository, trash);
            }
            saved
        })
        .await;
    Some(match removed {
        Ok(saved) => Happened::TreeRemoved { reference: saved.map(|saved| saved.reference) },
        Err(error) => endings::failed(error),
    })
}

pub async fn delete_branch(shared: &Arc<Shared>, task: &TaskId, branch: &str) -> Option<Happened> {
    let (repository, task, branch) = (shared.repository.clone(), task.clone(), branch.to_owned());
    let deleted = shared.blocking(move || repository.delete_branch(&task, &branch)).await;
    Some(match deleted {
        Ok(_) => Happened::BranchDeleted,
        Err(error) => endings::failed(error),
    })
}
