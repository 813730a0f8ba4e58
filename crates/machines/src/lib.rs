//! The five machines of Adjutant, as tables, and what the tables mean. It knows no other crate. Begin with `machine.rs`, then
//! `task/mod.rs`.
//!
//! A machine is data first: rows of `(from, event, guards, actions, to, who)`. One [`machine::step`] runs them
//! all; the reference pages, the diagrams, the JSON and the exhaustive tests are made from the same rows.
//!
//! Nothing here knows a clock, a file, a thread, a socket, or another machine. Time and ids come in with the
//! event; what must happen in the world goes out as an effect value.

pub mod architect;
pub mod catalog;
pub mod machine;
pub mod names;
pub mod run;
pub mod suspended;
pub mod task;
pub mod turn;
pub mod wire;
pub mod worker;

pub use machine::{
    Advanced, Caller, Code, FieldError, Machine, Refusal, Row, Step, Taken, Who, advance, replay, step,
    would_take,
};
pub use wire::Wire;

/// Milliseconds since the Unix epoch. Always given, never read from a clock.
pub type Millis = i64;

#[cfg(test)]
pub(crate) mod tests;
