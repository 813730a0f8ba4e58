//! Text on a terminal: what people and agents wrote is shown as text and cannot move the cursor, and columns line up.

use super::terminal::{self, column, columns, cut, wrap};
use serde_json::Value;
use std::fmt::Write;

/// Control characters, and those that turn the direction of text around, as what they are: `\u{1b}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_harmless(letter) { shown.push(letter) } else { shown.extend(letter.escape_default()) }
    }
    shown
}

/// One line of code. A tab is what code is made of, and moves the cursor no further than spaces would.
pub fn visible_code(line: &str) -> String {
    line.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// The same for text of several lines: each is shown behind `indent`.
pub fn visible_lines(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}{}\n", visible(line))).collect()
}

/// The same with every character: also those at the ends of lines.
pub fn visible_whole(text: &str, indent: &str) -> String {
    text.split('\n').map(|line| format!("{indent}{}\n", visible(line))).collect()
}

fn is_harmless(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = matches!(letter, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    !letter.is_control() && !turns && !hides
}

/// One JSON document. What JSON would let through is escaped, so that printing it is as harmless as a table.
pub fn json(document: &Value) -> String {
    escaped(&document.to_string())
}

fn escaped(plain: &str) -> String {
    if plain.chars().all(is_harmless) {
        return plain.to_owned();
    }
    let mut shown = String::with_capacity(plain.len());
    for letter in plain.chars() {
        if is_harmless(letter) {
            shown.push(letter);
        } else {
            // Outside of strings there is nothing of the kind, so it is always within one.
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown
}

/// The same over several lines, for people to read.
pub fn json_lines(document: &Value) -> String {
    let Ok(plain) = serde_json::to_string_pretty(document) else { return json(document) };
    // Its own line breaks are outside of strings, where nothing needs to be escaped.
    plain.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Rows under a head, in columns as wide as they must be. The last column gets what the terminal has left, and is not
/// filled up.
pub struct Table {
    rows: Vec<Vec<String>>,
    wrap: bool,
}

/// A last column that has less room than this is left as it is: what is cut to a few letters says nothing.
const LAST_WIDTH_MIN: usize = 12;

impl Table {
    /// What does not fit is cut.
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|&name| name.to_owned()).collect()], wrap: false }
    }

    /// What does not fit goes on in the next line: for sentences, which say what to do at their end.
    pub fn wrapped(head: &[&str]) -> Table {
        Table { wrap: true, ..Table::new(head) }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell)).collect());
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
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&column(cell, *width));
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
                let _ = writeln!(text, "{}", (begin + cell).trim_end());
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
    let indent = columns(label);
    let lines = match terminal::size().map(|(width, _)| width.saturating_sub(indent)) {
        Some(width) if width >= LAST_WIDTH_MIN => wrap(text, width),
        _ => vec![text.to_owned()],
    };
    format!("{label}{}", lines.join(&format!("\n{:indent$}", "")))
}

/// A member as a cell: text as it is, nothing as `-`, lists joined.
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

/// Money where the price of some steps is not known: it is at least this, and that is said.
pub fn spent(usd: &Value, unpriced_steps: &Value) -> String {
    match unpriced_steps.as_u64().unwrap_or(0) {
        0 => dollars(usd),
        1 => format!("≥ {} (1 step of unknown price)", dollars(usd)),
        steps => format!("≥ {} ({steps} steps of unknown price)", dollars(usd)),
    }
}

/// The same where there is little room.
pub fn spent_short(usd: &Value, unpriced_steps: &Value) -> String {
    let at_least = if unpriced_steps.as_u64().unwrap_or(0) > 0 { "≥ " } else { "" };
    format!("{at_least}{}", dollars(usd))
}

pub fn dollars(value: &Value) -> String {
    format!("${:.2}", value.as_f64().unwrap_or(0.0))
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
    fn a_price_that_is_not_known_is_said_and_never_nothing() {
        assert_eq!(spent(&json!(0.5), &json!(0)), "$0.50");
        assert_eq!(spent(&json!(0.5), &json!(2)), "≥ $0.50 (2 steps of unknown price)");
        assert_eq!(spent(&json!(0), &json!(1)), "≥ $0.00 (1 step of unknown price)");
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
