//! A limit in the numbers that a script takes.

use tollgate_core::{COST_MAX, Limit, Patience, Window};

use super::arguments::Arguments;
use crate::{
    request::{Action, Item, Request},
    script::Kind,
};

/// Half a bit less than a sum may have, so that a sum of two of them is still exact.
const SUM_MAX: u128 = 1 << 50;

/// What a bucket may flow in a microsecond, so that a millisecond's worth is below [`SUM_MAX`].
const FLOW_MAX: u64 = 1 << 40;

/// A cost as a script takes it: above every capacity all are the same, and a double holds this one.
pub(super) const fn cost(cost: u64) -> u64 {
    if cost > COST_MAX { COST_MAX * 2 } else { cost }
}

/// Rate and capacity of a bucket in a script.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketNumbers {
    /// How many parts a token has.
    pub(super) period: u64,
    /// How many of them flow in per microsecond.
    pub(super) rate: u64,
    pub(super) burst: u64,
}

impl BucketNumbers {
    /// Of a token bucket or a leaky bucket.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        let (Limit::TokenBucket(bucket) | Limit::LeakyBucket(bucket)) = limit else { return None };
        let (rate, period) = bucket.flow();
        // Where nothing flows, nothing ever passes: as where there is no room.
        if rate == 0 {
            return Some(Self { period: 1, rate: 1, burst: 0 });
        }
        Some(Self { period, rate, burst: limit.capacity() })
    }

    fn is_small(self) -> bool {
        u128::from(self.burst) * u128::from(self.period) <= SUM_MAX && self.rate <= FLOW_MAX
    }
}

/// How the scripts count for this item of this request.
pub(super) fn kind(request: &Request, item: &Item) -> Kind {
    match &item.limit {
        Limit::FixedWindow(_) => Kind::FixedWindow,
        Limit::SlidingLog(_) => Kind::SlidingLog,
        Limit::SlidingCounter(_) => Kind::SlidingCounter,
        Limit::SlidingWindow(_) => Kind::SlidingWindow,
        Limit::Concurrency(_) => Kind::Concurrency,
        Limit::TokenBucket(_) | Limit::LeakyBucket(_) => {
            let patience = match request.action {
                Action::Take { patience: Patience::Micros(micros), .. } => micros,
                _ => 0,
            };
            let fits = |numbers: BucketNumbers| {
                let ahead = u128::from(numbers.rate) * u128::from(patience);
                numbers.is_small() && ahead <= SUM_MAX
            };
            match BucketNumbers::of(&item.limit).is_none_or(fits) {
                true => Kind::Narrow,
                false => Kind::Wide,
            }
        }
    }
}

/// The numbers of a limit as they are stored with its state, to tell whether they have changed.
pub(super) fn text(limit: &Limit) -> String {
    let rate = limit.rate().map(|rate| rate.to_string()).unwrap_or_default();
    match limit {
        Limit::TokenBucket(_) | Limit::LeakyBucket(_)
            if limit.rate().is_none_or(|rate| rate.count != limit.capacity()) =>
        {
            format!("{rate} {}", limit.capacity())
        }
        _ => rate,
    }
}

/// How the tokens of a small bucket are written: with as many decimals as it takes to find the
/// number of parts again, and no more, because each costs a byte a key.
pub(super) fn form(numbers: BucketNumbers) -> String {
    // Rounding to this many moves a part by 0.35 at most, and doubles of this size by an eighth.
    let enough = |decimals: &u32| match 10_u64.checked_pow(*decimals) {
        Some(power) => numbers.period == power || numbers.period <= power / 10 * 7,
        None => true,
    };
    let decimals = (1..20).find(enough).unwrap_or(20);
    format!("%.{decimals}f")
}

/// How long an idle key is kept at least.
pub(super) fn ttl_millis(item: &Item) -> u64 {
    item.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).min(COST_MAX))
}

/// What a kind of limit reads beside its text and its time to live.
pub(super) fn write(arguments: &mut Arguments, kind: Kind, limit: &Limit) {
    let period = limit.rate().map_or(0, |rate| rate.period_micros());
    let count = limit.capacity();
    match limit {
        Limit::TokenBucket(_) | Limit::LeakyBucket(_) => {
            let Some(numbers) = BucketNumbers::of(limit) else { return };
            let queue = u64::from(matches!(limit, Limit::LeakyBucket(_)));
            arguments.numbers([numbers.period, numbers.rate, numbers.burst, queue]);
            if kind == Kind::Wide {
                arguments.number(u64::from(numbers.is_small()));
            } else {
                arguments.text(form(numbers));
            }
        }
        Limit::FixedWindow(window) => arguments.numbers(match window.window() {
            Window::Every { micros, offset } => [count, 0, micros, offset],
            Window::Months(months) => [count, u64::from(months), 0, 0],
        }),
        Limit::SlidingLog(_) | Limit::SlidingCounter(_) | Limit::SlidingWindow(_) => {
            arguments.numbers([count, period]);
        }
        Limit::Concurrency(places) => arguments.numbers([count, places.lease_micros()]),
    }
}
