//! The author, committer and signature of commits: agents commit under their own name and unsigned; the user commits under theirs,
//! signed if they sign.
//!
//! Invariants:
//! - an agent never signs: its key would be the user's;
//! - if the user's settings require signed merges, an unsigned merge is not made;
//! - only the user's own settings choose the program that signs, never a file that an agent can write.

use std::path::Path;

use super::inside::Inside;
use super::names::SIGNED;
use super::{Call, GitError, Isolation, Oid, Repository, as_user};

/// Part of the settings of an agent's clone that is written anew before each step.
const INCLUDED: &str = "adjutant.inc";
/// The most that is read of a clone's settings.
const CONFIG_BYTES_MAX: usize = 1 << 20;
/// By this line a hook of ours is known from others.
const HOOK_MARK: &str = "# Written by Adjutant: names the person beside the agent.";
const HOOK: &str = "hooks/commit-msg";
/// How long signing may take: somebody may have to type a passphrase.
const SIGNING_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(120);

/// What a program that signs needs to find keys, agents and a person.
const SIGNING_VARIABLES: &[&str] = &[
    "GNUPGHOME",
    "GPG_TTY",
    "GPG_AGENT_INFO",
    "PINENTRY_USER_DATA",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "USER",
    "LOGNAME",
    "TERM",
];

/// Who an agent's commits are by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    pub mail: String,
    pub person: Person,
}

/// How the person stands in an agent's commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    Committer,
    CoAuthor,
    Absent,
}

/// Who a commit of ours is by.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    Person,
    Agent(&'a Agent),
}

/// The person's own settings for signatures, as git names them.
pub(super) struct Signing {
    settings: Vec<(String, String)>,
}

impl By<'_> {
    pub fn name(self, repository: &Repository, call: Call) -> Call {
        match self {
            By::Person => call,
            By::Agent(agent) => {
                let (name, mail) = agent.committer(repository);
                call.env("GIT_AUTHOR_NAME", &agent.name)
                    .env("GIT_AUTHOR_EMAIL", &agent.mail)
                    .env("GIT_COMMITTER_NAME", name)
                    .env("GIT_COMMITTER_EMAIL", mail)
            }
        }
    }
}

impl Agent {
    fn committer<'a>(&'a self, repository: &'a Repository) -> (&'a str, &'a str) {
        let user = &repository.inner.user;
        match self.person {
            Person::Committer => (&user.name, &user.email),
            Person::CoAuthor | Person::Absent => (&self.name, &self.mail),
        }
    }

    /// The message of a commit of its, with the person in it where they are to be.
    pub(super) fn message(&self, repository: &Repository, message: &str) -> String {
        match self.person {
            Person::CoAuthor => format!("{}\n\n{}\n", message.trim_end(), repository.co_author()),
            Person::Committer | Person::Absent => message.to_owned(),
        }
    }

    /// As settings of git, for whoever commits in a tree that shares its own with the person.
    pub fn settings(&self, repository: &Repository) -> Vec<(&'static str, String)> {
        let (name, mail) = self.committer(repository);
        vec![
            ("author.name", self.name.clone()),
            ("author.email", self.mail.clone()),
            ("committer.name", name.to_owned()),
            ("committer.email", mail.to_owned()),
        ]
    }
}

impl Repository {
    fn co_author(&self) -> String {
        format!("Co-authored-by: {} <{}>", self.inner.user.name, self.inner.user.email)
    }

    /// What the agent commits in this clone from now on is by it. A worktree shares its settings with the person, so
    /// there it is for the agent's environment to say.
    pub fn commit_as(&self, tree: &Path, agent: &Agent) -> Result<(), GitError> {
        let name = tree.strip_prefix(&self.inner.places.trees).ok().and_then(Path::to_str);
        let Some(name) = name.filter(|_| self.inner.places.isolation == Isolation::Clone) else {
            return Ok(());
        };
        // One that is not there is missed by whoever needs more of it than a name.
        let Ok(git_dir) = self.git_dir_of(name) else { return Ok(()) };
        let failed =
            |source| GitError::Io { doing: "naming the agent", at: git_dir.path().to_owned(), source };
        let mut text = String::new();
        for (key, value) in agent.settings(self) {
            let (section, key) = key.split_once('.').unwrap_or_default();
            text.push_str(&format!("[{section}]\n\t{key} = {}\n", quoted(&value)));
        }
        text.push_str("[commit]\n\tgpgsign = false\n[tag]\n\tgpgsign = false\n");
        git_dir.replace(INCLUDED, text.as_bytes()).map_err(failed)?;
        // A clone of an older version does not ask for it yet. One whose settings are gone has no use for it either.
        if let Ok(Some(mut config)) = git_dir.read("config", CONFIG_BYTES_MAX)
            && !String::from_utf8_lossy(&config).contains(INCLUDED)
        {
            config.extend_from_slice(include().as_bytes());
            git_dir.replace("config", &config).map_err(failed)?;
        }
        self.hook(&git_dir, agent.person).map_err(failed)
    }

