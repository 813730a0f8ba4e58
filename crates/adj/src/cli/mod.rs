//! The command line. It reads arguments, prints text or one JSON document, and returns an exit code for each kind of result.
//!
//! Each family of commands is a module in this directory, with one line in [`Command`] and one in [`run`].

mod address;
mod agent;
mod ask;
mod background;
mod channel;
mod channel_words;
mod chat;
mod client;
mod completions;
mod connection;
mod demo;
mod demo_people;
mod download;
mod fleet;
mod help;
mod hosted;
mod internal;
mod issues;
mod keyboard;
mod live;
mod live_source;
mod log;
mod login;
mod machine;
mod man;
mod mcp;
mod named;
mod process;
mod project;
mod ready;
mod review;
mod run;
mod runs;
mod salvage;
mod screen;
mod selection;
mod serve;
mod service;
mod settings;
mod shell;
mod sim;
mod spec;
mod state;
mod story_lines;
mod task;
mod terminal;
mod text;
mod token;
mod transcript;
mod waiting;
mod watch;
mod worker;

pub use api::{Exit, Failure};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a fleet of coding agents on the tasks of a git repository.
#[derive(Debug, Parser)]
#[command(name = "adj", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = api::failure::HELP, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Project directory [default: the git repository around the current directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Vec<PathBuf>,
    /// Connect to a server at http(s)://HOST or unix:PATH [env: ADJ_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// Print one JSON document, errors included
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results only: no progress, no hints
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Disable colors [env: NO_COLOR]
    #[arg(long, global = true)]
    pub no_color: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create adjutant.toml and check this machine
    Init(settings::Init),
    /// Add, list, edit, move and cancel tasks
    #[command(subcommand)]
    Task(task::Command),
    /// Show all tasks by status
    #[command(after_help = task::BOARD_HELP)]
    Board,

    /// Run the fleet: agents work on open tasks until you stop it
    Run(run::Run),
    /// Serve projects over HTTP; the fleet stays off until you start it
    Serve(serve::Serve),
    /// Print a one-time sign-in link for the server's page
    Url(serve::Url),
    /// Install, inspect and remove the server's systemd unit
    #[command(subcommand)]
    Service(service::Command),
    /// Create, list and revoke tokens for the server
    #[command(subcommand)]
    Token(token::Command),
    /// List workers and what each of them is doing
    #[command(after_help = fleet::PS_HELP)]
    Ps,
    /// Create workers
    Spawn(fleet::Spawn),
    /// Assign a task to a worker
    Assign(worker::Assign),
    /// Start an agent on a task now
    Start(runs::Start),
    /// List runs: one agent working on one task
    Runs(runs::Runs),
    /// Pause a run: its agent stops until you resume it
    Pause(runs::Pause),
    /// Resume a paused or failed run
    Resume(runs::Resume),
    /// Abort a run; its work is saved
    Abort(runs::Abort),
    /// List the tool calls of a run
    Tools(runs::Tools),
    /// Follow the events of runs, live
    Watch(watch::Watch),
    /// Show the latest messages and tool calls of an agent
    Peek(transcript::Peek),
    /// Show the transcript of an agent
    Logs(transcript::Logs),
    /// Open a shell in a task's working tree, in its agent's sandbox
    Shell(shell::Shell),
    /// Stop a worker's agent now; its work is saved
    Kill(worker::Kill),
    /// Retry a failed task
    Retry(worker::Retry),
    /// Remove a worker's working tree; its content is saved first
    Cleanup(worker::Cleanup),
    /// Remove all workers and their trees; their content is saved first
    Clean(worker::Clean),
    /// Print all workers as JSON (state.json format)
    #[command(after_help = worker::STATE_HELP)]
    State,
    /// Stop the fleet; all state is kept
    Stop(worker::Stop),

    /// Show a task's changes against main
    Diff(review::Diff),
    /// Review finished work: approve it or request changes
    Review(review::Review),
    /// Approve a task and queue it for merging
    Merge(review::Merge),
    /// Revert a merged task, in a new task that is tested and merged
    Undo(review::Undo),
    /// List approved tasks that are waiting to merge
    #[command(after_help = fleet::QUEUE_HELP)]
    Queue,
    /// List everything that needs you, with the commands to answer it
    #[command(after_help = waiting::HELP)]
    Waiting,
    /// List pending approvals: tool calls, budgets and limits
    Approvals(fleet::Approvals),
    /// Approve a pending tool call, budget or limit
    #[command(after_help = fleet::APPROVE_HELP)]
    Approve(fleet::Approve),
    /// Deny a pending tool call, budget or limit
    #[command(after_help = fleet::DENY_HELP)]
    Deny(fleet::Decide),
    /// Ask a question that a person answers with text
    Ask(ask::Ask),
    /// Answer a question, or abandon it
    Answer(ask::Answer),
    /// Submit, show and list specs
    #[command(subcommand)]
    Spec(spec::Command),
    /// List questions to the architect and to you
    Requests(spec::Requests),
    /// Show the architect's state and queue
    #[command(after_help = spec::ARCHITECT_HELP)]
    Architect,
    /// List, disable and enable agents
    #[command(subcommand)]
    Agent(agent::Command),
    /// Store your login for an agent program
    Login(login::Login),
    /// Create and join channels: rooms where agents take turns
    #[command(subcommand)]
    Channel(channel::Command),
    /// End, pause or resume a turn in a channel
    #[command(subcommand)]
    Turn(channel::Turn),
    /// List and restore saved work
    #[command(subcommand)]
    Salvage(salvage::Command),

    /// Show cost and tokens
    Cost(fleet::Cost),
    /// Show the history of a task, a worker or the whole fleet
    History(log::History),
    /// Explain what a task, a worker or the fleet is waiting for
    Why(log::Why),

    /// Show, check and trust the settings
    #[command(subcommand)]
    Config(settings::Config),
    /// Show the prompts that agents receive
    #[command(subcommand)]
    Prompt(settings::Prompt),
    /// Check this machine and repository
    Doctor(settings::Doctor),
    /// Check the log: hashes, events and invariants
    Verify,
    /// Export the whole log to a file, as JSON lines
    Export(log::Transfer),
    /// Back up a project's log and streams, also while it runs
    Backup(log::Backup),
    /// Import an exported log or a backup
    Import(log::Transfer),
    /// Print the five state machines and try events on them
    #[command(subcommand)]
    Machine(machine::Command),
    /// Run a fleet on a sample repository; no model or key needed
    Demo(demo::Demo),
    /// Simulate fleets with a virtual clock and injected faults
    Sim(sim::Sim),
    /// Serve this project's tools to an AI assistant (MCP over stdio)
    #[command(after_help = mcp::HELP)]
    Mcp,
    /// Print a shell completion script
    Completions(completions::Completions),
    /// Print the manual page
    Man(man::Man),
    #[command(subcommand, hide = true)]
    Internal(internal::Command),
}

