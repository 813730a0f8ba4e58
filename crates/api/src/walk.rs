//! Every row of the table, asked by everybody and with nonsense.

use super::fake::Running;
use super::operation::{Operation, Who};
use super::routes;
use super::tests::TestAccess;
use super::*;
use kernel::config::Role;
use schemars::generate::SchemaSettings;
use serde_json::json;
use std::fmt::Write;

/// What the names in a path stand for: something of the caller's own, or of somebody else's.
struct Names {
    task: &'static str,
    worker: &'static str,
    run: &'static str,
    approval: String,
    request: String,
    channel: &'static str,
}

/// Two tasks, each with a worker and a run; where questions are wanted, both have one, and wait for it without their
/// worker. An agent that asks is at work on the first.
struct Scene {
    access: TestAccess,
    own: Names,
    others: Names,
}

impl Scene {
    fn new(asking: bool) -> Scene {
        let access = TestAccess::with_fleet(Running::default());
        let done = |path: &str, body: Value| {
            let (status, answer) = access.post(path, body);
            assert!(status < 300, "{path}: {answer}");
        };
        for (task, worker) in [("c-1", "A"), ("c-2", "B")] {
            done("/tasks", json!({"id": task, "title": "x"}));
            done("/workers", json!({"name": worker}));
            done(&format!("/workers/{worker}/assign"), json!({"task": task}));
            if asking {
                let question = json!({"to": "NEEDS_APPROVAL", "cause": "escalation", "feedback": "May I?"});
                done(&format!("/tasks/{task}/transitions"), question);
            }
        }
        let (_, asked) = access.get("/approvals");
        let approval = |task: &str| {
            let asked = asked["items"].as_array().unwrap().iter().find(|asked| asked["task"] == task);
            asked.map(|asked| asked["id"].as_str().unwrap().to_owned()).unwrap_or_default()
        };
        let request = |task: &str| {
            let (_, asked) = access.post("/requests", json!({"task": task, "text": "Which?"}));
            asked["id"].as_str().unwrap().to_owned()
        };
        done("/channels", json!({"name": "ours"}));
        done("/channels/ours/members", json!({"agent": AGENT}));
        done("/channels", json!({"name": "theirs"}));
        let names = |task, worker, run, channel| {
            let (approval, request) = (approval(task), request(task));
            Names { task, worker, run, approval, request, channel }
        };
        let (own, others) = (names("c-1", "A", "c-1.1", "ours"), names("c-2", "B", "c-2.1", "theirs"));
        Scene { access, own, others }
    }

    fn ask(&self, route: &Operation, names: &Names, caller: &Caller, body: Value) -> (u16, Value) {
        let path: Vec<String> = route
            .path
            .split('/')
            .map(|part| match part {
                "{task}" => names.task.to_owned(),
                "{worker}" => names.worker.to_owned(),
                "{run}" => names.run.to_owned(),
                "{approval}" => names.approval.clone(),
                "{agent}" => AGENT.to_owned(),
                "{request}" => names.request.clone(),
                "{channel}" => names.channel.to_owned(),
                "{on}" => "c-9".to_owned(),
                "{effect}" => "e1".to_owned(),
                "{spec}" => "login".to_owned(),
                "{prompt}" => "init".to_owned(),
                "{machine}" => "task".to_owned(),
                part => part.to_owned(),
            })
            .collect();
        let request = self.access.request(route.method, &path.join("/"), body);
        let Some(role) = caller.role else { return self.access.answer(&request) };
        let run =
            self.access.owner.handle().world().runs.values().find(|run| run.task.as_str() == "c-1").cloned();
        let run = run.expect("the first task has a run");
        let actor = Actor::Agent { name: run.agent.clone(), role };
        if caller.in_channel {
            let channel = "ours".parse().unwrap();
            let seat = Some(Seat::Room { channel, agent: run.agent.clone() });
            return self.access.answer(&Request { actor, seat, ..request });
        }
        self.access.answer(&Request { actor, run: Some(run.id.clone()), ..request })
    }
}

struct Caller {
    name: &'static str,
    /// `None`: a person.
    role: Option<Role>,
    /// An agent's token is for its turn in `ours`, and else for its run on `c-1`.
    in_channel: bool,
}

const CALLERS: [Caller; 5] = [
    Caller { name: "person", role: None, in_channel: false },
    Caller { name: "lead", role: Some(Role::Lead), in_channel: false },
    Caller { name: "specialist", role: Some(Role::Specialist), in_channel: false },
    Caller { name: "intern", role: Some(Role::Intern), in_channel: false },
    Caller { name: "lead in its turn", role: Some(Role::Lead), in_channel: true },
];

/// The agent of both tasks.
const AGENT: &str = "coder";

