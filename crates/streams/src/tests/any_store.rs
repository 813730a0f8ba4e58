//! The protocol knows the store by its trait alone: over a store in memory it answers as over one on a disk.

use super::{Bench, call};
use crate::storage::memory::MemoryStore;
use crate::store::StoreHandle;
use crate::{Options, Streams};

/// A method, a path, headers and a body.
type Sent<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

const JSON: (&str, &str) = ("content-type", "application/json");
const TEXT: (&str, &str) = ("content-type", "text/plain");

fn in_memory(store: &MemoryStore) -> Streams {
    let opened = StoreHandle::over(store.parts()).unwrap();
    Streams::over(opened, Options::default(), &tokio::runtime::Handle::current())
}

/// One request after the other, with what was answered to each.
async fn answers(streams: &Streams) -> Vec<String> {
    let producer = [JSON, ("producer-id", "p"), ("producer-epoch", "0"), ("producer-seq", "0")];
    let wakes = r#"{"type":"pull-wake","pattern":"logs/*","wake_stream":"wakes"}"#;
    let requests: &[Sent<'_>] = &[
        ("PUT", "a", &[TEXT], "one"),
        ("PUT", "a", &[TEXT], "one"),
        ("PUT", "a", &[JSON], "one"),
        ("POST", "a", &[TEXT], " two"),
        ("GET", "a", &[], ""),
        ("GET", "a?offset=0000000000000000_0000000000000003", &[], ""),
        ("GET", "a?offset=0000000000000000_0000000000000099", &[], ""),
        ("PUT", "fork", &[("stream-forked-from", "/v1/stream/a")], ""),
        ("POST", "a", &[TEXT], " three"),
        ("POST", "fork", &[TEXT], " of my own"),
        ("GET", "fork", &[], ""),
        ("DELETE", "a", &[], ""),
        ("GET", "a", &[], ""),
        ("GET", "fork", &[], ""),
        ("DELETE", "fork", &[], ""),
        ("GET", "a", &[], ""),
        ("PUT", "wakes", &[JSON], ""),
        ("PUT", "logs/1", &[JSON], "[1]"),
        ("PUT", "__ds/subscriptions/s", &[], wakes),
        ("POST", "logs/1", &producer, "[2,3]"),
        ("POST", "logs/1", &producer, "[2,3]"),
        ("POST", "logs/1", &[JSON], "not json"),
        ("GET", "logs/1", &[], ""),
        ("GET", "wakes", &[], ""),
        ("POST", "__ds/subscriptions/s/claim", &[], r#"{"worker":"w"}"#),
        ("POST", "__ds/subscriptions/s/claim", &[], r#"{"worker":"x"}"#),
        ("GET", "__ds/subscriptions/s", &[], ""),
        ("DELETE", "logs/1", &[], ""),
        ("GET", "__ds/subscriptions/s", &[], ""),
        ("DELETE", "__ds/subscriptions/s", &[], ""),
        ("GET", "__ds/subscriptions/s", &[], ""),
        ("PUT", "closed", &[TEXT, ("stream-closed", "true")], "all"),
        ("POST", "closed", &[TEXT], "more"),
    ];
    let mut answers = Vec::new();
    for (method, path, headers, body) in requests {
        let answer = call(streams, method, path, headers, body.to_string()).await;
        let next = answer.header("stream-next-offset");
        answers.push(format!("{method} {path}: {} {next} {}", answer.status, told(answer.text())));
    }
    answers
}

/// Without what is different each time: times, tokens and names of wakes.
fn told(body: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<serde_json::Value>(body) else { return body.to_owned() };
    let members = match &mut document {
        serde_json::Value::Array(all) => all.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for member in members.iter_mut().filter_map(|member| member.as_object_mut()) {
        for varying in ["ts", "created_at", "token", "wake_id"] {
            member.remove(varying);
        }
    }
    document.to_string()
}

#[tokio::test]
async fn a_store_in_memory_is_answered_from_like_one_on_a_disk() {
    let on_disk = answers(&Bench::new(Options::default()).streams).await;
    let store = MemoryStore::default();
    let streams = in_memory(&store);
    assert_eq!(answers(&streams).await, on_disk);
    // The script goes through what it is meant to.
    let statuses =
        ["GET fork: 200", "GET a: 410", "GET a: 404", "claim: 200", "claim: 409", "GET wakes: 200"];
    for status in statuses {
        assert!(on_disk.iter().any(|answer| answer.contains(status)), "{status} is not in {on_disk:#?}");
    }

    // Closed and opened again, as far as the protocol can tell.
    drop(streams);
    let again = call(&in_memory(&store), "GET", "closed", &[], "").await;
    assert_eq!((again.status, again.text()), (200, "all"));
}
