//! The text of a prompt for an agent, and its remaining budget.

use std::path::Path;

use kernel::World;
use kernel::budget::Headroom;
use kernel::config::Micros;
use kernel::effect::Prompt;
use kernel::rooms::Seated;
use kernel::world::{Run, SentBack, Task};

use super::test_runs;
use machines::names::AgentName;
use machines::task::{PLAN_BULLETS_MAX, PLAN_BULLETS_MIN, PlanSource};
use project::prompts::{Kind, Prompts, Variables};
use project::settings::{Plan, Settings};

/// The text that the task's agent would be told by this prompt if a step of it began now; `None`: no step begins with it.
pub fn prompt_now(
    prompts: &Prompts,
    settings: &Settings,
    world: &World,
    task: &Task,
    kind: Kind,
    main: &str,
    root: &Path,
) -> Option<String> {
    let notes: Vec<String> = task.work.notes.iter().map(ToString::to_string).collect();
    let output = match &task.gate.sent_back {
        Some(SentBack::Gate(output) | SentBack::Landing(output)) => output.clone(),
        None => String::new(),
    };
    let asked = kind.of_task(notes, output)?;
    let worker = world.worker_of(&task.id).map_or("", |worker| worker.name.as_str());
    let agent = world.run_of(&task.id).map_or(&settings.fleet.agent, |run| &run.agent);
    let plan = plan_wanted(settings, task, agent);
    Some(prompt(prompts, task, worker, &asked, main, test_runs::test_command(settings, root), plan))
}

/// The text of a prompt, by its template.
pub fn prompt(
    prompts: &Prompts,
    task: &Task,
    worker: &str,
    prompt: &Prompt,
    main: &str,
    test: Option<String>,
    plan_wanted: Option<String>,
) -> String {
    let (body, acceptance) = documents::tickets::split_acceptance(&task.body);
    let mut variables = Variables {
        task: task.id.to_string(),
        title: task.title.clone(),
        body,
        acceptance: acceptance.unwrap_or_default(),
        plan: task.machine.work_plan.as_ref().map(|plan| plan.bullets.to_vec()).unwrap_or_default(),
        worker: worker.to_owned(),
        branch: task.work.place.as_ref().map(|place| place.branch.clone()).unwrap_or_default(),
        main: main.to_owned(),
        test: test.unwrap_or_default(),
        ..Variables::default()
    };
    let kind = variables.fill_from(prompt);
    variables.notes.splice(0..0, plan_wanted.filter(|_| kind == Kind::Init));
    // What a reviewer asked for holds until the task is done.
    // What a landing failed of is its output, which is told already.
    let is_told = |feedback: &String| feedback.trim() == variables.output.trim();
    variables.notes.extend(task.machine.feedback.clone().filter(|feedback| !is_told(feedback)));
    variables.notes.extend(task.machine.clarification.clone());
    prompts.render(kind, &variables)
}

/// What an agent is told whose own plan is wanted, as long as the task has none of an agent.
pub fn plan_wanted(settings: &Settings, task: &Task, agent: &AgentName) -> Option<String> {
    let source = task.machine.work_plan.as_ref().and_then(|plan| plan.source);
    if settings.fleet.plan != Plan::Agent || source == Some(PlanSource::Agent) {
        return None;
    }
    let has_tools = settings.agents.get(agent).is_some_and(|agent| agent.adapter.adapter().has_tools());
    let how = match has_tools {
        true => "the tool `mcp__adjutant__submit_plan`",
        false => "the command `adj task plan STEP STEP STEP`",
    };
    Some(format!(
        "Look at the repository, then submit a plan of your own before you change anything: {PLAN_BULLETS_MIN} to \
         {PLAN_BULLETS_MAX} steps, by {how}. It takes the place of the plan above."
    ))
}

/// The same for an agent that speaks outside of any task.
pub fn budget_in_seat(world: &World, seated: &Seated) -> Option<f64> {
    let rooms = kernel::budget::shared_rooms(world, &seated.agent, seated.reserved_day);
    tightest(rooms.iter(), seated.reserved)
}

/// What is left of the tightest budget, in dollars, for agents that can hold to one themselves.
pub fn budget_left(world: &World, task: &Task, run: &Run) -> Option<f64> {
    let own = kernel::budget::own_rooms(world, task, Some(run));
    let shared = kernel::budget::shared_rooms(world, &run.agent, run.reserved_day);
    tightest(own.iter().chain(&shared), run.reserved)
}

fn tightest<'a>(rooms: impl Iterator<Item = &'a Headroom>, reserved: Micros) -> Option<f64> {
    // What is set aside for this step is its own to spend.
    let left = |room: &Headroom| room.limit.saturating_sub(room.used.saturating_sub(reserved));
    rooms.map(left).min().map(|micros| micros as f64 / 1e6)
}
