//! The one reader of command lines: words and operators as a shell would see them, for what decides by a command line.
//!
//! Invariant: a line is understood or refused, never guessed at. Where quotes can be nested (`$(…)`, `${…}`, `$'…'`, backquotes)
//! a reader that is off by one quote takes commands for text, so such a line is refused. One form of it is understood as a
//! text: `"$(cat <<'EOF' … EOF)"`, by which agents write messages of many lines.

use std::ops::Range;

/// A piece of a command line.
#[derive(Debug, PartialEq)]
pub enum Token {
    Word(ShellWord),
    Operator(Operator),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Semicolon,
    Newline,
    /// `&&`
    And,
    /// `||`
    Or,
    Pipe,
    /// `&` alone: the command is left running.
    Background,
    /// A parenthesis, a brace or `!` where a word could begin.
    Group,
    /// `<`
    Input,
    /// `>`
    Output,
}

#[derive(Debug, PartialEq)]
pub struct ShellWord {
    pub at: Range<usize>,
    /// As the program gets it, where it is plain.
    pub text: String,
    pub content: Content,
    /// The shell can put names of files in its place that are read as options.
    pub is_pattern: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The shell leaves it as it is, but for quotes.
    Plain,
    /// `"$(cat <<'EOF' … EOF)"`: only text, but not as the program gets it.
    HereText,
    /// The shell puts something in, or takes something out.
    Evaluated,
}

/// A line that is not understood.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUnderstood;

/// Reads a command line piece by piece.
pub struct Lexer<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// What is not read yet.
    pub fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// Where the rest begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Leaves out the beginning of the rest: `rest` is what stays.
    pub fn leave(&mut self, rest: &str) {
        self.at = self.line.len() - rest.len();
    }

    /// The next piece; nothing at the end of the line.
    pub fn read(&mut self) -> Result<Option<Token>, NotUnderstood> {
        self.leave(self.rest().trim_start_matches([' ', '\t']));
        let mut letters = self.rest().chars();
        let Some(letter) = letters.next() else { return Ok(None) };
        let doubled = letters.next() == Some(letter);
        let operator = match letter {
            ';' => Operator::Semicolon,
            '\n' => Operator::Newline,
            '&' if doubled => Operator::And,
            '&' => Operator::Background,
            '|' if doubled => Operator::Or,
            '|' => Operator::Pipe,
            // Of arithmetic, quotes are not those of words.
            '(' if doubled => return Err(NotUnderstood),
            '(' | ')' | '{' | '}' | '!' => Operator::Group,
            // What follows need not stand on this line.
            '<' if doubled => return Err(NotUnderstood),
            '<' => Operator::Input,
            '>' => Operator::Output,
            // A comment is no command, and may hold an open quote.
            '#' => return Err(NotUnderstood),
            _ => return self.word().map(|word| Some(Token::Word(word))),
        };
        self.at += if matches!(operator, Operator::And | Operator::Or) { 2 } else { 1 };
        Ok(Some(Token::Operator(operator)))
    }

    fn word(&mut self) -> Result<ShellWord, NotUnderstood> {
        let start = self.at;
        let mut word =
            ShellWord { at: start..start, text: String::new(), content: Content::Plain, is_pattern: false };
        while let Some(letter) = self.rest().chars().next() {
            let after = &self.rest()[letter.len_utf8()..];
            match letter {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    let (text, after) = after.split_once('\'').ok_or(NotUnderstood)?;
                    word.text.push_str(text);
                    self.leave(after);
                }
                '"' => match here_text(self.rest()) {
                    Some(after) => {
                        word.hold(Content::HereText);
                        self.leave(after);
                    }
                    None => {
                        let after = quoted(after, &mut word)?;
                        self.leave(after);
                    }
                },
                '\\' => {
                    let escaped = after.chars().next().ok_or(NotUnderstood)?;
                    if escaped == '\n' {
                        word.hold(Content::Evaluated);
                    } else {
                        word.text.push(escaped);
                    }
                    self.leave(&after[escaped.len_utf8()..]);
                }
                '$' if after.starts_with(['\'', '"']) => return Err(NotUnderstood),
                '$' | '`' => {
                    evaluated(letter, after, &mut word)?;
                    self.leave(after);
                }
                // Shells differ in what these are.
                letter if letter.is_control() => return Err(NotUnderstood),
                letter => {
                    if matches!(letter, '{' | '}') {
                        word.hold(Content::Evaluated);
                    }
                    word.is_pattern |= matches!(letter, '*' | '?' | '[') && could_be_option(&word.text);
                    word.text.push(letter);
                    self.leave(after);
                }
            }
        }
        word.at.end = self.at;
        Ok(word)
    }
}

impl ShellWord {
    /// The word holds this too; what is evaluated stays so.
    fn hold(&mut self, content: Content) {
        if self.content != Content::Evaluated {
            self.content = content;
        }
    }
}

/// Whether the name of a file that begins like this can be an option, and another one than is written. Behind `--name=` it
/// cannot.
fn could_be_option(text: &str) -> bool {
    text.is_empty() || text.starts_with('-') && !(text.starts_with("--") && text.contains('='))
}

/// Takes `$` or a backquote in; not where quotes could be nested in what follows.
fn evaluated(letter: char, after: &str, word: &mut ShellWord) -> Result<(), NotUnderstood> {
    if letter == '`' || after.starts_with(['(', '{', '[']) {
        return Err(NotUnderstood);
    }
    word.hold(Content::Evaluated);
    word.text.push(letter);
    Ok(())
}