/// What a command works with: what was said for all of them, and where its output goes.
pub struct Context<'a> {
    pub globals: Globals,
    pub out: &'a mut dyn Write,
}

/// Parses, runs, reports, and ends with the code that `adj --help` lists.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = process::run(&arguments) {
        return code;
    }
    let mut stdout = io::stdout().lock();
    // A wrong command line is answered as JSON too where that was asked for, and it could not be parsed to know.
    let json = arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json");
    let matches = match told_once(Cli::command()).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, json, &mut stdout),
    };
    let Cli { mut globals, command } = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json, &mut stdout),
    };
    globals.server = globals.server.or_else(|| set_variable("ADJ_SERVER"));
    globals.no_color |= set_variable("NO_COLOR").is_some();
    let context = Context { globals, out: &mut stdout };
    let quiet = context.globals.quiet;
    match run(command, context).and_then(|()| Ok(stdout.flush()?)) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => failure.report(json, quiet, &mut stdout, &mut io::stderr().lock()).into(),
    }
}

impl Command {
    /// Whether it follows the settings of a project and does not say itself what is wrong with them.
    fn uses_settings(&self) -> bool {
        !matches!(
            self,
            Command::Init(_)
                | Command::Config(_)
                | Command::Doctor(_)
                | Command::Prompt(_)
                | Command::Run(_)
                | Command::Serve(_)
                | Command::Service(_)
                | Command::Url(_)
                | Command::Token(_)
                | Command::Login(_)
                | Command::Machine(_)
                | Command::Demo(_)
                | Command::Sim(_)
                | Command::Mcp
                | Command::Verify
                | Command::Export(_)
                | Command::Import(_)
                | Command::Backup(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::Internal(_)
        )
    }
}

fn run(command: Command, context: Context) -> Result<(), Failure> {
    if command.uses_settings() {
        project::Project::warn_of_invalid_settings(&context.globals);
    }
    match command {
        Command::Init(command) => settings::init(&command, context),
        Command::Task(command) => task::run(command, context),
        Command::Board => task::board(context),
        Command::Ps => fleet::ps(context),
        Command::Spawn(command) => fleet::spawn(&command, context),
        Command::Assign(command) => worker::assign(&command, context),
        Command::Start(command) => runs::start(&command, context),
        Command::Runs(command) => runs::runs(&command, context),
        Command::Pause(command) => runs::pause(&command, context),
        Command::Resume(command) => runs::resume(&command, context),
        Command::Abort(command) => runs::abort(&command, context),
        Command::Tools(command) => runs::tools(&command, context),
        Command::Watch(command) => watch::watch(&command, context),
        Command::Peek(command) => transcript::peek(&command, context),
        Command::Logs(command) => transcript::logs(&command, context),
        Command::Shell(command) => shell::run(&command, context),
        Command::Kill(command) => worker::kill(&command, context),
        Command::Retry(command) => worker::retry(&command, context),
        Command::Cleanup(command) => worker::cleanup(&command, context),
        Command::Clean(command) => worker::clean(&command, context),
        Command::State => worker::state(context),
        Command::Stop(command) => worker::stop(&command, context),
        Command::Diff(command) => review::diff(&command, context),
        Command::Review(command) => review::review(&command, context),
        Command::Merge(command) => review::merge(&command, context),
        Command::Undo(command) => review::undo(&command, context),
        Command::Waiting => waiting::waiting(context),
        Command::Approvals(command) => fleet::approvals(&command, context),
        Command::Approve(command) => fleet::approve(&command, context),
        Command::Deny(command) => fleet::deny(&command, context),
        Command::Ask(command) => ask::ask(&command, context),
        Command::Answer(command) => ask::answer(&command, context),
        Command::Spec(command) => spec::run(command, context),
        Command::Requests(command) => spec::requests(&command, context),
        Command::Architect => spec::architect(context),
        Command::Queue => fleet::queue(context),
        Command::Agent(command) => agent::run(command, context),
        Command::Login(command) => login::run(&command, context),
        Command::Channel(command) => channel::run(command, context),
        Command::Turn(command) => channel::turn(command, context),
        Command::Salvage(command) => salvage::run(command, context),
        Command::Cost(command) => fleet::cost(&command, context),
        Command::History(command) => log::history(&command, context),
        Command::Why(command) => log::why(&command, context),
        Command::Config(command) => settings::config(&command, context),
        Command::Prompt(command) => settings::prompt(&command, context),
        Command::Doctor(command) => settings::doctor(&command, context),
        Command::Verify => log::verify(context),
        Command::Export(command) => log::export(&command, context),
        Command::Backup(command) => log::backup(&command, context),
        Command::Import(command) => log::import(&command, context),
        Command::Machine(command) => machine::run(command, context),
        Command::Run(command) => run::run(&command, context),
        Command::Serve(command) => serve::run(&command, context),
        Command::Url(command) => serve::url(&command, context),
        Command::Service(command) => service::run(command, context),
        Command::Token(command) => token::run(command, context),
        Command::Demo(command) => demo::run(&command, context),
        Command::Sim(command) => sim::run(&command, context),
        Command::Mcp => mcp::run(context),
        Command::Completions(command) => completions::run(&command, context),
        Command::Man(command) => man::run(&command, context),
        Command::Internal(command) => internal::run(command, context),
    }
}

/// The global options are listed by `adj --help`; the help of each command names them in one line.
fn told_once(mut command: clap::Command) -> clap::Command {
    // Global options and the width reach the subcommands only when the tree is built.
    command = command.term_width(help::WIDTH);
    command.build();
    help::grouped(command.mut_subcommands(brief))
}

fn brief(command: clap::Command) -> clap::Command {
    const GLOBALS: &str =
        "Global options: --project, --server, --json, --quiet, --no-color (see `adj --help`)";
    let own = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    let names: Vec<_> = Globals::augment_args(clap::Command::new(""))
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    command
        .mut_args(|arg| if names.contains(arg.get_id()) { arg.hide(true) } else { arg })
        .after_help(format!("{own}{GLOBALS}"))
        .mut_subcommands(brief)
}

/// A variable that is set and not empty; an empty one means the same as none.
fn set_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The command that was probably meant by one that there is not. Clap itself does not see two letters that are swapped.
fn meant(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let cli = Cli::command();
    let before: Vec<String> = std::env::args().skip(1).take_while(|argument| argument != wrong).collect();
    let below = before.iter().rev().find_map(|name| cli.find_subcommand(name));
    let known: Vec<&str> = below.unwrap_or(&cli).get_subcommands().map(clap::Command::get_name).collect();
    if below.is_none()
        && let Some(here) = help::also_called(wrong)
    {
        return Some(here.to_owned());
    }
    let near = ::project::settings::nearest(wrong, known)?;
    Some(below.map_or_else(|| format!("adj {near}"), |below| format!("adj {} {near}", below.get_name())))
}

/// Help and version are answers; everything else that clap says is a wrong command line.
fn usage(error: &clap::Error, json: bool, stdout: &mut dyn Write) -> ExitCode {
    use clap::error::ErrorKind;
    // One word for one thing: what clap calls a tip is a hint everywhere else.
    let mut text = error.render().to_string().replace("\n\n  tip: ", "\nhint: ");
    if let Some(meant) = meant(error) {
        // In place of clap's own, which lists whatever looks a little like it.
        let said = text.split("\n\n").next().unwrap_or_default();
        let (before, _) = said.split_once("\nhint: ").unwrap_or((said, ""));
        text = format!("{before}\nhint: did you mean `{meant}`?{}", &text[said.len()..]);
    }
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Whoever closed the pipe has read enough.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        return Exit::Done.into();
    }
    if json {
        let said = text.split("\n\n").next().unwrap_or_default();
        let (message, hint) =
            said.split_once("\nhint: ").unwrap_or((said, "`adj --help` lists what there is"));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let failure = Failure::new(Exit::Usage, message).hint(hint);
        return failure.report(json, false, stdout, &mut io::stderr().lock()).into();
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
    Exit::Usage.into()
}
