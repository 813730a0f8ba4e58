//! What the architect answers: by a tool, or in the words of its last message.

use crate::specs::Story;
use crate::words::RequestKind;
use machines::architect::RequestType;
use serde::{Deserialize, Serialize};

/// An answer of the architect's agent to the request that it has in hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArchitectAnswer {
    /// To a question, in words.
    Answer { text: String },
    Approve {
        #[serde(default)]
        note: String,
    },
    /// What is to be changed in work that was reviewed.
    Changes { text: String },
    /// What its author is to change in a spec.
    Feedback { text: String },
    /// A spec, split.
    Stories { stories: Vec<Story> },
    /// A person must be asked.
    CannotAnswer { why: String },
    /// It cannot go on at all.
    Abandon { reason: String },
}

/// As a line of their own they say what an answer is.
const APPROVE: &str = "APPROVE";
const CHANGES: &str = "CHANGES";
const FEEDBACK: &str = "FEEDBACK";
const ESCALATE: &str = "ESCALATE";

impl ArchitectAnswer {
    pub fn name(&self) -> &'static str {
        match self {
            ArchitectAnswer::Answer { .. } => "answer",
            ArchitectAnswer::Approve { .. } => "approve",
            ArchitectAnswer::Changes { .. } => "changes",
            ArchitectAnswer::Feedback { .. } => "feedback",
            ArchitectAnswer::Stories { .. } => "stories",
            ArchitectAnswer::CannotAnswer { .. } => "cannot_answer",
            ArchitectAnswer::Abandon { .. } => "abandon",
        }
    }

    /// Reads a last message, for agents that have no tools of ours. `Err` says what was expected.
    pub fn read(kind: RequestKind, text: &str) -> Result<ArchitectAnswer, String> {
        if let Some(why) = marked(text, ESCALATE) {
            return Ok(ArchitectAnswer::CannotAnswer { why });
        }
        match kind {
            RequestKind::Question => Ok(ArchitectAnswer::Answer { text: text.trim().to_owned() }),
            RequestKind::Code | RequestKind::Completion | RequestKind::Budget => {
                match (marked(text, APPROVE), marked(text, CHANGES)) {
                    (Some(note), None) => Ok(ArchitectAnswer::Approve { note }),
                    (None, Some(text)) => Ok(ArchitectAnswer::Changes { text }),
                    (Some(_), Some(_)) => Err("it says both APPROVE and CHANGES; say one of them".to_owned()),
                    (None, None) => {
                        Err("say APPROVE or CHANGES as a line of its own, and why beside it".to_owned())
                    }
                }
            }
            RequestKind::Spec => spec(text),
            RequestKind::Plan | RequestKind::Merge => {
                Err("nothing is asked of the architect here".to_owned())
            }
        }
    }
}

fn spec(text: &str) -> Result<ArchitectAnswer, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Split {
        stories: Vec<Story>,
    }
    if let Some(json) = json_in(text) {
        let split: Split =
            serde_json::from_str(json).map_err(|error| format!("the stories cannot be read: {error}"))?;
        return Ok(ArchitectAnswer::Stories { stories: split.stories });
    }
    marked(text, FEEDBACK).map(|text| ArchitectAnswer::Feedback { text }).ok_or_else(|| {
        "give the stories as one JSON document `{\"stories\": [{\"key\", \"title\", \"body\", \"acceptance\", \
         \"dependsOn\"}]}`, or say FEEDBACK as a line of its own, and what is to be changed"
            .to_owned()
    })
}

/// The one JSON document in a text: all of it, or a block of its own.
fn json_in(text: &str) -> Option<&str> {
    let whole = text.trim();
    if whole.starts_with('{') {
        return Some(whole);
    }
    let start = text.find("```json").map(|at| at + "```json".len())?;
    let end = text[start..].find("```")?;
    Some(text[start..start + end].trim())
}

/// What stands beside a word that has a line of its own, or follows it on its line after a colon.
fn marked(text: &str, word: &str) -> Option<String> {
    let is = |line: &str| {
        let line = line.trim();
        line == word || line.strip_prefix(word).is_some_and(|rest| rest.starts_with(':'))
    };
    let at = text.lines().position(is)?;
    let rest: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(number, line)| match number == at {
            true => line.trim().trim_start_matches(word).trim_start_matches(':').trim(),
            false => line,
        })
        .collect();
    Some(rest.join("\n").trim().to_owned())
}

impl RequestKind {
    /// Whether finished work is looked at.
    pub fn is_review(self) -> bool {
        matches!(self, RequestKind::Code | RequestKind::Completion)
    }

    pub fn as_architect(self) -> RequestType {
        match self {
            RequestKind::Question => RequestType::Question,
            RequestKind::Plan => RequestType::Plan,
            RequestKind::Code => RequestType::Code,
            RequestKind::Completion => RequestType::Completion,
            RequestKind::Budget => RequestType::Budget,
            RequestKind::Merge => RequestType::Merge,
            RequestKind::Spec => RequestType::Spec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ArchitectAnswer as Says;

    #[track_caller]
    fn check(kind: RequestKind, text: &str, expected: Result<Says, &str>) {
        let read = ArchitectAnswer::read(kind, text);
        match (read, expected) {
            (Ok(read), Ok(expected)) => assert_eq!(read, expected),
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (read, expected) => panic!("{read:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn a_last_message_is_read_by_what_was_asked() {
        let text = |text: &str| text.to_owned();
        check(RequestKind::Question, " 42 \n", Ok(Says::Answer { text: text("42") }));
        check(
            RequestKind::Question,
            "ESCALATE: a matter of money",
            Ok(Says::CannotAnswer { why: text("a matter of money") }),
        );
        check(RequestKind::Code, "fine\nAPPROVE", Ok(Says::Approve { note: text("fine") }));
        check(RequestKind::Code, "CHANGES\nrename it", Ok(Says::Changes { text: text("rename it") }));
        check(RequestKind::Code, "I APPROVE of this", Err("as a line of its own"));
        check(RequestKind::Code, "APPROVE\nCHANGES", Err("both"));
        check(
            RequestKind::Spec,
            "FEEDBACK\nwhich database?",
            Ok(Says::Feedback { text: text("which database?") }),
        );
        check(RequestKind::Spec, "looks good", Err("one JSON document"));
        check(
            RequestKind::Spec,
            "```json\n{\"stories\": [{\"key\": \"a\", \"titel\": 1}]}\n```",
            Err("cannot be read"),
        );
        let story = Story { key: "a".into(), title: text("A"), ..Story::default() };
        let json = "Here:\n```json\n{\"stories\": [{\"key\": \"a\", \"title\": \"A\"}]}\n```";
        check(RequestKind::Spec, json, Ok(Says::Stories { stories: vec![story] }));
    }
}
