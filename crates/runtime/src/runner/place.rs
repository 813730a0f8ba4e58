//! Where a step or a test runs, and with what: folders, environment, sandbox, prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::World;
use kernel::budget::Room;
use kernel::effect::Prompt;
use kernel::world::{Run, SentBack, Task};
use machines::names::{RunId, TaskId, WorkerName};

use super::gate::Whose;
use super::{Rules, Shared, gate};
use crate::git::Oid;
use crate::keeper::{self, Exit, Reason};
use crate::layout::Layout;
use crate::prompts::{Kind, Prompts, Variables};
use crate::sandbox;
use crate::settings::{Agent, Isolation, MissingCache, Sandbox, SandboxMode, Settings};
use crate::workplace;

/// The folders of a task outside of its tree.
pub struct Folders {
    pub private: PathBuf,
    pub temp: PathBuf,
}

impl Folders {
    pub fn make(layout: &Layout, task: &TaskId) -> std::io::Result<Folders> {
        use std::os::unix::fs::DirBuilderExt;
        let private = layout.private(task);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&private)?;
        Ok(Folders { private, temp: layout.make_temp(task)? })
    }

    /// The task is over and its tree is put away: what was temporary goes. Its sessions stay with us.
    pub fn forget(layout: &Layout, task: &TaskId) {
        // Left behind it is only untidy.
        let _ = std::fs::remove_dir_all(layout.temp(task));
    }
}

/// The text that the task's agent would be told by this prompt if a step of it began now.
pub fn prompt_now(
    prompts: &Prompts,
    settings: &Settings,
    world: &World,
    task: &Task,
    kind: Kind,
    main: &Oid,
    root: &Path,
) -> String {
    let notes: Vec<String> = task.notes.iter().map(ToString::to_string).collect();
    let output = match &task.sent_back {
        Some(SentBack::Gate(output) | SentBack::Landing(output)) => output.clone(),
        None => String::new(),
    };
    let asked = match kind {
        Kind::Init => Prompt::Init { notes },
        Kind::Step => Prompt::Step { notes },
        Kind::TestFailure => Prompt::TestFailure { output, notes },
        Kind::MergeConflict => Prompt::MergeConflict { output, notes },
    };
    let worker = world.worker_of(&task.id).map_or("", |worker| worker.name.as_str());
    prompt(prompts, task, worker, &asked, main, gate::test_command(settings, root))
}

/// The text of a prompt, by its template.
pub fn prompt(
    prompts: &Prompts,
    task: &Task,
    worker: &str,
    prompt: &Prompt,
    main: &Oid,
    test: Option<String>,
) -> String {
    let (body, acceptance) = crate::tickets::split_acceptance(&task.body);
    let mut variables = Variables {
        task: task.id.to_string(),
        title: task.title.clone(),
        body,
        acceptance: acceptance.unwrap_or_default(),
        plan: task.machine.work_plan.as_ref().map(|plan| plan.bullets.to_vec()).unwrap_or_default(),
        worker: worker.to_owned(),
        branch: task.place.as_ref().map(|place| place.branch.clone()).unwrap_or_default(),
        main: main.to_string(),
        test: test.unwrap_or_default(),
        ..Variables::default()
    };
    let kind = variables.take(prompt);
    // What a reviewer asked for holds until the task is done.
    variables.notes.extend(task.machine.feedback.clone());
    variables.notes.extend(task.machine.clarification.clone());
    prompts.render(kind, &variables)
}

/// What is left of the tightest budget, in dollars, for agents that can hold to one themselves.
pub fn budget_left(world: &World, task: &Task, run: &Run) -> Option<f64> {
    let own = kernel::budget::own_rooms(world, task, Some(run));
    let shared = kernel::budget::shared_rooms(world, &run.agent, run.reserved_day);
    // What is set aside for this step is its own to spend.
    let left = |room: &Room| room.limit.saturating_sub(room.used.saturating_sub(run.reserved));
    own.iter().chain(&shared).map(left).min().map(|micros| micros as f64 / 1e6)
}

/// The environment of an agent's program or of a test run: an allow-list, and what we give.
pub fn environment(
    shared: &Arc<Shared>,
    rules: &Rules,
    agent: Option<&Agent>,
    task: &Task,
    worker: Option<&WorkerName>,
    run: Option<&RunId>,
) -> Result<Vec<(String, String)>, String> {
    let names = agent.map(|agent| agent.env.as_slice()).unwrap_or_default();
    environment_of(shared, rules, names, Whose { task: &task.id, run: run.or(task.run.as_ref()), worker })
}

