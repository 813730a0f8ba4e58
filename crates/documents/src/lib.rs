//! Files that people write: tickets and specs, read by format and edited byte for byte. It may know texts and files, and
//! nothing of git, settings or the fleet. Begin with `tickets/mod.rs`, or with the table of formats in `specs/mod.rs`.

pub mod specs;
pub mod tickets;
