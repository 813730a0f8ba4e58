//! The task machine: how far a unit of work is, and who may move it.
//!
//! Invariants: DONE and CANCELED are final for everyone; a move is made only with everything that it requires;
//! the role comes from the caller's credential and is never part of the request.

use crate::Millis;
use crate::machine::{Caller, Code, FieldError, Index, Machine, Meta, Role, Row, Who, row, rows_at};
use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::{Arc, OnceLock};

use Action::*;
use Guard::*;
use Kind::*;
use Status::*;

const HUMAN: &[Who] = &[Who::Any(Role::Human)];
const HUMAN_OR_SYSTEM: &[Who] = &[Who::Any(Role::Human), Who::Any(Role::System)];
const SYSTEM: &[Who] = &[Who::Any(Role::System)];
const ASSIGN: &[Who] =
    &[Who::Claiming(Role::Specialist), Who::Any(Role::Lead), Who::Any(Role::Human), Who::Any(Role::System)];
const UNASSIGN: &[Who] = &[Who::Any(Role::Lead), Who::Any(Role::Human)];
const WORK: &[Who] = &[
    Who::Assigned(Role::Intern),
    Who::Assigned(Role::Specialist),
    Who::Assigned(Role::Lead),
    Who::Any(Role::Human),
    Who::Any(Role::System),
];
const BLOCK: &[Who] = &[
    Who::Assigned(Role::Specialist),
    Who::Assigned(Role::Lead),
    Who::Any(Role::Human),
    Who::Any(Role::System),
];
const REVISE: &[Who] = &[Who::Reviewer, Who::Any(Role::Human)];
const FINISH: &[Who] = &[Who::ByPolicy(Role::Lead), Who::Any(Role::Human), Who::Any(Role::System)];

