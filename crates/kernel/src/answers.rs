//! What the architect answers: by a tool, or in the words of its last message.

use crate::decisions::{self, Decision, Word};
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
        let words: &[Word] = match kind {
            RequestKind::Question => &[Word::Escalate, Word::Abandon],
            RequestKind::Code | RequestKind::Completion | RequestKind::Budget => {
                &[Word::Approve, Word::Changes, Word::Escalate, Word::Abandon]
            }
            RequestKind::Spec => &[Word::Feedback, Word::Escalate, Word::Abandon],
            RequestKind::Plan | RequestKind::Merge => {
                return Err("nothing is asked of the architect here".to_owned());
            }
        };
        let said = decisions::read(text, words).map_err(|both| both.to_string())?;
        let document = decisions::document(text).filter(|_| kind == RequestKind::Spec);
        match (said, document) {
            (Some(said), Some(_)) => {
                Err(format!("it says {} and ends with stories; give one of them", said.word))
            }
            (Some(said), None) => Ok(said.into()),
            (None, Some(json)) => stories(json),
            (None, None) if kind == RequestKind::Question => {
                Ok(ArchitectAnswer::Answer { text: text.trim().to_owned() })
            }
            (None, None) if kind == RequestKind::Spec => Err("give the stories as one JSON document \
                 `{\"stories\": [{\"key\", \"title\", \"body\", \"acceptance\", \"dependsOn\"}]}` that is the whole \
                 message or, as a ```json block, its end; or say FEEDBACK as the first or last line of the message, \
                 alone on that line, and in the rest what is to be changed"
                .to_owned()),
            (None, None) => Err("say APPROVE or CHANGES as the first or last line of the message, alone on that line \
                 and not quoted, and why in the rest"
                .to_owned()),
        }
    }
}

impl From<Decision> for ArchitectAnswer {
    /// Only the words that an architect is asked for come here; of the others, none is a verdict.
    fn from(said: Decision) -> ArchitectAnswer {
        let Decision { word, rest } = said;
        match word {
            Word::Approve => ArchitectAnswer::Approve { note: rest },
            Word::Changes => ArchitectAnswer::Changes { text: rest },
            Word::Feedback => ArchitectAnswer::Feedback { text: rest },
            Word::Escalate => ArchitectAnswer::CannotAnswer { why: rest },
            Word::Abandon => ArchitectAnswer::Abandon { reason: rest },
            Word::Done | Word::TurnComplete | Word::Pass => ArchitectAnswer::Answer { text: rest },
        }
    }
}

fn stories(json: &str) -> Result<ArchitectAnswer, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Split {
        stories: Vec<Story>,
    }
    let split: Split =
        serde_json::from_str(json).map_err(|error| format!("the stories cannot be read: {error}"))?;
    Ok(ArchitectAnswer::Stories { stories: split.stories })
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
            "ESCALATE\na matter of money",
            Ok(Says::CannotAnswer { why: text("a matter of money") }),
        );
        check(RequestKind::Code, "fine\nAPPROVE", Ok(Says::Approve { note: text("fine") }));
        check(RequestKind::Code, "CHANGES\nrename it", Ok(Says::Changes { text: text("rename it") }));
        check(RequestKind::Code, "I APPROVE of this", Err("as the first or last line"));
        check(RequestKind::Code, "APPROVE: so", Err("alone on that line"));
        check(RequestKind::Code, "The work adds\n```\nAPPROVE\n```\nI cannot accept it.", Err("not quoted"));
        check(RequestKind::Code, "ABANDON\nno idea", Ok(Says::Abandon { reason: text("no idea") }));
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
        let quoted = "FEEDBACK\nThe spec quotes this:\n```json\n{\"stories\": []}\n```";
        check(RequestKind::Spec, quoted, Err("it says FEEDBACK and ends with stories"));
        let story = Story { key: "a".into(), title: text("A"), ..Story::default() };
        let json = "Here:\n```json\n{\"stories\": [{\"key\": \"a\", \"title\": \"A\"}]}\n```";
        check(RequestKind::Spec, json, Ok(Says::Stories { stories: vec![story] }));
    }
}
