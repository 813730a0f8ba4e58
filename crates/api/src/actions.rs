//! What a person can do, as a request that a screen sends: each choice of the kernel with its button, its consequences, its
//! operation and what must be filled in. A screen knows none of these by itself.

use super::Method::{self, Delete, Patch, Post};
use super::terms;
use super::types::screen::{Action, ActionRequest, Field, FieldKind, YesNo};
use kernel::choice::Choice;
use kernel::world::{Approval, Task};
use kernel::{World, budget};
use machines::names::{ApprovalId, TaskId};
use serde_json::{Map, Value, json};

/// A choice as a screen offers it.
pub fn action(world: &World, choice: &Choice) -> Action {
    let mut action = Action {
        code: choice.code().to_owned(),
        label: choice.label().to_owned(),
        happens: happens(world, choice),
        answer: answer(choice),
        ends_work: ends_work(choice),
        request: None,
        fields: fields(world, choice),
        page: page(choice),
        command: None,
        refused: None,
    };
    if action.page.is_none() {
        action.request = request(world, choice);
    }
    if action.page.is_none() && action.request.is_none() {
        action.command = Some(::fleet::command_line::command(choice));
    }
    action
}

/// Whether it says yes or no to what waits.
fn answer(choice: &Choice) -> Option<YesNo> {
    match choice {
        Choice::ApproveReview { .. }
        | Choice::ApproveRequest { .. }
        | Choice::RaiseLimit { .. }
        | Choice::AnswerQuestion { .. }
        | Choice::AcceptProposal { .. }
        | Choice::ResumeRun { .. }
        | Choice::RetryTask { .. }
        | Choice::RetryWorker { .. }
        | Choice::RetryLanding { .. }
        | Choice::ClarifyTask { .. }
        | Choice::RemoveDependency { .. }
        | Choice::TrustSettings
        | Choice::TestMain
        | Choice::RetryServices
        | Choice::EnableAgent { .. }
        | Choice::RecoverArchitect => Some(YesNo::Yes),
        Choice::RequestChanges { .. }
        | Choice::DenyRequest { .. }
        | Choice::AbandonRequest { .. }
        | Choice::RefuseProposal { .. }
        | Choice::AbortRun { .. }
        | Choice::KillWorker { .. }
        | Choice::CancelTask { .. }
        | Choice::ForgetSettings => Some(YesNo::No),
        _ => None,
    }
}

fn ends_work(choice: &Choice) -> bool {
    matches!(
        choice,
        Choice::KillWorker { .. }
            | Choice::CancelTask { .. }
            | Choice::RefuseProposal { .. }
            | Choice::AbortRun { .. }
            | Choice::RestartTask { .. }
            | Choice::RestartWithNote { .. }
            | Choice::CleanUpByForce { .. }
            | Choice::StopFleet
            | Choice::EmptyTrash
    )
}

/// The page that shows what a choice only shows.
fn page(choice: &Choice) -> Option<String> {
    Some(match choice {
        Choice::ShowReview { task } | Choice::ShowDiff { task } => format!("/task/{task}/review"),
        Choice::ExplainTask { task } => format!("/task/{task}"),
        Choice::WatchTests { task } => format!("/task/{task}/checks"),
        Choice::ShowHistory { task } => format!("/task/{task}/history"),
        Choice::ExplainWorker { worker } | Choice::PeekWorker { worker } => format!("/fleet/{worker}"),
        Choice::ShowRequest { approval } => format!("/inbox/{approval}"),
        Choice::ListRequests | Choice::ListApprovals => "/inbox".to_owned(),
        Choice::ShowQueue => "/queue".to_owned(),
        Choice::ListTasks => "/board".to_owned(),
        Choice::ListWorkers | Choice::ListRuns => "/fleet".to_owned(),
        _ => return None,
    })
}

