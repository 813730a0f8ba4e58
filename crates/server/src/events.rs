//! The log as it grows, as server-sent events: each record has its number as id, so a reader goes on where it was.
//!
//! A record is put into words once for all readers, and the latest are kept ready. A reader holds nothing but its position:
//! one that is slow falls behind and reads from the log, and whoever is fast does not wait for it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::{HeaderValue, header};
use hyper::body::{Bytes, Frame};
use log::Record;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval};

use crate::response::{Body, Response};
use api::types::Cursor;
use api::types::history::EventsQuery;
use api::{Problem, Project, record_view};

/// Records that are read from the log at once.
const PAGE: usize = 100;
/// So much is kept ready for those who follow closely.
const READY_BYTES_MAX: usize = 4 << 20;
/// So much is handed over at once to one who has something to catch up with.
const HANDED_BYTES_MAX: usize = 32 << 10;
/// Something is said this often, so that a reader knows that it is live.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The last that a reader is sent where the owner stops: it is to come back after a second.
pub(super) const COME_BACK: &[u8] = b"retry: 1000\n\n";

/// What is known of the log's end.
pub struct Events {
    project: Arc<dyn Project + Send + Sync>,
    ready: Mutex<Ready>,
    /// The last record that is ready.
    end: watch::Sender<u64>,
}

/// The latest records, in the form in which they are sent.
#[derive(Default)]
struct Ready {
    frames: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// All records after this one are among them.
    after: u64,
    waiting: Waiting,
}

/// A position for each reader. Whoever has read everything waits there, and all of them are woken at once.
#[derive(Default)]
struct Waiting {
    projects: Vec<Option<Waker>>,
    free: Vec<usize>,
}

/// A page of the log, each record with its number.
type Page = Vec<(u64, Bytes)>;

/// What there is for a reader.
enum Next {
    Frames(Bytes, u64),
    /// It must be read from the log.
    Behind,
    Nothing,
}

impl Events {
    /// Follows the log for as long as its owner lives.
    pub fn start(project: Arc<dyn Project + Send + Sync>, head: watch::Receiver<u64>) -> Arc<Events> {
        let after = *head.borrow();
        let ready = Mutex::new(Ready { after, ..Ready::default() });
        let end = watch::Sender::new(after);
        let events = Arc::new(Events { project, ready, end });
        // It must not keep alive what it waits for.
        tokio::spawn(keep_ready(Arc::downgrade(&events), head));
        events
    }

