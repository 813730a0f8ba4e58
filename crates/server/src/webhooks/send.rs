//! One delivery: a signed POST. No redirect is followed, and nothing of the answer is read but its status.

use std::time::Duration;

use base::secrets;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header;
use hyper_util::rt::TokioIo;

use super::outbox::Delivery;
use crate::outgoing;

/// Whoever takes longer is tried again later.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends it once. The error says why it was not taken; it holds no secret.
pub async fn send(delivery: &Delivery, url: &str, secret: Option<&str>) -> Result<(), String> {
    match tokio::time::timeout(TIMEOUT, post(delivery, url, secret)).await {
        Ok(sent) => sent,
        Err(_) => Err(format!("it did not answer within {} s", TIMEOUT.as_secs())),
    }
}

async fn post(delivery: &Delivery, url: &str, secret: Option<&str>) -> Result<(), String> {
    let url: hyper::Uri = url.parse().map_err(|_| "its URL is invalid".to_owned())?;
    let secure = url.scheme_str() == Some("https");
    let authority = url.authority().ok_or("its URL has no host")?;
    let name = authority.host().trim_matches(['[', ']']);
    if !secure && !outgoing::is_here(name) {
        return Err("http is only allowed for this machine; use https".to_owned());
    }
    let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = outgoing::connect(secure, name, port).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    // It ends with the answer, or with the time.
    let connection = tokio::spawn(connection);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let mut request = hyper::Request::post(path)
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .header("x-adjutant-id", &delivery.id);
    if let Some(secret) = secret {
        let seconds = base::clock::now() / 1_000;
        let signed = secrets::signature(secret.as_bytes(), format!("{seconds}.{}", delivery.body).as_bytes());
        request = request.header("x-adjutant-signature", format!("t={seconds},v1={signed}"));
    }
    let request = request.body(Full::new(Bytes::from(delivery.body.clone())));
    let request = request.map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(|error| error.to_string());
    connection.abort();
    match answer?.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("it answered {}", status.as_u16())),
    }
}
