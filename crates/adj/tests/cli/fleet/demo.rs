use super::Repository;
use crate::{adj, snapshot};

const TICKETS: [&str; 9] = ["ta-1", "ta-2", "ta-3", "ta-4", "ta-5", "ta-6", "ta-7", "ta-8", "ta-9"];

/// Nine tickets, four workers, and every mishap of the sample, checked with git and files alone.
#[test]
fn the_demo_lands_every_ticket_and_survives_every_mishap() {
    let repository = Repository::empty("demo");
    let ran = adj(&format!("demo --dir {}", repository.dir().display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'), "in a pipe it is plain lines: {}", ran.stdout);
    repository.check(&TICKETS, "sh tests/run");
    for mishap in [
        "ta-1: agent reported done, but tests failed: ",
        "ta-7: agent reported done, but nothing has changed",
        "ta-3: conflicts with main",
        "step on ta-4 failed",
        "9 of 9 tasks DONE",
    ] {
        assert!(ran.stdout.contains(mishap), "`{mishap}` is not in:\n{}", ran.stdout);
    }
    for (kind, least) in [("sent_back", 3), ("empty_diff_seen", 1), ("task_landed", 9), ("charged", 9)] {
        assert!(repository.events(kind) >= least, "{kind}");
    }
    assert!(
        repository.git("log --format=%B main").contains("Leftover changes of ta-6"),
        "the gate says what it committed"
    );
}

#[test]
fn the_demo_does_not_write_into_a_folder_that_holds_something() {
    let repository = Repository::empty("demo-full");
    repository.write("mine", "kept");
    let ran = adj(&format!("demo --dir {}", repository.dir().display()));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("is not empty"), "{}", ran.stderr);
    assert_eq!(repository.read("mine"), "kept");
}

#[test]
fn the_demo_has_help() {
    snapshot("help-demo.txt", &adj("demo --help").stdout);
}
