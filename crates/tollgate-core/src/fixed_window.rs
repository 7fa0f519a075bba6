//! Fixed window: a counter that starts again with each window of the clock.
//!
//! Callers with patience may take places in windows to come. Those are kept in the same counter:
//! what is above the count of one window belongs to the next ones, and moves down as they come.

use std::time::Duration;

use crate::{Ask, Rate, Time, Verdict, Wait, calendar::Window, limit::Meter};

/// `count` in each window of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedWindow {
    rate: Rate,
    window: Window,
}

/// How much was taken in and after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Tally {
    /// The window's number.
    pub index: u64,
    /// What was taken; above the limit's count it belongs to later windows.
    pub count: u64,
}

impl FixedWindow {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, window: Window::aligned(rate) }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.rate.count
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// How this limit cuts time.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The tally as it is at `now`.
    fn current(&self, tally: &Tally, now: Time) -> Tally {
        let index = self.window.index(now);
        let passed = index.saturating_sub(tally.index);
        let count = tally.count.saturating_sub(self.count().saturating_mul(passed));
        Tally { index: index.max(tally.index), count }
    }

    /// The tally with `cost` more: a request that does not fit into what is left of a window lies
    /// whole in the next.
    fn with(&self, tally: Tally, cost: u64) -> Tally {
        let into = tally.count % self.count();
        let left_over = if into + cost > self.count() { self.count() - into } else { 0 };
        Tally { count: tally.count.saturating_add(left_over).saturating_add(cost), ..tally }
    }

    /// From `now` until the first window in which everything in `tally` has its place.
    fn wait(&self, tally: Tally, now: Time) -> Duration {
        let windows = tally.count.div_ceil(self.count()).saturating_sub(1);
        if windows == 0 {
            return Duration::ZERO;
        }
        self.window.start(tally.index.saturating_add(windows)).since(now)
    }

    fn reset(&self, tally: Tally, now: Time) -> Duration {
        if tally.count == 0 { Duration::ZERO } else { self.idle_at(&tally).since(now) }
    }
}

impl Meter for FixedWindow {
    type State = Tally;

    fn check(&self, tally: &Tally, ask: Ask) -> Verdict {
        let tally = self.current(tally, ask.now);
        let remaining = self.count().saturating_sub(tally.count);
        if ask.cost > self.count() || self.count() == 0 {
            return Verdict::never(remaining, self.reset(tally, ask.now));
        }
        let after = self.with(tally, ask.cost);
        let wait = self.wait(after, ask.now);
        if wait > ask.patience.longest() {
            return Verdict::refuse(remaining, Wait::For(wait), self.reset(tally, ask.now));
        }
        let remaining = self.count().saturating_sub(after.count);
        Verdict { wait, ..Verdict::pass(remaining, self.reset(after, ask.now)) }
    }

    fn spend(&self, tally: &mut Tally, ask: Ask) {
        *tally = self.with(self.current(tally, ask.now), ask.cost);
    }

    fn charge(&self, tally: &mut Tally, ask: Ask) {
        *tally = self.current(tally, ask.now);
        // Up to the brim and no further: a penalty must not reach into the next window.
        tally.count = tally.count.max(tally.count.saturating_add(ask.cost).min(self.count()));
    }

    fn refund(&self, tally: &mut Tally, now: Time, cost: u64) {
        *tally = self.current(tally, now);
        tally.count = tally.count.saturating_sub(cost);
    }

    fn idle_at(&self, tally: &Tally) -> Time {
        let windows = if self.count() == 0 { 1 } else { tally.count.div_ceil(self.count()) };
        self.window.start(tally.index.saturating_add(windows))
    }

    fn carry(&self, old: &Self, tally: &Tally, now: Time) -> Tally {
        let used = old.current(tally, now).count;
        Tally { index: self.window.index(now), count: share(used, old.count(), self.count()) }
    }
}

/// `used` of `old` as the same share of `new`, rounded up.
pub(crate) fn share(used: u64, old: u64, new: u64) -> u64 {
    if old == 0 {
        return 0;
    }
    let share = (u128::from(used) * u128::from(new)).div_ceil(u128::from(old));
    u64::try_from(share).unwrap_or(u64::MAX)
}
