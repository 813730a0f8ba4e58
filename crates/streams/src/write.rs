//! PUT, POST and DELETE.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt;

use crate::body::{Body, Upload};
use crate::content::Kind;
use crate::lifetime::{self, Lifetime};
use crate::problem::Problem;
use crate::reply::{self, set};
use crate::storage::{ForkAsked, Producer};
use crate::stored::append::{self, Append};
use crate::stored::create::{self, Create};
use crate::stored::delete as remove;
use crate::{Inner, json, kib, name, offset};

/// Largest number that a JavaScript client can count with.
const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Longest name of a producer, and longest Stream-Seq.
const TEXT_MAX: usize = 1024;
/// How much of a body that is too large is read before the connection is closed on it.
const DISCARDED_MAX: usize = 64 * 1024 * 1024;

pub async fn put<B: Upload>(
    inner: &Inner,
    path: String,
    request: Request<B>,
) -> Result<Response<Body>, Problem> {
    let headers = request.headers();
    let lifetime = Lifetime::parse(text(headers, "stream-ttl")?, text(headers, "stream-expires-at")?)?;
    let asked = Create {
        fork: fork(inner, headers)?,
        content_type: content_type(headers)?,
        closed: closes(headers),
        lifetime,
        path: path.clone(),
        body: None,
    };
    let location = format!("{}/{path}", base_url(inner, headers));
    let (body, _room) = body(inner, request).await?;
    let asked = Create { body: (!body.is_empty()).then(|| body.to_vec()), ..asked };
    let created = inner.store.write(move |turn| create::create(&mut turn.stored, asked)).await?;

    let mut response = reply::status(if created.new { StatusCode::CREATED } else { StatusCode::OK });
    let headers = response.headers_mut();
    if created.new {
        set(headers, "location", location);
    }
    set(headers, "content-type", &created.content_type);
    set(headers, "stream-next-offset", offset::text(created.tail));
    if created.closed {
        set(headers, "stream-closed", "true");
    }
    Ok(response)
}

pub async fn post<B: Upload>(
    inner: &Inner,
    path: String,
    request: Request<B>,
) -> Result<Response<Body>, Problem> {
    let headers = request.headers();
    let close = closes(headers);
    let content_type = content_type(headers)?;
    let producer = producer(headers)?;
    let seq = text(headers, "stream-seq")?.map(str::to_owned);
    let (body, _room) = body(inner, request).await?;
    if body.is_empty() && !close {
        return Err(Problem::invalid(
            "there is nothing to append; an empty body only goes with Stream-Closed: true",
        ));
    }
    let data = (!body.is_empty()).then(|| kept(content_type.as_deref(), body));
    let closes_only = data.is_none();
    let has_producer = producer.is_some();
    let asked = Append { path, content_type, data, close, seq, producer };
    let appended = inner.store.write(move |turn| append::append(&mut turn.stored, asked)).await?;

    let written = has_producer && !appended.duplicate && !closes_only;
    let mut response = reply::status(if written { StatusCode::OK } else { StatusCode::NO_CONTENT });
    let headers = response.headers_mut();
    set(headers, "stream-next-offset", offset::text(appended.tail));
    if appended.closed {
        set(headers, "stream-closed", "true");
    }
    if let Some((epoch, seq)) = appended.producer {
        set(headers, "producer-epoch", epoch.to_string());
        set(headers, "producer-seq", seq.to_string());
    }
    Ok(response)
}

pub async fn delete(inner: &Inner, path: String) -> Result<Response<Body>, Problem> {
    inner.store.write(move |turn| remove::delete(&mut turn.stored, &path)).await?;
    Ok(reply::status(StatusCode::NO_CONTENT))
}

/// The bytes to keep. Parsed here, since the writer has no time for it; the type is that of the stream, or the append is refused.
fn kept(content_type: Option<&str>, body: Bytes) -> Result<Vec<u8>, Problem> {
    if content_type.is_none_or(|content_type| Kind::of(content_type) != Kind::Json) {
        return Ok(body.to_vec());
    }
    let messages = json::messages(&body)?;
    if messages.is_empty() {
        return Err(Problem::invalid("an empty array has nothing to append"));
    }
    Ok(messages)
}

/// The whole body, as long as it is not too large, and the room that it takes until it is written.
pub async fn body<B: Upload>(
    inner: &Inner,
    request: Request<B>,
) -> Result<(Bytes, tokio::sync::OwnedSemaphorePermit), Problem> {
    let limit = inner.options.body_limit;
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    let expected = if request.body().is_end_stream() { 0 } else { announced.unwrap_or(limit) };
    // What is too large is thrown away as it comes, and takes no room.
    let kept = if expected > limit { 0 } else { expected };
    let permits = u32::try_from(kib(kept)).unwrap_or(u32::MAX);
    let room = inner.room.clone().acquire_many_owned(permits).await.map_err(Problem::failed)?;
    let whole = tokio::time::timeout(inner.options.body_timeout, collected(request.into_body(), kept, limit));
    let whole = tokio::select! {
        biased;
        whole = whole => whole,
        // Nothing of it was begun: whoever sends it can send it again.
        () = stopped(inner) => return Err(Problem::new(503, "STOPPING", "the server stops; send it again")),
    };
    match whole {
        Err(_) => Err(Problem::new(408, "BODY_TOO_SLOW", "the body did not come in time")),
        Ok(body) => Ok((body?, room)),
    }
}

