//! Everything that touches the world: the log, the owner that runs the kernel on it, git, agents and their keepers,
//! tickets, the runner that carries out what the kernel asks, and the simulator.

pub mod agents;
pub mod clock;
pub mod command_line;
pub mod crash;
pub mod credentials;
pub mod doctor;
pub mod files;
pub mod git;
pub mod hex;
pub mod in_force;
pub mod keeper;
pub mod layout;
pub mod log;
mod outbox;
pub mod owner;
pub mod program;
pub mod prompts;
pub mod registry;
pub mod runner;
pub mod sandbox;
pub mod secrets;
pub mod settings;
pub mod sim;
pub mod specs;
pub mod spoken;
pub mod standstill;
#[cfg(test)]
mod testing;
pub mod tickets;
pub mod transfer;
pub mod visible;
pub mod workplace;
