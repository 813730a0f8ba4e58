//! Builds the page, or takes one that is built, and writes the list of its files for `src/lib.rs`.
//!
//! In this order: the folder that `ADJ_UI_DIST` names; `page/dist` where the sources are not there, as in a package; a build of
//! `page` with npm; and otherwise no files: the server shows a plain page then that says how to get the real one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The parts of `page` that a build reads.
const SOURCES: &[&str] = &[
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "public",
    "scripts",
    "src",
];
/// Written by the build into the sources themselves.
const GENERATED: &str = "src/api/types.ts";

fn main() {
    println!("cargo::rerun-if-env-changed=ADJ_UI_DIST");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the folder"));
    let dist = match given(&here) {
        Some(dist) => Some(dist),
        None => match built(&here, &out) {
            Ok(dist) => Some(dist),
            Err(why) => {
                println!("cargo::warning=the web page is left out: {why}");
                None
            }
        },
    };
    let mut files = BTreeMap::new();
    if let Some(dist) = dist {
        collect(&dist, &dist, &mut files).expect("the built page can be read");
    }
    fs::write(out.join("files.rs"), listed(&files)).expect("the list can be written");
}

/// A page that somebody has built already.
fn given(here: &Path) -> Option<PathBuf> {
    if let Some(dist) = env::var_os("ADJ_UI_DIST") {
        let dist = PathBuf::from(dist);
        println!("cargo::rerun-if-changed={}", dist.display());
        assert!(
            dist.join("index.html").is_file(),
            "ADJ_UI_DIST names {}, which has no index.html",
            dist.display()
        );
        return Some(dist);
    }
    let dist = here.join("page/dist");
    let packaged = !here.join("page/src").is_dir() && dist.join("index.html").is_file();
    packaged.then_some(dist)
}

/// Builds the page in a copy, so that nothing is written beside the sources.
fn built(here: &Path, out: &Path) -> Result<PathBuf, String> {
    let (page, copy) = (here.join("page"), out.join("page"));
    let document = here.join("../../docs/openapi.json");
    println!("cargo::rerun-if-changed={}", document.display());
    for source in SOURCES {
        // Cargo looks at a folder's own time only, so every file in it is named; what the build writes itself is not.
        watch(&page, &page.join(source));
    }
    println!("cargo::rerun-if-env-changed=PATH");
    let said = |error: io::Error| error.to_string();
    let _ = fs::remove_dir_all(copy.join("src"));
    for source in SOURCES {
        mirror(&page.join(source), &copy.join(source)).map_err(said)?;
    }
    let _ = fs::remove_file(copy.join(GENERATED));
    let lock = fs::read(page.join("package-lock.json")).map_err(said)?;
    let installed = copy.join("node_modules/.installed");
    if fs::read(&installed).ok().as_deref() != Some(&lock[..]) {
        npm(&copy, &document, &["ci", "--no-audit", "--no-fund", "--loglevel=error"])?;
        fs::write(&installed, &lock).map_err(said)?;
    }
    npm(&copy, &document, &["run", "--silent", "build"])?;
    Ok(copy.join("dist"))
}

fn npm(folder: &Path, document: &Path, arguments: &[&str]) -> Result<(), String> {
    let asked = Command::new("npm").args(arguments).current_dir(folder).env("ADJ_OPENAPI", document).output();
    let output = asked.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "npm is not installed (node 20 or later brings it)".to_owned(),
        _ => error.to_string(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let last: Vec<&str> = text.lines().rev().take(8).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("`npm {}` failed: {}", arguments.join(" "), last.join(" / ")))
}

fn watch(page: &Path, path: &Path) {
    if path == page.join(GENERATED) {
        return;
    }
    println!("cargo::rerun-if-changed={}", path.display());
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        watch(page, &entry.path());
    }
}

/// Copies what is different.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            mirror(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let content = fs::read(from)?;
    if fs::read(to).ok().as_deref() != Some(&content[..]) {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(to, content)?;
    }
    Ok(())
}

/// The files of a built page, by the path that a browser asks for.
fn collect(dist: &Path, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(dist, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(dist) {
            files.insert(format!("/{}", name.to_string_lossy().replace('\\', "/")), path);
        }
    }
    Ok(())
}

/// The list as Rust: each file with the forms in which it is kept compressed.
fn listed(files: &BTreeMap<String, PathBuf>) -> String {
    let mut text = "pub static FILES: &[File] = &[\n".to_owned();
    for (name, path) in files.iter().filter(|(name, _)| !is_compressed(name)) {
        let form = |ending: &str| match files.get(&format!("{name}{ending}")) {
            Some(path) => format!("Some(include_bytes!({path:?}))"),
            None => "None".to_owned(),
        };
        let mut hash = DefaultHasher::new();
        fs::read(path).unwrap_or_default().hash(&mut hash);
        let _ = writeln!(
            text,
            "    File {{ path: {name:?}, plain: include_bytes!({path:?}), brotli: {}, gzip: {}, tag: \"\\\"{:016x}\\\"\" }},",
            form(".br"),
            form(".gz"),
            hash.finish(),
        );
    }
    text.push_str("];\n");
    text
}

fn is_compressed(name: &str) -> bool {
    name.ends_with(".br") || name.ends_with(".gz")
}
