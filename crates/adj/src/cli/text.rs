//! Text on a terminal: what people and agents wrote is shown as text and cannot move the cursor, and columns line up.

use super::terminal::{self, Colour, Paint, column, columns, cut, rounded_dollars as micros, wrap};
pub use api::format::{json, json_lines};
use api::types::cost::Spend as Spent;
use api::types::worker::WorkerWhole;
use api::usd;
pub use base::visible::{visible, visible_code};
use kernel::budget::Unpriced;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// `visible` for text of several lines: each is shown behind `indent`.
pub fn visible_lines(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}{}\n", visible(line))).collect()
}

/// The same with every character: also those at the ends of lines.
pub fn visible_whole(text: &str, indent: &str) -> String {
    text.split('\n').map(|line| format!("{indent}{}\n", visible(line))).collect()
}

/// Rows under a head, in columns as wide as they must be. The last column gets what the terminal has left, and is not
/// filled up.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Cells that mean something by their colour, by row and column.
    colours: Vec<(usize, usize, Colour)>,
    paint: Paint,
    wrap: bool,
}

/// A last column that has less room than this is left as it is: what is cut to a few letters says nothing.
const LAST_WIDTH_MIN: usize = 12;

impl Table {
    /// What does not fit is cut.
    pub fn new(head: &[&str]) -> Table {
        let head = head.iter().map(|&name| name.to_owned()).collect();
        Table { rows: vec![head], colours: Vec::new(), paint: Paint::none(), wrap: false }
    }

    /// What does not fit goes on in the next line: for sentences, which say what to do at their end.
    pub fn wrapped(head: &[&str]) -> Table {
        Table { wrap: true, ..Table::new(head) }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell)).collect());
    }

    /// A column of the last row has this colour, where there are colours.
    pub fn coloured(&mut self, column: usize, colour: Colour, paint: Paint) {
        self.paint = paint;
        self.colours.push((self.rows.len() - 1, column, colour));
    }

    fn shown(&self, row: usize, column: usize, text: &str) -> String {
        let meant = self.colours.iter().find(|(at, of, _)| (*at, *of) == (row, column));
        meant.map_or_else(|| text.to_owned(), |(_, _, colour)| self.paint.as_meant(*colour, text))
    }

    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// For a terminal of that many columns; without one, every line is whole.
    fn print(&self, terminal: Option<usize>) -> String {
        let last = self.rows.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..last).map(width).collect();
        let before: usize = widths.iter().map(|width| width + 2).sum();
        let room = terminal.map(|terminal| terminal.saturating_sub(before));
        let room = room.filter(|room| *room >= LAST_WIDTH_MIN);
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line.push_str(&self.shown(number, index, &column(cell, *width)));
                line.push_str("  ");
            }
            let cell = row.get(last).map(String::as_str).unwrap_or_default();
            let lines = match room {
                Some(room) if self.wrap => wrap(cell, room),
                Some(room) => vec![cut(cell, room)],
                None => vec![cell.to_owned()],
            };
            for (index, cell) in lines.iter().enumerate() {
                let begin = if index == 0 { line.clone() } else { " ".repeat(before) };
                let _ = writeln!(text, "{}", (begin + &self.shown(number, last, cell)).trim_end());
            }
        }
        text
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.print(terminal::size().map(|(width, _)| width)))
    }
}

/// A line that fits the terminal where there is one.
pub fn fitting(line: &str) -> String {
    terminal::size().map_or_else(|| line.to_owned(), |(width, _)| cut(line, width))
}

/// `text` behind `label`, in as many lines as the terminal needs; each further one is under the first.
pub fn hanging(label: &str, text: &str) -> String {
    let indent = columns(&terminal::plain(label));
    let lines = match terminal::size().map(|(width, _)| width.saturating_sub(indent)) {
        Some(width) if width >= LAST_WIDTH_MIN => wrap(text, width),
        _ => vec![text.to_owned()],
    };
    format!("{label}{}", lines.join(&format!("\n{:indent$}", "")))
}

/// A cell: nothing is shown as `-`.
pub fn dash(what: Option<impl ToString>) -> String {
    what.map_or_else(|| "-".to_owned(), |what| what.to_string())
}

