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
         `adjutant.toml` stands at the root of the project and is committed with it. Everything in it has a default, so an\n\
         empty file, or none, is fine. `adj init` writes a short one with what you must decide; `adj config defaults` prints\n\
         every key with its default.\n\n\
         - It is read from your own checkout only, never from an agent's branch.\n\
         - An unknown key is an error that names the nearest known one. All problems are told at once, each with its line,\n  \
         its column and what to do.\n\
         - While the fleet runs, the file is read again when it changes. An edit with a mistake in it changes nothing: the\n  \
         last good settings hold, and Adjutant says so.\n\
         - A file that is gone, as on a branch without it, leaves the last settings in force, and Adjutant says so. Put it\n  \
         back, or run `adj config forget` to continue with the defaults.\n\
         - Times are texts: `\"90s\"`, `\"30m\"`, `\"2h\"`, `\"1h30m\"`. Money is in dollars.\n\n",
    );
    for section in SECTIONS {
        let _ = writeln!(text, "## `[{}]`\n\n{}\n", heading(section), section.about);
        text.push_str("| key | value | default | what it does |\n| --- | --- | --- | --- |\n");
        for key in section.keys {
            let default =
                if key.default.is_empty() { "–".to_owned() } else { format!("`{}`", key.default) };
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
            "Where no command is named, the first of these that the repository holds is used: Cargo, a `test` script in\n\
             `package.json` (npm, pnpm, yarn or bun), Deno, pytest, Go, `make test`, `just test`, Gradle, Maven, Mix, RSpec or\n\
             Rake, PHPUnit, .NET, Swift, Zig. Where there is none, Adjutant says that nothing was tested.\n\n\
             Before the first step, and after a change of anything that tests are run under (`[test]`, `[worktree]`, `[sandbox]`,\n\
             `hooks.worktree.create`), main's own tests are run once in a tree made like a landing's. Where they fail, no agent\n\
             starts, and `adj run`, `adj why` and `adj ps` say so with the output. They are run again when main moves, when the\n\
             settings change, when `adj run` starts, and by `adj doctor --tests`. With `check_main = false` agents start all the\n\
             same, for instance to mend a main that is red.\n\n\
             A test command that cannot be started (exit code 126 or 127) is never sent to an agent: the task is blocked as\n\
             `environment`. Where tests fail before they test anything (a missing module, collection errors, no network), main's\n\
             are run again first. Where main passes, the output is sent to the agent, since its own change broke the import or\n\
             the collection; where main fails too, nothing is sent and everything waits for you. The same holds for a task's first\n\
             failing tests, and for those after which no fix round is left, unless main's tests were run since the task was taken\n\
             up, or since its last step.\n\n\
             The folder in which main and merges are tested keeps what git ignores, such as build caches; files that did not\n\
             change keep their time. A merge with the files that the gate has tested is not tested again, even if\n\
             the landing closes a ticket or ticks a box.\n\n\
             `adj logs TASK --tests` prints what the last tests of a task wrote, in the order in which they wrote it.\n\n"
        }
        "agents.*" => {
            "Without any `[agents.…]` there is one, `coder`, with all defaults. `command` is `[\"claude\"]`\n\
             or `[\"codex\"]` for those adapters, and must be given for the others.\n\n\
             An agent gets `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TZ` and the variables of your language from you, what\n\
             `env` names, and from Adjutant `TERM=dumb`, a `TMPDIR` of its own, `ADJ_TASK`, `ADJ_WORKER`, `ADJ_RUN` and\n\
             `ADJ_PORT_BASE`, and by `GIT_CONFIG_COUNT` that git signs nothing. Nothing else: no key, no token, no\n\
             `SSH_AUTH_SOCK` unless you name it.\n\
             A toolchain that is found by a variable (`RUSTUP_HOME`, `JAVA_HOME`) needs that in `env` too, and in `env` of\n\
             `[test]`: tests and hooks get the same usual variables, what `[test]` names, and nothing that an agent's `env` names.\n\n\
             How this machine reaches the network is passed on to agents, tests and hooks: `HTTP_PROXY`, `HTTPS_PROXY`,\n\
             `ALL_PROXY`, `NO_PROXY` (in both cases), `SSL_CERT_FILE`, `SSL_CERT_DIR`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`,\n\
             `NODE_EXTRA_CA_CERTS`, `GIT_SSL_CAINFO`, `PIP_CERT`, `UV_NATIVE_TLS` and their like. A proxy's address that holds a\n\
             password is passed on with it, and agents can read it: give the proxy's password to a proxy on this machine, or\n\
             start `adj run` without the variable.\n\n"
        }
        "sandbox" => {
            "What an agent may write in a cache, your own builds read later: allow those that you would share with it.\n\n\
             [The sandbox](sandbox.md) says what it holds, what it does not, and which places are hidden.\n\n"
        }
        "policy" => {
            "A pattern is the name of a tool, or `Tool(argument)` where `*` stands for any text: `Bash(git push*)`. The first\n\
             match decides, in this order: your `red`, your `yellow`, your `green`, then the shipped rules, red before\n\
             yellow. What nothing matches is green. So `green = [\"Bash(curl *)\"]` takes a shipped rule back, and\n\
             `red = [\"WebFetch\"]` makes one stricter.\n\n\
             The shipped rules ask before pushes, publishing, `sudo`, deleting outside the tree, scripts piped from the\n\
             network into a shell, other machines, files of git, of Adjutant and of your keys; and, for interns, before\n\
             installing packages and fetching from the network. They catch honest mistakes: a shell can spell anything in\n\
             many ways, and the sandbox is what holds.\n\n"
        }
        "prompts" => return prompts(),
        "landing" => "[Pull requests](pull-requests.md) says how work lands where main is protected, and what `open` is told.\n\n",
        "hooks" => {
            "A dotted key may be written as one (`worktree.create = \"npm ci\"`) or in a table (`[hooks.worktree]`). Hooks run\n\
             in the shell, with the environment of tests.\n\n\
             `notify` runs in the project with your own environment, so that it reaches your desktop or mail. It is told\n\
             `ADJ_NOTIFY` (the kind of what waits, as `adj waiting --json` has it: `review`, `approval`, `budget`, `turn_limit`,\n\
             `blocked_task`, `stuck_worker`, `pull_request`, …; or `standstill`), `ADJ_SEVERITY` (`info`, `warning`, `urgent`),\n\
             `ADJ_REASON`, what it is about (`ADJ_TASK`, `ADJ_APPROVAL`, `ADJ_REQUEST`, `ADJ_CHANNEL`; each empty where there is\n\
             none), `ADJ_MESSAGE` (a sentence with the command that answers it), `ADJ_CALL` (the whole call that waits for an\n\
             approval, over several lines), `ADJ_ID` (the same for the same thing, however often it is told) and `ADJ_PROJECT`.\n\
             Agents can have a say in message and call: quote them.\n\n\
             `standstill` is told once when the fleet has done nothing for `limits.standstill` although work is left: `ADJ_MESSAGE`\n\
             names all that it waits for, `ADJ_REASON` their kinds, and its severity is `urgent`.\n\n"
        }
        "webhooks.*" => "[Operations](operations.md#messages) says what is sent, how it is signed, and how often it is tried.\n\n",
        "worktree" => {
            "Only files that git ignores are copied or linked, so a new tree is clean to git. `*` and `?` stay within one\n\
             directory, `**` does not; a pattern without `/` matches at any depth, one that ends in `/` a whole directory.\n\
             `.worktreeinclude` at the root has one pattern to copy per line, as in a `.gitignore`: `#` begins a comment,\n\
             `!` takes files out again. A pattern that matches at any depth is not looked for in directories that git ignores\n\
             as a whole, such as `node_modules`. Links that lead out of the project are not followed.\n\n\
             `symlink = [\".venv\"]` works where `.gitignore` says `.venv/`: git is told of the link in the tree alone. What\n\
             `copy` and `symlink` name and cannot be put there fails the step, and keeps agents from starting; `adj doctor` and\n\
             `adj config check` find it before.\n\n\
             Tests do not see your checkout: only the tree under test, what `symlink` links, and what `sandbox.read` and\n\
             `sandbox.caches` name. A folder that leads back into the checkout is refused by `adj run`, `adj doctor` and\n\
             `adj config check`: an editable install (a `.pth` or `.egg-link` file, an `__editable__` finder, `direct_url.json`), or\n\
             a workspace package such as `node_modules/@x/a -> ../../packages/a`. Have `hooks.worktree.create` install one in each\n\
             tree instead, for example `python3 -m venv .venv && .venv/bin/pip install -e .`. `adj init` writes that command;\n\
             [working trees](trees.md) says which one for which ecosystem.\n\n\
             A `.worktreeinclude` that an agent changed is not in force before you run `adj config trust`. Until then, trees get\n\
             the files that its last trusted content names.\n\n"
        }
        _ => "",
    }
    .to_owned()
}

fn prompts() -> String {
    use crate::prompts::Variable;
    use machines::Wire;
    let mut text = String::from(
        "A template is Markdown with variables in double braces: `{{title}}`. Lines from `{{#notes}}` to `{{/notes}}` are left\n\
         out where that variable is empty. A template that names an unknown variable is refused when it is loaded.\n\n\
         | variable | what it holds |\n| --- | --- |\n",
    );
    for variable in Variable::ALL {
        let _ = writeln!(text, "| `{variable}` | {} |", cell(variable.about()));
    }
    text.push('\n');
    text
}
