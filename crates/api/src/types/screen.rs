//! What live screens show, as rows: whole rows come again when they change, each time with the number of the record that they
//! are of. All rows of one number are of one moment, so that two places of a screen never disagree.

use super::approval::Call;
use super::cost::Spend;
use super::fleet::{MainTests, RunningTests};
use super::worker::Activity;
use super::{Cursor, Words};
use kernel::waiting::{Decider, Kind, Severity};
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

/// Everything that a live screen shows, of one moment. Every row has an `id` that is unique in its table, and the `seq` of the
/// record with which it last changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The last record of the log that it includes.
    pub seq: u64,
    /// That moment, by the clock of the process that answers.
    pub at: String,
    pub facts: Vec<FactsRow>,
    pub columns: Vec<ColumnRow>,
    pub tasks: Vec<TaskRow>,
    pub workers: Vec<WorkerRow>,
    pub waiting: Vec<WaitingRow>,
    pub queue: Vec<QueueRow>,
}

/// The rows that changed since the number before, whole, and those that are gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewChange {
    pub seq: u64,
    pub at: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactsRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueueRow>,
    /// The ids of rows that are gone, by table.
    pub gone: GoneRows,
}

/// Ids of rows that are gone. Tasks stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoneRows {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<String>,
}

/// What stands above and below every screen: one row, with the id `frame`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactsRow {
    pub id: String,
    pub seq: u64,
    /// The project's name.
    pub project: String,
    /// Whether the fleet runs, and how many work, in words.
    pub fleet: Sign,
    pub running: bool,
    /// It was started and not stopped, whether its process lives or not.
    pub wanted: bool,
    pub workers: usize,
    pub working: usize,
    /// How main's own tests stand, in words.
    pub main: MainSign,
    pub main_tests: Option<MainTests>,
    /// The tests that run now.
    pub tests: Vec<RunningTests>,
    /// What was spent today; null if nothing was and there is no limit.
    pub money: Option<MoneyToday>,
    /// What was spent in all.
    pub cost: Spend,
    /// How busy the machine is, in words.
    pub machine: String,
    pub machine_use: Option<MachineUse>,
    /// No task was ever added.
    pub first_run: bool,
    /// How many tasks landed in the last hour.
    pub landed_last_hour: usize,
    /// What a person can do with the fleet as a whole.
    pub actions: Vec<Action>,
}

/// A few words with the glyph that stands before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sign {
    pub text: String,
    pub glyph: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MainSign {
    pub text: String,
    pub glyph: String,
    /// The beginning of the commit's name, or nothing.
    pub commit: String,
}

/// What of the day's budget is spent and what is set aside for steps under way, in dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoneyToday {
    pub text: String,
    pub spent: f64,
    pub reserved: f64,
    /// Null: there is no limit.
    pub cap: Option<f64>,
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

/// A status of tasks as a column; its id is the status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnRow {
    pub id: String,
    pub seq: u64,
    /// The most tasks that it may have, if there is a limit.
    pub cap: Option<u32>,
    /// What keeps many of its tasks from going on, once for all of them.
    pub notes: Vec<ColumnNote>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnNote {
    /// The condition that does not hold; rows of tasks name it as their `note`.
    pub id: String,
    pub text: String,
    pub glyph: String,
}

/// A task as a card of the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    pub id: String,
    pub seq: u64,
    pub title: String,
    #[schemars(with = "Words<Status>")]
    pub status: Status,
    /// Sorts a column: lower comes first.
    pub rank: u64,
    /// From 0, the most urgent, to 4.
    pub priority: u8,
    #[serde(rename = "type")]
    #[schemars(with = "Words<TaskType>")]
    pub task_type: TaskType,
    /// Since when it has this status.
    pub since: String,
    /// What it does, what it waits for, what a person can do: the most important first.
    pub lines: Vec<CardLine>,
    /// The note of its column that holds for it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The agent that works on it, worked on it last, or is to work on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of its last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who works on it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The lines that its branch adds and removes, once they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u32>,
    /// What was spent on it, as in `$0.41`; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// The unfinished tasks that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// How many unfinished tasks depend on it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds_up: usize,
    /// The row of `waiting` that is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// Not begun, or done: it draws no attention.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub quiet: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How many lines a branch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedLines {
    pub added: u32,
    pub removed: u32,
}

