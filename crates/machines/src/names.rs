//! Names and ids. Each kind is a type of its own, and all share one strict alphabet, so that no name can leave a
//! directory, begin like an option, or look like another.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// The longest name that is accepted, in bytes.
pub const NAME_LENGTH_MAX: usize = 100;

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    pub name: String,
    pub why: &'static str,
}

impl std::fmt::Display for BadName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.name.chars().take(40).flat_map(char::escape_default).collect();
        write!(f, "`{shown}` is not a valid name: {}", self.why)
    }
}

impl std::error::Error for BadName {}

/// Letters, digits, `.`, `_` and `-`; it begins with a letter or digit. What git and file systems refuse as a
/// path part or ref part is refused here too, so that a name is always both.
pub fn check(name: &str) -> Result<(), BadName> {
    let bad = |why| Err(BadName { name: name.to_owned(), why });
    if name.is_empty() {
        return bad("it is empty");
    }
    if name.len() > NAME_LENGTH_MAX {
        return bad("it is longer than 100 bytes");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return bad("it may hold only letters, digits, `.`, `_` and `-`");
    }
    if !name.as_bytes()[0].is_ascii_alphanumeric() {
        return bad("it must begin with a letter or a digit");
    }
    if name.contains("..") || name.ends_with('.') || name.ends_with(".lock") {
        return bad("it may not hold `..`, nor end in `.` or `.lock`");
    }
    Ok(())
}

macro_rules! name {
    ($($(#[$meta:meta])* $type:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "SmolStr", into = "SmolStr")]
        pub struct $type(SmolStr);

        impl $type {
            pub fn new(name: impl AsRef<str>) -> Result<Self, BadName> {
                check(name.as_ref())?;
                Ok(Self(SmolStr::new(name)))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<SmolStr> for $type {
            type Error = BadName;

            fn try_from(name: SmolStr) -> Result<Self, BadName> {
                check(&name)?;
                Ok(Self(name))
            }
        }

        impl From<$type> for SmolStr {
            fn from(name: $type) -> SmolStr {
                name.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = BadName;

            fn from_str(name: &str) -> Result<Self, BadName> {
                Self::new(name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    )*};
}

name! {
    /// A unit of work on the board. A ticket's id is its task's id.
    TaskId,
    /// A slot of the fleet.
    WorkerName,
    /// A named configuration of an agent.
    AgentName,
    /// One execution of an agent on a task: `<task>.<number>`.
    RunId,
    /// A question to a person.
    ApprovalId,
    /// Something that somebody asks and that is answered in words.
    RequestId,
    /// What somebody wants built, in words.
    SpecId,
    /// Something to do in the world.
    EffectId,
    /// A room with a queue of agents.
    ChannelName,
    /// A service that agents depend on, such as a model provider.
    ServiceName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_place_is_refused() {
        for name in [
            "",
            "../x",
            "a/b",
            "-rf",
            "--upload-pack=x",
            ".hidden",
            "a..b",
            "a.lock",
            "a\0b",
            "a\r\nb",
            "ａ",
            "%2e%2e",
        ] {
            assert!(check(name).is_err(), "{name:?} was accepted");
        }
        assert!(check(&"a".repeat(101)).is_err());
    }

    #[test]
    fn ids_of_tickets_runs_and_workers_are_names() {
        for name in ["A", "c-abc1", "c-abc1.12", "worker_2", "3"] {
            assert_eq!(check(name), Ok(()));
        }
    }
}
