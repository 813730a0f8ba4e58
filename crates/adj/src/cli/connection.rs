//! A connection to the process that owns a project, and how asking over it can go wrong.

use std::io;
use std::time::Duration;

use super::Failure;
use server::outgoing::Stream;

/// How asking went wrong.
pub(super) enum Trouble {
    Unreachable(io::Error),
    Silent(Duration),
    /// The process is there, and a signal has stopped it.
    Suspended(u32),
    Broken(String),
    /// The same before the request itself was sent: it can be sent again, whatever it asks for.
    BrokenBefore(String),
    NoToken(Failure),
    /// What listens there has not shown that it is the server that the token is for: it was not sent.
    Unproven(&'static str),
}

/// A connection that nothing was sent over.
pub(super) struct Dialled {
    pub stream: Stream,
    /// The address for which the other end must prove itself; `None` where a certificate has.
    pub unproven: Option<String>,
}
