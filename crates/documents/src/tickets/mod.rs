//! Tickets as files, in the format of the `tk` program: `.tickets/<id>.md`, with front matter and a Markdown text.
//!
//! Invariants: only the first front matter of a file counts, whatever its text contains; an edit
//! changes one line and no other byte; an invalid file is reported with its position and does not affect
//! others; a file that changed since it was read is never overwritten.

mod circles;
mod edit;
mod files;
mod front;
mod text;
mod time;
mod watch;

#[cfg(test)]
mod tests;

pub use circles::circles;
pub use edit::{add_note, has_front, set_status, with_front_of};
pub use files::{
    Change, ChangeError, Fingerprint, OwnWrites, Seen, Tickets, change, parse_file, read, write,
};
pub use text::{Note, split_acceptance};
pub use watch::Watch;

use kernel::command::SeenTicket;
use machines::Wire;
use machines::names::TaskId;
use machines::task::TaskType;
use smol_str::SmolStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The lowest priority; 0 is the highest.
const PRIORITY_MAX: u8 = 4;
const PRIORITY_DEFAULT: u8 = 2;

/// A ticket, as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub id: TaskId,
    pub status: Status,
    /// Without those named twice. Whether they exist is not known here.
    pub deps: Vec<TaskId>,
    pub links: Vec<String>,
    pub created: Option<String>,
    /// As written; `tk` has bug, feature, task, epic and chore.
    pub kind: Option<String>,
    /// 0 to 4.
    pub priority: u8,
    pub assignee: Option<String>,
    pub external_ref: Option<String>,
    pub parent: Option<String>,
    pub tags: Vec<String>,
    /// The first heading, or the id where there is none.
    pub title: String,
    /// Everything below the title but the notes.
    pub body: String,
    pub design: Option<String>,
    pub acceptance: Option<String>,
    /// 3 to 6 points of `## Plan`, or of the text's check list.
    pub plan: Option<Vec<String>>,
    pub notes: Vec<Note>,
}

pub use machines::task::TicketStatus as Status;

/// Why a file is not read as a ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Empty where bytes were read that have no file.
    pub file: PathBuf,
    /// From 1; 0 where it is about the file as a whole.
    pub line: usize,
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    fn new(line: usize, what: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { file: PathBuf::new(), line, what: what.into(), hint: hint.into() }
    }

    /// About a file or directory as a whole.
    pub fn about(file: &Path, what: &str, hint: &str) -> Problem {
        Problem::new(0, what, hint).of(file)
    }

    fn of(mut self, file: &Path) -> Problem {
        self.file = file.to_owned();
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.as_os_str().is_empty() {
            write!(f, "{}:", self.file.display())?;
        }
        if self.line > 0 {
            write!(f, "{}:", self.line)?;
        }
        write!(f, " {}; {}", self.what, self.hint)
    }
}

impl Ticket {
    /// The ticket in these bytes, or what keeps them from being one.
    pub fn parse(bytes: &[u8]) -> Result<Ticket, Problem> {
        let front = front::Front::read(bytes)?;
        let text = String::from_utf8_lossy(&bytes[front.body..]).replace("\r\n", "\n");
        let text = text::Text::read(&text);
        let id = front.required("id", "such as `id: ab-1234`, and the file is named by it")?;
        let status = front.required("status", "`status: open`, `in_progress` or `closed`")?;
        let id = TaskId::new(&id.text).map_err(|bad| {
            Problem::new(id.line, bad.to_string(), "give the ticket another id, and its file the same name")
        })?;
        let status =
            Status::ALL.iter().copied().find(|known| known.name() == status.text).ok_or_else(|| {
                let what = format!("`{}` is not a status", shown(&status.text));
                Problem::new(status.line, what, "write `open`, `in_progress` or `closed`")
            })?;
        let mut deps = Vec::new();
        let (listed, line) = front.list("deps")?;
        for dep in listed {
            let dep = TaskId::new(&dep).map_err(|bad| {
                Problem::new(
                    line,
                    format!("among the dependencies, {bad}"),
                    "write them as `deps: [ab-1, ab-2]`",
                )
            })?;
            if !deps.contains(&dep) {
                deps.push(dep);
            }
        }
        let priority = match front.value("priority")? {
            Some(value) => match value.text.parse() {
                Ok(priority) if priority <= PRIORITY_MAX => priority,
                _ => {
                    let what = format!("`{}` is not a priority", shown(&value.text));
                    return Err(Problem::new(value.line, what, "write a number from 0, the highest, to 4"));
                }
            },
            None => PRIORITY_DEFAULT,
        };
        let optional = |key| Ok::<_, Problem>(front.value(key)?.map(|value| value.text));
        Ok(Ticket {
            status,
            deps,
            links: front.list("links")?.0,
            created: optional("created")?,
            kind: optional("type")?,
            priority,
            assignee: optional("assignee")?,
            external_ref: optional("external-ref")?,
            parent: optional("parent")?,
            tags: front.list("tags")?.0,
            title: text.title.unwrap_or_else(|| id.to_string()),
            body: text.body,
            design: text.design,
            acceptance: text.acceptance,
            plan: text.plan,
            notes: text.notes,
            id,
        })
    }

    /// What the kernel is told of it. Notes that we wrote are left out, so that writing one is no change of the text;
    /// people's notes are part of it. A type that the board does not have is `task`.
    pub fn to_seen(&self, by_hand: bool) -> SeenTicket {
        let mut body = self.body.clone();
        let mut notes = self.notes.iter().filter(|note| !note.is_ours()).peekable();
        if notes.peek().is_some() {
            body.push_str(if body.is_empty() { "## Notes" } else { "\n\n## Notes" });
        }
        for note in notes {
            match &note.at {
                Some(at) => body.push_str(&format!("\n\n**{at}**\n\n{}", note.text)),
                None => body.push_str(&format!("\n\n{}", note.text)),
            }
        }
        SeenTicket {
            id: self.id.clone(),
            status: self.status,
            title: self.title.clone(),
            body,
            task_type: self.kind.as_deref().and_then(TaskType::read).unwrap_or(TaskType::Task),
            priority: self.priority,
            plan: self.plan.clone(),
            depends_on: self.deps.clone(),
            created: self.created.as_deref().and_then(moment),
            assignee: self.assignee.as_deref().filter(|name| !name.is_empty()).map(SmolStr::new),
            by_hand,
        }
    }
}

/// A time as tickets write it, or a day. Anything else is no age: then the task is as old as we have known it.
fn moment(text: &str) -> Option<kernel::Millis> {
    let text = text.trim();
    let day = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let time = text.parse::<jiff::Timestamp>().ok();
    time.or_else(|| day().map(|day| day.timestamp())).map(|time| time.as_millisecond())
}

/// A text from a file in a message: harmless and short.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}
