//! What can be seen of a server from outside: its metrics (`GET /metrics`) and its log as JSON lines.
//!
//! A process is one server, so there is one of these, and nothing is counted before it is begun. Whoever answers
//! requests or writes the log only says what it did; all that can be read from the log is counted by one task per project
//! that follows it.

mod journal;
#[cfg(feature = "otel")]
mod otel;
mod process;
mod project;
mod recorder;
mod routes;
pub mod table;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use http::request::Parts;
use kernel::Actor;
use log::owner::Handle;
use metrics::Gauge;

use self::project::Watched;
use self::recorder::{Numbers, Word};
use super::{Caller, HttpServer, MountedProject, Transport};
use crate::response::Response;
use api;

pub use journal::LogForm;

/// Where the metrics are.
pub const PATH: &str = "/metrics";
/// How often samples are sorted where nobody asks for them.
const TIDY: Duration = Duration::from_secs(10);

static SERVER: OnceLock<Server> = OnceLock::new();

struct Server {
    numbers: Numbers,
    form: LogForm,
    projects: Mutex<Vec<Arc<Watched>>>,
}

impl Server {
    fn projects(&self) -> Vec<Arc<Watched>> {
        self.lock().clone()
    }

    /// The name of a project as a label, without a copy of it; empty for what is of none.
    fn name(&self, project: &str) -> Word {
        let projects = self.lock();
        projects
            .iter()
            .find(|watched| &*watched.name == project)
            .map_or("".into(), |found| (&found.name).into())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watched>>> {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// From now on it is counted and told.
pub fn begin(form: LogForm) {
    if SERVER.set(Server { numbers: Numbers::new(), form, projects: Mutex::default() }).is_err() {
        return;
    }
    process::begin();
    tokio::spawn(async {
        let mut look = tokio::time::interval(TIDY);
        loop {
            look.tick().await;
            let sorted = tokio::task::spawn_blocking(|| SERVER.get().map(|server| server.numbers.tidy()));
            let _ = sorted.await;
        }
    });
}

/// Whether lines are JSON: then nothing else is printed.
pub fn tells_json() -> bool {
    SERVER.get().is_some_and(|server| server.form == LogForm::Json)
}

/// Counts and tells what happens in a project, from its next record on.
pub fn watch(name: &str, handle: &Handle, project: &Arc<MountedProject>, log: PathBuf) {
    let Some(server) = SERVER.get() else { return };
    let watched = Watched::start(server, name, handle, project.clone(), log);
    server.lock().push(watched);
}

/// Returns when all that is in the logs was told.
pub async fn finish() {
    for watched in SERVER.get().map(Server::projects).unwrap_or_default() {
        watched.caught_up().await;
    }
}

/// A thing that people should hear, and that no log holds. False where it must be said in words.
pub fn notice(project: Option<&str>, message: &str) -> bool {
    let json = tells_json();
    if json {
        let timestamp = api::time(base::clock::now());
        journal::line(&journal::Noticed { timestamp, event: "notice", project, message });
    }
    json
}

/// The page of metrics; `None` where nothing is counted.
pub async fn page() -> Option<String> {
    let server = SERVER.get()?;
    let projects = server.projects();
    for watched in &projects {
        watched.caught_up().await;
    }
    let made = tokio::task::spawn_blocking(move || {
        projects.iter().for_each(|watched| watched.measure(&server.numbers));
        process::measure(&server.numbers);
        server.numbers.page()
    });
    made.await.ok()
}

/// Who asked, as far as it was found out.
#[derive(Clone, Copy, Debug, Default)]
pub enum By {
    #[default]
    Nobody,
    Person,
    Reader,
    Agent,
}

impl By {
    pub fn of(caller: &Caller) -> By {
        match (&caller.actor, caller.reads_only) {
            (Actor::Human(_), true) => By::Reader,
            (Actor::Human(_), false) => By::Person,
            _ => By::Agent,
        }
    }

    fn name(self) -> &'static str {
        match self {
            By::Nobody => "nobody",
            By::Person => "person",
            By::Reader => "reader",
            By::Agent => "agent",
        }
    }
}

/// The code of a problem, beside the response that tells it.
#[derive(Clone)]
pub struct Code(pub smol_str::SmolStr);

/// A request was answered.
pub fn answered(http: &HttpServer, parts: &Parts, by: By, since: Instant, response: &Response) {
    let Some(server) = SERVER.get() else { return };
    let (took, status) = (since.elapsed(), response.status());
    let (project, path) = routes::project_of(http, parts.uri.path());
    let method = routes::method(&parts.method);
    let route = routes::template(path);
    let numbers = &server.numbers;
    let name = server.name(project);
    let words = [name.clone(), method.into(), route.into(), routes::status(status.as_u16())];
    numbers.counter(&table::REQUESTS, words).increment(1);
    let words = [name.clone(), method.into(), route.into()];
    numbers.histogram(&table::REQUEST_SECONDS, words).record(took);
    if let Some(Code(code)) = response.extensions().get::<Code>() {
        let code: Arc<str> = Arc::from(code.as_str());
        numbers.counter(&table::REFUSALS, [name, (&code).into()]).increment(1);
    }
    if server.form == LogForm::Json {
        journal::line(&journal::RequestLine {
            timestamp: api::time(base::clock::now()),
            event: "request",
            project,
            method,
            route,
            status: status.as_u16(),
            milliseconds: (took.as_secs_f64() * 1e6).round() / 1e3,
            caller: by.name(),
        });
    }
}

/// An open connection, for as long as this lives.
pub struct Connected(Option<Gauge>);

impl Connected {
    pub fn over(transport: &Transport) -> Connected {
        let transport = match transport {
            Transport::Socket => "socket",
            Transport::Tcp(_) => "tcp",
        };
        let gauge = SERVER.get().map(|server| server.numbers.gauge(&table::CONNECTIONS, [transport.into()]));
        if let Some(gauge) = &gauge {
            gauge.increment(1.0);
        }
        Connected(gauge)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            gauge.decrement(1.0);
        }
    }
}
