//! The live view of a fleet: what happened scrolls by, and under it stands a frame of workers, board and what waits for
//! a person, rewritten in place.

use super::selection::{self, Selection, SelectionView};
use super::story_lines;
use super::terminal::{self, Paint, column, columns, cut};
use super::text::Money;
use api::story::{self, COLUMNS, ForYou, Line, OnPeople, Story};
use fleet::RunningTests;
use kernel::World;
use kernel::event::Event;
use kernel::waiting::Facts;
use machines::task::Status;
use machines::{Wire, worker};
use std::io::{self, Write};

/// Lines of the terminal that the frame leaves to what happened.
const STORY_LINES_MIN: usize = 4;
/// Workers that are shown one by one on a terminal of few lines; of more only the busy ones are.
const WORKERS_FEW: usize = 12;
/// Lines of task names in the board, and of things for a person, on a terminal of few lines.
const BOARD_LINES_FEW: usize = 2;
const YOU_LINES_FEW: usize = 4;
/// A terminal with fewer lines has few.
const MANY_LINES: usize = 30;
/// A smaller terminal gets what matters most, line by line.
const SMALL: (usize, usize) = (36, 12);

/// What is told, and how: over a frame on a terminal, plain lines elsewhere.
pub struct Screen<'o> {
    out: &'o mut dyn Write,
    paint: Paint,
    /// The output is a terminal that can be written over.
    pub live: bool,
    quiet: bool,
    begun: i64,
    heading: String,
    /// What Ctrl-C would do now.
    interrupt: &'static str,
    pub story: Story,
    /// Told since the last frame, and not on the terminal yet.
    lines: Vec<Line>,
    /// The columns of each line of the frame that stands there.
    drawn: Vec<usize>,
    /// The landing under way: its task, and since when.
    landing: Option<(String, i64)>,
    /// What tests are run by.
    test: Option<String>,
    /// The tests that run now.
    running: Vec<RunningTests>,
    /// What waits and is outside of the log.
    pub facts: Facts,
    /// Where a person answers by keys, if there are any.
    pub selection: Option<Selection>,
}

