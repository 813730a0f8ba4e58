//! The surroundings of a step or test: its folders, environment, sandbox and limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::rooms::Seat;
use kernel::world::Task;
use machines::names::{AgentName, RunId, TaskId, WorkerName};

use super::Shared;
use super::authorship::committer;
use super::checkout;
use super::in_force::SettingsInForce;
use base::files::FileError;
use git::{self, GitError};
use process::keeper;
use process::sandbox;
use process::sandbox::places::Machine;
use project::credentials;
use project::layout::Layout;
use project::settings::{Agent, Isolation, Network, Sandbox, SandboxMode, Settings};
use project::workplace::{self, PortsError};

/// Whose tests or hooks they are: the folders and ports that they get.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    pub task: &'a TaskId,
    pub run: Option<&'a RunId>,
    pub worker: Option<&'a WorkerName>,
}

/// Why what a process runs in cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum SurroundingsError {
    #[error(transparent)]
    Ports(#[from] PortsError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The folders of a task, or of a seat, outside of its tree.
pub struct Folders {
    pub private: PathBuf,
    pub temp: PathBuf,
}

impl Folders {
    pub fn make(layout: &Layout, task: &TaskId) -> Result<Folders, SurroundingsError> {
        Folders::at(layout, layout.private(task), layout.temp(task))
    }

    pub fn of_seat(layout: &Layout, seat: &Seat) -> Result<Folders, SurroundingsError> {
        Folders::at(layout, layout.private_of_seat(seat), layout.temp_of_seat(seat))
    }

    fn at(layout: &Layout, private: PathBuf, temp: PathBuf) -> Result<Folders, SurroundingsError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&private);
        made.map_err(FileError::at("make", &private))?;
        let temp = layout.make_temp(temp.clone()).map_err(FileError::at("make", &temp))?;
        Ok(Folders { private, temp })
    }
}

/// What a process in a task's tree is made ready from.
#[derive(Clone, Copy)]
pub struct ProjectContext<'a> {
    pub layout: &'a Layout,
    pub repository: &'a git::Repository,
    /// This program.
    pub adj: &'a Path,
    pub settings: &'a Settings,
}

/// The environment of an agent's program: an allow-list, and what we give.
pub fn environment(
    shared: &Arc<Shared>,
    in_force: &SettingsInForce,
    agent: &Agent,
    task: &Task,
    worker: &WorkerName,
    run: &RunId,
) -> Result<Vec<(String, String)>, SurroundingsError> {
    let settings = match in_force.settings.fleet.isolation {
        // The settings of its git are the person's own, and stay as they are.
        Isolation::Worktree => committer(in_force, &shared.world(), task).settings(&shared.repository),
        Isolation::Clone => Vec::new(),
    };
    let whose = Whose { task: &task.id, run: Some(run), worker: Some(worker) };
    variables(shared.context(&in_force.settings), Names::OfAgent(&agent.env), whose, settings)
}

/// The same for an agent that speaks outside of any task: it has no ports, and its git is that of a clone.
pub fn environment_in_seat(
    layout: &Layout,
    agent: &Agent,
    name: &AgentName,
    seat: &Seat,
) -> Vec<(String, String)> {
    let temporary = layout.temp_of_seat(seat);
    let given =
        workplace::Given { task: "", worker: name.as_str(), run: "", port_base: None, temporary: &temporary };
    let mut variables = workplace::environment(&agent.env, &credentials::variable, &given);
    variables.retain(|(name, _)| !["ADJ_TASK", "ADJ_RUN"].contains(&name.as_str()));
    variables.push(("ADJ_SEAT".to_owned(), seat.to_string()));
    variables.extend(git_variables(unsigned()));
    variables
}

/// The same for tests and hooks, with the variables that are for tests.
pub fn environment_of_tests(
    shared: &Arc<Shared>,
    in_force: &SettingsInForce,
    whose: Whose<'_>,
) -> Result<Vec<(String, String)>, SurroundingsError> {
    variables(
        shared.context(&in_force.settings),
        Names::OfTests(&in_force.settings.test.env),
        whose,
        Vec::new(),
    )
}

