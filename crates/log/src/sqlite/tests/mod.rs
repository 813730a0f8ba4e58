mod crash;
mod damage;
mod faulty;
mod full;
mod script;

use std::fs;

use super::*;
use crate::MemoryLog;
use crate::conformance::{self, Damage, Specimen, commands, entry, everything, numbered};

conformance::conformance!(OnDisk::new());

/// Small numbers, so that effects, streams and attempts meet often; reopened now and then.
#[test]
fn any_course_of_events_is_on_disk_what_it_is_in_memory() {
    for seed in 1..=10 {
        let mut random = Random(seed);
        let folder = Folder::new();
        let mut disk = folder.open();
        let mut memory = MemoryLog::new();
        for now in 0..120 {
            let effect = format!("e{}", random.below(6));
            let fence = conformance::fence(&effect, random.below(4));
            match random.below(9) {
                0 => assert_eq!(disk.lease("r", now, now + 9, 2), memory.lease("r", now, now + 9, 2)),
                1 => assert_eq!(disk.holds(&fence), memory.holds(&fence)),
                2 => assert_eq!(disk.release(&fence), memory.release(&fence)),
                3 => {
                    drop(disk);
                    disk = folder.open();
                }
                _ => {
                    let batch: Vec<_> = (0..random.below(4)).map(|_| random.entry()).collect();
                    assert_eq!(disk.append(&batch), memory.append(&batch), "seed {seed}");
                }
            }
            assert_eq!(script::state(&disk), script::state(&memory), "seed {seed}");
        }
        assert!(memory.head().seq > 20);
    }
}

struct Random(u64);

impl Random {
    /// Marsaglia's xorshift.
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % limit
    }

    fn entry(&mut self) -> Entry {
        let records: Vec<_> = (0..self.below(4)).map(|_| format!("task-{}", self.below(3))).collect();
        let records: Vec<_> = records.iter().map(|stream| (stream.as_str(), "x")).collect();
        let mut entry = entry("c", &records);
        if self.below(2) == 0 {
            entry.expected = vec![("task-1".to_owned(), u64::from(self.below(9)))];
        }
        if self.below(3) == 0 {
            entry.fence = Some(conformance::fence(&format!("e{}", self.below(6)), self.below(3)));
        }
        if self.below(2) == 0 {
            let effect = conformance::effect(&format!("e{}", self.below(6)));
            let due = (self.below(3) == 0).then(|| self.below(120).into());
            entry.effects = vec![crate::NewEffect { due, ..effect }];
        }
        entry.finished = (0..self.below(3)).map(|_| format!("e{}", self.below(6))).collect();
        entry
    }
}

#[test]
fn a_second_owner_is_told_who_holds_the_log() {
    let folder = Folder::new();
    let owner = Holder::current();
    let log = SqliteLog::open(&folder.database(), &owner).unwrap();
    let second = SqliteLog::open(&folder.database(), &owner).map(drop);
    assert_eq!(second, Err(LogError::Held { holder: Some(owner.clone()) }));
    drop(log);
    SqliteLog::open(&folder.database(), &owner).unwrap();
}

#[test]
fn the_lock_of_a_dead_process_is_taken_over() {
    let folder = Folder::new();
    let dead = Holder { pid: u32::MAX, started: 1, ..Holder::current() };
    fs::write(Lock::path(&folder.database()), serde_json::to_string(&dead).unwrap()).unwrap();
    let log = SqliteLog::open(&folder.database(), &Holder::current()).unwrap();
    let recorded = fs::read_to_string(Lock::path(&folder.database())).unwrap();
    assert_eq!(serde_json::from_str::<Holder>(&recorded).unwrap(), Holder::current());
    drop(log);
    assert_eq!(fs::read_to_string(Lock::path(&folder.database())).unwrap(), "");
}

/// Where locks do nothing (some network file systems), a living process is still not robbed.
#[test]
fn a_living_process_that_is_recorded_is_not_robbed() {
    let folder = Folder::new();
    let parent = std::os::unix::process::parent_id();
    let living =
        Holder { pid: parent, started: crate::holder::started(parent).unwrap(), ..Holder::current() };
    fs::write(Lock::path(&folder.database()), serde_json::to_string(&living).unwrap()).unwrap();
    let opened = SqliteLog::open(&folder.database(), &Holder::current()).map(drop);
    assert_eq!(opened, Err(LogError::Held { holder: Some(living.clone()) }));

    // The same pid with another start time is another process.
    let dead = Holder { started: living.started + 1, ..living };
    fs::write(Lock::path(&folder.database()), serde_json::to_string(&dead).unwrap()).unwrap();
    SqliteLog::open(&folder.database(), &Holder::current()).unwrap();
}

