//! One crate knows how the log is stored, and one module how streams are: everybody else names a location.

use std::path::Path;

use crate::{all_crates, crates_folder};

/// What names a database, in code and in the dependencies of a crate.
const NAMES: &[&str] = &["SqliteLog", "rusqlite"];

/// The places that may, and why.
const PLACES: &[(&str, &str)] = &[
    ("log/", "the log is an SQLite file, or whatever else `Location` names"),
    ("streams/Cargo.toml", "the store of streams is an SQLite file"),
    ("streams/src/storage/sqlite/", "the store of streams is an SQLite file"),
];

/// Tests may look into a database, and damage it; so they are not read.
#[test]
fn only_the_storage_of_the_log_and_of_streams_names_a_database() {
    let mut faults = Vec::new();
    let mut used = vec![false; PLACES.len()];
    for krate in all_crates() {
        for (file, text) in sources(&krate) {
            let named = NAMES.iter().find(|name| names(&text, name));
            let Some(named) = named else { continue };
            match PLACES.iter().position(|(place, _)| file.starts_with(place)) {
                Some(place) => used[place] = true,
                None => faults.push(format!("crates/{file} names {named}: use `log::open` and `Location`")),
            }
        }
    }
    for ((place, _), _) in PLACES.iter().zip(used).filter(|(_, used)| !used) {
        faults.push(format!("crates/{place} names no database any more: remove it from the list"));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_name_is_found_as_a_word_and_not_in_a_comment() {
    assert!(names("let log = SqliteLog::open(path);", "SqliteLog"));
    assert!(names("rusqlite.workspace = true", "rusqlite"));
    assert!(!names("// a SqliteLog, say", "SqliteLog"));
    assert!(!names("struct NotSqliteLogs;", "SqliteLog"));
}

fn names(text: &str, name: &str) -> bool {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.flat_map(|line| line.split(|c| !is_part(c))).any(|word| word == name)
}

/// The crate's sources without its tests, its benchmarks, and what it depends on outside tests.
fn sources(krate: &str) -> Vec<(String, String)> {
    let root = crates_folder().join(krate);
    let mut files = Vec::new();
    for folder in ["src", "benches", "examples"] {
        read(&root.join(folder), &format!("{krate}/{folder}"), &mut files);
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let for_all = manifest.split("\n[dev-dependencies]\n").next().unwrap_or_default();
    files.push((format!("{krate}/Cargo.toml"), for_all.to_owned()));
    files
}

fn read(folder: &Path, name: &str, files: &mut Vec<(String, String)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map(|entry| entry.unwrap()) {
        let entry_name = entry.file_name().into_string().unwrap();
        let path = format!("{name}/{entry_name}");
        match entry.file_type().unwrap().is_dir() {
            true if entry_name == "tests" => {}
            true => read(&entry.path(), &path, files),
            false if entry_name.ends_with(".rs") && entry_name != "tests.rs" => {
                files.push((path, std::fs::read_to_string(entry.path()).unwrap()));
            }
            false => {}
        }
    }
}
