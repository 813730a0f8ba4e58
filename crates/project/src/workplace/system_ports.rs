//! The system's ephemeral ports. A server at one of them may find its port taken when it restarts.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// What is wrong with a server's port, in words, if the system may give it to another program.
pub fn given_to_anyone(port: u16) -> Option<String> {
    let range = range(&std::fs::read_to_string(RANGE).ok()?)?;
    let reserved = reserved(&std::fs::read_to_string(RESERVED).unwrap_or_default());
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

/// Those of them at which nobody listens now, from the first to the last of each pair.
///
/// A program that was given one through port 0 may name it later: tests that start a server twice do. Whoever listens
/// already, as our server does, is out of reach of a program that is given only these.
pub fn free() -> Vec<(u16, u16)> {
    let Some(range) = std::fs::read_to_string(RANGE).ok().and_then(|text| range(&text)) else {
        return Vec::new();
    };
    let reserved = reserved(&std::fs::read_to_string(RESERVED).unwrap_or_default());
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let taken: BTreeSet<u16> = tables.iter().flat_map(|table| listened_at(table)).collect();
    let mut free: Vec<(u16, u16)> = Vec::new();
    for port in range.clone().filter(|port| !taken.contains(port) && is_given(*port, &range, &reserved)) {
        match free.last_mut() {
            Some((_, last)) if *last + 1 == port => *last = port,
            _ => free.push((port, port)),
        }
    }
    free
}

/// The ports of the sockets that listen, in the kernel's table of sockets.
fn listened_at(table: &str) -> impl Iterator<Item = u16> + '_ {
    const LISTEN: &str = "0A";
    table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, state) = (columns.next()?, columns.nth(1)?);
        let (_, port) = local.rsplit_once(':')?;
        (state == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
    })
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = text.split_whitespace().map(|end| end.parse().ok());
    Some(ends.next()??..=ends.next()??)
}

/// Read once for all ports: there are some twenty-eight thousand, and this is asked before every command of an agent.
fn reserved(text: &str) -> Vec<RangeInclusive<u16>> {
    let parts = text.trim().split(',').map(|part| part.split_once('-').unwrap_or((part, part)));
    parts.filter_map(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?)).collect()
}

fn is_given(port: u16, range: &RangeInclusive<u16>, reserved: &[RangeInclusive<u16>]) -> bool {
    range.contains(&port) && !reserved.iter().any(|reserved| reserved.contains(&port))
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
            assert_eq!(is_given(port, &range, &super::reserved(reserved)), given, "{port} {reserved:?}");
        }
        assert_eq!(super::range(""), None);
    }

    #[test]
    fn only_sockets_that_listen_take_a_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
                     0: 0100007F:9C40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n   \
                     1: 0100007F:9C41 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0\n\n";
        assert_eq!(listened_at(table).collect::<Vec<_>>(), [40000]);
    }
}
