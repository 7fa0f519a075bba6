//! What each algorithm should do, written so slowly that it is obviously right.
//!
//! Every model keeps the whole history or a plain fraction and counts anew at each question. None
//! shares a line with the algorithms it judges, nor their way of keeping state.

use tollgate_core::{Algorithm, Limit, Rate, Time};

/// A slow limiter for one key.
pub trait Model {
    /// How much could be taken now.
    fn remaining(&mut self, now: Time) -> u64;

    /// Takes; whoever calls has seen that it fits.
    fn take(&mut self, now: Time, cost: u64);

    /// Gives back the newest.
    fn refund(&mut self, now: Time, cost: u64);
}

/// The model of a limit.
pub fn model(limit: &Limit) -> Box<dyn Model> {
    let capacity = limit.capacity();
    let rate = limit.rate();
    let history =
        |counts| -> Box<dyn Model> { Box::new(History { taken: Vec::new(), capacity, counts }) };
    match (limit.algorithm(), rate) {
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, Some(rate)) => {
            Box::new(Bucket::new(rate, capacity))
        }
        (Algorithm::FixedWindow, Some(rate)) => history(Counts::Aligned(rate.period_micros())),
        (Algorithm::SlidingLog, Some(rate)) => history(Counts::Within(rate.period_micros())),
        (Algorithm::SlidingCounter, Some(rate)) => history(Counts::Weighted(rate.period_micros())),
        (Algorithm::SlidingWindow, Some(rate)) => {
            history(Counts::Parts(rate.period_micros().div_ceil(36), 36))
        }
        _ => history(Counts::Within(limit.memory_micros())),
    }
}

/// Tokens as a fraction with the period as its denominator, counted up as time passes.
struct Bucket {
    rate: Rate,
    /// Tokens × period.
    level: u128,
    full: u128,
    last: Time,
}

impl Bucket {
    fn new(rate: Rate, burst: u64) -> Self {
        let full = u128::from(burst) * u128::from(rate.period_micros());
        Self { rate, level: full, full, last: Time::ZERO }
    }

    fn flow(&mut self, now: Time) {
        let flowed = now.since(self.last).as_micros() * u128::from(self.rate.count);
        self.level = (self.level + flowed).min(self.full);
        self.last = now;
    }
}

impl Model for Bucket {
    fn remaining(&mut self, now: Time) -> u64 {
        self.flow(now);
        u64::try_from(self.level / u128::from(self.rate.period_micros())).unwrap()
    }

    fn take(&mut self, now: Time, cost: u64) {
        self.flow(now);
        self.level -= u128::from(cost) * u128::from(self.rate.period_micros());
    }

    fn refund(&mut self, now: Time, cost: u64) {
        self.flow(now);
        self.level =
            (self.level + u128::from(cost) * u128::from(self.rate.period_micros())).min(self.full);
    }
}

/// Everything ever taken, and which of it counts.
struct History {
    taken: Vec<(u64, u64)>,
    capacity: u64,
    counts: Counts,
}

enum Counts {
    /// What was taken in the same piece of the clock.
    Aligned(u64),
    /// What is younger than this.
    Within(u64),
    /// The current piece in full, of the one before the share that still overlaps.
    Weighted(u64),
    /// The current piece and this many before it.
    Parts(u64, u64),
}

impl History {
    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.taken.iter().filter(|(at, _)| counts(*at)).map(|(_, cost)| cost).sum()
    }

    fn used(&self, now: u64) -> u64 {
        match self.counts {
            Counts::Aligned(micros) => self.sum(|at| at / micros == now / micros),
            Counts::Within(micros) => self.sum(|at| at + micros > now),
            Counts::Weighted(micros) => {
                let previous = u128::from(self.sum(|at| at / micros + 1 == now / micros));
                let left = u128::from(micros - now % micros);
                let share = u64::try_from(previous * left / u128::from(micros)).unwrap();
                self.sum(|at| at / micros == now / micros) + share
            }
            Counts::Parts(micros, parts) => self.sum(|at| at / micros + parts >= now / micros),
        }
    }
}

impl Model for History {
    fn remaining(&mut self, now: Time) -> u64 {
        self.capacity.saturating_sub(self.used(now.as_micros()))
    }

    fn take(&mut self, now: Time, cost: u64) {
        self.taken.push((now.as_micros(), cost));
    }

    fn refund(&mut self, now: Time, mut cost: u64) {
        let now = now.as_micros();
        // Only what is still in sight can come back.
        let in_sight = |at: u64| match self.counts {
            Counts::Aligned(micros) => at / micros == now / micros,
            Counts::Within(micros) => at + micros > now,
            Counts::Weighted(micros) => at / micros + 1 >= now / micros,
            Counts::Parts(micros, parts) => at / micros + parts >= now / micros,
        };
        for (_, taken) in self.taken.iter_mut().rev().filter(|(at, _)| in_sight(*at)) {
            let returned = cost.min(*taken);
            *taken -= returned;
            cost -= returned;
        }
    }
}
