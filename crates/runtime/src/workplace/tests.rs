//! Which tests a repository has, told from what it holds.
//!
//! Nothing is run here, and nothing found is said as such: a repository without tests is never one whose tests passed.

use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// What is read of one file; a manifest that is larger says nothing to us.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Entries of one directory that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Every way to test that the repository has, in the order of [`find`]; the first is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub all: Vec<Tests>,
}

/// One way to run the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tests {
    /// For the shell, in the root of the tree.
    pub command: String,
    /// The file that told us, for a person to judge.
    pub by: &'static str,
    /// Where its packages are kept between builds, which a sandbox may want to allow.
    pub caches: &'static [&'static str],
}

impl Found {
    /// The one that is used.
    pub fn first(&self) -> Option<&Tests> {
        self.all.first()
    }

    /// The command that is used.
    pub fn command(&self) -> Option<&str> {
        self.first().map(|tests| tests.command.as_str())
    }

    /// The package caches of the one that is used.
    pub fn caches(&self) -> Vec<&'static str> {
        self.first().map_or(Vec::new(), |tests| tests.caches.to_vec())
    }
}

/// Looks through this tree, in this order: Cargo, npm, pnpm, yarn or bun, Deno, pytest, Go, make, just, Gradle, Maven, Mix,
/// RSpec or Rake, PHPUnit, .NET, Swift, Zig. The language's own way comes before a Makefile, whose `test` often does less.
pub fn find(root: &Path) -> Found {
    let tree = Tree { root };
    Found { all: FINDERS.iter().filter_map(|finder| finder(&tree)).collect() }
}

const FINDERS: &[fn(&Tree) -> Option<Tests>] =
    &[cargo, javascript, deno, python, go, make, just, gradle, maven, mix, ruby, php, dotnet, swift, zig];

/// A tree that may be an agent's: only plain files are read, and only so much of them.
struct Tree<'a> {
    root: &'a Path,
}

impl Tree<'_> {
    fn has(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok_and(|it| it.is_file())
    }

    fn read(&self, name: &str) -> Option<String> {
        if !self.has(name) {
            return None;
        }
        let file = std::fs::File::open(self.root.join(name)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Whether a plain file in this directory has such a name.
    fn any(&self, directory: &str, named: impl Fn(&str) -> bool) -> bool {
        let Ok(entries) = std::fs::read_dir(self.root.join(directory)) else { return false };
        entries.take(ENTRIES_MAX).filter_map(Result::ok).any(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_file())
                && entry.file_name().to_str().is_some_and(&named)
        })
    }

    fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }
}

fn tests(command: &str, by: &'static str, caches: &'static [&'static str]) -> Option<Tests> {
    Some(Tests { command: command.to_owned(), by, caches })
}

fn cargo(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["Cargo.toml"])?;
    tests("cargo test", by, &["~/.cargo/registry", "~/.cargo/git"])
}

fn javascript(tree: &Tree) -> Option<Tests> {
    let package: Value = serde_json::from_str(&tree.read("package.json")?).ok()?;
    let script = package["scripts"]["test"].as_str()?.trim();
    // What `npm init` writes where there are no tests.
    if script.is_empty() || script.contains("no test specified") {
        return None;
    }
    let named = package["packageManager"].as_str().and_then(|named| named.split('@').next()).unwrap_or("");
    let by_lock = tree.first(&["pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"]);
    match (named, by_lock) {
        ("pnpm", _) | ("", Some("pnpm-lock.yaml")) => {
            tests("pnpm test", "package.json", &["~/.local/share/pnpm", "~/.cache/pnpm"])
        }
        ("yarn", _) | ("", Some("yarn.lock")) => {
            tests("yarn test", "package.json", &["~/.cache/yarn", "~/.yarn"])
        }
        // `bun test` would be bun's own runner and not the script.
        ("bun", _) | ("", Some(_)) => tests("bun run test", "package.json", &["~/.bun/install/cache"]),
        _ => tests("npm test", "package.json", &["~/.npm"]),
    }
}

