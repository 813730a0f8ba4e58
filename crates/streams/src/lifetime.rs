//! The lifetime of a stream: forever, for a time after its last use, or until a moment.

use crate::problem::Problem;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    #[default]
    Unlimited,
    /// Seconds after the last read or write.
    Idle(u64),
    /// Milliseconds since 1970, and the text in which it was asked for.
    Until { at: u64, text: String },
}

impl Lifetime {
    /// What the two headers of a PUT ask for.
    pub fn parse(ttl: Option<&str>, expires_at: Option<&str>) -> Result<Lifetime, Problem> {
        match (ttl, expires_at) {
            (None, None) => Ok(Lifetime::Unlimited),
            (Some(_), Some(_)) => {
                Err(Problem::invalid("Stream-TTL and Stream-Expires-At exclude each other; send one of them"))
            }
            (Some(ttl), None) => seconds(ttl).map(Lifetime::Idle).ok_or_else(|| {
                Problem::invalid("Stream-TTL must be whole seconds in plain decimal digits, such as 3600")
            }),
            (None, Some(text)) => {
                let at = text.parse::<jiff::Timestamp>().map_err(|_| {
                    Problem::invalid("Stream-Expires-At must be a time such as 2026-01-31T12:00:00Z")
                })?;
                Ok(Lifetime::Until {
                    at: u64::try_from(at.as_millisecond()).unwrap_or(0),
                    text: text.to_owned(),
                })
            }
        }
    }

    /// What a fork gets that asks for `self` of a source that has `source`: its own wish, else what the source has.
    #[rustfmt::skip]
    pub fn of_fork(self, source: &Lifetime) -> Lifetime {
        use Lifetime::{Idle, Unlimited, Until};
        match (source, self) {
            // source       asked for                  the fork gets
            (Unlimited,     asked @ Unlimited)      => asked,
            (Unlimited,     asked @ Idle(_))        => asked,
            (Unlimited,     asked @ Until { .. })   => asked,
            (Idle(seconds), Unlimited)              => Idle(*seconds),
            (Idle(_),       asked @ Idle(_))        => asked,
            (Idle(_),       asked @ Until { .. })   => asked,
            (Until { .. },  Unlimited)              => source.clone(),
            (Until { .. },  asked @ Idle(_))        => asked,
            (Until { .. },  asked @ Until { .. })   => asked,
        }
    }

    /// When a stream that was last used at `touched` is over, both in milliseconds since 1970.
    pub fn due(&self, touched: u64) -> Option<u64> {
        match self {
            Lifetime::Unlimited => None,
            Lifetime::Idle(seconds) => Some(touched.saturating_add(seconds.saturating_mul(1000))),
            Lifetime::Until { at, .. } => Some(*at),
        }
    }

    /// Two lifetimes are the same wish when they end at the same time, however they were written.
    pub fn same(&self, other: &Lifetime) -> bool {
        match (self, other) {
            (Lifetime::Until { at, .. }, Lifetime::Until { at: others, .. }) => at == others,
            (ours, theirs) => ours == theirs,
        }
    }
}

/// Decimal digits without sign, point or leading zero.
pub fn seconds(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(at: u64) -> Lifetime {
        Lifetime::Until { at, text: String::new() }
    }

    /// The nine rows of the protocol's table.
    #[test]
    fn a_fork_gets_what_it_asks_for_and_else_what_its_source_has() {
        use Lifetime::{Idle, Unlimited};
        for (source, asked, gets) in [
            (Unlimited, Unlimited, Unlimited),
            (Unlimited, Idle(5), Idle(5)),
            (Unlimited, until(9), until(9)),
            (Idle(7), Unlimited, Idle(7)),
            (Idle(7), Idle(50), Idle(50)),
            (Idle(7), until(9), until(9)),
            (until(3), Unlimited, until(3)),
            (until(3), Idle(5), Idle(5)),
            (until(3), until(9), until(9)),
        ] {
            assert_eq!(asked.clone().of_fork(&source), gets, "source {source:?}, asked {asked:?}");
        }
    }

    #[test]
    fn a_lifetime_is_written_in_one_way_only() {
        for bad in ["", "+1", "-1", "01", "1.0", "1e3", " 1", "abc", "99999999999999999999999"] {
            assert!(Lifetime::parse(Some(bad), None).is_err(), "{bad:?}");
        }
        assert_eq!(Lifetime::parse(Some("0"), None).unwrap(), Lifetime::Idle(0));
        assert!(Lifetime::parse(None, Some("tomorrow")).is_err());
        assert!(Lifetime::parse(Some("1"), Some("2026-01-01T00:00:00Z")).is_err());
        let there = Lifetime::parse(None, Some("2026-01-01T01:00:00+01:00")).unwrap();
        assert!(there.same(&Lifetime::parse(None, Some("2026-01-01T00:00:00Z")).unwrap()));
    }

    #[test]
    fn an_idle_stream_is_over_when_its_seconds_are() {
        assert_eq!(Lifetime::Idle(2).due(1000), Some(3000));
        assert_eq!(Lifetime::Idle(u64::MAX).due(1000), Some(u64::MAX));
        assert_eq!(until(7).due(1000), Some(7));
        assert_eq!(Lifetime::Unlimited.due(1000), None);
    }
}
