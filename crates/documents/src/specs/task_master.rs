//! Task Master: `.taskmaster/tasks/tasks.json`, with a list of tasks for each tag, and subtasks.
//!
//! A task with subtasks is not a task of its own: it is set to done with the last of them. Only the current tag
//! of `state.json` is read.

use std::collections::BTreeMap;
use std::ops::Range;

use kernel::specs::Mark;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::list::{Item, List, State};
use super::spec_path::{Source, SpecPath};
use super::{Found, Line, ReadError, Restore, Tick, Ticked, put_back};

/// Details of many tasks make a large file.
const BYTES_MAX: usize = 8 << 20;
const MASTER: &str = "master";

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    tasks: Vec<Task<'a>>,
}

#[derive(Deserialize)]
struct Task<'a> {
    id: serde_json::Value,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    details: Option<String>,
    #[serde(default, rename = "testStrategy")]
    test_strategy: Option<String>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    dependencies: Option<Vec<serde_json::Value>>,
    /// As it stands in the file, so that its place is known.
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subtasks: Option<Vec<Task<'a>>>,
}

impl Task<'_> {
    fn status(&self) -> String {
        self.status
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_else(|| "pending".to_owned())
    }

    fn subtasks(&self) -> &[Self] {
        self.subtasks.as_deref().unwrap_or_default()
    }

    fn is_over(&self) -> bool {
        matches!(state(&self.status()), State::Done | State::Dropped(_))
    }
}

pub fn looks_like(place: &SpecPath) -> bool {
    file(place).is_some()
}

/// The file of tasks that a place means.
fn file(place: &SpecPath) -> Option<SpecPath> {
    match place.parts()[..] {
        [.., ".taskmaster", "tasks", "tasks.json"] => place.above().below("tasks.json").ok()?,
        [.., ".taskmaster"] => place.below("tasks/tasks.json").ok()?,
        [.., ".taskmaster", "tasks"] => place.below("tasks.json").ok()?,
        _ => None,
    }
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let file = file(place).ok_or_else(|| ReadError::NoFormat { path: place.name().to_owned() })?;
    let source = file.source_within(BYTES_MAX)?;
    let tags = tags(&source.text).map_err(|no_list| ReadError::Broken {
        path: source.path.clone(),
        line: no_list.line,
        why: format!("this is no list of tasks: {}", no_list.why),
    })?;
    let current = current_tag(&file)?;
    let tag = match (&current, tags.len()) {
        (Some(current), _) if tags.contains_key(current) => current.clone(),
        _ if tags.contains_key(MASTER) => MASTER.to_owned(),
        (_, 1) => tags.keys().next().cloned().unwrap_or_default(),
        (_, 0) => return Err(ReadError::Empty { path: source.path }),
        _ => return Err(ReadError::Several { path: source.path, names: tags.into_keys().collect() }),
    };
    let mut list = List { marks_by_key: true, ..List::default() };
    for (other, inside) in tags.iter().filter(|(other, inside)| **other != tag && !inside.tasks.is_empty()) {
        let why = format!("only the tag `{tag}` is read; `task-master use-tag` chooses another");
        let text = format!("{other}: {} tasks", inside.tasks.len());
        list.not_understood.push(Line { path: source.path.clone(), number: 1, text, why });
    }
    for task in &tags[&tag].tasks {
        add(&mut list, &source, &tag, task, None);
    }
    let title = if tag == MASTER { "Task Master".to_owned() } else { format!("Task Master: {tag}") };
    let name = if tag == MASTER { "taskmaster".to_owned() } else { format!("taskmaster-{tag}") };
    Ok(Found { title, name, text: outline(&list), list: Some(list) })
}

/// What a spec of entries looks like as a text.
pub fn outline(list: &List) -> String {
    let one = |item: &Item| format!("## {}: {}\n\n{}", item.key, item.said, item.body.trim());
    let open = list.items.iter().filter(|item| item.state == State::Open);
    let text: Vec<String> = open.map(one).collect();
    // What is all done still has a text; that nothing is left is said with better words later.
    if text.is_empty() { "Nothing is open.".to_owned() } else { text.join("\n\n") }
}

/// Where a file is no list of tasks, and why.
struct NoList {
    line: usize,
    why: String,
}

impl From<serde_json::Error> for NoList {
    fn from(error: serde_json::Error) -> NoList {
        NoList { line: error.line().max(1), why: error.to_string() }
    }
}

