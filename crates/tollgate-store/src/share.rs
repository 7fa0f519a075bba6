//! How much of a policy one node may spend by itself, and what a limit is at that share.
//!
//! Rate and burst are each at least 1, so that a small policy does not become a wall; what was 0
//! stays 0, because it was meant as one. A burst is rounded down. A rate is kept exact as a
//! fraction where it is one (half of 3/s is 3/2s): rounded down, four nodes would together give a
//! policy of 10/s only 8.

use std::{fmt, sync::Arc, time::Duration};

use tollgate_core::{Limit, LimitError, Rate};

/// The share of a policy that a node limits by when it is on its own.
#[derive(Clone)]
pub enum Share {
    /// A fixed part.
    Part {
        /// In millionths of the policy; more than the whole counts as the whole.
        millionths: u32,
    },
    /// The policy divided by the number of live nodes, as last known by this function. None known
    /// counts as one: this node is alive.
    Fleet(Arc<dyn Fn() -> usize + Send + Sync>),
}

const WHOLE: u64 = 1_000_000;

impl Share {
    /// The share as it is now.
    pub(crate) fn fraction(&self) -> Fraction {
        match self {
            Self::Part { millionths } => {
                Fraction { part: u64::from(*millionths).min(WHOLE), whole: WHOLE }
            }
            Self::Fleet(nodes) => {
                let nodes = u64::try_from(nodes()).unwrap_or(u64::MAX).clamp(1, NODES_MAX);
                Fraction { part: 1, whole: nodes }
            }
        }
    }
}

/// More nodes than any fleet has, and few enough that no product with them overflows.
const NODES_MAX: u64 = 1_000_000;

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({self})")
    }
}

impl fmt::Display for Share {
    /// As it stands in the log: `50 %`, `1/4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fraction { part, whole } = self.fraction();
        match self {
            Self::Part { .. } => {
                let (percent, rest) = (part / 10_000, part % 10_000);
                let rest = format!("{rest:04}");
                match rest.trim_end_matches('0') {
                    "" => write!(f, "{percent} %"),
                    rest => write!(f, "{percent}.{rest} %"),
                }
            }
            Self::Fleet(_) => write!(f, "{part}/{whole}"),
        }
    }
}

/// `part / whole`, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    part: u64,
    whole: u64,
}

impl Fraction {
    /// The share of a count, at least 1 of anything.
    fn of(self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let share = u128::from(count) * u128::from(self.part) / u128::from(self.whole);
        u64::try_from(share).unwrap_or(count).max(1)
    }

    /// What `limit` is at this share.
    pub(crate) fn of_limit(self, limit: &Limit) -> Limit {
        // Smaller numbers than those of a limit make a limit.
        self.try_limit(limit).unwrap_or(*limit)
    }

    fn try_limit(self, limit: &Limit) -> Result<Limit, LimitError> {
        let Some(rate) = limit.rate() else {
            // Of a limit on what is in flight, what it remembers is the lease.
            let lease = Duration::from_micros(limit.memory_micros());
            return Limit::concurrency(self.of(limit.capacity()), lease);
        };
        let floored = Rate { count: self.of(rate.count), ..rate };
        let bucket = |make: fn(Rate, u64) -> Result<Limit, LimitError>| {
            let burst = self.of(limit.capacity());
            let exact = self.exact(rate).and_then(|rate| make(rate, burst).ok());
            exact.map_or_else(|| make(floored, burst), Ok)
        };
        match limit {
            Limit::TokenBucket(_) => bucket(Limit::token_bucket),
            Limit::LeakyBucket(_) => bucket(Limit::leaky_bucket),
            Limit::FixedWindow(_) => Limit::fixed_window(floored),
            Limit::SlidingLog(_) => Limit::sliding_log(floored),
            Limit::SlidingCounter(_) => Limit::sliding_counter(floored),
            Limit::SlidingWindow(_) => Limit::sliding_window(floored),
            Limit::Concurrency(_) => Ok(*limit),
        }
    }

