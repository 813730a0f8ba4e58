//! A request that is sent again under the same idempotency key gets the response of the first one, whatever happened since.
//!
//! The kernel keeps what it decided, for each caller and key. The response itself is kept in memory for a while; after that, and
//! after a restart, it is made again from the log as it was when the request was decided. So nothing of a response is stored,
//! and nothing is lost with a process.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{Answer, Command, Event, World};
use log::owner::{Folded, SubmitError, VERSION};
use log::{Record, Seq};
use smol_str::SmolStr;

use super::{Call, Problem, Project, ProjectAccess, Request, Response, routes};

/// Responses that are kept in memory, and the largest of them.
const RESPONSES_MAX: usize = 1_024;
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// A log is folded for one replay at a time: it takes as long as a start does.
static FOLDING: Mutex<()> = Mutex::new(());

/// What a keyed request asked of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed {
    /// The scope that the kernel keeps its answer under.
    pub scope: SmolStr,
    /// It was decided before.
    pub replayed: bool,
}

/// The responses that are kept in memory, the oldest first.
#[derive(Default)]
pub struct Responses {
    kept: HashMap<String, Response>,
    order: VecDeque<String>,
}

impl Responses {
    pub fn get(&self, id: &str) -> Option<Response> {
        self.kept.get(id).cloned()
    }

    pub fn keep(&mut self, id: String, response: &Response) {
        if response.body.to_string().len() > RESPONSE_BYTES_MAX {
            return;
        }
        if self.kept.insert(id.clone(), response.clone()).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > RESPONSES_MAX {
            self.order.pop_front().and_then(|oldest| self.kept.remove(&oldest));
        }
    }
}

/// The response that the request gets: its own, or that of the first one under its key.
pub fn respond(
    access: &ProjectAccess,
    request: &Request,
    keyed: Option<Keyed>,
    response: Response,
) -> Response {
    let Some(Keyed { scope, replayed }) = keyed else { return response };
    let key = match (Call::new(access, request).key(), response.status) {
        (Ok(Some(key)), 200..300) => key,
        _ => return response,
    };
    let id = format!("{} {} {scope} {key}", request.method.name(), request.path);
    if !replayed {
        access.host.keep_response(id, &response);
        return response;
    }
    if let Some(kept) = access.host.kept_response(&id) {
        return kept;
    }
    let first = unhindered(|| as_decided(access, request, &scope, &key));
    match first {
        Ok(Some(first)) => {
            access.host.keep_response(id, &first);
            first
        }
        // The log is from before the key was kept, or cannot be read: what is so now is all that there is to say.
        _ => response,
    }
}

/// Does something that takes a while, on whatever thread.
fn unhindered<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

/// The response as it was made of the World that the request had led to.
fn as_decided(
    access: &ProjectAccess,
    request: &Request,
    scope: &str,
    key: &str,
) -> Result<Option<Response>, Problem> {
    let _one = FOLDING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut folded = Folded::default();
    let mut found = None;
    let mut failed = None;
    // A version that did not keep keys by caller has them under the subject alone.
    let subject = scope.split(' ').next().unwrap_or_default();
    access.project.scan(0, &mut |record| {
        let event = match folded.fold_record(record.seq, &record.kind, &record.data, VERSION) {
            Ok(event) => event,
            Err(error) => {
                failed = Some(Problem::from(error));
                return ControlFlow::Break(());
            }
        };
        match event {
            Event::AnswerKept(kept) if kept.key == key && (kept.scope == scope || kept.scope == subject) => {
                found = Some(record.clone());
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    })?;
    if let Some(problem) = failed {
        return Err(problem);
    }
    let Some(record) = found else { return Ok(None) };
    let past = Past { project: access.project, world: Arc::new(folded.world), through: record.seq };
    let access = ProjectAccess { project: &past, host: access.host, control: None, given_up: None };
    let request = Request { at: record.at, ..request.clone() };
    Ok(Some(routes::answer(&Call::new(&access, &request)).unwrap_or_else(Response::from)))
}

/// A project as it was after a record. What is asked of it was decided then.
struct Past<'p> {
    project: &'p dyn Project,
    world: Arc<World>,
    through: Seq,
}

impl Project for Past<'_> {
    fn world(&self) -> Arc<World> {
        self.world.clone()
    }

    fn scan(&self, after: Seq, visit: &mut dyn FnMut(&Record) -> ControlFlow<()>) -> Result<(), Problem> {
        self.project.scan(after, &mut |record| match record.seq > self.through {
            true => ControlFlow::Break(()),
            false => visit(record),
        })
    }

    fn stream_between(&self, stream: &str, after: Seq, through: Seq) -> Result<Vec<Record>, Problem> {
        self.project.stream_between(stream, after, through.min(self.through))
    }

    fn submit(&self, command: Command) -> Result<Answer, SubmitError> {
        Ok(match kernel::handle(&self.world, &command) {
            Ok(commit) => match commit.answer {
                Ok(reply) => Answer::Done(reply),
                Err(refusal) => Answer::Refused(refusal),
            },
            Err(refusal) => Answer::Refused(refusal),
        })
    }

    fn is_past(&self) -> bool {
        true
    }
}
