//! The Durable Streams protocol as a library: append-only streams over HTTP, durable when acknowledged. It knows no other crate of
//! Adjutant. Begin with `target.rs`, `read.rs` and `write.rs`, then `storage/mod.rs`.
//!
//! [`Streams::open`] takes a folder, [`Streams::answer`] takes a request. Who may ask is decided outside and told by
//! [`Access`]; TLS, listening and authentication are not done here.

mod body;
mod content;
mod cursor;
mod hex;
mod json;
mod lifetime;
mod live;
mod memory;
mod name;
mod offset;
mod page;
mod problem;
mod read;
mod reply;
mod source;
mod sse;
mod stall;
mod storage;
mod store;
mod stored;
mod subscriptions;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod touches;
mod write;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use tokio::sync::{Semaphore, mpsc, watch};

pub use body::{Body, Cut, Upload};
pub use memory::{Memory, NoRoom, Share};
pub use offset::Position;
pub use source::{Feed, FeedError, Items, Source};
pub use stall::Stall;
pub use storage::{Checked, FORMAT as EXPORT_FORMAT, OpenError, TransferError, export, import, verify};
pub use tls::{Connected, Connection, Tls};

use problem::Problem;
use store::StoreHandle;
use subscriptions::rules;
use subscriptions::webhook::{self, Delivery, Sending};

/// What a caller may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub write: bool,
}

impl Access {
    pub const NOTHING: Access = Access { read: false, write: false };
    pub const READ: Access = Access { read: true, write: false };
    pub const ALL: Access = Access { read: true, write: true };
}

/// The limits, each with its default.
#[derive(Clone)]
pub struct Options {
    /// Where the streams are mounted, for `Stream-Forked-From` and for addresses in answers: `/v1/stream`.
    pub mount: String,
    /// How the outside calls this server (`https://host`), if the request's `Host` does not tell.
    pub public_url: Option<String>,
    /// Longest wait of a long-poll: 25 s.
    pub long_poll: Duration,
    /// After how long an event stream is ended, so that its reader comes anew: 60 s.
    pub sse_close_after: Duration,
    /// How long a reader may leave what was sent to it before it is cut off: 10 s.
    pub stall: Duration,
    /// Largest body of a request: 8 MiB.
    pub body_limit: usize,
    /// Longest time in which a body must have come: 30 s.
    pub body_timeout: Duration,
    /// About how much one answer holds: 256 KiB.
    pub read_limit: usize,
    /// About how much one event holds: 64 KiB.
    pub event_limit: usize,
    /// What answers may hold in memory, all of them and those of one caller: a budget of their own of 32 MiB.
    pub memory: Arc<Memory>,
    /// Most readers that wait at the same time: 10,000.
    pub live_readers_max: usize,
    /// The origin whose pages may use the answers, or `*`: none.
    pub allow_origin: Option<String>,
    /// Whether webhooks may go to this machine itself, over plain HTTP too, and to private networks: no.
    pub local_webhooks: bool,
    /// Where TLS for webhooks comes from; without it, https is refused.
    pub tls: Option<Arc<dyn Tls>>,
    /// Streams that are fed by the program.
    pub source: Option<Arc<dyn Source>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mount: "/v1/stream".to_owned(),
            public_url: None,
            long_poll: Duration::from_secs(25),
            sse_close_after: Duration::from_secs(60),
            stall: Duration::from_secs(10),
            body_limit: 8 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            read_limit: 256 * 1024,
            event_limit: 64 * 1024,
            memory: Memory::new(memory::BYTES_MAX),
            live_readers_max: 10_000,
            allow_origin: None,
            local_webhooks: false,
            tls: None,
            source: None,
        }
    }
}

/// How much of requests' bodies may be in memory, in units of 1 KiB: 64 MiB, and never less than two bodies.
const BODIES_KIB: usize = 64 * 1024;

/// So many pieces of what a source feeds are read at once.
const FEEDING_MAX: usize = 4;

/// The streams of one folder. Cheap to clone.
#[derive(Clone)]
pub struct Streams(Arc<Inner>);

pub(crate) struct Inner {
    pub store: StoreHandle,
    pub options: Options,
    /// Places for readers that wait.
    pub places: Arc<Semaphore>,
    /// Room for bodies of requests, in KiB.
    pub room: Arc<Semaphore>,
    pub feeds: target::FeedTails,
    /// Turns to read what a source feeds: it is in memory meanwhile.
    pub feeding: Semaphore,
    /// Set when readers are to come back later, to whoever serves then.
    pub stopping: watch::Sender<bool>,
}

