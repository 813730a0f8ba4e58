//! Tasks: what stands on the board, what is known of each, and what can be asked of one.

use super::cost::Spend;
use super::{Cursor, Limit, Name, Text, Words, is_false};
use kernel::world::ProposalState;
use machines::Wire;
use machines::task::{ApprovalCause, BlockReason, PlanSource, Status, TaskType};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only tasks of these statuses, with commas between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Statuses>,
    /// Only tasks of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// Statuses with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(pub Vec<Status>);

impl Serialize for Statuses {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.iter().map(|status| status.name()).collect();
        to.serialize_str(&names.join(","))
    }
}

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Statuses, D::Error> {
        let text = String::deserialize(from)?;
        let status = |name: &str| {
            Status::read(name).ok_or_else(|| {
                let known = super::one_of::<Status>();
                D::Error::custom(format!("there is no status `{}`: use {known}", name.escape_debug()))
            })
        };
        text.split(',').map(status).collect::<Result<_, _>>().map(Statuses)
    }
}

impl JsonSchema for Statuses {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Statuses".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = Status::ALL.iter().map(|status| status.name()).collect();
        let one = format!("({})", names.join("|"));
        schemars::json_schema!({"type": "string", "pattern": format!("^{one}(,{one})*$")})
    }
}

/// The entry of a task on the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskLine {
    pub id: String,
    pub title: String,
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    #[serde(rename = "type")]
    #[schemars(with = "Words<TaskType>")]
    pub task_type: TaskType,
    /// From 0, the most urgent, to 4.
    pub priority: u8,
    pub assignee_ids: Vec<String>,
    /// The agent that it is meant for; null: the fleet's.
    pub agent: Option<String>,
    pub depends_on: Vec<String>,
    /// The other tries at the same work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_tries: Vec<String>,
    pub created_at: String,
    /// Where an agent proposed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Proposal>,
    /// Its branch conflicts with main, and the conflict is not resolved yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// Why no worker takes it, in a list of tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Since when something about it waits for a person, in a list of tasks; `/waiting` has it whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_you_since: Option<String>,
}

/// The whole board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// The last record of the log that it includes.
    pub seq: u64,
    /// In no order that means anything: `order` counts up as tasks come.
    pub items: Vec<BoardLine>,
}

/// The part of a task that a board shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardLine {
    pub id: String,
    pub title: String,
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    /// Since when it has this status.
    pub since: Option<String>,
    #[serde(rename = "type")]
    #[schemars(with = "Words<TaskType>")]
    pub task_type: TaskType,
    /// From 0, the most urgent, to 4.
    pub priority: u8,
    pub order: u64,
    pub assignee_ids: Vec<String>,
    /// Who works on it now.
    pub worker: Option<String>,
    pub depends_on: Vec<String>,
    pub review_cycles: u32,
    pub cost_usd: f64,
    /// An agent proposed it, and no person has accepted it yet.
    pub proposed: bool,
    /// Its branch conflicts with main in these files, and the conflict is not resolved yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Vec<String>>,
}

/// A merge that conflicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The branch that it does not merge with, by its name.
    pub branch: String,
    /// The commit of that branch.
    pub commit: String,
    /// None if the two histories have no commit in common.
    pub files: Vec<String>,
    /// The conflict, as a clause after the name of the task.
    pub text: String,
}

impl TaskLine {
    /// Whether a person has to accept it before anybody works on it.
    pub fn is_waiting_proposal(&self) -> bool {
        self.proposed.as_ref().is_some_and(|proposed| proposed.state == ProposalState::Waiting)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    pub by: String,
    pub run: Option<String>,
    pub task: Option<String>,
    #[schemars(with = "Words<ProposalState>")]
    pub state: ProposalState,
}

/// A task. A caller that may not read all of it gets its entry on the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    #[serde(flatten)]
    pub line: TaskLine,
    #[serde(flatten)]
    pub whole: Option<TaskWhole>,
}

