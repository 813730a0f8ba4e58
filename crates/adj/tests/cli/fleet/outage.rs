//! A model's service goes away in the midst of everything, under a running fleet, and comes back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::Repository;
use super::background::{running, wait};
use super::model_api::{Api, Away, Request, calls};
use serde_json::{Value, json};

/// A repository whose agents all ask one model: `coder` works, `lead` is the architect and reviews, `anna` and `ben` talk.
fn project(name: &str, tickets: &[&str], api: &Api, more: &str) -> Repository {
    let repository = Repository::new(&format!("outage-{name}"), "", tickets);
    let (adj, model) = (env!("CARGO_BIN_EXE_adj"), format!("http://{}", api.address()));
    let mut settings = format!(
        "[fleet]\nagent = \"coder\"\nworkers = 3\nreview = \"architect\"\nstop_timeout = \"1s\"\n\n[test]\ncommand = \"sh tests.sh\"\n\n\
         [architect]\nagent = \"lead\"\n\n[limits]\nhealth_poll = \"1s\"\n\n{more}\n"
    );
    for agent in ["coder", "lead", "anna", "ben"] {
        let role = if agent == "lead" { "lead" } else { "specialist" };
        settings += &format!(
            "[agents.{agent}]\nadapter = \"claude\"\nrole = \"{role}\"\ncommand = [{adj:?}, \"internal\", \"replay\", {model:?}]\n\n"
        );
    }
    repository.write("adjutant.toml", &settings);
    repository.write("login.md", "# Login\n\nPeople sign in with a form.\n");
    repository.commit("Agents");
    repository
}

/// What each says, whenever it is asked.
fn speak(request: &Request) -> Value {
    let prompt = &request.said[0];
    let first = request.said.len() == 1;
    let bash = |command: &str| calls("Bash", json!({ "command": command }));
    let commit = "git add -A && git -c user.name=a -c user.email=a@b.invalid commit -q -m work || true";
    match request.who.as_str() {
        "lead" if prompt.contains("Review the finished work") && first => {
            calls("mcp__adjutant__review_decision", json!({ "approve": true, "note": "fine" }))
        }
        "lead" if prompt.contains("Review the finished work") => json!({ "text": "It is right.\n\nAPPROVE" }),
        "lead" | "anna" | "ben" if first => calls("Read", json!({ "file_path": "tests.sh" })),
        "lead" if request.said.len() == 2 => {
            let stories = json!({ "stories": [
                { "key": "table", "title": "The table" }, { "key": "form", "title": "The form", "dependsOn": ["table"] },
            ] });
            calls("mcp__adjutant__submit_stories", stories)
        }
        "lead" => json!({ "text": "They are on the board." }),
        "anna" | "ben" => json!({ "text": "Here I am." }),
        // Its tests are red, once they are let go on; then it mends that.
        "t-3" if request.before == 0 => {
            let check = r#"echo 'until [ -e "$TMPDIR/go" ] || [ -e mended ]; do sleep 0.05; done; [ -e mended ]' > t-3.check"#;
            bash(&format!("{check}; {commit}"))
        }
        "t-3" if prompt.contains("mended") && first => bash(&format!("touch mended; {commit}")),
        who if first => bash(&format!("echo true > {who}.check; {commit}")),
        _ => json!({ "text": "All is there.\nDONE" }),
    }
}

/// What the log says of the service and of what was begun, in order, up to the moment when it is back.
fn told(repository: &Repository) -> Vec<(i64, String)> {
    let mut told = Vec::new();
    for record in repository.log() {
        let (data, at) = (&record["data"], record["at"].as_i64().unwrap());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let word = match (record["kind"].as_str().unwrap(), data["what"]["effect"].as_str()) {
            ("health_seen", _) if data["healthy"] == true => "back".to_owned(),
            ("health_seen", _) if data["probe"].is_string() => format!("{} tries", text(&data["probe"])),
            ("health_seen", _) => "away".to_owned(),
            (_, Some("start_step")) => format!("{} begins", text(&data["what"]["run"])),
            (_, Some("start_reply")) => format!("{} begins", text(&data["what"]["seat"])),
            _ => continue,
        };
        told.push((at, word));
    }
    let away = told.iter().position(|(_, word)| word == "away").expect("it was away");
    let back = told.iter().position(|(_, word)| word == "back").expect("it is back");
    told.drain(away..=back).collect()
}

/// Whether everything waits: the runs of these tasks, the architect, and whoever has the turn in these rooms.
fn all_wait(repository: &Repository, tasks: &[&str], rooms: &[&str]) -> Option<()> {
    let runs = repository.json("runs");
    let waits = |task: &&str| {
        runs.as_array().unwrap().iter().any(|run| run["task"] == **task && run["state"] == "suspended")
    };
    let turn = |room: &&str| repository.json(&format!("channel status {room}"))["turn"]["state"] == "WAITING";
    let architect = repository.json("architect")["state"] == "architect.SUSPEND";
    (architect && tasks.iter().all(waits) && rooms.iter().all(turn)).then_some(())
}

