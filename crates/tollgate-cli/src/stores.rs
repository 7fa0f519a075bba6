//! The store as configured: opened before the first request, kept in shape while the program runs,
//! closed after the last.

mod memory;
mod redis;

use std::sync::Arc;

use anyhow::Result;
use tollgate_engine::Engine;
use tollgate_rules::StoreConfig;
use tollgate_store::{NamedLimit, Store, SystemClock};
use tollgate_telemetry::Metrics;

use self::{memory::Memory, redis::Redis};

/// Whether the store could be opened: reads the files it names, and asks nobody.
pub(crate) fn check(config: &StoreConfig) -> Result<()> {
    match config {
        StoreConfig::Memory(_) => Ok(()),
        StoreConfig::Redis(config) => redis::check(config),
    }
}

/// Where levels are kept, and what there is to do about it.
pub(crate) enum Stores {
    /// In this process.
    Memory(Memory),
    /// In Redis, with this process to fall back on.
    Redis(Redis),
}

/// An open store, and the limits of the last run whose levels it still has.
pub(crate) struct Opened {
    pub(crate) stores: Stores,
    pub(crate) saved: Vec<NamedLimit>,
}

impl Stores {
    /// Opens the store that is asked for. Redis need not be there for that.
    pub(crate) fn open(
        config: &StoreConfig,
        clock: SystemClock,
        metrics: &Metrics,
    ) -> Result<Opened> {
        match config {
            StoreConfig::Memory(config) => {
                let (memory, saved) = Memory::open(config, clock);
                memory.observe(metrics);
                Ok(Opened { stores: Self::Memory(memory), saved })
            }
            // Levels in Redis carry the numbers they were counted under: nothing to take along.
            StoreConfig::Redis(config) => {
                let stores = Self::Redis(Redis::open(config, clock, metrics)?);
                Ok(Opened { stores, saved: Vec::new() })
            }
        }
    }

    /// What the engine asks.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(memory) => memory.store.clone(),
            Self::Redis(redis) => redis.store(),
        }
    }

    /// Waits for what may be there in a moment, so that the first requests already find it.
    pub(crate) async fn settle(&self) {
        if let Self::Redis(redis) = self {
            redis.settle().await;
        }
    }

    /// Keeps the store in shape, for ever.
    pub(crate) async fn tend(&self) {
        match self {
            Self::Memory(memory) => memory::tidy(&memory.store).await,
            Self::Redis(redis) => redis.tend().await,
        }
    }

    /// Brings levels into safety, once no request is left.
    pub(crate) async fn close(&self, engine: &Engine) -> Result<()> {
        match self {
            Self::Memory(memory) => memory.save(engine),
            Self::Redis(redis) => {
                redis.close().await;
                Ok(())
            }
        }
    }
}
