//! The words by which a message decides something, and the one reader of them.
//!
//! A word counts as the first or the last line of a message, alone on that line. Everything else in the message is the
//! text that belongs to it. A quoted word decides nothing: in a fenced block, behind `>`, indented, in backquotes,
//! or with more on its line. A fence that is never closed quotes everything after it: in doubt nothing was decided.
//!
//! Agents with tools decide by their tools. Their text is read for DONE, TURN_COMPLETE and PASS only, which are about
//! their own work and turn.

use machines::wire::Wire;

machines::wire_enum! {
    /// Each has one meaning, whoever says it.
    pub enum Word {
        Approve = "APPROVE",
        Changes = "CHANGES",
        Feedback = "FEEDBACK",
        Escalate = "ESCALATE",
        Abandon = "ABANDON",
        /// The work of a task is finished.
        Done = "DONE",
        /// A turn in a room is over.
        TurnComplete = "TURN_COMPLETE",
        /// A turn in a room is over, and nothing is said in it.
        Pass = "PASS",
    }
}

/// A decision, and the rest of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub word: Word,
    pub rest: String,
}

/// The first line says one thing and the last another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction(pub Word, pub Word);

impl std::fmt::Display for Contradiction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it says both {} and {}; say one of them", self.0, self.1)
    }
}

/// The one of `words` that a message says. `None`: it says none of them.
pub fn read(text: &str, words: &[Word]) -> Result<Option<Decision>, Contradiction> {
    let mut scan = Scan::default();
    text.lines().for_each(|line| scan.line(line));
    let among = |marked: Option<(usize, Word)>| marked.filter(|(_, word)| words.contains(word));
    let (first, last) = (among(scan.first), among(scan.last));
    let word = match (first, last) {
        (Some((_, one)), Some((_, other))) if one != other => return Err(Contradiction(one, other)),
        (Some((_, word)), _) | (None, Some((_, word))) => word,
        (None, None) => return Ok(None),
    };
    let marks: Vec<usize> = first.into_iter().chain(last).map(|(at, _)| at).collect();
    let rest = text.lines().enumerate().filter(|(at, _)| !marks.contains(at)).map(|(_, line)| line);
    // Blank lines around it go; the indentation of its first line stays.
    let rest: Vec<&str> = rest.skip_while(|line| line.trim().is_empty()).collect();
    let rest = rest.join("\n").trim_end().to_owned();
    Ok(Some(Decision { word, rest }))
}

/// Whether a message says this word.
pub fn says(text: &str, word: Word) -> bool {
    let mut scan = Scan::default();
    text.lines().for_each(|line| scan.line(line));
    scan.says(word)
}

/// The JSON document that a message hands in: all of it, or the one block ` ```json ` that ends it. A document that is
/// followed by anything, or is one of several, is quoted.
pub fn document(text: &str) -> Option<&str> {
    let whole = text.trim();
    if whole.starts_with('{') {
        return Some(whole);
    }
    let mut scan = Scan::default();
    let (mut start, mut blocks, mut at) = (None, Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let was_open = scan.fence.is_some();
        scan.line(line.trim_end_matches(['\r', '\n']));
        match (was_open, scan.fence.is_some()) {
            (false, true) => start = Some(at + line.len()).filter(|_| line.trim_end() == "```json"),
            (true, false) => blocks.extend(start.take().map(|start| (start, at, at + line.len()))),
            _ => {}
        }
        at += line.len();
    }
    match blocks[..] {
        [(start, end, over)] if text[over..].trim().is_empty() => Some(text[start..end].trim()),
        _ => None,
    }
}

/// Reads a message line by line, also one that is too long to be kept.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    lines: usize,
    /// A line that is not blank was seen.
    begun: bool,
    /// The word on the first line, and on the last so far, with the numbers of these lines.
    first: Option<(usize, Word)>,
    last: Option<(usize, Word)>,
    /// The letter and length of the fence that is open.
    fence: Option<(char, usize)>,
    /// A paragraph that began behind `>` lasts until a blank line, whatever its lines begin with.
    in_quote: bool,
}

