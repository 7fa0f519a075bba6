//! The arithmetic that token buckets and leaky buckets share.
//!
//! A bucket is kept as the instant at which it will be full again. That instant is exact: whole
//! microseconds and a remainder counted in parts of the (reduced) rate, so nothing is rounded
//! away however often one polls. An instant in the past means full, which is also what an unknown
//! key is: forgetting a full bucket loses nothing. A take costs a few additions and one division,
//! for `remaining`.

use std::time::Duration;

use crate::{Ask, Rate, Time, Verdict, Wait, limit::Meter};

/// When a bucket will be full: `micros + part / rate`, an exact fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Fill {
    /// Whole microseconds since the epoch. Wider than [`Time`] because 2^53 tokens at one a year
    /// are full far beyond its end.
    pub micros: u128,
    /// The rest, in parts of a microsecond; the bucket's rate says how many make one.
    pub part: u64,
}

impl Fill {
    const fn at(now: Time) -> Self {
        Self { micros: now.as_micros() as u128, part: 0 }
    }
}

/// A rate and a capacity, reduced to lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    burst: u64,
    /// What a caller with patience finds.
    shape: Shape,
    /// Tokens per `period` microseconds, without common factors. Zero: nothing ever passes.
    tokens: u64,
    period: u64,
    /// How long one token takes to flow in, and how long all of them do.
    one: Fill,
    full: Fill,
    /// Whether every sum of this bucket fits 64 bits; see [`SmallFill`].
    small: bool,
}

/// The two ways to see a bucket; they differ for callers with patience only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Waits for what is missing: see `token_bucket.rs`.
    Tokens,
    /// Waits for all before it: see `leaky_bucket.rs`.
    Queue,
}

/// A [`Fill`] in 96 bits, for buckets whose sums fit 64: all but those that take millennia to fill.
///
/// Deciding on it is the same arithmetic in fewer steps; most decisions of most programs are this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SmallFill {
    /// As in [`Fill`].
    pub micros: u64,
    /// As in [`Fill`].
    pub part: u32,
}

/// 1/4 of what 64 bits hold: an instant, a whole bucket and a carry together cannot overflow.
const SMALL_MAX: u128 = 1 << 62;

impl Bucket {
    pub(crate) const fn new(shape: Shape, rate: Rate, burst: u64) -> Self {
        let divisor = greatest_common_divisor(rate.count, rate.period_micros());
        let tokens = rate.count / divisor;
        let period = rate.period_micros() / divisor;
        let (one, full, small) = (ZERO, ZERO, false);
        let mut bucket = Self { rate, burst, shape, tokens, period, one, full, small };
        bucket.one = bucket.span(1);
        bucket.full = bucket.span(burst);
        bucket.small = !bucket.is_closed()
            && tokens <= u32::MAX as u64
            && burst as u128 * (period as u128) < SMALL_MAX
            && bucket.full.micros < SMALL_MAX;
        bucket
    }

