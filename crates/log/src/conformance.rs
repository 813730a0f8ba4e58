//! The tests that every log must pass: one function for each promise, run by `conformance!`.
//!
//! A log takes part with a `Specimen`, which can also be closed, opened again, and damaged from outside.

use super::*;

/// A log under test.
pub(crate) trait Specimen {
    fn log(&mut self) -> &mut dyn Log;
    /// Ends the process that owns the log, as far as the log can tell, and starts another.
    fn reopen(&mut self) -> Result<(), LogError>;
    /// Changes what is stored, past the log; `reopen` comes next. False where a log cannot be damaged so.
    fn damage(&mut self, damage: Damage) -> bool;
}

/// A log that several writers share.
pub(crate) trait SharedSpecimen: Specimen {
    /// A handle of another writer, which knows what is stored now.
    fn other_writer(&mut self) -> Box<dyn Log>;
}

/// What someone with an editor could do to a log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    EditRecord(Seq),
    RemoveRecord(Seq),
    SwapRecords(Seq, Seq),
    /// Changes the data of the newest snapshot.
    EditSnapshot,
    /// Makes the newest snapshot one of another log.
    AlienSnapshot,
    /// Changes the data of the oldest effect.
    EditEffect,
    /// Removes the newest effect.
    RemoveEffect,
}

/// Writes one test for each promise. `$specimen` is an expression that makes an empty log.
macro_rules! conformance {
    ($specimen:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                crate::conformance::$promise(&mut $specimen);
            }
        )*
    };
    ($specimen:expr) => {
        crate::conformance::conformance! {
            $specimen;
            an_empty_log_ends_at_record_zero
            records_are_numbered_without_gaps_and_streams_count_their_own
            an_entry_without_records_moves_nothing
            a_stream_at_another_version_is_a_conflict_that_writes_nothing
            later_entries_of_a_batch_see_the_earlier_ones
            a_refused_entry_leaves_the_others_of_its_batch_alone
            a_duplicate_effect_fails_the_whole_batch
            a_text_past_the_limit_fails_the_whole_batch
            text_of_any_kind_comes_back_as_it_was
            reading_goes_on_after_any_record
            reading_past_the_end_is_an_error
            a_scan_ends_when_its_visitor_has_seen_enough
            a_stream_is_read_alone_and_checked
            effects_are_leased_oldest_first_and_only_once
            a_lease_that_ran_out_is_given_out_again_with_a_new_attempt
            a_lease_that_ran_out_holds_until_another_takes_it
            the_outcome_of_a_superseded_attempt_is_dropped_whole
            which_attempt_is_the_current_one_can_be_asked_before_anything_is_written
            a_released_effect_is_free_at_once_and_its_attempt_fenced
            a_finished_effect_is_gone_and_its_attempt_fenced
            an_effect_added_and_finished_by_one_entry_is_never_seen
            timers_are_listed_with_their_time_and_never_leased
            a_timer_that_was_finished_fences_its_late_outcome
            all_is_as_it_was_after_reopening
            the_newest_snapshot_is_found_and_older_ones_are_pruned
            a_snapshot_of_another_log_is_not_taken
            a_damaged_snapshot_is_passed_over
            an_alien_snapshot_is_passed_over
            an_edited_record_is_named
            a_removed_record_is_named
            a_removed_last_record_is_named
            records_that_changed_places_are_named
            an_edited_effect_is_noticed
            a_removed_effect_is_noticed
            equal_entries_make_equal_hashes
        }
    };
}
pub(crate) use conformance;

/// The same for what a log promises that several writers share.
macro_rules! conflicts {
    ($specimen:expr; $($promise:ident)*) => {
        $(
            #[test]
            fn $promise() {
                crate::conformance::$promise(&mut $specimen);
            }
        )*
    };
    ($specimen:expr) => {
        crate::conformance::conflicts! {
            $specimen;
            records_of_another_writer_are_a_conflict_that_writes_nothing
            after_a_conflict_the_log_goes_on_from_what_the_other_writer_left
            what_a_handle_says_of_the_log_is_of_one_moment
            a_lease_of_another_writer_is_a_conflict_and_its_attempt_the_current_one
            two_writers_in_turn_make_one_chain_without_gaps
        }
    };
}
pub(crate) use conflicts;

