//! Words choices as command lines, for the command line and notices.

use kernel::choice::Choice;

/// Stands where something is left to say.
pub const TEXT: &str = "TEXT";
const NAME: &str = "NAME";
const WORKER: &str = "WORKER";
const TITLE: &str = "TITLE";

/// Whether a word of a command line stands for something that is left to say.
pub fn is_left_to_say(word: &str) -> bool {
    [TEXT, NAME, WORKER, TITLE].contains(&word)
}

/// The command line that does it; what is left to say stands in capitals.
pub fn command(choice: &Choice) -> String {
    words(choice).join(" ")
}

/// The same, word by word.
pub fn words(choice: &Choice) -> Vec<&str> {
    match choice {
        Choice::ShowReview { task } => vec!["adj", "review", task.as_str()],
        Choice::ApproveReview { task } => vec!["adj", "review", task.as_str(), "--approve"],
        Choice::RequestChanges { task } => vec!["adj", "review", task.as_str(), "--changes", TEXT],
        Choice::ApproveRequest { approval } | Choice::RaiseLimit { approval } => {
            vec!["adj", "approve", approval.as_str()]
        }
        Choice::ApproveAlways { approval } => vec!["adj", "approve", approval.as_str(), "--always"],
        Choice::CompleteAsIs { approval } => vec!["adj", "approve", approval.as_str(), "--complete"],
        Choice::DenyRequest { approval } => vec!["adj", "deny", approval.as_str(), "--note", TEXT],
        Choice::ShowRequest { approval } => vec!["adj", "approvals", approval.as_str()],
        Choice::PauseRun { run } => vec!["adj", "pause", run.as_str()],
        Choice::ResumeRun { run } => vec!["adj", "resume", run.as_str()],
        Choice::AbortRun { run } => vec!["adj", "abort", run.as_str()],
        Choice::AnswerQuestion { request } => vec!["adj", "answer", request.as_str(), TEXT],
        Choice::AbandonRequest { request } => vec!["adj", "answer", request.as_str(), "--abandon"],
        Choice::ListAgents => vec!["adj", "agent", "ls"],
        Choice::EnableAgent { agent } => vec!["adj", "agent", "enable", agent.as_str()],
        Choice::ShowSpec { spec } => vec!["adj", "spec", "show", spec.as_str()],
        Choice::RecoverArchitect => vec!["adj", "retry", "architect"],
        Choice::ResumeTurn { channel, agent } => {
            vec!["adj", "turn", "resume", channel.as_str(), "--as", agent.as_str()]
        }
        Choice::TakeTurnAway { channel, agent } => {
            vec!["adj", "turn", "skip", channel.as_str(), "--as", agent.as_str()]
        }
        Choice::ShowChannel { channel } => vec!["adj", "channel", "status", channel.as_str()],
        Choice::ReadChannel { channel } => vec!["adj", "channel", "history", channel.as_str()],
        Choice::AddMember { channel, agent } => {
            vec!["adj", "channel", "add", channel.as_str(), agent.as_str()]
        }
        Choice::MakeChannel => vec!["adj", "channel", "create", NAME],
        Choice::ListChannels => vec!["adj", "channel", "ls"],
        Choice::ListRequests => vec!["adj", "requests"],
        Choice::ExplainTask { task } => vec!["adj", "why", task.as_str()],
        Choice::ExplainWorker { worker } => vec!["adj", "why", worker.as_str()],
        Choice::RetryTask { task } | Choice::RetryLanding { task } => vec!["adj", "retry", task.as_str()],
        Choice::RetryWorker { worker } => vec!["adj", "retry", worker.as_str()],
        Choice::ClarifyTask { task } => {
            vec!["adj", "task", "move", task.as_str(), "IN_PROGRESS", "--clarification", TEXT]
        }
        Choice::RestartTask { task } => vec!["adj", "task", "restart", task.as_str()],
        Choice::RestartWithNote { task } => vec!["adj", "task", "restart", task.as_str(), "--note", TEXT],
        Choice::KillWorker { worker } => vec!["adj", "kill", worker.as_str()],
        Choice::CancelTask { task } | Choice::RefuseProposal { task } => {
            vec!["adj", "task", "cancel", task.as_str()]
        }
        Choice::AcceptProposal { task } => vec!["adj", "task", "accept", task.as_str()],
        Choice::RemoveDependency { task, on } => vec!["adj", "task", "dep", "rm", task.as_str(), on.as_str()],
        Choice::ClearCheckout => vec!["git", "status"],
        Choice::TrustSettings => vec!["adj", "config", "trust"],
        Choice::ShowSettings => vec!["adj", "config", "show"],
        Choice::ForgetSettings => vec!["adj", "config", "forget"],
        Choice::CheckMachine => vec!["adj", "doctor"],
        Choice::EmptyTrash => vec!["adj", "clean", "--trash"],
        Choice::RetryServices => vec!["adj", "retry", "--all"],
        Choice::TestMain => vec!["adj", "doctor", "--tests"],
        Choice::StartFleet => vec!["adj", "run"],
        Choice::StopFleet => vec!["adj", "stop", "--fleet"],
        Choice::AddTask => vec!["adj", "task", "add", TITLE],
        Choice::ReopenTask { task } => vec!["adj", "task", "add", TITLE, "--reopens", task.as_str()],
        Choice::UndoTask { task } => vec!["adj", "undo", task.as_str()],
        Choice::ChooseAgent { task } => vec!["adj", "task", "edit", task.as_str(), "--agent", NAME],
        Choice::AssignTask { task } => vec!["adj", "assign", WORKER, task.as_str()],
        Choice::CleanUpWorker { worker } => vec!["adj", "cleanup", worker.as_str()],
        Choice::CleanUpByForce { worker } => vec!["adj", "cleanup", worker.as_str(), "--force"],
        Choice::PeekWorker { worker } => vec!["adj", "peek", worker.as_str()],
        Choice::WatchTests { task } => vec!["adj", "logs", task.as_str(), "--tests"],
        Choice::ShowDiff { task } => vec!["adj", "diff", task.as_str()],
        Choice::OpenTree { task } => vec!["adj", "shell", task.as_str()],
        Choice::ShowHistory { task } => vec!["adj", "history", task.as_str()],
        Choice::ShowQueue => vec!["adj", "queue"],
        Choice::ListTasks => vec!["adj", "task", "ls"],
        Choice::ListWorkers => vec!["adj", "ps"],
        Choice::ListRuns => vec!["adj", "runs"],
        Choice::ListApprovals => vec!["adj", "approvals"],
        Choice::ListSaved => vec!["adj", "salvage", "list"],
    }
}
