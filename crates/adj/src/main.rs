//! `adj`: the command line of Adjutant. It translates; it decides nothing.

mod api;
mod cli;
mod log_file;
mod mcp;
mod outgoing;
mod port_holder;
mod real_host;
mod server;
mod webhooks;

fn main() -> std::process::ExitCode {
    cli::main()
}
