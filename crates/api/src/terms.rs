//! The words, moves and keys of live screens. The moves come from the task machine's table, so that a screen can say what a
//! move needs before it is made; whether it is made is decided by the kernel as ever.

use std::collections::BTreeMap;

use super::types::Nothing;
use super::types::screen::{Field, FieldKind, KeyTerm, MoveTerm, StatusTerm, Terms, WaitingTerm};
use super::{Call, Problem, actions};
use kernel::World;
use kernel::waiting::Kind;
use machines::Wire;
use machines::machine::{FieldError, Machine, Role, Row, Who};
use machines::task::{
    ApprovalCause, BlockReason, Guard, PLAN_BULLETS_MAX, PLAN_BULLETS_MIN, Status, Task, TaskType,
    kind_of_move,
};

pub fn show(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Terms, Problem> {
    let world = call.world();
    let words = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, label)| ((*name).to_owned(), (*label).to_owned())).collect()
    };
    Ok(Terms {
        statuses: Status::ALL
            .iter()
            .map(|status| StatusTerm {
                status: *status,
                label: label(*status).to_owned(),
                is_final: Task::FINAL.contains(status),
                text: meaning(*status).to_owned(),
            })
            .collect(),
        moves: moves(&world),
        waiting: Kind::ALL
            .iter()
            .map(|kind| WaitingTerm { kind: *kind, label: waiting_label(*kind).to_owned() })
            .collect(),
        types: TaskType::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
        keys: KEYS.iter().map(Key::term).collect(),
        agents: actions::agents(&world),
        worker_states: machines::worker::State::ALL
            .iter()
            .map(|state| (state.name().to_owned(), worker_label(*state).to_owned()))
            .collect(),
        attention: words(&[
            ("waits", "Wait for you"),
            ("stuck", "Stuck"),
            ("idle", "Idle"),
            ("working", "At work"),
        ]),
        queue_steps: words(&[
            ("testing", "Testing"),
            ("landing", "Landing"),
            ("waiting", "Waiting"),
            ("held", "Held up"),
        ]),
    })
}

/// A status as people read it.
pub fn label(status: Status) -> &'static str {
    match status {
        Status::Inbox => "Inbox",
        Status::Assigned => "Assigned",
        Status::InProgress => "In progress",
        Status::Review => "Review",
        Status::NeedsApproval => "Needs approval",
        Status::Blocked => "Blocked",
        Status::Done => "Done",
        Status::Canceled => "Canceled",
    }
}

fn meaning(status: Status) -> &'static str {
    match status {
        Status::Inbox => "New: no agent has it.",
        Status::Assigned => "Given to an agent that has not begun.",
        Status::InProgress => "An agent works on it, or is about to continue.",
        Status::Review => "The checks passed. It waits for an approval, or for its landing.",
        Status::NeedsApproval => "It waits for your decision.",
        Status::Blocked => "It cannot go on without you.",
        Status::Done => "Approved, and on main if it has code.",
        Status::Canceled => "Given up. Its work is saved.",
    }
}

fn worker_label(state: machines::worker::State) -> &'static str {
    use machines::worker::State;
    match state {
        State::New => "New",
        State::Idle => "Idle",
        State::Ready => "Gets its tree",
        State::Working => "Working",
        State::Done => "Checks run",
        State::Stuck => "Stuck",
        State::Removed => "Removed",
    }
}

fn waiting_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Review => "Review",
        Kind::Approval => "Approval",
        Kind::PausedRun => "Paused run",
        Kind::Question => "Question",
        Kind::Architect => "Architect",
        Kind::Turn => "Paused turn",
        Kind::LostMember => "Lost member",
        Kind::AgentDisabled => "Disabled agent",
        Kind::SpecChanges => "Spec",
        Kind::TurnLimit => "Turn limit",
        Kind::Budget => "Budget",
        Kind::StuckWorker => "Stuck worker",
        Kind::BlockedTask => "Blocked task",
        Kind::DeadDependency => "Dead dependency",
        Kind::CheckoutInTheWay => "Your checkout",
        Kind::PullRequest => "Pull request",
        Kind::UntrustedSettings => "Settings",
        Kind::FullDisk => "Full disk",
        Kind::Outage => "Outage",
        Kind::RefusedCredentials => "Credentials",
        Kind::MainTestsRed => "Main's tests",
        Kind::Proposal => "Proposal",
        Kind::AgentMissing => "Missing agent",
        Kind::TicketGone => "Missing ticket",
    }
}

/// Every status to every other, as the table has it for a person.
fn moves(world: &World) -> Vec<MoveTerm> {
    let every =
        |from: &'static Status| Status::ALL.iter().filter(move |to| *to != from).map(move |to| (from, to));
    Status::ALL.iter().flat_map(every).map(|(from, to)| move_term(world, *from, *to)).collect()
}

fn move_term(world: &World, from: Status, to: Status) -> MoveTerm {
    let rows: Vec<&Row<Task>> =
        Task::TABLE.iter().filter(|row| row.from == from && row.event == kind_of_move(to)).collect();
    let people = rows.iter().find(|row| row.who.contains(&Who::Any(Role::Human)));
    let refused = match people {
        Some(_) => None,
        None if Task::FINAL.contains(&from) => {
            Some("The task is closed. To continue the work, add a new task that reopens it.".to_owned())
        }
        None if !rows.is_empty() => Some("Only the system makes this move.".to_owned()),
        None => Some(format!("There is no move from {} to {}.", label(from), label(to))),
    };
    let fields =
        people.into_iter().flat_map(|row| row.guards).filter_map(|guard| field(world, *guard)).collect();
    MoveTerm { from, to, refused, fields }
}