    /// Sends what comes after `after` until the reader goes or the owner stops.
    pub fn follow(self: &Arc<Self>, after: u64, stopping: watch::Receiver<bool>) -> Response {
        let reader = Reader {
            events: self.clone(),
            project: self.lock().waiting.join(),
            after,
            catching_up: None,
            stopping,
            // The first one says that the reader has seen all that there was.
            beats: tokio::time::interval_at(Instant::now(), HEARTBEAT),
            over: false,
        };
        let mut response = Response::new(Body::new(reader));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    /// The last record that can be sent, as it changes.
    pub fn ready(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// How many follow.
    pub fn readers(&self) -> usize {
        self.lock().waiting.readers()
    }

    /// Where there is nothing, whoever waits at this position is woken when there is.
    fn next(&self, after: u64, project: usize, waker: &Waker) -> Next {
        let mut ready = self.lock();
        if after < ready.after {
            return Next::Behind;
        }
        let first = ready.frames.partition_point(|(seq, _)| *seq <= after);
        let mut wanted = ready.frames.range(first..);
        let Some((seq, frame)) = wanted.next() else {
            ready.waiting.wait(project, waker);
            return Next::Nothing;
        };
        let mut more = wanted.peekable();
        if more.peek().is_none() {
            return Next::Frames(frame.clone(), *seq);
        }
        let (mut last, mut all) = (*seq, frame.to_vec());
        for (seq, frame) in more {
            if all.len() + frame.len() > HANDED_BYTES_MAX {
                break;
            }
            all.extend_from_slice(frame);
            last = *seq;
        }
        Next::Frames(all.into(), last)
    }

    /// A page of the log, in the form in which it is sent. It may block.
    fn page(&self, after: u64) -> Result<Page, Problem> {
        let _turn = api::turns::take();
        let (mut page, mut bytes) = (Vec::new(), 0);
        self.project.scan(after, &mut |record| {
            let (seq, frame) = said(record);
            bytes += frame.len();
            page.push((seq, frame));
            let full = page.len() >= PAGE || bytes >= HANDED_BYTES_MAX;
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(page)
    }

    /// The same without blocking, where what is wanted was written just now.
    fn latest_page(&self, after: u64) -> Option<Page> {
        Some(self.project.latest(after, PAGE)?.iter().map(said).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts what is written into words, as soon as it is on disk.
async fn keep_ready(events: std::sync::Weak<Events>, mut head: watch::Receiver<u64>) {
    loop {
        let seen = *head.borrow_and_update();
        let Some(known) = events.upgrade() else { return };
        let mut after = *known.end.borrow();
        if known.lock().skip_to(seen) {
            known.end.send_replace(seen);
            after = seen;
        }
        while after < seen {
            let page = match known.latest_page(after) {
                Some(page) => page,
                None => {
                    let reading = known.clone();
                    let page = tokio::task::spawn_blocking(move || reading.page(after)).await;
                    // What cannot be read now is read by each for itself, and they are told what is wrong.
                    let Ok(Ok(page)) = page else { break };
                    page
                }
            };
            let Some((last, _)) = page.last() else { break };
            after = *last;
            let waiting = known.lock().add(page);
            known.end.send_replace(after);
            waiting.into_iter().for_each(Waker::wake);
        }
        drop(known);
        if head.changed().await.is_err() {
            return;
        }
    }
}

impl Ready {
    /// Where nobody reads, nothing is put into words: whoever comes finds it in the log.
    fn skip_to(&mut self, seq: u64) -> bool {
        let nobody = self.waiting.readers() == 0;
        if nobody {
            *self = Ready { after: seq, ..Ready::default() };
        }
        nobody
    }

    /// Who waited for it is to be woken.
    fn add(&mut self, page: Page) -> Vec<Waker> {
        for (seq, frame) in page {
            self.bytes += frame.len();
            self.frames.push_back((seq, frame));
        }
        while self.bytes > READY_BYTES_MAX
            && let Some((seq, frame)) = self.frames.pop_front()
        {
            self.bytes -= frame.len();
            self.after = seq;
        }
        self.waiting.projects.iter_mut().filter_map(Option::take).collect()
    }
}

impl Waiting {
    fn readers(&self) -> usize {
        self.projects.len() - self.free.len()
    }

    fn join(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.projects.push(None);
            self.projects.len() - 1
        })
    }

    fn leave(&mut self, project: usize) {
        self.projects[project] = None;
        self.free.push(project);
    }

    fn wait(&mut self, project: usize, waker: &Waker) {
        match &mut self.projects[project] {
            Some(known) => known.clone_from(waker),
            free => *free = Some(waker.clone()),
        }
    }
}

/// One who follows: the body of its response.
struct Reader {
    events: Arc<Events>,
    /// Where it waits.
    project: usize,
    after: u64,
    /// It is behind, and this is being read for it.
    catching_up: Option<JoinHandle<Result<Page, Problem>>>,
    stopping: watch::Receiver<bool>,
    beats: Interval,
    /// It was told that the log cannot be read, or that the owner stops.
    over: bool,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.events.lock().waiting.leave(self.project);
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_next(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Reader {
    /// `None`: there is nothing more for this one.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Whoever holds the connection waits for this too, and asks here again.
        if self.over {
            return Poll::Ready(None);
        }
        if *self.stopping.borrow() {
            self.over = true;
            return Poll::Ready(Some(Bytes::from_static(COME_BACK)));
        }
        loop {
            if let Some(reading) = &mut self.catching_up {
                let page = ready!(Pin::new(reading).poll(context));
                self.catching_up = None;
                return Poll::Ready(page.ok().and_then(|page| self.caught_up(page)));
            }
            match self.events.next(self.after, self.project, context.waker()) {
                Next::Frames(frames, last) => {
                    self.after = last;
                    return Poll::Ready(Some(frames));
                }
                Next::Behind => {
                    let (events, after) = (self.events.clone(), self.after);
                    self.catching_up = Some(tokio::task::spawn_blocking(move || events.page(after)));
                }
                Next::Nothing => break,
            }
        }
        ready!(self.beats.poll_tick(context));
        let beat = Heartbeat { seq: *self.events.end.borrow(), at: api::time(base::clock::now()) };
        Poll::Ready(Some(frame("heartbeat", None, &beat)))
    }

    /// The next part of what was written before.
    fn caught_up(&mut self, page: Result<Page, Problem>) -> Option<Bytes> {
        match page {
            Ok(page) => {
                self.after = page.last()?.0;
                let frames: Vec<u8> = page.iter().flat_map(|(_, frame)| frame.iter().copied()).collect();
                Some(frames.into())
            }
            Err(problem) => {
                self.over = true;
                Some(frame("problem", None, &problem.document()))
            }
        }
    }
}

/// That the reader is live, and where the log ends.
#[derive(Serialize)]
pub(super) struct Heartbeat {
    pub seq: u64,
    pub at: String,
}

/// From `after` in the query, or after the `Last-Event-ID` of a reader that comes back.
pub(super) fn after(query: &str, last: Option<String>) -> Result<u64, Problem> {
    let asked: EventsQuery =
        serde_urlencoded::from_str(query).map_err(|error| Problem::bad(format!("invalid query: {error}")))?;
    match last {
        Some(last) => {
            last.parse().map_err(|_| Problem::bad("`Last-Event-ID` must be the number of a record"))
        }
        None => Ok(Cursor::number(asked.after)),
    }
}

/// A record in the form in which it is sent, with its number.
fn said(record: &Record) -> (u64, Bytes) {
    (record.seq, frame("record", Some(record.seq), &record_view(record)))
}

pub(super) fn frame(kind: &str, number: Option<u64>, data: &impl Serialize) -> Bytes {
    let number = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
    // There is nothing in it that JSON could not say, and JSON has no line ends of its own.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{number}event: {kind}\ndata: {data}\n\n").into()
}
