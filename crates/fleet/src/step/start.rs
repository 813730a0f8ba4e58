//! Starts a step, or finds it again.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::command::{Happened, StepFailure, Usage};
use kernel::effect::{Prompt, Say, StepStart};
use kernel::rooms::Seat;
use kernel::{Effect, World};
use machines::names::{AgentName, EffectId, RunId, TaskId, WorkerName};
use smol_str::SmolStr;

use super::{For, STEP_FILE, Step, StepError, StepFile, cut_off, failed, usage_of};
use crate::in_force::SettingsInForce;
use crate::room_text::{self, Turn};
use crate::surroundings::{self, Folders, Purpose};
use crate::{KeyFor, Missing, Shared, authorship, hooks, prompt_text, request_text, seats, test_runs};
use agents::{self, Order, PromptKind};
use base::files::{FileError, write_whole};
use git::{Oid, UnderReview};
use process::keeper::{self, Found, Spec};
use project::settings::Agent;

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
            return Err(match step.file.is_for {
                For::Task { .. } => failed("the keeper of the step was lost", StepFailure::Lost, usage),
                // The machine went down in the middle of it. Nothing was said, so that it can be said again.
                For::Seat { .. } => cut_off(None, usage),
            });
        }
        // Begun, and not even its own file was written: nothing was started.
        _ => {}
    }
    if let Effect::StartStep { of: StepStart::Task { task, .. }, .. } = effect {
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

/// What differs between a step of a task and a reply in a seat.
struct Work {
    is_for: For,
    agent: AgentName,
    /// The turn that was reached before.
    turn: u32,
    prompt: String,
    kind: PromptKind,
    budget_usd: Option<f64>,
    tree: PathBuf,
    folders: Folders,
    /// What git in the tree calls main.
    main: String,
    env: Vec<(String, String)>,
    token: Option<String>,
}

/// Says what is to be run: program, prompt, environment, sandbox.
async fn prepare(
    shared: &Arc<Shared>,
    id: &EffectId,
    effect: &Effect,
) -> Result<(StepFile, Spec), StepError> {
    let in_force = shared.in_force();
    let Effect::StartStep { of, session, resume, turns_left } = effect else {
        return Err(StepError::NotAStep);
    };
    let work = match of {
        StepStart::Task { task, worker, run, prompt } => {
            step(shared, &in_force, task, worker, run, prompt).await?
        }
        StepStart::Seat { seat, agent, prompt } => reply(shared, &in_force, id, seat, agent, prompt).await?,
    };
    let agent = settings_of(&in_force, &work.agent)?;
    let adapter = agent.adapter.adapter();
    let (task, worker, run) = match &work.is_for {
        For::Task { task, worker, run } => (task.to_string(), worker.to_string(), run.to_string()),
        For::Seat { seat } => (seat.to_string(), work.agent.to_string(), String::new()),
    };
    let order = Order {
        session: session.clone(),
        resume: *resume,
        prompt: work.prompt,
        kind: work.kind,
        system: agent.prompt.clone(),
        turns_left: *turns_left,
        model: agent.model.clone(),
        allowed_tools: agent.allowed_tools.as_ref().map(|tools| tools.iter().map(SmolStr::from).collect()),
        tree: work.tree.clone(),
        private: work.folders.private.clone(),
        temp: work.folders.temp.clone(),
        task: task.into(),
        worker: worker.into(),
        run: run.into(),
        step: id.as_str().into(),
        command: agent.command.clone(),
        budget_usd: work.budget_usd,
        adj: shared.adj.clone(),
        project_root: shared.layout.root().to_owned(),
        main: work.main,
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
    let mut env = work.env;
    if let Some(token) = work.token {
        env.push(("ADJ_TOKEN".to_owned(), token));
        env.push(("ADJ_SERVER".to_owned(), format!("unix:{}", shared.layout.socket().display())));
    }
    env.extend(launch.env.iter().cloned());
    let program = launch.argv.first().map_or("", String::as_str);
    let (purpose, run) = match &work.is_for {
        For::Task { run, .. } => (Purpose::Step(agent, program), Some(run)),
        For::Seat { .. } => (Purpose::Reply(agent, program), None),
    };
    let context = shared.context(&in_force.settings);
    let sandbox = surroundings::sandbox(context, &work.tree, &work.folders, purpose, run)?;
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
        ..Spec::new(shared.layout.mark(id.as_str()), launch.argv, work.tree)
    };
    let file = StepFile {
        effect: id.clone(),
        is_for: work.is_for,
        agent: work.agent,
        adapter: adapter.name().into(),
        turn: work.turn,
        started_at: base::clock::now(),
        stdin: launch.stdin.into(),
        order,
    };
    Ok((file, spec))
}

fn settings_of<'a>(in_force: &'a SettingsInForce, agent: &AgentName) -> Result<&'a Agent, Missing> {
    in_force.settings.agents.get(agent).ok_or_else(|| Missing::Agent(agent.clone()))
}

