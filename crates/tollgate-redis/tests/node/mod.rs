//! A node of a fleet as tests see it: a store, and a count of what it does.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tollgate_core::{Decision, Limit, Rate, Unit};
use tollgate_redis::{ErrorKind, Observer, RedisConfig, RedisStore};
use tollgate_store::{Charge, Condition, NamedLimit, Store, StoreError, Take};
use tollgate_testkit::wait::{PATIENCE, wait_until};

/// Long enough that a busy machine does not make a healthy server look dead.
pub(crate) const UNHURRIED: Duration = Duration::from_secs(5);

/// What a store did.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) calls: AtomicUsize,
    pub(crate) requests: AtomicUsize,
    pub(crate) failures: Mutex<Vec<ErrorKind>>,
}

impl Observer for Counts {
    fn round_trip(&self, _: Duration, requests: usize, _: usize) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.requests.fetch_add(requests, Ordering::SeqCst);
    }

    fn failed(&self, kind: ErrorKind) {
        self.failures.lock().unwrap().push(kind);
    }
}

impl Counts {
    /// Calls and requests so far.
    pub(crate) fn seen(&self) -> (usize, usize) {
        (self.calls.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }
}

pub(crate) fn config(url: &str) -> RedisConfig {
    RedisConfig { timeout: UNHURRIED, ..RedisConfig::new(url.parse().unwrap()) }
}

/// A store that waits as long as it takes.
pub(crate) fn start(url: &str) -> Arc<RedisStore> {
    RedisStore::start(config(url), Arc::new(())).unwrap()
}

/// A store that waits no longer than told.
pub(crate) fn start_hurried(url: &str, timeout: Duration) -> Arc<RedisStore> {
    RedisStore::start(RedisConfig { timeout, ..config(url) }, Arc::new(())).unwrap()
}

/// `burst` at once and no more for the rest of the day.
pub(crate) fn daily(policy: &str, burst: u64) -> NamedLimit {
    NamedLimit::new(policy, 0, Limit::token_bucket(Rate::per(1, Unit::Day), burst).unwrap())
}

pub(crate) async fn take(
    store: &RedisStore,
    limit: &NamedLimit,
    key: &str,
) -> Result<Decision, StoreError> {
    store.take(Take::now(&[Charge { limit, key: key.as_bytes(), cost: 1 }])).await
}

/// Takes once; the store must answer.
pub(crate) async fn passes(store: &RedisStore, limit: &NamedLimit, key: &str) -> bool {
    take(store, limit, key).await.unwrap().allowed
}

/// Why a call fails; it must.
pub(crate) async fn complaint(store: &RedisStore, limit: &NamedLimit, key: &str) -> String {
    let StoreError::Unavailable(cause) = take(store, limit, key).await.unwrap_err();
    cause
}

/// Waits until the store says that it is down, and gives the reason.
pub(crate) fn wait_for_trouble(store: &RedisStore) -> String {
    wait_until(PATIENCE, || !store.health().is_up()).unwrap();
    match store.health().condition() {
        Condition::Down(cause) => cause,
        Condition::Up => panic!("it came back"),
    }
}

/// A runtime as a gateway has one for each core.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
