//! The thread that reads the output of agents.
//!
//! Hundreds of agents print a line now and then. Waking up for each line costs more than reading it. So if there is much output,
//! this thread sleeps for a moment and then reads everything at once. If there is little, it reads it immediately.

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
