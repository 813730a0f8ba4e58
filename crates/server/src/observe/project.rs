//! One project, as it is counted and told: what its log says, and how it stands when somebody asks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fleet;
use fleet::standstill::{self, Standstill};
use kernel::waiting::{Kind, waiting};
use kernel::words::EffectEnd;
use kernel::{Event, World};
use log::owner::Handle;
use log::{Record, Seq};
use machines::names::EffectId;
use machines::task::Status;
use machines::{Wire, worker};
use metrics::Histogram;
use tokio::sync::{Notify, watch};

use super::super::MountedProject;
use super::journal::{self, LogForm};
use super::recorder::Numbers;
use super::{Server, table};
use api;

/// Records that are read at once.
const RECORDS: usize = 500;
/// What is written is read together with what follows it within this time: counting must not slow down the owner.
const GATHER: Duration = Duration::from_millis(100);
/// Whoever asks for the numbers does not wait longer for the last of them.
const CAUGHT_UP: Duration = Duration::from_secs(2);

pub struct Watched {
    pub name: Arc<str>,
    handle: Handle,
    project: Arc<MountedProject>,
    log: PathBuf,
    /// The last record that was counted.
    seen: watch::Sender<Seq>,
    /// Somebody wants the numbers now.
    hurry: Notify,
}

impl Watched {
    pub fn start(
        server: &'static Server,
        name: &str,
        handle: &Handle,
        project: Arc<MountedProject>,
        log: PathBuf,
    ) -> Arc<Watched> {
        let name: Arc<str> = Arc::from(name);
        let numbers = &server.numbers;
        let appends = numbers.histogram(&table::APPEND_SECONDS, [(&name).into()]);
        let lag = numbers.histogram(&table::LAG_SECONDS, [(&name).into()]);
        let written = Arc::new(Mutex::new(None));
        let noted = written.clone();
        handle.on_append(move |seq, took| {
            appends.record(took);
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            // The oldest that nobody was sent yet is the one that counts.
            noted.get_or_insert((seq, Instant::now()));
        });
        tokio::spawn(measure_lag(project.services.events.ready(), written, lag));
        let seen = watch::Sender::new(handle.world().seq);
        let watched =
            Arc::new(Watched { name, handle: handle.clone(), project, log, seen, hurry: Notify::new() });
        tokio::spawn(follow(server, watched.clone()));
        watched
    }

    /// Returns when all that is on disk now was counted, or after a while.
    pub async fn caught_up(&self) {
        let wanted = self.handle.world().seq;
        let mut seen = self.seen.subscribe();
        self.hurry.notify_one();
        let _ = tokio::time::timeout(CAUGHT_UP, seen.wait_for(|seen| *seen >= wanted)).await;
    }

    /// How it stands now. It looks at every task: it is done when somebody asks, and only then.
    pub fn measure(&self, numbers: &Numbers) {
        let world = self.handle.world();
        let name = || (&self.name).into();
        let set = |metric, value: f64| numbers.gauge(metric, [name()]).set(value);
        set(&table::COMMANDS_WAITING, self.handle.waiting() as f64);
        set(&table::MERGE_QUEUE, (world.queue.len() + usize::from(world.landing.is_some())) as f64);
        set(&table::LEASES, world.tasks.values().filter(|task| task.work.lease.is_some()).count() as f64);
        set(&table::FLEET_RUNNING, f64::from(self.project.services.control.status().running));
        set(&table::COST, world.spend.cost as f64 / 1e6);
        set(&table::READERS, self.project.services.events.readers() as f64);
        if let Ok(file) = std::fs::metadata(&self.log) {
            set(&table::LOG_BYTES, file.len() as f64);
        }
        for status in Status::ALL {
            let count = world.tasks.values().filter(|task| task.machine.status == *status).count();
            numbers.gauge(&table::TASKS, [name(), status.name().into()]).set(count as f64);
        }
        let list = waiting(&world, &self.project.services.host.facts(), base::clock::now());
        for kind in Kind::ALL {
            let count = list.iter().filter(|item| item.kind == *kind).count();
            numbers.gauge(&table::WAITING, [name(), kind.name().into()]).set(count as f64);
        }
    }
}

type Written = Arc<Mutex<Option<(Seq, Instant)>>>;

/// How long what is written takes until it can be sent.
async fn measure_lag(mut ready: watch::Receiver<Seq>, written: Written, lag: Histogram) {
    while ready.changed().await.is_ok() {
        let sent = *ready.borrow_and_update();
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, at)) = written.take_if(|(seq, _)| *seq <= sent) {
            lag.record(at.elapsed());
        }
    }
}

