//! Comments on the lines of a diff: a person keeps them here as drafts, and sends them as one round.

use super::types::review::{
    CommentOnLines, Discarded, DraftComment, EditDraft, NewDraft, NewRound, Round, RoundReceipt,
};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, time};
use kernel::line_comment::LineComment;
use kernel::world::{ReviewRound, Task};
use kernel::{Ask, World};
use machines::names::{RunId, TaskId};
use smol_str::SmolStr;

pub fn drafts(call: &Call, id: TaskId, paging: Paging, _: Nothing) -> Result<Page<DraftComment>, Problem> {
    let world = call.world();
    let task = known(&world, &id)?;
    Ok(paging.page(task.review.drafts.keys().map(|draft| shown(task, draft)).collect::<Result<_, _>>()?))
}

pub fn keep(call: &Call, id: TaskId, _: Nothing, new: NewDraft) -> Result<DraftComment, Problem> {
    let NewDraft { path, side, line, end_line, text, tip } = new;
    let tip = tip.map(SmolStr::from);
    let comment = LineComment { path, side, line, end_line: end_line.unwrap_or(line), text, tip };
    kept(call, id, None, comment)
}

pub fn edit(
    call: &Call,
    (id, draft): (TaskId, String),
    _: Nothing,
    edit: EditDraft,
) -> Result<DraftComment, Problem> {
    let world = call.world();
    let there = known(&world, &id)?.review.drafts.get(draft.as_str());
    let there = there.ok_or_else(|| no_draft(&id, &draft))?;
    let comment = LineComment { text: edit.text, ..there.comment.clone() };
    kept(call, id, Some(draft.into()), comment)
}

fn kept(
    call: &Call,
    id: TaskId,
    draft: Option<SmolStr>,
    comment: LineComment,
) -> Result<DraftComment, Problem> {
    let reply = call.submit(Ask::KeepDraft { id: id.clone(), draft, comment })?;
    let draft = reply.id.unwrap_or_default();
    shown(known(&call.world(), &id)?, &draft)
}

pub fn discard(
    call: &Call,
    (id, draft): (TaskId, String),
    _: Nothing,
    _: Nothing,
) -> Result<Discarded, Problem> {
    call.submit(Ask::DropDraft { id, draft: draft.as_str().into() })?;
    Ok(Discarded { id: draft })
}

pub fn rounds(call: &Call, id: TaskId, paging: Paging, _: Nothing) -> Result<Page<Round>, Problem> {
    let world = call.world();
    let task = known(&world, &id)?;
    Ok(paging.page_of(task.review.rounds.iter(), |sent| round(&world, task, sent)))
}

pub fn send(call: &Call, id: TaskId, _: Nothing, new: NewRound) -> Result<Round, Problem> {
    let ask = Ask::SendRound { id: id.clone(), tip: new.tip.map(SmolStr::from), note: new.note };
    call.submit(ask).map_err(Problem::of_transition)?;
    let world = call.world();
    let task = known(&world, &id)?;
    let sent = task.review.rounds.last().ok_or_else(|| super::board::no_task(&id))?;
    Ok(round(&world, task, sent))
}

fn known<'w>(world: &'w World, id: &TaskId) -> Result<&'w Task, Problem> {
    world.task(id).ok_or_else(|| super::board::no_task(id))
}

fn no_draft(id: &TaskId, draft: &str) -> Problem {
    Problem::not_found(format!("`{id}` has no draft `{}`: it was sent or discarded", draft.escape_debug()))
}

fn shown(task: &Task, draft: &SmolStr) -> Result<DraftComment, Problem> {
    let kept = task.review.drafts.get(draft).ok_or_else(|| no_draft(&task.id, draft))?;
    Ok(DraftComment {
        id: draft.to_string(),
        at: time(kept.at),
        by: kept.by.to_string(),
        comment: on_lines(task, &kept.comment),
    })
}

fn on_lines(task: &Task, comment: &LineComment) -> CommentOnLines {
    let tip = task.work.place.as_ref().and_then(|place| place.tip.as_ref());
    CommentOnLines {
        path: comment.path.clone(),
        side: comment.side,
        line: comment.line,
        end_line: comment.end_line,
        text: comment.text.clone(),
        tip: comment.tip.as_ref().map(ToString::to_string),
        moved: comment.tip.is_some() && comment.tip.as_ref() != tip,
    }
}

fn round(world: &World, task: &Task, sent: &ReviewRound) -> Round {
    // Runs of a task are numbered: the one after those that there were got it.
    let run = RunId::new(format!("{}.{}", task.id, sent.runs + 1)).ok();
    let run = run.as_ref().filter(|_| task.work.runs > sent.runs);
    let answered = run.is_some_and(|id| {
        let later = task.work.runs > sent.runs + 1;
        later || world.run(id).is_some_and(|run| run.machine.inner().current_turn > 0)
    });
    Round {
        number: sent.number,
        at: time(sent.at),
        by: sent.by.to_string(),
        tip: sent.tip.as_ref().map(ToString::to_string),
        note: sent.note.clone(),
        comments: sent.comments.iter().map(|comment| on_lines(task, comment)).collect(),
        receipt: match (run, answered) {
            (None, _) => RoundReceipt::Queued,
            (Some(_), false) => RoundReceipt::Delivered,
            (Some(_), true) => RoundReceipt::Consumed,
        },
        run: run.map(ToString::to_string),
    }
}
