//! A store across an imagined network that does what a test tells it.
//!
//! Behind it is a memory store, so what it decides is right; whether and when the answer comes is
//! the test's choice. As with a real one a call is set going by its first poll, and dropping the
//! answer after that does not undo it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tollgate_core::{Clock, Decision, Time};
use tollgate_store::{
    Answer, Charge, Draw, Drawn, Holding, Level, MemoryConfig, MemoryStore, Slices, Store,
    StoreError, Take,
};

/// What becomes of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Answered at once: the answer is ready.
    AtOnce,
    /// Answered after a while, by tokio's time.
    Late {
        /// How long a call is on its way. Dropped in that time, it never arrives.
        there: Duration,
        /// How long its answer is.
        back: Duration,
    },
    /// Arrives, and is never answered.
    Silent,
    /// Fails at once.
    Refused,
}

/// The store.
pub struct RemoteStore {
    store: MemoryStore,
    network: Mutex<Network>,
    calls: AtomicU64,
    epoch: AtomicU64,
}

impl RemoteStore {
    /// An empty store that answers at once.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            store: MemoryStore::new(MemoryConfig::default(), clock),
            network: Mutex::new(Network::AtOnce),
            calls: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
        }
    }

    /// From now on calls go like this.
    pub fn set(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }

    /// How often it was called, whatever became of it.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// What it has, seen from its own side.
    pub const fn behind(&self) -> &MemoryStore {
        &self.store
    }

    /// Counts one more time at which it may have forgotten something.
    pub fn fail_over(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    fn call<'a, T: Send + 'a>(&'a self, act: impl FnOnce() -> T + Send + 'a) -> Answer<'a, T> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let network = *self.network.lock().unwrap();
        match network {
            Network::AtOnce => Answer::ready(act()),
            Network::Refused => Answer::Ready(Some(Err(refused()))),
            Network::Late { there, back } => Answer::Waiting(Box::pin(async move {
                if !there.is_zero() {
                    tokio::time::sleep(there).await;
                }
                let answer = act();
                tokio::time::sleep(back).await;
                Ok(answer)
            })),
            Network::Silent => Answer::Waiting(Box::pin(async move {
                act();
                std::future::pending().await
            })),
        }
    }
}

fn refused() -> StoreError {
    StoreError::Unavailable("connection refused".to_owned())
}

impl Store for RemoteStore {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        self.call(move || self.store.take_now(take))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        self.call(move || takes.iter().map(|take| self.store.take_now(*take)).collect())
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        self.call(move || self.store.refund_now(charges))
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.call(move || self.store.release_now(charges, lease))
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        self.call(move || self.store.reset_now(charges))
    }

    fn now(&self) -> Time {
        Store::now(&self.store)
    }
}

impl Slices for RemoteStore {
    /// Grants all that is wanted as long as there is something: who holds what is not counted here.
    fn draw<'a>(&'a self, draw: Draw<'a>) -> Answer<'a, Drawn> {
        self.call(move || {
            let take = |cost| self.store.take_now(Take::now(&[Charge { cost, ..draw.charge }]));
            let decision = take(draw.charge.cost);
            let granted = if decision.allowed { draw.want.min(decision.remaining) } else { 0 };
            let after = take(granted);
            Drawn {
                decision,
                slice: draw.left + granted,
                lasts: Duration::from_secs(1),
                level: Level { at: after.at, remaining: after.remaining },
            }
        })
    }

    fn put_back<'a>(&'a self, holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        self.call(move || {
            for holding in holdings {
                self.store.refund_now(&[holding.charge]);
            }
        })
    }

    fn reassert<'a>(&'a self, _holdings: &'a [Holding<'a>]) -> Answer<'a, ()> {
        self.call(|| ())
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }
}