/// What of the user's variables is passed on beside the usual ones.
#[derive(Clone, Copy)]
pub enum Names<'a> {
    /// An agent also gets the logins that `adj login` keeps.
    OfAgent(&'a [String]),
    OfTests(&'a [String]),
}

/// `settings` are git's.
pub fn variables(
    context: ProjectContext<'_>,
    names: Names<'_>,
    whose: Whose<'_>,
    settings: Vec<(&'static str, String)>,
) -> Result<Vec<(String, String)>, SurroundingsError> {
    let Whose { task, run, worker } = whose;
    let temporary = context.layout.temp(task);
    let ports = workplace::PortLeases::new(&context.layout.state(), &context.settings.ports);
    let port_base = run.map(|run| ports.lease(run)).transpose()?;
    let given = workplace::Given {
        task: task.as_str(),
        worker: worker.map_or("", |worker| worker.as_str()),
        run: run.map_or("", |run| run.as_str()),
        port_base,
        temporary: &temporary,
    };
    let mut variables = match names {
        Names::OfAgent(names) => workplace::environment(names, &credentials::variable, &given),
        Names::OfTests(names) => workplace::environment(names, &|name| std::env::var_os(name), &given),
    };
    let mut git = unsigned();
    git.extend(settings);
    if context.settings.fleet.isolation == Isolation::Worktree
        && let Some(excludes) = context.repository.excluded_in(task)
    {
        // A worktree shares the user's own excludes, which are not ours to write to.
        let file = context.layout.private(task).join("excludes");
        std::fs::write(&file, excludes).map_err(FileError::at("write", &file))?;
        git.push(("core.excludesFile", file.to_string_lossy().into_owned()));
    }
    variables.extend(git_variables(git));
    Ok(variables)
}

/// Whoever signs is the person, whose keys are not there.
fn unsigned() -> Vec<(&'static str, String)> {
    vec![("commit.gpgsign", "false".to_owned()), ("tag.gpgsign", "false".to_owned())]
}

/// Settings of git as variables.
fn git_variables(settings: Vec<(&str, String)>) -> Vec<(String, String)> {
    let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (n, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{n}"), key.to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{n}"), value));
    }
    variables
}

/// What a process is for.
#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    /// An agent's step, and the program that it starts with.
    Step(&'a Agent, &'a str),
    /// The same of an agent that speaks outside of any task.
    Reply(&'a Agent, &'a str),
    Tests,
    Hook,
    /// A person's, in the tree of this agent, and the program that it starts with.
    Shell(&'a Agent, &'a str),
}

