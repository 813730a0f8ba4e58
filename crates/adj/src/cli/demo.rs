//! `adj demo`: a simulated fleet to look at, told as it happens: workers, board, and what went wrong and was survived.
//!
//! The life is played by the simulator first and then shown at a speed that people can follow. Whatever the screen
//! says was read from the World and the events of that moment; nothing is made up for show but the titles.

use super::terminal::{self, Paint, column, cut, dollars, duration, thousands};
use super::{Context, Exit, Failure};
use clap::Args;
use kernel::World;
use kernel::event::Event;
use kernel::invariants::Invariant;
use kernel::world::{Holder, SentBack, Task};
use machines::task::Status;
use machines::{Machine, Wire, run, worker};
use runtime::sim::{self, Fault, Moment, Plan, Report, What};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Watch a simulated fleet at work: no agent, no key, nothing stored
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct Demo {
    /// Do not wait: show the end, and everything before it as lines
    #[arg(long)]
    fast: bool,
    /// Another life of the fleet
    #[arg(long, value_name = "N", default_value_t = 4)]
    seed: u64,
}

const HELP: &str = "\
The fleet is simulated: the rules are the real ones, on a log in memory; the agents, git and the
clock are played. On a terminal it takes about 20 seconds; in a pipe it is plain lines, at once.";

const TASKS: u32 = 8;
const WORKERS: u32 = 4;
/// What goes wrong. All of it passes by itself, so that every task is DONE without a person.
const FAULTS: &str =
    "crash-after-append,agent-crash,agent-timeout,red-tests,conflict,main-moved,checkout-in-the-way,outage";
const TITLES: [&str; TASKS as usize] = [
    "Read dates with a zone",
    "Retry failed uploads",
    "Page the list of orders",
    "Say which field is wrong",
    "Cache the price table",
    "Close idle connections",
    "Export as CSV",
    "Drop the old login",
];

/// How long the show takes, without the faults' long waits.
const SHOW: Duration = Duration::from_secs(18);
/// A wait in the virtual clock counts as at most this long: an outage of minutes must not be watched for minutes.
const GAP_MILLIS_MAX: i64 = 12_000;
const FRAME: Duration = Duration::from_millis(60);
/// Lines of the frame that are not the log.
const LINES_BESIDE_LOG: usize = 18;
const LOG_LINES_MIN: usize = 4;
const LOG_LINES_MAX: usize = 12;
const WIDTH_MAX: usize = 110;

pub fn run(command: &Demo, context: Context) -> Result<(), Failure> {
    let faults = Fault::list(FAULTS).map_err(|error| Failure::new(Exit::Failed, error))?;
    let plan = Plan { seed: command.seed, tasks: TASKS, workers: WORKERS, faults };
    let mut story = Story::default();
    let report = sim::watch(&plan, &mut |_| {}, &mut |moment| story.see(moment));
    if let Some(failure) = &report.failure {
        return Err(Failure::new(Exit::Failed, format!("the simulated fleet failed: {failure}"))
            .hint(format!("`{} --trace` plays it again, line by line", plan.command())));
    }
    if context.globals.json {
        writeln!(context.out, "{}", story.document(&plan, &report))?;
        return Ok(());
    }
    let terminal = io::stdout().is_terminal();
    let paint = Paint::new(&context.globals, terminal);
    let size = terminal::size().filter(|_| terminal && !terminal::dumb());
    let lines = size.map_or(0, |(_, height)| height.saturating_sub(LINES_BESIDE_LOG));
    let out = context.out;
    if size.is_some() && !command.fast && lines >= LOG_LINES_MIN {
        let show = Show { paint, story: &story, log_lines: lines.min(LOG_LINES_MAX) };
        show.play(out)?;
    } else {
        writeln!(out, "{BANNER}\n")?;
        for line in story.scenes.iter().flat_map(|scene| &scene.lines) {
            writeln!(out, "{}", line.print(paint, usize::MAX))?;
        }
    }
    let width = size.map_or(WIDTH_MAX, |(width, _)| width);
    out.write_all(summary(&story, &report, &plan, paint, context.globals.quiet, width).as_bytes())?;
    Ok(())
}

