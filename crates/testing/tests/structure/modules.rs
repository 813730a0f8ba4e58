//! The modules of one crate, and which of them uses which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::source::{self, Declarations};

/// A module, as the names from the crate's root to it.
pub type Name = Vec<String>;

/// All modules of a crate, those written inside a file included.
pub struct Modules {
    /// The folder of the sources: `kernel/src`.
    pub folder: String,
    all: BTreeMap<Name, Module>,
}

pub struct Module {
    /// The file below the folder of the sources.
    pub file: String,
    /// The module that the file stands for: another one if this module is written inside a file.
    pub stands_in: Name,
    pub declarations: Declarations,
}

/// Why one file depends on another.
#[derive(Clone, Debug)]
pub struct Use {
    pub file: String,
    pub line: usize,
    pub path: String,
}

/// Which parts of a folder use which: `(user, used)`, each with its first use.
pub type Graph = BTreeMap<(String, String), Use>;

impl Modules {
    /// Reads the sources in `crates/<krate>/src`.
    pub fn read(crates: &Path, krate: &str) -> Modules {
        let sources = crates.join(krate).join("src");
        let mut modules = Modules { folder: format!("{krate}/src"), all: BTreeMap::new() };
        let root =
            ["lib.rs", "main.rs"].map(|name| sources.join(name)).into_iter().find(|file| file.exists());
        modules.read_file(&sources, root.unwrap_or_else(|| panic!("{krate} has no root file")), Vec::new());
        modules
    }

    pub fn iter(&self) -> impl Iterator<Item = &Module> {
        self.all.values()
    }

    fn read_file(&mut self, sources: &Path, file: PathBuf, name: Name) {
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let Some(declarations) = source::read(&text) else { return };
        let below = file.strip_prefix(sources).unwrap_or(&file).display().to_string();
        self.add(sources, &below, &name, name.clone(), declarations);
    }

    fn add(&mut self, sources: &Path, file: &str, stands_in: &Name, name: Name, mut read: Declarations) {
        for (child, inner) in std::mem::take(&mut read.inner) {
            self.add(sources, file, stands_in, [name.clone(), vec![child]].concat(), inner);
        }
        for child in &read.children {
            let below = [name.clone(), vec![child.clone()]].concat();
            let path = sources.join(below.join("/"));
            let files = [path.with_extension("rs"), path.join("mod.rs")];
            if let Some(file) = files.into_iter().find(|file| file.exists())
                && !self.all.contains_key(&below)
            {
                self.read_file(sources, file, below);
            }
        }
        let module = Module { file: file.to_owned(), stands_in: stands_in.clone(), declarations: read };
        self.all.insert(name, module);
    }

    /// The graph of each folder, by the folder's path.
    pub fn graphs(&self) -> BTreeMap<String, Graph> {
        let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
        for (name, module) in &self.all {
            for (segments, line) in self.used(module) {
                let Some(target) = self.defining(name, &segments, 0) else { continue };
                let (from, to) = (&module.stands_in, &self.all[&target].stands_in);
                if from == to {
                    continue;
                }
                // A parent and the parts of it are one unit.
                if from.starts_with(to) || to.starts_with(from) {
                    continue;
                }
                let shared = from.iter().zip(to).take_while(|(one, other)| one == other).count();
                let folder = [vec![self.folder.clone()], from[..shared].to_vec()].concat().join("/");
                let edge = (self.part(from, shared), self.part(to, shared));
                let path = segments.join("::");
                let here = Use { file: module.file.clone(), line, path };
                graphs.entry(folder).or_default().entry(edge).or_insert(here);
            }
        }
        graphs
    }

    /// The file or folder below the first `shared` names in which the module lies.
    fn part(&self, name: &Name, shared: usize) -> String {
        let part = &name[..=shared];
        let folder = self.all.iter().any(|(other, module)| {
            other.len() > part.len() && other.starts_with(part) && module.stands_in == *other
        });
        format!("{}{}", name[shared], if folder { "/" } else { ".rs" })
    }

