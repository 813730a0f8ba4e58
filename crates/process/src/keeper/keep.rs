//! The keeper itself: one thread around one `poll`, which never blocks elsewhere.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, dup2_stdout, pipe2, setsid};

use super::group::Group;
use super::peer::{Peer, is_for_later};
use super::process;
use super::sink::Sink;
use super::tail::Tail;
use super::watch::Watch;
use super::wire::{Entry, Exit, Keeper, Reason, Report, Request, Role, Said, Spec, Stdin, line};
use super::{EFFECT_VARIABLE, ID_BYTES_MAX, INPUT_BYTES_MAX, INPUT_QUEUE_BYTES_MAX};
use super::{ERR, EXIT, IN, KEEPER, KeeperError, LOCK, NAME, OUT, SOCKET, SPEC, TIMES};
use super::{now_millis, seconds};
use crate::sandbox;
use base::files::{Synced, replace};
use base::secrets::TokenFilter;

/// The answer by which a question of this protocol is denied, if the line is a question.
pub type Deny = fn(protocol: &str, line: &[u8]) -> Option<Vec<u8>>;

/// What is read from a pipe at once.
const CHUNK: usize = 64 << 10;
/// What the program left running may write for this long before it is ended.
const LEFTOVER_GRACE: Duration = Duration::from_millis(200);
/// Between asking the program to go and ending it, where no server said otherwise.
const TERMINATE_GRACE: Duration = Duration::from_secs(3);
/// Growth is told at most this often.
const TELL_PAUSE: Duration = Duration::from_millis(5);
/// How often a full disk is tried again.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// Clients at once, and how long each has to give the key.
const PEERS_MAX: usize = 16;
const GREETING_TIME: Duration = Duration::from_secs(5);
/// Moments of the output that are noted lie at least so far apart.
const TIMES_APART: Duration = Duration::from_millis(100);
/// What of a line is looked at to see whether it asks something; what it is about is refused unseen.
const QUESTION_BYTES_MAX: usize = 1 << 20;
/// Lines that are searched for questions before everything else has its turn.
const QUESTIONS_AT_ONCE: usize = 1000;
/// Someone who only looks whether we live may have the lock for a moment.
const LOCK_WAIT: Duration = Duration::from_millis(2);
const LOCK_WAITS_MAX: u32 = 500;
/// How long the last news may take to reach the clients.
const FAREWELL: Duration = Duration::from_secs(1);

/// Keeps the process of this directory until its whole tree is gone and `exit.json` is written.
///
/// Says on its output, in one line, that it is `ready`, or why it is not, and closes it then.
pub fn main(dir: &Path, deny: Deny) -> Result<(), KeeperError> {
    close_inherited();
    let settled = settle(dir).and_then(|settled| match settled {
        Some((lock, spec, dir)) => Ok(Some((lock, Keep::new(spec, dir, deny)?))),
        None => Ok(None),
    });
    let said = match &settled {
        Ok(Some(_)) => "ready".to_string(),
        Ok(None) => "nothing to do".to_string(),
        Err(error) => error.to_string(),
    };
    // Whoever started us may be gone already; that is what we are here for.
    let _ = writeln!(io::stdout(), "{}", said.replace('\n', " "));
    let null =
        File::options().write(true).open("/dev/null").map_err(KeeperError::io("opened", "/dev/null"))?;
    dup2_stdout(&null).map_err(|error| KeeperError::io("replaced", "stdout")(error.into()))?;
    drop(null);
    match settled? {
        Some((_lock, keep)) => keep.run(),
        None => Ok(()),
    }
}

/// Files that whoever started us had open are none of ours, and would stay open for as long as we live.
fn close_inherited() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> =
        open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for file in open.into_iter().filter(|&file| file > 2) {
        let _ = nix::unistd::close(file);
    }
}

