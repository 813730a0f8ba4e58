use super::*;

/// All that follows the log reads this in place of the file.
#[test]
fn what_was_just_written_is_in_memory_as_the_log_has_it() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let _following = handle.follow();
    fleet_at_work(&handle);
    done(handle.submit(comment(20, "c-1", "one"), None));
    let written = shelf.with(|log| log.read(0, usize::MAX).unwrap());
    assert!(written.iter().any(|record| record.version > 1), "a stream with several records is among them");
    assert_eq!(handle.latest(0, usize::MAX).unwrap(), written);
    assert_eq!(handle.latest(2, 1).unwrap(), written[2..3]);
    assert_eq!(handle.latest(written.len() as Seq, 10), Some(Vec::new()));
    assert_eq!(handle.latest(written.len() as Seq + 1, 10), None, "there is no such record");
}

#[test]
fn where_nobody_follows_nothing_is_kept_and_the_log_is_read() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    done(handle.submit(add(1), None));
    assert_eq!(handle.latest(0, 10), None);
    let following = handle.follow();
    done(handle.submit(add(2), None));
    assert_eq!(handle.latest(0, 10), None, "it begins where somebody began to follow");
    assert_eq!(handle.latest(2, 10).unwrap().len(), 1);
    assert_eq!(handle.read(0, 10).unwrap().len(), 3);
    drop(following);
    done(handle.submit(add(3), None));
    assert_eq!(handle.latest(2, 10), None);
}

/// What a failed write left in the file was never seen here.
#[test]
fn after_a_batch_that_survived_its_failure_nothing_is_missing() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let _following = handle.follow();
    done(handle.submit(add(1), None));
    shelf.fail_next(LogError::Sync { why: "gone".into() }, true);
    assert!(handle.submit(add(2), None).is_err());
    done(handle.submit(add(3), None));
    assert_eq!(handle.latest(1, 10), None);
    let written = shelf.with(|log| log.read(0, usize::MAX).unwrap());
    assert_eq!(handle.read(0, 10).unwrap(), written);
    assert_eq!(handle.latest(3, 10).unwrap(), written[3..]);
}

#[test]
fn only_so_much_of_the_end_is_kept() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let _following = handle.follow();
    // As long as a comment may be; so many are more than is kept.
    let text = "x".repeat(1 << 16);
    done(handle.submit(add(1), None));
    for id in 2..82 {
        done(handle.submit(comment(id, "c-1", &text), None));
    }
    let end = handle.world().seq;
    assert_eq!((handle.latest(0, 1), handle.latest(end - 65, 1)), (None, None));
    assert_eq!(handle.latest(end - 60, 100).unwrap().len(), 60);
}
