//! What a task's tree needs around it before an agent can work there: its tests, its ignored files, an environment and
//! ports.

pub mod tests;
