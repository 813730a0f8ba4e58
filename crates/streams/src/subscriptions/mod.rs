//! Subscriptions: durable cursors over streams that wake workers, by webhook or by an event in a stream.
//!
//! Their paths are under `__ds/`, which no stream can have.

mod address;
pub mod config;
pub mod glob;
pub mod keys;
pub mod rules;
pub mod turn;
pub mod webhook;

use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::body::{Body, Upload};
use crate::problem::Problem;
use crate::reply::{self, set};
use crate::storage::{StoreError, Tables};
use crate::stored::Fault;
use crate::write::{base_url, body};
use crate::{Access, Inner, forbidden, offset};
use config::Config;
use rules::{Report, Ruling, Subscription};
use turn::Turn;

/// Longest name of a subscription or a worker.
const NAME_MAX: usize = 256;
/// Most streams that a subscription lists.
const LISTED_MAX: usize = 10_000;

/// Why a request about a subscription is not carried out, in the protocol's own form.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    error: Value,
}

pub fn refuse(status: u16, code: &str, message: impl Into<String>) -> Refusal {
    Refusal { status, error: json!({ "code": code, "message": message.into() }) }
}

impl Refusal {
    fn with(mut self, field: &str, value: Value) -> Refusal {
        self.error[field] = value;
        self
    }

    fn response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        reply::json(status, &json!({ "error": self.error }))
    }
}

/// Where a request under `__ds/` goes.
enum Route {
    Keys,
    One,
    Streams,
    Stream(String),
    Callback,
    Claim,
    Ack,
    Release,
}

pub async fn answer<B: Upload>(
    inner: &Inner,
    path: &str,
    request: Request<B>,
    access: Access,
) -> Result<Response<Body>, Problem> {
    let Some((id, route)) = route(path) else {
        return Err(Problem::not_found(path));
    };
    let method = request.method().clone();
    let answered = match (&method, route) {
        (&Method::GET, Route::Keys) => return Ok(key_set(inner)),
        (&Method::GET, Route::One) if !access.read => return Err(forbidden("read")),
        (&Method::GET, Route::One) => read(inner, id).await?,
        // Whoever holds a wake shows it by its token; nothing else is asked.
        (&Method::POST, Route::Callback | Route::Ack) => told(inner, id, request, rules::report).await?,
        (&Method::POST, Route::Release) => told(inner, id, request, rules::let_go).await?,
        (&Method::PUT | &Method::POST | &Method::DELETE, _) if !access.write => {
            return Err(forbidden("write"));
        }
        (&Method::PUT, Route::One) => create(inner, id, request).await?,
        (&Method::DELETE, Route::One) => ruled(inner, move |turn| rules::remove(turn, &id)).await?,
        (&Method::POST, Route::Streams) => link(inner, id, request).await?,
        (&Method::DELETE, Route::Stream(path)) => {
            ruled(inner, move |turn| rules::unlink(turn, &id, &path)).await?
        }
        (&Method::POST, Route::Claim) => claim(inner, id, request).await?,
        _ => return Err(Problem::new(405, "METHOD_NOT_ALLOWED", format!("{method} does not go here"))),
    };
    Ok(answered.unwrap_or_else(Refusal::response))
}

type Answered = Result<Response<Body>, Refusal>;

fn route(path: &str) -> Option<(String, Route)> {
    let rest = path.strip_prefix("__ds/")?;
    if rest == "jwks.json" {
        return Some((String::new(), Route::Keys));
    }
    let rest = rest.strip_prefix("subscriptions/")?;
    let (id, tail) = rest.split_once('/').map_or((rest, None), |(id, tail)| (id, Some(tail)));
    let id = percent_decode_str(id).decode_utf8().ok()?.into_owned();
    if id.is_empty() || id.len() > NAME_MAX || id.contains('/') || crate::name::check(&id).is_err() {
        return None;
    }
    let route = match tail {
        None => Route::One,
        Some("streams") => Route::Streams,
        Some("callback") => Route::Callback,
        Some("claim") => Route::Claim,
        Some("ack") => Route::Ack,
        Some("release") => Route::Release,
        Some(tail) => {
            let path = tail.strip_prefix("streams/")?;
            Route::Stream(percent_decode_str(path).decode_utf8().ok()?.into_owned())
        }
    };
    Some((id, route))
}

