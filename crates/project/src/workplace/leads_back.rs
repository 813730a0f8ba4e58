//! Finds packages that lead back into the user's checkout: an editable install, a workspace package, a link.
//!
//! A tree that links such a folder would test the checkout instead of itself, so they are found before an
//! agent starts. Nothing is run or imported for it: files are read as text.

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Entries that are looked at in one folder, the shallow ones first.
const LOOKS_MAX: usize = 50_000;
/// Larger files are not read: those that name a path are small.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How many are found before the search ends: they mostly have one cause.
const FOUND_MAX: usize = 20;

/// A file that leads from a shared folder into the checkout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeadBack {
    /// Relative to the checkout.
    pub file: PathBuf,
    pub target: PathBuf,
    /// The entry of the settings that brings it into a tree, as a path: `.venv`.
    pub shared: PathBuf,
    pub kind: LeadKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeadKind {
    /// A Python package that was installed with `-e`.
    Editable,
    Link,
}

impl LeadBack {
    /// What is wrong, in a sentence.
    pub fn text(&self) -> String {
        let (file, target) = (self.file.display(), self.target.display());
        match self.kind {
            LeadKind::Editable => format!(
                "`{file}` is an editable install of {target}: tests would import your checkout instead of the tree under test"
            ),
            LeadKind::Link => format!(
                "`{file}` is a link to {target}: tests would load your checkout instead of the tree under test"
            ),
        }
    }
}

/// What a person can do about it: the lines to write.
pub fn fix(root: &Path, leads: &[LeadBack]) -> String {
    let Some(lead) = leads.first() else { return String::new() };
    let shared = lead.shared.display();
    format!(
        "in adjutant.toml, take `{shared}` out of [worktree] and have each tree install its own: \
         `worktree.create = \"{}\"` under [hooks]",
        installs(root, &lead.shared)
    )
}

/// The command that installs in a new tree what this folder of the checkout has.
pub fn installs(root: &Path, folder: &Path) -> String {
    let there = |name: &str| root.join(name).exists();
    if folder.file_name().is_some_and(|name| name == "node_modules") {
        let known = [
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            ("yarn.lock", "yarn install"),
            ("bun.lock", "bun install --frozen-lockfile"),
            ("bun.lockb", "bun install --frozen-lockfile"),
            ("package-lock.json", "npm ci"),
        ];
        return known.iter().find(|(lock, _)| there(lock)).map_or("npm install", |(_, line)| line).to_owned();
    }
    let known = [("uv.lock", "uv sync"), ("poetry.lock", "poetry install")];
    if let Some((_, line)) = known.iter().find(|(lock, _)| there(lock)) {
        return (*line).to_owned();
    }
    let folder = folder.display();
    format!("python3 -m venv {folder} && {folder}/bin/pip install -e .")
}

/// Where to look, and what counts as the checkout.
pub struct Search<'a> {
    /// The checkout, canonical.
    pub root: &'a Path,
    /// All checkouts of the person's, the root among them.
    pub checkouts: &'a [PathBuf],
    /// What of them a tree shares: a way from one shared folder to another leads to the same files everywhere.
    pub shared: &'a [PathBuf],
    /// The folder of all trees, which may lie in the checkout and is no part of it.
    pub trees: &'a Path,
}

