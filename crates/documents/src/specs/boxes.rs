//! Ticks a box: changes one character of one line, if the line is unchanged since it was read and appears once.

use std::ops::Range;

use super::text::sign;
use super::{Restore, Tick, Ticked, put_back};

pub fn tick(tick: &Tick<'_>) -> Ticked {
    let line = &tick.mark.line;
    let Some(ticked) = ticked(line) else { return Ticked::No("the line has no box") };
    replaced(tick.content, line, &ticked)
}

/// Sets the box as another version of the file has it.
pub fn restore(restore: &Restore<'_>) -> Option<String> {
    let line = &restore.mark.line;
    let (at, sign) = sign(line)?;
    let around = (&line[..at], &line[at + sign.len_utf8()..]);
    put_back(restore, |content| between(content, around).map(|place| vec![place]))
}

/// What stands between the two in the one line that begins and ends so.
pub fn between(content: &str, (before, after): (&str, &str)) -> Option<Range<usize>> {
    let mut found = None;
    let mut at = 0;
    for part in content.split_inclusive('\n') {
        let text = without_end(part);
        let mark = if at == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let inner = text[mark..].strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        if let Some(inner) =
            inner.filter(|inner| !inner.is_empty() && !inner.contains(char::is_whitespace) || *inner == " ")
        {
            let start = at + mark + before.len();
            if found.replace(start..start + inner.len()).is_some() {
                return None;
            }
        }
        at += part.len();
    }
    found
}

/// The line with its box ticked.
pub fn ticked(line: &str) -> Option<String> {
    let (at, sign) = sign(line)?;
    Some(format!("{}x{}", &line[..at], &line[at + sign.len_utf8()..]))
}

/// The text with one line in place of another, where that one stands in it once.
pub fn replaced(content: &str, line: &str, new: &str) -> Ticked {
    let mut found = None;
    let mut at = 0;
    let mut is_new = false;
    for part in content.split_inclusive('\n') {
        let text = without_end(part);
        // A mark at the beginning of a file is not part of its first line.
        let mark = if at == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        if &text[mark..] == line && found.replace(at + mark).is_some() {
            return Ticked::No("the line stands there more than once");
        }
        is_new |= &text[mark..] == new;
        at += part.len();
    }
    match found {
        Some(at) => Ticked::Now([&content[..at], new, &content[at + line.len()..]].concat()),
        None if is_new => Ticked::Before,
        None => Ticked::No("the line is not there as it was read"),
    }
}

pub fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
