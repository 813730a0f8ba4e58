//! What an agent and its tests may use of the machine: too much is ended and said, and nobody else notices.

use super::{Ran, Repository};

/// One forks, one eats, and one does its work.
const GREEDY: &str = r#"
[[scenario]]
task = "t-forks"
[[scenario.step]]
do = [ { run = "for i in $(seq 150); do sleep 3 & done; wait" }, { write = "forks.txt", text = "x\n" }, { done = true } ]
[[scenario.step]]
do = [ { run = "for i in $(seq 150); do sleep 3 & done; wait" }, { write = "forks.txt", text = "x\n" }, { done = true } ]
[[scenario]]
task = "t-eats"
[[scenario.step]]
do = [ { run = "(head -c 400000000 /dev/zero; sleep 3) | tail | wc -c" }, { write = "eats.txt", text = "x\n" }, { done = true } ]
[[scenario.step]]
do = [ { run = "(head -c 400000000 /dev/zero; sleep 3) | tail | wc -c" }, { write = "eats.txt", text = "x\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = "df --output=size -B1 /dev/shm | tail -1 > {task}.shm", quiet = true }, { write = "{task}.txt", text = "x\n" }, { done = true } ]
"#;

#[test]
fn an_agent_that_takes_too_much_is_blocked_with_the_limit_while_others_land() {
    let repository = Repository::new("limits-agent", GREEDY, &["t-forks", "t-eats", "t-fine"]);
    repository.set(&[("[test]", "[limits]\nprocesses = 60\nmemory = \"200 MB\"\n[test]")]);
    repository.set(&[("workers = 2", "workers = 3")]);
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    for (task, limit) in [("t-forks", "limits.processes (60)"), ("t-eats", "limits.memory (200 MB)")] {
        let said = ran.stdout.lines().find(|line| line.contains(&format!("{task} is BLOCKED (limit)")));
        assert!(said.is_some_and(|line| line.contains(limit)), "{}", ran.stdout);
        let why = repository.adj(&format!("why {task}")).stdout;
        assert!(why.contains(limit) && why.contains("raise the limit"), "{why}");
        assert!(why.contains(&format!("adj retry {task}")), "{why}");
    }
    assert!(repository.read(".tickets/t-fine.md").contains("\nstatus: closed\n"), "{}", ran.stdout);
    assert_eq!(repository.strays(), Vec::<String>::new(), "all of it was ended");
    if process::sandbox::support().namespaces {
        let shared: u64 = repository.read("t-fine.shm").trim().parse().expect("a size");
        assert!(shared < 201_000_000, "memory that is a file counts too: {shared}");
    }
    for worker in repository.json("ps").as_array().expect("workers") {
        assert_eq!(worker["status"], "idle", "nobody is held up: {worker}");
    }
    let doctor = repository.adj("doctor").stdout;
    assert!(doctor.contains("60 processes and threads, 200.0 MB of memory"), "{doctor}");

    // The way out that was named.
    repository.set(&[("processes = 60\nmemory = \"200 MB\"", "processes = 600\nmemory = \"2 GB\"")]);
    repository.ok("retry t-forks");
    repository.ok("retry t-eats");
    repository.ok("run --until-idle");
    repository.check(&["t-forks", "t-eats", "t-fine"], "sh tests.sh");
}

/// Its tests are the agent's to mend, so it hears which limit they passed.
#[test]
fn tests_that_take_too_much_are_red_and_the_agent_is_told_the_limit() {
    let scenario = r#"
[[scenario]]
[[scenario.step]]
do = [ { write = "{task}.check", text = "for i in $(seq 150); do sleep 3 & done; wait\n" }, { done = true } ]
[[scenario.step]]
on = "test_failure"
do = [ { write = "{task}.check", text = "true\n" }, { write = "told.txt", text = "{prompt}" }, { done = true } ]
"#;
    let repository = Repository::new("limits-tests", scenario, &["t-1"]);
    repository.set(&[("[test]", "[limits]\nprocesses = 60\n[test]")]);
    repository.ok("run --until-idle");
    let told = repository.read("told.txt");
    assert!(told.contains("`sh tests.sh` had more than limits.processes (60)"), "{told}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// Where the kernel counts the processes of a namespace of users by themselves, it refuses what comes too quickly for whoever
/// looks. Root has no such namespace, so this is an ordinary user's fleet.
#[test]
fn an_ordinary_users_agents_are_refused_more_than_twice_the_limit_by_the_kernel() {
    let scenario =
        GREEDY.replace("df --output=size -B1 /dev/shm | tail -1", "grep 'Max processes' /proc/self/limits");
    let repository = Repository::new("limits-kernel", &scenario, &["t-fine"]);
    repository.set(&[("[test]", "[limits]\nprocesses = 60\n[test]")]);
    let as_user = |program: &str, line: &str| -> Ran {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-user=1000", "--map-group=1000", program]).args(line.split(' '));
        command.current_dir(repository.dir()).env("ADJ_USER", "tester");
        command.output().expect("unshare runs").into()
    };
    // Whether one more can be made in there is for the system to say.
    if as_user("unshare", "--user --mount true").code != 0 {
        crate::not_tried("an ordinary user can make no namespaces here");
        return;
    }
    let ran = as_user(env!("CARGO_BIN_EXE_adj"), "run --until-idle");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let held = repository.read("t-fine.shm");
    assert_eq!(held.split_whitespace().nth(2), Some("184"), "twice the limit and 64: {held}");
}

/// Main's own tests are held to the same limits; what they pass is the reason that is given.
#[test]
fn tests_of_main_that_take_too_much_are_red_with_the_limit() {
    let repository = Repository::new("limits-main", GREEDY, &["t-fine"]);
    repository.set(&[("[test]", "[limits]\nprocesses = 60\n[test]")]);
    repository.write("base.check", "for i in $(seq 150); do sleep 3 & done; wait\n");
    repository.commit("Many processes");
    let ran = repository.adj("run --until-idle");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let why = repository.ok("why t-fine");
    assert!(why.contains("had more than limits.processes (60)"), "{why}\n{}", ran.stdout);
    assert_eq!(repository.strays(), Vec::<String>::new(), "all of it was ended");
}

/// Neither by looking nor by a signal to everybody does an agent reach a process that it did not start.
#[test]
fn an_agent_sees_and_signals_none_but_its_own_processes() {
    let scenario = r#"
[[scenario]]
task = "t-looks"
[[scenario.step]]
do = [
  { run = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done > seen.txt" },
  { run = "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ^ADJ_TASK= | sort -u > whose.txt" },
  { run = "sh everybody.sh" },
]
[[scenario.step]]
do = [ { write = "killed.txt", text = "x\n" }, { done = true } ]
[[scenario]]
[[scenario.step]]
do = [ { run = "sleep 3" }, { write = "other.txt", text = "x\n" }, { done = true } ]
"#;
    let repository = Repository::new("limits-alone", scenario, &["t-looks", "t-other"]);
    let steps = repository.state("steps");
    let script = format!("find {} -name sock > socks.txt\nsleep 300 &\nkill -9 -1\n", steps.display());
    repository.write("everybody.sh", &script);
    repository.commit("A script that ends everybody");
    let lines = repository.ok("run --until-idle");
    repository.check(&["t-looks", "t-other"], "sh tests.sh");
    if !process::sandbox::support().processes {
        assert!(lines.contains("other processes can be seen"), "{lines}");
        crate::not_tried("nobody can have processes of their own here");
        return;
    }
    let seen = repository.read("seen.txt");
    assert!(seen.contains("internal script"), "its own: {seen}");
    for others in ["internal keep", "adj run", "t-other"] {
        assert!(!seen.contains(others), "{others}:\n{seen}");
    }
    assert_eq!(repository.read("whose.txt"), "ADJ_TASK=t-looks\n");
    assert_eq!(repository.read("socks.txt"), "", "no keeper's socket is in sight");
    assert!(repository.dir().join("socks.txt").exists() && repository.dir().join("killed.txt").exists());
}

/// What somebody opened to others is closed when the fleet starts, and people hear of it.
#[test]
fn modes_of_our_own_state_are_mended_and_said() {
    use std::os::unix::fs::PermissionsExt;
    let repository = Repository::new("limits-modes", GREEDY, &["t-fine"]);
    repository.ok("run --until-idle");
    let modes =
        |path: &str| repository.state(path).metadata().expect("it is there").permissions().mode() & 0o7777;
    let set = |path: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(repository.state(path), permissions).expect("it is ours");
    };
    let wrong = [("", 0o777, 0o700), ("token", 0o666, 0o600), ("adjutant.db", 0o666, 0o600)];
    let wrong = wrong.into_iter().chain([("land.git", 0o777, 0o755), ("land.git/refs", 0o022, 0o700)]);
    std::fs::create_dir_all(repository.state("private/left/inner")).expect("a folder");
    for file in ["private/left/inner/file", "index/left", "trees/left"] {
        std::fs::write(repository.state(file), "").expect("a file");
    }
    let deep = [("index/left", 0, 0o600), ("trees/left", 0, 0o600), ("private/left", 0, 0o700)];
    let deep =
        deep.into_iter().chain([("private/left/inner", 0, 0o700), ("private/left/inner/file", 0, 0o600)]);
    let wrong: Vec<_> = wrong.chain(deep).collect();
    for (path, mode, _) in wrong.iter().rev() {
        set(path, *mode);
    }
    repository.ticket("t-more", &[]);
    repository.commit("A ticket");
    let lines = repository.ok("run --until-idle");
    for (path, mode, right) in &wrong {
        assert_eq!(modes(path), *right, "{path}");
        let said = format!("had mode {mode:o}; it is {right:o} again");
        assert!(lines.lines().any(|line| line.contains(path) && line.contains(&said)), "{path}: {lines}");
    }
    repository.check(&["t-fine", "t-more"], "sh tests.sh");
    let again = repository.ok("run --until-idle");
    assert!(!again.contains("had mode"), "{again}");
}

/// A group of the system's that is delegated to whoever is in `here`, as systemd does it for a session. Gone when this is.
struct Delegated(std::path::PathBuf);

impl Delegated {
    /// `None` where the system counts no processes by cgroup v2, or lets us make no group.
    fn new(name: &str) -> Option<Delegated> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let root = std::path::Path::new(mount);
        let group = Delegated(root.join(format!("adj-test-{name}-{}", std::process::id())));
        // Memory may be counted by another system of groups, as on machines that have both versions.
        let hand_on = |dir: &std::path::Path| {
            let _ = std::fs::write(dir.join("cgroup.subtree_control"), "+memory");
            std::fs::write(dir.join("cgroup.subtree_control"), "+pids")
        };
        hand_on(root).and_then(|()| std::fs::create_dir(&group.0)).ok()?;
        std::fs::create_dir(group.here()).and_then(|()| hand_on(&group.0)).ok()?;
        Some(group)
    }

    fn here(&self) -> std::path::PathBuf {
        self.0.join("here")
    }

    /// `adj`, in it.
    fn adj(&self, repository: &Repository, line: &str) -> crate::Ran {
        let mut command = std::process::Command::new("sh");
        let script = format!("echo 0 > {}/cgroup.procs && exec \"$0\" \"$@\"", self.here().display());
        command.args(["-c", &script, env!("CARGO_BIN_EXE_adj")]).args(line.split(' '));
        command.current_dir(repository.dir()).env("ADJ_USER", "tester").env("COLUMNS", "100");
        command.output().expect("adj runs").into()
    }

    /// The groups in it, but for the one that was there.
    fn others(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.path().is_dir() && entry.file_name() != "here");
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for name in self.others().iter().map(String::as_str).chain(["here", ""]) {
            let _ = std::fs::remove_dir(self.0.join(name));
        }
    }
}

/// Where the system counts processes for us, it refuses a step what is over its limit, and the step has a group of its own.
#[test]
fn a_delegated_cgroup_holds_each_step_to_its_limit_and_is_gone_afterwards() {
    let Some(group) = Delegated::new("limits") else {
        let why = "there is no cgroup v2 here that counts processes, or none that we may make groups in";
        // Said by whoever runs the tests, who cannot change it.
        match std::env::var_os("ADJ_WITHOUT_CGROUP_PIDS") {
            Some(_) => println!("not tried: {why}"),
            None => crate::not_tried(why),
        }
        return;
    };
    let scenario = GREEDY.replace(
        "do = [ { run = \"df ",
        "do = [ { run = \"cat /proc/self/cgroup > {task}.cgroup\", quiet = true }, { run = \"df ",
    );
    let repository = Repository::new("limits-group", &scenario, &["t-forks", "t-eats", "t-fine"]);
    repository.set(&[("[test]", "[limits]\nprocesses = 60\nmemory = \"200 MB\"\n[test]")]);
    repository.set(&[("workers = 2", "workers = 3")]);
    let doctor = group.adj(&repository, "doctor").stdout;
    let held = format!("enforced by the kernel, in a cgroup below {}", group.0.display());
    assert!(doctor.contains(&held), "{doctor}");
    let ran = group.adj(&repository, "run --until-idle");
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    for (task, limit) in [("t-forks", "limits.processes (60)"), ("t-eats", "limits.memory (200 MB)")] {
        let said = ran.stdout.lines().find(|line| line.contains(&format!("{task} is BLOCKED (limit)")));
        assert!(said.is_some_and(|line| line.contains(limit)), "{}", ran.stdout);
    }
    let own = repository.read("t-fine.cgroup");
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned();
    let name = group.0.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(own.contains(&format!("{name}/adj-")), "a group of its own: {own}");
    assert_eq!(group.others(), Vec::<String>::new(), "they are gone with their steps");
    // Ended whole: nobody of the step is left, and nobody else was touched.
    assert_eq!(repository.strays(), Vec::<String>::new());
    assert!(repository.read(".tickets/t-fine.md").contains("\nstatus: closed\n"), "{}", ran.stdout);
}
