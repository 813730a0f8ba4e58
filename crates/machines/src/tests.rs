#[test]
fn smoke() {
    for doc in crate::catalog::all() {
        for line in doc.table().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        println!("{}", doc.table());
    }
    println!("{}", crate::catalog::find("run").unwrap().mermaid());
    let s = crate::catalog::step_line;
    for (m, l) in [
        (
            "run",
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"STEP","turn":4,"toolCalls":[]}}"#,
        ),
        (
            "run",
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"step","turn":5,"toolCalls":[]}}"#,
        ),
        (
            "run",
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"task":null},"event":{"type":"step","turn":4,"toolCalls":[{"id":"a","tool":"b","input":{},"status":"zz"}]}}"#,
        ),
        (
            "run",
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50,"x":null},"event":{"type":"step","turn":"4"}}"#,
        ),
        (
            "run",
            r#"{"state":{"state":"running","currentTurn":3,"maxTurns":50},"event":{"type":"step","turn":"4"}}"#,
        ),
        ("run", r#"{"state":"running","event":{"type":"SUSPEND","service":"x","since":1,"until":3}}"#),
        (
            "task",
            r#"{"state":"inbox","event":{"type":"move","to":"ASSIGNED","by":{"id":"me","role":"human"},"payload":{}}}"#,
        ),
        (
            "task",
            r#"{"state":"inbox","event":{"type":"move","to":"ASSIGNED","by":{"id":"me","role":"boss"},"payload":{}}}"#,
        ),
        ("worker", r#"{"state":"Ready","event":{"type":"step_starts","x":1}}"#),
        ("wrker", r#"{"state":"Ready","event":{"type":"step_starts","x":1}}"#),
    ] {
        println!("{}", s(m, l));
    }
}
