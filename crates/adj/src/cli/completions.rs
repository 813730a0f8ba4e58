//! `adj completions`: what a shell needs to complete our commands.

use super::{Cli, Context, Failure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "\
To install:
  bash  adj completions bash > ~/.local/share/bash-completion/completions/adj
  zsh   adj completions zsh > \"${fpath[1]}/_adj\"
  fish  adj completions fish > ~/.config/fish/completions/adj.fish")]
pub struct Completions {
    /// Shell
    #[arg(value_parser = shells())]
    shell: Shell,
}

fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

/// Without what is for our own tools: the generators do not leave it out by themselves.
fn seen_by_people(all: &clap::Command) -> clap::Command {
    let seen = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let shown = clap::Command::new("adj").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    shown.args(all.get_arguments().cloned()).subcommands(seen)
}

pub fn run(command: &Completions, context: Context) -> Result<(), Failure> {
    // Through memory: the generator ends the process by a panic where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut seen_by_people(&Cli::command()), "adj", &mut script);
    Ok(context.out.write_all(&script)?)
}
