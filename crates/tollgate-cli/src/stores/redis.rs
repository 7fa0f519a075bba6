//! Redis as the store, with all that stands before it: what the engine asks first is the outermost.
//!
//! ```text
//! Fallback  decides by itself when the rest gives no answer in time
//! Leases    spends what was taken ahead, in policies that allow it
//! Denials   repeats a refusal until the instant it named
//! Mirrored  notes every answer, for the fallback
//! Redis     decides
//! ```

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tollgate_redis::{ErrorKind, Observer, RedisConfig, RedisStore, TlsFiles};
use tollgate_rules::{OnFailure as ConfiguredOnFailure, RedisConfig as Configured};
use tollgate_store::{
    Condition, Denials, Fallback, Leases, Local, MemoryStore, Mirrored, OnFailure, Share, Store,
    StoreClock, SystemClock,
};
use tollgate_telemetry::{
    Metrics,
    metrics::{SharedStoreMetrics, SharedStoreReadings},
};

use super::memory;

/// How long the end may take: slices expire as soon by themselves, and a node that is silent is
/// missed a little later.
const CLOSING_MAX: Duration = Duration::from_secs(1);

type Layers = Leases<Denials<Mirrored<Arc<RedisStore>>>>;

/// The layers of the store.
pub(crate) struct Redis {
    remote: Arc<RedisStore>,
    local: Arc<Local>,
    fallback: Arc<Fallback<Layers>>,
    timeout: Duration,
}

impl Redis {
    /// Builds the layers. The connection is made in the background, and may take as long as it
    /// takes.
    pub(super) fn open(
        configured: &Configured,
        clock: SystemClock,
        metrics: &Metrics,
    ) -> Result<Self> {
        let counted = metrics.shared_store(ErrorKind::ALL.map(ErrorKind::name));
        let observer = Arc::new(Counting(counted));
        let remote = RedisStore::start(settings(configured)?, observer)?;
        let clock = Arc::new(clock);
        let memory = MemoryStore::new(
            memory::settings(&configured.fallback),
            Arc::new(StoreClock(remote.clone())),
        );
        let local = Arc::new(Local::new(memory, on_failure(configured.on_failure, &remote)));
        let mirrored = Mirrored::new(remote.clone(), local.clone());
        let leases = Leases::new(Denials::new(mirrored, clock.clone()), clock);
        let timeout = configured.timeout;
        let fallback = Arc::new(Fallback::new(leases, local.clone(), timeout));
        let redis = Self { remote, local, fallback, timeout };
        redis.observe(metrics);
        Ok(redis)
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.fallback.clone()
    }

    /// Waits for the first connection, no longer than a request would: if Redis is there, the very
    /// first requests are already decided by it.
    pub(super) async fn settle(&self) {
        let mut condition = self.remote.health().watch();
        let known = async {
            tokio::select! {
                () = self.remote.ready() => {}
                _ = condition.wait_for(|condition| *condition != Condition::Up) => {}
            }
        };
        let _ = tokio::time::timeout(self.timeout, known).await;
    }

    /// Says when Redis goes and comes, gives back slices that nobody spends, tidies the memory.
    pub(super) async fn tend(&self) {
        let watching = self.fallback.watch(&self.remote.health(), "Redis");
        let tending = self.fallback.inner().tend();
        let tidying = memory::tidy(self.local.memory());
        tokio::join!(watching, tending, tidying);
    }

    /// Gives back what was taken ahead, and tells the fleet that this node is gone.
    pub(super) async fn close(&self) {
        let closing = async {
            self.fallback.inner().close().await;
            self.remote.leave().await;
        };
        if tokio::time::timeout(CLOSING_MAX, closing).await.is_err() {
            tracing::debug!("Redis was not told in time that this node is gone");
        }
    }

    fn observe(&self, metrics: &Metrics) {
        let memory = self.local.memory().clone();
        metrics.read_store(move || memory::readings(&memory));
        let (remote, fallback) = (self.remote.clone(), self.fallback.clone());
        metrics.read_shared_store(move || readings(&remote, &fallback));
    }
}

