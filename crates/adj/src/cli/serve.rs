//! `adj serve`: projects for browsers and programs, at an address of this machine or beyond.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::hosted::{PublicAddress, StreamSettings, Switch, SwitchControl};
use super::project::Project;
use super::terminal::Paint;
use super::text::shown;
use super::{Context, Exit, Failure, Globals, text};
use api::Control;
use api::tokens::Who;
use api::types::Nothing;
use api::types::fleet::Fleet;
use api::types::token::Link;
use base::clock;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use log::owner::Owner;
use serde::Serialize;
use server::observe::{self, LogForm};
use server::tcp::{self, ListenError, ListenOptions, PublicUrl, TlsFiles};
use server::tokens::TokenError;
use server::webhooks::NotifierTask;
use server::{
    self, HttpServer, Listener, MountedProject, RateLimit, Sessions, Socket, TcpTransport, Transport,
    service_manager,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Serve projects to browsers and programs
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Serve {
    /// Serve every project that `adj init` has set up for this user
    #[arg(long)]
    all: bool,
    /// Start the fleet of each project too
    #[arg(long)]
    run: bool,
    /// Run in the background; `adj stop` ends it
    #[arg(long)]
    detach: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// On SIGTERM, keep agents running; the next server continues with them
    #[arg(long)]
    keep_agents: bool,
    #[command(flatten)]
    listen: Listen,
}

const HELP: &str = "\
Example:
  adj serve
  adj serve --run --open
  adj serve --project ~/api --project ~/web
  adj serve --detach; adj url; adj stop

Agents start only with --run, with `adj run`, or after POST /api/v1/fleet/start. The API is at /api/v1; /docs and \
/openapi.json describe it. If the server has several projects, each is at /p/NAME/.

Programs send `Authorization: Bearer TOKEN`. Browsers sign in with the one-time link from `adj url`.

Ctrl-C stops the fleets cleanly and then the server; all work is kept.";

/// Where a server listens, and for whom.
#[derive(Clone, Debug, Args)]
pub struct Listen {
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = tcp::PORT)]
    port: u16,
    /// Address to listen on; other than loopback needs TLS or a proxy
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// TLS certificate with its chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A TLS-terminating proxy is in front of the server
    #[arg(long)]
    behind_proxy: bool,
    /// Public URL, if different from the listen address: https://HOST
    #[arg(long, value_name = "URL")]
    public_url: Option<PublicUrl>,
    /// Authentication; `none` disables it (loopback only, for test suites)
    #[arg(long, value_name = "HOW", default_value = "token")]
    auth: Auth,
    /// Log format; `json` prints one line per transition, request and notice to stderr
    #[arg(long, value_name = "FORM", default_value = "text", hide_possible_values = true, value_parser = log_forms())]
    log: LogForm,
    /// Duration of a long poll on a stream, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LONG_POLL, value_parser = clap::value_parser!(u64).range(1..=300))]
    long_poll: u64,
    /// Idle timeout for request bodies and responses, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = CLIENT_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=300))]
    client_timeout: u64,
    /// Allow stream webhooks to plain http, this machine and private networks
    #[arg(long)]
    local_webhooks: bool,
}

fn log_forms() -> impl TypedValueParser<Value = LogForm> {
    let text = PossibleValue::new(LogForm::Text.name()).help("In words, on stdout");
    let json = PossibleValue::new(LogForm::Json.name()).help("One JSON object a line, on stderr");
    PossibleValuesParser::new([text, json])
        .map(|word| if word == LogForm::Json.name() { LogForm::Json } else { LogForm::Text })
}

/// How long threads may finish what they write to files once everybody is answered. A read that was given up may hang in a git: it
/// is not waited for.
const THREADS_GRACE: Duration = Duration::from_millis(300);
const LONG_POLL: u64 = 25;
const CLIENT_TIMEOUT: u64 = server::CLIENT_TIMEOUT.as_secs();

/// What somebody wishes of a server.
pub struct ServeOptions {
    listen: ListenOptions,
    long_poll: Duration,
    local_webhooks: bool,
    /// How the server tells what happens.
    pub log: LogForm,
}