    /// Checks and spends one impatient request at once, if the bucket is small.
    #[inline]
    pub(crate) fn take_small(
        &self,
        fill: SmallFill,
        now: Time,
        cost: u64,
    ) -> Option<(Verdict, SmallFill)> {
        let now = now.as_micros();
        if !self.small || cost == 0 || cost > self.burst || now as u128 >= SMALL_MAX {
            return None;
        }
        let span = self.span_of(cost);
        let start = fill.max(SmallFill { micros: now, part: 0 });
        let end = self.add_small(start, span);
        let brim = self.add_small(SmallFill { micros: now, part: 0 }, self.full);
        if end <= brim {
            let reset = Duration::from_micros(end.micros - now + u64::from(end.part > 0));
            return Some((Verdict::pass(self.tokens_small(end, brim), reset), end));
        }
        let late = end.part > brim.part;
        let wait = Duration::from_micros(end.micros - brim.micros + u64::from(late));
        let reset = Duration::from_micros(start.micros - now + u64::from(start.part > 0));
        let remaining = if start < brim { self.tokens_small(start, brim) } else { 0 };
        Some((Verdict::refuse(remaining, Wait::For(wait), reset), fill))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a small bucket's spans are below 2^62")]
    const fn add_small(&self, fill: SmallFill, span: Fill) -> SmallFill {
        let part = fill.part as u64 + span.part;
        let carry = part >= self.tokens;
        let part = if carry { part - self.tokens } else { part } as u32;
        SmallFill { micros: fill.micros + span.micros as u64 + carry as u64, part }
    }

    /// How many whole tokens lie between a fill and the brim that it is below.
    #[inline]
    const fn tokens_small(&self, fill: SmallFill, brim: SmallFill) -> u64 {
        // The difference times the rate is at most burst × period, which fits.
        let micros = brim.micros - fill.micros;
        (micros * self.tokens + brim.part as u64 - fill.part as u64) / self.period
    }

    /// At which rate tokens flow in, in lowest terms: so many in so many microseconds.
    pub const fn flow(&self) -> (u64, u64) {
        (self.tokens, self.period)
    }

    /// The fill of a bucket that holds `level` at `now`, counted in parts of a token of which a
    /// period has as many as microseconds. Below zero are tokens that were taken ahead.
    pub fn fill(&self, now: Time, level: i128) -> Fill {
        let full = i128::from(self.burst) * i128::from(self.period);
        let missing = u128::try_from(full - level).unwrap_or(0);
        let tokens = u128::from(self.tokens.max(1));
        // The remainder is below `tokens`, a 64-bit number.
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a 64-bit division")]
        let span = Fill { micros: missing / tokens, part: (missing % tokens) as u64 };
        self.add(Fill::at(now), span)
    }

    pub(crate) const fn burst(&self) -> u64 {
        self.burst
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// A bucket that is empty for good: no rate, or no room.
    pub(crate) const fn is_closed(&self) -> bool {
        self.tokens == 0 || self.burst == 0
    }

    /// How long `cost` tokens take to flow in.
    const fn span(&self, cost: u64) -> Fill {
        if self.tokens == 0 {
            return ZERO;
        }
        let total = cost as u128 * self.period as u128;
        let tokens = self.tokens as u128;
        // The remainder is below `tokens`, a 64-bit number.
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a 64-bit division")]
        Fill { micros: total / tokens, part: (total % tokens) as u64 }
    }

    /// The same for a cost in hand, without a division in the ordinary case.
    fn span_of(&self, cost: u64) -> Fill {
        if cost == 1 { self.one } else { self.span(cost) }
    }

    /// Where the bucket stands: its fill, or now if it was full before.
    pub(crate) fn start(fill: Fill, now: Time) -> Fill {
        fill.max(Fill::at(now))
    }

    /// The fill after `cost` more tokens went out.
    pub(crate) fn end(&self, start: Fill, cost: u64) -> Fill {
        self.add(start, self.span_of(cost))
    }

    /// The latest fill at which nothing is owed at `now`.
    pub(crate) fn brim(&self, now: Time) -> Fill {
        self.add(Fill::at(now), self.full)
    }

    /// The fill after `cost` tokens came back; never fuller than full.
    pub(crate) fn returned(&self, fill: Fill, cost: u64, now: Time) -> Fill {
        let start = Self::start(fill, now);
        let span = self.span_of(cost);
        if span >= self.gap(start, Fill::at(now)) { Fill::at(now) } else { self.gap(start, span) }
    }

    /// How many whole tokens lie between a fill and the brim.
    pub(crate) fn tokens(&self, fill: Fill, brim: Fill) -> u64 {
        if fill >= brim {
            return 0;
        }
        let gap = self.gap(brim, fill);
        let parts = gap.micros * u128::from(self.tokens) + u128::from(gap.part);
        match u64::try_from(parts) {
            Ok(parts) => parts / self.period,
            Err(_) => u64::try_from(parts / u128::from(self.period)).unwrap_or(u64::MAX),
        }
    }

    /// The same share of emptiness in this bucket as `fill` was in `old`, rounded towards empty.
    pub(crate) fn carried(&self, old: &Self, fill: Fill, now: Time) -> Fill {
        if old.is_closed() || self.is_closed() {
            return Fill::at(now);
        }
        let missing = old.burst - old.tokens(Self::start(fill, now), old.brim(now)).min(old.burst);
        let share = u128::from(missing) * u128::from(self.burst);
        let missing = share.div_ceil(u128::from(old.burst));
        self.end(Fill::at(now), u64::try_from(missing).unwrap_or(self.burst))
    }

    const fn add(&self, a: Fill, b: Fill) -> Fill {
        // Both parts are below `tokens` ≤ 2^53, so the sum cannot overflow.
        let part = a.part + b.part;
        let carry = part >= self.tokens && self.tokens > 0;
        Fill {
            micros: a.micros + b.micros + carry as u128,
            part: if carry { part - self.tokens } else { part },
        }
    }

    /// `later - earlier`; the caller has compared them.
    const fn gap(&self, later: Fill, earlier: Fill) -> Fill {
        let borrow = later.part < earlier.part;
        Fill {
            micros: later.micros - earlier.micros - borrow as u128,
            part: if borrow {
                later.part + self.tokens - earlier.part
            } else {
                later.part - earlier.part
            },
        }
    }

    /// Microseconds from `earlier` until `later` has certainly come.
    pub(crate) fn micros_until(&self, later: Fill, earlier: Fill) -> u64 {
        if later <= earlier {
            return 0;
        }
        let gap = self.gap(later, earlier);
        u64::try_from(gap.micros + u128::from(gap.part > 0)).unwrap_or(u64::MAX)
    }

    /// Microseconds from empty to full.
    pub(crate) fn full_micros(&self) -> u64 {
        self.micros_until(self.full, ZERO)
    }

    /// How long until the bucket is full.
    pub(crate) fn until_full(&self, fill: Fill, now: Time) -> Duration {
        Duration::from_micros(self.micros_until_full(fill, now))
    }

    /// Microseconds from `now` until the bucket is full.
    pub(crate) fn micros_until_full(&self, fill: Fill, now: Time) -> u64 {
        self.micros_until(fill, Fill::at(now))
    }
}

impl Meter for Bucket {
    type State = Fill;

    fn check(&self, fill: &Fill, ask: Ask) -> Verdict {
        let start = Self::start(*fill, ask.now);
        let brim = self.brim(ask.now);
        if self.is_closed() || ask.cost > self.burst {
            let remaining = if self.is_closed() { 0 } else { self.tokens(start, brim) };
            return Verdict::never(remaining, self.until_full(start, ask.now));
        }
        match self.shape {
            Shape::Tokens => self.check_tokens(start, brim, ask),
            Shape::Queue => self.check_queue(start, brim, ask),
        }
    }

    fn spend(&self, fill: &mut Fill, ask: Ask) {
        *fill = self.end(Self::start(*fill, ask.now), ask.cost);
    }

    fn charge(&self, fill: &mut Fill, ask: Ask) {
        if self.is_closed() {
            return;
        }
        let start = Self::start(*fill, ask.now);
        let empty = self.brim(ask.now);
        *fill = self.end(start, ask.cost.min(self.burst)).min(empty).max(start);
    }

    fn refund(&self, fill: &mut Fill, now: Time, cost: u64) {
        *fill = self.returned(*fill, cost, now);
    }

    /// The first instant at which the bucket is full.
    fn idle_at(&self, fill: &Fill) -> Time {
        let micros = fill.micros + u128::from(fill.part > 0);
        Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    fn carry(&self, old: &Self, fill: &Fill, now: Time) -> Fill {
        self.carried(old, *fill, now)
    }
}

const ZERO: Fill = Fill { micros: 0, part: 0 };

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    if a == 0 { 1 } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[track_caller]
    fn check(rate: Rate, burst: u64, cost: u64) {
        let bucket = Bucket::new(Shape::Tokens, rate, burst);
        let (now, later) = (Time::from_secs(1), Time::from_micros(1_000_007));
        let mut fill = Fill::default();
        bucket.spend(&mut fill, Ask { now, cost, patience: crate::Patience::None, lease: 0 });
        let (tokens, period) = bucket.flow();
        let level = i128::from(burst - cost) * i128::from(period);
        assert_eq!(bucket.fill(now, level), fill);
        assert_eq!(bucket.fill(later, level + 7 * i128::from(tokens)), fill);
        let full = i128::from(burst) * i128::from(period);
        assert_eq!(bucket.fill(now, full), Fill::at(now));
    }

    #[test]
    fn a_fill_is_found_again_from_the_level_at_any_instant() {
        check(Rate::per(10, Unit::Second), 15, 3);
        check(Rate { count: 7, times: 3, unit: Unit::Hour }, 5, 5);
        check(Rate::per(1, Unit::Year), 1 << 53, 1 << 52);
        check(Rate::per(1_000_000_000, Unit::Second), 1 << 53, 1 << 53);
    }
}
