//! `adjutant.toml`: the user's settings for this project.
//!
//! Everything here reads one table of keys ([`keys::SECTIONS`]). Invariants: a missing file means the
//! defaults; an invalid file gives no settings at all, and all its errors at once; the kernel's rules
//! read [`Settings::kernel`] and nothing else.

pub mod include;
pub mod keys;
mod nearest;
mod policy;
mod schema;
mod show;
mod template;
pub mod trust;
mod values;

#[cfg(test)]
mod docs_test;
#[cfg(test)]
mod tests;

pub use keys::SERVER_PORT;
pub use nearest::nearest;
pub use policy::shipped as shipped_tools;
pub use schema::schema;
pub use show::show;
pub use template::{CommitHooks, TemplateValues, defaults, template};
pub use values::time;

use agents::AdapterKind;
use kernel::config::{self, Colour, Micros, Proposals, Restore, Review, Role, ToolRule};
use kernel::waiting::Severity;
use machines::names::{AgentName, ServiceName};
use machines::run::AgentKind;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use values::{Scope, Values};

/// The name of the file, at the root of the project.
pub use git::names::SETTINGS_FILE as FILE;
/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// The longest time that a key may name.
pub const TIME_MAX: Duration = Duration::from_secs(30 * 86_400);

/// All that the user settled, each with its default where nothing was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub project: Project,
    pub fleet: Fleet,
    pub test: Test,
    pub agents: BTreeMap<AgentName, Agent>,
    pub budget: Budget,
    pub tickets: Tickets,
    pub sandbox: Sandbox,
    pub policy: Policy,
    pub architect: Architect,
    pub prompts: PromptFiles,
    pub landing: Landing,
    pub hooks: Hooks,
    pub notify: Notify,
    pub webhooks: BTreeMap<String, Webhook>,
    pub worktree: Worktree,
    pub trash: Kept,
    pub logs: Kept,
    pub ports: Ports,
    pub services: BTreeMap<ServiceName, Service>,
    pub limits: Limits,
}

/// `[project]`
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// The branch that work lands on; never begins with `-`.
    pub main: String,
    /// Turns of a run, for agents that say nothing of it.
    pub max_turns: Option<u32>,
    pub merge: Merge,
    pub credit: Credit,
}

/// `[fleet]`
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Always among the agents.
    pub agent: AgentName,
    pub workers: u32,
    pub isolation: Isolation,
    /// As written: [`crate::layout::Layout::trees`] makes a path of it.
    pub trees: String,
    pub max_steps: u32,
    pub max_fix_rounds: u32,
    pub step_timeout: Duration,
    pub stop_timeout: Duration,
    pub review: Review,
    pub plan: Plan,
    pub restore: Restore,
}

/// `[test]`
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Absent: whatever [`crate::workplace::ecosystem::find`] finds.
    pub command: Option<String>,
    pub timeout: Duration,
    /// Names of variables that tests and hooks get beside the usual ones.
    pub env: Vec<String>,
    /// Whether main must pass its own tests before agents are started.
    pub check_main: bool,
}

/// `[agents.NAME]`
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub adapter: AdapterKind,
    /// Never empty.
    pub command: Vec<String>,
    pub author: Author,
    pub model: Option<String>,
    pub role: Role,
    pub kind: AgentKind,
    pub prompt: Option<String>,
    /// Absent: every tool. Empty: none.
    pub allowed_tools: Option<Vec<String>>,
    pub max_turns: Option<u32>,
    /// Names of variables, never Adjutant's own.
    pub env: Vec<String>,
    /// Always among the services.
    pub service: Option<ServiceName>,
    pub resume: bool,
    pub budget: Option<Micros>,
}

/// `[budget]`; absent means no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    pub run: Option<Micros>,
    pub task: Option<Micros>,
    pub day: Option<Micros>,
    pub step: Micros,
}

/// `[tickets]`
#[derive(Clone, Debug, PartialEq)]
pub struct Tickets {
    pub source: TicketSource,
    /// Relative to the project.
    pub dir: PathBuf,
}

/// `[sandbox]`
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    pub mode: SandboxMode,
    /// Who makes the namespaces.
    pub namespaces: process::sandbox::Namespaces,
    /// As written: absolute, or from `~/`. [`Sandbox::expand`] makes paths of them.
    pub caches: Vec<String>,
    pub read: Vec<String>,
    /// Besides [`process::sandbox::places::HIDDEN`].
    pub hide: Vec<String>,
    /// Where programs may listen, besides the block of their run.
    pub ports: Vec<u16>,
    /// Of tests.
    pub network: Network,
}

