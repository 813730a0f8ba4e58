//! What limits a fleet: money, turns, tools, steps, and services that are away. Each limit asks, and loses nothing.

use super::Repository;
use super::background::wait;
use serde_json::{Value, json};

/// A scenario for every task, of these steps.
pub fn scenario(steps: &[&str]) -> String {
    let steps: String = steps.iter().map(|step| format!("[[scenario.step]]\ndo = [ {step} ]\n")).collect();
    format!("[[scenario]]\ntokens = [100, 10]\ncost = 0.25\n{steps}")
}

/// Runs until a person is needed; what was printed.
#[track_caller]
pub fn waits_for_a_person(repository: &Repository) -> String {
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("a person"), "{}", ran.stderr);
    assert_eq!(repository.strays(), Vec::<String>::new());
    ran.stdout
}

/// The one question that is open.
#[track_caller]
fn question(repository: &Repository) -> Value {
    let open = repository.json("approvals");
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    open[0].clone()
}

#[track_caller]
fn answer(repository: &Repository, how: &str) -> String {
    let id = question(repository)["id"].as_str().expect("a question has an id").to_owned();
    repository.ok(&how.replace("ID", &id))
}

#[track_caller]
pub fn blocked(repository: &Repository, id: &str, reason: &str) {
    let task = repository.task(id);
    assert_eq!((&task["status"], &task["blockReason"]), (&json!("BLOCKED"), &json!(reason)), "{task}");
}

pub const WRITE: &str = r#"{ write = "{task}.txt", text = "{step}\n" }"#;
pub const ON: &str =
    r#"{ append = "{task}.txt", text = "{step}\n" }, { commit = "Go on" }, { say = "more" }"#;
pub const DONE: &str = r#"{ commit = "Do {task}" }, { done = true }"#;

/// A budget that is reached asks; yes raises it and the work goes on in the same session, no blocks the task.
fn check_budget(name: &str, key: &str, scope: &str) {
    let text = scenario(&[&format!("{WRITE}, {ON}"), ON, ON, DONE]);
    let repository = Repository::new(name, &text, &["t-1"]);
    repository.set(&[("[test]", &format!("[budget]\n{key} = 1.0\nstep_usd = 0.5\n[test]"))]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains(&format!("The {scope} budget is reached")), "{lines}");
    let asked = question(&repository);
    assert_eq!((&asked["cause"], &asked["scope"]), (&json!("budget"), &json!(scope)));
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL");
    assert!(repository.ok("why t-1").contains("budget"), "{}", repository.ok("why t-1"));
    let before = repository.json("cost")["total"]["usd"].as_f64().expect("a sum");
    assert!(before > 0.0 && before <= 1.5, "what was spent is within a step of the limit: {before}");
    answer(&repository, "approve ID --raise 20");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let text = repository.read("t-1.txt");
    assert!(text.starts_with("1\n1\n2\n3\n"), "no step was lost or done twice: {text}");
}

#[test]
fn a_run_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised() {
    check_budget("budget-run", "run_usd", "run");
}

#[test]
fn a_task_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised() {
    check_budget("budget-task", "task_usd", "task");
}

