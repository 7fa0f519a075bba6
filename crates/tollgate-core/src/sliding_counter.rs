//! Sliding counter: this window's count and the share of the last one's that still overlaps.
//!
//! `current + previous × overlap`, floored: cheap, and near the truth when requests come evenly.
//! It can admit almost twice the limit in the worst window; `sliding_window` never does.

use std::time::Duration;

use crate::{
    Ask, COST_MAX, Patience, Rate, Time, Verdict, Wait, fixed_window::share, limit::Meter,
};

/// About `count` in any window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingCounter {
    rate: Rate,
}

/// The counts of two windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct TwoTallies {
    /// The current window's number, counted from the epoch.
    pub index: u64,
    /// Taken in the current window.
    pub current: u64,
    /// Taken in the one before.
    pub previous: u64,
}

impl SlidingCounter {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.rate.count
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    const fn window(&self) -> u64 {
        self.rate.period_micros()
    }

    fn rolled(&self, tallies: &TwoTallies, now: Time) -> TwoTallies {
        let index = now.as_micros() / self.window();
        match index.saturating_sub(tallies.index) {
            0 => *tallies,
            1 => TwoTallies { index, current: 0, previous: tallies.current },
            _ => TwoTallies { index, current: 0, previous: 0 },
        }
    }

    /// The estimate for tallies already rolled to `now`.
    fn used(&self, tallies: TwoTallies, now: Time) -> u64 {
        let into = now.as_micros().saturating_sub(tallies.index * self.window()).min(self.window());
        tallies.current.saturating_add(self.overlap(tallies.previous, into))
    }

    /// How much of `previous` still counts `into` microseconds into the window.
    fn overlap(&self, previous: u64, into: u64) -> u64 {
        let left = u128::from(self.window() - into);
        u64::try_from(u128::from(previous) * left / u128::from(self.window())).unwrap_or(u64::MAX)
    }

    /// How far into a window the overlap of `previous` has come down to `most`.
    fn down_to(&self, previous: u64, most: u64) -> u64 {
        if previous <= most {
            return 0;
        }
        let window = u128::from(self.window());
        let left = ((u128::from(most) + 1) * window).div_ceil(u128::from(previous)) - 1;
        self.window() - u64::try_from(left).unwrap_or(u64::MAX).min(self.window())
    }

    /// The first instant, from `now` on, at which the estimate is at most `most`.
    fn reached(&self, tallies: TwoTallies, now: Time, most: u64) -> Time {
        let start = tallies.index.saturating_mul(self.window());
        if tallies.current <= most {
            let into = self.down_to(tallies.previous, most - tallies.current);
            if into < self.window() {
                return Time::from_micros(start.saturating_add(into)).max(now);
            }
        }
        let into = self.down_to(tallies.current, most);
        Time::from_micros(start.saturating_add(self.window()).saturating_add(into)).max(now)
    }

    fn reset(&self, tallies: TwoTallies, now: Time) -> Duration {
        self.reached(tallies, now, 0).since(now)
    }
}

impl Meter for SlidingCounter {
    type State = TwoTallies;

    fn check(&self, tallies: &TwoTallies, ask: Ask) -> Verdict {
        let tallies = self.rolled(tallies, ask.now);
        let remaining = self.count().saturating_sub(self.used(tallies, ask.now));
        if ask.cost > self.count() || self.count() == 0 {
            return Verdict::never(remaining, self.reset(tallies, ask.now));
        }
        let after = TwoTallies { current: tallies.current.saturating_add(ask.cost), ..tallies };
        if ask.cost <= remaining {
            return Verdict::pass(remaining - ask.cost, self.reset(after, ask.now));
        }
        // Taken now and waited off: a place in the future counts from the present on.
        let wait = self.reached(after, ask.now, self.count()).since(ask.now);
        if let Patience::Micros(most) = ask.patience
            && wait <= Duration::from_micros(most)
        {
            return Verdict { wait, ..Verdict::pass(0, self.reset(after, ask.now)) };
        }
        let retry = self.reached(tallies, ask.now, self.count() - ask.cost).since(ask.now);
        Verdict::refuse(remaining, Wait::For(retry), self.reset(tallies, ask.now))
    }

    fn spend(&self, tallies: &mut TwoTallies, ask: Ask) {
        *tallies = self.rolled(tallies, ask.now);
        // More can be taken ahead than any limit has; it is counted as far as every store can.
        tallies.current = tallies.current.saturating_add(ask.cost).min(COST_MAX);
    }

    fn charge(&self, tallies: &mut TwoTallies, ask: Ask) {
        *tallies = self.rolled(tallies, ask.now);
        // Bounded, so that hammering does not grow into windows to come.
        let full = tallies.current.saturating_add(ask.cost).min(self.count());
        tallies.current = tallies.current.max(full);
    }

    fn refund(&self, tallies: &mut TwoTallies, now: Time, cost: u64) {
        *tallies = self.rolled(tallies, now);
        let from_current = tallies.current.min(cost);
        tallies.current -= from_current;
        tallies.previous = tallies.previous.saturating_sub(cost - from_current);
    }

    fn idle_at(&self, tallies: &TwoTallies) -> Time {
        let windows = if tallies.current > 0 { 2 } else { u64::from(tallies.previous > 0) };
        Time::from_micros(tallies.index.saturating_add(windows).saturating_mul(self.window()))
    }

    fn carry(&self, old: &Self, tallies: &TwoTallies, now: Time) -> TwoTallies {
        let index = now.as_micros() / self.window();
        let tallies = old.rolled(tallies, now);
        let share = |used| share(used, old.count(), self.count());
        if self.window() == old.window() {
            let (current, previous) = (share(tallies.current), share(tallies.previous));
            return TwoTallies { index, current, previous };
        }
        TwoTallies { index, current: share(old.used(tallies, now)), previous: 0 }
    }
}
