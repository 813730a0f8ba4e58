//! Subscriptions over restarts, failures and leases.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::{Answer, Bench, call, call_as};
use crate::{Access, Options};

async fn subscribe(bench: &Bench, id: &str, config: Value) -> Answer {
    call(&bench.streams, "PUT", &format!("__ds/subscriptions/{id}"), &[], config.to_string()).await
}

async fn pull(bench: &Bench) {
    bench.put("wake", "application/json", "[]").await;
    let config =
        json!({ "type": "pull-wake", "pattern": "jobs/**", "wake_stream": "wake", "lease_ttl_ms": 1000 });
    assert_eq!(subscribe(bench, "s", config).await.status, 201);
}

async fn claim(bench: &Bench, worker: &str) -> Answer {
    let body = json!({ "worker": worker }).to_string();
    call(&bench.streams, "POST", "__ds/subscriptions/s/claim", &[], body).await
}

/// A report on a wake, by somebody who has nothing but its token.
async fn report(bench: &Bench, action: &str, claimed: &Value, more: Value) -> Answer {
    let mut body = json!({ "wake_id": claimed["wake_id"], "generation": claimed["generation"] });
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    let token = format!("Bearer {}", claimed["token"].as_str().unwrap());
    let path = format!("__ds/subscriptions/s/{action}");
    call_as(Access::NOTHING, &bench.streams, "POST", &path, &[("authorization", &token)], body.to_string())
        .await
}

#[tokio::test]
async fn a_claim_outlives_a_restart_and_its_token_is_enough() {
    let bench = Bench::new(Options::default());
    pull(&bench).await;
    bench.put("jobs/a/1", "text/plain", "work").await;
    let claimed = claim(&bench, "w").await.json();
    let kid = call(&bench.streams, "GET", "__ds/jwks.json", &[], "").await.json();

    let bench = bench.reopened();
    assert_eq!(call(&bench.streams, "GET", "__ds/jwks.json", &[], "").await.json(), kid);
    let done = report(
        &bench,
        "ack",
        &claimed,
        json!({ "done": true, "acks": [{ "stream": "jobs/a/1", "offset": claimed["streams"][0]["tail_offset"] }] }),
    )
    .await;
    assert_eq!((done.status, done.json()), (200, json!({ "ok": true, "next_wake": false })));
    let empty = claim(&bench, "w").await;
    assert_eq!((empty.status, &empty.json()["error"]["code"]), (409, &json!("NO_PENDING_WORK")));
}

#[tokio::test]
async fn a_lease_that_runs_out_is_fenced_and_the_work_is_offered_again() {
    let bench = Bench::new(Options::default());
    pull(&bench).await;
    bench.put("jobs/1", "text/plain", "work").await;
    let claimed = claim(&bench, "slow").await.json();
    assert_eq!(claimed["generation"], 1);
    let offset = call(&bench.streams, "HEAD", "wake", &[], "").await.header("stream-next-offset").to_owned();

    let woken = bench.get(&format!("wake?offset={offset}&live=long-poll")).await.json();
    assert_eq!((&woken[0]["generation"], &woken[0]["stream"]), (&json!(2), &json!("jobs/1")));
    let late = report(&bench, "ack", &claimed, json!({ "done": true })).await;
    assert_eq!((late.status, &late.json()["error"]["code"]), (409, &json!("FENCED")));
    assert_eq!(claim(&bench, "next").await.json()["generation"], 2);
}

