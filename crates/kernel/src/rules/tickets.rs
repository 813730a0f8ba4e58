//! Tickets: what their files say, and what is written into them.

use machines::names::TaskId;
use machines::task::{BlockReason, Payload, Status, TicketStatus};
use machines::worker::ReleaseReason;
use machines::{run, task};
use smol_str::SmolStr;

use super::Rule;
use super::landing::unqueue;
use super::people::{canceled, landing_is_written};
use super::proposals::brought;
use super::release::{block, pause_run, release};
use crate::checks::check_dependencies;
use crate::command::{Actor, Refusal, SeenTicket};
use crate::draft::{Draft, Ruled};
use crate::effect::Effect;
use crate::event::{
    DependencyAdded, DependencyRemoved, NoteLeft, TaskAdded, TaskEdited, TicketGone, TicketNames, TicketSeen,
};
use crate::hash::fnv;
use crate::words::{CommentKind, EffectEnd};

pub(crate) fn ticket_seen(d: &mut Draft, ticket: &SeenTicket) -> Ruled {
    let name = SmolStr::new(ticket.id.as_str());
    let known = d.world.tickets.get(&name).cloned();
    if let Some(gone) = known.as_ref().and_then(|known| known.gone) {
        ticket_back(d, &name, gone)?;
    }
    let fingerprint = ticket_fingerprint(ticket);
    let was_open = known.as_ref().is_some_and(|known| known.status != TicketStatus::Closed);
    let is_open = ticket.status != TicketStatus::Closed;
    let opened = is_open && !was_open;
    let mut task = known.as_ref().and_then(|known| known.task.clone());
    if known.as_ref().is_some_and(|known| known.status == ticket.status && known.fingerprint == fingerprint) {
        return Ok(());
    }

    if opened {
        d.rule(Rule::TicketSeen);
        task = Some(open_ticket(d, ticket, &name, known.as_ref().map_or(0, |known| known.openings))?);
    } else if let (true, Some(id)) = (is_open, &task) {
        ticket_changed(d, id, ticket)?;
    }
    d.emit(TicketSeen { id: name, status: ticket.status, fingerprint, opened, task: task.clone() });
    if let (true, true, Some(id)) = (was_open && !is_open, ticket.by_hand, task) {
        ticket_closed(d, &id)?;
    }
    Ok(())
}

fn ticket_fingerprint(ticket: &SeenTicket) -> u64 {
    let mut text = format!("{}\0{}\0{:?}\0{}", ticket.title, ticket.body, ticket.depends_on, ticket.priority);
    // As it was where there is none: what is stored of tickets without one stays right.
    if let Some(assignee) = &ticket.assignee {
        text.push_str(&format!("\0{assignee}"));
    }
    fnv(text.as_bytes())
}

/// Whether seeing the ticket as it is would change nothing.
pub fn knows_ticket(world: &crate::World, ticket: &SeenTicket) -> bool {
    world.tickets.get(ticket.id.as_str()).is_some_and(|known| {
        known.gone.is_none()
            && known.status == ticket.status
            && known.fingerprint == ticket_fingerprint(ticket)
    })
}

/// A new task; for a ticket that was closed and opened again, one that is linked to the old.
pub(super) fn open_ticket(
    d: &mut Draft,
    ticket: &SeenTicket,
    name: &SmolStr,
    openings: u32,
) -> Result<TaskId, Refusal> {
    let taken = d.world.tasks.contains_key(&ticket.id);
    let id = if taken {
        TaskId::new(format!("{}-r{}", ticket.id, openings + 1))
            .map_err(|bad| Refusal::field("id", bad.to_string()))?
    } else {
        ticket.id.clone()
    };
    if d.world.tasks.contains_key(&id) {
        return Err(Refusal::new(409, "EXISTS", format!("there is a task `{id}` already")));
    }
    check_dependencies(&d.world, &id, &ticket.depends_on)?;
    let proposed = brought(d, name);
    d.emit(TaskAdded {
        id: id.clone(),
        title: ticket.title.clone(),
        body: ticket.body.clone(),
        task_type: ticket.task_type,
        priority: ticket.priority.min(4),
        at: d.at(),
        ticket: Some(name.clone()),
        reopens: taken.then(|| ticket.id.clone()),
        plan: ticket.plan.clone(),
        reviewer: None,
        depends_on: ticket.depends_on.clone(),
        created: ticket.created,
        plan_source: ticket.plan.as_ref().map(|_| task::PlanSource::Ticket),
        proposed,
    });
    if ticket.assignee.is_some() {
        d.emit(TicketNames { id: id.clone(), assignee: ticket.assignee.clone() });
    }
    Ok(id)
}

