//! Runs: what is known of each, what agents outside report of theirs, and the audit of their calls.

use super::types::run::{ListQuery, Open, Piece, Reported, Run, Sent, ToolCall, Written};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, field, member, time, view, wrong};
use kernel::event::ToolAudited;
use kernel::words::ActorName;
use kernel::world::TOOL_NOT_ALLOWED;
use kernel::{Actor, Ask, Event, Reply};
use log::Record;
use log::owner::Handle;
use log::spoken::{self, Words};
use machines::names::{AgentName, EffectId, RunId};
use machines::run::ToolStatus;
use serde_json::{Map, Value};
use smol_str::SmolStr;
use std::path::Path;
use std::sync::PoisonError;

pub fn list(call: &Call, (): (), query: ListQuery, _: Nothing) -> Result<Page<Run>, Problem> {
    let world = call.world();
    let task = query.task.as_deref();
    let wanted = world.runs.values().filter(|run| task.is_none_or(|task| run.task.as_str() == task));
    let wanted = wanted.filter(|run| world.task(&run.task).is_none_or(|task| call.sees(&world, task)));
    Ok(Page::made_of(wanted, query.after, query.limit, |run| view::run(&world, run)))
}

pub fn show(call: &Call, id: RunId, _: Nothing, _: Nothing) -> Result<Run, Problem> {
    let world = call.world();
    let run = world.run(&id).ok_or_else(|| no_run(&id))?;
    Ok(view::run(&world, run))
}

pub fn no_run(id: &RunId) -> Problem {
    Problem::not_found(format!("there is no run `{id}`")).hint("`adj runs` lists the runs")
}

/// An agent opens a run of its own; where a person names an agent, a worker of that agent begins one.
pub fn open(call: &Call, (): (), _: Nothing, open: Open) -> Result<Reported, Problem> {
    let Open { task, agent, prompt, options } = open;
    let task = field("task", &task)?;
    let agent: Option<AgentName> = agent.map(|agent| field("agent", &agent)).transpose()?;
    let own = |agent: &AgentName| matches!(&call.request.actor, Actor::Agent { name, .. } if name == agent);
    if let Some(agent) = agent.filter(|agent| !own(agent)) {
        if options.is_some() || !prompt.is_empty() {
            let message = "a worker's run takes its prompt and limits from the task and the settings";
            return Err(wrong(if options.is_some() { "options" } else { "prompt" }, message.to_owned()));
        }
        let reply = call.submit(Ask::StartRun { agent, task })?;
        return reported(call, reply);
    }
    let options = options.map(|options| machines::run::Options {
        // What no number of turns is, is none that a run may have: the machine says which are.
        max_turns: options.max_turns.map(|turns| u32::try_from(turns).unwrap_or(0)),
        allowed_tools: options.allowed_tools.map(|tools| tools.into_iter().map(SmolStr::from).collect()),
        model: options.model,
        temperature: options.temperature,
    });
    let reply = call.submit(Ask::OpenRun { task, prompt, options })?;
    reported(call, reply)
}

pub fn event(call: &Call, id: RunId, _: Nothing, Sent(event): Sent) -> Result<Reported, Problem> {
    let event = read(event)?;
    let reply = call.submit(Ask::RunEvent { run: id.clone(), event })?;
    // A START after the end begins another run, and the reply is of that.
    let named = reply.id.clone().unwrap_or_else(|| SmolStr::new(id.as_str()));
    reported(call, Reply { id: Some(named), ..reply })
}

/// What the agent of a run outside writes, as it comes. It is in the run's stream and in no turn yet.
pub fn tokens(call: &Call, id: RunId, _: Nothing, piece: Piece) -> Result<Written, Problem> {
    let world = call.world();
    let run = world.run(&id).ok_or_else(|| no_run(&id))?;
    let most = world.config.limits.text_bytes;
    if piece.text.is_empty() || piece.text.len() > most {
        return Err(wrong("text", format!("`text` must have 1 to {most} bytes")));
    }
    // A caller that may report the run's next turn may also report the text of that turn.
    let turn = run.machine.inner().current_turn.saturating_add(1);
    let (tool_calls, output, usage, marks) = (Vec::new(), Some(piece.text.clone()), None, Vec::new());
    let event = machines::run::Event::Step { turn, tool_calls, output, usage, marks };
    call.would(Ask::RunEvent { run: id.clone(), event })?;
    let folder = call.access.host.spoken().unwrap_or_default();
    call.access.project.write(&folder, &id, &piece.text)?;
    Ok(Written { run: id.to_string(), bytes: piece.text.len() as u64 })
}

/// All that one run can write piece by piece.
const WRITTEN_BYTES_MAX: u64 = 16 << 20;
/// The file of a run is opened by one request at a time, because opening it removes a half-written end.
static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());

