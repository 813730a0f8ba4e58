//! `adj`: the command line of Adjutant. It translates; it decides nothing.

mod api;
mod cli;
mod mcp;
mod real_host;
mod server;

fn main() -> std::process::ExitCode {
    cli::main()
}
