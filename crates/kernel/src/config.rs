//! Configuration as the rules read it. It enters the log as an event; guards read nothing else.

use machines::names::{AgentName, ServiceName};
use machines::run::AgentKind;
use machines::wire::Wire;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Millionths of a dollar: sums of money are exact.
pub type Micros = u64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What people call the branch that work lands on.
    #[serde(skip_serializing_if = "is_main")]
    pub main: SmolStr,
    pub fleet: Fleet,
    pub agents: BTreeMap<AgentName, Agent>,
    pub budget: Budget,
    pub policy: Policy,
    /// Services whose health decides whether suspended agents go on.
    pub services: Vec<ServiceName>,
    pub restore: Restore,
    pub limits: Limits,
    /// Absent: questions and reviews are a person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architect: Option<Architect>,
    /// Turns of a run, where its agent says nothing: the project's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Names the settings that tests are run under: command, environment, hooks, sandbox. Main's own tests must pass under
    /// them before an agent is started; absent, main is not tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<SmolStr>,
    /// The user wants something done with each main that a landing has moved.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub landed_hook: bool,
}

const MAIN: SmolStr = SmolStr::new_static("main");

fn is_main(name: &SmolStr) -> bool {
    *name == MAIN
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    pub agent: AgentName,
    pub workers: u32,
    pub max_steps: u32,
    pub max_fix_rounds: u32,
    pub review: Review,
    /// The agent's own plan takes the place of the one that a task begins with.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plan_by_agent: bool,
}

/// The agent that splits specs, answers questions and reviews work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architect {
    pub agent: AgentName,
    /// How long it waits for a person.
    pub escalation_seconds: u32,
    /// It may raise the budget of a task, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raises_budgets: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    pub role: Role,
    pub kind: AgentKind,
    pub service: Option<ServiceName>,
    pub max_turns: Option<u32>,
    /// Absent: every tool. Empty: none.
    pub allowed_tools: Option<Vec<SmolStr>>,
    /// Whether a session of this agent can be taken up again.
    pub resumable: bool,
    /// Its program has our tools: it decides by them, and its text decides nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_tools: bool,
    pub budget: Option<Micros>,
    /// The model that its program is told to use: steps of one model are compared by their price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SmolStr>,
}

machines::wire_enum! {
    pub enum Role {
        Intern = "intern",
        Specialist = "specialist",
        Lead = "lead",
    }
}

machines::wire_enum! {
    /// Who approves what the gate let through.
    pub enum Review {
        Auto = "auto",
        Architect = "architect",
        Human = "human",
    }
}

machines::wire_enum! {
    /// When suspended agents go on: when every service is healthy, or each when its own is.
    pub enum Restore {
        All = "all",
        PerProvider = "per-provider",
    }
}

/// Absent: no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    pub run: Option<Micros>,
    pub task: Option<Micros>,
    pub day: Option<Micros>,
    /// Set aside before a step starts, so that steps side by side cannot pass a limit together. Where a step ends
    /// without a price and none can be estimated, it stays set aside: unknown is never zero.
    pub step: Micros,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    pub lead_may_complete: bool,
    pub max_review_cycles: u32,
    pub max_landing_rounds: u32,
    /// At most this many tasks IN_PROGRESS.
    pub cap_in_progress: Option<u32>,
    /// At most this many tasks held by one agent's workers.
    pub cap_per_agent: Option<u32>,
    #[serde(skip_serializing_if = "Proposals::is_default")]
    pub proposals: Proposals,
    /// Patterns over tool and argument, in order; the first match wins, and what matches none is green.
    pub tools: Vec<ToolRule>,
}

machines::wire_enum! {
    /// What becomes of tasks that agents add.
    pub enum Proposals {
        /// They wait for a person.
        Ask = "ask",
        Accept = "accept",
        Refuse = "refuse",
    }
}