/// `[policy]`
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub red: Vec<String>,
    pub yellow: Vec<String>,
    pub green: Vec<String>,
    pub lead_may_complete: bool,
    pub max_review_cycles: u32,
    pub max_landing_rounds: u32,
    pub cap_in_progress: Option<u32>,
    pub cap_per_agent: Option<u32>,
    pub proposals: Proposals,
}

/// `[architect]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architect {
    /// Always among the agents; absent where there is no architect.
    pub agent: Option<AgentName>,
    pub escalation: Duration,
    pub raises_budgets: bool,
}

/// `[trash]` and `[logs]`: how long something is kept, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub age: Duration,
    pub bytes: u64,
}

/// `[prompts]`: files in place of the shipped texts, relative to the project.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptFiles {
    pub init: Option<PathBuf>,
    pub step: Option<PathBuf>,
    pub test_failure: Option<PathBuf>,
    pub merge_conflict: Option<PathBuf>,
    pub turn: Option<PathBuf>,
    pub spec: Option<PathBuf>,
    pub review: Option<PathBuf>,
    pub question: Option<PathBuf>,
    pub budget: Option<PathBuf>,
}

/// `[landing]`
#[derive(Clone, Debug, PartialEq)]
pub struct Landing {
    pub by: LandBy,
    /// The user's name for it.
    pub remote: String,
    /// What opens a pull request.
    pub open: Hook,
}

/// `[hooks]`: what to run; running it is the runner's.
#[derive(Clone, Debug, PartialEq)]
pub struct Hooks {
    pub worktree_create: Option<Hook>,
    pub worktree_remove: Option<Hook>,
    pub step_before: Option<Hook>,
    pub step_after: Option<Hook>,
    pub notify: Option<Hook>,
    pub landed: Option<Hook>,
}

/// One command line of the user's, for the shell.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub command: String,
    pub timeout: Duration,
}

/// `[notify]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    pub desktop: bool,
    /// The least that anybody here is told of.
    pub severity: Severity,
}

/// `[webhooks.NAME]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    pub secret_env: Option<String>,
    /// The least that it is told of.
    pub severity: Severity,
}

/// `[worktree]`: patterns over paths inside the project.
#[derive(Clone, Debug, PartialEq)]
pub struct Worktree {
    pub copy: Vec<String>,
    pub symlink: Vec<String>,
}

/// `[ports]`; the last port of the last block is a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Ports {
    pub first: u16,
    pub block: u16,
    pub blocks: u16,
}

/// `[services.NAME]`
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    pub health: Health,
    pub timeout: Duration,
}

/// How a service is asked whether it is well.
#[derive(Clone, Debug, PartialEq)]
pub enum Health {
    /// A command line for the shell; 0 is well.
    Command(String),
    /// A connection that is accepted is well.
    Tcp { host: String, port: u16 },
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Those that the rules read.
    pub rules: config::Limits,
    /// Of a program that waits for its model.
    pub silence: Duration,
    /// How often the remote is asked for its main.
    pub pull_request: Duration,
    pub ticket_bytes: u64,
    pub tickets: usize,
    pub line_bytes: usize,
    pub output_bytes: u64,
    pub test_output_bytes: usize,
    pub copy_files: usize,
    pub copy_bytes: u64,
    pub processes: u64,
    /// Absent is a share of the machine's.
    pub memory: Option<u64>,
}

machines::wire_enum! {
    /// What a task's tree is.
    pub enum Isolation {
        Clone = "clone",
        Worktree = "worktree",
    }
}

machines::wire_enum! {
    /// Whose plan a task is worked on by.
    pub enum Plan {
        Ticket = "ticket",
        Agent = "agent",
    }
}

machines::wire_enum! {
    /// Where tickets are read and written.
    pub enum TicketSource {
        Files = "files",
        None = "none",
    }
}

machines::wire_enum! {
    /// What a landing makes of a task's commits.
    pub enum Merge {
        Merge = "merge",
        Squash = "squash",
    }
}

machines::wire_enum! {
    /// Who moves main.
    pub enum LandBy {
        /// Adjutant, in this repository.
        Merge = "merge",
        /// Whoever merges the pull request, on the remote.
        PullRequest = "pull-request",
    }
}

