//! Decisions made in the store: how many a second one node gets, and what they cost Redis.

use std::sync::Arc;

use tollgate_core::Unit;

use super::{
    callers::at_once,
    node::Node,
    pool::{Numbers, Pool},
    server::Bench,
};
use crate::rounds::{Side, compare as compare_sides};

const KEYS: u64 = 10_000;
/// A quarter of a second or so.
const EACH: u64 = 300;
/// Nothing is refused.
const NUMBERS: Numbers = Numbers { rate: 1_000, per: Unit::Second, burst: 1_000 };

pub(crate) fn compare() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-exact-pool")? else { return Ok(()) };
    let pool = Arc::new(Pool::open(&bench, NUMBERS)?);
    let node = Arc::new(Node::exact(&bench, NUMBERS)?);
    let time = vec![
        Side::new("tollgate", || Ok(at_once(&bench, &node, KEYS, EACH)?.micros)),
        Side::new("pool", || Ok(at_once(&bench, &pool, KEYS, EACH)?.micros)),
    ];
    compare_sides("redis-exact", "µs/decision", time)?;
    let cpu = vec![
        Side::new("tollgate", || Ok(at_once(&bench, &node, KEYS, EACH)?.redis_cpu_micros)),
        Side::new("pool", || Ok(at_once(&bench, &pool, KEYS, EACH)?.redis_cpu_micros)),
    ];
    compare_sides("redis-exact-cpu", "µs-redis-cpu/decision", cpu)
}
