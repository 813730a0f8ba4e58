//! The end of a program as text that follows its name; and a failed effect, with the text of its error.

use std::fmt::Display;
use std::time::Duration;

use kernel::command::Happened;

use process::keeper::{Exit, Reason};

/// An effect that was not carried out, and says nothing of what it was about. Here an error becomes text.
pub fn failed(error: impl Display) -> Happened {
    Happened::Failed { error: error.to_string() }
}

/// Which limit a program passed, in words that follow its name; nothing where it passed none.
pub fn passed(reason: &Reason) -> Option<String> {
    match reason {
        Reason::Processes(most) => {
            Some(format!("had more than limits.processes ({most}) processes and threads at once"))
        }
        Reason::Memory(most) => {
            let size = match *most {
                gigabytes if gigabytes >= 10_000_000_000 => format!("{} GB", gigabytes / 1_000_000_000),
                megabytes => format!("{} MB", megabytes / 1_000_000),
            };
            Some(format!("used more memory than limits.memory ({size})"))
        }
        _ => None,
    }
}

/// How a command ended, in words that follow its name.
pub fn how_it_ended(exit: &Exit, limit: Duration) -> String {
    match (&exit.reason, exit.code, exit.signal) {
        (Reason::TimedOut, ..) => format!("took longer than {} s and was ended", limit.as_secs()),
        (Reason::OutputLimit, ..) => "printed more than limits.output_bytes and was ended".to_owned(),
        (reason @ (Reason::Processes(_) | Reason::Memory(_)), ..) => {
            format!("{} and was ended", passed(reason).unwrap_or_default())
        }
        (Reason::CouldNotStart(why), ..) => format!("could not be started: {why}"),
        (_, Some(code), _) => format!("failed with exit code {code}"),
        (_, _, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended in an unknown way".to_owned(),
    }
}
