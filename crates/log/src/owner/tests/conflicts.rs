//! Two owners of one log: what one of them appends while the other decides.

use super::*;
use crate::shared::SharedLog;

/// Another owner does this with a World of its own, and is gone.
fn other_owner(log: SharedLog, work: impl FnOnce(&Handle)) {
    let owner = Owner::open(Box::new(log)).unwrap();
    work(&owner.handle());
}

fn owner(log: &SharedLog) -> Owner {
    Owner::open(Box::new(log.clone())).unwrap()
}

fn folded(log: &SharedLog) -> World {
    Folded::read_all(&log.other(), VERSION).unwrap().world
}

fn titles(world: &World) -> Vec<&str> {
    world.tasks.values().map(|task| task.title.as_str()).collect()
}

/// Each command of the log once, with how many records it has.
fn commands(log: &SharedLog) -> Vec<String> {
    let mut commands: Vec<_> =
        log.other().read(0, usize::MAX).unwrap().into_iter().map(|record| record.command).collect();
    commands.dedup();
    commands
}

fn named(ids: &[u128]) -> Vec<String> {
    ids.iter().map(|id| format!("{id:032x}")).collect()
}

#[test]
fn a_command_that_is_still_valid_is_decided_again_and_written_once() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    log.interrupt(|other| other_owner(other, |handle| drop(done(handle.submit(add(7), None)))));
    let reply = done(handle.submit(add(1), None));
    assert_eq!(reply.id.as_deref(), Some("c-1"));
    assert_eq!(commands(&log), named(&[7, 1]));
    assert_eq!(titles(&handle.world()), ["task 1", "task 7"]);
    assert_eq!(*handle.world(), folded(&log));
}

#[test]
fn a_command_that_became_invalid_is_refused_with_the_reason_and_the_others_are_written() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    log.interrupt(|other| other_owner(other, |handle| drop(done(handle.submit(add(2), None)))));
    let go_on = busy(&handle);
    let valid = sent(&handle, add(1), None);
    // The same id: in the first decision this is the first task that has it.
    let invalid = sent(&handle, Command { id: 9, ..add(2) }, None);
    // Rests on a task that the other one made.
    let commented = sent(&handle, comment(3, "c-2", "whose is it?"), None);
    drop(go_on);
    done(valid.recv().unwrap());
    let refused = invalid.recv().unwrap();
    assert!(matches!(&refused, Ok(Answer::Refused(Refusal { status: 409, .. }))), "{refused:?}");
    done(commented.recv().unwrap());
    assert_eq!(commands(&log), named(&[2, 1, 3]));
    assert_eq!(*handle.world(), folded(&log));
}

/// The other one answered under the key while this one decided: the answer is the other's, and nothing is done twice.
#[test]
fn a_key_that_another_writer_has_used_meanwhile_gives_that_answer() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    let keyed = |command: Command| Command { key: Some("k".into()), ..command };
    let theirs = keyed(add(1));
    log.interrupt(move |other| {
        other_owner(other, |handle| assert!(!done(handle.submit(theirs, None)).replayed));
    });
    let again = Command { id: 2, at: 5_000, ..keyed(add(1)) };
    let reply = done(handle.submit(again, None));
    assert!(reply.replayed);
    assert_eq!(reply.id.as_deref(), Some("c-1"));
    assert_eq!(commands(&log), named(&[1]));

    // The same key for something else is refused, however late the other one was.
    let theirs = Command { key: Some("l".into()), ..add(3) };
    log.interrupt(move |other| other_owner(other, |handle| drop(done(handle.submit(theirs, None)))));
    let other = handle.submit(Command { key: Some("l".into()), ..add(4) }, None).unwrap();
    assert!(matches!(other, Answer::Refused(Refusal { status: 409, .. })), "{other:?}");
    assert_eq!(commands(&log), named(&[1, 3]));
    assert_eq!(*handle.world(), folded(&log));
}

/// Nobody hears of an answer whose batch was not written.
#[test]
fn after_too_many_conflicts_nothing_is_acknowledged_and_nothing_written() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    for id in 0..u128::from(ATTEMPTS_MAX) {
        log.interrupt(move |other| {
            other_owner(other, |handle| drop(done(handle.submit(add(100 + id), None))));
        });
    }
    let contended = handle.submit(add(1), None);
    assert_eq!(contended, Err(SubmitError::Contended { attempts: ATTEMPTS_MAX }));
    assert_eq!(
        contended.unwrap_err().to_string(),
        format!("other writers have changed the log {ATTEMPTS_MAX} times while this was decided")
    );
    let theirs: Vec<u128> = (0..u128::from(ATTEMPTS_MAX)).map(|id| 100 + id).collect();
    assert_eq!(commands(&log), named(&theirs));

    // Once it is quiet, the same command is written.
    done(handle.submit(add(1), None));
    assert_eq!(folded(&log).tasks.len(), theirs.len() + 1);
    assert_eq!(*handle.world(), folded(&log));
}

