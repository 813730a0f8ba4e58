//! A request that asks the kernel for one thing: what is asked, and what is answered once that is on disk.
//!
//! Nobody needs to wait in between. A server has thousands of callers and few threads, and goes on with others.

use kernel::{Answer, Ask, Command, Reply};
use log::owner::SubmitError;
use serde_json::Value;

use super::routes::{self, Route};
use super::{Call, Problem, ProjectAccess, Request, Response, replay};

/// What a handler asks, and what it makes of the reply.
pub struct Asks<A> {
    pub ask: Ask,
    pub then: Then<A>,
}

pub type Then<A> = Box<dyn FnOnce(&Call, Reply) -> Result<A, Problem> + Send>;

impl<A> Asks<A> {
    pub fn new(ask: Ask, then: impl FnOnce(&Call, Reply) -> Result<A, Problem> + Send + 'static) -> Asks<A> {
        Asks { ask, then: Box::new(then) }
    }
}

/// What a row made of a request.
pub enum Taken {
    Answered(Value),
    Asks(Asks<Value>),
}

/// A request that was read and waits for the kernel's answer.
pub struct Asked {
    route: &'static Route,
    then: Then<Value>,
    /// The scope of its key, where it has one.
    scope: Option<smol_str::SmolStr>,
}

/// Reads a request: the command, and what goes on with its answer. `Err` where it is answered without one.
pub fn begin(access: &ProjectAccess, request: &Request) -> Result<(Command, Asked), Response> {
    let call = Call::new(access, request);
    let (route, taken) = routes::take(&call).map_err(Response::from)?;
    match taken {
        Taken::Asks(Asks { ask, then }) => {
            let command = call.command(ask).map_err(Response::from)?;
            let scope = command.key.as_ref().map(|_| kernel::scope(&command));
            Ok((command, Asked { route, then, scope }))
        }
        Taken::Answered(body) => Err(Response { status: route.status, body }),
    }
}

impl Asked {
    pub fn finish(
        self,
        access: &ProjectAccess,
        request: &Request,
        answered: Result<Answer, SubmitError>,
    ) -> Response {
        let Asked { route, then, scope } = self;
        let call = Call::new(access, request);
        let mut keyed = None;
        let told = replied(answered).and_then(|reply| {
            keyed = scope.map(|scope| replay::Keyed { scope, replayed: reply.replayed });
            then(&call, reply)
        });
        let response = match told.map_err(|problem| route.told(problem)) {
            Ok(body) => Response { status: route.status, body },
            Err(problem) => problem.into(),
        };
        replay::respond(access, request, keyed, response)
    }
}

/// A refusal is a problem like any other.
pub fn replied(answered: Result<Answer, SubmitError>) -> Result<Reply, Problem> {
    match answered? {
        Answer::Done(reply) => Ok(reply),
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}
