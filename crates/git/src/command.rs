//! The only place that starts git.
//!
//! Invariants:
//! - never through a shell; every free argument is an object id, a checked name, or follows `--`;
//! - git gets no variable of ours or the user's that it knows, no setting except the repository's own and those
//!   given here, and no terminal;
//! - hooks and the file monitor are off, and no protocol is allowed: no program that a repository names is run;
//! - its time and its output are limited.
//!
//! Settings are passed in the environment and not with `-c`: a filter may be called `a=b`, which `-c` cannot express.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{GitError, Oid};

/// How long a call may take that reads or writes objects and references only.
pub(super) const CALL_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a call may take that reads or writes a whole tree of files or a whole repository.
pub(super) const LONG_CALL_TIME_MAX: Duration = Duration::from_secs(900);
/// The most that a call may print.
pub(super) const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// The commands of git by which the next one finds things changed.
const LEAVES_A_MARK: &[&str] =
    &["clean", "clone", "merge", "read-tree", "update-index", "update-ref", "worktree"];
/// How often a git is started that is killed by somebody else, such as a system that is short of memory.
const STARTS_MAX: usize = 3;
/// How much of git's complaints is kept.
const STDERR_BYTES_MAX: usize = 64 << 10;

/// A call of git that is being put together.
pub(super) struct Call {
    doing: &'static str,
    at: PathBuf,
    command: Command,
    settings: Vec<(String, String)>,
    input: Input,
    time_max: Duration,
    output_max: usize,
    /// How often it is started in all, where it is killed each time.
    starts_max: usize,
}

enum Input {
    Nothing,
    Bytes(Vec<u8>),
    Stream(OwnedFd),
}

