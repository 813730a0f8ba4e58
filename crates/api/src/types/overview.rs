//! What a fleet does now, on one page, and what it has told: what a live view shows.

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
        /// Nobody has begun it.
        Wait = "wait",
        /// An agent works on it.
        Work = "work",
        /// It is to be reviewed.
        Review = "review",
        /// It is approved, and not on main yet.
        Land = "land",
        /// It does not go on before a person has done something.
        You = "you",
        /// It is done, or canceled.
        Done = "done",
    }
}

/// All of it is of one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// That moment, by the clock of the process that answers: ages are counted from it.
    pub at: String,
    /// A fleet runs, or is about to.
    pub running: bool,
    pub workers: Vec<Worker>,
    /// Every column with its tasks, in the order in which a task goes through them.
    pub columns: Vec<BoardColumn>,
    /// What waits for a person: what holds up most comes first.
    pub for_you: Vec<ForYou>,
    /// Main's own tests, where they run now: everybody waits for them.
    pub main_tests: Option<TestsUnderWay>,
    /// The one landing under way.
    pub landing: Option<LandingUnderWay>,
    pub counts: TaskCounts,
    /// What was spent in all.
    pub cost: Spend,
    /// What of it had been spent when the process that answers began.
    pub cost_before: Spend,
    /// How many tasks have landed since then.
    pub landed: u32,
    /// What went wrong since then and was survived, in words, with how often.
    pub survived: BTreeMap<String, u32>,
    /// Main does not pass its own tests, so no agent starts.
    pub main_is_red: bool,
    /// Tasks that wait behind what a person must do elsewhere.
    pub held: Vec<HeldTasks>,
    /// What the fleet goes on with by itself.
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
    /// The command that does it, or that shows what there is to decide.
    pub command: String,
    pub what: String,
    /// What waits, with all that can be done about it.
    pub waiting: Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsUnderWay {
    /// Null before the command is started.
    pub command: Option<String>,
    pub since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandingUnderWay {
    pub task: String,
    /// Since when this part of it is under way.
    pub since: String,
    /// The tests have passed: main is being moved.
    pub moves: bool,
    /// The command by which the merge is tested, while it runs.
    pub command: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskCounts {
    /// All that there ever were.
    pub tasks: usize,
    pub done: usize,
    /// Those that are done or will be: without canceled ones and those that agents proposed.
    pub wanted: usize,
    /// Those that are not over, without those that agents proposed.
    pub left: usize,
    /// Of these, those that go no further before a person has done something.
    pub need_person: usize,
    /// What agents proposed and nobody has decided on.
    pub proposed: usize,
    pub specs: usize,
}

/// Tasks that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldTasks {
    pub tasks: Vec<String>,
    /// What they wait for, as it follows `waits` in a sentence.
    pub waits: String,
}

/// Tasks that go on without a person, by how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Continues {
    pub in_work: usize,
    pub not_begun: usize,
    /// Approved and not landed.
    pub to_land: usize,
}

/// Which part of the story.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoryQuery {
    /// The number of the last line that was read; without it, from the first that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Where there is nothing yet, wait a while for something.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

/// A line of the story that the process which owns the project has told since it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoryLine {
    /// Lines are numbered from 1. Some tell of what the log does not hold.
    pub number: u64,
    pub at: String,
    #[schemars(with = "Words<Tone>")]
    pub tone: Tone,
    pub text: String,
}