async fn follow(server: &'static Server, watched: Arc<Watched>) {
    let mut head = watched.handle.follow();
    let mut steps = Steps::default();
    #[cfg(feature = "otel")]
    let mut spans = super::otel::Spans::start(&watched.name);
    loop {
        loop {
            let (reading, after) = (watched.clone(), *watched.seen.borrow());
            let page = tokio::task::spawn_blocking(move || reading.handle.read(after, RECORDS)).await;
            // An owner that has stopped has nothing more to tell.
            let Ok(Ok(page)) = page else { return };
            let world = watched.handle.world();
            for record in &page {
                count(server, &watched.name, &world, record, &mut steps);
                #[cfg(feature = "otel")]
                if let (Some(spans), Ok(event)) = (&mut spans, Event::decode(&record.kind, &record.data)) {
                    spans.take(&world, record, &event);
                }
            }
            if page.len() < RECORDS {
                steps.settle(&server.numbers, &watched.name);
            }
            let Some(last) = page.last() else { break };
            watched.seen.send_replace(last.seq);
        }
        if head.changed().await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(GATHER) => {}
            () = watched.hurry.notified() => {}
        }
    }
}

fn count(server: &Server, name: &Arc<str>, world: &World, record: &Record, steps: &mut Steps) {
    let numbers = &server.numbers;
    steps.look_at(numbers, name, record);
    let Ok(event) = Event::decode(&record.kind, &record.data) else { return };
    if let Some(moved) = event.transition() {
        let [from, to]: [Arc<str>; 2] = [Arc::from(moved.from), Arc::from(moved.to)];
        let words = [name.into(), moved.machine.into(), (&from).into(), (&to).into()];
        numbers.counter(&table::TRANSITIONS, words).increment(1);
        if server.form == LogForm::Json
            && let Some(transition) = api::transition(world, record)
        {
            journal::line(&journal::TransitionLine { transition: &transition, project: name });
        }
    }
    if let (Event::StoodStill(said), LogForm::Json) = (&event, server.form) {
        let still = Standstill::of(world, said.at);
        let message = still.map_or_else(|| standstill::headline(said.reasons.len()), |still| still.text());
        let (timestamp, project) = (api::time(said.at), Some(&**name));
        journal::line(&journal::Noticed { timestamp, event: fleet::STANDSTILL, project, message: &message });
    }
    if let Event::Charged(charged) = &event {
        let tokens =
            |direction: &'static str| numbers.counter(&table::TOKENS, [name.into(), direction.into()]);
        tokens("input").increment(charged.input_tokens);
        tokens("output").increment(charged.output_tokens);
    }
    steps.take(&event, record);
}

/// The steps under way, and how the one ended that a command is about. All that a command brought about stands together
/// in the log.
#[derive(Default)]
struct Steps {
    begun: BTreeMap<EffectId, i64>,
    command: String,
    ended: Option<(Duration, &'static str)>,
    failed: bool,
    done: bool,
    outage: bool,
}

impl Steps {
    /// What one command brought about is over where another begins.
    fn look_at(&mut self, numbers: &Numbers, name: &Arc<str>, record: &Record) {
        if self.command != record.command {
            self.settle(numbers, name);
            self.command.clone_from(&record.command);
        }
    }

    fn take(&mut self, event: &Event, record: &Record) {
        match event {
            Event::EffectAsked(asked) if matches!(asked.what, kernel::Effect::StartStep { .. }) => {
                self.begun.insert(asked.id.clone(), record.at);
            }
            Event::EffectEnded(ended) => {
                let Some(since) = self.begun.remove(&ended.id) else { return };
                let took = Duration::from_millis((record.at - since).max(0).unsigned_abs());
                let how = if ended.how == EffectEnd::Done { "more" } else { "ended" };
                self.ended = Some((took, how));
            }
            Event::WorkerMoved(moved) => {
                self.done |= moved.to == worker::State::Done;
                self.failed |= moved.to == worker::State::Stuck;
            }
            Event::RunMoved(moved) => self.failed |= matches!(moved.state, machines::run::State::InError),
            Event::HealthSeen(seen) => self.outage |= !seen.healthy,
            _ => {}
        }
    }

    fn settle(&mut self, numbers: &Numbers, name: &Arc<str>) {
        let Steps { begun, command, ended, failed, done, outage } = std::mem::take(self);
        (self.begun, self.command) = (begun, command);
        let Some((took, how)) = ended else { return };
        let outcome = match how {
            "ended" => "ended",
            _ if outage => "outage",
            _ if failed => "failed",
            _ if done => "done",
            how => how,
        };
        numbers.histogram(&table::STEP_SECONDS, [name.into(), outcome.into()]).record(took);
    }
}
