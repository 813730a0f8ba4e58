//! Agents that a person disables, logins that are kept for them, and members of rooms that wait.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::{keepers, wait};
use super::policies::scenario;
use super::rooms::project;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const BUILD: &str = r#"{ write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true }"#;

fn state_of(repository: &Repository, agent: &str) -> String {
    let members = repository.room()["members"].clone();
    let member = members.as_array().unwrap().iter().find(|member| member["agent"] == agent);
    member.unwrap()["state"].as_str().unwrap().to_owned()
}

/// Nothing is begun with it, and everybody who asks is told by whom and what to do.
#[test]
fn an_agent_that_is_disabled_takes_no_task_until_a_person_enables_it() {
    let repository = Repository::new("disabled", &scenario(&[BUILD]), &["t-1"]);
    let said = repository.command("agent disable player --reason").arg("too expensive").output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let lines = repository.adj("run --until-idle").stdout;
    assert_eq!(repository.task("t-1")["status"], "INBOX", "{lines}");
    let why = repository.ok("why t-1");
    assert!(why.contains("human:tester disabled agent `player`: too expensive"), "{why}");
    let waiting = repository.ok("waiting");
    assert!(
        waiting.contains("agent player is disabled") && waiting.contains("adj agent enable player"),
        "{waiting}"
    );
    let refused = repository.adj("start player t-1");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("disabled"), "{}", refused.stderr);
    let listed = repository.json("agent ls");
    assert_eq!(listed[0]["disabled"]["reason"], "too expensive", "{listed}");
    assert_eq!(repository.adj("agent disable nobody").code, 4);
    assert_eq!(repository.ok("agent enable player"), "agent player is enabled\n");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let history = repository.ok("history");
    assert!(history.contains("agent player was disabled by human:tester: too expensive"), "{history}");
}

/// In the middle of its turn it is ended; the others talk on, and it comes back only when somebody adds it.
#[test]
fn an_agent_that_is_disabled_in_its_turn_is_offline_and_idle_once_it_is_enabled() {
    let repository = project(
        "disabled",
        &[("anna", "{ hang = true }"), ("ben", "{ say = \"Go on.\" } | { say = \"PASS\" }")],
    );
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna --add ben");
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    repository.ok("agent disable anna");
    wait("ben speaks", || repository.said().contains(&"agent:ben: Go on.".to_owned()).then_some(()));
    assert_eq!(state_of(&repository, "anna"), "OFFLINE");
    let added = repository.adj("channel add talk anna");
    assert_eq!((added.code, state_of(&repository, "anna").as_str()), (0, "OFFLINE"), "{}", added.stderr);
    repository.ok("agent enable anna");
    // It was added meanwhile, and joins now.
    wait("anna is back", || (repository.room()["turn"]["agent"] == "anna").then_some(()));
    let history = repository.ok("history talk");
    for part in ["anna has the turn in talk", "anna is OFFLINE in talk", "the turn of ben in talk is over"] {
        assert!(history.contains(part), "{part}: {history}");
    }
    fleet.stop();
}

/// A member that crashed gets no turn: whoever looks at what waits is told, with the command that puts it back.
#[test]
fn a_member_that_was_lost_and_a_turn_that_was_skipped_are_named_as_what_they_are() {
    let repository = project(
        "lost-member",
        &[("anna", "{ crash = true }"), ("ben", "{ hang = true } | { say = \"PASS\" }")],
    );
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna --add ben");
    wait("ben at work", || {
        (repository.room()["turn"]["agent"] == "ben" && keepers(&repository).len() == 1).then_some(())
    });
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("anna is OFFLINE in talk and gets no turn"), "{waiting}");
    assert!(waiting.contains("adj channel add talk anna"), "{waiting}");
    repository.ok("turn skip talk --as ben");
    let skipped = |record: &Value| record["trigger"] == "turn_skipped" && record["agentId"] == "ben";
    wait("a skipped turn", || {
        let moves = repository.json("history talk");
        moves.as_array().unwrap().iter().any(skipped).then_some(())
    });
    fleet.stop();
}

