//! What surrounds an agent: its environment, its tree, the hooks, the sandbox, and the token that it holds.

use super::background::wait;
use super::{Ran, Repository, SETTINGS};
use serde_json::Value;
use std::collections::BTreeSet;

/// Prints the environment into the tree, where it lands on main.
const PRINTS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "env | sort > env-{task}.txt" },
  { commit = "Print" },
  { done = true },
]
"#;

fn variables(text: &str) -> std::collections::BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What a newcomer does first. Whatever is missing for a run is said then, not by the first agent that fails.
#[test]
fn init_writes_the_settings_once_keeps_ours_out_of_git_and_says_what_is_missing() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let repository = Repository::empty("init");
    repository.write("Makefile", "test:\n\ttrue\n");
    repository.git("init --quiet --initial-branch=main");
    // A path where git is, and nothing else that this machine may have.
    let bin = Repository::empty("init-bin");
    let git = std::env::split_paths(&std::env::var_os("PATH").expect("there is a path"))
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file());
    symlink(git.expect("git is installed"), bin.dir().join("git")).expect("a link");
    let adj = |line: &str, key: &str| -> Ran {
        let mut command = repository.command(line);
        command.env("PATH", bin.dir()).env_remove("CLAUDE_CODE_OAUTH_TOKEN").env("ANTHROPIC_API_KEY", key);
        command.output().expect("adj runs").into()
    };
    let ran = adj("init", "");
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("no commit yet") && ran.stderr.contains("git commit"), "{}", ran.stderr);
    repository.commit("Begin");

    let ran = adj("init", "");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("WARNING  agent coder: `claude` is not on the PATH"), "{}", ran.stdout);
    assert_eq!(repository.git("status --porcelain"), "?? adjutant.toml");
    let settings = repository.read("adjutant.toml");
    assert!(settings.contains("command = \"make test\""), "{settings}");

    bin.write("claude", "#!/bin/sh\n");
    std::fs::set_permissions(bin.dir().join("claude"), PermissionsExt::from_mode(0o755)).expect("a program");
    let ran = adj("init", "");
    assert!(
        ran.stdout.contains("already exists; nothing was changed")
            && ran.stdout.contains("is set in this environment"),
        "{}",
        ran.stdout
    );
    assert_eq!(repository.read("adjutant.toml"), settings);
    let ran = adj("doctor", "sk-1");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("ok       agent coder: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("`make test`, and `make` is not on the PATH"), "{}", ran.stdout);
}

#[test]
fn an_agents_environment_is_the_allow_list_and_its_ports_and_temporary_folder_are_its_own() {
    let repository = Repository::new("setup-env", PRINTS, &["t-1", "t-2"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nenv = [\"GRANTED\"]")]);
    let mut command = repository.command("run --until-idle");
    for name in project::workplace::NETWORK {
        command.env_remove(name);
    }
    let ran = command
        .env("GRANTED", "yes")
        .env("SECRET_KEY", "hunter2")
        .env("SSH_AUTH_SOCK", "/tmp/agent")
        .env("ADJ_USER", "tester")
        .output()
        .expect("adj runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    repository.check(&["t-1", "t-2"], "sh tests.sh");
    let allowed: BTreeSet<&str> = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TZ",
        "LANG",
        "LANGUAGE",
        "TERM",
        "TMPDIR",
        "GRANTED",
        "ADJ_TASK",
        "ADJ_WORKER",
        "ADJ_RUN",
        "ADJ_PORT_BASE",
        "ADJ_TOKEN",
        "ADJ_SERVER",
        "ADJ_EFFECT",
        "ADJ_SCRIPT_SESSIONS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_VALUE_0",
        "GIT_CONFIG_KEY_1",
        "GIT_CONFIG_VALUE_1",
        // What a shell sets by itself.
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ]
    .into();
    let seen = ["t-1", "t-2"].map(|id| variables(&repository.read(&format!("env-{id}.txt"))));
    for (id, seen) in ["t-1", "t-2"].iter().zip(&seen) {
        let more: Vec<_> =
            seen.keys().filter(|name| !allowed.contains(name.as_str()) && !name.starts_with("LC_")).collect();
        assert!(more.is_empty(), "nothing else is passed on: {more:?}");
        assert_eq!(
            (seen["GRANTED"].as_str(), seen["TERM"].as_str(), seen["ADJ_TASK"].as_str()),
            ("yes", "dumb", *id)
        );
        assert_eq!(seen["TMPDIR"], repository.temp(id).display().to_string());
    }
    for name in ["ADJ_PORT_BASE", "ADJ_TOKEN", "ADJ_RUN", "TMPDIR"] {
        assert_ne!(seen[0][name], seen[1][name], "{name} is its own");
    }
    let person = repository.read(&repository.state("token"));
    assert!(!person.trim().is_empty() && seen.iter().all(|seen| seen["ADJ_TOKEN"] != person.trim()));
    // What a run was given ends with it.
    assert_eq!(repository.read(&repository.state("ports.json")), "{}", "no ports are kept for what is over");
    assert_eq!(repository.read(&repository.state("tokens.json")), "[]", "no token is");
    let late =
        repository.command("kill A").env("ADJ_TOKEN", &seen[0]["ADJ_TOKEN"]).output().expect("adj runs");
    assert_eq!(late.status.code(), Some(3), "{}", String::from_utf8_lossy(&late.stderr));
    // A token is in no file but hashed.
    let export = repository.state("export.jsonl");
    repository.ok(&format!("export {}", export.display()));
    assert!(!std::fs::read_to_string(export).expect("it was exported").contains(&seen[0]["ADJ_TOKEN"]));
}

