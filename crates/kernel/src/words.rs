//! Words that decide. Each is an enum with one spelling in the log and on the wire, so that whoever adds one is shown every
//! place that must know it.

use crate::config::Micros;
use serde::{Deserialize, Serialize};

machines::wire_enum! {
    /// Why an agent that was connected is not there any more.
    pub enum GoneBecause {
        Disconnected = "disconnected",
        /// It missed its heartbeats.
        Silent = "silent",
    }
}

machines::wire_enum! {
    /// What the gate found that is not for it to judge.
    pub enum GateFact {
        NoTests = "no_tests",
        TouchesConfig = "touches_config",
        TouchesInclude = "touches_worktreeinclude",
    }
}

machines::wire_enum! {
    /// Why a person must look at a task, whatever the policy.
    pub enum PersonNeeded {
        NoChanges = "no_changes",
        NoTests = "no_tests",
        MaxSteps = "max_steps",
        TouchesConfig = "touches_config",
        /// It changes `.worktreeinclude`, which decides what of the person's files trees get.
        TouchesInclude = "touches_worktreeinclude",
        /// It came to REVIEW without our gate.
        ByHand = "by_hand",
    }
}

impl PersonNeeded {
    /// Which of the facts needs a person first. Every one of them does.
    pub fn of(facts: &[GateFact], max_steps_reached: bool) -> Option<PersonNeeded> {
        let by_fact = facts.iter().map(|fact| match fact {
            GateFact::NoTests => PersonNeeded::NoTests,
            GateFact::TouchesConfig => PersonNeeded::TouchesConfig,
            GateFact::TouchesInclude => PersonNeeded::TouchesInclude,
        });
        by_fact.min().or(max_steps_reached.then_some(PersonNeeded::MaxSteps))
    }

    pub fn text(self) -> &'static str {
        match self {
            PersonNeeded::NoChanges => "it changes nothing",
            PersonNeeded::NoTests => "no tests were found",
            PersonNeeded::MaxSteps => "it took all its steps",
            PersonNeeded::TouchesConfig => "it changes adjutant.toml",
            PersonNeeded::TouchesInclude => {
                "it changes .worktreeinclude, which decides which of your files agents get"
            }
            PersonNeeded::ByHand => "it was moved to REVIEW by hand, so no checks ran",
        }
    }
}

