//! A place in the future: asked for, waited for, and given back by whoever leaves.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tollgate_core::{Algorithm, Decision, Patience};
use tollgate_rules::KeyBuf;
use tollgate_store::{Charge, Store, StoreError, Take};

use crate::{
    Rules,
    lease::start,
    queue::{Queues, Whose},
};

/// What a patient caller asks for, with all it takes to ask and to give back.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) rules: Arc<Rules>,
    /// The policy, as a place in the rules.
    pub(crate) policy: usize,
    pub(crate) key: KeyBuf,
    pub(crate) cost: u64,
}

impl Place {
    /// Waits for a turn that comes `after` from now; dropped before, the place goes back.
    pub(crate) async fn wait(&self, queues: &Queues, after: Duration) {
        if !after.is_zero() {
            queues.wait(self.whose(), self.cost, after, || self.give_back()).await;
        }
    }

    fn whose(&self) -> Whose {
        (self.rules.policies()[self.policy].id.clone(), self.key.as_slice().into())
    }

    fn charges(&self, counted: impl Fn(Algorithm) -> bool) -> SmallVec<[Charge<'_>; 4]> {
        let limits = self.rules.limits(self.policy).iter();
        let limits = limits.filter(|limit| counted(limit.limit().algorithm()));
        limits.map(|limit| Charge { limit, key: &self.key, cost: self.cost }).collect()
    }

    async fn ask(self, patience: Patience, lease: u64) -> Result<Decision, StoreError> {
        let charges = self.charges(|_| true);
        self.store.take(Take { charges: &charges, patience, lease }).await
    }

    fn give_back(&self) {
        // Places in flight have a name and are freed by it; a refund would free somebody else's.
        let charges = self.charges(|algorithm| algorithm != Algorithm::Concurrency);
        if !charges.is_empty() {
            start(self.store.refund(&charges));
        }
    }
}

/// A place being asked for. If whoever asked leaves before the answer is there, the store may have
/// given the place away all the same: the answer is then waited for in the background, and the
/// place given back like that of anybody who leaves the queue. Without a runtime around it is lost,
/// which costs its key one place and lets nobody pass too early.
pub(crate) struct Asking<'a> {
    answer: Option<Waiting>,
    under_way: bool,
    place: Place,
    queues: &'a Queues,
}

type Waiting = Pin<Box<dyn Future<Output = Result<Decision, StoreError>> + Send>>;

impl<'a> Asking<'a> {
    pub(crate) fn new(place: &Place, patience: Patience, lease: u64, queues: &'a Queues) -> Self {
        let answer: Waiting = Box::pin(place.clone().ask(patience, lease));
        Self { answer: Some(answer), under_way: false, place: place.clone(), queues }
    }
}

impl Future for Asking<'_> {
    type Output = Result<Decision, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(answer) = &mut self.answer else { return Poll::Pending };
        let answer = answer.as_mut().poll(context);
        self.under_way = answer.is_pending();
        answer
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(answer) = self.answer.take().filter(|_| self.under_way) else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let (place, queues) = (self.place.clone(), self.queues.clone());
        runtime.spawn(async move {
            if let Ok(decision) = answer.await
                && decision.allowed
            {
                queues.leave(place.whose(), place.cost, decision.wait, || place.give_back());
            }
        });
    }
}
