//! `adj channel` and `adj turn`: commands for rooms in which agents take turns.

use super::channel_words::{path, turn_words};
use super::chat;
use super::project::Project;
use super::terminal::{Colour, Paint};
use super::text::{self, Money, Table, dash, visible};
use super::{Context, Exit, Failure, Globals};
use api::Method;
use api::types::Nothing;
use api::types::channel::{
    Channel, Entry, ListQuery, Member, MessagesQuery, NewChannel, NewMember, NewMessage, OverrideTo,
    TurnAction, TurnConfig, TurnWord,
};
use clap::{Args, Subcommand, ValueEnum};
use kernel::rooms::TurnEnd;
use machines::turn::{InterruptBehaviour, State};
use std::io::Write;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a channel
    #[command(after_help = "\
Example:
  adj channel create design --topic 'How should the cache expire?' --add anna ben
  adj channel create talk --mode queue --timeout 2m

A running fleet starts an agent from adjutant.toml when its turn comes. Other agents connect from outside. `adj channel \
tail` shows the conversation and lets you take part.")]
    Create(Create),
    /// List channels
    #[command(after_help = "Example:\n  adj channel ls --all")]
    Ls(Ls),
    /// Show a channel's members, whose turn it is, or why nobody has it
    #[command(after_help = "Example:\n  adj channel status design")]
    Status(Status),
    /// Add agents to a channel, at the end of the queue
    #[command(after_help = "\
Example:
  adj channel add design anna ben
  adj channel add design carla --timeout 5m

An agent that is not connected joins the queue when it connects.")]
    Add(Add),
    /// Remove agents from a channel
    #[command(after_help = "Example:\n  adj channel remove design ben")]
    Remove(Remove),
    /// Post a message to a channel
    #[command(after_help = "Example:\n  adj channel post design 'Think of the offline case too.'")]
    Post(Post),
    /// Follow a channel live; on a terminal you can post too
    #[command(after_help = "\
Example:
  adj channel tail design
  adj channel tail design -n 50 --no-follow
  adj channel tail design --json

On a terminal, Enter posts the line that you typed. Lines that start with a slash are commands:
  /who            list the members, and whose turn it is
  /resume         resume the paused turn
  /skip AGENT     skip an agent's current or next turn
  /cancel         end the turn and discard the unfinished message
  /fresh AGENT    start a new session for an agent, without its memory
  /approve        approve the task that is reviewed here
  /changes TEXT   request changes to that task
  /quit           leave; the channel continues")]
    Tail(chat::Tail),
    /// Show or search the messages of a channel
    #[command(after_help = "Example:\n  adj channel history design --search cache")]
    History(History),
    /// Close a channel; its messages can still be read
    #[command(after_help = "Example:\n  adj channel close design")]
    Close(Close),
}

/// What a person's message does while an agent has the turn.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    /// The agent that has the turn gets it at once, the others after the turn
    Inject,
    /// All get it after the turn
    Queue,
    /// The turn pauses until you resume it
    Interrupt,
    /// All get it at once
    Parallel,
}

/// What ends the turn of an agent that Adjutant hosts.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Ends {
    /// The end of its reply
    Reply,
    /// An explicit turn_complete, a timeout, or silence
    Signal,
}