#[rustfmt::skip]
const TABLE: &[Row<Task>] = &[
    //  from           event            guards                                                         actions                                          to             who
    row(Inbox,         ToAssigned,      &[HasAssignees],                                               &[SetAssignees],                                 Assigned,      ASSIGN),
    row(Inbox,         ToCanceled,      &[],                                                           &[],                                             Canceled,      HUMAN),

    row(Assigned,      ToInbox,         &[],                                                           &[ClearAssignees],                               Inbox,         UNASSIGN),
    row(Assigned,      ToInProgress,    &[HasWorkPlan, HasAssignees],                                  &[SetAssignees, SetWorkPlan],                    InProgress,    WORK),
    row(Assigned,      ToCanceled,      &[],                                                           &[],                                             Canceled,      HUMAN),

    row(InProgress,    ToReview,        &[HasDeliverable, HasChecklist, CostIsComputed],               &[AttachSubmission],                             Review,        WORK),
    row(InProgress,    ToNeedsApproval, &[HasApprovalRequest],                                         &[RememberOrigin],                               NeedsApproval, HUMAN_OR_SYSTEM),
    row(InProgress,    ToBlocked,       &[HasReason],                                                  &[RememberReason],                               Blocked,       BLOCK),
    row(InProgress,    ToCanceled,      &[],                                                           &[],                                             Canceled,      HUMAN),

    row(Review,        ToInProgress,    &[HasWorkPlan, HasAssignees, HasFeedback, ReviewCyclesLeft],   &[CountReviewCycle, PostFeedback, SetAssignees, SetWorkPlan], InProgress, REVISE),
    row(Review,        ToInProgress,    &[HasWorkPlan, HasAssignees, HasFeedback, ReviewLimitReached], &[PostFeedback, SummariseLoop],                  Blocked,       REVISE),
    row(InProgress,    LandingFailed,   &[HasFeedback, EarlierFailureStands, LandingRoundsLeft],       &[CountLandingRound, PostFeedback],              InProgress,    SYSTEM),
    row(InProgress,    LandingFailed,   &[HasFeedback, EarlierFailureStands, LandingLimitReached],     &[PostFeedback, BlockLanding],                   Blocked,       SYSTEM),
    row(Review,        LandingFailed,   &[HasFeedback, EarlierFailureSolved],                          &[PostFeedback],                                 InProgress,    SYSTEM),
    row(Review,        LandingFailed,   &[HasFeedback, EarlierFailureStands, LandingRoundsLeft],       &[CountLandingRound, PostFeedback],              InProgress,    SYSTEM),
    row(Review,        LandingFailed,   &[HasFeedback, EarlierFailureStands, LandingLimitReached],     &[PostFeedback, BlockLanding],                   Blocked,       SYSTEM),
    row(Review,        ToNeedsApproval, &[HasApprovalRequest],                                         &[RememberOrigin],                               NeedsApproval, HUMAN_OR_SYSTEM),
    row(Review,        ToBlocked,       &[HasReason],                                                  &[RememberReason],                               Blocked,       HUMAN_OR_SYSTEM),
    row(Review,        ToDone,          &[HasApprovalRecord, MergeLanded],                             &[RecordCompletion],                             Done,          FINISH),
    row(Review,        ToCanceled,      &[],                                                           &[],                                             Canceled,      HUMAN),

    row(NeedsApproval, ToInbox,         &[HasDecision, IsClarified],                                   &[Unblock, ForgetOrigin, ClearAssignees],        Inbox,         HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToAssigned,      &[HasDecision, HasAssignees, IsClarified],                     &[Unblock, ForgetOrigin, SetAssignees],          Assigned,      HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToInProgress,    &[HasDecision, HasWorkPlan, HasAssignees, IsClarified],        &[Unblock, ForgetOrigin, SetAssignees, SetWorkPlan], InProgress, HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToReview,        &[HasDecision, HasDeliverable, HasChecklist, CostIsComputed, IsClarified], &[Unblock, ForgetOrigin, AttachSubmission], Review,  HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToBlocked,       &[HasDecision, HasReason],                                     &[ForgetOrigin, RememberReason],                 Blocked,       HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToDone,          &[HasDecision, HasApprovalRecord, MergeLanded],                &[Unblock, ForgetOrigin, RecordCompletion],      Done,          HUMAN_OR_SYSTEM),
    row(NeedsApproval, ToCanceled,      &[HasDecision],                                                &[ForgetOrigin, Cancel],                         Canceled,      HUMAN),

    row(Blocked,       ToAssigned,      &[HasAssignees, IsClarified],                                  &[Unblock, SetAssignees],                        Assigned,      HUMAN),
    row(Blocked,       ToInProgress,    &[HasWorkPlan, HasAssignees, IsClarified],                     &[Unblock, SetAssignees, SetWorkPlan],           InProgress,    HUMAN),
    row(Blocked,       ToNeedsApproval, &[HasApprovalRequest],                                         &[RememberOrigin],                               NeedsApproval, HUMAN_OR_SYSTEM),
    row(Blocked,       ToCanceled,      &[],                                                           &[Cancel],                                       Canceled,      HUMAN),
];

crate::wire_enum! {
    /// In the order of the matrix's columns.
    pub enum Status {
        /// New, and nobody's. A claim or an assignment moves it on.
        Inbox = "INBOX",
        /// Given to someone who has not begun. A work plan moves it on.
        Assigned = "ASSIGNED",
        /// Being worked on. It may be without a worker for a while: the next one goes on in the same branch.
        InProgress = "IN_PROGRESS",
        /// The gate is green. An approval sends it to the merge queue; the landing makes it DONE.
        Review = "REVIEW",
        /// Waits for a person's decision, which leads back to where it came from unless it says otherwise.
        NeedsApproval = "NEEDS_APPROVAL",
        /// Cannot go on. Only a person leads it out.
        Blocked = "BLOCKED",
        /// Approved, and landed where it has code. Final.
        Done = "DONE",
        /// Given up by a person. Final; it satisfies no dependency.
        Canceled = "CANCELED",
    }
}

crate::wire_enum! {
    pub enum Kind {
        ToInbox = "move INBOX",
        ToAssigned = "move ASSIGNED",
        ToInProgress = "move IN_PROGRESS",
        ToReview = "move REVIEW",
        ToNeedsApproval = "move NEEDS_APPROVAL",
        ToBlocked = "move BLOCKED",
        ToDone = "move DONE",
        ToCanceled = "move CANCELED",
        /// A merge conflict, or tests that are red as merged. It counts no review cycle. IN_PROGRESS: the agent was sent back
        /// because of a conflict, and has not solved it.
        LandingFailed = "landing_failed",
    }
}

