//! HTTP, tools and webhooks: HTTP in, [`api::Request`] on, JSON out. It may know the API and what it is answered from, and decides
//! nothing. Begin with `answer.rs`; `mcp/calls.rs` has the code of tools.
//!
//! A project has a socket beside its log, and a server has a TCP address where several projects can be asked. Both lead
//! to the same answers. `host_names` says which requests are accepted at the address, `tokens` and `sessions` who asks, `answer` reads what is
//! asked and answers it.
//!
//! Invariants:
//! - nothing is read of a body, and nothing of a project is answered, before a token or a session has said who asks; but
//!   that the server knows a token is proven to whoever holds the token, before it is sent;
//! - nothing that a caller sends is kept in memory beyond the limits;
//! - whoever connects and says nothing, or reads nothing, is not waited for, and takes no descriptor from anybody else.

mod answer;
mod answer_memory;
mod body;
mod connections;
mod credentials;
mod events;
mod export;
mod feeds;
mod host_names;
pub mod log_file;
mod machine_use;
pub mod mcp;
pub mod observe;
pub mod outgoing;
mod pages;
pub mod port_holder;
pub mod proof;
mod rate_limit;
mod ready;
pub mod real_host;
mod reply;
mod response;
mod screens;
mod sending;
pub mod service_manager;
mod sessions;
pub mod socket;
mod stream_requests;
pub mod tcp;
pub mod tokens;
pub mod webhooks;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use connections::{ConnectionLimit, ConnectionPermit, Peer};
use streams::Streams;

use api::{self, Control, Host, Problem};

pub use answer_memory::memory;
pub use body::{BODY_BYTES_MAX, hide, whole_body};
pub use events::Events;
pub use feeds::{Feeds, FromLog};
pub use host_names::Names;
pub use rate_limit::RateLimit;
pub use reply::respond_problem;
pub use sessions::Sessions;
pub use socket::{Socket, connect, folder_of};
pub use tokens::{Caller, Tokens, read_token};

/// So many requests of one project are answered at once; more wait their turn.
const REQUESTS_MAX: usize = 64;
/// So many callers may wait by long poll, each with a thread of its own; more are answered at once.
const WAITING_MAX: usize = 256;
/// A connection over which no whole head of a request has come for so long is closed, the first as any later one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// A body that takes longer than this to arrive is not waited for, and a connection whose other end has taken nothing of
/// what is written for so long is closed. An address can have a time of its own.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Those for whom there is no permit are told so, this many at once; they have this long to say what they want.
const TURNED_AWAY_MAX: usize = 16;
const TURNED_AWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// The answer to them. Nothing was read of what they asked, so they can ask again.
pub const TOO_MANY_CONNECTIONS: &str = "TOO_MANY_CONNECTIONS";
/// The system has no descriptor left: it is asked again after this long.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// What is being answered when the owner stops is given this long, and what is being sent this long: whoever reads slowly
/// comes back to the next owner.
const GRACE: Duration = Duration::from_secs(5);
const SENDING_GRACE: Duration = Duration::from_millis(400);
/// How often it is looked whether an answer is ready meanwhile.
const GRACE_LOOK: Duration = Duration::from_millis(20);
/// A connection keeps about so much of what is to be sent, and takes no longer head of a request.
const CONNECTION_BYTES_MAX: usize = 32 << 10;
/// So many exports are sent at once, each with a thread of its own.
const EXPORTS_MAX: usize = 2;

/// What a project's requests are answered from. Everything in it is shared with whoever runs.
pub struct ProjectServices {
    pub project: Arc<dyn api::Project + Send + Sync>,
    pub host: Arc<dyn Host>,
    pub control: Arc<dyn Control>,
    pub tokens: Arc<Tokens>,
    /// The log as it grows, for whoever follows it.
    pub events: Arc<Events>,
    /// Durable streams, where they are served.
    pub streams: Option<Streams>,
}

/// A project and how much of it is asked at once, over all transports.
pub struct MountedProject {
    services: ProjectServices,
    mcp: mcp::Service,
    board: ready::ReadyBoard,
    screens: Arc<screens::Screens>,
    requests: Semaphore,
    /// Those that are large while they are made, one at a time.
    heavy: Semaphore,
    waiting: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    /// Nobody waits for anything any more.
    stopping: Arc<AtomicBool>,
}

