//! What goes wrong in agents, tests, trees, checkouts and on disks while a fleet is at work. In each case the run ends as
//! if nothing had happened, or with a person asked by name.

use super::background::{end_all, keepers, kill, running, wait};
use super::{Repository, SETTINGS, TESTS};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A repository whose settings are changed like this: each text of the usual ones by another. And with these tests.
pub fn repository(
    name: &str,
    changes: &[(&str, &str)],
    tests: &str,
    scenario: &str,
    tickets: &[&str],
) -> Repository {
    let repository = Repository::new(name, scenario, tickets);
    let mut settings = SETTINGS.to_owned();
    for (from, to) in changes {
        assert!(settings.contains(from), "`{from}` is in the settings");
        settings = settings.replace(from, to);
    }
    repository.write("adjutant.toml", &settings);
    repository.write("tests.sh", tests);
    repository.write(".gitignore", "*.only\n");
    if !repository.git("status --porcelain").is_empty() {
        repository.commit("Settings and tests");
    }
    repository
}

/// The tree of a task, once it is there.
#[track_caller]
pub fn tree(repository: &Repository, task: &str) -> PathBuf {
    wait(&format!("a tree of {task}"), || {
        let trees = std::fs::read_dir(repository.trees()).ok()?.flatten();
        // One that is still being made has a dot before its name.
        let whole = trees.map(|tree| tree.path()).filter(|path| !path.to_string_lossy().contains("/."));
        whole.into_iter().find(|path| path.to_string_lossy().ends_with(&format!("-{task}")))
    })
}

/// Who started a process.
fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("it has a parent");
    line.trim().parse().expect("a number")
}

/// Lines of a file in main.
fn in_main(repository: &Repository, path: &str) -> String {
    repository.git(&format!("show main:{path}"))
}

/// Writes down that it was begun, waits in the middle for a file, and goes on. It asks nobody: alone it would be denied.
const WAITS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "echo begun >> {task}.begun", quiet = true },
  { turn = "before the middle" },
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done; rm {task}.go {task}.middle", quiet = true },
  { turn = "past the middle" },
  { write = "{task}.check", text = "true\n", quiet = true },
  { commit = "Do {task}", quiet = true },
  { run = "touch .git/{task}.past", quiet = true },
  { done = true },
]
"#;

/// Waits until an agent of `WAITS` is in the middle of its step.
#[track_caller]
fn middle(repository: &Repository, task: &str) -> PathBuf {
    let tree = tree(repository, task);
    wait("the middle of a step", || tree.join(format!("{task}.middle")).exists().then_some(()));
    tree
}

fn go(tree: &Path, task: &str) {
    std::fs::write(tree.join(format!("{task}.go")), "").expect("a file");
}

/// The step outlives its server, and whoever comes next reads on: no line is lost, and no agent is begun twice.
#[test]
fn a_server_that_is_killed_in_the_middle_of_a_step_finds_it_again() {
    let repository = repository("server-killed", &[], TESTS, WAITS, &["f-1", "f-2"]);
    let fleet = repository.begin("run --until-idle");
    let (one, two) = (middle(&repository, "f-1"), middle(&repository, "f-2"));
    let before = keepers(&repository);
    fleet.kill();
    // One comes to its end while nobody listens, the other is still in the middle.
    go(&one, "f-1");
    wait("the end of a step", || one.join(".git/f-1.past").exists().then_some(()));
    assert_eq!(keepers(&repository), before, "the keepers go on");
    let fleet = repository.begin("run --until-idle");
    fleet.wait_for("f-1: the tests pass");
    go(&two, "f-2");
    fleet.done();
    repository.check(&["f-1", "f-2"], TESTS);
    for task in ["f-1", "f-2"] {
        assert_eq!(in_main(&repository, &format!("{task}.begun")), "begun", "it was begun once");
    }
    for worker in ["A", "B"] {
        let said = repository.ok(&format!("logs {worker}"));
        let each = |text: &str| said.matches(text).count();
        assert_eq!((each("before the middle"), each("past the middle")), (1, 1), "{said}");
    }
}

/// A keeper and an agent that are killed from outside in the middle of a step: the step is made again, in the same tree.
#[test]
fn a_killed_keeper_and_a_killed_agent_cost_a_step_and_no_work() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.begun", text = "kept\n", quiet = true },
  { run = "test -e .git/again || { touch .git/again; setsid sleep 1000{task}7 & touch {task}.middle; sleep 1000{task}8; }", quiet = true },
  { run = "rm -f {task}.middle", quiet = true },
  { write = "{task}.check", text = "true\n" },
  { done = true },
]
[[scenario.step]]
do = [ { run = "rm -f {task}.middle", quiet = true }, { write = "{task}.check", text = "true\n" }, { done = true } ]
"#;
    // `sleep` takes numbers only.
    let tickets = ["1", "2"];
    let repository = repository("keeper-killed", &[], TESTS, scenario, &tickets);
    let fleet = repository.begin("run --until-idle");
    for task in tickets {
        middle(&repository, task);
    }
    // The keeper of the one, the agent of the other.
    let of = |task: &str| {
        let scenario = format!("{}/", repository.state(&format!("private/{task}")).display());
        running(&scenario).into_iter().next().expect("it plays")
    };
    kill(parent(of("1")));
    kill(of("2"));
    fleet.done();
    repository.check(&tickets, TESTS);
    for task in tickets {
        assert_eq!(in_main(&repository, &format!("{task}.begun")), "kept");
        for number in [7, 8] {
            assert_eq!(running(&format!("sleep 1000{task}{number}")), [0; 0], "nothing of it runs");
        }
    }
}

