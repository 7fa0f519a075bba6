//! The two limiters in one process, behind the one call that is compared.
//!
//! One token a second and a burst of a thousand: nothing is refused, and no key is full again
//! while it is measured, so that both sides keep every key.

use std::{hash::Hash, num::NonZeroU32, sync::Arc};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tollgate_core::{Limit, Rate, Unit};
use tollgate_store::{Bound, Charge, MemoryConfig, MemoryStore, NamedLimit, SystemClock, Take};

const BURST: u32 = 1_000;

/// Ours: the store as the engine calls it, with the clock of the program.
pub(crate) struct Ours {
    store: MemoryStore,
    limit: NamedLimit,
}

impl Ours {
    /// A store with room for twice `keys`, so that its bound plays no part.
    pub(crate) fn new(keys: usize) -> anyhow::Result<Self> {
        let limit = Limit::token_bucket(Rate::per(1, Unit::Second), u64::from(BURST))?;
        let bound = Bound { keys: keys * 2, bytes: usize::MAX };
        let config = MemoryConfig { bound, ..MemoryConfig::default() };
        let store = MemoryStore::new(config, Arc::new(SystemClock::start()));
        Ok(Self { store, limit: NamedLimit::new("bench", 0, limit) })
    }

    /// How many of these keys are refused, asked in one call as the batch endpoint does.
    pub(crate) fn refused<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> u64 {
        let charges: Vec<_> =
            keys.map(|key| [Charge { limit: &self.limit, key, cost: 1 }]).collect();
        let takes: Vec<_> = charges.iter().map(|charge| Take::now(charge)).collect();
        let mut refused = 0;
        self.store.take_each_now(&takes, |decision| refused += u64::from(!decision.allowed));
        refused
    }

    pub(crate) fn allows(&self, key: &[u8]) -> bool {
        let charge = Charge { limit: &self.limit, key, cost: 1 };
        self.store.take_now(Take::now(&[charge])).allowed
    }
}

/// governor as its documentation starts it: keyed, with its default clock and store.
pub(crate) struct Governor<K: Hash + Eq + Clone>(DefaultKeyedRateLimiter<K>);

impl<K: Hash + Eq + Clone> Governor<K> {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let burst = NonZeroU32::new(BURST).ok_or_else(|| anyhow::anyhow!("no burst"))?;
        Ok(Self(RateLimiter::keyed(Quota::per_second(NonZeroU32::MIN).allow_burst(burst))))
    }

    pub(crate) fn allows(&self, key: &K) -> bool {
        self.0.check_key(key).is_ok()
    }
}