#[derive(Debug, Args)]
pub struct Create {
    /// Name of the channel
    name: String,
    /// What your message does while an agent has the turn [default: inject]
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Time limit of a turn [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u32>,
    /// Time limit of a pause within a turn [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    wait_timeout: Option<u32>,
    /// Subject of the channel, posted as its first message
    #[arg(long, value_name = "TEXT")]
    topic: Option<String>,
    /// Task in REVIEW that this channel reviews
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// What ends the turn of an agent that the fleet starts [default: reply]
    #[arg(long, value_enum)]
    ends: Option<Ends>,
    /// End a turn after this many seconds without output [default: 10]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "10")]
    auto_detect: Option<u32>,
    /// Do not announce turns that timed out
    #[arg(long)]
    no_announce_timeouts: bool,
    /// Do not announce agents that disconnect in their turn
    #[arg(long)]
    no_announce_disconnects: bool,
    /// Agents to add
    #[arg(long, value_name = "AGENT", num_args = 1..)]
    add: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Ls {
    /// Include closed channels
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct Status {
    /// Channel [default: list all]
    channel: Option<String>,
}

#[derive(Debug, Args)]
pub struct Add {
    /// Channel
    channel: String,
    /// Agents to add
    #[arg(required = true, value_name = "AGENT")]
    agents: Vec<String>,
    /// Time limit of their turns [default: the channel's]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u32>,
    /// Time limit of a pause within their turns [default: the channel's]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    wait_timeout: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Remove {
    /// Channel
    channel: String,
    /// Agents to remove
    #[arg(required = true, value_name = "AGENT")]
    agents: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Post {
    /// Channel
    channel: String,
    /// The message
    text: String,
}

#[derive(Debug, Args)]
pub struct History {
    /// Channel
    channel: String,
    /// Show only messages that contain this text, or whose author has this name
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

#[derive(Debug, Args)]
pub struct Close {
    /// Channel
    channel: String,
}

#[derive(Debug, Subcommand)]
pub enum Turn {
    /// End the turn
    #[command(after_help = "Example:\n  adj turn complete design")]
    Complete(OneTurn),
    /// End the turn without posting a message
    #[command(after_help = "Example:\n  adj turn pass design")]
    Pass(OneTurn),
    /// Pause a turn; the agent keeps it until it is resumed
    #[command(after_help = "Example:\n  adj turn wait design --note 'the build' --for 5m")]
    Wait(Wait),
    /// Resume a paused turn, or end it
    #[command(after_help = "\
Example:
  adj turn resume design
  adj turn resume design --as anna --to queued")]
    Resume(Resume),
    /// Skip an agent's current or next turn
    #[command(after_help = "Example:\n  adj turn skip design --as ben")]
    Skip(OneTurn),
    /// End the turn and discard the unfinished message
    #[command(after_help = "Example:\n  adj turn cancel design")]
    Cancel(OneTurn),
    /// Start a new session for an agent, without its memory of the channel
    #[command(after_help = "Example:\n  adj turn fresh design --as anna")]
    Fresh(OneTurn),
}

#[derive(Debug, Args)]
pub struct OneTurn {
    /// Channel
    channel: String,
    /// Agent to act for [default: the calling agent; for a person, the agent whose turn it is]
    #[arg(long = "as", value_name = "AGENT")]
    agent: Option<String>,
}

#[derive(Debug, Args)]
pub struct Wait {
    #[command(flatten)]
    turn: OneTurn,
    /// What the agent is waiting for
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Time limit of the pause [default: the channel's]
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    time: Option<u32>,
}

/// The new state of a paused turn.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum To {
    /// The turn continues
    Active,
    /// The turn ends, and the next agent has it
    Queued,
}

#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    turn: OneTurn,
    /// New state of the turn [default: active]
    #[arg(long, value_enum)]
    to: Option<To>,
}

/// `1m 30s`: as a time is written on the command line.
fn brief(seconds: u32) -> String {
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, unit)| format!("{count}{unit}")).collect::<Vec<_>>().join(" ")
}

/// `90`, `60s`, `5m` or `1h`, in seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let time = match text.parse::<u32>() {
        Ok(seconds) => Some(seconds),
        Err(_) => project::settings::time(text).and_then(|time| u32::try_from(time.as_secs()).ok()),
    };
    time.filter(|seconds| *seconds > 0)
        .ok_or_else(|| "a time is a number with a unit: 30s, 5m, 1h".to_owned())
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Create(command) => create(command, context),
        Command::Ls(command) => ls(command.all, context),
        Command::Status(command) => status(&command, context),
        Command::Add(command) => add(&command, context),
        Command::Remove(command) => remove(&command, context),
        Command::Post(command) => post(&command, context),
        Command::Tail(command) => chat::tail(&command, context),
        Command::History(command) => history(&command, context),
        Command::Close(command) => close(&command, context),
    }
}

fn agent_name(agent: &str) -> Result<machines::names::AgentName, Failure> {
    machines::names::AgentName::new(agent).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
}

fn create(command: Create, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    // What cannot be an agent is told before there is a channel without it.
    for agent in &command.add {
        agent_name(agent)?;
    }
    let usual = TurnConfig::default();
    let config = TurnConfig {
        default_timeout_seconds: command.timeout.unwrap_or(usual.default_timeout_seconds),
        wait_timeout_seconds: command.wait_timeout.unwrap_or(usual.wait_timeout_seconds),
        human_interrupt_mode: command.mode.map_or(usual.human_interrupt_mode, InterruptBehaviour::from),
        announce_timeouts: !command.no_announce_timeouts,
        announce_disconnects: !command.no_announce_disconnects,
        auto_detect_turn_end: command.auto_detect.is_some(),
        auto_detect_silence_seconds: command.auto_detect.unwrap_or(usual.auto_detect_silence_seconds),
    };
    let new = NewChannel {
        name: command.name.clone(),
        turn_config: Some(config),
        topic: command.topic,
        task: command.task,
        ends: command.ends.map(TurnEnd::from),
    };
    make(&project, &new, &command.add, context)
}

