//! Everything that touches the world: the log, the owner that runs the kernel on it, and the simulator.

pub mod crash;
pub mod log;
pub mod owner;
pub mod sim;
pub mod transfer;
