//! The log as it grows, as server-sent events: each record has its number as id, so a reader goes on where it was.
//!
//! A record is put into words once for all readers, and the latest are kept ready. A reader holds nothing but its place:
//! one that is slow falls behind and reads from the log, and whoever is fast does not wait for it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::types::Cursor;
use crate::api::types::history::EventsQuery;
use crate::api::{Problem, Project, record_view};

/// Records that are read from the log at once.
const PAGE: usize = 100;
/// So much is kept ready for those who follow closely.
const READY_BYTES_MAX: usize = 4 << 20;
/// So much is handed over at once to one who has something to catch up with.
const HANDED_BYTES_MAX: usize = 64 << 10;
/// Something is said this often, so that a reader knows that it is live, and who may read no longer is found out.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What is known of the log's end.
pub struct Events {
    project: Arc<dyn Project + Send + Sync>,
    ready: Mutex<Ready>,
    /// The last record that is ready.
    end: watch::Sender<u64>,
    readers: AtomicUsize,
}

/// The latest records, in the form in which they are sent.
#[derive(Default)]
struct Ready {
    frames: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// All records after this one are among them.
    after: u64,
}

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
        let events = Arc::new(Events { project, ready, end, readers: AtomicUsize::new(0) });
        // It must not keep alive what it waits for.
        tokio::spawn(keep_ready(Arc::downgrade(&events), head));
        events
    }

    /// Sends what comes after `after` until the reader goes, the owner stops or `may` says no.
    pub fn follow(
        self: &Arc<Self>,
        after: u64,
        stopping: watch::Receiver<bool>,
        may: impl Fn() -> bool + Send + 'static,
    ) -> Response {
        // The first one says that the reader has seen all that there was.
        let beats = tokio::time::interval_at(Instant::now(), HEARTBEAT);
        self.readers.fetch_add(1, Ordering::Relaxed);
        let reader = Reader {
            events: self.clone(),
            after,
            end: self.end.subscribe(),
            stopping,
            beats,
            may,
            over: false,
        };
        let frames = stream::unfold(reader, |mut reader| async move {
            let frame = reader.next().await?;
            Some((Ok::<_, Infallible>(frame), reader))
        });
        let mut response = Response::new(Body::from_stream(frames));
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
        self.readers.load(Ordering::Relaxed)
    }

    fn next(&self, after: u64) -> Next {
        let ready = self.lock();
        if after < ready.after {
            return Next::Behind;
        }
        let first = ready.frames.partition_point(|(seq, _)| *seq <= after);
        let mut wanted = ready.frames.range(first..);
        let Some((seq, frame)) = wanted.next() else { return Next::Nothing };
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
    fn page(&self, after: u64) -> Result<Vec<(u64, Bytes)>, Problem> {
        let mut page = Vec::new();
        self.project.scan(after, &mut |record| {
            page.push((record.seq, frame("record", Some(record.seq), &record_view(record))));
            if page.len() < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(page)
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
        while after < seen {
            let reading = known.clone();
            let page = tokio::task::spawn_blocking(move || reading.page(after)).await;
            // What cannot be read now is read by each for itself, and they are told what is wrong.
            let Ok(Ok(page)) = page else { break };
            let Some((last, _)) = page.last() else { break };
            after = *last;
            known.lock().add(page);
            known.end.send_replace(after);
        }
        drop(known);
        if head.changed().await.is_err() {
            return;
        }
    }
}

impl Ready {
    fn add(&mut self, page: Vec<(u64, Bytes)>) {
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
    }
}

impl<M> Drop for Reader<M> {
    fn drop(&mut self) {
        self.events.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One who follows.
struct Reader<M> {
    events: Arc<Events>,
    after: u64,
    end: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    beats: tokio::time::Interval,
    may: M,
    /// It was told that the log cannot be read.
    over: bool,
}

impl<M: Fn() -> bool> Reader<M> {
    /// `None`: there is nothing more for this one.
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        loop {
            // Looked at before the frames are: what comes in between changes it again.
            self.end.mark_unchanged();
            match self.events.next(self.after) {
                Next::Frames(frames, last) => {
                    self.after = last;
                    return Some(frames);
                }
                Next::Behind => return self.caught_up().await,
                Next::Nothing => {}
            }
            tokio::select! {
                changed = self.end.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stopped| *stopped) => return None,
                _ = self.beats.tick() => {
                    if !(self.may)() {
                        return None;
                    }
                    let beat = Beat { seq: *self.end.borrow(), at: crate::api::time(runtime::clock::now()) };
                    return Some(frame("heartbeat", None, &beat));
                }
            }
        }
    }

    /// The next part of what was written before.
    async fn caught_up(&mut self) -> Option<Bytes> {
        let (events, after) = (self.events.clone(), self.after);
        let page = tokio::task::spawn_blocking(move || events.page(after)).await.ok()?;
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
struct Beat {
    seq: u64,
    at: String,
}

/// From `after` in the query, or after the `Last-Event-ID` of a reader that comes back.
pub(super) fn after(query: &str, last: Option<String>) -> Result<u64, Problem> {
    let asked: EventsQuery = serde_urlencoded::from_str(query)
        .map_err(|error| Problem::bad(format!("the query is not right: {error}")))?;
    match last {
        Some(last) => {
            last.parse().map_err(|_| Problem::bad("`Last-Event-ID` must be the number of a record"))
        }
        None => Ok(Cursor::number(asked.after)),
    }
}

fn frame(kind: &str, number: Option<u64>, data: &impl Serialize) -> Bytes {
    let number = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
    // There is nothing in it that JSON could not say, and JSON has no line ends of its own.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{number}event: {kind}\ndata: {data}\n\n").into()
}
