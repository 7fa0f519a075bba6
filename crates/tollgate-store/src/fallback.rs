//! What decides when the store across the network does not.
//!
//! [`Fallback`] is what the engine asks. It asks the store, and where that fails or takes longer
//! than the time-out, [`Local`] decides in its place: by a share of the policy in this node's own
//! memory, or by letting everything pass, or by refusing everything. An answer that is there at
//! once passes through without a timer and without an allocation.
//!
//! [`Mirrored`] stands next to the store and writes down what it answers, so that the share is
//! *warm*: whoever had a third left before the store went away has a third of the share left after,
//! to within one. Levels seen are kept at the policy's own numbers, where they are exact, and
//! taken over in proportion when a key is first met without the store.
//!
//! **The ceiling.** While the store is away each node gives a key at most its share: a bucket of
//! `share × burst` that fills at `share × rate`, a window of `share × count`. So the fleet as a whole
//! gives at most nodes × share of the policy, beside what the store had admitted before. At 50 % on
//! two nodes, or with the share `fleet`, that is the policy itself. A store that comes and goes adds
//! nothing to it: what a node has given at its share is only ever lowered by what the store says
//! next, never raised.
//!
//! **Nothing is charged afterwards.** When the store is back it does not learn what nodes decided
//! meanwhile. Charging it would need every node to have kept every decision, would come as one
//! heap of debt when the store has least to spare, and would punish clients for what they had
//! been allowed; left out, a key gets at most the stated ceiling for the time of the outage. For the
//! same reason a node that is started without the store knows nobody, and gives its whole share.
//!
//! **A request whose answer came too late** may have been charged by the store as well as by the
//! share: the client then has less, never more. A reset cannot be done by one node alone and is an
//! error while the store is away. A place in flight is freed here at once, and in the store when it
//! is back ([`lost`]).

mod local;
mod lost;
mod mirrored;
mod scaled;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, time::timeout};
use tollgate_core::{Decision, Time};

use self::lost::Lost;
pub use self::{
    local::{Local, OnFailure},
    mirrored::Mirrored,
};
use crate::{Answer, Charge, Condition, Health, Store, StoreError, Take};

/// A store with somebody who decides in its place.
pub struct Fallback<S> {
    inner: S,
    local: Arc<Local>,
    timeout: Duration,
    timeouts: AtomicU64,
    since: Mutex<Option<Time>>,
    lost: Lost,
}

/// What the fallback has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FallbackStats {
    /// Since when the store has been away, by the local store's clock; none while it is there.
    pub since: Option<Time>,
    /// Decisions made without the store.
    pub decisions: u64,
    /// Calls that the store did not answer in time.
    pub timeouts: u64,
}

impl FallbackStats {
    /// Whether the store is away.
    pub const fn is_active(&self) -> bool {
        self.since.is_some()
    }
}

type Waiting<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

impl<S: Store> Fallback<S> {
    /// Asks `inner`, and `local` where no answer comes within `timeout`.
    pub fn new(inner: S, local: Arc<Local>, timeout: Duration) -> Self {
        let (timeouts, since, lost) = (AtomicU64::new(0), Mutex::new(None), Lost::default());
        Self { inner, local, timeout, timeouts, since, lost }
    }

    /// The store that is asked.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// What has happened so far.
    pub fn stats(&self) -> FallbackStats {
        FallbackStats {
            since: *self.since.lock(),
            decisions: self.local.decisions(),
            timeouts: self.timeouts.load(Ordering::Relaxed),
        }
    }

    /// Says in the log when the store called `name` goes and when it is back, once each, for ever.
    pub fn watch(
        self: &Arc<Self>,
        health: &Health,
        name: &'static str,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (fallback, mut condition) = (self.clone(), health.watch());
        async move {
            loop {
                let now = condition.borrow_and_update().clone();
                fallback.tell(&now, name);
                let making_up = async {
                    if now == Condition::Up {
                        fallback.make_up().await;
                    }
                    std::future::pending().await
                };
                tokio::select! {
                    Ok(()) = condition.changed() => {}
                    // Where nobody is left to say anything, this is all there is to do.
                    () = making_up => {}
                }
            }
        }
    }

    /// Frees in the store what was freed while it was away, until it is away again.
    async fn make_up(&self) {
        while let Some(release) = self.lost.next(self.local.now()) {
            let charges = release.charges();
            let told = timeout(self.timeout, self.inner.release(&charges, release.lease()));
            if !matches!(told.await, Ok(Ok(()))) {
                drop(charges);
                return self.lost.put_back(release);
            }
        }
    }

    /// Only a change is worth a line: another cause of the same outage is not.
    fn tell(&self, condition: &Condition, name: &str) {
        let mut since = self.since.lock();
        match condition {
            Condition::Down(cause) if since.is_none() => {
                *since = Some(self.local.now());
                let instead = self.local.in_words();
                tracing::warn!(
                    "Distributed rate limiting disabled: {name} unavailable ({cause}); {instead}"
                );
            }
            Condition::Up if since.is_some() => {
                *since = None;
                tracing::info!("Distributed rate limiting restored");
            }
            _ => {}
        }
    }

    /// The store's answer, or what `instead` makes of there being none.
    fn or_else<'a, T: Send + 'a>(
        &'a self,
        answer: Answer<'a, T>,
        instead: impl FnOnce(StoreError) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        match answer {
            Answer::Ready(Some(Err(error))) => Answer::Ready(Some(instead(error))),
            Answer::Waiting(answer) => {
                Answer::Waiting(Box::pin(
                    async move { self.in_time(answer).await.or_else(instead) },
                ))
            }
            ready => ready,
        }
    }

    async fn in_time<T>(&self, mut answer: Waiting<'_, T>) -> Result<T, StoreError> {
        // Often it is there at the first look; a timer is made only for those that are not.
        let first = std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context)));
        if let Poll::Ready(answer) = first.await {
            return answer;
        }
        if Handle::try_current().is_err() {
            // Set going by somebody outside of any runtime who will not wait for it.
            return answer.await;
        }
        timeout(self.timeout, answer).await.unwrap_or_else(|_| {
            self.timeouts.fetch_add(1, Ordering::Relaxed);
            let waited = self.timeout.as_millis();
            Err(StoreError::Unavailable(format!("timed out after {waited} ms")))
        })
    }
}

impl<S: Store> Store for Fallback<S> {
    fn take<'a>(&'a self, take: Take<'a>) -> Answer<'a, Decision> {
        self.or_else(self.inner.take(take), move |_| Ok(self.local.take(&take)))
    }

    fn take_each<'a>(&'a self, takes: &'a [Take<'a>]) -> Answer<'a, Vec<Decision>> {
        self.or_else(self.inner.take_each(takes), move |_| {
            Ok(takes.iter().map(|take| self.local.take(take)).collect())
        })
    }

    fn refund<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, Decision> {
        self.or_else(self.inner.refund(charges), move |_| Ok(self.local.refund(charges)))
    }

    fn release<'a>(&'a self, charges: &'a [Charge<'a>], lease: u64) -> Answer<'a, ()> {
        self.local.release(charges, lease);
        self.or_else(self.inner.release(charges, lease), move |_| {
            self.lost.keep(charges, lease, self.local.now());
            Ok(())
        })
    }

    fn reset<'a>(&'a self, charges: &'a [Charge<'a>]) -> Answer<'a, ()> {
        self.or_else(self.inner.reset(charges), Err)
    }

    fn now(&self) -> Time {
        self.inner.now()
    }
}
