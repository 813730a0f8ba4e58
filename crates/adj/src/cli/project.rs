//! The project that a command works on: where it is, and how to ask it something.
//!
//! A question opens the log for reading, also while another process owns it. Anything else makes this process the
//! owner for as long as it takes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Exit, Failure, Globals};
use crate::api::{self, Method, Problem, Reading, Request};
use kernel::Actor;
use runtime::log::{self, SqliteLog};
use runtime::owner::Owner;
use serde_json::Value;

/// Ours, in the project; never committed.
const FOLDER: &str = ".adjutant";
const LOG: &str = "adjutant.db";

/// The project, found.
pub struct Project {
    root: PathBuf,
}

impl Project {
    /// `--project`, or the git repository around the current directory. From a linked worktree it is the main one.
    pub fn find(globals: &Globals) -> Result<Project, Failure> {
        if let Some(server) = &globals.server {
            return Err(Failure::new(Exit::Unreachable, format!("cannot reach `{}`", server.escape_debug()))
                .hint("this version works on the project itself; leave out --server and ADJ_SERVER"));
        }
        let start = match &globals.project {
            Some(folder) => folder.clone(),
            None => PathBuf::from("."),
        };
        let start = start.canonicalize().map_err(|error| {
            Failure::not_found(format!("there is no folder `{}`: {error}", shown(&start)))
        })?;
        let root = start.ancestors().find(|folder| folder.join(".git").exists() || is_bare(folder));
        let root = root.ok_or_else(|| {
            Failure::not_found(format!("`{}` is not in a git repository", shown(&start)))
                .hint("go to one, name one with --project DIR, or make one with `git init`")
        })?;
        Ok(Project { root: main_worktree(root).unwrap_or_else(|| root.to_owned()) })
    }

    pub fn log_path(&self) -> PathBuf {
        self.root.join(FOLDER).join(LOG)
    }

    /// The log for reading; `None` where none has been begun.
    pub fn read_log(&self) -> Result<Option<SqliteLog>, Problem> {
        match SqliteLog::open_readonly(&self.log_path()) {
            Ok(log) => Ok(Some(log)),
            Err(log::LogError::Missing { acknowledged: None, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The log for its owner, which this process becomes.
    pub fn own_log(&self) -> Result<SqliteLog, Failure> {
        self.make_folder()?;
        Ok(SqliteLog::open(&self.log_path(), &log::Owner::current()).map_err(Problem::from)?)
    }

    /// Kept out of git by a file of its own, so that nothing of the user's has to be touched.
    fn make_folder(&self) -> Result<(), Failure> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = self.root.join(FOLDER);
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("cannot write to `{}`: {error}", shown(&folder)))
        };
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => std::fs::write(folder.join(".gitignore"), "*\n").map_err(failed),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    pub fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Failure> {
        let reading = Reading::new(self.read_log()?)?;
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        answered(&reading, &Request { query, ..request(Method::Get, path) })
    }

    /// Every page of a list, one after the other.
    pub fn get_all(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<Value>, Failure> {
        let reading = Reading::new(self.read_log()?)?;
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut page: Vec<(String, String)> =
                query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            page.push(("limit".to_owned(), "1000".to_owned()));
            page.extend(after.take().map(|after| ("after".to_owned(), after)));
            let mut answer = answered(&reading, &Request { query: page, ..request(Method::Get, path) })?;
            if let Value::Array(more) = answer["items"].take() {
                items.extend(more);
            }
            match answer["next"].take() {
                Value::String(next) => after = Some(next),
                _ => return Ok(items),
            }
        }
    }

    /// Asks for a change, as the owner.
    pub fn ask(&self, method: Method, path: &str, body: Value, key: Option<&str>) -> Result<Value, Failure> {
        let owner = Owner::open(Box::new(self.own_log()?)).map_err(Problem::from)?;
        let request = Request { body, x_idempotency_key: key.map(str::to_owned), ..request(method, path) };
        answered(&owner.handle(), &request)
    }
}

fn answered(project: &dyn api::Project, request: &Request) -> Result<Value, Failure> {
    let answer = api::answer(project, request);
    if answer.status < 400 { Ok(answer.body) } else { Err(Failure::of_problem(answer.status, answer.body)) }
}

fn request(method: Method, path: &str) -> Request {
    Request {
        method,
        path: format!("/api/v1{path}"),
        query: Vec::new(),
        body: Value::Null,
        actor: Actor::Human(user().into()),
        id: unique(),
        at: now(),
        x_idempotency_key: None,
        idempotency_key: None,
    }
}

/// Whoever may read the project's files is its user; the name is for the record.
fn user() -> String {
    let names = ["ADJ_USER", "USER", "LOGNAME"];
    let name = names.iter().find_map(|name| super::set_variable(name));
    name.filter(|name| machines::names::check(name).is_ok()).unwrap_or_else(|| "user".to_owned())
}

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Time first, so that ids sort by it, then what the system has of chance.
fn unique() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let chance = RandomState::new().hash_one((std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let more = RandomState::new().hash_one(chance);
    (now() as u128) << 80 | u128::from(chance) << 16 | u128::from(more & 0xffff)
}

fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// In a linked worktree `.git` is a file that names its folder, and that folder names the one they all share.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let link = std::fs::read_to_string(root.join(".git")).ok()?;
    let own = root.join(link.strip_prefix("gitdir:")?.trim());
    let shared = std::fs::read_to_string(own.join("commondir")).ok()?;
    let shared = own.join(shared.trim()).canonicalize().ok()?;
    if shared.file_name()? == ".git" { shared.parent().map(Path::to_owned) } else { Some(shared) }
}

pub fn shown(path: &Path) -> String {
    super::text::visible(&path.display().to_string())
}