fn deno(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["deno.json", "deno.jsonc"])?;
    let tasks = tree.read(by).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let command = match tasks.is_some_and(|file| !file["tasks"]["test"].is_null()) {
        true => "deno task test",
        false => "deno test",
    };
    tests(command, by, &["~/.cache/deno"])
}

fn python(tree: &Tree) -> Option<Tests> {
    let says =
        |name: &'static str, words: &str| tree.read(name).filter(|text| text.contains(words)).map(|_| name);
    let is_test =
        |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    let by = tree
        .first(&["pytest.ini", ".pytest.ini", "conftest.py"])
        .or_else(|| says("pyproject.toml", "[tool.pytest"))
        .or_else(|| says("setup.cfg", "[tool:pytest]"))
        .or_else(|| says("tox.ini", "[pytest]"))
        .or_else(|| tree.any("tests", is_test).then_some("tests"))
        .or_else(|| tree.any("test", is_test).then_some("test"))
        .or_else(|| tree.any("", is_test).then_some("test files"))?;
    match tree.first(&["uv.lock", "poetry.lock", "pdm.lock"]) {
        Some("uv.lock") => tests("uv run pytest", by, &["~/.cache/uv"]),
        Some("poetry.lock") => tests("poetry run pytest", by, &["~/.cache/pypoetry"]),
        Some(_) => tests("pdm run pytest", by, &["~/.cache/pdm"]),
        None => tests("python3 -m pytest", by, &[]),
    }
}

fn go(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["go.work", "go.mod"])?;
    tests("go test ./...", by, &["~/go/pkg/mod", "~/.cache/go-build"])
}

fn make(tree: &Tree) -> Option<Tests> {
    // In the order in which make itself looks.
    let by = tree.first(&["GNUmakefile", "makefile", "Makefile"])?;
    let text = tree.read(by)?;
    let is_target = |line: &str| match line.split_once(':') {
        // `test := x` and `test ::= x` are variables, and `.PHONY: test` is no target.
        Some((targets, rest)) => {
            !rest.starts_with('=')
                && !rest.starts_with(":=")
                && !line.starts_with(['\t', ' ', '#', '.'])
                && targets.split_whitespace().any(|target| target == "test")
        }
        None => false,
    };
    text.lines().any(is_target).then(|| tests("make test", by, &[])).flatten()
}

fn just(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["justfile", "Justfile", ".justfile"])?;
    let is_recipe = |line: &str| {
        let name = line.split_once(':').map_or("", |(name, _)| name.trim_start_matches('@'));
        !line.starts_with([' ', '\t', '#']) && name.split_whitespace().next() == Some("test")
    };
    tree.read(by)?.lines().any(is_recipe).then(|| tests("just test", by, &[])).flatten()
}

fn gradle(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])?;
    let command = if tree.has("gradlew") { "./gradlew test" } else { "gradle test" };
    tests(command, by, &["~/.gradle"])
}

fn maven(tree: &Tree) -> Option<Tests> {
    let by = tree.first(&["pom.xml"])?;
    let command = if tree.has("mvnw") { "./mvnw -B test" } else { "mvn -B test" };
    tests(command, by, &["~/.m2"])
}

fn mix(tree: &Tree) -> Option<Tests> {
    tests("mix test", tree.first(&["mix.exs"])?, &["~/.hex", "~/.mix"])
}

fn ruby(tree: &Tree) -> Option<Tests> {
    if tree.has(".rspec") || tree.any("spec", |name| name.ends_with("_spec.rb")) {
        return tests(if tree.has("Gemfile") { "bundle exec rspec" } else { "rspec" }, "spec", &[]);
    }
    let has_tests = tree.any("test", |name| name.ends_with("_test.rb") || name.starts_with("test_"));
    let by = tree.first(&["Rakefile"]).filter(|_| has_tests)?;
    tests(if tree.has("Gemfile") { "bundle exec rake test" } else { "rake test" }, by, &[])
}

