use super::Repository;
use crate::{adj, snapshot};

const TICKETS: [&str; 9] = ["ta-1", "ta-2", "ta-3", "ta-4", "ta-5", "ta-6", "ta-7", "ta-8", "ta-9"];

/// Nine tickets, four workers, and every mishap of the sample, checked with git and files alone.
/// Slow: it runs the whole demo.
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

/// Six stories with dependencies, one question that a person answers, one review that asks for changes, one outage.
/// Slow: it runs the whole demo.
#[test]
fn the_demo_of_a_spec_lands_every_story_that_the_architect_made_of_it() {
    let repository = Repository::empty("demo-spec");
    let ran = adj(&format!("demo --spec --dir {}", repository.dir().display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    for id in ["tally-1", "tally-2", "tally-3", "tally-4", "tally-5", "tally-6"] {
        let tip = format!("refs/adjutant/tasks/{id}");
        assert!(repository.git_says(&format!("merge-base --is-ancestor {tip} main")), "{id} is not in main");
    }
    repository.check_but_for_tips(&[], "sh tests/run");
    for said in [
        "the architect leaves the spec to you",
        "the spec tally is split into tasks",
        "the spec tally is done",
    ] {
        assert!(ran.stdout.contains(said), "`{said}` is not in:\n{}", ran.stdout);
    }
    for (kind, count) in [("story_loaded", 6), ("task_landed", 6), ("request_for_person", 1)] {
        assert_eq!(repository.events(kind), count, "{kind}");
    }
    for word in ["ESCALATED", "DISPATCHING", "MONITORING", "SUSPEND", "RESTORE"] {
        assert_ne!(repository.events(word), 0, "the architect never came to {word}");
    }
}

/// Three agents and a person: one is too slow, one crashes, and what the person decides moves the task.
#[test]
fn the_demo_of_a_room_ends_in_a_decision_that_lands_the_work() {
    let repository = Repository::empty("demo-room");
    let ran = adj(&format!("demo --room --dir {}", repository.dir().display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    repository.check(&["ro-1"], "sh tests/run");
    for said in
        ["⏱️ ben turn timed out", "⚠️ carl disconnected, skipping turn", "lost in thought", "I take it."]
    {
        assert!(ran.stdout.contains(said), "`{said}` is not in:\n{}", ran.stdout);
    }
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

/// `adj run --open` serves the page and hands the browser a link to it.
mod opened {
    use super::super::Repository;
    use super::super::background::wait;
    use super::super::policies::{DONE, WRITE, scenario};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_fleet_that_is_run_with_open_shows_its_page_in_a_browser() {
        let repository = Repository::new("run-open", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
        let folder = tempfile::tempdir().unwrap();
        let (opener, told) = (folder.path().join("xdg-open"), folder.path().join("told"));
        // Renamed when it is whole, so that nobody reads a part of it.
        let script = format!("#!/bin/sh\necho \"$1\" > {0}.new && mv {0}.new {0}\n", told.display());
        std::fs::write(&opener, script).unwrap();
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let fleet = repository.begin_with("run --open --port 0", &[("PATH", std::path::Path::new(&path))]);
        let link = wait("a link", || std::fs::read_to_string(&told).ok());
        let (page, secret) = link.trim().split_once('#').unwrap();
        assert!(page.starts_with("http://127.0.0.1:") && page.ends_with("/enter"), "{page}");
        assert_eq!(secret.len(), 64);
        repository.ok("stop");
        fleet.done();
    }
}
