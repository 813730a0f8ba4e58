mod batches;
mod conflicts;
mod crash;
mod faults;
mod latest;

use std::sync::mpsc::{Receiver, Sender};

use kernel::command::{Happened, NewTask, Outcome};
use kernel::{Ask, Refusal, Reply};
use machines::names::{EffectId, TaskId, WorkerName};

use super::*;
use crate::MemoryLog;

/// A log that can be looked at while its owner has it, and that fails when it is told to.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Shelved>>);

#[derive(Default)]
struct Shelved {
    log: MemoryLog,
    /// The next append fails so; with `true`, its records are there all the same.
    fails: Option<(LogError, bool)>,
    appends: usize,
}

impl Shelf {
    fn owner(&self) -> Owner {
        self.owner_with(Settings::default())
    }

    fn owner_with(&self, settings: Settings) -> Owner {
        Owner::open_with(Box::new(self.clone()), settings).unwrap()
    }

    fn with<T>(&self, look: impl FnOnce(&mut MemoryLog) -> T) -> T {
        look(&mut self.0.lock().unwrap().log)
    }

    fn fail_next(&self, error: LogError, survives: bool) {
        self.0.lock().unwrap().fails = Some((error, survives));
    }

    fn folded(&self) -> World {
        self.with(|log| Folded::read_all(log, VERSION).unwrap().world)
    }

    fn kinds(&self) -> Vec<String> {
        self.with(|log| log.read(0, usize::MAX).unwrap().into_iter().map(|record| record.kind).collect())
    }
}

impl Log for Shelf {
    fn append(&mut self, batch: &[Entry]) -> Result<Vec<Appended>, LogError> {
        let mut shelved = self.0.lock().unwrap();
        shelved.appends += 1;
        match shelved.fails.take() {
            Some((error, survives)) => {
                if survives {
                    shelved.log.append(batch)?;
                }
                Err(error)
            }
            None => shelved.log.append(batch),
        }
    }

    fn head(&self) -> Head {
        self.with(|log| log.head())
    }

    fn ready(&mut self) -> Result<Head, LogError> {
        self.with(|log| log.ready())
    }

    fn version(&self, stream: &str) -> Result<u64, LogError> {
        self.with(|log| log.version(stream))
    }

    fn scan(
        &self,
        after: Seq,
        visit: &mut dyn FnMut(&Record) -> std::ops::ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.with(|log| log.scan(after, visit))
    }

    fn lease(
        &mut self,
        owner: &str,
        now: Millis,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<Leased>, LogError> {
        self.with(|log| log.lease(owner, now, until, limit))
    }

    fn release(&mut self, fence: &Fence) -> Result<bool, LogError> {
        self.with(|log| log.release(fence))
    }

    fn holds(&self, fence: &Fence) -> Result<bool, LogError> {
        self.with(|log| log.holds(fence))
    }

    fn outbox(&self) -> Result<Vec<Pending>, LogError> {
        self.with(|log| log.outbox())
    }

    fn save_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        self.with(|log| log.save_snapshot(snapshot))
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, LogError> {
        self.with(|log| log.snapshot())
    }
}

fn command(id: u128, ask: Ask) -> Command {
    Command { id, at: 1_000 + id as i64, actor: Actor::Human("ann".into()), token_for: None, key: None, ask }
}

fn add(id: u128) -> Command {
    let id_given = Some(TaskId::new(format!("c-{id}")).unwrap());
    command(id, Ask::AddTask(NewTask { id: id_given, title: format!("task {id}"), ..NewTask::default() }))
}

fn comment(id: u128, task: &str, text: &str) -> Command {
    command(id, Ask::Comment { id: TaskId::new(task).unwrap(), text: text.to_owned() })
}

fn outcome(id: u128, effect: &str, what: Happened) -> Command {
    let outcome = Outcome { effect: EffectId::new(effect).unwrap(), what };
    Command { actor: Actor::System, ..command(id, Ask::Outcome(outcome)) }
}

fn done(answered: Answered) -> Reply {
    match answered {
        Ok(Answer::Done(reply)) => reply,
        other => panic!("not done: {other:?}"),
    }
}

/// Keeps the owner busy, so that what is sent meanwhile is one batch. It goes on when the sender is dropped.
fn busy(handle: &Handle) -> Sender<()> {
    let (go_on, wait) = channel::<()>();
    let (send, reached) = channel();
    let job = move |_: &mut OwnerState| {
        let _ = send.send(());
        let _ = wait.recv();
    };
    handle.shared.queue.push(Job::Do(Box::new(job))).unwrap();
    reached.recv().unwrap();
    go_on
}

fn sent(handle: &Handle, command: Command, fence: Option<Fence>) -> Receiver<Answered> {
    let (send, receive) = channel();
    handle.send(command, fence, move |answered| drop(send.send(answered))).unwrap();
    receive
}

/// A fleet of one with a task, at the moment when its first effect was asked.
fn fleet_at_work(handle: &Handle) -> Leased {
    done(handle.submit(add(1), None));
    done(handle.submit(command(2, Ask::Spawn { name: WorkerName::new("A").ok(), agent: None }), None));
    done(handle.submit(command(3, Ask::StartFleet { workers: 1 }), None));
    let leased = handle.lease("runner", 0, 10, 10).unwrap();
    leased.into_iter().find(|leased| leased.kind == "prepare_tree").expect("a tree is asked for")
}

fn fence(leased: &Leased) -> Option<Fence> {
    Some(Fence { effect: leased.id.clone(), attempt: leased.attempt })
}

#[test]
fn what_is_answered_is_in_the_log_and_the_log_folds_to_the_same_world() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let tree = fleet_at_work(&handle);
    let ready = Happened::TreeReady { tip: "abc".into() };
    done(handle.submit(outcome(4, &tree.id, ready), fence(&tree)));
    done(handle.submit(comment(5, "c-1", "look"), None));
    let refused = handle.submit(comment(6, "c-9", "look"), None);
    assert!(matches!(refused, Ok(Answer::Refused(Refusal { status: 404, .. }))), "{refused:?}");

