//! A project on this machine: its settings, the location of its files, the content of a working tree, and the prompts of
//! agents. It may know git, processes and agent programs, and not the fleet that uses them. Begin with `layout.rs` and
//! `settings/mod.rs`.

pub mod credentials;
pub mod layout;
pub mod program;
pub mod prompts;
pub mod registry;
pub mod settings;
pub mod workplace;