/// A program that quits at once has begun its session; to begin it again would be refused, and cost one step more.
#[test]
fn a_step_that_ends_before_its_first_turn_goes_on_in_its_session() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { fail = 1, stderr = "not today" } ]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "It" }, { done = true } ]
"#;
    let repository = repository("no-turn", &[], TESTS, scenario, &["t-1"]);
    let said = repository.begin("run --until-idle").done();
    assert_eq!(said.matches("failed: ").count(), 1, "{said}");
    assert!(!said.contains("lost its session") && !said.contains("in use"), "{said}");
    repository.check(&["t-1"], TESTS);
}

/// Whatever an agent's processes do to get away, at the end of the step they are gone.
#[test]
fn agents_that_hang_quit_crash_or_leave_daemons_end_done_and_leave_nothing_running() {
    let scenario = r#"
[[scenario]]
task = "hangs"
[[scenario.step]]
do = [
  { run = "test -e .git/tried || { touch .git/tried; sleep 94731; }", quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "It" }, { done = true },
]

[[scenario]]
task = "deaf"
[[scenario.step]]
do = [
  { run = "test -e .git/tried || { touch .git/tried; trap '' TERM INT HUP; while :; do sleep 94732; done; }", quiet = true },
  { write = "{task}.check", text = "true\n" }, { done = true },
]

[[scenario]]
task = "quits"
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { fail = 0 } ]
[[scenario.step]]
do = [ { say = "Not yet." } ]
[[scenario.step]]
do = [ { done = true } ]

[[scenario]]
task = "crashes"
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { crash = true } ]
[[scenario.step]]
do = [ { commit = "It" }, { done = true } ]

[[scenario]]
task = "daemons"
[[scenario.step]]
do = [
  { daemon = "sleep 94733" },
  { run = "setsid sleep 94734 >/dev/null 2>&1 &", quiet = true },
  { run = "(setsid sh -c 'cd /; env -i sleep 94735 & env -i setsid sleep 94736 &' >/dev/null 2>&1 &)", quiet = true },
  { run = "trap '' TERM HUP; nohup sh -c 'trap \"\" TERM HUP; while :; do sleep 94737; done' >/dev/null 2>&1 &", quiet = true },
  { write = "{task}.check", text = "true\n" }, { done = true },
]
"#;
    let tickets = ["hangs", "deaf", "quits", "crashes", "daemons"];
    let changes = [("workers = 2", "workers = 5\nstep_timeout = \"6s\"")];
    let repository = repository("agents-wrong", &changes, TESTS, scenario, &tickets);
    let said = repository.begin("run --until-idle").done();
    repository.check(&tickets, TESTS);
    for task in ["hangs", "deaf"] {
        let again = format!("{task}: the step hung or lost its session; retried with a new session");
        assert_eq!(said.matches(&again).count(), 1, "{said}");
    }
    for number in 94731..=94737 {
        assert_eq!(running(&format!("sleep {number}")), [0; 0], "sleep {number} is gone");
    }
}

/// A test run that hangs, that leaves processes, or that is killed says no, and the agent is told why.
#[test]
fn tests_that_hang_fork_or_are_killed_leave_nothing_and_are_told_to_the_agent() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "cp {task}.how how.check", quiet = true }, { commit = "How" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [
  { write = "{task}.told", text = "{prompt}" }, { delete = "how.check" }, { write = "{task}.check", text = "true\n" },
  { commit = "Rightly" }, { done = true },
]
"#;
    let tickets = ["hangs", "forks", "killed"];
    let changes = [("timeout = \"1m\"", "timeout = \"4s\""), ("workers = 2", "workers = 3")];
    let repository = repository("tests-wrong", &changes, TESTS, scenario, &[]);
    repository.write("hangs.how", "sleep 84731\n");
    repository
        .write("forks.how", "setsid sleep 84732 >/dev/null 2>&1 & env -i setsid sleep 84733 & exit 1\n");
    repository.write("killed.how", "kill -KILL $PPID $$\n");
    for id in tickets {
        repository.ticket(id, &[]);
    }
    repository.commit("Tickets");
    repository.begin("run --until-idle").done();
    repository.check(&tickets, TESTS);
    for (task, why) in [("hangs", "took longer than 4 s"), ("forks", "exit code 1"), ("killed", "137")] {
        let told = in_main(&repository, &format!("{task}.told"));
        assert!(told.contains(why), "{told}");
    }
    for number in 84731..=84733 {
        assert_eq!(running(&format!("sleep {number}")), [0; 0], "sleep {number} is gone");
    }
}

