//! The wire: what `adj machine show` and `adj machine step` promise to programs.

use crate::catalog::{self, Format, LINE_LENGTH_MAX, step_bytes, step_line};
use crate::wire::Wire;
use proptest::prelude::*;
use serde_json::Value;

fn answer(machine: &str, line: &str) -> Value {
    let answer = step_line(machine, line);
    assert!(!answer.contains('\n'), "{answer}");
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error} in {answer}"))
}

#[track_caller]
fn check(machine: &str, line: &str, expected: &str) {
    assert_eq!(step_line(machine, line), expected);
}

/// The shape of a run, as programs hold on to it.
#[test]
fn a_run_is_stepped_in_its_documented_shape() {
    check(
        "run",
        r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"STEP","turn":4,"toolCalls":[]}}"#,
        r#"{"ok":true,"state":{"state":"running","currentTurn":4,"maxTurns":50,"lastStep":{"turn":4,"digest":"7f59a258b1d781d1"}},"effects":[{"effect":"publish","event":{"type":"agent:step","payload":{"turn":4}}}]}"#,
    );
    check(
        "run",
        r#"{"state":{"state":"idle","currentTurn":0,"maxTurns":50,"allowedTools":["Read"],"lastError":{"code":"E","message":"m","recoverable":true},"task":{"id":"t-1","status":"ASSIGNED","mine":true}},"event":{"type":"START","taskId":"t-1","prompt":"p","options":{"maxTurns":2}}}"#,
        r#"{"ok":true,"state":{"state":"starting","currentTurn":0,"maxTurns":2,"allowedTools":["Read"],"task":{"id":"t-1","status":"ASSIGNED","mine":true}},"effects":[{"effect":"publish","event":{"type":"agent:starting","payload":{"taskId":"t-1"}}},{"effect":"publish","event":{"type":"state:update","payload":{"status":"starting","turn":0}}}]}"#,
    );
    check(
        "run",
        r#"{"state":{"state":"paused","currentTurn":3,"maxTurns":50},"event":{"type":"PAUSE","reason":"budget"}}"#,
        r#"{"ok":false,"code":"AGENT_NOT_RUNNING","message":"the run is paused; RESUME it first, or ABORT it","allowed":["RESUME","ABORT","SUSPEND"]}"#,
    );
}

#[test]
fn a_missing_field_is_named_beside_the_answer() {
    check(
        "task",
        r#"{"state":"INBOX","event":{"type":"move","to":"ASSIGNED","by":{"id":"me","role":"human"}}}"#,
        r#"{"ok":false,"code":"MISSING_FIELD","message":"something that the move requires is missing","allowed":["ASSIGNED","CANCELED"],"errors":[{"field":"assigneeIds","message":"Must have at least one assignee"}]}"#,
    );
}

#[test]
fn a_suspended_run_is_stepped_too() {
    let suspended = answer(
        "run",
        r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50},"event":{"type":"SUSPEND","service":"anthropic","since":0,"until":900000}}"#,
    );
    let back = answer(
        "run",
        &serde_json::json!({"state": suspended["state"], "event": {"type": "RESTORE"}}).to_string(),
    );
    assert_eq!(back["state"], serde_json::json!({"state": "running", "currentTurn": 3, "maxTurns": 50}));
}

