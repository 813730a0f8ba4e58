//! Review and approval: what a reviewer sees, who may say yes, and what became of a yes.

use super::background::wait;
use super::bound::ask;
use super::policies::{DONE, ON, WRITE, blocked, scenario, waits_for_a_person};
use super::settings::HOLDS;
use super::{Ran, Repository};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const HUMAN: (&str, &str) = ("review = \"auto\"", "review = \"human\"");

/// Adj as the agent with this token.
fn as_agent(repository: &Repository, token: &str, line: &str, rest: &[&str]) -> Ran {
    let mut command = repository.command(line);
    command.args(rest).env("ADJ_TOKEN", token).output().expect("adj runs").into()
}

/// What the gate found and what an agent says stand under two names, and nobody takes the one for the other.
#[test]
fn a_reviewer_sees_what_the_gate_found_apart_from_what_the_agent_claims() {
    let text = format!(
        "[[scenario]]\ntask = \"t-hand\"\n[[scenario.step]]\ndo = [ {WRITE}, {{ commit = \"Do\" }}, {HOLDS} ]\n{}",
        scenario(&[&format!(
            "{WRITE}, {{ commit = \"Do {{task}}\" }}, {{ say = \"I painted it.\" }}, {{ done = true }}"
        )])
    );
    let repository = Repository::new("review-claims", &text, &["t-hand", "t-gate"]);
    repository.set(&[HUMAN]);
    let running = repository.start("run");
    repository.wait_task("t-gate", "REVIEW");
    let token = repository.token_of("t-hand");
    let payload = json!({
        "deliverable": {"content": "work"},
        "reviewChecklist": {"type": "task", "items": [{"item": "tests are green", "answer": "yes"}]},
    });
    let moved = as_agent(&repository, &token, "task move t-hand REVIEW --payload", &[&payload.to_string()]);
    assert_eq!(moved.code, 0, "{}", moved.stderr);
    running.wait_for("it was moved to REVIEW by hand, so no checks ran");
    let shown = repository.ok("review t-hand");
    assert!(shown.contains("gate         did not run: nothing of this was checked"), "{shown}");
    assert!(shown.contains("agent:player claims yes      tests are green"), "{shown}");
    assert!(shown.contains("look at it   it was moved to REVIEW by hand"), "{shown}");
    let task = repository.task("t-hand");
    assert_eq!((&task["gate"], &task["claims"]["by"]), (&Value::Null, &json!("agent:player")), "{task}");
    assert_eq!(task["needsPerson"]["reason"], "by_hand");
    let shown = repository.ok("task show t-hand");
    assert!(shown.contains("claimed      yes") && shown.contains("the gate did not run"), "{shown}");
    assert!(!running.lines().contains("by_hand"), "{}", running.lines());

    let shown = repository.ok("review t-gate");
    assert!(shown.contains("gate         yes      nothing left uncommitted"), "{shown}");
    assert!(!shown.contains("claims"), "{shown}");
    let task = repository.task("t-gate");
    assert_eq!((&task["claims"], &task["needsPerson"]), (&Value::Null, &Value::Null), "{task}");
    assert_eq!(task["gate"]["checks"][2], json!({"item": "tests are green", "answer": "yes"}));
    // And what else a reviewer asks first.
    for part in ["I painted it.", "commits\n", "Do t-gate", "cost         $", "t-gate.txt"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let listed = repository.ok("review");
    assert!(listed.contains("t-gate") && listed.contains("t-hand"), "{listed}");
    assert_eq!(repository.json("review").as_array().map(Vec::len), Some(2));
    running.stop();
}

/// A git of the fleet that works in `land.git` while somebody looks keeps its locks, and hides no commit; what cannot be read is
/// said with the reason.
#[test]
fn a_review_shows_commits_while_a_git_of_the_fleet_holds_a_lock_and_the_reason_if_it_cannot() {
    let repository = Repository::new("review-locked", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[HUMAN]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("it waits for you"), "{}{}", ran.stdout, ran.stderr);
    let land = repository.state("land.git");
    let locks = [land.join("packed-refs.lock"), land.join("refs/adjutant/tasks/t-2.lock")];
    for lock in &locks {
        repository.write(lock, "");
    }
    // A git that is about to rename the lock of a reference has closed it already.
    let mut git = std::process::Command::new("git")
        .args(["cat-file", "--batch"])
        .current_dir(&land)
        .env("GIT_DIR", &land)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("git runs");
    let shown = repository.ok("review t-1");
    assert!(shown.contains("\ncommits\n") && shown.contains("t-1.txt"), "{shown}");
    for lock in &locks {
        assert!(lock.exists(), "{} was taken away from a git at work", lock.display());
    }
    drop(git.stdin.take());
    git.wait().expect("git ends");
    repository.ok("review t-1");
    assert!(!locks[0].exists() && !locks[1].exists(), "locks that nobody holds are removed");

    std::fs::remove_file(land.join("info/exclude")).expect("a file");
    std::fs::create_dir(land.join("info/exclude")).expect("a folder in its place");
    let shown = repository.ok("review t-1");
    let problem =
        shown.lines().find(|line| line.starts_with("commits ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(problem.contains("info/exclude"), "{shown}");
    assert_eq!(repository.json("review t-1")["commits"], json!([]));
}

/// One rule for every way to DONE: an agent says yes neither to its own work nor where a person must look, and
/// nobody signs for somebody else or for another time.
#[test]
fn nobody_completes_a_task_that_needs_a_person_but_a_person() {
    let empty = "{ done = true }";
    let text = format!(
        "[[scenario]]\ntask = \"t-lead\"\n[[scenario.step]]\ndo = [ {HOLDS}, {DONE} ]\n{}",
        scenario(&[empty, empty])
    );
    let repository = Repository::new("review-authority", &text, &["t-lead"]);
    let boss = "[agents.boss]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\nrole = \"lead\"\n[policy]\nlead_may_complete = true\n[test]";
    repository.set(&[
        ("agent = \"player\"", "agent = \"boss\""),
        ("workers = 2", "workers = 1"),
        ("[test]", boss),
    ]);
    let running = repository.start("run");
    let token = repository.token_of("t-lead");
    repository.ok("spawn Ada --agent player");
    repository.ticket("t-none", &[]);
    repository.commit("A ticket");
    let task = repository.wait_task("t-none", "REVIEW");
    assert_eq!(task["needsPerson"]["reason"], "no_changes", "{task}");
    let forged = r#"{"approval":{"approvedBy":"human:local","approvedAt":1,"decisionNote":"fine"}}"#;
    for (line, rest) in [
        ("review t-none --approve", &[][..]),
        ("merge t-none", &[]),
        ("task move t-none DONE --payload", &[forged]),
        ("task move t-none DONE --note fine", &[]),
        ("task move t-lead REVIEW --payload", &["{}"]),
    ] {
        let ran = as_agent(&repository, &token, line, rest);
        assert_eq!(ran.code, 3, "adj {line}\n{}\n{}", ran.stdout, ran.stderr);
    }
    assert_eq!(repository.task("t-none")["status"], "REVIEW");
    // A person may; who and when are not theirs to say either, and what was printed can be sent.
    let sent = r#"{"approval":{"approvalId":null,"approvedBy":"human:somebody","approvedAt":"2001-01-01T00:00:00Z","decisionNote":"right"}}"#;
    let moved = repository.command("task move t-none DONE --payload").arg(sent).output().expect("adj runs");
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    let completion = repository.task("t-none")["completion"].clone();
    assert_eq!(
        (&completion["approvedBy"], &completion["decisionNote"]),
        (&json!("human:tester"), &json!("right"))
    );
    assert!(!completion["approvedAt"].as_str().expect("a time").starts_with("2001"), "{completion}");
    let wrong = r#"{"approval":{"approvedAt":"yesterday","decisionNote":"x"}}"#;
    let ran: Ran =
        repository.command("task move t-none DONE --payload").arg(wrong).output().expect("adj runs").into();
    assert!(ran.code == 2 && ran.stderr.contains("approvedAt"), "{}", ran.stderr);
    repository.go("t-lead");
    running.wait_for("t-lead: agent reported done");
    running.stop();
}

/// Only clarified requirements lead on, and what the reviewer said stays.
#[test]
fn a_task_past_its_review_limit_is_assigned_only_with_what_was_not_clear() {
    let text = scenario(&[
        &format!("{WRITE}, {DONE}"),
        r#"{ write = "prompt.txt", text = "{prompt}\n" }, { commit = "Prompt" }, { done = true }"#,
    ]);
    let repository = Repository::new("review-limit", &text, &["t-1"]);
    repository.set(&[
        HUMAN,
        ("workers = 2", "workers = 1"),
        ("[test]", "[policy]\nmax_review_cycles = 0\n[test]"),
    ]);
    waits_for_a_person(&repository);
    let ran = repository.adj("review t-1 --changes make-it-blue");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "t-1  BLOCKED (review_cycles)\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--clarification") && !ran.stderr.contains("passes it on"), "{}", ran.stderr);
    blocked(&repository, "t-1", "review_cycles");
    let why = repository.ok("why t-1");
    assert!(why.contains("adj task move t-1 IN_PROGRESS --clarification TEXT"), "{why}");
    let refused = repository.refused("assign A t-1");
    assert!(refused.contains("Clarified requirements") && refused.contains("--clarification"), "{refused}");
    blocked(&repository, "t-1", "review_cycles");
    repository.ok("assign A t-1 --clarification RAL-5010");
    let task = repository.task("t-1");
    assert_eq!((&task["feedback"], &task["clarification"]), (&json!("make-it-blue"), &json!("RAL-5010")));
    waits_for_a_person(&repository);
    let tip = repository.task("t-1")["tip"].as_str().expect("it has a tip").to_owned();
    let prompt = repository.git(&format!("show {tip}:prompt.txt"));
    assert!(prompt.contains("make-it-blue") && prompt.contains("RAL-5010"), "{prompt}");
}

/// The same tip that was sent back is no answer to what was asked for.
#[test]
fn a_review_says_when_nothing_has_changed_since_the_last_one() {
    let text = scenario(&[&format!("{WRITE}, {DONE}"), "{ done = true }"]);
    let repository = Repository::new("review-unchanged", &text, &["t-1"]);
    repository.set(&[HUMAN]);
    waits_for_a_person(&repository);
    assert!(!repository.ok("review t-1").contains("nothing has changed"));
    repository.ok("review t-1 --changes more");
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("nothing has changed since the review"), "{lines}");
    let shown = repository.ok("review t-1");
    assert!(shown.contains("nothing has changed since changes were last asked for"), "{shown}");
    assert_eq!(repository.task("t-1")["unchangedSinceReview"], true);
}

