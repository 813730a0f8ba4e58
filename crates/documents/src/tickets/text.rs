//! The Markdown below the front matter: a title, and sections by their headings.

use machines::task::{PLAN_BULLETS_MAX, PLAN_BULLETS_MIN};
use std::ops::Range;

/// How a note of ours begins, by which it is told from a person's.
pub const OUR_NOTE: &str = "Adjutant: ";
const NOTES: &str = "## Notes";
const ACCEPTANCE: &str = "## Acceptance Criteria";

/// An entry below `## Notes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// As written; absent for text before the first time.
    pub at: Option<String>,
    pub text: String,
}

impl Note {
    /// Whether Adjutant wrote it.
    pub fn is_ours(&self) -> bool {
        self.text.starts_with(OUR_NOTE)
    }
}

#[derive(Debug)]
pub(super) struct Text {
    pub title: Option<String>,
    pub body: String,
    pub design: Option<String>,
    pub acceptance: Option<String>,
    pub plan: Option<Vec<String>>,
    pub notes: Vec<Note>,
}

impl Text {
    /// Reads a text with plain line ends.
    pub fn read(text: &str) -> Text {
        let headings = headings(text);
        let title = headings.iter().find(|line| text[(*line).clone()].starts_with("# ")).cloned();
        let notes = section(text, &headings, NOTES);
        let mut body = String::new();
        for (line, next) in lines(text) {
            let left_out = title.as_ref() == Some(&line)
                || notes.as_ref().is_some_and(|notes| notes.contains(&line.start));
            if !left_out {
                body.push_str(&text[line.start..next]);
            }
        }
        let inner = |heading| {
            let text = section(text, &headings, heading).map(|span| below_heading(&text[span]))?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let body = body.trim().to_owned();
        let plan = match inner("## Plan") {
            Some(plan) => bullets(&plan, false),
            None => bullets(&body, true),
        };
        Text {
            title: title
                .map(|line| text[line].trim_start_matches("# ").trim().to_owned())
                .filter(|title| !title.is_empty()),
            design: inner("## Design"),
            acceptance: inner(ACCEPTANCE),
            plan,
            notes: notes.map(|span| entries(below_heading(&text[span]))).unwrap_or_default(),
            body,
        }
    }
}

/// The text without its acceptance criteria, and those apart. For a text that the kernel kept, which has no title.
pub fn split_acceptance(body: &str) -> (String, Option<String>) {
    let headings = headings(body);
    let Some(span) = section(body, &headings, ACCEPTANCE) else { return (body.to_owned(), None) };
    let rest = [body[..span.start].trim(), body[span.end..].trim()];
    let rest: Vec<_> = rest.into_iter().filter(|part| !part.is_empty()).collect();
    (rest.join("\n\n"), Some(below_heading(&body[span]).to_owned()))
}

/// Where the notes of a text are, heading included; up to the next heading of that rank.
pub(super) fn notes_span(text: &str) -> Option<Range<usize>> {
    section(text, &headings(text), NOTES)
}

/// The lines that are headings of the first two ranks. Not those within a fence of code, unless the fence has no end:
/// then it is more likely a slip than a text that is all code.
fn headings(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut fenced) = (Vec::new(), Vec::new());
    let mut fence: Option<&str> = None;
    for (line, _) in lines(text) {
        let content = text[line.clone()].trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| content.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let line_text = &text[line.clone()];
        if line_text.starts_with("# ") || line_text.starts_with("## ") {
            if fence.is_none() { found.push(line) } else { fenced.push(line) }
        }
    }
    if fence.is_some() {
        found.append(&mut fenced);
        found.sort_by_key(|line| line.start);
    }
    found
}

fn section(text: &str, headings: &[Range<usize>], heading: &str) -> Option<Range<usize>> {
    let is_it = |line: &Range<usize>| text[line.clone()].trim_end().eq_ignore_ascii_case(heading);
    let at = headings.iter().position(is_it)?;
    let end = headings.get(at + 1).map_or(text.len(), |next| next.start);
    Some(headings[at].start..end)
}

fn below_heading(section: &str) -> &str {
    section.split_once('\n').map_or("", |(_, rest)| rest).trim()
}

/// Points of a list that are not within another. Under a heading of its own all of them are the plan, however many; a check
/// list is one where it has 3 to 6.
fn bullets(text: &str, only_boxes: bool) -> Option<Vec<String>> {
    let point = |line: &str| {
        let marked =
            ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark)).or_else(|| {
                let digits = line.bytes().take_while(u8::is_ascii_digit).count();
                let rest = line[digits..].strip_prefix('.').or_else(|| line[digits..].strip_prefix(')'));
                rest.filter(|_| digits > 0).and_then(|rest| rest.strip_prefix(' '))
            })?;
        let boxed =
            ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|mark| marked.trim_start().strip_prefix(mark));
        let point = if only_boxes { boxed? } else { boxed.unwrap_or(marked) };
        Some(point.trim().to_owned()).filter(|point| !point.is_empty())
    };
    let points: Vec<_> = text.lines().filter_map(point).collect();
    let is_plan = match only_boxes {
        true => (PLAN_BULLETS_MIN..=PLAN_BULLETS_MAX).contains(&points.len()),
        false => !points.is_empty(),
    };
    is_plan.then_some(points)
}

fn entries(text: &str) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for line in text.lines() {
        let time = line.trim_end().strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
        match (time.filter(|time| time.starts_with(|c: char| c.is_ascii_digit())), notes.last_mut()) {
            (Some(time), _) => notes.push(Note { at: Some(time.to_owned()), text: String::new() }),
            (None, Some(note)) => {
                note.text.push_str(line);
                note.text.push('\n');
            }
            (None, None) => notes.push(Note { at: None, text: format!("{line}\n") }),
        }
    }
    for note in &mut notes {
        note.text = note.text.trim().to_owned();
    }
    notes.retain(|note| !note.text.is_empty());
    notes
}

fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, usize)> {
    super::front::lines_from(text.as_bytes(), 0)
}
