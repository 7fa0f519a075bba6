//! A rule set with the names of its counters.

use std::{ops::Deref, sync::Arc};

use tollgate_core::Time;
use tollgate_rules::RuleSet;
use tollgate_store::NamedLimit;

/// What is in force: policies, routes, and where their counters are kept.
#[derive(Debug)]
pub struct Rules {
    set: RuleSet,
    ipv6_prefix: u8,
    /// For each policy its limits.
    limits: Vec<Box<[NamedLimit]>>,
}

impl Rules {
    /// Names the counters of every limit. IPv6 clients are told apart by this many bits.
    pub fn new(set: RuleSet, ipv6_prefix: u8) -> Self {
        let limits = set.policies().iter().map(|policy| {
            let id: Arc<str> = Arc::from(&*policy.id);
            let named = policy.limits.iter().enumerate();
            named
                .map(|(position, limit)| {
                    NamedLimit::new(id.clone(), position, *limit)
                        .counting_refused(policy.count_refused)
                })
                .collect()
        });
        Self { limits: limits.collect(), ipv6_prefix, set }
    }

    /// The same rules, in force after those whose counters are `old`: levels are kept.
    #[must_use]
    pub fn succeeding(mut self, old: &[NamedLimit], now: Time) -> Self {
        for limit in self.limits.iter_mut().flatten() {
            let before = old
                .iter()
                .find(|old| old.policy() == limit.policy() && old.position() == limit.position());
            if let Some(before) = before {
                *limit = limit.clone().succeeding(before, now);
            }
        }
        self
    }

    /// The limits of a policy.
    pub fn limits(&self, policy: usize) -> &[NamedLimit] {
        &self.limits[policy]
    }

    /// All limits of all policies.
    pub fn all_limits(&self) -> Vec<NamedLimit> {
        self.limits.iter().flatten().cloned().collect()
    }

    /// How many bits of an IPv6 address tell clients apart.
    pub const fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }
}

impl Deref for Rules {
    type Target = RuleSet;

    fn deref(&self) -> &RuleSet {
        &self.set
    }
}
