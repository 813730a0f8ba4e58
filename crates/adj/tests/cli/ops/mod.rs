//! A server in operation: its numbers, its log as JSON lines, its unit, and whom it tells that a person is needed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod journal;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod service;

pub use super::fleet::Repository;
pub use super::fleet::background::wait;
pub use super::server::Server;

/// An agent that writes a file, commits and says DONE.
pub const SCENARIO: &str = r#"
[[scenario]]
tokens = [100, 20]
cost = 0.25
[[scenario.step]]
do = [{ write = "{task}.txt", text = "done\n" }, { commit = "Write it" }, { done = true }]
"#;

/// A server of a fleet's project; what it prints on stderr goes to a file beside the log.
pub fn serve(here: &Repository, options: &str) -> Server {
    let mut command = here.command(&format!("serve --port 0 --json {options}"));
    command.stderr(std::fs::File::create(here.dir().join(".git/server.err")).unwrap());
    Server::begin(command, &here.state("token"), None)
}

/// The same, once its fleet has brought this task to its end.
pub fn serve_until_done(here: &Repository, options: &str, task: &str) -> Server {
    let server = serve(here, &format!("--run {options}"));
    server.until_moved(task, "DONE");
    server
}
