//! Who a caller is, by the token that it shows.
//!
//! The project's token is a person's; whoever can read `.git/adjutant/token` is the project's user. An agent gets a token
//! of its own for each run, and for each reply outside of any task, bound to its name and role. People make others by name, for colleagues and programs. Of
//! these only hashes are kept, in memory and on disk, so that a restart of the owner does not lock anybody out and a
//! copy of the file lets nobody in.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::files::write_whole;
use fleet::KeyFor;
use kernel::Actor;
use kernel::config::Role;
use kernel::rooms::Seat;
use machines::Millis;
use machines::names::{AgentName, EffectId, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::sync::watch;

use api::types::token::TokenRole;

/// The project's token, in its folder.
pub const FILE: &str = "token";
/// The hashes of the agents' tokens, beside it.
const AGENTS: &str = "tokens.json";
/// Those of the tokens that people made by name.
const NAMED: &str = "named-tokens.json";
/// That there are some: without this, a list that somebody removed would look like one that was never begun.
const NAMED_MADE: &str = "named-tokens.made";

/// Of chance, before it is written as hexadecimal digits.
const TOKEN_BYTES: usize = base::secrets::TOKEN_DIGITS / 2;
/// More tokens than runs can be open; the oldest go first.
const TOKENS_MAX: usize = 10_000;
/// As many as people can still tell apart.
const NAMED_MAX: usize = 1_000;
/// How much of a hash names a token.
pub(super) const ID_DIGITS: usize = 12;
/// A file of tokens that is larger than this was not written by us.
const FILE_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("`{}`: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("`{}` does not hold what was written there: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "`{}` is gone, and with it every token that people made; put it back, or remove `{}` to revoke them all and make new \
         ones with `adj token create`",
        path.display(),
        mark.display()
    )]
    Gone { path: PathBuf, mark: PathBuf },
    #[error("there are {NAMED_MAX} tokens already; `adj token revoke` makes room")]
    TooMany,
}

/// An agent's token, without the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Issued {
    hash: String,
    agent: AgentName,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// Where it speaks, outside of any run, and the reply that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seat: Option<Seat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<EffectId>,
}

impl Issued {
    /// What it is for; `None` for what we never wrote.
    fn what(&self) -> Option<KeyFor<'_>> {
        match (&self.run, &self.seat, &self.reply) {
            (Some(run), None, None) => Some(KeyFor::Run(run)),
            (None, Some(seat), Some(reply)) => Some(KeyFor::Reply(seat, reply)),
            _ => None,
        }
    }
}

/// A token that a person made for somebody, without the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    hash: String,
    pub name: String,
    pub role: TokenRole,
    pub created_at: Millis,
    /// It lets nobody in from then on.
    pub expires_at: Option<Millis>,
}

impl Named {
    /// What it is called by: nobody can make a token of it.
    pub fn id(&self) -> &str {
        id_of(&self.hash)
    }

    fn lives(&self, now: Millis) -> bool {
        self.expires_at.is_none_or(|until| until > now)
    }

    fn caller(&self) -> Caller {
        let name = SmolStr::new(&self.name);
        let agent = |role| match self.name.parse() {
            Ok(name) => Actor::Agent { name, role },
            // It was checked when the token was made; a name that is none may do nothing but look.
            Err(_) => Actor::Human(name.clone()),
        };
        let actor = match self.role {
            TokenRole::Person | TokenRole::Reader => Actor::Human(name.clone()),
            TokenRole::Lead => agent(Role::Lead),
            TokenRole::Specialist => agent(Role::Specialist),
            TokenRole::Intern => agent(Role::Intern),
        };
        let token = Some(SmolStr::new(self.id()));
        Caller {
            reads_only: self.role == TokenRole::Reader,
            actor,
            run: None,
            seat: None,
            reply: None,
            token,
            paced: true,
        }
    }
}

/// Who asks, by the token that was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    pub actor: Actor,
    /// The run that an agent's token is for.
    pub run: Option<RunId>,
    /// Where the agent speaks outside of any run, if its token is for that.
    pub seat: Option<Seat>,
    /// The reply that the token is for: it speaks for this one, and not for whatever the agent says there next.
    pub reply: Option<EffectId>,
    /// The token that it all rests on, of those that people made by name.
    pub token: Option<SmolStr>,
    /// Nothing may be changed with it.
    pub reads_only: bool,
    /// It is one of several: how often it asks is counted under its actor's name.
    pub paced: bool,
}

