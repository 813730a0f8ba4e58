//! One name, one public type within a crate.

use std::collections::BTreeMap;

use crate::modules::Modules;
use crate::{all_crates, crates_folder};

/// Names that two modules of a crate give to a public type today, for crates that were cut from one together. The list
/// only shrinks.
const DOUBLE: &[(&[&str], &[&str])] = &[
    (
        &["adj", "api", "server"],
        &[
            "Add",
            "Agent",
            "Answer",
            "Assign",
            "Call",
            "Caller",
            "Cleanup",
            "Command",
            "Cost",
            "Create",
            "Decide",
            "Diff",
            "Disable",
            "Document",
            "Edit",
            "Entry",
            "Fleet",
            "History",
            "Init",
            "Item",
            "ListQuery",
            "Logs",
            "Merge",
            "Move",
            "Project",
            "Prompt",
            "Query",
            "Ready",
            "Request",
            "Restore",
            "Resume",
            "Review",
            "Run",
            "ShowQuery",
            "Spawn",
            "Start",
            "Stop",
            "Story",
            "Taken",
            "Who",
            "Why",
        ],
    ),
    (&["kernel"], &["About", "Decision"]),
    (&["machines"], &["Action", "Effect", "Event", "Guard", "Kind", "State"]),
];

#[test]
fn a_public_type_has_a_name_of_its_own_in_its_crate_or_is_listed() {
    let mut faults = Vec::new();
    let crates = all_crates();
    let mut all: BTreeMap<&str, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for krate in &crates {
        let types = all.entry(krate).or_default();
        for module in Modules::read(&crates_folder(), krate).iter() {
            for (name, line) in &module.declarations.public_types {
                types.entry(name.clone()).or_default().push(format!("{}:{line}", module.file));
            }
        }
    }
    for (krate, types) in &all {
        let listed =
            |name: &str| DOUBLE.iter().any(|(crates, names)| crates.contains(krate) && names.contains(&name));
        for (name, places) in types.iter().filter(|(name, places)| places.len() > 1 && !listed(name)) {
            faults.push(format!("{krate}: two public types are named {name}: {}", places.join(", ")));
        }
    }
    for (crates, names) in DOUBLE {
        for name in *names {
            let places = crates.iter().filter_map(|krate| all.get(krate)?.get(*name)).map(Vec::len);
            if places.sum::<usize>() < 2 {
                faults
                    .push(format!("{}: {name} is one type now: remove it from the list", crates.join(", ")));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    println!(
        "{} names of public types stand for two types of one crate",
        DOUBLE.iter().map(|(_, all)| all.len()).sum::<usize>()
    );
}
