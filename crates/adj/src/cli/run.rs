//! `adj run`: the fleet at work, told as it happens, until it is stopped or idle.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::background;
use super::hosted::{Switch, cannot_open};
use super::keyboard::Keyboard;
use super::project::Project;
use super::screen::{self, Screen};
use super::selection::{KeyAction, Selection};
use super::serve;
use super::terminal::{self, Paint, duration};
use super::text::Money;
use super::{Context, Exit, Failure, Globals, text};
use ::fleet::{Options, RunError, Runner, Stop};
use agents::CommandIs;
use api::Problem;
use api::story::{self, Line, Story, Tone};
use api::types::fleet::{self, Fleet as FleetAnswer};
use base::clock;
use clap::Args;
use kernel::World;
use kernel::event::Event;
use kernel::waiting::Facts;
use kernel::world::{Spend, Task};
use log::owner::{Handle, Owner};
use machines::task::Status;
use project::layout::Layout;
use project::settings::include;
use project::settings::trust::{self, InForce};
use project::settings::{Settings, SettingsError};
use serde::Serialize;
use server::observe::{self, LogForm};
use server::{self, HttpServer, Listener, Socket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Run the fleet
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Run {
    /// Run one step of each worker, finish its consequences, and exit
    #[arg(long)]
    once: bool,
    /// Exit when all remaining work needs a person; a tool call that awaits approval is stopped and its request stays open
    #[arg(long, conflicts_with = "once")]
    until_idle: bool,
    /// Run in the background; `adj stop` ends it
    #[arg(long)]
    detach: bool,
    /// Number of workers [default: fleet.workers]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Also serve HTTP, as `adj serve` does
    #[arg(long)]
    serve: bool,
    #[command(flatten)]
    listen: serve::Listen,
}

const HELP: &str = "\
Example:
  adj run
  adj run --until-idle && git push
  adj run --detach; adj logs A -f; adj stop

Each ticket becomes a task, and idle workers take the tasks. Approved work is merged, tested as merged, and main moves to \
it. With --until-idle the exit code is 1 if a task needs a person.

If nothing progresses for limits.standstill (1m) while work remains, `adj run` prints what it is waiting for.

On a terminal you can answer pending items in place: arrow keys select one, Enter shows it in full, a number answers.

Ctrl-C stops cleanly: running tool calls have up to 30 seconds (fleet.stop_timeout) to finish. A second Ctrl-C stops the \
agents at once. Either way all work is kept, and the next `adj run` continues from there.";

/// How often the view is drawn at most, and how long it stands still at most.
const FRAME: Duration = Duration::from_millis(80);
const STANDSTILL: Duration = Duration::from_secs(1);
/// Records that are read at once.
const RECORDS: usize = 500;
/// Things for a person that a summary names one by one.
const SUMMARY_LINES_MAX: usize = 10;
/// How long a fleet in the background may take until it answers.
const DETACH: Duration = Duration::from_secs(20);

pub fn run(command: &Run, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let there: FleetAnswer = project.get("/fleet")?;
    if there.pid.is_none() {
        project.check_here("`adj run`")?;
    }
    match there.pid {
        Some(pid) if there.running => {
            let message = format!("a fleet is at work here already, as process {pid}");
            return Err(Failure::new(Exit::Refused, message).hint("`adj ps` shows it, `adj stop` stops it"));
        }
        Some(pid) => return run_in_server(command, &project, pid, context),
        None => {}
    }
    let Ready { in_force, notes } = ready(project.layout())?;
    if command.detach {
        return detach(command, &project, context);
    }
    let fleet = Fleet {
        heading: format!("in {}", project.root().display()),
        once: command.once,
        until_idle: command.until_idle,
        workers: command.workers,
        in_force,
        notes,
        serve: command.listen.wish(command.serve)?,
    };
    let quiet = context.globals.quiet;
    let ended = fleet.run(&project, context.out, &context.globals)?;
    if context.globals.json {
        writeln!(context.out, "{}", text::json(&ended.document()))?;
    } else if !quiet {
        context.out.write_all(ended.summary(&context.globals).as_bytes())?;
    }
    match ended.left() {
        0 => Ok(()),
        // The document says it, and is the only one.
        _ if command.until_idle && context.globals.json => Err(Failure::told(Exit::Failed)),
        _ if command.until_idle && !ended.world.main_is_green() && ended.world.main_is_known() => {
            Err(Failure::new(Exit::Failed, "the tests fail on main itself, so no agent was started").hint(
                "fix main, or [test] in adjutant.toml; `adj doctor --tests` runs them and shows the output",
            ))
        }
        left if command.until_idle => {
            let need = ended.need_a_person();
            let tasks = |count: usize| match count {
                1 => "1 task".to_owned(),
                count => format!("{count} tasks"),
            };
            let need_one = if need == 1 { "needs a person" } else { "need a person" };
            let message = match (need, left - need) {
                (0, rest) => format!("{} not done", tasks(rest)),
                (need, 0) => format!("{} not done: {need_one}", tasks(need)),
                (need, rest) => {
                    let wait = if rest == 1 { "waits" } else { "wait" };
                    format!("{} not done: {need} {need_one}, {rest} {wait} for others", tasks(left))
                }
            };
            Err(Failure::new(Exit::Failed, message)
                .hint("`adj board` shows them, `adj why TASK` says what each waits for"))
        }
        _ => Ok(()),
    }
}

/// A server owns the project: the fleet is started there.
fn run_in_server(command: &Run, project: &Project, pid: u32, context: Context) -> Result<(), Failure> {
    if command.once || command.until_idle || command.serve || command.detach {
        let message = format!("a server runs here as process {pid}, and its fleet runs until it is stopped");
        return Err(Failure::new(Exit::Refused, message)
            .hint("`adj run` alone starts it there; `adj stop` ends the server, and then this works"));
    }
    let started = project.post("/fleet/start", &fleet::Start { workers: command.workers });
    // What is missing is missing there, and not on the machine of whoever asks.
    let started: FleetAnswer = started.map_err(|failure: Failure| match project.is_away() {
        true => failure.within(&format!("the fleet of {} was not started", project.place())),
        false => failure,
    })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&started))?);
    }
    writeln!(context.out, "the fleet runs in the server, process {pid}")?;
    Project::hint(
        &context.globals,
        "`adj ps` shows the workers, `adj stop --fleet` stops them; the server goes on",
    );
    Ok(())
}

