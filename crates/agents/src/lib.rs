//! Agents: programs that are given a prompt in a tree, and what they print, in one language for all of them. It may know how a
//! process is kept, and neither git nor the fleet. Begin with [`Adapter`] below, then `claude/mod.rs`.
//!
//! An [`Adapter`] knows one kind of program. It tells how a step is started ([`Launch`]) and reads what the program
//! prints ([`Reader`]). It starts nothing, holds no clock and keeps no file: whoever runs the step does.
//!
//! Invariants: a reader that is fed the same journal and the same lines says the same; a price that is not known is
//! never zero; a question that nobody can answer is answered "no".

pub mod claude;
pub mod codex;
mod command;
mod json;
mod prompt_kind;
pub mod script;
mod transcript;

pub use process::keeper::{Exit, Reason};
pub use prompt_kind::PromptKind;
pub use transcript::{Entry, EntryKind, argument};

use base::visible::visible_code;
use kernel::Millis;
use kernel::command::{StepFailure, Usage};
use kernel::decisions::{self, Word};
use machines::run::ToolCall;
use nix::libc;
use process::sandbox::places::ProgramHome;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// The most of one message, tool output or error that is kept in memory, in bytes. The transcript on disk has it all.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Notices that one step may give; what comes after them is not worth more.
pub const NOTICES_MAX: u32 = 100;
/// The most of the repository's instructions that is passed on, in bytes.
const INSTRUCTIONS_BYTES_MAX: u64 = 64 * 1024;
/// Calls that one step may have open at once. The oldest is forgotten first, and so is never allowed.
pub const OPEN_CALLS_MAX: usize = 1000;

/// One kind of agent program.
pub trait Adapter: Send + Sync {
    /// As `adapter = "…"` has it.
    fn name(&self) -> &'static str;

    /// Whether a later step can go on in the session of an earlier one.
    fn resumable(&self) -> bool;

    /// How the step is started. Nothing was written or started when it returns.
    fn launch(&self, order: &Order) -> Result<Launch, AgentError>;

    /// Reads what the program prints, from its first line on.
    fn reader(&self, order: &Order) -> Box<dyn Reader>;

    /// The program that an agent starts where its settings name none.
    fn program(&self) -> Option<&'static str> {
        None
    }

    /// What the command line of its settings is, with an example, for whoever has given none.
    fn command_hint(&self) -> &'static str {
        "give the whole command line, such as command = [\"my-agent\", \"--quiet\"]"
    }

    /// What the first word of its command is.
    fn command_is(&self) -> CommandIs {
        CommandIs::Program
    }

    /// The variables that it needs of the user's own, as `env` of a new settings file has them.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// How its program gets a login; nothing where Adjutant has no say in it.
    fn login(&self) -> Option<&'static dyn Login> {
        None
    }

    /// Whether its program is given the tools by which an agent speaks to Adjutant.
    fn has_tools(&self) -> bool {
        false
    }

    /// What its program keeps of itself in the user's home, hidden from all other agents and from tests: `~/.codex`.
    fn home(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the program may look at what it keeps of itself in the user's home. One that is given its login by a variable
    /// and a directory of its own for the rest need not.
    fn sees_its_home(&self) -> bool {
        false
    }

    /// The bytes that refuse what `line` asks, where it asks something: for a keeper whose server is gone.
    fn deny(&self, line: &[u8], reason: &str) -> Option<Vec<u8>> {
        let _ = (line, reason);
        None
    }
}

/// What the first word of an agent's command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandIs {
    /// A program on the PATH.
    Program,
    /// A file of the project, of this kind.
    File(&'static str),
}

/// The login of an agent program, as the user passes it on by variables.
pub trait Login: Sync {
    /// What to do where a service does not accept it. `passed`: the variables that the agent's `env` names.
    fn refused(&self, agent: &str, passed: &[String], is_set: &dyn Fn(&str) -> bool) -> String;

    /// The variable that `adj login` keeps.
    fn variable(&self) -> &'static str;

