//! Finds programs on this machine, and whether an agent's program has a login.

use std::path::PathBuf;

use crate::settings;

/// Where a program is, as the shell would find it.
pub fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return path.is_file().then_some(path);
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
}

/// That no key is passed on to an agent that needs one; nothing where one is.
pub fn missing_key(name: &str, agent: &settings::Agent) -> Option<String> {
    let needed = agent.adapter.adapter().login().is_some() && !has_key(agent);
    needed.then(|| format!("agent {name}: {}", no_key(agent)))
}

/// Which variables could hold a login, and that none of them does.
pub fn no_key(agent: &settings::Agent) -> String {
    let keys: Vec<String> =
        agent.env.iter().filter(|name| !name.ends_with("_URL")).map(|name| format!("`{name}`")).collect();
    match keys.as_slice() {
        [] => "its `env` names no variable with a key".to_owned(),
        [one] => format!("{one} is not set in this environment"),
        more => format!("none of {} is set in this environment", more.join(", ")),
    }
}

/// Whether anything that could be a login is passed on: the address of a service is none.
pub fn has_key(agent: &settings::Agent) -> bool {
    let set = |name: &&String| crate::credentials::is_set(name);
    agent.env.iter().filter(set).any(|name| !name.ends_with("_URL"))
}
