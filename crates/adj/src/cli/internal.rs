//! `adj internal`: programs that adj starts itself, and tools of our own tests. Not for people, and not in the help; none
//! of it is promised to stay.

#[cfg(debug_assertions)]
mod fixtures;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::project::Project;
use super::{Cli, Context, Exit, Failure};
use agents::script;
use api::{self, Control, FleetStatus, Problem};
use clap::{CommandFactory, Subcommand};
use fleet::KeyFor;
use kernel::config::Role;
use machines::Wire;
use machines::names::{AgentName, RunId};
use server::{self, Events, HttpServer, Listener, MountedProject, ProjectServices, Socket, Tokens};
use tokio::sync::oneshot;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List every command that people see, one in a line
    Commands,
    /// Own the project and serve its socket until standard input closes; nothing runs
    Serve {
        /// Mint a token as well, and print it: AGENT:ROLE:RUN
        #[arg(long, value_name = "AGENT:ROLE:RUN")]
        mint: Option<String>,
        /// Take back the tokens of a run
        #[arg(long, value_name = "RUN")]
        revoke: Option<RunId>,
    },
    /// Be a scripted agent: play the next step of a scenario
    Script {
        /// The scenario file
        scenario: PathBuf,
    },
    #[cfg(debug_assertions)]
    #[command(flatten)]
    StandIn(fixtures::StandIn),
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Commands => commands(context),
        Command::Serve { mint, revoke } => serve(mint.as_deref(), revoke.as_ref(), context),
        Command::Script { scenario } => {
            let sessions = super::set_variable("ADJ_SCRIPT_SESSIONS").map(PathBuf::from);
            let sessions = sessions.unwrap_or_else(|| std::env::temp_dir().join("adj-script-sessions"));
            let code = script::play(&scenario, &sessions, io::stdin(), &mut *context.out)
                .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
            end(context, code)
        }
        #[cfg(debug_assertions)]
        Command::StandIn(fixture) => fixtures::run(fixture, context),
    }
}

/// An agent's exit code is its own, and may be any.
fn end(context: Context, code: u8) -> Result<(), Failure> {
    context.out.flush()?;
    if code != 0 {
        std::process::exit(code.into());
    }
    Ok(())
}

fn commands(context: Context) -> Result<(), Failure> {
    fn visit(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        let below: Vec<_> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
        if below.is_empty() {
            found.push(name.trim_start().to_owned());
        }
        for command in below {
            visit(command, &format!("{name} {}", command.get_name()), found);
        }
    }
    let mut found = Vec::new();
    visit(&Cli::command(), "", &mut found);
    for line in found {
        writeln!(context.out, "{line}")?;
    }
    Ok(())
}

fn serve(mint: Option<&str>, revoke: Option<&RunId>, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let owner = project.owner_of(project.own_log()?)?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error.to_string());
    let tokens = Arc::new(Tokens::open(&project.folder()).map_err(|error| failed(&error))?);
    if let Some(run) = revoke {
        tokens.revoke(run).map_err(|error| failed(&error))?;
    }
    let minted = mint.map(|wish| minted(&tokens, wish)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async {
        let (socket, listener) = Socket::bind(&project.folder()).await.map_err(|error| failed(&error))?;
        let (stop, stopped) = oneshot::channel();
        let stop = Arc::new(Idle { stop: Mutex::new(Some(stop)), since: base::clock::now() });
        let asked: Arc<dyn api::Project + Send + Sync> = Arc::new(owner.handle());
        let project = MountedProject::new(ProjectServices {
            project: asked.clone(),
            host: project.host(),
            control: stop.clone(),
            tokens,
            events: Events::start(asked, owner.handle().follow()),
            streams: None,
        });
        std::thread::spawn(move || {
            // Whatever comes is thrown away; what counts is that it ends.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            stop.stop(true);
        });
        let listens = Listens { socket: socket.path(), token: minted.as_deref() };
        writeln!(context.out, "{}", super::text::json(&listens))?;
        context.out.flush()?;
        let stop = async move { drop(stopped.await) };
        server::serve(
            Listener::Socket(listener, socket.address()),
            HttpServer::of_socket("project", project),
            stop,
        )
        .await;
        drop(socket);
        Ok(())
    });
    runtime.shutdown_background();
    ended
}

/// Where this owner listens, and the token that it was asked for.
#[derive(serde::Serialize)]
struct Listens<'s> {
    socket: &'s Path,
    token: Option<&'s str>,
}

fn minted(tokens: &Tokens, wish: &str) -> Result<String, Failure> {
    let parts: Vec<&str> = wish.split(':').collect();
    let bad = || Failure::new(Exit::Usage, "--mint takes AGENT:ROLE:RUN");
    let [agent, role, run] = parts[..] else { return Err(bad()) };
    let agent: AgentName = agent.parse().map_err(|_| bad())?;
    let (role, run): (Role, RunId) = (Role::read(role).ok_or_else(bad)?, run.parse().map_err(|_| bad())?);
    tokens
        .mint(&agent, role, KeyFor::Run(&run))
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

/// An owner that runs nothing.
struct Idle {
    stop: Mutex<Option<oneshot::Sender<()>>>,
    since: i64,
}

impl Control for Idle {
    fn status(&self) -> FleetStatus {
        let pid = std::process::id();
        FleetStatus {
            running: false,
            pid,
            url: None,
            listens: None,
            shared_port: None,
            since: self.since,
            workers: 0,
            sandbox: None,
            tests: Vec::new(),
        }
    }

    fn start(&self, _: Option<u32>) -> Result<(), Problem> {
        Err(Problem::new(409, "NOT_SERVED", "this owner runs nothing"))
    }

    fn stop(&self, _: bool) {
        if let Some(stop) = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = stop.send(());
        }
    }

    fn reread(&self) {}
}
