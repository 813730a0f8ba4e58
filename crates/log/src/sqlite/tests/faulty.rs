//! A disk that fails on demand: SQLite's own file system with a few functions in between.
//!
//! Faults are set per thread, so that tests beside each other do not meet.

// A file system for SQLite is a table of C functions; there is no other way to put oneself in between.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, Once};

use rusqlite::ffi::{
    SQLITE_FULL, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE,
    SQLITE_OK, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
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

/// Of what was written since the last sync, any part may be on disk after a power cut.
#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    let states = states();
    for survivors in [Survivors::None, Survivors::All, Survivors::EveryOther, Survivors::AllButTorn] {
        // Each moment is met by one kind of survivors or another: all of each would take too long.
        for cut_at in (survivors as u32..).step_by(4) {
            let folder = Folder::new();
            let disk = Disk::failing(Fault::PowerCut { at: cut_at });
            let acknowledged = steps_until_failure(&folder);
            if !disk.has_failed() {
                assert!(cut_at > 150, "only {cut_at} moments");
                break;
            }
            disk.repair();
            restore(survivors);
            let log = open(&folder).unwrap_or_else(|error| panic!("{error}: cut {cut_at}, {survivors:?}"));
            let found = state(&log).unwrap();
            assert!(
                found == states[acknowledged] || Some(&found) == states.get(acknowledged + 1),
                "not {acknowledged} steps, nor one more: cut {cut_at}, {survivors:?}"
            );
        }
    }
}

/// How many steps were acknowledged before one failed.
fn steps_until_failure(folder: &Folder) -> usize {
    let Ok(mut log) = open(folder) else { return 0 };
    (0..STEPS).take_while(|n| step(&mut log, *n).is_ok()).count()
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
    SqliteLog::open_with(&folder.database(), &Holder::current(), settings)
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Sync {
        at: u32,
        unsynced: Unsynced,
    },
    EverySync,
    Full {
        at: u32,
        torn: bool,
    },
    /// Nothing that is asked of the disk has any effect from then on.
    PowerCut {
        at: u32,
    },
}

/// Which of the writes that were not synced reach the disk in a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Survivors {
    None = 1,
    All,
    EveryOther,
    AllButTorn,
}

/// A file as a power cut sees it: what is surely on disk, and what may be.
#[derive(Clone, Debug, Default)]
struct Image {
    synced: Vec<u8>,
    unsynced: Vec<Operation>,
}

#[derive(Clone, Debug)]
enum Operation {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Image {
    fn sync(&mut self) {
        for operation in std::mem::take(&mut self.unsynced) {
            self.apply(&operation);
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { offset, bytes } => {
                let end = offset + bytes.len();
                self.synced.resize(self.synced.len().max(end), 0);
                self.synced[*offset..end].copy_from_slice(bytes);
            }
            Operation::Truncate { length } => self.synced.truncate(*length),
        }
    }

