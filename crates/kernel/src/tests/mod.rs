//! The kernel's tests: scripts that read as the rules do, a walk over everything reachable, sabotage of every
//! invariant, and samples of every event ever written.

mod architect;
mod cells;
mod commands;
mod permissions;
mod presence;
mod published;
mod rooms;
mod runs;
mod sabotage;
mod samples;
mod scripts;
mod standstill;
mod table;
mod waiting;
mod walk;
