//! How `adj init` sets trees up, so that the tests of a repository pass in them: every row of its table, the files of other
//! tools, and commit hooks. The package managers are played; real repositories are in `tests/repositories.sh`.

use super::{Ran, Repository};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A package manager. It installs by leaving a mark in the tree, tests by looking for the mark that the repository names in
/// `needs`, and writes into the folders of `caches` both times.
const MANAGER: &str = r#"#!/bin/sh
name=$(basename "$0")
for folder in $(cat caches); do
    echo "$name" > "$HOME/$folder/mark" || exit 1
done
case "$name $*" in
    *"python3 -m venv"* | *install* | *sync* | *" ci "*)
        mkdir -p .venv/bin installed
        for program in pip python; do ln -sf "$HOME/bin/uv" ".venv/bin/$program"; done
        echo "$name $*" >> installed/all
        touch "installed/$name"
        ;;
    *)
        for mark in $(cat needs); do
            [ -e "installed/$mark" ] || { echo "$mark has not installed anything here"; exit 1; }
        done
        ;;
esac
"#;

const MANAGERS: &[&str] =
    &["uv", "poetry", "python3", "npm", "pnpm", "yarn", "bun", "cargo", "go", "bundle", "gradle", "mvn"];

/// A machine with these package managers, and a home in which nothing is yet.
struct Machine {
    home: Repository,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let home = Repository::empty(&format!("{name}-home"));
        std::fs::create_dir_all(home.dir().join("bin")).expect("a folder");
        for name in MANAGERS {
            let program = home.dir().join("bin").join(name);
            std::fs::write(&program, MANAGER).expect("a program");
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a program");
        }
        Machine { home }
    }

    fn adj(&self, repository: &Repository, line: &str) -> Ran {
        let path = std::env::var("PATH").expect("there is a path");
        let mut command = repository.command(line);
        command.env("HOME", self.home.dir()).env("PATH", format!("{}/bin:{path}", self.home.dir().display()));
        for variable in
            ["CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "XDG_CACHE_HOME", "JAVA_HOME"]
        {
            command.env_remove(variable);
        }
        command.output().expect("adj runs").into()
    }

    #[track_caller]
    fn ok(&self, repository: &Repository, line: &str) -> String {
        let ran = self.adj(repository, line);
        assert_eq!(ran.code, 0, "adj {line}\n{}\n{}", ran.stdout, ran.stderr);
        ran.stdout
    }
}

/// A repository of these files, on main.
fn repository(name: &str, files: &[(&str, &str)]) -> Repository {
    let repository = Repository::empty(name);
    repository.write(".gitignore", "/.venv\n/installed\n/node_modules\n/.bundle\n*.local\n");
    for (path, text) in files {
        repository.write(path, text);
    }
    repository.git("init --quiet --initial-branch=main");
    repository.commit("Begin");
    repository
}

const SCRIPT: &str = r#"{"scripts": {"test": "x"}}"#;
const PYPROJECT: &str = "[project]\nname = \"x\"\n[dependency-groups]\ndev = [\"pytest\"]\n";

