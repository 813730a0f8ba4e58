use super::{adj, adj_with, command, snapshot};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn the_machines_are_listed() {
    snapshot("machine-ls.txt", &adj("machine ls").stdout);
    let list: Value = serde_json::from_str(&adj("machine ls --json").stdout).unwrap();
    let names: Vec<_> =
        list.as_array().unwrap().iter().map(|machine| machine["machine"].as_str().unwrap()).collect();
    assert_eq!(names, ["turn", "worker", "task", "architect", "run"]);
}

#[test]
fn a_machine_is_shown_in_each_format() {
    for name in ["turn", "worker", "task", "architect", "run"] {
        snapshot(&format!("machine-show-{name}.txt"), &adj(&format!("machine show {name}")).stdout);
    }
    snapshot("machine-show-run.mermaid", &adj("machine show run --format mermaid").stdout);
    snapshot("machine-show-run.dot", &adj("machine show run --format dot").stdout);
    snapshot("machine-show-run.json", &adj("machine show RUN --format JSON").stdout);
    assert_eq!(adj("--json machine show run").stdout, adj("machine show run --format json").stdout);
}

#[test]
fn a_machine_that_does_not_exist_is_not_found_and_the_nearest_is_named() {
    let ran = adj("machine show wroker");
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    snapshot("machine-unknown.txt", &ran.stderr);
    let ran = adj("machine step channel --json");
    let problem: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str(), &problem["status"]), (4, "", &json!(404)));
}

#[test]
fn each_line_is_answered_by_one_line_whatever_it_holds() {
    let long = "x".repeat(3 << 20);
    let input = [
        br#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"STEP","turn":4,"toolCalls":[]}}"#,
        b"not json".as_slice(),
        b"\xff\xfe",
        b"",
        long.as_bytes(),
        br#"{"state":"idle","event":{"type":"ABORT","reason":"r"}}"#,
    ]
    .join(b"\n".as_slice());
    let ran = adj_with("machine step run", &input);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let codes: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|answer| answer["code"].as_str().unwrap_or("ok").to_owned())
        .collect();
    assert_eq!(codes, ["ok", "MALFORMED", "MALFORMED", "MALFORMED", "AGENT_NOT_RUNNING"]);
}

/// A program on the other end may wait for an answer before it asks again.
#[test]
fn an_answer_does_not_wait_for_the_next_line() {
    let mut child =
        command("machine step turn").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut state = json!("OFFLINE");
    for (event, expected) in
        [("agent_starts", "IDLE"), ("assigned_to_channel", "QUEUED"), ("disconnects", "OFFLINE")]
    {
        writeln!(stdin, "{}", json!({"state": state, "event": {"type": event}})).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        state = answer["state"].clone();
        assert_eq!(state["state"], expected);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
