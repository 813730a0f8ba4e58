use super::adj;
use serde_json::{Value, json};

/// In a pipe: plain lines, at once, without a single code for a terminal, and it says that it is simulated.
#[test]
fn the_demo_in_a_pipe_is_plain_lines_that_end_with_every_task_done() {
    let ran = adj("demo");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("A simulated fleet:"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'), "{}", ran.stdout);
    for part in ["takes t1", "owner killed and recovered", "t8 landed", "✓ 8 of 8 tasks DONE, simulated"] {
        assert!(ran.stdout.contains(part), "{part} is not in:\n{}", ran.stdout);
    }
}

#[test]
fn the_demo_as_json_is_one_document() {
    let document: Value = serde_json::from_str(&adj("demo --json").stdout).unwrap();
    assert_eq!((&document["simulated"], &document["done"]), (&json!(true), &json!(8)));
}

#[test]
fn the_demo_has_help() {}