/// Runs main's own tests without a fleet. The project is owned for as long, so none can start meanwhile.
pub fn test_main(project: &Project) -> Result<::fleet::MainTests, Failure> {
    let in_force = read_settings(project.layout())?;
    let owner = project.owner_of(project.own_log_soon()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (notices, mut heard) = mpsc::unbounded_channel();
    let options = Options {
        layout: project.layout().clone(),
        settings: in_force.settings,
        read: in_force.read,
        adj: std::env::current_exe()?,
        workers: None,
        once: true,
        until_idle: true,
        keys: None,
        away: None,
    };
    let failed = |error: RunError| Failure::new(Exit::Failed, error.to_string());
    let tested = runtime.block_on(async {
        let runner = Runner::open(owner.handle(), options, notices).map_err(failed)?;
        runner.test_main().await.map_err(failed)
    })?;
    while let Ok(text) = heard.try_recv() {
        eprintln!("hint: {}", text::visible(&text));
    }
    Ok(tested)
}

/// The settings that a fleet begins with, and what people should hear of them.
pub struct Ready {
    pub in_force: InForce,
    pub notes: Vec<String>,
}

/// Whether a fleet could work here at all: the settings, its agent's program and the sandbox that they ask for.
pub fn ready(layout: &Layout) -> Result<Ready, Failure> {
    let in_force = read_settings(layout)?;
    let (note, settings) = (in_force.note(), &in_force.settings);
    check_agent(settings)?;
    if let Some(why) = ::fleet::sandbox_refusal(settings) {
        return Err(Failure::new(Exit::Unreachable, why)
            .hint("docs/sandbox.md lists the requirements; sandbox.mode = \"auto\" and sandbox.network = \"open\" use what there is"));
    }
    if let Some(back) = ::fleet::leads_back(layout, settings) {
        let message =
            "what trees share with your checkout leads their tests back into it, so no agent starts";
        return Err(Failure::new(Exit::Refused, message).lines(back.found).hint(back.fix));
    }
    let keys = settings
        .agents
        .iter()
        .filter_map(|(name, agent)| project::program::missing_key(name.as_str(), agent));
    let include = (!include::in_force(layout).trusted).then(|| include::UNTRUSTED.to_owned());
    let notes = note.map(str::to_owned).into_iter().chain(include).chain(keys).collect();
    Ok(Ready { in_force, notes })
}

/// A fleet that somebody wants to run.
pub struct Wanted {
    pub in_force: InForce,
    pub workers: Option<u32>,
    pub once: bool,
    pub until_idle: bool,
}

pub fn read_settings(layout: &Layout) -> Result<InForce, Failure> {
    // What came in with an agent's branch holds only once it is trusted, also for a fleet that starts after it.
    trust::in_force(layout).map_err(|error| wrong_settings(&error))
}

fn wrong_settings(error: &SettingsError) -> Failure {
    let problems = error.problems();
    let (message, hint) = match problems.len() {
        0 => (error.to_string(), "`adj config check` says what is wrong"),
        1 => ("adjutant.toml is not valid: 1 problem".to_owned(), "correct it; `adj config check` tries it"),
        more => (
            format!("adjutant.toml is not valid: {more} problems"),
            "correct them; `adj config check` tries it",
        ),
    };
    let lines = problems.iter().map(|problem| format!("adjutant.toml:{problem}"));
    Failure::new(Exit::Usage, message).lines(lines).hint(hint)
}

/// Without its program every step would fail, and every worker be stuck half a minute later.
fn check_agent(settings: &Settings) -> Result<(), Failure> {
    let (name, agent) = (&settings.fleet.agent, settings.fleet_agent());
    let program = agent.command.first().map(String::as_str).unwrap_or_default();
    let needs_program = agent.adapter.adapter().command_is() == CommandIs::Program;
    if !needs_program || project::program::which(program).is_some() {
        return Ok(());
    }
    let shown = text::visible(program);
    Err(Failure::new(Exit::Unreachable, format!("agent `{name}` needs `{shown}`, which is not on the PATH"))
        .hint(format!("install it, or name another program in [agents.{name}] of adjutant.toml")))
}

/// A fleet that is about to run.
pub struct Fleet {
    pub heading: String,
    pub once: bool,
    pub until_idle: bool,
    pub workers: Option<u32>,
    pub in_force: InForce,
    /// What people should hear of the settings: the file came in with an agent's branch or is gone, a key is not set.
    pub notes: Vec<String>,
    /// Where it is also to be reached by browsers and programs.
    pub serve: Option<serve::ServeOptions>,
}

/// What a fleet left when it ended.
pub struct Ended {
    pub world: Arc<World>,
    pub story: Story,
    /// What had been spent before it began.
    before: Spend,
    /// What waits for a person outside of the log.
    facts: Facts,
    pub millis: i64,
}

/// The same, as `adj run --json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'e> {
    tasks: usize,
    done: usize,
    left: usize,
    need_person: usize,
    proposed: usize,
    landed: u32,
    survived: &'e BTreeMap<&'static str, u32>,
    cost: text::Sum,
    millis: i64,
    for_you: Vec<story::ForYou>,
}

