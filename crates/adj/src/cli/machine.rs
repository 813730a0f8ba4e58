//! `adj machine`: the tables of the five machines, printed and tried. Nothing is stored and no project is needed.

use super::{Context, Failure};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use machines::Wire;
use machines::catalog::{self, Doc, Format, LINE_LENGTH_MAX};
use project::settings::nearest;
use serde::Serialize;
use std::io::{self, BufRead, Read};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the machines
    Ls,
    /// Print a machine's states and transitions
    Show {
        /// Machine: turn, worker, task, architect or run
        name: String,
        /// Output format: text table, Mermaid, Graphviz or JSON (same as --json)
        #[arg(long, value_name = "FORMAT", default_value = "table", ignore_case = true, value_parser = formats())]
        format: Format,
    },
    /// Read events as JSON lines and print the result of each
    #[command(after_help = STEP_HELP)]
    Step {
        /// Machine: turn, worker, task, architect or run
        name: String,
    },
}

const STEP_HELP: &str = "\
Each line of standard input is
  {\"state\": …, \"event\": …}
and gets one line of output:
  {\"ok\": true, \"state\": …, \"effects\": […]}
  {\"ok\": false, \"code\": …, \"message\": …, \"allowed\": […]}
A state can be its name alone. The command stores nothing.

Example:
  echo '{\"state\":\"working\",\"event\":{\"type\":\"kill\"}}' | adj machine step worker

The exit code is 0 if every line could be read, also if an event was refused. docs/machines describes the states and events.";

fn formats() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|format| format.name());
    PossibleValuesParser::new(names).try_map(|name| Format::read(&name).ok_or("not a format"))
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Ls => list(context),
        Command::Show { name, format } => {
            let format = if context.globals.json { Format::Json } else { format };
            let text = known(&name)?.print(format);
            Ok(context.out.write_all(text.as_bytes())?)
        }
        Command::Step { name } => step(known(&name)?.machine, io::stdin().lock(), context),
    }
}

fn known(name: &str) -> Result<Doc, Failure> {
    catalog::find(name).ok_or_else(|| {
        let names = catalog::names();
        let hint = match nearest(name, names.iter().copied()) {
            Some(name) => format!("did you mean `{name}`? there are {}", names.join(", ")),
            None => format!("there are {}", names.join(", ")),
        };
        Failure::not_found(format!("there is no machine `{}`", name.escape_debug())).hint(hint)
    })
}

/// A machine in `adj machine ls --json`.
#[derive(Serialize)]
struct Line {
    machine: &'static str,
    seed: &'static str,
    instance: &'static str,
    answers: &'static str,
    initial: &'static str,
    states: Vec<&'static str>,
    rows: usize,
}

fn list(context: Context) -> Result<(), Failure> {
    let machines = catalog::all();
    if context.globals.json {
        let list: Vec<_> = machines
            .iter()
            .map(|doc| {
                let states: Vec<_> = doc.states.iter().map(|state| state.name).collect();
                Line {
                    machine: doc.machine,
                    seed: doc.seed,
                    instance: doc.instance,
                    answers: doc.answers,
                    initial: doc.initial,
                    states,
                    rows: doc.rows.len(),
                }
            })
            .collect();
        return Ok(writeln!(context.out, "{}", super::text::json(&list))?);
    }
    writeln!(context.out, "{:<10} {:<32} {:<42} STATES  ROWS", "MACHINE", "ONE PER", "ANSWERS")?;
    for doc in machines {
        let (states, rows) = (doc.states.len(), doc.rows.len());
        writeln!(
            context.out,
            "{:<10} {:<32} {:<42} {states:>6}  {rows:>4}",
            doc.machine, doc.instance, doc.answers
        )?;
    }
    Ok(())
}

fn step(machine: &str, mut input: impl BufRead, context: Context) -> Result<(), Failure> {
    let mut line = Vec::new();
    // One byte more than is read, so that a line that is too long is known to be.
    while input.by_ref().take(LINE_LENGTH_MAX as u64 + 1).read_until(b'\n', &mut line)? > 0 {
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LINE_LENGTH_MAX {
            input.skip_until(b'\n')?;
        }
        if !line.trim_ascii().is_empty() {
            writeln!(context.out, "{}", catalog::step_bytes(machine, &line))?;
            // The other end may wait for this answer before it writes the next line.
            context.out.flush()?;
        }
        line.clear();
    }
    Ok(())
}
