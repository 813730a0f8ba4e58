//! New settings, and what changes with them at once.

use super::architect::configured as architect_configured;
use super::landing::reconsider;
use super::main_tests::go_on;
use crate::command::Refusal;
use crate::config::Config;
use crate::draft::{Draft, Ruled};
use crate::event::ConfigChanged;

pub(crate) fn configure(d: &mut Draft, config: &Config) -> Ruled {
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(Refusal::new(422, "BAD_CONFIG", problems.join("; "))
            .hint("the last good configuration stays in force"));
    }
    if *config != *d.world.config {
        d.emit(ConfigChanged { config: Box::new(config.clone()) });
        architect_configured(d)?;
        reconsider(d)?;
        go_on(d)?;
    }
    Ok(())
}