impl ServeOptions {
    /// On this machine, at a port that is free.
    pub fn at_any_port() -> ServeOptions {
        let listen = ListenOptions {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            tls: None,
            behind_proxy: false,
            public: None,
            open: false,
            client_timeout: Duration::from_secs(CLIENT_TIMEOUT),
        };
        let long_poll = Duration::from_secs(LONG_POLL);
        ServeOptions { listen, long_poll, local_webhooks: false, log: LogForm::default() }
    }

    pub fn streams(&self) -> StreamSettings {
        StreamSettings {
            long_poll: self.long_poll,
            client_timeout: self.listen.client_timeout,
            open: self.listen.open,
            local_webhooks: self.local_webhooks,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Auth {
    Token,
    None,
}

impl Listen {
    /// What was wished, where it was wished at all.
    pub fn wish(&self, serve: bool) -> Result<Option<ServeOptions>, Failure> {
        if serve {
            return Ok(Some(self.wished()));
        }
        match self.arguments().is_empty() {
            true => Ok(None),
            false => Err(Failure::new(Exit::Usage, "this says where to serve, and nothing is to be served")
                .hint("`adj run --serve` answers browsers and programs too")),
        }
    }

    pub fn wished(&self) -> ServeOptions {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let listen = ListenOptions {
            listen: self.listen,
            port: self.port,
            tls: files.map(|(cert, key)| TlsFiles { cert, key }),
            behind_proxy: self.behind_proxy,
            public: self.public_url.clone(),
            open: self.auth == Auth::None,
            client_timeout: Duration::from_secs(self.client_timeout),
        };
        let (long_poll, local_webhooks) = (Duration::from_secs(self.long_poll), self.local_webhooks);
        ServeOptions { listen, long_poll, local_webhooks, log: self.log }
    }

    /// The same, as it would be typed; what is as it is without saying so is left out.
    pub fn arguments(&self) -> Vec<String> {
        let mut line = Vec::new();
        let mut say = |name: &str, value: String| line.extend([format!("--{name}"), value]);
        if self.port != tcp::PORT {
            say("port", self.port.to_string());
        }
        if self.listen != IpAddr::V4(Ipv4Addr::LOCALHOST) {
            say("listen", self.listen.to_string());
        }
        let files = [("tls-cert", &self.tls_cert), ("tls-key", &self.tls_key)];
        for (name, file) in files.into_iter().filter_map(|(name, file)| Some((name, file.as_ref()?))) {
            say(name, file.display().to_string());
        }
        if let Some(url) = &self.public_url {
            say("public-url", url.to_string());
        }
        if self.auth == Auth::None {
            say("auth", "none".to_owned());
        }
        if self.long_poll != LONG_POLL {
            say("long-poll", self.long_poll.to_string());
        }
        if self.client_timeout != CLIENT_TIMEOUT {
            say("client-timeout", self.client_timeout.to_string());
        }
        if self.log != LogForm::default() {
            say("log", self.log.name().to_owned());
        }
        if self.behind_proxy {
            line.push("--behind-proxy".to_owned());
        }
        if self.local_webhooks {
            line.push("--local-webhooks".to_owned());
        }
        line
    }
}

/// How long a server in the background may take until it answers.
const DETACH: Duration = Duration::from_secs(20);
/// How often ticket files are looked at while no fleet does it.
const TICKETS: Duration = Duration::from_secs(2);

/// An address that listens and is not served yet.
pub struct Opened {
    pub url: String,
    /// The address of the listener itself, where browsers open another.
    pub listens: Option<String>,
    pub warnings: Vec<String>,
    pub listener: Listener,
    pub server: Arc<HttpServer>,
    pub sessions: Arc<Sessions>,
}

impl Opened {
    /// A link that lets a browser in once, with the rights of the person who started the server.
    pub fn link(&self) -> Result<String, TokenError> {
        let local = Who { user: "local".to_owned(), token: None };
        let (code, _) = self.sessions.link(local, None, clock::now())?;
        Ok(format!("{}/enter#{code}", self.url))
    }
}

/// Listens for all of these projects at one address.
pub async fn open_address(
    wished: &ServeOptions,
    projects: BTreeMap<String, Arc<MountedProject>>,
    switches: &[Arc<Switch>],
) -> Result<Opened, Failure> {
    let cannot = |error: ListenError| {
        let exit = match &error {
            ListenError::Exposed(_) | ListenError::Open(_) => Exit::Refused,
            ListenError::Bind { .. } => Exit::Unreachable,
            ListenError::Pem { .. } | ListenError::Tls(_) => Exit::Usage,
        };
        Failure::new(exit, error.to_string()).hint(error.hint())
    };
    let wish = &wished.listen;
    let listening = tcp::listen(wish).await.map_err(cannot)?;
    let (sessions, mut warnings) = Sessions::open(switches.iter().map(|switch| switch.folder().to_owned()));
    let sessions = Arc::new(sessions);
    // A port that the system has just chosen is nobody's in particular.
    let shared_port =
        (wish.port != 0).then(|| project::workplace::system_ports::given_to_anyone(wish.port)).flatten();
    warnings.extend(shared_port.clone());
    for switch in switches {
        let (url, listens) = (listening.url.clone(), listening.listens.clone());
        let shared_port = shared_port.clone();
        switch.listens_at(PublicAddress { url, listens, sessions: sessions.clone(), shared_port });
    }
    if wish.open {
        warnings
            .push("--auth none: whoever reaches this address on this machine may do everything".to_owned());
    }
    if wish.behind_proxy && wish.public.is_none() {
        let own = listening.url.trim_start_matches("http://");
        warnings.push(format!(
            "--behind-proxy without --public-url: a request whose Host is the proxy's name is answered with 421, only {own} \
             is; name the address that browsers open with --public-url https://HOST"
        ));
    }
    let transport = TcpTransport {
        names: listening.names,
        sessions: sessions.clone(),
        secure: listening.secure,
        port: listening.port,
        open: wish.open,
        rate_limit: RateLimit::default(),
        client_timeout: wish.client_timeout,
    };
    let server = Arc::new(HttpServer { projects, transport: Transport::Tcp(transport) });
    Ok(Opened {
        url: listening.url,
        listens: listening.listens,
        warnings,
        listener: Listener::Tcp(listening.listener, listening.tls),
        server,
        sessions,
    })
}

pub fn run(command: &Serve, context: Context) -> Result<(), Failure> {
    let Found { projects, mut broken } = projects(command, &context.globals)?;
    projects.iter().try_for_each(|project| project.check_here("`adj serve`"))?;
    if command.detach {
        broken.iter().for_each(|broken| warn(broken));
        return detach(command, &projects, context);
    }
    base::files::raise_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut hosted = Vec::new();
    let several = projects.len() + broken.len() > 1;
    for project in projects {
        match open(&project, hosted.iter().map(|hosted: &Hosted| hosted.name.as_str())) {
            Ok(one) => hosted.push(one),
            // The others are served all the same.
            Err(failure) if several => {
                broken.push(format!("{} is not served: {failure}", shown(project.root())));
            }
            Err(failure) => return Err(failure),
        }
    }
    if hosted.is_empty() {
        return Err(Failure::new(Exit::Failed, "none of the projects could be opened").lines(broken));
    }
    let served = runtime.block_on(serve(command, &hosted, broken, context));
    runtime.shutdown_timeout(THREADS_GRACE);
    served
}

/// A project that this process owns.
struct Hosted {
    name: String,
    project: Project,
    owner: Owner,
}

fn open<'n>(project: &Project, taken: impl Iterator<Item = &'n str>) -> Result<Hosted, Failure> {
    if let Some(running) = project.running()? {
        let message = format!("process {running} serves this project, or runs its fleet, already");
        return Err(Failure::new(Exit::Refused, message)
            .hint("`adj url` prints a link to a server, `adj stop` ends the process"));
    }
    for note in project.layout().mend_modes() {
        eprintln!("note: {}", text::visible(&note));
    }
    let owner = project.owner_of(project.own_log_soon()?)?;
    let taken: Vec<&str> = taken.collect();
    let name = project.name();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let name = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(&name.as_str()));
    Ok(Hosted { name: name.unwrap_or_default(), project: project.clone(), owner })
}

/// What is to be served, and what cannot be, each with the reason.
struct Found {
    projects: Vec<Project>,
    broken: Vec<String>,
}

/// Those that were named, all that are known, or the one around the current directory.
fn projects(command: &Serve, globals: &Globals) -> Result<Found, Failure> {
    if !command.all && (globals.server.is_some() || globals.project.len() < 2) {
        return Ok(Found { projects: vec![Project::find(globals)?], broken: Vec::new() });
    }
    if !command.all {
        let found = Found::among(globals.project.clone(), globals);
        return match found.projects.is_empty() {
            false => Ok(found),
            true => Err(Failure::not_found("none of the projects could be opened").lines(found.broken)),
        };
    }
    let known = project::registry::all().map_err(|error| {
        Failure::new(Exit::Failed, format!("the list of projects cannot be read: {error}"))
    })?;
    if known.is_empty() {
        return Err(Failure::not_found("no project was set up for this user yet")
            .hint("`adj init` in a repository sets one up"));
    }
    Ok(Found::among(known, globals))
}

impl Found {
    fn among(roots: Vec<PathBuf>, globals: &Globals) -> Found {
        let mut found = Found { projects: Vec::new(), broken: Vec::new() };
        for root in roots {
            match Project::find(&Globals { project: vec![root.clone()], ..globals.clone() }) {
                Ok(project) => found.projects.push(project),
                Err(failure) => found.broken.push(format!("{} is not served: {failure}", shown(&root))),
            }
        }
        found
    }
}

/// What `adj serve --json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listens<'s> {
    url: &'s str,
    /// Where the process itself listens, where browsers open another address.
    #[serde(skip_serializing_if = "Option::is_none")]
    listens: Option<&'s str>,
    pid: u32,
    projects: Vec<&'s str>,
    /// Projects that could not be opened, each with the reason.
    not_served: &'s [String],
}