impl Proposals {
    /// What the log of a version before it says as well.
    fn is_default(&self) -> bool {
        *self == Proposals::Ask
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// `Bash(git push*)`, or `Write` for every argument.
    pub pattern: SmolStr,
    pub colour: Colour,
    /// Texts that a command line only carries, the message of a commit, are left out before it is looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands_only: bool,
}

machines::wire_enum! {
    pub enum Colour {
        Green = "green",
        /// Asks a person where the agent is an intern.
        Yellow = "yellow",
        /// Asks a person.
        Red = "red",
    }
}

/// One line for each limit: its field and its default. What is `always` in the log was there from the beginning; what came
/// later is there only where it is `changed`, so that a log of a version before it says the same.
macro_rules! limits {
    ($($(#[$about:meta])* $field:ident: $number:ty = $default:expr, $written:ident;)*) => {
        /// Everything has a limit, with a name and a default.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits { $($(#[$about])* pub $field: $number,)* }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Serialize for Limits {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let usual = Limits::default();
                let written = [$(limits!(@$written self.$field != usual.$field)),*];
                let count = written.iter().filter(|written| **written).count();
                let mut fields = serializer.serialize_struct("Limits", count)?;
                $(match limits!(@$written self.$field != usual.$field) {
                    true => fields.serialize_field(stringify!($field), &self.$field)?,
                    false => fields.skip_field(stringify!($field))?,
                })*
                fields.end()
            }
        }
    };
    (@always $differs:expr) => { true };
    (@changed $differs:expr) => { $differs };
}

limits! {
    suspension_seconds: u32 = machines::suspended::SUSPENSION_SECONDS_MAX, always;
    health_poll_seconds: u32 = machines::suspended::HEALTH_POLL_SECONDS, always;
    /// How long a call waits for a person before the step is ended.
    question_seconds: u32 = 600, always;
    lost_workers: u32 = 3, always;
    /// How long an outside owner keeps a task without a sign of life.
    outside_lease_seconds: u32 = 120, always;
    /// How long an agent that is connected from outside is taken to be there without a heartbeat.
    heartbeat_seconds: u32 = 60, changed;
    /// Replies of agents in channels at once, in all channels together.
    replies: u32 = 4, changed;
    /// How long a fleet stands still before it says why.
    standstill_seconds: u32 = 60, changed;
    /// How long a landing that the user's checkout holds up waits before it tries again.
    checkout_seconds: u32 = 30, always;
    /// How long a worker waits after a step that failed; twice as long after each further one.
    backoff_seconds: u32 = machines::worker::BACKOFF_SECONDS, changed;
    /// The same call this often in a row is a loop.
    same_call: u32 = 3, always;
    /// So many steps in a row with the same last message and an unchanged tree are a loop.
    same_step: u32 = 3, changed;
    tool_failures: u32 = 3, always;
    /// Tries at an effect that only we need, such as writing a ticket, before a person is told.
    effect_tries: u32 = 10, always;
    /// Longest title, comment or feedback, in bytes.
    text_bytes: usize = 64 * 1024, always;
    /// Dependencies of one task.
    dependencies: usize = 1000, always;
    /// Tasks that one run may propose, and that may follow from one task without a person.
    proposals: u32 = 20, changed;
    /// Answers kept for idempotency keys; the oldest go first.
    kept_answers: usize = 100_000, always;
}

impl Default for Config {
    fn default() -> Self {
        let fleet = Fleet::default();
        let agents = BTreeMap::from([(fleet.agent.clone(), Agent::default())]);
        Self {
            main: MAIN,
            fleet,
            agents,
            budget: Budget { step: 500_000, ..Budget::default() },
            policy: Policy::default(),
            services: Vec::new(),
            restore: Restore::All,
            limits: Limits::default(),
            architect: None,
            max_turns: None,
            tests: None,
            landed_hook: false,
        }
    }
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            agent: AgentName::new("coder").expect("a constant"),
            workers: 3,
            max_steps: machines::worker::STEPS_MAX,
            max_fix_rounds: machines::worker::FIX_ROUNDS_MAX,
            review: Review::Human,
            plan_by_agent: false,
        }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            role: Role::Specialist,
            kind: AgentKind::Task,
            service: None,
            max_turns: None,
            allowed_tools: None,
            resumable: true,
            has_tools: false,
            budget: None,
            model: None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lead_may_complete: false,
            max_review_cycles: machines::task::REVIEW_CYCLES_MAX,
            max_landing_rounds: machines::task::LANDING_ROUNDS_MAX,
            cap_in_progress: None,
            cap_per_agent: None,
            proposals: Proposals::Ask,
            tools: Vec::new(),
        }
    }
}

impl From<Role> for machines::machine::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Intern => machines::machine::Role::Intern,
            Role::Specialist => machines::machine::Role::Specialist,
            Role::Lead => machines::machine::Role::Lead,
        }
    }
}

