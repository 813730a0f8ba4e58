//! Real git, real files, in a folder of its own for each test. The user's git and the agent's git are run as they would
//! run them: with their own settings, hooks on.

mod checkout;
mod crash;
mod hostile;
mod landing;
mod life;
mod publishing;
mod saved;
mod seats;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use machines::names::TaskId;

use super::*;

/// Who commits for an agent.
fn coder() -> Agent {
    let (name, mail) = ("Coder".to_owned(), "coder@localhost".to_owned());
    Agent { name, mail, person: Person::Committer }
}

/// A user's repository with one commit, opened for tasks.
struct Project {
    folder: Folder,
    repository: Repository,
}

impl Project {
    fn new() -> Project {
        Self::with(Isolation::Clone, |_, _| {})
    }

    /// `arrange` gets the folder and the root of a fresh repository before it is opened.
    fn with(isolation: Isolation, arrange: impl FnOnce(&Folder, &Path)) -> Project {
        let folder = Folder::new();
        let root = folder.path.join("project");
        fs::create_dir_all(&root).unwrap();
        folder.git(&root, &["init", "-q", "-b", "main"]);
        write(&root.join("README"), "hello\n");
        write(&root.join("src/one"), "1\n");
        write(&root.join("src/two"), "2\n");
        folder.git(&root, &["add", "-A"]);
        folder.git(&root, &["commit", "-q", "-m", "First"]);
        arrange(&folder, &root);
        let repository = folder.open(&root, isolation);
        Project { folder, repository }
    }

    fn root(&self) -> PathBuf {
        self.repository.places().root.clone()
    }

    fn tree(&self) -> PathBuf {
        self.repository.places().trees.join("A-c1")
    }

    /// The user's git, at the root.
    fn git(&self, arguments: &[&str]) -> String {
        self.folder.git(&self.root(), arguments)
    }

    /// The agent's git, in its tree.
    fn agent(&self, arguments: &[&str]) -> String {
        self.folder.git(&self.tree(), arguments)
    }

    fn prepare(&self) -> Oid {
        self.repository.prepare_tree(&task(), TREE, BRANCH).unwrap()
    }

    fn take_tip(&self) -> Taken {
        self.repository.take_tip(&task(), TREE, BRANCH).unwrap()
    }

    fn leftovers(&self) -> Leftovers {
        self.repository.commit_leftovers(&task(), TREE, BRANCH, "Leftovers", &coder()).unwrap()
    }

    /// A commit of the agent's that writes one file.
    fn agent_commits(&self, path: &str, content: &str) -> Oid {
        write(&self.tree().join(path), content);
        self.agent(&["add", "-A"]);
        self.agent(&["commit", "-q", "-m", path]);
        oid(&self.agent(&["rev-parse", "HEAD"]))
    }

    /// A commit of the user's on whatever is checked out.
    fn user_commits(&self, path: &str, content: &str) -> Oid {
        write(&self.root().join(path), content);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", path]);
        oid(&self.git(&["rev-parse", "HEAD"]))
    }

    /// The merge of the task's work with main now, not yet landed.
    fn merge(&self) -> (Oid, Oid) {
        let tip = self.leftovers().tip;
        let old = self.repository.main_tip().unwrap();
        match self.repository.merge(&old, &tip, "Land c1", &[], 1_700_000_000).unwrap() {
            Merged::Clean { commit, .. } => (commit, old),
            other => panic!("not clean: {other:?}"),
        }
    }

    fn land(&self) -> Moved {
        let (merge, old) = self.merge();
        self.repository.move_main(&merge, &old).unwrap()
    }
}

const TREE: &str = "A-c1";
const BRANCH: &str = "agent/A-c1";

fn task() -> TaskId {
    TaskId::new("c1").unwrap()
}

fn oid(text: &str) -> Oid {
    Oid::new(text.trim()).unwrap_or_else(|| panic!("{text:?} is no object id"))
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A program that a repository can be told to run, and that leaves a trace if it was.
fn write_canary(folder: &Path) -> PathBuf {
    let program = folder.join("canary.sh");
    let trace = folder.join("canary");
    // It behaves like a filter, so that whoever runs it notices nothing.
    write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display()));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// A folder of its own for each test, removed at its end.
struct Folder {
    path: PathBuf,
    /// Absent in a process that a test starts in its own folder.
    _held: Option<testing::Folder>,
}

impl Folder {
    fn new() -> Folder {
        // What is durable is synced many times over.
        let held = testing::Folder::in_memory();
        let path = held.path.clone();
        fs::create_dir_all(path.join("home")).unwrap();
        write(
            &path.join("home/.gitconfig"),
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n",
        );
        Folder { path, _held: Some(held) }
    }

    fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    fn open(&self, root: &Path, isolation: Isolation) -> Repository {
        let places = Places {
            root: root.to_owned(),
            state: root.join(".git/adjutant"),
            trees: root.with_extension("agents"),
            temporary: self.path.join("temporary"),
            main: "main".to_owned(),
            isolation,
        };
        let repository = Repository::open_with(places, Some(&self.home())).unwrap();
        repository.exclude_ours().unwrap();
        repository
    }

    /// Git as a person or an agent runs it; it must succeed.
    fn git(&self, at: &Path, arguments: &[&str]) -> String {
        let output = self.command(at).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn command(&self, at: &Path) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(at);
        command
    }

    /// Nothing that a repository names was run since.
    fn assert_no_canary(&self) {
        let trace = self.path.join("canary");
        assert!(!trace.exists(), "the canary was run: {}", fs::read_to_string(&trace).unwrap());
    }
}

impl Folder {
    /// The traps were set: an ordinary git in that place runs the canary. Without this, none touched would mean nothing.
    fn assert_canary_lives(&self, at: &Path) {
        let _ = self.command(at).args(["commit", "--allow-empty", "-m", "x"]).output().unwrap();
        assert!(self.path.join("canary").exists(), "the traps do not work");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever modes an agent left on its folders.
        let _ = super::trash::delete(&self.path);
    }
}
