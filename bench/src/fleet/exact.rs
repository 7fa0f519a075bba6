//! Decisions made in the store: how many a second one node gets, and what they cost Redis.

use std::sync::Arc;

use tollgate_core::Unit;

use super::{
    callers::{Round, at_once},
    node::Node,
    pool::{Numbers, Pool},
    server::Bench,
};
use crate::rounds::{Side, compare as compare_sides, figure};

const KEYS: u64 = 10_000;
/// A quarter of a second or so.
const EACH: u64 = 300;
/// Nothing is refused.
const NUMBERS: Numbers = Numbers { rate: 1_000, per: Unit::Second, burst: 1_000 };

type Row = (&'static str, &'static str, fn(&Round) -> f64);

const ROWS: [Row; 3] = [
    ("redis-exact", "µs/decision", |round| round.micros),
    ("redis-exact-cpu", "µs-redis-cpu/decision", |round| round.redis_cpu_micros),
    ("redis-exact-node-cpu", "µs-node-cpu/decision", |round| round.node_cpu_micros),
];

pub(crate) fn compare() -> anyhow::Result<()> {
    let Some(bench) = Bench::start("redis-exact-pool")? else { return Ok(()) };
    let pool = Arc::new(Pool::open(&bench, NUMBERS)?);
    let node = Arc::new(Node::exact(&bench, NUMBERS)?);
    for (name, unit, of) in ROWS {
        let sides = vec![
            Side::new("tollgate", || Ok(of(&at_once(&bench, &node, KEYS, EACH)?))),
            Side::new("pool", || Ok(of(&at_once(&bench, &pool, KEYS, EACH)?))),
        ];
        compare_sides(name, unit, sides)?;
    }
    figure("redis-exact-batch", "tollgate", node.decisions_per_call(), "decisions/call");
    Ok(())
}
