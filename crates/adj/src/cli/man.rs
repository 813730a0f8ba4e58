//! `adj man`: the manual page, and one for each command.

use super::{Cli, Context, Failure};
use clap::{Args, Command, CommandFactory};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adj man machine step | man -l -
  adj man --all ~/.local/share/man/man1      then `man adj-init`")]
pub struct Man {
    /// Command, such as `machine step` [default: adj itself]
    command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

pub fn run(man: &Man, context: Context) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(folder) = &man.all {
        std::fs::create_dir_all(folder)?;
        let pages = write_all(&command, folder)?;
        if !context.globals.quiet {
            writeln!(context.out, "{pages} pages written to {}", folder.display())?;
        }
        return Ok(());
    }
    for name in &man.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| {
            Failure::not_found(format!("there is no command `{}`", man.command.join(" ").escape_debug()))
                .hint("`adj --help` lists the commands")
        })?;
    }
    Ok(context.out.write_all(&page(&command)?)?)
}

/// A page is named as it is looked up: `man adj-machine-step`.
fn page_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or("adj").replace(' ', "-")
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone().name(page_name(command))).render(&mut page)?;
    Ok(page)
}

/// Writes the page of a command and of all below it, except for those that `--help` does not list. Returns how many.
fn write_all(command: &Command, folder: &Path) -> std::io::Result<usize> {
    std::fs::write(folder.join(format!("{}.1", page_name(command))), page(command)?)?;
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        pages += write_all(below, folder)?;
    }
    Ok(pages)
}
