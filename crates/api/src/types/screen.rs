//! What live screens show, as rows: whole rows come again when they change, each time with the number of the record that they
//! are of. All rows of one number are of one moment, so that two places of a screen never disagree.

use std::collections::BTreeMap;

use super::approval::Call;
use super::cost::Spend;
use super::fleet::{MainTests, RunningTests};
use super::worker::Activity;
use super::{Cursor, Words};
use kernel::waiting::{Decider, Kind, Severity};
use kernel::words::Condition;
use machines::task::{Status, TaskType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// From where a screen goes on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    /// With `Accept: text/event-stream`: the number of the last rows that were seen. Without it, the whole comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
}

/// Everything that a live screen shows, of one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The last record of the log that it includes.
    pub seq: u64,
    /// That moment, by the clock of the process that answers.
    pub at: String,
    pub summary: Summary,
    pub columns: Vec<StatusColumn>,
    pub cards: Vec<Card>,
    /// By attention: those that wait for a person first, then stuck, idle and working ones, the oldest first.
    pub workers: Vec<WorkerRow>,
    /// What waits for a person or a service: what holds up most and longest comes first.
    pub waiting: Vec<WaitingRow>,
    /// In the order in which they land.
    pub queue: Vec<QueueRow>,
}

/// What is different since the number before. Members that are absent are as they were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewChange {
    pub seq: u64,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<StatusColumn>>,
    /// The cards that changed, whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Vec<WorkerRow>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Vec<WaitingRow>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Vec<QueueRow>>,
}

/// What stands above and below every screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The project's name.
    pub project: String,
    pub running: bool,
    /// It was started and not stopped, whether its process lives or not.
    pub wanted: bool,
    /// Workers that are there, and those of them that work on a task.
    pub workers: usize,
    pub working: usize,
    /// How main's own tests stand; null if they are not checked.
    pub main_tests: Option<MainTests>,
    /// The tests that run now.
    pub tests: Vec<RunningTests>,
    /// What was spent in all.
    pub cost: Spend,
    /// What was spent and set aside today, and the limit of a day.
    pub today: Budget,
    pub machine: Option<MachineUse>,
    /// How many tasks there are, and how many of them are not over.
    pub tasks: usize,
    pub open: usize,
    /// How many tasks landed in the last hour.
    pub landed_last_hour: usize,
}

/// What of a budget is spent and what is set aside for steps under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub spent_usd: f64,
    pub set_aside_usd: f64,
    /// Null: there is no limit.
    pub limit_usd: Option<f64>,
}

/// How busy the machine of the fleet is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineUse {
    /// Of all cores together, over the last seconds.
    pub processor_percent: Option<f64>,
    pub memory_used_bytes: u64,
    pub memory_bytes: u64,
    pub disk_free_bytes: u64,
    pub disk_bytes: u64,
}

/// A status of tasks as a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusColumn {
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    pub count: usize,
    /// The most tasks that it may have, if there is a limit.
    pub limit: Option<u32>,
    /// What keeps many of its tasks from going on, once for all of them.
    pub note: Option<ColumnNote>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ColumnNote {
    /// The condition that does not hold; their cards name it in `held` without a text.
    #[schemars(with = "Words<Condition>")]
    pub guard: Condition,
    pub text: String,
    /// How many tasks of the column it holds up.
    pub tasks: usize,
}

/// A task as a card of the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    pub id: String,
    /// The record with which it last changed.
    pub seq: u64,
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
    pub cost_usd: f64,
    /// The agent that works on it, worked on it last, or is to work on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of its last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who works on it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What its worker does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The lines that its branch adds and removes, once they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<ChangedLines>,
    /// The unfinished tasks that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<DependsOn>,
    /// How many unfinished tasks depend on it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds_up: usize,
    /// Why nobody works on it; without a text if the note of its column says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// What a person can do about it now, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_you: Option<ForYouNow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Its place in the queue, from 1, and what happens to it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<InQueue>,
    /// The commit that brought it to main.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<String>,
    /// An agent proposed it, and no person has accepted it yet.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub proposed: bool,
    /// Draft comments of its review that were not sent yet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drafts: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedLines {
    pub added: u32,
    pub removed: u32,
}

/// A task that another depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DependsOn {
    pub task: String,
    /// It was canceled or does not exist: what depends on it will never start by itself.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub dead: bool,
    /// Why it will never be done, if it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Why a task does not go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    #[schemars(with = "Words<Condition>")]
    pub guard: Condition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForYouNow {
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    pub text: String,
    /// The row of `waiting`.
    pub waiting: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InQueue {
    pub place: usize,
    pub text: String,
}

/// A worker as a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerRow {
    pub name: String,
    pub agent: String,
    pub model: Option<String>,
    #[schemars(with = "Words<machines::worker::State>")]
    pub status: machines::worker::State,
    /// Its group in a list by attention.
    pub attention: Attention,
    pub activity: Activity,
    /// What it does or waits for, in a few words.
    pub text: String,
    pub task: Option<String>,
    pub title: Option<String>,
    pub run: Option<String>,
    pub turn: Option<u32>,
    pub max_turns: Option<u32>,
    /// Since when it does what it does, or has waited.
    pub since: Option<String>,
    pub last_error: Option<String>,
    pub cost_usd: f64,
    /// The row of `waiting` that is about it.
    pub waiting: Option<String>,
    /// What can be done with it.
    pub actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// It waits for a person.
    Waits,
    Stuck,
    Idle,
    Working,
}

