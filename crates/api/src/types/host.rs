//! What is not in the log: changes, saved work, transcripts, prompts, settings, and what was found on this machine.

use super::{Cursor, Limit, Name, flag, is_false};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffQuery {
    /// Only the files, with how much changed in each.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub stat: bool,
    /// Only this file or folder of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[^/\x00][^\x00]*$"))]
    pub path: Option<String>,
    /// The longest patch, in bytes: 1024 to 4194304, which is the default. If the patch is longer, only its files are listed.
    #[serde(default, rename = "maxBytes", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 4_194_304))]
    pub max_bytes: Option<u32>,
}

/// The changes of a task's branch against main, as a patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskDiff {
    pub task: String,
    pub base: String,
    pub tip: String,
    /// The patch, or with `cutAt` only the changed files with counts.
    pub diff: String,
    /// The limit that the patch is longer than, in bytes.
    #[serde(default, rename = "cutAt", skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// How to get the rest then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedBranch>,
}

/// The task's branch, if a person has added commits to it that are not in the tip and do not land with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedBranch {
    pub branch: String,
    pub commit: String,
    pub commits: usize,
}

/// A commit in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    pub oid: String,
    pub subject: String,
}

/// Work that was saved before something was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    /// `TASK/EFFECT`.
    pub id: String,
    /// The name that git has for it.
    #[serde(rename = "ref")]
    pub reference: String,
    pub task: String,
    pub commit: String,
    pub at: String,
    /// Its content that the task's tip does not have.
    pub files: Vec<String>,
    /// Commits that were on no branch of the task: stashed, amended or reset away.
    pub commits: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedDiff {
    pub id: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub diff: String,
}

/// The place for saved work: a new branch or folder. If neither is named, a branch name is chosen.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["branch", "folder"],
    "properties": {"branch": {"type": "string"}, "folder": {"type": "string"}}}))]
pub struct RestoreWish {
    /// `TASK/EFFECT`, as the list of saved work has it.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9][A-Za-z0-9_-]*$"))]
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Name>")]
    pub branch: Option<String>,
    /// An absolute path, of a folder that is not there yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = "^/"))]
    pub folder: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    pub id: String,
    #[serde(flatten)]
    pub place: RestoredTo,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoredTo {
    Branch(String),
    Folder(String),
}

/// Files of removed trees that git does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trash {
    pub folder: PathBuf,
    pub trees: usize,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscriptQuery {
    /// Entries after this cursor; without one, the end of the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Only the lines that the agent's program wrote.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub raw: bool,
    /// Where there is nothing yet, wait a while for something.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub wait: bool,
}

/// The messages and calls of agents, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    pub items: Vec<Entry>,
    /// The cursor with which a reader continues.
    pub next: Option<String>,
    /// There is more already.
    pub more: bool,
    /// Nobody is at work, so nothing follows.
    pub resting: bool,
}

/// One message or call of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Counts up through a worker's transcript; the next page comes after it.
    pub cursor: u64,
    /// Where it is known.
    pub at: Option<String>,
    /// `text`, `call`, `result`, `failure`, `question`, `stop`, …
    pub kind: String,
    pub text: String,
    /// The line that the agent's program printed, if lines were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestsQuery {
    /// The hooks, not the tests.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub hooks: bool,
    /// The `next` of the page before; without it, from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Items in a page: 1 to 1000, 100 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// One run of a task's tests, or of a hook for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRun {
    pub effect: String,
    /// The point of the hook; null for tests.
    pub hook: Option<String>,
    pub command: String,
    /// The folder that it ran in.
    pub folder: String,
    /// How it ended, in words; null while it runs.
    pub ended: Option<String>,
    /// Its output, in the original order; if it is long, the middle is cut out.
    pub output: String,
}

/// A prompt, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptLine {
    pub name: String,
    /// The file that it comes from; null for the one that is shipped.
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    pub name: String,
    /// The file that it comes from; null for the one that is shipped.
    pub file: Option<String>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configured {
    /// The settings file; null if there is none and all defaults apply.
    pub file: Option<String>,
    /// Whether its content is trusted; if not, the last trusted content is in force.
    pub trusted: bool,
    /// The file is gone, and the previous settings stay in force.
    pub gone: bool,
    /// The settings in force, as the file would say them.
    pub text: String,
    /// The same as the rules read them, for programs.
    pub settings: Value,
    /// Settings that are not in force; null if the file and the settings in force agree.
    pub waiting: Option<WaitingSettings>,
}

/// Content of `adjutant.toml` that is not in force, and why. The previous settings are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingSettings {
    pub reason: WhyNotInForce,
    /// The error, and what to do.
    pub detail: String,
    /// The settings that the file would give, as the file would say them; null if it is gone or invalid.
    pub text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyNotInForce {
    /// It came in with an agent's branch, and no person has trusted it.
    Untrusted,
    /// It has errors.
    Invalid,
    /// The file is gone.
    Gone,
}

/// The JSON Schema of `adjutant.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ConfigSchema(pub Value);

/// The content of a new adjutant.toml.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Init {
    /// Whether the tests run the repository's commit hooks, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub with_hooks: bool,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub level: Level,
    /// The subject of the check: `git`, `sandbox`, `adjutant.toml:12`, …
    pub subject: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warning,
    Error,
}
