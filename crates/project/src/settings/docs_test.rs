//! The page of all keys, `docs/configuration.md`, written from the table. The test compares them;
//! `ADJ_WRITE_DOCS=1 cargo test --workspace --lib docs` writes the page.

use super::keys::{Kind, SECTIONS, Section};
use std::fmt::Write;

#[path = "../../../machines/src/tests/diff.rs"]
mod diff;

#[test]
fn docs_are_what_the_keys_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = page();
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/configuration.md is not what the table of keys says; \
         ADJ_WRITE_DOCS=1 cargo test --workspace --lib docs writes it:\n{}",
        diff::diff(&there, &page)
    );
}

pub(super) fn page() -> String {
    let mut text = String::from(
        "<!-- Written from `crates/project/src/settings/keys.rs`. To change it, change that and run\n     \
         `ADJ_WRITE_DOCS=1 cargo test --workspace --lib docs`. -->\n# Configuration\n\n\
         `adjutant.toml` is at the root of the project and is committed with it. Every key has a default, so an\n\
         empty file, or none, is fine. `adj init` writes a short one with the keys that you must decide; `adj config defaults`\n\
         prints every key with its default.\n\n\
         - Adjutant reads it from your own checkout only, never from an agent's branch.\n\
         - An unknown key is an error that names the nearest known one. All errors are reported at once, each with its line,\n  \
         its column and what to do.\n\
         - While the fleet runs, the file is read again when it changes. If it is invalid, the previous settings stay in\n  \
         force, and Adjutant reports it.\n\
         - If the file is missing, as on a branch without it, the previous settings stay in force, and Adjutant reports it.\n  \
         Put it back, or run `adj config forget` to continue with the defaults.\n\
         - Times are texts: `\"90s\"`, `\"30m\"`, `\"2h\"`, `\"1h30m\"`. Money is in dollars.\n\n",
    );
    for section in SECTIONS {
        let _ = writeln!(text, "## `[{}]`\n\n{}\n", heading(section), section.about);
        text.push_str("| key | value | default | what it does |\n| --- | --- | --- | --- |\n");
        for key in section.keys {
            let default = key.default();
            let default = if default.is_empty() { "–".to_owned() } else { format!("`{default}`") };
            let _ = writeln!(
                text,
                "| `{}` | {} | {default} | {} |",
                key.path,
                cell(&kind(key.kind)),
                cell(key.about)
            );
        }
        text.push('\n');
        text.push_str(&more(section.path));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn heading(section: &Section) -> String {
    section.path.replace('*', "NAME")
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => words().iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Number(min, max) => format!("{min} to {max}"),
        other => other.expected(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// What a section needs beyond its keys.
fn more(section: &str) -> String {
    match section {
        "test" => {
            "If `command` is not set, Adjutant uses the first of these that it finds in the repository: Cargo, a `test` script in\n\
             `package.json` (npm, pnpm, yarn or bun), Deno, pytest, Go, `make test`, `just test`, Gradle, Maven, Mix, RSpec or\n\
             Rake, PHPUnit, .NET, Swift, Zig. If it finds none, it reports that nothing was tested.\n\n\
             Main's own tests run once before the first step, in a tree made like that of a merge. They run again when main\n\
             moves, when the settings for tests change (`[test]`, `[worktree]`, `[sandbox]`, `hooks.worktree.create`), when\n\
             `adj run` starts, and by `adj doctor --tests`. If they fail, no agent starts, and `adj run`, `adj why` and `adj ps`\n\
             print the output. With `check_main = false` agents start anyway, for instance to repair a main whose tests fail.\n\n\
             If the test command cannot be started (exit code 126 or 127), the agent is not asked to fix it: the task is blocked\n\
             as `environment`. If tests fail before they test anything (a missing module, collection errors, no network), main's\n\
             tests run again first. If main passes, the output is sent to the agent, because its own change broke the import or\n\
             the collection. If main fails too, nothing is sent, and everything waits for you. The same is true of the first\n\
             failing tests of a task, and of those after which no fix round is left, unless main's tests ran since the task was\n\
             taken, or since its last step.\n\n\
             The folder in which main and merges are tested keeps ignored files, such as build caches; unchanged files keep\n\
             their time. If a merge has the same files that the gate has tested, it is not tested again, even if it closes a\n\
             ticket or ticks a box.\n\n\
             `adj logs TASK --tests` prints the output of the last tests of a task, in its original order.\n\n"
        }
        "agents.*" => {
            "Without any `[agents.…]` there is one agent, `coder`, with all defaults. `command` is {programs}\n\
             for those adapters, and is required for the others.\n\n\
             An agent gets these variables, and no others: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TZ` and the variables of\n\
             your language; those that `env` names; and from Adjutant `TERM=dumb`, its own `TMPDIR`, `ADJ_TASK`, `ADJ_WORKER`,\n\
             `ADJ_RUN`, `ADJ_PORT_BASE`, and `GIT_CONFIG_COUNT` with settings that disable signing. It gets no key, no token and\n\
             no `SSH_AUTH_SOCK` unless you name it.\n\
             If a toolchain needs a variable (`RUSTUP_HOME`, `JAVA_HOME`), name it in the agent's `env` and in `env` of `[test]`.\n\
             Tests and hooks get the same usual variables and those that `[test]` names, but not those of an agent's `env`.\n\n\
             Agents, tests and hooks also get the network settings of this machine: `HTTP_PROXY`, `HTTPS_PROXY`,\n\
             `ALL_PROXY`, `NO_PROXY` (in both cases), `SSL_CERT_FILE`, `SSL_CERT_DIR`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`,\n\
             `NODE_EXTRA_CA_CERTS`, `GIT_SSL_CAINFO`, `PIP_CERT`, `UV_NATIVE_TLS` and similar ones. If the address of a proxy\n\
             contains a password, agents can read it: give the password to a proxy on this machine instead, or start `adj run`\n\
             without the variable.\n\n"
        }
        "sandbox" => {
            "Your own builds later read what an agent wrote to a cache: allow only caches that you would share with it.\n\n\
             [The sandbox](sandbox.md) describes what it enforces, what it does not, and which places are hidden.\n\n"
        }
        "policy" => {
            "A pattern is the name of a tool, or `Tool(argument)` where `*` stands for any text: `Bash(git push*)`. The first\n\
             match decides, in this order: your `red`, your `yellow`, your `green`, then the shipped rules, red before\n\
             yellow. A call without a match is green. So `green = [\"Bash(curl *)\"]` disables a shipped rule, and\n\
             `red = [\"WebFetch\"]` makes one stricter.\n\n\
             The shipped rules ask before pushes, publishing, `sudo`, deleting outside the tree, scripts piped from the\n\
             network into a shell, other machines, files of git, of Adjutant and of your keys; and, for interns, before\n\
             installing packages and fetching from the network. They catch honest mistakes. A shell can express the same\n\
             command in many ways, so only the sandbox is a boundary.\n\n"
        }
        "prompts" => return prompts(),
        "landing" => "[Pull requests](pull-requests.md) describes how work is merged if main is protected, and the variables that `open` gets.\n\n",
        "hooks" => {
            "A dotted key can be written as one (`worktree.create = \"npm ci\"`) or in a table (`[hooks.worktree]`). Hooks run\n\
             in the shell, with the environment of tests.\n\n\
             `notify` runs in the project with your own environment, so that it can reach your desktop or mail. It gets these\n\
             variables:\n\n\
             - `ADJ_NOTIFY`: the kind of the pending item, as in `adj waiting --json` (`review`, `approval`, `budget`,\n  \
             `turn_limit`, `blocked_task`, `stuck_worker`, `pull_request`, …), or `standstill`;\n\
             - `ADJ_SEVERITY` (`info`, `warning`, `urgent`) and `ADJ_REASON`;\n\
             - `ADJ_TASK`, `ADJ_APPROVAL`, `ADJ_REQUEST`, `ADJ_CHANNEL`: what it is about, empty if there is none;\n\
             - `ADJ_MESSAGE`: a sentence with the command that answers it;\n\
             - `ADJ_CALL`: the whole call that waits for an approval, over several lines;\n\
             - `ADJ_ID`: the same for the same item in every notification; and `ADJ_PROJECT`.\n\n\
             Agents can influence the message and the call: quote them.\n\n\
             `standstill` is sent once when the fleet has made no progress for `limits.standstill` although work remains.\n\
             `ADJ_MESSAGE` names all causes, `ADJ_REASON` their kinds, and the severity is `urgent`.\n\n"
        }
        "webhooks.*" => "[Operations](operations.md#messages) describes the messages, their signature and the retries.\n\n",
        "worktree" => {
            "Only files that git ignores are copied or linked, so a new tree is clean to git. `*` and `?` stay within one\n\
             directory, `**` does not; a pattern without `/` matches at any depth, one that ends in `/` a whole directory.\n\
             `.worktreeinclude` at the root has one pattern to copy per line, as in a `.gitignore`: `#` begins a comment,\n\
             `!` takes files out again. A pattern that matches at any depth is not looked for in directories that git ignores\n\
             as a whole, such as `node_modules`. Links that lead out of the project are not followed.\n\n\
             `symlink = [\".venv\"]` also works if `.gitignore` says `.venv/`: the link is excluded in the tree's own git settings.\n\
             If a path in `copy` or `symlink` cannot be created, the step fails and no agent starts; `adj doctor` and\n\
             `adj config check` report it earlier.\n\n\
             Tests do not see your checkout: only the tree under test, linked files, and the paths in `sandbox.read` and\n\
             `sandbox.caches`. `adj run`, `adj doctor` and `adj config check` refuse a folder that leads back into the\n\
             checkout: an editable install (a `.pth` or `.egg-link` file, an `__editable__` finder, `direct_url.json`), or\n\
             a workspace package such as `node_modules/@x/a -> ../../packages/a`. Have `hooks.worktree.create` install one in each\n\
             tree instead, for example `python3 -m venv .venv && .venv/bin/pip install -e .`. `adj init` writes that command;\n\
             [working trees](trees.md) lists it for each ecosystem.\n\n\
             A `.worktreeinclude` that an agent changed is not in force until you run `adj config trust`. Until then, trees get\n\
             the files of its last trusted content.\n\n"
        }
        _ => "",
    }
    .replace("{programs}", &programs())
}

/// The commands of adapters that have one by themselves: `["claude"]` or `["codex"]`.
fn programs() -> String {
    let programs = agents::ADAPTERS.iter().filter_map(|adapter| adapter.program());
    agents::listed(&programs.map(|program| format!("`[\"{program}\"]`")).collect::<Vec<_>>())
}

fn prompts() -> String {
    use crate::prompts::Variable;
    use machines::Wire;
    let mut text = String::from(
        "A template is Markdown with variables in double braces: `{{title}}`. Lines from `{{#notes}}` to `{{/notes}}` are left\n\
         out if that variable is empty. A template with an unknown variable is refused when it is loaded.\n\n\
         | variable | what it holds |\n| --- | --- |\n",
    );
    for variable in Variable::ALL {
        let _ = writeln!(text, "| `{variable}` | {} |", cell(variable.about()));
    }
    text.push('\n');
    text
}