#[tokio::test]
async fn a_report_without_the_right_token_changes_nothing() {
    let bench = Bench::new(Options::default());
    pull(&bench).await;
    bench.put("jobs/1", "text/plain", "work").await;
    let claimed = claim(&bench, "w").await.json();
    let tail = claimed["streams"][0]["tail_offset"].clone();
    let acks = json!({ "done": true, "acks": [{ "stream": "jobs/1", "offset": tail }] });

    let mut forged = claimed.clone();
    forged["token"] = json!("1.99999999999999.00");
    assert_eq!(report(&bench, "ack", &forged, acks.clone()).await.status, 401);
    let mut other_wake = claimed.clone();
    other_wake["wake_id"] = json!("w_other");
    assert_eq!(report(&bench, "ack", &other_wake, acks).await.status, 409);
    let beyond = json!({ "acks": [{ "stream": "jobs/1", "offset": "0000000000000000_0000000000000099" }] });
    assert_eq!(report(&bench, "ack", &claimed, beyond).await.json()["error"]["code"], "INVALID_OFFSET");
    let listed = call(&bench.streams, "GET", "__ds/subscriptions/s", &[], "").await.json();
    assert_ne!(listed["streams"][0]["acked_offset"], tail);
}

#[tokio::test]
async fn a_released_wake_is_written_again() {
    let bench = Bench::new(Options::default());
    pull(&bench).await;
    bench.put("jobs/1", "text/plain", "work").await;
    let claimed = claim(&bench, "w").await.json();
    assert_eq!(report(&bench, "release", &claimed, json!({})).await.status, 204);
    let events = bench.get("wake").await.json();
    let generations: Vec<&Value> =
        events.as_array().unwrap().iter().map(|event| &event["generation"]).collect();
    assert_eq!(generations, [1, 2]);
}

#[tokio::test]
async fn history_from_before_a_subscription_is_not_offered() {
    let bench = Bench::new(Options::default());
    bench.put("jobs/old", "text/plain", "history").await;
    pull(&bench).await;
    assert_eq!(claim(&bench, "w").await.json()["error"]["code"], "NO_PENDING_WORK");
    bench.post("jobs/old", "text/plain", "news").await;
    assert_eq!(claim(&bench, "w").await.json()["streams"][0]["path"], "jobs/old");
}

#[tokio::test]
async fn webhooks_to_this_machine_are_off_unless_they_are_turned_on() {
    let bench = Bench::new(Options::default());
    let config = json!({ "type": "webhook", "pattern": "*", "webhook": { "url": "http://127.0.0.1:1/" } });
    let answer = subscribe(&bench, "s", config).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("WEBHOOK_URL_REJECTED")));
}

/// A receiver that fails at first: a body for each webhook that came.
async fn receiver(failures: usize) -> (String, mpsc::UnboundedReceiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (came, coming) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for number in 0.. {
            let (connection, _) = listener.accept().await.unwrap();
            let came = came.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let came = came.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    came.send(serde_json::from_slice(&body).unwrap()).unwrap();
                    let status = if number < failures { 500 } else { 200 };
                    let answer = Full::new(Bytes::from_static(b"{\"done\":true}"));
                    Ok::<_, std::convert::Infallible>(
                        http::Response::builder().status(status).body(answer).unwrap(),
                    )
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    (url, coming)
}

#[tokio::test]
async fn a_failed_webhook_is_tried_again_and_says_so_meanwhile() {
    let bench = Bench::new(Options { local_webhooks: true, ..Options::default() });
    let (url, mut coming) = receiver(1).await;
    let config = json!({ "type": "webhook", "streams": ["a"], "webhook": { "url": url } });
    assert_eq!(subscribe(&bench, "s", config).await.status, 201);
    bench.put("a", "text/plain", "news").await;

    let first = coming.recv().await.unwrap();
    let described = || async { call(&bench.streams, "GET", "__ds/subscriptions/s", &[], "").await.json() };
    while described().await["status"] != "failed" {
        tokio::task::yield_now().await;
    }
    let second = coming.recv().await.unwrap();
    assert!(second["generation"].as_u64() > first["generation"].as_u64());
    assert_ne!(second["wake_id"], first["wake_id"]);
    while described().await["status"] != "active" {
        tokio::task::yield_now().await;
    }
    assert_eq!(described().await["streams"][0]["acked_offset"], second["streams"][0]["tail_offset"]);
}
