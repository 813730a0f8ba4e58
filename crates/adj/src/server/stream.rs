//! The log as it grows, as server-sent events: each record has its number as id, so a reader goes on where it was.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{Shared, answer, text};
use crate::api::{Problem, Request};

/// A reader that is slower than this many pages behind is not read ahead for.
const PAGES_AHEAD: usize = 2;
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
    let after = match text(headers, "last-event-id")? {
        Some(last) => Some(last),
        None => request.query.iter().find(|(name, _)| name == "after").map(|(_, value)| value.clone()),
    };
    let after = after.map_or(Ok(0), |after| after.parse::<u64>());
    let after = after.map_err(|_| Problem::bad("`after` must be the number of a record"))?;
    let Ok(place) = shared.waiting.clone().try_acquire_owned() else {
        return Err(
            Problem::new(503, "TOO_MANY_READERS", "as many read the log as may").hint("try again later")
        );
    };
    let (send, receive) = mpsc::channel(PAGES_AHEAD);
    let shared = shared.clone();
    tokio::spawn(async move {
        let _place = place;
        follow(shared, request, after, send).await;
    });
    let mut response = Response::new(Body::new(Pages(receive)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Ends when the reader has gone, the owner stops, or the log cannot be read.
async fn follow(shared: Arc<Shared>, request: Request, mut after: u64, send: mpsc::Sender<Bytes>) {
    let mut head = shared.served.head.clone();
    let mut stopping = shared.stopping.clone();
    loop {
        // Looked at before the log is: what comes in between changes it again.
        head.mark_unchanged();
        let query = vec![("after".to_owned(), after.to_string()), ("limit".to_owned(), PAGE.to_string())];
        let asked = Request { query, ..request.clone() };
        let asking = shared.clone();
        let page = tokio::task::spawn_blocking(move || answer(&asking.served, &asked)).await;
        let Ok(page) = page else { return };
        let items = page.body["items"].as_array().filter(|_| page.status == 200);
        let Some(items) = items else {
            let _ = send.send(event("problem", None, &page.body)).await;
            return;
        };
        if let Some(last) = items.last().and_then(|item| item["seq"].as_u64()) {
            after = last;
            let text: Vec<u8> = items.iter().flat_map(|item| event("record", Some(item), item)).collect();
            tokio::select! {
                sent = send.send(text.into()) => if sent.is_err() { return },
                () = over(&mut stopping) => return,
            }
            continue;
        }
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return },
            () = over(&mut stopping) => return,
            () = send.closed() => return,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                if send.send(Bytes::from_static(b":\n\n")).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn over(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopped| *stopped).await;
}

/// JSON has no line breaks of its own, so it is one line of data.
fn event(kind: &str, numbered: Option<&Value>, data: &Value) -> Bytes {
    let id = numbered.map(|item| format!("id: {}\n", item["seq"])).unwrap_or_default();
    Bytes::from(format!("{id}event: {kind}\ndata: {data}\n\n"))
}

struct Pages(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pages {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|page| page.map(|page| Ok(Frame::data(page))))
    }
}
