//! The front matter: flat `key: value` lines between two lines of `---`, at the very beginning of the file.
//!
//! This is a parser of its own and not one of YAML: `tk` reads it with line patterns, so YAML would read an anchor, a
//! tag or a folded text differently. Each value has its position, so that an edit can leave everything else unchanged.

use super::{Problem, shown};
use std::ops::Range;

const BOM: &[u8] = b"\xef\xbb\xbf";
/// Lines of a front matter; one that is longer has lost its end.
const LINES_MAX: usize = 1_000;

/// The first front matter of a file, by spans in its bytes.
#[derive(Debug)]
pub(super) struct Front<'a> {
    bytes: &'a [u8],
    lines: Vec<Line>,
    /// Where the text begins.
    pub body: usize,
}

#[derive(Clone, Debug)]
struct Line {
    number: usize,
    /// Absent where the line is no `key: value`: it is kept and says nothing to us.
    key: Option<Range<usize>>,
    /// Trimmed; within the quotes where it is quoted.
    value: Range<usize>,
    /// In double quotes, in which a backslash escapes.
    escaped: bool,
}

/// A value with the line that it stands in.
#[derive(Debug)]
pub(super) struct Value {
    pub text: String,
    pub line: usize,
}

impl<'a> Front<'a> {
    /// Finds the front matter, or says why there is none.
    pub fn read(bytes: &'a [u8]) -> Result<Front<'a>, Problem> {
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let mut lines = lines_from(bytes, start);
        let is_fence = |line: &Range<usize>| bytes[line.clone()].trim_ascii_end() == b"---";
        if !lines.next().is_some_and(|(line, _)| is_fence(&line)) {
            let hint =
                "a ticket begins with a line `---`, its keys, and `---` again; move other files out of here";
            return Err(Problem::new(1, "this is not a ticket", hint));
        }
        let mut found = Vec::new();
        for (number, (line, next)) in (2..).zip(lines) {
            if is_fence(&line) {
                return Ok(Front { bytes, lines: found, body: next });
            }
            if found.len() == LINES_MAX {
                break;
            }
            found.push(Line::read(bytes, line, number));
        }
        Err(Problem::new(1, "the front matter has no end", "close it with a line `---` below its last key"))
    }

    /// The value of a key, nothing where it is absent or empty. A key that stands there twice is a problem: nobody can
    /// know which one is meant.
    pub fn value(&self, key: &str) -> Result<Option<Value>, Problem> {
        let Some(line) = self.line(key)? else { return Ok(None) };
        let bytes = &self.bytes[line.value.clone()];
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Problem::new(line.number, format!("`{key}` is not UTF-8"), "write it anew"))?;
        let text = if line.escaped { unescape(text) } else { text.to_owned() };
        Ok((!text.is_empty()).then_some(Value { text, line: line.number }))
    }

    /// The value of a key that a ticket cannot be without.
    pub fn required(&self, key: &str, hint: &str) -> Result<Value, Problem> {
        let what = format!("the ticket has no `{key}`");
        self.value(key)?.ok_or_else(|| Problem::new(1, what, format!("add it to the front matter: {hint}")))
    }

    /// A list `[a, b]` with the line that it stands in; empty where the key is absent.
    pub fn list(&self, key: &str) -> Result<(Vec<String>, usize), Problem> {
        let hint = format!("write it in one line: `{key}: [a, b]`");
        let Some(value) = self.value(key)? else {
            // `deps:` and a list below it is YAML, but no list to `tk`; taken as empty it would unblock the ticket.
            if let Some(line) = self.line(key)?.filter(|line| self.goes_on_after(line.number)) {
                return Err(Problem::new(
                    line.number,
                    format!("the list of `{key}` is in several lines"),
                    hint,
                ));
            }
            return Ok((Vec::new(), 0));
        };
        let inner =
            value.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(|| {
                let what = format!("`{key}` is not a list: `{}`", shown(&value.text));
                Problem::new(value.line, what, hint)
            })?;
        let entries = inner.split(',').map(|entry| unquoted(entry.trim()).to_owned());
        Ok((entries.filter(|entry| !entry.is_empty()).collect(), value.line))
    }

    /// Where the value of a key stands, quotes not included.
    pub fn value_span(&self, key: &str) -> Result<Option<Range<usize>>, Problem> {
        Ok(self.line(key)?.map(|line| line.value.clone()))
    }

    fn line(&self, key: &str) -> Result<Option<&Line>, Problem> {
        let is_it = |line: &&Line| line.key.clone().is_some_and(|span| &self.bytes[span] == key.as_bytes());
        let mut lines = self.lines.iter().filter(is_it);
        let first = lines.next();
        match (first, lines.next()) {
            (Some(first), Some(second)) => {
                let what =
                    format!("`{key}` stands there twice, in lines {} and {}", first.number, second.number);
                Err(Problem::new(second.number, what, "leave one of them"))
            }
            _ => Ok(first),
        }
    }

    fn goes_on_after(&self, number: usize) -> bool {
        let next = self.lines.iter().find(|line| line.number == number + 1);
        next.is_some_and(|line| line.key.is_none() && !self.bytes[line.value.clone()].is_empty())
    }
}

impl Line {
    fn read(bytes: &[u8], line: Range<usize>, number: usize) -> Line {
        let text = &bytes[line.clone()];
        let named = text.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b)).count();
        let key = (named > 0 && text.get(named) == Some(&b':')).then(|| line.start..line.start + named);
        let from = key.as_ref().map_or(line.start, |key| key.end + 1);
        let mut value = trimmed(bytes, from..line.end);
        let quote = match &bytes[value.clone()] {
            [first @ (b'"' | b'\''), .., last] if first == last => Some(*first),
            _ => None,
        };
        if quote.is_some() {
            value = value.start + 1..value.end - 1;
        }
        Line { number, key, value, escaped: quote == Some(b'"') }
    }
}

/// Each line without its end, and where the next begins. A lone carriage return ends no line.
pub(super) fn lines_from(bytes: &[u8], start: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let next = (at + length + 1).min(bytes.len());
        let end = if rest[..length].ends_with(b"\r") { at + length - 1 } else { at + length };
        let line = at..end;
        at = next;
        Some((line, next))
    })
}

fn trimmed(bytes: &[u8], mut span: Range<usize>) -> Range<usize> {
    while span.start < span.end && bytes[span.start].is_ascii_whitespace() {
        span.start += 1;
    }
    while span.start < span.end && bytes[span.end - 1].is_ascii_whitespace() {
        span.end -= 1;
    }
    span
}

fn unquoted(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn unescape(text: &str) -> String {
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}
