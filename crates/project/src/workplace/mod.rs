//! The needs of a task's tree before an agent can work there: packages, tests, ignored files, an
//! environment and ports.

pub mod commit_hooks;
pub mod declared;
pub mod ecosystem;
mod environment;
mod glob;
mod leads_back;
mod output;
mod ports;
pub mod system_ports;
mod tree;

pub use environment::{Given, NETWORK, environment};
pub use leads_back::{LeadBack, LeadKind, fix, installs};
pub use output::{failing_part, red_by};
pub use ports::{PortLeases, PortsError};
pub use tree::{Checkout, INCLUDE_FILE, Placed, SetUp, SetUpError, leads_back, set_up, unmet};