async fn serve(
    command: &Serve,
    hosted: &[Hosted],
    broken: Vec<String>,
    context: Context<'_>,
) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
    // Before anybody is told that it is ready: a signal that came sooner would end it at once.
    let signals = Signals::listen()?;
    observe::begin(command.listen.log);
    super::background::rotate();
    let quiet = context.globals.quiet || context.globals.json || observe::tells_json();
    let (lines, mut told) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let until = |mut stopped: watch::Receiver<bool>| async move {
        // Whoever would say so is gone: that says it too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let wished = command.listen.wished();
    let mut serving = JoinSet::new();
    let (mut switches, mut projects, mut sockets) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut notifier = Vec::new();
    for Hosted { name, project, owner } in hosted {
        let (notices, heard) = mpsc::unbounded_channel();
        let switch = Switch::new(project, owner.handle(), notices)?;
        switch.apply_settings();
        let (socket, listener) = Socket::bind(&project.folder()).await.map_err(|error| failed(&error))?;
        let mounted = switch.mounted(Some(switch.streams(wished.streams())?));
        observe::watch(name, &owner.handle(), &mounted, project.layout().log());
        let server = HttpServer::of_socket(name, mounted.clone());
        serving.spawn(server::serve(
            Listener::Socket(listener, socket.address()),
            server,
            until(stopped.clone()),
        ));
        let shown = (hosted.len() > 1).then(|| name.clone());
        let printed = (!quiet).then(|| lines.clone());
        tokio::spawn(tell(name.clone(), shown, switch.clone(), heard, printed));
        tokio::spawn(look_after_tickets(switch.clone()));
        tokio::spawn(switch.clone().keep_time());
        notifier.push(switch.tell_others(name).await);
        projects.insert(name.clone(), mounted);
        switches.push(switch);
        sockets.push(socket);
    }
    let public_address = open_address(&wished, projects, &switches).await?;
    let link = public_address.link().map_err(|error| failed(&error))?;
    serving.spawn(server::serve(public_address.listener, public_address.server, until(stopped)));
    let out = context.out;
    let names = hosted.iter().map(|hosted| hosted.name.as_str()).collect();
    if context.globals.json {
        let listens = Listens {
            url: &public_address.url,
            listens: public_address.listens.as_deref(),
            pid: std::process::id(),
            projects: names,
            not_served: &broken,
        };
        writeln!(out, "{}", text::json(&listens))?;
    } else {
        writeln!(
            out,
            "serving {} at {}{}",
            names.join(", "),
            public_address.url,
            listening(public_address.listens.as_deref())
        )?;
        // What is not read by a person may be kept, and a link is a secret.
        match std::io::stdout().is_terminal() {
            true => writeln!(out, "open in a browser, once: {link}")?,
            false => writeln!(out, "`adj url` prints a link for a browser")?,
        }
    }
    out.flush()?;
    service_manager::tell(service_manager::READY);
    for warning in public_address.warnings.iter().chain(&broken) {
        warn(warning);
    }
    if command.open {
        open_in_browser(&link);
    }
    if command.run {
        for switch in &switches {
            let starting = switch.clone();
            let started = tokio::task::spawn_blocking(move || SwitchControl(starting).start(None)).await;
            if let Ok(Err(problem)) = started {
                warn(&format!("the fleet was not started: {}", problem.detail));
            }
        }
    }
    watch_over(&switches, signals, &mut told, out, quiet, command.keep_agents).await?;
    service_manager::tell(service_manager::STOPPING);
    stop.send_replace(true);
    serving.join_all().await;
    futures_util::future::join_all(notifier.into_iter().map(NotifierTask::finish)).await;
    observe::finish().await;
    drop(sockets);
    Ok(())
}

