//! The ecosystems of a repository: how a tree is set up before its tests can pass, its package caches,
//! and its test command. One table; `adj init` writes its entries, and `docs/trees.md` prints it.
//!
//! Nothing is run here. A repository without tests never counts as one whose tests passed.

mod javascript;
mod python;
#[cfg(test)]
mod test;

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// What is read of one file; the rest of a larger one is not looked at.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Entries of one directory that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// A row of the table. `{…}` in a command is replaced by what the repository needs there, see [`filled`].
#[derive(Debug)]
pub struct Ecosystem {
    pub name: &'static str,
    /// What it is recognised by, for people.
    pub recognised_by: &'static str,
    /// The file that says that packages are managed this way. Absent: it has no packages of its own, as `make`.
    packages: fn(&Tree) -> Option<&'static str>,
    /// The file that says that there are tests of this kind.
    tests: fn(&Tree) -> Option<&'static str>,
    /// `hooks.worktree.create`, which makes a tree ready. It runs again before each landing, in a tree that keeps its
    /// ignored files, so it is quick when there is nothing to do. Empty: the tests need nothing.
    pub create: &'static str,
    /// `test.command`, in a tree that was made ready so.
    pub test: &'static str,
    /// The same for a workspace whose root has no tests of its own.
    test_each: &'static str,
    /// The test command where nothing made the tree ready; empty: the same.
    detected: &'static str,
    /// `sandbox.caches`. Only folders of packages: what else a package manager keeps beside them (its programs, its
    /// settings, the environments of other projects) would let an agent change what the person runs.
    pub caches: &'static [Cache],
    /// Variables that say where the toolchain is. Those that are set are passed on to agents and tests.
    variables: &'static [&'static str],
    /// Where the tree then has the programs of its packages.
    programs: &'static str,
}

/// A folder in which packages are kept, shared by all trees.
#[derive(Debug)]
pub struct Cache {
    pub folder: &'static str,
    /// Variables that put it elsewhere, and the folder below their value; the first that is set counts.
    by: &'static [(&'static str, &'static str)],
}

const fn cache(folder: &'static str, by: &'static [(&'static str, &'static str)]) -> Cache {
    Cache { folder, by }
}

const ROW: Ecosystem = Ecosystem {
    name: "",
    recognised_by: "",
    packages: |_| None,
    tests: |_| None,
    create: "",
    test: "",
    test_each: "",
    detected: "",
    caches: &[],
    variables: &[],
    programs: "",
};

const PYTHON: &[&str] = &["PYENV_ROOT", "PYENV_VERSION"];
const JAVA: &[&str] = &["JAVA_HOME"];