/// A power cut can tear the file in which an agent's program keeps its session. That costs the agent its memory, and not its place.
#[test]
fn a_member_whose_session_file_is_torn_begins_a_new_session_and_stays_in_its_room() {
    let repository = project("torn-session", &[("anna", "{ say = \"Hello.\" } | { say = \"Again.\" }")]);
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    let rests = || {
        let room = repository.room();
        (room["turn"].is_null() && room["stalled"] == false && keepers(&repository).is_empty()).then_some(())
    };
    let hellos = || repository.said().iter().filter(|said| said.ends_with("anna: Hello.")).count();
    wait("the first words", || (hellos() == 1).then_some(()));
    wait("a room that rests", rests);
    let seats = repository.state("private/.seats");
    let sessions = std::fs::read_dir(seats.join("room+talk+anna/sessions")).unwrap();
    let session = sessions.map(|entry| entry.unwrap().path()).next().unwrap();
    repository.write(&session, "{\"st");
    repository.talk(&["channel", "post", "talk", "And now?"]);
    fleet.wait_for("cannot be read");
    wait("a new session", || (hellos() == 2).then_some(()));
    wait("a room that rests", rests);
    assert_ne!(state_of(&repository, "anna"), "OFFLINE");
    assert!(!repository.ok("waiting").contains("anna"), "{}", repository.ok("waiting"));
    fleet.stop();
}

