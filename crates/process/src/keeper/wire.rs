//! The files in a kept process's directory, and the messages on its socket: one JSON document per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sandbox;

/// What to run, and within which limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The effect for which it runs; every process of the tree carries it as `ADJ_EFFECT`.
    pub effect: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The whole environment: nothing else is passed on.
    pub env: BTreeMap<String, String>,
    /// Where it runs; absolute.
    pub cwd: PathBuf,
    #[serde(default)]
    pub stdin: Stdin,
    /// What it writes to its errors goes to its output, in the order in which it is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// How long it may run, whether a server is there or not.
    #[serde(default = "time_limit")]
    pub time_limit_seconds: f64,
    /// How long it may run without a server.
    #[serde(default = "alone_limit")]
    pub alone_limit_seconds: f64,
    /// How long without a server before its questions are denied.
    #[serde(default = "alone_grace")]
    pub alone_grace_seconds: f64,
    /// How much it may write to its output and errors together.
    #[serde(default = "output_bytes")]
    pub output_bytes_max: u64,
    /// Without one, it may reach what its user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    #[serde(default)]
    pub limits: Limits,
    /// The control group that it joins before it starts, if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<PathBuf>,
    /// In which protocol the program asks its questions; without one, nothing it says is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Hashes of tokens: they are left out of what is kept of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Spec {
    /// With the default limits, no environment, no input and no sandbox.
    pub fn new(effect: impl Into<String>, argv: Vec<String>, cwd: impl Into<PathBuf>) -> Spec {
        Spec {
            effect: effect.into(),
            argv,
            env: BTreeMap::new(),
            cwd: cwd.into(),
            stdin: Stdin::Null,
            merged: false,
            time_limit_seconds: time_limit(),
            alone_limit_seconds: alone_limit(),
            alone_grace_seconds: alone_grace(),
            output_bytes_max: output_bytes(),
            sandbox: None,
            limits: Limits::default(),
            group: None,
            hidden: Vec::new(),
            protocol: None,
        }
    }

    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let fits = |effect: &str| {
            (1..=200).contains(&effect.len())
                && effect.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
        };
        let has_nul = |text: &String| text.contains('\0');
        if !fits(&self.effect) {
            Some("its effect's id is empty, too long, or has characters that no id has")
        } else if self.argv.first().is_none_or(String::is_empty) {
            Some("it names no program")
        } else if !self.cwd.is_absolute() {
            Some("its directory is not an absolute path")
        } else if self.argv.iter().chain(self.env.values()).any(has_nul) {
            Some("an argument or variable has a NUL in it")
        } else if self.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            Some("a variable has a name that no variable can have")
        } else {
            None
        }
    }
}

fn time_limit() -> f64 {
    super::TIME_LIMIT_SECONDS
}
fn alone_limit() -> f64 {
    super::ALONE_LIMIT_SECONDS
}
fn alone_grace() -> f64 {
    super::ALONE_GRACE_SECONDS
}
fn output_bytes() -> u64 {
    super::OUTPUT_BYTES_MAX
}

/// What the program reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing.
    #[default]
    Null,
    /// What servers send, and what the keeper answers when alone.
    Piped,
}

/// What the program is held to; `None` is what the server itself is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many processes and threads its tree may have at once.
    pub processes: Option<u64>,
    /// How much memory its tree may use.
    pub memory_bytes: Option<u64>,
    /// Size of each file that it writes.
    pub file_bytes: Option<u64>,
}

/// What the program may reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sandbox {
    pub mode: sandbox::Mode,
    pub rules: sandbox::Rules,
}

/// A keeper, told apart from others that had or will have its pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    pub pid: i32,
    /// In clock ticks since the machine started.
    pub started: u64,
    /// Which start of the machine that was.
    pub boot: String,
    /// What a client of the socket must say first. The program cannot read it inside its sandbox, but could connect.
    pub key: String,
}

/// How a kept process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Neither this nor `signal` where it is not known, or where nothing was started.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Reason,
    pub out_bytes: u64,
    pub err_bytes: u64,
    /// Milliseconds since 1970.
    pub started_at: u64,
    pub ended_at: u64,
}

impl Exit {
    /// It ended by itself with this code.
    pub fn code(code: i32) -> Exit {
        Exit { code: Some(code), ..Exit::unknown() }
    }

    /// A signal ended it, for this reason.
    pub fn signal(signal: i32, reason: Reason) -> Exit {
        Exit { signal: Some(signal), reason, ..Exit::unknown() }
    }

    /// Nobody knows how it ended.
    pub fn unknown() -> Exit {
        let reason = Reason::Exited;
        Exit { code: None, signal: None, reason, out_bytes: 0, err_bytes: 0, started_at: 0, ended_at: 0 }
    }

    /// It ended by itself, with code 0.
    pub fn succeeded(&self) -> bool {
        self.reason == Reason::Exited && self.code == Some(0)
    }
}

/// Why a kept process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// By itself, or by someone else's signal.
    Exited,
    /// It ran longer than it may.
    TimedOut,
    /// A server asked for it, or the keeper was told to go.
    Ended,
    /// No server came back in time.
    Alone,
    /// It wrote more than it may.
    OutputLimit,
    /// It had more processes and threads at once than this, which it may.
    Processes(u64),
    /// It used more bytes of memory than this, which it may.
    Memory(u64),
    CouldNotStart(String),
}

/// One line of the journal of input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// Where in `out` the line starts that this answers, if it is an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    pub text: String,
}

/// The first line of every client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub key: String,
    #[serde(rename = "as")]
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    /// May send; while one is there, the keeper is not alone.
    Server,
    /// Only listens.
    Reader,
}

/// From a client.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    In {
        id: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<u64>,
    },
    CloseIn(bool),
    Interrupt(bool),
    End {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupt_seconds: Option<f64>,
        grace_seconds: f64,
    },
}

/// From the keeper.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Report {
    Grown { out: u64, err: u64 },
    Said(Said),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Hello { pid: i32, effect: String, out: u64, err: u64 },
    Full(String),
    Taken(String),
    Late(String),
    Refused { id: String, why: String },
    Exit(Exit),
}

/// As it goes over the socket.
pub(super) fn line<T: Serialize>(message: &T) -> Vec<u8> {
    // Our own types, with string keys only: there is nothing in them that JSON cannot say.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
