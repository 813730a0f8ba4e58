//! The terminal: whether there is one, how large it is, and the few codes that we send it.

use super::Globals;
pub use api::format::{clock, day_and_clock, duration, rounded_dollars, thousands, zone};
use std::fmt::Display;

/// Colours, or none where nobody wants or sees them.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

/// What a text means, where colour says it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Dim,
    Bold,
    Good,
    Waits,
    Busy,
    Bad,
}

impl Colour {
    /// Of a task's status, or of a worker's.
    pub fn of_status(status: &str) -> Colour {
        match status {
            "DONE" => Colour::Good,
            "BLOCKED" | "stuck" => Colour::Bad,
            "REVIEW" | "NEEDS_APPROVAL" => Colour::Waits,
            "IN_PROGRESS" | "ready" | "working" | "done" => Colour::Busy,
            "CANCELED" | "idle" => Colour::Dim,
            _ => Colour::Plain,
        }
    }
}

impl Paint {
    /// For standard output.
    pub fn stdout(globals: &Globals) -> Self {
        use std::io::IsTerminal;
        Self::new(globals, std::io::stdout().is_terminal())
    }

    /// For output that goes to a terminal, or does not.
    pub fn new(globals: &Globals, terminal: bool) -> Self {
        Self { on: terminal && !globals.no_color && !dumb() }
    }

    pub fn none() -> Self {
        Self { on: false }
    }

    pub fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }

    pub fn red(self, text: impl Display) -> String {
        self.with("31", text)
    }

    pub fn green(self, text: impl Display) -> String {
        self.with("32", text)
    }

    pub fn yellow(self, text: impl Display) -> String {
        self.with("33", text)
    }

    pub fn cyan(self, text: impl Display) -> String {
        self.with("36", text)
    }

    /// A name always has the same colour.
    pub fn by_name(self, name: &str, text: impl Display) -> String {
        const CODES: [&str; 9] = ["36", "32", "33", "35", "34", "96", "92", "93", "95"];
        let sum =
            name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        self.with(CODES[sum % CODES.len()], text)
    }

    pub fn as_meant(self, colour: Colour, text: impl Display) -> String {
        match colour {
            Colour::Plain => text.to_string(),
            Colour::Dim => self.dim(text),
            Colour::Bold => self.bold(text),
            Colour::Good => self.green(text),
            Colour::Waits => self.yellow(text),
            Colour::Busy => self.cyan(text),
            Colour::Bad => self.red(text),
        }
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// A terminal that understands no codes at all.
pub fn dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Columns and lines of standard output, where it is a terminal.
pub fn size() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some((usize::from(width.0), usize::from(height.0)))
}

/// The columns that a terminal gives to a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(wide).sum()
}

fn wide(letter: char) -> usize {
    unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0)
}

/// `text` without the codes that colour it.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut code = false;
    for letter in text.chars() {
        match letter {
            '\u{1b}' => code = true,
            'm' if code => code = false,
            letter if !code => plain.push(letter),
            _ => {}
        }
    }
    plain
}

/// `text` in at most `width` columns.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let fits = wide(*letter) <= room;
        room = room.saturating_sub(wide(*letter));
        fits
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// `text` in exactly `width` columns.
pub fn column(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let rest = width.saturating_sub(columns(&text));
    text + &" ".repeat(rest)
}

/// `text` in lines of at most `width` columns, broken between words.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_money_and_numbers_read_as_people_write_them() {
        assert_eq!(
            [59_999, 61_000, 3_661_000, 90_000_000].map(duration),
            ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]
        );
        assert_eq!([0, 1_230_000, 12_009_999].map(rounded_dollars), ["$0.00", "$1.23", "$12.01"]);
        assert_eq!([7, 1_000, 1_234_567].map(thousands), ["7", "1,000", "1,234,567"]);
    }

    #[test]
    fn text_keeps_to_its_columns() {
        assert_eq!((cut("landing", 4), column("t1", 4)), ("lan…".to_owned(), "t1  ".to_owned()));
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!((cut("日本語", 5), column("日本", 5)), ("日本…".to_owned(), "日本 ".to_owned()));
        assert_eq!((cut("日本語", 4), cut("e\u{301}a", 2)), ("日…".to_owned(), "e\u{301}a".to_owned()));
    }
}