/// The directory is ours and we are in it, in a session of our own. `None` if another keeper is or was there.
fn settle(dir: &Path) -> Result<Option<(File, Spec, PathBuf)>, KeeperError> {
    let dir = dir.canonicalize().map_err(KeeperError::io("found", dir))?;
    std::env::set_current_dir(&dir).map_err(KeeperError::io("entered", &dir))?;
    // It fails for the leader of a group, which has been set apart already.
    let _ = setsid();
    let mut options = File::options();
    let lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(LOCK);
    let lock = lock.map_err(KeeperError::io("opened", dir.join(LOCK)))?;
    let mut waits = 0;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if waits < LOCK_WAITS_MAX => {
                let keeper = std::fs::read(KEEPER).ok();
                let keeper = keeper.and_then(|bytes| serde_json::from_slice::<Keeper>(&bytes).ok());
                if keeper.is_some_and(|keeper| process::runs(keeper.pid, keeper.started, &keeper.boot)) {
                    return Ok(None);
                }
                waits += 1;
                std::thread::sleep(LOCK_WAIT);
            }
            Err(error) => return Err(KeeperError::io("locked", dir.join(LOCK))(error.into())),
        }
    }
    if Path::new(EXIT).exists() {
        return Ok(None);
    }
    if Path::new(KEEPER).exists() {
        return Err(KeeperError::Dead { dir });
    }
    let path = dir.join(SPEC);
    let bytes = std::fs::read(&path).map_err(KeeperError::io("read", &path))?;
    let spec: Spec = serde_json::from_slice(&bytes)
        .map_err(|error| KeeperError::Damaged { path, why: error.to_string() })?;
    match spec.fault() {
        Some(fault) => Err(KeeperError::BadSpec(fault.to_string())),
        None => Ok(Some((lock, spec, dir))),
    }
}

/// One of the program's two outputs.
struct Stream {
    pipe: Option<File>,
    sink: Sink<File>,
    hider: TokenFilter,
}

impl Stream {
    fn new(file: File, hidden: &[String]) -> Stream {
        Stream { pipe: None, sink: Sink::new(file), hider: TokenFilter::new(hidden.to_vec()) }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let shown = self.hider.pass(bytes);
        self.sink.write(&shown)
    }

    /// What was held back, when nothing more comes.
    fn write_rest(&mut self) -> io::Result<()> {
        let rest = self.hider.rest();
        self.sink.write(&rest)
    }
}

/// The program, once it was started.
struct Program {
    pid: i32,
    /// Where the helper says why it could not become the program; closed when it did.
    report: Option<File>,
    failure: Vec<u8>,
    code: Option<i32>,
    signal: Option<i32>,
    has_ended: bool,
}

/// How far the ending is.
#[derive(Default)]
struct Plan {
    reason: Option<Reason>,
    terminate_at: Option<Instant>,
    kill_at: Option<Instant>,
    /// How long to wait for those that were killed, before others are looked for.
    pause: Duration,
}

/// Questions in the output that nobody answered while there was no server.
struct Questions {
    tail: Tail,
    protocol: String,
    deny: Deny,
    /// One that could not be answered yet because the disk is full.
    waiting: Option<(u64, Vec<u8>)>,
}

struct Keep {
    dir: PathBuf,
    spec: Spec,
    key: String,
    signals: SignalFd,
    listener: UnixListener,
    peers: Vec<Peer>,
    program: Program,
    out: Stream,
    err: Stream,
    /// When the output was how long.
    times: File,
    timed: Option<Instant>,
    input: Option<File>,
    queue: VecDeque<u8>,
    close_input: bool,
    journal: File,
    journal_bytes: u64,
    taken: HashSet<String>,
    answered: BTreeSet<u64>,
    questions: Option<Questions>,
    watch: Watch,
    started: Instant,
    started_at: u64,
    /// Since when no server is there.
    alone_since: Option<Instant>,
    /// When to try again what the disk did not take, and what it said.
    full: Option<(Instant, String)>,
    is_tree_gone: bool,
    /// A child ended that was not collected yet.
    must_reap: bool,
    plan: Plan,
    buffer: Vec<u8>,
}

/// What a file in the poll is.
#[derive(Clone, Copy)]
enum Source {
    Signals,
    Listener,
    Report,
    Out,
    Err,
    Input,
    Peer(usize),
}

impl Keep {
    /// Everything is there that a client looks for; the program is not started yet.
    fn new(spec: Spec, dir: PathBuf, deny: Deny) -> Result<Keep, KeeperError> {
        let failed = |doing: &'static str, name: &str| KeeperError::io(doing, dir.join(name));
        let system = |error: Errno| io::Error::from(error);
        let mut signals = SigSet::empty();
        // Those that we want to hear of, and those whose default would end us.
        for signal in [
            Signal::SIGCHLD,
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGXFSZ,
        ] {
            signals.add(signal);
        }
        signals.thread_block().map_err(|error| failed("prepared", "signals")(system(error)))?;
        process::hear_signals().map_err(|error| failed("prepared", "signals")(system(error)))?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|error| failed("prepared", "signals")(system(error)))?;
        prctl::set_child_subreaper(true).map_err(|error| failed("prepared", "reaper")(system(error)))?;
        let _ = prctl::set_name(NAME);