/// Something that waits, as a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRow {
    /// Stays the same for as long as it waits.
    pub id: String,
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    #[schemars(with = "Words<Severity>")]
    pub severity: Severity,
    #[schemars(with = "Words<Decider>")]
    pub who: Decider,
    /// What waits, in one sentence.
    pub text: String,
    pub since: Option<String>,
    /// The tasks that it blocks, with those that depend on them.
    pub blocks: Vec<String>,
    pub task: Option<String>,
    pub title: Option<String>,
    pub worker: Option<String>,
    pub approval: Option<String>,
    pub request: Option<String>,
    pub channel: Option<String>,
    /// The call that an agent wants to make, whole.
    pub call: Option<Call>,
    /// What is asked, whole, if it is longer than the sentence.
    pub question: Option<String>,
    /// What can be done about it, the most likely first. The first with `answer` `yes` and the first with `no` are the two
    /// buttons.
    pub actions: Vec<Action>,
}

/// An approved task on its way to main, as a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    /// From 1.
    pub place: usize,
    pub task: String,
    pub title: String,
    pub priority: u8,
    pub approved_by: Option<String>,
    pub approved_at: Option<String>,
    pub step: QueueStep,
    /// What happens to it now, or what it waits for.
    pub text: String,
    /// Since when it is in this step.
    pub since: Option<String>,
    /// The command that tests the merge, while it runs.
    pub command: Option<String>,
    /// How long this step took for other tasks, at the median.
    pub expected_seconds: Option<u64>,
    pub actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueStep {
    /// The merge is tested.
    Testing,
    /// Main is being moved.
    Landing,
    /// It waits for its turn.
    Waiting,
    /// Something is in the way.
    Held,
}

/// Something that a person can do: with a request, on another page, or by a command in a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// What kind of thing it is, such as `kill_worker`.
    pub code: String,
    /// The word on its button.
    pub label: String,
    /// What happens then, in sentences.
    pub happens: Vec<String>,
    /// Whether it says yes or no to what waits; absent for other ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<YesNo>,
    /// Work ends by it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub ends_work: bool,
    /// The request that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ActionRequest>,
    /// What must be filled in first; each is a member of the request's body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// The page that shows it, if it only shows something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The command that does it, for what only a terminal can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The rule that forbids it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum YesNo {
    Yes,
    No,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionRequest {
    pub method: String,
    /// Behind `/api/v1`.
    pub path: String,
    pub body: Map<String, Value>,
}

/// Something to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The member of the body; with dots where it is inside another one.
    pub name: String,
    pub label: String,
    pub kind: FieldKind,
    pub required: bool,
    /// What may be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What is asked for, in one sentence.
    pub text: String,
    /// How many items a list has at least and at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<[usize; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    Line,
    Text,
    Number,
    /// One of `choices`.
    Choice,
    /// Some of `choices`.
    Choices,
    /// A line for each item.
    List,
    /// The questions are `choices`; each is answered.
    Checklist,
}

/// Words, moves and keys of the screens. They stay as they are while the server runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// In the order of the columns.
    pub statuses: Vec<StatusTerm>,
    /// Every status to every other, for the person who asks.
    pub moves: Vec<MoveTerm>,
    pub waiting: Vec<WaitingTerm>,
    /// The names of priorities and types, by their value.
    pub types: Vec<String>,
    pub keys: Vec<KeyTerm>,
    /// The agents that the settings have.
    pub agents: Vec<String>,
    pub worker_states: BTreeMap<String, String>,
    pub attention: BTreeMap<String, String>,
    pub queue_steps: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusTerm {
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    pub label: String,
    /// Nothing leaves it.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// What it means, in one sentence.
    pub text: String,
}

/// The move of a task from one status to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoveTerm {
    #[schemars(with = "Words<Status>")]
    pub from: Status,
    #[schemars(with = "Words<Status>")]
    pub to: Status,
    /// The rule, if it forbids the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What the move requires. A task that has one of them already need not be given it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingTerm {
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    pub label: String,
}

/// A key, and what it does in which views.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyTerm {
    /// What it does, as a code.
    pub action: String,
    /// As in `Ctrl+K`, `j`, `?`. Any of them does it.
    pub keys: Vec<String>,
    /// In which views: `board`, `inbox`, …; `all` for everywhere.
    pub views: Vec<String>,
    /// What it does, in words.
    pub label: String,
}