    assert_eq!(*handle.world(), shelf.folded());
    assert_eq!(handle.world().seq, shelf.with(|log| log.head().seq));
    let outbox: Vec<_> = handle.outbox().unwrap().into_iter().map(|pending| pending.id).collect();
    let effects: Vec<_> = handle.query(|world| world.effects.keys().map(ToString::to_string).collect());
    assert_eq!(sorted(outbox), sorted(effects));

    // What comes next is decided as if there had been no restart.
    drop(owner);
    let owner = shelf.owner();
    assert_eq!(*owner.handle().world(), shelf.folded());
    done(owner.handle().submit(add(7), None));
    assert_eq!(*owner.handle().world(), shelf.folded());
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn all_that_waits_is_written_at_once() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let handle = owner.handle();
    let go_on = busy(&handle);
    let waiting: Vec<_> = (1..=100).map(|id| sent(&handle, add(id), None)).collect();
    // Decided on what the one before it in the batch did.
    let commented = sent(&handle, comment(101, "c-100", "first"), None);
    let refused = sent(&handle, add(100), None);
    drop(go_on);
    for answer in waiting {
        done(answer.recv().unwrap());
    }
    done(commented.recv().unwrap());
    assert!(matches!(refused.recv().unwrap(), Ok(Answer::Refused(Refusal { status: 409, .. }))));
    assert_eq!(shelf.0.lock().unwrap().appends, 1);
    assert_eq!(*handle.world(), shelf.folded());
}

#[test]
fn many_threads_each_get_their_own_answer() {
    let shelf = Shelf::default();
    let owner = Owner::open_with(Box::new(shelf.clone()), Settings { queue_max: 3, ..Settings::default() });
    let owner = owner.unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let handle = owner.handle();
            scope.spawn(move || {
                for n in 0..20 {
                    let id = thread * 1_000 + n;
                    let reply = done(handle.submit(add(id), None));
                    assert_eq!(reply.id.unwrap(), format!("c-{id}"));
                    let there = handle
                        .query(|world| world.tasks.keys().any(|task| task.as_str() == format!("c-{id}")));
                    assert!(there, "whoever was answered sees it");
                }
            });
        }
    });
    assert_eq!(shelf.folded().tasks.len(), 160);
}

#[test]
fn a_new_version_signs_before_it_writes_and_only_then() {
    let shelf = Shelf::default();
    for version in ["1.0.0", "1.0.0", "1.1.0", "1.0.0"] {
        let owner = shelf.owner_with(Settings { version: version.into(), ..Settings::default() });
        let refused = owner.handle().submit(comment(1, "c-99", "nowhere"), None);
        assert!(matches!(refused, Ok(Answer::Refused(_))));
        let id = u128::from(shelf.with(|log| log.head().seq)) + 1;
        done(owner.handle().submit(add(id), None));
    }
    let expected = ["writer_seen", "task_added", "task_added", "writer_seen", "task_added", "task_added"];
    assert_eq!(shelf.kinds(), expected);
}

#[test]
fn a_log_of_a_newer_version_is_refused_with_the_version_that_is_needed() {
    let shelf = Shelf::default();
    done(
        shelf
            .owner_with(Settings { version: "0.9.0".into(), ..Settings::default() })
            .handle()
            .submit(add(1), None),
    );
    let newer = Settings { version: "0.10.0".into(), ..Settings::default() };
    done(shelf.owner_with(newer).handle().submit(add(2), None));
    shelf.with(|log| {
        let record = NewRecord { stream: "task/c-1".into(), kind: "task_dreamt".into(), data: "{}".into() };
        log.append(&[Entry { records: vec![record], ..Entry::default() }]).unwrap();
    });
    let old = Settings { version: "0.9.0".into(), ..Settings::default() };
    let error = Owner::open_with(Box::new(shelf.clone()), old).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 5 of the log needs adjutant 0.10.0 or newer, and this is 0.9.0: \
         events of kind `task_dreamt` are not known to this version"
    );
}

