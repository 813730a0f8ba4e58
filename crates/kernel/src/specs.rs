//! Specs: what somebody wants built, in words, and the stories that it was split into.

use std::collections::{BTreeMap, BTreeSet};

use crate::Millis;
use crate::effect::{Effect, Say, StepStart};
use crate::rooms::Seat;
use crate::world::{Task, World};
use imbl::Vector;
use machines::names::{SpecId, TaskId};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Stories of one spec.
pub const STORIES_MAX: usize = 200;
/// Acceptance criteria of one story.
pub const CRITERIA_MAX: usize = 50;
/// The longest spec, in bytes.
pub const SPEC_BYTES_MAX: usize = 512 * 1024;
/// How often the architect may answer something that is no answer, before a person is asked.
pub const TRIES_MAX: u32 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: SpecId,
    pub title: String,
    pub state: SpecState,
    /// Where it was read from, as its author named it.
    pub path: Option<String>,
    /// The format that it was read as.
    pub format: SmolStr,
    /// The text that counts, and which version of it that is.
    pub text: String,
    pub version: u32,
    pub by: SmolStr,
    pub at: Millis,
    /// What its author is to change.
    pub feedback: Option<String>,
    /// When somebody said so, or approved it.
    #[serde(default)]
    pub reviewed_at: Option<Millis>,
    pub stories: Vector<Loaded>,
}

/// A story of a spec that is on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    pub task: TaskId,
    /// What the spec calls it.
    pub key: SmolStr,
    pub mark: Option<Mark>,
}

machines::wire_enum! {
    /// How far a spec has got.
    pub enum SpecState {
        /// The architect has yet to look at it.
        Submitted = "submitted",
        /// Its author is to change it, and to submit it again.
        NeedsChanges = "needs_changes",
        /// Its stories are on the board.
        Approved = "approved",
        /// All its stories are over.
        Done = "done",
    }
}

/// One story, as the architect or a list of tasks has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Story {
    /// What others of the spec name it by.
    pub key: SmolStr,
    pub title: String,
    pub body: String,
    /// What must be true when it is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<SmolStr>,
    /// Others stand on it: it is worked on first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub infrastructure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<String>>,
    /// The box in the spec's file that its landing ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// A box in a file of the repository that stands for a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mark {
    /// The file, from the top of the repository.
    pub path: String,
    /// The whole line with the open box: nothing else is ever changed.
    pub line: String,
}

impl Story {
    /// What whoever works on it reads.
    pub fn text(&self) -> String {
        let mut text = self.body.trim().to_owned();
        if !self.acceptance.is_empty() {
            let criteria: Vec<String> =
                self.acceptance.iter().map(|line| format!("- {}", line.trim())).collect();
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text = format!("{text}{gap}Acceptance criteria:\n{}", criteria.join("\n"));
        }
        text
    }
}

/// What is wrong with a set of stories, in words for whoever made it.
pub fn problem(stories: &[Story], text_bytes: usize) -> Option<String> {
    if stories.is_empty() {
        return Some("there are no stories: a spec that is approved has at least one".to_owned());
    }
    if stories.len() > STORIES_MAX {
        return Some(format!(
            "{} stories are more than the {STORIES_MAX} that one spec may have",
            stories.len()
        ));
    }
    let mut keys = BTreeSet::new();
    for story in stories {
        let key = &story.key;
        if key.trim().is_empty() || key.len() > 100 {
            return Some(
                "each story needs a key of at most 100 characters, by which others name it".to_owned(),
            );
        }
        if !keys.insert(key.as_str()) {
            return Some(format!("two stories have the key `{key}`"));
        }
        if story.title.trim().is_empty() {
            return Some(format!("story `{key}` has no title"));
        }
        if story.title.len() > text_bytes || story.text().len() > text_bytes {
            return Some(format!("story `{key}` is longer than {text_bytes} bytes"));
        }
        if story.acceptance.len() > CRITERIA_MAX {
            return Some(format!("story `{key}` has more than {CRITERIA_MAX} acceptance criteria"));
        }
        if story.priority.is_some_and(|priority| priority > 4) {
            return Some(format!("story `{key}`: a priority is 0 (most urgent) to 4"));
        }
        if let Some(plan) = &story.plan
            && (!(3..=6).contains(&plan.len()) || plan.iter().any(|step| step.trim().is_empty()))
        {
            return Some(format!("story `{key}`: a plan has 3 to 6 steps, none of them empty"));
        }
    }
    for story in stories {
        for on in &story.depends_on {
            if *on == story.key {
                return Some(format!("story `{on}` depends on itself"));
            }
            if !keys.contains(on.as_str()) {
                return Some(format!(
                    "story `{}` depends on `{on}`, which is no story of this spec",
                    story.key
                ));
            }
        }
    }
    cycle(stories).map(|path| format!("the dependencies go round: {}", path.join(" → ")))
}

