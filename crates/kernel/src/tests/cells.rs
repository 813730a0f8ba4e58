//! Every cell of every table is missed: each action of each row is left out in turn, and what the kernel decides changes.
//!
//! A table that is printed and not run would let this pass over it in silence; here it fails by the cell's name.

use super::{architect as architect_at_work, commands, rooms, scripts};
use crate::Commit;
use machines::machine::sabotage::{self, Change};
use machines::{Machine, Wire, architect, run, task, turn, worker};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What a witness saw: everything that was decided, and the rows that it went through.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    decided: Vec<String>,
    rows: BTreeSet<(&'static str, usize)>,
    failed: bool,
}

thread_local! {
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

/// Called for each commit of a test's table: somebody on this thread may be watching.
pub(super) fn trace(commit: &Commit) {
    SEEN.with_borrow_mut(|seen| {
        let Some(seen) = seen else { return };
        seen.decided.extend(commit.events.iter().map(|event| format!("{} {}", event.kind(), event.encode())));
        let published = commit.events.iter().flat_map(crate::published::of);
        seen.decided.extend(published.map(|(run, event)| format!("{run} {event:?}")));
        seen.rows.extend(commit.rows.iter().copied());
        // What a row changes of its own machine is decided too, though it asks for nothing.
        let world = &commit.world;
        seen.decided.extend(world.workers.values().map(|worker| format!("{:?}", worker.machine)));
        seen.decided.extend(world.runs.values().map(|run| format!("{:?}", run.machine)));
        seen.decided.extend(world.tasks.values().map(|task| format!("{:?}", task.machine)));
        seen.decided.extend(world.architect.iter().map(|architect| format!("{architect:?}")));
    });
}

fn watch(witness: fn()) -> Seen {
    SEEN.set(Some(Seen::default()));
    let ended = std::panic::catch_unwind(witness);
    let mut seen = SEEN.take().expect("it was set a moment ago");
    seen.failed = ended.is_err();
    seen
}

/// What a witness says while a table is sabotaged is nobody's failure.
fn quietly<R>(body: impl FnOnce() -> R) -> R {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if SEEN.with_borrow(Option::is_none) {
                usual(info);
            }
        }));
    });
    body()
}

fn witnesses() -> Vec<fn()> {
    scripts::ALL
        .iter()
        .chain(rooms::ALL)
        .chain(architect_at_work::ALL)
        .chain(commands::WITNESSES)
        .copied()
        .collect()
}

/// The cells of a machine's table that nobody would miss, by name.
fn unmissed<M: Machine>(healthy: &BTreeMap<usize, Seen>, witnesses: &[fn()]) -> Vec<String> {
    let mut names = Vec::new();
    for (number, row) in M::TABLE.iter().enumerate() {
        let through: Vec<_> =
            healthy.iter().filter(|(_, seen)| seen.rows.contains(&(M::NAME, number))).collect();
        for (place, action) in row.actions.iter().enumerate() {
            // What a machine that is gone had of its own, nobody can see.
            if M::FINAL.contains(&row.to) && action.name() == worker::Action::LeaveTask.name() {
                continue;
            }
            let is_missed = through.iter().any(|(witness, before)| {
                let watched = || watch(witnesses[**witness]);
                sabotage::with(M::NAME, number, Change::LeaveOut(place), watched) != **before
            });
            if !is_missed {
                let (from, event, action) = (row.from.name(), row.event.name(), action.name());
                let how = if through.is_empty() { "no script goes through it" } else { "nothing changes" };
                names.push(format!("{} {from} {event}: {action} ({how})", M::NAME));
            }
        }
    }
    names
}

#[test]
fn leaving_out_any_action_of_any_row_changes_what_the_kernel_decides() {
    let witnesses = witnesses();
    let unmissed: Vec<String> = quietly(|| {
        let healthy: BTreeMap<usize, Seen> =
            witnesses.iter().enumerate().map(|(number, witness)| (number, watch(*witness))).collect();
        assert!(healthy.values().all(|seen| !seen.failed), "every witness passes as the tables are");
        [
            unmissed::<worker::Worker>(&healthy, &witnesses),
            unmissed::<run::Run>(&healthy, &witnesses),
            unmissed::<task::Task>(&healthy, &witnesses),
            unmissed::<turn::Turn>(&healthy, &witnesses),
            unmissed::<architect::Architect>(&healthy, &witnesses),
        ]
        .concat()
    });
    assert!(unmissed.is_empty(), "nobody would miss:\n{}", unmissed.join("\n"));
}