    fn hook(&self, git_dir: &Inside, person: Person) -> std::io::Result<()> {
        let there = git_dir.read(HOOK, CONFIG_BYTES_MAX).ok().flatten();
        let is_ours = there.as_ref().is_some_and(|text| String::from_utf8_lossy(text).contains(HOOK_MARK));
        if person != Person::CoAuthor {
            return if is_ours { git_dir.remove_file(HOOK) } else { Ok(()) };
        }
        if there.is_some() && !is_ours {
            // The agent, or a tool of the project's, has put its own there.
            return Ok(());
        }
        let trailer = self.co_author().replace('\'', "'\\''");
        let script = format!(
            "#!/bin/sh\n{HOOK_MARK}\nexec git interpret-trailers --in-place --if-exists addIfDifferent \
             --trailer '{trailer}' \"$1\"\n"
        );
        git_dir.replace_program(HOOK, script.as_bytes())
    }

    /// The commit as the person signs it, or itself where they do not. Asked again it is the same one, though no two
    /// signatures are the same.
    pub(super) fn signed(&self, unsigned: Oid, make: impl Fn(Call) -> Call) -> Result<Oid, GitError> {
        let Some(signing) = self.signing()? else { return Ok(unsigned) };
        let reference = format!("{SIGNED}{unsigned}");
        if let Some(made) = self.land_reference(&reference)? {
            return Ok(made);
        }
        let mut call = self.land("signing the merge").time_max(SIGNING_TIME_MAX);
        for name in SIGNING_VARIABLES {
            if let Some(value) = std::env::var_os(name) {
                call = call.env(name, value);
            }
        }
        if std::env::var_os("SSH_ASKPASS").is_none() {
            // Else it would wait at a terminal that is not its own, for ever.
            call = call.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        }
        for (key, value) in &signing.settings {
            call = call.set(key, value);
        }
        let made = make(call).arg("-S").oid().map_err(|error| GitError::NotSigned {
            why: match &error {
                GitError::Failed { said, .. } => said.lines().map(str::trim).collect::<Vec<_>>().join("; "),
                other => other.to_string(),
            },
            command: signing.unlock().to_owned(),
        })?;
        self.set_in_land(&reference, &made)?;
        Ok(made)
    }

    /// Asked each time: whoever is told that signing fails may answer by switching it off.
    fn signing(&self) -> Result<Option<Signing>, GitError> {
        let listed =
            as_user("reading the user's git settings", &self.inner.places.root, self.inner.home.as_deref())
                .env("GIT_DIR", &self.inner.git_dir)
                .args(["config", "-z", "--list", "--show-scope"])
                .ok()?;
        let text = String::from_utf8_lossy(&listed).into_owned();
        let mut parts = text.split('\0');
        let (mut wanted, mut found) = (false, Signing { settings: Vec::new() });
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            // What an agent in a worktree could have written is not asked for a program.
            let is_shared =
                self.inner.places.isolation == Isolation::Worktree && ["local", "worktree"].contains(&scope);
            let names_program = key.ends_with("program") || key.ends_with("command");
            match key {
                "commit.gpgsign" => wanted = !matches!(value, "false" | "no" | "off" | "0" | ""),
                "user.signingkey" => found.settings.push((key.to_owned(), value.to_owned())),
                _ if key.starts_with("gpg.") && !(is_shared && names_program) => {
                    found.settings.push((key.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        Ok(wanted.then_some(found))
    }
}

impl Signing {
    /// What a person can do about a signature that fails.
    fn unlock(&self) -> &'static str {
        let format = self.settings.iter().rev().find(|(key, _)| key == "gpg.format");
        match format.map_or("openpgp", |(_, value)| value) {
            "ssh" => "`ssh-add` to unlock your key, or `git config commit.gpgsign false` to land unsigned",
            _ => {
                "`echo | gpg --clearsign` to unlock your key, or `git config commit.gpgsign false` to land unsigned"
            }
        }
    }
}

/// The line by which a clone's settings ask for ours.
pub(super) fn include() -> String {
    format!("[include]\n\tpath = {INCLUDED}\n")
}

/// A value in a git config file.
pub(super) fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
