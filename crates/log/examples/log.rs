//! How fast the log is, beside what the disk and SQLite can do without it, in one run.
//!
//! `cargo run --release -p adjutant-log --example log -- [records] [folder]`

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use log::{Entry, Location, NewRecord};

const BATCH: u64 = 256;
const STREAMS: u64 = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(1_000_000), |records| records.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("adjutant-log-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure(&folder.join("log.db"), records);
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure(path: &Path, records: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("raw append and fdatasync  {:>10.0} /s", raw_syncs(&path.with_extension("raw"))?);

    let mut log = log::open(&Location::File(path.to_owned()))?;
    let started = Instant::now();
    for batch in 0..records / BATCH {
        log.append(&batch_of(batch))?;
    }
    let rate = (records / BATCH * BATCH) as f64 / started.elapsed().as_secs_f64();
    println!("append in batches of {BATCH}  {rate:>10.0} records/s");
    println!("raw append and fdatasync  {:>10.0} /s", raw_syncs(&path.with_extension("raw"))?);

    let started = Instant::now();
    for single in 0..2_000 {
        log.append(&batch_of(single)[..1])?;
    }
    println!("append one by one         {:>10.0} records/s", 2_000.0 / started.elapsed().as_secs_f64());
    drop(log);

    let started = Instant::now();
    let log = log::open(&Location::File(path.to_owned()))?;
    println!("open                      {:>10.1} ms", started.elapsed().as_secs_f64() * 1e3);
    for _ in 0..3 {
        let started = Instant::now();
        let bare = bare_scan(path)?;
        let bare_seconds = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let mut sum = 0;
        log.scan(0, &mut |record| {
            sum += fold(record.seq, &record.stream, &record.data);
            ControlFlow::Continue(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(sum, bare, "both scans saw the same");
        println!(
            "scan: bare {bare_seconds:.3} s, checked {seconds:.3} s, ratio {:.2}",
            seconds / bare_seconds
        );
    }
    Ok(())
}

fn batch_of(number: u64) -> Vec<Entry> {
    (0..BATCH)
        .map(|place| {
            let n = number * BATCH + place;
            let data = format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(260));
            let stream = format!("task-{}", n * 7_919 % STREAMS);
            Entry {
                command: format!("command-{n:016}"),
                actor: "alice".to_owned(),
                at: n as i64,
                records: vec![NewRecord { stream, kind: "TurnComplete".to_owned(), data }],
                ..Entry::default()
            }
        })
        .collect()
}

fn raw_syncs(path: &Path) -> std::io::Result<f64> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let started = Instant::now();
    for _ in 0..2_000 {
        file.write_all(&[b'x'; 400])?;
        file.sync_data()?;
    }
    Ok(2_000.0 / started.elapsed().as_secs_f64())
}

/// The same rows, read and folded with nothing checked.
fn bare_scan(path: &Path) -> rusqlite::Result<u64> {
    let connection = rusqlite::Connection::open(path)?;
    let mut statement = connection.prepare(
        "SELECT seq, stream, version, at, actor, command, kind, data, hash FROM records ORDER BY seq",
    )?;
    let mut rows = statement.query(())?;
    let mut sum = 0;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?.to_owned()));
        let (stream, actor, command, kind, data) = (text(1)?, text(4)?, text(5)?, text(6)?, text(7)?);
        let (_version, _at): (i64, i64) = (row.get(2)?, row.get(3)?);
        std::hint::black_box((actor, command, kind));
        sum += fold(seq as u64, &stream, &data);
    }
    Ok(sum)
}

fn fold(seq: u64, stream: &str, data: &str) -> u64 {
    seq + stream.len() as u64 + data.len() as u64
}
