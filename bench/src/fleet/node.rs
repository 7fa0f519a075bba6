//! Our side: the store of a node with everything around it, as the program puts it together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use tollgate_core::{Limit, Rate, Unit};
use tollgate_redis::{ErrorKind, Observer, RedisConfig, RedisStore};
use tollgate_store::{
    Charge, Denials, Fallback, Leases, Local, MemoryConfig, MemoryStore, Mirrored, Mode,
    NamedLimit, OnFailure, Share, Store, StoreClock, SystemClock, Take,
};

use super::{callers::Limiter, pool::Numbers, server::Bench};

/// The identifier of the documentation's example.
const POLICY: &str = "550e8400-e29b-41d4-a716-446655440000";
/// As long as the classic scripts keep theirs.
const KEPT: Duration = Duration::from_secs(120);
/// One per cent, as by default.
const LEASED: Mode = Mode::Leased { epsilon_millionths: 10_000 };
/// The time-out of the program would answer pauses of a shared machine by the fallback, which
/// would then be measured instead.
const TIMEOUT: Duration = Duration::from_secs(5);

type Layers = Fallback<Leases<Denials<Mirrored<Arc<RedisStore>>>>>;

/// A node's store and one limit.
pub(super) struct Node {
    store: Layers,
    limit: NamedLimit,
    calls: Arc<Calls>,
}

/// How often Redis was called, and what for.
#[derive(Default)]
struct Calls {
    calls: AtomicU64,
    decisions: AtomicU64,
}

impl Observer for Calls {
    fn round_trip(&self, _: Duration, _: usize, decisions: usize) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.decisions.fetch_add(decisions as u64, Ordering::Relaxed);
    }

    fn failed(&self, _: ErrorKind) {}
}

impl Drop for Node {
    fn drop(&mut self) {
        let alone = self.store.stats().decisions;
        assert_eq!(alone, 0, "decisions that Redis had no part in must not be measured");
    }
}

impl Node {
    /// A token bucket, every decision of which is made in Redis.
    pub(super) fn exact(bench: &Bench, numbers: Numbers) -> anyhow::Result<Self> {
        Self::start(bench, token_bucket(numbers)?, Mode::Exact)
    }

    /// A token bucket in leased mode.
    pub(super) fn leased(bench: &Bench, numbers: Numbers) -> anyhow::Result<Self> {
        Self::start(bench, token_bucket(numbers)?, LEASED)
    }

    /// A strict window in exact mode.
    pub(super) fn strict_window(bench: &Bench, limit: u64, unit: Unit) -> anyhow::Result<Self> {
        Self::start(bench, Limit::sliding_window(Rate::per(limit, unit))?, Mode::Exact)
    }

    fn start(bench: &Bench, limit: Limit, mode: Mode) -> anyhow::Result<Self> {
        let url = bench.url().parse().context("the address of Redis")?;
        let config = RedisConfig { timeout: TIMEOUT, ..RedisConfig::new(url) };
        let calls = Arc::new(Calls::default());
        let redis = RedisStore::start(config, calls.clone())?;
        bench.runtime.block_on(redis.ready());
        let clock = Arc::new(SystemClock::start());
        let time = Arc::new(StoreClock(redis.clone()));
        let memory = MemoryStore::new(MemoryConfig::default(), time);
        let local =
            Arc::new(Local::new(memory, OnFailure::Local(Share::Part { millionths: 500_000 })));
        let mirrored = Mirrored::new(redis, Arc::clone(&local));
        let leases = Leases::new(Denials::new(mirrored, clock.clone()), clock);
        let tended = leases.clone();
        bench.runtime.spawn(async move { tended.tend().await });
        let store = Fallback::new(leases, local, TIMEOUT);
        Ok(Self { store, limit: NamedLimit::new(POLICY, 0, limit).in_mode(mode), calls })
    }

    /// How many decisions shared a call, on average.
    pub(super) fn decisions_per_call(&self) -> f64 {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        of(&self.calls.decisions) / of(&self.calls.calls)
    }

    /// How often Redis was asked for a slice, for each decision made without asking it.
    pub(super) fn draws_per_decision(&self) -> f64 {
        let stats = self.store.inner().stats();
        stats.draws as f64 / stats.decided as f64
    }

    /// The same, with keys that are kept long enough to be looked at afterwards.
    pub(super) fn keeping(mut self) -> Self {
        self.limit = self.limit.clone().kept_for(KEPT);
        self
    }
}

impl Limiter for Node {
    async fn allows(&self, _: usize, key: &[u8]) -> anyhow::Result<bool> {
        let charge = [Charge { limit: &self.limit, key, cost: 1 }];
        Ok(self.store.take(Take::now(&charge)).await?.allowed)
    }
}

/// The same limit in this process's memory.
pub(super) struct InMemory {
    store: MemoryStore,
    limit: NamedLimit,
}

impl InMemory {
    pub(super) fn new(numbers: Numbers) -> anyhow::Result<Self> {
        let store = MemoryStore::new(MemoryConfig::default(), Arc::new(SystemClock::start()));
        Ok(Self { store, limit: NamedLimit::new(POLICY, 0, token_bucket(numbers)?) })
    }
}

impl Limiter for InMemory {
    async fn allows(&self, _: usize, key: &[u8]) -> anyhow::Result<bool> {
        let charge = [Charge { limit: &self.limit, key, cost: 1 }];
        Ok(self.store.take(Take::now(&charge)).await?.allowed)
    }
}

fn token_bucket(numbers: Numbers) -> anyhow::Result<Limit> {
    Ok(Limit::token_bucket(Rate::per(numbers.rate, numbers.per), numbers.burst)?)
}
