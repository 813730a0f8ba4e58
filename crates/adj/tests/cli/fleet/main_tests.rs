//! Tests are believed only where main passes them: before an agent is started, and before one is blamed.

use super::Repository;
use super::background::wait;

const WRITES: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// A step that waits until the test lets it go on.
const WAITS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = "touch \"$TMPDIR/there\"; while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.02; done", quiet = true },
  { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true },
]
"#;

const RED: &str = "echo first line; echo second line >&2; echo the reason of it all; exit 1\n";

#[test]
fn no_agent_starts_while_main_fails_and_a_running_fleet_notices_the_fix() {
    let repository = Repository::new("main-red", WRITES, &["t-1"]);
    repository.write("base.check", RED);
    repository.commit("Break");
    let fleet = repository.start("run");
    fleet.wait_for("the tests fail on main itself, so no agent starts: FAIL base.check");
    fleet.wait_for("the reason of it all");
    let why = repository.ok("why t-1");
    assert!(why.contains("main's own tests: the tests fail on main itself"), "{why}");
    assert!(why.contains("first line\n  second line\n  the reason of it all"), "{why}");
    assert!(repository.ok("ps").contains("the tests fail on main itself"));
    let document = repository.json("why t-1");
    let guard =
        document["guards"].as_array().and_then(|all| all.iter().find(|guard| guard["guard"] == "mainTests"));
    let output = guard.and_then(|guard| guard["output"].as_str()).unwrap_or_default();
    assert!(output.ends_with("FAIL base.check"), "{document}");
    assert_eq!(repository.task("t-1")["status"], "INBOX");
    // Asked for by hand: the same fleet runs them again, and says the same.
    let ran = repository.adj("doctor --tests");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("the reason of it all"), "{}", ran.stdout);
    assert!(ran.stderr.contains("the tests fail on main itself"), "{}", ran.stderr);

    repository.write("base.check", "true\n");
    repository.commit("Mend");
    repository.wait_task("t-1", "DONE");
    let lines = fleet.stop();
    assert!(lines.contains("main passes its tests; agents start"), "{lines}");
    repository.check_main("true");
}

#[test]
fn a_run_until_idle_ends_with_the_reason_and_the_way_out_and_a_restart_tries_again() {
    let repository = Repository::new("main-until-idle", WRITES, &["t-1"]);
    repository.write("base.check", RED);
    repository.commit("Break");
    for _ in 0..2 {
        let ran = repository.adj("run --until-idle");
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(ran.stdout.contains("the reason of it all"), "{}", ran.stdout);
        assert!(ran.stderr.contains("the tests fail on main itself"), "{}", ran.stderr);
        assert!(ran.stderr.contains("adj doctor --tests"), "{}", ran.stderr);
    }
    assert_eq!(repository.events("main_tested"), 2);
    assert_eq!(repository.events("lease_given"), 0, "nothing was claimed");
    repository.write("base.check", "true\n");
    repository.commit("Mend");
    repository.ok("run --until-idle");
    assert_eq!(repository.events("main_tested"), 3);
    // What our own landing brought is known to be green.
    repository.ticket("t-2", &[]);
    repository.commit("More");
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2"], "true");
}

#[test]
fn main_that_is_known_to_pass_is_not_tested_again_by_a_start() {
    let repository = Repository::new("main-known", WRITES, &[]);
    for number in 1..=2 {
        repository.ok(&format!("task add task-{number}"));
        repository.ok("run --until-idle");
    }
    assert_eq!(repository.events("main_tested"), 1, "a landing is tested as merged");
}

#[test]
fn a_program_that_is_not_there_costs_nothing_and_corrected_settings_are_noticed() {
    let repository = Repository::new("main-no-program", WRITES, &["t-1"]);
    repository.set(&[("command = \"sh tests.sh\"", "command = \"no-such-runner --all\"")]);
    let fleet = repository.start("run");
    fleet.wait_for("the tests fail on main itself");
    fleet.wait_for("no-such-runner");
    repository.set(&[("no-such-runner --all", "sh tests.sh")]);
    repository.wait_task("t-1", "DONE");
    fleet.stop();
    assert_eq!(repository.events("gate_passed"), 1);
    assert_eq!(repository.events("sent_back"), 0, "no agent was asked to mend it");
}

