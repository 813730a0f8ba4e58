//! What agents ask of the board: tasks that they propose, and what of others they read.

use super::background::wait;
use super::{Ran, Repository};

/// The program as an agent calls it, with the token from its environment.
const ADJ: &str = env!("CARGO_BIN_EXE_adj");

fn proposer(times: u32) -> String {
    format!(
        "[[scenario]]\n[[scenario.step]]\ndo = [ {{ run = '''for i in $(seq {times}); do {ADJ} task add \"More of {{task}} $i\"; echo \"code $?\"; done > said-{{task}}.txt 2>&1''' }}, {{ commit = \"Propose\" }}, {{ done = true }} ]\n"
    )
}

/// A person decides; nobody works on it before, and the fleet ends all the same.
#[test]
fn tasks_that_an_agent_adds_wait_for_a_person_and_are_no_more_than_the_settings_allow() {
    let repository = Repository::new("proposals-ask", &proposer(4), &["first"]);
    repository.set(&[("[test]", "[limits]\nproposals = 3\n[test]")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 of 1 tasks DONE"), "{}", ran.stdout);
    assert!(ran.stdout.contains("3 tasks that agents proposed wait for you"), "{}", ran.stdout);
    let told = "t-1 is proposed by agent `player` on `first`: More of first 1: adj task accept t-1";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    let said = repository.read("said-first.txt");
    assert_eq!(said.matches("code 0").count(), 3, "{said}");
    assert_eq!(said.matches("code 3").count(), 1, "{said}");
    assert!(said.contains("this run has proposed 3 tasks, and `limits.proposals` allows 3"), "{said}");
    assert!(said.contains("hint: it is proposed; a person must accept it"), "{said}");

    let board = repository.ok("board");
    assert!(board.contains("t-1  More of first 1  (proposed by agent `player` on `first`)"), "{board}");
    let list = repository.ok("task ls");
    assert_eq!(list.matches("proposed").count(), 3, "{list}");
    let why = repository.ok("why t-2");
    assert!(
        why.contains("proposal: proposed by agent `player` on `first`; to continue: `adj task accept t-2`"),
        "{why}"
    );
    assert_eq!(repository.task("t-1")["proposed"]["state"], "waiting");

    repository.ok("task cancel t-3");
    assert_eq!(repository.ok("-q task accept t-1 t-2"), "t-1  INBOX\nt-2  INBOX\n");
    let again = repository.adj("task accept t-1");
    assert!(again.code == 3 && again.stderr.contains("it was accepted before"), "{}", again.stderr);
    // Whoever works on them proposes as many again, and those wait too.
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("3 of 3 tasks DONE, 2 landed in this run"), "{}", ran.stdout);
    assert!(ran.stdout.contains("6 tasks that agents proposed wait for you"), "{}", ran.stdout);
    assert_eq!(repository.task("t-3")["status"], "CANCELED");
    repository.check(&["first"], "sh tests.sh");
}

/// One task after the other, each by the one before: without a person the chain ends.
#[test]
fn a_chain_of_tasks_that_the_policy_accepts_ends() {
    let repository = Repository::new("proposals-accept", &proposer(1), &["first"]);
    repository.set(&[("[test]", "[limits]\nproposals = 4\n[policy]\nproposals = \"accept\"\n[test]")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("5 of 5 tasks DONE, 5 landed in this run"), "{}", ran.stdout);
    let said = repository.git("log --all --format= -p -- said-*");
    assert!(said.contains("`first` and what followed from it have proposed 4 tasks"), "{said}");
}

#[test]
fn an_agent_adds_no_task_where_the_policy_refuses_proposals() {
    let repository = Repository::new("proposals-refuse", &proposer(1), &["first"]);
    repository.set(&[("[test]", "[policy]\nproposals = \"refuse\"\n[test]")]);
    repository.ok("run --until-idle");
    let said = repository.read("said-first.txt");
    assert!(said.contains("code 3") && said.contains("`policy.proposals` is \"refuse\""), "{said}");
    assert_eq!(repository.events("task_added"), 1);
}

/// An agent that commits the files of tickets to be worked on without anybody being asked.
fn writer(times: u32) -> String {
    let ticket = "---\\nid: $id\\nstatus: open\\ndeps: []\\nlinks: []\\ncreated: 2026-11-01T09:00:00Z\\ntype: task\\npriority: 2\\n---\\n# More\\n";
    format!(
        "[[scenario]]\n[[scenario.step]]\ndo = [ {{ run = '''for i in $(seq {times}); do id={{task}}-$i; printf -- \"{ticket}\" > .tickets/$id.md; done; echo done > {{task}}.txt''' }}, {{ commit = \"Ask for more\" }}, {{ done = true }} ]\n"
    )
}

/// What comes to main with an agent's work is a proposal of that agent, as if it had said so.
#[track_caller]
fn check_committed_tickets(merge: &str) {
    let repository = Repository::new(&format!("proposals-files-{merge}"), &writer(2), &["first"]);
    repository.set(&[("[test]", &format!("[project]\nmerge = \"{merge}\"\n[test]"))]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 of 1 tasks DONE, 1 landed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("2 tasks that agents proposed wait for you"), "{}", ran.stdout);
    let task = repository.task("first-1");
    assert_eq!((&task["status"], &task["proposed"]["state"]), (&"INBOX".into(), &"waiting".into()), "{task}");
    assert_eq!(task["proposed"]["task"], "first", "{task}");
    // A person's own ticket is a task, and a proposal that a person accepts is one too.
    repository.ticket("mine", &[]);
    repository.commit("Ask for mine");
    repository.ok("task accept first-1");
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("3 of 3 tasks DONE, 2 landed"), "{}", ran.stdout);
    assert_eq!(repository.task("first-2")["status"], "INBOX");
}

#[test]
fn tickets_that_an_agent_commits_are_proposals() {
    check_committed_tickets("merge");
}

#[test]
fn tickets_that_an_agent_commits_are_proposals_where_the_settings_squash() {
    check_committed_tickets("squash");
}

/// What the policy accepts ends at the limit, and the rest waits, and the rest waits: the files cannot be refused.
#[test]
fn committed_tickets_that_the_policy_accepts_are_no_more_than_the_limit() {
    let repository = Repository::new("proposals-files-accept", &writer(2), &["first"]);
    repository.set(&[("[test]", "[limits]\nproposals = 4\n[policy]\nproposals = \"accept\"\n[test]")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("5 of 5 tasks DONE, 5 landed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("tasks that agents proposed wait for you"), "{}", ran.stdout);
}

#[test]
fn committed_tickets_wait_where_the_policy_refuses_proposals() {
    let repository = Repository::new("proposals-files-refuse", &writer(1), &["first"]);
    repository.set(&[("[test]", "[policy]\nproposals = \"refuse\"\n[test]")]);
    repository.ok("run --until-idle");
    assert_eq!(repository.task("first-1")["proposed"]["state"], "waiting");
}

/// What an agent may read, and what not. Its worker is A, and the other's was B.
const OWN: &[&str] = &[
    "task show mine",
    "task show other",
    "task ls",
    "board",
    "why mine",
    "diff mine",
    "logs mine",
    "logs A",
    "peek A",
    "history mine",
    "ps",
    "queue",
    "approvals",
];
const OTHERS: &[&str] = &[
    "logs other",
    "logs other --tests",
    "peek other",
    "diff other",
    "history other",
    "why other",
    "review other",
    "logs B",
    "peek B",
    "history B",
    "history",
    "cost",
    "why",
    "waiting",
    "salvage list",
    "doctor",
];

/// An agent reads its own task and what stands on a board; what others print, change and ask is theirs.
#[test]
fn an_agent_reads_its_own_task_and_not_what_others_do() {
    let tries: Vec<String> = OWN.iter().chain(OTHERS).map(|line| format!("\"{line}\"")).collect();
    let scenario = r#"
[[scenario]]
task = "other"
[[scenario.step]]
do = [ { run = 'env; echo "the secret plan"' }, { write = "other.txt", text = "x\n" }, { done = true } ]
[[scenario]]
task = "mine"
[[scenario.step]]
do = [ { write = "mine.txt", text = "x\n" }, { commit = "Begin" }, { say = "on" } ]
[[scenario.step]]
do = [
  { run = '''for line in TRIES; do ADJ $line > "$TMPDIR/out" 2>&1; echo "$? $line"; cat "$TMPDIR/out" >> all.txt; done > tried.txt; ADJ task show other --json >> all.txt''' },
  { commit = "Tried" }, { done = true },
]
"#
    .replace("TRIES", &tries.join(" "))
    .replace("ADJ", ADJ);
    let repository = Repository::new("proposals-reads", &scenario, &[]);
    repository.set(&[("review = \"auto\"", "review = \"human\""), ("workers = 2", "workers = 0")]);
    let running = repository.start("run");
    // A worker that is made before is one of the agent that was in force before.
    wait("the settings are in force", || (repository.events("config_changed") > 0).then_some(()));
    repository.ok("task add Other --id other");
    repository.ok("spawn B");
    repository.wait_task("other", "REVIEW");
    repository.ok("task comment other kept-between-us");
    // The first of the two that are idle takes it.
    repository.ok("spawn A");
    repository.ok("task add Mine --id mine");
    repository.wait_task("mine", "REVIEW");
    let tip = repository.task("mine")["tip"].as_str().expect("it has a tip").to_owned();
    let tried = repository.git(&format!("show {tip}:tried.txt"));
    let code = |line: &str| {
        let found = tried.lines().find_map(|tried| tried.strip_suffix(line)?.strip_suffix(' '));
        found.unwrap_or_else(|| panic!("{line} was not tried: {tried}"))
    };
    for line in OWN {
        assert_eq!(code(line), "0", "{line}: {tried}");
    }
    for line in OTHERS {
        assert_eq!(code(line), "3", "{line}: {tried}");
    }
    let all = repository.git(&format!("show {tip}:all.txt"));
    assert!(all.contains("the caller's role may not read this"), "{all}");
    assert!(
        all.contains("an agent reads its own task (`mine`) with its changes, output and history"),
        "{all}"
    );
    assert!(all.contains("REVIEW") && all.contains("Other"), "titles and states are the board's: {all}");
    for secret in ["the secret plan", "kept-between-us", "other.txt"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    running.stop();
}

/// What an agent prints of its token, in whatever pieces, is in nothing that we keep; nor is what it says to others.
#[test]
fn a_token_that_an_agent_prints_or_sends_is_kept_nowhere() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = '''echo $ADJ_TOKEN > "$TMPDIR/token"; env; echo "{\"key\": \"$ADJ_TOKEN\"}"; printf %s "$ADJ_TOKEN" | fold -w 20 | while read part || [ -n "$part" ]; do printf %s "$part"; sleep 0.05; done; echo; echo "to errors $ADJ_TOKEN" >&2''' },
  { run = '''PROGRAM task comment {task} "my token is $ADJ_TOKEN" ''' },
  { run = '''cp "$TMPDIR/token" token.txt; echo "cat token.txt; false" > red.check''' },
  { run = '''until [ -e "$TMPDIR/go" ]; do sleep 0.05; done''' },
  { commit = "Print" }, { done = true },
]
[[scenario.step]]
on = "test_failure"
do = [ { run = '''rm -f red.check token.txt; echo x > x.txt''' }, { commit = "Mend" }, { done = true } ]
"#
    .replace("PROGRAM", ADJ);
    let repository = Repository::new("proposals-hidden", &scenario, &["t-1"]);
    let running = repository.start("run");
    let token = wait("the token", || {
        let token = repository.read(&repository.temp("t-1").join("token"));
        (token.trim().len() == 64).then(|| token.trim().to_owned())
    });
    wait("the comment", || {
        repository.ok("task show t-1").contains("my token is [ADJ_TOKEN hidden]").then_some(())
    });
    repository.go("t-1");
    repository.wait_task("t-1", "DONE");
    running.stop();
    let shown: Ran = repository.adj("logs t-1 --raw");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("[ADJ_TOKEN hidden]"), "{}", shown.stdout);
    for line in
        ["logs t-1", "logs t-1 --raw", "logs t-1 --tests", "history t-1 --all", "task show t-1", "export -"]
    {
        let ran = repository.adj(line);
        assert!(!ran.stdout.contains(&token) && !ran.stderr.contains(&token), "{line}: {}", ran.stdout);
    }
    let mut folders = vec![repository.state("steps")];
    let (mut files, mut hidden) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let content = std::fs::read(entry.path()).unwrap_or_default();
            let found = content.windows(64).any(|part| part == token.as_bytes());
            assert!(!found, "{} has the token", entry.path().display());
            files += 1;
            hidden += usize::from(String::from_utf8_lossy(&content).contains("[ADJ_TOKEN hidden]"));
        }
    }
    assert!(files > 5 && hidden >= 2, "of the agent and of the tests: {hidden} of {files}");
}
