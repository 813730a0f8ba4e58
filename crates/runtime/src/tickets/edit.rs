//! Edits of a ticket's bytes. What is not meant stays as it was, byte for byte.

use super::front::Front;
use super::{Problem, Status, text};
use kernel::Millis;
use machines::Wire;

/// How a note of ours begins, by which it is told from a person's.
pub const OUR_NOTE: &str = "Adjutant: ";

/// The bytes with this status: one line of the first front matter is changed, or none where it said so already.
pub fn set_status(bytes: &[u8], status: Status) -> Result<Vec<u8>, Problem> {
    let front = Front::read(bytes)?;
    front.required("status", "`status: open`")?;
    let place = front.place("status")?.expect("it was found above");
    Ok([&bytes[..place.start], status.name().as_bytes(), &bytes[place.end..]].concat())
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
    let notes = text::notes_place(&same_length(body));
    let has_notes = notes.is_some();
    let insert_at = front.body + notes.map_or(body.len(), |place| place.end);
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
    entry.push_str(&format!("**{}**\n\n{note}\n", time(at)));
    if !after.is_empty() {
        entry.push('\n');
    }
    Ok([before, entry.replace('\n', end_of_line).as_bytes(), after].concat())
}

/// The bytes as a text in which every place is where it is in the bytes; what is not UTF-8 becomes `?`.
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

/// As `tk` writes times: UTC, in seconds.
fn time(at: Millis) -> String {
    let seconds = at.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01, in eras of 400 years: the leap day is then the last of its year.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod test {
    #[test]
    fn times_are_written_as_tk_writes_them() {
        assert_eq!(super::time(0), "1970-01-01T00:00:00Z");
        assert_eq!(super::time(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(super::time(1_773_576_123_999), "2026-03-15T12:02:03Z");
    }
}