        let appended = |name: &str| {
            // Nothing ran here yet: what may stand there is from a machine that stopped before it did.
            let _ = std::fs::remove_file(name);
            let mut options = File::options();
            options.append(true).create(true).mode(0o600).open(name).map_err(failed("created", name))
        };
        let (out, err, journal, times) = (appended(OUT)?, appended(ERR)?, appended(IN)?, appended(TIMES)?);
        let _ = std::fs::remove_file(SOCKET);
        let listener = UnixListener::bind(SOCKET).map_err(failed("created", SOCKET))?;
        std::fs::set_permissions(SOCKET, PermissionsExt::from_mode(0o600))
            .map_err(failed("protected", SOCKET))?;
        listener.set_nonblocking(true).map_err(failed("prepared", SOCKET))?;

        let mut random = [0; 32];
        let mut source = File::open("/dev/urandom").map_err(KeeperError::io("opened", "/dev/urandom"))?;
        source.read_exact(&mut random).map_err(KeeperError::io("read", "/dev/urandom"))?;
        let key = base::hex::hex(&random);
        let pid = std::process::id() as i32;
        let started = process::stat(pid).map_or(0, |stat| stat.started);
        let keeper = Keeper { pid, started, boot: process::boot(), key: key.clone() };
        // On the disk before anything runs: what may have run is not started again in silence.
        replace(Path::new(KEEPER), &line(&keeper), Synced::ContentAndName)
            .map_err(failed("written", KEEPER))?;