machines::wire_enum! {
    /// Whose word a note on a request is.
    pub enum NoteKind {
        /// The rules' or a person's, who is named in it.
        Plain = "plain",
        /// The architect leaves the request to a person, and has it in hand still.
        Escalation = "escalation",
        /// The architect has given the request up.
        GaveUp = "gave_up",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes what all such words derive")]
impl Default for NoteKind {
    fn default() -> Self {
        NoteKind::Plain
    }
}

impl NoteKind {
    pub fn is_plain(&self) -> bool {
        *self == NoteKind::Plain
    }
}

machines::wire_enum! {
    /// Who did something, as the log has it: `human:ann`, `agent:coder`, `system`.
    pub enum ActorKind {
        Human = "human",
        Agent = "agent",
        System = "system",
    }
}

impl ActorKind {
    /// `None`: a name of before, which does not say.
    pub fn of(actor: &str) -> Option<ActorKind> {
        machines::Wire::read(actor.split([':', ' ']).next()?)
    }
}

/// Who did something and its name, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorName<'a> {
    Human(&'a str),
    Agent(&'a str),
    System,
    /// The system, for an agent.
    SystemFor(&'a str),
}

impl<'a> ActorName<'a> {
    const FOR: &'static str = " for ";

    /// `None`: a name of before, which does not say.
    pub fn read(actor: &'a str) -> Option<ActorName<'a>> {
        let kind = ActorKind::of(actor)?;
        let rest = &actor[machines::Wire::name(kind).len()..];
        match kind {
            ActorKind::Human => rest.strip_prefix(':').map(ActorName::Human),
            ActorKind::Agent => rest.strip_prefix(':').map(ActorName::Agent),
            ActorKind::System if rest.is_empty() => Some(ActorName::System),
            ActorKind::System => rest.strip_prefix(Self::FOR).map(ActorName::SystemFor),
        }
    }
}

impl std::fmt::Display for ActorName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ActorName::Human(name) => write!(f, "{}:{name}", ActorKind::Human),
            ActorName::Agent(name) => write!(f, "{}:{name}", ActorKind::Agent),
            ActorName::System => write!(f, "{}", ActorKind::System),
            ActorName::SystemFor(agent) => write!(f, "{}{}{agent}", ActorKind::System, Self::FOR),
        }
    }
}

machines::wire_enum! {
    /// What led to the gate that sends work back. Only a claim is the agent's word that the work is done.
    pub enum GateCause {
        Claim = "claim",
        OutOfSteps = "out_of_steps",
        /// A person completed the run.
        Person = "person",
        /// No gate: its landing failed.
        Landing = "landing",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes what all such words derive")]
impl Default for GateCause {
    fn default() -> Self {
        GateCause::Claim
    }
}

impl GateCause {
    pub fn is_claim(&self) -> bool {
        *self == GateCause::Claim
    }

    pub fn of(worker: bool, max_steps_reached: bool) -> GateCause {
        match (worker, max_steps_reached) {
            (_, true) => GateCause::OutOfSteps,
            (true, false) => GateCause::Claim,
            (false, false) => GateCause::Person,
        }
    }

    /// What happened before the gate, as the first half of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            GateCause::Claim => "agent reported done",
            GateCause::OutOfSteps => "agent took all its steps",
            GateCause::Person => "a person completed the run",
            GateCause::Landing => "it was landing",
        }
    }
}

machines::wire_enum! {
    /// How a landing ended that did not move main.
    pub enum LandingEnd {
        /// Somebody else moved main: the merge is made and tested again.
        MainMovedByOther = "main was moved",
        NotApproved = "no longer approved",
        Failed = "failed",
        HeldUp = "held up",
        NotTested = "the tests could not be run",
    }
}

machines::wire_enum! {
    /// How an effect left the outbox.
    pub enum EffectEnd {
        Done = "done",
        /// Nobody wants it any more.
        Superseded = "superseded",
        /// A timer that is not needed any more.
        Cleared = "cleared",
        /// A timer whose time came.
        Due = "due",
    }
}

machines::wire_enum! {
    /// What became of a question.
    pub enum Verdict {
        Approved = "approved",
        /// The very same call is allowed for the rest of the task.
        Always = "always approved",
        /// The run is complete as it is.
        Completed = "completed",
        Denied = "denied",
        /// The task was moved by hand, which settles it.
        Moved = "moved",
        Canceled = "canceled",
        Blocked = "blocked",
    }
}

machines::wire_enum! {
    /// What is asked, and so how it is handled.
    pub enum RequestKind {
        /// Somebody wants to know something before going on.
        Question = "question",
        /// An agent's plan. Approved at once, and stored.
        Plan = "plan",
        /// Finished work is reviewed.
        Code = "code",
        /// The same where nothing was changed.
        Completion = "completion",
        /// A task's budget is used up.
        Budget = "budget",
        /// A story is over.
        Merge = "merge",
        /// A spec is split into stories.
        Spec = "spec",
    }
}

impl RequestKind {
    /// What is asked for, as a sentence names it.
    pub fn noun(self) -> &'static str {
        match self {
            RequestKind::Question => "answer",
            RequestKind::Plan => "plan",
            RequestKind::Code | RequestKind::Completion => "review",
            RequestKind::Budget => "budget",
            RequestKind::Merge => "merge",
            RequestKind::Spec => "spec",
        }
    }
}

machines::wire_enum! {
    /// How a step ended well.
    pub enum StepEnding {
        /// The agent says DONE.
        Done = "done",
        NotDone = "not_done",
        /// The agent used the turns that it had, and was not finished.
        OutOfTurns = "out_of_turns",
        /// The agent used the money that it had, and was not finished.
        OutOfMoney = "out_of_money",
        /// The fleet stopped in the middle of a turn.
        CutOff = "cut_off",
    }
}

/// By how much a limit is raised, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Raise {
    Turns(u32),
    Money(Micros),
}

machines::wire_enum! {
    /// The side of a diff that a comment is on.
    pub enum DiffSide {
        New = "new",
        Old = "old",
    }
}

