//! A server's address, as somebody wrote it: `https://adj.example.com`, `http://127.0.0.1:4600/p/api`.

use std::io;
use std::net::ToSocketAddrs;

use super::connection::{Dialled, Trouble};
use super::{Exit, Failure};
use api::Method;
use server::outgoing;
use server::port_holder::PortHolder;
use server::proof::tcp_address;
use server::tcp;

#[derive(Clone, Debug)]
pub struct Address {
    secure: bool,
    name: String,
    port: u16,
    /// What is sent as `Host`.
    host: String,
    /// The project's place on a server of several: what stands before every path.
    prefix: String,
}

impl Address {
    /// `None`: it is no address of HTTP.
    pub fn read(text: &str) -> Option<Address> {
        let url: hyper::Uri = text.trim_end_matches('/').parse().ok()?;
        let secure = match url.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = url.authority().filter(|authority| !authority.as_str().contains('@'))?;
        if url.query().is_some() {
            return None;
        }
        let name = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let prefix = url.path().trim_end_matches('/').to_owned();
        Some(Address { secure, name, port, host: authority.as_str().to_owned(), prefix })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A token goes over the net only where nobody else can read it.
    pub fn is_safe(&self) -> bool {
        self.secure || outgoing::is_here(&self.name)
    }

    pub async fn connect(&self) -> io::Result<Dialled> {
        if self.secure {
            let stream = outgoing::connect_securely(&self.name, self.port).await?;
            return Ok(Dialled { stream, unproven: None });
        }
        let stream = outgoing::connect_in_the_clear(&self.name, self.port).await?;
        let unproven = Some(tcp_address(stream.peer_addr()?));
        Ok(Dialled { stream: Box::new(stream), unproven })
    }

    /// The process that listens there, where that is on this machine.
    fn holder(&self) -> Option<PortHolder> {
        let mut addresses = (self.name.as_str(), self.port).to_socket_addrs().ok()?;
        addresses.find_map(PortHolder::of)
    }

    pub(super) fn failure(&self, trouble: Trouble, method: Method) -> Failure {
        let message = match trouble {
            Trouble::NoToken(failure) => return failure,
            Trouble::Unproven(why) => {
                let who = self.holder().map(|holder| format!(", {holder},")).unwrap_or_default();
                let message = format!("what answers at {self}{who} {why}; your token was not sent");
                return Failure::new(Exit::Refused, message).hint(
                    "another program may have taken the port of `adj serve`, the token may be revoked or of another \
                     project, or the server is older than this command",
                );
            }
            Trouble::Unreachable(error) => {
                let message = format!("the server at {self} cannot be reached: {error}");
                return Failure::new(Exit::Unreachable, message).hint(format!(
                    "`adj serve` starts one, at port {} unless it is told another",
                    tcp::PORT
                ));
            }
            Trouble::Silent(limit) => {
                format!("the server at {self} does not answer: {} s were waited", limit.as_secs())
            }
            Trouble::Suspended(_) => format!("the server at {self} does not answer"),
            Trouble::Broken(why) | Trouble::BrokenBefore(why) => {
                format!("the server at {self} broke off: {why}")
            }
        };
        let hint = match method {
            Method::Get => "try again",
            _ => "the request may have been executed: check before you retry",
        };
        Failure::new(Exit::Unreachable, message).hint(hint)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_as_people_do() {
        let address = Address::read("https://adj.example/p/api/").unwrap();
        assert_eq!((address.to_string().as_str(), address.port), ("https://adj.example/p/api", 443));
        assert_eq!(Address::read("http://[::1]:4600").unwrap().name, "::1");
        for wrong in ["adj.example", "ftp://x", "unix:x", "https://a@b", "https://x?token=1", ""] {
            assert!(Address::read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_not_sent_in_the_clear_beyond_this_machine() {
        let safe = |text: &str| Address::read(text).unwrap().is_safe();
        assert!(safe("https://adj.example") && safe("http://127.0.0.1:1") && safe("http://localhost:1"));
        assert!(!safe("http://adj.example") && !safe("http://192.0.2.1:4600"));
    }
}
