//! A disk that fails on demand: SQLite's own file system with two functions in between.
//!
//! Faults are set per thread, so that tests beside each other do not meet.

// A file system for SQLite is a table of C functions; there is no other way to put oneself in between.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, Once};

use rusqlite::ffi::{
    SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_OK, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
    sqlite3_vfs_find, sqlite3_vfs_register,
};

use super::script::{STEPS, State, state, states, step};
use super::*;

#[test]
fn a_failed_sync_is_not_acknowledged_and_the_file_is_opened_anew() {
    for unsynced in [Unsynced::Kept, Unsynced::Lost] {
        let mut failures = 0;
        for fail_at in 1.. {
            let folder = Folder::new();
            let disk = Disk::failing(Fault::Sync { at: fail_at, unsynced });
            let errors = run_script(&folder);
            assert_eq!(disk.syncs_after_a_failed_one(), 0, "sync {fail_at} failed, {unsynced:?}");
            if !disk.has_failed() {
                break;
            }
            // A checkpoint that fails is nobody's error: what it would have moved is safe where it is.
            let sync_errors = errors.iter().filter(|error| matches!(error, LogError::Sync { .. })).count();
            assert_eq!(sync_errors, errors.len(), "{errors:?}");
            failures += 1;
        }
        assert!(failures > 20, "only {failures} syncs");
    }
}

#[test]
fn a_full_disk_at_any_write_leaves_nothing_half_written() {
    for torn in [false, true] {
        let mut failures = 0;
        for fail_at in 1.. {
            let folder = Folder::new();
            let disk = Disk::failing(Fault::Full { at: fail_at, torn });
            let errors = run_script(&folder);
            if !disk.has_failed() {
                break;
            }
            assert!(errors.iter().all(|error| *error == LogError::Full), "{errors:?}");
            failures += 1;
        }
        assert!(failures > 50, "only {failures} writes");
    }
}

/// As long as the disk fails, so do appends; the log goes on as soon as it works again.
#[test]
fn a_disk_that_keeps_failing_is_retried_with_every_append() {
    let folder = Folder::new();
    let disk = Disk::working();
    let mut log = open(&folder).unwrap();
    numbered(&mut log, 1..=3);
    disk.fail(Fault::EverySync);
    for _ in 0..3 {
        let error = log.append(&[entry("refused", &[("task-1", "x")])]).unwrap_err();
        assert!(matches!(error, LogError::Sync { .. }), "{error:?}");
    }
    disk.repair();
    log.append(&[entry("c4", &[("task-1", "y")])]).unwrap();
    let commands = commands(&log);
    // The first refused batch may have reached the disk all the same: it is there once, or it is not.
    let refused = commands.iter().filter(|command| *command == "refused").count();
    assert!(refused <= 1, "{commands:?}");
    assert_eq!(commands.iter().filter(|command| *command != "refused").count(), 4, "{commands:?}");
    assert_eq!(disk.syncs_after_a_failed_one(), 0);
}

/// Goes through the script, and where a step fails, on from what the log then holds. Returns the failures.
fn run_script(folder: &Folder) -> Vec<LogError> {
    let states = states();
    let mut errors = Vec::new();
    let mut log = loop {
        match open(folder) {
            Ok(log) => break log,
            Err(error) => errors.push(error),
        }
        assert!(errors.len() < 5, "{errors:?}");
    };
    // Until the file was made and turned to a write-ahead log, SQLite takes a failed change back by itself, and syncs
    // that. Nothing has been acknowledged by then.
    VIOLATIONS.set(0);
    let mut done = 0;
    while done < STEPS {
        let result = step(&mut log, done);
        let found = settled_state(&mut log);
        match result {
            Ok(()) => done += 1,
            // Only a failed sync leaves open whether the step was taken. The log itself says.
            Err(LogError::Sync { .. }) if found == states[done + 1] => {
                errors.push(result.unwrap_err());
                done += 1;
            }
            Err(error) => errors.push(error),
        }
        assert_eq!(found, states[done], "after {errors:?}");
        assert!(errors.len() < 5, "{errors:?}");
    }
    drop(log);
    let log = open(folder).unwrap_or_else(|error| panic!("{error} after {errors:?}"));
    assert_eq!(state(&log).unwrap(), states[STEPS], "after {errors:?}");
    errors
}

/// If opening the file anew failed as well, the next thing that is written opens it.
fn settled_state(log: &mut SqliteLog) -> State {
    if log.connection.is_none() {
        log.append(&[]).unwrap();
    }
    state(log).unwrap()
}

fn open(folder: &Folder) -> Result<SqliteLog, LogError> {
    register();
    let settings = Settings { vfs: Some(NAME), checkpoint_pages: 8 };
    SqliteLog::open_with(&folder.database(), &Owner::current(), settings)
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Sync { at: u32, unsynced: Unsynced },
    EverySync,
    Full { at: u32, torn: bool },
}

/// What becomes of bytes that were written to the write-ahead log but whose sync failed.
#[derive(Clone, Copy, Debug)]
enum Unsynced {
    Kept,
    Lost,
}

/// The disk of this thread. It works again when this is dropped.
struct Disk;

impl Disk {
    fn working() -> Disk {
        let disk = Disk;
        disk.repair();
        VIOLATIONS.set(0);
        FAILED.set(false);
        disk
    }

    fn failing(fault: Fault) -> Disk {
        let disk = Disk::working();
        disk.fail(fault);
        disk
    }

    fn fail(&self, fault: Fault) {
        COUNT.set(0);
        FAULT.set(Some(fault));
    }

    fn repair(&self) {
        FAULT.set(None);
    }

    fn has_failed(&self) -> bool {
        FAILED.get()
    }

