//! The live view of a fleet: what happened scrolls by, and under it stands a frame of workers, board and what waits for
//! a person, rewritten in place.

use super::story::{self, COLUMNS, Line, Story, column_of};
use super::terminal::{self, Paint, column, columns, cut, dollars};
use kernel::World;
use kernel::event::Event;
use machines::task::Status;
use machines::{Wire, worker};
use std::io::{self, Write};

const WIDTH_MAX: usize = 110;
/// Lines of the terminal that the frame leaves to what happened.
const STORY_LINES_MIN: usize = 4;
/// Workers that are shown one by one; of more only the busy ones are.
const WORKERS_MAX: usize = 12;
/// Lines of task names in the board, and on a terminal with few lines.
const BOARD_LINES_MAX: usize = 4;
const BOARD_LINES_FEW: usize = 2;
/// A terminal with fewer lines has few.
const MANY_LINES: usize = 30;
/// Things for a person that are shown one by one; the rest is counted.
const YOU_LINES_MAX: usize = 4;

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
    /// The height of the frame that stands there.
    height: usize,
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
            height: 0,
        }
    }

    /// Takes what happened. Plain lines are printed at once.
    pub fn tell(&mut self, world: &World, at: i64, event: &Event) -> io::Result<()> {
        match self.story.words(world, event) {
            Some((tone, text)) => self.line(Line { at: at - self.begun, tone, text }),
            None => Ok(()),
        }
    }

    /// Says something that the log does not hold.
    pub fn line(&mut self, line: Line) -> io::Result<()> {
        if self.live {
            self.lines.push(line);
            return Ok(());
        }
        if !self.quiet {
            writeln!(self.out, "{}", line.print(self.paint, usize::MAX))?;
        }
        self.out.flush()
    }

    /// Ctrl-C was pressed, or the like.
    pub fn stopping(&mut self) {
        self.interrupt = "stopping; Ctrl-C again ends the agents now";
    }

    /// Draws the frame anew, over the one that stands there and under what was told since.
    pub fn draw(&mut self, world: &World, now: i64) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let frame = self.frame(world, now - self.begun, width.min(WIDTH_MAX), height);
        self.put(&frame)
    }

    /// Takes the frame away. What was told stays.
    pub fn close(&mut self) -> io::Result<()> {
        if self.live { self.put(&[]) } else { Ok(()) }
    }

    /// In one write and as one update, so that no half of a frame is seen.
    fn put(&mut self, frame: &[String]) -> io::Result<()> {
        let up = if self.height > 0 { format!("\x1b[{}A", self.height) } else { String::new() };
        let width = terminal::size().map_or(usize::MAX, |(width, _)| width);
        let told: String =
            self.lines.iter().map(|line| format!("{}\n", line.print(self.paint, width))).collect();
        let told = told.lines();
        let body: String =
            told.chain(frame.iter().map(String::as_str)).map(|line| format!("\r{line}\x1b[K\n")).collect();
        self.lines.clear();
        self.height = frame.len();
        // At last whatever stands below is wiped: the rest of a higher frame, and the echo of a key.
        self.out.write_all(format!("\x1b[?2026h{up}{body}\r\x1b[J\x1b[?2026l").as_bytes())?;
        self.out.flush()
    }

    fn frame(&self, world: &World, elapsed: i64, width: usize, height: usize) -> Vec<String> {
        let paint = self.paint;
        // One column is left free: a terminal that is made narrower must not wrap a line.
        let width = width.saturating_sub(1);
        let board = if height < MANY_LINES { BOARD_LINES_FEW } else { BOARD_LINES_MAX };
        let height = height.saturating_sub(1 + STORY_LINES_MIN).max(1);
        let (done, all) = done_of_all(world);
        let unpriced = unpriced(world.spend.unpriced);
        let facts = format!(
            "{}   {done} of {all} done   {}{unpriced}   {}",
            story::clock(elapsed),
            dollars(world.spend.cost),
            self.interrupt,
        );
        let mut frame = vec![
            String::new(),
            format!("{} {}", paint.bold("adjutant"), cut(&self.heading, width.saturating_sub(9))),
            paint.dim(cut(&facts, width)),
            String::new(),
        ];
        let mut rest = vec![String::new()];
        rest.extend(self.board(world, width, board));
        rest.extend(self.for_you(world, width));
        // What a person must do is never pushed off by workers, of whom there may be many.
        frame.extend(self.workers(world, width, height.saturating_sub(frame.len() + rest.len())));
        frame.extend(rest);
        frame.truncate(height);
        frame
    }

    /// The workers, in at most so many lines.
    fn workers(&self, world: &World, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.paint.dim(cut("  WORKER  STATE    TASK", width))];
        let room = WORKERS_MAX.min(height.saturating_sub(2)).max(1);
        let many = world.workers.len() > room;
        let shown = world.workers.values().filter(|worker| !many || worker.machine.task.is_some()).take(room);
        lines.extend(shown.map(|worker| self.worker(world, worker, width)));
        match world.workers.len() + 1 - lines.len() {
            0 => {}
            more => lines.push(self.paint.dim(cut(&format!("  and {more} more: adj ps"), width))),
        }
        lines
    }

    /// What waits for a person, with the command that answers it first: that must not be cut off.
    fn for_you(&self, world: &World, width: usize) -> Vec<String> {
        let all = story::for_you(world);
        if all.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![String::new(), self.paint.bold("FOR YOU")];
        let shown = if all.len() > YOU_LINES_MAX { YOU_LINES_MAX - 1 } else { all.len() };
        let wide = all[..shown].iter().map(|you| you.command.len()).max().unwrap_or(0);
        for you in &all[..shown] {
            let what = cut(&super::text::visible(&you.what), width.saturating_sub(wide + 4));
            lines.push(format!(
                "{} {}  {what}",
                self.paint.cyan("→"),
                self.paint.bold(column(&you.command, wide))
            ));
        }
        if shown < all.len() {
            lines.push(cut(&format!("  and {} more: adj approvals, adj board", all.len() - shown), width));
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    fn worker(&self, world: &World, worker: &kernel::world::Worker, width: usize) -> String {
        use worker::State;
        let (paint, state) = (self.paint, worker.machine.status);
        let symbol = worker::symbol(state);
        let doing = story::doing(world, worker);
        let what = worker.machine.task.as_ref().map_or(String::new(), |id| {
            let room = width.saturating_sub(19 + 24).clamp(8, 40);
            let title = story::title(world, id.as_str());
            format!(
                "{} {doing}",
                column(&super::text::visible(&format!("{id} {title}")), room.saturating_sub(1))
            )
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
    fn board(&self, world: &World, width: usize, lines_max: usize) -> Vec<String> {
        let cell = (width / COLUMNS.len()).max(4);
        let mut there: Vec<Vec<String>> = vec![Vec::new(); COLUMNS.len()];
        for task in world.tasks.values() {
            there[column_of(world, task)].push(task.id.to_string());
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
    (count(Status::Done), world.tasks.len() - count(Status::Canceled))
}

/// What stands behind a sum that is not the whole of it.
pub fn unpriced(steps: u32) -> String {
    match steps {
        0 => String::new(),
        1 => " at least (1 step of unknown price)".to_owned(),
        steps => format!(" at least ({steps} steps of unknown price)"),
    }
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
    use runtime::sim::{self, Fault, Plan, What};

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
        for (width, height) in [(40, 20), (60, 24), (80, 24), (110, 50)] {
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

    #[test]
    fn names_that_do_not_fit_their_column_are_counted() {
        let names: Vec<String> = (1..=30).map(|number| format!("t-{number}")).collect();
        let lines = fill(&names, 8, BOARD_LINES_MAX);
        assert_eq!(lines.len(), BOARD_LINES_MAX);
        assert_eq!(lines.last().map(String::as_str), Some("+24"));
        assert_eq!(fill(&names[..3], 8, BOARD_LINES_MAX), ["t-1 t-2", "t-3"]);
    }
}