crate::wire_enum! {
    pub enum Guard {
        /// `assigneeIds`, of the move or of the task, is not empty.
        HasAssignees = "hasAssignees",
        /// `workPlan`, of the move or of the task, has 3 to 6 bullets and none is blank.
        HasWorkPlan = "hasWorkPlan",
        /// `deliverable.content` is not blank.
        HasDeliverable = "hasDeliverable",
        /// `reviewChecklist` is of the task's type and every item is answered.
        HasChecklist = "hasChecklist",
        /// `costSummary` comes from the runs, not from the caller.
        CostIsComputed = "costIsComputed",
        /// `feedback` says what to change.
        HasFeedback = "hasFeedback",
        /// `reviewCycles` is below `maxReviewCycles`.
        ReviewCyclesLeft = "reviewCyclesLeft",
        /// Not `reviewCyclesLeft`.
        ReviewLimitReached = "reviewLimitReached",
        /// `landingRounds` is below `maxLandingRounds`.
        LandingRoundsLeft = "landingRoundsLeft",
        /// Not `landingRoundsLeft`.
        LandingLimitReached = "landingLimitReached",
        /// A landing failed before, and the agent has solved what that one failed of: main has moved again since.
        EarlierFailureSolved = "earlierFailureSolved",
        /// Not `earlierFailureSolved`.
        EarlierFailureStands = "!earlierFailureSolved",
        /// `approval` says who approved, when, and why. Who and when come from the credential and the clock.
        HasApprovalRecord = "hasApprovalRecord",
        /// The task has no code, or its merge is in main.
        MergeLanded = "mergeLanded",
        /// `cause` says what is asked for.
        HasApprovalRequest = "hasApprovalRequest",
        /// `reason` says what blocks.
        HasReason = "hasReason",
        /// `decision` answers the question.
        HasDecision = "hasDecision",
        /// `clarification` is there, where the review limit was what blocked.
        IsClarified = "isClarified",
    }
}

crate::wire_enum! {
    pub enum Action {
        SetAssignees = "setAssignees",
        ClearAssignees = "clearAssignees",
        SetWorkPlan = "setWorkPlan",
        AttachSubmission = "attachSubmission",
        CountReviewCycle = "countReviewCycle",
        PostFeedback = "postFeedback",
        SummariseLoop = "summariseLoop",
        CountLandingRound = "countLandingRound",
        BlockLanding = "blockLanding",
        RememberOrigin = "rememberOrigin",
        ForgetOrigin = "forgetOrigin",
        RememberReason = "rememberReason",
        Unblock = "unblock",
        RecordCompletion = "recordCompletion",
        Cancel = "cancel",
    }
}

crate::wire_enum! {
    pub enum BlockReason {
        Loop = "loop",
        ToolFailures = "tool_failures",
        Dependency = "dependency",
        ReviewCycles = "review_cycles",
        Stuck = "stuck",
        LostWorkers = "lost_workers",
        Landing = "landing",
        /// The tests could not be started, which is no agent's to mend.
        Environment = "environment",
        /// Its agent used more processes or memory than it may.
        Limit = "limit",
        Manual = "manual",
    }
}

crate::wire_enum! {
    pub enum ApprovalCause {
        Budget = "budget",
        RedAction = "red_action",
        /// Asked for by an intern; others may do it.
        YellowAction = "yellow_action",
        TurnLimit = "turn_limit",
        Escalation = "escalation",
    }
}

crate::wire_enum! {
    /// Where a work plan came from. Recorded by us, never taken from a caller.
    pub enum PlanSource {
        Ticket = "ticket",
        /// Made up, because nobody gave one.
        Default = "default",
        Person = "person",
        Agent = "agent",
    }
}

crate::wire_enum! {
    pub enum TaskType {
        Bug = "bug",
        Feature = "feature",
        Task = "task",
        Epic = "epic",
        Chore = "chore",
    }
}

/// Bullets that a work plan has.
pub const PLAN_BULLETS_MIN: usize = 3;
pub const PLAN_BULLETS_MAX: usize = 6;
/// Reviews that may ask for changes before the task is taken out of the loop.
pub const REVIEW_CYCLES_MAX: u32 = 3;
/// Landings that may fail without progress by the agent before the task is taken out of the queue for good.
pub const LANDING_ROUNDS_MAX: u32 = 3;

