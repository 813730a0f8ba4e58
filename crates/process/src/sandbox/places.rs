//! The places of a machine that are hidden from agents and tests, and those that they need.
//!
//! The lists are by name, because a credential cannot be recognised by its content. Users name other places
//! in `sandbox.hide`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Well-known places of credentials and of what people have typed or looked at. `~/` is the user's home.
#[rustfmt::skip]
pub const HIDDEN: &[&str] = &[
    // Our own: keys for agents, logins, tokens for what reads our numbers.
    "~/.config/adjutant", "/etc/adjutant", "/etc/prometheus/adjutant.token",
    // Keys, and what they unlock.
    "~/.ssh", "~/.gnupg", "~/.pki", "~/.password-store", "~/.local/share/keyrings", "~/.local/share/kwalletd",
    "~/.config/age", "~/.config/sops", "~/.vault-token", "~/.config/op", "~/.config/1Password", "~/.config/Bitwarden",
    "~/.config/Bitwarden CLI", "~/.config/keepassxc", "~/.krb5cc", "~/.config/rclone", "~/.config/rbw",
    // Clouds and clusters.
    "~/.aws", "~/.config/gcloud", "~/.boto", "~/.azure", "~/.kube", "~/.docker", "~/.config/containers/auth.json",
    "~/.terraform.d", "~/.terraformrc", "~/.config/doctl", "~/.config/hcloud", "~/.config/flyctl", "~/.fly", "~/.oci",
    "~/.config/heroku", "~/.config/linode-cli", "~/.s3cfg", "~/.mc", "~/.pulumi/credentials.json", "~/.config/helm",
    "~/.vercel", "~/.local/share/com.vercel.cli", "~/.config/netlify", "~/.wrangler", "~/.config/.wrangler",
    "~/.config/configstore", "~/.ngrok2", "~/.config/ngrok", "~/.huggingface/token", "~/.cache/huggingface/token",
    // Forges and package registries.
    "~/.netrc", "~/.authinfo", "~/.authinfo.gpg", "~/.git-credentials", "~/.config/git/credentials", "~/.cache/git/credential",
    "~/.git-credential-cache", "~/.gcm", "~/.config/gh", "~/.config/hub", "~/.config/glab-cli", "~/.config/tea",
    "~/.npmrc", "~/.yarnrc.yml", "~/.config/pnpm/rc", "~/.pypirc", "~/.pip/pip.conf", "~/.config/pip/pip.conf",
    "~/.config/uv/credentials", "~/.local/share/uv/credentials", "~/.config/pypoetry/auth.toml",
    "~/.local/share/python_keyring", "~/.cargo/credentials", "~/.cargo/credentials.toml", "~/.gem/credentials",
    "~/.local/share/gem/credentials", "~/.bundle/config", "~/.composer/auth.json", "~/.config/composer/auth.json",
    "~/.m2/settings-security.xml", "~/.hex", "~/.nuget/NuGet/NuGet.Config", "~/.config/NuGet/NuGet.Config",
    // Databases.
    "~/.pgpass", "~/.my.cnf", "~/.mylogin.cnf", "~/.config/dbeaver", "~/.local/share/DBeaverData",
    // Browsers and mail.
    "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium", "~/.config/BraveSoftware", "~/.config/microsoft-edge",
    "~/.config/vivaldi", "~/.config/opera", "~/.librewolf", "~/.zen", "~/.config/mozilla", "~/.thunderbird", "~/.var/app",
    "~/snap/firefox", "~/snap/chromium", "~/snap/thunderbird", "~/.config/Signal", "~/.config/Slack", "~/.config/discord",
    "~/.local/share/TelegramDesktop",
    // What was typed.
    "~/.bash_history", "~/.zsh_history", "~/.zhistory", "~/.histfile", "~/.history", "~/.local/share/fish/fish_history",
    "~/.local/share/atuin", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history",
    "~/.sqlite_history", "~/.rediscli_history", "~/.irb_history", "~/.lesshst", "~/.viminfo", "~/.wget-hsts",
    // The system's own, which matter where agents are root.
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/krb5.keytab",
    "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/docker/key.json", "/etc/rancher",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet",
];

