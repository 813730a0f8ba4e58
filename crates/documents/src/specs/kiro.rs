//! Kiro and cc-sdd: `.kiro/specs/NAME/` with `requirements.md`, `design.md` and `tasks.md`.
//!
//! Tasks depend on each other in the order of their numbers; neighbours marked `(P)` below the same parent are independent. A task
//! with tasks below it is not a task of its own: it is ticked with the last of them. `[ ]*` is optional and is left out.

use std::collections::BTreeMap;

use kernel::specs::Mark;

use super::list::{Item, List, State};
use super::plain::{SIGN, state, told};
use super::spec_path::{Source, SpecPath, joined};
use super::text::{self, BoxState, Entry, TaskBox, TextLine, strip_word};
use super::{Found, ReadError, Restore, Ticked, boxes, put_back};

const NO_NUMBER: &str = "a task has a number such as 2.1 after its box";

pub fn looks_like(place: &SpecPath) -> bool {
    let folder = place.folder();
    let of_it =
        place.is_folder() || ["requirements.md", "design.md", "tasks.md"].contains(&place.file_name());
    of_it && matches!(folder.parts()[..], [.., ".kiro", "specs", _])
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let folder = place.folder();
    let requirements = folder.file("requirements.md")?;
    let (design, tasks) = (folder.file("design.md")?, folder.file("tasks.md")?);
    let name = folder.file_name().to_owned();
    let sources: Vec<&Source> = [&requirements, &design, &tasks].into_iter().flatten().collect();
    if sources.is_empty() {
        return Err(ReadError::Empty { path: folder.name().to_owned() });
    }
    let all = joined(&sources);
    let criteria = requirements.as_ref().map(|source| criteria(&source.text)).unwrap_or_default();
    let others: Vec<&str> =
        [&requirements, &design].into_iter().flatten().map(|source| source.path.as_str()).collect();
    let list = tasks.as_ref().map(|tasks| list(tasks, &criteria, &others));
    Ok(Found { title: spoken(&name), name, text: all, list })
}

/// A name as a title.
pub fn spoken(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The criteria of each requirement, by its number.
fn criteria(requirements: &str) -> BTreeMap<String, Vec<String>> {
    let is_requirement = |_, said: &str| {
        let said = strip_word(said, "Requirement ").unwrap_or(said);
        text::number(said).map(|(number, _)| number.to_owned()).filter(|number| !number.contains('.'))
    };
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (number, inside) in text::sections(requirements, is_requirement) {
        let listed = text::labelled(&inside, "Acceptance Criteria");
        found.entry(number).or_default().extend(text::criteria(listed));
    }
    found
}

/// A task's line: its number, whether it may stand beside its neighbours, and the text.
fn said(text: &str) -> Option<(&str, bool, &str)> {
    let (number, rest) = text::number(text)?;
    let (parallel, rest) = match rest.strip_prefix("(P)").or_else(|| rest.strip_suffix("(P)")) {
        Some(rest) => (true, rest.trim()),
        None => (false, rest),
    };
    (!rest.is_empty()).then_some((number, parallel, rest))
}

fn above(number: &str) -> &str {
    number.rsplit_once('.').map_or("", |(above, _)| above)
}

fn list(tasks: &Source, criteria: &BTreeMap<String, Vec<String>>, others: &[&str]) -> List {
    let mut list = List::default();
    let mut loose = Vec::new();
    let is_task = |task: &TaskBox<'_>, _: Option<&Entry<'_>>| said(task.text).is_some();
    let mut entries = text::entries(&tasks.text, is_task, |line| loose.push(line));
    for line in loose {
        list.not_understood(tasks, line, NO_NUMBER);
    }
    let of =
        |entry: &Entry<'_>| said(entry.task.text).map(|(number, ..)| number.to_owned()).unwrap_or_default();
    // What has nothing below it but what may be left out is to be done itself.
    let needed = entries.iter().filter(|entry| !entry.task.star);
    let parents: Vec<String> = needed.map(|entry| above(&of(entry)).to_owned()).collect();
    entries.sort_by_key(|entry| parts(&of(entry)));
    let titles: BTreeMap<String, String> = entries
        .iter()
        .filter_map(|entry| {
            said(entry.task.text).map(|(number, _, text)| (number.to_owned(), text.to_owned()))
        })
        .collect();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut before: Option<(String, bool)> = None;
    for entry in &entries {
        let Some((number, parallel, text)) = said(entry.task.text) else { continue };
        let line = TextLine { number: entry.number, text: entry.line, quiet: false };
        if !above(number).is_empty() && !entry.task.star {
            list.groups.entry(above(number).to_owned()).or_default().push(number.to_owned());
        }
        if parents.iter().any(|parent| parent == number) {
            continue;
        }
        if entry.task.tick == BoxState::Other {
            list.not_understood(tasks, line, SIGN);
            continue;
        }
        let mut acceptance = Vec::new();
        for named in annotated(entry, "Requirements") {
            match criterion(criteria, &named) {
                Some(found) => acceptance.extend(found),
                None if criteria.is_empty() => {}
                None => list.not_understood(tasks, line, format!("there is no requirement {named}")),
            }
        }
        let state = match state(entry.task.tick) {
            State::Open if entry.task.star => State::Left("it is optional (`[ ]*`) and not loaded"),
            state => state,
        };
        let at = list.items.len();
        let parent = titles.get(above(number)).map(|title| (above(number), title.as_str()));
        list.items.push(Item {
            key: number.to_owned(),
            said: text.to_owned(),
            body: body(&entry.details(), number, parent, tasks, others),
            acceptance,
            state,
            after: annotated(entry, "Depends"),
            mark: Some(Mark { path: tasks.path.clone(), line: entry.line.to_owned() }),
            path: tasks.path.clone(),
            number: entry.number,
            ..Item::default()
        });
        let beside = before == Some((above(number).to_owned(), true));
        match rows.last_mut().filter(|_| parallel && beside) {
            Some(row) => row.push(at),
            None => rows.push(vec![at]),
        }
        before = Some((above(number).to_owned(), parallel));
    }
    list.in_rows(&rows);
    list
}

/// For the order of numbers: `2.10` comes after `2.9`.
fn parts(number: &str) -> Vec<u32> {
    number.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

/// What `_Requirements: 1.2, 1.3_` names, in the task's details or in its own line.
fn annotated(entry: &Entry<'_>, label: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in entry.details.iter().chain([&entry.task.text]) {
        let Some(at) = line.to_ascii_lowercase().find(&format!("_{}:", label.to_ascii_lowercase())) else {
            continue;
        };
        let rest = &line[at + label.len() + 2..];
        let rest = &rest[..rest.find('_').unwrap_or(rest.len())];
        let names = rest.split([',', ';']).map(|name| name.trim().trim_end_matches('.').to_owned());
        found.extend(names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("none")));
    }
    found
}

