//! Reads Rust source as tokens, as far as the tests of the structure need it: names, paths and `use` declarations.
//! Comments, doc comments, strings and everything under `#[cfg(test)]` are left out.

/// What one file, or one module written inside a file, declares and uses.
#[derive(Default)]
pub struct Declarations {
    /// Names of `mod name;` and `mod name { … }`.
    pub children: Vec<String>,
    /// Names of `#[cfg(test)] mod name;`: their files are not read.
    pub tests: Vec<String>,
    /// Names of functions, types, constants, traits and macros.
    pub items: Vec<String>,
    /// Names of `pub` types, with the line of each.
    pub public_types: Vec<(String, usize)>,
    pub imports: Vec<Import>,
    /// Paths in code: `crate::a::b`, `a::b`. A name without `::` is a path of one segment.
    pub paths: Vec<Path>,
    /// Modules that are written inside this file.
    pub inner: Vec<(String, Declarations)>,
}

/// One name of a `use` declaration.
#[derive(Clone, Debug)]
pub struct Import {
    pub path: Vec<String>,
    /// The name by which it is known here; `*` for all names.
    pub alias: String,
    /// `pub use` or `pub(crate) use`: a parent that hands on names of its children does not use them.
    pub handed_on: bool,
    pub line: usize,
}

#[derive(Clone, Debug)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
}

#[derive(Debug)]
struct Token {
    text: String,
    line: usize,
}

