//! Concurrency: how many may be in flight at once.
//!
//! Each holder has a lease with an end, so that a place whose holder died comes back by itself.
//! Nobody can tell when a place will be given back early, so `retry_after` is the time by which
//! one certainly is.

use std::time::Duration;

use crate::{Ask, Glance, Time, Verdict, Wait, limit::Meter};

/// `places` at once, each for at most `lease`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    places: u64,
    lease_micros: u64,
}

/// Who is in flight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leases {
    /// Ordered by their end, soonest first.
    held: Vec<Lease>,
}

/// Some places held by one holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Who holds them.
    pub holder: u64,
    /// When they are free again without a word from the holder.
    pub until: Time,
    /// How many places.
    pub places: u64,
}

impl Leases {
    /// Leases put together from stored ones.
    pub fn from_leases(leases: impl IntoIterator<Item = Lease>) -> Self {
        let mut held: Vec<_> = leases.into_iter().collect();
        held.sort_by_key(|lease| lease.until);
        Self { held }
    }

    /// All leases, soonest end first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Lease> + '_ {
        self.held.iter().copied()
    }

    /// Ends the lease of this holder; false if there is none.
    pub fn release(&mut self, holder: u64) -> bool {
        let before = self.held.len();
        self.held.retain(|lease| lease.holder != holder);
        self.held.len() < before
    }

    /// How many bytes the leases hold on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.held.capacity() * size_of::<Lease>()
    }

    fn live(&self, now: Time) -> &[Lease] {
        &self.held[self.held.partition_point(|lease| lease.until <= now)..]
    }
}

impl Concurrency {
    pub(crate) fn new(places: u64, lease: Duration) -> Self {
        Self { places, lease_micros: u64::try_from(lease.as_micros()).unwrap_or(u64::MAX) }
    }

    pub(crate) const fn places(&self) -> u64 {
        self.places
    }

    /// How long a place is held at most.
    pub const fn lease_micros(&self) -> u64 {
        self.lease_micros
    }

    /// When `cost` places are certainly free.
    fn freed_at(&self, live: &[Lease], now: Time, cost: u64) -> Time {
        let mut free = self.places.saturating_sub(live.iter().map(|lease| lease.places).sum());
        let mut at = now;
        for lease in live {
            if free >= cost {
                break;
            }
            free += lease.places;
            at = lease.until;
        }
        at
    }

    /// What `ask` sees of the leases.
    pub(crate) fn glance(&self, leases: &Leases, ask: Ask) -> Glance {
        let live = leases.live(ask.now);
        Glance {
            used: live.iter().map(|lease| lease.places).sum(),
            turn: self.freed_at(live, ask.now, ask.cost),
            free: live.last().map_or(Time::ZERO, |lease| lease.until),
        }
    }

    /// Whether `ask` passes.
    pub(crate) fn verdict(&self, glance: Glance, ask: Ask) -> Verdict {
        let remaining = self.places.saturating_sub(glance.used);
        let reset = glance.free.since(ask.now);
        if ask.cost > self.places || self.places == 0 {
            return Verdict::never(remaining, reset);
        }
        if ask.cost <= remaining {
            let reset =
                if ask.cost == 0 { reset } else { Duration::from_micros(self.lease_micros) };
            return Verdict::pass(remaining - ask.cost, reset);
        }
        // A place in the future cannot be held: nobody knows when it comes.
        Verdict::refuse(remaining, Wait::For(glance.turn.since(ask.now)), reset)
    }
}

impl Meter for Concurrency {
    type State = Leases;

    fn check(&self, leases: &Leases, ask: Ask) -> Verdict {
        self.verdict(self.glance(leases, ask), ask)
    }

    fn spend(&self, leases: &mut Leases, ask: Ask) {
        leases.held.retain(|lease| lease.until > ask.now);
        let until = Time::from_micros(ask.now.as_micros().saturating_add(self.lease_micros));
        leases.held.push(Lease { holder: ask.lease, until, places: ask.cost });
        leases.held.sort_by_key(|lease| lease.until);
    }

    fn charge(&self, _leases: &mut Leases, _ask: Ask) {
        // A refused request is not in flight.
    }

    /// Gives back places of the leases that end soonest, for callers that kept no name.
    fn refund(&self, leases: &mut Leases, now: Time, mut cost: u64) {
        leases.held.retain_mut(|lease| {
            if lease.until <= now {
                return false;
            }
            let returned = lease.places.min(cost);
            cost -= returned;
            lease.places -= returned;
            lease.places > 0
        });
    }

    fn idle_at(&self, leases: &Leases) -> Time {
        leases.held.last().map_or(Time::ZERO, |lease| lease.until)
    }

    /// Who is in flight is in flight, whatever the limit says now.
    fn carry(&self, _old: &Self, leases: &Leases, _now: Time) -> Leases {
        leases.clone()
    }
}
