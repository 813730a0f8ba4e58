//! Rooms of agents that the fleet starts itself, through the real program.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::{keepers, running, wait};
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

/// A repository without tickets, whose agents play these scenarios in rooms.
pub(super) fn project(name: &str, agents: &[(&str, &str)]) -> Repository {
    let repository = Repository::new(&format!("rooms-{name}"), "", &[]);
    let mut settings = repository.read("adjutant.toml");
    for (agent, actions) in agents {
        settings
            .push_str(&format!("\n[agents.{agent}]\nadapter = \"script\"\ncommand = [\"{agent}.toml\"]\n"));
        let steps = actions.split(" | ").map(|actions| format!("[[scenario.step]]\ndo = [ {actions} ]\n"));
        let scenario = format!("[[scenario]]\ntask = \"room/*\"\n{}", steps.collect::<String>());
        repository.write(&format!("{agent}.toml"), &scenario);
    }
    repository.write("adjutant.toml", &settings);
    repository.commit("Agents that talk");
    repository
}

impl Repository {
    #[track_caller]
    pub(super) fn talk(&self, arguments: &[&str]) {
        let ran: crate::Ran = self.command("").args(arguments).output().unwrap().into();
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }

    pub(super) fn room(&self) -> Value {
        self.json("channel status talk")
    }

    /// What was said, by whom.
    pub(super) fn said(&self) -> Vec<String> {
        let all = self.json("channel history talk");
        let said = all.as_array().unwrap().iter().filter(|entry| entry["event"] == "message");
        let part = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        said.map(|entry| format!("{}: {}", part(entry, "by"), part(entry, "text"))).collect()
    }

    fn wait_said(&self, text: &str) -> Vec<String> {
        wait(text, || Some(self.said()).filter(|said| said.iter().any(|said| said.contains(text))))
    }