/// The call is answered, the program says its last words and ends by itself: its session holds nothing of an interruption.
#[test]
fn a_turn_that_claude_ends_by_its_tool_leaves_its_session_as_it_is() {
    let repository = project("tool-end", &[("ben", "{ say = \"PASS\" }")]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let agent = format!(
        "\n[agents.anna]\nadapter = \"claude\"\ncommand = [{adj:?}, \"internal\", \"replay\", {file:?}]\nallowed_tools = [\"Bash\"]\n"
    );
    repository.write("adjutant.toml", &(repository.read("adjutant.toml") + &agent));
    let say = format!("{adj} channel post talk Tea. && {adj} turn complete talk --as anna");
    let end = json!({ "name": "Bash", "input": { "command": say } });
    let replies = json!([[{ "tools": [end] }, { "text": "I have ended my turn." }]]);
    repository.write("replies.json", &replies.to_string());
    repository.commit("Claude");
    let fleet = repository.start("run");
    repository.ok("channel create talk --topic Tea? --timeout 10m --add anna --add ben");
    wait("ben's turn", || (repository.events("start_reply") == 2).then_some(()));
    wait("anna to end", || keepers(&repository).is_empty().then_some(()));
    let log = repository.log();
    let ended = log.iter().find(|record| record["data"]["what"]["effect"] == "end_reply").expect("it ends");
    assert_eq!(ended["data"]["what"]["finish"], true, "{ended}");
    let steps = std::fs::read_dir(repository.state("steps")).unwrap().flatten();
    let steps: Vec<_> = steps.map(|step| step.path()).collect();
    let of = |name: &str| -> String {
        let texts = steps.iter().map(|step| std::fs::read_to_string(step.join(name)).unwrap_or_default());
        texts.collect()
    };
    let (said, told) = (of("out"), of("in"));
    assert!(said.contains("I have ended my turn."), "its last words came: {said}");
    assert!(!told.contains("interrupt"), "nobody interrupted it: {told}");
    assert_eq!(
        repository.said(),
        ["human:tester: Tea?", "agent:anna: Tea."],
        "what it said after its turn is not posted"
    );
    fleet.stop();
}

/// However many rooms talk, the rest of the machine is for tasks; and each room comes to its turn.
#[test]
fn no_more_replies_run_at_once_than_the_settings_allow() {
    let repository =
        project("share", &[("anna", "{ run = \"sleep 0.3\", quiet = true }, { say = \"Here.\" }")]);
    repository.set(&[("[test]", "[limits]\nreplies = 1\n[test]")]);
    let rooms = ["one", "two", "three"];
    for room in rooms {
        repository.ok(&format!("channel create {room} --topic Well? --timeout 10m --add anna"));
    }
    let fleet = repository.start("run");
    let spoken = |room: &&str| repository.ok(&format!("channel history {room}")).contains("Here.");
    wait("all three", || rooms.iter().all(spoken).then_some(()));
    fleet.stop();
    let (mut at_once, mut most) = (0, 0);
    for record in repository.log() {
        if record["kind"] == "reply_under_way" {
            at_once += if record["data"]["effect"].is_string() { 1 } else { -1 };
            most = most.max(at_once);
        }
    }
    assert_eq!(most, 1);
}

/// `--reviewer` says what is missing before anybody talks, and so does the refusal.
#[test]
fn a_reviewer_that_cannot_approve_is_told_what_is_missing() {
    let repository = Repository::new("reviewer", &scenario(&[BUILD]), &["t-1"]);
    let ben = "[agents.ben]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\nrole = \"lead\"\n[test]";
    repository.set(&[("review = \"auto\"", "review = \"human\""), ("[test]", ben)]);
    repository.adj("run --until-idle");
    let said = repository.adj("review t-1 --room rev --reviewer ben");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(
        said.stderr.contains("`ben` can ask for changes but not approve")
            && said.stderr.contains("lead_may_complete = true"),
        "{}",
        said.stderr
    );
    repository.set(&[("[test]", "[policy]\nlead_may_complete = true\n[test]")]);
    repository.adj("run --until-idle");
    let said = repository.adj("task edit t-1 --reviewer ben");
    assert!(!said.stderr.contains("not approve"), "{}", said.stderr);
}

/// One command, and the agent has its login; tests, other agents and other users of the machine have not.
#[test]
fn a_login_is_kept_for_the_user_alone_and_given_to_the_agent_whose_env_names_it() {
    let show = r#"{ run = "printf %s \"$CLAUDE_CODE_OAUTH_TOKEN\" > login.txt" }, { run = "cat \"$HOME/.config/adjutant/credentials/CLAUDE_CODE_OAUTH_TOKEN\" > stolen.txt 2>/dev/null || true" }, { commit = "Show it" }, { done = true }"#;
    let repository = Repository::new("login", &scenario(&[show]), &["t-1"]);
    let home = repository.dir().join(".git/home");
    std::fs::create_dir_all(&home).unwrap();
    let in_home = |line: &str| {
        let mut command = repository.command(line);
        command.env("HOME", &home).env_remove("XDG_CONFIG_HOME").env_remove("CLAUDE_CODE_OAUTH_TOKEN");
        command
    };
    let mut login = in_home("login claude").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    login.stdin.take().unwrap().write_all(b"sk-ant-oat01-kept\n").unwrap();
    assert!(login.wait().unwrap().success());
    let file = home.join(".config/adjutant/credentials/CLAUDE_CODE_OAUTH_TOKEN");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"script\"\nenv = [\"CLAUDE_CODE_OAUTH_TOKEN\"]"),
        (
            "command = \"sh tests.sh\"",
            "command = \"test -z \\\"$CLAUDE_CODE_OAUTH_TOKEN\\\" && sh tests.sh\"",
        ),
    ]);
    let ran = in_home("run --until-idle").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(repository.read("login.txt"), "sk-ant-oat01-kept");
    assert_eq!(repository.read("stolen.txt"), "", "the file is hidden from agents");
    let removed = in_home("login claude --remove").output().unwrap();
    assert!(removed.status.success() && !file.exists());
    let unknown = in_home("login nobody").output().unwrap();
    assert_eq!(unknown.status.code(), Some(4));
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(told.contains("claude, codex"), "{told}");
}