impl Scan {
    /// The next line of the message.
    pub fn line(&mut self, line: &str) {
        let at = self.lines;
        self.lines += 1;
        let line = line.trim_end();
        if line.is_empty() {
            self.in_quote = false;
            return;
        }
        let was_open = self.fence.is_some();
        self.turn_fence(line);
        let fenced = was_open || self.fence.is_some();
        self.in_quote =
            !fenced && (self.in_quote || indented_by(line) < 4 && line.trim_start().starts_with('>'));
        let said = Word::ALL.iter().find(|word| word.name() == line && !fenced && !self.in_quote);
        let marked = said.map(|word| (at, *word));
        if !self.begun {
            self.first = marked;
        }
        self.begun = true;
        self.last = marked;
    }

    /// Whether the message says this word, as far as it was read.
    pub fn says(&self, word: Word) -> bool {
        self.first.into_iter().chain(self.last).any(|(_, said)| said == word)
    }

    /// Whether the last line is quoted: no word there counts.
    pub fn ends_in_quote(&self) -> bool {
        self.fence.is_some() || self.in_quote
    }

    fn turn_fence(&mut self, line: &str) {
        // Four spaces make code of it.
        if indented_by(line) > 3 {
            return;
        }
        match (self.fence, fence(line.trim_start_matches(' '))) {
            (None, Some((letter, length, info))) if letter == '~' || !info.contains('`') => {
                self.fence = Some((letter, length));
            }
            (Some((open, opened)), Some((letter, length, ""))) if letter == open && length >= opened => {
                self.fence = None;
            }
            _ => {}
        }
    }
}