    /// What of the program makes a login for it, where something does; it is run on the terminal and prints the login.
    fn maker(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// What to do where no login is passed on.
    fn missing_hint(&self, agent: &str) -> String;
}

/// One line for each adapter: its word in the settings, and what implements it.
macro_rules! adapters {
    ($($kind:ident = $word:literal: $adapter:expr,)*) => {
        machines::wire_enum! {
            /// How an agent's program is spoken to.
            pub enum AdapterKind { $($kind = $word,)* }
        }

        impl AdapterKind {
            pub fn adapter(self) -> &'static dyn Adapter {
                match self { $(AdapterKind::$kind => &$adapter,)* }
            }
        }

        /// Every adapter.
        pub const ADAPTERS: &[&dyn Adapter] = &[$(&$adapter,)*];
    };
}

adapters! {
    Claude = "claude": claude::Claude,
    Codex = "codex": codex::Codex,
    Command = "command": command::Command,
    Script = "script": script::Script,
}

/// The adapters that there are, by the name that the settings have.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().copied().find(|adapter| adapter.name() == name)
}

/// What the programs of all adapters keep of themselves in the user's home.
pub fn homes() -> Vec<ProgramHome> {
    ADAPTERS.iter().filter_map(|adapter| Some((adapter.program()?, adapter.home()))).collect()
}

/// The adapters as a sentence lists them: `"claude", "codex", "command" (any program) or "script"`.
pub fn choices() -> String {
    let words: Vec<String> = ADAPTERS
        .iter()
        .map(|adapter| match (adapter.program(), adapter.command_is()) {
            (None, CommandIs::Program) => format!("\"{}\" (any program)", adapter.name()),
            _ => format!("\"{}\"", adapter.name()),
        })
        .collect();
    listed(&words)
}

/// `a`, `a or b`, `a, b or c`.
pub fn listed(words: &[String]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => words.concat(),
    }
}

/// One step, as it is ordered: everything that an adapter may need to start it. It is kept with the step, so that
/// what the step printed can be read again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The program, and for some adapters its arguments: `command = […]` of the settings.
    pub command: Vec<String>,
    pub model: Option<String>,
    /// Added to what the program tells its model anyway.
    pub system: Option<String>,
    /// Absent: every tool. Empty: none.
    pub allowed_tools: Option<Vec<SmolStr>>,

    pub prompt: String,
    pub kind: PromptKind,
    pub session: SmolStr,
    /// The session exists: go on in it.
    pub resume: bool,
    pub turns_left: u32,
    pub budget_usd: Option<f64>,

    /// The task's id; outside of any task, the place in which the agent speaks, such as `room/design/anna`.
    pub task: SmolStr,
    pub worker: SmolStr,
    pub run: SmolStr,
    /// Unlike that of any other start of a program: the effect with its attempt.
    pub step: SmolStr,

    /// The work tree, and the current directory of the program.
    pub tree: PathBuf,
    /// What git in the tree calls the branch that work lands on.
    pub main: String,
    /// A directory of the task, outside of its tree, for sessions and configuration. The agent can write there.
    pub private: PathBuf,
    pub temp: PathBuf,
    /// The user's checkout, where relative paths of the settings begin.
    pub project_root: PathBuf,
    /// The `adj` executable.
    pub adj: PathBuf,
}

/// How a step is started.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Set beside what the settings pass on.
    pub env: Vec<(String, String)>,
    /// Written before the start, mode 0600, below [`Order::private`].
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Directories that must be there before the start, below [`Order::private`].
    pub directories: Vec<PathBuf>,
    pub stdin: Stdin,
    /// A directory that is emptied before all of that.
    pub swept: Option<Sweep>,
    /// The language in which the program asks, for [`deny`]: the adapter's name.
    pub protocol: &'static str,
}

/// A directory in [`Order::private`] of which everything goes but these names: what an agent could have put there for
/// its program to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub directory: PathBuf,
    pub but: &'static [&'static str],
}

