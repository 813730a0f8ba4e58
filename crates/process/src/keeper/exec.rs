//! The process that a keeper starts and that becomes the program: it gives up everything that the program must not have.
//!
//! It is a process of its own instead of code between fork and exec, where hardly anything is safe.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};

use super::wire::Spec;
use super::{EFFECT_VARIABLE, SPEC, group};
use crate::sandbox;

/// If memory runs out, the system ends one of these before it ends a server.
const OUT_OF_MEMORY_SCORE: &str = "500";

/// The system refuses what is over twice as many as are allowed, and this. Right at the limit a program that is refused
/// one might end before the keeper has seen that it passed the limit, and nobody would know why.
const PROCESSES_MORE: u64 = 64;

/// Becomes the program of the directory's spec, or says in `report`, an open file of ours, why not.
pub fn main(dir: &Path, keeper: i32, report: i32) -> u8 {
    // The same pipe once more, as a file that is closed when we become the program: that is how the keeper knows.
    let Ok(mut told) = File::options().write(true).open(format!("/proc/self/fd/{report}")) else {
        return 127;
    };
    let _ = nix::unistd::close(report);
    let why = match prepare(dir, keeper, &told) {
        Ok(mut command) => {
            let error = command.exec();
            format!("{}: {error}", command.get_program().to_string_lossy())
        }
        Err(why) => why,
    };
    let _ = told.write_all(why.as_bytes());
    127
}

fn prepare(dir: &Path, keeper: i32, told: &File) -> Result<Command, String> {
    // First of all: whatever happens to the keeper from here on happens to us.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("no parent-death signal: {error}"))?;
    if getppid() != Pid::from_raw(keeper) {
        return Err("the keeper died".to_string());
    }
    let path = dir.join(SPEC);
    let spec = std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let spec: Spec =
        serde_json::from_slice(&spec).map_err(|error| format!("{} is damaged: {error}", path.display()))?;
    let mut command = held_to(&spec, Some(told))?;
    command.env(EFFECT_VARIABLE, &spec.effect);
    Ok(command)
}