machines::wire_enum! {
    /// How the person stands in an agent's commits.
    pub enum Credit {
        Committer = "committer",
        CoAuthor = "co-author",
        None = "none",
    }
}

machines::wire_enum! {
    /// What tests have of the network.
    pub enum Network {
        Open = "open",
        None = "none",
    }
}

/// Who a commit is by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub mail: String,
}

impl Author {
    /// `Name <mail>`.
    pub fn read(text: &str) -> Option<Author> {
        let (name, mail) = text.trim().strip_suffix('>')?.split_once('<')?;
        let (name, mail) = (name.trim(), mail.trim());
        // Git takes none of these in a name, and no name without a letter.
        let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || "<>".contains(c));
        let fits = is_plain(name) && is_plain(mail) && name.chars().any(char::is_alphanumeric);
        let (user, host) = mail.split_once('@')?;
        let is_mail = !user.is_empty() && !host.is_empty() && !mail.contains(char::is_whitespace);
        (fits && is_mail).then(|| Author { name: name.to_owned(), mail: mail.to_owned() })
    }

    /// Of an agent that the settings give none. Nobody has an address there, so nobody is taken for it.
    pub fn of_agent(name: &str) -> Author {
        Author { name: format!("{name} (Adjutant)"), mail: format!("{name}@adjutant.localhost") }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.mail)
    }
}

machines::wire_enum! {
    /// Whether agents and tests are confined.
    pub enum SandboxMode {
        /// Where the system can.
        Auto = "auto",
        /// Or not run at all.
        Strict = "strict",
        Off = "off",
    }
}

/// One thing that is wrong in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{path} is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge { path: PathBuf },
    #[error("{path} is not UTF-8")]
    NotText { path: PathBuf },
    #[error("{}", told(path, problems))]
    Wrong { path: PathBuf, problems: Vec<Problem> },
}

impl SettingsError {
    /// What is wrong in the file itself; empty where it could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            SettingsError::Wrong { problems, .. } => problems,
            _ => &[],
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.line, self.column, self.message, self.hint)
    }
}

fn told(path: &Path, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect::<Vec<_>>().join("\n")
}

impl Default for Settings {
    fn default() -> Self {
        Settings::parse("").expect("nothing said is no mistake")
    }
}

