//! A Redis Cluster: three masters, each with a replica.
//!
//! Everybody is introduced to everybody, so that nobody waits for gossip. A master that does not
//! answer is replaced after a second and a half or two: the shortest that a machine with few
//! cores keeps without taking a busy node for a dead one.

use std::{io, net::SocketAddr};

use super::{Redis, RedisOptions, StartError};
use crate::{
    resp_client::{Reply, RespClient},
    wait::{PATIENCE, wait_for, wait_until},
};

const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;
const SLOTS: u16 = 16_384;

/// A running cluster; all of it ends when dropped.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes: first the masters, then the replica of each, as they were when all began.
    pub nodes: Vec<Redis>,
    ids: Vec<String>,
}

impl RedisCluster {
    /// Starts a cluster and waits until all its nodes agree.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(&RedisOptions::new())
    }

    /// Starts a cluster whose nodes all have these options.
    pub fn start_with(options: &RedisOptions) -> Result<Self, StartError> {
        let options = options
            .clone()
            .more_addrs(1)
            .line("cluster-enabled yes")
            .line("cluster-port {port1}")
            .line("cluster-config-file {folder}/nodes.conf")
            .line("cluster-node-timeout 1000")
            .line("cluster-allow-replica-migration no");
        let nodes = (0..NODES).map(|_| options.start()).collect::<Result<Vec<_>, _>>()?;
        let ids = nodes.iter().map(|node| node.ask("CLUSTER MYID")).collect();
        let cluster = Self { nodes, ids };
        cluster.form();
        Ok(cluster)
    }

    /// `redis+cluster://` with the masters.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.nodes[..MASTERS].iter().map(|one| one.addr().to_string()).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// Where the node that serves `slot` is in `nodes`: the one that says so of itself.
    pub fn owner_of(&self, slot: u16) -> usize {
        wait_for(PATIENCE, || {
            let owns = |node: &Redis| owner_seen_by(node, slot) == Some(node.addr());
            let owners: Vec<_> = (0..NODES).filter(|at| owns(&self.nodes[*at])).collect();
            // Two are one that has not heard yet.
            <[usize; 1]>::try_from(owners).ok().map(|[owner]| owner)
        })
        .unwrap()
    }

    /// Makes a replica of the master of `slot` its new master, without a loss; gives the new one.
    pub fn failover(&self, slot: u16) -> usize {
        let old = self.owner_of(slot);
        let replica = self.replica_of(old);
        self.nodes[replica].ask("CLUSTER FAILOVER");
        self.wait_for_other_owner(slot, old)
    }

    /// Waits until another node than `old` serves `slot`.
    pub fn wait_for_other_owner(&self, slot: u16, old: usize) -> usize {
        wait_for(PATIENCE, || Some(self.owner_of(slot)).filter(|owner| *owner != old)).unwrap()
    }

    /// A node that follows `master`.
    pub fn replica_of(&self, master: usize) -> usize {
        let port = Some(self.nodes[master].addr().port().to_string());
        let follows = |node: &Redis| node.info("master_port") == port;
        wait_for(PATIENCE, || self.nodes.iter().position(follows)).unwrap()
    }

    /// Waits until all nodes say that the cluster is whole, and every replica follows.
    pub fn wait_until_whole(&self) {
        let whole = |node: &Redis| {
            let info = node.client().ok()?.ask("CLUSTER INFO").ok()?.text();
            let linked = node.info("master_link_status").is_none_or(|status| status == "up");
            (info.contains("cluster_state:ok") && linked).then_some(())
        };
        for node in &self.nodes {
            wait_for(PATIENCE, || whole(node)).unwrap();
        }
    }

    /// Begins to move `slot` to the node `to`: from now on a key of it is answered with ASK by its
    /// owner if it is not there (any more).
    pub fn begin_move(&self, slot: u16, to: usize) -> SlotMove<'_> {
        let from = self.owner_of(slot);
        self.nodes[to].ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", self.ids[from]));
        self.nodes[from].ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", self.ids[to]));
        SlotMove { cluster: self, slot, from, to }
    }

    fn form(&self) {
        // An epoch can be given only to a node that knows nobody yet.
        for (index, node) in self.nodes.iter().enumerate() {
            node.ask(&format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
        }
        for (index, master) in self.nodes[..MASTERS].iter().enumerate() {
            let own = |slot: &u16| usize::from(*slot) * MASTERS / usize::from(SLOTS) == index;
            let slots: Vec<_> = (0..SLOTS).filter(own).map(|slot| slot.to_string()).collect();
            master.ask(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let (addr, bus) = (other.addr(), other.addrs[1].port());
                node.ask(&format!("CLUSTER MEET {} {} {bus}", addr.ip(), addr.port()));
            }
        }
        for node in &self.nodes {
            wait_until(PATIENCE, || self.knows_all(node)).unwrap();
        }
        for (index, replica) in self.nodes[MASTERS..].iter().enumerate() {
            replica.ask(&format!("CLUSTER REPLICATE {}", self.ids[index]));
        }
        self.wait_until_whole();
        self.wait_until_replicas_are_known();
    }

    fn knows_all(&self, node: &Redis) -> bool {
        let known = node.ask("CLUSTER NODES");
        let linked = |id: &String| {
            let line = known.lines().find(|line| line.starts_with(id.as_str()));
            line.is_some_and(|line| line.contains(" connected") && !line.contains("handshake"))
        };
        self.ids.iter().all(linked)
    }

    /// A node learns by gossip whom the others follow, and needs it to vote.
    fn wait_until_replicas_are_known(&self) {
        for node in &self.nodes {
            let known = || node.ask("CLUSTER NODES").matches("slave").count() == NODES - MASTERS;
            wait_until(PATIENCE, known).unwrap();
        }
    }
}

