//! Answers on their way to the client: in pieces, within the memory that answers may have, and only for as long as the
//! caller is let in.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::task::AtomicWaker;
use http::Method;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Frame, SizeHint};
use streams::{NoRoom, Share};
use tokio::task::JoinHandle;

use super::answer_memory::memory;
use super::credentials;
use super::reply::respond_problem;
use super::tokens::Caller;
use super::{Connection, HttpServer, MountedProject, Transport};
use crate::response::{Body, BodyError, Response};
use api::Problem;

/// What is shorter is not counted: a connection costs as much by itself.
const SMALL_BYTES: u64 = 16 << 10;
/// So much is given to the connection at once.
const PIECE_BYTES: usize = 16 << 10;
/// How long a client that is not let in any more has to take the end of its answer before its connection is closed.
const END_TIME: Duration = Duration::from_millis(300);
/// Credentials also end by time: they are looked at this often where nothing is known to change.
const LOOK: Duration = Duration::from_secs(60);

/// Who asked, where it was found out.
pub(super) struct Known {
    pub project: Arc<MountedProject>,
    pub caller: Caller,
}

impl Known {
    /// What answers are counted under.
    pub fn name(&self) -> String {
        name_of(&self.caller)
    }
}

/// What the answers to a caller are counted under.
pub(super) fn name_of(caller: &Caller) -> String {
    match &caller.token {
        Some(token) => format!("{} {token}", caller.actor),
        None => caller.actor.to_string(),
    }
}

/// The answer holds a share of the budget already.
#[derive(Clone, Copy)]
pub(super) struct Counted;

/// Room for an answer that is ready.
pub(super) fn share(caller: &str, bytes: usize) -> Result<Option<Arc<Share>>, Problem> {
    if bytes as u64 <= SMALL_BYTES {
        return Ok(None);
    }
    memory().share(caller, bytes).map(|share| Some(Arc::new(share))).map_err(no_room)
}

pub(super) fn no_room(no: NoRoom) -> Problem {
    let (status, detail) = match no {
        NoRoom::OfCaller => {
            (429, "unread responses of this caller use all the memory that one caller may use")
        }
        NoRoom::OfServer => (503, "unread responses of all clients use all the memory for responses"),
    };
    Problem::new(status, "TOO_MUCH_UNREAD", detail)
        .hint("read the open responses or close their connections, and try again")
        .retry_after(1)
}

/// The answer as it is sent.
pub(super) fn sent(
    connection: &Arc<Connection>,
    parts: &Parts,
    known: Option<Known>,
    response: Response,
) -> Response {
    let size = response.body().size_hint().exact();
    if size.is_some_and(|size| size <= SMALL_BYTES) {
        return response;
    }
    let guarded = known.map(|known| (known.name(), Guard::start(connection, parts, known)));
    let (name, guard) = guarded.map_or((String::new(), None), |(name, guard)| (name, Some(guard)));
    let counted = response.extensions().get::<Counted>().is_some();
    let (head, body) = response.into_parts();
    if size.is_none() {
        return Response::from_parts(head, Body::new(Sending { from: From::Body(body), guard }));
    }
    // What is whole is there at once.
    let Some(Ok(bytes)) = body.collect().now_or_never() else {
        return respond_problem(&Problem::new(500, "BUG", "the response was incomplete"));
    };
    let bytes = bytes.to_bytes();
    let bytes = match counted {
        true => bytes,
        false => match share(&name, bytes.len()) {
            Ok(share) => share.map_or(bytes.clone(), |share| share.around(bytes)),
            Err(problem) if matches!(parts.method, Method::GET | Method::HEAD) => {
                return respond_problem(&problem);
            }
            Err(problem) => {
                let detail =
                    format!("the request was executed, but its response cannot be sent: {}", problem.detail);
                return respond_problem(&Problem { detail, ..problem });
            }
        },
    };
    Response::from_parts(head, Body::new(Sending { from: From::Bytes(bytes), guard }))
}

/// A body on its way.
struct Sending {
    from: From,
    guard: Option<Guard>,
}

enum From {
    /// All of it is there; it is given out in pieces, so that the connection never holds much of it.
    Bytes(Bytes),
    Body(Body),
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let over = self.guard.as_ref().is_some_and(|guard| guard.is_over(context));
        match &mut self.from {
            From::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            // It breaks off: nobody takes it for all.
            From::Bytes(_) if over => {
                Poll::Ready(Some(Err("the caller's token or session is no longer valid".into())))
            }
            From::Bytes(bytes) => {
                let piece = bytes.split_to(PIECE_BYTES.min(bytes.len()));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            From::Body(_) if over => Poll::Ready(None),
            From::Body(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            From::Bytes(bytes) => bytes.is_empty(),
            From::Body(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            From::Body(body) => body.size_hint(),
        }
    }
}

/// Ends an answer whose caller is not let in any more, also where nobody takes anything of it.
struct Guard {
    over: Arc<Over>,
    watching: JoinHandle<()>,
}

#[derive(Default)]
struct Over {
    set: AtomicBool,
    waker: AtomicWaker,
}

impl Guard {
    fn start(connection: &Arc<Connection>, parts: &Parts, known: Known) -> Guard {
        let over = Arc::new(Over::default());
        let (ended, connection, parts) = (over.clone(), connection.clone(), parts.clone());
        let watching = tokio::spawn(async move {
            revoked(&connection.server, &known.project, &parts, &known.caller).await;
            ended.set.store(true, Ordering::Release);
            ended.waker.wake();
            // Whoever takes the end of it has dropped this by then.
            tokio::time::sleep(END_TIME).await;
            connection.close.notify_one();
        });
        Guard { over, watching }
    }

    fn is_over(&self, context: &Context<'_>) -> bool {
        self.over.waker.register(context.waker());
        self.over.set.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Comes back when what was shown with a request does not stand for this caller any more.
pub(super) async fn revoked(server: &HttpServer, project: &MountedProject, parts: &Parts, caller: &Caller) {
    let mut tokens = project.services.tokens.changes();
    let mut sessions = match &server.transport {
        Transport::Tcp(transport) => Some(transport.sessions.changes()),
        Transport::Socket => None,
    };
    loop {
        // Looked at after this: what changes meanwhile is seen in the next round.
        tokens.borrow_and_update();
        if let Some(sessions) = &mut sessions {
            sessions.borrow_and_update();
        }
        if !credentials::caller(server, project, parts).is_ok_and(|now| now == *caller) {
            return;
        }
        let until = caller.token.as_deref().and_then(|token| project.services.tokens.expires_at(token));
        let left = until.map(|until| until.saturating_sub(base::clock::now()).max(0).cast_unsigned() + 1);
        let look = left.map_or(LOOK, |left| LOOK.min(Duration::from_millis(left)));
        let signed_out = async {
            match &mut sessions {
                Some(sessions) => drop(sessions.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = tokens.changed() => if changed.is_err() { return },
            () = signed_out => {}
            () = tokio::time::sleep(look) => {}
        }
    }
}
