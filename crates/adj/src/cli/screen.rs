//! The live view of a fleet: one frame of workers, board and last lines, rewritten in place.

use super::story::{self, COLUMNS, Line, Story, column_of};
use super::terminal::{self, Paint, column, cut, dollars};
use kernel::World;
use kernel::event::Event;
use machines::{Wire, worker};
use std::io::{self, Write};

const WIDTH_MAX: usize = 110;
const LOG_LINES_MIN: usize = 4;
const LOG_LINES_MAX: usize = 12;
/// Workers that are shown one by one; of more only the busy ones are.
const WORKERS_MAX: usize = 12;
/// Lines of task names in the board.
const BOARD_LINES_MAX: usize = 4;
const LINES_KEPT: usize = 200;

/// What is told, and how: a frame on a terminal, plain lines elsewhere.
pub struct Screen<'o> {
    out: &'o mut dyn Write,
    paint: Paint,
    /// The output is a terminal that can be written over.
    pub live: bool,
    quiet: bool,
    begun: i64,
    heading: String,
    pub story: Story,
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
        if !self.live {
            if !self.quiet {
                writeln!(self.out, "{}", line.print(self.paint, usize::MAX))?;
            }
            return self.out.flush();
        }
        self.lines.push(line);
        if self.lines.len() > LINES_KEPT {
            self.lines.remove(0);
        }
        Ok(())
    }

    /// Draws the frame anew, over the one that stands there.
    pub fn draw(&mut self, world: &World, now: i64) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let frame = self.frame(world, now - self.begun, width.min(WIDTH_MAX), height);
        // In one write and as one update, so that no half of a frame is seen.
        let up = if self.height > 0 { format!("\x1b[{}A", self.height) } else { String::new() };
        // What the last frame had and this one has not is wiped.
        let rest = self.height.saturating_sub(frame.len());
        let wipe: String = (0..rest).map(|_| "\r\x1b[K\n").collect();
        let back = if rest > 0 { format!("\x1b[{rest}A") } else { String::new() };
        self.height = frame.len();
        let body: String = frame.iter().map(|line| format!("\r{line}\x1b[K\n")).collect();
        self.out.write_all(format!("\x1b[?2026h{up}{body}{wipe}{back}\x1b[?2026l").as_bytes())?;
        self.out.flush()
    }

    fn frame(&self, world: &World, elapsed: i64, width: usize, height: usize) -> Vec<String> {
        let paint = self.paint;
        // One column is left free: a terminal that is made narrower must not wrap a line.
        let width = width.saturating_sub(1);
        let unpriced = unpriced(world.spend.unpriced);
        let facts = format!(
            "{}   {} of {} done   {}{unpriced}   Ctrl-C stops",
            story::clock(elapsed),
            world.tasks.values().filter(|task| column_of(world, task) == COLUMNS.len() - 1).count(),
            world.tasks.len(),
            dollars(world.spend.cost),
        );
        let mut frame = vec![
            format!("{} {}", paint.bold("adjutant"), cut(&self.heading, width.saturating_sub(9))),
            paint.dim(cut(&facts, width)),
            String::new(),
            paint.dim(cut("  WORKER  STATE    TASK", width)),
        ];
        let many = world.workers.len() > WORKERS_MAX;
        let busy = world.workers.values().filter(|worker| !many || worker.machine.task.is_some());
        frame.extend(busy.take(WORKERS_MAX).map(|worker| self.worker(world, worker, width)));
        frame.push(String::new());
        frame.extend(self.board(world, width));
        frame.push(String::new());
        let room = height.saturating_sub(frame.len() + 1).clamp(LOG_LINES_MIN, LOG_LINES_MAX);
        let from = self.lines.len().saturating_sub(room);
        frame.extend(self.lines[from..].iter().map(|line| line.print(paint, width)));
        frame.truncate(height.saturating_sub(1).max(1));
        frame
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
    fn board(&self, world: &World, width: usize) -> Vec<String> {
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
        let rows: Vec<Vec<String>> = there.iter().map(|tasks| fill(tasks, cell.saturating_sub(1))).collect();
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
fn fill(names: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let fits = lines.last().is_some_and(|line| line.chars().count() + 1 + name.chars().count() <= width);
        if fits {
            let line = lines.last_mut().expect("there is a last one");
            line.push(' ');
            line.push_str(name);
        } else if lines.len() == BOARD_LINES_MAX {
            // The last line makes room, and what stood there counts too.
            let left = names.len() - index + lines[BOARD_LINES_MAX - 1].split(' ').count();
            lines[BOARD_LINES_MAX - 1] = cut(&format!("and {left} more"), width);
            break;
        } else {
            lines.push(cut(name, width));
        }
    }
    lines
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
            let mut seen = 0;
            watch(|world, at, event| {
                screen.tell(world, at, event).unwrap();
                seen += 1;
                if seen % 50 == 0 {
                    let frame = screen.frame(world, at, width, height);
                    assert!(frame.len() < height, "{width}x{height}: {frame:#?}");
                    for line in &frame {
                        assert!(line.chars().count() < width, "{width}x{height}: {line}");
                    }
                }
            });
        }
    }

    #[test]
    fn names_that_do_not_fit_their_column_are_counted() {
        let names: Vec<String> = (1..=30).map(|number| format!("t-{number}")).collect();
        let lines = fill(&names, 8);
        assert_eq!(lines.len(), BOARD_LINES_MAX);
        assert_eq!(lines.last().map(String::as_str), Some("and 24 …"));
        assert_eq!(fill(&names[..3], 8), ["t-1 t-2", "t-3"]);
    }
}