/// Every ecosystem that is known, in the order in which their tests are preferred. The language's own way comes before a
/// Makefile, whose `test` often does less.
pub const ECOSYSTEMS: &[Ecosystem] = &[
    Ecosystem {
        name: "cargo",
        recognised_by: "`Cargo.toml`",
        packages: |tree| tree.first(&["Cargo.toml"]),
        tests: |tree| tree.first(&["Cargo.toml"]),
        test: "cargo test",
        caches: &[
            cache("~/.cargo/registry", &[("CARGO_HOME", "/registry")]),
            cache("~/.cargo/git", &[("CARGO_HOME", "/git")]),
        ],
        variables: &["CARGO_HOME", "RUSTUP_HOME"],
        ..ROW
    },
    Ecosystem {
        name: "pnpm",
        recognised_by: "`package.json` with `pnpm-lock.yaml`, `pnpm-workspace.yaml` or `packageManager`",
        packages: |tree| javascript::managed_by(tree, "pnpm"),
        tests: |tree| javascript::tested_by(tree, "pnpm"),
        create: "CI=true pnpm install{frozen} --prefer-offline",
        test: "pnpm test",
        test_each: "pnpm --recursive --if-present run test",
        caches: &[
            cache("~/.local/share/pnpm/store", &[("PNPM_HOME", "/store"), ("XDG_DATA_HOME", "/pnpm/store")]),
            cache("~/.cache/pnpm", &[("XDG_CACHE_HOME", "/pnpm")]),
            // The locks of its store since pnpm 12, wherever TMPDIR is.
            cache("/tmp/pnpm-store-operation-locks-{uid}", &[]),
        ],
        ..ROW
    },
    Ecosystem {
        name: "yarn 2 and later",
        recognised_by: "`package.json` with a `yarn.lock` of yarn 2 or later, or `packageManager`",
        packages: |tree| javascript::managed_by(tree, "berry"),
        tests: |tree| javascript::tested_by(tree, "berry"),
        create: "yarn install{immutable}",
        test: "yarn test",
        test_each: "yarn workspaces foreach{all} run test",
        caches: &[
            cache("~/.yarn/berry", &[("YARN_GLOBAL_FOLDER", "")]),
            cache("~/.cache/node/corepack", &[("COREPACK_HOME", "")]),
        ],
        ..ROW
    },
    Ecosystem {
        name: "yarn 1",
        recognised_by: "`package.json` with `yarn.lock` or `packageManager`",
        packages: |tree| javascript::managed_by(tree, "yarn"),
        tests: |tree| javascript::tested_by(tree, "yarn"),
        create: "yarn install{frozen} --prefer-offline --non-interactive",
        test: "yarn test",
        test_each: "yarn workspaces run test",
        caches: &[cache("~/.cache/yarn", &[("YARN_CACHE_FOLDER", "")])],
        ..ROW
    },
    Ecosystem {
        name: "bun",
        recognised_by: "`package.json` with `bun.lock`, `bun.lockb` or `packageManager`",
        packages: |tree| javascript::managed_by(tree, "bun"),
        tests: |tree| javascript::tested_by(tree, "bun"),
        create: "bun install{frozen}",
        // `bun test` would be bun's own runner and not the script.
        test: "bun run test",
        test_each: "bun run --filter '*' test",
        caches: &[cache(
            "~/.bun/install/cache",
            &[("BUN_INSTALL_CACHE_DIR", ""), ("BUN_INSTALL", "/install/cache")],
        )],
        ..ROW
    },
    Ecosystem {
        name: "npm",
        recognised_by: "`package.json` with `package-lock.json` or `npm-shrinkwrap.json`",
        packages: |tree| javascript::managed_by(tree, "npm").filter(|_| javascript::is_locked(tree)),
        tests: |tree| javascript::tested_by(tree, "npm").filter(|_| javascript::is_locked(tree)),
        // `npm ci` deletes what is installed: only if the lock file is newer.
        create: "[ node_modules/.package-lock.json -nt {lock} ] || npm ci --prefer-offline --no-audit --no-fund",
        test: "npm test",
        test_each: "npm test --workspaces --if-present",
        caches: &[
            cache("~/.npm/_cacache", &[("npm_config_cache", "/_cacache")]),
            cache("~/.npm/_logs", &[("npm_config_cache", "/_logs")]),
        ],
        ..ROW
    },
    Ecosystem {
        name: "npm without a lock file",
        recognised_by: "`package.json`",
        packages: |tree| javascript::managed_by(tree, "npm").filter(|_| !javascript::is_locked(tree)),
        tests: |tree| javascript::tested_by(tree, "npm").filter(|_| !javascript::is_locked(tree)),
        create: "npm install --no-package-lock --prefer-offline --no-audit --no-fund",
        test: "npm test",
        test_each: "npm test --workspaces --if-present",
        caches: &[
            cache("~/.npm/_cacache", &[("npm_config_cache", "/_cacache")]),
            cache("~/.npm/_logs", &[("npm_config_cache", "/_logs")]),
        ],
        ..ROW
    },
    Ecosystem {
        name: "deno",
        recognised_by: "`deno.json`, `deno.jsonc`",
        packages: javascript::deno,
        tests: javascript::deno,
        test: "deno {task}",
        caches: &[cache("~/.cache/deno", &[("DENO_DIR", "")])],
        variables: &["DENO_DIR"],
        ..ROW
    },
    Ecosystem {
        name: "uv",
        recognised_by: "`uv.lock`",
        packages: |tree| tree.first(&["uv.lock"]),
        tests: |tree| tree.first(&["uv.lock"]).and_then(|_| python::tests(tree)),
        create: "{version}uv sync --frozen{groups}",
        test: "{version}uv run --frozen{groups}{with} python -m pytest -q",
        detected: "uv run pytest",
        caches: &[cache("~/.cache/uv", &[("UV_CACHE_DIR", ""), ("XDG_CACHE_HOME", "/uv")])],
        variables: PYTHON,
        programs: ".venv/bin",
        ..ROW
    },
    Ecosystem {
        name: "poetry",
        recognised_by: "`poetry.lock`, or `[tool.poetry]` in `pyproject.toml`",
        packages: python::poetry,
        tests: |tree| python::poetry(tree).and_then(|_| python::tests(tree)),
        create: "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction{poetry}",
        test: ".venv/bin/python -m pytest -q",
        detected: "poetry run pytest",
        // Beside these are the environments of other projects.
        caches: &[
            cache("~/.cache/pypoetry/cache", &[("POETRY_CACHE_DIR", "/cache")]),
            cache("~/.cache/pypoetry/artifacts", &[("POETRY_CACHE_DIR", "/artifacts")]),
        ],
        variables: PYTHON,
        programs: ".venv/bin",
        ..ROW
    },
    Ecosystem {
        name: "pdm",
        recognised_by: "`pdm.lock`",
        packages: |tree| tree.first(&["pdm.lock"]),
        tests: |tree| tree.first(&["pdm.lock"]).and_then(|_| python::tests(tree)),
        create: "pdm install --frozen-lockfile",
        test: "pdm run python -m pytest -q",
        detected: "pdm run pytest",
        caches: &[cache("~/.cache/pdm", &[("PDM_CACHE_DIR", "")])],
        variables: PYTHON,
        programs: ".venv/bin",
        ..ROW
    },
    Ecosystem {
        name: "venv and pip",
        recognised_by: "`pyproject.toml`, `setup.py` or `requirements*.txt`, or tests for pytest",
        packages: |tree| python::pip(tree).then(|| python::manifest(tree)).flatten(),
        tests: |tree| python::pip(tree).then(|| python::tests(tree)).flatten(),
        // A folder that was made halfway has no pip. The environment ignores itself: not every `.gitignore` has it.
        create: "{ [ -x .venv/bin/pip ] || python3 -m venv --clear .venv; } && echo '*' > .venv/.gitignore && {install}",
        test: ".venv/bin/python -m pytest -q",
        detected: "python3 -m pytest",
        caches: &[cache("~/.cache/pip", &[("PIP_CACHE_DIR", ""), ("XDG_CACHE_HOME", "/pip")])],
        variables: PYTHON,
        programs: ".venv/bin",
        ..ROW
    },
    Ecosystem {
        name: "go",
        recognised_by: "`go.mod`, `go.work`",
        packages: |tree| tree.first(&["go.work", "go.mod"]),
        tests: |tree| tree.first(&["go.work", "go.mod"]),
        test: "go test {modules}",
        caches: &[
            cache("~/go/pkg/mod", &[("GOMODCACHE", ""), ("GOPATH", "/pkg/mod")]),
            cache("~/go/pkg/sumdb", &[("GOPATH", "/pkg/sumdb")]),
            cache("~/.cache/go-build", &[("GOCACHE", ""), ("XDG_CACHE_HOME", "/go-build")]),
        ],
        variables: &["GOPATH", "GOMODCACHE", "GOCACHE", "GOROOT"],
        ..ROW
    },
    Ecosystem {
        name: "make",
        recognised_by: "a `test` target in a Makefile",
        tests: make,
        test: "make test",
        ..ROW
    },
    Ecosystem {
        name: "just",
        recognised_by: "a `test` recipe in a justfile",
        tests: just,
        test: "just test",
        ..ROW
    },
    Ecosystem {
        name: "gradle",
        recognised_by: "`build.gradle`, `settings.gradle`, also with `.kts`",
        packages: gradle,
        tests: gradle,
        // A daemon would outlive the tests.
        test: "{gradle} --no-daemon test",
        detected: "{gradle} test",
        // Beside these are scripts and settings that every build of the person reads.
        caches: &[
            cache("~/.gradle/caches", &[("GRADLE_USER_HOME", "/caches")]),
            cache("~/.gradle/wrapper", &[("GRADLE_USER_HOME", "/wrapper")]),
            cache("~/.gradle/native", &[("GRADLE_USER_HOME", "/native")]),
            cache("~/.gradle/daemon", &[("GRADLE_USER_HOME", "/daemon")]),
            cache("~/.gradle/.tmp", &[("GRADLE_USER_HOME", "/.tmp")]),
        ],
        variables: &["JAVA_HOME", "GRADLE_USER_HOME"],
        ..ROW
    },
    Ecosystem {
        name: "maven",
        recognised_by: "`pom.xml`",
        packages: |tree| tree.first(&["pom.xml"]),
        tests: |tree| tree.first(&["pom.xml"]),
        test: "{mvn} -B test",
        caches: &[cache("~/.m2/repository", &[]), cache("~/.m2/wrapper", &[])],
        variables: JAVA,
        ..ROW
    },
    Ecosystem {
        name: "mix",
        recognised_by: "`mix.exs`",
        packages: |tree| tree.first(&["mix.exs"]),
        tests: |tree| tree.first(&["mix.exs"]),
        create: "mix deps.get",
        test: "mix test",
        caches: &[cache("~/.hex", &[("HEX_HOME", "")]), cache("~/.mix", &[("MIX_HOME", "")])],
        ..ROW
    },
    Ecosystem {
        name: "bundler",
        recognised_by: "`Gemfile`, with `spec/*_spec.rb`, `.rspec`, or a `Rakefile` and `test/`",
        packages: |tree| tree.first(&["Gemfile"]),
        tests: |tree| tree.first(&["Gemfile"]).and_then(|_| ruby(tree)),
        create: "mkdir -p .bundle/gems && echo '*' > .bundle/gems/.gitignore && \
                 BUNDLE_PATH=.bundle/gems BUNDLE_GLOBAL_GEM_CACHE=true bundle install --quiet",
        test: "BUNDLE_PATH=.bundle/gems bundle exec {ruby}",
        detected: "bundle exec {ruby}",
        caches: &[cache("~/.bundle/cache", &[("BUNDLE_USER_CACHE", "")])],
        variables: &["RBENV_ROOT", "GEM_HOME"],
        ..ROW
    },
    Ecosystem {
        name: "ruby without a Gemfile",
        recognised_by: "`spec/*_spec.rb`, `.rspec`, or a `Rakefile` and `test/`",
        tests: |tree| ruby(tree).filter(|_| !tree.has("Gemfile")),
        test: "{ruby}",
        ..ROW
    },
    Ecosystem {
        name: "composer",
        recognised_by: "`phpunit.xml`, `phpunit.xml.dist`, `phpunit.dist.xml`",
        packages: |tree| tree.first(&["composer.json"]),
        tests: |tree| tree.first(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]),
        create: "composer install --no-interaction --no-progress",
        test: "vendor/bin/phpunit",
        caches: &[cache("~/.cache/composer", &[("COMPOSER_CACHE_DIR", "")])],
        ..ROW
    },
    Ecosystem {
        name: ".NET",
        recognised_by: "`*.sln`, `*.slnx`, `*.csproj`, `*.fsproj`",
        packages: dotnet,
        tests: dotnet,
        test: "dotnet test",
        caches: &[cache("~/.nuget/packages", &[("NUGET_PACKAGES", "")])],
        ..ROW
    },
    Ecosystem {
        name: "swift",
        recognised_by: "`Package.swift`",
        packages: |tree| tree.first(&["Package.swift"]),
        tests: |tree| tree.first(&["Package.swift"]),
        test: "swift test",
        ..ROW
    },
    Ecosystem {
        name: "zig",
        recognised_by: "`build.zig`",
        packages: |tree| tree.first(&["build.zig"]),
        tests: |tree| tree.first(&["build.zig"]),
        test: "zig build test",
        caches: &[cache("~/.cache/zig", &[("ZIG_GLOBAL_CACHE_DIR", "")])],
        ..ROW
    },
];