/// An agent reads neither tickets nor the board: what was changed goes into its next prompt as it is now.
pub(crate) fn new_text(of: &str, title: &str, body: &str) -> SmolStr {
    SmolStr::new(format!("the text of the {of} was changed; now it says:\n{title}\n\n{body}").trim_end())
}

pub(super) fn ticket_changed(d: &mut Draft, id: &TaskId, ticket: &SeenTicket) -> Ruled {
    let task = d.task(id)?;
    if task.is_final() {
        return Ok(());
    }
    let text_changed = task.title != ticket.title || task.body != ticket.body;
    let waiting = matches!(task.status(), Status::Inbox | Status::Assigned);
    let (old, new) = (task.depends_on.clone(), &ticket.depends_on);
    let renamed = task.origin.ticket_assignee != ticket.assignee;
    if text_changed || task.priority != ticket.priority {
        d.rule(Rule::TicketChanged);
        d.emit(TaskEdited {
            id: id.clone(),
            title: Some(ticket.title.clone()),
            body: Some(ticket.body.clone()),
            priority: Some(ticket.priority.min(4)),
            plan: None,
            reviewer: None,
            plan_source: None,
        });
    }
    if renamed {
        d.emit(TicketNames { id: id.clone(), assignee: ticket.assignee.clone() });
    }
    if text_changed && !waiting {
        let note = new_text("ticket", &ticket.title, &ticket.body);
        d.emit(NoteLeft { id: id.clone(), note });
    }
    if waiting && old != *new {
        check_dependencies(&d.world, id, new)?;
        for on in old.iter().filter(|on| !new.contains(on)) {
            d.emit(DependencyRemoved { id: id.clone(), on: on.clone() });
        }
        for on in new.iter().filter(|on| !old.contains(on)) {
            d.emit(DependencyAdded { id: id.clone(), on: on.clone() });
        }
    }
    Ok(())
}

pub(super) fn ticket_closed(d: &mut Draft, id: &TaskId) -> Ruled {
    d.rule(Rule::TicketClosed);
    // It is a person's act, whoever noticed it.
    let person = Actor::Human(SmolStr::new_static("ticket"));
    match d.task(id)?.status() {
        Status::Inbox | Status::Assigned => {
            d.move_task(id, &person, Status::Canceled, Payload::default())?;
            canceled(d, id)
        }
        // Its own pull request closes the ticket, and comes to main before the landing is written down.
        Status::Review if d.task(id)?.is_offered() => Ok(()),
        Status::InProgress | Status::Review | Status::NeedsApproval if !landing_is_written(d, id) => {
            if let Some(run) = d.world.run_of(id).map(|run| run.id.clone()) {
                pause_run(d, &run, run::PauseReason::UserInput)?;
            }
            release(d, id, ReleaseReason::Blocked)?;
            unqueue(d, id)?;
            block(d, id, BlockReason::Manual, "the ticket was closed by hand".to_owned())
        }
        // Blocked, closed, or about to land: nothing.
        _ => Ok(()),
    }
}

