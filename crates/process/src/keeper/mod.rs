//! A keeper: the tiny process under which an agent's step or a test run lives, and which outlives the server.
//!
//! Everything about one kept process is in one directory, so that a server which comes back finds it all there:
//!
//! | file | is |
//! | --- | --- |
//! | `spec.json` | what to run, written before the start; the values of its environment go once it runs |
//! | `lock` | locked by the keeper as long as it lives |
//! | `keeper.json` | who the keeper is, and the key of its socket |
//! | `out`, `err` | what the program wrote, byte for byte |
//! | `in` | what was sent to the program, one JSON line each, written before it is passed on |
//! | `exit.json` | how it ended; there once no process of its tree is left |
//! | `sock` | where a server listens to news and sends input |
//! | `keeper.err` | what the keeper itself had to say, empty unless something is wrong with it |
//!
//! Invariants: a directory is used for one start only; `exit.json` appears whole or not at all, and after the last
//! byte of output; bytes that the program wrote are in the files in their order, none twice, also when the disk was
//! full in between; input with an id that was taken before is not passed on again.

pub mod client;
mod exec;
mod group;
mod keep;
mod peer;
mod process;
mod sink;
mod tail;
mod watch;
mod wire;

pub use client::{Connection, Ending, Found, News, look, start, sweep_strays};
pub use exec::{enter, give_way, inside, main as exec};
pub use group::parent as group_parent;
pub use keep::{Deny, main};
pub use tail::{LINE_BYTES_MAX, Line, Tail};
pub use watch::usual_memory;
pub use wire::{Entry, Exit, Keeper, Limits, Reason, Sandbox, Spec, Stdin};

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The variable that every process of a kept tree has, with the effect's id: strays are found by it.
pub const EFFECT_VARIABLE: &str = "ADJ_EFFECT";

/// Without a server for this long, a keeper ends its program.
pub const ALONE_LIMIT_SECONDS: f64 = 600.0;
/// Without a server for this long, a keeper answers questions by no.
pub const ALONE_GRACE_SECONDS: f64 = 15.0;
/// How long a program may run where nothing else is said.
pub const TIME_LIMIT_SECONDS: f64 = 3600.0;
/// How much a program may write to its output and errors together.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 30;
/// The longest message to a program.
pub const INPUT_BYTES_MAX: usize = 16 << 20;
/// How much input may wait for a program that does not read.
pub const INPUT_QUEUE_BYTES_MAX: usize = 32 << 20;
/// The longest id of a message.
pub const ID_BYTES_MAX: usize = 256;

/// What a keeper calls itself.
const NAME: &std::ffi::CStr = c"adj-keeper";

/// The keeper under which a process runs, `Some(None)` where it runs under none; `None` if there is no such process.
///
/// It is the outermost one: a program can call itself what it likes, but whatever it starts stays below its keeper. One that
/// this process itself runs under is not counted: all that is said here is said under it.
pub fn above(pid: i32) -> Option<Option<i32>> {
    let line = process::line(pid)?;
    let ours = process::line(std::process::id() as i32).unwrap_or_default();
    let is_ours = |pid: i32| ours.iter().any(|(our, _)| *our == pid);
    let mut keepers = line.iter().rev().filter(|(pid, stat)| stat.name == NAME.to_bytes() && !is_ours(*pid));
    Some(keepers.next().map(|(pid, _)| *pid))
}

pub const SPEC: &str = "spec.json";
const LOCK: &str = "lock";
const KEEPER: &str = "keeper.json";
const OUT: &str = "out";
const ERR: &str = "err";
/// When the output was how long: a line for each moment, with offset and milliseconds.
const TIMES: &str = "times";
const IN: &str = "in";
const EXIT: &str = "exit.json";
const SOCKET: &str = "sock";
const KEEPER_ERRORS: &str = "keeper.err";

/// Why a process could not be kept, found or talked to.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    #[error("{} cannot be {doing}: {why}", path.display())]
    Io { doing: &'static str, path: PathBuf, why: io::Error },
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("the program cannot be run: {0}")]
    BadSpec(String),
    #[error("the keeper in {} did not start: {why}", dir.display())]
    NotStarted { dir: PathBuf, why: String },
    /// The program may still have processes about: [`sweep_strays`] ends them. A new start needs a new directory.
    #[error("the keeper in {} died before its program ended", dir.display())]
    Dead { dir: PathBuf },
    #[error("no keeper was ever started in {}", dir.display())]
    Never { dir: PathBuf },
    #[error("the keeper in {} does not answer: {why}", dir.display())]
    Silent { dir: PathBuf, why: String },
    #[error("{count} processes of effect `{effect}` do not end: {pids:?}")]
    Undead { effect: String, count: usize, pids: Vec<i32> },
}

impl KeeperError {
    fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> KeeperError {
        let path = path.into();
        move |why| KeeperError::Io { doing, path, why }
    }
}

/// Milliseconds since 1970.
fn now_millis() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Seconds from outside as a duration that can be added to any time of ours.
fn seconds(seconds: f64) -> Duration {
    const MAX: f64 = 100.0 * 365.0 * 86_400.0;
    Duration::from_secs_f64(if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, MAX) })
}