fn php(tree: &Tree) -> Option<Tests> {
    tests("vendor/bin/phpunit", tree.first(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"])?, &[])
}

fn dotnet(tree: &Tree) -> Option<Tests> {
    let is_project =
        |name: &str| [".sln", ".slnx", ".csproj", ".fsproj"].iter().any(|end| name.ends_with(end));
    tree.any("", is_project).then(|| tests("dotnet test", "a .NET project file", &["~/.nuget"])).flatten()
}

fn swift(tree: &Tree) -> Option<Tests> {
    tests("swift test", tree.first(&["Package.swift"])?, &[])
}

fn zig(tree: &Tree) -> Option<Tests> {
    tests("zig build test", tree.first(&["build.zig"])?, &["~/.cache/zig"])
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::testing::Folder;

    fn check(files: &[(&str, &str)], commands: &[&str]) {
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(name, text);
        }
        let found: Vec<_> = find(&folder.path).all.into_iter().map(|tests| tests.command).collect();
        assert_eq!(found, commands, "in {files:?}");
    }

    #[test]
    fn tests_are_found_by_what_the_repository_holds() {
        check(&[("Cargo.toml", "")], &["cargo test"]);
        check(&[("package.json", r#"{"scripts":{"test":"vitest"}}"#)], &["npm test"]);
        check(&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("pnpm-lock.yaml", "")], &["pnpm test"]);
        check(&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("yarn.lock", "")], &["yarn test"]);
        check(&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("bun.lockb", "")], &["bun run test"]);
        check(
            &[("package.json", r#"{"packageManager":"yarn@4.1","scripts":{"test":"x"}}"#), ("bun.lock", "")],
            &["yarn test"],
        );
        check(&[("pytest.ini", "")], &["python3 -m pytest"]);
        check(&[("pyproject.toml", "[tool.pytest.ini_options]"), ("uv.lock", "")], &["uv run pytest"]);
        check(&[("tests/test_a.py", "")], &["python3 -m pytest"]);
        check(&[("go.mod", "")], &["go test ./..."]);
        check(&[("Makefile", ".PHONY: test\ncheck test: build\n\tx\n")], &["make test"]);
        check(&[("justfile", "test filter='':\n  x\n")], &["just test"]);
        check(&[("build.gradle.kts", ""), ("gradlew", "")], &["./gradlew test"]);
        check(&[("pom.xml", "")], &["mvn -B test"]);
        check(&[("mix.exs", "")], &["mix test"]);
        check(&[("spec/a_spec.rb", ""), ("Gemfile", "")], &["bundle exec rspec"]);
        check(&[("phpunit.xml.dist", "")], &["vendor/bin/phpunit"]);
        check(&[("a.sln", "")], &["dotnet test"]);
        check(&[("deno.json", r#"{"tasks":{"test":"x"}}"#)], &["deno task test"]);
    }

    #[test]
    fn a_language_comes_before_the_makefile_and_all_are_told() {
        check(&[("Makefile", "test:\n"), ("Cargo.toml", "")], &["cargo test", "make test"]);
    }

    #[test]
    fn what_only_looks_like_tests_is_not_found() {
        check(&[], &[]);
        check(
            &[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)],
            &[],
        );
        check(&[("package.json", r#"{"scripts":{}}"#)], &[]);
        check(&[("package.json", "not json")], &[]);
        check(&[("Makefile", "test := 1\n.PHONY: test\nbuild: test\n\ttest: x\n")], &[]);
        check(&[("pyproject.toml", "[project]")], &[]);
    }

    #[test]
    fn a_manifest_that_is_a_link_is_not_read() {
        let folder = Folder::new();
        std::os::unix::fs::symlink("/etc/hostname", folder.path.join("Cargo.toml")).unwrap();
        assert_eq!(find(&folder.path), Found::default());
    }
}
