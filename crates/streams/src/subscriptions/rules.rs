//! The rules of subscriptions: when one is woken, who holds it, and what is acknowledged. All of it runs in the writer's transaction.
//!
//! A subscription is idle, waking (a wake event is written and nobody has claimed it) or leased. Every wake increments the
//! generation, and everything of an earlier generation is rejected.

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use super::config::{Config, DeliveryKind};
use super::keys::{self, TokenError};
use super::webhook::{Delivery, Outcome};
use super::{Refusal, glob, refuse};
use crate::content::Kind;
use crate::json as messages;
use crate::offset;
use crate::problem::Problem;
use crate::store::append::write_chunks;
use crate::store::meta::Meta;
use crate::store::writer::Turn;
use crate::store::{Fault, signed, unsigned};

/// Most streams that one wake tells of; those with something new come first.
const STREAMS_TOLD_MAX: i64 = 1000;
const BACKOFF_MS_MIN: u64 = 1_000;
const BACKOFF_MS_MAX: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Waking,
    Leased,
}

impl Phase {
    fn text(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Waking => "waking",
            Phase::Leased => "leased",
        }
    }

    fn stored(text: &str) -> Phase {
        match text {
            "waking" => Phase::Waking,
            "leased" => Phase::Leased,
            _ => Phase::Idle,
        }
    }
}

pub struct Subscription {
    pub id: String,
    pub config: Config,
    pub base: String,
    pub created: u64,
    phase: Phase,
    generation: u64,
    wake_id: Option<String>,
    holder: Option<String>,
    lease_until: Option<u64>,
    /// Path and tail of what the wake told of.
    snapshot: Vec<(String, u64)>,
    attempts: u64,
    next_attempt: Option<u64>,
}

/// One stream of a subscription.
pub struct Link {
    pub path: String,
    pub explicit: bool,
    pub acked: u64,
    pub tail: u64,
}

impl Link {
    fn pending(&self) -> bool {
        self.tail > self.acked
    }

    /// As a wake tells of it.
    fn told(&self) -> Value {
        let mut told = self.listed();
        told["tail_offset"] = json!(offset::text(self.tail));
        told["has_pending"] = json!(self.pending());
        told
    }

    /// As a subscription lists it.
    pub fn listed(&self) -> Value {
        json!({
            "path": self.path,
            "link_type": if self.explicit { "explicit" } else { "glob" },
            "acked_offset": offset::text(self.acked),
        })
    }
}

impl Subscription {
    pub fn load(db: &Connection, id: &str) -> Result<Option<Subscription>, rusqlite::Error> {
        db.prepare_cached(
            "SELECT config, base, created, phase, generation, wake_id, holder, lease_until, snapshot, attempts, next_attempt
             FROM subscriptions WHERE id = ?1",
        )?
        .query_row([id], |row| {
            let snapshot: Option<String> = row.get(8)?;
            Ok(Subscription {
                id: id.to_owned(),
                config: Config::stored(&row.get::<_, String>(0)?),
                base: row.get(1)?,
                created: unsigned(row.get(2)?),
                phase: Phase::stored(&row.get::<_, String>(3)?),
                generation: unsigned(row.get(4)?),
                wake_id: row.get(5)?,
                holder: row.get(6)?,
                lease_until: row.get::<_, Option<i64>>(7)?.map(unsigned),
                snapshot: snapshot.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
                attempts: unsigned(row.get(9)?),
                next_attempt: row.get::<_, Option<i64>>(10)?.map(unsigned),
            })
        })
        .optional()
    }

    pub fn failing(&self) -> bool {
        self.attempts > 0
    }

