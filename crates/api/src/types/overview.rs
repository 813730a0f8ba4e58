//! The current work of a fleet on one page, and its story line by line: the content of a live view.

use std::collections::BTreeMap;

use super::cost::Spend;
use super::waiting::Waiting;
use super::worker::Worker;
use super::{Cursor, Limit, Words, flag, is_false};
use crate::story::Tone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

machines::wire_enum! {
    /// Where a task is on its way to main.
    pub enum Column {
        /// No agent has started it.
        Wait = "wait",
        /// An agent works on it.
        Work = "work",
        /// It needs a review.
        Review = "review",
        /// It is approved and not yet on main.
        Land = "land",
        /// It needs a person to continue.
        You = "you",
        /// It is done or canceled.
        Done = "done",
    }
}

/// The state of a fleet at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// That moment, by the clock of the process that answers. Clients compute ages from it.
    pub at: String,
    /// A fleet runs or starts.
    pub running: bool,
    pub workers: Vec<Worker>,
    /// Every column with its tasks, in the order in which a task passes through them.
    pub columns: Vec<BoardColumn>,
    /// Items that need a person. The item that blocks the most tasks is first.
    pub for_you: Vec<ForYou>,
    /// Main's own tests, if they run now. All agents wait for them.
    pub main_tests: Option<TestsUnderWay>,
    /// The current landing.
    pub landing: Option<LandingUnderWay>,
    pub counts: TaskCounts,
    /// The total cost.
    pub cost: Spend,
    /// The part of it that was spent before the process that answers started.
    pub cost_before: Spend,
    /// Tasks that have landed since then.
    pub landed: u32,
    /// Failures since then that the fleet recovered from, in words, and how often each occurred.
    pub survived: BTreeMap<String, u32>,
    /// Main fails its own tests, so no agent starts.
    pub main_is_red: bool,
    /// Tasks that wait until a person has done something about another task or about the project.
    pub held: Vec<HeldTasks>,
    /// Tasks that continue without a person.
    pub continues: Continues,
}

/// A column of the live view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardColumn {
    #[schemars(with = "Words<Column>")]
    pub column: Column,
    pub tasks: Vec<String>,
}

/// Something that a person must do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForYou {
    /// The command that does it, or that shows the decision to make.
    pub command: String,
    pub what: String,
    /// The item, with its options.
    pub waiting: Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsUnderWay {
    /// Null until the command starts.
    pub command: Option<String>,
    pub since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandingUnderWay {
    pub task: String,
    /// The start of its current part.
    pub since: String,
    /// The tests have passed, and main is being moved.
    pub moves: bool,
    /// The command that tests the merge, while it runs.
    pub command: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskCounts {
    /// All tasks of the project, of every status.
    pub tasks: usize,
    pub done: usize,
    /// All tasks except canceled tasks and open proposals of agents.
    pub wanted: usize,
    /// Tasks that are neither done nor canceled, except open proposals of agents.
    pub left: usize,
    /// Tasks of `left` that need a person to continue.
    pub need_person: usize,
    /// Open proposals of agents.
    pub proposed: usize,
    pub specs: usize,
}

/// Tasks that wait for the same item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldTasks {
    pub tasks: Vec<String>,
    /// The cause, as the end of a sentence after `waits`.
    pub waits: String,
}

/// Tasks that continue without a person, by their progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Continues {
    pub in_work: usize,
    pub not_begun: usize,
    /// Approved and not yet landed.
    pub to_land: usize,
}

/// Which part of the story.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoryQuery {
    /// The number of the last line that you have read. Without it, the answer begins with the first stored line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000. The default is 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// If there is no new line, wait a while for one.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

/// A line of the story. The process that owns the project has reported it since it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoryLine {
    /// Lines are numbered from 1. Some report events that the log does not contain.
    pub number: u64,
    pub at: String,
    #[schemars(with = "Words<Tone>")]
    pub tone: Tone,
    pub text: String,
}
