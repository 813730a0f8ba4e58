//! Acknowledged means on the disk: killed at any moment, nothing is lost and nothing is there twice.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Answer, Bench, call};
use crate::{OpenError, Options, Streams};

const CHILD: &str = "ADJ_STREAMS_KILLED_WRITER";
const PRODUCERS: u64 = 8;
const ACKNOWLEDGED_BEFORE_THE_KILL: usize = 300;

/// The test plays both parts: started by itself with `CHILD` set, it is the writer that is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_writer_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    if let Some(folder) = std::env::var_os(CHILD) {
        write_until_killed(PathBuf::from(folder)).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = HashMap::new();
    for _ in 0..3 {
        kill_a_writer(folder.path(), &mut acknowledged);
        let streams = Streams::open(folder.path(), Options::default()).unwrap();
        for producer in 0..PRODUCERS {
            let last = acknowledged.get(&producer).copied();
            check_and_go_on(&streams, producer, last).await;
        }
    }
}

async fn write_until_killed(folder: PathBuf) {
    let streams = Streams::open(&folder, Options::default()).unwrap();
    call(&streams, "PUT", "log", &[("content-type", "application/json")], "").await;
    let mut writers = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let streams = streams.clone();
        writers.spawn(async move {
            let first = written(&streams, producer).await.last().map_or(0, |last| last + 1);
            for seq in first.. {
                assert_eq!(append(&streams, producer, seq).await.status, 200);
                let mut out = std::io::stdout().lock();
                writeln!(out, "\nacknowledged {producer} {seq}").unwrap();
                out.flush().unwrap();
            }
        });
    }
    writers.join_all().await;
}

async fn append(streams: &Streams, producer: u64, seq: u64) -> Answer {
    let (id, text) = (producer.to_string(), seq.to_string());
    let headers = [
        ("content-type", "application/json"),
        ("producer-id", id.as_str()),
        ("producer-epoch", "0"),
        ("producer-seq", text.as_str()),
    ];
    call(streams, "POST", "log", &headers, format!("[{producer},{seq}]").replace('[', "[[") + "]").await
}

/// The numbers that a producer has in the stream, in the stream's order.
async fn written(streams: &Streams, producer: u64) -> Vec<u64> {
    let mut offset = "-1".to_owned();
    let mut numbers = Vec::new();
    loop {
        let answer = call(streams, "GET", &format!("log?offset={offset}"), &[], "").await;
        for item in answer.json().as_array().unwrap() {
            if item[0] == producer {
                numbers.push(item[1].as_u64().unwrap());
            }
        }
        if answer.header("stream-up-to-date") == "true" {
            return numbers;
        }
        offset = answer.header("stream-next-offset").to_owned();
    }
}

fn kill_a_writer(folder: &Path, acknowledged: &mut HashMap<u64, u64>) {
    let name = "tests::durability::a_killed_writer_loses_nothing_that_was_acknowledged_and_doubles_nothing";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // What was said before the death was said, even if it is heard behind it.
        let line = line.unwrap();
        let Some(said) = line.strip_prefix("acknowledged ") else { continue };
        let (producer, seq) = said.split_once(' ').unwrap();
        acknowledged.insert(producer.parse().unwrap(), seq.parse().unwrap());
        heard += 1;
        if heard == ACKNOWLEDGED_BEFORE_THE_KILL {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success(), "the writer ended by itself");
    assert!(heard >= ACKNOWLEDGED_BEFORE_THE_KILL, "the writer ended after {heard} appends");
}

async fn check_and_go_on(streams: &Streams, producer: u64, acknowledged: Option<u64>) {
    let numbers = written(streams, producer).await;
    let expected: Vec<u64> = (0..numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "producer {producer} has gaps or doubles");
    let Some(acknowledged) = acknowledged else { return };
    assert!(
        numbers.len() as u64 > acknowledged,
        "{acknowledged} of producer {producer} was acknowledged and is lost"
    );
    // The batch behind the last acknowledged one may have been written or not; sent again, it is there once.
    let again = append(streams, producer, acknowledged + 1).await.status;
    assert!(again == 200 || again == 204, "sending again was answered with {again}");
    let numbers = written(streams, producer).await;
    assert_eq!(numbers.iter().filter(|number| **number == acknowledged + 1).count(), 1);
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let bench = Bench::new(Options::default());
    bench.put("open", "text/plain", "one").await;
    bench.post("open", "text/plain", "two").await;
    call(&bench.streams, "PUT", "closed", &[("stream-closed", "true"), ("stream-ttl", "60")], "all").await;
    let before = call(&bench.streams, "HEAD", "closed", &[], "").await;

    let bench = bench.reopened();
    assert_eq!(bench.get("open").await.text(), "onetwo");
    let after = call(&bench.streams, "HEAD", "closed", &[], "").await;
    for header in ["stream-next-offset", "stream-closed", "stream-ttl", "content-type"] {
        assert_eq!(before.header(header), after.header(header));
        assert!(!after.header(header).is_empty());
    }
    assert_eq!(bench.post("closed", "application/octet-stream", "more").await.status, 409);
}

#[tokio::test]
async fn a_folder_is_open_once() {
    let bench = Bench::new(Options::default());
    let second = Streams::open(bench.folder(), Options::default());
    assert!(matches!(second.err(), Some(OpenError::InUse { .. })));
}

#[tokio::test]
async fn the_file_with_the_keys_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Options::default());
    let mode = bench.folder().join("streams.db").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_transaction_that_fails_counts_for_nothing_and_the_store_goes_on() {
    let bench = Bench::new(Options::default());
    bench.put("a", "text/plain", "kept").await;
    let full = bench.streams.0.store.write(|turn| Ok(turn.stored.tables.leave_no_room()?));
    full.await.unwrap();
    let answer = bench.post("a", "text/plain", "x".repeat(1024 * 1024)).await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (507, Some("NO_SPACE")));
    assert_eq!(bench.get("a").await.text(), "kept");
    assert_eq!(bench.post("a", "text/plain", " and more").await.status, 204);
    assert_eq!(bench.reopened().get("a").await.text(), "kept and more");
}

#[tokio::test]
async fn reads_that_prolong_a_life_are_put_down() {
    let bench = Bench::new(Options::default());
    call(&bench.streams, "PUT", "a", &[("stream-ttl", "60")], "x").await;
    let due = |bench: &Bench| -> i64 {
        let db = rusqlite::Connection::open(bench.folder().join("streams.db")).unwrap();
        db.query_row("SELECT due FROM streams WHERE path = 'a'", [], |row| row.get(0)).unwrap()
    };
    let before = due(&bench);
    while crate::stored::now() as i64 + 60_000 <= before {
        tokio::task::yield_now().await;
    }
    bench.get("a").await;
    let bench = bench.reopened();
    assert!(due(&bench) > before);
}
