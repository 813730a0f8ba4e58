//! Streams that the program feeds.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::watch;

use super::{Bench, call};
use crate::{Feed, FeedError, Items, Options, Position, Source};

/// A feed of numbers, of which the first three are no longer kept, and those from a hundred on are told to nobody.
struct Numbers {
    head: watch::Sender<Position>,
    closed: Mutex<bool>,
}

const FORGOTTEN: u64 = 3;
const UNTOLD: u64 = 100;

impl Feed for Numbers {
    fn read(&self, after: Position, limit: usize) -> Result<Items, FeedError> {
        let (after, head) = (after.minor, self.head.borrow().minor);
        if after > 0 && after < FORGOTTEN {
            return Err(FeedError::Gone);
        }
        let mut page = Items { next: after.into(), ..Items::default() };
        let mut bytes = 0;
        for number in after.max(FORGOTTEN) + 1..=head {
            if number >= UNTOLD {
                page.next = number.into();
                continue;
            }
            let text = Bytes::from(number.to_string());
            if bytes > 0 && bytes + text.len() > limit {
                return Ok(page);
            }
            bytes += text.len();
            page.items.push((number.into(), text));
            page.next = number.into();
        }
        page.end = true;
        Ok(page)
    }

    fn head(&self) -> watch::Receiver<Position> {
        self.head.subscribe()
    }

    fn closed(&self) -> bool {
        *self.closed.lock().unwrap()
    }
}

impl Numbers {
    fn grow(&self, head: u64) {
        self.head.send_replace(head.into());
    }

    fn close(&self) {
        *self.closed.lock().unwrap() = true;
        self.head.send_modify(|_| {});
    }
}

struct Fed(Arc<Numbers>);

impl Source for Fed {
    fn find(&self, path: &str) -> Option<Arc<dyn Feed>> {
        (path == "events/all").then(|| self.0.clone() as Arc<dyn Feed>)
    }

    fn claims(&self, path: &str) -> bool {
        path.starts_with("events/")
    }
}

fn fed(head: u64) -> (Bench, Arc<Numbers>) {
    let numbers = Arc::new(Numbers { head: watch::Sender::new(head.into()), closed: Mutex::new(false) });
    let source: Arc<dyn Source> = Arc::new(Fed(numbers.clone()));
    (Bench::new(Options { source: Some(source), read_limit: 4, ..Options::default() }), numbers)
}

#[tokio::test]
async fn nobody_writes_what_the_program_feeds() {
    let (bench, _numbers) = fed(5);
    for path in ["events/all", "events/not-there"] {
        for method in ["PUT", "POST", "DELETE"] {
            let answer =
                call(&bench.streams, method, path, &[("content-type", "application/json")], "[1]").await;
            assert_eq!(
                (answer.status, answer.json()["code"].as_str()),
                (403, Some("READ_ONLY")),
                "{method} {path}"
            );
        }
    }
    let forked = [("stream-forked-from", "/v1/stream/events/all")];
    assert_eq!(call(&bench.streams, "PUT", "mine", &forked, "").await.status, 403);
    assert_eq!(bench.get("events/not-there").await.status, 404);
    assert_eq!(bench.put("other", "text/plain", "x").await.status, 201, "other paths are free");
}

#[tokio::test]
async fn a_feed_is_read_like_a_stream() {
    let (bench, numbers) = fed(9);
    let first = bench.get("events/all").await;
    assert_eq!((first.text(), first.header("stream-up-to-date")), ("[4,5,6,7]", ""));
    assert_eq!(first.header("content-type"), "application/json");
    let offset = first.header("stream-next-offset");
    assert_eq!(offset, "0000000000000000_0000000000000007");
    let rest = bench.get(&format!("events/all?offset={offset}")).await;
    assert_eq!((rest.text(), rest.header("stream-up-to-date")), ("[8,9]", "true"));
    let again =
        call(&bench.streams, "GET", "events/all", &[("if-none-match", first.header("etag"))], "").await;
    assert_eq!(again.status, 304);
    let head = call(&bench.streams, "HEAD", "events/all", &[], "").await;
    assert_eq!(head.header("stream-next-offset"), rest.header("stream-next-offset"));
    let now = bench.get("events/all?offset=now").await;
    assert_eq!((now.text(), now.header("stream-up-to-date")), ("[]", "true"));
    let forgotten = bench.get("events/all?offset=0000000000000000_0000000000000002").await;
    assert_eq!(forgotten.status, 410);

    numbers.close();
    let end = bench.get("events/all?offset=now").await;
    assert_eq!(end.header("stream-closed"), "true");
    assert_eq!(bench.get("events/all").await.header("stream-closed"), "", "the end is not reached yet");
}

#[tokio::test]
async fn who_waits_at_a_feed_is_woken() {
    let (bench, numbers) = fed(5);
    let offset = bench.get("events/all?offset=now").await.header("stream-next-offset").to_owned();
    let streams = bench.streams.clone();
    let query = format!("events/all?offset={offset}&live=long-poll");
    let polled = tokio::spawn(async move { call(&streams, "GET", &query, &[], "").await });
    let streams = bench.streams.clone();
    let followed =
        tokio::spawn(async move { call(&streams, "GET", "events/all?offset=-1&live=sse", &[], "").await });
    // Both hold a place when the feed grows.
    let inner = &bench.streams.0;
    while inner.places.available_permits() > inner.options.live_readers_max - 2 {
        tokio::task::yield_now().await;
    }
    numbers.grow(6);
    assert_eq!(polled.await.unwrap().text(), "[6]");
    numbers.close();
    let followed = followed.await.unwrap();
    assert!(
        followed.text().contains("6]") && followed.text().contains("\"streamClosed\":true"),
        "{}",
        followed.text()
    );
}

#[tokio::test]
async fn who_waits_at_a_feed_is_not_answered_when_it_moves_on_with_nothing_to_tell() {
    let (bench, numbers) = fed(99);
    let offset = bench.get("events/all?offset=now").await.header("stream-next-offset").to_owned();
    let streams = bench.streams.clone();
    let query = format!("events/all?offset={offset}&live=long-poll");
    let polled = tokio::spawn(async move { call(&streams, "GET", &query, &[], "").await });
    let inner = &bench.streams.0;
    while inner.places.available_permits() > inner.options.live_readers_max - 1 {
        tokio::task::yield_now().await;
    }
    numbers.grow(UNTOLD);
    numbers.close();
    let polled = polled.await.unwrap();
    assert_eq!((polled.status, polled.header("stream-closed")), (204, "true"));
    assert_eq!(polled.header("stream-next-offset"), "0000000000000000_0000000000000100");
}