#[test]
fn files_that_git_ignores_come_into_the_tree_as_the_settings_say_and_land_nowhere() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "cat .env deep/x.local listed.txt > seen.txt; readlink cache >> seen.txt; ls .env.not >> seen.txt 2>&1; git status --porcelain >> seen.txt" },
  { run = "git rm -q --cached base.check; git checkout -q HEAD -- base.check; git add seen.txt; git commit -qm Seen" },
  { done = true },
]
"#;
    let repository = Repository::new("setup-files", scenario, &["t-1"]);
    repository.write(".gitignore", ".env*\n*.local\nlisted.txt\ncache\n");
    repository.write(".env", "from env\n");
    repository.write(".env.not", "not this one\n");
    repository.write("deep/x.local", "from deep\n");
    repository.write("listed.txt", "from the list\n");
    repository.write("cache/big", "shared\n");
    repository.write(".worktreeinclude", "# one a line\nlisted.txt\n");
    repository
        .set(&[("[test]", "[worktree]\ncopy = [\".env\", \"*.local\"]\nsymlink = [\"cache\"]\n[test]")]);
    repository.ok("run --until-idle");
    let seen = repository.read("seen.txt");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines.len() == 6, "{seen}");
    assert_eq!(&lines[..3], ["from env", "from deep", "from the list"], "{seen}");
    assert_eq!(lines[3], repository.dir().join("cache").display().to_string(), "{seen}");
    assert!(lines[4].contains(".env.not") && lines[4].contains("o such file"), "{seen}");
    assert_eq!(lines[5], "?? seen.txt", "a new tree is clean to git: {seen}");
    let landed = repository.git("diff --name-only HEAD^1 HEAD");
    assert_eq!(
        landed.lines().filter(|path| !path.starts_with(".tickets")).collect::<Vec<_>>(),
        ["seen.txt"],
        "neither they nor the brief become changes"
    );
    assert_eq!(repository.read("cache/big"), "shared\n");
}

/// What a project needs for its tests it needs for the tests of a merge too.
#[test]
fn a_merge_is_tested_with_the_ignored_files_and_the_hook_that_a_tree_is_made_with() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("setup-merged", scenario, &["t-1", "t-2"]);
    repository.write(".gitignore", ".env\ncache\n/made\n");
    repository.write(".env", "from env\n");
    repository.write("cache/big", "shared\n");
    repository.write(
        "tests.sh",
        "set -e\ngrep -q 'from env' .env\ngrep -q shared cache/big\ntest \"$(cat made)\" = once\n",
    );
    let worktree = "[worktree]\ncopy = [\".env\"]\nsymlink = [\"cache\"]\n[hooks]\nworktree.create = 'echo once > made'\n[test]";
    repository.set(&[("[test]", worktree)]);
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2"], "true");
}

