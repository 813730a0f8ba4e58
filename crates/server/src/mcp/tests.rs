//! The tools over HTTP, as the server mounts them.

#[path = "../../../api/src/fake.rs"]
mod fake;

use super::*;
use fake::{Fake, Running};
use http_body_util::BodyExt;
use kernel::Actor;
use kernel::config::Role;
use log::MemoryLog;
use log::owner::Owner;
use serde_json::{Value, json};

const REVISION: &str = "2026-07-28";

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// One request on a connection of its own: status, and the answer as JSON.
async fn post(owner: &Owner, caller: &Caller, revision: &str, message: Value) -> (u16, Value) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service {
        project: Arc::new(owner.handle()),
        host: Arc::new(Fake),
        control: Arc::new(Running::default()),
        tokens: Arc::new(Tokens::open(folder.path()).unwrap()),
        mount: Arc::default(),
        stopping: Arc::default(),
    };
    let (_owner, stopping) = watch::channel(false);
    let mut request = http::Request::post("/mcp")
        .header("host", "127.0.0.1:4600")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", revision)
        .header("mcp-method", message["method"].as_str().unwrap());
    if let Some(name) = message["params"]["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    let request = request.body(Body::from(message.to_string())).unwrap();
    let answer = service.answer(request, caller.clone(), stopping, std::time::Duration::from_secs(30)).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    // Whoever begins a session is answered by a stream.
    let message = text.lines().filter_map(|line| line.strip_prefix("data: {")).next_back();
    let message = message.map_or(text.clone(), |rest| format!("{{{rest}"));
    (status, serde_json::from_str(&message).unwrap_or_else(|_| panic!("{status}: {text}")))
}

fn ask(method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_are_served_over_http_without_a_session_in_both_revisions() {
    let owner = Owner::open(Box::new(MemoryLog::new())).unwrap();
    let ann = Caller::person("ann");
    let new = ask("tools/call", json!({ "name": "create_task", "arguments": { "title": "x" } }));
    let (status, made) = post(&owner, &ann, REVISION, new).await;
    assert_eq!((status, &made["result"]["structuredContent"]["id"]), (200, &json!("t-1")), "{made}");
    let (_, list) = post(&owner, &ann, REVISION, ask("tools/list", json!({}))).await;
    assert_eq!(list["result"]["cacheScope"], "private", "{list}");

    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let (status, answer) = post(&owner, &ann, "2025-11-25", hello).await;
    assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!("2025-11-25")), "{answer}");
    let shown = json!({ "name": "show_task", "arguments": { "task": "t-1" } });
    let shown = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": shown });
    let (_, shown) = post(&owner, &ann, "2025-11-25", shown).await;
    assert_eq!(shown["result"]["structuredContent"]["title"], "x", "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_the_caller_is_whom_the_server_says() {
    let owner = Owner::open(Box::new(MemoryLog::new())).unwrap();
    let intern = Actor::Agent { name: "kid".parse().unwrap(), role: Role::Intern };
    let intern = Caller {
        actor: intern,
        run: Some("c-1.1".parse().unwrap()),
        seat: None,
        reply: None,
        reads_only: false,
        token: None,
        paced: true,
    };
    let (_, list) = post(&owner, &intern, REVISION, ask("tools/list", json!({}))).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "task_done"), "{list}");
    assert!(!tools.iter().any(|tool| tool["name"] == "waiting"), "{list}");
    let call = ask("tools/call", json!({ "name": "waiting", "arguments": {} }));
    let (_, refused) = post(&owner, &intern, REVISION, call).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_among_the_capabilities_is_not_there() {
    let owner = Owner::open(Box::new(MemoryLog::new())).unwrap();
    let ann = Caller::person("ann");
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let (status, answer) = post(&owner, &ann, REVISION, ask(method, json!({}))).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32601)), "{method}: {answer}");
    }
}