fn key_set(inner: &Inner) -> Response<Body> {
    let mut response = reply::json(StatusCode::OK, &inner.store.keys.jwks());
    set(response.headers_mut(), "content-type", "application/jwk-set+json");
    set(response.headers_mut(), "cache-control", "public, max-age=300");
    response
}

/// Runs a rule and answers with what it says: nothing, or a document.
async fn ruled<F>(inner: &Inner, rule: F) -> Result<Answered, Problem>
where
    F: FnOnce(&mut Turn<'_>) -> Result<Ruling, Fault> + Send + 'static,
{
    Ok(inner.store.write(rule).await?.map(|answer| match answer {
        Value::Null => reply::status(StatusCode::NO_CONTENT),
        answer => reply::json(StatusCode::OK, &answer),
    }))
}

async fn create<B: Upload>(inner: &Inner, id: String, request: Request<B>) -> Result<Answered, Problem> {
    let base = base_url(inner, request.headers());
    let (body, _room) = body(inner, request).await?;
    let config = match Config::parse(&body, inner.options.local_webhooks) {
        Ok(config) => config,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Err(why) = reachable(inner, &config).await {
        return Ok(Err(refuse(400, "WEBHOOK_URL_REJECTED", why)));
    }
    let kid = inner.store.keys.kid.clone();
    let created = inner.store.write(move |turn| {
        let new = match rules::create(turn, &id, &config, &base)? {
            Ok(new) => new,
            Err(refusal) => return Ok(Err(refusal)),
        };
        Ok(Ok((new, described(turn.stored.tables, &id, &kid)?)))
    });
    Ok(created.await?.map(|(new, described)| {
        let status = if new { StatusCode::CREATED } else { StatusCode::OK };
        reply::json(status, &described.unwrap_or_default())
    }))
}

/// How long a name may take to be looked up when a subscription is made.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(2);

/// Refuses what no delivery would reach: https without TLS, and names that stand for addresses which are not allowed. A name
/// that is not found now may be found later.
async fn reachable(inner: &Inner, config: &Config) -> Result<(), String> {
    let Some(url) = &config.webhook_url else { return Ok(()) };
    let target = address::check(url, inner.options.local_webhooks)?;
    if target.secure && inner.options.tls.is_none() {
        return Err("webhooks over https are not supported by this server".to_owned());
    }
    let found = tokio::net::lookup_host((target.host.as_str(), target.port));
    match tokio::time::timeout(LOOKUP_TIME_MAX, found).await {
        Ok(Ok(found)) => address::allowed(&target, found, inner.options.local_webhooks).map(drop),
        _ => Ok(()),
    }
}

async fn read(inner: &Inner, id: String) -> Result<Answered, Problem> {
    let kid = inner.store.keys.kid.clone();
    let name = id.clone();
    let described = inner.store.read(move |tables, _| Ok(described(tables, &id, &kid)?)).await?;
    Ok(described
        .map(|described| reply::json(StatusCode::OK, &described))
        .ok_or_else(|| rules::unknown(&name)))
}

fn described(tables: &dyn Tables, id: &str, kid: &str) -> Result<Option<Value>, StoreError> {
    let Some(subscription) = Subscription::load(tables, id)? else { return Ok(None) };
    let config = &subscription.config;
    let streams: Vec<Value> = rules::links(tables, id, LISTED_MAX)?.iter().map(rules::Link::listed).collect();
    let webhook = config.webhook_url.as_ref().map(|url| {
        json!({
            "url": url,
            "signing": { "alg": "ed25519", "kid": kid, "jwks_url": format!("{}/__ds/jwks.json", subscription.row.base) },
        })
    });
    Ok(Some(json!({
        "id": id,
        "subscription_id": id,
        "type": config.delivery,
        "pattern": config.pattern,
        "streams": streams,
        "webhook": webhook,
        "wake_stream": config.wake_stream,
        "lease_ttl_ms": config.lease_ttl_ms,
        "created_at": timestamp(subscription.row.created),
        "status": if subscription.failing() { "failed" } else { "active" },
        "description": config.description,
    })))
}

fn timestamp(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map(|time| format!("{time:.3}")).unwrap_or_default()
}

async fn link<B: Upload>(inner: &Inner, id: String, request: Request<B>) -> Result<Answered, Problem> {
    let asked = match document(inner, request).await? {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let streams = match config::names(&asked["streams"]) {
        Ok(streams) => streams,
        Err(refusal) => return Ok(Err(refusal)),
    };
    ruled(inner, move |turn| {
        if Subscription::load(turn.stored.tables, &id)?.is_none() {
            return Ok(Err(rules::unknown(&id)));
        }
        rules::link_explicit(turn.stored.tables, &id, &streams)?;
        Ok(Ok(Value::Null))
    })
    .await
}

async fn claim<B: Upload>(inner: &Inner, id: String, request: Request<B>) -> Result<Answered, Problem> {
    let asked = match document(inner, request).await? {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let worker = match asked["worker"].as_str() {
        Some(worker) if !worker.is_empty() && worker.len() <= NAME_MAX => worker.to_owned(),
        _ => return Ok(Err(refuse(400, "INVALID_REQUEST", "worker must be a name of 1 to 256 bytes"))),
    };
    ruled(inner, move |turn| rules::claim(turn, &id, &worker)).await
}

/// A request of somebody who holds a wake.
async fn told<B: Upload>(
    inner: &Inner,
    id: String,
    request: Request<B>,
    rule: fn(&mut Turn<'_>, &str, &Report) -> Result<Ruling, Fault>,
) -> Result<Answered, Problem> {
    let Some(token) = bearer(request.headers()) else {
        return Ok(Err(refuse(401, "TOKEN_INVALID", "Authorization must carry the token of the wake")));
    };
    let asked = match document(inner, request).await? {
        Ok(asked) => asked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let report = match report(token, &asked) {
        Ok(report) => report,
        Err(refusal) => return Ok(Err(refusal)),
    };
    ruled(inner, move |turn| rule(turn, &id, &report)).await
}

fn report(token: String, asked: &Value) -> Result<Report, Refusal> {
    let (Some(wake_id), Some(generation)) = (asked["wake_id"].as_str(), asked["generation"].as_u64()) else {
        return Err(refuse(400, "INVALID_REQUEST", "wake_id and generation are needed"));
    };
    let mut acks = Vec::new();
    for ack in asked["acks"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let Some(stream) = ack["stream"].as_str().or_else(|| ack["path"].as_str()) else {
            return Err(refuse(400, "INVALID_REQUEST", "an ack needs a stream"));
        };
        let Some(position) = ack["offset"].as_str().and_then(offset::position) else {
            return Err(refuse(400, "INVALID_OFFSET", "an ack needs an offset that this server gave"));
        };
        acks.push((stream.to_owned(), position.stored()));
    }
    Ok(Report {
        token,
        wake_id: wake_id.to_owned(),
        generation,
        acks,
        done: asked["done"] == Value::Bool(true),
    })
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

async fn document<B: Upload>(inner: &Inner, request: Request<B>) -> Result<Result<Value, Refusal>, Problem> {
    let (body, _room) = body(inner, request).await?;
    Ok(serde_json::from_slice(&body)
        .map_err(|error| refuse(400, "INVALID_REQUEST", format!("the body is not JSON: {error}"))))
}
