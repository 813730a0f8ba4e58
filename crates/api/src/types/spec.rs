//! Specs: what somebody wants built, and the stories that it was split into.

use super::{Name, Text, Words};
use kernel::specs::{self, SpecState};
use machines::task::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A spec that is submitted, for the first time or again after feedback.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewSpec {
    /// Its name; its tasks are named after it.
    #[schemars(with = "Name")]
    pub id: String,
    #[schemars(with = "Text")]
    pub title: String,
    /// Where it was read from, as its author named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its format; `prose` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[schemars(with = "Text")]
    pub text: String,
    /// It is a list of tasks already: they are loaded as they are, and the architect is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub stories: Option<Vec<Story>>,
}

/// One story.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "NewStory")]
pub struct Story {
    /// The key by which other stories name it.
    #[schemars(with = "Text")]
    pub key: String,
    #[schemars(with = "Text")]
    pub title: String,
    /// The work to do, and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Its acceptance criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// Keys of the stories that must have landed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Other stories build on it: it is worked on first.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub infrastructure: bool,
    /// 0 is the most urgent, 4 the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub priority: Option<u8>,
    /// 3 to 6 steps, if it already has a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<String>>,
    /// The open box that its landing ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// A box in a file of the repository that stands for a story.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "StoryMark")]
pub struct Mark {
    /// The file, from the top of the repository.
    #[schemars(with = "Text")]
    pub path: String,
    /// The whole line with the open box.
    #[schemars(with = "Text")]
    pub line: String,
}

impl From<Story> for specs::Story {
    fn from(story: Story) -> specs::Story {
        specs::Story {
            key: SmolStr::new(&story.key),
            title: story.title,
            body: story.body,
            acceptance: story.acceptance,
            depends_on: story.depends_on.iter().map(SmolStr::new).collect(),
            infrastructure: story.infrastructure,
            priority: story.priority,
            plan: story.plan,
            mark: story.mark.map(|mark| specs::Mark { path: mark.path, line: mark.line }),
        }
    }
}

impl From<&specs::Story> for Story {
    fn from(story: &specs::Story) -> Story {
        Story {
            key: story.key.to_string(),
            title: story.title.clone(),
            body: story.body.clone(),
            acceptance: story.acceptance.clone(),
            depends_on: story.depends_on.iter().map(ToString::to_string).collect(),
            infrastructure: story.infrastructure,
            priority: story.priority,
            plan: story.plan.clone(),
            mark: story.mark.as_ref().map(|mark| Mark { path: mark.path.clone(), line: mark.line.clone() }),
        }
    }
}

/// A spec in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecLine {
    pub id: String,
    pub title: String,
    #[schemars(with = "Words<SpecState>")]
    pub state: SpecState,
    /// Counts up as it is submitted again.
    pub version: u32,
    pub by: String,
    pub at: String,
    /// The changes that its author should make.
    pub feedback: Option<String>,
    /// Its stories on the board, and those of them that are not over.
    pub stories: u32,
    pub open_stories: u32,
    /// The request by which the architect is asked about it.
    pub request: Option<String>,
}

/// A spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(flatten)]
    pub line: SpecLine,
    pub path: Option<String>,
    pub format: String,
    /// The text of the version that is shown.
    pub text: String,
    pub tasks: Vec<SpecStory>,
    /// Every version that was submitted, oldest first.
    pub versions: Vec<SpecVersion>,
}

/// A story of a spec that is on the board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecStory {
    /// Its name in the spec.
    pub key: String,
    pub task: String,
    pub title: String,
    #[schemars(with = "Option<Words<Status>>")]
    pub status: Option<Status>,
    /// The tasks that it waits for.
    pub depends_on: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecVersion {
    pub version: u32,
    pub title: String,
    pub by: String,
    pub at: String,
    /// Its result, and the changes that its author should make.
    #[schemars(with = "Option<Words<SpecState>>")]
    pub state: Option<SpecState>,
    pub feedback: Option<String>,
}

/// Which version of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SpecQuery")]
pub struct ShowQuery {
    /// The version whose text is shown; without it, the one that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub version: Option<String>,
}
