//! How a browser is let in: a link that holds for one use and a few minutes becomes a session, which the browser keeps as
//! two secrets: a cookie that no script can read, and a page key that the browser gives only to pages of this origin.
//!
//! A browser sends a cookie to every port of its host, so each program that listens on this machine can receive it. The
//! page key is in the storage of the origin, which includes the port, and is sent only by our own page. Either secret
//! without the other is worth nothing.
//!
//! The link's secret stands behind the `#`, so it is in no request line, no log and no `Referer`: the page that it opens
//! sends it in a body. Of secrets only hashes are kept. Sessions are kept beside each project that they let somebody in to,
//! so that a restart of the server signs nobody out, and a copy of the file lets nobody in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use machines::Millis;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::tokens::{TokenError, fresh, hash, is_same, read_list, write_list};
use api::tokens::Who;

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
    /// Counts up when a session ends before its time.
    changes: watch::Sender<u64>,
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
    /// Of the page key. Sessions from before there were page keys have none, and are over.
    #[serde(default)]
    page: String,
    #[serde(flatten)]
    who: Who,
    until: Millis,
}

/// What a browser shows of its session.
#[derive(Clone, Copy)]
pub struct Shown<'s> {
    pub cookie: &'s str,
    pub page_key: &'s str,
}

/// A session that has just begun.
pub struct Begun {
    /// For the cookie.
    pub secret: String,
    /// For the storage of the page.
    pub page_key: String,
    pub seconds: i64,
}

impl Sessions {
    /// Those of all these projects, and what there is to say of sessions that cannot be read: they have ended.
    pub fn open(folders: impl IntoIterator<Item = PathBuf>) -> (Sessions, Vec<String>) {
        let (mut sessions, mut unread) = (BTreeMap::new(), Vec::new());
        for folder in folders {
            let kept = read_list(&folder.join(FILE)).unwrap_or_else(|error| {
                unread.push(format!("signed-in browsers must sign in again with a new link: {error}"));
                Vec::new()
            });
            sessions.insert(folder, kept);
        }
        (
            Sessions {
                state: Mutex::new(State { links: Vec::new(), sessions }),
                changes: watch::Sender::new(0),
            },
            unread,
        )
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
        before: Option<Shown<'_>>,
        now: Millis,
        lives: &dyn Fn(&Path, &str) -> bool,
    ) -> Result<Option<Begun>, TokenError> {
        let (fresh, page_key) = (fresh_secret()?, fresh_secret()?);
        let mut state = self.lock();
        let links = state.links.iter().map(|link| (link.hash.as_str(), link.until));
        let Some(at) = position(links, secret, now) else { return Ok(None) };
        let link = state.links.remove(at);
        // The token of whoever made it is of one of the projects that it lets in to.
        let mut folders = link.folders.iter();
        if link.who.token.as_deref().is_some_and(|token| !folders.any(|folder| lives(folder, token))) {
            return Ok(None);
        }
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
            changed.push(Session { hash: hash(&fresh), page: hash(&page_key), who: who.clone(), until });
            let surplus = changed.len().saturating_sub(SESSIONS_MAX);
            changed.drain(..surplus);
            write_list(&folder.join(FILE), &changed)?;
            begun.push((folder.clone(), changed));
        }
        state.sessions.extend(begun);
        Ok(Some(Begun { secret: fresh, page_key, seconds: SESSION_MILLIS / 1000 }))
    }

    /// The person whose session this is, in the project of this folder.
    pub fn who(&self, shown: Shown<'_>, folder: &Path, now: Millis) -> Option<Who> {
        let state = self.lock();
        let sessions = state.sessions.get(folder)?;
        session(sessions, shown, now).map(|at| sessions[at].who.clone())
    }

    /// When it returns, this session lets nobody in; where it fails, nobody until the server starts again. False: it is none.
    pub fn end(&self, shown: Shown<'_>, now: Millis) -> Result<bool, TokenError> {
        let (mut ended, mut written) = (false, Ok(()));
        for (folder, sessions) in &mut self.lock().sessions {
            if let Some(at) = session(sessions, shown, now) {
                sessions.remove(at);
                ended = true;
                written = written.and(write_list(&folder.join(FILE), sessions));
            }
        }
        self.changes.send_modify(|count| *count += 1);
        written.map(|()| ended)
    }

    /// Changes when a session has ended.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh_secret() -> Result<String, TokenError> {
    fresh().map_err(|error| TokenError::Io { path: "/dev/urandom".into(), error })
}

