//! The disk is full: nothing is half written, the process goes on, and so does the log when there is space.

use std::process::Command;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use super::crash::{child, child_folder};
use super::*;

/// A file that may not grow: the system's way to have a full disk at an exact byte.
#[test]
fn a_limit_on_file_size_is_a_full_disk() {
    let folder = Folder::new();
    let output = child("sqlite::tests::full::child_with_limited_files", &folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("was full 40 times"), "{said}");
}

#[test]
fn child_with_limited_files() {
    let Some(folder) = child_folder("ADJ_TEST_LOG_FOLDER") else { return };
    // With the signal blocked, a write past the limit fails instead of ending the process.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    signals.thread_block().unwrap();
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();

    let mut full = 0;
    for round in 0..40 {
        let path = folder.join(format!("{round}.db"));
        let mut log = SqliteLog::open(&path, &Holder::current()).unwrap();
        let mut written = fill(&mut log, 3);
        // Not a multiple of the page size: the last page is cut at every place in turn.
        setrlimit(Resource::RLIMIT_FSIZE, 40_000 + round * 1_357, hard).unwrap();
        written.extend(fill(&mut log, usize::MAX));
        refuses_everything_and_keeps_all(&mut log, &written);
        full += 1;
        setrlimit(Resource::RLIMIT_FSIZE, hard, hard).unwrap();
        goes_on(log, &path, &mut written);
    }
    println!("was full {full} times");
}

/// A file system of its own that is really full. Where mounting is not allowed, there is nothing to see.
#[test]
fn a_disk_without_space_is_survived_until_there_is_space_again() {
    let folder = Folder::new();
    let mut tmpfs = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=700k tmpfs \"$ADJ_TEST_LOG_FOLDER\" || exit 77; exec \"$@\"";
    tmpfs.args(["--map-root-user", "--mount", "sh", "-c", mount, "sh"]);
    let inner = child("sqlite::tests::full::child_on_a_full_disk", &folder);
    tmpfs.arg(inner.get_program()).args(inner.get_args()).env("ADJ_TEST_LOG_FOLDER", &folder.path);
    let Ok(output) = tmpfs.output() else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || said.starts_with("unshare:") {
        eprintln!("not tested: a file system cannot be mounted here: {said}");
        return;
    }
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("was full"), "{said}");
}

#[test]
fn child_on_a_full_disk() {
    let Some(folder) = child_folder("ADJ_TEST_LOG_FOLDER") else { return };
    let (path, ballast) = (folder.join("log.db"), folder.join("ballast"));
    let mut log = SqliteLog::open(&path, &Holder::current()).unwrap();
    fs::write(&ballast, vec![0; 300_000]).unwrap();
    let mut written = fill(&mut log, usize::MAX);
    refuses_everything_and_keeps_all(&mut log, &written);
    println!("was full after {} commands", written.len());

    fs::remove_file(&ballast).unwrap();
    goes_on(log, &path, &mut written);
}

/// Appends until the disk is full or `limit` is reached, and returns the commands that were acknowledged.
fn fill(log: &mut SqliteLog, limit: usize) -> Vec<String> {
    let mut written = Vec::new();
    while written.len() < limit {
        let command = format!("command-{}", log.head().seq + 1);
        match log.append(&[entry(&command, &[("task-1", &"x".repeat(700))])]) {
            Ok(_) => written.push(command),
            Err(LogError::Full) => break,
            Err(error) => panic!("{error:?} after {} commands", written.len()),
        }
    }
    written
}

fn refuses_everything_and_keeps_all(log: &mut SqliteLog, written: &[String]) {
    let large = entry("refused", &[("task-2", &"x".repeat(20_000))]);
    let large = conformance::with_effects(large, &[conformance::effect("e1")]);
    assert_eq!(log.append(std::slice::from_ref(&large)), Err(LogError::Full));
    assert_eq!(log.append(&[large]), Err(LogError::Full));
    let Head { seq, hash } = log.head();
    let snapshot = Snapshot { seq, hash, data: vec![0; 100_000] };
    assert_eq!(log.save_snapshot(&snapshot), Err(LogError::Full));
    assert_eq!(log.version("task-2"), Ok(0));
    assert_eq!(log.outbox(), Ok(vec![]));
    assert_eq!(commands(log), written);
}

fn goes_on(mut log: SqliteLog, path: &Path, written: &mut Vec<String>) {
    written.extend(fill(&mut log, 10));
    assert_eq!(commands(&log), *written);
    drop(log);
    let log = SqliteLog::open(path, &Holder::current()).unwrap();
    assert_eq!(commands(&log), *written);
    assert_eq!(log.version("task-1"), Ok(written.len() as u64));
}
