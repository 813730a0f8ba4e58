//! A server of streams on this machine, for trying things without a project.
//!
//! `cargo run -p adjutant-streams --example serve -- --port 4437 --folder /tmp/streams`

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use streams::{Access, Body, Options, Stall, Streams};
use tokio::net::TcpListener;

const USAGE: &str = "usage: serve [--port PORT] --folder FOLDER";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut port = 4437;
    let mut folder = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match argument.as_str() {
            "--port" => port = value.parse()?,
            "--folder" => folder = Some(PathBuf::from(value)),
            _ => return Err(USAGE.into()),
        }
    }
    let folder = folder.ok_or(USAGE)?;
    let options = Options { local_webhooks: true, long_poll: Duration::from_secs(20), ..Options::default() };
    let streams = Streams::open(&folder, options.clone())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/v1/stream/", listener.local_addr()?);
    loop {
        let (connection, _) = listener.accept().await?;
        let streams = streams.clone();
        let io = TokioIo::new(Stall::new(connection, options.stall));
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(streams.clone(), request));
            // A reader that goes away is no news.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(io, service)
                .await;
        });
    }
}

async fn answer(streams: Streams, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let Some(path) = path.strip_prefix("/v1/stream/") else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    Ok(streams.answer(path, request, Access::ALL).await)
}