#[test]
fn an_owner_whose_lock_was_deleted_cannot_write_over_its_successor() {
    let folder = Folder::new();
    let mut first = folder.open();
    numbered(&mut first, 1..=3);
    fs::remove_file(Lock::path(&folder.database())).unwrap();
    let mut second = folder.open();
    numbered(&mut second, 4..=4);

    let usurped = Err(LogError::Usurped { since: 3 });
    assert_eq!(first.append(&[entry("late", &[("task-1", "x")])]), usurped);
    assert_eq!(first.append(&[entry("late", &[("task-1", "x")])]), usurped);
    numbered(&mut second, 5..=5);
    assert_eq!(commands(&second), ["c1", "c2", "c3", "c4", "c5"]);
}

#[test]
fn a_log_can_be_read_while_another_owns_it() {
    let folder = Folder::new();
    let missing = SqliteLog::open_for_reading(&folder.database()).map(drop);
    assert_eq!(missing, Err(LogError::Missing { path: folder.database(), acknowledged: None }));

    let mut log = folder.open();
    numbered(&mut log, 1..=3);
    let mut reader = SqliteLog::open_for_reading(&folder.database()).unwrap();
    assert_eq!(everything(&reader), everything(&log));
    numbered(&mut log, 4..=5);
    assert_eq!(commands(&reader).len(), 5);
    assert_eq!(reader.head().seq, 3);

    let entry = entry("c6", &[("task-1", "x")]);
    assert_eq!(reader.append(&[entry]), Err(LogError::ReadOnly));
    assert_eq!(reader.lease("runner-1", 0, 1, 1), Err(LogError::ReadOnly));
    drop(log);
    assert_eq!(commands(&reader).len(), 5);
}

