//! Plain Markdown: boxes are tasks, and so are list items below a heading such as `Tasks`. Anything else is prose.

use kernel::specs::Mark;

use super::list::{Item, List, State};
use super::spec_path::{Source, SpecPath};
use super::text::{self, BoxState, Entry, TaskBox, indent, strip_word};
use super::{Found, ReadError};

/// Headings whose points are tasks though they have no boxes.
const TASKS: [&str; 8] =
    ["tasks", "task list", "stories", "user stories", "to do", "todo", "backlog", "work items"];
/// Headings whose boxes are no tasks: they say when something is done.
const CRITERIA: [&str; 4] = ["acceptance", "definition of done", "done when", "success criteria"];
const CRITERION: &str = "a box below this heading is a criterion and no task";
pub const SIGN: &str = "the sign in this box is not known: an open one is `[ ]`, a ticked one `[x]`";

pub fn looks_like(place: &SpecPath) -> bool {
    !place.is_folder()
}

pub fn read(place: &SpecPath) -> Result<Found, ReadError> {
    let source = place.source()?;
    let stem = place.file_name();
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem).to_owned();
    let title = text::title(&source.text).unwrap_or_else(|| stem.clone());
    let list = list(&source);
    let list = (!list.items.is_empty()).then_some(list);
    Ok(Found { title, name: stem, text: source.text, list })
}

fn list(source: &Source) -> List {
    let mut list = List::default();
    let outermost = |task: &TaskBox<'_>, last: Option<&Entry<'_>>| {
        last.is_none_or(|last| task.indent <= last.task.indent)
    };
    for entry in text::entries(&source.text, outermost, |_| {}) {
        let heading = entry.headings.last().copied().unwrap_or_default();
        let line = text::TextLine { number: entry.number, text: entry.line, quiet: false };
        if CRITERIA.iter().any(|word| strip_word(heading, word).is_some()) {
            list.not_understood(source, line, CRITERION);
            continue;
        }
        if entry.task.tick == BoxState::Other || entry.task.text.is_empty() {
            let empty = "this box is for nothing";
            list.not_understood(source, line, if entry.task.text.is_empty() { empty } else { SIGN });
            continue;
        }
        let details = entry.details();
        list.items.push(Item {
            key: format!("line-{}", entry.number),
            said: entry.task.text.to_owned(),
            body: body(&details, &entry.headings, source),
            state: state(entry.task.tick),
            mark: Some(Mark { path: source.path.clone(), line: entry.line.to_owned() }),
            path: source.path.clone(),
            number: entry.number,
            ..Item::default()
        });
    }
    if list.items.is_empty() {
        points(source, &mut list);
    }
    list
}

/// Points without a box, where the heading says that they are tasks. Nothing in the file can be ticked for them.
fn points(source: &Source, list: &mut List) {
    let is_wanted = |_, said: &str| {
        let said = said.trim_end_matches(':');
        TASKS.iter().any(|word| said.eq_ignore_ascii_case(word)).then(|| said.to_owned())
    };
    for (heading, inside) in text::sections(&source.text, is_wanted) {
        let mut outermost = None;
        for line in inside {
            let column = indent(line.text);
            let outer = outermost.unwrap_or(column);
            match said(line.text).filter(|_| !line.quiet && column <= outer) {
                Some(said) => {
                    outermost = Some(column);
                    list.items.push(Item {
                        key: format!("line-{}", line.number),
                        said: said.to_owned(),
                        body: body("", &[&heading], source),
                        path: source.path.clone(),
                        number: line.number,
                        ..Item::default()
                    });
                }
                None => {
                    let below = column > outer && !line.text.trim().is_empty();
                    if let Some(item) = list.items.last_mut().filter(|_| below) {
                        item.body = format!("{}\n{}", line.text.trim(), item.body);
                    }
                }
            }
        }
    }
}

/// What a point of a list says.
fn said(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => text.strip_prefix(['-', '*', '+'])?,
        _ => text[digits..].strip_prefix(['.', ')'])?,
    };
    Some(rest.strip_prefix([' ', '\t'])?.trim()).filter(|said| !said.is_empty())
}

pub fn state(tick: BoxState) -> State {
    if tick == BoxState::Done { State::Done } else { State::Open }
}

fn body(details: &str, headings: &[&str], source: &Source) -> String {
    let above = headings.join(" › ");
    let above = if above.is_empty() { String::new() } else { format!(", below \"{above}\"") };
    told(details, &format!("This is a task of {}{above}.", source.path), source)
}

/// A task's text, where it comes from, and what is not the agent's to do.
pub fn told(details: &str, from: &str, source: &Source) -> String {
    let rule =
        format!("Leave the boxes in {} as they are: this one is ticked when the work lands.", source.path);
    format!("{}\n\n{from} {rule}", details.trim()).trim().to_owned()
}