/// Takes a text in double quotes in, and gives what follows it.
fn quoted<'a>(rest: &'a str, word: &mut ShellWord) -> Result<&'a str, NotUnderstood> {
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(&rest[at + 1..]),
            '$' | '`' => evaluated(letter, &rest[at + 1..], word)?,
            '\\' => match letters.next().ok_or(NotUnderstood)?.1 {
                '\n' => word.hold(Content::Evaluated),
                escaped @ ('"' | '\\' | '$' | '`') => word.text.push(escaped),
                other => word.text.extend(['\\', other]),
            },
            letter => word.text.push(letter),
        }
    }
    Err(NotUnderstood)
}

/// What follows `"$(cat <<'EOF' … EOF)"`: a text, as its end is in quotes.
fn here_text(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("\"$(cat <<'")?;
    let (mark, body) = rest.split_once("'\n")?;
    if mark.is_empty() || !mark.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        at += line.len();
        if line.trim_end_matches('\n') == mark {
            return body[at..].trim_start_matches([' ', '\n']).strip_prefix(")\"");
        }
    }
    None
}

/// Every piece of a line.
pub fn tokens(line: &str) -> Result<Vec<Token>, NotUnderstood> {
    let mut lexer = Lexer::new(line);
    let mut tokens = Vec::new();
    while let Some(token) = lexer.read()? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// What holds for every line that is understood, by a reading of its own: quotes are closed, and a shell nests none in it.
#[cfg(any(test, feature = "fuzz"))]
pub fn check_understood(line: &str) {
    let (mut single, mut double) = (false, false);
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let here = here_text(rest).filter(|_| !single && !double);
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            '"' if here.is_some() => here.expect("it is some"),
            '\\' if !single => {
                let escaped = after.chars().next();
                assert!(escaped.is_some(), "it ends in a backslash: {line:?}");
                &after[escaped.map_or(0, char::len_utf8)..]
            }
            '\'' if !double => {
                single = !single;
                after
            }
            '"' if !single => {
                double = !double;
                after
            }
            '`' => {
                assert!(single, "a shell evaluates this: {line:?}");
                after
            }
            '$' => {
                let nests = after.starts_with(['(', '{', '[']) || !double && after.starts_with(['\'', '"']);
                assert!(single || !nests, "quotes can be nested in this: {line:?}");
                after
            }
            _ => after,
        };
    }
    assert!(!single && !double, "it is open: {line:?}");
}

/// Lines of pieces that mean something to a shell.
#[cfg(test)]
pub fn odd_lines() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    const PIECES: &[&str] = &[
        "ls",
        "cat",
        "git",
        "log",
        "-C",
        "cd",
        "sed",
        "-n",
        "1p",
        "test",
        "rm",
        "sh",
        "$(rm)",
        "`rm`",
        "'",
        "\"",
        "\\",
        ";",
        "|",
        "||",
        "&",
        "&&",
        "&1",
        ">",
        "<",
        ">/dev/null",
        "2>",
        "{",
        "}",
        "(",
        ")",
        "*",
        "?",
        "[",
        "~",
        "#",
        "!",
        "=",
        "$",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "é",
        "-o",
        "--output=x",
        "-exec",
        "-m",
        "commit",
        "$'",
        "${",
        "\"$(cat <<'EOF'\n",
        "\nEOF\n)\"",
        "--message=",
    ];
    proptest::collection::vec(0..PIECES.len(), 0..24)
        .prop_map(|picks| picks.iter().map(|pick| PIECES[*pick]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<(String, Content, bool)> {
        let tokens = tokens(line).unwrap();
        let words = tokens.into_iter().map(|token| match token {
            Token::Word(word) => (word.text, word.content, word.is_pattern),
            Token::Operator(operator) => panic!("{line}: {operator:?}"),
        });
        words.collect()
    }

    #[test]
    fn a_word_is_read_as_the_program_gets_it_and_says_what_the_shell_does_to_it() {
        for (line, text, content) in [
            ("a'b c'\"d\"\\ e", "ab cd e", Content::Plain),
            ("\"it costs \\$5 \\x\"", "it costs $5 \\x", Content::Plain),
            ("a$b", "a$b", Content::Evaluated),
            ("\"a$b\"", "a$b", Content::Evaluated),
            ("a{b,c}", "a{b,c}", Content::Evaluated),
            ("a\\\nb", "ab", Content::Evaluated),
            ("\"$(cat <<'EOF'\nIt's\nEOF\n)\"", "", Content::HereText),
            ("\"$(cat <<'EOF'\nIt's\nEOF\n)\"$a", "$a", Content::Evaluated),
            ("$a\"$(cat <<'EOF'\nIt's\nEOF\n)\"", "$a", Content::Evaluated),
        ] {
            let expected = vec![(text.to_owned(), content, false)];
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn a_pattern_is_one_where_names_of_files_can_become_options() {
        for (line, is_pattern) in [
            ("*", true),
            ("[a]", true),
            ("\"\"*", true),
            ("-*", true),
            ("--out*", true),
            ("'-'?", true),
            ("--include=*.rs", false),
            ("src/*.rs", false),
            ("'*'", false),
            ("\\*", false),
        ] {
            assert_eq!(words(line)[0].2, is_pattern, "{line}");
        }
    }

    proptest! {
        /// Pieces stand in order and do not overlap, and what is understood has no quotes in quotes.
        #[test]
        fn whatever_is_sent_is_understood_or_refused(line in odd_lines()) {
            if let Ok(tokens) = tokens(&line) {
                check_understood(&line);
                let mut from = 0;
                for token in tokens {
                    if let Token::Word(word) = token {
                        prop_assert!(from <= word.at.start && word.at.start < word.at.end);
                        from = word.at.end;
                    }
                }
            }
        }
    }
}
