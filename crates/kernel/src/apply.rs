//! The fold: how each event changes the World. No rule is asked here; what was decided is done.
//!
//! Each event has its own `impl Fold<…> for World` in the file of its subject; an event without one does not compile.

mod charges;
mod fleet;
mod landing;
mod questions;
mod rooms;
mod runs;
mod tasks;
mod work;

use crate::World;
use crate::event::Event;
use crate::rooms::{Channel, Seat, Seated};
use crate::world::{Run, Task, Worker, Workspace};
use machines::names::{ChannelName, RunId, TaskId, WorkerName};
use machines::suspended::{Suspendable, Suspends, Wrapped};
use machines::task;
use std::sync::Arc;

/// A log that does not fold: it was edited, or written by rules that this version does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoesNotFold {
    pub event: String,
    pub why: String,
}

impl std::fmt::Display for DoesNotFold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event `{}` does not follow from those before it: {}", self.event, self.why)
    }
}

impl std::error::Error for DoesNotFold {}

type Folded = Result<(), String>;

impl World {
    /// Applies one event. An error leaves the World half changed: whoever folds gives up on it.
    pub fn apply(&mut self, event: &Event) -> Result<(), DoesNotFold> {
        self.seq += 1;
        event.fold_into(self).map_err(|why| DoesNotFold { event: event.kind().to_owned(), why })
    }

    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Edits a task and keeps what is derived from it in step.
    fn edit_task(&mut self, id: &TaskId, edit: impl FnOnce(&mut Task)) -> Folded {
        let task = self.tasks.get(id).ok_or_else(|| no("task", id))?;
        let (key, status, assignees) =
            (self.claim_key(task), task.status(), task.machine.assignee_ids.clone());
        edit(Arc::make_mut(self.tasks.get_mut(id).ok_or_else(|| no("task", id))?));
        let task = &self.tasks[id];
        let (new_key, new_status, order) = (self.claim_key(task), task.status(), task.order);
        let new_assignees = task.machine.assignee_ids.clone();
        if key != new_key {
            key.map(|key| self.claimable.remove(&key));
            new_key.map(|key| self.claimable.insert(key));
        }
        if status != new_status || assignees != new_assignees {
            for assignee in assignees.iter() {
                let column = self.by_assignee.get_mut(assignee).and_then(|columns| columns.get_mut(&status));
                column.map(|column| column.remove(&order));
            }
            for assignee in new_assignees.iter() {
                let columns = self.by_assignee.entry(assignee.clone()).or_default();
                columns.entry(new_status).or_default().insert(order, id.clone());
            }
        }
        if status != new_status {
            self.by_status.entry(status).or_default().remove(&order);
            self.by_status.entry(new_status).or_default().insert(order, id.clone());
            // Whoever waits for one try waits for all of them.
            let others: Vec<TaskId> =
                self.other_tries(&self.tasks[id]).map(|other| other.id.clone()).collect();
            std::iter::once(id).chain(&others).for_each(|id| self.refresh_dependents(id));
        }
        Ok(())
    }

    /// Those who wait for `id` may have become claimable, or have stopped being so.
    fn refresh_dependents(&mut self, id: &TaskId) {
        let Some(waiting) = self.dependents.get(id).cloned() else { return };
        for dependent in waiting {
            let Some(task) = self.tasks.get(&dependent) else { continue };
            let class = match task.status() {
                task::Status::Assigned => 1,
                task::Status::Inbox => 2,
                _ => continue,
            };
            let key = (class, task.priority, task.created_at, task.order, dependent.clone());
            if self.claim_key(task).is_some() {
                self.claimable.insert(key);
            } else {
                self.claimable.remove(&key);
            }
        }
    }

    fn edit_place(&mut self, id: &TaskId, edit: impl FnOnce(&mut Workspace)) -> Folded {
        self.edit_task(id, |task| {
            if let Some(place) = &mut task.work.place {
                edit(place);
            }
        })
    }

    fn edit_worker(&mut self, name: &WorkerName, edit: impl FnOnce(&mut Worker)) -> Folded {
        edit(Arc::make_mut(self.workers.get_mut(name).ok_or_else(|| no("worker", name))?));
        Ok(())
    }

    fn edit_run(&mut self, id: &RunId, edit: impl FnOnce(&mut Run)) -> Folded {
        edit(Arc::make_mut(self.runs.get_mut(id).ok_or_else(|| no("run", id))?));
        Ok(())
    }

    fn edit_channel(&mut self, name: &ChannelName, edit: impl FnOnce(&mut Channel)) -> Folded {
        edit(Arc::make_mut(self.channels.get_mut(name).ok_or_else(|| no("channel", name))?));
        Ok(())
    }

    fn edit_seat(&mut self, seat: &Seat, edit: impl FnOnce(&mut Seated)) -> Folded {
        edit(Arc::make_mut(self.seats.get_mut(seat).ok_or_else(|| no("seat", seat))?));
        Ok(())
    }
}

fn no(what: &str, id: &dyn std::fmt::Display) -> String {
    format!("there is no {what} `{id}`")
}

fn replay_wrapped<M: Suspends>(
    machine: &mut Suspendable<M>,
    event: &Wrapped<M::Event>,
    to: M::State,
) -> Folded {
    if let (Suspendable::Live(inner), Wrapped::Inner(event)) = (&mut *machine, event) {
        let from = inner.state();
        return carried_out(machines::replay(inner, event, to))
            .ok_or_else(|| format!("{} has no row from {from:?} to {to:?} here", M::NAME));
    }
    machine.advance(event, None).map(drop).map_err(|refusal| refusal.to_string())
}

/// What a row asked for was carried out when its event was written.
fn carried_out<E>(replayed: Option<Vec<E>>) -> Option<()> {
    replayed.map(drop)
}
