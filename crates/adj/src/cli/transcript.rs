//! `adj peek` and `adj logs`: what a worker's agent said and did.

use super::project::Project;
use super::text::{self, cell, visible, visible_code};
use super::{Context, Failure};
use clap::Args;
use serde_json::Value;
use std::io::{IsTerminal, Write};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj peek A -n 40")]
pub struct Peek {
    /// The worker
    name: String,
    /// How much of the end to show
    #[arg(short = 'n', long, default_value_t = 20, value_name = "LINES", value_parser = clap::value_parser!(u16).range(1..=1000))]
    lines: u16,
}

pub fn peek(command: &Peek, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let lines = command.lines.to_string();
    let path = format!("/workers/{}/transcript", command.name);
    let mut page = project.get(&path, &[("limit", lines.as_str())])?;
    let entries = page["items"].take();
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&entries))?);
    }
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing was said yet")?);
    }
    let mut shown: Vec<String> = entries.iter().flat_map(lines_of).collect();
    let surplus = shown.len().saturating_sub(usize::from(command.lines));
    for line in shown.drain(surplus..) {
        writeln!(context.out, "{line}")?;
    }
    Ok(())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj logs A -f
  adj logs A --raw > transcript.jsonl

With --json and -f, each entry is a document in a line of its own.")]
pub struct Logs {
    /// The worker
    name: String,
    /// Go on as it grows, until the worker has nothing in hand
    #[arg(long, short)]
    follow: bool,
    /// The lines that the agent's program wrote, as they were
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

pub fn logs(command: &Logs, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = format!("/workers/{}/transcript", command.name);
    let harmless = std::io::stdout().is_terminal();
    let (mut after, mut wait) = ("0".to_owned(), false);
    let mut all = Vec::new();
    loop {
        let mut query = vec![("after", after.as_str()), ("limit", "1000")];
        query.extend(wait.then_some(("wait", "1")));
        let mut page = project.get(&path, &query)?;
        let Value::Array(entries) = page["items"].take() else { break };
        let over = entries.is_empty() && page["resting"] == true;
        for entry in entries {
            match (context.globals.json, command.follow) {
                (true, false) => all.push(entry),
                (true, true) => writeln!(context.out, "{}", text::json(&entry))?,
                (false, _) if command.raw => raw(&entry, harmless, context.out)?,
                (false, _) => {
                    for line in lines_of(&entry) {
                        writeln!(context.out, "{line}")?;
                    }
                }
            }
        }
        if let Value::String(next) = page["next"].take() {
            after = next;
        }
        if page["more"] == true {
            continue;
        }
        if !command.follow || over {
            break;
        }
        context.out.flush()?;
        wait = true;
    }
    if context.globals.json && !command.follow {
        writeln!(context.out, "{}", text::json(&Value::Array(all)))?;
    }
    Ok(())
}

/// As it was written, for a file or a program. A terminal would do what it says, so there it is shown as text.
fn raw(entry: &Value, harmless: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let line = entry["raw"].as_str().or(entry["text"].as_str()).unwrap_or_default();
    if harmless {
        writeln!(out, "{}", visible(line))?
    } else {
        writeln!(out, "{line}")?
    }
    Ok(())
}

/// `12:03:11 call     Bash(make test)`; further lines are under the first.
fn lines_of(entry: &Value) -> Vec<String> {
    let at = cell(&entry["at"]);
    let at = at.get(11..19).unwrap_or("");
    let kind = visible(&cell(&entry["kind"]));
    let text = entry["text"].as_str().unwrap_or_default();
    let mut lines = text.lines().map(visible_code);
    let first = format!("{at:8} {kind:<8} {}", lines.next().unwrap_or_default());
    let rest = lines.map(|line| format!("{:17} {line}", ""));
    std::iter::once(first.trim_end().to_owned()).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_is_shown_with_its_time_and_as_text() {
        let entry = json!({
            "cursor": 1, "at": "2026-01-02T03:04:05.678Z", "kind": "call", "text": "Bash(a\u{1b}[2J)\n  b",
        });
        assert_eq!(lines_of(&entry), ["03:04:05 call     Bash(a\\u{1b}[2J)", "                    b"]);
        assert_eq!(lines_of(&json!({"kind": "end"})), ["         end"]);
    }
}
