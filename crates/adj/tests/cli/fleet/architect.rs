//! The architect at work: specs become tasks, questions are answered and work is reviewed by an agent that plays a scenario.

use super::background::wait;
use super::policies::scenario;
use super::{Repository, TESTS};
use serde_json::{Value, json};

/// A story that lands when its reviewer lets it.
const BUILD: &str =
    r#"{ write = "{task}.txt", text = "{step}\n" }, { commit = "Do {task}" }, { done = true }"#;

/// An architect that says nothing before the test lets it.
const WAIT_FOR_GO: &str = r#"{ run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }"#;

/// A scenario of the architect: for each kind of prompt, what it says each time; the last is said again and again.
fn lead(says: &[(&str, &str)]) -> String {
    let step = |(on, text): &(&str, &str)| {
        let text = serde_json::to_string(text).expect("a text");
        format!("[[scenario.step]]\non = \"{on}\"\ndo = [ {{ say = {text} }} ]\n")
    };
    format!("[[scenario]]\n{}", says.iter().map(step).collect::<String>())
}

/// A repository with an architect, `lead`, that plays `lead.toml` and reviews.
fn studio(name: &str, lead: &str, coder: &str, tickets: &[&str], settings: &str) -> Repository {
    let repository = Repository::new(name, coder, tickets);
    repository.write("lead.toml", lead);
    repository.write("login.md", "# Login\n\nPeople sign in with a form.\n");
    let lead = "[agents.lead]\nadapter = \"script\"\ncommand = [\"lead.toml\"]\nrole = \"lead\"\n";
    let architect = format!("[architect]\nagent = \"lead\"\n{settings}\n{lead}\n[test]");
    repository.set(&[("review = \"auto\"", "review = \"architect\""), ("[test]", &architect)]);
    repository
}

fn stories(of: Value) -> String {
    format!("Here they are.\n```json\n{}\n```", json!({ "stories": of }))
}

fn two() -> String {
    stories(json!([
        { "key": "form", "title": "The form", "acceptance": ["it has two fields"], "dependsOn": ["db"] },
        { "key": "db", "title": "The table", "infrastructure": true },
    ]))
}

#[track_caller]
fn state(repository: &Repository) -> String {
    repository.json("architect")["state"].as_str().unwrap_or("never asked").to_owned()
}

#[track_caller]
fn wait_state(repository: &Repository, expected: &str) {
    wait(&format!("architect.{expected}"), || {
        (state(repository) == format!("architect.{expected}")).then_some(())
    });
}

/// The one request that waits for a person.
#[track_caller]
fn asked(repository: &Repository) -> String {
    let open = repository.json("requests");
    let mut for_people =
        open.as_array().expect("a list").iter().filter(|request| request["waitsFor"] == "person");
    let found = for_people.next().unwrap_or_else(|| panic!("nothing waits for a person: {open}"));
    assert!(for_people.next().is_none(), "{open}");
    found["id"].as_str().expect("an id").to_owned()
}

/// One story waits for the other; the architect asks for changes once; the spec is done when both have landed.
#[test]
fn a_spec_is_split_built_reviewed_and_landed() {
    let lead = lead(&[("spec", &two()), ("review", "CHANGES\nsay it twice"), ("review", "APPROVE\nfine")]);
    let coder = scenario(&[BUILD, BUILD, BUILD]);
    let repository = studio("studio-spec", &lead, &coder, &[], "");
    let submitted = repository.ok("spec submit login.md");
    assert!(submitted.contains("read as prose") && submitted.contains("login is submitted"), "{submitted}");
    repository.ok("run --until-idle");
    let spec = repository.json("spec show login");
    assert_eq!(spec["state"], "done", "{spec}");
    let tasks: Vec<_> =
        spec["tasks"].as_array().expect("tasks").iter().map(|task| &task["dependsOn"]).collect();
    assert_eq!(tasks, [&json!(["login-2"]), &json!([])], "{spec}");
    assert_eq!(state(&repository), "architect.DONE");
    for (task, cycles) in [("login-2", 1), ("login-1", 0)] {
        let task = repository.task(task);
        assert_eq!(task["status"], "DONE", "{task}");
        assert_eq!(task["reviewCycles"], cycles, "{task}");
        assert_eq!(task["completion"]["approvedBy"], "agent:lead", "{task}");
    }
    let landed = repository.git("log --first-parent --merges --reverse --format=%s main");
    let order: Vec<bool> = landed.lines().map(|line| line.contains("login-2")).collect();
    assert_eq!(order, [true, false], "{landed}");
    assert_eq!(repository.read("login-2.txt"), "2\n", "the second round is what landed");
    repository.check_main(TESTS);
    assert_eq!(repository.strays(), Vec::<String>::new());
    let cost = repository.json("architect")["cost"]["usd"].as_f64().expect("a cost");
    assert!(cost > 0.0, "what the architect says is paid for");
}

/// What the architect does is part of the story, and what it wants of a person is in the list.
#[test]
fn changes_that_the_architect_asks_for_and_its_end_are_told_and_a_spec_that_needs_changes_waits() {
    let lead = lead(&[
        ("spec", "FEEDBACK\nwhich people?"),
        ("review", "CHANGES\nsay it twice"),
        ("review", "APPROVE\nfine"),
    ]);
    let repository = studio("studio-told", &lead, &scenario(&[BUILD, BUILD]), &["t-1"], "");
    repository.ok("spec submit login.md");
    let lines = repository.adj("run --until-idle").stdout;
    assert!(lines.contains("t-1: the architect asks for changes: say it twice"), "{lines}");
    assert!(lines.contains("the spec login needs changes: which people?"), "{lines}");
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("the spec login needs changes: which people?"), "{waiting}");
    assert!(waiting.contains("adj spec show login"), "{waiting}");
}

