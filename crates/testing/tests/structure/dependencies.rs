//! Licences and sources of all that we depend on, by the list in `deny.toml`.
//!
//! `cargo deny` checks the same and advisories besides. It takes minutes to build, and its advisories need a network, so `make lint`
//! runs it only if it is installed. This test needs cargo alone, and so the rule holds in every run of the tests.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_dependency_has_an_allowed_licence_and_comes_from_crates_io() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let allowed = listed(&deny, "allow");
    assert!(allowed.contains(&"MIT"), "deny.toml lists the licences: {allowed:?}");
    for rule in ["unknown-registry = \"deny\"", "unknown-git = \"deny\"", "wildcards = \"deny\""] {
        assert!(deny.contains(rule), "deny.toml says {rule}, and this test does as it says");
    }
    let packages = metadata()["packages"].as_array().unwrap().clone();
    assert!(packages.len() > 100, "{} packages", packages.len());
    let faults: Vec<String> = packages.iter().flat_map(|package| faults(package, &allowed)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn faults(package: &Value, allowed: &[&str]) -> Vec<String> {
    let name = format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
    let mut faults = Vec::new();
    let licence = package["license"].as_str().unwrap_or_default();
    if !is_allowed(licence, allowed) {
        faults.push(format!("{name}: deny.toml does not allow its licence `{licence}`"));
    }
    match package["source"].as_str() {
        Some(CRATES_IO) => {}
        Some(source) => faults.push(format!("{name} comes from {source}")),
        // One of ours: it names a version of all that it does not name by path.
        None => {
            let dependencies = package["dependencies"].as_array().unwrap();
            let any = dependencies.iter().filter(|it| it["req"] == "*" && it["path"].is_null());
            faults.extend(any.map(|it| format!("{name} takes any version of {}", it["name"])));
        }
    }
    faults
}

/// What can be built on this machine: the packages of others need not be there.
fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--all-features", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn root() -> PathBuf {
    crate::crates_folder().join("..")
}

/// The texts of a list in a file of TOML.
fn listed<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let (_, rest) = text.split_once(&format!("\n{key} = [")).unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be met by these licences alone. A licence with an exception is another licence.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed) == Some(true) && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut is = all(rest, allowed)?;
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        is |= all(rest, allowed)?;
    }
    Some(is)
}

fn all(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut is = one(rest, allowed)?;
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        is &= one(rest, allowed)?;
    }
    Some(is)
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let is = any(rest, allowed)?;
            let [")", after @ ..] = *rest else { return None };
            *rest = after;
            Some(is)
        }
        [_, "WITH", _, after @ ..] => {
            *rest = after;
            Some(false)
        }
        [name, after @ ..] if !matches!(*name, "OR" | "AND" | ")") => {
            *rest = after;
            Some(allowed.contains(&name.trim_end_matches('+')))
        }
        _ => None,
    }
}

#[test]
fn an_expression_is_allowed_only_if_the_list_can_meet_it() {
    let allowed = ["MIT", "Apache-2.0", "MPL-2.0"];
    for expression in
        ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (MIT AND Apache-2.0)", "MPL-2.0+", "Apache-2.0 WITH x OR MIT"]
    {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH x",
        "MIT OR",
        "(MIT",
        "MIT MIT",
    ] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}
