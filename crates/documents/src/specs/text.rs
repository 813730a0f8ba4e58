//! The part of Markdown that lists of tasks need: headings, boxes with their content, and criteria.

/// A line of a text. What is in a fence of code or in a comment is shown and means nothing.
#[derive(Clone, Copy, Debug)]
pub struct TextLine<'a> {
    /// From 1.
    pub number: usize,
    /// Without its line end.
    pub text: &'a str,
    pub quiet: bool,
}

pub fn lines(text: &str) -> Vec<TextLine<'_>> {
    let (mut fence, mut comment) = (None::<(char, usize)>, false);
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let run = |mark: char| trimmed.chars().take_while(|c| *c == mark).count();
        let begins = ['`', '~'].into_iter().map(|mark| (mark, run(mark))).find(|(_, run)| *run >= 3);
        let mut quiet = fence.is_some() || comment;
        match (fence, begins) {
            (None, Some(begins)) if !comment => {
                fence = Some(begins);
                quiet = true;
            }
            (Some((mark, length)), Some((again, run)))
                if mark == again && run >= length && trimmed[run..].trim().is_empty() =>
            {
                fence = None;
            }
            (None, None) => {
                quiet |= trimmed.starts_with("<!--");
                comment = match (line.rfind("<!--"), line.rfind("-->")) {
                    (Some(begin), Some(end)) => begin > end,
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => comment,
                };
            }
            _ => {}
        }
        lines.push(TextLine { number, text: line, quiet });
    }
    lines
}

/// The rank of a heading and what it says.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let rank = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(rank..)?;
    let is_one = (1..=6).contains(&rank) && rest.starts_with([' ', '\t']);
    is_one.then(|| (rank, rest.trim().trim_end_matches('#').trim_end()))
}

/// The first heading of the highest rank.
pub fn title(text: &str) -> Option<String> {
    let found = lines(text).into_iter().filter(|line| !line.quiet).filter_map(|line| heading(line.text));
    found.filter(|(rank, said)| *rank == 1 && !said.is_empty()).map(|(_, said)| said.to_owned()).next()
}

/// What follows one of these words and a colon in a title; the title itself where none of them begins it.
pub fn after_label<'a>(title: &'a str, labels: &[&str]) -> &'a str {
    let after = |label: &&str| {
        let rest = strip_word(title, label)?;
        rest.trim_start().strip_prefix([':', '-', '–', '—']).map(str::trim)
    };
    labels.iter().find_map(after).filter(|rest| !rest.is_empty()).unwrap_or(title)
}

/// The rest after this beginning, however it is written.
pub fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let begins = text.get(..word.len())?.eq_ignore_ascii_case(word);
    begins.then(|| &text[word.len()..])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxState {
    Open,
    Done,
    /// A sign that nobody has explained.
    Other,
}

/// A box of a list and what it is for.
#[derive(Clone, Copy, Debug)]
pub struct TaskBox<'a> {
    pub indent: usize,
    pub tick: BoxState,
    /// Directly after the box: it may be left out.
    pub star: bool,
    pub text: &'a str,
}

/// Where the sign of a box stands in its line, and the sign.
pub fn sign(line: &str) -> Option<(usize, char)> {
    let trimmed = line.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => trimmed.strip_prefix(['-', '*', '+'])?,
        _ => trimmed[digits..].strip_prefix(['.', ')'])?,
    };
    let inner = rest.trim_start().strip_prefix('[').filter(|_| rest.starts_with([' ', '\t']))?;
    let sign = inner.chars().next()?;
    inner[sign.len_utf8()..].starts_with(']').then(|| (line.len() - inner.len(), sign))
}

pub fn task_box(line: &str) -> Option<TaskBox<'_>> {
    let (at, sign) = sign(line)?;
    let rest = &line[at + sign.len_utf8() + 1..];
    let star = rest.starts_with('*') && !rest.starts_with("**");
    let rest = if star { &rest[1..] } else { rest };
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        // A link such as `[x](…)`.
        return None;
    }
    let tick = match sign {
        ' ' | '-' | '~' | '/' => BoxState::Open,
        'x' | 'X' => BoxState::Done,
        _ => BoxState::Other,
    };
    Some(TaskBox { indent: indent(line), tick, star, text: rest.trim() })
}

pub fn indent(line: &str) -> usize {
    let columns = |c: char| if c == '\t' { 4 } else { 1 };
    line.chars().take_while(|c| c.is_whitespace()).map(columns).sum()
}

/// A box with what stands below it.
#[derive(Debug)]
pub struct Entry<'a> {
    pub number: usize,
    pub line: &'a str,
    pub task: TaskBox<'a>,
    /// The headings above it, from the outermost.
    pub headings: Vec<&'a str>,
    pub details: Vec<&'a str>,
}

impl Entry<'_> {
    pub fn details(&self) -> String {
        let inside = self.details.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line));
        let left = inside.min().unwrap_or_default();
        let cut = |line: &&str| -> String {
            let mut rest = *line;
            let mut columns = 0;
            while columns < left && rest.starts_with(|c: char| c.is_whitespace()) {
                columns += if rest.starts_with('\t') { 4 } else { 1 };
                rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            }
            rest.trim_end().to_owned()
        };
        self.details.iter().map(cut).collect::<Vec<_>>().join("\n").trim().to_owned()
    }
}