/// A task's place on the board. `facts` comes in for the step and is never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    pub status: Status,
    #[serde(default = "default_type", rename = "type")]
    pub task_type: TaskType,
    #[serde(default)]
    pub assignee_ids: Arc<[SmolStr]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer_id: Option<SmolStr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_plan: Option<WorkPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Arc<Submission>>,
    #[serde(default)]
    pub review_cycles: u32,
    #[serde(default)]
    pub landing_rounds: u32,
    /// Where NEEDS_APPROVAL was entered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_from: Option<Status>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_reason: Option<BlockReason>,
    /// What the last reviewer or landing asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// What a person made clear when the review limit was reached. It stands beside the feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarification: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
    #[serde(default, skip_serializing_if = "Facts::is_default")]
    pub facts: Facts,
}

fn default_type() -> TaskType {
    TaskType::Task
}

/// What the machine is told of the world for one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Facts {
    pub lead_may_complete: bool,
    pub max_review_cycles: u32,
    pub max_landing_rounds: u32,
    /// The branch holds changes, so DONE needs them in main.
    pub has_code: bool,
    pub landed: bool,
    /// Something about it is for a person to look at, whatever the policy.
    pub needs_person: bool,
    /// The sender has worked on it.
    pub own_work: bool,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            lead_may_complete: false,
            max_review_cycles: REVIEW_CYCLES_MAX,
            max_landing_rounds: LANDING_ROUNDS_MAX,
            has_code: false,
            landed: false,
            needs_person: false,
            own_work: false,
        }
    }
}

impl Facts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkPlan {
    pub bullets: Arc<[String]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlanSource>,
}

impl WorkPlan {
    pub fn new(bullets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            bullets: bullets.into_iter().map(Into::into).collect(),
            estimated_cost: None,
            estimated_duration: None,
            source: None,
        }
    }

    fn is_complete(&self) -> bool {
        (PLAN_BULLETS_MIN..=PLAN_BULLETS_MAX).contains(&self.bullets.len())
            && self.bullets.iter().all(|bullet| !is_blank(bullet))
    }
}

