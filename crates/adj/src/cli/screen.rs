//! The live view of a fleet, drawn: what happened scrolls by, and under it stands a frame of workers, board and what waits
//! for a person, rewritten in place. What is shown is in `live.rs`.

use super::live::{LiveView, WorkerRow, WorkerTask, heading};
use super::selection::{self, Selection, SelectionView};
use super::story_lines;
use super::terminal::{self, Paint, column, columns, cut};
use super::text::visible;
use api::story::Line;
use api::types::overview::{BoardColumn, Column, ForYou, Overview};
use machines::Wire;
use machines::worker::State;
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
    /// Told since the last frame, and not on the terminal yet.
    lines: Vec<Line>,
    /// The columns of each line of the frame that stands there.
    drawn: Vec<usize>,
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
            lines: Vec::new(),
            drawn: Vec::new(),
            selection: None,
        }
    }

    /// Takes a line of what happened. Plain lines are printed at once.
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
    pub fn draw(&mut self, overview: &Overview) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let view = LiveView::new(overview, self.begun);
        if let Some(selection) = &mut self.selection {
            selection.keep_up(&view.for_you.iter().map(|you| &you.waiting).collect::<Vec<_>>());
        }
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let frame = self.frame(&view, width, height);
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

    pub(super) fn frame(&self, view: &LiveView, width: usize, height: usize) -> Vec<String> {
        let paint = self.paint;
        // One column is left free: a terminal that is made narrower must not wrap a line.
        let width = width.saturating_sub(1).max(1);
        if width < SMALL.0 || height < SMALL.1 {
            return self.small(view, width, height);
        }
        let many = height >= MANY_LINES;
        let board = if many { height / 8 } else { BOARD_LINES_FEW };
        let you = if many { height / 6 } else { YOU_LINES_FEW };
        let height = height.saturating_sub(1 + STORY_LINES_MIN).max(1);
        let facts = format!("{}   {}", view.facts, self.interrupt);
        let mut frame = vec![
            String::new(),
            format!("{} {}", paint.bold("adjutant"), cut(&self.heading, width.saturating_sub(9))),
            paint.dim(cut(&facts, width)),
            String::new(),
        ];
        let under_way = view.under_way.as_ref().map(|text| paint.yellow(cut(&visible(text), width)));
        let mut rest: Vec<String> = under_way.into_iter().collect();
        rest.push(String::new());
        rest.extend(self.board(&view.columns, width, board));
        rest.extend(self.for_you(&view.for_you, width, you));
        // What a person must do is never pushed off by workers, of whom there may be many.
        frame.extend(self.workers(&view.workers, width, height.saturating_sub(frame.len() + rest.len())));
        frame.extend(rest);
        frame.truncate(height);
        frame
    }

    /// For a terminal of a few lines: how far it is, what waits for a person, who works.
    fn small(&self, view: &LiveView, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.paint.bold(cut(&view.brief, width))];
        lines.extend(view.for_you.iter().map(|you| self.paint.cyan(cut(&you.command, width))));
        let busy = view.workers.iter().filter_map(|worker| Some((worker, worker.task.as_ref()?)));
        lines.extend(
            busy.map(|(worker, task)| cut(&format!("{} {} {}", worker.name, task.id, worker.doing), width)),
        );
        lines.truncate(height.saturating_sub(2).max(1));
        lines
    }

    /// The workers, in at most so many lines.
    fn workers(&self, workers: &[WorkerRow], width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.paint.dim(cut("  WORKER  STATE    TASK", width))];
        let room = WORKERS_FEW.max(height / 2).min(height.saturating_sub(2)).max(1);
        let many = workers.len() > room;
        let shown = workers.iter().filter(|worker| !many || worker.task.is_some()).take(room);
        lines.extend(shown.map(|worker| self.worker(worker, width)));
        match workers.len() + 1 - lines.len() {
            0 => {}
            more => lines.push(self.paint.dim(cut(&format!("  and {more} more: adj ps"), width))),
        }
        lines
    }

    /// What waits for a person, with the command that answers it first: that must not be cut off.
    fn for_you(&self, all: &[ForYou], width: usize, lines_max: usize) -> Vec<String> {
        if all.is_empty() {
            return Vec::new();
        }
        let items: Vec<_> = all.iter().map(|you| &you.waiting).collect();
        let chosen = self.selection.as_ref().and_then(|selection| selection.position(&items));
        let mut lines = vec![String::new(), self.heading_for_you(width)];
        match (&self.selection, chosen) {
            (Some(selection), Some(place)) if selection.shown() != SelectionView::List => {
                lines.extend(self.opened(&all[place], selection, width));
            }
            _ => lines.extend(self.listed(all, chosen, width, lines_max)),
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
            let what = cut(&visible(&you.what), width.saturating_sub(wide + 4));
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
        let what = visible(&you.what);
        let mut lines = vec![format!("{} {}", self.paint.cyan("▸"), cut(&what, width.saturating_sub(2)))];
        if let SelectionView::Writing(text) = selection.shown() {
            // Its end is what is being written.
            let room = width.saturating_sub(6);
            let text = visible(text);
            let over = columns(&text).saturating_sub(room);
            let end: String = text.chars().skip(over).collect();
            lines.push(format!("  {} {}▏", self.paint.bold(">"), cut(&end, room)));
            return lines;
        }
        let commands =
            selection::keys(&you.waiting).map(|(_, offered)| fleet::command_line::command(&offered.choice));
        let wide = commands.map(|command| command.len()).max().unwrap_or(0).min(width / 2);
        for (key, offered) in selection::keys(&you.waiting) {
            let command = column(&fleet::command_line::command(&offered.choice), wide);
            let does = cut(&offered.text, width.saturating_sub(wide + 6));
            lines.push(format!("  {} {command}  {does}", self.paint.bold(key)));
        }
        lines
    }

    fn worker(&self, worker: &WorkerRow, width: usize) -> String {
        let WorkerRow { name, state, symbol, task, doing, waits } = worker;
        let paint = self.paint;
        // The words of `adj ps`: what a worker that is done waits for stands behind its task.
        let what = task.as_ref().map_or(String::new(), |WorkerTask { id, title }| {
            let room = (width.saturating_sub(19) / 2).clamp(8, 60);
            format!("{} {doing}", column(&visible(&format!("{id} {title}")), room.saturating_sub(1)))
        });
        let text = format!("{name:7} {:8} ", state.name());
        let rest = cut(&format!("{text}{what}"), width.saturating_sub(2));
        match state {
            State::Idle => paint.dim(format!("{symbol} {rest}")),
            State::Ready => format!("{} {rest}", paint.cyan(symbol)),
            State::Working if *waits => format!("{} {rest}", paint.yellow(symbol)),
            State::Working => format!("{} {rest}", paint.green(symbol)),
            State::Done => format!("{} {rest}", paint.cyan(symbol)),
            _ => format!("{} {rest}", paint.red(symbol)),
        }
    }

    /// The columns that a task goes through, each with those that are there.
    fn board(&self, board: &[BoardColumn], width: usize, lines_max: usize) -> Vec<String> {
        let cell = (width / board.len().max(1)).max(4);
        let named = |it: &BoardColumn| column(&format!("{} {}", heading(it.column), it.tasks.len()), cell);
        let headings: String = board.iter().map(named).collect();
        let mut lines = vec![self.paint.dim(headings.trim_end())];
        let rows: Vec<(Column, Vec<String>)> =
            board.iter().map(|it| (it.column, fill(&it.tasks, cell.saturating_sub(1), lines_max))).collect();
        let height = rows.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
        for row in 0..height {
            let cell_of = |(of, rows): &(Column, Vec<String>)| {
                let text = column(rows.get(row).map_or("", String::as_str), cell);
                match of {
                    Column::Wait => self.paint.dim(text),
                    Column::Work => self.paint.cyan(text),
                    Column::Review | Column::Land => self.paint.yellow(text),
                    Column::You => self.paint.red(text),
                    Column::Done => self.paint.green(text),
                }
            };
            let cells: String = rows.iter().map(cell_of).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use api::overview::{self, Beside};
    use api::story::Story;
    use kernel::World;
    use kernel::event::Event;
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

    fn seen(world: &World, at: i64) -> LiveView {
        LiveView::new(&overview::of(world, &Beside::default(), at), 0)
    }

    /// A frame that is rewritten in place must fit the terminal, and no line of it may wrap.
    #[test]
    fn every_frame_keeps_to_its_columns_and_lines() {
        for (width, height) in [(40, 20), (60, 24), (80, 24), (110, 50), (200, 50)] {
            let mut out = Vec::new();
            let mut screen = Screen::new(&mut out, Paint::none(), true, false, "in a project".to_owned(), 0);
            let (mut story, mut moments, mut for_you) = (Story::default(), 0, 0);
            watch(|world, at, event| {
                story.lines(world, at, event).into_iter().for_each(|line| screen.line(line).unwrap());
                moments += 1;
                if moments % 50 == 0 {
                    let frame = screen.frame(&seen(world, at), width, height);
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
            let mut moments = 0;
            watch(|world, at, _| {
                moments += 1;
                if moments % 10 != 0 {
                    return;
                }
                let frame = screen.frame(&seen(world, at), width, height);
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
