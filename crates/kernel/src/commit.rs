//! What becomes of a command that is not refused.

use crate::World;
use crate::command::{Refusal, Reply};
use crate::event::Event;
use crate::rules::Rule;

/// A decided command: everything that it changes, at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub events: Vec<Event>,
    pub answer: Result<Reply, Refusal>,
    /// The rules that were used and the rows that were taken, for whoever counts them.
    pub rules: Vec<Rule>,
    pub rows: Vec<(&'static str, usize)>,
    /// The World after it.
    pub world: World,
}
