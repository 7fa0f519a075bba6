//! A policy: a named set of limits, whom they count, and what follows.

use std::time::Duration;

use tollgate_core::Limit;

use crate::KeyTemplate;

/// Limits that are decided together, and whom they count.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Its place in [`crate::RuleSet::policies`].
    pub index: usize,
    /// Its name; counters belong to it, so renaming a policy starts them anew.
    pub id: Box<str>,
    /// All must allow; none means unlimited.
    pub limits: Vec<Limit>,
    /// Whom the limits count.
    pub key: KeyTemplate,
    /// `false` is a dry run: decide and count, refuse nothing.
    pub enforce: bool,
    /// Whether a refused request is charged to the limits that had room.
    pub count_refused: bool,
    /// Who decides where nodes share a store.
    pub mode: Mode,
    /// How long a store whose keys expire keeps an idle one at least.
    pub ttl: Option<Duration>,
}

/// Who decides where nodes share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The store, every time.
    Exact,
    /// The node, from what it took ahead.
    Leased {
        /// What the whole fleet may hold ahead, in millionths of the limit.
        epsilon_millionths: u32,
    },
}
