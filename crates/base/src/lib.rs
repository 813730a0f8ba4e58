//! What every crate that touches the world shares: durable files, the clock, crash points, secrets in texts, and texts made
//! safe to print. It may know the operating system and the words of the kernel, and no other crate of Adjutant. Begin with
//! `files.rs`.

pub mod clock;
pub mod crash;
pub mod files;
pub mod hex;
pub mod secrets;
pub mod visible;
