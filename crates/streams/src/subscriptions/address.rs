//! Where webhooks may go. A server that posts to any address that it is told can be used to reach what its user cannot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::Uri;

/// Where to connect to, decided without asking a name server.
pub fn check(url: &str, loopback: bool) -> Result<SocketAddr, String> {
    let uri: Uri = url.parse().map_err(|error| format!("the webhook's address is not a URL: {error}"))?;
    let host = uri.host().ok_or("the webhook's address names no host")?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("the webhook's address must not hold a user name".to_owned());
    }
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err("webhooks over https are not supported by this server; use a pull-wake subscription"
                .to_owned());
        }
        _ => return Err("the webhook's address must begin with http://".to_owned()),
    }
    let Some(address) = loopback_address(host) else {
        return Err("plain http is only for localhost and 127.0.0.x".to_owned());
    };
    if !loopback {
        return Err("webhooks to this machine itself are turned off".to_owned());
    }
    Ok(SocketAddr::new(IpAddr::V4(address), uri.port_u16().unwrap_or(80)))
}

/// `localhost` is this machine whatever a name server says.
fn loopback_address(host: &str) -> Option<Ipv4Addr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST);
    }
    let address: Ipv4Addr = host.parse().ok()?;
    (address.octets()[..3] == [127, 0, 0]).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_and_only_where_that_is_allowed() {
        assert_eq!(check("http://127.0.0.1:8080/hook", true).unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(check("http://localhost/hook", true).unwrap(), "127.0.0.1:80".parse().unwrap());
        assert!(check("http://127.0.0.1:8080/hook", false).is_err());
        for bad in [
            "http://10.0.0.1/hook",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://0.0.0.0/",
            "http://127.0.1.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://127.1/",
            "http://example.com/",
            "http://localhost.example.com/",
            "http://user@127.0.0.1/",
            "https://example.com/",
            "ftp://127.0.0.1/",
            "/hook",
            "file:///etc/passwd",
            "",
        ] {
            assert!(check(bad, true).is_err(), "{bad}");
        }
    }
}
