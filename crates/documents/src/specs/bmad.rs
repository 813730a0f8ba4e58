//! BMAD: an epics file (or a folder of them), story files, and `sprint-status.yaml`.
//!
//! The stories of an epic depend on each other in order; epics are independent. `sprint-status.yaml` decides what is done; without
//! it, the story's own file does.

use std::collections::BTreeMap;

use kernel::specs::Mark;

use super::list::{Item, List, State};
use super::spec_path::{Source, SpecPath, joined};
use super::text::{self, TextLine, strip_word};
use super::{Found, Line, ReadError, Restore, Tick, Ticked, boxes, put_back};

const STATUS_FILE: &str = "sprint-status.yaml";
/// Where the files of a project lie, seen from one of these folders.
const FOLDERS: [&str; 5] =
    ["planning-artifacts", "implementation-artifacts", "sprint-artifacts", "stories", "epics"];
const OPEN: [&str; 7] =
    ["backlog", "drafted", "ready-for-dev", "in-progress", "review", "blocked", "optional"];

pub fn looks_like(place: &SpecPath) -> bool {
    let name = place.file_name();
    if place.is_folder() {
        return ["epics.md", STATUS_FILE].iter().any(|file| place.has(file))
            || FOLDERS.iter().any(|folder| {
                place.has(&format!("{folder}/epics.md")) || place.has(&format!("{folder}/{STATUS_FILE}"))
            })
            || name == "epics"
                && place.names().is_ok_and(|names| names.iter().any(|name| is_epic_file(name)));
    }
    if name == STATUS_FILE {
        return true;
    }
    let stories = || place.source().is_ok_and(|source| has_stories(&source.text));
    name.ends_with(".md") && stories()
}

fn is_epic_file(name: &str) -> bool {
    strip_word(name, "epic").is_some() && name.ends_with(".md")
}

fn has_stories(source: &str) -> bool {
    text::lines(source)
        .iter()
        .any(|line| !line.quiet && text::heading(line.text).is_some_and(|(_, said)| story(said).is_some()))
}

/// `Story 1.2: Title`, as its number and title.
fn story(said: &str) -> Option<(String, String)> {
    let (number, title) = numbered(said, "Story ")?;
    let epic_and_place = number.split('.').count() == 2;
    (epic_and_place && !title.is_empty()).then_some((number, title))
}

fn numbered(said: &str, label: &str) -> Option<(String, String)> {
    let rest = strip_word(said.trim_start_matches('*'), label)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    let title = rest[end..].trim().trim_start_matches([':', '-', '–', '—']).trim();
    let whole = !number.is_empty() && number.split('.').all(|part| !part.is_empty());
    whole.then(|| (number.to_owned(), title.to_owned()))
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let folders = folders(&place.folder())?;
    let status = statuses(&folders)?;
    let epics = epics(place, &folders)?;
    if epics.is_empty() {
        let why = "there is no file of epics beside it: `epics.md`, with a heading `### Story 1.1: …` for each story";
        return Err(ReadError::Broken { path: place.name().to_owned(), line: 1, why: why.to_owned() });
    }
    let mut list = List::default();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for source in &epics {
        let epic = |_, said: &str| numbered(said, "Epic ").filter(|(_, title)| !title.is_empty());
        names.extend(text::sections(&source.text, epic).into_iter().map(|(epic, _)| epic));
    }
    for source in &epics {
        for ((number, title), inside, at) in stories(source) {
            let file = story_file(&folders, &number)?;
            let (epic, _) = number.split_once('.').unwrap_or_default();
            let mut criteria = text::criteria(text::labelled(&inside, "Acceptance Criteria"));
            if let Some(file) = file.as_ref().filter(|_| criteria.is_empty()) {
                let lines = text::lines(&file.text);
                criteria = text::criteria(text::labelled(&lines, "Acceptance Criteria"));
            }
            let mark = status
                .as_ref()
                .and_then(|status| status.of(&number))
                .or_else(|| file.as_ref().and_then(status_of_file));
            let (state, mark) = match mark {
                Some(entry) => {
                    if !OPEN.contains(&entry.status.as_str()) && entry.status != "done" {
                        list.not_understood.push(Line {
                            path: entry.mark.path.clone(),
                            number: entry.number,
                            text: entry.mark.line.trim().to_owned(),
                            why: format!(
                                "`{}` is no status that is known: it is taken as open",
                                entry.status
                            ),
                        });
                    }
                    let done = entry.status == "done";
                    (if done { State::Done } else { State::Open }, Some(entry.mark))
                }
                None => (State::Open, None),
            };
            if list.items.iter().any(|item| item.key == number) {
                let line = TextLine { number: at, text: &title, quiet: false };
                list.not_understood(source, line, format!("there is a story {number} before it"));
                continue;
            }
            let of = names
                .get(epic)
                .map(|name| format!(" It is part of epic {epic}: {name}."))
                .unwrap_or_default();
            let more = file
                .as_ref()
                .filter(|file| file.path != source.path)
                .map(|file| format!(" Its own file is {}.", file.path))
                .unwrap_or_default();
            let body = format!(
                "{}\n\nThis is story {number} of {}.{of}{more} Leave its status as it is: it is set when the work lands.",
                told(&inside),
                source.path
            );
            list.items.push(Item {
                key: number,
                said: title,
                body: body.trim().to_owned(),
                acceptance: criteria,
                state,
                mark,
                path: source.path.clone(),
                number: at,
                ..Item::default()
            });
        }
    }
    list.items.sort_by_key(|item| {
        item.key.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect::<Vec<_>>()
    });
    let mut epics_of: BTreeMap<String, Vec<Vec<usize>>> = BTreeMap::new();
    for (at, item) in list.items.iter().enumerate() {
        let epic = item.key.split('.').next().unwrap_or_default().to_owned();
        epics_of.entry(epic).or_default().push(vec![at]);
    }
    for rows in epics_of.values() {
        list.in_rows(rows);
    }
    let first = &epics[0];
    let title = text::title(&first.text).unwrap_or_else(|| "Epics".to_owned());
    let sources: Vec<&Source> = epics.iter().collect();
    let name = if epics.len() == 1 { stem(&first.path) } else { "epics".to_owned() };
    Ok(Found { title, name, text: joined(&sources), list: Some(list) })
}

fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name).to_owned()
}

/// The folder, those below it that BMAD has, and the same of the one above it.
fn folders(at: &SpecPath) -> Result<Vec<SpecPath>, ReadError> {
    let mut found = vec![at.folder()];
    for base in [at.folder(), at.above()] {
        for name in FOLDERS {
            found.extend(base.below(name)?.filter(SpecPath::is_folder));
        }
    }
    if FOLDERS.contains(&at.file_name()) {
        found.push(at.above());
    }
    Ok(found)
}

fn epics(place: &SpecPath, folders: &[SpecPath]) -> Result<Vec<Source>, ReadError> {
    if !place.is_folder() && place.file_name() != STATUS_FILE {
        return Ok(vec![place.source()?]);
    }
    for folder in folders {
        if let Some(source) = folder.file("epics.md")? {
            return Ok(vec![source]);
        }
    }
    for folder in folders {
        let names: Vec<String> = folder.names()?.into_iter().filter(|name| is_epic_file(name)).collect();
        let mut sources = Vec::new();
        for name in names {
            sources.extend(folder.file(&name)?.filter(|source| has_stories(&source.text)));
        }
        if !sources.is_empty() {
            return Ok(sources);
        }
    }
    Ok(Vec::new())
}

/// Each story with its lines and where it begins.
fn stories(source: &Source) -> Vec<((String, String), Vec<TextLine<'_>>, usize)> {
    let numbers = text::lines(&source.text)
        .into_iter()
        .filter(|line| !line.quiet)
        .filter(|line| text::heading(line.text).is_some_and(|(_, said)| story(said).is_some()))
        .map(|line| line.number);
    let sections = text::sections(&source.text, |_, said| story(said));
    sections.into_iter().zip(numbers).map(|((story, inside), at)| (story, inside, at)).collect()
}