/// What a policy would approve, it approves also where it came later.
#[test]
fn a_policy_that_becomes_auto_takes_up_what_waits_for_a_review() {
    let empty = "[[scenario]]\ntask = \"t-empty\"\n[[scenario.step]]\ndo = [ { done = true } ]\n[[scenario.step]]\ndo = [ { done = true } ]\n";
    let text = format!("{empty}{}", scenario(&[&format!("{WRITE}, {DONE}")]));
    let repository = Repository::new("review-policy", &text, &["t-1", "t-2", "t-empty"]);
    repository.set(&[HUMAN]);
    let lines = waits_for_a_person(&repository);
    assert!(lines.contains("adj review t-1") && lines.contains("adj review t-2"), "{lines}");
    // Between two runs.
    repository.ok("review t-2 --changes x");
    repository.set(&[(HUMAN.1, HUMAN.0)]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("t-1 landed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 task not done: needs a person"), "{}", ran.stderr);
    let summary = repository.adj("run --until-idle --json");
    let summary: Value = serde_json::from_str(&summary.stdout).expect("a document");
    assert_eq!(summary["forYou"].as_array().map(Vec::len), Some(1), "{summary}");
    assert!(
        summary["forYou"][0]["what"].as_str().expect("a text").contains("it changes nothing"),
        "{summary}"
    );
    // While a fleet runs.
    repository.set(&[HUMAN]);
    let running = repository.start("run");
    repository.ticket("t-3", &[]);
    repository.commit("A ticket");
    repository.wait_task("t-3", "REVIEW");
    repository.set(&[(HUMAN.1, HUMAN.0)]);
    running.wait_for("t-3 landed");
    running.stop();
}

