//! The log as it grows, as server-sent events: each record has its number as id, so a reader goes on where it was.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::{Shared, answer, text};
use crate::api::types::history::Record;
use crate::api::types::{Cursor, Limit, Page, Paging};
use crate::api::{Problem, Request};

/// A reader that is slower than this many records behind is not read ahead for.
const RECORDS_AHEAD: usize = 2 * PAGE;
/// Records in a page.
const PAGE: usize = 100;
/// Something is said this often, so that both ends know that the other is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// From `after`, or after the `Last-Event-ID` of a reader that comes back.
pub(super) fn events(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let asked: Paging = serde_urlencoded::from_str(&request.query)
        .map_err(|error| Problem::bad(format!("the query is not right: {error}")))?;
    let after = match text(headers, "last-event-id")? {
        Some(last) => {
            last.parse().map_err(|_| Problem::bad("`Last-Event-ID` must be the number of a record"))?
        }
        None => Cursor::number(asked.after),
    };
    let Ok(place) = shared.waiting.clone().try_acquire_owned() else {
        return Err(Problem::new(503, "TOO_MANY_READERS", "too many event streams are open")
            .hint("close one, or try again later"));
    };
    let (send, mut receive) = mpsc::channel(RECORDS_AHEAD);
    let shared = shared.clone();
    tokio::spawn(async move {
        let _place = place;
        follow(shared, request, after, send).await;
    });
    let events = stream::poll_fn(move |context| receive.poll_recv(context));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

type Sender = mpsc::Sender<Result<Event, Infallible>>;

/// Ends when the reader has gone, the owner stops, or the log cannot be read.
async fn follow(shared: Arc<Shared>, request: Request, mut after: u64, send: Sender) {
    let mut head = shared.served.head.clone();
    let mut stopping = shared.stopping.clone();
    loop {
        // Looked at before the log is: what comes in between changes it again.
        head.mark_unchanged();
        let paging = Paging { after: Some(Cursor(after)), limit: Some(Limit(PAGE)) };
        let query = serde_urlencoded::to_string(paging).unwrap_or_default();
        let asked = Request { query, ..request.clone() };
        let asking = shared.clone();
        let page = tokio::task::spawn_blocking(move || answer(&asking.served, &asked)).await;
        let Ok(page) = page else { return };
        let Ok(Page::<Record> { items, .. }) = serde_json::from_value(page.body.clone()) else {
            let _ = send.send(Ok(event("problem", None, &page.body))).await;
            return;
        };
        if items.is_empty() {
            tokio::select! {
                changed = head.changed() => if changed.is_err() { return },
                () = over(&mut stopping) => return,
                () = send.closed() => return,
            }
        }
        for record in items {
            after = record.seq;
            tokio::select! {
                sent = send.send(Ok(event("record", Some(after), &record))) => if sent.is_err() { return },
                () = over(&mut stopping) => return,
            }
        }
    }
}

async fn over(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopped| *stopped).await;
}

fn event(kind: &str, number: Option<u64>, data: &impl Serialize) -> Event {
    let event = number.map_or_else(Event::default, |number| Event::default().id(number.to_string()));
    // There is nothing in it that JSON could not say.
    event.event(kind).data(serde_json::to_string(data).unwrap_or_default())
}
