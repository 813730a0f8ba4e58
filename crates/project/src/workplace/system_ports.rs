//! The ports that the system gives to whoever connects somewhere. A server at one of them can find it taken when it starts
//! again.

use std::ops::RangeInclusive;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// What is wrong with a server's port, in words, if the system may give it to another program.
pub fn given_to_anyone(port: u16) -> Option<String> {
    let range = range(&std::fs::read_to_string(RANGE).ok()?)?;
    let reserved = std::fs::read_to_string(RESERVED).unwrap_or_default();
    is_given(port, &range, &reserved).then(|| {
        format!(
            "port {port} is one of those that the system gives to any program ({} to {}, {RANGE}): while the server restarts, \
             another program can be given it; take a port below {}, or reserve it: `sysctl -w \
             net.ipv4.ip_local_reserved_ports={port}`",
            range.start(),
            range.end(),
            range.start()
        )
    })
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = text.split_whitespace().map(|end| end.parse().ok());
    Some(ends.next()??..=ends.next()??)
}

fn is_given(port: u16, range: &RangeInclusive<u16>, reserved: &str) -> bool {
    let is_reserved = reserved.trim().split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&port),
            _ => false,
        }
    });
    range.contains(&port) && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_to_anyone_inside_the_range_unless_it_is_reserved() {
        let range = range("32768\t60999\n").unwrap();
        for (port, reserved, given) in [
            (4600, "\n", false),
            (32768, "\n", true),
            (60999, "\n", true),
            (61000, "\n", false),
            (40000, "40000\n", false),
            (40000, "1-2,39999-40001\n", false),
            (40002, "1-2,39999-40001\n", true),
        ] {
            assert_eq!(is_given(port, &range, reserved), given, "{port} {reserved:?}");
        }
        assert_eq!(super::range(""), None);
    }
}