/// What is on its way when the server stops has this long to come.
const STOPPING_GRACE: Duration = Duration::from_millis(250);

async fn stopped(inner: &Inner) {
    let mut stopping = inner.stopping.subscribe();
    let _ = stopping.wait_for(|stopping| *stopping).await;
    tokio::time::sleep(STOPPING_GRACE).await;
}

/// Gathers a body of at most `most` bytes. A larger one is read to its end, within reason: a client that is still writing
/// when the connection closes never sees why.
async fn collected<B: Upload>(body: B, most: usize, limit: usize) -> Result<Bytes, Problem> {
    let mut body = std::pin::pin!(body);
    let mut gathered = BytesMut::new();
    let mut come = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let error: Box<dyn std::error::Error + Send + Sync> = error.into();
            Problem::invalid(format!("the body did not come whole: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        come += data.len();
        if come <= most {
            gathered.extend_from_slice(&data);
        } else if come > DISCARDED_MAX {
            break;
        }
    }
    if come > most {
        return Err(Problem::new(413, "BODY_TOO_LARGE", format!("the body has more than {limit} bytes")));
    }
    Ok(gathered.freeze())
}

/// The address of the stream root, as the client knows it.
pub fn base_url(inner: &Inner, headers: &HeaderMap) -> String {
    let root = match &inner.options.public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
            format!("http://{host}")
        }
    };
    format!("{root}/{}", inner.options.mount.trim_matches('/'))
}

fn fork(inner: &Inner, headers: &HeaderMap) -> Result<Option<ForkAsked>, Problem> {
    let anchor = text(headers, "stream-fork-offset")?;
    let sub = text(headers, "stream-fork-sub-offset")?;
    let Some(from) = text(headers, "stream-forked-from")? else {
        if anchor.is_some() || sub.is_some() {
            return Err(Problem::invalid(
                "Stream-Fork-Offset and Stream-Fork-Sub-Offset need Stream-Forked-From",
            ));
        }
        return Ok(None);
    };
    let mount = format!("/{}/", inner.options.mount.trim_matches('/'));
    let raw = from.strip_prefix(&mount).unwrap_or_else(|| from.trim_start_matches('/'));
    let from = name::from_raw(raw)?;
    if crate::target::claimed(inner, &from) {
        return Err(Problem::new(403, "READ_ONLY", "a stream that the server feeds cannot be forked"));
    }
    let anchor = match anchor {
        None => None,
        Some("-1") => Some(offset::START),
        Some(text) => {
            let position = offset::position(text).ok_or_else(|| {
                Problem::new(400, "INVALID_OFFSET", "Stream-Fork-Offset is no offset that this server gave")
            })?;
            Some(position.stored())
        }
    };
    let sub = match sub {
        None => 0,
        Some(text) => lifetime::seconds(text).ok_or_else(|| {
            Problem::invalid("Stream-Fork-Sub-Offset must be a whole number without leading zeros")
        })?,
    };
    Ok(Some(ForkAsked { from, anchor, sub }))
}

fn producer(headers: &HeaderMap) -> Result<Option<Producer>, Problem> {
    let named =
        (text(headers, "producer-id")?, text(headers, "producer-epoch")?, text(headers, "producer-seq")?);
    let (id, epoch, seq) = match named {
        (None, None, None) => return Ok(None),
        (Some(id), Some(epoch), Some(seq)) => (id, epoch, seq),
        _ => return Err(Problem::invalid("Producer-Id, Producer-Epoch and Producer-Seq go together")),
    };
    if id.is_empty() || id.len() > TEXT_MAX {
        return Err(Problem::invalid("Producer-Id must have 1 to 1024 bytes"));
    }
    let number = |text: &str, name: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>()
            .ok()
            .filter(|number| plain && *number <= INTEGER_MAX)
            .ok_or_else(|| Problem::invalid(format!("{name} must be a whole number from 0 to 2^53-1")))
    };
    Ok(Some(Producer {
        id: id.to_owned(),
        epoch: number(epoch, "Producer-Epoch")?,
        seq: number(seq, "Producer-Seq")?,
    }))
}

/// Only `true` closes, in whatever case; any other value is as good as none.
fn closes(headers: &HeaderMap) -> bool {
    headers.get("stream-closed").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn content_type(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    Ok(text(headers, "content-type")?.filter(|value| !value.is_empty()).map(str::to_owned))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(value) if value.len() <= TEXT_MAX => Ok(Some(value)),
        _ => Err(Problem::invalid(format!("header {name} is longer than 1024 bytes or not plain ASCII"))),
    }
}