/// A story's text without its criteria, which stand apart.
fn told(inside: &[TextLine<'_>]) -> String {
    let criteria = text::labelled(inside, "Acceptance Criteria");
    let is_criterion = |line: &TextLine<'_>| criteria.iter().any(|text| std::ptr::eq(*text, line.text));
    let is_label = |line: &TextLine<'_>| {
        let said = line.text.trim().trim_start_matches(['#', ' ', '*']);
        strip_word(said, "Acceptance Criteria").is_some()
    };
    let rest =
        inside.iter().filter(|line| !is_criterion(line) && !is_label(line) && line.text.trim() != "---");
    rest.map(|line| line.text).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A status and the line that it stands in.
#[derive(Clone)]
struct Entry {
    status: String,
    number: usize,
    mark: Mark,
}

/// `development_status` of `sprint-status.yaml`: one line for each story.
struct Statuses {
    entries: BTreeMap<String, Entry>,
}

impl Statuses {
    /// The entry of story 1.2 is named `1-2-` and its title.
    fn of(&self, number: &str) -> Option<Entry> {
        let name = number.replace('.', "-");
        let is_it =
            |key: &str| key.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        self.entries.iter().find(|(key, _)| is_it(key)).map(|(_, entry)| entry.clone())
    }
}

fn statuses(folders: &[SpecPath]) -> Result<Option<Statuses>, ReadError> {
    for folder in folders {
        let Some(source) = folder.file(STATUS_FILE)? else { continue };
        return read_statuses(&source).map(Some);
    }
    Ok(None)
}

/// A flat map below one key: no more of YAML is understood, and anything else there is an error.
fn read_statuses(source: &Source) -> Result<Statuses, ReadError> {
    let broken = |line: usize, why: &str| {
        Err(ReadError::Broken { path: source.path.clone(), line, why: why.to_owned() })
    };
    let mut entries = BTreeMap::new();
    let (mut inside, mut known) = (false, false);
    for (number, line) in (1..).zip(source.text.lines()) {
        let text = line.split(" #").next().unwrap_or_default().trim_end();
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        if !text.starts_with([' ', '\t']) {
            inside = text == "development_status:";
            known |= inside;
            continue;
        }
        if !inside {
            continue;
        }
        let Some((key, value)) = text.trim().split_once(':') else {
            return broken(number, "this is no line `story: status`");
        };
        let (key, value) = (unquoted(key), unquoted(value));
        if value.is_empty() || value.starts_with(['[', '{', '|', '>', '&', '*']) {
            return broken(number, "a status is one word, such as `ready-for-dev`");
        }
        let mark = Mark { path: source.path.clone(), line: line.to_owned() };
        let entry = Entry { status: value.to_owned(), number, mark };
        if entries.insert(key.to_owned(), entry).is_some() {
            return broken(number, "this story stands there twice; leave one of them");
        }
    }
    if !known {
        return broken(1, "there is no `development_status:` in it");
    }
    Ok(Statuses { entries })
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |quote| text.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

fn story_file(folders: &[SpecPath], number: &str) -> Result<Option<Source>, ReadError> {
    let begins = format!("{}-", number.replace('.', "-"));
    for folder in folders {
        let is_it = |name: &String| name.starts_with(&begins) && name.ends_with(".md");
        if let Some(name) = folder.names()?.into_iter().find(is_it) {
            return folder.file(&name);
        }
    }
    Ok(None)
}

/// `Status: ready-for-dev` near the top of a story's own file.
fn status_of_file(file: &Source) -> Option<Entry> {
    let line = text::lines(&file.text)
        .into_iter()
        .find(|line| !line.quiet && strip_word(line.text, "Status:").is_some())?;
    let status = strip_word(line.text, "Status:")?.trim().to_ascii_lowercase();
    let mark = Mark { path: file.path.clone(), line: line.text.to_owned() };
    Some(Entry { status, number: line.number, mark })
}

/// The word after the colon becomes `done`; what is around it stays.
pub fn tick(tick: &Tick<'_>) -> Ticked {
    let line = &tick.mark.line;
    let Some((before, after)) = around_status(line) else { return Ticked::No("the line has no status") };
    boxes::replaced(tick.content, line, &[before, "done", after].concat())
}

/// What stands before and after the word of a status.
fn around_status(line: &str) -> Option<(&str, &str)> {
    let colon = line.find(':')?;
    let value = line[colon + 1..].split(" #").next().unwrap_or_default();
    let word = Some(unquoted(value)).filter(|word| !word.is_empty())?;
    let at = colon + 1 + value.find(word).unwrap_or_default();
    Some((&line[..at], &line[at + word.len()..]))
}

/// Sets the status as another version of the file has it.
pub fn restore(restore: &Restore<'_>) -> Option<String> {
    let around = around_status(&restore.mark.line)?;
    put_back(restore, |content| boxes::between(content, around).map(|place| vec![place]))
}