impl Sweep {
    /// Nothing is left in the directory but what may be. An agent could write there, and is gone: a link that it left is
    /// removed, and neither followed nor kept.
    pub fn carry_out(&self) -> std::io::Result<()> {
        let kind = |path: &Path| match path.symlink_metadata() {
            Ok(found) => Ok(Some(found.file_type())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        match kind(&self.directory)? {
            None => return Ok(()),
            Some(found) if !found.is_dir() => return std::fs::remove_file(&self.directory),
            Some(_) => {}
        }
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let is_directory = entry.file_type()?.is_dir();
            let stays = self.but.iter().any(|name| entry.file_name() == *name);
            match (is_directory, stays) {
                (true, true) => {}
                (true, false) => std::fs::remove_dir_all(entry.path())?,
                (false, _) => std::fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

/// What the program finds at its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// This text, and then the end.
    Whole(String),
    /// This first, and later what the reader sends. It is closed at [`Said::Finish`].
    Open(Input),
}

/// Something to write to the program, once. The journal of what was sent has the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Unique within the step.
    pub id: String,
    /// With its line end.
    pub text: String,
}

/// What an interrupt is called in the journal, whatever the program.
pub const INTERRUPT: &str = "interrupt";

/// Reads one step of one program.
///
/// After a restart a fresh reader is told the whole journal by [`Reader::sent`] and then given every line again. It
/// says the same as before, but asks for nothing to be sent that was sent, and for no answer that was given.
pub trait Reader: Send {
    /// This was sent to the program.
    fn sent(&mut self, id: &str, text: &str);

    /// A line of standard output without its end. `whole` is false where it was cut at the limit.
    fn line(&mut self, line: &[u8], whole: bool) -> Vec<Said>;

    /// A line of standard error.
    fn error_line(&mut self, line: &[u8]) -> Vec<Said>;

    /// The process is gone and every line was read: how the step ended. Called once.
    fn end(&mut self, exit: &Exit) -> Ended;

    /// The bytes that answer a call that was [`Said::Asked`], or nothing where it does not wait (any more). They are empty
    /// where the program asks for several calls at once and the others are not decided: that is kept in the journal.
    fn answer(&mut self, call: &str, allow: bool, note: &str) -> Option<Input>;

    /// The bytes that make the program end its turn soon; nothing where a signal must do.
    fn interrupt(&mut self) -> Option<Input>;

    /// The bytes that tell the program something while it works; nothing where it cannot be told.
    fn inject(&mut self, text: &str) -> Option<Input>;

    /// Whether a call of the agent's is running: what it has done so far would be cut off by an interrupt.
    fn is_busy(&self) -> bool {
        false
    }

    /// What it means when the program prints nothing, as things stand.
    fn silence(&self) -> Silence {
        Silence::Free
    }
}

/// What it means when a program prints nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It is being loaded.
    Starting,
    /// It waits for its model, and would say so: after too long it hangs.
    Waiting,
    /// A command runs, a person thinks, or it is the program's way: only the step's own limit holds.
    Free,
}

/// What a program said, in the language that all adapters share.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Words of the agent.
    Text(String),
    /// A piece of them as it is written. A text that holds it again may be said later.
    Token(String),
    /// A turn's message is complete. None of its tools has run, unless the program does not ask.
    Turn {
        calls: Vec<ToolCall>,
        output: Option<String>,
        usage: Usage,
    },
    ToolResult {
        call: SmolStr,
        tool: SmolStr,
        ok: bool,
        output: String,
        millis: u64,
    },
    /// The program waits for [`Reader::answer`] before it makes this call. The turn that holds it was said before.
    Asked {
        call: SmolStr,
        tool: SmolStr,
        /// What the policy's patterns look at: the command, the path, the address.
        argument: String,
        /// All that the call brings, by name.
        input: serde_json::Map<String, serde_json::Value>,
    },
    /// To be sent to the program now.
    Send(Input),
    /// The program waits for a service and tries again by itself.
    Retry {
        status: Option<u16>,
        attempt: u32,
        delay_ms: u64,
        what: String,
    },
    /// Something that a person should see.
    Notice(String),
    /// The step is complete: close the input, and the program ends.
    Finish,
    /// The step cannot come to anything: end the program.
    Stop(StopReason),
}

/// Why a step is to be ended before its program ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The service does not know the credentials; the program would try for minutes.
    NotAuthenticated,
    /// The program would not ask before it acts.
    NotGated,
}

