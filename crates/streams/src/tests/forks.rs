//! Forks outlive their sources.

use super::{Bench, call};
use crate::Options;

async fn fork(bench: &Bench, path: &str, from: &str) -> u16 {
    let from = format!("/v1/stream/{from}");
    call(&bench.streams, "PUT", path, &[("stream-forked-from", from.as_str())], "").await.status
}

async fn status(bench: &Bench, method: &str, path: &str) -> u16 {
    call(&bench.streams, method, path, &[], "").await.status
}

#[tokio::test]
async fn a_fork_survives_the_deletion_of_its_sources_and_a_restart() {
    let bench = Bench::new(Options::default());
    bench.put("root", "text/plain", "A").await;
    assert_eq!(fork(&bench, "middle", "root").await, 201);
    bench.post("middle", "text/plain", "B").await;
    assert_eq!(fork(&bench, "leaf", "middle").await, 201);
    bench.post("leaf", "text/plain", "C").await;
    bench.post("middle", "text/plain", "not for the leaf").await;
    assert_eq!(status(&bench, "DELETE", "middle").await, 204);
    assert_eq!(status(&bench, "DELETE", "root").await, 204);

    let bench = bench.reopened();
    assert_eq!(bench.get("leaf").await.text(), "ABC");
    bench.post("leaf", "text/plain", "D").await;
    assert_eq!(bench.get("leaf").await.text(), "ABCD");
    assert_eq!(status(&bench, "GET", "root").await, 410);
    assert_eq!(status(&bench, "PUT", "root").await, 409);

    assert_eq!(status(&bench, "DELETE", "leaf").await, 204);
    let bench = bench.reopened();
    assert_eq!(status(&bench, "GET", "root").await, 404);
    assert_eq!(status(&bench, "GET", "middle").await, 404);
    let left: i64 = rusqlite::Connection::open(bench.folder().join("streams.db"))
        .unwrap()
        .query_row("SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM streams)", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(left, 0, "data of deleted streams is left");
}

#[tokio::test]
async fn a_place_inside_a_message_cannot_be_forked_or_read_from() {
    let bench = Bench::new(Options::default());
    bench.put("a", "application/json", r#"[{"n":1},{"n":2}]"#).await;
    let inside = "0000000000000000_0000000000000003";
    let headers = [("stream-forked-from", "/v1/stream/a"), ("stream-fork-offset", inside)];
    assert_eq!(call(&bench.streams, "PUT", "b", &headers, "").await.status, 400);
    assert_eq!(bench.get(&format!("a?offset={inside}")).await.status, 400);
}

#[tokio::test]
async fn a_place_is_counted_within_one_append_only() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "abc").await;
    bench.post("a", "text/plain", "def").await;
    let start = "0000000000000000_0000000000000000";
    for (sub, expected) in [("3", 201), ("4", 400)] {
        let headers = [
            ("stream-forked-from", "/v1/stream/a"),
            ("stream-fork-offset", start),
            ("stream-fork-sub-offset", sub),
        ];
        assert_eq!(
            call(&bench.streams, "PUT", &format!("b{sub}"), &headers, "").await.status,
            expected,
            "{sub}"
        );
    }
}

#[tokio::test]
async fn forks_of_forks_end_somewhere() {
    let bench = Bench::new(Options::default());
    bench.put("f0", "text/plain", "x").await;
    for level in 1..=64 {
        assert_eq!(fork(&bench, &format!("f{level}"), &format!("f{}", level - 1)).await, 201);
    }
    assert_eq!(fork(&bench, "f65", "f64").await, 400);
    assert_eq!(bench.get("f64").await.text(), "x");
}
