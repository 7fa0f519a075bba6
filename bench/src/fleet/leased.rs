//! Decisions made by slices: what they cost Redis, and how fast a node is with them.
//!
//! What Redis has to do depends on how much a node may hold: epsilon times the limit. So there
//! are two limits, one as a tenant has it, and one that is small for leases.

use std::{sync::Arc, time::Duration};

use tollgate_core::Unit;

use super::{
    callers::{Limiter, Pace, Rows, at_once, in_a_row, paced},
    node::{InMemory, Node},
    pool::{Numbers, Pool},
    server::Bench,
};
use crate::rounds::{ROUNDS, Side, alternate, compare as compare_sides, figure, ratio};

/// 100,000 a minute, asked for at 85 % of that: 1,416 a second.
const TENANT: Numbers = Numbers { rate: 100_000, per: Unit::Minute, burst: 100_000 };
const TENANT_PACE: Pace = Pace { keys: 20, rate: 1_416, time: Duration::from_secs(1) };
/// 1,000 a second, asked for at 85 % of that. A fleet may hold ten ahead.
const SMALL: Numbers = Numbers { rate: 1_000, per: Unit::Second, burst: 1_000 };
const SMALL_PACE: Pace = Pace { keys: 20, rate: 850, time: Duration::from_millis(500) };
/// Never reached, however fast a node is.
const PLENTY: Numbers = Numbers { rate: 100_000, per: Unit::Second, burst: 100_000 };
const PLENTY_KEYS: u64 = 10_000;
/// A key gets a slice for half a second of what it used, so some of it must have been used. In
/// no order at all, callers who wait for Redis would not come round to the same key in time.
const FIRST: Rows = Rows { keys: PLENTY_KEYS, run: 16, time: Duration::from_secs(3) };
/// Slices go back while the other side has its turn, and have to be drawn again.
const AGAIN: Rows = Rows { keys: PLENTY_KEYS, run: 1, time: Duration::from_secs(2) };
const MEASURED: Rows = Rows { keys: PLENTY_KEYS, run: 1, time: Duration::from_secs(1) };
/// Of the pool, a quarter of a second or so.
const EACH: u64 = 300;

/// Processor time of Redis per decision.
pub(crate) fn compare_cpu() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-leased-cpu-pool")? else { return Ok(()) };
    below_the_limit(&bench, "redis-leased-cpu", TENANT, TENANT_PACE)?;
    below_the_limit(&bench, "redis-leased-cpu-small", SMALL, SMALL_PACE)
}

fn below_the_limit(bench: &Bench, name: &str, numbers: Numbers, pace: Pace) -> anyhow::Result<()> {
    let node = Arc::new(Node::leased(bench, numbers)?);
    // It asks without a pause, about the same few keys.
    let pool = Arc::new(Pool::open(bench, PLENTY)?);
    let sides = vec![
        Side::new("tollgate", || Ok(paced(bench, &node, pace)?.redis_cpu_micros)),
        Side::new("pool", || Ok(at_once(bench, &pool, pace.keys, EACH)?.redis_cpu_micros)),
    ];
    compare_sides(name, "µs-redis-cpu/decision", sides)
}

/// Nanoseconds of one core per decision, slices and memory alike asked by the same callers.
pub(crate) fn compare_speed() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-leased-speed-memory")? else { return Ok(()) };
    let bench = &bench;
    let node = Arc::new(Node::leased(bench, PLENTY)?);
    let memory = Arc::new(InMemory::new(PLENTY)?);
    nanos(bench, &node, FIRST)?;
    let mut sides = [
        Side::new("tollgate", || {
            nanos(bench, &node, AGAIN)?;
            nanos(bench, &node, MEASURED)
        }),
        Side::new("memory", || nanos(bench, &memory, MEASURED)),
    ];
    let summaries = alternate(&mut sides, ROUNDS)?;
    for (side, summary) in sides.iter().zip(&summaries) {
        figure("redis-leased-speed", &side.name, summary.median, "ns/decision");
        figure("redis-leased-speed-best-round", &side.name, summary.best, "ns/decision");
        figure("redis-leased-speed-rate", &side.name, 1_000.0 / summary.median, "M-decisions/s");
    }
    figure("redis-leased-speed-draws", "tollgate", node.draws_per_decision(), "draws/decision");
    let [ours, memory] = summaries[..] else { return Ok(()) };
    ratio("redis-leased-speed-memory", memory.median / ours.median);
    Ok(())
}

fn nanos<L: Limiter>(bench: &Bench, limiter: &Arc<L>, rows: Rows) -> anyhow::Result<f64> {
    Ok(in_a_row(bench, limiter, rows)?.micros * 1_000.0)
}
