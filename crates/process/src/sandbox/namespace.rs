//! A view of the machine of the program's own: mounts that only it and what it starts can see.
//!
//! Landlock says what may be opened. It does not hold a change of a file's mode, owner or times, and a socket can be
//! connected to wherever its path is known. Here everything is read-only but what may be written, hidden places are
//! empty, and `/dev/shm` is a fresh one that goes with the program. Where it is asked for, `/proc` shows the program's
//! own processes and no others (`first.rs`).
//!
//! Invariants:
//! - the machine's own mounts are never touched: the first thing is a mount namespace, and no mount travels out of it;
//! - what may be written is opened before anything is hidden, so that no mount in between can put something else there;
//! - a view that cannot be made whole is an error. Whether there is one at all was decided before, and said.
//!
//! Root needs no user namespace, and has none where it can do without: in one, files of all other users would be
//! nobody's, and root could not read them.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::view::{Act, EMPTY_BYTES, EMPTY_MODE, SHARED_MEMORY, SHARED_MEMORY_MODE, View, failed};
use super::{Network, Rules, SandboxError, first, resolve};

/// Where an empty file is made that is then put over hidden ones; what is mounted here for that is taken away at once.
const STAGES: &[&str] = &[SHARED_MEMORY, "/tmp", "/run"];

/// Puts this process, which must have one thread, into a view of its own by these rules. Its directory is still the one
/// that it was in; whoever wants another has to enter it anew. With processes of its own it is another process that returns,
/// a grandchild: see [`first`].
pub(super) fn enter(rules: &Rules) -> Result<(), SandboxError> {
    // Looked at before anything moves.
    let view = View::new(rules)?;
    separate(rules)?;
    if rules.processes {
        first::split().map_err(|error| SandboxError::Failed(format!("no processes of its own: {error}")))?;
    }
    let root = Path::new("/");
    let none = None::<&str>;
    // What is unmounted outside goes here too: a disk would stay in use until the program ends. What is mounted outside comes
    // here too, as it is, so this takes Landlock, which lets nobody write there.
    let propagation = if super::version() >= 2 { MsFlags::MS_SLAVE } else { MsFlags::MS_PRIVATE };
    mount(none, root, none, MsFlags::MS_REC | propagation, none)
        .map_err(|error| failed("separate the mount", root, error))?;
    if rules.processes {
        let (proc, at) = (Some("proc"), Path::new("/proc"));
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
        mount(proc, at, proc, flags, none).map_err(|error| failed("mount", at, error))?;
    }
    let mut opened = Vec::new();
    for (path, act) in view.acts.iter().filter(|(_, act)| !act.empties()) {
        let tree = open_tree(path).map_err(|error| failed("open", path, error))?;
        if *act == Act::Show {
            make_read_only(&Mount::Open(&tree), true).map_err(|error| failed("protect", path, error))?;
        }
        opened.push((path, tree));
    }
    let mut instead = Vec::new();
    for (what, at) in &rules.instead {
        instead.push((open_tree(what).map_err(|error| failed("open", what, error))?, resolve(at)?));
    }
    make_read_only(&Mount::At(root), true).map_err(|error| failed("protect", root, error))?;
    let hidden: Vec<&PathBuf> =
        view.acts.iter().filter(|(_, act)| **act == Act::Hide).map(|(path, _)| path).collect();
    let mut empties = empty_files(hidden.iter().filter(|path| !path.is_dir()).count())?.into_iter();
    let mut opened = opened.into_iter();
    for (path, act) in &view.acts {
        let done = match act {
            Act::Hide if path.is_dir() => empty(path),
            // A socket that its program has removed since it was found.
            Act::Hide if path.symlink_metadata().is_err() => Ok(()),
            Act::Hide => empties.next().map_or(Ok(()), |file| put(&file, path)),
            Act::Fresh => {
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                let room = rules.shared_memory_bytes.map(|bytes| format!(",size={bytes}"));
                let options = format!("mode={SHARED_MEMORY_MODE}{}", room.unwrap_or_default());
                mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options.as_str()))
                    .map_err(io::Error::from)
            }
            Act::Show | Act::Write => opened.next().map_or(Ok(()), |(path, tree)| put(&tree, path)),
        };
        done.map_err(|error| failed("arrange", path, error))?;
    }
    for (what, at) in &instead {
        put(what, at).map_err(|error| failed("arrange", at, error))?;
    }
    // Now that all that can be seen inside them is there.
    for path in hidden.into_iter().filter(|path| path.is_dir()) {
        make_read_only(&Mount::At(path), false).map_err(|error| failed("protect", path, error))?;
    }
    Ok(())
}