impl Caller {
    /// A person who may do what people may.
    pub fn person(user: &str) -> Caller {
        let actor = Actor::Human(SmolStr::new(user));
        Caller { actor, run: None, seat: None, reply: None, token: None, reads_only: false, paced: false }
    }
}

/// All that is known of tokens. Shared by the server, which asks, and the runner, which mints and revokes.
pub struct Tokens {
    folder: PathBuf,
    /// `None` where no owner has made one yet.
    project: Option<String>,
    issued: Mutex<Vec<Issued>>,
    named: Mutex<Vec<Named>>,
    /// Counts up when a token that let somebody in may not do so any more.
    changes: watch::Sender<u64>,
}

impl Tokens {
    /// For an owner: the project's token is there when this returns, and nobody else can have read it.
    pub fn open(folder: &Path) -> Result<Tokens, TokenError> {
        let path = folder.join(FILE);
        let failed = |error| TokenError::Io { path: path.clone(), error };
        // One that others could read, or that came with a checkout, may be known to somebody.
        let private = std::fs::metadata(&path).is_ok_and(|there| there.mode() & 0o077 == 0);
        let token = match read_token(folder)?.filter(|_| private) {
            Some(token) => token,
            None => {
                let token = fresh().map_err(failed)?;
                write_whole(&path, token.as_bytes()).map_err(failed)?;
                token
            }
        };
        Ok(Tokens { project: Some(hash(&token)), ..Tokens::read(folder)? })
    }