#[test]
fn an_agent_that_reaches_its_budget_asks_and_goes_on_when_it_is_raised() {
    let text = scenario(&[&format!("{WRITE}, {ON}"), ON, DONE]);
    let repository = Repository::new("budget-agent", &text, &["t-1"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nbudget_usd = 1.25")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("The agent budget is reached"), "{lines}");
    assert_eq!(question(&repository)["scope"], "agent");
    answer(&repository, "approve ID --raise 20");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn a_day_that_reaches_its_budget_asks_once_for_all_and_begins_nothing_new() {
    let text = scenario(&[&format!("{WRITE}, {ON}"), ON, DONE]);
    let repository = Repository::new("budget-day", &text, &["t-1", "t-2", "t-3"]);
    repository.set(&[("[test]", "[budget]\nday_usd = 2.0\nstep_usd = 0.5\n[test]")]);
    let lines = waits_for_a_person(&repository);
    assert_eq!(lines.matches("→ The day budget is reached").count(), 1, "{lines}");
    assert_eq!(question(&repository)["task"], Value::Null, "it is of no one task");
    let why = repository.ok("why t-3");
    assert!(why.contains("day"), "{why}");
    assert_eq!(repository.task("t-3")["status"], "INBOX");
    answer(&repository, "approve ID --raise 20");
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2", "t-3"], "sh tests.sh");
}

#[test]
fn a_budget_that_is_denied_blocks_the_task_and_keeps_its_work() {
    let text = scenario(&[&format!("{WRITE}, {ON}"), ON, ON, DONE]);
    let repository = Repository::new("budget-deny", &text, &["t-1"]);
    repository.set(&[("[test]", "[budget]\ntask_usd = 0.6\nstep_usd = 0.5\n[test]")]);
    waits_for_a_person(&repository);
    answer(&repository, "deny ID --note enough");
    blocked(&repository, "t-1", "manual");
    assert!(repository.read(&repository.tree("A-t-1/t-1.txt")).starts_with('1'), "the tree stands");
    let decided = repository.json("approvals --all");
    assert_eq!(decided[0]["decided"]["decision"], "denied");
    assert_eq!(
        repository
            .refused(&format!("approve {}", decided[0]["id"].as_str().expect("an id")))
            .matches("decided already")
            .count(),
        1
    );
}

/// What the scenario says is what every sum says.
#[test]
fn tokens_and_dollars_agree_by_step_run_task_worker_agent_and_day() {
    let text = scenario(&[&format!("{WRITE}, {ON}"), DONE]);
    let repository = Repository::new("cost-sums", &text, &["t-1", "t-2"]);
    repository.ok("run --until-idle");
    // Turns of a task: write, append, commit, words; commit, DONE.
    let turns = repository.json("cost --by run")["items"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["inputTokens"].as_u64().expect("tokens") / 100)
        .collect::<Vec<_>>();
    assert_eq!(turns.len(), 2);
    let of_all: u64 = turns.iter().sum();
    assert!(of_all >= 10, "{turns:?}");
    let close =
        |value: &Value, turns: u64| (value.as_f64().expect("dollars") - 0.25 * turns as f64).abs() < 1e-9;
    for by in ["run", "task", "worker", "agent", "day"] {
        let cost = repository.json(&format!("cost --by {by}"));
        assert!(close(&cost["total"]["usd"], of_all), "{by}: {cost}");
        assert_eq!(
            (&cost["total"]["inputTokens"], &cost["total"]["outputTokens"]),
            (&json!(100 * of_all), &json!(10 * of_all))
        );
        assert_eq!(cost["total"]["reservedUsd"], 0.0, "nothing stays set aside: {cost}");
        let items = cost["items"].as_array().expect("a list");
        let sum: f64 = items.iter().map(|item| item["usd"].as_f64().expect("dollars")).sum();
        assert!((sum - 0.25 * of_all as f64).abs() < 1e-9, "{by}: {cost}");
        let tokens: u64 = items
            .iter()
            .map(|item| {
                item["tokens"].as_u64().unwrap_or_else(|| {
                    item["inputTokens"].as_u64().unwrap_or(0) + item["outputTokens"].as_u64().unwrap_or(0)
                })
            })
            .sum();
        assert_eq!(tokens, 110 * of_all, "{by}: {cost}");
        let table = repository.ok(&format!("cost --by {by}"));
        assert!(table.contains(&format!("{:.2}", 0.25 * of_all as f64)), "{table}");
    }
    let workers = repository.json("ps");
    let sum = |name: &str| {
        workers
            .as_array()
            .expect("workers")
            .iter()
            .map(|worker| worker[name].as_f64().expect("a number"))
            .sum::<f64>()
    };
    assert_eq!(
        (sum("total_input_tokens"), sum("total_output_tokens")),
        ((100 * of_all) as f64, (10 * of_all) as f64)
    );
    assert!((sum("total_cost_usd") - 0.25 * of_all as f64).abs() < 1e-9);
    assert_eq!(repository.task("t-1")["cost"]["usd"].as_f64(), Some(0.25 * turns[0] as f64));
}

/// Unknown is never nothing, and what is set aside is no cost: both are said everywhere.
#[test]
fn a_step_of_unknown_price_is_said_loudly_and_stays_set_aside() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]).replace("cost = 0.25", "cost = \"unknown\"");
    let repository = Repository::new("cost-unknown", &text, &["t-1"]);
    repository.set(&[("[test]", "[budget]\nstep_usd = 0.75\nday_usd = 50.0\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(
        lines.contains("t-1: a step ended without a price; budgets keep $0.75 set aside for it"),
        "{lines}"
    );
    assert!(lines.contains("cost      unknown (1 step, $0.75 set aside), "), "{lines}");
    let total = &repository.json("cost")["total"];
    assert_eq!((&total["usd"], &total["setAsideUsd"]), (&json!(0.0), &json!(0.75)), "{total}");
    assert_eq!((&total["unpricedSteps"], &total["estimatedSteps"]), (&json!(1), &json!(0)), "{total}");
    assert!(repository.ok("ps").contains("unknown"), "{}", repository.ok("ps"));
    for by in ["task", "agent", "worker", "run", "day", "step"] {
        // Its one row, and the total.
        let shown = repository.ok(&format!("cost --by {by}"));
        let rows = shown.lines().filter(|row| row.contains("unknown (") && row.contains("$0.75 set aside"));
        assert_eq!(rows.count(), 2, "by {by}:\n{shown}");
        assert!(!shown.contains('≥'), "{shown}");
        let item = &repository.json(&format!("cost --by {by}"))["items"][0];
        assert_eq!((&item["usd"], &item["unpricedSteps"]), (&json!(0.0), &json!(1)), "by {by}: {item}");
        assert!(item["inputTokens"].as_u64() > Some(0) && item["outputTokens"].as_u64() > Some(0), "{item}");
    }
    let later = repository.ok("run --until-idle");
    let all = "unknown (1 step, $0.75 set aside) with all runs before";
    assert!(later.contains(all), "{later}");
}

/// What the same agent's other steps cost says what a token costs.
#[test]
fn a_step_of_unknown_price_is_estimated_by_the_agents_other_steps() {
    let priced =
        scenario(&[&format!("{WRITE}, {DONE}")]).replace("[[scenario]]", "[[scenario]]\ntask = \"t-1\"");
    let unknown = scenario(&[&format!("{WRITE}, {DONE}")]).replace("cost = 0.25", "cost = \"unknown\"");
    let repository = Repository::new("cost-estimated", &format!("{priced}{unknown}"), &["t-1", "t-2"]);
    repository.set(&[("workers = 2", "workers = 1"), ("[test]", "[budget]\ntask_usd = 2.0\n[test]")]);
    repository.ok("run --until-idle");
    let (known, guessed) = (repository.task("t-1")["cost"].clone(), repository.task("t-2")["cost"].clone());
    assert_eq!((&guessed["usd"], &guessed["setAsideUsd"]), (&json!(0.0), &json!(0.0)), "{guessed}");
    assert_eq!(guessed["estimatedUsd"], known["usd"], "it used as many tokens: {guessed}");
    let cost = repository.ok("cost");
    let row = cost.lines().find(|row| row.starts_with("t-2")).expect("a row");
    assert!(row.contains("~$") && row.ends_with("(1 step estimated)"), "{cost}");
    let steps = repository.ok("cost --by step");
    assert!(steps.lines().any(|row| row.contains("t-2") && row.ends_with("estimated")), "{steps}");
}

/// A price is a model's: another agent's steps of it say what a token costs, and the agent's own of another model do not.
#[test]
fn a_step_of_unknown_price_is_estimated_by_the_same_models_steps_and_by_no_other_models() {
    let of = |task: &str, cost: &str| {
        let text = scenario(&[&format!("{WRITE}, {DONE}")]);
        let text = text.replace("[[scenario]]", &format!("[[scenario]]\ntask = \"{task}\""));
        text.replace("cost = 0.25", &format!("cost = {cost}"))
    };
    let text = format!("{}{}{}", of("t-1", "0.25"), of("t-2", "\"unknown\""), of("t-3", "\"unknown\""));
    let repository = Repository::new("cost-models", &text, &["t-1"]);
    let player = "[agents.player]\nadapter = \"script\"";
    let with = |model: &str| format!("{player}\nmodel = \"{model}\"");
    let other = "[agents.other]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\nmodel = \"large\"\n";
    repository.set(&[("workers = 2", "workers = 1"), (player, &format!("{other}{}", with("large")))]);
    repository.ok("run --until-idle");
    // The same agent on another model.
    repository.set(&[(&with("large"), &with("small"))]);
    repository.ticket("t-2", &[]);
    repository.commit("Ask for t-2");
    repository.ok("run --until-idle");
    let priced = repository.task("t-1")["cost"].clone();
    let small = repository.task("t-2")["cost"].clone();
    assert_eq!((&small["estimatedSteps"], &small["setAsideUsd"]), (&json!(0), &json!(0.5)), "{small}");
    // Another agent on the same model.
    repository.ticket("t-3", &[]);
    repository.commit("Ask for t-3");
    repository.ok("task edit t-3 --agent other");
    repository.ok("run --until-idle");
    let large = repository.task("t-3")["cost"].clone();
    assert_eq!((&large["estimatedSteps"], &large["setAsideUsd"]), (&json!(1), &json!(0.0)), "{large}");
    assert_eq!(large["estimatedUsd"], priced["usd"], "it used as many tokens: {large}");
    let steps = repository.ok("cost --by step");
    let row = |task: &str| steps.lines().find(|row| row.contains(task)).unwrap_or_default().to_owned();
    assert!(row("t-3").ends_with("estimated"), "{steps}");
    assert!(row("t-2").contains("unknown"), "{steps}");
}

/// What an agent has finished is looked at, though its last words passed the budget.
#[test]
fn a_last_turn_that_says_done_and_passes_the_budget_goes_to_the_gate() {
    let repository = Repository::new("budget-done", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    // Three turns of $0.25: the file, the commit, DONE.
    repository.set(&[("[test]", "[budget]\ntask_usd = 0.6\nstep_usd = 0.5\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(!lines.contains("budget is reached"), "{lines}");
    let spent = repository.json("cost")["total"]["usd"].as_f64();
    assert_eq!(spent, Some(0.75), "nothing was played again: {lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

const CALLS: &str = r#"{ write = "a.txt", text = "a\n" }, { write = "b.txt", text = "b\n" }, { write = "c.txt", text = "c\n" }, { write = "d.txt", text = "d\n" }, { write = "e.txt", text = "e\n" }"#;

/// A fleet whose run came to its limit of three turns.
fn at_the_turn_limit(name: &str) -> Repository {
    let text = scenario(&[
        &format!("{CALLS}, {DONE}"),
        &format!("{{ write = \"last.txt\", text = \"last\\n\" }}, {DONE}"),
    ]);
    let repository = Repository::new(name, &text, &["t-1"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nmax_turns = 3")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("has taken its 3 turns and is not complete"), "{lines}");
    let asked = question(&repository);
    assert_eq!(
        (&asked["cause"], &asked["options"]),
        (&json!("turn_limit"), &json!(["continue", "complete", "abort"]))
    );
    assert_eq!(repository.json("cost")["total"]["inputTokens"], 300, "no turn past the limit is paid for");
    assert!(!repository.tree("A-t-1/d.txt").exists());
    repository
}

#[test]
fn a_run_at_its_turn_limit_goes_on_when_a_person_says_continue() {
    let repository = at_the_turn_limit("turns-continue");
    answer(&repository, "approve ID --raise 20");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.read("last.txt"), "last\n");
}

#[test]
fn a_run_at_its_turn_limit_is_complete_when_a_person_says_so() {
    let repository = at_the_turn_limit("turns-complete");
    assert_eq!(answer(&repository, "approve ID --complete").matches("completed").count(), 1);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!((repository.read("b.txt").as_str(), repository.read("last.txt").as_str()), ("b\n", ""));
}

#[test]
fn a_run_at_its_turn_limit_ends_when_a_person_denies() {
    let repository = at_the_turn_limit("turns-abort");
    let id = question(&repository)["id"].as_str().expect("an id").to_owned();
    assert_eq!(repository.adj(&format!("approve {id} --raise 1.5")).code, 2, "turns are whole");
    answer(&repository, "deny ID --to CANCELED");
    assert_eq!(repository.task("t-1")["status"], "CANCELED");
    repository.ok("run --until-idle");
    let saved = repository.json("salvage list");
    assert_eq!(saved.as_array().map(Vec::len), Some(1), "what was not committed is saved: {saved}");
    assert_eq!(repository.standing(), [""; 0]);
}

/// What stops an agent that gets nowhere reads what it did, not what it says.
#[test]
fn the_same_call_three_times_and_three_failures_of_a_tool_block_the_task() {
    let text = r#"
[[scenario]]
task = "t-loop"
[[scenario.step]]
do = [ { run = "ls" }, { run = "ls" }, { run = "ls" }, { run = "touch after" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = "exit 1" }, { run = "exit 2" }, { run = "exit 3" }, { run = "touch after; sleep 300" }, { done = true } ]
"#;
    let repository = Repository::new("policy-loops", text, &["t-loop", "t-fails"]);
    let lines = waits_for_a_person(&repository);
    assert!(
        lines.contains("t-loop is BLOCKED (loop)") && lines.contains("t-fails is BLOCKED (tool_failures)"),
        "{lines}"
    );
    blocked(&repository, "t-loop", "loop");
    blocked(&repository, "t-fails", "tool_failures");
    for id in ["t-loop", "t-fails"] {
        let task = repository.task(id);
        let comments = task["comments"].as_array().expect("comments");
        let reason = comments.iter().rev().find(|comment| comment["kind"] == "blocked").expect("a reason");
        let why = repository.json(&format!("why {id}")).to_string();
        assert!(why.contains(reason["text"].as_str().expect("a text")), "{why}");
    }
    for worker in repository.json("ps").as_array().expect("workers") {
        assert_eq!(worker["status"], "idle", "nobody is held up: {worker}");
    }
}

/// Each key has another value than by default, and it is that value which holds.
#[test]
fn the_settings_say_when_calls_are_a_loop_and_how_many_may_fail_and_what_never_asks() {
    let text = r#"
[[scenario]]
task = "t-loop"
[[scenario.step]]
do = [ { run = "ls" }, { run = "ls" }, { run = "touch after; sleep 300" } ]
[[scenario]]
task = "t-fails"
[[scenario.step]]
do = [ { run = "exit 1" }, { run = "touch after; sleep 300" } ]
[[scenario]]
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { write = "pushed.txt", text = "x\n" }, { done = true } ]
"#;
    let repository = Repository::new("policy-numbers", text, &["t-loop", "t-fails", "t-green"]);
    repository.set(&[(
        "[test]",
        "[limits]\nsame_call = 2\ntool_failures = 1\n[policy]\ngreen = [\"Bash(git push*)\"]\n[test]",
    )]);
    waits_for_a_person(&repository);
    blocked(&repository, "t-loop", "loop");
    blocked(&repository, "t-fails", "tool_failures");
    assert_eq!(repository.json("approvals --all"), json!([]), "a green call asks nobody");
    assert_eq!(repository.read("pushed.txt"), "x\n");
}

#[test]
fn the_settings_say_how_long_a_line_and_all_that_a_step_prints_may_be() {
    let text = r#"
[[scenario]]
task = "t-floods"
[[scenario.step]]
do = [ { say = "on" }, { write = "before.txt", text = "x\n" }, { flood = 5000 }, { write = "after.txt", text = "x\n" }, { done = true } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { long_line = 2000 }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;
    let repository = Repository::new("policy-output", text, &["t-floods", "t-long"]);
    repository.set(&[("[test]", "[limits]\nline_bytes = 1024\noutput_bytes = 50000\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("a line was longer than limits.line_bytes and was cut"), "{lines}");
    assert!(lines.contains("it printed more than limits.output_bytes"), "{lines}");
    repository.check(&["t-floods", "t-long"], "sh tests.sh");
    assert_eq!(repository.read("after.txt"), "", "it was ended in the middle");
}

#[test]
fn the_settings_say_what_an_agent_is_told_of_failing_tests_and_in_which_words() {
    let text = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "red.check", text = "seq 1000 3000; exit 1\n" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "red.check", text = "true\n" }, { write = "prompt.txt", text = "{prompt}" }, { done = true } ]
"#;
    let repository = Repository::new("policy-told", text, &["t-1"]);
    repository.write("own.md", "In my own words: {{output}}\n");
    repository.set(&[(
        "[test]",
        "[limits]\ntest_output_bytes = 1024\n[prompts]\ntest_failure = \"own.md\"\n[test]",
    )]);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let prompt = repository.read("prompt.txt");
    assert!(prompt.starts_with("In my own words: ") && prompt.contains("`sh tests.sh` failed"), "{prompt}");
    assert!((300..1500).contains(&prompt.len()), "{} bytes", prompt.len());
}

#[test]
fn the_settings_say_how_much_is_read_of_tickets_and_taken_of_texts() {
    let repository =
        Repository::new("policy-tickets", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1", "t-2"]);
    let text = repository.read(".tickets/t-2.md") + &"More words. ".repeat(50);
    repository.write(".tickets/t-2.md", &text);
    repository.set(&[("[test]", "[limits]\nticket_bytes = 256\ntext_bytes = 300\ndependencies = 1\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("t-2") && lines.contains("raise limits.ticket_bytes"), "{lines}");
    assert_eq!(repository.task("t-1")["status"], "DONE");
    assert_ne!(repository.adj("task show t-2").code, 0, "it was not read");
    let long = "x".repeat(301);
    let refused = repository.adj(&format!("task comment t-1 {long}"));
    assert!(refused.code == 2 && refused.stderr.contains("longer than 300 bytes"), "{}", refused.stderr);
    repository.ok("task add few --depends-on t-1");
    let many = repository.adj("task add many --depends-on t-1 --depends-on t-3");
    assert!(many.code == 2 && many.stderr.contains("more than 1 dependencies"), "{}", many.stderr);
}

/// One flooding test would fill the disk as well as a flooding agent does.
#[test]
fn tests_and_hooks_may_not_print_more_than_the_settings_say_either() {
    let text = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "red.check", text = "yes\n" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "red.check", text = "true\n" }, { write = "told.txt", text = "{prompt}" }, { done = true } ]
"#;
    let repository = Repository::new("policy-floods", text, &["t-1"]);
    repository.set(&[("[test]", "[limits]\noutput_bytes = 50000\n[hooks]\nstep.after = \"yes\"\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("hook step.after: `yes` printed more than limits.output_bytes"), "{lines}");
    let told = repository.read("told.txt");
    assert!(told.contains("`sh tests.sh` printed more than limits.output_bytes"), "{told}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// A red call waits for a person. Allowed it is done; denied it leaves nothing, and the agent goes on.
#[test]
fn a_red_call_waits_and_is_done_only_where_a_person_allows_it() {
    let step = r#"{ write = "red-{task}.txt", text = "red\n" }, { write = "{task}.txt", text = "on\n" }, { commit = "Do {task}" }, { done = true }"#;
    let repository = Repository::new("policy-red", &scenario(&[step]), &["t-yes", "t-no"]);
    repository.set(&[("[test]", "[policy]\nred = [\"Write(red-*)\"]\n[test]")]);
    let running = repository.start("run");
    repository.wait_task("t-yes", "NEEDS_APPROVAL");
    repository.wait_task("t-no", "NEEDS_APPROVAL");
    let open = repository.json("approvals");
    let of = |task: &str| {
        let found = open.as_array().expect("a list").iter().find(|approval| approval["task"] == task);
        found.expect("it asks")["id"].as_str().expect("an id").to_owned()
    };
    let name = repository.wait_worker("t-yes", "working");
    assert!(!repository.tree(&format!("{name}-t-yes/red-t-yes.txt")).exists(), "it is not done yet");
    assert!(repository.ok("approvals").contains("red-t-yes.txt"));
    repository.ok(&format!("approve {}", of("t-yes")));
    repository.ok(&format!("deny {} --note use-another-file", of("t-no")));
    running.wait_for("t-yes landed");
    running.wait_for("t-no landed");
    running.stop();
    repository.check(&["t-yes", "t-no"], "sh tests.sh");
    assert_eq!(
        (repository.read("red-t-yes.txt").as_str(), repository.read("red-t-no.txt").as_str()),
        ("red\n", "")
    );
    let decided = repository.json("approvals --all");
    let words: Vec<&str> = decided
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["decided"]["decision"].as_str())
        .collect();
    assert!(words.contains(&"approved") && words.contains(&"denied"), "{words:?}");
}

/// An agent that makes a call which the tests below make yellow.
const FETCH: &str = r#"{ ask = "Fetch", argument = "x" }, { write = "{task}.txt", text = "on\n" }, { commit = "Do {task}" }, { done = true }"#;

#[test]
fn a_yellow_call_of_a_specialist_asks_nobody() {
    let repository = Repository::new("policy-yellow", &scenario(&[FETCH]), &["t-1"]);
    repository.set(&[("[test]", "[policy]\nyellow = [\"Fetch\"]\n[test]")]);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.json("approvals --all"), json!([]));
}

#[test]
fn a_yellow_call_of_an_intern_asks_a_person() {
    let repository = Repository::new("policy-intern", &scenario(&[FETCH]), &["t-1"]);
    repository.set(&[
        ("[test]", "[policy]\nyellow = [\"Fetch\"]\n[test]"),
        ("adapter = \"script\"", "adapter = \"script\"\nrole = \"intern\""),
    ]);
    let running = repository.start("run");
    repository.wait_task("t-1", "NEEDS_APPROVAL");
    assert_eq!(question(&repository)["cause"], "yellow_action");
    answer(&repository, "approve ID");
    running.wait_for("t-1 landed");
    running.stop();
}

#[test]
fn a_tool_off_the_list_is_refused() {
    let step = r#"{ write = "forbidden.txt", text = "x\n" }, { run = "echo on > {task}.txt; git add -A; git commit -qm Do" }, { done = true }"#;
    let repository = Repository::new("policy-tools", &scenario(&[step]), &["t-1"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nallowed_tools = [\"Bash\"]")]);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    assert_eq!(repository.read("forbidden.txt"), "");
    assert!(repository.events("tool_audited") >= 3, "the refused call is in the audit");
    let export = repository.read(&repository.state("export.jsonl"));
    assert!(export.contains("AGENT_TOOL_NOT_ALLOWED"));
}

/// Nobody answers: the step ends, the worker is free, and the answer is in the prompt when it comes.
#[test]
fn an_unanswered_call_frees_the_worker_and_its_decision_goes_into_the_next_prompt() {
    let text = format!(
        "[[scenario]]\ntask = \"t-2\"\n[[scenario.step]]\ndo = [ {WRITE}, {DONE} ]\n{}",
        scenario(&[
            r#"{ write = "red.txt", text = "red\n" }, { done = true }"#,
            r#"{ write = "prompt.txt", text = "{prompt}\n" }, { commit = "Prompt" }, { done = true }"#,
        ])
    );
    let repository = Repository::new("policy-unanswered", &text, &["t-1", "t-2"]);
    repository.set(&[
        ("workers = 2", "workers = 1"),
        ("[test]", "[policy]\nred = [\"Write(red*)\"]\n[limits]\nquestion = \"1s\"\n[test]"),
    ]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("t-2 landed"), "the worker did something else meanwhile:\n{lines}");
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL");
    answer(&repository, "deny ID --note use-green");
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2"], "sh tests.sh");
    let prompt = repository.read("prompt.txt");
    assert!(
        prompt.contains("A person denied this") && prompt.contains("red.txt") && prompt.contains("use-green"),
        "{prompt}"
    );
    assert_eq!(repository.read("red.txt"), "");
}

/// What the gate cannot vouch for, a person must look at, whatever the policy.
#[test]
fn no_changes_and_no_steps_left_need_a_person() {
    let text = format!(
        "[[scenario]]\ntask = \"t-empty\"\n[[scenario.step]]\ndo = [ {{ done = true }} ]\n[[scenario.step]]\ndo = [ {{ done = true }} ]\n{}",
        scenario(&[&format!("{WRITE}, {ON}"), ON, ON, ON])
    );
    let repository = Repository::new("policy-person", &text, &["t-empty", "t-steps"]);
    repository.set(&[("workers = 2", "workers = 2\nmax_steps = 2")]);
    let lines = waits_for_a_person(&repository);
    let review = repository.ok("review t-empty");
    assert!(review.contains("NO       the diff holds a change"), "{review}");
    assert!(
        review.contains("NOT RUN  tests are green"),
        "nothing is said of tests that nobody ran: {review}"
    );
    assert!(lines.contains("t-empty: a person must look at it (it changes nothing)"), "{lines}");
    assert!(lines.contains("t-steps: a person must look at it (it took all its steps)"), "{lines}");
    assert_eq!(repository.events("empty_diff_seen"), 1, "one round says so first");
    for id in ["t-empty", "t-steps"] {
        repository.ok(&format!("merge {id}"));
    }
    repository.ok("run --until-idle");
    assert_eq!(repository.task("t-empty")["status"], "DONE");
    assert!(repository.read("t-steps.txt").starts_with("1\n1\n2\n"));
}

#[test]
fn a_repository_without_tests_needs_a_person() {
    let repository = Repository::new("policy-no-tests", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[("command = \"sh tests.sh\"", "# none")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("look at it (no tests were found)"), "{lines}");
    repository.ok("merge t-1");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "true");
}

#[test]
fn a_cap_holds_tasks_back_and_says_so() {
    let held = r#"{ run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { write = "{task}.txt", text = "x\n" }, { done = true }"#;
    let repository = Repository::new("policy-caps", &scenario(&[held]), &["t-1", "t-2"]);
    repository.set(&[("[test]", "[policy]\ncap_in_progress = 1\n[test]")]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    assert_eq!(repository.task("t-2")["status"], "INBOX");
    let why = repository.ok("why t-2");
    assert!(why.contains("limit of tasks at once: "), "{why}");
    repository.go("t-1");
    repository.wait_worker("t-2", "working");
    repository.go("t-2");
    running.wait_for("t-2 landed");
    running.stop();
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

/// Two workers of one agent, two tasks, and one of each is at work.
#[test]
fn an_agents_cap_leaves_its_other_workers_idle_and_says_so() {
    let held = r#"{ run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { write = "{task}.txt", text = "x\n" }, { done = true }"#;
    let repository = Repository::new("policy-agent-cap", &scenario(&[held]), &["t-1", "t-2"]);
    repository.set(&[("[test]", "[policy]\ncap_per_agent = 1\n[test]")]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    assert_eq!(repository.task("t-2")["status"], "INBOX");
    let why = repository.ok("why t-2");
    assert!(why.contains("limit of tasks at once: ") && why.contains("1 of 1 tasks in hand"), "{why}");
    let workers = repository.json("ps");
    let idle = workers.as_array().expect("workers").iter().filter(|worker| worker["status"] == "idle");
    assert_eq!((workers.as_array().map(Vec::len), idle.count()), (Some(2), 1), "{workers}");
    repository.go("t-1");
    repository.wait_worker("t-2", "working");
    repository.go("t-2");
    running.wait_for("t-2 landed");
    running.stop();
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

/// A service that is away is nobody's error: runs wait, its health is asked, and they go on where they were.
#[test]
fn an_outage_suspends_and_the_health_command_restores() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), DONE]);
    let repository = Repository::new("policy-outage", &text, &["t-1"]);
    repository.write(".gitignore", "up\n");
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"script\"\nservice = \"model\""),
        ("[test]", "[services.model]\nhealth = \"test -e up\"\n[limits]\nhealth_poll = \"1s\"\n[test]"),
    ]);
    let running = repository.start("run");
    running.wait_for("model is unavailable");
    let why = repository.ok("why t-1");
    assert!(why.contains("model"), "{why}");
    let run = wait("the suspended run", || {
        let task = repository.task("t-1");
        Some(task["run"].as_str()?.to_owned())
    });
    assert!(!run.is_empty());
    let worker = &repository.json("ps")[0];
    assert_eq!(worker["status"], "working", "{worker}");
    repository.write("up", "");
    running.wait_for("model is available again");
    running.wait_for("t-1 landed");
    let lines = running.stop();
    assert!(!lines.contains("failed:"), "no error is counted:\n{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// The live view counts to the reset that the service named, not to the next look at its health.
#[test]
fn the_live_view_says_when_a_service_with_a_known_reset_is_tried_again() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 429, resets_in = 3000 }}"), DONE]);
    let repository = Repository::new("policy-live", &text, &["t-1"]);
    let plain = repository.command("run");
    // A terminal of its own, which only such a view is drawn on.
    let mut script = std::process::Command::new("timeout");
    script.args([
        "60",
        "script",
        "-q",
        "-f",
        "-c",
        &format!("stty cols 200 rows 40; {} run", plain.get_program().to_string_lossy()),
        "seen.log",
    ]);
    script.current_dir(repository.dir()).stdin(std::process::Stdio::null());
    script.stdout(std::process::Stdio::null()).env("TERM", "xterm");
    let Ok(mut script) = script.spawn() else { return crate::not_tried("there is no `timeout`") };
    let shown = wait("when it is tried again", || {
        if script.try_wait().expect("it can be asked").is_some() {
            return Some(String::new());
        }
        let seen = repository.read("seen.log");
        seen.split("next try in ").nth(1).map(|rest| rest.chars().take(8).collect::<String>())
    });
    if shown.is_empty() {
        return crate::not_tried("there is no `script`");
    }
    repository.ok("stop");
    script.wait().expect("it ends");
    assert!(shown.starts_with("50 min") || shown.starts_with("49 min"), "{shown}");
}

/// A usage limit that says when it is reset is waited for, and nobody asks before.
#[test]
fn a_usage_limit_is_waited_for_until_it_is_reset() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 429, resets_in = 3 }}"), DONE]);
    let repository = Repository::new("policy-reset", &text, &["t-1"]);
    let begun = std::time::Instant::now();
    let lines = repository.ok("run --until-idle");
    assert!(begun.elapsed() >= std::time::Duration::from_secs(2), "it was waited for:\n{lines}");
    assert!(lines.contains("is unavailable") && lines.contains("is available again"), "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}
