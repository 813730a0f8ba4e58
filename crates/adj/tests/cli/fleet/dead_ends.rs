//! Whoever waits has a way out: budgets ask, stuck workers hold nobody up, what failed is tried again or begun anew, and a
//! fleet that waits for people says so and ends.

use super::Repository;
use super::policies::{DONE, WRITE, blocked, scenario, waits_for_a_person};
use serde_json::{Value, json};

fn ids(list: &Value, name: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[name].as_str().expect("a name").to_owned()).collect()
}

/// The one question that is open.
#[track_caller]
fn question(repository: &Repository) -> (String, Value) {
    let open = repository.json("approvals");
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    (open[0]["id"].as_str().expect("an id").to_owned(), open[0].clone())
}

/// A task between two workers is stopped by its budget like one in the hands of a worker: a person is asked, in numbers.
#[test]
fn a_task_that_comes_back_from_review_without_money_asks_with_numbers() {
    let text = scenario(&[&format!("{WRITE}, {DONE}"), &format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("ends-budget", &text, &["t-1"]);
    repository.set(&[
        ("review = \"auto\"", "review = \"human\""),
        ("[test]", "[budget]\ntask_usd = 1.0\nstep_usd = 0.5\n[test]"),
    ]);
    waits_for_a_person(&repository);
    repository.ok("review t-1 --changes more");
    let lines = waits_for_a_person(&repository);
    let (id, asked) = question(&repository);
    let expected = "The task budget is reached: t-1 has spent $0.75 of $1.00; a step sets $0.50 aside; approving adds $1.00, or another amount";
    assert_eq!(asked["question"], expected);
    assert_eq!(
        (&asked["cause"], &asked["scope"], &asked["task"]),
        (&json!("budget"), &json!("task"), &json!("t-1"))
    );
    assert!(lines.contains(&format!("adj approve {id}")), "the run says what to type:\n{lines}");
    assert!(!lines.contains("goes on from here"), "it does not: {lines}");
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL");
    let why = repository.json("why t-1").to_string();
    assert!(why.contains("has spent $0.75 of $1.00"), "{why}");
    let little = repository.adj(&format!("approve {id} --raise 0.1"));
    assert!(little.code == 2 && little.stderr.contains("it takes at least $0.25"), "{}", little.stderr);
    repository.ok("approve t-1");
    waits_for_a_person(&repository);
    repository.ok("review t-1 --approve");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

/// Nothing is under way and the day has no money left: one question for all, and a fleet that was to run until it is idle
/// ends. No is an answer too.
#[test]
fn a_day_without_money_asks_before_anything_is_begun() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("ends-day", &text, &["t-1", "t-2"]);
    repository.set(&[
        ("workers = 2", "workers = 1"),
        ("[test]", "[budget]\nday_usd = 1.0\nstep_usd = 0.5\n[test]"),
    ]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("t-1 landed"), "{lines}");
    let (id, asked) = question(&repository);
    assert_eq!((&asked["scope"], &asked["task"]), (&json!("day"), &Value::Null));
    let text = asked["question"].as_str().expect("a question");
    assert!(
        text.starts_with("The day budget is reached: all tasks of today have spent $0.75 of $1.00"),
        "{text}"
    );
    assert_eq!(repository.task("t-2")["status"], "INBOX");
    let document = repository.adj("run --until-idle --json");
    let document: Value = serde_json::from_str(&document.stdout).expect("a document");
    assert_eq!(document["forYou"][0]["command"], json!(format!("adj approve {id}")), "{document}");
    repository.ok(&format!("deny {id}"));
    let lines = waits_for_a_person(&repository);
    assert!(!lines.contains("goes on from here") && lines.contains("t-2 waits"), "{lines}");
    assert_eq!(repository.json("approvals"), json!([]), "it is not asked again on this day");
    let why = repository.json("why t-2").to_string();
    assert!(why.contains(&format!("{id} was denied")) && why.contains("tomorrow"), "{why}");
}

#[test]
fn an_agents_budget_is_one_question_for_all_and_approving_it_goes_on() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("ends-agent", &text, &["t-1", "t-2", "t-3"]);
    repository.set(&[
        ("workers = 2", "workers = 1"),
        ("adapter = \"script\"", "adapter = \"script\"\nbudget_usd = 1.0"),
    ]);
    waits_for_a_person(&repository);
    let (id, asked) = question(&repository);
    assert_eq!(
        (&asked["scope"], &asked["task"], &asked["agent"]),
        (&json!("agent"), &Value::Null, &json!("player"))
    );
    repository.ok(&format!("approve {id} --raise 5"));
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2", "t-3"], "sh tests.sh");
}

/// Small budgets are said by `config check`, and work begins under them.
#[test]
fn work_begins_under_a_budget_that_is_smaller_than_a_step_and_the_settings_warn() {
    let text = scenario(&[&format!("{WRITE}, {{ say = \"more\" }}"), DONE]);
    let repository = Repository::new("ends-small", &text, &["t-1"]);
    repository.set(&[("[test]", "[budget]\ntask_usd = 0.3\n[test]")]);
    let checked = repository.ok("config check");
    assert!(checked.contains("`budget.task_usd` is $0.30, less than the $0.50"), "{checked}");
    let doctor = repository.adj("doctor").stdout;
    assert!(doctor.contains("`budget.task_usd` is $0.30"), "{doctor}");
    waits_for_a_person(&repository);
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL", "it began, and asks");
    repository.ok("approve t-1 --raise 9");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

/// Red tests that nobody mends: a worker is stuck at once.
const RED: &str =
    r#"{ write = "{task}.check", text = "test -e mended.txt\n" }, { commit = "Do {task}" }, { done = true }"#;

/// A second try on the same branch.
const AGAIN: &str = r#"{ append = "{task}.txt", text = "again\n" }, { commit = "Again" }, { done = true }"#;

#[test]
fn a_stuck_worker_takes_no_place_and_the_others_go_on() {
    let text = format!(
        "[[scenario]]\ntask = \"b-1\"\n[[scenario.step]]\ndo = [ {RED} ]\n{}",
        scenario(&[&format!("{WRITE}, {DONE}")])
    );
    let repository = Repository::new("ends-stuck", &text, &["b-1", "g-1", "g-2"]);
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("2 of 3 tasks DONE"), "{lines}");
    assert!(!lines.contains("goes on from here"), "nothing is left that would: {lines}");
    blocked(&repository, "b-1", "stuck");
    let workers = repository.json("ps");
    assert_eq!(ids(&workers, "name"), ["A", "B"]);
    assert_eq!(ids(&workers, "status"), ["stuck", "idle"]);
    // Back at work, or freed, it is one of as many as the settings say.
    repository.ok("kill b-1");
    repository.adj("run --until-idle");
    assert_eq!(repository.json("ps").as_array().map(Vec::len), Some(1));
}

#[test]
fn workers_that_a_person_made_stay_and_take_no_place_of_another_agents() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("ends-spawned", &text, &["t-1"]);
    repository.set(&[(
        "[agents.player]",
        "[agents.other]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\n[agents.player]",
    )]);
    repository.ok("spawn 5");
    repository.ok("spawn Zoe --agent other");
    repository.ok("run --until-idle");
    assert_eq!(ids(&repository.json("ps"), "name"), ["A", "B", "C", "D", "E", "Zoe"]);
    repository.ok("clean --yes");
    repository.ok("spawn Zoe --agent other");
    repository.ok("run --until-idle");
    assert_eq!(
        ids(&repository.json("ps"), "name"),
        ["A", "B", "Zoe"],
        "the fleet is full, and Zoe beside it"
    );
    repository.set(&[("workers = 2", "workers = 1")]);
    repository.ok("run --until-idle");
    assert_eq!(ids(&repository.json("ps"), "name"), ["A", "Zoe"], "the fleet's own retire");
    repository.ok("task add ForZoe --id z-1");
    repository.ok("assign Zoe z-1");
    repository.ok("run --until-idle");
    assert_eq!(repository.task("z-1")["assigneeIds"], json!(["other"]));
    assert_eq!(repository.task("z-1")["status"], "DONE");
}

