//! A rule set with the names of its counters.

use std::{ops::Deref, sync::Arc};

use tollgate_core::Time;
use tollgate_rules::{Policy, RuleSet};
use tollgate_store::{Mode, NamedLimit};

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
        let limits = set.policies().iter().map(named).collect();
        Self { limits, ipv6_prefix, set }
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

/// The limits of a policy under their names.
fn named(policy: &Policy) -> Box<[NamedLimit]> {
    let id: Arc<str> = Arc::from(&*policy.id);
    let mode = match policy.mode {
        tollgate_rules::Mode::Exact => Mode::Exact,
        tollgate_rules::Mode::Leased { epsilon_millionths } => Mode::Leased { epsilon_millionths },
    };
    let named = policy.limits.iter().enumerate().map(|(position, limit)| {
        let named = NamedLimit::new(id.clone(), position, *limit)
            .counting_refused(policy.count_refused)
            .in_mode(mode);
        match policy.ttl {
            Some(ttl) => named.kept_for(ttl),
            None => named,
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    // part of: B4, B10
    #[test]
    fn mode_and_time_to_live_reach_every_limit_of_the_policy() {
        let limits =
            "limits: [{algorithm: token_bucket, rate: 1/s}, {algorithm: sliding_log, rate: 9/s}]";
        let text = format!(
            "policies:\n- {{id: a, mode: leased, epsilon: 0.25, ttl: 120s, {limits}}}\n- {{id: b, {limits}}}\n"
        );
        let rules = tollgate_rules::read("a.yaml", &text, &|_| None).unwrap().rules;
        let rules = Rules::new(rules, 64);
        for limit in rules.limits(0) {
            assert_eq!(limit.mode(), Mode::Leased { epsilon_millionths: 250_000 });
            assert_eq!(limit.ttl(), Some(Duration::from_secs(120)));
        }
        assert_eq!(rules.limits(1).len(), 2);
        for limit in rules.limits(1) {
            assert_eq!((limit.mode(), limit.ttl()), (Mode::Exact, None));
        }
    }
}
