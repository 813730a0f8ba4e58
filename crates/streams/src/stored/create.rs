//! Creates a stream, new or as a fork of another one.

use super::append::write_chunks;
use super::{Change, Fault, Transaction, delete, is_over, read, touch, visible};
use crate::content::{self, media_type};
use crate::lifetime::Lifetime;
use crate::problem::Problem;
use crate::storage::{ForkAsked, Meta};

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

pub fn create(turn: &mut Transaction<'_>, asked: Create) -> Result<Created, Fault> {
    if let Some(there) = turn.tables.stream(&asked.path)? {
        if !there.deleted && is_over(&there, turn.shared, turn.now) {
            delete::remove(turn, there)?;
        } else {
            return repeated(turn, &there, &asked);
        }
    }
    if let Some(there) = turn.tables.stream(&asked.path)? {
        // It ran out, and its forks keep it.
        return repeated(turn, &there, &asked);
    }

    let planned = match &asked.fork {
        Some(fork) => planned_fork(turn, &asked, fork)?,
        None => Meta {
            content_type: asked.content_type.clone().unwrap_or_else(|| content::DEFAULT.to_owned()),
            lifetime: asked.lifetime.clone(),
            ..Meta::default()
        },
    };
    let data = match asked.body {
        Some(body) if planned.kind() == content::Kind::Json => crate::json::messages(&body)?,
        Some(body) => body,
        None => Vec::new(),
    };

    let mut meta = Meta {
        path: asked.path,
        due: planned.lifetime.due(turn.now),
        tail: planned.fork_at,
        closed: asked.closed,
        inherits: asked.fork.is_some() && asked.lifetime == Lifetime::Unlimited,
        fork: asked.fork,
        ..planned
    };
    meta.id = turn.tables.add_stream(&meta)?;
    let before = meta.tail;
    write_chunks(turn.tables, &mut meta, &data)?;
    turn.tables.set_stream(&meta)?;
    turn.changes.push(Change::of(&meta, before));
    Ok(Created { new: true, content_type: meta.content_type, tail: meta.tail, closed: meta.closed })
}

/// What a fork takes over from its source.
fn planned_fork(turn: &Transaction<'_>, asked: &Create, fork: &ForkAsked) -> Result<Meta, Fault> {
    let source = match visible(turn.tables, turn.shared, &fork.from) {
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
    let fork_at = read::fork_position(turn.tables, &source, fork.anchor.unwrap_or(source.tail), fork.sub)?;
    Ok(Meta {
        lifetime: asked.lifetime.clone().of_fork(&source.lifetime),
        content_type: source.content_type,
        parent: Some(source.id),
        fork_at,
        fork_depth: source.fork_depth + 1,
        ..Meta::default()
    })
}

/// A PUT on what is there already is fine when it asks for the same.
fn repeated(turn: &Transaction<'_>, there: &Meta, asked: &Create) -> Result<Created, Fault> {
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
    touch(there, turn.shared);
    Ok(Created {
        new: false,
        content_type: there.content_type.clone(),
        tail: there.tail,
        closed: there.closed,
    })
}