/// The same for anybody's: `names` are what of the user's variables is passed on beside the usual ones.
pub fn environment_of(
    shared: &Arc<Shared>,
    rules: &Rules,
    names: &[String],
    whose: Whose<'_>,
) -> Result<Vec<(String, String)>, String> {
    let Whose { task, run, worker } = whose;
    let temporary = shared.layout.temp(task);
    let ports = workplace::Ports::new(&shared.layout.state(), &rules.settings.ports);
    let port_base = run.map(|run| ports.lease(run)).transpose().map_err(|error| error.to_string())?;
    let given = workplace::Given {
        task: task.as_str(),
        worker: worker.map_or("", |worker| worker.as_str()),
        run: run.map_or("", |run| run.as_str()),
        port_base,
        temporary: &temporary,
    };
    let mut variables = workplace::environment(names, &|name| std::env::var_os(name), &given);
    if rules.settings.fleet.isolation == Isolation::Worktree
        && let Some(excludes) = shared.repository.excluded_links()
    {
        // A worktree shares the user's own excludes, which are not ours to write to.
        let file = shared.layout.private(task).join("excludes");
        std::fs::write(&file, excludes)
            .map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
        let file = file.to_string_lossy().into_owned();
        for (name, value) in [
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", "core.excludesFile".to_owned()),
            ("GIT_CONFIG_VALUE_0", file),
        ] {
            variables.push((name.to_owned(), value));
        }
    }
    Ok(variables)
}

/// What a process may reach: its tree, its own folders and the declared caches; of ours only the shared objects.
pub fn sandbox(
    shared: &Arc<Shared>,
    rules: &Rules,
    cwd: &Path,
    folders: &Folders,
) -> Result<Option<keeper::Sandbox>, String> {
    let settings = &rules.settings.sandbox;
    if settings.mode == SandboxMode::Off {
        return Ok(None);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut read_write = vec![cwd.to_owned(), folders.private.clone(), folders.temp.clone()];
    read_write.extend(Sandbox::expand(&settings.caches, home.as_deref()));
    // A worktree of the user's repository commits into the user's git directory: that is what was chosen with it.
    if rules.settings.fleet.isolation == Isolation::Worktree {
        read_write.extend(shared_git_dir(&shared.layout).map_err(|error| error.to_string())?);
    }
    let mut read_only = vec![shared.layout.land_objects()];
    read_only.extend(Sandbox::expand(&settings.read, home.as_deref()));
    let rules = sandbox::Rules {
        read_write,
        read_only,
        hidden: vec![
            shared.layout.state(),
            shared.repository.places().trees.clone(),
            shared.layout.temporary(),
        ],
        tcp_connect: None,
    };
    let strict = settings.mode == SandboxMode::Strict;
    let mode = if strict { sandbox::Mode::Strict } else { sandbox::Mode::Auto };
    Ok(Some(keeper::Sandbox { mode, rules }))
}

/// What a worktree of the user's repository needs of its git directory: all that is in it but our state. Not the directory
/// itself, since what is allowed there is allowed below it too.
fn shared_git_dir(layout: &Layout) -> std::io::Result<Vec<PathBuf>> {
    let git_dir = layout.git_dir();
    // Made by git when it is first needed, which an agent's git could not.
    std::fs::create_dir_all(git_dir.join("logs"))?;
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(git_dir)? {
        let path = entry?.path();
        if path != layout.state() {
            parts.push(path);
        }
    }
    Ok(parts)
}

/// Makes the declared caches that are not there, where nobody has to be asked; what people should hear of it.
pub fn make_caches(settings: &Sandbox) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let make = |MissingCache { written, path }: MissingCache| {
        let name = format!("sandbox.caches: `{written}`");
        match path.map(std::fs::create_dir) {
            // Another one may have been quicker.
            Some(Err(error)) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                format!("{name} cannot be made, so agents cannot write there: {error}")
            }
            Some(_) => format!("{name} was not there and is made"),
            None => format!("{name} is not there, so agents cannot write there; make it, or take it out"),
        }
    };
    settings.missing_caches(home.as_deref()).into_iter().map(make).collect()
}

/// How a command ended, in words that follow its name.
pub fn how_it_ended(exit: &Exit, limit: Duration) -> String {
    match (&exit.reason, exit.code, exit.signal) {
        (Reason::TimedOut, ..) => format!("took longer than {} s and was ended", limit.as_secs()),
        (Reason::OutputLimit, ..) => "printed more than limits.output_bytes and was ended".to_owned(),
        (Reason::CouldNotStart(why), ..) => format!("could not be started: {why}"),
        (_, Some(code), _) => format!("failed with exit code {code}"),
        (_, _, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended in a way that is not known".to_owned(),
    }
}
