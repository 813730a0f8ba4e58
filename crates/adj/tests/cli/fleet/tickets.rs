//! Ticket files and the fleet: what people see in them, what they write, and what agents may change.

use super::Repository;
use super::background::wait;

/// One step does the whole work.
const WORKS: &str = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "{task}\n" }, { commit = "Do {task}" }, { done = true } ]
"#;

/// The same, when somebody lets it go on.
const HELD: &str = r#"
[[scenario]]
[[scenario.step]]
do = [
  { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' },
  { write = "{task}.txt", text = "{task}\n" },
  { commit = "Do {task}" },
  { done = true },
]
"#;

impl Repository {
    /// Takes the tickets out of git; their files stay.
    fn untrack_tickets(&self) {
        self.write(".gitignore", ".tickets/\n");
        self.git("rm -r --quiet --cached .tickets");
        self.commit("Tickets are not in git");
    }

    fn ticket_status(&self, id: &str) -> String {
        let text = self.read(&format!(".tickets/{id}.md"));
        let status = text.lines().find_map(|line| line.strip_prefix("status: "));
        status.unwrap_or("none").to_owned()
    }

    fn set_ticket_status(&self, id: &str, status: &str) {
        let (path, now) = (format!(".tickets/{id}.md"), self.ticket_status(id));
        let text = self.read(&path).replacen(&format!("status: {now}"), &format!("status: {status}"), 1);
        self.write(&path, &text);
    }

    fn status_of(&self, id: &str) -> String {
        self.task(id)["status"].as_str().unwrap_or_default().to_owned()
    }
}

/// The run ends as soon as the ticket is closed, and never looks at the file again.
#[test]
fn a_ticket_that_the_fleet_closed_and_somebody_opens_again_is_a_new_task() {
    for tracked in [true, false] {
        let repository = Repository::new(&format!("reopened-{tracked}"), WORKS, &["t-1"]);
        if !tracked {
            repository.untrack_tickets();
        }
        repository.ok("run --until-idle");
        assert_eq!(repository.ticket_status("t-1"), "closed");
        repository.set_ticket_status("t-1", "open");
        if tracked {
            repository.commit("Again");
        }
        let said = repository.ok("run --until-idle");
        assert!(said.contains("t-1-r2 landed"), "{said}");
        assert_eq!(repository.task("t-1-r2")["reopens"], "t-1");
        assert_eq!(repository.ticket_status("t-1"), "closed");
        // A third run finds nothing new.
        let said = repository.ok("run --until-idle");
        assert!(said.contains("2 of 2 tasks DONE, 0 landed"), "{said}");
    }
}

#[test]
fn a_ticket_whose_task_was_canceled_and_that_is_opened_again_is_a_new_task() {
    for tracked in [true, false] {
        let repository = Repository::new(&format!("canceled-{tracked}"), WORKS, &["t-1"]);
        if !tracked {
            repository.untrack_tickets();
        }
        repository.ok("task cancel t-1");
        assert_eq!(repository.ticket_status("t-1"), "closed");
        repository.set_ticket_status("t-1", "open");
        assert!(repository.ok("board").contains("t-1-r2"));
        assert_eq!(repository.status_of("t-1"), "CANCELED");
    }
}

#[test]
fn an_untracked_ticket_says_that_its_task_is_under_way_and_a_tracked_one_is_left_alone() {
    let repository = Repository::new("under-way", HELD, &["t-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    repository.untrack_tickets();
    let running = repository.start("run");
    wait("the ticket to be in progress", || (repository.ticket_status("t-1") == "in_progress").then_some(()));
    repository.go("t-1");
    repository.wait_task("t-1", "REVIEW");
    assert_eq!(repository.ticket_status("t-1"), "in_progress");
    repository.ok("review t-1 --approve");
    running.wait_for("t-1 landed");
    running.stop();
    assert_eq!(repository.ticket_status("t-1"), "closed");

    let repository = Repository::new("under-way-tracked", HELD, &["t-1"]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    assert_eq!(repository.ticket_status("t-1"), "open");
    assert_eq!(repository.git("status --porcelain"), "", "the checkout is left alone");
    repository.go("t-1");
    running.wait_for("t-1 landed");
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn a_ticket_that_somebody_else_has_in_progress_is_not_taken_but_by_a_persons_word() {
    let repository = Repository::new("in-progress", WORKS, &["t-1", "t-2"]);
    repository.untrack_tickets();
    repository.set_ticket_status("t-1", "in_progress");
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("t-2 landed") && !ran.stdout.contains("takes t-1"), "{}", ran.stdout);
    assert_eq!(repository.status_of("t-1"), "INBOX");
    let why = repository.ok("why t-1");
    assert!(why.contains("somebody else works on it"), "{why}");
    let board = repository.ok("board");
    assert!(board.contains("t-1  Do t-1  (somebody else has the ticket in_progress)"), "{board}");
    let worker = repository.json("ps")[0]["name"].as_str().expect("a worker").to_owned();
    repository.ok(&format!("assign {worker} t-1"));
    assert!(repository.ok("run --until-idle").contains("t-1 landed"));
    assert_eq!(repository.ticket_status("t-1"), "closed");
    // Set to open again, it is the fleet's without a word.
    repository.ticket("t-3", &[]);
    repository.set_ticket_status("t-3", "in_progress");
    assert!(repository.ok("board").contains("t-3"));
    repository.set_ticket_status("t-3", "open");
    assert!(repository.ok("run --until-idle").contains("t-3 landed"));
}

/// Of the tickets only the front matter of those that main has is not an agent's to change.
#[test]
fn what_an_agent_writes_into_a_ticket_lands_and_its_front_matter_is_put_back_and_said() {
    let scenario = r#"
[[scenario]]
task = "c-1"
[[scenario.step]]
do = [
  { run = "sed -i 's/^priority: 2/priority: 0/; s/Write it./Written, and noted./' .tickets/c-1.md" },
  { run = "sed 's/c-1/c-2/; s/^status: .*/status: open/' .tickets/c-1.md > .tickets/c-2.md" },
  { write = "c-1.txt", text = "one\n" },
  { commit = "Do c-1" },
  { done = true },
]
[[scenario.step]]
do = [ { write = "prompt.txt", text = "{prompt}\n" }, { commit = "Again" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "two\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("front-matter", scenario, &["c-1"]);
    repository.set(&[("review = \"auto\"", "review = \"human\"")]);
    let ran = repository.adj("run --until-idle");
    let dropped = "the front matter of `.tickets/c-1.md`";
    assert!(ran.stdout.contains(dropped) && !ran.stdout.contains("c-2.md"), "{}", ran.stdout);
    for line in ["review c-1", "task show c-1"] {
        let said = repository.ok(line);
        assert!(said.contains(dropped), "adj {line}\n{said}");
    }
    repository.ok("review c-1 --changes more");
    repository.adj("run --until-idle");
    repository.ok("review c-1 --approve");
    let ran = repository.adj("run --until-idle");
    assert!(ran.stdout.contains("c-1 landed"), "{}", ran.stdout);
    let ticket = repository.git("show main:.tickets/c-1.md");
    assert!(ticket.contains("Written, and noted."), "{ticket}");
    assert!(ticket.contains("priority: 2") && ticket.contains("status: closed"), "{ticket}");
    let prompt = repository.git("show main:prompt.txt");
    assert!(prompt.contains(dropped), "the agent hears of it with its next step:\n{prompt}");
    // The new ticket is in main, and so it is a task that its agent proposed.
    assert_eq!(repository.status_of("c-2"), "INBOX");
    repository.ok("task accept c-2");
    repository.adj("run --until-idle");
    assert_eq!(repository.status_of("c-2"), "REVIEW");
}

#[test]
fn tickets_are_known_before_a_fleet_has_run() {
    let repository = Repository::new("before", WORKS, &["k-1", "k-2"]);
    for line in ["board", "task ls"] {
        let said = repository.ok(line);
        assert!(said.contains("k-1") && said.contains("k-2"), "adj {line}\n{said}");
    }
    assert!(repository.ok("why k-1").contains("INBOX"));
    repository.ok("spawn A");
    repository.ok("assign A k-1");
    assert_eq!(repository.status_of("k-1"), "IN_PROGRESS");
    // What is edited is seen by the next command.
    let text = repository.read(".tickets/k-2.md").replace("# Do k-2", "# Undo k-2");
    repository.write(".tickets/k-2.md", &text);
    assert_eq!(repository.task("k-2")["title"], "Undo k-2");
    repository.ok("verify");
}

#[test]
fn what_is_wrong_with_tickets_is_told_at_any_time() {
    let repository = Repository::new("broken", WORKS, &["good"]);
    repository.ticket("cyc-1", &["cyc-2"]);
    repository.ticket("cyc-2", &["cyc-1"]);
    repository.ticket("self-1", &["self-1"]);
    repository.ticket("bad", &[]);
    repository.set_ticket_status("bad", "doing");
    repository.write(".tickets/none.md", "no front matter\n");
    let told = [
        ".tickets/bad.md:3: `doing` is not a status",
        ".tickets/none.md:1: this is not a ticket",
        ".tickets/cyc-1.md: the dependencies go in a circle: cyc-1 → cyc-2 → cyc-1",
        ".tickets/cyc-2.md: the dependencies go in a circle: cyc-2 → cyc-1 → cyc-2",
        ".tickets/self-1.md: the dependencies go in a circle: self-1 → self-1",
    ];
    let check = |line: &str| {
        let ran = repository.adj(line);
        let said = (ran.stdout + &ran.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        for told in told {
            assert!(said.contains(told), "adj {line}: {told}\n{said}");
        }
    };
    for line in ["doctor", "board", "task ls"] {
        check(line);
    }
    for (id, told) in [("bad", "`doing` is not a status"), ("self-1", "self-1 → self-1")] {
        let ran = repository.adj(&format!("why {id}"));
        assert_eq!(ran.code, 4);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let running = repository.start("run");
    running.wait_for("good landed");
    for line in ["doctor", "board", "task ls"] {
        check(line);
    }
    running.stop();
    check("board");
}

#[test]
fn a_ticket_whose_file_is_deleted_is_said_at_once_and_waits_until_it_is_back() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { run = 'until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }, { say = "and on" } ]
[[scenario.step]]
do = [ { write = "{task}.txt", text = "{task}\n" }, { commit = "Do {task}" }, { done = true } ]
"#;
    let repository = Repository::new("deleted", scenario, &["t-1", "t-2"]);
    repository.untrack_tickets();
    repository.set(&[("workers = 2", "workers = 1")]);
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    let [first, second] = ["t-1", "t-2"].map(|id| repository.read(&format!(".tickets/{id}.md")));
    std::fs::remove_file(repository.dir().join(".tickets/t-2.md")).expect("it was there");
    running.wait_for("ticket t-2 is gone");
    std::fs::remove_file(repository.dir().join(".tickets/t-1.md")).expect("it was there");
    running.wait_for("ticket t-1 is gone");
    repository.wait_task("t-1", "BLOCKED");
    wait("its processes to be gone", || repository.strays().is_empty().then_some(()));
    // A worker is free, and does not take what has no ticket.
    assert_eq!(repository.status_of("t-2"), "INBOX");
    let why = repository.ok("why t-2");
    assert!(why.contains("the file of ticket `t-2` is gone"), "{why}");
    repository.write(".tickets/t-1.md", &first);
    running.wait_for("ticket t-1 is back");
    running.wait_for("t-1 landed");
    assert_eq!(repository.status_of("t-2"), "INBOX");
    repository.write(".tickets/t-2.md", &second);
    repository.wait_task("t-2", "IN_PROGRESS");
    repository.go("t-2");
    running.wait_for("t-2 landed");
    running.stop();
    repository.ok("verify");
}

/// A branch from before the tickets neither takes them away nor opens closed ones again.
#[test]
fn a_checkout_on_another_branch_changes_nothing_about_tickets_that_main_has() {
    let repository = Repository::new("elsewhere", HELD, &["t-1"]);
    repository.git("branch with-t-1");
    repository.ticket("t-2", &[]);
    repository.commit("Another ticket");
    let running = repository.start("run");
    repository.wait_worker("t-1", "working");
    repository.wait_worker("t-2", "working");
    repository.git("checkout --quiet with-t-1");
    for id in ["t-1", "t-2"] {
        repository.go(id);
        running.wait_for(&format!("{id} landed"));
    }
    let lines = running.stop();
    assert!(!lines.contains("is gone"), "{lines}");
    assert_eq!(repository.ticket_status("t-1"), "open", "the branch has it as it was");
    let said = repository.ok("run --until-idle");
    assert!(said.contains("2 of 2 tasks DONE, 0 landed"), "{said}");
    repository.git("checkout --quiet main");
    assert_eq!(repository.ticket_status("t-1"), "closed");
    let said = repository.ok("run --until-idle");
    assert!(said.contains("2 of 2 tasks DONE, 0 landed"), "{said}");
}