/// What waits for the checkout is in the queue, is told once, and lands as soon as the way is clear.
#[test]
fn a_landing_that_the_checkout_holds_up_is_in_the_queue_and_goes_on_at_once() {
    // Merged with what is new on main, its tests wait.
    let slow = r#"[[scenario]]
task = "t-slow"
[[scenario.step]]
do = [ { write = "slow.check", text = '[ ! -e other.txt ] || until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { done = true } ]
"#;
    let text = format!("{slow}{}", scenario(&[&format!("{WRITE}, {DONE}")]));
    let repository = Repository::new("review-queue", &text, &["t-1"]);
    repository.set(&[HUMAN]);
    let running = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    repository.write("t-1.txt", "mine\n");
    repository.ok("review t-1 --approve");
    running.wait_for("t-1 waits to land: your checkout has local changes in t-1.txt");
    let queue = repository.json("queue");
    assert_eq!((&queue[0]["task"], &queue[0]["landing"]), (&json!("t-1"), &json!(false)), "{queue}");
    assert!(queue[0]["heldUp"].as_str().expect("it is held up").contains("t-1.txt"), "{queue}");
    let shown = repository.ok("queue");
    assert!(shown.contains("held up") && shown.contains("git -C"), "{shown}");
    let cleared = Instant::now();
    std::fs::remove_file(repository.dir().join("t-1.txt")).expect("it is there");
    running.wait_for("t-1 landed");
    assert!(cleared.elapsed() < Duration::from_secs(15), "it did not wait for its next try");
    assert_eq!(running.lines().matches("waits to land").count(), 1, "{}", running.lines());
    assert_eq!(repository.json("queue"), json!([]));

    // What is landing, with what is done for it and since when.
    repository.ticket("t-slow", &[]);
    repository.commit("A ticket");
    repository.wait_task("t-slow", "REVIEW");
    repository.write("other.txt", "so that the merge is not what the gate tested\n");
    repository.commit("Other");
    repository.ok("merge t-slow");
    let queue =
        wait("a landing", || Some(repository.json("queue")).filter(|queue| queue[0]["landing"] == true));
    assert_eq!(queue[0]["stage"], "testing the merge", "{queue}");
    assert!(queue[0]["since"].as_str().expect("a time").starts_with("20"), "{queue}");
    assert!(repository.ok("queue").contains("testing the merge"));
    repository.go("t-slow");
    running.wait_for("t-slow landed");
    running.stop();
}

/// A worker's name means what it handed over, as long as that is one task.
#[test]
fn a_workers_name_means_the_task_that_it_handed_over() {
    let repository = Repository::new("review-worker", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[HUMAN, ("workers = 2", "workers = 1")]);
    waits_for_a_person(&repository);
    assert!(repository.ok("review A").contains("t-1  Do t-1"));
    repository.ticket("t-2", &[]);
    repository.commit("A ticket");
    waits_for_a_person(&repository);
    let refused = repository.refused("merge A");
    assert!(refused.contains("worker `A` has handed over t-1, t-2"), "{refused}");
    repository.ok("merge t-2");
    assert!(repository.ok("merge A").starts_with("t-1  REVIEW  approved at"));
    assert!(repository.refused("merge A").contains("none of its tasks is in REVIEW"));
    repository.ok("run --until-idle");
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}

/// The same wherever a task is meant and a worker has it.
#[test]
fn a_workers_name_stands_for_its_task_wherever_a_task_is_asked_for() {
    let repository = Repository::new("review-either", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[HUMAN]);
    waits_for_a_person(&repository);
    assert!(repository.ok("task edit A --title Better").starts_with("t-1  REVIEW"));
    assert_eq!(repository.task("t-1")["title"], "Better");
    assert!(repository.ok("prompt show step --task A").contains("t-1"));
    let ran = repository.ok("task move A BLOCKED --reason manual");
    assert!(ran.starts_with("t-1  BLOCKED"), "{ran}");
    repository.ok("retry t-1");
    waits_for_a_person(&repository);
    assert!(repository.ok("task cancel A").starts_with("t-1  CANCELED"));
    let unknown = repository.adj("task cancel nobody");
    assert!(unknown.stderr.contains("there is no task or worker `nobody`"), "{}", unknown.stderr);
}

/// What is approved without a change is DONE, and nobody says that it will land.
#[test]
fn an_approval_says_what_became_of_it() {
    let repository =
        Repository::new("review-said", &scenario(&["{ done = true }", "{ done = true }"]), &["t-1"]);
    repository.set(&[HUMAN]);
    waits_for_a_person(&repository);
    let cost = repository.task("t-1")["submission"]["costSummary"]["totalCost"].clone();
    assert_eq!(cost, repository.task("t-1")["cost"]["usd"], "in dollars as everywhere");
    let ran = repository.adj("review t-1 --approve");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "t-1  DONE\n", ""));
    let refused = repository.refused("task edit t-1 --title other");
    assert!(refused.contains("is DONE") && refused.contains("--reopens t-1"), "{refused}");
}

