//! `adj watch`: what runs tell their readers, as it comes.

use std::collections::BTreeMap;

use super::project::Project;
use super::runs::live;
use super::terminal;
use super::text::{self, visible};
use super::{Context, Failure};
use api::types::fleet::Fleet;
use api::types::history::{EventsQuery, Item, Query, Record};
use api::types::run::Run;
use api::types::{Cursor, Limit, PAGE_MAX, Page};
use clap::Args;
use kernel::Event;
use machines::run::StreamEvent;
use serde_json::Value;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj watch
  adj watch t-1
  adj watch t-1.2 --json | jq -c 'select(.type == \"tool:start\")'

Without a name it follows all runs from now on, until Ctrl-C. With a name it prints the run's past events first, and exits \
when the run ends. `--json` prints one document per line, the same as the run's durable stream.")]
pub struct Watch {
    /// Run, or the task or worker whose run it is
    #[arg(value_name = "RUN|TASK|WORKER")]
    name: Option<String>,
}

pub fn watch(command: &Watch, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let fleet: Fleet = project.get("/fleet")?;
    let mut after = last_record(&project)?;
    let run = command.name.as_deref().map(|name| live(&project, name)).transpose()?;
    if let Some(run) = &run {
        let past = Query { all: true, ..Query::default() };
        let past: Vec<Item> = project.get_all(&format!("/runs/{}/history", run.id), &past)?;
        for item in past {
            if let Item::Record(record) = item {
                after = after.max(record.seq);
                tell(&record, Some(run), context.globals.json, context.out)?;
            }
        }
    }
    if fleet.pid.is_none() {
        Project::hint(
            &context.globals,
            "no process runs here; nothing more comes before `adj run` or `adj serve`",
        );
        return Ok(());
    }
    loop {
        if let Some(run) = &run
            && is_over(&project.get(&format!("/runs/{}", run.id))?)
        {
            return Ok(());
        }
        let query = EventsQuery { after: Some(Cursor(after)), limit: Some(Limit(PAGE_MAX)), wait: true };
        let page: Page<Record> = project.get_with("/events", &query)?;
        for record in &page.items {
            after = record.seq;
            tell(record, run.as_ref(), context.globals.json, context.out)?;
        }
        context.out.flush()?;
    }
}

/// Where the log ends now.
fn last_record(project: &Project) -> Result<u64, Failure> {
    #[derive(serde::Deserialize)]
    struct End {
        seq: u64,
    }
    Ok(project.get::<End>("/board")?.seq)
}

/// Nothing more comes of a run that could be begun anew.
fn is_over(run: &Run) -> bool {
    run.meta.can_start
}

/// What a record tells the readers of this run, or of any.
fn tell(record: &Record, of: Option<&Run>, json: bool, out: &mut dyn std::io::Write) -> Result<(), Failure> {
    let Ok(event) = Event::decode(&record.kind, &record.data.to_string()) else { return Ok(()) };
    for (run, said) in kernel::published::of(&event) {
        if of.is_some_and(|of| of.id != run.as_str()) {
            continue;
        }
        match (json, of) {
            (true, Some(_)) => writeln!(out, "{}", text::json(&said))?,
            (true, None) => writeln!(out, "{}", text::json(&Told { run: run.as_str(), said: &said }))?,
            (false, of) => {
                let run = if of.is_none() { format!("{run}  ") } else { String::new() };
                writeln!(out, "{}  {run}{}", clock(&record.at), words(&said))?;
            }
        }
    }
    Ok(())
}

/// An event of one of several runs.
#[derive(serde::Serialize)]
struct Told<'t> {
    run: &'t str,
    #[serde(flatten)]
    said: &'t StreamEvent,
}

/// The event in one line: its name, and what it brings.
fn words(said: &StreamEvent) -> String {
    const LETTERS_MAX: usize = 100;
    let Ok(Value::Object(mut members)) = serde_json::to_value(said) else { return String::new() };
    let name =
        members.shift_remove("type").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let payload = match members.shift_remove("payload") {
        Some(Value::Object(payload)) => payload,
        _ => members,
    };
    let parts: BTreeMap<&String, String> = payload
        .iter()
        .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, text)| {
            let line: String = text.lines().next().unwrap_or_default().chars().take(LETTERS_MAX).collect();
            format!("{name}={}", visible(&line))
        })
        .collect();
    format!("{name:18} {}", parts.join("  "))
}

fn clock(at: &str) -> String {
    at.parse::<jiff::Timestamp>().map_or_else(|_| at.to_owned(), |at| terminal::clock(at.as_millisecond()))
}
