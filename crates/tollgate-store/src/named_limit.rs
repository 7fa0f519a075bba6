//! A limit with its name in the store: whose counters these are, whatever the numbers.
//!
//! Counters belong to a policy and the place of the limit in it. When the numbers change, the new
//! limit remembers the old ones for as long as their counters can matter; a key that is met under
//! the new numbers for the first time takes its level over from the old, in proportion.

use std::{hash::Hasher, sync::Arc, time::Duration};

use siphasher::sip128::{Hasher128, SipHasher13};
use tollgate_core::{Limit, Time};

/// How many changes of numbers a limit remembers: more only matter when someone changes a policy
/// faster than its own period, and then the oldest levels count as fresh.
const PAST_MAX: usize = 4;

/// A limit and the name its counters are kept under.
#[derive(Debug, Clone)]
pub struct NamedLimit {
    policy: Arc<str>,
    position: usize,
    limit: Limit,
    tag: u128,
    past: Vec<Past>,
    counts_refused: bool,
    mode: Mode,
    ttl: Option<Duration>,
}

/// Who decides where nodes share a store; in memory there is nobody else, and every mode is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The store, every time.
    #[default]
    Exact,
    /// The node, by slices taken ahead.
    Leased {
        /// What the whole fleet may hold ahead, in millionths of the limit's capacity.
        epsilon_millionths: u32,
    },
}

/// Numbers that a limit had before.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) limit: Limit,
    pub(crate) tag: u128,
    /// From when on none of its counters says anything.
    pub(crate) until: Time,
}

impl NamedLimit {
    /// The limit at `position` in a policy.
    pub fn new(policy: impl Into<Arc<str>>, position: usize, limit: Limit) -> Self {
        let policy = policy.into();
        let tag = tag(&policy, position, &limit);
        Self {
            policy,
            position,
            limit,
            tag,
            past: Vec::new(),
            counts_refused: false,
            mode: Mode::Exact,
            ttl: None,
        }
    }

    /// The same, with refused requests taking what there is, or not.
    #[must_use]
    pub const fn counting_refused(mut self, counts: bool) -> Self {
        self.counts_refused = counts;
        self
    }

    /// The same, decided in this mode.
    #[must_use]
    pub const fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same, with idle keys kept for at least this long where keys expire by a time of their own.
    #[must_use]
    pub const fn kept_for(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The same limit, now that it has taken the place of `old` at `now`.
    #[must_use]
    pub fn succeeding(mut self, old: &Self, now: Time) -> Self {
        self.past.clone_from(&old.past);
        if old.tag != self.tag {
            let until =
                Time::from_micros(now.as_micros().saturating_add(old.limit.memory_micros()));
            self.past.insert(0, Past { limit: old.limit, tag: old.tag, until });
        }
        self.past.retain(|past| past.until > now && past.tag != self.tag);
        self.past.truncate(PAST_MAX);
        self
    }

    /// Whose limit it is.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Which of the policy's limits it is, from 0 on.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// What it allows.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Whether a refused request takes what there is.
    pub const fn counts_refused(&self) -> bool {
        self.counts_refused
    }

    /// Who decides.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// How long an idle key is kept at least.
    pub const fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    /// A number for name and numbers together, the same in every process.
    pub const fn tag(&self) -> u128 {
        self.tag
    }

    /// A number for name, numbers and the numbers before: levels under equal ones are the same
    /// levels, also where a policy was changed to and fro.
    pub(crate) fn identity(&self) -> u128 {
        self.past.iter().fold(self.tag, |sum, past| sum.rotate_left(1) ^ past.tag)
    }

    pub(crate) fn with_past(mut self, past: impl IntoIterator<Item = Past>) -> Self {
        self.past = past.into_iter().filter(|past| past.tag != self.tag).take(PAST_MAX).collect();
        self
    }

    pub(crate) fn past(&self) -> &[Past] {
        &self.past
    }
}

/// A number for a limit's name and numbers, the same in every process: saved counters are found
/// again by it. It needs no secret, because clients choose neither.
fn tag(policy: &str, position: usize, limit: &Limit) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(policy.as_bytes());
    hasher.write_usize(position);
    hasher.write(limit.to_string().as_bytes());
    hasher.finish128().as_u128()
}