    fn after_a_power_cut(mut self, survivors: Survivors) -> Vec<u8> {
        let unsynced = std::mem::take(&mut self.unsynced);
        for (number, operation) in unsynced.iter().enumerate() {
            match (survivors, operation) {
                (Survivors::None, _) => {}
                (Survivors::EveryOther, _) if number % 2 == 0 => {}
                (Survivors::AllButTorn, Operation::Write { offset, bytes })
                    if number + 1 == unsynced.len() =>
                {
                    let half = bytes[..bytes.len() / 2].to_vec();
                    self.apply(&Operation::Write { offset: *offset, bytes: half });
                }
                _ => self.apply(operation),
            }
        }
        self.synced
    }
}

/// Puts the files as the power cut left them. The mark is left at its newest, the hardest case: it may be.
fn restore(survivors: Survivors) {
    for (path, image) in IMAGES.take() {
        fs::write(path, image.after_a_power_cut(survivors)).unwrap();
    }
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
        IMAGES.set(BTreeMap::new());
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
    /// The files that are open.
    static PATHS: RefCell<BTreeMap<usize, PathBuf>> = const { RefCell::new(BTreeMap::new()) };
    static IMAGES: RefCell<BTreeMap<PathBuf, Image>> = const { RefCell::new(BTreeMap::new()) };
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
            faulty.xDelete = Some(delete_file);
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
            if !name.is_null() {
                let path = PathBuf::from(CStr::from_ptr(name).to_str().unwrap());
                IMAGES.with_borrow_mut(|images| _ = images.entry(path.clone()).or_default());
                PATHS.with_borrow_mut(|paths| paths.insert(file as usize, path));
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
        methods.xTruncate = Some(truncate_file);
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
    if power_is_out() {
        return SQLITE_IOERR_FSYNC;
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
            // SAFETY: the file is SQLite's own.
            with_image(file, |image| unsafe { take_back(file, image) });
        }
        return SQLITE_IOERR_FSYNC;
    }
    with_image(file, Image::sync);
    // SAFETY: the arguments are SQLite's own.
    unsafe { (original(file).xSync.unwrap())(file, flags) }
}

/// Makes the file what it was when it was last synced.
unsafe fn take_back(file: *mut sqlite3_file, image: &mut Image) {
    image.unsynced.clear();
    let length = image.synced.len();
    // SAFETY: the file is SQLite's own, and the bytes are there for as long as the call lasts.
    unsafe {
        let bytes = image.synced.as_ptr().cast();
        assert_eq!((original(file).xTruncate.unwrap())(file, length as sqlite3_int64), SQLITE_OK);
        assert_eq!((original(file).xWrite.unwrap())(file, bytes, length as c_int, 0), SQLITE_OK);
    }
}

unsafe extern "C" fn write_file(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    if power_is_out() {
        return SQLITE_IOERR_WRITE;
    }
    let full = match FAULT.get() {
        Some(Fault::Full { at, torn }) if counted(at) => Some(torn),
        _ => None,
    };
    let written = match full {
        None => length,
        Some(true) => length / 2,
        Some(false) => 0,
    };
    // SAFETY: SQLite hands over `length` bytes, and `written` is no more.
    let copy = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), written as usize) }.to_vec();
    let operation = Operation::Write { offset: offset as usize, bytes: copy };
    with_image(file, |image| image.unsynced.push(operation));
    // SAFETY: the arguments are SQLite's own, but for a length that may be shorter.
    let code = unsafe { (original(file).xWrite.unwrap())(file, bytes, written, offset) };
    if full.is_some() {
        FAILED.set(true);
        return SQLITE_FULL;
    }
    code
}

unsafe extern "C" fn truncate_file(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    if power_is_out() {
        return SQLITE_IOERR_TRUNCATE;
    }
    let operation = Operation::Truncate { length: length as usize };
    with_image(file, |image| image.unsynced.push(operation));
    // SAFETY: the arguments are SQLite's own.
    unsafe { (original(file).xTruncate.unwrap())(file, length) }
}

unsafe extern "C" fn close_file(file: *mut sqlite3_file) -> c_int {
    FAILED_HANDLES.with_borrow_mut(|failed| failed.remove(&(file as usize)));
    PATHS.with_borrow_mut(|paths| paths.remove(&(file as usize)));
    // SAFETY: the argument is SQLite's own.
    unsafe { (original(file).xClose.unwrap())(file) }
}

unsafe extern "C" fn delete_file(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    if power_is_out() {
        return SQLITE_IOERR_DELETE;
    }
    // SAFETY: the arguments are SQLite's own, and are passed on as they came.
    unsafe {
        let path = PathBuf::from(CStr::from_ptr(name).to_str().unwrap());
        IMAGES.with_borrow_mut(|images| images.remove(&path));
        let default = sqlite3_vfs_find(std::ptr::null());
        ((*default).xDelete.unwrap())(vfs, name, sync)
    }
}

fn with_image(file: *mut sqlite3_file, change: impl FnOnce(&mut Image)) {
    let path = PATHS.with_borrow(|paths| paths.get(&(file as usize)).cloned());
    IMAGES.with_borrow_mut(|images| {
        if let Some(image) = path.and_then(|path| images.get_mut(&path)) {
            change(image);
        }
    });
}

/// Whether this is the call that was meant.
fn counted(at: u32) -> bool {
    COUNT.set(COUNT.get() + 1);
    COUNT.get() == at
}

/// Whether this is the moment of the power cut, or later.
fn power_is_out() -> bool {
    let Some(Fault::PowerCut { at }) = FAULT.get() else { return false };
    counted(at);
    let out = COUNT.get() >= at;
    FAILED.set(FAILED.get() || out);
    out
}
