//! What tools take, where the body of a route does not say it already. The comments of the members are shown to models.

use api::types::Words;
use api::types::task::Move;
use machines::task::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// Only tasks of these statuses.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Words<Status>>>")]
    pub status: Option<Vec<String>>,
    /// Only tasks of this agent.
    #[serde(default)]
    pub assignee: Option<String>,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(default)]
    pub after: Option<String>,
    /// Tasks in a page: 1 to 1000, 100 where it is left out.
    #[serde(default)]
    pub limit: Option<u16>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneTask {
    /// The task's id, such as t-1. An agent at work may leave it out: then it is its own task.
    #[serde(default)]
    pub task: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowDiff {
    /// The task's id, such as t-1. An agent at work may leave it out: then it is its own task.
    #[serde(default)]
    pub task: Option<String>,
    /// Only this file or folder of the repository, such as src/main.rs.
    #[serde(default)]
    pub path: Option<String>,
}

/// A move as its route takes it, and the task that is moved.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MoveTask {
    /// The task's id, such as t-1.
    pub task: String,
    #[serde(flatten)]
    pub moved: Move,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// The id of a request that waits for an approval, such as q7. Give either this or a task.
    #[serde(default)]
    pub approval: Option<String>,
    /// The id of a task in REVIEW.
    #[serde(default)]
    pub task: Option<String>,
    /// The tip that was looked at, for a task: another one is refused.
    #[serde(default)]
    pub tip: Option<String>,
    /// Why. Whoever asked is told; work that goes back needs it.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The task's id; without it, the whole fleet is explained.
    #[serde(default)]
    pub task: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The question, with all that somebody needs to answer it who does not see what you see.
    pub question: String,
    /// Which of your runs it is about. Leave it out, unless you run outside and have several under way.
    #[serde(default)]
    pub run: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question's id, such as r7; `waiting` lists the open ones. The architect leaves it out and answers what it was asked.
    #[serde(default)]
    pub question: Option<String>,
    /// The answer, in words.
    pub answer: String,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitStories {
    /// All stories of the spec, each named once.
    pub stories: Vec<api::types::spec::Story>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecFeedback {
    /// What its author is to change, or to make clear.
    pub text: String,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Escalate {
    /// What a person must decide, and why you cannot.
    pub why: String,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// What is done and what comes next, in a sentence or two.
    pub text: String,
    /// The task's id. Leave it out, unless you are at work on several.
    #[serde(default)]
    pub task: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForReview {
    /// What was done and how to see it, for whoever reviews it.
    pub summary: String,
    /// Which of your runs it is about. Leave it out, unless you run outside and have several under way.
    #[serde(default)]
    pub run: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// What the cost is summed up by: task, step, agent, day, worker or run. By task where it is left out.
    #[serde(default)]
    pub by: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadChannel {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    pub channel: Option<String>,
    /// The `seq` of the last entry that you have seen; without it, the last 50 are shown.
    #[serde(default)]
    pub after: Option<u64>,
    /// Only what has this text in it, or is by somebody of this name.
    #[serde(default)]
    pub search: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostToChannel {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    pub channel: Option<String>,
    /// What you say, for all in the channel.
    pub text: String,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTurn {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    pub channel: Option<String>,
    /// What you say last, if there is something left to say.
    #[serde(default)]
    pub text: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitInTurn {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    pub channel: Option<String>,
    /// What you wait for, for people to read.
    pub reason: String,
    /// For how long at most, in seconds. Without it, as the channel says.
    #[serde(default)]
    pub seconds: Option<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideReview {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    pub channel: Option<String>,
    /// Whether the work may land.
    pub approve: bool,
    /// Why; where it may not land, what must be changed.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneChannel {
    /// The channel's name; `list_channels` lists them.
    pub channel: String,
}
