//! Whether a fleet could work here: its settings, its agent's program and its sandbox.

use super::text;
use super::{Exit, Failure};
use agents::CommandIs;
use project::layout::Layout;
use project::settings::include;
use project::settings::trust::{self, InForce};
use project::settings::{Settings, SettingsError};

/// The settings that a fleet begins with, and what people should hear of them.
pub struct Ready {
    pub in_force: InForce,
    pub notes: Vec<String>,
}

/// Whether a fleet could work here at all: the settings, its agent's program and the sandbox that they ask for.
pub fn ready(layout: &Layout) -> Result<Ready, Failure> {
    let in_force = read_settings(layout)?;
    let (note, settings) = (in_force.note(), &in_force.settings);
    check_agent(settings)?;
    if let Some(why) = ::fleet::sandbox_refusal(settings) {
        return Err(Failure::new(Exit::Unreachable, why)
            .hint("docs/sandbox.md lists the requirements; sandbox.mode = \"auto\" and sandbox.network = \"open\" use what there is"));
    }
    if let Some(back) = ::fleet::leads_back(layout, settings) {
        let message =
            "what trees share with your checkout leads their tests back into it, so no agent starts";
        return Err(Failure::new(Exit::Refused, message).lines(back.found).hint(back.fix));
    }
    let keys = settings
        .agents
        .iter()
        .filter_map(|(name, agent)| project::program::missing_key(name.as_str(), agent));
    let include = (!include::in_force(layout).trusted).then(|| include::UNTRUSTED.to_owned());
    let notes = note.map(str::to_owned).into_iter().chain(include).chain(keys).collect();
    Ok(Ready { in_force, notes })
}

/// A fleet that somebody wants to run.
pub struct Wanted {
    pub in_force: InForce,
    pub workers: Option<u32>,
    pub once: bool,
    pub until_idle: bool,
}

pub fn read_settings(layout: &Layout) -> Result<InForce, Failure> {
    // What came in with an agent's branch holds only once it is trusted, also for a fleet that starts after it.
    trust::in_force(layout).map_err(|error| wrong_settings(&error))
}

fn wrong_settings(error: &SettingsError) -> Failure {
    let problems = error.problems();
    let (message, hint) = match problems.len() {
        0 => (error.to_string(), "`adj config check` says what is wrong"),
        1 => ("adjutant.toml is not valid: 1 problem".to_owned(), "correct it; `adj config check` tries it"),
        more => (
            format!("adjutant.toml is not valid: {more} problems"),
            "correct them; `adj config check` tries it",
        ),
    };
    let lines = problems.iter().map(|problem| format!("adjutant.toml:{problem}"));
    Failure::new(Exit::Usage, message).lines(lines).hint(hint)
}

/// Without its program every step would fail, and every worker be stuck half a minute later.
fn check_agent(settings: &Settings) -> Result<(), Failure> {
    let (name, agent) = (&settings.fleet.agent, settings.fleet_agent());
    let program = agent.command.first().map(String::as_str).unwrap_or_default();
    let needs_program = agent.adapter.adapter().command_is() == CommandIs::Program;
    if !needs_program || project::program::which(program).is_some() {
        return Ok(());
    }
    let shown = text::visible(program);
    Err(Failure::new(Exit::Unreachable, format!("agent `{name}` needs `{shown}`, which is not on the PATH"))
        .hint(format!("install it, or name another program in [agents.{name}] of adjutant.toml")))
}
