//! Tollgate and its peers on the same work, one after the other, as ratios above 1 where we are
//! better.
//!
//! Each benchmark lets both sides do the same work alternately, pinned alike, for several rounds,
//! and compares medians: what else happens on the machine then hits both. Peers that are not on
//! the machine are reported as skipped. `cargo run --release -- NAME` runs those whose name begins
//! so.

mod allocation;
mod bare_table;
mod check_api;
mod fill;
mod fleet;
mod keyed;
mod limit_cost;
mod limiters;
mod own_time;
mod proxied;
mod proxies;
mod random;
mod refused;
mod rounds;

use std::process::ExitCode;

type Benchmark = (&'static str, fn() -> anyhow::Result<()>);

const BENCHMARKS: &[Benchmark] = &[
    ("keyed-string", keyed::string_keys),
    ("keyed-u64", keyed::u64_keys),
    ("table", keyed::bare_table),
    ("fill", fill::worst_insert),
    ("proxied", proxied::compare),
    ("refused", refused::compare),
    ("check-api", check_api::compare),
    ("limit-cost", limit_cost::measure),
    ("redis-exact", fleet::exact),
    ("redis-leased-cpu", fleet::leased_cpu),
    ("redis-leased-speed", fleet::leased_speed),
    ("redis-latency", fleet::latency),
    ("redis-bytes", fleet::bytes),
];

fn main() -> ExitCode {
    let only = std::env::args().nth(1).unwrap_or_default();
    let mut failed = false;
    for (name, run) in BENCHMARKS.iter().filter(|(name, _)| name.starts_with(&only)) {
        println!("# {name}");
        if let Err(error) = run() {
            println!("failed {name} {error:#}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
