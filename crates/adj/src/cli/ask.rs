//! `adj ask` and `adj answer`: questions that are answered in words.

use super::project::Project;
use super::text::{self, visible, visible_lines};
use super::{Context, Failure};
use api::types::Nothing;
use api::types::caller::Caller;
use api::types::request::{NewAnswer, NewRequest, Plan, Request, ShowQuery};
use api::types::task::Task;
use clap::Args;
use std::time::{Duration, Instant};

/// Where no fleet runs that would hold the answer back, it is looked for so often.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj ask 'Tabs or spaces?'
  adj ask --task c-abc1 --wait 'Which of the two parsers is meant?'

`adj waiting` lists the question until a person answers it with `adj answer`. An agent asks about its own task: the task \
keeps its status, but the next step of its run starts only after the answer. Without --wait the agent gets the answer \
with that step. Tool calls, budgets and limits need no question: `adj approve` decides them.")]
pub struct Ask {
    /// Task that the question is about; an agent always asks about its own
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Wait for the answer, at most limits.question, and print it
    #[arg(long)]
    wait: bool,
    /// The question
    text: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  adj answer r7 'Spaces, four of them.'
  adj answer r9 --abandon 'Not this year.'

A question can be answered once. If the architect escalated it, the architect continues with your answer. `--abandon` \
closes the question without an answer. `adj requests` lists open questions. `adj approve` and `adj deny` decide tool \
calls, budgets and limits.")]
pub struct Answer {
    /// Id of the question, from `adj waiting` or `adj requests`
    id: String,
    /// The answer; with --abandon, the reason
    #[arg(required_unless_present = "abandon")]
    text: Option<String>,
    /// Close the question without an answer
    #[arg(long)]
    abandon: bool,
}

pub fn ask(command: &Ask, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let new = NewRequest { task: command.task.clone(), text: command.text.clone(), ..NewRequest::default() };
    let mut asked: Request = project.post("/requests", &new)?;
    if command.wait {
        asked = answered(&project, asked)?;
    }
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&asked))?);
    }
    match (&asked.answer, command.wait) {
        (Some(answer), true) => writeln!(context.out, "{}", visible_lines(&answer.text, ""))?,
        (None, true) => {
            writeln!(context.out, "{}", asked.id)?;
            let hint = "nobody has answered yet; an agent is told the answer in its next step";
            Project::hint(&context.globals, hint);
        }
        (_, false) => writeln!(context.out, "{}", asked.id)?,
    }
    Ok(())
}

/// The question with its answer, or as it is when the time is up.
fn answered(project: &Project, asked: Request) -> Result<Request, Failure> {
    let caller: Caller = project.get("/caller")?;
    let deadline = Instant::now() + Duration::from_secs(caller.question_seconds.into());
    let path = format!("/requests/{}", asked.id);
    loop {
        let begun = Instant::now();
        let now: Request = project.get_with(&path, &ShowQuery { wait: true })?;
        if now.answer.is_some() {
            return project.post(&format!("{path}/receipt"), &Nothing {});
        }
        if !now.open || Instant::now() >= deadline {
            return Ok(now);
        }
        std::thread::sleep(LOOK.saturating_sub(begun.elapsed()));
    }
}

pub fn answer(command: &Answer, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let id = machines::names::RequestId::new(&command.id);
    let id = id.map_err(|error| Failure::new(super::Exit::Usage, error.to_string()))?;
    let answer = NewAnswer { text: command.text.clone(), abandon: command.abandon };
    let answered: Request = project.post(&format!("/requests/{id}/answer"), &answer)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&answered))?);
    }
    if !context.globals.quiet {
        let what = match (&answered.answer, answered.waits_for) {
            (Some(answer), _) if answer.abandoned => "is given up",
            (None, Some(_)) => "is recorded; the architect continues with it",
            _ => "is answered",
        };
        writeln!(context.out, "{} {what}", visible(&answered.id))?;
    }
    Ok(())
}

/// `adj task plan`: the plan of the agent that asks.
pub fn plan(steps: &[String], context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let task: Task = project.post("/own/plan", &Plan { steps: steps.to_vec(), run: None })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&task))?);
    }
    if !context.globals.quiet {
        writeln!(context.out, "the plan of {} is taken", visible(&task.line.id))?;
    }
    Ok(())
}