#[test]
fn states_and_events_are_read_in_either_case() {
    for (machine, line) in [
        (
            "RUN",
            r#"{"state":{"state":"RUNNING","currentTurn":0,"maxTurns":5},"event":{"type":"step","turn":1,"toolCalls":[]}}"#,
        ),
        ("run", r#"{"state":"Running","event":{"type":"suspend","service":"s","since":0,"until":1}}"#),
        ("turn", r#"{"state":"queued","event":{"type":"TURN_GRANTED","at":0,"timeoutSeconds":60}}"#),
        ("turn", r#"{"state":"active","event":{"type":"turn_complete","alone":true}}"#),
        ("worker", r#"{"state":"READY","event":{"type":"STEP_STARTS"}}"#),
        (
            "worker",
            r#"{"state":{"status":"WORKING","task":"t-1"},"event":{"type":"released","reason":"CANCELED"}}"#,
        ),
        (
            "task",
            r#"{"state":"inbox","event":{"type":"MOVE","to":"canceled","by":{"id":"me","role":"HUMAN"}}}"#,
        ),
        ("Architect", r#"{"state":"waiting","event":{"type":"REQUEST","id":"r-1","request":"SPEC"}}"#),
    ] {
        assert_eq!(answer(machine, line)["ok"], true, "{line} gave {}", step_line(machine, line));
    }
}

/// A line that cannot be read is answered with where it was wrong and what is known there.
#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let says = |machine: &str, line: &str, part: &str| {
        let answer = answer(machine, line);
        assert_eq!(
            (&answer["ok"], &answer["code"]),
            (&Value::Bool(false), &Value::from("MALFORMED")),
            "{line}"
        );
        assert_eq!(answer["allowed"], serde_json::json!([]));
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(part), "{line} gave: {message}");
    };
    says("wrker", "{}", "there is no machine `wrker`; known: turn, worker, task, architect, run");
    says("run", "", "not JSON");
    says("run", "{", "not JSON: EOF");
    says("run", "[]", "not an object but a list");
    says("run", "{}", "`state` is missing");
    says("run", r#"{"state":"idle"}"#, "`event` is missing");
    says("run", r#"{"state":"idle","event":{"type":"ABORT","reason":"r"},"more":1}"#, "unknown field `more`");
    says(
        "run",
        r#"{"state":"busy","event":{"type":"ABORT","reason":"r"}}"#,
        "no state `busy`; known: idle, starting",
    );
    says("run", r#"{"state":7,"event":{}}"#, "`state` is a number");
    says("run", r#"{"state":{"state":"busy"},"event":{}}"#, "`state.state`: there is no state `busy`");
    says("run", r#"{"state":{},"event":{}}"#, "`state.state` is missing");
    says("run", r#"{"state":{"state":"idle"},"event":{}}"#, "in `state`: missing field `currentTurn`");
    says(
        "run",
        r#"{"state":"idle","event":{"type":"ERROR","error":{"code":"c","message":"m","status":500}}}"#,
        "in `event`: missing field `recoverable`",
    );
    says(
        "task",
        r#"{"state":"INBOX","event":{"type":"move","to":"DONE","by":{"id":"me"}}}"#,
        "in `event.by`: missing field `role`",
    );
    says("run", r#"{"state":"suspended","event":{"type":"RESTORE"}}"#, "wraps a state");
    says("run", r#"{"state":"idle","event":{"type":"GO"}}"#, "no event `GO`; known: START, STEP");
    says("run", r#"{"state":"idle","event":{"type":1}}"#, "`event.type` is a number");
    says(
        "run",
        r#"{"state":"idle","event":{"type":"RESTORE","x":1}}"#,
        "unknown field `x`; RESTORE has none",
    );
    says(
        "run",
        r#"{"state":"idle","event":{"type":"STEP","turn":"4","toolCalls":[]}}"#,
        "in `event.turn`: invalid type: string",
    );
    says("run", r#"{"state":"idle","event":{"type":"STEP","turn":1e999}}"#, "not JSON: number out of range");
    says(
        "run",
        r#"{"state":"idle","event":{"type":"STEP","turn":-1,"toolCalls":[]}}"#,
        "in `event.turn`: invalid value: integer `-1`",
    );
    says(
        "run",
        r#"{"state":"idle","event":{"type":"STEP","turn":1,"toolCalls":[{"id":"a","tool":"b","input":{},"status":"odd"}]}}"#,
        "in `event.toolCalls[0].status`: unknown variant `odd`, expected one of `pending`",
    );
    says(
        "task",
        r#"{"state":"INBOX","event":{"type":"move","to":"DONE","by":{"id":"me","role":"boss"}}}"#,
        "in `event.by.role`: unknown variant `boss`, expected one of `intern`",
    );
    says(
        "worker",
        r#"{"state":"idle","event":{"type":"kill","now":true}}"#,
        "unknown field `now`; kill has none",
    );
    says("turn", &format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000)), "recursion limit");
    says("turn", &" ".repeat(LINE_LENGTH_MAX + 1), "the most that is read");
    assert!(step_bytes("run", b"{\"state\":\xff").contains("not UTF-8: byte 10 is wrong"));
}

#[test]
fn numbers_at_the_edge_of_their_type_are_answered() {
    let max = u32::MAX;
    for (machine, line) in [
        (
            "run",
            format!(
                r#"{{"state":{{"state":"starting","currentTurn":{max},"maxTurns":{max}}},"event":{{"type":"STEP","turn":{max},"toolCalls":[]}}}}"#
            ),
        ),
        (
            "worker",
            format!(
                r#"{{"state":{{"status":"working","task":"t","step_count":{max},"errors":{max}}},"event":{{"type":"step_failed","error":"e"}}}}"#
            ),
        ),
        (
            "worker",
            format!(
                r#"{{"state":{{"status":"stuck","task":"t","errors":{max}}},"event":{{"type":"retry"}}}}"#
            ),
        ),
        (
            "worker",
            format!(r#"{{"state":{{"status":"done","step_count":{max}}},"event":{{"type":"gate_failed"}}}}"#),
        ),
        (
            "turn",
            format!(
                r#"{{"state":"QUEUED","event":{{"type":"turn_granted","at":{},"timeoutSeconds":{max}}}}}"#,
                i64::MAX
            ),
        ),
        (
            "turn",
            format!(
                r#"{{"state":{{"state":"ACTIVE","timeoutAt":{}}},"event":{{"type":"wait_requested","at":{},"waitSeconds":1}}}}"#,
                i64::MAX,
                i64::MIN
            ),
        ),
    ] {
        assert_eq!(answer(machine, &line)["ok"], true, "{line}");
    }
}

#[test]
fn the_json_of_a_machine_has_the_documented_members() {
    for doc in catalog::all() {
        let json: Value = serde_json::from_str(&doc.print(Format::Json)).unwrap();
        let members =
            |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(members(&json), "machine seed initial states rows");
        assert_eq!(members(&json["states"][0]), "name final meta");
        assert_eq!(members(&json["rows"][0]), "from event guards actions to who");
    }
    let run: Value = serde_json::from_str(&catalog::find("run").unwrap().json()).unwrap();
    assert_eq!(
        run["rows"][3],
        serde_json::json!({"from": "running", "event": "STEP", "guards": ["withinTurnLimit"],
            "actions": ["executeToolCall", "auditToolCall", "incrementTurn", "publishEvent"], "to": "running", "who": ["agent", "system"]})
    );
    assert_eq!(run["states"][2]["meta"]["canExecuteTools"], true);
}

#[test]
fn tables_fit_a_terminal_of_a_hundred_columns() {
    for doc in catalog::all() {
        for line in doc.print(Format::Table).lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

/// Text, or what looks like the beginning of sense.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "state",
        "event",
        "type",
        "status",
        "inner",
        "suspended",
        "STEP",
        "START",
        "move",
        "to",
        "by",
        "role",
        "id",
        "human",
        "INBOX",
        "idle",
        "running",
        "turn",
        "payload",
        "task",
        "currentTurn",
        "maxTurns",
        "toolCalls",
        "recover",
        "SUSPEND",
        "service",
        "since",
        "until",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_answered_by_one_line_of_json(machine in 0usize..6, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let name = catalog::names().get(machine).copied().unwrap_or("none");
        let answer = step_bytes(name, &bytes);
        prop_assert!(!answer.contains('\n'));
        prop_assert_eq!(&serde_json::from_str::<Value>(&answer).unwrap()["ok"], &Value::Bool(false));
    }

    #[test]
    fn any_json_is_answered_by_one_line_of_json(machine in 0usize..5, state in any_json(), event in any_json()) {
        let line = serde_json::json!({"state": state, "event": event}).to_string();
        let answer = step_line(catalog::names()[machine], &line);
        prop_assert!(!answer.contains('\n'));
        prop_assert!(serde_json::from_str::<Value>(&answer).unwrap()["ok"].is_boolean());
    }
}

#[test]
fn every_format_has_a_name_and_a_meaning() {
    for format in Format::ALL {
        assert!(!format.about().is_empty());
        assert!(!catalog::find("worker").unwrap().print(*format).is_empty());
    }
}

/// As all that is sent to Adjutant: what nobody knows is refused, and what is required is named.
#[test]
fn an_event_of_a_run_has_no_members_that_nobody_knows_and_has_those_that_are_required() {
    let answer = |event: &str| {
        step_line(
            "run",
            &format!(r#"{{"state":{{"state":"running","currentTurn":1,"maxTurns":9}},"event":{event}}}"#),
        )
    };
    let known = answer(
        r#"{"type":"STEP","turn":2,"toolCalls":[{"id":"c","tool":"Read","input":{},"status":"pending"}]}"#,
    );
    assert!(known.starts_with(r#"{"ok":true"#), "{known}");
    let unknown = answer(r#"{"type":"STEP","turn":2,"toolCalls":[],"more":true}"#);
    assert!(unknown.contains("STEP has no member `more`"), "{unknown}");
    let missing = answer(r#"{"type":"STEP","turn":2}"#);
    assert!(missing.contains("toolCalls is required"), "{missing}");
    let missing = answer(r#"{"type":"ERROR","error":{"code":"E","message":"m"},"recoverable":true}"#);
    assert!(missing.contains("error.status is required"), "{missing}");
    let known =
        answer(r#"{"type":"ERROR","error":{"code":"E","message":"m","status":500},"recoverable":true}"#);
    assert!(known.starts_with(r#"{"ok":true"#), "{known}");
}

/// Members of `agent:starting` are in its payload; those of `approval:requested` stand beside its type.
#[test]
fn the_stream_of_a_run_has_the_shapes_of_the_source_document() {
    let started = step_line(
        "run",
        r#"{"state":{"state":"idle","currentTurn":0,"maxTurns":2,"task":{"id":"t-1","status":"ASSIGNED","mine":true,"sessionId":"s-1"}},"event":{"type":"START","taskId":"t-1","prompt":"x"}}"#,
    );
    assert!(
        started.contains(r#"{"type":"agent:starting","payload":{"taskId":"t-1","sessionId":"s-1"}}"#),
        "{started}"
    );
    let asked = step_line(
        "run",
        r#"{"state":{"state":"running","currentTurn":2,"maxTurns":2},"event":{"type":"STEP","turn":3,"toolCalls":[]}}"#,
    );
    let expected =
        r#"{"type":"approval:requested","reason":"turn_limit_reached","currentTurn":2,"maxTurns":2}"#;
    assert!(asked.contains(expected), "{asked}");
}

/// The wrapper's event is one of those that a state takes.
#[test]
fn a_refusal_names_suspend_where_the_state_takes_it() {
    let allowed = |machine: &str, line: &str| step_line(machine, line);
    let refused =
        allowed("architect", r#"{"state":"DISPATCHING","event":{"type":"abandon","reason":"enough"}}"#);
    assert!(refused.contains(r#""stay","SUSPEND"]"#), "{refused}");
    let refused = allowed("run", r#"{"state":"running","event":{"type":"RESUME"}}"#);
    assert!(refused.contains(r#","SUSPEND"]"#), "{refused}");
    let refused = allowed("run", r#"{"state":"idle","event":{"type":"ABORT","reason":"r"}}"#);
    assert!(!refused.contains("SUSPEND"), "{refused}");
}