        let questions = match &spec.protocol {
            Some(protocol) if spec.stdin == Stdin::Piped => Some(Questions {
                tail: Tail::open(Path::new(OUT), 0)
                    .map_err(failed("opened", OUT))?
                    .with_line_bytes_max(QUESTION_BYTES_MAX),
                protocol: protocol.clone(),
                deny,
                waiting: None,
            }),
            _ => None,
        };
        let now = Instant::now();
        let mut spec = spec;
        let helpers = spec.sandbox.as_ref().map_or(0, |wanted| sandbox::helpers(&wanted.rules));
        let group = Group::make(&spec.effect, spec.limits, helpers);
        if let Some(group) = &group {
            spec.group = Some(group.dir().to_owned());
            replace(Path::new(SPEC), &line(&spec), Synced::Nothing).map_err(failed("written", SPEC))?;
        }
        let watch = Watch::new(spec.limits, group, helpers, now);
        let [out, err] = [out, err].map(|file| Stream::new(file, &spec.hidden));
        Ok(Keep {
            dir,
            spec,
            key,
            signals,
            listener,
            peers: Vec::new(),
            program: Program {
                pid: 0,
                report: None,
                failure: Vec::new(),
                code: None,
                signal: None,
                has_ended: false,
            },
            out,
            err,
            times,
            timed: None,
            input: None,
            queue: VecDeque::new(),
            close_input: false,
            journal,
            journal_bytes: 0,
            taken: HashSet::new(),
            answered: BTreeSet::new(),
            questions,
            watch,
            started: now,
            started_at: now_millis(),
            alone_since: Some(now),
            full: None,
            is_tree_gone: false,
            must_reap: true,
            plan: Plan { pause: Duration::from_millis(5), ..Plan::default() },
            buffer: vec![0; CHUNK],
        })
    }

    fn run(mut self) -> Result<(), KeeperError> {
        if let Err(error) = self.start() {
            self.plan.reason = Some(Reason::CouldNotStart(error.to_string()));
            self.program.has_ended = true;
        }
        loop {
            let now = Instant::now();
            self.reap(now);
            self.keep_to_plan(now);
            self.retry(now);
            let more_questions = self.answer_alone(now);
            let tell_again = self.tell(now);
            if self.is_over() && self.full.is_none() {
                match self.finish() {
                    Ok(()) => return Ok(()),
                    // Someone removed the directory: there is nobody left to tell.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return Err(KeeperError::io("written", self.dir.join(EXIT))(error));
                    }
                    Err(error) => self.is_full(now, &error),
                }
            }
            let is_last_call = self.is_tree_gone && !self.is_over() && self.full.is_none();
            let is_busy = more_questions || is_last_call;
            let timeout = if is_busy { Duration::ZERO } else { self.next_deadline(now, tell_again) };
            for (source, flags) in self.wait(timeout)? {
                self.handle(source, flags);
            }
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let (report, told) = pipe2(OFlag::O_CLOEXEC)?;
        // The one file beside the usual three that the helper gets. It closes it by becoming the program.
        fcntl(&told, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let input = if self.spec.stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() };
        // One pipe for both keeps them in the order in which they were written; two would be read one after the other.
        let together = self.spec.merged.then(|| pipe2(OFlag::O_CLOEXEC)).transpose()?;
        let (stdout, stderr) = match &together {
            Some((_, write)) => (Stdio::from(write.try_clone()?), Stdio::from(write.try_clone()?)),
            None => (Stdio::piped(), Stdio::piped()),
        };
        // Ourselves, even where the file that we were started from has been replaced since.
        let mut child = Command::new("/proc/self/exe")
            .arg0("adj")
            .args(["internal", "exec"])
            .arg(&self.dir)
            .args([std::process::id().to_string(), told.as_raw_fd().to_string()])
            .env_clear()
            // It may stand around the program for as long as that runs, and is found by this like all the others.
            .env(EFFECT_VARIABLE, &self.spec.effect)
            .stdin(input)
            .stdout(stdout)
            .stderr(stderr)
            // Apart from us, so that an interrupt of its group reaches what it started, and not the keeper.
            .process_group(0)
            .spawn()?;
        drop(told);
        self.program.pid = child.id() as i32;
        self.program.report = Some(piped(report)?);
        self.out.pipe = match together {
            Some((read, _)) => Some(piped(read)?),
            None => child.stdout.take().map(|pipe| piped(pipe.into())).transpose()?,
        };
        self.err.pipe = child.stderr.take().map(|pipe| piped(pipe.into())).transpose()?;
        self.input = child.stdin.take().map(|pipe| piped(pipe.into())).transpose()?;
        Ok(())
    }

    /// Collects everyone of the tree who ended; all of them come to us in the end.
    fn reap(&mut self, now: Instant) {
        if !std::mem::take(&mut self.must_reap) {
            return;
        }
        loop {
            let (pid, code, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid.as_raw(), Some(code), None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid.as_raw(), None, Some(signal as i32)),
                Ok(WaitStatus::StillAlive) => return,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(Errno::ECHILD) => {
                    self.is_tree_gone = true;
                    if self.program.has_ended {
                        return;
                    }
                    // It was collected without a word that we understand, such as a signal without a name.
                    (self.program.pid, None, None)
                }
                Err(_) if process::stat(self.program.pid).is_some() => continue,
                Err(_) => (self.program.pid, None, None),
            };
            if pid == self.program.pid && !self.program.has_ended {
                self.program.has_ended = true;
                (self.program.code, self.program.signal) = (code, signal);
                if self.plan.reason.is_none() {
                    self.plan.reason = self.watch.refused();
                }
                self.kill_by(now + LEFTOVER_GRACE);
            }
        }
    }

    fn kill_by(&mut self, at: Instant) {
        self.plan.kill_at = Some(self.plan.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Everything that is due.
    fn keep_to_plan(&mut self, now: Instant) {
        if !self.program.has_ended {
            if now >= self.started + seconds(self.spec.time_limit_seconds) {
                self.end(Reason::TimedOut, now, TERMINATE_GRACE);
            }
            if let Some(since) = self.alone_since
                && now >= since + seconds(self.spec.alone_limit_seconds)
            {
                self.end(Reason::Alone, now, TERMINATE_GRACE);
            }
        }
        if self.is_tree_gone {
            return;
        }
        if !self.program.has_ended
            && let Some(passed) = self.watch.look(now, self.program.report.is_none(), || {
                process::descendants(&[std::process::id() as i32])
            })
        {
            self.end(passed, now, Duration::ZERO);
        }
        let tree = || process::descendants(&[std::process::id() as i32]);
        if self.plan.terminate_at.is_some_and(|at| at <= now) {
            self.plan.terminate_at = None;
            let tree = tree();
            process::signal(&tree, Signal::SIGTERM);
            process::signal(&tree, Signal::SIGCONT);
        }
        if self.plan.kill_at.is_some_and(|at| at <= now) {
            if let Some(group) = self.watch.group() {
                group.kill();
            }
            process::kill_all(tree);
            // One that the system does not let go at once is asked after, less and less often.
            self.plan.kill_at = Some(now + self.plan.pause);
            self.plan.pause = (self.plan.pause * 2).min(Duration::from_secs(1));
        }
    }

    /// From this time on the program is asked to go, and after the grace it has to. The first reason stays.
    fn end(&mut self, reason: Reason, terminate_at: Instant, grace: Duration) {
        if self.program.has_ended {
            return;
        }
        let first = self.plan.reason.is_none();
        self.plan.reason.get_or_insert(reason);
        let kill_at = terminate_at + grace;
        if first || self.plan.kill_at.is_none_or(|at| kill_at < at) {
            self.plan.terminate_at = Some(terminate_at);
        }
        self.kill_by(kill_at);
    }

    /// What the disk did not take, once more.
    fn retry(&mut self, now: Instant) {
        if self.full.as_ref().is_none_or(|(at, _)| *at > now) {
            return;
        }
        self.full = None;
        for which in [Source::Out, Source::Err] {
            let sink = &mut self.stream(which).sink;
            if sink.is_holding()
                && let Err(error) = sink.retry()
            {
                self.is_full(now, &error);
            }
        }
    }

    fn is_full(&mut self, now: Instant, error: &io::Error) {
        let why = error.to_string();
        self.full = Some((now + FULL_PAUSE, why.clone()));
        for peer in self.peers.iter_mut().filter(|peer| peer.role.is_some()) {
            peer.say(&Report::Said(Said::Full(why.clone())));
        }
    }

    /// Denies what the program asked while there is nobody to answer. True if there may be more to look through.
    fn answer_alone(&mut self, now: Instant) -> bool {
        let grace = seconds(self.spec.alone_grace_seconds);
        let is_due = self.alone_since.is_some_and(|since| now >= since + grace);
        if !is_due || self.full.is_some() || self.program.has_ended || self.input.is_none() {
            return false;
        }
        let Some(mut questions) = self.questions.take() else { return false };
        let mut more = true;
        for _ in 0..QUESTIONS_AT_ONCE {
            let next = match questions.waiting.take() {
                Some(question) => Some(question),
                None => match questions.tail.next(false) {
                    Ok(Some(line)) if self.answered.contains(&line.start) => continue,
                    Ok(Some(line)) => match (questions.deny)(&questions.protocol, &line.bytes) {
                        Some(answer) => Some((line.start, answer)),
                        None => continue,
                    },
                    // What cannot be read now can be read with the next line.
                    Ok(None) | Err(_) => None,
                },
            };
            let Some((question, answer)) = next else {
                more = false;
                break;
            };
            let entry = Entry {
                id: format!("deny:{question}"),
                at: now_millis(),
                answers: Some(question),
                text: String::from_utf8_lossy(&answer).into_owned(),
            };
            if let Err(error) = self.pass_on(entry) {
                questions.waiting = Some((question, answer));
                self.is_full(now, &error);
                more = false;
                break;
            }
        }
        self.questions = Some(questions);
        more
    }

    /// News of growth for those who do not have it yet; says when those are due who had some just now.
    fn tell(&mut self, now: Instant) -> Option<Instant> {
        let sizes = (self.out.sink.written(), self.err.sink.written());
        let again = self.peers.iter_mut().filter_map(|peer| peer.tell(sizes, now, TELL_PAUSE)).min();
        self.drop_peers(now);
        again
    }

    fn drop_peers(&mut self, now: Instant) {
        self.peers
            .retain(|peer| !peer.is_gone() && (peer.role.is_some() || now < peer.since + GREETING_TIME));
        if self.peers.iter().any(|peer| peer.role == Some(Role::Server)) {
            self.alone_since = None;
        } else {
            self.alone_since.get_or_insert(now);
        }
    }

    /// No process and no byte is left.
    fn is_over(&self) -> bool {
        let is_written = |stream: &Stream| stream.pipe.is_none() && !stream.sink.is_holding();
        self.is_tree_gone
            && self.program.has_ended
            && self.program.report.is_none()
            && is_written(&self.out)
            && is_written(&self.err)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.sink.file().sync_all()?;
        self.err.sink.file().sync_all()?;
        let failure = String::from_utf8_lossy(&self.program.failure).into_owned();
        let could_start = failure.is_empty() && !matches!(self.plan.reason, Some(Reason::CouldNotStart(_)));
        let reason = match self.plan.reason.take() {
            Some(reason) => reason,
            None if failure.is_empty() => Reason::Exited,
            None => Reason::CouldNotStart(failure),
        };
        let exit = Exit {
            code: self.program.code.filter(|_| could_start),
            signal: self.program.signal.filter(|_| could_start),
            reason,
            out_bytes: self.out.sink.written(),
            err_bytes: self.err.sink.written(),
            started_at: self.started_at,
            ended_at: now_millis(),
        };
        replace(Path::new(EXIT), &line(&exit), Synced::ContentAndName)
            .inspect_err(|_| self.plan.reason = Some(exit.reason.clone()))?;
        let _ = std::fs::remove_file(SOCKET);
        let until = Instant::now() + FAREWELL;
        for peer in self.peers.iter_mut().filter(|peer| peer.role.is_some()) {
            peer.say(&Report::Said(Said::Exit(exit.clone())));
            while peer.has_unread() && !peer.is_gone() && Instant::now() < until {
                let mut one = [PollFd::new(peer.stream().as_fd(), PollFlags::POLLOUT)];
                let _ = poll(&mut one, 10u8);
                peer.flush();
            }
        }
        Ok(())
    }

    fn next_deadline(&self, now: Instant, tell_again: Option<Instant>) -> Duration {
        let is_running = !self.program.has_ended;
        let alone = |limit: f64| self.alone_since.filter(|_| is_running).map(|since| since + seconds(limit));
        let greeting =
            self.peers.iter().filter(|peer| peer.role.is_none()).map(|peer| peer.since + GREETING_TIME);
        let deadlines = [
            tell_again,
            self.full.as_ref().map(|(at, _)| *at),
            self.watch.next().filter(|_| is_running),
            is_running.then(|| self.started + seconds(self.spec.time_limit_seconds)),
            alone(self.spec.alone_limit_seconds),
            alone(self.spec.alone_grace_seconds),
            self.plan.terminate_at.filter(|_| !self.is_tree_gone),
            self.plan.kill_at.filter(|_| !self.is_tree_gone),
            greeting.min(),
        ];
        // What was due by now has been done.
        let next = deadlines.into_iter().flatten().filter(|at| *at > now).min();
        next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(now))
    }

    /// Waits for any of our files, at most this long.
    fn wait(&mut self, timeout: Duration) -> Result<Vec<(Source, PollFlags)>, KeeperError> {
        let mut files: Vec<(Source, BorrowedFd, PollFlags)> = vec![
            (Source::Signals, self.signals.as_fd(), PollFlags::POLLIN),
            (Source::Listener, self.listener.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(report) = &self.program.report {
            files.push((Source::Report, report.as_fd(), PollFlags::POLLIN));
        }
        // What is not written yet is the reason to read no more: the program waits as it would for a slow reader.
        for (source, stream) in [(Source::Out, &self.out), (Source::Err, &self.err)] {
            if let Some(pipe) = stream.pipe.as_ref().filter(|_| self.full.is_none()) {
                files.push((source, pipe.as_fd(), PollFlags::POLLIN));
            }
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.queue.is_empty()) {
            files.push((Source::Input, input.as_fd(), PollFlags::POLLOUT));
        }
        for (number, peer) in self.peers.iter().enumerate() {
            let unread = if peer.has_unread() { PollFlags::POLLOUT } else { PollFlags::empty() };
            files.push((Source::Peer(number), peer.stream().as_fd(), PollFlags::POLLIN | unread));
        }
        let mut polled: Vec<PollFd> =
            files.iter().map(|(_, file, flags)| PollFd::new(*file, *flags)).collect();
        // Rounded up: woken a little early, we would come round for nothing.
        let millis = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        match poll(&mut polled, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(KeeperError::io("waited for", &self.dir)(error.into())),
        }
        let ready = files.iter().zip(&polled).map(|((source, ..), polled)| (*source, polled.revents()));
        let mut ready: Vec<(Source, PollFlags)> = ready
            .filter_map(|(source, flags)| Some((source, flags.filter(|flags| !flags.is_empty())?)))
            .collect();
        if self.is_tree_gone && self.full.is_none() {
            // Nobody is left to write, but someone outside the tree may have got hold of the pipe: it is read to where
            // it is empty, and its end is not waited for.
            ready.extend([(Source::Out, PollFlags::POLLHUP), (Source::Err, PollFlags::POLLHUP)]);
        }
        Ok(ready)
    }

    fn handle(&mut self, source: Source, flags: PollFlags) {
        match source {
            Source::Signals => self.hear(),
            Source::Listener => self.accept(),
            Source::Report => self.learn_of_start(),
            Source::Out | Source::Err => self.pump(source),
            Source::Input => self.feed(),
            Source::Peer(number) => self.serve(number, flags),
        }
    }

    fn hear(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let number = signal.ssi_signo as i32;
            self.must_reap |= number == Signal::SIGCHLD as i32;
            if [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT]
                .iter()
                .any(|&signal| signal as i32 == number)
            {
                self.end(Reason::Ended, Instant::now(), TERMINATE_GRACE);
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.peers.len() >= PEERS_MAX {
                let Some(oldest) = self.peers.iter().position(|peer| peer.role.is_none()) else { continue };
                self.peers[oldest].drop_it();
            }
            if let Ok(peer) = Peer::new(stream, Instant::now()) {
                self.peers.push(peer);
            }
        }
    }

    fn learn_of_start(&mut self) {
        let Some(report) = &mut self.program.report else { return };
        match report.read(&mut self.buffer) {
            Ok(0) => {
                self.program.report = None;
                self.forget_secrets();
            }
            Ok(count) if self.program.failure.len() < CHUNK => {
                self.program.failure.extend_from_slice(&self.buffer[..count]);
            }
            Ok(_) => {}
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.program.report = None,
        }
    }

    /// The program has its environment now. Keys in it need not lie on the disk for as long as the directory does.
    fn forget_secrets(&mut self) {
        for value in self.spec.env.values_mut() {
            *value = String::new();
        }
        if replace(Path::new(SPEC), &line(&self.spec), Synced::Nothing).is_err() {
            let _ = std::fs::remove_file(SPEC);
        }
        self.spec.env.clear();
    }

    fn stream(&mut self, which: Source) -> &mut Stream {
        if matches!(which, Source::Err) { &mut self.err } else { &mut self.out }
    }

    /// From the pipe to the file, one piece.
    fn pump(&mut self, which: Source) {
        if self.full.is_some() {
            return;
        }
        let is_tree_gone = self.is_tree_gone;
        let room = self.spec.output_bytes_max.saturating_sub(self.out.sink.given() + self.err.sink.given());
        let mut buffer = std::mem::take(&mut self.buffer);
        let before = self.out.sink.given();
        let stream = self.stream(which);
        let read = stream.pipe.as_mut().map_or(Ok(0), |pipe| pipe.read(&mut buffer));
        let mut outcome = Ok(());
        let mut is_too_much = false;
        match read {
            Ok(0) => stream.pipe = None,
            Ok(count) => {
                let fits = count.min(usize::try_from(room).unwrap_or(usize::MAX));
                outcome = stream.write(&buffer[..fits]);
                is_too_much = fits < count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_tree_gone => stream.pipe = None,
            Err(error) if is_for_later(&error) => {}
            Err(_) => stream.pipe = None,
        }
        if stream.pipe.is_none() && outcome.is_ok() {
            outcome = stream.write_rest();
        }
        self.buffer = buffer;
        let now = Instant::now();
        let due = self.timed.is_none_or(|timed| now.duration_since(timed) >= TIMES_APART);
        if due && self.out.sink.given() > before {
            self.timed = Some(now);
            // People like to know when something was said; nothing depends on it.
            let _ = writeln!(self.times, "{before} {}", base::clock::now());
        }
        if let Err(error) = outcome {
            self.is_full(now, &error);
        }
        if is_too_much {
            self.end(Reason::OutputLimit, now, Duration::ZERO);
            (self.out.pipe, self.err.pipe) = (None, None);
        }
    }

    /// From the queue to the program.
    fn feed(&mut self) {
        let Some(input) = &mut self.input else { return };
        match input.write(self.queue.as_slices().0) {
            Ok(count) => drop(self.queue.drain(..count)),
            Err(error) if is_for_later(&error) => return,
            // It reads no more; what was sent stands in the journal.
            Err(_) => self.stop_input(),
        }
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
            if self.close_input {
                self.stop_input();
            }
        }
    }

    fn stop_input(&mut self) {
        self.input = None;
        self.queue = VecDeque::new();
    }

    fn serve(&mut self, number: usize, flags: PollFlags) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let peer = &mut self.peers[number];
        if flags.contains(PollFlags::POLLOUT) {
            peer.flush();
        }
        if flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            peer.read(&mut buffer);
        }
        self.buffer = buffer;
        // What it sent before it went counts too.
        while let Some(line) = self.peers[number].next_line() {
            match self.peers[number].role {
                None => self.greet(number, &line),
                Some(Role::Server) => match serde_json::from_slice(&line) {
                    Ok(request) => self.obey(number, request),
                    Err(_) => self.peers[number].drop_it(),
                },
                Some(Role::Reader) => self.peers[number].drop_it(),
            }
            if self.peers[number].role.is_none() {
                break;
            }
        }
    }

    fn greet(&mut self, number: usize, line: &[u8]) {
        let (out, err) = (self.out.sink.written(), self.err.sink.written());
        let peer = &mut self.peers[number];
        let Some(role) = peer.greet(line, &self.key) else { return peer.drop_it() };
        let effect = self.spec.effect.clone();
        peer.say(&Report::Said(Said::Hello { pid: std::process::id() as i32, effect, out, err }));
        peer.knows((out, err), Instant::now());
        if let Some((_, why)) = &self.full {
            peer.say(&Report::Said(Said::Full(why.clone())));
        }
        if role == Role::Server {
            self.alone_since = None;
        }
    }

    fn obey(&mut self, number: usize, request: Request) {
        let now = Instant::now();
        match request {
            Request::In { id, text, answers } => {
                let said = self.take_input(id, text, answers);
                self.peers[number].say(&Report::Said(said));
            }
            Request::CloseIn(true) => {
                self.close_input = true;
                if self.queue.is_empty() {
                    self.stop_input();
                }
            }
            Request::Interrupt(true) if !self.program.has_ended => {
                let _ = killpg(Pid::from_raw(self.program.pid), Signal::SIGINT);
            }
            Request::End { interrupt_seconds, grace_seconds } => {
                if interrupt_seconds.is_some() && !self.program.has_ended {
                    let _ = killpg(Pid::from_raw(self.program.pid), Signal::SIGINT);
                }
                let terminate_at = now + seconds(interrupt_seconds.unwrap_or(0.0));
                self.end(Reason::Ended, terminate_at, seconds(grace_seconds));
            }
            Request::CloseIn(_) | Request::Interrupt(_) => {}
        }
    }

    fn take_input(&mut self, id: String, text: String, answers: Option<u64>) -> Said {
        if self.taken.contains(&id) {
            return Said::Taken(id);
        }
        if answers.is_some_and(|question| self.answered.contains(&question)) {
            return Said::Late(id);
        }
        let why = if id.is_empty() || id.len() > ID_BYTES_MAX {
            "its id is empty or too long".to_string()
        } else if text.len() > INPUT_BYTES_MAX {
            format!("it is longer than {INPUT_BYTES_MAX} bytes")
        } else if self.queue.len() + text.len() > INPUT_QUEUE_BYTES_MAX {
            "the program does not read what was sent before".to_string()
        } else if self.input.is_none() || self.close_input {
            "the program's input is closed".to_string()
        } else {
            match self.pass_on(Entry { id: id.clone(), at: now_millis(), answers, text }) {
                Ok(()) => return Said::Taken(id),
                Err(error) => format!("the journal of input cannot be written: {error}"),
            }
        };
        Said::Refused { id, why }
    }

    /// Into the journal, then into the queue; or neither.
    fn pass_on(&mut self, entry: Entry) -> io::Result<()> {
        let bytes = line(&entry);
        if let Err(error) = self.journal.write_all(&bytes) {
            // Half a line would make the next one unreadable.
            let _ = self.journal.set_len(self.journal_bytes);
            return Err(error);
        }
        self.journal_bytes += bytes.len() as u64;
        self.queue.extend(entry.text.as_bytes());
        self.answered.extend(entry.answers);
        self.taken.insert(entry.id);
        self.feed();
        Ok(())
    }
}

/// Our end of a pipe, which never makes us wait.
fn piped(pipe: OwnedFd) -> io::Result<File> {
    let flags = OFlag::from_bits_retain(fcntl(&pipe, FcntlArg::F_GETFL)?);
    fcntl(&pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(File::from(pipe))
}