/// What was found in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ecosystems {
    /// Every way to test, in the order of the table; the first is used.
    pub tests: Vec<Tests>,
    /// What manages packages, in the order of the table.
    pub packages: Vec<Packages>,
}

/// One way to run the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tests {
    /// Of its ecosystem.
    pub name: &'static str,
    /// For the shell, in the root of a tree that was made ready.
    pub command: String,
    /// The same where nothing made it ready.
    pub detected: String,
    /// The file by which they were found, for a person to judge.
    pub by: &'static str,
}

/// What manages packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packages {
    /// Of its ecosystem.
    pub name: &'static str,
    /// For the shell, in a new tree; empty where nothing is needed.
    pub create: String,
    /// The file by which it was found.
    pub by: &'static str,
    row: usize,
}

/// What a tree needs for the tests that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// `test.command`, and the file by which it was found.
    pub test: Option<(String, &'static str)>,
    /// `hooks.worktree.create`.
    pub create: Option<String>,
    /// The packages that it installs.
    pub packages: Vec<Packages>,
    /// Packages that the tests do not seem to need.
    pub others: Vec<Packages>,
    /// `sandbox.caches`.
    pub caches: Vec<String>,
    /// Variables that are set here and say where the toolchain is.
    pub variables: Vec<&'static str>,
}

