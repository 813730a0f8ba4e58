//! What the public suite does not see: the disk, the memory, the callers, and what others feed.

mod any_store;
mod callers;
mod durability;
mod forks;
mod group_commit;
mod live_readers;
mod reads;
mod sources;
mod subscriptions;

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Access, Body, Options, Streams};

/// Streams in a folder of their own.
struct Bench {
    folder: TempDir,
    streams: Streams,
    options: Options,
}

/// An answer that has come whole.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Bench {
    fn new(options: Options) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let streams = Streams::open(folder.path(), options.clone()).unwrap();
        Bench { folder, streams, options }
    }

    /// The same folder, closed and opened again.
    fn reopened(self) -> Bench {
        let Bench { folder, streams, options } = self;
        drop(streams);
        let streams = Streams::open(folder.path(), options.clone()).unwrap();
        Bench { folder, streams, options }
    }

    async fn put(&self, path: &str, content_type: &str, body: impl Into<Bytes>) -> Answer {
        call(&self.streams, "PUT", path, &[("content-type", content_type)], body).await
    }

    async fn post(&self, path: &str, content_type: &str, body: impl Into<Bytes>) -> Answer {
        call(&self.streams, "POST", path, &[("content-type", content_type)], body).await
    }

    async fn get(&self, path: &str) -> Answer {
        call(&self.streams, "GET", path, &[], "").await
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A request by somebody who may do everything. The path may have a query.
async fn call(
    streams: &Streams,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    call_as(Access::ALL, streams, method, path, headers, body).await
}

async fn call_as(
    access: Access,
    streams: &Streams,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let (parts, mut body) = open(access, streams, method, path, headers, body).await.into_parts();
    // Copied piece by piece, as a connection sends them: a piece that is held keeps its room.
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        whole.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
    Answer { status: parts.status.as_u16(), headers: parts.headers, body: whole.into() }
}

/// An answer whose body is still to come.
async fn open(
    access: Access,
    streams: &Streams,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> http::Response<Body> {
    let mut request =
        Request::builder().method(method).uri(format!("/v1/stream/{path}")).header("host", "here");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let name = path.split('?').next().unwrap();
    streams.answer(name, request.body(Full::new(body.into())).unwrap(), access).await
}
