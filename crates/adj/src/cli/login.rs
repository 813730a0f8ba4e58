//! `adj login AGENT`: the login of an agent program, kept for the user alone.

use std::io::{BufRead, IsTerminal, Write};
use std::process::Command;

use super::project::Project;
use super::{Context, Failure};
use api::Exit;
use clap::Args;
use project::credentials;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adj login claude                 runs `claude setup-token`, then asks for it
  adj login codex --with-token < key.txt
  adj login claude --remove

`adj` stores the login in ~/.config/adjutant/credentials, which only you can read. The sandbox hides that \
directory from agents and tests. An agent gets only the variable that its `env` names. A variable \
that is set in your shell has precedence.")]
pub struct Login {
    /// Agent program: claude or codex
    agent: String,
    /// Read the token from standard input
    #[arg(long, conflicts_with = "remove")]
    with_token: bool,
    /// Remove the stored login
    #[arg(long)]
    remove: bool,
}

pub fn run(command: &Login, context: Context) -> Result<(), Failure> {
    let (name, login) = login_of(&command.agent)?;
    let variable = login.variable();
    if command.remove {
        let removed =
            credentials::forget(variable).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let text = if removed { "removed the login of" } else { "no login is stored for" };
        return Ok(writeln!(context.out, "{text} {name}")?);
    }
    let piped = command.with_token || !std::io::stdin().is_terminal();
    if let Some([program, arguments @ ..]) = login.maker().filter(|_| !piped) {
        let shown = format!("{program} {}", arguments.join(" "));
        eprintln!("{shown} opens your browser and prints a token:");
        let ended = Command::new(program).args(arguments).status();
        let ended = ended.map_err(|error| {
            Failure::new(Exit::Unreachable, format!("`{shown}` cannot be run: {error}"))
                .hint(format!("install {name}, or read a token from standard input with `--with-token`"))
        })?;
        if !ended.success() {
            return Err(Failure::new(Exit::Failed, format!("`{shown}` failed ({ended})")));
        }
    }
    let token = if piped { line(&mut std::io::stdin().lock())? } else { typed(variable)? };
    let token = token.trim();
    if token.is_empty() || token.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(Failure::new(Exit::Usage, "this is not a token: it is empty or has blanks in it")
            .hint("paste the token alone, on one line"));
    }
    let file =
        credentials::keep(variable, token).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    writeln!(context.out, "stored {variable} in {}", file.display())?;
    if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
        Project::hint(&context.globals, &format!("{variable} is set in this shell and has precedence"));
    }
    Ok(())
}

/// The program by its word, or by the name of an agent of this project.
fn login_of(named: &str) -> Result<(&'static str, &'static dyn agents::Login), Failure> {
    let with_login = || agents::ADAPTERS.iter().copied().filter(|adapter| adapter.login().is_some());
    let found = with_login().find(|adapter| adapter.name() == named);
    found.and_then(|adapter| Some((adapter.name(), adapter.login()?))).ok_or_else(|| {
        let known: Vec<&str> = with_login().map(|adapter| adapter.name()).collect();
        Failure::new(Exit::NotFound, format!("there is no agent program `{}`", super::text::visible(named)))
            .hint(format!("these have a login: {}", known.join(", ")))
    })
}

fn line(input: &mut dyn BufRead) -> Result<String, Failure> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line)
}

/// What is typed is not shown.
fn typed(variable: &str) -> Result<String, Failure> {
    use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
    eprint!("Paste the token ({variable}): ");
    std::io::stderr().flush()?;
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin).map_err(std::io::Error::from)?;
    let mut silent = before.clone();
    silent.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSANOW, &silent).map_err(std::io::Error::from)?;
    let typed = line(&mut stdin.lock());
    let back = tcsetattr(&stdin, SetArg::TCSANOW, &before).map_err(std::io::Error::from);
    eprintln!();
    back?;
    typed
}
