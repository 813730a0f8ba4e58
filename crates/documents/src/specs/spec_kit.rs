//! spec-kit: `specs/NNN-name/` with `spec.md`, `plan.md` and `tasks.md`.
//!
//! The phases of `tasks.md` depend on each other in order, and so do the tasks of a phase, except that neighbours marked `[P]` are
//! independent. The acceptance criteria of a user story belong to its last task.

use kernel::specs::Mark;

use super::list::{Item, List};
use super::plain::{SIGN, state, told};
use super::spec_path::{Source, SpecPath, joined};
use super::text::{self, BoxState, TextLine, after_label, strip_word};
use super::{Found, ReadError};

const NO_NUMBER: &str = "a task has a number such as T012 after its box";

pub fn looks_like(place: &SpecPath) -> bool {
    let folder = place.folder();
    let named =
        matches!(folder.parts()[..], [.., "specs", name] if name.starts_with(|c: char| c.is_ascii_digit()));
    let of_it = place.is_folder() || ["spec.md", "plan.md", "tasks.md"].contains(&place.file_name());
    let files = folder.has("spec.md") && (folder.has("plan.md") || folder.has("tasks.md"));
    of_it && (files || named && (folder.has("spec.md") || folder.has("tasks.md")))
}

/// A user story of `spec.md`.
struct UserStory {
    number: String,
    title: String,
    priority: Option<u8>,
    criteria: Vec<String>,
}

/// A task's line after its number.
struct Said<'a> {
    key: &'a str,
    parallel: bool,
    story: Option<&'a str>,
    text: &'a str,
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let folder = place.folder();
    let (spec, plan, tasks) = (folder.file("spec.md")?, folder.file("plan.md")?, folder.file("tasks.md")?);
    let name = folder.file_name().to_owned();
    let title = spec.as_ref().and_then(|spec| text::title(&spec.text)).unwrap_or_else(|| name.clone());
    let title = after_label(&title, &["Feature Specification", "Feature"]).to_owned();
    let sources: Vec<&Source> = [&spec, &plan, &tasks].into_iter().flatten().collect();
    let all = joined(&sources);
    let stories = spec.as_ref().map(|spec| user_stories(&spec.text)).unwrap_or_default();
    let others: Vec<&str> = [&spec, &plan].into_iter().flatten().map(|source| source.path.as_str()).collect();
    let list = tasks.as_ref().map(|tasks| list(tasks, &stories, &others));
    Ok(Found { title, name, text: all, list })
}

fn user_stories(spec: &str) -> Vec<UserStory> {
    let is_story = |_, said: &str| {
        let (number, rest) = text::number(strip_word(said, "User Story ")?)?;
        let (title, priority) = match rest.rsplit_once("(Priority:") {
            Some((title, priority)) => {
                (title, priority.trim().strip_prefix(['P', 'p']).and_then(|p| p.chars().next()))
            }
            None => (rest, None),
        };
        let title = title.trim().trim_start_matches(['-', '–', '—', ':']).trim().to_owned();
        let priority = priority.and_then(|digit| digit.to_digit(10)).map(|digit| digit.min(4) as u8);
        Some((number.to_owned(), title, priority))
    };
    let story = |((number, title, priority), inside): (_, Vec<TextLine<'_>>)| {
        let criteria = text::criteria(text::labelled(&inside, "Acceptance Scenarios"));
        UserStory { number, title, priority, criteria }
    };
    text::sections(spec, is_story).into_iter().map(story).collect()
}

