//! The thread on which agents are listened to.
//!
//! Hundreds of agents print a line now and then. To wake up for each of them costs more than to read it, so where much
//! comes in, this thread rests for a moment and then hears all of it at once. Where little comes in, it hears it at once.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Who has nothing left to do this soon after waking up is woken up too often.
const BUSY: Duration = Duration::from_millis(1);
/// How long is waited then. An agent that asks something waits no longer than this for being heard.
const REST: Duration = Duration::from_millis(3);

thread_local! {
    static WOKEN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Ends when it is dropped, with all that runs on it.
pub struct Listener {
    handle: Handle,
    _lives: oneshot::Sender<()>,
}

impl Listener {
    pub fn start() -> std::io::Result<Listener> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .on_thread_unpark(|| WOKEN.set(Some(Instant::now())))
            .on_thread_park(|| {
                if WOKEN.get().is_some_and(|woken| woken.elapsed() < BUSY) {
                    std::thread::sleep(REST);
                }
            })
            .build()?;
        let handle = runtime.handle().clone();
        let (lives, over) = oneshot::channel::<()>();
        std::thread::Builder::new().name("listener".to_owned()).spawn(move || {
            // The other half is only ever dropped.
            let _ = runtime.block_on(over);
            // What blocks there still is no reason to wait.
            runtime.shutdown_background();
        })?;
        Ok(Listener { handle, _lives: lives })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}
