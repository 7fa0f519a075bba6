//! A draw under way: who waits for it, and who sees to it when its caller has left.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate_core::{Decision, Time};

use super::{
    Shared,
    shard::{End, Spot},
};
use crate::{Charge, Draw, Drawn, Holding, Level, NamedLimit, Slices, StoreError};

/// Nobody begins to wait for a draw that is older than this: its store is in trouble, or its caller
/// has left and nobody tends.
const OVERDUE: Duration = Duration::from_millis(100);

/// What those who wait for a draw see of it.
pub(super) struct Flight {
    over: Notify,
    failed: OnceLock<Option<StoreError>>,
    /// What it will bring, as far as can be told.
    expected: u64,
    since: Time,
    /// What those who wait for it want.
    waited_for: AtomicU64,
}

impl Flight {
    pub(super) fn new(expected: u64, since: Time) -> Self {
        let (over, failed, waited_for) = (Notify::new(), OnceLock::new(), AtomicU64::new(0));
        Self { over, failed, expected, since, waited_for }
    }

    /// Whether it will bring enough for one more, and soon.
    pub(super) fn has_room(&self, cost: u64, now: Time) -> bool {
        let before = self.waited_for.load(Ordering::Relaxed);
        before.saturating_add(cost) <= self.expected && now.since(self.since) < OVERDUE
    }

    /// The same, with the place taken.
    pub(super) fn board(&self, cost: u64) -> bool {
        let before = self.waited_for.fetch_add(cost, Ordering::Relaxed);
        before.saturating_add(cost) <= self.expected
    }

    /// Waits until it is over; an error if it brought nothing because the store failed.
    pub(super) async fn landed(&self) -> Result<(), StoreError> {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            // Whoever is enabled before the look is told of an end after it.
            over.as_mut().enable();
            match self.failed.get() {
                Some(None) => return Ok(()),
                Some(Some(error)) => return Err(error.clone()),
                None => over.await,
            }
        }
    }

    /// Tells everyone.
    pub(super) fn end(&self, error: Option<StoreError>) {
        // It ends once; a second word would be the same.
        let _ = self.failed.set(error);
        self.over.notify_waiters();
    }
}

/// What a draw needs to know when it sets out.
pub(super) struct Route {
    pub(super) limit: Arc<NamedLimit>,
    pub(super) key: Arc<[u8]>,
    pub(super) want: u64,
    pub(super) left: u64,
    /// The level last seen, and the store's epoch then.
    pub(super) seen: Option<(u64, Level)>,
    pub(super) flight: Arc<Flight>,
}

type Draft = Pin<Box<dyn Future<Output = Result<Decision, StoreError>> + Send>>;

/// A draw in its caller's hand. Dropped before its end, it is left to `tend`.
pub(super) struct Flying<S: Slices> {
    draft: Option<Draft>,
    shared: Arc<Shared<S>>,
}

impl<S: Slices> Flying<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>, spot: Spot, route: Route, cost: u64) -> Self {
        let draft: Draft = Box::pin(fly(Arc::clone(shared), spot, route, cost));
        Self { draft: Some(draft), shared: Arc::clone(shared) }
    }
}

impl<S: Slices> Future for Flying<S> {
    type Output = Result<Decision, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(draft) = &mut self.draft else { return Poll::Pending };
        let poll = draft.as_mut().poll(context);
        if poll.is_ready() {
            self.draft = None;
        }
        poll
    }
}

impl<S: Slices> Drop for Flying<S> {
    fn drop(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.shared.orphans.adopt(draft);
        }
    }
}

async fn fly<S: Slices>(
    shared: Arc<Shared<S>>,
    spot: Spot,
    route: Route,
    cost: u64,
) -> Result<Decision, StoreError> {
    let Route { limit, key, flight, .. } = &route;
    // Before anything is asked: the life of what comes counts from here.
    let asked = shared.clock.now();
    let epoch = shared.inner.epoch();
    let charge = Charge { limit, key, cost };
    let landing = draw(&shared, &route, charge, epoch).await;
    let now = shared.clock.now();
    let (landing, want, left) = (&landing, route.want, route.left);
    let epoch_ended = shared.inner.epoch() != epoch;
    let end = End { flight, landing, asked, now, epoch, epoch_ended, want, left };
    shared.shards.lock(spot).land(spot, end);
    flight.end(landing.as_ref().err().cloned());
    landing.as_ref().map(|drawn| drawn.decision).map_err(Clone::clone)
}

/// Draws; a store that may have forgotten the level is told of it first.
async fn draw<S: Slices>(
    shared: &Shared<S>,
    route: &Route,
    charge: Charge<'_>,
    epoch: u64,
) -> Result<Drawn, StoreError> {
    if let Some((seen, level)) = route.seen
        && seen != epoch
    {
        let held = Charge { cost: route.left, ..charge };
        shared.inner.reassert(&[Holding { charge: held, level }]).await?;
    }
    shared.inner.draw(Draw { charge, want: route.want, left: route.left }).await
}

/// Draws whose callers have left.
#[derive(Default)]
pub(super) struct Orphans {
    waiting: Mutex<(Vec<Draft>, Option<Waker>)>,
}

impl Orphans {
    fn adopt(&self, draft: Draft) {
        let mut waiting = self.waiting.lock();
        waiting.0.push(draft);
        if let Some(waker) = waiting.1.take() {
            waker.wake();
        }
    }

    /// Brings them on by a step each.
    fn poll(&self, context: &mut Context<'_>) {
        let mut drafts = {
            let mut waiting = self.waiting.lock();
            waiting.1 = Some(context.waker().clone());
            std::mem::take(&mut waiting.0)
        };
        drafts.retain_mut(|draft| draft.as_mut().poll(context).is_pending());
        self.waiting.lock().0.append(&mut drafts);
    }

    /// Does something and sees to them meanwhile.
    pub(super) async fn minded<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            self.poll(context);
            work.as_mut().poll(context)
        })
        .await
    }
}