pub(crate) fn records_of_another_writer_are_a_conflict_that_writes_nothing(
    specimen: &mut dyn SharedSpecimen,
) {
    numbered(specimen.log(), 1..=3);
    let mut other = specimen.other_writer();
    other.append(&[with_effects(entry("theirs", &[("task-9", "x")]), &[effect("e1")])]).unwrap();

    let log = specimen.log();
    let conflict = LogError::Conflict { since: 3 };
    // Of another stream: what was decided may rest on it all the same.
    let late = with_effects(entry("late", &[("task-1", "x")]), &[effect("e2")]);
    assert_eq!(log.append(&[late]), Err(conflict.clone()));
    assert_eq!(log.lease("runner", 0, 10, 1), Err(conflict.clone()));
    assert_eq!(log.release(&fence("e1", 1)), Err(conflict));
    specimen.reopen().unwrap();
    assert_eq!(commands(specimen.log()), ["c1", "c2", "c3", "theirs"]);
    assert_eq!(pending(specimen.log()), ["e1"]);
}

pub(crate) fn after_a_conflict_the_log_goes_on_from_what_the_other_writer_left(
    specimen: &mut dyn SharedSpecimen,
) {
    numbered(specimen.log(), 1..=2);
    let mut other = specimen.other_writer();
    other.append(&[with_effects(entry("theirs", &[("task-1", "x")]), &[effect("e1")])]).unwrap();

    let log = specimen.log();
    let ours = expecting(entry("ours", &[("task-1", "y")]), &[("task-1", 1)]);
    assert_eq!(log.append(std::slice::from_ref(&ours)), Err(LogError::Conflict { since: 2 }));
    assert_eq!(log.ready(), Ok(other.head()));
    assert_eq!(log.head(), other.head());
    assert_eq!(log.version("task-1").unwrap(), 2);
    assert_eq!(pending(log), ["e1"]);
    let appended = log.append(&[ours]).unwrap();
    assert_eq!(appended, [Appended::Conflict { stream: "task-1".into(), expected: 1, actual: 2 }]);
    let again = expecting(entry("ours", &[("task-1", "y")]), &[("task-1", 2)]);
    assert_eq!(log.append(&[again]).unwrap(), [Appended::Written { first: 4, last: 4 }]);
    assert_eq!(commands(log), ["c1", "c2", "theirs", "ours"]);
}

pub(crate) fn what_a_handle_says_of_the_log_is_of_one_moment(specimen: &mut dyn SharedSpecimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[("task-1", "a")]), &[effect("e1")])]).unwrap();
    let head = log.head();
    let mut other = specimen.other_writer();
    other.lease("runner", 0, 10, 1).unwrap();
    let outcome = fenced(finishing(entry("c2", &[("task-1", "b")]), &["e1"]), "e1", 1);
    other.append(&[with_effects(outcome, &[effect("e2")])]).unwrap();

    let log = specimen.log();
    assert_eq!(log.head(), head);
    assert_eq!(log.version("task-1").unwrap(), 1);
    assert!(!log.holds(&fence("e1", 1)).unwrap());
    assert_eq!(pending(log), ["e1"]);
    log.ready().unwrap();
    assert_eq!(log.version("task-1").unwrap(), 2);
    assert_eq!(pending(log), ["e2"]);
}

pub(crate) fn a_lease_of_another_writer_is_a_conflict_and_its_attempt_the_current_one(
    specimen: &mut dyn SharedSpecimen,
) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[("task-1", "a")]), &[effect("e1")])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    let mut other = specimen.other_writer();
    assert_eq!(attempts(&other.lease("runner-2", 10, 20, 1).unwrap()), [("e1", 2)]);

    // There is no new record, and yet the outcome of the first attempt must not be written.
    let log = specimen.log();
    let outcome = fenced(finishing(entry("late", &[("task-1", "x")]), &["e1"]), "e1", 1);
    assert!(log.holds(&fence("e1", 1)).unwrap());
    assert_eq!(log.append(std::slice::from_ref(&outcome)), Err(LogError::Conflict { since: 1 }));
    log.ready().unwrap();
    assert!(!log.holds(&fence("e1", 1)).unwrap());
    assert_eq!(log.append(&[outcome]).unwrap(), [Appended::Fenced { effect: "e1".into(), attempt: 1 }]);
    assert_eq!(commands(log), ["c1"]);
}

pub(crate) fn two_writers_in_turn_make_one_chain_without_gaps(specimen: &mut dyn SharedSpecimen) {
    let mut other = specimen.other_writer();
    for n in 0..10 {
        let log = if n % 2 == 0 { specimen.log() } else { &mut *other };
        log.ready().unwrap();
        numbered(log, n + 1..=n + 1);
    }
    specimen.reopen().unwrap();
    let records = specimen.log().read(0, usize::MAX).unwrap();
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert_eq!(commands(specimen.log()), (1..=10).map(|n| format!("c{n}")).collect::<Vec<_>>());
}