/// So many empty files that cannot be written, none of them in sight yet.
fn empty_files(count: usize) -> Result<Vec<OwnedFd>, SandboxError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let stage = STAGES.iter().map(Path::new).find(|path| path.is_dir());
    let stage = stage.ok_or_else(|| SandboxError::Failed("there is no /dev/shm, /tmp or /run".to_owned()))?;
    let make = || -> io::Result<Vec<OwnedFd>> {
        empty(stage)?;
        let file = stage.join("empty");
        File::create(&file)?;
        let one = |_| {
            let copy = open_tree(&file)?;
            make_read_only(&Mount::Open(&copy), false)?;
            Ok(copy)
        };
        let made = (0..count).map(one).collect();
        umount2(stage, MntFlags::MNT_DETACH)?;
        made
    };
    make().map_err(|error| failed("use", stage, error))
}

fn empty(path: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = format!("size={EMPTY_BYTES},mode={EMPTY_MODE}");
    Ok(mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options.as_str()))?)
}

/// Mounts what was opened at its path, which is made where it was hidden.
fn put(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        if File::from(tree.try_clone()?).metadata()?.is_dir() {
            std::fs::create_dir_all(path)?;
        } else {
            path.parent().map(std::fs::create_dir_all).transpose()?;
            File::create(path)?;
        }
    }
    move_mount(tree, path)
}

/// In namespaces of our own: of mounts, of the network where there is to be none, and of users where it takes one. One of
/// processes begins with the next that is started.
fn separate(rules: &Rules) -> Result<(), SandboxError> {
    let network = rules.network;
    let mut wanted = CloneFlags::CLONE_NEWNS;
    if network == Network::None {
        wanted |= CloneFlags::CLONE_NEWNET;
    }
    if rules.processes {
        wanted |= CloneFlags::CLONE_NEWPID;
    }
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let refused = |error: Errno| SandboxError::Failed(format!("no namespaces: {error}"));
    if !user.is_root() || unshare(wanted).is_err() {
        unshare(wanted | CloneFlags::CLONE_NEWUSER).map_err(refused)?;
        let write = |name: &str, text: String| {
            let path = Path::new("/proc/self").join(name);
            std::fs::write(&path, text).map_err(|error| failed("write", &path, error))
        };
        // Everybody is who they were before, and nobody else is anybody.
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("{user} {user} 1"))?;
        write("gid_map", format!("{group} {group} 1"))?;
    }
    if network == Network::None {
        loopback().map_err(|error| SandboxError::Failed(format!("no loopback network: {error}")))?;
    }
    Ok(())
}

/// Switches the loopback interface of a new network namespace on.
#[allow(
    unsafe_code,
    reason = "there is no safe way to this call; its memory is a value of ours that outlives it"
)]
fn loopback() -> io::Result<()> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a value of this type.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is read, and is there for as long as the call takes.
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) })?;
    Ok(())
}