/// The tags of a file; the older shape without tags is the tag `master`.
fn tags(text: &str) -> Result<BTreeMap<String, Tag<'_>>, NoList> {
    let raw: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
    if raw.contains_key("tasks") {
        return Ok(BTreeMap::from([(MASTER.to_owned(), serde_json::from_str(text)?)]));
    }
    let mut tags = BTreeMap::new();
    for (name, raw) in raw {
        let tag = serde_json::from_str(raw.get()).map_err(|error| {
            let begins = line_of(text, span(text, raw.get()).start);
            let why = format!("tag `{name}`: {error}, counted from line {begins}");
            NoList { line: begins + error.line().max(1) - 1, why }
        })?;
        tags.insert(name, tag);
    }
    Ok(tags)
}

/// The tag that Task Master works on.
fn current_tag(file: &SpecPath) -> Result<Option<String>, ReadError> {
    let Some(state) = file.above().above().file("state.json")? else { return Ok(None) };
    let state: Option<serde_json::Value> = serde_json::from_str(&state.text).ok();
    Ok(state.and_then(|state| state["currentTag"].as_str().map(str::to_owned)))
}

fn add(list: &mut List, source: &Source, tag: &str, task: &Task<'_>, parent: Option<&Task<'_>>) {
    let id = match parent {
        Some(parent) => format!("{}.{}", id(&parent.id), id(&task.id)),
        None => id(&task.id),
    };
    let key = key(tag, &id);
    let status = task.status();
    let place = task.status.map(|raw| span(&source.text, raw.get()));
    let number = place.as_ref().map_or(1, |place| line_of(&source.text, place.start));
    // Their own place in the list, where others name them, and what they need of their parent.
    let mut after: Vec<String> = named(tag, task, parent);
    if let Some(parent) = parent {
        after.extend(named(tag, parent, None));
        list.groups.entry(self::key(tag, &self::id(&parent.id))).or_default().push(key.clone());
    }
    if !task.subtasks().is_empty() && parent.is_none() && state(&status) == State::Open {
        for subtask in task.subtasks() {
            add(list, source, tag, subtask, Some(task));
        }
        if task.subtasks().iter().all(Task::is_over) {
            let (path, text) = (source.path.clone(), task.title.clone());
            let why = "all its subtasks are done, so it is taken as done".to_owned();
            list.not_understood.push(Line { path, number, text, why });
        }
        return;
    }
    let state = state(&status);
    if !["pending", "in-progress", "review", "done", "completed", "deferred", "cancelled", "blocked"]
        .contains(&status.as_str())
    {
        let (path, text) = (source.path.clone(), task.title.clone());
        let why = format!("`{status}` is no status that is known: it is taken as pending");
        list.not_understood.push(Line { path, number, text, why });
    }
    let priority = match task.priority.as_deref() {
        Some("critical") => Some(0),
        Some("high") => Some(1),
        Some("low") => Some(3),
        _ => None,
    };
    let parts = [task.description.as_deref(), task.details.as_deref()];
    let mut body = parts
        .into_iter()
        .flatten()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    body.push_str(&format!("\n\nThis is task {id} of {}.", source.path));
    if let Some(parent) = parent {
        let about = parent.description.as_deref().unwrap_or_default().trim();
        body.push_str(&format!(" It is part of {}: {}. {about}", self::id(&parent.id), parent.title.trim()));
    }
    body = format!("{} Leave its status as it is: it is set when the work lands.", body.trim());
    let strategy = task.test_strategy.as_deref().map(str::trim).filter(|strategy| !strategy.is_empty());
    list.items.push(Item {
        said: task.title.trim().to_owned(),
        body,
        acceptance: strategy.map(one_line).into_iter().collect(),
        state,
        after,
        priority,
        mark: place
            .map(|place| Mark { path: source.path.clone(), line: marked(&source.text, &place).to_owned() }),
        path: source.path.clone(),
        number,
        key,
        ..Item::default()
    });
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn state(status: &str) -> State {
    match status {
        "done" | "completed" => State::Done,
        "deferred" => State::Left("it is deferred"),
        "cancelled" => State::Dropped("it is cancelled"),
        _ => State::Open,
    }
}

/// A number, or the same in quotes.
fn id(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Tasks of other tags than the usual one carry their tag.
fn key(tag: &str, id: &str) -> String {
    if tag == MASTER { id.to_owned() } else { format!("{tag}/{id}") }
}

/// What a task waits for. A subtask names its siblings by their number alone.
fn named(tag: &str, task: &Task<'_>, parent: Option<&Task<'_>>) -> Vec<String> {
    let full = |value: &serde_json::Value| {
        let named = id(value);
        let sibling = parent.filter(|parent| parent.subtasks().iter().any(|other| id(&other.id) == named));
        match sibling {
            Some(parent) => key(tag, &format!("{}.{named}", id(&parent.id))),
            None => key(tag, &named),
        }
    };
    task.dependencies.iter().flatten().map(full).collect()
}

/// Where a part stands in the text that it was read from.
pub fn span(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn line_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    super::boxes::without_end(text[start..].split_inclusive('\n').next().unwrap_or_default())
}

/// What a mark is known by: its line, or the status alone where several entries share the line, which then changes with each
/// of them.
fn marked<'t>(text: &'t str, place: &Range<usize>) -> &'t str {
    let line = line_at(text, place.start);
    if is_shared(line) { &text[place.clone()] } else { line }
}

