//! The limits that slices are held of, once each.
//!
//! A slice must outlive the request that drew it, and so must its limit. There are few limits and
//! many keys, so keys share them. Only the newest of a name is remembered: what is held under
//! numbers that were replaced is not worth making the store count by them once more.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::NamedLimit;

#[derive(Default)]
pub(super) struct Limits {
    /// By policy, each policy's by their position.
    newest: Mutex<HashMap<String, Vec<Arc<NamedLimit>>>>,
}

impl Limits {
    /// The limit, to keep.
    pub(super) fn shared(&self, limit: &NamedLimit) -> Arc<NamedLimit> {
        let mut newest = self.newest.lock();
        if let Some(limits) = newest.get_mut(limit.policy())
            && let Some(known) = limits.iter_mut().find(|one| one.position() == limit.position())
        {
            if !is_same(known, limit) {
                *known = Arc::new(limit.clone());
            }
            return Arc::clone(known);
        }
        let shared = Arc::new(limit.clone());
        newest.entry(limit.policy().to_owned()).or_default().push(Arc::clone(&shared));
        shared
    }

    /// Whether no other numbers have come under its name since.
    pub(super) fn is_newest(&self, limit: &NamedLimit) -> bool {
        let newest = self.newest.lock();
        let mut limits = newest.get(limit.policy()).into_iter().flatten();
        limits.any(|one| one.position() == limit.position() && one.tag() == limit.tag())
    }

    /// Drops what nobody holds.
    pub(super) fn tidy(&self) {
        self.newest.lock().retain(|_, limits| {
            limits.retain(|limit| Arc::strong_count(limit) > 1);
            !limits.is_empty()
        });
    }
}

/// Whether the store would be told the same.
pub(super) fn is_same(known: &NamedLimit, limit: &NamedLimit) -> bool {
    known.tag() == limit.tag()
        && known.mode() == limit.mode()
        && known.ttl() == limit.ttl()
        && known.past().len() == limit.past().len()
}
