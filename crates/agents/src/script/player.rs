//! Plays a scenario: the program behind `adj internal script`.
//!
//! Invariants: refused calls are not made; a step that was started counts as played, so that an agent that crashes
//! does not crash forever; the end of the input answers all open questions with "no".

use super::protocol::{self, Call, Heard, Shown};
use super::scenario::{Action, Part, Price, Scenario, ScenarioError, Step, Take, Tool};
use crate::PromptKind;
use crate::command::filled;
use kernel::decisions::Word;
use machines::wire::Wire;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most of a command's output that is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = 30_000;
/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error("a scripted agent is started by adj: its first line of input must be a `start`")]
    NoStart,
    #[error("scenario {} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(
        "{scenario} has no scenario for task `{task}`; add a `[[scenario]]` without `task`, which matches every task"
    )]
    NoPart { scenario: String, task: String },
    #[error("session file {} is not usable: {source}", path.display())]
    Session { path: PathBuf, source: io::Error },
    #[error("cannot write the agent's output: {0}")]
    Output(io::Error),
}

/// What a session remembers: which steps were begun.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Session {
    /// Steps of any kind, as `{step}` counts them.
    steps: u32,
    /// Steps without `on`.
    plain: usize,
    /// Steps with `on`, by the kind of prompt.
    on: BTreeMap<PromptKind, usize>,
}

/// Plays the step that comes next and gives the exit code. `sessions` is where sessions are kept.
pub fn play(
    scenario: &Path,
    sessions: &Path,
    input: impl Read + Send + 'static,
    output: impl Write,
) -> Result<u8, PlayError> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(input).lines().map_while(Result::ok) {
            // What is not understood is not for this version.
            let Ok(message) = serde_json::from_str::<Heard>(&line) else { continue };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    let Ok(Heard::Start { scenario: named, session, resume, kind, prompt, task, worker, main, .. }) =
        heard.recv()
    else {
        return Err(PlayError::NoStart);
    };
    let text = std::fs::read_to_string(scenario)
        .map_err(|source| PlayError::Unreadable { path: scenario.to_owned(), source })?;
    let scenario = Scenario::parse(&named, &text)?;
    let Some(part) = scenario.part(&task) else { return Err(PlayError::NoPart { scenario: named, task }) };

    let mut player = Player {
        heard,
        output,
        answers: BTreeMap::new(),
        told: Vec::new(),
        listened: 0,
        text: String::new(),
        calls: 0,
        price: part.price,
        names: BTreeMap::from([
            ("task", task),
            ("worker", worker),
            ("main", main),
            ("session", session.clone()),
            ("prompt", prompt),
        ]),
        prefix: String::new(),
    };
    let file = session_file(sessions, &session);
    let mut state = match open_session(&file, resume) {
        Ok(state) => state,
        Err(OpenError::Refused(error)) => {
            eprintln!("error: {error}");
            player.show(&Shown::Session { error }).map_err(PlayError::Output)?;
            return Ok(1);
        }
        Err(OpenError::Io(source)) => return Err(PlayError::Session { path: file, source }),
    };
    let step = next_step(part, kind, &mut state);
    save_session(&file, &state).map_err(|source| PlayError::Session { path: file, source })?;
    player.names.insert("step", state.steps.to_string());
    player.prefix = format!("{}-{}", session.get(..8).unwrap_or(&session), state.steps);
    match player.step(step, kind) {
        Ok(()) => Ok(0),
        Err(Stop::Exit(code)) => Ok(code),
        Err(Stop::Interrupted) => {
            player.show(&Shown::Interrupted).map_err(PlayError::Output)?;
            Ok(0)
        }
        Err(Stop::Output(error)) => Err(PlayError::Output(error)),
    }
}

/// Where a session is kept, if it was begun.
pub(super) fn session_file(sessions: &Path, session: &str) -> PathBuf {
    sessions.join(format!("{session}.json"))
}

enum OpenError {
    Refused(String),
    Io(io::Error),
}