pub(crate) fn an_empty_log_ends_at_record_zero(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    assert_eq!(log.head(), Head { seq: 0, hash: [0; 32] });
    assert_eq!(log.version("task-1").unwrap(), 0);
    assert_eq!(log.read(0, 10).unwrap(), []);
    assert_eq!(log.outbox().unwrap(), []);
    assert_eq!(log.snapshot().unwrap(), None);
    assert_eq!(log.append(&[]).unwrap(), []);
}

pub(crate) fn records_are_numbered_without_gaps_and_streams_count_their_own(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let first = entry("c1", &[("task-1", "a"), ("task-2", "b"), ("task-1", "c")]);
    let second = entry("c2", &[("task-2", "d")]);
    let appended = log.append(&[first, second]).unwrap();
    assert_eq!(appended, [Appended::Written { first: 1, last: 3 }, Appended::Written { first: 4, last: 4 }]);

    let records = log.read(0, 10).unwrap();
    let numbers: Vec<_> = records.iter().map(|r| (r.seq, r.stream.as_str(), r.version, &*r.data)).collect();
    assert_eq!(
        numbers,
        [(1, "task-1", 1, "a"), (2, "task-2", 1, "b"), (3, "task-1", 2, "c"), (4, "task-2", 2, "d")]
    );
    assert_eq!(records[3].command, "c2");
    assert_eq!(records[3].actor, "alice");
    assert_eq!(records[3].at, 1_000);
    assert_eq!(log.version("task-1").unwrap(), 2);
    assert_eq!(log.version("task-2").unwrap(), 2);
    assert_eq!(log.head(), Head { seq: 4, hash: records[3].hash });
}

pub(crate) fn an_entry_without_records_moves_nothing(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    assert_eq!(log.append(&[entry("c1", &[])]).unwrap(), [Appended::Written { first: 0, last: 0 }]);
    log.append(&[entry("c2", &[("task-1", "a")])]).unwrap();
    let head = log.head();
    let effects = with_effects(entry("c3", &[]), &[effect("e1")]);
    assert_eq!(log.append(&[effects]).unwrap(), [Appended::Written { first: 1, last: 1 }]);
    assert_eq!(log.head(), head);
    assert_eq!(log.outbox().unwrap().len(), 1);
}

pub(crate) fn a_stream_at_another_version_is_a_conflict_that_writes_nothing(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[expecting(entry("c1", &[("task-1", "a")]), &[("task-1", 0)])]).unwrap();
    let head = log.head();

    let late = expecting(entry("c2", &[("task-2", "b")]), &[("task-2", 0), ("task-1", 0)]);
    let appended = log.append(&[with_effects(late, &[effect("e1")])]).unwrap();
    let conflict = Appended::Conflict { stream: "task-1".into(), expected: 0, actual: 1 };
    assert_eq!(appended, [conflict]);
    assert_eq!(log.head(), head);
    assert_eq!(log.version("task-2").unwrap(), 0);
    assert_eq!(log.outbox().unwrap(), []);

    let retried = expecting(entry("c2", &[("task-2", "b")]), &[("task-2", 0), ("task-1", 1)]);
    assert_eq!(log.append(&[retried]).unwrap(), [Appended::Written { first: 2, last: 2 }]);
}

pub(crate) fn later_entries_of_a_batch_see_the_earlier_ones(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let batch = [
        expecting(entry("c1", &[("task-1", "a"), ("task-1", "b")]), &[("task-1", 0)]),
        expecting(entry("c2", &[("task-1", "c")]), &[("task-1", 2)]),
        expecting(entry("c3", &[("task-1", "d")]), &[("task-1", 2)]),
        with_effects(entry("c4", &[]), &[effect("e1"), effect("e2")]),
        finishing(entry("c5", &[]), &["e1"]),
    ];
    let appended = log.append(&batch).unwrap();
    assert_eq!(appended[1], Appended::Written { first: 3, last: 3 });
    assert_eq!(appended[2], Appended::Conflict { stream: "task-1".into(), expected: 2, actual: 3 });
    assert_eq!(pending(log), ["e2"]);
    assert_eq!(log.version("task-1").unwrap(), 3);
}