/// One criterion for `1.2`, all of the requirement for `1`.
fn criterion(criteria: &BTreeMap<String, Vec<String>>, named: &str) -> Option<Vec<String>> {
    match named.split_once('.') {
        Some((requirement, place)) => {
            let place: usize = place.parse().ok()?;
            let found = criteria.get(requirement)?.get(place.checked_sub(1)?)?;
            Some(vec![format!("{named}: {found}")])
        }
        None => {
            let all = criteria.get(named)?;
            Some((1..).zip(all).map(|(place, found)| format!("{named}.{place}: {found}")).collect())
        }
    }
}

fn body(
    details: &str,
    number: &str,
    parent: Option<(&str, &str)>,
    tasks: &Source,
    others: &[&str],
) -> String {
    let mut from = format!("This is task {number} of {}", tasks.path);
    if let Some((above, title)) = parent {
        from.push_str(&format!(", part of {above}: {title}"));
    }
    from.push('.');
    if !others.is_empty() {
        from.push_str(&format!(" What is wanted is in {}.", others.join(" and ")));
    }
    told(details, &from, tasks)
}

/// Ticks the task and, when it was the last one below it, its parent, and so on upwards.
pub fn tick(tick: &super::Tick<'_>) -> Ticked {
    let mut content = match boxes::tick(tick) {
        Ticked::Now(content) => content,
        other => return other,
    };
    let mut number = tick.key;
    while !above(number).is_empty() {
        let parent = above(number);
        let numbered = numbered(&content);
        let below = |number: &str| number.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'));
        let open = |task: &TaskBox<'_>| task.tick != BoxState::Done && !task.star;
        if numbered.iter().any(|(task, number, _)| below(number) && open(task)) {
            break;
        }
        let mut lines =
            numbered.iter().filter(|(task, number, _)| *number == parent && task.tick == BoxState::Open);
        let (Some((.., line)), None) = (lines.next(), lines.next()) else { break };
        let Some(Ticked::Now(with_parent)) =
            boxes::ticked(line).map(|new| boxes::replaced(&content, line, &new))
        else {
            break;
        };
        content = with_parent;
        number = parent;
    }
    Ticked::Now(content)
}

/// The boxes that have a number, with it and their whole line.
fn numbered(content: &str) -> Vec<(TaskBox<'_>, &str, &str)> {
    let loud = text::lines(content).into_iter().filter(|line| !line.quiet);
    let boxes = loud.filter_map(|line| {
        let task = text::task_box(line.text)?;
        Some((task, said(task.text)?.0, line.text))
    });
    boxes.collect()
}

/// Sets the box of the task, and those of its parents, as another version of the file has them.
pub fn restore(restore: &Restore<'_>) -> Option<String> {
    let own = text::sign(&restore.mark.line)?;
    let around = (&restore.mark.line[..own.0], &restore.mark.line[own.0 + own.1.len_utf8()..]);
    put_back(restore, |content| {
        let mut places = vec![boxes::between(content, around)?];
        let numbered = numbered(content);
        let mut number = above(restore.key);
        while !number.is_empty() {
            let mut parents = numbered.iter().filter(|(_, known, _)| *known == number);
            let (Some((.., line)), None) = (parents.next(), parents.next()) else { break };
            let (at, sign) = text::sign(line)?;
            let start = super::task_master::span(content, line).start + at;
            places.push(start..start + sign.len_utf8());
            number = above(number);
        }
        Some(places)
    })
}