/// `tk` and its users go by the file: it says whether somebody is at work. Its close is asked for by [`tidy_up`].
pub(crate) fn ticket_follows(d: &mut Draft, id: &TaskId, from: Status, to: Status) -> Ruled {
    let status = task::ticket_status(to);
    let Some(ticket) = d.task(id)?.origin.ticket.clone() else { return Ok(()) };
    if status != task::ticket_status(from) && status != task::ticket_status(Status::Done) {
        d.rule(Rule::TicketFollows);
        write_ticket(d, id, ticket, to, None);
    }
    Ok(())
}

/// Asks for a ticket to be written. What was asked before and is not done is no longer wanted: two writes have no order.
pub(super) fn write_ticket(
    d: &mut Draft,
    id: &TaskId,
    ticket: SmolStr,
    status: Status,
    note: Option<String>,
) {
    let older = |effect: &Effect| matches!(effect, Effect::WriteTicket { ticket: of, .. } if *of == ticket);
    let older: Vec<_> =
        d.world.effects.iter().filter(|(_, effect)| older(effect)).map(|(id, _)| id.clone()).collect();
    for effect in older {
        d.end(&effect, EffectEnd::Superseded);
    }
    let status = task::ticket_status(status);
    d.ask(Effect::WriteTicket { task: id.clone(), ticket, status, note });
}

/// We wrote it, so this is what the file says. Whatever it says next is somebody else's word.
pub(super) fn ticket_says(d: &mut Draft, ticket: &SmolStr, status: TicketStatus) {
    let Some(known) = d.world.tickets.get(ticket).filter(|known| known.status != status).cloned() else {
        return;
    };
    d.emit(TicketSeen {
        id: ticket.clone(),
        status,
        fingerprint: known.fingerprint,
        opened: false,
        task: known.task.clone(),
    });
}

/// The file of a ticket is not there. It may come back, so nothing is canceled; and nothing more is paid for meanwhile.
pub(crate) fn ticket_missed(d: &mut Draft, id: &TaskId) -> Ruled {
    let name = SmolStr::new(id.as_str());
    let known = d.world.tickets.get(&name).cloned();
    let Some(known) = known.filter(|known| known.gone.is_none() && known.status != TicketStatus::Closed)
    else {
        return Ok(());
    };
    let Some(task) =
        known.task.clone().filter(|task| d.world.task(task).is_some_and(|task| !task.is_final()))
    else {
        return Ok(());
    };
    d.rule(Rule::TicketGone);
    let blocked = matches!(d.task(&task)?.status(), Status::InProgress | Status::NeedsApproval)
        && !landing_is_written(d, &task);
    let text = "the ticket's file is gone; the task waits until it is back";
    d.comment(&task, "system", CommentKind::Ticket, text.to_owned());
    if blocked {
        if let Some(run) = d.world.run_of(&task).map(|run| run.id.clone()) {
            pause_run(d, &run, run::PauseReason::UserInput)?;
        }
        release(d, &task, ReleaseReason::Blocked)?;
        block(d, &task, BlockReason::Manual, text.to_owned())?;
    }
    d.emit(TicketGone { id: name, gone: true, blocked });
    Ok(())
}

fn ticket_back(d: &mut Draft, name: &SmolStr, gone: crate::world::Gone) -> Ruled {
    d.rule(Rule::TicketBack);
    d.emit(TicketGone { id: name.clone(), gone: false, blocked: false });
    let Some(id) = d.world.tickets.get(name).and_then(|known| known.task.clone()) else { return Ok(()) };
    let task = d.task(&id)?;
    let still = task.status() == Status::Blocked && task.machine.block_reason == Some(BlockReason::Manual);
    if gone.blocked && still {
        // Whoever put the file back is a person, whoever noticed it.
        let person = Actor::Human(SmolStr::new_static("ticket"));
        let clarification = Some("the ticket's file is back".to_owned());
        d.move_task(&id, &person, Status::InProgress, Payload { clarification, ..Payload::default() })?;
    }
    Ok(())
}
