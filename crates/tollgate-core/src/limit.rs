//! A limit: an algorithm with its numbers, checked once so that no later sum can overflow.

use std::{fmt, time::Duration};

use crate::{
    Algorithm, Ask, Rate, Time, Unit, Verdict,
    bucket::{Bucket, Shape},
    concurrency::Concurrency,
    fixed_window::FixedWindow,
    sliding_counter::SlidingCounter,
    sliding_log::SlidingLog,
    sliding_window::SlidingWindow,
};

/// The largest cost, count and burst: what a double, and so Lua and JSON, holds exactly.
pub const COST_MAX: u64 = 1 << 53;

/// A key of these two keeps a word per place, so their size is a promise about memory.
const PLACES_MAX: u64 = 100_000;

/// A hundred years: sums of instants and periods stay far below 2^63.
const PERIOD_MICROS_MAX: u64 = 100 * Unit::Year.micros();

/// The fastest rate that is counted exactly.
const PER_SECOND_MAX: u128 = 1_000_000_000;

/// What a limit allows, and how it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// See [`Algorithm::TokenBucket`].
    TokenBucket(Bucket),
    /// See [`Algorithm::LeakyBucket`].
    LeakyBucket(Bucket),
    /// See [`Algorithm::FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`Algorithm::SlidingLog`].
    SlidingLog(SlidingLog),
    /// See [`Algorithm::SlidingCounter`].
    SlidingCounter(SlidingCounter),
    /// See [`Algorithm::SlidingWindow`].
    SlidingWindow(SlidingWindow),
    /// See [`Algorithm::Concurrency`].
    Concurrency(Concurrency),
}

/// Why numbers make no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The burst or the count is too large to be counted exactly.
    #[error("{0} is too large: at most {COST_MAX} can be counted exactly")]
    TooMany(u64),
    /// More per second than is counted exactly.
    #[error("{0} is too fast: at most 1000000000 per second")]
    TooFast(Rate),
    /// A period of no length.
    #[error("a period of 0 units has no length: write at least 1")]
    NoPeriod,
    /// A period beyond any use.
    #[error("{0} has too long a period: at most 100 years")]
    TooLong(Rate),
    /// The algorithm keeps one entry per request, and this would be too many.
    #[error(
        "{0} keeps an entry per request, so at most {PLACES_MAX}, not {1}; `sliding_window` has no such bound"
    )]
    TooManyPlaces(Algorithm, u64),
    /// A lease that ends at once or never.
    #[error("a lease lasts between 1ms and 24h")]
    LeaseLength,
}

impl Limit {
    /// `rate` flows in, up to `burst`.
    pub fn token_bucket(rate: Rate, burst: u64) -> Result<Self, LimitError> {
        check_rate(rate)?;
        check_count(burst)?;
        Ok(Self::TokenBucket(Bucket::new(Shape::Tokens, rate, burst)))
    }

    /// A queue of `burst` places that drains at `rate`.
    pub fn leaky_bucket(rate: Rate, burst: u64) -> Result<Self, LimitError> {
        check_rate(rate)?;
        check_count(burst)?;
        Ok(Self::LeakyBucket(Bucket::new(Shape::Queue, rate, burst)))
    }

    /// `rate` in each window of the clock; months and years are the calendar's, in UTC.
    pub fn fixed_window(rate: Rate) -> Result<Self, LimitError> {
        check_rate(rate)?;
        Ok(Self::FixedWindow(FixedWindow::new(rate)))
    }

    /// `rate` in any window, by a log of what was accepted.
    pub fn sliding_log(rate: Rate) -> Result<Self, LimitError> {
        check_rate(rate)?;
        check_places(Algorithm::SlidingLog, rate.count)?;
        Ok(Self::SlidingLog(SlidingLog::new(rate)))
    }

    /// About `rate` in any window, by two counters.
    pub fn sliding_counter(rate: Rate) -> Result<Self, LimitError> {
        check_rate(rate)?;
        Ok(Self::SlidingCounter(SlidingCounter::new(rate)))
    }

    /// Never more than `rate` in any window, by sub-windows.
    pub fn sliding_window(rate: Rate) -> Result<Self, LimitError> {
        check_rate(rate)?;
        Ok(Self::SlidingWindow(SlidingWindow::new(rate)))
    }

    /// At most `places` at once; a place whose holder died is free again after `lease`.
    pub fn concurrency(places: u64, lease: Duration) -> Result<Self, LimitError> {
        check_places(Algorithm::Concurrency, places)?;
        if lease < Duration::from_millis(1) || lease > Duration::from_secs(86_400) {
            return Err(LimitError::LeaseLength);
        }
        Ok(Self::Concurrency(Concurrency::new(places, lease)))
    }

