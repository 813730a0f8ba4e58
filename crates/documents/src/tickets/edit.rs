//! Edits the bytes of a ticket. All other bytes stay the same.

use super::front::Front;
use super::text::OUR_NOTE;
use super::{Problem, Status, text, time};
use kernel::Millis;
use machines::Wire;

/// The bytes with this status: one line of the first front matter is changed, or none where it said so already.
pub fn set_status(bytes: &[u8], status: Status) -> Result<Vec<u8>, Problem> {
    let front = Front::read(bytes)?;
    front.required("status", "`status: open`")?;
    let span = front.value_span("status")?.expect("it was found above");
    Ok([&bytes[..span.start], status.name().as_bytes(), &bytes[span.end..]].concat())
}

/// Whether the bytes begin with a front matter, as every ticket does.
pub fn has_front(bytes: &[u8]) -> bool {
    Front::read(bytes).is_ok()
}

/// The bytes with the front matter of others: text of one version of a ticket, keys of another.
pub fn with_front_of(bytes: &[u8], keys: &[u8]) -> Result<Vec<u8>, Problem> {
    let (text, front) = (Front::read(bytes)?, Front::read(keys)?);
    Ok([&keys[..front.body], &bytes[text.body..]].concat())
}

/// The bytes with one more note of ours at the end of `## Notes`, which is made where there is none. Nothing changes
/// where the last note of ours says the same: whoever writes it again was interrupted after the first time.
pub fn add_note(bytes: &[u8], at: Millis, note: &str) -> Result<Vec<u8>, Problem> {
    let front = Front::read(bytes)?;
    if note.trim().is_empty() {
        return Ok(bytes.to_vec());
    }
    let note = harmless(note.trim());
    let ticket = super::Ticket::parse(bytes)?;
    if ticket.notes.iter().rev().find(|note| note.is_ours()).is_some_and(|last| last.text == note) {
        return Ok(bytes.to_vec());
    }
    let end_of_line = if bytes[..front.body].ends_with(b"\r\n") { "\r\n" } else { "\n" };
    let body = &bytes[front.body..];
    let notes = text::notes_span(&same_length(body));
    let has_notes = notes.is_some();
    let insert_at = front.body + notes.map_or(body.len(), |span| span.end);
    let (before, after) = bytes.split_at(insert_at);

    let mut entry = String::new();
    if !before.ends_with(b"\n") {
        entry.push('\n');
    }
    if !has_notes {
        entry.push_str("\n## Notes\n");
    }
    let has_empty_line = before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n");
    if !(has_notes && has_empty_line) {
        entry.push('\n');
    }
    entry.push_str(&format!("**{}**\n\n{note}\n", time::write(at)));
    if !after.is_empty() {
        entry.push('\n');
    }
    Ok([before, entry.replace('\n', end_of_line).as_bytes(), after].concat())
}

/// The bytes as a text in which every position is where it is in the bytes; what is not UTF-8 becomes `?`.
fn same_length(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// The note in lines that cannot be taken for anything else: `tk` reads `status:` and `---` anywhere in a file.
fn harmless(note: &str) -> String {
    let mut lines = note.lines().map(|line| {
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
    });
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{OUR_NOTE}{first}");
    for line in lines.filter(|line| !line.is_empty()) {
        text.push_str("\n  ");
        text.push_str(&line);
    }
    text.trim_end().to_owned()
}