    /// What the room announced.
    fn announced(&self) -> Vec<String> {
        let log = self.log();
        let said = log
            .iter()
            .filter(|record| record["kind"] == "channel_said" && record["data"]["kind"] == "announcement");
        said.map(|record| record["data"]["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Everybody who can has spoken, and nobody is at work.
    fn wait_rest(&self) {
        wait("a room that rests", || {
            let room = self.room();
            // Alone at its turn's end, an agent rests; with others, the room does. What stalls goes on by itself.
            let rests = room["turn"].is_null() && room["stalled"] == false;
            (rests && keepers(self).is_empty()).then_some(())
        });
    }
}

#[test]
fn two_agents_and_a_person_talk_and_then_the_room_rests() {
    let repository = project(
        "talk",
        &[("anna", "{ say = \"Tea.\" }"), ("ben", "{ say = \"{prompt}\" }"), ("carl", "{ say = \"PASS\" }")],
    );
    let fleet = repository.start("run");
    repository.talk(&[
        "channel",
        "create",
        "talk",
        "--topic",
        "Tea or coffee?",
        "--add",
        "anna",
        "--add",
        "ben",
        "--add",
        "carl",
    ]);
    let said = repository.wait_said("agent:ben");
    repository.wait_rest();
    assert_eq!(said[..2], ["human:tester: Tea or coffee?", "agent:anna: Tea."]);
    let told = &said[2];
    for part in [
        "agent:ben: It is your turn in the room `talk`",
        "- `ben`, which is you",
        "[1] human:tester:\n> Tea or coffee?\n\n[2] agent:anna:\n> Tea.",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert_eq!(repository.said().len(), 3, "silence is a legal turn, and nobody speaks without end");
    // Its own clone, at main, of which nothing is landed.
    let clone = repository.tree("rooms/room+talk+ben");
    assert_eq!(std::fs::read_to_string(clone.join("base.check")).unwrap(), "true\n");
    // Their sessions go on.
    repository.talk(&["channel", "post", "talk", "Really?"]);
    repository.wait_said("Really?");
    repository.wait_rest();
    let starts = repository.log();
    let resumed = starts.iter().filter(|record| record["data"]["what"]["effect"] == "start_reply");
    let resumed: Vec<bool> =
        resumed.map(|record| record["data"]["what"]["resume"].as_bool().unwrap()).collect();
    assert_eq!(resumed.iter().filter(|resume| !**resume).count(), 3, "{resumed:?}");
    assert!(resumed.len() > 3, "{resumed:?}");
    // What they were let in with is gone.
    wait("no token", || (repository.read(&repository.state("tokens.json")) == "[]").then_some(()));
    fleet.stop();
}

#[test]
fn an_agent_is_told_that_it_is_its_turn_in_the_words_of_the_settings() {
    let repository = project("words", &[("anna", "{ say = \"{prompt}\" }")]);
    repository.write("own.md", "Speak, {{agent}}, in {{room}}, within {{seconds}} s:\n{{said}}\n");
    repository.set(&[("[test]", "[prompts]\nturn = \"own.md\"\n[test]")]);
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "2m", "--add", "anna"]);
    let said = repository.wait_said("agent:anna");
    assert_eq!(said[1], "agent:anna: Speak, anna, in talk, within 120 s:\n[1] human:tester:\n> Well?");
    fleet.stop();
}

#[test]
fn an_agent_that_crashes_and_one_that_takes_too_long_are_announced_and_gone() {
    let repository = project(
        "lost",
        &[("anna", "{ crash = true }"), ("ben", "{ hang = true }"), ("carl", "{ say = \"Alone at last.\" }")],
    );
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk"]);
    repository.talk(&["channel", "add", "talk", "anna", "carl"]);
    repository.talk(&["channel", "add", "talk", "ben", "--timeout", "2s"]);
    repository.talk(&["channel", "post", "talk", "Well?"]);
    repository.wait_said("Alone at last.");
    let announced = ["⚠️ anna disconnected, skipping turn", "⏱️ ben turn timed out"];
    wait("both are announced", || {
        let all = repository.announced();
        announced.iter().all(|text| all.contains(&(*text).to_owned())).then_some(())
    });
    repository.wait_rest();
    assert_eq!(repository.strays(), Vec::<String>::new(), "what timed out does not go on");
    let members = repository.room()["members"].clone();
    let state = |name: &str| {
        members.as_array().unwrap().iter().find(|member| member["agent"] == name).unwrap()["state"].clone()
    };
    assert_eq!((state("anna"), state("ben")), (json!("OFFLINE"), json!("QUEUED")));
    fleet.stop();
}

/// The whole of a turn is one reply, whatever happens to the fleet meanwhile.
#[test]
fn a_fleet_that_is_killed_in_the_middle_of_a_turn_goes_on_with_it_and_the_reply_comes_once() {
    let repository = project("killed", &[("anna", "{ listen = 60 }, { say = \"I heard it.\" }")]);
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "anna"]);
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    let keeper = keepers(&repository);
    fleet.kill();
    assert_eq!(keepers(&repository), keeper, "it speaks on without a fleet");
    let fleet = repository.start("run");
    wait("a turn with the time that it had left", || (repository.events("turn_shifted") == 1).then_some(()));
    repository.talk(&["channel", "post", "talk", "And?"]);
    repository.wait_said("I heard it.");
    repository.wait_rest();
    assert_eq!(repository.said(), ["human:tester: Well?", "human:tester: And?", "agent:anna: I heard it."]);
    assert_eq!(repository.events("start_reply"), 1);
    fleet.stop();
}

