//! Who holds a task.

use crate::draft::{Draft, Ruled};
use crate::effect::Timer;
use crate::event::{LeaseEnded, LeaseGiven};
use crate::world::Holder;
use machines::names::TaskId;

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
