//! Reads files of other tools that set up a tree: `.worktreeinclude`, `.cursor/worktrees.json`,
//! `.codex/environments/environment.toml` and `conductor.json`. `adj init` copies their settings into `adjutant.toml`, which a person
//! reads and trusts; the files are not read again later.
//!
//! Those tools name the user's checkout by a variable. Trees cannot read it, so `cp $ROOT/.env .env` becomes an entry
//! of `worktree.copy`, and any other command that names it is left out with a warning.

use super::ecosystem::Tree;
use super::tree::INCLUDE_FILE;
use serde_json::Value;
use std::path::Path;
use toml_edit::DocumentMut;

const CURSOR: &str = ".cursor/worktrees.json";
const CODEX: &str = ".codex/environments/environment.toml";
const CONDUCTOR: &str = "conductor.json";

/// Variables of those tools: the person's checkout, the tree, and a port of its own.
const CHECKOUT: &[&str] = &["ROOT_WORKTREE_PATH", "CODEX_SOURCE_TREE_PATH", "CONDUCTOR_ROOT_PATH"];
const HERE: &[&str] = &["CODEX_WORKTREE_PATH", "CONDUCTOR_WORKSPACE_PATH"];
const PORT: &[&str] = &["CONDUCTOR_PORT"];

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub file: &'static str,
    /// Commands for a new tree, in their order.
    pub create: Vec<String>,
    /// Commands for a tree that is removed.
    pub remove: Vec<String>,
    /// Ignored files to copy from the checkout.
    pub copy: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<(String, &'static str)>,
}

/// What the files of other tools say, each that says something.
pub fn declared(root: &Path) -> Vec<Declared> {
    let tree = Tree { root };
    let all = [include(&tree), cursor(&tree), codex(&tree), conductor(&tree)];
    let says_something = |it: &Declared| *it != Declared { file: it.file, ..Declared::default() };
    all.into_iter().flatten().filter(says_something).collect()
}

fn include(tree: &Tree) -> Option<Declared> {
    let mut found = Declared { file: INCLUDE_FILE, ..Declared::default() };
    for line in tree.read(INCLUDE_FILE)?.lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with('#') {
            // A leading `/` is only a place in the project, which an entry of the settings is anyway.
            found.copy.push(line.strip_prefix('/').unwrap_or(line).to_owned());
        }
    }
    Some(found)
}

fn cursor(tree: &Tree) -> Option<Declared> {
    let mut found = Declared { file: CURSOR, ..Declared::default() };
    let Ok(file) = serde_json::from_str::<Value>(&tree.read(CURSOR)?) else {
        return Some(unreadable(found));
    };
    let setup = [&file["setup-worktree-unix"], &file["setup-worktree"]].into_iter().find(|it| !it.is_null());
    match setup {
        Some(Value::Array(commands)) => {
            for command in commands.iter().filter_map(Value::as_str) {
                found.take(command, false);
            }
        }
        // A script, by its path from this file.
        Some(Value::String(path)) => found.take_script(tree, ".cursor", path),
        _ => {}
    }
    Some(found)
}

fn codex(tree: &Tree) -> Option<Declared> {
    let mut found = Declared { file: CODEX, ..Declared::default() };
    let Ok(file) = tree.read(CODEX)?.parse::<DocumentMut>() else { return Some(unreadable(found)) };
    for (section, remove) in [("setup", false), ("cleanup", true)] {
        let section = file.get(section);
        let own = section.and_then(|it| it.get("linux")).and_then(|it| it.get("script"));
        let script = own.or_else(|| section.and_then(|it| it.get("script"))).and_then(|it| it.as_str());
        found.take(script.unwrap_or_default(), remove);
    }
    Some(found)
}

fn conductor(tree: &Tree) -> Option<Declared> {
    let mut found = Declared { file: CONDUCTOR, ..Declared::default() };
    let Ok(file) = serde_json::from_str::<Value>(&tree.read(CONDUCTOR)?) else {
        return Some(unreadable(found));
    };
    for (script, remove) in [("setup", false), ("archive", true)] {
        let script = file["scripts"][script].as_str().unwrap_or_default();
        let program = script.split_whitespace().next().unwrap_or_default();
        // A script of the repository may name the checkout, too.
        match tree.has(program.trim_start_matches("./")) && names_checkout_in(tree, program) {
            true => found.left_out.push((script.trim().to_owned(), READS_CHECKOUT)),
            false => found.take(script, remove),
        }
    }
    Some(found)
}

fn unreadable(found: Declared) -> Declared {
    Declared { left_out: vec![("the whole file".to_owned(), "it cannot be read")], ..found }
}

const READS_CHECKOUT: &str = "it reads your checkout, which is not available in a tree";
const COMPOUND: &str = "it reads your checkout in a loop or condition; name the files in worktree.copy";

