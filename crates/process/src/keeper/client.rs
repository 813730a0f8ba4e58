//! The client of a keeper: finds it, starts it, reads its news and sends input.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::tail::Tail;
use super::wire::{Entry, Exit, Greeting, Keeper, Report, Request, Role, Said, Spec, line};
use super::{EFFECT_VARIABLE, process};
use super::{ERR, EXIT, IN, KEEPER, KEEPER_ERRORS, KeeperError, LOCK, OUT, SOCKET, SPEC, TIMES};
use base::files::{Synced, replace};

/// How long a keeper may take to say that it is there.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// How long strays may take to end after they were killed.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two looks at something that takes a moment.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a keeper that runs may refuse connections, as it does for a moment while it ends.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// What a keeper says is short.
const REPORT_BYTES_MAX: usize = 1 << 20;

/// What there is in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was started.
    Never,
    Alive(Keeper),
    /// The whole tree is gone.
    Over(Exit),
    /// The keeper is gone without having written how it ended; processes of the tree may be about.
    Dead,
}

/// What is in this directory, by the keeper's lock, its pid and the time of its start.
pub fn look(dir: &Path) -> Result<Found, KeeperError> {
    collect_children();
    match look_once(dir) {
        // Cut off by a power cut, or spoiled since. Nobody is alive who could have written it, and what it said is
        // unknown, which is never success: the keeper counts as gone without a word.
        Err(KeeperError::Damaged { .. }) if !is_locked(&dir.join(LOCK))? => Ok(Found::Dead),
        other => other,
    }
}

fn look_once(dir: &Path) -> Result<Found, KeeperError> {
    if let Some(exit) = read(&dir.join(EXIT))? {
        return Ok(Found::Over(exit));
    }
    let Some(keeper) = read::<Keeper>(&dir.join(KEEPER))? else { return Ok(Found::Never) };
    if process::runs(keeper.pid, keeper.started, &keeper.boot) && is_locked(&dir.join(LOCK))? {
        return Ok(Found::Alive(keeper));
    }
    // It may have ended between the two looks.
    Ok(read(&dir.join(EXIT))?.map_or(Found::Dead, Found::Over))
}

/// `None` if there is no such file.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, KeeperError> {
    match std::fs::read(path) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(KeeperError::Damaged { path: path.into(), why: error.to_string() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(KeeperError::io("read", path)(error)),
    }
}

fn is_locked(path: &Path) -> Result<bool, KeeperError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(KeeperError::io("opened", path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(KeeperError::io("locked", path)(error)),
    }
}

/// A keeper runs or ran in this directory; started now unless it was before. `adj` is the program that is started.
pub fn start(adj: &Path, dir: &Path, spec: &Spec) -> Result<Found, KeeperError> {
    match look(dir)? {
        Found::Never => {}
        Found::Dead => return Err(KeeperError::Dead { dir: dir.into() }),
        there => return Ok(there),
    }
    if let Some(fault) = spec.fault() {
        return Err(KeeperError::BadSpec(fault.to_string()));
    }
    let bytes = serde_json::to_vec(spec).map_err(|error| KeeperError::BadSpec(error.to_string()))?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(KeeperError::io("created", dir))?;
    let dir = dir.canonicalize().map_err(KeeperError::io("found", dir))?;
    // Should the machine stop now, nothing of this matters any more.
    let path = dir.join(SPEC);
    replace(&path, &bytes, Synced::Nothing).map_err(KeeperError::io("written", path))?;
    let said = launch(adj, &dir)?;
    match look(&dir)? {
        there @ (Found::Alive(_) | Found::Over(_)) => Ok(there),
        Found::Never | Found::Dead => {
            let errors = std::fs::read(dir.join(KEEPER_ERRORS)).unwrap_or_default();
            let errors = String::from_utf8_lossy(&errors[..errors.len().min(1000)]).into_owned();
            let why = [said.trim(), errors.trim()].into_iter().find(|why| !why.is_empty());
            let why = why.unwrap_or("it ended without a word").to_string();
            Err(KeeperError::NotStarted { dir, why })
        }
    }
}

