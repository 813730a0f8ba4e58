//! `adj run`: the fleet at work, told as it happens, until it is stopped or idle.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::background;
use super::hosted::{Switch, SwitchControl, cannot_open};
use super::keyboard::Keyboard;
use super::live_source::{LiveSource, OwnedProject};
use super::project::Project;
use super::ready::{Ready, Wanted, read_settings, ready};
use super::screen::Screen;
use super::selection::{KeyAction, Selection};
use super::serve;
use super::terminal::{self, Paint, duration};
use super::text::Money;
use super::{Context, Exit, Failure, Globals, text};
use ::fleet::{Options, RunError, Runner, Stop};
use api::story::{Line, Tone};
use api::story_feed::StoryFeed;
use api::types::cost::Spend;
use api::types::fleet::{self, Fleet as FleetAnswer};
use api::types::overview::{ForYou, HeldTasks, Overview};
use base::clock;
use clap::Args;
use log::owner::{Handle, Owner};
use project::settings::trust::InForce;
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
    /// Serve HTTP, and open the page in a browser
    #[arg(long, conflicts_with = "detach")]
    open: bool,
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
        serve: command.listen.wish(command.serve || command.open)?,
        open: command.open,
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
        _ if command.until_idle && ended.overview.main_is_red => {
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
    if command.once || command.until_idle || command.serve || command.open || command.detach {
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
    /// Whether its page is opened in a browser.
    pub open: bool,
}

/// What a fleet left when it ended.
pub struct Ended {
    overview: Overview,
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
    survived: &'e BTreeMap<String, u32>,
    cost: text::Sum,
    millis: i64,
    for_you: Vec<ToDo<'e>>,
}

/// Something that a person must do.
#[derive(Serialize)]
struct ToDo<'e> {
    command: &'e str,
    what: &'e str,
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
        let screen = Screen::new(out, paint, live, quiet, self.heading.clone(), clock::now());
        let overview = runtime.block_on(self.serve(project, &owner, screen, mended))?;
        // What still writes to a file may finish; nothing new is begun.
        runtime.shutdown_timeout(Duration::from_secs(5));
        let millis = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        Ok(Ended { overview, millis })
    }

    /// `mended` is what people should hear of our own state.
    async fn serve(
        self,
        project: &Project,
        owner: &Owner,
        mut screen: Screen<'_>,
        mended: Vec<String>,
    ) -> Result<Overview, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
        let handle = owner.handle();
        let (notices, mut heard) = mpsc::unbounded_channel();
        let switch = Switch::new(project, handle.clone(), notices)?;
        let sandbox = ::fleet::sandbox_note(&self.in_force.settings);
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
        let (mut notes, mut served) = (self.notes, None);
        if let Some(wish) = &self.serve {
            let front =
                serve::open_address(wish, BTreeMap::from([(name, mounted)]), std::slice::from_ref(&switch))
                    .await?;
            let listening = serve::listening(front.listens.as_deref());
            let link = front.link().map_err(|error| failed(&error))?;
            // What is not read by a person may be kept, and a link is a secret.
            served = Some(match io::stdout().is_terminal() {
                true => format!("serving at {}{listening}; open in a browser, once: {link}", front.url),
                false => {
                    format!("serving at {}{listening}; `adj url` prints a link for a browser", front.url)
                }
            });
            if self.open {
                serve::open_in_browser(&link);
            }
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
            screen.line(Line { at: now, tone: Tone::Plain, text })?;
        }
        if let Some(text) = served {
            screen.line(Line { at: clock::now(), tone: Tone::Plain, text })?;
        }
        for note in sandbox.into_iter().chain(mended).chain(notes) {
            observe::notice(None, &note);
            screen.line(Line { at: clock::now(), tone: Tone::Wrong, text: note })?;
        }
        let owned = OwnedProject::new(project, handle.clone(), Arc::new(SwitchControl(switch.clone())));
        let telling_here = Telling::new(handle, switch.story().clone(), Arc::new(owned));
        let ran = watch(&runner, &telling_here, project.root(), &mut screen, &mut heard).await;
        stop.send_replace(true);
        serving.join_all().await;
        telling.finish().await;
        observe::finish().await;
        drop(socket);
        ran?;
        telling_here.overview().await
    }
}