/// Makes a channel with its first members, and shows it.
pub fn make(project: &Project, new: &NewChannel, add: &[String], context: Context) -> Result<(), Failure> {
    let made: Channel = project.post("/channels", new)?;
    let path = path(&made.name)?;
    for agent in add {
        let member = NewMember { agent: agent.clone(), ..NewMember::default() };
        let _: Member = project.post(&format!("{path}/members"), &member)?;
    }
    let made: Channel = project.get(&path)?;
    hints(project, &made, &context.globals);
    told(&made, context)
}

/// What a person would wonder about next.
fn hints(project: &Project, channel: &Channel, globals: &Globals) {
    let name = visible(&channel.name);
    if channel.members.is_empty() {
        return Project::hint(globals, &format!("`adj channel add {name} AGENT` lets agents in"));
    }
    let away: Vec<&str> =
        channel.members.iter().filter(|member| member.expected).map(|member| member.agent.as_str()).collect();
    if !away.is_empty() {
        let away = visible(&away.join(", "));
        Project::hint(globals, &format!("{away}: not connected yet; takes its place when it connects"));
    }
    if channel.members.iter().any(|member| member.hosted) {
        project.hint_without_fleet(
            globals,
            "no fleet is running; `adj run` starts the agents when their turn comes",
        );
    }
}

/// The word of an option, as the API has it.
impl From<Mode> for InterruptBehaviour {
    fn from(mode: Mode) -> InterruptBehaviour {
        match mode {
            Mode::Inject => InterruptBehaviour::Inject,
            Mode::Queue => InterruptBehaviour::Queue,
            Mode::Interrupt => InterruptBehaviour::Interrupt,
            Mode::Parallel => InterruptBehaviour::Parallel,
        }
    }
}

impl From<Ends> for TurnEnd {
    fn from(ends: Ends) -> TurnEnd {
        match ends {
            Ends::Reply => TurnEnd::Reply,
            Ends::Signal => TurnEnd::Signal,
        }
    }
}

fn told(channel: &Channel, context: Context) -> Result<(), Failure> {
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(channel))?);
    }
    if context.globals.quiet {
        return Ok(writeln!(context.out, "{}", visible(&channel.name))?);
    }
    Ok(writeln!(context.out, "{}  {}", visible(&channel.name), turn_words(channel))?)
}

fn ls(all: bool, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let channels: Vec<Channel> = project.get_all("/channels", &ListQuery { all, ..ListQuery::default() })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&channels))?);
    }
    if channels.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "no channels; `adj channel create NAME` makes one")?);
    }
    let mut table = Table::new(&["CHANNEL", "MODE", "MEMBERS", "MESSAGES", "COST", "TURN"]);
    for channel in &channels {
        table.row([
            channel.name.clone(),
            channel.mode.to_string(),
            channel.members.len().to_string(),
            channel.messages.to_string(),
            Money::of(&channel.cost).short(),
            turn_words(channel),
        ]);
    }
    Ok(write!(context.out, "{table}")?)
}

fn status(command: &Status, context: Context) -> Result<(), Failure> {
    let Some(name) = &command.channel else { return ls(false, context) };
    let project = Project::find(&context.globals)?;
    let channel: Channel = project.get(&path(name)?)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&channel))?);
    }
    show(&channel, Paint::stdout(&context.globals), context.out)
}

pub fn show(channel: &Channel, paint: Paint, out: &mut dyn Write) -> Result<(), Failure> {
    let mut fact = |name: &str, text: String| writeln!(out, "{name:<9} {text}");
    fact("channel", visible(&channel.name))?;
    if let Some(topic) = &channel.topic {
        fact("topic", text::fitting(&visible(topic)))?;
    }
    if let Some(task) = &channel.task {
        fact("task", visible(task))?;
    }
    fact("turn", turn_words(channel))?;
    fact("mode", channel.mode.to_string())?;
    let config = &channel.turn_config;
    let time = brief;
    let silence = match config.auto_detect_turn_end {
        true => format!(", {} of silence", time(config.auto_detect_silence_seconds)),
        false => String::new(),
    };
    let (turn, wait) = (time(config.default_timeout_seconds), time(config.wait_timeout_seconds));
    fact("limits", format!("{turn} a turn, {wait} a wait{silence}"))?;
    fact("messages", channel.messages.to_string())?;
    fact("cost", Money::of(&channel.cost).words())?;
    if channel.members.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["AGENT", "STATE", "PLACE", "UNHEARD", "TURN", "WAIT", "COST", "NOTE"]);
    for member in &channel.members {
        let place = channel.queue.iter().position(|agent| *agent == member.agent);
        table.row([
            member.agent.clone(),
            member.state.to_string(),
            dash(place.map(|place| place + 1)),
            member.unheard.to_string(),
            time(member.timeout_seconds),
            time(member.wait_timeout_seconds),
            Money::of(&member.cost).short(),
            note(channel, member),
        ]);
        let colour = match member.state {
            State::Active => Colour::Good,
            State::Waiting => Colour::Waits,
            State::Offline => Colour::Dim,
            State::Idle | State::Queued => Colour::Plain,
        };
        table.coloured(1, colour, paint);
    }
    write!(out, "\n{table}")?;
    Ok(())
}

