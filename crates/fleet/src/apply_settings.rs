//! The one place where `adjutant.toml` takes effect: at the start of a process, when the file changes, after the user
//! trusted it, and before a command that runs alone.
//!
//! Invariant: a file that is invalid, not trusted or missing changes nothing. The log keeps the previous settings, and the
//! caller gets the reason.

use kernel::{Actor, Ask, Command, Config, World};

use base::clock;
use log::owner::{Handle, SubmitError};
use project::layout::Layout;
use project::prompts::Prompts;
use project::settings::trust::{self, InForce};

/// Settings that can take effect: the file, its prompts and what the rules make of it are valid.
pub struct Valid {
    pub in_force: InForce,
    pub prompts: Prompts,
    pub config: Config,
}

/// Why the settings file does not take effect.
#[derive(Debug, thiserror::Error)]
pub enum NotApplied {
    /// All that is wrong with it, in words.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// Reads the settings that are to be in force.
pub fn read(layout: &Layout) -> Result<Valid, NotApplied> {
    let wrong = |error: &dyn std::fmt::Display| NotApplied::Invalid(error.to_string());
    let in_force = trust::in_force(layout).map_err(|error| wrong(&error))?;
    let prompts = Prompts::load(&in_force.settings, layout.root()).map_err(|error| wrong(&error))?;
    let config = in_force.settings.kernel();
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(NotApplied::Invalid(problems.join("; ")));
    }
    Ok(Valid { in_force, prompts, config })
}

/// What has to be asked of the kernel so that the rules follow this configuration; `None` if they do.
pub fn ask(world: &World, config: &Config) -> Option<Ask> {
    (*world.config != *config).then(|| Ask::Configure { config: Box::new(config.clone()) })
}

/// Applies the settings. When it returns, the rules follow them, and their content is kept for the time when the file is gone.
pub fn apply(handle: &Handle, layout: &Layout) -> Result<InForce, NotApplied> {
    let Valid { in_force, config, .. } = read(layout)?;
    if let Some(ask) = ask(&handle.world(), &config) {
        let (id, at) = (clock::unique(), clock::now());
        handle.submit(Command { id, at, actor: Actor::System, token_for: None, key: None, ask }, None)?;
    }
    // If it cannot be kept, a later start tries again: the file itself is there.
    let _ = trust::hold(layout, &in_force.read);
    Ok(in_force)
}
