//! A project that this process owns and answers for: its tokens, its fleet, which can be started and stopped, and what
//! requests are answered from. `adj run` hosts one and runs its fleet; `adj serve` hosts several.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::project::Project;
use super::ready::{self, Wanted};
use super::{Exit, Failure};
use api::story_feed::StoryFeed;
use api::tokens::Who;
use api::types::token::Link;
use api::{self, Control, FleetStatus, Problem};
use base::clock;
use fleet::apply_settings;
use fleet::{self, Away, KeyFor, Options, RunError, Runner, Stop};
use log::owner::Handle;
use machines::Millis;
use machines::names::AgentName;
use project::layout::Layout;
use project::settings::trust;
use server::real_host::RealHost;
use server::webhooks::{self, NotifierTask};
use server::{Events, Feeds, FromLog, MountedProject, ProjectServices, Sessions, Tokens};
use streams::Streams;
use tokio::sync::{mpsc, watch};

/// The fleet of a project, as requests see it: at work or not.
pub struct Switch {
    layout: Layout,
    handle: Handle,
    tokens: Arc<Tokens>,
    notices: mpsc::UnboundedSender<String>,
    since: Millis,
    fleet: Mutex<Fleet>,
    /// Whether a fleet is at work or being made ready.
    on: watch::Sender<bool>,
    /// Held by whoever reports timers: a fleet, or this process while it has none.
    timers: tokio::sync::Mutex<()>,
    /// Since when nobody has let turns go on, until it is said.
    away: Mutex<Option<Away>>,
    /// Where browsers find this process, once it listens there.
    public_address: OnceLock<PublicAddress>,
    /// Somebody wants the process itself to end.
    end: watch::Sender<bool>,
    /// The settings files as they were when they were applied last.
    applied: Mutex<Option<trust::Stamp>>,
    /// What is told of the project since this process owns it.
    story: Arc<StoryFeed>,
}

#[derive(Default)]
enum Fleet {
    #[default]
    Off,
    /// It is being made ready.
    Opening,
    On {
        runner: Runner,
        sandbox: Option<String>,
        since: Millis,
    },
}

/// How streams are served.
#[derive(Clone, Copy, Debug)]
pub struct StreamSettings {
    pub long_poll: Duration,
    /// Idle timeout for request bodies and for responses.
    pub client_timeout: Duration,
    /// Nobody is asked for a token.
    pub open: bool,
    /// Webhooks may go to this machine and to private networks.
    pub local_webhooks: bool,
}

/// The address of a server, and who may come by a link.
pub struct PublicAddress {
    pub url: String,
    /// Where it listens, where that is another address.
    pub listens: Option<String>,
    pub sessions: Arc<Sessions>,
    /// What is wrong with its port, where the system may give that to another program.
    pub shared_port: Option<String>,
}

impl Switch {
    /// With its fleet off. `notices` gets what people should hear and the log does not hold.
    pub fn new(
        project: &Project,
        handle: Handle,
        notices: mpsc::UnboundedSender<String>,
    ) -> Result<Arc<Switch>, Failure> {
        let tokens =
            Tokens::open(&project.folder()).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        Ok(Arc::new(Switch {
            // Before this process writes anything.
            away: Mutex::new(Away::since_last_record(&handle)),
            on: watch::Sender::new(false),
            timers: tokio::sync::Mutex::default(),
            layout: project.layout().clone(),
            story: Arc::new(StoryFeed::new(&handle.world())),
            handle,
            tokens: Arc::new(tokens),
            notices,
            since: clock::now(),
            fleet: Mutex::default(),
            public_address: OnceLock::new(),
            end: watch::Sender::new(false),
            applied: Mutex::default(),
        }))
    }

    /// What requests to the project are answered from.
    pub fn mounted(self: &Arc<Self>, streams: Option<Streams>) -> Arc<MountedProject> {
        let project: Arc<dyn api::Project + Send + Sync> = Arc::new(self.handle.clone());
        MountedProject::new(ProjectServices {
            project: project.clone(),
            host: Arc::new(RealHost::with_tokens(self.layout.clone(), self.tokens.clone())),
            control: Arc::new(SwitchControl(self.clone())),
            tokens: self.tokens.clone(),
            events: Events::start(project, self.handle.follow()),
            streams,
        })
    }

    /// The project's durable streams: those that clients write, and those that are read from the log.
    pub fn streams(&self, settings: StreamSettings) -> Result<Streams, Failure> {
        let feeds = Feeds::start(self.handle.clone(), self.layout.spoken());
        let options = streams::Options {
            long_poll: settings.long_poll,
            stall: settings.client_timeout,
            body_timeout: settings.client_timeout,
            // Whoever asks nobody for a token serves a test suite.
            allow_origin: settings.open.then(|| "*".to_owned()),
            local_webhooks: settings.open || settings.local_webhooks,
            tls: Some(Arc::new(server::outgoing::SystemTls)),
            memory: server::memory(),
            source: Some(Arc::new(FromLog(feeds))),
            ..streams::Options::default()
        };
        let streams = Streams::open(&self.layout.state().join("streams"), options)
            .map_err(|error| Failure::new(Exit::Failed, format!("the streams cannot be opened: {error}")))?;
        if let Some(why) = streams.damage() {
            let text =
                format!("the streams that clients wrote are damaged and not served: {why}; see `adj verify`");
            let _ = self.notices.send(text);
        }
        Ok(streams)
    }