/// The program of the agent speaks on, and what it says is heard when its turn goes on.
#[test]
fn a_person_pauses_the_turn_of_an_agent_and_nobody_else_gets_it_until_they_let_it_go_on() {
    let repository = project(
        "paused",
        &[("anna", "{ listen = 60 }, { say = \"I heard it.\" }"), ("ben", "{ say = \"PASS\" }")],
    );
    let fleet = repository.start("run");
    let create = "channel create talk --topic Well? --timeout 10m --add anna --add ben";
    repository.ok(create);
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    let refused = repository.adj("turn wait talk --as ben");
    assert_eq!(refused.code, 3, "who has no turn cannot wait in it: {}", refused.stderr);
    repository.ok("turn wait talk --as anna --note tea --for 5m");
    let turn = repository.room()["turn"].clone();
    assert_eq!((&turn["agent"], &turn["state"]), (&json!("anna"), &json!("WAITING")), "{turn}");
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("tea") && waiting.contains("adj turn resume talk --as anna"), "{waiting}");
    repository.ok("turn resume talk --as anna");
    assert_eq!(repository.room()["turn"]["state"], "ACTIVE");
    repository.talk(&["channel", "post", "talk", "And?"]);
    repository.wait_said("I heard it.");
    repository.wait_rest();
    assert_eq!(repository.said(), ["human:tester: Well?", "human:tester: And?", "agent:anna: I heard it."]);
    let moves = |record: &Value| {
        let moved = record["kind"] == "turn_moved" && record["data"]["agent"] == "anna";
        moved.then(|| record["data"]["to"].as_str().unwrap().to_owned())
    };
    let moves: Vec<String> = repository.log().iter().filter_map(moves).collect();
    assert_eq!(moves[..6], ["IDLE", "QUEUED", "ACTIVE", "WAITING", "ACTIVE", "QUEUED"], "{moves:?}");
    fleet.stop();
}

/// Of what the agent said before, nothing is posted; it speaks again, and its turn is the one that it had.
#[test]
fn a_turn_goes_on_when_the_fleet_of_a_server_is_switched_off_and_on_again() {
    let repository = project(
        "switched",
        &[("anna", "{ listen = 60 }, { say = \"Too early.\" } | { listen = 60 }, { say = \"I heard it.\" }")],
    );
    let mut command = repository.command("serve --port 0 --json");
    command.stderr(Stdio::null());
    let server = Server::begin(command, &repository.state("token"), None);
    let token = repository.read(&repository.state("token"));
    let switch = |word: &str| {
        let answer = server.ask(&format!("POST /api/v1/fleet/{word}"), token.trim(), &json!({}));
        assert!(answer.status < 300, "{word}: {}", answer.json());
    };
    switch("start");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("anna at work", || (keepers(&repository).len() == 1).then_some(()));
    switch("stop");
    let is_off = || server.ask("GET /api/v1/fleet", token.trim(), &Value::Null).json()["running"] == false;
    wait("the fleet to be off", || is_off().then_some(()));
    assert_eq!(keepers(&repository), Vec::<u32>::new(), "nobody is at work");
    let turn = repository.room()["turn"].clone();
    assert_eq!((&turn["agent"], &turn["state"]), (&json!("anna"), &json!("ACTIVE")), "{turn}");
    assert_eq!(repository.said().len(), 1, "nothing was said meanwhile");
    switch("start");
    wait("anna at work again", || (keepers(&repository).len() == 1).then_some(()));
    repository.talk(&["channel", "post", "talk", "And?"]);
    repository.wait_said("I heard it.");
    repository.wait_rest();
    assert_eq!(repository.said(), ["human:tester: Well?", "human:tester: And?", "agent:anna: I heard it."]);
    assert_eq!(repository.events("turn_granted"), 1, "it is the turn that it had");
    assert_eq!(repository.events("turn_shifted"), 1, "with the time that was left");
    assert_eq!(repository.announced(), Vec::<String>::new());
    drop(server);
}

