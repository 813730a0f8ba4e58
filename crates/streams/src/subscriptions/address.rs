//! The allowed addresses of webhooks. A server that posts to any given address can be misused to reach hosts that its user cannot.
//!
//! Over https, all public addresses are allowed. The name is resolved again for each delivery, and the connection goes to the
//! address that was checked. This machine and private networks are reached only if the server allows it, and plain http
//! never leaves this machine. No redirect is followed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;

/// An address that is well-formed, and may be connected to as far as that can be said without a name server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAddress {
    pub secure: bool,
    /// A name, or an IP address without brackets.
    pub host: String,
    pub port: u16,
}

/// `local`: this machine and private networks are allowed.
pub fn check(url: &str, local: bool) -> Result<WebhookAddress, String> {
    let uri: Uri = url.parse().map_err(|error| format!("the webhook's address is not a URL: {error}"))?;
    let host = uri.host().ok_or("the webhook's address names no host")?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("the webhook's address must not hold a user name".to_owned());
    }
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    match uri.scheme_str() {
        Some("https") => {
            if let Ok(address) = host.parse::<IpAddr>() {
                check_address(address, local)?;
            } else if is_number(&host) {
                return Err("the webhook's host must be a name or a whole IP address".to_owned());
            } else if !local && (host == "localhost" || host.ends_with(".localhost")) {
                return Err(not_allowed("this machine"));
            }
            Ok(WebhookAddress { secure: true, port: uri.port_u16().unwrap_or(443), host })
        }
        Some("http") => {
            let Some(address) = loopback_address(&host) else {
                return Err(
                    "plain http is only for localhost and 127.0.0.x; the webhook's address must begin with https://"
                        .to_owned(),
                );
            };
            if !local {
                return Err(not_allowed("this machine"));
            }
            let host = address.to_string();
            Ok(WebhookAddress { secure: false, port: uri.port_u16().unwrap_or(80), host })
        }
        _ => Err("the webhook's address must begin with https://".to_owned()),
    }
}

/// Where to connect to: the addresses of a target that may be reached.
pub async fn resolve(target: &WebhookAddress, local: bool) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found = found.map_err(|error| format!("`{}` was not found: {error}", target.host))?;
    allowed(target, found, local)
}

/// Those of a target's addresses that may be reached.
pub fn allowed(
    target: &WebhookAddress,
    found: impl Iterator<Item = SocketAddr>,
    local: bool,
) -> Result<Vec<SocketAddr>, String> {
    let mut refused = format!("`{}` has no address", target.host);
    let mut allowed = Vec::new();
    for address in found {
        match check_address(address.ip(), local) {
            Ok(()) => allowed.push(address),
            Err(why) => refused = why,
        }
    }
    if allowed.is_empty() { Err(refused) } else { Ok(allowed) }
}

fn check_address(address: IpAddr, local: bool) -> Result<(), String> {
    match place_of(address) {
        Place::Public => Ok(()),
        Place::Here if local => Ok(()),
        Place::Private if local => Ok(()),
        Place::Here => Err(not_allowed("this machine")),
        Place::Private => Err(not_allowed("a private network")),
        Place::Nowhere => Err(format!("{address} is not the address of a server")),
    }
}

fn not_allowed(place: &str) -> String {
    format!("webhooks to {place} are not allowed by this server (`adj serve --local-webhooks` allows them)")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Public,
    Here,
    Private,
    /// Nobody is reached there: unspecified, multicast, reserved, of documentation, or of metadata services.
    Nowhere,
}

fn place_of(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(address) => place_of_v4(address),
        IpAddr::V6(address) => match inner_v4(address) {
            Some(inner) => place_of_v4(inner),
            None => place_of_v6(address),
        },
    }
}

fn place_of_v4(address: Ipv4Addr) -> Place {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Place::Here,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Place::Private,
        // Link-local: addresses without a router, and the metadata services of clouds.
        (169, 254, _) => Place::Nowhere,
        (0, ..)
        | (192, 0, 0)
        | (192, 0, 2)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        | (224.., ..) => Place::Nowhere,
        _ => Place::Public,
    }
}

fn place_of_v6(address: Ipv6Addr) -> Place {
    match address.segments() {
        _ if address.is_loopback() => Place::Here,
        [0xfc00..=0xfdff, ..] => Place::Private,
        // Of the rest only 2000::/3 is public, without documentation, Teredo and others of 2001::/23.
        [0x2001, 0x0000..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, ..] => Place::Nowhere,
        [0x2000..=0x3fff, ..] => Place::Public,
        _ => Place::Nowhere,
    }
}

/// An IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 or 6to4.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}

/// A number that some resolvers take for an address: `2130706433`, `0x7f.1`, `127.1`.
fn is_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    !last.is_empty() && (last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x"))
}

/// `localhost` is this machine whatever a name server says.
fn loopback_address(host: &str) -> Option<Ipv4Addr> {
    if host == "localhost" {
        return Some(Ipv4Addr::LOCALHOST);
    }
    let address: Ipv4Addr = host.parse().ok()?;
    (address.octets()[..3] == [127, 0, 0]).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_private_networks_are_reached_only_if_that_is_allowed() {
        let here = WebhookAddress { secure: false, host: "127.0.0.1".to_owned(), port: 8080 };
        assert_eq!(check("http://127.0.0.1:8080/hook", true).unwrap(), here);
        assert_eq!(check("http://localhost/hook", true).unwrap().port, 80);
        for local in [
            "http://127.0.0.1:8080/hook",
            "http://localhost/",
            "https://127.0.0.1/",
            "https://localhost/",
            "https://LOCALHOST/",
            "https://10.0.0.1/hook",
            "https://172.16.0.1/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://[::1]/",
            "https://[fd00::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
        ] {
            assert!(check(local, true).is_ok(), "{local}");
            let refused = check(local, false).unwrap_err();
            assert!(refused.contains("--local-webhooks"), "{local}: {refused}");
        }
    }

    #[test]
    fn https_goes_to_public_addresses_and_http_nowhere_else() {
        for good in ["https://example.com/hook", "https://1.1.1.1/", "https://[2606:4700::1111]:8443/"] {
            assert!(check(good, false).unwrap().secure, "{good}");
        }
        assert_eq!(check("https://[2606:4700::1111]:8443/", false).unwrap().port, 8443);
        for bad in [
            "http://10.0.0.1/hook",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest",
            "https://169.254.169.254/latest",
            "https://[::ffff:169.254.169.254]/",
            "https://[fe80::1]/",
            "https://[ff02::1]/",
            "https://[::]/",
            "https://0.0.0.0/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://127.1/",
            "https://0177.0.0.1/",
            "http://[::1]/",
            "http://0.0.0.0/",
            "http://127.0.1.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://127.1/",
            "http://example.com/",
            "http://localhost.example.com/",
            "http://user@127.0.0.1/",
            "https://user@example.com/",
            "ftp://127.0.0.1/",
            "/hook",
            "file:///etc/passwd",
            "",
        ] {
            assert!(check(bad, true).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_name_is_reached_only_at_addresses_that_are_allowed() {
        let target = WebhookAddress { secure: true, host: "localhost".to_owned(), port: 443 };
        assert!(resolve(&target, false).await.unwrap_err().contains("this machine"));
        assert!(!resolve(&target, true).await.unwrap().is_empty());
    }
}
