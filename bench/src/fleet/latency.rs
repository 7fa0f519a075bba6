//! How long a lone decision takes, next to the least that the same client can ask of the same
//! server: a `GET`.

use std::time::Duration;

use anyhow::ensure;
use redis::aio::MultiplexedConnection;
use tollgate_core::Unit;
use tollgate_testkit::{cpu::cpu_time_alone, stopwatch::Stopwatch};

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
    let mut lone = Lone {
        node: Node::exact(&bench, NUMBERS)?,
        connection: bench.connect()?,
        name: Name::default(),
    };
    let (ours, bare) = bench.runtime.block_on(lone.alternating())?;
    for (side, times) in [("tollgate", &ours), ("get", &bare)] {
        figure("redis-latency", side, micros(times, 50), "µs");
        figure("redis-latency-p99", side, micros(times, 99), "µs");
    }
    ratio("redis-latency-get", micros(&bare, 50) / micros(&ours, 50));
    let (ours, bare) = bench.runtime.block_on(lone.node_cpu())?;
    figure("redis-latency-cpu", "tollgate", ours, "µs-node-cpu");
    figure("redis-latency-cpu", "get", bare, "µs-node-cpu");
    Ok(())
}

/// One caller.
struct Lone {
    node: Node,
    connection: MultiplexedConnection,
    name: Name,
}

impl Lone {
    async fn decide(&mut self, number: usize) -> anyhow::Result<()> {
        let key = self.name.of(number as u64 % KEYS);
        ensure!(self.node.allows(0, key).await?, "refused under a limit that is not reached");
        Ok(())
    }

    /// Of a key that is not there: less than this cannot be asked.
    async fn get(&mut self) -> anyhow::Result<()> {
        let found: Option<String> =
            redis::cmd("GET").arg("bare").query_async(&mut self.connection).await?;
        ensure!(found.is_none(), "there is such a key");
        Ok(())
    }

    /// Both in turn, so that whatever happens on the machine meets both alike; sorted.
    async fn alternating(&mut self) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
        let (mut ours, mut bare) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
        for pair in 0..WARM_UP + PAIRS {
            let watch = Stopwatch::start();
            self.decide(pair).await?;
            ours.push(watch.elapsed());
            let watch = Stopwatch::start();
            self.get().await?;
            bare.push(watch.elapsed());
        }
        for times in [&mut ours, &mut bare] {
            times.drain(..WARM_UP);
            times.sort_unstable();
        }
        Ok((ours, bare))
    }

    /// What each costs this process, in microseconds of processor time.
    async fn node_cpu(&mut self) -> anyhow::Result<(f64, f64)> {
        let own = || cpu_time_alone(std::process::id());
        let begin = own()?;
        for number in 0..WARM_UP {
            self.decide(number).await?;
        }
        let between = own()?;
        for _ in 0..WARM_UP {
            self.get().await?;
        }
        let each = |time: Duration| time.as_nanos() as f64 / 1_000.0 / WARM_UP as f64;
        Ok((each(between - begin), each(own()? - between)))
    }
}

fn micros(sorted: &[Duration], percentile: usize) -> f64 {
    sorted[sorted.len() * percentile / 100].as_nanos() as f64 / 1_000.0
}