#[test]
fn tickets_are_taken_by_priority_and_then_by_the_day_of_their_making() {
    let repository = Repository::new("ends-age", &scenario(&[&format!("{WRITE}, {DONE}")]), &[]);
    for (id, created, priority) in [
        ("aa-9", "2026-01-01T00:00:00Z", 2),
        ("mm-5", "2023-01-01", 2),
        ("zz-1", "2020-05-05T10:00:00Z", 2),
        ("pp-1", "2026-02-02T00:00:00Z", 1),
    ] {
        let text = format!(
            "---\nid: {id}\nstatus: open\ndeps: []\nlinks: []\ncreated: {created}\ntype: task\npriority: {priority}\n---\n# Do {id}\n"
        );
        repository.write(&format!(".tickets/{id}.md"), &text);
    }
    repository.commit("Tickets");
    repository.set(&[("workers = 2", "workers = 1")]);
    let lines = repository.ok("run --until-idle");
    let taken: Vec<&str> =
        lines.lines().filter_map(|line| Some(line.split_once("A takes ")?.1.split_once(':')?.0)).collect();
    assert_eq!(taken, ["pp-1", "zz-1", "mm-5", "aa-9"], "{lines}");
    assert_eq!(repository.task("zz-1")["createdAt"], "2020-05-05T10:00:00.000Z");
}

