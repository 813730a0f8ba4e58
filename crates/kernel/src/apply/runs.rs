//! Runs, their steps, and what loop detection counts.

use super::{Folded, replay_wrapped};
use crate::World;
use crate::effect::Effect;
use crate::event::{
    CompletionClaimed, Fold, QuestionDropped, RunMoved, RunNoted, RunOpened, RunTaken, StepCompared,
    StepRetried, StepUnderWay, ToolAudited, TurnsRaised,
};
use crate::world::{Audit, Claimed, LOOP_CALLS_MAX, Metered, OpenCall, Run, Spend, TOOL_NOT_ALLOWED};
use machines::run;
use machines::suspended::Suspendable;
use smol_str::SmolStr;
use std::sync::Arc;

impl Fold<RunOpened> for World {
    fn fold(&mut self, e: &RunOpened) -> Folded {
        let machine = run::Run {
            state: if e.after_completed { run::State::Completed } else { run::State::Idle },
            max_turns: e.max_turns,
            allowed_tools: e.allowed_tools.as_ref().map(|tools| tools.as_slice().into()),
            ..run::Run::default()
        };
        let run = Run {
            id: e.id.clone(),
            task: e.task.clone(),
            agent: e.agent.clone(),
            holder: e.holder.clone(),
            machine: Suspendable::Live(machine),
            step: None,
            question: None,
            spend: Spend::default(),
            reserved: 0,
            reserved_day: 0,
            raised: 0,
            next_max_turns: None,
            turns_charged: 0,
            metered: Metered::default(),
            model: None,
            retried: false,
            audit: Audit::default(),
            claimed: None,
        };
        self.runs.insert(e.id.clone(), Arc::new(run));
        self.edit_task(&e.task, |task| {
            task.work.run = Some(e.id.clone());
            task.work.runs += 1;
        })
    }
}

impl Fold<RunMoved> for World {
    fn fold(&mut self, e: &RunMoved) -> Folded {
        let mut taken = Ok(());
        let mut suspended = false;
        self.edit_run(&e.id, |run| {
            taken = replay_wrapped::<run::Run>(&mut run.machine, &e.input, e.state);
            suspended = run.is_suspended();
        })?;
        if suspended {
            self.suspended.insert(e.id.clone());
        } else {
            self.suspended.remove(&e.id);
        }
        taken
    }
}

impl Fold<RunTaken> for World {
    fn fold(&mut self, e: &RunTaken) -> Folded {
        self.edit_run(&e.id, |run| run.holder = e.holder.clone())
    }
}

impl Fold<StepUnderWay> for World {
    fn fold(&mut self, e: &StepUnderWay) -> Folded {
        let agent = self.run(&e.id).and_then(|run| self.config.agents.get(&run.agent));
        let model = agent.and_then(|agent| agent.model.clone());
        let begun = e.effect.as_ref().and_then(|effect| self.effects.get(effect));
        let step = begun.is_some_and(|effect| matches!(**effect, Effect::StartStep { .. }));
        self.edit_run(&e.id, |run| {
            // What was said of the step before holds for that one.
            if step {
                run.claimed = None;
            }
            run.step.clone_from(&e.effect);
            if e.effect.is_some() {
                run.metered = Metered::default();
                run.model = model;
            }
        })
    }
}

impl Fold<TurnsRaised> for World {
    fn fold(&mut self, e: &TurnsRaised) -> Folded {
        self.edit_run(&e.id, |run| run.next_max_turns = e.to)
    }
}

impl Fold<StepCompared> for World {
    fn fold(&mut self, e: &StepCompared) -> Folded {
        self.edit_run(&e.id, |run| {
            let audit = &mut run.audit;
            audit.same_steps = if audit.last_step == Some(e.digest) { audit.same_steps + 1 } else { 1 };
            audit.last_step = Some(e.digest);
        })
    }
}

impl Fold<StepRetried> for World {
    fn fold(&mut self, e: &StepRetried) -> Folded {
        self.edit_run(&e.id, |run| run.retried = e.retried)
    }
}

impl Fold<CompletionClaimed> for World {
    fn fold(&mut self, e: &CompletionClaimed) -> Folded {
        let claimed = Claimed { step: e.step.clone(), summary: e.summary.clone() };
        self.edit_run(&e.id, |run| run.claimed = Some(claimed))
    }
}

impl Fold<QuestionDropped> for World {
    fn fold(&mut self, e: &QuestionDropped) -> Folded {
        self.edit_run(&e.id, |run| run.question = None)
    }
}

impl Fold<ToolAudited> for World {
    fn fold(&mut self, e: &ToolAudited) -> Folded {
        let kept = LOOP_CALLS_MAX * (self.config.limits.same_call.max(2) as usize);
        self.edit_run(&e.id, |run| audit(&mut run.audit, e, kept))
    }
}

impl Fold<RunNoted> for World {
    fn fold(&mut self, _: &RunNoted) -> Folded {
        Ok(())
    }
}

/// `Bash(make test)`: the tool, and the first line of what it is about.
fn action(tool: &str, input: &str) -> SmolStr {
    const LETTERS_MAX: usize = 100;
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let names = ["command", "file_path", "path", "pattern", "url", "query", "description"];
    let about = names.iter().find_map(|name| input[*name].as_str()).unwrap_or_default();
    let line = about.lines().next().unwrap_or_default();
    let cut = line.chars().count() > LETTERS_MAX || about.lines().nth(1).is_some();
    let line: String = line.chars().take(LETTERS_MAX).chain(cut.then_some('…')).collect();
    if line.is_empty() { tool.into() } else { format!("{tool}({line})").into() }
}

/// Counts what loop detection looks at: a call when it is made, a failure when it has failed.
fn audit(audit: &mut Audit, e: &ToolAudited, kept: usize) {
    match e.status {
        run::ToolStatus::Pending | run::ToolStatus::Running if e.began => {}
        run::ToolStatus::Pending | run::ToolStatus::Running => {
            audit.calls += 1;
            audit.allowed_once.remove(&e.digest);
            if !audit.refused.contains(&e.call) {
                audit.open.insert(e.call.clone());
                let open = OpenCall { tool: e.tool.clone(), digest: e.digest };
                audit.open_calls.insert(e.call.clone(), open);
            }
            audit.same_calls = if audit.last_call == Some(e.digest) { audit.same_calls + 1 } else { 1 };
            audit.last_call = Some(e.digest);
            audit.last_action = Some(action(&e.tool, e.input.as_deref().unwrap_or_default()));
            audit.recent.push_back(e.digest);
            while audit.recent.len() > kept {
                audit.recent.pop_front();
            }
        }
        run::ToolStatus::Error => {
            audit.open.remove(&e.call);
            audit.open_calls.remove(&e.call);
            if e.output.as_deref() == Some(TOOL_NOT_ALLOWED) {
                audit.refused.insert(e.call.clone());
            }
            let again = audit.failing_tool.as_ref() == Some(&e.tool);
            audit.failures = if again { audit.failures + 1 } else { 1 };
            audit.failing_tool = Some(e.tool.clone());
        }
        run::ToolStatus::Complete => {
            audit.open.remove(&e.call);
            audit.open_calls.remove(&e.call);
            if audit.failing_tool.as_ref() == Some(&e.tool) {
                audit.failing_tool = None;
                audit.failures = 0;
            }
        }
    }
}
