//! How fast the server is, beside what the machine can do without us, in one run: `make bench`.
//!
//! What is compared is measured in turn, three times, and the median counts: the machine is shared, and its disk may be
//! ten times slower a minute later. A figure is void unless what was measured is found to be right afterwards.
//!
//! `cargo bench -p adj --bench server -- [commands] [readers] [board] [--folder DIR] [--rounds N]`
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kernel::command::NewTask;
use kernel::{Actor, Answer, Ask};
use log::owner::Owner;
use log::{self, Location};
use machines::names::TaskId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long each measurement goes on.
const SECONDS: u64 = 2;
/// These are changed in turn.
const TASKS: usize = 500;
const BOARD_TASKS: usize = 10_000;
const BOARD_CLIENTS: usize = 100;
const MOVES_A_SECOND: u64 = 200;

struct Bench {
    folder: PathBuf,
    rounds: usize,
}

fn main() -> Outcome {
    let mut wanted = Vec::new();
    let mut folder = std::env::temp_dir();
    let mut rounds = 3;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--folder" => folder = PathBuf::from(arguments.next().unwrap_or_default()),
            "--rounds" => rounds = arguments.next().unwrap_or_default().parse()?,
            // What the measurements start of this program as a process of its own.
            "--bare-board" => return bare_board(arguments.next().unwrap_or_default().parse()?),
            "--bare-readers" => return bare_readers(&PathBuf::from(arguments.next().unwrap_or_default())),
            // What cargo passes to every benchmark.
            "--bench" => {}
            _ => wanted.push(argument),
        }
    }
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let folder = folder.join(format!("adjutant-bench-server-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    raise_file_limit();
    let bench = Bench { folder: folder.clone(), rounds };
    println!("{:<52} {:>12} {:>12} {:>9}   goal", "", "limit", "ours", "ratio");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(async {
        if wants("commands") {
            commands(&bench).await?;
        }
        if wants("readers") {
            for count in [1_000, 5_000] {
                readers(&bench, count).await?;
            }
        }
        if wants("board") {
            board(&bench).await?;
        }
        Ok(())
    });
    fs::remove_dir_all(&folder)?;
    measured
}

fn line(what: &str, limit: f64, ours: f64, goal: &str) {
    println!("{what:<52} {limit:>12.2} {ours:>12.2} {:>8.2}x   {goal}", ours / limit);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// `adj serve` of a fresh repository; it ends when this is dropped.
struct Server {
    child: Child,
    host: String,
    token: String,
    repository: PathBuf,
}

impl Server {
    fn start(folder: &Path, name: &str) -> Result<Server, Box<dyn std::error::Error>> {
        let repository = folder.join(name);
        let _ = fs::remove_dir_all(&repository);
        fs::create_dir_all(&repository)?;
        let made = Command::new("git").args(["init", "-q"]).current_dir(&repository).status()?;
        assert!(made.success());
        let mut child = Command::new(env!("CARGO_BIN_EXE_adj"))
            .args(["serve", "--port", "0", "--json"])
            .current_dir(&repository)
            .env_remove("ADJ_SERVER")
            .env_remove("ADJ_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().ok_or("it has no output")?).read_line(&mut said)?;
        let said: serde_json::Value = serde_json::from_str(&said)?;
        let host = said["url"].as_str().ok_or("it has no address")?.rsplit('/').next().unwrap_or_default();
        let token = fs::read_to_string(repository.join(".git/adjutant/token"))?;
        Ok(Server { child, host: host.to_owned(), token, repository })
    }

    fn request(&self, line: &str, body: &str) -> Vec<u8> {
        format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        )
        .into_bytes()
    }

    async fn connect(&self) -> io::Result<Client> {
        let stream = TcpStream::connect(&self.host).await?;
        stream.set_nodelay(true)?;
        Ok(Client::new(stream))
    }

    async fn add_tasks(&self, count: usize) -> Outcome {
        let mut adding = JoinSet::new();
        let each = count.div_ceil(32);
        for part in 0..32 {
            let mut client = self.connect().await?;
            let numbers = part * each..((part + 1) * each).min(count);
            let requests: Vec<Vec<u8>> = numbers
                .map(|at| {
                    let body =
                        format!("{{\"id\":\"c-{at}\",\"title\":\"Teach the parser to read form {at}\"}}");
                    self.request("POST /api/v1/tasks", &body)
                })
                .collect();
            adding.spawn(async move {
                for request in &requests {
                    assert_eq!(client.ask(request).await.unwrap().0, 201);
                }
            });
        }
        adding.join_all().await;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept open.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    waste: Vec<u8>,
}

impl Client {
    fn new(stream: TcpStream) -> Client {
        Client { stream, buffer: Vec::with_capacity(64 << 10), waste: Vec::new() }
    }

    /// Status and length of the answer, once all of it is there.
    async fn ask(&mut self, request: &[u8]) -> io::Result<(u16, usize)> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).to_lowercase();
                let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
                let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
                let mut left = (end + 4 + length).saturating_sub(self.buffer.len());
                // What it says is not looked at: it is taken and thrown away. Most answers are here already.
                if left > 0 {
                    self.waste.resize(256 << 10, 0);
                }
                while left > 0 {
                    let most = left.min(self.waste.len());
                    let read = self.stream.read(&mut self.waste[..most]).await?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    left -= read;
                }
                return Ok((status, length));
            }
        }
    }
}

