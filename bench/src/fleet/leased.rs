//! Decisions made by slices: what they cost Redis, and how fast a node is with them.
//!
//! What Redis has to do depends on how much a node may hold: epsilon times the limit. So there
//! are two limits, one as a tenant has it, and one that is small for leases.

use std::{sync::Arc, time::Duration};

use tollgate_core::Unit;

use super::{
    callers::{Limiter, Pace, at_once, in_a_row, paced},
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
const PLENTY: Numbers = Numbers { rate: 10_000, per: Unit::Second, burst: 100_000 };
const PLENTY_KEYS: u64 = 10_000;
const PLENTY_DECISIONS: u64 = 2_000_000;
/// Of the pool, a quarter of a second or so.
const EACH: u64 = 300;

pub(crate) fn compare() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-leased-cpu-pool")? else { return Ok(()) };
    redis_cpu(&bench, "redis-leased-cpu", TENANT, TENANT_PACE)?;
    redis_cpu(&bench, "redis-leased-small-cpu", SMALL, SMALL_PACE)?;
    in_process(&bench)
}

fn redis_cpu(bench: &Bench, name: &str, numbers: Numbers, pace: Pace) -> anyhow::Result<()> {
    let node = Arc::new(Node::leased(bench, numbers)?);
    let pool = Arc::new(Pool::open(bench, numbers)?);
    let sides = vec![
        Side::new("tollgate", || Ok(paced(bench, &node, pace)?.redis_cpu_micros)),
        Side::new("pool", || Ok(at_once(bench, &pool, pace.keys, EACH)?.redis_cpu_micros)),
    ];
    compare_sides(name, "µs-redis-cpu/decision", sides)
}

/// Nanoseconds of one core per decision, slices and memory alike asked by the same callers.
fn in_process(bench: &Bench) -> anyhow::Result<()> {
    let node = Arc::new(Node::leased(bench, PLENTY)?);
    let memory = Arc::new(InMemory::new(PLENTY)?);
    let mut sides = [
        Side::new("tollgate", || nanos(bench, &node)),
        Side::new("memory", || nanos(bench, &memory)),
    ];
    let summaries = alternate(&mut sides, ROUNDS)?;
    for (side, summary) in sides.iter().zip(&summaries) {
        figure("redis-leased", &side.name, summary.median, "ns/decision");
        figure("redis-leased-best-round", &side.name, summary.best, "ns/decision");
        figure("redis-leased-rate", &side.name, 1_000.0 / summary.median, "M-decisions/s");
    }
    let [ours, memory] = summaries[..] else { return Ok(()) };
    ratio("redis-leased-memory", memory.median / ours.median);
    Ok(())
}

fn nanos<L: Limiter>(bench: &Bench, limiter: &Arc<L>) -> anyhow::Result<f64> {
    Ok(in_a_row(bench, limiter, PLENTY_KEYS, PLENTY_DECISIONS)?.micros * 1_000.0)
}
