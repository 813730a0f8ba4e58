//! How a browser is let in: a link that holds for one use and a few minutes becomes a session, which the browser keeps as
//! a cookie that no script can read.
//!
//! The link's secret stands behind the `#`, so it is in no request line, no log and no `Referer`: the page that it opens
//! sends it in a body. Of secrets only hashes are kept. Sessions are kept beside each project that they let somebody in to,
//! so that a restart of the server signs nobody out, and a copy of the file lets nobody in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use machines::Millis;
use serde::{Deserialize, Serialize};

use super::tokens::{TokenError, fresh, hash, is_same, read_list, write_list};
use crate::api::tokens::Who;

/// The sessions of a project, in its folder.
const FILE: &str = "sessions.json";
/// A link that nobody has used after this long is worth nothing.
const LINK_MILLIS: Millis = 10 * 60 * 1000;
/// A session ends after this long, used or not.
const SESSION_MILLIS: Millis = 14 * 24 * 60 * 60 * 1000;
/// More are never open at once; the oldest go first.
const LINKS_MAX: usize = 64;
const SESSIONS_MAX: usize = 256;

pub struct Sessions {
    state: Mutex<State>,
}

struct State {
    links: Vec<Link>,
    /// By the folders of the projects.
    sessions: BTreeMap<PathBuf, Vec<Session>>,
}

struct Link {
    hash: String,
    who: Who,
    until: Millis,
    /// The projects that it lets in to.
    folders: Vec<PathBuf>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Session {
    hash: String,
    #[serde(flatten)]
    who: Who,
    until: Millis,
}

/// A session that has just begun.
pub struct Begun {
    pub secret: String,
    pub seconds: i64,
}

impl Sessions {
    /// Those of all these projects, and what there is to say of sessions that cannot be read: they have ended.
    pub fn open(folders: impl IntoIterator<Item = PathBuf>) -> (Sessions, Vec<String>) {
        let (mut sessions, mut unread) = (BTreeMap::new(), Vec::new());
        for folder in folders {
            let kept = read_list(&folder.join(FILE)).unwrap_or_else(|error| {
                unread.push(format!("whoever was signed in has to come by a link again: {error}"));
                Vec::new()
            });
            sessions.insert(folder, kept);
        }
        (Sessions { state: Mutex::new(State { links: Vec::new(), sessions }) }, unread)
    }

    /// The secret of a fresh link, and when it is worth nothing any more. It lets in to the project of this folder, or to
    /// all of them.
    pub fn link(&self, who: Who, only: Option<&Path>, now: Millis) -> Result<(String, Millis), TokenError> {
        let secret = fresh_secret()?;
        let until = now + LINK_MILLIS;
        let mut state = self.lock();
        let folders = state.sessions.keys().filter(|folder| only.is_none_or(|only| only == *folder));
        let link = Link { hash: hash(&secret), who, until, folders: folders.cloned().collect() };
        state.links.retain(|link| link.until > now);
        state.links.push(link);
        let surplus = state.links.len().saturating_sub(LINKS_MAX);
        state.links.drain(..surplus);
        Ok((secret, until))
    }

    /// A session for whoever brings the secret of a link, which is used up by that; `None` where it is no such secret. It is
    /// kept when this returns. A browser keeps one session only: what its session of before let in to, this one does too.
    pub fn begin(
        &self,
        secret: &str,
        before: Option<&str>,
        now: Millis,
    ) -> Result<Option<Begun>, TokenError> {
        let fresh = fresh_secret()?;
        let mut state = self.lock();
        let links = state.links.iter().map(|link| (link.hash.as_str(), link.until));
        let Some(at) = position(links, secret, now) else { return Ok(None) };
        let link = state.links.remove(at);
        let mut begun = Vec::new();
        for (folder, sessions) in &state.sessions {
            let was_in = before.and_then(|before| session(sessions, before, now)).map(|at| &sessions[at].who);
            let who = match was_in.filter(|who| who.user == link.who.user) {
                _ if link.folders.contains(folder) => &link.who,
                Some(who) => who,
                None => continue,
            };
            let mut changed = sessions.clone();
            changed.retain(|session| session.until > now);
            let until = now + SESSION_MILLIS;
            changed.push(Session { hash: hash(&fresh), who: who.clone(), until });
            let surplus = changed.len().saturating_sub(SESSIONS_MAX);
            changed.drain(..surplus);
            write_list(&folder.join(FILE), &changed)?;
            begun.push((folder.clone(), changed));
        }
        state.sessions.extend(begun);
        Ok(Some(Begun { secret: fresh, seconds: SESSION_MILLIS / 1000 }))
    }

    /// The person whose session this is, in the project of this folder.
    pub fn who(&self, secret: &str, folder: &Path, now: Millis) -> Option<Who> {
        let state = self.lock();
        let sessions = state.sessions.get(folder)?;
        session(sessions, secret, now).map(|at| sessions[at].who.clone())
    }

