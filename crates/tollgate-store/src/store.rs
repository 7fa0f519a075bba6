//! What every store does.

use std::sync::Arc;

use tollgate_core::{Decision, Patience, Time};

use crate::{Answer, NamedLimit};

/// What one request takes from one limit.
#[derive(Debug, Clone, Copy)]
pub struct Charge<'a> {
    /// The limit, with the name of its counters.
    pub limit: &'a NamedLimit,
    /// Whom we count.
    pub key: &'a [u8],
    /// How much; 0 looks.
    pub cost: u64,
}

/// One request to all its limits: all or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    /// What it takes, at least one.
    pub charges: &'a [Charge<'a>],
    /// Whether the caller would wait.
    pub patience: Patience,
    /// The name of the places it would hold, for limits on what is in flight. No other of all who
    /// share the store may give the same.
    pub lease: u64,
}

impl<'a> Take<'a> {
    /// A plain take: at once or not at all.
    pub const fn now(charges: &'a [Charge<'a>]) -> Self {
        Self { charges, patience: Patience::None, lease: 0 }
    }
}

/// Why a store gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be asked.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// Where counters live. Every call is one atomic step by the store's own clock.
pub trait Store: Send + Sync + 'static {
    /// Takes from all limits, or from none.
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision>;

    /// Takes for many requests in one step, each on its own: one may pass and the next be refused.
    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>>;

    /// Gives back, never more than was taken; the answer is the level after it.
    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision>;

    /// Frees the places held under this name.
    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()>;

    /// Forgets the keys.
    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()>;

    /// The store's time, as near as is known without asking.
    fn now(&self) -> Time;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        (**self).take(take)
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        (**self).take_each(takes)
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        (**self).refund(charges)
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        (**self).release(charges, lease)
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        (**self).reset(charges)
    }

    fn now(&self) -> Time {
        (**self).now()
    }
}
