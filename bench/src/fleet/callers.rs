//! Those who ask: many at once, each with one request in flight, or at a given rate.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use tokio::{task::JoinSet, time::Instant};

use super::server::Bench;
use crate::{own_time::own_time, random::Random};

/// As many as connections in the benchmarks of the gateway.
pub(super) const CALLERS: usize = 64;

/// What is asked.
pub(super) trait Limiter: Send + Sync + 'static {
    /// Whether this key may pass; `caller` says who asks, below [`CALLERS`].
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
}

/// Lets all callers ask `each` times about random ones of `keys`.
pub(super) fn at_once<L: Limiter>(
    bench: &Bench,
    limiter: &Arc<L>,
    keys: u64,
    each: u64,
) -> anyhow::Result<Round> {
    measured(bench, each * CALLERS as u64, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let mut random = Random::new(caller as u64 + 1);
            let (mut name, mut refused) = (Name::default(), 0);
            for _ in 0..each {
                let key = name.of(random.below(keys));
                refused += u64::from(!limiter.allows(caller, key).await?);
            }
            Ok(refused)
        }
    })
}

/// Lets the callers take `decisions` as fast as one core can, and gives others a turn now and then
/// as somebody does who reads many requests from one socket.
pub(super) fn in_a_row<L: Limiter>(
    bench: &Bench,
    limiter: &Arc<L>,
    keys: u64,
    decisions: u64,
) -> anyhow::Result<Round> {
    const ROW: u64 = 16;
    let each = decisions / CALLERS as u64 / ROW;
    measured(bench, each * CALLERS as u64 * ROW, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let mut random = Random::new(caller as u64 + 1);
            let (mut name, mut refused) = (Name::default(), 0);
            for _ in 0..each {
                for _ in 0..ROW {
                    let key = name.of(random.below(keys));
                    refused += u64::from(!limiter.allows(caller, key).await?);
                }
                tokio::task::yield_now().await;
            }
            Ok(refused)
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
    measured(bench, each * CALLERS as u64, |caller| {
        let limiter = Arc::clone(limiter);
        async move {
            let (mut name, mut refused) = (Name::default(), 0);
            let begin = Instant::now();
            for turn in 0..each {
                let number = turn * CALLERS as u64 + caller as u64;
                // Timers tick in milliseconds: what is due is asked in a row.
                let due = Duration::from_micros(number * 1_000_000 / (pace.rate * pace.keys));
                if begin.elapsed() < due {
                    tokio::time::sleep_until(begin + due).await;
                }
                let key = name.of(number % pace.keys);
                refused += u64::from(!limiter.allows(caller, key).await?);
            }
            Ok(refused)
        }
    })
}

fn measured<F: Future<Output = anyhow::Result<u64>> + Send + 'static>(
    bench: &Bench,
    decisions: u64,
    caller: impl Fn(usize) -> F,
) -> anyhow::Result<Round> {
    let cpu_before = bench.cpu_time()?;
    let mut refused = Ok(0);
    let elapsed = own_time(|| refused = bench.runtime.block_on(all(caller)))?;
    let (cpu, refused) = (bench.cpu_time()? - cpu_before, refused?);
    ensure!(
        refused == 0,
        "{refused} of {decisions} were refused under a limit that is not reached"
    );
    let per_decision = |time: Duration| time.as_nanos() as f64 / 1_000.0 / decisions as f64;
    Ok(Round { micros: per_decision(elapsed), redis_cpu_micros: per_decision(cpu) })
}

/// How many were refused to all callers together.
async fn all<F: Future<Output = anyhow::Result<u64>> + Send + 'static>(
    caller: impl Fn(usize) -> F,
) -> anyhow::Result<u64> {
    let mut callers: JoinSet<_> = (0..CALLERS).map(caller).collect();
    let mut refused = 0;
    while let Some(done) = callers.join_next().await {
        refused += done??;
    }
    Ok(refused)
}
