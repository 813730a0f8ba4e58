use super::*;
use testing::Folder;

fn found(files: &[(&str, &str)]) -> Ecosystems {
    let folder = Folder::new();
    for (name, text) in files {
        folder.write(name, text);
    }
    find(&folder.path)
}

fn check(files: &[(&str, &str)], commands: &[&str]) {
    let found: Vec<_> = found(files).tests.into_iter().map(|tests| tests.detected).collect();
    assert_eq!(found, commands, "in {files:?}");
}

/// What `adj init` writes: the command for a new tree, and the tests.
fn check_needs(files: &[(&str, &str)], create: &str, test: &str) {
    let needs = found(files).needs(&|_| None);
    let test_found = needs.test.map(|(command, _)| command).unwrap_or_default();
    assert_eq!(
        (needs.create.unwrap_or_default().as_str(), test_found.as_str()),
        (create, test),
        "in {files:?}"
    );
}

const SCRIPT: &str = r#"{"scripts":{"test":"x"}}"#;
const VENV: &str =
    "{ [ -x .venv/bin/pip ] || python3 -m venv --clear .venv; } && echo '*' > .venv/.gitignore && ";
const PYTEST: &str = ".venv/bin/python -m pytest -q";

#[test]
fn tests_are_found_by_what_the_repository_holds() {
    check(&[("Cargo.toml", "")], &["cargo test"]);
    check(&[("package.json", r#"{"scripts":{"test":"vitest"}}"#)], &["npm test"]);
    check(&[("package.json", SCRIPT), ("pnpm-lock.yaml", "")], &["pnpm test"]);
    check(&[("package.json", SCRIPT), ("yarn.lock", "")], &["yarn test"]);
    check(&[("package.json", SCRIPT), ("bun.lockb", "")], &["bun run test"]);
    check(
        &[("package.json", r#"{"packageManager":"yarn@4.1","scripts":{"test":"x"}}"#), ("bun.lock", "")],
        &["yarn test"],
    );
    check(&[("pytest.ini", "")], &["python3 -m pytest"]);
    check(&[("pyproject.toml", "[tool.pytest.ini_options]"), ("uv.lock", "")], &["uv run pytest"]);
    check(&[("tests/test_a.py", "")], &["python3 -m pytest"]);
    check(&[("go.mod", "")], &["go test ./..."]);
    check(&[("Makefile", ".PHONY: test\ncheck test: build\n\tx\n")], &["make test"]);
    check(&[("justfile", "test filter='':\n  x\n")], &["just test"]);
    check(&[("build.gradle.kts", ""), ("gradlew", "")], &["./gradlew test"]);
    check(&[("pom.xml", "")], &["mvn -B test"]);
    check(&[("mix.exs", "")], &["mix test"]);
    check(&[("spec/a_spec.rb", ""), ("Gemfile", "")], &["bundle exec rspec"]);
    check(&[("phpunit.xml.dist", "")], &["vendor/bin/phpunit"]);
    check(&[("a.sln", "")], &["dotnet test"]);
    check(&[("deno.json", r#"{"tasks":{"test":"x"}}"#)], &["deno task test"]);
}

#[test]
fn a_language_comes_before_the_makefile_and_all_are_told() {
    check(&[("Makefile", "test:\n"), ("Cargo.toml", "")], &["cargo test", "make test"]);
}

#[test]
fn what_only_looks_like_tests_is_not_found() {
    check(&[], &[]);
    check(&[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)], &[]);
    check(&[("package.json", r#"{"scripts":{}}"#)], &[]);
    check(&[("package.json", "not json")], &[]);
    check(&[("Makefile", "test := 1\n.PHONY: test\nbuild: test\n\ttest: x\n")], &[]);
    check(&[("pyproject.toml", "[project]")], &[]);
}

#[test]
fn a_manifest_that_is_a_link_is_not_read() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/etc/hostname", folder.path.join("Cargo.toml")).unwrap();
    assert_eq!(find(&folder.path), Ecosystems::default());
}

#[test]
fn javascript_trees_install_what_the_lock_file_says() {
    let ci = "[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --prefer-offline --no-audit --no-fund";
    check_needs(&[("package.json", SCRIPT), ("package-lock.json", "")], ci, "npm test");
    let install = "npm install --no-package-lock --prefer-offline --no-audit --no-fund";
    check_needs(&[("package.json", SCRIPT)], install, "npm test");
    let pnpm = "CI=true pnpm install --frozen-lockfile --prefer-offline";
    check_needs(&[("package.json", SCRIPT), ("pnpm-lock.yaml", "")], pnpm, "pnpm test");
    let yarn = "yarn install --frozen-lockfile --prefer-offline --non-interactive";
    check_needs(&[("package.json", SCRIPT), ("yarn.lock", "# yarn lockfile v1\n")], yarn, "yarn test");
    let berry = "# x\n\n__metadata:\n  version: 8\n";
    check_needs(&[("package.json", SCRIPT), ("yarn.lock", berry)], "yarn install --immutable", "yarn test");
    for (version, test) in
        [(8, "yarn workspaces foreach --all run test"), (6, "yarn workspaces foreach run test")]
    {
        let lock = format!("# x\n\n__metadata:\n  version: {version}\n");
        let root = r#"{"workspaces":["packages/*"]}"#;
        let files = [("package.json", root), ("yarn.lock", &*lock), ("packages/a/package.json", SCRIPT)];
        check_needs(&files, "yarn install --immutable", test);
    }
    check_needs(
        &[("package.json", SCRIPT), ("bun.lock", "")],
        "bun install --frozen-lockfile",
        "bun run test",
    );
}

#[test]
fn a_workspace_without_tests_at_its_root_runs_those_of_its_packages() {
    let pnpm = [
        ("package.json", "{}"),
        ("pnpm-lock.yaml", ""),
        ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
        ("packages/a/package.json", SCRIPT),
        ("packages/b/package.json", "{}"),
    ];
    let create = "CI=true pnpm install --frozen-lockfile --prefer-offline";
    check_needs(&pnpm, create, "pnpm --recursive --if-present run test");
    let npm = [("package.json", r#"{"workspaces":["packages/*"]}"#), ("packages/a/package.json", SCRIPT)];
    check_needs(
        &npm,
        "npm install --no-package-lock --prefer-offline --no-audit --no-fund",
        "npm test --workspaces --if-present",
    );
    // No package has tests.
    check(&[("package.json", r#"{"workspaces":["packages/*"]}"#), ("packages/a/package.json", "{}")], &[]);
}

#[test]
fn python_trees_get_an_environment_of_their_own_with_pytest_in_it() {
    let tests = ("tests/test_a.py", "");
    let pip = |rest: &str| format!("{VENV}.venv/bin/pip install -q{rest}");
    check_needs(&[tests], &pip(" pytest"), PYTEST);
    check_needs(&[tests, ("requirements.txt", "flask\n")], &pip(" -r requirements.txt pytest"), PYTEST);
    check_needs(
        &[tests, ("setup.py", ""), ("requirements-dev.txt", "coverage\npytest\n")],
        &pip(" -e . -r requirements-dev.txt"),
        PYTEST,
    );
    check_needs(&[tests, ("pyproject.toml", "[project]\nname = 'x'\n")], &pip(" -e . pytest"), PYTEST);
    check_needs(
        &[
            tests,
            (
                "pyproject.toml",
                "[project]\n[project.optional-dependencies]\ndocs = []\ntest = ['pytest>=8']\n",
            ),
        ],
        &pip(" -e '.[test]'"),
        PYTEST,
    );
    check_needs(
        &[
            tests,
            (
                "pyproject.toml",
                "[project]\n[dependency-groups]\ndev = ['ruff', {include-group = 'unit'}]\nunit = ['pytest']\n",
            ),
        ],
        &format!("{VENV}.venv/bin/pip install -q --upgrade pip && .venv/bin/pip install -q -e . --group dev"),
        PYTEST,
    );
    check_needs(
        &[tests, ("pyproject.toml", "[build-system]\nrequires = ['setuptools-scm']\n")],
        &format!("{VENV}SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 .venv/bin/pip install -q -e . pytest"),
        PYTEST,
    );
    check_needs(
        &[
            tests,
            ("setup.py", ""),
            ("setup.cfg", "[options.extras_require]\ntesting =\n    pytest\n[x]\ndev =\n"),
        ],
        &pip(" -e '.[testing]' pytest"),
        PYTEST,
    );
    let uv = |pyproject: &'static str| [tests, ("uv.lock", ""), ("pyproject.toml", pyproject)];
    check_needs(
        &uv("[project]\n[dependency-groups]\ndev = ['pytest']\n"),
        "uv sync --frozen",
        "uv run --frozen python -m pytest -q",
    );
    check_needs(
        &uv(
            "[project]\n[dependency-groups]\ntyping = ['pytest']\ntests = ['pytest']\n[tool.uv]\ndefault-groups = ['dev']\n",
        ),
        "uv sync --frozen --group tests",
        "uv run --frozen --group tests python -m pytest -q",
    );
    check_needs(
        &uv("[project]\n[tool.uv.workspace]\nmembers = ['a']\n"),
        "uv sync --frozen --all-packages",
        "uv run --frozen --all-packages --with pytest python -m pytest -q",
    );
    let poetry = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction";
    check_needs(&[tests, ("poetry.lock", "")], poetry, PYTEST);
    check_needs(
        &[
            tests,
            (
                "pyproject.toml",
                "[tool.poetry.group.qa]\noptional = true\n[tool.poetry.group.qa.dependencies]\npytest = '8'\n",
            ),
        ],
        &format!("{poetry} --with qa"),
        PYTEST,
    );
    check_needs(&[tests, ("pdm.lock", "")], "pdm install --frozen-lockfile", "pdm run python -m pytest -q");
}

#[test]
fn other_trees_need_a_command_or_a_cache() {
    check_needs(&[("Cargo.toml", "")], "", "cargo test");
    check_needs(&[("go.mod", "")], "", "go test ./...");
    check_needs(&[("go.work", "")], "", "go test $(go list -m -f '{{.Dir}}/...')");
    check_needs(&[("build.gradle", ""), ("gradlew", "")], "", "./gradlew --no-daemon test");
    check_needs(&[("pom.xml", ""), ("mvnw", "")], "", "./mvnw -B test");
    check_needs(
        &[("Gemfile", ""), ("Rakefile", ""), ("test/test_a.rb", "")],
        "mkdir -p .bundle/gems && echo '*' > .bundle/gems/.gitignore && \
         BUNDLE_PATH=.bundle/gems BUNDLE_GLOBAL_GEM_CACHE=true bundle install --quiet",
        "BUNDLE_PATH=.bundle/gems bundle exec rake test",
    );
}

/// A Makefile does not say what it needs, so everything that is there is installed, and its programs are found.
#[test]
fn a_makefile_gets_the_packages_of_every_language() {
    check_needs(
        &[("Makefile", "test:\n\tx\n"), ("package.json", "{}"), ("requirements.txt", "")],
        &format!(
            "{{ npm install --no-package-lock --prefer-offline --no-audit --no-fund; }} && \
             {{ {VENV}.venv/bin/pip install -q -r requirements.txt pytest; }}"
        ),
        "PATH=\"$PWD/.venv/bin:$PATH\" make test",
    );
    let files = [("Cargo.toml", ""), ("package.json", "{}")];
    let needs = found(&files).needs(&|_| None);
    assert_eq!(needs.create, None, "the tests of cargo do not need npm");
    assert_eq!(needs.others.iter().map(|it| it.name).collect::<Vec<_>>(), ["npm without a lock file"]);
}

#[test]
fn caches_are_where_the_variables_of_this_machine_say() {
    let go = found(&[("go.mod", "")]);
    assert_eq!(go.needs(&|_| None).caches, ["~/go/pkg/mod", "~/go/pkg/sumdb", "~/.cache/go-build"]);
    let set = |name: &str| match name {
        "GOPATH" => Some("/opt/go:/other".into()),
        "GOCACHE" => Some("off".into()),
        _ => None,
    };
    let needs = go.needs(&set);
    assert_eq!(needs.caches, ["/opt/go/pkg/mod", "/opt/go/pkg/sumdb", "~/.cache/go-build"]);
    assert_eq!(needs.variables, ["GOPATH", "GOCACHE"]);
}

/// A tree's tests run in it: what the table says leads nowhere else, and what it allows is only packages.
#[test]
fn every_row_says_what_it_needs() {
    for row in ECOSYSTEMS {
        assert!(!row.name.is_empty() && !row.recognised_by.is_empty() && !row.test.is_empty(), "{row:?}");
        let is_own = |folder: &str| folder.starts_with("~/") || folder.ends_with("{uid}");
        assert!(row.caches.iter().all(|cache| is_own(cache.folder)), "{}", row.name);
        let whole =
            ["~/.gradle", "~/.m2", "~/.npm", "~/.yarn", "~/.cargo", "~/.local/share/pnpm", "~/.bundle"];
        assert!(!row.caches.iter().any(|cache| whole.contains(&cache.folder)), "{}", row.name);
    }
}

fn page() -> String {
    let mut text = String::from(include_str!("page.md"));
    let mut table = String::from(
        "| ecosystem | recognised by | `hooks.worktree.create` | `test.command` | `sandbox.caches` |\n| --- | --- | --- | --- | --- |\n",
    );
    let code = |text: &str| match text {
        "" => "–".to_owned(),
        text => format!("`{}`", text.replace('|', "\\|")),
    };
    for row in ECOSYSTEMS {
        let caches: Vec<String> = row.caches.iter().map(|cache| format!("`{}`", cache.folder)).collect();
        let caches = if caches.is_empty() { "–".to_owned() } else { caches.join(", ") };
        table.push_str(&format!(
            "| {} | {} | {} | {} | {caches} |\n",
            row.name,
            row.recognised_by,
            code(row.create),
            code(row.test)
        ));
    }
    text = text.replace("{{table}}\n", &table);
    text
}

#[test]
fn docs_of_trees_are_as_printed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trees.md");
    let page = page();
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/trees.md is not what the table says; ADJ_WRITE_DOCS=1 cargo test --workspace --lib docs writes it"
    );
}
