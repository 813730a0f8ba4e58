//! What a store keeps, row by row.

use crate::content::Kind;
use crate::lifetime::Lifetime;

use super::StreamId;

/// What a store knows of a stream beside its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub id: StreamId,
    pub path: String,
    pub content_type: String,
    pub lifetime: Lifetime,
    pub due: Option<u64>,
    pub tail: u64,
    pub closed: bool,
    /// Deleted, and kept for its forks.
    pub deleted: bool,
    /// The last Stream-Seq.
    pub seq: Option<Vec<u8>>,
    pub closer: Option<Producer>,
    pub parent: Option<StreamId>,
    /// Where its own data begins.
    pub fork_at: u64,
    pub fork: Option<ForkAsked>,
    pub fork_depth: u64,
    /// Its lifetime is its source's.
    pub inherits: bool,
}

impl Meta {
    pub fn kind(&self) -> Kind {
        Kind::of(&self.content_type)
    }
}

/// A producer's place: who, in which epoch, with which batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: String,
    pub epoch: u64,
    pub seq: u64,
}

/// What a PUT asked for when it made a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkAsked {
    pub from: String,
    /// The offset, if one was named; else the tail of that moment.
    pub anchor: Option<u64>,
    pub sub: u64,
}

/// What a store knows of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionRow {
    pub id: String,
    /// Normalised JSON.
    pub config: String,
    /// Address of the stream root, for callbacks.
    pub base: String,
    pub created: u64,
    pub phase: Phase,
    pub generation: u64,
    pub wake_id: Option<String>,
    pub holder: Option<String>,
    pub lease_until: Option<u64>,
    /// Path and tail of what the wake told of.
    pub snapshot: Vec<(String, u64)>,
    pub attempts: u64,
    pub next_attempt: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Idle,
    /// A wake event is written, and nobody has claimed it.
    Waking,
    Leased,
}

/// A stream that a subscription watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRow {
    pub path: String,
    /// It was linked by its name.
    pub explicit: bool,
    /// It was linked by the subscription's pattern.
    pub matched: bool,
    pub acked: u64,
}
