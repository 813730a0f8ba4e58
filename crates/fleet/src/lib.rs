//! The fleet: carries out the effects that the kernel asks for, and reports the outcome of each. It may know every crate that
//! touches the world, and neither the API nor the server. Begin with `main_loop.rs` and `executor.rs`.
//!
//! Everything that it starts is known by the id of its effect, so the next runner finds it again after a
//! kill.
//!
//! Invariants:
//! - an effect is carried out by one task of this process at a time, under the attempt that the log gave out;
//! - everything that an outcome depends on is on disk before the outcome is reported;
//! - an outcome that cannot be recorded because the disk is full waits until there is space again.

mod after_commit;
mod after_landing;
pub mod apply_settings;
mod authorship;
mod caches;
mod checkout;
pub mod command_line;
pub mod desktop;
mod disk;
pub mod doctor;
mod endings;
mod executor;
mod gate;
mod health;
mod hooks;
mod in_force;
mod kept_command;
mod landing;
mod listener;
mod main_loop;
mod main_tests;
pub(crate) mod marks;
mod prompt_text;
mod pull_request;
mod recovery;
mod repository;
mod request_text;
mod room_text;
mod sandbox_notes;
mod seats;
pub mod shell;
pub mod standstill;
mod step;
mod step_commands;
mod surroundings;
mod test_runs;
mod tickets;
mod tidy;
mod timers_alone;
mod tip;
mod trees;
mod user_commands;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use kernel::command::Happened;
use kernel::rooms::Seat;
use kernel::{Answer, Ask, Reply, World};
use machines::names::{AgentName, ChannelName, EffectId, RequestId, RunId, TaskId};
use tokio::sync::{Semaphore, mpsc, watch};

use base::clock;
use git::{self, GitError, Repository};
use log::outbox::{self, Meaning, Told};
use log::owner::{Handle, SubmitError};
use log::{Fence, Millis};
use project::layout::Layout;
use project::prompts::Prompts;
use project::settings::{Settings, trust};

use in_force::SettingsInForce;
use step_commands::StepCommand;

pub use after_commit::{STANDSTILL, is_news, notice_id, standstill_id};
pub use kept_command::{KeptRun, runs_of};
pub use marks::taken_back_with;
pub use prompt_text::prompt_now;
pub use repository::open_repository;
pub use sandbox_notes::{
    Gap, LeadsBack, checkout_note, leads_back, sandbox_held, sandbox_note, sandbox_refusal, unenforced,
};
pub use step::{For, Step, StepFile};
pub use surroundings::limits;
pub use tickets::{TicketScan, look_alone, see_alone, untold, write_alone};
pub use timers_alone::{Away, report_timers};

/// How a fleet is run.
pub struct Options {
    pub layout: Layout,
    pub settings: Settings,
    /// What the settings file had when they were read.
    pub read: trust::Read,
    /// The program that keepers are started from: `adj` itself.
    pub adj: PathBuf,
    /// How many workers, if not as many as the settings say.
    pub workers: Option<u32>,
    /// Each worker takes one step, and what follows from it is finished.
    pub once: bool,
    /// Ends when there is nothing left to do without a person.
    pub until_idle: bool,
    /// The tokens that agents are given, where there is a server that knows them.
    pub keys: Option<Arc<dyn Keys>>,
    /// Since when nobody let turns go on that were under way.
    pub away: Option<Away>,
}

/// What an agent's token is for; it lets nobody in when that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFor<'a> {
    Run(&'a RunId),
    /// One reply in a seat.
    Reply(&'a Seat, &'a EffectId),
}