/// Each hook runs where and when it should, with its output kept, and a failing one says so.
#[test]
fn hooks_run_at_their_points_with_a_time_limit_and_their_output_kept() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "cp \"$TMPDIR/hooks\" hooks.txt" }, { commit = "Hooks" }, { say = "on" } ]
[[scenario.step]]
do = [ { done = true } ]
"#;
    let repository = Repository::new("setup-hooks", scenario, &["t-1"]);
    let hooks = r#"[hooks]
worktree.create = 'echo create $ADJ_TASK >> "$TMPDIR/hooks"; echo said by create'
worktree.remove = 'echo said by remove'
step.before = 'echo before >> "$TMPDIR/hooks"'
step.after = 'echo said by after; sleep 60'
timeout = "1s"
[test]"#;
    repository.set(&[("[test]", hooks)]);
    let lines = repository.ok("run --until-idle");
    assert_eq!(repository.read("hooks.txt"), "create t-1\nbefore\n");
    assert!(lines.contains("hook step.after") && lines.contains("took longer than 1 s"), "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
    let kept: Vec<String> = std::fs::read_dir(repository.state("steps"))
        .expect("steps are kept")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains('.'))
        .map(|entry| std::fs::read_to_string(entry.path().join("out")).unwrap_or_default())
        .collect();
    for said in ["said by create\n", "said by remove\n", "said by after\n"] {
        assert!(kept.iter().any(|text| text == said), "{said} is kept: {kept:?}");
    }
}

#[test]
fn a_hook_that_fails_before_a_step_fails_the_step() {
    let repository = Repository::new("setup-hook-fails", PRINTS, &["t-1"]);
    let hook = "[hooks]\nstep.before = 'test -e \"$TMPDIR/second\" || { touch \"$TMPDIR/second\"; echo not yet; exit 7; }'\n[test]";
    repository.set(&[("[test]", hook)]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("hook step.before") && lines.contains("exit code 7"), "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// A person hears of what needs one: a question, a block, a review.
#[test]
fn the_notify_hook_runs_when_a_person_is_needed_and_knows_why() {
    let scenario = r#"
[[scenario]]
task = "t-asks"
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "a.txt", text = "a\n" }, { done = true } ]
[[scenario]]
task = "t-stuck"
[[scenario.step]]
do = [ { write = "b.check", text = "false\n" }, { done = true } ]
[[scenario]]
task = "t-red"
[[scenario.step]]
do = [ { replace = "adjutant.toml", from = "workers = 3", to = "workers = 4", quiet = true }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { write = "c.txt", text = "c\n" }, { done = true } ]
"#;
    let repository = Repository::new("setup-notify", scenario, &["t-asks", "t-stuck", "t-red", "t-fine"]);
    let hook = "[hooks]\nnotify = 'echo \"$ADJ_NOTIFY|$ADJ_REASON|$ADJ_TASK|$ADJ_MESSAGE|$GRANTED\" >> \"$ADJ_PROJECT/.git/adjutant/told\"'\n[limits]\nquestion = \"1s\"\n[test]";
    repository.set(&[("[test]", hook), ("workers = 2", "workers = 3\nmax_fix_rounds = 0")]);
    let ran = repository.command("run --until-idle").env("GRANTED", "own").output().expect("adj runs");
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stdout));
    let told = repository.read(&repository.state("told"));
    let approval = repository.json("approvals")[0]["id"].as_str().expect("a question is open").to_owned();
    let workers = repository.json("ps");
    let stuck = |worker: &&Value| worker["status"] == "stuck";
    let stuck = workers.as_array().expect("workers").iter().find(stuck).expect("one is stuck");
    let stuck = stuck["name"].as_str().expect("a name");
    for said in [
        &*format!(
            "approval|red_action|t-asks|t-asks: The agent asks to use Bash: git push origin main: adj approve {approval}, or adj deny {approval} --note TEXT|own"
        ),
        &format!(
            "stuck_worker|stuck|t-stuck|t-stuck is BLOCKED (stuck): Do t-stuck: adj why t-stuck, or adj retry {stuck}|own"
        ),
        "review|touches_config|t-red|t-red needs review, it changes adjutant.toml: Do t-red: adj review t-red, or adj review t-red --approve|own",
    ] {
        assert!(told.lines().any(|line| line == said), "{said}\nis not in\n{told}");
    }
    assert_eq!(told.lines().count(), 3, "{told}");
}

