//! The store's table against the library that would stand in its place.
//!
//! hashbrown behind as many locks, with the same hash, clock and kind of key, and only the bare
//! arithmetic of one bucket: no bounds, no eviction, no other algorithm. So what it is better or
//! worse by is the table's.

use std::hash::{BuildHasherDefault, Hasher};

use parking_lot::Mutex;
use siphasher::sip128::SipHasher13;
use tollgate_core::Clock;
use tollgate_store::SystemClock;

const SHARD_BITS: u32 = 9;
const TOKEN_MICROS: u64 = 1_000_000;
const FULL_MICROS: u64 = 1_000 * TOKEN_MICROS;

type Shard = Mutex<hashbrown::HashMap<u128, (u64, u32), BuildHasherDefault<AsItIs>>>;

/// One bucket a key, in hashbrown.
pub(crate) struct BareTable {
    shards: Vec<Shard>,
    hasher: SipHasher13,
    clock: SystemClock,
}

impl BareTable {
    pub(crate) fn new() -> Self {
        let shards = (0..1 << SHARD_BITS).map(|_| Shard::default()).collect();
        let hasher = SipHasher13::new_with_key(b"any sixteen byte");
        Self { shards, hasher, clock: SystemClock::start() }
    }

    pub(crate) fn allows(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash(key).as_u128();
        let now = self.clock.now().as_micros();
        let shard = usize::try_from(hash >> (128 - SHARD_BITS)).unwrap_or(0);
        let mut shard = self.shards[shard].lock();
        let (full_at, _) = shard.entry(hash).or_default();
        let after = (*full_at).max(now) + TOKEN_MICROS;
        let allowed = after <= now + FULL_MICROS;
        if allowed {
            *full_at = after;
        }
        allowed
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {}

    #[allow(clippy::cast_possible_truncation)]
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
