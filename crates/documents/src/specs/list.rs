//! A list of tasks before it becomes stories: tasks that are done are left out, and dependencies on them are satisfied.

use std::collections::{BTreeMap, BTreeSet};

use kernel::specs::{CRITERIA_MAX, Mark, Story};
use smol_str::SmolStr;

use super::spec_path::Source;
use super::text::TextLine;
use super::{Line, ReadError};

/// How much of a task's first line is its title.
const TITLE_CHARS_MAX: usize = 160;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Open,
    Done,
    /// Somebody has put it off, or it may be left out: why it is no story.
    Left(&'static str),
    /// It is no longer wanted. Nobody waits for it.
    Dropped(&'static str),
}

/// One task of a list.
#[derive(Debug, Default)]
pub struct Item {
    pub key: String,
    /// What it says in one line; the story's title is made of it.
    pub said: String,
    pub body: String,
    pub acceptance: Vec<String>,
    pub state: State,
    /// The keys of tasks, or of groups of them, that it names.
    pub after: Vec<String>,
    pub infrastructure: bool,
    pub priority: Option<u8>,
    pub mark: Option<Mark>,
    pub path: String,
    pub number: usize,
}

#[derive(Debug, Default)]
pub struct List {
    pub items: Vec<Item>,
    /// Names that stand for several tasks.
    pub groups: BTreeMap<String, Vec<String>>,
    pub not_understood: Vec<Line>,
    /// A mark is found by the key of its task: its line may stand there often.
    pub marks_by_key: bool,
}

/// What is left of a list.
#[derive(Debug)]
pub struct Taken {
    pub stories: Vec<Story>,
    pub done: usize,
    pub not_understood: Vec<Line>,
}

impl Item {
    fn note(&self, why: impl Into<String>) -> Line {
        Line { path: self.path.clone(), number: self.number, text: self.said.clone(), why: why.into() }
    }
}

impl List {
    pub fn not_understood(&mut self, source: &Source, line: TextLine<'_>, why: impl Into<String>) {
        let (path, text) = (source.path.clone(), line.text.trim().to_owned());
        self.not_understood.push(Line { path, number: line.number, text, why: why.into() });
    }

    /// Lets tasks follow each other: those of a row wait for the nearest row before it in which something is open.
    pub fn in_rows(&mut self, rows: &[Vec<usize>]) {
        let mut before: Vec<String> = Vec::new();
        for row in rows {
            let open: Vec<usize> =
                row.iter().copied().filter(|at| self.items[*at].state == State::Open).collect();
            if open.is_empty() {
                continue;
            }
            for at in &open {
                self.items[*at].after.extend(before.iter().cloned());
            }
            before = open.iter().map(|at| self.items[*at].key.clone()).collect();
        }
    }

    /// Criteria of a whole go to the task of it that is done last: no other one can meet them.
    pub fn with_criteria(&mut self, of: impl Fn(&Item) -> bool, criteria: &[String]) {
        if let Some(last) = self.items.iter_mut().rev().find(|item| item.state == State::Open && of(item)) {
            last.acceptance.extend(criteria.iter().cloned());
        }
    }

    /// The stories of what is open, in the order of the list.
    pub fn taken(mut self, path: &str) -> Result<Taken, ReadError> {
        if self.items.is_empty() {
            return Err(ReadError::Empty { path: path.to_owned() });
        }
        if !self.marks_by_key {
            self.forget_marks_that_are_not_alone();
        }
        let done = self.items.iter().filter(|item| item.state == State::Done).count();
        let members: Vec<Vec<String>> = self
            .items
            .iter()
            .map(|item| item.after.iter().flat_map(|on| self.members(on)).collect())
            .collect();
        self.leave_what_waits_for_what_is_left(&members);
        let state: BTreeMap<&str, &State> =
            self.items.iter().map(|item| (item.key.as_str(), &item.state)).collect();
        let mut notes = self.not_understood.clone();
        let mut stories = Vec::new();
        for (item, members) in self.items.iter().zip(&members) {
            match &item.state {
                State::Open => {}
                State::Left(why) | State::Dropped(why) => {
                    notes.push(item.note(*why));
                    continue;
                }
                State::Done => continue,
            }
            let mut depends_on: BTreeSet<&str> = BTreeSet::new();
            for on in members.iter().filter(|on| **on != item.key) {
                match state.get(on.as_str()) {
                    Some(State::Open) => {
                        depends_on.insert(on);
                    }
                    Some(State::Dropped(why)) => {
                        notes.push(item.note(format!("it waits for {on}, which is taken as met: {why}")));
                    }
                    Some(State::Done | State::Left(_)) => {}
                    None => notes.push(item.note(format!("it waits for {on}, which is not in the list"))),
                }
            }
            let in_order = self.items.iter().map(|item| item.key.as_str());
            let depends_on = in_order.filter(|key| depends_on.contains(key)).map(SmolStr::new).collect();
            let mut acceptance = item.acceptance.clone();
            if acceptance.len() > CRITERIA_MAX {
                acceptance.truncate(CRITERIA_MAX);
                notes.push(item.note(format!("only the first {CRITERIA_MAX} of its criteria are taken")));
            }
            let (title, body) = titled(&item.said, &item.body);
            stories.push(Story {
                key: SmolStr::new(&item.key),
                title,
                body,
                acceptance,
                depends_on,
                infrastructure: item.infrastructure,
                priority: item.priority,
                plan: None,
                mark: item.mark.clone(),
            });
        }
        if stories.is_empty() {
            let left = self.items.len() - done;
            let (path, why) =
                (path.to_owned(), notes.last().map(|line| line.why.clone()).unwrap_or_default());
            return Err(match left {
                0 => ReadError::AllDone { path, done },
                left => ReadError::NothingToTake { path, left, why },
            });
        }
        notes.sort_by(|a, b| (&a.path, a.number).cmp(&(&b.path, b.number)));
        notes.dedup();
        Ok(Taken { stories, done, not_understood: notes })
    }

    /// The tasks that a name stands for. A name of nothing stands for itself.
    fn members(&self, name: &str) -> Vec<String> {
        let (mut found, mut names, mut seen) = (Vec::new(), vec![name], BTreeSet::new());
        while let Some(name) = names.pop() {
            if !seen.insert(name) {
                continue;
            }
            if let Some(members) = self.groups.get(name) {
                names.extend(members.iter().map(String::as_str));
            }
            if self.items.iter().any(|item| item.key == name) || !self.groups.contains_key(name) {
                found.push(name.to_owned());
            }
        }
        found
    }

    /// Begun before what it waits for, it would be begun too early.
    fn leave_what_waits_for_what_is_left(&mut self, members: &[Vec<String>]) {
        loop {
            let left: BTreeSet<String> = self
                .items
                .iter()
                .filter(|item| matches!(item.state, State::Left(_)))
                .map(|item| item.key.clone())
                .collect();
            let mut changed = false;
            for (item, members) in self.items.iter_mut().zip(members) {
                if item.state == State::Open && members.iter().any(|on| left.contains(on)) {
                    item.state = State::Left("it waits for a task that is not loaded");
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Two tasks with the same line could not be told from each other when one of them lands.
    fn forget_marks_that_are_not_alone(&mut self) {
        let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
        for mark in self.items.iter().filter_map(|item| item.mark.as_ref()) {
            *count.entry((mark.path.clone(), mark.line.clone())).or_default() += 1;
        }
        for item in &mut self.items {
            let Some(mark) = &item.mark else { continue };
            if count[&(mark.path.clone(), mark.line.clone())] > 1 && item.state == State::Open {
                self.not_understood
                    .push(item.note("the same line stands there again, so it will not be ticked"));
                item.mark = None;
            }
        }
    }
}

/// A title of a length that a board can show, and the whole in the text where it is longer.
fn titled(said: &str, body: &str) -> (String, String) {
    let said = said.trim();
    let first = said.lines().next().unwrap_or_default();
    if first.chars().count() <= TITLE_CHARS_MAX && first.len() == said.len() {
        return (said.to_owned(), body.trim().to_owned());
    }
    let mut title: String = first.chars().take(TITLE_CHARS_MAX).collect();
    if title.len() < first.len() {
        let end = title.rfind(' ').unwrap_or(title.len());
        title.truncate(end);
        title.push('…');
    }
    (title, format!("{said}\n\n{}", body.trim()).trim().to_owned())
}