/// What an operation needs to come as far as the rules, where that is more than any value for each member that it requires.
fn body(operation: &Operation) -> Value {
    match operation.path {
        "/tasks/{task}" => json!({"title": "y"}),
        "/tasks/{task}/transitions" => json!({"to": "CANCELED", "decision": "no"}),
        "/requests/{request}/answer" => json!({"text": "y"}),
        "/specs" => {
            json!({"id": "login", "title": "y", "text": "y", "stories": [{"key": "a", "title": "A"}]})
        }
        "/architect/answer" => json!({"answer": "approve"}),
        "/own/plan" => json!({"steps": ["a", "b", "c"]}),
        "/runs/{run}/events" => json!({"type": "PAUSE", "reason": "user_input"}),
        "/salvage/restore" => json!({"id": "c-1/e1"}),
        _ => {
            let settings = SchemaSettings::draft2020_12().for_deserialize();
            let mut schemas = settings.with(|settings| settings.inline_subschemas = true).into_generator();
            sample(&(operation.body)(&mut schemas).to_value())
        }
    }
}

/// The least that a schema takes.
fn sample(schema: &Value) -> Value {
    // Words with a comment each are forms with one value each.
    if let Some(form) = schema["oneOf"].as_array().and_then(|forms| forms.first()) {
        return sample(form);
    }
    let words = schema["enum"].as_array().and_then(|words| words.first());
    match (words.or(schema.get("const")), schema["type"].as_str()) {
        (Some(word), _) => word.clone(),
        (None, Some("object")) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let member = |name: &str| match name {
                "task" => json!("c-2"),
                "on" => json!("c-9"),
                "agent" => json!(AGENT),
                name => sample(&schema["properties"][name]),
            };
            required.map(|name| (name.to_owned(), member(name))).collect()
        }
        (None, Some("boolean")) => json!(true),
        (None, Some("integer" | "number")) => json!(1),
        (None, Some("array")) => json!([]),
        _ => json!("y"),
    }
}

/// A worker that already has a task gets no other, for every caller.
fn needs_question(path: &str) -> bool {
    path.contains("{approval}") || path.ends_with("/assign")
}

/// Where the operations begin in `docs/permissions.md`. What stands before it is written by the kernel's tests.
const MARK: &str = "<!-- Written by `ADJ_WRITE_DOCS=1 cargo test --workspace --lib walk`. -->";
const HEAD: &str = "\
## Operations

Whom the rules refuse for who they are and what their token is for, where an [operation](api.md) leaves it to the rules. Each was asked by a
person and by agents with a token for a run or for a turn in a channel, about what is their own and about what is others'.

| operation | refused |
| --- | --- |
";

#[test]
fn a_token_for_reading_reads_everything_and_changes_nothing() {
    let scene = Scene::new(true);
    for route in routes::all() {
        let path = route.path.replace("{task}", "c-1").replace("{worker}", "A").replace("{run}", "c-1.1");
        let request = scene.access.request(route.method, &path, body(route));
        let (status, answer) = scene.access.answer(&Request { reads_only: true, ..request });
        let refused = (status, &answer["code"]) == (403, &json!("READ_ONLY"));
        assert_eq!(refused, route.method != Method::Get, "{} {}: {answer}", route.method.name(), route.path);
    }
}