/// What is said of an address that is not the one which browsers open.
pub fn listening(listens: Option<&str>) -> String {
    listens.map(|address| format!(" (listening at {address})")).unwrap_or_default()
}

fn warn(warning: &str) {
    if !observe::notice(None, warning) {
        eprintln!("warning: {}", text::visible(warning));
    }
}

/// The signals that end a server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { interrupt, terminate })
    }
}

/// Prints what happens until the process is to end, and all its fleets have.
async fn watch_over(
    switches: &[Arc<Switch>],
    mut signals: Signals,
    told: &mut mpsc::UnboundedReceiver<String>,
    out: &mut dyn Write,
    quiet: bool,
    keep_agents: bool,
) -> Result<(), Failure> {
    let mut ends: JoinSet<()> = switches
        .iter()
        .map(|switch| {
            let mut ending = switch.ending();
            async move { drop(ending.wait_for(|end| *end).await) }
        })
        .collect();
    let mut stopping = 0;
    let mut look = tokio::time::interval(Duration::from_millis(50));
    loop {
        let asked = tokio::select! {
            Some(line) = told.recv() => {
                if !quiet {
                    writeln!(out, "{line}")?;
                    out.flush()?;
                }
                false
            }
            _ = signals.interrupt.recv() => true,
            _ = signals.terminate.recv() => {
                // As if it had crashed, which agents survive: whoever comes next finds them.
                if keep_agents {
                    break;
                }
                true
            }
            // Its fleet was told how to stop by whoever asked for the end.
            Some(_) = ends.join_next() => {
                stopping = stopping.max(1);
                for switch in switches {
                    SwitchControl(switch.clone()).stop(false);
                }
                false
            }
            _ = look.tick(), if stopping > 0 => {
                if !switches.iter().any(|switch| switch.is_on()) {
                    break;
                }
                false
            }
        };
        if asked {
            stopping += 1;
            let now = stopping > 1;
            if !quiet && switches.iter().any(|switch| switch.is_on()) {
                let text = match now {
                    false => "stopping: waiting for running calls to end; Ctrl-C again ends them now",
                    true => "ending every agent now; what they have written is kept",
                };
                writeln!(out, "{text}")?;
                out.flush()?;
            }
            for switch in switches {
                SwitchControl(switch.clone()).stop(now);
            }
        }
    }
    while let Ok(line) = told.try_recv() {
        if !quiet {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Tells what happens in a project, line by line, as a fleet in a terminal would: to `lines` where they are printed, and to
/// whoever reads the story.
async fn tell(
    project: String,
    name: Option<String>,
    switch: Arc<Switch>,
    mut heard: mpsc::UnboundedReceiver<String>,
    lines: Option<mpsc::UnboundedSender<String>>,
) {
    let mut head = switch.handle().follow();
    let paint = Paint::new(&Globals { no_color: true, ..Globals::default() }, false);
    let mut shown = 0;
    loop {
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return },
            Some(text) = heard.recv() => {
                observe::notice(Some(&project), &text);
                switch.story().hear(clock::now(), &text);
            }
        }
        loop {
            let telling = switch.clone();
            let told = tokio::task::spawn_blocking(move || {
                (telling.story().follow(telling.handle()), telling.story().after(shown, usize::MAX))
            });
            let Ok((more, told)) = told.await else { return };
            for line in told {
                shown = line.number;
                let line = super::story_lines::print(&line.into(), paint, usize::MAX);
                let line = name.as_ref().map_or(line.clone(), |name| format!("{name}: {line}"));
                if lines.as_ref().is_some_and(|lines| lines.send(line).is_err()) {
                    return;
                }
            }
            if !more.unwrap_or(false) {
                break;
            }
        }
    }
}

/// Tickets are files that people write at any time; a fleet at work looks after them itself.
async fn look_after_tickets(switch: Arc<Switch>) {
    let mut look = tokio::time::interval(TICKETS);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if switch.is_on() {
            continue;
        }
        let looking = switch.clone();
        let looked = tokio::task::spawn_blocking(move || {
            looking.apply_settings();
            // What cannot be told now, such as a ticket with a fault, is told by `adj doctor`.
            let _ = fleet::see_alone(looking.handle(), looking.layout());
            let _ = fleet::write_alone(looking.handle(), looking.layout());
        });
        if looked.await.is_err() {
            return;
        }
    }
}

