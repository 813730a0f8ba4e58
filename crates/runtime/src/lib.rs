//! Everything that touches the world: the log, the owner that runs the kernel on it, git, agents and their keepers,
//! tickets, and the simulator.

pub mod agents;
pub mod crash;
pub mod git;
pub mod keeper;
pub mod log;
pub mod owner;
pub mod prompts;
pub mod sandbox;
pub mod settings;
pub mod sim;
#[cfg(test)]
mod testing;
pub mod tickets;
pub mod transfer;
pub mod workplace;