/// A step of a task: in its tree, which sees main as it is now.
async fn step(
    shared: &Arc<Shared>,
    in_force: &SettingsInForce,
    task: &TaskId,
    worker: &WorkerName,
    run: &RunId,
    prompt: &Prompt,
) -> Result<Work, StepError> {
    let world = shared.world();
    let known = world.task(task).ok_or_else(|| Missing::Task(task.clone()))?;
    let place = known.work.place.as_ref().ok_or_else(|| Missing::Tree(task.clone()))?;
    let started = world.run(run).ok_or_else(|| Missing::Run(run.clone()))?;
    let agent = settings_of(in_force, &started.agent)?;
    let tree = shared.tree(&place.tree)?;
    let folders = Folders::make(&shared.layout, task)?;
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
        let committer = authorship::committer(in_force, &world, known);
        shared.blocking(move || repository.commit_as(&tree, &committer)).await?;
    }
    let test = test_runs::test_command(&in_force.settings, &tree);
    let plan = prompt_text::plan_wanted(&in_force.settings, known, &started.agent);
    let text = prompt_text::prompt(&in_force.prompts, known, worker.as_str(), prompt, &main, test, plan);
    Ok(Work {
        is_for: For::Task { task: task.clone(), worker: worker.clone(), run: run.clone() },
        agent: started.agent.clone(),
        turn: started.machine.inner().current_turn,
        prompt: text,
        kind: prompt.into(),
        budget_usd: prompt_text::budget_left(&world, known, started),
        env: surroundings::environment(shared, in_force, agent, known, worker, run)?,
        token: shared.keys.as_ref().and_then(|keys| keys.mint(&started.agent, KeyFor::Run(run))),
        tree,
        folders,
        main,
    })
}

/// A reply in a seat: in a clone of its own, which is main and nothing else.
async fn reply(
    shared: &Arc<Shared>,
    in_force: &SettingsInForce,
    id: &EffectId,
    seat: &Seat,
    agent: &AgentName,
    prompt: &Say,
) -> Result<Work, StepError> {
    let settings = settings_of(in_force, agent)?;
    let world = shared.world();
    let (review, text, kind) = told(shared, in_force, &world, seat, prompt).await?;
    let folders = Folders::of_seat(&shared.layout, seat)?;
    let tree = seats::tree(shared, seat, review).await?;
    let seated = world.seated(seat).ok_or_else(|| Missing::Seat(seat.clone()))?;
    Ok(Work {
        is_for: For::Seat { seat: seat.clone() },
        agent: agent.clone(),
        turn: 0,
        prompt: text,
        kind,
        budget_usd: prompt_text::budget_in_seat(&world, seated),
        env: surroundings::environment_in_seat(&shared.layout, settings, agent, seat),
        token: shared.keys.as_ref().and_then(|keys| keys.mint(agent, KeyFor::Reply(seat, id))),
        tree,
        folders,
        main: format!("origin/{}", in_force.settings.project.main),
    })
}

/// What is said to whoever sits there, and the work that it is about.
async fn told(
    shared: &Arc<Shared>,
    in_force: &SettingsInForce,
    world: &World,
    seat: &Seat,
    say: &Say,
) -> Result<(Option<UnderReview>, String, PromptKind), StepError> {
    match (seat, say) {
        (Seat::Room { channel, agent }, Say::Turn { after, upto, again }) => {
            let room = world.channel(channel).ok_or_else(|| Missing::Channel(channel.clone()))?;
            let turn = Turn { name: channel, agent, after: *after, upto: *upto, again: *again };
            let text = room_text::prompt(&in_force.prompts, world, room, &turn);
            let tip =
                room.about.task.as_ref().and_then(|id| world.task(id)?.work.place.as_ref()?.tip.clone());
            Ok((under_review(world, room.about.task.as_ref(), tip), text, PromptKind::Turn))
        }
        (Seat::Architect, Say::Request { request, tip }) => {
            let asked = world.requests.get(request).ok_or_else(|| Missing::Request(request.clone()))?;
            // What the reply is bound to is what it is shown; in logs of before, the request alone names the commit.
            let tip = tip.clone().or_else(|| asked.tip.clone());
            let review = under_review(world, asked.task.as_ref(), tip);
            let seen = request_text::Seen {
                diff: diff(shared, review.as_ref()).await?,
                test: test_runs::test_command(&in_force.settings, shared.layout.root()),
            };
            let told = request_text::prompt(&in_force.prompts, world, asked, &seen);
            let (kind, text) = told.ok_or_else(|| Missing::Request(request.clone()))?;
            Ok((review, text, kind))
        }
        (Seat::Architect, Say::Turn { .. }) | (Seat::Room { .. }, Say::Request { .. }) => {
            Err(Missing::Seat(seat.clone()).into())
        }
    }
}

/// What the work would change in main.
async fn diff(shared: &Arc<Shared>, review: Option<&UnderReview>) -> Result<String, StepError> {
    let Some(review) = review else { return Ok(String::new()) };
    let (repository, tip) = (shared.repository.clone(), review.tip.clone());
    let seen = shared.blocking(move || {
        repository.ensure_land()?;
        repository.diff(&tip, &repository.main_tip()?)
    });
    Ok(seen.await?)
}

/// The branch of a task, and the commit of it that is looked at.
fn under_review(world: &World, task: Option<&TaskId>, tip: Option<SmolStr>) -> Option<UnderReview> {
    let place = world.task(task?)?.work.place.as_ref()?;
    Some(UnderReview { branch: place.branch.clone(), tip: Oid::new(tip.as_deref()?)? })
}
