//! How a browser is let in: a link that holds for one use and a few minutes becomes a session, which the browser keeps as
//! a cookie that no script can read.
//!
//! The link's secret stands behind the `#`, so it is in no request line, no log and no `Referer`: the page that it opens
//! sends it in a body. Of secrets only hashes are kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use machines::Millis;

use super::tokens::{TokenError, fresh, hash, is_same};

/// A link that nobody has used after this long is worth nothing.
const LINK_MILLIS: Millis = 10 * 60 * 1000;
/// A session ends after this long, used or not.
const SESSION_MILLIS: Millis = 14 * 24 * 60 * 60 * 1000;
/// More are never open at once; the oldest go first.
const LINKS_MAX: usize = 64;
const SESSIONS_MAX: usize = 256;

#[derive(Default)]
pub struct Sessions {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    links: Vec<Secret>,
    sessions: Vec<Secret>,
}

#[derive(Clone)]
struct Secret {
    hash: String,
    /// The person that it is for.
    user: String,
    until: Millis,
}

/// A session that has just begun.
pub struct Begun {
    pub secret: String,
    pub seconds: i64,
}

impl Sessions {
    /// The secret of a fresh link, and when it is worth nothing any more.
    pub fn link(&self, user: &str, now: Millis) -> Result<(String, Millis), TokenError> {
        let secret = fresh_secret()?;
        let until = now + LINK_MILLIS;
        keep(&mut self.lock().links, &secret, user, until, LINKS_MAX, now);
        Ok((secret, until))
    }

    /// A session for whoever brings the secret of a link, which is used up by that; `None` where it is no such secret.
    pub fn begin(&self, secret: &str, now: Millis) -> Result<Option<Begun>, TokenError> {
        let fresh = fresh_secret()?;
        let mut state = self.lock();
        let Some(at) = position(&state.links, secret, now) else { return Ok(None) };
        let user = state.links.remove(at).user;
        keep(&mut state.sessions, &fresh, &user, now + SESSION_MILLIS, SESSIONS_MAX, now);
        Ok(Some(Begun { secret: fresh, seconds: SESSION_MILLIS / 1000 }))
    }

    /// The person whose session this is.
    pub fn user(&self, secret: &str, now: Millis) -> Option<String> {
        let state = self.lock();
        position(&state.sessions, secret, now).map(|at| state.sessions[at].user.clone())
    }

    /// When it returns, this session lets nobody in.
    pub fn end(&self, secret: &str, now: Millis) {
        let mut state = self.lock();
        if let Some(at) = position(&state.sessions, secret, now) {
            state.sessions.remove(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh_secret() -> Result<String, TokenError> {
    fresh().map_err(|error| TokenError::Io { path: "/dev/urandom".into(), error })
}

fn keep(all: &mut Vec<Secret>, secret: &str, user: &str, until: Millis, most: usize, now: Millis) {
    all.retain(|kept| kept.until > now);
    all.push(Secret { hash: hash(secret), user: user.to_owned(), until });
    let surplus = all.len().saturating_sub(most);
    all.drain(..surplus);
}

/// All of them are looked at, whichever it is.
fn position(all: &[Secret], secret: &str, now: Millis) -> Option<usize> {
    let shown = hash(secret);
    let mut found = None;
    for (at, kept) in all.iter().enumerate() {
        if is_same(&kept.hash, &shown) && kept.until > now {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_used_once_and_only_in_time() {
        let sessions = Sessions::default();
        let (secret, until) = sessions.link("ann", 1_000).unwrap();
        assert!(sessions.begin("0000", 1_000).unwrap().is_none());
        assert!(sessions.begin(&secret, until).unwrap().is_none(), "it is too late");
        let begun = sessions.begin(&secret, until - 1).unwrap().unwrap();
        assert!(sessions.begin(&secret, until - 1).unwrap().is_none(), "it was used");
        assert_eq!(sessions.user(&begun.secret, until).as_deref(), Some("ann"));
        assert_eq!(sessions.user(&secret, until), None, "a link is no session");
    }

    #[test]
    fn a_session_ends_by_itself_and_when_it_is_ended() {
        let sessions = Sessions::default();
        let begin = || {
            let (secret, _) = sessions.link("ann", 0).unwrap();
            sessions.begin(&secret, 0).unwrap().unwrap().secret
        };
        let (one, two) = (begin(), begin());
        sessions.end(&one, 1);
        assert_eq!((sessions.user(&one, 1), sessions.user(&two, 1).as_deref()), (None, Some("ann")));
        assert_eq!(sessions.user(&two, SESSION_MILLIS), None);
    }
}
