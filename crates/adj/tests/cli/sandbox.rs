//! Programs in their sandbox, as real processes under a real keeper.
//!
//! On a kernel without Landlock there is nothing to hold them; then only what must work is asked. Where there are
//! namespaces, all of it is asked again with a view of the program's own around it; and once more where bubblewrap makes
//! that view.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::keeper::Kept;
use process::keeper::{Exit, Reason, Sandbox, Spec};
use process::sandbox::{self, Level, Mode, Namespaces, Network, Rules, Support};

/// A project with a hidden state directory, two agents' trees, and a program in the first of them.
struct Project {
    kept: Kept,
    way: Way,
}

/// What holds a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Landlock,
    Namespaces,
    Bubblewrap,
}

impl Way {
    fn support(self) -> Option<Support> {
        let by = match self {
            Way::Landlock => return None,
            Way::Namespaces => Namespaces::Own,
            Way::Bubblewrap => Namespaces::Bubblewrap,
        };
        Some(sandbox::support_by(by)).filter(|support| support.namespaces)
    }
}

/// With Landlock alone, and with a view by everybody who can make one here.
fn ways() -> Vec<Way> {
    let views = views();
    if !views.contains(&Way::Bubblewrap) {
        crate::not_tried(&sandbox::support_by(Namespaces::Bubblewrap).what);
    }
    [Way::Landlock].into_iter().chain(views).collect()
}

fn views() -> Vec<Way> {
    [Way::Namespaces, Way::Bubblewrap].into_iter().filter(|way| way.support().is_some()).collect()
}

impl Project {
    fn new(way: Way) -> Project {
        let kept = Kept::new();
        for name in
            ["project/.adjutant", "project/agents/mine", "project/agents/other", "project/src", "temp"]
        {
            std::fs::create_dir_all(kept.root.join(name)).unwrap();
        }
        for name in [".adjutant/token", "agents/other/work.rs", "src/lib.rs", "Cargo.toml"] {
            std::fs::write(kept.root.join("project").join(name), "content\n").unwrap();
        }
        Project { kept, way }
    }

    fn spec(&self, script: &str) -> Spec {
        let at = |name: &str| self.kept.root.join(name);
        let mut spec = self.kept.script(script);
        spec.cwd = at("project/agents/mine");
        for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            spec.env.extend(std::env::var(name).map(|value| (name.to_string(), value)));
        }
        spec.env.insert("TMPDIR".into(), at("temp").display().to_string());
        spec.env.insert("P".into(), at("project").display().to_string());
        let support = self.way.support();
        spec.sandbox = Some(Sandbox {
            mode: Mode::Auto,
            rules: Rules {
                read_write: vec![at("project/agents/mine"), at("temp")],
                read_only: vec![at("project/.adjutant/land.git/objects")],
                hidden: vec![at("project/.adjutant"), at("project/agents")],
                namespaces: support.is_some(),
                processes: support.as_ref().is_some_and(|support| support.processes),
                bubblewrap: support.and_then(|support| support.bubblewrap),
                ..Rules::default()
            },
        });
        spec
    }

    fn run(&self, script: &str) -> (Exit, String) {
        let exit = self.kept.run(&self.spec(script));
        let said = [self.kept.out(), self.kept.err()].concat();
        (exit, String::from_utf8_lossy(&said).into_owned())
    }
}

/// The script succeeds in the sandbox.
#[track_caller]
fn works(script: &str) {
    for way in ways() {
        let (exit, said) = Project::new(way).run(script);
        assert!(exit.succeeded(), "{way:?}: {script}\n{exit:?}\n{said}");
    }
}

/// The script fails in the sandbox because something is denied, and works without it.
#[track_caller]
fn is_denied(script: &str) {
    is_denied_in(script, &ways());
}

/// As [`is_denied`], with namespaces only: Landlock alone does not hold it.
#[track_caller]
fn is_denied_by_namespaces(script: &str) {
    is_denied_in(script, &ways()[1..]);
}