// Durable commands.

async fn commands(bench: &Bench) -> Outcome {
    let (mut syncs, mut one, mut in_process, mut many) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        syncs.push(raw_sync(&bench.folder)?);
        let server = Server::start(&bench.folder, &format!("commands-{round}"))?;
        server.add_tasks(TASKS).await?;
        let (_, p50) = edits(&server, 1).await?;
        one.push(p50);
        in_process.push(group_commit(&bench.folder, round)?);
        let (rate, _) = edits(&server, 64).await?;
        many.push(rate);
    }
    let (sync, one) = (median(syncs), median(one));
    line("one connection: p50 in ms (limit: one fdatasync)", sync, one, "limit + 0.25 ms");
    line("64 connections: commands/s (limit: in process)", median(in_process), median(many), "0.25x");
    Ok(())
}

/// Milliseconds that one append of a record's size takes to be on disk: the median.
fn raw_sync(folder: &Path) -> Result<f64, Box<dyn std::error::Error>> {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("raw"))?;
    let record = [b'x'; 300];
    let mut took = Vec::new();
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        let begun = Instant::now();
        file.write_all(&record)?;
        file.sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(took))
}

/// Commands a second, and the median of how long one took in milliseconds.
async fn edits(server: &Server, connections: usize) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let before = seq(server).await?;
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(connections + 1)));
    let mut asking = JoinSet::new();
    for connection in 0..connections {
        let mut client = server.connect().await?;
        // Twice round all of them: each time to another urgency, so that each request changes something.
        let requests: Vec<Vec<u8>> = (0..2 * TASKS)
            .map(|at| {
                let task = (at * 7 + connection * 31) % TASKS;
                let body = format!("{{\"priority\":{}}}", (at / TASKS + connection) % 5);
                server.request(&format!("PATCH /api/v1/tasks/c-{task}"), &body)
            })
            .collect();
        let (stop, start) = (stop.clone(), start.clone());
        asking.spawn(async move {
            start.wait().await;
            let mut took = Vec::new();
            for request in requests.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let begun = Instant::now();
                assert_eq!(client.ask(request).await.unwrap().0, 200);
                took.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            took
        });
    }
    start.wait().await;
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    stop.store(true, Ordering::Relaxed);
    let took: Vec<f64> = asking.join_all().await.into_iter().flatten().collect();
    let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
    let written = seq(server).await? - before;
    assert!(written >= took.len() as u64, "every command that was answered is in the log");
    Ok((rate, median(took)))
}

/// The number of the log's last record.
async fn seq(server: &Server) -> Result<u64, Box<dyn std::error::Error>> {
    let mut client = TcpStream::connect(&server.host).await?;
    let request = server.request("GET /api/v1/board", "");
    client.write_all(&request).await?;
    let mut text = Vec::new();
    loop {
        client.read_buf(&mut text).await?;
        let shown = String::from_utf8_lossy(&text);
        if let Some(rest) = shown.split("{\"seq\":").nth(1).filter(|rest| rest.contains(',')) {
            return Ok(rest.split(',').next().unwrap_or_default().parse()?);
        }
    }
}

