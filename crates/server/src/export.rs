//! The whole log as lines of JSON, sent as it is read: it may be larger than what fits into memory.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use http::{HeaderValue, header};
use hyper::body::Bytes;
use tokio::sync::mpsc;

use super::{EXPORTS_MAX, MountedProject};
use crate::response::{Body, Response};
use api::Problem;
use api::operation::EXPORT;

/// What is sent at once, and how much of it waits for a client that is slower than the disk.
const CHUNK_BYTES: usize = 32 << 10;
const CHUNKS_MAX: usize = 1;

pub(super) async fn exported(project: &Arc<MountedProject>) -> Result<Response, Problem> {
    // Each has a thread for as long as the client takes.
    let turn = project.exports.clone().try_acquire_owned().map_err(|_| {
        Problem::new(503, "BUSY", format!("{EXPORTS_MAX} exports of this project are being sent already"))
            .hint("try again when one of them is over")
            .retry_after(5)
    })?;
    // What is wrong with the log is said before anything of it is sent.
    let looking = project.clone();
    let looked = tokio::task::spawn_blocking(move || looking.services.host.export_head()).await;
    looked.map_err(|_| Problem::new(500, "BUG", "the log could not be read"))??;
    let (send, mut chunks) = mpsc::channel(CHUNKS_MAX);
    let project = project.clone();
    tokio::task::spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(CHUNK_BYTES, Chunks(&send));
        let written = project.services.host.export(&mut out);
        let written = written.and_then(|()| out.flush().map_err(|error| Problem::bad(error.to_string())));
        if let Err(problem) = written {
            // It breaks off, and the client sees that it is not whole. Where the client has gone, nobody hears it.
            let _ = send.blocking_send(Err(io::Error::other(problem.detail)));
        }
        drop(turn);
    });
    let chunks = futures_util::stream::poll_fn(move |context| chunks.poll_recv(context));
    let mut response = Response::new(Body::from_stream(chunks));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EXPORT));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What is written goes to the client, and waits where it must.
struct Chunks<'s>(&'s mpsc::Sender<io::Result<Bytes>>);

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
