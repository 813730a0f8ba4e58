//! A request that asks the kernel for one thing, answered in two steps: what is asked, and the answer once that is on disk.
//!
//! Nobody needs to wait in between. A server has thousands of callers and few threads, and goes on with others.

use kernel::{Answer, Command};
use log::owner::SubmitError;
use serde_json::Value;

use super::asks::{Asks, Taken, Then, replied};
use super::operation::Operation;
use super::{Call, ProjectAccess, Request, Response, replay, routes};

/// A request that was read and waits for the kernel's answer.
pub struct Asked {
    operation: &'static Operation,
    then: Then<Value>,
    /// The scope of its key, where it has one.
    scope: Option<smol_str::SmolStr>,
}

/// Reads a request: the command, and what goes on with its answer. `Err` where it is answered without one.
pub fn begin(access: &ProjectAccess, request: &Request) -> Result<(Command, Asked), Response> {
    let call = Call::new(access, request);
    let (operation, taken) = routes::take(&call).map_err(Response::from)?;
    match taken {
        Taken::Asks(Asks { ask, then }) => {
            let command = call.command(ask).map_err(Response::from)?;
            let scope = command.key.as_ref().map(|_| kernel::scope(&command));
            Ok((command, Asked { operation, then, scope }))
        }
        Taken::Answered(body) => Err(Response { status: operation.status, body }),
    }
}

impl Asked {
    pub fn finish(
        self,
        access: &ProjectAccess,
        request: &Request,
        answered: Result<Answer, SubmitError>,
    ) -> Response {
        let Asked { operation, then, scope } = self;
        let call = Call::new(access, request);
        let mut keyed = None;
        let told = replied(answered).and_then(|reply| {
            keyed = scope.map(|scope| replay::Keyed { scope, replayed: reply.replayed });
            then(&call, reply)
        });
        let response = match told.map_err(|problem| operation.told(problem)) {
            Ok(body) => Response { status: operation.status, body },
            Err(problem) => problem.into(),
        };
        replay::respond(access, request, keyed, response)
    }
}
