//! Codex in a fleet, as a user would run it. The program is replayed: it speaks the language of the real one over real
//! pipes, under a real keeper, and makes the calls that are allowed; what it says comes from a file.

use super::Repository;
use super::background::wait;
use serde_json::{Value, json};

const TESTS: &str = "sh tests.sh";
const COMMIT: &str = "git add -A && git -c user.name=a -c user.email=a@b.invalid commit -q -m work";

/// A repository with one ticket, whose agent is a codex that replays these steps. `more` goes to the end of the settings.
fn project(name: &str, more: &str, replies: &Value) -> Repository {
    let repository = Repository::new(&format!("codex-{name}"), "", &["c-1"]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let settings = format!(
        "[fleet]\nagent = \"coder\"\nworkers = 1\nreview = \"auto\"\n\n[test]\ncommand = \"{TESTS}\"\n\n\
         [agents.coder]\nadapter = \"codex\"\ncommand = [{adj:?}, \"internal\", \"replay-codex\", {file:?}]\n\n{more}\n"
    );
    repository.write("adjutant.toml", &settings);
    repository.write("replies.json", &replies.to_string());
    repository.commit("An agent");
    repository
}

fn write(path: &str) -> Value {
    json!({ "name": "Write", "input": { "file_path": path, "content": "true\n" } })
}

fn bash(command: &str) -> Value {
    json!({ "name": "Bash", "input": { "command": command } })
}

/// A reply that does the whole work, and the one that says so.
fn work() -> Vec<Value> {
    vec![json!({ "tools": [write("work.check"), bash(COMMIT)] }), json!({ "text": "All is there.\nDONE" })]
}

/// For each start: whether a conversation was begun or taken up, and which, numbered in the order of their appearance.
fn conversations(repository: &Repository) -> String {
    let mut known: Vec<Value> = Vec::new();
    let mut told = Vec::new();
    for line in repository.read(&repository.state("private/c-1/codex-starts.jsonl")).lines() {
        let start: Value = serde_json::from_str(line).expect("a start");
        if start["known"] == false {
            told.push("finds none".to_owned());
            continue;
        }
        if !known.contains(&start["thread"]) {
            known.push(start["thread"].clone());
        }
        let number = known.iter().position(|thread| *thread == start["thread"]).expect("it is known") + 1;
        told.push(format!(
            "{} {number}",
            if start["method"] == "thread/start" { "begins" } else { "goes on in" }
        ));
    }
    told.join(", ")
}

#[test]
fn a_ticket_lands_and_the_second_step_goes_on_in_the_conversation_of_the_first() {
    let replies =
        json!([[{ "tools": [write("work.check"), bash(COMMIT)] }, { "text": "One." }], [{ "text": "DONE" }]]);
    let repository = project("lands", "[budget]\nstep_usd = 0.25\n", &replies);
    repository.lands();
    assert_eq!(conversations(&repository), "begins 1, goes on in 1");
    let total = &repository.json("cost")["total"];
    assert_eq!((&total["unpricedSteps"], &total["usd"]), (&json!(2), &json!(0.0)), "its price is not known");
    // Of the conversation's total each step has used its own part.
    assert_eq!((&total["inputTokens"], &total["outputTokens"]), (&json!(3000), &json!(150)));
}

#[test]
fn a_person_decides_about_a_call_of_codex_while_it_waits() {
    let replies = json!([[
        { "tools": [bash("echo true > denied.check")] },
        { "tools": [write("allowed.check"), bash(COMMIT)] },
        { "text": "DONE" },
    ]]);
    let red = "[policy]\nred = [\"Bash(echo true > *)\", \"Write(allowed.check)\"]\n";
    let repository = project("asks", red, &replies);
    let fleet = repository.start("run");
    let (first, cause) = wait("a question", || repository.approval());
    assert_eq!(cause, "red_action");
    repository.ok(&format!("deny {first} --note not-that"));
    let (second, _) = wait("another question", || repository.approval().filter(|(id, _)| *id != first));
    assert!(!repository.tree("A-c-1/denied.check").exists());
    assert!(!repository.tree("A-c-1/allowed.check").exists(), "it waits");
    repository.ok(&format!("approve {second}"));
    fleet.wait_for("c-1 landed");
    fleet.stop();
    repository.check(&["c-1"], TESTS);
    assert!(repository.in_main("allowed.check") && !repository.in_main("denied.check"));
    assert_eq!(conversations(&repository), "begins 1", "one process waited for both");
}

/// One change of two files, of which one waits for a person: none is written before.
#[test]
fn a_change_of_several_files_waits_for_the_one_that_is_not_allowed() {
    let files = json!({ "free.check": "true\n", "asked.check": "true\n" });
    let replies = json!([[
        { "tools": [{ "name": "Patch", "input": { "files": files } }, bash(COMMIT)] },
        { "text": "DONE" },
    ]]);
    let repository = project("files", "[policy]\nred = [\"Write(asked.check)\"]\n", &replies);
    let fleet = repository.start("run");
    let (question, _) = wait("a question", || repository.approval());
    assert!(!repository.tree("A-c-1/free.check").exists(), "it waits too");
    repository.ok(&format!("approve {question}"));
    fleet.wait_for("c-1 landed");
    fleet.stop();
    repository.check(&["c-1"], TESTS);
    assert!(repository.in_main("free.check") && repository.in_main("asked.check"));
}

/// The server is killed while a call waits; the program is not, and gets the answer from the next server.
#[test]
fn a_call_of_codex_that_waits_is_answered_after_the_server_was_killed() {
    let replies = json!([[{ "tools": [write("asked.check"), bash(COMMIT)] }, { "text": "One." }], [{ "text": "DONE" }]]);
    let repository = project("killed", "[policy]\nred = [\"Write(asked.check)\"]\n", &replies);
    let fleet = repository.start("run");
    wait("a question", || repository.approval());
    fleet.kill();
    let fleet = repository.start("run");
    let (question, _) = wait("the same question", || repository.approval());
    repository.ok(&format!("approve {question}"));
    fleet.wait_for("c-1 landed");
    fleet.stop();
    repository.check(&["c-1"], TESTS);
    assert!(repository.in_main("asked.check"));
    assert!(
        conversations(&repository).starts_with("begins 1, goes on in 1"),
        "{}",
        conversations(&repository)
    );
}

#[test]
fn a_fleet_that_stops_interrupts_codex_and_goes_on_in_its_conversation() {
    let repository = project("stops", "", &json!([[{ "text": "One." }], [{ "hang": true }], work()]));
    let fleet = repository.begin("run");
    wait("a second step", || (conversations(&repository) == "begins 1, goes on in 1").then_some(()));
    repository.ok("stop");
    fleet.done();
    assert_eq!(repository.strays(), Vec::<String>::new());
    repository.lands();
    assert_eq!(conversations(&repository), "begins 1, goes on in 1, goes on in 1");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
}

#[test]
fn wrong_credentials_of_codex_are_told_at_the_first_try_with_what_to_set() {
    let repository = project("401", "", &json!([[{ "status": 401 }], work()]));
    let told = repository.adj("run --until-idle").stdout;
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "it is no failed step");
    assert!(told.contains("does not accept the credentials") && told.contains("OPENAI_API_KEY"), "{told}");
    repository.ok("retry --all");
    repository.lands();
    assert_eq!(conversations(&repository), "begins 1, goes on in 1");
}

