//! The environment of agents, tests and hooks: an allow-list.
//!
//! `HOME` is the user's own. Toolchains (rustup, npm, go) are below it, and an agent's program keeps its login there; with
//! another one most builds would not start. The sandbox decides what below it may be read or written.
//!
//! Never passed: Adjutant's own variables (`ADJ_…`, among them the server's token) except those given here, and
//! `SSH_AUTH_SOCK` and other keys, unless the user names them.

use std::ffi::OsString;
use std::path::Path;

/// Passed on as they are, where they are set.
const PASSED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ"];
/// How this machine reaches the network: without these nothing gets out behind a proxy, and no certificate that the
/// user's company signed is believed.
pub const NETWORK: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "NODE_USE_ENV_PROXY",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "PIP_CERT",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "NIX_SSL_CERT_FILE",
];
/// The categories of a locale: no other name that begins with `LC_` means anything.
const LOCALE: &[&str] = &[
    "LC_ALL",
    "LC_CTYPE",
    "LC_COLLATE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_ADDRESS",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_NAME",
    "LC_PAPER",
    "LC_TELEPHONE",
];
/// What a program is found by where the user's PATH is not set.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// The longest value that is passed on; a program gets about this much for everything.
const VALUE_BYTES_MAX: usize = 128 * 1024;

/// What Adjutant itself says in the environment.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub task: &'a str,
    pub worker: &'a str,
    pub run: &'a str,
    /// The first port of the run's block.
    pub port_base: Option<u16>,
    /// A directory of its own for temporary files.
    pub temporary: &'a Path,
}

/// The whole environment, sorted by name. `source` is where the user's variables are looked up, `allow` what the agent's
/// settings name besides. What is not UTF-8 or too long is left out.
pub fn environment(
    allow: &[String],
    source: &impl Fn(&str) -> Option<OsString>,
    given: &Given,
) -> Vec<(String, String)> {
    let is_ours = |name: &str| name.starts_with("ADJ_");
    let named = allow.iter().map(String::as_str).filter(|name| !is_ours(name));
    let mut variables = std::collections::BTreeMap::new();
    for name in PASSED.iter().chain(NETWORK).chain(LOCALE).copied().chain(named) {
        let value = source(name).and_then(|value| value.into_string().ok());
        if let Some(value) = value.filter(|value| value.len() <= VALUE_BYTES_MAX && !value.contains('\0')) {
            variables.insert(name.to_owned(), value);
        }
    }
    variables.entry("PATH".to_owned()).or_insert_with(|| PATH_DEFAULT.to_owned());
    let mut give = |name: &str, value: String| variables.insert(name.to_owned(), value);
    // Nobody looks at a terminal: no colours, no cursor that moves.
    give("TERM", "dumb".to_owned());
    give("TMPDIR", given.temporary.to_string_lossy().into_owned());
    give("ADJ_TASK", given.task.to_owned());
    give("ADJ_WORKER", given.worker.to_owned());
    give("ADJ_RUN", given.run.to_owned());
    if let Some(port) = given.port_base {
        give("ADJ_PORT_BASE", port.to_string());
    }
    variables.into_iter().collect()
}

#[cfg(test)]
mod test {
    use super::*;

    fn made(allow: &[&str], user: &[(&str, &str)]) -> Vec<String> {
        let source =
            |name: &str| user.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let allow: Vec<_> = allow.iter().map(|name| (*name).to_owned()).collect();
        let given = Given {
            task: "ab-1",
            worker: "A",
            run: "ab-1.1",
            port_base: Some(20010),
            temporary: Path::new("/t"),
        };
        environment(&allow, &source, &given)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn nothing_is_passed_on_but_what_is_listed() {
        let user = [
            ("PATH", "/bin"),
            ("HOME", "/home/a"),
            ("LC_TIME", "C"),
            ("no_proxy", "localhost"),
            ("SSL_CERT_FILE", "/ca.pem"),
            ("TERM", "xterm"),
            ("TMPDIR", "/tmp"),
            ("SSH_AUTH_SOCK", "/s"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("ADJ_TOKEN", "x"),
            ("ADJ_TASK", "other"),
            ("API_KEY", "k"),
        ];
        let ours = ["ADJ_PORT_BASE=20010", "ADJ_RUN=ab-1.1", "ADJ_TASK=ab-1", "ADJ_WORKER=A"];
        let users = [
            "HOME=/home/a",
            "LC_TIME=C",
            "PATH=/bin",
            "SSL_CERT_FILE=/ca.pem",
            "TERM=dumb",
            "TMPDIR=/t",
            "no_proxy=localhost",
        ];
        assert_eq!(made(&[], &user), [&ours[..], &users[..]].concat());
        let named = made(&["API_KEY", "SSH_AUTH_SOCK", "ADJ_TOKEN", "ABSENT", "TERM"], &user);
        let added: Vec<_> =
            named.iter().filter(|it| !ours.contains(&it.as_str()) && !users.contains(&it.as_str())).collect();
        assert_eq!(added, ["API_KEY=k", "SSH_AUTH_SOCK=/s"]);
    }

    #[test]
    fn a_program_is_found_though_no_path_is_set() {
        assert!(made(&[], &[]).contains(&format!("PATH={PATH_DEFAULT}")));
    }
}
