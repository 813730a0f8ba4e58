//! What a task's tree needs around it before an agent can work there: its tests, its ignored files, an environment and
//! ports.

mod environment;
mod glob;
mod output;
mod ports;
pub mod tests;
mod tree;

pub use environment::{Given, NETWORK, environment};
pub use output::{failing_part, red_by};
pub use ports::{Ports, PortsError};
pub use tree::{Placed, SetUp, SetUpError, set_up, unmet};
