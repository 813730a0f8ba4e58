//! Settings that vanish, and what the commands say about settings.

use super::background::wait;
use super::{Repository, SETTINGS};

const WORKS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "{task}\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// What is in force, as the rules read it.
fn in_force(repository: &Repository) -> (String, u64, u64) {
    let config = repository.json("config show")["settings"].clone();
    let agent = config["fleet"]["agent"].as_str().unwrap_or_default().to_owned();
    let day = config["budget"]["day"].as_u64().unwrap_or_default();
    (agent, config["fleet"]["max_steps"].as_u64().unwrap_or_default(), day)
}

fn project(name: &str) -> Repository {
    let repository = Repository::empty(name);
    repository.git("init --quiet --initial-branch=main");
    repository.write("scenario.toml", WORKS);
    repository.write("tests.sh", super::TESTS);
    repository.write("base.check", "true\n");
    repository.commit("From before");
    repository.git("branch old");
    let settings = SETTINGS.replace("workers = 2", "workers = 1\nmax_steps = 7");
    repository.write("adjutant.toml", &(settings + "[budget]\nday_usd = 3.0\n"));
    repository.commit("Settings");
    repository
}

#[test]
fn settings_that_vanish_while_the_fleet_runs_hold_on_and_it_is_said() {
    let repository = project("settings-vanish");
    let running = repository.start("run");
    let was = in_force(&repository);
    assert_eq!(was, ("player".to_owned(), 7, 3_000_000));
    repository.git("checkout --quiet old");
    running.wait_for("adjutant.toml is gone: the previous settings stay in force");
    assert_eq!(in_force(&repository), was);
    assert_eq!(repository.events("config_changed"), 1, "the rules heard of no other settings");
    for line in ["ps", "doctor", "board"] {
        let ran = repository.adj(line);
        assert!((ran.stdout + &ran.stderr).contains("the previous settings stay in force"), "adj {line}");
    }
    repository.git("checkout --quiet main");
    running.wait_for("adjutant.toml was read again");
    running.stop();
}

#[test]
fn settings_that_are_gone_at_the_next_start_hold_on_until_they_are_forgotten() {
    let repository = project("settings-gone");
    repository.ok("run --until-idle");
    let was = in_force(&repository);
    std::fs::remove_file(repository.dir().join("adjutant.toml")).expect("it was there");
    let said = repository.ok("run --until-idle");
    assert!(said.contains("adjutant.toml is gone: the previous settings stay in force"), "{said}");
    assert_eq!(in_force(&repository), was);
    repository.ok("config forget");
    assert_eq!(in_force(&repository), ("coder".to_owned(), 20, 0), "the defaults");
    repository.git("checkout --quiet -- adjutant.toml");
    assert_eq!(in_force(&repository), was);
    assert!(repository.refused("config forget").contains("adjutant.toml is there"));
}

#[test]
fn settings_that_init_wrote_hold_on_a_branch_without_them_before_any_fleet_has_run() {
    let repository = project("settings-init");
    std::fs::remove_file(repository.dir().join("adjutant.toml")).expect("it was there");
    repository.ok("init");
    let text = repository.read("adjutant.toml");
    assert!(text.lines().any(|line| line.starts_with("max_turns = 200")), "{text}");
    assert_eq!(repository.json("config show")["settings"]["agents"]["coder"]["max_turns"], 200);
    repository.write("adjutant.toml", &text.replace("\nworkers = 3", "\nworkers = 5"));
    repository.ok("config trust");
    repository.commit("Settings");
    repository.git("checkout --quiet old");
    let shown = repository.ok("config show");
    assert!(shown.contains("\nworkers = 5") && shown.contains("\nmax_turns = 200"), "{shown}");
}

#[test]
fn a_file_of_settings_that_is_not_there_cannot_be_trusted_and_that_is_no_fault_of_ours() {
    let repository = project("settings-absent");
    std::fs::remove_file(repository.dir().join("adjutant.toml")).expect("it was there");
    let super::Ran { code, stderr, .. } = repository.adj("config trust");
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("there is no adjutant.toml") && stderr.contains("adj init"), "{stderr}");
}

#[test]
fn the_settings_are_shown_as_they_are_in_force() {
    let repository = project("settings-shown");
    let shown = repository.ok("config show");
    for line in
        ["day_usd = 3.0", "max_steps = 7", "max_turns = 50", "resume = true", "step_timeout = \"30m\""]
    {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    for line in ["# run_usd is not set: no limit", "# cap_in_progress is not set: no limit"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    // What it shows is a settings file that says the same.
    repository.write("adjutant.toml", &shown);
    assert_eq!(repository.ok("config check"), "adjutant.toml is valid\n");
    assert_eq!(repository.ok("config show"), shown);
}

#[test]
fn each_problem_of_the_settings_is_told_in_a_line_of_its_own() {
    let repository = project("settings-wrong");
    let text = repository.read("adjutant.toml").replace("workers = 1", "wrokers = 1\nreview = \"nobody\"");
    repository.write("adjutant.toml", &text.replacen("review = \"auto\"\n", "", 1));
    let ran = repository.adj("run");
    assert_eq!(ran.code, 2);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines[0], "error: adjutant.toml is not valid: 2 problems");
    assert!(lines[1].starts_with("  adjutant.toml:4:") && lines[1].contains("wrokers"), "{}", ran.stderr);
    assert!(
        lines[2].starts_with("  adjutant.toml:5:") && lines[2].contains("fleet.review"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("\\n"), "{}", ran.stderr);
    assert!(repository.adj("config check").stderr.contains("2 problems found"));
}

/// An editor that takes the file away before it writes it anew.
#[test]
fn settings_that_are_written_anew_are_taken_up() {
    let repository = project("settings-anew");
    let running = repository.start("run");
    let text = repository.read("adjutant.toml");
    std::fs::remove_file(repository.dir().join("adjutant.toml")).expect("it was there");
    running.wait_for("adjutant.toml is gone");
    repository.write("adjutant.toml", &text.replace("workers = 1", "workers = 2"));
    wait("two workers", || (repository.json("ps").as_array()?.len() == 2).then_some(()));
    running.stop();
}
