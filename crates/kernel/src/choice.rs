//! What somebody can do next, as a code with parameters. Nothing here knows how it is done: each door words it, the command
//! line as a command, a page as a button.

use machines::names::{AgentName, ApprovalId, ChannelName, RequestId, RunId, SpecId, TaskId, WorkerName};
use serde::{Deserialize, Serialize};

macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident $({ $($field:ident: $of:ty),* })? = $code:literal, $label:literal, $does:literal;)*) => {
        /// Something that can be done: a code, and the names that it takes.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "code")]
        pub enum Choice {
            $($(#[$meta])* #[serde(rename = $code)] $name $({ $($field: $of),* })?,)*
        }

        impl Choice {
            pub const CODES: &[&str] = &[$($code),*];

            pub fn code(&self) -> &'static str {
                match self { $(Choice::$name $({ $($field: _),* })? => $code),* }
            }

            /// The word on a button for it.
            pub fn label(&self) -> &'static str {
                match self { $(Choice::$name $({ $($field: _),* })? => $label),* }
            }

            /// What it will do, in one sentence.
            pub fn text(&self) -> &'static str {
                match self { $(Choice::$name $({ $($field: _),* })? => $does),* }
            }
        }
    };
}

choices! {
    ShowReview { task: TaskId } = "show_review", "Review", "shows what it changes, and what its tests said";
    ApproveReview { task: TaskId } = "approve_review", "Approve", "lets it land: it is merged, tested, and main moves to it";
    RequestChanges { task: TaskId } = "request_changes", "Ask for changes", "sends it back to work, and tells its agent the text";
    ApproveRequest { approval: ApprovalId } = "approve_request", "Approve", "allows it this once";
    ApproveAlways { approval: ApprovalId } = "approve_always", "Always allow this call", "allows exactly this call for the rest of the task";
    RaiseLimit { approval: ApprovalId } = "raise_limit", "Raise the limit", "raises the limit by as much again, and it goes on";
    CompleteAsIs { approval: ApprovalId } = "complete_as_is", "Complete as it is", "takes what there is as the whole work, and tests it";
    DenyRequest { approval: ApprovalId } = "deny_request", "Deny", "refuses it, and tells whoever asked why";
    ShowRequest { approval: ApprovalId } = "show_request", "Show the request", "shows the whole request";
    AnswerQuestion { request: RequestId } = "answer_question", "Answer", "tells whoever asked, and it goes on";
    ResumeTurn { channel: ChannelName, agent: AgentName } = "resume_turn", "Resume the turn", "lets the agent go on with its turn";
    TakeTurnAway { channel: ChannelName, agent: AgentName } = "take_turn_away", "End the turn", "ends its turn; the next in the room has it";
    ShowChannel { channel: ChannelName } = "show_channel", "Show the channel", "says who is in it, who has the turn, or why nobody has it";
    ReadChannel { channel: ChannelName } = "read_channel", "Read the channel", "shows what was said there";
    AddMember { channel: ChannelName, agent: AgentName } = "add_member", "Add to the channel", "lets the agent in";
    ListAgents = "list_agents", "Agents", "lists the agents";
    EnableAgent { agent: AgentName } = "enable_agent", "Enable the agent", "lets the agent work and speak again";
    ShowSpec { spec: SpecId } = "show_spec", "Show the spec", "shows the spec, and what is to be changed in it";
    MakeChannel = "make_channel", "New channel", "makes another one";
    ListChannels = "list_channels", "Channels", "lists the channels";
    AbandonRequest { request: RequestId } = "abandon_request", "Give up the question", "gives it up: nobody waits for it any more";
    RecoverArchitect = "recover_architect", "Restart the architect", "lets the architect take up what waits for it";
    ListRequests = "list_requests", "Questions", "lists the open ones";
    ExplainTask { task: TaskId } = "explain_task", "Why?", "says what it waits for, and what went wrong";
    ExplainWorker { worker: WorkerName } = "explain_worker", "Why?", "says what it waits for, and what went wrong";
    PauseRun { run: RunId } = "pause_run", "Pause", "pauses the run after its turn; its agent keeps its tree and its session";
    ResumeRun { run: RunId } = "resume_run", "Resume", "lets its agent go on where it was";
    AbortRun { run: RunId } = "abort_run", "End the run", "ends the run; its work is saved";
    RetryTask { task: TaskId } = "retry_task", "Retry", "tries it again at once, on the same branch";
    RetryLanding { task: TaskId } = "retry_landing", "Try to land now", "looks at once whether it can land now";
    RetryWorker { worker: WorkerName } = "retry_worker", "Retry", "tries again at once, on the same branch";
    ClarifyTask { task: TaskId } = "clarify_task", "Clarify", "sends it back to work with what you make clear";
    RestartTask { task: TaskId } = "restart_task", "Start over", "begins it again from main; its work is saved";
    RestartWithNote { task: TaskId } = "restart_with_note", "Start over with a note", "begins it again from main with what you make clear";
    KillWorker { worker: WorkerName } = "kill_worker", "Kill", "ends the worker; its work is saved";
    CancelTask { task: TaskId } = "cancel_task", "Cancel the task", "ends the task; its work is saved";
    RefuseProposal { task: TaskId } = "refuse_proposal", "Refuse", "cancels it: nobody works on it";
    AcceptProposal { task: TaskId } = "accept_proposal", "Accept", "lets the fleet work on it";
    RemoveDependency { task: TaskId, on: TaskId } = "remove_dependency", "Remove the dependency", "lets it begin without the other task";
    ClearCheckout = "clear_checkout", "Show local changes", "shows your local changes; commit or stash them, and it lands by itself";
    TrustSettings = "trust_settings", "Trust the settings", "puts adjutant.toml and .worktreeinclude into force as they are now";
    ShowSettings = "show_settings", "Show the settings", "shows the settings that are in force";
    ForgetSettings = "forget_settings", "Use the defaults", "goes on with the defaults";
    CheckMachine = "check_machine", "Check the machine", "shows what is full";
    EmptyTrash = "empty_trash", "Empty the trash", "deletes what is in the trash";
    RetryServices = "retry_services", "Try again now", "tries the service again at once";
    TestMain = "test_main", "Test main again", "tests main again, once it is fixed";
    StartFleet = "start_fleet", "Start the fleet", "starts the fleet, which goes on from there";
    StopFleet = "stop_fleet", "Stop the fleet", "stops the fleet: running calls may end, work is kept, and the next start goes on from there";
    AddTask = "add_task", "New task", "adds a task";
    ReopenTask { task: TaskId } = "reopen_task", "Reopen", "adds a task that takes it up again";
    UndoTask { task: TaskId } = "undo_task", "Undo the landing", "takes what has landed back";
    ChooseAgent { task: TaskId } = "choose_agent", "Give to another agent", "gives it to another agent";
    AssignTask { task: TaskId } = "assign_task", "Assign to a worker", "gives it to a worker";
    CleanUpWorker { worker: WorkerName } = "clean_up_worker", "Clean up", "removes its tree; its work is saved";
    CleanUpByForce { worker: WorkerName } = "clean_up_by_force", "Clean up by force", "ends its process and removes its tree; its work is saved";
    PeekWorker { worker: WorkerName } = "peek_worker", "Watch", "shows what it does";
    WatchTests { task: TaskId } = "watch_tests", "Watch the tests", "shows what the tests have printed so far";
    ShowDiff { task: TaskId } = "show_diff", "Show the diff", "shows what it changes";
    OpenTree { task: TaskId } = "open_tree", "Open a shell", "opens a shell in its tree; what you commit there is its work";
    ShowHistory { task: TaskId } = "show_history", "History", "says what happened to it";
    ShowQueue = "show_queue", "Queue", "shows where it stands";
    ListTasks = "list_tasks", "Board", "lists the tasks";
    ListWorkers = "list_workers", "Fleet", "lists the workers";
    ListRuns = "list_runs", "Runs", "lists the runs";
    ListApprovals = "list_approvals", "Inbox", "lists the open ones";
    ListSaved = "list_saved", "Saved work", "lists what was saved";
}