pub(crate) fn a_refused_entry_leaves_the_others_of_its_batch_alone(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let batch = [
        entry("c1", &[("task-1", "a")]),
        expecting(entry("c2", &[("task-1", "x"), ("task-2", "x")]), &[("task-2", 7)]),
        fenced(entry("c3", &[("task-1", "y")]), "nobody", 1),
        entry("c4", &[("task-1", "b")]),
    ];
    let appended = log.append(&batch).unwrap();
    assert_eq!(
        appended,
        [
            Appended::Written { first: 1, last: 1 },
            Appended::Conflict { stream: "task-2".into(), expected: 7, actual: 0 },
            Appended::Fenced { effect: "nobody".into(), attempt: 1 },
            Appended::Written { first: 2, last: 2 },
        ]
    );
    assert_eq!(commands(log), ["c1", "c4"]);
}

pub(crate) fn a_duplicate_effect_fails_the_whole_batch(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[("task-1", "a")]), &[effect("e1")])]).unwrap();
    let batch = [
        entry("c2", &[("task-1", "b")]),
        with_effects(entry("c3", &[("task-1", "c")]), &[effect("e2"), effect("e1")]),
    ];
    assert_eq!(log.append(&batch), Err(LogError::Duplicate { effect: "e1".into() }));
    let twice = with_effects(entry("c4", &[]), &[effect("e3"), effect("e3")]);
    assert_eq!(log.append(&[twice]), Err(LogError::Duplicate { effect: "e3".into() }));
    assert_eq!(commands(log), ["c1"]);
    assert_eq!(pending(log), ["e1"]);
    assert_eq!(log.version("task-1").unwrap(), 1);
    log.append(&[entry("c5", &[("task-1", "b")])]).unwrap();
    assert_eq!(commands(log), ["c1", "c5"]);
}

pub(crate) fn a_text_past_the_limit_fails_the_whole_batch(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let large = "x".repeat(TEXT_BYTES_MAX + 1);
    let batch = [entry("c1", &[("task-1", "a")]), entry("c2", &[("task-1", &large)])];
    let error = LogError::TooLarge { bytes: TEXT_BYTES_MAX + 1, limit: TEXT_BYTES_MAX };
    assert_eq!(log.append(&batch), Err(error));
    assert_eq!(log.head().seq, 0);
}

pub(crate) fn text_of_any_kind_comes_back_as_it_was(specimen: &mut dyn Specimen) {
    let texts = ["", "a\0b", "\u{feff}ünïcödé 🦀", "'; DROP TABLE records; --", "{\"a\":1}\r\n"];
    for text in texts {
        let mut entry = entry(text, &[(text, text)]);
        entry.actor = text.to_owned();
        specimen.log().append(&[entry]).unwrap();
    }
    specimen.reopen().unwrap();
    let log = specimen.log();
    for (record, text) in log.read(0, 10).unwrap().iter().zip(texts) {
        assert_eq!([&record.stream, &record.data, &record.command, &record.actor], [text; 4]);
        assert_eq!(log.version(text).unwrap(), 1);
    }
}

pub(crate) fn reading_goes_on_after_any_record(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    numbered(log, 1..=10);
    let all = log.read(0, 100).unwrap();
    assert_eq!(all.len(), 10);
    for after in 0..=10 {
        assert_eq!(log.read(after, 100).unwrap(), all[after as usize..]);
        let few = &all[after as usize..(after as usize + 3).min(10)];
        assert_eq!(log.read(after, 3).unwrap(), few);
        assert_eq!(log.read(after, 0).unwrap(), []);
    }
    // A reader at the end waits, and goes on from there.
    numbered(log, 11..=12);
    assert_eq!(log.read(10, 100).unwrap().iter().map(|record| record.seq).collect::<Vec<_>>(), [11, 12]);
}

pub(crate) fn reading_past_the_end_is_an_error(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    assert_eq!(log.read(1, 10), Err(LogError::Beyond { after: 1, last: 0 }));
    numbered(log, 1..=3);
    assert_eq!(log.read(4, 10), Err(LogError::Beyond { after: 4, last: 3 }));
}