fn open_session(file: &Path, resume: bool) -> Result<Session, OpenError> {
    let id = file.file_stem().unwrap_or_default().to_string_lossy();
    match std::fs::read_to_string(file) {
        Ok(_) if !resume => Err(OpenError::Refused(format!("session {id} is already in use"))),
        // As an agent whose session was cut off by a power cut says it.
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| OpenError::Refused(format!("session {id} cannot be read: {error}"))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(OpenError::Io(error)),
        Err(_) if resume => Err(OpenError::Refused(format!("no session {id} was found"))),
        Err(_) => Ok(Session::default()),
    }
}

fn save_session(file: &Path, session: &Session) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    std::fs::write(&new, serde_json::to_string(session)?)?;
    std::fs::rename(new, file)
}

/// The next step for a prompt of this kind, counted as played. Absent: the scenario has come to its end.
fn next_step<'a>(part: &'a Part, kind: PromptKind, session: &mut Session) -> Option<&'a Step> {
    session.steps += 1;
    let on: Vec<&Step> = part.steps.iter().filter(|step| step.on == Some(kind)).collect();
    if let Some(last) = on.len().checked_sub(1) {
        let played = session.on.entry(kind).or_default();
        let step = on[(*played).min(last)];
        *played += 1;
        return Some(step);
    }
    let step = part.steps.iter().filter(|step| step.on.is_none()).nth(session.plain);
    session.plain += 1;
    step
}

enum Stop {
    Exit(u8),
    Interrupted,
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Output(error)
    }
}

struct Player<W> {
    heard: Receiver<Heard>,
    output: W,
    answers: BTreeMap<String, (bool, String)>,
    told: Vec<String>,
    /// How much of it came before the last time that it was listened for: what was said a moment too early counts.
    listened: usize,
    /// Said since the last turn.
    text: String,
    calls: u32,
    price: Price,
    names: BTreeMap<&'static str, String>,
    prefix: String,
}

impl<W: Write> Player<W> {
    fn show(&mut self, shown: &Shown) -> io::Result<()> {
        self.output.write_all(protocol::line(shown).as_bytes())?;
        self.output.flush()
    }

    fn fill(&self, text: &str) -> String {
        filled(text, |name| self.names.get(name).map(String::as_str))
    }

    fn step(&mut self, step: Option<&Step>, kind: PromptKind) -> Result<(), Stop> {
        let Some(step) = step else {
            let text = match kind {
                PromptKind::Turn => Word::Pass.name(),
                _ => "Nothing is left to do.\nDONE",
            };
            return self.last_message(text.to_owned());
        };
        for (_, action) in &step.actions {
            self.listen(Duration::ZERO)?;
            self.act(action)?;
        }
        let text = std::mem::take(&mut self.text);
        self.last_message(text)
    }

    fn last_message(&mut self, text: String) -> Result<(), Stop> {
        self.turn(Vec::new(), text.clone(), self.price)?;
        self.show(&Shown::Final { text })?;
        // Like others of its kind it stays until its input ends.
        while self.heard.recv().is_ok() {}
        Ok(())
    }

