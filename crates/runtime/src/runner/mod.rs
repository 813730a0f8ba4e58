//! The runner: takes what the kernel asks of the world, does it, and tells what came of it.
//!
//! It waits for the log, a timer, a ticket, a settings file or a person, and never looks at everything every second.
//! Whatever it starts is known by the id of the effect that asked for it, so a runner that comes after one that was
//! killed finds it again.
//!
//! Invariants:
//! - an effect is carried out by one task of this process at a time, under the attempt that the log gave out;
//! - what an outcome rests on is on disk before the outcome is told;
//! - what cannot be told because the disk is full waits, and is told when there is room again.

pub mod desktop;
mod follow;
mod gate;
mod hooks;
mod kept;
mod landing;
mod listener;
mod main_tests;
mod place;
mod recovery;
pub mod shell;
mod steps;
mod tickets;
mod tidy;
mod trees;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kernel::command::Happened;
use kernel::{Actor, Answer, Ask, Command, Effect, Refusal, Reply, World};
use machines::names::{AgentName, EffectId, RunId, TaskId, WorkerName};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::clock;
use crate::crash;
use crate::git::{self, GitError, Places, Repository};
use crate::layout::Layout;
use crate::log::{Fence, Leased, Millis, Pending};
use crate::outbox::{self, Attempt, Clock, Desk, Executor, Meaning, Next, Outbox, Told};
use crate::owner::{Handle, SubmitError};
use crate::prompts::Prompts;
use crate::sandbox;
use crate::settings::{self, Health, Service, Settings, trust};

pub use kept::{KeptRun, runs_of};
pub use place::{limits, prompt_now};
pub use steps::{Step, StepFile};
pub use tickets::{Look, look_alone, see_alone, untold, write_alone};

/// No sleep is longer: see [`until`].
const SLEEP_MAX: Duration = Duration::from_secs(10);
/// How long what was told to end may take before the fleet stops without it. Its keeper goes on, and ends it.
const LEAVE_SECONDS: u64 = 10;
/// With less than this there is no room for anything.
const NO_ROOM_BYTES: u64 = 1 << 20;
/// How long everything may take to end when the fleet is stopped, beyond what running calls are given.
const STOP_SECONDS: u64 = 15;
/// How often a checkout that holds up a landing is looked at: a few file times, nothing that git must read.
const CHECKOUT_LOOK: Duration = Duration::from_secs(1);
/// How often the disk is looked at.
const DISK_SECONDS: u64 = 30;
/// How often main is looked at while it fails its own tests.
const MAIN_SECONDS: u64 = 2;
/// Less than this, and no further tree is made.
const DISK_BYTES_MIN: u64 = 256 << 20;

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
}

/// The tokens of agents: one for each run, for as long as it is open.
pub trait Keys: Send + Sync {
    /// A token for the run's agent; `None` where none can be kept.
    fn mint(&self, agent: &AgentName, run: &RunId) -> Option<String>;

    /// Hashes of all tokens that let somebody in: none of them stays in what is kept of any output.
    fn hidden(&self) -> Vec<String>;