fn nothing_is_counted_as_an_error(repository: &Repository) {
    assert_eq!(repository.step_errors(), Vec::<String>::new(), "no step has failed");
    let lost = repository.log().iter().filter(|record| record["data"]["kind"] == "announcement").count();
    assert_eq!(lost, 0, "no agent was lost");
    let tried = repository.json("requests --all");
    assert!(
        tried.as_array().unwrap().iter().all(|request| request["tries"].as_u64().unwrap_or(0) == 0),
        "{tried}"
    );
}

/// Two tasks, a room and the architect are in the middle of their work; the tests of a third task turn red meanwhile. One run
/// tries, after one health poll, then two, four; nobody else asks anything, and everything goes on when it has come through.
#[test]
fn a_model_that_goes_away_under_a_fleet_is_tried_by_one_alone_and_nothing_is_lost() {
    let api = Api::that_goes_away(&["t-1", "t-2", "lead", "anna"], Away::Status(529), speak);
    let repository = project("all", &[], &api, "");
    let go = repository.temp("t-3").join("go");
    repository.ticket("t-3", &[]);
    repository.commit("A ticket whose tests wait");
    let fleet = repository.start("run");
    wait("the tests of t-3", || (!running("sh t-3.check").is_empty()).then_some(()));
    for ticket in ["t-1", "t-2"] {
        repository.ticket(ticket, &[]);
    }
    repository.commit("Two more");
    repository.ok("spec submit login.md");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("all four to wait for the model", || all_wait(&repository, &["t-1", "t-2"], &["talk"]));
    repository.write(&go, "");
    wait("t-3, whose tests are red, to wait with them", || all_wait(&repository, &["t-3"], &[]));
    wait("two tries", || (api.in_vain().len() >= 6).then_some(()));
    api.come_back();
    for task in ["t-1", "t-2", "t-3", "login-1", "login-2"] {
        repository.wait_task(task, "DONE");
    }
    wait("the spec to be done", || (repository.json("spec show login")["state"] == "done").then_some(()));
    wait("anna to speak", || repository.ok("channel history talk").contains("Here I am.").then_some(()));
    fleet.stop();

    let mut in_vain = api.in_vain();
    let tries = in_vain.split_off(4);
    in_vain.sort();
    assert_eq!(in_vain, ["anna", "lead", "t-1", "t-2"], "those that were at it when it went away");
    assert!(tries.iter().all(|who| who == "t-1"), "{tries:?}");
    let told = told(&repository);
    let words: Vec<&str> = told.iter().map(|(_, word)| word.as_str()).collect();
    let mut expected = vec!["away"; 4];
    for _ in &tries {
        expected.extend(["t-1.1 tries", "t-1.1 begins", "away"]);
    }
    expected.extend(["t-1.1 tries", "t-1.1 begins", "back"]);
    assert_eq!(words, expected, "a request for each try, and none beside them");
    let polls = told.windows(2).filter(|pair| pair[1].1.ends_with("tries")).map(|pair| pair[1].0 - pair[0].0);
    for (number, waited) in polls.enumerate() {
        assert!(waited >= 1000 << number, "try {number} came {waited} ms after the last failure");
    }
    nothing_is_counted_as_an_error(&repository);
    repository.check_main("sh tests.sh");
}

/// Where no task is at work, the architect goes first, and when it has come through the rooms follow. Nobody asks before the
/// moment that the limit names.
#[test]
fn a_limit_is_waited_for_by_rooms_and_the_architect_of_which_one_goes_first() {
    let limit = Away::Limit { seconds: 2, requests: 4 };
    let api = Api::that_goes_away(&["lead", "anna", "ben"], limit, |request| match request.who.as_str() {
        "lead" if request.said.len() == 2 => {
            calls("mcp__adjutant__spec_feedback", json!({ "text": "Which people?" }))
        }
        _ => speak(request),
    });
    let repository = project("limit", &[], &api, "");
    let fleet = repository.start("run");
    repository.ok("spec submit login.md");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    repository.ok("channel create chat --topic Well? --timeout 10m --add ben");
    for room in ["talk", "chat"] {
        wait("everybody to speak", || {
            repository.ok(&format!("channel history {room}")).contains("Here I am.").then_some(())
        });
    }
    wait("feedback", || (repository.json("spec show login")["state"] == "needs_changes").then_some(()));
    fleet.stop();

    let mut in_vain = api.in_vain();
    assert_eq!(in_vain.pop().as_deref(), Some("lead"), "it goes first, once");
    in_vain.sort();
    assert_eq!(in_vain, ["anna", "ben", "lead"], "those that were at it when the limit was reached");
    let told = told(&repository);
    let words: Vec<&str> = told.iter().map(|(_, word)| word.as_str()).collect();
    let try_of_lead = ["architect tries", "architect begins"];
    let expected = [&["away"; 3][..], &try_of_lead, &["away"], &try_of_lead, &["back"]].concat();
    assert_eq!(words, expected);
    for pair in told.windows(2).filter(|pair| pair[1].1.ends_with("tries")) {
        // The program names the reset in whole seconds.
        assert!(pair[1].0 - pair[0].0 >= 1000, "it is waited for until the limit is reset: {told:?}");
    }
    nothing_is_counted_as_an_error(&repository);
}

