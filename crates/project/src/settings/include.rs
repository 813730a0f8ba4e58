//! Which content of `.worktreeinclude` is in force. The file gives files of the user to agents, so content from
//! an agent's branch is in force only after a person trusted it; until then the previous content is.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::layout::Layout;
use base::files::write_whole;
use git::names::INCLUDE_FILE;

/// More than this of the file is not read.
const INCLUDE_BYTES_MAX: u64 = 64 * 1024;

/// What people are told of a file that they have not trusted.
pub const UNTRUSTED: &str = ".worktreeinclude came in with an agent's branch and is not in force: check it, then `adj config trust`; until then trees get the previous files";

/// The patterns in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    pub text: String,
    /// False: the file has content that no person has trusted, and these are the patterns of before.
    pub trusted: bool,
}

fn kept(layout: &Layout) -> PathBuf {
    layout.state().join("trusted.worktreeinclude")
}

fn list(layout: &Layout) -> PathBuf {
    layout.state().join("distrusted.worktreeinclude")
}

fn distrusted(layout: &Layout) -> Vec<String> {
    let text = std::fs::read_to_string(list(layout)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn digest(text: &str) -> String {
    base::hex::hex(&Sha256::digest(text.as_bytes()))
}

/// The patterns that hold now.
pub fn in_force(layout: &Layout) -> Include {
    let text = include_file(layout.root());
    // Without a pattern nothing is handed out, whoever wrote that.
    if text.trim().is_empty() || !distrusted(layout).contains(&digest(&text)) {
        return Include { text, trusted: true };
    }
    Include { text: std::fs::read_to_string(kept(layout)).unwrap_or_default(), trusted: false }
}

/// This content comes with an agent's branch. When it returns, it is not in force, whenever it arrives in the checkout.
pub fn arrives(layout: &Layout, content: &[u8]) -> io::Result<()> {
    let (mut known, coming) = (distrusted(layout), digest(&String::from_utf8_lossy(content)));
    if known.contains(&coming) {
        return Ok(());
    }
    let now = in_force(layout);
    if now.trusted {
        write_whole(&kept(layout), now.text.as_bytes())?;
    }
    known.push(coming);
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())
}

/// A person trusts the file as it is now.
pub fn trust(layout: &Layout) -> io::Result<()> {
    let text = include_file(layout.root());
    let (content, known) = (digest(&text), distrusted(layout));
    if !known.contains(&content) {
        return Ok(());
    }
    write_whole(&kept(layout), text.as_bytes())?;
    let known: Vec<_> = known.into_iter().filter(|known| *known != content).collect();
    write_whole(&list(layout), format!("{}\n", known.join("\n")).as_bytes())
}

/// The patterns of the file as it is, or nothing where it is not a plain file of a sensible size.
pub fn include_file(root: &Path) -> String {
    let path = root.join(INCLUDE_FILE);
    if !path.symlink_metadata().is_ok_and(|it| it.is_file() && it.len() <= INCLUDE_BYTES_MAX) {
        return String::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(INCLUDE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

#[cfg(test)]
mod test {
    use super::*;
    use testing::Folder;

    #[test]
    fn content_of_an_agents_branch_holds_only_once_it_is_trusted() {
        let project = Folder::new();
        std::fs::create_dir_all(project.path.join(".git/adjutant")).unwrap();
        let layout = Layout::new(&project.path);
        let holds = |text: &str, trusted: bool| {
            assert_eq!(in_force(&layout), Include { text: text.to_owned(), trusted });
        };
        holds("", true);
        project.write(".worktreeinclude", "mine\n");
        arrives(&layout, b"theirs\n").unwrap();
        holds("mine\n", true);
        project.write(".worktreeinclude", "theirs\n");
        holds("mine\n", false);
        // One more that comes before anybody looked does not make the first one the content of before.
        arrives(&layout, b"more\n").unwrap();
        project.write(".worktreeinclude", "more\n");
        holds("mine\n", false);
        trust(&layout).unwrap();
        holds("more\n", true);
        project.write(".worktreeinclude", "theirs\n");
        holds("more\n", false);
        project.write(".worktreeinclude", "by hand\n");
        holds("by hand\n", true);
        project.write(".worktreeinclude", "\n");
        holds("\n", true);
    }
}