    /// When it returns, tokens of runs that `lives` says no to let nobody in.
    fn keep_only(&self, lives: &dyn Fn(&RunId) -> bool) -> Result<(), String>;
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

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Prompts(#[from] crate::prompts::PromptError),
    #[error("the rules refused what the runner asked: {0}")]
    Refused(kernel::Refusal),
    #[error("cannot use `{}`: {why}", path.display())]
    Io { path: PathBuf, why: std::io::Error },
    #[error(transparent)]
    Trees(#[from] crate::layout::TreesError),
    #[error("{0}")]
    Obstacle(git::Obstacle),
    #[error("main's tests could not be run: {0}")]
    MainTests(String),
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
    pub handle: Handle,
    pub layout: Layout,
    pub adj: PathBuf,
    pub repository: Repository,
    once: bool,
    until_idle: bool,
    workers: Option<u32>,
    keys: Option<Arc<dyn Keys>>,
    settings: RwLock<Arc<Rules>>,
    /// What the settings file had when the fleet was opened.
    read: Option<Vec<u8>>,
    stop: watch::Sender<Stop>,
    /// Somebody wants the settings to be read anew.
    reread: tokio::sync::Notify,
    /// The steps that this process follows, and the way to each.
    steps: Mutex<HashMap<EffectId, mpsc::UnboundedSender<steps::Word>>>,
    /// Workers that have had their step, where each gets only one.
    stepped: Mutex<HashSet<WorkerName>>,
    /// Where steps are followed.
    listener: listener::Listener,
    /// Git and files: more at once only makes each slower.
    hands: Semaphore,
    /// Test runs at once.
    tests: Semaphore,
    /// Who may use the folder in which merges and main are tested.
    landing_folder: tokio::sync::Mutex<()>,
    /// The tests that run now: their effect, command, and since when.
    running: Mutex<Vec<RunningTests>>,
    pub tickets: tickets::Desk,
    /// The landings that a checkout holds up, each with what is in the way and how it looked then.
    held_up: Mutex<HashMap<TaskId, landing::InTheWay>>,
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

/// What the settings file says, as it was last read without a fault.
pub(crate) struct Rules {
    pub settings: Settings,
    pub prompts: Prompts,
}

impl Runner {
    /// Opens the project's git directories and makes ready. Nothing runs yet. `notices` gets what people should hear
    /// and the log does not hold.
    pub fn open(
        handle: Handle,
        options: Options,
        notices: mpsc::UnboundedSender<String>,
    ) -> Result<Runner, RunError> {
        let Options { layout, settings, read, adj, workers, once, until_idle, keys } = options;
        raise_file_limit();
        trust::hold(&layout, &read).map_err(|why| RunError::Io { path: layout.state(), why })?;
        let prompts = Prompts::load(&settings, layout.root())?;
        let repository = settle(&layout, &settings, &notices)?;
        repository.recover_work()?;
        if let Some(obstacle) = repository.obstacles()?.into_iter().next() {
            return Err(RunError::Obstacle(obstacle));
        }
        repository.exclude_ours()?;
        repository.repair_trees()?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let tickets = tickets::Desk::new(&layout, &settings, repository.bare());
        let listener = listener::Listener::start()
            .map_err(|why| RunError::Io { path: layout.root().to_owned(), why })?;
        let shared = Shared {
            handle,
            layout,
            adj,
            repository,
            once,
            until_idle,
            workers,
            keys,
            settings: RwLock::new(Arc::new(Rules { settings, prompts })),
            read: read.content,
            stop: watch::Sender::new(Stop::No),
            reread: tokio::sync::Notify::new(),
            steps: Mutex::default(),
            stepped: Mutex::default(),
            listener,
            hands: Semaphore::new(2 * cores),
            tests: Semaphore::new(cores.max(2)),
            landing_folder: tokio::sync::Mutex::new(()),
            running: Mutex::default(),
            tickets,
            held_up: Mutex::default(),
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
        let failed = |error: String| RunError::MainTests(error);
        kept::begin_anew(shared, MAIN_BY_HAND).await.map_err(failed)?;
        match main_tests::test(shared, MAIN_BY_HAND, true, None).await.map_err(failed)? {
            Some(Happened::MainGreen { command, .. }) => Ok(MainTests { command, red: None }),
            Some(Happened::MainRed { command, output, .. }) => {
                Ok(MainTests { command: Some(command), red: Some(output) })
            }
            _ => Err(RunError::MainTests("they were ended before they were through".to_owned())),
        }
    }

    /// How it is to end, as far as somebody asked.
    pub fn stopping(&self) -> Stop {
        *self.shared.stop.borrow()
    }

    /// Runs the fleet until it is stopped, or until there is nothing left to do where that was asked for.
    pub async fn run(&self) -> Result<(), RunError> {
        let shared = &self.shared;
        let begun = shared.world().seq;
        // First of all: whoever asks for a worker meanwhile gets one of the agents that the settings name.
        shared.configure().await?;
        {
            let shared = shared.clone();
            shared.clone().blocking(move || shared.repository.ensure_land()).await?;
        }
        shared.make_caches().await;
        recovery::recover(shared).await?;
        tidy::begin(shared);
        shared.look_at_disk().await?;
        // Watched before it is read: what changes in between is told.
        let watch = tickets::Watch::new(&shared.layout, &shared.rules().settings, shared.read.clone());
        tickets::see_all(shared, true).await?;
        shared.see_main().await?;
        let workers = self.shared.workers.unwrap_or(shared.rules().settings.fleet.workers);
        shared.ask(Ask::StartFleet { workers }).await?;
        let (over, end) = oneshot::channel();
        let following = tokio::spawn(follow::follow(shared.clone(), begun, end));
        let ended = self.work(watch).await;
        // The switch is turned off also where something went wrong: nobody is at work any more.
        let stopped = shared.ask(Ask::StopFleet).await;
        drop(over);
        if let Err(error) = following.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        ended?;
        match stopped {
            Err(RunError::Submit(error)) if passes(&error) => {
                shared.notice(format!(
                    "{error}: that the fleet stopped is not in the log; the next `adj run` goes on from there"
                ));
                Ok(())
            }
            stopped => stopped.map(drop),
        }
    }

    async fn work(&self, mut watch: tickets::Watch) -> Result<(), RunError> {
        let shared = &self.shared;
        let mut head = shared.handle.follow();
        let mut stop = shared.stop.subscribe();
        let mut outbox = Outbox::default();
        let mut tasks: JoinSet<Fence> = JoinSet::new();
        let mut disk = tokio::time::interval(Duration::from_secs(DISK_SECONDS));
        let mut tidy = tokio::time::interval_at(tokio::time::Instant::now() + tidy::EVERY, tidy::EVERY);
        let mut main = tokio::time::interval(Duration::from_secs(MAIN_SECONDS));
        loop {
            if *stop.borrow_and_update() != Stop::No {
                return self.end(tasks).await;
            }
            head.borrow_and_update();
            let next = match outbox.turn(&mut Hands { shared, desk: shared, tasks: &mut tasks }).await {
                // It was tried until the fleet was to stop.
                Err(error) if passes(&error) => continue,
                next => next?,
            };
            if (shared.until_idle || shared.once) && shared.is_idle(&outbox) {
                if tasks.is_empty() {
                    // What has just landed may have brought tickets.
                    tickets::see_all(shared, false).await?;
                    if shared.is_idle(&outbox) {
                        return Ok(());
                    }
                    continue;
                }
                // Every step that is under way waits for a person's answer, and perhaps other work for its worker.
                if shared.waits_for_answers(&outbox) && shared.leave_unanswered().await? {
                    continue;
                }
            }
            let went = tokio::select! {
                _ = head.changed() => Ok(()),
                () = until(next) => Ok(()),
                () = until(shared.tickets.look_again()) => tickets::see_all(shared, false).await,
                _ = stop.changed() => Ok(()),
                () = shared.reread.notified() => shared.reload().await,
                _ = disk.tick() => {
                    let looked = shared.look_at_disk().await;
                    // Whoever makes room wants to see it taken.
                    if shared.world().disk_full.is_some() {
                        disk.reset_after(outbox::FULL_DISK_LOOK);
                    }
                    looked
                }
                () = tokio::time::sleep(CHECKOUT_LOOK), if shared.is_held_up() => {
                    landing::look_at_checkouts(shared).await.map_err(RunError::from)
                }
                _ = tidy.tick() => {
                    tidy::begin(shared);
                    Ok(())
                }
                // Whoever mends main wants to see it noticed.
                _ = main.tick(), if shared.main_is_red() => shared.see_main().await,
                changed = watch.changed() => match changed {
                    tickets::Changed::Tickets => tickets::see_all(shared, false).await,
                    tickets::Changed::Settings => shared.reload().await,
                },
                Some(ended) = tasks.join_next() => {
                    match ended {
                        Ok(attempt) => outbox.over(&attempt),
                        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                        Err(_) => {}
                    }
                    Ok(())
                }
            };
            match went {
                // It was tried until the fleet was to stop.
                Err(RunError::Submit(error)) if passes(&error) => {}
                went => went?,
            }
        }
    }

    /// Lets every step come to its turn's end, or ends it where that takes too long or is not wanted.
    async fn end(&self, mut tasks: JoinSet<Fence>) -> Result<(), RunError> {
        let shared = &self.shared;
        match shared.ask(Ask::StopFleet).await {
            Err(RunError::Submit(error)) if passes(&error) => {}
            asked => drop(asked?),
        }
        let mut stop = shared.stop.subscribe();
        let calls = shared.rules().settings.fleet.stop_timeout;
        let patience = tokio::time::sleep(calls + Duration::from_secs(STOP_SECONDS));
        tokio::pin!(patience);
        let mut how = *stop.borrow_and_update();
        shared.tell_steps(how);
        let leave = tokio::time::sleep(Duration::MAX);
        tokio::pin!(leave);
        loop {
            let soon = tokio::time::Instant::now() + Duration::from_secs(LEAVE_SECONDS);
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { return Ok(()) },
                () = &mut patience, if how != Stop::Now => {
                    how = Stop::Now;
                    shared.tell_steps(how);
                    leave.as_mut().reset(soon);
                }
                _ = stop.changed() => {
                    how = *stop.borrow_and_update();
                    shared.tell_steps(how);
                    leave.as_mut().reset(soon);
                }
                () = &mut leave, if how == Stop::Now => {
                    let left = tasks.len();
                    shared.notice(format!("{left} steps or tests were told to end and have not yet; their keepers end them"));
                    return Ok(());
                }
            }
        }
    }
}

/// Each step at work has three files open here; the usual limit would be reached by a few hundred of them.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where it cannot be raised, a step that finds no file left fails and is tried again.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// The project's git directories, with a folder for the trees that is there and ours.
fn settle(
    layout: &Layout,
    settings: &Settings,
    notices: &mpsc::UnboundedSender<String>,
) -> Result<Repository, RunError> {
    // Asked only where the trees are to lie in the checkout; what cannot be known counts as tracked.
    let tracks =
        |path: &Path| open_repository(layout, settings).and_then(|it| it.tracks(path)).unwrap_or(true);
    let settled = layout.settle_trees(&settings.fleet.trees, &tracks)?;
    for said in settled.said {
        let _ = notices.send(said);
    }
    Ok(open_with_trees(layout, settings, settled.path)?)
}

/// The project's git directories, as the settings want them.
pub fn open_repository(layout: &Layout, settings: &Settings) -> Result<Repository, GitError> {
    open_with_trees(layout, settings, layout.trees(&settings.fleet.trees))
}

fn open_with_trees(layout: &Layout, settings: &Settings, trees: PathBuf) -> Result<Repository, GitError> {
    Repository::open(Places {
        root: layout.root().to_owned(),
        state: layout.state(),
        trees,
        temporary: layout.temporary_of_tasks(),
        main: settings.project.main.clone(),
        isolation: match settings.fleet.isolation {
            settings::Isolation::Clone => git::Isolation::Clone,
            settings::Isolation::Worktree => git::Isolation::Worktree,
        },
    })
}

/// Why nothing may be run here: the settings demand of the sandbox what this system cannot do.
pub fn sandbox_refusal(settings: &Settings) -> Option<String> {
    let wanted = &settings.sandbox;
    let support = sandbox::support();
    if wanted.mode == settings::SandboxMode::Strict && support.level != sandbox::Level::Full {
        return Some(format!(
            "sandbox.mode is \"strict\", and the sandbox is not whole here: {}",
            support.what
        ));
    }
    if wanted.network == settings::Network::None && !support.namespaces {
        return Some(format!(
            "sandbox.network is \"none\", and the network of tests cannot be closed here: {}",
            support.what
        ));
    }
    None
}

/// What people should know of the sandbox before agents run; nothing where it holds.
pub fn sandbox_note(settings: &Settings) -> Option<String> {
    let notes: Vec<String> = [gaps(settings), worktree_note(settings)].into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What agents reach of the user's git directory because their worktrees share it; nothing where they have clones.
pub fn worktree_note(settings: &Settings) -> Option<String> {
    let sandboxed = sandbox_held(settings).is_some();
    let shares = settings.fleet.isolation == settings::Isolation::Worktree;
    let others = match sandbox::support().namespaces {
        true => "",
        false => "can move the branches of other agents, and ",
    };
    (sandboxed && shares).then(|| {
        format!(
            "agents share your git directory (fleet.isolation = \"worktree\"): each {others}can delete objects in it; \
             \"clone\" keeps them apart"
        )
    })
}

fn gaps(settings: &Settings) -> Option<String> {
    use crate::settings::SandboxMode;
    match settings.sandbox.mode {
        SandboxMode::Off => Some(
            "the sandbox is off: agents can reach whatever you can, and their roles are advisory".to_owned(),
        ),
        SandboxMode::Auto | SandboxMode::Strict => {
            let support = sandbox::support();
            let said = match support.level {
                sandbox::Level::Full => return None,
                sandbox::Level::Partial => "the sandbox has gaps",
                sandbox::Level::None => "there is no sandbox, and roles of agents are advisory",
            };
            Some(format!("{said}: {}", support.what))
        }
    }
}

/// What holds agents back, in a sentence; nothing where roles are advisory.
pub fn sandbox_held(settings: &Settings) -> Option<String> {
    let support = sandbox::support();
    let off = settings.sandbox.mode == settings::SandboxMode::Off || support.level == sandbox::Level::None;
    (!off).then_some(support.what)
}

/// Whether it may pass by itself: the disk is full, or failed.
fn passes(error: &SubmitError) -> bool {
    Meaning::of(error) == Meaning::Passes
}

/// Waits for a moment of the steady clock; for ever where there is none.
async fn until(due: Option<Millis>) {
    let Some(due) = due else { return std::future::pending().await };
    loop {
        let left = Duration::from_millis(u64::try_from(due - clock::steady()).unwrap_or(0));
        if left.is_zero() {
            return;
        }
        // A sleep does not go on while the machine is asleep, and the time does.
        tokio::time::sleep(left.min(SLEEP_MAX)).await;
    }
}

impl Shared {
    pub fn rules(&self) -> Arc<Rules> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn world(&self) -> Arc<World> {
        self.handle.world()
    }

    /// Where a task's tree is, from the name that the kernel gave it.
    pub fn tree(&self, name: &str) -> Result<PathBuf, String> {
        self.repository.tree_path(name).map_err(|error| error.to_string())
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

    fn main_is_red(&self) -> bool {
        let world = self.world();
        world.main_is_known() && !world.main_is_green()
    }

    /// Tells where main is, where that is not where its tests were run.
    async fn see_main(&self) -> Result<(), RunError> {
        let known = self.world().main.verdict.as_ref().map(|verdict| verdict.main.clone());
        let Some(known) = known else { return Ok(()) };
        let repository = self.repository.clone();
        // What cannot be read now is read the next time.
        let Ok(tip) = self.blocking(move || repository.main_tip()).await else { return Ok(()) };
        if tip.as_str() != known {
            self.ask(Ask::SeeMain { tip: smol_str::SmolStr::new(tip.as_str()) }).await?;
        }
        Ok(())
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

    /// Whether an effect is left for another time: a second step where each worker gets one.
    fn waits(&self, effect: &Effect) -> bool {
        match effect {
            Effect::StartStep { worker, .. } if self.once => {
                self.stepped.lock().unwrap_or_else(PoisonError::into_inner).contains(worker)
            }
            _ => false,
        }
    }

    fn is_held_up(&self) -> bool {
        !self.held_up.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Nothing will happen any more without a person. A landing that waits for the user's checkout does, and so does a call
    /// that waits for an answer, and a service that does not accept the credentials.
    fn is_idle(&self, outbox: &Outbox) -> bool {
        use kernel::Timer;
        let world = self.world();
        let refused = |run: &RunId| {
            let service = world.run(run).and_then(|run| run.machine.suspension()).map(|s| s.service.clone());
            let health =
                service.and_then(|name| world.health.iter().find(|(known, _)| known.as_str() == name));
            health.is_some_and(|(_, health)| health.refused && health.probe.is_none())
        };
        let waits_for_person = |id: &EffectId, effect: &Effect| match effect {
            Effect::Timer { timer, .. } => match timer {
                Timer::Checkout { .. }
                | Timer::OutsideLease { .. }
                | Timer::HealthPoll
                | Timer::Question { .. } => true,
                Timer::Suspension { run } => refused(run),
                _ => false,
            },
            _ => waits_for_answer(&world, id),
        };
        let in_hand = |id: &EffectId| world.effects.contains_key(id);
        outbox.in_hand().all(in_hand)
            && world.effects.iter().all(|(id, effect)| waits_for_person(id, effect) || self.waits(effect))
    }

    /// Calls that wait for a person are given up now rather than when their time is over. The questions stay open, and the
    /// answers go into the next prompts. False: none waits.
    async fn leave_unanswered(&self) -> Result<bool, SubmitError> {
        let world = self.world();
        let asked = world.effects.iter().filter(|(_, effect)| {
            matches!(effect.as_ref(), Effect::Timer { timer: kernel::Timer::Question { .. }, .. })
        });
        let asked: Vec<&EffectId> = asked.map(|(id, _)| id).collect();
        for id in &asked {
            outbox::ring(&mut &*self, id).await?;
        }
        Ok(!asked.is_empty())
    }

    /// All that is in hand is steps whose call waits for a person.
    fn waits_for_answers(&self, outbox: &Outbox) -> bool {
        let world = self.world();
        outbox.in_hand().all(|id| waits_for_answer(&world, id))
    }

    /// Carries an effect out, as often as that takes.
    async fn carry_out(
        self: &Arc<Self>,
        mut attempt: Attempt,
        mut words: Option<mpsc::UnboundedReceiver<steps::Word>>,
    ) -> Result<(), SubmitError> {
        if !shell::is_left(self, &attempt.id, &attempt.effect).await {
            return Ok(());
        }
        loop {
            crash::effect(attempt.effect.kind(), "before");
            let Some(what) = self.perform(&attempt, &mut words).await? else { return Ok(()) };
            match attempt.tell(&mut &**self, what).await? {
                Next::Over => return Ok(()),
                Next::Again { wait } => tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.stopping() => return Ok(()),
                },
                Next::WhenThereIsRoom { error } => {
                    self.waits_for_room(&error).await;
                    if self.is_stopping() {
                        // It stays in the outbox.
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Does in the world what an effect asks for, and says what came of it. `None`: nothing that the log should hear.
    async fn perform(
        self: &Arc<Self>,
        attempt: &Attempt,
        words: &mut Option<mpsc::UnboundedReceiver<steps::Word>>,
    ) -> Result<Option<Happened>, SubmitError> {
        let id = &attempt.id;
        Ok(match &*attempt.effect {
            Effect::StartStep { .. } => {
                let words = words.take().expect("a step is carried out once");
                return steps::carry_out(self, attempt, words).await;
            }
            Effect::EndStep { task, step, .. } => steps::end(self, task, step).await,
            Effect::AnswerCall { step, call, allow, note, .. } => {
                steps::answer(self, step, call, *allow, note).await
            }
            Effect::TellAgent { step, text, .. } => steps::tell(self, step, text).await,
            Effect::PrepareTree { task, tree, branch, .. } => {
                trees::prepare(self, id, task, tree, branch).await
            }
            Effect::SaveWork { task } => trees::save(self, id, task).await,
            Effect::RemoveTree { task, start_over } => trees::remove(self, id, task, *start_over).await,
            Effect::DeleteBranch { task, branch } => trees::delete_branch(self, task, branch).await,
            Effect::RunGate { task, worker, .. } => {
                gate::run(self, id, task, worker.as_ref(), words.as_mut()).await
            }
            Effect::TestMerge { task, tip } => landing::test_merge(self, id, task, tip).await,
            Effect::TestMain { again } => main_tests::run(self, id, *again, words.as_mut()).await,
            Effect::MoveMain { task, merge, old, .. } => landing::move_main(self, task, merge, old).await,
            Effect::WriteTicket { task, ticket, status, note } => {
                tickets::write(self, id, task, ticket, status, note.as_deref()).await
            }
            Effect::CheckHealth { service } => Some(health(self, service).await),
            // A timer is never handed out: it is reported when it is due.
            Effect::Timer { .. } => None,
        })
    }

    /// Main's tests that run under the settings of before say nothing any more.
    fn end_main_tests(&self) {
        let Some(effect) = self.world().main.under_way.clone() else { return };
        let ways = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get(&effect) {
            // Nobody listens: they have ended by themselves.
            let _ = way.send(steps::Word::End(None));
        }
    }

    fn tell_steps(&self, how: Stop) {
        for step in self.steps.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let word = if how == Stop::Now { steps::Word::End(None) } else { steps::Word::Interrupt };
            let _ = step.send(word);
        }
    }

    /// Writes the settings into the log, where the rules read them, if they are not the ones that stand there.
    async fn configure(&self) -> Result<(), RunError> {
        let config = self.rules().settings.kernel();
        if *self.world().config != config {
            self.ask(Ask::Configure { config: Box::new(config) }).await?;
        }
        Ok(())
    }

    /// What is declared can be written to, or people hear that it cannot.
    async fn make_caches(&self) {
        let rules = self.rules();
        for said in self.blocking(move || place::make_caches(&rules.settings.sandbox)).await {
            self.notice_once(said);
        }
    }

    /// Reads the settings anew. A faulty file changes nothing, and is said.
    async fn reload(&self) -> Result<(), RunError> {
        let read = trust::in_force(&self.layout).map_err(|error| error.to_string());
        let read = read.and_then(|in_force| {
            let note = in_force.note();
            let (settings, read) = (in_force.settings, in_force.read);
            let prompts = Prompts::load(&settings, self.layout.root()).map_err(|error| error.to_string())?;
            Ok((Rules { settings, prompts }, read, note))
        });
        match read {
            Ok((rules, read, note)) => {
                let problems = rules.settings.kernel().problems();
                if !problems.is_empty() {
                    self.notice(format!("adjutant.toml is kept as it was: {}", problems.join("; ")));
                    return Ok(());
                }
                let other_tests = rules.settings.tests() != self.rules().settings.tests();
                *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
                self.configure().await?;
                if other_tests {
                    self.end_main_tests();
                }
                self.make_caches().await;
                let workers = self.workers.unwrap_or(self.rules().settings.fleet.workers);
                self.ask(Ask::StartFleet { workers }).await?;
                if let Err(why) = trust::hold(&self.layout, &read) {
                    self.notice(RunError::Io { path: self.layout.state(), why }.to_string());
                }
                self.notice(note.unwrap_or("adjutant.toml was read anew"));
            }
            Err(error) => self.notice(format!("adjutant.toml is kept as it was: {error}")),
        }
        Ok(())
    }

    /// What is left of the disk.
    fn free(&self) -> Option<u64> {
        // The log and the trees may be on two. What cannot be looked at is not known to be full; the next write tells.
        let places = [self.layout.git_dir(), &self.repository.places().trees];
        let disks = places.into_iter().filter_map(|place| nix::sys::statvfs::statvfs(place).ok());
        disks.map(|disk| disk.blocks_available() * disk.fragment_size()).min()
    }

    /// Waits for room where something failed and there is none: no agent can help that, so it is not held against one.
    /// False: there is room, or the fleet is to stop.
    pub async fn waits_for_room(&self, failed: &str) -> bool {
        let is_full = || self.free().is_some_and(|free| free < NO_ROOM_BYTES);
        if !is_full() {
            return false;
        }
        self.notice_once(format!("the disk is full, so this waits for room: {failed}"));
        while is_full() && !self.is_stopping() {
            tokio::select! {
                () = tokio::time::sleep(outbox::FULL_DISK_LOOK) => {}
                () = self.stopping() => {}
            }
        }
        !self.is_stopping()
    }

    /// No further tree is made where there is no room for one.
    async fn look_at_disk(&self) -> Result<(), RunError> {
        let full = self.free().filter(|free| *free < DISK_BYTES_MIN).map(|free| {
            let (left, needed) = (free >> 20, DISK_BYTES_MIN >> 20);
            smol_str::format_smolstr!(
                "{left} MB are left, {needed} MB are needed; `adj clean --trash` frees some"
            )
        });
        if self.world().disk_full != full {
            self.ask(Ask::SeeDisk { full }).await?;
        }
        Ok(())
    }
}

impl Clock for &Shared {
    fn now(&self) -> Millis {
        clock::now()
    }

    fn steady(&self) -> Millis {
        clock::steady()
    }
}

impl Desk for &Shared {
    type Error = SubmitError;

    fn meaning(error: &SubmitError) -> Meaning {
        Meaning::of(error)
    }

    fn effects(&self) -> imbl::OrdMap<EffectId, Arc<Effect>> {
        self.world().effects.clone()
    }

    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn has_no_room(&self) -> bool {
        self.free().is_some_and(|free| free < NO_ROOM_BYTES)
    }

    async fn rest(&mut self, wait: Duration, error: &SubmitError) {
        if Shared::is_stopping(self) {
            return tokio::time::sleep(wait).await;
        }
        self.notice(format!("{error}; it is tried again in {} ms", wait.as_millis()));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.stopping() => {}
        }
    }

    async fn submit(&mut self, ask: Ask, fence: Option<Fence>) -> Result<Answer, SubmitError> {
        let command = Command { id: clock::unique(), at: clock::now(), actor: Actor::System, key: None, ask };
        let (send, receive) = oneshot::channel();
        self.handle.send(command, fence, move |answered| drop(send.send(answered)))?;
        receive.await.unwrap_or(Err(SubmitError::Stopped))
    }

    fn refused(&mut self, fence: &Fence, _: &Happened, refusal: Refusal) -> Result<(), SubmitError> {
        self.notice(format!("bug: an outcome of {} was refused: {refusal}", fence.effect));
        Ok(())
    }

    async fn lease(
        &mut self,
        holder: &'static str,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, SubmitError> {
        let handle = self.handle.clone();
        self.blocking(move || handle.lease(holder, clock::now(), until, limit)).await
    }

    async fn release(&mut self, fence: &Fence) -> Result<(), SubmitError> {
        let (handle, fence) = (self.handle.clone(), fence.clone());
        self.blocking(move || handle.release(&fence)).await.map(drop)
    }

    async fn pending(&mut self) -> Result<Vec<Pending>, SubmitError> {
        let handle = self.handle.clone();
        self.blocking(move || handle.outbox()).await
    }
}

/// What the fleet carries effects out with: each is a task of its own.
struct Hands<'a> {
    shared: &'a Arc<Shared>,
    desk: &'a Shared,
    tasks: &'a mut JoinSet<Fence>,
}

impl<'a> Executor for Hands<'a> {
    type Desk = &'a Shared;

    fn desk(&mut self) -> &mut &'a Shared {
        &mut self.desk
    }

    fn leaves(&self, effect: &Effect) -> bool {
        self.shared.waits(effect)
    }

    fn begin(&mut self, attempt: Attempt) {
        let shared = self.shared.clone();
        if let (true, Effect::StartStep { worker, .. }) = (shared.once, &*attempt.effect) {
            shared.stepped.lock().unwrap_or_else(PoisonError::into_inner).insert(worker.clone());
        }
        let words = steps::register(&shared, &attempt.id, &attempt.effect);
        let is_step = matches!(*attempt.effect, Effect::StartStep { .. });
        let work = async move {
            let (id, fence) = (attempt.id.clone(), attempt.fence());
            // Only an owner that has stopped gets in the way of an outcome; then everything ends.
            if let Err(error) = shared.carry_out(attempt, words).await {
                shared.notice(format!("effect {id}: {error}"));
            }
            shared.steps.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            fence
        };
        match is_step {
            true => self.tasks.spawn_on(work, self.shared.listener.handle()),
            false => self.tasks.spawn(work),
        };
    }

    fn cannot_read(&mut self, effect: &str) {
        self.shared.notice(format!("bug: effect {effect} cannot be read"));
    }
}

/// Whether this is a step whose call waits for a person's answer.
fn waits_for_answer(world: &World, id: &EffectId) -> bool {
    let Some(Effect::StartStep { run, .. }) = world.effects.get(id).map(AsRef::as_ref) else { return false };
    world.run(run).is_some_and(|run| run.question.is_some())
}

/// Asks a service how it is, by the command or address that the settings give.
async fn health(shared: &Arc<Shared>, service: &machines::names::ServiceName) -> Happened {
    let asked = shared.rules().settings.services.get(service).cloned();
    let healthy = match asked {
        // Nothing to ask with: the next step tells.
        None => return Happened::HealthUnknown,
        Some(Service { health: Health::Tcp { host, port }, timeout }) => {
            let connect = tokio::net::TcpStream::connect((host.as_str(), port));
            matches!(tokio::time::timeout(timeout, connect).await, Ok(Ok(_)))
        }
        Some(Service { health: Health::Command(line), timeout }) => {
            let mut command = tokio::process::Command::new("sh");
            command.arg("-c").arg(line).current_dir(shared.layout.root()).kill_on_drop(true);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let status = tokio::time::timeout(timeout, command.status()).await;
            matches!(status, Ok(Ok(status)) if status.success())
        }
    };
    Happened::Health { healthy }
}
