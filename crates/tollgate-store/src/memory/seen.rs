//! What another store was seen to decide, kept here for the day it cannot be asked.
//!
//! Only one limit of a decision is shown with its level; of the others it is known what the request
//! took. Levels are brought down to what was seen and never up: answers may overtake each other,
//! and a store that has forgotten everything must not refill what is known here.

use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{Algorithm, Ask, Decision, Limit, Patience, State, Time};

use super::{INLINE, MemoryStore, shard::Shard};
use crate::{Charge, NamedLimit, Take, fingerprint::Fingerprint};

impl MemoryStore {
    /// Takes what a request took elsewhere, and brings the shown limit down to what it had left.
    pub(crate) fn note(&self, take: Take<'_>, decision: &Decision) {
        let now = self.clock.now();
        let shown = last_of_shown(take.charges, decision);
        for (position, charge) in take.charges.iter().enumerate() {
            let level = (Some(position) == shown).then_some(decision.remaining);
            let fingerprint = self.seed.fingerprint(charge.key);
            let mut shard = self.shard(fingerprint).lock();
            let ask = super::ask(&take, charge, shard.time(now));
            shard.note(fingerprint, charge.limit, ask, decision, level);
        }
    }

    /// Gives back what was given back elsewhere, with the level after it if it is known.
    pub(crate) fn note_refund(&self, charges: &[Charge<'_>], level: Option<&Decision>) {
        self.refund_now(charges);
        let Some(level) = level else { return };
        let looks: SmallVec<[Charge<'_>; INLINE]> =
            charges.iter().map(|charge| Charge { cost: 0, ..*charge }).collect();
        self.note(Take::now(&looks), level);
    }

    /// Moves what was seen of a key under `seen` to `own`, in proportion. What `own` has already
    /// given is not given again: the lower level counts.
    pub(crate) fn adopt(&self, key: &[u8], seen: &NamedLimit, own: &NamedLimit) {
        let fingerprint = self.seed.fingerprint(key);
        let now = self.clock.now();
        let mut shard = self.shard(fingerprint).lock();
        let now = shard.time(now);
        shard.adopt(fingerprint, seen, own, now);
    }
}

/// Where the shown limit is charged last: one limit may stand in a request twice, and its level is
/// what is left after all. Of places in flight only this node's own are counted here.
fn last_of_shown(charges: &[Charge<'_>], decision: &Decision) -> Option<usize> {
    let shown = charges.get(decision.shown)?;
    if shown.limit.limit().algorithm() == Algorithm::Concurrency {
        return None;
    }
    charges.iter().rposition(|one| one.limit.tag() == shown.limit.tag() && one.key == shown.key)
}

impl Shard {
    fn note(
        &mut self,
        key: Fingerprint,
        named: &NamedLimit,
        ask: Ask,
        decision: &Decision,
        level: Option<u64>,
    ) {
        let limit = named.limit();
        let reserved = decision.wait > Duration::ZERO;
        let mut cost = ask.cost;
        // Mostly both know the same: then it is taken here as it was there, and that is all.
        if decision.allowed
            && !reserved
            && let Some(own) = self.take_known(key, named, &ask).filter(|own| own.allowed)
        {
            if level.is_none_or(|level| own.remaining <= level) {
                return;
            }
            cost = 0;
        }
        let ask = Ask { cost, ..ask };
        let mut state = self.lift(key, named, ask.now);
        if decision.allowed && (reserved || limit.algorithm() == Algorithm::Concurrency) {
            limit.spend(&mut state, ask);
        } else if decision.allowed || named.counts_refused() {
            limit.charge(&mut state, ask);
        }
        if let Some(level) = level {
            lower(limit, &mut state, ask.now, level);
        }
        self.put(key, named, state, ask.now);
    }

    fn adopt(&mut self, key: Fingerprint, seen: &NamedLimit, own: &NamedLimit, now: Time) {
        let Some(state) = self.lift_out(key, seen, now) else { return };
        let Some(mut carried) = own.limit().carry(seen.limit(), &state, now) else { return };
        let level = share_of_level(seen.limit(), &state, own.limit(), now);
        raise(own.limit(), &mut carried, now, level);
        if !self.knows(key, own, now) {
            return self.put(key, own, carried, now);
        }
        let mut state = self.lift(key, own, now);
        lower(own.limit(), &mut state, now, level);
        self.put(key, own, state, now);
    }
}

/// The level of `state` in proportion, rounded towards used.
fn share_of_level(seen: &Limit, state: &State, own: &Limit, now: Time) -> u64 {
    let capacity = seen.capacity();
    if capacity == 0 {
        return 0;
    }
    let level = seen.check(state, look(now)).remaining.min(capacity);
    let share = u128::from(level) * u128::from(own.capacity()) / u128::from(capacity);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Brings a state that was carried over up to a level, if it is below: each part of a window was
/// rounded up, in total no more than one may be. What is used beyond the limit does not show, so it
/// takes several steps, at most one for each part.
fn raise(limit: &Limit, state: &mut State, now: Time, level: u64) {
    for _ in 0..WINDOW_PARTS_MAX {
        match level.saturating_sub(limit.check(state, look(now)).remaining) {
            0 => break,
            below => limit.refund(state, now, below),
        }
    }
}

/// More than any window has.
const WINDOW_PARTS_MAX: usize = 64;

/// Brings a state down to a level, if it is above.
fn lower(limit: &Limit, state: &mut State, now: Time, level: u64) {
    let above = limit.check(state, look(now)).remaining.saturating_sub(level);
    limit.charge(state, Ask { cost: above, ..look(now) });
}

const fn look(now: Time) -> Ask {
    Ask { now, cost: 0, patience: Patience::None, lease: 0 }
}