fn list(tasks: &Source, stories: &[UserStory], others: &[&str]) -> List {
    let mut list = List::default();
    let mut loose = Vec::new();
    let is_task = |task: &text::TaskBox<'_>, _: Option<&text::Entry<'_>>| said(task.text).is_some();
    let entries = text::entries(&tasks.text, is_task, |line| loose.push(line));
    for line in loose {
        list.not_understood(tasks, line, NO_NUMBER);
    }
    // Neighbours that may stand side by side, within one phase.
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut before: Option<(String, bool)> = None;
    let mut of_story: Vec<Option<String>> = Vec::new();
    for entry in &entries {
        let Some(said) = said(entry.task.text) else { continue };
        let line = TextLine { number: entry.number, text: entry.line, quiet: false };
        if entry.task.tick == BoxState::Other {
            list.not_understood(tasks, line, SIGN);
            continue;
        }
        let phase = entry.headings.iter().rev().find(|said| strip_word(said, "Phase").is_some());
        let phase = phase.or(entry.headings.get(1)).copied().unwrap_or_default().to_owned();
        let (after, unclear) = named(said.text);
        if unclear {
            list.not_understood(tasks, line, "what it depends on is named by no number such as T012");
        }
        let story = said.story.and_then(|number| stories.iter().find(|story| story.number == number));
        if let Some(number) = said.story.filter(|_| story.is_none() && !stories.is_empty()) {
            list.not_understood(tasks, line, format!("there is no user story {number}"));
        }
        let lower = phase.to_ascii_lowercase();
        let at = list.items.len();
        list.items.push(Item {
            key: said.key.to_owned(),
            said: said.text.to_owned(),
            body: body(&entry.details(), said.key, &phase, story, tasks, others),
            state: state(entry.task.tick),
            after,
            infrastructure: ["setup", "foundation"].iter().any(|word| lower.contains(word)),
            priority: story.and_then(|story| story.priority),
            mark: Some(Mark { path: tasks.path.clone(), line: entry.line.to_owned() }),
            path: tasks.path.clone(),
            number: entry.number,
            ..Item::default()
        });
        of_story.push(said.story.map(str::to_owned));
        match rows.last_mut().filter(|_| said.parallel && before == Some((phase.clone(), true))) {
            Some(row) => row.push(at),
            None => rows.push(vec![at]),
        }
        before = Some((phase, said.parallel));
    }
    list.in_rows(&rows);
    for story in stories {
        let keys: Vec<String> = list
            .items
            .iter()
            .zip(&of_story)
            .filter(|(_, of)| of.as_deref() == Some(&story.number))
            .map(|(item, _)| item.key.clone())
            .collect();
        list.with_criteria(|item| keys.contains(&item.key), &story.criteria);
    }
    list
}

/// `T012 [P] [US1] text`. What is after the number may be missing.
fn said(text: &str) -> Option<Said<'_>> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let key = text[..end].trim_end_matches([':', '.']).trim_matches('*');
    if !is_number(key) {
        return None;
    }
    let mut said = Said { key, parallel: false, story: None, text: text[end..].trim() };
    while let Some((label, rest)) = said.text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        match strip_word(label, "US") {
            _ if label.eq_ignore_ascii_case("P") => said.parallel = true,
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() => {
                said.story = Some(number);
            }
            _ => break,
        }
        said.text = rest.trim_start();
    }
    (!said.text.is_empty()).then_some(said)
}

/// `T012`, or `T012a`.
fn is_number(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('T') else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && rest.len() - digits <= 1 && rest[digits..].bytes().all(|byte| byte.is_ascii_lowercase())
}

/// The numbers after `depends on`, and whether something else is named there.
fn named(text: &str) -> (Vec<String>, bool) {
    let lower = text.to_ascii_lowercase();
    let (mut found, mut unclear) = (Vec::new(), false);
    for (at, words) in lower.match_indices("depends on") {
        let rest = &text[at + words.len()..];
        let rest = &rest[..rest.find([')', ';']).unwrap_or(rest.len())];
        let numbers = numbers(rest);
        unclear |= numbers.is_empty();
        found.extend(numbers);
    }
    (found, unclear)
}

/// Numbers as `T012, T013` or `T012-T015`.
fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut range = false;
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        if is_number(word) {
            let from = found.last().filter(|_| range).and_then(|last| last[1..].parse::<u32>().ok());
            if let (Some(from), Ok(to)) = (from, word[1..].parse::<u32>())
                && to.saturating_sub(from) < kernel::specs::STORIES_MAX as u32
            {
                let width = word.len() - 1;
                found.extend((from + 1..to).map(|number| format!("T{number:0width$}")));
            }
            found.push(word.to_owned());
            range = false;
        }
        let gap = &rest[end..];
        let next = gap.find(is_part).unwrap_or(gap.len());
        range |= gap[..next].contains(['-', '–', '—']) && !found.is_empty() && is_number(word);
        rest = &gap[next..];
    }
    found
}

fn body(
    details: &str,
    key: &str,
    phase: &str,
    story: Option<&UserStory>,
    tasks: &Source,
    others: &[&str],
) -> String {
    let mut from = format!("This is {key} of {}", tasks.path);
    if !phase.is_empty() {
        from.push_str(&format!(", in \"{phase}\""));
    }
    from.push('.');
    if let Some(story) = story {
        from.push_str(&format!(" It is part of user story {}: {}.", story.number, story.title));
    }
    if !others.is_empty() {
        from.push_str(&format!(" What is wanted is in {}.", others.join(" and ")));
    }
    told(details, &from, tasks)
}
