//! Comments on lines of a diff: a person keeps them as drafts, and sends them as one numbered round that asks for changes.

use super::landing::is_at_tip;
use super::people::person_moves;
use crate::checks::check_text;
use crate::command::Refusal;
use crate::draft::{Draft, Ruled};
use crate::event::{DraftDropped, DraftKept, RoundSent};
use crate::line_comment::LineComment;
use crate::words::DiffSide;
use machines::names::TaskId;
use machines::task::{Payload, Status, is_blank};
use smol_str::SmolStr;

/// Drafts that a task may have at once.
const DRAFTS_MAX: usize = 200;
/// As long as a path of a file can be.
const PATH_BYTES_MAX: usize = 4096;

/// Keeps a new draft, or another text of one that is there.
pub(crate) fn keep_draft(
    d: &mut Draft,
    id: &TaskId,
    draft: Option<&SmolStr>,
    comment: &LineComment,
) -> Result<SmolStr, Refusal> {
    let task = d.task(id)?;
    if task.is_final() {
        return Err(Refusal::new(
            409,
            "CLOSED",
            format!("`{id}` is {}: nobody would read it", task.status()),
        ));
    }
    let named = match draft {
        Some(draft) if task.review.drafts.contains_key(draft) => draft.clone(),
        Some(draft) => return Err(no_draft(id, draft)),
        None if task.review.drafts.len() >= DRAFTS_MAX => {
            let message = format!("`{id}` has {DRAFTS_MAX} drafts already: send them as a round first");
            return Err(Refusal::new(409, "TOO_MANY", message));
        }
        None => SmolStr::from(format!("d{}", task.review.last_draft + 1)),
    };
    check_text(&d.world, "text", Some(&comment.text))?;
    if is_blank(&comment.text) {
        return Err(Refusal::field("text", "a comment must not be empty"));
    }
    let path = &comment.path;
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return Err(Refusal::field("path", "must be the path of a file in the diff"));
    }
    if comment.line == 0 || comment.end_line < comment.line {
        return Err(Refusal::field("line", "must be the number of a line, and not after `endLine`"));
    }
    let (at, by) = (d.command.at, SmolStr::from(d.command.actor.to_string()));
    d.emit(DraftKept { id: id.clone(), draft: named.clone(), at, by, comment: comment.clone() });
    Ok(named)
}

pub(crate) fn drop_draft(d: &mut Draft, id: &TaskId, draft: &SmolStr) -> Ruled {
    if !d.task(id)?.review.drafts.contains_key(draft) {
        return Err(no_draft(id, draft));
    }
    let (at, by) = (d.command.at, SmolStr::from(d.command.actor.to_string()));
    d.emit(DraftDropped { id: id.clone(), draft: draft.clone(), at, by });
    Ok(())
}

fn no_draft(id: &TaskId, draft: &SmolStr) -> Refusal {
    Refusal::new(404, "NOT_FOUND", format!("`{id}` has no draft `{draft}`: it was sent or discarded"))
}

/// The drafts become one numbered round, and the work goes back with it.
pub(crate) fn send_round(d: &mut Draft, id: &TaskId, tip: Option<&SmolStr>, note: &str) -> Ruled {
    check_text(&d.world, "note", Some(note))?;
    is_at_tip(d, id, tip)?;
    let task = d.task(id)?;
    if task.review.drafts.is_empty() && is_blank(note) {
        return Err(Refusal::field("note", "there is no draft and no note: nothing would be sent"));
    }
    let number = task.review.rounds.len() as u32 + 1;
    let comments = task.review.drafts.values().map(|draft| words(&draft.comment));
    let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
    let feedback: Vec<String> = std::iter::once(format!("Round {number} of the review:"))
        .chain(note.clone())
        .chain(comments)
        .collect();
    let feedback = feedback.join("\n\n");
    let (runs, actor) = (task.work.runs, d.command.actor.clone());
    let (at, by) = (d.command.at, SmolStr::from(actor.to_string()));
    let note = note.unwrap_or_default();
    d.emit(RoundSent { id: id.clone(), number, at, by, tip: tip.cloned(), note, runs });
    let payload = Payload { feedback: Some(feedback), ..Payload::default() };
    person_moves(d, id, &actor, Status::InProgress, &payload)
}

/// A comment as its agent reads it.
fn words(comment: &LineComment) -> String {
    let LineComment { path, side, line, end_line, text, .. } = comment;
    let lines = match line == end_line {
        true => format!("line {line}"),
        false => format!("lines {line} to {end_line}"),
    };
    let side = match side {
        DiffSide::New => "",
        DiffSide::Old => " before the change",
    };
    format!("{path}, {lines}{side}:\n{text}")
}
