//! Many agents at once: every invariant holds to the end, and what the fleet itself costs is measured.
//!
//! `make many` and `make lines` run the large ones and print their figures; small ones are part of every test run. In a
//! debug build the kernel's invariants are checked after each commit.

use super::background::wait;
use super::{Repository, SETTINGS, TESTS};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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

/// What takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(1800);

/// What a fleet took.
struct Figures {
    seconds: f64,
    /// Processor time of the server alone.
    server_seconds: f64,
    /// From the moment that something is asked for until its outcome is in the log, less what the agent or the tests
    /// took themselves: in milliseconds, by its kind, in order.
    overheads: BTreeMap<String, Vec<i64>>,
}

impl Figures {
    fn print(&self, workers: usize, tickets: usize) {
        let steps = self.overheads["start_step"].len();
        println!(
            "{workers} workers, {tickets} tickets, {steps} steps: {:.1} s, {:.0} ms a step, server {:.1} ms of processor time a step",
            self.seconds,
            self.seconds * 1000.0 / steps as f64,
            self.server_seconds * 1000.0 / steps as f64,
        );
        for (kind, millis) in &self.overheads {
            let at = |part: usize| millis[(millis.len() - 1) * part / 100];
            println!(
                "  {kind:<14} {:>5} times, overhead p50 {:>6} ms, p95 {:>6} ms",
                millis.len(),
                at(50),
                at(95)
            );
        }
    }
}

fn fleet_of(name: &str, workers: usize, tickets: usize) {
    let ids: Vec<String> = (0..tickets).map(|number| format!("m-{number:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let repository = Repository::new(name, SCENARIO, &ids);
    let settings = SETTINGS.replace("workers = 2", &format!("workers = {workers}"));
    repository.write("adjutant.toml", &settings);
    repository.commit("As many workers");
    let begun = Instant::now();
    let fleet = repository.begin("run --until-idle");
    let pid = fleet.pid();
    // The last figure before it ends: afterwards nobody can tell.
    let watched = std::thread::spawn(move || {
        let mut ticks = 0;
        while let Some(now) = ticks_of(pid) {
            ticks = now;
            std::thread::sleep(Duration::from_millis(50));
        }
        ticks
    });
    let (code, said) = fleet.ended_within(PATIENCE);
    assert_eq!(code, 0, "{said}");
    let seconds = begun.elapsed().as_secs_f64();
    let server_seconds = watched.join().expect("it only looks") as f64 / 100.0;
    repository.check(&ids, TESTS);
    let figures = Figures { seconds, server_seconds, overheads: overheads(&repository) };
    figures.print(workers, tickets);
}

/// Processor time of a process without its children, in hundredths of a second.
fn ticks_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie has no more to say than before.
    (fields[0] != "Z").then_some(())?;
    Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
}

/// How long everything took beyond the time of the processes that it was about.
fn overheads(repository: &Repository) -> BTreeMap<String, Vec<i64>> {
    let export = repository.state("export.jsonl");
    repository.ok(&format!("export {}", export.display()));
    let text = std::fs::read_to_string(&export).expect("it was exported");
    let mut asked: BTreeMap<String, (String, i64)> = BTreeMap::new();
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).expect("a record in a line");
        let (data, at) = (&record["data"], record["at"].as_i64().unwrap_or_default());
        let id = data["id"].as_str().unwrap_or_default().to_owned();
        match record["kind"].as_str() {
            Some("effect_asked") => {
                let kind = data["what"]["effect"].as_str().expect("it has a kind").to_owned();
                asked.insert(id, (kind, at));
            }
            Some("effect_ended") => {
                let Some((kind, since)) = asked.remove(&id) else { continue };
                let exit = repository.read(&repository.state(&format!("steps/{id}/exit.json")));
                let exit: Value = serde_json::from_str(&exit).unwrap_or_default();
                let own = exit["ended_at"].as_i64().unwrap_or(0) - exit["started_at"].as_i64().unwrap_or(0);
                // A timer takes what it is set to.
                if kind != "timer" {
                    found.entry(kind).or_default().push(at - since - own);
                }
            }
            _ => {}
        }
    }
    found.values_mut().for_each(|millis| millis.sort_unstable());
    found
}

/// A number from the environment, or a small one.
fn count(name: &str, few: usize) -> usize {
    std::env::var(name).ok().map_or(few, |many| many.parse().expect("a number"))
}

/// Six workers and twelve tickets; `make many` makes it fifty and two hundred.
#[test]
fn many_agents_end_green() {
    fleet_of("many", count("ADJ_MANY_WORKERS", 6), count("ADJ_MANY_TICKETS", 12));
}

/// Four agents that print fifty lines a second; `make lines` makes it a hundred of each, for longer.
#[test]
fn every_line_of_many_agents_is_heard() {
    let (agents, rate) = (count("ADJ_LINES_AGENTS", 4), count("ADJ_LINES_RATE", 50));
    let lines = rate * count("ADJ_LINES_SECONDS", 2);
    let scenario = format!(
        "[[scenario]]\n[[scenario.step]]\ndo = [ {{ write = \"{{task}}.check\", text = \"true\\n\" }}, \
         {{ run = \"touch $TMPDIR/begun; until [ -e $TMPDIR/go ]; do sleep 0.05; done\", quiet = true }}, \
         {{ flood = {lines}, rate = {rate} }}, {{ done = true }} ]\n"
    );
    let ids: Vec<String> = (0..agents).map(|number| format!("l-{number:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let repository = Repository::new("lines", &scenario, &ids);
    let settings = SETTINGS.replace("workers = 2", &format!("workers = {agents}"));
    repository.write("adjutant.toml", &settings);
    repository.commit("As many workers");
    let fleet = repository.begin("run --until-idle");
    let pid = fleet.pid();
    let temp = |id: &&str| repository.temp(id);
    wait("every agent at work", || ids.iter().all(|id| temp(id).join("begun").exists()).then_some(()));
    // From here on the server does nothing but listen, until the first of them is done.
    let (begun, ticks) = (Instant::now(), ticks_of(pid).expect("it runs"));
    ids.iter().for_each(|id| std::fs::write(temp(id).join("go"), "").expect("a file"));
    wait("nine lines of ten", || (printed(&repository) >= agents * lines * 9 / 10).then_some(()));
    let heard = printed(&repository) as f64;
    let (seconds, ticks) = (begun.elapsed().as_secs_f64(), ticks_of(pid).expect("it runs") - ticks);
    println!(
        "{agents} agents, {:.0} lines a second: server {:.1} us of processor time a line, {:.1} % of a core",
        heard / seconds,
        ticks as f64 * 10_000.0 / heard,
        ticks as f64 / seconds,
    );
    let (code, said) = fleet.ended_within(PATIENCE);
    assert_eq!(code, 0, "{said}");
    repository.check(&ids, TESTS);
    for worker in repository.json("ps").as_array().expect("workers") {
        let name = worker["name"].as_str().expect("a name");
        let log = repository.ok(&format!("logs {name} --raw"));
        assert_eq!(log.matches("\"line ").count(), lines, "{name}:\n{log}");
    }
}

/// How many lines all agents have printed so far.
fn printed(repository: &Repository) -> usize {
    let steps = std::fs::read_dir(repository.state("steps")).into_iter().flatten().flatten();
    let lines = |out: Vec<u8>| out.iter().filter(|&&byte| byte == b'\n').count();
    steps.filter_map(|step| std::fs::read(step.path().join("out")).ok()).map(lines).sum()
}