/// How a step ended. `usage` is what no turn of it has reported.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Finished {
        done: bool,
        output: String,
        usage: Usage,
    },
    /// The agent used what it had before it was finished. `said`: its own last words, and none of the program's.
    Spent {
        what: Spent,
        said: String,
        usage: Usage,
    },
    Failed {
        error: String,
        why: StepFailure,
        usage: Usage,
    },
    /// A service stayed away after the program's own retries.
    Outage {
        service_error: String,
        resets_at: Option<Millis>,
        /// How long the service asked to be left alone, in milliseconds.
        retry_after: Option<u64>,
        /// It does not accept the credentials: no waiting helps.
        refused: bool,
        usage: Usage,
    },
}

/// What an agent has for a step, and can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    Turns,
    Money,
}

impl Ended {
    /// What no turn has reported, however it ended.
    pub fn usage(&self) -> Usage {
        match self {
            Ended::Finished { usage, .. }
            | Ended::Spent { usage, .. }
            | Ended::Failed { usage, .. }
            | Ended::Outage { usage, .. } => *usage,
        }
    }
}

/// The failure that this end is by itself, whatever the program said. Nothing for an end with a code.
fn failure_of(exit: &Exit, program: &str) -> Option<(String, StepFailure)> {
    let failed = StepFailure::Failed;
    Some(match &exit.reason {
        Reason::Exited if exit.code == Some(0) => return None,
        Reason::Exited => match (exit.code, exit.signal) {
            (Some(code), _) => (format!("{program} ended with exit code {code}"), failed),
            (None, Some(signal)) => (format!("{program} was ended by signal {signal}"), failed),
            (None, None) => (format!("{program} ended in an unknown way"), StepFailure::Lost),
        },
        Reason::TimedOut => (format!("{program} exceeded the time limit of the step"), StepFailure::TimedOut),
        Reason::Ended | Reason::Processes(_) | Reason::Memory(_) => {
            (format!("{program} was ended on request"), failed)
        }
        Reason::Alone => (format!("{program} was ended: no server came back for it"), StepFailure::Lost),
        Reason::OutputLimit => {
            (format!("{program} was ended: it printed more than limits.output_bytes"), failed)
        }
        Reason::CouldNotStart(error) => (format!("{program} could not be started: {error}"), failed),
    })
}

/// Why a step cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("adapter `{adapter}` needs a `command` in adjutant.toml")]
    NoCommand { adapter: &'static str },
    #[error("`{flag}` in the command of a `{adapter}` agent would let it act without asking; remove it")]
    Ungated { adapter: &'static str, flag: String },
    #[error("`{session}` cannot be a session: it must be letters, digits and `-`")]
    BadSession { session: String },
    #[error("the path {} is not UTF-8, which `{adapter}` needs", path.display())]
    BadPath { adapter: &'static str, path: PathBuf },
    #[error("scenario {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Scenario(#[from] script::ScenarioError),
}

/// The bytes that refuse what `line` asks, where it asks something: for a keeper whose server is gone.
pub fn deny(protocol: &str, line: &[u8]) -> Option<Vec<u8>> {
    let reason = "nobody could be asked: the fleet was stopped. Nobody refused the call; make it again later";
    adapter(protocol)?.deny(line, reason)
}

/// What people hear of a line that is not in the program's language.
fn not_understood(line: &[u8], whole: bool) -> String {
    match whole {
        true => format!("not understood: {}", shortened(&String::from_utf8_lossy(line), 200)),
        false => "a line was longer than limits.line_bytes and was cut".to_owned(),
    }
}

/// Keeps a line of a program's errors for a step that fails without a word; what is shown of it.
fn keep_error(errors: &mut String, line: &[u8]) -> String {
    let text = shortened(&String::from_utf8_lossy(line), 1000);
    if errors.len() < TEXT_BYTES_MAX {
        errors.push_str(&text);
        errors.push('\n');
    }
    text
}

/// The first `limit` bytes at most, cut between two characters, and a mark where something was left out.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\n… {} bytes more", &text[..end], text.len() - end)
}

/// Whether the agent claims to be finished. `text` is the last message of a step, and never the output of a tool.
fn said_done(text: &str) -> bool {
    decisions::says(text, Word::Done)
}

/// Letters, digits and `-`: safe as a file name and as an argument.
fn check_session(session: &str) -> Result<(), AgentError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let begins_well = session.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if begins_well && session.len() <= 100 && session.bytes().all(good) {
        return Ok(());
    }
    Err(AgentError::BadSession { session: visible_code(session) })
}