/// Whether nobody would see anything of a text: it is empty, or all of it is space, control and zero-width characters.
pub fn is_blank(text: &str) -> bool {
    let unseen = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || matches!(letter,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars().all(unseen)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Submission {
    pub deliverable: Deliverable,
    pub review_checklist: Checklist,
    pub cost_summary: CostSummary,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deliverable {
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

/// Something that was made: its name or address, or an object that says more of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Artifact {
    Text(String),
    Object(serde_json::Map<String, serde_json::Value>),
}

impl From<String> for Artifact {
    fn from(text: String) -> Artifact {
        Artifact::Text(text)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checklist {
    #[serde(rename = "type")]
    pub task_type: TaskType,
    pub items: Vec<ChecklistItem>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChecklistItem {
    pub item: String,
    /// Unanswered is not "no": it keeps the task out of REVIEW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Computed from the task's runs. Amounts are in millionths of a dollar, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostSummary {
    pub total_cost: u64,
    pub run_count: u32,
    pub token_count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Completion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<SmolStr>,
    pub approved_by: SmolStr,
    pub approved_at: Millis,
    pub decision_note: String,
}

/// Who sends the event. Taken from the credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sender {
    pub id: SmolStr,
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Move {
        to: Status,
        by: Sender,
        #[serde(default, skip_serializing_if = "Payload::is_empty")]
        payload: Box<Payload>,
    },
    LandingFailed {
        by: Sender,
        #[serde(default, skip_serializing_if = "Payload::is_empty")]
        payload: Box<Payload>,
        /// What an earlier landing failed of is solved in the branch: this failure is none of the agent's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        solved: bool,
    },
}

/// What a move brings with it. Which of it is required is in the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Payload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee_ids: Option<Vec<SmolStr>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_plan: Option<WorkPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<Deliverable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_checklist: Option<Checklist>,
    /// Filled in from the runs; from a caller it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_summary: Option<CostSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<BlockReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<ApprovalCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Completion>,
    /// The decision that leads out of NEEDS_APPROVAL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clarification: Option<String>,
}

impl Payload {
    fn is_empty(payload: &Payload) -> bool {
        *payload == Payload::default()
    }
}

/// What a move asks of the world: comments on the task, in the words of the move.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    PostWorkPlan { bullets: Arc<[String]> },
    PostReview { feedback: String },
    PostClarification { text: String },
    PostLoopSummary { review_cycles: u32, feedback: String },
    PostApproval { note: String },
}

impl Default for Task {
    fn default() -> Self {
        Self {
            status: Inbox,
            task_type: TaskType::Task,
            assignee_ids: Arc::default(),
            reviewer_id: None,
            work_plan: None,
            submission: None,
            review_cycles: 0,
            landing_rounds: 0,
            came_from: None,
            block_reason: None,
            feedback: None,
            clarification: None,
            completion: None,
            facts: Facts::default(),
        }
    }
}

impl Event {
    pub fn sender(&self) -> &Sender {
        match self {
            Event::Move { by, .. } | Event::LandingFailed { by, .. } => by,
        }
    }

    fn payload(&self) -> &Payload {
        match self {
            Event::Move { payload, .. } | Event::LandingFailed { payload, .. } => payload,
        }
    }
}

impl Task {
    /// The statuses that `by` may move the task to from here, in the matrix's order.
    pub fn moves_of(&self, by: &Sender) -> Vec<Status> {
        Status::ALL.iter().copied().filter(|to| self.may_move(*to, by)).collect()
    }

    /// Whether `by` may say yes to what stands in REVIEW: the one rule for every way to DONE. An agent never says it of
    /// its own work, nor where a person must look.
    pub fn may_approve(&self, by: &Sender) -> bool {
        FINISH.iter().any(|who| self.lets(*who, by, None))
    }

    fn may_move(&self, to: Status, by: &Sender) -> bool {
        // A claim is for oneself; that is how a specialist's list is asked.
        let own = (to == Assigned).then_some(std::slice::from_ref(&by.id));
        let may = |row: &Row<Task>| row.who.iter().any(|who| self.lets(*who, by, own));
        rows_at(self.status, kind_of_move(to)).any(|(_, row)| may(row))
    }

    /// Whether `who` means this sender, who would make `ids` the assignees, or leave them as they are.
    fn lets(&self, who: Who, by: &Sender, ids: Option<&[SmolStr]>) -> bool {
        // To change the assignees is to assign.
        let keeps_assignees = || ids.is_none_or(|ids| *ids == *self.assignee_ids);
        match who {
            Who::Any(role) => by.role == role,
            Who::Assigned(role) => {
                by.role == role && self.is_assignee(&by.id) && (role == Role::Lead || keeps_assignees())
            }
            Who::Claiming(role) => {
                by.role == role && ids.unwrap_or(&self.assignee_ids).iter().all(|id| *id == by.id)
            }
            Who::ByPolicy(role) => {
                let own = self.facts.own_work || self.is_assignee(&by.id);
                by.role == role && self.facts.lead_may_complete && !self.facts.needs_person && !own
            }
            Who::Reviewer => {
                self.reviewer_id.as_ref() == Some(&by.id)
                    && !self.is_assignee(&by.id)
                    && by.role != Role::Intern
                    && keeps_assignees()
            }
            // A task is nobody's own: whoever works on it is assigned.
            Who::Own => false,
        }
    }

    /// What was submitted stands while a question about it is open. Work that was asked about in the middle has
    /// nothing that stands: an older submission is not this one.
    fn returns_to_review(&self) -> bool {
        self.status == NeedsApproval && self.came_from == Some(Review) && self.submission.is_some()
    }

    fn is_assignee(&self, id: &SmolStr) -> bool {
        self.assignee_ids.contains(id)
    }
}

pub const fn kind_of_move(to: Status) -> Kind {
    match to {
        Inbox => ToInbox,
        Assigned => ToAssigned,
        InProgress => ToInProgress,
        Review => ToReview,
        NeedsApproval => ToNeedsApproval,
        Blocked => ToBlocked,
        Done => ToDone,
        Canceled => ToCanceled,
    }
}

impl Status {
    /// No row leaves it.
    pub fn is_final(self) -> bool {
        Task::FINAL.contains(&self)
    }
}

impl Machine for Task {
    const NAME: &'static str = "task";
    const SEED: &'static str = "002";
    const INITIAL: Status = Inbox;
    const TABLE: &'static [Row<Self>] = TABLE;
    const FINAL: &'static [Status] = &[Done, Canceled];

    type State = Status;
    type Kind = Kind;
    type Guard = Guard;
    type Action = Action;
    type Event = Event;
    type Effect = Effect;

    fn index() -> &'static Index {
        static INDEX: OnceLock<Index> = OnceLock::new();
        INDEX.get_or_init(Index::of::<Self>)
    }

    fn state(&self) -> Status {
        self.status
    }

    fn enter(&mut self, status: Status) {
        self.status = status;
    }

    fn kind(event: &Event) -> Kind {
        match event {
            Event::Move { to, .. } => kind_of_move(*to),
            Event::LandingFailed { .. } => LandingFailed,
        }
    }

    fn permits(&self, who: Who, _by: Option<Caller>, event: &Event) -> bool {
        self.lets(who, event.sender(), event.payload().assignee_ids.as_deref())
    }

    fn holds(&self, guard: Guard, event: &Event) -> bool {
        let payload = event.payload();
        match guard {
            HasAssignees => {
                let ids = payload.assignee_ids.as_deref().unwrap_or(&self.assignee_ids);
                !ids.is_empty() && ids.iter().all(|id| !is_blank(id))
            }
            HasWorkPlan => {
                payload.work_plan.as_ref().or(self.work_plan.as_ref()).is_some_and(WorkPlan::is_complete)
            }
            HasDeliverable => match &payload.deliverable {
                Some(deliverable) => !is_blank(&deliverable.content),
                None => self.returns_to_review(),
            },
            HasChecklist => match &payload.review_checklist {
                Some(list) => {
                    let answered = |item: &ChecklistItem| item.answer.as_ref().is_some_and(|a| !is_blank(a));
                    list.task_type == self.task_type
                        && !list.items.is_empty()
                        && list.items.iter().all(answered)
                }
                None => self.returns_to_review(),
            },
            // The system computes it; in anyone else's request it is a claim.
            CostIsComputed => payload.cost_summary.is_none() || event.sender().role == Role::System,
            HasFeedback => payload.feedback.as_ref().is_some_and(|text| !is_blank(text)),
            ReviewCyclesLeft => self.review_cycles < self.facts.max_review_cycles,
            ReviewLimitReached => !self.holds(ReviewCyclesLeft, event),
            LandingRoundsLeft => self.landing_rounds < self.facts.max_landing_rounds,
            LandingLimitReached => !self.holds(LandingRoundsLeft, event),
            EarlierFailureSolved => matches!(event, Event::LandingFailed { solved: true, .. }),
            EarlierFailureStands => !self.holds(EarlierFailureSolved, event),
            HasApprovalRecord => payload.approval.as_ref().is_some_and(|approval| {
                !is_blank(&approval.approved_by) && !is_blank(&approval.decision_note)
            }),
            MergeLanded => !self.facts.has_code || self.facts.landed,
            HasApprovalRequest => payload.cause.is_some(),
            // A question that was asked while it was blocked leads back to the same block.
            HasReason => payload.reason.is_some() || self.came_from == Some(Blocked),
            HasDecision => payload.decision.as_ref().is_some_and(|text| !is_blank(text)),
            IsClarified => {
                self.block_reason != Some(BlockReason::ReviewCycles)
                    || payload.clarification.as_ref().is_some_and(|text| !is_blank(text))
            }
        }
    }

    fn perform(&mut self, action: Action, from: Status, event: &Event, effects: &mut Vec<Effect>) {
        let payload = event.payload();
        match action {
            SetAssignees => {
                if let Some(ids) = &payload.assignee_ids {
                    self.assignee_ids = ids.as_slice().into();
                }
            }
            ClearAssignees => self.assignee_ids = Arc::default(),
            SetWorkPlan => {
                if let Some(plan) = &payload.work_plan {
                    let trimmed = plan.bullets.iter().all(|bullet| bullet.trim().len() == bullet.len());
                    let bullets: Arc<[String]> = if trimmed {
                        plan.bullets.clone()
                    } else {
                        plan.bullets.iter().map(|bullet| bullet.trim().to_owned()).collect()
                    };
                    effects.push(Effect::PostWorkPlan { bullets: bullets.clone() });
                    self.work_plan = Some(WorkPlan { bullets, ..plan.clone() });
                }
            }
            AttachSubmission => {
                if let (Some(deliverable), Some(checklist)) =
                    (&payload.deliverable, &payload.review_checklist)
                {
                    self.submission = Some(Arc::new(Submission {
                        deliverable: deliverable.clone(),
                        review_checklist: checklist.clone(),
                        cost_summary: payload.cost_summary.unwrap_or_default(),
                    }));
                }
            }
            CountReviewCycle => self.review_cycles += 1,
            PostFeedback => {
                let feedback = payload.feedback.clone().unwrap_or_default();
                self.feedback = Some(feedback.clone());
                effects.push(Effect::PostReview { feedback });
            }
            SummariseLoop => {
                self.block_reason = Some(BlockReason::ReviewCycles);
                effects.push(Effect::PostLoopSummary {
                    review_cycles: self.review_cycles,
                    feedback: payload.feedback.clone().unwrap_or_default(),
                });
            }
            CountLandingRound => self.landing_rounds += 1,
            BlockLanding => self.block_reason = Some(BlockReason::Landing),
            RememberOrigin => self.came_from = Some(from),
            ForgetOrigin => self.came_from = None,
            RememberReason => self.block_reason = payload.reason.or(self.block_reason),
            // From NEEDS_APPROVAL only where it was blocked before: a budget that is granted forgives no review.
            Unblock if from == NeedsApproval && self.came_from != Some(Blocked) => {}
            Unblock => {
                self.block_reason = None;
                self.review_cycles = 0;
                self.landing_rounds = 0;
                if let Some(text) = payload.clarification.clone().filter(|text| !text.trim().is_empty()) {
                    self.clarification = Some(text.clone());
                    effects.push(Effect::PostClarification { text });
                }
            }
            RecordCompletion => {
                if let Some(approval) = &payload.approval {
                    effects.push(Effect::PostApproval { note: approval.decision_note.clone() });
                    self.completion = Some(approval.clone());
                }
            }
            Cancel => self.block_reason = None,
        }
    }

    fn requirement(guard: Guard) -> Option<FieldError> {
        let (field, message) = match guard {
            HasAssignees => ("assigneeIds", "Must have at least one assignee"),
            HasWorkPlan => ("workPlan", "Work plan required for IN_PROGRESS"),
            HasDeliverable => ("deliverable", "Deliverable with content required for REVIEW"),
            HasChecklist => {
                ("reviewChecklist", "Review checklist of the task's type required, with every item answered")
            }
            CostIsComputed => ("costSummary", "Cost summary is computed from the runs and cannot be set"),
            HasFeedback => ("feedback", "Feedback required for changes"),
            HasApprovalRecord => ("approval", "Approval record with a decisionNote required for DONE"),
            MergeLanded => ("landing", "The task has code that has not landed"),
            HasApprovalRequest => ("cause", "Approval request with a cause required for NEEDS_APPROVAL"),
            HasReason => ("reason", "Reason required for BLOCKED"),
            HasDecision => ("decision", "Decision required to leave NEEDS_APPROVAL"),
            IsClarified => ("clarification", "Clarified requirements required after the review limit"),
            ReviewCyclesLeft | ReviewLimitReached | LandingRoundsLeft | LandingLimitReached => return None,
            EarlierFailureSolved | EarlierFailureStands => return None,
        };
        Some(FieldError::new(field, message))
    }

    fn no_row_code(&self, _event: &Event) -> (Code, &'static str) {
        match self.status {
            Done | Canceled => {
                (Code::NotAllowed, "the task is closed for good; to go on, add a new task linked to it")
            }
            _ => (Code::NotAllowed, "this move is not in the task's matrix"),
        }
    }

    fn meta(status: Status) -> Vec<(&'static str, Meta)> {
        vec![("ticketStatus", Meta::Text(ticket_status(status).name()))]
    }

    fn allowed(&self, event: &Event, _by: Option<Caller>) -> Vec<&'static str> {
        self.moves_of(event.sender()).into_iter().map(|to| to.name()).collect()
    }
}

crate::wire_enum! {
    /// What `tk` calls the status of a ticket.
    pub enum TicketStatus {
        Open = "open",
        InProgress = "in_progress",
        Closed = "closed",
    }
}

/// How a status reads as a ticket's.
pub fn ticket_status(status: Status) -> TicketStatus {
    match status {
        Inbox | Assigned => TicketStatus::Open,
        InProgress | Review | NeedsApproval | Blocked => TicketStatus::InProgress,
        Done | Canceled => TicketStatus::Closed,
    }
}

#[cfg(test)]
pub(crate) mod tests;
