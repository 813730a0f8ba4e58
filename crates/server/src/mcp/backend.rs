//! The way from a tool to the project: the same requests as REST, answered by the same handlers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::{Caller, Tokens, hide};
use api::Failure;
use api::{self, Control, Host, Outgoing, ProjectAccess, Request};
use serde_json::Value;

/// Answers what tools ask. It may block: whoever calls it is on a thread of its own.
pub trait Backend: Send + Sync + 'static {
    fn ask(&self, asked: Outgoing) -> Result<Value, Failure>;
}

/// The backend of the process that owns the project, for a caller whose token it has seen.
pub struct OwnerBackend {
    pub project: Arc<dyn api::Project + Send + Sync>,
    pub host: Arc<dyn Host>,
    pub control: Arc<dyn Control>,
    pub tokens: Arc<Tokens>,
    pub caller: Caller,
    /// Set when the server stops: nobody waits for anything any more.
    pub stopping: Arc<AtomicBool>,
}

impl Backend for OwnerBackend {
    fn ask(&self, asked: Outgoing) -> Result<Value, Failure> {
        let Outgoing { method, path, query, mut body } = asked;
        hide(&mut body, &self.tokens);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let Caller { actor, run, seat, reply, token, reads_only, .. } = self.caller.clone();
        let request = Request {
            method,
            path: format!("/api/v1{path}"),
            query,
            body,
            actor,
            run,
            seat,
            reply,
            reads_only,
            token,
            id: base::clock::unique(),
            at: base::clock::now(),
            x_idempotency_key: None,
            idempotency_key: None,
        };
        let access = ProjectAccess {
            project: &*self.project,
            host: &*self.host,
            control: Some(&*self.control),
            given_up: Some(&self.stopping),
        };
        let answer = api::answer(&access, &request);
        match answer.status {
            ..400 => Ok(answer.body),
            status => Err(Failure::of_problem(status, answer.body)),
        }
    }
}
