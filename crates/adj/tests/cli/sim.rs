use super::{adj, snapshot};
use serde_json::{Value, json};

#[test]
fn the_same_seed_gives_the_same_trace_and_another_gives_another() {
    let line = "sim --seed 7 --faults all --trace";
    let (first, second) = (adj(line), adj(line));
    assert_eq!((first.code, first.stderr.as_str()), (0, ""));
    assert!(first.stdout.lines().count() > 100, "{}", first.stdout);
    assert_eq!(first.stdout, second.stdout);
    assert_ne!(first.stdout, adj("sim --seed 8 --faults all --trace").stdout);
}

/// The numbers follow from every rule, so they are left out of what is compared.
#[test]
fn one_life_and_many_are_told_as_people_read_them() {
    let masked = |line: &str| {
        let words = line.split(' ').map(|word| {
            let number = word.contains(|letter: char| letter.is_ascii_digit());
            if number { "N".to_owned() } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    let one = adj("sim --seed 2 --tasks 4 --faults agent-crash,conflict,loop --exact").stdout;
    let one: String = one.lines().filter(|line| !line.starts_with("digest")).map(masked).collect();
    snapshot("sim-one.txt", &one);
    let many = adj("sim --runs 5 --tasks 4 --faults none").stdout;
    for part in
        ["5 simulations of a fleet, seeds 1 to 5", "20 of 20 DONE", "most: TurnTaken", "never: TicketGone"]
    {
        assert!(many.contains(part), "{part} is not in:\n{many}");
    }
}

#[test]
fn a_fault_that_does_not_exist_is_wrong_usage_and_the_nearest_is_named() {
    let ran = adj("sim --faults conflict,agent-crsh");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    snapshot("sim-unknown-fault.txt", &ran.stderr);
    assert_eq!(adj("sim --tasks 0").code, 2);
    assert_eq!(adj("sim --seed 18446744073709551615 --runs 2").code, 2);
}

#[test]
fn json_is_one_document_and_the_same_for_the_same_seeds() {
    let line = "sim --runs 12 --tasks 4 --faults passing --json";
    let ran = adj(line);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["tasks"], json!({"total": 48, "done": 48, "canceled": 0, "waiting": 0}));
    assert_eq!(document["faults"].as_array().unwrap().len(), 30);
    // Threads share the lives as it comes; what is told does not depend on it.
    assert_eq!(ran.stdout, adj(line).stdout);
    let document: Value = serde_json::from_str(&adj("sim --faults none --trace --json").stdout).unwrap();
    assert!(document["trace"].as_array().unwrap().len() > 100);
}

/// Whoever asks what was never hit is told all of it.
#[test]
fn coverage_lists_every_rule_row_and_fault() {
    let text = adj("sim --faults none --coverage").stdout;
    assert!(text.contains("Landed") && text.contains(" 0  Outage"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" → ")).count(), 131, "{text}");
}
