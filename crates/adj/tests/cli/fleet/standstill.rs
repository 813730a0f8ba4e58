//! A fleet that stands still says why: in its terminal, in a server's log, by the hook and by webhooks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::wait;
use super::policies::{DONE, WRITE, scenario};
use crate::ops::serve;
use serde_json::Value;

/// What every notice is told, in a line each.
const TELLS: &str = r#"[hooks]
notify = 'echo "$ADJ_NOTIFY|$ADJ_SEVERITY|$ADJ_REASON|$ADJ_TASK|$ADJ_REQUEST|$ADJ_CHANNEL|$ADJ_ID|$ADJ_MESSAGE" >> "$ADJ_PROJECT/.git/adjutant/told"'
"#;
const SOON: &str = "[limits]\nstandstill = \"1s\"\n";
const ASKS: &str = r#"{ ask = "Bash", argument = "git push origin main" }"#;

impl Repository {
    /// With these sections in its settings.
    fn and(self, sections: &str) -> Repository {
        self.write("adjutant.toml", &format!("{}\n{sections}", self.read("adjutant.toml")));
        self.commit("More settings");
        self
    }

    /// What the hook was told of this kind, as soon as there is so much of it.
    fn told(&self, kind: &str, count: usize) -> Vec<Vec<String>> {
        wait(&format!("{count} notices of {kind}"), || {
            let told = self.read(&self.state("told"));
            let fields = |line: &str| line.splitn(8, '|').map(str::to_owned).collect::<Vec<_>>();
            let told: Vec<_> = told.lines().map(fields).filter(|fields| fields[0] == kind).collect();
            (told.len() >= count).then_some(told)
        })
    }
}

/// The one question that is open.
fn question(repository: &Repository) -> String {
    repository.json("approvals")[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_fleet_whose_only_agent_asks_says_what_it_waits_for_when_the_settings_say_and_once() {
    let asks = scenario(&[&format!("{ASKS}, {WRITE}, {ASKS}, {DONE}")]);
    let others = scenario(&[&format!("{WRITE}, {DONE}")]);
    let text = format!("{}{others}", asks.replace("[[scenario]]\n", "[[scenario]]\ntask = \"t-1\"\n"));
    let repository = Repository::new("still-asks", &text, &["t-1"]);
    repository.ticket("t-2", &["t-1"]);
    let repository = repository.and(&format!("{TELLS}[limits]\nstandstill = \"1s\"\n"));
    let fleet = repository.start("run");
    fleet.wait_for("the fleet makes no progress: 1 item waits");
    let first = question(&repository);
    let line = format!("holds up t-1, t-2): adj approve {first}, or adj deny {first} --note TEXT");
    fleet.wait_for(&line);
    assert!(fleet.lines().contains("(approval: waits for you for "), "{}", fleet.lines());
    let told = repository.told("standstill", 1);
    assert_eq!(told[0][..6], ["standstill", "urgent", "approval", "", "", ""], "{told:?}");
    assert!(
        told[0][7].starts_with("the fleet makes no progress: 1 item waits: t-1: The agent asks"),
        "{told:?}"
    );
    assert!(told[0][7].ends_with(&line), "{told:?}");
    assert_eq!(told[0][6].len(), 32, "{told:?}");
    let age = told[0][7].split_once("waits for you for ").and_then(|(_, age)| age.split_once(" s, "));
    let age: u32 = age.and_then(|(age, _)| age.parse().ok()).unwrap();
    assert!(age < 30, "the settings say a second, and without them it is a minute: {told:?}");

    // It goes on, and stands still for another question.
    repository.ok(&format!("approve {first}"));
    let told = repository.told("standstill", 2);
    assert_ne!(told[0][6], told[1][6], "another standstill has another id");
    repository.ok(&format!("approve {}", question(&repository)));
    fleet.wait_for("t-2 landed");
    let lines = fleet.stop();
    assert_eq!(lines.matches("the fleet makes no progress").count(), 2, "{lines}");
    assert_eq!(repository.told("standstill", 2).len(), 2);
}

#[test]
fn work_that_waits_for_a_task_that_nobody_knows_is_said_too() {
    let repository = Repository::new("still-dead", &scenario(&[&format!("{WRITE}, {DONE}")]), &[]);
    repository.ticket("t-1", &["t-gone"]);
    let repository = repository.and(SOON);
    let fleet = repository.start("run");
    fleet.wait_for("t-1 waits for t-gone, which does not exist (dead dependency: waits for you");
    fleet.wait_for("holds up t-1): adj why t-1, or adj task dep rm t-1 t-gone");
    fleet.stop();
}

/// What is left to do without anybody is done first, and nothing is said of it.
#[test]
fn a_fleet_that_is_to_end_when_it_is_idle_does_not_wait_to_say_it() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("still-idle", &text, &["t-1"]).and("[limits]\nstandstill = \"1h\"\n");
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let (code, lines) = repository.begin("run --until-idle").ended();
    assert_eq!(code, 1, "{lines}");
    assert!(!lines.contains("makes no progress"), "{lines}");
}

/// The moment is in the log: a fleet that was killed before it said anything is followed by one that does.
#[test]
fn a_standstill_is_said_by_the_fleet_after_one_that_was_killed_and_by_the_hook_once() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("still-killed", &text, &["t-1"]).and(TELLS);
    repository.set(&[
        ("review = \"auto\"", "review = \"human\""),
        ("[test]", "[limits]\nstandstill = \"1h\"\n[test]"),
    ]);
    let fleet = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    let set = |repository: &Repository| {
        let log = repository.log();
        let timer = |record: &&Value| record["data"]["what"]["timer"]["timer"] == "standstill";
        log.iter().filter(timer).count()
    };
    wait("the timer", || (set(&repository) == 1).then_some(()));
    fleet.kill();
    // It was due an hour later; by the clock of the next fleet that hour is over.
    let shift = repository.state("clock-shift");
    std::fs::write(&shift, "3600000").unwrap();
    let fleet = repository.begin_with("run", &[("ADJ_CLOCK_SHIFT", &shift)]);
    fleet.wait_for("the fleet makes no progress: 1 item waits");
    fleet.wait_for("t-1 is ready: Do t-1 (review: waits for you");
    assert_eq!(set(&repository), 1, "it is the one that the first fleet has set");
    let told = repository.told("standstill", 1);
    fleet.stop();

    // Whoever starts it anew is told in their terminal; the hook has said it already.
    repository.set(&[("standstill = \"1h\"", "standstill = \"1s\"")]);
    let fleet = repository.start("run");
    fleet.wait_for("the fleet makes no progress: 1 item waits");
    repository.ok("review t-1 --approve");
    fleet.wait_for("t-1 landed");
    fleet.stop();
    assert_eq!(repository.told("standstill", 1), told);
}