    fn save(&self, db: &Connection) -> Result<(), rusqlite::Error> {
        let snapshot = serde_json::to_string(&self.snapshot).unwrap_or_default();
        db.prepare_cached(
            "UPDATE subscriptions SET phase = ?2, generation = ?3, wake_id = ?4, holder = ?5, lease_until = ?6,
                snapshot = ?7, attempts = ?8, next_attempt = ?9 WHERE id = ?1",
        )?
        .execute((
            &self.id,
            self.phase.text(),
            signed(self.generation),
            &self.wake_id,
            &self.holder,
            self.lease_until.map(signed),
            snapshot,
            signed(self.attempts),
            self.next_attempt.map(signed),
        ))?;
        Ok(())
    }

    /// The wake is over: nothing that belongs to it counts any more.
    fn release(&mut self) {
        self.phase = Phase::Idle;
        self.wake_id = None;
        self.holder = None;
        self.lease_until = None;
        self.snapshot.clear();
    }

    fn begin_wake(&mut self) -> Result<String, Fault> {
        let wake_id = keys::wake_id().map_err(Problem::failed)?;
        self.generation += 1;
        self.wake_id = Some(wake_id.clone());
        Ok(wake_id)
    }

    fn lease(&mut self, now: u64) {
        self.phase = Phase::Leased;
        self.lease_until = Some(now + self.config.lease_ttl_ms);
    }

    fn back_off(&mut self, now: u64) {
        self.attempts += 1;
        self.next_attempt = Some(now + backoff(self.attempts, now));
    }
}

/// Doubles from one second to a minute, give or take a tenth, so that failures of one moment do not come back as one.
fn backoff(attempts: u64, salt: u64) -> u64 {
    let doubled = BACKOFF_MS_MIN << attempts.saturating_sub(1).min(6);
    let base = doubled.min(BACKOFF_MS_MAX);
    let jitter = base / 5;
    (base - jitter / 2 + salt % (jitter + 1)).clamp(BACKOFF_MS_MIN, BACKOFF_MS_MAX)
}

/// The streams of a subscription, those with something new first.
pub fn links(db: &Connection, subscription: &str, most: i64) -> Result<Vec<Link>, rusqlite::Error> {
    db.prepare_cached(
        "SELECT l.path, l.explicit, l.acked, coalesce(s.tail, l.acked) FROM links l
         LEFT JOIN streams s ON s.path = l.path AND NOT s.deleted
         WHERE l.subscription = ?1 ORDER BY coalesce(s.tail, 0) > l.acked DESC, l.path LIMIT ?2",
    )?
    .query_map((subscription, most), |row| {
        Ok(Link {
            path: row.get(0)?,
            explicit: row.get(1)?,
            acked: unsigned(row.get(2)?),
            tail: unsigned(row.get(3)?),
        })
    })?
    .collect()
}

fn has_pending(db: &Connection, subscription: &str) -> Result<bool, rusqlite::Error> {
    Ok(links(db, subscription, 1)?.first().is_some_and(Link::pending))
}

