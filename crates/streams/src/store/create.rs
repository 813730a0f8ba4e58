//! Creates a stream, new or as a fork of another one.

use super::append::write_chunks;
use super::meta::{ForkAsked, Meta};
use super::writer::Turn;
use super::{Fault, delete, page, signed};
use crate::content::{self, media_type};
use crate::lifetime::Lifetime;
use crate::problem::Problem;
use crate::subscriptions;

/// Longest chain of forks of forks: a read walks all of it.
const FORK_DEPTH_MAX: u64 = 64;

/// A PUT as a client asks for it.
#[derive(Debug)]
pub struct Create {
    pub path: String,
    pub content_type: Option<String>,
    pub lifetime: Lifetime,
    pub closed: bool,
    pub fork: Option<ForkAsked>,
    pub body: Option<Vec<u8>>,
}

/// The stream that is there now.
#[derive(Clone, Debug)]
pub struct Created {
    pub new: bool,
    pub content_type: String,
    pub tail: u64,
    pub closed: bool,
}

pub fn create(turn: &mut Turn<'_>, asked: Create) -> Result<Created, Fault> {
    if let Some(there) = Meta::by_path(turn.db, &asked.path)? {
        if !there.deleted && there.over(turn.shared, turn.now) {
            delete::remove(turn, &there)?;
        } else {
            return repeated(turn, &there, &asked);
        }
    }
    if let Some(there) = Meta::by_path(turn.db, &asked.path)? {
        // It ran out, and its forks keep it.
        return repeated(turn, &there, &asked);
    }

    let planned = match &asked.fork {
        Some(fork) => planned_fork(turn, &asked, fork)?,
        None => Planned {
            content_type: asked.content_type.clone().unwrap_or_else(|| content::DEFAULT.to_owned()),
            lifetime: asked.lifetime.clone(),
            ..Planned::default()
        },
    };
    let data = match asked.body {
        Some(body) if content::Kind::of(&planned.content_type) == content::Kind::Json => {
            crate::json::messages(&body)?
        }
        Some(body) => body,
        None => Vec::new(),
    };

    let (ttl, expires_at, expires_text) = match &planned.lifetime {
        Lifetime::Unlimited => (None, None, None),
        Lifetime::Idle(seconds) => (Some(signed(*seconds)), None, None),
        Lifetime::Until { at, text } => (None, Some(signed(*at)), Some(text.clone())),
    };
    turn.db
        .prepare_cached(
            "INSERT INTO streams (path, content_type, ttl, expires_at, expires_text, due, tail, closed,
                parent, fork_at, fork_from, fork_anchor, fork_sub, fork_depth, inherits)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?7, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(rusqlite::params![
            asked.path,
            planned.content_type,
            ttl,
            expires_at,
            expires_text,
            planned.lifetime.due(turn.now).map(signed),
            signed(planned.fork_at),
            asked.closed,
            planned.parent,
            asked.fork.as_ref().map(|fork| &fork.from),
            asked.fork.as_ref().and_then(|fork| fork.anchor).map(signed),
            asked.fork.as_ref().map_or(0, |fork| signed(fork.sub)),
            signed(planned.depth),
            asked.fork.is_some() && asked.lifetime == Lifetime::Unlimited,
        ])?;
    let id = turn.db.last_insert_rowid();
    let Some(meta) = Meta::by_id(turn.db, id)? else {
        return Err(Problem::failed("the stream that was just written is not there").into());
    };
    let tail = write_chunks(turn.db, &meta, &data)?;
    turn.db.prepare_cached("UPDATE streams SET tail = ?2 WHERE id = ?1")?.execute((id, signed(tail)))?;
    turn.changed.push(id);
    if tail > meta.tail {
        subscriptions::rules::appended(turn, &meta.path, meta.tail, tail)?;
    }
    Ok(Created { new: true, content_type: meta.content_type, tail, closed: asked.closed })
}

#[derive(Default)]
struct Planned {
    content_type: String,
    lifetime: Lifetime,
    parent: Option<i64>,
    fork_at: u64,
    depth: u64,
}

fn planned_fork(turn: &Turn<'_>, asked: &Create, fork: &ForkAsked) -> Result<Planned, Fault> {
    let source = match Meta::visible(turn.db, turn.shared, &fork.from) {
        Err(Fault::Refused(problem)) if problem.status == 410 => {
            return Err(
                Problem::new(409, "SOURCE_DELETED", "the source was deleted and cannot be forked").into()
            );
        }
        found => found?,
    };
    if let Some(content_type) = &asked.content_type
        && media_type(content_type) != media_type(&source.content_type)
    {
        return Err(Problem::new(
            409,
            "CONTENT_TYPE_MISMATCH",
            format!("the source has {}, not {content_type}", source.content_type),
        )
        .into());
    }
    if source.fork_depth >= FORK_DEPTH_MAX {
        return Err(
            Problem::invalid(format!("forks of forks go {FORK_DEPTH_MAX} levels deep at most")).into()
        );
    }
    let fork_at = page::fork_position(turn.db, &source, fork.anchor.unwrap_or(source.tail), fork.sub)?;
    Ok(Planned {
        content_type: source.content_type.clone(),
        lifetime: asked.lifetime.clone().of_fork(&source.lifetime),
        parent: Some(source.id),
        fork_at,
        depth: source.fork_depth + 1,
    })
}

/// A PUT on what is there already is fine when it asks for the same.
fn repeated(turn: &mut Turn<'_>, there: &Meta, asked: &Create) -> Result<Created, Fault> {
    if there.deleted {
        return Err(
            Problem::new(409, "STREAM_GONE", "the stream was deleted and its forks still need it").into()
        );
    }
    let differs = |what: &str| -> Fault {
        Problem::conflict(format!("stream `{}` exists with another {what}", there.path)).into()
    };
    if there.fork != asked.fork {
        return Err(differs("source"));
    }
    let type_asked = match (&asked.content_type, &asked.fork) {
        (Some(content_type), _) => content_type.as_str(),
        (None, Some(_)) => &there.content_type,
        (None, None) => content::DEFAULT,
    };
    if media_type(type_asked) != media_type(&there.content_type) {
        return Err(differs("content type"));
    }
    let inherited = there.inherits && asked.lifetime == Lifetime::Unlimited;
    if !inherited && !there.lifetime.same(&asked.lifetime) {
        return Err(differs("lifetime"));
    }
    if there.closed != asked.closed {
        return Err(differs("state: one is closed, the other open"));
    }
    there.touch(turn.shared);
    Ok(Created {
        new: false,
        content_type: there.content_type.clone(),
        tail: there.tail,
        closed: there.closed,
    })
}
