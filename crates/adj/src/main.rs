//! `adj`: the command line of Adjutant. It translates; it decides nothing.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
