//! GET and HEAD: existing data, long polls, and server-sent events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use crate::body::{Body, Events};
use crate::content::Kind;
use crate::lifetime::Lifetime;
use crate::live::Batch;
use crate::offset::{self, Position, Start};
use crate::page::Page;
use crate::problem::Problem;
use crate::reply::{self, set};
use crate::stored::visible;
use crate::target::{self, NoBatch, Target, Waiting};
use crate::{Inner, cursor, sse};

/// Pages of events that wait for a reader; behind them it is the reader's turn.
const EVENTS_WAITING_MAX: usize = 1;

/// The query of a read.
struct Query {
    start: Option<Start>,
    live: Live,
    cursor: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Live {
    No,
    LongPoll,
    Sse,
}

impl Query {
    fn parse(query: &str) -> Result<Query, Problem> {
        let mut parsed = Query { start: None, live: Live::No, cursor: None };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "offset" if parsed.start.is_some() => {
                    return Err(Problem::invalid("there is more than one offset in the query"));
                }
                "offset" => {
                    let start = Start::parse(&value).ok_or_else(|| {
                        Problem::new(
                            400,
                            "INVALID_OFFSET",
                            "the offset is malformed; use one that this server gave, -1 or now",
                        )
                    })?;
                    parsed.start = Some(start);
                }
                "live" => {
                    parsed.live = match &*value {
                        "long-poll" => Live::LongPoll,
                        "sse" => Live::Sse,
                        _ => return Err(Problem::invalid("live must be long-poll or sse")),
                    }
                }
                "cursor" => parsed.cursor = Some(value.into_owned()),
                _ => {} // Extensions of others are none of our business.
            }
        }
        if parsed.live != Live::No && parsed.start.is_none() {
            return Err(Problem::invalid("a live read needs an offset; -1 is the beginning"));
        }
        Ok(parsed)
    }

    fn cursor(&self) -> u64 {
        cursor::answer(self.cursor.as_deref(), SystemTime::now())
    }
}

pub async fn get<B>(
    inner: &Arc<Inner>,
    caller: &str,
    path: &str,
    request: &Request<B>,
) -> Result<Response<Body>, Problem> {
    let query = Query::parse(request.uri().query().unwrap_or_default())?;
    let target = target::find(inner, path)?;
    let start = query.start.unwrap_or(Start::At(offset::START.into()));
    match query.live {
        Live::No => catch_up(inner, caller, &target, start, request.headers()).await,
        Live::LongPoll => long_poll(inner, caller, &target, start, &query).await,
        Live::Sse => events(inner, caller, target, start, query).await,
    }
}

pub async fn head(inner: &Inner, path: &str) -> Result<Response<Body>, Problem> {
    let mut response = reply::status(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, "cache-control", "no-store");
    match target::find(inner, path)? {
        Target::Fed { feed, .. } => {
            set(headers, "content-type", "application/json");
            set(headers, "stream-next-offset", offset::text(*feed.head().borrow()));
            if feed.closed() {
                set(headers, "stream-closed", "true");
            }
        }
        Target::Stored { path } => {
            let meta = inner.store.read(move |tables, shared| visible(tables, shared, &path)).await?;
            set(headers, "content-type", &meta.content_type);
            set(headers, "stream-next-offset", offset::text(meta.tail));
            match &meta.lifetime {
                Lifetime::Unlimited => {}
                Lifetime::Idle(seconds) => set(headers, "stream-ttl", seconds.to_string()),
                Lifetime::Until { text, .. } => set(headers, "stream-expires-at", text),
            }
            if meta.closed {
                set(headers, "stream-closed", "true");
            }
        }
    }
    Ok(response)
}

async fn catch_up(
    inner: &Inner,
    caller: &str,
    target: &Target,
    start: Start,
    request: &HeaderMap,
) -> Result<Response<Body>, Problem> {
    let page = target.page(inner, start, inner.options.read_limit).await?;
    let tag = entity_tag(&page);
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if start != Start::Tail && known.is_some_and(|known| matches_tag(known, &tag)) {
        let mut response = page_response(&page, Bytes::new());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        set(response.headers_mut(), "etag", tag);
        set(response.headers_mut(), "cache-control", caching(&page));
        return Ok(response);
    }
    let batch = Batch::new(page, &inner.options.memory, caller).map_err(Problem::no_room)?;
    let mut response = page_response(&batch.page, batch.body());
    if start == Start::Tail {
        set(response.headers_mut(), "cache-control", "no-store");
        return Ok(response);
    }
    set(response.headers_mut(), "etag", tag);
    set(response.headers_mut(), "cache-control", caching(&batch.page));
    Ok(response)
}