/// Whatever an agent does to its own git directory, what it committed lands, and nothing else moves.
#[test]
fn agents_that_ruin_their_own_git_directory_lose_no_work() {
    let acts = [
        (
            "branch",
            "git checkout -q --detach && git branch -q -D $(git for-each-ref --format='%(refname:short)' refs/heads)",
        ),
        (
            "detached",
            "git checkout -q --detach && echo more > {task}.more && git add . && git commit -qm More",
        ),
        ("amended", "echo more > {task}.more && git add . && git commit -q --amend -m Amended"),
        (
            "rewritten",
            "git reset -q --soft HEAD~1 && git commit -qm Anew && git commit -q --allow-empty -m Empty",
        ),
        ("collected", "git reflog expire --all --expire=now && git gc -q --prune=now"),
        (
            "mainly",
            "git checkout -q -B main && echo more > {task}.more && git add . && git commit -qm 'On main'",
        ),
        ("junk", r"printf 'no\000thing\033[2J' > .git/HEAD"),
        ("headless", "rm .git/HEAD"),
        ("locked", "touch .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock .git/packed-refs.lock"),
        ("gone", "echo more > {task}.more && git add . && git commit -qm More && rm -rf .git"),
    ];
    let mut scenario = String::new();
    for (task, act) in acts {
        let begin = r#"{ write = "{task}.check", text = "true\n", quiet = true }, { commit = "First", quiet = true }"#;
        let _ = write!(
            scenario,
            "[[scenario]]\ntask = \"{task}\"\n[[scenario.step]]\ndo = [ {begin}, {{ say = \"one\" }} ]\n\
             [[scenario.step]]\ndo = [ {{ run = '''{act}''', quiet = true }}, {{ say = \"two\" }} ]\n\
             [[scenario.step]]\ndo = [ {{ done = true }} ]\n"
        );
    }
    let tickets = acts.map(|(task, _)| task);
    let repository = repository("git-ruined", &[("workers = 2", "workers = 5")], TESTS, &scenario, &tickets);
    let said = repository.begin("run --until-idle").done();
    for task in tickets {
        assert!(
            repository.dir().join(format!("{task}.check")).exists(),
            "the work of {task} landed:\n{said}"
        );
    }
    for task in ["detached", "amended", "mainly", "gone"] {
        assert_eq!(in_main(&repository, &format!("{task}.more")), "more");
    }
    repository.check(&tickets, TESTS);
}

/// A tree that a person deletes or switches is made anew on what was taken from it last.
#[test]
fn a_tree_that_is_deleted_or_switched_by_hand_is_made_again() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.first", text = "kept\n", quiet = true }, { commit = "First of {task}", quiet = true }, { say = "one" } ]
[[scenario.step]]
do = [
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; [ -e {task}.middle ] || exit 1; done; rm -f {task}.go {task}.middle", quiet = true },
  { write = "{task}.check", text = "true\n", quiet = true }, { commit = "Second of {task}", quiet = true }, { done = true },
]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n", quiet = true }, { commit = "Third of {task}", quiet = true }, { done = true } ]
"#;
    let tickets = ["working", "idle", "switched"];
    let repository =
        repository("trees-by-hand", &[("workers = 2", "workers = 3")], TESTS, scenario, &tickets);
    let fleet = repository.begin("run --until-idle");
    let trees = tickets.map(|task| middle(&repository, task));
    delete(&trees[0]);
    // A person's own git, in the tree.
    let mut git = Command::new("git");
    git.args(["checkout", "--quiet", "-b", "elsewhere", "origin/main"]).current_dir(&trees[2]);
    assert!(git.status().expect("git runs").success());
    fleet.kill();
    // Now without a server: the second goes with all that is in it.
    delete(&trees[1]);
    go(&trees[2], "switched");
    repository.begin("run --until-idle").done();
    repository.check(&tickets, TESTS);
    for task in ["working", "idle"] {
        assert_eq!(in_main(&repository, &format!("{task}.first")), "kept");
    }
    let everywhere = repository.git("log --all --format=%s");
    assert!(everywhere.contains("First of switched"), "it is kept somewhere:\n{everywhere}");
}

/// Tests that wait, when they are those of a merge, until somebody lets them go on. Elsewhere they leave an ignored file that
/// only that tree has, so that the merge is tested although the gate has seen the same files.
const SLOW: &str = "case $PWD in *landing*) if [ -e f-1.check ] || [ -e other.check ]; then touch begun; while [ ! -e go ]; do sleep 0.05; done; fi;; *) touch \"${PWD##*/}.only\";; esac\n\
for check in *.check; do sh \"$check\" || { echo \"FAIL $check\"; exit 1; }; done\n";

const ONE: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// The folder in which a merge is being tested, once it is.
#[track_caller]
fn landing(repository: &Repository) -> PathBuf {
    let folder = repository.tree("landing");
    wait("a merge that is tested", || {
        (folder.join("begun").exists() && !folder.join("go").exists()).then(|| folder.clone())
    })
}