    /// Tells those of the settings, from now on, when a person is needed.
    pub async fn tell_others(&self, project: &str) -> NotifierTask {
        let (handle, layout) = (self.handle.clone(), self.layout.clone());
        webhooks::start(project.to_owned(), handle, layout, self.notices.clone()).await
    }

    /// Where what lets people in to the project is kept.
    pub fn folder(&self) -> &Path {
        self.tokens.folder()
    }

    pub fn story(&self) -> &Arc<StoryFeed> {
        &self.story
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// From now on it has an address.
    pub fn listens_at(&self, public_address: PublicAddress) {
        // It listens once, when it starts.
        let _ = self.public_address.set(public_address);
    }

    /// Changes when somebody wants the process to end.
    pub fn ending(&self) -> watch::Receiver<bool> {
        self.end.subscribe()
    }

    /// A fleet that is ready to run, and from now on the project's; whoever asked for it runs it.
    pub fn open(&self, wanted: Wanted) -> Result<Runner, RunError> {
        *self.lock() = Fleet::Opening;
        self.on.send_replace(true);
        let away = self.absence().take();
        let sandbox = fleet::sandbox_held(&wanted.in_force.settings);
        let opened = adj().and_then(|adj| {
            let options = Options {
                layout: self.layout.clone(),
                settings: wanted.in_force.settings,
                read: wanted.in_force.read,
                adj,
                workers: wanted.workers,
                once: wanted.once,
                until_idle: wanted.until_idle,
                keys: Some(Arc::new(AgentKeys { tokens: self.tokens.clone(), handle: self.handle.clone() })),
                away,
            };
            Runner::open(self.handle.clone(), options, self.notices.clone())
        });
        *self.lock() = match &opened {
            Ok(runner) => Fleet::On { runner: runner.clone(), sandbox, since: clock::now() },
            Err(_) => Fleet::Off,
        };
        if opened.is_err() {
            *self.absence() = away;
            self.on.send_replace(false);
        }
        opened
    }

    /// Reports what is due for agents from outside whenever no fleet does. It never ends by itself.
    pub async fn keep_time(self: Arc<Self>) {
        let (mut off, mut on) = (self.on.subscribe(), self.on.subscribe());
        // The sender lives as long as the switch does.
        while off.wait_for(|on| !*on).await.is_ok() {
            let _turn = self.timers.lock().await;
            let away = self.nobody_was_there();
            let end = async { drop(on.wait_for(|on| *on).await.map(|on| *on)) };
            let sleep = base::clock::SleepRecord::open(self.layout.clocks());
            let reported = fleet::report_timers(self.handle.clone(), sleep, away, end).await;
            let Err(error) = reported else { continue };
            let _ = self.notices.send(format!("turns and leases of agents from outside do not end: {error}"));
            return;
        }
    }

    /// Since when this process and those before it were not there, if nobody has said so; from now on only a fleet is not.
    fn nobody_was_there(&self) -> Option<Away> {
        let mut absence = self.absence();
        let away = absence.filter(|away| !away.hosted);
        if away.is_some() || absence.is_none() {
            *absence = Some(Away { since: clock::now(), hosted: true });
        }
        away
    }

    fn absence(&self) -> MutexGuard<'_, Option<Away>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the settings while no fleet runs, which applies its own. What people should know of it is sent as a notice, once
    /// for each content.
    pub fn apply_settings(&self) {
        if self.is_on() {
            return;
        }
        let now = trust::stamp(&self.layout);
        let before = self.applied.lock().unwrap_or_else(PoisonError::into_inner).replace(now.clone());
        if before.as_ref() == Some(&now) {
            return;
        }
        let said = match apply_settings::apply(&self.handle, &self.layout) {
            Ok(applied) => match applied.note() {
                Some(note) => note.to_owned(),
                None if before.is_some() => "adjutant.toml was read again".to_owned(),
                None => return,
            },
            Err(error) => {
                format!("adjutant.toml is invalid, and the previous settings stay in force: {error}")
            }
        };
        let _ = self.notices.send(said);
    }

    /// The fleet has ended.
    pub fn closed(&self) {
        *self.lock() = Fleet::Off;
        *self.absence() = Some(Away { since: clock::now(), hosted: true });
        self.on.send_replace(false);
    }

    pub fn is_on(&self) -> bool {
        !matches!(*self.lock(), Fleet::Off)
    }

    fn lock(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a fleet until it is stopped, and says how it ended.
    async fn run(&self, runner: Runner) {
        let turn = self.timers.lock().await;
        let ended = runner.run().await;
        drop(turn);
        self.closed();
        let said = match ended {
            Ok(()) => "the fleet has stopped; the server goes on".to_owned(),
            Err(error) => format!("the fleet ended: {error}"),
        };
        let _ = self.notices.send(said);
    }
}

/// This program, from which keepers are started.
fn adj() -> Result<PathBuf, RunError> {
    std::env::current_exe().map_err(|why| RunError::Io { path: "/proc/self/exe".into(), why })
}

/// What there is to say of a fleet that could not be made ready.
pub fn cannot_open(error: &RunError) -> Failure {
    let failed = Failure::new(Exit::Failed, error.to_string());
    match error {
        RunError::Obstacle(obstacle) => failed.hint(obstacle.hint()),
        _ => failed.hint("`adj doctor` looks for what is wrong"),
    }
}

/// Nothing is wrong with the server: the project is not in a state in which a fleet could work.
fn not_ready(failure: Failure) -> Problem {
    Problem::from(failure).with_status(409, "NOT_READY")
}

/// What requests may do with a fleet.
pub struct SwitchControl(pub Arc<Switch>);

impl Control for SwitchControl {
    fn status(&self) -> FleetStatus {
        let url = self.0.public_address.get().map(|public_address| public_address.url.clone());
        let off = FleetStatus {
            running: false,
            pid: std::process::id(),
            url,
            listens: self.0.public_address.get().and_then(|public_address| public_address.listens.clone()),
            shared_port: self
                .0
                .public_address
                .get()
                .and_then(|public_address| public_address.shared_port.clone()),
            since: self.0.since,
            workers: 0,
            sandbox: None,
            tests: Vec::new(),
        };
        match &*self.0.lock() {
            Fleet::Off => off,
            Fleet::Opening => FleetStatus { running: true, ..off },
            Fleet::On { runner, sandbox, since } => FleetStatus {
                // From its first request to its last: it can be told to stop, or to stop sooner, at any of them.
                running: true,
                since: *since,
                workers: self.0.handle.world().workers.len() as u32,
                sandbox: sandbox.clone(),
                tests: runner.running_tests(),
                ..off
            },
        }
    }

    fn start(&self, workers: Option<u32>) -> Result<(), Problem> {
        if self.0.is_on() {
            return Err(Problem::new(409, "RUNNING", "a fleet is at work here already")
                .hint("`adj ps` shows it, `adj stop` stops it"));
        }
        let ready = ready::ready(&self.0.layout).map_err(not_ready)?;
        for note in ready.notes {
            let _ = self.0.notices.send(note);
        }
        let wanted = Wanted { in_force: ready.in_force, workers, once: false, until_idle: false };
        let runner = Switch::open(&self.0, wanted).map_err(|error| not_ready(cannot_open(&error)))?;
        let switch = self.0.clone();
        tokio::runtime::Handle::current().spawn(async move { switch.run(runner).await });
        Ok(())
    }

    fn stop(&self, now: bool) {
        if let Fleet::On { runner, .. } = &*self.0.lock() {
            runner.stop(if now { Stop::Now } else { Stop::Clean });
        }
    }

    fn end(&self) {
        self.0.end.send_replace(true);
    }

    fn story(&self) -> Option<Arc<StoryFeed>> {
        Some(self.0.story.clone())
    }

    fn link(&self, who: Who, now: Millis) -> Result<Link, Problem> {
        let public_address = self.0.public_address.get().ok_or_else(api::tokens::not_served)?;
        let made = public_address.sessions.link(who, Some(self.0.tokens.folder()), now);
        let (code, until) = made.map_err(|error| Problem::new(500, "NO_SECRET", error.to_string()))?;
        Ok(Link { url: format!("{}/enter#{code}", public_address.url), expires_at: api::time(until) })
    }

    fn reread(&self) {
        if let Fleet::On { runner, .. } = &*self.0.lock() {
            runner.reread();
            return;
        }
        self.0.apply_settings();
    }
}

/// The tokens that the server knows, as the runner gives them out.
struct AgentKeys {
    tokens: Arc<Tokens>,
    handle: Handle,
}

impl fleet::Keys for AgentKeys {
    fn mint(&self, agent: &AgentName, what: KeyFor<'_>) -> Option<String> {
        let role = self.handle.world().config.agent(agent).role;
        self.tokens.mint(agent, role, what).ok()
    }

    fn hidden(&self) -> Vec<String> {
        self.tokens.hashes()
    }

    fn keep_only(&self, lives: &dyn Fn(KeyFor<'_>) -> bool) -> Result<(), fleet::AnyError> {
        Ok(self.tokens.keep_only(lives)?)
    }
}