/// The boxes of a text for which `is_task` says so; others that stand below one are details of it. What is neither is
/// told to `loose`.
pub fn entries<'a>(
    text: &'a str,
    is_task: impl Fn(&TaskBox<'a>, Option<&Entry<'a>>) -> bool,
    mut loose: impl FnMut(TextLine<'a>),
) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    let mut headings: Vec<(usize, &str)> = Vec::new();
    // Whether what comes now may still belong to the last entry.
    let mut open = false;
    for line in lines(text) {
        if let Some((rank, said)) = heading(line.text).filter(|_| !line.quiet) {
            headings.retain(|(above, _)| *above < rank);
            headings.push((rank, said));
            open = false;
            continue;
        }
        let last = entries.last().filter(|_| open);
        let below = last.is_some_and(|last| indent(line.text) > last.task.indent);
        match task_box(line.text).filter(|_| !line.quiet) {
            Some(task) if is_task(&task, last) => {
                let headings = headings.iter().map(|(_, said)| *said).collect();
                let (number, line, details) = (line.number, line.text, Vec::new());
                entries.push(Entry { number, line, task, headings, details });
                open = true;
            }
            Some(_) if !below => {
                loose(line);
                open = false;
            }
            _ if line.text.trim().is_empty() || below => {
                if let Some(last) = entries.last_mut().filter(|_| open) {
                    last.details.push(line.text);
                }
            }
            _ => open = open && line.quiet,
        }
    }
    entries
}

/// The lines below each heading for which `wanted` says something, up to the next heading of its rank or above.
pub fn sections<'a, T>(
    text: &'a str,
    wanted: impl Fn(usize, &'a str) -> Option<T>,
) -> Vec<(T, Vec<TextLine<'a>>)> {
    let mut found: Vec<(usize, T, Vec<TextLine<'a>>)> = Vec::new();
    let mut open = false;
    for line in lines(text) {
        if let Some((rank, said)) = heading(line.text).filter(|_| !line.quiet) {
            open = open && found.last().is_some_and(|(above, ..)| rank > *above);
            if let Some(what) = wanted(rank, said) {
                found.push((rank, what, Vec::new()));
                open = true;
                continue;
            }
        }
        if let Some((.., inside)) = found.last_mut().filter(|_| open) {
            inside.push(line);
        }
    }
    found.into_iter().map(|(_, what, inside)| (what, inside)).collect()
}

/// The lines after a label in bold, such as `**Acceptance Criteria:**`, or after a heading that says it, up to the next.
pub fn labelled<'a>(inside: &[TextLine<'a>], label: &str) -> Vec<&'a str> {
    let is_label = |line: &TextLine<'_>| {
        let said = heading(line.text).map(|(_, said)| said).or_else(|| {
            let text = line.text.trim();
            text.starts_with("**").then_some(text)
        });
        said.map(|said| said.trim_start_matches('*').to_owned())
    };
    let is_clause = |said: &str| clause(said).is_some();
    let mut found = Vec::new();
    let mut open = false;
    for line in inside.iter().filter(|line| !line.quiet) {
        match is_label(line) {
            Some(said) if strip_word(&said, label).is_some() => open = true,
            Some(said) if !is_clause(&said) => open = false,
            _ if open => found.push(line.text),
            _ => {}
        }
    }
    found
}

/// With which word of Given, When and Then a sentence begins.
fn clause(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches(['*', '_']);
    let word = |word: &&str| {
        strip_word(text, word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    };
    ["given", "when", "then", "and", "but"].into_iter().find(word)
}

/// Criteria as people list them: points of a list, or sentences of Given, When and Then, each as one line.
pub fn criteria<'a>(inside: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // Points below a point belong to it.
    let mut outermost = None;
    let mut apart = false;
    for line in inside {
        let text = line.trim();
        if text.is_empty() {
            apart = true;
            continue;
        }
        let (numbered, bullet, said) = point(text);
        let said = said.replace("**", "");
        let begins = clause(&said);
        let outer = *outermost.get_or_insert(indent(line));
        let goes_on = match begins {
            Some("given") => false,
            Some("when") => found.last().is_some_and(|last| {
                clause(last) == Some("given") && !last.to_ascii_lowercase().contains(" when ")
            }),
            Some(_) => !numbered,
            None => !(numbered || bullet || apart) || indent(line) > outer,
        };
        let goes_on = goes_on && !(numbered && indent(line) <= outer);
        match found.last_mut().filter(|_| goes_on) {
            Some(last) => {
                last.push(' ');
                last.push_str(said.trim());
            }
            None => found.push(said.trim().to_owned()),
        }
        apart = false;
    }
    found.retain(|line| !line.is_empty());
    found
}

/// Whether a line is a numbered or another point of a list, and what it says. A box is left out of it.
fn point(text: &str) -> (bool, bool, &str) {
    if let Some(task) = task_box(text) {
        return (false, true, task.text);
    }
    if let Some(said) =
        text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).or_else(|| text.strip_prefix("+ "))
    {
        return (false, true, said.trim());
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = text[digits..].strip_prefix(['.', ')']).filter(|rest| digits > 0 && rest.starts_with(' '));
    match after {
        Some(said) => (true, false, said.trim()),
        None => (false, false, text),
    }
}

/// A number in parts, such as `2.1`, at the beginning, and the rest. A full stop or a colon after it belongs to neither.
pub fn number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    let rest = &text[end..];
    let rest = rest.strip_prefix([':', ')']).unwrap_or(rest);
    let whole = !number.is_empty() && number.split('.').all(|part| !part.is_empty());
    (whole && (rest.is_empty() || rest.starts_with([' ', '\t']))).then(|| (number, rest.trim()))
}