/// One line of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardLine {
    pub text: String,
    pub glyph: String,
    pub tone: LineTone,
    /// Tasks that the text names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LineTone {
    /// Nothing special.
    #[serde(rename = "")]
    Plain,
    /// It waits for a person.
    #[serde(rename = "you")]
    You,
    /// A limit, or a wait.
    #[serde(rename = "warn")]
    Warn,
    /// Failed, refused or dead.
    #[serde(rename = "bad")]
    Bad,
}

/// A worker as a row; its id is its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerRow {
    pub id: String,
    pub seq: u64,
    pub name: String,
    /// The agent and the model that it runs.
    pub agent: String,
    #[schemars(with = "Words<machines::worker::State>")]
    pub state: machines::worker::State,
    pub attention: Attention,
    /// What it does or waits for, in a few words.
    pub text: String,
    pub tone: LineTone,
    pub activity: Activity,
    pub task: Option<String>,
    pub title: String,
    pub run: Option<String>,
    pub turn: Option<u32>,
    pub max_turns: Option<u32>,
    /// Since when it does what it does, or has waited.
    pub since: String,
    /// The full text of what went wrong last.
    pub last_error: Option<String>,
    pub cost_usd: f64,
    /// The row of `waiting` that is about it.
    pub waiting: Option<String>,
    /// What can be done with it.
    pub actions: Vec<Action>,
}

/// The group of a worker in a list by attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// It waits for a person.
    Waits,
    Stuck,
    Idle,
    Work,
}

/// Something that waits, as a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRow {
    /// Stays the same for as long as it waits.
    pub id: String,
    pub seq: u64,
    /// What holds up most and longest comes first.
    pub rank: usize,
    #[schemars(with = "Words<Kind>")]
    pub kind: Kind,
    pub glyph: String,
    pub project: String,
    #[schemars(with = "Words<Severity>")]
    pub severity: Severity,
    #[schemars(with = "Words<Decider>")]
    pub who: Decider,
    /// What waits, in one sentence.
    pub text: String,
    /// What it is about, in a few words.
    pub about: String,
    pub since: Option<String>,
    /// The tasks that it blocks, with those that depend on them.
    pub blocks: Vec<String>,
    pub task: Option<String>,
    pub worker: Option<String>,
    pub approval: Option<String>,
    pub request: Option<String>,
    pub channel: Option<String>,
    /// The call that an agent wants to make, whole.
    pub call: Option<Call>,
    /// What is asked, whole.
    pub question: Option<String>,
    /// What can be done about it, the most likely first. The first whose `answer` is `yes` and the first whose is `no` are the
    /// two buttons.
    pub actions: Vec<Action>,
}

/// An approved task on its way to main, as a row; its id is the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    pub id: String,
    pub seq: u64,
    /// Its place, from 1.
    pub rank: usize,
    pub task: String,
    pub title: String,
    pub state: QueueStep,
    /// What happens to it now, or what it waits for.
    pub text: String,
    pub approved_by: Option<String>,
    pub approved_at: Option<String>,
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
    Waits,
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
    /// Every status to every other, for a person.
    pub moves: Vec<MoveTerm>,
    pub waiting_kinds: Vec<Term>,
    /// The groups of workers, in their order.
    pub attention: Vec<Term>,
    pub worker_states: Vec<Term>,
    pub queue_steps: Vec<Term>,
    pub types: Vec<String>,
    /// The agents that the settings have.
    pub agents: Vec<String>,
    pub keys: Vec<KeyTerm>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Term {
    pub id: String,
    pub label: String,
    pub glyph: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusTerm {
    #[schemars(with = "Words<Status>")]
    pub id: Status,
    pub label: String,
    pub glyph: String,
    /// Nothing leaves it.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// What it means, in one sentence.
    pub words: String,
}

/// The move of a task from one status to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MoveTerm {
    #[schemars(with = "Words<Status>")]
    pub from: Status,
    #[schemars(with = "Words<Status>")]
    pub to: Status,
    pub allowed: bool,
    /// The words of the rule if it is not allowed; else what the move asks for.
    pub words: String,
    /// What the move requires. A task that has one of them already need not be given it again.
    pub fields: Vec<Field>,
}

/// A key, and what it does in which views.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyTerm {
    /// What it does, as a code.
    pub action: String,
    /// Ways to press it: `Ctrl+K`, `?`, `Space`, or two strokes with a space between them: `G I`.
    pub keys: Vec<String>,
    /// Names of views; empty: everywhere.
    pub views: Vec<String>,
    /// What it does, in words.
    pub words: String,
    /// Shown in the foot of its views.
    pub foot: bool,
}
