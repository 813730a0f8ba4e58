//! One answer holds about a mebibyte, whatever there is.

use super::Bench;
use crate::Options;

const MIB: usize = 1024 * 1024;

/// All answers on the way from the start to the end: their bodies, and the offset behind the last.
async fn pages(bench: &Bench, path: &str) -> Vec<bytes::Bytes> {
    let mut offset = "-1".to_owned();
    let mut bodies = Vec::new();
    loop {
        let answer = bench.get(&format!("{path}?offset={offset}")).await;
        assert_eq!(answer.status, 200);
        bodies.push(answer.body.clone());
        if answer.header("stream-up-to-date") == "true" {
            return bodies;
        }
        assert_eq!(answer.header("stream-closed"), "", "a part is not the end");
        offset = answer.header("stream-next-offset").to_owned();
    }
}

#[tokio::test]
async fn bytes_come_in_parts_and_are_whole_together() {
    let bench = Bench::new(Options::default());
    let data: Vec<u8> = (0..5 * MIB + 7).map(|at| (at % 251) as u8).collect();
    bench.put("a", "application/octet-stream", data.clone()).await;
    bench.post("a", "application/octet-stream", "end").await;
    let pages = pages(&bench, "a").await;
    let limit = Options::default().read_limit;
    assert!(pages.iter().all(|page| page.len() <= limit), "a part is larger than the limit");
    assert_eq!(pages.len(), (data.len() + 3).div_ceil(limit));
    assert!(pages.concat() == [&data[..], b"end"].concat(), "the parts are not the whole");
}

#[tokio::test]
async fn messages_are_never_taken_apart() {
    let bench = Bench::new(Options { read_limit: 1000, ..Options::default() });
    let message = |size: usize| format!("\"{}\"", "x".repeat(size));
    let sizes = [10, 600, 300, 5000, 10, 10];
    bench.put("a", "application/json", "").await;
    let listed: Vec<String> = sizes.iter().map(|size| message(*size)).collect();
    bench.post("a", "application/json", format!("[{}]", listed.join(","))).await;
    bench.post("a", "application/json", message(3)).await;
    let pages = pages(&bench, "a").await;
    let lengths: Vec<Vec<usize>> = pages
        .iter()
        .map(|page| {
            let items: Vec<String> = serde_json::from_slice(page).unwrap();
            items.iter().map(String::len).collect()
        })
        .collect();
    assert_eq!(lengths, [vec![10, 600, 300], vec![5000], vec![10, 10, 3]]);
}

#[tokio::test]
async fn characters_are_never_taken_apart() {
    let bench = Bench::new(Options { read_limit: 10, ..Options::default() });
    let text = "äöü€😀".repeat(7);
    bench.put("a", "text/plain", text.clone()).await;
    let pages = pages(&bench, "a").await;
    assert!(pages.len() > 5);
    let joined: String = pages.iter().map(|page| std::str::from_utf8(page).unwrap()).collect();
    assert_eq!(joined, text);
}

#[tokio::test]
async fn events_on_the_way_to_the_end_come_in_parts_too() {
    let bench = Bench::new(Options { event_limit: 1000, ..Options::default() });
    let headers = [("content-type", "text/plain"), ("stream-closed", "true")];
    super::call(&bench.streams, "PUT", "a", &headers, "y".repeat(3500)).await;
    let answer = bench.get("a?offset=-1&live=sse").await;
    let events: Vec<&str> = answer.text().split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.len(), 8, "four events of data, each with one of control");
    assert!(events.iter().all(|event| event.len() < 1200));
    assert_eq!(answer.text().matches("streamClosed").count(), 1);
    assert!(events[7].contains("streamClosed"));
}

#[tokio::test]
async fn an_offset_behind_the_end_is_not_one_of_ours() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "abc").await;
    let answer = bench.get("a?offset=0000000000000000_0000000000000004").await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some("INVALID_OFFSET")));
}

#[tokio::test]
async fn a_tag_of_an_earlier_stream_at_the_same_path_is_another_one() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "abc").await;
    let tag = bench.get("a").await.header("etag").to_owned();
    super::call(&bench.streams, "DELETE", "a", &[], "").await;
    let bench = bench.reopened();
    bench.put("a", "text/plain", "xyz").await;
    let answer = super::call(&bench.streams, "GET", "a", &[("if-none-match", tag.as_str())], "").await;
    assert_eq!((answer.status, answer.text()), (200, "xyz"));
}