/// A hang would hold up everybody: the settings that mend it end it.
#[test]
fn main_tests_that_hang_are_ended_by_other_settings() {
    let repository = Repository::new("main-hangs", WRITES, &["t-1"]);
    repository.set(&[("command = \"sh tests.sh\"", "command = \"sleep 3600\"")]);
    let fleet = repository.start("run");
    wait("main's tests", || {
        repository.adj("why t-1").stdout.contains("main's own tests are running").then_some(())
    });
    repository.set(&[("sleep 3600", "sh tests.sh")]);
    repository.wait_task("t-1", "DONE");
    fleet.stop();
}

#[test]
fn tests_that_an_agent_made_impossible_to_start_block_its_task_and_are_not_sent_to_it() {
    let scenario = r#"
[[scenario]]
task = "t-1"
[[scenario.step]]
do = [ { run = "git rm -q run-tests" }, { write = "x.txt", text = "x\n" }, { commit = "Break it" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    use std::os::unix::fs::PermissionsExt;
    let repository = Repository::new("main-not-started", scenario, &["t-1", "t-2"]);
    repository.write("run-tests", "#!/bin/sh\nexec sh tests.sh\n");
    let program = repository.dir().join("run-tests");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).expect("a program");
    repository.set(&[("command = \"sh tests.sh\"", "command = \"./run-tests\"")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("t-1: its tests could not be run"), "{}", ran.stdout);
    assert!(ran.stdout.contains("t-1 is BLOCKED (environment)"), "{}", ran.stdout);
    assert_eq!(repository.task("t-1")["blockReason"], "environment");
    let why = repository.ok("why t-1");
    assert!(why.contains("./run-tests") && why.contains("adj retry t-1"), "{why}");
    assert_eq!(repository.json("cost --by task")["items"].as_array().map_or(0, Vec::len), 2);
    // It took one step, and no other was paid for.
    let steps = repository.json("history t-1 --all");
    let asked = steps.to_string().matches("start_step").count();
    assert_eq!(asked, 1, "{steps}");
    assert_eq!(repository.task("t-2")["status"], "DONE", "others go on");
}

/// What breaks outside of every tree is no agent's fault, whoever runs into it.
#[test]
fn an_environment_that_breaks_under_way_sends_nothing_back_and_goes_on_when_it_is_mended() {
    let outside = Repository::empty("main-outside");
    outside.write("database", "");
    let repository = Repository::new("main-breaks", WAITS, &["t-1"]);
    let command = format!(
        "command = \"test -e {}/database || {{ echo connection refused; exit 3; }}; sh tests.sh\"",
        outside.dir().display()
    );
    repository.set(&[("command = \"sh tests.sh\"", &command)]);
    let fleet = repository.start("run");
    wait("a step", || repository.temp("t-1").join("there").exists().then_some(()));
    std::fs::remove_file(outside.dir().join("database")).expect("it was there");
    std::fs::write(repository.temp("t-1").join("go"), "").expect("it can go on");
    fleet.wait_for("t-1: its tests did not run as they should (connection refused)");
    fleet.wait_for("the tests fail on main itself");
    assert_eq!(repository.task("t-1")["status"], "IN_PROGRESS");
    outside.write("database", "");
    repository.ok("doctor --tests");
    repository.wait_task("t-1", "DONE");
    fleet.stop();
    assert_eq!(repository.events("sent_back"), 0, "nothing was sent back to the agent");
}

/// A syntax error in a test is the agent's own, though the runner calls it by the same name.
#[test]
fn tests_that_an_agent_broke_are_sent_back_to_it_once_main_has_passed_them() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "red.check", text = "echo 'ERROR collecting red.check'; exit 2\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "red.check", text = "true\n" }, { done = true } ]
"#;
    let repository = Repository::new("main-collect", scenario, &["t-1"]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("testing main to see why"), "{lines}");
    assert!(lines.contains("t-1: agent reported done, but tests failed: FAIL red.check"), "{lines}");
    repository.check(&["t-1"], "true");
}

#[test]
fn agents_start_on_a_main_that_fails_where_the_settings_let_them() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "base.check", text = "true\n" }, { commit = "Mend" }, { done = true } ]
"#;
    let repository = Repository::new("main-unchecked", scenario, &["t-1"]);
    repository.write("base.check", RED);
    repository.set(&[("[test]", "[test]\ncheck_main = false")]);
    repository.ok("run --until-idle");
    assert_eq!(repository.task("t-1")["status"], "DONE");
    assert_eq!(repository.events("main_tested"), 0);
}

