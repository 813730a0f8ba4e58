//! How fast it is, beside what the machine can do without us, in one run: `make bench`.
//!
//! What is compared is measured in turn, three times, and the median counts: the machine is shared, and its disk may be
//! ten times slower a minute later. A figure is void unless what was measured is found to be right afterwards.
//!
//! `cargo bench -p adjutant-log --bench bench -- [machines] [commands] [replay] [--events N] [--folder DIR]`

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use kernel::command::NewTask;
use kernel::{Actor, Answer, Ask, Command, Event};
use log::owner::{Folded, Handle, Owner, Settings, VERSION};
use log::{self, Location, Log, LogError};
use machines::names::TaskId;
use machines::task::{Payload, Status};
use machines::{Machine, architect, run, task, turn, worker};
use serde::de::DeserializeOwned;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const ROUNDS: usize = 3;
/// XState's `actor.send` on a quiet machine of this kind.
const XSTATE_STEPS: f64 = 94_000.0;
const TASKS: u64 = 500;
/// What a server on a small machine would have.
const SUBMITTING_THREADS: usize = 2;

fn main() -> Outcome {
    let mut wanted = Vec::new();
    let mut events = 1_000_000;
    let mut folder = std::env::temp_dir();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--events" => events = arguments.next().unwrap_or_default().parse()?,
            "--folder" => folder = PathBuf::from(arguments.next().unwrap_or_default()),
            // What cargo passes to every benchmark.
            "--bench" => {}
            _ => wanted.push(argument),
        }
    }
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let folder = folder.join(format!("adjutant-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    println!("{:<44} {:>14} {:>14} {:>9}   goal", "", "limit", "ours", "ratio");
    let measured = [
        ("machines", machine_steps as fn(&Path, u64) -> Outcome),
        ("commands", durable_commands),
        ("replay", replay),
    ]
    .into_iter()
    .filter(|(name, _)| wants(name))
    .try_for_each(|(_, measure)| measure(&folder, events));
    fs::remove_dir_all(&folder)?;
    measured
}

fn line(what: &str, limit: f64, ours: f64, goal: &str) {
    println!("{what:<44} {limit:>14.0} {ours:>14.0} {:>8.2}x   {goal}", ours / limit);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

// Machine steps.

fn machine_steps(_: &Path, _: u64) -> Outcome {
    let goal = "must 100x, goal 1,000x of XState";
    let rates = [
        (turn::Turn::NAME, course::<turn::Turn>(turn::Turn::default(), TURN)?),
        (worker::Worker::NAME, course::<worker::Worker>(worker::Worker::default(), WORKER)?),
        (task::Task::NAME, course::<task::Task>(serde_json::from_str(r#"{"status":"INBOX"}"#)?, TASK)?),
        (
            architect::Architect::NAME,
            course::<architect::Architect>(architect::Architect::default(), ARCHITECT)?,
        ),
        (run::Run::NAME, course::<run::Run>(working_run()?, RUN)?),
    ];
    for (name, rate) in rates {
        line(&format!("steps/s of {name} (limit: XState's own)"), XSTATE_STEPS, rate, goal);
    }
    Ok(())
}

const TURN: &[&str] = &[
    r#"{"type":"agent_starts"}"#,
    r#"{"type":"assigned_to_channel"}"#,
    r#"{"type":"turn_granted","at":1000,"timeoutSeconds":60}"#,
    r#"{"type":"wait_requested","at":1500,"waitSeconds":300}"#,
    r#"{"type":"wait_resolved","at":1700}"#,
    r#"{"type":"TURN_COMPLETE","alone":false}"#,
    r#"{"type":"turn_granted","at":2000,"timeoutSeconds":60}"#,
    r#"{"type":"timeout"}"#,
    r#"{"type":"wait_timeout"}"#,
    r#"{"type":"agent_stops"}"#,
];

const WORKER: &[&str] = &[
    r#"{"type":"spawn","name_free":true}"#,
    r#"{"type":"assign","task":"c-1","claimable":true}"#,
    r#"{"type":"step_starts"}"#,
    r#"{"type":"step_ok","done":false}"#,
    r#"{"type":"step_failed","error":"exit 1"}"#,
    r#"{"type":"step_ok","done":false}"#,
    r#"{"type":"retry"}"#,
    r#"{"type":"step_ok","done":true}"#,
    r#"{"type":"gate_failed"}"#,
    r#"{"type":"step_ok","done":true}"#,
    r#"{"type":"handed_over"}"#,
];

const TASK: &[&str] = &[
    r#"{"type":"move","to":"ASSIGNED","by":{"id":"ann","role":"human"},"payload":{"assigneeIds":["coder"]}}"#,
    r#"{"type":"move","to":"IN_PROGRESS","by":{"id":"coder","role":"specialist"}}"#,
    r#"{"type":"move","to":"IN_PROGRESS","by":{"id":"coder","role":"specialist"},"payload":{"workPlan":{"bullets":["a","b","c"]}}}"#,
    r#"{"type":"move","to":"BLOCKED","by":{"id":"ann","role":"human"},"payload":{"reason":"manual"}}"#,
    r#"{"type":"move","to":"IN_PROGRESS","by":{"id":"ann","role":"human"}}"#,
    r#"{"type":"move","to":"CANCELED","by":{"id":"ann","role":"human"}}"#,
];

const ARCHITECT: &[&str] = &[
    r#"{"type":"start"}"#,
    r#"{"type":"request","id":"r-1","request":"question"}"#,
    r#"{"type":"workspace_ready"}"#,
    r#"{"type":"cannot_answer"}"#,
    r#"{"type":"human_answer"}"#,
    r#"{"type":"answered"}"#,
    r#"{"type":"answered"}"#,
    r#"{"type":"request","id":"r-2","request":"question"}"#,
    r#"{"type":"setup_failed","reason":"no space"}"#,
    r#"{"type":"recover"}"#,
];

const RUN: &[&str] = &[
    r#"{"type":"START","taskId":"c-1","prompt":"go"}"#,
    r#"{"type":"STEP","turn":1}"#,
    r#"{"type":"STEP","turn":2}"#,
    r#"{"type":"STEP","turn":2}"#,
    r#"{"type":"STEP","turn":9}"#,
    r#"{"type":"PAUSE","reason":"user_input"}"#,
    r#"{"type":"RESUME","feedback":"go on"}"#,
    r#"{"type":"STEP","turn":3}"#,
    r#"{"type":"COMPLETE","result":"done","turnCount":3}"#,
];

fn working_run() -> serde_json::Result<run::Run> {
    let task = r#"{"id":"c-1","status":"IN_PROGRESS","mine":true}"#;
    Ok(run::Run { task: Some(serde_json::from_str(task)?), ..run::Run::default() })
}

/// Takes the events one after the other, from the start again and again: typed event in, new state and effects or
/// refusal out. The machine is moved in place, as an actor's is, and the effects go to the caller's list. At least half of them must be taken, or it is no course.
fn course<M>(start: M, events: &[&str]) -> Result<f64, Box<dyn std::error::Error>>
where
    M: Machine + Debug,
    M::Event: DeserializeOwned,
{
    const ROUND: Duration = Duration::from_millis(300);
    let read =
        |text: &&str| serde_json::from_str::<M::Event>(text).map_err(|error| format!("{text}: {error}"));
    let events = events.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let (mut steps, mut taken, mut effects) = (0_u64, 0_u64, Vec::new());
        let started = Instant::now();
        while started.elapsed() < ROUND {
            for _ in 0..100 {
                let mut state = start.clone();
                for event in &events {
                    steps += 1;
                    effects.clear();
                    taken += u64::from(
                        std::hint::black_box(machines::machine::advance_into(
                            &mut state,
                            event,
                            None,
                            &mut effects,
                        ))
                        .is_ok(),
                    );
                }
            }
        }
        rates.push(steps as f64 / started.elapsed().as_secs_f64());
        if taken * 2 < steps {
            return Err(format!("{}: only {taken} of {steps} events were taken", M::NAME).into());
        }
    }
    Ok(median(rates))
}

// Durable commands.

fn durable_commands(folder: &Path, _: u64) -> Outcome {
    const ROUND: Duration = Duration::from_millis(1_500);
    let path = folder.join("commands.db");
    let owner = open(&path)?;
    let handle = owner.handle();
    add_tasks(&handle, TASKS)?;
    let bytes = bytes_of_a_command(&handle)?;
    let mut raw_file = OpenOptions::new().append(true).create(true).open(folder.join("raw"))?;

    decisions(&handle)?;
    let crowds = [1, 16, 256];
    let mut measured: HashMap<usize, Vec<Crowd>> = HashMap::new();
    let (mut raws, mut raw_times) = (Vec::new(), Vec::new());
    let mut done = handle.world().seq;
    for _ in 0..ROUNDS {
        for crowd in crowds {
            let (rate, times) = raw_syncs(&mut raw_file, &bytes, ROUND / 3)?;
            raws.push(rate);
            raw_times.extend(times);
            let next = submit_for(&handle, crowd, ROUND)?;
            done += next.commands;
            measured.entry(crowd).or_default().push(next);
        }
    }

    // Each command is one record. All of them are there, the chain holds, and it folds to the World that answered.
    let live = handle.world();
    drop(owner);
    let log = open_log(&path)?;
    let folded = Folded::read_all(&*log, VERSION)?;
    if folded.head.seq != done || folded.world != *live {
        return Err(format!("void: {} records for {done} acknowledged", folded.head.seq).into());
    }

    let raw = median(raws);
    let raw_time = median(raw_times);
    println!("{:<44} {raw:>14.0}", format!("write + fdatasync of {} bytes, /s", bytes.len()));
    for crowd in crowds {
        let of = &measured[&crowd];
        let rate = median(of.iter().map(|of| of.rate).collect());
        let goal = if crowd == 256 { "must 15x, goal 25x" } else { "" };
        line(&format!("durable commands/s, {crowd} submitters"), raw, rate, goal);
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            let times = of.iter().map(|of| of.times[(of.times.len() - 1) * percent / 100]);
            let micros = median(times.collect()) * 1e6;
            let goal = if (crowd, percent) == (1, 50) { "must ≤ raw + 250" } else { "" };
            println!(
                "{:<44} {:>14.0} {micros:>14.0} {:>9}   {goal}",
                format!("  reply {name}, µs"),
                raw_time * 1e6,
                ""
            );
        }
    }
    Ok(())
}

/// The kernel alone, on the same World: what no writer of any kind could pass.
fn decisions(handle: &Handle) -> Outcome {
    const ROUND: u64 = 20_000;
    let mut world = (*handle.world()).clone();
    let mut bytes = 0;
    let (mut decided, mut encoded) = (Vec::new(), Vec::new());
    for round in 0..2 * ROUNDS as u64 {
        let commands: Vec<_> =
            (0..ROUND).map(|n| move_task(n % TASKS, n / TASKS + round * ROUND / TASKS, n)).collect();
        let before = Instant::now();
        let mut events = Vec::new();
        for command in &commands {
            let commit = kernel::handle(&world, command)?;
            world = commit.world;
            events.extend(commit.events);
        }
        decided.push(ROUND as f64 / before.elapsed().as_secs_f64());
        let before = Instant::now();
        bytes += events.iter().map(|event| event.encode().len() + event.stream().len()).sum::<usize>();
        encoded.push(ROUND as f64 / before.elapsed().as_secs_f64());
    }
    std::hint::black_box(bytes);
    println!("{:<44} {:>14} {:>14.0}", "commands decided/s, nothing written", "", median(decided));
    println!("{:<44} {:>14} {:>14.0}", "events encoded/s", "", median(encoded));
    Ok(())
}

struct Crowd {
    commands: u64,
    rate: f64,
    /// In seconds, sorted.
    times: Vec<f64>,
}

fn open_log(path: &Path) -> Result<Box<dyn Log>, LogError> {
    log::open(&Location::File(path.to_owned()))
}

fn open(path: &Path) -> Result<Owner, Box<dyn std::error::Error>> {
    Ok(Owner::open(open_log(path)?)?)
}

fn command(id: u64, ask: Ask) -> Command {
    Command {
        id: u128::from(id),
        at: 1_700_000_000_000 + id as i64,
        actor: Actor::Human("ann".into()),
        token_for: None,
        key: None,
        ask,
    }
}

fn task_id(number: u64) -> TaskId {
    TaskId::new(format!("c-{number}")).unwrap_or_else(|error| panic!("{error}"))
}

fn add_tasks(handle: &Handle, tasks: u64) -> Outcome {
    let adds = (0..tasks).map(|n| {
        let body = "What is to be done, and how one can tell that it was done. ".repeat(4);
        let new = NewTask { id: Some(task_id(n)), title: format!("task {n}"), body, ..NewTask::default() };
        command(n, Ask::AddTask(new))
    });
    submit_all(handle, adds)
}

/// Back and forth between INBOX and ASSIGNED: the task machine is asked each time, and each move is one event.
fn move_task(number: u64, round: u64, id: u64) -> Command {
    let to = if round.is_multiple_of(2) { Status::Assigned } else { Status::Inbox };
    let assignee_ids = (to == Status::Assigned).then(|| vec!["coder".into()]);
    let payload = Box::new(Payload { assignee_ids, ..Payload::default() });
    command(id, Ask::MoveTask { id: task_id(number), to, payload })
}

/// What one command writes: the texts of its record, and its hash.
fn bytes_of_a_command(handle: &Handle) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    submit_all(handle, [move_task(0, 0, 0), move_task(0, 1, 1)].into_iter())?;
    let seq = handle.world().seq;
    let record = handle.read(seq - 1, 1)?.pop().ok_or("the record is there")?;
    let texts = [&record.stream, &record.actor, &record.command, &record.kind, &record.data];
    Ok(texts.into_iter().flat_map(|text| text.bytes()).chain(record.hash).chain([0; 24]).collect())
}

fn raw_syncs(file: &mut File, bytes: &[u8], time: Duration) -> std::io::Result<(f64, Vec<f64>)> {
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < time {
        let before = Instant::now();
        file.write_all(bytes)?;
        file.sync_data()?;
        times.push(before.elapsed().as_secs_f64());
    }
    Ok((times.len() as f64 / started.elapsed().as_secs_f64(), times))
}

/// Each submitter asks, waits for its answer, and asks again, for a task of its own. As in a server, they share a few
/// threads: an answer wakes the thread that its submitter is on, if it sleeps.
fn submit_for(handle: &Handle, crowd: usize, time: Duration) -> Result<Crowd, Box<dyn std::error::Error>> {
    let threads = crowd.min(SUBMITTING_THREADS);
    let started = Instant::now();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let places = (thread..crowd).step_by(threads);
                scope.spawn(move || submit_on_thread(handle, places, started + time))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err("a submitter panicked")))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let elapsed = started.elapsed();
    let mut times = times.concat();
    times.sort_by(f64::total_cmp);
    let commands = times.len() as u64;
    Ok(Crowd { commands, rate: commands as f64 / elapsed.as_secs_f64(), times })
}