impl Settings {
    /// The settings in this file; the defaults where it does not exist.
    pub fn read(path: &Path) -> Result<Settings, SettingsError> {
        let unreadable = |error| SettingsError::Unreadable { path: path.to_owned(), error };
        base::files::not_into_git(path.parent().unwrap_or(path), path).map_err(unreadable)?;
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(SettingsError::TooLarge { path: path.to_owned() });
        }
        let text = String::from_utf8(bytes).map_err(|_| SettingsError::NotText { path: path.to_owned() })?;
        Self::parse(&text).map_err(|error| match error {
            SettingsError::Wrong { problems, .. } => SettingsError::Wrong { path: path.to_owned(), problems },
            other => other,
        })
    }

    /// The settings in this text, or everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Settings, SettingsError> {
        let mut values = Values::read(text);
        let settings = build(&mut values);
        match values.problems.is_empty() {
            true => Ok(settings),
            false => Err(SettingsError::Wrong { path: FILE.into(), problems: values.problems(text) }),
        }
    }

    /// What the rules read: the same numbers, and the tool rules in the order in which they are tried. The user's red,
    /// yellow and green come first, in this order, then the shipped ones; the first match decides.
    pub fn kernel(&self) -> config::Config {
        let agents = self.agents.iter().map(|(name, agent)| {
            let agent = config::Agent {
                role: agent.role,
                kind: agent.kind,
                service: agent.service.clone(),
                max_turns: agent.max_turns,
                allowed_tools: agent
                    .allowed_tools
                    .as_ref()
                    .map(|tools| tools.iter().map(SmolStr::from).collect()),
                resumable: agent.resume,
                has_tools: agent.adapter.adapter().has_tools(),
                budget: agent.budget,
                model: agent.model.as_ref().map(SmolStr::from),
            };
            (name.clone(), agent)
        });
        config::Config {
            main: self.project.main.as_str().into(),
            fleet: config::Fleet {
                agent: self.fleet.agent.clone(),
                workers: self.fleet.workers,
                max_steps: self.fleet.max_steps,
                max_fix_rounds: self.fleet.max_fix_rounds,
                review: self.fleet.review,
                plan_by_agent: self.fleet.plan == Plan::Agent,
            },
            agents: agents.collect(),
            budget: config::Budget {
                run: self.budget.run,
                task: self.budget.task,
                day: self.budget.day,
                step: self.budget.step,
            },
            policy: config::Policy {
                lead_may_complete: self.policy.lead_may_complete,
                max_review_cycles: self.policy.max_review_cycles,
                max_landing_rounds: self.policy.max_landing_rounds,
                cap_in_progress: self.policy.cap_in_progress,
                cap_per_agent: self.policy.cap_per_agent,
                proposals: self.policy.proposals,
                tools: self.tools(),
            },
            services: self.services.keys().cloned().collect(),
            restore: self.fleet.restore,
            limits: self.limits.rules.clone(),
            architect: self.architect.agent.clone().map(|agent| config::Architect {
                agent,
                escalation_seconds: self.architect.escalation.as_secs().try_into().unwrap_or(u32::MAX),
                raises_budgets: self.architect.raises_budgets,
            }),
            max_turns: self.project.max_turns,
            tests: self.test.check_main.then(|| self.tests()),
            landed_hook: self.hooks.landed.is_some(),
        }
    }

    /// Names what tests are run under. What they say holds for nothing else.
    pub fn tests(&self) -> SmolStr {
        use sha2::{Digest, Sha256};
        let of =
            (&self.test, &self.hooks.worktree_create, &self.worktree, &self.sandbox, self.fleet.isolation);
        let digest = Sha256::digest(format!("{of:?}").as_bytes());
        SmolStr::new(base::hex::hex(&digest[..8]))
    }

    /// What is allowed and probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        let budget = &self.budget;
        let of_agents =
            self.agents.iter().map(|(name, agent)| (format!("agents.{name}.budget_usd"), agent.budget));
        let of_all = [
            ("budget.run_usd", budget.run),
            ("budget.task_usd", budget.task),
            ("budget.day_usd", budget.day),
        ];
        let of_all = of_all.into_iter().map(|(key, limit)| (key.to_owned(), limit));
        let low = |(key, limit): (String, Option<Micros>)| {
            let limit = limit.filter(|limit| *limit < budget.step)?;
            let (limit, step) = (kernel::budget::dollars(limit), kernel::budget::dollars(budget.step));
            Some(format!(
                "`{key}` is {limit}, less than the {step} that a step sets aside (`budget.step_usd`): a person is asked \
                 after almost every step"
            ))
        };
        of_all.chain(of_agents).filter_map(low).collect()
    }

    /// The agent of the fleet's workers.
    pub fn fleet_agent(&self) -> &Agent {
        &self.agents[&self.fleet.agent]
    }

    fn tools(&self) -> Vec<ToolRule> {
        let policy = &self.policy;
        let lists =
            [(&policy.red, Colour::Red), (&policy.yellow, Colour::Yellow), (&policy.green, Colour::Green)];
        let own = lists.into_iter().flat_map(|(patterns, colour)| {
            patterns.iter().map(move |pattern| ToolRule {
                pattern: pattern.into(),
                colour,
                commands_only: false,
            })
        });
        own.chain(policy::shipped()).collect()
    }
}

/// A declared cache that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCache {
    /// As the settings have it.
    pub written: String,
    /// Where it can be made without asking, with the directories around it: below the user's home.
    pub path: Option<PathBuf>,
}

impl Sandbox {
    /// Paths of what was written, `~/` read as `home` and `{uid}` as the number of the user. Without a home, what needs one
    /// is left out; so is a path with `{uid}` that is not this user's own directory, since others may write where it lies.
    pub fn expand(written: &[String], home: Option<&Path>) -> Vec<PathBuf> {
        written.iter().filter_map(|path| expanded(path, home)).filter(is_safe).map(|it| it.path).collect()
    }