    /// For a command that is its own owner: what there is, and nothing is made.
    pub fn read(folder: &Path) -> Result<Tokens, TokenError> {
        let project = read_token(folder)?.as_deref().map(hash);
        let hinted = |hint: &'static str| {
            move |error| match error {
                TokenError::Damaged { path, why } => {
                    TokenError::Damaged { path, why: format!("{why}; {hint}") }
                }
                other => other,
            }
        };
        let (agents, named) = (folder.join(AGENTS), folder.join(NAMED));
        let issued =
            Mutex::new(read_list(&agents).map_err(hinted(
                "remove it while nothing runs: agents get new tokens with their next steps",
            ))?);
        let mark = folder.join(NAMED_MADE);
        if mark.exists() && !named.exists() {
            return Err(TokenError::Gone { path: named, mark });
        }
        let named = Mutex::new(read_list(&named).map_err(hinted(
            "put a copy back, or remove it while nothing runs, together with `named-tokens.made`: every token that people made \
             is then revoked, and `adj token create` makes new ones",
        ))?);
        Ok(Tokens { folder: folder.to_owned(), project, issued, named, changes: watch::Sender::new(0) })
    }

    /// Of the project.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Who shows this token; whoever has the project's is called `user`, which is for the record only.
    pub fn caller(&self, token: &str, user: &str, now: Millis) -> Option<Caller> {
        let shown = hash(token);
        let mut found = None;
        // All of them are looked at, whichever it is.
        for issued in self.lock().iter() {
            if is_same(&issued.hash, &shown) {
                let actor = Actor::Agent { name: issued.agent.clone(), role: issued.role };
                let (run, seat, reply) = (issued.run.clone(), issued.seat.clone(), issued.reply.clone());
                found = Some(Caller { actor, run, seat, reply, token: None, reads_only: false, paced: true });
            }
        }
        for named in lock(&self.named).iter() {
            if is_same(&named.hash, &shown) && named.lives(now) {
                found = Some(named.caller());
            }
        }
        match &self.project {
            Some(project) if is_same(project, &shown) => Some(Caller::person(user)),
            _ => found,
        }
    }

    /// The hash of the token with this id, if the token is valid.
    pub fn hash_with_id(&self, id: &str, now: Millis) -> Option<String> {
        let issued: Vec<String> = self.lock().iter().map(|issued| issued.hash.clone()).collect();
        let named: Vec<String> = lock(&self.named)
            .iter()
            .filter(|named| named.lives(now))
            .map(|named| named.hash.clone())
            .collect();
        let mut known = issued.into_iter().chain(named).chain(self.project.clone());
        known.find(|hash| id_of(hash) == id)
    }

    /// A token for somebody, by name. It is kept, hashed, when this returns.
    pub fn create(
        &self,
        name: &str,
        role: TokenRole,
        now: Millis,
        expires_at: Option<Millis>,
    ) -> Result<(String, Named), TokenError> {
        let path = self.folder.join(NAMED);
        let token = fresh().map_err(|error| TokenError::Io { path: path.clone(), error })?;
        let named = Named { hash: hash(&token), name: name.to_owned(), role, created_at: now, expires_at };
        let mut all = lock(&self.named);
        let mut changed = all.clone();
        changed.retain(|named| named.lives(now));
        if changed.len() >= NAMED_MAX {
            return Err(TokenError::TooMany);
        }
        changed.push(named.clone());
        write_list(&path, &changed)?;
        let mark = self.folder.join(NAMED_MADE);
        if !mark.exists() {
            write_whole(&mark, b"").map_err(|error| TokenError::Io { path: mark, error })?;
        }
        *all = changed;
        Ok((token, named))
    }

    /// The tokens that people made, oldest first.
    pub fn named(&self) -> Vec<Named> {
        lock(&self.named).clone()
    }

    /// Whether the token of this id was neither revoked nor has come to its end.
    pub fn lives(&self, id: &str, now: Millis) -> bool {
        lock(&self.named).iter().any(|named| named.id() == id && named.lives(now))
    }

    /// When the token of this id lets nobody in any more, by itself.
    pub fn expires_at(&self, id: &str) -> Option<Millis> {
        lock(&self.named).iter().find(|named| named.id() == id).and_then(|named| named.expires_at)
    }

    /// Changes when somebody who was let in may not be any more.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// When it returns, this token lets nobody in; `None` where there is none of this id.
    pub fn revoke_named(&self, id: &str) -> Result<Option<Named>, TokenError> {
        let mut all = lock(&self.named);
        let Some(at) = all.iter().position(|named| named.id() == id) else { return Ok(None) };
        let mut changed = all.clone();
        let revoked = changed.remove(at);
        write_list(&self.folder.join(NAMED), &changed)?;
        *all = changed;
        drop(all);
        self.changes.send_modify(|count| *count += 1);
        Ok(Some(revoked))
    }

    /// A token for an agent, for as long as its run is open or its reply under way. It is kept, hashed, when this returns.
    pub fn mint(&self, agent: &AgentName, role: Role, what: KeyFor<'_>) -> Result<String, TokenError> {
        let path = self.folder.join(AGENTS);
        let token = fresh().map_err(|error| TokenError::Io { path, error })?;
        let (run, seat, reply) = match what {
            KeyFor::Run(run) => (Some(run.clone()), None, None),
            KeyFor::Reply(seat, reply) => (None, Some(seat.clone()), Some(reply.clone())),
        };
        let issued = Issued { hash: hash(&token), agent: agent.clone(), role, run, seat, reply };
        self.change(|all| {
            all.push(issued);
            let surplus = all.len().saturating_sub(TOKENS_MAX);
            all.drain(..surplus);
            true
        })?;
        Ok(token)
    }

    /// Of all tokens that let somebody in.
    pub fn hashes(&self) -> Vec<String> {
        let named: Vec<String> = lock(&self.named).iter().map(|named| named.hash.clone()).collect();
        let issued: Vec<String> = self.lock().iter().map(|issued| issued.hash.clone()).collect();
        issued.into_iter().chain(named).chain(self.project.clone()).collect()
    }

    /// When it returns, no token of this run lets anybody in.
    pub fn revoke(&self, run: &RunId) -> Result<(), TokenError> {
        self.keep_only(&|what| what != KeyFor::Run(run))
    }

    /// When it returns, only tokens for what `lives` says yes to let anybody in.
    pub fn keep_only(&self, lives: &dyn Fn(KeyFor<'_>) -> bool) -> Result<(), TokenError> {
        self.change(|all| {
            let before = all.len();
            all.retain(|issued| issued.what().is_some_and(lives));
            all.len() != before
        })
    }

    /// Memory follows the file: what could not be written was not changed. `change` says whether there was anything.
    fn change(&self, change: impl FnOnce(&mut Vec<Issued>) -> bool) -> Result<(), TokenError> {
        let path = self.folder.join(AGENTS);
        let mut all = self.lock();
        let mut changed = all.clone();
        if !change(&mut changed) {
            return Ok(());
        }
        write_list(&path, &changed)?;
        let fewer = changed.len() < all.len();
        *all = changed;
        drop(all);
        if fewer {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Issued>> {
        lock(&self.issued)
    }
}

fn lock<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Empty where there is none yet.
pub(super) fn read_list<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, TokenError> {
    match read_limited(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| TokenError::Damaged { path: path.to_owned(), why: error.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(TokenError::Io { path: path.to_owned(), error }),
    }
}

pub(super) fn write_list<T: Serialize>(path: &Path, list: &[T]) -> Result<(), TokenError> {
    let text = serde_json::to_vec(list).map_err(io::Error::other);
    let written = text.and_then(|text| write_whole(path, &text));
    written.map_err(|error| TokenError::Io { path: path.to_owned(), error })
}

/// The project's token; `None` where there is none yet.
pub fn read_token(folder: &Path) -> Result<Option<String>, TokenError> {
    let path = folder.join(FILE);
    match read_limited(&path) {
        Ok(text) => {
            let token = text.trim();
            let whole = token.len() == 2 * TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_hexdigit());
            let why = "it is not a token; remove it while nothing runs, and a new one is made";
            if whole {
                Ok(Some(token.to_owned()))
            } else {
                Err(TokenError::Damaged { path, why: why.to_owned() })
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TokenError::Io { path, error }),
    }
}

fn read_limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn fresh() -> io::Result<String> {
    let mut chance = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut chance)?;
    Ok(base::hex::hex(&chance))
}

/// What a token is called by: nobody can make a token, or its hash, of it.
pub(super) fn id_of(hash: &str) -> &str {
    hash.get(..ID_DIGITS).unwrap_or(hash)
}

pub(super) fn hash(token: &str) -> String {
    base::secrets::hash(token.as_bytes())
}

/// In the same time, wherever they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let differ =
        one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tokens {
        fn who(&self, token: &str, user: &str) -> Option<Actor> {
            self.caller(token, user, 0).map(|caller| caller.actor)
        }
    }
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    fn folder() -> TempDir {
        tempfile::Builder::new().prefix("adj-tokens-").tempdir().unwrap()
    }

    fn mint(tokens: &Tokens, run: &str) -> String {
        tokens.mint(&"coder".parse().unwrap(), Role::Intern, KeyFor::Run(&run.parse().unwrap())).unwrap()
    }

    #[test]
    fn a_token_for_a_reply_says_where_the_agent_speaks_and_ends_with_that_reply() {
        let folder = folder();
        let tokens = Tokens::open(folder.path()).unwrap();
        let seat = Seat::Room { channel: "talk".parse().unwrap(), agent: "coder".parse().unwrap() };
        let [first, second] = ["e-1", "e-2"].map(|id| EffectId::new(id).unwrap());
        let for_reply = |reply: &EffectId| {
            tokens.mint(&"coder".parse().unwrap(), Role::Intern, KeyFor::Reply(&seat, reply)).unwrap()
        };
        let (one, two, run) = (for_reply(&first), for_reply(&second), mint(&tokens, "c-1.1"));
        let again = Tokens::open(folder.path()).unwrap();
        let caller = again.caller(&one, "ann", 0).unwrap();
        assert_eq!((caller.seat, caller.reply, caller.run), (Some(seat.clone()), Some(first.clone()), None));
        again.keep_only(&|what| what != KeyFor::Reply(&seat, &first)).unwrap();
        assert_eq!(again.caller(&one, "ann", 0), None, "its reply is over");
        assert!(again.caller(&two, "ann", 0).is_some() && again.caller(&run, "ann", 0).is_some());
    }

    #[test]
    fn the_projects_token_is_made_once_and_is_the_users_alone() {
        let folder = folder();
        let first = Tokens::open(folder.path()).unwrap();
        let token = read_token(folder.path()).unwrap().unwrap();
        assert_eq!(
            (token.len(), std::fs::metadata(folder.path().join(FILE)).unwrap().mode() & 0o777),
            (64, 0o600)
        );
        assert_eq!(first.who(&token, "ann"), Some(Actor::Human("ann".into())));
        assert_eq!(first.who("", "ann"), None);
        assert_eq!(first.who(&token[..63], "ann"), None);
        let again = Tokens::open(folder.path()).unwrap();
        assert_eq!(again.who(&token, "bob"), Some(Actor::Human("bob".into())));

        std::fs::set_permissions(folder.path().join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
        let renewed = Tokens::open(folder.path()).unwrap();
        assert_eq!(renewed.who(&token, "bob"), None, "it may be known to others");
        assert_eq!(std::fs::metadata(folder.path().join(FILE)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_agents_token_survives_a_restart_and_ends_with_its_run() {
        let folder = folder();
        let tokens = Tokens::open(folder.path()).unwrap();
        let (one, two) = (mint(&tokens, "c-1.1"), mint(&tokens, "c-2.1"));
        let agent = Some(Actor::Agent { name: "coder".parse().unwrap(), role: Role::Intern });
        let kept = std::fs::read_to_string(folder.path().join(AGENTS)).unwrap();
        assert!(!kept.contains(&one) && !kept.contains(&two), "only hashes are kept");
        assert_eq!(std::fs::metadata(folder.path().join(AGENTS)).unwrap().mode() & 0o777, 0o600);

        let again = Tokens::open(folder.path()).unwrap();
        assert_eq!(again.who(&one, "ann"), agent);
        again.revoke(&"c-1.1".parse().unwrap()).unwrap();
        again.revoke(&"c-1.1".parse().unwrap()).unwrap();
        assert_eq!((again.who(&one, "ann"), again.who(&two, "ann")), (None, agent.clone()));
        assert_eq!(Tokens::read(folder.path()).unwrap().who(&one, "ann"), None);
    }

    #[test]
    fn a_file_that_holds_something_else_is_named_and_not_replaced() {
        let folder = folder();
        std::fs::write(folder.path().join(FILE), "secret").unwrap();
        let error = Tokens::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("token` does not hold what was written there"), "{error}");
        assert_eq!(std::fs::read_to_string(folder.path().join(FILE)).unwrap(), "secret");
    }

    #[test]
    fn a_token_made_by_name_is_bound_to_its_role_and_ends_when_it_is_revoked_or_over() {
        let folder = folder();
        let tokens = Tokens::open(folder.path()).unwrap();
        let (reader, anns) = tokens.create("ann", TokenRole::Reader, 1, None).unwrap();
        let (lead, made) = tokens.create("bob", TokenRole::Lead, 1, Some(10)).unwrap();
        let kept = std::fs::read_to_string(folder.path().join(NAMED)).unwrap();
        assert!(!kept.contains(&reader) && !kept.contains(&lead), "only hashes are kept");

        let again = Tokens::open(folder.path()).unwrap();
        let token = Some(SmolStr::new(anns.id()));
        let ann = Caller { token, reads_only: true, paced: true, ..Caller::person("ann") };
        assert_eq!(again.caller(&reader, "eve", 1), Some(ann), "no header says another name");
        let bob = Actor::Agent { name: "bob".parse().unwrap(), role: Role::Lead };
        assert_eq!(again.caller(&lead, "eve", 9).map(|caller| caller.actor), Some(bob));
        assert_eq!(again.caller(&lead, "eve", 10), None, "its time is over");
        assert_eq!((again.lives(made.id(), 9), again.lives(made.id(), 10)), (true, false));
        assert_eq!(again.revoke_named(made.id()).unwrap().unwrap().name, "bob");
        assert!(again.revoke_named(made.id()).unwrap().is_none());
        let kept = std::fs::read(folder.path().join(NAMED)).unwrap();
        std::fs::remove_file(folder.path().join(NAMED)).unwrap();
        let error = Tokens::read(folder.path()).err().unwrap().to_string();
        assert!(
            error.contains("named-tokens.json` is gone") && error.contains("adj token create"),
            "{error}"
        );
        std::fs::write(folder.path().join(NAMED), "").unwrap();
        let error = Tokens::read(folder.path()).err().unwrap().to_string();
        assert!(error.contains("put a copy back"), "{error}");
        std::fs::write(folder.path().join(NAMED), kept).unwrap();
        assert_eq!(Tokens::read(folder.path()).unwrap().caller(&lead, "eve", 1), None);
    }
}
