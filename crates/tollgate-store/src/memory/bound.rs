//! How much the memory store may hold, and what it reports.

use std::iter::Sum;

use super::table::SLOT_BYTES;

/// What happens when a new key comes to a full store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtBound {
    /// The key closest to full is forgotten: who owes least gains least by it.
    #[default]
    Evict,
    /// The new key is refused.
    Refuse,
}

/// How much fits: whichever is reached first. Shards are bounded each by its share, so that the
/// whole is never exceeded, and is reached to within a few per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Keys at most.
    pub keys: usize,
    /// Bytes at most.
    pub bytes: usize,
}

/// The settings of a memory store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryConfig {
    /// How much fits.
    pub bound: Bound,
    /// What happens beyond it.
    pub at_bound: AtBound,
}

impl Default for MemoryConfig {
    /// Ten million keys are some 300 MB: more than an honest load has, less than a machine.
    fn default() -> Self {
        let bound = Bound { keys: 10_000_000, bytes: usize::MAX };
        Self { bound, at_bound: AtBound::Evict }
    }
}

/// A shard should hold enough that chance spreads keys evenly, and little enough to be moved
/// within microseconds.
const SHARD_KEYS: usize = 2_048;

/// Some thousand locks are far more than any machine has cores: two rarely want the same.
const SHARD_BITS_MAX: u32 = 12;

impl MemoryConfig {
    pub(super) fn shard_bits(&self) -> u32 {
        let keys = self.bound.keys.min(self.bound.bytes / SLOT_BYTES);
        (keys / SHARD_KEYS).max(1).ilog2().min(SHARD_BITS_MAX)
    }

    pub(super) fn per_shard(&self, shard_bits: u32) -> Self {
        let bound =
            Bound { keys: self.bound.keys >> shard_bits, bytes: self.bound.bytes >> shard_bits };
        Self { bound, ..*self }
    }
}

/// What the store holds and what has happened at its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Keys held, idle ones that are not yet swept included.
    pub keys: usize,
    /// Bytes held.
    pub bytes: usize,
    /// Keys forgotten to make room.
    pub evicted: u64,
    /// Requests refused because their key was new.
    pub refused: u64,
}

impl Sum for MemoryStats {
    fn sum<I: Iterator<Item = Self>>(stats: I) -> Self {
        stats.fold(Self::default(), |sum, one| Self {
            keys: sum.keys + one.keys,
            bytes: sum.bytes + one.bytes,
            evicted: sum.evicted + one.evicted,
            refused: sum.refused + one.refused,
        })
    }
}
