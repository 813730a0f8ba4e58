//! What is kept of work that is over: bounded, shown, and found again.

use super::background::wait;
use super::{Repository, TESTS};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Leaves an ignored file beside what it commits.
const BUILDS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "mkdir -p build deep && head -c 1000000 /dev/urandom > build/{task}.bin && echo x > deep/{task}.txt", quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true },
]
"#;

fn repository(name: &str, scenario: &str, more: &str, tickets: &[&str]) -> Repository {
    let repository = Repository::new(name, scenario, tickets);
    repository.write(".gitignore", "build\n");
    repository.set(&[("[test]", &format!("{more}\n[test]"))]);
    repository
}

/// What is below a folder, by path.
fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(here).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path().strip_prefix(folder).expect("below").display().to_string()),
            }
        }
    }
    found.sort();
    found
}

/// Puts what happened to a folder into the past.
fn age(folder: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    let opened = std::fs::File::open(folder).expect("a folder");
    opened.set_modified(then).expect("a time");
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Tracked content goes at once; ignored files and the agent's own git directory are in the trash, which is shown and
/// emptied.
#[test]
fn only_what_git_does_not_have_of_a_removed_tree_is_kept_and_a_person_can_see_and_delete_it() {
    let repository = repository("disk-trash", BUILDS, "", &["d-1"]);
    repository.ok("run --until-idle");
    repository.check(&["d-1"], TESTS);
    let trash = repository.tree("trash");
    let kept: Vec<String> = below(&trash).into_iter().filter(|path| !path.contains("/.git/")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].ends_with("/build/d-1.bin"), "{kept:?}");
    let doctor = repository.adj("doctor").stdout;
    assert!(doctor.contains("1 tree, ") && doctor.contains(&trash.display().to_string()), "{doctor}");
    assert!(doctor.contains("`adj clean --trash` empties it"), "{doctor}");
    assert!(repository.ok("clean --trash --dry-run").contains("1 tree, "));
    assert_eq!(entries(&trash).len(), 1, "a dry run deletes nothing");
    assert_eq!(repository.json("clean --trash")["trees"], 1);
    assert_eq!(entries(&trash).len(), 0);
    assert_eq!(repository.json("ps").as_array().map(Vec::len), Some(2), "no worker was removed");
}

#[test]
fn the_trash_is_held_to_its_size_and_to_its_age() {
    let repository = repository("disk-size", BUILDS, "[trash]\nage = \"2d\"\nsize = \"2500 kB\"", &["d-1"]);
    repository.ticket("d-2", &["d-1"]);
    repository.ticket("d-3", &["d-2"]);
    repository.commit("Tickets");
    repository.ok("run --until-idle");
    let left = below(&repository.tree("trash"));
    let has = |id: &str| left.iter().any(|path| path.ends_with(&format!("{id}.bin")));
    assert!(has("d-3") && !has("d-1"), "the oldest go first: {left:?}");
    for entry in entries(&repository.tree("trash")) {
        age(&entry, 3);
    }
    repository.begin("run --until-idle").done();
    wait("the trash to be empty", || {
        repository.begin("run --until-idle").done();
        entries(&repository.tree("trash")).is_empty().then_some(())
    });
}

/// What was printed, and the sessions of agents whose task is over; never what is still needed.
#[test]
fn what_agents_and_tests_printed_is_held_to_its_age_and_to_its_size() {
    let waits = format!(
        "{}\n[[scenario]]\n[[scenario.step]]\ndo = [ {{ write = \"x.txt\", text = \"x\\n\" }}, {{ done = true }} ]\n",
        BUILDS.replacen("[[scenario]]", "[[scenario]]\ntask = \"d-1\"", 1)
    );
    let repository = repository("disk-logs", &waits, "[logs]\nage = \"2d\"\nsize = \"1 GB\"", &["d-1"]);
    repository.ok("run --until-idle");
    let (steps, private) = (repository.state("steps"), repository.state("private"));
    let spoken = repository.state("spoken");
    assert!(!entries(&steps).is_empty() && private.join("d-1").exists() && spoken.join("d-1.1").exists());
    for entry in [&steps, &private, &spoken].into_iter().flat_map(|folder| entries(folder)) {
        age(&entry, 3);
    }
    wait("the old ones to go", || {
        repository.begin("run --until-idle").done();
        let gone = entries(&steps).is_empty() && entries(&spoken).is_empty();
        (gone && !private.join("d-1").exists()).then_some(())
    });

    repository.set(&[("size = \"1 GB\"", "size = \"0 B\""), ("review = \"auto\"", "review = \"human\"")]);
    repository.ticket("d-2", &[]);
    repository.commit("A ticket");
    repository.begin("run --until-idle").ended();
    repository.begin("run --until-idle").ended();
    wait("what is too much to go", || {
        repository.begin("run --until-idle").ended();
        entries(&steps).is_empty().then_some(())
    });
    assert!(private.join("d-2").exists(), "its task is not over");
    repository.ok("review d-2 --approve");
    repository.begin("run --until-idle").done();
}

