//! Which thread decides: the owner's, or the one that asks.

use std::sync::mpsc::{Receiver, channel};
use std::thread::ThreadId;

use super::*;

/// By which threads batches are written from now on.
fn writers(handle: &Handle) -> Receiver<ThreadId> {
    let (send, receive) = channel();
    handle.on_append(move |_, _| {
        let _ = send.send(std::thread::current().id());
    });
    receive
}

#[test]
fn where_nobody_else_asks_the_caller_decides_by_itself() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let writers = writers(&handle);
    done(handle.submit(add(1), None));
    assert_eq!(writers.recv().unwrap(), std::thread::current().id());
    // Who does not want to wait is not made to.
    done(sent(&handle, add(2), None).recv().unwrap());
    assert_ne!(writers.recv().unwrap(), std::thread::current().id());
    assert_eq!(*handle.world(), shelf.folded());
}

#[test]
fn while_somebody_decides_a_caller_hands_over_and_does_not_wait() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let writers = writers(&handle);
    let go_on = busy(&handle);
    let (send, answer) = channel();
    handle.send_here(add(1), None, move |answered| drop(send.send(answered))).unwrap();
    assert!(answer.try_recv().is_err(), "it was not decided yet");
    drop(go_on);
    done(answer.recv().unwrap());
    assert_ne!(writers.recv().unwrap(), std::thread::current().id());
}

#[test]
fn what_arrives_while_a_caller_decides_is_decided_too() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let (send, second) = channel();
    let asks = handle.clone();
    let first = move |_| {
        // The caller has the state while it is answered.
        asks.send(add(2), None, move |answered| drop(send.send(answered))).unwrap();
    };
    handle.send_here(add(1), None, first).unwrap();
    done(second.recv().unwrap());
    assert_eq!(shelf.folded().tasks.len(), 2);
}

#[test]
fn a_caller_that_fails_at_the_desk_stops_the_owner() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let fails = std::panic::AssertUnwindSafe(|| handle.send_here(add(1), None, |_| panic!("as is wanted")));
    assert!(std::panic::catch_unwind(fails).is_err());
    assert_eq!(handle.submit(add(2), None), Err(SubmitError::Stopped));
    drop(owner);
    assert_eq!(*handle.world(), shelf.folded(), "what was written is seen");
}
