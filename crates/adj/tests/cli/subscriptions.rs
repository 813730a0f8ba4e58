//! Webhook subscriptions of durable streams, through the program with tokens on: where they go, and where they do not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::project::Repository;
use super::server::{Answer, Server};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring};

/// Takes requests, says what each had, and gives this answer.
fn receiver(tls: Option<Arc<ServerConfig>>, answer: String) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (came, coming) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let taken = match &tls {
                None => take(stream, &answer),
                Some(tls) => {
                    take(StreamOwned::new(ServerConnection::new(tls.clone()).unwrap(), stream), &answer)
                }
            };
            // Whoever does not trust the certificate has said nothing.
            if let Some(taken) = taken
                && came.send(taken).is_err()
            {
                return;
            }
        }
    });
    (port, coming)
}

fn take(stream: impl Read + Write, answer: &str) -> Option<String> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while stream.read_line(&mut line).ok()? > 2 {
        head += &line.to_lowercase();
        line.clear();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    stream.get_mut().write_all(answer.as_bytes()).ok()?;
    stream.get_mut().flush().ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}

fn done() -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{\"done\":true}".to_owned()
}

fn put(server: &Server, path: &str, kind: &str, body: &str) -> Answer {
    let head = format!(
        "PUT /v1/stream/{path} HTTP/1.1\nHost: {}\nAuthorization: Bearer {}\nContent-Type: {kind}\nContent-Length: {}",
        server.host(),
        server.token(),
        body.len()
    );
    server.raw(&head, body.as_bytes())
}

fn subscribe(server: &Server, id: &str, url: &str) -> Answer {
    let wish = json!({"type": "webhook", "streams": [format!("of/{id}")], "webhook": {"url": url}});
    put(server, &format!("__ds/subscriptions/{id}"), "application/json", &wish.to_string())
}

fn status(server: &Server, id: &str) -> Value {
    server.get(&format!("/v1/stream/__ds/subscriptions/{id}")).json()["status"].clone()
}

/// With tokens on, and nothing else allowed: what is not public is refused with the option that allows it.
#[test]
fn webhooks_of_streams_do_not_reach_this_machine_or_a_private_network_unless_it_is_allowed() {
    let here = Repository::new();
    let server = Server::start(&here, &[]);
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://10.1.2.3/",
        "https://192.168.1.1/",
        "https://[fd00::1]/",
    ] {
        let refused = subscribe(&server, "s", url);
        assert_eq!(refused.status, 400, "{url}: {}", refused.text);
        let error = refused.json()["error"].clone();
        assert_eq!(error["code"], "WEBHOOK_URL_REJECTED", "{url}: {error}");
        assert!(error.to_string().contains("--local-webhooks"), "{url}: {error}");
    }
    for url in ["http://example.com/", "https://169.254.169.254/", "https://0.0.0.0/", "https://2130706433/"]
    {
        let refused = subscribe(&server, "s", url);
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (400, &json!("WEBHOOK_URL_REJECTED")),
            "{url}"
        );
    }
    // A public address is taken.
    let taken = subscribe(&server, "public", "https://1.1.1.1/hook");
    assert_eq!(taken.status, 201, "{}", taken.text);
}

/// Over TLS, by a certificate that the system trusts; over plain http on this machine; and never where a redirect leads.
#[test]
fn webhooks_of_streams_are_sent_over_https_and_follow_no_redirect() {
    let here = Repository::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let trusted = here.0.join(".git/cert.pem");
    std::fs::write(&trusted, made.cert.pem()).unwrap();
    let config = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        let cert = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![cert], key).unwrap())
    };
    let forged = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut command = here.command(&["serve", "--port", "0", "--json", "--local-webhooks"]);
    command.env("SSL_CERT_FILE", &trusted).stderr(std::process::Stdio::null());
    let server = Server::begin(command, &here.state("token"), None);

    let (port, secure) = receiver(Some(config(&made)), done());
    let (untrusted, forged) = receiver(Some(config(&forged)), done());
    let (plain, clear) = receiver(None, done());
    let (elsewhere, led) = receiver(None, done());
    let moved =
        format!("HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:{elsewhere}/\r\nContent-Length: 0\r\n\r\n");
    let (redirects, redirected) = receiver(None, moved);
    for (id, url) in [
        ("secure", format!("https://localhost:{port}/hook?x=1")),
        ("forged", format!("https://localhost:{untrusted}/hook")),
        ("clear", format!("http://127.0.0.1:{plain}/hook")),
        ("moved", format!("http://127.0.0.1:{redirects}/hook")),
    ] {
        let made = subscribe(&server, id, &url);
        assert_eq!(made.status, 201, "{id}: {}", made.text);
        assert_eq!(put(&server, &format!("of/{id}"), "text/plain", "news").status, 201);
    }
    for (id, coming) in [("secure", &secure), ("clear", &clear), ("moved", &redirected)] {
        let sent = coming.recv().unwrap();
        assert!(sent.starts_with("post /hook") && sent.contains("webhook-signature: "), "{sent}");
        assert!(sent.contains(&format!("of/{id}")), "{sent}");
    }
    // Both are tried again, so what came of them is known.
    for id in ["moved", "forged"] {
        while status(&server, id) != "failed" {
            std::thread::yield_now();
        }
    }
    assert_eq!((status(&server, "secure"), status(&server, "clear")), (json!("active"), json!("active")));
    assert!(led.try_recv().is_err(), "a redirect leads nowhere");
    assert!(forged.try_recv().is_err(), "nothing is said to whom nobody trusts");
}
