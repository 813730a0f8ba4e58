//! Finds tickets that depend on each other in a circle: none of them can ever start.

use super::{Problem, Seen, Status};
use machines::names::TaskId;
use std::collections::{BTreeMap, BTreeSet};

/// A problem for each open ticket that waits for itself, with the way from it back to it.
pub fn circles(seen: &[Seen]) -> Vec<Problem> {
    let open = |seen: &&Seen| seen.ticket.status != Status::Closed;
    let deps: BTreeMap<&TaskId, &[TaskId]> =
        seen.iter().filter(open).map(|seen| (&seen.ticket.id, seen.ticket.deps.as_slice())).collect();
    let told = |seen: &Seen| {
        let way = way_back(&deps, &seen.ticket.id)?;
        let way: Vec<&str> = way.iter().map(|id| id.as_str()).collect();
        let what = format!("the dependencies go in a circle: {}", way.join(" → "));
        Some(Problem::about(&seen.path, &what, "take one of them out of `deps`"))
    };
    seen.iter().filter(open).filter_map(told).collect()
}

/// The shortest way from a ticket over what it waits for back to itself.
fn way_back<'a>(deps: &BTreeMap<&'a TaskId, &'a [TaskId]>, start: &'a TaskId) -> Option<Vec<&'a TaskId>> {
    let mut known = BTreeSet::new();
    let mut ways = std::collections::VecDeque::from([vec![start]]);
    while let Some(way) = ways.pop_front() {
        let last = way[way.len() - 1];
        for next in deps.get(last).copied().unwrap_or_default() {
            let on = [way.as_slice(), &[next]].concat();
            if next == start {
                return Some(on);
            }
            if known.insert(next) {
                ways.push_back(on);
            }
        }
    }
    None
}
