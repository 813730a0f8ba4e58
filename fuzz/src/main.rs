//! Throws odd input at what reads input from outside: `adjutant-fuzz SECONDS [SEED]`. Each target gets that time.
//!
//! A failure is printed with its seed, and ends the program with 1.

mod agent_output;
mod command_lines;
mod random;

use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let time = Duration::from_secs(seconds);
    command_lines::run(time, seed);
    agent_output::run(time, seed);
}