#[test]
fn one_conflict_less_than_the_limit_is_waited_out() {
    let log = SharedLog::new();
    let owner = owner(&log);
    for id in 1..u128::from(ATTEMPTS_MAX) {
        log.interrupt(move |other| {
            other_owner(other, |handle| drop(done(handle.submit(add(100 + id), None))));
        });
    }
    done(owner.handle().submit(add(1), None));
    assert_eq!(folded(&log).tasks.len(), ATTEMPTS_MAX as usize);
}

/// The other one took the effect up while the outcome of the first attempt was decided.
#[test]
fn an_attempt_that_another_writer_superseded_meanwhile_is_fenced() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    let first = fleet_at_work(&handle);
    let effect = first.id.clone();
    log.interrupt(move |other| {
        other_owner(other, |handle| {
            let taken = handle.lease("other", 20, 40, 10).unwrap();
            assert!(taken.iter().any(|taken| taken.id == effect && taken.attempt == 2));
        });
    });
    let ready = Happened::TreeReady { tip: "abc".into() };
    let fenced = Err(SubmitError::Fenced { effect: first.id.clone(), attempt: 1 });
    assert_eq!(handle.submit(outcome(4, &first.id, ready), fence(&first)), fenced);
    assert_eq!(*handle.world(), folded(&log));
}

#[test]
fn what_another_writer_asked_for_can_be_leased_and_given_back() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    done(handle.submit(add(1), None));
    other_owner(log.other(), fleet_at_work_without);
    let leased = handle.lease("runner", 0, 10, 10).unwrap();
    let tree =
        leased.iter().find(|leased| leased.kind == "prepare_tree").expect("the other one asked for it");
    other_owner(log.other(), |handle| drop(done(handle.submit(add(8), None))));
    assert_eq!(handle.release(&fence(tree).unwrap()), Ok(true));
    assert_eq!(handle.release(&fence(tree).unwrap()), Ok(false));
}

/// The fleet of `fleet_at_work` on a task that is there already.
fn fleet_at_work_without(handle: &Handle) {
    done(handle.submit(command(2, Ask::Spawn { name: WorkerName::new("A").ok(), agent: None }), None));
    done(handle.submit(command(3, Ask::StartFleet { workers: 1 }), None));
}

/// Whoever follows one owner sees what the other wrote, in the order of the log.
#[test]
fn followers_see_the_records_of_both_writers_once() {
    let log = SharedLog::new();
    let owner = owner(&log);
    let handle = owner.handle();
    let follower = handle.follow();
    for id in 1..=5 {
        log.interrupt(move |other| {
            other_owner(other, |handle| drop(done(handle.submit(add(100 + id), None))));
        });
        done(handle.submit(add(id), None));
    }
    let end = *follower.borrow();
    assert_eq!(end, log.other().head().seq);
    let seen = handle.read(0, usize::MAX).unwrap();
    assert_eq!(seen, log.other().read(0, usize::MAX).unwrap());
    assert_eq!(seen.iter().map(|record| record.seq).collect::<Vec<_>>(), (1..=end).collect::<Vec<_>>());
}

/// Two owners at full speed: every command that was acknowledged is in the log once, and both see the same World.
#[test]
fn two_owners_that_write_at_once_lose_nothing_and_do_nothing_twice() {
    let log = SharedLog::new();
    let owners = [owner(&log), Owner::open(Box::new(log.other())).unwrap()];
    std::thread::scope(|scope| {
        for (which, owner) in owners.iter().enumerate() {
            scope.spawn(move || {
                for n in 0..100 {
                    let id = which as u128 * 1_000 + n;
                    loop {
                        match owner.handle().submit(add(id), None) {
                            Err(SubmitError::Contended { .. }) => {}
                            answered => break drop(done(answered)),
                        }
                    }
                }
            });
        }
    });
    let mut written = commands(&log);
    written.sort();
    assert_eq!(written, named(&(0..100).chain(1_000..1_100).collect::<Vec<_>>()));
    assert_eq!(folded(&log).tasks.len(), 200);
    for owner in &owners {
        // A refusal is decided on what is stored, whoever wrote it.
        let refused = owner.handle().submit(Command { id: 9_999, ..add(0) }, None);
        assert!(matches!(refused, Ok(Answer::Refused(Refusal { status: 409, .. }))), "{refused:?}");
        assert_eq!(*owner.handle().world(), folded(&log));
    }
}
