//! The packages of a Python repository: where pytest comes from, and how the project itself is installed.

use super::Tree;
use toml_edit::{DocumentMut, Item, Value};

/// Names of groups and extras for tests, the likeliest first.
const NAMES: &[&str] = &["test", "tests", "testing", "dev", "develop", "development"];
/// Files of requirements for tests, the likeliest first.
const REQUIREMENTS: &[&str] = &[
    "requirements-test.txt",
    "requirements-tests.txt",
    "requirements_test.txt",
    "test-requirements.txt",
    "test_requirements.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "requirements/testing.txt",
    "tests/requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "requirements/dev.txt",
    "requirements/development.txt",
];

/// What says that there are tests for pytest.
pub fn tests(tree: &Tree) -> Option<&'static str> {
    let says =
        |name: &'static str, words: &str| tree.read(name).filter(|text| text.contains(words)).map(|_| name);
    let is_test =
        |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    tree.first(&["pytest.ini", ".pytest.ini", "conftest.py"])
        .or_else(|| says("pyproject.toml", "[tool.pytest"))
        .or_else(|| says("setup.cfg", "[tool:pytest]"))
        .or_else(|| says("tox.ini", "[pytest]"))
        .or_else(|| tree.any("tests", is_test).then_some("tests"))
        .or_else(|| tree.any("test", is_test).then_some("test"))
        .or_else(|| tree.any("", is_test).then_some("test files"))
}

fn pyproject(tree: &Tree) -> DocumentMut {
    tree.read("pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn at<'i>(item: &'i Item, path: &[&str]) -> Option<&'i Item> {
    path.iter().try_fold(item, |item, key| item.get(key))
}

pub fn poetry(tree: &Tree) -> Option<&'static str> {
    if tree.has("uv.lock") {
        return None;
    }
    let is_named = at(pyproject(tree).as_item(), &["tool", "poetry"]).is_some();
    tree.first(&["poetry.lock"]).or_else(|| is_named.then_some("pyproject.toml"))
}

/// Whether nothing else than pip is said to manage the packages.
pub fn pip(tree: &Tree) -> bool {
    tree.first(&["uv.lock", "poetry.lock", "pdm.lock"]).is_none() && poetry(tree).is_none()
}

/// What says that there are packages to install, if only pytest.
pub fn manifest(tree: &Tree) -> Option<&'static str> {
    tree.first(&["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"])
        .filter(|name| *name != "pyproject.toml" || is_project(tree) || tests(tree).is_some())
        .or_else(|| tree.first(REQUIREMENTS))
        .or_else(|| tests(tree))
}

/// Whether `pip install -e .` means something here.
fn is_project(tree: &Tree) -> bool {
    let file = pyproject(tree);
    file.contains_key("project")
        || file.contains_key("build-system")
        || tree.has("setup.py")
        || tree.read("setup.cfg").is_some_and(|text| text.contains("[metadata]"))
}

/// A version for projects that take theirs from git's tags, which a tree does not have.
pub fn version(tree: &Tree) -> &'static str {
    let says = |name: &str| {
        let text = tree.read(name).unwrap_or_default();
        ["setuptools_scm", "setuptools-scm", "hatch-vcs", "vcs-versioning"].iter().any(|it| text.contains(it))
    };
    match ["pyproject.toml", "setup.py", "setup.cfg"].into_iter().any(says) {
        true => "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 ",
        false => "",
    }
}

fn is_pytest(requirement: &str) -> bool {
    let rest = requirement.trim().to_ascii_lowercase();
    rest.strip_prefix("pytest").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The requirements of a list, those of groups that it includes among them.
fn requirements(groups: Option<&Item>, list: &Item, depth: usize) -> Vec<String> {
    let mut all = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        let included = |entry: &Value| {
            let name = entry.as_inline_table()?.get("include-group")?.as_str()?.to_owned();
            groups?.get(&name).filter(|_| depth < 8).map(|list| requirements(groups, list, depth + 1))
        };
        all.extend(entry.as_str().map(str::to_owned));
        all.extend(included(entry).into_iter().flatten());
    }
    all
}

/// The lists of a table that bring pytest, the likeliest name first.
fn with_pytest(groups: Option<&Item>, table: Option<&Item>) -> Vec<String> {
    let Some(table) = table.and_then(Item::as_table_like) else { return Vec::new() };
    let brings = |(name, list): (&str, &Item)| {
        requirements(groups, list, 0).iter().any(|it| is_pytest(it)).then(|| name.to_owned())
    };
    let mut names: Vec<String> = table.iter().filter_map(brings).collect();
    names.sort_by_key(|name| NAMES.iter().position(|known| known == name).unwrap_or(NAMES.len()));
    names
}

/// Where pytest comes from.
enum Source {
    /// It is installed anyway.
    Default,
    Group(String),
    Extra(String),
    Nowhere,
}