#[test]
fn a_log_that_does_not_fold_is_refused_with_its_first_bad_record() {
    let shelf = Shelf::default();
    done(shelf.owner().handle().submit(add(1), None));
    shelf.with(|log| {
        let data = r#"{"id":"c-9","on":"c-1"}"#.to_owned();
        let record = NewRecord { stream: "task/c-9".into(), kind: "dependency_added".into(), data };
        log.append(&[Entry { records: vec![record], ..Entry::default() }]).unwrap();
    });
    let error = Owner::open(Box::new(shelf)).unwrap_err();
    assert!(matches!(error, OpenError::DoesNotFold { seq: 3, .. }), "{error:?}");
}

#[test]
fn a_snapshot_and_its_tail_are_the_whole_log() {
    let shelf = Shelf::default();
    let settings = Settings { snapshot_every: 10, ..Settings::default() };
    let owner = shelf.owner_with(settings.clone());
    let tree = fleet_at_work(&owner.handle());
    let ready = Happened::TreeReady { tip: "abc".into() };
    done(owner.handle().submit(outcome(4, &tree.id, ready), fence(&tree)));
    let keyed = Command { key: Some("k".into()), ..comment(5, "c-1", "once") };
    done(owner.handle().submit(keyed, None));
    for id in 10..45 {
        done(owner.handle().submit(add(id), None));
    }
    drop(owner);

    let folded = shelf.with(|log| Folded::read(log, VERSION).unwrap());
    assert!(folded.snapshot > 0, "there is a snapshot");
    assert_eq!(folded.world, shelf.folded());

    // A snapshot that cannot be read, or that another version wrote, is as good as none.
    let head = folded.head;
    for data in [b"nonsense".to_vec(), folded.snapshot("9.9.9").unwrap().data, Vec::new()] {
        let snapshot = Snapshot { seq: head.seq, hash: head.hash, data };
        shelf.with(|log| log.save_snapshot(&snapshot).unwrap());
        let again = shelf.with(|log| Folded::read(log, VERSION).unwrap());
        assert_eq!((again.snapshot, &again.world), (0, &folded.world));
    }
    let owner = shelf.owner_with(settings);
    done(owner.handle().submit(add(99), None));
    assert_eq!(*owner.handle().world(), shelf.folded());
}

/// A program of the same version may have had another World: before a task had parts, each of these was absent.
#[test]
fn a_snapshot_of_a_world_of_another_shape_is_passed_over_and_never_half_read() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    done(owner.handle().submit(add(1), None));
    drop(owner);
    let folded = shelf.with(|log| Folded::read_all(log, VERSION).unwrap());
    let whole = folded.snapshot(VERSION).unwrap();

    // A name in MessagePack is its length and its letters, so that another of the same length leaves the rest readable.
    let named = |name: &str| [&[0xa0 | name.len() as u8], name.as_bytes()].concat();
    let renamed = |name: &str| {
        let other = named(&name.chars().rev().collect::<String>());
        let at = whole.data.windows(other.len()).position(|bytes| bytes == named(name));
        let mut data = whole.data.clone();
        data[at.unwrap_or_else(|| panic!("no `{name}` in the snapshot"))..][..other.len()]
            .copy_from_slice(&other);
        data
    };
    let read = |data: Vec<u8>| {
        shelf.with(|log| log.save_snapshot(&Snapshot { data, ..whole.clone() }).unwrap());
        let again = shelf.with(|log| Folded::read(log, VERSION).unwrap());
        assert_eq!(again.world, folded.world);
        again.snapshot
    };
    assert_eq!(read(whole.data.clone()), folded.head.seq, "what this very program wrote is taken");
    let world = ["tasks", "outages", "disk_full", "architect_queue"];
    let parts = ["origin", "work", "gate", "review", "landing"];
    let members = ["status_since", "try_of", "lease", "alone", "approved", "held_up_since"];
    for name in world.iter().chain(&parts).chain(&members) {
        assert_eq!(read(renamed(name)), 0, "`{name}`");
    }
}

#[test]
fn a_long_log_is_folded_by_two_threads_to_the_same_world() {
    let shelf = Shelf::default();
    let owner = shelf.owner();
    let body = "long ".repeat(2_000);
    for id in 1..=400 {
        let new = NewTask { title: "t".into(), body: body.clone(), ..NewTask::default() };
        done(owner.handle().submit(command(id, Ask::AddTask(new)), None));
    }
    assert_eq!(*owner.handle().world(), shelf.folded());
    let bad = NewRecord { stream: "x".into(), kind: "task_edited".into(), data: "{}".into() };
    shelf.with(|log| log.append(&[Entry { records: vec![bad], ..Entry::default() }]).unwrap());
    let error = Owner::open(Box::new(shelf)).unwrap_err();
    assert!(matches!(error, OpenError::Unreadable { seq: 402, .. }), "{error:?}");
}