fn readings(remote: &RedisStore, fallback: &Fallback<Layers>) -> SharedStoreReadings {
    let (stats, meanwhile) = (remote.stats(), fallback.stats());
    let leases = fallback.inner().stats();
    SharedStoreReadings {
        up: remote.health().is_up(),
        fallback_since: meanwhile.since.map(|since| since.as_micros() / 1_000_000),
        fallback_decisions: meanwhile.decisions,
        slice_decisions: leases.decided,
        denial_cache_hits: fallback.inner().inner().hits(),
        slices: leases.slices as u64,
        slice_tokens: leases.held,
        clock_offset_seconds: Duration::from_micros(stats.clock_offset_micros.unsigned_abs())
            .as_secs_f64()
            .copysign(if stats.clock_offset_micros < 0 { -1.0 } else { 1.0 }),
        fleet_nodes: stats.fleet as u64,
    }
}

/// Whether a store could be begun.
pub(super) fn check(configured: &Configured) -> Result<()> {
    Ok(RedisStore::check(&settings(configured)?)?)
}

/// Reads the configuration as the store wants it.
fn settings(configured: &Configured) -> Result<RedisConfig> {
    let url = configured.url.reveal().parse().context("store.url")?;
    let tollgate_rules::TlsFiles { ca, cert, key } = configured.tls.clone();
    Ok(RedisConfig {
        url,
        prefix: configured.prefix.clone(),
        timeout: configured.timeout,
        tls: TlsFiles { ca, cert, key },
    })
}

fn on_failure(configured: ConfiguredOnFailure, remote: &Arc<RedisStore>) -> OnFailure {
    match configured {
        ConfiguredOnFailure::Local(tollgate_rules::Share::Part { millionths }) => {
            OnFailure::Local(Share::Part { millionths })
        }
        ConfiguredOnFailure::Local(tollgate_rules::Share::Fleet) => {
            let remote = remote.clone();
            OnFailure::Local(Share::Fleet(Arc::new(move || remote.fleet_size())))
        }
        ConfiguredOnFailure::Allow => OnFailure::Allow,
        ConfiguredOnFailure::Deny => OnFailure::Deny,
    }
}

/// Counts what the store does.
struct Counting(Arc<SharedStoreMetrics>);

impl Observer for Counting {
    fn round_trip(&self, took: Duration, requests: usize, decisions: usize) {
        self.0.round_trip(took, requests, decisions);
    }

    fn failed(&self, kind: ErrorKind) {
        self.0.failed(kind.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address as the store reads it, without its password.
    fn read(url: &str) -> String {
        let text = format!("store: {{kind: redis, url: \"{url}\"}}");
        let config = tollgate_rules::read("a.yaml", &text, &|_| None);
        let tollgate_rules::StoreConfig::Redis(redis) =
            config.unwrap_or_else(|mistakes| panic!("{mistakes}")).store
        else {
            panic!("{url} is of another store")
        };
        assert_eq!(settings(&redis).unwrap().url.tls, redis.url.is_tls());
        settings(&redis).unwrap().url.to_string()
    }

    // part of: B1
    #[test]
    fn the_store_takes_every_address_that_the_rules_take() {
        for (url, expected) in [
            ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
            ("redis://[::1]:7000/15", "redis://[::1]:7000/15"),
            ("rediss://me:p%40ss@h:1/", "rediss://h:1"),
            ("redis://:p@s:s@h", "redis://h:6379"),
            ("valkeys://h", "rediss://h:6379"),
            ("redis+sentinel://a,b:1/main/2", "redis+sentinel://a:26379,b:1/main/2"),
            (
                "rediss+sentinel://:x@a/m?sentinel_user=u&sentinel_password=%C3%A9",
                "rediss+sentinel://a:26379/m",
            ),
            ("redis+cluster://a,b:1,[::1]:2", "redis+cluster://a:6379,b:1,[::1]:2"),
            ("redis+cluster://a/0", "redis+cluster://a:6379"),
        ] {
            assert_eq!(read(url), expected, "{url}");
        }
    }
}
