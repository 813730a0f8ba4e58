//! What people and agents wrote is shown as text: it cannot move the cursor, turn a line around or hide a part of it.

/// Control characters, and those that turn or hide text, as what they are: `\u{1b}`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_harmless(letter) { shown.push(letter) } else { shown.extend(letter.escape_default()) }
    }
    shown
}

/// One line of code. A tab is what code is made of, and moves the cursor no further than spaces would.
pub fn visible_code(line: &str) -> String {
    line.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// Whether a terminal shows it as itself.
pub fn is_harmless(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = matches!(letter, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    !letter.is_control() && !turns && !hides
}

/// An amount of data for people.
pub fn size(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} bytes"),
    }
}
