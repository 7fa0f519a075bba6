//! Strict sliding window: never more than the limit in any window of any position.
//!
//! A window is cut into 36 sub-windows, each with a count. The oldest one that the window still
//! touches counts in full, so the estimate is never below the truth; the price is that what was
//! taken is remembered up to one sub-window too long: 36/37 of what an exact log would admit.
//! The state is 88 bytes whatever the limit. That is why past sub-windows hold 16 bits: above a
//! limit of 65,535 they count in larger steps, rounded up when a sub-window ends.

use crate::{Ask, Glance, Rate, Time, Verdict, Wait, fixed_window::share, limit::Meter};

/// Into how many parts a window is cut: 33 at least, for 97 % of the exact log, and few enough that
/// a key with all that a store adds to it stays within 128 bytes.
const PARTS: usize = 36;
const PARTS_U64: u64 = PARTS as u64;

/// Never more than `count` in any window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow {
    rate: Rate,
    /// The length of a sub-window; 36 of them are no shorter than the window.
    part_micros: u64,
    /// How much one step of a past sub-window's counter stands for.
    step: u64,
}

/// The counts of the newest sub-window and of the 36 before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubTallies {
    /// The newest sub-window's number, counted from the epoch.
    pub newest: u64,
    /// Taken in the newest, exactly.
    pub count: u64,
    /// Taken in those before, in steps, each at its number modulo 36.
    pub past: [u16; PARTS],
}

impl Default for SubTallies {
    fn default() -> Self {
        Self { newest: 0, count: 0, past: [0; PARTS] }
    }
}

impl SubTallies {
    /// The place of a past sub-window's counter.
    fn place(index: u64) -> usize {
        usize::try_from(index % PARTS_U64).unwrap_or(0)
    }
}