impl Streams {
    /// Opens the streams in `folder`, which is made if it is not there. Must be called inside a tokio runtime.
    pub fn open(folder: &Path, options: Options) -> Result<Streams, OpenError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        Ok(Streams::over(StoreHandle::open(folder)?, options, &runtime))
    }

    /// The streams of a store that is open.
    fn over(
        (store, deliveries): (StoreHandle, mpsc::UnboundedReceiver<Delivery>),
        options: Options,
        runtime: &tokio::runtime::Handle,
    ) -> Streams {
        let (keys, tls, local) = (store.keys.clone(), options.tls.clone(), options.local_webhooks);
        let jobs = store.jobs();
        let report = move |delivery: Delivery, outcome| {
            if let Some(jobs) = jobs.upgrade() {
                // If this is not written, the lease runs out and the subscription is woken again.
                let _ = jobs.hand_over(move |turn| rules::delivered(turn, &delivery, outcome));
            }
        };
        runtime.spawn(webhook::deliver(deliveries, Sending { keys, tls, local }, report));
        let room = BODIES_KIB.max(2 * kib(options.body_limit));
        Streams(Arc::new(Inner {
            store,
            places: Arc::new(Semaphore::new(options.live_readers_max)),
            room: Arc::new(Semaphore::new(room)),
            feeds: target::FeedTails::default(),
            feeding: Semaphore::new(FEEDING_MAX),
            stopping: watch::Sender::new(false),
            options,
        }))
    }

    /// Answers one request. `path` is what stands behind the mount point in the request's path, not decoded, without the
    /// slash between them. For a HEAD request the answer has no body.
    pub async fn answer<B: Upload>(&self, path: &str, request: Request<B>, access: Access) -> Response<Body> {
        self.answer_to("", path, request, access).await
    }

    /// The same, for a caller with a name: what its answers hold in memory is counted under it.
    pub async fn answer_to<B: Upload>(
        &self,
        caller: &str,
        path: &str,
        request: Request<B>,
        access: Access,
    ) -> Response<Body> {
        let head = request.method() == Method::HEAD;
        let mut response = match self.route(caller, path, request, access).await {
            Ok(response) => response,
            Err(problem) => problem.response(),
        };
        if head {
            *response.body_mut() = Body::empty();
        }
        reply::finish(response, self.0.options.allow_origin.as_deref())
    }

    /// From now on nobody waits: event streams end, and long polls are answered with what there is.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// What was acknowledged and is not there: then stored streams are neither read nor written.
    pub fn damage(&self) -> Option<&str> {
        self.0.store.damage()
    }

    /// How many transactions were committed, for those who measure.
    pub fn commits(&self) -> u64 {
        self.0.store.commits()
    }

    async fn route<B: Upload>(
        &self,
        caller: &str,
        path: &str,
        request: Request<B>,
        access: Access,
    ) -> Result<Response<Body>, Problem> {
        let method = request.method().clone();
        if method == Method::OPTIONS {
            return Ok(reply::preflight());
        }
        if path == name::RESERVED
            || path.strip_prefix(name::RESERVED).is_some_and(|rest| rest.starts_with('/'))
        {
            return subscriptions::answer(&self.0, path, request, access).await;
        }
        let name = name::from_raw(path)?;
        // The same prefix in another spelling is still reserved.
        if name.split('/').next() == Some(name::RESERVED) {
            return Err(Problem::new(400, "RESERVED_PATH", "paths under __ds belong to the protocol"));
        }
        match method {
            Method::GET | Method::HEAD if !access.read => Err(forbidden("read")),
            Method::GET => read::get(&self.0, caller, &name, &request).await,
            Method::HEAD => read::head(&self.0, &name).await,
            Method::PUT | Method::POST | Method::DELETE if !access.write => Err(forbidden("write")),
            Method::PUT | Method::POST | Method::DELETE if target::claimed(&self.0, &name) => {
                Err(Problem::new(
                    403,
                    "READ_ONLY",
                    format!("`{name}` is fed by the server itself and can only be read"),
                ))
            }
            Method::PUT => write::put(&self.0, name, request).await,
            Method::POST => write::post(&self.0, name, request).await,
            Method::DELETE => write::delete(&self.0, name).await,
            other => {
                Err(Problem::new(405, "METHOD_NOT_ALLOWED", format!("{other} is not a method of a stream"))
                    .header("allow", reply::METHODS))
            }
        }
    }
}

pub(crate) fn forbidden(what: &str) -> Problem {
    Problem::new(403, "FORBIDDEN", format!("this caller may not {what} streams"))
}

/// Permits for so many bytes.
pub(crate) fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024) + 1
}
