//! The one thread that writes: all waiting work goes into one transaction, with one sync.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc as tokio_mpsc, oneshot};

use super::mark::Marker;
use super::{Fault, Shared, delete, now, schema, signed};
use crate::problem::Problem;
use crate::subscriptions;
use crate::subscriptions::glob::Patterns;
use crate::subscriptions::keys::Keys;
use crate::subscriptions::webhook::Delivery;

/// Most pieces of work in one transaction, so that the first of them does not wait for ever.
const BATCH_MAX: usize = 512;
/// How often it is looked for what is over: streams, leases, and times to try again.
const SWEEP: Duration = Duration::from_millis(250);
/// How often reads that prolong a stream's life are put down.
const FLUSH: Duration = Duration::from_secs(5);

/// Runs in the transaction; what it returns runs behind the commit.
type Job = Box<dyn FnOnce(&mut Turn<'_>) -> Result<Answer, rusqlite::Error> + Send>;
type Answer = Box<dyn FnOnce() + Send>;

/// The way to the writer.
pub struct Jobs(Sender<Job>);

impl Jobs {
    pub async fn run<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Turn<'_>) -> Result<T, Fault> + Send + 'static,
    {
        // Without an answer there was no commit: the sender went with the transaction.
        self.hand_over(work)?.await.map_err(|_| Problem::failed("its transaction was not committed"))?
    }

    /// Hands work over without waiting for what comes of it. Whoever waits must not keep the writer's door open meanwhile:
    /// the store ends when nobody holds it.
    pub fn hand_over<T, F>(&self, work: F) -> Result<oneshot::Receiver<Result<T, Problem>>, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&mut Turn<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |turn| {
            let result = match work(turn) {
                Ok(value) => Ok(value),
                Err(Fault::Refused(problem)) => Err(problem),
                Err(Fault::Failed(error)) => {
                    let _ = answer.send(Err(Problem::of_store(&error)));
                    return Err(error);
                }
            };
            Ok(Box::new(move || {
                // Whoever asked may have gone; what was written stays.
                let _ = answer.send(result);
            }))
        });
        self.0.send(job).map_err(|_| Problem::failed("its writer has ended"))?;
        Ok(answered)
    }
}

/// What a piece of work has while it runs.
pub struct Turn<'a> {
    pub db: &'a Connection,
    pub now: u64,
    pub shared: &'a Shared,
    pub keys: &'a Keys,
    /// Streams whose readers are to be woken behind the commit.
    pub changed: Vec<i64>,
    /// Webhooks to be sent behind the commit.
    pub deliveries: Vec<Delivery>,
    pub patterns: &'a mut Patterns,
}

pub fn start(
    db: Connection,
    file: PathBuf,
    lock: File,
    shared: Arc<Shared>,
    keys: Keys,
    marker: Marker,
    deliveries: tokio_mpsc::UnboundedSender<Delivery>,
) -> std::io::Result<(Jobs, JoinHandle<()>)> {
    let (jobs, waiting) = mpsc::channel();
    let writer = Writer { file, shared, keys, marker, deliveries, patterns: Patterns::default() };
    let thread = std::thread::Builder::new().name("streams-writer".to_owned()).spawn(move || {
        writer.run(db, &waiting);
        drop(lock);
    })?;
    Ok((Jobs(jobs), thread))
}

struct Writer {
    file: PathBuf,
    shared: Arc<Shared>,
    keys: Keys,
    marker: Marker,
    deliveries: tokio_mpsc::UnboundedSender<Delivery>,
    patterns: Patterns,
}

impl Writer {
    fn run(mut self, db: Connection, waiting: &Receiver<Job>) {
        let mut db = Some(db);
        let mut swept = Instant::now();
        let mut flushed = Instant::now();
        loop {
            let mut jobs: Vec<Job> = match waiting.recv_timeout(SWEEP) {
                Ok(job) => vec![job],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            while jobs.len() < BATCH_MAX
                && let Ok(job) = waiting.try_recv()
            {
                jobs.push(job);
            }
            let mut work = Work { jobs, sweep: swept.elapsed() >= SWEEP, flush: flushed.elapsed() >= FLUSH };
            let Some(open) = self.connection(&mut db) else {
                continue; // The answers are dropped, and whoever waits for them is told.
            };
            work.sweep = work.sweep && self.anything_due(open);
            if self.transact(open, work).is_err() {
                // A second sync on a file whose sync failed proves nothing: it is closed and opened anew.
                db = None;
                self.patterns.forget();
            }
            if swept.elapsed() >= SWEEP {
                swept = Instant::now();
            }
            if flushed.elapsed() >= FLUSH {
                flushed = Instant::now();
            }
        }
        if let Some(open) = db.as_mut() {
            let _ = self.transact(open, Work { jobs: Vec::new(), sweep: false, flush: true });
        }
    }

    fn connection<'a>(&self, db: &'a mut Option<Connection>) -> Option<&'a mut Connection> {
        if db.is_none() {
            *db = reopened(&self.file);
        }
        db.as_mut()
    }

    /// Most of the time nothing is, and then there is no transaction.
    fn anything_due(&self, db: &Connection) -> bool {
        let due = "SELECT EXISTS (SELECT 1 FROM streams WHERE due <= ?1)
            OR EXISTS (SELECT 1 FROM subscriptions WHERE lease_until <= ?1 OR next_attempt <= ?1)";
        db.prepare_cached(due)
            .and_then(|mut statement| statement.query_row([signed(now())], |row| row.get(0)))
            .unwrap_or(false)
    }

    fn transact(&mut self, db: &mut Connection, work: Work) -> Result<(), rusqlite::Error> {
        let touches = if work.flush { self.shared.touches.all() } else { Default::default() };
        if work.jobs.is_empty() && !work.sweep && touches.is_empty() {
            return Ok(());
        }
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut turn = Turn {
            db: &transaction,
            now: now(),
            shared: &self.shared,
            keys: &self.keys,
            changed: Vec::new(),
            deliveries: Vec::new(),
            patterns: &mut self.patterns,
        };
        for (stream, due) in &touches {
            let update = "UPDATE streams SET due = ?2 WHERE id = ?1 AND ttl IS NOT NULL AND due < ?2";
            turn.db.prepare_cached(update)?.execute((stream, signed(*due)))?;
        }
        let mut answers = Vec::with_capacity(work.jobs.len());
        for job in work.jobs {
            answers.push(job(&mut turn)?);
        }
        if work.sweep {
            delete::sweep(&mut turn)?;
            subscriptions::rules::sweep(&mut turn)?;
        }
        let (changed, deliveries) = (turn.changed, turn.deliveries);
        let count = "UPDATE tally SET commits = commits + 1 RETURNING commits";
        let commits: i64 = transaction.prepare_cached(count)?.query_row((), |row| row.get(0))?;
        transaction.commit()?;
        // Before anybody is answered: what is acknowledged is known to be there.
        self.marker.set(super::unsigned(commits));
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.touches.settled(&touches);
        for answer in answers {
            answer();
        }
        for stream in changed {
            self.shared.live.wake(stream);
        }
        for delivery in deliveries {
            let _ = self.deliveries.send(delivery);
        }
        Ok(())
    }
}

struct Work {
    jobs: Vec<Job>,
    sweep: bool,
    flush: bool,
}

fn reopened(file: &Path) -> Option<Connection> {
    schema::writer(file, true).ok()
}
