//! Connections that this program makes to others: over TLS, or in the clear on this machine.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}
pub type Stream = Box<dyn Io>;

/// Whether a name is this machine's own: what goes there can be read by nobody on the way.
pub fn is_here(name: &str) -> bool {
    name.parse::<IpAddr>().map_or(name == "localhost", |ip| ip.is_loopback())
}

pub async fn connect(secure: bool, name: &str, port: u16) -> io::Result<Stream> {
    match secure {
        true => connect_securely(name, port).await,
        false => Ok(Box::new(connect_in_the_clear(name, port).await?)),
    }
}

/// A certificate that the system trusts has said who is there when this returns.
pub async fn connect_securely(name: &str, port: u16) -> io::Result<Stream> {
    secured(name, connect_in_the_clear(name, port).await?).await
}

/// The same over a connection that is there already.
async fn secured(name: &str, stream: TcpStream) -> io::Result<Stream> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(connector()?.connect(name, stream).await?))
}

/// TLS for the webhooks of streams, by what the system trusts.
pub struct SystemTls;

impl streams::Tls for SystemTls {
    fn connect(
        &self,
        name: String,
        stream: TcpStream,
    ) -> Pin<Box<dyn Future<Output = io::Result<streams::Connected>> + Send>> {
        Box::pin(async move {
            stream.set_nodelay(true)?;
            let stream: streams::Connected = Box::new(secured(&name, stream).await?);
            Ok(stream)
        })
    }
}

/// Nobody has said who is there.
pub async fn connect_in_the_clear(name: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((name, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Trusts whom the system trusts; `SSL_CERT_FILE` names others.
fn connector() -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