const BANNER: &str =
    "A simulated fleet: real rules on a log in memory; agents, git and the clock are played.";

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Good,
    Wrong,
    Killed,
}

#[derive(Clone, Debug)]
struct Line {
    at: i64,
    tone: Tone,
    text: String,
}

impl Line {
    fn print(&self, paint: Paint, width: usize) -> String {
        let text = cut(&self.text, width.saturating_sub(11));
        let (mark, text) = match self.tone {
            Tone::Plain => (" ".to_owned(), text),
            Tone::Good => (paint.green("✓"), paint.green(text)),
            Tone::Wrong => (paint.yellow("!"), text),
            Tone::Killed => (paint.red("✗"), paint.bold(text)),
        };
        format!("{} {mark} {text}", paint.dim(clock(self.at)))
    }
}

/// Time since the beginning, as hours, minutes and seconds.
fn clock(millis: i64) -> String {
    let seconds = millis / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// One moment of the life, as the screen shows it. A World is cheap to keep: it shares what did not change.
struct Scene {
    at: i64,
    world: World,
    commits: u64,
    crashes: u64,
    lines: Vec<Line>,
}

/// The whole life, in scenes and words.
#[derive(Default)]
struct Story {
    scenes: Vec<Scene>,
    commits: u64,
    crashes: u64,
    /// Who held each task last.
    holders: BTreeMap<String, String>,
    healthy: BTreeMap<String, bool>,
    /// What went wrong, in words, with how often.
    survived: BTreeMap<&'static str, u32>,
}

impl Story {
    fn see(&mut self, moment: &Moment) {
        let mut lines = Vec::new();
        match moment.what {
            What::Committed { events, .. } => {
                self.commits += 1;
                for event in events {
                    lines.extend(self.words(moment.world, event));
                }
            }
            What::Struck(_) => return,
            What::OwnerKilled => {
                self.crashes += 1;
                self.count("owner killed");
                let text = "owner killed and recovered: nothing lost".to_owned();
                lines.push((Tone::Killed, text));
            }
        }
        // The clock of a scene never runs back, whatever the played one does.
        let at = self.scenes.last().map_or(0, |scene| scene.at).max(moment.at);
        self.scenes.push(Scene {
            at,
            world: moment.world.clone(),
            commits: self.commits,
            crashes: self.crashes,
            lines: lines.into_iter().map(|(tone, text)| Line { at, tone, text }).collect(),
        });
    }

    fn count(&mut self, what: &'static str) {
        *self.survived.entry(what).or_default() += 1;
    }

    /// What an event means to someone who watches; most mean nothing.
    fn words(&mut self, world: &World, event: &Event) -> Option<(Tone, String)> {
        match event {
            Event::LeaseGiven(given) => {
                let Holder::Worker(name) = &given.holder else { return None };
                let before = self.holders.insert(given.id.to_string(), name.to_string());
                let text = match before {
                    None => format!("{name} takes {}: {}", given.id, title(given.id.as_str())),
                    Some(before) if before == name.as_str() => {
                        format!("{name} takes {} up again, in the same tree", given.id)
                    }
                    Some(before) => {
                        format!("{name} takes {} up where {before} left it, in the same tree", given.id)
                    }
                };
                Some((Tone::Plain, text))
            }
            Event::RunMoved(moved) if moved.state == run::State::InError && moved.from != moved.to => {
                let run = world.run(&moved.id)?;
                let who = match &run.holder {
                    Holder::Worker(name) => name.to_string(),
                    Holder::Outside(name) => name.to_string(),
                };
                self.count("agent crash");
                let text = format!("{who}'s agent crashed on {}; resumed after a wait", run.task);
                Some((Tone::Wrong, text))
            }
            Event::StepRetried(retried) if retried.retried => {
                let task = &world.run(&retried.id)?.task;
                self.count("step timed out");
                Some((Tone::Wrong, format!("{task}: a step hangs; once more with a fresh session")))
            }
            Event::HealthSeen(seen) => {
                let before = self.healthy.insert(seen.service.to_string(), seen.healthy).unwrap_or(true);
                match (before, seen.healthy) {
                    (true, false) => {
                        self.count("outage of the model");
                        Some((Tone::Wrong, "the model is away: runs wait, no error counted".to_owned()))
                    }
                    (false, true) => {
                        Some((Tone::Good, "the model is back: runs go on where they were".to_owned()))
                    }
                    _ => None,
                }
            }
            Event::GatePassed(passed) => {
                Some((Tone::Plain, format!("{}: tests pass, approved by policy, queued", passed.id)))
            }
            Event::SentBackTo(sent) => match &sent.what {
                SentBack::Gate(_) => {
                    self.count("DONE that the tests refuted");
                    Some((Tone::Wrong, format!("{}: \"DONE\", says the agent; the tests say no", sent.id)))
                }
                SentBack::Landing(_) => {
                    self.count("merge conflict");
                    Some((Tone::Wrong, format!("{}: conflicts with main; sent back to work", sent.id)))
                }
            },
            Event::LandingEnded(ended) if ended.why == "main was moved" => {
                self.count("main moved during a landing");
                let text = format!("{}: main moved meanwhile; merged anew", ended.id);
                Some((Tone::Wrong, text))
            }
            Event::LandingHeldUp(held) if held.why.is_some() => {
                self.count("landing held up by local changes");
                let text = format!("{}: local changes in the way; the landing waits", held.id);
                Some((Tone::Wrong, text))
            }
            Event::TaskLanded(landed) => Some((Tone::Good, format!("{} landed on main", landed.id))),
            _ => None,
        }
    }

    fn document(&self, plan: &Plan, report: &Report) -> serde_json::Value {
        let lines: Vec<_> = self
            .scenes
            .iter()
            .flat_map(|scene| &scene.lines)
            .map(|line| json!({"virtualMillis": line.at, "text": line.text}))
            .collect();
        json!({
            "simulated": true,
            "seed": plan.seed,
            "tasks": report.tasks,
            "done": report.done,
            "workers": plan.workers,
            "commits": report.commits,
            "crashes": report.crashes,
            "virtualMillis": report.virtual_millis,
            "costMicros": report.cost,
            "survived": self.survived,
            "log": lines,
        })
    }
}

fn title(id: &str) -> &'static str {
    let number = id.strip_prefix('t').and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    number.checked_sub(1).and_then(|index| TITLES.get(index)).copied().unwrap_or("")
}