    /// How this limit counts.
    pub const fn algorithm(&self) -> Algorithm {
        match self {
            Self::TokenBucket(_) => Algorithm::TokenBucket,
            Self::LeakyBucket(_) => Algorithm::LeakyBucket,
            Self::FixedWindow(_) => Algorithm::FixedWindow,
            Self::SlidingLog(_) => Algorithm::SlidingLog,
            Self::SlidingCounter(_) => Algorithm::SlidingCounter,
            Self::SlidingWindow(_) => Algorithm::SlidingWindow,
            Self::Concurrency(_) => Algorithm::Concurrency,
        }
    }

    /// The most that can pass at one instant.
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::TokenBucket(limit) | Self::LeakyBucket(limit) => limit.burst(),
            Self::FixedWindow(limit) => limit.count(),
            Self::SlidingLog(limit) => limit.count(),
            Self::SlidingCounter(limit) => limit.count(),
            Self::SlidingWindow(limit) => limit.count(),
            Self::Concurrency(limit) => limit.places(),
        }
    }

    /// The rate it was made from; a limit on what is in flight has none.
    pub const fn rate(&self) -> Option<Rate> {
        match self {
            Self::TokenBucket(limit) | Self::LeakyBucket(limit) => Some(limit.rate()),
            Self::FixedWindow(limit) => Some(limit.rate()),
            Self::SlidingLog(limit) => Some(limit.rate()),
            Self::SlidingCounter(limit) => Some(limit.rate()),
            Self::SlidingWindow(limit) => Some(limit.rate()),
            Self::Concurrency(_) => None,
        }
    }
}

fn check_rate(rate: Rate) -> Result<(), LimitError> {
    check_count(rate.count)?;
    if rate.times == 0 {
        return Err(LimitError::NoPeriod);
    }
    if u128::from(rate.unit.micros()) * u128::from(rate.times) > u128::from(PERIOD_MICROS_MAX) {
        return Err(LimitError::TooLong(rate));
    }
    let per_second_max = PER_SECOND_MAX * u128::from(rate.unit.seconds()) * u128::from(rate.times);
    if u128::from(rate.count) > per_second_max {
        return Err(LimitError::TooFast(rate));
    }
    Ok(())
}

const fn check_count(count: u64) -> Result<(), LimitError> {
    if count > COST_MAX { Err(LimitError::TooMany(count)) } else { Ok(()) }
}

const fn check_places(algorithm: Algorithm, places: u64) -> Result<(), LimitError> {
    if places > PLACES_MAX { Err(LimitError::TooManyPlaces(algorithm, places)) } else { Ok(()) }
}

/// What every algorithm answers, each for its own state.
///
/// `check` looks and `spend` takes, so that several limits can be asked before any is charged.
/// Time never runs backwards here: stores see to it with a [`crate::Timeline`].
pub(crate) trait Meter {
    /// What is kept for one key; its default is what an unknown key has.
    type State;

    /// Whether `ask` passes, without changing anything.
    fn check(&self, state: &Self::State, ask: Ask) -> Verdict;

    /// Takes what `check` has just allowed.
    fn spend(&self, state: &mut Self::State, ask: Ask);

    /// Takes what it can for a request that was refused.
    fn charge(&self, state: &mut Self::State, ask: Ask);

    /// Gives back, never more than was taken.
    fn refund(&self, state: &mut Self::State, now: Time, cost: u64);

    /// From when on the state says no more than an unknown key.
    fn idle_at(&self, state: &Self::State) -> Time;

    /// What `state` under the numbers of `old` becomes under these: the same share used,
    /// rounded towards used.
    fn carry(&self, old: &Self, state: &Self::State, now: Time) -> Self::State;
}

impl Limit {
    /// How long after its last change a state can still say something.
    pub fn memory_micros(&self) -> u64 {
        match self {
            Self::TokenBucket(limit) | Self::LeakyBucket(limit) => limit.full_micros(),
            // Calendar months and years are longer than the unit's fixed length, but not by half.
            Self::FixedWindow(limit) => limit.rate().period_micros().saturating_mul(2),
            Self::SlidingLog(limit) => limit.rate().period_micros(),
            Self::SlidingCounter(limit) => limit.rate().period_micros().saturating_mul(2),
            Self::SlidingWindow(limit) => limit.rate().period_micros().saturating_mul(2),
            Self::Concurrency(limit) => limit.lease_micros(),
        }
    }
}

impl fmt::Display for Limit {
    /// The limit in words, all its numbers included: `token_bucket 10/s burst 15`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.algorithm())?;
        match self {
            Self::TokenBucket(_) | Self::LeakyBucket(_) => {
                write!(
                    f,
                    " {} burst {}",
                    self.rate().unwrap_or(Rate::per(0, Unit::Second)),
                    self.capacity()
                )
            }
            Self::Concurrency(limit) => {
                write!(f, " {} for {}us", limit.places(), limit.lease_micros())
            }
            _ => write!(f, " {}", self.rate().unwrap_or(Rate::per(0, Unit::Second))),
        }
    }
}
