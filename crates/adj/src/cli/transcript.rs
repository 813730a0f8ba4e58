//! `adj peek` and `adj logs`: what agents said and did, by task or by worker.

use super::named::first_found;
use super::project::Project;
use super::text::{self, visible, visible_code};
use super::{Context, Failure, Globals};
use api::types::host::{Entry, TestRun, TestsQuery, Transcript, TranscriptQuery};
use api::types::{Cursor, Limit, PAGE_MAX};
use clap::Args;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How often the output of tests is looked at while it is followed.
const FOLLOW_TESTS: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj peek A -n 40
  adj peek c-abc1
  adj peek architect")]
pub struct Peek {
    /// Worker, task, channel or agent; `architect` is the architect
    #[arg(value_name = "NAME")]
    name: String,
    /// Number of lines
    #[arg(short = 'n', long, default_value_t = 20, value_name = "LINES", value_parser = clap::value_parser!(u16).range(1..=1000))]
    lines: u16,
}

pub fn peek(command: &Peek, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let query = TranscriptQuery { limit: Some(Limit(command.lines.into())), ..TranscriptQuery::default() };
    let (_, Transcript { items: entries, .. }) = transcript(&project, Some(&command.name), None, &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&entries))?);
    }
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

/// The first page, and where the next ones are: of the worker, task, channel or agent of that name, of a whole channel or of
/// one agent in it.
fn transcript(
    project: &Project,
    name: Option<&str>,
    channel: Option<&str>,
    query: &TranscriptQuery,
) -> Result<(String, Transcript), Failure> {
    let ask = |path: String| project.get_with(&path, query).map(|page| (path, page));
    let name = match (channel, name) {
        (Some(channel), None) => return ask(format!("/channels/{channel}/transcript")),
        (Some(channel), Some(agent)) => {
            return ask(format!("/channels/{channel}/members/{agent}/transcript"));
        }
        (None, Some("architect")) => return ask("/architect/transcript".to_owned()),
        (None, name) => name.unwrap_or_default(),
    };
    let kinds = ["workers", "tasks", "channels", "agents"];
    first_found(name, "worker, task, channel or agent", &kinds, |kind| {
        ask(format!("/{kind}/{name}/transcript"))
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj logs c-abc1          all steps of a task, by all its workers
  adj logs A -f
  adj logs A --raw > transcript.jsonl
  adj logs c-abc1 --tests -f
  adj logs architect
  adj logs anna --channel design     anna's turns in the channel design

With --json and -f, each line is one JSON document.")]
pub struct Logs {
    /// Worker, task, channel or agent, removed workers too; `architect` is the architect
    #[arg(value_name = "NAME", required_unless_present = "channel")]
    name: Option<String>,
    /// Show the turns of agents in a channel; with NAME, those of one agent
    #[arg(long, value_name = "CHANNEL", conflicts_with_all = ["tests", "hooks"])]
    channel: Option<String>,
    /// Follow new entries until no agent works on it; with --tests, until the test run ends
    #[arg(long, short)]
    follow: bool,
    /// Print the unchanged output of the agent's program
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print the output of the task's last test run
    #[arg(long, conflicts_with = "raw")]
    tests: bool,
    /// Print the output of the task's hooks
    #[arg(long, conflicts_with_all = ["raw", "follow", "tests"])]
    hooks: bool,
}

/// What the tests or hooks of a task printed.
fn tests(project: &Project, command: &Logs, context: Context) -> Result<(), Failure> {
    let task = super::named::task(project, command.name.as_deref().unwrap_or_default())?;
    let path = format!("/tasks/{}/tests", task.line.id);
    let query = TestsQuery { hooks: command.hooks, ..TestsQuery::default() };
    let mut before: Option<TestRun> = None;
    loop {
        let runs: Vec<TestRun> = project.get_all(&path, &query)?;
        let last = runs.last().filter(|_| command.follow).cloned();
        let is_running = last.as_ref().is_some_and(|run| run.ended.is_none());
        if context.globals.json && !is_running {
            return Ok(writeln!(context.out, "{}", text::json(&runs))?);
        }
        if runs.is_empty() && !context.globals.quiet {
            let what = if command.hooks { "no hook was run for it" } else { "no tests were run for it" };
            return Ok(writeln!(context.out, "{what}, or the output is gone")?);
        }
        for run in runs.iter().filter(|_| !context.globals.json) {
            test_run(run, before.as_ref(), is_running, &context.globals, context.out)?;
        }
        if !is_running {
            return Ok(());
        }
        context.out.flush()?;
        before = last;
        // Nobody tells when tests have printed something.
        std::thread::sleep(FOLLOW_TESTS);
    }
}

/// One run of tests, or what it has printed since it was shown before.
fn test_run(
    run: &TestRun,
    before: Option<&TestRun>,
    is_running: bool,
    globals: &Globals,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let before = before.filter(|before| before.effect == run.effect);
    if before.is_none() && !globals.quiet {
        let ended = run.ended.as_deref().unwrap_or("still running");
        let hook = run.hook.as_ref().map(|hook| format!("hook {hook}: ")).unwrap_or_default();
        let (line, folder) = (visible(&run.command), visible(&run.folder));
        eprintln!("{}{line} ({ended}) in {folder}", visible(&hook));
    }
    let output = whole_lines(&run.output, is_running);
    let shown = before.map_or("", |before| whole_lines(&before.output, true));
    for line in added(shown, output).lines() {
        writeln!(out, "{}", visible_code(line))?;
    }
    if let (Some(_), Some(ended), false) = (before, &run.ended, globals.quiet) {
        eprintln!("{}", visible(ended));
    }
    Ok(())
}

/// The output without the line that is still being written.
fn whole_lines(output: &str, is_running: bool) -> &str {
    match output.rfind('\n') {
        Some(end) if is_running => &output[..=end],
        None if is_running => "",
        _ => output,
    }
}

/// The part of the output that was not there before. One that has become so long that it was cut in the middle is
/// shown from its last line of before on, or whole if that was cut out.
fn added<'a>(before: &str, now: &'a str) -> &'a str {
    if let Some(rest) = now.strip_prefix(before) {
        return rest;
    }
    let last_line = before.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
    now.rfind(&format!("\n{last_line}\n")).map_or(now, |at| &now[at + last_line.len() + 2..])
}

pub fn logs(command: &Logs, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    if command.tests || command.hooks {
        return tests(&project, command, context);
    }
    let harmless = std::io::stdout().is_terminal();
    let mut query = TranscriptQuery {
        after: Some(Cursor(0)),
        limit: Some(Limit(PAGE_MAX)),
        raw: command.raw,
        wait: false,
    };
    let mut all = Vec::new();
    let mut path: Option<String> = None;
    loop {
        let page: Transcript = match &path {
            Some(path) => project.get_with(path, &query)?,
            None => {
                let (name, channel) = (command.name.as_deref(), command.channel.as_deref());
                let (found, page) = transcript(&project, name, channel, &query)?;
                path = Some(found);
                page
            }
        };
        let over = page.items.is_empty() && page.resting;
        for entry in page.items {
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
        if let Some(next) = page.next.and_then(|next| next.parse().ok()) {
            query.after = Some(Cursor(next));
        }
        if page.more {
            continue;
        }
        if !command.follow || over {
            break;
        }
        context.out.flush()?;
        query.wait = true;
    }
    if context.globals.json && !command.follow {
        writeln!(context.out, "{}", text::json(&all))?;
    }
    Ok(())
}

/// As it was written, for a file or a program. A terminal would do what it says, so there it is shown as text.
fn raw(entry: &Entry, harmless: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let line = entry.raw.as_deref().unwrap_or_default();
    if harmless {
        writeln!(out, "{}", visible(line))?
    } else {
        writeln!(out, "{line}")?
    }
    Ok(())
}

/// `12:03:11 call     Bash(make test)`; further lines are under the first.
fn lines_of(entry: &Entry) -> Vec<String> {
    let at = entry.at.as_deref().and_then(text::clock_of).unwrap_or_default();
    let kind = visible(&entry.kind);
    let mut lines = entry.text.lines().map(visible_code);
    let first = format!("{at:8} {kind:<8} {}", lines.next().unwrap_or_default());
    let rest = lines.map(|line| format!("{:17} {line}", ""));
    std::iter::once(first.trim_end().to_owned()).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_followed_is_shown_once() {
        for (before, now, expected) in [
            ("", "a\nb\n", "a\nb\n"),
            ("a\n", "a\nb\n", "b\n"),
            ("a\nb\n", "a\nb\n", ""),
            // Cut in the middle since.
            ("a\nb\nc\n", "a\n[2 lines are left out]\nc\nd\n", "d\n"),
            ("a\nb\nc\n", "a\n[9 lines are left out]\nx\n", "a\n[9 lines are left out]\nx\n"),
        ] {
            assert_eq!(added(before, now), expected, "{before:?}, {now:?}");
        }
        let lines = [("a\nb", true, "a\n"), ("a\nb", false, "a\nb"), ("b", true, ""), ("", false, "")];
        for (output, is_running, expected) in lines {
            assert_eq!(whole_lines(output, is_running), expected, "{output:?}");
        }
    }

    #[test]
    fn an_entry_is_shown_with_its_time_and_as_text() {
        let entry = |at: Option<&str>, kind: &str, text: &str| Entry {
            cursor: 1,
            at: at.map(str::to_owned),
            kind: kind.to_owned(),
            text: text.to_owned(),
            raw: None,
        };
        let call = entry(Some("2026-01-02T03:04:05.678Z"), "call", "Bash(a\u{1b}[2J)\n  b");
        assert_eq!(lines_of(&call), ["03:04:05 call     Bash(a\\u{1b}[2J)", "                    b"]);
        assert_eq!(lines_of(&entry(None, "end", "")), ["         end"]);
    }
}
