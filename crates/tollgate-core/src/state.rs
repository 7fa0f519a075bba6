//! What is kept for one key under one limit, whichever its algorithm.

use std::time::Duration;

use crate::{
    Ask, Fill, Glance, Leases, Limit, Log, Patience, SmallFill, SubTallies, Tally, Time,
    TwoTallies, Verdict, Wait, concurrency::Concurrency, limit::Meter,
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
        look.answered_as(self.check_cost(state, Ask { cost: 1, ..ask }))
    }

    /// The same where the state is elsewhere and was glanced at. `None` for limits whose state is
    /// no more than a glance itself.
    pub fn check_glance(&self, glance: Glance, ask: Ask) -> Option<Verdict> {
        let verdict = |ask| {
            Some(match self {
                Self::SlidingLog(limit) => limit.verdict(glance, ask),
                Self::SlidingWindow(limit) => limit.verdict(glance, ask),
                Self::Concurrency(limit) => limit.verdict(glance, ask),
                _ => return None,
            })
        };
        if ask.cost > 0 {
            return verdict(ask);
        }
        Some(verdict(ask)?.answered_as(verdict(Ask { cost: 1, ..ask })?))
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
    /// A look's answer: whether and when `one` more would pass.
    const fn answered_as(self, one: Self) -> Self {
        let (allowed, retry_after) = (one.allowed, one.retry_after);
        Self { allowed, retry_after, wait: Duration::ZERO, ..self }
    }

    /// The answer where there is nothing to count by.
    pub const UNLIMITED: Self = Self {
        allowed: true,
        remaining: u64::MAX,
        retry_after: Wait::ZERO,
        reset_after: Duration::ZERO,
        wait: Duration::ZERO,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, Unit};

    #[test]
    fn a_glance_is_judged_as_the_state_is() {
        let rate = Rate::per(3, Unit::Minute);
        let (log, window) = (Limit::sliding_log(rate), Limit::sliding_window(rate));
        let places = Limit::concurrency(3, Duration::from_secs(9));
        for limit in [log.unwrap(), window.unwrap(), places.unwrap()] {
            let mut state = limit.fresh();
            for (second, cost) in [(1, 1), (9, 0), (15, 2), (16, 1), (17, 0), (70, 3), (71, 4)] {
                let now = Time::from_secs(second);
                for patience in [Patience::None, Patience::Micros(50_000_000)] {
                    let ask = Ask { now, cost, patience, lease: 0 };
                    // A look is answered as one more would be.
                    let seen = limit.glance(&state, Ask { cost: cost.max(1), ..ask }).unwrap();
                    assert_eq!(limit.check_glance(seen, ask), Some(limit.check(&state, ask)));
                }
                let ask = Ask { now, cost, patience: Patience::None, lease: 0 };
                if limit.check(&state, ask).allowed {
                    limit.spend(&mut state, ask);
                }
            }
        }
    }

    impl Limit {
        fn glance(&self, state: &State, ask: Ask) -> Option<Glance> {
            Some(match (self, state) {
                (Self::SlidingLog(limit), State::Log(log)) => limit.glance(log, ask),
                (Self::SlidingWindow(limit), State::SubTallies(tallies)) => {
                    limit.glance(tallies, ask)
                }
                (Self::Concurrency(limit), State::Leases(leases)) => limit.glance(leases, ask),
                _ => return None,
            })
        }
    }
}
