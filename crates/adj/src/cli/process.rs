//! `adj internal …`: what `adj` runs as processes of its own. For no one else, so no help, page or completion has it.
//!
//! Looked at before everything else: a keeper starts in a few milliseconds and stays small by having nothing parsed.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// `None` if the command line is for people.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, internal, command, dir, rest @ ..] = arguments else { return None };
    if internal != "internal" {
        return None;
    }
    let dir = Path::new(dir);
    match (command.to_str()?, rest) {
        ("keep", []) => match process::keeper::main(dir, deny) {
            Ok(()) => Some(ExitCode::SUCCESS),
            Err(error) => {
                eprintln!("error: {error}");
                Some(ExitCode::FAILURE)
            }
        },
        ("exec", [keeper, report]) => {
            let (keeper, report) = (keeper.to_str()?.parse().ok()?, report.to_str()?.parse().ok()?);
            Some(ExitCode::from(process::keeper::exec(dir, keeper, report)))
        }
        ("enter", []) => {
            let why = process::keeper::enter(dir.to_str()?.parse().ok()?);
            eprintln!("error: {why}");
            // As shells say it.
            Some(ExitCode::from(127))
        }
        ("inside", [program, report, users]) => {
            let (file, program) = (dir.to_str()?.parse().ok()?, program.to_str()?.parse().ok()?);
            let report = report.to_str()?.parse().ok();
            Some(ExitCode::from(process::keeper::inside(file, program, report, Path::new(users))))
        }
        _ => None,
    }
}

/// The answer by which a question is denied, by the agent's adapter. In `lines`, for programs without a protocol of their own, a question is
/// a line `ask WHAT` and its denial the line `deny WHAT`.
fn deny(protocol: &str, line: &[u8]) -> Option<Vec<u8>> {
    match protocol {
        "lines" => Some([b"deny ", line.strip_prefix(b"ask ")?, b"\n"].concat()),
        _ => agents::deny(protocol, line),
    }
}
