//! Command lines that look at things and change nothing, for agents that speak outside of any task.
//!
//! Invariant: whatever is not understood, or not in the table, is not reading. The table is about what a command can do by
//! its arguments: write a file, run another program, or never end. What a shell evaluates itself is in no row: `test` and
//! `printf` run what stands in a subscript (`test -v 'a[$(…)]'`).
//!
//! git also does what the settings of a repository say. Those of the agent's own clone are ours; so git is asked there alone,
//! and neither after a `cd` nor with `-C`.

use crate::shell::{Content, Lexer, Operator, ShellWord, Token};
use Judge::{Always, NoFiles, Only, Script, Unless};

/// When a command only reads.
enum Judge {
    Always,
    /// Unless one of these options is among its words. `--output` stands for every beginning of it too, as programs take
    /// those, and `-o` for every word of short options with that letter.
    Unless(&'static [&'static str]),
    /// If it has no other words than these.
    Only(&'static [&'static str]),
    /// If it is given options alone: a file that it names may be written.
    NoFiles,
    /// `sed -n` with lines to be printed.
    Script,
}

#[rustfmt::skip]
const COMMANDS: &[(&str, Judge)] = &[
    ("basename",  Always),
    ("cat",       Always),
    ("cd",        Always),
    ("cmp",       Always),
    ("comm",      Always),
    ("cut",       Always),
    ("diff",      Always),
    ("dirname",   Always),
    ("du",        Always),
    ("echo",      Always),
    ("egrep",     Always),
    ("fgrep",     Always),
    ("file",      Unless(&["-C", "--compile", "-Z", "-z", "--uncompress", "--uncompress-noreport"])),
    ("find",      Unless(&["-delete", "-exec", "-execdir", "-files0-from", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir"])),
    ("fold",      Always),
    ("grep",      Always),
    ("head",      Always),
    ("jq",        Unless(&["--run-tests", "-L", "--library-path"])),
    ("ls",        Always),
    ("md5sum",    Always),
    ("nl",        Always),
    ("od",        Always),
    ("paste",     Always),
    ("pwd",       Always),
    ("readlink",  Always),
    ("realpath",  Always),
    ("rg",        Unless(&["--hostname-bin", "--hyperlink-format", "--pre", "--search-zip", "-z"])),
    ("sed",       Script),
    ("sha256sum", Always),
    ("sort",      Unless(&["-T", "-o", "--compress-program", "--files0-from", "--output", "--temporary-directory"])),
    ("stat",      Always),
    ("tac",       Always),
    ("tail",      Unless(&["-F", "-f", "--follow", "--pid", "--retry"])),
    ("tr",        Always),
    ("true",      Always),
    ("type",      Always),
    ("uniq",      NoFiles),
    ("wc",        Always),
    ("which",     Always),
];

/// What a diff can be told to write or to run.
const DIFFING: Judge = Unless(&["--ext-diff", "--output", "--textconv"]);

#[rustfmt::skip]
const GIT: &[(&str, Judge)] = &[
    ("blame",        Unless(&["--contents", "--textconv"])),
    ("branch",       Only(&["--all", "--list", "--remotes", "--show-current", "-a", "-r", "-v", "-vv"])),
    ("cat-file",     Unless(&["--filters", "--textconv"])),
    ("describe",     Always),
    ("diff",         DIFFING),
    ("diff-tree",    DIFFING),
    ("for-each-ref", Always),
    ("grep",         Unless(&["-O", "--open-files-in-pager", "--textconv"])),
    ("log",          DIFFING),
    ("ls-files",     Always),
    ("ls-tree",      Always),
    ("merge-base",   Always),
    ("name-rev",     Always),
    ("remote",       Only(&["-v"])),
    ("rev-list",     Always),
    ("rev-parse",    Unless(&["--parseopt", "--sq-quote"])),
    ("shortlog",     DIFFING),
    ("show",         DIFFING),
    ("show-ref",     Always),
    ("status",       Always),
    ("tag",          Only(&["--list", "-l"])),
];

/// Whether every command of a line only reads.
pub fn only_reads(line: &str) -> bool {
    commands(line).is_some_and(|commands| {
        let mut elsewhere = false;
        let mut all = commands.iter().map(|command| {
            let is = |name: &str| command.first().is_some_and(|word| word.text == name);
            elsewhere |= is("cd");
            reads(command) && !(elsewhere && is("git"))
        });
        !commands.is_empty() && all.all(|reads| reads)
    })
}

fn reads(command: &[ShellWord]) -> bool {
    let Some((name, rest)) = command.split_first() else { return false };
    if name.text == "git" {
        return git_reads(rest);
    }
    is_judged(COMMANDS, &name.text, rest)
}

fn git_reads(mut words: &[ShellWord]) -> bool {
    loop {
        match words {
            [option, rest @ ..] if matches!(option.text.as_str(), "--no-pager" | "-P") => words = rest,
            [name, rest @ ..] => return is_judged(GIT, &name.text, rest),
            [] => return false,
        }
    }
}

fn is_judged(table: &[(&str, Judge)], name: &str, words: &[ShellWord]) -> bool {
    let Some((_, judge)) = table.iter().find(|(known, _)| *known == name) else { return false };
    match judge {
        Always => true,
        // A file can be called as an option is.
        Unless(options) => !words
            .iter()
            .any(|word| word.is_pattern || options.iter().any(|option| is_option(&word.text, option))),
        Only(known) => words.iter().all(|word| known.contains(&word.text.as_str())),
        NoFiles => {
            words.iter().all(|word| !word.is_pattern && word.text.starts_with('-') && word.text.len() > 1)
        }
        Script => {
            let [quiet, script, files @ ..] = words else { return false };
            let plain = |word: &ShellWord| !word.is_pattern && !word.text.starts_with('-');
            quiet.text == "-n" && prints_lines(&script.text) && files.iter().all(plain)
        }
    }
}

fn is_option(word: &str, option: &str) -> bool {
    if option.starts_with("--") {
        let stem = word.split('=').next().unwrap_or_default();
        return stem.len() > 2 && stem.starts_with("--") && option.starts_with(stem);
    }
    if option.len() > 2 {
        return word == option;
    }
    word.starts_with('-') && !word.starts_with("--") && word[1..].contains(&option[1..])
}

/// `12p` or `1,40p`, and several of them.
fn prints_lines(script: &str) -> bool {
    let number =
        |text: &str| text == "$" || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    script.split(';').map(str::trim).all(|part| {
        let Some(lines) = part.strip_suffix('p') else { return false };
        match lines.split_once(',') {
            Some((from, to)) => number(from) && number(to),
            None => number(lines),
        }
    })
}

/// The commands of a line, word by word; nothing where one of them is not plain: what the shell would put in, run or write
/// cannot be seen here.
fn commands(line: &str) -> Option<Vec<Vec<ShellWord>>> {
    let mut all: Vec<Vec<ShellWord>> = Vec::new();
    let mut command: Vec<ShellWord> = Vec::new();
    // No other space is one to a shell.
    let mut lexer = Lexer::new(line.trim_matches([' ', '\t', '\n']));
    while let Some(token) = lexer.read().ok()? {
        match token {
            Token::Word(word) if word.content == Content::Plain => command.push(word),
            Token::Word(_) => return None,
            Token::Operator(Operator::Newline) if command.is_empty() => {}
            Token::Operator(
                Operator::Semicolon | Operator::Newline | Operator::And | Operator::Or | Operator::Pipe,
            ) => {
                if command.is_empty() {
                    return None;
                }
                all.push(std::mem::take(&mut command));
            }
            Token::Operator(Operator::Output) => {
                let before = lexer.at() - 1;
                if let Some(stream) = command.pop_if(|word| word.at.end == before)
                    && stream.text != "1"
                    && stream.text != "2"
                {
                    return None;
                }
                let after = nowhere(lexer.rest())?;
                lexer.leave(after);
            }
            // Left running, what follows may be a file; a group or an input can hold other commands.
            Token::Operator(Operator::Background | Operator::Group | Operator::Input) => return None,
        }
    }
    if !command.is_empty() {
        all.push(command);
    }
    Some(all)
}

/// What follows a `>` that leads to nothing or to another stream.
fn nowhere(rest: &str) -> Option<&str> {
    let ends = |after: &str| after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '|', '&']);
    let streams = ["&1", "&2"].into_iter().find_map(|to| rest.strip_prefix(to));
    let null = || rest.trim_start_matches(['>', ' ']).strip_prefix("/dev/null");
    streams.or_else(null).filter(|after| ends(after))
}

/// What holds for every line, for tests and the fuzz target: a line that only reads keeps doing so with spaces around it, and
/// holds nothing outside of quotes that a shell evaluates.
#[cfg(any(test, feature = "fuzz"))]
pub fn check_line(line: &str) {
    if !only_reads(line) {
        return;
    }
    assert!(only_reads(&format!(" {line} ")), "spaces around it change it: {line:?}");
    let names = commands(line).expect("it was understood");
    for command in &names {
        let name = &command[0].text;
        let known = name == "git" || COMMANDS.iter().any(|(known, _)| known == name);
        assert!(known, "`{name}` is in no table: {line:?}");
    }
    crate::shell::check_understood(line);
    let (mut single, mut double, mut escaped) = (false, false, false);
    for letter in line.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '$' | '`' => assert!(single, "a shell evaluates this: {line:?}"),
            '(' | ')' | '{' | '}' | '<' => assert!(single || double, "a shell evaluates this: {line:?}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_is_known_as_such() {
        for line in [
            "ls",
            "ls -la src && cat 'a b.rs' | head -n 20; pwd",
            "cd crates/kernel && rg -n \"fn main|fn \\(\" src",
            "sed -n '1,40p' README.md",
            "sed -n '1,10p;$p' a b",
            "sed -n 200,260p src/lib.rs\nnl -ba x",
            "grep -rn TODO --include=*.rs . 2>/dev/null | wc -l",
            "cat a 2>&1 >/dev/null || echo none",
            "find . -name '*.toml' -not -path './target/*'",
            "git log --oneline -5 -- src/a.rs",
            "git --no-pager show HEAD:README.md",
            "tail -n 20 a && tail -c+5 b",
            "git diff main...work --stat",
            "git status --short && git branch -a",
            "sort a.txt | uniq -c | sort -rn | head",
            "cat src/*.rs",
            "echo \"it costs \\$5\"",
        ] {
            assert!(only_reads(line), "{line}");
        }
    }

    #[test]
    fn what_could_change_or_run_something_is_not_reading() {
        for line in [
            "",
            "rm -r .",
            "cat a > b",
            "cat a >>b",
            "cat a 3>/dev/null",
            "cat a >/dev/nullx",
            "cat <(rm a)",
            "cat $(rm a)",
            "cat `rm a`",
            "cat \"$(rm a)\"",
            "echo $HOME",
            "ls & rm a",
            "ls &&& rm a",
            "ls |& sh",
            "cat a | sh",
            "ls; rm a",
            "ls\nrm a",
            "X=1 ls",
            "env ls",
            "(ls)",
            "! ls",
            "ls # and so on",
            "cat 'open",
            "cat \"open",
            "cat a\\",
            "/tmp/cat a",
            "sed -i s/a/b/ x",
            "sed -n 'w out' x",
            "sed -n '1e rm a' x",
            "sed -n 1p -i x",
            "sed s/a/b/w x",
            "find . -delete",
            "find . -exec rm {} +",
            "find . -fprint out",
            "sort -o out a",
            "sort -uo out a",
            "sort --out=x a",
            "sort --o'utput'=x a",
            "sort *",
            "sort \"\"*",
            "sort -*",
            "git diff --out*",
            "cat \"$(cat <<'EOF'\nx\nEOF\n)\"",
            "cat a{b,c}",
            "cat a\\\nb",
            "cat $'a'",
            "uniq a b",
            "rg --pre ./evil x",
            "git -c core.pager=evil log",
            "git -C elsewhere diff",
            "git --no-pager -C .. show HEAD",
            "cd elsewhere && git diff",
            "cd elsewhere; ls | git log",
            "test -v 'a[$(touch x)]'",
            "test -e a",
            "[ -e a ]",
            "printf -v 'a[$(touch x)]' x",
            "printf %s a",
            "tail -f a",
            "tail -fn2 a",
            "tail --fol a",
            "tail -F a",
            "find . -okdir rm {} +",
            "rg -z x",
            "jq -L . x",
            "file -z a",
            "\u{a0}ls",
            "cat a\0b",
            "cat a\rrm b",
            "cat a\u{b}b",
            "git --exec-path=. log",
            "git diff --output=x",
            "git log --outp=x",
            "git grep -O./evil x",
            "git grep --open=./evil x",
            "git branch new",
            "git branch -D work",
            "git tag v1",
            "git checkout main",
            "git commit -m x",
            "git push",
            "git",
            "awk '{system(\"rm a\")}' x",
            "xargs rm",
            "python3 -c pass",
            "| ls",
            "ls | | cat",
        ] {
            assert!(!only_reads(line), "{line}");
        }
    }

    use proptest::prelude::*;

    /// What a shell would make of words that were quoted, one way or another.
    fn written(word: &str, how: usize) -> String {
        match how % 3 {
            0 => format!("'{}'", word.replace('\'', "'\\''")),
            1 => word.chars().flat_map(|letter| ['\\', letter]).collect(),
            _ => {
                let escaped = word.chars().flat_map(|letter| match letter {
                    '"' | '\\' | '$' | '`' => vec!['\\', letter],
                    letter => vec![letter],
                });
                format!("\"{}\"", escaped.collect::<String>())
            }
        }
    }

    proptest! {
        /// Whatever is sent, an answer comes; and what counts as reading has nothing in it that a shell evaluates.
        #[test]
        fn no_line_is_too_odd_and_none_that_reads_is_evaluated(line in crate::shell::odd_lines()) {
            check_line(&line);
        }

        #[test]
        fn any_text_at_all_is_judged(line in ".{0,80}") {
            check_line(&line);
        }

        /// A word that is quoted is one word again, and a command of such words is judged by its name.
        #[test]
        fn quoted_words_are_read_as_the_shell_reads_them(words in proptest::collection::vec("[!-~é]([ -~é]{0,10}[!-~é])?", 1..5), how in 0..3usize) {
            let line = words.iter().map(|word| written(word, how)).collect::<Vec<_>>().join(" ");
            let read = commands(&line).expect("nothing in it is evaluated");
            let read: Vec<Vec<String>> =
                read.into_iter().map(|command| command.into_iter().map(|word| word.text).collect()).collect();
            prop_assert_eq!(read, vec![words]);
        }
    }
}