/// What a person fills in for a requirement; nothing where the system has it.
fn field(world: &World, guard: Guard) -> Option<Field> {
    let FieldError { field, message } = Task::requirement(guard)?;
    let (name, label, kind) = match guard {
        Guard::HasAssignees => ("assigneeIds", "Agents", FieldKind::Choices),
        Guard::HasWorkPlan => ("workPlan.bullets", "Plan", FieldKind::List),
        Guard::HasDeliverable => ("deliverable.content", "Result", FieldKind::Text),
        Guard::HasChecklist => ("reviewChecklist", "Checklist", FieldKind::Checklist),
        Guard::HasFeedback => ("feedback", "Changes", FieldKind::Text),
        Guard::HasApprovalRecord => ("approval.decisionNote", "Reason", FieldKind::Text),
        Guard::HasApprovalRequest => ("cause", "Cause", FieldKind::Choice),
        Guard::HasReason => ("reason", "Reason", FieldKind::Choice),
        Guard::HasDecision => ("decision", "Decision", FieldKind::Text),
        Guard::IsClarified => ("clarification", "Clarification", FieldKind::Text),
        _ => return None,
    };
    debug_assert!(name.starts_with(field.as_ref() as &str), "{name} is of {field}");
    let choices = match guard {
        Guard::HasAssignees => actions::agents(world),
        Guard::HasApprovalRequest => ApprovalCause::ALL.iter().map(|cause| cause.name().to_owned()).collect(),
        Guard::HasReason => BlockReason::ALL.iter().map(|reason| reason.name().to_owned()).collect(),
        _ => Vec::new(),
    };
    Some(Field {
        name: name.to_owned(),
        label: label.to_owned(),
        kind,
        required: guard != Guard::IsClarified,
        choices,
        text: format!("{message}."),
        items: (guard == Guard::HasWorkPlan).then_some([PLAN_BULLETS_MIN, PLAN_BULLETS_MAX]),
    })
}

/// A key of the screens: the web page and the terminal read the same table.
struct Key {
    action: &'static str,
    keys: &'static [&'static str],
    views: &'static [&'static str],
    label: &'static str,
}

impl Key {
    fn term(&self) -> KeyTerm {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        KeyTerm {
            action: self.action.to_owned(),
            keys: texts(self.keys),
            views: texts(self.views),
            label: self.label.to_owned(),
        }
    }
}

const LISTS: &[&str] = &["inbox", "board", "fleet", "queue", "task"];

/// The same key means the same in every view that has it.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    Key { action: "palette",       keys: &["Ctrl+k", "Meta+k"],  views: &["all"],            label: "search or do" },
    Key { action: "help",          keys: &["?"],                 views: &["all"],            label: "keys" },
    Key { action: "search",        keys: &["/"],                 views: &["board", "fleet", "task"], label: "filter" },
    Key { action: "go_inbox",      keys: &["g i"],               views: &["all"],            label: "inbox" },
    Key { action: "go_board",      keys: &["g b"],               views: &["all"],            label: "board" },
    Key { action: "go_fleet",      keys: &["g f"],               views: &["all"],            label: "fleet" },
    Key { action: "go_queue",      keys: &["g q"],               views: &["all"],            label: "queue" },
    Key { action: "next",          keys: &["j", "ArrowDown"],    views: LISTS,               label: "next" },
    Key { action: "previous",      keys: &["k", "ArrowUp"],      views: LISTS,               label: "previous" },
    Key { action: "left",          keys: &["h", "ArrowLeft"],    views: &["board"],          label: "column to the left" },
    Key { action: "right",         keys: &["l", "ArrowRight"],   views: &["board"],          label: "column to the right" },
    Key { action: "open",          keys: &["Enter"],             views: LISTS,               label: "open" },
    Key { action: "back",          keys: &["Escape"],            views: &["all"],            label: "back" },
    Key { action: "move",          keys: &["Space"],             views: &["board"],          label: "move" },
    Key { action: "why",           keys: &["w"],                 views: &["board", "task", "fleet"], label: "why" },
    Key { action: "new_task",      keys: &["c"],                 views: &["board"],          label: "new task" },
    Key { action: "yes",           keys: &["y"],                 views: &["inbox", "task"],  label: "approve" },
    Key { action: "no",            keys: &["n"],                 views: &["inbox", "task"],  label: "deny or ask for changes" },
    Key { action: "select",        keys: &["x"],                 views: &["inbox"],          label: "select" },
    Key { action: "undo",          keys: &["z"],                 views: &["inbox"],          label: "undo" },
    Key { action: "comment",       keys: &["m"],                 views: &["task"],           label: "comment" },
    Key { action: "viewed",        keys: &["v"],                 views: &["task"],           label: "viewed" },
    Key { action: "send",          keys: &["Ctrl+Enter", "Meta+Enter"], views: &["task", "fleet"], label: "send" },
    Key { action: "next_waiting",  keys: &["."],                 views: &["fleet", "board"], label: "next that waits" },
    Key { action: "message",       keys: &["e"],                 views: &["fleet"],          label: "message" },
    Key { action: "pause",         keys: &["p"],                 views: &["fleet"],          label: "pause or resume" },
    Key { action: "follow",        keys: &["f"],                 views: &["fleet"],          label: "follow" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_in_a_view() {
        let meets = |one: &Key, other: &Key| {
            let both = one.views.iter().any(|view| other.views.contains(view));
            both || one.views.contains(&"all") || other.views.contains(&"all")
        };
        for (number, one) in KEYS.iter().enumerate() {
            for other in &KEYS[number + 1..] {
                let shared = one.keys.iter().find(|key| other.keys.contains(key));
                assert!(shared.is_none(), "{shared:?} does {} and {}", one.action, other.action);
                assert!(!meets(one, other) || one.action != other.action, "{} is there twice", one.action);
            }
        }
    }
}
