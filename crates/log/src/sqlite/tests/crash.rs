//! The process is killed at every crash point in turn.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::script::{STEPS, finish, state, states, step};
use super::*;

const CHILD_FOLDER: &str = "ADJ_TEST_LOG_FOLDER";

#[test]
fn a_process_killed_anywhere_loses_nothing_it_acknowledged() {
    let states = states();
    let mut points = Vec::new();
    for crash_at in 1.. {
        let folder = Folder::new();
        let output = child("sqlite::tests::crash::acknowledging_child", &folder)
            .env("ADJ_CRASH_AT", crash_at.to_string())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let acknowledged = String::from_utf8_lossy(&output.stdout).matches("acknowledged ").count();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();

        let mut log = folder.open();
        let found = state(&log).unwrap();
        if output.status.success() {
            assert_eq!(acknowledged, STEPS);
            assert_eq!(found, states[STEPS]);
            break;
        }
        // What was under way may be there or not, but whole.
        let done =
            [acknowledged, acknowledged + 1].into_iter().find(|done| states.get(*done) == Some(&found));
        let done = done.unwrap_or_else(|| panic!("{said}: neither {acknowledged} steps nor one more"));
        finish(&mut log, done);
        points.push(said.lines().last().unwrap_or_default().rsplit_once(": ").unwrap().1.to_owned());
    }
    for point in ["tables are there", "taken", "records", "before commit", "after commit", "after"] {
        assert!(points.iter().any(|passed| passed == point), "no crash at `{point}`, only {points:?}");
    }
    assert!(points.len() > 80, "only {} crash points", points.len());
}

#[test]
fn the_log_of_a_killed_owner_is_free_at_once_and_whole() {
    let folder = Folder::new();
    let mut owner = child("sqlite::tests::crash::holding_child", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(said.map(Result::unwrap).any(|line| line.ends_with("holding")));

    match SqliteLog::open(&folder.database(), &Holder::current()).map(drop) {
        Err(LogError::Held { holder: Some(holder) }) => assert_eq!(holder.pid, owner.id()),
        other => panic!("{other:?}"),
    }
    // Looking is allowed.
    assert_eq!(commands(&SqliteLog::open_for_reading(&folder.database()).unwrap()), ["c1", "c2", "c3"]);

    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(commands(&folder.open()), ["c1", "c2", "c3"]);
}

/// Not a test of its own: holds a log until it is killed.
#[test]
fn holding_child() {
    let Some(folder) = child_folder(CHILD_FOLDER) else { return };
    let mut log = SqliteLog::open(&folder.join("log.db"), &Holder::current()).unwrap();
    numbered(&mut log, 1..=3);
    println!("holding");
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Not a test of its own: what the first test starts, and kills.
#[test]
fn acknowledging_child() {
    let Some(folder) = child_folder(CHILD_FOLDER) else { return };
    let settings = Settings { checkpoint_pages: 8, ..Settings::default() };
    let mut log = None;
    for n in 0..STEPS {
        if n % 5 == 0 {
            drop(log.take());
        }
        let log = log.get_or_insert_with(|| {
            SqliteLog::open_with(&folder.join("log.db"), &Holder::current(), settings).unwrap()
        });
        step(log, n).unwrap();
        println!("acknowledged {n}");
    }
}

/// This test binary once more, running only the named test.
pub(super) fn child(test: &str, folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "--test-threads=1", test]);
    command.env(CHILD_FOLDER, &folder.path).env_remove("RUST_BACKTRACE");
    command
}

pub(super) fn child_folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}
