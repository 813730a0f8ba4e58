//! What the user has done with a main that moved.

use super::Repository;

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