fn session(all: &[Session], shown: Shown<'_>, now: Millis) -> Option<usize> {
    let at = position(all.iter().map(|session| (session.hash.as_str(), session.until)), shown.cookie, now)?;
    is_same(&all[at].page, &hash(shown.page_key)).then_some(at)
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

    impl Begun {
        fn shown(&self) -> Shown<'_> {
            Shown { cookie: &self.secret, page_key: &self.page_key }
        }
    }

    fn user(sessions: &Sessions, shown: Shown<'_>, folder: &Path, now: Millis) -> Option<String> {
        sessions.who(shown, folder, now).map(|who| who.user)
    }

    fn begin(sessions: &Sessions, only: Option<&Path>, before: Option<Shown<'_>>, now: Millis) -> Begun {
        let (secret, _) = sessions.link(who("ann"), only, now).unwrap();
        sessions.begin(&secret, before, now, &|_, _| true).unwrap().unwrap()
    }

    #[test]
    fn a_link_is_used_once_and_only_in_time() {
        let folder = folder();
        let sessions = opened(&[&folder]);
        let (secret, until) = sessions.link(who("ann"), None, 1_000).unwrap();
        let begin = |secret: &str, now| sessions.begin(secret, None, now, &|_, _| true).unwrap();
        assert!(begin("0000", 1_000).is_none());
        assert!(begin(&secret, until).is_none(), "it is too late");
        let begun = begin(&secret, until - 1).unwrap();
        assert!(begin(&secret, until - 1).is_none(), "it was used");
        let user = |shown| user(&sessions, shown, folder.path(), until);
        assert_eq!(user(begun.shown()).as_deref(), Some("ann"));
        assert_eq!(user(Shown { cookie: &secret, ..begun.shown() }), None, "a link is no session");
    }

    #[test]
    fn a_cookie_without_the_page_key_of_its_session_lets_nobody_in_and_ends_nothing() {
        let (one, two) = (folder(), folder());
        let sessions = opened(&[&one, &two]);
        let (ours, other) = (begin(&sessions, None, None, 0), begin(&sessions, None, None, 0));
        let guesses = ["", &ours.secret, &hash(&ours.page_key), &other.page_key];
        for guess in guesses.map(|page_key| Shown { page_key, ..ours.shown() }) {
            assert_eq!(user(&sessions, guess, one.path(), 1), None, "{}", guess.page_key);
            assert!(!sessions.end(guess, 1).unwrap());
            let by_link = begin(&sessions, Some(one.path()), Some(guess), 1);
            assert_eq!(user(&sessions, by_link.shown(), two.path(), 1), None, "it brings nothing along");
        }
        assert_eq!(user(&sessions, ours.shown(), one.path(), 1).as_deref(), Some("ann"));
        // One of a server that knew no page keys.
        let kept = std::fs::read_to_string(one.path().join(FILE)).unwrap();
        let old = kept.replace(&format!("\"page\":\"{}\",", hash(&ours.page_key)), "");
        assert_ne!(kept, old);
        std::fs::write(one.path().join(FILE), old).unwrap();
        let again = opened(&[&one]);
        assert_eq!(user(&again, ours.shown(), one.path(), 1), None);
        assert_eq!(user(&again, Shown { page_key: "", ..ours.shown() }, one.path(), 1), None);
        assert_eq!(user(&again, other.shown(), one.path(), 1).as_deref(), Some("ann"));
    }

    #[test]
    fn a_session_outlives_the_server_and_ends_by_itself_and_when_it_is_ended() {
        let folder = folder();
        let sessions = opened(&[&folder]);
        let (one, two) = (begin(&sessions, None, None, 0), begin(&sessions, None, None, 0));
        assert!(sessions.end(one.shown(), 1).unwrap());
        for sessions in [sessions, opened(&[&folder])] {
            let user = |shown, now| user(&sessions, shown, folder.path(), now);
            assert_eq!((user(one.shown(), 1), user(two.shown(), 1).as_deref()), (None, Some("ann")));
            assert_eq!(user(two.shown(), SESSION_MILLIS), None);
        }
        let kept = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        for secret in [&two.secret, &two.page_key] {
            assert!(kept.contains(&hash(secret)) && !kept.contains(secret), "only its hash is kept");
        }
        let copied = (hash(&two.secret), hash(&two.page_key));
        let copied = Shown { cookie: &copied.0, page_key: &copied.1 };
        assert_eq!(opened(&[&folder]).who(copied, folder.path(), 1), None, "and lets nobody in");
    }

    #[test]
    fn a_link_of_one_project_lets_in_to_that_one_and_where_the_browser_was_before() {
        let (one, two) = (folder(), folder());
        let sessions = opened(&[&one, &two]);
        let into =
            |begun: &Begun| [&one, &two].map(|at| user(&sessions, begun.shown(), at.path(), 1).is_some());
        let first = begin(&sessions, Some(one.path()), None, 0);
        assert_eq!(into(&first), [true, false]);
        let both = begin(&sessions, Some(two.path()), Some(first.shown()), 0);
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
        assert!(opened(&[&folder]).who(begun.shown(), folder.path(), 1).is_some());
    }
}
