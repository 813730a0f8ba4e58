//! The pure crates stay pure by what they can reach: no dependency of theirs knows a clock, a file or a socket.
#![expect(clippy::disallowed_methods, reason = "the test reads the manifests; the machines read nothing")]

/// Serialization, short strings and persistent maps. A new one is added here with its reason, or not at all.
const PURE: [&str; 5] = ["machines", "serde", "serde_json", "smol_str", "imbl"];

#[test]
fn the_pure_crates_depend_on_nothing_that_touches_the_world() {
    for krate in ["machines", "kernel"] {
        let path = format!("{}/../{krate}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
        let manifest = std::fs::read_to_string(&path).unwrap();
        let section = manifest.split("\n[dependencies]\n").nth(1).expect("a section of dependencies");
        let names = section.lines().take_while(|line| !line.starts_with('['));
        for name in
            names.filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| !name.is_empty())
        {
            assert!(
                PURE.contains(&name),
                "{krate} depends on {name}, which is not in the list of pure crates"
            );
        }
    }
}