/// Main is what was tested, whatever a person does to it in between.
#[test]
fn a_main_that_the_user_moves_during_a_landing_is_tested_anew() {
    type Act = fn(&Repository);
    let acts: [(&str, Act); 3] = [
        ("user-commits", |repository| {
            repository.write("users.txt", "mine\n");
            repository.commit("The user's own");
        }),
        ("user-resets", |repository| {
            repository.git("reset --quiet --hard HEAD~1");
            repository.write("users.txt", "mine\n");
            repository.commit("Another history");
        }),
        ("user-switches", |repository| {
            repository.git("checkout --quiet -b elsewhere");
            repository.write("users.txt", "mine\n");
            repository.commit("On another branch");
        }),
    ];
    for (name, act) in acts {
        let repository = repository(name, &[], SLOW, ONE, &["f-1"]);
        repository.write("notes.txt", "to be rewound\n");
        repository.commit("Something to go back from");
        let fleet = repository.begin("run --until-idle");
        let folder = landing(&repository);
        act(&repository);
        let before = repository.git("rev-parse main");
        std::fs::write(folder.join("go"), "").expect("a file");
        if name != "user-switches" {
            fleet.wait_for("main moved meanwhile; merged and tested again");
            std::fs::write(landing(&repository).join("go"), "").expect("a file");
        }
        fleet.done();
        if name == "user-switches" {
            assert_eq!(
                repository.git("symbolic-ref --short HEAD"),
                "elsewhere",
                "they are left where they are"
            );
            assert_eq!(repository.git("status --porcelain"), "");
            assert!(!repository.dir().join("f-1.check").exists(), "and so are their files");
            repository.git("checkout --quiet main");
        }
        let kept = repository.git_says(&format!("merge-base --is-ancestor {before} main"));
        assert!(kept, "{name}: nothing of it is lost");
        if name == "user-resets" {
            assert!(!repository.dir().join("notes.txt").exists(), "what was taken off main stays off");
            repository.check_but_for_tips(&["f-1"], TESTS);
        } else {
            repository.check(&["f-1"], TESTS);
        }
    }
}

/// What was found green is the merge of then. Who is killed before telling it, and finds main moved, tests what it lands.
#[test]
fn a_merge_that_was_tested_for_a_killed_server_does_not_stand_for_another_one() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [ { run = "git mv {task}.check other.check" }, { commit = "Otherwise" }, { done = true } ]
"#;
    for ended in [true, false] {
        let repository = repository(&format!("stale-green-{ended}"), &[], SLOW, scenario, &["f-1"]);
        let fleet = repository.begin("run --until-idle");
        let folder = landing(&repository);
        fleet.kill();
        if ended {
            std::fs::write(folder.join("go"), "").expect("a file");
            wait("the end of the tests", || keepers(&repository).is_empty().then_some(()));
        } else {
            // They wait on, and the next ones say so themselves.
            std::fs::remove_file(folder.join("begun")).expect("they have begun");
        }
        // Green by itself, and green without it; not with it.
        repository.write("users.check", "test ! -e f-1.check\n");
        repository.commit("The user's own");
        let fleet = repository.begin("run --until-idle");
        // The merge is red, main is tested, the merge is tested again; what the agent makes of it is tested once.
        for _ in 0..3 {
            std::fs::write(landing(&repository).join("go"), "").expect("a file");
        }
        fleet.done();
        repository.check(&["f-1"], TESTS);
    }
}

/// What tests leave in the tree is no work of the agent's, also where they outlived the server that began them.
#[test]
fn what_a_gates_tests_write_is_not_committed_by_the_server_that_finds_them_again() {
    let tests = format!(
        "case $PWD in *-f-1) touch begun; while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.05; done;; esac\n{TESTS}"
    );
    let repository = repository("gate-killed", &[], &tests, ONE, &["f-1"]);
    let fleet = repository.begin("run --until-idle");
    let tree = tree(&repository, "f-1");
    wait("tests of the gate", || tree.join("begun").exists().then_some(()));
    fleet.kill();
    let fleet = repository.begin("run --until-idle");
    let temp = repository.temp("f-1");
    std::fs::write(temp.join("go"), "").expect("a file");
    fleet.done();
    repository.check(&["f-1"], TESTS);
    assert!(!repository.git_says("cat-file -e main:begun"), "{}", repository.git("log --stat main"));
}

/// A main that goes elsewhere while an agent works is what its work is merged with.
#[test]
fn a_main_that_is_forced_elsewhere_during_a_task_is_what_the_work_lands_on() {
    let repository = repository("user-forces", &[], TESTS, WAITS, &["f-1"]);
    repository.write("notes.txt", "to be rewound\n");
    repository.commit("Something to go back from");
    let fleet = repository.begin("run --until-idle");
    let tree = middle(&repository, "f-1");
    repository.git("reset --quiet --hard HEAD~1");
    repository.write("other.txt", "another history\n");
    repository.commit("Another history");
    let forced = repository.git("rev-parse main");
    go(&tree, "f-1");
    fleet.done();
    assert!(repository.git_says(&format!("merge-base --is-ancestor {forced} main")));
    assert!(!repository.dir().join("notes.txt").exists(), "what was taken off main stays off");
    repository.check_but_for_tips(&["f-1"], TESTS);
}

