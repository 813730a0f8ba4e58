//! Doors: neither machines nor kernel know the command line. What can be done next is a `Choice`, worded elsewhere.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources are there").flatten() {
        let path = entry.path();
        let of_tests = path.components().any(|part| part.as_os_str() == "tests");
        match path.extension() {
            _ if of_tests || path.ends_with("tests.rs") => {}
            None => sources(&path, found),
            Some(extension) if extension == "rs" => found.push(path),
            Some(_) => {}
        }
    }
}

#[test]
fn no_text_of_machines_or_kernel_names_a_command_line() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the sources are there");
    let mut found = Vec::new();
    for name in ["machines", "kernel"] {
        sources(&crates.join(name).join("src"), &mut found);
    }
    assert!(found.len() > 30, "the sources were not found: {found:?}");
    let mut named = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).expect("the sources are there");
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        let naming =
            lines.filter(|(_, line)| ["`adj ", "\"adj ", "`--"].iter().any(|word| line.contains(word)));
        named.extend(naming.map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.trim())));
    }
    assert_eq!(named, Vec::<String>::new());
}