#[test]
fn a_notify_hook_that_hangs_is_ended_and_named() {
    let repository = Repository::new("setup-notify-hangs", PRINTS, &["t-1"]);
    repository.set(&[
        ("[test]", "[hooks]\nnotify = 'sleep 60'\ntimeout = \"1s\"\n[test]"),
        ("review = \"auto\"", "review = \"human\""),
    ]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("hook notify: `sleep 60` took longer than 1 s"), "{}", ran.stdout);
    assert_eq!(repository.strays(), Vec::<String>::new());
}

#[test]
fn a_worktree_of_the_repository_lands_a_ticket_too() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { run = "git rev-parse --git-common-dir > {task}.git.txt" }, { commit = "Do {task}" }, { say = "on" } ]
[[scenario.step]]
do = [ { append = "{task}.txt", text = "y\n" }, { done = true } ]
"#;
    let repository = Repository::new("setup-worktree", scenario, &["t-1", "t-2"]);
    repository.set(&[("workers = 2", "workers = 2\nisolation = \"worktree\"")]);
    // Branches of the user's own that are called as the workers' would be.
    repository.git("checkout -q -b theirs");
    repository.write("theirs.txt", "not to be landed\n");
    repository.commit("Theirs");
    repository.git("checkout -q main");
    for name in ["agent/A-t-1", "agent/B-t-1"] {
        repository.git(&format!("branch {name} theirs"));
    }
    let said = repository.ok("run --until-idle");
    assert!(said.contains("t-1: a branch of yours has its name; its branch is called agent-"), "{said}");
    repository.check(&["t-1", "t-2"], "sh tests.sh");
    assert!(!repository.git_says("cat-file -e main:theirs.txt"), "what is theirs is not landed");
    for name in ["agent/A-t-1", "agent/B-t-1"] {
        assert_eq!(repository.git(&format!("rev-parse {name}")), repository.git("rev-parse theirs"));
        repository.git(&format!("branch -D {name}"));
    }
    assert_eq!(repository.read("t-2.txt"), "x\ny\n");
    let shared = repository.dir().join(".git").display().to_string();
    assert_eq!(repository.read("t-2.git.txt").trim(), shared, "it was a worktree, not a clone");
    assert_eq!(repository.git("worktree list").lines().count(), 1, "no worktree is left");
    assert_eq!(repository.git("branch --list agent/*"), "", "no branch is left");
    assert_eq!(repository.git("branch --list agent-*"), "", "no branch is left");
}

/// What an agent tries against its surroundings, and what came of each.
const TRIES: &str = r#"
[[scenario]]
task = "t-1"
[[scenario.step]]
do = [
  { write = "mine.txt", text = "secret of t-1\n" },
  { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { done = true },
]
[[scenario]]
[[scenario.step]]
do = [
  { run = 'tries() { name=$1; shift; if "$@" >> "$TMPDIR/$name" 2>&1; then echo "$name yes"; else echo "$name no"; fi >> tried.txt; }; trees=$(cd ..; pwd); root=${trees%.agents}; tries outside touch "$root/planted"; tries token cat "$root/.git/adjutant/token"; tries log cat "$root/.git/adjutant/adjutant.db"; touch "$root/.git/adjutant/planted"; tries other cat "$trees"/*-t-1/mine.txt; tries main touch "$root/.git/planted"; tries environ grep -aqs ADJ_TASK=t-1 /proc/[0-9]*/environ; tries own touch own.txt; tries temp touch "$TMPDIR/own"' },
  { run = "git add -A && git commit -qm Tried" },
  { done = true },
]
"#;

/// With the sandbox on, an agent reaches its own tree and nothing of ours or of another's.
#[test]
fn a_sandboxed_agent_cannot_write_outside_its_tree_nor_read_tokens_or_another_tree() {
    if process::sandbox::support().level == process::sandbox::Level::None {
        // Nothing to prove on a system without one; that this is said is another test.
        crate::not_tried("there is no sandbox here");
        return;
    }
    for isolation in ["clone", "worktree"] {
        let repository = Repository::new(&format!("setup-sandbox-{isolation}"), TRIES, &["t-1", "t-2"]);
        repository.set(&[("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\""))]);
        let running = repository.start("run");
        assert!(!running.lines().contains("the sandbox is off"));
        running.wait_for("t-2 landed");
        let tried = repository.read("tried.txt");
        assert_eq!(
            tried, "outside no\ntoken no\nlog no\nother no\nmain no\nenviron no\nown yes\ntemp yes\n",
            "what an agent could do in a {isolation}"
        );
        let planted = ["planted", ".git/planted", ".git/adjutant/planted"];
        assert!(planted.iter().all(|path| !repository.dir().join(path).exists()));
        repository.go("t-1");
        running.wait_for("t-1 landed");
        running.stop();
        repository.check(&["t-1", "t-2"], "sh tests.sh");
    }
}