/// The show on a terminal: one frame, rewritten in place.
struct Show<'s> {
    paint: Paint,
    story: &'s Story,
    log_lines: usize,
}

impl Show<'_> {
    fn play(&self, out: &mut dyn Write) -> io::Result<()> {
        let scenes = &self.story.scenes;
        // When each scene is shown: the virtual clock, without its long waits, in the time that there is.
        let mut times = Vec::with_capacity(scenes.len());
        let (mut shown, mut before) = (0, 0);
        for scene in scenes {
            shown += (scene.at - before).min(GAP_MILLIS_MAX);
            before = scene.at;
            times.push(shown);
        }
        let scale = SHOW.as_secs_f64() / (shown.max(1) as f64);
        let begun = Instant::now();
        let (mut index, mut height) = (0, 0);
        while let Some(last) = scenes.len().checked_sub(1) {
            let elapsed = begun.elapsed().as_secs_f64();
            while index < last && times[index + 1] as f64 * scale <= elapsed {
                index += 1;
            }
            let width = terminal::size().map_or(80, |(width, _)| width).min(WIDTH_MAX);
            let frame = self.frame(index, width);
            // In one write and as one update, so that no half of a frame is seen.
            let up = if height > 0 { format!("\x1b[{height}A") } else { String::new() };
            height = frame.len();
            let body: String = frame.iter().map(|line| format!("\r{line}\x1b[K\n")).collect();
            out.write_all(format!("\x1b[?2026h{up}{body}\x1b[?2026l").as_bytes())?;
            out.flush()?;
            if index == last {
                break;
            }
            std::thread::sleep(FRAME);
        }
        Ok(())
    }

    fn frame(&self, index: usize, width: usize) -> Vec<String> {
        let scene = &self.story.scenes[index];
        let (paint, world) = (self.paint, &scene.world);
        // One column is left free: a terminal that is made narrower must not wrap a line.
        let width = width.saturating_sub(1);
        let banner = if width < BANNER.chars().count() + 9 {
            "a SIMULATED fleet: real rules, played agents"
        } else {
            "a SIMULATED fleet: real rules; agents, git and clock are played"
        };
        let facts = format!(
            "{}   {} commits   owner killed {}×   {}",
            clock(scene.at),
            thousands(scene.commits),
            scene.crashes,
            dollars(world.spend.cost)
        );
        let mut frame = vec![
            format!("{} {}", paint.bold("adjutant"), paint.yellow(cut(banner, width.saturating_sub(9)))),
            paint.dim(cut(&facts, width)),
            String::new(),
        ];
        frame.push(paint.dim(cut("  WORKER  STATE    TASK", width)));
        for worker in world.workers.values() {
            frame.push(self.worker(world, worker, width));
        }
        frame.resize(4 + WORKERS as usize, String::new());
        frame.push(String::new());
        frame.extend(self.board(world, width));
        frame.push(String::new());
        let log: Vec<&Line> = self.story.scenes[..=index].iter().flat_map(|scene| &scene.lines).collect();
        let from = log.len().saturating_sub(self.log_lines);
        frame.extend(log[from..].iter().map(|line| line.print(paint, width)));
        frame.resize(frame.len() + self.log_lines - (log.len() - from), String::new());
        frame
    }

    fn worker(&self, world: &World, worker: &kernel::world::Worker, width: usize) -> String {
        use worker::State;
        let (paint, state) = (self.paint, worker.machine.status);
        let symbol = symbol(state);
        let task = worker.machine.task.as_ref();
        let run = task.and_then(|id| world.run_of(id));
        let doing = match (state, run) {
            (_, Some(run)) if run.is_suspended() => "waits for the model".to_owned(),
            (State::Working, Some(run)) if run.state() == run::State::InError => {
                "waits, then resumes".to_owned()
            }
            (State::Working, Some(run)) => {
                format!("step {}, turn {}", worker.machine.step_count + 1, run.machine.inner().current_turn)
            }
            (State::Ready, _) => "tree is being made".to_owned(),
            (State::Done, _) => "tests run".to_owned(),
            _ => String::new(),
        };
        let what = task.map_or(String::new(), |id| {
            let room = width.saturating_sub(19 + 20).clamp(8, 32);
            format!("{} {doing}", column(&format!("{id} {}", title(id.as_str())), room.saturating_sub(1)))
        });
        let text = format!("{:7} {:8} ", worker.name.as_str(), state.name());
        let rest = cut(&format!("{text}{what}"), width.saturating_sub(2));
        match state {
            State::Idle => paint.dim(format!("{symbol} {rest}")),
            State::Ready => format!("{} {rest}", paint.cyan(symbol)),
            State::Working if doing.starts_with("waits") => format!("{} {rest}", paint.yellow(symbol)),
            State::Working => format!("{} {rest}", paint.green(symbol)),
            State::Done => format!("{} {rest}", paint.bold(symbol)),
            _ => format!("{} {rest}", paint.red(symbol)),
        }
    }

    /// The columns that a task goes through, each with those that are there.
    fn board(&self, world: &World, width: usize) -> Vec<String> {
        let columns = ["INBOX", "PROGRESS", "REVIEW", "LANDING", "DONE"];
        let cell = width / columns.len();
        let per_line = (cell / 3).max(1);
        let height = (TASKS as usize).div_ceil(per_line);
        let mut there = vec![Vec::new(); columns.len()];
        for task in world.tasks.values() {
            there[place(world, task)].push(task.id.to_string());
        }
        let mut lines =
            vec![self.paint.dim(columns.map(|name| column(name, cell)).concat().trim_end().to_owned())];
        for row in 0..height {
            let mut line = String::new();
            for (index, tasks) in there.iter().enumerate() {
                let some: Vec<&str> =
                    tasks.iter().skip(row * per_line).take(per_line).map(String::as_str).collect();
                let text = column(&some.join(" "), cell);
                line += &match index {
                    0 => self.paint.dim(text),
                    1 => self.paint.cyan(text),
                    4 => self.paint.green(text),
                    _ => self.paint.yellow(text),
                };
            }
            lines.push(line);
        }
        lines
    }
}

