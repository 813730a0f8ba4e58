//! The same view of the machine as `namespace.rs` makes, by a `bwrap` on the PATH: where we are not allowed to make
//! namespaces, it may be, because it is setuid or has a profile of its own (AppArmor).
//!
//! Bubblewrap makes the mounts that it is told and becomes this program again, which sets up Landlock in there and then
//! becomes the agent's. Around that one there are two processes of bubblewrap's, as there are of ours in `first.rs`, with
//! two differences: a program that is ended by a signal ends with 128 and its number, and what it leaves behind ends with
//! it at once. A setuid one gives folders in memory no size: there, `/dev/shm` has room for half of the machine's memory.
//!
//! Invariants:
//! - what becomes of a path is in the one plan, [`View`]: here it is only said in another language;
//! - a `bwrap` that somebody other than root could have written is not used: it would see everything;
//! - paths are no arguments that others see: they go there in a file without a name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::view::{Act, EMPTY_BYTES, EMPTY_MODE, SHARED_MEMORY_MODE, View, failed};
use super::{Network, Rules, SandboxError};

/// The program's name.
const NAME: &str = "bwrap";

/// A `bwrap` that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub path: PathBuf,
    /// Why a program in its view sees the processes of others, if it does.
    pub processes: Option<String>,
}

/// The one that is used, or why there is none. It is looked for and tried once.
pub(super) fn find() -> Result<Found, String> {
    static FOUND: OnceLock<Result<Found, String>> = OnceLock::new();
    FOUND.get_or_init(|| look(&std::env::var_os("PATH").unwrap_or_default())).clone()
}

fn look(searched: &OsStr) -> Result<Found, String> {
    let there: Vec<PathBuf> = std::env::split_paths(searched)
        .filter(|folder| folder.is_absolute())
        .filter_map(|folder| folder.join(NAME).canonicalize().ok())
        .collect();
    let path = there.iter().find(|path| is_roots(path)).cloned().ok_or_else(|| match there.first() {
        Some(path) => format!("{} is not root's alone to write", path.display()),
        None => format!("there is no {NAME} on the PATH"),
    })?;
    match attempt(&path, true) {
        Ok(()) => Ok(Found { path, processes: None }),
        Err(why) => attempt(&path, false).map(|()| Found { path, processes: Some(why) }),
    }
}

/// Whether nobody but root could have written it.
fn is_roots(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.uid() == 0 && found.permissions().mode() & 0o022 == 0)
}

/// Whether it becomes root when we start it.
fn is_setuid(path: &Path) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    !is_root && path.metadata().is_ok_and(|found| found.permissions().mode() & 0o4000 != 0)
}

/// Makes a small view in which it says its own version.
fn attempt(path: &Path, processes: bool) -> Result<(), String> {
    let mut command = Command::new(path);
    command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--unshare-net", "--die-with-parent"]);
    if processes {
        command.args(["--unshare-pid", "--proc", "/proc"]);
    }
    command.arg("--").arg(path).arg("--version").stdin(Stdio::null()).env_clear();
    let ran = command.output().map_err(|error| format!("{}: {error}", path.display()))?;
    let said = String::from_utf8_lossy(&ran.stderr).trim().replace('\n', "; ");
    if ran.status.success() { Ok(()) } else { Err(said) }
}

/// The command by which this process becomes one in a view by these rules, and `then` is run in it. `rules` names the program.
pub(super) fn command(rules: &Rules, path: &Path, then: &[OsString]) -> Result<Command, SandboxError> {
    let view = View::new(rules)?;
    let handed = |error: io::Error| failed("hand arguments to", path, error);
    let mut empties = Vec::new();
    let arguments = arguments(rules, &view, !is_setuid(path), &mut || {
        let null = inherited(File::open("/dev/null")?.into())?;
        let number = null.as_raw_fd();
        empties.push(null);
        Ok(number)
    })
    .map_err(handed)?;
    let mut list = Vec::new();
    for argument in &arguments {
        list.extend_from_slice(argument.as_bytes());
        list.push(0);
    }
    let list = file_of(&list).map_err(handed)?;
    let mut command = Command::new(path);
    command.args(["--args", &list.as_raw_fd().to_string(), "--"]).args(then).env_clear();
    // Open until this process is the other one.
    std::mem::forget((list, empties));
    Ok(command)
}