#[track_caller]
fn is_denied_in(script: &str, ways: &[Way]) {
    let project = Project::new(Way::Landlock);
    let mut open = project.spec(script);
    open.sandbox = Some(Sandbox { mode: Mode::Off, ..open.sandbox.unwrap() });
    let exit = project.kept.run(&open);
    assert!(
        exit.succeeded(),
        "without the sandbox: {script}\n{}",
        String::from_utf8_lossy(&project.kept.err())
    );
    if sandbox::support().level == Level::None {
        crate::not_tried("there is no sandbox here");
        return;
    }
    for &way in ways {
        let (exit, said) = Project::new(way).run(script);
        let denied = [
            "ermission denied",
            "not permitted",
            "ross-device",
            "Read-only file system",
            "No such file",
            "nonexistent",
        ];
        let is_denied = denied.iter().any(|why| said.contains(why));
        assert!(!exit.succeeded() && is_denied, "{way:?}: {script}\n{exit:?}\n{said}");
    }
}

#[test]
fn the_own_tree_and_the_temporary_directory_can_be_changed() {
    works("echo x > file && mkdir -p a/b && mv file a/b/c && ln a/b/c d && ln -s d e && cat e && rm -r a");
    works("echo x > \"$TMPDIR/x\" && mv \"$TMPDIR/x\" here && f=$(mktemp) && echo y > $f && rm $f");
    works("mkfifo pipe && (echo through > pipe &) && read -r x < pipe && test $x = through");
}

#[test]
fn nothing_else_can_be_changed() {
    for script in [
        "echo x > $P/src/lib.rs",
        "echo x >> $P/Cargo.toml",
        ": > $P/src/lib.rs",
        "truncate -s 0 $P/src/lib.rs",
        "echo x > $P/new",
        "rm $P/src/lib.rs",
        "mkdir $P/src/dir",
        "mv $P/src/lib.rs .",
        "ln $P/src/lib.rs . && echo x > lib.rs",
        "ln -s $P/src s && echo x > s/lib.rs",
        "cd ../.. && echo x > src/lib.rs",
        "echo x > $P/agents/other/work.rs",
        "echo x > $P/.adjutant/token",
        "mkdir $P/agents/third",
    ] {
        is_denied(script);
    }
}

#[test]
fn what_is_hidden_can_be_neither_read_nor_listed() {
    for script in [
        "cat $P/.adjutant/token",
        "ls $P/.adjutant",
        "cat $P/agents/other/work.rs",
        "ls $P/agents",
        "ls $P",
        "ln -s ../../.adjutant a && cat a/token",
        "cat ../../.adjutant/token",
        "cat /proc/self/cwd/../../.adjutant/token",
        "cat /proc/self/root$P/.adjutant/token",
        "cp -r $P/.adjutant .",
        "sh -c 'setsid cat $P/.adjutant/token'",
    ] {
        is_denied(script);
    }
}

#[test]
fn the_rest_can_be_read() {
    works(
        "cat $P/src/lib.rs && cat $P/Cargo.toml && ls $P/src /usr /etc && cat /etc/passwd && cat /proc/self/status",
    );
}

#[test]
fn devices_that_every_program_needs_work() {
    works("echo x > /dev/null && head -c 4 /dev/urandom > r && head -c 4 /dev/zero >> r && cat < /dev/null");
    works("echo out > /dev/stdout && echo err > /dev/stderr && echo fd > /dev/fd/1 && ls /dev");
    works("f=/dev/shm/adj-$ADJ_EFFECT && echo x > $f && cat $f && rm $f");
}

/// Programs that are at home in the system and in the home directory; a build writes into the tree only.
#[test]
fn tools_run() {
    works("git --version && cargo --version && rustc --version && sh -c 'ls | sort'");
    works(
        "printf '[package]\\nname = \"x\"\\n[workspace]\\n' > Cargo.toml && mkdir src && echo 'fn main() {}' > src/main.rs && \
         cargo run -q --offline",
    );
}

/// The clone borrows objects from a directory that is hidden but for them, and writes its own.
#[test]
fn git_commits_in_a_clone_with_borrowed_objects() {
    ways().into_iter().for_each(commits_in_a_clone);
}

