//! Stand-ins that only our own tests start: agents that replay a file, and the server of the MCP suite. A release build has
//! none of them. `debug_assertions` tells the two apart, so that no feature has to be set for tests.

use std::io;
use std::path::PathBuf;

use super::super::{Context, Exit, Failure, set_variable};
use super::end;
use agents::{claude, codex};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum StandIn {
    /// Serve what the public conformance suite of MCP asks for, at a free port
    McpFixture,
    /// Be Claude Code: say what a file of replies says, and make the calls that are allowed
    Replay {
        /// A list of steps, each a list of replies, as JSON
        replies: PathBuf,
        /// The flags of the program that it stands in for
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Be Codex: the same in its language
    ReplayCodex {
        /// A list of steps, each a list of replies, as JSON
        replies: PathBuf,
        /// The flags of the program that it stands in for
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

pub fn run(fixture: StandIn, context: Context) -> Result<(), Failure> {
    let folder = |variable: &str| {
        set_variable(variable)
            .map(PathBuf::from)
            .ok_or_else(|| Failure::new(Exit::Usage, format!("{variable} is not set")))
    };
    let (input, output) = (io::stdin().lock(), &mut *context.out);
    let code = match fixture {
        StandIn::McpFixture => return server::mcp::fixture::serve(output),
        StandIn::Replay { replies, flags } => {
            claude::replay::replay(&replies, &flags, &folder("CLAUDE_CONFIG_DIR")?, input, output)
        }
        StandIn::ReplayCodex { replies, flags } => {
            codex::replay::replay(&replies, &flags, &folder("CODEX_HOME")?, input, output)
        }
    };
    end(context, code.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?)
}