/// Files, what must have been installed, the caches that are written, and the tests.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("uv", &[("uv.lock", ""), ("pyproject.toml", PYPROJECT), ("tests/test_a.py", "")],
        "uv", ".cache/uv", "uv run --frozen python -m pytest -q"),
    ("pip", &[("requirements.txt", ""), ("tests/test_a.py", "")],
        "python3 pip", ".cache/pip", ".venv/bin/python -m pytest -q"),
    ("editable", &[("pyproject.toml", PYPROJECT), ("src/x/__init__.py", ""), ("tests/test_a.py", "")],
        "python3 pip", ".cache/pip", ".venv/bin/python -m pytest -q"),
    ("poetry", &[("poetry.lock", ""), ("pyproject.toml", "[tool.poetry]\n"), ("tests/test_a.py", "")],
        "poetry", ".cache/pypoetry/cache .cache/pypoetry/artifacts", ".venv/bin/python -m pytest -q"),
    ("npm", &[("package.json", SCRIPT), ("package-lock.json", "{}")],
        "npm", ".npm/_cacache", "npm test"),
    ("npm-loose", &[("package.json", SCRIPT)],
        "npm", ".npm/_cacache", "npm test"),
    ("pnpm", &[("package.json", "{}"), ("pnpm-lock.yaml", ""), ("pnpm-workspace.yaml", "packages:\n  - packages/*\n"), ("packages/a/package.json", SCRIPT)],
        "pnpm", ".local/share/pnpm/store .cache/pnpm", "pnpm --recursive --if-present run test"),
    ("yarn", &[("package.json", r#"{"workspaces": ["packages/*"]}"#), ("yarn.lock", ""), ("packages/a/package.json", SCRIPT)],
        "yarn", ".cache/yarn", "yarn workspaces run test"),
    ("berry", &[("package.json", r#"{"packageManager": "yarn@4.1.0", "scripts": {"test": "x"}}"#), ("yarn.lock", "")],
        "yarn", ".yarn/berry", "yarn test"),
    ("bun", &[("package.json", SCRIPT), ("bun.lock", "")],
        "bun", ".bun/install/cache", "bun run test"),
    ("cargo", &[("Cargo.toml", "")],
        "", ".cargo/registry .cargo/git", "cargo test"),
    ("go", &[("go.mod", "module x\n")],
        "", "go/pkg/mod go/pkg/sumdb .cache/go-build", "go test ./..."),
    ("bundler", &[("Gemfile", ""), ("spec/a_spec.rb", "")],
        "bundle", ".bundle/cache", "BUNDLE_PATH=.bundle/gems bundle exec rspec"),
    ("gradle", &[("build.gradle", "")],
        "", ".gradle/caches .gradle/daemon", "gradle --no-daemon test"),
    ("maven", &[("pom.xml", "")],
        "", ".m2/repository", "mvn -B test"),
];

/// Each row of the table: what `adj init` wrote makes main's tests pass in a tree, in the sandbox, on a machine on which no cache
/// is there yet.
#[test]
fn trees_of_every_ecosystem_are_set_up_by_init_so_that_their_tests_pass() {
    let machine = Machine::new("init-rows");
    for (name, files, needs, caches, test) in ROWS {
        let own = [("needs", *needs), ("caches", *caches)];
        let repository = repository(&format!("init-{name}"), &[files, &own[..]].concat());
        let init = machine.ok(&repository, "init");
        let settings = repository.read("adjutant.toml");
        assert!(init.contains(&format!("ok       tests: `{test}`")), "{name}: {init}");
        assert_eq!(settings.contains("\nworktree.create = "), !needs.is_empty(), "{name}: {settings}");
        for cache in caches.split(' ') {
            assert!(settings.contains(&format!("\"~/{cache}\"")), "{name}: {settings}");
            assert!(!machine.home.dir().join(cache).join("mark").exists() || *name != "uv", "{name}");
        }
        let tested = machine.ok(&repository, "doctor --tests");
        assert_eq!(tested, format!("main passes `{test}`\n"), "{name}: {settings}");
        for cache in caches.split(' ') {
            assert!(machine.home.dir().join(cache).join("mark").exists(), "{name}: {cache} was not written");
        }
        assert_eq!(repository.git("status --porcelain"), "?? adjutant.toml", "{name}");
    }
}

/// From a clone to a landed change: the agent is all that is configured. What the checkout has installed is not what is tested.
#[test]
fn a_repository_lands_a_change_with_what_init_wrote() {
    let machine = Machine::new("init-lands");
    let files = [
        ("package.json", SCRIPT),
        ("package-lock.json", "{}"),
        ("needs", "npm"),
        ("caches", ".npm/_cacache"),
    ];
    let repository = repository("init-lands", &files);
    repository.write("node_modules/x/index.js", "");
    let init = machine.ok(&repository, "init");
    assert!(init.contains("ok       worktree: npm (package.json): each tree is set up by "), "{init}");
    assert!(!init.contains("symlink") && !init.contains("trees do not have it"), "{init}");
    let scenario = "[[scenario]]\n[[scenario.step]]\ndo = [ { run = \"test -e installed/npm && test ! -e node_modules/x\" }, \
                    { write = \"new.txt\", text = \"new\" }, { commit = \"Add\" }, { done = true } ]\n";
    repository.write("agent.local", scenario);
    let settings = repository.read("adjutant.toml");
    let (before, agent) = settings.split_once("[agents.coder]").expect("there is an agent");
    let (_, after) = agent.split_once("\n\n").expect("there is more");
    let settings =
        format!("{before}[agents.coder]\nadapter = \"script\"\ncommand = [\"agent.local\"]\n\n{after}");
    repository.write("adjutant.toml", &settings);
    machine.ok(&repository, "task add Change --id t-1");
    assert_eq!(machine.adj(&repository, "run --until-idle").code, 1, "it waits for a review");
    machine.ok(&repository, "review t-1 --approve");
    machine.ok(&repository, "run --until-idle");
    assert_eq!(repository.git("show main:new.txt"), "new");
    assert_eq!(repository.git("ls-files installed .venv"), "", "nothing of what was installed is on main");
}

/// What other tools' files say is in adjutant.toml, where it is trusted, and init says what came from where.
#[test]
fn what_the_files_of_other_tools_say_is_taken_over_by_init() {
    let machine = Machine::new("init-others");
    let script = "for name in env.local npm made; do [ -e $name ] || [ -e installed/$name ] || { echo no $name; exit 1; }; done\n";
    let files = [
        ("Makefile", "test:\n\tsh tests.sh\n"),
        ("tests.sh", script),
        ("caches", ""),
        (".worktreeinclude", "env.local\nabsent.local\ntests.sh\n../other\n"),
        (
            ".cursor/worktrees.json",
            r#"{"setup-worktree": ["npm ci --quiet", "touch installed/made", "cp $ROOT_WORKTREE_PATH/b.local b.local",
                "ln -s $ROOT_WORKTREE_PATH/node_modules node_modules"]}"#,
        ),
        (
            ".codex/environments/environment.toml",
            "version = 1\n[setup]\nscript = \"make all\"\n[cleanup]\nscript = \"make down\"\n",
        ),
        (
            "conductor.json",
            r#"{"scripts": {"setup": "cp $CONDUCTOR_ROOT_PATH/env.local env.local", "archive": "make gone"}}"#,
        ),
    ];
    let repository = repository("init-others", &files);
    repository.write("env.local", "A=1\n");
    repository.write("b.local", "B=1\n");
    let init = machine.ok(&repository, "init");
    let said: String = init.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "ok .worktreeinclude: `env.local` is in worktree.copy",
        "WARNING .worktreeinclude: `absent.local` is left out: it is not in your checkout",
        "WARNING .worktreeinclude: `tests.sh` is left out: git does not ignore it; add it to .gitignore",
        "WARNING .worktreeinclude: `../other` is left out: it is not a path inside the project",
        "ok .cursor/worktrees.json: `npm ci --quiet && touch installed/made` is in hooks.worktree.create",
        "ok .cursor/worktrees.json: `b.local` is in worktree.copy",
        "WARNING .cursor/worktrees.json: `ln -s $ROOT_WORKTREE_PATH/node_modules node_modules` is left out",
        "WARNING .codex/environments/environment.toml: `make all` is left out: .cursor/worktrees.json sets up the trees",
        "ok .codex/environments/environment.toml: `make down` is in hooks.worktree.remove",
        "ok conductor.json: `env.local` is in worktree.copy",
    ] {
        assert!(said.contains(part), "{part}\n{init}");
    }
    let settings = repository.read("adjutant.toml");
    for line in [
        "worktree.create = \"npm ci --quiet && touch installed/made\"",
        "worktree.remove = \"make down\"",
        "copy = [\"env.local\", \"b.local\"]",
        "Makes each new tree ready for the tests; from .cursor/worktrees.json",
    ] {
        assert!(settings.contains(line), "{line}\n{settings}");
    }
    machine.ok(&repository, "config check");
    assert_eq!(machine.ok(&repository, "doctor --tests"), "main passes `make test`\n");
}