/// A file without a name that holds this and stays open in what this process becomes.
pub fn file_of(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("adj", MFdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

fn inherited(file: OwnedFd) -> io::Result<OwnedFd> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(file)
}

/// The plan in bubblewrap's words. `sizes`: it takes the size of a folder in memory. `empty` gives the number of an open file
/// that holds nothing.
fn arguments(
    rules: &Rules,
    view: &View,
    sizes: bool,
    empty: &mut dyn FnMut() -> io::Result<i32>,
) -> io::Result<Vec<OsString>> {
    let mut said = Said(Vec::new());
    said.say(["--die-with-parent", "--chdir", "/"]);
    if rules.network == Network::None {
        said.say(["--unshare-net"]);
    }
    // Devices of its own: those that every program may use, and no others.
    said.say(["--ro-bind", "/", "/", "--dev", "/dev"]);
    if rules.processes {
        said.say(["--unshare-pid", "--proc", "/proc", "--remount-ro", "/proc"]);
    }
    for (path, act) in &view.acts {
        let is_device = path.starts_with("/dev");
        match act {
            Act::Hide if is_device => {}
            Act::Hide if path.is_dir() => {
                said.say(["--perms", EMPTY_MODE]);
                if sizes {
                    said.say(["--size", &EMPTY_BYTES.to_string()]);
                }
                said.say(["--tmpfs"]).at(path);
            }
            // A socket that its program has removed since it was found.
            Act::Hide if path.symlink_metadata().is_err() => {}
            Act::Hide => {
                said.say(["--perms", "444", "--ro-bind-data", &empty()?.to_string()]).at(path);
            }
            Act::Fresh => {
                said.say(["--perms", SHARED_MEMORY_MODE]);
                if let Some(bytes) = rules.shared_memory_bytes.filter(|_| sizes) {
                    said.say(["--size", &bytes.to_string()]);
                }
                said.say(["--tmpfs"]).at(path);
            }
            Act::Show | Act::Write if is_device => drop(said.say(["--dev-bind"]).at(path).at(path)),
            Act::Show => drop(said.say(["--ro-bind"]).at(path).at(path)),
            Act::Write => drop(said.say(["--bind"]).at(path).at(path)),
        }
    }
    for (what, at) in &rules.instead {
        let at = super::resolve(at).map_err(io::Error::other)?;
        said.say(["--bind"]).at(what).at(&at);
    }
    // Now that all that can be seen inside them is there.
    for (path, _) in view.acts.iter().filter(|(path, act)| **act == Act::Hide && path.is_dir()) {
        if !path.starts_with("/dev") {
            said.say(["--remount-ro"]).at(path);
        }
    }
    Ok(said.0)
}

/// What was said so far.
struct Said(Vec<OsString>);

impl Said {
    fn say<const COUNT: usize>(&mut self, words: [&str; COUNT]) -> &mut Said {
        self.0.extend(words.into_iter().map(OsString::from));
        self
    }

    fn at(&mut self, path: &Path) -> &mut Said {
        self.0.push(path.as_os_str().to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Folder;

    #[test]
    fn the_plan_is_said_parents_first_and_what_is_hidden_is_closed_last() {
        let dir = Folder::new();
        let root = dir.path.canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["state/objects", "trees/mine", "trees/other"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("key"), "secret").unwrap();
        let rules = Rules {
            read_write: vec![at("trees/mine")],
            read_only: vec![at("state/objects")],
            hidden: vec![at("state"), at("trees"), at("key")],
            processes: true,
            network: Network::None,
            shared_memory_bytes: Some(4096),
            ..Rules::default()
        };
        let said = arguments(&rules, &View::new(&rules).unwrap(), true, &mut || Ok(9)).unwrap();
        let said: Vec<String> = said.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let expected = "--die-with-parent --chdir / --unshare-net --ro-bind / / --dev /dev --unshare-pid --proc /proc \
             --remount-ro /proc --perms 1777 --size 4096 --tmpfs /dev/shm --perms 444 --ro-bind-data 9 R/key \
             --perms 755 --size 1048576 --tmpfs R/state --ro-bind R/state/objects R/state/objects \
             --perms 755 --size 1048576 --tmpfs R/trees --bind R/trees/mine R/trees/mine --remount-ro R/state --remount-ro R/trees";
        assert_eq!(said.join(" "), expected.replace("R/", &format!("{}/", root.display())));
    }

    #[test]
    fn what_others_could_have_written_is_not_used() {
        let dir = Folder::new();
        let program = dir.path.join(NAME);
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).unwrap();
        let why = look(dir.path.as_os_str()).unwrap_err();
        assert!(why.contains("is not root's alone to write"), "{why}");
        assert_eq!(look(OsStr::new("relative")).unwrap_err(), "there is no bwrap on the PATH");
    }
}
