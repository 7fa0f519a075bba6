//! What is kept for one key under one limit, whichever its algorithm.

use std::time::Duration;

use crate::{
    Ask, Fill, Leases, Limit, Log, Patience, SmallFill, SubTallies, Tally, Time, TwoTallies,
    Verdict, Wait, concurrency::Concurrency, limit::Meter,
};

/// One key's state. Which variant it is follows from the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Of a token bucket or a leaky bucket.
    Fill(Fill),
    /// Of a fixed window.
    Tally(Tally),
    /// Of a sliding log.
    Log(Log),
    /// Of a sliding counter.
    TwoTallies(TwoTallies),
    /// Of a strict sliding window.
    SubTallies(SubTallies),
    /// Of a limit on what is in flight.
    Leases(Leases),
}

/// Runs one method of whichever algorithm the limit has on the state that belongs to it. A state of
/// another kind (left by a limit that has changed its algorithm) counts as none.
macro_rules! dispatch {
    ($limit:expr, $state:expr, $fresh:expr, |$meter:ident, $own:ident| $body:expr) => {
        match ($limit, $state) {
            (Limit::TokenBucket($meter) | Limit::LeakyBucket($meter), State::Fill($own)) => $body,
            (Limit::FixedWindow($meter), State::Tally($own)) => $body,
            (Limit::SlidingLog($meter), State::Log($own)) => $body,
            (Limit::SlidingCounter($meter), State::TwoTallies($own)) => $body,
            (Limit::SlidingWindow($meter), State::SubTallies($own)) => $body,
            (Limit::Concurrency($meter), State::Leases($own)) => $body,
            _ => $fresh,
        }
    };
}

impl Limit {
    /// What an unknown key has.
    pub fn fresh(&self) -> State {
        match self {
            Self::TokenBucket(_) | Self::LeakyBucket(_) => State::Fill(Fill::default()),
            Self::FixedWindow(_) => State::Tally(Tally::default()),
            Self::SlidingLog(_) => State::Log(Log::default()),
            Self::SlidingCounter(_) => State::TwoTallies(TwoTallies::default()),
            Self::SlidingWindow(_) => State::SubTallies(SubTallies::default()),
            Self::Concurrency(_) => State::Leases(Leases::default()),
        }
    }

    /// Whether `ask` passes, without changing anything. A look (cost 0) is answered as a
    /// request of cost 1 would be, with what remains untouched.
    pub fn check(&self, state: &State, ask: Ask) -> Verdict {
        if ask.cost > 0 {
            return self.check_cost(state, ask);
        }
        let look = self.check_cost(state, ask);
        let one = self.check_cost(state, Ask { cost: 1, ..ask });
        Verdict { allowed: one.allowed, retry_after: one.retry_after, wait: Duration::ZERO, ..look }
    }

    /// [`Limit::check`] and [`Limit::spend`] in one, for the commonest case: an impatient request to
    /// a bucket that fits 96 bits. `None` says that it is another case; nothing is decided then.
    #[inline]
    pub fn take_small(&self, fill: SmallFill, ask: &Ask) -> Option<(Verdict, SmallFill)> {
        match (self, ask.patience) {
            (Self::TokenBucket(bucket) | Self::LeakyBucket(bucket), Patience::None) => {
                bucket.take_small(fill, ask.now, ask.cost)
            }
            _ => None,
        }
    }

    fn check_cost(&self, state: &State, ask: Ask) -> Verdict {
        dispatch!(self, state, self.check_cost(&self.fresh(), ask), |meter, own| meter
            .check(own, ask))
    }

    /// Takes what [`Limit::check`] has just allowed.
    pub fn spend(&self, state: &mut State, ask: Ask) {
        if ask.cost > 0 {
            self.mutate(state);
            dispatch!(self, state, (), |meter, own| meter.spend(own, ask));
        }
    }

    /// Takes what it can for a request that was refused.
    pub fn charge(&self, state: &mut State, ask: Ask) {
        if ask.cost > 0 {
            self.mutate(state);
            dispatch!(self, state, (), |meter, own| meter.charge(own, ask));
        }
    }

    /// Gives `cost` back, never more than was taken.
    pub fn refund(&self, state: &mut State, now: Time, cost: u64) {
        dispatch!(self, state, (), |meter, own| meter.refund(own, now, cost));
    }

    /// Ends the lease of `holder`; false where there is none.
    pub fn release(&self, state: &mut State, holder: u64) -> bool {
        match state {
            State::Leases(leases) => leases.release(holder),
            _ => false,
        }
    }

    /// From when on `state` says no more than an unknown key.
    pub fn idle_at(&self, state: &State) -> Time {
        dispatch!(self, state, Time::ZERO, |meter, own| meter.idle_at(own))
    }

    /// What `state`, counted by the numbers of `old`, becomes under this limit: the same share
    /// used. `None` where the two count too differently to tell.
    pub fn carry(&self, old: &Self, state: &State, now: Time) -> Option<State> {
        Some(match (self, old, state) {
            (Self::TokenBucket(new), Self::TokenBucket(old), State::Fill(fill)) => {
                State::Fill(new.carry(old, fill, now))
            }
            (Self::LeakyBucket(new), Self::LeakyBucket(old), State::Fill(fill)) => {
                State::Fill(new.carry(old, fill, now))
            }
            (Self::FixedWindow(new), Self::FixedWindow(old), State::Tally(tally)) => {
                State::Tally(new.carry(old, tally, now))
            }
            (Self::SlidingLog(new), Self::SlidingLog(old), State::Log(log)) => {
                State::Log(new.carry(old, log, now))
            }
            (Self::SlidingCounter(new), Self::SlidingCounter(old), State::TwoTallies(tallies)) => {
                State::TwoTallies(new.carry(old, tallies, now))
            }
            (Self::SlidingWindow(new), Self::SlidingWindow(old), State::SubTallies(tallies)) => {
                State::SubTallies(new.carry(old, tallies, now))
            }
            (Self::Concurrency(new), Self::Concurrency(old), State::Leases(leases)) => {
                State::Leases(Concurrency::carry(new, old, leases, now))
            }
            _ => return None,
        })
    }

    /// Puts a state of the right kind in place of a foreign one.
    fn mutate(&self, state: &mut State) {
        if std::mem::discriminant(state) != std::mem::discriminant(&self.fresh()) {
            *state = self.fresh();
        }
    }
}

impl Verdict {
    /// The answer where there is nothing to count by.
    pub const UNLIMITED: Self = Self {
        allowed: true,
        remaining: u64::MAX,
        retry_after: Wait::ZERO,
        reset_after: Duration::ZERO,
        wait: Duration::ZERO,
    };
}