#[test]
fn tests_get_the_variables_that_are_named_for_them_and_everybody_the_proxy() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "env | sort > seen.txt" }, { commit = "Seen" }, { done = true } ]
"#;
    let repository = Repository::new("main-env", scenario, &["t-1"]);
    let tests = "[ \"$DATABASE_URL\" = db ] && [ -z \"$GRANTED\" ] && [ \"$HTTPS_PROXY\" = http://p:3128 ] && [ \"$SSL_CERT_FILE\" = /ca.pem ]\n";
    repository.write("tests.sh", tests);
    repository.set(&[
        ("[test]", "[test]\nenv = [\"DATABASE_URL\"]"),
        ("adapter = \"script\"", "adapter = \"script\"\nenv = [\"GRANTED\"]"),
    ]);
    let mut command = repository.command("run --until-idle");
    command.env("DATABASE_URL", "db").env("GRANTED", "yes").env("HTTPS_PROXY", "http://p:3128");
    let ran =
        command.env("no_proxy", "localhost").env("SSL_CERT_FILE", "/ca.pem").output().expect("adj runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    let seen = repository.read("seen.txt");
    for line in ["GRANTED=yes", "HTTPS_PROXY=http://p:3128", "no_proxy=localhost", "SSL_CERT_FILE=/ca.pem"] {
        assert!(seen.lines().any(|there| there == line), "{line}: {seen}");
    }
    assert!(!seen.contains("DATABASE_URL"), "what is for tests is for tests: {seen}");
}

#[test]
fn a_virtual_environment_that_is_ignored_with_a_slash_is_linked_into_every_tree() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "git status --porcelain > seen.txt; git add --all; git commit -qm Seen" }, { write = "left.txt", text = "x\n" }, { done = true } ]
"#;
    for isolation in ["clone", "worktree"] {
        let repository = Repository::new(&format!("main-venv-{isolation}"), scenario, &["t-1"]);
        repository.write(".gitignore", ".venv/\n");
        repository.write("tests.sh", "sh .venv/bin/tool\n");
        repository.set(&[
            ("[test]", "[worktree]\nsymlink = [\".venv\"]\n[test]"),
            ("[fleet]", &format!("[fleet]\nisolation = \"{isolation}\"")),
        ]);
        // What is asked for and is not there keeps agents from starting, and is found before.
        for line in ["config check", "doctor"] {
            let ran = repository.adj(line);
            assert!(
                ran.code != 0 && ran.stdout.contains("`.venv` cannot be copied into a tree"),
                "{}",
                ran.stdout
            );
        }
        let ran = repository.adj("run --until-idle");
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(
            ran.stdout.contains("`.venv` cannot be copied into the tree: it is not in your checkout"),
            "{}",
            ran.stdout
        );
        repository.write(".venv/bin/tool", "true\n");
        repository.ok("config check");
        repository.ok("run --until-idle");
        assert_eq!(repository.read("seen.txt"), "?? seen.txt\n", "git does not see the link: {isolation}");
        let landed = repository.git("ls-files");
        assert!(landed.contains("left.txt") && !landed.contains(".venv"), "{landed}");
        assert_eq!(repository.git("status --porcelain"), "");
    }
}

/// Main is known to pass, and what its tests and every tree need is gone since: no agent is started and paid for that.
#[test]
fn what_every_tree_needs_and_is_gone_keeps_agents_from_starting_though_main_is_known_to_pass() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;
    for check_main in [true, false] {
        let repository = Repository::new(&format!("main-gone-{check_main}"), scenario, &["t-1"]);
        repository.write(".gitignore", ".venv/\n");
        repository.write(".venv/bin/tool", "true\n");
        repository.write("tests.sh", "sh .venv/bin/tool\n");
        let settings = format!("[worktree]\nsymlink = [\".venv\"]\n[test]\ncheck_main = {check_main}");
        repository.set(&[("[test]", &settings)]);
        repository.ok("run --until-idle");
        std::fs::remove_dir_all(repository.dir().join(".venv")).expect("it goes");
        // Without a commit: main is where it was found to pass.
        repository.ok("task add Two --id t-2");
        let before = repository.events("start_step");
        let ran = repository.adj("run --until-idle");
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        let why = "`.venv` cannot be copied into the tree: it is not in your checkout";
        assert_eq!(repository.events("start_step"), before, "no agent was started: {}", ran.stdout);
        assert!(repository.ok("why t-2").contains(why), "{}", repository.ok("why t-2"));
        let task = repository.task("t-2");
        match check_main {
            true => assert!(ran.stdout.contains(why) && task["status"] == "IN_PROGRESS", "{}", ran.stdout),
            false => assert_eq!(task["blockReason"], "environment", "{task}"),
        }
        repository.write(".venv/bin/tool", "true\n");
        if !check_main {
            repository.ok("retry t-2");
        }
        repository.ok("run --until-idle");
        assert_eq!(repository.task("t-2")["status"], "DONE");
    }
}

