//! The way to the durable streams: which path leads there, and what a caller may do with which stream.

use std::sync::Arc;

use http::request::Parts;
use hyper::body::Incoming;
use serde_json::Value;
use streams::Access;

use super::MountedProject;
use super::tokens::Caller;
use crate::response::{Body, Response};
use api::{Method, Problem, Request, history, routes};

/// The part of a path after the streams' prefix, as it was sent.
pub(super) fn stream_path(path: &str) -> Option<&str> {
    let path = match path.strip_prefix("/p/") {
        Some(rest) => &rest[rest.find('/')?..],
        None => path,
    };
    path.strip_prefix("/v1/stream/")
}

/// What a browser asks before a page may use a stream. The answer tells nothing of the stream, and a test suite wants it.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == http::Method::OPTIONS && stream_path(parts.uri.path()).is_some()
}

/// These three come with the token of a wake, which the streams themselves have given out.
pub(super) fn is_of_a_wake(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["__ds", "subscriptions", _, "callback" | "ack" | "release"])
}

pub(super) async fn streamed(
    project: &Arc<MountedProject>,
    path: &str,
    parts: &Parts,
    body: Incoming,
    caller: &Caller,
    name: &str,
) -> Result<Response, Problem> {
    let access = stream_access(project, path, caller)?;
    ask_streams(project, path, parts, body, access, name).await
}

pub(super) async fn ask_streams(
    project: &Arc<MountedProject>,
    path: &str,
    parts: &Parts,
    body: Incoming,
    access: Access,
    name: &str,
) -> Result<Response, Problem> {
    let Some(streams) = &project.services.streams else {
        return Err(Problem::not_found("this process serves no streams").hint("`adj serve` serves them"));
    };
    let request = http::Request::from_parts(parts.clone(), body);
    Ok(streams.answer_to(name, path, request, access).await.map(Body::new))
}

/// People read and write; an agent reads what it may read by the routes, and what others have put there.
fn stream_access(project: &Arc<MountedProject>, path: &str, caller: &Caller) -> Result<Access, Problem> {
    let Caller { actor, run, seat, reply, token, reads_only, .. } = caller.clone();
    if actor.is_human() {
        return Ok(if reads_only { Access::READ } else { Access::ALL });
    }
    let (operation, named) = match path.split_once('/') {
        Some(("runs", id)) => (routes::of_handler(&history::of_run), Some(id)),
        Some(("tasks", id)) => (routes::of_handler(&history::of_task), Some(id)),
        // What is held back from an agent is in there: it reads its channels by the routes and tools, which know that.
        Some(("channels", name)) => {
            let hint = format!("read `/api/v1/channels/{name}/messages`, or use the tool `channel_read`");
            let detail = "only people may read a channel's stream: it contains messages that agents have not received yet";
            return Err(Problem::new(403, "FORBIDDEN", detail).hint(hint));
        }
        Some(("agents", _)) => (routes::of_handler(&history::of_all), None),
        None if path == "log" => (routes::of_handler(&history::events), None),
        _ => return Ok(Access::READ),
    };
    let route = operation.map(|operation| operation.path_with(named)).unwrap_or_default();
    let request = Request {
        method: Method::Get,
        path: format!("/api/v1{route}"),
        query: String::new(),
        body: Value::Null,
        actor,
        run,
        seat,
        reply,
        reads_only,
        token,
        id: 0,
        at: 0,
        x_idempotency_key: None,
        idempotency_key: None,
    };
    routes::check(&project.services.project.world(), &request)?;
    Ok(Access::READ)
}
