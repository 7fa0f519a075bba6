//! How long a lone decision takes, next to the least that the same client can ask of the same
//! server: a `GET`.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tollgate_core::Unit;
use tollgate_testkit::stopwatch::Stopwatch;

use super::{
    callers::{Limiter, Name},
    node::Node,
    pool::Numbers,
    server::Bench,
};
use crate::rounds::{figure, ratio};

const PAIRS: usize = 20_000;
/// Connections, scripts and caches are warm by then.
const WARM_UP: usize = 2_000;
const KEYS: u64 = 1_000;
const NUMBERS: Numbers = Numbers { rate: 1_000, per: Unit::Second, burst: 1_000 };

pub(crate) fn compare() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-latency-get")? else { return Ok(()) };
    let connection = bench.connect()?;
    let node = Node::exact(&bench, NUMBERS)?;
    let (ours, bare) = bench.runtime.block_on(alternating(node, connection))?;
    for (side, times) in [("tollgate", &ours), ("get", &bare)] {
        figure("redis-latency", side, micros(times, 50), "µs");
        figure("redis-latency-p99", side, micros(times, 99), "µs");
    }
    ratio("redis-latency-get", micros(&bare, 50) / micros(&ours, 50));
    Ok(())
}

/// Both in turn, so that whatever happens on the machine meets both alike; sorted.
async fn alternating(
    node: Node,
    mut connection: MultiplexedConnection,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut ours, mut bare) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
    let mut name = Name::default();
    redis::cmd("SET").arg("bare").arg("99.5").exec_async(&mut connection).await?;
    for pair in 0..WARM_UP + PAIRS {
        let key = name.of(pair as u64 % KEYS);
        let watch = Stopwatch::start();
        node.allows(0, key).await?;
        ours.push(watch.elapsed());
        let watch = Stopwatch::start();
        let _: String = redis::cmd("GET").arg("bare").query_async(&mut connection).await?;
        bare.push(watch.elapsed());
    }
    for times in [&mut ours, &mut bare] {
        times.drain(..WARM_UP);
        times.sort_unstable();
    }
    Ok((ours, bare))
}

fn micros(sorted: &[Duration], percentile: usize) -> f64 {
    sorted[sorted.len() * percentile / 100].as_nanos() as f64 / 1_000.0
}
