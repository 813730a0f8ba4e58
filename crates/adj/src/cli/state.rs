//! Workers as scripts know them: the names of Crew's `state.json`, which `adj state` and `adj ps --json` print.

use api::types::worker::{Activity, Worker, WorkerLine, WorkerWhole};
use machines::worker::State;
use serde::Serialize;
use std::path::PathBuf;

/// The members of an agent in `state.json`, in its order.
#[derive(Serialize)]
pub struct Agent {
    name: String,
    session: String,
    /// Where it is, or the name that the log has for it.
    worktree: Option<PathBuf>,
    branch: String,
    task: Option<String>,
    task_assigned_at: Option<String>,
    status: State,
    started_at: Option<String>,
    step_count: Option<u32>,
    last_step_at: Option<String>,
    total_input_tokens: Option<u64>,
    total_output_tokens: Option<u64>,
    total_cost_usd: Option<f64>,
}

/// What else is known of a worker.
#[derive(Serialize)]
pub struct Listed {
    #[serde(flatten)]
    agent: Agent,
    unpriced_steps: u32,
    estimated_steps: u32,
    estimated_cost_usd: f64,
    set_aside_usd: f64,
    #[serde(rename = "agent")]
    name_of_agent: String,
    by_person: bool,
    symbol: String,
    run: Option<String>,
    turn: Option<u32>,
    last_error: Option<String>,
    in_review: Vec<String>,
    task_title: Option<String>,
    last_action: Option<String>,
    activity: Activity,
}

/// A worker in a list: an agent is told little of those that are not its own.
#[derive(Serialize)]
#[serde(untagged)]
pub enum StateLine {
    Whole(Box<Listed>),
    Line(WorkerLine),
}

/// What `adj state` prints.
#[derive(Serialize)]
pub struct Document {
    agents: Vec<Agent>,
}

/// `tree` says where a worker's tree is, from the name that the log has for it.
pub fn document(workers: Vec<Worker>, tree: impl Fn(&str) -> PathBuf) -> Document {
    let placed = |worker: Worker| {
        let worktree = worker.line.worktree.as_deref().map(&tree);
        Agent { worktree, ..agent(worker.line, worker.whole.as_ref()) }
    };
    Document { agents: workers.into_iter().map(placed).collect() }
}

/// What `adj ps --json` prints.
pub fn listed(workers: &[Worker]) -> Vec<StateLine> {
    workers.iter().map(line).collect()
}

fn agent(line: WorkerLine, whole: Option<&WorkerWhole>) -> Agent {
    Agent {
        name: line.name,
        session: whole.map(|whole| whole.session.clone()).unwrap_or_default(),
        worktree: line.worktree.map(PathBuf::from),
        branch: line.branch,
        task: line.task,
        task_assigned_at: whole.and_then(|whole| whole.task_assigned_at.clone()),
        status: line.status,
        started_at: whole.map(|whole| whole.started_at.clone()),
        step_count: whole.map(|whole| whole.step_count),
        last_step_at: whole.and_then(|whole| whole.last_step_at.clone()),
        total_input_tokens: whole.map(|whole| whole.total_input_tokens),
        total_output_tokens: whole.map(|whole| whole.total_output_tokens),
        total_cost_usd: whole.map(|whole| whole.total_cost_usd),
    }
}

fn line(Worker { line, whole }: &Worker) -> StateLine {
    let Some(whole) = whole else { return StateLine::Line(line.clone()) };
    let known = whole.clone();
    StateLine::Whole(Box::new(Listed {
        agent: agent(line.clone(), Some(whole)),
        unpriced_steps: known.unpriced_steps,
        estimated_steps: known.estimated_steps,
        estimated_cost_usd: known.estimated_cost_usd,
        set_aside_usd: known.set_aside_usd,
        name_of_agent: known.agent,
        by_person: known.by_person,
        symbol: line.symbol.clone(),
        run: known.run,
        turn: known.turn,
        last_error: known.last_error,
        in_review: known.in_review,
        task_title: known.task_title,
        last_action: known.last_action,
        activity: known.activity,
    }))
}