/// What a person has not committed is never overwritten: the landing waits, says for what, lets others by, and goes on
/// by itself.
#[test]
fn a_landing_waits_for_local_changes_in_its_files_and_for_nothing_else() {
    let scenario = r#"
[[scenario]]
task = "same"
[[scenario.step]]
do = [ { write = "base.check", text = "true # better\n" }, { commit = "Better" }, { done = true } ]
[[scenario]]
task = "new"
[[scenario.step]]
do = [ { write = "new.check", text = "true\n" }, { commit = "New" }, { done = true } ]
[[scenario]]
task = "other"
[[scenario.step]]
do = [ { write = "other.check", text = "true\n" }, { commit = "Other" }, { done = true } ]
"#;
    let changes = [("[test]", "[limits]\ncheckout = \"1s\"\n\n[test]"), ("workers = 2", "workers = 3")];
    let tickets = ["same", "new", "other"];
    let repository = repository("local-changes", &changes, TESTS, scenario, &tickets);
    repository.write("tests.sh", &format!("{TESTS}# by hand\n"));
    repository.write("base.check", "true # by hand\n");
    repository.write("new.check", "true # untracked\n");
    let fleet = repository.begin("run");
    fleet.wait_for("other landed");
    fleet.wait_for("same waits to land");
    fleet.wait_for("new waits to land");
    for (task, file) in [("same", "base.check"), ("new", "new.check")] {
        // Every second it is tried again, and for that moment nothing stands in its way.
        wait("what it waits for", || {
            let why = repository.ok(&format!("why {task}"));
            (why.contains(file) && why.contains("git -C") && why.contains("stash")).then_some(())
        });
    }
    assert_eq!(repository.read("base.check"), "true # by hand\n");
    assert_eq!(repository.read("new.check"), "true # untracked\n");
    repository.git("checkout -- base.check");
    fleet.wait_for("same landed");
    std::fs::remove_file(repository.dir().join("new.check")).expect("it goes");
    fleet.wait_for("new landed");
    assert_eq!(repository.git("status --porcelain"), "M tests.sh", "what was in nobody's way is as it was");
    repository.git("checkout -- tests.sh");
    repository.ok("stop");
    fleet.done();
    repository.check(&tickets, TESTS);
    let waited = repository.timers("checkout");
    assert!(
        !waited.is_empty() && waited.iter().all(|millis| *millis == 1000),
        "as long as was set: {waited:?}"
    );
}

/// Who clears the way as told and comes back does not have to wait for the next look at it.
#[test]
fn a_landing_that_waited_for_a_checkout_is_tried_when_the_fleet_is_started_again() {
    let scenario = ONE.replace("{task}.check", "base.check").replace("true\\n", "true # better\\n");
    let changes = [("[test]", "[limits]\ncheckout = \"10m\"\n\n[test]")];
    let repository = repository("cleared", &changes, TESTS, &scenario, &["f-1"]);
    repository.write("base.check", "true # by hand\n");
    let waits = repository.adj("run --until-idle");
    assert!(waits.stdout.contains("your checkout has local changes in base.check"), "{}", waits.stdout);
    repository.git("checkout -- base.check");
    repository.ok("run --until-idle");
    repository.check(&["f-1"], TESTS);
}

/// A lock in the user's git directory is the user's: it is waited for and named, and never taken away.
#[test]
fn the_index_locked_by_the_user_is_waited_for_and_never_unlocked() {
    land_past("index.lock");
}

#[test]
fn a_checkout_locked_by_the_user_is_waited_for_and_never_unlocked() {
    land_past("HEAD.lock");
}

#[test]
fn main_locked_by_the_user_is_waited_for_and_never_unlocked() {
    land_past("refs/heads/main.lock");
}

fn land_past(lock: &str) {
    let changes = [("[test]", "[limits]\ncheckout = \"1s\"\n\n[test]")];
    let name = format!("lock-{}", lock.replace('/', "-"));
    let repository = repository(&name, &changes, SLOW, ONE, &["f-1"]);
    let fleet = repository.begin("run");
    let folder = landing(&repository);
    let path = repository.dir().join(".git").join(lock);
    // Held by a process that lives, which is this one, and then left behind.
    let held = std::fs::File::create_new(&path).expect("nobody holds it");
    std::fs::write(folder.join("go"), "").expect("a file");
    fleet.wait_for(lock);
    drop(held);
    assert!(path.exists(), "it is not ours to remove");
    std::fs::remove_file(&path).expect("it goes");
    fleet.wait_for("f-1 landed");
    repository.ok("stop");
    fleet.done();
    repository.check(&["f-1"], TESTS);
}

/// A person who is rebasing main is on no branch, and would not be able to end it if main moved.
#[test]
fn a_rebase_of_main_is_waited_for() {
    let changes = [("[test]", "[limits]\ncheckout = \"1s\"\n\n[test]")];
    let repository = repository("rebase", &changes, SLOW, ONE, &["f-1"]);
    let fleet = repository.begin("run");
    let folder = landing(&repository);
    let rebase = ["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--root"];
    assert!(repository.git_command(&rebase).status().expect("git runs").success());
    std::fs::write(folder.join("go"), "").expect("a file");
    fleet.wait_for("waits to land: a rebase of main is under way in");
    repository.git("rebase --continue");
    fleet.wait_for("f-1 landed");
    repository.ok("stop");
    fleet.done();
    repository.check(&["f-1"], TESTS);
}

/// Whatever an agent prints is kept as it is, shown harmless, and makes nothing slow or wrong.
#[test]
fn output_of_any_kind_is_survived_and_shown_harmless() {
    let scenario = r#"
[[scenario]]
task = "long"
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { long_line = 100000000 }, { done = true } ]

