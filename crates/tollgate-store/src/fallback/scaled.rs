//! The limits of policies at a node's share, made when they are first met.
//!
//! Their counters have names of their own, apart from those of the levels seen in the store. When
//! the share changes, because a node has come or gone, or the policy does, the new limit takes over
//! from the old in proportion.

use std::{collections::HashMap, time::Duration};

use parking_lot::{RwLock, RwLockReadGuard};
use tollgate_core::{Limit, Time};

use crate::{
    NamedLimit,
    named_limit::Past,
    share::{Fraction, Share},
};

/// Limits come from the configuration, so there are few; a configuration that changes for ever must
/// still not grow this for ever.
const LIMITS_MAX: usize = 16_384;

/// How many shares are remembered: as many as a limit remembers numbers.
const FRACTIONS_MAX: usize = 4;

#[derive(Default)]
pub(super) struct Scaled {
    made: RwLock<Made>,
}

#[derive(Default)]
pub(super) struct Made {
    /// The share they are made for first, then those before it.
    fractions: Vec<Fraction>,
    limits: HashMap<u128, NamedLimit>,
}

impl Made {
    pub(super) fn get(&self, limit: &NamedLimit) -> Option<&NamedLimit> {
        self.limits.get(&limit.identity())
    }
}

impl Scaled {
    /// All of `limits` at this share.
    pub(super) fn of<'a>(
        &self,
        limits: impl Iterator<Item = &'a NamedLimit> + Clone,
        share: &Share,
        now: Time,
    ) -> RwLockReadGuard<'_, Made> {
        let fraction = share.fraction();
        let made = self.made.read();
        if made.fractions.first() == Some(&fraction)
            && limits.clone().all(|limit| made.get(limit).is_some())
        {
            return made;
        }
        drop(made);
        let mut made = self.made.write();
        made.turn_to(fraction);
        for limit in limits {
            made.add(limit, now);
        }
        parking_lot::RwLockWriteGuard::downgrade(made)
    }
}

impl Made {
    fn turn_to(&mut self, fraction: Fraction) {
        if self.fractions.first() == Some(&fraction) {
            return;
        }
        self.fractions.retain(|old| *old != fraction);
        self.fractions.insert(0, fraction);
        self.fractions.truncate(FRACTIONS_MAX);
        self.limits.clear();
    }

    fn add(&mut self, limit: &NamedLimit, now: Time) {
        let Some((fraction, before)) = self.fractions.split_first() else { return };
        if self.limits.contains_key(&limit.identity()) {
            return;
        }
        let name = format!("{}\0at a share", limit.policy());
        let scaled = |fraction: &Fraction, limit: &Limit, position| {
            NamedLimit::new(&*name, position, fraction.of_limit(limit))
        };
        let past = |old: NamedLimit| {
            let until = now.after(Duration::from_micros(old.limit().memory_micros()));
            Past { limit: *old.limit(), tag: old.tag(), until }
        };
        let position = limit.position();
        let at_other_shares = before.iter().map(|old| past(scaled(old, limit.limit(), position)));
        let other_numbers =
            limit.past().iter().map(|old| past(scaled(fraction, &old.limit, position)));
        let made = scaled(fraction, limit.limit(), position)
            .counting_refused(limit.counts_refused())
            .with_past(at_other_shares.chain(other_numbers).collect::<Vec<_>>());
        if self.limits.len() >= LIMITS_MAX {
            self.limits.clear();
        }
        self.limits.insert(limit.identity(), made);
    }
}
