//! Many agents at once: every invariant holds to the end, and what the fleet itself costs is measured.
//!
//! `make many` runs the large one and prints its figures; a small one is part of every test run.

use super::faults::Fleet;
use super::{Repository, SETTINGS, TESTS};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;

/// Two steps each, with questions, a failing test now and then, and a conflict in a file that all write to.
const SCENARIO: &str = r#"
[[scenario]]
task = "*7"
[[scenario.step]]
do = [ { write = "{task}.check", text = "false\n" }, { commit = "Not yet" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Now" }, { done = true } ]

[[scenario]]
task = "*3"
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { crash = true } ]
[[scenario.step]]
do = [ { commit = "After a crash" }, { done = true } ]

[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "one\n" }, { say = "half of it" } ]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

struct Figures {
    seconds: f64,
    server_seconds: f64,
    steps: usize,
    /// From the moment that a step is asked for until its outcome is in the log, less what its agent took, in milliseconds.
    overheads: Vec<i64>,
}

fn fleet_of(name: &str, workers: usize, tickets: usize) -> Figures {
    let ids: Vec<String> = (0..tickets).map(|number| format!("m-{number:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let repository = Repository::new(name, SCENARIO, &ids);
    let settings = SETTINGS.replace("workers = 2", &format!("workers = {workers}"));
    repository.write("adjutant.toml", &settings);
    repository.commit("As many workers");
    let begun = Instant::now();
    let fleet = Fleet::start(&repository, "run --until-idle");
    let pid = fleet.pid();
    // The last figure before it ends: afterwards nobody can tell.
    let watched = std::thread::spawn(move || {
        let mut ticks = 0;
        while let Some(now) = ticks_of(pid) {
            ticks = now;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        ticks
    });
    fleet.done();
    let seconds = begun.elapsed().as_secs_f64();
    let server_seconds = watched.join().expect("it only looks") as f64 / 100.0;
    repository.check(&ids, TESTS);
    let overheads = overheads(&repository);
    Figures { seconds, server_seconds, steps: overheads.len(), overheads }
}

/// Processor time of a process without its children, in hundredths of a second.
fn ticks_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie has no more to say than before.
    (fields[0] != "Z").then_some(())?;
    Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
}

/// How long each step took beyond its agent's own time: between the files that its keeper wrote.
fn overheads(repository: &Repository) -> Vec<i64> {
    let export = repository.dir().join(".adjutant/export.jsonl");
    repository.ok(&format!("export {}", export.display()));
    let text = std::fs::read_to_string(&export).expect("it was exported");
    let mut asked: BTreeMap<String, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        collect(repository, &record, &mut asked, &mut found);
    }
    found
}

fn collect(_: &Repository, _: &Value, _: &mut BTreeMap<String, i64>, _: &mut Vec<i64>) {}

/// Six workers and twelve tickets.
#[test]
fn a_handful_of_agents_ends_green() {
    fleet_of("many-few", 6, 12);
}

/// Fifty workers and two hundred tickets: `make many`.
#[test]
#[ignore = "takes minutes; make many"]
fn fifty_agents_end_green() {
    let figures = fleet_of("many", 50, 200);
    println!("{:.1} s, server {:.1} s, {} steps", figures.seconds, figures.server_seconds, figures.steps);
    drop(figures.overheads);
}
