//! Tokens that people make, and links that let a browser in.

use super::types::token::{Link, Minted, NewToken, TokenLine};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, wrong};
use kernel::Actor;
use machines::Millis;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

const DAY_MILLIS: Millis = 24 * 60 * 60 * 1000;
const DAYS_MAX: u32 = 3650;

/// The person that a link or a session is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub user: String,
    /// The token that they had shown, if it was one that people made by name: it lets in no longer than that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<SmolStr>,
}

pub fn list(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<TokenLine>, Problem> {
    Ok(paging.page(call.access.host.tokens()?))
}

pub fn create(call: &Call, (): (), _: Nothing, wish: NewToken) -> Result<Minted, Problem> {
    machines::names::check(&wish.name).map_err(|error| wrong("name", error.to_string()))?;
    if wish.days.is_some_and(|days| !(1..=DAYS_MAX).contains(&days)) {
        return Err(wrong("days", format!("`days` must be 1 to {DAYS_MAX}")));
    }
    let now = call.request.at;
    let expires_at = wish.days.map(|days| now + Millis::from(days) * DAY_MILLIS);
    call.access.host.create_token(&wish.name, wish.role, now, expires_at)
}

pub fn revoke(call: &Call, id: String, _: Nothing, _: Nothing) -> Result<TokenLine, Problem> {
    call.access.host.revoke_token(&id)?.ok_or_else(|| {
        Problem::not_found(format!("there is no token `{}`", id.escape_debug()))
            .hint("`adj token ls` lists tokens with their ids")
    })
}

pub fn link(call: &Call, (): (), _: Nothing, _: Nothing) -> Result<Link, Problem> {
    let user = match &call.request.actor {
        Actor::Human(user) => user.clone(),
        other => return Err(Problem::new(403, "FORBIDDEN", format!("{other} is not a person"))),
    };
    match call.access.control {
        Some(control) => {
            let who = Who { user: user.to_string(), token: call.request.token.clone() };
            control.link(who, call.request.at)
        }
        None => Err(not_served()),
    }
}

/// No process has an address that a browser could open.
pub fn not_served() -> Problem {
    Problem::new(409, "NOT_SERVED", "no server is running that browsers can reach")
        .hint("start one with `adj serve`, or run the fleet with `adj run --serve`")
}
