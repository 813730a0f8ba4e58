//! The command line as people and scripts meet it: the real binary, its output compared with snapshots.

mod agents;
mod answers;
mod backup;
mod browser;
mod channels;
#[path = "../../../machines/src/tests/diff.rs"]
mod diff;
mod doors;
mod fleet;
mod general;
mod idempotency;
mod in_force;
mod keeper;
mod log;
mod machine;
mod mcp;
mod ops;
mod outside;
mod owner;
mod project;
mod promises;
mod proof;
mod readers;
mod sandbox;
mod screens;
mod secrets;
mod server;
mod serving;
mod sim;
mod subscriptions;
mod suites;

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("its output is text"),
            stderr: String::from_utf8(output.stderr).expect("its errors are text"),
        }
    }
}

/// This machine has not what a test needs. Said in the test's output, and a failure where `CI` is set: a proof that is left out in
/// silence is none.
#[track_caller]
pub fn not_tried(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "not tried: {why}");
    println!("not tried: {why}");
}

/// `adj` with nothing of the caller's environment that would change what it prints.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adj"));
    command
        .args(line.split_whitespace())
        .env_remove("ADJ_SERVER")
        .env_remove("ADJ_TOKEN")
        .env_remove("ADJ_TIMEOUT")
        .env_remove("NO_COLOR")
        .env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
        .env("COLUMNS", "100");
    command
}

pub fn adj(line: &str) -> Ran {
    command(line).stdin(Stdio::null()).output().expect("adj runs").into()
}

pub fn adj_with(line: &str, input: &[u8]) -> Ran {
    let mut child = command(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("adj runs");
    let mut stdin = child.stdin.take().expect("it has an input");
    let input = input.to_vec();
    // Beside the reading, so that neither end waits for the other when a pipe is full.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the input was written");
    output.into()
}

/// Compares with `tests/cli/snapshots/NAME`; `ADJ_WRITE_SNAPSHOTS=1` writes it.
#[track_caller]
pub fn snapshot(name: &str, text: &str) {
    let path = format!("{}/tests/cli/snapshots/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ADJ_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("the snapshot can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{name} is not what is printed now; ADJ_WRITE_SNAPSHOTS=1 writes it:\n{}",
        diff::diff(&there, text)
    );
}