#[test]
fn a_usage_limit_of_codex_suspends_the_run_until_it_is_reset_and_an_outage_costs_no_error() {
    let replies = json!([[{ "resets_in": 2 }], [{ "status": 503 }], [{ "network": true }], work()]);
    let repository = project("away", "[limits]\nhealth_poll = \"1s\"\n", &replies);
    repository.lands();
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "no error is counted");
    assert_eq!(repository.runs_to("suspended"), 3);
    let waits =
        repository.log().into_iter().any(|record| record["data"]["what"]["timer"]["timer"] == "reset");
    assert!(waits, "it waits for the reset");
}

#[test]
fn a_conversation_that_codex_has_lost_is_begun_anew_once() {
    let repository = project("lost", "", &json!([[{ "text": "One.", "forget": true }], work()]));
    repository.lands();
    assert_eq!(conversations(&repository), "begins 1, finds none, begins 2");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
}

/// Whatever the reason is that it did not ask, it does not go on.
#[test]
fn a_codex_that_acts_unasked_is_stopped() {
    let replies = json!([[{ "tools": [bash("touch first")], "unasked": true }, { "hang": true }], work()]);
    let repository = project("unasked", "", &replies);
    repository.lands();
    let errors = repository.step_errors();
    assert!(matches!(&errors[..], [one] if one.contains("does not ask before it acts")), "{errors:?}");
}

/// What an agent left in the home of its program would be taken up by the next start; the replayed one refuses that.
#[test]
fn what_an_agent_leaves_for_the_next_start_of_codex_is_gone() {
    let plant = "mkdir -p \"$CODEX_HOME/rules\" && echo 'prefix_rule(pattern=[\"git\"], decision=\"allow\")' > \"$CODEX_HOME/rules/x.rules\"";
    let replies = json!([[{ "tools": [bash(plant)] }, { "text": "One." }], work()]);
    let repository = project("plants", "", &replies);
    repository.lands();
    assert_eq!(conversations(&repository), "begins 1, goes on in 1");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
}

/// Its settings name the server and the variable of its token; the program that replays it refuses to start where the token
/// itself stands there.
#[test]
fn codex_asks_a_person_and_is_done_by_the_tools_of_adjutant() {
    let own = |tool: &str, input: Value| json!({ "name": format!("mcp__adjutant__{tool}"), "input": input });
    let replies = json!([[
        { "tools": [own("ask", json!({ "question": "Tabs or spaces?" }))] },
        { "tools": [write("work.check"), bash(COMMIT)] },
        { "tools": [own("task_done", json!({ "summary": "It has a check." }))] },
        { "text": "That is all." },
    ]]);
    let repository = project("tools", "", &replies);
    let fleet = repository.start("run");
    let question = wait("a question", || {
        let list = repository.json("waiting");
        list.as_array()?.iter().find_map(|item| item["request"].as_str().map(str::to_owned))
    });
    repository.ok(&format!("answer {question} Spaces."));
    fleet.wait_for("c-1 landed");
    fleet.stop();
    repository.check(&["c-1"], TESTS);
    assert_eq!(conversations(&repository), "begins 1", "its word by the tool ends the work");
    assert_eq!((repository.events("answer_told"), repository.events("completion_claimed")), (1, 1));
    let calls = repository.json("tools c-1").to_string();
    assert!(calls.contains("mcp__adjutant__ask") && calls.contains("Spaces."), "{calls}");
    let starts = repository.read(&repository.state("private/c-1/codex-starts.jsonl"));
    let token = |text: &str| {
        text.split('"').any(|word| word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit()))
    };
    assert!(!token(&starts), "no argument is a token: {starts}");
}
