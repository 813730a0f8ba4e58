//! The structure of the workspace: the order of its crates, modules without cycles, and one name for one public type.
//!
//! What counts as a cycle: in each folder of sources, a file or folder uses an item of its sibling, and the sibling uses
//! one of its items, directly or through others. A use is a `use` declaration or a path in code; re-exports are followed
//! to the file that defines the item. A parent (`lib.rs`, `mod.rs`, `a.rs` beside `a/`) and its parts are one unit: it
//! declares them, hands on their names and holds the types that they share, so a use between parent and part is no edge.
//! A method is found through its type, not through a path, so a call of a method is no edge either.
//!
//! To see all edges: `ADJ_PRINT_STRUCTURE=1 cargo test -p adjutant-testing -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crates;
mod dependencies;
mod listed;
mod modules;
mod names;
mod source;
mod storage;

use std::collections::BTreeMap;
use std::path::PathBuf;

use listed::LISTED;
use modules::{Graph, Modules, shortest_cycle};

pub fn crates_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names of the folders in `crates/`.
pub fn all_crates() -> Vec<String> {
    let entries = std::fs::read_dir(crates_folder()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn graphs() -> BTreeMap<String, Graph> {
    all_crates().iter().flat_map(|krate| Modules::read(&crates_folder(), krate).graphs()).collect()
}

fn listed(folder: &str) -> Vec<(String, String)> {
    let entries = LISTED.iter().filter(|(name, ..)| *name == folder);
    entries.flat_map(|(_, _, uses)| *uses).map(|(from, to, _)| (from.to_string(), to.to_string())).collect()
}

#[test]
fn modules_form_no_cycle_that_is_not_listed() {
    let graphs = graphs();
    let mut faults = Vec::new();
    for (folder, graph) in &graphs {
        if std::env::var_os("ADJ_PRINT_STRUCTURE").is_some() {
            for ((from, to), used) in graph {
                println!("{folder}: {from} -> {to} ({}:{} {})", used.file, used.line, used.path);
            }
        }
        let listed = listed(folder);
        let mut rest = graph.clone();
        rest.retain(|edge, _| !listed.contains(edge));
        for edge in &listed {
            let closes = graph.get(edge).is_some_and(|used| {
                let mut with = rest.clone();
                with.insert(edge.clone(), used.clone());
                shortest_cycle(&with).is_some()
            });
            if !closes {
                faults.push(format!(
                    "{folder}: {} -> {} closes no cycle: remove it from the list",
                    edge.0, edge.1
                ));
            }
        }
        if let Some(cycle) = shortest_cycle(&rest) {
            faults.push(told(folder, graph, &cycle));
        }
    }
    for (folder, ..) in LISTED.iter().filter(|(folder, ..)| !graphs.contains_key(*folder)) {
        faults.push(format!("{folder} has no uses between its files: remove it from the list"));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    println!("{} uses close a cycle", LISTED.iter().map(|(_, _, uses)| uses.len()).sum::<usize>());
}

fn told(folder: &str, graph: &Graph, cycle: &[String]) -> String {
    let around: Vec<&String> = cycle.iter().chain(cycle.first()).collect();
    let mut text =
        format!("{folder}: {}", around.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(" -> "));
    let krate = folder.split('/').next().unwrap_or_default();
    for pair in around.windows(2) {
        let used = &graph[&(pair[0].clone(), pair[1].clone())];
        text += &format!("\n    crates/{krate}/src/{}:{} uses {}", used.file, used.line, used.path);
    }
    text
}

/// A rule file uses the files before it in the order that `rules.rs` names, but for the uses that are listed.
#[test]
fn the_rules_can_be_read_in_the_order_that_their_table_names() {
    let text = std::fs::read_to_string(crates_folder().join("kernel/src/rules.rs")).unwrap();
    let comment = text.lines().take_while(|line| line.starts_with("//!"));
    let paragraph: Vec<&str> = comment
        .skip_while(|line| !line.starts_with("//! Reading order:"))
        .take_while(|line| line.len() > 4)
        .collect();
    let paragraph = paragraph.join(" ");
    let order: Vec<String> =
        paragraph.split('`').skip(1).step_by(2).map(|name| format!("{name}.rs")).collect();
    let mut files: Vec<String> = std::fs::read_dir(crates_folder().join("kernel/src/rules"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut named = order.clone();
    named.sort();
    assert_eq!(named, files, "the reading order in rules.rs names each file of rules/ once");
    let listed = listed("kernel/src/rules");
    for ((from, to), used) in &graphs()["kernel/src/rules"] {
        let place = |file: &String| order.iter().position(|name| name == file);
        assert!(
            place(to) < place(from) || listed.contains(&(from.clone(), to.clone())),
            "crates/kernel/src/{}:{} uses {}, which comes after it in the reading order",
            used.file,
            used.line,
            used.path
        );
    }
}

#[test]
fn a_cycle_is_found_through_re_exports_and_not_through_comments_strings_or_tests() {
    let folder = testing::Folder::new();
    folder.write("one/src/lib.rs", "mod a; mod b; mod c; pub use b::Two; #[cfg(test)] mod tests;");
    folder.write("one/src/a.rs", "use crate::Two;\npub struct One(Two);\n");
    folder
        .write("one/src/b.rs", "// crate::a::One\npub struct Two;\nfn f() { let _ = super::a::One(Two); }\n");
    folder.write("one/src/c.rs", "use super::a::One; #[cfg(test)] use super::b::Two;");
    folder.write("one/src/tests.rs", "use super::c;");
    let graphs = Modules::read(&folder.path, "one").graphs();
    let graph = &graphs["one/src"];
    assert_eq!(
        told("one/src", graph, &shortest_cycle(graph).unwrap()),
        "one/src: a.rs -> b.rs -> a.rs\n    crates/one/src/a.rs:1 uses crate::Two\n    crates/one/src/b.rs:3 uses super::a::One"
    );
    assert_eq!(graph.len(), 3, "{graph:?}");
    folder.write("one/src/b.rs", "pub struct Two; /* crate::a::One */ const TEXT: &str = \"crate::a::One\";");
    let graphs = Modules::read(&folder.path, "one").graphs();
    assert_eq!(shortest_cycle(&graphs["one/src"]), None);
}