#[test]
fn doctor_and_init_say_how_installed_packages_come_into_a_tree() {
    let repository = Repository::new("main-packages", WRITES, &[]);
    repository.write(".gitignore", "node_modules/\n");
    repository.write("node_modules/p/index.js", "");
    for line in ["doctor", "init"] {
        let ran = repository.adj(line);
        assert!(
            ran.stdout.contains("`node_modules` is in your checkout, and trees do not have it"),
            "{}",
            ran.stdout
        );
        // A link is not proposed: a workspace package in it would lead back into the checkout.
        assert!(
            ran.stdout.contains("set `worktree.create` to the command that installs it"),
            "{}",
            ran.stdout
        );
        assert!(!ran.stdout.contains("symlink = ["), "{}", ran.stdout);
    }
    repository.write("package.json", "{}");
    let doctor = repository.ok("doctor");
    assert!(doctor.contains("`worktree.create = \"npm install --no-package-lock"), "{doctor}");
    repository.set(&[("[test]", "[worktree]\nsymlink = [\"node_modules\"]\n[test]")]);
    assert!(!repository.ok("doctor").contains("node_modules"));
}

#[test]
fn doctor_runs_mains_tests_without_a_fleet() {
    let repository = Repository::new("main-doctor", WRITES, &["t-1"]);
    assert_eq!(repository.ok("doctor --tests"), "main passes `sh tests.sh`\n");
    // What is known from that is not run again.
    repository.write("base.check", RED);
    repository.commit("Break");
    let ran = repository.adj("doctor --tests");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("`sh tests.sh` failed with exit code 1"), "{}", ran.stdout);
    assert!(ran.stdout.contains("first line\nsecond line\nthe reason of it all"), "{}", ran.stdout);
    let document: serde_json::Value =
        serde_json::from_str(&repository.adj("doctor --tests --json").stdout).expect("a document");
    assert_eq!(document["green"], false);
}

