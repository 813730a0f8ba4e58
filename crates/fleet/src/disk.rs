//! A full disk: no tree is created if there is little space, and an effect that fails for lack of space waits for some.

use std::fmt::Display;

use kernel::Ask;

use super::{RunError, Shared};
use log::outbox;

/// With less than this there is no room for anything.
const NO_ROOM_BYTES: u64 = 1 << 20;
/// Less than this, and no further tree is made.
const DISK_BYTES_MIN: u64 = 256 << 20;

impl Shared {
    /// What is left of the disk.
    fn free(&self) -> Option<u64> {
        // The log and the trees may be on two. What cannot be looked at is not known to be full; the next write tells.
        let places = [self.layout.git_dir(), &self.repository.places().trees];
        let disks = places.into_iter().filter_map(|place| nix::sys::statvfs::statvfs(place).ok());
        disks.map(|disk| disk.blocks_available() * disk.fragment_size()).min()
    }

    /// There is no room for anything.
    pub fn has_no_room(&self) -> bool {
        self.free().is_some_and(|free| free < NO_ROOM_BYTES)
    }

    /// Waits for room where something failed and there is none: no agent can help that, so it is not held against one.
    /// False: there is room, or the fleet is to stop.
    pub async fn waits_for_room(&self, failed: &(dyn Display + Sync)) -> bool {
        if !self.has_no_room() {
            return false;
        }
        self.notice_once(format!("the disk is full, so this waits for space: {failed}"));
        while self.has_no_room() && !self.is_stopping() {
            tokio::select! {
                () = tokio::time::sleep(outbox::FULL_DISK_LOOK) => {}
                () = self.stopping() => {}
            }
        }
        !self.is_stopping()
    }

    /// No further tree is made where there is no room for one.
    pub(super) async fn look_at_disk(&self) -> Result<(), RunError> {
        let full = self.free().filter(|free| *free < DISK_BYTES_MIN).map(|free| {
            let (left, needed) = (free >> 20, DISK_BYTES_MIN >> 20);
            smol_str::format_smolstr!(
                "{left} MB are free, {needed} MB are needed; `adj clean --trash` frees some"
            )
        });
        if self.world().disk_full != full {
            self.ask(Ask::SeeDisk { full }).await?;
        }
        Ok(())
    }
}