impl Ecosystems {
    /// The test command where the settings have none, and so nothing made the tree ready for another.
    pub fn command(&self) -> Option<&str> {
        self.tests.first().map(|tests| tests.detected.as_str())
    }

    /// What a tree needs, on a machine with these variables.
    pub fn needs(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Needs {
        let first = self.tests.first();
        let own = |packages: &&Packages| first.is_some_and(|tests| tests.name == packages.name);
        // A Makefile does not say what it needs: whatever is there.
        let (packages, others): (Vec<_>, Vec<_>) = match self.packages.iter().any(|it| own(&it)) {
            true => self.packages.iter().cloned().partition(|it| own(&it)),
            false => (self.packages.clone(), Vec::new()),
        };
        let rows: Vec<&Ecosystem> = packages.iter().map(|it| &ECOSYSTEMS[it.row]).collect();
        let creates: Vec<&str> =
            packages.iter().map(|it| it.create.as_str()).filter(|it| !it.is_empty()).collect();
        let create = match creates.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            more => Some(more.iter().map(|it| format!("{{ {it}; }}")).collect::<Vec<_>>().join(" && ")),
        };
        let programs: Vec<&str> = rows.iter().map(|row| row.programs).filter(|it| !it.is_empty()).collect();
        let test = first.map(|tests| match programs.first() {
            Some(folder) if !packages.iter().any(|it| own(&it)) => {
                (format!("PATH=\"$PWD/{folder}:$PATH\" {}", tests.command), tests.by)
            }
            _ => (tests.command.clone(), tests.by),
        });
        let mut caches: Vec<String> = Vec::new();
        let mut variables: Vec<&'static str> = Vec::new();
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        for row in rows {
            let by = row.caches.iter().flat_map(|cache| cache.by.iter().map(|(name, _)| *name));
            for name in by.chain(row.variables.iter().copied()) {
                if is_set(name) && !variables.contains(&name) {
                    variables.push(name);
                }
            }
            for folder in row.caches.iter().map(|cache| cache.place(variable)) {
                if !caches.contains(&folder) {
                    caches.push(folder);
                }
            }
        }
        Needs { test, create, packages, others, caches, variables }
    }
}

