//! The memory store as configured: made, filled from the last run, tidied, observed, saved.
//!
//! With another store behind it, the memory that is kept for the fallback is tidied and observed in
//! the same way.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tollgate_engine::Engine;
use tollgate_rules::{AtBound as ConfiguredAtBound, MemoryConfig as Configured};
use tollgate_store::{
    AtBound, Bound, LoadError, MemoryConfig, MemoryStore, NamedLimit, SystemClock,
};
use tollgate_telemetry::{Metrics, metrics::StoreReadings};

/// Every shard is tidied once in this time: what is idle stays a minute longer at most.
const TIDY_ROUND: Duration = Duration::from_secs(60);

/// Often enough that a turn takes well under a millisecond.
const TIDY_EVERY: Duration = Duration::from_millis(100);

/// The store, and where it is kept between runs.
pub(crate) struct Memory {
    pub(super) store: Arc<MemoryStore>,
    save: Option<PathBuf>,
}

impl Memory {
    /// Makes the store and fills it from the last run. The limits of that run come along, so that
    /// levels are kept even if the numbers have changed since.
    pub(super) fn open(configured: &Configured, clock: SystemClock) -> (Self, Vec<NamedLimit>) {
        let mut store = MemoryStore::new(settings(configured), Arc::new(clock));
        let save = configured.save.clone();
        let saved = save.as_ref().map_or(Ok(Vec::new()), |path| store.load(path));
        let saved = match saved {
            Ok(limits) => limits,
            Err(LoadError::Missing(path)) => {
                tracing::info!(path = %path.display(), "no counters saved yet; all keys start full");
                Vec::new()
            }
            Err(error) => {
                tracing::warn!("all keys start full: {error}");
                Vec::new()
            }
        };
        if !saved.is_empty() {
            tracing::info!(keys = store.stats().keys, "counters of the last run loaded");
        }
        (Self { store: Arc::new(store), save }, saved)
    }

    /// Shows the store on the metrics page.
    pub(super) fn observe(&self, metrics: &Metrics) {
        let store = self.store.clone();
        metrics.read_store(move || readings(&store));
    }

    /// Writes the counters where the next run finds them.
    pub(super) fn save(&self, engine: &Engine) -> Result<()> {
        let Some(path) = &self.save else { return Ok(()) };
        let keys = self.store.save(path, &engine.rules().all_limits());
        let keys = keys.with_context(|| format!("cannot save counters to {}", path.display()))?;
        tracing::info!(keys, path = %path.display(), "counters saved");
        Ok(())
    }
}

/// What a store tells about itself.
pub(super) fn readings(store: &MemoryStore) -> StoreReadings {
    let stats = store.stats();
    let (keys, bytes) = (stats.keys as u64, stats.bytes as u64);
    StoreReadings { keys, bytes, evicted: stats.evicted, refused: stats.refused }
}

/// Drops what is idle, a few shards at a time, for ever.
pub(super) async fn tidy(store: &MemoryStore) {
    let rounds = TIDY_ROUND.as_millis() / TIDY_EVERY.as_millis();
    let shards = store.shard_count();
    let at_a_time = shards.div_ceil(usize::try_from(rounds).unwrap_or(1));
    let mut turns = (0..shards).cycle();
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        for turn in turns.by_ref().take(at_a_time) {
            store.tidy(turn);
        }
    }
}

pub(super) fn settings(configured: &Configured) -> MemoryConfig {
    let most =
        |bound: Option<u64>| usize::try_from(bound.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    MemoryConfig {
        bound: Bound { keys: most(configured.max_keys), bytes: most(configured.max_bytes) },
        at_bound: match configured.at_bound {
            ConfiguredAtBound::Evict => AtBound::Evict,
            ConfiguredAtBound::Refuse => AtBound::Refuse,
        },
    }
}
