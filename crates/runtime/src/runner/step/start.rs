//! How a step is started, or found again.

use std::sync::Arc;

use kernel::Effect;
use kernel::command::{Happened, StepFailure, Usage};
use machines::names::EffectId;
use smol_str::SmolStr;

use super::{STEP_FILE, Step, StepError, StepFile, failed, usage_of};
use crate::agents::{self, Order};
use crate::files::{FileError, write_whole};
use crate::keeper::{self, Found, Spec};
use crate::runner::{Missing, Shared, authorship, gate, hooks, prompt_text, surroundings};

/// Finds the step's processes, or starts them. `None`: what comes before a step was ended, and nothing was started.
pub async fn begin(
    shared: &Arc<Shared>,
    id: &EffectId,
    effect: &Effect,
) -> Result<Option<(Step, Found)>, Happened> {
    let dir = shared.layout.step(id);
    let fail = |error: StepError| failed(error.to_string(), StepFailure::Failed, Usage::default());
    let found = keeper::look(&dir).map_err(|error| fail(error.into()))?;
    match (found, Step::read(&dir)) {
        (found @ (Found::Alive(_) | Found::Over(_)), Some(step)) => return Ok(Some((step, found))),
        (Found::Dead, Some(step)) => {
            // Nobody knows how it ended. What it left running must not write into the tree any more.
            let mark = shared.layout.mark(id.as_str());
            let swept = shared.blocking(move || keeper::sweep_strays(&mark)).await;
            swept.map_err(|error| fail(error.into()))?;
            let usage = usage_of(&step);
            return Err(failed("the keeper of the step was lost", StepFailure::Lost, usage));
        }
        // Begun, and not even its own file was written: nothing was started.
        _ => {}
    }
    if let Effect::StartStep { task, .. } = effect {
        let over = hooks::in_tree(shared, hooks::HookPoint::StepBefore, id.as_str(), task).await;
        let over = over.map_err(|error| fail(error.into()))?;
        if !over || !shared.world().effects.contains_key(id) {
            return Ok(None);
        }
    }
    let (file, spec) = prepare(shared, id, effect).await.map_err(fail)?;
    let step = Step { dir: dir.clone(), file };
    let (adj, started) = (shared.adj.clone(), step.clone());
    let start = move || -> Result<Found, StepError> {
        std::fs::create_dir_all(&dir).map_err(FileError::at("make", &dir))?;
        let text = serde_json::to_vec(&started.file).expect("a step is plain data");
        write_whole(&dir.join(STEP_FILE), &text).map_err(FileError::at("write to", &dir))?;
        Ok(keeper::start(&adj, &dir, &spec)?)
    };
    let found = shared.blocking(start).await.map_err(fail)?;
    Ok(Some((step, found)))
}

/// Says what is to be run: program, prompt, environment, sandbox.
async fn prepare(
    shared: &Arc<Shared>,
    id: &EffectId,
    effect: &Effect,
) -> Result<(StepFile, Spec), StepError> {
    let Effect::StartStep { task, worker, run, session, resume, prompt, turns_left } = effect else {
        return Err(StepError::NotAStep);
    };
    let in_force = shared.in_force();
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| Missing::Task(task.clone()))?;
    let place = known.place.as_ref().ok_or_else(|| Missing::Tree(task.clone()))?;
    let started = world.run(run).ok_or_else(|| Missing::Run(run.clone()))?;
    let agent =
        in_force.settings.agents.get(&started.agent).ok_or_else(|| Missing::Agent(started.agent.clone()))?;
    let adapter = agent.adapter.adapter();
    let tree = shared.tree(&place.tree)?;
    let folders = surroundings::Folders::make(&shared.layout, task)?;
    let main = {
        let (repository, of, tree) = (shared.repository.clone(), task.clone(), place.tree.clone());
        let fresh = shared.blocking(move || {
            repository.refresh_main(&of, &tree)?;
            repository.name_of_main(&of, &tree)
        });
        fresh.await?
    };
    {
        let (repository, tree) = (shared.repository.clone(), tree.clone());
        let committer = authorship::committer(&in_force, &world, known);
        shared.blocking(move || repository.commit_as(&tree, &committer)).await?;
    }
    let test = gate::test_command(&in_force.settings, &tree);
    let plan = prompt_text::plan_wanted(&in_force.settings, known, &started.agent);
    let text = prompt_text::prompt(&in_force.prompts, known, worker.as_str(), prompt, &main, test, plan);
    let order = Order {
        session: session.clone(),
        resume: *resume,
        prompt: text,
        kind: prompt.into(),
        system: agent.prompt.clone(),
        turns_left: *turns_left,
        model: agent.model.clone(),
        allowed_tools: agent.allowed_tools.as_ref().map(|tools| tools.iter().map(SmolStr::from).collect()),
        tree: tree.clone(),
        private: folders.private.clone(),
        temp: folders.temp.clone(),
        task: task.as_str().into(),
        worker: worker.as_str().into(),
        run: run.as_str().into(),
        step: id.as_str().into(),
        command: agent.command.clone(),
        budget_usd: prompt_text::budget_left(&world, known, started),
        adj: shared.adj.clone(),
        project_root: shared.layout.root().to_owned(),
        main: main.to_string(),
    };
    let launch = adapter.launch(&order)?;
    if let Some(sweep) = &launch.swept {
        sweep.carry_out().map_err(FileError::at("empty", &sweep.directory))?;
    }
    for directory in &launch.directories {
        std::fs::create_dir_all(directory).map_err(FileError::at("make", directory))?;
    }
    for (path, text) in &launch.files {
        write_whole(path, text).map_err(FileError::at("write", path))?;
    }
    let mut env = surroundings::environment(shared, &in_force, agent, known, worker, run)?;
    if let Some(token) = shared.keys.as_ref().and_then(|keys| keys.mint(&started.agent, run)) {
        env.push(("ADJ_TOKEN".to_owned(), token));
        env.push(("ADJ_SERVER".to_owned(), format!("unix:{}", shared.layout.socket().display())));
    }
    env.extend(launch.env.iter().cloned());
    let program = launch.argv.first().map_or("", String::as_str);
    let purpose = surroundings::Purpose::Step(agent, program);
    let sandbox = surroundings::sandbox(shared.ground(&in_force.settings), &tree, &folders, purpose)?;
    let spec = Spec {
        env: env.into_iter().collect(),
        stdin: match launch.stdin {
            agents::Stdin::Null => keeper::Stdin::Null,
            agents::Stdin::Whole(_) | agents::Stdin::Open(_) => keeper::Stdin::Piped,
        },
        time_limit_seconds: in_force.settings.fleet.step_timeout.as_secs_f64(),
        output_bytes_max: in_force.settings.limits.output_bytes,
        limits: surroundings::limits(&in_force.settings),
        sandbox,
        protocol: Some(launch.protocol.to_owned()),
        hidden: shared.keys.as_ref().map(|keys| keys.hidden()).unwrap_or_default(),
        ..Spec::new(shared.layout.mark(id.as_str()), launch.argv, tree)
    };
    let file = StepFile {
        effect: id.clone(),
        task: task.clone(),
        worker: worker.clone(),
        run: run.clone(),
        agent: started.agent.clone(),
        adapter: adapter.name().into(),
        turn: started.machine.inner().current_turn,
        started_at: crate::clock::now(),
        stdin: launch.stdin.into(),
        order,
    };
    Ok((file, spec))
}