impl Needs {
    /// The same where a command of somebody else's makes trees ready: the tests use the environment that it makes.
    pub fn with_set_up(mut self, command: &str, root: &Path) -> Needs {
        if command.contains(".venv") || self.create.as_deref() == Some(command) {
            return self;
        }
        let found = find(root).tests.into_iter().next();
        if let Some(tests) = found.filter(|tests| tests.name == "venv and pip") {
            self.test = Some((tests.detected, tests.by));
        }
        self
    }
}

impl Cache {
    /// Where it is on a machine with these variables.
    pub fn place(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> String {
        let set = |(name, below): &(&str, &str)| {
            let value = variable(name)?.into_string().ok()?;
            // `GOPATH` may name several folders; the first holds the packages.
            let first = value.split(':').next().unwrap_or_default().trim_end_matches('/');
            let is_plain = first.starts_with('/') && !first.split('/').any(|part| part == "..");
            is_plain.then(|| format!("{first}{below}"))
        };
        self.by.iter().find_map(set).unwrap_or_else(|| self.folder.to_owned())
    }
}

/// Looks through this tree, in the order of [`ECOSYSTEMS`].
pub fn find(root: &Path) -> Ecosystems {
    let tree = Tree { root };
    let mut found = Ecosystems::default();
    for (n, row) in ECOSYSTEMS.iter().enumerate() {
        if let Some(by) = (row.packages)(&tree) {
            found.packages.push(Packages { name: row.name, create: filled(row.create, &tree), by, row: n });
        }
        if let Some(by) = (row.tests)(&tree) {
            let each = !row.test_each.is_empty() && !javascript::has_script(&tree);
            let command = filled(if each { row.test_each } else { row.test }, &tree);
            let detected =
                if row.detected.is_empty() { command.clone() } else { filled(row.detected, &tree) };
            found.tests.push(Tests { name: row.name, command, detected, by });
        }
    }
    found
}

/// A command of the table, with what this repository needs in the place of `{…}`.
fn filled(command: &str, tree: &Tree) -> String {
    let mut text = command.to_owned();
    let put = |text: &mut String, name: &str, value: &dyn Fn() -> String| {
        if text.contains(name) {
            *text = text.replace(name, &value());
        }
    };
    let wrapper = |wrapper: &str, program: &str| {
        if tree.has(wrapper) { format!("./{wrapper}") } else { program.to_owned() }
    };
    let locked = |flag: &str| if javascript::is_locked(tree) { flag.to_owned() } else { String::new() };
    put(&mut text, "{frozen}", &|| locked(" --frozen-lockfile"));
    put(&mut text, "{immutable}", &|| locked(" --immutable"));
    put(&mut text, "{all}", &|| {
        if javascript::is_yarn_4(tree) { " --all".to_owned() } else { String::new() }
    });
    put(&mut text, "{lock}", &|| javascript::lock(tree).unwrap_or("package.json").to_owned());
    put(&mut text, "{task}", &|| javascript::deno_task(tree).to_owned());
    put(&mut text, "{version}", &|| python::version(tree).to_owned());
    put(&mut text, "{groups}", &|| python::uv_groups(tree));
    put(&mut text, "{with}", &|| python::uv_with(tree));
    put(&mut text, "{poetry}", &|| python::poetry_groups(tree));
    put(&mut text, "{install}", &|| python::pip_install(tree));
    put(&mut text, "{gradle}", &|| wrapper("gradlew", "gradle"));
    put(&mut text, "{mvn}", &|| wrapper("mvnw", "mvn"));
    put(&mut text, "{ruby}", &|| {
        if ruby(tree) == Some("spec") { "rspec".to_owned() } else { "rake test".to_owned() }
    });
    put(&mut text, "{modules}", &|| match tree.has("go.mod") {
        true => "./...".to_owned(),
        false => "$(go list -m -f '{{.Dir}}/...')".to_owned(),
    });
    text
}

/// A tree that may be an agent's: only plain files are read, and only so much of them.
pub(super) struct Tree<'a> {
    pub root: &'a Path,
}