/// What tests print is kept as it was written, and found where people look.
#[test]
fn the_output_of_failed_tests_is_in_order_and_reachable() {
    let scenario = r#"
[[scenario]]
task = "t-1"
[[scenario.step]]
do = [ { write = "red.check", text = "echo one; echo two >&2; echo three; exit 1\n" }, { done = true } ]
[[scenario]]
task = "t-2"
[[scenario.step]]
do = [ { write = "a.txt", text = "<<<<<<< a\n=======\n>>>>>>> b\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "a.txt", text = "x\n" }, { done = true } ]
"#;
    let repository = Repository::new("main-output", scenario, &["t-1", "t-2"]);
    let hook = "[hooks]\nworktree.create = 'echo made; echo it >&2'\n[test]";
    repository.set(&[("workers = 2", "workers = 2\nmax_fix_rounds = 1"), ("[test]", hook)]);
    let ran = repository.adj("run --until-idle");
    assert!(
        ran.stdout.contains("t-1: agent reported done, but tests failed: FAIL red.check"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("t-2: agent reported done, but conflict markers are left"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("t-2: agent reported done, but tests failed"), "{}", ran.stdout);
    assert_eq!(repository.ok("logs t-1 --tests"), "one\ntwo\nthree\nFAIL red.check\n");
    assert_eq!(repository.ok("logs t-1 --hooks"), "made\nit\n");
    for line in ["why t-1", "task show t-1", "review t-1"] {
        let shown = repository.ok(line);
        assert!(shown.contains("  one\n  two\n  three\n  FAIL red.check\n"), "{line}: {shown}");
    }
    let output = repository.task("t-1")["testOutput"].clone();
    assert!(output.as_str().unwrap_or_default().ends_with("one\ntwo\nthree\nFAIL red.check"), "{output}");
    let runs = repository.json("logs t-1 --tests");
    assert_eq!((&runs[0]["command"], &runs[0]["ended"]), (&"sh tests.sh".into(), &"exit code 1".into()));
    assert!(repository.task("t-2")["testOutput"].is_null(), "what passes has none");
}

/// A build goes on where the one before it ended, and what the gate has tested is not tested again.
#[test]
fn a_landing_keeps_its_caches_and_tests_nothing_twice() {
    let log = Repository::empty("main-warm-log");
    let repository = Repository::new("main-warm", WRITES, &["t-1"]);
    repository.write(".gitignore", "/build/\n");
    let told = log.dir().join("log");
    let tests = format!(
        "[ ! -e junk.txt ] || exit 1\ntouch junk.txt\nmkdir -p build\n[ -e build/at ] && warm=warm || warm=cold\nstat -c %y base.check > build/now\n[ $warm = cold ] || cmp -s build/now build/at && same=same || same=other\nmv build/now build/at\necho \"$(basename \"$PWD\") $warm $same\" >> {}\n",
        told.display()
    );
    repository.write("tests.sh", &tests);
    let sandbox = format!("[sandbox]\ncaches = [\"{}\"]\n[test]", log.dir().display());
    repository.set(&[("[test]", &sandbox), ("workers = 2", "workers = 1")]);
    let landings = || {
        let text = log.read("log");
        let of = |line: &&str| line.starts_with("landing ");
        text.lines().filter(of).map(str::to_owned).collect::<Vec<_>>()
    };
    repository.ok("run --until-idle");
    // Main alone: the merge has the files that the gate tested, and its own closing of the ticket is no other work.
    assert_eq!(landings(), ["landing cold same"]);
    assert!(repository.git("show main:.tickets/t-1.md").contains("status: closed"));
    repository.ok("task add more");
    repository.ok("run --until-idle");
    assert_eq!(landings().len(), 1, "the merge has the files that the gate tested: {:?}", landings());
    assert_eq!(log.read("log").lines().count(), 3);
    // Main got files that the gate has not seen.
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.ok("task add last --id t-last");
    assert_eq!(repository.adj("run --until-idle").code, 1, "t-last waits for its review");
    repository.write("person.txt", "mine\n");
    repository.commit("Add a file");
    repository.ok("review t-last --approve");
    repository.ok("run --until-idle");
    assert_eq!(landings().last().map(String::as_str), Some("landing warm same"), "{}", log.read("log"));
    assert_eq!(repository.git("ls-files junk.txt"), "");
}

/// A landing whose tests take long says so, with what it runs.
#[test]
fn a_landing_that_takes_long_says_what_it_runs() {
    let repository = Repository::new("main-long", WRITES, &["t-1"]);
    repository.write("tests.sh", "case $PWD in */landing) if [ -e t-1.txt ]; then touch \"$TMPDIR/there\"; while [ ! -e \"$TMPDIR/go\" ]; do sleep 0.02; done; fi;; *) touch \"${PWD##*/}.only\";; esac\n");
    // The gate's tests leave a file that git ignores, so that the merge is tested although its files are the same.
    repository.write(".gitignore", "*.only\n");
    repository.commit("Slow");
    let fleet = repository.start("run --until-idle");
    fleet.wait_for("t-1 is landing: `sh tests.sh` is running");
    std::fs::write(repository.temp("t-1").join("go"), "").expect("it can go on");
    fleet.done();
}

/// What the tests write into a tree is not the agent's work, also where they fail and the agent goes on.
#[test]
fn files_that_failing_tests_wrote_are_not_committed_by_the_next_gate() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "red.check", text = "exit 1\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "red.check", text = "true\n" }, { append = "mine.txt", text = "by the agent\n" }, { done = true } ]
"#;
    let repository = Repository::new("main-litter", scenario, &["t-1"]);
    let tests = repository.read("tests.sh");
    repository.write("kept.txt", "as it was\n");
    repository
        .write("tests.sh", &format!("echo x > litter.txt; echo x > mine.txt; echo x >> kept.txt\n{tests}"));
    repository.commit("Tests that litter");
    repository.ok("run --until-idle");
    assert_eq!(repository.read("mine.txt"), "x\nby the agent\n", "what the agent went on with is its own");
    assert_eq!(repository.git("ls-files litter.txt"), "");
    assert_eq!(repository.read("kept.txt"), "as it was\n");
}
