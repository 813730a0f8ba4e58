//! Processes that Adjutant starts: each runs under a keeper that outlives the program that asked for it, inside a sandbox.
//! It may know the operating system, and neither the kernel nor what the process is for. Begin with `keeper/mod.rs`.

pub mod keeper;
pub mod sandbox;
