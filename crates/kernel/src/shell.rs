//! Just enough of the shell to tell a command from a text that it carries.
//!
//! A rule on `git push` is about commands. The message of a commit may say it too, and is nobody's business. What is left
//! out is the message of a commit, tag, merge, note or stash of git, where it is plainly a text: in quotes, with nothing
//! in it that the shell would run. Whatever is not understood is left as it is, and so asked about: the better fault.

use std::borrow::Cow;
use std::ops::Range;

/// The commands of git that take a message.
const WITH_MESSAGE: &[&str] = &["commit", "tag", "merge", "notes", "stash"];
/// What stands in the place of a message.
const LEFT_OUT: &str = "''";

/// The command line without the messages in it.
pub fn without_messages(line: &str) -> Cow<'_, str> {
    let Some(words) = words(line).filter(|_| line.contains("git")) else { return Cow::Borrowed(line) };
    let mut messages: Vec<Range<usize>> = Vec::new();
    for command in words.split(|word| word.ends) {
        let text = |word: &Word| &line[word.at.clone()];
        if command.first().is_none_or(|word| text(word) != "git") {
            continue;
        }
        // Past the options of git itself, two of which take a word of their own.
        let mut rest = command[1..].iter();
        let mut name = None;
        while let Some(word) = rest.next() {
            match text(word) {
                "-C" | "-c" => drop(rest.next()),
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
        while let Some(word) = rest.next() {
            let option = text(word);
            let is_short = option.starts_with('-')
                && !option.starts_with("--")
                && option.ends_with('m')
                && option[1..].chars().all(|c| c.is_ascii_alphabetic());
            let glued = ["--message=", "-m"].into_iter().find(|start| option.starts_with(start));
            if option == "--message" || is_short {
                messages.extend(rest.next().filter(|word| word.is_text).map(|word| word.at.clone()));
            } else if let Some(start) = glued.filter(|_| word.is_text) {
                messages.push(word.at.start + start.len()..word.at.end);
            }
        }
    }
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

/// A word of a command line, or the end of a command in it.
struct Word {
    at: Range<usize>,
    /// The shell runs nothing in it.
    is_text: bool,
    ends: bool,
}

/// The words of a command line; nothing where it is not understood.
fn words(line: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' => at += 1,
            b';' | b'&' | b'|' | b'\n' | b'(' | b')' | b'{' | b'}' | b'!' => {
                words.push(Word { at: at..at + 1, is_text: false, ends: true });
                at += 1;
            }
            // What follows need not stand on this line; a comment is no command.
            b'#' => return None,
            b'<' if bytes.get(at + 1) == Some(&b'<') => return None,
            b'<' | b'>' => at += 1,
            _ => {
                let (end, is_text) = word(line, at)?;
                words.push(Word { at: at..end, is_text, ends: false });
                at = end;
            }
        }
    }
    Some(words)
}

/// Where the word ends that begins here, and whether nothing in it is run.
fn word(line: &str, start: usize) -> Option<(usize, bool)> {
    let bytes = line.as_bytes();
    let (mut at, mut is_text) = (start, true);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
            b'\'' => at += 2 + line[at + 1..].find('\'')?,
            b'"' => match here_text(&line[at..]) {
                Some(length) => at += length,
                None => {
                    let (end, plain) = quoted(bytes, at + 1)?;
                    at = end;
                    is_text &= plain;
                }
            },
            b'\\' => at += 2,
            b'$' | b'`' => {
                is_text = false;
                at += 1;
            }
            _ => at += 1,
        }
    }
    let end = at.min(bytes.len());
    line.is_char_boundary(end).then_some((end, is_text))
}

/// Where a text in double quotes ends, and whether the shell leaves it as it is.
fn quoted(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut plain) = (start, true);
    loop {
        match bytes.get(at)? {
            b'"' => return Some((at + 1, plain)),
            b'\\' => at += 2,
            b'$' | b'`' => {
                plain = false;
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// The length of `"$(cat <<'EOF' … EOF)"`, by which agents write messages of many lines: a text too, as its end is in
/// quotes.
fn here_text(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\"$(cat <<'")?;
    let (mark, body) = rest.split_once("'\n")?;
    if mark.is_empty() || !mark.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let before = text.len() - body.len();
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        let is_end = line.trim_end_matches('\n') == mark;
        at += line.len();
        if is_end {
            let after = body[at..].trim_start_matches([' ', '\n']);
            let end = after.strip_prefix(")\"")?;
            return Some(before + body.len() - end.len());
        }
    }
    None
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
        ] {
            let same = without_messages(line);
            assert!(same == line || line.contains('\u{e9}'), "{line}: {same}");
        }
    }
}
