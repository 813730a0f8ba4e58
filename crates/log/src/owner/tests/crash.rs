//! The owner's process is killed at every crash point in turn, on a log on disk.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::*;
use crate::{Location, open_for_reading};
use testing::Folder;

const CHILD_FOLDER: &str = "ADJ_TEST_OWNER_FOLDER";
const TASKS: u128 = 6;

#[test]
fn every_acknowledged_command_is_there_after_a_kill_anywhere() {
    let mut points = 0;
    for crash_at in 1.. {
        let folder = Folder::new();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "--nocapture",
            "--test-threads=1",
            "owner::tests::crash::acknowledging_child",
        ]);
        child.env(CHILD_FOLDER, &folder.path).env("ADJ_CRASH_AT", crash_at.to_string());
        let output = child.stdin(Stdio::null()).env_remove("RUST_BACKTRACE").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let acknowledged = said.matches("acknowledged ").count();

        let log = open(&folder.path);
        let whole = Folded::read_all(&*log, VERSION).unwrap().world;
        let there = whole.tasks.len();
        assert!(
            there == acknowledged || there == acknowledged + 1,
            "{acknowledged} acknowledged, {there} there"
        );
        assert_eq!(Folded::read(&*log, VERSION).unwrap().world, whole);
        let owner = Owner::open(log).unwrap();
        for id in there as u128..TASKS {
            done(owner.handle().submit(add(id), None));
        }
        assert_eq!(owner.handle().world().tasks.len() as u128, TASKS);
        if output.status.success() {
            assert_eq!(acknowledged as u128, TASKS);
            break;
        }
        points += 1;
    }
    assert!(points > 40, "only {points} crash points");
}

/// Not a test of its own: what the test above starts, and kills.
#[test]
fn acknowledging_child() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER).map(PathBuf::from) else { return };
    let settings = Settings { snapshot_every: 2, ..Settings::default() };
    let owner = Owner::open_with(open(&folder), settings).unwrap();
    for id in 0..TASKS {
        done(owner.handle().submit(add(id), None));
        println!("acknowledged {id}");
    }
}

#[test]
fn a_second_owner_of_a_project_is_told_who_the_first_is() {
    let folder = Folder::new();
    let first = Owner::open(open(&folder.path)).unwrap();
    done(first.handle().submit(add(1), None));
    let path = folder.path.join("log.db");
    let second = crate::open(&Location::File(path.clone())).map(drop);
    assert!(matches!(second, Err(LogError::Held { holder: Some(_) })), "{second:?}");
    // Whoever only looks is let in.
    let reader = open_for_reading(&Location::File(path)).unwrap();
    assert_eq!(Folded::read(&*reader, VERSION).unwrap().world, *first.handle().world());
    drop(first);
    let third = Owner::open(open(&folder.path)).unwrap();
    done(third.handle().submit(add(2), None));
}

fn open(folder: &Path) -> Box<dyn Log> {
    crate::open(&Location::File(folder.join("log.db"))).unwrap()
}
