//! What agents made of their tasks, and what their steps used: read from the log, because the World only has the sums.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::types::cost::{Item as CostItem, Spend, Step as CostStep};
use super::{Call, Problem, time, view};
use kernel::world::Tariff;
use kernel::{Effect, Event, budget};
use machines::names::{AgentName, EffectId, RunId, TaskId, WorkerName};
use machines::run;
use machines::suspended::Wrapped;

/// What an agent made of its task: its last words, and how long it was at work.
pub struct Worked {
    pub said: Option<String>,
    pub millis: i64,
}

/// Read from the log: the World has no use for either.
pub fn worked(call: &Call, id: &TaskId) -> Result<Worked, Problem> {
    let (task, runs) = (format!("task/{id}"), format!("run/{id}."));
    let mut worked = Worked { said: None, millis: 0 };
    let mut since = None;
    call.access.project.scan(0, &mut |record| {
        let of_run = || record.stream.strip_prefix(&runs).is_some_and(|number| !number.contains('.'));
        if record.stream != task && !of_run() {
            return ControlFlow::Continue(());
        }
        match Event::decode(&record.kind, &record.data) {
            Ok(Event::LeaseGiven(_)) => since = Some(record.at),
            Ok(Event::LeaseEnded(_)) => {
                worked.millis += since.take().map_or(0, |since| record.at - since);
            }
            Ok(Event::RunMoved(moved)) => {
                if let Wrapped::Inner(run::Event::Step { output: Some(output), .. }) = moved.input {
                    worked.said = Some(output);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    worked.millis += since.map_or(0, |since| call.request.at - since);
    Ok(worked)
}

/// What each step has used. The log knows; the World only has the sums.
pub fn steps(call: &Call) -> Result<Vec<CostItem>, Problem> {
    struct Step {
        effect: EffectId,
        run: RunId,
        task: TaskId,
        agent: AgentName,
        tariff: Tariff,
        worker: Option<WorkerName>,
        at: i64,
        cost: u64,
        input_tokens: u64,
        output_tokens: u64,
        /// What was set aside, where its price was not named.
        held: Option<u64>,
    }
    let world = call.world();
    let mut starts: BTreeSet<EffectId> = BTreeSet::new();
    let mut steps: Vec<Step> = Vec::new();
    // The run's step that what is charged belongs to: the last that was begun.
    let mut current: BTreeMap<RunId, usize> = BTreeMap::new();
    call.access.project.scan(0, &mut |record| {
        match Event::decode(&record.kind, &record.data) {
            Ok(Event::EffectAsked(asked)) if matches!(asked.what, Effect::StartStep { .. }) => {
                starts.extend([asked.id]);
            }
            Ok(Event::StepUnderWay(begun)) => {
                if let (Some(effect), Some(run)) = (begun.effect, world.run(&begun.id))
                    && starts.contains(&effect)
                {
                    current.insert(begun.id.clone(), steps.len());
                    steps.push(Step {
                        effect,
                        run: begun.id,
                        task: run.task.clone(),
                        agent: run.agent.clone(),
                        tariff: Tariff::of(&run.agent, None),
                        worker: None,
                        at: record.at,
                        cost: 0,
                        input_tokens: 0,
                        output_tokens: 0,
                        held: None,
                    });
                }
            }
            Ok(Event::Charged(charged)) => {
                let step = current.get(&charged.id).and_then(|index| steps.get_mut(*index));
                let Some(step) = step else { return ControlFlow::Continue(()) };
                step.tariff = charged.tariff();
                step.worker = charged.worker.or(step.worker.take());
                step.input_tokens += charged.input_tokens;
                step.output_tokens += charged.output_tokens;
                match charged.priced {
                    true => step.cost += charged.cost,
                    false => step.held = Some(step.held.unwrap_or(0) + charged.cost),
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    let shown = |step: &Step| {
        let estimate = step.held.and_then(|_| {
            let whole = budget::estimate(&world, &step.tariff, step.input_tokens + step.output_tokens)?;
            Some(whole.saturating_sub(step.cost))
        });
        let held = step.held.filter(|_| estimate.is_none()).unwrap_or(0);
        CostItem {
            name: view::text(&step.effect),
            spend: Spend {
                usd: view::usd(step.cost),
                input_tokens: step.input_tokens,
                output_tokens: step.output_tokens,
                reserved_usd: 0.0,
                unpriced_steps: u32::from(step.held.is_some()),
                estimated_steps: u32::from(estimate.is_some()),
                estimated_usd: view::usd(estimate.unwrap_or(0)),
                set_aside_usd: view::usd(held),
            },
            step: Some(CostStep {
                task: view::text(&step.task),
                run: view::text(&step.run),
                agent: view::text(&step.agent),
                worker: step.worker.as_ref().map(view::text),
                started_at: time(step.at),
            }),
        }
    };
    Ok(steps.iter().map(shown).collect())
}
