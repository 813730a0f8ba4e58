//! Keys of `adjutant.toml` that nothing else shows at work. Each has another value than by default, and the fleet does
//! what it would not do without.

use super::Repository;
use super::background::{Fleet, keepers, kill, wait};
use super::policies::{DONE, ON, WRITE, blocked, scenario, waits_for_a_person};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Holds its step, with its token where the test can read it.
pub const HOLDS: &str =
    r#"{ run = 'echo $ADJ_TOKEN > "$TMPDIR/token"; until [ -e "$TMPDIR/go" ]; do sleep 0.05; done' }"#;

impl Repository {
    /// The token of the agent that holds this task.
    #[track_caller]
    pub fn token_of(&self, task: &str) -> String {
        wait("the token of an agent", || {
            let token = self.read(&self.temp(task).join("token"));
            token.ends_with('\n').then(|| token.trim().to_owned())
        })
    }

    /// A token by an agent's name, for one that runs elsewhere. What a run has is for that run alone.
    pub(super) fn token_by_name(&self, name: &str, role: &str) -> String {
        let made = self.json(&format!("token create --name {name} --role {role}"));
        made["token"].as_str().expect("a token").to_owned()
    }

    /// Asks the fleet as an agent does that has a token and no `adj`.
    pub fn post(&self, token: &str, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let mut stream = UnixStream::connect(self.state("socket/adj.sock")).expect("the fleet runs");
        let head = format!(
            "POST /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// How long each timer of this kind was set for, in milliseconds.
    pub fn timers(&self, kind: &str) -> Vec<i64> {
        let path = self.dir().with_extension("timers");
        let _ = std::fs::remove_file(&path);
        self.ok(&format!("export {}", path.display()));
        let text = std::fs::read_to_string(&path).expect("it was exported");
        let _ = std::fs::remove_file(&path);
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let set = records.filter_map(|record| {
            let what = &record["data"]["what"];
            (what["timer"]["timer"] == kind).then(|| Some(what["due"].as_i64()? - record["at"].as_i64()?))
        });
        set.flatten().collect()
    }
}

/// Two services are away, and the one that the run needs comes back.
fn with_one_service_back<'r>(repository: &'r Repository, restore: &str) -> Fleet<'r> {
    repository.write(".gitignore", "model.up\nother.up\n");
    repository.set(&[
        ("workers = 2", &format!("workers = 1\n{restore}")),
        ("adapter = \"script\"", "adapter = \"script\"\nservice = \"model\""),
        (
            "[test]",
            "[services.model]\nhealth = \"test -e model.up\"\n[services.other]\nhealth = \"test -e other.up\"\n\
             [limits]\nhealth_poll = \"1s\"\n[test]",
        ),
    ]);
    let running = repository.start("run");
    running.wait_for("model is unavailable");
    running.wait_for("other is unavailable");
    repository.write("model.up", "");
    running.wait_for("model is available again");
    running
}

#[test]
fn a_run_goes_on_when_all_services_are_back_or_its_own_as_the_settings_say() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), DONE]);
    let repository = Repository::new("settings-restore-all", &text, &["t-1"]);
    let running = with_one_service_back(&repository, "restore = \"all\"");
    let why = repository.ok("why t-1");
    assert!(why.contains("is unavailable"), "it waits for the other one too: {why}");
    repository.write("other.up", "");
    running.wait_for("t-1 landed");
    running.stop();

    let repository = Repository::new("settings-restore-own", &text, &["t-1"]);
    let running = with_one_service_back(&repository, "restore = \"per-provider\"");
    running.wait_for("t-1 landed");
    let lines = running.stop();
    assert!(!lines.contains("other is available again"), "{lines}");
}

/// A service that does not answer in time is away, before the run that waits for another one has waited too long.
#[test]
fn the_settings_say_how_often_services_are_asked_and_how_long_they_may_take_to_answer() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), DONE]);
    let repository = Repository::new("settings-health", &text, &["t-1"]);
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"script\"\nservice = \"model\""),
        (
            "[test]",
            "[services.model]\nhealth = \"false\"\n[services.slow]\nhealth = \"exec sleep 300\"\ntimeout = \"1s\"\n\
             [limits]\nhealth_poll = \"1s\"\nsuspension = \"8s\"\n[test]",
        ),
    ]);
    let running = repository.start("run");
    running.wait_for("slow is unavailable");
    assert!(!running.lines().contains("failed:"), "{}", running.lines());
    running.stop();
}