    fn syncs_after_a_failed_one(&self) -> u32 {
        VIOLATIONS.get()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.repair();
    }
}

const NAME: &str = "adjutant-faulty";
const NAME_FOR_C: &CStr = c"adjutant-faulty";

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    /// Syncs or writes since the fault was set.
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static FAILED: Cell<bool> = const { Cell::new(false) };
    static VIOLATIONS: Cell<u32> = const { Cell::new(0) };
    /// Handles whose sync has failed, until they are closed.
    static FAILED_HANDLES: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
    /// The write-ahead logs that are open, each with what it held when it was last synced.
    static WALS: RefCell<BTreeMap<usize, (PathBuf, Vec<u8>)>> = const { RefCell::new(BTreeMap::new()) };
}

/// SQLite's own functions with ours in their place, and the table they were taken from.
#[repr(C)]
struct Patched {
    methods: sqlite3_io_methods,
    original: *const sqlite3_io_methods,
}

// SAFETY: both tables are only ever read.
unsafe impl Send for Patched {}
// SAFETY: as above.
unsafe impl Sync for Patched {}

fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the default file system lives as long as the process, and so does the leaked copy of its table.
        unsafe {
            let default = sqlite3_vfs_find(std::ptr::null());
            assert!(!default.is_null());
            let mut faulty: sqlite3_vfs = std::ptr::read(default);
            faulty.zName = NAME_FOR_C.as_ptr();
            faulty.pNext = std::ptr::null_mut();
            faulty.xOpen = Some(open_file);
            let faulty = Box::leak(Box::new(faulty));
            assert_eq!(sqlite3_vfs_register(faulty, 0), SQLITE_OK);
        }
    });
}

/// The file is opened as ever; then its table of functions is exchanged for the patched one.
unsafe extern "C" fn open_file(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are SQLite's own, and are passed on as they came.
    unsafe {
        let default = sqlite3_vfs_find(std::ptr::null());
        let code = ((*default).xOpen.unwrap())(vfs, name, file, flags, out_flags);
        if code == SQLITE_OK && !(*file).pMethods.is_null() {
            (*file).pMethods = &raw const patched((*file).pMethods).methods;
            let path = if name.is_null() { "" } else { CStr::from_ptr(name).to_str().unwrap() };
            if path.ends_with("-wal") {
                let held = fs::read(path).unwrap();
                WALS.with_borrow_mut(|wals| wals.insert(file as usize, (PathBuf::from(path), held)));
            }
        }
        code
    }
}

/// SQLite chooses among a few tables; each is patched once.
unsafe fn patched(original: *const sqlite3_io_methods) -> &'static Patched {
    static TABLES: Mutex<BTreeMap<usize, &'static Patched>> = Mutex::new(BTreeMap::new());
    let mut tables = TABLES.lock().unwrap();
    tables.entry(original as usize).or_insert_with(|| {
        // SAFETY: SQLite's tables are constants of the process.
        let mut methods: sqlite3_io_methods = unsafe { std::ptr::read(original) };
        methods.xSync = Some(sync_file);
        methods.xWrite = Some(write_file);
        methods.xClose = Some(close_file);
        Box::leak(Box::new(Patched { methods, original }))
    })
}

unsafe fn original(file: *mut sqlite3_file) -> &'static sqlite3_io_methods {
    // SAFETY: only files whose table is a `Patched` come here, and tables are never freed.
    unsafe { &*(*(*file).pMethods.cast::<Patched>()).original }
}

unsafe extern "C" fn sync_file(file: *mut sqlite3_file, flags: c_int) -> c_int {
    let handle = file as usize;
    if FAILED_HANDLES.with_borrow(|failed| failed.contains(&handle)) {
        VIOLATIONS.set(VIOLATIONS.get() + 1);
    }
    let unsynced = match FAULT.get() {
        Some(Fault::Sync { at, unsynced }) if counted(at) => Some(unsynced),
        Some(Fault::EverySync) => Some(Unsynced::Kept),
        _ => None,
    };
    if let Some(unsynced) = unsynced {
        FAILED.set(true);
        FAILED_HANDLES.with_borrow_mut(|failed| failed.insert(handle));
        if let Unsynced::Lost = unsynced {
            WALS.with_borrow(|wals| {
                wals.get(&handle).iter().for_each(|(path, held)| fs::write(path, held).unwrap());
            });
        }
        return SQLITE_IOERR_FSYNC;
    }
    // SAFETY: the arguments are SQLite's own.
    let code = unsafe { (original(file).xSync.unwrap())(file, flags) };
    WALS.with_borrow_mut(|wals| {
        if let Some((path, held)) = wals.get_mut(&handle) {
            *held = fs::read(path).unwrap();
        }
    });
    code
}

unsafe extern "C" fn write_file(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    if let Some(Fault::Full { at, torn }) = FAULT.get()
        && counted(at)
    {
        FAILED.set(true);
        if torn {
            // SAFETY: the arguments are SQLite's own, with a shorter length.
            unsafe { (original(file).xWrite.unwrap())(file, bytes, length / 2, offset) };
        }
        return SQLITE_FULL;
    }
    // SAFETY: the arguments are SQLite's own.
    unsafe { (original(file).xWrite.unwrap())(file, bytes, length, offset) }
}

unsafe extern "C" fn close_file(file: *mut sqlite3_file) -> c_int {
    FAILED_HANDLES.with_borrow_mut(|failed| failed.remove(&(file as usize)));
    WALS.with_borrow_mut(|wals| wals.remove(&(file as usize)));
    // SAFETY: the argument is SQLite's own.
    unsafe { (original(file).xClose.unwrap())(file) }
}

/// Whether this is the call that was meant.
fn counted(at: u32) -> bool {
    COUNT.set(COUNT.get() + 1);
    COUNT.get() == at
}
