//! What is in a git directory or is a token comes into no log, whoever named it and whichever process writes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::owner::{Owner, token};
use super::project::Repository;
use std::os::unix::fs::symlink;

/// An agent can land any link; whoever then names it is a person who trusts the repository.
#[test]
fn a_link_into_a_git_directory_is_read_by_nobody() {
    let here = Repository::new();
    drop(Owner::start(&here));
    let own = token(&here);
    let docs = here.0.join("docs");
    std::fs::create_dir_all(docs.join("plain/objects")).unwrap();
    std::fs::create_dir_all(docs.join("plain/refs")).unwrap();
    std::fs::create_dir_all(here.0.join("vendor/.git")).unwrap();
    std::fs::write(docs.join("plain/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(docs.join("plain/config"), "password\n").unwrap();
    std::fs::write(here.0.join("vendor/.git/config"), "password\n").unwrap();
    std::fs::write(here.0.join("vendor/notes.md"), "# Notes\n\nWords.\n").unwrap();
    for (name, target) in [
        ("token.md", "../.git/adjutant/token"),
        ("config.md", "../.git/config"),
        ("nested.md", "../vendor/.git/config"),
        ("bare.md", "plain/config"),
    ] {
        symlink(target, docs.join(name)).unwrap();
        let path = format!("docs/{name}");
        here.fails(&["spec", "submit", &path, "--yes"], 2, "leads into a git directory");
    }
    here.fails(&["spec", "submit", ".git/config", "--yes"], 2, "leads into a git directory");
    // A link inside the repository is one like others.
    symlink("../vendor/notes.md", docs.join("notes.md")).unwrap();
    let read = here.adj(&["spec", "submit", "docs/notes.md", "--yes"]);
    assert!(!read.stderr.contains("git directory"), "{}", read.stderr);

    // Tickets, prompts and the settings themselves.
    std::fs::write(here.state("secret.md"), format!("---\nid: s-1\nstatus: open\n---\n# {own}\n")).unwrap();
    symlink(".git/adjutant", here.0.join(".tickets")).unwrap();
    assert!(!here.ok(&["task", "ls", "--all"]).contains(&own));
    let found = here.adj(&["doctor"]).stdout;
    assert!(found.contains("leads into a git directory"), "{found}");
    std::fs::remove_file(here.0.join(".tickets")).unwrap();
    symlink("../.git/adjutant/token", docs.join("prompt.md")).unwrap();
    std::fs::write(here.0.join("adjutant.toml"), "[prompts]\nstep = \"docs/prompt.md\"\n").unwrap();
    let found = here.adj(&["doctor"]).stdout;
    assert!(found.contains("leads into a git directory") && !found.contains(&own), "{found}");
    std::fs::remove_file(here.0.join("adjutant.toml")).unwrap();
    symlink(".git/adjutant/token", here.0.join("adjutant.toml")).unwrap();
    let checked = here.adj(&["config", "check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(
        checked.code != 0 && said.contains("leads into a git directory") && !said.contains(&own),
        "{said}"
    );
}

/// The same with a server and without: whoever writes the log hides them.
#[test]
fn a_token_comes_into_no_log_whichever_process_writes_it() {
    let here = Repository::new();
    let owner = Owner::start_with(&here, &["--mint", "coder:intern:c-1.1"]);
    let (own, agents) = (token(&here), owner.token.clone().unwrap());
    here.ok(&["task", "add", "x", "--id", "c-1", "--body", &format!("served {own}")]);
    drop(owner);
    here.ok(&["task", "comment", "c-1", &format!("mine {own}, and {agents}.")]);
    here.ok(&["task", "add", &format!("title {own}"), "--id", "c-2"]);
    here.fails(&["task", "add", "y", "--id", &own], 3, "this holds a token of the project");
    here.ok(&["task", "add", "z", "--id", &"a".repeat(64)]);
    let exported = here.ok(&["export", "-"]);
    assert!(!exported.contains(&own) && !exported.contains(&agents), "{exported}");
    assert!(exported.matches("[ADJ_TOKEN hidden]").count() >= 4, "{exported}");
    assert_eq!(here.adj(&["verify"]).code, 0);
}