impl Fleet {
    /// Runs until it is stopped, or idle where that was asked for. The project is owned for as long.
    pub fn run(self, project: &Project, out: &mut dyn Write, globals: &Globals) -> Result<Ended, Failure> {
        // Before anything of it is opened, which these may be in the way of.
        let mended = project.layout().mend_modes();
        let owner = project.owner_of(project.own_log_soon()?)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        // Not by the day's clock, which somebody may set while the fleet is at work.
        let begun = std::time::Instant::now();
        let terminal = io::stdout().is_terminal();
        let paint = Paint::new(globals, terminal);
        let lines = self.serve.as_ref().is_some_and(|wish| wish.log == LogForm::Json);
        let live = terminal && !terminal::dumb() && !globals.json && !globals.quiet && !lines;
        let quiet = globals.quiet || globals.json || lines;
        let test = self.in_force.settings.test.command.clone();
        let screen = Screen::new(out, paint, live, quiet, self.heading.clone(), clock::now()).tested_by(test);
        let before = owner.handle().world().spend.clone();
        let story = runtime.block_on(self.serve(project, &owner, screen, mended))?;
        // What still writes to a file may finish; nothing new is begun.
        runtime.shutdown_timeout(Duration::from_secs(5));
        let millis = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        let facts = project.host().facts();
        Ok(Ended { world: owner.handle().world(), story, before, facts, millis })
    }