/// An agent's token is an agent's: what only a person may do is refused, and the log shows no such decision.
#[test]
fn an_agent_with_its_own_token_decides_nothing() {
    let adj = env!("CARGO_BIN_EXE_adj");
    let scenario = r#"
[[scenario]]
task = "t-asks"
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "a.txt", text = "a\n" }, { done = true } ]
[[scenario]]
task = "t-review"
[[scenario.step]]
do = [ { write = "b.txt", text = "b\n" }, { done = true } ]
[[scenario]]
task = "t-rogue"
[[scenario.step]]
do = [
  { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { run = 'for line in "approve $(cat "$TMPDIR/question")" "deny $(cat "$TMPDIR/question")" "merge t-review" "merge t-rogue" "review t-review --approve" "kill A" "kill B" "cleanup A --force" "clean --yes" "stop" "config trust" "retry A" "assign A t-rogue" "task cancel t-review" "task move t-review DONE"; do ADJ line; ADJ $line > "$TMPDIR/said" 2>&1; echo "$? $line"; cat "$TMPDIR/said" >&2; done > tried.txt' },
  { commit = "Tried" },
  { done = true },
]
"#
    .replace("ADJ line; ", "")
    .replace("ADJ", adj);
    let repository = Repository::new("setup-rogue", &scenario, &["t-asks", "t-review", "t-rogue"]);
    repository.set(&[
        ("workers = 2", "workers = 3"),
        ("review = \"auto\"", "review = \"human\""),
        ("adapter = \"script\"", "adapter = \"script\"\nrole = \"lead\""),
    ]);
    let running = repository.start("run");
    repository.wait_task("t-asks", "NEEDS_APPROVAL");
    repository.wait_task("t-review", "REVIEW");
    let question = repository.json("approvals")[0]["id"].as_str().expect("it asks").to_owned();
    wait("its folder", || repository.temp("t-rogue").exists().then_some(()));
    repository.write(&repository.temp("t-rogue").join("question"), &question);
    repository.go("t-rogue");
    repository.wait_task("t-rogue", "REVIEW");
    let tip = repository.task("t-rogue")["tip"].as_str().expect("it has a tip").to_owned();
    let tried = repository.git(&format!("show {tip}:tried.txt"));
    assert_eq!(tried.lines().count(), 15, "{tried}");
    // Without a sandbox that lets the socket be reached, nobody is even asked.
    for line in tried.lines() {
        assert!(line.starts_with("3 "), "not refused: {line}\n{tried}");
    }
    assert_eq!(repository.task("t-asks")["status"], "NEEDS_APPROVAL");
    assert_eq!(repository.task("t-review")["status"], "REVIEW");
    assert!(
        repository.task("t-review")["approved"].is_null() && repository.task("t-rogue")["approved"].is_null()
    );
    assert_eq!(repository.json("approvals")[0]["decided"], Value::Null);
    for kind in ["approval_decided", "task_approved"] {
        assert_eq!(repository.events(kind), 0, "{kind}");
    }
    running.stop();
}

#[test]
fn a_sandbox_that_is_off_is_said_by_run_and_doctor() {
    let repository = Repository::new("setup-no-sandbox", PRINTS, &["t-1"]);
    assert!(!SETTINGS.contains("[sandbox]"));
    repository.set(&[("[test]", "[sandbox]\nmode = \"off\"\n[test]")]);
    let doctor = repository.adj("doctor");
    assert!(doctor.stdout.contains("roles are only advisory"), "{}", doctor.stdout);
    let running = repository.start("run");
    running.wait_for("the sandbox is off");
    assert!(running.lines().contains("roles are only advisory"), "{}", running.lines());
    running.wait_for("t-1 landed");
    let doctor = repository.adj("doctor");
    assert!(doctor.stdout.contains("without a sandbox"), "{}", doctor.stdout);
    running.stop();
}