impl Search<'_> {
    /// The ways back from this folder of the checkout. `copied`: its relative links lead to the same place in a tree, and its
    /// absolute ones are not copied.
    pub fn below(&self, folder: &Path, copied: bool) -> Vec<LeadBack> {
        let mut found = Vec::new();
        let mut folders = VecDeque::from([self.root.join(folder)]);
        let mut looks = 0;
        while let Some(at) = folders.pop_front() {
            let mut entries: Vec<_> = fs::read_dir(&at).into_iter().flatten().flatten().collect();
            entries.sort_by_key(fs::DirEntry::file_name);
            let before = found.len();
            for entry in &entries {
                looks += 1;
                if looks > LOOKS_MAX || found.len() >= FOUND_MAX {
                    return found;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                let lead = match (kind.is_symlink(), kind.is_file()) {
                    (true, _) if !copied => self.by_link(&path).map(|target| (target, LeadKind::Link)),
                    (_, true) => self.by_text(&path).map(|target| (target, LeadKind::Editable)),
                    _ => None,
                };
                if kind.is_dir() {
                    folders.push_back(path);
                } else if let Some((target, kind)) = lead {
                    let file = path.strip_prefix(self.root).unwrap_or(&path).to_owned();
                    found.push(LeadBack { file, target, shared: folder.to_owned(), kind });
                }
            }
            // Installers say so in a second place, which is told only if the first is of a kind that is not known here.
            if found.len() == before && at.file_name().is_some_and(|name| name == "site-packages") {
                found.extend(self.by_record(&at, folder));
            }
        }
        found
    }

    fn by_link(&self, link: &Path) -> Option<PathBuf> {
        let real = link.canonicalize().or_else(|_| {
            let target = fs::read_link(link)?;
            Ok::<_, std::io::Error>(plain(&link.parent().unwrap_or(link).join(target)))
        });
        real.ok().filter(|target| self.is_back(target))
    }

    /// Files by which Python and setuptools name folders to import from.
    fn by_text(&self, file: &Path) -> Option<PathBuf> {
        let name = file.file_name()?.to_str()?;
        let is_path_file = name.ends_with(".pth") || name.ends_with(".egg-link");
        let is_finder = name.starts_with("__editable__") && name.ends_with(".py");
        if !is_path_file && !is_finder {
            return None;
        }
        let text = small(file)?;
        let folder = file.parent()?;
        let by_line = |line: &str| {
            let line = line.trim();
            let names_a_path = !line.is_empty() && !line.starts_with('#') && !line.starts_with("import ");
            let target = names_a_path.then(|| plain(&folder.join(line)))?;
            let target = target.canonicalize().unwrap_or(target);
            self.is_back(&target).then_some(target)
        };
        if is_finder {
            return self.named_in(&text);
        }
        let by_code =
            || text.lines().filter(|line| line.starts_with("import ")).find_map(|line| self.named_in(line));
        text.lines().find_map(by_line).or_else(by_code)
    }

    /// The first path into a checkout that this text names.
    fn named_in(&self, text: &str) -> Option<PathBuf> {
        let ends = |c: char| matches!(c, '\'' | '"' | '\n' | '\r' | ';' | ',' | ')');
        let of = |checkout: &PathBuf| {
            let name = checkout.to_str().filter(|name| name.len() > 1)?;
            text.match_indices(name).find_map(|(at, _)| {
                let path = text[at..].split(ends).next().unwrap_or_default();
                let path = plain(Path::new(path));
                self.is_back(&path).then_some(path)
            })
        };
        self.checkouts.iter().find_map(of)
    }

    /// `direct_url.json` of an editable install, whatever mechanism it has.
    fn by_record(&self, packages: &Path, shared: &Path) -> Option<LeadBack> {
        let entries = fs::read_dir(packages).ok()?.flatten();
        let is_info = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".dist-info");
        entries.filter(is_info).find_map(|entry| {
            let file = entry.path().join("direct_url.json");
            let record: serde_json::Value = serde_json::from_str(&small(&file)?).ok()?;
            let is_editable = record["dir_info"]["editable"] == true;
            let target = PathBuf::from(record["url"].as_str()?.strip_prefix("file://")?);
            (is_editable && self.is_back(&target)).then(|| LeadBack {
                file: file.strip_prefix(self.root).unwrap_or(&file).to_owned(),
                target,
                shared: shared.to_owned(),
                kind: LeadKind::Editable,
            })
        })
    }

    fn is_back(&self, target: &Path) -> bool {
        self.checkouts.iter().any(|checkout| target.starts_with(checkout))
            && !target.starts_with(self.trees)
            && !self.shared.iter().any(|shared| target.starts_with(shared))
    }
}