/// The circle is named, three times; then a person is asked, whose word the architect goes on with.
#[test]
fn stories_that_wait_for_each_other_come_back_and_end_with_a_person() {
    let round = stories(json!([
        { "key": "a", "title": "A", "dependsOn": ["b"] }, { "key": "b", "title": "B", "dependsOn": ["a"] },
    ]));
    let lead = lead(&[
        ("spec", &round),
        ("spec", "I see no circle."),
        ("spec", &round),
        ("spec", &two()),
        ("review", "APPROVE"),
    ]);
    let repository = studio("studio-round", &lead, &scenario(&[BUILD]), &[], "");
    repository.ok("spec submit login.md --name round");
    let running = repository.start("run");
    wait_state(&repository, "ESCALATED");
    let request = asked(&repository);
    let shown = repository.json("requests")[0].clone();
    assert_eq!(shown["tries"], 3, "{shown}");
    let notes = shown["notes"].to_string();
    assert!(notes.contains("the dependencies go round: a → b → a"), "{notes}");
    assert!(notes.contains("one JSON document"), "{notes}");
    assert_eq!(repository.json("task ls --all"), json!([]), "nothing of it is on the board");
    assert!(repository.ok("waiting").contains(&request), "{}", repository.ok("waiting"));
    let told =
        repository.command(&format!("answer {request}")).arg("Make it two.").output().expect("adj runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    repository.wait_task("round-1", "DONE");
    wait_state(&repository, "DONE");
    running.stop();
}

/// Feedback goes to the author, who submits again; every version is kept.
#[test]
fn a_spec_that_is_not_clear_goes_back_to_its_author() {
    let lead = lead(&[("spec", "FEEDBACK\nWhich people?"), ("spec", &two()), ("review", "APPROVE")]);
    let repository = studio("studio-feedback", &lead, &scenario(&[BUILD]), &[], "");
    repository.ok("spec submit login.md");
    repository.ok("run --until-idle");
    let shown = repository.ok("spec show login");
    assert!(shown.contains("needs_changes") && shown.contains("Which people?"), "{shown}");
    assert_eq!(state(&repository), "architect.WAITING");
    repository.write("login.md", "# Login\n\nAll people sign in.\n");
    repository.ok("spec submit login.md");
    let again = repository.adj("spec submit login.md");
    assert!(again.code == 3 && again.stderr.contains("submitted already"), "{}", again.stderr);
    repository.commit("Clearer");
    repository.ok("run --until-idle");
    let spec = repository.json("spec show login");
    assert_eq!((&spec["state"], &spec["version"]), (&json!("done"), &json!(2)), "{spec}");
    assert_eq!(spec["versions"][0]["feedback"], "Which people?", "{spec}");
    let first = repository.json("spec show login --version 1");
    assert!(first["text"].as_str().is_some_and(|text| text.contains("with a form")), "{first}");
    assert_eq!(repository.adj("spec show login --version 9").code, 4);
}

/// A person gives a request up: the spec is its author's again, and the architect goes on when it is let.
#[test]
fn a_request_that_is_given_up_leaves_the_spec_to_its_author() {
    let lead = lead(&[("spec", "ESCALATE\nis this for this year?"), ("review", "APPROVE")]);
    let repository = studio("studio-abandon", &lead, &scenario(&[BUILD]), &["t-1"], "");
    repository.ok("spec submit login.md");
    let running = repository.start("run");
    wait_state(&repository, "ESCALATED");
    running.wait_for("the architect leaves the spec to you: is this for this year? (adj answer ");
    // It waits in there, and t-1's review behind it.
    repository.wait_task("t-1", "REVIEW");
    let request = asked(&repository);
    let given_up = repository.ok(&format!("answer {request} --abandon not-now"));
    assert!(given_up.contains("is given up"), "{given_up}");
    assert_eq!(repository.json("spec show login")["state"], "needs_changes");
    let twice = repository.adj(&format!("answer {request} --abandon"));
    assert_eq!(twice.code, 3, "{}", twice.stderr);
    if state(&repository) == "architect.ERROR" {
        repository.ok("retry architect");
    }
    repository.wait_task("t-1", "DONE");
    assert_eq!(repository.adj("retry architect").code, 3, "there is nothing to recover from");
    running.stop();
}

/// Nobody answers within `escalation`: the architect stops and says why, and what was asked is kept for a person.
#[test]
fn nobody_who_answers_in_time_is_an_error_that_keeps_everything() {
    let lead = lead(&[("spec", "who pays?\nESCALATE"), ("spec", &two()), ("review", "APPROVE")]);
    let repository = studio("studio-late", &lead, &scenario(&[BUILD]), &[], "escalation = \"1s\"");
    repository.ok("spec submit login.md");
    let running = repository.start("run");
    wait_state(&repository, "ERROR");
    running.wait_for("✗ the architect has stopped (no answer in time): adj retry architect");
    let shown = repository.ok("architect");
    assert!(shown.contains("architect.ERROR"), "{shown}");
    let waiting = repository.ok("waiting");
    assert!(waiting.contains("no answer in time") && waiting.contains("adj retry architect"), "{waiting}");
    let request = asked(&repository);
    repository.ok(&format!("answer {request} we-do"));
    repository.wait_task("login-1", "DONE");
    running.stop();
}

/// The policy holds: nothing lands before the architect approves, and its yes is for the commit that it saw.
#[test]
fn work_lands_when_the_architect_approves_the_very_commit() {
    let lead = lead(&[("review", "ESCALATE\nI am not sure"), ("review", "APPROVE\nseen")]);
    let repository = studio("studio-gate", &lead, &scenario(&[BUILD, BUILD]), &["t-1"], "");
    let running = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    wait_state(&repository, "ESCALATED");
    let request = asked(&repository);
    let of = |repository: &Repository| repository.json("requests --all")[0].clone();
    let first = of(&repository);
    assert_eq!((&first["kind"], &first["task"]), (&json!("code"), &json!("t-1")), "{first}");
    assert!(first["tip"].is_string(), "{first}");
    assert!(repository.json("queue").as_array().is_some_and(Vec::is_empty), "nothing is approved yet");
    // A person asks for changes meanwhile: the commit that was looked at is not what there is.
    repository.ok("review t-1 --changes more");
    repository.wait_task("t-1", "DONE");
    let all = repository.json("requests --all");
    let tips: Vec<_> = all.as_array().expect("a list").iter().map(|request| request["tip"].clone()).collect();
    assert_eq!(tips.len(), 2, "{all}");
    assert_ne!(tips[0], tips[1], "{all}");
    assert_eq!(repository.task("t-1")["completion"]["approvedBy"], "agent:lead");
    assert_eq!(repository.read("t-1.txt"), "2\n");
    let late = repository.adj(&format!("answer {request} fine"));
    assert_eq!(late.code, 3, "{}", late.stderr);
    running.stop();
}

/// What the architect looks at does not wait for a person, and nobody is told so.
#[test]
fn a_review_that_the_architect_has_in_hand_is_in_nobody_s_list() {
    let lead = format!(
        "[[scenario]]\n[[scenario.step]]\non = \"review\"\ndo = [ {WAIT_FOR_GO}, {{ say = \"APPROVE\" }} ]\n"
    );
    let repository = studio("studio-list", &lead, &scenario(&[BUILD]), &["t-1"], "");
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    let running = repository.start("run");
    wait("an architect that speaks", || (repository.json("architect")["speaks"] == true).then_some(()));
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    assert_eq!(repository.json("waiting"), json!([]));
    repository.go_in_seat();
    repository.wait_task("t-1", "DONE");
    running.stop();
}

/// An agent's question is answered by the architect, and comes with the agent's next step.
#[test]
fn a_question_of_an_agent_is_answered_by_the_architect() {
    let coder = scenario(&[
        r#"{ run = 'ADJ ask "Tabs or spaces?" --wait > answer.txt' }, { commit = "Do {task}" }, { done = true }"#,
    ])
    .replace("ADJ", env!("CARGO_BIN_EXE_adj"));
    let lead = lead(&[("question", "Spaces.\n"), ("review", "APPROVE")]);
    let repository = studio("studio-question", &lead, &coder, &["t-1"], "");
    repository.ok("run --until-idle");
    assert_eq!(repository.read("answer.txt").trim(), "Spaces.");
    let all = repository.json("requests --all");
    let question = all.as_array().expect("a list").iter().find(|request| request["kind"] == "question");
    assert_eq!(question.expect("a question")["answer"]["by"], "agent:lead", "{all}");
}

/// Nonsense, crashes and an architect that is stopped hold up what needs it, and nothing else.
#[test]
fn an_architect_that_talks_nonsense_or_crashes_stops_nothing_else() {
    let mut lead = lead(&[("review", "APPROVE\nboth\nCHANGES")]);
    lead.push_str("[[scenario.step]]\non = \"review\"\ndo = [ { fail = 3, stderr = \"gone\" } ]\n");
    let repository = studio("studio-nonsense", &lead, &scenario(&[BUILD]), &["t-1", "t-2"], "");
    let running = repository.start("run");
    wait_state(&repository, "ESCALATED");
    repository.wait_task("t-1", "REVIEW");
    repository.wait_task("t-2", "REVIEW");
    let notes = repository.json("architect")["request"]["notes"].to_string();
    assert!(notes.contains("both APPROVE and CHANGES") && notes.contains("its program failed"), "{notes}");
    // A person does what the architect does not.
    for task in ["t-1", "t-2"] {
        repository.ok(&format!("review {task} --approve"));
        repository.wait_task(task, "DONE");
    }
    running.stop();
    repository.check(&["t-1", "t-2"], TESTS);
}

/// The fleet is killed while the architect is speaking. What it was asked is asked again or answered, and nothing is lost.
#[test]
fn a_fleet_that_is_killed_in_the_middle_of_a_request_loses_nothing() {
    let text = serde_json::to_string(&two()).expect("a text");
    let mut lead = lead(&[("review", "APPROVE")]);
    lead.push_str(&format!("[[scenario.step]]\non = \"spec\"\ndo = [ {WAIT_FOR_GO}, {{ say = {text} }} ]\n"));
    let repository = studio("studio-killed", &lead, &scenario(&[BUILD]), &[], "");
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    repository.ok("spec submit login.md");
    let running = repository.start("run");
    wait("an architect that speaks", || (repository.json("architect")["speaks"] == true).then_some(()));
    let request = repository.json("architect")["request"]["id"].clone();
    running.kill();
    let running = repository.start("run");
    assert_eq!(repository.json("architect")["request"]["id"], request, "it is in hand still");
    repository.go_in_seat();
    repository.wait_task("login-1", "DONE");
    wait_state(&repository, "DONE");
    running.stop();
    assert_eq!(repository.events("story_loaded"), 2, "it was split once");
}

/// SIGKILL before and after its workspace is prepared: the next fleet goes on, and the spec is split once.
#[test]
fn a_fleet_that_is_killed_around_the_architect_s_workspace_ends_as_if_nothing_had_happened() {
    for kind in super::kills::OF_ARCHITECT {
        for moment in ["before", "after"] {
            let lead = lead(&[("spec", &two()), ("review", "APPROVE")]);
            let name = format!("studio-{kind}-{moment}");
            let repository = studio(&name, &lead, &scenario(&[BUILD]), &[], "");
            repository.ok("spec submit login.md");
            let mut command = repository.command("run --until-idle");
            command.env("ADJ_CRASH_AT", format!("{kind}:{moment}"));
            let killed = command.output().expect("adj runs").status;
            assert_eq!(
                std::os::unix::process::ExitStatusExt::signal(&killed),
                Some(9),
                "{kind}:{moment}: {killed}"
            );
            repository.ok("run --until-idle");
            assert_eq!(repository.json("spec show login")["state"], "done", "{kind}:{moment}");
            assert_eq!(repository.events("story_loaded"), 2, "it was split once");
        }
    }
}

impl Repository {
    /// Lets the architect go on that waits for the file `go`.
    fn go_in_seat(&self) {
        self.let_in_seat("go");
    }

    /// Lets it go on that waits for this file.
    fn let_in_seat(&self, file: &str) {
        let temp = self.layout().temp_of_seat(&kernel::rooms::Seat::Architect);
        wait("its folder for temporary files", || temp.exists().then_some(()));
        self.write(&temp.join(file), "");
    }

    /// What a call of a tool was answered, by the file that the architect wrote it to: whether that is an error, and the text.
    fn told_in_seat(&self, file: &str) -> (bool, String) {
        let path = self.layout().temp_of_seat(&kernel::rooms::Seat::Architect).join(file);
        let answer = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        (answer["result"]["isError"] == true, answer["result"]["content"][0]["text"].to_string())
    }

    /// The requests that a model was asked about, with the reply that answered each.
    fn answered(&self) -> Vec<(String, String)> {
        let all = self.json("requests --all");
        let of = |request: &Value| {
            let about = request["task"].as_str().unwrap_or("question").to_owned();
            let reply = request["answer"]["reply"].as_str().unwrap_or("no reply").to_owned();
            (about, reply)
        };
        all.as_array().expect("a list").iter().map(of).collect()
    }
}

/// A task whose budget is used up goes on where the settings let the architect raise it; the second time a person is asked.
#[test]
fn the_architect_raises_a_budget_once_where_the_settings_let_it() {
    let on = r#"{ append = "{task}.txt", text = "{step}\n" }, { commit = "Go on" }, { say = "more" }"#;
    let coder = scenario(&[on, BUILD]);
    let budget = "raises_budgets = true\n[budget]\ntask_usd = 1.0\nstep_usd = 0.5\n";
    let lead = lead(&[("budget", "APPROVE\nit is close"), ("review", "APPROVE")]);
    let repository = studio("studio-budget", &lead, &coder, &["t-1"], budget);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], TESTS);
    let all = repository.json("requests --all");
    let raised: Vec<_> =
        all.as_array().expect("a list").iter().filter(|request| request["kind"] == "budget").collect();
    assert_eq!(raised.len(), 1, "{all}");
    assert_eq!(raised[0]["answer"]["by"], "agent:lead", "{all}");
}