impl MountedProject {
    pub fn new(services: ProjectServices) -> Arc<MountedProject> {
        let mcp = mcp::Service {
            project: services.project.clone(),
            host: services.host.clone(),
            control: services.control.clone(),
            tokens: services.tokens.clone(),
            mount: Arc::default(),
            stopping: Arc::default(),
        };
        let (project, host, control) =
            (services.project.clone(), services.host.clone(), services.control.clone());
        Arc::new(MountedProject {
            screens: screens::Screens::new(project, host, control),
            stopping: mcp.stopping.clone(),
            mcp,
            services,
            board: ready::ReadyBoard::default(),
            requests: Semaphore::new(REQUESTS_MAX),
            heavy: Semaphore::new(1),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
        })
    }

    /// Whoever waits for something is answered now, or comes back later.
    fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(streams) = &self.services.streams {
            streams.stop();
        }
    }
}

/// The projects that are served at one address or socket.
pub struct HttpServer {
    /// By their names. The socket of a project leads to that one only.
    pub projects: BTreeMap<String, Arc<MountedProject>>,
    pub transport: Transport,
}

/// How one comes in.
pub enum Transport {
    /// The project's own socket, which only its user can open.
    Socket,
    /// An address that anybody on this machine, or beyond, can connect to.
    Tcp(TcpTransport),
}

/// What a TCP address needs to know of whoever comes.
pub struct TcpTransport {
    pub names: Names,
    pub sessions: Arc<Sessions>,
    /// Cookies are sent over TLS only.
    pub secure: bool,
    /// Their name holds it, since cookies do not know ports.
    pub port: u16,
    /// Nobody is asked for a token: for test suites that cannot send one.
    pub open: bool,
    pub rate_limit: RateLimit,
    /// In place of [`CLIENT_TIMEOUT`].
    pub client_timeout: Duration,
}

impl Transport {
    fn client_timeout(&self) -> Duration {
        match self {
            Transport::Socket => CLIENT_TIMEOUT,
            Transport::Tcp(transport) => transport.client_timeout,
        }
    }
}

impl HttpServer {
    pub fn of_socket(name: &str, project: Arc<MountedProject>) -> Arc<HttpServer> {
        Arc::new(HttpServer {
            projects: BTreeMap::from([(name.to_owned(), project)]),
            transport: Transport::Socket,
        })
    }
}

/// Where connections come from.
pub enum Listener {
    /// With the address that its proofs are for.
    Socket(UnixListener, String),
    Tcp(TcpListener, Option<tokio_rustls::TlsAcceptor>),
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}
type Stream = Box<dyn Io>;

/// A connection that somebody made.
enum Accepted {
    /// With our own end of it, as the system says.
    Ready(Stream, Peer, Option<String>),
    /// Who it is for is said in the first bytes, which may be long in coming.
    Tls(tokio::net::TcpStream, tokio_rustls::TlsAcceptor),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Socket(listener, address) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer::of(&stream);
                Ok(Accepted::Ready(Box::new(stream), peer, Some(address.clone())))
            }
            Listener::Tcp(listener, tls) => {
                let (stream, _) = listener.accept().await?;
                // Answers are small and whole: waiting to fill a packet only makes them late.
                let _ = stream.set_nodelay(true);
                let own_end = stream.local_addr().ok().map(proof::tcp_address);
                Ok(match tls {
                    Some(tls) => Accepted::Tls(stream, tls.clone()),
                    None => Accepted::Ready(Box::new(stream), Peer::Person, own_end),
                })
            }
        }
    }

    fn connection_limit(&self) -> Arc<ConnectionLimit> {
        let descriptors = base::files::descriptors_max();
        match self {
            Listener::Socket(..) => ConnectionLimit::new(descriptors),
            Listener::Tcp(..) => ConnectionLimit::of_tcp(descriptors),
        }
    }
}

/// One connection, as those who answer over it see it.
struct Connection {
    server: Arc<HttpServer>,
    /// What a proof over it is for; `None` where a certificate proves who we are.
    address: Option<String>,
    permit: ConnectionPermit,
    /// Set when the owner stops: streams end.
    stopping: watch::Receiver<bool>,
    /// How many requests are being answered.
    answering: AtomicUsize,
    /// It is to be closed, whatever is under way.
    close: Notify,
    _counted: observe::Connected,
}

