//! Specs that people already have: detects the format of a file or folder, reads its list of tasks, and marks a task
//! as done.
//!
//! A list is read by rules, without a model, and only lines that match a rule are stories: every other line is returned with
//! the reason. Prose has no stories; the architect splits it.

mod beads;
mod bmad;
mod boxes;
mod kiro;
mod list;
mod open_spec;
mod plain;
mod spec_kit;
mod spec_path;
mod task_master;
#[cfg(test)]
mod tests;
mod text;

use std::ops::Range;
use std::path::{Path, PathBuf};

use kernel::specs::{Mark, SPEC_BYTES_MAX, Story};
use machines::names::SpecId;

use list::List;
use spec_path::SpecPath;

/// What a file or folder says.
#[derive(Debug)]
pub struct Read {
    pub format: &'static str,
    pub title: String,
    /// What it can be called.
    pub name: SpecId,
    pub text: String,
    /// `None`: it is prose.
    pub stories: Option<Vec<Story>>,
    /// Tasks of the list that are done already, and are no stories.
    pub done: usize,
    pub not_understood: Vec<Line>,
}

/// A line that is no story, though it may have been meant as one, or of which a part was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// From the top of the repository.
    pub path: String,
    /// From 1.
    pub number: usize,
    pub text: String,
    pub why: String,
}

/// Why a spec cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path} does not exist")]
    Missing { path: PathBuf },
    #[error("{path} is outside of the repository {root}; copy it into the repository")]
    Outside { path: PathBuf, root: PathBuf },
    #[error(
        "{path} leads into a git directory, which is not part of the repository's content; copy the text into a file"
    )]
    InGit { path: String },
    #[error("{path} is not a plain file")]
    NotAFile { path: String },
    #[error("{path} is larger than {bytes_max} bytes; split it")]
    TooLarge { path: String, bytes_max: usize },
    #[error("{path}:{line}: this is not UTF-8; save the file as UTF-8")]
    NotUtf8 { path: String, line: usize },
    #[error("{path}:{line}: {why}")]
    Broken { path: String, line: usize, why: String },
    #[error("{path} is in no known format; name one file, or the folder of one spec")]
    NoFormat { path: String },
    #[error("{path} contains several specs; name one of them: {}", .names.join(", "))]
    Several { path: String, names: Vec<String> },
    #[error("{path} has no tasks")]
    Empty { path: String },
    #[error("{path}: nothing is left to do: all {done} tasks are done")]
    AllDone { path: String, done: usize },
    #[error("{path}: {left} of its tasks are not done, and none of them can start: {why}")]
    NothingToTake { path: String, left: usize, why: String },
    #[error("{path}: {why}")]
    Stories { path: String, why: String },
    #[error("cannot read {path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
}

