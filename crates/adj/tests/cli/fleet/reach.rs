//! What agents and tests reach of the machine around them, and in whose name they commit.

use super::super::Ran;
use super::Repository;
use super::background::wait;
use process::sandbox::{Level, Namespaces, support, support_by};
use std::path::PathBuf;
use std::process::Stdio;

/// A stand-in for a home, with something in every place named.
struct Home {
    repository: Repository,
}

impl Home {
    fn new(name: &str, files: &[&str]) -> Home {
        let repository = Repository::empty(&format!("{name}-home"));
        for file in files {
            repository.write(file, &format!("content of {file}\n"));
        }
        Home { repository }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.repository.dir().join(name)
    }

    fn command(&self, of: &Repository, line: &str) -> std::process::Command {
        let mut command = of.command(line);
        // The toolchains of whoever runs the tests lie in another home, and are not what is asked about.
        command
            .env("HOME", self.repository.dir())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn adj(&self, of: &Repository, line: &str) -> Ran {
        self.command(of, line).output().expect("adj runs").into()
    }

    #[track_caller]
    fn ok(&self, of: &Repository, line: &str) -> String {
        let ran = self.adj(of, line);
        assert_eq!(ran.code, 0, "adj {line}\n{}\n{}", ran.stdout, ran.stderr);
        ran.stdout
    }
}

fn scenario(steps: &[&str]) -> String {
    let steps = steps.iter().map(|step| format!("  {step},\n")).collect::<String>();
    format!("[[scenario]]\n[[scenario.step]]\ndo = [\n{steps}  {{ done = true }},\n]\n")
}

const KEYS: &[&str] = &[
    ".ssh/id_ed25519",
    ".gnupg/secring",
    ".aws/credentials",
    ".aws/config",
    ".netrc",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".npmrc",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".mozilla/logins.json",
    ".bash_history",
    ".config/adjutant/environment",
    ".config/adjutant/credentials/claude",
    "own/secret",
];

/// Credentials are hidden from agents and from tests; what the settings name is read, and nothing else is hidden.
#[test]
fn credentials_are_hidden_from_agents_and_tests() {
    if support().level == Level::None {
        crate::not_tried("there is no sandbox here");
        return;
    }
    let home = Home::new("reach-hide", KEYS);
    for file in ["notes.txt", ".cargo/config.toml"] {
        home.repository.write(file, "seen\n");
    }
    let read = "for file in $(cat keys.txt); do cat \"$HOME/$file\" 2>/dev/null; done; cat \"$HOME/notes.txt\" \"$HOME/.cargo/config.toml\"";
    let step = format!("{{ run = '({read}) > read.txt' }}");
    let repository = Repository::new("reach-hide", &scenario(&[&step, "{ commit = \"Read\" }"]), &["t-1"]);
    repository.write("keys.txt", &KEYS.join("\n"));
    // The gate and the landing run this; without a sandbox it would see every one of them.
    repository.write("read.check", &format!("[ \"$({read})\" = \"$(cat expected.txt)\" ]\n"));
    repository.write("expected.txt", "content of .aws/config\nseen\nseen\n");
    repository.set(&[("[test]", "[sandbox]\nhide = [\"~/own\"]\nread = [\"~/.aws/config\"]\n[test]")]);
    home.ok(&repository, "run --until-idle");
    assert_eq!(repository.read("read.txt"), "content of .aws/config\nseen\nseen\n");
    let doctor = home.adj(&repository, "doctor").stdout;
    let hidden =
        doctor.lines().find(|line| line.contains("hidden from agents and tests: ")).unwrap_or_default();
    for place in ["~/.ssh", "~/.netrc", "~/.codex", "~/.cargo/credentials.toml", "~/.bash_history", "~/own"] {
        assert!(hidden.contains(place), "{place}: {doctor}");
    }
    assert!(doctor.contains("not restricted: the network of agents and tests"), "{doctor}");
    repository.check(&["t-1"], "true");
}

/// While a server restarts, whoever listens at its port is sent what is meant for it.
#[test]
fn agents_and_tests_listen_at_their_own_ports_and_not_at_the_servers() {
    if support().abi < 4 {
        crate::not_tried("this kernel's Landlock holds no ports");
        return;
    }
    let free =
        || std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
    let (server, fixed, given) = (free(), free(), free());
    // Below what the system gives to anyone, and nobody's.
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("the range");
    let first: u16 = range.split_whitespace().next().and_then(|first| first.parse().ok()).expect("a number");
    let others = first - 1;
    // The number is put in by the shell, which knows the block.
    let listen = |port: &str| {
        let probe = crate::sandbox::probe("listen PORT").replace("PORT", &format!("'\"{port}\"'"));
        format!("{probe} > /dev/null 2>> said.txt && echo yes || echo no")
    };
    let tries = ["$ADJ_PORT_BASE", "$((ADJ_PORT_BASE+2))", "0", &fixed.to_string(), &given.to_string()];
    let tries = tries.map(listen).join("; ");
    let fails = [&server.to_string(), &others.to_string(), "$((ADJ_PORT_BASE+3))"].map(listen).join("; ");
    let step = "{ run = 'sh tries.sh > listened.txt' }";
    let repository = Repository::new("reach-ports", &scenario(&[step, "{ commit = \"Listen\" }"]), &["t-1"]);
    repository.write("tries.sh", &format!("{tries}\n{fails}\n"));
    // The gate and the landing are held to the same.
    repository.write("ports.check", "[ ! -e listened.txt ] || sh tries.sh | cmp - listened.txt\n");
    repository.write(".gitignore", "said.txt\n");
    let settings = format!("[ports]\nblock = 3\n[sandbox]\nports = [{fixed}]\n[test]");
    repository.set(&[("[test]", &settings)]);
    let fleet = repository.start(&format!("run --serve --port {server}"));
    fleet.wait_for("t-1 landed");
    fleet.stop();
    assert_eq!(repository.git("show main:listened.txt"), "yes\nyes\nyes\nyes\nyes\nno\nno\nno");
    for wrong in [format!("ports = [{}]", 4600), "ports = [80]".to_owned(), "ports = [\"3000\"]".to_owned()] {
        repository.set(&[(&format!("ports = [{fixed}]"), &wrong)]);
        let checked = repository.adj("config check");
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(checked.code != 0 && said.contains("sandbox.ports"), "{wrong}: {said}");
        repository.set(&[(&wrong, &format!("ports = [{fixed}]"))]);
    }
}

/// What Landlock alone does not hold: modes and times of files outside, shared memory, sockets.
#[test]
fn nothing_outside_the_tree_is_changed_in_any_way_and_sockets_are_out_of_sight() {
    if !support().namespaces {
        crate::not_tried("there are no namespaces here");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    let home = Home::new("reach-modes", &[".ssh/id", "notes.txt"]);
    let socket = home.at("agent.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let left = format!("/dev/shm/adj-reach-{}", std::process::id());
    let tries = format!(
        "{{ run = 'tries() {{ if \"$@\" 2>/dev/null; then echo \"yes $1\"; else echo \"no $1\"; fi >> tried.txt; }}; \
         tries chmod 777 \"$HOME/.ssh\"; tries touch -d 2001-01-01 \"$HOME/notes.txt\"; tries chmod 0 {git}/refs; \
         tries test -S {}; tries cp tried.txt {left}; tries test -e {left}' }}",
        socket.display(),
        git = std::env::temp_dir().join(format!("adj-reach-modes-{}/.git", std::process::id())).display(),
    );
    let repository = Repository::new("reach-modes", &scenario(&[&tries, "{ commit = \"Tried\" }"]), &["t-1"]);
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let before = mode(&home.at(".ssh"));
    let mut run = home.command(&repository, "run --until-idle");
    let ran: Ran = run.env("SSH_AUTH_SOCK", &socket).output().expect("adj runs").into();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(repository.read("tried.txt"), "no chmod\nno touch\nno chmod\nno test\nyes cp\nyes test\n");
    assert_eq!(mode(&home.at(".ssh")), before);
    assert!(!std::path::Path::new(&left).exists(), "shared memory is private");
    let mut doctor = home.command(&repository, "doctor");
    let doctor: Ran = doctor.env("SSH_AUTH_SOCK", &socket).output().expect("adj runs").into();
    assert!(
        doctor.stdout.contains("hidden sockets: ") && doctor.stdout.contains("ssh-agent (~/agent.sock)"),
        "{}",
        doctor.stdout
    );
}

/// Where we may make no namespaces, `bwrap` may: the same is held in them, and people hear who made them.
#[test]
fn bubblewrap_holds_agents_and_tests_as_our_own_namespaces_do() {
    use std::os::unix::net::UnixListener;
    let by_bubblewrap = support_by(Namespaces::Bubblewrap);
    let home = Home::new("reach-bwrap", &[".ssh/id", "notes.txt"]);
    let socket = home.at("agent.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let left = format!("/dev/shm/adj-bwrap-{}", std::process::id());
    let tries = format!(
        "{{ run = 'tries() {{ if \"$@\" 2>/dev/null; then echo \"yes $1\"; else echo \"no $1\"; fi >> tried.txt; }}; \
         tries touch \"$HOME/new\"; tries cat \"$HOME/.ssh/id\"; tries chmod 777 \"$HOME/.ssh\"; tries touch -d 2001-01-01 \"$HOME/notes.txt\"; \
         tries test -S {}; tries cp tried.txt {left}; tries ls /proc/1/root/root; tries unshare -m true; \
         cat /proc/[0-9]*/cmdline | tr \"\\0\" \" \" > seen.txt' }}",
        socket.display(),
    );
    let repository = Repository::new("reach-bwrap", &scenario(&[&tries, "{ commit = \"Tried\" }"]), &["t-1"]);
    // The gate and the landing run this in a sandbox of theirs.
    repository.write("outside.check", "! touch \"$HOME/new\" 2>/dev/null && [ ! -e \"$HOME/.ssh/id\" ]\n");
    repository.set(&[("[test]", "[sandbox]\nnamespaces = \"bubblewrap\"\nnetwork = \"none\"\n[test]")]);
    let ran = home.adj(&repository, "run --until-idle");
    let doctor = home.adj(&repository, "doctor").stdout;
    if !by_bubblewrap.namespaces {
        assert!(doctor.contains("sandbox.namespaces is \"bubblewrap\", and "), "{doctor}");
        assert!(ran.code != 0 && ran.stderr.contains("cannot be disabled here"), "{}", ran.stderr);
        crate::not_tried(&by_bubblewrap.what);
        return;
    }
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let path = by_bubblewrap.bubblewrap.expect("it makes them");
    assert!(doctor.contains(&format!("namespaces (made by {})", path.display())), "{doctor}");
    let tried = repository.read("tried.txt");
    assert_eq!(
        tried, "no touch\nno cat\nno chmod\nno touch\nno test\nyes cp\nno ls\nno unshare\n",
        "{}",
        ran.stdout
    );
    assert!(!home.at("new").exists() && !std::path::Path::new(&left).exists());
    let seen = repository.read("seen.txt");
    assert!(seen.contains("internal script"), "its own: {seen}");
    if by_bubblewrap.processes {
        assert!(!seen.contains("internal keep") && !seen.contains("adj run"), "{seen}");
    }
    repository.check(&["t-1"], "true");
    assert_eq!(repository.strays(), Vec::<String>::new());
}

/// Nobody names these sockets: they are found where they are. What is declared stays.
#[test]
fn sockets_in_the_home_directory_are_hidden_and_doctor_names_those_that_can_be_connected_to() {
    use std::os::unix::net::UnixListener;
    let home = Home::new("reach-sockets", &["tools/x", "declared/x"]);
    let listen = |path: &std::path::Path| {
        let _ = std::fs::remove_file(path);
        UnixListener::bind(path).expect("a socket")
    };
    let outside = std::env::temp_dir().join(format!("adj-reach-{}.sock", std::process::id()));
    let paths = [home.at("agent.sock"), home.at("tools/deep.sock"), home.at("declared/own.sock"), outside];
    let _listeners: Vec<UnixListener> = paths.iter().map(|path| listen(path)).collect();
    let tries: String = paths
        .iter()
        .map(|path| format!("if test -S {}; then echo yes; else echo no; fi >> seen.txt; ", path.display()))
        .collect();
    let step = format!("{{ run = '{tries}' }}");
    let repository =
        Repository::new("reach-sockets", &scenario(&[&step, "{ commit = \"Tried\" }"]), &["t-1"]);
    repository.set(&[("[test]", "[sandbox]\nread = [\"~/declared\"]\n[test]")]);
    let line = |doctor: &str, begin: &str| {
        doctor.lines().find(|line| line.contains(begin)).unwrap_or_default().to_owned()
    };
    if support().namespaces {
        home.ok(&repository, "run --until-idle");
        assert_eq!(repository.read("seen.txt"), "no\nno\nyes\nyes\n");
        let doctor = home.adj(&repository, "doctor").stdout;
        let hidden = line(&doctor, "hidden sockets: ");
        assert!(hidden.contains("~/agent.sock") && hidden.contains("~/tools/deep.sock"), "{doctor}");
        assert!(!hidden.contains("~/declared/own.sock"), "{doctor}");
        let left = line(&doctor, "can connect to these sockets: ");
        assert!(left.contains("~/declared/own.sock"), "{doctor}");
        assert!(!left.contains("~/agent.sock"), "{doctor}");
    }
    repository.set(&[("[sandbox]", "[sandbox]\nmode = \"off\"")]);
    let doctor = home.adj(&repository, "doctor").stdout;
    let left = line(&doctor, "can connect to these sockets: ");
    assert!(left.contains("~/agent.sock") && left.contains("~/declared/own.sock"), "{doctor}");
    let _ = std::fs::remove_file(&paths[3]);
}

/// `strict`: system, toolchains, tree and what the settings name, and nothing else that is somebody's.
#[test]
fn strict_lets_nothing_be_read_but_system_tree_and_declared_places() {
    let home = Home::new("reach-strict", &["notes.txt", "declared/x", ".ssh/id", ".local/bin/tool"]);
    let read = "for file in notes.txt declared/x .ssh/id .local/bin/tool; do cat \"$HOME/$file\" 2>/dev/null; done; \
                cat ../../adj-reach-strict-*/adjutant.toml 2>/dev/null; git --version >/dev/null && echo git; test -r /etc/passwd && echo system";
    let step = format!("{{ run = '({read}) > read.txt' }}");
    let repository = Repository::new("reach-strict", &scenario(&[&step, "{ commit = \"Read\" }"]), &["t-1"]);
    repository.set(&[("[test]", "[sandbox]\nmode = \"strict\"\nread = [\"~/declared\"]\n[test]")]);
    let ran = home.adj(&repository, "run --until-idle");
    if support().level != Level::Full {
        assert_ne!(ran.code, 0);
        assert!(
            ran.stderr.contains("sandbox.mode is \"strict\", and the sandbox is not complete here"),
            "{}",
            ran.stderr
        );
        crate::not_tried("the sandbox is not complete here");
        return;
    }
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = repository.read("read.txt");
    assert_eq!(read, "content of declared/x\ncontent of .local/bin/tool\ngit\nsystem\n", "{read}");
    repository.check(&["t-1"], "sh tests.sh");
}

/// Tests have a loopback of their own and nobody else on it; agents have the network that there is.
#[test]
fn tests_have_no_network_where_the_settings_say_so() {
    let devices = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d \" \" | sort";
    let step = format!("{{ run = '{devices} > agents.txt' }}");
    let repository = Repository::new("reach-network", &scenario(&[&step, "{ commit = \"Look\" }"]), &["t-1"]);
    repository.write("network.check", &format!("[ \"$({devices})\" = lo ]\n"));
    repository.set(&[("[test]", "[sandbox]\nnetwork = \"none\"\n[test]")]);
    let ran = repository.adj("run --until-idle");
    if !support().namespaces {
        assert!(ran.stderr.contains("the network of tests cannot be disabled here"), "{}", ran.stderr);
        crate::not_tried("there are no namespaces here");
        return;
    }
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ours = std::process::Command::new("sh").args(["-c", devices]).output().expect("sh runs").stdout;
    assert_eq!(repository.read("agents.txt"), String::from_utf8_lossy(&ours));
    assert!(repository.adj("doctor").stdout.contains("not restricted: the network of agents"));
}

/// A system that lets nobody make namespaces, made by one: none more may be made in it.
#[test]
fn a_system_without_namespaces_is_said_with_what_is_not_held() {
    let repository =
        Repository::new("reach-without", &scenario(&["{ write = \"a\", text = \"a\\n\" }"]), &["t-1"]);
    let without = |line: &str| -> Option<Ran> {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"";
        let mut command = std::process::Command::new("unshare");
        command.args(["-Ur", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_adj")]).args(line.split(' '));
        command.current_dir(repository.dir()).env("ADJ_USER", "tester");
        let ran: Ran = command.output().ok()?.into();
        (!ran.stderr.contains("unshare") && !ran.stderr.contains("max_user_namespaces: ")).then_some(ran)
    };
    // Where nobody may make the first one either, the other tests have seen it.
    let Some(doctor) = without("doctor") else {
        crate::not_tried("nobody can make a namespace in which no more can be made");
        return;
    };
    let said = "no namespaces (user.max_user_namespaces does not allow one more), so modes, owners and times";
    assert!(doctor.stdout.contains(said), "{}{}", doctor.stdout, doctor.stderr);
    let ran = without("run --until-idle").expect("as before");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("the sandbox has gaps: Landlock holds"), "{}", ran.stdout);
    repository.set(&[("[fleet]", "[fleet]\nisolation = \"worktree\"")]);
    let shared = "each can move the branches of other agents, and can delete objects in it";
    for line in ["doctor", "run --until-idle"] {
        let ran = without(line).expect("as before");
        assert!(ran.stdout.contains(shared), "{line}: {}", ran.stdout);
    }
    repository.set(&[("[test]", "[sandbox]\nmode = \"strict\"\n[test]")]);
    let ran = without("run --until-idle").expect("as before");
    assert!(ran.code != 0 && ran.stderr.contains("sandbox.mode is \"strict\""), "{}", ran.stderr);
}

/// An agent in a worktree commits, and reaches nothing of the user's git directory but what that takes.
#[test]
fn an_agent_in_a_worktree_moves_its_own_branch_and_no_other() {
    if support().level == Level::None {
        crate::not_tried("there is no sandbox here");
        return;
    }
    let tries = "{ run = 'tries() { name=$1; shift; if \"$@\" 2>/dev/null; then echo \"yes $name\"; else echo \"no $name\"; fi >> tried.txt; }; \
                 git commit -q --allow-empty -m Mine; tries main git update-ref refs/heads/main HEAD; tries delete git branch -D keep; \
                 tries config git config core.fsmonitor ./evil; tries hook touch \"$(git rev-parse --git-common-dir)/hooks/planted\"; \
                 tries other git update-ref refs/heads/agent/B-t-2 HEAD; tries new git checkout -q -b agent/mine; \
                 git add -A; tries commit git commit -q -m Tried' }";
    let repository =
        Repository::new("reach-worktree", &scenario(&[tries, "{ commit = \"More\" }"]), &["t-1"]);
    repository.set(&[("[fleet]", "[fleet]\nisolation = \"worktree\"")]);
    repository.git("branch keep");
    repository.git("pack-refs --all");
    repository.git("branch agent/B-t-2");
    let other = repository.git("rev-parse agent/B-t-2");
    let config = repository.read(".git/config");
    let said = repository.ok("run --until-idle");
    let tried = repository.read("tried.txt");
    let held = tried.replace("yes other\nyes new\n", "");
    assert_eq!(held, "no main\nno delete\nno config\nno hook\nyes commit\n");
    if support().namespaces {
        // In its own folder of branches it may do as it likes: nobody else sees it, and where it stands is its work.
        assert_eq!(repository.git("rev-parse agent/B-t-2"), other, "{tried}");
        assert!(!repository.git_says("rev-parse --verify --quiet agent/mine"));
    } else {
        assert!(said.contains("can move the branches of other agents"), "{said}");
    }
    assert_eq!(repository.read(".git/config"), config);
    assert_eq!(
        repository.git("log --format=%an%x20%ae -1 main^2"),
        "player (Adjutant) player@adjutant.localhost"
    );
    repository.check(&["t-1"], "sh tests.sh");
}

/// A person who signs, and a program that signs for them unless it is locked.
const SIGNER: &str = r#"#!/bin/sh
cat > /dev/null
[ -e "$(dirname "$0")/locked" ] && { echo "gpg: signing failed: No pinentry" >&2; exit 2; }
echo "[GNUPG:] SIG_CREATED " >&2
printf -- '-----BEGIN PGP SIGNATURE-----\n\n%s\n-----END PGP SIGNATURE-----\n' "$(od -An -N8 -tx1 /dev/urandom | tr -d ' ')"
"#;

fn signing_home(name: &str) -> Home {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new(name, &[]);
    home.repository.write("sign", SIGNER);
    let program = home.at("sign");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let config = format!(
        "[user]\n\tname = Pat Person\n\temail = pat@example.com\n\tsigningkey = PAT\n[commit]\n\tgpgsign = true\n[tag]\n\tgpgsign = true\n\
         [gpg]\n\tprogram = {}\n",
        program.display()
    );
    home.repository.write(".gitconfig", &config);
    home
}

const COMMITS: &str = "{ run = 'echo x > {task}.txt && git add -A && git commit -q -m \"By {task}\" && git tag -m t v-{task}' }";

/// Agents commit as themselves and unsigned, the person signs what lands; a key that is locked holds the landing.
#[test]
fn agents_commit_unsigned_as_themselves_and_merges_are_signed_where_the_person_signs() {
    let home = signing_home("reach-sign");
    let repository = Repository::new("reach-sign", &scenario(&[COMMITS]), &["t-1"]);
    repository.set(&[
        ("[test]", "[limits]\ncheckout = \"1s\"\n[test]"),
        ("adapter = \"script\"", "adapter = \"script\"\nauthor = \"Cody <cody@example.com>\""),
    ]);
    home.repository.write("locked", "");
    let mut running = home.command(&repository, "run").stdout(Stdio::null()).spawn().expect("adj runs");
    repository.wait_task("t-1", "REVIEW");
    wait("it is held up", || {
        let task = repository.task("t-1");
        task["heldUp"].as_str().filter(|why| why.contains("signing failed: No pinentry")).map(|_| ())
    });
    std::fs::remove_file(home.at("locked")).expect("it was there");
    repository.wait_task("t-1", "DONE");
    repository.ok("stop");
    assert!(running.wait().expect("it ends").success());
    let log = repository.git("log --format=%an|%ae|%cn|%ce main^2 -1");
    assert_eq!(log, "Cody|cody@example.com|Pat Person|pat@example.com");
    assert!(!repository.git("cat-file commit main^2").contains("gpgsig"), "an agent signs nothing");
    let merge = repository.git("cat-file commit main");
    assert!(merge.contains("gpgsig -----BEGIN PGP SIGNATURE-----"), "{merge}");
    assert!(merge.contains("author Pat Person <pat@example.com>"), "{merge}");
    let said = repository.git("log --format=%B -1 main");
    assert_eq!(said, "t-1: Do t-1\n\nWrite it.\n\nTask: t-1\nAgent: player");
    repository.check(&["t-1"], "true");
}

/// The project says whether the person stands in an agent's commits, and how.
#[test]
fn the_settings_say_how_a_person_is_credited() {
    for (credit, committer, trailer) in [
        ("co-author", "player (Adjutant)", "Co-authored-by: Pat Person <pat@example.com>"),
        ("none", "player (Adjutant)", ""),
        ("committer", "Pat Person", ""),
    ] {
        let home = signing_home(&format!("reach-credit-{credit}"));
        let left_over = "{ write = \"left.txt\", text = \"left\\n\" }";
        let name = format!("reach-credit-{credit}");
        let repository = Repository::new(&name, &scenario(&[COMMITS, left_over]), &["t-1"]);
        repository.set(&[("[fleet]", &format!("[project]\ncredit = \"{credit}\"\n[fleet]"))]);
        home.ok(&repository, "run --until-idle");
        for commit in ["main^2", "main^2^"] {
            let log =
                repository.git(&format!("log --format=%an|%cn|%(trailers:key=Co-authored-by) -1 {commit}"));
            assert_eq!(log.trim(), format!("player (Adjutant)|{committer}|{trailer}"), "{credit} {commit}");
        }
    }
}

/// A rule about commands does not ask because of what a commit's message says.
#[test]
fn a_message_that_names_a_command_asks_nobody() {
    let calls = [
        "git commit -m 'Add pseudo code'",
        "git add -A && git commit -m \\\"Say when to git push\\\"",
        "grep -r 'pseudo code' .",
    ];
    let mut steps: Vec<String> =
        calls.iter().map(|call| format!("{{ ask = \"Bash\", argument = \"{call}\" }}")).collect();
    steps.push("{ write = \"a.txt\", text = \"a\\n\" }".to_owned());
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let repository = Repository::new("reach-words", &scenario(&steps), &["t-1"]);
    repository.ok("run --until-idle");
    assert_eq!(repository.events("approval_asked"), 0);
    let repository = Repository::new(
        "reach-words-red",
        &scenario(&["{ ask = \"Bash\", argument = \"git commit -m 'x' && sudo make install\" }"]),
        &["t-1"],
    );
    let running = repository.start("run");
    repository.wait_task("t-1", "NEEDS_APPROVAL");
    running.stop();
}
