//! What people read to understand a fleet: logs, history, `ps`, `why`.

use super::Repository;
use super::background::wait;
use super::policies::{DONE, WRITE, scenario};
use serde_json::Value;

/// A time of day at the beginning of each first line of an entry.
fn has_time(line: &str) -> bool {
    line.len() > 8
        && line[..8].chars().enumerate().all(|(at, letter)| match at {
            2 | 5 => letter == ':',
            _ => letter.is_ascii_digit(),
        })
}

#[test]
fn logs_are_shown_by_task_and_by_worker_also_of_a_removed_one_and_every_entry_has_its_time() {
    let text = scenario(&[&format!("{{ say = \"I begin with {{task}}.\" }}, {WRITE}, {DONE}")]);
    let repository = Repository::new("logs-task", &text, &["t-1", "t-2"]);
    repository.set(&[("workers = 2", "workers = 1")]);
    repository.ok("run --until-idle");
    let of_task = repository.ok("logs t-1");
    assert!(of_task.contains("step     t-1 init, worker A"), "{of_task}");
    assert!(of_task.contains("I begin with t-1.") && !of_task.contains("t-2"), "{of_task}");
    assert!(of_task.lines().all(|line| has_time(line) || line.starts_with("     ")), "{of_task}");
    let of_worker = repository.ok("logs A");
    assert!(
        of_worker.contains("I begin with t-1.") && of_worker.contains("I begin with t-2."),
        "{of_worker}"
    );
    assert!(repository.ok("peek t-2 -n 5").contains("ended with exit code 0"));
    repository.ok("clean --yes");
    assert!(!repository.ok("ps").contains("idle"));
    assert_eq!(repository.ok("logs A"), of_worker, "what a removed worker did can be read");
    assert_eq!(repository.adj("logs Z").code, 4);
}

/// `--raw` is what the program printed, and nothing else.
#[test]
fn raw_logs_are_the_lines_of_the_program() {
    let text = scenario(&[&format!("{{ say = \"Hello.\" }}, {WRITE}, {DONE}")]);
    let repository = Repository::new("logs-raw", &text, &["t-1"]);
    repository.ok("run --until-idle");
    let raw = repository.ok("logs t-1 --raw");
    let lines: Vec<Value> = raw
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    assert!(lines.iter().all(Value::is_object), "{raw}");
    let printed = printed(&repository);
    assert_eq!(raw, printed, "byte for byte what was printed");
}

/// What the one step of an agent printed, by the file that its keeper wrote.
fn printed(repository: &Repository) -> String {
    let steps = repository.state("steps");
    let folders = std::fs::read_dir(steps).expect("there are steps").flatten();
    let step = folders.map(|entry| entry.path()).find(|path| path.join("step.json").is_file());
    std::fs::read_to_string(step.expect("a step").join("out")).expect("what it printed")
}

#[test]
fn history_tells_the_story_and_who_did_it() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("history", &text, &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    assert_eq!(repository.adj("run --until-idle").code, 1);
    repository.ok("review t-1 --approve --note fine");
    repository.ok("run --until-idle");
    let story = repository.ok("history t-1");
    for told in ["A takes t-1: Do t-1", "t-1 was approved by human:tester: fine", "t-1 landed on main"] {
        assert!(story.contains(told), "{told}:\n{story}");
    }
    assert!(story.lines().next().is_some_and(|head| head.starts_with("TIME (")), "{story}");
    assert!(!story.contains("running"), "no machines: {story}");
    let by_person = story.lines().find(|line| line.contains("was approved")).expect("it was");
    assert!(by_person.contains("human:tester"), "{by_person}");

    let rows = repository.json("history t-1");
    let rows = rows.as_array().expect("a list");
    for row in rows {
        assert_eq!(row["agentId"], "player", "{row}");
        assert!(row["actor"].is_string() && row["event"] == "state_transition", "{row}");
        let time = row["timestamp"].as_str().expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    }
    let ids: Vec<_> =
        rows.iter().map(|row| (&row["machine"], row["id"].as_str().unwrap_or_default())).collect();
    assert!(ids.iter().all(|(machine, id)| match machine.as_str() {
        Some("task") => *id == "t-1",
        _ => *id == "t-1.1",
    }));
    // What the fleet does for an agent says so, and nothing is done by nobody.
    let moved = |to: &str, rows: &[serde_json::Value]| {
        let row = rows.iter().find(|row| row["machine"] == "task" && row["to"] == to);
        row.expect("it was moved there")["actor"].clone()
    };
    assert_eq!(moved("IN_PROGRESS", rows), "system for player");
    assert_eq!(moved("REVIEW", rows), "system for player");
    let all = repository.json("history --all");
    let all = all.as_array().expect("a list");
    let to_review = all.iter().find(|row| row["kind"] == "task_moved" && row["data"]["to"] == "REVIEW");
    assert_eq!(to_review.expect("it was moved there")["actor"], "system for player");
    let taken = story.lines().find(|line| line.contains("A takes t-1")).expect("it was taken");
    assert!(taken.contains("fleet") || taken.contains("player"), "{taken}");
    let machines = repository.ok("history t-1 --machines");
    assert!(machines.contains("IN_PROGRESS") && machines.contains("ACTOR"), "{machines}");
    assert!(repository.ok("history --all").contains("task_added"));
}

