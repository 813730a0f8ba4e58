//! The way from a tool to the project: the same requests as REST, answered by the same handlers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::{Caller, Tokens, hide};
use api::Failure;
use api::{self, Control, Host, Method, Request, Site};
use serde_json::Value;

/// What a tool asks. Who asks is known to the door.
pub struct Asked {
    pub method: Method,
    /// After `/api/v1`.
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    /// `Null` where there is none.
    pub body: Value,
}

/// Answers what tools ask. It may block: whoever calls it is on a thread of its own.
pub trait Door: Send + Sync + 'static {
    fn ask(&self, asked: Asked) -> Result<Value, Failure>;
}

/// The door of the process that owns the project, for a caller whose token it has seen.
pub struct Inside {
    pub project: Arc<dyn api::Project + Send + Sync>,
    pub host: Arc<dyn Host>,
    pub control: Arc<dyn Control>,
    pub tokens: Arc<Tokens>,
    pub caller: Caller,
    /// Set when the server stops: nobody waits for anything any more.
    pub stopping: Arc<AtomicBool>,
}

impl Door for Inside {
    fn ask(&self, asked: Asked) -> Result<Value, Failure> {
        let Asked { method, path, query, mut body } = asked;
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
        let site = Site {
            project: &*self.project,
            host: &*self.host,
            control: Some(&*self.control),
            given_up: Some(&self.stopping),
        };
        let answer = api::answer(&site, &request);
        match answer.status {
            ..400 => Ok(answer.body),
            status => Err(Failure::of_problem(status, answer.body)),
        }
    }
}
