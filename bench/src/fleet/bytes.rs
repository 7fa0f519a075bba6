//! How much of Redis' memory a key takes, by its own account, in the middle of its use.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use redis::aio::MultiplexedConnection;
use tollgate_core::Unit;

use super::{
    callers::{Limiter, Pace, paced},
    node::Node,
    pool::{Numbers, Pool, WindowLog},
    server::Bench,
};
use crate::rounds::{figure, ratio};

/// Each asked for a little faster than it fills, so that its level is in motion: a full bucket is
/// no key at all.
const BUCKETS: [(&str, Numbers, Pace); 2] = [
    (
        "redis-bytes-token-bucket",
        Numbers { rate: 100, per: Unit::Minute, burst: 100 },
        Pace { keys: 1_000, rate: 5, time: Duration::from_secs(2) },
    ),
    (
        "redis-bytes-token-bucket-per-second",
        Numbers { rate: 10, per: Unit::Second, burst: 20 },
        Pace { keys: 1_000, rate: 15, time: Duration::from_secs(2) },
    ),
];
/// A hundred requests, spread over our window; the limit is a little higher, because a strict
/// window may refuse a few that a log admits. Of the log only the number of entries matters.
const WINDOW_LIMIT: u64 = 120;
const LOG_WINDOW_MILLIS: u64 = 60_000;
const WINDOW_PACE: Pace = Pace { keys: 100, rate: 100, time: Duration::from_secs(1) };

pub(crate) fn compare() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-bytes-hash")? else { return Ok(()) };
    for (name, numbers, pace) in BUCKETS {
        let ours = used(&bench, Node::exact(&bench, numbers)?.keeping(), pace)?;
        let hash = used(&bench, Pool::open(&bench, numbers)?, pace)?;
        report(name, ours, "hash", hash);
    }
    let window = Node::strict_window(&bench, WINDOW_LIMIT, Unit::Second)?.keeping();
    let ours = used(&bench, window, WINDOW_PACE)?;
    let log = used(&bench, WindowLog::open(&bench, WINDOW_LIMIT, LOG_WINDOW_MILLIS)?, WINDOW_PACE)?;
    report("redis-bytes-strict-window", ours, "log", log);
    Ok(())
}

fn report(name: &str, ours: f64, peer: &str, theirs: f64) {
    figure(name, "tollgate", ours, "bytes/key");
    figure(name, peer, theirs, "bytes/key");
    ratio(&format!("{name}-{peer}"), theirs / ours);
}

/// The mean of all keys, which are gone afterwards.
fn used<L: Limiter>(bench: &Bench, limiter: L, pace: Pace) -> anyhow::Result<f64> {
    paced(bench, &Arc::new(limiter), pace)?;
    let connection = bench.connect()?;
    bench.runtime.block_on(mean_usage(connection, pace.keys))
}

async fn mean_usage(mut connection: MultiplexedConnection, keys: u64) -> anyhow::Result<f64> {
    let mut all: Vec<Vec<u8>> =
        redis::cmd("KEYS").arg("ratelimit:*").query_async(&mut connection).await?;
    // What a node notes of itself is no key of a client.
    all.retain(|name| !name.ends_with(b":nodes"));
    ensure!(all.len() as u64 == keys, "{} keys instead of {keys}", all.len());
    let mut sum = 0;
    for name in &all {
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg(name).arg("SAMPLES").arg(0);
        sum += usage.query_async::<u64>(&mut connection).await?;
    }
    redis::cmd("FLUSHALL").exec_async(&mut connection).await?;
    Ok(sum as f64 / keys as f64)
}