/// A failing program: each thing is said once, the cause where people ask for it, and that nothing is done meanwhile.
#[test]
fn a_failed_step_is_told_once_and_why_names_its_cause_while_it_is_waited_for() {
    let repository = Repository::new("failed-once", "", &["t-1"]);
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"command\""),
        ("[\"scenario.toml\"]", "[\"sh\", \"-c\", \"echo boom >&2; exit 3\"]"),
    ]);
    let fleet = repository.start("run");
    fleet.wait_for("step on t-1 failed");
    let lines = fleet.lines();
    let first: Vec<&str> = lines.lines().filter(|line| line.contains("boom")).take(2).collect();
    assert!(first.len() == 1 || !first[1].contains("failed"), "{lines}");
    let why = repository.ok("why t-1");
    assert!(why.contains("back-off: `sh` ended with exit code 3: boom; the next try is due"), "{why}");
    let ps = repository.ok("ps");
    assert!(ps.contains("waiting") && !ps.contains("working"), "{ps}");
    fleet.stop();
}

/// A question is answered, not reviewed; a program that is not there is named once.
#[test]
fn why_says_a_missing_program_once_and_a_review_of_a_question_names_what_answers_it() {
    let text = scenario(&[&format!("{WRITE}, {DONE}"), DONE]);
    let repository = Repository::new("said-once", &text, &["t-1"]);
    repository.set(&[("sh tests.sh", "no-such-tool"), ("[test]", "[test]\ncheck_main = false")]);
    assert_eq!(repository.adj("run --until-idle").code, 1);
    let why = repository.ok("why t-1");
    assert_eq!(why.matches("no-such-tool").count(), 2, "the command, and what the shell says of it: {why}");
    // No room is left for another step.
    repository.set(&[("[test]", "[budget]\ntask_usd = 0.1\n[test]")]);
    repository.ok("retry t-1");
    assert_eq!(repository.adj("run --until-idle").code, 1);
    assert_eq!(repository.task("t-1")["status"], "NEEDS_APPROVAL");
    let refused = repository.refused("review t-1 --changes more");
    assert!(refused.contains("waits for an answer") && refused.contains("adj approve"), "{refused}");
    assert!(!refused.contains("--decision"), "there is no such option: {refused}");
}

#[test]
fn the_board_lists_tasks_in_the_order_in_which_they_are_taken() {
    let repository = Repository::new("board-order", "", &[]);
    for line in [
        "Late --id c-1 --priority 3",
        "Waits --id c-2 --priority 0 --depends-on c-1",
        "First --id c-3 --priority 1",
    ] {
        repository.ok(&format!("task add {line}"));
    }
    let board = repository.ok("board");
    let ids: Vec<&str> = board.lines().filter_map(|line| line.trim().split(' ').next()).skip(1).collect();
    assert_eq!(ids, ["c-3", "c-1", "c-2"], "{board}");
}

