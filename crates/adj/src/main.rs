//! `adj`: the command line of Adjutant. It translates; it decides nothing.

mod api;
mod cli;
mod mcp;
mod outgoing;
mod real_host;
mod server;
mod webhooks;

fn main() -> std::process::ExitCode {
    cli::main()
}
