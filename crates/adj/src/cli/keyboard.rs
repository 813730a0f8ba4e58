//! The keyboard of the terminal that the live view is on.

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io::{self, IsTerminal};
use tokio::sync::mpsc;

/// Keys, as they are pressed. The terminal is as it was when this is dropped.
pub struct Keyboard {
    keys: mpsc::UnboundedReceiver<KeyEvent>,
}

impl Keyboard {
    /// `None` where nobody can press a key: no terminal, or one that is in somebody else's hands.
    pub fn open() -> Option<Keyboard> {
        if !io::stdin().is_terminal() || !in_front() {
            return None;
        }
        enable_raw_mode().ok()?;
        let (sender, keys) = mpsc::unbounded_channel();
        // Reading blocks, and nothing ends it but a key: the thread ends with the process.
        std::thread::spawn(move || {
            while let Ok(read) = event::read() {
                let pressed = |key: &KeyEvent| key.kind != KeyEventKind::Release;
                if let Event::Key(key) = read
                    && pressed(&key)
                    && sender.send(key).is_err()
                {
                    return;
                }
            }
        });
        Some(Keyboard { keys })
    }

    pub async fn next(&mut self) -> Option<KeyEvent> {
        self.keys.recv().await
    }

    /// Hands the terminal back to the shell, until that brings us to the front again.
    pub fn suspend(&self) -> io::Result<()> {
        disable_raw_mode()?;
        // The whole group, as the terminal would: what was started beside us stops too.
        nix::sys::signal::killpg(nix::unistd::getpgrp(), nix::sys::signal::SIGTSTP)?;
        enable_raw_mode()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
    }
}

/// Whether the terminal's keys are for this process, and not for another beside it.
fn in_front() -> bool {
    nix::unistd::tcgetpgrp(io::stdin()).is_ok_and(|group| group == nix::unistd::getpgrp())
}
