//! The words, moves and keys of live screens. The moves come from the task machine's table, so that a screen can say what a
//! move needs before it is made; whether it is made is decided by the kernel as ever.

use super::types::Nothing;
use super::types::screen::{Field, FieldKind, KeyTerm, MoveTerm, StatusTerm, Term, Terms};
use super::{Call, Problem};
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
    let terms = |terms: &[(&str, &str, &str)]| terms.iter().map(|it| term(it.0, it.1, it.2)).collect();
    Ok(Terms {
        statuses: Status::ALL
            .iter()
            .map(|status| StatusTerm {
                id: *status,
                label: label(*status).to_owned(),
                glyph: format!("task.{}", status.name()),
                is_final: Task::FINAL.contains(status),
                words: meaning(*status).to_owned(),
            })
            .collect(),
        moves: moves(&world),
        waiting_kinds: Kind::ALL
            .iter()
            .map(|kind| term(kind.name(), waiting_label(*kind), waiting_glyph(*kind)))
            .collect(),
        attention: terms(&[
            ("waits", "Wait for you", "task.NEEDS_APPROVAL"),
            ("stuck", "Stuck", "worker.stuck"),
            ("idle", "Idle", "worker.idle"),
            ("work", "At work", "worker.working"),
        ]),
        worker_states: machines::worker::State::ALL
            .iter()
            .map(|state| term(state.name(), worker_label(*state), &format!("worker.{}", state.name())))
            .collect(),
        queue_steps: terms(&[
            ("landing", "Landing", "arrow"),
            ("testing", "Testing", "clock"),
            ("waits", "Waiting", "queue"),
            ("held", "Held up", "clock"),
        ]),
        types: TaskType::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
        agents: agents(&world),
        keys: KEYS.iter().map(Key::term).collect(),
    })
}

fn term(id: &str, label: &str, glyph: &str) -> Term {
    Term { id: id.to_owned(), label: label.to_owned(), glyph: glyph.to_owned() }
}

/// The agents of the settings that work on tasks.
pub fn agents(world: &World) -> Vec<String> {
    world.config.agents.keys().map(ToString::to_string).collect()
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

/// The shape that stands before something that waits.
pub fn waiting_glyph(kind: Kind) -> &'static str {
    match kind {
        Kind::Review => "task.REVIEW",
        Kind::Approval | Kind::TurnLimit | Kind::Budget => "task.NEEDS_APPROVAL",
        Kind::PausedRun => "run.paused",
        Kind::Question => "architect.ESCALATED",
        Kind::Architect => "architect.WAITING",
        Kind::Turn | Kind::LostMember => "turn.WAITING",
        Kind::SpecChanges | Kind::Proposal => "pen",
        Kind::StuckWorker => "worker.stuck",
        Kind::BlockedTask => "task.BLOCKED",
        Kind::DeadDependency => "dead",
        Kind::CheckoutInTheWay | Kind::PullRequest => "queue",
        Kind::Outage => "clock",
        Kind::AgentDisabled
        | Kind::UntrustedSettings
        | Kind::FullDisk
        | Kind::RefusedCredentials
        | Kind::MainTestsRed
        | Kind::AgentMissing
        | Kind::TicketGone => "worker.stuck",
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
    let fields: Vec<Field> =
        people.into_iter().flat_map(|row| row.guards).filter_map(|guard| field(world, *guard)).collect();
    let names: Vec<&str> = fields.iter().map(|field| field.label.as_str()).collect();
    let asks = match names.is_empty() {
        true => String::new(),
        false => format!("Asks for: {}.", names.join(", ")),
    };
    MoveTerm { from, to, allowed: refused.is_none(), words: refused.unwrap_or(asks), fields }
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
        Guard::HasAssignees => agents(world),
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
    /// Nowhere named: it holds everywhere.
    views: &'static [&'static str],
    words: &'static str,
    foot: bool,
}

impl Key {
    fn term(&self) -> KeyTerm {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        KeyTerm {
            action: self.action.to_owned(),
            keys: texts(self.keys),
            views: texts(self.views),
            words: self.words.to_owned(),
            foot: self.foot,
        }
    }
}

const fn key(
    action: &'static str,
    keys: &'static [&'static str],
    views: &'static [&'static str],
    words: &'static str,
    foot: bool,
) -> Key {
    Key { action, keys, views, words, foot }
}

const LISTS: &[&str] = &["inbox", "board", "fleet", "queue", "task"];

/// The same key means the same in every view that has it.
#[rustfmt::skip]
const KEYS: &[Key] = &[
    //  action             keys               views                              words                        in the foot
    key("palette.open",     &["Ctrl+K"],       &[],                               "search or do",              false),
    key("help.open",        &["?"],            &[],                               "keys",                      true),
    key("connection.check", &["R"],            &[],                               "try now",                   false),
    key("back",             &["Esc"],          &[],                               "back",                      false),
    key("filter",           &["/"],            &["board", "fleet", "task"],       "filter",                    false),
    key("go.inbox",         &["G I"],          &[],                               "go to the inbox",           false),
    key("go.board",         &["G B"],          &[],                               "go to the board",           false),
    key("go.fleet",         &["G F"],          &[],                               "go to the fleet",           false),
    key("go.queue",         &["G Q"],          &[],                               "go to the queue",           false),
    key("next",             &["J", "↓"],       LISTS,                             "next",                      true),
    key("previous",         &["K", "↑"],       LISTS,                             "previous",                  false),
    key("left",             &["H", "←"],       &["board"],                        "column to the left",        false),
    key("right",            &["L", "→"],       &["board"],                        "column to the right",       false),
    key("open",             &["Enter"],        LISTS,                             "open",                      true),
    key("board.move",       &["Space"],        &["board"],                        "move",                      true),
    key("why",              &["W"],            &["board", "task", "fleet"],       "why",                       true),
    key("task.new",         &["C"],            &["board"],                        "new task",                  false),
    key("next.waiting",     &["."],            &["board", "fleet"],               "next that waits",           true),
    key("approve",          &["Y"],            &["inbox", "task"],                "approve",                   true),
    key("deny",             &["N"],            &["inbox", "task"],                "deny, or ask for changes",  true),
    key("select",           &["X"],            &["inbox"],                        "select several",            true),
    key("undo",             &["Z"],            &["inbox"],                        "undo",                      true),
    key("comment",          &["M"],            &["task"],                         "comment",                   true),
    key("comment.range",    &["Shift+↓"],      &["task"],                         "longer range",              false),
    key("viewed",           &["V"],            &["task"],                         "viewed",                    true),
    key("draft.keep",       &["Ctrl+S"],       &["task"],                         "keep the draft",            false),
    key("send",             &["Ctrl+Enter"],   &["task", "fleet"],                "send",                      false),
    key("message",          &["E"],            &["fleet"],                        "message",                   true),
    key("pause",            &["P"],            &["fleet"],                        "pause or resume",           true),
    key("follow",           &["F"],            &["fleet"],                        "follow",                    true),
    key("queue.retry",      &["T"],            &["queue"],                        "try to land now",           true),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_in_a_view() {
        for (number, one) in KEYS.iter().enumerate() {
            for other in &KEYS[number + 1..] {
                let shared = one.keys.iter().find(|key| other.keys.contains(key));
                assert!(shared.is_none(), "{shared:?} does {} and {}", one.action, other.action);
                assert_ne!(one.action, other.action, "it is there twice");
            }
        }
    }
}
