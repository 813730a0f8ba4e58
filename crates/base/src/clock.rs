//! The clock and what the system has of chance: the two things that a decision gets from outside.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the Unix epoch, or since the machine started.
pub type Millis = i64;

/// Now, in milliseconds since the Unix epoch: what the log keeps and people read. Anybody may set this clock at any
/// time, so nothing waits by it.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX).saturating_add(shift())
}

/// Milliseconds that the machine was awake since it started. Nobody sets this clock, and it stands still while the machine
/// sleeps; timers of a running process wait by it, so nothing times out because a lid was shut.
pub fn steady() -> Millis {
    let since = clock_gettime(ClockId::CLOCK_MONOTONIC);
    since.map_or(0, |since| since.tv_sec().saturating_mul(1000).saturating_add(since.tv_nsec() / 1_000_000))
}

/// What both clocks said at one moment, written down for the process that comes next: what the one went on and the other did
/// not is the time that the machine slept.
#[derive(Debug, Default)]
pub struct SleepRecord {
    file: Option<PathBuf>,
    /// Asleep since the process before this one wrote its last reading.
    slept: Millis,
    /// When the last reading was written, by the steady clock.
    written: AtomicI64,
}

/// A reading is not written more often than this.
const READING_EVERY: Millis = 10_000;

impl SleepRecord {
    /// Reads what a process before this one has left in the file. After a reboot nobody knows how long the machine slept.
    pub fn open(file: PathBuf) -> SleepRecord {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let mut words = text.split_whitespace();
        let boot = words.next().map(str::to_owned);
        let number = |words: &mut std::str::SplitWhitespace| words.next()?.parse::<Millis>().ok();
        let slept = boot.filter(|boot| boot_id().as_ref() == Some(boot)).and_then(|_| {
            let (asleep_too, awake) = (number(&mut words)?, number(&mut words)?);
            Some((since_boot() - asleep_too).saturating_sub(steady() - awake).max(0))
        });
        SleepRecord { file: Some(file), slept: slept.unwrap_or(0), written: AtomicI64::new(Millis::MIN) }
    }

    /// How long the machine has slept between the last process and this one.
    pub fn slept(&self) -> Millis {
        self.slept
    }

    /// Writes down what the clocks say, where that is a while ago. A reading that cannot be written costs a process that
    /// starts after a sleep the time that was slept.
    pub fn write(&self) {
        let steady = steady();
        if steady.saturating_sub(self.written.load(Ordering::Relaxed)) < READING_EVERY {
            return;
        }
        if let (Some(file), Some(boot)) = (&self.file, boot_id()) {
            self.written.store(steady, Ordering::Relaxed);
            let fresh = file.with_extension("new");
            let text = format!("{boot} {} {steady}\n", since_boot());
            let _ = std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, file));
        }
    }
}

/// Milliseconds since the machine started, asleep or not. A clock that a person sets has no part in it.
fn since_boot() -> Millis {
    let since = clock_gettime(ClockId::CLOCK_BOOTTIME).or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
    since.map_or(0, |since| since.tv_sec() * 1000 + since.tv_nsec() / 1_000_000)
}

/// Which start of the machine this is.
fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains(char::is_whitespace))
}

/// By how much a test has set our clock: the milliseconds that the file named by `ADJ_CLOCK_SHIFT` holds. Without the
/// variable this is one load and one branch.
fn shift() -> Millis {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| std::env::var_os("ADJ_CLOCK_SHIFT").map(PathBuf::from));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A number that no other command has: time first, so that ids sort by it, then what the system has of chance.
pub fn unique() -> u128 {
    let mut chance = [0; 16];
    getrandom::fill(&mut chance[..10]).expect("the system has random bytes");
    (now() as u128) << 80 | u128::from_le_bytes(chance)
}