    /// `mended` is what people should hear of our own state.
    async fn serve(
        self,
        project: &Project,
        owner: &Owner,
        mut screen: Screen<'_>,
        mended: Vec<String>,
    ) -> Result<Story, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
        let handle = owner.handle();
        let (notices, mut heard) = mpsc::unbounded_channel();
        let switch = Switch::new(project, handle.clone(), notices)?;
        let sandbox = ::fleet::sandbox_note(&self.in_force.settings);
        let from = handle.world().seq;
        let wanted = Wanted {
            in_force: self.in_force,
            workers: self.workers,
            once: self.once,
            until_idle: self.until_idle,
        };
        let runner = switch.open(wanted).map_err(|error| cannot_open(&error))?;
        let (socket, listener) = Socket::bind(&project.folder()).await.map_err(|error| failed(&error))?;
        if let Some(wish) = &self.serve {
            observe::begin(wish.log);
        }
        let streams = self.serve.as_ref().map(|wish| switch.streams(wish.streams())).transpose()?;
        let mounted = switch.mounted(streams);
        let name = project.name();
        observe::watch(&name, &handle, &mounted, project.layout().log());
        let telling = switch.tell_others(&name).await;
        let server = HttpServer::of_socket(&name, mounted.clone());
        let (stop, stopped) = watch::channel(false);
        let until = |mut stopped: watch::Receiver<bool>| async move {
            // Whoever would say so is gone: that says it too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let mut serving = JoinSet::new();
        serving.spawn(server::serve(
            Listener::Socket(listener, socket.address()),
            server,
            until(stopped.clone()),
        ));
        let mut notes = self.notes;
        if let Some(wish) = &self.serve {
            let front =
                serve::open_address(wish, BTreeMap::from([(name, mounted)]), std::slice::from_ref(&switch))
                    .await?;
            let listening = serve::listening(front.listens.as_deref());
            notes.push(format!("serving at {}{listening}; `adj url` prints a link for a browser", front.url));
            notes.extend(front.warnings);
            serving.spawn(server::serve(front.listener, front.server, until(stopped)));
        }
        if !screen.live {
            let now = clock::now();
            let day = terminal::day_and_clock(now);
            let text = format!(
                "fleet started, {} {}",
                day.split(' ').next().unwrap_or_default(),
                terminal::zone(now)
            );
            screen.line(Line { at: terminal::clock(now), tone: Tone::Plain, text })?;
        }
        for note in sandbox.into_iter().chain(mended).chain(notes) {
            observe::notice(None, &note);
            screen.line(Line { at: terminal::clock(clock::now()), tone: Tone::Wrong, text: note })?;
        }
        let ran = watch(&runner, &handle, project, from, &mut screen, &mut heard).await;
        stop.send_replace(true);
        serving.join_all().await;
        telling.finish().await;
        observe::finish().await;
        drop(socket);
        ran?;
        Ok(screen.story)
    }
}

fn noticed(screen: &mut Screen<'_>, text: String) -> io::Result<()> {
    screen.story.hears(&text);
    observe::notice(None, &text);
    screen.line(Line { at: terminal::clock(clock::now()), tone: Tone::Wrong, text })
}

