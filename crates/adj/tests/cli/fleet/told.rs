//! What `adj run`, `adj waiting`, `adj history` and `adj why` say of rooms, the architect and agents that fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::{keepers, wait};
use super::policies::{DONE, WRITE, scenario};
use super::rooms::project;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// The rows of an agent's place in the room, as its log has them.
fn rows(repository: &Repository, agent: &str) -> Vec<(String, String, String)> {
    let all = repository.json("history talk");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let of_agent = all.as_array().unwrap().iter().filter(|row| row["agentId"] == agent);
    of_agent.map(|row| (text(row, "from"), text(row, "to"), text(row, "trigger"))).collect()
}

fn state(repository: &Repository, agent: &str) -> String {
    let members = repository.room()["members"].clone();
    let member = members.as_array().unwrap().iter().find(|member| member["agent"] == agent).cloned();
    member.unwrap()["state"].as_str().unwrap().to_owned()
}

/// A turn that stands still is a line of the fleet, with why and how it continues; what it lost is said in the room.
#[test]
fn a_member_that_waits_and_a_wait_that_is_forfeited_are_told_by_the_fleet_and_in_the_room() {
    let repository = project("waits", &[("anna", "{ hang = true }"), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna --add ben");
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    repository.ok("turn wait talk --as anna --note tea --for 5m");
    fleet.wait_for(
        "talk: anna waits in its turn: tea; it loses the turn in 5 min, or: adj turn resume talk --as anna",
    );
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("anna waits in its turn in talk: tea"), "{waiting}");
    repository.ok("turn resume talk --as anna");
    repository.ok("turn wait talk --as anna --note milk --for 1s");
    fleet.wait_for("talk: ⏱️ anna waited too long and lost its turn");
    let said = repository.ok("channel history talk");
    assert!(said.contains("⏱️ anna waited too long and lost its turn"), "{said}");
    let history = repository.ok("history talk");
    for part in [
        "anna pauses its turn in talk: tea",
        "a person gave anna its turn in talk back",
        "anna waited too long and lost its turn",
    ] {
        assert!(history.contains(part), "{part}: {history}");
    }
    fleet.stop();
}

/// In the mode `interrupt` a person's message pauses the turn; the fleet and the history say so.
#[test]
fn an_interrupted_turn_is_told_with_the_command_that_resumes_it() {
    let repository = project("interrupted", &[("anna", "{ hang = true }"), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --mode interrupt --add anna --add ben");
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    repository.ok("channel post talk Stop");
    fleet.wait_for(
        "talk: anna waits in its turn: a person interrupted it; it loses the turn in 5 min, or: adj turn resume talk --as anna",
    );
    let history = repository.ok("history talk");
    assert!(history.contains("anna was interrupted in talk by a person"), "{history}");
    repository.ok("turn skip talk --as ben");
    repository.ok("channel remove talk anna");
    let history = repository.ok("history talk");
    for part in ["the next turn of ben in talk is to be skipped", "anna was removed from talk"] {
        assert!(history.contains(part), "{part}: {history}");
    }
    fleet.stop();
}

/// Who is lost gets no turn until somebody adds it again: the line says with which command.
#[test]
fn a_member_that_is_lost_is_told_by_the_fleet_with_the_way_back() {
    let repository = project("told-lost", &[("anna", "{ crash = true }"), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna --add ben");
    fleet.wait_for("talk: anna is OFFLINE and gets no turn: adj channel add talk anna");
    assert!(fleet.lines().contains("talk: ⚠️ anna disconnected, skipping turn"), "{}", fleet.lines());
    fleet.stop();
}

/// The agent had answered and did not end its turn: whoever reads the room or the fleet's lines is warned.
#[test]
fn an_agent_that_forgets_to_end_its_turn_is_warned_of_where_people_look() {
    let repository = project("forgets", &[("anna", "{ say = \"Tea.\" }"), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 2s --ends signal --add anna --add ben");
    let warning = "anna: Agent completed response without TURN_COMPLETE";
    fleet.wait_for(&format!("talk: ⚠️ {warning}"));
    for line in ["channel history talk", "channel tail talk --no-follow"] {
        let said = repository.ok(line);
        assert!(said.contains(&format!("⚠️ {warning}")), "{line}: {said}");
    }
    fleet.stop();
}

/// Alone it rested; with somebody to talk to it has its place in the queue again. Whoever is removed and added again goes on
/// from where it stood.
#[test]
fn an_agent_that_rested_alone_is_queued_when_another_joins_and_rows_join_up() {
    let repository = project("rested", &[("anna", "{ say = \"Tea.\" }"), ("ben", "{ hang = true }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("anna rests", || (state(&repository, "anna") == "IDLE").then_some(()));
    repository.ok("channel add talk ben");
    wait("ben at work", || (repository.room()["turn"]["agent"] == "ben").then_some(()));
    assert_eq!(state(&repository, "anna"), "QUEUED", "it is not alone any more");
    repository.ok("channel remove talk anna");
    repository.ok("channel add talk anna");
    let rows = rows(&repository, "anna");
    for pair in rows.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "{rows:?}");
    }
    assert!(rows.iter().any(|(_, _, trigger)| trigger == "removed_from_channel"), "{rows:?}");
    assert_eq!(rows.last().unwrap().1, "QUEUED", "{rows:?}");
    fleet.stop();
}

/// In the mode `inject` whoever has the turn gets a message at once: it is held back from the others alone.
#[test]
fn a_message_for_whoever_has_the_turn_is_not_shown_as_held() {
    let repository = project("told-inject", &[("anna", "{ hang = true }"), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna --add ben");
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    repository.ok("channel post talk And?");
    let tail = repository.ok("channel tail talk --no-follow");
    assert!(tail.contains("And?  (to anna now, to the others when its turn is over)"), "{tail}");
    assert!(!tail.contains("held until"), "{tail}");
    fleet.stop();
}

/// An agent that has ended its turn may take a while to end itself. That is nothing that a reader needs to know.
#[test]
fn a_program_that_is_still_ending_is_not_told_as_a_channel_that_stands_still() {
    let adj = env!("CARGO_BIN_EXE_adj");
    let own = format!(
        "{adj} channel post talk Tea. && {adj} turn complete talk --as anna; while [ ! -e go ]; do sleep 0.05; done"
    );
    let anna = format!("{{ run = \"{own}\", quiet = true }} | {{ say = \"PASS\" }}");
    let repository =
        project("ending", &[("anna", &anna), ("ben", "{ say = \"Milk.\" } | { say = \"PASS\" }")]);
    let fleet = repository.start("run");
    wait("the fleet", || repository.ok("why -v").contains("the fleet is at work").then_some(()));
    repository.ok("channel create talk --timeout 10m --add anna --add ben");
    let tail = repository.command("channel tail talk").stdout(Stdio::piped()).spawn().unwrap();
    repository.ok("channel post talk Well?");
    wait("Milk", || repository.said().contains(&"agent:ben: Milk.".to_owned()).then_some(()));
    wait("anna's end is waited for", || (repository.room()["stalled"] == true).then_some(()));
    std::fs::write(repository.tree("rooms/room+talk+anna/go"), "").unwrap();
    wait("a rest", || (repository.room()["rests"] == true).then_some(()));
    repository.ok("channel close talk");
    let told = String::from_utf8(tail.wait_with_output().unwrap().stdout).unwrap();
    assert!(told.contains("ben has the turn") && told.contains("Milk."), "{told}");
    assert!(!told.contains("nobody can be given the turn"), "{told}");
    fleet.stop();
}

/// What a program says on its standard output says why it failed as well as what it says on the other.
#[test]
fn the_last_words_of_a_command_that_fails_are_in_why_and_in_the_history() {
    let repository = Repository::new("command-output", "", &["t-1"]);
    let command = r#"adapter = "command"
command = ["sh", "-c", "echo a warning >&2; echo the quota is used up; exit 3"]"#;
    repository.set(&[("adapter = \"script\"\ncommand = [\"scenario.toml\"]", command)]);
    let fleet = repository.start("run");
    fleet.wait_for("step on t-1 failed");
    for line in ["why t-1", "history t-1"] {
        let said = repository.ok(line);
        assert!(said.contains("exit code 3") && said.contains("the quota is used up"), "{line}: {said}");
    }
    assert!(fleet.lines().contains("the quota is used up"), "{}", fleet.lines());
    fleet.stop();
}

/// While its tests run, a task waits for nothing else; the command that shows them stands beside.
#[test]
fn why_says_for_how_long_tests_run_and_how_to_watch_them() {
    let repository = Repository::new("why-tests", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    let go = repository.dir().join(".git/go");
    let tests = format!(
        "test ! -e t-1.txt || {{ echo waiting for go; while [ ! -e {0} ]; do sleep 0.05; done; echo going; }}",
        go.display()
    );
    repository.write("base.check", &format!("{tests}\n"));
    repository.commit("Slow tests");
    repository.set(&[("[test]", "[sandbox]\nmode = \"off\"\n[test]")]);
    let fleet = repository.start("run");
    wait("tests", || repository.ok("ps").contains("tests running").then_some(()));
    let why = repository.ok("why t-1");
    assert!(why.contains("tests running ") && why.contains("adj logs t-1 --tests"), "{why}");
    let mut followed =
        repository.command("logs t-1 --tests --follow").stdout(Stdio::piped()).spawn().expect("adj runs");
    let mut lines = BufReader::new(followed.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").unwrap(), "waiting for go");
    let ps = repository.ok("ps");
    assert!(ps.contains("✓  A") && ps.contains("done"), "{ps}");
    std::fs::write(&go, "").unwrap();
    let rest: Vec<String> = lines.map(|line| line.unwrap()).collect();
    assert_eq!((rest, followed.wait().unwrap().code()), (vec!["going".to_owned()], Some(0)));
    fleet.wait_for("t-1 landed");
    wait("an idle fleet", || {
        let why = repository.ok("why");
        (why.contains("no task is open")).then_some(())
    });
    let why = repository.ok("why");
    assert!(!why.contains("have not been run yet"), "{why}");
    fleet.stop();
}

/// The live view has the words of `adj ps`: a worker is `done` while its tests run, and that they do stands beside it.
#[test]
fn the_live_view_has_the_words_of_ps() {
    let repository = Repository::new("live-words", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    let go = repository.dir().join(".git/go");
    let tests = format!(
        "test ! -e t-1.txt || {{ echo waiting for go; while [ ! -e {0} ]; do sleep 0.05; done; echo going; }}",
        go.display()
    );
    repository.write("base.check", &format!("{tests}\n"));
    repository.commit("Slow tests");
    repository.set(&[("[test]", "[sandbox]\nmode = \"off\"\n[test]")]);
    let live = repository.on_terminal("run");
    live.wait_for("tests running");
    live.wait_for("A       done ");
    assert!(repository.ok("ps").contains("done"), "{}", repository.ok("ps"));
    std::fs::write(&go, "").unwrap();
    live.wait_for("t-1 landed");
    live.stop();
}

/// A fleet that has nothing to begin does not count main's tests, which it has not run, as a failure.
#[test]
fn an_idle_fleet_does_not_show_mains_tests_as_a_failure() {
    let repository = Repository::new("why-idle", "", &[]);
    let fleet = repository.start("run");
    let why = wait("the fleet", || {
        Some(repository.ok("why -v")).filter(|why| why.contains("the fleet is at work"))
    });
    assert!(why.contains("✓ main's own tests") || !why.contains("main's own tests"), "{why}");
    assert!(!why.contains("have not been run yet"), "{why}");
    fleet.stop();
}

/// Before its tree is made there is no branch that anything could be on.
#[test]
fn a_worker_that_never_began_is_killed_without_a_word_of_a_branch() {
    let repository = Repository::new("kill-ready", &scenario(&[&format!("{WRITE}, {DONE}")]), &[]);
    repository.ok("spawn bob");
    repository.ok("task add Slow");
    repository.ok("assign bob t-1");
    let killed = repository.adj("kill bob");
    assert_eq!(killed.code, 0, "{}", killed.stderr);
    assert!(!killed.stderr.contains("branch"), "{}", killed.stderr);
    assert!(!repository.git("branch --list").contains("agent/"));
}

/// The commit that takes a task back is made by rule: nothing is said of tests that did not run.
#[test]
fn the_history_of_an_undo_does_not_claim_tests_that_have_not_run() {
    let repository = Repository::new("undo-history", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.adj("run --until-idle");
    repository.ok("review t-1 --approve");
    repository.ok("run --until-idle");
    let undone = repository.ok("undo t-1");
    let undo = undone.split(' ').next().unwrap().to_owned();
    let before = repository.ok(&format!("history {undo}"));
    assert!(!before.contains("the tests pass") && !before.contains("waits for you"), "{before}");
    repository.ok("run --until-idle");
    let history = repository.ok(&format!("history {undo}"));
    assert!(
        history.contains(&format!("{undo} landed on main")) && !history.contains("waits for you"),
        "{history}"
    );
}

/// A list on one line changes with every story that lands: each finds its own status there.
#[test]
fn tasks_of_task_master_on_one_line_are_marked_as_they_land() {
    let repository = Repository::new("one-line", &scenario(&[&format!("{WRITE}, {DONE}")]), &[]);
    let list = r#"{"master":{"tasks":[{"id":1,"title":"Paint","status":"pending","subtasks":[{"id":1,"title":"Buy","status":"pending"},{"id":2,"title":"Mix","status":"pending","dependencies":[1]}]},{"id":2,"title":"Hang","status":"pending"}]}}"#;
    repository.write(".taskmaster/tasks/tasks.json", list);
    repository.commit("A list on one line");
    repository.ok("spec submit .taskmaster --yes");
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        repository.git("show main:.taskmaster/tasks/tasks.json"),
        list.replace("pending", "done"),
        "{}",
        ran.stdout
    );
}

/// The clones of rooms and of the architect had a hidden folder before; they are moved when no agent is at work in them.
#[test]
fn clones_of_rooms_are_in_a_folder_that_is_not_hidden_and_those_of_before_are_moved() {
    let repository = project("moved-clones", &[("anna", "{ say = \"Tea.\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("Tea", || repository.said().contains(&"agent:anna: Tea.".to_owned()).then_some(()));
    fleet.stop();
    let (old, new) = (repository.tree(".seats"), repository.tree("rooms"));
    std::fs::rename(&new, &old).unwrap();
    std::fs::write(old.join("room+talk+anna/kept-by-an-earlier-version"), "").unwrap();
    repository.adj("run --until-idle");
    assert!(!old.exists() && new.join("room+talk+anna").is_dir());
}

/// Numbers in names count as numbers, and more than one task is said in the plural.
#[test]
fn tasks_are_listed_in_the_order_of_their_numbers_and_several_of_them_wait() {
    let repository = Repository::new("natural", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    for id in ["t-2", "t-10"] {
        repository.ticket(id, &["t-1"]);
    }
    repository.commit("Two more");
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("t-2, t-10 wait for t-1, which is in REVIEW"), "{}", ran.stdout);
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("t-1, t-2, t-10"), "{waiting}");
}

/// A stuck worker is replaced if there is something left to do, and only then.
#[test]
fn no_worker_is_made_when_no_work_is_left() {
    let red = r#"{ write = "{task}.check", text = "false\n" }, { commit = "Do {task}" }, { done = true }"#;
    let repository = Repository::new("no-more", &scenario(&[red]), &["t-1"]);
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("t-1 is BLOCKED"), "{}", ran.stdout);
    let workers = repository.json("ps");
    assert_eq!(workers.as_array().map(Vec::len), Some(1), "{workers}");
}

/// Without a budget nobody needs to hear of each step without a price; the summary counts them.
#[test]
fn prices_that_are_unknown_are_told_in_the_summary_where_there_is_no_budget() {
    let repository = Repository::new("no-prices", "", &["t-1"]);
    let command = r#"adapter = "command"
command = ["sh", "-c", "echo x > t-1.txt && echo DONE"]"#;
    repository.set(&[("adapter = \"script\"\ncommand = [\"scenario.toml\"]", command)]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("without a price") && ran.stdout.contains("unknown"), "{}", ran.stdout);
}

/// The step that runs is the one in the table and in the words beside it.
#[test]
fn ps_counts_the_step_that_runs() {
    let repository = Repository::new("ps-step", &scenario(&["{ hang = true }"]), &["t-1"]);
    let fleet = repository.start("run");
    let row = wait("a step", || {
        let ps = repository.ok("ps");
        ps.lines().find(|line| line.contains("step 1, turn")).map(str::to_owned)
    });
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..5], ["A", "working", "t-1", "1"], "{row}");
    repository.ok("stop --now");
    fleet.stop();
}

/// Containers and services often set no variable with the user's name; the system knows it.
#[test]
fn a_person_is_called_by_their_user_name() {
    let repository = project("user", &[("anna", "{ say = \"PASS\" }")]);
    repository.ok("channel create talk");
    let mut post = repository.command("channel post talk Hello");
    for name in ["ADJ_USER", "USER", "LOGNAME"] {
        post.env_remove(name);
    }
    assert!(post.output().unwrap().status.success());
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().expect("it has a name").name;
    assert_eq!(repository.said(), [format!("human:{user}: Hello")]);
}
