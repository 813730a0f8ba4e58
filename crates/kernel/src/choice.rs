//! What somebody can do next, as a code with parameters. Nothing here knows how it is done: each door words it, the command
//! line as a command, a page as a button.

use machines::names::{AgentName, ApprovalId, ChannelName, RequestId, RunId, SpecId, TaskId, WorkerName};
use serde::{Deserialize, Serialize};

macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident $({ $($field:ident: $of:ty),* })? = $code:literal, $does:literal;)*) => {
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

            /// What it will do, in one sentence.
            pub fn text(&self) -> &'static str {
                match self { $(Choice::$name $({ $($field: _),* })? => $does),* }
            }
        }
    };
}

choices! {
    ShowReview { task: TaskId } = "show_review", "shows what it changes, and what its tests said";
    ApproveReview { task: TaskId } = "approve_review", "lets it land: it is merged, tested, and main moves to it";
    RequestChanges { task: TaskId } = "request_changes", "sends it back to work, and tells its agent the text";
    ApproveRequest { approval: ApprovalId } = "approve_request", "allows it this once";
    ApproveAlways { approval: ApprovalId } = "approve_always", "allows exactly this call for the rest of the task";
    RaiseLimit { approval: ApprovalId } = "raise_limit", "raises the limit by as much again, and it goes on";
    CompleteAsIs { approval: ApprovalId } = "complete_as_is", "takes what there is as the whole work, and tests it";
    DenyRequest { approval: ApprovalId } = "deny_request", "refuses it, and tells whoever asked why";
    ShowRequest { approval: ApprovalId } = "show_request", "shows the whole request";
    AnswerQuestion { request: RequestId } = "answer_question", "tells whoever asked, and it goes on";
    ResumeTurn { channel: ChannelName, agent: AgentName } = "resume_turn", "lets the agent go on with its turn";
    TakeTurnAway { channel: ChannelName, agent: AgentName } = "take_turn_away", "ends its turn; the next in the room has it";
    ShowChannel { channel: ChannelName } = "show_channel", "says who is in it, who has the turn, or why nobody has it";
    ReadChannel { channel: ChannelName } = "read_channel", "shows what was said there";
    AddMember { channel: ChannelName, agent: AgentName } = "add_member", "lets the agent in";
    ListAgents = "list_agents", "lists the agents";
    EnableAgent { agent: AgentName } = "enable_agent", "lets the agent work and speak again";
    ShowSpec { spec: SpecId } = "show_spec", "shows the spec, and what is to be changed in it";
    MakeChannel = "make_channel", "makes another one";
    ListChannels = "list_channels", "lists the channels";
    AbandonRequest { request: RequestId } = "abandon_request", "gives it up: nobody waits for it any more";
    RecoverArchitect = "recover_architect", "lets the architect take up what waits for it";
    ListRequests = "list_requests", "lists the open ones";
    ExplainTask { task: TaskId } = "explain_task", "says what it waits for, and what went wrong";
    ExplainWorker { worker: WorkerName } = "explain_worker", "says what it waits for, and what went wrong";
    ResumeRun { run: RunId } = "resume_run", "lets its agent go on where it was";
    AbortRun { run: RunId } = "abort_run", "ends the run; its work is saved";
    RetryTask { task: TaskId } = "retry_task", "tries it again at once, on the same branch";
    RetryLanding { task: TaskId } = "retry_landing", "looks at once whether it can land now";
    RetryWorker { worker: WorkerName } = "retry_worker", "tries again at once, on the same branch";
    ClarifyTask { task: TaskId } = "clarify_task", "sends it back to work with what you make clear";
    RestartTask { task: TaskId } = "restart_task", "begins it again from main; its work is saved";
    RestartWithNote { task: TaskId } = "restart_with_note", "begins it again from main with what you make clear";
    KillWorker { worker: WorkerName } = "kill_worker", "ends the worker; its work is saved";
    CancelTask { task: TaskId } = "cancel_task", "ends the task; its work is saved";
    RefuseProposal { task: TaskId } = "refuse_proposal", "cancels it: nobody works on it";
    AcceptProposal { task: TaskId } = "accept_proposal", "lets the fleet work on it";
    RemoveDependency { task: TaskId, on: TaskId } = "remove_dependency", "lets it begin without the other task";
    ClearCheckout = "clear_checkout", "shows your local changes; commit or stash them, and it lands by itself";
    TrustSettings = "trust_settings", "puts adjutant.toml and .worktreeinclude into force as they are now";
    ShowSettings = "show_settings", "shows the settings that are in force";
    ForgetSettings = "forget_settings", "goes on with the defaults";
    CheckMachine = "check_machine", "shows what is full";
    EmptyTrash = "empty_trash", "deletes what is in the trash";
    RetryServices = "retry_services", "tries the service again at once";
    TestMain = "test_main", "tests main again, once it is fixed";
    StartFleet = "start_fleet", "starts the fleet, which goes on from there";
    AddTask = "add_task", "adds a task";
    ReopenTask { task: TaskId } = "reopen_task", "adds a task that takes it up again";
    UndoTask { task: TaskId } = "undo_task", "takes what has landed back";
    ChooseAgent { task: TaskId } = "choose_agent", "gives it to another agent";
    AssignTask { task: TaskId } = "assign_task", "gives it to a worker";
    CleanUpWorker { worker: WorkerName } = "clean_up_worker", "removes its tree; its work is saved";
    CleanUpByForce { worker: WorkerName } = "clean_up_by_force", "ends its process and removes its tree; its work is saved";
    PeekWorker { worker: WorkerName } = "peek_worker", "shows what it does";
    WatchTests { task: TaskId } = "watch_tests", "shows what the tests have printed so far";
    ShowDiff { task: TaskId } = "show_diff", "shows what it changes";
    OpenTree { task: TaskId } = "open_tree", "opens a shell in its tree; what you commit there is its work";
    ShowHistory { task: TaskId } = "show_history", "says what happened to it";
    ShowQueue = "show_queue", "shows where it stands";
    ListTasks = "list_tasks", "lists the tasks";
    ListWorkers = "list_workers", "lists the workers";
    ListRuns = "list_runs", "lists the runs";
    ListApprovals = "list_approvals", "lists the open ones";
    ListSaved = "list_saved", "lists what was saved";
}
