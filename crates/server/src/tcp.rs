//! The address that a server listens at, and what must be so before it listens beyond this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Names;
use crate::outgoing::is_here;
use crate::port_holder::PortHolder;

pub const PORT: u16 = project::settings::SERVER_PORT;

/// Where a server is to listen, as somebody wished it.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    pub listen: IpAddr,
    pub port: u16,
    pub tls: Option<TlsFiles>,
    /// A TLS-terminating proxy is in front of the server.
    pub behind_proxy: bool,
    /// How browsers reach it, where that is not its own address.
    pub public: Option<PublicUrl>,
    /// Nobody is asked for a token.
    pub open: bool,
    /// Idle timeout for request bodies and for responses.
    pub client_timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// `https://adj.example.com`, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    scheme: String,
    host: String,
}

impl std::str::FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<PublicUrl, String> {
        let wrong = || "it must be https://HOST[:PORT], without a path".to_owned();
        let url: http::Uri = text.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let scheme =
            url.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https")).ok_or_else(wrong)?;
        let authority = url.authority().filter(|host| !host.as_str().contains('@')).ok_or_else(wrong)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(wrong());
        }
        if scheme == "http" && !is_here(authority.host().trim_matches(['[', ']'])) {
            return Err(
                "it must be https://HOST[:PORT], because browsers would send sessions unencrypted".to_owned()
            );
        }
        let port = authority.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        Ok(PublicUrl { scheme: scheme.to_owned(), host: format!("{}:{port}", authority.host()) })
    }
}

impl std::fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let implied = if self.scheme == "https" { ":443" } else { ":80" };
        write!(f, "{}://{}", self.scheme, self.host.strip_suffix(implied).unwrap_or(&self.host))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{0} can be reached from other machines, and tokens and code would be sent unencrypted")]
    Exposed(IpAddr),
    #[error("`--auth none` disables authentication, and {0} can be reached from other machines")]
    Open(IpAddr),
    #[error("cannot listen on {address}: {error}{}", holder.as_ref().map(|holder| format!(": {holder} listens there")).unwrap_or_default())]
    Bind { address: SocketAddr, error: io::Error, holder: Option<PortHolder> },
    #[error("`{}` is not a {what} in PEM format: {why}", path.display())]
    Pem { path: PathBuf, what: &'static str, why: String },
    #[error("the certificate and the key cannot be used: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
}

impl ListenError {
    pub fn hint(&self) -> String {
        let hint = match self {
            ListenError::Bind { holder: Some(holder), .. } => return holder.hint(),
            ListenError::Exposed(_) => {
                "use a certificate (--tls-cert FILE --tls-key FILE) or a TLS-terminating proxy (--behind-proxy), or \
                 omit --listen"
            }
            ListenError::Open(_) => "omit --auth none, or listen on 127.0.0.1",
            ListenError::Bind { .. } => "another server may listen there: `--port 0` picks a free port",
            ListenError::Pem { .. } | ListenError::Tls(_) => {
                "--tls-cert takes the certificate with its chain, --tls-key its private key"
            }
        };
        hint.to_owned()
    }
}

/// A server that listens.
pub struct Listening {
    pub listener: TcpListener,
    pub tls: Option<TlsAcceptor>,
    pub names: Names,
    pub port: u16,
    /// As browsers open it, without a `/` at its end.
    pub url: String,
    /// The address of the listener itself, where browsers open another.
    pub listens: Option<String>,
    /// Browsers reach it over TLS.
    pub secure: bool,
}

/// Listens, where that is safe.
pub async fn listen(wish: &ListenOptions) -> Result<Listening, ListenError> {
    if wish.open && !wish.listen.is_loopback() {
        return Err(ListenError::Open(wish.listen));
    }
    if !wish.listen.is_loopback() && wish.tls.is_none() && !wish.behind_proxy {
        return Err(ListenError::Exposed(wish.listen));
    }
    let tls = wish.tls.as_ref().map(acceptor).transpose()?;
    let address = SocketAddr::new(wish.listen, wish.port);
    let bind = |error: io::Error| {
        let taken = error.kind() == io::ErrorKind::AddrInUse;
        ListenError::Bind { address, error, holder: taken.then(|| PortHolder::of(address)).flatten() }
    };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    let own = if tls.is_some() { "https" } else { "http" };
    // Under 0.0.0.0 nobody is found.
    let shown = if wish.listen.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { wish.listen };
    let own_url = format!("{own}://{}", SocketAddr::new(shown, bound.port()));
    let mut hosts = vec![SocketAddr::new(shown, bound.port()).to_string()];
    if wish.listen.is_loopback() || wish.listen.is_unspecified() {
        hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", bound.port())));
    }
    let scheme = wish.public.as_ref().map_or(own, |public| &public.scheme);
    hosts.extend(wish.public.iter().map(|public| public.host.clone()));
    let url = wish.public.as_ref().map_or(own_url.clone(), ToString::to_string);
    let listens = (url != own_url).then_some(own_url);
    Ok(Listening {
        listener,
        tls,
        names: Names::new(scheme, hosts),
        port: bound.port(),
        secure: url.starts_with("https://"),
        url,
        listens,
    })
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ListenError> {
    let wrong = |path: &Path, what: &'static str| {
        let path = path.to_owned();
        move |error: pem::Error| ListenError::Pem { path: path.clone(), what, why: error.to_string() }
    };
    let of_cert = wrong(&files.cert, "certificate");
    let certs: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(&files.cert).and_then(|certs| certs.collect()).map_err(of_cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(wrong(&files.key, "private key"))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certs, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(listen: &str) -> ListenOptions {
        let listen = listen.parse().unwrap();
        let client_timeout = super::super::CLIENT_TIMEOUT;
        ListenOptions {
            listen,
            port: 0,
            tls: None,
            behind_proxy: false,
            public: None,
            open: false,
            client_timeout,
        }
    }

    #[tokio::test]
    async fn beyond_this_machine_it_listens_only_behind_tls() {
        for listen in ["0.0.0.0", "::", "192.0.2.1"] {
            let refused = super::listen(&wish(listen)).await.err().unwrap();
            assert!(matches!(refused, ListenError::Exposed(_)), "{refused}");
        }
        let open = ListenOptions { open: true, behind_proxy: true, ..wish("0.0.0.0") };
        assert!(matches!(super::listen(&open).await.err().unwrap(), ListenError::Open(_)));
        let proxied = ListenOptions { behind_proxy: true, ..wish("0.0.0.0") };
        assert!(super::listen(&proxied).await.unwrap().url.starts_with("http://127.0.0.1:"));
    }

    #[test]
    fn a_public_address_is_a_scheme_and_a_host() {
        let url: PublicUrl = "https://adj.example/".parse().unwrap();
        assert_eq!(
            (url.to_string(), url.host.as_str()),
            ("https://adj.example".to_owned(), "adj.example:443")
        );
        assert_eq!(
            "http://localhost:8080".parse::<PublicUrl>().unwrap().to_string(),
            "http://localhost:8080"
        );
        for wrong in
            ["adj.example", "ftp://x", "https://a@b", "https://x/path", "https://x?q", "http://adj.example"]
        {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }
}