#[test]
fn a_server_says_in_its_log_that_its_fleet_stands_still() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("still-serve", &text, &["t-1"]).and(SOON);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let server = repository.begin("serve --port 0 --run");
    server.wait_for("the fleet makes no progress: 1 item waits");
    server.wait_for("t-1 is ready: Do t-1 (review: waits for you");
    drop(server);

    let server = serve(&repository, "--run --log json");
    let said = wait("a line of JSON", || {
        let lines = repository.read(".git/server.err");
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["event"] == "standstill")
    });
    assert!(said["message"].as_str().unwrap().contains("adj review t-1"), "{said}");
    assert!(said["project"].is_string() && said["timestamp"].is_string(), "{said}");
    drop(server);
}

/// The hook is told which question and which room it is about.
#[test]
fn the_hook_knows_which_request_and_which_channel_waits() {
    let asks = r#"{ run = 'ADJ ask "Tabs or spaces?"; true' }, { say = "more" }"#;
    let text = scenario(&[asks]).replace("ADJ", env!("CARGO_BIN_EXE_adj"));
    let repository = Repository::new("still-knows", &text, &["t-1"]).and(TELLS);
    repository
        .write("anna.toml", "[[scenario]]\ntask = \"room/*\"\n[[scenario.step]]\ndo = [ { hang = true } ]\n");
    let repository = repository.and("[agents.anna]\nadapter = \"script\"\ncommand = [\"anna.toml\"]\n");
    let fleet = repository.start("run");
    let told = repository.told("question", 1);
    let request = repository.json("requests")[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(told[0][3..6], ["t-1", &*request, ""], "{told:?}");
    let created = repository.command("channel create talk --topic Tea? --timeout 10m --add anna").output();
    assert!(created.unwrap().status.success());
    wait("anna's turn", || (repository.json("channel status talk")["turn"].is_object()).then_some(()));
    repository.ok("turn wait talk --note the-build");
    let told = repository.told("turn", 1);
    assert_eq!(told[0][3..6], ["", "", "talk"], "{told:?}");
    drop(fleet);
}

/// A try that comes to the same is no news.
#[test]
fn a_checkout_in_the_way_is_told_once_however_often_the_landing_is_tried() {
    let text =
        scenario(&[r#"{ write = "base.txt", text = "better\n" }, { commit = "Better" }, { done = true }"#]);
    let repository = Repository::new("still-checkout", &text, &["t-1"]);
    repository.write("base.txt", "base\n");
    repository.commit("A file");
    let repository = repository.and(&format!("{TELLS}[limits]\ncheckout = \"1s\"\nstandstill = \"2s\"\n"));
    repository.write("base.txt", "by hand\n");
    let fleet = repository.start("run");
    wait("a third try", || (repository.events("landing_started") >= 3).then_some(()));
    let told = repository.told("standstill", 1);
    assert_eq!(told[0][2], "checkout_in_the_way", "{told:?}");
    wait("two more", || (repository.events("landing_started") >= 5).then_some(()));
    assert_eq!(repository.told("checkout_in_the_way", 1).len(), 1);
    assert_eq!(repository.told("standstill", 1).len(), 1);
    fleet.stop();
}
