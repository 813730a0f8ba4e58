//! What was asked, in words of which there are few.

use std::sync::Arc;

use http::Method;

use super::super::{HttpServer, Transport};
use super::recorder::Word;
use api;

/// What is at an address beside the table of routes.
const PAGES: &[&str] = &[
    "/",
    "/docs",
    "/enter",
    "/enter.js",
    "/healthz",
    "/mcp",
    "/metrics",
    "/openapi.json",
    "/readyz",
    "/session",
    "/style.css",
];
/// A project's streams, each under a name that whoever made it has chosen.
const STREAMS: &str = "/v1/stream/";

/// The name of the project that a path leads to, and the path within it. Of no project: no name.
pub fn project_of<'h>(server: &'h HttpServer, path: &'h str) -> (&'h str, &'h str) {
    if let (Transport::Tcp(_), Some(rest)) = (&server.transport, path.strip_prefix("/p/")) {
        let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
        let name = server.projects.get_key_value(name).map_or("", |(name, _)| name.as_str());
        // The slash stays with what follows it.
        let path = if below.is_empty() { "/" } else { &rest[rest.len() - below.len() - 1..] };
        return (name, path);
    }
    let only = server.projects.keys().next().filter(|_| server.projects.len() == 1);
    (only.map_or("", String::as_str), path)
}

/// The row's path, with braces in place of names.
pub fn template(path: &str) -> &'static str {
    if let Some(path) = path.strip_prefix("/api/v1") {
        return api::routes::template(path).unwrap_or("other");
    }
    if path.starts_with(STREAMS) {
        return "/v1/stream/{stream}";
    }
    PAGES.iter().find(|page| **page == path).copied().unwrap_or("other")
}

pub fn method(method: &Method) -> &'static str {
    const KNOWN: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.iter().find(|known| **known == method.as_str()).copied().unwrap_or("other")
}

pub fn status(status: u16) -> Word {
    match status {
        200 => "200".into(),
        201 => "201".into(),
        304 => "304".into(),
        status => Word::Shared(Arc::from(status.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_anything_is_left_in_a_route() {
        assert_eq!(template("/api/v1/tasks/t-1"), "/tasks/{task}");
        assert_eq!(template("/api/v1/tasks/t-1/dependencies/t-2"), "/tasks/{task}/dependencies/{on}");
        assert_eq!(template("/v1/stream/t-1.1"), "/v1/stream/{stream}");
        assert_eq!(template("/metrics"), "/metrics");
        for other in ["/api/v1/t-1", "/api/v1", "/t-1", "", "/docs/x"] {
            assert_eq!(template(other), "other", "{other}");
        }
    }

    #[test]
    fn a_method_that_nobody_knows_is_another() {
        assert_eq!(method(&Method::PATCH), "PATCH");
        assert_eq!(method(&Method::from_bytes(b"X-1").unwrap_or_default()), "other");
    }
}