/// A slow reader keeps its view, and the owner goes on without it; afterwards the write-ahead log begins anew.
#[test]
fn a_slow_reader_holds_up_nobody() {
    let folder = Folder::new();
    let settings = Settings { checkpoint_pages: 8, ..Settings::default() };
    let mut log = SqliteLog::open_with(&folder.database(), &Holder::current(), settings).unwrap();
    numbered(&mut log, 1..=3);
    let reader = SqliteLog::open_for_reading(&folder.database()).unwrap();
    let mut seen = Vec::new();
    reader
        .scan(0, &mut |record| {
            let written = log.head().seq;
            numbered(&mut log, written + 1..=written + 20);
            seen.push(record.seq);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(seen, [1, 2, 3]);
    let grown = log.pages.load(Ordering::Relaxed);
    numbered(&mut log, 64..=100);
    assert!(log.pages.load(Ordering::Relaxed) < grown);
    assert_eq!(commands(&reader).len(), 100);
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let folder = Folder::new();
    let connection = Connection::open(folder.database()).unwrap();
    connection.execute_batch("CREATE TABLE albums (title TEXT)").unwrap();
    drop(connection);
    let before = fs::read(folder.database()).unwrap();
    let opened = SqliteLog::open(&folder.database(), &Holder::current()).map(drop);
    assert!(matches!(opened, Err(LogError::Foreign { .. })), "{opened:?}");
    assert_eq!(fs::read(folder.database()).unwrap(), before);

    fs::write(folder.database(), "this is not a database, whatever its name says".repeat(100)).unwrap();
    let opened = SqliteLog::open(&folder.database(), &Holder::current()).map(drop);
    assert!(matches!(opened, Err(LogError::Damaged { part: "database", .. })), "{opened:?}");
}

#[test]
fn a_log_of_a_newer_version_is_refused_with_the_version_it_needs() {
    let folder = Folder::new();
    drop(folder.open());
    folder.edit("INSERT INTO migrations VALUES (7, 'from the future')");
    let newer = Err(LogError::Newer { what: "schema", found: 7, known: 1 });
    assert_eq!(SqliteLog::open(&folder.database(), &Holder::current()).map(drop), newer);
    assert_eq!(SqliteLog::open_for_reading(&folder.database()).map(drop), newer);

    folder.edit("DELETE FROM migrations WHERE number = 7; UPDATE meta SET value = '2' WHERE key = 'format'");
    let newer = Err(LogError::Newer { what: "format", found: 2, known: 1 });
    assert_eq!(SqliteLog::open(&folder.database(), &Holder::current()).map(drop), newer);
}

#[test]
fn a_failed_upgrade_leaves_the_file_as_it_was_and_is_redone() {
    const HALF: &str = "CREATE TABLE new_table (n INTEGER); INSERT INTO nowhere VALUES (1);";
    const WHOLE: &str = "CREATE TABLE new_table (n INTEGER);";
    let folder = Folder::new();
    let mut log = folder.open();
    numbered(&mut log, 1..=3);
    drop(log);

    let connection = Connection::open(folder.database()).unwrap();
    let first = || Migration { number: 1, sql: schema::MIGRATIONS[0].sql };
    let broken = [first(), Migration { number: 2, sql: HALF }];
    assert!(schema::migrate(&connection, 1, &broken).is_err());
    assert_eq!(schema::check(&connection, &folder.database(), &broken).unwrap(), 1);

    let repaired = [first(), Migration { number: 2, sql: WHOLE }];
    schema::migrate(&connection, 1, &repaired).unwrap();
    assert_eq!(schema::check(&connection, &folder.database(), &repaired).unwrap(), 2);
    // Nothing is left to do, and a migration that was edited after its release is noticed.
    schema::migrate(&connection, 2, &repaired).unwrap();
    let edited = schema::check(&connection, &folder.database(), &broken);
    assert!(matches!(edited, Err(LogError::Foreign { .. })), "{edited:?}");
    drop(connection);
    let newer = Err(LogError::Newer { what: "schema", found: 2, known: 1 });
    assert_eq!(SqliteLog::open(&folder.database(), &Holder::current()).map(drop), newer);
}

#[test]
fn acknowledged_records_that_are_gone_are_noticed() {
    let folder = Folder::new();
    let mut log = folder.open();
    numbered(&mut log, 1..=3);
    drop(log);
    let older = fs::read(folder.database()).unwrap();
    let mut log = folder.open();
    numbered(&mut log, 4..=5);
    drop(log);

    fs::write(folder.database(), &older).unwrap();
    let lost = Err(LogError::Lost { acknowledged: 5, found: 3 });
    assert_eq!(SqliteLog::open(&folder.database(), &Holder::current()).map(drop), lost);
    assert_eq!(SqliteLog::open_for_reading(&folder.database()).map(drop), lost);

    fs::remove_file(folder.database()).unwrap();
    let missing = LogError::Missing { path: folder.database(), acknowledged: Some(5) };
    assert_eq!(SqliteLog::open(&folder.database(), &Holder::current()).map(drop), Err(missing));

    // Whoever means it removes the mark.
    fs::write(folder.database(), &older).unwrap();
    fs::remove_file(Mark::path(&folder.database())).unwrap();
    assert_eq!(commands(&folder.open()).len(), 3);
}

#[test]
fn the_mark_of_another_log_is_noticed() {
    let (folder, other) = (Folder::new(), Folder::new());
    numbered(&mut folder.open(), 1..=3);
    numbered(&mut other.open(), 1..=3);
    fs::copy(Mark::path(&other.database()), Mark::path(&folder.database())).unwrap();
    let opened = SqliteLog::open(&folder.database(), &Holder::current()).map(drop);
    assert!(matches!(opened, Err(LogError::Foreign { .. })), "{opened:?}");
}

struct OnDisk {
    folder: Folder,
    log: Option<SqliteLog>,
}

impl OnDisk {
    fn new() -> OnDisk {
        let folder = Folder::new();
        let log = Some(folder.open());
        OnDisk { folder, log }
    }
}

impl Specimen for OnDisk {
    fn log(&mut self) -> &mut dyn Log {
        self.log.as_mut().unwrap()
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.log = None;
        self.log = Some(SqliteLog::open(&self.folder.database(), &Holder::current())?);
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> bool {
        self.log = None;
        self.folder.edit(&match damage {
            Damage::EditRecord(seq) => format!("UPDATE records SET data = data || '!' WHERE seq = {seq}"),
            Damage::RemoveRecord(seq) => format!("DELETE FROM records WHERE seq = {seq}"),
            Damage::SwapRecords(a, b) => format!(
                "UPDATE records SET seq = -1 WHERE seq = {a};
                 UPDATE records SET seq = {a} WHERE seq = {b};
                 UPDATE records SET seq = {b} WHERE seq = -1"
            ),
            Damage::EditSnapshot => "UPDATE snapshots SET data = zeroblob(3)
                 WHERE seq = (SELECT max(seq) FROM snapshots)"
                .to_owned(),
            Damage::AlienSnapshot => return self.plant_an_alien_snapshot(),
            Damage::EditEffect => "UPDATE outbox SET data = '{!}'
                 WHERE place = (SELECT min(place) FROM outbox)"
                .to_owned(),
            Damage::RemoveEffect => {
                "DELETE FROM outbox WHERE place = (SELECT max(place) FROM outbox)".to_owned()
            }
        });
        true
    }
}

impl OnDisk {
    fn plant_an_alien_snapshot(&mut self) -> bool {
        let connection = Connection::open(self.folder.database()).unwrap();
        let newest = snapshot_seqs(&connection).unwrap()[0];
        let mut snapshot = read_snapshot(&connection, newest).unwrap().unwrap();
        snapshot.hash = [7; 32];
        write_snapshot(&connection, &snapshot).unwrap();
        true
    }
}

/// A folder of its own for each test, removed at its end.
struct Folder {
    path: PathBuf,
    _held: testing::Folder,
}

impl Folder {
    fn new() -> Folder {
        // Thousands of logs are opened here.
        let held = testing::Folder::in_memory();
        Folder { path: held.path.clone(), _held: held }
    }

    fn database(&self) -> PathBuf {
        self.path.join("log.db")
    }

    fn open(&self) -> SqliteLog {
        SqliteLog::open(&self.database(), &Holder::current()).unwrap()
    }

    /// What someone does with a database shell.
    fn edit(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }
}
