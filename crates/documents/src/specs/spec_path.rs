//! The path of a spec: a file or folder of the repository, read within limits.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kernel::specs::SPEC_BYTES_MAX;

use super::ReadError;

/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1_000;

/// A file or folder, by its real path.
pub struct SpecPath {
    root: PathBuf,
    path: PathBuf,
    name: String,
}

/// A text with the name of its file, from the top of the repository.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl SpecPath {
    /// A path that leads out of the repository or into a git directory, by itself or by a link, is no place.
    pub fn new(path: &Path, root: &Path) -> Result<SpecPath, ReadError> {
        let root = real(root)?;
        let named = path.display().to_string();
        let path = real(&if path.is_absolute() { path.to_owned() } else { root.join(path) })?;
        if path.starts_with(&root) && base::files::leads_into_git(&root, &path) {
            return Err(ReadError::InGit { path: named });
        }
        let Ok(name) = path.strip_prefix(&root) else { return Err(ReadError::Outside { path, root }) };
        let Some(name) = name.to_str().map(str::to_owned) else {
            let error = std::io::Error::other("its name is not UTF-8");
            return Err(ReadError::Io { path, error });
        };
        Ok(SpecPath { name: if name.is_empty() { ".".to_owned() } else { name }, root, path })
    }

    /// From the top of the repository.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_folder(&self) -> bool {
        self.path.is_dir()
    }

    pub fn file_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The parts of its path from the top of the repository.
    pub fn parts(&self) -> Vec<&str> {
        self.name.split('/').collect()
    }

    /// The folder itself, or the one that the file is in. The top of the repository has none above it.
    pub fn folder(&self) -> SpecPath {
        if self.is_folder() { self.at(self.path.clone()) } else { self.above() }
    }

    pub fn above(&self) -> SpecPath {
        let above = self.path.parent().filter(|above| above.starts_with(&self.root));
        self.at(above.unwrap_or(&self.root).to_owned())
    }

    fn at(&self, path: PathBuf) -> SpecPath {
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str).unwrap_or_default();
        let name = if name.is_empty() { ".".to_owned() } else { name.to_owned() };
        SpecPath { root: self.root.clone(), path, name }
    }

    /// What is below this folder under this name. Absent where there is nothing; a link that leads out is an error.
    pub fn below(&self, name: &str) -> Result<Option<SpecPath>, ReadError> {
        match SpecPath::new(&self.path.join(name), &self.root) {
            Ok(place) => Ok(Some(place)),
            Err(ReadError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// The names in this folder, sorted.
    pub fn names(&self) -> Result<Vec<String>, ReadError> {
        let failed = |error| ReadError::Io { path: self.path.clone(), error };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)?.take(ENTRIES_MAX) {
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// Where the one spec is that a folder of specs holds; any other place is itself.
    pub fn narrowed(self) -> Result<SpecPath, ReadError> {
        if !self.is_folder() {
            return Ok(self);
        }
        let below = match self.parts()[..] {
            [.., ".kiro"] => "specs",
            [.., "openspec"] => "changes",
            _ => "",
        };
        let specs = match below {
            "" => self,
            below => self.below(below)?.ok_or_else(|| ReadError::NoFormat { path: self.name.clone() })?,
        };
        let holds_specs = match specs.parts()[..] {
            [.., ".kiro", "specs"] | [.., "openspec", "changes"] => true,
            [.., "specs"] => !specs.has("tasks.md") && !specs.has("spec.md"),
            _ => false,
        };
        if !holds_specs {
            return Ok(specs);
        }
        let is_spec = |name: &String| name != "archive" && specs.path.join(name).is_dir();
        let names: Vec<String> = specs.names()?.into_iter().filter(is_spec).collect();
        match &names[..] {
            [] => Err(ReadError::Empty { path: specs.name }),
            [only] => specs.below(only)?.ok_or(ReadError::Missing { path: specs.path.join(only) }),
            _ => Err(ReadError::Several { path: specs.name, names }),
        }
    }

    /// The text of this file.
    pub fn source(&self) -> Result<Source, ReadError> {
        self.source_within(SPEC_BYTES_MAX)
    }

    pub fn source_within(&self, bytes_max: usize) -> Result<Source, ReadError> {
        let failed = |error| ReadError::Io { path: self.path.clone(), error };
        let found = fs::metadata(&self.path).map_err(failed)?;
        if !found.is_file() {
            return Err(ReadError::NotAFile { path: self.name.clone() });
        }
        if found.len() > bytes_max as u64 {
            return Err(ReadError::TooLarge { path: self.name.clone(), bytes_max });
        }
        let bytes = fs::read(&self.path).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            ReadError::NotUtf8 { path: self.name.clone(), line }
        })?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Source { path: self.name.clone(), text })
    }

    /// The text of a file below this folder, where there is one.
    pub fn file(&self, name: &str) -> Result<Option<Source>, ReadError> {
        self.below(name)?.map(|place| place.source()).transpose()
    }
}

/// The texts of a spec as one.
pub fn joined(sources: &[&Source]) -> String {
    let one = |source: &&Source| format!("<!-- {} -->\n\n{}", source.path, source.text.trim());
    sources.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

fn real(path: &Path) -> Result<PathBuf, ReadError> {
    path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing { path: path.to_owned() },
        _ => ReadError::Io { path: path.to_owned(), error },
    })
}
