//! Agents that speak to the fleet by `adj mcp`: plan, questions, approvals, and the word that they are done.

use super::background::wait;
use super::{Repository, SETTINGS};
use serde_json::{Value, json};

/// `sh call.sh TOOL ARGUMENTS`: one call of a tool, whose answer it prints. The input stays open until there is one.
pub(super) fn script() -> String {
    let params = json!({ "name": "NAME", "arguments": "ARGUMENTS", "_meta": crate::mcp::meta() });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let message = message.replace("\"NAME\"", "\"'$1'\"").replace("\"ARGUMENTS\"", "'\"$2\"'");
    format!(
        "pipe=$TMPDIR/pipe.$$ out=$TMPDIR/out.$$\nmkfifo $pipe\n{adj} mcp < $pipe > $out &\nexec 3> $pipe\n\
         echo '{message}' >&3\nuntil [ -s $out ]; do sleep 0.05; done\nexec 3>&-\nwait\ncat $out\nrm $pipe\n",
        adj = env!("CARGO_BIN_EXE_adj")
    )
}

fn repository(name: &str, scenario: &str, tickets: &[&str]) -> Repository {
    let repository = Repository::new(name, scenario, tickets);
    repository.write("call.sh", &script());
    repository.commit("Calls");
    repository
}

/// The answer that an agent wrote to a file of its branch or of main.
fn told(repository: &Repository, at: &str) -> (bool, String) {
    let answer: Value = serde_json::from_str(&repository.git(&format!("show {at}"))).expect("an answer");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (answer["result"]["isError"] == true, text.to_owned())
}

#[test]
fn a_completion_that_is_claimed_by_the_tool_ends_a_step_as_done_does_and_its_summary_is_shown() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { write = "{task}.txt", text = "x\n" },
  { commit = "Do {task}" },
  { run = 'sh call.sh submit_for_review "{\"summary\":\"It writes a file.\"}" > "$TMPDIR/said"' },
  { say = "That is all." },
]
"#;
    let repository = repository("mcp-done", scenario, &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    assert_eq!(repository.adj("run --until-idle").code, 1, "it waits for a review");
    let task = repository.task("t-1");
    assert_eq!(task["status"], "REVIEW", "{task}");
    let content = task["submission"]["deliverable"]["content"].as_str().expect("a deliverable");
    assert!(content.starts_with("branch ") && content.contains("It writes a file."), "{content}");
    let shown = repository.ok("review t-1");
    assert!(shown.contains("\n  It writes a file.\n") && !shown.contains("\n  branch "), "{shown}");
    assert_eq!((repository.events("completion_claimed"), repository.events("start_step")), (1, 1));
}

/// Every step but the last says nothing; what the first claimed must not end the second.
#[test]
fn a_claim_holds_for_its_own_step_only() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'sh call.sh task_done "{}" > "$TMPDIR/said"' },
  { say = "Done, I think." },
]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { say = "More to come." } ]
[[scenario.step]]
do = [ { write = "more.txt", text = "x\n" }, { commit = "More" }, { done = true } ]
"#;
    let repository = repository("mcp-claim", scenario, &["t-1"]);
    repository.ok("run --until-idle");
    // The gate found nothing of the first, and was not asked after the second.
    assert_eq!((repository.events("start_step"), repository.events("run_gate")), (3, 2));
    assert_eq!(repository.read("more.txt"), "x\n");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn a_question_waits_for_a_person_and_the_call_returns_the_answer() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'sh call.sh ask "{\"question\":\"Tabs or spaces?\"}" > answer.json' },
  { commit = "Do {task}" },
  { done = true },
]
"#;
    let repository = repository("mcp-ask", scenario, &["t-1"]);
    let running = repository.start("run");
    let waiting = wait("a question", || {
        let list = repository.json("waiting");
        list.as_array()?.iter().find(|item| item["kind"] == "question").cloned()
    });
    let id = waiting["request"].as_str().expect("it has an id").to_owned();
    assert_eq!((&waiting["task"], &waiting["blocks"]), (&json!("t-1"), &json!(["t-1"])), "{waiting}");
    assert!(waiting["text"].as_str().is_some_and(|text| text.contains("Tabs or spaces?")), "{waiting}");
    assert_eq!(repository.task("t-1")["status"], "IN_PROGRESS", "a question moves nothing");
    assert!(repository.ok("why t-1").contains("Tabs or spaces?"));
    running.wait_for("Tabs or spaces?");
    let answer = |text: &str| -> super::Ran {
        let mut command = repository.command("answer");
        command.args([&id, text]).output().expect("adj runs").into()
    };
    assert_eq!(answer("Spaces, four of them.").code, 0);
    let again = answer("Tabs.");
    assert_eq!(again.code, 3, "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("answered already, by human:tester"), "{}", again.stderr);
    running.wait_for("t-1 landed");
    running.stop();
    assert_eq!(told(&repository, "main:answer.json"), (false, "Spaces, four of them.".to_owned()));
    assert_eq!(repository.events("answer_told"), 1, "the next prompt would not tell it once more");
    assert_eq!(repository.json("waiting"), json!([]));
}

