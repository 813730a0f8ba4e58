//! Bytes of our files are flipped and cut off, one place after the other.

use std::process::Command;

use super::script::{STEPS, State, state, states, step};
use super::*;

const SUFFIXES: [&str; 3] = ["", "-wal", ".head"];

#[test]
fn a_flipped_byte_in_the_database_is_never_read_as_if_it_were_right() {
    let files = Files::of_a_closed_log();
    let seen = files.with_each(97, |bytes, at| bytes[at] ^= 1 << (at % 8), "");
    assert!(seen.refused > 100 && seen.whole > 100, "{seen:?}");
}

#[test]
fn a_database_that_was_cut_short_is_never_read_as_if_it_were_whole() {
    let files = Files::of_a_closed_log();
    let seen = files.with_each(1_021, Vec::truncate, "");
    // Whole is only what lost no more than pages of a snapshot.
    assert!(seen.refused > 50 && seen.whole < 10, "{seen:?}");
}

#[test]
fn an_overwritten_page_is_never_read_as_if_it_were_right() {
    let files = Files::of_a_closed_log();
    let zeroed = |bytes: &mut Vec<u8>, at: usize| {
        let end = (at + 512).min(bytes.len());
        bytes[at..end].fill(0);
    };
    let seen = files.with_each(512, zeroed, "");
    assert!(seen.refused > 30, "{seen:?}");
}

#[test]
fn a_flipped_byte_in_the_write_ahead_log_loses_nothing_in_silence() {
    let files = Files::of_a_killed_process();
    let seen = files.with_each(211, |bytes, at| bytes[at] ^= 1 << (at % 8), "-wal");
    assert!(seen.refused > 100, "{seen:?}");
}

#[test]
fn a_write_ahead_log_that_was_cut_short_loses_nothing_in_silence() {
    let files = Files::of_a_killed_process();
    let seen = files.with_each(509, Vec::truncate, "-wal");
    assert!(seen.refused > 50, "{seen:?}");
}

/// Without the mark, nothing can tell that more was acknowledged, but what is there is still a whole number of steps.
#[test]
fn a_write_ahead_log_that_was_cut_short_ends_between_two_commits() {
    let states = states();
    let mut files = Files::of_a_killed_process();
    files.bytes[2] = None;
    let wal = files.bytes[1].clone().unwrap();
    let mut ends = Vec::new();
    for length in (0..wal.len()).step_by(509) {
        files.bytes[1] = Some(wal[..length].to_vec());
        let folder = files.write();
        let found = state(&folder.open()).unwrap();
        let end = states.iter().position(|state| *state == found);
        ends.push(end.unwrap_or_else(|| panic!("no step ends like a log cut at byte {length}")));
    }
    assert!(ends.is_sorted(), "{ends:?}");
    assert!(ends.first() == Some(&0) && ends.last() >= Some(&(STEPS - 1)), "{ends:?}");
}

#[test]
fn a_damaged_mark_is_written_anew() {
    let files = Files::of_a_closed_log();
    let seen = files.with_each(1, |bytes, at| bytes[at] ^= 1, ".head");
    assert!(seen.refused == 0, "{seen:?}");
    let seen = files.with_each(1, Vec::truncate, ".head");
    assert!(seen.refused == 0, "{seen:?}");
}

#[test]
fn a_damaged_lock_file_stops_nobody() {
    for rubbish in ["", "{", "null", "\u{0}\u{1}", "{\"pid\":-1}"] {
        let folder = Folder::new();
        fs::write(Lock::path(&folder.database()), rubbish).unwrap();
        folder.open();
    }
}

/// What lies on disk of a log that has gone through the whole script.
struct Files {
    bytes: [Option<Vec<u8>>; 3],
}

#[derive(Debug, Default)]
struct Seen {
    /// A clear error, when it was opened or read.
    refused: usize,
    /// All there, as if nothing had happened.
    whole: usize,
}

impl Files {
    fn of_a_closed_log() -> Files {
        let folder = Folder::new();
        let mut log = folder.open();
        (0..STEPS).for_each(|n| step(&mut log, n).unwrap());
        drop(log);
        Files::read(&folder)
    }

    /// As they were just before the log was closed, with everything still in the write-ahead log.
    fn of_a_killed_process() -> Files {
        let (folder, copy) = (Folder::new(), Folder::new());
        let mut log = folder.open();
        (0..STEPS).for_each(|n| step(&mut log, n).unwrap());
        // By another process: closing a file drops all locks that this process holds on it, also SQLite's.
        let mut copying = Command::new("cp");
        copying.args(SUFFIXES.map(|suffix| beside(&folder.database(), suffix)));
        assert!(copying.arg(&copy.path).status().unwrap().success());
        Files::read(&copy)
    }

    fn read(folder: &Folder) -> Files {
        Files { bytes: SUFFIXES.map(|suffix| fs::read(beside(&folder.database(), suffix)).ok()) }
    }

    fn write(&self) -> Folder {
        let folder = Folder::new();
        for (suffix, bytes) in SUFFIXES.iter().zip(&self.bytes) {
            if let Some(bytes) = bytes {
                fs::write(beside(&folder.database(), suffix), bytes).unwrap();
            }
        }
        folder
    }

    /// Does the damage at every `stride`-th place of one file, each time to fresh copies, and looks what comes of it.
    fn with_each(&self, stride: usize, damage: impl Fn(&mut Vec<u8>, usize), suffix: &str) -> Seen {
        let states = states();
        let mut seen = Seen::default();
        let file = SUFFIXES.iter().position(|known| *known == suffix).unwrap();
        let original = self.bytes[file].clone().unwrap();
        for at in (0..original.len()).step_by(stride) {
            let mut bytes = self.bytes.clone();
            let mut damaged = original.clone();
            damage(&mut damaged, at);
            bytes[file] = Some(damaged);
            let folder = Files { bytes }.write();
            match read_all(&folder) {
                Err(error) => {
                    assert!(is_clear(&error), "{error:?} after damage at byte {at} of `{suffix}`");
                    seen.refused += 1;
                }
                Ok(found) => {
                    let whole = &states[STEPS];
                    // Snapshots are a cache: the older one, or none, is as good.
                    let snapshots = states.iter().map(|state| &state.snapshot);
                    let snapshot_is_ours = snapshots.into_iter().any(|known| *known == found.snapshot);
                    let snapshot = whole.snapshot.clone();
                    assert!(snapshot_is_ours, "a wrong snapshot after damage at byte {at} of `{suffix}`");
                    assert!(
                        State { snapshot, ..found } == *whole,
                        "wrong content after damage at byte {at} of `{suffix}`"
                    );
                    seen.whole += 1;
                }
            }
        }
        seen
    }
}

fn read_all(folder: &Folder) -> Result<State, LogError> {
    let mut log = SqliteLog::open(&folder.database(), &Holder::current())?;
    let found = state(&log)?;
    // Whatever damage was not seen yet must not lead to a panic, nor to a wrong answer later.
    if log.append(&[entry("more", &[("task-1", "x")])]).is_ok() {
        let more = log.read(0, usize::MAX);
        assert!(more.is_err() || more.unwrap()[..found.records.len()] == found.records);
    }
    Ok(found)
}

/// The error says that the log is damaged, and not just that something went wrong.
fn is_clear(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Corrupt { .. }
            | LogError::Damaged { .. }
            | LogError::Lost { .. }
            | LogError::Missing { .. }
            | LogError::Foreign { .. }
            | LogError::Newer { .. }
    )
}