fn source(tree: &Tree, default_groups: &dyn Fn(&DocumentMut, &str) -> bool) -> Source {
    let file = pyproject(tree);
    let groups = file.get("dependency-groups");
    let extras = at(file.as_item(), &["project", "optional-dependencies"]);
    let own = at(file.as_item(), &["project", "dependencies"]);
    if own.is_some_and(|list| requirements(None, list, 0).iter().any(|it| is_pytest(it))) {
        return Source::Default;
    }
    let named = with_pytest(groups, groups);
    if named.iter().any(|name| default_groups(&file, name)) {
        return Source::Default;
    }
    match (named.into_iter().next(), with_pytest(None, extras).into_iter().next()) {
        (Some(group), _) => Source::Group(group),
        (None, Some(extra)) => Source::Extra(extra),
        (None, None) => Source::Nowhere,
    }
}

fn uv_source(tree: &Tree) -> Source {
    source(tree, &|file, name| match at(file.as_item(), &["tool", "uv", "default-groups"]) {
        None => name == "dev",
        Some(all) if all.as_str() == Some("all") => true,
        Some(list) => requirements(None, list, 0).iter().any(|it| it == name),
    })
}

/// What `uv sync` and `uv run` need so that pytest and all packages of a workspace are there.
pub fn uv_groups(tree: &Tree) -> String {
    let file = pyproject(tree);
    let is_workspace = at(file.as_item(), &["tool", "uv", "workspace"]).is_some();
    let dev = at(file.as_item(), &["tool", "uv", "dev-dependencies"]);
    let dev = dev.is_some_and(|list| requirements(None, list, 0).iter().any(|it| is_pytest(it)));
    let all = if is_workspace { " --all-packages" } else { "" };
    match uv_source(tree) {
        Source::Group(group) if !dev => format!("{all} --group {}", quoted(&group)),
        Source::Extra(extra) if !dev => format!("{all} --extra {}", quoted(&extra)),
        _ => all.to_owned(),
    }
}

/// Brings pytest where the project does not name it.
pub fn uv_with(tree: &Tree) -> String {
    let dev = at(pyproject(tree).as_item(), &["tool", "uv", "dev-dependencies"]).is_some();
    match uv_source(tree) {
        Source::Nowhere if !dev => " --with pytest".to_owned(),
        _ => String::new(),
    }
}

/// Optional groups and extras of poetry that bring pytest. Other groups are installed anyway.
pub fn poetry_groups(tree: &Tree) -> String {
    let file = pyproject(tree);
    let groups = at(file.as_item(), &["tool", "poetry", "group"]).and_then(Item::as_table_like);
    for (name, group) in groups.into_iter().flat_map(|table| table.iter()) {
        let optional = group.get("optional").and_then(Item::as_bool).unwrap_or(false);
        let packages = group.get("dependencies").and_then(Item::as_table_like);
        if optional && packages.is_some_and(|table| table.iter().any(|(name, _)| is_pytest(name))) {
            return format!(" --with {}", quoted(name));
        }
    }
    let old = with_pytest(None, at(file.as_item(), &["tool", "poetry", "extras"]));
    let extras = with_pytest(None, at(file.as_item(), &["project", "optional-dependencies"]));
    extras
        .into_iter()
        .chain(old)
        .next()
        .map_or(String::new(), |extra| format!(" --extras {}", quoted(&extra)))
}

/// Installs the project as an editable one, its requirements and pytest.
pub fn pip_install(tree: &Tree) -> String {
    let mut arguments = String::new();
    let mut has_pytest = false;
    let mut newer = "";
    if is_project(tree) {
        let extra = match source(tree, &|_, _| false) {
            Source::Group(group) => {
                has_pytest = true;
                // The pip that comes with many Pythons is too old for groups.
                newer = ".venv/bin/pip install -q --upgrade pip && ";
                arguments = format!(" --group {}", quoted(&group));
                None
            }
            Source::Extra(extra) => {
                has_pytest = true;
                Some(extra)
            }
            Source::Default => {
                has_pytest = true;
                None
            }
            Source::Nowhere => old_extra(tree),
        };
        let project = extra.map_or(".".to_owned(), |extra| quoted(&format!(".[{extra}]")));
        arguments = format!(" -e {project}{arguments}");
    }
    let brings = |name: &str| tree.read(name).is_some_and(|text| text.lines().any(is_pytest));
    let there = |name: &&&str| tree.has(name);
    let for_tests = REQUIREMENTS.iter().filter(there).find(|name| brings(name));
    let for_tests = for_tests.or_else(|| REQUIREMENTS.iter().find(there)).filter(|_| !has_pytest);
    for name in tree.has("requirements.txt").then_some(&"requirements.txt").into_iter().chain(for_tests) {
        has_pytest |= brings(name);
        arguments.push_str(&format!(" -r {name}"));
    }
    if !has_pytest {
        arguments.push_str(" pytest");
    }
    format!("{newer}{}.venv/bin/pip install -q{arguments}", version(tree))
}

/// An extra for tests in `setup.cfg`.
fn old_extra(tree: &Tree) -> Option<String> {
    let text = tree.read("setup.cfg")?;
    let (_, section) = text.split_once("[options.extras_require]")?;
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let names: Vec<&str> = lines
        .filter(|line| !line.starts_with([' ', '\t', '#']))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim())
        .collect();
    NAMES.iter().find(|name| names.contains(name)).map(|name| (*name).to_owned())
}

/// As one word for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