    /// The declared caches that are not there, which a program could not write to. None where there is no sandbox.
    pub fn missing_caches(&self, home: Option<&Path>) -> Vec<MissingCache> {
        if self.mode == SandboxMode::Off {
            return Vec::new();
        }
        let missing = |written: &String| {
            let expanded = expanded(written, home);
            if expanded.as_ref().is_some_and(|it| it.path.exists() && is_safe(it)) {
                return None;
            }
            let can_be_made = |it: &Expanded| match it.is_by_user {
                // Next to what others make, and never in what they made.
                true => it.path.symlink_metadata().is_err() && it.path.parent().is_some_and(Path::is_dir),
                false => home.is_some_and(|home| is_below(&it.path, home)),
            };
            Some(MissingCache {
                written: written.clone(),
                path: expanded.filter(can_be_made).map(|it| it.path),
            })
        };
        self.caches.iter().filter_map(missing).collect()
    }
}

/// A path as it is on this machine.
struct Expanded {
    path: PathBuf,
    /// Whether its name has the user in it, as those have that programs make where everybody may.
    is_by_user: bool,
}

fn expanded(written: &str, home: Option<&Path>) -> Option<Expanded> {
    const USER: &str = "{uid}";
    let path = written.replace(USER, &nix::unistd::getuid().to_string());
    let path = match path.strip_prefix("~/") {
        Some(rest) => home?.join(rest),
        None => PathBuf::from(path),
    };
    Some(Expanded { path, is_by_user: written.contains(USER) })
}

/// Whether nobody else put it there. A link of somebody else's would open whatever it leads to.
fn is_safe(expanded: &Expanded) -> bool {
    use std::os::unix::fs::MetadataExt;
    match expanded.path.symlink_metadata() {
        Ok(found) if expanded.is_by_user => found.is_dir() && found.uid() == nix::unistd::getuid().as_raw(),
        _ => true,
    }
}

/// Whether what is there of a path is a directory in `home`, links followed, so that the rest can be made in it.
fn is_below(path: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok().filter(|path| path.is_dir());
    // A link that leads nowhere is there, and is no directory.
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok());
    match (there.and_then(real), real(home)) {
        (Some(there), Some(home)) => path.file_name().is_some() && there.starts_with(home),
        _ => false,
    }
}

impl Health {
    /// `tcp host:port`, or a command line; nothing where host or port are not.
    pub fn read(text: &str) -> Option<Health> {
        let Some(address) = text.strip_prefix("tcp ") else { return Some(Health::Command(text.to_owned())) };
        let (host, port) = address.trim().rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| Health::Tcp { host: host.to_owned(), port })
    }
}

/// Settings of all that was read without a problem. Whoever calls it looks at the problems before the settings.
fn build(values: &mut Values) -> Settings {
    let services = services(values);
    let (fleet, agents) = fleet(values, &services);
    let architect = architect(values, &fleet, &agents);
    let [project, test, tickets, sandbox, policy] =
        ["project", "test", "tickets", "sandbox", "policy"].map(|section| values.scope(section));
    let [budget, prompts, worktree, landing] =
        ["budget", "prompts", "worktree", "landing"].map(|section| values.scope(section));
    let path = |scope: &Scope, key| scope.text(key).map(PathBuf::from);
    if sandbox.word::<SandboxMode>("mode") == SandboxMode::Off
        && sandbox.word::<Network>("network") == Network::None
    {
        let message = "`sandbox.network` is \"none\", and `sandbox.mode` is \"off\"";
        let hint = "set sandbox.mode = \"auto\": it is the sandbox that takes the network away";
        values.problem(sandbox.span("network"), message, hint);
    }
    Settings {
        project: Project {
            main: project.text("main").unwrap_or_default(),
            max_turns: project.number("max_turns"),
            merge: project.word("merge"),
            credit: project.word("credit"),
        },
        fleet,
        test: Test {
            command: test.text("command"),
            timeout: test.time("timeout"),
            env: test.list("env").unwrap_or_default(),
            check_main: test.flag("check_main").unwrap_or(true),
        },
        agents,
        budget: Budget {
            run: budget.money("run_usd"),
            task: budget.money("task_usd"),
            day: budget.money("day_usd"),
            step: budget.money("step_usd").unwrap_or_default(),
        },
        tickets: Tickets { source: tickets.word("source"), dir: path(&tickets, "dir").unwrap_or_default() },
        sandbox: Sandbox {
            mode: sandbox.word("mode"),
            caches: sandbox.list("caches").unwrap_or_default(),
            read: sandbox.list("read").unwrap_or_default(),
            hide: sandbox.list("hide").unwrap_or_default(),
            ports: sandbox.ports("ports"),
            network: sandbox.word("network"),
            namespaces: sandbox.word("namespaces"),
        },
        policy: Policy {
            red: policy.list("red").unwrap_or_default(),
            yellow: policy.list("yellow").unwrap_or_default(),
            green: policy.list("green").unwrap_or_default(),
            lead_may_complete: policy.flag("lead_may_complete").unwrap_or_default(),
            max_review_cycles: policy.number("max_review_cycles").unwrap_or_default(),
            max_landing_rounds: policy.number("max_landing_rounds").unwrap_or_default(),
            cap_in_progress: policy.number("cap_in_progress"),
            cap_per_agent: policy.number("cap_per_agent"),
            proposals: policy.word("proposals"),
        },
        architect,
        prompts: PromptFiles {
            init: path(&prompts, "init"),
            step: path(&prompts, "step"),
            test_failure: path(&prompts, "test_failure"),
            merge_conflict: path(&prompts, "merge_conflict"),
            turn: path(&prompts, "turn"),
            spec: path(&prompts, "spec"),
            review: path(&prompts, "review"),
            question: path(&prompts, "question"),
            budget: path(&prompts, "budget"),
        },
        landing: Landing {
            by: landing.word("by"),
            remote: landing.text("remote").unwrap_or_default(),
            open: Hook {
                command: landing.text("open").unwrap_or_default(),
                timeout: values.scope("hooks").time("timeout"),
            },
        },
        hooks: hooks(&values.scope("hooks")),
        notify: Notify {
            desktop: values.scope("notify").flag("desktop").unwrap_or_default(),
            severity: values.scope("notify").word("severity"),
        },
        webhooks: webhooks(values),
        worktree: Worktree {
            copy: worktree.list("copy").unwrap_or_default(),
            symlink: worktree.list("symlink").unwrap_or_default(),
        },
        trash: kept(&values.scope("trash")),
        logs: kept(&values.scope("logs")),
        ports: ports(values),
        services: services.into_iter().map(|(name, (service, _))| (name, service)).collect(),
        limits: limits(&values.scope("limits")),
    }
}