/// Why a service is asked again, in words: what its answer means, with its status.
pub fn retry_cause(status: Option<u16>, what: &str) -> String {
    let known = match (status, what) {
        (Some(529), _) | (_, "overloaded") => "model API overloaded",
        (Some(429), _) | (_, "rate_limit") => "model API rate limit",
        (Some(401 | 403), _) | (_, "authentication_failed") => "model API refuses the credentials",
        (Some(500..=599), _) | (_, "server_error") => "model API error",
        (None, "unknown" | "") => "model API cannot be reached",
        _ => what,
    };
    status.map_or_else(|| known.to_owned(), |status| format!("{known} ({status})"))
}

/// Millionths of a dollar, rounded up: a price is never less than it was.
fn micros(usd: f64) -> u64 {
    // A hair less first, so that 0.01 does not become 10,001 by the way in which it is written.
    if usd.is_finite() && usd > 0.0 { (usd * 1e6 - 1e-3).ceil().max(0.0) as u64 } else { 0 }
}

/// A path as an argument or variable.
fn path_text(adapter: &'static str, path: &Path) -> Result<String, AgentError> {
    path.to_str().map(str::to_owned).ok_or_else(|| AgentError::BadPath { adapter, path: path.to_owned() })
}

/// A path as a policy names it: from the top of the tree where it is in it.
fn inside(tree: &Path, path: &str) -> String {
    let path = plain(Path::new(path));
    let inside = path.strip_prefix(tree).map(Path::to_owned).unwrap_or(path);
    inside.to_string_lossy().into_owned()
}

/// A path without `.` and `..`, as far as that can be told from its letters.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// What an agent is told of the tools.
const TOOLS: &str = "# Tools of Adjutant\n\nAdjutant gave you this task. Speak to it by the tools `mcp__adjutant__*`: `ask` puts a \
    question to a person where you cannot go on without an answer, `request_approval` asks a person before you do something \
    risky, `report_progress` tells people how far you are, `task_done` says that all is done, committed and tested.";

/// What is added to the program's own instructions: ours, what it should know of our tools where it has them, and those of the repository in the first of
/// these files, which it would not read itself.
fn system_prompt(order: &Order, names: [&str; 2], tools: Option<&str>) -> Option<String> {
    let mut parts: Vec<String> =
        order.system.clone().into_iter().filter(|text| !text.trim().is_empty()).collect();
    parts.extend(tools.map(str::to_owned));
    for name in names {
        if let Some(text) = instructions(&order.tree, name) {
            parts.push(format!("# Instructions of this repository ({name})\n\n{text}"));
            break;
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// A file of instructions at the top of a tree. The tree is an agent's: a link is followed to a file beside it and no
/// further, and what is not a plain file is not there.
fn instructions(tree: &Path, name: &str) -> Option<String> {
    let path = tree.join(name);
    let path = match std::fs::read_link(&path) {
        Ok(target) if target.components().count() == 1 && target.file_name().is_some() => tree.join(target),
        Ok(_) => return None,
        Err(_) => path,
    };
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(INSTRUCTIONS_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.trim().is_empty())
}

/// Notices up to their limit.
#[derive(Default)]
struct Notices {
    given: u32,
}

impl Notices {
    fn say(&mut self, text: impl Into<String>) -> Option<Said> {
        self.given += 1;
        match self.given {
            given if given < NOTICES_MAX => Some(Said::Notice(shortened(&text.into(), 4096))),
            NOTICES_MAX => Some(Said::Notice("further notices of this step are omitted".to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
