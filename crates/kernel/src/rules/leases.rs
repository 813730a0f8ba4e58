//! Who holds a task, and what of the budgets is set aside for its next step.

use crate::budget;
use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::event::{LeaseEnded, LeaseGiven, Reserved, Unreserved};
use crate::world::Holder;
use machines::names::{RunId, TaskId};

pub(super) fn give_lease(d: &mut Draft, id: &TaskId, holder: Holder) -> Ruled {
    let attempt = d.task(id)?.work.lease_attempts + 1;
    d.emit(LeaseGiven { id: id.clone(), holder, attempt });
    Ok(())
}

pub(super) fn end_lease(d: &mut Draft, id: &TaskId) {
    if let Some(attempt) =
        d.world.task(id).and_then(|task| task.work.lease.as_ref()).map(|lease| lease.attempt)
    {
        d.clear_timer(&Timer::OutsideLease { task: id.clone() });
        d.emit(LeaseEnded { id: id.clone(), attempt });
    }
}

/// Sets the next step's share aside. The claim has seen that there is room.
pub(super) fn reserve(d: &mut Draft, id: &TaskId) {
    let run = d.world.run_of(id).filter(|run| run.reserved == 0);
    if let Some((run, agent)) = run.map(|run| (run.id.clone(), run.agent.clone())) {
        let amount = budget::share(&d.world, &agent);
        d.emit(Reserved { id: run, day: d.day(), amount });
    }
}

pub(super) fn unreserve(d: &mut Draft, run: &RunId) {
    if d.world.run(run).is_some_and(|run| run.reserved > 0) {
        d.emit(Unreserved { id: run.clone() });
    }
}