fn path_of(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// A copy of what is mounted at a path, with all below it, that is not in sight yet.
#[allow(unsafe_code, reason = "there is no safe way to this call, and it only reads a path of ours")]
fn open_tree(path: &Path) -> io::Result<OwnedFd> {
    let path = path_of(path)?;
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | (libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW) as libc::c_uint;
    // SAFETY: a path that ends in a zero goes in, and a new file of ours comes out.
    unsafe {
        let file = Errno::result(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(file as libc::c_int))
    }
}

#[allow(unsafe_code, reason = "there is no safe way to this call, and it only reads paths of ours")]
fn move_mount(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = path_of(path)?;
    // SAFETY: paths that end in a zero go in, and nothing is written.
    let moved = unsafe {
        let (from, to) = (tree.as_raw_fd(), path.as_ptr());
        let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
        libc::syscall(libc::SYS_move_mount, from, c"".as_ptr(), libc::AT_FDCWD, to, flags)
    };
    Errno::result(moved)?;
    Ok(())
}

/// What is protected: a mount at a path, or one that is not in sight yet.
enum Mount<'a> {
    At(&'a Path),
    Open(&'a OwnedFd),
}

/// As the kernel has it.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

const READ_ONLY: Attributes =
    Attributes { set: libc::MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, namespace: 0 };

fn make_read_only(mount: &Mount, below: bool) -> io::Result<()> {
    let (folder, path, mut flags) = match mount {
        Mount::At(path) => (libc::AT_FDCWD, path_of(path)?, 0),
        Mount::Open(tree) => (tree.as_raw_fd(), CString::default(), libc::AT_EMPTY_PATH),
    };
    if below {
        flags |= libc::AT_RECURSIVE;
    }
    set_attributes(folder, &path, flags)?;
    Ok(())
}

#[allow(unsafe_code, reason = "there is no safe way to this call, and it only reads values of ours")]
fn set_attributes(folder: libc::c_int, path: &CStr, flags: libc::c_int) -> Result<(), Errno> {
    // SAFETY: a path that ends in a zero and a value of the size that is named go in, and nothing is written.
    let set = unsafe {
        let size = std::mem::size_of::<Attributes>();
        libc::syscall(libc::SYS_mount_setattr, folder, path.as_ptr(), flags, &READ_ONLY, size)
    };
    Errno::result(set).map(drop)
}

/// Why this system gives us no namespaces; `None` where it does. It is tried once, in a process that then ends.
pub(super) fn obstacle() -> Option<String> {
    static FOUND: OnceLock<Option<Errno>> = OnceLock::new();
    let error = (*FOUND.get_or_init(|| attempt(small_view).err()))?;
    Some(match error {
        Errno::EPERM | Errno::EACCES => {
            "this system does not let you make them: see kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns, or the rules of the container"
                .to_owned()
        }
        Errno::ENOSPC | Errno::EUSERS => "user.max_user_namespaces does not allow one more".to_owned(),
        Errno::ENOSYS => "this kernel is too old for them (Linux 5.12)".to_owned(),
        Errno::EINVAL => "this kernel was built without them".to_owned(),
        other => other.to_string(),
    })
}

/// Why a program here cannot have processes of its own; `None` where it can.
pub(super) fn obstacle_of_processes() -> Option<String> {
    static FOUND: OnceLock<Option<Errno>> = OnceLock::new();
    let error = (*FOUND.get_or_init(|| attempt(small_processes).err()))?;
    Some(match error {
        Errno::EPERM | Errno::EACCES => {
            "a fresh /proc cannot be mounted, as in containers that cover parts of theirs".to_owned()
        }
        Errno::ENOSPC | Errno::EUSERS => "user.max_pid_namespaces does not allow one more".to_owned(),
        other => other.to_string(),
    })
}

/// Makes something small in a child, which says how that went by its exit code.
#[allow(
    unsafe_code,
    reason = "a child of a process with threads may make system calls, and makes nothing else"
)]
fn attempt(small: fn(bool) -> libc::c_int) -> Result<(), Errno> {
    let is_root = nix::unistd::geteuid().is_root();
    // SAFETY: the child makes system calls with constants of this program, and ends without running anything of ours.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::_exit(small(is_root)) };
    }
    let child = nix::unistd::Pid::from_raw(Errno::result(child)?);
    use nix::sys::wait::{WaitStatus, waitpid};
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, code)) => return Err(Errno::from_raw(code)),
            // Somebody, such as a container's rules, ended it.
            Ok(WaitStatus::Signaled(..)) => return Err(Errno::EPERM),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// All that a view takes, done to nothing that matters; 0, or the error's number.
#[allow(unsafe_code, reason = "see its caller")]
fn small_view(is_root: bool) -> libc::c_int {
    // SAFETY: constants go in, and nothing is written.
    unsafe {
        let namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWNET;
        let separate = || {
            (is_root && libc::unshare(namespaces) == 0)
                || libc::unshare(namespaces | libc::CLONE_NEWUSER) == 0
        };
        let (root, tmpfs) = (c"/".as_ptr(), c"tmpfs".as_ptr());
        let none = std::ptr::null();
        let private = || libc::mount(none, root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0;
        let over = || {
            libc::mount(tmpfs, c"/dev".as_ptr(), tmpfs, 0, none.cast()) == 0
                || libc::mount(tmpfs, c"/proc".as_ptr(), tmpfs, 0, none.cast()) == 0
        };
        if !separate() || !private() || !over() {
            return Errno::last_raw();
        }
        match set_attributes(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE) {
            Ok(()) => 0,
            Err(error) => error as libc::c_int,
        }
    }
}

/// A namespace of processes, and what shows them; 0, or the error's number.
#[allow(unsafe_code, reason = "see its caller")]
fn small_processes(is_root: bool) -> libc::c_int {
    // SAFETY: constants go in, and nothing is written but a number of ours.
    unsafe {
        let namespaces = libc::CLONE_NEWNS | libc::CLONE_NEWPID;
        let separate = || {
            (is_root && libc::unshare(namespaces) == 0)
                || libc::unshare(namespaces | libc::CLONE_NEWUSER) == 0
        };
        let (root, proc) = (c"/".as_ptr(), c"proc".as_ptr());
        let none = std::ptr::null();
        if !separate() || libc::mount(none, root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) != 0 {
            return Errno::last_raw();
        }
        let first = libc::fork();
        if first < 0 {
            return Errno::last_raw();
        }
        if first == 0 {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
            let mounted = libc::mount(proc, c"/proc".as_ptr(), proc, flags, none.cast()) == 0;
            libc::_exit(if mounted { 0 } else { Errno::last_raw() });
        }
        let mut status = 0;
        while libc::waitpid(first, &mut status, 0) < 0 {
            if Errno::last() != Errno::EINTR {
                return Errno::last_raw();
            }
        }
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::EPERM }
    }
}