pub(crate) fn a_scan_ends_when_its_visitor_has_seen_enough(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    numbered(log, 1..=10);
    let mut seen = Vec::new();
    log.scan(2, &mut |record| {
        seen.push(record.seq);
        if record.seq == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(seen, [3, 4, 5]);
}

pub(crate) fn a_stream_is_read_alone_and_checked(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let batch = [
        entry("c1", &[("run/a", "1"), ("run/b", "1")]),
        entry("c2", &[("run/a.1", "1"), ("run/a", "2")]),
        entry("c3", &[("run/b", "2"), ("run/a", "3")]),
    ];
    log.append(&batch).unwrap();
    let read = |log: &dyn Log, stream, after, through| {
        let records = log.read_stream(stream, after, through).unwrap();
        records.iter().map(|record| (record.seq, record.version)).collect::<Vec<_>>()
    };
    assert_eq!(read(log, "run/a", 0, 100), [(1, 1), (4, 2), (6, 3)]);
    assert_eq!(read(log, "run/a", 1, 5), [(4, 2)]);
    assert_eq!(read(log, "run/b", 5, 100), []);
    assert_eq!(read(log, "run/", 0, 100), []);
    assert_eq!(log.read_stream("run/a", 7, 100), Err(LogError::Beyond { after: 7, last: 6 }));
    // One that is noticed when the log is opened is not read at all.
    if specimen.damage(Damage::EditRecord(4)) && specimen.reopen().is_ok() {
        let error = specimen.log().read_stream("run/a", 0, 100).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { seq: 4, .. }), "{error}");
    }
}

pub(crate) fn effects_are_leased_oldest_first_and_only_once(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("z"), effect("b"), effect("a")])]).unwrap();
    let leased = log.lease("runner-1", 10, 20, 2).unwrap();
    assert_eq!(attempts(&leased), [("z", 1), ("b", 1)]);
    assert_eq!(leased[0].kind, "CreateWorktree");
    assert_eq!(leased[0].data, "{}");
    assert_eq!(leased[0].until, 20);
    assert_eq!(attempts(&log.lease("runner-2", 10, 20, 9).unwrap()), [("a", 1)]);
    assert_eq!(log.lease("runner-3", 19, 30, 9).unwrap(), []);
    assert_eq!(log.lease("runner-3", 19, 30, 0).unwrap(), []);

    let outbox = log.outbox().unwrap();
    assert_eq!(outbox[2].owner.as_deref(), Some("runner-2"));
    assert_eq!((outbox[2].attempt, outbox[2].until), (1, Some(20)));
}

pub(crate) fn a_lease_that_ran_out_is_given_out_again_with_a_new_attempt(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("e1"), effect("e2")])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    log.lease("runner-1", 0, 30, 1).unwrap();
    log.append(&[with_effects(entry("c2", &[]), &[effect("e3")])]).unwrap();
    // The one that ran out is older than the one that was never leased.
    assert_eq!(attempts(&log.lease("runner-2", 10, 40, 9).unwrap()), [("e1", 2), ("e3", 1)]);
    assert_eq!(attempts(&log.lease("runner-3", 100, 200, 9).unwrap()), [("e1", 3), ("e2", 2), ("e3", 2)]);
}

pub(crate) fn a_lease_that_ran_out_holds_until_another_takes_it(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("e1")])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    let late = fenced(entry("late", &[("task-1", "a")]), "e1", 1);
    assert_eq!(log.append(std::slice::from_ref(&late)).unwrap(), [Appended::Written { first: 1, last: 1 }]);
    assert_eq!(attempts(&log.lease("runner-2", 10, 40, 1).unwrap()), [("e1", 2)]);
    assert_eq!(log.append(&[late]).unwrap(), [Appended::Fenced { effect: "e1".into(), attempt: 1 }]);
    assert_eq!(log.lease("runner-1", 39, 50, 1).unwrap(), []);
}

pub(crate) fn which_attempt_is_the_current_one_can_be_asked_before_anything_is_written(
    specimen: &mut dyn Specimen,
) {
    let log = specimen.log();
    let asked = with_effects(entry("c1", &[("task-1", "a")]), &[effect("e1"), timer("t1", 50)]);
    log.append(&[asked]).unwrap();
    assert_eq!(log.ready(), Ok(log.head()));
    let held = |log: &dyn Log| {
        let attempts = [fence("e1", 0), fence("e1", 1), fence("e1", 2), fence("t1", 0), fence("e9", 1)];
        attempts.map(|attempt| log.holds(&attempt).unwrap())
    };
    assert_eq!(held(log), [false, false, false, true, false]);
    log.lease("runner", 0, 10, 9).unwrap();
    assert_eq!(held(log), [false, true, false, true, false]);
    log.lease("other", 10, 20, 9).unwrap();
    assert_eq!(held(log), [false, false, true, true, false]);
    specimen.reopen().unwrap();
    let log = specimen.log();
    assert_eq!(held(log), [false, false, true, true, false]);
    log.release(&fence("e1", 2)).unwrap();
    log.append(&[finishing(entry("c2", &[("task-1", "b")]), &["t1"])]).unwrap();
    assert_eq!(held(log), [false; 5]);
}

