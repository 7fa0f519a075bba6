//! Those who ask: many at once, each with one request in flight, or at a given rate.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use tokio::{task::JoinSet, time::Instant};
use tollgate_testkit::cpu::cpu_time_alone;

use super::server::Bench;
use crate::{own_time::own_time, random::Random};

/// As many as connections in the benchmarks of the gateway.
pub(super) const CALLERS: usize = 64;

/// Where a node is to be busy although each of them waits for Redis at first: so many requests
/// are under way in a node that takes a million a second, a few milliseconds each.
const CROWD: usize = 2_048;

/// What is asked.
pub(super) trait Limiter: Send + Sync + 'static {
    /// Whether this key may pass; `caller` says who asks.
    fn allows(
        &self,
        caller: usize,
        key: &[u8],
    ) -> impl Future<Output = anyhow::Result<bool>> + Send;
}

/// Who is counted: an address, written anew for every request, as a front end does.
pub(super) struct Name([u8; 15]);

impl Default for Name {
    fn default() -> Self {
        Self(*b"192.168.100.100")
    }
}

impl Name {
    /// The address with this number, below 24,336.
    pub(super) fn of(&mut self, number: u64) -> &[u8] {
        self.write(8, 100 + number / 156);
        self.write(12, 100 + number % 156);
        &self.0
    }

    fn write(&mut self, at: usize, number: u64) {
        for (place, unit) in [100, 10, 1].into_iter().enumerate() {
            self.0[at + place] = b'0' + u8::try_from(number / unit % 10).unwrap_or(0);
        }
    }
}

/// What a round cost.
pub(super) struct Round {
    /// From the first question to the last answer, per decision, without the time in which other
    /// programs had the core.
    pub(super) micros: f64,
    /// Processor time of Redis, per decision.
    pub(super) redis_cpu_micros: f64,
    /// Processor time of this process, per decision.
    pub(super) node_cpu_micros: f64,
}

/// What a caller got.
#[derive(Default, Clone, Copy)]
struct Tally {
    asked: u64,
    refused: u64,
}

impl Tally {
    fn note(&mut self, allowed: bool) {
        self.asked += 1;
        self.refused += u64::from(!allowed);
    }
}

/// Lets all callers ask `each` times about random ones of `keys`.
pub(super) fn at_once<L: Limiter>(
    bench: &Bench,
    limiter: &Arc<L>,
    keys: u64,
    each: u64,
) -> anyhow::Result<Round> {
    measured(bench, CALLERS, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let mut random = Random::new(caller as u64 + 1);
            let (mut name, mut tally) = (Name::default(), Tally::default());
            for _ in 0..each {
                let key = name.of(random.below(keys));
                tally.note(limiter.allows(caller, key).await?);
            }
            Ok(tally)
        }
    })
}

/// What is asked as fast as one core can.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) keys: u64,
    /// How often a key is asked about before the next one: 1 for no order at all.
    pub(super) run: u64,
    pub(super) time: Duration,
}

/// Lets the callers ask as fast as one core can, and give others a turn now and then as somebody
/// does who reads many requests from one socket. For so long, and not so often: whoever waits for
/// Redis too much would take for ever.
pub(super) fn in_a_row<L: Limiter>(
    bench: &Bench,
    limiter: &Arc<L>,
    rows: Rows,
) -> anyhow::Result<Round> {
    const ROW: u64 = 16;
    measured(bench, CROWD, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let mut random = Random::new(caller as u64 + 1);
            let (mut name, mut tally) = (Name::default(), Tally::default());
            let begin = Instant::now();
            while begin.elapsed() < rows.time {
                for _ in 0..ROW / rows.run {
                    let key = name.of(random.below(rows.keys));
                    for _ in 0..rows.run {
                        tally.note(limiter.allows(caller, key).await?);
                    }
                }
                tokio::task::yield_now().await;
            }
            Ok(tally)
        }
    })
}

/// How fast, about what, and how long.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Keys that are asked about.
    pub(super) keys: u64,
    /// How often a second, each.
    pub(super) rate: u64,
    /// How long.
    pub(super) time: Duration,
}

/// Lets the callers together ask at this pace, about the keys in turn.
pub(super) fn paced<L: Limiter>(
    bench: &Bench,
    limiter: &Arc<L>,
    pace: Pace,
) -> anyhow::Result<Round> {
    let all = u64::try_from(pace.time.as_micros())? * pace.rate * pace.keys / 1_000_000;
    let each = all / CALLERS as u64;
    measured(bench, CALLERS, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let (mut name, mut tally) = (Name::default(), Tally::default());
            let begin = Instant::now();
            for turn in 0..each {
                let number = turn * CALLERS as u64 + caller as u64;
                // Timers tick in milliseconds: what is due is asked in a row.
                let due = Duration::from_micros(number * 1_000_000 / (pace.rate * pace.keys));
                if begin.elapsed() < due {
                    tokio::time::sleep_until(begin + due).await;
                }
                let key = name.of(number % pace.keys);
                tally.note(limiter.allows(caller, key).await?);
            }
            Ok(tally)
        }
    })
}

fn measured<F: Future<Output = anyhow::Result<Tally>> + Send + 'static>(
    bench: &Bench,
    callers: usize,
    caller: impl Fn(usize) -> F,
) -> anyhow::Result<Round> {
    let own = || cpu_time_alone(std::process::id());
    let (cpu_before, own_before) = (bench.cpu_time()?, own()?);
    let mut tally = Ok(Tally::default());
    let elapsed = own_time(|| tally = bench.runtime.block_on(all((0..callers).map(caller))))?;
    let (redis_cpu, node_cpu) = (bench.cpu_time()? - cpu_before, own()? - own_before);
    let Tally { asked, refused } = tally?;
    ensure!(refused == 0, "{refused} of {asked} were refused under a limit that is not reached");
    let per_decision = |time: Duration| time.as_nanos() as f64 / 1_000.0 / asked as f64;
    Ok(Round {
        micros: per_decision(elapsed),
        redis_cpu_micros: per_decision(redis_cpu),
        node_cpu_micros: per_decision(node_cpu),
    })
}

/// What all callers got together.
async fn all<F: Future<Output = anyhow::Result<Tally>> + Send + 'static>(
    callers: impl Iterator<Item = F>,
) -> anyhow::Result<Tally> {
    let mut callers: JoinSet<_> = callers.collect();
    let mut sum = Tally::default();
    while let Some(done) = callers.join_next().await {
        let one = done??;
        sum = Tally { asked: sum.asked + one.asked, refused: sum.refused + one.refused };
    }
    Ok(sum)
}