/// The same commands from 64 submitters in one process, without a server: commands a second.
fn group_commit(folder: &Path, round: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let path = folder.join(format!("in-process-{round}.db"));
    let owner = Owner::open(log::open(&Location::File(path.clone()))?)?;
    let handle = owner.handle();
    let command = |ask: Ask| kernel::Command {
        id: base::clock::unique(),
        at: base::clock::now(),
        actor: Actor::Human("ann".into()),
        token_for: None,
        key: None,
        ask,
    };
    for at in 0..TASKS {
        let id: TaskId = format!("c-{at}").parse()?;
        let new = NewTask {
            id: Some(id),
            title: format!("Teach the parser to read form {at}"),
            ..NewTask::default()
        };
        assert!(matches!(handle.submit(command(Ask::AddTask(new)), None)?, Answer::Done(_)));
    }
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let begun = Instant::now();
    let done: u64 = std::thread::scope(|scope| {
        let submitting: Vec<_> = (0..64)
            .map(|submitter: usize| {
                let handle = handle.clone();
                scope.spawn(move || {
                    let mut done = 0;
                    while Instant::now() < end {
                        let id =
                            format!("c-{}", (done as usize * 7 + submitter * 31) % TASKS).parse().unwrap();
                        let priority = Some(((done as usize / TASKS + submitter) % 5) as u8);
                        let ask = Ask::EditTask {
                            id,
                            title: None,
                            body: None,
                            priority,
                            plan: None,
                            reviewer: None,
                            agent: None,
                        };
                        assert!(matches!(handle.submit(command(ask), None).unwrap(), Answer::Done(_)));
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        submitting.into_iter().map(|submitting| submitting.join().unwrap()).sum()
    });
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

// One event to many readers.

async fn readers(bench: &Bench, count: usize) -> Outcome {
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        bare.push(to_bare_readers(bench, count).await?);
        let server = Server::start(&bench.folder, &format!("readers-{count}-{round}"))?;
        ours.push(to_readers(&server, count).await?);
    }
    let what = format!("ms to the last of {count} readers (limit: bare writes)");
    line(&what, median(bare), median(ours), "at most 1.5x");
    Ok(())
}

const EVENTS: usize = 20;

/// Reads until the next event is there; `mark` ends each.
async fn until(stream: &mut TcpStream, buffer: &mut Vec<u8>, mark: &[u8]) -> io::Result<()> {
    loop {
        if let Some(at) = buffer.windows(mark.len()).position(|window| window == mark) {
            buffer.drain(..at + mark.len());
            return Ok(());
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// From the moment a command is sent until its event is with the last reader, in milliseconds: the median of several.
async fn to_readers(server: &Server, count: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut streams = Vec::new();
    let request = server.request("GET /api/v1/events", "");
    let request = String::from_utf8(request)?.replace("\r\n\r\n", "\r\nAccept: text/event-stream\r\n\r\n");
    for _ in 0..count {
        let mut stream = TcpStream::connect(&server.host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut buffer = Vec::with_capacity(2 << 10);
        until(&mut stream, &mut buffer, b"event: heartbeat").await?;
        streams.push((stream, buffer));
    }
    let mut client = server.connect().await?;
    let send = async |at: usize| {
        let body = format!("{{\"id\":\"e-{at}\",\"title\":\"x\"}}");
        assert_eq!(client.ask(&server.request("POST /api/v1/tasks", &body)).await?.0, 201);
        Ok(())
    };
    last_of(streams, b"\"kind\":\"task_added\"", send).await
}

/// The same from a process that writes an event to disk and then to each socket, one after the other.
async fn to_bare_readers(bench: &Bench, count: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--bare-readers", bench.folder.join("bare").to_str().ok_or("a path is not text")?])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    let mut said = BufReader::new(child.stdout.take().ok_or("it has no output")?);
    said.read_line(&mut address)?;
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address.trim()).await?;
        let mut buffer = Vec::with_capacity(2 << 10);
        until(&mut stream, &mut buffer, b"ready").await?;
        streams.push((stream, buffer));
    }
    let mut input = child.stdin.take().ok_or("it has no input")?;
    let send = async |_: usize| Ok(input.write_all(b"\n")?);
    let took = last_of(streams, b"\"kind\":\"task_added\"", send).await;
    drop(input);
    child.wait()?;
    took
}

async fn last_of(
    streams: Vec<(TcpStream, Vec<u8>)>,
    mark: &'static [u8],
    mut send: impl AsyncFnMut(usize) -> Outcome,
) -> Result<f64, Box<dyn std::error::Error>> {
    let count = streams.len();
    let (seen, all) = (Arc::new(AtomicU64::new(0)), Arc::new(tokio::sync::Notify::new()));
    let mut reading = JoinSet::new();
    for (mut stream, mut buffer) in streams {
        let (seen, all) = (seen.clone(), all.clone());
        reading.spawn(async move {
            for at in 0..EVENTS {
                until(&mut stream, &mut buffer, mark).await.unwrap();
                if seen.fetch_add(1, Ordering::SeqCst) + 1 == ((at + 1) * count) as u64 {
                    all.notify_one();
                }
            }
        });
    }
    let mut took = Vec::new();
    for at in 0..EVENTS {
        let begun = Instant::now();
        send(at).await?;
        all.notified().await;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    reading.join_all().await;
    assert_eq!(
        seen.load(Ordering::SeqCst),
        (EVENTS * count) as u64,
        "nobody has missed one, or got it twice"
    );
    Ok(median(took))
}

/// A process that takes readers, and for each line of its input writes an event to disk and to every one of them.
fn bare_readers(file: &Path) -> Outcome {
    raise_file_limit();
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    let sockets = Arc::new(std::sync::Mutex::new(Vec::new()));
    let accepted = sockets.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = stream.set_nodelay(true);
            accepted.lock().unwrap().push(stream.try_clone().unwrap());
            let _ = (&stream).write_all(b"ready");
        }
    });
    let mut log = File::create(file)?;
    let data = "x".repeat(220);
    let event = format!("id: 7\nevent: record\ndata: {{\"kind\":\"task_added\",\"data\":\"{data}\"}}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    for line in io::stdin().lock().lines() {
        line?;
        log.write_all(event.as_bytes())?;
        log.sync_data()?;
        for socket in sockets.lock().unwrap().iter() {
            (&*socket).write_all(chunk.as_bytes())?;
        }
    }
    Ok(())
}

// The whole board.

async fn board(bench: &Bench) -> Outcome {
    let (mut bare, mut ours, mut slow) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        let server = Server::start(&bench.folder, &format!("board-{round}"))?;
        server.add_tasks(BOARD_TASKS).await?;
        let (_, bytes) = server.connect().await?.ask(&server.request("GET /api/v1/board", "")).await?;
        bare.push(from_memory(bytes).await?);
        let (rate, p99) = polled(&server).await?;
        ours.push(rate);
        slow.push(p99);
        let _ = fs::remove_dir_all(&server.repository);
    }
    let what = format!("boards/s, {BOARD_CLIENTS} clients (limit: from memory)");
    line(&what, median(bare), median(ours), "0.5x");
    println!("{:<52} {:>12} {:>12.2}", "  p99 in ms while 200 moves a second are written", "", median(slow));
    Ok(())
}

async fn from_memory(bytes: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--bare-board", &bytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    BufReader::new(child.stdout.take().ok_or("it has no output")?).read_line(&mut address)?;
    let clients = connected(address.trim()).await?;
    let (rate, _) = asked(clients, b"GET / HTTP/1.1\r\n\r\n".to_vec()).await?;
    child.kill()?;
    child.wait()?;
    Ok(rate)
}

async fn connected(host: &str) -> io::Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..BOARD_CLIENTS {
        clients.push(Client::new(TcpStream::connect(host).await?));
    }
    Ok(clients)
}

/// Answers a second to all of them, and the 99th percentile of how long one took in milliseconds.
async fn asked(clients: Vec<Client>, request: Vec<u8>) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(2 * SECONDS);
    let request = Arc::new(request);
    let mut asking = JoinSet::new();
    for mut client in clients {
        let request = request.clone();
        asking.spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let begun = Instant::now();
                assert_eq!(client.ask(&request).await.unwrap().0, 200);
                took.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            took
        });
    }
    let mut took: Vec<f64> = asking.join_all().await.into_iter().flatten().collect();
    let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Ok((rate, took[took.len() * 99 / 100]))
}

