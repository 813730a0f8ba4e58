//! A command line without the messages that it only carries, for rules on commands.
//!
//! A rule on `git push` is about commands. The message of a commit may say it too, and is nobody's business. What is left
//! out is the message of a commit, tag, merge, note or stash of git, where it is plainly a text. A line that is not understood
//! stays as it is, and so is asked about: the better fault.

use std::borrow::Cow;
use std::ops::Range;

use crate::shell::{Content, Operator, ShellWord, Token, tokens};

/// The commands of git that take a message.
const WITH_MESSAGE: &[&str] = &["commit", "tag", "merge", "notes", "stash"];
/// What stands in the place of a message.
const LEFT_OUT: &str = "''";

/// The command line without the messages in it.
pub fn without_messages(line: &str) -> Cow<'_, str> {
    let messages = messages(line);
    if messages.is_empty() {
        return Cow::Borrowed(line);
    }
    let mut kept = String::with_capacity(line.len());
    let mut from = 0;
    for message in messages {
        kept.push_str(&line[from..message.start]);
        kept.push_str(LEFT_OUT);
        from = message.end;
    }
    kept.push_str(&line[from..]);
    Cow::Owned(kept)
}

/// Where the messages stand, in order.
fn messages(line: &str) -> Vec<Range<usize>> {
    let mut messages = Vec::new();
    let Ok(tokens) = tokens(line) else { return messages };
    for command in tokens.split(ends) {
        // Words, as they are written: what is quoted is not taken for a name.
        let mut words = command.iter().filter_map(|token| match token {
            Token::Word(word) => Some((word, &line[word.at.clone()])),
            Token::Operator(_) => None,
        });
        if words.next().is_none_or(|(_, name)| name != "git") {
            continue;
        }
        // Past the options of git itself, two of which take a word of their own.
        let mut name = None;
        while let Some((_, text)) = words.next() {
            match text {
                "-C" | "-c" => drop(words.next()),
                option if option.starts_with('-') => {}
                found => {
                    name = Some(found);
                    break;
                }
            }
        }
        if !name.is_some_and(|name| WITH_MESSAGE.contains(&name)) {
            continue;
        }
        while let Some((word, option)) = words.next() {
            let is_short = option.starts_with('-')
                && !option.starts_with("--")
                && option.ends_with('m')
                && option[1..].chars().all(|c| c.is_ascii_alphabetic());
            let glued = ["--message=", "-m"].into_iter().find(|start| option.starts_with(start));
            if option == "--message" || is_short {
                messages
                    .extend(words.next().filter(|(word, _)| is_text(word)).map(|(word, _)| word.at.clone()));
            } else if let Some(start) = glued.filter(|_| is_text(word)) {
                messages.push(word.at.start + start.len()..word.at.end);
            }
        }
    }
    messages
}

/// Redirections stand among the words of a command.
fn ends(token: &Token) -> bool {
    matches!(token, Token::Operator(operator) if !matches!(operator, Operator::Input | Operator::Output))
}

fn is_text(word: &ShellWord) -> bool {
    word.content != Content::Evaluated
}

/// What holds for every line, for tests and the fuzz target: only words are left out, the rest is read as before, and nothing
/// is left out of a line in which quotes can be nested.
#[cfg(any(test, feature = "fuzz"))]
pub fn check_line(line: &str) {
    let kept = without_messages(line);
    if kept == line {
        return;
    }
    assert_eq!(without_messages(&kept), kept, "leaving out twice is another thing: {line:?}");
    let (before, after) =
        (tokens(line).expect("it was understood"), tokens(&kept).expect("it was understood"));
    assert_eq!(before.len(), after.len(), "a command was left out: {line:?}");
    for (before, after) in before.iter().zip(&after) {
        match (before, after) {
            (Token::Operator(before), Token::Operator(after)) => assert_eq!(before, after, "{line:?}"),
            (Token::Word(before), Token::Word(after)) => {
                let (before, after) = (&line[before.at.clone()], &kept[after.at.clone()]);
                let message = after.strip_suffix(LEFT_OUT).is_some_and(|option| before.starts_with(option));
                assert!(before == after || message, "{before:?} became {after:?}: {line:?}");
            }
            _ => panic!("a word became an operator: {line:?}"),
        }
    }
    crate::shell::check_understood(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is looked at of each line.
    #[test]
    fn messages_of_git_are_left_out_and_nothing_else_is() {
        for (line, kept) in [
            ("git commit -m 'Add pseudo code'", "git commit -m ''"),
            ("git commit -am \"Say how to git push\" && ls", "git commit -am '' && ls"),
            (
                "git add -A && git -C x commit --message='sudo x'; ls",
                "git add -A && git -C x commit --message=''; ls",
            ),
            ("git tag -a v1 -m'sudo x' && git push", "git tag -a v1 -m'' && git push"),
            (
                "git commit -m \"$(cat <<'EOF'\nIt's how to \"git push\"\n\nCo-authored: x\nEOF\n)\" && git status",
                "git commit -m '' && git status",
            ),
            ("git commit -m one -m 'git push' .", "git commit -m '' -m '' ."),
        ] {
            assert_eq!(without_messages(line), kept);
        }
        for line in [
            "git commit -m \"$(git push)\"",
            "git commit -m \"`sudo x`\"",
            "git commit -m $(sudo x)",
            "git commit -m 'open",
            "bash -c 'git commit -m \"git push\"'",
            "echo 'git push' | sh",
            "git push -m 'x'",
            "cat <<EOF\ngit commit -m 'sudo x'\nEOF",
            "git commit -m \"$(cat <<EOF\n$(sudo x)\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nx\nEOF\nsudo x)\"",
            "x git commit -m 'sudo x'",
            "git commit -m \u{e9}\\\u{e9}",
            "git commit -m 'x\\",
            "git commit -m x\\",
            // Where a quote is nested, what looks like a message may be a command.
            "git commit $'\\'' x' -m '; sudo x; echo ''",
            "git commit \"$(: \"'\" )\" x\"'\" -m \" ; sudo x; echo \"",
            "git commit `: \\'` -m '; sudo x; echo '",
            "git commit ${x:-\\'} -m '; sudo x; echo '",
            "git commit -m 'sudo x' $((1))",
            "((x)) && git commit -m 'sudo x'",
            "git commit -m 'sudo x'\r",
            "git commit -m a{sudo,x}",
            "git commit -m \"sudo \\\nx\"",
        ] {
            let same = without_messages(line);
            assert!(same == line || line.contains('\u{e9}'), "{line}: {same}");
        }
    }

    proptest::proptest! {
        /// Whatever is sent, only messages are left out.
        #[test]
        fn nothing_but_messages_is_left_out_of_any_line(line in crate::shell::odd_lines()) {
            check_line(&line);
            check_line(&format!("git commit {line} -m 'git push' {line}"));
        }
    }
}