#[test]
fn ps_and_why_say_what_a_worker_waits_for() {
    let text =
        scenario(&[&format!("{{ ask = \"Bash\", argument = \"git push origin main\" }}, {WRITE}, {DONE}")]);
    let repository = Repository::new("waits", &text, &["t-1"]);
    let fleet = repository.start("run");
    let id = wait("a question", || {
        let open = repository.json("approvals");
        open[0]["id"].as_str().map(str::to_owned)
    });
    let ps = repository.ok("ps");
    assert!(ps.contains(&format!("waits for you: adj approve {id}")), "{ps}");
    assert!(ps.contains("Do t-1"), "{ps}");
    let worker = &repository.json("ps")[0];
    assert_eq!(
        (worker["activity"]["state"].as_str(), worker["status"].as_str()),
        (Some("person"), Some("working"))
    );
    let why = repository.ok("why A");
    assert!(
        why.contains(&format!("✗ question: `{id}`")) && why.contains(&format!("adj approve {id}")),
        "{why}"
    );
    assert!(!why.contains("runState") && !why.contains('✓'), "only what fails, in plain words: {why}");
    assert!(repository.ok("why A -v").contains("✓ fleet: the fleet is at work"));
    let all = repository.ok("why");
    assert!(all.starts_with("fleet  running\n") && all.contains(&format!("`{id}`")), "{all}");
    assert!(all.lines().count() < 24, "{all}");
    repository.ok(&format!("approve {id}"));
    wait("it lands", || (repository.task("t-1")["status"] == "DONE").then_some(()));
    fleet.stop();
    let stopped = repository.ok("why");
    assert!(stopped.contains("✗ fleet: ") && stopped.contains("adj run"), "{stopped}");
}

#[test]
fn an_export_says_what_is_wrong_with_its_place() {
    let repository = Repository::new("export-place", "", &[]);
    repository.ok("task add x");
    let nowhere = repository.adj("export /nonexistent/x");
    assert!(
        nowhere.code == 4 && nowhere.stderr.contains("there is no folder `/nonexistent`"),
        "{}",
        nowhere.stderr
    );
    let folder = repository.adj("export .");
    assert!(folder.code == 2 && folder.stderr.contains("`.` is a folder"), "{}", folder.stderr);
}

#[test]
fn the_board_leaves_out_what_is_empty() {
    let repository = Repository::new("board-empty", "", &[]);
    repository.ok("task add x");
    assert_eq!(repository.ok("board"), "INBOX (1)\n  t-1  x\n");
}

/// On a terminal a diff goes through the pager that git would use, and elsewhere it does not.
#[test]
fn a_diff_is_paged_on_a_terminal_and_nowhere_else() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("reading-pager", &text, &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    assert_eq!(repository.adj("run --until-idle").code, 1);
    let plain = repository.ok("diff t-1");
    assert!(plain.contains("+++ b/t-1.txt") && !plain.contains("paged:"), "{plain}");
    let line = format!("{} diff t-1", env!("CARGO_BIN_EXE_adj"));
    let mut paged = std::process::Command::new("script");
    paged.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(repository.dir());
    paged.env("TERM", "xterm").env("GIT_PAGER", "sed s/^/paged:/").stdin(std::process::Stdio::null());
    let paged = paged.output().expect("`script` of util-linux runs");
    let paged = String::from_utf8_lossy(&paged.stdout);
    assert!(paged.lines().filter(|line| line.starts_with("paged:")).count() > 5, "{paged}");
}

/// What this run cost, and what all of them cost together.
#[test]
fn the_summary_says_what_a_run_cost_and_what_all_have_cost() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("reading-cost", &text, &["t-1"]);
    let first = repository.ok("run --until-idle");
    let cost = |said: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with("cost "));
        line.unwrap_or_else(|| panic!("no cost in\n{said}")).trim().to_owned()
    };
    let once = cost(&first);
    assert!(once.starts_with("cost      $") && !once.contains("before"), "{once}");
    let dollars = once.trim_start_matches("cost").trim().split(',').next().expect("a sum").to_owned();
    repository.ok("task add Again --id t-2");
    let second = cost(&repository.ok("run --until-idle"));
    assert!(second.contains(&format!("{dollars}, ")), "{second} after {once}");
    assert!(second.ends_with("with all runs before"), "{second}");
}