fn webhooks(values: &mut Values) -> BTreeMap<String, Webhook> {
    let mut webhooks = BTreeMap::new();
    for name in values.names("webhooks.*") {
        let scope = values.named("webhooks.*", &name);
        let url = scope.text("url");
        if url.is_none() && !scope.is_misread("url") {
            let message = format!("webhook `{name}` has no `url`");
            values.problem(
                scope.span("url"),
                message,
                "say where it is, such as url = \"https://hooks.example.com/adjutant\"",
            );
        }
        // Where there is none, there is a problem, and no settings come of this.
        let url = url.unwrap_or_default();
        let (secret_env, severity) = (scope.text("secret_env"), scope.word("severity"));
        webhooks.insert(name, Webhook { url, secret_env, severity });
    }
    webhooks
}

/// Each service with the agents that it says use it.
fn services(values: &mut Values) -> BTreeMap<ServiceName, (Service, Vec<String>)> {
    let mut services = BTreeMap::new();
    for name in values.names("services.*") {
        let scope = values.named("services.*", &name);
        let Ok(service) = ServiceName::new(&name) else { continue };
        let health = scope.text("health").as_deref().and_then(Health::read);
        if health.is_none() && !scope.is_misread("health") {
            let message = format!("service `{name}` has no `health`");
            let hint = "say how it is asked, such as health = \"tcp 127.0.0.1:5432\"";
            values.problem(scope.span("health"), message, hint);
        }
        // Where there is none, there is a problem, and no settings come of this.
        let health = health.unwrap_or(Health::Command(String::new()));
        let users = scope.list("agents").unwrap_or_default();
        services.insert(service, (Service { health, timeout: scope.time("timeout") }, users));
    }
    services
}