struct Submitter {
    place: u64,
    round: u64,
    asked: Instant,
}

fn submit_on_thread(
    handle: &Handle,
    places: impl Iterator<Item = usize>,
    until: Instant,
) -> Result<Vec<f64>, &'static str> {
    let (send, receive) = channel::<(Submitter, bool)>();
    let ask = |submitter: Submitter| {
        let send = send.clone();
        let next = move_task(submitter.place, submitter.round, submitter.round);
        let answered = move |answer| drop(send.send((submitter, matches!(answer, Ok(Answer::Done(_))))));
        handle.send(next, None, answered).map_err(|_| "the owner has stopped")
    };
    let mut under_way = 0;
    for place in places {
        ask(Submitter { place: place as u64, round: 0, asked: Instant::now() })?;
        under_way += 1;
    }
    let mut times = Vec::with_capacity(100_000);
    while under_way > 0 {
        let (submitter, done) = receive.recv().map_err(|_| "the owner has stopped")?;
        times.push(submitter.asked.elapsed().as_secs_f64());
        if !done {
            return Err("void: a command was not done");
        }
        let Submitter { place, round, .. } = submitter;
        // An even number of moves, so that the next crowd finds every task where this one did.
        if Instant::now() < until || round % 2 == 0 {
            ask(Submitter { place, round: round + 1, asked: Instant::now() })?;
        } else {
            under_way -= 1;
        }
    }
    Ok(times)
}

