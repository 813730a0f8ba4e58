//! The one thread that writes: all work that waits goes into one transaction, with one sync.
//!
//! A reply to a write means durable: it is answered behind the commit. Readers are woken behind the commit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc as tokio_mpsc, oneshot};

use crate::problem::Problem;
use crate::storage::{Store, StoreError};
use crate::stored::{Fault, Shared, Transaction, delete, now, problem_of};
use crate::subscriptions::glob::Patterns;
use crate::subscriptions::keys::Keys;
use crate::subscriptions::rules;
use crate::subscriptions::turn::Turn;
use crate::subscriptions::webhook::Delivery;

/// Most pieces of work in one transaction, so that the first of them does not wait for ever.
const BATCH_MAX: usize = 512;
/// How often it is looked for what is over: streams, leases, and times to try again.
const SWEEP: Duration = Duration::from_millis(250);
/// How often reads that prolong a stream's life are put down.
const FLUSH: Duration = Duration::from_secs(5);

/// Runs in the transaction; what it returns runs behind the commit.
type Job = Box<dyn FnOnce(&mut Turn<'_>) -> Result<Answer, StoreError> + Send>;
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
            let worked = work(turn);
            let worked = worked.and_then(|value| Ok(rules::hear_changes(turn).map(|()| value)?));
            let result = match worked {
                Ok(value) => Ok(value),
                Err(Fault::Refused(problem)) => Err(problem),
                Err(Fault::Failed(error)) => {
                    let _ = answer.send(Err(problem_of(&error)));
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

pub fn start(
    store: Box<dyn Store>,
    shared: Arc<Shared>,
    keys: Keys,
    deliveries: tokio_mpsc::UnboundedSender<Delivery>,
) -> std::io::Result<(Jobs, JoinHandle<()>)> {
    let (jobs, waiting) = mpsc::channel();
    let writer = Writer { store, shared, keys, deliveries, patterns: Patterns::default() };
    let thread = std::thread::Builder::new().name("streams-writer".to_owned());
    let thread = thread.spawn(move || writer.run(&waiting))?;
    Ok((Jobs(jobs), thread))
}

struct Writer {
    store: Box<dyn Store>,
    shared: Arc<Shared>,
    keys: Keys,
    deliveries: tokio_mpsc::UnboundedSender<Delivery>,
    patterns: Patterns,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Job>) {
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
            let sweep = swept.elapsed() >= SWEEP;
            let flush = flushed.elapsed() >= FLUSH;
            let due = sweep && self.store.is_anything_due(now());
            if self.transact(Work { jobs, sweep: due, flush }).is_err() {
                // The answers are dropped, and whoever waits for them is told.
                self.patterns.forget();
            }
            if sweep {
                swept = Instant::now();
            }
            if flush {
                flushed = Instant::now();
            }
        }
        let _ = self.transact(Work { jobs: Vec::new(), sweep: false, flush: true });
    }

    fn transact(&mut self, work: Work) -> Result<(), StoreError> {
        let touches = if work.flush { self.shared.touches.all() } else { Default::default() };
        if work.jobs.is_empty() && !work.sweep && touches.is_empty() {
            return Ok(());
        }
        let Writer { store, shared, keys, patterns, .. } = self;
        let mut jobs = Some(work.jobs);
        let (mut answers, mut changes, mut deliveries) = (Vec::new(), Vec::new(), Vec::new());
        store.transact(&mut |tables| {
            let stored = Transaction { tables, now: now(), shared, changes: Vec::new() };
            let (keys, patterns) = (&*keys, &mut *patterns);
            let mut turn = Turn { stored, keys, patterns, deliveries: Vec::new(), heard: 0 };
            delete::prolong(&mut turn.stored, &touches)?;
            for job in jobs.take().unwrap_or_default() {
                answers.push(job(&mut turn)?);
            }
            if work.sweep {
                delete::sweep(&mut turn.stored)?;
                rules::hear_changes(&mut turn)?;
                rules::sweep(&mut turn)?;
            }
            (changes, deliveries) = (turn.stored.changes, turn.deliveries);
            Ok(())
        })?;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.touches.settled(&touches);
        for answer in answers {
            answer();
        }
        for change in changes {
            self.shared.live.wake(change.stream());
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