/// What this process tells of its fleet, and where its own view reads that: as every other view does.
struct Telling {
    handle: Handle,
    story: Arc<StoryFeed>,
    source: Arc<dyn LiveSource>,
    /// The last line that is on the screen.
    shown: std::cell::Cell<u64>,
}

impl Telling {
    fn new(handle: Handle, story: Arc<StoryFeed>, source: Arc<dyn LiveSource>) -> Telling {
        Telling { handle, story, source, shown: std::cell::Cell::new(0) }
    }

    /// Takes in what people should hear and the log does not hold.
    fn hear(&self, text: &str) {
        observe::notice(None, text);
        self.story.hear(clock::now(), text);
    }

    /// Tells what was written since, and shows all that was told since.
    async fn tell(&self, screen: &mut Screen<'_>) -> Result<(), Failure> {
        loop {
            let (handle, story) = (self.handle.clone(), self.story.clone());
            let (source, shown) = (self.source.clone(), self.shown.get());
            let (more, lines) = blocking(move || {
                let more = story.follow(&handle)?;
                Ok((more, source.story(shown)?))
            })
            .await?;
            for line in lines {
                self.shown.set(line.number);
                screen.line(line.into())?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    async fn overview(&self) -> Result<Overview, Failure> {
        let source = self.source.clone();
        blocking(move || source.overview()).await
    }

    /// Draws what there is now. A moment that cannot be read is left out.
    async fn draw(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        match self.overview().await {
            Ok(overview) => screen.draw(&overview),
            Err(_) => Ok(()),
        }
    }
}

/// Answers may read files, and wait for a turn.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?
}

/// Tells what happens while the fleet runs, and passes signals on.
async fn watch(
    runner: &Runner,
    telling: &Telling,
    root: &Path,
    screen: &mut Screen<'_>,
    heard: &mut mpsc::UnboundedReceiver<String>,
) -> Result<(), Failure> {
    let mut keyboard = if screen.live { Keyboard::open() } else { None };
    screen.selection = keyboard.as_ref().map(|_| Selection::default());
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut head = telling.handle.follow();
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
                    telling.hear(&text);
                }
                telling.tell(screen).await?;
                changed = true;
            }
            Some(text) = heard.recv() => {
                telling.hear(&text);
                telling.tell(screen).await?;
                changed = true;
            }
            Some(key) = pressed(&mut keyboard) => {
                let Ok(overview) = telling.overview().await else { continue };
                let list: Vec<_> = overview.for_you.iter().map(|you| &you.waiting).collect();
                match screen.selection.as_mut().and_then(|selection| selection.press(key, &list)) {
                    Some(KeyAction::Stop) => stop(runner, screen)?,
                    Some(KeyAction::Suspend) => {
                        screen.close()?;
                        keyboard.iter().try_for_each(Keyboard::suspend)?;
                    }
                    Some(KeyAction::Run(line)) => answer(root.to_owned(), line, answers.clone()),
                    Some(KeyAction::Look) => {}
                    None => continue,
                }
                telling.draw(screen).await?;
                (changed, drawn) = (false, tokio::time::Instant::now());
            }
            Some(line) = answered.recv() => {
                screen.line(line)?;
                changed = true;
            }
            () = tokio::time::sleep_until(frame), if screen.live => {
                telling.draw(screen).await?;
                (changed, drawn) = (false, tokio::time::Instant::now());
            }
            _ = interrupt.recv() => stop(runner, screen)?,
            _ = terminate.recv() => stop(runner, screen)?,
            _ = hangup.recv() => runner.stop(Stop::Clean),
        }
    };
    telling.tell(screen).await?;
    while let Ok(text) = heard.try_recv() {
        telling.hear(&text);
    }
    telling.tell(screen).await?;
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
        let _ = answers.send(Line { at: clock::now(), tone, text });
    });
}

fn stop(runner: &Runner, screen: &mut Screen<'_>) -> io::Result<()> {
    let (how, text) = match runner.stopping() {
        Stop::No => (Stop::Clean, "stopping: waiting for running calls to end; Ctrl-C again ends them now"),
        _ => (Stop::Now, "ending every agent now; what they have written is kept"),
    };
    runner.stop(how);
    screen.stopping();
    screen.line(Line { at: clock::now(), tone: Tone::Loud, text: text.to_owned() })
}

