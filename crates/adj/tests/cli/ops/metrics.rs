//! `GET /metrics`: what was counted, and that it is counted under few words.

use super::{Repository, SCENARIO, Server, serve, serve_until_done};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The value of the one sample whose name and labels hold all of these.
fn sample(page: &str, parts: &[&str]) -> f64 {
    let fits = |line: &&str| !line.starts_with('#') && parts.iter().all(|part| line.contains(part));
    let found: Vec<&str> = page.lines().filter(fits).collect();
    assert_eq!(found.len(), 1, "{parts:?}: {found:?}\n{page}");
    found[0].rsplit(' ').next().unwrap().parse().unwrap()
}

fn page(server: &Server) -> String {
    let answer = server.get("/metrics");
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    answer.text
}

#[test]
fn what_a_server_did_is_in_its_metrics() {
    let here = Repository::new("metrics", SCENARIO, &["m-1"]);
    let server = serve_until_done(&here, "", "m-1");
    assert_eq!(server.post("/api/v1/tasks/m-1/comments", &json!({"text": "of ours"})).status, 201);
    assert_eq!(server.get("/api/v1/tasks?no-such=1").status, 400);
    assert_eq!(server.ask("GET /metrics", "wrong", &Value::Null).status, 401, "a token is needed");
    let page = page(&server);
    let moved = |from: &str, to: &str| {
        let [from, to] = [format!("from=\"{from}\""), format!("to=\"{to}\"")];
        sample(&page, &["adjutant_transitions_total{", "machine=\"task\"", &from, &to])
    };
    assert_eq!(moved("REVIEW", "DONE"), 1.0);
    assert_eq!(moved("INBOX", "ASSIGNED"), 1.0);
    assert_eq!(sample(&page, &["adjutant_refusals_total{", "BAD_REQUEST"]), 1.0);
    let added = ["method=\"POST\"", "route=\"/tasks/{task}/comments\""];
    assert_eq!(sample(&page, &[&["adjutant_requests_total{", "201"], &added[..]].concat()), 1.0);
    let counted = [&["adjutant_request_duration_seconds_count{"], &added[..]].concat();
    assert_eq!(sample(&page, &counted), 1.0);
    assert_eq!(sample(&page, &["adjutant_tasks{", "\"DONE\""]), 1.0);
    assert_eq!(sample(&page, &["adjutant_tasks{", "\"REVIEW\""]), 0.0, "what there is none of is said too");
    assert_eq!(sample(&page, &["adjutant_waiting{", "\"review\""]), 0.0);
    assert_eq!(sample(&page, &["adjutant_step_duration_seconds_count{", "\"done\""]), 1.0);
    assert!(sample(&page, &["adjutant_cost_dollars{"]) >= 0.25);
    assert!(sample(&page, &["adjutant_tokens_total{", "\"input\""]) >= 100.0);
    assert!(sample(&page, &["adjutant_tokens_total{", "\"output\""]) >= 20.0);
    assert!(sample(&page, &["adjutant_log_append_duration_seconds_count{"]) > 1.0);
    assert!(sample(&page, &["adjutant_events_lag_seconds_count{"]) > 1.0);
    assert!(sample(&page, &["adjutant_log_size_bytes{"]) > 4096.0);
    assert_eq!(sample(&page, &["adjutant_fleet_running{"]), 1.0);
    assert_eq!(sample(&page, &["adjutant_connections{", "\"tcp\""]), 1.0);
    for gauge in ["commands_waiting", "merge_queue_tasks", "events_readers"] {
        assert_eq!(sample(&page, &[&format!("adjutant_{gauge}{{")]), 0.0, "{gauge}");
    }
}

/// An id, a hash, a path or a port as a label would make a new series with every task, until nobody can read them.
#[test]
fn no_label_of_the_metrics_grows_with_the_work() {
    let here = Repository::new("labels", SCENARIO, &["l-1"]);
    let server = serve_until_done(&here, "", "l-1");
    let (task, run) = ("l-1", "l-1.1");
    for path in ["tasks/l-1", "tasks/l-1/why", "runs/l-1.1", "workers/A", "nothing/l-1", "tasks/l-9"] {
        server.get(&format!("/api/v1/{path}"));
    }
    server.get("/somewhere/else?token=secret");
    let page = page(&server);
    let mut words = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, labels)) = line.split_once('{') else { continue };
        for label in labels.rsplit_once('}').unwrap().0.split("\",") {
            let (name, value) = label.split_once("=\"").unwrap();
            words.insert((name.to_owned(), value.trim_end_matches('"').to_owned()));
        }
    }
    let project = here.dir().file_name().unwrap().to_str().unwrap().to_lowercase();
    for (name, value) in &words {
        let few = match name.as_str() {
            "project" => value.is_empty() || *value == project,
            "status" => {
                value.parse::<u16>().is_ok_and(|status| (100..600).contains(&status))
                    || value.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            }
            "le" => value == "+Inf" || value.parse::<f64>().is_ok(),
            "route" => value == "other" || value.starts_with('/'),
            "version" => value == env!("CARGO_PKG_VERSION"),
            _ => value.chars().all(|c| c.is_ascii_alphabetic() || "_ ()".contains(c)),
        };
        let of_the_work = [task, run, "secret"].iter().any(|id| value.contains(id));
        let digits = value.chars().any(|c| c.is_ascii_digit())
            && !matches!(name.as_str(), "project" | "status" | "le" | "version");
        let number = digits && !value.starts_with("/v1/");
        assert!(few && !of_the_work && !number, "{name}={value}");
    }
    assert!(words.contains(&("route".to_owned(), "/tasks/{task}".to_owned())), "{words:?}");
    assert!(words.len() < 200, "{} words", words.len());
}

#[test]
fn all_projects_of_a_server_are_on_one_page_which_agents_do_not_read() {
    let (one, two) = (Repository::new("page-one", SCENARIO, &[]), Repository::new("page-two", SCENARIO, &[]));
    two.ok("task add Wait --id p-1");
    let server = serve(&one, &format!("--project {} --project {}", one.dir().display(), two.dir().display()));
    let page = page(&server);
    for (name, tasks) in server.said["projects"].as_array().unwrap().iter().zip([0.0, 1.0]) {
        let project = format!("project=\"{}\"", name.as_str().unwrap());
        assert_eq!(sample(&page, &["adjutant_tasks{", &project, "\"INBOX\""]), tasks);
    }
    let token = |role: &str| -> String {
        let made = one.ok(&format!("token create --name x --role {role} --json"));
        let made: Value = serde_json::from_str(&made).unwrap();
        made["token"].as_str().unwrap().to_owned()
    };
    assert_eq!(server.ask("GET /metrics", &token("reader"), &Value::Null).status, 200);
    assert_eq!(server.ask("GET /metrics", &token("intern"), &Value::Null).status, 404);
    assert_eq!(server.post("/metrics", &json!({})).status, 404);
}
