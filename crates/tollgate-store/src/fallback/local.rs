//! Who decides on a node that is on its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use smallvec::SmallVec;
use tollgate_core::{Algorithm, Decision, Time, Wait};

use super::scaled::{Made, Scaled};
use crate::{Charge, MemoryStore, NamedLimit, Share, Store, Take};

/// How many limits of one request are handled without an allocation.
const INLINE: usize = 4;

/// When a refused caller should try again where everything is refused: a store that is back is
/// noticed within a second.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// What happens to requests that the store does not decide.
#[derive(Debug, Clone)]
pub enum OnFailure {
    /// Each node limits by itself, at a share of the policy.
    Local(Share),
    /// Everything passes.
    Allow,
    /// Everything is refused.
    Deny,
}

/// Decides in the store's place, and keeps in mind what the store said while it was there.
pub struct Local {
    store: Arc<MemoryStore>,
    on_failure: OnFailure,
    scaled: Scaled,
    decisions: AtomicU64,
}

impl Local {
    /// Decides by `on_failure`, with counters in `store`. That store should evict at its bound, and
    /// go by the time of the store it stands in for ([`crate::StoreClock`]), so that all nodes
    /// count the same windows.
    pub fn new(store: impl Into<Arc<MemoryStore>>, on_failure: OnFailure) -> Self {
        let (scaled, decisions) = (Scaled::default(), AtomicU64::new(0));
        Self { store: store.into(), on_failure, scaled, decisions }
    }

    /// Where the counters are, to be tidied and observed.
    pub const fn memory(&self) -> &Arc<MemoryStore> {
        &self.store
    }

    /// Decisions made so far.
    pub fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::Relaxed)
    }

    /// What happens instead, as it stands in the log.
    pub(super) fn in_words(&self) -> String {
        match &self.on_failure {
            OnFailure::Local(share) => format!("limiting locally at {share} of policy"),
            OnFailure::Allow => "letting everything pass".to_owned(),
            OnFailure::Deny => "refusing everything".to_owned(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.store.now()
    }

    /// Decides a request.
    pub(super) fn take(&self, take: &Take<'_>) -> Decision {
        self.decisions.fetch_add(1, Ordering::Relaxed);
        self.at_share(take.charges, |charges| self.store.take_now(Take { charges, ..*take }))
            .unwrap_or_else(|| self.flat(take.charges))
    }

    pub(super) fn refund(&self, charges: &[Charge<'_>]) -> Decision {
        self.at_share(charges, |charges| self.store.refund_now(charges))
            .unwrap_or_else(|| self.flat(charges))
    }

    pub(super) fn release(&self, charges: &[Charge<'_>], lease: u64) {
        self.at_share(charges, |charges| self.store.release_now(charges, lease));
    }

    pub(super) fn reset(&self, charges: &[Charge<'_>]) {
        if self.at_share(charges, |charges| self.store.reset_now(charges)).is_some() {
            self.store.reset_now(charges);
        }
    }

    /// Writes down what the store has decided.
    pub(super) fn note(&self, take: &Take<'_>, decision: &Decision) {
        self.as_seen(take.charges, |charges| {
            self.store.note(Take { charges, ..*take }, decision);
        });
    }

    /// Writes down what was given back to the store, and the level after it.
    pub(super) fn note_refund(&self, charges: &[Charge<'_>], level: Option<&Decision>) {
        self.as_seen(charges, |charges| self.store.note_refund(charges, level));
    }

    /// Runs something on the charges at this node's share, warm from what was seen in the store.
    fn at_share<T>(
        &self,
        charges: &[Charge<'_>],
        act: impl FnOnce(&[Charge<'_>]) -> T,
    ) -> Option<T> {
        let OnFailure::Local(share) = &self.on_failure else { return None };
        let limits = charges.iter().map(|charge| charge.limit);
        let made = self.scaled.of(limits, share, self.now());
        let scaled: SmallVec<[Charge<'_>; INLINE]> =
            charges.iter().map(|charge| at(&made, charge)).collect();
        for (seen, own) in charges.iter().zip(&scaled).filter(|(seen, _)| !is_flight(seen.limit)) {
            self.store.adopt(seen.key, seen.limit, own.limit);
        }
        Some(act(&scaled))
    }

    /// The charges under which the store's answers are kept: at the policy's own numbers, where they
    /// are exact. Places in flight are this node's own at any share, and kept there.
    fn as_seen(&self, charges: &[Charge<'_>], act: impl FnOnce(&[Charge<'_>])) {
        let OnFailure::Local(share) = &self.on_failure else { return };
        if !charges.iter().any(|charge| is_flight(charge.limit)) {
            return act(charges);
        }
        let limits = charges.iter().map(|charge| charge.limit);
        let made = self.scaled.of(limits, share, self.now());
        let seen = charges.iter().map(|charge| match is_flight(charge.limit) {
            true => at(&made, charge),
            false => *charge,
        });
        act(&seen.collect::<SmallVec<[Charge<'_>; INLINE]>>());
    }

    /// The same answer for everybody.
    fn flat(&self, charges: &[Charge<'_>]) -> Decision {
        let allowed = !matches!(self.on_failure, OnFailure::Deny);
        let limit = charges.first().map_or(0, |charge| charge.limit.limit().capacity());
        let (remaining, wait) = if allowed { (limit, Duration::ZERO) } else { (0, NOTICED_WITHIN) };
        Decision {
            allowed,
            limit,
            remaining,
            retry_after: Wait::For(wait),
            reset_after: wait,
            wait: Duration::ZERO,
            at: self.now(),
            shown: 0,
        }
    }
}

fn is_flight(limit: &NamedLimit) -> bool {
    limit.limit().algorithm() == Algorithm::Concurrency
}

fn at<'a>(made: &'a Made, charge: &Charge<'a>) -> Charge<'a> {
    Charge { limit: made.get(charge.limit).unwrap_or(charge.limit), ..*charge }
}
