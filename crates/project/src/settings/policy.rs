//! The shipped tool rules: calls about which a careful person wants to be asked.
//!
//! They catch honest mistakes and are no boundary: a shell can express everything in many ways. The boundary is the
//! sandbox, and that only Adjutant moves main. A pattern that asks once too often is better than one that asks too seldom.

use kernel::config::{Colour, ToolRule};
use smol_str::{SmolStr, format_smolstr};

/// What agents call the tool that runs a command line.
const SHELLS: &[&str] = &["Bash", "shell", "execute"];
/// What agents call the tools that write a file, by its path.
const WRITERS: &[&str] = &["Write", "Edit", "MultiEdit", "NotebookEdit", "edit"];
const READERS: &[&str] = &["Read", "read"];

/// Command lines that reach past the tree, spend a name or cannot be taken back. `*` stands for any text, and each is
/// looked for anywhere in the line, because `cd x && git push` is a push too.
const RED: &[&str] = &[
    // What others see.
    "git push",
    "git * push",
    "git remote add",
    "git remote set-url",
    "git config --global",
    "git config --system",
    "gh pr ",
    "gh release ",
    "gh repo ",
    "gh api ",
    "gh issue ",
    "gh workflow ",
    "cargo publish",
    "cargo yank",
    "npm publish",
    "npm unpublish",
    "pnpm publish",
    "yarn publish",
    "yarn npm publish",
    "bun publish",
    "twine upload",
    "uv publish",
    "poetry publish",
    "hatch publish",
    "flit publish",
    "gem push",
    "mvn deploy",
    "mvn * deploy",
    "gradle publish",
    "gradlew publish",
    "mix hex.publish",
    "docker push",
    "podman push",
    "helm push",
    "terraform apply",
    "terraform destroy",
    "kubectl apply",
    "kubectl delete",
    // What is gone afterwards.
    "rm -rf /",
    "rm -fr /",
    "rm -r -f /",
    "rm -rf ~",
    "rm -fr ~",
    "rm -rf $HOME",
    "rm -rf \"$HOME",
    "rm -rf ..",
    "rm -fr ..",
    "rm -rf .git",
    "dd * of=/dev/",
    "> /dev/sd",
    "> /dev/nvme",
    "kill -9 -1",
    // Who one is.
    "chmod -R 777 /",
    "chown -R ",
    // What nobody has read.
    "curl *| sh",
    "curl *|sh",
    "curl *| bash",
    "curl *|bash",
    "curl *| sudo",
    "wget *| sh",
    "wget *|sh",
    "wget *| bash",
    "wget *|bash",
    "bash <(curl",
    "sh -c \"$(curl",
    "bash -c \"$(curl",
];

/// Programs whose names are parts of words: red wherever a word begins with one, because `pseudo code` is none.
const RED_WORDS: &[&str] = &["sudo ", "doas ", "glab "];

/// What can stand before a word that is a command.
const BEFORE_WORDS: &[&str] =
    &["", "* ", "*\t", "*\n", "*;", "*&", "*|", "*(", "*{", "*`", "*'", "*\"", "*/", "*=", "*!"];

/// Programs whose names are words too: red where they are called, not where they are mentioned, because
/// `cargo test shutdown` is nobody's business.
const RED_PROGRAMS: &[&str] =
    &["ssh ", "scp ", "rsync ", "su ", "mkfs", "shutdown", "reboot", "crontab", "systemctl ", "adj "];

/// Command lines that bring something in from outside, or throw work of the tree away.
const YELLOW: &[&str] = &[
    "npm install",
    "npm i ",
    "npm ci",
    "npx ",
    "pnpm add",
    "pnpm install",
    "pnpm dlx",
    "yarn add",
    "yarn install",
    "bun add",
    "bun install",
    "bunx ",
    "pip install",
    "pip3 install",
    "pipx ",
    "uv add",
    "uv pip install",
    "uvx ",
    "poetry add",
    "conda install",
    "cargo add",
    "cargo install",
    "go get",
    "go install",
    "gem install",
    "bundle add",
    "composer require",
    "mix deps.get",
    "apt install",
    "apt-get install",
    "dnf install",
    "pacman -S",
    "apk add",
    "brew install",
    "docker run",
    "docker pull",
    "podman run",
    "curl ",
    "wget ",
    "git clone",
    "git fetch",
    "git pull",
    "git submodule",
    "git reset --hard",
    "git clean",
    "git checkout .",
    "git rebase",
    "git stash drop",
    "git commit --amend",
];

/// Files that are not the task's.
const RED_FILES: &[&str] =
    &["*adjutant.toml", "*/.git/*", ".git/*", "*/.ssh/*", "*/.gnupg/*", "*/.bashrc", "*/.profile", "/etc/*"];
/// Files that hold what nobody else should see.
const RED_SECRETS: &[&str] =
    &["*/.ssh/*", "*/.gnupg/*", "*/.aws/*", "*/.netrc", "*/.config/gh/*", "*/.git/adjutant/*"];
/// Tools that fetch from the network.
const YELLOW_TOOLS: &[&str] = &["WebFetch", "WebSearch", "fetch"];

/// The shipped rules, red ones first. A call that none of them matches is green.
pub fn shipped() -> Vec<ToolRule> {
    let anywhere = |text: &&str| vec![format!("*{text}*")];
    let called = |text: &&str| ["", "*&& ", "*; ", "*| "].map(|before| format!("{before}{text}*")).to_vec();
    let begun =
        |text: &&str| BEFORE_WORDS.iter().map(|before| format!("{before}{text}*")).collect::<Vec<_>>();
    let whole = |text: &&str| vec![(*text).to_owned()];
    let mut rules = Vec::new();
    let mut each = |tools: &[&str], arguments: Vec<String>, colour| {
        for argument in arguments {
            rules.extend(tools.iter().map(|tool| rule(format_smolstr!("{tool}({argument})"), colour)));
        }
    };
    each(SHELLS, RED.iter().flat_map(anywhere).collect(), Colour::Red);
    each(SHELLS, RED_WORDS.iter().flat_map(begun).collect(), Colour::Red);
    each(SHELLS, RED_PROGRAMS.iter().flat_map(called).collect(), Colour::Red);
    each(WRITERS, RED_FILES.iter().flat_map(whole).collect(), Colour::Red);
    each(READERS, RED_SECRETS.iter().flat_map(whole).collect(), Colour::Red);
    each(SHELLS, YELLOW.iter().flat_map(anywhere).collect(), Colour::Yellow);
    rules.extend(YELLOW_TOOLS.iter().map(|tool| rule(SmolStr::new_static(tool), Colour::Yellow)));
    rules
}

fn rule(pattern: SmolStr, colour: Colour) -> ToolRule {
    ToolRule { pattern, colour, commands_only: true }
}
