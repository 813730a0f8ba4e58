//! Detects the package manager of a `package.json`, and whether it has tests.

use super::Tree;
use serde_json::Value;

const MANIFEST: &str = "package.json";
/// Packages of a workspace that are looked at for a test script.
const PACKAGES_MAX: usize = 1_000;

fn manifest(tree: &Tree, folder: &str) -> Option<Value> {
    let name = if folder.is_empty() { MANIFEST.to_owned() } else { format!("{folder}/{MANIFEST}") };
    serde_json::from_str(&tree.read(&name)?).ok()
}

/// Which program installs the packages: what `packageManager` names, else whose lock file is there, else npm.
fn manager(tree: &Tree) -> Option<&'static str> {
    let package = manifest(tree, "")?;
    let named = package["packageManager"].as_str().unwrap_or_default();
    let (named, version) = named.split_once('@').unwrap_or((named, ""));
    let is_first = version.split('.').next() == Some("1");
    Some(match named {
        "pnpm" => "pnpm",
        "yarn" if is_first => "yarn",
        "yarn" => "berry",
        "bun" => "bun",
        "npm" => "npm",
        _ => match lock(tree) {
            Some("pnpm-lock.yaml") => "pnpm",
            Some("yarn.lock") => match tree.read("yarn.lock")?.contains("\n__metadata:") {
                true => "berry",
                false => "yarn",
            },
            Some("bun.lock" | "bun.lockb") => "bun",
            Some(_) => "npm",
            None if tree.has("pnpm-workspace.yaml") => "pnpm",
            None => "npm",
        },
    })
}

pub fn lock(tree: &Tree) -> Option<&'static str> {
    tree.first(&[
        "pnpm-lock.yaml",
        "yarn.lock",
        "bun.lock",
        "bun.lockb",
        "npm-shrinkwrap.json",
        "package-lock.json",
    ])
}

/// Yarn 4 has to be told that all packages of a workspace are meant; earlier ones do not know the option.
pub fn is_yarn_4(tree: &Tree) -> bool {
    let named = manifest(tree, "").and_then(|package| package["packageManager"].as_str().map(str::to_owned));
    let lock = tree.read("yarn.lock").unwrap_or_default();
    let version = lock.split_once("\n__metadata:").and_then(|(_, rest)| rest.split_once("version:"));
    let version = version.and_then(|(_, rest)| rest.lines().next()?.trim().parse::<u32>().ok());
    named.is_some_and(|named| named.starts_with("yarn@4")) || version.is_some_and(|version| version >= 8)
}

pub fn is_locked(tree: &Tree) -> bool {
    lock(tree).is_some()
}

pub fn managed_by(tree: &Tree, name: &str) -> Option<&'static str> {
    (manager(tree)? == name).then_some(MANIFEST)
}

pub fn tested_by(tree: &Tree, name: &str) -> Option<&'static str> {
    managed_by(tree, name).filter(|_| has_script(tree) || is_tested_workspace(tree))
}

/// Whether the root itself has a test script.
pub fn has_script(tree: &Tree) -> bool {
    manifest(tree, "").is_some_and(|package| tests(&package))
}

fn tests(package: &Value) -> bool {
    let script = package["scripts"]["test"].as_str().unwrap_or_default().trim();
    // What `npm init` writes where there are no tests.
    !script.is_empty() && !script.contains("no test specified")
}

/// Whether a package of the workspace has a test script. Of patterns, `folder` and `folder/*` are read.
fn is_tested_workspace(tree: &Tree) -> bool {
    let mut patterns = Vec::new();
    if let Some(package) = manifest(tree, "") {
        let listed = [&package["workspaces"], &package["workspaces"]["packages"]];
        for entry in listed.into_iter().filter_map(Value::as_array).flatten() {
            patterns.extend(entry.as_str().map(str::to_owned));
        }
    }
    for line in tree.read("pnpm-workspace.yaml").unwrap_or_default().lines() {
        if let Some(entry) = line.trim().strip_prefix("- ") {
            patterns.push(entry.trim().trim_matches(['\'', '"']).to_owned());
        }
    }
    let inside = |pattern: &String| !pattern.split('/').any(|part| part == "..") && !pattern.starts_with('/');
    let folders = patterns.iter().filter(|pattern| inside(pattern)).flat_map(|pattern| {
        match pattern.trim_end_matches("*").strip_suffix('/').filter(|_| pattern.ends_with('*')) {
            Some(folder) => tree.folders(folder).into_iter().map(|name| format!("{folder}/{name}")).collect(),
            None => vec![pattern.clone()],
        }
    });
    folders.take(PACKAGES_MAX).any(|folder| manifest(tree, &folder).is_some_and(|package| tests(&package)))
}

pub fn deno(tree: &Tree) -> Option<&'static str> {
    tree.first(&["deno.json", "deno.jsonc"])
}

pub fn deno_task(tree: &Tree) -> &'static str {
    let file = deno(tree).and_then(|name| tree.read(name));
    let file = file.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    match file.is_some_and(|file| !file["tasks"]["test"].is_null()) {
        true => "task test",
        false => "test",
    }
}
