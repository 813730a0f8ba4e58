//! The one rule of DONE: it counts as a line of its own in the last message of a step, and nowhere else.
//!
//! What is quoted does not count: neither in a fenced block, nor behind `>`, nor indented as code. A fence that is never
//! closed quotes everything after it: in doubt the agent has not said it.

/// Whether the agent claims to be finished. `text` is the last message of a step, and never the output of a tool.
pub fn said_done(text: &str) -> bool {
    let mut scan = DoneScan::default();
    for line in text.lines() {
        scan.line(line);
    }
    scan.said()
}

/// The same line by line, for a message that is too long to be kept.
#[derive(Clone, Debug, Default)]
pub struct DoneScan {
    said: bool,
    /// The letter and length of the fence that is open.
    fence: Option<(char, usize)>,
}

impl DoneScan {
    /// The next line of the message.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_end();
        let text = line.trim_start_matches(' ');
        // Four spaces make code of it.
        if line.len() - text.len() > 3 {
            return;
        }
        let fence = fence(text);
        match (self.fence, fence) {
            (None, Some((letter, length, info))) if letter == '~' || !info.contains('`') => {
                self.fence = Some((letter, length));
            }
            (Some((open, opened)), Some((letter, length, ""))) if letter == open && length >= opened => {
                self.fence = None;
            }
            (None, _) => self.said |= text == "DONE",
            (Some(_), _) => {}
        }
    }

    /// Whether it was said so far.
    pub fn said(&self) -> bool {
        self.said
    }
}

/// The letter and length of a fence, and what is written behind it.
fn fence(text: &str) -> Option<(char, usize, &str)> {
    let letter = text.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let info = text.trim_start_matches(letter);
    let length = text.len() - info.len();
    (length >= 3).then(|| (letter, length, info.trim()))
}
