//! beads: `.beads/issues.jsonl`, one issue per line.
//!
//! `blocks`, `waits-for` and `conditional-blocks` are dependencies. `parent-child` makes an epic stand for its children: an issue
//! that depends on the epic depends on them, and they depend on the dependencies of the epic. Any other parent is itself a
//! task and comes after its children.

use std::collections::{BTreeMap, BTreeSet};

use kernel::specs::Mark;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::list::{Item, List, State};
use super::spec_path::SpecPath;
use super::task_master::{outline, span};
use super::text::criteria;
use super::{Found, Line, ReadError, Restore, Tick, Ticked, boxes, put_back};

/// Closed issues stay in the file.
const BYTES_MAX: usize = 32 << 20;
/// Entries that are no work of anybody's.
const NO_WORK: [&str; 8] = ["message", "event", "gate", "agent", "role", "slot", "molecule", "merge-request"];

#[derive(Deserialize)]
struct Issue {
    id: String,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    design: Option<String>,
    #[serde(default)]
    acceptance_criteria: Option<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    priority: Option<u8>,
    #[serde(default)]
    issue_type: Option<String>,
    #[serde(default)]
    dependencies: Option<Vec<Dependency>>,
}

#[derive(Deserialize)]
struct Dependency {
    depends_on_id: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

impl Issue {
    fn named(&self, kind: &'static str) -> impl Iterator<Item = &str> {
        let is_it = move |on: &&Dependency| on.kind.as_deref().unwrap_or("blocks") == kind;
        self.dependencies.iter().flatten().filter(is_it).map(|on| on.depends_on_id.as_str())
    }

    fn is_epic(&self) -> bool {
        self.issue_type.as_deref() == Some("epic")
    }

    fn state(&self) -> State {
        match self.status.as_deref().unwrap_or("open") {
            "closed" | "tombstone" => State::Done,
            "deferred" => State::Left("it is deferred"),
            "pinned" => State::Left("it is pinned, and no work that ends"),
            _ => State::Open,
        }
    }
}

pub fn looks_like(place: &SpecPath) -> bool {
    file(place).is_some()
}

fn file(place: &SpecPath) -> Option<SpecPath> {
    match place.parts()[..] {
        [.., ".beads"] => place.below("issues.jsonl").ok()?,
        [.., ".beads", "issues.jsonl"] => place.above().below("issues.jsonl").ok()?,
        _ => None,
    }
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let file = file(place).ok_or_else(|| ReadError::NoFormat { path: place.name().to_owned() })?;
    let source = file.source_within(BYTES_MAX)?;
    let mut list = List::default();
    let mut issues: Vec<(usize, &str, Issue)> = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let broken = |why: String| ReadError::Broken { path: source.path.clone(), line: number, why };
        let record: serde_json::Value =
            serde_json::from_str(line).map_err(|error| broken(format!("this is no issue: {error}")))?;
        // Memories and the like are kept in the same file.
        if record["_type"].as_str().is_some_and(|record| record != "issue") {
            continue;
        }
        let issue: Issue =
            serde_json::from_str(line).map_err(|error| broken(format!("this is no issue: {error}")))?;
        if let Some((before, ..)) = issues.iter().find(|(.., known)| known.id == issue.id) {
            return Err(broken(format!("there is an issue {} in line {before} already", issue.id)));
        }
        issues.push((number, line, issue));
    }
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (.., issue) in &issues {
        for parent in issue.named("parent-child") {
            children.entry(parent.to_owned()).or_default().push(issue.id.clone());
        }
    }
    let by_id: BTreeMap<&str, &Issue> = issues.iter().map(|(.., issue)| (issue.id.as_str(), issue)).collect();
    for (number, line, issue) in &issues {
        let below = children.get(&issue.id);
        if issue.is_epic() && below.is_some() {
            list.groups.insert(issue.id.clone(), below.cloned().unwrap_or_default());
            continue;
        }
        let note =
            |why: String| Line { path: source.path.clone(), number: *number, text: issue.title.clone(), why };
        let kind = issue.issue_type.as_deref().unwrap_or("task");
        let mut state = issue.state();
        if NO_WORK.contains(&kind) && state == State::Open {
            state = State::Dropped("it is of a type that is no work");
        }
        let mut after: Vec<String> = waits(issue, &children);
        // Children wait for what the epic above them waits for.
        let mut above: Vec<&str> = issue.named("parent-child").collect();
        let mut seen = BTreeSet::new();
        while let Some(parent) = above.pop().filter(|parent| seen.insert(*parent)) {
            let Some(parent) = by_id.get(parent).filter(|parent| parent.is_epic()) else { continue };
            if parent.state() == State::Open {
                after.extend(waits(parent, &children));
            }
            above.extend(parent.named("parent-child"));
        }
        after.extend(below.into_iter().flatten().cloned());
        after.retain(|on| !is_epic_of(on, issue, &by_id));
        if issue.priority.is_some_and(|priority| priority > 4) {
            list.not_understood.push(note("a priority is 0 to 4: it is left out".to_owned()));
        }
        list.items.push(Item {
            key: issue.id.clone(),
            said: issue.title.trim().to_owned(),
            body: body(issue, &source.path),
            acceptance: criteria(issue.acceptance_criteria.as_deref().unwrap_or_default().lines()),
            state,
            after,
            priority: issue.priority.filter(|priority| *priority <= 4),
            mark: Some(Mark { path: source.path.clone(), line: (*line).to_owned() }),
            path: source.path.clone(),
            number: *number,
            ..Item::default()
        });
    }
    // An epic that is closed has nothing left, whatever is said of its children.
    for (.., issue) in issues.iter().filter(|(.., issue)| issue.state() == State::Done) {
        if let Some(members) = list.groups.get_mut(&issue.id) {
            members.clear();
        }
    }
    Ok(Found { title: "Beads".to_owned(), name: "beads".to_owned(), text: outline(&list), list: Some(list) })
}