/// The folder of an agent's sessions is the agent's to write; what we write there goes to no other place.
#[test]
fn a_link_that_an_agent_leaves_in_its_folder_leads_nothing_of_ours_astray() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'private=$(dirname "$ADJ_SCRIPT_SESSIONS"); for process in /proc/[0-9]*; do ln -s VICTIM "$private/scenario.toml.adjutant-${process#/proc/}"; done; echo x > {task}.txt' },
  { say = "on" },
]
[[scenario.step]]
do = [ { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::empty("setup-link");
    let victim = repository.dir().join("victim");
    drop(repository);
    let repository =
        Repository::new("setup-link", &scenario.replace("VICTIM", &victim.display().to_string()), &["t-1"]);
    repository.write("victim", "the user's\n");
    repository.commit("Victim");
    repository.ok("run --until-idle");
    assert_eq!(repository.read("victim"), "the user's\n");
    repository.check(&["t-1"], "sh tests.sh");
}

/// A tree that is half set up is not worked in: the hook is run again until it has run to its end.
#[test]
fn a_hook_that_was_cut_off_or_failed_in_a_new_tree_is_run_again() {
    let repository = Repository::new("setup-hook-again", PRINTS, &["t-1"]);
    let hook = r#"[hooks]
worktree.create = 'echo x >> "$TMPDIR/tries"; case $(wc -l < "$TMPDIR/tries") in 1) sleep 300;; 2) exit 1;; esac'
[test]
check_main = false"#;
    repository.set(&[("[test]", hook)]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "ready");
    wait("the hook", || (repository.read(&repository.temp("t-1").join("tries")) == "x\n").then_some(()));
    repository.ok("stop");
    assert_eq!(running.ended().0, 0);
    assert_eq!(repository.strays(), Vec::<String>::new(), "the hook was ended");
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("hook worktree.create"), "the second time it failed:\n{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// A word that is taken and does nothing would be found out about after a night's work.
#[test]
fn settings_that_mean_nothing_yet_are_refused_with_what_there_is_instead() {
    let repository = Repository::new("setup-not-yet", PRINTS, &["t-1"]);
    for (from, to, word, instead) in [
        ("adapter = \"script\"", "adapter = \"acp\"", "acp", "adapter = \"command\""),
        ("workers = 2", "workers = 2\nplan = \"architect\"", "architect", "plan = \"ticket\""),
        ("[test]", "[tickets]\nsource = \"tk\"\n[test]", "tk", "source = \"files\""),
    ] {
        repository.write("adjutant.toml", &SETTINGS.replace(from, to));
        for line in ["run --until-idle", "config check"] {
            let Ran { code, stdout, stderr } = repository.adj(line);
            assert_eq!(code, 2, "adj {line} with {to}\n{stdout}{stderr}");
            let (told, expected) = (stdout + &stderr, format!("there is no `{word}` yet"));
            assert!(told.contains(&expected) && told.contains(instead), "adj {line} with {to}\n{told}");
        }
    }
    repository.write("adjutant.toml", SETTINGS);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn a_declared_cache_can_be_written_and_ports_come_in_the_blocks_that_the_settings_say() {
    let repository = Repository::empty("setup-caches");
    let beside = repository.dir().with_extension("beside");
    drop(repository);
    for name in ["cache", "other"] {
        std::fs::create_dir_all(beside.join(name)).expect("a folder");
    }
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "for name in cache other; do touch BESIDE/$name/{task} && echo $name; done > {task}.txt; echo $ADJ_PORT_BASE > port-{task}.txt" },
  { run = 'touch "$TMPDIR/here"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { commit = "Do {task}" },
  { done = true },
]
"#;
    let scenario = scenario.replace("BESIDE", &beside.display().to_string());
    let repository = Repository::new("setup-caches", &scenario, &["t-1", "t-2"]);
    let settings = format!(
        "[ports]\nfirst = 21000\nblock = 3\nblocks = 2\n[sandbox]\ncaches = [\"{}\"]\n[test]",
        beside.join("cache").display()
    );
    repository.set(&[("[test]", &settings)]);
    let running = repository.start("run");
    for id in ["t-1", "t-2"] {
        wait("both at work", || repository.temp(id).join("here").exists().then_some(()));
    }
    repository.go("t-1");
    repository.go("t-2");
    running.wait_for("t-1 landed");
    running.wait_for("t-2 landed");
    running.stop();
    let ports: BTreeSet<String> = ["t-1", "t-2"].map(|id| repository.read(&format!("port-{id}.txt"))).into();
    assert_eq!(ports, ["21000\n".to_owned(), "21003\n".to_owned()].into());
    let confined = process::sandbox::support().level != process::sandbox::Level::None;
    let expected = if confined { "cache\n" } else { "cache\nother\n" };
    assert_eq!(repository.read("t-1.txt"), expected);
    let _ = std::fs::remove_dir_all(&beside);
}

/// A cache that nobody has filled yet is no mistake; one that cannot be made is said before an agent fails for it.
#[test]
fn a_declared_cache_that_is_not_there_is_made_below_the_home_and_said_anywhere_else() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "touch HOME/cache/new/x && echo yes > {task}.txt" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let home = Repository::empty("setup-home");
    home.write("cache/old", "");
    let scenario = scenario.replace("HOME", &home.dir().display().to_string());
    let repository = Repository::new("setup-new-cache", &scenario, &["t-1"]);
    let nowhere = repository.dir().with_extension("nowhere");
    // A link out of the home is not followed to make something there.
    std::os::unix::fs::symlink(nowhere.join("deep"), home.dir().join("astray")).expect("a link");
    let caches =
        format!("[\"~/cache/new\", \"~/not/yet/here\", \"~/astray/here\", \"{}\"]", nowhere.display());
    repository.set(&[("[test]", &format!("[sandbox]\ncaches = {caches}\n[test]"))]);
    let adj = |line: &str| -> Ran {
        repository.command(line).env("HOME", home.dir()).output().expect("adj runs").into()
    };
    let doctor = adj("doctor").stdout;
    for written in ["~/cache/new", "~/not/yet/here"] {
        let said = format!("ok       sandbox: `{written}` of sandbox.caches does not exist");
        assert!(doctor.contains(&said), "{said}\n{doctor}");
    }
    for written in ["~/astray/here", &nowhere.display().to_string()] {
        let said = format!("WARNING  sandbox: `{written}` of sandbox.caches does not exist");
        assert!(doctor.contains(&said), "{said}\n{doctor}");
    }
    assert!(!home.dir().join("cache/new").exists(), "to look is not to make");

    let Ran { code, stdout, stderr } = adj("run --until-idle");
    assert_eq!(code, 0, "{stdout}{stderr}");
    for written in ["~/cache/new", "~/not/yet/here"] {
        let said = format!("sandbox.caches: `{written}` did not exist and was created");
        assert!(stdout.contains(&said), "{said}\n{stdout}");
    }
    for written in ["~/astray/here", &nowhere.display().to_string()] {
        let said = format!("sandbox.caches: `{written}` does not exist, so agents cannot write there");
        assert!(stdout.contains(&said), "{said}\n{stdout}");
    }
    assert_eq!(repository.read("t-1.txt"), "yes\n");
    assert!(!nowhere.exists() && home.dir().join("not/yet/here").is_dir());
    assert!(!adj("doctor").stdout.contains("~/cache/new"));
}

#[test]
fn more_ignored_files_than_the_settings_allow_are_not_copied_and_said() {
    let repository = Repository::new("setup-copies", PRINTS, &["t-1"]);
    repository.write(".gitignore", "*.local\n");
    repository.write("a.local", "a\n");
    repository.write("b.local", "b\n");
    for (limit, told) in
        [("copy_files = 1", "more than 1 files match"), ("copy_bytes = 1", "more than 1 bytes")]
    {
        let settings = format!("[worktree]\ncopy = [\"*.local\"]\n[limits]\n{limit}\n[test]");
        repository.write("adjutant.toml", &SETTINGS.replace("[test]", &settings));
        repository.commit(limit);
        let running = repository.start("run");
        running.wait_for(told);
        running.stop();
    }
}
