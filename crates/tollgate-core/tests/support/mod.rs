//! Random limits and random lives of a key.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test file is a crate that uses its own part of this, and fails by panicking"
)]

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Algorithm, Ask, Limit, Patience, Rate, State, Time, Unit, Verdict};

/// One key under one limit, and the time.
pub struct Key {
    pub limit: Limit,
    pub state: State,
    pub now: Time,
}

impl Key {
    pub fn new(limit: Limit, now: Time) -> Self {
        Self { limit, state: limit.fresh(), now }
    }

    pub fn ask(&self, cost: u64) -> Ask {
        Ask { now: self.now, cost, patience: Patience::None, lease: 0 }
    }

    pub fn take(&mut self, cost: u64) -> Verdict {
        self.take_as(self.ask(cost))
    }

    /// Takes with a place in the future, if it comes within `micros`.
    pub fn acquire(&mut self, cost: u64, micros: u64) -> Verdict {
        self.take_as(Ask { patience: Patience::Micros(micros), ..self.ask(cost) })
    }

    fn take_as(&mut self, ask: Ask) -> Verdict {
        let verdict = self.limit.check(&self.state, ask);
        if verdict.allowed {
            self.limit.spend(&mut self.state, ask);
        }
        verdict
    }

    pub fn look(&self) -> Verdict {
        self.limit.check(&self.state, self.ask(0))
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }
}

/// Rates whose arithmetic does not come out even, among ordinary ones.
pub fn rates() -> impl Strategy<Value = Rate> {
    let count = prop_oneof![1_u64..20, Just(7), Just(60), Just(1_000), Just(65_536), Just(99_999)];
    let unit = prop::sample::select(&[Unit::Second, Unit::Minute, Unit::Hour][..]);
    (count, 1_u32..4, unit).prop_map(|(count, times, unit)| Rate { count, times, unit })
}

/// Limits of one algorithm.
pub fn limits_of(algorithm: Algorithm) -> impl Strategy<Value = Limit> {
    (rates(), 1_u64..30).prop_map(move |(rate, burst)| limit(algorithm, rate, burst))
}

/// Limits of every algorithm.
pub fn limits() -> impl Strategy<Value = Limit> {
    prop::sample::select(&Algorithm::ALL[..]).prop_flat_map(limits_of)
}

pub fn limit(algorithm: Algorithm, rate: Rate, burst: u64) -> Limit {
    let made = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(rate, burst),
        Algorithm::LeakyBucket => Limit::leaky_bucket(rate, burst),
        Algorithm::FixedWindow => Limit::fixed_window(rate),
        Algorithm::SlidingLog => Limit::sliding_log(rate),
        Algorithm::SlidingCounter => Limit::sliding_counter(rate),
        Algorithm::SlidingWindow => Limit::sliding_window(rate),
        Algorithm::Concurrency => Limit::concurrency(burst, Duration::from_secs(10)),
    };
    made.unwrap()
}

/// One thing that happens to a key.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Pause(Pause),
    /// The clock is set back by this many microseconds.
    SetBack(u64),
    Take(u64),
    Look,
    Refund(u64),
    Reset,
}

/// A pause: so many microseconds, or a share of the limit's memory in thousandths.
#[derive(Debug, Clone, Copy)]
pub enum Pause {
    Micros(u64),
    Share(u64),
}

impl Pause {
    pub fn duration(self, limit: &Limit) -> Duration {
        Duration::from_micros(match self {
            Self::Micros(micros) => micros,
            Self::Share(thousandths) => limit.memory_micros() / 1_000 * thousandths,
        })
    }
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![
        Just(Pause::Micros(0)),
        Just(Pause::Micros(1)),
        (1_u64..2_000_000).prop_map(Pause::Micros),
        (1_u64..600).prop_map(Pause::Share),
        (900_u64..2_100).prop_map(Pause::Share),
    ];
    let step = prop_oneof![
        4 => pause.prop_map(Step::Pause),
        1 => prop_oneof![1_u64..5_000, 1_u64..1_000_000, 1_000_000_u64..9_000_000_000].prop_map(Step::SetBack),
        // Most costs are small; some are near or above the capacity.
        6 => (1_u64..4).prop_map(Step::Take),
        2 => (1_u64..40).prop_map(Step::Take),
        1 => (1_u64..100_010).prop_map(Step::Take),
        1 => Just(Step::Look),
        1 => (1_u64..6).prop_map(Step::Refund),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..150)
}

/// The clock as it should count: a step back is no time. A small one is waited out, a large one
/// forgotten. Kept as how far the clock lags, where the `Timeline` keeps instants.
pub struct SlowClock {
    pub shown: Time,
    pub time: Time,
    lag: u64,
}

impl SlowClock {
    pub fn at(start: Time) -> Self {
        Self { shown: start, time: start, lag: 0 }
    }

    pub fn forward(&mut self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap();
        self.shown = Time::from_micros(self.shown.as_micros() + by);
        self.time = Time::from_micros(self.time.as_micros() + by.saturating_sub(self.lag));
        self.lag = self.lag.saturating_sub(by);
    }

    pub fn back(&mut self, by: u64) {
        self.shown = Time::from_micros(self.shown.as_micros() - by);
        self.lag += by;
        if self.lag > 1_000_000 {
            self.lag = 0;
        }
    }
}

/// An instant that is no round number of anything.
pub fn starts() -> impl Strategy<Value = Time> {
    (1_794_787_200_000_000_u64..1_794_797_200_000_000).prop_map(Time::from_micros)
}