fn fleet(
    values: &mut Values,
    services: &BTreeMap<ServiceName, (Service, Vec<String>)>,
) -> (Fleet, BTreeMap<AgentName, Agent>) {
    let scope = values.scope("fleet");
    let agent = scope.text("agent").and_then(|name| AgentName::new(name).ok());
    let fleet = Fleet {
        agent: agent.expect("a name is checked when it is read, and has a default"),
        workers: scope.number("workers").unwrap_or_default(),
        isolation: scope.word("isolation"),
        trees: scope.text("trees").expect("it has a default"),
        max_steps: scope.number("max_steps").unwrap_or_default(),
        max_fix_rounds: scope.number("max_fix_rounds").unwrap_or_default(),
        step_timeout: scope.time("step_timeout"),
        stop_timeout: scope.time("stop_timeout"),
        review: scope.word("review"),
        plan: scope.word("plan"),
        restore: scope.word("restore"),
    };
    let mut names = values.names("agents.*");
    // Without any agent in the file, the fleet's is the one with all defaults.
    if names.is_empty() {
        names.push(fleet.agent.to_string());
    }
    let mut agents = BTreeMap::new();
    for name in &names {
        let scope = values.named("agents.*", name);
        if let (Ok(name), Some(agent)) = (AgentName::new(name), agent_of(values, name, &scope, services)) {
            agents.insert(name, agent);
        }
    }
    let known = values.names("agents.*");
    if !known.is_empty()
        && !scope.is_misread("agent")
        && !known.iter().any(|name| name == fleet.agent.as_str())
    {
        let message = format!("fleet.agent names `{}`, which is not among the agents", fleet.agent);
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let meant = nearest(fleet.agent.as_str(), known.iter().copied()).unwrap_or(known[0]);
        values.problem(
            scope.span("agent"),
            message,
            format!("set fleet.agent = \"{meant}\", or add `[agents.{}]`", fleet.agent),
        );
    }
    for (service, (_, users)) in services {
        for user in users.iter().filter(|user| !names.contains(user)) {
            let span = values.named("services.*", service.as_str()).span("agents");
            let message = format!("service `{service}` names agent `{user}`, which is not among the agents");
            values.problem(span, message, format!("add `[agents.{user}]`, or take it out of the list"));
        }
    }
    (fleet, agents)
}

/// What the rules would refuse is said here, where it stands in the file.
fn architect(values: &mut Values, fleet: &Fleet, agents: &BTreeMap<AgentName, Agent>) -> Architect {
    let scope = values.scope("architect");
    let named = scope.text("agent").and_then(|name| AgentName::new(name).ok());
    let known = named.as_ref().and_then(|name| agents.get(name));
    let at = scope.span("agent");
    match (&named, known) {
        (Some(name), None) => {
            let names = agents.keys().map(AgentName::as_str);
            let meant =
                nearest(name.as_str(), names).map(|meant| format!("set architect.agent = \"{meant}\", or "));
            values.problem(
                at,
                format!("architect.agent names `{name}`, which is not among the agents"),
                format!("{}add `[agents.{name}]`", meant.unwrap_or_default()),
            );
        }
        (Some(name), Some(_)) if *name == fleet.agent => values.problem(
            at,
            format!("architect.agent is `{name}`, which workers run; nobody reviews their own work"),
            "add another agent, with the same program if you like, and name that one",
        ),
        (Some(name), Some(agent)) if agent.role == Role::Intern => values.problem(
            at,
            format!("architect.agent is `{name}`, which is an intern; a reviewer is at least a specialist"),
            format!("set role = \"lead\" in [agents.{name}]"),
        ),
        _ => {}
    }
    if fleet.review == Review::Architect && named.is_none() && !scope.is_misread("agent") {
        let span = values.scope("fleet").span("review");
        let message = "fleet.review is \"architect\", and [architect] names no agent";
        values.problem(span, message, "set architect.agent to the name of one of the agents");
    }
    Architect {
        agent: named,
        escalation: scope.time("escalation"),
        raises_budgets: scope.flag("raises_budgets").unwrap_or_default(),
    }
}