impl<'o> Screen<'o> {
    pub fn new(
        out: &'o mut dyn Write,
        paint: Paint,
        live: bool,
        quiet: bool,
        heading: String,
        begun: i64,
    ) -> Screen<'o> {
        Screen {
            out,
            paint,
            live,
            quiet,
            begun,
            heading,
            interrupt: "Ctrl-C stops",
            story: Story::default(),
            lines: Vec::new(),
            drawn: Vec::new(),
            landing: None,
            test: None,
            running: Vec::new(),
            facts: Facts::default(),
            selection: None,
        }
    }

    /// The command that a landing runs, to be shown while it does.
    pub fn tested_by(mut self, command: Option<String>) -> Screen<'o> {
        self.test = command;
        self
    }

    /// Takes what happened. Plain lines are printed at once.
    pub fn tell(&mut self, world: &World, at: i64, event: &Event) -> io::Result<()> {
        match event {
            Event::LandingStarted(started) => self.landing = Some((started.id.to_string(), at)),
            Event::LandingEnded(_) | Event::TaskLanded(_) => self.landing = None,
            _ => {}
        }
        for line in self.story.lines(world, at, event) {
            self.line(line)?;
        }
        Ok(())
    }

    /// Says something that the log does not hold.
    pub fn line(&mut self, line: Line) -> io::Result<()> {
        if self.live {
            self.lines.push(line);
            return Ok(());
        }
        if !self.quiet {
            writeln!(self.out, "{}", story_lines::print(&line, self.paint, usize::MAX))?;
        }
        self.out.flush()
    }

    /// Ctrl-C was pressed, or the like.
    pub fn stopping(&mut self) {
        self.interrupt = "stopping; Ctrl-C again ends the agents now";
    }

    /// Draws the frame anew, over the one that stands there and under what was told since.
    pub fn draw(&mut self, world: &World, now: i64, running: Vec<RunningTests>) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        self.running = running;
        if let Some(selection) = &mut self.selection {
            let all = story::for_you(world, &self.facts);
            selection.keep_up(&all.iter().map(|you| &you.item).collect::<Vec<_>>());
        }
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let frame = self.frame(world, now, width, height);
        self.put(&frame)
    }

    /// Takes the frame away. What was told stays.
    pub fn close(&mut self) -> io::Result<()> {
        if self.live { self.put(&[]) } else { Ok(()) }
    }

    /// In one write and as one update, so that no half of a frame is seen.
    fn put(&mut self, frame: &[String]) -> io::Result<()> {
        let (width, height) = terminal::size().unwrap_or((usize::MAX, usize::MAX));
        // A terminal that was made narrower has wrapped what stands there.
        let rows: usize = self.drawn.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum();
        let rows = rows.min(height.saturating_sub(1));
        let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        let told: String = self
            .lines
            .iter()
            .map(|line| format!("{}\n", story_lines::print(line, self.paint, width)))
            .collect();
        let told = told.lines();
        // What stood there is wiped first: a shorter line would leave the rest of a longer one.
        let body: String =
            told.chain(frame.iter().map(String::as_str)).map(|line| format!("\r{line}\x1b[K\n")).collect();
        self.lines.clear();
        self.drawn = frame.iter().map(|line| columns(&terminal::plain(line))).collect();
        self.out.write_all(format!("\x1b[?2026h{up}\r\x1b[J{body}\x1b[?2026l").as_bytes())?;
        self.out.flush()
    }

    fn frame(&self, world: &World, now: i64, width: usize, height: usize) -> Vec<String> {
        let paint = self.paint;
        // One column is left free: a terminal that is made narrower must not wrap a line.
        let width = width.saturating_sub(1).max(1);
        let money = Money::of_spend(world, &world.spend);
        let (done, all) = done_of_all(world);
        if width < SMALL.0 || height < SMALL.1 {
            return self.small(world, now, width, height, &format!("{done} of {all}  {}", money.short()));
        }
        let many = height >= MANY_LINES;
        let board = if many { height / 8 } else { BOARD_LINES_FEW };
        let you = if many { height / 6 } else { YOU_LINES_FEW };
        let height = height.saturating_sub(1 + STORY_LINES_MIN).max(1);
        let facts = format!(
            "{}   {done} of {all} done   {}   {}",
            story::clock((now - self.begun).max(0)),
            money.words(),
            self.interrupt,
        );
        let mut frame = vec![
            String::new(),
            format!("{} {}", paint.bold("adjutant"), cut(&self.heading, width.saturating_sub(9))),
            paint.dim(cut(&facts, width)),
            String::new(),
        ];
        let mut rest: Vec<String> = self.landing(world, now, width).into_iter().collect();
        rest.push(String::new());
        rest.extend(self.board(world, width, board));
        rest.extend(self.for_you(world, width, you));
        // What a person must do is never pushed off by workers, of whom there may be many.
        frame.extend(self.workers(world, now, width, height.saturating_sub(frame.len() + rest.len())));
        frame.extend(rest);
        frame.truncate(height);
        frame
    }

    /// For a terminal of a few lines: how far it is, what waits for a person, who works.
    fn small(&self, world: &World, now: i64, width: usize, height: usize, facts: &str) -> Vec<String> {
        let mut lines = vec![self.paint.bold(cut(facts, width))];
        lines.extend(
            story::for_you(world, &self.facts).iter().map(|you| self.paint.cyan(cut(&you.command, width))),
        );
        let busy = world.workers.values().filter(|worker| worker.machine.task.is_some());
        lines.extend(busy.map(|worker| {
            let task = worker.machine.task.as_ref().map(ToString::to_string).unwrap_or_default();
            cut(&format!("{} {task} {}", worker.name, story::doing(world, worker, now)), width)
        }));
        lines.truncate(height.saturating_sub(2).max(1));
        lines
    }

    /// The one landing under way: what is done, and for how long.
    fn landing(&self, world: &World, now: i64, width: usize) -> Option<String> {
        // Main's own tests hold everybody up: without their command and time the fleet would look dead.
        if let Some(effect) = &world.main.under_way {
            let running = self.running.iter().find(|tests| tests.effect == effect.as_str());
            let text = running.map_or("testing main".to_owned(), |tests| {
                format!("testing main  {} s: {}", (now - tests.since).max(0) / 1000, tests.command)
            });
            return Some(self.paint.yellow(cut(&super::text::visible(&text), width)));
        }
        let landing = world.landing.as_ref()?;
        let since = self.landing.as_ref().filter(|(id, _)| *id == landing.task.as_str());
        let seconds = since.map_or(String::new(), |(_, at)| format!(" {} s", (now - at).max(0) / 1000));
        let what = match (&landing.written, &self.test) {
            (Some(_), _) => "moves main".to_owned(),
            (None, Some(test)) => format!("tests of the merge running{seconds}: {test}"),
            (None, None) => format!("tests of the merge running{seconds}"),
        };
        let text = format!("landing {}  {}", landing.task, super::text::visible(&what));
        Some(self.paint.yellow(cut(&text, width)))
    }

    /// The workers, in at most so many lines.
    fn workers(&self, world: &World, now: i64, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.paint.dim(cut("  WORKER  STATE    TASK", width))];
        let room = WORKERS_FEW.max(height / 2).min(height.saturating_sub(2)).max(1);
        let many = world.workers.len() > room;
        let shown = world.workers.values().filter(|worker| !many || worker.machine.task.is_some()).take(room);
        lines.extend(shown.map(|worker| self.worker(world, worker, now, width)));
        match world.workers.len() + 1 - lines.len() {
            0 => {}
            more => lines.push(self.paint.dim(cut(&format!("  and {more} more: adj ps"), width))),
        }
        lines
    }

    /// What waits for a person, with the command that answers it first: that must not be cut off.
    fn for_you(&self, world: &World, width: usize, lines_max: usize) -> Vec<String> {
        let all = story::for_you(world, &self.facts);
        if all.is_empty() {
            return Vec::new();
        }
        let items: Vec<_> = all.iter().map(|you| &you.item).collect();
        let chosen = self.selection.as_ref().and_then(|selection| selection.position(&items));
        let mut lines = vec![String::new(), self.heading_for_you(width)];
        match (&self.selection, chosen) {
            (Some(selection), Some(place)) if selection.shown() != SelectionView::List => {
                lines.extend(self.opened(&all[place], selection, width));
            }
            _ => lines.extend(self.listed(&all, chosen, width, lines_max)),
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn heading_for_you(&self, width: usize) -> String {
        let keys = self.selection.as_ref().map_or("", |selection| match selection.shown() {
            SelectionView::List => "↑↓ choose   Enter open",
            SelectionView::Open => "1-9 answer   Esc back",
            SelectionView::Writing(_) => "Enter send   Esc back",
        });
        format!("{}  {}", self.paint.bold("FOR YOU"), self.paint.dim(cut(keys, width.saturating_sub(9))))
    }

    fn listed(&self, all: &[ForYou], chosen: Option<usize>, width: usize, lines_max: usize) -> Vec<String> {
        let shown = if all.len() > lines_max { lines_max - 1 } else { all.len() };
        // The chosen one is always among those that are shown.
        let first = chosen.map_or(0, |place| (place + 1).saturating_sub(shown));
        let seen = &all[first..first + shown];
        let wide = seen.iter().map(|you| you.command.len()).max().unwrap_or(0);
        let mut lines: Vec<String> = Vec::new();
        for (place, you) in seen.iter().enumerate() {
            let what = cut(&super::text::visible(&you.what), width.saturating_sub(wide + 4));
            let mark = if chosen == Some(first + place) { "▸" } else { "→" };
            let command = self.paint.bold(column(&you.command, wide));
            lines.push(format!("{} {command}  {what}", self.paint.cyan(mark)));
        }
        if shown < all.len() {
            lines.push(cut(&format!("  and {} more: adj waiting", all.len() - shown), width));
        }
        lines
    }

    /// One thing that waits, with a key for each answer, or with the answer under way.
    fn opened(&self, you: &ForYou, selection: &Selection, width: usize) -> Vec<String> {
        let what = super::text::visible(&you.what);
        let mut lines = vec![format!("{} {}", self.paint.cyan("▸"), cut(&what, width.saturating_sub(2)))];
        if let SelectionView::Writing(text) = selection.shown() {
            // Its end is what is being written.
            let room = width.saturating_sub(6);
            let text = super::text::visible(text);
            let over = columns(&text).saturating_sub(room);
            let end: String = text.chars().skip(over).collect();
            lines.push(format!("  {} {}▏", self.paint.bold(">"), cut(&end, room)));
            return lines;
        }
        let wide =
            selection::keys(&you.item).map(|(_, choice)| fleet::command_line::command(choice).len()).max();
        let wide = wide.unwrap_or(0).min(width / 2);
        for (key, choice) in selection::keys(&you.item) {
            let command = column(&fleet::command_line::command(choice), wide);
            let does = cut(choice.text(), width.saturating_sub(wide + 6));
            lines.push(format!("  {} {command}  {does}", self.paint.bold(key)));
        }
        lines
    }

    fn worker(&self, world: &World, worker: &kernel::world::Worker, now: i64, width: usize) -> String {
        use worker::State;
        let (paint, state) = (self.paint, worker.machine.status);
        // The words of `adj ps`: what a worker that is done waits for stands behind its task.
        let (symbol, name) = (worker::symbol(state), state.name());
        let doing = story::doing(world, worker, now);
        let what = worker.machine.task.as_ref().map_or(String::new(), |id| {
            let room = (width.saturating_sub(19) / 2).clamp(8, 60);
            let title = story::title(world, id.as_str());
            format!(
                "{} {doing}",
                column(&super::text::visible(&format!("{id} {title}")), room.saturating_sub(1))
            )
        });
        let text = format!("{:7} {name:8} ", worker.name.as_str());
        let rest = cut(&format!("{text}{what}"), width.saturating_sub(2));
        match state {
            State::Idle => paint.dim(format!("{symbol} {rest}")),
            State::Ready => format!("{} {rest}", paint.cyan(symbol)),
            State::Working if doing.starts_with("waits") => format!("{} {rest}", paint.yellow(symbol)),
            State::Working => format!("{} {rest}", paint.green(symbol)),
            State::Done => format!("{} {rest}", paint.cyan(symbol)),
            _ => format!("{} {rest}", paint.red(symbol)),
        }
    }

    /// The columns that a task goes through, each with those that are there.
    fn board(&self, world: &World, width: usize, lines_max: usize) -> Vec<String> {
        let cell = (width / COLUMNS.len()).max(4);
        let mut there: Vec<Vec<String>> = vec![Vec::new(); COLUMNS.len()];
        let people = OnPeople::new(world, &self.facts);
        for task in world.tasks.values() {
            there[people.column_of(world, task)].push(task.id.to_string());
        }
        let headings: String = COLUMNS
            .iter()
            .zip(&there)
            .map(|(name, tasks)| column(&format!("{name} {}", tasks.len()), cell))
            .collect();
        let mut lines = vec![self.paint.dim(headings.trim_end())];
        let rows: Vec<Vec<String>> =
            there.iter().map(|tasks| fill(tasks, cell.saturating_sub(1), lines_max)).collect();
        let height = rows.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..height {
            let cells: String = rows
                .iter()
                .enumerate()
                .map(|(index, rows)| {
                    let text = column(rows.get(row).map_or("", String::as_str), cell);
                    match index {
                        0 => self.paint.dim(text),
                        1 => self.paint.cyan(text),
                        4 => self.paint.red(text),
                        5 => self.paint.green(text),
                        _ => self.paint.yellow(text),
                    }
                })
                .collect();
            lines.push(cells.trim_end().to_owned());
        }
        lines
    }
}

/// Names in lines of at most `width` columns; what does not fit is counted.
fn fill(names: &[String], width: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let fits = lines.last().is_some_and(|line| columns(line) + 1 + columns(name) <= width);
        if fits {
            let line = lines.last_mut().expect("there is a last one");
            line.push(' ');
            line.push_str(name);
        } else if lines.len() == lines_max {
            // The last line makes room, and what stood there counts too.
            let left = names.len() - index + lines[lines_max - 1].split(' ').count();
            lines[lines_max - 1] = cut(&format!("+{left}"), width);
            break;
        } else {
            lines.push(cut(name, width));
        }
    }
    lines
}

