//! What was found of each worker when the owner started again.

use machines::names::WorkerName;
use machines::suspended::Wrapped;
use machines::task::Status;
use machines::worker::ReleaseReason;
use machines::{run, worker};

use super::Rule;
use super::release::{drop_question, fail_run, release};
use super::sessions;
use super::step::{count_lost, has_claimed};
use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::event::TreeStands;
use crate::session::Session;
use crate::words::EffectEnd;

pub(crate) fn recover(d: &mut Draft, name: &WorkerName, event: worker::Event) -> Ruled {
    let worker = d.worker(name)?;
    let (from, id) = (worker.machine.status, worker.machine.task.clone());
    let mut event = event;
    let worker::Event::Recover { tree, step_under_way, said_done, .. } = &mut event else { return Ok(()) };
    // What was claimed is in the log, whatever is left of what the agent printed.
    if let Some(run) = id.as_ref().and_then(|id| d.world.run_of(id))
        && let Some(step) = run.step.clone()
    {
        *said_done |= has_claimed(d, &run.id, &step)?;
    }
    let (tree_gone, step_under_way) = (*tree == worker::Tree::Missing, *step_under_way);
    d.rule(Rule::Recovered);
    let by = d.caller(false);
    let goes_on = (step_under_way && !tree_gone) || from == worker::State::Stuck;
    let Some(id) = id.filter(|_| !goes_on) else { return d.move_worker_by(name, event, by).map(drop) };
    // Whether the sender may is for the table to say, before anything else is done.
    machines::would_take(&d.worker(name)?.machine, &event, by)?;
    let run = d.world.run_of(&id).map(|run| run.id.clone());
    // Whatever runs without its tree is ended before anybody works on the task again.
    if let (Some(run), true, true) = (&run, step_under_way, from != worker::State::Done) {
        sessions::quit(d, &Session::Run(run.clone()), false);
    }
    // What was under way is known to be gone. A gate that waits in the outbox is simply run again.
    if let (Some(run), true) = (&run, from != worker::State::Done)
        && let Some(step) = d.run(run)?.step.clone()
    {
        d.end(&step, EffectEnd::Superseded);
        sessions::under_way(d, &Session::Run(run.clone()), None);
    }
    if tree_gone {
        d.emit(TreeStands { id: id.clone(), stands: false });
    }
    let to = d.move_worker_by(name, event, by)?;
    // A call waited and its process is gone: only a person's decision leads on.
    let paused =
        run.as_ref().and_then(|run| d.world.run(run)).is_some_and(|run| run.state() == run::State::Paused);
    match to {
        worker::State::Idle => {
            d.rule(Rule::Lost);
            d.clear_timer(&Timer::Backoff { worker: name.clone() });
            if let Some(run) = &run {
                fail_run(d, run, "LOST", "nothing of the step was found after a restart")?;
                sessions::unreserve(d, &Session::Run(run.clone()));
                drop_question(d, run);
                if d.run(run)?.is_suspended() {
                    d.clear_timer(&Timer::Suspension { run: run.clone() });
                    d.move_run(run, Wrapped::Expire)?;
                }
            }
            if d.task(&id)?.status() == Status::InProgress {
                count_lost(d, &id, "nothing of the step was found after a restart")?;
            }
            Ok(())
        }
        _ if paused => release(d, &id, ReleaseReason::NeedsApproval),
        _ => Ok(()),
    }
}