/// One way in which people write specs down.
struct Format {
    name: &'static str,
    looks_like: fn(&SpecPath) -> bool,
    read: fn(&SpecPath) -> Result<Found, ReadError>,
    /// The file with the mark of one story set to done.
    tick: fn(&Tick<'_>) -> Ticked,
    /// The file with the mark of one story as another version of the file has it.
    restore: fn(&Restore<'_>) -> Option<String>,
}

/// The first that a place looks like is the one. Plain Markdown is any other file.
#[rustfmt::skip]
const FORMATS: &[Format] = &[
    Format { name: "kiro",        looks_like: kiro::looks_like,        read: kiro::read,        tick: kiro::tick,        restore: kiro::restore        },
    Format { name: "openspec",    looks_like: open_spec::looks_like,   read: open_spec::read,   tick: boxes::tick,       restore: boxes::restore       },
    Format { name: "task-master", looks_like: task_master::looks_like, read: task_master::read, tick: task_master::tick, restore: task_master::restore },
    Format { name: "beads",       looks_like: beads::looks_like,       read: beads::read,       tick: beads::tick,       restore: beads::restore       },
    Format { name: "bmad",        looks_like: bmad::looks_like,        read: bmad::read,        tick: bmad::tick,        restore: bmad::restore        },
    Format { name: "spec-kit",    looks_like: spec_kit::looks_like,    read: spec_kit::read,    tick: boxes::tick,       restore: boxes::restore       },
    Format { name: "markdown",    looks_like: plain::looks_like,       read: plain::read,       tick: boxes::tick,       restore: boxes::restore       },
];

/// What a format has found.
struct Found {
    title: String,
    name: String,
    text: String,
    /// `None`: it is prose.
    list: Option<List>,
}

/// Reads the file or folder at `path`, in the repository whose top is `root`.
pub fn read(path: &Path, root: &Path) -> Result<Read, ReadError> {
    let place = SpecPath::new(path, root)?.narrowed()?;
    let at = || place.name().to_owned();
    let format = FORMATS.iter().find(|format| (format.looks_like)(&place));
    let format = format.ok_or_else(|| ReadError::NoFormat { path: at() })?;
    let found = (format.read)(&place)?;
    if found.text.len() > SPEC_BYTES_MAX {
        return Err(ReadError::TooLarge { path: at(), bytes_max: SPEC_BYTES_MAX });
    }
    if found.text.trim().is_empty() {
        return Err(ReadError::Empty { path: at() });
    }
    let mut read = Read {
        format: format.name,
        title: found.title.trim().to_owned(),
        name: name_of(&found.name),
        text: found.text,
        stories: None,
        done: 0,
        not_understood: Vec::new(),
    };
    if let Some(list) = found.list {
        let taken = list.taken(&at())?;
        let text_bytes = kernel::config::Limits::default().text_bytes;
        if let Some(why) = kernel::specs::problem(&taken.stories, text_bytes) {
            return Err(ReadError::Stories { path: at(), why });
        }
        read.stories = Some(taken.stories);
        read.done = taken.done;
        read.not_understood = taken.not_understood;
    }
    Ok(read)
}

/// How much of a name is suggested: tasks are named by it, with a number.
const NAME_CHARS_MAX: usize = 60;

/// A name as the house has them, from any text.
fn name_of(text: &str) -> SpecId {
    let mut name = String::new();
    for c in text.chars().take(NAME_CHARS_MAX) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    SpecId::new(name.trim_end_matches('-')).unwrap_or_else(|_| SpecId::new("spec").expect("it is a name"))
}

/// The mark of a story in the file as it is now.
pub struct Tick<'a> {
    pub mark: &'a Mark,
    /// What the spec calls the story.
    pub key: &'a str,
    pub content: &'a str,
    /// When the story lands, in seconds since the epoch: formats that keep it write it down.
    pub at: i64,
}

/// What becomes of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ticked {
    /// The file with the mark set, and nothing else changed.
    Now(String),
    /// It says so already.
    Before,
    /// The line is not there as it was read, or more than once.
    No(&'static str),
}

/// Sets the mark of a story in a file of this format to done.
pub fn tick(format: &str, tick: &Tick<'_>) -> Ticked {
    let known = FORMATS.iter().find(|known| known.name == format);
    known.map_or(Ticked::No("its format is not known"), |known| (known.tick)(tick))
}

/// The mark of a story in two versions of its file.
pub struct Restore<'a> {
    pub mark: &'a Mark,
    /// What the spec calls the story.
    pub key: &'a str,
    /// The version that has the mark as it is to be.
    pub from: &'a str,
    pub to: &'a str,
}

/// The file with the mark of a story as another version of it has it, and nothing else changed. `None`: they agree, or one of
/// them does not have it once.
pub fn restore(format: &str, restore: &Restore<'_>) -> Option<String> {
    let known = FORMATS.iter().find(|known| known.name == format)?;
    (known.restore)(restore)
}

/// Puts pieces of one text in the place of their like in another. `places` finds them, each kind in the same order.
fn put_back(restore: &Restore<'_>, places: impl Fn(&str) -> Option<Vec<Range<usize>>>) -> Option<String> {
    let Restore { from, to, .. } = restore;
    let (there, here) = (places(from)?, places(to)?);
    let pairs = here.into_iter().zip(there.into_iter().map(|place| &from[place]));
    let mut changed: Vec<(Range<usize>, &str)> =
        pairs.filter(|(place, old)| to[place.clone()] != **old).collect();
    if changed.is_empty() {
        return None;
    }
    changed.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut new = (*to).to_owned();
    for (place, old) in changed {
        new.replace_range(place, old);
    }
    Some(new)
}