impl SlidingWindow {
    pub(crate) const fn new(rate: Rate) -> Self {
        let part_micros = rate.period_micros().div_ceil(PARTS_U64);
        let step = if rate.count == 0 { 1 } else { rate.count.div_ceil(u16::MAX as u64) };
        Self { rate, part_micros, step }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.rate.count
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    const fn part(&self, now: Time) -> u64 {
        now.as_micros() / self.part_micros
    }

    /// The instant that counts at `now`: behind the last place that was given away in the future,
    /// because what happened long before that place is no longer kept.
    fn at(&self, tallies: &SubTallies, now: Time) -> Time {
        now.max(Time::from_micros(tallies.newest.saturating_mul(self.part_micros)))
    }

    /// When a sub-window no longer touches any window that ends now or later.
    const fn gone_at(&self, part: u64) -> u64 {
        part.saturating_add(PARTS_U64 + 1).saturating_mul(self.part_micros)
    }

    /// The counts that still matter at `now`, oldest first, each with its number.
    fn live(&self, tallies: &SubTallies, now: Time) -> impl Iterator<Item = (u64, u64)> {
        let (newest, count, past, step) = (tallies.newest, tallies.count, tallies.past, self.step);
        let oldest = self.part(now).saturating_sub(PARTS_U64);
        let first = oldest.max(newest.saturating_sub(PARTS_U64));
        let before = (first..newest)
            .map(move |part| (part, u64::from(past[SubTallies::place(part)]).saturating_mul(step)));
        before.chain((newest >= oldest).then_some((newest, count)))
    }

    fn used(&self, tallies: &SubTallies, now: Time) -> u64 {
        self.live(tallies, now).fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// The earliest instant at which `cost` more has room.
    fn turn(&self, tallies: &SubTallies, now: Time, cost: u64) -> Time {
        let now = self.at(tallies, now);
        let mut excess = self.used(tallies, now).saturating_add(cost).saturating_sub(self.count());
        for (part, count) in self.live(tallies, now) {
            if excess == 0 {
                break;
            }
            if excess <= count {
                return Time::from_micros(self.gone_at(part)).max(now);
            }
            excess -= count;
        }
        now
    }

    /// Makes the sub-window of `at` the newest, unless a later one is.
    fn advance(&self, tallies: &mut SubTallies, at: Time) {
        let part = self.part(at);
        if part <= tallies.newest {
            return;
        }
        if part - tallies.newest > PARTS_U64 {
            *tallies = SubTallies { newest: part, ..SubTallies::default() };
            return;
        }
        let steps = tallies.count.div_ceil(self.step);
        tallies.past[SubTallies::place(tallies.newest)] = u16::try_from(steps).unwrap_or(u16::MAX);
        for empty in tallies.newest + 1..part {
            tallies.past[SubTallies::place(empty)] = 0;
        }
        // The place of the new one held the sub-window 36 before it, which may still matter: it is
        // read until the newest is retired into that place.
        tallies.newest = part;
        tallies.count = 0;
    }

    /// From when on nothing that was taken counts.
    fn free(&self, tallies: &SubTallies, now: Time) -> Time {
        let newest = self.live(tallies, now).filter(|(_, count)| *count > 0).last();
        newest.map_or(Time::ZERO, |(part, _)| Time::from_micros(self.gone_at(part)))
    }

    /// What `ask` sees of the sub-windows.
    pub(crate) fn glance(&self, tallies: &SubTallies, ask: Ask) -> Glance {
        Glance {
            used: self.used(tallies, self.at(tallies, ask.now)),
            turn: self.turn(tallies, ask.now, ask.cost),
            free: self.free(tallies, ask.now),
        }
    }

    /// Whether `ask` passes.
    pub(crate) fn verdict(&self, glance: Glance, ask: Ask) -> Verdict {
        let remaining = self.count().saturating_sub(glance.used);
        let reset = glance.free.since(ask.now);
        if ask.cost > self.count() || self.count() == 0 {
            return Verdict::never(remaining, reset);
        }
        let wait = glance.turn.since(ask.now);
        if wait > ask.patience.longest() {
            return Verdict::refuse(remaining, Wait::For(wait), reset);
        }
        if ask.cost == 0 {
            return Verdict::pass(remaining, reset);
        }
        let gone = Time::from_micros(self.gone_at(self.part(glance.turn))).since(ask.now);
        Verdict { wait, ..Verdict::pass(remaining.saturating_sub(ask.cost), gone) }
    }
}

impl Meter for SlidingWindow {
    type State = SubTallies;

    fn check(&self, tallies: &SubTallies, ask: Ask) -> Verdict {
        self.verdict(self.glance(tallies, ask), ask)
    }

    fn spend(&self, tallies: &mut SubTallies, ask: Ask) {
        let turn = self.turn(tallies, ask.now, ask.cost);
        self.advance(tallies, turn);
        tallies.count = tallies.count.saturating_add(ask.cost);
    }

    fn charge(&self, tallies: &mut SubTallies, ask: Ask) {
        self.advance(tallies, ask.now);
        tallies.count = tallies.count.saturating_add(ask.cost).min(self.count()).max(tallies.count);
    }

    fn refund(&self, tallies: &mut SubTallies, now: Time, mut cost: u64) {
        self.advance(tallies, now);
        let from_newest = tallies.count.min(cost);
        tallies.count -= from_newest;
        cost -= from_newest;
        let oldest = tallies.newest.saturating_sub(PARTS_U64);
        for part in (oldest..tallies.newest).rev() {
            let steps = &mut tallies.past[SubTallies::place(part)];
            // Whole steps only: less than a step given back stays taken.
            let returned = (cost / self.step).min(u64::from(*steps));
            *steps -= u16::try_from(returned).unwrap_or(*steps);
            cost -= returned * self.step;
        }
    }

    fn idle_at(&self, tallies: &SubTallies) -> Time {
        Time::from_micros(self.gone_at(tallies.newest))
    }

    fn carry(&self, old: &Self, tallies: &SubTallies, now: Time) -> SubTallies {
        let share = |used| share(used, old.count(), self.count());
        if self.part_micros != old.part_micros {
            let used = share(old.used(tallies, now));
            return SubTallies { newest: self.part(now), count: used, ..SubTallies::default() };
        }
        let mut carried = SubTallies {
            newest: tallies.newest,
            count: share(tallies.count),
            ..SubTallies::default()
        };
        for (part, count) in old.live(tallies, now).filter(|(part, _)| *part < tallies.newest) {
            let steps = share(count).div_ceil(self.step);
            carried.past[SubTallies::place(part)] = u16::try_from(steps).unwrap_or(u16::MAX);
        }
        carried
    }
}
