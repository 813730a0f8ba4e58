//! Runs of the fleet's agents that people start, pause, resume and abort.

use super::Repository;
use super::background::wait;
use super::policies::scenario;
use serde_json::json;

/// Waits in its first step until the file `go` is there, with something written and not committed.
const HELD: &str = r#"{ write = "{task}.txt", text = "uncommitted\n" }, { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { commit = "Do {task}" }, { done = true }"#;

/// At work, with the file written.
fn at_work(repository: &Repository) -> String {
    let name = repository.wait_worker("t-1", "working");
    wait("the uncommitted file", || {
        (!repository.read(&repository.tree(&format!("{name}-t-1/t-1.txt"))).is_empty()).then_some(())
    });
    name
}

#[test]
fn a_paused_run_has_no_agent_until_a_person_resumes_it() {
    let repository = Repository::new("runs-pause", &scenario(&[HELD, HELD]), &["t-1"]);
    let fleet = repository.start("run");
    at_work(&repository);
    let paused = repository.json("pause t-1");
    assert_eq!((&paused["id"], &paused["state"]), (&json!("t-1.1"), &json!("paused")), "{paused}");
    fleet.wait_for("adj resume t-1.1, or adj abort t-1.1");
    wait("its agent to be gone", || repository.strays().is_empty().then_some(()));
    let turns = paused["currentTurn"].clone();
    let list = repository.json("waiting");
    assert_eq!((&list[0]["kind"], &list[0]["task"]), (&json!("paused_run"), &json!("t-1")));
    let shown = repository.ok("waiting");
    assert!(shown.contains("→ adj resume t-1.1 ") && shown.contains("→ adj abort t-1.1 "), "{shown}");
    assert!(repository.ok("why t-1").contains("adj resume t-1.1"), "{}", repository.ok("why t-1"));
    assert!(repository.ok("runs --task t-1").contains("paused (user_input)"));

    // Whatever its step waited for is there, and nobody goes on.
    repository.go("t-1");
    repository.ticket("t-2", &[]);
    repository.commit("Another ticket");
    repository.go("t-2");
    fleet.wait_for("t-2 landed");
    let still = repository.json("runs --task t-1");
    assert_eq!((&still[0]["state"], &still[0]["currentTurn"]), (&json!("paused"), &turns));

    repository.ok("resume t-1 --max-turns 60");
    fleet.wait_for("t-1 landed");
    assert_eq!(repository.ok("waiting"), "nothing waits for you\n");
    let runs = repository.json("runs --task t-1");
    assert_eq!(
        (&runs[0]["state"], &runs[0]["maxTurns"], runs.as_array().map(Vec::len)),
        (&json!("completed"), &json!(60), Some(1))
    );
    fleet.stop();
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

#[test]
fn an_aborted_run_leaves_its_work_saved_its_worker_idle_and_its_task_blocked() {
    let repository = Repository::new("runs-abort", &scenario(&[HELD, HELD]), &["t-1"]);
    let fleet = repository.start("run");
    let name = at_work(&repository);
    let aborted = repository.ok(&format!("abort {name} --reason enough"));
    assert!(aborted.starts_with("t-1.1  idle"), "{aborted}");
    let task = repository.wait_task("t-1", "BLOCKED");
    assert_eq!(task["blockReason"], "manual");
    wait("its agent to be gone", || repository.strays().is_empty().then_some(()));
    let idle = repository
        .json("ps")
        .as_array()
        .expect("workers")
        .iter()
        .any(|worker| worker["name"] == name.as_str() && worker["status"] == "idle");
    assert!(idle, "{}", repository.ok("ps"));
    wait("its work to be saved", || repository.ok("salvage list").contains("t-1").then_some(()));
    repository.refused("pause t-1");
    repository.go("t-1");
    repository.ok("retry t-1");
    fleet.wait_for("t-1 landed");
    fleet.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn an_agent_is_started_on_a_task_with_a_worker_of_its_own_whether_a_fleet_runs_or_not() {
    let write = r#"{ write = "{task}.txt", text = "x\n" }, { commit = "Do {task}" }, { done = true }"#;
    let repository = Repository::new("runs-start", &scenario(&[write]), &["t-1"]);
    let other = "[agents.other]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\n[test]";
    repository.set(&[("[test]", other), ("workers = 2", "workers = 1")]);
    let started = repository.adj("start other t-1");
    assert_eq!((started.code, started.stdout.as_str()), (0, "t-1.1  starting  A\n"), "{}", started.stderr);
    assert!(started.stderr.contains("`adj run` starts it"), "{}", started.stderr);
    let refused = repository.refused("start player t-1");
    assert!(refused.contains("is under way on `t-1`") && refused.contains("adj abort t-1.1"), "{refused}");
    let fleet = repository.start("run");
    fleet.wait_for("t-1 landed");
    repository.ok("task add Two --id t-2 --agent player");
    fleet.wait_for("t-2 landed");
    fleet.stop();
    let agents: Vec<_> =
        repository.json("runs").as_array().expect("runs").iter().map(|run| run["agent"].clone()).collect();
    assert_eq!(agents, [json!("other"), json!("player")]);
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn the_audit_of_a_worker_s_run_lists_what_ran_and_what_was_refused() {
    let steps = r#"{ write = "no.txt", text = "x\n" }, { run = "echo x > {task}.txt; git add .; git commit -qm Do" }, { done = true }"#;
    let repository = Repository::new("runs-tools", &scenario(&[steps]), &["t-1"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nallowed_tools = [\"Bash\"]")]);
    repository.ok("run --until-idle");
    let calls = repository.json("tools t-1.1");
    let told: Vec<_> = calls
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| (call["tool"].clone(), call["status"].clone(), call["code"].clone()))
        .collect();
    let refused = (json!("Write"), json!("error"), json!("AGENT_TOOL_NOT_ALLOWED"));
    assert_eq!(told, [refused, (json!("Bash"), json!("complete"), json!(null))], "{calls}");
    assert_eq!(
        (&calls[0]["input"]["file_path"], &calls[0]["actor"]),
        (&json!("no.txt"), &json!("system for player"))
    );
    assert!(repository.ok("tools t-1").contains("AGENT_TOOL_NOT_ALLOWED"));
}

#[test]
fn a_run_is_watched_from_its_beginning_to_its_end_and_read_as_a_durable_stream() {
    let repository = Repository::new("runs-watch", &scenario(&[HELD]), &["t-1"]);
    let fleet = repository.start("run --serve --port 0");
    at_work(&repository);
    let watching = repository.command("watch t-1").stdout(std::process::Stdio::piped()).spawn().unwrap();
    repository.go("t-1");
    fleet.wait_for("t-1 landed");
    let seen = watching.wait_with_output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    let names: Vec<&str> = seen.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!((names.first(), names.last()), (Some(&"agent:starting"), Some(&"agent:cleanup")), "{seen}");
    assert!(names.contains(&"state:update") && names.contains(&"agent:completed"), "{seen}");

    let url = repository.json("url")["url"].as_str().unwrap().to_owned();
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let token = repository.read(&repository.state("token"));
    let ask = |line: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&host).unwrap();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    };
    let (head, body) = ask("GET /v1/stream/runs/t-1.1?offset=-1");
    let told: Vec<serde_json::Value> = serde_json::from_str(&body).unwrap();
    let types = told.iter().map(|told| told["type"].as_str().unwrap());
    let types: Vec<&str> = types.filter(|name| *name != "stream:token").collect();
    assert_eq!(types, names, "the stream has what was watched");
    assert!(head.contains("stream-up-to-date: true") && head.contains("stream-closed: true"), "{head}");
    let next = head.split("stream-next-offset: ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(ask(&format!("GET /v1/stream/runs/t-1.1?offset={next}")).1, "[]");
    for line in ["POST /v1/stream/runs/t-1.1", "DELETE /v1/stream/log", "PUT /v1/stream/tasks/new"] {
        assert!(ask(line).0.starts_with("http/1.1 403"), "{line}");
    }
    fleet.stop();
}
