//! Inspects each worker when the runner starts, and reports whether its step continues, is repeated, or its task is
//! given back. Nothing is started or removed here.

use std::sync::Arc;

use kernel::{Ask, Effect, Timer, World};
use machines::names::{EffectId, WorkerName};
use machines::worker;

use super::{RunError, Shared, Step, kept_command, step};
use git::TreeFound;
use log::outbox;
use process::keeper::{self, Found};

/// Looks for everything that was under way, and tells the kernel what was found of each worker.
pub async fn recover(shared: &Arc<Shared>) -> Result<(), RunError> {
    outbox::take_over(&mut &**shared).await?;
    end_orphans(shared).await;
    let world = shared.world();
    for (name, worker) in &world.workers {
        if worker.machine.task.is_some()
            && let Some(ask) = found(shared, &world, name).await?
        {
            shared.ask(ask).await?;
        }
    }
    look_at_checkouts_again(shared).await
}

/// Whoever was told to clear a checkout did so while nobody looked, or comes back because of it: no landing waits for its
/// next look at it.
async fn look_at_checkouts_again(shared: &Arc<Shared>) -> Result<(), RunError> {
    let waits = |effect: &Effect| matches!(effect, Effect::Timer { timer: Timer::Checkout { .. }, .. });
    for (id, _) in shared.world().effects.iter().filter(|(_, effect)| waits(effect)) {
        outbox::ring(&mut &**shared, id).await?;
    }
    Ok(())
}

/// Ends whatever runs for an effect that the log does not know (any more).
async fn end_orphans(shared: &Arc<Shared>) {
    let world = shared.world();
    let Ok(entries) = std::fs::read_dir(shared.layout.steps()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(id) = EffectId::new(name.split('.').next().unwrap_or_default()) else { continue };
        let ended_by_effect = world
            .effects
            .values()
            .any(|effect| matches!(effect.as_ref(), Effect::EndStep { step, .. } if *step == id));
        if world.effects.contains_key(&id) || ended_by_effect {
            continue;
        }
        if let Err(error) = kept_command::end(shared, &name).await {
            shared.notice(format!("{name}: {error}"));
        }
    }
}

/// What was found of a worker; nothing where it waits for something that is simply made again.
async fn found(shared: &Arc<Shared>, world: &World, name: &WorkerName) -> Result<Option<Ask>, RunError> {
    let worker = world.worker(name).expect("it is of this World");
    let id = worker.machine.task.clone().expect("only those with a task are looked at");
    let task = world.task(&id).expect("a worker's task is of this World");
    let place = task.work.place.clone();
    let tree = match place {
        None => TreeFound::Missing,
        Some(place) => {
            let (repository, of) = (shared.repository.clone(), id.clone());
            let looked = shared.blocking(move || repository.look(&of, &place.tree, &place.branch)).await;
            match looked {
                Ok(found) => found,
                // It stands there and cannot be looked into: the next step says what is wrong with it.
                Err(error) => {
                    shared.notice(format!("{id}: {error}"));
                    return Ok(None);
                }
            }
        }
    };
    let tree = match tree {
        TreeFound::Missing => worker::Tree::Missing,
        TreeFound::Clean { .. } => worker::Tree::Clean,
        TreeFound::Dirty { .. } => worker::Tree::Dirty,
    };
    let run = world.run_of(&id);
    let pending =
        run.and_then(|run| run.step.clone()).and_then(|step| Some((world.effects.get(&step)?.clone(), step)));
    let mut said_done = false;
    let step_under_way = match &pending {
        None => false,
        Some((effect, step)) => match effect.as_ref() {
            Effect::PrepareTree { .. } | Effect::RunGate { .. } => return Ok(None),
            _ => match keeper::look(&shared.layout.step(step)) {
                Ok(Found::Alive(_) | Found::Over(_)) => true,
                Ok(Found::Never) | Err(_) => tree != worker::Tree::Missing,
                Ok(Found::Dead) => {
                    if let Err(error) = kept_command::end(shared, step.as_str()).await {
                        shared.notice(format!("{step}: {error}"));
                    }
                    said_done =
                        Step::read(&shared.layout.step(step)).is_some_and(|step| step::said_done(&step));
                    false
                }
            },
        },
    };
    let resumable = run.is_some_and(|run| world.config.agent(&run.agent).resumable);
    Ok(Some(Ask::Recover { worker: name.clone(), tree, step_under_way, said_done, resumable }))
}
