//! Sends webhooks: signed, one attempt each, and reports the result to the writer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::address;
use super::keys::Keys;
use crate::stored::now;
use crate::tls::{Connected, Tls};

/// Most webhooks under way at the same time.
const AT_ONCE: usize = 64;
/// Longest time that a receiver may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A webhook that is to be sent.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub subscription: String,
    pub generation: u64,
    pub wake_id: String,
    pub url: String,
    pub body: Bytes,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has done everything that the wake told of.
    Done,
    /// The receiver will call back.
    Accepted,
    Failed,
}

/// How webhooks are sent.
#[derive(Clone)]
pub struct Sending {
    pub keys: Keys,
    pub tls: Option<Arc<dyn Tls>>,
    /// This machine and private networks are allowed.
    pub local: bool,
}

/// Sends what the writer hands over, until there is no writer, and reports what came of each.
pub async fn deliver(
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    sending: Sending,
    report: impl Fn(Delivery, Outcome) + Clone + Send + 'static,
) {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(delivery) = deliveries.recv().await {
        let Ok(permit) = at_once.clone().acquire_owned().await else { return };
        let (report, sending) = (report.clone(), sending.clone());
        tokio::spawn(async move {
            let outcome = match timeout(ANSWER_TIME_MAX, send(&delivery, &sending)).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) | Err(_) => Outcome::Failed,
            };
            drop(permit);
            report(delivery, outcome);
        });
    }
}

async fn send(
    delivery: &Delivery,
    sending: &Sending,
) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
    // What was allowed when the subscription was made may be allowed no more, and a name may stand for another address.
    let target = address::check(&delivery.url, sending.local)?;
    let addresses = address::resolve(&target, sending.local).await?;
    let uri: http::Uri = delivery.url.parse()?;
    let request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(header::HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, "application/json")
        .header("webhook-signature", sending.keys.signature(now() / 1000, &delivery.body))
        .body(Full::new(delivery.body.clone()))?;
    let stream = TcpStream::connect(&addresses[..]).await?;
    let stream: Connected = match (target.secure, &sending.tls) {
        (false, _) => Box::new(stream),
        (true, Some(tls)) => tls.connect(target.host, stream).await?,
        (true, None) => return Err("this server has no TLS for webhooks".into()),
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        connection.abort();
        return Ok(Outcome::Failed);
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
    connection.abort();
    let done = serde_json::from_slice::<Value>(&body).is_ok_and(|answer| answer["done"] == Value::Bool(true));
    Ok(if done { Outcome::Done } else { Outcome::Accepted })
}