fn agent_of(
    values: &mut Values,
    name: &str,
    scope: &Scope,
    services: &BTreeMap<ServiceName, (Service, Vec<String>)>,
) -> Option<Agent> {
    let kind: AdapterKind = scope.word("adapter");
    let adapter = kind.adapter();
    let command = scope.list("command").or_else(|| adapter.program().map(|program| vec![program.to_owned()]));
    if command.is_none() && !scope.is_misread("command") {
        let message = format!("agent `{name}` has no `command`, and adapter `{kind}` knows none by itself");
        values.problem(scope.span("command"), message, adapter.command_hint());
    }
    let mut used: Vec<ServiceName> =
        scope.text("service").and_then(|name| ServiceName::new(name).ok()).into_iter().collect();
    if let Some(unknown) = used.first().filter(|service| !services.contains_key(*service)) {
        let message = format!("agent `{name}` uses service `{unknown}`, which is not among the services");
        values.problem(scope.span("service"), message, format!("add `[services.{unknown}]` with its health"));
    }
    let users = services.iter().filter(|(_, (_, users))| users.iter().any(|user| user == name));
    used.extend(users.map(|(service, _)| service.clone()));
    used.dedup();
    if used.len() > 1 {
        let message = format!("agent `{name}` has two services, `{}` and `{}`", used[0], used[1]);
        values.problem(scope.span("service"), message, "leave one: an agent waits for one service");
    }
    Some(Agent {
        adapter: kind,
        command: command?,
        author: scope
            .text("author")
            .and_then(|text| Author::read(&text))
            .unwrap_or_else(|| Author::of_agent(name)),
        model: scope.text("model"),
        role: scope.word("role"),
        kind: scope.word("kind"),
        prompt: scope.text("prompt"),
        allowed_tools: scope.list("allowed_tools"),
        max_turns: scope.number("max_turns"),
        env: scope.list("env").unwrap_or_default(),
        service: used.into_iter().next(),
        resume: scope.flag("resume").unwrap_or(adapter.resumable()),
        budget: scope.money("budget_usd"),
    })
}

fn hooks(scope: &Scope) -> Hooks {
    let timeout = scope.time("timeout");
    let hook = |key| scope.text(key).map(|command| Hook { command, timeout });
    Hooks {
        worktree_create: hook("worktree.create"),
        worktree_remove: hook("worktree.remove"),
        step_before: hook("step.before"),
        step_after: hook("step.after"),
        notify: hook("notify"),
        landed: hook("landed"),
    }
}

fn kept(scope: &Scope) -> Kept {
    Kept { age: scope.time("age"), bytes: scope.number("size").expect("it has a default") }
}

fn ports(values: &mut Values) -> Ports {
    let scope = values.scope("ports");
    let ports = Ports {
        first: scope.number("first").unwrap_or_default(),
        block: scope.number("block").unwrap_or_default(),
        blocks: scope.number("blocks").unwrap_or_default(),
    };
    let end = u64::from(ports.first) + u64::from(ports.block) * u64::from(ports.blocks);
    if end > 65_536 {
        let message = format!("the last block of ports would end at {}, past 65535", end - 1);
        values.problem(scope.span("blocks"), message, "lower ports.first, ports.block or ports.blocks");
    }
    ports
}

fn limits(scope: &Scope) -> Limits {
    // Times are bounded by TIME_MAX, so that their seconds always fit.
    let seconds = |key| scope.time(key).as_secs() as u32;
    Limits {
        rules: config::Limits {
            suspension_seconds: seconds("suspension"),
            health_poll_seconds: seconds("health_poll"),
            question_seconds: seconds("question"),
            lost_workers: scope.number("lost_workers").unwrap_or_default(),
            outside_lease_seconds: seconds("outside_lease"),
            heartbeat_seconds: seconds("heartbeat"),
            standstill_seconds: seconds("standstill"),
            checkout_seconds: seconds("checkout"),
            backoff_seconds: seconds("backoff"),
            replies: scope.number("replies").unwrap_or_default(),
            same_call: scope.number("same_call").unwrap_or_default(),
            same_step: scope.number("same_step").unwrap_or_default(),
            tool_failures: scope.number("tool_failures").unwrap_or_default(),
            effect_tries: scope.number("effect_tries").unwrap_or_default(),
            text_bytes: scope.number("text_bytes").unwrap_or_default(),
            dependencies: scope.number("dependencies").unwrap_or_default(),
            proposals: scope.number("proposals").unwrap_or_default(),
            kept_answers: scope.number("kept_answers").unwrap_or_default(),
        },
        silence: scope.time("silence"),
        pull_request: scope.time("pull_request"),
        ticket_bytes: scope.number("ticket_bytes").unwrap_or_default(),
        tickets: scope.number("tickets").unwrap_or_default(),
        line_bytes: scope.number("line_bytes").unwrap_or_default(),
        output_bytes: scope.number("output_bytes").unwrap_or_default(),
        test_output_bytes: scope.number("test_output_bytes").unwrap_or_default(),
        copy_files: scope.number("copy_files").unwrap_or_default(),
        copy_bytes: scope.number("copy_bytes").unwrap_or_default(),
        processes: scope.number("processes").unwrap_or_default(),
        memory: scope.number("memory"),
    }
}