/// Starts the keeper and returns what it says when it is ready, or when it gave up.
fn launch(adj: &Path, dir: &Path) -> Result<String, KeeperError> {
    let path = dir.join(KEEPER_ERRORS);
    let mut options = File::options();
    let errors = options.append(true).create(true).mode(0o600).open(&path);
    let errors = errors.map_err(KeeperError::io("created", path))?;
    let mut child = Command::new(adj)
        .args(["internal", "keep"])
        .arg(dir)
        // It needs none of ours, and what it does not have nobody can read there.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(KeeperError::io("started", adj))?;
    let output = child.stdout.take();
    CHILDREN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(child);
    let Some(mut output) = output else { return Ok(String::new()) };
    let until = Instant::now() + START_TIME_MAX;
    let mut said = Vec::new();
    while !said.contains(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        let mut one = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        match poll(&mut one, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => {
                let why = format!("it said nothing for {} s", START_TIME_MAX.as_secs());
                return Err(KeeperError::NotStarted { dir: dir.into(), why });
            }
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(KeeperError::io("waited for", dir)(error.into())),
        }
        let mut buffer = [0; 1024];
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(KeeperError::io("heard", dir)(error)),
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Keepers that we started. The system keeps each that ended until we ask for it.
static CHILDREN: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn collect_children() {
    let mut children = CHILDREN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

/// No process is left that carries this effect's id, nor any that one of them started; says how many were ended.
///
/// For when the keeper itself died. A living keeper's program is ended through its [`Connection`].
pub fn sweep_strays(effect: &str) -> Result<usize, KeeperError> {
    let until = Instant::now() + SWEEP_TIME_MAX;
    let find = || {
        let mut strays = process::with_variable(EFFECT_VARIABLE, effect);
        strays.extend(process::descendants(&strays));
        strays
    };
    let mut ended = BTreeSet::new();
    let mut left = BTreeSet::new();
    loop {
        left.extend(process::kill_all(find));
        ended.extend(left.iter().copied());
        left.retain(|&pid| process::stat(pid).is_some_and(|stat| !"ZX".contains(stat.state)));
        if left.is_empty() {
            return Ok(ended.len());
        }
        if Instant::now() > until {
            let pids: Vec<i32> = left.into_iter().collect();
            return Err(KeeperError::Undead { effect: effect.to_string(), count: pids.len(), pids });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Everything that was sent to the program so far, in its order.
pub fn journal(dir: &Path) -> Result<Vec<Entry>, KeeperError> {
    let path = dir.join(IN);
    let mut tail = match Tail::open(&path, 0) {
        Ok(tail) => tail.with_line_bytes_max(super::INPUT_BYTES_MAX * 6 + 4096),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(KeeperError::io("opened", path)(error)),
    };
    let mut entries = Vec::new();
    // A last line without an end was not passed on.
    while let Some(line) = tail.next(false).map_err(KeeperError::io("read", &path))? {
        let entry = serde_json::from_slice(&line.bytes);
        let damaged =
            |error: serde_json::Error| KeeperError::Damaged { path: path.clone(), why: error.to_string() };
        entries.push(entry.map_err(damaged)?);
    }
    Ok(entries)
}

/// Where the program's output is.
pub fn out(dir: &Path) -> PathBuf {
    dir.join(OUT)
}

/// Where the program's errors are.
pub fn err(dir: &Path) -> PathBuf {
    dir.join(ERR)
}

/// When the program's output was how long: from each offset on, what was printed came at that time or a moment later.
/// Empty where nobody noted it.
pub fn times(dir: &Path) -> Vec<(u64, i64)> {
    let text = std::fs::read_to_string(dir.join(TIMES)).unwrap_or_default();
    let parsed = |line: &str| {
        let (offset, at) = line.split_once(' ')?;
        Some((offset.parse().ok()?, at.parse().ok()?))
    };
    text.lines().filter_map(parsed).collect()
}

/// What a keeper tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// How long the two files are now.
    Grown { out: u64, err: u64 },
    /// The disk does not take the output; the program waits, and nothing is lost.
    Full(String),
    /// The input with this id is in the journal, and goes to the program.
    Taken(String),
    /// The question that this input answers was answered before; it was not passed on.
    Late(String),
    /// This input was not taken.
    Refused { id: String, why: String },
    /// It is over. Nothing comes after it.
    Exit(Exit),
    /// The keeper is gone without having written how it ended. Nothing comes after it.
    Lost,
}

/// How a program is ended: an interrupt and time to heed it, then a request and time for that, then by force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ending {
    /// Without it there is no interrupt.
    pub interrupt: Option<Duration>,
    pub terminate: Duration,
}

impl Default for Ending {
    fn default() -> Ending {
        Ending { interrupt: None, terminate: Duration::from_secs(3) }
    }
}

impl Ending {
    /// At once, by force.
    pub const NOW: Ending = Ending { interrupt: None, terminate: Duration::ZERO };

    /// With an interrupt first, and this long after each step.
    pub fn gentle(each: Duration) -> Ending {
        Ending { interrupt: Some(each), terminate: each }
    }
}

/// A connection to a keeper, which it survives on both sides: the keeper goes on without it, and another can be made.
#[derive(Debug)]
pub struct Connection {
    dir: PathBuf,
    role: Role,
    stream: Option<UnixStream>,
    received: Vec<u8>,
    /// The last news, told once.
    last: Option<News>,
    is_done: bool,
}

impl Connection {
    /// Connected as the server: while this lives, the keeper is not alone. If it is over already, that is the first
    /// news.
    pub async fn connect(dir: &Path) -> Result<Connection, KeeperError> {
        Connection::open(dir, Role::Server).await
    }

    /// Connected to listen only; the keeper does not count on it.
    pub async fn watch(dir: &Path) -> Result<Connection, KeeperError> {
        Connection::open(dir, Role::Reader).await
    }

    async fn open(dir: &Path, role: Role) -> Result<Connection, KeeperError> {
        let mut connection = Connection {
            dir: dir.into(),
            role,
            stream: None,
            received: Vec::new(),
            last: None,
            is_done: false,
        };
        connection.reach().await?;
        match connection.last {
            Some(News::Lost) => Err(KeeperError::Dead { dir: dir.into() }),
            _ => Ok(connection),
        }
    }

    /// There is a stream, or a last word.
    async fn reach(&mut self) -> Result<(), KeeperError> {
        let until = tokio::time::Instant::now() + CONNECT_TIME_MAX;
        loop {
            let key = match look(&self.dir)? {
                Found::Alive(keeper) => keeper.key,
                Found::Over(exit) => {
                    self.last = Some(News::Exit(exit));
                    return Ok(());
                }
                Found::Dead => {
                    self.last = Some(News::Lost);
                    return Ok(());
                }
                Found::Never => return Err(KeeperError::Never { dir: self.dir.clone() }),
            };
            match self.greet(key).await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    self.received = Vec::new();
                    return Ok(());
                }
                Err(error) if tokio::time::Instant::now() > until => {
                    return Err(KeeperError::Silent { dir: self.dir.clone(), why: error.to_string() });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn greet(&self, key: String) -> io::Result<UnixStream> {
        // A socket's path has room for about a hundred bytes; the directory's may be longer.
        let dir = File::open(&self.dir)?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", dir.as_raw_fd());
        let mut stream = UnixStream::connect(path).await?;
        stream.write_all(&line(&Greeting { key, role: self.role })).await?;
        Ok(stream)
    }

    /// The next news, or `None` after the last. It can be dropped and asked again without losing any.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            if self.is_done {
                return None;
            }
            if let Some(news) = self.last.take() {
                self.finish();
                return Some(news);
            }
            if let Some(news) = self.next_received() {
                match news {
                    News::Exit(_) => self.last = Some(news),
                    news => return Some(news),
                }
                continue;
            }
            let Some(stream) = &mut self.stream else {
                if self.reach().await.is_err() {
                    self.last = Some(News::Lost);
                }
                continue;
            };
            self.received.reserve(256);
            match stream.read_buf(&mut self.received).await {
                Ok(count) if count > 0 && self.received.len() <= REPORT_BYTES_MAX => {}
                _ => self.stream = None,
            }
        }
    }

    fn next_received(&mut self) -> Option<News> {
        let at = self.received.iter().position(|&b| b == b'\n')?;
        let rest = self.received.split_off(at + 1);
        let line = std::mem::replace(&mut self.received, rest);
        match serde_json::from_slice(&line) {
            Ok(Report::Grown { out, err } | Report::Said(Said::Hello { out, err, .. })) => {
                Some(News::Grown { out, err })
            }
            Ok(Report::Said(Said::Full(why))) => Some(News::Full(why)),
            Ok(Report::Said(Said::Taken(id))) => Some(News::Taken(id)),
            Ok(Report::Said(Said::Late(id))) => Some(News::Late(id)),
            Ok(Report::Said(Said::Refused { id, why })) => Some(News::Refused { id, why }),
            Ok(Report::Said(Said::Exit(exit))) => Some(News::Exit(exit)),
            // Not from a keeper that we know: start over.
            Err(_) => {
                self.stream = None;
                None
            }
        }
    }

    fn finish(&mut self) {
        self.is_done = true;
        self.stream = None;
        self.received = Vec::new();
        // The keeper ends right after its last word, and leaves itself to be collected.
        tokio::spawn(async {
            for _ in 0..3 {
                tokio::time::sleep(PAUSE * 10).await;
                collect_children();
            }
        });
    }

    /// Sent; whether it was taken comes as news. The same id is never passed on twice.
    ///
    /// Dropped half way, it may leave half a line: a connection to which that happened cannot be sent to any more.
    pub async fn send(&mut self, id: &str, text: &str) -> Result<(), KeeperError> {
        self.request(&Request::In { id: id.into(), text: text.into(), answers: None }).await
    }

    /// Like [`Connection::send`], as the answer to the question in the line of `out` that starts there. One that the
    /// keeper answered while it was alone is not answered again.
    pub async fn answer(&mut self, id: &str, text: &str, question: u64) -> Result<(), KeeperError> {
        self.request(&Request::In { id: id.into(), text: text.into(), answers: Some(question) }).await
    }

    /// The program's input is closed once it has read what was sent.
    pub async fn close_in(&mut self) -> Result<(), KeeperError> {
        self.request(&Request::CloseIn(true)).await
    }

    /// The program and its group get an interrupt, as from a terminal.
    pub async fn interrupt(&mut self) -> Result<(), KeeperError> {
        self.request(&Request::Interrupt(true)).await
    }

    /// The tree is ended in this way; that it is gone comes as news.
    pub async fn end(&mut self, ending: Ending) -> Result<(), KeeperError> {
        let interrupt_seconds = ending.interrupt.map(|time| time.as_secs_f64());
        self.request(&Request::End { interrupt_seconds, grace_seconds: ending.terminate.as_secs_f64() }).await
    }

    async fn request(&mut self, request: &Request) -> Result<(), KeeperError> {
        let silent = |why: String| KeeperError::Silent { dir: self.dir.clone(), why };
        let Some(stream) = &mut self.stream else { return Err(silent("the connection is closed".into())) };
        stream.write_all(&line(request)).await.map_err(|error| silent(error.to_string()))
    }
}