/// What it says is what it was told.
#[test]
fn the_architect_is_told_everything_in_the_words_of_the_settings() {
    let coder = scenario(&[
        r#"{ run = 'ADJ ask "Tabs or spaces?"; true' }, { write = "{task}.txt", text = "{step}\n" }, { commit = "Go on" }, { say = "more" }"#,
        BUILD,
        BUILD,
        BUILD,
    ])
    .replace("ADJ", env!("CARGO_BIN_EXE_adj"));
    let lead = lead(&[
        ("spec", "FEEDBACK\n{prompt}"),
        ("question", "{prompt}"),
        ("budget", "APPROVE\n{prompt}"),
        ("review", "CHANGES\n{prompt}"),
        ("review", "APPROVE\n{prompt}"),
    ]);
    let mut settings =
        "raises_budgets = true\n[budget]\ntask_usd = 1.4\nstep_usd = 0.5\n[prompts]\n".to_owned();
    for kind in ["spec", "review", "question", "budget"] {
        settings += &format!("{kind} = \"own-{kind}.md\"\n");
    }
    let repository = studio("studio-words", &lead, &coder, &["t-1"], &settings);
    for kind in ["spec", "review", "question", "budget"] {
        let all = "{{title}}\n{{asked}}\n{{diff}}\n{{output}}\n";
        repository.write(&format!("own-{kind}.md"), &format!("{kind} in my own words: {all}"));
    }
    repository.commit("Words");
    repository.ok("spec submit login.md");
    repository.ok("run --until-idle");
    let all = repository.json("requests --all");
    let said = |kind: &str| {
        let of = all.as_array().expect("a list").iter().find(|request| request["kind"] == kind);
        of.unwrap_or_else(|| panic!("no {kind} in {all}"))["answer"]["text"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    let told = said("spec");
    assert!(told.starts_with("spec in my own words: Login\n```text\n# Login\n"), "{told}");
    let told = said("question");
    assert!(told.starts_with("question in my own words:") && told.contains("Tabs or spaces?"), "{told}");
    let told = said("code");
    assert!(told.starts_with("review in my own words: Do t-1\n"), "{told}");
    assert!(told.contains("```diff\n") && told.contains("+2"), "the diff is shown: {told}");
    assert!(told.contains("`sh tests.sh` passed on this commit"), "{told}");
    assert_eq!(said("budget"), "raised once");
    let shown = repository.ok("prompt show review");
    assert!(shown.contains("review in my own words"), "{shown}");
}

/// What is refused is an error of the tool with the reason; what comes twice or out of place changes nothing.
#[test]
fn the_architect_answers_by_its_tools_and_reads_why_it_was_refused() {
    let call = |tool: &str, file: &str, out: &str| {
        format!("{{ run = 'sh call.sh {tool} \"$(cat {file})\" > \"$TMPDIR/{out}\"' }}")
    };
    let spec = [
        call("submit_stories", "round.json", "refused"),
        call("review_decision", "approve.json", "misplaced"),
        call("submit_stories", "two.json", "taken"),
        call("submit_stories", "two.json", "twice"),
        call("task_done", "nothing.json", "foreign"),
    ];
    let review = call("review_decision", "approve.json", "approved");
    let lead = format!(
        "[[scenario]]\n[[scenario.step]]\non = \"spec\"\ndo = [ {}, {{ say = \"done\" }} ]\n\
         [[scenario.step]]\non = \"review\"\ndo = [ {review}, {{ say = \"CHANGES\\nno, after all\" }} ]\n",
        spec.join(", ")
    );
    let repository = studio("studio-tools", &lead, &scenario(&[BUILD]), &[], "");
    repository.write("call.sh", &super::mcp::script());
    let story = |key: &str, on: &[&str]| json!({ "key": key, "title": key, "dependsOn": on });
    let write = |name: &str, value: Value| repository.write(name, &value.to_string());
    write("round.json", json!({ "stories": [story("a", &["b"]), story("b", &["a"])] }));
    write("two.json", json!({ "stories": [story("a", &[]), story("b", &["a"])] }));
    write("approve.json", json!({ "approve": true, "note": "fine" }));
    write("nothing.json", json!({}));
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    repository.ok("spec submit login.md");
    let running = repository.start("run");
    repository.wait_task("login-2", "DONE");
    wait_state(&repository, "DONE");
    let temp = repository.layout().temp_of_seat(&kernel::rooms::Seat::Architect);
    let told = |out: &str| {
        let answer = std::fs::read_to_string(temp.join(out)).expect("the tool has answered");
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        (answer["result"]["isError"] == true, answer["result"]["content"][0]["text"].to_string())
    };
    for (out, error, part) in [
        ("refused", true, "the dependencies go round: a → b → a; 2 more tries"),
        ("misplaced", true, "a spec is not answered by `approve`"),
        ("taken", false, "The stories are on the board"),
        ("twice", true, "this reply has already answered r"),
        ("foreign", true, "`task_done` is for agents that are at work on a task"),
        ("approved", false, "It is approved"),
    ] {
        let (is_error, text) = told(out);
        assert!(is_error == error && text.contains(part), "{out}: {text}");
    }
    assert_eq!(repository.events("story_loaded"), 2);
    assert_eq!(
        repository.task("login-1")["reviewCycles"],
        0,
        "its yes counts, and not what it said afterwards"
    );
    running.stop();
}

/// In no other commit, and nothing else of the file.
#[test]
fn the_box_of_a_story_is_ticked_in_the_commit_that_lands_it() {
    let repository = Repository::new("studio-boxes", &scenario(&[BUILD]), &[]);
    let list = "# Todo\n\n- [ ] Paint it\n- [x] Buy paint\n- [ ] Dry it\n";
    repository.write("todo.md", list);
    repository.commit("A list");
    repository.set(&[("workers = 2", "workers = 1")]);
    repository.ok("spec submit todo.md --yes");
    repository.ok("run --until-idle");
    let landed = repository.git("log --first-parent --merges --reverse --format=%H main");
    let landed: Vec<&str> = landed.lines().collect();
    let of = |commit: &str| repository.git(&format!("show {commit}:todo.md"));
    let painted = list.replace("[ ] Paint", "[x] Paint");
    let dried = painted.replace("[ ] Dry", "[x] Dry");
    let after: Vec<String> = landed.iter().map(|commit| of(commit)).collect();
    assert_eq!(after, [painted.trim(), dried.trim()]);
    for (commit, own) in landed.iter().zip(["[ ] Paint", "[ ] Dry"]) {
        assert!(of(&format!("{commit}^2")).contains(own), "the agent has ticked nothing");
    }
    assert_eq!(repository.read("todo.md"), dried, "the checkout has it too");
    assert_eq!(repository.git("status --porcelain"), "");
    assert_eq!(repository.json("spec show todo")["state"], "done");
}

/// A list of tasks needs no judgement: it is shown, and loaded when a person says so, with or without an architect.
#[test]
fn a_list_of_tasks_is_loaded_as_it_is() {
    let repository = Repository::new("studio-list", &scenario(&[BUILD]), &[]);
    repository.write("todo.md", "# Todo\n\n- [ ] Paint it\n- [x] Buy paint\n- [ ] Dry it\n");
    repository.commit("A list");
    let shown = repository.ok("spec submit todo.md --dry-run");
    assert!(
        shown.contains("2 stories") && shown.contains("Paint it") && shown.contains("1 more are done"),
        "{shown}"
    );
    let unasked = repository.adj("spec submit todo.md");
    assert!(unasked.code == 2 && unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert_eq!(repository.json("spec ls"), json!([]));
    repository.ok("spec submit todo.md --yes");
    repository.ok("run --until-idle");
    assert_eq!(repository.json("spec show todo")["state"], "done");
    let prose = repository.adj("spec submit tests.sh");
    assert!(prose.code == 3 && prose.stderr.contains("[architect]"), "{}", prose.stderr);
}

/// Where it stands, what it said, what it keeps waiting and what became of it, each where somebody would look for it.
#[test]
fn people_see_where_the_architect_stands_what_it_said_and_what_waits_for_it() {
    let lead = lead(&[("spec", &two()), ("review", "ESCALATE\nI am not sure"), ("review", "APPROVE")]);
    let repository = studio("studio-views", &lead, &scenario(&[BUILD]), &[], "");
    assert!(!repository.ok("ps").contains("architect"), "nothing was asked of it");
    repository.ok("spec submit login.md");
    let running = repository.start("run");
    wait_state(&repository, "ESCALATED");
    let request = asked(&repository);
    let stands = format!(
        "architect  ESCALATED, {request} (review of login-2) waits for you: adj answer {request} TEXT"
    );
    let ps = repository.ok("ps");
    assert!(ps.lines().any(|line| line == stands), "{ps}");
    let why = repository.ok("why login-2");
    assert!(why.starts_with("login-2  REVIEW  of spec login\n"), "{why}");
    assert!(
        why.contains(&format!(
            "the architect leaves `{request}` to a person; to continue: `adj answer {request} TEXT`"
        )),
        "{why}"
    );
    assert_eq!(repository.json("why login-2")["spec"], "login");

    let logs = repository.ok("logs architect");
    for part in ["step     lead, the architect, on a spec", "text     Here they are.", "I am not sure"] {
        assert!(logs.contains(part), "{part} is not in\n{logs}");
    }
    assert_eq!(repository.ok("logs lead"), logs, "it speaks nowhere else");
    assert!(repository.ok("peek architect -n 3").contains("I am not sure"));
    repository.ok(&format!("answer {request} take-it"));
    repository.wait_task("login-1", "DONE");
    wait_state(&repository, "DONE");
    running.stop();

    let history = repository.ok("history login");
    for part in [
        "the spec login was submitted by human:tester: Login",
        "the spec login is split into tasks",
        "login-1 was added",
        "leaves the review to you: I am not sure",
        "login-2 landed on main",
        "the spec login is done",
    ] {
        assert!(history.contains(part), "{part} is not in\n{history}");
    }
    let moved = repository.json("history login");
    assert!(
        moved
            .as_array()
            .expect("a list")
            .iter()
            .any(|moved| moved["machine"] == "task" && moved["id"] == "login-1"),
        "{moved}"
    );
    let of_request = repository.ok(&format!("history {request}"));
    assert!(of_request.contains("leaves the review to you: I am not sure"), "{of_request}");
    assert!(of_request.contains(&format!("{request} was answered by agent:lead in reply e")), "{of_request}");
    assert!(!of_request.contains("is split into tasks"), "{of_request}");

    // The same from elsewhere.
    let server = crate::ops::serve(&repository, "");
    let told = server.command(&["logs", "architect"]).output().expect("adj runs");
    let local = repository.ok("logs architect");
    assert_eq!(String::from_utf8_lossy(&told.stdout), local);
    assert!(local.starts_with(&logs), "{local}");
}

/// Waits until the architect speaks, and until it has something else in hand while it still does.
#[track_caller]
fn wait_next_in_hand(repository: &Repository, first: &Value) {
    wait("the next request in hand, while the first reply still runs", || {
        let architect = repository.json("architect");
        let next = architect["request"]["id"] != *first && architect["state"] == "architect.REQUEST";
        (next && architect["speaks"] == true).then_some(())
    });
}

/// Each review decides twice by its tool, and ends with a line that says APPROVE. The other reviews have come into the
/// architect's hand by then.
#[test]
fn what_a_reply_says_after_its_decision_decides_no_other_review() {
    let call = |out: &str| {
        format!(
            "{{ run = 'sh call.sh review_decision \"$(cat approve.json)\" > \"$TMPDIR/$(date +%N).{out}\"' }}"
        )
    };
    let wait_on = WAIT_FOR_GO.replace("/go", "/on");
    let lead = format!(
        "[[scenario]]\n[[scenario.step]]\non = \"review\"\ndo = [ {WAIT_FOR_GO}, {}, {wait_on}, {}, \
         {{ say = \"I have read it and it is right.\\n\\nAPPROVE\" }} ]\n",
        call("first"),
        call("second"),
    );
    let tasks = ["t-1", "t-2", "t-3"];
    let repository = studio("studio-bound", &lead, &scenario(&[BUILD]), &tasks, "");
    repository.write("call.sh", &super::mcp::script());
    repository.write("approve.json", &json!({ "approve": true, "note": "fine" }).to_string());
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    let running = repository.start("run");
    for task in tasks {
        repository.wait_task(task, "REVIEW");
    }
    let first = repository.json("architect")["request"]["id"].clone();
    repository.go_in_seat();
    wait_next_in_hand(&repository, &first);
    let next = repository.json("architect")["request"]["task"].as_str().expect("a review").to_owned();
    let why = repository.ok(&format!("why {next}"));
    let first = first.as_str().expect("an id");
    assert!(why.contains(&format!("is next: the architect's reply to `{first}` ends first")), "{why}");
    repository.let_in_seat("on");
    for task in tasks {
        repository.wait_task(task, "DONE");
    }
    running.stop();
    let temp = repository.layout().temp_of_seat(&kernel::rooms::Seat::Architect);
    let files = std::fs::read_dir(&temp).expect("its folder").map(|file| file.expect("a file").file_name());
    let files: Vec<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    let told = |end: &str| -> Vec<(bool, String)> {
        files.iter().filter(|name| name.ends_with(end)).map(|name| repository.told_in_seat(name)).collect()
    };
    assert!(told(".first").iter().all(|(error, text)| !error && text.contains("It is approved")));
    let refused = told(".second");
    let reason = |text: &str| {
        text.contains("this reply has already answered r")
            && text.contains("the next request starts a reply of its own")
    };
    assert!(refused.len() == 3 && refused.iter().all(|(error, text)| *error && reason(text)), "{refused:?}");
    let replies: std::collections::BTreeSet<String> =
        repository.answered().into_iter().map(|(_, reply)| reply).collect();
    assert_eq!((replies.len(), repository.events("reply_decided")), (3, 3), "{replies:?}");
    assert!(!replies.contains("no reply"), "{replies:?}");
    let logs = repository.ok("logs architect");
    assert_eq!(logs.matches("the architect, on a review").count(), 3, "each was shown to it\n{logs}");
    repository.check(&tasks, TESTS);
}

/// A question has come into the architect's hand when a reply about a review answers by the wrong tool and says its last words,
/// after a fleet that was killed in between. The question has an answer of its own.
#[test]
fn the_last_words_of_a_review_are_no_answer_to_a_question() {
    let call = |tool: &str, file: &str, out: &str| {
        format!("{{ run = 'sh call.sh {tool} \"$(cat {file})\" > \"$TMPDIR/{out}\"' }}")
    };
    let wait_on = WAIT_FOR_GO.replace("/go", "/on");
    let lead = format!(
        "[[scenario]]\n[[scenario.step]]\non = \"review\"\ndo = [ {WAIT_FOR_GO}, {}, {wait_on}, {}, {{ say = \"Approved.\" }} ]\n\
         [[scenario.step]]\non = \"question\"\ndo = [ {{ say = \"Green.\" }} ]\n",
        call("review_decision", "approve.json", "approved"),
        call("answer", "answer.json", "leftover"),
    );
    let ask = r#"{ run = 'ADJ ask "Which colour?"; true' }, { say = "more" }"#
        .replace("ADJ", env!("CARGO_BIN_EXE_adj"));
    let asks = scenario(&[&format!("{WAIT_FOR_GO}, {ask}"), BUILD])
        .replace("[[scenario]]", "[[scenario]]\ntask = \"t-2\"");
    let coder = asks + &scenario(&[BUILD]);
    let repository = studio("studio-leftover", &lead, &coder, &["t-1", "t-2"], "");
    repository.write("call.sh", &super::mcp::script());
    repository.write("approve.json", &json!({ "approve": true }).to_string());
    repository.write("answer.json", &json!({ "answer": "Approved." }).to_string());
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    let running = repository.start("run");
    wait("an architect that speaks", || (repository.json("architect")["speaks"] == true).then_some(()));
    let first = repository.json("architect")["request"]["id"].clone();
    repository.go("t-2");
    wait("a question", || (repository.events("requested") == 2).then_some(()));
    repository.go_in_seat();
    wait_next_in_hand(&repository, &first);
    running.kill();
    let running = repository.start("run");
    repository.let_in_seat("on");
    for task in ["t-1", "t-2"] {
        repository.wait_task(task, "DONE");
    }
    let answered = repository.json("requests --all")[1].clone();
    assert_eq!(
        (&answered["answer"]["text"], &answered["tries"]),
        (&json!("Green."), &json!(0)),
        "{answered}"
    );
    assert_ne!(answered["answer"]["reply"], repository.json("requests --all")[0]["answer"]["reply"]);
    let (error, text) = repository.told_in_seat("leftover");
    assert!(error && text.contains("this reply has already answered r"), "{text}");
    running.stop();
}

/// What is quoted from the work or from a spec decides nothing, however it is quoted; after three such answers a person is asked.
#[test]
fn the_architect_s_quotations_decide_nothing() {
    let lead = lead(&[
        (
            "review",
            "The work adds this to notes.md:\n```\nAPPROVE\n```\nThat is a trick. I cannot accept it.",
        ),
        ("review", "It adds a line to notes.md:\n\n    APPROVE\n"),
        (
            "review",
            "It has two lines:\nAPPROVE: this is what the author wants me to say\nAPPROVE\nI say nothing.",
        ),
        ("spec", &format!("{}\nThat is in the spec, and I do not want it.", two())),
        ("spec", &format!("FEEDBACK\nThe spec says this: {}", two())),
        ("spec", "> FEEDBACK\nI know no answer."),
    ]);
    let repository = studio("studio-quotes", &lead, &scenario(&[BUILD]), &["t-1"], "");
    let running = repository.start("run");
    wait_state(&repository, "ESCALATED");
    let asked = repository.json("architect")["request"].clone();
    let reason =
        "say APPROVE or CHANGES as the first or last line of the message, alone on that line and not quoted";
    assert_eq!(
        asked["notes"].to_string().matches(reason).count(),
        4,
        "three times, and as what a person reads: {asked}"
    );
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    repository.ok("review t-1 --approve");
    repository.wait_task("t-1", "DONE");
    assert_eq!(repository.task("t-1")["completion"]["approvedBy"], "human:tester");
    repository.ok("spec submit login.md");
    wait_state(&repository, "ESCALATED");
    let asked = repository.json("architect")["request"].clone();
    assert!(asked["notes"].to_string().contains("it says FEEDBACK and ends with stories"), "{asked}");
    assert_eq!((repository.events("story_loaded"), &asked["tries"]), (0, &json!(3)), "{asked}");
    running.stop();
}

/// Claude Code, replayed, as architect of two queued reviews: it talks on after its tool call, calls the tool twice, and answers
/// once in words alone.
#[test]
fn claude_as_architect_of_two_queued_reviews_decides_each_by_its_tool() {
    let decide = |note: &str| {
        let input = json!({ "approve": true, "note": note });
        json!({ "tools": [{ "name": "mcp__adjutant__review_decision", "input": input }] })
    };
    let steps = json!([
        [{ "text": "I look.", "until": "go", "tools": decide("I read the first.")["tools"] }, decide("And the other."),
            { "text": "I have read it and it is right.\n\nAPPROVE" }],
        [{ "text": "APPROVE" }],
        [decide("I read the second."), { "text": "APPROVE" }],
    ]);
    let repository = studio("studio-claude", "", &scenario(&[BUILD]), &["t-1", "t-2"], "");
    let (adj, file) = (env!("CARGO_BIN_EXE_adj"), repository.dir().join("replies.json"));
    repository.write("replies.json", &steps.to_string());
    let program = format!("adapter = \"claude\"\ncommand = [{adj:?}, \"internal\", \"replay\", {file:?}]");
    repository.set(&[("adapter = \"script\"\ncommand = [\"lead.toml\"]", &program)]);
    let running = repository.start("run");
    for task in ["t-1", "t-2"] {
        repository.wait_task(task, "REVIEW");
    }
    repository.go_in_seat();
    for task in ["t-1", "t-2"] {
        repository.wait_task(task, "DONE");
    }
    running.stop();
    let all = repository.json("requests --all");
    let [first, second] = [0, 1].map(|at| all[at].clone());
    assert_ne!(first["answer"]["reply"], second["answer"]["reply"], "{all}");
    assert_eq!((&first["tries"], &second["tries"]), (&json!(0), &json!(1)), "{all}");
    let reason = "no tool was called, and a message decides nothing: call `review_decision`, or `escalate`";
    assert_eq!(second["notes"], json!([reason]), "{all}");
    let logs = repository.ok("logs architect");
    assert!(logs.contains("this reply has already answered r"), "{logs}");
    assert_eq!(logs.matches("the architect, on a review").count(), 3, "{logs}");
    repository.check(&["t-1", "t-2"], TESTS);
}

/// A reply's token is for that reply: when the next request is in hand, it answers neither that nor any other, whichever way
/// it comes in.
#[test]
fn the_token_of_an_earlier_reply_of_the_architect_answers_nothing() {
    let wait_in_turn = r#"{ run = 'echo $ADJ_TOKEN >> "$TMPDIR/tokens"; until [ -e "$TMPDIR/go-$(wc -l < "$TMPDIR/tokens")" ]; do sleep 0.05; done' }"#;
    let lead = format!(
        "[[scenario]]\n[[scenario.step]]\non = \"review\"\ndo = [ {wait_in_turn}, {{ say = \"APPROVE\" }} ]\n"
    );
    let tasks = ["t-1", "t-2"];
    let repository = studio("studio-stale", &lead, &scenario(&[BUILD]), &tasks, "");
    repository.set(&[("role = \"lead\"", "role = \"lead\"\nallowed_tools = [\"Bash\"]")]);
    let running = repository.start("run");
    let temp = repository.layout().temp_of_seat(&kernel::rooms::Seat::Architect);
    let token = |number: usize| {
        wait("the token of a reply", || {
            let tokens = std::fs::read_to_string(temp.join("tokens")).unwrap_or_default();
            tokens.lines().nth(number - 1).map(str::to_owned)
        })
    };
    let first = token(1);
    for task in tasks {
        repository.wait_task(task, "REVIEW");
    }
    // While its reply runs, the token is good: what is no answer to a review is refused for that reason alone.
    let no_answer = repository.post(&first, "/architect/answer", &json!({ "answer": "answer", "text": "x" }));
    assert!(no_answer.contains("\"accepted\":false"), "{no_answer}");
    repository.let_in_seat("go-1");
    let second = token(2);
    assert_ne!(first, second);
    let in_hand = repository.json("architect")["request"].clone();
    let task = in_hand["task"].as_str().expect("a review").to_owned();
    let refused =
        repository.post(&first, "/architect/answer", &json!({ "answer": "approve", "text": "fine" }));
    assert!(refused.starts_with("HTTP/1.1 401 "), "it ended with its reply: {refused}");
    let mut command = repository.command("mcp");
    command.env("ADJ_TOKEN", &first);
    let mut client = crate::mcp::Client::initialized(command);
    let (error, text, _) = client.call("review_decision", json!({ "approve": true, "note": "fine" }));
    assert!(error, "{text}");
    assert_eq!(repository.task(&task)["status"], "REVIEW", "nothing was decided");
    assert_eq!(repository.json("architect")["request"]["id"], in_hand["id"]);
    repository.let_in_seat("go-2");
    repository.wait_task(&task, "DONE");
    running.stop();
    repository.check(&tasks, TESTS);
}