/// Starts this program anew in this process's place, which then becomes the one of the spec, held to it; `held` stays open
/// in it. Returns why not. The spec goes there in a file without a name: it has the values of variables in it.
pub fn give_way(adj: &Path, spec: &Spec, held: &File) -> std::io::Error {
    let handed_over = || -> std::io::Result<File> {
        let file = sandbox::file_of(&serde_json::to_vec(spec)?)?;
        fcntl(held, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(file)
    };
    match handed_over() {
        Ok(file) => Command::new(adj).args(["internal", "enter", &file.as_raw_fd().to_string()]).exec(),
        Err(error) => error,
    }
}

/// Becomes the program of a spec in the file of ours with this number, for good and without a keeper. Returns why not.
pub fn enter(file: i32) -> String {
    match read_spec(file).and_then(|spec| held_to(&spec, None)) {
        Ok(mut command) => {
            let error = command.exec();
            format!("{}: {error}", command.get_program().to_string_lossy())
        }
        Err(why) => why,
    }
}

fn read_spec(file: i32) -> Result<Spec, String> {
    let spec = std::fs::read(format!("/proc/self/fd/{file}"))
        .map_err(|error| format!("what is to be run cannot be read: {error}"))?;
    let _ = nix::unistd::close(file);
    serde_json::from_slice(&spec).map_err(|error| format!("what is to be run cannot be read: {error}"))
}

/// Becomes the program of a spec in the view that bubblewrap has made: the files of ours with these numbers are the spec,
/// this program, and, where there is one, the pipe to the keeper. `users` is the namespace of users outside. Returns why not.
pub fn inside(file: i32, program: i32, report: Option<i32>, users: &Path) -> u8 {
    let told = report.and_then(|report| {
        let told = File::options().write(true).open(format!("/proc/self/fd/{report}")).ok();
        let _ = nix::unistd::close(report);
        told
    });
    let _ = nix::unistd::close(program);
    let prepared = read_spec(file).and_then(|spec| {
        let wanted = spec.sandbox.as_ref().ok_or("it is to be in no sandbox")?;
        sandbox::hold(wanted.mode, &wanted.rules).map_err(|error| error.to_string())?;
        let mut command = confined(&spec, Some(users))?;
        if told.is_some() {
            command.env(EFFECT_VARIABLE, &spec.effect);
        }
        Ok(command)
    });
    let why = match prepared {
        Ok(mut command) => {
            let error = command.exec();
            format!("{}: {error}", command.get_program().to_string_lossy())
        }
        Err(why) => why,
    };
    match told {
        Some(mut told) => drop(told.write_all(why.as_bytes())),
        None => eprintln!("error: {why}"),
    }
    127
}

/// Holds this process to what the spec says, and gives the program to become; `told` is the pipe to the keeper.
fn held_to(spec: &Spec, told: Option<&File>) -> Result<Command, String> {
    let _ = std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    if let Some(group) = &spec.group {
        // The keeper sees whether we are in it, and watches us itself where we are not.
        let _ = group::join(group);
    }
    limit(Resource::RLIMIT_FSIZE, spec.limits.file_bytes, "file size")?;
    let outside = users();
    if let Some(command) = in_bubblewrap(spec, told, outside.as_deref())? {
        return Ok(command);
    }
    prctl::set_no_new_privs().map_err(|error| format!("new privileges cannot be given up: {error}"))?;
    if let Some(wanted) = &spec.sandbox {
        sandbox::apply(wanted.mode, &wanted.rules).map_err(|error| error.to_string())?;
    }
    confined(spec, outside.as_deref())
}

/// The command that goes on with [`inside`], where the spec's view is bubblewrap's to make.
fn in_bubblewrap(spec: &Spec, told: Option<&File>, users: Option<&Path>) -> Result<Option<Command>, String> {
    let Some(wanted) = spec.sandbox.as_ref().filter(|wanted| wanted.rules.bubblewrap.is_some()) else {
        return Ok(None);
    };
    let failed = |error: std::io::Error| format!("bubblewrap cannot be started: {error}");
    let stays = |file: &File| -> std::io::Result<String> {
        fcntl(file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(file.as_raw_fd().to_string())
    };
    // What is open is there under its number in every view, wherever it lies.
    let program = File::open("/proc/self/exe").map_err(failed)?;
    let file = sandbox::file_of(&serde_json::to_vec(spec).map_err(|error| failed(error.into()))?);
    let file = file.map_err(failed)?;
    let own = stays(&program).map_err(failed)?;
    let report = told.map(stays).transpose().map_err(failed)?.unwrap_or_else(|| "-".to_owned());
    let then = [
        format!("/proc/self/fd/{own}"),
        "internal".to_owned(),
        "inside".to_owned(),
        file.as_raw_fd().to_string(),
        own,
        report,
        users.map(|users| users.display().to_string()).unwrap_or_default(),
    ];
    let command = sandbox::by_bubblewrap(wanted.mode, &wanted.rules, &then.map(OsString::from));
    let command = command.map_err(|error| error.to_string())?;
    if command.is_some() {
        // Open until this process is the other one, whose processes outside are to hear no signal that is for the program.
        std::mem::forget((program, file));
        SigSet::all().thread_set_mask().map_err(|error| failed(error.into()))?;
    }
    Ok(command)
}

/// The rest, once the sandbox stands around this process.
fn confined(spec: &Spec, outside: Option<&Path>) -> Result<Command, String> {
    // The keeper has most signals kept from it, and that goes on to whoever it starts.
    SigSet::empty().thread_set_mask().map_err(|error| format!("signals cannot be let through: {error}"))?;
    if let Some(wanted) = spec.sandbox.as_ref().filter(|wanted| wanted.mode != sandbox::Mode::Off)
        && !sandbox::give_up_powers()
        && wanted.mode == sandbox::Mode::Strict
    {
        return Err("sandbox.mode is \"strict\", and root's capabilities cannot be given up".to_owned());
    }
    // Elsewhere all that its user runs would count, and root is not held to it at all: there the keeper looks.
    if outside != users().as_deref() && counts_by_namespace() {
        let processes =
            spec.limits.processes.map(|most| most.saturating_mul(2).saturating_add(PROCESSES_MORE));
        limit(Resource::RLIMIT_NPROC, processes, "processes")?;
    }
    // Afterwards: there it may be another mount of the same directory.
    std::env::set_current_dir(&spec.cwd)
        .map_err(|error| format!("its directory {} cannot be entered: {error}", spec.cwd.display()))?;
    let (program, arguments) = spec.argv.split_first().ok_or("it names no program")?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&spec.env);
    Ok(command)
}

fn limit(resource: Resource, limit: Option<u64>, what: &str) -> Result<(), String> {
    let Some(limit) = limit else { return Ok(()) };
    let set = getrlimit(resource).and_then(|(_, hard)| {
        // What we are held to ourselves cannot be raised, and is no reason to fail.
        let limit = limit.min(hard);
        setrlimit(resource, limit, limit)
    });
    set.map_err(|error| format!("the limit on {what} cannot be set: {error}"))
}

/// Which namespace of users we are in.
fn users() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/ns/user").ok()
}

/// Whether this kernel counts the processes of a namespace of users by themselves, and not with all of the user's.
fn counts_by_namespace() -> bool {
    let Ok(name) = nix::sys::utsname::uname() else { return false };
    let mut parts =
        name.release().to_str().unwrap_or_default().split('.').map_while(|part| part.parse().ok());
    (parts.next(), parts.next()) >= (Some(5_u32), Some(14_u32))
}