/// The slot of a key: of what stands between the first braces in it, or of all of it.
pub fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        Some(&rest[..close]).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM, bit by bit.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
            let carried = crc << 1;
            if crc & 0x8000 == 0 { carried } else { carried ^ 0x1021 }
        })
    })
}

/// A slot on its way from one node to another.
#[derive(Debug)]
pub struct SlotMove<'a> {
    cluster: &'a RedisCluster,
    slot: u16,
    /// Who still owns the slot.
    pub from: usize,
    /// Who will.
    pub to: usize,
}

impl SlotMove<'_> {
    /// Takes one key over.
    pub fn take_key(&self, key: &[u8]) {
        let to = self.cluster.nodes[self.to].addr();
        let (ip, port) = (to.ip().to_string(), to.port().to_string());
        let words: [&[u8]; 6] = [b"MIGRATE", ip.as_bytes(), port.as_bytes(), key, b"0", b"5000"];
        self.source().unwrap().command(&words).unwrap().fine();
    }

    /// Takes over every key that is in the slot now, and gives how many there were.
    pub fn take_all_keys(&self) -> usize {
        let command = format!("CLUSTER GETKEYSINSLOT {} 1000", self.slot);
        let keys = self.source().unwrap().ask(&command).unwrap().fine();
        for key in keys.parts() {
            if let Reply::Bulk(key) = key {
                self.take_key(key);
            }
        }
        keys.parts().len()
    }

    /// Ends the move: the new owner answers from now on, the old one with MOVED.
    pub fn finish(self) {
        let command = format!("CLUSTER SETSLOT {} NODE {}", self.slot, self.cluster.ids[self.to]);
        // The new owner first: it then raises its epoch, and nobody is left without an owner. Who
        // is not told would learn it from the others; replicas cannot be told.
        let nodes = &self.cluster.nodes;
        nodes[self.to].ask(&command);
        nodes[self.from].ask(&command);
        for other in nodes.iter().filter(|node| node.info("role").as_deref() == Some("master")) {
            other.ask(&command);
        }
    }

    fn source(&self) -> io::Result<RespClient> {
        self.cluster.nodes[self.from].client()
    }
}

fn owner_seen_by(node: &Redis, slot: u16) -> Option<SocketAddr> {
    let slots = node.client().ok()?.ask("CLUSTER SLOTS").ok()?;
    slots.parts().iter().find_map(|range| {
        let [first, last, master, ..] = range.parts() else { return None };
        let within = (first.integer()..=last.integer()).contains(&i64::from(slot));
        let [ip, port, ..] = master.parts() else { return None };
        within.then(|| format!("{}:{}", ip.text(), port.text()).parse().ok())?
    })
}