pub(crate) fn the_outcome_of_a_superseded_attempt_is_dropped_whole(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("e1")])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    log.lease("runner-2", 10, 20, 1).unwrap();

    let late = fenced(finishing(entry("late", &[("task-1", "x")]), &["e1"]), "e1", 1);
    let refused = [Appended::Fenced { effect: "e1".into(), attempt: 1 }];
    assert_eq!(log.append(&[with_effects(late, &[effect("e2")])]).unwrap(), refused);
    assert_eq!(log.head().seq, 0);
    assert_eq!(pending(log), ["e1"]);

    // The current one counts, also past its time, as long as nobody else has taken over.
    let outcome = fenced(finishing(entry("c2", &[("task-1", "a")]), &["e1"]), "e1", 2);
    assert_eq!(
        log.append(std::slice::from_ref(&outcome)).unwrap(),
        [Appended::Written { first: 1, last: 1 }]
    );
    // Delivered twice, it counts once.
    let refused = [Appended::Fenced { effect: "e1".into(), attempt: 2 }];
    assert_eq!(log.append(&[outcome]).unwrap(), refused);
    assert_eq!(commands(log), ["c2"]);
}

pub(crate) fn a_released_effect_is_free_at_once_and_its_attempt_fenced(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("e1")])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    assert!(log.release(&fence("e1", 1)).unwrap());
    assert!(!log.release(&fence("e1", 1)).unwrap());
    let refused = [Appended::Fenced { effect: "e1".into(), attempt: 1 }];
    assert_eq!(log.append(&[fenced(entry("late", &[("task-1", "x")]), "e1", 1)]).unwrap(), refused);
    assert_eq!(attempts(&log.lease("runner-2", 1, 10, 1).unwrap()), [("e1", 2)]);
}

pub(crate) fn a_finished_effect_is_gone_and_its_attempt_fenced(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[effect("e1"), effect("e2")])]).unwrap();
    log.lease("runner-1", 0, 10, 2).unwrap();
    // Superseded by somebody else's command, which carries no fence; finishing it again is no fault.
    log.append(&[finishing(entry("c2", &[]), &["e1", "never-seen"]), finishing(entry("c3", &[]), &["e1"])])
        .unwrap();
    assert_eq!(pending(log), ["e2"]);
    assert!(!log.release(&fence("e1", 1)).unwrap());
    assert_eq!(attempts(&log.lease("runner-2", 10, 20, 9).unwrap()), [("e2", 2)]);
}

pub(crate) fn an_effect_added_and_finished_by_one_entry_is_never_seen(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let both = finishing(with_effects(entry("c1", &[]), &[effect("e1"), effect("e2")]), &["e1"]);
    log.append(&[both]).unwrap();
    assert_eq!(pending(log), ["e2"]);
    specimen.reopen().unwrap();
    assert_eq!(pending(specimen.log()), ["e2"]);
}

pub(crate) fn timers_are_listed_with_their_time_and_never_leased(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let timers = [timer("t3", 30), timer("t2", 20), timer("t1", 20), effect("e1"), timer("t0", -5)];
    log.append(&[with_effects(entry("c1", &[]), &timers)]).unwrap();
    assert_eq!(timers_of(log), ["t3 30", "t2 20", "t1 20", "t0 -5"]);
    assert_eq!(attempts(&log.lease("runner-1", 100, 200, 9).unwrap()), [("e1", 1)]);

    // They stay until they are finished.
    log.append(&[finishing(entry("c2", &[]), &["t0", "t1"])]).unwrap();
    assert_eq!(timers_of(log), ["t3 30", "t2 20"]);
    assert!(!log.release(&fence("t2", 0)).unwrap());
}

pub(crate) fn a_timer_that_was_finished_fences_its_late_outcome(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    log.append(&[with_effects(entry("c1", &[]), &[timer("t1", 10)])]).unwrap();
    let fired = fenced(finishing(entry("fired", &[("task-1", "a")]), &["t1"]), "t1", 0);
    assert_eq!(log.append(std::slice::from_ref(&fired)).unwrap(), [Appended::Written { first: 1, last: 1 }]);
    assert_eq!(log.append(&[fired]).unwrap(), [Appended::Fenced { effect: "t1".into(), attempt: 0 }]);
}