pub fn open_in_browser(link: &str) {
    let openers = ["xdg-open", "open"];
    let opened = openers.iter().find_map(|program| {
        let program = project::program::which(program)?;
        std::process::Command::new(program)
            .arg(link)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    });
    if opened.is_none() {
        warn("no program was found that opens a browser");
    }
}

/// What `adj serve --detach --json` prints.
#[derive(Serialize)]
struct Detached<'d> {
    pid: u32,
    url: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    listens: Option<&'d str>,
    log: &'d Path,
}

/// Starts the same server in a process group of its own, and returns once it answers.
fn detach(command: &Serve, projects: &[Project], context: Context) -> Result<(), Failure> {
    let Some(first) = projects.first() else {
        return Err(Failure::not_found("there is no project to serve"));
    };
    for project in projects {
        if let Some(running) = project.running()? {
            let message = format!("process {running} serves this project, or runs its fleet, already");
            return Err(Failure::new(Exit::Refused, message).hint("`adj stop` ends it"));
        }
    }
    let mut line = vec!["serve".to_owned()];
    for project in projects {
        line.extend(["--project".to_owned(), project.root().display().to_string()]);
    }
    line.extend(command.listen.arguments());
    line.extend(
        [("--run", command.run), ("--open", command.open), ("--keep-agents", command.keep_agents)]
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name.to_owned()),
    );
    let mut started = super::background::start(first, &line)?;
    let fleet = started.until(DETACH, || {
        let fleet: Option<Fleet> = first.running()?.map(|_| first.get("/fleet")).transpose()?;
        Ok(fleet.filter(|fleet| fleet.url.is_some()))
    })?;
    let Some(Fleet { pid: Some(pid), url: Some(url), listens, .. }) = fleet else {
        return Err(Failure::new(Exit::Failed, "the server has ended").hint(started.hint()));
    };
    if context.globals.json {
        return Ok(writeln!(
            context.out,
            "{}",
            text::json(&Detached { pid, url: &url, listens: listens.as_deref(), log: started.log() })
        )?);
    }
    let log = shown(started.log());
    let listening = listening(listens.as_deref());
    writeln!(context.out, "serving at {url}{listening} as process {pid}; its lines go to {log}")?;
    Ok(writeln!(context.out, "`adj url` prints a link for a browser, `adj stop` ends it")?)
}

/// Print a link that opens the server's page in a browser
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj url
  adj url --open

The link works once, within ten minutes. The browser stays signed in for two weeks.")]
pub struct Url {
    /// Open the link in a browser
    #[arg(long)]
    open: bool,
}

pub fn url(command: &Url, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let link: Link = project.post("/links", &Nothing {})?;
    if command.open {
        open_in_browser(&link.url);
    }
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&link))?),
        false => Ok(writeln!(context.out, "{}", link.url)?),
    }
}
