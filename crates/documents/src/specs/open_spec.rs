//! OpenSpec: `openspec/changes/ID/` with `proposal.md`, `design.md`, `tasks.md` and `specs/**/spec.md`.
//!
//! The tasks of a change form a chain. Its scenarios belong to the last one: no earlier one can fulfil them all.

use kernel::specs::Mark;

use super::kiro::spoken;
use super::list::{Item, List};
use super::plain::{SIGN, state, told};
use super::spec_path::{Source, SpecPath, joined};
use super::text::{self, BoxState, Entry, TaskBox, TextLine, after_label, strip_word};
use super::{Found, ReadError};

/// How deep `specs` is looked into.
const DEPTH_MAX: usize = 4;

pub fn looks_like(place: &SpecPath) -> bool {
    change(place).is_some()
}

/// The folder of the change that a place is in.
fn change(place: &SpecPath) -> Option<SpecPath> {
    let is_change = |parts: &[&str]| {
        matches!(parts, [.., "openspec", "changes", name] if *name != "archive")
            || matches!(parts, [.., "openspec", "changes", "archive", _])
    };
    let mut folder = place.folder();
    loop {
        if is_change(&folder.parts()) {
            return Some(folder);
        }
        if folder.name() == "." {
            return None;
        }
        folder = folder.above();
    }
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let folder = change(place).ok_or_else(|| ReadError::NoFormat { path: place.name().to_owned() })?;
    let proposal = folder.file("proposal.md")?;
    let (design, tasks) = (folder.file("design.md")?, folder.file("tasks.md")?);
    let mut specs = Vec::new();
    if let Some(below) = folder.below("specs")? {
        find_specs(&below, DEPTH_MAX, &mut specs)?;
    }
    let name = folder.file_name().to_owned();
    let title = proposal.as_ref().and_then(|source| text::title(&source.text));
    let title = title.map(|title| after_label(&title, &["Change", "Change Proposal", "Proposal"]).to_owned());
    let title =
        title.filter(|title| !title.eq_ignore_ascii_case("proposal")).unwrap_or_else(|| spoken(&name));
    let mut sources: Vec<&Source> = [&proposal, &design, &tasks].into_iter().flatten().collect();
    sources.extend(&specs);
    if sources.is_empty() {
        return Err(ReadError::Empty { path: folder.name().to_owned() });
    }
    let all = joined(&sources);
    let list = tasks.as_ref().map(|tasks| {
        let others: Vec<&str> = [&proposal, &design]
            .into_iter()
            .flatten()
            .chain(&specs)
            .map(|source| source.path.as_str())
            .collect();
        let mut list = list(tasks, &others);
        let scenarios: Vec<String> = specs.iter().flat_map(|spec| scenarios(&spec.text)).collect();
        list.with_criteria(|_| true, &scenarios);
        list
    });
    Ok(Found { title, name, text: all, list })
}

fn find_specs(folder: &SpecPath, depth: usize, found: &mut Vec<Source>) -> Result<(), ReadError> {
    if !folder.is_folder() || depth == 0 {
        return Ok(());
    }
    for name in folder.names()? {
        let Some(place) = folder.below(&name)? else { continue };
        if place.is_folder() {
            find_specs(&place, depth - 1, found)?;
        } else if name == "spec.md" {
            found.push(place.source()?);
        }
    }
    Ok(())
}

/// Each scenario in one line, with its requirement. Of what is removed nothing is asked.
fn scenarios(spec: &str) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    let (mut requirement, mut removed, mut open) = ("", false, false);
    for line in text::lines(spec).into_iter().filter(|line| !line.quiet) {
        if let Some((rank, said)) = text::heading(line.text) {
            open = false;
            if rank <= 2 {
                removed = strip_word(said, "REMOVED").is_some() || strip_word(said, "RENAMED").is_some();
            } else if let Some(name) = strip_word(said, "Requirement:") {
                requirement = name.trim();
            } else if let Some(name) = strip_word(said, "Scenario:").filter(|_| !removed) {
                found.push((format!("{requirement}, {}:", name.trim()), Vec::new()));
                open = true;
            }
        } else if let Some((_, inside)) = found.last_mut().filter(|_| open) {
            inside.push(line.text);
        }
    }
    let one = |(name, inside): (String, Vec<&str>)| {
        let said = text::criteria(inside).join(" ");
        format!("{name} {said}").trim().to_owned()
    };
    found.into_iter().map(one).collect()
}

fn list(tasks: &Source, others: &[&str]) -> List {
    let mut list = List::default();
    let outermost = |task: &TaskBox<'_>, last: Option<&Entry<'_>>| {
        text::number(task.text).is_some() || last.is_none_or(|last| task.indent <= last.task.indent)
    };
    let entries = text::entries(&tasks.text, outermost, |_| {});
    for entry in &entries {
        let line = TextLine { number: entry.number, text: entry.line, quiet: false };
        let (key, said) = match text::number(entry.task.text) {
            Some((number, said)) if !said.is_empty() => (number.to_owned(), said),
            _ => (format!("line-{}", entry.number), entry.task.text),
        };
        if entry.task.tick == BoxState::Other || said.is_empty() {
            list.not_understood(tasks, line, if said.is_empty() { "this box is for nothing" } else { SIGN });
            continue;
        }
        let group = entry.headings.last().map(|group| format!(", in \"{group}\"")).unwrap_or_default();
        let mut from = format!("This is task {key} of {}{group}.", tasks.path);
        if !others.is_empty() {
            from.push_str(&format!(" What is wanted is in {}.", others.join(" and ")));
        }
        list.items.push(Item {
            said: said.to_owned(),
            body: told(&entry.details(), &from, tasks),
            state: state(entry.task.tick),
            mark: Some(Mark { path: tasks.path.clone(), line: entry.line.to_owned() }),
            path: tasks.path.clone(),
            number: entry.number,
            key,
            ..Item::default()
        });
    }
    let rows: Vec<Vec<usize>> = (0..list.items.len()).map(|at| vec![at]).collect();
    list.in_rows(&rows);
    list
}
