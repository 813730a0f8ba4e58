use super::{Repository, TESTS};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A life that needs every kind of effect: calls that are gated, a failing step, an outage, a kill by a person.
const SCENARIO: &str = r#"
[[scenario]]
task = "k-1"
[[scenario.step]]
do = [ { write = "one.check", text = "true\n" }, { commit = "One" }, { done = true } ]

[[scenario]]
task = "k-2"
[[scenario.step]]
do = [ { write = "two.check", text = "true\n" }, { fail = 1, stderr = "out of luck" } ]
[[scenario.step]]
do = [ { outage = 529 } ]
[[scenario.step]]
do = [ { commit = "Two" }, { done = true } ]

[[scenario]]
task = "k-3"
[[scenario.step]]
do = [ { write = "three.check", text = "true\n" }, { hang = true } ]
[[scenario.step]]
do = [ { write = "three.check", text = "true\n" }, { commit = "Three" }, { done = true } ]
"#;

const SETTINGS: &str =
    "\n[limits]\nhealth_poll = \"1s\"\n\n[hooks]\nlanded = 'echo \"$ADJ_TASK\" >> .git/landed'\n";
const TICKETS: [&str; 3] = ["k-1", "k-2", "k-3"];
/// A life that takes longer hangs.
const LIFE: Duration = Duration::from_secs(120);
/// Lives at once: most of each is waiting.
const AT_ONCE: usize = 4;

/// The effects of agents that speak, which no task has.
pub const IN_ROOMS: [&str; 4] = ["start_reply", "end_reply", "answer_in_reply", "tell_in_reply"];

/// The effects that only the architect has.
pub const OF_ARCHITECT: [&str; 1] = ["prepare_seat"];

/// SIGKILL before and after each kind of effect is carried out. After the next `adj run` it is as if nothing had
/// happened.
/// Slow: a fleet is run and killed once for each moment around an effect.
#[test]
fn a_fleet_that_is_killed_around_any_effect_ends_as_if_nothing_had_happened() {
    let elsewhere = |kind: &&&str| IN_ROOMS.contains(kind) || OF_ARCHITECT.contains(kind);
    let at_work = kernel::Effect::KINDS.iter().filter(|kind| !elsewhere(kind));
    let all = at_work.flat_map(|kind| [(*kind, "before"), (*kind, "after")]);
    live_all("", &all.collect());
}

/// The same with worktrees of the user's own repository, for the effects that leave something else behind there.
/// Slow: a fleet is run and killed once for each moment around an effect.
#[test]
fn a_fleet_with_worktrees_that_is_killed_ends_as_if_nothing_had_happened() {
    let kinds = ["prepare_tree", "run_gate", "save_work", "move_main", "remove_tree", "delete_branch"];
    live_all("isolation = \"worktree\"\n", &kinds.into_iter().map(|kind| (kind, "after")).collect());
}

/// A life for each of these moments, with these settings of the fleet.
fn live_all(fleet: &str, all: &BTreeSet<(&'static str, &'static str)>) {
    let (lives, visited) = (Mutex::new(all.clone()), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = lives.lock().expect("nobody failed").pop_first();
                    let Some((kind, moment)) = next else { return };
                    if live(kind, moment, fleet) {
                        visited.lock().expect("nobody failed").insert((kind, moment));
                    }
                }
            });
        }
    });
    assert_eq!(visited.into_inner().expect("nobody failed"), *all, "every kind of effect was visited");
}

/// Plays a life with a crash in it. True: it came to the crash.
fn live(kind: &str, moment: &str, fleet: &str) -> bool {
    let name = format!("kill-{kind}-{moment}{}", if fleet.is_empty() { "" } else { "-otherwise" });
    let repository = Repository::new(&name, SCENARIO, &TICKETS);
    let settings = repository.read("adjutant.toml").replace("[fleet]\n", &format!("[fleet]\n{fleet}"));
    repository.write("adjutant.toml", &(settings + SETTINGS));
    repository.commit("Settings");
    let at = format!("{kind}:{moment}");
    let mut killed = false;
    // With the crash until it came, then without.
    loop {
        let mut command = repository.command("run");
        if !killed {
            command.env("ADJ_CRASH_AT", &at);
        }
        let log = std::fs::File::create(repository.dir().join(".git/run.log")).expect("a file");
        let mut fleet =
            command.stdout(log.try_clone().expect("a file")).stderr(log).spawn().expect("adj runs");
        let status = attend(&repository, &mut fleet);
        killed |= status.signal() == Some(9);
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "{at}: {status}\n{}", repository.read(".git/run.log"));
    }
    // What was left when it was stopped.
    let mut rest = repository.command("run --until-idle");
    if !killed {
        rest.env("ADJ_CRASH_AT", &at);
    }
    if rest.output().expect("adj runs").status.signal() == Some(9) {
        killed = true;
        let ran = repository.adj("run --until-idle");
        assert_eq!(ran.code, 0, "{at}:\n{}{}", ran.stdout, ran.stderr);
    }
    repository.check(&TICKETS, TESTS);
    for task in TICKETS {
        let landed = repository.git(&format!("log --first-parent --format=%s --grep=^{task}: main"));
        assert_eq!(landed.lines().count(), 1, "{at}: {task} landed once:\n{landed}");
    }
    let told = repository.read(".git/landed");
    assert_eq!(told.lines().collect::<BTreeSet<_>>(), BTreeSet::from(TICKETS), "{at}: the hook ran for each");
    killed
}

/// What a person does meanwhile: ends the worker that hangs, gives its task to another, and stops when all is done.
fn attend(repository: &Repository, fleet: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + LIFE;
    let mut ended = false;
    loop {
        if let Some(status) = fleet.try_wait().expect("it is our child") {
            return status;
        }
        assert!(Instant::now() < deadline, "it hangs:\n{}", repository.read(".git/run.log"));
        let shown = repository.adj("task ls --all --json");
        let tasks: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        let status = |id: &str| {
            let task = tasks.as_array().into_iter().flatten().find(|task| task["id"] == id);
            task.and_then(|task| task["status"].as_str()).unwrap_or_default().to_owned()
        };
        if TICKETS.iter().all(|id| status(id) == "DONE") {
            repository.adj("stop");
        }
        let workers: Value = serde_json::from_str(&repository.adj("ps --json").stdout).unwrap_or_default();
        let workers = workers.as_array().cloned().unwrap_or_default();
        let named = |worker: &Value| worker["name"].as_str().unwrap_or_default().to_owned();
        match status("k-3").as_str() {
            // It has written its file, and hangs.
            "IN_PROGRESS" if !ended => {
                let hangs = workers.iter().find(|worker| worker["task"] == "k-3" && worker["turn"] == 1);
                if let Some(worker) = hangs.filter(|worker| worker["status"] == "working") {
                    repository.adj("task comment k-3 what-takes-so-long");
                    ended = repository.adj(&format!("kill {}", named(worker))).code == 0;
                }
            }
            "BLOCKED" => {
                if let Some(worker) = workers.iter().find(|worker| worker["status"] == "idle") {
                    repository.adj(&format!("assign {} k-3", named(worker)));
                    ended = true;
                }
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