#[test]
fn ids_of_new_tasks_count_up_and_pass_by_those_that_are_taken() {
    let repository = Repository::new("ends-ids", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-3"]);
    let add = || repository.ok("task add Something --json");
    let id = |text: String| {
        serde_json::from_str::<Value>(&text).expect("a task")["id"].as_str().map(str::to_owned)
    };
    assert_eq!((id(add()).as_deref(), id(add()).as_deref()), (Some("t-4"), Some("t-5")), "t-3 is a ticket");
    repository.ok("run --until-idle");
    repository.ok("task add Named --id x-1");
    assert_eq!((id(add()).as_deref(), id(add()).as_deref()), (Some("t-6"), Some("t-7")));
}

/// What was mended on main reaches a task only from its beginning: `retry` goes on where it was, `restart` does not.
#[test]
fn a_task_that_is_started_over_begins_on_the_main_of_now_and_its_work_is_saved() {
    let repository = Repository::new("ends-restart", &scenario(&[RED, AGAIN]), &["t-1", "t-2"]);
    repository.set(&[("workers = 2", "workers = 2\nmax_fix_rounds = 0")]);
    waits_for_a_person(&repository);
    blocked(&repository, "t-1", "stuck");
    repository.write("mended.txt", "mended\n");
    repository.commit("Mend main");
    let tip = repository.git("rev-parse refs/adjutant/tasks/t-1");
    let tried = repository.ok("retry --all");
    assert!(tried.contains("t-1  IN_PROGRESS") && tried.contains("t-2  IN_PROGRESS"), "{tried}");
    let lines = waits_for_a_person(&repository);
    assert_eq!(repository.timers("backoff"), Vec::<i64>::new(), "nothing is waited for");
    assert!(
        !lines.contains("step on") && !lines.contains("tried again by a person"),
        "no step failed: {lines}"
    );
    blocked(&repository, "t-1", "stuck");
    let why = repository.ok("why t-1");
    assert!(why.contains("`adj retry t-1`") && why.contains("`adj task restart t-1`"), "{why}");
    repository.ok("task restart t-1 --from main --note mended");
    assert_eq!(repository.task("t-1")["status"], "ASSIGNED");
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("t-1 landed"), "{lines}");
    assert_eq!(repository.task("t-1")["status"], "DONE");
    let saved = repository.json("salvage list");
    assert_eq!(saved[0]["task"], "t-1", "{saved}");
    assert!(saved.to_string().contains("t-1.check"), "its files are named: {saved}");
    let reference = saved[0]["ref"].as_str().expect("a reference").to_owned();
    assert!(
        repository.git_says(&format!("merge-base --is-ancestor {tip} {reference}")),
        "its commits are kept"
    );
    assert!(!repository.git_says(&format!("merge-base --is-ancestor {tip} main")), "none of it landed");
    let refused = repository.refused("task restart t-1");
    assert!(refused.contains("is DONE, for good") && refused.contains("--reopens t-1"), "{refused}");
    repository.ok("task restart t-2");
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

#[test]
fn a_task_in_the_middle_of_a_step_is_started_over_while_the_fleet_runs() {
    let wait = r#"{ run = "test -e again.txt || sleep 300" }"#;
    let text = scenario(&[&format!("{WRITE}, {wait}, {DONE}")]);
    let repository = Repository::new("ends-restart-live", &text, &["t-1"]);
    let running = repository.start("run");
    let worker = repository.wait_worker("t-1", "working");
    repository.write("again.txt", "x\n");
    repository.commit("Again");
    let moved = repository.ok(&format!("task restart {worker}"));
    assert!(moved.contains("t-1"), "{moved}");
    running.wait_for("t-1 is restarted from main");
    running.wait_for("t-1 landed");
    let lines = running.stop();
    assert!(!lines.contains("BLOCKED"), "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn the_turn_limit_of_the_project_holds_where_the_agent_has_none() {
    let calls =
        ["a", "b", "c", "d"].map(|name| format!(r#"{{ write = "{name}.txt", text = "x\n" }}"#)).join(", ");
    let text = scenario(&[&format!("{calls}, {DONE}")]);
    let repository = Repository::new("ends-turns", &text, &["t-1"]);
    repository.set(&[("[test]", "[project]\nmax_turns = 3\n[test]")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("has taken its 3 turns and is not complete"), "{lines}");
}

/// Nothing is put in the place of a person's plan without a word, and where a plan came from is recorded.
#[test]
fn a_plan_that_is_too_short_is_refused_or_completed_with_a_word() {
    let repository = Repository::new("ends-plan", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    let ticket = repository.read(".tickets/t-1.md") + "\n## Plan\n\n- Look\n- Leap\n";
    repository.write(".tickets/t-1.md", &ticket);
    repository.commit("Plan");
    let refused = repository.adj("task add Short --plan one");
    assert!(refused.stderr.contains("a plan has 3 to 6 steps; this one has 1"), "{}", refused.stderr);
    assert_ne!(refused.code, 0);
    repository.ok("task add Own --id own --plan one --plan two --plan three");
    repository.ok("task add None --id none");
    repository.ok("run --until-idle");
    let plan = |id: &str| repository.task(id)["workPlan"].clone();
    assert_eq!(
        (&plan("own")["source"], &plan("own")["bullets"]),
        (&json!("person"), &json!(["one", "two", "three"]))
    );
    assert_eq!(plan("none")["source"], "default");
    assert_eq!(plan("t-1")["source"], "ticket");
    assert_eq!(plan("t-1")["bullets"], json!(["Look", "Leap", "Run the tests and commit"]));
    let shown = repository.task("t-1").to_string();
    assert!(
        shown.contains("the plan has 2 of 3 to 6 steps; it was completed with the default ones"),
        "{shown}"
    );
}

#[test]
fn the_same_two_calls_in_turn_are_a_loop_and_the_number_is_the_settings() {
    let text = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = "ls" }, { run = "pwd" }, { run = "ls" }, { run = "pwd" }, { run = "touch after; sleep 300" }, { done = true } ]
"#;
    let repository = Repository::new("ends-loop", text, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nsame_call = 2\n[test]")]);
    waits_for_a_person(&repository);
    blocked(&repository, "t-1", "loop");
    let task = repository.task("t-1").to_string();
    assert!(task.contains("the agent made the same 2 calls 2 times over"), "{task}");
}

/// Nobody is there to answer: the fleet does not hold a process for ten minutes. The answer goes into the next prompt.
#[test]
fn a_fleet_that_runs_until_it_is_idle_does_not_wait_for_an_answer() {
    let text = r#"
[[scenario]]
[[scenario.step]]
do = [ { ask = "Bash", argument = "git push origin main" }, { done = true } ]
[[scenario.step]]
do = [ { write = "told.txt", text = "{prompt}" }, { commit = "Told" }, { done = true } ]
"#;
    let repository = Repository::new("ends-question", text, &["t-1"]);
    waits_for_a_person(&repository);
    let ended = repository.events("question_dropped");
    assert_eq!(
        (ended, repository.timers("question").len()),
        (1, 1),
        "the call was left before its time was over"
    );
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL");
    repository.ok("approve t-1 --note only-this-once");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let told = repository.read("told.txt");
    assert!(told.contains("A person allowed this") && told.contains("only-this-once"), "{told}");
}

/// No waiting and no other worker helps: one line says it, nothing else is begun, and a person tries again.
#[test]
fn credentials_that_are_refused_stop_the_fleet_once_and_are_no_failed_steps() {
    let text = format!(
        "[[scenario]]\ntask = \"t-1\"\n[[scenario.step]]\ndo = [ {{ outage = 401 }} ]\n[[scenario.step]]\ndo = [ {WRITE}, {DONE} ]\n{}",
        scenario(&[&format!("{WRITE}, {DONE}")])
    );
    let repository = Repository::new("ends-key", &text, &["t-1", "t-2", "t-3"]);
    repository.set(&[("workers = 2", "workers = 1")]);
    let lines = waits_for_a_person(&repository);
    assert_eq!(lines.matches("✗ the model API does not accept the credentials").count(), 1, "{lines}");
    assert!(!lines.contains("failed:"), "{lines}");
    assert!(lines.contains("adj retry --all"), "{lines}");
    assert_eq!(repository.task("t-2")["status"], "INBOX");
    let why = repository.json("why t-2").to_string();
    assert!(why.contains("does not accept the credentials") && why.contains("401"), "{why}");
    repository.ok("retry --all");
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2", "t-3"], "sh tests.sh");
}

/// Whoever starts the fleet may have set the key since: it is tried without a wait and without another command.
#[test]
fn a_fleet_that_is_started_again_tries_refused_credentials_at_once() {
    let refused = "{ outage = 401 }";
    let text = scenario(&[refused, refused, &format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("ends-key-set", &text, &["t-1"]);
    waits_for_a_person(&repository);
    let again = waits_for_a_person(&repository);
    assert!(again.contains("the model API did not accept the credentials; trying them again"), "{again}");
    assert_eq!(again.matches("✗ the model API does not accept the credentials").count(), 1, "{again}");
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

/// There is nothing to ask the service with: one run tries, and nothing is said to be back before it has come through.
#[test]
fn an_outage_that_goes_on_is_told_once_and_tried_by_one_run() {
    let text =
        scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), "{ outage = 529 }", "{ outage = 529 }", DONE]);
    let repository = Repository::new("ends-outage", &text, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nhealth_poll = \"1s\"\n[test]")]);
    let running = repository.start("run");
    running.wait_for("is unavailable");
    let why = repository.json("why t-1").to_string();
    assert!(why.contains("529") && why.contains("is unavailable"), "{why}");
    running.wait_for("t-1 landed");
    let lines = running.stop();
    assert_eq!(lines.matches("the model API is unavailable").count(), 1, "{lines}");
    assert_eq!(lines.matches("is available again").count(), 1, "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn what_is_canceled_is_part_of_the_story() {
    let text = scenario(&[&format!("{WRITE}, {{ run = \"sleep 300\" }}, {DONE}")]);
    let repository = Repository::new("ends-canceled", &text, &["t-1"]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    repository.ok("task cancel t-1");
    running.wait_for("t-1 is canceled: Do t-1");
    running.stop();
}

/// What cannot go on is named with what it waits for, and not counted among what the next run goes on with.
#[test]
fn a_task_behind_a_blocked_one_is_named_with_what_it_waits_for() {
    let repository = Repository::new("ends-behind", &scenario(&[RED]), &["t-1"]);
    repository.ticket("t-2", &["t-1"]);
    repository.commit("Another");
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("t-2 waits for t-1, which is BLOCKED"), "{lines}");
    assert!(!lines.contains("goes on from here"), "{lines}");
}