/// What came of a call, however it ended.
pub(super) struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Call {
    /// A call that works in `at`. `doing` names it in errors.
    pub fn new(doing: &'static str, at: &Path) -> Call {
        let mut command = Command::new(program());
        command.env_clear().current_dir(at).process_group(0);
        for kept in ["PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", ":")
            .env("GIT_ASKPASS", "true")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_ATTR_NOSYSTEM", "1");
        Call {
            doing,
            at: at.to_owned(),
            command,
            settings: Vec::new(),
            input: Input::Nothing,
            time_max: CALL_TIME_MAX,
            output_max: OUTPUT_BYTES_MAX,
            starts_max: STARTS_MAX,
        }
    }

    /// Without the settings of the machine and the user, and with everything off that could run a program.
    pub fn hardened(doing: &'static str, at: &Path) -> Call {
        let mut call = Call::new(doing, at);
        call.command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for (key, value) in [
            ("core.hooksPath", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("core.attributesFile", "/dev/null"),
            ("core.excludesFile", "/dev/null"),
            ("core.safecrlf", "false"),
            ("core.quotePath", "false"),
            ("core.sshCommand", "false"),
            ("core.alternateRefsCommand", "true"),
            ("credential.helper", ""),
            ("protocol.allow", "never"),
            ("submodule.recurse", "false"),
            ("commit.gpgSign", "false"),
            ("merge.verifySignatures", "false"),
            ("merge.autoStash", "false"),
            // Others of our own move other references at the same time; git's own patience is a tenth of a second.
            ("core.filesRefLockTimeout", "1000"),
            ("core.packedRefsTimeout", "1000"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("color.ui", "false"),
            // What it writes is on disk when it returns: objects, packs, references and index. A record in the log may
            // rest on any of them, and git leaves loose objects and the index to chance otherwise.
            ("core.fsync", "all"),
            // One by one, though `batch` is quicker: that has each file written out but not synced, and relies on the file
            // system to keep them with the next one that is.
            ("core.fsyncMethod", "fsync"),
            // Whoever opened the repository has asked git as the user before; see `Repository::find`.
            ("safe.directory", "*"),
        ] {
            call = call.set(key, value);
        }
        call
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Call {
        self.command.arg(argument);
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Call {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Call {
        self.command.env(key, value);
        self
    }

    /// A setting that outweighs the repository's own.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Call {
        self.settings.push((key.into(), value.into()));
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Call {
        self.input = Input::Bytes(bytes.into());
        self
    }

    pub fn input_from(mut self, stream: impl Into<OwnedFd>) -> Call {
        self.input = Input::Stream(stream.into());
        self
    }

    /// It is not started again should somebody kill it: the caller has to look at what it left behind.
    pub fn once(mut self) -> Call {
        self.starts_max = 1;
        self
    }

    pub fn long(mut self) -> Call {
        self.time_max = LONG_CALL_TIME_MAX;
        self
    }

    pub fn output_max(mut self, bytes: usize) -> Call {
        self.output_max = bytes;
        self
    }

    pub fn time_max(mut self, time: Duration) -> Call {
        self.time_max = time;
        self
    }

    /// Runs it to its end, whatever that is. One that was killed is started again: every call can be repeated.
    pub fn run(mut self) -> Result<Output, GitError> {
        loop {
            // A stream can be read only once.
            let once = self.starts_max <= 1 || matches!(self.input, Input::Stream(_));
            let mut child = self.start()?;
            let finished = self.attend(&mut child);
            if finished.is_err() {
                end(&mut child);
            }
            if once || !finished.as_ref().is_ok_and(Output::was_killed) {
                return finished;
            }
            self.starts_max -= 1;
            self.unlock_index();
        }
    }

    /// A private index is ours alone, so a lock on it is of the git that was killed.
    fn unlock_index(&self) {
        let index =
            self.command.get_envs().find_map(|(key, value)| value.filter(|_| key == "GIT_INDEX_FILE"));
        if let Some(index) = index {
            let mut lock = index.to_owned();
            lock.push(".lock");
            let _ = std::fs::remove_file(lock);
        }
    }

    /// What it printed; ending badly is an error.
    pub fn ok(self) -> Result<Vec<u8>, GitError> {
        let (doing, at) = (self.doing, self.at.clone());
        let output = self.run()?;
        if output.status.success() { Ok(output.stdout) } else { Err(output.failed(doing, at)) }
    }

    /// The one line that it printed.
    pub fn line(self) -> Result<String, GitError> {
        let bytes = self.ok()?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The object id that it printed.
    pub fn oid(self) -> Result<Oid, GitError> {
        let doing = self.doing;
        let text = self.line()?;
        Oid::new(&text).ok_or(GitError::NoObjectId { doing, text: text.chars().take(80).collect() })
    }

    /// Yes for exit code 0, no for 1, an error for everything else.
    pub fn yes(self) -> Result<bool, GitError> {
        let (doing, at) = (self.doing, self.at.clone());
        let output = self.run()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(output.failed(doing, at)),
        }
    }

    /// Starts it and leaves its output to the caller, who must end it with `Feeding::finish`.
    pub fn feed(mut self) -> Result<Feeding, GitError> {
        let mut child = self.start()?;
        // Small enough for the pipe's buffer by the limits on what is asked for; a child that ended early is told
        // apart below, by its exit status.
        if let (Input::Bytes(bytes), Some(mut stdin)) = (&self.input, child.stdin.take()) {
            let _ = stdin.write_all(bytes);
        }
        Ok(Feeding {
            deadline: Instant::now() + self.time_max,
            time_max: self.time_max,
            doing: self.doing,
            at: self.at,
            child,
        })
    }

    fn start(&mut self) -> Result<Child, GitError> {
        // Before and after a call that only reads or only adds objects, everything is the same: a crash there is the
        // same crash as the one before it.
        if self.command.get_args().next().is_some_and(|name| LEAVES_A_MARK.iter().any(|known| *known == name))
        {
            base::crash::point(self.doing);
        }
        self.command.env("GIT_CONFIG_COUNT", self.settings.len().to_string());
        for (n, (key, value)) in self.settings.iter().enumerate() {
            self.command.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
        }
        let stdin = match &mut self.input {
            Input::Nothing => Stdio::null(),
            Input::Bytes(_) => Stdio::piped(),
            Input::Stream(_) => match std::mem::replace(&mut self.input, Input::Nothing) {
                Input::Stream(stream) => Stdio::from(stream),
                _ => Stdio::null(),
            },
        };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.spawn().map_err(|source| {
            // The directory is missing, or git is; only one of them is cured by installing git.
            if source.kind() == ErrorKind::NotFound && self.at.is_dir() {
                GitError::NoGit { source }
            } else {
                GitError::Io { doing: self.doing, at: self.at.clone(), source }
            }
        })
    }

    /// Feeds it, reads from it and waits for it, all at once and with a deadline.
    fn attend(&self, child: &mut Child) -> Result<Output, GitError> {
        let deadline = Instant::now() + self.time_max;
        let failed = |source| GitError::Io { doing: self.doing, at: self.at.clone(), source };
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take();
        let mut stderr = child.stderr.take();
        for fd in [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ]
        .into_iter()
        .flatten()
        {
            fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| failed(e.into()))?;
        }
        let mut unwritten: &[u8] = match &self.input {
            Input::Bytes(bytes) => bytes,
            _ => &[],
        };
        let mut printed = Vec::new();
        let mut complaints = Vec::new();
        while stdout.is_some() || stderr.is_some() {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(self.timed_out());
            }
            let wait = PollTimeout::try_from(remaining).unwrap_or(PollTimeout::MAX);
            {
                let mut fds = Vec::with_capacity(3);
                if let Some(pipe) = &stdin {
                    fds.push(PollFd::new(pipe.as_fd(), PollFlags::POLLOUT));
                }
                if let Some(pipe) = &stdout {
                    fds.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
                }
                if let Some(pipe) = &stderr {
                    fds.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
                }
                match poll(&mut fds, wait) {
                    Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                    Err(e) => return Err(failed(e.into())),
                }
            }
            if let Some(pipe) = &mut stdin {
                match pipe.write(unwritten) {
                    Ok(written) => unwritten = &unwritten[written..],
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    // It does not want to hear more. Whether that was right, its exit status says.
                    Err(_) => unwritten = &[],
                }
                if unwritten.is_empty() {
                    stdin = None;
                }
            }
            if drain(&mut stdout, &mut printed).map_err(failed)? > self.output_max {
                return Err(GitError::TooMuch {
                    doing: self.doing,
                    at: self.at.clone(),
                    limit: self.output_max,
                });
            }
            drain(&mut stderr, &mut complaints).map_err(failed)?;
            complaints.truncate(STDERR_BYTES_MAX);
        }
        let status = wait(child, deadline).map_err(failed)?.ok_or_else(|| self.timed_out())?;
        Ok(Output { status, stdout: printed, stderr: String::from_utf8_lossy(&complaints).into_owned() })
    }

    fn timed_out(&self) -> GitError {
        GitError::TimedOut { doing: self.doing, at: self.at.clone(), seconds: self.time_max.as_secs() }
    }
}

impl Output {
    /// Somebody else ended it, in the middle of whatever it did.
    pub fn was_killed(&self) -> bool {
        self.status.signal().is_some()
    }

    pub fn failed(self, doing: &'static str, at: PathBuf) -> GitError {
        let said = self.stderr.trim();
        let said = if said.is_empty() { format!("git ended with {}", self.status) } else { said.to_owned() };
        GitError::Failed { doing, at, code: self.status.code(), said }
    }
}

/// A git that runs while another one reads what it prints.
pub(super) struct Feeding {
    doing: &'static str,
    at: PathBuf,
    child: Child,
    deadline: Instant,
    time_max: Duration,
}

impl Feeding {
    /// Exactly so many bytes of what it prints; `None` if it printed less, or not in time.
    pub fn read<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let stdout = self.child.stdout.as_mut()?;
        let mut filled = 0;
        while filled < N {
            let remaining =
                PollTimeout::try_from(self.deadline.saturating_duration_since(Instant::now())).ok()?;
            match poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], remaining) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => return None,
            }
            match stdout.read(&mut bytes[filled..]) {
                Ok(0) => return None,
                Ok(read) => filled += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(bytes)
    }

    /// The rest of what it prints.
    pub fn rest(&mut self) -> Option<OwnedFd> {
        self.child.stdout.take().map(OwnedFd::from)
    }

    /// Waits for its end; ending badly is an error.
    pub fn finish(mut self) -> Result<(), GitError> {
        // Its output may still be open if nobody wanted it; then it ends with a broken pipe.
        self.child.stdout = None;
        let Some(status) =
            wait(&mut self.child, self.deadline).map_err(GitError::io(self.doing, &self.at))?
        else {
            return Err(GitError::TimedOut {
                doing: self.doing,
                at: self.at.clone(),
                seconds: self.time_max.as_secs(),
            });
        };
        // It has ended, so whatever it had to say is in the pipe.
        let mut said = Vec::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.take(STDERR_BYTES_MAX as u64).read_to_end(&mut said);
        }
        if status.success() {
            return Ok(());
        }
        let output =
            Output { status, stdout: Vec::new(), stderr: String::from_utf8_lossy(&said).into_owned() };
        Err(output.failed(self.doing, self.at.clone()))
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Reads what is there now, and closes at the end. Returns how much there is in all.
fn drain(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut chunk = [0; 64 << 10];
    if let Some(reader) = pipe {
        match reader.read(&mut chunk) {
            Ok(0) => *pipe = None,
            Ok(read) => into.extend_from_slice(&chunk[..read]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(into.len())
}

/// A process that closed its output is as good as gone; one that is not is looked at until the deadline.
fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a git and its children, if it still runs.
fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        if let Ok(pid) = i32::try_from(child.id()) {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = child.wait();
    }
}

/// The user's git, by its whole path: a directory of `PATH` that is meant from where the call is made would let an agent
/// put its own there. It is also what lets the system start it without copying the page tables of this process.
fn program() -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs = |program: &PathBuf| {
        program.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let mut programs =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
    // Where there is none, the attempt to start it says so.
    programs.find(runs).unwrap_or_else(|| PathBuf::from("/usr/bin/git"))
}
