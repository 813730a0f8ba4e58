//! `adj waiting`: one list of all that waits, with a fleet at work and without one.

use super::Repository;
use super::background::wait;
use super::policies::{DONE, ON, WRITE, scenario, waits_for_a_person};
use serde_json::{Value, json};

/// What waits, by kind, with the names that it is about.
fn kinds(repository: &Repository) -> Vec<(String, Value)> {
    let list = repository.json("waiting");
    let item = |item: &Value| (item["kind"].as_str().expect("a kind").to_owned(), item["task"].clone());
    list.as_array().expect("a list").iter().map(item).collect()
}

#[test]
fn work_that_waits_for_a_review_is_listed_with_all_that_it_holds_up_and_how_to_decide() {
    let repository = Repository::new("waiting-review", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.ticket("t-2", &["t-1"]);
    repository.commit("Another ticket");
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    assert_eq!(repository.ok("waiting"), "nothing waits for you\n");
    waits_for_a_person(&repository);
    let shown = repository.ok("waiting");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["AGE", "KIND", "ABOUT", "BLOCKS"]);
    assert!(lines[1].contains("review  t-1    t-1, t-2"), "{shown}");
    assert_eq!(
        lines[2..],
        [
            "  t-1 is ready: Do t-1",
            "  → adj review t-1                 shows what it changes, and what its tests said",
            "  → adj review t-1 --approve       lets it land: it is merged, tested, and main moves to it",
            "  → adj review t-1 --changes TEXT  sends it back to work, and tells its agent the text",
            "  → adj task cancel t-1            ends the task; its work is saved",
        ],
        "{shown}"
    );
    let list = repository.json("waiting");
    assert_eq!(list[0]["blocks"], json!(["t-1", "t-2"]));
    assert_eq!((&list[0]["who"], &list[0]["severity"]), (&json!("person"), &json!("info")));
    assert_eq!(
        (&list[0]["options"][1]["code"], &list[0]["options"][1]["task"]),
        (&json!("approve_review"), &json!("t-1"))
    );
    repository.ok("review t-1 --approve");
    assert_eq!(repository.ok("waiting"), "nothing waits for you\n");
}

#[test]
fn a_call_that_waits_is_listed_while_its_agent_waits() {
    let push = "{ ask = \"Bash\", argument = \"git push origin main\" }";
    let repository =
        Repository::new("waiting-call", &scenario(&[&format!("{push}, {WRITE}, {DONE}")]), &["t-1"]);
    let fleet = repository.start("run");
    let list = wait("a question", || Some(repository.json("waiting")).filter(|list| list[0].is_object()));
    assert_eq!((&list[0]["kind"], &list[0]["task"]), (&json!("approval"), &json!("t-1")));
    assert_eq!(list[0]["severity"], "urgent");
    let id = list[0]["approval"].as_str().expect("a question").to_owned();
    let shown = repository.ok("waiting");
    assert!(shown.contains(&format!("→ adj approve {id} ")), "{shown}");
    assert!(shown.contains(&format!("→ adj approve {id} --always")), "{shown}");
    repository.ok(&format!("approve {id}"));
    fleet.wait_for("t-1 landed");
    assert_eq!(repository.ok("waiting"), "nothing waits for you\n");
    fleet.stop();
}

#[test]
fn a_budget_that_is_used_up_is_listed() {
    let text = scenario(&[&format!("{WRITE}, {ON}"), ON, ON, DONE]);
    let repository = Repository::new("waiting-budget", &text, &["t-1"]);
    repository.set(&[("[test]", "[budget]\ntask_usd = 1.0\nstep_usd = 0.5\n[test]")]);
    waits_for_a_person(&repository);
    assert_eq!(kinds(&repository), [("budget".to_owned(), json!("t-1"))]);
    assert_eq!(repository.json("waiting")[0]["options"][0]["code"], "raise_limit");
}

#[test]
fn a_stuck_worker_is_listed_once_with_its_task() {
    let red = r#"{ write = "{task}.check", text = "false\n" }, { commit = "Do {task}" }, { done = true }"#;
    let repository = Repository::new("waiting-stuck", &scenario(&[red]), &["t-1"]);
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    waits_for_a_person(&repository);
    let list = repository.json("waiting");
    assert_eq!(kinds(&repository), [("stuck_worker".to_owned(), json!("t-1"))]);
    assert_eq!(list[0]["worker"], "A");
    let shown = repository.ok("waiting");
    assert!(shown.contains("→ adj retry A") && shown.contains("→ adj kill A"), "{shown}");
}

#[test]
fn a_checkout_in_the_way_of_a_landing_is_listed() {
    let text =
        scenario(&[r#"{ write = "base.txt", text = "better\n" }, { commit = "Better" }, { done = true }"#]);
    let repository = Repository::new("waiting-checkout", &text, &["t-1"]);
    repository.write("base.txt", "base\n");
    repository.commit("A file");
    repository.set(&[("[test]", "[limits]\ncheckout = \"10m\"\n\n[test]")]);
    repository.write("base.txt", "by hand\n");
    waits_for_a_person(&repository);
    assert_eq!(kinds(&repository), [("checkout_in_the_way".to_owned(), json!("t-1"))]);
    assert!(repository.ok("waiting").contains("your checkout has local changes in base.txt"));
}

#[test]
fn an_outage_is_listed_and_waits_for_nobody() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), DONE]);
    let repository = Repository::new("waiting-outage", &text, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nhealth_poll = \"10m\"\n[test]")]);
    let fleet = repository.start("run");
    fleet.wait_for("is unavailable");
    let list = repository.json("waiting");
    assert_eq!((&list[0]["kind"], &list[0]["who"]), (&json!("outage"), &json!("service")));
    assert_eq!(list[0]["blocks"], json!(["t-1"]));
    assert!(list[0]["text"].as_str().is_some_and(|text| text.contains("529")), "{list}");
    repository.ok("retry --all");
    fleet.wait_for("t-1 landed");
    fleet.stop();
}

#[test]
fn settings_that_are_gone_are_listed_until_somebody_has_decided() {
    let repository = Repository::new("waiting-settings", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.ok("run --until-idle");
    std::fs::remove_file(repository.dir().join("adjutant.toml")).expect("it goes");
    let list = repository.json("waiting");
    assert_eq!((&list[0]["kind"], &list[0]["blocks"]), (&json!("untrusted_settings"), &json!([])));
    assert_eq!(list[0]["options"][1]["code"], "forget_settings");
    repository.ok("config forget");
    assert_eq!(repository.ok("waiting"), "nothing waits for you\n");
}