/// Where the settings say how the service is asked, nobody tries it: everything goes on when it answers.
#[test]
fn a_model_that_is_asked_for_its_health_is_tried_by_nobody() {
    let api = Api::that_goes_away(&["t-1", "lead", "anna"], Away::Refused, speak);
    let service = format!(
        "[services.model]\nhealth = \"tcp {}\"\nagents = [\"coder\", \"lead\", \"anna\", \"ben\"]\n",
        api.address()
    );
    let repository = project("health", &["t-1"], &api, &service);
    let fleet = repository.start("run");
    repository.ok("spec submit login.md");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("all to wait for the model", || all_wait(&repository, &["t-1"], &["talk"]));
    let polled = |repository: &Repository| repository.events("check_health");
    let before = polled(&repository);
    wait("two looks at its health", || (polled(&repository) >= before + 2).then_some(()));
    api.come_back();
    for task in ["t-1", "login-1", "login-2"] {
        repository.wait_task(task, "DONE");
    }
    wait("anna to speak", || repository.ok("channel history talk").contains("Here I am.").then_some(()));
    fleet.stop();
    let words: Vec<String> = told(&repository).into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, ["away", "away", "away", "back"], "nothing was begun before it was well");
    nothing_is_counted_as_an_error(&repository);
}

/// Nobody tries by itself for an hour; a person does.
#[test]
fn a_person_lets_the_architect_and_a_room_try_a_service_at_once() {
    let api = Api::that_goes_away(&["lead", "anna"], Away::Status(529), speak);
    let repository = project("person", &[], &api, "");
    repository.set(&[("health_poll = \"1s\"", "health_poll = \"1h\"")]);
    let fleet = repository.start("run");
    repository.ok("spec submit login.md");
    repository.ok("channel create talk --topic Well? --timeout 10m --add anna");
    wait("both to wait for the model", || all_wait(&repository, &[], &["talk"]));
    let tried = repository.ok("retry --all");
    assert!(tried.contains("architect  architect.") && tried.contains("anna in talk  turn."), "{tried}");
    wait("both to have tried", || (api.in_vain().len() == 4).then_some(()));
    wait("both to wait again", || all_wait(&repository, &[], &["talk"]));
    api.come_back();
    repository.ok("turn resume talk --as anna");
    wait("anna to speak", || repository.ok("channel history talk").contains("Here I am.").then_some(()));
    // It has come through, so the architect follows.
    for task in ["login-1", "login-2"] {
        repository.wait_task(task, "DONE");
    }
    assert_eq!(api.in_vain().len(), 4);
    fleet.stop();
}

/// The service answers nobody for longer than `limits.suspension`: the run that tries it in between gives up when the one that
/// only waits does, and nothing is called back before the service has answered.
#[test]
fn a_run_that_tries_an_unavailable_service_gives_up_as_soon_as_the_others() {
    let api = Api::that_goes_away(&["t-1", "t-2"], Away::Status(529), speak);
    let repository = project("expires", &["t-1", "t-2"], &api, "");
    repository.set(&[
        ("health_poll = \"1s\"", "health_poll = \"1s\"\nsuspension = \"4s\""),
        ("review = \"architect\"", "review = \"auto\""),
    ]);
    let fleet = repository.start("run");
    fleet.wait_for("has not answered yet; the next run tries it");
    let expired = |run: &str| {
        let expires = |record: &Value| record["data"]["input"]["type"] == "SUSPEND_TIMEOUT";
        repository.log().iter().any(|record| record["data"]["id"] == run && expires(record))
    };
    assert!(expired("t-1.1") && expired("t-2.1"), "{:#?}", repository.json("runs"));
    let tried = api.in_vain().iter().filter(|who| *who == "t-1").count();
    assert!(tried >= 2, "t-1 tried it in between");
    assert!(!fleet.lines().contains("is available again"), "{}", fleet.lines());
    api.come_back();
    for task in ["t-1", "t-2"] {
        repository.wait_task(task, "DONE");
    }
    let lines = fleet.stop();
    assert_eq!(lines.matches("is available again").count(), 1, "{lines}");
    repository.check_main("sh tests.sh");
}