pub(crate) fn all_is_as_it_was_after_reopening(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    numbered(log, 1..=20);
    log.append(&[with_effects(entry("c21", &[]), &[effect("e1"), effect("e2"), timer("t1", 9)])]).unwrap();
    log.lease("runner-1", 0, 10, 1).unwrap();
    let snapshot = Snapshot { seq: 20, hash: log.head().hash, data: vec![1, 2, 3] };
    log.save_snapshot(&snapshot).unwrap();
    let before = everything(log);

    specimen.reopen().unwrap();
    let log = specimen.log();
    assert_eq!(everything(log), before);
    assert_eq!(log.version("task-0").unwrap(), 6);
    assert_eq!(timers_of(log), ["t1 9"]);
    // Attempts go on counting, and so do seq and versions.
    assert_eq!(attempts(&log.lease("runner-2", 10, 20, 9).unwrap()), [("e1", 2), ("e2", 1)]);
    numbered(log, 21..=21);
    assert_eq!(log.read(0, 100).unwrap().len(), 21);
}

pub(crate) fn the_newest_snapshot_is_found_and_older_ones_are_pruned(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    let mut snapshots = Vec::new();
    for n in 1..=3 {
        numbered(log, n..=n);
        let Head { seq, hash } = log.head();
        let snapshot = Snapshot { seq, hash, data: vec![n as u8; 10_000] };
        log.save_snapshot(&snapshot).unwrap();
        assert_eq!(log.snapshot().unwrap().as_ref(), Some(&snapshot));
        snapshots.push(snapshot);
    }
    // Two are kept, so two can be damaged before nothing is left.
    assert!(specimen.damage(Damage::EditSnapshot));
    specimen.reopen().unwrap();
    assert_eq!(specimen.log().snapshot().unwrap().as_ref(), Some(&snapshots[1]));
    let again = Snapshot { data: vec![9], ..snapshots[2].clone() };
    specimen.log().save_snapshot(&again).unwrap();
    assert_eq!(specimen.log().snapshot().unwrap(), Some(again));
}

pub(crate) fn a_snapshot_of_another_log_is_not_taken(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    numbered(log, 1..=2);
    let future = Snapshot { seq: 3, hash: log.head().hash, data: vec![] };
    assert_eq!(log.save_snapshot(&future), Err(LogError::Stray { seq: 3 }));
    let other = Snapshot { seq: 2, hash: [7; 32], data: vec![] };
    assert_eq!(log.save_snapshot(&other), Err(LogError::Stray { seq: 2 }));
    assert_eq!(log.snapshot().unwrap(), None);
}

pub(crate) fn a_damaged_snapshot_is_passed_over(specimen: &mut dyn Specimen) {
    passes_over_the_newest_snapshot(specimen, Damage::EditSnapshot);
}

pub(crate) fn an_alien_snapshot_is_passed_over(specimen: &mut dyn Specimen) {
    passes_over_the_newest_snapshot(specimen, Damage::AlienSnapshot);
}

fn passes_over_the_newest_snapshot(specimen: &mut dyn Specimen, damage: Damage) {
    let log = specimen.log();
    numbered(log, 1..=1);
    let older = Snapshot { seq: 1, hash: log.head().hash, data: vec![1] };
    log.save_snapshot(&older).unwrap();
    numbered(log, 2..=2);
    let newer = Snapshot { seq: 2, hash: log.head().hash, data: vec![2] };
    log.save_snapshot(&newer).unwrap();
    assert!(specimen.damage(damage));
    specimen.reopen().unwrap();
    assert_eq!(specimen.log().snapshot().unwrap(), Some(older));
    assert_eq!(specimen.log().read(0, 10).unwrap().len(), 2);
}

pub(crate) fn an_edited_record_is_named(specimen: &mut dyn Specimen) {
    names_the_bad_record(specimen, Damage::EditRecord(4), 4);
}

pub(crate) fn a_removed_record_is_named(specimen: &mut dyn Specimen) {
    names_the_bad_record(specimen, Damage::RemoveRecord(4), 4);
}

pub(crate) fn a_removed_last_record_is_named(specimen: &mut dyn Specimen) {
    names_the_bad_record(specimen, Damage::RemoveRecord(10), 10);
}

pub(crate) fn records_that_changed_places_are_named(specimen: &mut dyn Specimen) {
    names_the_bad_record(specimen, Damage::SwapRecords(4, 7), 4);
}

/// At the latest when it is read, and never after it was shown to anybody.
fn names_the_bad_record(specimen: &mut dyn Specimen, damage: Damage, bad: Seq) {
    numbered(specimen.log(), 1..=10);
    assert!(specimen.damage(damage));
    let mut shown = 0;
    let result = specimen.reopen().and_then(|()| {
        specimen.log().scan(0, &mut |record| {
            shown = record.seq;
            ControlFlow::Continue(())
        })
    });
    match result {
        Err(LogError::Corrupt { seq, .. }) => assert_eq!(seq, bad, "after {damage:?}"),
        other => panic!("{other:?} after {damage:?}"),
    }
    assert!(shown < bad, "record {shown} was shown after {damage:?}");
}