/// A stream has grown: whoever looks for it is linked to it, and woken if it sleeps.
pub fn appended(turn: &mut Turn<'_>, path: &str, before: u64, tail: u64) -> Result<(), rusqlite::Error> {
    let watching = turn.patterns.list(turn.db)?;
    if watching.is_empty() {
        return Ok(());
    }
    for watched in watching {
        let matched = watched.pattern.as_deref().is_some_and(|pattern| glob::matches(pattern, path));
        // Its own wake events are not what it waits for.
        if !matched || watched.wake_stream.as_deref() == Some(path) {
            continue;
        }
        turn.db
            .prepare_cached(
                "INSERT INTO links (subscription, path, explicit, matched, acked) VALUES (?1, ?2, 0, 1, ?3)
                 ON CONFLICT (subscription, path) DO NOTHING",
            )?
            .execute((&watched.subscription, path, signed(before)))?;
    }
    let asleep: Vec<String> = turn
        .db
        .prepare_cached(
            "SELECT l.subscription FROM links l JOIN subscriptions s ON s.id = l.subscription
             WHERE l.path = ?1 AND l.acked < ?2 AND s.phase = 'idle'",
        )?
        .query_map((path, signed(tail)), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for subscription in asleep {
        // A subscription that cannot be woken is no reason to refuse the append.
        if let Err(Fault::Failed(error)) = consider(turn, &subscription) {
            return Err(error);
        }
    }
    Ok(())
}

/// A stream is gone. A link by pattern goes with it; an explicit one waits for the next stream of that name.
pub fn deleted(turn: &mut Turn<'_>, path: &str) -> Result<(), rusqlite::Error> {
    turn.db.prepare_cached("DELETE FROM links WHERE path = ?1 AND NOT explicit")?.execute([path])?;
    turn.db.prepare_cached("UPDATE links SET acked = 0 WHERE path = ?1")?.execute([path])?;
    Ok(())
}

/// Wakes a subscription that is idle, has something to do, and need not wait.
fn consider(turn: &mut Turn<'_>, id: &str) -> Result<bool, Fault> {
    let Some(mut subscription) = Subscription::load(turn.db, id)? else { return Ok(false) };
    if subscription.phase != Phase::Idle || subscription.next_attempt.is_some_and(|at| at > turn.now) {
        return Ok(false);
    }
    let links = links(turn.db, id, STREAMS_TOLD_MAX)?;
    let Some(first) = links.first().filter(|link| link.pending()) else {
        subscription.next_attempt = None;
        subscription.save(turn.db)?;
        return Ok(false);
    };
    match subscription.config.delivery {
        DeliveryKind::PullWake => {
            let stream = first.path.clone();
            write_wake_event(turn, subscription, &stream)?;
        }
        DeliveryKind::Webhook => {
            subscription.begin_wake()?;
            subscription.lease(turn.now);
            subscription.next_attempt = None;
            subscription.snapshot = links.iter().map(|link| (link.path.clone(), link.tail)).collect();
            subscription.save(turn.db)?;
            let delivery = delivery(turn, &subscription, &links);
            turn.deliveries.push(delivery);
        }
    }
    Ok(true)
}

fn delivery(turn: &Turn<'_>, subscription: &Subscription, links: &[Link]) -> Delivery {
    let wake_id = subscription.wake_id.clone().unwrap_or_default();
    let body = json!({
        "subscription_id": subscription.id,
        "wake_id": wake_id,
        "generation": subscription.generation,
        "streams": links.iter().map(Link::told).collect::<Vec<_>>(),
        "callback_url": format!("{}/__ds/subscriptions/{}/callback", subscription.base, subscription.id),
        "callback_token": turn.keys.token(&subscription.id, subscription.generation, turn.now),
    });
    Delivery {
        subscription: subscription.id.clone(),
        generation: subscription.generation,
        wake_id,
        url: subscription.config.webhook_url.clone().unwrap_or_default(),
        body: body.to_string().into(),
    }
}

/// Writes the wake into the stream that the workers read. Without that stream there is nobody to wake: it is tried again.
fn write_wake_event(turn: &mut Turn<'_>, mut subscription: Subscription, stream: &str) -> Result<(), Fault> {
    let path = subscription.config.wake_stream.clone().unwrap_or_default();
    let channel = Meta::by_path(turn.db, &path)?
        .filter(|meta| !meta.deleted && !meta.closed && meta.kind() == Kind::Json)
        .filter(|meta| !meta.over(turn.shared, turn.now));
    let Some(channel) = channel else {
        subscription.back_off(turn.now);
        subscription.save(turn.db)?;
        return Ok(());
    };
    subscription.begin_wake()?;
    subscription.phase = Phase::Waking;
    subscription.attempts = 0;
    subscription.next_attempt = None;
    subscription.save(turn.db)?;

    let event = json!({
        "type": "wake",
        "subscription_id": subscription.id,
        "stream": stream,
        "generation": subscription.generation,
        "ts": turn.now,
    });
    let mut kept = event.to_string().into_bytes();
    kept.push(messages::END);
    let tail = write_chunks(turn.db, &channel, &kept)?;
    turn.db
        .prepare_cached("UPDATE streams SET tail = ?2, due = coalesce(?3, due) WHERE id = ?1")?
        .execute((channel.id, signed(tail), channel.lifetime.due(turn.now).map(signed)))?;
    turn.changed.push(channel.id);
    // Somebody may wait for wake events of others. It ends: each is woken once, and then no longer idle.
    Ok(appended(turn, &path, channel.tail, tail)?)
}

/// What came of a webhook. One of an earlier wake changes nothing.
pub fn delivered(turn: &mut Turn<'_>, delivery: &Delivery, outcome: Outcome) -> Result<(), Fault> {
    let Some(mut subscription) = Subscription::load(turn.db, &delivery.subscription)? else { return Ok(()) };
    let current = subscription.generation == delivery.generation
        && subscription.wake_id.as_ref() == Some(&delivery.wake_id);
    if !current {
        return Ok(());
    }
    match outcome {
        Outcome::Accepted => subscription.attempts = 0,
        Outcome::Done => {
            subscription.attempts = 0;
            for (path, tail) in &subscription.snapshot {
                acknowledge(turn.db, &subscription.id, path, *tail)?;
            }
            subscription.release();
        }
        Outcome::Failed => {
            subscription.release();
            subscription.back_off(turn.now);
        }
    }
    subscription.save(turn.db)?;
    consider(turn, &delivery.subscription)?;
    Ok(())
}

fn acknowledge(
    db: &Connection,
    subscription: &str,
    path: &str,
    position: u64,
) -> Result<(), rusqlite::Error> {
    db.prepare_cached("UPDATE links SET acked = max(acked, ?3) WHERE subscription = ?1 AND path = ?2")?
        .execute((subscription, path, signed(position)))?;
    Ok(())
}

/// Leases that have run out, and times to try again.
pub fn sweep(turn: &mut Turn<'_>) -> Result<(), rusqlite::Error> {
    let due: Vec<String> = turn
        .db
        .prepare_cached("SELECT id FROM subscriptions WHERE lease_until <= ?1 OR next_attempt <= ?1")?
        .query_map([signed(turn.now)], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in due {
        match expire(turn, &id).and_then(|()| consider(turn, &id)) {
            Ok(_) | Err(Fault::Refused(_)) => {}
            Err(Fault::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

fn expire(turn: &mut Turn<'_>, id: &str) -> Result<(), Fault> {
    let Some(mut subscription) = Subscription::load(turn.db, id)? else { return Ok(()) };
    if subscription.phase == Phase::Leased && subscription.lease_until.is_some_and(|until| until <= turn.now)
    {
        subscription.release();
        subscription.save(turn.db)?;
    }
    Ok(())
}

/// The answer to a request of a worker, or why there is none.
pub type Ruling = Result<Value, Refusal>;

pub fn claim(turn: &mut Turn<'_>, id: &str, worker: &str) -> Result<Ruling, Fault> {
    expire(turn, id)?;
    let Some(mut subscription) = Subscription::load(turn.db, id)? else { return Ok(Err(unknown(id))) };
    if subscription.config.delivery != DeliveryKind::PullWake {
        return Ok(Err(refuse(400, "INVALID_REQUEST", "only a pull-wake subscription is claimed")));
    }
    if subscription.phase == Phase::Leased {
        let held = refuse(409, "ALREADY_CLAIMED", "another worker holds the lease")
            .with("current_holder", json!(subscription.holder))
            .with("generation", json!(subscription.generation));
        return Ok(Err(held));
    }
    if !has_pending(turn.db, id)? {
        return Ok(Err(refuse(409, "NO_PENDING_WORK", "there is nothing to do")));
    }
    if subscription.phase == Phase::Idle {
        subscription.begin_wake()?;
    }
    subscription.lease(turn.now);
    subscription.holder = Some(worker.to_owned());
    subscription.attempts = 0;
    subscription.next_attempt = None;
    subscription.save(turn.db)?;
    let links = links(turn.db, id, STREAMS_TOLD_MAX)?;
    Ok(Ok(json!({
        "wake_id": subscription.wake_id,
        "generation": subscription.generation,
        "token": turn.keys.token(id, subscription.generation, turn.now),
        "streams": links.iter().map(Link::told).collect::<Vec<_>>(),
        "lease_ttl_ms": subscription.config.lease_ttl_ms,
    })))
}

/// What a worker sends about the wake that it holds.
pub struct Report {
    pub token: String,
    pub wake_id: String,
    pub generation: u64,
    pub acks: Vec<(String, u64)>,
    pub done: bool,
}

/// A callback or an ack: applied whole or not at all, and it keeps the lease alive.
pub fn report(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Ruling, Fault> {
    let mut subscription = match fenced(turn, id, report)? {
        Ok(subscription) => subscription,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let links = links(turn.db, id, i64::MAX)?;
    for (path, position) in &report.acks {
        if links.iter().any(|link| link.path == *path && *position > link.tail) {
            return Ok(Err(refuse(
                400,
                "INVALID_OFFSET",
                format!("the ack lies behind the end of `{path}`"),
            )));
        }
    }
    for (path, position) in &report.acks {
        acknowledge(turn.db, id, path, *position)?;
    }
    subscription.attempts = 0;
    if !report.done {
        subscription.lease(turn.now);
        subscription.save(turn.db)?;
        return Ok(Ok(json!({ "ok": true, "next_wake": false })));
    }
    subscription.release();
    subscription.save(turn.db)?;
    let woken = consider(turn, id)?;
    Ok(Ok(json!({ "ok": true, "next_wake": woken })))
}

pub fn let_go(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Ruling, Fault> {
    let mut subscription = match fenced(turn, id, report)? {
        Ok(subscription) => subscription,
        Err(refusal) => return Ok(Err(refusal)),
    };
    subscription.release();
    subscription.save(turn.db)?;
    consider(turn, id)?;
    Ok(Ok(Value::Null))
}

/// The subscription, if the one who asks holds its current wake.
fn fenced(turn: &mut Turn<'_>, id: &str, report: &Report) -> Result<Result<Subscription, Refusal>, Fault> {
    let Some(subscription) = Subscription::load(turn.db, id)? else { return Ok(Err(unknown(id))) };
    let generation = match turn.keys.check(&report.token, id, turn.now) {
        Ok(generation) => generation,
        Err(TokenError::Invalid) => {
            return Ok(Err(refuse(401, "TOKEN_INVALID", "the token is not one of this subscription")));
        }
        Err(TokenError::Expired) => return Ok(Err(refuse(401, "TOKEN_EXPIRED", "the token has expired"))),
    };
    let current = subscription.phase == Phase::Leased
        && subscription.lease_until.is_some_and(|until| turn.now < until)
        && generation == subscription.generation
        && report.generation == subscription.generation
        && subscription.wake_id.as_deref() == Some(report.wake_id.as_str());
    if !current {
        return Ok(Err(refuse(409, "FENCED", "this wake is over")));
    }
    Ok(Ok(subscription))
}

pub fn unknown(id: &str) -> Refusal {
    refuse(404, "SUBSCRIPTION_NOT_FOUND", format!("there is no subscription `{id}`"))
}

/// Makes a subscription. `true` when it is new.
pub fn create(
    turn: &mut Turn<'_>,
    id: &str,
    config: &Config,
    base: &str,
) -> Result<Result<bool, Refusal>, Fault> {
    if let Some(there) = Subscription::load(turn.db, id)? {
        return Ok(if there.config == *config {
            Ok(false)
        } else {
            Err(refuse(
                409,
                "SUBSCRIPTION_ALREADY_EXISTS",
                "the subscription exists with another configuration",
            ))
        });
    }
    turn.db
        .prepare_cached("INSERT INTO subscriptions (id, config, base, created) VALUES (?1, ?2, ?3, ?4)")?
        .execute((id, config.text(), base, signed(turn.now)))?;
    turn.patterns.forget();
    link_explicit(turn.db, id, &config.streams)?;
    if let Some(pattern) = &config.pattern {
        link_matching(turn.db, id, pattern, config.wake_stream.as_deref())?;
    }
    Ok(Ok(true))
}

/// Links streams by name, from where they end now.
pub fn link_explicit(db: &Connection, id: &str, streams: &[String]) -> Result<(), rusqlite::Error> {
    let mut statement = db.prepare_cached(
        "INSERT INTO links (subscription, path, explicit, matched, acked)
         VALUES (?1, ?2, 1, 0, coalesce((SELECT tail FROM streams WHERE path = ?2 AND NOT deleted), 0))
         ON CONFLICT (subscription, path) DO UPDATE SET explicit = 1",
    )?;
    for path in streams {
        statement.execute((id, path))?;
    }
    Ok(())
}

/// Takes an explicit link away; what the pattern matches stays linked.
pub fn unlink(turn: &mut Turn<'_>, id: &str, path: &str) -> Result<Ruling, Fault> {
    let Some(subscription) = Subscription::load(turn.db, id)? else { return Ok(Err(unknown(id))) };
    let still = subscription.config.pattern.is_some_and(|pattern| glob::matches(&pattern, path));
    let change = if still {
        "UPDATE links SET explicit = 0, matched = 1 WHERE subscription = ?1 AND path = ?2"
    } else {
        "DELETE FROM links WHERE subscription = ?1 AND path = ?2"
    };
    turn.db.prepare_cached(change)?.execute((id, path))?;
    Ok(Ok(Value::Null))
}

fn link_matching(db: &Connection, id: &str, pattern: &str, own: Option<&str>) -> Result<(), rusqlite::Error> {
    let prefix = glob::fixed_prefix(pattern).trim_end_matches('/');
    let mut statement =
        db.prepare_cached("SELECT path, tail FROM streams WHERE NOT deleted AND path >= ?1 AND path < ?2")?;
    // Names are ASCII; nothing that begins with the prefix sorts behind it and a character beyond ASCII.
    let mut rows = statement.query((prefix, format!("{prefix}\u{10ffff}")))?;
    let mut insert = db.prepare_cached(
        "INSERT INTO links (subscription, path, explicit, matched, acked) VALUES (?1, ?2, 0, 1, ?3)
         ON CONFLICT (subscription, path) DO UPDATE SET matched = 1",
    )?;
    while let Some(row) = rows.next()? {
        let path: String = row.get(0)?;
        if Some(path.as_str()) != own && glob::matches(pattern, &path) {
            insert.execute((id, &path, row.get::<_, i64>(1)?))?;
        }
    }
    Ok(())
}

pub fn remove(turn: &mut Turn<'_>, id: &str) -> Result<Ruling, Fault> {
    let gone = turn.db.prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?.execute([id])?;
    if gone == 0 {
        return Ok(Err(unknown(id)));
    }
    turn.db.prepare_cached("DELETE FROM links WHERE subscription = ?1")?.execute([id])?;
    turn.patterns.forget();
    Ok(Ok(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_slower_and_stay_within_a_second_and_a_minute() {
        for salt in [0, 7, 199, 12_345] {
            let waits: Vec<u64> = (1..20).map(|attempts| backoff(attempts, salt)).collect();
            assert!(waits.iter().all(|wait| (BACKOFF_MS_MIN..=BACKOFF_MS_MAX).contains(wait)), "{waits:?}");
            assert!((1_800..=2_200).contains(&waits[1]), "{waits:?}");
            assert!(waits[18] >= 54_000, "{waits:?}");
        }
    }
}