/// The request that carries a choice out; `None` where only a terminal can.
fn request(world: &World, choice: &Choice) -> Option<ActionRequest> {
    let name = |name: &dyn ToString| vec![name.to_string()];
    Some(match choice {
        Choice::ApproveReview { task } => {
            of(Post, "/tasks/{task}/review", name(task), json!({"approve": true, "tip": tip(world, task)}))
        }
        Choice::RequestChanges { task } => {
            of(Post, "/tasks/{task}/review", name(task), json!({"approve": false, "tip": tip(world, task)}))
        }
        Choice::ApproveRequest { approval } | Choice::RaiseLimit { approval } => {
            of(Post, "/approvals/{approval}/decision", name(approval), json!({"approve": true}))
        }
        Choice::ApproveAlways { approval } => of(
            Post,
            "/approvals/{approval}/decision",
            name(approval),
            json!({"approve": true, "always": true}),
        ),
        Choice::CompleteAsIs { approval } => of(
            Post,
            "/approvals/{approval}/decision",
            name(approval),
            json!({"approve": true, "complete": true}),
        ),
        Choice::DenyRequest { approval } => {
            of(Post, "/approvals/{approval}/decision", name(approval), json!({"approve": false}))
        }
        Choice::AnswerQuestion { request } => {
            of(Post, "/requests/{request}/answer", name(request), json!({}))
        }
        Choice::AbandonRequest { request } => {
            of(Post, "/requests/{request}/answer", name(request), json!({"abandon": true}))
        }
        Choice::PauseRun { run } => {
            of(Post, "/runs/{run}/events", name(run), json!({"type": "PAUSE", "reason": "user_input"}))
        }
        Choice::ResumeRun { run } => of(Post, "/runs/{run}/events", name(run), json!({"type": "RESUME"})),
        Choice::AbortRun { run } => {
            of(Post, "/runs/{run}/events", name(run), json!({"type": "ABORT", "reason": "ended by a person"}))
        }
        Choice::RetryTask { task } | Choice::RetryLanding { task } => {
            of(Post, "/tasks/{task}/retry", name(task), json!({}))
        }
        Choice::RetryWorker { worker } => of(Post, "/workers/{worker}/retry", name(worker), json!({})),
        Choice::ClarifyTask { task } => {
            of(Post, "/tasks/{task}/transitions", name(task), json!({"to": "IN_PROGRESS"}))
        }
        Choice::RestartTask { task } | Choice::RestartWithNote { task } => {
            of(Post, "/tasks/{task}/restart", name(task), json!({}))
        }
        Choice::KillWorker { worker } => of(Post, "/workers/{worker}/kill", name(worker), json!({})),
        Choice::CancelTask { task } | Choice::RefuseProposal { task } => {
            of(Post, "/tasks/{task}/transitions", name(task), json!({"to": "CANCELED"}))
        }
        Choice::AcceptProposal { task } => of(Post, "/tasks/{task}/accept", name(task), json!({})),
        Choice::RemoveDependency { task, on } => {
            of(Delete, "/tasks/{task}/dependencies/{on}", vec![task.to_string(), on.to_string()], json!({}))
        }
        Choice::TrustSettings => of(Post, "/config/trust", vec![], json!({})),
        Choice::ForgetSettings => of(Post, "/config/forget", vec![], json!({})),
        Choice::EmptyTrash => of(Post, "/trash/empty", vec![], json!({})),
        Choice::TestMain => of(Post, "/fleet/test-main", vec![], json!({})),
        Choice::StartFleet => of(Post, "/fleet/start", vec![], json!({})),
        Choice::StopFleet => of(Post, "/fleet/stop", vec![], json!({})),
        Choice::AddTask => of(Post, "/tasks", vec![], json!({})),
        Choice::ReopenTask { task } => of(Post, "/tasks", vec![], json!({"reopens": task})),
        Choice::UndoTask { task } => of(Post, "/tasks/{task}/undo", name(task), json!({})),
        Choice::ChooseAgent { task } => of(Patch, "/tasks/{task}", name(task), json!({})),
        Choice::CleanUpWorker { worker } => of(Post, "/workers/{worker}/cleanup", name(worker), json!({})),
        Choice::CleanUpByForce { worker } => {
            of(Post, "/workers/{worker}/cleanup", name(worker), json!({"force": true}))
        }
        Choice::EnableAgent { agent } => of(Post, "/agents/{agent}/enable", name(agent), json!({})),
        Choice::RecoverArchitect => of(Post, "/architect/recover", vec![], json!({})),
        Choice::ResumeTurn { channel, agent } => {
            of(Post, "/channels/{channel}/turn", name(channel), json!({"action": "resume", "agent": agent}))
        }
        Choice::TakeTurnAway { channel, agent } => {
            of(Post, "/channels/{channel}/turn", name(channel), json!({"action": "skip", "agent": agent}))
        }
        _ => return None,
    })
}

/// A request to an operation. That the table has it, a test of this file holds: the table itself names this file's callers.
fn of(method: Method, path: &str, names: Vec<String>, body: Value) -> ActionRequest {
    let mut names = names.into_iter();
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => names.next().unwrap_or_default(),
        false => part.to_owned(),
    });
    let path = parts.collect::<Vec<_>>().join("/");
    let body = match body {
        Value::Object(body) => body,
        _ => Map::new(),
    };
    ActionRequest { method: method.name().to_owned(), path, body }
}

