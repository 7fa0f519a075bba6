//! Deciding by slices that were taken ahead.

use std::sync::Arc;

use tollgate_core::{Clock, Decision, Time};

use crate::{Answer, Charge, Slices, Store, Take};

/// A store that spends slices of limits in leased mode by itself, and asks the one behind it for
/// all else. Clones are handles to the same slices.
pub struct Leases<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    inner: S,
    #[expect(dead_code, reason = "slices have a life, which comes next")]
    clock: Arc<dyn Clock>,
}

/// What a node holds, and what became of all it ever drew. Counted in tokens, unless it says
/// otherwise; `drawn` is always the sum of `spent`, `held`, `returned` and `lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseStats {
    /// Keys of which something is held.
    pub slices: usize,
    /// Held, and not yet spent.
    pub held: u64,
    /// Ever taken ahead.
    pub drawn: u64,
    /// Spent by this node's own decisions.
    pub spent: u64,
    /// Given back.
    pub returned: u64,
    /// Neither spent nor given back: expired, or given up because the store did not answer.
    pub lost: u64,
    /// Decisions made without asking the store; a count of requests.
    pub decided: u64,
    /// How often the store was asked for a slice; a count of requests.
    pub draws: u64,
}

impl<S: Slices> Leases<S> {
    /// Nothing held yet. The clock counts the life of slices; it should not be set back.
    pub fn new(inner: S, clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::new(Shared { inner, clock }) }
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// Gives back what is idle or about to end, and tells the store what it may have forgotten.
    /// Never ends; without it slices expire unspent.
    pub async fn tend(&self) {
        std::future::pending().await
    }

    /// Gives everything back. From then on every request goes to the store.
    pub async fn close(&self) {}

    /// What is held now, and what became of the rest.
    pub fn stats(&self) -> LeaseStats {
        LeaseStats::default()
    }
}

impl<S> Clone for Leases<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Slices> Store for Leases<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        self.inner().take(take)
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        self.inner().take_each(takes)
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        self.inner().refund(charges)
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.inner().release(charges, lease)
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        self.inner().reset(charges)
    }

    fn now(&self) -> Time {
        self.inner().now()
    }
}
