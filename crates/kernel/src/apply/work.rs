//! Who works on a task, where, and what the next step is told.

use super::{Folded, carried_out};
use crate::event::{
    AfterwardsAdded, AfterwardsTaken, CallAllowed, Fold, LeaseEnded, LeaseGiven, NoteLeft, NotesTold,
    PlaceGiven, PlaceTaken, SessionRenewed, SessionUsed, TipMoved, TreeStands, UnfinishedAdded,
    WaitsForService, WorkerLost, WorkerMoved, WorkerSpawned,
};
use crate::world::{Lease, Spend, Worker, Workspace};
use crate::{Millis, World};
use machines::worker;
use std::sync::Arc;

impl Fold<WorkerSpawned> for World {
    fn fold(&mut self, e: &WorkerSpawned) -> Folded {
        self.workers.insert(e.name.clone(), Arc::new(new_worker(e)));
        Ok(())
    }
}

impl Fold<WorkerMoved> for World {
    fn fold(&mut self, e: &WorkerMoved) -> Folded {
        let mut taken = None;
        self.edit_worker(&e.name, |worker| {
            taken = carried_out(machines::replay(&mut worker.machine, &e.input, e.to));
            match &e.input {
                worker::Event::Assign { .. } => worker.task_assigned_at = Some(e.at),
                worker::Event::StepOk { .. } => worker.last_step_at = Some(e.at),
                worker::Event::StepFailed { error } => {
                    worker.last_failed_at = Some(e.at);
                    worker.last_error = Some(error.clone());
                }
                _ => {}
            }
            if worker.machine.task.is_none() {
                worker.task_assigned_at = None;
            }
        })?;
        taken.ok_or_else(|| format!("worker `{}` has no row from {} to {} here", e.name, e.from, e.to))?;
        if e.to == worker::State::Idle {
            self.idle.insert(e.name.clone());
        } else {
            self.idle.remove(&e.name);
        }
        if e.to == worker::State::Removed {
            self.workers.remove(&e.name);
        }
        Ok(())
    }
}

impl Fold<LeaseGiven> for World {
    fn fold(&mut self, e: &LeaseGiven) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.lease = Some(Lease { holder: e.holder.clone(), attempt: e.attempt });
            task.work.lease_attempts = e.attempt;
        })
    }
}

impl Fold<LeaseEnded> for World {
    fn fold(&mut self, e: &LeaseEnded) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.lease = None;
            // Nobody waits for the answer any more.
            task.gate.in_doubt = None;
        })
    }
}

impl Fold<WorkerLost> for World {
    fn fold(&mut self, e: &WorkerLost) -> Folded {
        self.edit_task(&e.id, |task| task.work.lost_workers = e.lost)
    }
}

impl Fold<PlaceGiven> for World {
    fn fold(&mut self, e: &PlaceGiven) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.place = Some(Workspace {
                tree: e.tree.clone(),
                branch: e.branch.clone(),
                session: e.session.clone(),
                session_used: false,
                tip: None,
                ready: false,
            });
        })
    }
}

impl Fold<PlaceTaken> for World {
    fn fold(&mut self, e: &PlaceTaken) -> Folded {
        self.edit_task(&e.id, |task| task.work.place = None)
    }
}

impl Fold<SessionUsed> for World {
    fn fold(&mut self, e: &SessionUsed) -> Folded {
        self.edit_place(&e.id, |place| place.session_used = true)
    }
}

impl Fold<SessionRenewed> for World {
    fn fold(&mut self, e: &SessionRenewed) -> Folded {
        self.edit_place(&e.id, |place| {
            place.session = e.session.clone();
            place.session_used = false;
        })
    }
}

impl Fold<TreeStands> for World {
    fn fold(&mut self, e: &TreeStands) -> Folded {
        self.edit_place(&e.id, |place| place.ready = e.stands)
    }
}

impl Fold<TipMoved> for World {
    fn fold(&mut self, e: &TipMoved) -> Folded {
        self.edit_place(&e.id, |place| place.tip = Some(e.tip.clone()))
    }
}

impl Fold<NoteLeft> for World {
    fn fold(&mut self, e: &NoteLeft) -> Folded {
        self.edit_task(&e.id, |task| task.work.notes.push_back(e.note.clone()))
    }
}

impl Fold<NotesTold> for World {
    fn fold(&mut self, e: &NotesTold) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.notes.clear();
            task.gate.sent_back = None;
        })
    }
}

impl Fold<CallAllowed> for World {
    fn fold(&mut self, e: &CallAllowed) -> Folded {
        self.edit_task(&e.id, |task| task.work.allowed.push_back(Arc::new(e.call.clone())))
    }
}

impl Fold<WaitsForService> for World {
    fn fold(&mut self, e: &WaitsForService) -> Folded {
        self.edit_task(&e.id, |task| task.work.waits_for.clone_from(&e.service))
    }
}

impl Fold<UnfinishedAdded> for World {
    fn fold(&mut self, e: &UnfinishedAdded) -> Folded {
        self.edit_task(&e.id, |task| {
            task.work.unfinished.insert(e.effect.clone());
        })
    }
}

impl Fold<AfterwardsAdded> for World {
    fn fold(&mut self, e: &AfterwardsAdded) -> Folded {
        self.edit_task(&e.id, |task| task.work.afterwards.push_back(Arc::new(e.what.clone())))
    }
}

impl Fold<AfterwardsTaken> for World {
    fn fold(&mut self, e: &AfterwardsTaken) -> Folded {
        self.edit_task(&e.id, |task| task.work.afterwards.clear())
    }
}

fn new_worker(e: &WorkerSpawned) -> Worker {
    let at: Millis = e.at;
    Worker {
        name: e.name.clone(),
        agent: e.agent.clone(),
        by_person: e.by_person,
        machine: worker::Worker::default(),
        started_at: at,
        task_assigned_at: None,
        last_step_at: None,
        last_failed_at: None,
        last_error: None,
        spend: Spend::default(),
    }
}
