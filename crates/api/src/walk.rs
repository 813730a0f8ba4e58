//! Every row of the table, asked by everybody and with nonsense.

use super::fake::Running;
use super::routes::{self, Route, Who};
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

    fn ask(&self, route: &Route, names: &Names, caller: &Caller, body: Value) -> (u16, Value) {
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

/// What a route needs to come as far as the rules.
fn body(path: &str) -> Value {
    match path {
        "/tasks" => json!({"title": "y"}),
        "/tasks/{task}" => json!({"title": "y"}),
        "/tasks/{task}/transitions" => json!({"to": "CANCELED", "decision": "no"}),
        "/tasks/{task}/comments" => json!({"text": "y"}),
        "/tasks/{task}/dependencies" => json!({"on": "c-9"}),
        "/tasks/{task}/review" => json!({"approve": true}),
        "/approvals/{approval}/decision" => json!({"approve": true}),
        "/requests" => json!({"text": "y"}),
        "/requests/{request}/answer" => json!({"text": "y"}),
        "/specs" => {
            json!({"id": "login", "title": "y", "text": "y", "stories": [{"key": "a", "title": "A"}]})
        }
        "/architect/answer" => json!({"answer": "approve"}),
        "/own/plan" => json!({"steps": ["a", "b", "c"]}),
        "/own/approvals" => json!({"tool": "Bash"}),
        "/workers/{worker}/assign" => json!({"task": "c-2"}),
        "/agents" => json!({"name": AGENT}),
        "/runs/{run}/tokens" => json!({"text": "I look."}),
        "/channels" => json!({"name": "talk"}),
        "/channels/{channel}/members" => json!({"agent": AGENT}),
        "/channels/{channel}/messages" => json!({"text": "y"}),
        "/channels/{channel}/turn" => json!({"action": "complete"}),
        "/channels/{channel}/decision" => json!({"approve": true}),
        "/runs" => json!({"task": "c-2"}),
        "/runs/{run}/events" => json!({"type": "PAUSE", "reason": "user_input"}),
        "/salvage/restore" => json!({"id": "c-1/e1"}),
        "/tokens" => json!({"name": "ann", "role": "reader"}),
        _ => json!({}),
    }
}

/// A worker that has its task already is not given another, whoever asks.
fn needs_question(path: &str) -> bool {
    path.contains("{approval}") || path.ends_with("/assign")
}

/// Whom the rules refuse for who they are and what their token is for: for everything, or only for what is others'.
const RULES: &str = "\
POST /tasks: intern\n\
PATCH /tasks/{task}: lead of others, specialist, intern, lead in its turn\n\
POST /tasks/{task}/transitions: every agent\n\
POST /tasks/{task}/comments: lead of others, specialist of others, intern of others, lead in its turn\n\
POST /tasks/{task}/dependencies: lead of others, specialist, intern, lead in its turn\n\
DELETE /tasks/{task}/dependencies/{on}: lead of others, specialist, intern, lead in its turn\n\
POST /tasks/{task}/accept: every agent\n\
POST /tasks/{task}/retry: every agent\n\
POST /tasks/{task}/restart: every agent\n\
POST /tasks/{task}/review: every agent\n\
POST /approvals/{approval}/decision: every agent\n\
POST /requests: nobody\n\
POST /requests/{request}/answer: every agent\n\
POST /requests/{request}/receipt: every agent\n\
POST /specs: every agent\n\
POST /architect/recover: every agent\n\
POST /architect/answer: person, lead, specialist, intern, lead in its turn\n\
POST /own/plan: person\n\
POST /own/claim: person\n\
POST /own/approvals: person\n\
POST /workers: every agent\n\
POST /workers/{worker}/assign: every agent\n\
POST /workers/{worker}/kill: every agent\n\
POST /workers/{worker}/retry: every agent\n\
POST /workers/{worker}/cleanup: every agent\n\
POST /workers/{worker}/clean: every agent\n\
POST /workers/{worker}/merge: every agent\n\
POST /runs: person, lead, specialist, intern, lead in its turn\n\
POST /runs/{run}/events: every agent\n\
POST /runs/{run}/tokens: person, lead, specialist, intern, lead in its turn\n\
POST /agents: every agent\n\
POST /agents/{agent}/connect: every agent\n\
PUT /agents/{agent}/heartbeat: every agent\n\
POST /agents/{agent}/disconnect: every agent\n\
POST /agents/{agent}/disable: every agent\n\
POST /agents/{agent}/enable: every agent\n\
POST /channels: every agent\n\
POST /channels/{channel}/close: every agent\n\
POST /channels/{channel}/members: every agent\n\
DELETE /channels/{channel}/members/{agent}: every agent\n\
POST /channels/{channel}/messages: lead, specialist, intern, lead in its turn of others\n\
POST /channels/{channel}/turn: lead, specialist, intern, lead in its turn of others\n\
POST /channels/{channel}/decision: lead, specialist, intern, lead in its turn of others\n\
POST /fleet/start: every agent\n\
POST /fleet/stop: every agent\n\
POST /fleet/test-main: every agent\n";

#[test]
fn a_token_for_reading_reads_everything_and_changes_nothing() {
    let scene = Scene::new(true);
    for route in routes::all() {
        let path = route.path.replace("{task}", "c-1").replace("{worker}", "A").replace("{run}", "c-1.1");
        let request = scene.access.request(route.method, &path, body(route.path));
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
                let body = if route.method == Method::Get { Value::Null } else { body(route.path) };
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
            let _ = writeln!(ruled, "{} {}: {refused}", route.method.name(), route.path);
        }
    }
    assert!(ruled == RULES, "what the rules say has changed; it is now:\n{ruled}");
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
            let mut whole = body(route.path);
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
    let all: Vec<&Route> = routes::all().collect();
    for (index, route) in all.iter().enumerate() {
        let same = |other: &&&Route| {
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