#[test]
fn a_message_reaches_claude_in_the_middle_of_its_turn() {
    let repository = project("inject", &[("anna", "{ say = \"PASS\" }")]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let agent = format!(
        "\n[agents.coder]\nadapter = \"claude\"\ncommand = [{adj:?}, \"internal\", \"replay\", {file:?}]\nallowed_tools = [\"Bash\"]\n"
    );
    repository.write("adjutant.toml", &(repository.read("adjutant.toml") + &agent));
    let waits = json!({ "name": "Bash", "input": { "command": "until [ -e go ]; do sleep 0.05; done" } });
    repository.write("replies.json", &json!([[{ "tools": [waits] }, { "text": "Milk it is." }]]).to_string());
    repository.commit("Claude");
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Tea?", "--timeout", "10m", "--add", "coder"]);
    wait("coder's call", || (!running("until [ -e go ]").is_empty()).then_some(()));
    repository.talk(&["channel", "post", "talk", "And milk?"]);
    let receipt = |repository: &Repository| {
        let said = repository.json("channel history talk");
        said.as_array().unwrap().iter().find(|entry| entry["text"] == "And milk?").unwrap()["receipts"][0]["receipt"].clone()
    };
    wait("a message that is delivered", || (receipt(&repository) == "delivered").then_some(()));
    std::fs::write(repository.tree("rooms/room+talk+coder/go"), "").unwrap();
    repository.wait_said("Milk it is.");
    repository.wait_rest();
    assert_eq!(repository.events("start_reply"), 1, "it was told in the turn that it had");
    let steps = std::fs::read_dir(repository.state("steps")).unwrap().flatten();
    let journals: String = steps.map(|step| repository.read(&step.path().join("in"))).collect();
    assert!(journals.contains("> And milk?"), "{journals}");
    fleet.stop();
}

/// An agent whose time was over is given its turn once more, though the others have nothing to say.
#[test]
fn an_agent_that_timed_out_is_heard_in_the_next_round_before_the_room_rests() {
    let slow = "{ turn = \"Let me think.\" }, { hang = true } | { say = \"Now I know.\" }";
    let repository = project("late", &[("anna", slow), ("ben", "{ say = \"PASS\" }")]);
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk"]);
    repository.talk(&["channel", "add", "talk", "anna", "--timeout", "8s"]);
    repository.talk(&["channel", "add", "talk", "ben"]);
    repository.talk(&["channel", "post", "talk", "Well?"]);
    repository.wait_said("agent:anna: Now I know.");
    repository.wait_rest();
    assert_eq!(repository.announced(), ["⏱️ anna turn timed out"]);
    fleet.stop();
}

/// What Claude Code says at its limit is not what the agent says.
#[test]
fn an_agent_that_runs_out_of_turns_is_announced_and_only_its_own_words_are_posted() {
    let repository = project("spent", &[("anna", "{ say = \"PASS\" }")]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let agent = format!(
        "\n[agents.coder]\nadapter = \"claude\"\ncommand = [{adj:?}, \"internal\", \"replay\", {file:?}]\nmax_turns = 1\n"
    );
    repository.write("adjutant.toml", &(repository.read("adjutant.toml") + &agent));
    let looks = json!({ "name": "Read", "input": { "file_path": "base.check" } });
    let replies = json!([[{ "text": "I look first.", "tools": [looks] }, { "text": "It is true." }]]);
    repository.write("replies.json", &replies.to_string());
    repository.commit("Claude");
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "coder"]);
    repository.wait_said("agent:coder");
    repository.wait_rest();
    assert_eq!(repository.said(), ["human:tester: Well?", "agent:coder: I look first."]);
    assert_eq!(
        repository.announced(),
        ["⚠️ coder used the turns that it had for a reply, and was not finished"]
    );
    fleet.stop();
}

/// Codex reads by commands. Those that only look are let through without a setting, and no others.
#[test]
fn codex_looks_around_in_a_room_and_changes_nothing() {
    let repository = project("codex", &[("anna", "{ say = \"PASS\" }")]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let agent = format!(
        "\n[agents.coder]\nadapter = \"codex\"\ncommand = [{adj:?}, \"internal\", \"replay-codex\", {file:?}]\n"
    );
    repository.write("adjutant.toml", &(repository.read("adjutant.toml") + &agent));
    let bash = |command: &str| json!({ "name": "Bash", "input": { "command": command } });
    let tools = json!([bash("cat base.check | head -n 1"), bash("echo changed > made.txt")]);
    repository.write("replies.json", &json!([[{ "tools": tools }, { "text": "It says true." }]]).to_string());
    repository.commit("Codex");
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "coder"]);
    repository.wait_said("agent:coder: It says true.");
    repository.wait_rest();
    let steps = std::fs::read_dir(repository.state("steps")).unwrap().flatten();
    let printed: String = steps.map(|step| repository.read(&step.path().join("out"))).collect();
    let ended = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ended: Vec<(String, String)> = ended
        .filter(|said| {
            said["method"] == "item/completed" && said["params"]["item"]["type"] == "commandExecution"
        })
        .map(|said| {
            let text =
                |name: &str| said["params"]["item"][name].as_str().unwrap_or_default().trim().to_owned();
            (text("status"), text("aggregatedOutput"))
        })
        .collect();
    let expected = [("completed", "true"), ("declined", "")];
    assert_eq!(ended, expected.map(|(status, said)| (status.to_owned(), said.to_owned())), "{printed}");
    assert!(!repository.tree("rooms/room+talk+coder/made.txt").exists());
    fleet.stop();
}