/// A path without `.` and `..`, by its text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

fn small(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod test {
    use super::*;
    use std::os::unix::fs::symlink;
    use testing::Folder;

    fn check(project: &Folder, folder: &str, shared: &[&str], expected: &[&str]) {
        let root = project.path.canonicalize().unwrap();
        let shared: Vec<PathBuf> = shared.iter().map(|path| root.join(path)).collect();
        let trees = root.join("trees");
        let checkouts = [root.clone()];
        let search = Search { root: &root, checkouts: &checkouts, shared: &shared, trees: &trees };
        let found = search.below(Path::new(folder), false);
        let told = |lead: &LeadBack| {
            let target = lead.target.strip_prefix(&root).unwrap();
            format!("{:?} {} -> {}", lead.kind, lead.file.display(), target.display())
        };
        assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    }

    const SITE: &str = ".venv/lib/python3.12/site-packages";

    #[test]
    fn every_kind_of_editable_install_is_found() {
        let project = Folder::new();
        let root = project.path.canonicalize().unwrap().display().to_string();
        let write = |file: &str, text: String| project.write(format!("{SITE}/{file}"), &text);
        project.write("src/pk/__init__.py", "");
        write("__editable__.a-1.pth", format!("{root}/src\n"));
        write("b.egg-link", format!("{root}\n.\n"));
        write("__editable___c_finder.py", format!("MAPPING = {{'pk': '{root}/src/pk', 'x': '/usr'}}\n"));
        write("d.pth", format!("import sys; sys.path.insert(0, '{root}/src')\n"));
        write("e.pth", "../../../../src\n".to_owned());
        // Other files, comments, other places, and what is shared itself.
        write("f.pth", format!("# {root}/src is gone\n/usr/lib\nimport os\n"));
        write("g.pth", format!("{root}/.venv/more\n"));
        write("notes.txt", format!("{root}/src\n"));
        let expected = [
            format!("Editable {SITE}/__editable__.a-1.pth -> src"),
            format!("Editable {SITE}/__editable___c_finder.py -> src/pk"),
            format!("Editable {SITE}/b.egg-link -> "),
            format!("Editable {SITE}/d.pth -> src"),
            format!("Editable {SITE}/e.pth -> src"),
        ];
        check(&project, ".venv", &[".venv"], &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn a_record_of_an_editable_install_is_enough() {
        let project = Folder::new();
        let root = project.path.canonicalize().unwrap().display().to_string();
        let record =
            |editable| format!("{{\"dir_info\": {{\"editable\": {editable}}}, \"url\": \"file://{root}\"}}");
        project.write(format!("{SITE}/a-1.dist-info/direct_url.json"), record(false));
        check(&project, ".venv", &[".venv"], &[]);
        project.write(format!("{SITE}/b-1.dist-info/direct_url.json"), record(true));
        let expected = format!("Editable {SITE}/b-1.dist-info/direct_url.json -> ");
        check(&project, ".venv", &[".venv"], &[&expected]);
    }

    #[test]
    fn workspace_packages_are_found_and_links_within_what_is_shared_are_not() {
        let project = Folder::new();
        for file in
            ["packages/a/index.js", "node_modules/@m/x", "node_modules/.bin/x", "node_modules/t/cli.js"]
        {
            project.write(file, "");
        }
        let at = |path: &str| project.path.join(path);
        symlink("../../packages/a", at("node_modules/@m/a")).unwrap();
        symlink("../t/cli.js", at("node_modules/.bin/t")).unwrap();
        symlink("/usr", at("node_modules/usr")).unwrap();
        symlink("../packages/gone", at("node_modules/gone")).unwrap();
        let expected = ["Link node_modules/gone -> packages/gone", "Link node_modules/@m/a -> packages/a"];
        check(&project, "node_modules", &["node_modules"], &expected);
        check(&project, "node_modules", &["node_modules", "packages"], &[]);
    }
}
