//! One course of events, step by step, for the tests that interrupt it: each step is one transaction.

use super::*;
use crate::conformance::{effect, fence, fenced, finishing, timer, with_effects};
use crate::{MemoryLog, Pending};

pub(super) const STEPS: usize = 13;

/// Takes step `n`, which depends on the steps before it and on nothing else.
pub(super) fn step(log: &mut dyn Log, n: usize) -> Result<(), LogError> {
    match n {
        0 => append(log, &[entry("c0", &[("task-1", "a")])]),
        1 => append(
            log,
            &[
                entry("c1a", &[("task-1", "b"), ("task-2", "c"), ("task-1", "d")]),
                with_effects(
                    entry("c1b", &[("task-2", "e")]),
                    &[effect("e1"), effect("e2"), timer("t1", 50)],
                ),
            ],
        ),
        2 => log.lease("runner-1", 0, 10, 1).map(drop),
        3 => append(log, &[entry("c3", &[("task-3", &"long ".repeat(3_000))])]),
        4 => snapshot(log),
        5 => append(log, &[entry("c5", &[("task-2", "x")])]),
        6 => append(log, &[fenced(finishing(entry("c6", &[("task-1", "f")]), &["e1"]), "e1", 1)]),
        7 => append(log, &(0..20).map(|i| entry("c7", &[(&format!("task-{i}"), "g")])).collect::<Vec<_>>()),
        8 => log.lease("runner-2", 0, 10, 9).map(drop),
        9 => log.release(&fence("e2", 1)).map(|current| assert!(current)),
        10 => append(log, &[entry("c10", &[("task-1", "h")])]),
        11 => snapshot(log),
        12 => append(log, &[finishing(entry("c12", &[("task-1", "i")]), &["t1"])]),
        _ => panic!("there is no step {n}"),
    }
}

fn append(log: &mut dyn Log, batch: &[Entry]) -> Result<(), LogError> {
    for appended in log.append(batch)? {
        assert!(matches!(appended, Appended::Written { .. }), "{appended:?}");
    }
    Ok(())
}

fn snapshot(log: &mut dyn Log) -> Result<(), LogError> {
    let Head { seq, hash } = log.head();
    log.save_snapshot(&Snapshot { seq, hash, data: vec![seq as u8; 6_000] })
}

/// All that a log says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub records: Vec<Record>,
    pub outbox: Vec<Pending>,
    pub head: Head,
    pub versions: Vec<u64>,
    pub snapshot: Option<Snapshot>,
}

pub(super) fn state(log: &dyn Log) -> Result<State, LogError> {
    let versions = (0..20).map(|n| log.version(&format!("task-{n}")));
    Ok(State {
        records: log.read(0, usize::MAX)?,
        outbox: log.outbox()?,
        head: log.head(),
        versions: versions.collect::<Result<_, _>>()?,
        snapshot: log.snapshot()?,
    })
}

/// What a log must be after no step, after the first, and so on. The log in memory says so.
pub(super) fn states() -> Vec<State> {
    let mut log = MemoryLog::new();
    let mut states = vec![state(&log).unwrap()];
    for n in 0..STEPS {
        step(&mut log, n).unwrap();
        states.push(state(&log).unwrap());
    }
    states
}

/// Goes on from where the log is to the end, and compares.
pub(super) fn finish(log: &mut dyn Log, done: usize) {
    for n in done..STEPS {
        step(log, n).unwrap();
    }
    assert_eq!(state(log).unwrap(), states()[STEPS]);
}
