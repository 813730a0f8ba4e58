//! Who may do what, and which names there are.

use super::{Bench, call, call_as};
use crate::{Access, Options};

#[tokio::test]
async fn whoever_may_only_read_changes_nothing() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "kept").await;
    for (method, path) in [
        ("PUT", "b"),
        ("POST", "a"),
        ("DELETE", "a"),
        ("PUT", "__ds/subscriptions/s"),
        ("DELETE", "__ds/subscriptions/s"),
        ("POST", "__ds/subscriptions/s/claim"),
        ("POST", "__ds/subscriptions/s/streams"),
    ] {
        let answer = call_as(Access::READ, &bench.streams, method, path, &[], "{}").await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (403, Some("FORBIDDEN")),
            "{method} {path}"
        );
    }
    assert_eq!(bench.get("a").await.text(), "kept");
    assert_eq!(bench.get("b").await.status, 404);
}

#[tokio::test]
async fn whoever_may_nothing_learns_nothing() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "kept").await;
    for (method, path) in [("GET", "a"), ("HEAD", "a"), ("GET", "b"), ("GET", "__ds/subscriptions/s")] {
        let answer = call_as(Access::NOTHING, &bench.streams, method, path, &[], "").await;
        assert_eq!(answer.status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn a_name_that_could_mean_something_else_is_refused_by_every_method() {
    let bench = Bench::new(Options::default());
    let long = "a".repeat(1025);
    for path in ["a/../b", "a/%2e%2e/b", "a%00", "a%0d%0aX", "a%2fb", "a//b", "", "%5f_ds/x", "_%5Fds", &long]
    {
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            let answer = call(&bench.streams, method, path, &[("content-type", "text/plain")], "x").await;
            assert_eq!(answer.status, 400, "{method} {path:?}");
        }
    }
}

#[tokio::test]
async fn every_answer_keeps_browsers_from_guessing_and_other_sites_from_reading() {
    let bench = Bench::new(Options::default());
    for (method, path) in [
        ("PUT", "a"),
        ("GET", "a"),
        ("HEAD", "a"),
        ("GET", "missing"),
        ("OPTIONS", "a"),
        ("PATCH", "a"),
        ("GET", "__ds/jwks.json"),
        ("DELETE", "a"),
    ] {
        let answer = call(&bench.streams, method, path, &[("origin", "https://elsewhere.example")], "").await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{method} {path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{method} {path}");
        assert_eq!(
            answer.header("content-security-policy"),
            "default-src 'none'; sandbox",
            "{method} {path}"
        );
        assert_eq!(answer.header("access-control-allow-origin"), "", "{method} {path}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_problem_document() {
    let bench = Bench::new(Options::default());
    let answer = bench.get("missing").await;
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let problem = answer.json();
    assert_eq!(problem["type"], "about:blank");
    assert_eq!(problem["title"], "Not Found");
    assert_eq!(problem["status"], 404);
    assert_eq!(problem["code"], "STREAM_NOT_FOUND");
    assert!(problem["detail"].as_str().unwrap().contains("`missing`"));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_not_kept() {
    let bench = Bench::new(Options { body_limit: 1000, ..Options::default() });
    bench.put("a", "text/plain", "").await;
    assert_eq!(bench.post("a", "text/plain", "x".repeat(1000)).await.status, 204);
    let answer = bench.post("a", "text/plain", "x".repeat(1001)).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("BODY_TOO_LARGE")));
    assert_eq!(bench.get("a").await.body.len(), 1000);
}