[[scenario]]
task = "bytes"
[[scenario.step]]
do = [
  { raw = "ff fe 00 00 1b 5b 32 4a 07 c3 28 0a" }, { complain = "\u001b[2J\u001b]0;owned\u0007 not good" },
  { turn = "clear \u001b[2J\u001b]0;owned\u0007 and \u202e turn\u009b31m" },
  { write = "{task}.check", text = "true\n" }, { run = "printf 'escape \\033[2J \\377'" },
  { commit = "Esc \u001b[2Jape" }, { say = "over \u001b[2J and out" }, { done = true },
]

[[scenario]]
task = "flood"
[[scenario.step]]
do = [ { flood = 20000 }, { write = "{task}.check", text = "true\n" }, { done = true } ]

[[scenario]]
task = "quotes"
[[scenario.step]]
do = [ { write = "{task}.one", text = "one\n" }, { run = "echo DONE" }, { say = "> DONE" } ]
[[scenario.step]]
do = [ { write = "{task}.two", text = "two\n" }, { say = "```\nDONE\n```\nand\n\n    DONE\n\nDONE?\nnot DONE" } ]
[[scenario.step]]
do = [ { complain = "DONE" }, { raw = "44 4f 4e 45 0a" }, { write = "{task}.check", text = "true\n" }, { say = "No." } ]
[[scenario.step]]
do = [ { write = "{task}.end", text = "end\n" }, { done = true } ]
"#;
    let tickets = ["long", "bytes", "flood", "quotes"];
    let repository = repository("output", &[("workers = 2", "workers = 4")], TESTS, scenario, &tickets);
    let said = repository.begin("run --until-idle").done();
    repository.check(&tickets, TESTS);
    // Nothing was taken for the end before it came.
    assert_eq!(in_main(&repository, "quotes.end"), "end");
    let harmless = |what: &str, text: &str| {
        let bad =
            |c: &char| (c.is_control() && !"\n\t".contains(*c)) || ('\u{202a}'..='\u{202e}').contains(c);
        assert_eq!(text.chars().find(bad), None, "{what} shows it harmless:\n{text:?}");
    };
    harmless("adj run", &said);
    let mut all = String::new();
    for worker in ["A", "B", "C", "D"] {
        for line in [format!("peek {worker} -n 200"), format!("logs {worker}")] {
            let shown = repository.ok(&line);
            harmless(&line, &shown);
            all.push_str(&shown);
        }
    }
    for task in tickets {
        harmless("adj show", &repository.ok(&format!("task show {task}")));
    }
    assert!(all.contains("and out"), "it is shown all the same:\n{all}");
}

