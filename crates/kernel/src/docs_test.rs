//! The page of rules and invariants, `docs/rules.md`, written from what runs. The test compares them;
//! `ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel docs` writes the page.
#![expect(clippy::disallowed_methods, reason = "the test writes a page; the kernel writes nothing")]

use crate::Rule;
use crate::diff::diff;
use crate::invariants::Invariant;
use machines::Wire;
use std::fmt::Write;

#[test]
fn docs_are_what_the_rules_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    let page = page();
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/rules.md is not what the rules say; ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel docs writes it:\n{}",
        diff(&there, &page)
    );
}

fn page() -> String {
    let mut text = String::from(
        "<!-- Written from `crates/kernel/src/rules.rs` and `invariants.rs`. To change it, change them and run\n     \
         `ADJ_WRITE_DOCS=1 cargo test -p adjutant-kernel docs`. -->\n# Rules and invariants\n\n\
         Each of the [five machines](machines/README.md) knows only itself. These rules are where one moves another: a\n\
         command, or what came of an effect, is decided by them in one commit, through all the machines that it moves.\n\
         A rule says what it does in every state that it can meet, so what the world reports is never refused.\n\n",
    );
    let _ = writeln!(text, "## The {} rules\n\n| rule | when | then |\n| --- | --- | --- |", Rule::ALL.len());
    for rule in Rule::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", rule.name(), cell(rule.when()), cell(rule.then()));
    }
    let _ = writeln!(
        text,
        "\n## The {} invariants\n\nThey hold after every commit, whatever happened. The simulator checks all of them \
         after each.\n\n| invariant | what holds |\n| --- | --- |",
        Invariant::ALL.len()
    );
    for invariant in Invariant::ALL {
        let _ = writeln!(text, "| `{invariant:?}` | {} |", cell(invariant.name()));
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
