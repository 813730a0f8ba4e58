//! The kernel: all live state, what may be asked of it, and the rules by which one machine moves another. It may know the
//! machines, and nothing that touches the world. Begin with `handle.rs` and the table in `rules.rs`.
//!
//! ```text
//! handle(&World, &Command) -> Result<Commit, Refusal>
//! ```
//!
//! Pure: no clock, no file, no thread, no socket, no randomness. The time and the id come in with the command; what
//! must happen in the world goes out as effects in the same commit as the events that ask for it. A command's
//! whole cascade, through all the machines that it moves, is one commit.

pub mod answers;
mod apply;
mod authority;
pub mod budget;
mod checks;
pub mod choice;
pub mod command;
pub mod config;
pub mod decisions;
mod dispatch;
mod draft;
pub mod effect;
pub mod event;
mod handle;
pub mod happened;
mod hash;
pub mod invariants;
pub mod line_comment;
mod messages;
mod natural;
mod old_records;
pub mod probe;
pub mod published;
mod reading;
pub mod rooms;
mod rules;
pub mod session;
mod shell;
pub mod specs;
pub mod standstill;
pub mod waiting;
pub mod why;
pub mod words;
pub mod world;

pub use command::{Actor, Answer, Ask, Command, Happened, Outcome, Refusal, Reply};
pub use config::Config;
pub use draft::Commit;
pub use effect::{Effect, Timer};
pub use event::Event;
pub use handle::{handle, scope};
pub use machines::Millis;
pub use natural::natural;
pub use rules::next_task_id;
pub use rules::{LIMIT_PASSED, Rule, knows_ticket, undo_branch};
pub use world::World;

/// What `make fuzz` holds every command line to.
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz {
    pub use crate::reading::only_reads;

    pub fn check_line(line: &str) {
        crate::reading::check_line(line);
        crate::messages::check_line(line);
        crate::messages::check_line(&format!("git commit {line}"));
    }
}

#[cfg(test)]
#[path = "../../machines/src/tests/diff.rs"]
mod diff;
#[cfg(test)]
mod docs_test;
#[cfg(test)]
mod tests;