/// Tasks that are done, and those that are or will be: what was canceled will not.
pub fn done_of_all(world: &World) -> (usize, usize) {
    let count = |status: Status| world.tasks.values().filter(|task| task.status() == status).count();
    let proposed = api::story::proposed(world).len();
    (count(Status::Done), world.tasks.len() - count(Status::Canceled) - proposed)
}

/// How many of each thing was survived, the most frequent first: for a summary's line.
pub fn survived(story: &Story) -> String {
    let mut survived: Vec<_> = story.survived.iter().collect();
    survived.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    survived.iter().map(|(what, count)| format!("{count}× {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::{self, Fault, Plan, What};

    /// Many moments of a fleet's life, as a simulated one has them.
    fn watch(mut look: impl FnMut(&World, i64, &Event)) {
        let faults = Fault::list("agent-crash,red-tests,conflict,outage,review-by-person").unwrap();
        let plan = Plan { seed: 4, tasks: 30, workers: 20, faults };
        sim::watch(&plan, &mut |_| {}, &mut |moment| {
            if let What::Committed { events, .. } = moment.what {
                events.iter().for_each(|event| look(moment.world, moment.at, event));
            }
        });
    }

    /// A frame that is rewritten in place must fit the terminal, and no line of it may wrap.
    #[test]
    fn every_frame_keeps_to_its_columns_and_lines() {
        for (width, height) in [(40, 20), (60, 24), (80, 24), (110, 50), (200, 50)] {
            let mut out = Vec::new();
            let mut screen = Screen::new(&mut out, Paint::none(), true, false, "in a project".to_owned(), 0);
            let (mut seen, mut for_you) = (0, 0);
            watch(|world, at, event| {
                screen.tell(world, at, event).unwrap();
                seen += 1;
                if seen % 50 == 0 {
                    let frame = screen.frame(world, at, width, height);
                    assert!(frame.len() < height - STORY_LINES_MIN, "{width}x{height}: {frame:#?}");
                    for line in &frame {
                        assert!(columns(line) < width, "{width}x{height}: {line}");
                    }
                    for_you += frame.iter().filter(|line| line.starts_with("→ adj ")).count();
                }
            });
            assert!(for_you > 0 || height < 24, "{width}x{height}: nothing was asked of a person");
        }
    }

    /// However small the terminal is, something is said, and it fits.
    #[test]
    fn a_small_terminal_is_not_left_blank() {
        for (width, height) in [(20, 6), (10, 3), (35, 11)] {
            let mut out = Vec::new();
            let screen = Screen::new(&mut out, Paint::none(), true, false, "in a project".to_owned(), 0);
            watch(|world, at, _| {
                let frame = screen.frame(world, at, width, height);
                assert!(!frame.is_empty() && frame.len() < height, "{width}x{height}: {frame:#?}");
                assert!(frame[0].contains(" of "), "{frame:#?}");
                assert!(frame.iter().all(|line| columns(line) < width), "{frame:#?}");
            });
        }
    }

    #[test]
    fn names_that_do_not_fit_their_column_are_counted() {
        let names: Vec<String> = (1..=30).map(|number| format!("t-{number}")).collect();
        const BOARD_LINES: usize = 4;
        let lines = fill(&names, 8, BOARD_LINES);
        assert_eq!(lines.len(), BOARD_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("+24"));
        assert_eq!(fill(&names[..3], 8, BOARD_LINES), ["t-1 t-2", "t-3"]);
    }
}
