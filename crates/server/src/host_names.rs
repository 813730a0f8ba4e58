//! Which requests are accepted at a TCP address at all, before anybody looks at a token.
//!
//! Every web page in the user's browser can send requests to this machine, and a name that it owns can be made to point
//! here. So a request must name one of our own addresses, and where a browser says which page it comes from, that page
//! must be ours. It is checked for every request: for reads and streams as for changes.

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, header};

use api::Problem;

/// The addresses that are ours: what `Host` may say, and where our own page comes from.
#[derive(Clone, Debug)]
pub struct Names {
    /// `host:port`, in small letters.
    hosts: Vec<String>,
    /// `http://host:port`, for each of them.
    origins: Vec<String>,
}

impl Names {
    /// `scheme` is how browsers reach this address: that of a proxy if one is in front of it.
    pub fn new(scheme: &str, hosts: impl IntoIterator<Item = String>) -> Names {
        let mut names = Names { hosts: Vec::new(), origins: Vec::new() };
        for host in hosts {
            let host = host.to_lowercase();
            // A port that the scheme implies is left out by browsers, and may be by others.
            let implied = if scheme == "https" { ":443" } else { ":80" };
            for host in
                [host.strip_suffix(implied).map(str::to_owned), Some(host.clone())].into_iter().flatten()
            {
                names.origins.push(format!("{scheme}://{host}"));
                names.hosts.push(host);
            }
        }
        names
    }

    /// Refuses whoever does not ask us, or asks for a page that is not ours.
    pub fn check(&self, parts: &Parts) -> Result<(), Problem> {
        self.check_host(parts)?;
        if let Some(origin) = one(&parts.headers, header::ORIGIN.as_str())?
            && !self.is_ours(origin)
        {
            return Err(foreign());
        }
        match one(&parts.headers, "sec-fetch-site")? {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => Err(foreign()),
        }
    }

    /// Somebody clicked on a link to us on another web page, which sees nothing of what comes.
    pub fn is_followed_link(&self, parts: &Parts) -> bool {
        let says =
            |name: &str, value: &str| matches!(one(&parts.headers, name), Ok(Some(said)) if said == value);
        parts.method == Method::GET
            && self.check_host(parts).is_ok()
            && !parts.headers.contains_key(header::ORIGIN)
            && says("sec-fetch-mode", "navigate")
            && says("sec-fetch-dest", "document")
    }

    /// Refuses whoever does not ask us, whatever page it comes from.
    pub fn check_host(&self, parts: &Parts) -> Result<(), Problem> {
        let asked = parts.uri.authority().map(Authority::as_str);
        let named = one(&parts.headers, header::HOST.as_str())?;
        for host in asked.into_iter().chain(named) {
            if !self.hosts.contains(&host.to_lowercase()) {
                return Err(Problem::new(421, "WRONG_HOST", "this server does not serve that host name")
                    .hint("use the address that the server printed; `adj serve --public-url` adds another"));
            }
        }
        if asked.is_none() && named.is_none() {
            return Err(Problem::bad("the request has no `Host` header"));
        }
        Ok(())
    }

    /// A cookie comes along with whatever page asks: a change that rests on one must say that it is from ours.
    pub fn check_cookie(&self, parts: &Parts) -> Result<(), Problem> {
        if matches!(parts.method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let ours = one(&parts.headers, header::ORIGIN.as_str())?.is_some_and(|origin| self.is_ours(origin));
        let same = one(&parts.headers, "sec-fetch-site")? == Some("same-origin");
        if ours || same { Ok(()) } else { Err(foreign()) }
    }

    fn is_ours(&self, origin: &str) -> bool {
        self.origins.iter().any(|ours| origin.eq_ignore_ascii_case(ours))
    }
}

fn foreign() -> Problem {
    Problem::new(403, "WRONG_ORIGIN", "the request comes from a page of another site")
}

/// The only one of its name; more than one is nobody's honest request.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().map(|value| value.to_str());
    let bad = || Problem::bad(format!("the header `{name}` must be given once, as text"));
    if all.next().is_some() {
        return Err(bad());
    }
    first.transpose().map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new("http", ["127.0.0.1:4600".to_owned(), "localhost:4600".to_owned()])
    }

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(headers: &[(&str, &str)]) -> u16 {
        names().check(&asked("GET", "/", headers)).map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn only_our_own_names_are_answered() {
        assert_eq!(status(&[("host", "localhost:4600")]), 200);
        assert_eq!(status(&[("host", "LocalHost:4600")]), 200);
        for host in ["evil.example:4600", "localhost", "localhost:80", "127.0.0.1:4600.evil.example", ""] {
            assert_eq!(status(&[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost:4600"), ("host", "evil.example")]), 400);
        let absolute = asked("GET", "http://evil.example/", &[("host", "localhost:4600")]);
        assert_eq!(names().check(&absolute).unwrap_err().status, 421);
    }

    #[test]
    fn a_page_of_somebody_else_is_refused_also_where_it_names_us() {
        let host = ("host", "localhost:4600");
        assert_eq!(status(&[host, ("origin", "http://localhost:4600")]), 200);
        for origin in ["http://evil.example", "null", "https://localhost:4600", "http://localhost:3000"] {
            assert_eq!(status(&[host, ("origin", origin)]), 403, "{origin}");
        }
        let rebound = [("host", "evil.example:4600"), ("origin", "http://evil.example:4600")];
        assert_eq!(status(&rebound), 421, "that both are the same proves nothing");
        assert_eq!(status(&[host, ("sec-fetch-site", "none")]), 200);
        for access in ["cross-site", "same-site"] {
            assert_eq!(status(&[host, ("sec-fetch-site", access)]), 403, "{access}");
        }
    }

    #[test]
    fn a_link_on_another_page_may_be_followed_and_nothing_else_comes_from_there() {
        let followed = |method: &str, headers: &[(&str, &str)]| {
            let mut all = vec![("host", "localhost:4600"), ("sec-fetch-site", "cross-site")];
            all.extend(headers);
            names().is_followed_link(&asked(method, "/enter", &all))
        };
        let (mode, dest) = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"));
        assert!(followed("GET", &[mode, dest]));
        assert!(!followed("POST", &[mode, dest]));
        assert!(!followed("GET", &[mode, ("sec-fetch-dest", "iframe")]));
        assert!(!followed("GET", &[("sec-fetch-mode", "no-cors"), dest]));
        assert!(!followed("GET", &[mode, dest, ("origin", "http://evil.example")]));
        let elsewhere = [("host", "evil.example"), mode, dest];
        assert!(!names().is_followed_link(&asked("GET", "/enter", &elsewhere)));
    }

    #[test]
    fn a_change_that_rests_on_a_cookie_must_come_from_our_page() {
        let check = |method: &str, headers: &[(&str, &str)]| {
            names().check_cookie(&asked(method, "/", headers)).is_ok()
        };
        assert!(check("GET", &[]));
        assert!(!check("POST", &[]));
        assert!(check("POST", &[("origin", "http://localhost:4600")]));
        assert!(check("POST", &[("sec-fetch-site", "same-origin")]));
        assert!(!check("POST", &[("sec-fetch-site", "none")]));
    }

    #[test]
    fn a_port_that_the_scheme_implies_may_be_left_out() {
        let names = Names::new("https", ["adj.example:443".to_owned()]);
        for host in ["adj.example", "adj.example:443"] {
            assert!(names.check(&asked("GET", "/", &[("host", host)])).is_ok(), "{host}");
        }
    }
}
