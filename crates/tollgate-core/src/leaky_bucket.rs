//! Leaky bucket: a queue of fixed size that drains at a fixed rate.
//!
//! As a meter (a caller without patience) a request passes at once while the queue has room;
//! that is a token bucket seen from below. As a queue (a caller with patience) a request that
//! finds room goes on only when all before it have drained, so that what comes out is evenly
//! spaced. In both uses a full queue refuses the newest.

use std::time::Duration;

use crate::{
    Ask, Patience, Rate, Time, Verdict, Wait,
    bucket::{Bucket, Fill, SmallFill, full_at},
    limit::Meter,
};

/// A queue of `burst` places, drained at `rate`. An unknown key is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeakyBucket(Bucket);

impl LeakyBucket {
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

    /// How long a full one takes to drain.
    pub(crate) fn full_micros(&self) -> u64 {
        self.0.full_micros()
    }

    pub(crate) const fn rate(&self) -> Rate {
        self.0.rate
    }
}

impl Meter for LeakyBucket {
    type State = Fill;

    fn check(&self, fill: &Fill, ask: Ask) -> Verdict {
        let bucket = &self.0;
        let start = Bucket::start(*fill, ask.now);
        let brim = bucket.brim(ask.now);
        let until_empty = |fill| Duration::from_micros(bucket.micros_until_full(fill, ask.now));
        if bucket.is_closed() || ask.cost > bucket.burst {
            let room = if bucket.is_closed() { 0 } else { bucket.tokens(start, brim) };
            return Verdict::never(room, until_empty(start));
        }
        let end = bucket.end(start, ask.cost);
        let room = bucket.tokens(start, brim);
        let slot = bucket.micros_until_full(start, ask.now);
        match ask.patience {
            Patience::None if end <= brim => {
                Verdict::pass(bucket.tokens(end, brim), until_empty(end))
            }
            Patience::Micros(most) if end <= brim && slot <= most => Verdict {
                wait: Duration::from_micros(slot),
                ..Verdict::pass(bucket.tokens(end, brim), until_empty(end))
            },
            // Room there is, but the turn would come too late: it is nearer later.
            Patience::Micros(most) if end <= brim => {
                Verdict::refuse(room, Wait::micros(slot - most), until_empty(start))
            }
            Patience::Micros(most) => {
                let wait = bucket.micros_until(end, brim).max(slot.saturating_sub(most));
                Verdict::refuse(room, Wait::micros(wait), until_empty(start))
            }
            Patience::None => {
                let wait = bucket.micros_until(end, brim);
                Verdict::refuse(room, Wait::micros(wait), until_empty(start))
            }
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
        *fill = self.0.end(start, ask.cost.min(self.0.burst)).min(self.0.brim(ask.now)).max(start);
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