/// What a process may reach: its tree, its own folders and, if it is at work, the declared caches; of ours only the shared
/// objects, and an agent the socket.
pub fn sandbox(
    context: ProjectContext<'_>,
    cwd: &Path,
    folders: &Folders,
    purpose: Purpose,
    run: Option<&RunId>,
) -> Result<Option<keeper::Sandbox>, SurroundingsError> {
    let settings = &context.settings.sandbox;
    if settings.mode == SandboxMode::Off {
        return Ok(None);
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let variable = |name: &str| std::env::var_os(name);
    let agents = agents::homes();
    let machine = Machine { home: home.as_deref(), agents: &agents, variable: &variable };
    let strict = settings.mode == SandboxMode::Strict;
    let mut read_write = vec![cwd.to_owned(), folders.private.clone(), folders.temp.clone()];
    let speaks = matches!(purpose, Purpose::Reply(..));
    let caches = Sandbox::expand(&settings.caches, home.as_deref());
    let mut read_only = vec![context.layout.land_objects()];
    // Whoever only speaks builds nothing.
    if speaks { &mut read_only } else { &mut read_write }.extend(caches);
    read_only.extend(Sandbox::expand(&settings.read, home.as_deref()));
    let mut hidden = vec![context.repository.places().trees.clone(), context.layout.temporary()];
    let mut concealed = Sandbox::expand(&settings.hide, home.as_deref());
    let sandbox::Support { namespaces, processes, bubblewrap, .. } = sandbox::support_by(settings.namespaces);
    let worktree = context.settings.fleet.isolation == Isolation::Worktree && !speaks;
    let tests = matches!(purpose, Purpose::Tests);
    let linked =
        if tests || strict { checkout::linked(context.repository, context.settings)? } else { Vec::new() };
    let mut instead = Vec::new();
    if worktree {
        let places = context.repository.worktree_places(cwd, namespaces)?;
        read_write.extend(places.writable);
        instead = places.instead;
        // With namespaces alone our state in it is hidden again; Landlock leaves it open around that.
        let shows = strict || (tests && namespaces);
        read_only.extend(shows.then(|| context.repository.git_dir().to_owned()));
    }
    if tests {
        // Tests see the tree that they are run on: what they need of the checkout is linked, or named in the settings.
        concealed.extend(hidden_checkouts(context.repository, namespaces));
        read_only.extend(linked.iter().cloned());
        read_only.extend(toolchains_in_checkout(&machine, context.repository));
    }
    // Files around what Landlock hides cannot be read once they are replaced, and those of a git directory are.
    if worktree && namespaces { &mut concealed } else { &mut hidden }.push(context.layout.state());
    let program = match purpose {
        Purpose::Step(agent, program) | Purpose::Reply(agent, program) => {
            read_only.extend(context.layout.socket().parent().map(Path::to_owned));
            read_only.extend(machine.passed_on(&agent.env));
            read_only.extend(strict.then(|| context.adj.to_owned()));
            Some(program)
        }
        Purpose::Shell(agent, program) => {
            read_only.extend(machine.passed_on(&agent.env));
            Some(program)
        }
        Purpose::Tests | Purpose::Hook => None,
    };
    let own = match purpose {
        Purpose::Step(agent, _) | Purpose::Reply(agent, _) => agent.adapter.adapter().sees_its_home(),
        Purpose::Tests | Purpose::Hook | Purpose::Shell(..) => false,
    };
    concealed.extend(machine.hidden(program.filter(|_| own)));
    concealed.extend(machine.sockets().into_iter().map(|socket| socket.path));
    if namespaces {
        // What Landlock alone closes can be connected to all the same, and the folders around it not be listed.
        let open = [read_write.as_slice(), &read_only, &hidden].concat();
        concealed.extend(machine.sockets_at_home(&open));
    }
    let only = strict.then(|| machine.system(program).into_iter().chain(linked).collect());
    let no_network = tests && settings.network == Network::None;
    let rules = sandbox::Rules {
        read_write,
        instead,
        read_only,
        hidden,
        concealed,
        only,
        namespaces,
        bubblewrap,
        processes,
        // What lies there is memory that no process of it is seen to use.
        shared_memory_bytes: limits(context.settings).memory_bytes,
        network: if no_network { sandbox::Network::None } else { sandbox::Network::Open },
        tcp_connect: None,
        // On a loopback of its own it meets nobody.
        tcp_bind: match no_network {
            true => None,
            false => Some(ports_of(context, run)?),
        },
    };
    let mode = if strict { sandbox::Mode::Strict } else { sandbox::Mode::Auto };
    Ok(Some(keeper::Sandbox { mode, rules }))
}

/// The ports at which a process may listen: its run's block, what the settings add, and what the system gives to anyone.
fn ports_of(context: ProjectContext<'_>, run: Option<&RunId>) -> Result<Vec<(u16, u16)>, SurroundingsError> {
    let leased = workplace::PortLeases::new(&context.layout.state(), &context.settings.ports);
    let block = run.map(|run| leased.block(run)).transpose()?;
    let mut ports: Vec<_> = block.into_iter().map(|block| (*block.start(), *block.end())).collect();
    ports.extend(context.settings.sandbox.ports.iter().map(|port| (*port, *port)));
    ports.extend(workplace::system_ports::free());
    Ok(ports)
}

/// The places by which the person's checkouts are hidden from tests. Without namespaces what is hidden cannot be opened again
/// with something hidden inside, as the git directory has; so what stands beside it is hidden instead.
fn hidden_checkouts(repository: &git::Repository, namespaces: bool) -> Vec<PathBuf> {
    let git_dir = repository.git_dir();
    let hide = |checkout: PathBuf| match namespaces || !git_dir.starts_with(&checkout) {
        true => vec![checkout],
        false => {
            let entries = std::fs::read_dir(&checkout).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path != git_dir).collect()
        }
    };
    repository.checkouts().into_iter().flat_map(hide).collect()
}

/// Whoever keeps the home directory itself in git has toolchains in the checkout, and tests need them.
fn toolchains_in_checkout(machine: &Machine<'_>, repository: &git::Repository) -> Vec<PathBuf> {
    let root = &repository.places().root;
    let home = machine.home.and_then(|home| home.canonicalize().ok());
    if repository.bare() || !home.is_some_and(|home| home.starts_with(root)) {
        return Vec::new();
    }
    machine.system(None).into_iter().filter(|path| path.starts_with(root)).collect()
}

/// What the processes of one step, test run or hook may use together.
pub fn limits(settings: &Settings) -> keeper::Limits {
    let memory_bytes = settings.limits.memory.or_else(keeper::usual_memory);
    keeper::Limits { processes: Some(settings.limits.processes), memory_bytes, file_bytes: None }
}