const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// What `text` declares and uses, or nothing if the whole file is for tests.
pub fn read(text: &str) -> Option<Declarations> {
    let tokens = tokens(text);
    let mut reader = Reader { tokens: &tokens, at: 0 };
    let first: String = tokens.iter().take(8).map(|token| token.text.as_str()).collect();
    (first != "#![cfg(test)]").then(|| reader.module())
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| &token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    /// Reads up to the brace that closes the module, or to the end of the file.
    fn module(&mut self) -> Declarations {
        let mut found = Declarations::default();
        let mut depth = 0;
        let mut public = false;
        let mut visible = false;
        while self.at < self.tokens.len() {
            let before = self.at.checked_sub(1).map_or("", |at| &self.tokens[at].text).to_owned();
            match self.text(0) {
                "#" if self.text(1) == "[" || self.text(1) == "!" => {
                    if self.attribute() {
                        self.skip_item(&mut found);
                    }
                    continue;
                }
                // The items that a macro takes are items of the module.
                "{" if depth == 0 && before == "!" => {
                    self.at += 1;
                    let taken = self.module();
                    found.items.extend(taken.items);
                    found.public_types.extend(taken.public_types);
                    found.imports.extend(taken.imports);
                    found.paths.extend(taken.paths);
                }
                "{" => depth += 1,
                "}" if depth == 0 => return found,
                "}" => depth -= 1,
                "pub" => {
                    visible = true;
                    public = self.text(1) != "(";
                    self.at += 1;
                    if !public {
                        self.skip_brackets();
                    }
                    continue;
                }
                "use" if before != "." => {
                    self.at += 1;
                    self.import(&mut Vec::new(), visible, &mut found.imports);
                    (public, visible) = (false, false);
                    continue;
                }
                "mod" if self.text(2) == ";" => {
                    found.children.push(self.text(1).to_owned());
                    self.at += 2;
                }
                "mod" if self.text(2) == "{" => {
                    let name = self.text(1).to_owned();
                    self.at += 3;
                    let inner = self.module();
                    found.children.push(name.clone());
                    found.inner.push((name, inner));
                }
                "macro_rules" => found.items.push(self.text(2).to_owned()),
                "fn" | "struct" | "enum" | "trait" | "type" | "union" | "const" | "static"
                    if depth == 0 && is_name(self.text(1)) =>
                {
                    let named = if self.text(1) == "mut" { 2 } else { 1 };
                    found.items.push(self.text(named).to_owned());
                    if public && TYPES.contains(&self.text(0)) {
                        found.public_types.push((self.text(1).to_owned(), self.line()));
                    }
                    self.at += named;
                }
                name if is_name(name) && before != "." && before != "::" => {
                    let line = self.line();
                    let mut segments = vec![name.to_owned()];
                    while self.text(1) == "::" && is_name(self.text(2)) {
                        segments.push(self.text(2).to_owned());
                        self.at += 2;
                    }
                    found.paths.push(Path { segments, line });
                }
                _ => {}
            }
            (public, visible) = (false, false);
            self.at += 1;
        }
        found
    }

    /// Reads over an attribute; whether it is for tests alone.
    fn attribute(&mut self) -> bool {
        let from = self.at;
        while self.text(0) != "[" {
            self.at += 1;
        }
        self.skip_brackets();
        let text: String = self.tokens[from..self.at].iter().map(|token| token.text.as_str()).collect();
        text == "#[cfg(test)]" || text == "#[test]"
    }

    /// Reads over `( … )`, `[ … ]` or `{ … }`, which begins here.
    fn skip_brackets(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads over an item, a field, a statement or an arm that is for tests alone.
    fn skip_item(&mut self, found: &mut Declarations) {
        while self.text(0) == "#" {
            self.attribute();
        }
        if self.text(0) == "pub" {
            self.at += 1;
            if self.text(0) == "(" {
                self.skip_brackets();
            }
        }
        if self.text(0) == "mod" && self.text(2) == ";" {
            found.tests.push(self.text(1).to_owned());
        }
        let word = self.text(0);
        let to_semicolon = ["use", "let", "const", "static", "type"].contains(&word) && self.text(1) != "fn";
        let item = to_semicolon
            || ["mod", "fn", "struct", "enum", "impl", "trait", "macro_rules", "unsafe", "async", "const"]
                .contains(&word);
        while self.at < self.tokens.len() {
            match self.text(0) {
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if !item => {
                    self.at += 1;
                    return;
                }
                "}" | ")" | "]" => return,
                "{" => {
                    self.skip_brackets();
                    if !to_semicolon {
                        return;
                    }
                }
                "(" | "[" => self.skip_brackets(),
                _ => self.at += 1,
            }
        }
    }

    /// Reads one tree of a `use` declaration, and the semicolon, comma or brace behind it.
    fn import(&mut self, before: &mut Vec<String>, handed_on: bool, imports: &mut Vec<Import>) {
        let known = before.len();
        let line = self.line();
        loop {
            let word = self.text(0).to_owned();
            self.at += 1;
            match word.as_str() {
                "::" => {}
                "{" => {
                    while self.text(0) != "}" && self.at < self.tokens.len() {
                        self.import(before, handed_on, imports);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    imports.push(Import { path: before.clone(), alias: "*".to_owned(), handed_on, line });
                    break;
                }
                name => {
                    if name != "self" || before.is_empty() {
                        before.push(name.to_owned());
                    }
                    if self.text(0) == "::" {
                        continue;
                    }
                    let mut alias = before.last().cloned().unwrap_or_default();
                    if self.text(0) == "as" {
                        alias = self.text(1).to_owned();
                        self.at += 2;
                    }
                    imports.push(Import { path: before.clone(), alias, handed_on, line });
                    break;
                }
            }
        }
        before.truncate(known);
        if known == 0 && self.text(0) == ";" {
            self.at += 1;
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn tokens(text: &str) -> Vec<Token> {
    let text: Vec<char> = text.chars().collect();
    let get = |at: usize| text.get(at).copied().unwrap_or('\0');
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let from = at;
        match get(at) {
            '/' if get(at + 1) == '/' => {
                while at < text.len() && get(at) != '\n' {
                    at += 1;
                }
            }
            '/' if get(at + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (get(at), get(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 || at >= text.len() {
                        break;
                    }
                }
            }
            '"' => at = end_of_string(&text, at),
            'r' | 'b' | 'c' if string_begins(&text, at) => {
                while is_word(get(at)) {
                    at += 1;
                }
                let hashes = (at..).take_while(|&at| get(at) == '#').count();
                at += hashes;
                if get(from) == 'r' || get(from + 1) == 'r' {
                    at += 1;
                    while at < text.len()
                        && !(get(at) == '"' && (1..=hashes).all(|behind| get(at + behind) == '#'))
                    {
                        at += 1;
                    }
                    at += 1 + hashes;
                } else {
                    at = end_of_string(&text, at);
                }
            }
            // A letter in quotes, or else a lifetime.
            '\'' if get(at + 1) == '\\' => {
                at += 3;
                while at < text.len() && get(at) != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if get(at + 2) == '\'' => at += 3,
            '\'' => {
                at += 1;
                while is_word(get(at)) {
                    at += 1;
                }
            }
            letter if is_word(letter) => {
                while is_word(get(at)) {
                    at += 1;
                }
                tokens.push(Token { text: text[from..at].iter().collect(), line });
            }
            ':' if get(at + 1) == ':' => {
                at += 2;
                tokens.push(Token { text: "::".to_owned(), line });
            }
            letter => {
                at += 1;
                if !letter.is_whitespace() {
                    tokens.push(Token { text: letter.to_string(), line });
                }
            }
        }
        line += text[from..at.min(text.len())].iter().filter(|&&letter| letter == '\n').count();
    }
    tokens
}

/// Whether `r"`, `r#"`, `b"`, `br#"` or `c"` stands here.
fn string_begins(text: &[char], at: usize) -> bool {
    let marks = text[at..].iter().take_while(|letter| ['r', 'b', 'c'].contains(letter)).count();
    let raw = text[at..at + marks].contains(&'r');
    let hashes = if raw { text[at + marks..].iter().take_while(|&&letter| letter == '#').count() } else { 0 };
    let joined = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    !joined && marks <= 2 && text.get(at + marks + hashes) == Some(&'"')
}

fn end_of_string(text: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}