/// The call is given up after a second; the fleet is killed while the question is open. Nothing of it is lost.
#[test]
fn an_answer_that_nobody_waits_for_comes_with_the_next_step_also_after_a_restart() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'sh call.sh ask "{\"question\":\"Which way?\"}" > answer.json' },
  { commit = "Ask" },
  { say = "I wait." },
]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = repository("mcp-late", scenario, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nquestion = \"1s\"\n[test]")]);
    let running = repository.start("run");
    wait("the first step's end", || {
        (repository.events("request_answered") == 0
            && repository.tree("A-t-1/answer.json").exists()
            && repository.adj("peek A").stdout.contains("I wait."))
        .then_some(())
    });
    let item = repository.json("waiting")[0].clone();
    assert_eq!(
        (&item["kind"], repository.events("start_step")),
        (&json!("question"), 1),
        "no step begins before it"
    );
    running.kill();
    let id = item["request"].as_str().expect("it has an id");
    repository.ok(&format!("answer {id} left"));
    repository.ok("run --until-idle");
    let (refused, text) = told(&repository, "main:answer.json");
    assert!(!refused && text.contains("The answer will reach you in your next step"), "{text}");
    let log = repository.state("export.jsonl");
    repository.events("start_step");
    let steps = repository.read(&log);
    let told: Vec<&str> =
        steps.lines().filter(|line| line.contains("start_step") && line.contains("Which way?")).collect();
    assert!(told.len() == 1 && told[0].contains("The answer of human:tester: left"), "{told:?}");
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn an_action_that_an_agent_asks_about_waits_for_a_person_and_the_call_is_told_the_decision() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'sh call.sh request_approval "{\"tool\":\"Bash\",\"input\":{\"command\":\"deploy\"}}" > first.json' },
  { run = 'sh call.sh request_approval "{\"tool\":\"Bash\",\"input\":{\"command\":\"drop\"}}" > second.json' },
  { commit = "Do {task}" },
  { done = true },
]
"#;
    let repository = repository("mcp-approval", scenario, &["t-1"]);
    let running = repository.start("run");
    for (command, line) in [("deploy", "approve {} --note fine"), ("drop", "deny {} --note never")] {
        repository.wait_task("t-1", "NEEDS_APPROVAL");
        let asked = repository.json("approvals")[0].clone();
        assert_eq!(
            (&asked["cause"], &asked["call"]["input"]["command"]),
            (&json!("red_action"), &json!(command))
        );
        repository.ok(&line.replace("{}", asked["id"].as_str().expect("it has an id")));
    }
    running.wait_for("t-1 landed");
    running.stop();
    assert_eq!(told(&repository, "main:first.json"), (false, "Approved: fine".to_owned()));
    let (_, text) = told(&repository, "main:second.json");
    assert!(text.starts_with("Not approved (denied): never."), "{text}");
    // What the program itself asked is answered by its reader; what the agent asked is not.
    assert_eq!((repository.events("start_step"), repository.events("answer_call")), (1, 3));
    repository.check(&["t-1"], "sh tests.sh");
}

const PLANS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'sh call.sh submit_plan "{\"steps\":[\"Look\",\" Write \",\"Test\"]}" > plan.json' },
  { run = 'sh call.sh report_progress "{\"text\":\"Half of it.\"}" > /dev/null' },
  { commit = "Do {task}" },
  { done = true },
]
"#;

#[test]
fn the_plan_is_the_agents_where_the_settings_leave_it_to_agents() {
    for (plan, source) in [("agent", "agent"), ("ticket", "default")] {
        let repository = repository(&format!("mcp-plan-{plan}"), PLANS, &["t-1"]);
        repository.write(
            "adjutant.toml",
            &SETTINGS.replace("workers = 2", &format!("workers = 2\nplan = \"{plan}\"")),
        );
        repository.commit("Settings");
        let asks = || repository.ok("prompt show init --task t-1").contains("submit a plan of your own");
        assert_eq!(asks(), plan == "agent");
        repository.ok("run --until-idle");
        let task = repository.task("t-1");
        assert_eq!(task["workPlan"]["source"], source, "{task}");
        let (refused, text) = told(&repository, "main:plan.json");
        let comments = task["comments"].as_array().expect("comments").clone();
        let by_agent = |kind: &str| {
            let of = |comment: &&Value| comment["kind"] == kind && comment["by"] == "agent:player";
            comments.iter().find(of).map(|comment| comment["text"].clone())
        };
        assert_eq!(by_agent("comment"), Some(json!("Half of it.")));
        if plan == "agent" {
            assert_eq!(task["workPlan"]["bullets"], json!(["Look", "Write", "Test"]));
            assert_eq!(by_agent("plan"), Some(json!("- Look\n- Write\n- Test")));
            assert!(!refused && !asks(), "{text}: once there is one, it is not asked for again");
        } else {
            assert!(refused && text.contains("does not come from their agents"), "{text}");
            assert_eq!(by_agent("plan"), None);
        }
        repository.check(&["t-1"], "sh tests.sh");
    }
}
