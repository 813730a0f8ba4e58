//! What tools take that is not what their operation takes. The comments of the members are shown to models.

use super::spec::Story;
use super::{Name, Text};
use machines::names::{ApprovalId, ChannelName, RequestId, RunId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An approval, or work in REVIEW.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The id of a request that waits for an approval, such as q7. Give either this or a task.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub approval: Option<ApprovalId>,
    /// The id of a task in REVIEW.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub task: Option<TaskId>,
    /// The tip that was looked at, for a task: another one is refused.
    #[serde(default)]
    pub tip: Option<String>,
    /// The reason, which is sent to the agent that asked. Work that is sent back needs one.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The task's id; without it, the whole fleet is explained.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub task: Option<TaskId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question, with all that somebody needs to answer it who does not see what you see.
    #[schemars(with = "Text")]
    pub question: String,
    /// Which of your runs it is about. Leave it out, unless you run outside and have several under way.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub run: Option<RunId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerInWords {
    /// The question's id, such as r7; `waiting` lists the open ones. The architect leaves it out and answers what it was asked.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub question: Option<RequestId>,
    /// The answer, in words.
    #[schemars(with = "Text")]
    pub answer: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stories {
    /// All stories of the spec, each named once.
    pub stories: Vec<Story>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// What its author is to change, or to make clear.
    pub text: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    /// What a person must decide, and why you cannot.
    pub why: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// What is done and what comes next, in a sentence or two.
    #[schemars(with = "Text")]
    pub text: String,
    /// The task's id. Leave it out, unless you are at work on several.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub task: Option<TaskId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForReview {
    /// What was done and how to check it, for the reviewer.
    pub summary: String,
    /// Which of your runs it is about. Leave it out, unless you run outside and have several under way.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub run: Option<RunId>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadChannel {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub channel: Option<ChannelName>,
    /// The `seq` of the last entry that you have seen; without it, the last 50 are shown.
    #[serde(default)]
    pub after: Option<u64>,
    /// Only what has this text in it, or is by somebody of this name.
    #[serde(default)]
    pub search: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastWords {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub channel: Option<ChannelName>,
    /// What you say last, if there is something left to say.
    #[serde(default)]
    pub text: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitInTurn {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub channel: Option<ChannelName>,
    /// What you wait for, for people to read.
    pub reason: String,
    /// For how long at most, in seconds. Without it, as the channel says.
    #[serde(default)]
    pub seconds: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelReview {
    /// The channel. You may leave it out where you are in one only, or have the turn in one.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub channel: Option<ChannelName>,
    /// Whether the work may land.
    pub approve: bool,
    /// Why; where it may not land, what must be changed.
    #[serde(default)]
    pub note: Option<String>,
}