/// Conflicts and red merges go back to work; when the rounds are used up, a person is asked by name.
#[test]
fn conflicts_and_red_merges_go_back_to_work_until_the_rounds_are_used_up() {
    // All begin on the same main, and all but the first wait until it has landed.
    let scenario = r#"
[[scenario]]
task = "first"
[[scenario.step]]
do = [ { write = "shared.txt", text = "first\n" }, { commit = "First" }, { done = true } ]

# Conflicts, leaves markers, and does it rightly only then.
[[scenario]]
task = "second"
[[scenario.step]]
do = [ { write = "shared.txt", text = "second\n" }, { commit = "Second" }, { run = "touch second.middle; while [ ! -e second.go ]; do sleep 0.05; done; rm second.*", quiet = true }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [ { run = "git merge {main} || true", quiet = true }, { run = "git add --all; git commit -qm Markers", quiet = true }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "second.told", text = "{prompt}" }, { write = "shared.txt", text = "first\nsecond\n" }, { commit = "Without markers" }, { done = true } ]

# Never gets it right: it always conflicts.
[[scenario]]
task = "never"
[[scenario.step]]
do = [ { write = "shared.txt", text = "never\n" }, { commit = "Never" }, { run = "touch never.middle; while [ ! -e never.go ]; do sleep 0.05; done; rm never.*", quiet = true }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [ { append = "never.txt", text = "still not\n" }, { commit = "Still not" }, { done = true } ]

# Green alone, red when merged.
[[scenario]]
task = "red"
[[scenario.step]]
do = [ { write = "red.check", text = "! test -e shared.txt || test -e red.fixed\n" }, { commit = "Red" }, { run = "touch red.middle; while [ ! -e red.go ]; do sleep 0.05; done; rm red.middle red.go", quiet = true }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [ { write = "red.fixed", text = "{prompt}" }, { commit = "Fixed" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "red.fixed", text = "{prompt}" }, { commit = "Fixed" }, { done = true } ]
"#;
    let tickets = ["first", "second", "never", "red"];
    let changes = [("workers = 2", "workers = 4"), ("[test]", "[policy]\nmax_landing_rounds = 2\n\n[test]")];
    let repository = repository("rounds", &changes, TESTS, scenario, &tickets);
    let fleet = repository.begin("run --until-idle");
    let trees = ["second", "never", "red"].map(|task| (task, middle(&repository, task)));
    fleet.wait_for("first landed");
    for (task, tree) in &trees {
        go(tree, task);
    }
    let (code, said) = fleet.ended();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("never is BLOCKED (landing): adj why never"), "{said}");
    assert!(
        said.contains("red: tests failed when merged with main: FAIL red.check; sent back to work"),
        "{said}"
    );
    let told = in_main(&repository, "second.told");
    assert!(told.contains("conflict markers in the branch: shared.txt:"), "{told}");
    assert_eq!(repository.read("shared.txt"), "first\nsecond\n");
    let why = repository.ok("why never");
    assert!(why.contains("shared.txt"), "the file is named:\n{why}");
    assert_eq!(repository.task("never")["landingRounds"], 2, "as many as were set");
    assert!(repository.git_says("rev-parse --verify refs/adjutant/tasks/never"), "its work is kept");
    for id in ["first", "second", "red"] {
        assert!(repository.read(&format!(".tickets/{id}.md")).contains("status: closed"), "{id}\n{said}");
    }
    repository.check_main(TESTS);
    assert_eq!(repository.strays(), [""; 0]);
}

/// A conflict that its agent does not solve is shown as one wherever the task is shown, with the branch's real name and the
/// files. It is neither tested nor reviewed again, nor counted as recovered. An agent that repeats itself without a change is
/// stopped, and an agent that ran out of steps is not said to have reported done.
#[test]
fn a_conflict_that_is_not_solved_is_shown_as_one_and_an_agent_that_repeats_itself_is_stopped() {
    let scenario = r#"
[[scenario]]
task = "first"
[[scenario.step]]
do = [ { write = "shared.txt", text = "first\n" }, { commit = "First" }, { done = true } ]

[[scenario]]
task = "ignores"
[[scenario.step]]
do = [ { write = "shared.txt", text = "other\n" }, { commit = "Other" }, { run = "touch ignores.middle; while [ ! -e ignores.go ]; do sleep 0.05; done; rm ignores.*", quiet = true }, { done = true } ]
[[scenario.step]]
on = "merge_conflict"
do = [ { say = "It is all there." }, { done = true } ]

[[scenario]]
task = "repeats"
[[scenario.step]]
do = [ { write = "repeats.txt", text = "x\n" }, { commit = "Begin" }, { say = "I am at it." } ]
[[scenario.step]]
do = [ { say = "I am at it." } ]
[[scenario.step]]
do = [ { say = "I am at it." } ]

[[scenario]]
task = "slow"
[[scenario.step]]
do = [ { append = "slow.txt", text = "x\n" }, { write = "slow.check", text = "test -e mended\n" } ]
[[scenario.step]]
do = [ { append = "slow.txt", text = "a\n" } ]
[[scenario.step]]
do = [ { append = "slow.txt", text = "b\n" } ]
[[scenario.step]]
do = [ { append = "slow.txt", text = "c\n" } ]
[[scenario.step]]
do = [ { append = "slow.txt", text = "d\n" } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "mended", text = "x\n" }, { commit = "Mend" }, { done = true } ]
"#;
    let changes = [
        ("workers = 2", "workers = 4\nmax_steps = 5"),
        ("[test]", "[project]\nmain = \"master\"\n[limits]\nsame_step = 2\n[test]"),
    ];
    let tickets = ["first", "ignores", "repeats", "slow"];
    let repository = repository("unsolved", &changes, TESTS, scenario, &tickets);
    repository.git("branch -m main master");
    let fleet = repository.begin("run --until-idle");
    let tree = middle(&repository, "ignores");
    fleet.wait_for("first landed on master");
    go(&tree, "ignores");
    let (code, said) = fleet.ended();
    assert_eq!(code, 1, "{said}");
    let conflict = "conflicts with master in shared.txt";
    for part in [
        &format!("ignores: {conflict}; sent back to work"),
        &format!("ignores: agent reported done, but it still {conflict}"),
        "ignores is BLOCKED (landing)",
        "repeats is BLOCKED (loop)",
        "slow: agent took all its steps, but tests failed: FAIL slow.check",
    ] {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
    assert!(!said.contains("merge conflict"), "nothing of it was recovered:\n{said}");
    assert!(
        !said.contains("ignores: the tests pass\n") || said.matches("ignores: the tests pass").count() == 1,
        "{said}"
    );
    for line in ["why ignores", "waiting", "board", "task show ignores", "review ignores"] {
        let shown = repository.ok(line);
        assert!(shown.contains(conflict), "`adj {line}` does not say so:\n{shown}");
        assert!(!shown.contains("ignores is ready"), "{shown}");
    }
    let task = repository.task("ignores");
    assert_eq!(task["conflict"]["branch"], "master", "{task}");
    assert_eq!(task["conflict"]["files"], serde_json::json!(["shared.txt"]), "{task}");
    let why = repository.ok("why repeats");
    assert!(why.contains("2 steps in a row with the same words, and changed nothing"), "{why}");
    let leftover = repository.git("log --format=%b refs/adjutant/tasks/slow");
    assert!(leftover.contains("had taken all its steps"), "{leftover}");
}

/// What is not the agent's to change is put back, and said.
#[test]
fn changes_to_tickets_are_dropped_and_said() {
    let scenario = r#"
[[scenario]]
task = "f-1"
[[scenario.step]]
do = [
  { run = "sed -i 's/^status: open/status: closed/; s/^priority: 2/priority: 0/' .tickets/f-2.md", quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "All of it" }, { done = true },
]
[[scenario]]
task = "f-2"
[[scenario.step]]
do = [ { write = "{task}.check", text = "true\n" }, { commit = "It" }, { done = true } ]
"#;
    let repository = repository("not-theirs", &[], TESTS, scenario, &[]);
    repository.ticket("f-1", &[]);
    repository.ticket("f-2", &["f-1"]);
    repository.commit("Tickets");
    let said = repository.begin("run --until-idle").done();
    assert!(
        said.contains("the agent's change to the front matter of `.tickets/f-2.md` was dropped"),
        "{said}"
    );
    let landed = repository.git("log --first-parent --format=%H main -- f-1.check");
    let ticket = repository.git(&format!("show {landed}:.tickets/f-2.md"));
    assert!(ticket.contains("status: open") && ticket.contains("priority: 2"), "{ticket}");
    repository.check(&["f-1", "f-2"], TESTS);
}

/// Deletes a folder as a person would, also while an agent writes into it.
fn delete(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(error) = std::fs::remove_dir_all(folder) {
        assert!(Instant::now() < deadline, "{} does not go: {error}", folder.display());
    }
}

/// The project on a disk of its own, which is filled and gets room again. `$1` is the project, `$2` is adj.
const ON_A_DISK: &str = r#"
dir=$1 adj=$2 said=$1.said
cp -a "$dir" "$dir.copy" || exit 1
mount -t tmpfs -o size=320m tmpfs "$dir" || exit 77
cp -a "$dir.copy/." "$dir" && cd "$dir" || exit 1
wait_for() { n=0; until eval "$1"; do n=$((n+1)); [ $n -lt 1200 ] || { echo "never: $1"; kill -KILL $pid; cat "$said"; exit 1; }; sleep 0.05; done; }
# Too little room for a tree: nothing is begun, and it is said.
head -c 100m /dev/zero > filler
"$adj" run > "$said" 2>&1 &
pid=$!
wait_for 'grep -q "the disk is full" "$said"'
[ ! -e agents/A-f-1 ] || { echo "a tree was made"; kill -KILL $pid; exit 1; }
rm filler
wait_for '[ -e agents/A-f-1/f-1.middle ] && [ -e agents/B-f-2/f-2.middle ]'
# Not a byte is left while agents work: for the log, their trees, and what they print.
cat /dev/zero > filler 2>/dev/null
[ "$(df --output=avail . | tail -1)" -lt 64 ] || { echo "there is room"; kill -KILL $pid; exit 1; }
: > agents/A-f-1/f-1.go; : > agents/B-f-2/f-2.go
wait_for 'grep -q "A f-1: its output cannot be stored" "$said"'
# What a person asks for is refused by name, and everything stays up.
! "$adj" task comment f-1 "$(head -c 60000 /dev/zero | tr '\0' x)" > "$said.refused" 2>&1 || { echo "not refused"; kill -KILL $pid; exit 1; }
grep -q "no space is left" "$said.refused" || { cat "$said.refused"; kill -KILL $pid; exit 1; }
rm "$said.refused"
kill -0 $pid || { echo "it ended"; cat "$said"; exit 1; }
rm filler
wait_for 'grep -q "f-1 landed" "$said" && grep -q "f-2 landed" "$said"'
"$adj" stop
wait $pid || { echo "it failed"; cat "$said"; exit 1; }
cp -a "$dir/." "$dir.copy" || exit 1
[ "$(grep -c "A f-1: its output cannot" "$said")" -lt 4 ] || { echo "said too often"; cat "$said"; exit 1; }
"#;

/// A full disk stops what needs room and nothing else; when there is room again, all of it goes on.
#[test]
fn a_full_disk_is_said_and_survived() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "touch {task}.middle; while [ ! -e {task}.go ]; do sleep 0.05; done", quiet = true },
  { turn = "there is no room for this" }, { flood = 500 }, { turn = "nor for this" },
  { run = "until echo true > {task}.check && git add --all && git rm -q --cached {task}.go {task}.middle && git commit -qm It && rm {task}.go {task}.middle; do sleep 0.1; done", quiet = true },
  { say = "There was room again." }, { done = true },
]
"#;
    let repository = repository(
        "full-disk",
        &[("[test]", "trees = \"agents\"\n[test]")],
        TESTS,
        scenario,
        &["f-1", "f-2"],
    );
    let dir = repository.dir().to_owned();
    let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", dir.display()));
    let copy = beside("copy");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", ON_A_DISK, "sh"]).arg(&dir);
    command.arg(env!("CARGO_BIN_EXE_adj")).current_dir("/").env("ADJ_USER", "tester").env("COLUMNS", "100");
    let ran = command.output();
    let _ = std::fs::remove_file(beside("said"));
    // Nobody may mount anything here: then there is no disk that could be filled.
    let Some(ran) = ran.ok().filter(|ran| ran.status.code() != Some(77)) else {
        crate::not_tried("no disk can be made here");
        let _ = std::fs::remove_dir_all(&copy);
        return;
    };
    let output = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        end_all(&dir);
        let _ = std::fs::remove_dir_all(&copy);
    }
    assert!(ran.status.success(), "{output}");
    std::fs::remove_dir_all(&dir).expect("the one without the disk goes");
    std::fs::rename(&copy, &dir).expect("what was on the disk takes its place");
    repository.check(&["f-1", "f-2"], TESTS);
    for worker in ["A", "B"] {
        let said = repository.ok(&format!("logs {worker}"));
        assert!(said.contains("nor for this") && said.contains("There was room again."), "{said}");
    }
}
