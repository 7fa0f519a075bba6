//! Several limits on one request: all or nothing.
//!
//! Every limit is asked before any is charged. If one refuses, nothing is taken from the others;
//! the answer shows the limit that refuses longest, else the one with the least left.

use std::{cmp::Reverse, time::Duration};

use crate::{Ask, Decision, Limit, State, Verdict};

/// What all limits of a request say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    verdict: Verdict,
    limit: u64,
    shown: usize,
    seen: usize,
}

impl Judgement {
    /// Nothing asked yet: passes.
    pub const OPEN: Self = Self { verdict: Verdict::UNLIMITED, limit: 0, shown: 0, seen: 0 };

    /// Adds the verdict of the next limit.
    pub fn add(&mut self, limit: &Limit, verdict: Verdict) {
        let shown = self.seen == 0 || outranks(&verdict, &self.verdict);
        let wait = verdict.wait.max(self.verdict.wait);
        if shown {
            *self = Self { verdict, limit: limit.capacity(), shown: self.seen, ..*self };
        }
        self.verdict.wait = if self.verdict.allowed { wait } else { Duration::ZERO };
        self.seen += 1;
    }

    /// Whether all limits allow.
    pub const fn allowed(&self) -> bool {
        self.verdict.allowed
    }

    /// Which of the limits is shown, in the order they were added.
    pub const fn shown(&self) -> usize {
        self.shown
    }

    /// The answer as front ends want it.
    pub const fn decision(&self, ask: &Ask) -> Decision {
        Decision { shown: self.shown, ..Decision::of_one(self.limit, self.verdict, ask.now) }
    }
}

/// Whether a caller should rather be shown `new` than `old`.
fn outranks(new: &Verdict, old: &Verdict) -> bool {
    match (new.allowed, old.allowed) {
        (false, true) => true,
        (true, false) => false,
        (false, false) => new.retry_after > old.retry_after,
        (true, true) => {
            (new.remaining, Reverse(new.reset_after)) < (old.remaining, Reverse(old.reset_after))
        }
    }
}

/// Decides one request over several limits and takes from all of them or from none.
///
/// `charge_refused` lets refused requests cost what they can, limit by limit.
pub fn judge(limits: &mut [(&Limit, &mut State, Ask)], charge_refused: bool) -> Judgement {
    let mut judgement = Judgement::OPEN;
    for (limit, state, ask) in limits.iter() {
        judgement.add(limit, limit.check(state, *ask));
    }
    for (limit, state, ask) in limits.iter_mut() {
        if judgement.allowed() {
            limit.spend(state, *ask);
        } else if charge_refused {
            limit.charge(state, *ask);
        }
    }
    judgement
}
