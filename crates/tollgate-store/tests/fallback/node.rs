//! One node of a fleet: all layers above a remote store.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Clock, Decision, Limit, Rate, Time, Unit};
use tollgate_store::{
    Answer, Charge, Denials, Fallback, Local, MemoryConfig, MemoryStore, Mirrored, NamedLimit,
    OnFailure, Share, Store, StoreError, Take,
};
use tollgate_testkit::{ManualClock, remote_store::RemoteStore};

pub(super) const TIMEOUT: Duration = Duration::from_millis(50);

pub(super) const HALF: Share = Share::Part { millionths: 500_000 };

pub(super) type Stack = Fallback<Denials<Mirrored<Arc<RemoteStore>>>>;

pub(super) struct Node {
    pub(super) store: Arc<Stack>,
    pub(super) local: Arc<Local>,
}

impl Node {
    pub(super) fn new(
        remote: &Arc<RemoteStore>,
        clock: &Arc<dyn Clock>,
        on_failure: OnFailure,
    ) -> Self {
        let memory = MemoryStore::new(MemoryConfig::default(), clock.clone());
        let local = Arc::new(Local::new(memory, on_failure));
        let mirrored = Mirrored::new(remote.clone(), local.clone());
        let denials = Denials::new(mirrored, clock.clone());
        Self { store: Arc::new(Fallback::new(denials, local.clone(), TIMEOUT)), local }
    }

    pub(super) fn take(&self, limit: &NamedLimit, key: &str, cost: u64) -> Decision {
        let charges = [Charge { limit, key: key.as_bytes(), cost }];
        now(self.store.take(Take::now(&charges))).unwrap()
    }
}

/// A remote store, a node on it, and the clock of both.
pub(super) fn alone(on_failure: OnFailure) -> (Arc<RemoteStore>, Node, ManualClock) {
    let clock = ManualClock::default();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let remote = Arc::new(RemoteStore::new(shared.clone()));
    let node = Node::new(&remote, &shared, on_failure);
    (remote, node, clock)
}

/// An answer that must be there without waiting: no timer and no future was made for it.
#[track_caller]
pub(super) fn now<T>(answer: Answer<'_, T>) -> Result<T, StoreError> {
    match answer {
        Answer::Ready(answer) => answer.unwrap(),
        Answer::Waiting(_) => panic!("this must not wait"),
    }
}

pub(super) fn look(store: &MemoryStore, limit: &NamedLimit, key: &str) -> Decision {
    store.take_now(Take::now(&[Charge { limit, key: key.as_bytes(), cost: 0 }]))
}

pub(super) fn bucket(count: u64, burst: u64) -> NamedLimit {
    NamedLimit::new("p", 0, Limit::token_bucket(Rate::per(count, Unit::Second), burst).unwrap())
}

/// Every algorithm that counts by time.
pub(super) fn limits(rate: Rate, burst: u64) -> Vec<NamedLimit> {
    let limits = [
        Limit::token_bucket(rate, burst),
        Limit::leaky_bucket(rate, burst),
        Limit::fixed_window(rate),
        Limit::sliding_log(rate),
        Limit::sliding_counter(rate),
        Limit::sliding_window(rate),
    ];
    let limits = limits.into_iter().enumerate();
    limits.map(|(at, limit)| NamedLimit::new("p", at, limit.unwrap())).collect()
}

/// Runs in tokio's paused time, which jumps from timer to timer.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test);
}

/// Where every test begins.
pub(super) fn begin() -> Time {
    ManualClock::default().now()
}