fn symbol(state: worker::State) -> &'static str {
    let meta = worker::Worker::meta(state);
    meta.iter()
        .find_map(|(name, value)| match value {
            machines::machine::Meta::Text(symbol) if *name == "symbol" => Some(*symbol),
            _ => None,
        })
        .unwrap_or(" ")
}

/// The column of the board that a task stands in.
fn place(world: &World, task: &Task) -> usize {
    let landing = world.landing.as_ref().is_some_and(|landing| landing.task == task.id);
    match task.status() {
        Status::Inbox | Status::Assigned => 0,
        Status::Review if landing || task.held_up.is_some() => 3,
        Status::Review => 2,
        Status::Done | Status::Canceled => 4,
        _ => 1,
    }
}

fn summary(story: &Story, report: &Report, plan: &Plan, paint: Paint, quiet: bool, width: usize) -> String {
    let mut text = String::from("\n");
    let mut say = |line: String| {
        text += &line;
        text.push('\n');
    };
    let all = report.done == report.tasks;
    let done = format!("{} of {} tasks DONE, simulated", report.done, report.tasks);
    say(if all { paint.green(format!("✓ {done}")) } else { paint.yellow(format!("! {done}")) });
    let mut survived: Vec<_> = story.survived.iter().collect();
    survived.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let list: Vec<_> = survived.iter().map(|(what, count)| format!("{count}× {what}")).collect();
    for (index, line) in terminal::wrap(&list.join(", "), width.saturating_sub(14)).into_iter().enumerate() {
        say(format!("  {:10}{line}", if index == 0 { "survived" } else { "" }));
    }
    let (invariants, commits) = (Invariant::ALL.len(), thousands(report.commits));
    say(format!("  {:10}all {invariants} invariants held after each of {commits} commits", "checked"));
    let workers = plan.workers;
    say(format!("  {:10}{} of {workers} workers, virtual", "time", duration(report.virtual_millis)));
    say(format!("  {:10}{}, simulated; no token was spent", "cost", dollars(report.cost)));
    if !quiet {
        say(String::new());
        say("Next:".to_owned());
        // As it was called: after `make demo`, adj is on nobody's path.
        let adj = std::env::args().next().unwrap_or_else(|| "adj".to_owned());
        for (command, about) in [
            ("sim --runs 1000 --faults all", "a thousand such lives"),
            ("machine show task", "the rules of the board"),
            ("--help", "everything else"),
        ] {
            say(format!("  {adj} {command:28}  {}", paint.dim(about)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story() -> (Plan, Story, Report) {
        let plan = Plan { seed: 4, tasks: TASKS, workers: WORKERS, faults: Fault::list(FAULTS).unwrap() };
        let mut story = Story::default();
        let report = sim::watch(&plan, &mut |_| {}, &mut |moment| story.see(moment));
        (plan, story, report)
    }

    /// A frame that is rewritten in place must be as high as the one before, and no line of it may wrap.
    #[test]
    fn every_frame_keeps_to_its_columns_and_to_its_height() {
        let (_, story, _) = story();
        for width in [60, 80, 100] {
            let show = Show { paint: Paint::none(), story: &story, log_lines: 6 };
            let heights: Vec<usize> = (0..story.scenes.len())
                .map(|index| {
                    let frame = show.frame(index, width);
                    for line in &frame {
                        assert!(line.chars().count() < width, "{width}: {line}");
                    }
                    frame.len()
                })
                .collect();
            assert!(heights.iter().all(|height| *height <= 6 + LINES_BESIDE_LOG), "{heights:?}");
            assert!(heights.iter().all(|height| *height == heights[0]), "{heights:?}");
        }
    }

    #[test]
    fn what_the_log_says_fits_sixty_columns() {
        let (_, story, _) = story();
        for line in story.scenes.iter().flat_map(|scene| &scene.lines) {
            assert!(!line.print(Paint::none(), 59).contains('…'), "{}", line.text);
        }
    }

    #[test]
    fn the_life_that_is_shown_has_its_crash_and_ends_with_every_task_done() {
        let (_, story, report) = story();
        assert_eq!((report.failure, report.done), (None, TASKS));
        assert!(story.survived.contains_key("owner killed"), "{:?}", story.survived);
    }
}
