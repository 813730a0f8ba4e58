//! What the user has done with a main that moved.

use super::Repository;
use super::background::wait;

const WRITES: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;

/// The remote is the user's: no agent can reach it, and the user's own credentials push to it.
#[test]
fn the_landed_hook_pushes_each_landing_to_the_remote() {
    let repository = Repository::new("landed-push", WRITES, &["t-1", "t-2"]);
    let remote = Repository::empty("landed-remote");
    remote.git("init --quiet --bare --initial-branch=main");
    repository.git(&format!("remote add origin {}", remote.dir().display()));
    let hook = "[hooks]\nlanded = 'git push --quiet origin \"$ADJ_MAIN\" && echo \"$ADJ_TASK $ADJ_MERGE\" >> \"$TOLD\"'\n[test]";
    repository.set(&[("[test]", hook)]);
    let told = remote.dir().join("told");
    let ran = repository.command("run --until-idle").env("TOLD", &told).output().expect("adj runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(remote.git("rev-parse main"), repository.git("rev-parse main"));
    let told = remote.read("told");
    let mut tasks: Vec<&str> = told.lines().filter_map(|line| line.split(' ').next()).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["t-1", "t-2"], "{told}");
    for merge in told.lines().filter_map(|line| line.split(' ').nth(1)) {
        repository.git(&format!("merge-base --is-ancestor {merge} main"));
    }
}

#[test]
fn a_landed_hook_that_fails_is_named_and_the_task_stays_done() {
    let repository = Repository::new("landed-fails", WRITES, &["t-1"]);
    repository.set(&[("[test]", "[hooks]\nlanded = 'echo no remote >&2; exit 3'\n[test]")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("hook landed:") && ran.stdout.contains("exit code 3"), "{}", ran.stdout);
    assert!(ran.stdout.contains("no remote"), "{}", ran.stdout);
    repository.check(&["t-1"], "sh tests.sh");
}

/// One hook is at work, and one about to begin: nobody else would ever run them.
#[test]
fn a_landed_hook_that_the_stop_of_the_fleet_kept_from_running_runs_after_the_restart_once() {
    let repository = Repository::new("landed-stop", WRITES, &["t-1", "t-2"]);
    let hook = "[hooks]\nlanded = 'echo \"begun $ADJ_TASK\" >> .git/told; until [ -e .git/go ]; do sleep 0.05; done; \
                echo \"done $ADJ_TASK\" >> .git/told'\n[test]";
    repository.set(&[("[test]", hook)]);
    let fleet = repository.start("run");
    let is_done = |task: &str| repository.adj("task ls --status DONE").stdout.contains(task);
    wait("both landed", || (is_done("t-1") && is_done("t-2")).then_some(()));
    wait("a hook at work", || repository.read(".git/told").contains("begun").then_some(()));
    repository.ok("stop");
    drop(fleet);
    let told = |what: &str| {
        let told = repository.read(".git/told");
        let mut tasks: Vec<String> =
            told.lines().filter_map(|line| Some(line.strip_prefix(what)?.trim().to_owned())).collect();
        tasks.sort_unstable();
        tasks
    };
    assert_eq!((told("begun").len(), told("done").len()), (1, 0), "{}", repository.read(".git/told"));
    repository.write(".git/go", "");
    repository.ok("run --until-idle");
    assert_eq!(told("done"), ["t-1", "t-2"], "{}", repository.read(".git/told"));
    repository.ok("run --until-idle");
    assert_eq!(told("done").len(), 2, "once");
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}
