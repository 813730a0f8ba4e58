//! Writes that fail, attempts that are superseded, keys that are used twice.

use super::*;

#[test]
fn a_batch_that_could_not_be_written_never_was() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    done(handle.submit(add(1), None));
    let before = handle.world();

    shelf.fail_next(LogError::Full, false);
    let go_on = busy(&handle);
    let waiting = [
        sent(&handle, add(2), None),
        sent(&handle, comment(3, "c-2", "rests on it"), None),
        // Would be refused because of a task that never was.
        sent(&handle, add(2), None),
    ];
    drop(go_on);
    for answer in waiting {
        assert_eq!(answer.recv().unwrap(), Err(SubmitError::Log(LogError::Full)));
    }
    assert_eq!(*handle.world(), *before);
    assert_eq!(*handle.world(), shelf.folded());

    // There is space again.
    done(handle.submit(add(2), None));
    assert_eq!(*handle.world(), shelf.folded());
}

/// The sync failed, and the file turned out to hold the batch: nobody was told so, but the next decision knows.
#[test]
fn a_batch_that_survived_its_failure_is_known_to_the_next() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let lost = LogError::Sync { why: "gone".into() };
    shelf.fail_next(lost.clone(), true);
    let keyed = Command { key: Some("k".into()), ..add(1) };
    assert_eq!(handle.submit(keyed.clone(), None), Err(SubmitError::Log(lost)));
    assert!(done(handle.submit(keyed, None)).replayed, "the same key finds the answer that was not given");
    assert_eq!(shelf.kinds(), ["writer_seen", "task_added", "answer_kept"]);
    assert_eq!(*handle.world(), shelf.folded());
}

#[test]
fn the_outcome_of_a_superseded_attempt_changes_nothing_and_holds_up_nobody() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let first = fleet_at_work(&handle);
    // The first attempt's lease ran out, and another has taken the effect up.
    let second = handle.lease("other", 20, 40, 10).unwrap().into_iter().find(|again| again.id == first.id);
    let second = second.unwrap();
    let failed = |id| outcome(id, &first.id, Happened::TreeFailed { error: "late".into() });
    let ready = |id| outcome(id, &first.id, Happened::TreeReady { tip: "abc".into() });

    let go_on = busy(&handle);
    let late = sent(&handle, failed(10), fence(&first));
    let added = sent(&handle, add(11), None);
    let current = sent(&handle, ready(12), fence(&second));
    let twice = sent(&handle, ready(13), fence(&second));
    let after = sent(&handle, comment(14, "c-11", "still here"), None);
    drop(go_on);

    let fenced =
        |leased: &Leased| Err(SubmitError::Fenced { effect: leased.id.clone(), attempt: leased.attempt });
    assert_eq!(late.recv().unwrap(), fenced(&first));
    done(added.recv().unwrap());
    done(current.recv().unwrap());
    assert_eq!(twice.recv().unwrap(), fenced(&second));
    done(after.recv().unwrap());
    assert_eq!(*handle.world(), shelf.folded());
    assert_eq!(handle.release(&fence(&second).unwrap()), Ok(false));
}

#[test]
fn a_key_that_is_being_decided_is_a_conflict_and_later_gives_the_first_answer() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let keyed = |command: Command| Command { key: Some("k".into()), ..command };
    let go_on = busy(&handle);
    let first = sent(&handle, keyed(add(1)), None);
    assert_eq!(handle.submit(keyed(add(1)), None), Err(SubmitError::InFlight { key: "k".into() }));
    // The same key on another task is another key.
    let other = sent(&handle, keyed(comment(2, "c-1", "x")), None);
    drop(go_on);
    assert!(!done(first.recv().unwrap()).replayed);
    done(other.recv().unwrap());
    assert!(done(handle.submit(keyed(add(1)), None)).replayed);
    let reused = handle.submit(keyed(add(3)), None).unwrap();
    assert!(matches!(reused, Answer::Refused(Refusal { status: 409, .. })), "{reused:?}");
    assert_eq!(shelf.folded().tasks.len(), 1);
}

#[test]
fn a_text_that_the_log_does_not_take_fails_alone() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let tree = fleet_at_work(&handle);
    let go_on = busy(&handle);
    let error = "x".repeat(TEXT_BYTES_MAX + 1);
    let huge = sent(&handle, outcome(4, &tree.id, Happened::TreeFailed { error }), fence(&tree));
    let small = sent(&handle, add(5), None);
    drop(go_on);
    let huge = huge.recv().unwrap();
    assert!(matches!(huge, Err(SubmitError::Log(LogError::TooLarge { .. }))), "{huge:?}");
    done(small.recv().unwrap());
    assert_eq!(*handle.world(), shelf.folded());
}

#[test]
fn an_owner_that_ends_answers_what_waits_and_takes_nothing_more() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let go_on = busy(&handle);
    let waiting = sent(&handle, add(1), None);
    drop(go_on);
    drop(owner);
    done(waiting.recv().unwrap());
    assert_eq!(handle.submit(add(2), None), Err(SubmitError::Stopped));
    assert_eq!(handle.outbox(), Err(SubmitError::Stopped));
    assert_eq!(*handle.world(), shelf.folded());
}