impl Tree<'_> {
    pub fn has(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok_and(|it| it.is_file())
    }

    pub fn read(&self, name: &str) -> Option<String> {
        if !self.has(name) {
            return None;
        }
        let file = std::fs::File::open(self.root.join(name)).ok()?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether a plain file in this directory has such a name.
    pub fn any(&self, directory: &str, named: impl Fn(&str) -> bool) -> bool {
        let Ok(entries) = std::fs::read_dir(self.root.join(directory)) else { return false };
        entries.take(ENTRIES_MAX).filter_map(Result::ok).any(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_file())
                && entry.file_name().to_str().is_some_and(&named)
        })
    }

    pub fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The names of directories in this directory, sorted.
    pub fn folders(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.root.join(directory)) else { return Vec::new() };
        let folders = entries.take(ENTRIES_MAX).filter_map(Result::ok);
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<String> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

fn make(tree: &Tree) -> Option<&'static str> {
    // In the order in which make itself looks.
    let by = tree.first(&["GNUmakefile", "makefile", "Makefile"])?;
    let text = tree.read(by)?;
    let is_target = |line: &str| match line.split_once(':') {
        // `test := x` and `test ::= x` are variables, and `.PHONY: test` is no target.
        Some((targets, rest)) => {
            !rest.starts_with('=')
                && !rest.starts_with(":=")
                && !line.starts_with(['\t', ' ', '#', '.'])
                && targets.split_whitespace().any(|target| target == "test")
        }
        None => false,
    };
    text.lines().any(is_target).then_some(by)
}

fn just(tree: &Tree) -> Option<&'static str> {
    let by = tree.first(&["justfile", "Justfile", ".justfile"])?;
    let is_recipe = |line: &str| {
        let name = line.split_once(':').map_or("", |(name, _)| name.trim_start_matches('@'));
        !line.starts_with([' ', '\t', '#']) && name.split_whitespace().next() == Some("test")
    };
    tree.read(by)?.lines().any(is_recipe).then_some(by)
}

fn gradle(tree: &Tree) -> Option<&'static str> {
    tree.first(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])
}

fn ruby(tree: &Tree) -> Option<&'static str> {
    if tree.has(".rspec") || tree.any("spec", |name| name.ends_with("_spec.rb")) {
        return Some("spec");
    }
    let has_tests = tree.any("test", |name| name.ends_with("_test.rb") || name.starts_with("test_"));
    tree.first(&["Rakefile"]).filter(|_| has_tests)
}

fn dotnet(tree: &Tree) -> Option<&'static str> {
    let is_project =
        |name: &str| [".sln", ".slnx", ".csproj", ".fsproj"].iter().any(|end| name.ends_with(end));
    tree.any("", is_project).then_some("a .NET project file")
}
