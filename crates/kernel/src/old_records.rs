//! What records of before say only in a sentence, read as what is decided by today: here, and nowhere else.

use crate::command::RedBy;
use crate::event::{ChannelSaid, RequestNoted, SaidKind, SentBackTo};
use crate::words::NoteKind;
use crate::world::{Note, SentBack};
use smol_str::SmolStr;

const NO_CHANGE: &str = "There is no change";
const CONFLICT: &str = "The merge with main conflicts";
const ESCALATED: &str = "The architect: ";
const GAVE_UP: &str = "The architect gave up: ";
const UNENDED: &str = ": Agent completed response without TURN_COMPLETE";

impl SentBackTo {
    /// Why it was sent back.
    pub fn red_by(&self) -> RedBy {
        match (&self.what, self.by) {
            (SentBack::Gate(output), RedBy::Tests | RedBy::Branch) if output.starts_with(NO_CHANGE) => {
                RedBy::NoChange
            }
            (SentBack::Landing(output), RedBy::Tests) if output.starts_with(CONFLICT) => RedBy::Conflict,
            (_, by) => by,
        }
    }
}

impl ChannelSaid {
    /// The agent answered and did not end its turn.
    pub fn is_unended(&self) -> bool {
        match self.kind {
            SaidKind::Unended => true,
            SaidKind::Log => self.text.ends_with(UNENDED),
            SaidKind::Turn | SaidKind::Announcement => false,
        }
    }
}

/// A note whose record does not say what it is.
pub(crate) fn note(event: &RequestNoted) -> Note {
    let told = [(NoteKind::Escalation, ESCALATED), (NoteKind::GaveUp, GAVE_UP)];
    let old = told.iter().find_map(|(kind, start)| Some((*kind, event.note.strip_prefix(start)?)));
    match old.filter(|_| event.kind == NoteKind::Plain) {
        Some((kind, text)) => Note { kind, text: SmolStr::new(text) },
        None => Note { kind: event.kind, text: event.note.clone() },
    }
}