/// Stories that wait for each other, as a path from one of them back to it.
fn cycle(stories: &[Story]) -> Option<Vec<String>> {
    let on: BTreeMap<&str, &[SmolStr]> =
        stories.iter().map(|story| (story.key.as_str(), story.depends_on.as_slice())).collect();
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    loop {
        let open = on.iter().filter(|(key, _)| !settled.contains(**key));
        let ready: Vec<&str> = open
            .filter(|(_, on)| on.iter().all(|on| settled.contains(on.as_str())))
            .map(|(key, _)| *key)
            .collect();
        if ready.is_empty() {
            break;
        }
        settled.extend(ready);
    }
    let start = *on.keys().find(|key| !settled.contains(**key))?;
    let (mut path, mut at) = (vec![start], start);
    loop {
        // Whoever is not settled waits for somebody who is not.
        at = on[at].iter().map(SmolStr::as_str).find(|on| !settled.contains(on))?;
        if let Some(from) = path.iter().position(|seen| *seen == at) {
            let round = path[from..].iter().chain([&at]);
            return Some(round.map(|key| (*key).to_owned()).collect());
        }
        path.push(at);
    }
}

impl Spec {
    pub fn has_open_stories(&self, world: &World) -> bool {
        self.stories.iter().any(|story| world.task(&story.task).is_some_and(|task| !task.is_final()))
    }
}

impl World {
    /// The approved spec that a task is a story of.
    pub fn spec_of(&self, task: &Task) -> Option<&Spec> {
        let of = |spec: &&std::sync::Arc<Spec>| spec.stories.iter().any(|story| story.task == task.id);
        self.specs.values().find(of).map(AsRef::as_ref)
    }

    /// Whether a request waits for the architect.
    pub fn is_queued(&self, id: &machines::names::RequestId) -> bool {
        self.architect_queue.contains(id)
    }

    /// The request that a reply of the architect was started for, and the commit that it was shown of it. `None`: it is no
    /// reply that is under way.
    pub fn shown_in(
        &self,
        reply: &machines::names::EffectId,
    ) -> Option<(&machines::names::RequestId, Option<&SmolStr>)> {
        let under_way = self.seated(&Seat::Architect)?.reply.as_ref() == Some(reply);
        match self.effects.get(reply).filter(|_| under_way)?.as_ref() {
            Effect::StartStep {
                of: StepStart::Seat { prompt: Say::Request { request, tip }, .. }, ..
            } => Some((request, tip.as_ref())),
            _ => None,
        }
    }

    /// The request that the architect has in hand.
    pub fn in_hand(&self) -> Option<&crate::world::Request> {
        let id = self.architect.as_ref()?.inner().request.clone()?;
        let id = machines::names::RequestId::new(id).ok()?;
        self.requests.get(&id).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stories(text: &str) -> Vec<Story> {
        let story = |line: &str| {
            let mut words = line.split_whitespace();
            let key = SmolStr::new(words.next().unwrap());
            Story {
                title: format!("Story {key}"),
                key,
                depends_on: words.map(SmolStr::new).collect(),
                ..Story::default()
            }
        };
        text.lines().map(story).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(problem(&stories(text), 1000).as_deref(), expected);
    }

    #[test]
    fn stories_that_wait_for_each_other_are_named_in_a_circle() {
        check("a\nb a\nc a b", None);
        check("a c\nb a\nc b\nd", Some("the dependencies go round: a → c → b → a"));
        check("a b\nb c\nc b", Some("the dependencies go round: b → c → b"));
        check("a a", Some("story `a` depends on itself"));
        check("a b", Some("story `a` depends on `b`, which is no story of this spec"));
        check("a\na", Some("two stories have the key `a`"));
        check("", Some("there are no stories: a spec that is approved has at least one"));
    }
}