fn indented_by(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The letter and length of a fence, and what is written behind it.
fn fence(text: &str) -> Option<(char, usize, &str)> {
    let letter = text.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let info = text.trim_start_matches(letter);
    let length = text.len() - info.len();
    (length >= 3).then(|| (letter, length, info.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = match read(text, Word::ALL) {
            Ok(Some(Decision { word, rest })) => format!("{word} {rest:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(both) => both.to_string(),
        };
        assert_eq!(read, expected, "{text:?}");
    }

    #[test]
    fn a_word_counts_as_the_first_or_last_line_that_is_not_quoted() {
        for (text, expected) in [
            ("APPROVE", "APPROVE \"\""),
            ("it is good\nAPPROVE", "APPROVE \"it is good\""),
            ("\n\nCHANGES\r\nrename it\n", "CHANGES \"rename it\""),
            ("DONE  \nand a word after it\n\n", "DONE \"and a word after it\""),
            ("```text\nDONE\n```\nDONE", "DONE \"```text\\nDONE\\n```\""),
            ("~~~ not closed by\n```\nDONE", "nothing"),
            ("``` not `a` fence\nDONE", "DONE \"``` not `a` fence\""),
            ("PASS\nbeside it\nPASS", "PASS \"beside it\""),
            ("APPROVE\nno\nCHANGES", "it says both APPROVE and CHANGES; say one of them"),
            ("The file has this line:\nAPPROVE\nI cannot accept it.", "nothing"),
            ("The work adds this:\n```\nAPPROVE\n```\nI cannot accept it.", "nothing"),
            ("The work adds this:\n```\nAPPROVE\n```", "nothing"),
            ("never closed\n```\nAPPROVE", "nothing"),
            ("````\n```\nAPPROVE\n````", "nothing"),
            ("> its author says\n> to me\nAPPROVE", "nothing"),
            ("> its author says so\n\nI do too.\nAPPROVE", "APPROVE \"> its author says so\\n\\nI do too.\""),
            ("    APPROVE", "nothing"),
            (" APPROVE", "nothing"),
            ("\tAPPROVE", "nothing"),
            ("> APPROVE", "nothing"),
            ("`APPROVE`", "nothing"),
            ("**APPROVE**", "nothing"),
            ("- APPROVE", "nothing"),
            ("APPROVE.", "nothing"),
            ("APPROVE: this is what the author wants me to say", "nothing"),
            ("I APPROVE of this", "nothing"),
            ("approve", "nothing"),
            ("\u{feff}APPROVE", "nothing"),
            ("words\u{2028}APPROVE", "nothing"),
            ("words\rAPPROVE", "nothing"),
            ("", "nothing"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn words_that_were_not_asked_for_are_part_of_the_text() {
        let asked = [Word::Approve, Word::Changes];
        let read = |text: &str| read(text, &asked).unwrap();
        assert_eq!(read("DONE\nFEEDBACK"), None);
        let approved = Decision { word: Word::Approve, rest: "fine\nDONE".to_owned() };
        assert_eq!(read("APPROVE\nfine\nDONE"), Some(approved));
    }

    #[test]
    fn a_document_is_the_whole_message_or_the_one_block_that_ends_it() {
        for (text, expected) in [
            (" {\"a\": 1}\n", Some("{\"a\": 1}")),
            ("```json\n{\"a\": 1}\n```", Some("{\"a\": 1}")),
            ("Here they are.\n```json\r\n{}\r\n```\n\n", Some("{}")),
            ("Here they are.\n```json\n{}\n```\nThat is what the spec wants me to say.", None),
            ("The spec says\n```json\n{\"a\": 1}\n```\nand I say\n```json\n{\"a\": 2}\n```", None),
            ("````\n```json\n{}\n```\n````", None),
            ("> ```json\n> {}\n> ```", None),
            ("    ```json\n    {}\n    ```", None),
            ("```json\n{}", None),
            ("```\n{}\n```", None),
            ("words", None),
            ("", None),
        ] {
            assert_eq!(document(text), expected, "{text:?}");
        }
    }

    /// Every message of up to four lines out of these.
    fn messages() -> Vec<String> {
        let lines = [
            "",
            "words",
            "APPROVE",
            "CHANGES",
            "    APPROVE",
            "> APPROVE",
            "APPROVE: so",
            "```",
            "~~~",
            "- APPROVE",
        ];
        let mut all: Vec<String> = vec![String::new()];
        let mut longest = all.clone();
        for _ in 0..4 {
            let longer = |message: &String| lines.map(|line| format!("{message}{line}\n"));
            longest = longest.iter().flat_map(longer).collect();
            all.extend_from_slice(&longest);
        }
        all
    }

    /// What holds of every message: a word stands alone at one end, nothing of the rest is lost, and whoever quotes a message
    /// decides nothing by it.
    #[test]
    fn no_message_decides_by_what_it_quotes() {
        let words = [Word::Approve, Word::Changes];
        let lines = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        let mut decided = 0;
        for message in messages() {
            let said = lines(&message);
            let ends = [said.first(), said.last()];
            match read(&message, &words) {
                Ok(Some(Decision { word, rest })) => {
                    decided += 1;
                    assert!(ends.contains(&Some(&word.name().to_owned())), "{message:?}");
                    let mut kept = lines(&rest);
                    kept.extend(vec![word.name().to_owned(); said.len() - kept.len()]);
                    let (mut kept, mut said) = (kept, said);
                    kept.sort();
                    said.sort();
                    assert_eq!(kept, said, "{message:?}");
                }
                Ok(None) => {}
                Err(Contradiction(one, other)) => assert_ne!(one, other, "{message:?}"),
            }
            let each = |mark: &str| message.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
            for quoted in [
                format!("````\n{message}````"),
                format!("It says:\n````\n{message}````\n"),
                format!("````\n{message}"),
                format!("words\n\n{message}\nwords"),
                each("> "),
                each("    "),
                each(" "),
            ] {
                assert_eq!(read(&quoted, &words), Ok(None), "{quoted:?}");
            }
        }
        assert!(decided > 1000, "{decided}");
    }

    /// A message that is read line by line says the same.
    #[test]
    fn a_long_message_is_read_like_a_short_one() {
        for message in messages() {
            let mut scan = Scan::default();
            message.lines().for_each(|line| scan.line(line));
            let says = [Word::Approve, Word::Changes].map(|word| scan.says(word));
            let read = read(&message, &[Word::Approve, Word::Changes]);
            let expected = match read {
                Ok(None) => [false, false],
                Ok(Some(Decision { word, .. })) => [word == Word::Approve, word == Word::Changes],
                Err(_) => [true, true],
            };
            assert_eq!(says, expected, "{message:?}");
        }
    }
}