/// A program, and what it keeps of itself in a home: hidden from all others.
pub type ProgramHome = (&'static str, &'static [&'static str]);

/// Agents that have no adapter; one that has says so itself.
#[rustfmt::skip]
const AGENTS: &[ProgramHome] = &[
    ("gemini",       &["~/.gemini"]),
    ("qwen",         &["~/.qwen"]),
    ("opencode",     &["~/.local/share/opencode", "~/.config/opencode"]),
    ("cursor-agent", &["~/.cursor", "~/.config/cursor"]),
    ("copilot",      &["~/.copilot", "~/.config/github-copilot"]),
    ("aider",        &["~/.aider", "~/.aider.conf.yml"]),
    ("goose",        &["~/.config/goose", "~/.local/share/goose"]),
    ("amp",          &["~/.config/amp", "~/.local/share/amp"]),
    ("crush",        &["~/.config/crush", "~/.local/share/crush"]),
    ("q",            &["~/.local/share/amazon-q"]),
];

/// Sockets by which a program could have others act for it, outside of its sandbox.
#[rustfmt::skip]
const SOCKETS: &[(&str, &str)] = &[
    ("/run/docker.sock",                       "docker"),
    ("/run/podman",                            "podman"),
    ("/run/containerd",                        "containerd"),
    ("/run/crio",                              "CRI-O"),
    ("/run/k3s",                               "k3s"),
    ("/run/libvirt",                           "libvirt"),
    ("/var/lib/lxd/unix.socket",               "LXD"),
    ("/var/snap/lxd/common/lxd/unix.socket",   "LXD"),
    ("/var/lib/incus/unix.socket",             "Incus"),
    ("/run/dbus/system_bus_socket",            "D-Bus (system)"),
    ("/run/systemd/private",                   "systemd"),
    ("/run/snapd.socket",                      "snapd"),
    ("/run/screen",                            "screen"),
    ("/tmp/.X11-unix",                         "X11"),
    ("~/.docker/run/docker.sock",              "docker"),
    ("~/.gnupg/S.gpg-agent",                   "gpg-agent"),
];

/// Variables that name a socket, as a path or as `unix:path=…` or `unix://…`.
const SOCKET_VARIABLES: &[(&str, &str)] = &[
    ("SSH_AUTH_SOCK", "ssh-agent"),
    ("DOCKER_HOST", "docker"),
    ("CONTAINER_HOST", "podman"),
    ("DBUS_SESSION_BUS_ADDRESS", "D-Bus (session)"),
    ("TMUX", "tmux"),
    ("GNOME_KEYRING_CONTROL", "keyring"),
];

/// What every program needs of a system, for a sandbox that lets nothing else be read.
#[rustfmt::skip]
const SYSTEM: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/dev", "/proc",
    "/sys", "/var/cache/fontconfig", "/var/cache/ldconfig", "/var/lib/ca-certificates", "/var/lib/dpkg", "/var/lib/rpm",
    "/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/systemd/resolve", "/run/resolvconf",
    "/run/NetworkManager/resolv.conf", "/run/nscd",
];

/// Where toolchains live in a home.
#[rustfmt::skip]
const TOOLCHAINS: &[&str] = &[
    "~/.cargo", "~/.rustup", "~/go", "~/.goenv", "~/.nvm", "~/.volta", "~/.fnm", "~/.local/share/fnm", "~/.nodenv", "~/.n",
    "~/.npm-global", "~/.bun", "~/.deno", "~/.local/share/pnpm", "~/.pyenv", "~/.rye", "~/.local/share/uv", "~/.local/pipx",
    "~/.local/share/pipx", "~/.conda", "~/miniconda3", "~/anaconda3", "~/miniforge3", "~/.rbenv", "~/.rvm", "~/.gem",
    "~/.local/share/gem", "~/.asdf", "~/.local/share/mise", "~/.local/share/rtx", "~/.sdkman", "~/.jenv", "~/.jabba",
    "~/.m2", "~/.gradle", "~/.ghcup", "~/.stack", "~/.cabal", "~/.opam", "~/.elan", "~/.juliaup", "~/.julia", "~/.dotnet",
    "~/.nuget/packages", "~/.zvm", "~/.swiftly", "~/.nimble", "~/.choosenim", "~/.local/bin", "~/.local/lib",
    "~/.local/share/claude", "~/.claude/local", "~/.gitconfig", "~/.config/git", "~/.editorconfig", "~/bin",
    "~/.linuxbrew", "/home/linuxbrew",
];

/// Variables that name the place of a toolchain.
const TOOLCHAIN_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOROOT",
    "GOPATH",
    "GOMODCACHE",
    "NVM_DIR",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "DENO_INSTALL",
    "PNPM_HOME",
    "PYENV_ROOT",
    "CONDA_PREFIX",
    "RBENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "SDKMAN_DIR",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "ANDROID_HOME",
];

