//! Channels through the real program: agents that connect from outside take turns, and people join in.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Ran;
use super::fleet::Repository;
use super::fleet::background::wait;
use super::server::Server;
use serde_json::{Value, json};

/// A project that is served with a fleet of no tasks, which reports timers.
struct Scene {
    server: Server,
    repository: Repository,
}

/// An agent that connects from outside.
struct Agent<'s> {
    scene: &'s Scene,
    name: &'static str,
    token: String,
}

fn serve(repository: &Repository) -> Server {
    let mut command = repository.command("serve --port 0 --json --run");
    command.stderr(std::process::Stdio::null());
    Server::begin(command, &repository.state("token"), None)
}

impl Scene {
    fn new(name: &str) -> Scene {
        Scene::with(name, &[])
    }

    fn with(name: &str, settings: &[(&str, &str)]) -> Scene {
        let repository = Repository::new(&format!("channels-{name}"), "", &[]);
        if !settings.is_empty() {
            repository.set(settings);
            // A server answers before its fleet has read the settings: they are known from a fleet before it.
            repository.ok("run --until-idle");
        }
        let server = serve(&repository);
        Scene { server, repository }
    }

    fn adj(&self, arguments: &[&str]) -> Ran {
        self.repository.command("").args(arguments).output().unwrap().into()
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.adj(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// An agent that is connected and has taken no place.
    fn agent(&self, name: &'static str) -> Agent<'_> {
        let created = self.ok(&["token", "create", "--name", name, "--role", "specialist", "--quiet"]);
        let agent = Agent { scene: self, name, token: created.trim().to_owned() };
        agent.asked(&format!("POST /api/v1/agents/{name}/connect"), &json!({}));
        agent
    }

    fn status(&self, channel: &str) -> Value {
        self.server.get(&format!("/api/v1/channels/{channel}")).json()
    }

    /// `anna ACTIVE`, or nothing.
    fn turn(&self, channel: &str) -> String {
        let turn = &self.status(channel)["turn"];
        let part = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", part("agent"), part("state")).trim().to_owned()
    }

    fn wait_turn(&self, channel: &str, expected: &str) {
        wait(expected, || (self.turn(channel) == expected).then_some(()));
    }

    fn state(&self, channel: &str, agent: &str) -> String {
        let status = self.status(channel);
        let member = status["members"].as_array().unwrap().iter().find(|member| member["agent"] == agent);
        member.map(|member| member["state"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    /// The queue, in its order.
    fn queue(&self, channel: &str) -> Vec<String> {
        let queue = self.status(channel)["queue"].clone();
        serde_json::from_value(queue).unwrap()
    }

    /// Everything that happened there, by what it is and says.
    fn entries(&self, channel: &str) -> Vec<Value> {
        let page =
            self.server.get(&format!("/api/v1/channels/{channel}/messages?all=true&limit=1000")).json();
        page["items"].as_array().unwrap().clone()
    }

    fn announced(&self, channel: &str) -> Vec<String> {
        let all = self.entries(channel).into_iter().filter(|entry| entry["event"] == "announcement");
        all.map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }

    /// `anna ACTIVE>QUEUED timeout` for each transition.
    fn transitions(&self, channel: &str) -> Vec<String> {
        let all = self.entries(channel).into_iter().filter(|entry| entry["event"] == "state_transition");
        let part = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
        all.map(|entry| {
            format!(
                "{} {}>{} {}",
                part(&entry, "agentId"),
                part(&entry, "from"),
                part(&entry, "to"),
                part(&entry, "trigger")
            )
        })
        .collect()
    }

    /// What became of a person's message for each member: `anna delivered, ben queued`.
    fn receipts(&self, channel: &str, text: &str) -> String {
        let entries = self.entries(channel);
        let message = entries.iter().find(|entry| entry["text"] == text && entry["event"] == "message");
        let receipts = message.unwrap()["receipts"].as_array().unwrap().clone();
        let each = receipts.iter().map(|receipt| {
            format!("{} {}", receipt["agent"].as_str().unwrap(), receipt["receipt"].as_str().unwrap())
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

impl Agent<'_> {
    fn ask(&self, line: &str, body: &Value) -> (u16, Value) {
        let answer = self.scene.server.ask(line, &self.token, body);
        (answer.status, answer.json())
    }

    #[track_caller]
    fn asked(&self, line: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(line, body);
        assert!(status < 300, "{line} by {}: {status} {answer}", self.name);
        answer
    }

    #[track_caller]
    fn says(&self, channel: &str, text: &str) {
        self.asked(&format!("POST /api/v1/channels/{channel}/messages"), &json!({ "text": text }));
    }

    #[track_caller]
    fn turn(&self, channel: &str, word: Value) {
        self.asked(&format!("POST /api/v1/channels/{channel}/turn"), &word);
    }

    #[track_caller]
    fn completes(&self, channel: &str) {
        self.turn(channel, json!({ "action": "complete" }));
    }

    /// The texts that it is shown.
    #[track_caller]
    fn reads(&self, channel: &str) -> Vec<String> {
        let page = self.asked(&format!("GET /api/v1/channels/{channel}/messages"), &Value::Null);
        let items = page["items"].as_array().unwrap();
        items.iter().map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn agents_from_outside_take_turns_in_their_order_and_only_the_active_one_speaks() {
    let scene = Scene::new("turns");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--topic", "Tea or coffee?", "--add", "anna", "--add", "ben"]);
    assert_eq!(
        (scene.turn("talk"), scene.state("talk", "ben")),
        ("anna ACTIVE".to_owned(), "QUEUED".to_owned())
    );
    assert_eq!(anna.reads("talk"), ["Tea or coffee?"]);
    anna.says("talk", "Tea.");
    let (status, refused) = ben.ask("POST /api/v1/channels/talk/messages", &json!({ "text": "Coffee." }));
    assert_eq!((status, refused["code"].as_str()), (409, Some("NOT_YOUR_TURN")), "{refused}");
    assert_eq!(ben.reads("talk"), ["Tea or coffee?", "Tea."], "it observes");
    anna.completes("talk");
    assert_eq!(scene.turn("talk"), "ben ACTIVE");
    let (status, refused) =
        anna.ask("POST /api/v1/channels/talk/turn", &json!({ "action": "complete", "agent": "ben" }));
    assert_eq!(status, 403, "an agent speaks for itself: {refused}");
    ben.says("talk", "Coffee.");
    ben.turn("talk", json!({ "action": "pass" }));
    assert_eq!(scene.turn("talk"), "anna ACTIVE", "the ring goes round");
    assert_eq!(scene.queue("talk"), ["anna", "ben"], "and keeps its order");
    // A person without --as means whoever has the turn.
    assert_eq!(scene.json(&["turn", "complete", "talk"])["turn"]["agent"], "ben");
    let history = scene.ok(&["channel", "history", "talk", "--search", "coffee"]);
    let said: Vec<&str> = history.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(said, ["Tea or coffee?", "Coffee."], "{history}");
    let outsider = scene.agent("carl");
    assert_eq!(
        outsider.ask("GET /api/v1/channels/talk/messages", &Value::Null).0,
        403,
        "no member, no reader"
    );
    assert_eq!(outsider.asked("GET /api/v1/channels", &Value::Null)["items"], json!([]));
}

#[test]
fn a_turn_that_takes_too_long_is_over_is_announced_and_keeps_its_place() {
    let scene = Scene::new("timeout");
    let (anna, _ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--timeout", "1s", "--topic", "Well?"]);
    scene.ok(&["channel", "add", "talk", "anna"]);
    scene.ok(&["channel", "add", "talk", "ben", "--timeout", "10m"]);
    anna.says("talk", "Hm.");
    scene.wait_turn("talk", "ben ACTIVE");
    assert_eq!(scene.announced("talk"), ["⏱️ anna turn timed out"]);
    assert_eq!(scene.queue("talk"), ["anna", "ben"]);
    assert!(scene.transitions("talk").contains(&"anna ACTIVE>QUEUED timeout".to_owned()));
    let noted = scene.entries("talk").into_iter().any(|entry| {
        entry["text"].as_str().unwrap_or_default().contains("Agent completed response without TURN_COMPLETE")
    });
    assert!(noted, "it had answered: {:?}", scene.entries("talk"));
}

#[test]
fn timeouts_are_not_announced_where_nobody_wants_that() {
    let scene = Scene::new("unannounced");
    let (_anna, _ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--timeout", "1s", "--no-announce-timeouts", "--topic", "Well?"]);
    scene.ok(&["channel", "add", "talk", "anna"]);
    scene.ok(&["channel", "add", "talk", "ben", "--timeout", "10m"]);
    scene.wait_turn("talk", "ben ACTIVE");
    assert_eq!(scene.announced("talk"), Vec::<String>::new());
}

#[test]
fn a_wait_keeps_the_turn_until_it_is_resolved_overridden_or_too_long() {
    let scene = Scene::new("wait");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    let wait = json!({ "action": "wait", "note": "the build", "seconds": 600 });
    anna.turn("talk", wait.clone());
    assert_eq!(scene.turn("talk"), "anna WAITING");
    assert_eq!(
        anna.ask("POST /api/v1/channels/talk/messages", &json!({ "text": "x" })).0,
        409,
        "it has paused"
    );
    let shown = scene.ok(&["channel", "status", "talk"]);
    assert!(shown.contains("anna waits for: the build"), "{shown}");
    let waiting = scene.ok(&["waiting"]);
    assert!(waiting.contains("adj turn resume talk --as anna"), "{waiting}");
    anna.turn("talk", json!({ "action": "resume" }));
    assert_eq!(scene.turn("talk"), "anna ACTIVE");
    anna.says("talk", "It builds.");
    // A person gives the turn back, or takes it away.
    anna.turn("talk", wait.clone());
    scene.ok(&["turn", "resume", "talk", "--as", "anna"]);
    assert_eq!(scene.turn("talk"), "anna ACTIVE");
    anna.turn("talk", wait);
    scene.ok(&["turn", "resume", "talk", "--to", "queued"]);
    assert_eq!(scene.turn("talk"), "ben ACTIVE");
    assert!(scene.transitions("talk").contains(&"anna WAITING>QUEUED human_override".to_owned()));
    // Too long.
    ben.turn("talk", json!({ "action": "wait", "seconds": 1 }));
    scene.wait_turn("talk", "anna ACTIVE");
    assert!(scene.transitions("talk").contains(&"ben WAITING>QUEUED wait_timeout".to_owned()));
    let (status, refused) =
        anna.ask("POST /api/v1/channels/talk/turn", &json!({ "action": "override", "to": "ACTIVE" }));
    assert_eq!(status, 403, "only a person overrides: {refused}");
}

/// What a person says while an agent has the turn, in each mode: who gets it when.
#[test]
fn a_message_into_a_turn_goes_as_the_mode_says() {
    let scene = Scene::new("modes");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    for mode in ["inject", "queue", "parallel", "interrupt"] {
        scene.ok(&["channel", "create", mode, "--mode", mode, "--add", "anna", "--add", "ben"]);
        scene.ok(&["channel", "post", mode, "And milk?"]);
    }
    // The one that has the turn reads it at once; the others when the turn is over.
    assert_eq!((anna.reads("inject").len(), ben.reads("inject").len()), (1, 0));
    assert_eq!(scene.receipts("inject", "And milk?"), "anna delivered, ben queued");
    assert_eq!((anna.reads("queue").len(), ben.reads("queue").len()), (0, 0));
    assert_eq!(scene.receipts("queue", "And milk?"), "anna queued, ben queued");
    assert_eq!((anna.reads("parallel").len(), ben.reads("parallel").len()), (1, 1));
    assert_eq!(scene.receipts("parallel", "And milk?"), "anna delivered, ben delivered");
    for mode in ["inject", "queue", "parallel"] {
        anna.completes(mode);
        assert_eq!((anna.reads(mode).len(), ben.reads(mode).len()), (1, 1), "{mode}");
    }
    assert_eq!(scene.receipts("inject", "And milk?"), "anna consumed, ben delivered");
    assert_eq!(scene.receipts("queue", "And milk?"), "anna delivered, ben delivered");
    // The turn pauses for it.
    assert_eq!(scene.turn("interrupt"), "anna WAITING");
    assert_eq!(anna.reads("interrupt"), ["And milk?"]);
    scene.ok(&["turn", "resume", "interrupt"]);
    assert_eq!(scene.turn("interrupt"), "anna ACTIVE");
}

/// What is held back comes first once it may be known, whatever was said in between: a reader's cursor never passes it.
#[test]
fn a_reader_is_shown_what_was_held_back_from_it_in_its_place() {
    let scene = Scene::new("held");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--topic", "Tea?", "--add", "anna", "--add", "ben"]);
    scene.ok(&["channel", "post", "talk", "And milk?"]);
    anna.says("talk", "Yes.");
    assert_eq!(ben.reads("talk"), ["Tea?"]);
    anna.completes("talk");
    assert_eq!(ben.reads("talk"), ["Tea?", "And milk?", "Yes."]);
}

#[test]
fn a_message_with_a_key_is_posted_once() {
    let scene = Scene::new("key");
    scene.ok(&["channel", "create", "talk"]);
    let token = std::fs::read_to_string(scene.repository.state("token")).unwrap();
    let body = json!({ "text": "Once." }).to_string();
    let post = || {
        let head = format!(
            "POST /api/v1/channels/talk/messages HTTP/1.1\nHost: {}\nAuthorization: Bearer {token}\n\
             Content-Type: application/json\nX-Idempotency-Key: k1\nContent-Length: {}",
            scene.server.host(),
            body.len()
        );
        scene.server.raw(&head, body.as_bytes()).json()
    };
    assert_eq!(post()["seq"], post()["seq"]);
    assert_eq!(scene.status("talk")["messages"], 1);
}

#[test]
fn a_tail_without_a_terminal_prints_each_entry_as_it_comes_and_ends_with_the_channel() {
    use std::io::{BufRead, BufReader};
    let scene = Scene::new("tail");
    scene.ok(&["channel", "create", "talk", "--topic", "Tea?"]);
    let mut tail = scene.repository.command("channel tail talk --json");
    let mut tail = tail.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map(|line| {
        let entry: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (entry["event"].as_str().unwrap().to_owned(), entry["text"].as_str().map(str::to_owned))
    });
    assert_eq!(lines.next().unwrap(), ("message".to_owned(), Some("Tea?".to_owned())));
    scene.ok(&["channel", "post", "talk", "Coffee?"]);
    assert_eq!(lines.next().unwrap(), ("message".to_owned(), Some("Coffee?".to_owned())));
    scene.ok(&["channel", "close", "talk"]);
    assert_eq!(lines.next().unwrap().0, "channel_closed");
    assert!(lines.next().is_none() && tail.wait().unwrap().success());
}

#[test]
fn an_agent_added_in_mid_cycle_is_last_and_one_removed_in_its_turn_passes_it_on() {
    let scene = Scene::new("cycle");
    let agents = [scene.agent("anna"), scene.agent("ben"), scene.agent("carl")];
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    agents[0].says("talk", "one");
    scene.ok(&["channel", "add", "talk", "carl"]);
    assert_eq!(scene.queue("talk"), ["anna", "ben", "carl"]);
    agents[0].completes("talk");
    assert_eq!(scene.turn("talk"), "ben ACTIVE");
    scene.ok(&["channel", "remove", "talk", "ben"]);
    assert_eq!(scene.turn("talk"), "carl ACTIVE");
    assert_eq!(scene.queue("talk"), ["anna", "carl"]);
    scene.ok(&["channel", "remove", "talk", "anna"]);
    assert_eq!(scene.turn("talk"), "carl ACTIVE", "who only waits leaves without a trace");
    assert!(scene.transitions("talk").contains(&"ben ACTIVE>IDLE removed_from_channel".to_owned()));
    let ran = scene.adj(&["channel", "remove", "talk", "ben"]);
    assert!(ran.code != 0 && ran.stderr.contains("carl is in it"), "{}", ran.stderr);
    let ran = scene.adj(&["channel", "add", "talk", "carl"]);
    assert!(ran.code != 0 && ran.stderr.contains("is in `talk` already"), "{}", ran.stderr);
}

#[test]
fn who_is_lost_in_its_turn_is_announced_and_without_agents_messages_reach_nobody() {
    let scene = Scene::with("lost", &[("[test]", "[limits]\nheartbeat = \"3s\"\n[test]")]);
    let anna = scene.agent("anna");
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna"]);
    wait("the end of anna's turn", || (scene.state("talk", "anna") == "OFFLINE").then_some(()));
    scene.ok(&["channel", "post", "talk", "Anybody?"]);
    let none = "⚠️ No agents available in this channel";
    let announced = scene.announced("talk");
    assert_eq!(announced.first().map(String::as_str), Some("⚠️ anna disconnected, skipping turn"));
    assert_eq!(announced.last().map(String::as_str), Some(none));
    assert_eq!(scene.receipts("talk", "Anybody?"), "anna queued", "it is kept, and reaches nobody");
    // Back, it is not queued by itself; whoever is assigned first has the turn at once.
    anna.asked("POST /api/v1/agents/anna/connect", &json!({}));
    assert_eq!((scene.state("talk", "anna"), scene.turn("talk")), ("IDLE".to_owned(), String::new()));
    scene.ok(&["channel", "add", "talk", "anna"]);
    assert_eq!(scene.turn("talk"), "anna ACTIVE");
    assert_eq!(anna.reads("talk").last().map(String::as_str), Some(none));
}

#[test]
fn an_agent_that_disconnects_in_its_turn_passes_it_on() {
    let scene = Scene::new("disconnect");
    let (anna, _ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    anna.asked("POST /api/v1/agents/anna/disconnect", &json!({}));
    assert_eq!(scene.turn("talk"), "ben ACTIVE");
    assert_eq!(
        (scene.state("talk", "anna"), scene.queue("talk")),
        ("OFFLINE".to_owned(), vec!["ben".to_owned()])
    );
    assert_eq!(scene.announced("talk"), ["⚠️ anna disconnected, skipping turn"]);
}

#[test]
fn silence_after_something_was_said_ends_the_turn_where_that_is_wanted() {
    let scene = Scene::new("silence");
    let (anna, _ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--timeout", "10m", "--auto-detect", "1", "--topic", "Well?"]);
    scene.ok(&["channel", "add", "talk", "anna", "ben"]);
    anna.says("talk", "That is all.");
    scene.wait_turn("talk", "ben ACTIVE");
    assert!(scene.transitions("talk").contains(&"anna ACTIVE>QUEUED auto".to_owned()));
}

#[test]
fn a_cycle_without_a_word_rests_the_channel_and_a_message_wakes_it() {
    let scene = Scene::new("rest");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    anna.completes("talk");
    ben.completes("talk");
    assert_eq!((scene.turn("talk"), &scene.status("talk")["rests"]), (String::new(), &json!(true)));
    let shown = scene.ok(&["channel", "status", "talk"]);
    assert!(shown.contains("it continues with the next message"), "{shown}");
    scene.ok(&["channel", "post", "talk", "Come on."]);
    assert_eq!(scene.turn("talk"), "anna ACTIVE");
    // Alone, an agent rests after each of its turns.
    scene.ok(&["channel", "create", "solo", "--topic", "Alone?", "--add", "anna"]);
    anna.says("solo", "Yes.");
    anna.completes("solo");
    assert_eq!(scene.state("solo", "anna"), "IDLE");
    scene.ok(&["channel", "post", "solo", "Still?"]);
    assert_eq!(scene.turn("solo"), "anna ACTIVE");
}

#[test]
fn a_turn_goes_on_after_a_restart() {
    let scene = Scene::new("restart");
    let anna = scene.agent("anna");
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--timeout", "10m", "--add", "anna"]);
    anna.says("talk", "one");
    let token = anna.token.clone();
    let Scene { server, repository } = scene;
    drop(server);
    let scene = Scene { server: serve(&repository), repository };
    let anna = Agent { scene: &scene, name: "anna", token };
    assert_eq!(scene.turn("talk"), "anna ACTIVE");
    anna.says("talk", "two");
    anna.completes("talk");
    assert_eq!(anna.reads("talk"), ["Well?", "one", "two"]);
}

/// All that happens in a channel, live, in the form that every transition is logged in. It is for people.
#[test]
fn the_stream_of_a_channel_has_messages_announcements_and_transitions() {
    let scene = Scene::new("stream");
    let anna = scene.agent("anna");
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna"]);
    anna.says("talk", "Yes.");
    anna.completes("talk");
    let read: Value = scene.server.get("/v1/stream/channels/talk?offset=-1").json();
    let items = read.as_array().unwrap();
    let messages: Vec<&str> = items
        .iter()
        .filter(|item| item["event"] == "message")
        .map(|item| item["text"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["Well?", "Yes."]);
    let moved = items.iter().find(|item| item["trigger"] == "TURN_COMPLETE").unwrap();
    let expected = [
        ("event", "state_transition"),
        ("agentId", "anna"),
        ("from", "ACTIVE"),
        ("to", "IDLE"),
        ("channel", "talk"),
        ("machine", "turn"),
    ];
    for (member, value) in expected {
        assert_eq!(moved[member], value, "{moved}");
    }
    assert!(moved["timestamp"].as_str().unwrap().ends_with('Z'), "{moved}");
    let (status, refused) = anna.ask("GET /v1/stream/channels/talk?offset=-1", &Value::Null);
    assert_eq!(status, 403, "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("channel_read"), "{refused}");
}

#[test]
fn a_channel_is_closed_read_afterwards_and_takes_nothing_more() {
    let scene = Scene::new("close");
    let anna = scene.agent("anna");
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna"]);
    scene.ok(&["channel", "close", "talk"]);
    let ran = scene.adj(&["channel", "post", "talk", "Still?"]);
    assert!(ran.code != 0 && ran.stderr.contains("is closed"), "{}", ran.stderr);
    assert!(scene.ok(&["channel", "history", "talk"]).contains("Well?"));
    assert_eq!(anna.reads("talk"), ["Well?"]);
    assert_eq!(scene.json(&["channel", "ls"]), json!([]));
    assert_eq!(scene.json(&["channel", "ls", "--all"])[0]["name"], "talk");
    let tail = scene.ok(&["channel", "tail", "talk"]);
    assert!(tail.contains("ann") || tail.contains("tester"), "who said it: {tail}");
}

#[test]
fn what_is_wrong_with_a_request_is_said_by_its_field() {
    let scene = Scene::new("wrong");
    let made = |body: Value| {
        let answer = scene.server.post("/api/v1/channels", &body);
        (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
    };
    let (status, detail) = made(json!({ "name": "a", "turnConfig": { "humanInterruptMode": "shout" } }));
    assert!(status == 400 && detail.contains("inject"), "{detail}");
    let (status, detail) = made(json!({ "name": "a", "turnConfig": { "defaultTimeoutSeconds": 0 } }));
    assert!(status == 422 && detail.contains("at least one second"), "{detail}");
    let (status, detail) = made(json!({ "name": "a", "turnConfig": { "moon": 1 } }));
    assert!(status == 400 && detail.contains("moon"), "{detail}");
    assert_eq!(made(json!({ "name": "a", "task": "t-9" })).0, 404);
    let answer = scene.server.post("/api/v1/channels", &json!({ "name": "a" }));
    assert_eq!(answer.status, 201, "{}", answer.text);
    let config = answer.json()["turnConfig"].clone();
    let seed = json!({
        "defaultTimeoutSeconds": 60, "waitTimeoutSeconds": 300, "humanInterruptMode": "inject",
        "announceTimeouts": true, "announceDisconnects": true,
        "autoDetectTurnEnd": false, "autoDetectSilenceSeconds": 10,
    });
    assert_eq!(config, seed);
    let turn = |body: Value| scene.server.post("/api/v1/channels/a/turn", &body);
    assert_eq!(turn(json!({ "action": "dance" })).status, 400);
    assert_eq!(turn(json!({ "action": "complete" })).json()["code"], "NO_TURN");
    assert_eq!(turn(json!({ "action": "override", "agent": "x" })).status, 400);
    assert_eq!(turn(json!({ "action": "resume", "agent": "x", "seconds": 5 })).status, 400);
}

/// Who talks about work sees it, for as long as it is asked to: what the task says and what it changes, and nothing else.
#[test]
fn members_of_a_review_room_see_the_work_and_nobody_else_does() {
    let work = "{ write = \"work.check\", text = \"true\\n\" }, { commit = \"Work\" }, { done = true }";
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {work} ]\n");
    let repository = Repository::new("channels-review", &scenario, &["c-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let server = serve(&repository);
    let scene = Scene { server, repository };
    scene.repository.wait_task("c-1", "REVIEW");
    let (guest, other) = (scene.agent("guest"), scene.agent("other"));
    scene.ok(&["review", "c-1", "--room", "looks", "--add", "guest"]);
    let sees = |agent: &Agent, path: &str| agent.ask(&format!("GET /api/v1/tasks/c-1{path}"), &Value::Null);
    let (status, diff) = sees(&guest, "/diff");
    assert_eq!(status, 200, "{diff}");
    assert!(diff["diff"].as_str().unwrap().contains("+++ b/work.check"), "{diff}");
    assert_eq!(sees(&guest, "/review").0, 200);
    let is_whole = |agent: &Agent| sees(agent, "").1.get("body").is_some();
    assert!(
        is_whole(&guest) && !is_whole(&other),
        "of others' tasks an agent is told what stands on the board"
    );
    for path in ["/transcript", "/history", "/tests", "/why"] {
        assert_eq!(sees(&guest, path).0, 403, "what was said at work is not what is reviewed: {path}");
    }
    let (status, refused) = sees(&other, "/diff");
    assert_eq!(status, 403, "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("a channel that it is in"), "{refused}");
    // Not any more, when it is not in the room any more.
    scene.ok(&["channel", "remove", "looks", "guest"]);
    assert_eq!((sees(&guest, "/diff").0, is_whole(&guest)), (403, false));
    scene.ok(&["channel", "add", "looks", "guest"]);
    assert_eq!(sees(&guest, "/diff").0, 200);
    scene.ok(&["channel", "close", "looks"]);
    assert_eq!((sees(&guest, "/diff").0, is_whole(&guest)), (403, false));
}

/// What was wrong, and what to do next, in the words of whoever typed it.
#[test]
fn who_speaks_out_of_turn_or_from_outside_is_told_what_to_do() {
    let scene = Scene::new("words");
    let (anna, ben) = (scene.agent("anna"), scene.agent("ben"));
    let (carl, room) = (scene.agent("carl"), "POST /api/v1/channels/talk");
    scene.ok(&["channel", "create", "talk", "--topic", "Well?", "--add", "anna", "--add", "ben"]);
    let by_person = |line: &str| scene.adj(&line.split(' ').collect::<Vec<_>>()).stderr;
    for (line, said) in [
        (
            "channel create talk",
            "error: there is a channel `talk` already\nhint: choose another name; `adj channel status talk` says",
        ),
        (
            "channel post talks hello",
            "error: there is no channel `talks`\nhint: `adj channel ls` lists the channels",
        ),
        (
            "turn pass talk --as ben",
            "error: it is not the turn of `ben` in `talk`: `anna` has it\nhint: `adj channel status talk` says",
        ),
        ("turn resume talk --as ben", "error: it is not the turn of `ben` in `talk`: `anna` has it"),
        ("turn resume talk", "error: `anna` has the turn in `talk` and waits for nothing"),
        (
            "turn pass talk --as carl",
            "error: agent `carl` is not in `talk`\nhint: anna, ben are in it; `adj channel add talk carl` lets the agent in",
        ),
    ] {
        let stderr = by_person(line);
        assert!(stderr.starts_with(said), "{line}:\n{stderr}");
    }
    let words = |(status, refused): (u16, Value)| {
        let part = |name: &str| refused[name].as_str().unwrap_or_default().to_owned();
        format!("{status} {}; {}", part("detail"), part("hint"))
    };
    let wait = "only whoever has the turn speaks; read, and wait for it";
    let (message, pass) = (json!({ "text": "me" }), json!({ "action": "pass" }));
    let not_ben = format!("409 it is not the turn of `ben` in `talk`: `anna` has it; {wait}");
    assert_eq!(words(ben.ask(&format!("{room}/messages"), &message)), not_ben);
    assert_eq!(words(ben.ask(&format!("{room}/turn"), &pass)), not_ben);
    let outside = "404 agent `carl` is not in `talk`; a person lets agents in";
    assert_eq!(words(carl.ask(&format!("{room}/messages"), &message)), outside);
    assert_eq!(words(carl.ask(&format!("{room}/turn"), &pass)), outside);
    assert_eq!(
        words(carl.ask("GET /api/v1/channels/talk/messages", &Value::Null)),
        "403 agent `carl` is not in the channel, and may not read it; an agent reads the channels that it is in; a person lets it in"
    );
    // It has paused: a person lets it go on, or takes the turn away.
    anna.turn("talk", json!({ "action": "wait" }));
    let stderr = by_person("turn complete talk");
    assert!(stderr.starts_with("error: `anna` has paused its turn in `talk`, and goes on before it ends\nhint: `adj turn resume talk --as anna`"), "{stderr}");
    assert!(
        words(anna.ask(&format!("{room}/messages"), &message)).starts_with("409 `anna` has paused its turn")
    );
    scene.ok(&["channel", "close", "talk"]);
    for line in
        ["channel post talk hello", "turn pass talk --as anna", "channel add talk carl", "channel close talk"]
    {
        let stderr = by_person(line);
        assert!(stderr.starts_with("error: channel `talk` is closed; what was said there can still be read\nhint: `adj channel history talk` shows what was said there; `adj channel create NAME` makes another one"), "{line}:\n{stderr}");
    }
    let stderr = by_person("turn pass talk");
    assert!(
        stderr.starts_with(
            "error: nobody has the turn in `talk`: it is closed\nhint: `adj channel history talk`"
        ),
        "{stderr}"
    );
    let closed = "409 channel `talk` is closed; what was said there can still be read; it takes nothing more: go on without it";
    assert_eq!(words(anna.ask(&format!("{room}/messages"), &message)), closed);
    assert_eq!(words(anna.ask(&format!("{room}/turn"), &pass)), closed);
}