/// The part of a task for callers that may read all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskWhole {
    pub body: String,
    /// The plan that came with it.
    pub plan: Option<Vec<String>>,
    pub reviewer_id: Option<String>,
    /// The missing condition without which its reviewer cannot approve it; the reviewer can still ask for changes.
    pub reviewer_lacks: Option<String>,
    /// The plan that it is worked on by.
    pub work_plan: Option<WorkPlan>,
    pub submission: Option<Submission>,
    /// The checks of the gate; null if it did not run.
    pub gate: Option<Gate>,
    /// A warning about work that was handed in without the gate, so that nothing was checked.
    pub claims: Option<Claims>,
    pub needs_person: Option<NeedsPerson>,
    pub review_cycles: u32,
    pub landing_rounds: u32,
    #[schemars(with = "Option<Words<Status>>")]
    pub came_from: Option<Status>,
    #[schemars(with = "Option<Words<BlockReason>>")]
    pub block_reason: Option<BlockReason>,
    pub feedback: Option<String>,
    pub clarification: Option<String>,
    /// It is in REVIEW again just as it was when changes were asked for.
    pub unchanged_since_review: bool,
    pub completion: Option<Completion>,
    pub ticket: Option<String>,
    pub ticket_assignee: Option<String>,
    /// Whether the settings have the agent that it is meant for.
    pub agent_configured: Option<bool>,
    pub reopens: Option<String>,
    pub lease: Option<Holder>,
    pub branch: Option<String>,
    pub tree: Option<String>,
    pub tip: Option<String>,
    pub run: Option<String>,
    /// The question that it waits for.
    pub approval: Option<String>,
    pub approved: Option<Approved>,
    pub landed: Option<Landed>,
    /// The obstacle to its landing.
    pub held_up: Option<String>,
    /// The URL of its pull request, or its branch on the remote if no URL is known.
    pub pull_request: Option<String>,
    pub test_output: Option<String>,
    pub cost: Spend,
    pub comments: Vec<Comment>,
    #[schemars(with = "Vec<Words<Status>>")]
    pub allowed_transitions: Vec<Status>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkPlan {
    pub bullets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<PlanSource>>")]
    pub source: Option<PlanSource>,
}

/// The work that was handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    pub deliverable: Deliverable,
    pub review_checklist: Checklist,
    pub cost_summary: CostSummary,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deliverable {
    pub content: String,
    /// The results: names or addresses, or objects with more details.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
}

/// A name or an address, or an object with more details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Artifact {
    Text(String),
    Object(serde_json::Map<String, serde_json::Value>),
}

impl From<Artifact> for machines::task::Artifact {
    fn from(artifact: Artifact) -> Self {
        match artifact {
            Artifact::Text(text) => Self::Text(text),
            Artifact::Object(members) => Self::Object(members),
        }
    }
}

impl From<machines::task::Artifact> for Artifact {
    fn from(artifact: machines::task::Artifact) -> Self {
        match artifact {
            machines::task::Artifact::Text(text) => Self::Text(text),
            machines::task::Artifact::Object(members) => Self::Object(members),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checklist {
    #[serde(rename = "type")]
    #[schemars(with = "Words<TaskType>")]
    pub task_type: TaskType,
    pub items: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Of all runs of a task; the total is in dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostSummary {
    pub total_cost: f64,
    #[schemars(range(max = u32::MAX))]
    pub run_count: u32,
    #[schemars(range(max = u64::MAX))]
    pub token_count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    pub checks: Vec<Check>,
    /// The work contains no change.
    #[serde(default, skip_serializing_if = "is_false")]
    pub empty: bool,
    /// The agent's summary, if it gave one when it reported the task as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claims {
    pub by: String,
    pub checks: Vec<Check>,
    pub content: String,
}

/// Why the policy may not approve it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeedsPerson {
    pub reason: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    pub approval_id: Option<String>,
    pub approved_by: String,
    pub approved_at: String,
    pub decision_note: String,
}

/// Who has it: a worker of the fleet, or an agent that runs outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Holder {
    Worker(String),
    Agent(String),
}

impl Holder {
    pub fn worker(&self) -> Option<&str> {
        match self {
            Holder::Worker(name) => Some(name),
            Holder::Agent(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    pub tip: Option<String>,
    pub by: String,
    pub at: String,
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Landed {
    pub tip: String,
    pub merge: String,
    pub old_main: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    pub at: String,
    pub by: String,
    pub kind: String,
    pub text: String,
}

/// A new task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("not" = {
    "properties": {"title": {"pattern": r"^\s*$"}},
    "not": {"required": ["tryOf"], "properties": {"tryOf": {"type": "string"}}},
}))]
pub struct Add {
    /// The work to do, in one line. May be empty for another try.
    pub title: String,
    /// The work to do, in full.
    #[serde(default)]
    pub body: String,
    /// Chosen by the server if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<TaskType>>")]
    pub task_type: Option<TaskType>,
    /// From 0, the most urgent, to 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub priority: Option<u8>,
    /// The closed task that this one takes up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub reopens: Option<String>,
    /// The open task that this is another try at; what is left out is taken from there. The first that is done ends the
    /// others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub try_of: Option<String>,
    /// 3 to 6 bullets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Text>>", length(min = 3, max = 6))]
    pub plan: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer_id: Option<String>,
    /// Tasks that must be done first.
    #[serde(default)]
    #[schemars(with = "Vec<Name>")]
    pub depends_on: Vec<String>,
    /// The agent that does it, if not the fleet's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub agent: Option<String>,
}

/// The new values of a task; absent members stay the same.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edit {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text>")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// From 0, the most urgent, to 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub priority: Option<u8>,
    /// 3 to 6 bullets, in place of those that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Text>>", length(min = 3, max = 6))]
    pub plan: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer_id: Option<String>,
    /// Empty or `none`: the agent that the ticket or the settings name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameOrNone>")]
    pub agent: Option<String>,
}

/// A name, or nothing at all, for the schema.
struct NameOrNone;

impl JsonSchema for NameOrNone {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NameOrNone".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let name = Name::PATTERN.trim_start_matches('^').trim_end_matches('$');
        schemars::json_schema!({
            "type": "string",
            "pattern": format!("^({name})?$"),
            "maxLength": machines::names::NAME_LENGTH_MAX,
        })
    }
}