/// Whether more than one entry has its status on a line.
fn is_shared(line: &str) -> bool {
    line.matches("\"status\"").count() > 1
}

/// The entry with this key: the task, or the parent and its subtask.
fn entry<'t, 'a>(
    tags: &'t BTreeMap<String, Tag<'a>>,
    key: &str,
) -> Result<(&'t Task<'a>, Option<&'t Task<'a>>), &'static str> {
    let (tag, number) = key.rsplit_once('/').unwrap_or((MASTER, key));
    let tag = tags.get(tag).or_else(|| tags.values().next().filter(|_| tags.len() == 1));
    let tag = tag.ok_or("its tag is gone")?;
    let (parent, child) = match number.split_once('.') {
        Some((parent, child)) => (parent, Some(child)),
        None => (number, None),
    };
    let mut parents = tag.tasks.iter().filter(|task| id(&task.id) == parent);
    let (Some(parent), None) = (parents.next(), parents.next()) else {
        return Err("there is not one task with its number");
    };
    let Some(child) = child else { return Ok((parent, None)) };
    let mut found = parent.subtasks().iter().filter(|task| id(&task.id) == child);
    let (Some(task), None) = (found.next(), found.next()) else {
        return Err("there is not one subtask with its number");
    };
    Ok((parent, Some(task)))
}

/// Sets the status of the entry, and that of its parent, as another version of the file has them.
pub fn restore(restore: &Restore<'_>) -> Option<String> {
    put_back(restore, |content| {
        let tags = tags(content).ok()?;
        let (parent, child) = entry(&tags, restore.key).ok()?;
        let place = |task: &Task<'_>| task.status.map(|raw| span(content, raw.get()));
        let own = place(child.unwrap_or(parent))?;
        Some([own].into_iter().chain(child.and_then(|_| place(parent))).collect())
    })
}

/// Sets the status of the entry, and that of its parent with its last subtask. The entry is found by its number: its line
/// stands there as often as there are tasks.
pub fn tick(tick: &Tick<'_>) -> Ticked {
    let text = tick.content;
    let Ok(tags) = tags(text) else { return Ticked::No("the file is no list of tasks now") };
    let (parent, child) = match entry(&tags, tick.key) {
        Ok(found) => found,
        Err(why) => return Ticked::No(why),
    };
    let mut set: Vec<Range<usize>> = Vec::new();
    let task = match child {
        None => parent,
        Some(task) => {
            let others = parent.subtasks().iter().filter(|other| !std::ptr::eq(*other, task));
            if others.clone().all(Task::is_over) && !parent.is_over() {
                set.extend(parent.status.map(|raw| span(text, raw.get())));
            }
            task
        }
    };
    let Some(raw) = task.status else { return Ticked::No("it has no status") };
    let place = span(text, raw.get());
    if task.is_over() {
        return Ticked::Before;
    }
    // Marks of before have the whole line, also where the entries beside this one have changed it since.
    let shared = is_shared(&tick.mark.line) && state(&task.status()) == State::Open;
    if marked(text, &place) != tick.mark.line && !shared {
        return Ticked::No("its status was changed since");
    }
    set.push(place);
    set.sort_by_key(|place| std::cmp::Reverse(place.start));
    let mut new = text.to_owned();
    for place in set {
        new.replace_range(place, "\"done\"");
    }
    Ticked::Now(new)
}