/// The tokens of agents: one for each run, for as long as it is open, and one for each reply.
pub trait Keys: Send + Sync {
    /// A token for the agent; `None` where none can be kept.
    fn mint(&self, agent: &AgentName, what: KeyFor<'_>) -> Option<String>;

    /// Hashes of all tokens that let somebody in: none of them stays in what is kept of any output.
    fn hidden(&self) -> Vec<String>;

    /// When it returns, tokens for what `lives` says no to let nobody in.
    fn keep_only(&self, lives: &dyn Fn(KeyFor<'_>) -> bool) -> Result<(), AnyError>;
}

/// How the fleet is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    No,
    /// Calls that are running may end first, then every step comes to its turn's end.
    Clean,
    /// Every process is ended now; all that was written stays.
    Now,
}

/// An error that is told as it is, whatever it is.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// What an effect is about and is not there.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("there is no task `{0}`")]
    Task(TaskId),
    #[error("task `{0}` has no tree")]
    Tree(TaskId),
    #[error("there is no run `{0}`")]
    Run(RunId),
    #[error("there is no agent `{0}` in adjutant.toml")]
    Agent(AgentName),
    #[error("there is no channel `{0}`")]
    Channel(ChannelName),
    #[error("`{0}` is not a place of an agent in a channel")]
    Seat(Seat),
    #[error("there is no request `{0}` for an agent to answer")]
    Request(RequestId),
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Prompts(#[from] project::prompts::PromptError),
    #[error("the kernel refused a command of the runner: {0}")]
    Refused(kernel::Refusal),
    #[error("cannot use `{}`: {why}", path.display())]
    Io { path: PathBuf, why: std::io::Error },
    #[error(transparent)]
    Trees(#[from] project::layout::TreesError),
    #[error("{0}")]
    Obstacle(git::Obstacle),
    #[error("main's tests could not be run: {0}")]
    MainTests(#[source] test_runs::TestsError),
    #[error("main's tests could not be run: they were ended before they finished")]
    MainTestsEnded,
}

/// What main's own tests say.
pub struct MainTests {
    /// Absent where there are none.
    pub command: Option<String>,
    pub red: Option<String>,
}

/// What main's tests are kept under where a person runs them without a fleet.
const MAIN_BY_HAND: &str = "main-tests";

/// The fleet at work. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    /// How long the machine slept before this process.
    pub sleep: base::clock::SleepRecord,
    pub handle: Handle,
    pub layout: Layout,
    pub adj: PathBuf,
    pub repository: Repository,
    once: bool,
    until_idle: bool,
    workers: Option<u32>,
    keys: Option<Arc<dyn Keys>>,
    away: Option<Away>,
    settings: RwLock<Arc<SettingsInForce>>,
    /// What the settings file had when the fleet was opened.
    read: Option<Vec<u8>>,
    stop: watch::Sender<Stop>,
    /// Somebody wants the settings to be read anew.
    reread: tokio::sync::Notify,
    /// The steps that this process follows, and the way to each.
    steps: Mutex<HashMap<EffectId, mpsc::UnboundedSender<StepCommand>>>,
    /// Workers and seats that have had their step, where each gets only one.
    stepped: Mutex<BTreeSet<executor::Who>>,
    /// Where steps are followed.
    listener: listener::Listener,
    /// Git and files: more at once only makes each slower.
    hands: Semaphore,
    /// Test runs at once.
    tests: Semaphore,
    /// Who may use the folder in which merges and main are tested.
    landing_folder: tokio::sync::Mutex<()>,
    /// Whose landing the user's hook runs for.
    landed_hook: tokio::sync::Mutex<()>,
    /// The tests that run now: their effect, command, and since when.
    running: Mutex<Vec<RunningTests>>,
    pub tickets: tickets::TicketFolder,
    /// The landings that a checkout holds up, each with what is in the way and how it looked then.
    held_up: Mutex<HashMap<TaskId, landing::InTheWay>>,
    /// The remote's main as each task with a pull request has seen it last.
    remote_mains: Mutex<HashMap<TaskId, git::Oid>>,
    /// Held by whoever asks the remote: one is enough.
    remote_look: Arc<tokio::sync::Mutex<()>>,
    /// What was said and need not be said again.
    said: Mutex<HashSet<String>>,
    notices: mpsc::UnboundedSender<String>,
}

/// Tests that run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTests {
    /// The effect that they are run for.
    pub effect: String,
    pub command: String,
    pub since: Millis,
}

/// As long as it lives, a test run is shown as running.
pub(crate) struct Shown<'a> {
    shared: &'a Shared,
    effect: String,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|tests| tests.effect != self.effect);
    }
}

impl Runner {
    /// Opens the project's git directories and makes ready. Nothing runs yet. `notices` gets what people should hear
    /// and the log does not hold.
    pub fn open(
        handle: Handle,
        options: Options,
        notices: mpsc::UnboundedSender<String>,
    ) -> Result<Runner, RunError> {
        let Options { layout, settings, read, adj, workers, once, until_idle, keys, away } = options;
        base::files::raise_descriptors();
        trust::hold(&layout, &read).map_err(|why| RunError::Io { path: layout.state(), why })?;
        let prompts = Prompts::load(&settings, layout.root())?;
        let repository = repository::settle(&layout, &settings, &notices)?;
        repository.recover_work()?;
        if let Some(obstacle) = repository.obstacles()?.into_iter().next() {
            return Err(RunError::Obstacle(obstacle));
        }
        repository.exclude_ours()?;
        repository.repair_trees()?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let tickets = tickets::TicketFolder::new(&layout, &settings, repository.bare());
        let listener = listener::Listener::start()
            .map_err(|why| RunError::Io { path: layout.root().to_owned(), why })?;
        let shared = Shared {
            sleep: base::clock::SleepRecord::open(layout.clocks()),
            handle,
            layout,
            adj,
            repository,
            once,
            until_idle,
            workers,
            keys,
            away,
            settings: RwLock::new(Arc::new(SettingsInForce { settings, prompts })),
            read: read.content,
            stop: watch::Sender::new(Stop::No),
            reread: tokio::sync::Notify::new(),
            steps: Mutex::default(),
            stepped: Mutex::default(),
            listener,
            hands: Semaphore::new(2 * cores),
            tests: Semaphore::new(cores.max(2)),
            landing_folder: tokio::sync::Mutex::new(()),
            landed_hook: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            tickets,
            held_up: Mutex::default(),
            remote_mains: Mutex::default(),
            remote_look: Arc::default(),
            said: Mutex::default(),
            notices,
        };
        Ok(Runner { shared: Arc::new(shared) })
    }