fn tip(world: &World, task: &TaskId) -> Option<String> {
    let place = world.task(task)?.work.place.as_ref()?;
    place.tip.as_ref().map(ToString::to_string)
}

fn text_field(name: &str, label: &str, required: bool, text: &str) -> Field {
    Field {
        name: name.to_owned(),
        label: label.to_owned(),
        kind: FieldKind::Text,
        required,
        choices: Vec::new(),
        text: text.to_owned(),
        items: None,
    }
}

fn fields(world: &World, choice: &Choice) -> Vec<Field> {
    match choice {
        Choice::RequestChanges { .. } => {
            vec![text_field("note", "Changes", true, "What must be changed. Its agent gets this text.")]
        }
        Choice::DenyRequest { .. } => {
            vec![text_field("note", "Reason", false, "Why. The agent gets this text.")]
        }
        Choice::AnswerQuestion { .. } => {
            vec![text_field("text", "Answer", true, "The answer. The agent gets this text.")]
        }
        Choice::ClarifyTask { .. } => {
            vec![text_field("clarification", "Clarification", true, "What the agent did not understand.")]
        }
        Choice::RestartWithNote { .. } => {
            vec![text_field("note", "Note", true, "What is to be done differently.")]
        }
        Choice::ChooseAgent { .. } => vec![Field {
            kind: FieldKind::Choice,
            choices: terms::agents(world),
            ..text_field("agent", "Agent", true, "The agent that goes on with it.")
        }],
        Choice::AddTask | Choice::ReopenTask { .. } => vec![
            Field {
                kind: FieldKind::Line,
                ..text_field("title", "Title", true, "The work to do, in one line.")
            },
            text_field("body", "Text", false, "The work to do, in full."),
        ],
        _ => Vec::new(),
    }
}

/// What will be so afterwards, in sentences.
fn happens(world: &World, choice: &Choice) -> Vec<String> {
    match choice {
        Choice::ApproveReview { task } => approved_review(world, task),
        Choice::RequestChanges { task } => changes(world, task),
        Choice::ApproveRequest { approval } => approved_call(world, approval),
        Choice::ApproveAlways { approval } => {
            let mut happens = approved_call(world, approval);
            if let Some(last) = happens.last_mut() {
                *last = "Exactly this call is allowed for the rest of the task; you are not asked again."
                    .to_owned();
            }
            happens
        }
        Choice::RaiseLimit { approval } => raised(world, approval),
        Choice::DenyRequest { approval } => denied(world, approval),
        Choice::KillWorker { worker } => {
            let task = world.worker(worker).and_then(|worker| worker.machine.task.clone());
            let mut happens = vec![
                format!("The processes of {worker} end."),
                "What is in its tree is saved to a reference of git first.".to_owned(),
            ];
            if let Some(task) = task {
                happens.push(format!("{task} keeps its branch; another worker goes on with it."));
            }
            happens
        }
        Choice::StopFleet => vec![
            "No worker begins another step.".to_owned(),
            "Calls under way have time to finish (fleet.stop_timeout); then they end, and their agents are told when they go on."
                .to_owned(),
            "Branches, trees and the log stay as they are: the next start goes on from there.".to_owned(),
            "A process that runs only for this fleet ends with it, and this page is stale then.".to_owned(),
        ],
        choice => vec![sentence(choice.text())],
    }
}

/// The text of a choice as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn approved_review(world: &World, task: &TaskId) -> Vec<String> {
    let place = world.queue.len() + usize::from(world.landing.is_some()) + 1;
    let mut happens = vec![
        format!("{task} joins the queue at place {place} and is merged with {} there.", world.config.main),
        format!(
            "If the tests of the merge pass, {} moves to it. If they fail, its agent gets their output.",
            world.config.main
        ),
    ];
    let waiting = open_dependents(world, task);
    if !waiting.is_empty() {
        happens.push(format!("{} can start when it has landed.", waiting.join(", ")));
    }
    happens
}

fn changes(world: &World, task: &TaskId) -> Vec<String> {
    let Some(task) = world.task(task) else { return Vec::new() };
    let (round, most) = (task.machine.review_cycles + 1, world.config.policy.max_review_cycles);
    let mut happens = vec!["Its agent gets your text and continues in the same branch.".to_owned()];
    happens.push(match round >= most {
        true => format!("This is round {round} of {most}: without an approval the task is blocked then."),
        false => format!("This is round {round} of {most}."),
    });
    happens
}

