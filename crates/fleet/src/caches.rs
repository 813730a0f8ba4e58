//! The caches that the settings declare: agents and tests can write there.

use std::path::PathBuf;

use super::Shared;
use project::settings::{MissingCache, Sandbox};

impl Shared {
    /// What is declared can be written to, or people hear that it cannot.
    pub(super) async fn make_caches(&self) {
        let in_force = self.in_force();
        for said in self.blocking(move || make_missing(&in_force.settings.sandbox)).await {
            self.notice_once(said);
        }
    }
}

/// Makes the declared caches that are not there, where nobody has to be asked; what people should hear of it.
fn make_missing(settings: &Sandbox) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let make = |MissingCache { written, path }: MissingCache| {
        let name = format!("sandbox.caches: `{written}`");
        match path.map(std::fs::create_dir_all) {
            // Another one may have been quicker.
            Some(Err(error)) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                format!("{name} cannot be created, so agents cannot write there: {error}")
            }
            Some(_) => format!("{name} did not exist and was created"),
            None => format!(
                "{name} does not exist, so agents cannot write there; create it, or remove it from adjutant.toml"
            ),
        }
    };
    settings.missing_caches(home.as_deref()).into_iter().map(make).collect()
}