    /// Asks the fleet to stop. Asking again can only make it quicker.
    pub fn stop(&self, how: Stop) {
        self.shared.stop.send_if_modified(|now| {
            let sooner = how > *now;
            *now = how.max(*now);
            sooner
        });
    }

    /// Has the settings read anew: what is trusted may have changed, though the file has not.
    pub fn reread(&self) {
        self.shared.reread.notify_one();
    }

    /// The tests that run now.
    pub fn running_tests(&self) -> Vec<RunningTests> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs main's own tests, without a fleet, whatever is known of them: whether they pass, and what they printed.
    pub async fn test_main(&self) -> Result<MainTests, RunError> {
        let shared = &self.shared;
        {
            let shared = shared.clone();
            shared.clone().blocking(move || shared.repository.ensure_land()).await?;
        }
        shared.make_caches().await;
        let begun = kept_command::begin_anew(shared, MAIN_BY_HAND).await;
        begun.map_err(|error| RunError::MainTests(error.into()))?;
        match main_tests::test(shared, MAIN_BY_HAND, true, None).await.map_err(RunError::MainTests)? {
            Some(Happened::MainGreen { command, .. }) => Ok(MainTests { command, red: None }),
            Some(Happened::MainRed { command, output, .. }) => {
                Ok(MainTests { command: Some(command), red: Some(output) })
            }
            _ => Err(RunError::MainTestsEnded),
        }
    }

    /// How it is to end, as far as somebody asked.
    pub fn stopping(&self) -> Stop {
        *self.shared.stop.borrow()
    }
}

/// Whether it may pass by itself: the disk is full, or failed.
fn passes(error: &SubmitError) -> bool {
    Meaning::of(error) == Meaning::Passes
}

impl Shared {
    pub fn in_force(&self) -> Arc<SettingsInForce> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn world(&self) -> Arc<World> {
        self.handle.world()
    }

    /// Where a task's tree is, from the name that the kernel gave it.
    pub fn tree(&self, name: &str) -> Result<PathBuf, GitError> {
        self.repository.tree_path(name)
    }

    /// Says something that people should hear and the log does not hold.
    pub fn notice(&self, text: impl Into<String>) {
        // Nobody listens: then nobody wants to hear it.
        let _ = self.notices.send(text.into());
    }

    /// Says something once, however often it is found.
    pub fn notice_once(&self, text: String) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
            self.notice(text);
        }
    }

    /// Returns once somebody asked the fleet to stop.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as the fleet does.
        async move { drop(stop.wait_for(|stop| *stop != Stop::No).await.map(|stop| *stop)) }
    }

    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow() != Stop::No
    }

    /// Tests are shown as running for as long as what is returned lives.
    pub fn show_tests(&self, effect: &str, command: &str) -> Shown<'_> {
        let running =
            RunningTests { effect: effect.to_owned(), command: command.to_owned(), since: clock::now() };
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(running);
        Shown { shared: self, effect: effect.to_owned() }
    }

    /// Does something that blocks, while others go on.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let _hand = self.hands.acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        for note in self.repository.notes() {
            self.notice(note);
        }
        match done {
            Ok(done) => done,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => unreachable!("blocking work is never cancelled: {error}"),
        }
    }

    /// Asks the kernel in the system's name. What the rules refuse is an error of ours.
    pub async fn ask(&self, ask: Ask) -> Result<Reply, RunError> {
        match self.submit(ask, None).await? {
            Answer::Done(reply) => Ok(reply),
            Answer::Refused(refusal) => Err(RunError::Refused(refusal)),
        }
    }

    pub async fn submit(&self, ask: Ask, fence: Option<&Fence>) -> Result<Answer, SubmitError> {
        outbox::submit(&mut &*self, ask, fence).await
    }

    /// Tells what came of an effect, or how far it has got. False: it is no longer wanted, and whoever does it may stop.
    pub async fn tell(&self, fence: &Fence, what: Happened) -> Result<bool, SubmitError> {
        Ok(outbox::tell(&mut &*self, fence, what).await? == Told::Wanted)
    }
}