/// Commit hooks run for nobody: that is said, and with `--with-hooks` the tests run them.
#[test]
fn init_says_that_commit_hooks_do_not_run_and_adds_them_to_the_tests_if_asked() {
    let machine = Machine::new("init-hooks");
    let make = [("Makefile", "test:\n\ttrue\n"), ("caches", "")];
    let of = |name: &str, files: &[(&str, &str)]| repository(name, &[&make[..], files].concat());
    let hook = "[ ! -e bad ] || { echo bad is there; exit 1; }\n";

    let husky = of("init-husky", &[(".husky/pre-commit", hook)]);
    let init = machine.ok(&husky, "init");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        init.contains("WARNING  commit hooks: those of .husky/pre-commit run neither in trees nor at merges"),
        "{init}"
    );
    assert!(
        words(&init).contains("`adj init --with-hooks` adds `sh .husky/pre-commit` to the tests"),
        "{init}"
    );
    let settings = husky.read("adjutant.toml");
    assert!(settings.contains("\n# command = \"make test && sh .husky/pre-commit\"\n"), "{settings}");
    // A file that is there is not changed, and the way is said.
    let init = words(&machine.ok(&husky, "init --with-hooks"));
    assert!(init.contains("add ` && sh .husky/pre-commit` to test.command in adjutant.toml"), "{init}");
    assert_eq!(husky.read("adjutant.toml"), settings);

    std::fs::remove_file(husky.dir().join("adjutant.toml")).expect("it goes");
    let init = machine.ok(&husky, "init --with-hooks");
    assert!(init.contains("ok       commit hooks: `sh .husky/pre-commit` runs with the tests"), "{init}");
    assert_eq!(machine.ok(&husky, "doctor --tests"), "main passes `make test && sh .husky/pre-commit`\n");
    husky.write("bad", "");
    husky.commit("Do what the hook forbids");
    let red = machine.adj(&husky, "doctor --tests");
    assert!(red.code == 1 && red.stdout.contains("bad is there"), "{}{}", red.stdout, red.stderr);

    let pre_commit = of("init-pre-commit", &[(".pre-commit-config.yaml", "repos: []\n")]);
    machine.ok(&pre_commit, "init --with-hooks");
    let settings = pre_commit.read("adjutant.toml");
    assert!(settings.contains("command = \"make test && pre-commit run --all-files\""), "{settings}");
    assert!(settings.contains("\"~/.cache/pre-commit\""), "{settings}");

    let path = of("init-hooks-path", &[("tools/hooks/pre-commit", hook)]);
    path.git("config core.hooksPath tools/hooks");
    let init = machine.ok(&path, "init");
    assert!(init.contains("those of core.hooksPath = tools/hooks run neither"), "{init}");
    assert!(path.read("adjutant.toml").contains("make test && ./tools/hooks/pre-commit"));

    // What is in the folder of git is on this machine alone.
    let own = of("init-own-hooks", &[]);
    own.write(".git/hooks/pre-commit", hook);
    let init = words(&machine.ok(&own, "init"));
    assert!(init.contains("those of .git/hooks/pre-commit run neither in trees nor at merges"), "{init}");
    assert!(init.contains("they are only on this machine"), "{init}");
    assert!(!machine.ok(&of("init-no-hooks", &[]), "init").contains("commit hooks"));
}