/// The same of a list, joined.
pub fn joined(list: &[impl ToString]) -> String {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    dash((!list.is_empty()).then(|| list.join(",")))
}

/// The same of what a record holds.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "-".to_owned(),
        Value::Array(list) => list.iter().map(cell).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// How long ago a time of the API was, in its largest unit: `40s`, `12m`, `3h`, `2d`.
pub fn age(time: &str) -> String {
    let Ok(then) = time.parse::<jiff::Timestamp>() else { return "-".to_owned() };
    let seconds = (jiff::Timestamp::now().as_second() - then.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A path, for people.
pub fn shown(path: &std::path::Path) -> String {
    visible(&path.display().to_string())
}

/// How many seconds a time of the API is away; what is past is less than nothing.
pub fn seconds_until(time: &str) -> Option<i64> {
    let then = time.parse::<jiff::Timestamp>().ok()?;
    Some(then.as_second() - jiff::Timestamp::now().as_second())
}

/// A time of the API as the time of day here.
pub fn clock_of(time: &str) -> Option<String> {
    Some(terminal::clock(time.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
}

/// What was spent, and what is known of steps that named no price: those are estimated by their model's other steps, or
/// something is set aside for them. Neither is a cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Money {
    pub cost: u64,
    pub unpriced: Unpriced,
}

/// The same as a document has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    usd: f64,
    unpriced_steps: u32,
    estimated_steps: u32,
    estimated_usd: f64,
    set_aside_usd: f64,
}

impl Money {
    /// As tasks, runs and sums have it.
    pub fn of(spent: &Spent) -> Money {
        let Spent { usd, unpriced_steps, estimated_steps, estimated_usd, set_aside_usd, .. } = spent;
        Money::read(*usd, *unpriced_steps, *estimated_steps, *estimated_usd, *set_aside_usd)
    }

    pub fn of_worker(worker: &WorkerWhole) -> Money {
        let WorkerWhole {
            total_cost_usd,
            unpriced_steps,
            estimated_steps,
            estimated_cost_usd,
            set_aside_usd,
            ..
        } = worker;
        Money::read(*total_cost_usd, *unpriced_steps, *estimated_steps, *estimated_cost_usd, *set_aside_usd)
    }

    fn read(
        usd: f64,
        unpriced_steps: u32,
        estimated_steps: u32,
        estimated_usd: f64,
        set_aside: f64,
    ) -> Money {
        let amount = |usd: f64| (usd * 1e6).round() as u64;
        Money {
            cost: amount(usd),
            unpriced: Unpriced {
                estimated_steps,
                estimated: amount(estimated_usd),
                unknown_steps: unpriced_steps.saturating_sub(estimated_steps),
                held: amount(set_aside),
            },
        }
    }

    /// What came to it since `before`.
    pub fn since(&self, before: &Money) -> Money {
        let (now, then) = (&self.unpriced, &before.unpriced);
        Money {
            cost: self.cost.saturating_sub(before.cost),
            unpriced: Unpriced {
                estimated_steps: now.estimated_steps.saturating_sub(then.estimated_steps),
                estimated: now.estimated.saturating_sub(then.estimated),
                unknown_steps: now.unknown_steps.saturating_sub(then.unknown_steps),
                held: now.held.saturating_sub(then.held),
            },
        }
    }

    pub fn document(&self) -> Sum {
        let Unpriced { estimated_steps, estimated, unknown_steps, held } = self.unpriced;
        Sum {
            usd: usd(self.cost),
            unpriced_steps: estimated_steps + unknown_steps,
            estimated_steps,
            estimated_usd: usd(estimated),
            set_aside_usd: usd(held),
        }
    }

    /// `~$0.07 (1 step estimated) + 2 steps of unknown price ($1.00 set aside)`.
    pub fn words(&self) -> String {
        let Unpriced { estimated_steps, estimated, unknown_steps, held } = self.unpriced;
        let steps = |count: u32| if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
        let known = match estimated_steps {
            0 => micros(self.cost),
            count => format!("~{} ({} estimated)", micros(self.cost + estimated), steps(count)),
        };
        match unknown_steps {
            0 => known,
            count if self.cost == 0 && estimated_steps == 0 => {
                format!("unknown ({}, {} set aside)", steps(count), micros(held))
            }
            count => format!("{known} + {} of unknown price ({} set aside)", steps(count), micros(held)),
        }
    }

    /// The same of one step.
    pub fn of_one(&self) -> String {
        let Unpriced { estimated_steps, estimated, unknown_steps, held } = self.unpriced;
        match (estimated_steps, unknown_steps) {
            (0, 0) => micros(self.cost),
            (0, _) => format!("unknown ({} set aside)", micros(held)),
            _ => format!("~{} estimated", micros(self.cost + estimated)),
        }
    }

    /// The same where there is little room.
    pub fn short(&self) -> String {
        let Unpriced { estimated_steps, estimated, unknown_steps, .. } = self.unpriced;
        match (estimated_steps, unknown_steps) {
            (0, 0) => micros(self.cost),
            (0, _) if self.cost == 0 => "unknown".to_owned(),
            (0, _) => format!("{} + ?", micros(self.cost)),
            (_, 0) => format!("~{}", micros(self.cost + estimated)),
            _ => format!("~{} + ?", micros(self.cost + estimated)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_could_move_the_cursor_or_turn_text_around_is_made_visible() {
        assert_eq!(visible("a\u{1b}[2Jb\rc\u{9b}d\u{202e}e"), "a\\u{1b}[2Jb\\rc\\u{9b}d\\u{202e}e");
        assert_eq!(visible("naïve 日本 ✓"), "naïve 日本 ✓");
        let document = json!({"title": "a\u{1b}b\u{9b}c\u{202e}"});
        assert_eq!(json(&document), r#"{"title":"a\u001bb\u009bc\u202e"}"#);
        assert_eq!(serde_json::from_str::<Value>(&json(&document)).unwrap(), document);
    }

    #[test]
    fn a_price_that_is_not_known_is_said_and_never_made_up() {
        let money = |usd: f64, estimated: u32, estimated_usd: f64, unknown: u32, held: f64| {
            Money::of(&Spent {
                usd,
                unpriced_steps: estimated + unknown,
                estimated_steps: estimated,
                estimated_usd,
                set_aside_usd: held,
                ..Spent::default()
            })
        };
        let words = [
            (money(0.5, 0, 0.0, 0, 0.0), "$0.50", "$0.50", "$0.50"),
            (money(0.04, 1, 0.03, 0, 0.0), "~$0.07 (1 step estimated)", "~$0.07", "~$0.07 estimated"),
            (
                money(0.0, 0, 0.0, 2, 1.0),
                "unknown (2 steps, $1.00 set aside)",
                "unknown",
                "unknown ($1.00 set aside)",
            ),
            (
                money(0.04, 0, 0.0, 2, 1.0),
                "$0.04 + 2 steps of unknown price ($1.00 set aside)",
                "$0.04 + ?",
                "unknown ($1.00 set aside)",
            ),
            (
                money(0.04, 1, 0.03, 1, 0.5),
                "~$0.07 (1 step estimated) + 1 step of unknown price ($0.50 set aside)",
                "~$0.07 + ?",
                "~$0.07 estimated",
            ),
        ];
        for (money, long, short, one) in words {
            assert_eq!([money.words(), money.short(), money.of_one()], [long, short, one]);
        }
    }

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut table = Table::new(&["ID", "TITLE"]);
        table.row(["t-1".to_owned(), "x\ny".to_owned()]);
        table.row(["c-1234".to_owned(), String::new()]);
        assert_eq!(table.print(None), "ID      TITLE\nt-1     x\\ny\nc-1234\n");
    }

    #[test]
    fn the_last_column_keeps_to_the_terminal() {
        let mut table = Table::new(&["ID", "TITLE"]);
        table.row(["t-1".to_owned(), "paint the door and the wall".to_owned()]);
        assert_eq!(table.print(Some(20)), "ID   TITLE\nt-1  paint the door…\n");
        assert_eq!(table.print(Some(10)), table.print(None), "too narrow to say anything");
        table.wrap = true;
        assert_eq!(table.print(Some(20)), "ID   TITLE\nt-1  paint the door\n     and the wall\n");
    }
}
