//! Which server to ask.
//!
//! One server is always the same. Behind sentinels it is whom they call the master; in a cluster it
//! depends on the key. The two change while the program runs, so they are looked at again every now
//! and then, at once when a server gives cause, and ten times a second while something is wrong.

mod cluster;
mod sentinel;

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use self::{cluster::Cluster, sentinel::Sentinel};
use crate::{Arrangement, Host, RedisUrl, base::Base, fault::Fault, server::Server};

/// How soon to look again while something is wrong.
const TROUBLED: Duration = Duration::from_millis(100);

/// A failover that gives no cause (the old master still answers) is noticed within this.
const CALM: Duration = Duration::from_secs(1);

/// However many servers send us elsewhere, once is enough for this long.
const PAUSE: Duration = Duration::from_millis(20);

/// How the servers stand together.
pub(crate) enum Topology {
    Single(Arc<Server>),
    Sentinel(Sentinel),
    Cluster(Cluster),
}

impl Topology {
    pub(crate) fn new(url: &RedisUrl) -> Self {
        match &url.arrangement {
            Arrangement::Single => {
                // A parsed address has a host; the default is for one made by hand.
                let host = url.hosts.first().cloned();
                let host = host.unwrap_or(Host { name: "localhost".to_owned(), port: 6_379 });
                Self::Single(Arc::new(Server::new(host)))
            }
            Arrangement::Sentinel { master } => Self::Sentinel(Sentinel::new(url, master)),
            Arrangement::Cluster => Self::Cluster(Cluster::new(url)),
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Whether the servers are known without looking.
    pub(crate) const fn is_settled(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    /// The server that keeps the keys of a slot.
    pub(crate) fn route(&self, slot: u16) -> Result<Arc<Server>, Fault> {
        match self {
            Self::Single(server) => Ok(Arc::clone(server)),
            Self::Sentinel(sentinel) => sentinel.master(),
            Self::Cluster(cluster) => cluster.owner(slot),
        }
    }

    /// A server that another one has named.
    pub(crate) fn server_at(&self, host: &Host) -> Option<Arc<Server>> {
        match self {
            Self::Cluster(cluster) => Some(cluster.server_at(host)),
            _ => None,
        }
    }

    /// All servers that keep keys, each with one of its slots.
    pub(crate) fn servers(&self) -> Vec<(Arc<Server>, u16)> {
        match self {
            Self::Single(server) => vec![(Arc::clone(server), 0)],
            Self::Sentinel(sentinel) => {
                sentinel.master().map(|master| (master, 0)).into_iter().collect()
            }
            Self::Cluster(cluster) => cluster.servers(),
        }
    }

    /// What is wrong, if anything is.
    pub(crate) fn complaint(&self) -> Option<Fault> {
        match self {
            Self::Single(server) => server.breaker.refusal(),
            Self::Sentinel(sentinel) => sentinel.complaint(),
            Self::Cluster(cluster) => cluster.complaint(),
        }
    }

    async fn look(&self, base: &Arc<Base>) {
        match self {
            Self::Single(_) => {}
            Self::Sentinel(sentinel) => sentinel.look(base).await,
            Self::Cluster(cluster) => cluster.look(base).await,
        }
    }
}

/// Looks where the servers are, for as long as the store lives.
pub(crate) async fn keep_looking(base: Arc<Base>) {
    if base.topology.is_settled() {
        return;
    }
    loop {
        base.topology.look(&base).await;
        base.looked.send_replace(true);
        base.assess();
        sleep(PAUSE).await;
        let pause = if base.topology.complaint().is_some() { TROUBLED } else { CALM };
        // Either is cause enough to go on.
        let _ = timeout(pause, base.look_again.notified()).await;
    }
}