    /// The share of a rate as an exact fraction, if it is above 1 per period and can be written.
    fn exact(self, rate: Rate) -> Option<Rate> {
        let count = rate.count.checked_mul(self.part)?;
        if count < self.whole {
            return None;
        }
        let times = u64::from(rate.times).checked_mul(self.whole)?;
        let divisor = greatest_common_divisor(count, times);
        let times = u32::try_from(times / divisor).ok()?;
        Some(Rate { count: count / divisor, times, unit: rate.unit })
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use tollgate_core::Unit;

    use super::*;

    fn part(millionths: u32) -> Share {
        Share::Part { millionths }
    }

    fn fleet(nodes: usize) -> Share {
        Share::Fleet(Arc::new(move || nodes))
    }

    #[track_caller]
    fn check(share: &Share, limit: Result<Limit, LimitError>, expected: &str) {
        assert_eq!(share.fraction().of_limit(&limit.unwrap()).to_string(), expected);
    }

    // part of: B6
    #[test]
    fn rate_and_burst_are_each_at_least_1() {
        let bucket = |count, burst| Limit::token_bucket(Rate::per(count, Unit::Second), burst);
        check(&part(500_000), bucket(10, 15), "token_bucket 5/s burst 7");
        check(&part(500_000), bucket(1, 1), "token_bucket 1/s burst 1");
        check(&part(500_000), bucket(1, 15), "token_bucket 1/s burst 7");
        check(&part(1), bucket(100, 100), "token_bucket 1/s burst 1");
        check(&part(0), bucket(100, 100), "token_bucket 1/s burst 1");
        check(&part(1_000_000), bucket(100, 100), "token_bucket 100/s burst 100");
        check(&part(u32::MAX), bucket(100, 100), "token_bucket 100/s burst 100");
    }

    // part of: B6
    #[test]
    fn a_limit_of_zero_stays_a_wall() {
        let bucket = |count, burst| Limit::leaky_bucket(Rate::per(count, Unit::Second), burst);
        check(&part(500_000), bucket(0, 15), "leaky_bucket 0/s burst 7");
        check(&part(500_000), bucket(10, 0), "leaky_bucket 5/s burst 0");
    }

    // part of: B6
    #[test]
    fn every_algorithm_has_a_share() {
        let rate = Rate { count: 9, times: 5, unit: Unit::Minute };
        check(&part(500_000), Limit::leaky_bucket(rate, 9), "leaky_bucket 9/10min burst 4");
        check(&part(500_000), Limit::fixed_window(rate), "fixed_window 4/5min");
        check(&part(500_000), Limit::sliding_log(rate), "sliding_log 4/5min");
        check(&part(500_000), Limit::sliding_counter(rate), "sliding_counter 4/5min");
        check(&part(500_000), Limit::sliding_window(rate), "sliding_window 4/5min");
        let places = Limit::concurrency(9, Duration::from_secs(30));
        check(&part(500_000), places, "concurrency 4 for 30000000us");
    }

    // part of: B7
    #[test]
    fn a_fleet_divides_the_policy() {
        let bucket = |count, burst| Limit::token_bucket(Rate::per(count, Unit::Second), burst);
        check(&fleet(4), bucket(10, 15), "token_bucket 5/2s burst 3");
        check(&fleet(3), bucket(10, 15), "token_bucket 10/3s burst 5");
        check(&fleet(1), bucket(10, 15), "token_bucket 10/s burst 15");
        check(&fleet(0), bucket(10, 15), "token_bucket 10/s burst 15");
        check(&fleet(100), bucket(10, 15), "token_bucket 1/s burst 1");
    }

    #[test]
    fn numbers_at_the_edge_make_limits() {
        let most = 1 << 53;
        let year = Rate { count: most, times: 100, unit: Unit::Year };
        for share in [part(1), part(333_333), part(999_999), fleet(7), fleet(usize::MAX)] {
            let limit = Limit::token_bucket(year, most).unwrap();
            let shared = share.fraction().of_limit(&limit);
            assert!(shared.capacity() >= 1 && shared.capacity() < most, "{shared}");
        }
    }

    // part of: B6, B7
    #[test]
    fn shares_are_told_as_people_write_them() {
        let told: Vec<_> = [part(500_000), part(125_000), part(1), part(1_000_000), fleet(4)]
            .iter()
            .map(Share::to_string)
            .collect();
        assert_eq!(told, ["50 %", "12.5 %", "0.0001 %", "100 %", "1/4"]);
    }
}