/// Tells what happens while the fleet runs, and passes signals on.
async fn watch(
    runner: &Runner,
    handle: &Handle,
    project: &Project,
    mut seen: u64,
    screen: &mut Screen<'_>,
    heard: &mut mpsc::UnboundedReceiver<String>,
) -> Result<(), Failure> {
    let host = project.host();
    let mut keyboard = if screen.live { Keyboard::open() } else { None };
    screen.selection = keyboard.as_ref().map(|_| Selection::default());
    screen.facts = host.facts();
    let mut looked = tokio::time::Instant::now();
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut head = handle.follow();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    let running = runner.clone();
    let mut fleet = tokio::spawn(async move { running.run().await });
    let mut changed = true;
    let mut drawn = tokio::time::Instant::now();
    let ended = loop {
        let frame = drawn + if changed { FRAME } else { STANDSTILL };
        tokio::select! {
            ended = &mut fleet => break ended,
            moved = head.changed() => {
                if moved.is_err() {
                    break (&mut fleet).await;
                }
                // What was heard before it happened is told before it.
                while let Ok(text) = heard.try_recv() {
                    noticed(screen, text)?;
                }
                seen = tell(handle, seen, screen).await?;
                changed = true;
            }
            Some(text) = heard.recv() => {
                noticed(screen, text)?;
                changed = true;
            }
            Some(key) = pressed(&mut keyboard) => {
                let all = story::for_you(&handle.world(), &screen.facts);
                let list: Vec<_> = all.iter().map(|you| &you.item).collect();
                match screen.selection.as_mut().and_then(|selection| selection.press(key, &list)) {
                    Some(KeyAction::Stop) => stop(runner, screen)?,
                    Some(KeyAction::Suspend) => {
                        screen.close()?;
                        keyboard.iter().try_for_each(Keyboard::suspend)?;
                    }
                    Some(KeyAction::Run(line)) => answer(project.root().to_owned(), line, answers.clone()),
                    Some(KeyAction::Look) => {}
                    None => continue,
                }
                screen.draw(&handle.world(), clock::now(), runner.running_tests())?;
                (changed, drawn) = (false, tokio::time::Instant::now());
            }
            Some(line) = answered.recv() => {
                screen.line(line)?;
                changed = true;
            }
            () = tokio::time::sleep_until(frame), if screen.live => {
                if looked.elapsed() >= STANDSTILL {
                    (screen.facts, looked) = (host.facts(), tokio::time::Instant::now());
                }
                screen.draw(&handle.world(), clock::now(), runner.running_tests())?;
                (changed, drawn) = (false, tokio::time::Instant::now());
            }
            _ = interrupt.recv() => stop(runner, screen)?,
            _ = terminate.recv() => stop(runner, screen)?,
            _ = hangup.recv() => runner.stop(Stop::Clean),
        }
    };
    tell(handle, seen, screen).await?;
    while let Ok(text) = heard.try_recv() {
        screen.line(Line { at: terminal::clock(clock::now()), tone: Tone::Wrong, text })?;
    }
    screen.close()?;
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::new(Exit::Failed, error.to_string())),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(Failure::new(Exit::Failed, error.to_string())),
    }
}

/// The next key; never where there is no keyboard.
async fn pressed(keyboard: &mut Option<Keyboard>) -> Option<crossterm::event::KeyEvent> {
    match keyboard {
        Some(keyboard) => keyboard.next().await,
        None => std::future::pending().await,
    }
}

/// Runs a command line for the person at the live view, as a second terminal would, and tells what it prints.
fn answer(root: std::path::PathBuf, line: Vec<String>, answers: mpsc::UnboundedSender<Line>) {
    tokio::spawn(async move {
        let (program, arguments) = line.split_first().expect("a command has a program");
        let mut command = match (program.as_str(), std::env::current_exe()) {
            ("adj", Ok(adj)) => {
                let mut command = tokio::process::Command::new(adj);
                command.arg("--project").arg(&root).arg("--no-color");
                command
            }
            (program, _) => tokio::process::Command::new(program),
        };
        command.args(arguments).current_dir(&root).stdin(Stdio::null());
        let (tone, text) = match command.output().await {
            Err(error) => (Tone::Loud, format!("{program} cannot be started: {error}")),
            Ok(ran) => {
                let tone = if ran.status.success() { Tone::Plain } else { Tone::Loud };
                let text = [ran.stdout, ran.stderr].concat();
                (tone, format!("$ {}\n{}", line.join(" "), String::from_utf8_lossy(&text).trim_end()))
            }
        };
        // Whoever would read it is gone only with the whole view.
        let _ = answers.send(Line { at: terminal::clock(clock::now()), tone, text });
    });
}

fn stop(runner: &Runner, screen: &mut Screen<'_>) -> io::Result<()> {
    let (how, text) = match runner.stopping() {
        Stop::No => (Stop::Clean, "stopping: waiting for running calls to end; Ctrl-C again ends them now"),
        _ => (Stop::Now, "ending every agent now; what they have written is kept"),
    };
    runner.stop(how);
    screen.stopping();
    screen.line(Line { at: terminal::clock(clock::now()), tone: Tone::Loud, text: text.to_owned() })
}