pub fn write(handle: &Handle, folder: &Path, run: &RunId, text: &str) -> Result<(), Problem> {
    let failed = |error: std::io::Error| Problem::new(500, "IO", format!("it cannot be stored: {error}"));
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let written = std::fs::metadata(folder.join(run.as_str())).map_or(0, |file| file.len());
    if written + text.len() as u64 > WRITTEN_BYTES_MAX {
        let detail = format!("run `{run}` has streamed {WRITTEN_BYTES_MAX} bytes, which is the limit");
        return Err(Problem::new(409, "TOO_MUCH", detail).hint("report further output with its turns"));
    }
    let source = EffectId::new("outside").map_err(|error| Problem::bad(error.to_string()))?;
    let mut words = Words::open(folder, run, &source).map_err(failed)?;
    let piece = spoken::Piece { at: 0, text: text.to_owned() };
    handle.spoken().add(&mut words, &[piece], || handle.world()).map_err(failed)
}

/// An event as the machine takes it.
fn read(mut event: Map<String, Value>) -> Result<machines::run::Event, Problem> {
    ["turn", "turnCount", "maxTurns"].into_iter().for_each(|name| counted(&mut event, name));
    if let Some(Value::Object(options)) = event.get_mut("options") {
        counted(options, "maxTurns");
    }
    machines::run::check_members(&event).map_err(|error| {
        let message = format!("invalid event: {}", error.message);
        Problem::bad(message).errors(vec![error.into()])
    })?;
    let sent = machines::run::as_sent(Value::Object(event)).map_err(Problem::missing)?;
    serde_json::from_value(sent.clone()).or_else(|error| {
        // To JSON, `2.0` is a whole number like any other.
        let wrong = |_| Problem::bad(format!("invalid event: {error}"));
        serde_json::from_value(member::whole_numbers(sent)).map_err(wrong)
    })
}

/// A whole number that is no count is taken as the nearest one: the machine refuses that by its field.
fn counted(members: &mut Map<String, Value>, name: &str) {
    if let Some(number) = members.get(name).and_then(Value::as_i64) {
        members.insert(name.to_owned(), Value::from(number.clamp(0, i64::from(u32::MAX))));
    }
}

fn reported(call: &Call, reply: Reply) -> Result<Reported, Problem> {
    let id = field("id", &reply.id.unwrap_or_default())?;
    let run = show(call, id, Nothing {}, Nothing {})?;
    Ok(Reported { run, code: reply.code.map(String::from), message: reply.message })
}

/// The audit of a run's calls, one row for each, read from its stream of the log.
pub fn tools(call: &Call, id: RunId, paging: Paging, _: Nothing) -> Result<Page<ToolCall>, Problem> {
    let world = call.world();
    let run = world.run(&id).ok_or_else(|| no_run(&id))?;
    let mut rows: Vec<ToolCall> = Vec::new();
    for record in call.access.project.stream(&format!("run/{id}"))? {
        let Ok(Event::ToolAudited(audited)) = Event::decode(&record.kind, &record.data) else { continue };
        add(&mut rows, &record, audited, run);
    }
    Ok(paging.page(rows))
}

/// A call is told of when it is made and when it has ended. Who asks before its turn is reported may be refused first.
fn add(rows: &mut Vec<ToolCall>, record: &Record, audited: ToolAudited, run: &kernel::world::Run) {
    let made = matches!(audited.status, ToolStatus::Pending | ToolStatus::Running);
    let same = |row: &&mut ToolCall| {
        row.id == audited.call.as_str() && if made { row.input.is_none() } else { row.ended_at.is_none() }
    };
    if audited.began {
        let waits = |row: &&mut ToolCall| row.id == audited.call.as_str() && row.ended_at.is_none();
        if let Some(row) = rows.iter_mut().rev().find(waits) {
            row.status = audited.status;
        }
        return;
    }
    // An id that comes again is another call.
    let known = rows.iter_mut().rev().find(same);
    let row = match known {
        Some(row) => row,
        None => {
            // What an agent of the fleet does is told by what it prints.
            let actor = match ActorName::read(&record.actor) {
                Some(ActorName::System) => ActorName::SystemFor(run.agent.as_str()).to_string(),
                _ => record.actor.clone(),
            };
            rows.push(ToolCall {
                id: audited.call.to_string(),
                run: run.id.to_string(),
                task: run.task.to_string(),
                agent: run.agent.to_string(),
                tool: audited.tool.to_string(),
                turn: audited.turn,
                status: audited.status,
                code: None,
                input: None,
                output: None,
                duration: None,
                actor,
                at: time(record.at),
                ended_at: None,
            });
            rows.last_mut().unwrap_or_else(|| unreachable!("it was just put there"))
        }
    };
    if let Some(input) = audited.input {
        row.input = Some(serde_json::from_str(&input).unwrap_or(Value::String(input)));
    }
    if made {
        return;
    }
    row.status = audited.status;
    row.ended_at = Some(time(record.at));
    if audited.output.as_deref() == Some(TOOL_NOT_ALLOWED) {
        row.code = Some(TOOL_NOT_ALLOWED.to_owned());
    } else {
        row.output = audited.output;
        row.duration = audited.millis;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_count_may_be_written_with_a_fraction_of_nothing() {
        let event = |count: Value| {
            read(Map::from_iter([
                ("type".to_owned(), json!("COMPLETE")),
                ("result".to_owned(), json!("done")),
                ("turnCount".to_owned(), count),
            ]))
        };
        assert_eq!(event(json!(2.0)).unwrap(), event(json!(2)).unwrap());
        assert_eq!(event(json!(2.5)).unwrap_err().status, 400);
    }
}
