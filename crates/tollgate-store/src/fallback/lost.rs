//! Places in flight whose end the store did not hear of.
//!
//! A place taken in the store before it went away, and given back while it is, would otherwise be
//! held until its lease ends: after an outage of a second a fleet would be short of places for as
//! long as leases last. The oldest are kept, because those are the ones the store knows of; what was
//! taken later was taken locally.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use tollgate_core::{Algorithm, Time};

use crate::{Charge, NamedLimit};

/// More than a node has in flight; beyond it places wait for the end of their leases.
const KEPT_AT_MOST: usize = 16_384;

#[derive(Default)]
pub(super) struct Lost {
    releases: Mutex<VecDeque<Release>>,
}

/// One holder and its places.
pub(super) struct Release {
    places: Vec<(NamedLimit, Box<[u8]>)>,
    lease: u64,
    /// When the leases have ended by themselves.
    until: Time,
}

impl Lost {
    pub(super) fn keep(&self, charges: &[Charge<'_>], lease: u64, now: Time) {
        let held =
            |charge: &&Charge<'_>| charge.limit.limit().algorithm() == Algorithm::Concurrency;
        let held = charges.iter().filter(held);
        let places: Vec<_> = held.map(|held| (held.limit.clone(), held.key.into())).collect();
        let longest = places.iter().map(|(limit, _)| limit.limit().memory_micros()).max();
        let Some(longest) = longest else { return };
        let mut releases = self.releases.lock();
        if releases.len() < KEPT_AT_MOST {
            let until = now.after(Duration::from_micros(longest));
            releases.push_back(Release { places, lease, until });
        }
    }

    /// The oldest that still matters.
    pub(super) fn next(&self, now: Time) -> Option<Release> {
        let mut releases = self.releases.lock();
        std::iter::from_fn(|| releases.pop_front()).find(|release| release.until > now)
    }

    /// For the next time that the store is there.
    pub(super) fn put_back(&self, release: Release) {
        self.releases.lock().push_front(release);
    }
}

impl Release {
    pub(super) fn charges(&self) -> Vec<Charge<'_>> {
        self.places.iter().map(|(limit, key)| Charge { limit, key, cost: 0 }).collect()
    }

    pub(super) const fn lease(&self) -> u64 {
        self.lease
    }
}