/// What a person asked for is not a failure.
#[test]
fn a_retry_is_told_as_what_it_is() {
    let step = format!("{WRITE}, {{ write = \"{{task}}.check\", text = \"[ -e {{task}}.ok ]\\n\" }}, {DONE}");
    let on = r#"{ write = "{task}.ok", text = "ok\n" }, { commit = "Go on" }, { done = true }"#;
    let repository = Repository::new("review-retry", &scenario(&[&step, on]), &["t-1"]);
    repository.set(&[("workers = 2", "workers = 1\nmax_fix_rounds = 0")]);
    waits_for_a_person(&repository);
    blocked(&repository, "t-1", "stuck");
    repository.ok("retry A");
    let lines = repository.ok("run --until-idle");
    assert!(!lines.contains("failed: tried again") && !lines.contains("failed step"), "{lines}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// The prompt that an agent would get, filled in.
#[test]
fn a_tasks_own_prompt_can_be_shown() {
    let repository = Repository::new("review-prompt", &scenario(&[&format!("{WRITE}, {ON}"), DONE]), &[]);
    let id = repository.ok("task add Paint --body blue").trim().to_owned();
    repository.ok(&format!("task comment {id} use-the-brush"));
    let shown = repository.ok(&format!("prompt show init --task {id}"));
    for part in [&*id, "Paint", "blue", "use-the-brush", "sh tests.sh"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(!shown.contains("{{"), "{shown}");
    assert_eq!(repository.adj(&format!("prompt show moon --task {id}")).code, 4);
}

/// Bad input is bad input, and is told by the option that it was given with.
#[test]
fn what_is_wrong_is_named_by_its_option() {
    let repository = Repository::new("review-input", &scenario(&[DONE]), &[]);
    let id = repository.ok("task add Paint").trim().to_owned();
    for (line, code, said) in [
        ("task add x --id a/b", 2, "--id"),
        ("task add x --type foo", 2, "possible values: bug, feature, task, epic, chore"),
        ("task add x --priority 9", 2, "--priority"),
        ("task add x --depends-on a/b", 2, "--depends-on"),
        ("spawn a/b", 2, "a/b"),
        ("task move ID BLOCKED --reason tired", 2, "possible values: loop, tool_failures"),
        ("task move ID NEEDS_APPROVAL --cause x", 2, "possible values: budget, red_action"),
        ("task move ID DONE", 3, "cannot move from INBOX to DONE; allowed: ASSIGNED, CANCELED"),
        ("task move ID ASSIGNED", 3, "--assignee"),
        ("approve q9 --to NOWHERE", 2, "--to"),
        ("run --once --until-idle", 2, "--once"),
        ("rnu", 2, "did you mean `adj run`?"),
        ("task shwo x", 2, "did you mean `adj task show`?"),
        ("kill Q", 4, "there is no worker"),
    ] {
        let ran = repository.adj(&line.replace("ID", &id));
        assert!(ran.code == code && ran.stderr.contains(said), "adj {line}: {}\n{}", ran.code, ran.stderr);
    }
    let empty = |line: &str| -> Ran { repository.command(line).arg("").output().expect("adj runs").into() };
    assert_eq!(empty("task add").code, 2, "{}", empty("task add").stderr);
    assert_eq!(empty(&format!("task comment {id}")).code, 2);
    repository.ok("spawn Ada");
    let refused = repository.refused("spawn Ada");
    assert!(refused.contains("there is a worker `Ada` already"), "{refused}");
    let refused = repository.refused("kill Ada");
    assert!(refused.contains("worker `Ada` is idle; nothing to kill"), "{refused}");
    let ran = repository.adj("task add Later --depends-on t-999");
    assert!(ran.code == 0 && ran.stderr.contains("there is no task `t-999` yet"), "{}", ran.stderr);
}

/// A patch that is longer than its limit is not cut in the middle: its files are listed, and each can be asked for.
#[test]
fn a_diff_that_is_too_long_lists_its_files_and_shows_each_by_its_path() {
    let large = r#"{ run = 'mkdir -p data && yes 0123456789 | head -c 5000000 > "data/a [b].txt"' }"#;
    let text = scenario(&[&format!("{large}, {WRITE}, {DONE}")]);
    let repository = Repository::new("review-long-diff", &text, &["t-1"]);
    repository.set(&[HUMAN]);
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("it waits for you"), "{}{}", ran.stdout, ran.stderr);
    let whole = repository.adj("diff t-1");
    assert!(
        whole.code == 0 && whole.stderr.contains("the diff is longer than 4194304 bytes"),
        "{}",
        whole.stderr
    );
    assert!(
        whole.stderr.contains("adj diff t-1 PATH") && whole.stderr.contains("git diff "),
        "{}",
        whole.stderr
    );
    assert!(whole.stdout.contains("t-1.txt") && !whole.stdout.contains("@@"), "{}", whole.stdout);
    let one = repository.adj("diff t-1 t-1.txt");
    assert!(
        one.stdout.contains("+1") && !one.stdout.contains("data/") && one.stderr.is_empty(),
        "{}",
        one.stdout
    );
    // The command that is named shows all of it.
    let all = whole.stderr.split("`git ").nth(1).and_then(|rest| rest.split('`').next()).expect("a command");
    assert!(repository.git(all).len() > 5_000_000);
    let shown = repository.json("diff t-1");
    assert_eq!((&shown["cutAt"], shown["message"].is_string()), (&json!(4_194_304), true), "{shown}");
    // A star or a bracket in a path stands for itself.
    let mut literal = repository.command("diff t-1");
    let literal: Ran = literal.arg("data/a [b].txt").arg("--stat").output().expect("adj runs").into();
    assert!(literal.stdout.contains("1 file changed"), "{}{}", literal.stdout, literal.stderr);
    assert_eq!(repository.ok("diff t-1 data/*"), "");

    let mut client = crate::mcp::Client::initialized(repository.command("mcp"));
    let (refused, text, cut) = client.call("show_diff", json!({ "task": "t-1" }));
    assert!(
        !refused && cut["cutAt"] == 262_144 && text.contains("`path` shows one file or folder"),
        "{text}"
    );
    let (refused, text, one) = client.call("show_diff", json!({ "task": "t-1", "path": "t-1.txt" }));
    assert!(!refused && one["diff"].as_str().expect("a patch").contains("+1"), "{text}");
    client.end();
    let server = crate::ops::serve(&repository, "");
    let asked = server.get("/api/v1/tasks/t-1/diff?maxBytes=1024&path=data").json();
    assert!(
        asked["cutAt"] == 1024 && asked["diff"].as_str().expect("files").contains("1 file changed"),
        "{asked}"
    );
    let wrong = server.get("/api/v1/tasks/t-1/diff?path=/etc/passwd").json();
    assert_eq!(wrong["errors"][0]["field"], "path", "{wrong}");
}

/// Comments on lines are kept by the server, sent as one numbered round, and reach the agent; the receipt says so.
#[test]
fn comments_on_lines_are_kept_as_drafts_and_reach_the_agent_as_one_round() {
    let text = scenario(&[&format!("{WRITE}, {DONE}"), &format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("review-round", &text, &["t-1"]);
    repository.set(&[HUMAN]);
    let fleet = repository.start("run");
    wait("a review", || (repository.task("t-1")["status"] == "REVIEW").then_some(()));
    let token = std::fs::read_to_string(repository.state("token")).expect("the project's token");
    let say = |line: &str, body: Value| ask(&repository, None, token.trim(), line, &body);
    let tip = repository.task("t-1")["tip"].clone();
    let comment = |line: u32, text: &str| json!({"path": "t-1.txt", "side": "new", "line": line, "text": text, "tip": tip});
    let (status, first) = say("POST /tasks/t-1/drafts", comment(1, "Say why."));
    assert_eq!((status, &first["id"], &first["endLine"]), (201, &json!("d1"), &json!(1)), "{first}");
    assert_eq!(say("POST /tasks/t-1/drafts", comment(2, "Not this.")).0, 201);
    assert_eq!(say("POST /tasks/t-1/drafts", comment(0, "Nowhere.")).0, 422);
    // They stay across another process, can be changed and discarded, and nothing was sent.
    assert_eq!(say("PATCH /tasks/t-1/drafts/d1", json!({"text": "Say why it is blue."})).0, 200);
    assert_eq!(say("DELETE /tasks/t-1/drafts/d2", Value::Null).0, 200);
    assert_eq!(say("DELETE /tasks/t-1/drafts/d2", Value::Null).0, 404);
    let (_, drafts) = say("GET /tasks/t-1/drafts", Value::Null);
    assert_eq!(drafts["items"].as_array().map(Vec::len), Some(1), "{drafts}");
    assert_eq!(repository.task("t-1")["status"], "REVIEW");
    // A round is for the tip that was looked at.
    assert_eq!(say("POST /tasks/t-1/rounds", json!({"tip": "0000"})).0, 409);
    let (status, round) = say("POST /tasks/t-1/rounds", json!({"tip": tip, "note": "Nearly."}));
    assert_eq!(
        (status, &round["number"], &round["comments"][0]["line"]),
        (201, &json!(1), &json!(1)),
        "{round}"
    );
    let consumed = wait("the receipt", || {
        let (_, rounds) = say("GET /tasks/t-1/rounds", Value::Null);
        (rounds["items"][0]["receipt"] == "consumed").then(|| rounds["items"][0].clone())
    });
    assert_eq!(consumed["comments"][0]["text"], "Say why it is blue.");
    assert_eq!(say("GET /tasks/t-1/drafts", Value::Null).1["items"], json!([]));
    let told = repository.log().iter().any(|record| {
        let text = record.to_string();
        text.contains("Round 1 of the review") && text.contains("t-1.txt, line 1") && text.contains("Nearly.")
    });
    assert!(told, "the agent's prompt has the round");
    repository.ok("stop");
    fleet.done();
}
