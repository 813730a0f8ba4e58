//! Enforces the limits of stored data: the trash, output, agents' sessions, and refs of finished tasks in the user's
//! repository. Nothing waits for it, and data that is still needed is not touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kernel::rooms::Seat;
use kernel::{Effect, World};
use machines::names::{EffectId, RunId, TaskId};

use super::Shared;
use base::clock;
use base::files;
use git::{GitError, Repository};
use process::keeper::{self, Found};
use project::layout::{Layout, SEATS};
use project::settings::Kept;

/// How often it is done while the fleet runs.
pub const EVERY: Duration = Duration::from_secs(3600);

/// Something that was printed or kept for later, and is needed by nobody now.
struct Old {
    path: PathBuf,
    since: SystemTime,
    bytes: u64,
}

/// What is not tidied.
#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("`{}`: {source}", path.display())]
    NotRemoved { path: PathBuf, source: std::io::Error },
}

/// Begins to tidy, and returns.
pub fn begin(shared: &Arc<Shared>) {
    let shared = shared.clone();
    tokio::task::spawn_blocking(move || {
        let (in_force, world) = (shared.in_force(), shared.world());
        let (trash, logs) = (in_force.settings.trash, in_force.settings.logs);
        let tidied = sweep(&shared.repository, trash)
            .and_then(|()| pack_away(&shared.repository, &world, trash.age))
            .and_then(|()| prune(&shared.layout, &shared.repository, &world, logs));
        let temporary = shared.layout.remove_temporary_of_gone();
        let tidied = tidied.map_err(|error| error.to_string());
        if let Err(error) = tidied.and(temporary.map_err(|error| error.to_string())) {
            shared.notice_once(format!("cannot tidy up: {error}"));
        }
    });
}

/// Holds the trash to its limits.
pub fn sweep(repository: &Repository, kept: Kept) -> Result<(), TidyError> {
    repository.sweep_trash(kept.age, kept.bytes)?;
    Ok(())
}

/// What the user sees of tasks that have been over for long goes out of their sight; `land.git` keeps it.
fn pack_away(repository: &Repository, world: &World, age: Duration) -> Result<(), TidyError> {
    let oldest = clock::now() / 1000 - i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    for (id, at) in repository.shown_tasks()? {
        let Some(task) = world.task(&id) else { continue };
        // An effect of the past may still want the branch.
        if at > oldest || !is_over(world, &id) || !task.work.unfinished.is_empty() {
            continue;
        }
        let branch = task.work.place.as_ref().map(|place| place.branch.as_str());
        repository.pack_away(&id, branch)?;
    }
    Ok(())
}

fn is_over(world: &World, id: &TaskId) -> bool {
    world.task(id).is_some_and(|task| task.is_final())
}

/// Removes what was printed and what agents kept, as far as it is too old or too much.
fn prune(layout: &Layout, repository: &Repository, world: &World, kept: Kept) -> Result<(), TidyError> {
    let mut old = steps(layout, world);
    old.extend(sessions(layout, world));
    old.extend(spoken(layout, world));
    old.extend(seats(&[layout.sessions_of_seats(), repository.places().trees.join(SEATS)], world));
    old.sort_by(|a, b| (a.since, &a.path).cmp(&(b.since, &b.path)));
    let mut bytes: u64 = old.iter().map(|old| old.bytes).sum();
    for Old { path, since, bytes: own } in old {
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        if age >= kept.age || bytes > kept.bytes {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|source| TidyError::NotRemoved { path, source })?;
            bytes -= own;
        }
    }
    Ok(())
}

/// What ended steps, tests and hooks left.
fn steps(layout: &Layout, world: &World) -> Vec<Old> {
    let ending = |effect: &Effect| match effect {
        Effect::EndStep { step, .. } => Some(step.clone()),
        _ => None,
    };
    let mut wanted: BTreeSet<EffectId> = world.effects.values().filter_map(|effect| ending(effect)).collect();
    wanted.extend(world.effects.keys().cloned());
    let is_wanted = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        EffectId::new(name.split('.').next().unwrap_or_default()).is_ok_and(|id| wanted.contains(&id))
    };
    let ended = |path: &Path| matches!(keeper::look(path), Ok(Found::Over(_)));
    below(&layout.steps()).filter(|path| !is_wanted(path) && ended(path)).filter_map(old).collect()
}

/// What agents kept of tasks that are over.
fn sessions(layout: &Layout, world: &World) -> Vec<Old> {
    let of_over = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        TaskId::new(name).is_ok_and(|id| world.task(&id).is_none() || is_over(world, &id))
    };
    below(&layout.sessions()).filter(of_over).filter_map(old).collect()
}

/// What agents wrote in runs that are over.
fn spoken(layout: &Layout, world: &World) -> Vec<Old> {
    let of_over = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run = RunId::new(name);
        run.is_ok_and(|id| world.run(&id).is_none_or(|run| world.is_over_for_good(run)))
    };
    entries(&layout.spoken()).filter(of_over).filter_map(old).collect()
}

/// What agents kept in rooms that they are not in any more, and their clones.
fn seats(folders: &[PathBuf], world: &World) -> Vec<Old> {
    let is_taken = |seat: &Seat| match seat {
        Seat::Room { channel, agent } => {
            world.channel(channel).is_some_and(|room| !room.is_closed() && room.place(agent).is_some())
        }
        Seat::Architect => true,
    };
    let taken: BTreeSet<String> =
        world.seats.keys().filter(|seat| is_taken(seat)).map(Layout::seat_name).collect();
    let is_left =
        |path: &PathBuf| !path.file_name().is_some_and(|name| taken.contains(&*name.to_string_lossy()));
    folders.iter().flat_map(|folder| below(folder)).filter(is_left).filter_map(old).collect()
}

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    entries(folder).filter(|path| path.is_dir())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn old(path: PathBuf) -> Option<Old> {
    let since = path.symlink_metadata().and_then(|found| found.modified()).ok()?;
    Some(Old { bytes: files::bytes_below(&path), since, path })
}
