//! `--log json`: a line for every transition, request and notice.

use super::{Repository, SCENARIO, Server, serve_until_done};
use serde_json::{Value, json};

/// All lines, once the server has ended.
fn lines(here: &Repository, server: Server) -> Vec<Value> {
    drop(server);
    let text = std::fs::read_to_string(here.dir().join(".git/server.err")).unwrap();
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

#[test]
fn the_log_as_json_has_a_line_for_every_transition_request_and_notice() {
    let here = Repository::new("journal", SCENARIO, &["j-1"]);
    let server = serve_until_done(&here, "--log json", "j-1");
    let secret = "do-not-tell";
    server.get(&format!("/api/v1/tasks?title={secret}"));
    server.post("/api/v1/tasks", &json!({"title": secret}));
    server.ask("GET /api/v1/tasks", secret, &Value::Null);
    let token = std::fs::read_to_string(here.state("token")).unwrap();
    let history: Value = serde_json::from_str(&here.ok("history --json")).unwrap();
    let lines = lines(&here, server);

    let is = |event: &'static str| lines.iter().filter(move |line| line["event"] == event);
    let told =
        |line: &Value| [&line["machine"], &line["id"], &line["from"], &line["to"]].map(Value::to_string);
    let moves: Vec<_> = is("state_transition").map(told).collect();
    let logged: Vec<_> = history.as_array().unwrap().iter().map(told).collect();
    assert!(moves.starts_with(&logged), "{moves:?}\n{logged:?}");
    let first = is("state_transition").next().unwrap();
    let names: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names[..7], ["timestamp", "event", "machine", "agentId", "from", "to", "trigger"]);

    let asked = |method: &str, status: u16| {
        is("request").find(|line| line["method"] == method && line["status"] == status).unwrap()
    };
    let added = asked("POST", 201);
    assert_eq!((&added["route"], &added["caller"]), (&json!("/tasks"), &json!("person")));
    assert!(added["milliseconds"].as_f64().unwrap() > 0.0);
    assert_eq!(asked("GET", 401)["caller"], "nobody");
    let all = serde_json::to_string(&lines).unwrap();
    assert!(!all.contains(secret) && !all.contains(token.trim()), "{all}");
}

#[test]
fn notices_are_json_too_and_nothing_else_is_printed() {
    let here = Repository::new("notices", SCENARIO, &["n-1"]);
    here.write(
        "adjutant.toml",
        &here.read("adjutant.toml").replace("[test]", "[hooks]\nlanded = \"false\"\n\n[test]"),
    );
    here.commit("Settings");
    let server = serve_until_done(&here, "--log json", "n-1");
    let failed = super::wait("the failure of the hook", || {
        let text = std::fs::read_to_string(here.dir().join(".git/server.err")).unwrap();
        text.lines().find(|line| line.contains("hook landed")).map(str::to_owned)
    });
    let failed: Value = serde_json::from_str(&failed).unwrap();
    assert_eq!(failed["event"], "notice");
    lines(&here, server);
}

#[test]
fn a_fleet_that_serves_tells_the_same_lines_and_nothing_else() {
    let here = Repository::new("run-journal", SCENARIO, &["r-1"]);
    let ran = here.adj("run --until-idle --serve --port 0 --log json");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let lines: Vec<Value> = ran.stderr.lines().map(read).collect();
    let done = lines.iter().filter(|line| line["event"] == "state_transition" && line["to"] == "DONE");
    assert_eq!(done.map(|line| &line["id"]).collect::<Vec<_>>(), ["r-1"]);
    let [said, rest] = [ran.stdout.lines().next().unwrap_or_default(), &ran.stdout];
    assert!(!rest.contains("/enter#"), "a link is a secret: {said}");
}
