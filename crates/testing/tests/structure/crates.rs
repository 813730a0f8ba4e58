//! The order of the crates: each knows only crates before it, and only those that its row names.

use crate::{all_crates, crates_folder};

/// Each crate, the crates of ours that it may know, and why.
#[rustfmt::skip]
const ORDER: &[(&str, &[&str], &str)] = &[
    ("machines",  &[], "five tables, which know nothing else"),
    ("kernel",    &["machines"], "the rules by which the machines move each other"),
    ("base",      &[], "clock, files and secrets: helpers that know no rule"),
    ("log",       &["machines", "kernel", "base"], "stores events of the kernel and owns its World"),
    ("documents", &["machines", "kernel", "base"], "tickets and specs become values of the kernel"),
    ("git",       &["machines", "base", "documents"], "names of tasks, and ticket files in a commit"),
    ("process",   &["machines", "base"], "the macro for words on the wire; knows no kernel"),
    ("agents",    &["machines", "kernel", "base", "process"], "usage types of the kernel; agent programs run as processes"),
    ("project",   &["machines", "kernel", "base", "documents", "git", "process", "agents"], "the settings of a project name all that is below"),
    ("fleet",     &["machines", "kernel", "base", "log", "documents", "git", "process", "agents", "project"], "carries out every effect"),
    ("sim",       &["machines", "kernel", "log", "git"], "plays the kernel against a log; one branch name of git"),
    ("streams",   &[], "a protocol of its own"),
    ("web",       &[], "the built web page, as files"),
    ("api",       &["machines", "kernel", "base", "log", "git", "process", "agents", "fleet"], "operations on a project and its fleet"),
    ("server",    &["machines", "kernel", "base", "log", "git", "process", "agents", "project", "fleet", "streams", "web", "api"], "translates requests to operations, and is the host for real"),
    ("adj",       &["machines", "kernel", "base", "log", "documents", "git", "process", "agents", "project", "fleet", "sim", "streams", "api", "server"], "the program: all parts together"),
    ("testing",   &[], "helpers of tests: only a dev-dependency"),
];

#[test]
fn a_crate_knows_only_crates_before_it_that_its_row_names() {
    let mut faults = Vec::new();
    let present = all_crates();
    for krate in &present {
        let Some(place) = ORDER.iter().position(|(name, ..)| name == krate) else {
            faults.push(format!("{krate} is not in the order of crates: add a row with its reason"));
            continue;
        };
        let (_, allowed, _) = ORDER[place];
        let known = dependencies(krate);
        for name in &known {
            let before = ORDER[..place].iter().any(|(other, ..)| other == name);
            if name == "testing" || !before {
                faults.push(format!("{krate} depends on {name}, which does not come before it"));
            } else if !allowed.contains(&name.as_str()) {
                faults.push(format!("{krate} depends on {name}, which its row does not name"));
            }
        }
        for name in allowed.iter().filter(|name| present.iter().any(|krate| krate == *name)) {
            if !known.iter().any(|known| known == name) {
                faults
                    .push(format!("the row of {krate} names {name}, on which it does not depend: remove it"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The crates of ours in `[dependencies]`.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = std::fs::read_to_string(crates_folder().join(krate).join("Cargo.toml")).unwrap();
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| ORDER.iter().any(|(ours, ..)| ours == name)).map(str::to_owned).collect()
}
