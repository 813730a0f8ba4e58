//! TLS for webhooks, configured by the program that serves the streams.

use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection that bytes go over, whatever it is made of.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}
pub type Connected = Box<dyn Connection>;

pub trait Tls: Send + Sync {
    /// Agrees on TLS over a connection. When it returns, a certificate that is trusted has said that `name` is there.
    fn connect(
        &self,
        name: String,
        stream: TcpStream,
    ) -> Pin<Box<dyn Future<Output = io::Result<Connected>> + Send>>;
}