#[test]
fn a_run_that_waited_for_its_service_as_long_as_the_settings_say_frees_its_worker() {
    let text = scenario(&[&format!("{WRITE}, {{ outage = 529 }}"), DONE]);
    let repository = Repository::new("settings-suspension", &text, &["t-1"]);
    repository.write(".gitignore", "up\n");
    repository.set(&[
        (
            "[test]",
            "[services.model]\nagents = [\"player\"]\nhealth = \"test -e up\"\n[limits]\nhealth_poll = \"1s\"\nsuspension = \"1s\"\n[test]",
        ),
    ]);
    let running = repository.start("run");
    running.wait_for("model is unavailable");
    assert!(!running.lines().contains("the model API is unavailable"), "it is the service of this agent");
    wait("workers that are free", || {
        let workers = repository.json("ps");
        workers.as_array()?.iter().all(|worker| worker["status"] == "idle").then_some(())
    });
    assert_eq!(repository.task("t-1")["status"], "IN_PROGRESS");
    let why = repository.ok("why t-1");
    assert!(why.contains("model"), "{why}");
    repository.write("up", "");
    running.wait_for("t-1 landed");
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

/// Not its own work: that nobody may approve.
#[test]
fn a_lead_approves_what_another_did_where_the_settings_let_it() {
    let text = format!(
        "[[scenario]]\ntask = \"t-lead\"\n[[scenario.step]]\ndo = [ {HOLDS}, {DONE} ]\n{}",
        scenario(&[&format!("{WRITE}, {DONE}")])
    );
    let repository = Repository::new("settings-lead", &text, &["t-lead"]);
    let boss = "[agents.boss]\nadapter = \"script\"\ncommand = [\"scenario.toml\"]\nrole = \"lead\"\n[test]";
    repository.set(&[
        ("agent = \"player\"", "agent = \"boss\""),
        ("workers = 2", "workers = 1"),
        ("review = \"auto\"", "review = \"human\""),
        ("[test]", boss),
    ]);
    let token = repository.token_by_name("boss", "lead");
    let running = repository.start("run");
    repository.token_of("t-lead");
    repository.ok("spawn Ada --agent player");
    repository.ticket("t-1", &[]);
    repository.commit("A ticket");
    repository.wait_task("t-1", "REVIEW");
    let approve = || {
        let mut command = repository.command("review t-1 --approve --note fine");
        command.env("ADJ_TOKEN", &token).output().expect("adj runs")
    };
    assert_eq!(approve().status.code(), Some(3), "by default only a person does");
    repository.set(&[("[test]", "[policy]\nlead_may_complete = true\n[test]")]);
    running.wait_for("adjutant.toml was read again");
    let approved = approve();
    assert!(approved.status.success(), "{}", String::from_utf8_lossy(&approved.stderr));
    running.wait_for("t-1 landed");
    assert_eq!(repository.task("t-1")["status"], "DONE");
    repository.go("t-lead");
    repository.wait_task("t-lead", "REVIEW");
    running.stop();
}

#[test]
fn one_review_more_than_the_settings_allow_blocks_the_task() {
    let text = scenario(&[&format!("{WRITE}, {DONE}"), &format!("{ON}, {{ done = true }}")]);
    let repository = Repository::new("settings-reviews", &text, &["t-1"]);
    repository.set(&[
        ("review = \"auto\"", "review = \"human\""),
        ("[test]", "[policy]\nmax_review_cycles = 1\n[test]"),
    ]);
    waits_for_a_person(&repository);
    repository.ok("review t-1 --changes first");
    waits_for_a_person(&repository);
    assert_eq!(repository.task("t-1")["status"], "REVIEW", "one is allowed");
    repository.ok("review t-1 --changes second");
    blocked(&repository, "t-1", "review_cycles");
}

#[test]
fn a_task_that_lost_as_many_workers_as_the_settings_allow_is_blocked() {
    let text = scenario(&[&format!("{WRITE}, {HOLDS}")]);
    let repository = Repository::new("settings-lost", &text, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nlost_workers = 1\n[test]")]);
    let running = repository.start("run");
    repository.token_of("t-1");
    for keeper in keepers(&repository) {
        kill(keeper);
    }
    repository.wait_task("t-1", "BLOCKED");
    blocked(&repository, "t-1", "lost_workers");
    running.stop();
    assert_eq!(repository.strays(), Vec::<String>::new());
}

#[test]
fn an_agent_from_outside_that_gives_no_sign_of_life_loses_its_task_when_the_settings_say() {
    let repository = Repository::new("settings-outside", &scenario(&[&format!("{HOLDS}, {DONE}")]), &["t-1"]);
    repository.set(&[
        ("workers = 2", "workers = 1"),
        ("[test]", "[limits]\noutside_lease = \"1s\"\nlost_workers = 1\n[test]"),
    ]);
    let token = repository.token_by_name("player", "specialist");
    let running = repository.start("run");
    repository.token_of("t-1");
    // The only worker has its hands full.
    repository.ticket("t-2", &[]);
    repository.commit("A ticket");
    repository.wait_task("t-2", "INBOX");
    repository.ok("task assign t-2 player");
    repository.ok("task move t-2 IN_PROGRESS --plan a --plan b --plan c");
    let answer = repository.post(&token, "/runs", &json!({ "task": "t-2", "prompt": "do it" }));
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    repository.wait_task("t-2", "BLOCKED");
    blocked(&repository, "t-2", "lost_workers");
    let shown = repository.ok("task show t-2");
    assert!(shown.contains("gave no sign of life"), "{shown}");
    repository.go("t-1");
    running.stop();
}

#[test]
fn a_connected_agent_that_misses_its_heartbeats_loses_its_task_when_the_settings_say() {
    let repository =
        Repository::new("settings-heartbeat", &scenario(&[&format!("{HOLDS}, {DONE}")]), &["t-1"]);
    repository.set(&[
        ("workers = 2", "workers = 1"),
        ("[test]", "[limits]\nheartbeat = \"1s\"\noutside_lease = \"10m\"\nlost_workers = 1\n[test]"),
    ]);
    let token = repository.token_by_name("player", "specialist");
    let running = repository.start("run");
    repository.token_of("t-1");
    repository.ticket("t-2", &[]);
    repository.commit("A ticket");
    repository.wait_task("t-2", "INBOX");
    repository.ok("task assign t-2 player");
    repository.ok("task move t-2 IN_PROGRESS --plan a --plan b --plan c");
    let connected = repository.post(&token, "/agents/player/connect", &json!({}));
    assert!(connected.contains("\"state\":\"IDLE\""), "{connected}");
    let other = repository.post(&token, "/agents/other/connect", &json!({}));
    assert!(other.starts_with("HTTP/1.1 403"), "an agent speaks for itself: {other}");
    let answer = repository.post(&token, "/runs", &json!({ "task": "t-2", "prompt": "do it" }));
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    repository.wait_task("t-2", "BLOCKED");
    blocked(&repository, "t-2", "lost_workers");
    let late = repository.post(&token, "/agents/player/disconnect", &json!({}));
    assert!(late.contains("NOT_CONNECTED"), "{late}");
    repository.go("t-1");
    running.stop();
}

/// What only we need is tried for as long as it takes; after so many tries somebody is told.
#[test]
fn the_settings_say_after_how_many_tries_a_person_is_told() {
    let repository = Repository::new("settings-tries", &scenario(&[&format!("{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[
        ("review = \"auto\"", "review = \"human\""),
        ("[test]", "[limits]\neffect_tries = 2\n[test]"),
    ]);
    let running = repository.start("run");
    repository.wait_task("t-1", "REVIEW");
    // As a git of the user's leaves it that was killed.
    let branch = repository.git("for-each-ref --format=%(refname) refs/heads/agent");
    let lock = format!(".git/{branch}.lock");
    repository.write(&lock, "");
    repository.ok("merge t-1");
    wait("a word about what fails", || {
        repository.ok("task show t-1").contains("delete_branch has failed 2 times").then_some(())
    });
    std::fs::remove_file(repository.dir().join(lock)).expect("it is still there");
    wait("the end of the branch", || repository.git("branch --list agent/*").is_empty().then_some(()));
    running.stop();
    repository.check(&["t-1"], "sh tests.sh");
}

#[test]
fn the_settings_say_how_many_answers_are_kept_for_keys() {
    let repository = Repository::new("settings-kept", "", &[]);
    repository.set(&[("[test]", "[limits]\nkept_answers = 1\n[test]")]);
    repository.ok("run --until-idle");
    let add = |key: &str| repository.ok(&format!("task add {key} --key {key}"));
    let first = add("one");
    assert_eq!(add("one"), first, "the same key has the same answer");
    let second = add("two");
    assert_eq!(add("two"), second);
    assert_ne!(add("one"), first, "the older answer had to go");
}

/// All of them at once: each writes down what it was told.
#[test]
fn an_agent_is_told_everything_in_the_words_of_the_settings() {
    let step = |on: &str, rest: &str| {
        format!(
            "[[scenario.step]]\non = \"{on}\"\ndo = [ {{ write = \"told-{on}.txt\", text = \"{{prompt}}\" }}, {rest} ]\n"
        )
    };
    let text = format!(
        "[[scenario]]\n{}{}{}",
        step("init", r#"{ commit = "Begin" }, { say = "on" }"#),
        step("step", &format!(r#"{{ write = "shared.txt", text = "mine\n" }}, {HOLDS}, {DONE}"#)),
        step(
            "merge_conflict",
            r#"{ commit = "Told" }, { merge = "{main}", take = "ours" }, { done = true }"#
        ),
    );
    let repository = Repository::new("settings-words", &text, &["t-1"]);
    let mut prompts = String::new();
    for kind in ["init", "step", "merge_conflict"] {
        let all = "{{task}}\n{{main}}\n{{output}}\n{{notes}}";
        repository.write(&format!("own-{kind}.md"), &format!("{kind} in my own words for {all}\n"));
        prompts += &format!("{kind} = \"own-{kind}.md\"\n");
    }
    repository.set(&[("[test]", &format!("[prompts]\n{prompts}[test]"))]);
    let running = repository.start("run");
    repository.token_of("t-1");
    repository.write("shared.txt", "theirs\n");
    repository.commit("Theirs");
    repository.go("t-1");
    running.wait_for("t-1 landed");
    running.stop();
    for kind in ["init", "step", "merge_conflict"] {
        let told = repository.read(&format!("told-{kind}.txt"));
        assert!(told.starts_with(&format!("{kind} in my own words for t-1\n")), "{kind}: {told}");
    }
    assert_eq!(repository.read("shared.txt"), "mine\n");
    let told = repository.read("told-merge_conflict.txt");
    assert!(told.contains("\norigin/main\n"), "main by the name that it has in the tree: {told}");
    assert_eq!(told.matches("conflicts in: shared.txt").count(), 1, "it is said once: {told}");
}

/// Turns that cost nothing, one more than an agent of the usual kind has.
#[test]
fn a_conversational_agent_has_more_turns_than_one_for_tasks() {
    let turns = "{ turn = \"hm\" }, ".repeat(50);
    let repository =
        Repository::new("settings-kind", &scenario(&[&format!("{turns}{WRITE}, {DONE}")]), &["t-1"]);
    repository.set(&[("adapter = \"script\"", "adapter = \"script\"\nkind = \"conversational\"")]);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
}

/// Any program, and what the settings have to say to it before everything else.
#[test]
fn a_command_is_run_as_the_settings_say_and_told_the_agents_own_prompt() {
    let repository = Repository::new("settings-command", "", &["t-1"]);
    let line =
        "cat > told.txt; git add -A; git -c user.name=a -c user.email=a@b.invalid commit -qm Told; echo DONE";
    repository.set(&[
        ("adapter = \"script\"", "adapter = \"command\"\nprompt = \"Be brief.\""),
        ("[\"scenario.toml\"]", &format!("[\"sh\", \"-c\", \"{line}\"]")),
    ]);
    repository.ok("run --until-idle");
    repository.check(&["t-1"], "sh tests.sh");
    let told = repository.read("told.txt");
    assert!(told.starts_with("Be brief.\n") && told.contains("Do t-1"), "{told}");
}

/// A session that is not taken up again is told everything anew, in each step.
#[test]
fn sessions_are_begun_anew_where_the_settings_say_that_they_cannot_be_taken_up() {
    let text = "[[scenario]]\n[[scenario.step]]\non = \"init\"\ndo = [ { append = \"sessions.txt\", text = \"{session}\\n\" }, { commit = \"Go on\" }, { say = \"on\" } ]\n";
    let repository = Repository::new("settings-resume", text, &["t-1"]);
    repository.set(&[
        ("workers = 2", "workers = 1\nmax_steps = 3"),
        ("adapter = \"script\"", "adapter = \"script\"\nresume = false"),
    ]);
    let lines = waits_for_a_person(&repository);
    assert!(!lines.contains("retried with a new session"), "no step fails for it:\n{lines}");
    let tip = repository.git("rev-parse refs/adjutant/tasks/t-1");
    let sessions = repository.git(&format!("show {tip}:sessions.txt"));
    let each: BTreeSet<&str> = sessions.lines().collect();
    assert_eq!((sessions.lines().count(), each.len()), (3, 3), "{sessions}");
}

#[test]
fn tickets_are_read_from_the_folder_that_the_settings_name_and_from_none_where_they_say_so() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("settings-tickets", &text, &["t-unseen"]);
    let ticket = repository.read(".tickets/t-unseen.md").replace("t-unseen", "t-1");
    repository.write("todo/t-1.md", &ticket);
    repository.set(&[("[test]", "[tickets]\ndir = \"todo\"\n[test]")]);
    repository.ok("run --until-idle");
    assert!(repository.read("todo/t-1.md").contains("status: closed"));
    assert_eq!(repository.adj("task show t-unseen").code, 4, "it is not in that folder");

    repository.write("todo/t-2.md", &ticket.replace("t-1", "t-2"));
    repository.set(&[("dir = \"todo\"", "dir = \"todo\"\nsource = \"none\"")]);
    repository.ok("run --until-idle");
    assert_eq!(repository.adj("task show t-2").code, 4, "nobody reads tickets");
}

#[test]
fn more_tickets_than_the_settings_allow_are_not_read_and_said() {
    let text = scenario(&[&format!("{WRITE}, {DONE}")]);
    let repository = Repository::new("settings-many", &text, &["t-1", "t-2"]);
    repository.set(&[("[test]", "[limits]\ntickets = 1\n[test]")]);
    let lines = repository.ok("run --until-idle");
    assert!(lines.contains("raise limits.tickets"), "{lines}");
    assert_eq!(repository.task("t-1")["status"], "DONE");
    assert_eq!(repository.adj("task show t-2").code, 4);
}

/// Nothing of our own folder can be read by an agent, but for what the settings open.
#[test]
fn a_sandboxed_agent_reads_what_is_hidden_where_the_settings_let_it() {
    let step = r#"{ run = 'for name in open shut; do cat STATE/$name/x; done > {task}.txt' }"#;
    let repository = Repository::new("settings-read", "", &["t-1"]);
    let step = step.replace("STATE", &repository.state("").display().to_string());
    repository.write("scenario.toml", &scenario(&[&format!("{step}, {DONE}")]));
    repository.commit("A scenario");
    for name in ["open", "shut"] {
        repository.write(&repository.state(&format!("{name}/x")), &format!("{name}\n"));
    }
    let open = repository.state("open");
    repository.set(&[("[test]", &format!("[sandbox]\nread = [\"{}\"]\n[test]", open.display()))]);
    repository.ok("run --until-idle");
    let confined = process::sandbox::support().level != process::sandbox::Level::None;
    assert_eq!(repository.read("t-1.txt"), if confined { "open\n" } else { "open\nshut\n" });
}

/// The second one to come waits until the first one's block is free again.
#[test]
fn no_more_runs_than_the_settings_have_blocks_of_ports_are_at_work() {
    let repository =
        Repository::new("settings-ports", &scenario(&[&format!("{WRITE}, {HOLDS}, {DONE}")]), &["t-1"]);
    repository.set(&[("[test]", "[ports]\nfirst = 22000\nblocks = 1\n[test]")]);
    let running = repository.start("run");
    repository.token_of("t-1");
    repository.ticket("t-2", &[]);
    repository.commit("A ticket");
    running.wait_for("raise ports.blocks");
    repository.go("t-1");
    running.wait_for("t-1 landed");
    repository.go("t-2");
    running.wait_for("t-2 landed");
    running.stop();
    repository.check(&["t-1", "t-2"], "sh tests.sh");
}