/// What an issue waits for by its own words.
fn waits(issue: &Issue, children: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut after: Vec<String> =
        issue.named("blocks").chain(issue.named("conditional-blocks")).map(str::to_owned).collect();
    for on in issue.named("waits-for") {
        after.push(on.to_owned());
        after.extend(children.get(on).into_iter().flatten().cloned());
    }
    after
}

/// Whether this is an epic that the issue is itself below: nobody waits for what contains them.
fn is_epic_of(on: &str, issue: &Issue, by_id: &BTreeMap<&str, &Issue>) -> bool {
    let mut above: Vec<&str> = issue.named("parent-child").collect();
    let mut seen = BTreeSet::new();
    while let Some(parent) = above.pop() {
        if parent == on {
            return true;
        }
        if seen.insert(parent) {
            above.extend(by_id.get(parent).into_iter().flat_map(|parent| parent.named("parent-child")));
        }
    }
    false
}

fn body(issue: &Issue, path: &str) -> String {
    let mut body = issue.description.as_deref().unwrap_or_default().trim().to_owned();
    for (label, part) in [("Design", &issue.design), ("Notes", &issue.notes)] {
        let part = part.as_deref().unwrap_or_default().trim();
        if !part.is_empty() {
            body.push_str(&format!("\n\n{label}:\n\n{part}"));
        }
    }
    for on in issue.named("conditional-blocks") {
        body.push_str(&format!("\n\nThis is only wanted if {on} fails: look at what came of it first."));
    }
    body.push_str(&format!(
        "\n\nThis is issue {} of {path}. Leave its status as it is: it is closed when the work lands.",
        issue.id
    ));
    body.trim().to_owned()
}

/// What of a line is changed when an issue is closed.
#[derive(Deserialize)]
struct Places<'a> {
    #[serde(borrow)]
    status: &'a RawValue,
    #[serde(borrow, default)]
    updated_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    closed_at: Option<&'a RawValue>,
}

/// Closes the issue in its line: its status, and the times that beads wants of what is closed.
pub fn tick(tick: &Tick<'_>) -> Ticked {
    let line = &tick.mark.line;
    let Ok(places) = serde_json::from_str::<Places<'_>>(line) else { return Ticked::No("it has no status") };
    let Ok(at) = jiff::Timestamp::from_second(tick.at) else { return Ticked::No("it has no time") };
    let at = format!("\"{at}\"");
    let status = match places.closed_at {
        Some(_) => "\"closed\"".to_owned(),
        None => format!("\"closed\",\"closed_at\":{at}"),
    };
    let mut set = vec![(span(line, places.status.get()), status)];
    for place in [places.updated_at, places.closed_at].into_iter().flatten() {
        set.push((span(line, place.get()), at.clone()));
    }
    set.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut new = line.clone();
    for (place, value) in set {
        new.replace_range(place, &value);
    }
    match boxes::replaced(tick.content, line, &new) {
        Ticked::No(_) if is_closed(tick) => Ticked::Before,
        other => other,
    }
}

/// Sets the whole line of the issue as another version of the file has it, where the two do not agree on its state: a closed
/// one has more members than an open one.
pub fn restore(restore: &Restore<'_>) -> Option<String> {
    let of = |content: &str| {
        let issue =
            |line: &str| serde_json::from_str::<Issue>(line).ok().filter(|issue| issue.id == restore.key);
        let mut found = content.lines().filter_map(|line| Some((span(content, line), issue(line)?.state())));
        found.next().filter(|_| found.next().is_none())
    };
    let (there, here) = (of(restore.from)?, of(restore.to)?);
    if there.1 == here.1 {
        return None;
    }
    put_back(restore, |content| of(content).map(|(place, _)| vec![place]))
}

/// Whether the file has the issue as closed, in whatever line.
fn is_closed(tick: &Tick<'_>) -> bool {
    let issue = |line: &str| serde_json::from_str::<Issue>(line).ok().filter(|issue| issue.id == tick.key);
    let mut found = tick.content.lines().filter_map(issue);
    found.next().is_some_and(|issue| issue.state() == State::Done)
}