    /// When it returns, this session lets nobody in; where it fails, nobody until the server starts again.
    pub fn end(&self, secret: &str, now: Millis) -> Result<(), TokenError> {
        let mut written = Ok(());
        for (folder, sessions) in &mut self.lock().sessions {
            if let Some(at) = session(sessions, secret, now) {
                sessions.remove(at);
                written = written.and(write_list(&folder.join(FILE), sessions));
            }
        }
        written
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh_secret() -> Result<String, TokenError> {
    fresh().map_err(|error| TokenError::Io { path: "/dev/urandom".into(), error })
}

fn session(all: &[Session], secret: &str, now: Millis) -> Option<usize> {
    position(all.iter().map(|session| (session.hash.as_str(), session.until)), secret, now)
}

/// All of them are looked at, whichever it is.
fn position<'s>(all: impl Iterator<Item = (&'s str, Millis)>, secret: &str, now: Millis) -> Option<usize> {
    let shown = hash(secret);
    let mut found = None;
    for (at, (hash, until)) in all.enumerate() {
        if is_same(hash, &shown) && until > now {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder() -> TempDir {
        tempfile::Builder::new().prefix("adj-sessions-").tempdir().unwrap()
    }

    fn opened(folders: &[&TempDir]) -> Sessions {
        let (sessions, unread) = Sessions::open(folders.iter().map(|folder| folder.path().to_owned()));
        assert_eq!(unread, Vec::<String>::new());
        sessions
    }

    fn who(user: &str) -> Who {
        Who { user: user.to_owned(), token: None }
    }

    fn user(sessions: &Sessions, secret: &str, folder: &Path, now: Millis) -> Option<String> {
        sessions.who(secret, folder, now).map(|who| who.user)
    }

    fn begin(sessions: &Sessions, only: Option<&Path>, before: Option<&str>, now: Millis) -> String {
        let (secret, _) = sessions.link(who("ann"), only, now).unwrap();
        sessions.begin(&secret, before, now).unwrap().unwrap().secret
    }

    #[test]
    fn a_link_is_used_once_and_only_in_time() {
        let folder = folder();
        let sessions = opened(&[&folder]);
        let (secret, until) = sessions.link(who("ann"), None, 1_000).unwrap();
        let begin = |secret: &str, now| sessions.begin(secret, None, now).unwrap();
        assert!(begin("0000", 1_000).is_none());
        assert!(begin(&secret, until).is_none(), "it is too late");
        let begun = begin(&secret, until - 1).unwrap();
        assert!(begin(&secret, until - 1).is_none(), "it was used");
        let user = |secret: &str| user(&sessions, secret, folder.path(), until);
        assert_eq!(user(&begun.secret).as_deref(), Some("ann"));
        assert_eq!(user(&secret), None, "a link is no session");
    }

    #[test]
    fn a_session_outlives_the_server_and_ends_by_itself_and_when_it_is_ended() {
        let folder = folder();
        let sessions = opened(&[&folder]);
        let (one, two) = (begin(&sessions, None, None, 0), begin(&sessions, None, None, 0));
        sessions.end(&one, 1).unwrap();
        for sessions in [sessions, opened(&[&folder])] {
            let user = |secret: &str, now| user(&sessions, secret, folder.path(), now);
            assert_eq!((user(&one, 1), user(&two, 1).as_deref()), (None, Some("ann")));
            assert_eq!(user(&two, SESSION_MILLIS), None);
        }
        let kept = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(kept.contains(&hash(&two)) && !kept.contains(&two), "only its hash is kept");
        assert_eq!(opened(&[&folder]).who(&hash(&two), folder.path(), 1), None, "and lets nobody in");
    }

    #[test]
    fn a_link_of_one_project_lets_in_to_that_one_and_where_the_browser_was_before() {
        let (one, two) = (folder(), folder());
        let sessions = opened(&[&one, &two]);
        let into = |secret: &str| [&one, &two].map(|at| user(&sessions, secret, at.path(), 1).is_some());
        let first = begin(&sessions, Some(one.path()), None, 0);
        assert_eq!(into(&first), [true, false]);
        let both = begin(&sessions, Some(two.path()), Some(&first), 0);
        assert_eq!(into(&both), [true, true]);
        assert_eq!(into(&begin(&sessions, None, None, 0)), [true, true]);
    }

    #[test]
    fn sessions_that_cannot_be_read_have_ended_and_that_is_said() {
        let folder = folder();
        std::fs::write(folder.path().join(FILE), "[{]").unwrap();
        let (sessions, unread) = Sessions::open([folder.path().to_owned()]);
        assert!(unread.len() == 1 && unread[0].contains(FILE), "{unread:?}");
        let begun = begin(&sessions, None, None, 0);
        assert!(opened(&[&folder]).who(&begun, folder.path(), 1).is_some());
    }
}