/// As fast as it goes: many are under way at any time.
fn submit_all(handle: &Handle, commands: impl Iterator<Item = Command>) -> Outcome {
    let (send, receive) = channel();
    let wrong = Arc::new(AtomicU64::new(0));
    let mut under_way = 0_usize;
    for command in commands {
        let (send, wrong) = (send.clone(), wrong.clone());
        handle.send(command, None, move |answer| {
            if !matches!(answer, Ok(Answer::Done(_))) {
                wrong.fetch_add(1, Ordering::Relaxed);
            }
            let _ = send.send(());
        })?;
        under_way += 1;
        if under_way > 4_000 {
            receive.recv()?;
            under_way -= 1;
        }
    }
    for _ in 0..under_way {
        receive.recv()?;
    }
    match wrong.load(Ordering::Relaxed) {
        0 => Ok(()),
        wrong => Err(format!("{wrong} commands were not done").into()),
    }
}

// Replay.

/// A project with a past: 1 % of the events made tasks, 5 % are comments, the others moves.
fn replay(folder: &Path, events: u64) -> Outcome {
    let path = folder.join("replay.db");
    let settings = Settings { snapshot_every: u64::MAX, ..Settings::default() };
    let owner = Owner::open_with(open_log(&path)?, settings)?;
    let handle = owner.handle();
    let tasks = (events / 100).max(1);
    add_tasks(&handle, tasks)?;
    let started = Instant::now();
    let rest = events - handle.world().seq;
    let agent = Actor::Agent { name: "coder".parse()?, role: kernel::config::Role::Specialist };
    let mut rounds = vec![0_u64; tasks as usize];
    let commands = (0..rest).map(|n| {
        let number = n % tasks;
        if (n / tasks).is_multiple_of(20) {
            let text = format!("comment {n}: the tests pass, and the door does not squeak any more");
            return Command {
                actor: agent.clone(),
                ..command(n, Ask::Comment { id: task_id(number), text })
            };
        }
        let round = &mut rounds[number as usize];
        *round += 1;
        move_task(number, *round - 1, n)
    });
    submit_all(&handle, commands)?;
    let rate = rest as f64 / started.elapsed().as_secs_f64();
    println!("{:<44} {:>14} {rate:>14.0}", "commands/s while the log was made", "");
    let live = handle.world();
    drop(owner);

    let (mut bare_times, mut our_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = Instant::now();
        let (records, streams) = bare_fold(&path)?;
        bare_times.push(before.elapsed().as_secs_f64() * 1e3);

        let before = Instant::now();
        let log = open_log(&path)?;
        let folded = Folded::read(&*log, VERSION)?;
        our_times.push(before.elapsed().as_secs_f64() * 1e3);
        if folded.world != *live || folded.head.seq != records || streams < tasks as usize {
            return Err("void: the log did not fold to the World that wrote it".into());
        }
    }
    let what = format!("replay of {events} events, ms (limit: bare)");
    line(&what, median(bare_times), median(our_times), "must ≤ 2x, goal 300 ms");

    let mut log = open_log(&path)?;
    let folded = Folded::read(&*log, VERSION)?;
    let snapshot = folded.snapshot(VERSION).ok_or("the World can be written")?;
    let megabytes = snapshot.data.len() as f64 / 1e6;
    log.save_snapshot(&snapshot)?;
    drop((log, folded, snapshot));
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let before = Instant::now();
        let owner = open(&path)?;
        let tasks_there = owner.handle().query(|world| world.tasks.len());
        times.push(before.elapsed().as_secs_f64() * 1e3);
        if tasks_there as u64 != tasks || *owner.handle().world() != *live {
            return Err("void: the snapshot is not the World that it was made of".into());
        }
    }
    let what = format!("start with a snapshot of {megabytes:.1} MB, ms");
    line(&what, 150.0, median(times), "must ≤ 1x (150 ms)");
    Ok(())
}

/// The same rows read, decoded and put into a map, with nothing checked and no rule known.
fn bare_fold(path: &Path) -> Result<(u64, usize), Box<dyn std::error::Error>> {
    let connection = rusqlite::Connection::open(path)?;
    let mut statement = connection.prepare("SELECT stream, kind, data FROM records ORDER BY seq")?;
    let mut rows = statement.query(())?;
    let (mut records, mut map) = (0, HashMap::<String, Event>::new());
    while let Some(row) = rows.next()? {
        let (stream, kind, data) =
            (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        let event = Event::decode(kind, data)?;
        match map.get_mut(stream) {
            Some(last) => *last = event,
            None => drop(map.insert(stream.to_owned(), event)),
        }
        records += 1;
    }
    Ok((records, map.len()))
}