/// The machine as its user has it: a home, and variables.
pub struct Machine<'a> {
    pub home: Option<&'a Path>,
    /// What the programs of adapters keep of themselves.
    pub agents: &'a [ProgramHome],
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A socket that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    pub path: PathBuf,
    /// Whose it is: `docker`.
    pub of: &'static str,
}

impl Machine<'_> {
    /// A place as a list or the settings have it; nothing where it needs a home and there is none.
    pub fn path(&self, written: &str) -> Option<PathBuf> {
        match written.strip_prefix("~/") {
            Some(rest) => self.home.map(|home| home.join(rest)),
            None => Some(PathBuf::from(written)),
        }
    }

    fn paths(&self, written: &[&str]) -> Vec<PathBuf> {
        written.iter().filter_map(|place| self.path(place)).collect()
    }

    /// Every shipped place, but for what this program keeps of itself.
    pub fn hidden(&self, program: Option<&str>) -> Vec<PathBuf> {
        let own = program.map(|program| Path::new(program).file_name().unwrap_or_default());
        let of_agents =
            self.agents.iter().chain(AGENTS).filter(|(name, _)| own.is_none_or(|own| own != *name));
        let of_agents = of_agents.flat_map(|(_, places)| self.paths(places));
        // A login that keeps its settings elsewhere keeps ours there, too.
        let settings =
            (self.variable)("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let ours = settings.map(|settings| settings.join("adjutant"));
        self.paths(HIDDEN).into_iter().chain(ours).chain(of_agents).collect()
    }

    /// The sockets that are on this machine now.
    pub fn sockets(&self) -> Vec<Socket> {
        let known = SOCKETS.iter().filter_map(|(place, of)| Some(Socket { path: self.path(place)?, of }));
        let named = SOCKET_VARIABLES.iter().filter_map(|(name, of)| {
            let value = (self.variable)(name)?.into_string().ok()?;
            Some(Socket { path: socket_path(&value)?, of })
        });
        let user = nix::unistd::geteuid();
        // All that runs for one login: its D-Bus, gpg-agent, keyring, sound, screen.
        let runtime = (self.variable)("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let runtime = runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
        let session = Socket { path: runtime, of: "the login's own (D-Bus, gpg-agent, keyring, …)" };
        let tmux = Socket { path: PathBuf::from(format!("/tmp/tmux-{user}")), of: "tmux" };
        let mut found: Vec<Socket> = Vec::new();
        for socket in known.chain(named).chain([session, tmux]) {
            let Ok(path) = socket.path.canonicalize() else { continue };
            if path != Path::new("/") && found.iter().all(|known| !path.starts_with(&known.path)) {
                found.push(Socket { path, ..socket });
            }
        }
        found
    }

    /// The sockets that are in the home directory now, in its first levels, but for those in these folders.
    pub fn sockets_at_home(&self, but: &[PathBuf]) -> Vec<PathBuf> {
        let home = self.home.and_then(|home| home.canonicalize().ok()).filter(|home| home != Path::new("/"));
        let mut but = but.to_vec();
        but.extend(self.hidden(None));
        home.map(|home| sockets_below(&home, LEVELS_AT_HOME, &but)).unwrap_or_default()
    }

    /// The sockets elsewhere that are looked for: those of a login, of temporary files, of services.
    pub fn sockets_elsewhere(&self, but: &[PathBuf]) -> Vec<PathBuf> {
        let user = nix::unistd::geteuid();
        let session = (format!("/run/user/{user}"), LEVELS_ELSEWHERE);
        let places = [session, ("/tmp".to_owned(), LEVELS_ELSEWHERE), ("/run".to_owned(), LEVELS_ELSEWHERE)];
        let mut found: Vec<PathBuf> = Vec::new();
        for (place, levels) in places {
            let sockets = sockets_below(Path::new(&place), levels, but);
            found.extend(sockets.into_iter().filter(|path| !found.contains(path)).collect::<Vec<_>>());
        }
        found
    }

    /// The sockets that these variables name: whoever passes one on means it to be used.
    pub fn passed_on(&self, names: &[String]) -> Vec<PathBuf> {
        let value = |name: &String| (self.variable)(name)?.into_string().ok();
        let known = |name: &&String| SOCKET_VARIABLES.iter().any(|(known, _)| known == name);
        names.iter().filter(known).filter_map(value).filter_map(|value| socket_path(&value)).collect()
    }

    /// The system and the toolchains, and where this program lies.
    pub fn system(&self, program: Option<&str>) -> Vec<PathBuf> {
        let mut found = self.paths(SYSTEM);
        found.extend(self.paths(TOOLCHAINS));
        let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
        let named = TOOLCHAIN_VARIABLES.iter().filter_map(|name| (self.variable)(name));
        found.extend(named.map(PathBuf::from).filter_map(absolute));
        let searched = (self.variable)("PATH").unwrap_or_default();
        let searched: Vec<PathBuf> = std::env::split_paths(&searched).filter_map(absolute).collect();
        found.extend(searched.iter().map(|folder| installation(folder)));
        let programs =
            program.into_iter().flat_map(|program| searched.iter().map(move |at| at.join(program)));
        let real =
            programs.filter_map(|program| program.canonicalize().ok()).find(|program| program.is_file());
        // A program that is started through a link has the rest of itself beside what the link leads to.
        found.extend(real.as_deref().and_then(Path::parent).map(Path::to_path_buf));
        // Nobody who has a program in their home means all of it.
        found.retain(|path| self.home.is_none_or(|home| !home.starts_with(path)) && path.exists());
        found
    }
}

/// What belongs to a folder of programs: for `~/.x/versions/1/bin` all of `~/.x/versions/1`, for `~/.local/bin` itself.
fn installation(folder: &Path) -> PathBuf {
    let is_bin = folder.file_name().is_some_and(|name| name == "bin");
    match folder.parent() {
        Some(parent) if is_bin && parent.file_name().is_some_and(|name| name != ".local") => {
            parent.to_owned()
        }
        _ => folder.to_owned(),
    }
}

/// How deep sockets are looked for, and how many files are looked at for that.
const LEVELS_AT_HOME: usize = 3;
const LEVELS_ELSEWHERE: usize = 2;
const SOCKET_LOOKS_MAX: usize = 20_000;

/// The sockets in a folder that may be connected to, the nearest first. Repositories have none in their git directories that
/// are not ours, and what is in the folders of `but` is not looked at.
fn sockets_below(folder: &Path, levels: usize, but: &[PathBuf]) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let (mut found, mut looks) = (Vec::new(), 0);
    let mut folders = vec![folder.to_owned()];
    for _ in 0..levels {
        let mut deeper = Vec::new();
        for entry in folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten() {
            looks += 1;
            if looks > SOCKET_LOOKS_MAX {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if but.contains(&path) {
                continue;
            }
            if kind.is_dir() && entry.file_name() != ".git" {
                deeper.push(path);
            } else if kind.is_socket() && nix::unistd::access(&path, nix::unistd::AccessFlags::W_OK).is_ok() {
                found.push(path);
            }
        }
        folders = deeper;
    }
    found.sort();
    found
}

/// The path in the value of a variable that names a socket; tmux has more behind a comma.
fn socket_path(value: &str) -> Option<PathBuf> {
    let value = value.trim_start_matches("unix:").trim_start_matches("path=");
    let value = value.strip_prefix("//").unwrap_or(value);
    let path = PathBuf::from(value.split([',', ';']).next()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine<'a>(home: &'a Path, variable: &'a dyn Fn(&str) -> Option<OsString>) -> Machine<'a> {
        Machine { home: Some(home), agents: &[("codex", &["~/.codex"])], variable }
    }

    #[test]
    fn an_agent_keeps_its_own_login_and_no_other() {
        let none = |_: &str| None;
        let machine = machine(Path::new("/home/a"), &none);
        let hidden = machine.hidden(Some("/usr/bin/codex"));
        assert!(!hidden.contains(&"/home/a/.codex".into()));
        assert!(hidden.contains(&"/home/a/.gemini".into()) && hidden.contains(&"/home/a/.ssh".into()));
        assert!(machine.hidden(None).contains(&"/home/a/.codex".into()));
    }

    /// What the documentation tells people to put keys into is no place where agents look.
    #[test]
    fn every_file_of_ours_that_the_documentation_names_outside_of_a_project_is_hidden() {
        let none = |_: &str| None;
        let machine = machine(Path::new("/home/a"), &none);
        let hidden = machine.hidden(None);
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let mut found = Vec::new();
        for page in std::fs::read_dir(docs).unwrap().flatten().filter(|page| page.path().is_file()) {
            let text = std::fs::read_to_string(page.path()).unwrap();
            let ends = |c: char| c.is_whitespace() || "`\"'()[]{},;|<>".contains(c);
            let named = text.split(ends).map(|word| word.trim_end_matches(['.', ':', '/']));
            let ours = named.filter(|word| {
                (word.starts_with("~/") || word.starts_with("/etc/")) && word.contains("adjutant")
            });
            found.extend(
                ours.filter(|word| !HOLD_NO_KEYS.iter().any(|known| word.starts_with(known)))
                    .map(str::to_owned),
            );
        }
        assert!(found.len() >= 3, "{found:?}");
        for word in found {
            let path = machine.path(&word).unwrap();
            assert!(hidden.iter().any(|place| path.starts_with(place)), "{word} can be read by agents");
        }
        let elsewhere = |name: &str| (name == "XDG_CONFIG_HOME").then(|| "/config".into());
        let machine = Machine { home: Some(Path::new("/home/a")), agents: &[], variable: &elsewhere };
        assert!(machine.hidden(None).contains(&"/config/adjutant".into()));
    }

    /// Named in the documentation, and for everybody to see: trees, and units.
    const HOLD_NO_KEYS: &[&str] =
        &["~/adjutant-trees", "~/.config/systemd", "/etc/systemd", "~/.local/share/adjutant"];

    #[test]
    fn a_socket_is_found_in_whatever_way_a_variable_names_it() {
        for value in ["/s/a", "unix:path=/s/a", "unix:///s/a", "unix:path=/s/a,guid=1", "/s/a,12,0"] {
            assert_eq!(socket_path(value), Some("/s/a".into()), "{value}");
        }
        for value in ["", "tcp://host:1", "unix:abstract=x"] {
            assert_eq!(socket_path(value), None, "{value}");
        }
    }

    #[test]
    fn a_program_in_the_home_does_not_open_all_of_it() {
        let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/tmp/bin:/tmp".into());
        let machine = machine(Path::new("/tmp"), &path);
        let found = machine.system(None);
        assert!(found.contains(&"/usr".into()) && !found.contains(&"/tmp".into()), "{found:?}");
    }
}
