//! One thread's way to the servers.
//!
//! Every thread with a runtime has links of its own, so that a lone decision is made without
//! waking another thread, and nothing that is asked for on one thread waits for another. Whoever
//! asks outside of a runtime, such as a place that is freed by dropping it, goes through
//! the background thread.

use std::{cell::RefCell, sync::Arc};

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};

use crate::{
    base::Base,
    link::{Link, Waiting},
    server::Server,
};

/// A thread for each core of a large machine. Beyond it they share the background thread's
/// connections: a pool of blocking threads must not open a connection each.
const LANES_MAX: usize = 128;

/// A thread's links, one for each server it has asked.
pub(crate) struct Lane {
    base: Arc<Base>,
    runtime: Handle,
    links: Mutex<Vec<Arc<Link>>>,
}

thread_local! {
    /// One for each store this thread uses.
    static LANES: RefCell<Vec<Arc<Lane>>> = const { RefCell::new(Vec::new()) };
}

impl Lane {
    pub(crate) fn new(base: Arc<Base>, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { base, runtime, links: Mutex::default() })
    }

    /// The lane to ask by from here.
    pub(crate) fn of_this_thread(base: &Arc<Base>) -> Arc<Self> {
        let Ok(runtime) = Handle::try_current() else { return base.background_lane() };
        let id = runtime.id();
        if id == base.background.id() {
            return base.background_lane();
        }
        let found = LANES.try_with(|lanes| {
            let mut lanes = lanes.borrow_mut();
            match lanes.iter().find(|lane| lane.is_for(base, id)) {
                Some(lane) => Some(Arc::clone(lane)),
                None => open(&mut lanes, base, runtime),
            }
        });
        found.ok().flatten().unwrap_or_else(|| base.background_lane())
    }

    /// Sends each request to its server; those of one server together.
    pub(crate) fn submit(&self, requests: impl IntoIterator<Item = Waiting>) {
        let mut routed: Vec<(Arc<Link>, Vec<Waiting>)> = Vec::with_capacity(1);
        for waiting in requests {
            let server = match self.base.topology.route(waiting.slot) {
                Ok(server) => server,
                Err(fault) => {
                    waiting.answer(Err(fault));
                    continue;
                }
            };
            match routed.iter_mut().find(|(link, _)| Arc::ptr_eq(&link.server, &server)) {
                Some((_, together)) => together.push(waiting),
                None => routed.push((self.link(&server), vec![waiting])),
            }
        }
        for (link, requests) in routed {
            link.submit(requests);
        }
    }

    /// The link to a server.
    pub(crate) fn link(&self, server: &Arc<Server>) -> Arc<Link> {
        let mut links = self.links.lock();
        if let Some(link) = links.iter().find(|link| Arc::ptr_eq(&link.server, server)) {
            return Arc::clone(link);
        }
        links.retain(|link| !link.server.is_retired());
        let link = Link::new(Arc::clone(&self.base), Arc::clone(server), self.runtime.clone());
        let link = Arc::new(link);
        links.push(Arc::clone(&link));
        link
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.links.lock().iter().all(|link| link.is_idle())
    }

    /// Closes all connections once the calls under way are done.
    pub(crate) fn hang_up(&self) {
        self.links.lock().iter().for_each(|link| link.hang_up());
    }

    fn is_for(&self, base: &Arc<Base>, runtime: Id) -> bool {
        Arc::ptr_eq(&self.base, base) && self.runtime.id() == runtime
    }
}

/// A new lane. A thread drives one runtime at a time: those of an earlier one are over.
fn open(lanes: &mut Vec<Arc<Lane>>, base: &Arc<Base>, runtime: Handle) -> Option<Arc<Lane>> {
    lanes.retain(|lane| !lane.base.is_closed() && !Arc::ptr_eq(&lane.base, base));
    let lane = Lane::new(Arc::clone(base), runtime);
    if !base.know(&lane, LANES_MAX) {
        return None;
    }
    lanes.push(Arc::clone(&lane));
    Some(lane)
}
