//! The memory for answers that clients have not read yet: one budget for the whole process.

use std::sync::{Arc, LazyLock};

use streams::Memory;

static MEMORY: LazyLock<Arc<Memory>> = LazyLock::new(|| Memory::new(ANSWERS_BYTES_MAX));
/// The limit of all unread answers together. The answers of one caller may use half of it.
const ANSWERS_BYTES_MAX: usize = 24 << 20;

/// The budget of this process.
pub fn memory() -> Arc<Memory> {
    MEMORY.clone()
}
