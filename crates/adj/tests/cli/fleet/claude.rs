//! Claude Code in a fleet, as a user would run it. The program is replayed: it speaks the language of the real one over
//! real pipes, under a real keeper, and makes the calls that are allowed; what it says comes from a file.

use super::Repository;
use super::background::wait;
use serde_json::{Value, json};

const TESTS: &str = "sh tests.sh";
const COMMIT: &str = "git add -A && git -c user.name=a -c user.email=a@b.invalid commit -q -m work";
/// The price of a reply, by the replayed program.
const REPLY_USD: f64 = 0.005;

/// A repository with one ticket, whose agent is a claude that replays these steps. `agent` goes into its section of the
/// settings, `more` after it.
pub(super) fn project(name: &str, agent: &str, more: &str, replies: &Value) -> Repository {
    let repository = Repository::new(&format!("claude-{name}"), "", &["c-1"]);
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    let settings = format!(
        "[fleet]\nagent = \"coder\"\nworkers = 1\nreview = \"auto\"\n\n[test]\ncommand = \"{TESTS}\"\n\n\
         [agents.coder]\nadapter = \"claude\"\ncommand = [{adj:?}, \"internal\", \"replay\", {file:?}]\n{agent}\n\n{more}\n"
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
pub(super) fn work() -> Vec<Value> {
    vec![json!({ "tools": [write("work.check"), bash(COMMIT)] }), json!({ "text": "All is there.\nDONE" })]
}

impl Repository {
    /// The flags of each start of the program.
    fn starts(&self) -> Vec<Vec<String>> {
        let text = self.read(&self.state("private/c-1/claude/starts.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).expect("a list of flags")).collect()
    }

    /// For each start: whether a session was begun or taken up, and which, numbered in the order of their appearance.
    fn sessions(&self) -> String {
        let mut known: Vec<String> = Vec::new();
        let mut told = Vec::new();
        for start in self.starts() {
            let at = start.iter().position(|flag| flag == "--session-id" || flag == "--resume");
            let at = at.expect("it was told which session");
            let (flag, id) = (&start[at], &start[at + 1]);
            if !known.contains(id) {
                known.push(id.clone());
            }
            let number = known.iter().position(|known| known == id).expect("it is known") + 1;
            told.push(format!("{} {number}", if flag == "--resume" { "goes on in" } else { "begins" }));
        }
        told.join(", ")
    }

    /// Everything that was written down, in order.
    pub(super) fn log(&self) -> Vec<Value> {
        let path = self.dir().with_extension("export");
        let _ = std::fs::remove_file(&path);
        self.ok(&format!("export {}", path.display()));
        let text = std::fs::read_to_string(&path).expect("it was exported");
        let _ = std::fs::remove_file(&path);
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a record")).collect()
    }

    /// The errors that were counted against the worker.
    pub(super) fn step_errors(&self) -> Vec<String> {
        let log = self.log();
        let failed = log.iter().filter(|record| record["data"]["input"]["type"] == "step_failed");
        failed
            .map(|record| record["data"]["input"]["error"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// How often a run came into this state.
    pub(super) fn runs_to(&self, state: &str) -> usize {
        self.log()
            .iter()
            .filter(|record| record["kind"] == "run_moved" && record["data"]["to"] == state)
            .count()
    }

    /// What everything cost, and how many steps had no price.
    fn cost(&self) -> (f64, u64) {
        let cost = self.json("cost");
        let usd = cost["total"]["usd"].as_f64().expect("a number");
        (usd, cost["total"]["unpricedSteps"].as_u64().expect("a number"))
    }

    /// The one question that waits for a person.
    pub(super) fn approval(&self) -> Option<(String, String)> {
        let open = self.json("approvals");
        let item = open.as_array().and_then(|items| items.first())?;
        Some((item["id"].as_str()?.to_owned(), item["cause"].as_str()?.to_owned()))
    }

    /// Runs to the end, and everything must have landed.
    #[track_caller]
    pub(super) fn lands(&self) -> String {
        let told = self.ok("run --until-idle");
        self.check(&["c-1"], TESTS);
        told
    }

    pub(super) fn in_main(&self, path: &str) -> bool {
        self.git_says(&format!("cat-file -e main:{path}"))
    }
}

#[test]
fn a_ticket_lands_and_its_second_step_goes_on_in_the_session_that_was_written_down_before_the_first() {
    let replies =
        json!([[{ "tools": [write("work.check"), bash(COMMIT)] }, { "text": "One." }], [{ "text": "DONE" }]]);
    let repository = project("lands", "model = \"some-model\"", "", &replies);
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
    let log = repository.log();
    let position = |found: &dyn Fn(&Value) -> bool| log.iter().position(found).expect("it was written down");
    let given = position(&|record| record["kind"] == "place_given");
    let asked = position(&|record| record["data"]["what"]["effect"] == "start_step");
    assert!(given < asked, "the session is known before the program is started");
    let starts = repository.starts();
    assert!(starts[0].contains(&log[given]["data"]["session"].as_str().expect("an id").to_owned()));
    assert_eq!(repository.cost(), (3.0 * REPLY_USD, 0));
    for start in starts {
        let start = start.join(" ");
        assert!(start.contains("--permission-mode default"), "it must ask: {start}");
        assert!(start.contains("--model some-model"), "{start}");
    }
}

/// Hooks, settings and servers out of a repository would be run without a question.
#[test]
fn what_a_repository_holds_for_claude_is_not_taken_up() {
    let repository = project("repository", "", "", &json!([work()]));
    repository.write(
        ".claude/settings.json",
        r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch evil"}]}]}}"#,
    );
    repository.write(".mcp.json", r#"{"mcpServers":{"evil":{"command":"touch","args":["evil"]}}}"#);
    repository.write("CLAUDE.md", "Be kind.\n");
    repository.commit("Settings for claude");
    repository.lands();
    for start in repository.starts() {
        let sources = start.iter().position(|flag| flag == "--setting-sources").expect("they are named");
        assert_eq!(start[sources + 1], "", "no settings are read");
        assert!(start.contains(&"--strict-mcp-config".to_owned()), "no servers are started but ours");
        // The stand-in refuses a file that names any server but ours.
        let servers = start.iter().position(|flag| flag == "--mcp-config").expect("ours is named");
        assert!(start[servers + 1].ends_with("/claude-mcp.json"), "{}", start[servers + 1]);
        assert!(
            start.contains(&"--append-system-prompt-file".to_owned()),
            "its words are passed on all the same"
        );
    }
}

/// Twice in a row: a refusal is one failure of the tool, and three would stop the run.
#[test]
fn a_tool_that_is_not_allowed_is_not_used() {
    let replies = json!([[
        { "tools": [write("refused.check")] },
        { "tools": [write("refused-too.check")] },
        { "tools": [bash("echo true > work.check"), bash(COMMIT)] },
        { "text": "DONE" },
    ]]);
    let repository = project("tools", "allowed_tools = [\"Bash\"]", "", &replies);
    repository.lands();
    assert!(repository.in_main("work.check"));
    assert!(!repository.in_main("refused.check") && !repository.in_main("refused-too.check"));
    let refused =
        repository.log().iter().filter(|record| record["data"]["output"] == "AGENT_TOOL_NOT_ALLOWED").count();
    assert_eq!(refused, 2, "each is written down once");
    let start = repository.starts().remove(0).join(" ");
    assert!(start.contains("--tools Bash"), "it is not even offered: {start}");
}

#[test]
fn a_person_decides_about_a_call_while_it_waits() {
    let replies = json!([[
        { "tools": [write("denied.check")] },
        { "tools": [write("allowed.check"), bash(COMMIT)] },
        { "text": "DONE" },
    ]]);
    let repository = project("asks", "", "[policy]\nred = [\"Write(*ed.check)\"]\n", &replies);
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
    assert_eq!(repository.sessions(), "begins 1", "one process waited for both");
}

#[test]
fn wrong_credentials_are_told_at_the_first_try_with_what_to_set() {
    let repository = project("401", "", "", &json!([[{ "status": 401 }], work()]));
    let told = repository.adj("run --until-idle").stdout;
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "it is no failed step");
    assert!(told.contains("does not accept the credentials") && told.contains("ANTHROPIC_API_KEY"), "{told}");
    repository.ok("retry --all");
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1", "the id was taken by the first try");
    assert_eq!(repository.cost(), (2.0 * REPLY_USD, 0), "what was refused cost nothing");
}

#[test]
fn a_usage_limit_suspends_the_run_until_it_is_reset() {
    let repository = project("429", "", "", &json!([[{ "status": 429, "resets_in": 2 }], work()]));
    repository.lands();
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "no error is counted");
    assert_eq!(repository.runs_to("suspended"), 1);
    let log = repository.log();
    let reset = log.iter().find(|record| record["data"]["what"]["timer"]["timer"] == "reset");
    let reset = reset.unwrap_or_else(|| {
        panic!(
            "it waits for the reset: {:?}",
            log.iter().filter(|r| r["data"]["what"]["effect"] == "timer").collect::<Vec<_>>()
        )
    });
    let asked = reset["at"].as_i64().expect("a time");
    let due = reset["data"]["what"]["due"].as_i64().expect("a time");
    assert!(due > asked && due <= asked + 3000, "{reset}");
    let next = log.iter().filter(|record| record["data"]["what"]["effect"] == "start_step").nth(1);
    assert!(next.expect("a second step")["at"].as_i64() >= Some(due), "nothing is tried before it");
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
}

#[test]
fn a_service_that_is_away_is_waited_for_and_costs_no_error() {
    let replies = json!([[{ "status": 529 }], [{ "status": 500 }], [{ "network": true }], work()]);
    let repository = project("away", "", "[limits]\nhealth_poll = \"1s\"\n", &replies);
    repository.lands();
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "no error is counted");
    assert_eq!(repository.runs_to("suspended"), 3);
    assert_eq!(repository.sessions(), "begins 1, goes on in 1, goes on in 1, goes on in 1");
    assert_eq!(repository.cost(), (2.0 * REPLY_USD, 0));
}

#[test]
fn a_run_goes_on_when_its_service_is_well_again() {
    let more = "[services.api]\nhealth = \"test -e .git/adjutant/well\"\nagents = [\"coder\"]\n\n[limits]\nhealth_poll = \"1s\"\n";
    let repository = project("health", "", more, &json!([[{ "status": 529 }], work()]));
    let fleet = repository.begin("run --until-idle");
    wait("a suspended run", || {
        repository.adj("history c-1 --machines").stdout.contains("suspended").then_some(())
    });
    assert_eq!(repository.starts().len(), 1, "nothing is tried before it is well");
    repository.write(&repository.state("well"), "");
    fleet.done();
    repository.check(&["c-1"], TESTS);
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
}

/// The price of what was ended is not known. It is no cost; its tokens are estimated by those of the other step.
#[test]
fn a_stream_that_stalls_is_ended_and_tried_once_more_in_a_fresh_session() {
    let repository =
        project("stalls", "", "[limits]\nsilence = \"2s\"\n", &json!([[{ "hang": true }], work()]));
    let told = repository.lands();
    assert_eq!(repository.sessions(), "begins 1, begins 2");
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "both tries would be one error");
    assert!(told.contains("session"), "{told}");
    assert_eq!(repository.cost(), (2.0 * REPLY_USD, 1));
    assert_eq!(repository.json("cost")["total"]["estimatedSteps"], 1);
}

#[test]
fn a_session_that_claude_has_lost_is_made_anew_once() {
    let replies = json!([[{ "text": "One.", "forget": true }], work()]);
    let repository = project("unknown", "", "", &replies);
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1, begins 2");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
    assert_eq!(repository.cost(), (3.0 * REPLY_USD, 0));
}

#[test]
fn a_session_that_is_in_use_is_made_anew() {
    let replies = json!([[{ "stderr": "Error: Session ID {session} is already in use." }], work()]);
    let repository = project("in-use", "", "", &replies);
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, begins 2");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
}

/// A first prompt that is too long stays so: that is an error. One that comes later has a session to leave.
#[test]
fn a_session_that_has_grown_too_long_is_left() {
    let long = json!({ "end": { "subtype": "success", "is_error": true, "terminal_reason": "prompt_too_long",
        "result": "Prompt is too long" } });
    let repository = project("long", "", "", &json!([[long], [{ "text": "One." }], [long], work()]));
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1, goes on in 1, begins 2");
    let errors = repository.step_errors();
    assert_eq!(errors, ["the prompt is too long for the model: Prompt is too long"]);
}

#[test]
fn the_turn_limit_asks_a_person_who_can_let_it_go_on() {
    let tick = |text: &str| json!({ "tools": [bash(&format!("echo {text}"))] });
    let replies = json!([[tick("one"), tick("two"), tick("three"), { "text": "DONE" }], work()]);
    let repository = project("turns", "max_turns = 2", "", &replies);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let (id, cause) = repository.approval().expect("a question");
    assert_eq!(cause, "turn_limit");
    assert!(repository.starts()[0].join(" ").contains("--max-turns 2"), "the program knows of it too");
    assert_eq!(repository.cost(), (2.0 * REPLY_USD, 0), "it is interrupted, so that it names its price");
    repository.ok(&format!("approve {id}"));
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
}

/// Whichever of the four budgets has the least left, less what others have set aside.
#[test]
fn claude_is_told_of_the_tightest_budget() {
    let more = "[budget]\ntask_usd = 5.0\nday_usd = 2.0\n";
    let repository = project("tightest", "budget_usd = 3.0", more, &json!([work()]));
    repository.lands();
    let start = repository.starts().remove(0).join(" ");
    assert!(start.contains("--max-budget-usd 2.0000"), "{start}");
}

#[test]
fn a_budget_asks_a_person_who_can_raise_it() {
    let tick = |text: &str| json!({ "tools": [bash(&format!("echo {text}"))] });
    let replies = json!([[tick("one"), tick("two"), tick("three"), { "text": "DONE" }], work()]);
    let repository = project("budget", "", "[budget]\nrun_usd = 0.014\nstep_usd = 0.004\n", &replies);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let (id, cause) = repository.approval().expect("a question");
    assert_eq!(cause, "budget");
    assert!(
        repository.starts()[0].join(" ").contains("--max-budget-usd 0.014"),
        "the program knows of it too"
    );
    assert_eq!(repository.cost(), (3.0 * REPLY_USD, 0), "it ended itself with the reply that passed it");
    repository.ok(&format!("approve {id}"));
    repository.lands();
    assert_eq!(repository.cost(), (5.0 * REPLY_USD, 0));
}

#[test]
fn of_several_results_the_last_one_counts() {
    let replies =
        json!([[{ "text": "All is there.\nDONE", "result": true }, { "text": "Not yet." }], work()]);
    let repository = project("results", "", "", &replies);
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
    assert_eq!(repository.cost(), (4.0 * REPLY_USD, 0));
}

#[test]
fn a_program_that_dies_without_a_result_goes_on_in_its_session() {
    let replies = json!([[{ "tools": [write("work.check")], "crash": true }], [{ "text": "DONE" }]]);
    let repository = project("dies", "", "", &replies);
    repository.lands();
    assert_eq!(repository.step_errors(), ["claude was ended by signal 9"]);
    assert_eq!(repository.sessions(), "begins 1, goes on in 1");
    assert!(repository.in_main("work.check"), "what it wrote is kept");
    assert_eq!(repository.cost(), (REPLY_USD, 1), "its price died with it");
}

#[test]
fn the_total_is_right_however_a_version_names_its_prices() {
    for prices in ["named", "session", "process"] {
        let replies =
            json!({ "prices": prices, "steps": [[{ "text": "One." }], [{ "text": "Two." }], work()] });
        let repository = project(&format!("prices-{prices}"), "", "", &replies);
        repository.lands();
        assert_eq!(repository.cost(), (4.0 * REPLY_USD, 0), "{prices}");
    }
}

#[test]
fn a_price_that_is_not_known_is_said_and_is_no_cost() {
    let replies = json!({ "prices": "unknown", "steps": [[{ "text": "One." }], work()] });
    let repository = project("unpriced", "", "[budget]\nstep_usd = 0.25\n", &replies);
    repository.lands();
    assert_eq!(repository.cost(), (0.0, 2));
    let cost = repository.ok("cost");
    assert!(cost.contains("unknown (2 steps, $0.50 set aside)"), "{cost}");
    let fleet = repository.ok("ps");
    assert!(fleet.contains("unknown"), "{fleet}");
}

#[test]
fn a_fleet_that_stops_interrupts_claude_and_goes_on_in_its_session() {
    let replies = json!([[{ "text": "One." }], [{ "hang": true }], work()]);
    let repository = project("stops", "", "", &replies);
    let fleet = repository.begin("run");
    // The message of the second step was begun: that of the first may be seen unended, too.
    let begun = || {
        (repository.starts().len() == 2).then_some(())?;
        let steps = std::fs::read_dir(repository.state("steps")).into_iter().flatten().flatten();
        let begun = |step: &std::path::Path| {
            let out = std::fs::read_to_string(step.join("out")).unwrap_or_default();
            out.contains("message_start") && !out.contains("message_stop")
        };
        steps.map(|step| step.path()).find(|step| begun(step))
    };
    let step = wait("a second step", begun);
    repository.ok("stop");
    fleet.done();
    let out = std::fs::read_to_string(step.join("out")).expect("it is kept");
    assert!(out.contains("aborted_streaming"), "it was asked to end its turn, and did: {out}");
    assert_eq!(repository.strays(), Vec::<String>::new());
    repository.lands();
    assert_eq!(repository.sessions(), "begins 1, goes on in 1, goes on in 1");
    assert_eq!(repository.step_errors(), Vec::<String>::new());
}

/// The call that runs is not cut off; one that runs for too long is, and the model hears that nobody refused it.
#[test]
fn a_fleet_that_stops_lets_a_call_of_claude_end_and_says_so_where_it_cannot() {
    let call = "touch begun; until [ -e \"$TMPDIR/go\" ]; do sleep 0.05; done; echo whole > kept.txt";
    let replies = json!([[{ "tools": [bash(call)] }, { "hang": true }], [{ "text": "On." }], work()]);
    for (name, seconds) in [("lets", "5m"), ("cuts", "1s")] {
        let repository = project(name, "", "", &replies);
        repository.set(&[("review = \"auto\"", &format!("review = \"auto\"\nstop_timeout = \"{seconds}\""))]);
        let fleet = repository.begin("run");
        let tree = wait("the call to run", || {
            let tree = repository.tree(repository.standing().first()?);
            tree.join("begun").exists().then_some(tree)
        });
        fleet.signal(nix::sys::signal::Signal::SIGINT);
        fleet.wait_for("waiting for running calls to end");
        if name == "lets" {
            repository.go("c-1");
        }
        fleet.done();
        assert_eq!(tree.join("kept.txt").exists(), name == "lets", "{name}");
        repository.lands();
        assert_eq!(repository.step_errors(), Vec::<String>::new());
        let told = repository.log().iter().any(|record| record.to_string().contains("nobody refused it"));
        assert!(told, "the next prompt says so");
    }
}

#[test]
fn what_a_person_says_reaches_claude_while_it_works() {
    let replies =
        json!([[{ "tools": [write("asked.check")] }, { "tools": [bash(COMMIT)] }, { "text": "DONE" }]]);
    let repository = project("told", "", "[policy]\nred = [\"Write(asked.check)\"]\n", &replies);
    let fleet = repository.start("run");
    let (question, _) = wait("a question", || repository.approval());
    repository.ok("task comment c-1 and-the-docs");
    // The program has it, and says so, while its call still waits.
    let step = wait("that it was told", || {
        let steps = std::fs::read_dir(repository.state("steps")).ok()?;
        let told = |step: &std::path::PathBuf| {
            let read = |name: &str| std::fs::read_to_string(step.join(name)).unwrap_or_default();
            // The prompt is the first message that waits there.
            read("in").contains("and-the-docs") && read("out").matches("\"queued\"").count() == 2
        };
        steps.flatten().map(|step| step.path()).find(told)
    });
    repository.ok(&format!("approve {question}"));
    fleet.wait_for("c-1 landed");
    fleet.stop();
    repository.check(&["c-1"], TESTS);
    assert_eq!(repository.sessions(), "begins 1", "it was told in the step that was under way");
    let out = std::fs::read_to_string(step.join("out")).expect("it is kept");
    let result = out.lines().rfind(|line| line.contains("user_message_uuids")).expect("a result");
    let result: Value = serde_json::from_str(result).expect("a line of the program");
    assert_eq!(result["user_message_uuids"].as_array().map(Vec::len), Some(2), "it took both in: {result}");
}