    /// Takes in what comes, for as long as given.
    fn listen(&mut self, time: Duration) -> Result<(), Stop> {
        let until = Instant::now() + time;
        loop {
            match self.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) => self.take_in(message)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                // Nobody will say anything; the time passes all the same.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
            }
        }
    }

    fn take_in(&mut self, message: Heard) -> Result<(), Stop> {
        match message {
            Heard::Answer { call, allow, note } => drop(self.answers.insert(call, (allow, note))),
            Heard::Interrupt => return Err(Stop::Interrupted),
            Heard::Say { text } => {
                self.show(&Shown::Text { text: format!("I was told: {text}") })?;
                self.told.push(text);
            }
            Heard::Start { .. } => {}
        }
        Ok(())
    }

    fn ask(&mut self, call: &Call, argument: String) -> Result<(bool, String), Stop> {
        let Call { id: call, tool, input } = call.clone();
        self.show(&Shown::Ask { call: call.clone(), tool, argument, input })?;
        loop {
            if let Some(answer) = self.answers.remove(&call) {
                return Ok(answer);
            }
            match self.heard.recv() {
                Ok(message) => self.take_in(message)?,
                Err(_) => return Ok((false, "nobody is there to ask".to_owned())),
            }
        }
    }

    fn turn(&mut self, calls: Vec<Call>, text: String, price: Price) -> Result<(), Stop> {
        let output = Some(text).filter(|text| !text.is_empty());
        let Price { input_tokens, output_tokens, cost_usd } = price;
        Ok(self.show(&Shown::Turn { calls, output, input_tokens, output_tokens, cost_usd })?)
    }

    fn next_call(&mut self) -> String {
        self.calls += 1;
        format!("{}-{}", self.prefix, self.calls)
    }

    fn act(&mut self, action: &Action) -> Result<(), Stop> {
        match action {
            Action::Say(text) => {
                let text = self.fill(text);
                self.add_text(&text);
            }
            Action::Done => self.add_text("DONE"),
            Action::Turn { text, price } => {
                let text = self.fill(text);
                self.turn(Vec::new(), text, price.unwrap_or(self.price))?;
            }
            Action::Tool { tool, quiet, price } => self.tool(tool, *quiet, price.unwrap_or(self.price))?,
            Action::Ask { tool, argument } => {
                let argument = self.fill(argument);
                let call = self.next_call();
                let input = Map::from_iter([("command".to_owned(), Value::from(argument.clone()))]);
                let text = std::mem::take(&mut self.text);
                let asked = Call { id: call.clone(), tool: tool.clone(), input };
                self.turn(vec![asked.clone()], text, self.price)?;
                let (allow, note) = self.ask(&asked, argument)?;
                let output = format!("{}: {note}", if allow { "allowed" } else { "denied" });
                self.show(&Shown::Result { call, tool: tool.clone(), ok: allow, output, millis: 0 })?;
            }
            Action::Listen(time) => {
                let until = Instant::now() + *time;
                while self.told.len() == self.listened && Instant::now() < until {
                    self.listen(LOOK)?;
                }
                self.listened = self.told.len();
            }
            Action::Sleep(time) => self.listen(*time)?,
            Action::Complain(text) => eprintln!("{}", self.fill(text)),
            Action::Fail { code, stderr } => {
                if !stderr.is_empty() {
                    eprintln!("{}", self.fill(stderr));
                }
                return Err(Stop::Exit(*code));
            }
            Action::Crash => {
                // Nothing after this line runs, but the signal may take a moment to come.
                let _ = kill(Pid::this(), Signal::SIGKILL);
                hang();
            }
            Action::Hang => hang(),
            Action::Outage { status, resets_in } => {
                let refused = matches!(status, Some(401 | 403));
                let status =
                    status.map_or_else(|| "no connection".to_owned(), |status| format!("status {status}"));
                let error = format!("the scripted service is unavailable ({status})");
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let resets_at = resets_in.map(|time| (now + time).as_millis() as kernel::Millis);
                self.show(&Shown::Outage { error, resets_at, refused })?;
                return Err(Stop::Exit(1));
            }
            Action::Retry { status, attempt, delay } => {
                let delay_ms = delay.as_millis() as u64;
                self.show(&Shown::Retry { status: *status, attempt: *attempt, delay_ms })?;
                self.listen(*delay)?;
            }
            Action::Flood { lines, rate } => {
                for number in 1..=*lines {
                    self.show(&Shown::Text { text: format!("line {number} of {lines}") })?;
                    // Zero: as fast as it can.
                    self.listen(Duration::from_secs(1).checked_div(*rate as u32).unwrap_or_default())?;
                }
            }
            Action::LongLine(bytes) => {
                let chunk = [b'x'; 8192];
                let mut left = *bytes;
                while left > 0 {
                    let length = left.min(chunk.len() as u64) as usize;
                    self.output.write_all(&chunk[..length])?;
                    left -= length as u64;
                }
                self.output.write_all(b"\n")?;
            }
            Action::Raw(bytes) => {
                self.output.write_all(bytes)?;
                self.output.write_all(b"\n")?;
                self.output.flush()?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    /// A turn with one call: asked for, done where it is allowed, and its result shown.
    fn tool(&mut self, tool: &Tool, quiet: bool, price: Price) -> Result<(), Stop> {
        let tool = self.filled_tool(tool);
        let (name, argument, input) = describe(&tool);
        if quiet {
            self.perform(&tool)?;
            return Ok(());
        }
        let call = self.next_call();
        let text = std::mem::take(&mut self.text);
        let asked = Call { id: call.clone(), tool: name.to_owned(), input };
        self.turn(vec![asked.clone()], text, price)?;
        let (allow, note) = self.ask(&asked, argument)?;
        let began = Instant::now();
        let (ok, output) = if allow { self.perform(&tool)? } else { (false, format!("denied: {note}")) };
        let millis = began.elapsed().as_millis() as u64;
        Ok(self.show(&Shown::Result { call, tool: name.to_owned(), ok, output, millis })?)
    }

    fn filled_tool(&self, tool: &Tool) -> Tool {
        let fill = |text: &String| self.fill(text);
        match tool {
            Tool::Write { path, text } => Tool::Write { path: fill(path), text: fill(text) },
            Tool::Append { path, text } => Tool::Append { path: fill(path), text: fill(text) },
            Tool::Replace { path, from, to } => {
                Tool::Replace { path: fill(path), from: fill(from), to: fill(to) }
            }
            Tool::Delete { path } => Tool::Delete { path: fill(path) },
            Tool::Run(command) => Tool::Run(fill(command)),
            Tool::Commit(message) => Tool::Commit(fill(message)),
            Tool::Daemon(command) => Tool::Daemon(fill(command)),
            Tool::Merge { from, take, files, message } => Tool::Merge {
                from: fill(from),
                take: *take,
                files: files.iter().map(|(path, text)| (fill(path), fill(text))).collect(),
                message: fill(message),
            },
        }
    }

    fn perform(&mut self, tool: &Tool) -> Result<(bool, String), Stop> {
        let told = |done: io::Result<()>, what: String| match done {
            Ok(()) => (true, what),
            Err(error) => (false, error.to_string()),
        };
        Ok(match tool {
            Tool::Write { path, text } => told(write(path, text), format!("wrote {path}")),
            Tool::Append { path, text } => {
                let mut whole = std::fs::read_to_string(path).unwrap_or_default();
                whole.push_str(text);
                told(write(path, &whole), format!("added to {path}"))
            }
            Tool::Replace { path, from, to } => match std::fs::read_to_string(path) {
                Ok(text) if text.contains(from.as_str()) => {
                    told(write(path, &text.replacen(from.as_str(), to, 1)), format!("changed {path}"))
                }
                Ok(_) => (false, format!("{path} does not contain the text to replace")),
                Err(error) => (false, error.to_string()),
            },
            Tool::Delete { path } => told(std::fs::remove_file(path), format!("deleted {path}")),
            Tool::Run(command) => self.run(&mut shell(command))?,
            Tool::Daemon(command) => {
                let mut setsid = Command::new("setsid");
                setsid.args(["-f", "sh", "-c", command]);
                setsid.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                match setsid.status() {
                    Ok(status) => (status.success(), "it keeps running".to_owned()),
                    Err(error) => (false, format!("setsid: {error}")),
                }
            }
            Tool::Commit(message) => {
                let (ok, output) = self.run(git().args(["add", "-A"]))?;
                if !ok {
                    return Ok((ok, output));
                }
                self.run(git().args(["commit", "-q", "-m", message]))?
            }
            Tool::Merge { from, take, files, message } => self.merge(from, *take, files, message)?,
        })
    }

    /// Merges, and settles every conflict: by the text that is given for a file, else by the side that is taken.
    fn merge(
        &mut self,
        from: &str,
        take: Take,
        files: &[(String, String)],
        message: &str,
    ) -> Result<(bool, String), Stop> {
        let (_, remotes) = self.run(git().arg("remote"))?;
        if !remotes.trim().is_empty() {
            // What cannot be fetched is merged as it was last seen.
            self.run(git().args(["fetch", "-q", "--all"]))?;
        }
        let (_, said) = self.run(git().args(["merge", "--no-commit", "--no-ff", from]))?;
        let (read, unmerged) = self.run(git().args(["diff", "--name-only", "--diff-filter=U", "-z"]))?;
        if !read {
            return Ok((false, said));
        }
        let side = if take == Take::Ours { "--ours" } else { "--theirs" };
        for path in unmerged.split('\0').filter(|path| !path.is_empty()) {
            if files.iter().any(|(named, _)| named == path) {
                continue;
            }
            let (there, _) = self.run(git().args(["checkout", side, "--", path]))?;
            if !there {
                // That side has deleted it.
                self.run(git().args(["rm", "-q", "--", path]))?;
            }
        }
        for (path, text) in files {
            if let Err(error) = write(path, text) {
                return Ok((false, format!("{path}: {error}")));
            }
        }
        self.run(git().args(["add", "-A"]))?;
        let (ok, output) = self.run(git().args(["commit", "-q", "-m", message]))?;
        Ok((ok, format!("{said}\n{output}").trim().to_owned()))
    }

    /// Runs a command in a process group of its own and gives what it printed. It can be interrupted.
    fn run(&mut self, command: &mut Command) -> Result<(bool, String), Stop> {
        let (reader, writer) = io::pipe()?;
        let begun = (|| {
            command.process_group(0).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()
        })();
        // The command holds the writing end too, and with it the pipe would never end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = match begun {
            Ok(child) => child,
            Err(error) => return Ok((false, error.to_string())),
        };
        let (sender, printed) = channel();
        std::thread::spawn(move || {
            let mut reader = reader;
            let mut kept = Vec::new();
            let _ = reader.by_ref().take(OUTPUT_BYTES_MAX as u64).read_to_end(&mut kept);
            // The rest is read away, so that the command does not wait for us.
            let _ = io::copy(&mut reader, &mut io::sink());
            let _ = sender.send(kept);
        });
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if let Err(stop) = self.listen(LOOK) {
                let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
                let _ = child.wait();
                return Err(stop);
            }
        };
        // A child that stayed behind may hold the pipe for ever.
        let kept = printed.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
        let output = String::from_utf8_lossy(&kept).into_owned();
        match status.code() {
            Some(0) => Ok((true, output)),
            Some(code) => Ok((false, format!("exit code {code}\n{output}"))),
            None => Ok((false, format!("{status}\n{output}"))),
        }
    }
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn write(path: &str, text: &str) -> io::Result<()> {
    if let Some(folder) = Path::new(path).parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Scripted Agent", "-c", "user.email=script@adjutant.invalid"]);
    git.args(["-c", "commit.gpgsign=false"]);
    git
}

/// The tool that a model would have used, what it is about, and its input.
fn describe(tool: &Tool) -> (&'static str, String, Map<String, Value>) {
    let (name, argument, input) = match tool {
        Tool::Write { path, text } => ("Write", path.clone(), json!({ "file_path": path, "content": text })),
        Tool::Append { path, text } => ("Edit", path.clone(), json!({ "file_path": path, "append": text })),
        Tool::Replace { path, from, to } => {
            ("Edit", path.clone(), json!({ "file_path": path, "old_string": from, "new_string": to }))
        }
        Tool::Delete { path } => bash(format!("rm {path}")),
        Tool::Run(command) => bash(command.clone()),
        Tool::Commit(message) => bash(format!("git add -A && git commit -m {message:?}")),
        Tool::Merge { from, .. } => bash(format!("git merge {from}")),
        Tool::Daemon(command) => bash(format!("setsid -f {command}")),
    };
    let Value::Object(input) = input else { unreachable!("each of them is an object") };
    (name, argument, input)
}

fn bash(command: String) -> (&'static str, String, Value) {
    let input = json!({ "command": command });
    ("Bash", command, input)
}