/// The connections over which tasks are moved: more than one, since each waits its turn among those who poll.
const MOVERS: usize = 50;

async fn polled(server: &Server) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut moving = JoinSet::new();
    for mover in 0..MOVERS {
        let mut client = server.connect().await?;
        let moves: Vec<Vec<u8>> = (mover..BOARD_TASKS)
            .step_by(MOVERS)
            .map(|at| {
                let body = "{\"to\":\"ASSIGNED\",\"assigneeIds\":[\"coder\"]}";
                server.request(&format!("POST /api/v1/tasks/c-{at}/transitions"), body)
            })
            .collect();
        let stop = stop.clone();
        moving.spawn(async move {
            let each = Duration::from_nanos(1_000_000_000 * MOVERS as u64 / MOVES_A_SECOND);
            let mut every = tokio::time::interval(each);
            let mut done = 0;
            for request in moves {
                every.tick().await;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                assert_eq!(client.ask(&request).await.unwrap().0, 200);
                done += 1;
            }
            done
        });
    }
    let clients = connected(&server.host).await?;
    let measured = asked(clients, server.request("GET /api/v1/board", "")).await?;
    stop.store(true, Ordering::Relaxed);
    let moved: u64 = moving.join_all().await.into_iter().sum();
    let wanted = 2 * SECONDS * MOVES_A_SECOND;
    assert!(moved * 10 > wanted * 9, "of {wanted} moves only {moved} were made: the figure says nothing");
    Ok(measured)
}

/// A process that answers everything with so many bytes that it has in memory.
fn bare_board(bytes: usize) -> Outcome {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        io::stdout().flush()?;
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + bytes, b'x');
        let answer: Arc<[u8]> = answer.into();
        loop {
            let (mut stream, _) = listener.accept().await?;
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    if stream.write_all(&answer).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
}