/// Serves until `stop` is over, and lets what is being answered then end first. A caller that waits for something to
/// happen may still hold a thread when this returns: whoever owns the runtime shuts it down without waiting for that.
pub async fn serve(
    listener: Listener,
    server: Arc<HttpServer>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (stopped, stopping) = watch::channel(false);
    let limit = listener.connection_limit();
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // Whoever wanted to connect has gone, or there is no descriptor left for them.
                Err(_) => {
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            () = &mut stop => break,
        };
        let (peer, address) = match &accepted {
            Accepted::Ready(_, peer, address) => (*peer, address.clone()),
            Accepted::Tls(..) => (Peer::Person, None),
        };
        match limit.admit(peer) {
            Some(permit) => {
                let counted = observe::Connected::over(&server.transport);
                let (server, stopping) = (server.clone(), stopping.clone());
                let connection = Connection {
                    server,
                    address,
                    permit,
                    stopping,
                    answering: AtomicUsize::new(0),
                    close: Notify::new(),
                    _counted: counted,
                };
                connections.spawn(let_in(accepted, connection));
            }
            None => {
                // More than these are not even told.
                if let (Ok(project), Accepted::Ready(stream, ..)) =
                    (turned_away.clone().try_acquire_owned(), accepted)
                {
                    let mut stopping = stopping.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            () = turn_away(stream) => {}
                            _ = stopping.wait_for(|stopped| *stopped) => {}
                        }
                        drop(project);
                    });
                }
            }
        }
    }
    drop(listener);
    let _ = stopped.send(true);
    server.projects.values().for_each(|project| project.stop());
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, all).await;
}

async fn let_in(accepted: Accepted, connection: Connection) {
    match accepted {
        Accepted::Ready(stream, ..) => talk(stream, connection).await,
        Accepted::Tls(stream, tls) => {
            let mut stopping = connection.stopping.clone();
            let agreed = tokio::select! {
                agreed = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)) => agreed,
                // Nothing was asked yet.
                _ = stopping.wait_for(|stopped| *stopped) => return,
            };
            if let Ok(Ok(stream)) = agreed {
                talk(Box::new(stream), connection).await;
            }
        }
    }
}

/// One connection, until its other end has had enough, is too slow, or must make room.
async fn talk(stream: Stream, connection: Connection) {
    let connection = Arc::new(connection);
    let mut stopping = connection.stopping.clone();
    let take = service_fn(|request: hyper::Request<Incoming>| {
        let connection = connection.clone();
        async move { Ok::<_, Infallible>(answer::respond_to(&connection, request).await) }
    });
    let client_timeout = connection.server.transport.client_timeout();
    let talking = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(CONNECTION_BYTES_MAX)
        .serve_connection(TokioIo::new(streams::Stall::new(stream, client_timeout)), take);
    let mut talking = pin!(talking);
    tokio::select! {
        ended = &mut talking => {
            // How else it ended is the other end's affair: what was asked has been answered or was not whole.
            if ended.is_err_and(|error| is_stalled(&error)) {
                let seconds = client_timeout.as_secs();
                observe::notice(None, &format!("a client that took nothing for {seconds} s was cut off"));
            }
            return;
        }
        () = connection.permit.asked_to_leave() => return,
        () = connection.close.notified() => return,
        _ = stopping.wait_for(|stopped| *stopped) => talking.as_mut().graceful_shutdown(),
    }
    let mut grace = SENDING_GRACE;
    loop {
        match tokio::time::timeout(grace, &mut talking).await {
            // What is being answered is answered; whoever does not take an answer is not waited for.
            Err(_) if connection.answering.load(Ordering::Relaxed) > 0 => grace = GRACE_LOOK,
            _ => return,
        }
    }
}

/// The other end took nothing of what was written to it.
fn is_stalled(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

/// Tells whoever has as many connections open as it may.
async fn turn_away(stream: Stream) {
    let refuse = service_fn(|_: hyper::Request<Incoming>| async {
        let problem = Problem::new(503, TOO_MANY_CONNECTIONS, "too many connections are open")
            .hint("close some, and try again");
        let mut response = reply::respond_problem(&problem);
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(response)
    });
    let mut builder = http1::Builder::new();
    let connection = builder.keep_alive(false).serve_connection(TokioIo::new(stream), refuse);
    let _ = tokio::time::timeout(TURNED_AWAY_TIMEOUT, connection).await;
}
