//! A request that asks the kernel for one thing: what is asked, and what is answered once that is on disk.

use kernel::{Answer, Ask, Reply};
use log::owner::SubmitError;
use serde_json::Value;

use super::{Call, Problem};

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

/// A refusal is a problem like any other.
pub fn replied(answered: Result<Answer, SubmitError>) -> Result<Reply, Problem> {
    match answered? {
        Answer::Done(reply) => Ok(reply),
        Answer::Refused(refusal) => Err(refusal.into()),
    }
}
