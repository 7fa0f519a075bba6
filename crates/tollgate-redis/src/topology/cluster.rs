//! Which server of a cluster keeps which slot.
//!
//! The map is read with `CLUSTER SLOTS`, which every version understands, from any server that
//! answers. A server that says `MOVED` is believed for that request, and the map is read again.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redis::Value;

use crate::{
    ErrorKind, Host, RedisUrl, base::Base, dial::within_dialing, fault::Fault, server::Server,
};

const SLOTS: usize = 16_384;

/// No server keeps the slot.
const NOBODY: u16 = u16::MAX;

/// The map as last read, and every server that was ever named.
pub(crate) struct Cluster {
    seeds: Vec<Host>,
    map: ArcSwap<Map>,
    named: Mutex<HashMap<Host, Arc<Server>>>,
}

struct Map {
    masters: Vec<Arc<Server>>,
    /// Which of them keeps a slot.
    owners: Box<[u16]>,
    /// Why it is empty, when it is.
    fault: Option<Fault>,
}

/// Some slots in a row, and who keeps them.
struct Stretch {
    first: usize,
    last: usize,
    master: Host,
}

impl Cluster {
    pub(crate) fn new(url: &RedisUrl) -> Self {
        let unknown = Fault::new(ErrorKind::Connection, "no node of the cluster has answered yet");
        Self {
            seeds: url.hosts.clone(),
            map: ArcSwap::from_pointee(Map::empty(unknown)),
            named: Mutex::default(),
        }
    }

    pub(crate) fn owner(&self, slot: u16) -> Result<Arc<Server>, Fault> {
        let map = self.map.load();
        let owner =
            map.owners.get(usize::from(slot)).and_then(|at| map.masters.get(usize::from(*at)));
        owner.cloned().ok_or_else(|| map.fault.clone().unwrap_or_else(|| uncovered(slot)))
    }

    pub(crate) fn server_at(&self, host: &Host) -> Arc<Server> {
        let mut named = self.named.lock();
        // One that was retired left the cluster, perhaps to come back as another.
        let server = named.get(host).filter(|server| !server.is_retired()).cloned();
        server.unwrap_or_else(|| {
            let server = Arc::new(Server::new(host.clone()));
            named.insert(host.clone(), Arc::clone(&server));
            server
        })
    }

    pub(crate) fn servers(&self) -> Vec<(Arc<Server>, u16)> {
        let map = self.map.load();
        let slot_of = |at: usize| map.owners.iter().position(|owner| usize::from(*owner) == at);
        let masters = map.masters.iter().enumerate();
        masters
            .filter_map(|(at, master)| {
                Some((Arc::clone(master), u16::try_from(slot_of(at)?).ok()?))
            })
            .collect()
    }

    pub(crate) fn complaint(&self) -> Option<Fault> {
        let map = self.map.load();
        let broken = |master: &Arc<Server>| Some(master.breaker.refusal()?.at(&master.host));
        map.fault.clone().or_else(|| map.masters.iter().find_map(broken)).or_else(|| {
            let slot = map.owners.iter().position(|owner| *owner == NOBODY)?;
            Some(uncovered(u16::try_from(slot).unwrap_or(NOBODY)))
        })
    }

    /// Reads the map from the first server that has one.
    pub(crate) async fn look(&self, base: &Arc<Base>) {
        let known: Vec<_> = self.map.load().masters.iter().map(|it| it.host.clone()).collect();
        let mut last = None;
        for host in known.iter().chain(&self.seeds) {
            match read(base, host).await {
                Ok(stretches) => return self.adopt(base, &stretches),
                Err(fault) => last = Some(fault.at(host)),
            }
        }
        if let (Some(fault), true) = (last, known.is_empty()) {
            self.map.store(Arc::new(Map::empty(fault)));
        }
    }

    fn adopt(&self, base: &Base, stretches: &[Stretch]) {
        let mut new = Map { masters: Vec::new(), owners: nobody(), fault: None };
        for stretch in stretches {
            let at = new.place(self.server_at(&stretch.master));
            if let Some(slots) = new.owners.get_mut(stretch.first..=stretch.last) {
                slots.fill(at);
            }
        }
        let old = self.map.swap(Arc::new(new));
        let new = self.map.load();
        if moved(&old, &new) {
            base.forgot();
        }
        let gone = old.masters.iter().filter(|master| !new.has(master));
        gone.for_each(|master| master.retire());
        self.named.lock().retain(|_, server| !server.is_retired());
    }
}

impl Map {
    fn empty(fault: Fault) -> Self {
        Self { masters: Vec::new(), owners: nobody(), fault: Some(fault) }
    }

    fn place(&mut self, master: Arc<Server>) -> u16 {
        let at = self.masters.iter().position(|known| Arc::ptr_eq(known, &master));
        let at = at.unwrap_or_else(|| {
            self.masters.push(master);
            self.masters.len() - 1
        });
        u16::try_from(at).unwrap_or(NOBODY)
    }

    fn has(&self, server: &Arc<Server>) -> bool {
        self.masters.iter().any(|master| Arc::ptr_eq(master, server))
    }

    fn owner(&self, slot: usize) -> Option<&Arc<Server>> {
        self.masters.get(usize::from(*self.owners.get(slot)?))
    }
}

/// Whether a slot that had an owner now has another.
fn moved(old: &Map, new: &Map) -> bool {
    (0..SLOTS).any(|slot| match (old.owner(slot), new.owner(slot)) {
        (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
        _ => false,
    })
}

fn nobody() -> Box<[u16]> {
    vec![NOBODY; SLOTS].into()
}

fn uncovered(slot: u16) -> Fault {
    Fault::new(ErrorKind::ClusterDown, format!("no node of the cluster keeps slot {slot}"))
}

async fn read(base: &Arc<Base>, host: &Host) -> Result<Vec<Stretch>, Fault> {
    let reply = within_dialing(async {
        let mut connection = base.dialer.dial(host, &base.config.url.login, 0).await?;
        connection.ask(redis::cmd("CLUSTER").arg("SLOTS")).await
    });
    let nonsense = || Fault::new(ErrorKind::Other, "no map of a cluster");
    let Value::Array(rows) = reply.await? else { return Err(nonsense()) };
    let stretches = rows.iter().map(|row| stretch(row, host)).collect::<Option<Vec<_>>>();
    match stretches.ok_or_else(nonsense)? {
        empty if empty.is_empty() => {
            Err(Fault::new(ErrorKind::ClusterDown, "its cluster has no slots"))
        }
        stretches => Ok(stretches),
    }
}

/// From `[first, last, [name, port, id, …], replicas …]`; without a name it is who was asked.
fn stretch(row: &Value, asked: &Host) -> Option<Stretch> {
    let Value::Array(row) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = row.as_slice() else {
        return None;
    };
    let [name, Value::Int(port), ..] = master.as_slice() else { return None };
    let name = match name {
        Value::BulkString(name) if !name.is_empty() && name != b"?" => {
            String::from_utf8(name.clone()).ok()?
        }
        _ => asked.name.clone(),
    };
    let master = Host { name, port: u16::try_from(*port).ok()? };
    Some(Stretch {
        first: usize::try_from(*first).ok()?,
        last: usize::try_from(*last).ok()?,
        master,
    })
}
