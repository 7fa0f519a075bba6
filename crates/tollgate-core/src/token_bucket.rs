//! Token bucket: tokens flow in at a rate up to a burst, a request takes some out.

use std::time::Duration;

use crate::{
    Ask, Patience, Rate, Time, Verdict, Wait,
    bucket::{Bucket, Fill, SmallFill, full_at},
    limit::Meter,
};

/// `rate` tokens flow in, `burst` of them fit. An unknown key is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket(Bucket);

impl TokenBucket {
    pub(crate) const fn new(rate: Rate, burst: u64) -> Self {
        Self(Bucket::new(rate, burst))
    }

    pub(crate) const fn burst(&self) -> u64 {
        self.0.burst
    }

    #[inline]
    pub(crate) fn take_small(
        &self,
        fill: SmallFill,
        now: Time,
        cost: u64,
    ) -> Option<(Verdict, SmallFill)> {
        self.0.take_small(fill, now, cost)
    }

    /// How long an empty one takes to fill.
    pub(crate) fn full_micros(&self) -> u64 {
        self.0.full_micros()
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.0.rate
    }
}

impl Meter for TokenBucket {
    type State = Fill;

    fn check(&self, fill: &Fill, ask: Ask) -> Verdict {
        let bucket = &self.0;
        let start = Bucket::start(*fill, ask.now);
        let brim = bucket.brim(ask.now);
        let until_full = |fill| Duration::from_micros(bucket.micros_until_full(fill, ask.now));
        if bucket.is_closed() || ask.cost > bucket.burst {
            let remaining = if bucket.is_closed() { 0 } else { bucket.tokens(start, brim) };
            return Verdict::never(remaining, until_full(start));
        }
        let end = bucket.end(start, ask.cost);
        if end <= brim {
            return Verdict::pass(bucket.tokens(end, brim), until_full(end));
        }
        let wait = bucket.micros_until(end, brim);
        match ask.patience {
            Patience::Micros(most) if wait <= most => Verdict::pass_after(wait, until_full(end)),
            _ => Verdict::refuse(bucket.tokens(start, brim), Wait::micros(wait), until_full(start)),
        }
    }

    fn spend(&self, fill: &mut Fill, ask: Ask) {
        *fill = self.0.end(Bucket::start(*fill, ask.now), ask.cost);
    }

    fn charge(&self, fill: &mut Fill, ask: Ask) {
        if self.0.is_closed() {
            return;
        }
        let start = Bucket::start(*fill, ask.now);
        let empty = self.0.brim(ask.now);
        *fill = self.0.end(start, ask.cost.min(self.0.burst)).min(empty).max(start);
    }

    fn refund(&self, fill: &mut Fill, now: Time, cost: u64) {
        *fill = self.0.returned(*fill, cost, now);
    }

    fn idle_at(&self, fill: &Fill) -> Time {
        full_at(*fill)
    }

    fn carry(&self, old: &Self, fill: &Fill, now: Time) -> Fill {
        self.0.carried(&old.0, *fill, now)
    }
}