/// Codex knows no limit of turns: Adjutant ends it.
#[test]
fn a_reply_of_codex_that_goes_on_past_its_turns_is_ended() {
    let repository = project("codex-turns", &[("anna", "{ say = \"PASS\" }")]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let agent = format!(
        "\n[agents.coder]\nadapter = \"codex\"\nmax_turns = 2\n\
         command = [{adj:?}, \"internal\", \"replay-codex\", {file:?}]\n"
    );
    repository.write("adjutant.toml", &(repository.read("adjutant.toml") + &agent));
    let look = json!({ "tools": [{ "name": "Bash", "input": { "command": "cat base.check" } }] });
    let replies = json!([[look, look, look, look, { "text": "All was looked at." }]]);
    repository.write("replies.json", &replies.to_string());
    repository.commit("Codex");
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "coder"]);
    let told = "⚠️ coder used the turns that it had for a reply, and was not finished";
    wait(told, || repository.announced().contains(&told.to_owned()).then_some(()));
    repository.wait_rest();
    assert!(!repository.said().iter().any(|said| said.contains("All was looked at.")));
    fleet.stop();
}

#[test]
fn a_service_that_is_away_pauses_the_turn_until_it_is_back() {
    let repository = project(
        "outage",
        &[("anna", "{ outage = 529 } | { say = \"Back again.\" }"), ("ben", "{ say = \"PASS\" }")],
    );
    repository.set(&[("[test]", "[limits]\nhealth_poll = \"1s\"\n[test]")]);
    let fleet = repository.start("run");
    repository.talk(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    repository.wait_said("agent:anna: Back again.");
    repository.wait_rest();
    assert_eq!(repository.announced(), Vec::<String>::new(), "no agent was lost");
    fleet.stop();
}

/// Messages in a conversation that is to come to its end.
const POSTS_MAX: u64 = 6;

/// SIGKILL before and after each effect of a reply is carried out: everything is said once, and nothing is left running.
/// Slow: a fleet is run and killed once for each moment around an effect.
#[test]
fn a_fleet_that_is_killed_around_any_effect_of_a_reply_ends_as_if_nothing_had_happened() {
    let kinds = super::kills::IN_ROOMS.iter().flat_map(|kind| [(*kind, "before"), (*kind, "after")]);
    let all: BTreeSet<(&str, &str)> = kinds.collect();
    for (kind, moment) in &all {
        assert!(live(kind, moment), "{kind}:{moment} was never reached");
    }
}

/// A conversation with a crash in it. True: it came to the crash.
fn live(kind: &str, moment: &str) -> bool {
    let asks = "{ ask = \"Bash\", argument = \"ls\" }, { listen = 5 }, { say = \"I heard it.\" }";
    let repository = project(&format!("kill-{kind}-{moment}"), &[("anna", asks), ("ben", "{ hang = true }")]);
    let mut killed = false;
    let mut begun = false;
    loop {
        let mut command = repository.command("run");
        if !killed {
            command.env("ADJ_CRASH_AT", format!("{kind}:{moment}"));
        }
        let mut fleet = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let status = wait("the end of a fleet", || {
            if let Some(status) = fleet.try_wait().unwrap() {
                return Some(status);
            }
            if !begun {
                let create = "channel create talk --topic Well? --timeout 10m --add anna --add ben";
                begun = repository.adj(create).code == 0;
                return None;
            }
            let status = repository.adj("channel status talk --json");
            let room: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
            match room["turn"]["agent"].as_str() {
                // Each wakes the room: without an end to them it would never rest.
                Some("anna") if room["messages"].as_u64() < Some(POSTS_MAX) => {
                    drop(repository.adj("channel post talk And?"));
                }
                // It has begun to hang, or will.
                Some("ben") => drop(repository.adj("turn cancel talk --as ben")),
                _ if room["rests"] == true && keepers(&repository).is_empty() => drop(repository.adj("stop")),
                _ => {}
            }
            None
        });
        killed |= status.signal() == Some(9);
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "{kind}:{moment}: {status}");
    }
    let by_anna = repository.said().into_iter().filter(|said| said == "agent:anna: I heard it.").count();
    assert_eq!(by_anna, 1, "{kind}:{moment}: {:?}", repository.said());
    assert_eq!(repository.strays(), Vec::<String>::new(), "{kind}:{moment}");
    killed
}