/// The tasks that depend on one and are not over.
pub fn open_dependents(world: &World, task: &TaskId) -> Vec<String> {
    let dependents = world.dependents.get(task).into_iter().flatten();
    let open = dependents.filter(|id| world.task(id).is_some_and(|task| !task.is_final()));
    open.map(ToString::to_string).collect()
}

fn asked<'w>(world: &'w World, approval: &ApprovalId) -> (Option<&'w Approval>, Option<&'w Task>, String) {
    let approval = world.approvals.get(approval).map(AsRef::as_ref);
    let task = approval.and_then(|approval| world.task(approval.task.as_ref()?));
    let worker = task.and_then(|task| world.worker_of(&task.id));
    let who = worker.map_or("The agent".to_owned(), |worker| worker.name.to_string());
    (approval, task, who)
}

fn approved_call(world: &World, approval: &ApprovalId) -> Vec<String> {
    let (approval, task, who) = asked(world, approval);
    let mut happens = Vec::new();
    let tool = approval.and_then(|approval| approval.call.as_ref()).map(|call| call.tool.to_string());
    match tool {
        Some(tool) => happens.push(format!("The call of {tool} runs once, in the tree of {who}.")),
        None => happens.push(format!("{who} goes on.")),
    }
    if let Some(task) = task {
        let back = task.machine.came_from.unwrap_or(machines::task::Status::InProgress);
        happens.push(format!("{} goes back to {}.", task.id, terms::label(back)));
    }
    happens.push("The rule stays: the next call of this kind is asked about again.".to_owned());
    happens
}

fn raised(world: &World, approval: &ApprovalId) -> Vec<String> {
    let (approval, task, who) = asked(world, approval);
    let limit = approval.and_then(|approval| approval.limit).map(budget::dollars);
    let mut happens = vec![match limit {
        Some(limit) => {
            format!("The limit of {limit} rises by as much again, unless you name another amount.")
        }
        None => "The limit rises by as much again.".to_owned(),
    }];
    match task {
        Some(_) => happens.push(format!("{who} goes on where it stopped.")),
        None => happens.push("Workers start again.".to_owned()),
    }
    happens
}

fn denied(world: &World, approval: &ApprovalId) -> Vec<String> {
    let (approval, task, who) = asked(world, approval);
    let is_call = approval.is_some_and(|approval| approval.call.is_some());
    let mut happens = match is_call {
        true => vec![format!("{who} is told that you denied it, with your words, and goes on without it.")],
        false => vec!["It stays as it is: what waits for it does not go on.".to_owned()],
    };
    if let Some(task) = task.filter(|_| is_call) {
        let back = task.machine.came_from.unwrap_or(machines::task::Status::InProgress);
        happens.push(format!("Nothing is removed; {} goes back to {}.", task.id, terms::label(back)));
    }
    happens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;

    /// Every choice, with names for all that it takes.
    fn choices() -> Vec<Choice> {
        let names = json!({
            "task": "t-1", "on": "t-2", "worker": "A", "approval": "q1", "request": "r1", "run": "t-1.1",
            "channel": "room", "agent": "coder", "spec": "plan",
        });
        let choice = |code: &&str| {
            let mut choice = names.clone();
            choice["code"] = (*code).into();
            serde_json::from_value(choice).expect("a choice")
        };
        Choice::CODES.iter().map(choice).collect()
    }

    #[test]
    fn every_choice_is_a_request_a_page_or_a_command_and_says_what_happens() {
        let world = World::default();
        for choice in choices() {
            let action = action(&world, &choice);
            let ways = [action.request.is_some(), action.page.is_some(), action.command.is_some()];
            assert_eq!(ways.iter().filter(|way| **way).count(), 1, "{choice:?}: {ways:?}");
            assert!(!action.label.is_empty(), "{choice:?}");
            if let Some(request) = &action.request {
                let rows = routes::all().filter(|row| row.method.name() == request.method);
                let known = rows.filter(|row| row.names(&request.path).is_some()).count();
                assert_eq!(known, 1, "{choice:?} asks {} {}", request.method, request.path);
            }
        }
    }

    #[test]
    fn what_must_be_filled_in_is_a_member_of_the_request_and_not_given_twice() {
        for choice in choices() {
            let action = action(&World::default(), &choice);
            for field in &action.fields {
                let request = action.request.as_ref().expect("fields are sent with a request");
                assert!(!request.body.contains_key(&field.name), "{choice:?}: {}", field.name);
            }
        }
    }
}