/// The user's repository forgets what it named of tasks that are over; nothing is lost by that.
#[test]
fn refs_and_branches_of_tasks_that_are_over_go_out_of_the_users_sight() {
    let repository = repository("disk-refs", BUILDS, "[trash]\nage = \"1s\"", &["d-1", "d-2"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.begin("run --until-idle").ended();
    let tip = repository.git("rev-parse refs/adjutant/tasks/d-2");
    repository.ok("review d-1 --approve");
    repository.ok("task cancel d-2");
    wait("the refs to go", || {
        repository.begin("run --until-idle").ended();
        repository.git("for-each-ref refs/adjutant/tasks refs/heads/agent").is_empty().then_some(())
    });
    assert!(repository.ok("diff d-1").contains("d-1.check"));
    let land = repository.state("land.git");
    repository.git(&format!("fetch --quiet {} refs/adjutant/tasks/d-2", land.display()));
    assert_eq!(repository.git("rev-parse FETCH_HEAD"), tip);
}

/// Stashes and commits that were reset away are in what was saved, and are seen there.
#[test]
fn saved_stashes_and_commits_that_were_reset_away_are_listed_and_shown() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "echo away > away.txt && git add -A && git commit -qm 'Thrown away' && git reset -q --hard HEAD~1", quiet = true },
  { run = "echo stashed > stashed.txt && git add -A && git stash -q", quiet = true },
  { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done', quiet = true },
  { done = true },
]
"#;
    let repository = repository("disk-strays", scenario, "", &["d-1"]);
    let running = repository.start("run");
    wait("its middle", || repository.temp("d-1").join("here").exists().then_some(()));
    repository.ok("task cancel d-1");
    let saved = wait("saved work", || {
        let saved = repository.json("salvage list");
        saved.as_array().filter(|list| !list.is_empty()).map(|list| list[0].clone())
    });
    running.stop();
    let commits = saved["commits"].to_string();
    assert!(commits.contains("Thrown away") && commits.contains("WIP on"), "{saved}");
    let listed = repository.ok("salvage list");
    assert!(listed.contains("commit ") && listed.contains("and 1 more"), "{listed}");
    let shown = repository.ok(&format!("salvage show {}", saved["id"].as_str().expect("an id")));
    assert!(shown.contains("+away") && shown.contains("+stashed"), "{shown}");
}

/// A tree that a person had removed is made again without what was not committed: the agent hears where that is, and
/// can take it.
#[test]
fn an_agent_whose_tree_was_removed_is_told_where_its_work_is_and_can_take_it() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "mine.txt", text = "not committed\n" },
  { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done', quiet = true },
  { done = true },
]
[[scenario.step]]
do = [
  { write = "told.txt", text = "{prompt}" },
  { run = "git checkout $(git for-each-ref --format='%(refname)' refs/adjutant/salvage) -- mine.txt", quiet = true },
  { write = "{task}.check", text = "true\n" }, { commit = "Do {task}" }, { done = true },
]
"#;
    for isolation in ["clone", "worktree"] {
        let repository = repository(&format!("disk-told-{isolation}"), scenario, "", &["d-1"]);
        repository.set(&[
            ("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\"")),
            ("workers = 2", "workers = 1"),
        ]);
        let running = repository.start("run");
        wait("its middle", || repository.temp("d-1").join("here").exists().then_some(()));
        let idle = repository.ok("spawn Zoe");
        assert!(repository.ok("cleanup Zoe").contains("it has no tree"), "{idle}");
        repository.ok("cleanup A --force");
        wait("its tree to go", || (repository.adj("assign A d-1").code == 0).then_some(()));
        running.wait_for("d-1 landed");
        running.stop();
        let told = repository.git("show main:told.txt");
        assert!(told.contains("is saved as refs/adjutant/salvage/d-1/"), "{told}");
        assert_eq!(repository.git("show main:mine.txt"), "not committed");
        repository.check(&["d-1"], TESTS);
    }
}

/// Without a fleet nothing is saved or removed yet, and nobody says that it was.
#[test]
fn workers_that_are_removed_without_a_fleet_leave_their_trees_and_say_so() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "mine.txt", text = "not committed\n" },
  { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done', quiet = true },
  { done = true },
]
"#;
    let repository = repository("disk-clean", scenario, "", &["d-1"]);
    let running = repository.start("run");
    wait("its middle", || repository.temp("d-1").join("here").exists().then_some(()));
    repository.ok("stop --now");
    running.ended();
    let cleaned = repository.adj("clean --yes");
    let tree = repository.tree("A-d-1");
    assert!(
        cleaned.stdout.contains(&format!("A  removed; its tree stays for now: {}", tree.display())),
        "{}",
        cleaned.stdout
    );
    assert!(cleaned.stderr.contains("`adj run` saves the trees and removes them"), "{}", cleaned.stderr);
    assert!(tree.exists());
    repository.begin("run --until-idle").ended();
    assert!(!tree.exists());
    assert!(repository.ok("salvage list").contains("mine.txt"));
}
