use super::{adj, command, snapshot};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Stdio;

/// Every command and every family of them, so that none is added without being read.
#[test]
fn help_is_as_people_read_it() {
    let commands = adj("internal commands").stdout;
    let mut lines = BTreeSet::from([""]);
    for command in commands.lines() {
        lines.insert(command);
        lines.extend(command.match_indices(' ').map(|(end, _)| &command[..end]));
    }
    for line in lines {
        let ran = adj(&format!("{line} --help"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line}");
        let name: String =
            line.split(' ').filter(|word| !word.is_empty()).map(|word| format!("-{word}")).collect();
        snapshot(&format!("help{name}.txt"), &ran.stdout);
    }
}

#[test]
fn a_wrong_command_line_ends_with_2_and_says_what_was_wrong() {
    for (line, name) in [
        ("", "usage-nothing.txt"),
        ("machin", "usage-unknown-command.txt"),
        ("machine show", "usage-missing-name.txt"),
        ("machine show run --format svg", "usage-unknown-format.txt"),
        ("machine ls --jsn", "usage-unknown-option.txt"),
        ("completions tcsh", "usage-unknown-shell.txt"),
    ] {
        let ran = adj(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{line}");
        snapshot(name, &ran.stderr);
    }
}

#[test]
fn a_wrong_command_line_is_one_document_where_json_was_asked_for() {
    let ran = adj("machine show --json");
    let problem: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str(), &problem["status"]), (2, "", &json!(400)));
    assert_eq!(problem["type"], "urn:adjutant:problem:usage");
    assert_eq!(problem["detail"], "the following required arguments were not provided: <NAME>");
    let problem: Value = serde_json::from_str(&adj("machin --json").stdout).unwrap();
    assert_eq!(problem["hint"], "did you mean `adj machine`?");
}

/// Words of other tools lead to what does the same here; what only looks alike is not offered instead.
#[test]
fn a_word_that_other_tools_have_leads_to_the_command_that_does_it_here() {
    for (word, command) in
        [("d", "adj run"), ("dashboard", "adj run"), ("status", "adj ps"), ("room", "adj channel")]
    {
        let ran = adj(word);
        assert_eq!(ran.code, 2, "{word}");
        assert!(
            ran.stderr.contains(&format!("\nhint: did you mean `{command}`?\n")),
            "{word}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("doctor"), "{word}: {}", ran.stderr);
    }
}

/// Groups, each with its commands, in lines that a terminal of 80 columns does not break.
#[test]
fn the_list_of_commands_is_in_groups_and_fits_80_columns() {
    let help = adj("--help").stdout;
    let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let groups = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).count();
    assert!(groups > 8, "{help}");
    let commands = adj("internal commands").stdout;
    let first = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    for command in commands.lines().map(first).collect::<BTreeSet<String>>() {
        let listed = help.lines().filter(|line| line.starts_with(&format!("  {command} "))).count();
        assert_eq!(listed, 1, "{command}: {help}");
    }
}

#[test]
fn the_version_is_printed() {
    assert_eq!(adj("--version").stdout, format!("adj {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn each_shell_has_completions_that_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = adj(&format!("completions {shell}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains("machine") && ran.stdout.contains("project"), "{shell}");
        assert!(!ran.stdout.contains("internal"), "{shell}");
    }
}

#[test]
fn adj_and_each_of_its_commands_have_a_manual_page() {
    let page = adj("man").stdout;
    assert!(page.contains(".TH adj 1") && page.contains("Exit codes"), "{page}");
    assert!(adj("man machine step").stdout.contains(".TH adj-machine-step 1"));
    let ran = adj("man machine stp");
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (4, "error: there is no command `machine stp`\nhint: `adj --help` lists the commands\n")
    );
    let folder = std::env::temp_dir().join(format!("adj-man-{}", std::process::id()));
    let written = adj(&format!("man --all {}", folder.display()));
    let pages = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(
        (written.code, written.stdout),
        (0, format!("{pages} pages written to {}\n", folder.display()))
    );
    // Every page that the first one refers to is there.
    let first = std::fs::read_to_string(folder.join("adj.1")).expect("the first page");
    let named = |line: &str| Some(line.trim().strip_suffix("(1)")?.replace("\\-", "-"));
    let named: Vec<String> = first.lines().filter_map(named).collect();
    assert!(named.len() > 50, "{named:?}");
    for page in named {
        assert!(folder.join(format!("{page}.1")).exists(), "{page}");
    }
    assert!(folder.join("adj-machine-step.1").exists());
    std::fs::remove_dir_all(&folder).expect("a folder of ours");
}

/// `adj … | head -1`: the reader has enough, and that is no error.
#[test]
fn a_reader_who_leaves_is_no_error() {
    let mut child = command("machine step run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{}\n{}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
