//! `adj man`: the manual page, and one for each command.

use super::{Cli, Context, Failure};
use clap::{Args, CommandFactory};

#[derive(Debug, Args)]
#[command(after_help = "\
To install:
  adj man > ~/.local/share/man/man1/adj.1
  adj man machine step | man -l -")]
pub struct Man {
    /// Command, such as `machine step` [default: adj itself]
    command: Vec<String>,
}

pub fn run(man: &Man, context: Context) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    for name in &man.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| {
            Failure::not_found(format!("there is no command `{}`", man.command.join(" ").escape_debug()))
                .hint("`adj --help` lists the commands")
        })?;
    }
    // A page is named as it is looked up: `man adj-machine-step`.
    let name = command.get_bin_name().unwrap_or("adj").replace(' ', "-");
    let mut page = Vec::new();
    clap_mangen::Man::new(command.name(name)).render(&mut page)?;
    Ok(context.out.write_all(&page)?)
}