/// Tells what was written since `seen`, and says how far that is.
async fn tell(handle: &Handle, mut seen: u64, screen: &mut Screen<'_>) -> Result<u64, Failure> {
    loop {
        let reading = handle.clone();
        let page = tokio::task::spawn_blocking(move || reading.read(seen, RECORDS)).await;
        let page = page.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let page = page.map_err(Problem::from)?;
        let world = handle.world();
        for record in &page {
            seen = record.seq;
            if let Ok(event) = Event::decode(&record.kind, &record.data) {
                screen.tell(&world, record.at, &event)?;
            }
        }
        if page.len() < RECORDS {
            return Ok(seen);
        }
    }
}

impl Ended {
    /// Tasks that are not done. What agents proposed is none before somebody wants it.
    pub fn left(&self) -> usize {
        let open = |task: &Arc<Task>| !task.is_final() && !task.is_waiting_proposal();
        self.world.tasks.values().filter(|task| open(task)).count()
    }

    /// Of these, the tasks that go no further before a person has done something.
    fn people(&self) -> story::OnPeople {
        story::OnPeople::new(&self.world, &self.facts)
    }

    pub fn need_a_person(&self) -> usize {
        self.people().need_a_person(&self.world)
    }

    pub fn document(&self) -> Document<'_> {
        Document {
            tasks: self.world.tasks.len(),
            done: screen::done_of_all(&self.world).0,
            left: self.left(),
            need_person: self.need_a_person(),
            proposed: story::proposed(&self.world).len(),
            landed: self.story.landed,
            survived: &self.story.survived,
            cost: Money::of_spend(&self.world, &self.world.spend).document(),
            millis: self.millis,
            for_you: story::for_you(&self.world, &self.facts),
        }
    }

    pub fn summary(&self, globals: &Globals) -> String {
        let terminal = io::stdout().is_terminal();
        let paint = Paint::new(globals, terminal);
        let width = terminal::size().map_or(100, |(width, _)| width).saturating_sub(14);
        let (done, all) = screen::done_of_all(&self.world);
        let headline = format!("{done} of {all} tasks DONE, {} landed in this run", self.story.landed);
        let mut lines = vec![if self.left() == 0 {
            paint.green(format!("✓ {headline}"))
        } else {
            paint.yellow(format!("! {headline}"))
        }];
        let mut say = |label: &str, text: &str| {
            for (index, line) in terminal::wrap(text, width).into_iter().enumerate() {
                lines.push(format!("  {:10}{line}", if index == 0 { label } else { "" }));
            }
        };
        let survived = screen::survived(&self.story);
        if !survived.is_empty() {
            say("recovered", &survived);
        }
        say("cost", &self.cost());
        say("time", &duration(self.millis));
        if self.world.tasks.is_empty() && self.world.specs.is_empty() {
            say("you", "nothing to do yet: put a ticket into .tickets, or `adj task add TITLE`");
        }
        if let Some(left) = self.goes_on() {
            say("left", &left);
        }
        match story::proposed(&self.world).len() {
            0 => {}
            1 => say("proposed", "1 task that an agent proposed waits for you"),
            count => say("proposed", &format!("{count} tasks that agents proposed wait for you")),
        }
        let waits = self.waits();
        for waiting in waits.iter().take(SUMMARY_LINES_MAX) {
            say("waits", &text::visible(waiting));
        }
        if waits.len() > SUMMARY_LINES_MAX {
            say("", &format!("and {} more wait: adj why", waits.len() - SUMMARY_LINES_MAX));
        }
        let for_you = story::for_you(&self.world, &self.facts);
        let shown = &for_you[..for_you.len().min(SUMMARY_LINES_MAX)];
        let wide = shown.iter().map(|you| you.command.len()).max().unwrap_or(0);
        for you in shown {
            let what = text::visible(&you.what);
            let what = if terminal { terminal::cut(&what, width.saturating_sub(wide + 2)) } else { what };
            lines.push(format!("  {:10}{:wide$}  {what}", "you", you.command));
        }
        if shown.len() < for_you.len() {
            let more = for_you.len() - shown.len();
            lines.push(format!("  {:10}and {more} more: adj waiting", ""));
        }
        format!("\n{}\n", lines.join("\n"))
    }

    /// What this run cost, and all of them together where that is more.
    fn cost(&self) -> String {
        let spend = &self.world.spend;
        let tokens = spend.input_tokens + spend.output_tokens;
        let all = Money::of_spend(&self.world, spend);
        let before = &self.before;
        if *before == Default::default() {
            return format!("{}, {} tokens", all.words(), terminal::thousands(tokens));
        }
        let now = all.since(&Money::of_spend(&self.world, before));
        let tokens = tokens.saturating_sub(before.input_tokens + before.output_tokens);
        let tokens = terminal::thousands(tokens);
        let now = format!("{}, {tokens} tokens", now.words());
        // Runs that cost nothing that anybody would see have nothing to add.
        match (now.starts_with(&format!("{},", all.words())), all.words()) {
            (true, _) => now,
            (false, all) => format!("{now}; {all} with all runs before"),
        }
    }

    /// The tasks that the next run goes on with, without a person.
    fn goes_on(&self) -> Option<String> {
        // The next one would end where this one did; what to do about it is said for the person.
        if self.world.main_is_known() && !self.world.main_is_green() {
            return None;
        }
        let people = self.people();
        let goes = |task: &Task, statuses: &[Status]| {
            statuses.contains(&task.status()) && people.holds_up(&self.world, task).is_none()
        };
        let count =
            |statuses: &[Status]| self.world.tasks.values().filter(|task| goes(task, statuses)).count();
        let waiting = count(&[Status::Inbox, Status::Assigned]);
        let begun = count(&[Status::InProgress]);
        let landing = self.world.queue.len();
        let parts = [(begun, "in work"), (waiting, "not begun"), (landing, "approved and not landed")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("{}; `adj run` goes on from here", parts.join(", ")))
    }

    /// The tasks that wait for what a person must do elsewhere, each with what that is.
    fn waits(&self) -> Vec<String> {
        let open = |task: &&Arc<Task>| {
            matches!(task.status(), Status::Inbox | Status::Assigned | Status::InProgress)
                && !task.is_waiting_proposal()
        };
        let people = self.people();
        let mut by_cause: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        // What is about the task itself stands among the things to do.
        let behind = |task: &&Arc<Task>| open(task) && !people.is_asked_by_name(task);
        for task in self.world.tasks.values().filter(behind) {
            if let Some(why) = people.holds_up(&self.world, task) {
                by_cause.entry(why).or_default().push(task.id.as_str());
            }
        }
        let line = |(why, mut ids): (String, Vec<&str>)| {
            ids.sort_by(|one, other| kernel::natural(one, other));
            // Of more than one it is said in the plural.
            let why = match why.strip_prefix("waits") {
                Some(rest) if ids.len() > 1 => format!("wait{rest}"),
                _ => why,
            };
            match ids.len() {
                1..=3 => format!("{} {why}", ids.join(", ")),
                count => format!("{} and {} more {why}", ids[..2].join(", "), count - 2),
            }
        };
        by_cause.into_iter().map(line).collect()
    }
}

/// What `adj run --detach --json` prints.
#[derive(Serialize)]
struct Detached<'p> {
    pid: u32,
    log: &'p Path,
}

/// Starts the same fleet in a process group of its own, and returns once it answers.
fn detach(command: &Run, project: &Project, context: Context) -> Result<(), Failure> {
    let mut line = vec!["--project".to_owned(), project.root().display().to_string(), "run".to_owned()];
    let flags = [("--once", command.once), ("--until-idle", command.until_idle), ("--serve", command.serve)];
    line.extend(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.to_owned()));
    if let Some(workers) = command.workers {
        line.extend(["--workers".to_owned(), workers.to_string()]);
    }
    line.extend(command.listen.arguments());
    let mut started = background::start(project, &line)?;
    let running = started.until(DETACH, || project.running())?;
    let shown = super::project::shown(started.log());
    match running {
        Some(pid) if context.globals.json => {
            Ok(writeln!(context.out, "{}", text::json(&Detached { pid, log: started.log() }))?)
        }
        Some(pid) => Ok(writeln!(context.out, "the fleet runs as process {pid}; its lines go to {shown}")?),
        None => Ok(writeln!(context.out, "the fleet has run and ended; its lines are in {shown}")?),
    }
}
