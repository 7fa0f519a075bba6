//! Places held while something is in flight.

use std::{fmt, sync::Arc, task::Context};

use tokio::sync::Notify;
use tollgate_core::Algorithm;
use tollgate_rules::KeyBuf;
use tollgate_store::{Answer, Charge, Store};

use crate::Rules;

/// Places under limits on what is in flight. Dropping it gives them back.
pub struct Held {
    store: Arc<dyn Store>,
    /// Whom to tell that places are free.
    released: Arc<Notify>,
    rules: Arc<Rules>,
    places: Vec<(usize, usize, KeyBuf)>,
    lease: u64,
}

impl Held {
    /// Of the places that a request asks for, those that count what is in flight.
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        released: &Arc<Notify>,
        rules: &Arc<Rules>,
        asked: impl Iterator<Item = (usize, usize, KeyBuf)>,
        lease: u64,
    ) -> Self {
        let holds = |(policy, limit, _): &(usize, usize, KeyBuf)| {
            rules.limits(*policy)[*limit].limit().algorithm() == Algorithm::Concurrency
        };
        let places = asked.filter(holds).collect();
        let (store, released, rules) = (store.clone(), released.clone(), rules.clone());
        Self { store, released, rules, places, lease }
    }

    /// Keeps the places until the lease ends, and returns its name.
    pub fn keep(mut self) -> u64 {
        self.places.clear();
        self.lease
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        let charges: Vec<_> = self
            .places
            .iter()
            .map(|(policy, limit, key)| {
                let limit = &self.rules.limits(*policy)[*limit];
                Charge { limit, key, cost: 0 }
            })
            .collect();
        start(self.store.release(&charges, self.lease));
        self.released.notify_waiters();
    }
}

/// Sets an answer going that nobody waits for. A store across a network that loses it leaves
/// the place to the end of its lease.
pub(crate) fn start<T: Unpin>(answer: Answer<'_, T>) {
    let mut answer = std::pin::pin!(answer);
    let _ = answer.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()));
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("lease", &self.lease).finish_non_exhaustive()
    }
}
