//! Commands of the user: hooks that run with the user's own environment, outside of the sandbox.

use std::sync::Arc;

use super::kept_command::{self, KeptCommand, Ran};
use super::{Shared, endings};
use project::settings::Hook;

/// What of a failing hook is told.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// The user's own variables, without those of Adjutant.
pub(super) fn own_environment() -> Vec<(String, String)> {
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    own.filter(|(name, _)| !name.starts_with("ADJ_")).collect()
}

/// Runs a hook in the project with the user's own environment, outside of the sandbox: that is how a desktop, a mail
/// program or a remote is reached. A hook that fails is told, and changes nothing. False: it was ended.
pub(super) async fn run_hook(
    shared: &Arc<Shared>,
    point: &str,
    Hook { command, timeout }: Hook,
    name: String,
    told: Vec<(&str, String)>,
) -> bool {
    let mut env = own_environment();
    let root = shared.layout.root().to_owned();
    env.push(("ADJ_PROJECT".to_owned(), root.display().to_string()));
    env.extend(told.into_iter().map(|(name, value)| (name.to_owned(), value.replace('\0', " "))));
    let argv = kept_command::shell(&command);
    let kept = KeptCommand { name, of: command.clone(), argv, cwd: root, env, limit: timeout, sandbox: None };
    let failed = match kept_command::run(shared, kept, None).await {
        Ok(Ran::Ended) => return false,
        Ok(Ran::Over { exit, .. }) if exit.succeeded() => return true,
        Ok(Ran::Over { exit, output }) => {
            let failing = project::workplace::failing_part(&output, OUTPUT_BYTES_MAX);
            format!("{}\n{failing}", endings::how_it_ended(&exit, timeout))
        }
        Err(error) => error.to_string(),
    };
    shared.notice(format!("hook {point}: `{command}` {failed}"));
    true
}
