//! `adj`: the command line of Adjutant. It translates; it decides nothing.

mod api;
mod cli;
mod outside;
mod server;

fn main() -> std::process::ExitCode {
    cli::main()
}