impl Declared {
    /// Takes over a script of one or more lines.
    fn take(&mut self, script: &str, remove: bool) {
        let script = renamed(script.trim());
        let Some(commands) = simple_commands(&script) else {
            match names_checkout(&script) {
                true => self.left_out.push((first_line(&script), COMPOUND)),
                false => self.push(script, remove),
            }
            return;
        };
        for command in commands {
            if !names_checkout(&command) {
                self.push(command, remove);
            } else if let Some(path) = copied(&command) {
                if !self.copy.contains(&path) {
                    self.copy.push(path);
                }
            } else if !is_test(&command) {
                self.left_out.push((command, READS_CHECKOUT));
            }
        }
    }

    fn push(&mut self, command: String, remove: bool) {
        let list = if remove { &mut self.remove } else { &mut self.create };
        if !matches!(command.as_str(), "" | "set -e" | "set -eu" | "set -euo pipefail" | "set -ex") {
            list.push(command);
        }
    }

    fn take_script(&mut self, tree: &Tree, folder: &str, path: &str) {
        let path = format!("{folder}/{}", path.trim_start_matches("./"));
        let is_inside = !path.split('/').any(|part| part == "..");
        match is_inside.then(|| tree.read(&path)).flatten() {
            None => self.left_out.push((path, "there is no such script")),
            Some(text) if names_checkout(&text) => self.left_out.push((path, READS_CHECKOUT)),
            Some(_) => self.create.push(format!("bash {}", quoted(&path))),
        }
    }
}

fn names_checkout(text: &str) -> bool {
    CHECKOUT.iter().any(|name| text.contains(name))
}

fn names_checkout_in(tree: &Tree, program: &str) -> bool {
    let path = program.trim_start_matches("./");
    !path.split('/').any(|part| part == "..") && tree.read(path).is_some_and(|text| names_checkout(&text))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// With the names that Adjutant has for the same things.
fn renamed(script: &str) -> String {
    let mut text = script.to_owned();
    for (names, ours) in [(HERE, "PWD"), (PORT, "ADJ_PORT_BASE")] {
        for name in names {
            text = text.replace(&format!("${{{name}}}"), &format!("${ours}"));
            text = text.replace(&format!("${name}"), &format!("${ours}"));
        }
    }
    text
}

/// The commands of a script, if it is no more than one after the other.
fn simple_commands(script: &str) -> Option<Vec<String>> {
    const COMPOUND: &[&str] = &["if", "for", "while", "until", "case", "function", "do", "then", "{", "("];
    if script.contains("<<") || script.contains("\\\n") {
        return None;
    }
    let mut commands = vec![String::new()];
    let (mut quote, mut last) = (None, ' ');
    let mut characters = script.chars().peekable();
    while let Some(c) = characters.next() {
        let is_and = c == '&' && characters.peek() == Some(&'&');
        match quote {
            Some(open) if c == open && last != '\\' => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' && (last == '\n' || last == ' ') => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
                last = c;
                continue;
            }
            None if is_and || c == ';' || c == '\n' => {
                if is_and {
                    characters.next();
                }
                commands.push(String::new());
                last = '\n';
                continue;
            }
            _ => {}
        }
        commands.last_mut()?.push(c);
        last = c;
    }
    let commands: Vec<String> =
        commands.iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
    let begins = |command: &String| {
        let word = command.split_whitespace().next().unwrap_or_default();
        COMPOUND.contains(&word) || command.starts_with('(') || command.contains("()")
    };
    (quote.is_none() && !commands.iter().any(begins)).then_some(commands)
}

/// `[ -f "$ROOT/.env" ]`, which only guards the copy after it.
fn is_test(command: &str) -> bool {
    matches!(command.split_whitespace().next(), Some("[" | "[[" | "test"))
}

/// The path in the project that a command copies or links from the checkout to the same place in the tree.
fn copied(command: &str) -> Option<String> {
    let command = command.trim_end_matches("|| true").trim_end_matches("|| :").trim();
    let words = command.split_whitespace().filter(|word| !word.starts_with("2>"));
    let words: Vec<String> = words.map(|word| word.replace(['"', '\''], "")).collect();
    let (program, arguments) = words.split_first()?;
    if !matches!(program.as_str(), "cp" | "ln") {
        return None;
    }
    let paths: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let [from, to] = paths.as_slice() else { return None };
    let of_checkout = |name: &&str| {
        let rest =
            from.strip_prefix(&format!("${name}")).or_else(|| from.strip_prefix(&format!("${{{name}}}")));
        rest.and_then(|rest| rest.strip_prefix('/')).map(str::to_owned)
    };
    let path = CHECKOUT.iter().find_map(of_checkout)?;
    let path = path.trim_end_matches('/').trim_end_matches("/.").to_owned();
    let to = to.trim_start_matches("$PWD/").trim_start_matches("./").trim_end_matches('/');
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let same = to == path
        || (matches!(to, "" | "." | "$PWD") && folder.is_empty())
        || (to == folder && !folder.is_empty());
    // What packages are installed is made in the tree: a copy of it would lead back into the checkout.
    let installed = path.split('/').any(|part| matches!(part, "node_modules" | ".venv" | "venv"));
    let plain =
        !path.is_empty() && !path.contains(['$', '`', '~']) && !path.split('/').any(|part| part == "..");
    (same && plain && !installed).then_some(path)
}

fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use testing::Folder;

    /// What is taken over, a line each.
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let folder = Folder::new();
        for (name, text) in files {
            folder.write(name, text);
        }
        let mut lines = Vec::new();
        for found in declared(&folder.path) {
            lines.extend(found.create.iter().map(|it| format!("{} create {it}", found.file)));
            lines.extend(found.remove.iter().map(|it| format!("{} remove {it}", found.file)));
            lines.extend(found.copy.iter().map(|it| format!("{} copy {it}", found.file)));
            lines.extend(found.left_out.iter().map(|(it, why)| format!("{} leave {it}: {why}", found.file)));
        }
        assert_eq!(lines, expected, "of {files:?}");
    }

    #[test]
    fn what_other_tools_say_is_taken_over() {
        check(&[], &[]);
        check(
            &[(".worktreeinclude", "# local\n.env\n/config/*.local\n!x.local\n\n")],
            &[
                ".worktreeinclude copy .env",
                ".worktreeinclude copy config/*.local",
                ".worktreeinclude copy !x.local",
            ],
        );
        check(
            &[(
                CURSOR,
                r#"{"setup-worktree-unix": ["npm ci", "cp $ROOT_WORKTREE_PATH/.env .env"], "setup-worktree": ["x"]}"#,
            )],
            &[".cursor/worktrees.json create npm ci", ".cursor/worktrees.json copy .env"],
        );
        check(
            &[(CURSOR, r#"{"setup-worktree": "setup.sh"}"#), (".cursor/setup.sh", "npm ci")],
            &[".cursor/worktrees.json create bash .cursor/setup.sh"],
        );
        check(
            &[(
                CODEX,
                "version = 1\n[setup]\nscript = '''\nset -e\npnpm install # all\n'''\n[cleanup]\nscript = \"make down\"\n",
            )],
            &[
                ".codex/environments/environment.toml create pnpm install",
                ".codex/environments/environment.toml remove make down",
            ],
        );
        check(
            &[(
                CONDUCTOR,
                r#"{"scripts": {"setup": "npm install; [ -f \"$CONDUCTOR_ROOT_PATH/a/.env\" ] && cp \"$CONDUCTOR_ROOT_PATH/a/.env\" a/.env && PORT=$CONDUCTOR_PORT make b", "archive": "make down"}}"#,
            )],
            &[
                "conductor.json create npm install",
                "conductor.json create PORT=$ADJ_PORT_BASE make b",
                "conductor.json remove make down",
                "conductor.json copy a/.env",
            ],
        );
    }

    #[test]
    fn what_reads_the_checkout_is_left_out_and_said() {
        check(
            &[(
                CURSOR,
                r#"{"setup-worktree": ["ln -s $ROOT_WORKTREE_PATH/node_modules node_modules", "rsync -a $ROOT_WORKTREE_PATH/x ."]}"#,
            )],
            &[
                &format!(
                    ".cursor/worktrees.json leave ln -s $ROOT_WORKTREE_PATH/node_modules node_modules: {READS_CHECKOUT}"
                ),
                &format!(".cursor/worktrees.json leave rsync -a $ROOT_WORKTREE_PATH/x .: {READS_CHECKOUT}"),
            ],
        );
        check(
            &[(
                CONDUCTOR,
                r#"{"scripts": {"setup": "for d in a b; do cp $CONDUCTOR_ROOT_PATH/$d $d; done"}}"#,
            )],
            &[&format!(
                "conductor.json leave for d in a b; do cp $CONDUCTOR_ROOT_PATH/$d $d; done: {COMPOUND}"
            )],
        );
        check(
            &[
                (CONDUCTOR, r#"{"scripts": {"setup": "./up.sh"}}"#),
                ("up.sh", "cp $CONDUCTOR_ROOT_PATH/.env ."),
            ],
            &[&format!("conductor.json leave ./up.sh: {READS_CHECKOUT}")],
        );
        check(
            &[(CURSOR, r#"{"setup-worktree": "../../up.sh"}"#)],
            &[".cursor/worktrees.json leave .cursor/../../up.sh: there is no such script"],
        );
        check(&[(CODEX, "[setup")], &[&format!("{CODEX} leave the whole file: it cannot be read")]);
    }

    #[test]
    fn a_script_that_is_more_than_commands_in_a_row_is_taken_as_it_is() {
        check(
            &[(CODEX, "[setup]\nscript = '''\nif [ -f a ]; then\n  make a\nfi\n'''\n")],
            &[&format!("{CODEX} create if [ -f a ]; then\n  make a\nfi")],
        );
    }
}
