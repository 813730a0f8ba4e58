//! Lines of the story of a fleet, as a terminal shows them.

use super::terminal::{self, Colour, Paint, columns, wrap};
use super::text::visible;
use api::story::{Line, Tone};

pub fn colour(tone: Tone) -> Colour {
    match tone {
        Tone::Plain => Colour::Plain,
        Tone::Good => Colour::Good,
        Tone::Wrong => Colour::Waits,
        Tone::You => Colour::Busy,
        Tone::Loud => Colour::Bad,
    }
}

/// In lines of at most `width` columns, so that no word is torn apart; the first has the time.
pub fn print(line: &Line, paint: Paint, width: usize) -> String {
    const INDENT: usize = 11;
    // Lines of its own are lines here: each begins under the first, where nothing else can begin.
    let own = line.text.split('\n').map(visible);
    let lines: Vec<String> = own
        .enumerate()
        .flat_map(|(index, text)| match width.saturating_sub(INDENT) {
            0 => vec![text],
            // What is shown as it is written is not taken apart at its spaces.
            width if index > 0 => pieces(&text, width),
            width => wrap(&text, width),
        })
        .collect();
    let painted = |text: &String| match line.tone {
        Tone::Plain | Tone::Wrong => text.clone(),
        Tone::Good => paint.green(text),
        Tone::You | Tone::Loud => paint.bold(text),
    };
    let lines: Vec<String> = lines.iter().map(painted).collect();
    let mark = paint.as_meant(colour(line.tone), line.tone.mark());
    let between = format!("\n{:INDENT$}", "");
    format!("{} {mark} {}", paint.dim(terminal::clock(line.at)), lines.join(&between))
}

/// A line in pieces that each fit, with every character of it.
fn pieces(text: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for letter in text.chars() {
        let wide = columns(letter.encode_utf8(&mut [0; 4]));
        if used + wide > width {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(last) = pieces.last_mut() {
            last.push(letter);
        }
    }
    pieces
}