#[test]
fn every_route_is_open_to_whom_its_row_says_and_to_nobody_else() {
    let mut ruled = String::new();
    // What is only read leaves the scene as it is.
    let reading = Scene::new(true);
    for route in routes::all() {
        // Refused for what is their own, and for what is not.
        let mut refused: Vec<(&str, [bool; 2])> = Vec::new();
        for caller in &CALLERS {
            refused.push((caller.name, [false; 2]));
            for own in [true, false] {
                let fresh = (route.method != Method::Get).then(|| Scene::new(needs_question(route.path)));
                let scene = fresh.as_ref().unwrap_or(&reading);
                let names = if own { &scene.own } else { &scene.others };
                let body = if route.method == Method::Get { Value::Null } else { body(route) };
                let (status, answer) = scene.ask(route, names, caller, body);
                let asked = format!("{} {} by {} (own: {own})", route.method.name(), route.path, caller.name);
                assert!(status != 400 && status != 401, "{asked}: {answer}");
                let may = match route.who {
                    Who::Everyone | Who::ItsPart => true,
                    Who::People => caller.role.is_none(),
                    Who::ReadsTask
                    | Who::ReadsWork
                    | Who::ReadsWorker
                    | Who::ReadsRun
                    | Who::ReadsApproval
                    | Who::ReadsRequest => caller.role.is_none() || own && !caller.in_channel,
                    Who::ReadsChannel => caller.role.is_none() || own && caller.in_channel,
                    Who::Kernel => {
                        let last = refused.last_mut().expect("it was just pushed");
                        last.1[usize::from(!own)] = status == 403;
                        continue;
                    }
                };
                assert_eq!(status != 403, may, "{asked}: {status} {answer}");
            }
        }
        if route.who == Who::Kernel {
            let of = |refused: [bool; 2]| match refused {
                [true, true] => Some(""),
                [false, true] => Some(" of others"),
                [true, false] => Some(" of its own"),
                [false, false] => None,
            };
            let agents = &refused[1..];
            let refused = match of(agents[0].1) {
                Some(what)
                    if refused[0].1 == [false; 2] && agents.iter().all(|(_, it)| of(*it) == Some(what)) =>
                {
                    format!("every agent{what}")
                }
                _ => {
                    let named = refused.iter().filter_map(|(name, it)| Some(format!("{name}{}", of(*it)?)));
                    let named = named.collect::<Vec<_>>().join(", ");
                    if named.is_empty() { "nobody".to_owned() } else { named }
                }
            };
            let _ = writeln!(ruled, "| `{} {}` | {refused} |", route.method.name(), route.path);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");
    let there = std::fs::read_to_string(path).expect("the page is there");
    let (before, _) = there.split_once(MARK).expect("the page has the mark where the operations begin");
    let page = format!("{before}{MARK}\n{HEAD}{ruled}");
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/permissions.md is not what the rules say; ADJ_WRITE_DOCS=1 cargo test --workspace --lib walk writes it:\n{}",
        super::reference::diff::diff(&there, &page)
    );
}

#[test]
fn an_agent_is_told_its_own_part_and_of_others_what_stands_on_the_board() {
    let scene = Scene::new(true);
    let read = |path: &str, names: &Names| {
        let route = routes::all().find(|route| route.method == Method::Get && route.path == path).unwrap();
        scene.ask(route, names, &CALLERS[3], Value::Null).1
    };
    let has = |answer: &Value, member: &str| answer.get(member).is_some();
    for (path, hidden) in [("/tasks/{task}", "body"), ("/workers/{worker}", "session")] {
        assert!(has(&read(path, &scene.own), hidden), "{path}");
        assert!(!has(&read(path, &scene.others), hidden), "{path}");
    }
    let tasks_of = |path: &str| {
        let items = read(path, &scene.own)["items"].as_array().unwrap().clone();
        items.into_iter().map(|item| item["task"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(tasks_of("/approvals"), ["c-1"]);
    assert_eq!(tasks_of("/runs"), ["c-1"]);
    let workers = read("/workers", &scene.own);
    let whole: Vec<bool> =
        workers["items"].as_array().unwrap().iter().map(|item| has(item, "session")).collect();
    assert_eq!(whole, [true, false], "{workers}");
}

#[test]
fn nonsense_is_refused_by_every_route_and_the_next_request_is_fine() {
    let scene = Scene::new(true);
    let mut schemas = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let deep = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
    for route in routes::all() {
        let mut bodies =
            vec![json!("x"), json!(3), json!(true), json!([]), json!([{}]), json!({"zz": 1}), deep.clone()];
        let schema = (route.body)(&mut schemas).to_value();
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let members = schemas.definitions().get(name).and_then(|schema| schema["properties"].as_object());
        // What a tool is given has any names.
        let members = members.into_iter().flatten().filter(|(name, _)| name.as_str() != "input");
        for member in members {
            let mut whole = body(route);
            whole[member.0] = json!({"zz": [1]});
            bodies.push(whole);
        }
        for body in bodies {
            let (status, answer) = scene.ask(route, &scene.own, &CALLERS[0], body.clone());
            let asked = format!("{} {} with {body}", route.method.name(), route.path);
            assert_eq!(status, 400, "{asked}: {answer}");
        }
        assert_eq!(scene.access.get("/tasks").0, 200, "after {}", route.path);
    }
}

/// Whichever comes first would hide the other.
#[test]
fn no_two_rows_answer_the_same_request() {
    let all: Vec<&Operation> = routes::all().collect();
    for (index, route) in all.iter().enumerate() {
        let same = |other: &&&Operation| {
            let parts = |path: &'static str| path.split('/').collect::<Vec<_>>();
            let (own, theirs) = (parts(route.path), parts(other.path));
            let open = |part: &str| part.starts_with('{');
            route.method == other.method
                && own.len() == theirs.len()
                && own.iter().zip(&theirs).all(|(a, b)| a == b || open(a) || open(b))
        };
        let twin = all[index + 1..].iter().find(same);
        assert!(twin.is_none(), "{} and {}", route.path, twin.map_or("", |twin| twin.path));
    }
}