fn note(channel: &Channel, member: &Member) -> String {
    let last = channel.turn.is_none() && channel.cursor.as_deref() == Some(member.agent.as_str());
    let notes = [
        (member.expected, "not connected yet"),
        (member.resting, "goes on with the next message"),
        (member.skipped, "is passed over next"),
        (last, "had the turn last"),
        (!member.hosted && !member.expected && member.state != State::Offline, "from outside"),
    ];
    let notes: Vec<&str> = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
    notes.join(", ")
}

fn add(command: &Add, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = path(&command.channel)?;
    for agent in &command.agents {
        agent_name(agent)?;
    }
    for agent in &command.agents {
        let member = NewMember {
            agent: agent.clone(),
            timeout_seconds: command.timeout,
            wait_timeout_seconds: command.wait_timeout,
        };
        let _: Member = project.post(&format!("{path}/members"), &member)?;
    }
    let channel: Channel = project.get(&path)?;
    hints(&project, &channel, &context.globals);
    told(&channel, context)
}

fn remove(command: &Remove, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = path(&command.channel)?;
    for agent in &command.agents {
        let agent = agent_name(agent)?;
        let _: Channel =
            project.ask(Method::Delete, &format!("{path}/members/{agent}"), &Nothing {}, None)?;
    }
    told(&project.get(&path)?, context)
}

fn post(command: &Post, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = path(&command.channel)?;
    let posted: Entry =
        project.post(&format!("{path}/messages"), &NewMessage { text: command.text.clone() })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&posted))?);
    }
    if !context.globals.quiet {
        writeln!(context.out, "{}", receipts(&posted))?;
    }
    Ok(())
}

/// A message that was posted, and whom it reached.
pub fn receipts(posted: &Entry) -> String {
    let number = posted.number.unwrap_or_default();
    let each = |receipt: &api::types::channel::MemberReceipt| {
        format!("{} {}", visible(&receipt.agent), receipt.receipt)
    };
    let receipts: Vec<String> = posted.receipts.iter().map(each).collect();
    match receipts.is_empty() {
        true => format!("message {number}"),
        false => format!("message {number}: {}", receipts.join(", ")),
    }
}

fn history(command: &History, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = format!("{}/messages", path(&command.channel)?);
    let query = MessagesQuery { search: command.search.clone(), ..MessagesQuery::default() };
    let said: Vec<Entry> = project.get_all(&path, &query)?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&said))?);
    }
    if said.is_empty() && !context.globals.quiet {
        return Ok(writeln!(context.out, "nothing is there")?);
    }
    let form = chat::Form::new(&context.globals, &said);
    for entry in &said {
        form.print(entry, true, context.out)?;
    }
    Ok(())
}

fn close(command: &Close, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let closed: Channel = project.post(&format!("{}/close", path(&command.channel)?), &Nothing {})?;
    told(&closed, context)
}

pub fn turn(command: Turn, context: Context) -> Result<(), Failure> {
    let of = |action: TurnAction, turn: OneTurn| {
        let word = TurnWord { agent: turn.agent, ..TurnWord::of(action) };
        (turn.channel, word)
    };
    let (channel, word) = match command {
        Turn::Complete(turn) => of(TurnAction::Complete, turn),
        Turn::Pass(turn) => of(TurnAction::Pass, turn),
        Turn::Skip(turn) => of(TurnAction::Skip, turn),
        Turn::Cancel(turn) => of(TurnAction::Cancel, turn),
        Turn::Fresh(turn) => of(TurnAction::Fresh, turn),
        Turn::Wait(Wait { turn, note, time }) => {
            let (channel, word) = of(TurnAction::Wait, turn);
            (channel, TurnWord { note, seconds: time, ..word })
        }
        Turn::Resume(Resume { turn, to: Some(To::Queued) }) => {
            let (channel, word) = of(TurnAction::Override, turn);
            (channel, TurnWord { to: Some(OverrideTo::Queued), ..word })
        }
        Turn::Resume(Resume { turn, .. }) => of(TurnAction::Resume, turn),
    };
    let project = Project::find(&context.globals)?;
    let after: Channel = project.post(&format!("{}/turn", path(&channel)?), &word)?;
    told(&after, context)
}
