//! `conformance/run.sh` against the real server, with programs in place of node and npm.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::Ran;

/// The folder `conformance` of this repository, copied, so that what a run leaves stands beside the copy.
struct Suites {
    folder: tempfile::TempDir,
}

impl Suites {
    fn new() -> Suites {
        let suites = Suites { folder: tempfile::tempdir().unwrap() };
        let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let copied =
            Command::new("cp").arg("-r").arg(conformance).arg(suites.folder.path()).status().unwrap();
        assert!(copied.success());
        std::fs::create_dir(suites.folder.path().join("bin")).unwrap();
        suites.program("npm", "exit 0");
        // The report of the programs here is its own summary.
        suites.program("node", r#"if [ "$1" = --version ]; then echo v99.0.0; else cat "$3"; fi"#);
        suites
    }

    fn program(&self, name: &str, script: &str) {
        let file = self.folder.path().join("bin").join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn run(&self, suite: &str) -> Ran {
        let path = std::env::var("PATH").unwrap();
        Command::new(self.folder.path().join("conformance/run.sh"))
            .arg(suite)
            .env("ADJ", env!("CARGO_BIN_EXE_adj"))
            .env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()))
            .output()
            .unwrap()
            .into()
    }
}

#[test]
fn a_suite_that_does_not_start_fails_even_if_an_earlier_run_passed() {
    let suites = Suites::new();
    suites.program(
        "npx",
        r#"for word; do case $word in --outputFile.json=*) echo "7 of 7 tests" >"${word#*=}" ;; esac; done"#,
    );
    let passed = suites.run("streams");
    assert!(passed.stdout.ends_with("streams: passed: 7 of 7 tests\n"), "{passed:?}");
    assert_eq!(passed.code, 0);

    suites.program("npx", "echo 'a module is missing' >&2; exit 1");
    let failed = suites.run("streams");
    assert!(failed.stdout.ends_with("streams: FAILED: it did not come to its end\n"), "{failed:?}");
    assert_eq!(failed.code, 1);
}
