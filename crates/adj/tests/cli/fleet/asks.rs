//! What an agent asks for: a person sees all of it before it runs, and what is allowed is what runs.

use super::Repository;
use super::background::wait;
use serde_json::Value;

/// The one question that is open.
#[track_caller]
fn question(repository: &Repository) -> Value {
    wait("a question", || repository.json("approvals").as_array()?.first().cloned())
}

const LONG: &str = "git push --dry-run origin main";

/// Every line and every character of a call is shown wherever it can be decided; a view of one line says what it
/// leaves out.
#[test]
fn a_call_is_shown_whole_before_a_person_allows_it() {
    let wide = "x".repeat(200);
    let step = format!(
        r#"{{ run = "{LONG}\necho {wide}\necho second > second.txt" }}, {{ commit = "Do" }}, {{ done = true }}"#
    );
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {step} ]\n");
    let repository = Repository::new("asks-whole", &scenario, &["t-1"]);
    let told = repository.dir().with_extension("told");
    let hook = format!("[hooks]\nnotify = 'printf %s \"$ADJ_CALL\" > {}'\n[test]", told.display());
    repository.set(&[("[test]", &hook)]);
    let running = repository.start("run");
    let asked = question(&repository);
    let id = asked["id"].as_str().expect("an id").to_owned();

    // In one line, with what is missing.
    let line = format!("The agent asks to use Bash: {LONG} … +2 lines");
    let list = repository.ok("approvals");
    assert!(list.trim_end().ends_with(&line), "{list}");
    assert_eq!(asked["question"], line);
    assert!(repository.ok("why t-1").contains("… +2 lines"));

    // Whole.
    let command = format!("{LONG}\necho {wide}\necho second > second.txt");
    assert_eq!(asked["call"]["input"]["command"], command);
    let shown = repository.ok(&format!("approvals {id}"));
    let block = format!("Bash\n  command:\n    {LONG}\n    echo {wide}\n    echo second > second.txt\n");
    assert!(shown.contains(&block), "{shown}");
    assert!(shown.contains(&format!("adj approve {id}")), "{shown}");
    assert_eq!(repository.json(&format!("approvals {id}"))["call"], asked["call"]);
    let why = repository.ok("why t-1");
    for line in ["    git push --dry-run origin main", &wide, "echo second > second.txt"] {
        assert!(why.contains(line), "{line} is not in\n{why}");
        running.wait_for(line);
    }
    assert_eq!(repository.json("why t-1")["call"], asked["call"]);
    wait("the hook", || {
        let told = std::fs::read_to_string(&told).ok()?;
        (told == block.trim_end()).then_some(())
    });

    assert!(!repository.dir().join("second.txt").exists());
    repository.ok(&format!("approve {id}"));
    running.wait_for("t-1 landed");
    running.stop();
    assert_eq!(repository.read("second.txt"), "second\n");
    let decided = repository.ok(&format!("approvals {id}"));
    assert!(decided.contains("approved by human:tester"), "{decided}");
    assert_eq!(repository.adj("approvals q999").code, 4);
    let _ = std::fs::remove_file(told);
}

/// What is written is part of the call, not only where.
#[test]
fn the_content_of_a_file_is_part_of_the_call_that_a_person_allows() {
    let step = r#"{ write = "red.txt", text = "one\ntwo\u001b[2J\n" }, { commit = "Do" }, { done = true }"#;
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {step} ]\n");
    let repository = Repository::new("asks-content", &scenario, &["t-1"]);
    repository.set(&[("[test]", "[policy]\nred = [\"Write(red*)\"]\n[test]")]);
    let running = repository.start("run");
    let asked = question(&repository);
    assert_eq!(asked["question"], "The agent asks to use Write: red.txt … +2 lines");
    let id = asked["id"].as_str().expect("an id");
    let shown = repository.ok(&format!("approvals {id}"));
    assert!(shown.contains("  content:\n    one\n    two\\u{1b}[2J\n"), "{shown}");
    repository.ok(&format!("deny {id} --note no"));
    running.wait_for("nothing has changed");
    running.stop();
}

/// What is too long to be looked at is refused, and never waits for anybody.
#[test]
fn a_call_that_is_too_long_to_be_shown_is_refused() {
    let content = "y".repeat(70_000);
    let step = format!(
        r#"{{ write = "red.txt", text = "{content}" }}, {{ write = "green.txt", text = "{content}" }}, {{ commit = "Do" }}, {{ done = true }}"#
    );
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {step} ]\n");
    let repository = Repository::new("asks-long", &scenario, &["t-1"]);
    repository.set(&[("[test]", "[policy]\nred = [\"Write(red*)\"]\n[test]")]);
    repository.ok("run --until-idle");
    assert_eq!(repository.json("approvals --all"), serde_json::json!([]));
    assert_eq!((repository.read("red.txt").len(), repository.read("green.txt").len()), (0, 70_000));
    let logs = repository.ok("logs A");
    assert!(logs.contains("longer than the 65536 bytes that one is shown"), "{logs}");
}

/// One yes for the same call again, and for no other.
#[test]
fn a_call_that_is_allowed_always_is_not_asked_about_again_in_its_task() {
    let push = "{ ask = \"Bash\", argument = \"git push origin main\" }";
    let step = format!(
        "{push}, {push}, {{ ask = \"Bash\", argument = \"git push origin other\" }}, {{ write = \"a.txt\", text = \"a\\n\" }}, {{ done = true }}"
    );
    let scenario = format!("[[scenario]]\n[[scenario.step]]\ndo = [ {step} ]\n");
    let repository = Repository::new("asks-always", &scenario, &["t-1"]);
    let running = repository.start("run");
    let first = question(&repository)["id"].as_str().expect("an id").to_owned();
    repository.ok(&format!("approve {first} --always"));
    let second = wait("the other call", || {
        let open = repository.json("approvals");
        open.as_array()?.iter().find(|asked| asked["id"] != first.as_str()).cloned()
    });
    assert_eq!(second["call"]["argument"], "git push origin other");
    let refused = repository.adj("approve q999 --always");
    assert_eq!(refused.code, 4);
    repository.ok(&format!("approve {}", second["id"].as_str().expect("an id")));
    running.wait_for("t-1 landed");
    running.stop();
    let all = repository.json("approvals --all");
    let decided: Vec<_> =
        all.as_array().expect("a list").iter().map(|one| one["decided"]["decision"].clone()).collect();
    assert_eq!(decided, ["always approved", "approved"]);
    assert_eq!(repository.events("call_allowed"), 1);
}
