//! Buffers that one worker's connections share.

use std::cell::RefCell;

/// A head with its cookies fits, and so do most answers.
pub(crate) const BUFFER_SIZE: usize = 16 << 10;

/// What a long body is read in: fewer calls, and still within the second-level cache. Larger ones
/// are not kept, so that one long head does not hold memory for ever.
pub(crate) const BUFFER_SIZE_MAX: usize = 64 << 10;

/// Enough for a burst; beyond it the allocator does as well.
const KEPT_MAX: usize = 256;

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    free: RefCell<Vec<Vec<u8>>>,
}

impl Buffers {
    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.free.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_SIZE))
    }

    /// Takes a buffer back; its content is forgotten.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut free = self.free.borrow_mut();
        if (BUFFER_SIZE..=BUFFER_SIZE_MAX).contains(&buffer.capacity()) && free.len() < KEPT_MAX {
            free.push(buffer);
        }
    }
}