/// A server without a fleet lets time go on for agents from outside, and for nobody else.
#[test]
fn turns_of_agents_from_outside_end_while_no_fleet_runs() {
    let repository = project("served", &[("anna", "{ say = \"Here I am.\" }")]);
    let mut command = repository.command("serve --port 0 --json");
    command.stderr(Stdio::null());
    let server = Server::begin(command, &repository.state("token"), None);
    let made = repository.ok("token create --name guest --role specialist --quiet");
    let connected = server.ask("POST /api/v1/agents/guest/connect", made.trim(), &json!({}));
    assert!(connected.status < 300, "{}", connected.json());
    repository.talk(&[
        "channel",
        "create",
        "talk",
        "--timeout",
        "1s",
        "--topic",
        "Well?",
        "--add",
        "guest",
        "--add",
        "anna",
    ]);
    wait("a turn that is over", || {
        repository.announced().contains(&"⏱️ guest turn timed out".to_owned()).then_some(())
    });
    assert_eq!(repository.said().len(), 1, "nobody speaks without a fleet");
    let token = repository.read(&repository.state("token"));
    let started = server.ask("POST /api/v1/fleet/start", token.trim(), &json!({}));
    assert!(started.status < 300, "{}", started.json());
    repository.wait_said("Here I am.");
    drop(server);
}

/// Who has the turn is seen beside the workers; what everybody did in their turns is kept.
#[test]
fn people_see_who_has_the_turn_and_what_each_agent_did_in_its_turns() {
    let repository = project(
        "logs",
        &[
            ("anna", "{ say = \"Tea.\" } | { hang = true }"),
            ("ben", "{ say = \"Coffee.\" } | { say = \"PASS\" }"),
        ],
    );
    let fleet = repository.start("run");
    repository.talk(&[
        "channel",
        "create",
        "talk",
        "--topic",
        "Tea?",
        "--timeout",
        "10m",
        "--add",
        "anna",
        "--add",
        "ben",
    ]);
    repository.wait_said("Coffee.");
    wait("anna's second turn", || (repository.room()["turn"]["agent"] == "anna").then_some(()));
    let ps = repository.ok("ps");
    let line = ps.lines().find(|line| line.starts_with("talk  ")).unwrap_or_else(|| panic!("{ps}"));
    assert!(line.starts_with("talk  anna has the turn, "), "{ps}");

    // What she begins to say is there too.
    wait("anna's second step", || {
        (repository.ok("logs anna").matches("anna in talk").count() == 2).then_some(())
    });
    let all = repository.ok("logs --channel talk");
    for part in ["step     anna in talk", "text     Tea.", "step     ben in talk", "text     Coffee."] {
        assert!(all.contains(part), "{part} is not in\n{all}");
    }
    let anna = repository.ok("logs anna --channel talk");
    assert!(anna.contains("Tea.") && !anna.contains("ben in talk"), "{anna}");
    assert_eq!((repository.ok("logs talk"), repository.ok("logs anna")), (all, anna));
    for (line, said) in [
        ("logs carl --channel talk", "`carl` is not in channel `talk`"),
        ("logs --channel walk", "there is no channel `walk`"),
        ("logs architect", "there is no architect"),
        ("logs nobody", "there is no worker, task, channel or agent `nobody`"),
    ] {
        let ran = repository.adj(line);
        assert!(ran.code == 4 && ran.stderr.contains(said), "{line}: {}", ran.stderr);
    }
    let history = repository.ok("history talk");
    assert!(history.contains("talk anna: Tea.") && history.contains("talk ben: Coffee."), "{history}");
    fleet.stop();
}