/// What is full stays as it is, and may be kept for a while. What reaches the end is asked for anew, and costs nothing when
/// its tag is still the same: a cached end would hide what was appended since.
fn caching(page: &Page) -> &'static str {
    if page.up_to_date() || page.mortal {
        "private, no-cache"
    } else {
        "private, max-age=60, stale-while-revalidate=300"
    }
}

fn entity_tag(page: &Page) -> String {
    let closed = if page.closed() { ":c" } else { "" };
    format!("\"{}:{}:{}{closed}\"", page.stream, offset::text(page.from), offset::text(page.next))
}

fn matches_tag(known: &str, tag: &str) -> bool {
    known.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

fn page_response(page: &Page, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    let headers = response.headers_mut();
    set(headers, "content-type", &page.content_type);
    set(headers, "stream-next-offset", offset::text(page.next));
    if page.up_to_date() {
        set(headers, "stream-up-to-date", "true");
    }
    if page.closed() {
        set(headers, "stream-closed", "true");
    }
    response
}

/// A place among the readers that wait, for as long as it is held.
fn place(inner: &Inner) -> Result<OwnedSemaphorePermit, Problem> {
    inner.places.clone().try_acquire_owned().map_err(|_| {
        Problem::new(429, "TOO_MANY_READERS", "too many readers are waiting already; try again later")
            .header("retry-after", 5)
    })
}

async fn long_poll(
    inner: &Inner,
    caller: &str,
    target: &Target,
    start: Start,
    query: &Query,
) -> Result<Response<Body>, Problem> {
    let _place = place(inner)?;
    let deadline = Instant::now() + inner.options.long_poll;
    let mut stopping = inner.stopping.subscribe();
    let mut waiting = target.wait(inner).await?;
    let page = target.page(inner, start, inner.options.read_limit).await?;
    let mut batch = Arc::new(Batch::new(page, &inner.options.memory, caller).map_err(Problem::no_room)?);
    while batch.page.kept.is_empty() && !batch.page.closed() {
        tokio::select! {
            () = waiting.grown() => {}
            () = tokio::time::sleep_until(deadline) => break,
            // Answered like one that has waited in vain: whoever asked comes back.
            _ = stopping.wait_for(|stopping| *stopping) => break,
        }
        // A feed may have moved on though there is nothing to tell.
        let position = batch.page.next;
        batch = target.next(inner, &waiting, position, caller).await?;
    }

    let page = &batch.page;
    let mut response = if !page.kept.is_empty() {
        let mut response = page_response(page, batch.body());
        set(response.headers_mut(), "etag", entity_tag(page));
        response
    } else {
        let mut response = page_response(page, Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().remove(header::CONTENT_TYPE);
        response
    };
    if !page.closed() {
        set(response.headers_mut(), "stream-cursor", query.cursor().to_string());
    }
    set(response.headers_mut(), "cache-control", "no-store");
    Ok(response)
}

async fn events(
    inner: &Arc<Inner>,
    caller: &str,
    target: Target,
    start: Start,
    query: Query,
) -> Result<Response<Body>, Problem> {
    let place = place(inner)?;
    let waiting = target.wait(inner).await?;
    let first = target.page(inner, start, inner.options.event_limit).await?;
    let binary = first.kind() == Kind::Binary;
    let first = Batch::new(first, &inner.options.memory, caller).map_err(Problem::no_room)?;

    let (events, body) = mpsc::channel(EVENTS_WAITING_MAX);
    let cut = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        inner: inner.clone(),
        caller: caller.to_owned(),
        target,
        waiting,
        query,
        events,
        sent: Arc::new(Semaphore::new(1)),
        cut: cut.clone(),
        _place: place,
    };
    tokio::spawn(reader.run(Arc::new(first)));

    let mut response = Response::new(Body::events(body, cut));
    let headers = response.headers_mut();
    set(headers, "content-type", "text/event-stream");
    set(headers, "cache-control", "no-cache");
    if binary {
        set(headers, "stream-sse-data-encoding", "base64");
    }
    Ok(response)
}

/// One reader of events.
struct Reader {
    inner: Arc<Inner>,
    caller: String,
    target: Target,
    waiting: Waiting,
    query: Query,
    events: mpsc::Sender<Events>,
    /// Free when the last data event has left: the next is not read before that.
    sent: Arc<Semaphore>,
    cut: Arc<AtomicBool>,
    _place: OwnedSemaphorePermit,
}

/// The reader is gone, was cut off, or is to come back later.
struct Gone;

impl Reader {
    async fn run(mut self, first: Arc<Batch>) {
        let deadline = Instant::now() + self.inner.options.sse_close_after;
        let mut stopping = self.inner.stopping.subscribe();
        let mut batch = first;
        let mut told = false;
        loop {
            let news = !batch.page.kept.is_empty() || batch.page.closed() || !told;
            if news && self.send(&batch).await.is_err() {
                return;
            }
            told = true;
            if batch.page.closed() || *stopping.borrow() {
                return;
            }
            let (position, up_to_date) = (batch.page.next, batch.page.up_to_date());
            // What was sent is held by the connection alone, and only until it has left.
            drop(batch);
            if up_to_date {
                tokio::select! {
                    () = self.waiting.grown() => {}
                    () = tokio::time::sleep_until(deadline) => return,
                    () = self.events.closed() => return,
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                }
            }
            match self.next(position, up_to_date).await {
                Ok(next) => batch = next,
                Err(Gone) => return,
            }
        }
    }

    /// What follows, as soon as what was sent before has left and there is room for it.
    async fn next(&self, position: Position, shared: bool) -> Result<Arc<Batch>, Gone> {
        let waited_for = Instant::now() + self.inner.options.stall;
        self.in_time(waited_for, async { drop(self.sent.acquire().await) }).await?;
        loop {
            let freed = self.inner.options.memory.freed();
            let next = if shared {
                self.target.next(&self.inner, &self.waiting, position, &self.caller).await
            } else {
                // On the way to the end everyone is elsewhere; there is nothing to share.
                let limit = self.inner.options.event_limit;
                let page = self.target.page(&self.inner, Start::At(position), limit).await;
                page.map_err(NoBatch::from).and_then(|page| {
                    let batch = Batch::new(page, &self.inner.options.memory, &self.caller)?;
                    Ok(Arc::new(batch))
                })
            };
            match next {
                Ok(batch) => return Ok(batch),
                Err(NoBatch::NoRoom(_)) => self.in_time(waited_for, freed).await?,
                // The stream is gone: the reader comes back and is told why.
                Err(NoBatch::Problem(_)) => return Err(Gone),
            }
        }
    }

    /// Gives the connection a page: its data, if there are any, and where it ends.
    async fn send(&self, batch: &Batch) -> Result<(), Gone> {
        let waited_for = Instant::now() + self.inner.options.stall;
        let data = if batch.page.kept.is_empty() {
            None
        } else {
            let sent = self.in_time(waited_for, self.sent.clone().acquire_owned()).await?;
            Some(batch.holding(batch.event(), sent))
        };
        let control = sse::control(sse::Control {
            next: batch.page.next,
            cursor: self.query.cursor(),
            up_to_date: batch.page.up_to_date(),
            closed: batch.page.closed(),
        });
        let waited_for = Instant::now() + self.inner.options.stall;
        self.in_time(waited_for, self.events.send(Events { data, control })).await?.map_err(|_| Gone)
    }

    /// A reader that takes nothing for too long loses its place.
    async fn in_time<T>(&self, until: Instant, waited: impl Future<Output = T>) -> Result<T, Gone> {
        tokio::select! {
            value = waited => Ok(value),
            () = self.events.closed() => Err(Gone),
            () = tokio::time::sleep_until(until) => {
                self.cut.store(true, Ordering::Release);
                Err(Gone)
            }
        }
    }
}