    /// The paths that a module uses. A re-export is none, unless the module itself uses the name.
    fn used(&self, module: &Module) -> Vec<(Vec<String>, usize)> {
        let read = &module.declarations;
        let imports = read.imports.iter().filter(|import| !import.handed_on);
        let mut used: Vec<_> = imports.map(|import| (import.path.clone(), import.line)).collect();
        for path in &read.paths {
            let first = &path.segments[0];
            let re_exported = || read.imports.iter().any(|import| import.handed_on && import.alias == *first);
            if path.segments.len() > 1 || re_exported() {
                used.push((path.segments.clone(), path.line));
            }
        }
        used
    }

    /// The module that defines the item to which a path leads: re-exports are followed. None if the path leads to a
    /// module, or out of the crate.
    fn defining(&self, from: &Name, path: &[String], round: usize) -> Option<Name> {
        match self.follow(from, path, round)? {
            Found::Item(name) => Some(name),
            Found::Module(_) => None,
        }
    }

    fn follow(&self, from: &Name, path: &[String], round: usize) -> Option<Found> {
        if round > ROUNDS_MAX {
            return None;
        }
        let mut at = from.clone();
        let mut rest = path;
        while let [first, behind @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                _ => break,
            }
            rest = behind;
        }
        let anchored = rest.len() < path.len();
        if rest.is_empty() {
            return Some(Found::Module(at));
        }
        for (number, segment) in rest.iter().enumerate() {
            let below = [at.clone(), vec![segment.clone()]].concat();
            if self.all.contains_key(&below) {
                at = below;
                continue;
            }
            let read = &self.all.get(&at)?.declarations;
            if read.items.contains(segment) {
                return Some(Found::Item(at));
            }
            for import in &read.imports {
                let mut target = import.path.clone();
                if import.alias == "*" {
                    target.push(segment.clone());
                } else if import.alias != *segment {
                    continue;
                }
                // A name of another crate, which is not looked for in this one.
                if target.first() == Some(segment) {
                    continue;
                }
                match self.follow(&at, &target, round + 1) {
                    Some(Found::Module(name)) => {
                        let behind = &rest[number + 1..];
                        return if behind.is_empty() {
                            Some(Found::Module(name))
                        } else {
                            let path = [vec!["self".to_owned()], behind.to_vec()].concat();
                            self.follow(&name, &path, round + 1)
                        };
                    }
                    Some(item) if import.alias != "*" || self.has(&item, segment) => return Some(item),
                    _ => {}
                }
            }
            // A name that a macro makes belongs to the module that was named.
            let named = anchored || number > 0;
            return named.then_some(Found::Item(at));
        }
        Some(Found::Module(at))
    }

    fn has(&self, found: &Found, item: &str) -> bool {
        match found {
            Found::Item(name) => self.all[name].declarations.items.iter().any(|name| name == item),
            Found::Module(_) => true,
        }
    }
}

enum Found {
    Module(Name),
    Item(Name),
}

/// A name is re-exported through at most so many modules.
const ROUNDS_MAX: usize = 5;

/// The shortest cycle of a graph, as its parts in order.
pub fn shortest_cycle(graph: &Graph) -> Option<Vec<String>> {
    let mut best: Option<Vec<String>> = None;
    for (start, _) in graph.keys() {
        let mut ways = vec![vec![start.clone()]];
        let mut seen: Vec<&String> = Vec::new();
        'search: while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for (_, next) in graph.keys().filter(|(from, _)| way.last() == Some(from)) {
                    if next == start {
                        if best.as_ref().is_none_or(|best| way.len() < best.len()) {
                            best = Some(way);
                        }
                        break 'search;
                    }
                    if !seen.contains(&next) {
                        seen.push(next);
                        longer.push([way.clone(), vec![next.clone()]].concat());
                    }
                }
            }
            ways = longer;
        }
    }
    best
}