/// The service of agents that name none.
pub(crate) fn shared_service() -> ServiceName {
    ServiceName::new("agents").expect("a constant")
}

impl Config {
    /// The service that an agent depends on; one that names none has the one that all such agents share.
    pub fn service_of(&self, name: &AgentName) -> ServiceName {
        let known = self.agents.get(name).and_then(|agent| agent.service.clone());
        known.unwrap_or_else(shared_service)
    }

    pub fn agent(&self, name: &AgentName) -> Agent {
        self.agents.get(name).cloned().unwrap_or_default()
    }

    /// What is wrong with it, so that a bad edit is refused before it enters the log.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.agents.contains_key(&self.fleet.agent) {
            problems.push(format!("fleet.agent names `{}`, which is not among the agents", self.fleet.agent));
        }
        for (name, agent) in &self.agents {
            if let Some(service) = agent.service.as_ref().filter(|service| !self.services.contains(service)) {
                problems.push(format!(
                    "agent `{name}` uses service `{service}`, which is not among the services"
                ));
            }
            if agent.max_turns.is_some_and(|turns| !(1..=200).contains(&turns)) {
                problems.push(format!("agent `{name}` has max_turns outside 1 to 200"));
            }
        }
        if let Some(architect) = self.architect.as_ref().filter(|it| !self.agents.contains_key(&it.agent)) {
            problems
                .push(format!("architect.agent names `{}`, which is not among the agents", architect.agent));
        }
        if self.architect.as_ref().is_some_and(|architect| architect.agent == self.fleet.agent) {
            problems.push(format!(
                "architect.agent is `{}`, which the fleet's workers are; nobody reviews their own work",
                self.fleet.agent
            ));
        }
        if self.architect.as_ref().is_some_and(|architect| {
            self.agents.get(&architect.agent).is_some_and(|agent| agent.role == Role::Intern)
        }) {
            problems.push("architect.agent is an intern; a reviewer is at least a specialist".to_owned());
        }
        if self.architect.as_ref().is_some_and(|architect| architect.escalation_seconds == 0) {
            problems.push("architect.escalation is 0; a person needs some time to answer".to_owned());
        }
        if self.fleet.review == Review::Architect && self.architect.is_none() {
            problems.push("fleet.review is \"architect\", and [architect] names no agent".to_owned());
        }
        if self.max_turns.is_some_and(|turns| !(1..=200).contains(&turns)) {
            problems.push("project.max_turns is outside 1 to 200".to_owned());
        }
        if self.fleet.max_steps == 0 {
            problems.push("fleet.max_steps is 0; a worker needs at least one step".to_owned());
        }
        problems
    }
}

impl Policy {
    /// The first rule whose pattern matches decides.
    pub fn colour(&self, tool: &str, argument: &str) -> Colour {
        let commands = crate::messages::without_messages(argument);
        let matching = |rule: &&ToolRule| match rule.pattern.split_once('(') {
            Some((name, inner)) => {
                let text = if rule.commands_only { &*commands } else { argument };
                name == tool && glob(inner.strip_suffix(')').unwrap_or(inner), text)
            }
            None => rule.pattern == tool,
        };
        self.tools.iter().find(matching).map_or(Colour::Green, |rule| rule.colour)
    }
}

/// `*` stands for any text, everything else for itself. A pattern over commands, not over paths; a crate for it would bring a
/// regex engine into the pure crates.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// For messages that list what is known.
pub fn names_of<T: Wire>() -> String {
    T::ALL.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_pattern_decides_the_colour() {
        let rule = |pattern: &str, colour| ToolRule { pattern: pattern.into(), colour, commands_only: false };
        let policy = Policy {
            tools: vec![
                rule("Bash(git push*)", Colour::Red),
                rule("Bash(*rm -rf*)", Colour::Red),
                rule("Bash", Colour::Yellow),
            ],
            ..Policy::default()
        };
        assert_eq!(policy.colour("Bash", "git push origin"), Colour::Red);
        assert_eq!(policy.colour("Bash", "cd x && rm -rf y"), Colour::Red);
        assert_eq!(policy.colour("Bash", "ls"), Colour::Yellow);
        assert_eq!(policy.colour("Read", "x"), Colour::Green);
    }
}
