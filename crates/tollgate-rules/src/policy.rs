//! A policy: a named set of limits, whom they count, and what follows.

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
}