pub(crate) fn an_edited_effect_is_noticed(specimen: &mut dyn Specimen) {
    notices_damage_to_the_outbox(specimen, Damage::EditEffect);
}

pub(crate) fn a_removed_effect_is_noticed(specimen: &mut dyn Specimen) {
    notices_damage_to_the_outbox(specimen, Damage::RemoveEffect);
}

fn notices_damage_to_the_outbox(specimen: &mut dyn Specimen, damage: Damage) {
    specimen.log().append(&[with_effects(entry("c1", &[]), &[effect("e1"), effect("e2")])]).unwrap();
    if !specimen.damage(damage) {
        return;
    }
    match specimen.reopen() {
        Err(LogError::Damaged { part: "outbox", .. }) => {}
        other => panic!("{other:?} after {damage:?}"),
    }
}

/// The hash is part of the format: whatever a log is made of, and for as long as there are logs.
pub(crate) fn equal_entries_make_equal_hashes(specimen: &mut dyn Specimen) {
    let log = specimen.log();
    numbered(log, 1..=2);
    let hash = base::hex::hex(&log.head().hash);
    assert_eq!(hash, "17271fccdc1ad9c361ff848f0a6ad398b3e79af6e97f7cc5a838b90e33be77e7");
}

pub(crate) fn entry(command: &str, records: &[(&str, &str)]) -> Entry {
    let records = records.iter().map(|(stream, data)| NewRecord {
        stream: (*stream).to_owned(),
        kind: "Start".to_owned(),
        data: (*data).to_owned(),
    });
    Entry {
        command: command.to_owned(),
        actor: "alice".to_owned(),
        at: 1_000,
        records: records.collect(),
        ..Entry::default()
    }
}

pub(crate) fn expecting(mut entry: Entry, expected: &[(&str, u64)]) -> Entry {
    entry.expected = expected.iter().map(|(stream, version)| ((*stream).to_owned(), *version)).collect();
    entry
}

pub(crate) fn with_effects(mut entry: Entry, effects: &[NewEffect]) -> Entry {
    entry.effects = effects.to_vec();
    entry
}

pub(crate) fn finishing(mut entry: Entry, finished: &[&str]) -> Entry {
    entry.finished = finished.iter().map(|id| (*id).to_owned()).collect();
    entry
}

pub(crate) fn fenced(mut entry: Entry, effect: &str, attempt: u32) -> Entry {
    entry.fence = Some(fence(effect, attempt));
    entry
}

pub(crate) fn fence(effect: &str, attempt: u32) -> Fence {
    Fence { effect: effect.to_owned(), attempt }
}

pub(crate) fn effect(id: &str) -> NewEffect {
    NewEffect { id: id.to_owned(), kind: "CreateWorktree".to_owned(), due: None, data: "{}".to_owned() }
}

pub(crate) fn timer(id: &str, due: Millis) -> NewEffect {
    NewEffect { due: Some(due), kind: "Timeout".to_owned(), ..effect(id) }
}

/// One command each, `c1` and so on, over three streams.
pub(crate) fn numbered(log: &mut dyn Log, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        let stream = format!("task-{}", n % 3);
        log.append(&[entry(&format!("c{n}"), &[(&stream, &format!("{{\"n\":{n}}}"))])]).unwrap();
    }
}

pub(crate) fn commands(log: &dyn Log) -> Vec<String> {
    log.read(0, usize::MAX).unwrap().into_iter().map(|record| record.command).collect()
}

pub(crate) fn pending(log: &dyn Log) -> Vec<String> {
    log.outbox().unwrap().into_iter().map(|pending| pending.id).collect()
}

/// All that a log holds, to be compared.
pub(crate) fn everything(log: &dyn Log) -> (Vec<Record>, Vec<Pending>, Head, Option<Snapshot>) {
    (log.read(0, usize::MAX).unwrap(), log.outbox().unwrap(), log.head(), log.snapshot().unwrap())
}

fn attempts(leased: &[Leased]) -> Vec<(&str, u32)> {
    leased.iter().map(|leased| (leased.id.as_str(), leased.attempt)).collect()
}

fn timers_of(log: &dyn Log) -> Vec<String> {
    let pending = log.outbox().unwrap().into_iter();
    pending.filter_map(|pending| Some(format!("{} {}", pending.id, pending.due?))).collect()
}