machines::wire_enum! {
    /// What must be so for a task, a worker or the fleet to go on.
    pub enum Condition {
        FleetRunning = "fleetRunning",
        SettingsValid = "settingsValid",
        MainTests = "mainTests",
        DayBudgetSettled = "dayBudgetSettled",
        DiskRoom = "diskRoom",
        ServiceHealthy = "serviceHealthy",
        ServiceThere = "serviceThere",
        ServiceBack = "serviceBack",
        AgentCap = "agentCap",
        StatusCap = "statusCap",
        RunBudget = "runBudget",
        TaskBudget = "taskBudget",
        AgentBudget = "agentBudget",
        DayBudget = "dayBudget",
        StatusOpen = "statusOpen",
        Open = "open",
        NoLease = "noLease",
        ProposalAccepted = "proposalAccepted",
        NothingUnfinished = "nothingUnfinished",
        OwnAgent = "ownAgent",
        AgentConfigured = "agentConfigured",
        AgentEnabled = "agentEnabled",
        TicketThere = "ticketThere",
        TicketOpen = "ticketOpen",
        DependencyDone = "dependencyDone",
        NotBlocked = "notBlocked",
        Decided = "decided",
        Answered = "answered",
        Approved = "approved",
        CheckoutFree = "checkoutFree",
        PullRequestMerged = "pullRequestMerged",
        NoFailure = "noFailure",
        NoConflict = "noConflict",
        Landing = "landing",
        TestsPass = "testsPass",
        WorkerIdle = "workerIdle",
        WorkThere = "workThere",
        WorkerState = "workerState",
        RunState = "runState",
        UnderWay = "underWay",
        /// Its tests run now.
        TestsUnderWay = "testsUnderWay",
        BackoffOver = "backoffOver",
        NotStuck = "notStuck",
    }
}

impl Condition {
    /// As people would say it. Programs get its name.
    pub fn text(self) -> &'static str {
        match self {
            Condition::FleetRunning => "fleet",
            Condition::SettingsValid => "settings",
            Condition::MainTests => "main's own tests",
            Condition::DayBudgetSettled => "question about the day's budget",
            Condition::DiskRoom => "disk space",
            Condition::ServiceHealthy | Condition::ServiceThere | Condition::ServiceBack => "model API",
            Condition::AgentCap | Condition::StatusCap => "limit of tasks at once",
            Condition::RunBudget => "budget of the run",
            Condition::TaskBudget => "budget of the task",
            Condition::AgentBudget => "budget of the agent",
            Condition::DayBudget => "budget of the day",
            Condition::StatusOpen | Condition::Open => "status",
            Condition::NoLease => "held by",
            Condition::ProposalAccepted => "proposal",
            Condition::AgentEnabled => "agent",
            Condition::NothingUnfinished => "unfinished work",
            Condition::OwnAgent => "assigned agent",
            Condition::AgentConfigured => "agent configured",
            Condition::TicketThere | Condition::TicketOpen => "ticket",
            Condition::DependencyDone => "dependency",
            Condition::NotBlocked => "blocked",
            Condition::Decided | Condition::Answered => "question",
            Condition::Approved => "review",
            Condition::CheckoutFree => "your checkout",
            Condition::PullRequestMerged => "pull request",
            Condition::NoFailure => "failing",
            Condition::NoConflict => "merge",
            Condition::Landing => "landing",
            Condition::TestsPass => "tests",
            Condition::WorkerIdle => "workers",
            Condition::WorkThere => "work",
            Condition::WorkerState => "worker",
            Condition::RunState => "run",
            Condition::UnderWay => "under way",
            Condition::TestsUnderWay => "tests under way",
            Condition::BackoffOver => "back-off",
            Condition::NotStuck => "stuck",
        }
    }

    /// Whether only a person changes it, wherever it does not hold.
    pub fn is_for_a_person(self) -> bool {
        matches!(
            self,
            Condition::DayBudgetSettled
                | Condition::OwnAgent
                | Condition::AgentEnabled
                | Condition::TicketOpen
                | Condition::TicketThere
                | Condition::ProposalAccepted
        )
    }

    /// Whether it is about money that was spent or set aside.
    pub fn is_budget(self) -> bool {
        matches!(
            self,
            Condition::RunBudget | Condition::TaskBudget | Condition::AgentBudget | Condition::DayBudget
        )
    }
}

machines::wire_enum! {
    /// What a comment on a task is. The log keeps the word: a comment of another version may be of a kind that is not here.
    pub enum CommentKind {
        /// Somebody said something.
        Comment = "comment",
        Plan = "plan",
        PlanNote = "plan_note",
        /// Changes were asked for.
        Changes = "changes",
        Clarification = "clarification",
        LoopSummary = "loop_summary",
        Approval = "approval",
        /// Why it is BLOCKED.
        Blocked = "blocked",
        /// What is known of its ticket.
        Ticket = "ticket",
        /// Where its work was saved.
        Saved = "saved",
        /// What the agent changed and may not.
        PutBack = "put_back",
        /// An effect fails again and again.
        Failing = "failing",
        Recovery = "recovery",
        PullRequest = "pull_request",
        Undo = "undo",
        /// Another try at the same task came first.
        OtherTry = "try",
        /// Who had it gave no sign of life.
        Lost = "lost",
    }
}