fn commits_in_a_clone(way: Way) {
    let project = Project::new(way);
    let git = |line: &str| {
        let status = std::process::Command::new("git")
            .args(line.split(' '))
            .current_dir(project.kept.root.join("project"))
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
            .env("HOME", &project.kept.root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(status.status.success(), "git {line}: {}", String::from_utf8_lossy(&status.stderr));
    };
    git("init -q -b main");
    git("add src Cargo.toml");
    git("-c user.name=a -c user.email=a@b commit -q -m first");
    git("clone -q --bare --no-hardlinks . .adjutant/land.git");
    std::fs::remove_dir_all(project.kept.root.join("project/agents/mine")).unwrap();
    git("clone -q --shared .adjutant/land.git agents/mine");
    let mut spec = project.spec(
        "set -e; git log --oneline; echo changed > src/lib.rs; git add -A; \
         git -c user.name=a -c user.email=a@b commit -q -m second; git gc -q; git fsck; git status --short; \
         git checkout -q -b other; git log --oneline | wc -l; ! git fetch -q 2>/dev/null",
    );
    spec.env.insert("HOME".into(), project.kept.root.join("temp").display().to_string());
    spec.env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
    let exit = project.kept.run(&spec);
    let (out, err) = (String::from_utf8_lossy(&project.kept.out()).into_owned(), project.kept.err());
    if sandbox::support().level != Level::None {
        assert!(exit.succeeded(), "{exit:?}\n{out}\n{}", String::from_utf8_lossy(&err));
    }
    assert!(out.ends_with("2\n"), "{out}");
}

#[test]
fn nobody_outside_can_be_signalled() {
    if sandbox::support().abi >= 6 {
        let (exit, said) =
            Project::new(Way::Landlock).run("kill -0 $$ && (sleep 10 & kill $!) && kill -TERM $PPID");
        assert!(!exit.succeeded() && said.contains("not permitted"), "{exit:?} {said}");
    }
}

#[test]
fn rules_that_cannot_be_held_stop_the_start() {
    let project = Project::new(Way::Landlock);
    let mut spec = project.spec("true");
    spec.sandbox.as_mut().unwrap().rules.read_write.push(project.kept.root.join("project"));
    let exit = project.kept.run(&spec);
    assert!(
        matches!(&exit.reason, Reason::CouldNotStart(why) if why.contains("cannot be hidden")),
        "{exit:?}"
    );
}

#[test]
fn strict_starts_nothing_that_it_cannot_hold() {
    let ways = if views().is_empty() { vec![Way::Landlock] } else { views() };
    for way in ways {
        let project = Project::new(way);
        let mut spec = project.spec("! cat $P/.adjutant/token");
        spec.sandbox.as_mut().unwrap().mode = Mode::Strict;
        let exit = project.kept.run(&spec);
        match way.support().map(|support| support.level) {
            Some(Level::Full) => assert!(exit.succeeded(), "{way:?} {exit:?}"),
            _ => assert!(
                matches!(&exit.reason, Reason::CouldNotStart(why) if why.contains("strictly")),
                "{way:?} {exit:?}"
            ),
        }
    }
}

/// What Landlock does not know of: modes, owners, times, attributes.
#[test]
fn nothing_about_a_file_outside_can_be_changed() {
    for script in [
        "chmod 600 $P/Cargo.toml",
        "chmod 700 $P/src",
        "touch -d 2001-01-01 $P/Cargo.toml",
        "chgrp $(id -g) $P/Cargo.toml",
    ] {
        is_denied_by_namespaces(script);
    }
    works("chmod 700 . && touch x && chmod 600 x && touch -d 2001-01-01 x && chmod 700 $TMPDIR");
}

/// Concealed places are empty, also where the directory around them can be written, and what is named beside them is not.
#[test]
fn concealed_places_are_empty_and_what_is_named_inside_is_not() {
    views().into_iter().for_each(is_empty_where_concealed);
}

fn is_empty_where_concealed(way: Way) {
    let project = Project::new(way);
    let home = project.kept.root.join("home");
    for (name, text) in [
        (".ssh/id", "key"),
        (".aws/config", "region"),
        (".aws/keys", "key"),
        (".netrc", "key"),
        ("cache/token", "key"),
        ("cache/x", "cached"),
    ] {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut spec = project.spec(
        "cd $H && ls -A . .ssh .aws && cat .netrc .aws/config cache/token cache/x && test ! -e .ssh/id && \
         ! cat .aws/keys 2>/dev/null && ! touch .ssh/new 2>/dev/null && ! rm .netrc 2>/dev/null && ! touch new 2>/dev/null && \
         ! chmod 777 .ssh 2>/dev/null && touch cache/y && ! rm cache/token 2>/dev/null",
    );
    spec.env.insert("H".into(), home.display().to_string());
    let rules = &mut spec.sandbox.as_mut().unwrap().rules;
    rules.concealed =
        [".ssh", ".aws", ".netrc", ".absent", "cache/token"].map(|name| home.join(name)).to_vec();
    rules.read_only.push(home.join(".aws/config"));
    rules.read_write.push(home.join("cache"));
    let exit = project.kept.run(&spec);
    let out = String::from_utf8_lossy(&project.kept.out()).into_owned();
    assert!(exit.succeeded(), "{way:?} {exit:?}\n{out}\n{}", String::from_utf8_lossy(&project.kept.err()));
    assert_eq!(out, ".:\n.aws\n.netrc\n.ssh\ncache\n\n.aws:\nconfig\n\n.ssh:\nregioncached");
    assert_eq!(std::fs::read_to_string(home.join(".netrc")).unwrap(), "key");
    assert_eq!(std::fs::read_to_string(home.join("cache/token")).unwrap(), "key");
}

/// Shared memory works, as Python's multiprocessing wants it, and nobody outside sees it.
#[test]
fn shared_memory_is_private_and_gone_afterwards() {
    views().into_iter().for_each(shares_memory_with_nobody);
}

fn shares_memory_with_nobody(way: Way) {
    let name = format!("/dev/shm/adj-seen-{}", std::process::id());
    std::fs::write(&name, "outside").unwrap();
    let project = Project::new(way);
    let script = format!(
        "test ! -e {name} && echo inside > /dev/shm/x && ln /dev/shm/x /dev/shm/y && cat /dev/shm/y && echo x > {name}"
    );
    let (exit, said) = project.run(&script);
    assert!(exit.succeeded(), "{way:?} {exit:?} {said}");
    assert_eq!(std::fs::read_to_string(&name).unwrap(), "outside");
    assert!(!std::path::Path::new("/dev/shm/y").exists());
    std::fs::remove_file(&name).unwrap();
}

/// Nobody but the program is on the network that it has.
#[test]
fn without_a_network_there_is_a_loopback_and_nothing_else() {
    for way in ways() {
        let project = Project::new(way);
        let mut spec =
            project.spec("cat /proc/net/dev | tail -n +3; cat /sys/class/net/lo/flags 2>/dev/null || true");
        spec.sandbox.as_mut().unwrap().rules.network = Network::None;
        let exit = project.kept.run(&spec);
        let out = String::from_utf8_lossy(&project.kept.out()).into_owned();
        if way == Way::Landlock {
            let refused = matches!(&exit.reason, Reason::CouldNotStart(why) if why.contains("namespaces"));
            assert!(refused, "{exit:?}");
            continue;
        }
        assert!(exit.succeeded(), "{way:?} {exit:?}");
        let devices: Vec<&str> =
            out.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
        assert_eq!(devices, ["lo"], "{way:?} {out}");
    }
}

/// How a program ends is how its keeper sees it end, whoever makes its view.
#[test]
fn a_program_in_a_view_ends_with_its_own_code_and_sees_no_others() {
    for way in views() {
        let (exit, said) = Project::new(way).run("sleep 1000 & exit 7");
        assert_eq!((exit.code, exit.signal), (Some(7), None), "{way:?} {exit:?} {said}");
        let (exit, _) = Project::new(way).run("kill -KILL $$");
        let expected = match way {
            Way::Bubblewrap => (Some(137), None),
            _ => (None, Some(9)),
        };
        assert_eq!((exit.code, exit.signal), expected, "{way:?} {exit:?}");
        let (exit, said) =
            Project::new(way).run("ps -e -o args= 2>/dev/null || cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
        assert!(exit.succeeded(), "{way:?} {exit:?}");
        if way.support().is_some_and(|support| support.processes) {
            assert!(!said.contains("internal keep"), "{way:?} {said}");
        }
    }
}

/// What this test binary is asked to try inside of a sandbox; alone it tries nothing.
const PROBE: &str = "ADJ_TEST_PROBE";

/// A command line that tries one thing from within a sandbox: it fails with the system's word for it.
pub fn probe(what: &str) -> String {
    let own = std::env::current_exe().unwrap();
    format!("{PROBE}='{what}' '{}' --exact sandbox::one_thing_is_tried --nocapture", own.display())
}

#[test]
fn one_thing_is_tried() {
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
    let Ok(what) = std::env::var(PROBE) else { return };
    let done = match what.split_once(' ') {
        Some(("listen", port)) => std::net::TcpListener::bind(("127.0.0.1", port.parse().unwrap())).map(drop),
        _ => {
            let (family, kind) = (AddressFamily::Packet, SockType::Raw);
            let all = SockProtocol::EthAll;
            socket(family, kind, SockFlag::SOCK_CLOEXEC, all).map(drop).map_err(std::io::Error::from)
        }
    };
    if let Err(error) = done {
        eprintln!("{what}: {error}");
        std::process::exit(3);
    }
}

/// Root's programs, too, are of one tree and not of the machine: its network, clock and kernel are not theirs.
#[test]
fn root_keeps_only_what_work_on_files_takes() {
    if !nix::unistd::geteuid().is_root() || sandbox::support().level == Level::None {
        crate::not_tried("this is not root, or there is no sandbox here");
        return;
    }
    for way in ways() {
        let (exit, said) = Project::new(way).run("grep ^Cap /proc/self/status");
        assert!(exit.succeeded(), "{way:?}: {said}");
        for line in said.lines() {
            let (set, bits) = line.split_once(":\t").unwrap();
            let bits = u64::from_str_radix(bits, 16).unwrap();
            // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID.
            let most = if matches!(set, "CapInh" | "CapAmb") { 0 } else { 0b1111_1011 };
            assert_eq!(bits & !most, 0, "{way:?}: {said}");
        }
        assert_eq!(said.lines().count(), 5, "{said}");
    }
    is_denied(&probe("packets"));
    for way in ways() {
        let (exit, said) = Project::new(way).run("date -s \"$(date --iso-8601=ns)\"");
        assert!(!exit.succeeded() && said.contains("not permitted"), "{way:?}: {said}");
    }
    // What it is kept for.
    works(
        "touch mine && chown 12345:12345 mine && chmod 600 mine && cat mine && setpriv --reuid 12345 --clear-groups true",
    );
}

/// A port that a program takes while a server restarts is sent what is meant for the server.
#[test]
fn a_program_listens_at_its_own_ports_and_where_the_system_lets_it_choose() {
    if sandbox::support().abi < 4 {
        crate::not_tried("this kernel's Landlock holds no ports");
        return;
    }
    // Free a moment ago, and nobody's who knows them.
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (own, others) = (free(), free());
    assert_ne!(own, others);
    for way in ways() {
        let tries = |what: String| {
            let project = Project::new(way);
            let mut spec = project.spec(&probe(&what));
            spec.sandbox.as_mut().unwrap().rules.tcp_bind = Some(vec![(own, own)]);
            let exit = project.kept.run(&spec);
            (exit.succeeded(), String::from_utf8_lossy(&project.kept.err()).into_owned())
        };
        assert!(tries(format!("listen {own}")).0, "{way:?}");
        assert!(tries("listen 0".to_owned()).0, "{way:?}");
        let (listens, said) = tries(format!("listen {others}"));
        assert!(!listens && said.contains("Permission denied"), "{way:?}: {said}");
    }
}

/// A disk that was mounted when a step began can be taken out while it runs.
#[test]
fn what_is_unmounted_outside_is_unmounted_for_programs_too() {
    use nix::mount::{MsFlags, mount, umount};
    use nix::sched::{CloneFlags, unshare};
    if !nix::unistd::geteuid().is_root() || Way::Namespaces.support().is_none() || sandbox::support().abi < 2
    {
        crate::not_tried("this is not root, or there are no namespaces or no Landlock here");
        return;
    }
    // A thread with mounts of its own, which what it starts shares, as programs share those of a machine.
    let tried = std::thread::spawn(|| {
        let none = None::<&str>;
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            return;
        }
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SHARED, none).unwrap();
        let project = Project::new(Way::Namespaces);
        let disk = project.kept.root.join("disk");
        std::fs::create_dir(&disk).unwrap();
        mount(Some("tmpfs"), &disk, Some("tmpfs"), MsFlags::empty(), none).unwrap();
        let mut spec = project.spec(
            "grep -q /disk /proc/self/mountinfo && touch begun; while grep -q /disk /proc/self/mountinfo; do sleep 0.05; done",
        );
        spec.time_limit_seconds = 20.0;
        let begun = project.kept.root.join("project/agents/mine/begun");
        let unmounts = std::thread::spawn(move || {
            while !begun.exists() {
                std::thread::yield_now();
            }
            umount(&disk).unwrap();
        });
        let exit = project.kept.run(&spec);
        assert!(exit.succeeded(), "{exit:?}");
        unmounts.join().unwrap();
    });
    tried.join().unwrap();
}
