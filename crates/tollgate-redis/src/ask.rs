//! Sending requests on their way, and waiting for what comes of them.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{
    ErrorKind,
    base::Base,
    call::Outcome,
    fault::Fault,
    lane::Lane,
    link::{Waiting, Way},
    request::Request,
};

/// What comes of one request.
pub(crate) struct Pending(oneshot::Receiver<Result<Outcome, Fault>>);

impl Pending {
    pub(crate) async fn outcome(self) -> Result<Outcome, Fault> {
        self.0.await.unwrap_or_else(|_| Err(runtime_ended()))
    }
}

/// Nobody is left to answer.
pub(crate) fn runtime_ended() -> Fault {
    Fault::new(ErrorKind::Connection, "the runtime it was asked on has ended")
}

/// Sends one request and waits. Once it is polled, dropping it does not take the request back.
pub(crate) async fn one(base: &Arc<Base>, request: Box<Request>) -> Result<Outcome, Fault> {
    let mut sent = many(base, [request]).await;
    match sent.pop() {
        Some(pending) => pending.outcome().await,
        None => Err(Fault::new(ErrorKind::Other, "nothing was asked")),
    }
}

/// Sends requests together. Each lies in one slot.
pub(crate) async fn many(
    base: &Arc<Base>,
    requests: impl IntoIterator<Item = Box<Request>>,
) -> SmallVec<[Pending; 1]> {
    let deadline = Instant::now() + base.timeout();
    if !*base.looked.borrow() {
        // Only right after the start, and only where servers have to be found first.
        let _ = timeout_at(deadline, base.looked.subscribe().wait_for(|looked| *looked)).await;
    }
    send(base, requests, deadline)
}

/// The same, where the servers are known.
fn send(
    base: &Arc<Base>,
    requests: impl IntoIterator<Item = Box<Request>>,
    deadline: Instant,
) -> SmallVec<[Pending; 1]> {
    let cluster = base.topology.is_cluster();
    let mut pending = SmallVec::new();
    let waiting = requests.into_iter().map(|request| {
        let (reply, outcome) = oneshot::channel();
        pending.push(Pending(outcome));
        let slot = if cluster { request.slots().first().copied() } else { None };
        let (slot, way) = (slot.unwrap_or(0), Way::default());
        Waiting { request, slot, deadline, grouped: false, way, reply }
    });
    let mut waiting: SmallVec<[Waiting; 1]> = waiting.collect();
    let grouped = waiting.len() > 1;
    waiting.iter_mut().for_each(|waiting| waiting.grouped = grouped);
    Lane::of_this_thread(base).submit(waiting);
    pending
}