/// A move with the members that it requires; see `docs/machines/task.md`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Move {
    /// The status to move to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Words<Status>", required)]
    pub to: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_plan: Option<NewPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliverable: Option<Deliverable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_checklist: Option<Checklist>,
    /// Comes from the runs; a caller's is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_summary: Option<CostSummary>,
    /// The changes that a review asks for, or the question to a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Why it is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<BlockReason>>")]
    pub reason: Option<BlockReason>,
    /// Why a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<ApprovalCause>>")]
    pub cause: Option<ApprovalCause>,
    /// Why it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// The answer to the question that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The clarification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clarification: Option<String>,
}

/// A plan as a caller brings it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPlan {
    /// 3 to 6 of them.
    pub bullets: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<String>,
    /// As a plan is shown; who brings it is taken from the credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Words<PlanSource>>")]
    pub source: Option<PlanSource>,
}

/// An approval as it is shown can be sent back. Who approved and when are taken from the credential and the clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// A time such as 2026-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub approved_at: Option<Value>,
    #[serde(default)]
    pub decision_note: String,
}

/// A move that was made.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    pub success: bool,
    pub task: Task,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    #[schemars(with = "Text")]
    pub text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDependency {
    /// The task that must be done first.
    #[schemars(with = "Name")]
    pub on: String,
}

/// A person's decision on a task in REVIEW.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// True: it joins the queue. False: it goes back with `note`.
    pub approve: bool,
    /// The tip that was looked at. Another one is refused.
    pub tip: Option<String>,
    /// Why it is approved, or what must be changed.
    #[serde(default)]
    pub note: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// The changes to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// All that a reviewer wants to know of a task before the diff.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reviewed {
    pub task: Task,
    /// The agent's last words.
    pub said: Option<String>,
    /// For how long somebody was at work on it.
    pub work_millis: i64,
    pub commits: Vec<super::host::Commit>,
    /// Why the commits could not be listed.
    pub commits_problem: Option<String>,
    /// The files that it changes, with how much.
    pub diff_stat: Option<String>,
    /// Why there is no `diffStat`.
    pub diff_problem: Option<String>,
    pub moved_branch: Option<super::host::MovedBranch>,
}

/// Where a person's shell in a task's tree would be.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WayIn {
    pub task: String,
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    pub tree: Option<String>,
    pub branch: Option<String>,
    pub agent: String,
    pub worker: Option<String>,
    pub step: Option<String>,
}

/// A task that is approved and not on main yet.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    pub items: Vec<Queued>,
    /// The task that is landing.
    pub landing: Option<String>,
    pub next: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    pub task: String,
    pub title: String,
    pub priority: u8,
    pub approved_by: Option<String>,
    pub landing: bool,
    /// `testing the merge` or `moving main`.
    pub stage: Option<String>,
    pub since: Option<String>,
    /// The obstacle to its landing.
    pub held_up: Option<String>,
}