impl Ended {
    /// Tasks that are not done. What agents proposed is none before somebody wants it.
    pub fn left(&self) -> usize {
        self.overview.counts.left
    }

    /// Of these, the tasks that go no further before a person has done something.
    pub fn need_a_person(&self) -> usize {
        self.overview.counts.need_person
    }

    pub fn document(&self) -> Document<'_> {
        let Overview { counts, landed, survived, cost, for_you, .. } = &self.overview;
        Document {
            tasks: counts.tasks,
            done: counts.done,
            left: counts.left,
            need_person: counts.need_person,
            proposed: counts.proposed,
            landed: *landed,
            survived,
            cost: Money::of(cost).document(),
            millis: self.millis,
            for_you: for_you.iter().map(|ForYou { command, what, .. }| ToDo { command, what }).collect(),
        }
    }

    pub fn summary(&self, globals: &Globals) -> String {
        let terminal = io::stdout().is_terminal();
        let paint = Paint::new(globals, terminal);
        let width = terminal::size().map_or(100, |(width, _)| width).saturating_sub(14);
        let Overview { counts, landed, for_you, .. } = &self.overview;
        let headline =
            format!("{} of {} tasks DONE, {landed} landed in this run", counts.done, counts.wanted);
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
        let survived = self.survived();
        if !survived.is_empty() {
            say("recovered", &survived);
        }
        say("cost", &self.cost());
        say("time", &duration(self.millis));
        if counts.tasks == 0 && counts.specs == 0 {
            say("you", "nothing to do yet: put a ticket into .tickets, or `adj task add TITLE`");
        }
        if let Some(left) = self.goes_on() {
            say("left", &left);
        }
        match counts.proposed {
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

    /// How many of each thing was survived, the most frequent first.
    fn survived(&self) -> String {
        let mut survived: Vec<_> = self.overview.survived.iter().collect();
        survived.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        survived.iter().map(|(what, count)| format!("{count}× {what}")).collect::<Vec<_>>().join(", ")
    }

    /// What this run cost, and all of them together where that is more.
    fn cost(&self) -> String {
        let (spend, before) = (&self.overview.cost, &self.overview.cost_before);
        let tokens = |spend: &Spend| spend.input_tokens + spend.output_tokens;
        let all = Money::of(spend);
        if *before == Spend::default() {
            return format!("{}, {} tokens", all.words(), terminal::thousands(tokens(spend)));
        }
        let now = all.since(&Money::of(before)).words();
        let tokens = terminal::thousands(tokens(spend).saturating_sub(tokens(before)));
        // Runs that cost nothing that anybody would see have nothing to add.
        match all.words() {
            all if all == now => format!("{now}, {tokens} tokens"),
            all => format!("{now}, {tokens} tokens; {all} with all runs before"),
        }
    }

    /// The tasks that the next run goes on with, without a person.
    fn goes_on(&self) -> Option<String> {
        let continues = &self.overview.continues;
        let parts = [
            (continues.in_work, "in work"),
            (continues.not_begun, "not begun"),
            (continues.to_land, "approved and not landed"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("{}; `adj run` goes on from here", parts.join(", ")))
    }

    /// The tasks that wait for what a person must do elsewhere, each with what that is.
    fn waits(&self) -> Vec<String> {
        let line = |HeldTasks { tasks, waits }: &HeldTasks| {
            // Of more than one it is said in the plural.
            let verb = if tasks.len() > 1 { "wait" } else { "waits" };
            match tasks.len() {
                1..=3 => format!("{} {verb}{waits}", tasks.join(", ")),
                count => format!("{} and {} more {verb}{waits}", tasks[..2].join(", "), count - 2),
            }
        };
        self.overview.held.iter().map(line).collect()
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
    let shown = super::text::shown(started.log());
    match running {
        Some(pid) if context.globals.json => {
            Ok(writeln!(context.out, "{}", text::json(&Detached { pid, log: started.log() }))?)
        }
        Some(pid) => Ok(writeln!(context.out, "the fleet runs as process {pid}; its lines go to {shown}")?),
        None => Ok(writeln!(context.out, "the fleet has run and ended; its lines are in {shown}")?),
    }
}