/// A toolchain that a variable puts elsewhere is found by agents and tests, and a missing program is said.
#[test]
fn init_writes_where_the_toolchain_of_this_machine_is() {
    let machine = Machine::new("init-variables");
    let repository = repository("init-variables", &[("Cargo.toml", ""), ("package.json", "{}")]);
    let mut command = repository.command("init");
    let init: Ran = command
        .env("CARGO_HOME", "/opt/cargo")
        .env("RUSTUP_HOME", "/opt/rustup")
        .env("HOME", machine.home.dir())
        .output()
        .expect("adj runs")
        .into();
    let settings = repository.read("adjutant.toml");
    assert!(settings.contains("[\"/opt/cargo/registry\", \"/opt/cargo/git\"]"), "{settings}");
    assert_eq!(
        settings.matches("\"CARGO_HOME\", \"RUSTUP_HOME\"").count(),
        2,
        "tests and agents: {settings}"
    );
    assert!(
        init.stdout.contains("npm without a lock file (package.json) is used here too"),
        "{}",
        init.stdout
    );

    let bin = Repository::empty("init-no-uv");
    let git = std::env::split_paths(&std::env::var_os("PATH").expect("there is a path"))
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file());
    symlink(git.expect("git is installed"), bin.dir().join("git")).expect("a link");
    let repository = self::repository("init-without-uv", &[("uv.lock", ""), ("tests/test_a.py", "")]);
    let init = repository.command("init").env("PATH", bin.dir()).output().expect("adj runs");
    let init = String::from_utf8_lossy(&init.stdout).into_owned();
    assert!(init.contains("WARNING  worktree: `uv` is not on the PATH, and trees need it"), "{init}");
}
