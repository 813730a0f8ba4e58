//! Readers that wait: they share what they get, they have places, and a slow one harms nobody.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;

use super::{Bench, open};
use crate::target::{self, Target};
use crate::{Access, Body, Cut, Options, Stall};

async fn events(bench: &Bench, query: &str) -> http::Response<Body> {
    open(Access::ALL, &bench.streams, "GET", query, &[], "").await
}

/// Reads frames until one has `text` in it.
async fn read_until(body: &mut Body, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let frame = body.frame().await.expect("the events ended").expect("the events broke off");
        read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    read
}

#[tokio::test]
async fn a_slow_reader_is_cut_off_and_the_others_get_everything() {
    let stall = Duration::from_millis(50);
    let bench = Bench::new(Options { stall, live_readers_max: 2, ..Options::default() });
    bench.put("a", "text/plain", "start").await;
    let mut slow = events(&bench, "a?offset=-1&live=sse").await.into_body();
    let mut quick = events(&bench, "a?offset=-1&live=sse").await.into_body();
    read_until(&mut quick, "upToDate").await;
    for number in 0..20 {
        bench.post("a", "text/plain", format!("number {number}!")).await;
        read_until(&mut quick, &format!("number {number}!")).await;
    }
    // The slow one took nothing; when its time is over, its place is free again.
    let freed = bench.streams.0.places.clone().acquire_owned().await.unwrap();
    let broken = loop {
        match slow.frame().await {
            Some(Ok(_)) => {}
            Some(Err(Cut)) => break true,
            None => break false,
        }
    };
    assert!(broken, "the slow reader took the end of its connection for the end of the events");
    drop(freed);
    bench.post("a", "text/plain", "the last").await;
    read_until(&mut quick, "the last").await;
}

/// The connection writes what is ready at once, so it sends both in one piece.
#[tokio::test]
async fn the_control_event_is_ready_when_its_data_event_is_taken() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "first").await;
    let mut body = events(&bench, "a?offset=-1&live=sse").await.into_body();
    for text in ["first", "second"] {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data, format!("event: data\ndata:{text}\n\n"));
        let Poll::Ready(control) = pin!(body.frame()).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nothing is ready after the data event of {text}");
        };
        let control = control.unwrap().unwrap().into_data().unwrap();
        assert!(control.starts_with(b"event: control\n"), "{control:?}");
        bench.post("a", "text/plain", "second").await;
    }
}

#[tokio::test]
async fn a_connection_breaks_when_its_other_side_takes_nothing() {
    let (ours, _theirs) = tokio::io::duplex(16);
    let mut ours = Stall::new(ours, Duration::from_millis(20));
    let error = ours.write_all(&[0; 1024]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_reader_without_a_place_is_told_to_come_later() {
    let bench = Bench::new(Options { live_readers_max: 1, ..Options::default() });
    bench.put("a", "text/plain", "").await;
    let first = events(&bench, "a?offset=now&live=sse").await;
    for query in ["a?offset=now&live=sse", "a?offset=now&live=long-poll"] {
        let answer = super::call(&bench.streams, "GET", query, &[], "").await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, "5"), "{query}");
    }
    assert_eq!(bench.get("a").await.status, 200, "who does not wait needs no place");
    drop(first);
    let _freed = bench.streams.0.places.clone().acquire_owned().await.unwrap();
}

#[tokio::test]
async fn what_comes_is_read_and_formed_once_for_all_who_wait() {
    let bench = Bench::new(Options::default());
    bench.put("a", "application/json", "[1]").await;
    let inner = &bench.streams.0;
    let target = target::find(inner, "a").unwrap();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(target.wait(inner).await.unwrap());
    }
    let tail = target.page(inner, crate::offset::Start::Tail, 1_000).await.unwrap().next;
    bench.post("a", "application/json", "[2,3]").await;
    let mut batches = Vec::new();
    for place in &mut waiting {
        place.grown().await;
        batches.push(target.next(inner, place, tail, "").await.unwrap());
    }
    assert_eq!(batches[0].body(), "[2,3]");
    for batch in &batches[1..] {
        assert!(Arc::ptr_eq(batch, &batches[0]));
        assert_eq!(batch.event().as_ptr(), batches[0].event().as_ptr());
    }
    assert!(matches!(target, Target::Stored { .. }));
}

#[tokio::test]
async fn a_thousand_readers_wait_and_all_are_woken() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "").await;
    let mut bodies = Vec::new();
    for _ in 0..1000 {
        bodies.push(events(&bench, "a?offset=now&live=sse").await.into_body());
    }
    for body in &mut bodies {
        read_until(body, "upToDate").await;
    }
    bench.post("a", "text/plain", "for all of you").await;
    for body in &mut bodies {
        read_until(body, "for all of you").await;
    }
}

#[tokio::test]
async fn events_end_after_their_time_and_a_long_poll_too() {
    let short = Duration::from_millis(50);
    let bench = Bench::new(Options { sse_close_after: short, long_poll: short, ..Options::default() });
    bench.put("a", "text/plain", "x").await;
    let answer = bench.get("a?offset=-1&live=sse").await;
    assert!(answer.text().ends_with("\n\n"));
    let answer = bench.get("a?offset=now&live=long-poll").await;
    assert_eq!((answer.status, answer.header("stream-up-to-date")), (204, "true"));
    assert!(!answer.header("stream-cursor").is_empty());
}

#[tokio::test]
async fn readers_of_a_deleted_stream_are_let_go() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "x").await;
    let mut body = events(&bench, "a?offset=-1&live=sse").await.into_body();
    read_until(&mut body, "upToDate").await;
    let streams = bench.streams.clone();
    let polled = tokio::spawn(async move {
        super::call(&streams, "GET", "a?offset=now&live=long-poll", &[], "").await.status
    });
    let inner = &bench.streams.0;
    // Both places are taken before the stream goes.
    while inner.places.available_permits() > inner.options.live_readers_max - 2 {
        tokio::task::yield_now().await;
    }
    super::call(&bench.streams, "DELETE", "a", &[], "").await;
    assert!(body.frame().await.is_none());
    assert_eq!(polled.await.unwrap(), 404);
}
