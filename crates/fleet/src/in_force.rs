//! The settings in force, and how they change while a fleet runs.

use std::sync::{Arc, PoisonError};

use kernel::Ask;

use super::{RunError, Shared, step_commands::StepCommand};
use crate::apply_settings::{self, Valid};
use project::prompts::Prompts;
use project::settings::{Settings, trust};

/// What the settings file says, as it was last read without a fault.
pub(crate) struct SettingsInForce {
    pub settings: Settings,
    pub prompts: Prompts,
}

impl Shared {
    /// Writes the settings into the log, where the rules read them, if they are not the ones that stand there.
    pub(super) async fn configure(&self) -> Result<(), RunError> {
        match apply_settings::ask(&self.world(), &self.in_force().settings.kernel()) {
            Some(ask) => self.ask(ask).await.map(drop),
            None => Ok(()),
        }
    }

    /// Reads the settings anew. A faulty file changes nothing, and is said.
    pub(super) async fn reload(&self) -> Result<(), RunError> {
        match apply_settings::read(&self.layout) {
            Ok(Valid { in_force, prompts, .. }) => {
                let note = in_force.note();
                let (settings, read) = (in_force.settings, in_force.read);
                let other_tests = settings.tests() != self.in_force().settings.tests();
                // Before the rules: they may start a step of an agent that only these settings have.
                *self.settings.write().unwrap_or_else(PoisonError::into_inner) =
                    Arc::new(SettingsInForce { settings, prompts });
                self.configure().await?;
                if other_tests {
                    self.end_main_tests();
                }
                self.make_caches().await;
                let workers = self.workers.unwrap_or(self.in_force().settings.fleet.workers);
                self.ask(Ask::StartFleet { workers }).await?;
                if let Err(why) = trust::hold(&self.layout, &read) {
                    self.notice(RunError::Io { path: self.layout.state(), why }.to_string());
                }
                self.notice(note.unwrap_or("adjutant.toml was read again"));
            }
            Err(error) => self.notice(format!("the previous settings stay in force: {error}")),
        }
        Ok(())
    }

    /// Main's tests that run under the previous settings say nothing any more.
    pub(super) fn end_main_tests(&self) {
        let Some(effect) = self.world().main.under_way.clone() else { return };
        let ways = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.get(&effect) {
            // Nobody listens: they have ended by themselves.
            let _ = way.send(StepCommand::End(None));
        }
    }
}
