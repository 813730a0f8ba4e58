//! Numbers, times and documents as text, the same wherever they are shown.

use base::visible::is_harmless;
use serde::Serialize;
use std::fmt::Write;

/// One JSON document. What JSON would let through is escaped, so that printing it is as harmless as a table.
pub fn json(document: &impl Serialize) -> String {
    // What is printed is made of text, numbers and names of members: there is nothing that could not be written.
    escaped(&serde_json::to_string(document).unwrap_or_default())
}

fn escaped(plain: &str) -> String {
    if plain.chars().all(is_harmless) {
        return plain.to_owned();
    }
    let mut shown = String::with_capacity(plain.len());
    for letter in plain.chars() {
        if is_harmless(letter) {
            shown.push(letter);
        } else {
            // Outside of strings there is nothing of the kind, so it is always within one.
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown
}

/// The same over several lines, for people to read.
pub fn json_lines(document: &impl Serialize) -> String {
    let Ok(plain) = serde_json::to_string_pretty(document) else { return json(document) };
    // Its own line breaks are outside of strings, where nothing needs to be escaped.
    plain.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// A time of the API as a number; `None` where it is none, or outside the years that a calendar has.
pub fn read_time(text: &str) -> Option<machines::Millis> {
    Some(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

/// A length of virtual or real time, in its two largest units.
pub fn duration(millis: i64) -> String {
    let seconds = millis / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", seconds % 60),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// The time of day where this runs, of milliseconds since the epoch.
pub fn clock(at: i64) -> String {
    local(at).map_or_else(|| "--:--:--".to_owned(), |time| time.strftime("%H:%M:%S").to_string())
}

/// The same with its day.
pub fn day_and_clock(at: i64) -> String {
    let text = local(at).map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    text.unwrap_or_else(|| "-".to_owned())
}

/// What these times are in: `UTC`, `CET`, …
pub fn zone(at: i64) -> String {
    local(at).map_or_else(|| "UTC".to_owned(), |time| time.strftime("%Z").to_string())
}

fn local(at: i64) -> Option<jiff::Zoned> {
    Some(jiff::Timestamp::from_millisecond(at).ok()?.to_zoned(jiff::tz::TimeZone::system()))
}

/// Money to the cent, from millionths.
pub fn rounded_dollars(micros: u64) -> String {
    let cents = micros.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// A number with its thousands apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
