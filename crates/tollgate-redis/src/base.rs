//! What all threads of one store share: how to connect, where to ask, how the store is.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
};
use tollgate_core::Clock;
use tollgate_store::{Condition, Health};

use crate::{
    ErrorKind, Observer, RedisConfig,
    dial::{Connection, Dialer, within_dialing},
    fault::Fault,
    lane::Lane,
    names::Names,
    offset::Offset,
    probe,
    script::{self, Scripts},
    server::{Run, Server},
    topology::Topology,
};

/// Shared by the store, its lanes and its background thread.
pub(crate) struct Base {
    pub(crate) config: RedisConfig,
    pub(crate) names: Names,
    pub(crate) node: Arc<str>,
    pub(crate) scripts: Scripts,
    pub(crate) time: script::Clock,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) dialer: Dialer,
    pub(crate) topology: Topology,
    pub(crate) health: Health,
    pub(crate) offset: Offset,
    pub(crate) fleet: AtomicUsize,
    /// The runtime of the background thread.
    pub(crate) background: Handle,
    /// Something happened that may mean that servers have changed places.
    pub(crate) look_again: Notify,
    /// Whether servers have been looked for at least once.
    pub(crate) looked: watch::Sender<bool>,
    /// Whether the store has answered at least once.
    pub(crate) met: watch::Sender<bool>,
    pub(crate) closing: Notify,
    /// This node has said goodbye to the fleet.
    pub(crate) left: AtomicBool,
    closed: AtomicBool,
    over: AtomicBool,
    epoch: AtomicU64,
    assessing: Mutex<()>,
    lanes: Mutex<Vec<Weak<Lane>>>,
    /// Emptied by the background thread when it ends.
    background_lane: Mutex<Option<Arc<Lane>>>,
}

/// What a base is made of beyond its configuration.
pub(crate) struct Parts<'a> {
    pub(crate) scripts: Scripts,
    /// Where scripts have the time from.
    pub(crate) time: &'a script::Clock,
    /// This node's own clock.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) background: Handle,
}

impl Base {
    pub(crate) fn new(
        config: RedisConfig,
        dialer: Dialer,
        node: Arc<str>,
        parts: Parts<'_>,
    ) -> Self {
        let topology = Topology::new(&config.url);
        let names = Names::new(&config.prefix, topology.is_cluster());
        Self {
            names,
            node,
            scripts: parts.scripts,
            time: parts.time.clone(),
            clock: parts.clock,
            observer: parts.observer,
            dialer,
            health: Health::new(),
            offset: Offset::default(),
            fleet: AtomicUsize::new(1),
            background: parts.background,
            look_again: Notify::new(),
            looked: watch::Sender::new(topology.is_settled()),
            topology,
            met: watch::Sender::new(false),
            closing: Notify::new(),
            left: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            assessing: Mutex::new(()),
            lanes: Mutex::default(),
            background_lane: Mutex::default(),
            config,
        }
    }

    pub(crate) const fn timeout(&self) -> Duration {
        self.config.timeout
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The store may have forgotten something.
    pub(crate) fn forgot(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Connects to a server that keeps counters, and notes whether it is a new run of it.
    pub(crate) async fn connect(&self, server: &Server) -> Result<Connection, Fault> {
        let connecting = within_dialing(async {
            match self.dial(server).await {
                // Somebody may have closed it just then; twice in a row is no chance.
                Err(first) if first.is_lost() => self.dial(server).await.map_err(|_| first),
                dialed => dialed,
            }
        });
        let (connection, run) = connecting.await.map_err(Fault::while_connecting)?;
        if server.met(run) {
            self.forgot();
        }
        Ok(connection)
    }

    async fn dial(&self, server: &Server) -> Result<(Connection, Run), Fault> {
        let generation = server.breaker.generation();
        let url = &self.config.url;
        let mut connection = self.dialer.dial(&server.host, &url.login, url.db).await?;
        let run = probe::run_of(&mut connection, generation).await?;
        Ok((connection, run))
    }

    /// Notes that a call failed; if that opens the breaker, the server is probed from now on.
    pub(crate) fn failed(self: &Arc<Self>, server: &Arc<Server>, fault: &Fault, generation: u64) {
        use ErrorKind::{ClusterDown, Connection, ReadOnly};
        self.observer.failed(fault.kind);
        if matches!(fault.kind, Connection | ReadOnly | ClusterDown) {
            self.look_again.notify_one();
        }
        if server.breaker.fail(fault, generation) {
            self.assess();
            self.background.spawn(probe::until_it_answers(Arc::clone(self), Arc::clone(server)));
        }
    }

    /// Tells whoever watches how the store is now.
    pub(crate) fn assess(&self) {
        let _one_at_a_time = self.assessing.lock();
        self.health.set(match self.topology.complaint() {
            Some(fault) => Condition::Down(fault.to_string()),
            None => Condition::Up,
        });
    }

    /// The lane of the background thread, for whoever has no runtime.
    pub(crate) fn background_lane(self: &Arc<Self>) -> Arc<Lane> {
        let open = || Lane::new(Arc::clone(self), self.background.clone());
        let mut lane = self.background_lane.lock();
        if self.is_over() {
            return open();
        }
        Arc::clone(lane.get_or_insert_with(open))
    }

    /// The background thread ends: whatever is asked from now on fails.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        *self.background_lane.lock() = None;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Keeps count of a lane, so that closing the store closes its connections; false if there are
    /// `max` already.
    pub(crate) fn know(&self, lane: &Arc<Lane>, max: usize) -> bool {
        let mut lanes = self.lanes.lock();
        lanes.retain(|lane| lane.strong_count() > 0);
        if lanes.len() < max {
            lanes.push(Arc::downgrade(lane));
            return true;
        }
        false
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The store is gone: so go the connections of all threads.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_one();
        let lanes = std::mem::take(&mut *self.lanes.lock());
        for lane in lanes.iter().filter_map(Weak::upgrade) {
            lane.hang_up();
        }
    }
}
