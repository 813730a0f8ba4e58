//! The walk: from fresh states, every sample event in every state that can be reached.

use crate::machine::{Advanced, Code, Machine, advance, replay, rows_taking};
use crate::wire::Wire;
use crate::{architect, run, task, turn, worker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeSet, VecDeque};

/// Where a walk stops looking for new machines. Some counters have no limit: a person may try again for ever.
const MACHINES_MAX: usize = 2_000;

struct Walk<M: Machine> {
    starts: Vec<M>,
    samples: Vec<M::Event>,
    /// How `allowed` names the event.
    named: fn(&M::Event) -> String,
    /// Whether one sender sends both. `allowed` is what the sender of the refused event may send.
    one_sender: fn(&M::Event, &M::Event) -> bool,
}

impl<M: Machine + PartialEq + std::fmt::Debug + Serialize + DeserializeOwned> Walk<M>
where
    M::Event: std::fmt::Debug + PartialEq + Serialize + DeserializeOwned,
    M::Effect: std::fmt::Debug + PartialEq,
{
    fn go(self) {
        let mut met: BTreeSet<String> = self.starts.iter().map(|start| format!("{start:?}")).collect();
        let mut ahead: VecDeque<M> = self.starts.clone().into();
        let mut taken = BTreeSet::new();
        self.samples.iter().for_each(stored);
        while let Some(machine) = ahead.pop_front() {
            stored(&machine);
            for event in &self.samples {
                let rows = rows_taking(&machine, event);
                assert!(rows.len() <= 1, "rows {rows:?} all take {event:?} in {machine:?}");
                let mut next = machine.clone();
                match advance(&mut next, event, None) {
                    Ok(Advanced { taken: step, effects }) => {
                        match step.row {
                            Some(row) => {
                                taken.insert(row);
                                let mut again = machine.clone();
                                let repeated = replay(&mut again, event, step.to);
                                assert!(
                                    repeated == Some(effects),
                                    "{event:?} replayed asks for something else"
                                );
                                assert!(again == next, "{event:?} replayed in {machine:?} leads elsewhere");
                                let allowed = machine.allowed(event, None);
                                assert!(
                                    allowed.contains(&(self.named)(event).as_str()),
                                    "{event:?} was taken but not named as allowed"
                                );
                            }
                            // A report that was heard before is answered in any state; that is no offer.
                            None => {
                                assert!(next == machine && effects.is_empty(), "a repetition did something")
                            }
                        }
                        if met.len() < MACHINES_MAX && met.insert(format!("{next:?}")) {
                            ahead.push_back(next);
                        }
                    }
                    Err(refusal) => {
                        assert!(next == machine, "the refusal of {event:?} changed {machine:?}");
                        for name in &refusal.allowed {
                            assert!(
                                self.can_be_sent(&machine, name, event),
                                "{name} is named as allowed, but nothing takes it in {machine:?}"
                            );
                        }
                    }
                }
            }
        }
        let never: Vec<usize> = (0..M::TABLE.len()).filter(|row| !taken.contains(row)).collect();
        assert!(never.is_empty(), "rows {never:?} of {} are never taken", M::NAME);
        assert!(M::TABLE.iter().all(|row| !M::FINAL.contains(&row.from)), "a final state is left");
    }

    /// Whether some event of that name is not refused for its state or its sender.
    fn can_be_sent(&self, machine: &M, name: &str, refused: &M::Event) -> bool {
        let of_name = |event: &&M::Event| (self.named)(event) == name && (self.one_sender)(event, refused);
        self.samples.iter().filter(of_name).any(|event| {
            let has_row =
                M::TABLE.iter().any(|row| row.from == machine.state() && row.event == M::kind(event));
            has_row
                && advance(&mut machine.clone(), event, None)
                    .err()
                    .is_none_or(|refusal| refusal.code != Code::Forbidden)
        })
    }
}

/// What is written down is what is read back.
fn stored<T: PartialEq + std::fmt::Debug + Serialize + DeserializeOwned>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).as_ref().ok(), Some(value), "{text}");
}

fn by_kind<M: Machine>(event: &M::Event) -> String {
    M::kind(event).name().to_owned()
}

#[test]
fn every_row_of_turn_is_taken_and_never_two() {
    let (starts, samples) = (vec![turn::Turn::default()], turn::tests::samples());
    Walk { starts, samples, named: by_kind::<turn::Turn>, one_sender: |_, _| true }.go();
}

#[test]
fn every_row_of_worker_is_taken_and_never_two() {
    let (starts, samples) = (vec![worker::Worker::default()], worker::tests::samples());
    Walk { starts, samples, named: by_kind::<worker::Worker>, one_sender: |_, _| true }.go();
}

#[test]
fn every_row_of_task_is_taken_and_never_two() {
    let named = |event: &task::Event| match event {
        task::Event::Move { to, .. } => to.name().to_owned(),
        // It ends as one of the moves that the system may make, and is not itself one that a caller asks for.
        task::Event::LandingFailed { .. } => task::Status::Blocked.name().to_owned(),
    };
    let one_sender = |a: &task::Event, b: &task::Event| a.sender() == b.sender();
    Walk { starts: task::tests::starts(), samples: task::tests::samples(), named, one_sender }.go();
}

#[test]
fn every_row_of_architect_is_taken_and_never_two() {
    let (starts, samples) = (vec![architect::Architect::default()], architect::tests::samples());
    Walk { starts, samples, named: by_kind::<architect::Architect>, one_sender: |_, _| true }.go();
}

#[test]
fn every_row_of_run_is_taken_and_never_two() {
    let (starts, samples) = (vec![run::tests::fresh()], run::tests::samples());
    Walk { starts, samples, named: by_kind::<run::Run>, one_sender: |_, _| true }.go();
}

/// The page says so; the code of the wrapper relies on it.
#[test]
fn initial_and_final_states_are_states() {
    for doc in crate::catalog::all() {
        let names: Vec<_> = doc.states.iter().map(|state| state.name).collect();
        assert!(names.contains(&doc.initial), "{}", doc.machine);
        for row in &doc.rows {
            assert!(names.contains(&row.from) && names.contains(&row.to), "{row:?}");
        }
        for state in &doc.states {
            assert!(!state.about.is_empty(), "{}.{} says nothing of itself", doc.machine, state.name);
            let leaves = doc.rows.iter().any(|row| row.from == state.name);
            assert_eq!(leaves, !state.is_final, "{}.{}", doc.machine, state.name);
        }
        for (guard, about) in &doc.guards {
            assert!(guard.starts_with('!') || !about.is_empty(), "{guard} says nothing of itself");
        }
    }
}
