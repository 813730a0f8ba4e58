//! Appends that wait together are written together.

use std::sync::mpsc;

use super::Bench;
use crate::Options;
use crate::stored::append::{self, Append};

const APPENDS: u64 = 200;

#[tokio::test]
async fn appends_that_wait_share_one_commit() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "").await;
    let before = bench.streams.commits();

    // The writer is held in a transaction of its own until all appends wait for the next one.
    let (open_gate, gate) = mpsc::channel::<()>();
    let mut waiting = tokio::task::JoinSet::new();
    let streams = bench.streams.clone();
    waiting.spawn(async move {
        streams.0.store.write(move |_| Ok(gate.recv().is_ok())).await.unwrap();
    });
    for _ in 0..APPENDS {
        let streams = bench.streams.clone();
        waiting.spawn(async move {
            let asked = Append {
                path: "a".to_owned(),
                content_type: Some("text/plain".to_owned()),
                data: Some(Ok(b"x".to_vec())),
                close: false,
                seq: None,
                producer: None,
            };
            streams.0.store.write(move |turn| append::append(&mut turn.stored, asked)).await.unwrap();
        });
    }
    // On this runtime of one thread every task has handed its work over when this one runs again.
    tokio::task::yield_now().await;
    open_gate.send(()).unwrap();
    waiting.join_all().await;

    let commits = bench.streams.commits() - before;
    assert!(commits <= 3, "{APPENDS} appends took {commits} commits");
    assert_eq!(bench.get("a").await.body.len() as u64, APPENDS);
}

#[tokio::test]
async fn reading_commits_nothing() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "x").await;
    let before = bench.streams.commits();
    for _ in 0..20 {
        bench.get("a").await;
        super::call(&bench.streams, "HEAD", "a", &[], "").await;
    }
    assert_eq!(bench.streams.commits(), before);
}

#[tokio::test]
async fn a_refused_append_does_not_harm_those_beside_it() {
    let bench = Bench::new(Options::default());
    bench.put("a", "application/json", "").await;
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..50 {
        let streams = bench.streams.clone();
        waiting.spawn(async move {
            let body = if number % 2 == 0 { number.to_string() } else { "not json".to_owned() };
            super::call(&streams, "POST", "a", &[("content-type", "application/json")], body).await.status
        });
    }
    let mut statuses = waiting.join_all().await;
    statuses.sort();
    assert_eq!(statuses, [[204; 25], [400; 25]].concat());
    assert_eq!(bench.get("a").await.json().as_array().unwrap().len(), 25);
}
